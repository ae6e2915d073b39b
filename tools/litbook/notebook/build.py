"""A record and its lecture's text -> the notebooks of its pages, as data: cells, and what each has put out.

One notebook for each page of a lecture: for each part, or for a lecture without parts. There is none of a
whole lecture of many parts: its parts share no names by design, and one namespace for all of them would only
add collisions; a reader wants the part in hand, in seconds.

Prose is blocks, code lies open in cells (`cells` decides what can), `# @inspect` became `show(...)`. What a
cell printed when it was recorded is its output. What lecturers say (`speaker_note`) is left out: the page's
player has it. `notebook.ipynb` writes these cells for Jupyter, `html.notebook` as a page.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import assert_never

from msgspec import Struct

from litbook.i18n import _, day, gettext_noop
from litbook.lecture.author_words import ASKED, STATED
from litbook.lecture.model import LectureFunction, Watch
from litbook.lecture.parse import parse_sources
from litbook.markdown import grammar
from litbook.markdown.bibliography import Bibliography, names
from litbook.markdown.nodes import Citation, label_text, walk
from litbook.markdown.to_markdown import escape_markdown
from litbook.notebook import cells, packing, runtime
from litbook.notebook.lines import CellCode
from litbook.notebook.runtime import by_rank, cut_text, one_line
from litbook.notebook.value_text import explore_text, in_words
from litbook.page import blocks, pieces, sitemap, view
from litbook.page.timeline import moments
from litbook.record import model
from litbook.record.device_kinds import KINDS
from litbook.values import formatting, units

ON_COLAB = ("torch", "numpy", "matplotlib")  # what https://colab.research.google.com has installed
ENDS = ("exception", "exit", "author")  # errors that end a section
FIRST = 3  # turns of a loop that a notebook's `show` prints
OURS = (
    "has_device",
    "reseed",
    "section",
    "show",
    "show_answer",
)  # what a notebook's cells call, besides the author's words


# ---------------------------------------------------------------------------- what a notebook holds


class Title(Struct, frozen=True):
    """The heading of a section, or of the whole; `section` is its name."""

    text: str
    level: int
    section: str


class Remark(Struct, frozen=True):
    """Words of the engine about what follows, in Markdown."""

    text: str


ProsePart = Title | Remark | blocks.PieceBlock


class ProseCell(Struct, frozen=True):
    """A cell of prose. Headings inside it stand below that of the section `function`; None: of the whole."""

    role: str
    parts: tuple[ProsePart, ...]
    function: int | None = None


class PrintedText(Struct, frozen=True):
    """What a cell printed."""

    text: str


class PieceOutput(Struct, frozen=True):
    """What a cell's code handed over while it ran."""

    block: blocks.PieceBlock


class ErrorOutput(Struct, frozen=True):
    """The exception that ended a cell: its class, its message, and the lines it came from."""

    name: str
    message: str
    lines: tuple[str, ...]


CellOutput = PrintedText | PieceOutput | ErrorOutput


class CodeCell(Struct, frozen=True):
    """A cell of code, and what it put out when it was recorded."""

    role: str
    text: str
    results: tuple[CellOutput, ...] = ()
    tags: tuple[str, ...] = ()  # "hide-input": folded


Cell = ProseCell | CodeCell


class Notebook(Struct, frozen=True):
    """One notebook: its cells, and what its prose may refer to.

    `levels` are those of the headings of its sections, by number of their function; `headings` are those of
    the sections that are here, by their names, `elsewhere` the titles of the parts that others stand in.
    `wordings` has the names and citations of notes that code hands over, as they are written, and in words.
    """

    lecture: str
    section: str
    cells: tuple[Cell, ...]
    bibliography: Bibliography
    levels: Mapping[int, int]
    headings: Mapping[str, str]
    elsewhere: Mapping[str, str]
    numbers: Mapping[str, int]
    wordings: Mapping[str, str]


# ---------------------------------------------------------------------------- what the run says


# Its moment, what comes first there, and what was put out: at one moment, what was printed comes first.
CellEvent = tuple[int, int, list[CellOutput]]


