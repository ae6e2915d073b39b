"""A record and its lecture's text -> notebooks that run on their own, with the recorded outputs inside.

One notebook for each page of a lecture: for each part, or for a lecture without parts. There is none of a
whole lecture of many parts: its parts share no names by design, and one namespace for all of them would only
add collisions; a reader wants the part in hand, in seconds.

Prose is Markdown, code lies open in cells (`cells` decides what can), `# @inspect` became `show(...)`. What a
cell printed when it was recorded is its output. What lecturers say (`speaker_note`) is left out: the page's
player has it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import nbformat

from litbook.record import model
from litbook.render import books, evidence, figures, markup, standin, values
from litbook.render.bibliography import Bibliography
from litbook.render.catalogue import _, day, later
from litbook.render.notebook_prose import Prose, one_line, plain, whole
from litbook.render.notebook_values import in_words
from litbook.render.order import moments
from litbook.text import cells
from litbook.text.lecture import Function, Watch
from litbook.text.rows import Code
from litbook.text.source import parse_sources
from litbook.text.words import ASKED, STATED

FOLDER = "notebooks"  # of a lecture's pages
ON_COLAB = ("torch", "numpy", "matplotlib")  # what https://colab.research.google.com has installed
_ENDS = ("exception", "exit", "author")  # errors that end a section
FIRST = 3  # turns of a loop that a notebook's `show` prints
_OURS = ("has_cuda", "reseed", "section", "show")  # what a notebook's cells call, besides the author's words


@dataclass
class _Run:
    """What a record, with the recordings there are, says of the functions of its text; by their numbers."""

    record: model.Record
    functions: Sequence[Function]
    recordings: Sequence[model.Record]

    def __post_init__(self) -> None:
        places: dict[tuple[int, str, str], model.Section]
        places = {(it.file, it.kind, it.name): it for it in self.record.sections}
        self._section = [places.get((it.file, it.kind, it.name)) for it in self.functions]
        self._of = functools.cache(
            lambda key: evidence.gather(self.record, self.record.by_key[key], self.recordings)
        )

    def section(self, function: int) -> model.Section:
        """The section, or module, that a function of the text is."""
        found = self._section[function]
        assert found is not None
        return found

    def function(self, section: model.Section) -> int:
        """The number of a section in the lecture's text."""
        return self._section.index(section)

    def of(self, section: model.Section) -> evidence.Evidence:
        """What is known of a section."""
        return self._of(section.key)

    @cached_property
    def order(self) -> dict[tuple[str, int, bool], int]:
        """When a step of a section came, and when what was shown after it."""
        found: dict[tuple[str, int, bool], int] = {}
        for number, moment in enumerate(moments(self.record)):
            place = moment.section.key, moment.step
            found[*place, True] = number
            found.setdefault((*place, False), number)
        return found


@dataclass
class _Made:
    """One notebook in the making."""

    run: _Run
    layout: cells.Layout
    text: Prose
    cells: list[Any] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def record(self) -> model.Record:
        """The record that the notebook is of."""
        return self.run.record

    def word(self, name: str) -> str:
        """What a word of ours is called in this notebook: its name, unless the lecture has given it away."""
        while name in self.layout.names:
            name += "_"
        return name

    def id(self, role: str) -> str:
        """An id that depends on the text alone: the same cell has it in every build."""
        number = self.counts[role] = self.counts.get(role, 0) + 1
        return hashlib.sha256(f"{self.record.lecture}/{role}/{number}".encode()).hexdigest()[:12]

    def prose(self, role: str, text: str) -> Any:
        """A Markdown cell."""
        cell = _node(cell_type="markdown", id=self.id(role), metadata={}, source=whole(text))
        self.cells.append(cell)
        return cell

    def code(self, role: str, text: str, outputs: Sequence[Any] = (), tags: Sequence[str] = ()) -> None:
        """A code cell; those tagged `hide-input` or `hide-cell` come folded."""
        metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
        if {"hide-input", "hide-cell"} & {*tags}:
            hidden = {"outputs_hidden": True} if "hide-cell" in tags else {}
            metadata["jupyter"] = {"source_hidden": True, **hidden}
        self.cells.append(
            _node(
                cell_type="code",
                id=self.id(role),
                metadata=metadata,
                source=whole(text),
                outputs=list(outputs),
                execution_count=None,
            )
        )


