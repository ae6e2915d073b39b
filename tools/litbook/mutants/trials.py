"""Runs a lecture and, at every claim, the mutants of that claim. `claims` says what they are.

The lecture runs once, instrumented as always. A claim's first probe stands right before its test, in the
section's own frame; there this recorder stops and tries the mutants, in the names and values that
the section has at that moment. Nothing is copied and nothing is run twice: every mutant is evaluated in a
*child process* made by `fork`, which sees the section's memory as it is, may change it at will (draw random
numbers, advance an iterator, take an optimizer's step), and is gone when it has said what became of the test.
Only then does the section go on, as if nothing had been asked. So a whole lecture costs one run and a few
milliseconds for each mutant. A test that calls nothing changes nothing: all its mutants share a child.

Each child of a claim first evaluates the claim's own test. If that does not hold there, nothing said of the
mutants would count, and the claim is listed as *unsteady*. A claim in a loop is tried in each of its first
turns until every trial is passed. torch runs on one thread meanwhile: threads do not survive a fork.

A survivor is a defect of the lecture, unless the mutant says the same as the claim. Then a comment on one of
the claim's lines, or right above it, says so and why: `# survives: 256 -> 257: bfloat16 has no 257`. A trial
of two changes may be named by one of them, or as it is listed: `50 -> 45 and 50 -> 55`. Readers see it as
they see the claim. An excuse that excuses nothing is listed too, and so is one that cannot be read.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import functools
import io
import json
import os
import pickle
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from litbook.finding import Finding
from litbook.lecture.model import Lecture
from litbook.mutants import claims as mutants
from litbook.mutants import forks
from litbook.mutants.claims import Mutant, Trial
from litbook.probe.axes import Sizes, mismatch
from litbook.probe.protocols import Listener
from litbook.probe.recorder import Recorder
from litbook.python.file import File
from litbook.record import model
from litbook.record.ranks import LostRank, join_ranks
from litbook.run import process, run
from litbook.run.mailbox import Mailbox
from litbook.snapshot.snapshot import snapshot

LAUNCH = 1200.0  # seconds that the ranks of a lecture may take for all of their claims
PATIENCE = 20.0  # seconds that a mutant may take; then it counts as failed
TURNS = 20  # of a loop, in which a claim is tried
HOLDS, FAILS, TOO_LONG = "holds", "fails", "fails: it took too long"
_EXCUSE = re.compile(r"(?P<change>.+?)\s*:\s+(?P<reason>\S.*)")
_COMMENT = re.compile(r"#\s*(?:survives|@allow\s+mutant)\s*:\s*(?P<text>.*)")
_MEANT = re.compile(r"#\s*survives\b(?:\s*:|.*(?:->|not dropped))")  # not `# survives the loop`
_CALLS = ast.Call | ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.FormattedValue


@dataclass
class Outcome:
    """What became of the trials of one claim."""

    claim: int
    trials: list[Trial]
    passed: set[int] = field(default_factory=set)  # indices of trials of which a mutant failed
    turns: int = 0
    comments: tuple[str, ...] = ()  # what the claim's comments say after `# survives:`
    unsteady: str = ""  # what the claim's own test did in a child, if it did not hold
    failed: bool = False  # whether the claim fails in the run itself
    names: dict[str, model.Snapshot] = field(default_factory=dict)  # what its test names, where one survived

    @property
    def unfailed_trials(self) -> list[Trial]:
        """The trials of which no mutant ever failed."""
        return [trial for i, trial in enumerate(self.trials) if i not in self.passed]

    @property
    def survivors(self) -> list[Trial]:
        """Those of them that nothing excuses."""
        return [trial for trial in self.unfailed_trials if not self.excuse(trial)]

    @property
    def excuses(self) -> dict[str, str]:
        """What the comments at the claim excuse: change, as written there -> why it may survive."""
        names = sorted((name for trial in self.trials for name in _names(trial)), key=len, reverse=True)
        excuses = dict[str, str]()
        for comment in self.comments:
            # A change may hold a colon itself, so those that there are are looked for first.
            for name in names:
                reason = re.match(r"\s*:\s+(\S.*)", comment[len(name) :])
                if comment.startswith(name) and reason:
                    excuses[name] = reason[1].strip()
                    break
            else:
                if excuse := _EXCUSE.fullmatch(comment):
                    excuses[excuse["change"]] = excuse["reason"].strip()
        return excuses

    def excuse(self, trial: Trial) -> str:
        """Why the lecture's source says that a trial may survive, or ""."""
        excuses = self.excuses
        return next((excuses[name] for name in _names(trial) if name in excuses), "")

    @property
    def unused_excuses(self) -> list[str]:
        """Changes that are excused and did not survive, or were never made."""
        used = {name for trial in self.unfailed_trials for name in _names(trial)}
        return [change for change in self.excuses if change not in used]


