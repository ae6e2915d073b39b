"""A lecture's pages, and on which of them, at which address, each section and definition stands."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, takewhile
from operator import attrgetter
from pathlib import PurePosixPath

from litbook.finding import Finding
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.nodes import label_anchor, label_text
from litbook.page import highlight, numbering
from litbook.page.blocks import Block
from litbook.page.view import statements
from litbook.python.references import Mention, constants, meanings, mentions
from litbook.record.model import Definition, Record, Section, group_by

NOTHING_CITED: Bibliography = {}
INDEX = "index.md"
QUESTIONS = "questions.md"  # of a lecture in parts: all that it asks

LinkTarget = Section | Definition


@dataclass
class Sitemap:
    """A lecture's pages. `place` and `defined` say by key on which of them a section or definition stands."""

    record: Record
    bibliography: Bibliography
    recordings: Sequence[Record]
    problems: list[Finding]
    parts: list[Section]
    place: dict[str, str] = field(default_factory=dict)
    defined: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, list[Block]] = field(default_factory=dict)  # by key the blocks of a section
    others: Callable[[str], Sitemap | None] = lambda _: None  # the book's lectures, by their names

    @cached_property
    def lines(self) -> list[list[highlight.CodeLine]]:
        """By file, the lines of its text."""
        return [highlight.lines(source.text, source.cuts) for source in self.record.sources]

    @cached_property
    def hidden_spans(self) -> dict[int, list[tuple[int, int]]]:
        """By file, the first and last lines of statements that no page shows."""
        spans: dict[int, list[tuple[int, int]]] = {}
        entries: list[LinkTarget] = [*self.record.sections, *self.record.definitions]
        for entry in entries:
            hidden = (s.line_range for s in entry.statements if s.kind == "hidden")
            lines = [(entry.first + whole[0], entry.first + whole[-1]) for whole in hidden]
            spans.setdefault(entry.file, []).extend(lines)
        return spans

    @cached_property
    def numbers(self) -> dict[str, numbering.NumberedLabel]:
        """The figures, tables and equations that have a name."""
        return numbering.number_labels(self.record, self.recordings, self.problems)

    @cached_property
    def pages(self) -> list[str]:
        """Every page in reading order."""
        return [INDEX, *map(self.page, self.parts)]

    def page(self, part: Section) -> str:
        """The Markdown file of a part's page: by its name, or by its key where two parts have one name."""
        alone = [other.name for other in self.parts].count(part.name) == 1
        name = re.sub(r"[^\w-]", "-", part.name if alone else part.key).replace("_", "-").strip("-")
        return f"{name}.md" if f"{name}.md" not in (INDEX, QUESTIONS) else f"part-{name}.md"

    @cached_property
    def file(self) -> dict[str, int]:
        """Page -> the file whose lines are `#L1`, `#L2` … there."""
        return {INDEX: self.record.main.file} | {self.page(part): part.file for part in self.parts}

    @cached_property
    def preambles(self) -> dict[str, list[Section]]:
        """Page -> the modules whose own lines, imports and constants, stand there."""
        modules = (module for module in self.record.sections if module.kind == "module")
        return group_by(modules, lambda module: self._page_of_file(module.file))

    def _page_of_file(self, file: int) -> str:
        """The first page that this is the file of, else the first that has something of it."""
        pages = [page for page in self.pages if self.file[page] == file]
        of_key = self.record.definition_of
        some = (page for key, page in self.defined.items() if of_key[key].file == file)
        return pages[0] if pages else min(some, key=self.pages.index, default=INDEX)

    @cached_property
    def _name_counts(self) -> Counter[str]:
        """How many sections and definitions of the pages have a name."""
        definitions = [self.record.definition_of[key].name for key in self.defined]
        return Counter([*(section.name for section in self.record.sections), *definitions])

    def anchor(self, entry: LinkTarget) -> str:
        """The id of a section or definition on its page: its name; its key where several have one name."""
        return anchor(entry.name if self._name_counts[entry.name] < 2 else re.sub(r"[^\w-]", "-", entry.key))

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """How headings write what has capitals inside or stands as code: `flops` -> `FLOPs`."""
        words = set[str]()
        for section in self.record.sections:
            words |= {word for word in re.findall(r"\w+", section.heading) if word[1:] != word[1:].lower()}
            words.update(*(re.findall(r"\w+", code) for code in section.heading.split("`")[1::2]))
        return {word.lower(): word for word in sorted(words)}

    def label(self, section: Section) -> str:
        """What narrow contents call a section: its name in words; nothing where the heading is as short."""
        words = [self._spellings.get(word, word) for word in section.name.split("_") if word]
        if words and words[0].islower() and words[0] not in self._spellings:
            words[0] = words[0][0].upper() + words[0][1:]
        text = " ".join(words)
        return text if len(text) < len(plain_title(section)) else ""

    def files(self, page: str) -> set[int]:
        """The files of which a page shows something."""
        shown = [*self.sections(page), *self.definitions(page), *self.preambles.get(page, ())]
        return {self.file[page], *(entry.file for entry in shown)}

    def sections(self, page: str) -> list[Section]:
        """The sections of a page, in the order of the book."""
        return [section for section in self.record.sections if self.place.get(section.key) == page]

    def definitions(self, page: str) -> list[Definition]:
        """The definitions that stand on a page, in the order of their lines."""
        definitions = [self.record.definition_of[key] for key, where in self.defined.items() if where == page]
        return sorted(definitions, key=lambda definition: (definition.file, definition.first))

    def line(self, page: str, file: int, line: int) -> str:
        """The id of a line on a page: `L12` of the page's own file, `models-L12` of another one.

        Of what is not shown as code, such as a note, the line on which it begins.
        """
        return f"{self.prefix(page, file)}L{self._begins.get((file, line), line)}"

    @cached_property
    def _begins(self) -> dict[tuple[int, int], int]:
        """By file and line of a section that is not shown as code, the line on which that begins.

        Of a lecture that is known by its outline alone, nothing.
        """
        begins = dict[tuple[int, int], int]()
        for section in self.record.sections:
            shown = {s.first: s.kind in ("code", "claim", "def") for s in statements(section)}
            at = section.first if shown else 0
            for line in range(section.first, section.last + 1):
                if line in shown:
                    at = 0 if shown[line] else line
                if at and not self.lines[section.file][line - 1].text.lstrip().startswith("#"):
                    begins[section.file, line] = at
        return begins

    @cached_property
    def helpers(self) -> list[dict[int, list[Definition]]]:
        """By file and line, the definitions that the line names."""
        outer = {(d.file, d.name): d for d in top_definitions(self.record)}
        files = []
        for file, meant in enumerate(meanings(_texts(self.record))):
            named = ((mention.line, meant[mention.name]) for mention in _mentions(self.record, file))
            by_line: dict[int, list[Definition]] = {}
            for line, place in named:
                if place in outer:
                    by_line.setdefault(line, []).append(outer[place])
            files.append(by_line)
        return files

    @cached_property
    def constants(self) -> list[dict[int, list[tuple[int, int]]]]:
        """By file and line, the places (file, line) that give the constants which the line names."""
        texts, files = _texts(self.record), []
        for (path, text), given in zip(texts, constants(texts), strict=True):
            by_line = group_by(mentions(text, frozenset(given), path), attrgetter("line"))
            files.append({line: [given[m.name] for m in of_line] for line, of_line in by_line.items()})
        return files

    def prefix(self, page: str, file: int) -> str:
        """What an id of a line begins with on a page: nothing for its own file, else that file's name."""
        return "" if file == self.file[page] else f"{self.name(file)}-"

    def name(self, file: int) -> str:
        """What a file of the lecture is called in ids: `models` for `models.py`."""
        return re.sub(r"[^\w-]", "-", PurePosixPath(self.record.sources[file].path).stem)

    def path(self, entry: LinkTarget) -> str:
        """The file that a section or definition stands in, as messages name it."""
        return self.record.sources[entry.file].path