def _node(**fields: Any) -> Any:
    """A part of a notebook. `nbformat.v4` would validate each; the whole is validated once."""
    return nbformat.from_dict(fields)


def notebooks(
    record: model.Record,
    *,
    modules: Mapping[str, str] | None = None,
    bibliography: Bibliography = books.NOTHING_CITED,
    recordings: Sequence[model.Record] = (),
    book: str = "",
) -> dict[str, str]:
    """File names (`first-part.ipynb`; `index.ipynb` of a lecture without parts) to notebooks as JSON text.

    `modules` are the Python files beside the lecture, by their path from its folder. The text of a notebook
    depends on the record, on them and on `book`, the title of the whole, alone. Raises `UnusableLecture`
    where the record's source is no lecture.
    """
    shelf = books.of(record, bibliography, recordings, [])
    lecture = parse_sources(record.sources)
    run = _Run(record, lecture.functions, recordings)
    raised = {section.name for section, error in record.errors() if error.kind in _ENDS}
    files = _files_of(shelf)
    roots = [run.function(record.by_key[key]) for key in files]
    return {
        files[run.section(layout.root).key]: _notebook(run, shelf, layout, modules or {}, book)
        for layout in cells.layouts(lecture, roots, raised)
    }


def _files_of(shelf: books.Book) -> dict[str, str]:
    """The file name of every notebook, by the key of the part or lecture that it is of."""
    pages = {root.key: shelf.page(root) for root in shelf.parts} or {shelf.record.main.key: books.INDEX}
    return {key: page.removesuffix(".md") + ".ipynb" for key, page in pages.items()}


def pages(record: model.Record) -> dict[str, str]:
    """For every page that has a notebook the notebook's file name."""
    return {name.removesuffix(".ipynb") + ".md": name for name in _files_of(books.outline(record)).values()}


def _notebook(
    run: _Run, shelf: books.Book, layout: cells.Layout, modules: Mapping[str, str], book: str
) -> str:
    here = [run.section(i.function) for i in layout.items if isinstance(i, cells.Section)]
    known = {it.name: it.heading or it.name for it in here}
    levels = {i.function: i.level for i in reversed(layout.items) if isinstance(i, cells.Section)}
    numbers = {label: it.number for label, it in shelf.numbers.items()}
    text = Prose(shelf.bibliography, known, _elsewhere(shelf, {it.key for it in here}), levels, numbers)
    made = _Made(run, layout, text)
    _opening(made, shelf, book, {_top(name) for name in modules})
    _setup(made, modules)
    _items(made)
    if made.text.cited:
        made.prose(
            "references",
            "## " + _("References") + "\n\n" + "\n".join(made.text.reference(key) for key in made.text.cited),
        )
    notebook = _node(
        nbformat=4,
        nbformat_minor=5,
        cells=made.cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
            "litbook": {"lecture": run.record.lecture, "section": run.section(layout.root).name},
        },
    )
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def _elsewhere(shelf: books.Book, here: set[str]) -> dict[str, str]:
    """For what stands in another notebook than that with the sections `here`: the title of its part."""
    record = shelf.record
    titles = {shelf.page(part): books.plain(part) for part in shelf.parts}
    sections = [(record.by_key[key].name, page) for key, page in shelf.place.items() if key not in here]
    definitions = [(record.definition_of[key].name, page) for key, page in shelf.defined.items()]
    return {name: titles.get(page, record.title) for name, page in [*sections, *definitions]}


# ---------------------------------------------------------------------------- the opening


_HOW = later(
    "The outputs below are those of the book's own run on {machine}. `show(…)` prints a value; an `assert` "
    "is a claim, and stops the notebook if it does not hold. Where a value was *measured*, yours differs. "
    'Annotations such as `Float[Tensor, "row col"]` were checked in that run; here they only say what is '
    "meant."
)


