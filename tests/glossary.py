"""The glossary's rows, and what the sections that it names say: which word is said where."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

from litbook.lecture import parse

ROW = re.compile(
    r"\| (?P<term>[^|]+) \| (?P<sentence>[^|]+) \| "
    r"\[(?P<title>[^\]]+)\]\(lectures/(?P<lecture>\w+)/(?P<page>[^)#]+)\.md#(?P<section>\w+)\) \|"
)


class Section(NamedTuple):
    """A section or part: where it stands, what its notes and boxes say, and whether it is an aside."""

    lecture: str
    part: str
    name: str
    title: str
    prose: str
    aside: bool


def rows(glossary: str) -> list[dict[str, str]]:
    """The rows of the glossary's table: term, sentence, title, lecture, page and section."""
    return [match.groupdict() for match in ROW.finditer(glossary)]


@functools.cache  # for one build: later lectures need the earlier ones, too
def sections(lecture: Path) -> list[Section]:
    """The parts and sections of a lecture, in the order of reading."""
    read = parse.read(lecture, lecture.name)
    bodies = {n.name: n for file in read.files for n in file.tree.body if isinstance(n, ast.FunctionDef)}
    (main,) = (n for n in bodies.values() if n.name == "main")
    parts = {n.func.id for n in ast.walk(main) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    told, part = [], ""
    for name in (read.functions[i].name for i in read.order):
        if body := bodies.get(name):
            part = name if name in parts else part
            aside = any(ast.unparse(decorator) == "aside" for decorator in body.decorator_list)
            title = (ast.get_docstring(body) or name).partition("\n")[0].rstrip(".").replace("`", "")
            told.append(Section(lecture.name, part, name, title, prose(body), aside))
    return told


def prose(function: ast.FunctionDef) -> str:
    """The words of its notes and boxes, with … for what is computed."""
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    calls = [call for call in calls if ast.unparse(call.func) in ("note", "misbelief")]
    words = []
    for call in sorted(calls, key=lambda call: call.lineno):
        for argument in call.args:
            pieces = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
            words += [str(piece.value) if isinstance(piece, ast.Constant) else "…" for piece in pieces]
    return " ".join("".join(words).split())


def mentions(term: str, told: str) -> bool:
    """Whether a text says a word. Capitals within a word have to agree: ZeRO is not zero."""
    case = re.IGNORECASE if term[1:].islower() else re.NOFLAG
    return re.search(rf"(?<![\w-]){re.escape(term)}(?!\w)", told, case) is not None
