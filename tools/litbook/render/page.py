"""A record -> the Markdown pages of its lecture: a contents page, and one page for each part.

`pages` is all that others use. Everything that the pages need is in the record; what is wrong with its
prose (unknown citations, formulas that cannot be shown, broken links) is added to `problems`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from litbook.errors import Problem
from litbook.render import code, markup, prose
from litbook.render.bibliography import Bibliography, Entry
from litbook.render.evidence import day
from litbook.render.margin import SIGNS
from litbook.render.section import Sheet, anchor, body, failures, heading
from litbook.trace import Claim, Function, Record

NOTHING_CITED: Bibliography = {}
INDEX = "index.md"


@dataclass
class _Book:
    """A lecture's pages: which function stands where."""

    record: Record
    bibliography: Bibliography
    recordings: Sequence[Record]
    problems: list[Problem]
    lines: Sequence[code.Line]
    main: int
    parts: list[int]
    place: dict[int, str] = field(default_factory=dict)  # function -> page


def pages(
    record: Record,
    bibliography: Mapping[str, Entry] = NOTHING_CITED,
    recordings: Sequence[Record] = (),
    problems: list[Problem] | None = None,
) -> dict[str, str]:
    """Relative paths to Markdown text: `index.md`, and one page per part with the part's name.

    `recordings` are records of the same lecture from other devices. `problems`, if given, receives
    what is wrong with the prose, with file and line.
    """
    book = _book(record, bibliography, recordings, [] if problems is None else problems)
    if not book.parts:
        return {INDEX: _single(book)}
    found = {INDEX: _contents(book)}
    for i, part in enumerate(book.parts):
        found[_file(book, part)] = _part(book, i)
    return found


def titles(record: Record) -> list[tuple[str, str]]:
    """The pages' paths and titles in reading order, for a navigation."""
    book = _book(record, NOTHING_CITED, (), [])
    named = [(_file(book, part), _plain(record.functions[part])) for part in book.parts]
    return [(INDEX, record.title), *named]


# ---------------------------------------------------------------------------- what stands where


def _book(
    record: Record, bibliography: Bibliography, recordings: Sequence[Record], problems: list[Problem]
) -> _Book:
    functions = record.functions
    main = next((i for i, f in enumerate(functions) if f.kind == "main"), 0)
    top = record.sections()
    parts = top if any(record.sections(i) for i in top) else []
    lines = code.lines(record.sources[0].text, record.sources[0].cuts)
    book = _Book(record, bibliography, recordings, problems, lines, main, parts)
    book.place[main] = INDEX
    for child in top:
        for index in _tree(record, child):
            book.place[index] = _file(book, child) if parts else INDEX
    _place_helpers(book)
    return book


def _tree(record: Record, index: int) -> list[int]:
    """A section and all that it reaches."""
    return [index, *(deeper for child in record.sections(index) for deeper in _tree(record, child))]


def _file(book: _Book, part: int) -> str:
    name = book.record.functions[part].name.replace("_", "-").strip("-")
    return f"{'part-index' if name == 'index' else name}.md"


def _place_helpers(book: _Book) -> None:
    """Each helper goes to the page of the first part that names it, perhaps through another helper."""
    functions = book.record.functions
    order = [book.main, *(i for part in (book.parts or book.record.sections()) for i in _tree(book.record, part))]
    helpers = [i for i, f in enumerate(functions) if f.kind in ("helper", "class") and _is_outer(book, i) and not f.hidden]
    waiting = list(order)
    while waiting:
        index = waiting.pop(0)
        text = "\n".join(line.text for line in book.lines[functions[index].first : functions[index].last])
        for helper in helpers:
            if helper not in book.place and re.search(rf"\b{re.escape(functions[helper].name)}\b", text):
                book.place[helper] = _first_part(book, book.place[index])
                waiting.insert(0, helper)
    for helper in helpers:
        book.place.setdefault(helper, _file(book, book.parts[-1]) if book.parts else INDEX)


