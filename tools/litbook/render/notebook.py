"""A record and its lecture's text -> notebooks that run on their own, with the recorded outputs inside.

One notebook for each page of a lecture: for each part, or for a lecture without parts. There is none of a
whole lecture of many parts: its parts share no names by design, and one namespace for all of them would only
add collisions; a reader wants the part in hand, in seconds.

Prose is Markdown, code lies open in cells (`cells` decides what can), `# @inspect` became `show(...)`. What a
cell printed when it was recorded is its output. What lecturers say (`speaker_note`) is left out: the page's
player has it.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import nbformat

from litbook.record import model
from litbook.render import books, evidence, figures, markup, standin, values
from litbook.render.bibliography import Bibliography, find, names
from litbook.render.bibliography import BibliographyError as NoSuchWork
from litbook.text import cells
from litbook.text.source import parse_sources

FOLDER = "notebooks"  # of a lecture's pages
ON_COLAB = ("torch", "numpy", "matplotlib")  # what https://colab.research.google.com has installed
_ENDS = ("exception", "exit", "author")  # errors that end a section
FIRST = 3  # turns of a loop that a notebook's `show` prints


@dataclass
class _Made:
    """One notebook in the making."""

    record: model.Record
    layout: cells.Layout
    recordings: Sequence[model.Record]
    bibliography: Bibliography
    known: Mapping[str, str]  # names of functions here -> the headings that a link can lead to
    elsewhere: Mapping[str, str]  # names of functions of other notebooks -> their part
    names: Mapping[str, str]  # a stand-in's name -> what it is called in this notebook
    cells: list[Any] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)
    found: dict[int, evidence.Evidence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        claims, statements = self.record.claims, self.record.statements
        self.failed = [c for c in claims if c.verdict == "fails" and c.kind == "assert"]
        self.calls = [s for s in statements if s.kind == "section" and s.target not in (None, s.function)]

    def of(self, function: int) -> evidence.Evidence:
        """What the record, or a recording, says about a function."""
        if function not in self.found:
            self.found[function] = evidence.gather(self.record, function, self.recordings)
        return self.found[function]

    def id(self, role: str) -> str:
        """An id that depends on the text alone: the same cell has it in every build."""
        number = self.counts[role] = self.counts.get(role, 0) + 1
        return hashlib.sha256(f"{self.record.lecture}/{role}/{number}".encode()).hexdigest()[:12]

    def prose(self, role: str, text: str) -> Any:
        """A Markdown cell."""
        cell = _node(cell_type="markdown", id=self.id(role), metadata={}, source=_whole(text))
        self.cells.append(cell)
        return cell

    def code(self, role: str, text: str, outputs: Sequence[Any] = (), tags: Sequence[str] = ()) -> Any:
        """A code cell; those tagged `hide-input` or `hide-cell` come folded."""
        metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
        folded = {"source_hidden": bool({"hide-input", "hide-cell"} & set(tags)),
                  "outputs_hidden": "hide-cell" in tags}  # fmt: skip
        if any(folded.values()):
            metadata["jupyter"] = {name: True for name, on in folded.items() if on}
        cell = _node(
            cell_type="code",
            id=self.id(role),
            metadata=metadata,
            source=_whole(text),
            outputs=list(outputs),
            execution_count=None,
        )
        self.cells.append(cell)
        return cell


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
    modules = modules or {}
    shelf = books.of(record, bibliography, recordings, [])
    roots = shelf.parts or [shelf.main]
    raised = {record.functions[e.function].name for e in record.errors if e.kind in _ENDS}
    found = cells.layouts(
        parse_sources(record.sources), roots,
        beside={name.partition("/")[0].removesuffix(".py") for name in modules},
        reserved=cells.reads(_STANDINS),
        raised=raised,
    )  # fmt: skip
    made = {}
    for layout in found:
        name = file_of(shelf, layout.root)
        made[name] = _notebook(shelf, layout, modules, book)
    return made


def file_of(shelf: books.Book, root: int) -> str:
    """The notebook's file name for a part, or for a lecture without parts."""
    page = books.file_of(shelf, root) if root in shelf.parts else books.INDEX
    return page.removesuffix(".md") + ".ipynb"


def pages(record: model.Record) -> list[tuple[str, str]]:
    """For every page that has a notebook: the page, and the notebook's file name."""
    shelf = books.of(record, books.NOTHING_CITED, (), [])
    roots = shelf.parts or [shelf.main]
    return [(books.file_of(shelf, r) if r in shelf.parts else books.INDEX, file_of(shelf, r)) for r in roots]


