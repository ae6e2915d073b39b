r"""The text of a note -> its tree. Whatever the engine takes for Markdown is decided from here.

markdown-it-py reads CommonMark and tables; `blocks` and `inline` add what notes have besides: `$math$`,
`[@citations]` and names, boxes, folds, bare addresses. They need markdown-it-py
alone, which rich brings with it, so that a terminal reads notes as a page does on a machine that only
records.

HTML is text. What looks like another Markdown, and would be printed as it stands, `refusals` lists: it is a
refusal of the tree, with the way out. A note that is too long or nested too deeply is one paragraph of text.
No page is known here.
"""

from __future__ import annotations

import functools
from typing import Any, cast

from markdown_it import MarkdownIt

from litbook.markdown import blocks, inline
from litbook.markdown import nodes as tree
from litbook.markdown.escape import visible_characters
from litbook.markdown.refusals import refusal

# Degenerate notes take markdown-it-py quadratic time: within these bounds it is never long about one.
LONGEST = 20_000  # characters of a note
DEEPEST = blocks.DEEPEST
HOLE = "\ue000"  # a private character, which stands for what a run puts there


def read(text: str, hole: str = HOLE) -> tree.Note:
    """The tree of a note; each character `hole` in words is a `Hole`. Raises nothing, whatever the text."""
    return _read(text, hole, phrase=False)


def phrase(text: str) -> tree.Note:
    """The tree of a heading or caption: one paragraph, in which nothing begins a list, a heading, a table."""
    return _read(" ".join(text.split()), HOLE, phrase=True)


@functools.lru_cache(maxsize=8192)  # pages, notebooks and several checks read a lecture's texts
def _read(text: str, hole: str, phrase: bool) -> tree.Note:
    clean = "".join(visible_characters(text))
    refused = refusal("long-note", "", f"{LONGEST:,}")
    if len(clean) <= LONGEST:
        env: dict[str, Any] = {"refusals": []}
        tokens = _markdown().parseInline(clean, env) if phrase else _markdown().parse(clean, env)
        try:
            return blocks.BlockReader(clean, env, hole).note(tokens)
        except blocks.TooDeep:
            refused = refusal("deep-note")
    as_text = (tree.Paragraph(0, (tree.TextNode(0, clean),)),) if clean.strip() else ()
    return tree.Note(clean, as_text, refusals=(refused,))


@functools.cache
def _markdown() -> MarkdownIt:
    """CommonMark without HTML, with tables and our rules. Addresses stay as written: back ends judge them."""
    md = MarkdownIt("commonmark", {"maxNesting": 5 * blocks.DEEPEST}).enable("table")
    parser = inline.InlineParser()
    parser.ruler.enableOnly(md.inline.ruler.get_active_rules())
    md.inline, md.helpers = parser, cast(Any, inline.LinkHelpers)
    md.validateLink = bool  # type: ignore[assignment, method-assign]
    md.normalizeLink = md.normalizeLinkText = str  # type: ignore[assignment, method-assign]
    md.disable(["html_block", "html_inline"]).disable(["text_join", "fragments_join"], ignoreInvalid=True)
    blocks.use_rules(md.block.ruler)
    inline.use_rules(parser.ruler)
    return md