def _first_part(book: _Book, page: str) -> str:
    return _file(book, book.parts[0]) if page == INDEX and book.parts else page


def _is_outer(book: _Book, index: int) -> bool:
    """Whether no other function holds this one."""
    it = book.record.functions[index]
    around = (f for f in book.record.functions if f is not it and f.kind != "module")
    return not any(f.first <= it.first and it.last <= f.last for f in around)


def _address(book: _Book, page: str, name: str) -> str | None:
    """From `page`, the address of the function called `name`; None where it is on no page."""
    for index, where in book.place.items():
        if book.record.functions[index].name == name:
            return ("" if where == page else _way(page, where)) + f"#{anchor(name)}"
    return None


def _way(page: str, other: str) -> str:
    """The relative address between two pages; every page is a folder of its own, the index is theirs."""
    up = "" if page == INDEX else "../"
    return up + ("" if other == INDEX else other.removesuffix(".md") + "/") or "./"


# ---------------------------------------------------------------------------- the pages


def _sheet(book: _Book, page: str) -> Sheet:
    setting = prose.Setting(
        prose.Citations(book.bibliography), book.problems, resolve=lambda name: _address(book, page, name)
    )
    return Sheet(book.record, book.lines, book.recordings, setting, _follow)


def _follow(sheet: Sheet, target: int, level: int) -> list[str]:
    """A section stands where it is called."""
    return [*heading(sheet, target, level + 1), *body(sheet, target, level + 1)]


def _single(book: _Book) -> str:
    """A lecture without parts."""
    sheet = _sheet(book, INDEX)
    mine = [i for i, page in book.place.items() if page == INDEX]
    parts = [f"# {_title(sheet, book.record.title)}", _summary(book, mine), _alarm(book, mine)]
    parts += [_preamble(sheet), *body(sheet, book.main, 1), *_rest(book, sheet, INDEX), _foot(book, mine, None)]
    return _joined(parts)


def _contents(book: _Book) -> str:
    """The lecture's contents: what main says, and its parts with their theses and claims."""
    sheet = _sheet(book, INDEX)
    everything = list(range(len(book.record.functions)))
    sheet.follow = lambda _, target, __: [_entry(book, target)]
    parts = [f"# {_title(sheet, book.record.title)}", _summary(book, everything), _alarm(book, everything)]
    parts += [*body(sheet, book.main, 1), _preamble(sheet), *_rest(book, sheet, INDEX), _foot(book, everything, None)]
    return _joined(parts)