def _notebook(shelf: books.Book, layout: cells.Layout, modules: Mapping[str, str], book: str) -> str:
    record = shelf.record
    here = {i.function for i in layout.items if isinstance(i, cells.Section)}
    functions = record.functions
    known = {functions[i].name: functions[i].heading or functions[i].name for i in here}
    used = _standins_used(layout)
    made = _Made(
        record,
        layout,
        shelf.recordings,
        shelf.bibliography,
        known,
        _elsewhere(shelf, here),
        _called(used, layout),
    )
    _opening(made, shelf, book)
    _setup(made, used, modules)
    _items(made)
    if made.cited:
        made.prose("references", "## References\n\n" + "\n".join(_reference(made, key) for key in made.cited))
    notebook = _node(
        nbformat=4,
        nbformat_minor=5,
        cells=made.cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
            "litbook": {"lecture": record.lecture, "section": functions[layout.root].name},
        },
    )
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def _elsewhere(shelf: books.Book, here: set[int]) -> dict[str, str]:
    """For functions that stand in another notebook: the title of its part."""
    functions = shelf.record.functions
    titles = {books.file_of(shelf, part): books.plain(functions[part]) for part in shelf.parts}
    return {
        functions[i].name: titles.get(page, shelf.record.title)
        for i, page in shelf.place.items()
        if i not in here
    }


# ---------------------------------------------------------------------------- the opening


_HOW = (
    "The outputs below are those of the book's own run on {machine}. `show(…)` prints a value; an `assert` "
    "is a claim, and stops the notebook if it does not hold. Where a value was *measured*, yours differs. "
    'Annotations such as `Float[Tensor, "row col"]` were checked in that run; here they only say what is '
    "meant."
)


def _opening(made: _Made, shelf: books.Book, book: str) -> None:
    """Title, where it comes from, what it needs."""
    record, root = made.record, made.layout.root
    function = record.functions[root]
    title = record.title if function.kind == "main" else function.heading or function.name
    place = "A lecture"
    if root in shelf.parts:
        number = shelf.parts.index(root) + 1
        place = f"Part {number} of {len(shelf.parts)} of **{_markdown(made, record.title)}**"
    place += f" from *{_markdown(made, book)}*" if book else ""
    device = record.environment.device
    machine = device.name if device.kind != "cpu" else record.environment.cpu or device.name
    versions = record.environment.versions
    packages = [f"{name} {versions.get(name, '').partition('+')[0]}".strip() for name in made.layout.packages]
    needs = f"It needs Python 3.11 or later{' with ' + ', '.join(packages) if packages else ''}."
    missing = [name for name in made.layout.packages if name not in ON_COLAB]
    if missing:
        needs += f" On Colab, run `%pip install {' '.join(missing)}` first."
    text = [
        f"# {_markdown(made, title)}",
        f"{place}. This notebook runs on its own, from top to bottom. {needs}",
        _HOW.format(machine=_plain(machine)),
    ]
    made.prose("opening", "\n\n".join(text))


# ---------------------------------------------------------------------------- what stands in for litbook


_STANDINS = inspect.getsource(standin)


def _standins_used(layout: cells.Layout) -> list[str]:
    """What the notebook's cells call, in the order of `standin`."""
    answers = [i.answer for i in layout.items if isinstance(i, cells.Told) and i.answer]
    code = [it for it in (*layout.setting, *layout.items, *answers) if isinstance(it, cells.Code)]
    random = {i.kind for i in layout.items if isinstance(i, cells.Random)}
    used = {
        *layout.used,
        *(["reseed"] if random else []),
        *(["random_state", "set_random_state"] if random - {"seed"} else []),
        *(["show"] if any(row.show for it in code for row in it.rows) else []),
        *(["has_cuda"] if any(getattr(i, "device", None) for i in layout.items) else []),
        *(["run_coroutine"] if layout.asyncio else []),
    }
    return [name for name in cells.defined(_STANDINS) if name in used]


def _called(used: Sequence[str], layout: cells.Layout) -> dict[str, str]:
    """What each stand-in is called: its name, unless the lecture has given that to something else."""
    found = {}
    for name in used:
        if name in cells.WORDS:
            found[name] = name
            continue
        free = name
        while free in layout.names:
            free += "_"
        found[name] = free
    return found


