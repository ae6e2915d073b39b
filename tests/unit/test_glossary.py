"""The glossary: few words, each defined by a section; none stands in the core's prose before its definition there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import glossary

LECTURES = "lecture_02", "lecture_03", "lecture_04", "lecture_05"


@pytest.fixture(scope="module")
def rows(repo: Path) -> list[dict[str, str]]:
    """The rows of the glossary's table."""
    return glossary.rows((repo / "docs" / "glossary.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sections(repo: Path) -> list[glossary.Section]:
    """The sections of the lectures and the parts that lead into them, in the order of reading."""
    return [section for name in LECTURES for section in glossary.sections(repo / "lectures" / name)]


def test_the_glossary_is_short_and_has_each_term_once(rows: list[dict[str, str]]) -> None:
    terms = [row["term"].lower() for row in rows]
    assert 40 <= len(terms) <= 70
    assert len(set(terms)) == len(terms)
    assert terms == sorted(terms)


def test_the_section_that_a_term_names_defines_it(
    rows: list[dict[str, str]], sections: list[glossary.Section]
) -> None:
    prose = {section.name: section.prose for section in sections}
    titles = {section.name: section.title for section in sections}
    assert [r["title"] for r in rows if r["title"].replace("`", "") != titles[r["section"]]] == []
    lost = [
        r["term"]
        for r in rows
        if not re.search(rf"\*{re.escape(r['term'])}\*", prose.get(r["section"], ""), re.IGNORECASE)
    ]
    assert lost == []


def test_no_term_stands_in_the_core_before_the_section_that_defines_it(
    rows: list[dict[str, str]], sections: list[glossary.Section]
) -> None:
    """Nor anywhere in the core where an aside defines it: a core section needs no later one and no aside."""
    core = [section for section in sections if not section.aside]
    names = [section.name for section in core]
    early = []
    for row in rows:
        first = next(
            (section.name for section in core if glossary.mentions(row["term"], section.prose)), None
        )
        if first != (row["section"] if row["section"] in names else None):
            early.append(f"{row['term']}: in {first}, defined in {row['section']}")
    assert early == []
