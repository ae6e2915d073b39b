"""Between record and reader there is data: nobody reads HTML that another part of the engine has written.

A regular expression whose pattern looks for an element is found by its text, wherever it stands. What Material
and authors write is not ours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[2] / "tools" / "litbook"
FOLDERS = ("markdown", "values", "page", "html", "explore", "notebook", "site", "terminal")
CALLS = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
MAY = {
    "markdown/refusals.py": "what an author has written in a note, and no page can show",
    "site/search.py": "the table of a glossary, which an author has written and Markdown has rendered",
    "site/theme_patches.py": "Material's pages, with names for a screen reader",
}
GROUP = re.compile(r"\(\?(?:P?<\w+>|<[=!])")  # of a pattern's own syntax
ELEMENT = re.compile(r"<[A-Za-z/\[(\\]")


def patterns(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each pattern that is given to `re` as a literal, with its line; the holes of an f-string are empty."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("re"), name), [pattern, *_]) if name in CALLS:
                parts = pattern.values if isinstance(pattern, ast.JoinedStr) else [pattern]
                texts = (it.value for it in parts if isinstance(it, ast.Constant))
                yield node.lineno, "".join(it for it in texts if isinstance(it, str))


def readers(text: str) -> list[int]:
    """The lines of a text that look for an element with a regular expression."""
    return [line for line, pattern in patterns(ast.parse(text)) if ELEMENT.search(GROUP.sub("", pattern))]


def test_nobody_reads_html() -> None:
    found = {
        file.relative_to(ENGINE).as_posix(): lines
        for folder in FOLDERS
        for file in sorted((ENGINE / folder).rglob("*.py"))
        if (lines := readers(file.read_text(encoding="utf-8")))
    }
    assert found.keys() & MAY.keys() == MAY.keys(), "an exception that is none any more"
    assert {name: lines for name, lines in found.items() if name not in MAY} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("re.sub(r'<code>(.*?)</code>', '', text)", [1]),
        ("x = 1\nre.compile(rf'{name}</?(?:p|li)>')", [2]),
        ("re.findall(r'<[^<>]*>', text)", [1]),
        ("re.compile(r'(?P<name>[a-z]+)(?<=x)(?<!y)')", []),
        ("re.compile(r'<!-- (claims|parts) -->')", []),
        ("text.replace('<code>', '')", []),
    ],
)
def test_the_test_can_fail(text: str, found: list[int]) -> None:
    assert readers(text) == found