def _source_of_standins(used: Sequence[str], seed: int, extra: Sequence[str]) -> str:
    """A function that defines what is used, and hands it out: so no helper's name meets the lecture's."""
    imports, definitions = cells.excerpt(_STANDINS, used)
    text = "\n\n".join(definitions).replace("SEED = 0", f"SEED = {seed}")
    head = '"""What the cells below call: `show` and its like. The book has the same text."""'
    lines = [head, *imports, "import os", "import tempfile", "", text, "", *extra]
    lines.append(f"return {', '.join(used) or 'None'}")
    return "def stand_in():\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _setup(made: _Made, used: Sequence[str], modules: Mapping[str, str]) -> None:
    """The stand-ins, the lecture's own modules, its imports and constants."""
    layout, names_ = made.layout, made.names
    extra = ['os.chdir(tempfile.mkdtemp(prefix="notebook-"))  # what a lecture writes goes there']
    if "matplotlib" in layout.packages:
        extra.append('os.environ["MPLBACKEND"] = "Agg"  # figures are kept and shown once')
    if "has_cuda" in used:
        extra.append("import torch  # `has_cuda` asks it")
    if layout.asyncio:
        extra += ["import asyncio", "asyncio.run = run_coroutine"]
    text = _source_of_standins(used, made.record.environment.seed, extra)
    text += "\n\n" + (
        f"{', '.join(names_[n] for n in used)}{',' if len(used) == 1 else ''} = " if used else ""
    )
    text += "stand_in(),\n" if len(used) == 1 else "stand_in()\n"
    for name, word in layout.words.items():
        if word in used and name != word:
            text += f"{name} = {word}\n"
        elif not word and any(w in used for w in cells.WORDS):
            given = ", ".join(f"{w}={w}" for w in used if w in cells.WORDS)
            text += f"import types\n{name} = types.SimpleNamespace({given})\n"
    if "reseed" in names_:
        text += f"{names_['reseed']}()\n"
    made.code("setup", text.rstrip("\n"), tags=["hide-input"])
    for name in _modules(layout, modules):
        made.code("module", _written(name, modules[name]), tags=["hide-input"])
    future = [c for c in layout.imports if c.rows[0].text.startswith("from __future__")]
    for group in (future, [c for c in layout.imports if c not in future]):
        if group:
            lines = ["# Imports", *(row.text for code in group for row in code.rows)]
            made.code("imports", "\n".join(lines), tags=["hide-input"])
    _cells(made, list(layout.setting), "constants", ["# Constants"], folded=True)


def _modules(layout: cells.Layout, modules: Mapping[str, str]) -> list[str]:
    """The files of the modules that the notebook imports, and of those that they import."""
    wanted, waiting = list[str](), list(layout.modules)
    while waiting:
        top = waiting.pop(0)
        for name, text in sorted(modules.items()):
            if name.partition("/")[0].removesuffix(".py") == top and name not in wanted:
                wanted.append(name)
                waiting += [other for other in cells.imported(text) if other != top]
    return wanted


def _written(name: str, text: str) -> str:
    """A cell that writes a module where the notebook's imports find it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    quoted = f"r'''{text}'''"
    if "'''" in text or text.endswith(("\\", "'")):
        quoted = "(\n" + "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True)) + "\n)"
    folder = "path.parent.mkdir(parents=True, exist_ok=True)\n    " if "/" in name else ""
    top = name.partition("/")[0].removesuffix(".py")
    return f"""# {name}, a module of the book, as it was in the run (sha256 {digest})
def write_module(name, text):
    import importlib
    import pathlib
    import sys

    path = pathlib.Path(name)
    {folder}path.write_text(text, encoding="utf-8")
    if str(pathlib.Path.cwd()) not in sys.path:
        sys.path.insert(0, str(pathlib.Path.cwd()))
    sys.modules.pop({top!r}, None)
    importlib.invalidate_caches()


