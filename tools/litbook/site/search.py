"""The search's index, apart from the pages: what it holds is loaded when somebody searches.

In goes a built site with Material's index. That becomes a small file, which every page asks for and which
tells where the rest is, and the rest: a script, since a folder can have scripts loaded, too. Material's
window, results and worker stay as they are; `assets/search.js` stands before the worker, with the book's
synonyms, and forgives spelling.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

WORKER = "assets/litbook/search.js"
IN_FOLDERS = "assets/litbook/folder.js"  # to run before Material's script, which looks for a `Worker`
_THEIRS = re.compile(r'("search": ?"[./]*)assets/javascripts/workers/search\.\w+\.min\.js"')

# What no search finds: code, values, drawings, tables, questions, and words that every page has. To Material,
# one of these ends where anything of the same name inside it ends, so none of them may hold its like.
_CLASSES = (
    "lb-code|lb-shelf|lb-summary|lb-path|lb-asktitle|lb-onpaper|lb-nb-way|lb-eyebrow|lb-foot|lb-around|"
    "lb-references|lb-cited|lb-sayings|lb-runs|lb-all|lb-parts?|lb-zoom|lb-ask|lb-def|lb-elsewhere"
)
_QUIET = re.compile(
    r'<(?:svg|pre|table|details class="lb-(?:aside|waits)[^"]*"><summary|'
    rf'\w+ class="(?:{_CLASSES})\b[^"]*")(?=[ >])'
)
_MARKS = re.compile(r"</?(?:code|pre|ul|ol|su[bp])>|</(?:p|li)>")
_BREAKS = re.compile(r"(?:\s*<(?:p|li)>\s*)+")

# Of a built page: where a section begins, a row of code, what in one is no name, and the names in the rest:
# of what is called, of attributes, of arguments.
_SECTION = re.compile(r'<h[1-6][^<>]* id="([^"]*)"')
_ROW = re.compile(r'<code class="lb-c[^"]*">(.*?)</code>')
_NO_NAME = re.compile(r'<span class="(?:s|c|k|kc|m|nb)">.*?</span>')
_NAME = re.compile(r"(?<=\.)[A-Za-z_]\w{2,}|[A-Za-z_]\w{2,}(?=\(|=[^=\s])")
OFTEN = 4  # so many pages, the first ones, are found by a name that stands in no prose


def quiet(content: str) -> str:
    """A page's content that says what not to index; Material takes the marks away when it has read them."""
    return _QUIET.sub(r'\g<0> data-search-exclude="1"', content)


def ours(page: str) -> str:
    """A page that asks our worker."""
    return _THEIRS.sub(rf'\g<1>{WORKER}"', page)


def split(site: Path, synonyms: Mapping[str, str]) -> None:
    """Cut the built index in two; a site without a search, or with another theme's, stays as it is."""
    small, large = site / "search" / "search_index.json", site / "search" / "index.js"
    workers = sorted((site / "assets" / "javascripts" / "workers").glob("search.*.min.js"))
    if not small.is_file() or not workers:
        return
    index = json.loads(small.read_text(encoding="utf-8"))
    pages = _by_page(index["docs"])
    _name(site, pages)
    large.write_text(f"self.__litbook = {_line(list(pages.items()))}\n", encoding="utf-8")
    index["config"] |= {
        "worker": f"../javascripts/workers/{workers[-1].name}",  # from our own
        "index": "../../search/index.js",
        "synonyms": {key.lower(): words for key, words in synonyms.items()},
    }
    text = _line(index | {"docs": []})
    small.write_text(text, encoding="utf-8")
    # From a folder Material takes this script instead.
    small.with_suffix(".js").write_text(f"var __index = {text}\n", encoding="utf-8")


def _by_page(docs: Sequence[dict[str, Any]]) -> dict[str, list[list[Any]]]:
    """By page its sections, each as anchor, title, lines of text, names, and what else there is.

    Nothing stands twice. The names are still to come.
    """
    found: dict[str, list[list[Any]]] = {}
    for it in docs:
        page, mark, anchor = it["location"].partition("#")
        rest = {key: it[key] for key in it.keys() - {"location", "title", "text"}}
        text = _BREAKS.sub("\n", _MARKS.sub("", it["text"])).strip()
        found.setdefault(page, []).append([mark + anchor, it["title"], text, "", *([rest] if rest else [])])
    return found


def _name(site: Path, pages: Mapping[str, list[list[Any]]]) -> None:
    """Give each section the names that stand in its code, in no prose, and on its page not above it."""
    said = {
        word for its in pages.values() for own in its for word in re.findall(r"\w+", own[1] + " " + own[2])
    }
    often: Counter[str] = Counter()
    for page, its in pages.items():
        sections, at, told = {own[0]: own for own in its}, its[0], set[str]()
        place = site / unquote(page)
        built = place if page.endswith(".html") else place / "index.html"
        head, *rest = _SECTION.split(built.read_text(encoding="utf-8"))
        for anchor, text in [("", head), *zip(rest[::2], rest[1::2], strict=True)]:
            at = sections.get(f"#{anchor}", at)
            rows = (re.sub("<[^<>]*>", "", _NO_NAME.sub("''", row)) for row in _ROW.findall(text))
            names = dict.fromkeys(name for row in rows for name in _NAME.findall(row))
            own = [it for it in names if it not in said | told and often[it] < OFTEN]
            at[3] = " ".join([at[3], *own]).strip()
            told.update(own)
        for own in its:
            if own[3:] == [""]:
                own.pop()
        often.update(told)


def _line(thing: object) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))
