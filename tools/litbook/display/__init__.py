"""Values that show themselves as in Jupyter: `asking` takes the form, `drawing` puts it on a page."""
