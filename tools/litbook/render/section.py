"""One section of a lecture -> the Markdown blocks of its place on a page: prose, code, and what came out."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from litbook.record.model import Opaque, Piece, Section, Statement
from litbook.render import (
    drawings,
    figures,
    fitting,
    forms,
    margin,
    markup,
    outline,
    pictures,
    prose,
    questions,
)
from litbook.render.catalogue import _, ngettext
from litbook.render.evidence import DRAWING, Evidence, columns, gather, others, statements, unspoken
from litbook.render.markup import Html, tag
from litbook.render.sheet import Sheet, Text
from litbook.render.shelf import Drawn, shelf
from litbook.text.words import ASKED, SEEN


def heading(sheet: Sheet, section: Section, level: int) -> list[Html]:
    """The section's heading with the anchor of its name."""
    sheet.at(section.file, section.first)
    text = prose.inline(section.heading or section.name, sheet.setting)
    class_ = "lb-off" if section.aside else ""
    return [markup.heading(level, text, sheet.book.anchor(section), class_, sheet.book.label(section))]


def body(sheet: Sheet, section: Section, level: int) -> list[Html]:
    """Prose, code and what came out of a section, in source order; its headings below `level`."""
    return _Body(sheet, section, level).parts()


def waits(sheet: Sheet, section: Section) -> bool:
    """Whether nothing of a section has been seen, for want of a device; of a part, its sections say so."""
    inside = any(it.parent == section.key for it in sheet.record.sections)
    return (
        bool(section.requires)
        and not inside
        and not section.ran
        and not any(other.entry.ran for other in others(section, sheet.book.recordings))
    )


def _promise(section: Section) -> str:
    """What a section that has not run will show: `3 claims, a table (how · ms), a drawing`."""
    said = [it.prose for it in section.statements]
    tables = [found for text in said for block in text.split("\n\n") if (found := columns(block))]
    drawn = sum(text.startswith(DRAWING) for text in said)
    return ", ".join(
        [
            ngettext("{n} claim", "{n} claims", len(section.claims)),
            *(_("a table ({columns})", columns=" · ".join(it)) for it in tables),
            *([ngettext("{n} drawing", "{n} drawings", drawn)] if drawn else []),
        ]
    )