def _opening(made: _Made, shelf: books.Book, book: str, beside: set[str]) -> None:
    """Title, where it comes from, what it needs."""
    record, root = made.record, made.run.section(made.layout.root)
    title = record.title if root.kind == "main" else root.heading or root.name
    place = _("A lecture")
    if root.kind != "main":
        number = shelf.parts.index(root) + 1
        above = made.text.markdown(record.title)
        place = _("Part {n} of {all} of **{lecture}**", n=number, all=len(shelf.parts), lecture=above)
    if book:
        place = _("{place} from *{book}*", place=place, book=made.text.markdown(book))
    strangers = sorted({*made.layout.modules} - beside - sys.stdlib_module_names - {"litbook"})
    versions = record.environment.versions
    packages = [f"{name} {versions.get(name, '').partition('+')[0]}".strip() for name in strangers]
    needs = _("It needs Python 3.11 or later.")
    if packages:
        needs = _("It needs Python 3.11 or later with {packages}.", packages=", ".join(packages))
    if missing := [name for name in strangers if name not in ON_COLAB]:
        needs += " " + _("On Colab, run `{command}` first.", command=f"%pip install {' '.join(missing)}")
    text = [
        f"# {made.text.markdown(title)}",
        _("{place}. This notebook runs on its own, from top to bottom. {needs}", place=place, needs=needs),
        _(_HOW, machine=plain(record.environment.machine_name)),
    ]
    made.prose("opening", "\n\n".join(text))


def _setup(made: _Made, modules: Mapping[str, str]) -> None:
    """The files that come along, the lecture's imports and constants."""
    layout, fold = made.layout, ["hide-input"]
    ours = inspect.getsource(standin).replace("SEED = 0", f"SEED = {made.record.environment.seed}")
    ours = ours.replace("int] = {}", f"int] = {made.text.numbers}")
    files = {"litbook.py": ours, **_files(layout, modules)}
    lines = ["# " + _("A folder of its own, for the files that come along and for what the cells write")]
    lines += [
        "import os",
        "import sys",
        "import tempfile",
        "",
        'os.chdir(tempfile.mkdtemp(prefix="notebook-"))',
    ]
    lines += ["sys.path.insert(0, os.getcwd())"]
    lines += [f"os.makedirs({folder!r})" for folder in sorted({it.rpartition("/")[0] for it in files} - {""})]
    if "matplotlib" in layout.modules:
        lines.append('os.environ["MPLBACKEND"] = "Agg"  # ' + _("figures are kept and shown once"))
    made.code("setup", "\n".join(lines), tags=fold)
    for name, text in files.items():
        made.code("module", f"%%writefile {name}\n{text}", [_stream(f"Writing {name}\n")], fold)
    words = [it if made.word(it) == it else f"{it} as {made.word(it)}" for it in _OURS]
    future = [line for line in layout.imports if line.startswith("from __future__")]
    lines = [
        "# " + _("Imports"),
        *future,
        f"from litbook import {', '.join(words)}",
        *layout.imports[len(future) :],
    ]
    made.code("imports", "\n".join([*lines, f"{made.word('reseed')}()"]), tags=fold)
    _cells(made, layout.setting, "constants", ["# " + _("Constants")], folded=True)


def _files(layout: cells.Layout, files: Mapping[str, str]) -> dict[str, str]:
    """The modules beside the lecture that the notebook imports, and those that they import."""
    wanted, waiting = dict[str, str](), list(layout.modules)
    while waiting:
        top = waiting.pop(0)
        for name, text in files.items():
            if _top(name) == top and name not in wanted:
                wanted[name] = text
                waiting += cells.imported(text)
    return wanted


def _top(name: str) -> str:
    """The first name under which a file is imported."""
    return name.partition("/")[0].removesuffix(".py")


# ---------------------------------------------------------------------------- the cells


