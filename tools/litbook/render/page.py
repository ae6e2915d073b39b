"""A record -> the Markdown pages of its lecture: a contents page, and one page for each part.

`pages` is all that others use. Everything that the pages need is in the record; what is wrong with its
prose (unknown citations, formulas that cannot be shown, broken links) is added to `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from litbook.document import search
from litbook.document import section as document
from litbook.document.bibliography import Entry
from litbook.document.blocks import Code, Judged, Shelf, Shown, Storage
from litbook.document.search import Passage
from litbook.errors import Problem
from litbook.html import finished
from litbook.html.bibliography import references
from litbook.html.finished import Page
from litbook.html.section import body, heading, show
from litbook.record.model import Record, Section
from litbook.render import books, drawings, markup, path, player, prose, questions, script_words, verdicts
from litbook.render.books import Book
from litbook.render.catalogue import _, day, ngettext
from litbook.render.catalogue import number as count
from litbook.render.evidence import statements
from litbook.render.markup import Html, tag
from litbook.render.sheet import Sheet, Text

EXCERPT = 12  # lines of code at most, on the front page


def pages(
    record: Record,
    bibliography: Mapping[str, Entry] = books.NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Problem] | None = None,
    others: Callable[[str], Book | None] = lambda _: None,
    ways: Mapping[str, Html] | None = None,
) -> dict[str, Page]:
    """Relative paths to Markdown text: `index.md`, and one page per part with the part's name.

    `recordings` are records of the same lecture from other devices. `problems`, if given, receives
    what is wrong with the prose, with file and line. `others` has the pages of the book's lectures by name,
    `ways` what else stands below the titles of pages.
    """
    book = books.of(record, bibliography, recordings, [] if problems is None else problems)
    book.others = others
    return {name: _page(book, name, (ways or {}).get(name, markup.NOTHING)) for name in book.pages}


def one(
    record: Record,
    name: str,
    bibliography: Mapping[str, Entry] = books.NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Problem] | None = None,
    others: Callable[[str], Book | None] = lambda _: None,
    way: Html = markup.NOTHING,
) -> Page:
    """The one of `pages` that is called `name`. Raises `ValueError` where there is none."""
    book = books.of(record, bibliography, recordings, [] if problems is None else problems)
    book.others = others
    return _page(book, book.pages[book.pages.index(name)], way)


def titles(record: Record) -> list[tuple[str, str]]:
    """The pages' paths and titles in reading order, for a navigation."""
    book = books.outline(record)
    return [(books.INDEX, record.title), *((book.page(part), books.plain(part)) for part in book.parts)]


def shelf(lectures: Sequence[tuple[str, Record, Sequence[Record]]]) -> Page:
    """The page that lists all lectures, each with its folder, title, parts and claims, and its recordings."""
    blocks = [_lecture(*lecture) for lecture in lectures]
    found = [it for _, record, recordings in lectures for it in verdicts.rulings(record, recordings)]
    summary = [tag("p", verdicts.counts(found), class_="lb-summary")] if found else []
    title = _("Lectures")
    return finished.page([markup.heading(1, title), *summary, *blocks], [Passage("", title)])


def strip(lectures: Sequence[tuple[str, Record, Sequence[Record]]]) -> Html:
    """Every lecture's title, how long its core takes to read, and its parts, as links from the front page."""
    setting, rows = prose.Setting(prose.Citations(books.NOTHING_CITED), []), []
    for folder, record, recordings in lectures:
        book = books.of(record, books.NOTHING_CITED, recordings, [])
        title = tag("a", prose.inline(record.title, setting), href=f"lectures/{folder}/")
        links = (_link(f"lectures/{folder}/{_address(book, it)}", it, setting) for it in book.parts)
        rows.append(tag("p", title, tag("small", " · ", _("{time} to read", time=path.hours(book)))))
        rows.append(tag("ol", *(tag("li", it) for it in links)) if book.parts else markup.NOTHING)
    return tag("div", *rows, class_="lb-all", data_search_exclude="1")


