"""The live preview: it runs what was saved, draws the page that is open, and serves both."""
