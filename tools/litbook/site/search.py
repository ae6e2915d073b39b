"""The search's index, apart from the pages: what it holds is loaded when somebody searches.

In goes a built site with Material's index. That becomes a small file, which every page asks for and which
tells where the rest is, and the rest: a script, since a folder can have scripts loaded, too. Material's
window, results and worker stay as they are; `assets/search.js` stands before the worker, with the book's
synonyms, and forgives spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

WORKER = "assets/litbook/search.js"
IN_FOLDERS = "assets/litbook/folder.js"  # to run before Material's script, which looks for a `Worker`
_THEIRS = re.compile(r'("search": ?"[./]*)assets/javascripts/workers/search\.\w+\.min\.js"')

# What no search finds: code, values, drawings, answers, and words that every page has. To Material, one
# of these ends where anything of the same name inside it ends, so none of them may hold its like.
_CLASSES = (
    "lb-code|lb-shelf|lb-summary|lb-path|lb-asktitle|lb-onpaper|lb-nb-way|lb-eyebrow|lb-foot|lb-around|"
    "lb-references|lb-sayings|lb-part|lb-zoom|lb-open lb-answer|lb-ledger"
)
_QUIET = re.compile(
    rf'<(?:svg|pre|(?<=<details class="lb-aside"><)summary|\w+ class="(?:{_CLASSES})\b[^"]*")(?=[ >])'
)
_MARKS = re.compile(r"</?(?:code|pre|ul|ol|su[bp])>")


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
    docs = [it | {"text": _MARKS.sub("", it["text"])} for it in index["docs"]]
    large.write_text(f"self.__litbook = {_line(docs)}\n", encoding="utf-8")
    index["config"] |= {
        "worker": f"../javascripts/workers/{workers[-1].name}",  # from our own
        "index": "../../search/index.js",
        "synonyms": {key.lower(): words for key, words in synonyms.items()},
    }
    text = _line(index | {"docs": []})
    small.write_text(text, encoding="utf-8")
    # From a folder Material takes this script instead.
    small.with_suffix(".js").write_text(f"var __index = {text}\n", encoding="utf-8")


def _line(thing: object) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))
