"""One section of a lecture, its text and what is known of it -> its blocks, in source order.

In go a lecture and a section; what it shows is the evidence of its first call, here or in a recording. It
knows no form in which blocks are shown.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from litbook.i18n import _, ngettext
from litbook.lecture.author_words import SEEN
from litbook.markdown.unexecuted import DRAWING, columns
from litbook.page import blocks as forms
from litbook.page import margin, pieces, statement_tree
from litbook.page.outputs import SectionOutputs
from litbook.page.sitemap import Sitemap, find_references
from litbook.page.view import gather, recorded_sections, statements
from litbook.python.checking import Checking, find_checking
from litbook.python.functions import touched_lines
from litbook.record.device_kinds import needs
from litbook.record.model import Section

_NAME = re.compile(r"[^\W\d]\w*")
_CALLED = re.compile(r"\b([^\W\d]\w*)\(")
_TOLD = re.compile(r"`(?:\w+\.)*([^\W\d]\w*)(?:\([^`]*\))?`")
SHORT = 110  # characters of a line that gives a constant: what a formatter leaves on one line


def blocks(book: Sitemap, section: Section) -> list[forms.Block]:
    """Prose, code and what came out of a section, in source order."""
    if section.key not in book.blocks:  # its page and the search ask
        book.blocks[section.key] = _SectionReader(book, section).blocks()
    return book.blocks[section.key]


def waits(book: Sitemap, section: Section) -> bool:
    """Whether nothing of a section has been seen, for want of a device; of a part, its sections say so."""
    if not section.requires or section.errors or section.has_run:
        return False
    inside = any(other.parent == section.key for other in book.record.sections)
    return not inside and not any(
        other.entry.has_run for other in recorded_sections(section, book.recordings)
    )


class _SectionReader:
    """One section, what is known of it, and which of its lines are shown as code."""

    def __init__(self, book: Sitemap, section: Section) -> None:
        self.book, self.section = book, section
        self.lines = book.lines[section.file]
        self.others = recorded_sections(section, book.recordings)
        self.evidence = gather(book.record, section, book.recordings)
        self.waits = waits(book, section)
        # Of a recording the prose is the recording's; else of a note that never ran what it says anyway.
        self.silent = [] if self.evidence.stamp else [s for s in statements(section) if s.prose]
        hidden = book.hidden_spans.get(section.file, ())
        self.items = statement_tree.outline(section, self.lines, hidden, self._has_pieces)
        self.code = sorted(number for item in self.items for number in item.code)
        self.shelves = SectionOutputs(self.evidence, book.path(section))
        quiet = (claim for claim in self.evidence.claims if claim.verdict != "fails")
        guards = [claim for claim in quiet if any(a <= claim.line <= b for a, b in hidden)]
        folded = {n for claim in guards for n in range(claim.line, claim.last + 1)}
        # A section that waits does not show them: what it will show is told at its head.
        self.guards, left_out = ([], folded) if self.waits else (guards, set[int]())
        self.shown = {*self.code} | folded - left_out
        self.named = set[str]()  # what legends have said so far
        # By the shown line that they stand beside; none where all of them wait.
        self.beside: dict[int, list[forms.MarginEntry]] = {}
        entries = margin.entries(self.evidence, self.others, section, self.shown)
        self.checking = self._checking(entries)
        for line in sorted({*entries} - left_out):
            home = line if line in self.shown else self._home(line)
            told = self.checking
            self.beside.setdefault(home, []).extend(
                replace(
                    entry,
                    condition=told.condition.get(entry.claim.line, ""),
                    unseen=entry.claim.line in told.unseen,
                )
                if isinstance(entry, forms.ClaimVerdict) and entry.claim
                else entry
                for entry in entries[line]
            )

    def _checking(self, entries: Mapping[int, Sequence[forms.MarginEntry]]) -> Checking:
        """Which lines only check: none of a claim that fails or is to be shown, and none beside a value."""
        first, claims = self.section.first, self.evidence.claims
        source = self.book.record.sources[self.section.file]
        shown = {claim.line + first for claim in self.section.claims if claim.shown}
        asserts = {
            c.line for c in claims if c.kind == "assert" and c.verdict != "fails" and c.line not in shown
        }
        values = [
            (n, e) for n, some in entries.items() for e in some if not isinstance(e, forms.ClaimVerdict)
        ]
        names = {n for _line, e in values if isinstance(e, forms.ShownValue) for n in _NAME.findall(e.name)}
        spans = [
            span
            for s in self.evidence.statements
            if s.kind in ("claim", "code")
            for span in [(s.first, s.last)]
        ]
        beside = {n for line, _e in values for a, b in spans if a <= line <= b for n in range(a, b + 1)}
        # A call that the prose speaks of is the idea, not the check.
        for ran in (s for s in self.evidence.statements if s.kind == "code"):
            numbers = range(ran.first, ran.last + 1)
            text = "\n".join(self.lines[n - 1].text for n in numbers)
            if self._told_names.intersection(_CALLED.findall(text)):
                beside.update(numbers)
        ours = self.code[0] if self.code else 0, self.code[-1] if self.code else 0
        if not asserts or not any(ours):
            return Checking()
        return find_checking(
            source.text, source.path, first, self.section.last,
            frozenset(asserts & {*self.code}), frozenset(beside), frozenset(names), frozenset(self.code),
        )  # fmt: skip

    def blocks(self) -> list[forms.Block]:
        section, device = self.section, self.section.requires
        blocks: list[forms.Block] = []
        need = needs(device)
        if section.kind == "section" and (count := need.ranks or need.simulated):
            blocks.append(forms.Ranks(count, bool(need.simulated)))
        here = self.evidence.calls and not self.evidence.stamp
        if device and not (section.errors or here or self.waits):
            blocks.append(forms.Absence(margin.absence(device, self.evidence, self.others)))
        if not self.code:  # values and failures have no line to stand at
            unplaced = self.beside.get(0) if not self.waits else None
            blocks += [forms.UnplacedEntries(tuple(unplaced))] if unplaced else []
            blocks += self.shelves.outputs(lambda line: self._home(line) == 0)

        # What is shown as prose, or not at all, leaves the lines behind on which it begins, for links.
        at = section.first - 1
        begun = {section.first, *(s.first for s in self.evidence.statements)} - self.shown

        def add_hidden_lines(end: int) -> None:
            if numbers := tuple(n for n in range(at + 1, end + 1) if n in begun):
                blocks.append(forms.HiddenLines(numbers))

        for item in self.items:
            add_hidden_lines(item.last)
            if item.code:
                blocks += [*self._shown_helpers(item.code), *self._legend(item.code), self._rows(item.code)]
                blocks += self.shelves.outputs(lambda line, code=item.code: self._home(line) in code)  # type: ignore[misc]
            elif item.target:
                blocks.append(forms.SectionCall(item.target))
            else:
                blocks += self._pieces(item.first, item.last)
            at = max(at, item.last)
        add_hidden_lines(section.last)
        if self.guards:
            blocks.append(forms.HiddenClaims(self._rows(sorted(self.shown - {*self.code})), len(self.guards)))
        return [self._fold(blocks)] if self.waits else blocks

    def _home(self, line: int) -> int:
        """The shown line beside which a line's values stand: at or above it, else the first; 0 for none."""
        above = bisect.bisect_right(self.code, line)
        return self.code[max(0, above - 1)] if self.code else 0

    def _has_pieces(self, first: int, last: int) -> bool:
        """Whether prose or a picture came from these lines."""
        told = any(p.kind in SEEN and first <= p.line <= last for p in self.evidence.pieces)
        return told or any(first <= note.first <= last for note in self.silent)

    def _pieces(self, first: int, last: int) -> list[forms.PieceBlock]:
        """The prose and pictures of these lines; of a note that never ran, what it says anyway."""
        seen = [piece for piece in self.evidence.pieces if piece.kind in SEEN and first <= piece.line <= last]
        if not seen:
            device = self.section.requires
            why = margin.not_run(device) if device else _("Not reached")
            notes = (note for note in self.silent if first <= note.first <= last)
            return [pieces.unrun_block(note.first, note.prose, why) for note in notes]
        told, file = [], self.book.record.sources[self.section.file]
        touched = touched_lines(file.text, file.path, self.section.first, self.section.last)
        for piece in pieces.merge_links(seen):
            spans = (range(s.first, s.last + 1) for s in self.evidence.statements)
            numbers = next((span for span in spans if piece.line in span), range(0))
            source = "\n".join(self.lines[n - 1].text for n in numbers)  # the statement that handed it over
            told.append(pieces.block(piece, pieces.answer(piece, self.evidence, source, touched)))
        return told

    @cached_property
    def _prose(self) -> str:
        texts = [p.text for p in self.evidence.pieces if p.kind == "note"]
        return "".join([*texts, *(s.prose for s in self.silent)])

    @cached_property
    def _told_names(self) -> set[str]:
        """What the prose names in backticks, alone or with its arguments."""
        return {*_TOLD.findall(self._prose)}

    def _shown_helpers(self, lines: Sequence[int]) -> list[forms.ShownHelper]:
        """The helpers of this page that their author shows, where these lines name them first."""
        page = self.book.place.get(self.section.key, "")  # none of a module
        helpers, _constants = find_references(self.book, self.section.file, lines)
        shown = (it for it in helpers if it.shown and it.key not in self.named)
        here = [it for it in shown if page and self.book.defined.get(it.key) == page]
        self.named |= {helper.key for helper in here}
        return [forms.ShownHelper(helper.key) for helper in here]

    def _legend(self, lines: Sequence[int]) -> list[forms.Legend]:
        """What these lines name for the first time in the section, where its prose does not name it."""
        helpers, constants = find_references(self.book, self.section.file, lines)
        told = {
            helper.key: helper.heading
            for helper in helpers
            if helper.heading and not re.search(rf"`{re.escape(helper.name)}\b", self._prose)
        }
        values = [self.book.lines[file][line - 1].text.strip() for file, line in constants]
        legend = forms.Legend(
            tuple((key, words) for key, words in told.items() if key not in self.named),
            tuple(text for text in values if text not in self.named and len(text) <= SHORT),
        )
        self.named |= {*told, *values}
        return [legend] if legend.helpers or legend.constants else []

    def _rows(self, numbers: Sequence[int]) -> forms.CodeBlock:
        """A block of code: lines, and what stands beside them."""
        lines, evidence = self.lines, self.evidence
        texts = (lines[n - 1] for n in numbers)
        dedent = min((line.indent for line in texts if line.text.strip() and not line.in_string), default=0)
        failed = {n for c in evidence.claims if c.verdict == "fails" for n in range(c.line, c.last + 1)}
        last = {n: s.last for s in evidence.statements for n in range(s.first, s.last + 1)}
        rows = []
        for i, number in enumerate(numbers):
            # Its entries may take the rows of the statement's own lines, and blank ones after it, up to the
            # next line that has entries.
            following = itertools.takewhile(lambda n: n not in self.beside, numbers[i + 1 :])
            end = last.get(number, number)
            gap = itertools.takewhile(lambda n, end=end: n <= end or not lines[n - 1].text.strip(), following)  # type: ignore[misc]
            entries = tuple(self.beside.get(number, ()))
            count = 1 + len(list(gap)) if entries else 1
            rows.append(
                forms.CodeRow(
                    number,
                    entries,
                    count,
                    number not in evidence.unreached_lines,
                    number in failed,
                    self.checking.proof.get(number, 0),
                    self.checking.statement.get(number, 0),
                )
            )
        return forms.CodeBlock(tuple(rows), dedent)

    def _fold(self, inside: Sequence[forms.Block]) -> forms.WaitingSection:
        """A section that waits for a device: what it will show, and how to run it."""
        section = self.section
        prose = [s.prose for s in section.statements]
        tables = [names for text in prose for names in columns(text)]
        drawn = sum(text.startswith(DRAWING) for text in prose)
        promise = [
            ngettext("{n} claim", "{n} claims", len(section.claims)),
            *(_("a table ({columns})", columns=" · ".join(names)) for names in tables),
            *([ngettext("{n} drawing", "{n} drawings", drawn)] if drawn else []),
        ]
        need = needs(section.requires)
        how = f"--device {need.device}" if need.kind.is_device else section.name
        state = margin.absence(section.requires or "", self.evidence, self.others).rstrip(".")
        command = f"litbook run {self.book.record.lecture} {how}"
        return forms.WaitingSection(section.aside, state, ", ".join(promise), command, tuple(inside))
