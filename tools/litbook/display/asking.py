"""What a value shows of itself by Jupyter's display protocol: a still picture, a formula, or HTML.

This module asks the methods that a class defines, on a clock, and hands out the first form that a page may
show, as it was given: who draws it makes it harmless. It does not know what becomes of a form.
"""

from __future__ import annotations

import base64
from typing import Any

from litbook.record.limits import SHOWN
from litbook.snapshot import snapshot
from litbook.snapshot.opaque_values import call_quietly
from litbook.snapshot.safe_types import static_attribute
from litbook.snapshot.snapshot import Form
from litbook.snapshot.timeout import Clock

SVG, PNG, LATEX, HTML = "image/svg+xml", "image/png", "text/latex", "text/html"
_METHODS = {
    "_repr_svg_": SVG,
    "_repr_png_": PNG,
    "_repr_latex_": LATEX,
    "_repr_mimebundle_": "",
    "_repr_html_": HTML,
}
SCRIPT = "needs a script: a page shows a still picture, SVG or PNG"


def form(value: Any, kind: type, clock: Clock) -> tuple[Form | None, str]:
    """The first form in which `value` shows itself; and where one was to be had and is not kept, why."""
    why = ""
    for name, media in _METHODS.items():
        method = static_attribute(kind, name)
        if method is None:
            continue

        def ask(value: Any, method: Any = method, media: str = media) -> Form | None:
            # All of it is foreign code: the method, and the texts of what it gives.
            shown = method.__get__(value, kind)()
            bundle = {media: shown} if media else shown[0] if isinstance(shown, tuple) else shown
            for media_type in (SVG, PNG, LATEX, HTML) if isinstance(bundle, dict) else ():
                if text := _text(media_type, dict.get(bundle, media_type)):
                    return media_type, text
            return None

        kept, missed = call_quietly(ask, value, clock, name)
        if kept is None or missed:
            why = why or missed
            continue
        size = len(kept[1].encode())
        if kept[0] == HTML and "<script" in kept[1].lower():
            why = why or f"{name} {SCRIPT}"
        elif size > SHOWN:
            why = why or f"{name} gave {size:,} bytes; up to {SHOWN:,} are kept"
        else:
            return kept, ""
    return None, why


def _text(media: str, shown: Any) -> str:
    """A form as text that UTF-8 can hold; "" for what is none. Jupyter allows a pair with its metadata."""
    shown = shown[0] if isinstance(shown, tuple) and shown else shown
    if media == PNG:
        raw = base64.b64decode(shown) if isinstance(shown, str) else shown
        is_png = isinstance(raw, bytes) and bytes.startswith(raw, b"\x89PNG\r\n\x1a\n")
        return base64.b64encode(raw).decode() if is_png else ""
    return str.__str__(shown).encode("utf-8", "backslashreplace").decode() if isinstance(shown, str) else ""


snapshot.FORMS.append(form)
