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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from litbook.errors import Place, Problem, UnusableLecture
from litbook.project import name_of
from litbook.project import shown as shown_path
from litbook.record import model
from litbook.text.beside import WORD, modules_beside
from litbook.text.claims import find_claims, mark_measured
from litbook.text.compiled import leave_compiled_code_alone
from litbook.text.directives import (
    Anchors,
    Directive,
    allow_zeros,
    anchors_in,
    attach,
    directives_in,
    hide,
    watches_in,
)
from litbook.text.imports import Names, find_circles
from litbook.text.lecture import File, Lecture, with_modules
from litbook.text.refused import find_lost_sections, find_what_says_nothing
from litbook.text.sections import (
    Calls,
    files_in_order,
    find_sections,
    number_definitions,
    number_statements,
    section_calls,
)
from litbook.text.tree import lines_of, plain, uncollected

Text = tuple[str, str]
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
    modules = [
        it for it in path.glob("*.py") if it.stem.isidentifier() and it.stem != "__main__" and it.is_file()
    ]
    return sorted(modules, key=lambda it: (it.stem != "__init__", it.stem))


def read(path: Path, shown: str | None = None) -> Lecture:
    """The lecture in the file or folder `path`, called `shown` in messages and in the record.

    Raises `UnusableLecture` with every problem found in any of its files: not text, syntax errors, unknown
    directives, expressions that do not parse, no `main`, files that import each other in a circle.
    """
    path = lecture_path(path)
    shown, problems = shown or path.name, list[Problem]()
    texts = _texts(path, shown, problems)
    if problems:
        for at, text in texts:  # what is wrong with the others
            problems += _marked(at, plain(text), True).problems
        raise UnusableLecture(problems)
    found, places = parse_files(tuple(texts)), {at: str(place) for (at, _), place in texts.items()}
    return replace(found, files=[replace(it, filename=places[it.path]) for it in found.files])


def _texts(path: Path, shown: str, problems: list[Problem]) -> dict[Text, Path]:
    """The text of every file that can be read, and where that lies: one text may lie in several places."""
    if not name_of(path).isidentifier():  # it becomes the names of pages, recordings and modules
        what, there = f"{shown} has no plain name", "folder" if path.is_dir() else "file"
        way_out = f"call the {there} by letters, digits and _ alone"
        problems.append(Problem("no-name", what, None, way_out))
        return {}
    if path.is_dir() and not (path / "__init__.py").is_file():
        what = f"{shown} is a folder without __init__.py"
        problems.append(Problem("no-init", what, None, "a lecture that is a folder has its main() there"))
    files = lecture_files(path)
    places = {f"{shown}/{file.name}" if path.is_dir() else shown: file for file in files}
    texts = {at: text for at, file in places.items() for text in _text(file, at, problems)}
    for at, text in [*texts.items()][:1]:  # the file that has `main`
        places[at] = places[at] if path.is_dir() else path.resolve()
        folder, own = path.resolve().parent, {path.stem, *(file.stem for file in files)}
        names = _beside((at, text), folder, own, problems)
        others = {(PurePosixPath(shown).parent / f"{it}.py").as_posix(): folder / f"{it}.py" for it in names}
        texts |= {at: text for at, file in others.items() for text in _text(file, at, problems)}
        places |= others
    return {it: places[it[0]] for it in texts.items()}


def _beside(text: Text, folder: Path, own: Collection[str], problems: list[Problem]) -> list[str]:
    """The modules beside the lecture that are its text, too; none where the text has no tree."""
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):  # parsing it will say so
        if WORD in text[1]:
            return modules_beside(_file(text), folder, own, problems)
    return []


def _text(path: Path, shown: str, problems: list[Problem]) -> list[str]:
    """The text of the file; none and a problem where it cannot be read."""
    try:
        with tokenize.open(path) as file:
            return [file.read()]
    except OSError as error:
        problems.append(Problem("unreadable", f"{shown}: {error.strerror}"))
    except (UnicodeDecodeError, SyntaxError) as error:
        problems.append(Problem("not-text", f"{shown} is not Python text: {error}"))
    return []


@uncollected()
def outline(path: Path) -> Lecture:
    """The functions, sections and headings of the lecture at `path`: all that a list of them needs.

    Quicker than `read`, which it leaves to complain: raises `UnusableLecture` as that does, for a text with a
    syntax error or no `main`. Other problems of the text are not looked for.
    """
    path, problems = lecture_path(path), list[Problem]()
    with contextlib.suppress(ValueError, SyntaxError, RecursionError):
        texts = _texts(path, path.name, problems)
        if not problems:
            found, _, _ = _found(with_modules([*map(_file, texts)]), problems)
        if not problems:
            return found
    return usable(path)


def _file(text: Text) -> File:
    """The file, and no more of it than its tree. Raises what `ast.parse` does."""
    return File(text[0], plain(text[1]), ast.parse(plain(text[1])))


def usable(path: Path, sections: Iterable[str] = (), shown: str | None = None) -> Lecture:
    """The lecture at `path`, read; nothing of it runs, and nothing heavy is imported.

    Raises `UnusableLecture`, and `NotFound` for one of `sections` that it does not have. The latter comes
    first where only other things than the outline are wrong with the text.
    """
    path, wanted = lecture_path(path), list(sections)
    try:
        found = read(path, shown or shown_path(path.resolve()))
    except UnusableLecture:
        with contextlib.suppress(UnusableLecture):
            for name in wanted:
                outline(path).section(name)
        raise
    for name in wanted:
        found.section(name)
    return found


