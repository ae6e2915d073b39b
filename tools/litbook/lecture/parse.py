"""A lecture's text -> a `Lecture`, or every problem that the text has. Knows no values and runs nothing.

The steps stand in modules of their own: `directives`, `sections`, `claims`, `refused`, `compiled`; what they
leave is described in `lecture`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import tokenize
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from litbook.errors import UnusableLecture
from litbook.finding import Finding, Place
from litbook.lecture.claims import find_claims, mark_measured
from litbook.lecture.directives import UNREAD, Anchors, Directive, anchors_in, attach, directives_in, hide
from litbook.lecture.extra_modules import WORD, modules_beside
from litbook.lecture.model import Lecture
from litbook.lecture.sections import (
    CallGraph,
    files_in_order,
    find_sections,
    number_definitions,
    number_statements,
    section_calls,
    speaks_others_words,
    statements_in,
)
from litbook.lecture.uninstrumented import leave_compiled_code_alone
from litbook.project import display_path as shown_path
from litbook.project import name_of
from litbook.python.file import File, with_modules
from litbook.python.imports import NameResolver, find_circles
from litbook.python.nodes import lines_of, normalize_newlines, parse_text, pause_collection
from litbook.record import model
from litbook.rules.refused import find_lost_sections, find_what_says_nothing

FileText = tuple[str, str]
"""The path and the text of one file."""


def lecture_path(path: Path) -> Path:
    """The file or the folder that is the lecture: of a path to an `__init__.py` the folder."""
    folder = path.parent if path.name == "__init__.py" else path
    try:
        return folder.resolve() if folder.is_dir() else path
    except OSError:  # a name that is too long is no lecture
        return path


def lecture_files(path: Path) -> list[Path]:
    """The files of the lecture at `path`: that file, or the modules of that folder, `__init__.py` first.

    What lies in folders of the folder is no text of the lecture, and nor is `__main__.py`.
    """
    path = lecture_path(path)
    if not path.is_dir():
        return [path]
    modules = (file for file in path.glob("*.py") if file.stem.isidentifier() and file.is_file())
    modules = (file for file in modules if file.stem != "__main__")
    return sorted(modules, key=lambda file: (file.stem != "__init__", file.stem))


def read(path: Path, shown: str | None = None) -> Lecture:
    """The lecture in the file or folder `path`, called `shown` in messages and in the record.

    Raises `UnusableLecture` with every problem found in any of its files: not text, syntax errors, unknown
    directives, expressions that do not parse, no `main`, files that import each other in a circle.
    """
    path = lecture_path(path)
    shown, problems = shown or path.name, list[Finding]()
    texts = _texts(path, shown, problems)
    if problems:
        for at, text in texts:  # what is wrong with the others
            problems += _parse_file(at, normalize_newlines(text), True).problems
        raise UnusableLecture(problems)
    lecture, places = parse_files(tuple(texts)), {at: str(place) for (at, _), place in texts.items()}
    return replace(lecture, files=[replace(file, filename=places[file.path]) for file in lecture.files])


def _texts(path: Path, shown: str, problems: list[Finding]) -> dict[FileText, Path]:
    """The text of every file that can be read, and where that lies: one text may lie in several places."""
    # It becomes the names of pages and recordings, and of a folder the name that is imported.
    if not (name_of(path) if path.is_dir() else f"_{name_of(path)}").isidentifier():
        what, kind = f"{shown} has no plain name", "folder" if path.is_dir() else "file"
        way_out = f"call the {kind} by letters, digits and _ alone"
        problems.append(Finding("no-name", what, None, way_out))
        return {}
    if path.is_dir() and not (path / "__init__.py").is_file():
        what = f"{shown} is a folder without __init__.py"
        problems.append(Finding("no-init", what, None, "a lecture that is a folder has its main() there"))
    files = lecture_files(path)
    places = {f"{shown}/{file.name}" if path.is_dir() else shown: file for file in files}
    texts = _read_all(places, problems)
    for at, text in [*texts.items()][:1]:  # the file that has `main`
        places[at] = places[at] if path.is_dir() else path.resolve()
        folder, taken = path.resolve().parent, {path.stem, *(file.stem for file in files)}
        names = list[str]()  # of the modules beside the lecture that are its text, too
        # What is wrong with it, parsing it will say.
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if WORD in text:
                names = modules_beside(_file(at, text), folder, taken, problems)
        beside = {(PurePosixPath(shown).parent / f"{m}.py").as_posix(): folder / f"{m}.py" for m in names}
        texts |= _read_all(beside, problems)
        places |= beside
    return {(at, text): places[at] for at, text in texts.items()}


def _read_all(places: dict[str, Path], problems: list[Finding]) -> dict[str, str]:
    """The texts of these files; of each that cannot be read none, and a problem."""
    texts: dict[str, str] = {}
    for shown, path in places.items():
        try:
            with tokenize.open(path) as file:
                texts[shown] = file.read()
        except OSError as error:
            problems.append(Finding("unreadable", f"{shown}: {error.strerror}"))
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            byte = error.object[error.start : error.end]
            what = f"{shown}:{line}: this is no text in {error.encoding}: {byte!r}"
            problems.append(Finding("not-text", what, way_out="save the file as UTF-8"))
        except SyntaxError as error:
            what = f"{shown} is not Python text: {error}"
            problems.append(Finding("not-text", what, way_out="save the file as UTF-8"))
    return texts


@pause_collection()
def outline(path: Path) -> Lecture:
    """The functions, sections and headings of the lecture at `path`: all that a list of them needs.

    Quicker than `read`, which it leaves to complain: raises `UnusableLecture` as that does, for a text with a
    syntax error or no `main`. Other problems of the text are not looked for.
    """
    path, problems = lecture_path(path), list[Finding]()
    with contextlib.suppress(ValueError, SyntaxError, RecursionError):
        texts = _texts(path, path.name, problems)
        if not problems:
            lecture, _ = _with_sections(with_modules([_file(*text) for text in texts]), problems)
        if not problems:
            return lecture
    return read_usable(path)


def _file(path: str, text: str) -> File:
    """The file, and no more of it than its tree. Raises what `ast.parse` does."""
    return File(path, normalize_newlines(text), parse_text(text, path))


def read_usable(path: Path, sections: Iterable[str] = ()) -> Lecture:
    """The lecture at `path`, read; nothing of it runs, and nothing heavy is imported.

    Raises `UnusableLecture`, and `NotFound` for one of `sections` that it does not have. The latter comes
    first where only other things than the outline are wrong with the text.
    """
    path, wanted = lecture_path(path), list(sections)
    try:
        lecture = read(path, shown_path(path.resolve()))
    except UnusableLecture:
        with contextlib.suppress(UnusableLecture):
            for name in wanted:
                outline(path).section(name)
        raise
    for name in wanted:
        lecture.section(name)
    return lecture


def parse(text: str, path: str = "<lecture>", *, lecture: bool = True) -> Lecture:
    """The text of a lecture, taken apart. Line ends of other systems become newlines, as in Python.

    With `lecture=False` any Python text is accepted: it needs no `main`, and has no sections and no
    directives (its comments may start with an `@` of their own).

    Raises `UnusableLecture` with every problem found.
    """
    return parse_files(((path, text),), lecture=lecture)


def parse_sources(sources: Sequence[model.Source]) -> Lecture:
    """The lecture whose files a record holds, taken apart as in `parse`."""
    return parse_files(tuple((source.path, source.text) for source in sources))


@functools.lru_cache(maxsize=2)  # the command line, the run and the search for bare numbers ask for the same
@pause_collection()
def parse_files(texts: tuple[FileText, ...], *, lecture: bool = True) -> Lecture:
    """The files of a lecture, taken apart as in `parse`; the first has `main`.

    What a file says by itself is kept for the next time, when perhaps another one of them has changed.
    """
    parts = [_parse_file(path, normalize_newlines(text), lecture) for path, text in texts]
    problems = [problem for part in parts for problem in part.problems]
    marked, files = {part.file.path: part for part in parts}, with_modules([part.file for part in parts])
    if lecture and marked[files[0].path].tree is not None:
        parsed, calls = _with_sections(files, problems)
    else:
        parsed, calls = _with_definitions(files, NameResolver(files)), {}
    number_statements(parsed, calls)
    for file in parsed.files:
        part = marked[file.path]
        unread = [*part.remarks]
        if part.tree is not None:
            attach(parsed, file, part.directives, part.anchors, unread if part.foreign else problems)
        parsed.remarks += [replace(finding, code=UNREAD) for finding in unread]
    find_claims(parsed)
    if lecture:
        find_what_says_nothing(parsed, problems)
        find_circles(parsed.names, problems)
    hide(parsed)
    mark_measured(parsed)
    leave_compiled_code_alone(parsed)
    if problems:
        raise UnusableLecture(problems)
    return parsed


def _with_sections(files: list[File], problems: list[Finding]) -> tuple[Lecture, CallGraph]:
    """The lecture with its definitions and sections, its files in their order; and the calls among these."""
    names = NameResolver(files)
    calls = section_calls(files, names)
    if len(files) > 1:
        files = [files[i] for i in files_in_order(files, names, calls)]
        names = NameResolver(files)
    lecture = _with_definitions(files, names)
    find_lost_sections(lecture, find_sections(lecture, calls, problems), problems)
    return lecture, calls


def _with_definitions(files: list[File], names: NameResolver) -> Lecture:
    files = [replace(file, number=number) for number, file in enumerate(files)]
    lecture = Lecture(files, names, files[0].module or Path(files[0].path).stem)
    number_definitions(lecture)
    return lecture


@dataclass(frozen=True)
class _ParsedFile:
    """What one file says by itself; without a tree, where it cannot be parsed."""

    file: File
    tree: ast.Module | None
    anchors: Anchors
    directives: list[Directive]
    problems: tuple[Finding, ...]
    foreign: bool = False  # it imports another tool's words
    remarks: tuple[Finding, ...] = ()  # on directives, where that tool sees a comment


@functools.lru_cache(maxsize=64)  # a save changes one file of a lecture
def _parse_file(path: str, text: str, lecture: bool) -> _ParsedFile:
    tree, warns, problems = None, False, list[Finding]()
    try:
        parsed = parse_text(text, path)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")  # kept here: they are shown once, when instrument compiles
            # Some things only the compiler refuses: a stray `return`.
            compile(parsed, path, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        line, lines = error.lineno or 1, lines_of(text)
        shown = lines[line - 1] if 0 < line <= len(lines) else (error.text or "")
        column, way_out, above = error.offset or 1, "", None
        if isinstance(error, IndentationError) and shown.strip():  # then the line above is named, too
            column = len(shown) - len(shown.lstrip()) + 1
            code = (before for before in reversed(lines[: line - 1]) if before.strip()[:1] not in ("", "#"))
            above = next(code, "")
            way_out = next(way for begins, way in _INDENT.items() if error.msg.startswith(begins))
            if not above and not error.msg.startswith("expected"):
                way_out = "begin it at the left margin"
        place = Place(path, line, column, shown)
        problems.append(Finding("syntax", f"syntax error: {error.msg}", place, way_out, above))
    except (ValueError, RecursionError, MemoryError) as error:
        problems.append(Finding("syntax", f"{path} cannot be parsed: {error}"))
    else:
        try:
            statements_in(text, parsed)
            tree, warns = parsed, bool(given)
        except RecursionError:
            problems.append(Finding("too-deep", f"{path} nests its statements too deep to be followed"))
    file = File(path, text, tree or ast.Module([], []), path, warns=warns)
    anchors = anchors_in(file.tree)
    foreign, remarks = speaks_others_words(file.tree), list[Finding]()
    unread = remarks if foreign else problems
    directives = directives_in(file, anchors if tree else None, unread) if lecture else []
    return _ParsedFile(file, tree, anchors, directives, tuple(problems), foreign, tuple(remarks))


_INDENT = {  # how Python's messages about indentation begin, and the way out
    "inconsistent use of tabs": "indent with spaces only",
    "expected an indented block": "indent what belongs into that block, or write `pass` there",
    "unindent": "indent it as far as the statement above, or as a block around that",
    "unexpected indent": "indent it as far as the statement above",
    "": "",
}
