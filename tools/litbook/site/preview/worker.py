"""What is saved runs: each lecture from top to bottom, and beside it the part alone that a reader waits for.

In go the paths of saved files, out come drafts with new runs; each run is a process of its own. What a save
ends, and what comes of a run that it has overtaken, nobody sees.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from litbook.errors import LitbookError
from litbook.record import model
from litbook.rules import outcome, recorded
from litbook.rules.outcome import harmless
from litbook.run.process import ForkServerRunner
from litbook.site.preview.drafts import Draft, DraftRun
from litbook.site.preview.render import Renderer

log = logging.getLogger("litbook.site.preview")


class Worker:
    """Runs the drafts that `renderer` shows, and has it collect the pages anew where their names change."""

    def __init__(self, renderer: Renderer, warm: ForkServerRunner, timeout: float) -> None:
        self.renderer, self.drafts = renderer, renderer.drafts
        self.warm, self.timeout = warm, timeout
        for work in (self._work, self._run_read_part):
            threading.Thread(target=work, daemon=True).start()

    def take_changes(self, paths: set[Path]) -> None:
        """These files were saved, made or removed."""
        project, drafts = self.renderer.project, self.drafts
        folder, there = project.folder, [*drafts]
        with contextlib.suppress(LitbookError):  # else those there were; `refresh` says why nobody can tell
            there = project.lectures() if folder.is_dir() else there
        inside = {path for path in paths if folder in path.parents}
        gone = [path for path in drafts if path not in there]
        with drafts.lock:
            for path in gone:
                log.info("%s is gone", path.name)
                del drafts[path]
        saved = [path for path in there if path not in drafts or any(_is_of(f, path) for f in inside)]
        others = {f for f in inside if not any(_is_of(f, path) for path in (*there, *gone))}
        if folder in paths or any(f.suffix != ".bib" and "recordings" not in f.parts for f in others):
            saved = there  # a file that lectures may import or read
        for path in saved:
            drafts.setdefault(path, Draft(path)).saves += 1
        if saved:
            drafts.tidings.tell(pages=0)  # first of all: from now on what stands there is of an older text
            self.run(saved)
        kept = any(path.suffix == ".bib" or "recordings" in path.parts for path in others)
        with drafts.lock:
            for draft in drafts.values() if kept else ():
                if draft.last is not None and draft.path not in saved:
                    self._show(draft, draft.last.edition.record, draft.last.saves)
        if gone or others or paths - inside:
            self.renderer.refresh()

    def run(self, paths: Sequence[Path]) -> None:
        """Run these lectures, in turn; what runs now is ended, and waits if it is none of them."""
        drafts = self.drafts
        with drafts.lock:
            drafts.todo = [*paths, *(path for path in drafts.todo if path not in paths and path.exists())]
            drafts.hurried = set()
            self.warm.stop()
            drafts.work.notify_all()

    def _run_read_part(self) -> None:
        """Run the part that a reader is at, as long as its lecture waits for its run or its end."""
        drafts = self.drafts
        while True:
            with drafts.lock:
                drafts.work.wait_for(
                    lambda: drafts.reader[0] in drafts.todo and drafts.reader not in drafts.hurried
                )
                hurried, (path, page) = drafts.hurried, drafts.reader
                hurried.add(drafts.reader)
                saves = drafts[path].saves if path in drafts else 0
            try:
                part = page.removesuffix(".md").replace("-", "_")
                record = self.warm.record_of(path, self.timeout, [part])
                edition, _ = recorded.read_runs(path, record)
            except (LitbookError, OSError):
                continue  # no such part, or what the run of the whole will say
            with drafts.lock:
                if hurried is not drafts.hurried or path not in drafts.todo or path not in drafts:
                    continue
                drafts[path].ahead[page] = DraftRun(edition, time.strftime("%H:%M:%S"), saves)
                drafts[path].generation += 1
                self.renderer.refresh_titles()
            drafts.tidings.tell()

    def _work(self) -> None:
        """Run the lectures that wait, and show what came of each, if no newer save has ended it."""
        drafts = self.drafts
        while True:
            with drafts.lock:
                drafts.work.wait_for(lambda: drafts.todo)
                todo, path, since = drafts.todo, drafts.todo[0], time.monotonic()
                saves = drafts[path].saves if path in drafts else 0
            try:
                record, trouble = self.warm.record_of(path, self.timeout), ""
            except (LitbookError, OSError) as error:
                record, trouble = None, str(error)
            with drafts.lock:
                if drafts.todo is not todo:
                    continue
                drafts.todo, draft = todo[1:], drafts.get(path)
                if draft is None:
                    continue  # it is gone
                draft.trouble, draft.ahead, draft.judged = trouble, {}, saves
                if record is None:
                    log.error("%s", harmless(trouble))
                else:
                    self._show(draft, record, saves)
                    took = time.monotonic() - since
                    log.info("%s: %s; %.1f s", path.name, outcome.summary(record), took)
                drafts.tidings.tell()

    def _show(self, draft: Draft, record: model.Record, saves: int) -> None:
        edition, unreadable = recorded.read_runs(draft.path, record)
        draft.findings = self.renderer.pages().judge(edition, unreadable, [])
        draft.last = DraftRun(edition, time.strftime("%H:%M:%S"), saves)
        draft.generation += 1
        for finding in [*draft.findings.errors, *draft.findings.warnings]:
            log.warning("%s", harmless(finding.text(coded=True)))
        self.renderer.refresh_titles()


def _is_of(file: Path, lecture: Path) -> bool:
    """Whether the file is the lecture, or one of its files."""
    return file == lecture or lecture in file.parents
