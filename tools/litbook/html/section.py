"""The blocks of a section -> the HTML blocks of its place on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from litbook.document import pieces
from litbook.document import section as document
from litbook.document.blocks import (
    Absence,
    Bits,
    Block,
    Call,
    Card,
    Code,
    Display,
    Failure,
    Figure,
    Fold,
    Image,
    Link,
    Loose,
    Misbelief,
    Output,
    Prose,
    Question,
    Shelf,
    Shelved,
    Speech,
    Storage,
    Table,
    Trouble,
    Unshown,
    Whole,
)
from litbook.html import margin
from litbook.record.model import Section
from litbook.render import bits, cards, drawings, figures, forms, markup, pictures, prose, questions
from litbook.render.catalogue import _, number
from litbook.render.markup import Html, tag
from litbook.render.sheet import Sheet

TALL = 2400  # characters of output beyond which its box scrolls


def heading(sheet: Sheet, section: Section, level: int) -> list[Html]:
    """The section's heading with the anchor of its name."""
    sheet.at(section.file, section.first)
    text = prose.inline(section.heading or section.name, sheet.setting)
    class_ = "lb-off" if section.aside else ""
    return [markup.heading(level, text, sheet.book.anchor(section), class_, sheet.book.label(section))]


def body(sheet: Sheet, section: Section, level: int) -> list[Html]:
    """Prose, code and what came out of a section, in source order; its headings below `level`."""
    return show(sheet, section, level, document.blocks(sheet.book, section))


def show(sheet: Sheet, section: Section, level: int, blocks: Sequence[Block]) -> list[Html]:
    """Some blocks of a section."""
    return _Walk(sheet, section, level).all(blocks)


class _Walk:
    """One section on its page: its headings are named after it, and stand below `level`."""

    def __init__(self, sheet: Sheet, section: Section, level: int) -> None:
        self.sheet, self.section, self.level = sheet, section, level
        self.text = sheet.source(section.file)

    def all(self, blocks: Sequence[Block]) -> list[Html]:
        """These blocks, each with the place of its section for what is wrong with its prose."""
        parts: list[Html] = []
        for block in blocks:
            setting = self.sheet.setting
            setting.ids, setting.level = self.sheet.book.anchor(self.section), self.level
            self.sheet.at(self.section.file, getattr(block, "line", self.section.first))
            parts += self.block(block)
        return parts

    def block(self, block: Block) -> list[Html]:
        """One block."""
        sheet, setting = self.sheet, self.sheet.setting
        match block:
            case Prose(_, text):
                return prose.blocks(text, setting)
            case Misbelief():
                return [self.misbelief(block)]
            case Question():
                return [questions.box(block, self.section, setting, sheet.answers)]
            case Link(_, text, target):
                return [tag("p", prose.inline(pieces.link(text, target), setting), class_="lb-link")]
            case Figure() | Image():
                return [self.picture(block)]
            case Output():
                return [_output(block)]
            case Speech():
                return []
            case Code():
                return [self.code(block)]
            case Loose(entries):
                rows = (margin.html(entry, setting) for entry in entries)
                return [tag("section", tag("div", *rows, class_="lb-v"), class_="lb-code lb-plain")]
            case Shelf(things):
                return [tag("section", *map(self.shelved, things), class_="lb-shelf")]
            case Failure():
                return [_failure(block)]
            case Trouble():
                return [_trouble(block)]
            case Unshown(numbers):
                return [self.text.anchors(numbers)]
            case Call(key):
                return sheet.follow(sheet, sheet.record.by_key[key], self.level)
            case Absence(text):
                return [tag("p", text, class_="lb-elsewhere")]
            case Fold():
                return [self.fold(block)]
        assert_never(block)

    def misbelief(self, block: Misbelief) -> Html:
        """What is commonly said, and below it what the machine says."""
        said, run = (prose.inline(text, self.sheet.setting) for text in (block.said, block.run))
        above = tag("p", tag("b", _("Commonly said:")), " “", said, "”")
        below = tag("p", tag("b", _("Run:")), " ", run)
        return tag("div", above, below, class_="lb-mis", role="note")

    def picture(self, block: Figure | Image) -> Html:
        """A figure or a picture with its caption; what cannot be shown is said in words."""
        sheet, setting = self.sheet, self.sheet.setting
        kind = type(block).__name__.lower()
        sheet.pictures += 1
        caption = prose.inline(block.caption, setting) if block.caption else markup.NOTHING
        if not block.alt.strip():
            setting.report("no-alt", f"this {kind} has no alt text", "say what it shows in a sentence")
        try:
            if isinstance(block, Figure):
                drawing = figures.inline(block.svg, block.alt, f"f{sheet.pictures}-")
            else:
                drawing = pictures.picture(block.data, block.alt, sheet.up, block.width)
        except figures.NotAPicture as error:
            setting.report("bad-picture", f"this {kind} cannot be shown: {error}")
            drawing = tag("p", block.alt)
        words = [markup.SPACE, tag("figcaption", caption)] if caption else []
        return tag("figure", drawing, drawings.zoom(drawing), *words, class_="lb-figure")

    def code(self, block: Code) -> Html:
        """Rows of number and line, and what stands beside them."""
        text, numbers = self.text, [row.number for row in block.rows]
        cells = text.copier(numbers)
        for row in block.rows:
            dim, failed = " lb-dim" * (not row.reached), " lb-failed" * row.failed
            cells.append(text.row(row.number, block.dedent, f"lb-c{dim}{failed}"))
            if row.entries:
                notes = margin.fit(row.entries, row.rows, self.sheet.setting)
                cells += [
                    markup.SPACE,  # this one and that below for the search
                    tag("div", notes, class_="lb-v", style=f"--s:{row.rows}"),
                    markup.SPACE,
                ]
        return tag(
            "section",
            *cells,
            class_="lb-code",
            role="group",
            aria_label=text.span(numbers),
            data_search_exclude=None if self.sheet.anchored else "1",  # a search finds it where it belongs
        )

    def shelved(self, thing: Shelved) -> Html:
        """One thing that is taller than a line."""
        match thing:
            case Bits(values):
                return bits.stack(values)
            case Card(name, tensor):
                return cards.tensor(name, tensor)
            case Display(name, value):
                self.sheet.pictures += 1
                return forms.shown(name, value, f"f{self.sheet.pictures}-", self.sheet.up)
            case Table(rows, unit):
                return cards.table(rows, unit) if len(rows) > 1 else cards.pairs(*rows[0], unit)
            case Storage(views):
                return drawings.storage(views)
            case Whole(name, text, cut):
                n = number(len(text))
                size = _(", the first {n} characters", n=n) if cut else _(", {n} characters", n=n)
                summary = tag("summary", tag("code", name), size)
                return tag("details", summary, tag("pre", text, tabindex="0"), class_="lb-whole")
        assert_never(thing)

    def fold(self, block: Fold) -> Html:
        """A section that waits for a device on one line: what it will show, and how to run it."""
        words = [_("Aside"), block.state] if block.aside else [block.state]
        head = " · ".join([*words, _("shows {what}", what=block.promise)])
        summary = tag("summary", head, ": ", tag("code", block.command))
        inside = map(markup.unlisted, filter(None, self.all(block.inside)))
        return tag("details", summary, *inside, class_="lb-aside lb-waits" if block.aside else "lb-waits")


