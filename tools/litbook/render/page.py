"""A record -> the Markdown pages of its lecture: a contents page, and one page for each part.

`pages` is all that others use. Everything that the pages need is in the record; what is wrong with its
prose (unknown citations, formulas that cannot be shown, broken links) is added to `problems`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from litbook.errors import Problem
from litbook.record.model import Function, Record
from litbook.render import books, markup, player, prose, verdicts
from litbook.render.bibliography import Entry
from litbook.render.books import Book
from litbook.render.evidence import day
from litbook.render.section import Sheet, anchor, body, copier, heading, row


def pages(
    record: Record,
    bibliography: Mapping[str, Entry] = books.NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Problem] | None = None,
) -> dict[str, str]:
    """Relative paths to Markdown text: `index.md`, and one page per part with the part's name.

    `recordings` are records of the same lecture from other devices. `problems`, if given, receives
    what is wrong with the prose, with file and line.
    """
    book = books.of(record, bibliography, recordings, [] if problems is None else problems)
    if not book.parts:
        return {books.INDEX: _single(book)}
    found = {books.INDEX: _contents(book)}
    for i, part in enumerate(book.parts):
        found[books.file_of(book, part)] = _part(book, i)
    return found


def one(
    record: Record,
    name: str,
    bibliography: Mapping[str, Entry] = books.NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Problem] | None = None,
) -> str:
    """The one of `pages` that is called `name`. Raises `ValueError` where there is none."""
    book = books.of(record, bibliography, recordings, [] if problems is None else problems)
    if name == books.INDEX:
        return _contents(book) if book.parts else _single(book)
    return _part(book, [books.file_of(book, part) for part in book.parts].index(name))


def titles(record: Record) -> list[tuple[str, str]]:
    """The pages' paths and titles in reading order, for a navigation."""
    top = record.sections()
    parts = top if any(record.sections(i) for i in top) else []
    book = Book(record, books.NOTHING_CITED, (), [], [], 0, parts)  # who is on which page is no matter here
    named = [(books.file_of(book, part), books.plain(record.functions[part])) for part in book.parts]
    return [(books.INDEX, record.title), *named]


def shelf(lectures: Sequence[tuple[str, Record, Sequence[Record]]]) -> str:
    """The page that lists all lectures, each with its folder, title, parts and claims, and its recordings."""
    blocks = [_lecture(i, *lecture) for i, lecture in enumerate(lectures, 1)]
    found = [it for _, record, recordings in lectures for it in verdicts.rulings(record, recordings)]
    return _joined(
        [
            "# Lectures",
            markup.tag("p", verdicts.counted(found), class_="lb-summary") if found else "",
            *blocks,
        ]
    )


def excerpt(record: Record) -> str:
    """The first short block of code with a value and a claim that holds beside its lines; else empty."""
    book = books.of(record, books.NOTHING_CITED, (), [])
    sheet = _sheet(book, books.INDEX)
    sheet.links = {}  # it is shown on a page from which their addresses lead elsewhere
    for index in (i for i, f in enumerate(record.functions) if f.kind == "section"):
        for block in body(sheet, index, 2):
            if (
                block.count("lb-n") <= 12
                and "lb-val" in block
                and "lb-claim lb-holds" in block
                and "lb-failed" not in block
            ):
                return re.sub(r'<button.*?</button>|href="#L\d+"| id="L\d+"', "", block)
    return ""


def _lecture(number: int, folder: str, record: Record, recordings: Sequence[Record]) -> str:
    book = books.of(record, books.NOTHING_CITED, recordings, [])
    setting = prose.Setting(prose.Citations(books.NOTHING_CITED), [])
    title = markup.tag("a", prose.inline(record.title, setting), href=f"{folder}/")
    inside = [
        _linked(
            f"{folder}/{books.way(books.INDEX, books.file_of(book, part))}", record.functions[part], setting
        )
        for part in book.parts
    ]
    tops = inside or [
        _linked(f"{folder}/#{anchor(record.functions[i].name)}", record.functions[i], setting)
        for i in record.sections()
    ]
    items = [
        markup.tag("li", link, " ", verdicts.tick(record, i, recordings))
        for link, i in zip(tops, record.sections(), strict=True)
    ]
    head = markup.tag("p", markup.tag("span", str(number), class_="lb-number"), title, class_="lb-parttitle")
    tally = verdicts.summary(book, range(len(record.functions)))
    return markup.tag("div", head, tally, markup.tag("ul", *items), class_="lb-part")


