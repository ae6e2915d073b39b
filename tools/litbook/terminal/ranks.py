"""A section that ran in other processes, as the terminal prints it when they are done: from its blocks.

In go the record and a section of it. What a run prints as it goes stands in `transcript`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from rich.text import Text

from litbook.page import blocks, margin, section, sitemap
from litbook.record.device_kinds import needs
from litbook.record.model import Record
from litbook.rules.outcome import harmless
from litbook.terminal.transcript import GUTTER, MARGIN, SIGNS, Terminal

WIDE = 60  # characters from which on each rank's value has a line of its own


def of_ranks(terminal: Terminal, record: Record) -> None:
    """Print the sections that run on ranks, of those that were asked for, in the order of the book."""
    terminal.gap = False
    book = sitemap.Sitemap(record, sitemap.NOTHING_CITED, (), [], [])
    for entry in record.sections:
        if entry.kind != "section" or not needs(entry.requires).ranks or not record.was_asked(entry):
            continue
        terminal.title(f"{'aside: ' * entry.aside}{entry.heading}", aside=entry.aside)
        for block in section.blocks(book, entry):
            match block:
                case blocks.CodeBlock(rows, dedent) | blocks.HiddenClaims(blocks.CodeBlock(rows, dedent)):
                    for row in rows:
                        line = book.lines[entry.file][row.number - 1].text[dedent:]
                        if line.strip():
                            terminal.say(Text.assemble((f"{row.number:>{GUTTER}}  ", "dim"), harmless(line)))
                        _entries(terminal, row.entries)
                case blocks.UnplacedEntries(entries):
                    _entries(terminal, entries)
                case blocks.Ranks(count, simulated):
                    terminal.say(Text(margin.ranks(count, simulated), style="dim"))
                case blocks.Absence(text) | blocks.WaitingSection(state=text):
                    terminal.say(Text(harmless(text), style="yellow"))
                case (
                    blocks.Legend()
                    | blocks.OutputShelf()
                    | blocks.Failure()
                    | blocks.ErrorBox()
                    | blocks.ShownHelper()
                    | blocks.HiddenLines()
                    | blocks.SectionCall()
                ):
                    pass  # cards are for pages; the end of the run lists what went wrong
                case _:
                    terminal.show_piece(block)


def _entries(terminal: Terminal, entries: Sequence[blocks.MarginEntry]) -> None:
    for entry in entries:
        parts: list[str | tuple[str, str]]
        match entry:
            case blocks.ShownValue(ranks=ranks) if len(entry.text) > WIDE and len(ranks) > 1:
                texts = (f"\n{MARGIN}  rank {rank}: {text}" for rank, text in enumerate(ranks))
                parts = ["→ ", (harmless(entry.name), "blue"), *map(harmless, texts)]
            case blocks.ShownValue():
                told = filter(None, (entry.turns, "by rank" if entry.ranks else "", entry.measured))
                remark = "".join(f"   ({words})" for words in told)
                parts = ["→ ", (harmless(entry.name), "blue"), " = ", harmless(entry.text), (remark, "dim")]
            case blocks.ClaimVerdict():
                sign, style = SIGNS.get(entry.verdict, ("–", "dim"))
                words = "   ".join(filter(None, [entry.sides, entry.remark]))
                parts = [(f"{sign} {harmless(entry.caption)}", style), (f"   {harmless(words)}", "dim")]
            case blocks.AxesPromise(text):
                parts = [(f"✓ {harmless(text)}", "green")]
            case blocks.RaisedError(message):
                parts = [(f"! {harmless(message)}", "bold red")]
            case _:
                assert_never(entry)
        terminal.say(Text.assemble(MARGIN, *parts))
