"""A note as a tree: read from Markdown, refused where no page can show it, written as HTML or Markdown."""
