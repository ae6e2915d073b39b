"""Words of other tools in ours, so that what was written for them runs here unchanged."""