def _items(made: _Made) -> None:
    """Sections in order: headings, prose, cells of code."""
    waiting: list[Code] = []
    starts: list[str] = []  # what the next cell of code begins with

    def flush() -> None:
        if waiting:
            _cells(made, waiting, made.run.functions[waiting[0].function].name, starts)
            waiting.clear()

    for item in made.layout.items:
        if isinstance(item, Code):
            if waiting and _apart(waiting[-1], item):
                flush()
            waiting.append(item)
            continue
        flush()
        if isinstance(item, cells.Section):
            _heading(made, item)
            starts[:] = [] if item.why else [f"{made.word('reseed')}()"]
        else:
            _tell_statement(made, item)
    flush()


def _apart(above: Code, code: Code) -> bool:
    """Whether two pieces of code stand in different cells."""
    if above.definition or code.definition:
        return above.definition != code.definition
    return (above.hidden, above.device, above.function) != (code.hidden, code.device, code.function)


def _heading(made: _Made, item: cells.Section) -> None:
    section = made.run.section(item.function)
    parts = []
    if item.function != made.layout.root:
        title = made.text.markdown(section.heading or section.name) + _(" (aside)") * section.aside
        parts.append(f"{'#' * min(6, item.level)} {title}")
    if item.device:
        found = made.run.of(section)
        why = _("This section needs {device}: without it, its cells do nothing.", device=item.device)
        outputs = _("The outputs are from {stamp}.", stamp=plain(found.stamp)) if found.stamp else ""
        missing = "" if found.stamp or found.calls else _("It is not recorded on a GPU yet.")
        parts.append(f"*{why} {outputs or missing}*")
    elif stamp := made.run.of(section).stamp:
        parts.append(_("*This section takes minutes. The outputs are from {stamp}.*", stamp=plain(stamp)))
    if item.why and not item.device:
        why, mark, name = item.why.partition(": ")
        parts.append(_("*This section stays a function: {why}.*", why=plain(_(why) + mark + name)))
    if parts:
        made.prose(f"heading of {section.name}", "\n\n".join(parts))


def _cells(made: _Made, found: Sequence[Code], role: str, starts: list[str], *, folded: bool = False) -> None:
    """Neighbouring pieces of code as one cell; a claim that failed ends its cell: there a run stops."""
    group: list[Code] = []
    for i, code in enumerate(found):
        group.append(code)
        if i == len(found) - 1 or _failed(made, code) is not None:
            _cell(made, group, role, starts, folded)
            group = []


def _cell(made: _Made, group: Sequence[Code], role: str, starts: list[str], folded: bool) -> None:
    lines: list[str] = []
    device, definition = group[0].device, group[0].definition and not folded
    if starts and not definition:
        lines += [("    " if device else "") + text for text in starts]
        starts.clear()
    for i, code in enumerate(group):
        if i and (code.spaced or code.definition):
            lines += [""] * (1 + code.definition)
        lines += _text(made, code)
    if group[-1].quiet:
        lines[-1] = group[-1].quiet
    if device:
        lines = [f"if {made.word('has_cuda')}():", *lines]
    outputs = _outputs(made, group)
    tags = ["hide-input"] if folded or all(code.hidden for code in group) else []
    tags += ["raises-exception"] if any(o["output_type"] == "error" for o in outputs) else []
    tags += [f"needs-{device}"] if device else []
    tags += ["definition"] if definition else []
    made.code(role, "\n".join(lines), outputs, tags)


def _text(made: _Made, code: Code) -> list[str]:
    """The lines of one piece of code, with the calls that show values."""
    lines: list[str] = []
    for row in code.rows:
        if row.watch is None:
            lines.append(row.text)
        elif row.inline:
            lines[-1] += "; " + _call(made, code, row.watch)
        else:
            lines.append(row.text + _call(made, code, row.watch))
    return lines


def _call(made: _Made, code: Code, watch: Watch) -> str:
    """`show("size", size, "B")`, or a comment where the recorded expression could not be shown."""
    if why := _unshown(made, code, watch):
        return "pass  # " + _("{name} is not shown: {why}", name=watch.text, why=one_line(why))
    name = _("answer") if watch.kind == "answer" else watch.text
    unit = f", {_quoted(watch.unit)}" if watch.unit else ""
    measured = ", measured=True" if watch.kind == "measure" else ""
    return f"{made.word('show')}({_quoted(name)}, {watch.text}{unit}{measured})"