def drawing(record: Record, name: str) -> Html:
    """The first storage that the section `name` draws; else empty."""
    book = books.of(record, books.NOTHING_CITED, (), [])
    for section in (it for it in record.sections if it.name == name):
        for block in document.blocks(book, section):
            for thing in block.things if isinstance(block, Shelf) else ():
                if isinstance(thing, Storage):
                    return drawings.storage(thing.views)
    return markup.NOTHING


def excerpt(record: Record) -> Html:
    """The first short block of code with a value and a claim that holds beside its lines; else empty.

    It is shown on another page: nothing in it is an address.
    """
    sheet = _sheet(books.of(record, books.NOTHING_CITED, (), []), books.INDEX)
    sheet.links, sheet.anchored = {}, False
    for section in (it for it in record.sections if it.kind == "section"):
        for block in document.blocks(sheet.book, section):
            if not isinstance(block, Code) or len(block.rows) > EXCERPT:
                continue
            beside = [entry for row in block.rows for entry in row.entries]
            verdicts_ = {it.verdict for it in beside if isinstance(it, Judged)}
            if verdicts_ == {"holds"} and any(isinstance(it, Shown) for it in beside):
                return show(sheet, section, 2, [block])[0]
    return markup.NOTHING


def _lecture(folder: str, record: Record, recordings: Sequence[Record]) -> Html:
    book = books.of(record, books.NOTHING_CITED, recordings, [])
    setting = prose.Setting(prose.Citations(books.NOTHING_CITED), [])
    title = tag("a", prose.inline(record.title, setting), href=f"{folder}/")
    links = [_link(f"{folder}/{_address(book, section)}", section, setting) for section in record.inside()]
    items = [
        tag("li", link, " ", verdicts.tick(record, section, recordings))
        for link, section in zip(links, record.inside(), strict=True)
    ]
    head = tag("p", title, class_="lb-parttitle")
    tally = verdicts.summary(book, record.sections)
    return tag("div", head, tally, tag("ul", *items), class_="lb-part")


def _address(book: Book, section: Section) -> str:
    """From the contents: a part's page, or where on them a section stands."""
    return books.way(books.INDEX, book.page(section)) if book.parts else f"#{book.anchor(section)}"


# ---------------------------------------------------------------------------- the pages


def _page(book: Book, name: str, way: Html) -> Page:
    if not book.parts:
        return _single(book, way)
    return _contents(book, way) if name == books.INDEX else _part(book, book.pages.index(name) - 1, way)


def _sheet(book: Book, page: str) -> Sheet:
    setting = prose.Setting(
        prose.Citations(book.bibliography, opens=True),
        book.problems,
        resolve=lambda name: books.address(book, page, name),
        number=lambda label: books.numbered(book, page, label),
    )
    sheet = Sheet(book, page, setting, _follow, books.links(book, page))
    sheet.at(book.record.main.file, 1)
    return sheet


def _follow(sheet: Sheet, target: Section, level: int) -> list[Html]:
    """A section stands where it is called; an aside with its body folded."""
    title, blocks = heading(sheet, target, level + 1), body(sheet, target, level + 1)
    record = sheet.record
    # An aside in an aside lies in its fold, and what waits for a device has one of its own.
    if not target.aside or record.by_key[target.parent].aside or document.waits(sheet.book, target):
        return [*title, *blocks]
    found = verdicts.rulings(record, sheet.book.recordings, record.tree(target))
    words = [markup.text(_("Aside")), *([verdicts.counts(found)] if found else [])]
    summary = tag("summary", markup.join(words, markup.text(" · ")))
    return [*title, tag("details", summary, *map(markup.unlisted, blocks), class_="lb-aside")]


def _single(book: Book, way: Html) -> Page:
    """A lecture without parts."""
    sheet, record = _sheet(book, books.INDEX), book.record
    parts = [
        markup.heading(1, prose.inline(record.title, sheet.setting)),
        verdicts.summary(book, record.sections),
        way,
        path.line(book),
        player.host(book, books.INDEX),
        verdicts.alarm(book, books.INDEX, record.sections),
        *_preambles(sheet, own=True),
        *body(sheet, record.main, 1),
        *_rest(sheet),
        questions.answers(sheet.answers),
        _foot(book, record.sections, None),
        script_words.data(_scripts(sheet)),
    ]
    return finished.page(parts, search.passages(book, books.INDEX))


