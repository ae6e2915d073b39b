"""One function of a lecture -> the Markdown blocks of its place on a page."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from litbook.errors import Place
from litbook.record.model import Claim, Error, Mapping, Piece, Record, Statement, Tensor, Value
from litbook.render import (
    bits,
    cards,
    drawings,
    figures,
    fitting,
    margin,
    markup,
    outline,
    prose,
    questions,
    values,
)
from litbook.render.code import Line, Link
from litbook.render.evidence import Evidence, gather, others, surfaced, unspoken

TALL = 2400  # characters of output beyond which its box scrolls
UNSPOKEN = {"**Check yourself.** ": "lb-ask", "**Commonly said:** ": "lb-mis"}  # by how `prose` begins
TOLD = ("note", "misbelief", "question", "figure", "image", "link")


@dataclass
class Sheet:
    """One page in the making: the record it is drawn from, and what has been put on it."""

    record: Record
    lines: Sequence[Line]
    recordings: Sequence[Record]
    setting: prose.Setting
    follow: Callable[[Sheet, int, int], list[str]]  # what stands where a section is called
    links: dict[int, list[Link]] = field(default_factory=dict)  # by line: helpers' names and definitions
    pictures: int = 0

    @property
    def path(self) -> str:
        """The lecture's file, as messages name it."""
        return self.record.sources[0].path

    def at(self, line: int) -> None:
        """Problems found from now on belong to this line."""
        text = self.lines[line - 1].text if 0 < line <= len(self.lines) else ""
        self.setting.place = Place(self.path, line, 1, text)


Home = Callable[[int], int]  # line -> the shown line beside which its values stand


@dataclass
class _Shelf:
    """What a section has already put on its shelves."""

    drawn: set[tuple[str, int | None]] = field(default_factory=set)
    views: dict[int, list[drawings.View]] = field(default_factory=dict)


def heading(sheet: Sheet, index: int, level: int) -> list[str]:
    """The section's heading with the anchor of its name, and the anchors of the lines it stands for."""
    function = sheet.record.functions[index]
    sheet.at(function.first)
    text = markup.for_heading(prose.inline(function.heading or function.name, sheet.setting))
    return [f"{'#' * min(6, level)} {text} {{#{anchor(function.name)}}}"]


def anchor(name: str) -> str:
    """The id of a function on its page; never that of a line."""
    return f"fn-{name}" if name[:1] == "L" and name[1:].isdecimal() else name


def body(sheet: Sheet, index: int, level: int) -> list[str]:
    """Prose, code and what came out of function `index`, in source order; its headings below `level`."""
    record, function = sheet.record, sheet.record.functions[index]
    sheet.setting.ids, sheet.setting.level = anchor(function.name), level
    elsewhere = others(record, index, sheet.recordings)
    evidence = gather(record, index, sheet.recordings)
    sheet.at(function.first)
    notes = margin.build(evidence, elsewhere, sheet.setting, record)
    for error in evidence.errors:
        if error.kind == "inspect":
            continue  # its value says so already
        notes.add(surfaced(record, error, function), margin.error(error))
    silent = [] if evidence.stamp else [s for _, s in record.statements_of.get(index, []) if s.prose]
    items = outline.outline(record, index, sheet.lines, lambda a, b: _tells(evidence, silent, a, b))
    code_lines = sorted(n for item in items if isinstance(item, outline.Code) for n in item.lines)
    home, shelf = _home(code_lines), _Shelf()
    beside = _beside(notes, home)
    parts: list[str] = []
    if function.requires and _absent(evidence):
        why = margin.absence(function.requires, evidence, elsewhere)
        parts.append(markup.tag("p", markup.text(why), class_="lb-elsewhere"))
    if not code_lines:
        parts += _unhoused(sheet, evidence, beside, shelf, index)
    at = function.first - 1
    for item in items:
        start, end = _span(item)
        parts.append(_anchors(n for n in range(at + 1, end + 1) if n not in code_lines))
        at = max(at, end)
        if isinstance(item, outline.Call):
            parts += sheet.follow(sheet, item.target, level)
            sheet.setting.ids, sheet.setting.level = anchor(function.name), level
        elif isinstance(item, outline.Told):
            parts += _told(sheet, evidence, silent, start, end)
        else:
            parts += [
                _code(sheet, item.lines, beside, evidence),
                *_shelved(sheet, evidence, index, shelf, _at_home(home, item.lines)),
            ]
    parts.append(_anchors(n for n in range(at + 1, function.last + 1) if n not in code_lines))
    return [part for part in parts if part]


def _span(item: outline.Item) -> tuple[int, int]:
    if isinstance(item, outline.Code):
        return item.lines[0], item.lines[-1]
    return (item.first, item.last) if isinstance(item, outline.Told) else (item.line, item.line)