write_module({name!r}, {quoted})"""


# ---------------------------------------------------------------------------- the cells


def _items(made: _Made) -> None:
    """Sections in order: headings, prose, cells of code."""
    waiting: list[cells.Code] = []
    starts: list[str] = []  # what the next cell of code begins with

    def flush() -> None:
        if waiting:
            _cells(made, waiting, made.record.functions[waiting[0].function or 0].name, starts)
            waiting.clear()

    for item in made.layout.items:
        if isinstance(item, cells.Code):
            if waiting and _apart(waiting[-1], item):
                flush()
            waiting.append(item)
            continue
        flush()
        if isinstance(item, cells.Section):
            _heading(made, item)
        elif isinstance(item, cells.Told):
            _told(made, item)
        else:
            _random(made, item, starts)
    flush()


def _apart(above: cells.Code, code: cells.Code) -> bool:
    """Whether two pieces of code stand in different cells."""
    if above.role == code.role == "definition":
        return False
    if above.role or code.role:
        return True
    return (above.hidden, above.device, above.function) != (code.hidden, code.device, code.function)


def _random(made: _Made, item: cells.Random, starts: list[str]) -> None:
    """Random numbers: from the seed; or put aside and taken up again around a section."""
    calls = {"seed": "{reseed}()", "keep": "outer_random_state = {random_state}()",
             "back": "{set_random_state}(outer_random_state)"}  # fmt: skip
    text = calls[item.kind].format(**made.names)
    if item.kind == "keep":
        made.code("random", text, tags=["hide-input"])
    else:
        starts[:] = [text]


def _heading(made: _Made, item: cells.Section) -> None:
    function = made.record.functions[item.function]
    parts = []
    if item.function != made.layout.root:
        parts.append(f"{'#' * min(6, item.level)} {_markdown(made, function.heading or function.name)}")
    if item.device:
        found = made.of(item.function)
        parts.append(
            f"*This section needs {item.device}: without it, its cells do nothing. "
            + (f"The outputs are from {_plain(found.stamp)}.*" if found.stamp
               else "*" if found.calls else "It is not recorded on a GPU yet.*")
        )  # fmt: skip
    if item.why and not item.device:
        parts.append(f"*This section stays a function: {_plain(item.why)}.*")
    if parts:
        made.prose(f"heading of {function.name}", "\n\n".join(parts))


def _cells(
    made: _Made,
    found: Sequence[cells.Code],
    role: str,
    starts: list[str] | None = None,
    *,
    folded: bool = False,
) -> None:
    """Neighbouring pieces of code as one cell; a claim that failed ends its cell: there a run stops."""
    group: list[cells.Code] = []
    for code in found:
        group.append(code)
        if _failed(made, code) is not None:
            _cell(made, group, role, starts, folded=folded)
            group = []
    if group:
        _cell(made, group, role, starts, folded=folded)


def _cell(
    made: _Made, group: Sequence[cells.Code], role: str, starts: list[str] | None, *, folded: bool = False
) -> None:
    lines: list[str] = []
    device, definition = group[0].device, group[0].role == "definition"
    if starts and not definition:
        lines += [("    " if device else "") + text for text in starts]
        starts.clear()
    for i, code in enumerate(group):
        if i and (code.spaced or definition):
            lines += ["", ""] if definition else [""]
        lines += _text(made, code, last=i == len(group) - 1)
    if device:
        lines = [f"if {made.names['has_cuda']}():", *lines]
    outputs = [] if definition else _outputs(made, group)
    tags = ["hide-input"] if folded or all(code.hidden for code in group) else []
    tags += ["raises-exception"] if any(o["output_type"] == "error" for o in outputs) else []
    tags += [f"needs-{device}"] if device else []
    tags += ["definition"] if definition else []
    made.code(role, "\n".join(lines), outputs, tags)


def _text(made: _Made, code: cells.Code, last: bool) -> list[str]:
    """The lines of one piece of code, with the calls that show values."""
    lines: list[str] = []
    for number, row in enumerate(code.rows):
        if row.show is None:
            text = row.text
            if last and code.end is not None and code.end[0] == number:
                text = text[: code.end[1]] + ";" + text[code.end[1] :]
            lines.append(text)
        elif row.inline:
            lines[-1] += "; " + _call(made, code, row.show)
        else:
            lines.append(row.text + _call(made, code, row.show))
    return lines


def _call(made: _Made, code: cells.Code, show: cells.Show) -> str:
    """`show("size", size, "B")`, or a comment where the recorded expression could not be shown."""
    why = _unshown(made, code, show)
    if why:
        return f"pass  # {show.text} is not shown: {_one_line(why)}"
    unit = f", {_quoted(show.unit)}" if show.unit else ""
    text = show.text if "\n" not in show.text else f"(\n{show.text})"
    measured = ", measured=True" if show.kind == "measure" else ""
    name = _quoted("answer" if show.kind == "answer" else show.text)
    return f"{made.names['show']}({name}, {text}{unit}{measured})"


def _quoted(text: str) -> str:
    """A string as code has it, in double quotes where it can."""
    return f'"{text}"' if not re.search(r'["\\\n]', text) and text.isprintable() else repr(text)


def _unshown(made: _Made, code: cells.Code, show: cells.Show) -> str:
    if show.kind == "answer" or code.function is None:
        return ""
    found = made.of(code.function)
    for value in found.values:
        if (value.line, value.text) == (show.line, show.text):
            shown = found.record.snapshots[value.value] if value.value is not None else None
            if value.error or (isinstance(shown, model.Opaque) and shown.why):
                return value.error or getattr(shown, "why", "")
    return ""


# ---------------------------------------------------------------------------- outputs


Event = tuple[int, int, Callable[[], Iterator[Any]]]


def _outputs(made: _Made, group: Sequence[cells.Code]) -> list[Any]:
    """What these lines printed and showed when they were recorded, and the failure that ended them."""
    events: list[Event] = []
    for code in group:
        function = code.function if code.function is not None else 0
        events += _events(made, function, code.first, code.last)
    events.sort(key=lambda event: event[:2])
    outputs: list[Any] = []
    for _, _, make in events:
        for output in make():
            if outputs and outputs[-1].output_type == output.output_type == "stream":
                outputs[-1].text += output.text
            else:
                outputs.append(output)
    failures = [f for f in (_failed(made, code) for code in group) if f is not None]
    return outputs + failures


def _with_sections(made: _Made, function: int) -> list[int]:
    """A section, and those that it calls."""
    found = [function]
    for statement in made.record.statements:
        if statement.function == function and statement.kind == "section" and statement.target is not None:
            found += [i for i in _with_sections(made, statement.target) if i not in found] \
                if statement.target != function else []  # fmt: skip
    return found


def _events(made: _Made, function: int, first: int, last: int) -> list[Event]:
    """Values and pieces of these lines, each with its step; at one step what was printed comes first."""
    found = made.of(function)
    pieces = [piece for piece in found.pieces if first <= piece.line <= last]
    events = [*_told_events(found.record, pieces), *_shown_events(found, found.values, first, last)]
    for call in made.calls:  # sections that a loop or a branch of these lines calls
        if call.function == function and first <= call.first <= last and call.target is not None:
            for index in _with_sections(made, call.target):
                events += _all_events(made, index)
    return events


def _all_events(made: _Made, function: int) -> list[Event]:
    """What every call of a section said, not only its first."""
    record, it = made.record, made.record.functions[function]
    frames = {i for i, frame in enumerate(record.frames) if frame.function == function}
    pieces = [p for p in record.pieces if p.frame in frames]
    shown = [v for v in record.values if v.frame in frames and v.kind != "clear"]
    return [*_told_events(record, pieces), *_shown_events(made.of(function), shown, it.first, it.last)]


def _told_events(record: model.Record, pieces: Sequence[model.Piece]) -> list[Event]:
    return [(piece.step, 0, partial(_piece, piece, record)) for piece in pieces]


def _shown_events(
    found: evidence.Evidence, shown: Sequence[model.Value], first: int, last: int
) -> Iterator[Event]:
    """As `show` prints them: three times at most from one place, then an ellipsis."""
    seen: dict[tuple[int, str, str], int] = {}
    for value in shown:
        if not first <= value.line <= last or value.error or value.value is None:
            continue
        it = found.record.snapshots[value.value]
        if isinstance(it, model.Opaque) and it.why:
            continue
        key = (value.line, value.text, value.kind)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= FIRST + 1:
            text = _line(value, found) if seen[key] <= FIRST else f"{value.text} …\n"
            yield value.step, 1, partial(_streamed, text)


def _streamed(text: str) -> Iterator[Any]:
    yield _stream(text)


def _line(value: model.Value, found: evidence.Evidence) -> str:
    assert value.value is not None
    text = standin.bounded(_said(found.record.snapshots[value.value], value.unit or ""))
    if value.kind == "measure":
        return f"{value.text} = {standin.one_line(text)}   (measured on {_machine(found.record)})\n"
    return f"{value.text} = {text}\n"


def _machine(record: model.Record) -> str:
    device = record.environment.device
    name = device.name if device.kind != "cpu" else record.environment.cpu or device.name
    return f"{name}, {evidence.day(record.environment.date)}"


def _stream(text: str) -> Any:
    return _node(output_type="stream", name="stdout", text=_whole(text))


def _piece(piece: model.Piece, record: model.Record) -> Iterator[Any]:
    """A piece that code handed over while it ran, as the stand-ins would show it."""
    if piece.kind == "output":
        yield _stream(piece.text)
    elif piece.kind == "note":
        yield _shown(piece.text)
    elif piece.kind == "misbelief":
        yield _shown(f"> **Commonly said:** {piece.text}\n>\n> **Run:** {piece.data}")
    elif piece.kind == "question":
        yield _shown(f"**Check yourself.** {piece.text}")
        if piece.answer is not None:
            said = standin.bounded(_said(record.snapshots[piece.answer], piece.unit or ""))
            yield _stream(f"answer = {said}\n")
    elif piece.kind == "figure":
        if svg := _svg(piece):
            yield _node(
                output_type="display_data",
                metadata={},
                data={"image/svg+xml": svg, "text/plain": _whole(piece.alt)},
            )
        if piece.text:
            yield _shown(f"*{piece.text}*")
    elif piece.kind == "image":
        yield _shown(f"*Picture: {piece.alt}*")
    elif piece.kind == "link":
        yield _shown(piece.text)


def _shown(text: str) -> Any:
    return _node(output_type="display_data", metadata={}, data={
        "text/markdown": _whole(text), "text/plain": "<IPython.core.display.Markdown object>",
    })  # fmt: skip


def _svg(piece: model.Piece) -> str:
    """The figure, with what it shows to those who cannot see it; nothing for what is no harmless SVG."""
    try:
        figures.inline(piece.data, piece.alt, "f-")
    except figures.NotAPicture:
        return ""
    label = f' role="img" aria-label="{markup.text(piece.alt)}"'
    return re.sub(r"<svg\b", lambda m: m[0] + label, piece.data, count=1)


def _failed(made: _Made, code: cells.Code) -> Any | None:
    """The output of a claim that failed on these lines, or of the exception that ended the section called."""
    if code.function is None or code.role == "definition":
        return None
    inside = _with_sections(made, code.function) if code.role == "call" else [code.function]
    record = made.record
    for error in record.errors:
        if code.role == "call" and error.function in inside and error.kind in _ENDS:
            name, _, rest = error.message.partition(": ")
            lines = [f"{path}:{line}: {text.strip()}" for path, line, _, text in error.trace]
            return _error(name if name.isidentifier() else "Exception", rest or error.message, lines)
    for claim in made.failed:
        lines_in = code.role == "call" or (code.first <= claim.line <= code.last)
        if claim.function in inside and lines_in:
            said = values.claim(claim, list(record.snapshots))
            return _error("AssertionError", claim.caption, [f"assert {claim.text}", said])
    return None


def _error(name: str, message: str, lines: Sequence[str]) -> Any:
    traceback = [*map(_one_line, lines), f"{name}: {_one_line(message)}"]
    return _node(
        output_type="error",
        ename=_whole(name),
        evalue=_whole(message),
        traceback=[_whole(t) for t in traceback],
    )


# ---------------------------------------------------------------------------- values


def _said(shown: model.Snapshot, unit: str = "", depth: int = 0) -> str:
    """A recorded value as `standin.said` says a live one."""
    if isinstance(shown, model.Scalar):
        return _scalar(shown, unit, depth)
    if isinstance(shown, model.Tensor):
        count = _product(shown.shape)
        whole = (
            shown.corner is None and len(shown.values) == count and shown.device == "cpu" and 0 < count <= 64
        )
        held = [_number(v) for v in shown.values] if whole else None
        text = standin.tensor(shown.dtype, shown.shape, shown.device, shown.bytes, held, unit, depth)
        if unit == "bits" and shown.bits and held and count <= 8 and shown.dtype in standin.FORMATS:
            text += standin.bits([int(pattern, 16) for pattern in shown.bits], shown.dtype)
        return text
    if isinstance(shown, model.Opaque):
        return _opaque(shown)
    if depth >= 3:
        return "…"
    if isinstance(shown, model.Sequence):
        texts = [_said(item, unit, depth + 1) for item in shown.items[:12]]
        return standin.sequence(shown.type.rpartition(".")[2], texts, shown.length)
    named = bool(shown.keys) and all(isinstance(k, model.Scalar) and k.type == "name" for k in shown.keys)
    kind = shown.type.rpartition(".")[2] if named else ""
    pairs = [
        (_said(k, "", depth + 1), _said(v, unit, depth + 1))
        for k, v in list(zip(shown.keys, shown.items, strict=False))[:12]
    ]
    return standin.mapping(kind, pairs, shown.length)


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _scalar(shown: model.Scalar, unit: str, depth: int) -> str:
    if shown.type in ("str", "bytes", "bytearray"):
        return standin.quoted(shown.text, shown.cut)
    if shown.type == "int" or isinstance(shown.number, int):
        if bits := re.fullmatch(r".*\((\d+) bits\)", shown.text):
            return f"an integer of {bits[1]} bits {unit}".strip()
        return standin.number(
            _number(shown.number if shown.number is not None else shown.text), unit, bool(depth)
        )
    if shown.number is not None:
        return standin.number(_number(shown.number), unit, bool(depth))
    return standin.quoted(shown.text, shown.cut)


def _number(value: model.Number) -> Any:
    """A number as Python has it; text that is none, as it is."""
    found = model.python_number(value)
    return value if found is None else found


def _opaque(shown: model.Opaque) -> str:
    if network := re.fullmatch(r"(\w+)\(.*, (\d+) parameters", shown.text, re.DOTALL):
        return f"{network[1]} with {int(network[2]):,} parameters"
    if re.fullmatch(r"[\w<>]+(\.[\w<>]+)+", shown.text):  # a class or a function, by its module and name
        return shown.text.rpartition(".")[2]
    return standin.quoted(shown.text, shown.cut)


# ---------------------------------------------------------------------------- prose


def _told(made: _Made, item: cells.Told) -> None:
    """Prose, pictures and links of one statement; of a note that never ran, what it says anyway."""
    found = made.of(item.function)
    name = made.record.functions[item.function].name
    told = [p for p in found.pieces if item.first <= p.line <= item.last and p.kind in cells.STATED]
    if not told and not found.stamp:
        for statement in made.record.statements:
            if statement.prose and item.first <= statement.first <= item.last:
                said = evidence.unspoken(statement.prose)
                asked = said.startswith("**Check yourself.** ")
                answer = "\n\nIts answer comes from a run; this line has not run." if asked else ""
                made.prose(name, _markdown(made, said + answer, item.function))
    for piece in told:
        _tell(made, item, piece, found, name)


def _tell(made: _Made, item: cells.Told, piece: model.Piece, found: evidence.Evidence, name: str) -> None:
    def said(text: str) -> str:
        return _markdown(made, text, item.function)

    if piece.kind == "note":
        made.prose(name, said(piece.text))
    elif piece.kind == "misbelief":
        made.prose(name, _quote(f"**Commonly said:** {said(piece.text)}\n\n**Run:** {said(piece.data)}"))
    elif piece.kind == "link":
        made.prose(name, _link(made, piece))
    elif piece.kind == "image":
        _image(made, piece, name)
    elif piece.kind == "question":
        made.prose(name, _question(piece, found, said))
        if item.answer is not None:
            _answer(made, item.answer, piece, found, name)


def _answer(made: _Made, code: cells.Code, piece: model.Piece, found: evidence.Evidence, name: str) -> None:
    """A folded cell that computes a question's answer."""
    show = code.rows[0].show
    assert show is not None
    line = code.rows[0].text + _call(made, code, show)
    lines = [f"if {made.names['has_cuda']}():", line] if code.device else [line]
    outputs = []
    if piece.answer is not None:
        said = standin.bounded(_said(found.record.snapshots[piece.answer], show.unit or ""))
        outputs.append(_stream(f"answer = {said}\n"))
    made.code(
        name, "\n".join(lines), outputs, ["hide-cell", *([f"needs-{code.device}"] if code.device else [])]
    )


