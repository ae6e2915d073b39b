"""A note written again as plain Markdown: what the author wrote stays, what only pages know becomes common."""

from __future__ import annotations

import pytest

from litbook.markdown import grammar
from litbook.markdown.bibliography import BibliographyEntry
from litbook.markdown.to_markdown import MarkdownWriter
from litbook.notebook.markdown import NotebookMarkdown

WORKS = {
    "glu": BibliographyEntry("glu", "Gated", ("N. Shazeer",), "2020", url="https://x.org/glu"),
    "old": BibliographyEntry("old", "Old"),
}


def plain(text: str) -> str:
    """The note for a terminal."""
    return MarkdownWriter().markdown(grammar.read(text))


def noted(text: str) -> str:
    """The note in a notebook that has the section `here`, beside one that has `there`."""
    known, elsewhere = {"here": "Here, `x_1` and *all*"}, {"there": "Another *part*"}
    return NotebookMarkdown(WORKS, known, elsewhere, {7: 3}, {"fig:rate": 2, "eq:loss": 1}).note(text, 7)


@pytest.mark.parametrize(
    "text",
    [
        "A *b* _c_ **d** __e__ `f` ``g`h`` $i_1$ $$j$$ k",
        "one\ntwo\n\nthree",
        "- a\n- b\n  - c\n\n    d\n- e",
        "1. a\n2. b\n\n* c\n* d",
        "3) a\n4) b",
        "> a\n>\n> b",
        "| a | b |\n|---|--:|\n| `x` | 2 |\n| | y |",
        "```python\nx = [a](#b) < 1\n```",
        "````\n```\n````",
        "$$\nx < y\n$$",
        "[a](https://x.org/b_(c)) <https://x.org> https://x.org/b_(c).",
        '[a](https://x.org "title")',
        "\\*not emphasis\\* and \\[no link\\](x) &amp; &lt;",
        "# Head *it*\n\n---\n\ntext",
        "a  \nb",
        "[@glu; @old] and [a](#b)",
    ],
)
def test_what_every_reader_knows_stays_as_it_was_written(text: str) -> None:
    again = plain(text)
    assert again == text
    assert plain(again) == again


@pytest.mark.parametrize(
    ("text", "common"),
    [
        ('!!! tip "Mind"\n    a\n\n    b', "> **Mind**\n>\n> a\n>\n> b"),
        ("??? note\n    - a", "> **Note**\n>\n> - a"),
        ("[@tab:t]: Words.\n\n|a|\n|-|\n|b|", "**Table t.** Words.\n\n| a |\n|---|\n| b |"),
        ("[@eq:e]: $$ x $$\n\nsee [@eq:e]", "**Equation e.**\n\n$$ x $$\n\nsee Equation e"),
        ("a\n\n    x < y [a](#b)", "a\n\n```\nx < y [a](#b)\n```"),
    ],
)
def test_what_only_pages_know_becomes_what_every_reader_knows(text: str, common: str) -> None:
    assert plain(text) == common
    assert plain(common) == common


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$f[x](y) <\n1$", "$f[x](y) <\n1$"),  # lost its brackets
        ("    x < y [a](#b)", "```\nx < y [a](#b)\n```"),  # was altered
        ("[text][1]\n\n[1]: https://x.org/a", "[text](https://x.org/a)"),  # was text
        ("`a [@glu] [@fig:rate]`", "`a [@glu] [@fig:rate]`"),  # was rewritten
        ("[`16` bytes](#nowhere)", "`16` bytes"),  # led nowhere
        ("[`16` bytes](#here)", "[`16` bytes](#Here,-x_1-and-all)"),
        ("[b](#there)", "b (in the part “Another &#42;part&#42;”)"),
        ("[b](javascript:alert) ![c](https://x.org)", "b [c](https://x.org)"),
        ("a <b> c", "a &lt;b> c"),
        ("[@glu; @old; @no]", "([N. Shazeer 2020](https://x.org/glu); Old; @no?)"),
        ("[@fig:rate] and [@fig:no]", "Figure 2 and Figure no"),
        ("# Head", "#### Head"),
    ],
)  # fmt: skip
def test_a_notebook_says_where_things_are_and_holds_no_html(text: str, said: str) -> None:
    assert noted(text) == said