# ---------------------------------------------------------------------------- the pages


def _sheet(book: Book, page: str) -> Sheet:
    setting = prose.Setting(
        prose.Citations(book.bibliography),
        book.problems,
        resolve=lambda name: books.address(book, page, name),
    )
    links = books.links(book, page)
    return Sheet(book.record, book.lines, book.recordings, setting, _follow, links)


def _follow(sheet: Sheet, target: int, level: int) -> list[str]:
    """A section stands where it is called."""
    return [*heading(sheet, target, level + 1), *body(sheet, target, level + 1)]


def _single(book: Book) -> str:
    """A lecture without parts."""
    sheet = _sheet(book, books.INDEX)
    mine = [i for i, page in book.place.items() if page == books.INDEX]
    parts = [
        f"# {_title(sheet, book.record.title)}",
        verdicts.summary(book, mine),
        player.host(book, books.INDEX),
        verdicts.alarm(book, books.INDEX, mine),
    ]
    parts += [
        _preamble(sheet),
        *body(sheet, book.main, 1),
        *_rest(book, sheet, books.INDEX),
        _foot(book, mine, None),
    ]
    return _joined(parts)


def _contents(book: Book) -> str:
    """The lecture's contents: what main says, and its parts with their theses and claims."""
    sheet = _sheet(book, books.INDEX)
    everything = list(range(len(book.record.functions)))
    sheet.follow = lambda _, target, __: [_entry(book, target)]
    parts = [
        f"# {_title(sheet, book.record.title)}",
        verdicts.summary(book, everything),
        verdicts.alarm(book, books.INDEX, everything),
    ]
    parts += [
        *body(sheet, book.main, 1),
        _preamble(sheet),
        *_rest(book, sheet, books.INDEX),
        _foot(book, everything, None),
    ]
    return _joined(parts)


def _part(book: Book, number: int) -> str:
    """One part: its sections, the helpers it is the first to use, and the way on."""
    index, record = book.parts[number], book.record
    page = books.file_of(book, index)
    sheet = _sheet(book, page)
    mine = [i for i, where in book.place.items() if where == page]
    title = _title(sheet, record.functions[index].heading or record.functions[index].name)
    up = markup.tag("a", markup.text(record.title), href=books.way(page, books.INDEX))
    parts = [
        markup.tag("p", f"{up} · {number + 1} of {len(book.parts)}", class_="lb-eyebrow"),
        f"# {title} {{#{anchor(record.functions[index].name)}}}",
        verdicts.summary(book, mine),
        player.host(book, page),
        verdicts.alarm(book, page, mine),
        *body(sheet, index, 1),
        *_rest(book, sheet, page),
        _around(book, number),
        _foot(book, mine, record.functions[index]),
    ]
    return _joined(parts)


def _title(sheet: Sheet, text: str) -> str:
    return markup.for_heading(prose.inline(text, sheet.setting))


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


# ---------------------------------------------------------------------------- around the sections


def _entry(book: Book, part: int) -> str:
    """A part on the contents page: its heading, the theses of its sections, its claims."""
    record, functions = book.record, book.record.functions
    page = books.file_of(book, part)
    mine = [i for i, where in book.place.items() if where == page]
    setting = prose.Setting(prose.Citations(book.bibliography), [])
    name = prose.inline(functions[part].heading or functions[part].name, setting)
    number = markup.tag("span", str(book.parts.index(part) + 1), class_="lb-number")
    theses = [
        markup.tag(
            "li",
            _linked(f"{books.way(books.INDEX, page)}#{anchor(functions[i].name)}", functions[i], setting),
            " ",
            verdicts.tick(record, i, book.recordings),
        )
        for i in record.sections(part)
    ]
    tally = verdicts.summary(book, mine)
    needs = (
        markup.tag("span", f"needs {markup.text(functions[part].requires)}", class_="lb-badge")
        if functions[part].requires
        else ""
    )
    title = markup.tag(
        "p",
        number,
        markup.tag("a", name, href=books.way(books.INDEX, page)),
        " ",
        needs,
        class_="lb-parttitle",
    )
    return markup.tag("div", title, tally, markup.tag("ul", *theses), class_="lb-part")


def _linked(address: str, function: Function, setting: prose.Setting) -> str:
    return markup.tag("a", prose.inline(function.heading or function.name, setting), href=address)


