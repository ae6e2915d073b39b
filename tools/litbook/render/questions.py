"""A question with its captured answer as one box: the question is there to read, the answer to open.

Opening needs no script. With one, `assets/answers.js` puts a field below a question whose answer can be
typed: it reads the answer from the box. On paper nothing can be opened, so answers stand at the page's end.
"""

from __future__ import annotations

import json
import math

from litbook.record.model import WITHIN, Number, Piece, Scalar, Sequence, Snapshot, Tensor
from litbook.render import cards, markup, prose, values
from litbook.render.catalogue import _
from litbook.render.evidence import Evidence
from litbook.render.markup import Html, tag
from litbook.text import working

LONGEST = 120  # characters of an expression that an answer shows
SHORT = 30  # characters of a value that is put into one
MOST = 8  # numbers of an answer that can be typed
TYPED = 40  # characters of a text that can


def box(
    piece: Piece,
    evidence: Evidence,
    setting: prose.Setting,
    source: str = "",
    paper: list[Html] | None = None,
) -> Html:
    """The box of one question; its answer says how it comes about, and which recording it is from, if any.

    `source` is the text of the call that asked. The answer is added to those that stand at the page's end.
    """
    paper = [] if paper is None else paper
    title: list[Html | str] = [_("Check yourself")]
    parts = [
        prose.passage(piece.text, setting),
        *([_opening("hint", _("Hint"), prose.passage(piece.data, setting))] if piece.data else []),
    ]
    own: dict[str, str | None] = {}
    if piece.answer is not None:
        answer = evidence.snapshot(piece.answer)
        value = tag("b", values.line(answer, piece.unit))
        small = [" ", tag("small", evidence.stamp)] if evidence.stamp else []
        reply = markup.join([*_working(source, _names(piece, evidence)), value, *small])
        why = prose.passage(piece.why, setting)
        parts.append(_opening("answer", _("Answer"), tag("p", reply, class_="lb-reply"), why, _card(answer)))
        own = {"id": f"question-{len(paper) + 1}", **_typed(answer, piece)}
        at, heading = f"answer-{len(paper) + 1}", prose.inline(evidence.entry.heading, setting)
        title.append(tag("a", " · ", _("answer {n}", n=len(paper) + 1), href=f"#{at}", class_="lb-onpaper"))
        asked = tag("a", heading, href=f"#{own['id']}")
        paper.append(tag("li", tag("p", asked, ": ", reply), why, id=at))
    name = _("Check yourself, line {n}", n=piece.line)
    head = tag("p", *title, class_="lb-asktitle")
    return tag("div", head, *parts, class_="lb-ask", role="group", aria_label=name, **own)


def answers(paper: list[Html]) -> Html:
    """The answers to the questions of a page, for its end on paper, where no box opens."""
    if not paper:
        return markup.NOTHING
    title = tag("p", _("Answers"), class_="lb-asktitle")
    return tag("div", title, tag("ol", *paper), class_="lb-onpaper lb-answers")


def _typed(answer: Snapshot, piece: Piece) -> dict[str, str | None]:
    """What a script needs to judge what a reader types; nothing where there is no typing the answer."""
    parts = [*answer.items] if isinstance(answer, Sequence) and answer.length <= MOST else [answer]
    found: list[float | str | None]
    if isinstance(answer, Tensor) and (not answer.shape or values.is_short(answer)):
        found = [_number(it) for it in answer.values]
    else:
        found = [_part(it) for it in parts]
    if not found or None in found:
        return {}
    within = {} if piece.within == WITHIN else {"data_within": f"{piece.within:g}"}
    unit = {"data_unit": piece.unit} if piece.unit and piece.unit != "%" else {}  # a share is a plain number
    return {"data_answer": json.dumps(found), **unit, **within}


def _part(it: Snapshot) -> float | str | None:
    """A number, or a short text as one types it."""
    if not isinstance(it, Scalar) or len(it.text) > TYPED or it.type == "NoneType":
        return None
    return it.text.strip("'\"") if it.number is None or isinstance(it.number, bool) else _number(it.number)


def _number(value: Number) -> float | None:
    """A number as JSON holds it; None for one that nobody types."""
    try:
        found = float(value)
    except (ValueError, OverflowError):  # a complex one
        return None
    return (value if isinstance(value, int) else found) if math.isfinite(found) else None


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


def _opening(kind: str, title: str, *inside: Html) -> Html:
    head = tag("summary", title)
    return tag("details", head, *inside, class_=f"lb-open lb-{kind}")


def _card(answer: Snapshot) -> Html:
    """A tensor with more values than its line holds is drawn, too."""
    if not isinstance(answer, Tensor) or not cards.has_card(answer):
        return markup.NOTHING
    return tag("section", cards.tensor(_("answer"), answer), class_="lb-shelf")