def _part(book: _Book, number: int) -> str:
    """One part: its sections, the helpers it is the first to use, and the way on."""
    index, record = book.parts[number], book.record
    page = _file(book, index)
    sheet = _sheet(book, page)
    mine = [i for i, where in book.place.items() if where == page]
    title = _title(sheet, record.functions[index].heading or record.functions[index].name)
    up = markup.tag("a", markup.text(record.title), href=_way(page, INDEX))
    parts = [
        markup.tag("p", f"{up} · {number + 1} of {len(book.parts)}", class_="lb-eyebrow"),
        f"# {title} {{#{anchor(record.functions[index].name)}}}",
        _summary(book, mine),
        _alarm(book, mine),
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


def _plain(function: Function) -> str:
    return function.heading.replace("`", "") or function.name


# ---------------------------------------------------------------------------- around the sections


def _summary(book: _Book, mine: Sequence[int]) -> str:
    """`41 claims on this page, all holding.`"""
    claims = [c for c in book.record.claims if c.function in mine]
    return markup.tag("p", _verdicts(claims), class_="lb-summary") if claims else ""


def _verdicts(claims: Sequence[Claim]) -> str:
    counts = {verdict: sum(c.verdict == verdict for c in claims) for verdict in SIGNS}
    if counts["holds"] == len(claims):
        return f'<span class="lb-ok">✓</span> {_claims(len(claims))}, {"all hold" if len(claims) != 1 else "it holds"}'
    named = {"holds": "hold", "fails": "fail", "not-reached": "not reached", "needs-device": "on another device"}
    parts = [
        markup.tag("span", f"{SIGNS[v]} {n} {named[v]}", class_=f"lb-tally lb-{v}") for v, n in counts.items() if n
    ]
    return f"{_claims(len(claims))}: " + " · ".join(parts)


def _claims(count: int) -> str:
    return f"{count:,} claim" + ("" if count == 1 else "s")


def _alarm(book: _Book, mine: Sequence[int]) -> str:
    """A box at the top that names every failure, with links to the lines."""
    claims, errors = failures(book.record, mine)
    if not claims and not errors:
        return ""
    path = book.record.sources[0].path
    items = [_alarm_item(book, c.function, c.line, f"{path}:{c.line}", c.caption or c.text) for c in claims]
    items += [_alarm_item(book, e.function, e.line, f"{path}:{e.line}", e.message) for e in errors]
    head = f"{_claims(len(claims))} {'fails' if len(claims) == 1 else 'fail'}" if claims else ""
    tail = f"{len(errors)} error{'' if len(errors) == 1 else 's'}" if errors else ""
    title = markup.tag("p", markup.tag("strong", " and ".join(filter(None, (head, tail)))))
    return markup.tag("div", title, markup.tag("ul", *items), class_="lb-alarm", role="note")


def _alarm_item(book: _Book, function: int, line: int, label: str, what: str) -> str:
    where = book.place.get(function, INDEX)
    only = where == INDEX or not book.parts
    # The contents page lists the failures of all parts; a part lists its own. Both can go by the function.
    link = markup.tag("a", markup.text(label), href=f"#L{line}") if only else markup.text(label)
    return markup.tag("li", link, " ", markup.text(what))


def _entry(book: _Book, part: int) -> str:
    """A part on the contents page: its heading, the theses of its sections, its claims."""
    record, functions = book.record, book.record.functions
    page = _file(book, part)
    mine = [i for i, where in book.place.items() if where == page]
    claims = [c for c in record.claims if c.function in mine]
    setting = prose.Setting(prose.Citations(book.bibliography), [])
    name = prose.inline(functions[part].heading or functions[part].name, setting)
    number = markup.tag("span", str(book.parts.index(part) + 1), class_="lb-number")
    theses = [
        markup.tag("li", _linked(f"{_way(INDEX, page)}#{anchor(functions[i].name)}", functions[i], setting), " ", _tick(record, i))
        for i in record.sections(part)
    ]
    tally = markup.tag("p", _verdicts(claims), class_="lb-summary") if claims else ""
    needs = markup.tag("span", f"needs {markup.text(functions[part].requires)}", class_="lb-badge") if functions[part].requires else ""
    title = markup.tag("p", number, markup.tag("a", name, href=_way(INDEX, page)), " ", needs, class_="lb-parttitle")
    return markup.tag("div", title, tally, markup.tag("ul", *theses), class_="lb-part")


def _linked(address: str, function: Function, setting: prose.Setting) -> str:
    return markup.tag("a", prose.inline(function.heading or function.name, setting), href=address)


def _tick(record: Record, index: int) -> str:
    """The claims of a section and of those below it as one mark."""
    verdicts = [c.verdict for c in record.claims if c.function in _tree(record, index)]
    if not verdicts:
        return ""
    worst = next((v for v in ("fails", "not-reached", "needs-device") if v in verdicts), "holds")
    count = verdicts.count(worst)
    word = {"holds": "hold", "fails": "fail", "not-reached": "not reached", "needs-device": "need another device"}[worst]
    return markup.tag("span", f"{SIGNS[worst]} {count}", class_=f"lb-tally lb-{worst}", title=f"{count} {word}")


def _around(book: _Book, number: int) -> str:
    """The way back and on."""
    page = _file(book, book.parts[number])
    links = [
        _step(book, page, number - 1, "Previous", "prev") if number else "",
        _step(book, page, number + 1, "Next", "next") if number + 1 < len(book.parts) else "",
    ]
    return markup.tag("nav", *links, class_="lb-around", aria_label="parts of this lecture")


def _step(book: _Book, page: str, number: int, word: str, rel: str) -> str:
    function = book.record.functions[book.parts[number]]
    label = markup.tag("small", word) + markup.tag("span", markup.text(_plain(function)))
    return markup.tag("a", label, href=_way(page, _file(book, book.parts[number])), rel=rel)


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
        if s.function == module and s.kind in ("code", "claim") and not sheet.lines[s.first - 1].text.startswith("if __name__")
        for n in range(s.first, max(s.end, s.last) + 1)
    ]
    return _folded(sheet, kept, "Imports and constants", None) if kept else ""