def _quoted(text: str) -> str:
    """A string as code has it, in double quotes where it can."""
    return f'"{text}"' if not re.search(r'["\\\n]', text) and text.isprintable() else repr(text)


def _unshown(made: _Made, code: Code, watch: Watch) -> str:
    """Why a recorded expression could not be shown."""
    found = made.run.of(made.run.section(code.function))
    for value in found.values if watch.kind != "answer" else ():
        if (value.line, value.text) == (watch.line, watch.text):
            snapshot = found.snapshot_of(value)
            if value.error or (isinstance(snapshot, model.Opaque) and snapshot.why and not snapshot.text):
                return value.error or getattr(snapshot, "why", "")
    return ""


# ---------------------------------------------------------------------------- outputs


Event = tuple[int, int, list[Any]]  # its moment, what comes first there, and the outputs


def _outputs(made: _Made, group: Sequence[Code]) -> list[Any]:
    """What these lines printed and showed when they were recorded, and the failure that ended them."""
    events = [event for code in group if not code.definition for event in _events(made, code)]
    outputs: list[Any] = []
    for output in (it for event in sorted(events, key=lambda event: event[:2]) for it in event[2]):
        if outputs and outputs[-1].output_type == output.output_type == "stream":
            outputs[-1].text += output.text
        else:
            outputs.append(output)
    return outputs + [it for it in (_failed(made, code) for code in group) if it is not None]


def _called(made: _Made, code: Code) -> Iterator[tuple[model.Section, bool]]:
    """The sections that these lines call, and those below; and whether the lines are one call, no loop."""
    section = made.run.section(code.function)
    for call in evidence.statements(section):
        if call.kind == "section" and code.first <= call.first <= code.last and call.target != section.key:
            below = _with_sections(made.record, made.record.by_key[call.target])
            once = (call.first, call.last) == (code.first, code.last)
            yield from ((it, once and it is below[0]) for it in below)


def _with_sections(record: model.Record, section: model.Section) -> list[model.Section]:
    """A section, and those that it calls."""
    found = {section.key: section}
    for statement in section.statements:
        if statement.kind == "section" and statement.target != section.key:
            found |= {it.key: it for it in _with_sections(record, record.by_key[statement.target])}
    return list(found.values())


def _events(made: _Made, code: Code) -> Iterator[Event]:
    """Values and pieces of these lines, each with its moment; at one moment what was printed comes first."""
    found = made.run.of(made.run.section(code.function))
    yield from _told_events(made, found, [it for it in found.pieces if code.first <= it.line <= code.last])
    yield from _shown_events(made, found, [it for it in found.values if code.first <= it.line <= code.last])
    for section, once in _called(made, code):
        inner = made.run.of(section)
        pieces, shown = inner.pieces, inner.values
        if not (once or inner.stamp):  # what every call of the section said, not only its first
            own = {number for number, frame in enumerate(section.frames) if not frame.called}
            pieces = [it for it in section.pieces if it.frame in own]
            shown = [it for it in section.values if it.frame in own and it.kind != "clear"]
        yield from _told_events(made, inner, pieces)
        yield from _shown_events(made, inner, shown)


def _moment(made: _Made, found: evidence.Evidence, step: int, shown: bool) -> int:
    """When in the run a step came, or what was shown after it; of a recording, when in its section."""
    return step if found.stamp else made.run.order.get((found.entry.key, step, shown), step)


def _told_events(made: _Made, found: evidence.Evidence, pieces: Sequence[model.Piece]) -> Iterator[Event]:
    for piece in pieces:
        yield _moment(made, found, piece.step, shown=False), 0, [*_piece(piece, found, made.text.numbers)]


