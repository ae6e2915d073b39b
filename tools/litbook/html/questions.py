"""A question with its captured answer as one box: the question is there to read, the answer to open.

Opening needs no script. With one, `assets/answers.js` puts a field below a question whose answer can be
typed: it reads the answer from the box. On paper nothing can be opened, so answers stand at the page's end.
"""

from __future__ import annotations

import json
import math
import re

from msgspec import Struct

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _
from litbook.lecture.author_words import ASKED
from litbook.markdown import to_html
from litbook.markdown.links import NoteContext
from litbook.page.blocks import Answer, Question
from litbook.record.model import WITHIN, Number, Scalar, Section, Sequence, Snapshot, Tensor
from litbook.values import cards, formatting, units
from litbook.values.drawable import has_card

MOST = 8  # numbers of an answer that can be typed
TYPED = 40  # characters of a text that can


def box(
    question: Question,
    section: Section,
    setting: NoteContext,
    paper: list[Html],
    page: str = "",
    place: str = "",
) -> Html:
    """The box of one question; its answer says how it comes about, and which recording it is from, if any.

    The answer is added to those that stand at the page's end. One that never ran says why it has no answer.
    On another page than its own, `page` leads to that and `place` to its section there.
    """
    if question.missing:
        asked = to_html.passage(_(ASKED) + " " + question.text, setting)
        return tag("div", asked, tag("p", tag("small", question.missing)), class_="lb-ask", role="note")
    title: list[Html | str] = [_("Check yourself")]
    if place:
        title = [tag("a", to_html.inline(section.heading or section.name, setting), href=place)]
    parts = [to_html.passage(question.text, setting)]
    if question.hint:
        parts.append(_opening("hint", _("Hint"), to_html.passage(question.hint, setting)))
    attributes: dict[str, str | None] = {}
    if answer := question.answer:
        n = len(paper) + 1
        steps = (elements.join([tag("code", step), " = "]) for step in answer.working)
        small = [" ", tag("small", answer.stamp)] if answer.stamp else []
        reply = elements.join([*steps, tag("b", formatting.line(answer.value, answer.unit)), *small])
        why = to_html.passage(question.why, setting)
        # A tensor with more values than its line holds is drawn, too.
        drawn = elements.NOTHING
        if isinstance(answer.value, Tensor) and has_card(answer.value):
            drawn = tag("section", cards.tensor(_("answer"), answer.value), class_="lb-shelf")
        # Common wrong answers, each with its mistake: also for readers without a script.
        items = []
        for mistake, value in answer.wrong:
            exact = int(value) if value.is_integer() else value
            items.append(tag("li", tag("b", units.short(exact, answer.unit or "")), ": ", mistake))
        wrong = tag("ul", *items, class_="lb-mistakes") if items else elements.NOTHING
        parts.append(_opening("answer", _("Answer"), tag("p", reply, class_="lb-reply"), why, drawn, wrong))
        attributes = {"id": f"question-{n}", "data_page": page or None}
        if key := typed_answer(answer):  # what a script needs to judge what a reader types
            attributes["data_answer"] = json.dumps(key.values)
            if key.unit:
                attributes["data_unit"] = key.unit
            if key.within != WITHIN:
                attributes["data_within"] = f"{key.within:g}"
            if key.wrong:  # what each mistake is stands below the answer
                attributes["data_wrong"] = json.dumps([value for _mistake, value in key.wrong])
        title.append(tag("a", " · ", _("answer {n}", n=n), href=f"#answer-{n}", class_="lb-onpaper"))
        heading = tag("a", to_html.inline(section.heading, setting), href=f"#question-{n}")
        paper.append(tag("li", tag("p", heading, ": ", reply), why, id=f"answer-{n}"))
    name = _("Check yourself, line {n}", n=question.line)
    head = tag("p", *title, class_="lb-asktitle")
    return tag("div", head, *parts, class_="lb-ask", role="group", aria_label=name, **attributes)


class TypedAnswer(Struct, frozen=True):
    """What it takes to judge an answer that a reader types.

    `values` are its numbers or texts, `shown` the units that it is shown in, `wrong` the known mistakes.
    """

    values: list[float | str]
    unit: str
    within: float
    wrong: tuple[tuple[str, float], ...]
    shown: list[str]


def typed_answer(answer: Answer) -> TypedAnswer | None:
    """How the answer is judged; None where nobody types such an answer."""
    several: list[Snapshot | Number] = [answer.value]
    if isinstance(answer.value, Tensor) and (not answer.value.shape or formatting.is_short(answer.value)):
        several = [*answer.value.values]
    elif isinstance(answer.value, Sequence) and answer.value.length <= MOST:
        several = [*answer.value.items]
    values = [value for value in map(_json_answer, several) if value is not None]
    if not values or len(values) < len(several):
        return None
    unit = "" if answer.unit in (None, "%") else answer.unit or ""  # a share is a plain number
    shown = re.findall(r"[0-9] ([^\s0-9,\])]+)", formatting.line(answer.value, answer.unit))
    return TypedAnswer(values, unit, answer.within, answer.wrong, shown)


def answers(paper: list[Html]) -> Html:
    """The answers to the questions of a page, for its end on paper, where no box opens."""
    if not paper:
        return elements.NOTHING
    title = tag("p", _("Answers"), class_="lb-asktitle")
    return tag("div", title, tag("ol", *paper), class_="lb-onpaper lb-answers")


def _json_answer(part: Snapshot | Number) -> float | str | None:
    """A number as JSON holds it, or a short text as one types it; None for what nobody types."""
    if isinstance(part, Scalar) and len(part.text) <= TYPED and part.type != "NoneType":
        if part.number is None or isinstance(part.number, bool):
            return part.text.strip("'\"")
        part = part.number
    if not isinstance(part, int | float | str):
        return None
    try:
        number = float(part)
    except (ValueError, OverflowError):  # a complex one
        return None
    return (part if isinstance(part, int) else number) if math.isfinite(number) else None


def _opening(kind: str, title: str, *inside: Html) -> Html:
    head = tag("summary", title)
    return tag("details", head, *inside, class_=f"lb-open lb-{kind}")