def _rest(book: _Book, sheet: Sheet, page: str) -> list[str]:
    """Definitions that this page is the first to use, and the works it cites."""
    functions = book.record.functions
    found = [i for i, where in book.place.items() if where == page and functions[i].kind in ("helper", "class")]
    parts = ["## Definitions {#definitions}"] if found else []
    for index in sorted(found, key=lambda i: functions[i].first):
        it = functions[index]
        name = markup.tag("code", markup.text(it.name))
        title = f"{name} {prose.inline(it.heading, sheet.setting)}" if it.heading else name
        parts.append(_folded(sheet, list(range(it.first, it.last + 1)), title, anchor(it.name)))
    references = sheet.setting.citations.references()
    return [*parts, "## References {#references}", references] if references else parts


def _folded(sheet: Sheet, numbers: Sequence[int], title: str, name: str | None) -> str:
    """Lines of code that open on demand."""
    rows = [
        f'<a class="lb-n" id="L{n}" href="#L{n}">{n}</a><code class="lb-c">{sheet.lines[n - 1].html() or " "}</code>'
        for n in dict.fromkeys(numbers)
        if sheet.lines[n - 1].text.strip() or sheet.lines[n - 1].was_blank
    ]
    block = markup.tag("div", *rows, class_="lb-code lb-plain")
    return markup.tag("details", markup.tag("summary", title), block, class_="lb-def", id=name)


def _foot(book: _Book, mine: Sequence[int], part: Function | None) -> str:
    """Where every number on the page comes from."""
    record, environment = book.record, book.record.environment
    claims = [c for c in record.claims if c.function in mine]
    device = environment.device
    machine = device.name if device.kind != "cpu" else environment.cpu or device.name
    versions = [f"{name} {version}" for name, version in sorted(environment.versions.items())]
    facts = [
        _verdicts(claims) if claims else "",
        markup.text(f"run on {machine}, {environment.cores} core{'' if environment.cores == 1 else 's'}"),
        markup.text(", ".join([f"Python {environment.python}", *versions])),
        markup.text(f"{day(environment.date)}, {_seconds(record, mine, part):.1f} s"),
        markup.text(f"commit {environment.commit[:12]}{'+' if environment.commit.endswith('+') else ''}") if environment.commit else "",
        markup.text(f"seed {environment.seed}"),
        markup.text(f"{record.sources[0].path}" + (f", lines {part.first} to {_last(book, mine)}" if part else "")),
    ]
    return markup.tag("p", " · ".join(f for f in facts if f), class_="lb-foot")


def _seconds(record: Record, mine: Sequence[int], part: Function | None) -> float:
    if part is None:
        top = [record.functions[i].name for i in record.sections()]
        return math.fsum(record.seconds.get(name, 0.0) for name in top)
    return record.seconds.get(part.name) or math.fsum(record.seconds.get(record.functions[i].name, 0.0) for i in mine)


def _last(book: _Book, mine: Sequence[int]) -> int:
    kinds = ("part", "section")
    return max(book.record.functions[i].last for i in mine if book.record.functions[i].kind in kinds)