def _shown_events(made: _Made, found: evidence.Evidence, shown: Sequence[model.Value]) -> Iterator[Event]:
    """As `show` prints them: three times at most from one place, then an ellipsis."""
    seen: dict[tuple[int, str, str], int] = {}
    for value in shown:
        snapshot = found.snapshot_of(value)
        if (
            value.error
            or snapshot is None
            or (isinstance(snapshot, model.Opaque) and snapshot.why and not snapshot.text)
        ):
            continue
        key = (value.line, value.text, value.kind)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= FIRST + 1:
            text = _line(value, snapshot, found.record) if seen[key] <= FIRST else f"{value.text} …\n"
            yield _moment(made, found, value.step, shown=True), 1, [_stream(text)]


def _line(value: model.Value, snapshot: model.Snapshot, record: model.Record) -> str:
    text = standin.bounded(in_words(snapshot, value.unit or ""))
    if value.kind == "measure":
        when = day(record.environment.date)
        where = _("(measured on {machine}, {day})", machine=record.environment.machine_name, day=when)
        return f"{value.text} = {standin.one_line(text)}   {where}\n"
    return f"{value.text} = {text}\n"


def _stream(text: str) -> Any:
    return _node(output_type="stream", name="stdout", text=whole(text))


def _piece(piece: model.Piece, found: evidence.Evidence, numbers: dict[str, int]) -> Iterator[Any]:
    """A piece that code handed over while it ran, as the stand-ins would show it."""
    if piece.kind == "output":
        yield _stream(piece.text)
    elif piece.kind == "figure":
        if svg := _svg(piece):
            data = {"image/svg+xml": svg, "text/plain": whole(piece.alt)}
            yield _node(output_type="display_data", metadata={}, data=data)
        if piece.text:
            yield _display(f"*{standin.common(piece.text, numbers)}*")
    elif piece.kind == "image":
        yield _display(_("*Picture: {alt}*", alt=piece.alt))
    elif piece.kind in STATED:
        yield _display(standin.common(_said(piece, str), numbers))
        yield from _answered(piece, found)


def _said(piece: model.Piece, worded: Callable[[str], str]) -> str:
    """The Markdown of a note, a misbelief, a question, the text of a link."""
    if piece.kind == "misbelief":
        heads = _("**Commonly said:**"), _("**Run:**")
        text = f"{heads[0]} {worded(piece.text)}\n\n{heads[1]} {worded(piece.data)}"
        return "> " + text.replace("\n", "\n> ")
    return (_(ASKED) + " " if piece.kind == "question" else "") + worded(piece.text)


def _answered(piece: model.Piece, found: evidence.Evidence) -> Iterator[Any]:
    """What computing a question's answer prints."""
    if piece.answer is not None:
        text = standin.bounded(in_words(found.snapshot(piece.answer), piece.unit or ""))
        yield _stream(_("answer") + f" = {text}\n")


def _display(text: str) -> Any:
    return _node(output_type="display_data", metadata={}, data={
        "text/markdown": whole(text), "text/plain": "<IPython.core.display.Markdown object>",
    })  # fmt: skip


def _svg(piece: model.Piece) -> str:
    """The figure, with what it shows to those who cannot see it; nothing for what is no harmless SVG."""
    try:
        figures.inline(piece.data, piece.alt, "f-")
    except figures.NotAPicture:
        return ""
    label = f' role="img" aria-label="{markup.text(piece.alt)}"'
    return re.sub(r"<svg\b", lambda m: m[0] + label, piece.data, count=1)


def _failed(made: _Made, code: Code) -> Any | None:
    """The output of a claim that failed on these lines, or of the exception that ended a section called."""
    if code.definition:
        return None
    section = made.run.section(code.function)
    below = _with_sections(made.record, section) if code.call else [it for it, _ in _called(made, code)]
    for it in below:
        for error in evidence.here(made.record, it).errors:
            if error.kind in _ENDS:
                return _ending(error)
    for it in [section, *below]:
        for claim in evidence.here(made.record, it).claims:
            here = it is not section or code.first <= claim.line <= code.last
            if here and claim.verdict == "fails" and claim.kind == "assert":
                sides = values.claim(claim, it.snapshots)
                return _error("AssertionError", claim.caption, [f"assert {claim.text}", sides])
    return None


