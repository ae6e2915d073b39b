"""A stored picture -> what may stand in a page: inline SVG without anything that runs, loads or leaks.

Matplotlib's files repeat their ids, carry a style sheet that would style the whole page, and are black
on white; here ids become unique, and ink and paper follow the page's theme.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from copy import copy
from itertools import groupby

from litbook.html import elements
from litbook.html.elements import Drawing, Html
from litbook.values import drawings

ELEMENTS = frozenset(
    "svg g defs path use text tspan rect circle ellipse line polyline polygon clipPath image "
    "linearGradient radialGradient stop pattern mask symbol marker".split()
)
_LINK = "{http://www.w3.org/1999/xlink}href"
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_ATTRIBUTE = re.compile(r"[a-zA-Z][\w-]*")
# Of a style or an attribute: what would load something that is no picture in the file itself. CSS has more
# ways than `url(…)` to ask for a file, and a backslash spells each of them in still more.
ELSEWHERE = re.compile(
    r"url\((?!\s*[\"']?(?:#|data:image/(?:png|jpeg|gif|webp);))|\b(?:image|image-set|cross-fade|src)\s*\("
    r"|@import|expression|javascript:|\\",
    re.IGNORECASE,
)
_URL = re.compile(r"url\(\s*['\"]?#([\w.:-]+)['\"]?\s*\)")


class NotAPicture(ValueError):
    """The record's picture is not what an author's `figure` or `image` writes."""


def inline(svg: str, alt: str, prefix: str) -> Drawing:
    """The SVG as one line of HTML whose ids begin with `prefix`; `NotAPicture` if it is no SVG."""
    root = harmless(svg)
    box = [float(n) for n in re.findall(r"-?\d+\.?\d*", root.get("viewBox", ""))]
    sides = []  # in CSS pixels
    for i, name in enumerate(("width", "height")):
        match = re.fullmatch(r"(\d+\.?\d*)(px|pt|in)?", root.get(name, ""))
        scale = {"pt": 4 / 3, "in": 96.0}.get(match[2] or "", 1.0) if match else 1.0
        sides.append(float(match[1]) * scale if match else box[2 + i] if len(box) == 4 else 400.0)
    width, height = sides
    children = _elements(root, prefix)
    return drawings.svg(width, height, alt, *children, class_="lb-plot", box=root.get("viewBox"))


def harmless(svg: str, *others: str) -> ET.Element:
    """The tree of an SVG without what runs, or asks for something elsewhere; `NotAPicture` for anything else.

    Of its elements those are left that draw, and `others`.
    """
    if "<!ENTITY" in svg:
        raise NotAPicture("the SVG defines entities")
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise NotAPicture(f"the SVG is broken: {error}") from None
    if _name(root) != "svg":
        raise NotAPicture("this is not SVG")
    for element in [*root.iter()]:
        element[:] = [child for child in element if _name(child) in ELEMENTS.union(others)]
        for key, value in [*element.attrib.items()]:
            name = key.rpartition("}")[2].lower()
            leads = not re.match("#", value) and not _PICTURE.fullmatch(value)
            if name.startswith("on") or (leads if name == "href" else ELSEWHERE.search(value)):
                del element.attrib[key]
        if _name(element) == "style" and ELSEWHERE.search(element.text or ""):
            element.text = ""
    return root


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _elements(parent: ET.Element, prefix: str) -> Iterator[Html]:
    """What is in an element. The style of several texts in a row is said once, by a group around them."""

    def style_of_text(element: ET.Element) -> str:
        # If a group can say it: all that is written there is inherited, but for opacity.
        style = element.get("style", "") if _name(element) == "text" else ""
        return "" if re.search(r"(?<![\w-])opacity", style) else style

    for style, row in groupby(parent, key=style_of_text):
        elements = [*row]
        if not style or len(elements) == 1:
            yield from (_element(element, prefix) for element in elements)
            continue
        group = ET.Element("g", style=style)
        for element in elements:
            group.append(plain := copy(element))
            del plain.attrib["style"]
        yield _element(group, prefix)


def _element(element: ET.Element, prefix: str) -> Html:
    name, attributes = _name(element), dict[str, str]()
    for key, value in element.attrib.items():
        if key in (_LINK, "href"):
            attributes["href"] = f"#{prefix}{value[1:]}" if value.startswith("#") else value
        elif key == "id":
            attributes["id"] = prefix + value
        elif _ATTRIBUTE.fullmatch(key) and key != "class":
            unique = _URL.sub(lambda m: f"url(#{prefix}{m[1]})", value)
            # Pure black is ink and pure white is paper: both follow the theme.
            inked = re.sub(r"#000000\b|#000\b(?![0-9a-f])|\bblack\b", "currentColor", unique)
            attributes[key] = re.sub(r"#ffffff\b|#fff\b(?![0-9a-f])|\bwhite\b", "var(--lb-paper)", inked)
    if name not in ("text", "tspan"):
        inside = [*_elements(element, prefix)]
    else:
        inside = [elements.text(element.text or "")]
        for child in element:
            inside += [_element(child, prefix), elements.text(child.tail or "")]
    return elements.join([elements.opening(name, **attributes), *inside, elements.closing(name)])
