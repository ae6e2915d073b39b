"""Changes of claims and of code: what a claim does not notice, it does not say.

Three rules of `litbook check`, each tried in a process of its own: `mutant` changes every claim a little
where it stands (`claims` says how, `trials` runs it), `unnoticed` the code above it (`changes`, `noticed`),
and `order-dependent` runs every section alone (`order`). `findings` says what came of each.
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

_ORDER_DEPENDENT = """
A section that shows something else when it runs alone: another value, or a claim that does not hold.

Why: it reads what a section before it has changed, and its text does not say so. Who runs it alone, or takes
the other section out, gets another result than the page.

Example:
    import functools

    @functools.cache
    def settings():
        return {"width": 1}

    def main():
        \"\"\"Two sections.\"\"\"
        change()
        read()

    def change():
        \"\"\"Change.\"\"\"
        settings()["width"] = 8

    def read():
        \"\"\"Read.\"\"\"
        width = settings()["width"]  # @inspect width
        assert width == 8, "eight"

Way out: make what both need in a helper that each calls, or put it back at the end of the section that
changes it.
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
    Rule("order-dependent", partial(_try_all, "of_order"), reads="trials", doc=_ORDER_DEPENDENT),
)