def build_sitemap(
    record: Record, bibliography: Bibliography, recordings: Sequence[Record], problems: list[Finding]
) -> Sitemap:
    """The pages of the lecture that `record` is of."""
    book = replace(outline(record), bibliography=bibliography, recordings=recordings, problems=problems)
    book.place[record.main.key] = INDEX
    for child in record.children():
        for section in record.tree(child):
            book.place[section.key] = book.page(child) if book.parts else INDEX
    # Each definition goes to the page of the first part that names it, perhaps through another one.
    here = [definition for definition in top_definitions(record) if not definition.hidden]
    numbers_at = group_by(range(len(here)), lambda i: (here[i].file, here[i].name))
    # What of the lecture each file means by a name, and its mentions by their lines.
    means = meanings(_texts(record))
    mentioned = [_mentions(record, file) for file in range(len(record.sources))]
    waiting: list[LinkTarget] = [record.main, *(s for part in record.children() for s in record.tree(part))]
    while waiting:
        entry = waiting.pop(0)
        page = book.defined[entry.key] if isinstance(entry, Definition) else book.place[entry.key]
        # What it names by its text: prose that says "train" does not.
        lines = mentioned[entry.file]
        start = bisect_left(lines, entry.first, key=lambda mention: mention.line)
        inside = takewhile(lambda mention, last=entry.last: mention.line <= last, islice(lines, start, None))  # type: ignore[misc]
        named = {means[entry.file][mention.name] for mention in inside}
        named_here = sorted(i for place in named & numbers_at.keys() for i in numbers_at[place])
        for definition in map(here.__getitem__, named_here):
            if definition.key not in book.defined:
                book.defined[definition.key] = book.pages[1] if page == INDEX and book.parts else page
                waiting.insert(0, definition)
    for definition in here:  # what no section names stands on its own file's page, else on the last one
        pages = [p for p in book.pages if book.file[p] == definition.file and len(record.sources) > 1]
        book.defined.setdefault(definition.key, [*pages, book.pages[-1]][0])
    return book


