"""Claims while they are judged: asserts with their operands and captions, annotations with their axes.

In go the probes of a claim, in the order in which they run; out comes what it came to, in the making of the
section that it belongs to. It knows nothing of steps, pieces and errors.
"""

from __future__ import annotations

import ast
import sys
import weakref
from sys import _getframe
from types import FrameType
from typing import Any

from litbook.i18n import gettext_noop
from litbook.probe.always_true import no_truth, why_settled
from litbook.probe.asserts import Asserts
from litbook.probe.axes import axis_names, layout_of, mismatch, remember
from litbook.probe.messages import caption_of, names_in
from litbook.probe.protocols import Recording
from litbook.probe.section_builder import JudgedClaim, SectionBuilder, SnapshotTable, claim_of
from litbook.probe.tracebacks import text_of
from litbook.record import model
from litbook.snapshot.containers import around_difference
from litbook.snapshot.snapshot import snapshot

NO_TRUTH, PAIRS = -1, -2  # under which a test's operands keep why it comes to none, and what it compares
_RAISED = object()  # stands for a caption that could not be computed


class Judge(Recording):
    """The part of a recorder that judges claims."""

    asserts: Asserts
    open_claims: list[tuple[int, dict[int, object]]]

    def making(self, function: int) -> SectionBuilder:
        """The section `function` while it is made."""
        raise NotImplementedError

    def claim(self, number: int) -> int:
        """A claim's test is about to be evaluated. Its number, for the verdict."""
        self.open_claims.append((number, {}))
        return number

    def operand(self, number: int, value: Any) -> Any:
        """One operand of the claim being evaluated, handed back as it came."""
        self.open_claims[-1][1][number] = value
        return value

    def test(self, value: Any) -> Any:
        """What the test of the claim being evaluated comes to, handed back: it has to be a truth."""
        if type(value) is not bool and (what := no_truth(value)):
            self.open_claims[-1][1][NO_TRUTH] = what
        return value

    def pair(self, part: int, side: int, how: int, value: Any) -> Any:
        """One of two things that a claim sets against each other in some way, handed back as it came."""
        if self.open_claims:
            pairs: Any = self.open_claims[-1][1].setdefault(PAIRS, {})
            pairs.setdefault((part, how), {})[side] = value
        return value

    def leave_claims(self, first: int, last: int) -> None:
        """One of the asserts from `first` to `last` is left. Of a claim it is that of an operand."""
        inner = self.lecture.claims[self.open_claims[-1][0]].statement if self.open_claims else -1
        if first <= inner <= last:
            self.open_claims.pop()
        self.asserts.leave_by_exception(inner if first <= inner <= last else first, _getframe(1))

    def verdict(self, _: None, number: int, failed: bool) -> None:
        """A claim is judged, after its step. `holds` and `fails` stand where its caption is computed, too."""
        self._judge(number, failed, None, _getframe(1))

    def holds(self, number: int, caption: object = None) -> None:
        self._judge(number, False, caption, _getframe(1))

    def fails(self, number: int, caption: object = _RAISED) -> None:
        claim = self.lecture.claims[number]
        computed = isinstance(claim.node, ast.Assert) and not isinstance(claim.node.msg, ast.Constant | None)
        if caption is _RAISED:  # or there is none; of a claim that holds, nobody computes it in plain Python
            error = sys.exc_info()[1]
            caption = f"{claim.text} (its caption raised {text_of(error)})" if computed else None
        self._judge(number, True, caption, _getframe(1))

    def _judge(self, number: int, failed: bool, caption: object, frame: FrameType) -> None:
        """A claim holds or fails, in the function that is `frame`. The first time is kept, then a failure."""
        claim, judged, seen = self.lecture.claims[number], self.judgement(number), self.open_claims[-1][1]
        judged.count += 1
        no_truth_is = str(seen.pop(NO_TRUTH, "")) if not failed else ""
        failed = failed or bool(no_truth_is)
        one = _nothing_said(seen.pop(PAIRS, {}), claim.written)
        judged.nothing = one if not failed and (judged.nothing or judged.count == 1) else ""
        if judged.count == 1 or (failed and not judged.failed):
            judged.failed = failed
            judged.caption = claim.caption if caption is None else caption_of(caption)
            for i, value in seen.items():
                self.asserts.equal(claim.statement, i, value, frame)
            storages = self._making_of(number).storages
            every = range(len(claim.operands))
            sides = around_difference(*seen.values()) if len(seen) == 2 else None
            seen = dict(zip(seen, sides, strict=True)) if sides else seen
            judged.operands = [snapshot(seen[i], storages) if i in seen else None for i in every]
            if failed and all(map(_says_little, judged.operands)):  # then also what the claim names
                told = {text for text, shot in zip(claim.operand_texts, judged.operands, strict=True) if shot}
                judged.why = names_in(claim.node, frame, told)
            if no_truth_is:
                judged.why = no_truth_is
            self._tell(number, judged)
        self.open_claims.pop()  # last: `leave_claims` asks what an exception comes from
        if failed:
            self.asserts.report_failed_claim(claim.statement, frame)

    def axes(self, number: int, annotation: Any, value: Any) -> None:
        """`x: Float[Tensor, "batch seq"] = ...`: dtype and rank hold, and names keep their sizes."""
        text = getattr(annotation, "dim_str", None)
        base = self.active.get(id(_getframe(1)))
        if isinstance(text, str) and base is not None:  # else of another library: none of our business
            self.check_axes(number, base, annotation, value, text)

    def check_axes(self, number: int, base: int, annotation: Any, value: Any, text: str) -> None:
        """Judge the annotation `text` of a value, in the call of a section whose frame has this base."""
        claim = self.lecture.claims[number]
        names = axis_names(text, getattr(value, "ndim", None))
        sizes = self.log.sizes.setdefault(base, {})
        why = mismatch(annotation, value, text, sizes)
        if not why and names is not None:
            remember(text, tuple(value.shape), sizes, self.lecture.statements[claim.statement].first)
            name, layout = claim.text.split(":")[0], layout_of(value)
            try:
                self.log.axes[base, name] = names, weakref.ref(value), layout
            except TypeError:  # of such a type: it is kept alive until its section ends
                self.log.axes[base, name] = names, lambda: value, layout
        self._judge_axes(number, why)

    def skip_annotation(self, number: int) -> None:
        """The annotation itself raised; plain Python would never have evaluated it."""
        self._judge_axes(number, f"the annotation cannot be read: {text_of(sys.exc_info()[1])}")

    def _judge_axes(self, number: int, why: str) -> None:
        """An annotation is as the value is, or `why` it is not."""
        judged = self.judgement(number)
        judged.count += 1
        if judged.count == 1 or (why and not judged.failed):
            judged.failed, judged.why = bool(why), why
            judged.caption = "" if why else gettext_noop("dtype and axes are as annotated")
            self._tell(number, judged)

    def axes_for(self, base: int, text: str, value: object) -> tuple[str, ...] | None:
        """The axes' names of the value called `text`, while it is the annotated one and lies as it did."""
        names, annotated, layout = self.log.axes.get((base, text), (None, None, None))
        same = annotated is not None and annotated() is value
        return names if same and layout == layout_of(value) else None

    def judgement(self, number: int) -> JudgedClaim:
        """What a claim came to so far."""
        return self._making_of(number).judged.setdefault(number, JudgedClaim())

    def _making_of(self, number: int) -> SectionBuilder:
        """The section that a claim belongs to. Called as a helper, it is not the one that runs."""
        return self.making(self.lecture.statements[self.lecture.claims[number].statement].function)

    def _tell(self, number: int, judged: JudgedClaim) -> None:
        if self.listener is not None:
            kept = SnapshotTable()
            self.listener.claim(claim_of(self.numbering, number, judged, "", kept.keep), kept.snapshots)


def _nothing_said(pairs: Any, written: bool) -> str:
    """Why a test says nothing of two things that it sets against each other; "" where it says something."""
    both = ((how, sides[0], sides[1]) for (_, how), sides in pairs.items() if len(sides) == 2)
    return next(filter(None, (why_settled(how, one, other, written) for how, one, other in both)), "")


def _says_little(operand: model.Snapshot | None) -> bool:
    """Whether an operand is no more than true or false, or something that yields what nobody has kept."""
    if isinstance(operand, model.Tensor):
        return not operand.shape and operand.dtype == "bool"
    return operand is None or operand.type in ("bool", "generator") or operand.kind == "opaque"