def _tells(evidence: Evidence, silent: Sequence[Statement], first: int, last: int) -> bool:
    said = any(p.kind in TOLD and first <= p.line <= last for p in evidence.pieces)
    return said or any(first <= s.first <= last for s in silent)


def _anchors(lines: Iterable[int]) -> str:
    """Places for links to lines that are not shown as code."""
    spans = [f'<span id="L{n}"></span>' for n in lines]
    return markup.tag("div", *spans, class_="lb-at") if spans else ""


# ---------------------------------------------------------------------------- where it ran


def _absent(evidence: Evidence) -> bool:
    return bool(evidence.stamp) or not evidence.calls


# ---------------------------------------------------------------------------- prose and pictures


def _told(sheet: Sheet, evidence: Evidence, silent: Sequence[Statement], first: int, last: int) -> list[str]:
    """The prose and pictures of these lines; of a note that never ran, what it says anyway."""
    parts: list[str] = []
    for note in silent:
        if first <= note.first <= last:
            sheet.at(note.first)
            parts += _unspoken(sheet, note)
    for piece in evidence.pieces:
        if piece.kind in TOLD and first <= piece.line <= last:
            sheet.at(piece.line)
            parts += _piece(sheet, piece, evidence)
    return parts


def _unspoken(sheet: Sheet, note: Statement) -> list[str]:
    """What a piece says that never ran, in the box that it would have had."""
    said = unspoken(note.prose)
    for head, class_ in UNSPOKEN.items():
        if said.startswith(head):
            inside = prose.passage(said, sheet.setting)
            if class_ == "lb-ask":
                device = sheet.record.functions[note.function].requires
                why = f"needs {device}, which this build did not have" if device else "was not reached"
                inside += markup.tag(
                    "p", markup.tag("small", f"Its answer comes from a run; this section {why}.")
                )
            return [markup.tag("div", inside, class_=class_, role="note")]
    return prose.blocks(said, sheet.setting)


def _piece(sheet: Sheet, piece: Piece, evidence: Evidence) -> list[str]:
    setting = sheet.setting
    if piece.kind == "note":
        return prose.blocks(piece.text, setting)
    if piece.kind == "misbelief":
        said, run = prose.inline(piece.text, setting), prose.inline(piece.data, setting)
        text = f"<p><b>Commonly said:</b> “{said}”</p><p><b>Run:</b> {run}</p>"
        return [markup.tag("div", text, class_="lb-mis", role="note")]
    if piece.kind == "question":
        return [questions.box(piece, evidence.record, setting, evidence.stamp)]
    if piece.kind == "link":
        return [_link(sheet, piece)]
    return [_picture(sheet, piece)]


def _link(sheet: Sheet, piece: Piece) -> str:
    """A link to an address, a work, or a function of the lecture."""
    kind, _, name = piece.data.partition(":")
    if kind == "cite":
        body = prose.inline(f"{piece.text} [@{name}]", sheet.setting)
    else:
        target = f"#{name}" if kind == "function" else piece.data
        body = prose.inline(f"[{_literal(piece.text or name)}]({target})", sheet.setting)
    return markup.tag("p", body, class_="lb-link")


