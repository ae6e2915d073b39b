"""The blocks of a section -> the HTML blocks of its place on a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from litbook.explore import html
from litbook.html import elements, margin, media, questions, safe_svg
from litbook.html.claims import ClaimSayer
from litbook.html.elements import Html, tag
from litbook.html.page_builder import PageBuilder, PageFile
from litbook.i18n import _, ngettext, number
from litbook.markdown import to_html
from litbook.page import blocks, pieces, sitemap
from litbook.page import section as document
from litbook.page.margin import SIGNS, SIMULATED, ranks
from litbook.record.model import Definition, Grid, Section
from litbook.values import bits, cards, drawings

TALL = 2400  # characters of output beyond which its box scrolls


def heading(sheet: PageBuilder, section: Section, level: int) -> Html:
    """The section's heading with the anchor of its name."""
    sheet.set_line(section.file, section.first)
    text = to_html.inline(section.heading or section.name, sheet.setting)
    class_ = "lb-off" if section.aside else ""
    return elements.heading(level, text, sheet.book.anchor(section), class_, sheet.book.label(section))


def body(sheet: PageBuilder, section: Section, level: int) -> list[Html]:
    """Prose, code and what came out of a section, in source order; its headings below `level`."""
    return show(sheet, section, level, document.blocks(sheet.book, section))


def show(sheet: PageBuilder, section: Section, level: int, some: Sequence[blocks.Block]) -> list[Html]:
    """Some blocks of a section."""
    return _SectionRenderer(sheet, section, level).render(some)


def definition(sheet: PageBuilder, helper: Definition, *, opened: bool = False) -> Html:
    """A helper or class: its name, what its docstring calls it, and its lines."""
    label = tag("code", helper.name)
    if helper.heading:
        label = elements.join([label, ": ", to_html.inline(helper.heading, sheet.setting)])
    lines = range(helper.first, helper.last + 1)
    return fold(sheet.source(helper.file), lines, label, sheet.book.anchor(helper), opened=opened)


def fold(
    text: PageFile, numbers: Sequence[int], title: Html, name: str | None = None, *, opened: bool = False
) -> Html:
    """Lines of code that open on demand."""
    shown = [n for n in dict.fromkeys(numbers) if text[n].text.strip() or text[n].was_blank]
    rows = [text.row(n) for n in shown]
    block = tag("section", *text.copier(shown), *rows, class_="lb-code lb-plain")
    return tag("details", tag("summary", title), block, class_="lb-def", id=name, open=opened or None)


# A heading in prose; that of one `#` is a title, which heads no sections.
_HEADING = re.compile(r"^(#{2,6}) ", re.MULTILINE)


