"""A lecture's text: its statements, directives, sections and names. It knows no values and runs nothing."""
