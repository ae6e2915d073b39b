"""Records made by hand, from a lecture's text: what a run might have left, without a run.

`record` has the sections of a text, none of which ran. `ran` fills in the entry of one of them, `split` puts
sections into files of their own, as a lecture in a folder has them. Lines of an entry count from its first:
`line` finds them by their text.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from litbook.record import model
from litbook.record.model import Frame, Record, Section
from litbook.text import scopes, source
from litbook.text.lecture import Function, Lecture

CPU = model.Device("cpu", "cpu", "CPU")
H200 = model.Device("cuda", "nvidia-h200", "NVIDIA H200")
PLACE = model.Environment(
    python="3.11.7", os="Linux", machine="x86_64", cpu="AMD EPYC", cores=2, threads=2, memory=2**34, device=CPU,
    versions={"torch": "2.13.0"}, commit="0123456789abcdef", date="2026-11-20T10:00:00Z", seed=0,
)  # fmt: skip
UNITS = ("module", "main", "part", "section")


def record(text: str, path: str = "lectures/lecture_02.py", title: str = "") -> Record:
    """The record of a lecture of which nothing ran."""
    lecture = source.parse(text, path)
    functions = lecture.functions
    units = [i for i, it in enumerate(functions) if it.kind in UNITS]
    order = [*(i for i in units if functions[i].kind in ("module", "main")), *lecture.order]
    return Record(
        schema=model.SCHEMA,
        lecture=path.rpartition("/")[2].removesuffix(".py"),
        title=title or lecture.title,
        environment=PLACE,
        sources=(lecture.source(),),
        definitions=tuple(_definition(lecture, i) for i in range(len(functions)) if i not in units),
        sections=tuple(_section(lecture, i) for i in order),
    )


def _section(lecture: Lecture, index: int) -> Section:
    it = lecture.functions[index]
    kind: Any = it.kind
    return Section(
        it.name, kind, 0, it.first, it.last - it.first + 1, it.name, it.heading,
        parent=lecture.functions[it.parent].name if it.parent is not None else "",
        body=max(0, it.body - it.first), requires=it.requires, hidden=it.hidden, digest=it.digest,
        statements=_statements(lecture, index),
    )  # fmt: skip


def _definition(lecture: Lecture, index: int) -> model.Definition:
    it = lecture.functions[index]
    kind: Any = it.kind
    return model.Definition(
        _key(lecture, index), kind, 0, it.first, it.last - it.first + 1, it.heading, max(0, it.body - it.first),
        it.hidden, it.digest, _statements(lecture, index),
    )  # fmt: skip


def _key(lecture: Lecture, index: int) -> str:
    it = lecture.functions[index]
    return ".".join(
        around.name for around in lecture.functions[1 : index + 1] if _holds(around, it) or around is it
    )


def _holds(around: Function, it: Function) -> bool:
    return around.first <= it.first and it.last <= around.last


def _statements(lecture: Lecture, index: int) -> tuple[model.Statement, ...]:
    first = lecture.functions[index].first
    nodes: dict[int, ast.stmt] = {number: node for node, number in lecture.statement_of.items()}
    return tuple(
        model.Statement(
            it.first - first, it.last - first, it.kind, it.end - first,
            _target(lecture, it.target), binds=tuple(sorted(scopes.binds(nodes[number]))),
        )
        for number, it in enumerate(lecture.statements)
        if it.function == index
    )  # fmt: skip


def _target(lecture: Lecture, index: int | None) -> str:
    if index is None:
        return ""
    it = lecture.functions[index]
    return it.name if it.kind in UNITS else _key(lecture, index)


# ---------------------------------------------------------------------------- filled in


def fill(made: Record, key: str, **fields: Any) -> Record:
    """The record with other fields in the entry of one section."""
    return replace(
        made, sections=tuple(replace(it, **fields) if it.key == key else it for it in made.sections)
    )


def ran(made: Record, key: str, calls: Mapping[str, int] | None = None, **fields: Any) -> Record:
    """The record in which every statement of a section ran once.

    `calls` are definitions that it called, each from one of its lines: all of their statements ran as well.
    """
    entry, called = made.by_key[key], dict(calls or {})
    steps = [(0, i) for i in range(len(entry.statements))]
    for number, name in enumerate(called, 1):
        steps += [(number, i) for i in range(len(made.definition_of[name].statements))]
    frames = (Frame(), *(Frame(number, 0, at) for number, at in enumerate(called.values(), 1)))
    return fill(made, key, calls=tuple(called), frames=frames, steps=tuple(steps), **fields)


def line(made: Record, key: str, text: str) -> int:
    """The line of a section that holds `text`, counted from its first."""
    entry = made.by_key[key]
    lines = made.sources[entry.file].text.split("\n")[entry.first - 1 : entry.last]
    return next(number for number, it in enumerate(lines) if text in it)


def step(made: Record, key: str, text: str) -> int:
    """The first step of a section on the line of its own that holds `text`."""
    entry, at = made.by_key[key], line(made, key, text)
    found = (i for i, (frame, n) in enumerate(entry.steps) if not frame and entry.statements[n].first == at)
    return next(found)


# ---------------------------------------------------------------------------- in several files


def split(made: Record, files: Mapping[str, tuple[str, list[str]]]) -> Record:
    """The same lecture in a folder: each path with the text at its start, and the keys of what stands in it.

    Of a definition the key is then one of its module: `models.six`.
    """
    entries: dict[str, Section | model.Definition] = {**made.by_key, **made.definition_of}
    sources, places, modules = list[model.Source](), dict[str, tuple[int, int]](), list[Section]()
    text_of = made.sources[0].text.split("\n")
    for file, (path, (head, keys)) in enumerate(files.items()):
        lines = head.split("\n") if head else []
        modules.append(_module(head, path, file))
        cuts: list[tuple[int, int]] = []
        for key in keys:
            it = entries[key]
            lines += ["", ""]
            places[key] = file, len(lines) + 1
            shift = len(lines) + 1 - it.first
            cuts += [(n + shift, column) for n, column in made.sources[0].cuts if it.first <= n <= it.last]
            lines += text_of[it.first - 1 : it.last]
        sources.append(model.Source(path, "", "\n".join(lines) + "\n", tuple(cuts)))

    def moved(it: Any) -> Any:
        file, first = places[it.key]
        return replace(it, file=file, first=first)

    def named(it: model.Definition) -> model.Definition:
        return replace(it, key=f"{sources[it.file].path.rpartition('/')[2].removesuffix('.py')}.{it.key}")

    definitions = {it.key: named(moved(it)) for it in made.definitions}
    sections = [moved(it) for it in made.sections if it.kind != "module"]
    return replace(
        made,
        sources=tuple(sources),
        definitions=tuple(definitions.values()),
        sections=(
            *modules,
            *(replace(it, calls=tuple(definitions[key].key for key in it.calls)) for it in sections),
        ),
    )


def _module(head: str, path: str, file: int) -> Section:
    lecture = source.parse(head, path, lecture=False)
    return replace(_section(lecture, 0), key=f"<module {file}>", file=file)
