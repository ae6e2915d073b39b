"""Pictures in a record -> files beside the pages, each under a name that its content gives it.

The scripts of pictures are such files, too, and only those of the run that the site is built from. A picture
may come from a recording made elsewhere: its first bytes say what it is, and of SVG only what draws is
written, so that no file of a recording runs anything, also where it is opened by itself. This module does
not know where a picture stands on a page.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from litbook.explore.chart import place_label, slider_label
from litbook.html.elements import Html, tag
from litbook.html.safe_svg import NotAPicture, harmless, inline
from litbook.page.blocks import Figure, Image
from litbook.record.model import PICTURES, Live, Opaque, Record

FOLDER = "pictures"
_DATA = re.compile(r"data:image/[\w+.-]+;base64,")
ET.register_namespace("", "http://www.w3.org/2000/svg")  # else every name in a written file has a prefix


def draw_media(block: Figure | Image, prefix: str, up: str) -> Html:
    """A figure, whose ids begin with `prefix`, or a picture; `NotAPicture` for what is none."""
    match block:
        case Figure(_line, svg, alt):
            return inline(svg, alt, prefix)
        case Image(_line, data, alt, _caption, width):
            return picture(data, alt, up, width)


def picture(data: str, alt: str, up: str, width: int = 0) -> Html:
    """A picture that lies in `files`, for a page from which `up` leads to the folder of its lecture."""
    return tag("img", src=up + _file(data)[0], alt=alt, width=width or None, loading="lazy")


def files(records: Sequence[Record]) -> dict[str, bytes]:
    """Every picture of the records, by its place in the folder of its lecture; what is none is left out.

    The first is this build's own: a script in another one, which may come from anywhere, is not written.
    """
    own = (piece.live for record in records[:1] for section in record.sections for piece in section.pieces)
    kept = dict(script(live) for live in own if live is not None)
    for section in (section for record in records for section in record.sections):
        # What authors handed over, and in what values showed themselves.
        shown = (s for s in section.snapshots if isinstance(s, Opaque) and s.media == "image/png")
        embedded = [piece.data for piece in section.pieces if piece.kind == "image"]
        for data in embedded + [png_data_uri(value.form) for value in shown]:
            with contextlib.suppress(NotAPicture):
                name, content = _file(data)
                kept[name] = content
    return kept


def script(live: Live) -> tuple[str, bytes]:
    """Name and content of the file of an author's script, and behind it what the run gave to hold it to."""
    sliders = [
        {"name": slider.name, "called": slider_label(slider), "span": slider.span}
        if slider.span
        else {
            "name": slider.name,
            "called": slider_label(slider),
            "places": slider.places,
            "labels": [place_label(slider, i) for i in range(len(slider.places))],
        }
        for slider in live.sliders
    ]
    points = (
        f"[{json.dumps(at)},{text or 'null'}{',' + json.dumps(why) if why else ''}]"
        for at, text, why in live.points
    )
    run = f'{{"at":{json.dumps(live.at)},"sliders":{json.dumps(sliders)},"points":[{",".join(points)}]}}'
    content = f"{live.script}\n;window.litbookPicture.run = {run};\n".encode()
    return f"{FOLDER}/{hashlib.sha256(content).hexdigest()[:16]}.js", content


def png_data_uri(text: str) -> str:
    """A PNG in base64 as `picture` takes it."""
    return f"data:image/png;base64,{text}"


def _file(data: str) -> tuple[str, bytes]:
    """Name and content of a picture's file. `NotAPicture` for anything else."""
    match = _DATA.match(data)
    if match is None:
        raise NotAPicture("the picture is not embedded in the record")
    try:
        content = base64.b64decode(data[match.end() :])
    except binascii.Error:
        raise NotAPicture("the picture is damaged") from None
    kinds = (kind for kind, begins in PICTURES.items() if re.match(begins, content, re.DOTALL))
    if (kind := next(kinds, None)) is None:
        raise NotAPicture("it is no picture")
    if kind == "svg+xml":
        content = ET.tostring(
            harmless(content.decode("utf-8", "replace"), "style", "title", "desc", "filter")
        )
    return f"{FOLDER}/{hashlib.sha256(content).hexdigest()[:16]}.{kind.partition('+')[0]}", content
