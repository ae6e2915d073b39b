"""The other lectures that a lecture's prose may refer to, known by their text alone.

In goes a folder of lectures, out come the pages of one that need not have run. It runs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.page import sitemap
from litbook.page.sitemap import NOTHING_CITED, Sitemap
from litbook.project import is_lecture
from litbook.record.model import SCHEMA, Definition, Device, Environment, Record, Section

_NOWHERE = Environment("", "", "", "", 0, 0, 0, Device("", "", ""), {}, None, "", 0)


def sitemap_finder(folder: Path) -> Callable[[str], Sitemap | None]:
    """Where the pages of the lectures in `folder` are found by name, each read when it is first asked for."""

    @functools.cache
    def find(name: str) -> Sitemap | None:
        there = [path for path in (folder / name, folder / f"{name}.py") if is_lecture(path)]
        try:
            lecture = parse.outline(there[0]) if there else None
        except UnusableLecture:  # its own run says so
            lecture = None
        if lecture is None:
            return None
        # The lecture as it is before any run: where its sections and definitions stand.
        keys = [lecture.key(number) for number in range(len(lecture.functions))]
        sections, definitions = list[Section](), list[Definition]()
        for key, function in zip(keys, lecture.functions, strict=True):
            place = function.file, function.first, function.last - function.first + 1
            if function.kind in ("module", "main", "part", "section"):
                parent = "" if function.parent is None else keys[function.parent]
                sections.append(Section(key, function.kind, *place, function.name, function.heading, parent))
            else:
                kind: Literal["class", "helper"] = "class" if function.kind == "class" else "helper"
                definitions.append(Definition(key, kind, *place, function.heading, hidden=function.hidden))
        order = {keys[number]: place for place, number in enumerate(lecture.order)}  # as main reaches them
        sections.sort(key=lambda section: order.get(section.key, -1))
        texts = lecture.sources()
        parts = _NOWHERE, texts, tuple(definitions), tuple(sections)
        return sitemap.build_sitemap(
            Record(SCHEMA, lecture.name, lecture.title, *parts), NOTHING_CITED, (), []
        )

    return find
