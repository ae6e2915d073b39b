"""Changes of claims and of code: what a claim does not notice, it does not say.

Two rules of `litbook check`, each tried in a process of its own: `mutant` changes every claim a little where
it stands (`claims` says how, `trials` runs it), `unnoticed` the code above it (`changes`, `noticed`).
`findings` says what came of either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from litbook.finding import Finding, Place
from litbook.rules.registry import Rule, register
from litbook.rules.subject import Subject
from litbook.run import process

_MUTANT = """
A claim that holds all the same when it is changed a little: it says less than it seems to.

Why: a reader takes a claim for a check. One that cannot fail checks nothing.

Example:
    count = 7
    assert count < 100, "few"

Way out: claim more closely, or excuse the change on the claim's line: # @allow mutant: 100 -> 99: why.
"""
_UNNOTICED = """
A change of a section's code that none of its claims notices, and no value that it shows.

Why: what nothing notices may be wrong today.

Example:
    total = 3 + 4
    limit = 8
    assert total == 7, "seven"

Way out: claim what the statement is for, take it out, or excuse it: # @allow unnoticed: 8 -> 9: why.
"""


def _try_all(function: str, subject: Subject) -> Iterator[Finding]:
    """The findings of trials in a process of their own; what they count goes into the subject's notes."""
    given = {"path": str(subject.path), "wanted": asdict(subject.trials)}
    answer = process.answer(subject.path, f"litbook.mutants.findings:{function}", **given)
    subject.notes.extend(answer["notes"])
    for fields in answer["findings"]:
        place = Place(**fields.pop("place")) if fields["place"] else None
        yield Finding(**fields | {"place": place, "details": tuple(fields["details"])})


register(
    Rule("mutant", partial(_try_all, "of_claims"), reads="trials", doc=_MUTANT),
    Rule("unnoticed", partial(_try_all, "of_code"), "off", reads="trials", doc=_UNNOTICED),
)
