"""The Content-Security-Policy of every page: it runs and loads what the site ships, and nothing else.

It stands in the page, so that it also holds on a host that sets no headers. A script in a page is allowed by
its hash, and only one that the theme's templates write: what anything else put there is not.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from litbook.html import markup

_SCRIPT = re.compile(r"<script(?: id=\"\w+\")?>(.*?)</script>", re.DOTALL)
_HOLE = re.compile(r"\{\{.*?\}\}")
_HEAD = re.compile(
    r"<head>(?:\s*<meta charset=[^<>]*>)?"
)  # a browser looks for the charset in the first kilobyte
_RULES = (
    "default-src 'none'",
    "script-src 'self'{}",
    "style-src 'self'",
    "style-src-attr 'unsafe-inline'",  # shades of cells, alignment of columns, Matplotlib's SVG
    "img-src 'self' data:",  # the theme's icons are data
    "font-src 'self'",
    "connect-src 'self'",  # the search's index, the player's steps
    "worker-src 'self'",  # the search
    "base-uri 'none'",
    "form-action 'none'",
)


def scripts(folders: Iterable[str]) -> re.Pattern[str]:
    """What the templates in the theme's folders write as scripts; holes take an address of this site."""
    files = sorted(file for folder in folders for file in Path(folder).rglob("*.html"))
    texts = {text for file in files for text in _SCRIPT.findall(file.read_text(encoding="utf-8"))}
    return re.compile("|".join(r"[\w./-]*".join(map(re.escape, _HOLE.split(text))) for text in sorted(texts)))


def guarded(page: str, ours: re.Pattern[str]) -> str:
    """The page with its policy, before anything that it could hold."""
    inline = sorted({text for text in _SCRIPT.findall(page) if ours.fullmatch(text)})
    hashes = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in inline
    )
    rules = "; ".join(_RULES).format(hashes)
    policy = markup.opening("meta", http_equiv="Content-Security-Policy", content=rules)
    return _HEAD.sub(lambda head: f"{head[0]}\n      {policy}", page, count=1)