@dataclass
class _RecordReader:
    """What a record, with the recordings there are, says of the functions of its text; by their numbers."""

    record: model.Record
    functions: Sequence[LectureFunction]
    recordings: Sequence[model.Record]

    def __post_init__(self) -> None:
        places: dict[tuple[int, str, str], model.Section]
        places = {(section.file, section.kind, section.name): section for section in self.record.sections}
        sections = (places.get((f.file, f.kind, f.name)) for f in self.functions)
        self.sections = {number: section for number, section in enumerate(sections) if section is not None}
        self._of = functools.cache(
            lambda key: view.gather(self.record, self.record.by_key[key], self.recordings)
        )

    def view_of(self, section: model.Section) -> view.SectionView:
        """What is known of a section."""
        return self._of(section.key)

    @cached_property
    def order(self) -> dict[tuple[str, int, bool], int]:
        """When a step of a section came, and when what was shown after it."""
        order: dict[tuple[str, int, bool], int] = {}
        for number, moment in enumerate(moments(self.record)):
            place = moment.section.key, moment.step
            order[*place, True] = number
            order.setdefault((*place, False), number)
        return order

    def results(self, group: Sequence[CellCode]) -> list[CellOutput]:
        """What these lines printed and showed when they were recorded, and the failure that ended them."""
        events: list[CellEvent] = []
        for code in (code for code in group if not code.definition):
            seen, lines = self.view_of(self.sections[code.function]), range(code.first, code.last + 1)
            here = [piece for piece in seen.pieces if piece.line in lines]
            events += self._events(seen, here, [value for value in seen.values if value.line in lines])
            for section, once in self._called_sections(code):
                inner = self.view_of(section)
                pieces, shown = inner.pieces, inner.values
                if not (once or inner.stamp):  # what every call of the section said, not only its first
                    calls = {number for number, frame in enumerate(section.frames) if not frame.called}
                    pieces = [piece for piece in section.pieces if piece.frame in calls]
                    shown = [v for v in section.values if v.frame in calls and v.kind != "clear"]
                if inner.entry.shares:  # by rank; pictures and the like are rank 0's
                    ranks = inner.rank_views
                    every = [_merge_outputs(self._events(rank, rank.pieces, rank.values)) for rank in ranks]
                    texts = [
                        "".join(r.text for r in results if isinstance(r, PrintedText)) for results in every
                    ]
                    drawn = [result for result in every[0] if not isinstance(result, PrintedText)]
                    events.append((code.first, 0, [PrintedText(by_rank(texts)), *drawn]))
                else:
                    events += self._events(inner, pieces, shown)
        return _merge_outputs(events) + [end for end in map(self.failed, group) if end is not None]

    def _called_sections(self, code: CellCode) -> Iterator[tuple[model.Section, bool]]:
        """The sections that these lines call, and those below; whether the lines are one call, no loop."""
        section = self.sections[code.function]
        for call in view.statements(section):
            if call.kind == "section" and code.first <= call.first <= code.last:
                if call.target != section.key:
                    below = _with_sections(self.record, self.record.by_key[call.target])
                    once = (call.first, call.last) == (code.first, code.last)
                    yield from ((inner, once and inner is below[0]) for inner in below)

    def _events(
        self, seen: view.SectionView, told: Sequence[model.Piece], shown: Sequence[model.Value]
    ) -> list[CellEvent]:
        """What code handed over, as the stand-in for the engine shows it, and values as `show` has them."""
        events, times, entry = list[CellEvent](), Counter[tuple[int, str, str]](), seen.entry
        # When in the run something came; in its section for a recording or a rank.
        apart = seen.stamp or entry is not self.record.by_key[entry.key]
        when = {} if apart else self.order
        for piece in told:
            results: list[CellOutput] = []
            if piece.kind == "output":
                results = [PrintedText(piece.text)]
            elif piece.kind in STATED or piece.kind in ("figure", "explore"):
                results = [PieceOutput(pieces.block(piece)), *_answer_output(piece, seen)]
            events.append((when.get((entry.key, piece.step, False), piece.step), 0, results))
        for value in shown:
            snapshot = seen.snapshot_of(value)
            if value.error or snapshot is None:
                continue
            if isinstance(snapshot, model.Opaque) and snapshot.why and not snapshot.text:
                continue  # it says nothing of itself
            key = (value.line, value.text, value.kind)
            times[key] += 1  # three times at most from one place, then an ellipsis
            if times[key] <= FIRST + 1:
                text = cut_text(in_words(snapshot, value.unit or ""))
                line = f"{value.text} = {text}\n"
                if value.kind == "measure":
                    run = seen.record.environment
                    where = _("(measured on {machine}, {day})", machine=run.machine_name, day=day(run.date))
                    line = f"{value.text} = {one_line(text)}   {where}\n"
                line = line if times[key] <= FIRST else f"{value.text} …\n"
                moment = when.get((entry.key, value.step, True), value.step)
                events.append((moment, 1, [PrintedText(line)]))
        return events

    def failed(self, code: CellCode) -> ErrorOutput | None:
        """The claim that failed on these lines, or the exception that ended a section called."""
        if code.definition:
            return None
        record, section = self.record, self.sections[code.function]
        below = (
            _with_sections(record, section)
            if code.call
            else [inner for inner, _ in self._called_sections(code)]
        )
        for inner in below:
            for error in view.view_of_run(record, inner).errors:
                if error.kind in ENDS:
                    name, _mark, rest = error.message.partition(": ")
                    lines = tuple(f"{path}:{line}: {text.strip()}" for path, line, _, text in error.trace)
                    return ErrorOutput(
                        name if name.isidentifier() else "Exception", rest or error.message, lines
                    )
        for inner in [section, *below]:
            for claim in view.view_of_run(record, inner).claims:
                here = inner is not section or code.first <= claim.line <= code.last
                if here and claim.verdict == "fails" and claim.kind == "assert":
                    sides = formatting.claim(claim, inner.snapshots)
                    return ErrorOutput("AssertionError", claim.caption, (f"assert {claim.text}", sides))
        return None


