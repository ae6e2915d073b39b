"""A record -> the Markdown pages of its lecture: the contents as a map, a page for each part, the questions.

`pages` is all that others use. Everything that the pages need is in the record; what is wrong with its
prose (unknown citations, formulas that cannot be shown, broken links) is added to `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from litbook.explore import html
from litbook.finding import Finding
from litbook.html import elements, player, questions, reading_time, script_words, verdicts
from litbook.html.elements import Html, Page, tag
from litbook.html.page_builder import PageBuilder
from litbook.html.section import body, definition, fold, heading, show
from litbook.html.verdicts import Ruling
from litbook.i18n import _, day, ngettext
from litbook.i18n import number as count
from litbook.markdown import to_html
from litbook.markdown.bibliography import BibliographyEntry
from litbook.markdown.citations_html import references
from litbook.markdown.links import Citations, NoteContext
from litbook.page import search, sitemap
from litbook.page import section as document
from litbook.page.blocks import (
    ClaimVerdict,
    CodeBlock,
    Explore,
    OutputShelf,
    Prose,
    Question,
    SectionCall,
    ShownValue,
    Storage,
)
from litbook.page.margin import describe_need
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.page.sitemap import Sitemap
from litbook.page.view import statements
from litbook.record.model import Grid, Record, Section
from litbook.values import drawings

EXCERPT = 12  # lines of code at most, on the front page
FEW = 2  # definitions that stand at a page's end as they are; more are one fold
NAMED = 2  # parts that the front page names of a lecture before it is opened
MOST_STEPS = 5  # of an argument in one row of the map


def pages(
    record: Record,
    bibliography: Mapping[str, BibliographyEntry] = sitemap.NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Finding] | None = None,
    others: Callable[[str], Sitemap | None] = lambda _: None,
    ways: Mapping[str, Html] | None = None,
    only: str = "",
) -> dict[str, Page]:
    """Relative paths to Markdown text; or `only` one.

    There are `index.md`, one page per part with the part's name, and `questions.md`.

    `recordings` are records of the same lecture from other devices. `problems`, if given, receives
    what is wrong with the prose, with file and line. `others` has the pages of the book's lectures by name,
    `ways` what else stands at the foot of pages. Raises `ValueError` where no page is called `only`.
    """
    book = sitemap.build_sitemap(record, bibliography, recordings, [] if problems is None else problems)
    book.others = others
    names = [*book.pages, *([sitemap.QUESTIONS] if _asks(book) else [])]
    names = [names[names.index(only)]] if only else names
    return {
        name: _question_list(book)
        if name == sitemap.QUESTIONS
        else _page(book, name, (ways or {}).get(name, elements.NOTHING))
        for name in names
    }


def titles(record: Record) -> list[tuple[str, str]]:
    """The pages' paths and titles in reading order, for a navigation."""
    book = sitemap.outline(record)
    return [
        (sitemap.INDEX, record.title),
        *((book.page(part), sitemap.plain_title(part)) for part in book.parts),
        *([(sitemap.QUESTIONS, _("Questions"))] if _asks(book) else []),
    ]


def _asks(book: Sitemap) -> bool:
    """Whether a lecture in parts asks anything: its questions have a page then."""
    pieces = (piece for section in book.record.sections for piece in section.pieces)
    return bool(book.parts) and any(piece.kind == "question" for piece in pieces)


def lecture_list(lectures: Sequence[LectureRuns]) -> Page:
    """The page that lists all lectures, each with its title, parts and claims."""
    rulings = [ruling for e in lectures for ruling in verdicts.rulings(e.record, e.recordings)]
    blocks = [elements.heading(1, _("Lectures")), verdicts.summary(rulings)]
    for edition in lectures:
        record, recordings = edition.record, edition.recordings
        title, *links = _links(edition.sitemap, f"{edition.folder}/", record.children())
        ticks = (verdicts.claims_mark(record, section, recordings) for section in record.children())
        items = (tag("li", link, " ", tick) for link, tick in zip(links, ticks, strict=True))
        tally = verdicts.summary(verdicts.rulings(record, recordings))
        head = tag("p", title, class_="lb-parttitle")
        blocks.append(tag("div", head, tally, tag("ul", *items), class_="lb-part"))
    return elements.page(blocks, [SearchPassage("", _("Lectures"))])