def _names(trial: Trial) -> list[str]:
    """What an excuse may call a trial: one of its changes, or all as listed; its kind may stand before."""
    changes = [mutant.change for mutant in trial.mutants]
    names = [*changes, " and ".join(changes)]
    return [*names, *(f"{trial.kind} {name}" for name in names)]


def try_claims(
    path: Path,
    *,
    sections: tuple[str, ...] = (),
    claims: set[int] | None = None,
    ranks: int = 0,
    owner: Mailbox | None = None,
) -> tuple[list[Outcome], model.Record]:
    """Run the lecture in the file `path` (or some of its sections) and try its claims (or some of them).

    On the CPU only: what runs on a GPU does not survive a fork. The record of the run says whether it came to
    its end: of a claim behind an exception there is no outcome.
    """
    outcomes: dict[int, Outcome] = {}
    tried = partial(_TrialRecorder, outcomes, claims)
    with forks.one_thread():
        record = run.run(path, sections=sections, device="cpu", ranks=ranks, owner=owner, recorded_by=tried)
    return [outcomes[number] for number in sorted(outcomes)], record


def try_on_ranks(
    path: Path, claims: set[int] | None, outcomes: list[Outcome], record: model.Record
) -> tuple[list[Outcome], model.Record]:
    """The same with the claims of sections that run on ranks: each rank tries them, in its own names.

    A trial is passed where a mutant fails on any rank, since there the claim would fail.
    """
    every = {outcome.claim: outcome for outcome in outcomes}
    os.environ["LITBOOK_PATIENCE"] = "300"  # one rank may have more to try than another
    for size, keys in process.worlds(record, slow=False).items():
        given = {"path": str(path), "claims": None if claims is None else [*claims], "ranks": size}
        asked = {"path": str(path), "sections": keys, "timeout": LAUNCH, "given": given}
        asked |= {"function": "litbook.mutants.trials:on_rank"}
        for done, several in process.answer(path, "litbook.run.ranks.launch:launch", ranks=size, asked=asked):
            left = list[model.Record | LostRank]()
            for one in several:
                if "answer" not in one:
                    left.append(LostRank(**one))
                    continue
                # It comes from a process that ran this lecture, as this one has.
                tried, of_rank = pickle.loads(base64.b64decode(json.loads(one["answer"])))
                left.append(of_rank)
                for outcome in tried:
                    first = every.setdefault(outcome.claim, outcome)
                    first.passed |= outcome.passed
                    first.failed |= outcome.failed
                    first.unsteady = first.unsteady or outcome.unsteady
            record = join_ranks(record, left, done)
    return [every[number] for number in sorted(every)], record


def on_rank(owner: Mailbox, *, path: str, sections: list[str], claims: list[int] | None, ranks: int) -> str:
    """What one rank has tried, and its record, for `try_on_ranks`."""
    wanted = None if claims is None else set(claims)
    tried = try_claims(Path(path), sections=tuple(sections), claims=wanted, ranks=ranks, owner=owner)
    return base64.b64encode(pickle.dumps(tried)).decode()


