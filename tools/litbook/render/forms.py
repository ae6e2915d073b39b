"""The form in which a value showed itself -> HTML that may stand in a page.

A form is whatever a library wrote, perhaps into a recording made elsewhere. Nothing of it runs, loads or
styles the page: pictures go the way of all pictures, LaTeX becomes MathML, HTML keeps its tables and text.
"""

from __future__ import annotations

from litbook.record.model import Opaque
from litbook.render import figures, markup, pictures, prose
from litbook.render.markup import Html, tag

_ELEMENTS = set(
    "table caption colgroup col thead tbody tfoot tr th td p div span br hr b i em strong small sub sup "
    "code pre ul ol li dl dt dd".split()
)
_CELL = {"colspan", "rowspan"}
_ATTRIBUTES = {"td": _CELL, "th": _CELL | {"scope"}}


def shown(name: str, it: Opaque, prefix: str, up: str) -> Html:
    """What the value of `name` showed of itself; its text, where that may not stand in a page.

    The ids of a drawing begin with `prefix`; from the page `up` leads to the folder of its lecture.
    """
    drawn = _drawn(name, it, prefix, up) or tag("pre", it.text)
    caption = tag("b", name), f" · {it.type.rpartition('.')[2]}"
    return tag("figure", tag("figcaption", *caption), " ", drawn, class_="lb-shown")


def _drawn(name: str, it: Opaque, prefix: str, up: str) -> Html:
    alt = f"{name}: {it.text or it.type}"
    try:
        match it.media:
            case "image/svg+xml":
                return figures.inline(it.form, alt, prefix)
            case "image/png":
                return pictures.picture(pictures.of_png(it.form), alt, up)
            case "text/latex":
                return prose.formula(it.form)
            case "text/html":
                return _table(it.form)
    except figures.NotAPicture:
        pass
    return markup.NOTHING


def _table(form: str) -> Html:
    """What is left of HTML when all that could run, load or style is gone."""
    import nh3  # few pages need it

    clean = nh3.clean(form, tags=_ELEMENTS, attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None)
    if not clean.strip():
        return markup.NOTHING
    whole = "".join({"\n": "&#10;", "\t": "&#9;"}.get(it) or markup.spell(it) for it in clean)
    whole = whole.replace("<table>", '<table class="lb-table">')
    # Harmless: nh3 has parsed and written it.
    return tag("div", Html(whole), class_="lb-scroll", tabindex="0")