def lecture_overview(lectures: Sequence[LectureRuns]) -> Html:
    """Every lecture's title, how long its core takes to read, and its parts, as links from the front page."""
    rows = []
    for edition in lectures:
        title, *links = _links(edition.sitemap, f"lectures/{edition.folder}/", edition.sitemap.parts)
        time = _("{time} to read", time=reading_time.hours(edition.sitemap))
        rows.append(tag("p", title, tag("small", " · ", time)))
        if links:
            first = elements.join((sitemap.plain_title(part) for part in edition.sitemap.parts[:NAMED]), ", ")
            more = ngettext(" and {n} more part", " and {n} more parts", len(links) - NAMED)
            summary = tag("summary", first, more if len(links) > NAMED else "")
            rows.append(tag("details", summary, tag("ol", *(tag("li", link) for link in links))))
    return tag("div", *rows, class_="lb-all", data_search_exclude="1")


def part_minutes(lectures: Sequence[LectureRuns], name: str) -> Html:
    """How long the part `name` takes to read, for the front page: `8 min`; else empty."""
    for edition in lectures:
        for part in edition.sitemap.parts:
            if part.name == name:
                page = edition.sitemap.page(part)
                return reading_time.minutes(edition.sitemap, edition.sitemap.sections(page), short=True)
    return elements.NOTHING


def _links(book: Sitemap, folder: str, sections: Sequence[Section]) -> list[Html]:
    """Links to a lecture whose pages are in `folder`, and to these sections of it."""
    setting = NoteContext(Citations(sitemap.NOTHING_CITED))
    links = [tag("a", to_html.inline(book.record.title, setting), href=folder)]
    for section in sections:  # a part's page, or where on the one page it stands
        place = (
            sitemap.relative_url(sitemap.INDEX, book.page(section))
            if book.parts
            else f"#{book.anchor(section)}"
        )
        words = to_html.inline(section.heading or section.name, setting)
        links.append(tag("a", words, href=folder + place))
    return links


def drawing(lectures: Sequence[LectureRuns], name: str) -> Html:
    """The first storage or picture to play with in the section `name`, for the front page; else empty."""
    for edition in lectures:
        setting = NoteContext(Citations(sitemap.NOTHING_CITED))
        for section in (section for section in edition.record.sections if section.name == name):
            for block in document.blocks(edition.sitemap, section):
                if isinstance(block, Explore):
                    runs = any(piece.live is block.grid for piece in section.pieces)
                    up = f"lectures/{edition.folder}/" if runs else ""
                    figure = html.figure(block, f"explore-{name}", setting, up)
                    return elements.join([figure, _explore_scripts(isinstance(block.grid, Grid), runs, "")])
                for thing in block.things if isinstance(block, OutputShelf) else ():
                    if isinstance(thing, Storage):
                        return drawings.storage(thing.views)
    return elements.NOTHING


def _explore_scripts(grids: bool, scripts: bool, up: str) -> Html:
    """The scripts that pictures to play with need, which lie `up` from their page."""
    files = {"explore.js": grids, "live.js": scripts}
    needed = (f"{up}assets/litbook/{file}" for file, is_needed in files.items() if is_needed)
    return elements.join(tag("script", src=address, defer=True) for address in needed)


def excerpt(record: Record) -> Html:
    """The first short block of code with a value and a claim that holds beside its lines; else empty.

    It is shown on another page: nothing in it is an address.
    """
    sheet = _page_builder(sitemap.build_sitemap(record, sitemap.NOTHING_CITED, (), []), sitemap.INDEX)
    sheet.links, sheet.anchored = {}, False
    for section in (section for section in record.sections if section.kind == "section"):
        for block in document.blocks(sheet.book, section):
            if not isinstance(block, CodeBlock) or len(block.rows) > EXCERPT:
                continue
            beside = [entry for row in block.rows for entry in row.entries]
            verdicts_ = {entry.verdict for entry in beside if isinstance(entry, ClaimVerdict)}
            if verdicts_ == {"holds"} and any(isinstance(entry, ShownValue) for entry in beside):
                return show(sheet, section, 2, [block])[0]
    return elements.NOTHING


