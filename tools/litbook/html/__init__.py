"""A section's blocks -> HTML, a page -> a file of the site. It reads no HTML that another module wrote."""
