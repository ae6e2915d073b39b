"""What an author's word left in the record -> its block; and what the word says where it never ran."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from litbook.i18n import _
from litbook.lecture import answers
from litbook.lecture.author_words import ASKED
from litbook.markdown import grammar, nodes
from litbook.markdown.to_markdown import MarkdownWriter
from litbook.markdown.unexecuted import static_prose
from litbook.page import blocks
from litbook.page.view import SectionView
from litbook.record.model import Piece
from litbook.values.formatting import short

_NAME = re.compile(r"[^\W\d]\w*")
EXPRESSION = 120  # characters of an expression that an answer shows
PUT_IN = 30  # characters of a value that is put into one


def block(piece: Piece, answer: blocks.Answer | None = None) -> blocks.PieceBlock:
    """The block of one piece; `answer` is that of a question."""
    match piece.kind:
        case "note":
            return blocks.Prose(piece.line, piece.text)
        case "misbelief":
            return blocks.Misbelief(piece.line, piece.text, piece.data)
        case "question":
            return blocks.Question(piece.line, piece.text, piece.data, answer, piece.why)
        case "figure":
            return blocks.Figure(piece.line, piece.data, piece.alt, piece.text)
        case "explore":
            shown = piece.live or piece.grid
            assert shown is not None, "explore() hands one over"
            return blocks.Explore(piece.line, shown, piece.alt, piece.text, piece.data, piece.why)
        case "image":
            return blocks.Image(piece.line, piece.data, piece.alt, piece.text, piece.width)
        case "link":
            return blocks.LinkBlock(piece.line, piece.text, piece.data)
        case "output" | "stderr":
            return blocks.PrintedOutput((piece.line,), piece.text)
        case "speaker":
            return blocks.SpeakerNote(piece.line, piece.text)


def unrun_block(line: int, prose: str, why: str) -> blocks.PieceBlock:
    """What a piece that never ran says anyway; `why` it did not is why a question has no answer."""
    text = static_prose(prose)
    if text.startswith(ASKED):
        missing = _("{why}: the answer comes from the run.", why=why)
        return blocks.Question(line, text.removeprefix(ASKED).strip(), missing=missing)
    return blocks.Prose(line, text)


def answer(
    piece: Piece, evidence: SectionView, source: str, touched: Mapping[str, Sequence[int]]
) -> blocks.Answer | None:
    """The answer that the run gave to a question; `source` is the text of the call that asked.

    `touched` says for each name of the section which lines give it a value or may change it.
    """
    if piece.answer is None:
        return None
    # What the section has shown before the question goes into the working, as one would write it there;
    # not what a line since then, in sight or not, has made another.
    seen = [(v.line, v.text, v.value) for v in evidence.values if v.kind == "inspect"]
    seen += [(c.line, o.text, o.value) for c in evidence.claims for o in c.operands]
    values = {
        text: short(evidence.snapshot(at))
        for line, text, at in seen
        if at is not None and line <= piece.line
        and not any(line < n < piece.line for name in _NAME.findall(text) for n in touched.get(name, ()))
    }  # fmt: skip
    steps = answers.steps(source, {text: value for text, value in values.items() if 0 < len(value) <= PUT_IN})
    return blocks.Answer(
        evidence.snapshot(piece.answer),
        piece.unit,
        tuple(step for step in steps if len(step) <= EXPRESSION),
        evidence.stamp,
        piece.within,
        piece.wrong,
    )


def merge_links(pieces: Iterable[Piece]) -> list[Piece]:
    """A link on the line of a note stands in its paragraph, and what goes on behind: `note("…"), link(…)`."""
    result: list[Piece] = []
    for piece in pieces:
        above = result[-1] if result else replace(piece, kind="output")
        joins = piece.kind == "link" and not piece.data.startswith("cite:")
        goes_on = piece.kind == "note" and above.text.endswith(")") and re.match(r"[a-z,.;:(]", piece.text)
        alike = (above.line, above.step, above.kind) == (piece.line, piece.step, "note")
        if alike and "\n" not in above.text and (joins or goes_on):
            space = " " * (piece.text[:1] not in ",.;:")
            added = MarkdownWriter().markdown(link(piece.text, piece.data)) if joins else piece.text
            result[-1] = replace(above, text=above.text.rstrip() + space + added)
        else:
            result.append(piece)
    return result


def link(text: str, target: str) -> nodes.Note:
    """A link that stands alone, as a note: to an address, a work or a function of the lecture."""
    kind, _colon, name = target.partition(":")
    words = text or name
    if kind == "cite":
        line: tuple[nodes.Inline, ...] = (
            *grammar.phrase(text).line,
            nodes.TextNode(0, " "),
            nodes.Citation(0, (name,)),
        )
    else:
        as_written = re.sub(r"[\\`*_{}\[\]()<>#+.!-]", r"\\\g<0>", words)
        address = f"#{name}" if kind == "function" else target
        line = (nodes.Link(0, (nodes.TextNode(0, words, as_written),), address),)
    return nodes.Note(words, (nodes.Paragraph(0, line),))