def outline(record: Record) -> Sitemap:
    """The pages alone: what stands on which of them is left out."""
    top = record.children()  # the parts; a lecture of which none has sections of its own is one page
    parts = top if any(record.children(section) for section in top) else []
    return Sitemap(record, NOTHING_CITED, (), [], parts)


def top_definitions(record: Record) -> list[Definition]:
    """The definitions that stand in no section and in no other definition, in the order of the text."""
    outer: list[Definition] = []
    last: dict[int, int] = {}
    entries: list[LinkTarget] = [section for section in record.sections if section.kind != "module"]
    for entry in sorted([*entries, *record.definitions], key=lambda e: (e.file, e.first, -e.lines)):
        if isinstance(entry, Definition) and entry.first > last.get(entry.file, 0):
            outer.append(entry)
        last[entry.file] = max(last.get(entry.file, 0), entry.last)
    return outer


# ---------------------------------------------------------------------------- who names whom

Links = dict[int, dict[int, list[highlight.CodeLink]]]  # by file and line


def _texts(record: Record) -> tuple[tuple[str, str], ...]:
    return tuple((source.path, source.text) for source in record.sources)


@functools.lru_cache(maxsize=2)  # every section asks, and there may be thousands of names
def _names(texts: tuple[tuple[str, str], ...]) -> tuple[frozenset[str], ...]:
    return tuple(map(frozenset, meanings(texts)))


def _mentions(record: Record, file: int) -> tuple[Mention, ...]:
    source = record.sources[file]
    return mentions(source.text, _names(_texts(record))[file], source.path)


def links(book: Sitemap, page: str) -> Links:
    """Where code names a definition, each place with the address of that definition.

    That is its first line, inside what is folded: a browser opens the fold for it, without a script.
    """
    record = book.record
    definitions = map(record.definition_of.__getitem__, book.defined)
    defined = {(definition.file, definition.name): definition for definition in definitions}
    by_file: dict[int, dict[int, list[highlight.CodeLink]]] = {}
    for file in book.files(page):
        of_file = by_file[file] = {}
        places = meanings(_texts(record))[file]
        for mention in _mentions(record, file):
            definition = defined.get(places[mention.name])
            if mention.column is None or definition is None:
                continue
            if definition.file == file and definition.first <= mention.line <= definition.last:
                continue  # inside of a definition its own name leads nowhere
            length = len(mention.name.rpartition(".")[2])
            there = definition_address(book, page, definition)
            of_file.setdefault(mention.line, []).append((mention.column, length, there))
    return by_file


