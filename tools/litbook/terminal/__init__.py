"""The document in a terminal: a run as it goes, and what differs between two records."""
