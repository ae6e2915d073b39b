"""The glossary: few words, each defined by a section; none stands in the core's prose before its definition there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from litbook.text import source

LECTURES = "lecture_02", "lecture_03"
ROW = re.compile(
    r"\| (?P<term>[^|]+) \| (?P<sentence>[^|]+) \| \[[^\]]+\]\((?P<page>[^)#]+)#(?P<section>\w+)\) \|"
)


class Told(NamedTuple):
    """A section: its name, what its notes and boxes say, and whether it is an aside."""

    name: str
    prose: str
    aside: bool


@pytest.fixture(scope="module")
def rows(repo: Path) -> list[dict[str, str]]:
    """The rows of the glossary's table."""
    return [m.groupdict() for m in ROW.finditer((repo / "docs" / "glossary.md").read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def sections(repo: Path) -> list[Told]:
    """The sections of both lectures and the parts that lead into them, in the order of reading."""
    found = []
    for name in LECTURES:
        lecture = source.read(repo / "lectures" / name, f"lectures/{name}")
        defs = {
            node.name: node
            for file in lecture.files
            for node in file.tree.body
            if isinstance(node, ast.FunctionDef)
        }
        for function in (lecture.functions[i] for i in lecture.order):
            node = defs.get(function.name)
            if node is not None:
                aside = any(ast.unparse(d) == "aside" for d in node.decorator_list)
                found.append(Told(function.name, prose_of(node), aside))
    return found


def prose_of(function: ast.FunctionDef) -> str:
    """The words of its notes and boxes, with … for what is computed."""
    calls = [
        n
        for n in ast.walk(function)
        if isinstance(n, ast.Call) and ast.unparse(n.func) in ("note", "misbelief")
    ]
    words = []
    for call in sorted(calls, key=lambda call: call.lineno):
        for text in call.args:
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            words += [str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts]
    return " ".join("".join(words).split())


def mentions(term: str, prose: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(term)}(?!\w)", prose, re.IGNORECASE) is not None


def test_the_glossary_is_short_and_has_each_term_once(rows: list[dict[str, str]]) -> None:
    terms = [row["term"].lower() for row in rows]
    assert 40 <= len(terms) <= 60
    assert len(set(terms)) == len(terms)
    assert terms == sorted(terms)


def test_the_section_that_a_term_names_defines_it(rows: list[dict[str, str]], sections: list[Told]) -> None:
    prose = {section.name: section.prose for section in sections}
    lost = [
        r["term"]
        for r in rows
        if not re.search(rf"\*{re.escape(r['term'])}\*", prose.get(r["section"], ""), re.IGNORECASE)
    ]
    assert lost == []


def test_no_term_stands_in_the_core_before_the_section_that_defines_it(
    rows: list[dict[str, str]], sections: list[Told]
) -> None:
    """Nor anywhere in the core where an aside defines it: a core section needs no later one and no aside."""
    core = [section for section in sections if not section.aside]
    names = [section.name for section in core]
    early = []
    for row in rows:
        first = next((section.name for section in core if mentions(row["term"], section.prose)), None)
        if first != (row["section"] if row["section"] in names else None):
            early.append(f"{row['term']}: in {first}, defined in {row['section']}")
    assert early == []