def _question(piece: model.Piece, found: evidence.Evidence, said: Callable[[str], str]) -> str:
    parts = [f"**Check yourself.** {said(piece.text)}"]
    if piece.data:
        parts.append(f"<details><summary>Hint</summary>\n\n{said(piece.data)}\n\n</details>")
    if piece.answer is not None:
        value = markup.text(values.line(found.record.snapshots[piece.answer], piece.unit))
        where = f" ({_plain(found.stamp)})" if found.stamp else ""
        parts.append(f"<details><summary>Answer</summary>\n\n<code>{value}</code>{where}\n\n</details>")
    return "\n\n".join(parts)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _link(made: _Made, piece: model.Piece) -> str:
    kind, _, name = piece.data.partition(":")
    if kind == "function":
        return _markdown(made, f"[{piece.text or name}](#{name})")
    if kind == "cite":
        return _markdown(made, f"{piece.text} [@{name}]")
    return _markdown(made, f"[{piece.text or piece.data}]({piece.data})")


def _image(made: _Made, piece: model.Piece, name: str) -> None:
    """A picture as an attachment: it travels in the file, and nothing is fetched."""
    match = re.fullmatch(r"data:(image/[\w+.-]+);base64,([A-Za-z0-9+/=]+)", piece.data)
    alt = _plain(piece.alt)
    caption = f"\n\n*{_markdown(made, piece.text)}*" if piece.text else ""
    if match is None:
        made.prose(name, f"*Picture: {alt}*{caption}")
        return
    cell = made.prose(name, f"![{alt}](attachment:picture){caption}")
    cell.attachments = {"picture": {match[1]: match[2]}}