def _merge_outputs(events: list[CellEvent]) -> list[CellOutput]:
    """The results of all moments in their order; what was printed in a row is one."""
    results: list[CellOutput] = []
    for result in (result for event in sorted(events, key=lambda event: event[:2]) for result in event[2]):
        last = results[-1] if results else None
        if isinstance(last, PrintedText) and isinstance(result, PrintedText):
            results[-1] = PrintedText(last.text + result.text)
        else:
            results.append(result)
    return results


def _with_sections(record: model.Record, section: model.Section) -> list[model.Section]:
    """A section, and those that it calls."""
    sections = {section.key: section}
    for statement in section.statements:
        if statement.kind == "section" and statement.target != section.key:
            sections |= {s.key: s for s in _with_sections(record, record.by_key[statement.target])}
    return list(sections.values())


def _answer_output(piece: model.Piece, seen: view.SectionView) -> list[CellOutput]:
    """What computing a question's answer shows, folded."""
    if piece.answer is None:
        return []
    text = cut_text(in_words(seen.snapshot(piece.answer), piece.unit or ""))
    return [PieceOutput(blocks.Prose(piece.line, runtime.folded_answer(text)))]


def format_piece(block: blocks.PieceBlock) -> Iterator[str | blocks.Figure]:
    """What the stand-in for the engine shows of what code hands over: Markdown, and pictures."""
    match block:
        case blocks.Prose(_line, text) | blocks.LinkBlock(_line, text):
            yield text
        case blocks.Question(_line, text):
            yield _(ASKED) + " " + text
        case blocks.Misbelief(_line, common, run):
            yield misbelief(common, run)
        case blocks.Image(_line, _data, alt):
            yield _("*Picture: {alt}*", alt=alt)
        case blocks.Figure(caption=caption):
            yield block
            yield from [f"*{caption}*"] if caption else []
        case blocks.Explore(line, grid, alt):
            yield from [blocks.Figure(line, grid.still, alt)] if isinstance(grid, model.Live) else []
            yield explore_text(block)
        case blocks.PrintedOutput() | blocks.SpeakerNote():
            pass
        case _:
            assert_never(block)


