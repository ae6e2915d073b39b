"""`litbook list`: the lectures of a book, or the sections of one. Their text is read, nothing runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from litbook.cli.output import complain, harmless, say, say_json
from litbook.cli.parameters import ANY_LECTURE, CONFIG_FILE, JSON, find_book, find_lecture
from litbook.errors import LitbookError
from litbook.lecture import parse
from litbook.project import Project, display_path, name_of


@click.command("list", params=[ANY_LECTURE, CONFIG_FILE, JSON])
def list_command(lecture: str | None, config_file: Path | None, *, as_json: bool) -> int:
    """List the lectures, or the sections of one."""
    if not as_json:
        if lecture:
            return list_sections(find_lecture(lecture, config_file))
        return list_lectures(find_book(config_file))
    if lecture:
        say_json(outline(find_lecture(lecture, config_file)))
    else:
        say_json([*map(outline, find_book(config_file).lectures())])
    return 0


def list_lectures(project: Project) -> int:
    """Print each lecture's name and title; one that cannot be read hides no other. Returns the status."""
    lectures, status = project.lectures(), 0
    width = max((len(name_of(path)) for path in lectures), default=0)
    for path in lectures:
        try:
            say(f"{name_of(path):{width}}  {harmless(parse.outline(path).title)}")
        except LitbookError as error:
            complain(str(error))
            status = error.exit_status
    if not lectures:
        say("there are no lectures yet")
    for problem in project.overlooked_files():
        complain(str(problem))
    return status


def list_sections(path: Path) -> int:
    """Print the sections of a lecture in reading order. Returns the exit status."""
    lecture = outline(path)
    say(harmless(lecture["title"]))
    rows = []
    for section in lecture["sections"]:
        device = f"  [{section['requires']}]" if section["requires"] else ""
        heading = "aside: " * section["aside"] + harmless(section["heading"]) + device
        rows.append(("  " * (2 if section["parent"] else 1) + section["name"], heading))
    width = max((len(name) for name, _ in rows), default=0)
    for name, heading in rows:
        say(f"{name:{width}}  {heading}")
    return 0


def outline(path: Path) -> dict[str, Any]:
    """A lecture's name, title and file, and its sections in reading order, as plain values for programs."""
    lecture, folder = parse.outline(path), str(Path(display_path(path)).parent)
    sections, files = [], [f"{folder}/{file.path}".removeprefix("./") for file in lecture.files]
    for number in lecture.order:
        function, parent = lecture.functions[number], lecture.functions[number].parent
        part = parent if parent is not None and lecture.functions[parent].kind == "part" else None
        section = {name: getattr(function, name) for name in ("heading", "kind", "aside", "requires")}
        section |= {"name": lecture.section_name(number)}
        section |= {"parent": None if part is None else lecture.section_name(part)}
        sections.append(section | {"file": files[function.file], "line": function.first})
    return {"lecture": name_of(path), "title": lecture.title, "file": files[0], "sections": sections}