# ---------------------------------------------------------------------------- the pages


def _page(book: Sitemap, name: str, way: Html) -> Page:
    """One page: of a lecture in parts the contents, or one part; else all of it."""
    record, sheet, number = book.record, _page_builder(book, name), book.pages.index(name)
    if number:  # one part: its sections, the definitions it is the first to use, and the ways back and on
        part, mine = book.parts[number - 1], book.sections(name)
        title, anchor = part.heading or part.name, book.anchor(part)
        ways = list[Html]()
        for at, word, rel in ((number - 1, _("Previous"), "prev"), (number + 1, _("Next"), "next")):
            if 0 < at < len(book.pages):
                words = tag("small", word), tag("span", sitemap.plain_title(book.parts[at - 1]))
                ways.append(tag("a", *words, href=sitemap.relative_url(name, book.pages[at]), rel=rel))
        where = tag("span", _("{n} of {all}", n=number, all=len(book.parts)), class_="lb-nowrap")
        place = tag(
            "span", tag("a", record.title, href=sitemap.relative_url(name, sitemap.INDEX)), " · ", where
        )
        names = _("place in this lecture"), _("parts of this lecture")
        above = tag("nav", place, *ways, class_="lb-around lb-eyebrow", aria_label=names[0])
        below = tag("nav", *ways, class_="lb-around", aria_label=names[1])
    else:
        part, mine = record.main, [*record.sections]
        title, anchor, above, below = record.title, "", elements.NOTHING, elements.NOTHING
    rulings = verdicts.rulings(record, book.recordings, mine)
    steps = player.host(book, name)
    head = [
        above,
        elements.heading(1, to_html.inline(title, sheet.setting), anchor),
        tag("p", reading_time.minutes(book, mine), class_="lb-path") if number else reading_time.line(book),
        elements.NOTHING if book.parts else verdicts.summary(rulings),
        steps,
        verdicts.failures_box(book, name, mine, sheet.setting),
    ]
    text = body(sheet, part, 1) if number or not book.parts else _map(sheet)
    imports = _preambles(sheet, same_file=True)
    head += [*text, *imports] if book.parts else [*imports, *text]
    # Definitions that this page is the first to use, and the works it cites.
    definitions = [it for it in book.definitions(name) if it.key not in sheet.shown]
    if definitions:
        folds = [definition(sheet, it) for it in definitions]
        head += [elements.heading(2, _("Definitions"), "definitions")]
        if len(folds) > FEW:
            summary = tag("summary", _("{n} names, and the code of each", n=len(folds)))
            folds = [tag("details", summary, *folds, class_="lb-defs")]
        head += folds
    head += [*_preambles(sheet, same_file=False), *references(sheet.setting.citations)]
    asked = sheet.answers or (book.parts and not number)  # contents say what is answered
    scripts = {"player": steps, "answers": asked, "beside": any(sheet.links.values())}
    foot = [
        _explore_scripts(sheet.explored > sheet.live, sheet.live > 0, f"{sheet.lecture_url}../../"),
        questions.answers(sheet.answers),
        below,
        way,
        _provenance(book, mine, part if number else None, rulings),
        script_words.data([script for script, work in scripts.items() if work]),
    ]
    return elements.page([*head, *foot], search.passages(book, name))


def _page_builder(book: Sitemap, page: str) -> PageBuilder:
    setting = NoteContext(
        Citations(book.bibliography, opens=True),
        book.problems,
        resolve=lambda name: sitemap.resolve_name(book, page, name),
        number=lambda label: sitemap.resolve_label(book, page, label),
    )
    sheet = PageBuilder(book, page, setting, _render_tree, sitemap.links(book, page))
    sheet.set_line(book.record.main.file, 1)
    return sheet


