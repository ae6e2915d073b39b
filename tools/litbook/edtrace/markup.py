"""HTML in a text of edtrace's -> what a note has in its place; what a note has nothing for loses its tags.

In goes Markdown with HTML in it, as a course wrote it, out comes Markdown without. Nothing of it can run or
load: no tag and no attribute is kept. A tag that opens nothing, such as the token `<img>`, is text.
"""

from __future__ import annotations

import re

IMAGE = re.compile(r"<img\b[^<>]*\bsrc\s*=\s*[\"']?(?P<src>[^\s\"'<>]+)[^<>]*>", re.IGNORECASE)
# Code, formulas.
_KEPT = re.compile(r"(?ms)(^(?:```|~~~).*?^(?:```|~~~)|`+[^`]*`+|\$\$.*?\$\$|\$(?!\s)[^$\n]+(?<!\s)\$)")
_DROPPED = re.compile(r"(?is)<(script|style|iframe|object)\b.*?(</\1\s*>|\Z)|<!--.*?(-->|\Z)")
_ELEMENT = re.compile(
    r"<(?P<name>a|abbr|b|big|center|code|del|div|em|font|h[1-6]|i|ins|kbd|mark|p|s|samp|small|span|strong|"
    r"sub|sup|tt|u|var)\b(?P<attributes>[^<>]*)>(?P<inside>(?:(?!<(?P=name)\b).)*?)</(?P=name)\s*>",
    re.DOTALL | re.IGNORECASE,
)
_BREAK = re.compile(r"[ \t]*<br\s*/?>[ \t]*\n?", re.IGNORECASE)
_TAG = re.compile(r"(?<!\\)<(?=[/!]?[A-Za-z])(?!https?://)")
_MARKS = dict.fromkeys(("b", "strong"), "**") | dict.fromkeys(("i", "em", "var"), "*")
_MARKS |= dict.fromkeys(("code", "kbd", "samp", "tt"), "`")


def as_markdown(text: str) -> str:
    """The same text without HTML."""
    text = re.sub(r"\A:(?=\s)", r"\\:", text)  # a sentence that goes on behind a link, and no definition
    if "<" not in text:
        return text
    parts = _KEPT.split(text)
    for i in range(0, len(parts), 2):  # texts in which no code and no formula stands
        part, changed = _DROPPED.sub("", parts[i]), 1
        while changed:  # from the innermost outwards
            part, changed = _ELEMENT.subn(_element, part)
        # A row of a table is one line.
        part = re.sub(r"(?m)^[ \t]*\|.*$", lambda row: _BREAK.sub(" ", row[0]), part)
        part = _BREAK.sub("\\\\\n", part)
        parts[i] = _TAG.sub(r"\\<", part)
    return "".join(parts)


def _element(match: re.Match[str]) -> str:
    """One element without its tags, in the marks of a note where there are any."""
    name, inside = match["name"].lower(), match["inside"]
    words = inside.strip()
    before, after = inside[: len(inside) - len(inside.lstrip())], inside[len(inside.rstrip()) :]
    given = dict(re.findall(r"([\w-]+)\s*=\s*[\"']?([^\"'<>]+)", match["attributes"]))
    if not words or "\n\n" in words:
        return inside
    if mark := _MARKS.get(name, ""):
        return f"{before}{mark}{words}{mark}{after}"
    if name == "a" and "href" in given:
        return f"{before}[{words}]({given['href']}){after}"
    return inside
