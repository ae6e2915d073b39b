"""A Matplotlib figure -> SVG for a record: the same bytes for the same figure, and few of them.

This module knows how Matplotlib writes SVG: every coordinate absolute and in six digits, every style spelled
out, a group for each artist, and a style sheet that would style the whole page. What it leaves out moves
nothing by more than a hundredth of a point. It does not know who asked, nor where the picture will stand.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from typing import Any
from zlib import crc32

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_GONE = {
    f"{{{_SVG}}}metadata",
    f"{{{_SVG}}}style",
}  # a date and an author; rules that would style the whole page
_JOINTS = {"stroke-linejoin": "round", "stroke-linecap": "butt"}  # which those rules said
_SPARED = {
    "opacity": "1",
    "fill-opacity": "1",
    "stroke-opacity": "1",
    "stroke-dashoffset": "0",
}  # what goes unsaid
_COORDINATES = {"x", "y", "x1", "y1", "x2", "y2", "width", "height", "points", "transform", "viewBox"}
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e[-+]?\d+)?")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_UNSEEN = re.compile(r"(?:^|;)\s*opacity:\s*0\s*(?:;|$)")
_UNTURNED = re.compile(r"rotate\(-?0 [-\d. ]+\)")
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}  # points that follow each letter of a path


def svg(figure: Any) -> str:
    """The figure as one SVG element without a style sheet; its ids begin with a hash of the picture."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "litbook", "svg.id": None}):
        unsigned = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", metadata=unsigned)
    return compact(file.getvalue())


def compact(text: str) -> str:
    """Matplotlib's SVG in fewer words. Raises `xml.etree.ElementTree.ParseError` for what is no XML."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(text)
    _tidy(root, set(re.findall(r"#([\w.-]+)", text)))
    for group in root.findall(f"{{{_SVG}}}g"):
        group.attrib = {**_JOINTS, **_common_font(root), **group.attrib}
    salt = format(crc32(ET.tostring(root)), "x")[:6]
    for element in root.iter():
        element.attrib = {key: _salted(key, value, salt) for key, value in element.attrib.items()}
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")


def _salted(key: str, value: str, salt: str) -> str:
    """Ids, and what refers to them, are of this picture alone: several stand in one page."""
    if key == "id":
        return f"{salt}-{value}"
    if key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
        return f"#{salt}-{value[1:]}"
    return value.replace("url(#", f"url(#{salt}-")


def _common_font(root: ET.Element) -> dict[str, str]:
    """The font and size that most texts have, taken from them, for the whole picture."""
    texts = [it for it in root.iter() if _is_text(it) and it.get("style")]
    found = {}
    for name in ("font-family", "font-size"):
        rules = [
            rule for it in texts for rule in it.attrib["style"].split(";") if rule.startswith(f"{name}:")
        ]
        if rules:
            most = max(set(rules), key=lambda rule: (rules.count(rule), rule))
            found[name] = most.partition(":")[2]
            for it in texts:
                it.attrib["style"] = ";".join(r for r in it.attrib["style"].split(";") if r != most)
    return found


def _tidy(element: ET.Element, used: set[str]) -> None:
    """Shorten an element and all within; `used` are the ids that something refers to."""
    kept: list[ET.Element] = []
    for child in element:
        if child.tag in _GONE or _UNSEEN.search(child.get("style", "")):
            continue
        _tidy(child, used)
        child.tail = child.tail if _is_text(element) else None
        bare = child.tag == f"{{{_SVG}}}g" and not child.attrib
        kept += list(child) if bare and element.tag != f"{{{_SVG}}}svg" else [child]
        if bare and element.tag == f"{{{_SVG}}}svg":
            continue
    element[:] = [it for it in kept if not (it.tag == f"{{{_SVG}}}defs" and not len(it))]
    if not _is_text(element):
        element.text = None
    element.attrib = {
        key: _shortened(key, value) for key, value in element.attrib.items() if key != "id" or value in used
    }
    for name in ("style", "transform"):
        if not element.attrib.get(name, "-"):
            del element.attrib[name]


def _is_text(element: ET.Element) -> bool:
    return element.tag in (f"{{{_SVG}}}text", f"{{{_SVG}}}tspan")


def _shortened(key: str, value: str) -> str:
    if key == "d":
        return _path(value)
    if key == "style":
        return _style(value)
    if key not in _COORDINATES:
        return value
    return _LONG.sub(lambda m: _hundredths(float(m[0])), _UNTURNED.sub("", value).strip())


def _style(value: str) -> str:
    """Without spaces and what is said anyway; of a list of fonts the first, and the kind to fall back on."""
    found = []
    for rule in filter(None, map(str.strip, value.split(";"))):
        name, _, said = (part.strip() for part in rule.partition(":"))
        if _SPARED.get(name) == said:
            continue
        if name in ("font", "font-family") and said.count(",") > 1:
            fonts = said.split(",")
            said = f"{fonts[0]},{fonts[-1].strip()}"
        found.append(f"{name}:{said}")
    return ";".join(found)


def _path(value: str) -> str:
    """The same path in hundredths: points relative where that is shorter, `h` and `v` for straight lines.

    A path with letters that Matplotlib does not write is left as it is.
    """
    out: list[str] = []
    here, start, last = (0, 0), (0, 0), ""
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", value):
        found = [round(float(n) * 100) for n in _NUMBER.findall(rest)]
        size = 2 * _POINTS.get(letter.upper(), -1)
        if (letter.islower() and letter != "z") or size < 0 or len(found) != size:
            return value
        points = list(zip(found[::2], found[1::2], strict=True))
        ways = [(way, _joined(numbers)) for way, numbers in _segments(letter.upper(), here, points)]
        way, numbers = min(ways, key=lambda it: len(it[1]))
        if way != last or way in "mMz":
            out.append(way + numbers)
        else:
            out.append(numbers if numbers.startswith("-") else f" {numbers}")
        here, last = (points[-1] if points else start), way
        start = here if letter == "M" else start
    return "".join(out)


def _segments(
    letter: str, here: tuple[int, int], points: list[tuple[int, int]]
) -> list[tuple[str, list[int]]]:
    """The ways to write a piece of a path that begins `here`."""
    if letter == "Z":
        return [("z", [])]
    there = [n for point in points for n in point]
    away = [n - h for point in points for n, h in zip(point, here, strict=True)]
    if letter == "L" and not away[1]:
        return [("h", away[:1]), ("H", there[:1])]
    if letter == "L" and not away[0]:
        return [("v", away[1:]), ("V", there[1:])]
    return [(letter.lower(), away), (letter, there)]


def _joined(numbers: list[int]) -> str:
    """Hundredths as numbers in a row; a minus needs no space before it."""
    return " ".join(_hundredths(n / 100) for n in numbers).replace(" -", "-")


def _hundredths(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text) if text != "-0" else "0"