def _render_tree(sheet: PageBuilder, target: Section, level: int) -> list[Html]:
    """A section stands where it is called; an aside with its body folded."""
    title, blocks = heading(sheet, target, level + 1), body(sheet, target, level + 1)
    record = sheet.record
    # An aside in an aside lies in its fold, and what waits for a device has one of its own.
    if not target.aside or record.by_key[target.parent].aside or document.waits(sheet.book, target):
        return [title, *blocks]
    rulings = verdicts.rulings(record, sheet.book.recordings, record.tree(target))
    words = [elements.text(_("Aside")), *([verdicts.counts(rulings)] if rulings else [])]
    summary = tag("summary", elements.join(words, elements.text(" · ")))
    return [title, tag("details", summary, *map(elements.without_heading, blocks), class_="lb-aside")]


def _map(sheet: PageBuilder) -> list[Html]:
    """The contents of a lecture in parts: what `main()` says, and its parts in the steps of the argument.

    A step is a note right before a part: what it says stands above the parts that follow. Parts before the
    first step, or without any, are a box of their own.
    """
    book, main = sheet.book, sheet.record.main
    made, note, steps = list[Html](), list[Html](), list[tuple[list[Html], list[Html]]]()
    for block in document.blocks(book, main):
        if isinstance(block, SectionCall):
            if note or not steps:
                steps.append((note, []))
                note = []
            steps[-1][1].append(_entry(book, sheet.record.by_key[block.section]))
        elif isinstance(block, Prose):
            made, note = [*made, *note], show(sheet, main, 1, [block])
        else:
            made += show(sheet, main, 1, [block])
    if len(steps) == 1:  # its note is about all parts
        made += [*steps[0][0], *steps[0][1]]
    else:
        boxes = [tag("li", *words, tag("div", *parts), class_="lb-step") for words, parts in steps]
        # As many in a row as there is room for, and rows of about the same length.
        columns = len(boxes) if len(boxes) <= MOST_STEPS else -(-len(boxes) // 2)
        made.append(tag("ol", *boxes, class_="lb-map", style=f"--lb-columns:{columns}"))
    if _asks(book):
        n = sum(
            isinstance(block, Question) for s in book.record.sections for block in document.blocks(book, s)
        )
        words = ngettext("The question of this lecture", "All {n} questions of this lecture", n)
        link = tag("a", words, href=sitemap.relative_url(sitemap.INDEX, sitemap.QUESTIONS))
        made.append(tag("p", link, class_="lb-link"))
    return [*made, *note]


def _question_list(book: Sitemap) -> Page:
    """All questions of a lecture, by its parts; what a reader answers here is answered there, too."""
    name, record = sitemap.QUESTIONS, book.record
    setting = NoteContext(
        Citations(book.bibliography, opens=True),
        [],  # what is wrong with their words is said of the page that asks them
        resolve=lambda target: sitemap.resolve_name(book, name, target),
        number=lambda label: sitemap.resolve_label(book, name, label),
    )
    answered, blocks = list[Html](), list[Html]()
    for part in book.parts:
        page = book.page(part)
        there = sitemap.relative_url(name, page)
        asked = list[Html]()
        for section in book.sections(page):
            setting.ids, setting.level = book.anchor(section), 2
            for block in document.blocks(book, section):
                if isinstance(block, Question):
                    place = sitemap.relative_url(name, page, book.anchor(section))
                    asked.append(questions.box(block, section, setting, answered, there, place))
        if asked:
            link = tag("a", to_html.inline(part.heading or part.name, setting), href=there)
            blocks += [elements.heading(2, link, book.anchor(part)), *asked]
    title = _("Questions")
    back = tag("a", record.title, href=sitemap.relative_url(name, sitemap.INDEX))
    says = _("Every question of the lecture. The heading above one leads to where it is asked.")
    head = [
        tag("nav", back, class_="lb-around lb-eyebrow", aria_label=_("place in this lecture")),
        elements.heading(1, title),
        tag("p", says, class_="lb-path"),
        tag("div", class_="lb-questions"),  # here a script says how many are answered
    ]
    foot = [
        *references(setting.citations),
        questions.answers(answered),
        script_words.data(["answers"]),
    ]
    passage = SearchPassage("", f"{title}: {record.title}")
    return elements.page([*head, *blocks, *foot], [passage])


def _entry(book: Sitemap, part: Section) -> Html:
    """A part on the contents page: its heading, how long it takes, and folded the theses of its sections."""
    record, page = book.record, book.page(part)
    setting = NoteContext(Citations(book.bibliography))
    way, needs = sitemap.relative_url(sitemap.INDEX, page), elements.NOTHING
    name = to_html.inline(part.heading or part.name, setting)
    theses = []
    for section in record.children(part):
        words = to_html.inline(section.heading or section.name, setting)
        link = tag("a", words, href=f"{way}#{book.anchor(section)}")
        aside = tag("small", _("aside"), " ") if section.aside else elements.NOTHING
        theses.append(tag("li", link, " ", aside, class_="lb-off" if section.aside else None))
    if part.requires:
        needs = tag("span", _("needs {device}", device=describe_need(part.requires)), class_="lb-badge")
    number = tag("span", book.parts.index(part) + 1, class_="lb-number")
    title = tag("p", number, tag("a", name, href=way), " ", needs, class_="lb-parttitle")
    mine = book.sections(page)
    asides = sum(section.aside for section in record.children(part))
    core = len(theses) - asides
    counted = (
        ngettext("{n} section", "{n} sections", core) if core else ngettext("{n} aside", "{n} asides", asides)
    )
    says = [reading_time.minutes(book, mine, short=True), counted if theses else ""]
    summary = tag("summary", elements.join(filter(None, says), " · "))
    return tag("div", title, tag("details", summary, tag("ul", *theses)), class_="lb-part")


# ---------------------------------------------------------------------------- definitions, references, foot


def _preambles(sheet: PageBuilder, *, same_file: bool) -> list[Html]:
    """Imports and constants of the page's own file, folded; or else of the others that it shows."""
    book, blocks = sheet.book, []
    for module in book.preambles.get(sheet.page, ()):
        text = sheet.source(module.file)
        lines = [n for s in statements(module) if s.kind in ("code", "claim") for n in s.line_range]
        title = elements.text(_("Imports and constants"))
        if not same_file:
            title = elements.join(
                [title, elements.text(_(" of ")), tag("code", text.path.rpartition("/")[2])]
            )
        if lines and same_file == (module.file == book.file[sheet.page]):
            blocks.append(fold(text, lines, title))
    return blocks


def _provenance(
    book: Sitemap, mine: Sequence[Section], part: Section | None, rulings: Sequence[Ruling]
) -> Html:
    """Where every number on the page comes from."""
    record, environment = book.record, book.record.environment
    cores = ngettext(
        "run on {machine}, {n} core", "run on {machine}, {n} cores", environment.cores,
        machine=environment.machine_name,
    )  # fmt: skip
    versions = [f"{name} {version}" for name, version in sorted(environment.versions.items())]
    commit = environment.commit or ""
    file = book.path(part or record.main)
    if part:  # and the lines of it that the page shows
        last = max(section.last for section in mine if section.file == part.file)
        file = _("{file}, lines {first} to {last}", file=file, first=part.first, last=last)
    facts = [
        cores,
        ", ".join([f"Python {environment.python}", *versions]),
        f"{day(environment.date)}, {count((part or record).seconds, 1)} s",
        _("commit {id}", id=commit[:12] + "+" * commit.endswith("+")) if commit else "",
        _("seed {n}", n=environment.seed),
        file,
    ]
    line = [*([verdicts.counts(rulings)] if rulings else []), *map(elements.text, filter(None, facts))]
    return tag("p", elements.join(line, " · "), class_="lb-foot")