# What Markdown leaves alone: fenced code, code spans, mathematics.
_LITERAL = re.compile(
    r"(^[ ]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ ]*(?P=fence)[ ]*$"
    r"|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<![\\$])\$\$.+?\$\$|(?<![\\$\w])\$(?![\s$])(?:[^$\\\n]|\\.)+?(?<!\s)\$(?![\d$]))",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?[^()]*\)"
)
_CITATION = re.compile(r"\[@[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]")
_SAFE = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


def _markdown(made: _Made, text: str, function: int | None = None) -> str:
    """A note's Markdown as a notebook has it: citations named, links to sections resolved, no raw HTML."""
    level = next(
        (i.level for i in made.layout.items if isinstance(i, cells.Section) and i.function == function), 1
    )
    done: list[str] = []
    at = 0
    text = _admonitions(_visible(text))
    for literal in _LITERAL.finditer(text):
        done += [_worded(made, text[at : literal.start()], level), literal[0]]
        at = literal.end()
    return "".join([*done, _worded(made, text[at:], level)])


def _worded(made: _Made, text: str, level: int) -> str:
    """Markdown outside code and mathematics."""
    text = re.sub(r"<(?!https?://[^\s<>]+>)", "&lt;", text)
    text = _CITATION.sub(lambda m: _cited(made, m[0]), text)
    text = _LINK.sub(lambda m: _linked(made, m[2], m[3]), text)
    text = re.sub(
        r"^( {0,3})\[([^\]\n]+)\]:", r"\1\\[\2]:", text, flags=re.MULTILINE
    )  # no reference definitions
    return re.sub(r"^(#{1,6})(?= )", lambda m: "#" * min(6, level + len(m[1])), text, flags=re.MULTILINE)