class _SectionRenderer:
    """One section on its page: its headings are named after it, and stand below `level`.

    A heading in the prose of `main()` heads the sections that it calls from there on.
    """

    def __init__(self, sheet: PageBuilder, section: Section, level: int) -> None:
        self.sheet, self.section, self.level = sheet, section, level
        self.text = sheet.source(section.file)
        self.top = self.above = 0  # in `main()`: the largest heading of its prose, and how many are above
        self.claims = ClaimSayer(self.code, lambda n: self.text[n].text, sheet.setting)

    def render(self, some: Sequence[blocks.Block]) -> list[Html]:
        """These blocks, each with the place of its section for what is wrong with its prose."""
        parts: list[Html] = []
        if self.section.kind == "main" and any(isinstance(block, blocks.SectionCall) for block in some):
            told = (block.text for block in some if isinstance(block, blocks.Prose))
            self.top = min((len(mark) for text in told for mark in _HEADING.findall(text)), default=0)
        for block in some:
            setting = self.sheet.setting
            setting.ids, setting.level = self.sheet.book.anchor(self.section), self.level
            if self.top and isinstance(block, blocks.Prose):
                setting.level += 1 - self.top
                marks = _HEADING.findall(block.text)
                self.above = len(marks[-1]) - self.top + 1 if marks else self.above
            self.sheet.set_line(self.section.file, getattr(block, "line", self.section.first))
            parts += self.block(block)
        return parts

    def block(self, block: blocks.Block) -> list[Html]:
        """One block."""
        sheet, setting = self.sheet, self.sheet.setting
        match block:
            case blocks.Prose(_line, text):
                return to_html.blocks(text, setting)
            case blocks.Misbelief(_line, common, run):
                above = tag("p", tag("b", _("Commonly said:")), " “", to_html.inline(common, setting), "”")
                below = tag("p", tag("b", _("Run:")), " ", to_html.inline(run, setting))
                return [tag("div", above, below, class_="lb-mis", role="note")]
            case blocks.Question():
                return [questions.box(block, self.section, setting, sheet.answers)]
            case blocks.LinkBlock(_line, text, target):
                return [tag("p", to_html.inline(pieces.link(text, target), setting), class_="lb-link")]
            case blocks.Figure() | blocks.Image():
                return [self.picture(block)]
            case blocks.Explore():
                sheet.explored += 1
                if isinstance(block.grid, Grid):
                    return [html.figure(block, f"explore-{sheet.explored}", setting)]
                sheet.live += 1
                runs = any(piece.live is block.grid for piece in self.section.pieces)
                return [
                    html.figure(
                        block, f"explore-{sheet.explored}", setting, (sheet.lecture_url or "./") * runs
                    )
                ]
            case blocks.PrintedOutput(lines, printed):
                where = _("printed by lines {first} to {last}", first=lines[0], last=lines[-1])
                where = _("printed by line {n}", n=lines[0]) if len(lines) == 1 else where
                tall = len(printed) > TALL or printed.count("\n") > TALL / 80  # it scrolls, also by keys
                shown = printed.removesuffix("\n")
                shown = "\n" + shown if shown.startswith("\n") else shown  # a `pre` drops one
                screen = tag("pre", shown, tabindex="0" if tall else None)
                return [tag("figure", tag("figcaption", where), screen, class_="lb-output")]
            case blocks.SpeakerNote():
                return []
            case blocks.Legend():
                return [self.legend(block)]
            case blocks.CodeBlock():
                return self.claims.parts(block) if sheet.anchored else [self.code(block)]
            case blocks.HiddenClaims(code, count):
                sign = tag("span", SIGNS["holds"], class_="lb-ok")
                summary = tag(
                    "summary", sign, ngettext(" {n} more claim holds", " {n} more claims hold", count)
                )
                return [tag("details", summary, self.code(code), class_="lb-guards")]
            case blocks.UnplacedEntries(entries):
                rows = (margin.html(entry, setting) for entry in entries)
                return [tag("section", tag("div", *rows, class_="lb-v"), class_="lb-code lb-plain")]
            case blocks.OutputShelf(things):
                return [tag("section", *map(self.output, things), class_="lb-shelf")]
            case blocks.Failure(claim):  # impossible to overlook: its source, what each side was, its place
                said, place = (
                    to_html.inline(claim.caption, setting),
                    tag("small", f"{block.path}:{claim.line}"),
                )
                head = tag("p", elements.join([tag("strong", _("This claim fails.")), said, place], " "))
                sides = ((tag("dt", tag("code", side.text)), tag("dd", side.value)) for side in block.sides)
                table = tag("dl", *(cell for side in sides for cell in side))
                source = tag("code", claim.text, class_="lb-source")
                why = [tag("p", line) for line in claim.why.splitlines()]
                return [tag("div", head, source, table, *why, class_="lb-failure")]
            case blocks.ErrorBox(
                error
            ):  # with the lecture's lines of its traceback, and of modules beside it
                what = {
                    "exit": _("The lecture tried to exit."),
                    "inspect": _("This value could not be taken."),
                    "assert": _("An assert is wrong here."),
                }.get(error.kind, _("The lecture raised here."))
                calls = [
                    text
                    for path, line, name, source in error.trace
                    for text in (
                        _("{place} in {name}", place=f"{path}:{line}", name=name),
                        f"    {source.strip()}",
                    )
                ]
                head = tag("p", tag("strong", what), " ", tag("small", f"{block.path}:{error.line}"))
                parts = [head, tag("pre", "\n".join(calls))] if calls else [head]
                if error.text and not calls:
                    parts.append(tag("code", error.text.strip(), class_="lb-source"))
                return [tag("div", *parts, tag("p", tag("code", error.message)), class_="lb-failure")]
            case blocks.HiddenLines(numbers):
                return [self.text.anchors(numbers)]
            case blocks.ShownHelper(key):
                if key in sheet.shown:
                    return []
                sheet.shown.add(key)
                return [definition(sheet, sheet.record.definition_of[key], opened=True)]
            case blocks.SectionCall(key):
                return sheet.follow(sheet, sheet.record.by_key[key], self.level + self.above)
            case blocks.Ranks():
                words = _("run on {ranks}", ranks=ranks(block.count, block.simulated))
                badge = tag("span", words, class_="lb-badge")
                told = [elements.SPACE, tag("small", _(SIMULATED))] if block.simulated else []
                return [tag("p", badge, *told, class_="lb-ranks")]
            case blocks.Absence(text):
                return [tag("p", text, class_="lb-elsewhere")]
            case blocks.WaitingSection():
                return [self.waiting(block)]
        assert_never(block)

    def waiting(self, block: blocks.WaitingSection) -> Html:
        """A section that waits for a device in one line, which opens what it will show and how to run it."""
        summary = tag("summary", " · ".join([_("Aside")] * block.aside + [block.state]))
        shows = _("Shows {what}", what=block.promise)
        how = tag("p", shows, ": ", tag("code", block.command), class_="lb-elsewhere")
        inside = map(elements.without_heading, filter(None, self.render(block.inside)))
        class_ = "lb-aside lb-waits" if block.aside else "lb-waits"
        return tag("details", summary, how, *inside, class_=class_)

    def legend(self, block: blocks.Legend) -> Html:
        """What the code below names, in one line that opens."""
        definition_of = self.sheet.record.definition_of
        names = [definition_of[key].name for key, _words in block.helpers]
        names += [text.partition(" = ")[0] for text in block.constants]
        items = [
            *map(self.helper, block.helpers),
            *(tag("li", tag("code", text)) for text in block.constants),
        ]
        summary = tag("summary", _("Names used here: {names}", names=", ".join(names)))
        return tag("details", summary, tag("ul", *items, class_="lb-legend"), class_="lb-names")

    def helper(self, told: tuple[str, str]) -> Html:
        """The name of a helper, a link where a page has it, and what it is for."""
        sheet, (key, words) = self.sheet, told
        helper = sheet.record.definition_of[key]
        name = tag("code", helper.name)
        if key in sheet.book.defined:
            name = tag("a", name, href=sitemap.definition_address(sheet.book, sheet.page, helper))
        return tag("li", name, ": ", to_html.inline(words, sheet.setting))

    def picture(self, block: blocks.Figure | blocks.Image) -> Html:
        """A figure, or a picture, with its caption; what cannot be shown is said in words."""
        sheet, setting = self.sheet, self.sheet.setting
        kind = type(block).__name__.lower()
        sheet.pictures += 1
        caption = to_html.inline(block.caption, setting) if block.caption else elements.NOTHING
        if not block.alt.strip():
            setting.report("no-alt", f"this {kind} has no alt text", "say what it shows in a sentence")
        try:
            drawing = media.draw_media(block, f"f{sheet.pictures}-", sheet.lecture_url)
        except safe_svg.NotAPicture as error:
            setting.report("bad-picture", f"this {kind} cannot be shown: {error}")
            drawing = tag("p", block.alt)
        switch = [drawings.zoom(drawing.width)] if isinstance(drawing, elements.Drawing) else []
        words = [elements.SPACE, tag("figcaption", caption)] if caption else []
        return tag("figure", drawing, *switch, *words, class_="lb-figure")

    def code(self, block: blocks.CodeBlock, *, folded: bool = False) -> Html:
        """Rows of number and line, and what stands beside them; with a name and a copy unless `folded`."""
        text, numbers = self.text, [row.number for row in block.rows]
        cells = [] if folded else text.copier(numbers)
        for row in block.rows:
            dim, failed = " lb-dim" * (not row.reached), " lb-failed" * row.failed
            cells.append(text.row(row.number, block.dedent, f"lb-c{dim}{failed}"))
            if row.entries:
                notes = margin.fit(row.entries, row.rows, self.sheet.setting)
                beside = tag("div", notes, class_="lb-v", style=f"--s:{row.rows}")
                cells += [elements.SPACE, beside, elements.SPACE]  # words apart where no style is
        names = {} if folded else {"role": "group", "aria_label": text.span(numbers)}
        if not self.sheet.anchored:
            names["data_search_exclude"] = "1"  # a search finds it where it belongs
        return tag("div" if folded else "section", *cells, class_="lb-code", **names)

    def output(self, thing: blocks.TallOutput) -> Html:
        """One thing that is taller than a line."""
        match thing:
            case blocks.Bits(values):
                return bits.stack(values)
            case blocks.Card(name, tensor):
                return cards.tensor(name, tensor)
            case blocks.Strip(name, tensors):
                return cards.strip(name, tensors)
            case blocks.RichDisplay(name, value):
                self.sheet.pictures += 1
                return cards.display(name, value, f"f{self.sheet.pictures}-", self.sheet.lecture_url)
            case blocks.MappingTable(rows, unit):
                return cards.table(rows, unit) if len(rows) > 1 else cards.pairs(*rows[0], unit)
            case blocks.Storage(views):
                return drawings.storage(views)
            case blocks.FullText(name, text, cut):
                n = number(len(text))
                size = _(", the first {n} characters", n=n) if cut else _(", {n} characters", n=n)
                summary = tag("summary", tag("code", name), size)
                return tag("details", summary, tag("pre", text, tabindex="0"), class_="lb-whole")
        assert_never(thing)
