"""A lecture's text -> a `Lecture`, or every problem that the text has. Knows no values and runs nothing.

The steps stand in modules of their own: `directives`, `sections`, `claims`, `refused`, `compiled`; what they
leave is described in `lecture`. Names of these modules that others ask for can be had from here.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import tokenize
import warnings
from collections.abc import Iterable
from pathlib import Path

from litbook.errors import NotFound, Place, Problem, UnusableLecture
from litbook.text.claims import dissect, find_claims
from litbook.text.compiled import leave_compiled_code_alone
from litbook.text.directives import DIRECTIVES, Directive, anchors_in, attach, directives_in, watches_in
from litbook.text.lecture import INSTALLED, Assertion, Function, Lecture
from litbook.text.refused import find_lost_sections, find_what_says_nothing
from litbook.text.sections import Calls, find_sections, number_definitions, number_statements, section_calls
from litbook.text.tree import (
    Definition,
    FunctionNode,
    first_line,
    lines_of,
    own_nodes,
    parameters,
    uncollected,
)
from litbook.text.unspoken import unspoken

__all__ = [
    "DIRECTIVES", "INSTALLED", "Assertion", "Definition", "Directive", "Function", "FunctionNode", "Lecture",
    "dissect", "first_line", "outline", "own_nodes", "parameters", "parse", "read", "shown_path",
    "uncollected", "unspoken", "usable",
]  # fmt: skip


def read(path: Path, shown: str | None = None) -> Lecture:
    """The lecture in the file `path`, called `shown` in messages and in the record.

    Raises `UnusableLecture` with every problem found: not text, syntax errors, unknown directives,
    expressions that do not parse, no `main`.
    """
    shown = shown or path.name
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except OSError as error:
        raise UnusableLecture([Problem("unreadable", f"{shown}: {error.strerror}")]) from None
    except (UnicodeDecodeError, SyntaxError) as error:
        raise UnusableLecture([Problem("not-text", f"{shown} is not Python text: {error}")]) from None
    return parse(text, shown)


@uncollected()
def outline(path: Path) -> Lecture:
    """The functions, sections and headings of the lecture in the file `path`: all that a list of them needs.

    Quicker than `read`, which it leaves to complain: raises `UnusableLecture` as that does, for a text with a
    syntax error or no `main`. Other problems of the text are not looked for.
    """
    with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):
        with tokenize.open(path) as file:
            text = file.read().replace("\r\n", "\n").replace("\r", "\n")
        found = Lecture(path.name, text, ast.parse(text))
        problems: list[Problem] = []
        number_definitions(found)
        _find_sections(found, section_calls(found), problems)
        if not problems:
            return found
    return usable(path)


def usable(path: Path, sections: Iterable[str] = (), shown: str | None = None) -> Lecture:
    """The lecture in the file `path`, read; nothing of it runs, and nothing heavy is imported.

    Raises `UnusableLecture`, and `NotFound` for one of `sections` that it does not have. The latter comes
    first, and sooner, where only other things than the outline are wrong with the text.
    """
    wanted = list(sections)
    if wanted:
        with contextlib.suppress(UnusableLecture):  # `read` says so, under the right name
            there = outline(path).section_names()
            for name in wanted:
                if name not in there:
                    raise NotFound("section", name, there)
    return read(path, shown or shown_path(path.resolve()))


def shown_path(path: Path) -> str:
    """The path as messages and records name it: from the project's root, else the bare file name."""
    for folder in path.parents:
        if (folder / "mkdocs.yml").exists() or (folder / ".git").exists():
            return path.relative_to(folder).as_posix()
    return path.name


@functools.lru_cache(maxsize=2)  # the command line, the run and the search for bare numbers ask for the same
@uncollected()
def parse(text: str, path: str = "<lecture>", *, lecture: bool = True) -> Lecture:
    """The text of a lecture, taken apart. Line ends of other systems become newlines, as in Python.

    With `lecture=False` any Python text is accepted: it needs no `main`, and has no sections and no
    directives (its comments may start with an `@` of their own).

    Raises `UnusableLecture` with every problem found.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    problems: list[Problem] = []
    tree, warns = _tree(text, path, problems)
    found = Lecture(path, text, tree or ast.Module([], []), warns=warns)
    try:
        _take_apart(found, tree, problems, lecture)
    except RecursionError:
        problems.append(Problem("too-deep", f"{path} nests its statements too deep to be followed"))
    if problems:
        raise UnusableLecture(problems)
    return found


def _take_apart(found: Lecture, tree: ast.Module | None, problems: list[Problem], lecture: bool) -> None:
    anchors = anchors_in(found.tree)
    directives = directives_in(found, anchors if tree else None, problems) if lecture else []
    if tree is not None:
        _number(found, lecture, problems)
        attach(found, directives, anchors, problems)
        leave_compiled_code_alone(found)
    else:  # what can be said without a tree
        for directive in directives:
            watches_in(found, directive, problems)


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


def _find_sections(found: Lecture, calls: Calls, problems: list[Problem]) -> None:
    find_lost_sections(found, find_sections(found, calls, problems), problems)


def _number(found: Lecture, lecture: bool, problems: list[Problem]) -> None:
    """Number every function and statement in reading order, and say what each is."""
    number_definitions(found)
    calls = section_calls(found) if lecture else {}
    if lecture:
        _find_sections(found, calls, problems)
    number_statements(found, calls)
    find_claims(found)
    if lecture:
        find_what_says_nothing(found, problems)