def _linked(made: _Made, label: str, target: str) -> str:
    if target.startswith("#"):
        name = target[1:]
        if name in made.known:
            return f"[{label}](#{anchor(made.known[name])})"
        part = made.elsewhere.get(name)
        return f"{label} (in the part “{_plain(part)}”)" if part else label
    return f"[{label}]({target})" if _SAFE.fullmatch(target) else label


def anchor(heading: str) -> str:
    """The address of a heading, as Jupyter gives it."""
    return re.sub(r"[`*]", "", heading).replace(" ", "-")


def _cited(made: _Made, text: str) -> str:
    """`[@key]` as the works' authors and year, linked."""
    found = []
    for key in re.findall(r"@([\w:./+-]+)", text):
        try:
            entry = find(made.bibliography, key)
        except NoSuchWork:
            found.append(f"@{key}?")
            continue
        if key not in made.cited:
            made.cited.append(key)
        label = " ".join(filter(None, (_plain(names(entry)), entry.year))) or _plain(entry.title)
        found.append(f"[{label}]({entry.url})" if _SAFE.fullmatch(entry.url) else label)
    return f"({'; '.join(found)})"


def _reference(made: _Made, key: str) -> str:
    entry = made.bibliography[key]
    title = _plain(entry.title)
    title = f"[*{title}*]({entry.url})" if _SAFE.fullmatch(entry.url) else f"*{title}*"
    tail = ", ".join(_plain(part) for part in (entry.venue, entry.year) if part)
    return f"- {'. '.join(part for part in (_plain(names(entry)), title, tail) if part)}."


def _admonitions(text: str) -> str:
    """`!!! note "Title"` and the indented lines below it as a quotation."""
    lines, found, inside = text.split("\n"), list[str](), False
    for line in lines:
        if match := re.match(r'!!!\s+(\w+)(?:\s+"([^"]*)")?\s*$', line):
            inside = True
            found += [f"> **{match[2] if match[2] is not None else match[1].capitalize()}**", ">"]
        elif inside and (line.startswith("    ") or not line.strip()):
            found.append(f"> {line[4:]}".rstrip())
        else:
            inside = False
            found.append(line)
    return "\n".join(found)


_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def _visible(text: str) -> str:
    """Text in which nothing is hidden: controls and direction marks are spelled out."""
    return "".join(
        f"⟨U+{ord(c):04X}⟩" if unicodedata.category(c) in _HIDDEN and c not in "\n\t\u200d" else c
        for c in text
    )


def _plain(text: object) -> str:
    """A short text that Markdown takes as it is."""
    return re.sub(r"([\\`*_\[\]<>#$|])", r"\\\1", _one_line(str(text)))


def _one_line(text: str) -> str:
    return " ".join(_visible(text).split())


def _whole(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