def misbelief(common: str, run: str) -> str:
    """What is commonly said, and below it what the machine says, as Markdown; as the stand-in writes it."""
    text = _("**Commonly said:**") + f" {common}\n\n" + _("**Run:**") + f" {run}"
    return "> " + text.replace("\n", "\n> ")


# ---------------------------------------------------------------------------- making them


def notebooks(
    record: model.Record,
    *,
    modules: Mapping[str, str] | None = None,
    bibliography: Bibliography = sitemap.NOTHING_CITED,
    recordings: Sequence[model.Record] = (),
    book: str = "",
) -> dict[str, Notebook]:
    """File names (`first-part.ipynb`; `index.ipynb` of a lecture without parts) to notebooks.

    `modules` are the Python files beside the lecture, by their path from its folder. A notebook depends on
    the record, on them and on `book`, the title of the whole, alone. Raises `UnusableLecture` where the
    record's source is no lecture.
    """
    shelf = sitemap.build_sitemap(record, bibliography, recordings, [])
    lecture = parse_sources(record.sources)
    run = _RecordReader(record, lecture.functions, recordings)
    raised = {section.name for section, error in record.errors() if error.kind in ENDS}
    files, numbers = _files_of(shelf), {section.key: number for number, section in run.sections.items()}
    return {
        files[run.sections[layout.root].key]: _NotebookBuilder(run, shelf, layout).notebook(
            modules or {}, book
        )
        for layout in cells.layouts(lecture, [numbers[key] for key in files], raised)
    }


def pages(record: model.Record) -> dict[str, str]:
    """For every page that has a notebook the notebook's file name."""
    return {name.removesuffix(".ipynb") + ".md": name for name in _files_of(sitemap.outline(record)).values()}


def _files_of(shelf: sitemap.Sitemap) -> dict[str, str]:
    """The file name of every notebook, by the key of the part or lecture that it is of.

    None of a lecture in other words: what stands in for litbook in a notebook has its own words alone.
    """
    if any(_WITHIN.search(source.text) for source in shelf.record.sources):
        return {}
    pages = {root.key: shelf.page(root) for root in shelf.parts} or {shelf.record.main.key: sitemap.INDEX}
    return {key: page.removesuffix(".md") + ".ipynb" for key, page in pages.items()}


# The text of a notebook's helpers. Figures are kept and shown once.
UNPACK = """\
import os, pathlib, sys, tempfile
FILES = {files!r}
OURS = {ours!r}
os.chdir(tempfile.mkdtemp(prefix="notebook-"))
sys.path.insert(0, os.getcwd())
if {figures}:
    os.environ["MPLBACKEND"] = "Agg"
def write(files):
    for name, text in files.items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(text, encoding="utf-8")
write(FILES)
try:  # litbook's own, where it is installed
    from litbook.notebook.runtime import start
except ImportError:
    write(OURS)
    from litbook import start
"""
_WITHIN = re.compile(r"^\s*(?:from|import)\s+litbook\.\w", re.MULTILINE)
_HOW = gettext_noop(
    "Run it from top to bottom, then change a line and see what follows: `show(…)` prints a value, and an "
    "`assert` is a claim, which stops its cell if it does not hold. The outputs below are those of the "
    "book's own run on {machine}; where a value was *measured*, yours differs. Annotations such as "
    '`Float[Tensor, "row col"]` were checked in that run; here they only say what is meant.'
)


