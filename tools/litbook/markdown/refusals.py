"""What a note may not hold: a row for each kind, with its code, its words and the way out.

In go the words that Markdown has left of a note, out come refusals of what they look like in another
Markdown, and would be printed as it stands. A kind without a pattern is what a rule of the grammar meets. No
page is known here, and no place in a file: `links.NoteContext.refuse` makes a `Finding` of each refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from litbook.markdown import nodes as tree


class RefusalKind(Struct, frozen=True):
    """What is refused, under its code; each `{}` of `what` and `way_out` stands for words of the note.

    `pattern` finds it in text; "" where a rule of the grammar does.
    """

    code: str
    what: str
    way_out: str
    pattern: str = ""


_OTHER = "\x02"  # in a run of text: what is no text, such as a formula
_WITHIN = "\x03"  # what begins a run behind code, a link, emphasis, and begins no line

_HTML = """a abbr audio b big blockquote br button canvas center code dd del details div dl dt em embed
    figcaption figure font form h[1-6] hr i iframe img input ins kbd label li link mark math object ol p pre s
    samp script section small source span strike strong style sub summary sup svg table tbody td textarea
    tfoot th thead tr u ul var video"""
_MARKED = (
    r"(?<![=\w])==(?=[^\s=]).{1,200}?(?<=[^\s=])==(?![=\w])",
    r"(?<![~\w])~~(?=[^\s~]).{1,200}?(?<=[^\s~])~~(?![~\w])",
    r"(?<!\^)\^\^(?=[^\s^]).{1,200}?(?<=[^\s^])\^\^",
    r"(?<![+\w])\+\+[a-z]+(?:\+[a-z]+)*\+\+(?!\+)",
)
_BLOCKS = (r"^:{3,} ?\S.*", r"^/{3} ?\S.*", r"^--8<--.*", r"^\[TOC\]", r"^\*\[[^\]]+\]:.*")

# Of those with a pattern the first that is found is refused first.
KINDS = tuple(
    RefusalKind(*row)
    for row in (
        ("long-note", "this note is longer than {} characters", "make it several notes"),
        ("deep-note", "this note is nested too deeply to be laid out", "make it several notes"),
        ("picture-in-note", "a note cannot hold a picture", "use image(path, alt=…) or figure(…)"),
        ("foreign-formula", "{} is no mathematics here", "write $…$, or $$…$$ on its own"),
        ("caption-without-table", "Table {} has a caption and no table", "put the caption above the table"),
        (
            "fence-words",
            "a fence takes the name of a language, nothing like {!r}",
            "leave it out; a drawing is a figure(…)",
        ),
        ("open-fence", "the fence {0} does not end", "close it with {1}"),
        (
            "uneven-table",
            "this is no table: {} has not as many columns as {}",
            "give each column of the head its |---| below it",
        ),
        (
            "uneven-row",
            "the row {0} has {1} cells under a head of {2}",
            "within a cell write \\| for |, in a formula \\mid; before a line that is no row leave one empty",
        ),
        (
            "empty-box",
            "the box {!r} is empty: nothing below it is indented",
            "indent its text by four spaces",
        ),
        (
            "html-in-note",
            "a note cannot hold HTML: {!r}",
            "write it in Markdown, or in backticks",
            rf"</?(?:{'|'.join(_HTML.split())})(?:\s[^<>]*)?/?>|<!--",
        ),
        (
            "footnote-in-note",
            "a note cannot hold a footnote: {!r}",
            "write it in brackets, or below in a fold, ??? note",
            r"\[\^[^\]\s]+\]",
        ),
        (
            "unreadable-box",
            "a note cannot hold a box that cannot be read: {!r}",
            'write !!! note "Title", and indent its text by four spaces',
            r"^(?:!!!|\?{3}\+?) ?[\w\"].*",
        ),
        (
            "tab-in-note",
            "a note cannot hold tabs: {!r}",
            'write a fold for each, ??? note "Title"',
            r"^={3}[+!]* *\".*",
        ),
        (
            "definition-in-note",
            "a note cannot hold a definition list: {!r}",
            "write a list: - **term**: what it means",
            r"^:\s{1,3}\S.*",
        ),
        (
            "task-in-note",
            "a note cannot hold a task: {!r}",
            "write the sign itself, ☐ or ☑",
            r"^\[[ xX]\](?:\s|$)",
        ),
        (
            "foreign-block",
            "a note cannot hold a block of another Markdown: {!r}",
            "use a box, !!! note, a table or a list",
            "|".join(_BLOCKS),
        ),
        (
            "attribute-in-note",
            "a note cannot hold an attribute: {!r}",
            "leave it out: notes have no styles and ids",
            r"\{:? ?[.#][A-Za-z][^{}]*\}",
        ),
        ("marked-text", "a note cannot hold marked text: {!r}", "use *…* or **…**", "|".join(_MARKED)),
        (
            "raised-text",
            "a note cannot hold a raised or lowered text: {!r}",
            "write it as mathematics, $x^2$",
            r"(?<=\w)(?:\^[^\s^]+\^|~[^\s~]+~)(?![\^~\w])",
        ),
        (
            "icon-in-note",
            "a note cannot hold an icon: {!r}",
            "write the character itself, such as ✓",
            r"(?<![\w:]):[a-z][a-z0-9_+-]+:(?![\w:`])",
        ),
        (
            "link-without-address",
            "a note cannot hold a link without an address: {!r}",
            "write [text](https://…)",
            r"(?:^|(?<=\s))\[[^\[\]]+\]\[[^\[\]]*\]",
        ),
        (
            "citation-with-place",
            "a note cannot hold a citation with a place: {!r}",
            "write [@key], and the place as words beside it",
            r"\[@[\w:./+-]+,[^\]]*\]",
        ),
        (
            "open-display",
            "a note cannot hold a formula that does not end: {!r}",
            "close it with $$, with no blank line inside",
            r"\$\$.*",
        ),
        (
            "open-formula",
            "a note cannot hold a formula that does not end: {!r}",
            "close it with $, before a blank line",
            r"(?<![$\w])\$(?![\s\d$])[^$\n]*\\[A-Za-z]{2}.*",
        ),
    )
)
_BY_CODE = {kind.code: kind for kind in KINDS}
_PATTERNS = [(kind.code, re.compile(kind.pattern, re.MULTILINE)) for kind in KINDS if kind.pattern]
_SIGN = re.compile(r"[<\[!?=:/{~^+$-]")  # no pattern is without one of these


def refusal(code: str, about: str = "", *words: str) -> tree.Refusal:
    """The refusal of this kind, said with `words`; the note's text says `about` where it is."""
    kind = _BY_CODE[code]
    return tree.Refusal(code, kind.what.format(*words), kind.way_out.format(*words), about)


