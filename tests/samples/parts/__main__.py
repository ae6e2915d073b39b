"""Prints the lecture: `python -m parts`."""

from . import main

main()