def definition_address(book: Sitemap, page: str, definition: Definition) -> str:
    """From `page`, the first line of a definition that is on a page of the book."""
    where = book.defined[definition.key]
    return relative_url(page, where, book.line(where, definition.file, definition.first))


def find_references(
    book: Sitemap, file: int, lines: Sequence[int]
) -> tuple[list[Definition], list[tuple[int, int]]]:
    """What some lines of a file name of the lecture: helpers and classes, and the file and line of constants.

    A constant comes after those that its own line names; that may be itself, inside a lambda.
    """
    helpers, values, seen = dict[str, Definition](), list[tuple[int, int]](), set[tuple[int, int]]()

    def give(file: int, line: int) -> None:
        for place in book.constants[file].get(line, ()):
            if place not in seen:
                seen.add(place)
                give(*place)
                values.append(place)

    for line in lines:
        helpers |= {definition.key: definition for definition in book.helpers[file].get(line, ())}
        give(file, line)
    return [*helpers.values()], values


# ---------------------------------------------------------------------------- addresses


def anchor(name: str) -> str:
    """The id of a section or definition on its page; never that of a line."""
    return f"fn-{name}" if name[:1] == "L" and name[1:].isdecimal() else name


def resolve_name(book: Sitemap, page: str, name: str) -> str | None:
    """From `page`, the address of what is called `name`, by that or by its key; None where it is on no page.

    Of several with one name, that of the same page. `models.py:12` is a line, `lecture_03.block` stands in
    another lecture, `lecture_03` is that one's first page.
    """
    record = book.record
    every: list[tuple[LinkTarget, str]] = [
        *((record.by_key[key], where) for key, where in book.place.items()),
        *((record.definition_of[key], where) for key, where in book.defined.items()),
    ]
    places = [(entry, where) for entry, where in every if name in (entry.key, entry.name)]
    if not places:
        file, _, line = name.partition(".py:")
        if line.isdecimal() and "." not in file:
            return _line(book, page, file, int(line))
        lecture, _, rest = name.partition(".")
        other = book.others(lecture)
        there = None if other is None else resolve_name(other, INDEX, rest) if rest else ""
        up = f"{relative_url(page, INDEX)}../{lecture}/{there}".replace("/./", "/").removeprefix("./")
        return None if there is None else up
    entry, where = min(places, key=lambda place: (place[0].key != name, place[1] != page))
    return relative_url(page, where, book.anchor(entry))


def _line(book: Sitemap, page: str, name: str, line: int) -> str | None:
    """From `page`, the address of a line of the file `name`."""
    for file, lines in enumerate(book.lines):
        if book.name(file) == name and 0 < line <= len(lines) and lines[line - 1].text.strip():
            around = {**book.place, **book.defined}
            entries: list[LinkTarget] = [*book.record.sections, *book.record.definitions]
            inside = [e for e in entries if e.file == file and e.first <= line <= e.last and e.key in around]
            innermost = min(inside, key=lambda entry: entry.lines, default=None)
            where = around[innermost.key] if innermost else book._page_of_file(file)
            return relative_url(page, where, book.line(where, file, line))
    return None


def resolve_label(book: Sitemap, page: str, label: str) -> tuple[str, str] | None:
    """`fig:rate` -> `Figure 2` and, if it is shown, its address from `page`; None for an unknown name."""
    if (item := book.numbers.get(label)) is None:
        return None
    address = relative_url(page, book.place.get(item.section, page), label_anchor(label))
    return label_text(label, item.number), address if item.shown else ""


def relative_url(page: str, other: str, name: str = "") -> str:
    """The relative address of another page, or of a name on it; where that is this page, of the name alone.

    Every page is a folder of its own, the index is theirs.
    """
    if name:
        return f"#{name}" if other == page else f"{relative_url(page, other)}#{name}"
    up = "" if page == INDEX else "../"
    return up + ("" if other == INDEX else other.removesuffix(".md") + "/") or "./"


def plain_title(section: Section) -> str:
    """A section's title without marks of code."""
    return section.heading.replace("`", "") or section.name