def refuse(env: Any, code: str, about: str = "", *words: str) -> None:
    """Keep the same among what markdown-it hands from rule to rule."""
    env["refusals"].append(refusal(code, about, *words))


def refuse_words(env: Any, children: Iterable[tree.Inline]) -> None:
    """Keep what the text of inline nodes holds of another Markdown."""
    for run in _runs(children):
        for code, pattern in _PATTERNS if _SIGN.search(run) else ():
            if match := pattern.search(run):
                refuse(env, code, match[0], match[0].replace(_OTHER, "…")[:60])


def _runs(children: Iterable[tree.Inline], lead: str = "") -> Iterator[str]:
    """The text of inline nodes, in one piece up to code, a link or emphasis, and again behind it."""
    run = [lead]
    for node in children:
        match node:
            case tree.TextNode(text=text, written=written):
                # `\alpha` escapes nothing: it stays in the run.
                run.append(_OTHER if written and not written[1:].isalpha() else text)
            case tree.Break():
                run.append("\n")
            case tree.Hole():
                run.append("…")
            case tree.Math() | tree.Citation() | tree.LabelReference() | tree.Name():
                run.append(_OTHER)
            case tree.InlineCode() | tree.Link() | tree.Emphasis() | tree.Strong():
                yield "".join(run)
                run = [_WITHIN]
                if isinstance(node, tree.Emphasis | tree.Strong) or (
                    isinstance(node, tree.Link) and node.form == "text"
                ):
                    yield from _runs(node.children, _WITHIN)
    yield "".join(run)
