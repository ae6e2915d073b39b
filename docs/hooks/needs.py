"""What needs what, as a MkDocs hook: the parts of a lecture and the words that one takes from another.

In go the glossary, which says which section defines a word, and the notes of the lectures that it names.
Part A is needed by part B where the core of B says a word that a section of A defines. Out comes a drawing on
the contents page of each of these lectures, and the same as a list. A book without the glossary has neither.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from litbook.html.elements import Html, tag
from litbook.lecture import parse

ROW = re.compile(
    r"\| (?P<term>[^|]+) \| (?P<sentence>[^|]+) \| "
    r"\[(?P<title>[^\]]+)\]\(lectures/(?P<lecture>\w+)/(?P<page>[^)#]+)\.md#(?P<section>\w+)\) \|"
)
LINK = re.compile(r"\]\(#(?:lecture_\d+\.)?(\w+)\)")
STEP, RADIUS = 19, 8  # of the drawing: between two parts, and of the circle of one


class Section(NamedTuple):
    """A section or part: where it stands, what its notes and boxes say, and whether it is an aside."""

    lecture: str
    part: str
    name: str
    title: str
    prose: str
    aside: bool


Needs = dict[str, dict[str, list[str]]]  # by part, the parts that define words of its core, and these words


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


def needs(glossary: Sequence[Mapping[str, str]], told: Sequence[Section]) -> Needs:
    """What the core of each part needs of parts before it: words that they define, sections that it names."""
    home = {section.name: section.part for section in told}
    every: Needs = {section.part: {} for section in told if section.part}
    before: dict[str, Section] = {}
    for section in (section for section in told if section.part and not section.aside):
        needed = [(row["section"], row["term"]) for row in glossary if mentions(row["term"], section.prose)]
        links = [before[name] for name in LINK.findall(section.prose) if name in before]
        for name, word in [*needed, *((earlier.name, f"“{earlier.title}”") for earlier in links)]:
            if (part := home.get(name, section.part)) != section.part:
                words = every[section.part].setdefault(part, [])
                words += [word] if word not in words else []
        before[section.name] = section
    return every


def on_pre_build(**_: Any) -> None:
    """What was saved since the last build is read again."""
    sections.cache_clear()


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """The contents page of a lecture that the glossary names, with the drawing below its first lines."""
    folder = Path(config["config_file_path"]).parent
    file = folder / "docs" / "glossary.md"
    glossary = rows(file.read_text(encoding="utf-8")) if file.exists() else []
    lectures = sorted({row["lecture"] for row in glossary})
    lecture = Path(page.file.src_uri).parent.name
    if page.file.src_uri != f"lectures/{lecture}/index.md" or lecture not in lectures:
        return html
    read = lectures[: lectures.index(lecture) + 1]
    told = [section for name in read for section in sections(folder / "lectures" / name)]
    head, end, rest = html.partition("</p>")  # how long the core takes
    return f"{head}{end}\n{drawn(lecture, needs(glossary, told), told)}\n{rest}"


def drawn(lecture: str, every: Needs, told: Sequence[Section]) -> Html:
    """The parts of a lecture in a row, an arc from each to those that need it, and the same in words."""
    titles = {s.name: s.title for s in told if s.lecture == lecture and s.name == s.part}
    number = {part: i for i, part in enumerate(titles, 1)}
    arcs, items, high = [], [], 0.0
    for part, title in titles.items():
        needed: dict[str, list[str]] = {}
        for other, words in every.get(part, {}).items():
            where = f"part {number[other]}" if other in number else "an earlier lecture"
            needed.setdefault(where, []).extend(words)
            if other in number:  # the more words, the stronger
                begin, end = (STEP * (number[p] - 0.5) for p in (other, part))
                high = max(high, rise := 4 + (end - begin) / 4)
                d = f"M{begin} 0A{(end - begin) / 2} {rise} 0 0 1 {end} 0"
                arcs.append(tag("path", d=d, stroke_width=min(2.5, 0.5 + len(words) / 4), opacity=0.5))
        link = tag("a", title, href=f"{part.replace('_', '-')}/")
        told_of = "; ".join(f"{where}: {', '.join(words)}" for where, words in needed.items())
        items.append(tag("li", link, f" – {told_of}" if told_of else ""))
    for i in number.values():
        x = STEP * (i - 0.5)
        arcs.append(tag("circle", cx=x, cy=RADIUS, r=RADIUS - 0.5))
        name = {"text_anchor": "middle", "font_size": 9, "fill": "currentColor", "stroke": "none"}
        arcs.append(tag("text", i, x=x, y=RADIUS + 3, **name))
    view = f"0 {-high - 2} {STEP * len(number)} {high + 2 * RADIUS + 3}"
    label = "The parts in a row. An arc leads from each to the later ones whose core needs a word of it."
    colours = {"fill": "none", "stroke": "currentColor"}
    size = {"viewBox": view, "width": 2 * STEP * len(number)}
    picture = tag("svg", *arcs, **size, **colours, role="img", aria_label=label)
    summary = "What needs what: each part with what its core takes from parts before it"
    return tag("div", picture, tag("details", tag("summary", summary), tag("ol", *items)))
