"""The notebook edition, whole: nothing outside imports it."""