class _TrialRecorder(Recorder):
    """A recorder that tries the mutants of a claim before the claim is evaluated."""

    def __init__(
        self,
        outcomes: dict[int, Outcome],
        wanted: set[int] | None,
        lecture: Lecture,
        listener: Listener | None,
    ) -> None:
        super().__init__(lecture, listener)
        self.outcomes, self.wanted = outcomes, wanted

    def claim(self, number: int) -> int:
        outcome = self.outcome(number)
        if outcome is not None:
            _try(outcome, self.lecture, sys._getframe(1))
        return super().claim(number)

    def check_axes(self, number: int, frame: int, annotation: Any, value: Any, text: str) -> None:
        outcome = self.outcome(number)
        if outcome is not None:
            _try_annotation(outcome, annotation, value, text, dict(self.log.sizes.get(frame, {})))
        super().check_axes(number, frame, annotation, value, text)

    def finish(self, environment: model.Environment, asked: tuple[str, ...]) -> model.Record:
        for number, outcome in self.outcomes.items():
            outcome.failed = self.judgement(number).failed
        return super().finish(environment, asked)

    def outcome(self, number: int) -> Outcome | None:
        """Where to put what is tried now; None where nothing is left to be tried."""
        if self.wanted is not None and number not in self.wanted:
            return None
        outcome = self.outcomes.get(number)
        if outcome is None:
            comments = _comments(_file(self.lecture, number).text)
            at_claim = (comments.get(line, (0, ""))[1] for line in _lines(self.lecture, number))
            excuses = tuple(excuse["text"].strip() for text in at_claim if (excuse := _COMMENT.match(text)))
            outcome = Outcome(number, mutants.trials(self.lecture, number), comments=excuses)
            self.outcomes[number] = outcome
        outcome.turns += 1
        if outcome.turns > TURNS or (outcome.turns > 1 and not outcome.unfailed_trials):
            return None
        return outcome


# ---------------------------------------------------------------------------- excuses


def find_bad_excuses(lecture: Lecture) -> list[Finding]:
    """Comments that are meant to excuse a survivor and cannot: of another form, or at no claim."""
    every = ((_file(lecture, i).number, _lines(lecture, i)) for i in range(len(lecture.claims)))
    at_claims = {(file, line) for file, lines in every for line in lines}
    problems = []
    for file in lecture.files:
        for line, (column, comment) in _comments(file.text).items():
            if not _MEANT.match(comment):
                continue
            excuse = _COMMENT.match(comment)
            if not (excuse and _EXCUSE.fullmatch(excuse["text"])):
                what = "this excuse cannot be read"
                way_out = "write # @allow mutant: CHANGE: WHY, the change as it is listed: 100 -> 90"
            elif (file.number, line) not in at_claims:
                what = "this excuse stands at no claim"
                way_out = "put it on the claim's line, or right above it"
            else:
                continue
            problems.append(Finding("mutant", what, file.place(line, column), way_out))
    return problems


def _lines(lecture: Lecture, number: int) -> range:
    """The lines of a claim, with those of the comments right above it."""
    statement, lines = lecture.statements[lecture.claims[number].statement], _file(lecture, number).lines
    first = statement.first
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return range(first, statement.end + 1)


def _file(lecture: Lecture, number: int) -> File:
    """The file in which a claim stands."""
    return lecture.file_of_statement(lecture.claims[number].statement)