def parse(text: str, path: str = "<lecture>", *, lecture: bool = True) -> Lecture:
    """The text of a lecture, taken apart. Line ends of other systems become newlines, as in Python.

    With `lecture=False` any Python text is accepted: it needs no `main`, and has no sections and no
    directives (its comments may start with an `@` of their own).

    Raises `UnusableLecture` with every problem found.
    """
    return parse_files(((path, text),), lecture=lecture)


def parse_sources(sources: Sequence[model.Source]) -> Lecture:
    """The lecture whose files a record holds, taken apart as in `parse`."""
    return parse_files(tuple((it.path, it.text) for it in sources))


@functools.lru_cache(maxsize=2)  # the command line, the run and the search for bare numbers ask for the same
@uncollected()
def parse_files(texts: tuple[Text, ...], *, lecture: bool = True) -> Lecture:
    """The files of a lecture, taken apart as in `parse`; the first has `main`."""
    problems: list[Problem] = []
    marked = [_marked(path, plain(text), lecture) for path, text in texts]
    for it in marked:
        problems += it.problems
    try:
        found = _taken_apart(
            with_modules([m.file for m in marked]), {m.file.path: m for m in marked}, lecture, problems
        )
    except RecursionError:
        problems += _too_deep(texts)
    if problems:
        raise UnusableLecture(problems)
    return found


def _too_deep(texts: tuple[Text, ...]) -> list[Problem]:
    """Which of the files nest their statements deeper than Python goes."""
    found = list[Problem]()
    for it in texts:
        file = _file(it)
        try:
            number_statements(_numbered([file], Names([file])), {})
        except RecursionError:
            what = f"{file.path} nests its statements too deep to be followed"
            found.append(Problem("too-deep", what))
    return found


@dataclass(frozen=True)
class _Marked:
    """What one file says by itself; without a tree, where it cannot be parsed."""

    file: File
    tree: ast.Module | None
    anchors: Anchors
    directives: list[Directive]
    problems: tuple[Problem, ...]


@functools.lru_cache(maxsize=64)  # a save changes one file of a lecture
def _marked(path: str, text: str, lecture: bool) -> _Marked:
    problems: list[Problem] = []
    tree, warns = _tree(text, path, problems)
    file = File(path, text, tree or ast.Module([], []), path, warns=warns)
    anchors = anchors_in(file.tree)
    directives = directives_in(file, anchors if tree else None, problems) if lecture else []
    return _Marked(file, tree, anchors, directives, tuple(problems))


def _taken_apart(
    files: list[File], marked: dict[str, _Marked], lecture: bool, problems: list[Problem]
) -> Lecture:
    if lecture and marked[files[0].path].tree is not None:
        found, names, calls = _found(files, problems)
    else:
        names = Names(files)
        found, calls = _numbered(files, names), {}
    number_statements(found, calls)
    for file in found.files:
        it = marked[file.path]
        if it.tree is not None:
            attach(found, file, it.directives, it.anchors, problems)
        else:  # what can be said without a tree
            for directive in it.directives:
                watches_in(file, directive, problems)
    find_claims(found)
    allow_zeros(found, problems)
    if lecture:
        find_what_says_nothing(found, names, problems)
        find_circles(names, problems)
    hide(found)
    mark_measured(found)
    leave_compiled_code_alone(found, names)
    return found


def _found(files: list[File], problems: list[Problem]) -> tuple[Lecture, Names, Calls]:
    """The lecture with its definitions and sections, and the calls among these; its files in their order."""
    names = Names(files)
    calls = section_calls(files, names)
    if len(files) > 1:
        files = [files[i] for i in files_in_order(files, names, calls)]
        names = Names(files)
    found = _numbered(files, names)
    find_lost_sections(found, find_sections(found, calls, problems), names, problems)
    return found, names, calls


def _numbered(files: list[File], names: Names) -> Lecture:
    """The lecture of these files with its definitions."""
    files = [replace(file, number=number) for number, file in enumerate(files)]
    found = Lecture(files, names, files[0].module or Path(files[0].path).stem)
    number_definitions(found)
    return found


def _tree(text: str, path: str, problems: list[Problem]) -> tuple[ast.Module | None, bool]:
    """The syntax tree, and whether the compiler warns of something in it; or None and a problem.

    A problem is also what only the compiler refuses (a stray `return`).
    """
    try:
        tree = ast.parse(text, path)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")  # kept here: they are shown once, when instrument compiles
            compile(tree, path, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        problems.append(_unparsed(error, text, path))
    except (ValueError, RecursionError, MemoryError) as error:
        problems.append(Problem("syntax", f"{path} cannot be parsed: {error}"))
    else:
        return tree, bool(given)
    return None, False


def _unparsed(error: SyntaxError, text: str, path: str) -> Problem:
    """What Python says of a text that it cannot read; of a wrong indentation also the line above."""
    line, lines = error.lineno or 1, lines_of(text)
    shown = lines[line - 1] if 0 < line <= len(lines) else (error.text or "")
    what = f"syntax error: {error.msg}"
    if not isinstance(error, IndentationError) or not shown.strip():
        return Problem("syntax", what, Place(path, line, error.offset or 1, shown))
    place = Place(path, line, len(shown) - len(shown.lstrip()) + 1, shown)
    said = (before for before in reversed(lines[: line - 1]) if before.strip()[:1] not in ("", "#"))
    above = next(said, "")
    way_out = next(way for begins, way in _INDENT.items() if error.msg.startswith(begins))
    if not above and not error.msg.startswith("expected"):
        way_out = "begin it at the left margin"
    return Problem("syntax", what, place, way_out, above)


_INDENT = {  # how Python's messages about indentation begin, and the way out
    "inconsistent use of tabs": "indent with spaces only",
    "expected an indented block": "indent what belongs into that block, or write `pass` there",
    "unindent": "indent it as far as the statement above, or as a block around that",
    "unexpected indent": "indent it as far as the statement above",
    "": "",
}