def _ending(error: model.Error) -> Any:
    """The output of an exception that ended a section."""
    name, _, rest = error.message.partition(": ")
    lines = [f"{path}:{line}: {text.strip()}" for path, line, _, text in error.trace]
    return _error(name if name.isidentifier() else "Exception", rest or error.message, lines)


def _error(name: str, message: str, lines: Sequence[str]) -> Any:
    traceback = [*map(one_line, lines), f"{name}: {one_line(message)}"]
    return _node(
        output_type="error",
        ename=whole(name),
        evalue=whole(message),
        traceback=[whole(t) for t in traceback],
    )


# ---------------------------------------------------------------------------- prose


def _tell_statement(made: _Made, item: cells.Told) -> None:
    """Prose, pictures and links of one statement; of a note that never ran, what it says anyway."""
    section = made.run.section(item.function)
    found, name = made.run.of(section), section.name
    told = [p for p in found.pieces if item.first <= p.line <= item.last and p.kind in STATED]
    if not told and not found.stamp:
        for statement in evidence.statements(section):
            if statement.prose and item.first <= statement.first <= item.last:
                prose = evidence.unspoken(statement.prose)
                if prose.startswith(ASKED):
                    prose = _(ASKED) + prose.removeprefix(ASKED)
                    prose += "\n\n" + _("Not run: the answer comes from the run.")
                made.prose(name, made.text.markdown(prose, item.function))
    for piece in told:
        _tell(made, item, piece, found, name)


def _tell(made: _Made, item: cells.Told, piece: model.Piece, found: evidence.Evidence, name: str) -> None:
    def worded(text: str) -> str:
        return made.text.markdown(text, item.function)

    if piece.kind == "link":
        made.prose(name, _link(made, piece))
    elif piece.kind == "image":
        _image(made, piece, name)
    else:
        made.prose(name, "\n\n".join([_said(piece, worded), *_folded(piece, found, worded)]))
        if item.answer is not None:
            _answer(made, item.answer, name, [] if piece.frame < 0 else [*_answered(piece, found)])


def _answer(made: _Made, code: Code, name: str, outputs: Sequence[Any]) -> None:
    """A folded cell that computes a question's answer."""
    lines = _text(made, code)
    if code.device:
        lines = [f"if {made.word('has_cuda')}():", *lines]
    tags = ["hide-cell", *([f"needs-{code.device}"] if code.device else [])]
    made.code(name, "\n".join(lines), outputs, tags)


def _folded(piece: model.Piece, found: evidence.Evidence, worded: Callable[[str], str]) -> Iterator[str]:
    """A question's hint and answer, each folded."""
    folded = "<details><summary>{}</summary>\n\n{}\n\n</details>"
    if piece.kind == "question" and piece.data:
        yield folded.format(_("Hint"), worded(piece.data))
    if piece.answer is not None:
        where = f" ({plain(found.stamp)})" if found.stamp else ""
        value = markup.text(values.line(found.snapshot(piece.answer), piece.unit))
        why = f"\n\n{worded(piece.why)}" if piece.why else ""
        yield folded.format(_("Answer"), f"<code>{value}</code>{where}{why}")


def _link(made: _Made, piece: model.Piece) -> str:
    kind, _, name = piece.data.partition(":")
    if kind == "function":
        return made.text.markdown(f"[{piece.text or name}](#{name})")
    if kind == "cite":
        return made.text.markdown(f"{piece.text} [@{name}]")
    return made.text.markdown(f"[{piece.text or piece.data}]({piece.data})")


def _image(made: _Made, piece: model.Piece, name: str) -> None:
    """A picture as an attachment: it travels in the file, and nothing is fetched."""
    match = re.fullmatch(r"data:(image/[\w+.-]+);base64,([A-Za-z0-9+/=]+)", piece.data)
    alt = plain(piece.alt)
    caption = f"\n\n*{made.text.markdown(piece.text)}*" if piece.text else ""
    if match is None:
        made.prose(name, _("*Picture: {alt}*", alt=alt) + caption)
        return
    cell = made.prose(name, f"![{alt}](attachment:picture){caption}")
    cell.attachments = {"picture": {match[1]: match[2]}}