def _around(book: Book, number: int) -> str:
    """The way back and on."""
    page = books.file_of(book, book.parts[number])
    links = [
        _step(book, page, number - 1, "Previous", "prev") if number else "",
        _step(book, page, number + 1, "Next", "next") if number + 1 < len(book.parts) else "",
    ]
    return markup.tag(
        "nav",
        *links,
        class_="lb-around",
        aria_label="parts of this lecture",
        data_search_exclude=markup.UNSEARCHED,
    )


def _step(book: Book, page: str, number: int, word: str, rel: str) -> str:
    function = book.record.functions[book.parts[number]]
    label = markup.tag("small", word) + markup.tag("span", markup.text(books.plain(function)))
    return markup.tag("a", label, href=books.way(page, books.file_of(book, book.parts[number])), rel=rel)


# ---------------------------------------------------------------------------- definitions, references, foot


def _preamble(sheet: Sheet) -> str:
    """Imports and constants of the file, folded."""
    record = sheet.record
    module = next((i for i, f in enumerate(record.functions) if f.kind == "module"), None)
    if module is None:
        return ""
    kept = [
        n
        for s in record.statements
        if s.function == module
        and s.kind in ("code", "claim")
        and not sheet.lines[s.first - 1].text.startswith("if __name__")
        for n in range(s.first, max(s.end, s.last) + 1)
    ]
    return _folded(sheet, kept, "Imports and constants", None) if kept else ""


def _rest(book: Book, sheet: Sheet, page: str) -> list[str]:
    """Definitions that this page is the first to use, and the works it cites."""
    functions = book.record.functions
    found = [
        i for i, where in book.place.items() if where == page and functions[i].kind in ("helper", "class")
    ]
    parts = ["## Definitions {#definitions}"] if found else []
    for index in sorted(found, key=lambda i: functions[i].first):
        it = functions[index]
        name = markup.tag("code", markup.text(it.name))
        title = f"{name}: {prose.inline(it.heading, sheet.setting)}" if it.heading else name
        parts.append(_folded(sheet, list(range(it.first, it.last + 1)), title, anchor(it.name)))
    references = sheet.setting.citations.references()
    return [*parts, "## References {#references}", references] if references else parts


def _folded(sheet: Sheet, numbers: Sequence[int], title: str, name: str | None) -> str:
    """Lines of code that open on demand."""
    shown = [
        n for n in dict.fromkeys(numbers) if sheet.lines[n - 1].text.strip() or sheet.lines[n - 1].was_blank
    ]
    rows = [row(n, sheet.lines[n - 1].html(0, sheet.links.get(n, ()))) for n in shown]
    block = markup.tag("div", *copier(shown), *rows, class_="lb-code lb-plain")
    return markup.tag("details", markup.tag("summary", title), block, class_="lb-def", id=name)


def _foot(book: Book, mine: Sequence[int], part: Function | None) -> str:
    """Where every number on the page comes from."""
    record, environment = book.record, book.record.environment
    claims = verdicts.rulings(record, book.recordings, mine)
    device = environment.device
    machine = device.name if device.kind != "cpu" else environment.cpu or device.name
    versions = [f"{name} {version}" for name, version in sorted(environment.versions.items())]
    facts = [
        verdicts.counted(claims) if claims else "",
        markup.text(f"run on {machine}, {environment.cores} core{'' if environment.cores == 1 else 's'}"),
        markup.text(", ".join([f"Python {environment.python}", *versions])),
        markup.text(f"{day(environment.date)}, {_seconds(record, mine, part):.1f} s"),
        markup.text(f"commit {environment.commit[:12]}{'+' if environment.commit.endswith('+') else ''}")
        if environment.commit
        else "",
        markup.text(f"seed {environment.seed}"),
        markup.text(
            f"{record.sources[0].path}" + (f", lines {part.first} to {_last(book, mine)}" if part else "")
        ),
    ]
    said = " · ".join(f for f in facts if f)
    return markup.tag("p", said, class_="lb-foot", data_search_exclude=markup.UNSEARCHED)


def _seconds(record: Record, mine: Sequence[int], part: Function | None) -> float:
    if part is None:
        top = [record.functions[i].name for i in record.sections()]
        return math.fsum(record.seconds.get(name, 0.0) for name in top)
    return record.seconds.get(part.name) or math.fsum(
        record.seconds.get(record.functions[i].name, 0.0) for i in mine
    )


def _last(book: Book, mine: Sequence[int]) -> int:
    kinds = ("part", "section")
    return max(book.record.functions[i].last for i in mine if book.record.functions[i].kind in kinds)
