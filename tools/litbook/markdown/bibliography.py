"""`references.bib` -> entries. BibTeX, and the TeX in it, is read by bibtexparser."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from litbook.errors import LitbookError
from litbook.i18n import _


class BibliographyError(LitbookError):
    """The bibliography cannot be used, or a citation names nothing in it."""

    slug = "bibliography"


class BibliographyEntry(Struct, frozen=True):
    """One work: what a reader needs to find it. `url` is an http(s) address or empty."""

    key: str
    title: str
    authors: tuple[str, ...] = ()
    year: str = ""
    venue: str = ""
    url: str = ""


Bibliography = Mapping[str, BibliographyEntry]


def read(path: Path) -> dict[str, BibliographyEntry]:
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


WAY_OUT = "look at this entry for a brace, a quotation mark or a comma that is missing"


def parse(text: str, where: str = "references.bib") -> dict[str, BibliographyEntry]:
    """The entries of BibTeX `text` by key; errors as for `read`."""
    # Here, and not above: a machine that records has no bibtexparser, and loads this module.
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.middlewares import LatexDecodingMiddleware
    from bibtexparser.model import DuplicateBlockKeyBlock

    # bibtexparser logs what `failed_blocks` says too, some of it with a stack.
    logger = logging.getLogger("bibtexparser")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        library = parse_string(text)
        raw = {
            work.key: {field.key.lower(): str(field.value) for field in work.fields}
            for work in library.entries
        }
        decoded = LatexDecodingMiddleware(allow_inplace_modification=False).transform(library)
    finally:
        logger.setLevel(before)
    # Of two entries with one key BibTeX readers keep the last, or neither, in silence.
    twice = [block for block in library.failed_blocks if isinstance(block, DuplicateBlockKeyBlock)]
    if twice:
        same = [block for block in twice if block.key == twice[0].key]
        lines = [(block.start_line or 0) + 1 for block in (same[0].previous_block, *same)]
        at = " and ".join(f"{where}:{line}" for line in lines)
        what = f"the key {same[0].key!r} is used twice"
        raise BibliographyError(f"{at}: {what}\n    a citation must name one work")
    if library.failed_blocks:
        block = library.failed_blocks[0]
        line = block.start_line or 0
        shown = "".join(c if c.isprintable() else "\ufffd" for c in text.split("\n")[line].strip())
        why = str(getattr(block.error, "abort_reason", "") or block.error).strip()
        raise BibliographyError(f"{where}:{line + 1}: not BibTeX: {why}\n    {shown}\n    {WAY_OUT}")
    entries: dict[str, BibliographyEntry] = {}
    for work in decoded.entries:
        fields = {field.key.lower(): " ".join(str(field.value).split()) for field in work.fields}
        if not fields.get("title"):
            raise BibliographyError(f"{where}: the entry {work.key!r} has no title")
        authors = tuple(
            # `Shazeer, Noam` is said as `Noam Shazeer`.
            " ".join(reversed([part.strip() for part in author.split(",", 1)])).strip()
            for author in re.split(r"\s+and\s+", fields.get("author", ""))
            if author
        )
        venues = (fields.get(name) for name in ("journal", "booktitle", "publisher", "howpublished"))
        venue = next(filter(None, venues), "")
        year = fields.get("year") or fields.get("date", "")[:4]
        # Where to read it, by its fields as they are written: its url, DOI or arXiv number.
        written = raw[work.key]
        url = written.get("url", "").strip().replace("\\_", "_").replace("\\%", "%").replace("\\&", "&")
        if not re.fullmatch(r"https?://[^\s<>\"']+", url):
            doi, number = written.get("doi", "").strip(), written.get("eprint", "").strip()
            arxiv = written.get("archiveprefix", "").lower() == "arxiv" and number
            url = f"https://doi.org/{doi}" if doi else f"https://arxiv.org/abs/{number}" if arxiv else ""
        entries[work.key] = BibliographyEntry(work.key, fields["title"], authors, year, venue, url)
    return entries


def find(bibliography: Bibliography, key: str) -> BibliographyEntry:
    """The entry for `key`; `BibliographyError` with the nearest key where there is none."""
    if key in bibliography:
        return bibliography[key]
    near = get_close_matches(key, list(bibliography), n=1, cutoff=0.5)
    hint = f"; did you mean [@{near[0]}]?" if near else ""
    raise BibliographyError(f"[@{key}] is in no bibliography{hint}")


def names(entry: BibliographyEntry) -> str:
    """Up to three authors, or the first and “et al.”"""
    if len(entry.authors) > 3:
        return _("{author} et al", author=entry.authors[0])
    return ", ".join(entry.authors)
