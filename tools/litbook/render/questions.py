"""A question with its captured answer as one box: the question is there to read, the answer to open.

Opening needs no script. On paper nothing can be opened, so the answer stands at the end of the box.
"""

from __future__ import annotations

from litbook.record.model import Piece, Snapshot, Tensor
from litbook.render import cards, markup, prose, values
from litbook.render.evidence import Evidence
from litbook.render.markup import Html, tag
from litbook.text import working

LONGEST = 120  # characters of an expression that an answer shows
SHORT = 30  # characters of a value that is put into one


def box(piece: Piece, evidence: Evidence, setting: prose.Setting, source: str = "") -> Html:
    """The box of one question; its answer says how it comes about, and which recording it is from, if any.

    `source` is the text of the call that asked.
    """
    parts = [
        tag("p", "Check yourself", class_="lb-asktitle"),
        prose.passage(piece.text, setting),
        *([_opening("Hint", prose.passage(piece.data, setting))] if piece.data else []),
    ]
    if piece.answer is not None:
        answer = evidence.snapshot(piece.answer)
        value = tag("b", values.line(answer, piece.unit))
        small = [" ", tag("small", evidence.stamp)] if evidence.stamp else []
        reply = tag("p", *_working(source, _names(piece, evidence)), value, *small, class_="lb-reply")
        parts += [
            _opening("Answer", reply, _card(answer)),
            tag("p", "Answer: ", value, class_="lb-onpaper"),
        ]
    name = f"Check yourself, line {piece.line}"
    return tag("div", *parts, class_="lb-ask", role="group", aria_label=name)


def _working(source: str, names: dict[str, str]) -> list[Html]:
    """The expression of the source, and the same with its values put in, each before a `=`."""
    steps = working.steps(source, names)
    return [markup.join([tag("code", it), " = "]) for it in steps if len(it) <= LONGEST]


def _names(piece: Piece, evidence: Evidence) -> dict[str, str]:
    """What the section has shown before the question, as it is put into the working."""
    seen = [(v.text, v.value) for v in evidence.values if v.line <= piece.line and v.kind == "inspect"]
    seen += [(o.text, o.value) for c in evidence.claims if c.line <= piece.line for o in c.operands]
    found = {text: evidence.snapshot(at) for text, at in seen if at is not None}
    return {text: line for text, it in found.items() if 0 < len(line := values.short(it)) <= SHORT}


def _opening(title: str, *inside: Html) -> Html:
    head = tag("summary", title)
    return tag("details", head, *inside, class_=f"lb-open lb-{title.lower()}")


def _card(answer: Snapshot) -> Html:
    """A tensor with more values than its line holds is drawn, too."""
    if not isinstance(answer, Tensor) or not cards.has_card(answer):
        return markup.NOTHING
    return tag("section", cards.tensor("answer", answer), class_="lb-shelf")
