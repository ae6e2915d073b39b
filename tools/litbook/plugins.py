"""What litbook can do beyond its core: packages that nothing in the core imports, and that fill its tables.

Who begins a program (the command line, the process of a run, the plugin) brings in what it has a use for, as
far as it is there; the registry of rules brings in what has some. This file alone knows the packages' names,
and what is gone where one of them is.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from litbook.errors import LitbookError

PACKAGES = {
    "edtrace": "other tools' words",
    "mutants": "changes of claims and of code",
    "translations": "the engine's words in other languages",
    "display": "the forms in which values show themselves",
}


class Missing(LitbookError):
    """What was asked for is in a package that is not here."""

    slug = "missing-package"

    def __init__(self, package: str) -> None:
        super().__init__(
            f"{PACKAGES[package]} are in the package litbook.{package}, which is not here\n"
            "    install litbook whole, from where you have it"
        )


def bring_in(*modules: str) -> None:
    """Import these modules of the packages, as far as they are there: each fills its table of the core's."""
    for name in modules:
        if find_spec(f"litbook.{name.partition('.')[0]}") is not None:
            import_module(f"litbook.{name}")
