"""One lecture as rules see it: its text parsed once, the record of its run, its recordings, its book.

In goes the lecture's path and what gives the record of a run; each part is made when a rule asks for it. It
judges nothing, prints nothing, and runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from litbook.errors import LitbookError, UnusableLecture
from litbook.finding import Finding
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.markdown import bibliography
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.links import Citations
from litbook.page.runs import LectureRuns
from litbook.project import NoBook, Project, display_path
from litbook.record.model import Record
from litbook.rules import prose, recorded

Formula = prose.FormulaRenderer


@dataclass(frozen=True)
class TrialOptions:
    """What to change of a lecture's claims or code: in which sections, and how much, drawn by a seed."""

    sections: Sequence[str] = ()
    sample: int | None = None  # claims, or changes of the code
    seed: int = 0
    everything: bool = False  # all changes of the code, however long it takes
    least: float | None = None  # percent of these that claims have to notice


@dataclass(eq=False)
class Subject:
    """One lecture under judgement; what is not given is made when a rule asks for it.

    `run` gives the record of a run and is asked once; `edition` is the lecture with its recordings, where the
    caller has read them, and `works` its bibliography; without `formula` nothing is said of LaTeX. `words` is
    the tool in whose words it is written. `notes` receives what rules count.
    """

    path: Path
    run: Callable[[], Record] | None = None
    edition: LectureRuns | None = None
    words: str | None = None
    formula: Formula | None = None
    trials: TrialOptions = field(default_factory=TrialOptions)
    notes: list[str] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    book: Project | None = None
    works: Bibliography | None = None
    unreadable_works: Finding | None = None

    def __post_init__(self) -> None:
        if self.book is None:  # outside of one the lecture's folder stands for it
            folder = self.path.resolve().parent
            try:
                self.book = Project.find(folder)
            except NoBook:
                self.book = Project(folder, "")

    @property
    def project(self) -> Project:
        """The book around it."""
        assert self.book is not None
        return self.book

    @property
    def foreign(self) -> bool:
        """Whether it is written in another tool's words, whose author has meant no assert for a claim."""
        if self.words is None:
            return bool(Project.words_around(self.path.resolve()))
        return bool(self.words)

    @cached_property
    def runs(self) -> LectureRuns:
        """Its record and its recordings. What cannot be read of these is in `unreadable`."""
        if self.edition is not None:
            return self.edition
        assert self.run is not None, "a rule that reads a run needs one"
        edition, self.unreadable = recorded.read_runs(self.path, self.run())
        return edition

    @property
    def record(self) -> Record:
        """The record of its run."""
        return self.runs.record

    @cached_property
    def refusals(self) -> list[Finding]:
        """Why its text cannot run as it stands."""
        if self.edition is not None:
            return []
        try:
            self._read()
        except UnusableLecture as error:
            return error.findings
        return []

    @cached_property
    def lecture(self) -> Lecture:
        """Its text, parsed. Raises `UnusableLecture`."""
        return self.runs.lecture if self.edition is not None else self._read()

    def _read(self) -> Lecture:
        return parse.read(self.path, display_path(self.path.resolve()))

    @cached_property
    def prose(self) -> list[Finding]:
        """What is wrong with its prose, as much as can be read with what is installed.

        Outside a book citations need a bibliography beside the lecture.
        """
        book, citations = self.project, None
        if find_spec("bibtexparser") and (book.bibliography.exists() or book.config.exists()):
            try:
                works = self.works
                if works is None:
                    works = bibliography.read(book.bibliography) if book.has_bibliography else {}
                citations = Citations(works, file=book.bibliography.name)
            except LitbookError as error:
                self.unreadable_works = Finding("bibliography", str(error))
        return prose.problems(self.runs, book.folder, citations, self.formula)

    def was_asked(self, finding: Finding) -> bool:
        """Whether a finding stands in what the run was asked for."""
        if self.edition is None and "runs" not in self.__dict__:
            return True  # nothing has run
        record, place = self.record, finding.place
        ran = [s for s in record.sections if s.has_run and s.kind in ("part", "section")]
        return not record.asked or any(
            place and record.sources[s.file].path == place.path and s.first <= place.line <= s.last
            for s in ran
        )
