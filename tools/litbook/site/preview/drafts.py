"""The lectures that somebody writes: their saves, their last runs, and which runs next.

In go saves and the editions of runs, out comes what a page is made of and what it says of a run under way.
Nothing runs here, and no page is drawn.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from litbook.page.runs import LectureRuns
from litbook.project import name_of
from litbook.rules.judge import Findings
from litbook.site.pages import PLACE
from litbook.site.preview.server import NewsChannel


class DraftRun(Struct, frozen=True):
    """A run that can be shown, of a lecture or of a part of it alone."""

    edition: LectureRuns
    when: str  # the time of day
    saves: int  # how many saves there had been when it began


@dataclass
class Draft:
    """A lecture that somebody writes, and the last of its runs that could be shown."""

    path: Path
    last: DraftRun | None = None
    ahead: dict[str, DraftRun] = field(default_factory=dict)  # of a part alone, until the whole has run
    findings: Findings = field(default_factory=Findings)  # in the last
    trouble: str = ""  # why the text of now has no record
    generation: int = 0
    saves: int = 0  # of its text, and of what it may read
    judged: int = 0  # how many of them the last run that ended had seen, also one without a record

    def wrong(self) -> list[str]:
        """What is wrong, the text's own troubles first."""
        if self.trouble:
            last = self.last and f"\nBelow: the run of {self.last.when}, the last that could be shown."
            return [self.trouble + (last or "")]
        return [finding.text(coded=True) for finding in self.findings.errors]

    def page_run(self, page: str) -> DraftRun | None:
        """What this page of the lecture is made of."""
        return self.ahead.get(page) or self.last

    def newest(self) -> LectureRuns | None:
        """The edition of the whole, else of a part alone."""
        made = self.last or next(iter(self.ahead.values()), None)
        return made.edition if made else None

    def describe_run(self, page: str) -> str:
        """That its text of now has no verdict yet, and of which run is what this page says; else ""."""
        if self.saves == self.judged:
            return ""
        made = self.page_run(page)
        if made is None:
            return f"{self.path.name} is running for the first time"
        if made.saves == self.saves:
            return f"{self.path.name} is running: of its text of now only this page has run"
        older = f"what stands here is of the run of {made.when}, before the last save"
        return f"{self.path.name} is running: {older}"


class Drafts(dict[Path, Draft]):
    """All drafts by their paths, and whose turn it is; `lock` is held while one changes or a page is made."""

    def __init__(self, tidings: NewsChannel) -> None:
        super().__init__()
        self.tidings = tidings
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)
        self.todo: list[Path] = []  # lectures that wait, the one that runs first
        self.reader = Path(), ""  # the lecture and page that was asked for last
        self.hurried: set[tuple[Path, str]] = set()  # parts that ran alone, or failed to, since the save

    def in_order(self) -> list[Draft]:
        """The drafts, by their paths."""
        return [self[path] for path in sorted(self)]

    def newest(self) -> list[LectureRuns]:
        """What can be shown of each."""
        return [edition for draft in self.in_order() if (edition := draft.newest())]

    def find_page(self, address: str) -> tuple[Draft, str] | None:
        """The lecture and the name of its page at an address, which need not be there; None for others."""
        match address.strip("/").split("/"):
            case [place, folder, *rest] if place == PLACE and len(rest) < 2:
                drafts = (draft for draft in self.values() if name_of(draft.path) == folder)
                return next(((d, f"{(rest or ['index'])[0].partition('.')[0]}.md") for d in drafts), None)
        return None
