"""The form in which a value showed itself -> HTML that may stand in a page, where something here draws it.

A form is whatever a library wrote, perhaps into a recording made elsewhere. What is in `DRAW` makes it
harmless; without that the value's text stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable

from litbook.record.model import Opaque
from litbook.render import markup
from litbook.render.markup import Html, tag

# MIME type -> what draws a form of it, given its alternative text, a prefix for ids, and the way to the
# folder of the lecture. What it returns is empty where the form may not stand in a page.
DRAW: dict[str, Callable[[str, str, str, str], Html]] = {}


def shown(name: str, it: Opaque, prefix: str, up: str) -> Html:
    """What the value of `name` showed of itself; its text, where that may not stand in a page.

    The ids of a drawing begin with `prefix`; from the page `up` leads to the folder of its lecture.
    """
    draw = DRAW.get(it.media)
    drawing = draw(it.form, f"{name}: {it.text or it.type}", prefix, up) if draw else markup.NOTHING
    caption = tag("b", name), f" · {it.type.rpartition('.')[2]}"
    return tag("figure", tag("figcaption", *caption), " ", drawing or tag("pre", it.text), class_="lb-shown")
