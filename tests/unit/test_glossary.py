"""The glossary: few words, each defined by a section; none stands in the core's prose before its definition there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import needs

LECTURES = "lecture_02", "lecture_03", "lecture_04", "lecture_05"


@pytest.fixture(scope="module")
def rows(repo: Path) -> list[dict[str, str]]:
    """The rows of the glossary's table."""
    return needs.rows((repo / "docs" / "glossary.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sections(repo: Path) -> list[needs.Section]:
    """The sections of the lectures and the parts that lead into them, in the order of reading."""
    return [section for name in LECTURES for section in needs.sections(repo / "lectures" / name)]


def test_the_glossary_is_short_and_has_each_term_once(rows: list[dict[str, str]]) -> None:
    terms = [row["term"].lower() for row in rows]
    assert 40 <= len(terms) <= 70
    assert len(set(terms)) == len(terms)
    assert terms == sorted(terms)


def test_the_section_that_a_term_names_defines_it(
    rows: list[dict[str, str]], sections: list[needs.Section]
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
    rows: list[dict[str, str]], sections: list[needs.Section]
) -> None:
    """Nor anywhere in the core where an aside defines it: a core section needs no later one and no aside."""
    core = [section for section in sections if not section.aside]
    names = [section.name for section in core]
    early = []
    for row in rows:
        first = next((section.name for section in core if needs.mentions(row["term"], section.prose)), None)
        if first != (row["section"] if row["section"] in names else None):
            early.append(f"{row['term']}: in {first}, defined in {row['section']}")
    assert early == []


def test_a_part_needs_parts_before_it_alone_and_the_contents_draw_it(
    rows: list[dict[str, str]], sections: list[needs.Section]
) -> None:
    every = needs.needs(rows, sections)
    order = list(dict.fromkeys(section.part for section in sections if section.part))
    assert [p for p, of in every.items() if any(order.index(o) >= order.index(p) for o in of)] == []
    assert "batch" in every["the_bill_of_a_step"]["napkin_math"]
    drawing = needs.drawn("lecture_03", every, sections)
    own = {section.part for section in sections if section.lecture == "lecture_03" and section.part}
    arcs = sum(other in own for part in own for other in every[part])
    assert drawing.count("<path") == arcs > 2 and drawing.count("<circle") == len(own)
    assert '<a href="generating/">Generating</a> – ' in drawing and "an earlier lecture: " in drawing


def test_what_a_core_section_needs_is_found() -> None:
    row = {"term": "key", "section": "b", "sentence": "", "lecture": "l", "page": "p"}
    told = [
        needs.Section("l", part, name, name, words, aside)
        for part, name, words, aside in (
            ("one", "a", "no keyhole, no monkey", False),
            ("one", "b", "a *key*", False),
            ("two", "c", "keys: a Key.", False),
            ("three", "d", "the key", True),
        )
    ]
    assert needs.needs([row], told) == {"one": {}, "two": {"one": ["key"]}, "three": {}}
