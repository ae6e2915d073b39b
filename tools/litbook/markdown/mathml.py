r"""LaTeX -> MathML on one line, or a `ValueError` that says what in it cannot be shown.

latex2mathml guesses where it does not know: an environment that it has never heard of loses its rows, `&` and
`\\` are printed. Here it is asked only what it knows, and its answer is held against a list.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import latex2mathml.converter

from litbook.html.elements import Html, tag

LONGEST = 2000
# MathML Core, as far as latex2mathml writes it; no links, no actions, no annotations.
ELEMENTS = frozenset(
    "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup "
    "msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd menclose".split()
)
ATTRIBUTES = frozenset(
    "xmlns display mathvariant stretchy fence form separator lspace rspace minsize maxsize accent "
    "accentunder linethickness scriptlevel displaystyle width height depth voffset columnalign columnspacing "
    "rowspacing rowlines columnlines frame movablelimits symmetric largeop notation mathcolor".split()
)
# What may stand behind \begin, and what latex2mathml calls it.
ENVIRONMENTS = {
    "aligned": "align*", "align": "align*", "align*": "align*", "split": "split", "cases": "cases",
    "dcases": "cases", "matrix": "matrix", "pmatrix": "pmatrix", "bmatrix": "bmatrix", "Bmatrix": "Bmatrix",
    "vmatrix": "vmatrix", "Vmatrix": "Vmatrix", "smallmatrix": "smallmatrix", "array": "array",
}  # fmt: skip
_ARITY = {"munderover": 3, "msubsup": 3} | dict.fromkeys("mfrac mroot msub msup munder mover".split(), 2)
_BELOW = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}  # in a formula of its own
_LIMITS = frozenset("max min lim sup inf".split())
_LARGE = frozenset("∑∏∐⋃⋂⋁⋀⨀⨁⨂⨆")  # what stands above and below them in a formula of its own
_TAG = re.compile(r"\\tag(\*?)\{([^{}]*)\}")


def mathml(source: str, display: str) -> tuple[Html, str]:
    r"""The formula, which is `block` or `inline`, and what its `\tag` says, `(3)`; "" without one."""
    if len(source) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST} characters")
    braces = re.sub(r"\\.", "", source, flags=re.DOTALL)  # without those that are shown, \{ and \}
    if (opened := braces.count("{")) != (closed := braces.count("}")):
        raise ValueError(f"it opens {opened} braces and closes {closed}")
    tags = [text if star else f"({text})" for star, text in _TAG.findall(source)]
    if tags and (len(tags) > 1 or display != "block"):
        raise ValueError(r"\tag numbers a formula between $$, and each has one")
    # The same in the words that latex2mathml knows.

    def environment(match: re.Match[str]) -> str:
        if match[2] not in ENVIRONMENTS:
            raise ValueError(f"the environment {match[2]!r} is unknown; known are {', '.join(ENVIRONMENTS)}")
        return f"{match[1]}{{{ENVIRONMENTS[match[2]]}}}"

    source = re.sub(r"(\\begin|\\end)\s*\{([^{}]*)\}", environment, _TAG.sub("", source))
    source = re.sub(r"\\\\\s*\[[\d.]+\s*[a-z]{2}\]", r"\\\\", source)  # space between rows: always the same
    bars = r"(?<!\\left)(?<!\\right)\\[lr]([vV])ert(?![A-Za-z])"  # as tall as a letter, not as their row
    source = re.sub(bars, lambda m: "|" if m[1] == "v" else r"\|", source)
    gap = re.compile(r"\\[,;: ]|~|\s")  # space in one, which latex2mathml would drop
    operator = r"(\\operatorname\*?)\s*\{([^{}]*)\}"
    source = re.sub(operator, lambda m: f"{m[1]}{{{gap.sub(chr(0x2009), m[2])}}}", source)
    made = latex2mathml.converter.convert(source, display=display)
    if "<mi>&</mi>" in made or 'linebreak="newline"' in made:
        raise ValueError(r"& and \\ stand between \begin{aligned} and \end{aligned}, or the like")
    root = ET.fromstring(made)
    _check(root)
    # Limits of a sum: a browser sets them above and below it where it stands free, else beside it. Within a
    # line they stand beside it, but for `\limits` and `\displaystyle`, which are the author's will.
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        if display == "inline" and name in _BELOW.values() and element[0].text in _LARGE:
            element[0].set("movablelimits", "false")
        if (element is root and display == "block") or element.get("displaystyle") == "true":
            for sub in element.iter():
                if sub.tag.rpartition("}")[2] in _BELOW and sub[0].text in _LARGE:
                    sub[0].set("movablelimits", "true")
    if display == "inline":
        del root.attrib["display"]  # as without it
    return _html(root), "".join(tags)


def _check(root: ET.Element) -> None:
    """ValueError for what is not shown, and for what latex2mathml guesses from half a formula."""
    if not "".join(root.itertext()).strip():
        raise ValueError("it shows nothing")
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        if len(element) != _ARITY.get(name, len(element)):
            raise ValueError("a brace or an argument is missing")
        if name not in ELEMENTS:
            raise ValueError(f"<{name}> is not shown")
        for key in element.attrib:
            if key not in ATTRIBUTES:
                raise ValueError(f"the attribute {key} is not shown")
        if element.text and "\\" in element.text and name != "mo":
            raise ValueError(f"{element.text} is unknown")


def _html(element: ET.Element) -> Html:
    name = element.tag.rpartition("}")[2]
    base = element[0] if name in _BELOW else element
    if name in _BELOW and (base.get("movablelimits") or base.text in _LIMITS):  # max, arg max: below it
        base.set("movablelimits", "true")
        name = _BELOW[name]
    return tag(name, element.text or "", *map(_html, element), **element.attrib)