def _output(block: Output) -> Html:
    """What the lines of one block printed."""
    first, last = block.lines[0], block.lines[-1]
    where = _("printed by lines {first} to {last}", first=first, last=last)
    where = _("printed by line {n}", n=first) if len(block.lines) == 1 else where
    tall = len(block.text) > TALL or block.text.count("\n") > TALL / 80  # it scrolls, also by keys
    body = tag("pre", block.text.rstrip("\n"), tabindex="0" if tall else None)
    return tag("figure", tag("figcaption", where), body, class_="lb-output")


def _failure(block: Failure) -> Html:
    """A failed claim, impossible to overlook: its source, what each side was, and where it stands."""
    claim = block.claim
    head = tag("strong", _("This claim fails.")), markup.text(f" {claim.caption} ")
    where = tag("small", f"{block.path}:{claim.line}")
    rows = (
        part for side in block.sides for part in (tag("dt", tag("code", side.text)), tag("dd", side.value))
    )
    why = (tag("p", line) for line in claim.why.splitlines())
    source = tag("code", claim.text, class_="lb-source")
    return tag("div", tag("p", *head, where), source, tag("dl", *rows), *why, class_="lb-failure")


def _trouble(block: Trouble) -> Html:
    """An error with the own lines of its traceback: the lecture's, and those of the modules beside it."""
    error = block.error
    head = {
        "exit": _("The lecture tried to exit."),
        "inspect": _("This value could not be taken."),
        "assert": _("An assert is wrong here."),
    }.get(error.kind, _("The lecture raised here."))
    parts = [tag("p", tag("strong", head), " ", tag("small", f"{block.path}:{error.line}"))]
    if error.trace:
        places = (
            (_("{place} in {name}", place=f"{path}:{line}", name=name), source)
            for path, line, name, source in error.trace
        )
        parts.append(tag("pre", "\n".join(f"{place}\n    {source.strip()}" for place, source in places)))
    elif error.text:
        parts.append(tag("code", error.text.strip(), class_="lb-source"))
    return tag("div", *parts, tag("p", tag("code", error.message)), class_="lb-failure")
