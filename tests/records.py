"""Records made by hand, from a lecture's text: what a run might have left, without a run.

`record` has the sections of a text, none of which ran. `ran` fills in the entry of one of them, `split` puts
sections into files of their own, as a lecture in a folder has them. Lines of an entry count from its first:
`line` finds them by their text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from litbook.lecture import parse
from litbook.probe.record_keys import RecordKeys
from litbook.record import model
from litbook.record.model import Frame, Record, Section

CPU = model.Device("cpu", "cpu", "CPU")
H200 = model.Device("cuda", "nvidia-h200", "NVIDIA H200")
PLACE = model.Environment(
    python="3.11.7", os="Linux", machine="x86_64", cpu="AMD EPYC", cores=2, threads=2, memory=2**34, device=CPU,
    versions={"torch": "2.13.0"}, commit="0123456789abcdef", date="2026-11-20T10:00:00Z", seed=0,
)  # fmt: skip


def record(text: str, path: str = "lectures/lecture_02.py", title: str = "") -> Record:
    """The record of a lecture of which nothing ran; its notes say nothing all the same."""
    lecture = parse.parse(text, path)
    numbering = RecordKeys(lecture)
    everything = range(len(lecture.statements))
    helpers = (i for i, is_section in enumerate(numbering.is_section) if not is_section)
    return Record(
        schema=model.SCHEMA,
        lecture=path.rpartition("/")[2].removesuffix(".py"),
        title=title or lecture.title,
        environment=PLACE,
        sources=lecture.sources(),
        definitions=tuple(numbering.definition(i, everything) for i in helpers),
        sections=tuple(_section(numbering, i) for i in numbering.order()),
    )


def _section(numbering: RecordKeys, index: int) -> Section:
    it, keys = numbering.lecture.functions[index], numbering.keys
    kind: Any = it.kind
    return Section(
        keys[index], kind, it.file, it.first, it.last - it.first + 1, it.name, it.heading,
        parent=keys[it.parent] if it.parent is not None else "",
        body=numbering.line(index, it.body) if it.body else 0,
        requires=it.requires, hidden=it.hidden, digest=numbering.digests[keys[index]].text,
        depends=numbering.digests[keys[index]].all,
        statements=numbering.statements(index, range(len(numbering.lecture.statements))),
    )  # fmt: skip


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
    numbering = RecordKeys(parse.parse(head, path, lecture=False))
    return replace(_section(numbering, 0), key=f"<module {file}>", file=file)


def unsealed(text: str) -> str:
    """A recording's text without its seals, so that a test may change it as a run would have written it."""
    return re.sub(r'^"seal":"[0-9a-f]+",?\n', "", text, flags=re.MULTILINE)