class _Body:
    """One section on its page. Its evidence is that of the section's first call, here or in a recording."""

    def __init__(self, sheet: Sheet, section: Section, level: int) -> None:
        self.sheet, self.section, self.level = sheet, section, level
        self.text = sheet.source(section.file)
        self.others = others(section, sheet.book.recordings)
        self.evidence = gather(sheet.record, section, sheet.book.recordings)
        spoken = bool(self.evidence.stamp)  # its prose is that of the recording
        self.silent = [] if spoken else [s for s in statements(section) if s.prose]
        hidden = sheet.book.hidden.get(section.file, ())
        self.items = outline.outline(section, self.text.lines, hidden, self._tells)
        self.code = sorted(n for item in self.items if isinstance(item, outline.Code) for n in item.lines)
        self.drawn = Drawn(form=self._form)

    def parts(self) -> list[Html]:
        """The blocks, in source order."""
        section, sheet = self.section, self.sheet
        self._take_prose()
        beside = self._beside()
        parts = [self._absence()]
        if not self.code:
            parts += self._without_code(beside)
        shown, at = set(self.code), section.first - 1
        for item in self.items:
            start, end = _span(item)
            parts.append(self.text.anchors(n for n in range(at + 1, end + 1) if n not in shown))
            at = max(at, end)
            if isinstance(item, outline.Call):
                parts += sheet.follow(sheet, sheet.record.by_key[item.target], self.level)
                self._take_prose()
            elif isinstance(item, outline.Told):
                parts += self._tell(start, end)
            else:
                parts.append(_block(self.text, item.lines, beside, self.evidence))
                parts += self._shelf(item.lines)
        parts.append(self.text.anchors(n for n in range(at + 1, section.last + 1) if n not in shown))
        parts = [part for part in parts if part]
        return [self._folded(parts)] if waits(sheet, section) else parts

    def _folded(self, parts: Sequence[Html]) -> Html:
        """A section that waits for a device on one line: what it will show, and how to run it."""
        section, name = self.section, self.sheet.record.lecture
        how = section.name if section.requires == "slow" else f"--device {section.requires}"
        command = tag("code", f"litbook run {name} {how}")
        state = margin.absence(section.requires or "", self.evidence, self.others).rstrip(".")
        words = [_("Aside"), state] if section.aside else [state]
        summary = tag(
            "summary", " · ".join([*words, _("shows {what}", what=_promise(section))]), ": ", command
        )
        return tag(
            "details",
            summary,
            *map(markup.unlisted, parts),
            class_="lb-aside lb-waits" if section.aside else "lb-waits",
        )

    def _take_prose(self) -> None:
        """From here on prose is this section's: its headings are named after it and stand below its own."""
        setting = self.sheet.setting
        setting.ids, setting.level = self.sheet.book.anchor(self.section), self.level

    def _tells(self, first: int, last: int) -> bool:
        """Whether prose or a picture came from these lines."""
        told = any(p.kind in SEEN and first <= p.line <= last for p in self.evidence.pieces)
        return told or any(first <= note.first <= last for note in self.silent)

    def _tell(self, first: int, last: int) -> list[Html]:
        """The prose and pictures of these lines; of a note that never ran, what it says anyway."""
        sheet, file = self.sheet, self.section.file
        parts: list[Html] = []
        seen = _joined([it for it in self.evidence.pieces if it.kind in SEEN and first <= it.line <= last])
        for note in self.silent:
            if first <= note.first <= last and not seen:
                sheet.at(file, note.first)
                parts += _unrun_prose(sheet, note, self.section)
        for piece in seen:
            sheet.at(file, piece.line)
            parts += _piece(sheet, piece, self.evidence)
        return parts

    def _absence(self) -> Html:
        """Why the section has nothing of this build, where it needed another device."""
        device, evidence = self.section.requires, self.evidence
        if not device or (evidence.calls and not evidence.stamp) or waits(self.sheet, self.section):
            return markup.NOTHING
        why = margin.absence(device, evidence, self.others)
        return tag("p", why, class_="lb-elsewhere")

    def _beside(self) -> dict[int, list[Html]]:
        """The margin notes by the shown line that they stand beside; none where all of them wait."""
        if waits(self.sheet, self.section):
            return {}
        section = self.section
        self.sheet.at(section.file, section.first)
        notes = margin.build(self.evidence, self.others, self.sheet.setting, section, self.code)
        for error in self.evidence.errors:
            if error.kind != "inspect":  # of an inspection its value says so already
                notes[error.line].append(margin.error(error))
        found: dict[int, list[Html]] = {}
        for line in sorted(notes):
            found.setdefault(self._home(line), []).extend(notes[line])
        return found

    def _home(self, line: int) -> int:
        """The shown line beside which a line's values stand: at or above it, else the first; 0 for none."""
        above = bisect.bisect_right(self.code, line)
        return self.code[max(0, above - 1)] if self.code else 0

    def _shelf(self, lines: Sequence[int]) -> list[Html]:
        """What stands below these lines; `[0]` where none is shown."""
        return shelf(self.evidence, self.text.path, self.drawn, lambda line: self._home(line) in lines)

    def _form(self, name: str, it: Opaque) -> Html:
        """A value that shows itself, as a picture of this page."""
        self.sheet.pictures += 1
        return forms.shown(name, it, f"f{self.sheet.pictures}-", self.sheet.up)

    def _without_code(self, beside: dict[int, list[Html]]) -> list[Html]:
        """Values and failures of a section that shows no code at all."""
        shelf = self._shelf([0])
        if 0 not in beside:
            return shelf
        rows = tag("div", *beside[0], class_="lb-v")
        return [tag("section", rows, class_="lb-code lb-plain"), *shelf]


def _span(item: outline.Item) -> tuple[int, int]:
    if isinstance(item, outline.Code):
        return item.lines[0], item.lines[-1]
    return (item.first, item.last) if isinstance(item, outline.Told) else (item.line, item.line)


# ---------------------------------------------------------------------------- prose and pictures


def _unrun_prose(sheet: Sheet, note: Statement, section: Section) -> list[Html]:
    """What a piece says that never ran, in the box that it would have had."""
    said = unspoken(note.prose)
    if said.startswith(ASKED):
        why = margin.not_run(section.requires) if section.requires else _("Not reached")
        answer = tag("p", tag("small", _("{why}: the answer comes from the run.", why=why)))
        inside = prose.passage(_(ASKED) + said.removeprefix(ASKED), sheet.setting)
        return [tag("div", inside, answer, class_="lb-ask", role="note")]
    return prose.blocks(said, sheet.setting)


def _piece(sheet: Sheet, piece: Piece, evidence: Evidence) -> list[Html]:
    setting = sheet.setting
    if piece.kind == "note":
        return prose.blocks(piece.text, setting)
    if piece.kind == "misbelief":
        said, run = prose.inline(piece.text, setting), prose.inline(piece.data, setting)
        words = tag("b", _("Commonly said:")), tag("b", _("Run:"))
        lines = (tag("p", words[0], " “", said, "”"), tag("p", words[1], " ", run))
        return [tag("div", *lines, class_="lb-mis", role="note")]
    if piece.kind == "question":
        return [questions.box(piece, evidence, setting, _source(sheet, piece, evidence), sheet.answers)]
    if piece.kind == "link":
        return [_link(sheet, piece)]
    return [_picture(sheet, piece)]