@dataclass
class _NotebookBuilder:
    """One notebook in the making."""

    run: _RecordReader
    shelf: sitemap.Sitemap
    layout: cells.Layout
    made: list[Cell] = field(default_factory=list)  # so far

    def word(self, name: str) -> str:
        """What a word of ours is called in this notebook: its name, unless the lecture has given it away."""
        while name in self.layout.names:
            name += "_"
        return name

    def guard(self, device: str) -> str:
        """The line above code that needs a device of this kind."""
        return f'if {self.word("has_device")}("{device}"):'

    def prose(self, role: str, *parts: ProsePart, function: int | None = None) -> None:
        """A cell of prose."""
        self.made.append(ProseCell(role, parts, function))

    def code(
        self,
        role: str,
        lines: Sequence[str],
        results: Sequence[CellOutput] = (),
        tags: Sequence[str] = (),
    ) -> None:
        """A cell of code."""
        self.made.append(CodeCell(role, "\n".join(lines), tuple(results), tuple(tags)))

    def notebook(self, modules: Mapping[str, str], book: str) -> Notebook:
        """All of it: what it is, the files that come along, then sections in order."""
        run, shelf, layout = self.run, self.shelf, self.layout
        record, root = run.record, run.sections[layout.root]
        # Title, where it comes from, what it needs.
        title = record.title if root.kind == "main" else root.heading or root.name
        place = _("A lecture")
        if root.kind != "main":
            number, parts = shelf.parts.index(root) + 1, len(shelf.parts)
            place = _("Part {n} of {all} of **{lecture}**", n=number, all=parts, lecture=record.title)
        if book:
            place = _("{place} from *{book}*", place=place, book=book)
        ours = {_top(name) for name in modules} | {"litbook"}
        strangers = sorted({*layout.modules} - ours - sys.stdlib_module_names)
        versions = record.environment.versions
        packages = [f"{name} {versions.get(name, '').partition('+')[0]}".strip() for name in strangers]
        needs = _("It needs Python 3.11 or later.")
        if packages:
            needs = _("It needs Python 3.11 or later with {packages}.", packages=", ".join(packages))
        if missing := [name for name in strangers if name not in ON_COLAB]:
            needs += " " + _("On Colab, run `{command}` first.", command=f"%pip install {' '.join(missing)}")
        what = _(
            "{place}. This notebook runs on its own, without a network. {needs}", place=place, needs=needs
        )
        how = _(_HOW, machine=escape_markdown(record.environment.machine_name))
        self.prose("opening", Title(title, 1, root.name), Remark(what), Remark(how))

        # The body, and then what it needs above it: names and citations of notes that its code hands over,
        # each as it is written, and in words.
        head, self.made = self.made, []
        self._items()
        body, self.made = self.made, head
        numbers = {label: item.number for label, item in shelf.numbers.items()}
        wordings = {f"[@{label}]:": f"**{label_text(label, number)}.**" for label, number in numbers.items()}
        wordings |= {f"[@{label}]": label_text(label, number) for label, number in numbers.items()}
        results = (result for cell in body if isinstance(cell, CodeCell) for result in cell.results)
        handed = (
            part
            for result in results
            if isinstance(result, PieceOutput)
            for part in format_piece(result.block)
        )
        for note in (grammar.read(part) for part in handed if isinstance(part, str)):
            for citation in (node for node in walk(note) if isinstance(node, Citation)):
                works = [(key, shelf.bibliography.get(key)) for key in citation.keys]
                words = [f"{names(work)} {work.year}".strip() if work else f"@{key}?" for key, work in works]
                mark = note.text[citation.at : note.text.index("]", citation.at) + 1]
                wordings[mark] = f"({'; '.join(map(escape_markdown, words))})"
        self._helpers(modules, wordings)
        # Its imports come right before its first code.
        first = next((i for i, cell in enumerate(body) if isinstance(cell, CodeCell)), None)
        if first is not None:
            body[first:first] = self._setup()

        # For what stands in another notebook: the title of its part.
        levels = {i.function: i.level for i in reversed(layout.items) if isinstance(i, cells.SectionStart)}
        here = [run.sections[number] for number in reversed(levels)]
        keys, titles = (
            {s.key for s in here},
            {shelf.page(part): sitemap.plain_title(part) for part in shelf.parts},
        )
        others: list[tuple[sitemap.LinkTarget, str]]
        others = [(record.by_key[key], page) for key, page in shelf.place.items() if key not in keys]
        others += [(record.definition_of[key], page) for key, page in shelf.defined.items()]
        return Notebook(
            record.lecture,
            root.name,
            (*self.made, *body),
            shelf.bibliography,
            levels,
            {section.name: section.heading or section.name for section in here},
            {entry.name: titles.get(page, record.title) for entry, page in others},
            numbers,
            wordings,
        )

    def _helpers(self, modules: Mapping[str, str], wordings: Mapping[str, str]) -> None:
        """One folded cell: the files that come along, and what stands in for the engine."""
        layout, files = self.layout, dict[str, str]()
        # The modules beside the lecture that the notebook imports, and those that they import.
        waiting = list(layout.modules)
        while waiting:
            top = waiting.pop(0)
            for name, text in modules.items():
                if _top(name) == top and name not in files:
                    files[name] = text
                    waiting += cells.imported_modules(text)
        ours = {"litbook_amounts.py": inspect.getsource(units), "litbook.py": inspect.getsource(runtime)}
        devices = [kind.name for kind in KINDS.values() if kind.is_device]
        figures = "matplotlib" in layout.modules
        text = UNPACK.format(files=files, ours=ours, figures=figures)
        text += f"start({self.run.record.environment.seed}, {dict(wordings)!r}, {devices!r})\n"
        what = _("What the cells below call, unpacked into a folder of its own.")
        if files:
            what = _(
                "What the cells below call, and {modules}, unpacked into a folder of its own.",
                modules=", ".join(dict.fromkeys(map(_top, files))),
            )
        cell = packing.helpers_cell(text, what, self.word("HELPERS"), "{}")
        self.made.append(CodeCell("helpers", cell, tags=("hide-input",)))

    def _setup(self) -> list[Cell]:
        """The lecture's imports and constants, right before its first code."""
        layout, before = self.layout, self.made
        self.made = []
        words = [word if self.word(word) == word else f"{word} as {self.word(word)}" for word in OURS]
        future = [line for line in layout.imports if line.startswith("from __future__")]
        lines = [packing.title_line(_("Imports")), *future, f"from litbook import {', '.join(words)}"]
        lines += [*layout.imports[len(future) :], f"{self.word('reseed')}()"]
        self.code("imports", lines, tags=("hide-input",))
        self._cells(layout.setting, "constants", [packing.title_line(_("Constants"))], folded=True)
        made, self.made = self.made, before
        return made

    def _items(self) -> None:
        """Sections in order: headings, prose, cells of code."""
        waiting: list[CellCode] = []
        starts: list[str] = []  # what the next cell of code begins with

        def flush() -> None:
            if waiting:
                self._cells(waiting, self.run.functions[waiting[0].function].name, starts)
                waiting.clear()

        for item in self.layout.items:
            if isinstance(item, CellCode):
                if waiting:
                    above, here = waiting[-1], (item.hidden, item.device, item.function)
                    alike = (above.hidden, above.device, above.function) == here
                    if above.definition != item.definition or not (item.definition or alike):
                        flush()
                waiting.append(item)
                continue
            flush()
            if isinstance(item, cells.SectionStart):
                # A section begins: its title, and why its cells may do nothing or stand as a function.
                section = self.run.sections[item.function]
                seen, parts = self.run.view_of(section), list[ProsePart]()
                if item.function != self.layout.root:
                    title = (section.heading or section.name) + _(" (aside)") * section.aside
                    parts.append(Title(title, min(6, item.level), section.name))
                if item.device:
                    why = _(
                        "This section needs {device}: without it, its cells do nothing.", device=item.device
                    )
                    outputs = (
                        _("The outputs are from {stamp}.", stamp=escape_markdown(seen.stamp))
                        if seen.stamp
                        else ""
                    )
                    words = _(KINDS[item.device].words)
                    missing = _("It is not recorded on {device} yet.", device=words)
                    missing = "" if seen.stamp or seen.calls else missing
                    parts.append(Remark(f"*{why} {outputs or missing}*"))
                elif seen.stamp:
                    told = _(
                        "*This section takes minutes. The outputs are from {stamp}.*",
                        stamp=escape_markdown(seen.stamp),
                    )
                    parts.append(Remark(told))
                if item.why and not item.device:
                    why, mark, name = item.why.partition(": ")
                    reason = escape_markdown(_(why) + mark + name)
                    parts.append(Remark(_("*This section stays a function: {why}.*", why=reason)))
                if parts:
                    self.prose(f"heading of {section.name}", *parts)
                starts[:] = [] if item.why else [f"{self.word('reseed')}()"]
            else:
                self._tell(item)
        flush()

    def _cells(
        self, several: Sequence[CellCode], role: str, starts: list[str], *, folded: bool = False
    ) -> None:
        """Neighbouring pieces of code as one cell; a claim that failed ends its cell: there a run stops.

        The cells may be `folded`.
        """
        group: list[CellCode] = []
        for i, code in enumerate(several):
            group.append(code)
            if i == len(several) - 1 or self.run.failed(code) is not None:
                lines: list[str] = []
                device, definition = group[0].device, group[0].definition and not folded
                if starts and not definition:
                    lines += [("    " if device else "") + text for text in starts]
                    starts.clear()
                for nth, part in enumerate(group):
                    if nth and (part.spaced or part.definition):
                        lines += [""] * (1 + part.definition)
                    lines += self._text(part)
                if group[-1].quiet:
                    lines[-1] = group[-1].quiet
                if device:
                    lines = [self.guard(device), *lines]
                results = self.run.results(group)
                hidden = all(part.hidden for part in group)
                tags = ["hide-input"] if folded or hidden else []
                tags += (
                    ["raises-exception"] if any(isinstance(result, ErrorOutput) for result in results) else []
                )
                tags += [f"needs-{device}"] if device else []
                tags += ["definition"] if definition else []
                self.code(role, lines, results, tags)
                group = []

    def _text(self, code: CellCode) -> list[str]:
        """The lines of one piece of code, with the calls that show values."""
        lines: list[str] = []
        for row in code.rows:
            if row.watch is None:
                lines.append(row.text)
            elif row.inline:
                lines[-1] += "; " + self._call(code, row.watch)
            else:
                lines.append(row.text + self._call(code, row.watch))
        return lines

    def _call(self, code: CellCode, watch: Watch) -> str:
        """`show("size", size, "B")`, or a comment where the recorded expression could not be shown."""
        seen = self.run.view_of(self.run.sections[code.function])
        for value in seen.values if watch.kind != "answer" else ():
            if (value.line, value.text) == (watch.line, watch.text):
                snapshot = seen.snapshot_of(value)
                why = snapshot.why if isinstance(snapshot, model.Opaque) and not snapshot.text else ""
                if why := value.error or why:
                    return "pass  # " + _("{name} is not shown: {why}", name=watch.text, why=one_line(why))
        unit = f", {_string_literal(watch.unit)}" if watch.unit else ""
        if watch.kind == "answer":
            return f"{self.word('show_answer')}({watch.text}{unit})"
        measured = ", measured=True" if watch.kind == "measure" else ""
        return f"{self.word('show')}({_string_literal(watch.text)}, {watch.text}{unit}{measured})"

    def _tell(self, item: cells.PieceStatement) -> None:
        """Prose, pictures and links of one statement; of a note that never ran, what it says anyway."""
        section = self.run.sections[item.function]
        seen, name = self.run.view_of(section), section.name
        told = [p for p in seen.pieces if item.first <= p.line <= item.last and p.kind in STATED]
        if not told and not seen.stamp:
            for statement in view.statements(section):
                if statement.prose and item.first <= statement.first <= item.last:
                    block = pieces.unrun_block(statement.first, statement.prose, _("Not run"))
                    self.prose(name, block, function=item.function)
        for piece in told:
            answer = None
            if piece.answer is not None:
                answer = blocks.Answer(seen.snapshot(piece.answer), piece.unit, stamp=seen.stamp)
            self.prose(name, pieces.block(piece, answer), function=item.function)
            if item.answer is not None and piece.kind not in ("link", "image"):
                # A folded cell that computes the answer.
                lines, device = self._text(item.answer), item.answer.device
                if device:
                    lines = [self.guard(device), *lines]
                tags = ["hide-input", *([f"needs-{device}"] if device else [])]
                results = [] if piece.frame < 0 else _answer_output(piece, seen)
                self.code(name, lines, results, tags)


def _top(name: str) -> str:
    """The first name under which a file is imported."""
    return name.partition("/")[0].removesuffix(".py")


def _string_literal(text: str) -> str:
    """A string as code has it, in double quotes where it can."""
    return f'"{text}"' if not re.search(r'["\\\n]', text) and text.isprintable() else repr(text)
