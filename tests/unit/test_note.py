"""A note is read once, into a tree: what stands in it, where it stands, and how long that may take."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import sampled

from litbook.markdown import grammar
from litbook.markdown.bibliography import BibliographyEntry
from litbook.markdown.nodes import (
    Box,
    Citation,
    DisplayMath,
    Fence,
    FoldBox,
    Heading,
    Hole,
    InlineCode,
    LabelReference,
    Link,
    List,
    Math,
    Name,
    Note,
    NoteNode,
    Paragraph,
    Quote,
    Table,
    TextNode,
    plain_text,
    walk,
)
from litbook.notebook.markdown import NotebookMarkdown


def place(note: Note, at: int) -> tuple[int, int]:
    """The line and column of an offset, both from 1."""
    return note.text.count("\n", 0, at) + 1, at - note.text.rfind("\n", 0, at)


def nodes(text: str, *kinds: type[NoteNode]) -> list[NoteNode]:
    """The nodes of these kinds in a note."""
    return [node for node in walk(grammar.read(text)) if isinstance(node, kinds)]


def words(text: str) -> str:
    """What a note says, without code, formulas and addresses."""
    return "".join(node.text for node in walk(grammar.read(text)) if isinstance(node, TextNode))


# ---------------------------------------------------------------------------- what was wrong in one of four grammars


def test_a_formula_over_a_line_end_is_one_formula_whatever_brackets_it_has() -> None:
    assert nodes("$f[x](y) <\n1$", Math, TextNode) == [Math(0, "f[x](y) <\n1")]


def test_a_code_span_that_holds_a_citation_is_code() -> None:
    assert nodes("`a\n[@fig:rate]` and `[@glu]`", InlineCode, Citation, LabelReference) == [
        InlineCode(1, "a [@fig:rate]"),
        InlineCode(21, "[@glu]"),
    ]


def test_indented_code_is_code() -> None:
    assert nodes("a\n\n    x < y [a](#b)\n", Fence, Link) == [Fence(7, "x < y [a](#b)")]


def test_a_link_may_have_its_address_below() -> None:
    (link,) = nodes("[text][1]\n\n[1]: https://x.org/a", Link)
    assert link == Link(1, (TextNode(1, "text"),), "https://x.org/a")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://x.org/a_(b)", "https://x.org/a_(b)"),
        ("see https://x.org/a_(b).", "https://x.org/a_(b)"),
        ("(see https://x.org/a)", "https://x.org/a"),
        ("(https://x.org/a_(b)), and", "https://x.org/a_(b)"),
        ("https://x.org/a_b_c, *x*", "https://x.org/a_b_c"),
        ("*https://x.org/a*", "https://x.org/a"),
    ],
)
def test_a_bare_address_keeps_its_own_brackets_and_none_of_the_sentence(text: str, address: str) -> None:
    (link,) = nodes(text, Link)
    assert isinstance(link, Link)
    assert (link.address, link.form) == (address, "bare")


def test_a_link_may_have_code_for_a_text() -> None:
    (link,) = nodes("[`16` bytes per parameter](#adam)", Link)
    assert isinstance(link, Link)
    assert (link.address, plain_text(link.children)) == ("#adam", "16 bytes per parameter")


# ---------------------------------------------------------------------------- what a note may hold


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a", Paragraph), ("# a", Heading), ("> a", Quote), ("- a", List), ("1. a", List),
        ("```python\na\n```", Fence), ("$$ a $$", DisplayMath), ("[@eq:a]: $$ a $$", DisplayMath), ("|a|\n|-|\n|b|", Table),
        ("!!! tip\n    a", Box), ("??? tip\n    a", FoldBox),
    ],
)  # fmt: skip
def test_a_block_is_read_as_what_it_is(text: str, kind: type[NoteNode]) -> None:
    note = grammar.read(f"before\n\n{text}\n\nafter")
    assert [type(it) for it in note.blocks] == [Paragraph, kind, Paragraph]
    assert note.refusals == ()
    assert place(note, note.blocks[1].at) == (3, 1)


def test_names_citations_and_references_are_told_apart() -> None:
    found = nodes("[@fig:a]: A [@fig:a] [@glu; @x.y] [@fig:a; @glu]", Name, LabelReference, Citation)
    assert found == [
        Name(0, "fig:a"),
        LabelReference(12, "fig:a"),
        Citation(21, ("glu", "x.y")),
        Citation(34, ("fig:a", "glu")),
    ]


def test_a_phrase_begins_no_list_and_no_heading() -> None:
    for text in ("# a *b*", "1. a *b*", "- a *b*", "> a *b*"):
        assert plain_text(grammar.phrase(text).line) == text.replace("*", "")


def test_prices_are_no_mathematics_and_html_is_text() -> None:
    assert words("It costs $5 and $6, a<b>c</b> &lt;").endswith("$5 and $6, a<b>c</b> <")


def test_a_hole_is_neither_text_nor_the_end_of_anything() -> None:
    assert nodes(f"a {grammar.HOLE}0 `b {grammar.HOLE}`", Hole, TextNode) == [
        TextNode(0, "a "), Hole(2), TextNode(3, "0 "),
    ]  # fmt: skip
    assert [type(it) for it in nodes("… a", Hole)] == []
    assert grammar.read("… a", hole="…").line[0] == Hole(0)


# ---------------------------------------------------------------------------- where it stands

ODD = ["-", "=", "[", "![", "*", "#", "> ", "$", "`", "_", "(", "<", "&amp;", "\\", "|", "|-", "~~~\n", "http://a[",
       "[a](", "[a][", "[@a;", "$$", "$$ x\n", "!!! note\n", "- ", "- \n", "- a\n", "    - a\n", "1. ", "# a\n",
       "> a\n", "*_", "??? a\n", '=== "a"\n', "[^a]", "[^a]: ", ": a\n", "[@tab:a]: ", "[@eq:a]: $$", "- [x] ",
       "==a", "\\(", ":::", "[[]", "a\n:  b\n", "|a|\n|-|\n", "[a]: b\n", "://", "\t", "\u202e", "\r", "😀"]  # fmt: skip
PARTS = st.lists(st.sampled_from([*ODD, " ", "\n", "\n\n", "    ", "a", "16", "]", ")", "**"]), max_size=40)


@given(PARTS.map("".join))
def test_text_stands_where_its_node_says(text: str) -> None:
    note = grammar.read(text)
    for node in walk(note):
        assert 0 <= node.at <= len(note.text)
        if (
            isinstance(node, TextNode) and "|" not in text
        ):  # in a table an escaped bar is shorter than it is written
            assert note.text.startswith(node.written or node.text, node.at)


def test_a_line_and_column_follow_from_an_offset() -> None:
    note = grammar.read("> a\n> b\n\n| x | y |\n|---|---|\n| y | 16 |\n\n## 2 16\n")
    places = {node.text: place(note, node.at) for node in walk(note) if isinstance(node, TextNode)}
    assert places == {"a": (1, 3), "b": (2, 3), "x": (4, 3), "y": (6, 3), "16": (6, 7), "2 16": (8, 4)}


# ---------------------------------------------------------------------------- how long it takes


@pytest.mark.parametrize("unit", sampled(ODD, 4))
def test_a_note_is_read_in_seconds_whatever_it_repeats(unit: str) -> None:
    for length, read in ((grammar.LONGEST, grammar.read), (100_000, grammar.read), (40_000, grammar.phrase)):
        text = (unit * length)[:length]
        before = time.process_time()
        read(text)
        took = time.process_time() - before
        assert took < 10, length  # half a second; minutes where each bracket reads the rest


def test_a_note_nested_too_deeply_or_too_long_is_one_paragraph_of_text() -> None:
    for text in ("> " * 500 + "x", "".join(f"{'    ' * i}- x\n" for i in range(9)), "*a* " * 5001):
        note = grammar.read(text)
        assert note.blocks == (Paragraph(0, (TextNode(0, note.text),)),)
        assert [it.code for it in note.refusals] == [
            "deep-note" if len(text) < grammar.LONGEST else "long-note"
        ]


def test_what_is_empty_is_an_empty_note() -> None:
    assert grammar.read(" \n ") == Note(" \n ", ())
    assert grammar.phrase("").line == ()


def test_no_field_of_a_work_is_html_in_a_notebook() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    works = {
        "a": BibliographyEntry("a", hostile, (f"{hostile} B.",), hostile, hostile, "https://example.org/")
    }
    prose = NotebookMarkdown(bibliography=works, headings={}, elsewhere={}, levels={}, numbers={})
    told = prose.note("As was said [@a].") + prose.reference("a")
    assert told.count("onerror") == 6 and "<" not in told
