"""The reference, as a MkDocs hook: what words, directives and commands say, in the place of its comments.

In go the docstrings and signatures of what `litbook` exports, the directives with what each means, and the
commands; out come the tables of `docs/reference.md`. So whoever adds a word has written its place here, and
a word without a docstring is an error.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import litbook
from litbook.cli import group
from litbook.lecture.directives import DIRECTIVES


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with the tables in the place of its comments."""
    for comment, text in PLACES.items():
        if comment in markdown:
            markdown = markdown.replace(comment, text())
    return markdown


def words(module: ModuleType = litbook) -> str:
    """A heading, the signature and the docstring of each word that a module exports.

    Of other tools' words no search finds one: who looks for `link` or `note` means ours.
    """
    heading = "### `{}`" if module is litbook else "#### `{}` {{ data-search-exclude }}"
    return "\n".join(_word(name, getattr(module, name), heading) for name in sorted(module.__all__))


def _word(name: str, word: object, heading: str) -> str:
    said = inspect.getdoc(word)
    if not said or not callable(word):
        raise ValueError(f"the reference needs a docstring of {name}")
    return f"{heading.format(name)}\n\n```python\n{signature(name, word)}\n```\n\n{said}\n"


def signature(name: str, word: Callable[..., object]) -> str:
    """How a word is called: `note(text: str)`."""
    given = str(inspect.signature(word)).partition(" -> ")[0]
    return name + re.sub(r": '([^']*)'", r": \1", given)


def directives() -> str:
    """A row for each directive."""
    rows = (f"| `# @{name}` | {said} |" for name, said in DIRECTIVES.items())
    return "\n".join(["| directive | says |", "|---|---|", *rows])


def commands() -> str:
    """A row for each command."""
    rows = (f"| `litbook {name}` | {it.get_short_help_str(200)} |" for name, it in group.commands.items())
    return "\n".join(["| command | does |", "|---|---|", *rows])


def foreign() -> str:
    """Other tools' words that lectures may go on using; nothing where their package is not here."""
    try:
        module = importlib.import_module("litbook.edtrace.words")
    except ModuleNotFoundError:
        return ""
    return f"## Words of other tools\n\n### edtrace\n\n{_table(module)}\n\n{words(module)}"


def _table(module: ModuleType) -> str:
    """The table in a module's docstring: what each of its words is here."""
    return "\n".join(line for line in (module.__doc__ or "").splitlines() if line.startswith("|"))


PLACES: dict[str, Callable[[], str]] = {
    "<!-- words -->": words,
    "<!-- directives -->": directives,
    "<!-- commands -->": commands,
    "<!-- foreign -->": foreign,
}
