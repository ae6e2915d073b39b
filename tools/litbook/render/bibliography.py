"""`references.bib` -> entries -> formatted references.

BibTeX is read by bibtexparser; what it says is text from elsewhere and is escaped on its way out.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from bibtexparser.entrypoint import parse_string

from litbook.errors import LitbookError
from litbook.render import markup
from litbook.render.catalogue import _
from litbook.render.markup import Html, tag


class BibliographyError(LitbookError):
    """The bibliography cannot be used, or a citation names nothing in it."""

    slug = "bibliography"


@dataclass(frozen=True)
class Entry:
    """One work: what a reader needs to find it. `url` is an http(s) address or empty."""

    key: str
    title: str
    authors: tuple[str, ...] = ()
    year: str = ""
    venue: str = ""
    url: str = ""


Bibliography = Mapping[str, Entry]


def read(path: Path) -> dict[str, Entry]:
    """The entries of the file `path` by key. `BibliographyError` names the file and what is wrong with it."""
    shown = "/".join(path.parts[-2:])  # lectures/references.bib, wherever the project lies
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BibliographyError(f"{shown} does not exist\n    [@key] cites an entry of this file") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BibliographyError(f"{shown} cannot be read: {why}") from None
    return parse(text, shown)


def parse(text: str, where: str = "references.bib") -> dict[str, Entry]:
    """The entries of BibTeX `text` by key; errors as for `read`."""
    _refuse_duplicates(text, where)
    found = _fields(text, where)
    return {key: _entry(key, fields, where) for key, fields in found.items()}


def find(bibliography: Bibliography, key: str) -> Entry:
    """The entry for `key`; `BibliographyError` with the nearest key where there is none."""
    if key in bibliography:
        return bibliography[key]
    near = get_close_matches(key, list(bibliography), n=1, cutoff=0.5)
    hint = f"; did you mean [@{near[0]}]?" if near else ""
    raise BibliographyError(f"[@{key}] is in no bibliography{hint}")


def reference(entry: Entry) -> Html:
    """The reference as HTML: authors, title (linked), venue, year."""
    title = tag("cite", entry.title)
    if entry.url:
        title = tag("a", title, href=entry.url)
    tail = ", ".join(part for part in (entry.venue, entry.year) if part)
    parts = [markup.text(names(entry)), title, markup.text(tail)]
    return markup.join([markup.join(filter(None, parts), ". "), "."])


def names(entry: Entry) -> str:
    """Up to three authors, or the first and “et al.”"""
    if len(entry.authors) > 3:
        return _("{author} et al", author=entry.authors[0])
    return ", ".join(entry.authors)


# ---------------------------------------------------------------------------- reading BibTeX


def _refuse_duplicates(text: str, where: str) -> None:
    """Of two entries with one key BibTeX readers keep the last, or neither, in silence."""
    starts = re.finditer(r"^[ \t]*@(?!comment|string|preamble)\w+\s*[{(]\s*([^\s,]+)\s*,", text, re.M | re.I)
    counts = Counter(match[1] for match in starts)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        lines = [
            i
            for i, row in enumerate(text.split("\n"), 1)
            if re.search(rf"[{{(]\s*{re.escape(twice[0])}\s*,", row)
        ]
        at = " and ".join(f"{where}:{line}" for line in lines)
        raise BibliographyError(
            f"{at}: the key {twice[0]!r} is used twice\n    a citation must name one work"
        )


WAY_OUT = "look at this entry for a brace, a quotation mark or a comma that is missing"


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the lines, some with a stack, in which bibtexparser logs what `failed_blocks` says too."""
    logger = logging.getLogger("bibtexparser")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _fields(text: str, where: str) -> dict[str, dict[str, str]]:
    with _quietly():
        library = parse_string(text)
    if library.failed_blocks:
        block = library.failed_blocks[0]
        line = block.start_line or 0
        own = "".join(c if c.isprintable() else "\ufffd" for c in text.split("\n")[line].strip())
        why = str(getattr(block.error, "abort_reason", "") or block.error).strip()
        raise BibliographyError(f"{where}:{line + 1}: not BibTeX: {why}\n    {own}\n    {WAY_OUT}")
    return {e.key: {f.key.lower(): str(f.value) for f in e.fields} for e in library.entries}


def _entry(key: str, fields: Mapping[str, str], where: str) -> Entry:
    clean = {name: _plain(value) for name, value in fields.items()}
    if not clean.get("title"):
        raise BibliographyError(f"{where}: the entry {key!r} has no title")
    authors = re.split(r"\s+and\s+", clean.get("author", "")) if clean.get("author") else []
    year = clean.get("year") or clean.get("date", "")[:4]
    venue = (
        clean.get("journal")
        or clean.get("booktitle")
        or clean.get("publisher")
        or clean.get("howpublished", "")
    )
    return Entry(key, clean["title"], tuple(map(_natural, authors)), year, venue, _address(fields))


def _address(fields: Mapping[str, str]) -> str:
    """Where to read it: url, DOI or arXiv number."""
    url = fields.get("url", "").strip().replace("\\_", "_").replace("\\%", "%").replace("\\&", "&")
    if re.fullmatch(r"https?://[^\s<>\"']+", url):
        return url
    if doi := fields.get("doi", "").strip():
        return f"https://doi.org/{doi}"
    if fields.get("archiveprefix", "").lower() == "arxiv" and fields.get("eprint"):
        return f"https://arxiv.org/abs/{fields['eprint'].strip()}"
    return ""


def _natural(author: str) -> str:
    """`Shazeer, Noam` as `Noam Shazeer`."""
    last, comma, first = author.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else author.strip()


_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "c": "\u0327",
    "v": "\u030c",
}


def _plain(value: str) -> str:
    """TeX's accents, dashes and protecting braces as ordinary text."""
    import unicodedata

    def accent(match: re.Match[str]) -> str:
        letter = {"\\i": "i", "\\j": "j"}.get(match[2], match[2])
        return unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])

    value = re.sub(r"\{?\\(['`^\"~])\{?(\\[ij]|\w)\}?\}?", accent, value)
    value = re.sub(r"\{?\\([cv])\{(\w)\}\}?", accent, value)
    value = re.sub(r"\\([&%_#$])", r"\1", value)
    return " ".join(re.sub(r"[{}]", "", value).replace("---", "—").replace("--", "–").split())