@functools.lru_cache(maxsize=64)
def _comments(text: str) -> dict[int, tuple[int, str]]:
    """The comments of a text by line, each with its 1-based column."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {t.start[0]: (t.start[1] + 1, t.string.rstrip()) for t in tokens if t.type == tokenize.COMMENT}


# ---------------------------------------------------------------------------- asserts


def _try(outcome: Outcome, lecture: Lecture, frame: FrameType) -> None:
    """Try what is left of the trials of a claim whose test is about to be evaluated in `frame`."""
    node = lecture.claims[outcome.claim].node
    assert isinstance(node, ast.Assert)
    names = {**frame.f_globals, **frame.f_locals}
    path = _file(lecture, outcome.claim).path
    left = [i for i, trial in enumerate(outcome.trials) if i not in outcome.passed for _ in trial.mutants]
    tests = [node.test, *(mutant.test for trial in outcome.unfailed_trials for mutant in trial.mutants)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `"a" is 3`
        codes = [compile(ast.Expression(test), path, "eval", dont_inherit=True, optimize=0) for test in tests]
    # A test that calls nothing changes nothing: all its mutants share a child.
    verdicts = []
    if not any(isinstance(inner, _CALLS) for inner in ast.walk(node.test)):
        verdicts = _in_child(codes, names)
    if len(verdicts) < len(codes):  # it calls something, or the child did not come to its end
        verdicts = []
        for code in codes:
            verdicts.append(next(iter(_in_child([code], names)), TOO_LONG))
            if verdicts[0] != HOLDS:  # its own test
                break
    if verdicts[0] != HOLDS:
        outcome.unsteady = verdicts[0]
        return
    outcome.passed |= {i for i, verdict in zip(left, verdicts[1:], strict=True) if verdict != HOLDS}
    if outcome.unfailed_trials:  # for the list of survivors: the data that the test names
        used = {name.id: names.get(name.id) for name in ast.walk(node.test) if isinstance(name, ast.Name)}
        data = ((name, v) for name, v in used.items() if v is not None and type(v).__name__ != "module")
        outcome.names = {name: snapshot(value) for name, value in data if not callable(value)}


def _in_child(codes: list[CodeType], names: dict[str, Any]) -> list[str]:
    """What each test says, evaluated one after the other in a forked child; fewer where its time is up."""

    def verdicts() -> Iterator[str]:
        # What this copy of a rank would send, the rank itself would seem to have sent.
        with contextlib.suppress(OSError):
            for file in Path("/proc/self/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(file.readlink()).startswith("socket:"):
                        os.close(int(file.name))
        for code in codes:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    verdict = HOLDS if eval(code, dict(names)) else FAILS
            except BaseException as error:
                verdict = f"{FAILS}: {type(error).__name__}"
            yield verdict

    return forks.run_in_fork(verdicts, PATIENCE)


# ---------------------------------------------------------------------------- annotations


def _try_annotation(outcome: Outcome, annotation: Any, value: Any, text: str, sizes: Sizes) -> None:
    """Try what an annotation promises otherwise. It draws nothing and changes nothing: no child is needed."""
    import jaxtyping

    outcome.trials.clear()
    outcome.passed.clear()
    if why := mismatch(annotation, value, text, sizes):
        outcome.unsteady = why
        return

    def try_change(change: str, other: Any, dims: str = text, axes: Sizes = sizes) -> None:
        """The annotation may become `other`, with other dimensions, or its names other sizes."""
        if mismatch(other, value, dims, axes):
            outcome.passed.add(len(outcome.trials))
        outcome.trials.append(Trial(outcome.claim, "annotation", 0, 1, (Mutant(change, ast.Constant(text)),)))

    kind, array, words = annotation.dtype, annotation.array_type, text.split()
    if kind.__name__ not in ("Shaped", "Num"):
        other: Any = jaxtyping.Float if kind is jaxtyping.Bool else jaxtyping.Bool
        try_change(f"{kind.__name__} -> {other.__name__}", other[array, text])
    if not re.search(r"\*|\.\.\.", text):
        for dims in (f"{text} _".strip(), " ".join(words[:-1])):
            if dims != text:
                try_change(f"{text!r} -> {dims!r}", kind[array, dims], dims)
    for i, word in enumerate(words):
        name = word.lstrip("#?*").split("=")[0]
        if word.isdecimal():
            dims = " ".join([*words[:i], str(int(word) + 1), *words[i + 1 :]])
            try_change(f"{text!r} -> {dims!r}", kind[array, dims], dims)
        elif name in sizes and not word.startswith("#"):
            size, line = sizes[name]
            changed = {**sizes, name: (size + 1, line)}
            try_change(f"{name} = {size} -> {size + 1}", annotation, axes=changed)
