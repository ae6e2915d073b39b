"""The search's index, apart from the pages: what it holds is loaded when somebody searches.

In go the passages of lectures, and a built site with Material's index of its other pages. That becomes a
small file, which every page asks for and which tells where the rest is, and the rest: a script,
since a folder can have scripts loaded, too. Material's window, results and worker stay as they are;
`assets/search.js` stands before the worker, with the book's synonyms, and forgives spelling.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litbook.markdown import grammar
from litbook.markdown import nodes as markdown_nodes
from litbook.page.search import SearchPassage

WORKER = "assets/litbook/search.js"
WHERE, INDEX = "search/search_index.json", "search/index.js"  # what every page asks for, and the index itself
IN_FOLDERS = "assets/litbook/folder.js"  # to run before Material's script, which looks for a `Worker`
_TERM = re.compile(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*<td>(.*?)</td>\s*</tr>", re.DOTALL)
_THEIRS = re.compile(r'("search": ?"[./]*)assets/javascripts/workers/search\.\w+\.min\.js"')

QUIET = ("pre", "svg", "table")  # elements of pages that are not ours and that no search finds
MARKS = ("code", "pre", "ul", "ol", "sub", "sup")  # what Material leaves in its text
CORE = 1.5  # so many times as much as elsewhere a word counts in a section of the main path
WAITS = 0.2  # and in one that has not run, which shows a promise alone
OFTEN = 4  # so many pages, the first ones, are found by a name that stands in no prose


def exclude_from_index(content: str) -> str:
    """An author's page that says what not to index; Material takes the marks away when it has read them."""
    for name in QUIET:
        for end in (" ", ">"):
            content = content.replace(f"<{name}{end}", f'<{name} data-search-exclude="1"{end}')
    return content


def use_own_worker(page: str) -> str:
    """A page that asks our worker."""
    return _THEIRS.sub(rf'\g<1>{WORKER}"', page)


def mark_terms(content: str, page: str) -> tuple[str, list[Term]]:
    """A glossary's page, each row of its table with an id, and these rows as the search answers with them.

    In a row are the word, its meaning, and where it is defined.
    """
    terms = list[Term]()

    def marked(row: re.Match[str]) -> str:
        word, meaning, place = (re.sub(r"<[^>]*>", "", cell).strip() for cell in row.groups())
        anchor = re.sub(r"[^\w-]+", "-", html.unescape(word).lower())
        terms.append([f"{page}#{anchor}", word, f"{meaning} {place}".strip()])
        return row[0].replace("<tr>", f'<tr id="{anchor}">', 1)

    return _TERM.sub(marked, content), terms


def split(
    site: Path,
    synonyms: Mapping[str, str],
    lectures: Mapping[str, Sequence[SearchPassage]],
    terms: Sequence[Term] = (),
) -> None:
    """Cut the built index in two; `lectures` has their passages, by the addresses of their pages.

    A query that names one of the `terms` of the glossary is answered with that first.
    A site without a search, or with another theme's, stays as it is.
    """
    small, large = site / WHERE, site / INDEX
    workers = sorted((site / "assets" / "javascripts" / "workers").glob("search.*.min.js"))
    if not small.is_file() or not workers:
        return
    index = json.loads(small.read_text(encoding="utf-8"))
    # By page what Material has indexed, without the marks that each of its lines would repeat.
    pages: dict[str, list[IndexEntry]] = {}
    for doc in index["docs"]:
        page, mark, anchor = doc["location"].partition("#")
        rest = {key: doc[key] for key in doc.keys() - {"location", "title", "text"}}
        content = doc["text"]
        for name in MARKS:
            content = content.replace(f"<{name}>", "").replace(f"</{name}>", "")
        for name in ("p", "li"):
            content = content.replace(f"<{name}>", "\n").replace(f"</{name}>", "")
        lines = "\n".join(filter(None, map(str.strip, content.split("\n"))))
        entry = [mark + anchor, doc["title"], lines, *(["", rest] if rest else [])]
        pages.setdefault(page, []).append(entry)
    # Lectures' pages. A passage has the names that stand in its code, in no prose, and not above it.
    texts = [content for passages in lectures.values() for p in passages for content in (p.title, *p.words)]
    words = {*re.findall(r"\w+", " ".join(texts))}
    often: Counter[str] = Counter()
    for page, passages in lectures.items():
        above = set[str]()
        for passage in passages:
            names = [name for name in passage.names if name not in words | above and often[name] < OFTEN]
            above.update(passage.names)
            anchor, content = passage.anchor and f"#{passage.anchor}", "\n".join(passage.words)
            # The title as results show it: its code as code.
            nodes = grammar.phrase(passage.title).line
            parts = [(node, html.escape(markdown_nodes.plain_text([node]), quote=False)) for node in nodes]
            title = "".join(
                f"<code>{t}</code>" if isinstance(n, markdown_nodes.InlineCode) else t for n, t in parts
            )
            entry = [anchor, title, html.escape(content, quote=False)]
            boost = {"boost": CORE} if passage.core else {"boost": WAITS} if passage.waits else {}
            more = [" ".join(names), boost] if boost else [" ".join(names)] if names else []
            pages.setdefault(page, []).append([*entry, *more])
        often.update(above)
    whole = {"__litbook": list(pages.items()), "__litbookTerms": terms}
    large.write_text("".join(f"self.{n} = {_line(it)}\n" for n, it in whole.items()), encoding="utf-8")
    index["config"] |= {
        "worker": f"../javascripts/workers/{workers[-1].name}",  # from our own
        "index": f"../../{INDEX}",
        "synonyms": {key.lower(): words for key, words in synonyms.items()},
    }
    text = _line(index | {"docs": []})
    small.write_text(text, encoding="utf-8")
    # From a folder Material takes this script instead.
    small.with_suffix(".js").write_text(f"var __index = {text}\n", encoding="utf-8")


Term = list[str]
"""A word of the glossary: where its row is, the word, and what it means, as HTML."""

IndexEntry = list[Any]
"""A passage in the index: its anchor with `#`, title and lines of text as HTML, names, what else there is."""


def _line(thing: object) -> str:
    return json.dumps(thing, ensure_ascii=False, separators=(",", ":"))
