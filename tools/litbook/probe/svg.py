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
_WRITTEN = ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter")  # of ticks: texts of the author's
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}  # points that follow each letter of a path


def svg(figure: Any) -> str:
    """The figure as one SVG element without a style sheet; its ids begin with a hash of the picture."""
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "litbook", "svg.id": None}):
        unsigned = {"Date": None, "Creator": None}
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", metadata=unsigned)
    return compact(file.getvalue())


def labels(figure: Any) -> list[str]:
    """All texts in a figure; not the numbers along its axes, but what somebody wrote in their place."""
    from matplotlib.axis import Axis
    from matplotlib.table import Cell
    from matplotlib.text import Text

    axes = [a for a in figure.findobj(Axis) if type(a.get_major_formatter()).__name__ not in _WRITTEN]
    ticks = (tick for axis in axes for tick in (*axis.majorTicks, *axis.minorTicks))
    numbers = {id(text) for tick in ticks for text in tick.findobj(Text)}
    texts = [*figure.findobj(Text), *(cell.get_text() for cell in figure.findobj(Cell))]
    return [text.get_text() for text in texts if id(text) not in numbers]


def compact(text: str) -> str:
    """Matplotlib's SVG in fewer words. Raises `xml.etree.ElementTree.ParseError` for what is no XML."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(text)
    _tidy(root, set(re.findall(r"#([\w.-]+)", text)))
    # The font and size that most texts have is taken from them, for the whole picture.
    common, texts = dict[str, str](), [one for one in root.iter() if _is_text(one) and one.get("style")]
    for name in ("font-family", "font-size"):
        styles = [one.attrib["style"].split(";") for one in texts]
        rules = [rule for style in styles for rule in style if rule.startswith(f"{name}:")]
        if rules:
            most = max(set(rules), key=lambda rule: (rules.count(rule), rule))
            common[name] = most.partition(":")[2]
            for one, style in zip(texts, styles, strict=True):
                one.attrib["style"] = ";".join(rule for rule in style if rule != most)
    for group in root.findall(f"{{{_SVG}}}g"):
        group.attrib = {**_JOINTS, **common, **group.attrib}
    # Ids, and what refers to them, are of this picture alone: several stand in one page.
    salt = format(crc32(ET.tostring(root)), "x")[:6]
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.attrib[key] = f"{salt}-{value}"
            elif key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
                element.attrib[key] = f"#{salt}-{value[1:]}"
            else:
                element.attrib[key] = value.replace("url(#", f"url(#{salt}-")
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")


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
    element[:] = [child for child in kept if not (child.tag == f"{{{_SVG}}}defs" and not len(child))]
    if not _is_text(element):
        element.text = None
    element.attrib = {
        key: _shorten(key, value) for key, value in element.attrib.items() if key != "id" or value in used
    }
    for name in ("style", "transform"):
        if not element.attrib.get(name, "-"):
            del element.attrib[name]


def _is_text(element: ET.Element) -> bool:
    return element.tag in (f"{{{_SVG}}}text", f"{{{_SVG}}}tspan")


def _shorten(key: str, value: str) -> str:
    if key == "d":
        return _path(value)
    if key in _COORDINATES:
        return _LONG.sub(lambda m: _hundredths(float(m[0])), _UNTURNED.sub("", value).strip())
    if key != "style":
        return value
    # Without spaces and what is said anyway; of a list of fonts the first, and the kind to fall back on.
    rules = []
    for rule in filter(None, map(str.strip, value.split(";"))):
        name, _, chosen = (part.strip() for part in rule.partition(":"))
        if _SPARED.get(name) == chosen:
            continue
        if name in ("font", "font-family") and chosen.count(",") > 1:
            fonts = chosen.split(",")
            chosen = f"{fonts[0]},{fonts[-1].strip()}"
        rules.append(f"{name}:{chosen}")
    return ";".join(rules)


def _path(value: str) -> str:
    """The same path in hundredths: points relative where that is shorter, `h` and `v` for straight lines.

    A path with letters that Matplotlib does not write is left as it is.
    """
    out: list[str] = []
    here, start, last = (0, 0), (0, 0), ""
    for letter, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", value):
        there = [round(float(n) * 100) for n in _NUMBER.findall(rest)]
        size = 2 * _POINTS.get(letter.upper(), -1)
        if (letter.islower() and letter != "z") or size < 0 or len(there) != size:
            return value
        points = list(zip(there[::2], there[1::2], strict=True))
        away = [n - h for point in points for n, h in zip(point, here, strict=True)]
        ways = [(letter.lower(), away), (letter, there)]
        if letter == "L" and not away[1]:
            ways = [("h", away[:1]), ("H", there[:1])]
        elif letter == "L" and not away[0]:
            ways = [("v", away[1:]), ("V", there[1:])]
        # Hundredths as numbers in a row; a minus needs no space before it.
        texts = [(way, " ".join(_hundredths(n / 100) for n in row).replace(" -", "-")) for way, row in ways]
        way, numbers = min(texts, key=lambda text: len(text[1]))
        if way != last or way in "mMz":
            out.append(way + numbers)
        else:
            out.append(numbers if numbers.startswith("-") else f" {numbers}")
        here, last = (points[-1] if points else start), way
        start = here if letter == "M" else start
    return "".join(out)


def _hundredths(number: float) -> str:
    text = f"{number:.2f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text) if text != "-0" else "0"
