"""Pictures in a record -> files beside the pages, each under a name that its content gives it.

A picture may come from a recording made elsewhere: its first bytes say what it is, and of SVG only what draws
is written, so that no file here runs anything, also where it is opened by itself. This module does not know
where a picture stands on a page.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

from litbook.record.model import PICTURES, Opaque, Record
from litbook.render.figures import ELEMENTS, NotAPicture, parsed
from litbook.render.markup import Html, tag

FOLDER = "pictures"
_DATA = re.compile(r"data:image/[\w+.-]+;base64,")
_DRAWS = ELEMENTS | {"style", "title", "desc", "filter", "symbol"}
_ELSEWHERE = re.compile(r"url\(\s*['\"]?(?!#|data:image/(png|jpeg|gif|webp);)|@import|javascript:|\\", re.I)
ET.register_namespace("", "http://www.w3.org/2000/svg")  # else every name in a written file has a prefix


def picture(data: str, alt: str, up: str, width: int = 0) -> Html:
    """A picture that lies in `files`, for a page from which `up` leads to the folder of its lecture."""
    return tag("img", src=up + _file(data)[0], alt=alt, width=width or None, loading="lazy")


def files(records: Sequence[Record]) -> dict[str, bytes]:
    """Every picture of the records, by its place in the folder of its lecture; what is none is left out."""
    return dict(filter(None, map(_kept, _every(records))))


def _every(records: Sequence[Record]) -> Iterator[str]:
    """The pictures that authors handed over, and those in which values showed themselves."""
    for section in (section for record in records for section in record.sections):
        yield from (it.data for it in section.pieces if it.kind == "image")
        shown = (it for it in section.snapshots if isinstance(it, Opaque) and it.media == "image/png")
        yield from (of_png(it.form) for it in shown)


def of_png(text: str) -> str:
    """A PNG in base64 as `picture` takes it."""
    return f"data:image/png;base64,{text}"


def _kept(data: str) -> tuple[str, bytes] | None:
    try:
        return _file(data)
    except NotAPicture:
        return None


def _file(data: str) -> tuple[str, bytes]:
    """Name and content of a picture's file. `NotAPicture` for anything else."""
    match = _DATA.match(data)
    if match is None:
        raise NotAPicture("the picture is not embedded in the record")
    try:
        content = base64.b64decode(data[match.end() :])
    except binascii.Error:
        raise NotAPicture("the picture is damaged") from None
    kind = next((it for it, begins in PICTURES.items() if re.match(begins, content, re.DOTALL)), None)
    if kind is None:
        raise NotAPicture("it is no picture")
    if kind == "svg+xml":
        content = _inert(content.decode("utf-8", "replace"))
    return f"{FOLDER}/{hashlib.sha256(content).hexdigest()[:16]}.{kind.partition('+')[0]}", content


def _inert(svg: str) -> bytes:
    """SVG without anything that runs, or asks for something elsewhere."""
    root = parsed(svg)
    for element in [*root.iter()]:
        for child in [*element]:
            if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] not in _DRAWS:
                element.remove(child)
        for name, value in [*element.attrib.items()]:
            local = name.rpartition("}")[2]
            leads = local == "href" and not re.match(r"#|data:image/(png|jpeg|gif|webp);", value)
            if leads or local.lower().startswith("on") or _ELSEWHERE.search(value):
                del element.attrib[name]
        if element.tag.rpartition("}")[2] == "style" and _ELSEWHERE.search(element.text or ""):
            element.text = ""
    return ET.tostring(root)
