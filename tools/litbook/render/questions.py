"""A question with its captured answer as one box: the question is there to read, the answer to open.

Opening needs no script. On paper nothing can be opened, so the answer stands at the end of the box.
"""

from __future__ import annotations

from litbook.record.model import Piece, Snapshot, Tensor
from litbook.render import cards, markup, prose, values
from litbook.render.evidence import Evidence
from litbook.render.markup import Html, tag


def box(piece: Piece, evidence: Evidence, setting: prose.Setting) -> Html:
    """The box of one question, with the name of the recording that its answer is from, if it is from one."""
    parts = [
        tag("p", "Check yourself", class_="lb-asktitle"),
        prose.passage(piece.text, setting),
        *([_opening("Hint", prose.passage(piece.data, setting))] if piece.data else []),
    ]
    if piece.answer is not None:
        answer = evidence.snapshot(piece.answer)
        value = tag("b", values.line(answer, piece.unit))
        where = f"captured when line {piece.line} ran" + (f": {evidence.stamp}" if evidence.stamp else "")
        small = tag("small", where)
        reply = tag("p", value, " ", small, class_="lb-reply")
        parts += [
            _opening("Answer", reply, _card(answer)),
            tag("p", "Answer: ", value, class_="lb-onpaper", data_search_exclude=True),
        ]
    name = f"Check yourself, line {piece.line}"
    return tag("div", *parts, class_="lb-ask", role="group", aria_label=name)


def _opening(title: str, *inside: Html) -> Html:
    head = tag("summary", title)
    return tag("details", head, *inside, class_=f"lb-open lb-{title.lower()}")


def _card(answer: Snapshot) -> Html:
    """A tensor with more values than its line holds is drawn, too."""
    if not isinstance(answer, Tensor) or not cards.has_card(answer):
        return markup.NOTHING
    return tag("div", cards.tensor("answer", answer), class_="lb-shelf")