def _contents(book: Book, way: Html) -> Page:
    """The lecture's contents: what main says, and its parts with their theses and claims."""
    sheet, record = _sheet(book, books.INDEX), book.record
    sheet.follow = lambda _sheet, target, _level: [_entry(book, target)]
    parts = [
        markup.heading(1, prose.inline(record.title, sheet.setting)),
        verdicts.summary(book, record.sections),
        way,
        path.line(book),
        verdicts.alarm(book, books.INDEX, record.sections),
        *body(sheet, record.main, 1),
        *_preambles(sheet, own=True),
        *_rest(sheet),
        questions.answers(sheet.answers),
        _foot(book, record.sections, None),
        script_words.data(_scripts(sheet)),
    ]
    return finished.page(parts, search.passages(book, books.INDEX))


def _part(book: Book, number: int, way: Html) -> Page:
    """One part: its sections, the definitions it is the first to use, and the way on."""
    part, record = book.parts[number], book.record
    page = book.page(part)
    sheet, mine = _sheet(book, page), book.sections(page)
    title = prose.inline(part.heading or part.name, sheet.setting)
    up = tag("a", record.title, href=books.way(page, books.INDEX))
    where = tag("span", _("{n} of {all}", n=number + 1, all=len(book.parts)), class_="lb-nowrap")
    place = tag("span", up, " · ", where)
    parts = [
        _around(book, number, place, class_="lb-around lb-eyebrow", aria_label=_("place in this lecture")),
        markup.heading(1, title, book.anchor(part)),
        verdicts.summary(book, mine),
        way,
        player.host(book, page),
        verdicts.alarm(book, page, mine),
        *body(sheet, part, 1),
        *_preambles(sheet, own=True),
        *_rest(sheet),
        questions.answers(sheet.answers),
        _around(book, number, class_="lb-around", aria_label=_("parts of this lecture")),
        _foot(book, mine, part),
        script_words.data(_scripts(sheet)),
    ]
    return finished.page(parts, search.passages(book, page))


def _scripts(sheet: Sheet) -> list[str]:
    """Our scripts that have something to do on a page that is drawn."""
    work = {
        "player": player.host(sheet.book, sheet.page),
        "answers": sheet.answers,
        "beside": any(sheet.links.values()),
    }
    return [name for name, there in work.items() if there]


# ---------------------------------------------------------------------------- around the sections


def _entry(book: Book, part: Section) -> Html:
    """A part on the contents page: its heading, the theses of its sections, its claims."""
    record, page = book.record, book.page(part)
    setting = prose.Setting(prose.Citations(book.bibliography), [])
    name = prose.inline(part.heading or part.name, setting)
    number = tag("span", book.parts.index(part) + 1, class_="lb-number")
    theses = [
        tag(
            "li",
            _link(f"{books.way(books.INDEX, page)}#{book.anchor(section)}", section, setting),
            " ",
            tag("small", _("aside"), " ") if section.aside else markup.NOTHING,
            verdicts.tick(record, section, book.recordings),
            class_="lb-off" if section.aside else None,
        )
        for section in record.inside(part)
    ]
    tally = verdicts.summary(book, book.sections(page))
    needs = tag("span", _("needs {device}", device=part.requires), class_="lb-badge")
    title = tag(
        "p",
        number,
        tag("a", name, href=books.way(books.INDEX, page)),
        " ",
        needs if part.requires else "",
        class_="lb-parttitle",
    )
    return tag("div", title, tally, tag("ul", *theses), class_="lb-part")


def _link(address: str, section: Section, setting: prose.Setting) -> Html:
    return tag("a", prose.inline(section.heading or section.name, setting), href=address)