def _source(sheet: Sheet, piece: Piece, evidence: Evidence) -> str:
    """The text of the statement that handed a piece over."""
    its = next((it for it in evidence.statements if it.first <= piece.line <= it.last), None)
    if its is None:
        return ""
    text = sheet.source(sheet.record.by_key[evidence.entry.key].file)
    return "\n".join(text[n].text for n in range(its.first, its.last + 1))


def _link(sheet: Sheet, piece: Piece) -> Html:
    """A link to an address, a work, or a function of the lecture."""
    kind, _, name = piece.data.partition(":")
    if kind == "cite":
        body = prose.inline(f"{piece.text} [@{name}]", sheet.setting)
    else:
        body = prose.inline(_markdown(piece), sheet.setting)
    return tag("p", body, class_="lb-link")


def _markdown(piece: Piece) -> str:
    """A link to an address or a function, as Markdown."""
    kind, _, name = piece.data.partition(":")
    target = f"#{name}" if kind == "function" else piece.data
    return f"[{_literal(piece.text or name)}]({target})"


def _joined(pieces: list[Piece]) -> list[Piece]:
    """A link on the line of a note stands in its paragraph, and what goes on behind: `note("…"), link(…)`."""
    found: list[Piece] = []
    for it in pieces:
        above = found[-1] if found else replace(it, kind="output")
        joins = it.kind == "link" and not it.data.startswith("cite:")
        goes_on = it.kind == "note" and above.text.endswith(")") and re.match(r"[a-z,.;:(]", it.text)
        alike = (above.line, above.step, above.kind) == (it.line, it.step, "note") and "\n" not in above.text
        if alike and (joins or goes_on):
            space = " " * (it.text[:1] not in ",.;:")
            found[-1] = replace(
                above, text=above.text.rstrip() + space + (_markdown(it) if joins else it.text)
            )
        else:
            found.append(it)
    return found


def _literal(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_{}[]()<>#+-.!" else c for c in text)


def _picture(sheet: Sheet, piece: Piece) -> Html:
    sheet.pictures += 1
    caption = prose.inline(piece.text, sheet.setting) if piece.text else markup.NOTHING
    if not piece.alt.strip():
        sheet.setting.report(
            "no-alt", f"this {piece.kind} has no alt text", "say what it shows in a sentence"
        )
    try:
        if piece.kind == "figure":
            drawing = figures.inline(piece.data, piece.alt, f"f{sheet.pictures}-")
        else:
            drawing = pictures.picture(piece.data, piece.alt, sheet.up, piece.width)
    except figures.NotAPicture as error:
        sheet.setting.report("bad-picture", f"this {piece.kind} cannot be shown: {error}")
        drawing = tag("p", piece.alt)
    words = [markup.SPACE, tag("figcaption", caption)] if caption else []
    return tag("figure", drawing, drawings.zoom(drawing), *words, class_="lb-figure")


# ---------------------------------------------------------------------------- code


def _block(text: Text, numbers: Sequence[int], beside: dict[int, list[Html]], evidence: Evidence) -> Html:
    """A block of code: number, line, and what stands beside it."""
    shown = (text[n] for n in numbers if text[n].text.strip() and not text[n].in_string)
    dedent = min((line.indent for line in shown), default=0)
    failed = {n for c in evidence.claims if c.verdict == "fails" for n in range(c.line, c.last + 1)}
    last = {n: it.last for it in evidence.statements for n in range(it.first, it.last + 1)}
    cells = text.copier(numbers)
    for i, number in enumerate(numbers):
        dim = " lb-dim" if number in evidence.dimmed else ""
        cells.append(text.row(number, dedent, f"lb-c{dim}{' lb-failed' if number in failed else ''}"))
        if number in beside:
            free = next((k for k, n in enumerate(numbers[i + 1 :], 1) if n in beside), len(numbers) - i)
            own = _own_rows(text, numbers[i : i + free], last.get(number, number))
            notes = tag("div", fitting.fit(beside[number], own), class_="lb-v", style=f"--s:{own}")
            cells += [markup.SPACE, notes, markup.SPACE]  # spaces for the search
    return tag("section", *cells, class_="lb-code", role="group", aria_label=text.span(numbers))


def _own_rows(text: Text, numbers: Sequence[int], last: int) -> int:
    """How many of these rows are a statement's own: those up to its `last` line, and blank ones after it."""
    own = itertools.takewhile(lambda n: n <= last or not text[n].text.strip(), numbers[1:])
    return 1 + len(list(own))
