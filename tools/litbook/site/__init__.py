"""Which pages exist: the MkDocs plugin, the list of pages, the preview."""