def _around(book: Book, number: int, *place: Html, **attributes: str) -> Html:
    """The way back and on, after `place`."""
    page = book.page(book.parts[number])
    links = [
        *([_step(book, page, number - 1, _("Previous"), "prev")] if number else []),
        *([_step(book, page, number + 1, _("Next"), "next")] if number + 1 < len(book.parts) else []),
    ]
    return tag("nav", *place, *links, **attributes)


def _step(book: Book, page: str, number: int, word: str, rel: str) -> Html:
    part = book.parts[number]
    label = tag("small", word), tag("span", books.plain(part))
    return tag("a", *label, href=books.way(page, book.page(part)), rel=rel)


# ---------------------------------------------------------------------------- definitions, references, foot


def _preambles(sheet: Sheet, *, own: bool) -> list[Html]:
    """Imports and constants of the page's own file, folded; or else of the others that it shows."""
    book = sheet.book
    found = [it for it in book.preambles.get(sheet.page, ()) if own == (it.file == book.file[sheet.page])]
    return [block for it in found if (block := _preamble(sheet, it, own))]


def _preamble(sheet: Sheet, module: Section, own: bool) -> Html:
    text = sheet.source(module.file)
    kept = [
        number
        for it in statements(module)
        if it.kind in ("code", "claim")
        for number in range(it.first, max(it.end, it.last) + 1)
    ]
    title = [markup.text(_("Imports and constants"))]
    if not own:
        title += [markup.text(_(" of ")), tag("code", text.path.rpartition("/")[2])]
    return _fold(text, kept, markup.join(title), None) if kept else markup.NOTHING


def _rest(sheet: Sheet) -> list[Html]:
    """Definitions that this page is the first to use, and the works it cites."""
    found = sheet.book.definitions(sheet.page)
    parts: list[Html] = [markup.heading(2, _("Definitions"), "definitions")] if found else []
    for it in found:
        title = tag("code", it.name)
        if it.heading:
            title = markup.join([title, ": ", prose.inline(it.heading, sheet.setting)])
        numbers = range(it.first, it.last + 1)
        parts.append(_fold(sheet.source(it.file), numbers, title, sheet.book.anchor(it)))
    parts += _preambles(sheet, own=False)
    works = references(sheet.setting.citations)
    head = markup.heading(2, _("References"), "references")
    return [*parts, head, works] if works else parts


def _fold(text: Text, numbers: Sequence[int], title: Html, name: str | None) -> Html:
    """Lines of code that open on demand."""
    shown = [n for n in dict.fromkeys(numbers) if text[n].text.strip() or text[n].was_blank]
    rows = [text.row(n) for n in shown]
    block = tag("section", *text.copier(shown), *rows, class_="lb-code lb-plain")
    return tag("details", tag("summary", title), block, class_="lb-def", id=name)


def _foot(book: Book, mine: Sequence[Section], part: Section | None) -> Html:
    """Where every number on the page comes from."""
    record, environment = book.record, book.record.environment
    claims = verdicts.rulings(record, book.recordings, mine)
    versions = [f"{name} {version}" for name, version in sorted(environment.versions.items())]
    commit = environment.commit or ""
    facts = [
        verdicts.counts(claims) if claims else markup.NOTHING,
        markup.text(
            ngettext(
                "run on {machine}, {n} core",
                "run on {machine}, {n} cores",
                environment.cores,
                machine=environment.machine_name,
            )
        ),
        markup.text(", ".join([f"Python {environment.python}", *versions])),
        markup.text(f"{day(environment.date)}, {count(part.seconds if part else record.seconds, 1)} s"),
        markup.text(_("commit {id}", id=commit[:12] + "+" * commit.endswith("+")) if commit else ""),
        markup.text(_("seed {n}", n=environment.seed)),
        markup.text(_lines(book, mine, part) if part else book.path(record.main)),
    ]
    line = markup.join(filter(None, facts), " · ")
    return tag("p", line, class_="lb-foot")


def _lines(book: Book, mine: Sequence[Section], part: Section) -> str:
    """The file of a part, and the lines of it that the page shows."""
    last = max(section.last for section in mine if section.file == part.file)
    return _("{file}, lines {first} to {last}", file=book.path(part), first=part.first, last=last)