def _literal(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_{}[]()<>#+-.!" else c for c in text)


def _picture(sheet: Sheet, piece: Piece) -> str:
    sheet.pictures += 1
    caption = prose.inline(piece.text, sheet.setting) if piece.text else ""
    if not piece.alt.strip():
        sheet.setting.report(
            "no-alt", f"this {piece.kind} has no alt text", "say what it shows in a sentence"
        )
    try:
        if piece.kind == "figure":
            drawing = figures.inline(piece.data, piece.alt, f"f{sheet.pictures}-")
        else:
            drawing = figures.embedded(piece.data, piece.alt)
    except figures.NotAPicture as error:
        sheet.setting.report("bad-picture", f"this {piece.kind} cannot be shown: {error}")
        drawing = markup.tag("p", markup.text(piece.alt))
    words = " " + markup.tag("figcaption", caption) if caption else ""
    return markup.tag("figure", drawing, drawings.zoom(drawing), words, class_="lb-figure")


# ---------------------------------------------------------------------------- code


def _code(sheet: Sheet, numbers: Sequence[int], beside: dict[int, list[str]], evidence: Evidence) -> str:
    """A block of code: number, line, and what stands beside it."""
    dedent = min((sheet.lines[n - 1].indent for n in numbers if _counts(sheet.lines[n - 1])), default=0)
    failed = {n for c in evidence.claims if c.verdict == "fails" for n in range(c.line, c.last + 1)}
    cells = copier(numbers)
    below: list[str] = []
    for i, number in enumerate(numbers):
        class_ = " ".join(
            [
                "lb-c",
                *(["lb-dim"] if number in evidence.dimmed else []),
                *(["lb-failed"] if number in failed else []),
            ]
        )
        html = sheet.lines[number - 1].html(dedent, sheet.links.get(number, ()))
        cells.append(row(number, html, class_))
        if number in beside:
            free = next((k for k, n in enumerate(numbers[i + 1 :], 1) if n in beside), len(numbers) - i)
            it = fitting.fitted(beside[number], free, number)
            cells.append(f' <div class="lb-v" style="--s:{free}">{it.beside}</div> ')  # spaces for the search
            below.append(it.below)
    label = f"lines {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"line {numbers[0]}"
    return markup.tag("div", *cells, class_="lb-code", role="group", aria_label=label) + _below(below)


def _below(notes: Sequence[str]) -> str:
    """What the margin cuts, whole. The margin has it all for those who do not see where it is cut.

    No `div`: Material's search goes on at the end of the first element inside that has the same name.
    """
    found = "".join(notes)
    return (
        markup.tag(
            "aside", found, class_="lb-below", aria_hidden="true", data_search_exclude=markup.UNSEARCHED
        )
        if found
        else ""
    )


def row(number: int, html: str, class_: str = "lb-c") -> str:
    """A line's number, which is also its anchor, and its code."""
    where = f'id="L{number}" href="#L{number}" data-search-exclude="{markup.UNSEARCHED}"'
    anchored = f'<a class="lb-n" {where}>{number}</a>'
    return f'{anchored}<code class="{class_}">{html or " "}</code>'


def copier(numbers: Sequence[int]) -> list[str]:
    """A button on a block of several lines. Material's script copies; the style sheet hides all but code."""
    target = f".lb-code:has(#L{numbers[0]})"
    button = f'<button class="lb-copy md-code__button" data-md-type="copy" data-clipboard-target="{target}"'
    return [f'{button} title="Copy the code"></button>'] if len(numbers) > 1 else []


def _counts(line: Line) -> bool:
    return bool(line.text.strip()) and not line.in_string


def _beside(notes: margin.Margin, home: Home) -> dict[int, list[str]]:
    """The margin notes by the shown line that they stand beside."""
    found: dict[int, list[str]] = {}
    for line in sorted(notes.notes):
        found.setdefault(home(line), []).extend(notes.notes[line])
    return found


def _home(shown: Sequence[int]) -> Home:
    """For any line, the shown line at or above it, else the first one; 0 where nothing is shown."""

    def home(line: int) -> int:
        above = bisect.bisect_right(shown, line)
        return shown[max(0, above - 1)] if shown else 0

    return home


def _at_home(home: Home, lines: Sequence[int]) -> Callable[[int], bool]:
    """Whether a line's values stand beside one of `lines`."""
    return lambda line: home(line) in lines


# ---------------------------------------------------------------------------- the shelf


def _shelved(
    sheet: Sheet, evidence: Evidence, index: int, shelf: _Shelf, mine: Callable[[int], bool]
) -> list[str]:
    """What is taller than a line: failures first, then cards, tables, storage and printed output.

    `mine` says whether a line belongs to the block of code above the shelf.
    """
    function = sheet.record.functions[index]
    failed = [c for c in evidence.claims if c.verdict == "fails" and mine(c.line)]
    raised = [e for e in evidence.errors if mine(surfaced(evidence.record, e, function))]
    here = [v for v in evidence.values if mine(v.line) and v.loop is None and v.value is not None]
    quiet = [
        *_bits(evidence, here),
        *_cards(evidence, here, shelf),
        *_tables(evidence, here, shelf),
        *_storages(evidence, here, shelf),
        *_whole(evidence, here, shelf),
    ]
    printed = [p for p in evidence.pieces if p.kind == "output" and mine(p.line) and p.text.strip()]
    return [
        *(margin.failure_box(claim, evidence, sheet.path) for claim in failed),
        *(margin.error_box(error, sheet.path) for error in raised),
        markup.tag("div", *quiet, class_="lb-shelf") if quiet else "",
        _output(printed) if printed else "",
    ]


def _unhoused(
    sheet: Sheet, evidence: Evidence, beside: dict[int, list[str]], shelf: _Shelf, index: int
) -> list[str]:
    """Values and failures of a section that shows no code at all."""
    notes = "".join(beside.get(0, []))
    rows = markup.tag("div", notes, class_="lb-v") if notes else ""
    return [
        markup.tag("div", rows, class_="lb-code lb-plain") if rows else "",
        *_shelved(sheet, evidence, index, shelf, lambda _: True),
    ]


def _bits(evidence: Evidence, found: Iterable[Value]) -> list[str]:
    """The bits of a block's floats under each other, so that formats can be compared."""
    drawn = [(v.text, evidence.record.snapshots[v.value or 0]) for v in found]
    stack = [(name, it) for name, it in drawn if isinstance(it, Tensor) and bits.drawable(it)]
    return [bits.stack(stack)] if stack else []


def _whole(evidence: Evidence, found: Iterable[Value], shelf: _Shelf) -> list[str]:
    """What is too long for any line, folded: all that the record has of it."""
    done = []
    for value in found:
        it = evidence.record.snapshots[value.value or 0]
        if isinstance(it, Tensor | Mapping) or not (text := values.whole(it, value.unit)):
            continue
        if _new(value, shelf):
            name = markup.tag("code", markup.text(value.text))
            head = f"{name}, {'the first ' if values.is_cut(it) else ''}{len(text):,} characters"
            body = markup.tag("pre", markup.text(text), tabindex="0")
            done.append(markup.tag("details", markup.tag("summary", head), body, class_="lb-whole"))
    return done


def _new(value: Value, shelf: _Shelf) -> bool:
    """Whether this is the first time that this expression shows this snapshot."""
    key = (value.text, value.value)
    fresh = key not in shelf.drawn
    shelf.drawn.add(key)
    return fresh


def _cards(evidence: Evidence, found: Iterable[Value], shelf: _Shelf) -> list[str]:
    badges = margin.sharing(evidence)
    done = []
    for value in found:
        it = evidence.record.snapshots[value.value or 0]
        if isinstance(it, Tensor) and cards.has_card(it) and not bits.drawable(it) and _new(value, shelf):
            badge = badges.get((value.step, value.text))
            done.append(cards.tensor(value.text, it, [badge] if badge else []))
    return done


def _tables(evidence: Evidence, found: Iterable[Value], shelf: _Shelf) -> list[str]:
    """Mappings: those with the same keys and the same unit become one table."""
    tables: list[tuple[str | None, list[cards.Row]]] = []
    for value in found:
        it = evidence.record.snapshots[value.value or 0]
        if not isinstance(it, Mapping) or not it.items or len(values.line(it, value.unit)) <= margin.SHORT:
            continue
        if values.measurement(it):
            continue
        if not _new(value, shelf):
            continue
        like = next(
            (rows for unit, rows in tables if unit == value.unit and cards.same_keys(rows[0][1], it)), None
        )
        if like is None:
            tables.append((value.unit, [(value.text, it)]))
        else:
            like.append((value.text, it))
    return [
        cards.table(rows, unit) if len(rows) > 1 else cards.pairs(*rows[0], unit) for unit, rows in tables
    ]


def _storages(evidence: Evidence, found: Iterable[Value], shelf: _Shelf) -> list[str]:
    """A small storage is drawn where a further view of it appears: the first view and the new ones."""
    fresh: dict[int, list[drawings.View]] = {}
    for value in found:
        it = evidence.record.snapshots[value.value or 0]
        if not isinstance(it, Tensor) or it.storage is None or not drawings.drawable(it):
            continue
        known = shelf.views.setdefault(it.storage, [])
        if not any(_same_view(it, other) for _, other in known):
            known.append((value.text, it))
            fresh.setdefault(it.storage, []).append((value.text, it))
    drawn = []
    for storage, new in fresh.items():
        base = shelf.views[storage][0]
        views = new if base in new else [base, *new]
        if len(views) > 1:
            drawn.append(drawings.storage(views))
    return drawn


def _same_view(a: Tensor, b: Tensor) -> bool:
    return (a.shape, a.strides, a.offset) == (b.shape, b.strides, b.offset)


def _output(pieces: Sequence[Piece]) -> str:
    """What the lines of one block printed, together."""
    lines = sorted({piece.line for piece in pieces})
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    text = "".join(piece.text if piece.text.endswith("\n") else piece.text + "\n" for piece in pieces)
    caption = markup.tag("figcaption", f"printed by {where}")
    tall = "0" if len(text) > TALL or text.count("\n") > TALL / 80 else None  # it scrolls, also by keys
    body = markup.tag("pre", markup.text(text.rstrip("\n")), tabindex=tall)
    return markup.tag("figure", caption, body, class_="lb-output")


def failures(record: Record, indices: Sequence[int]) -> tuple[list[Claim], list[Error]]:
    """The failed claims and the errors of these functions."""
    claims = [c for c in record.claims if c.function in indices and c.verdict == "fails"]
    errors = [e for e in record.errors if e.function in indices]
    return claims, errors
