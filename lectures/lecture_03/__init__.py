"""Lecture 03: a Transformer, counted."""
from litbook import note


def main() -> None:
    note("A Transformer of today, and what it costs.")
