"""The form in which a value showed itself -> HTML that may stand in a page.

Nothing of it runs, loads or styles the page: pictures go the way of all pictures, LaTeX becomes MathML, HTML
keeps its tables and text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from litbook.html import elements, media, safe_svg
from litbook.html.elements import Html, tag
from litbook.markdown import to_html
from litbook.markdown.escape import spell
from litbook.values import cards

_ELEMENTS = set(
    "table caption colgroup col thead tbody tfoot tr th td p div span br hr b i em strong small sub sup "
    "code pre ul ol li dl dt dd".split()
)
_CELL = {"colspan", "rowspan"}
_ATTRIBUTES = {"td": _CELL, "th": _CELL | {"scope"}}


def picture(draw: Callable[[str, str, str, str], Html], form: str, alt: str, prefix: str, up: str) -> Html:
    """What `draw` makes of a form; nothing where the form is no picture that a page may show."""
    try:
        return draw(form, alt, prefix, up)
    except safe_svg.NotAPicture:
        return elements.NOTHING


def table(form: str, *_: str) -> Html:
    """What is left of HTML when all that could run, load or style is gone."""
    import nh3  # few pages need it

    clean = nh3.clean(form, tags=_ELEMENTS, attributes=_ATTRIBUTES, url_schemes=set(), link_rel=None)
    if not clean.strip():
        return elements.NOTHING
    whole = "".join({"\n": "&#10;", "\t": "&#9;"}.get(sign) or spell(sign) for sign in clean)
    whole = whole.replace("<table>", '<table class="lb-table">')
    # Harmless: nh3 has parsed and written it.
    return tag("div", Html(whole), class_="lb-scroll", tabindex="0")


cards.DRAW |= {
    "image/svg+xml": partial(picture, lambda form, alt, prefix, _: safe_svg.inline(form, alt, prefix)),
    "image/png": partial(picture, lambda form, alt, _, up: media.picture(media.png_data_uri(form), alt, up)),
    "text/latex": lambda form, *_: to_html.formula(form),
    "text/html": table,
}
