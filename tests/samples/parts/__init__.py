"""A lecture in a folder."""

from litbook import note

from . import compute as work
from .storage import storage


def main() -> None:
    note("Two parts, each a file, and the models they share.")
    storage()
    work.compute()


def in_short() -> None:
    """Not called."""
