"""Any object -> a bounded snapshot, ready for JSON."""
