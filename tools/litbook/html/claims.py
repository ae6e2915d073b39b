"""How a page says claims: captions as sentences below the code that they follow, which open the asserts.

How this looks is decided here, and in the part of `litbook.css` that is called so. A caption also stands in
`margin`, in the box of a claim that fails (`section`, `verdicts`), in `ledger` and `player`, and in the
terminal. Other forms of a lecture keep the assert. Which lines are folded with a claim the rows of the code
say (`CodeRow.proof`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from litbook.html import elements
from litbook.html.elements import SPACE, Html, tag
from litbook.i18n import _
from litbook.markdown import to_html
from litbook.markdown.links import NoteContext
from litbook.page.blocks import ClaimVerdict, CodeBlock, CodeRow, MarginEntry
from litbook.page.margin import PLAIN, SIGNS, WORDS

LONG = 28  # characters of a value beside its test
# What sides differ by: then both stand beside the sentence.
DIFFERENT = (" < ", " > ", " ≤ ", " ≥ ", " ≠ ", " ≈ ")


class ClaimSayer:
    """The claims of one section; `code` draws rows of it, and `line` has the text of each."""

    def __init__(self, code: Callable[..., Html], line: Callable[[int], str], setting: NoteContext) -> None:
        self.code, self.line, self.setting = code, line, setting
        self.early: dict[int, list[CodeRow]] = {}  # what feeds a claim of a later block

    def parts(self, block: CodeBlock) -> list[Html]:
        """Code, and its claims below what they follow; those inside a loop that stays, below the loop."""
        here = {row.number for row in block.rows if row.number == row.proof}
        proofs, rows = self.early, list[CodeRow]()
        for row in block.rows:
            folds = row.proof in here or row.number < row.proof
            rows.append(row if folds else replace(row, proof=0))
            if folds:
                proofs.setdefault(row.proof, []).append(row)
        made, shown, claims = list[Html](), list[CodeRow](), list[CodeRow]()
        for _statement, group in itertools.groupby(rows, key=lambda row: row.statement):
            several = [*group]
            stays = [row for row in several if not row.proof]
            if claims and any(row.statement for row in stays):
                made.append(self._list(claims, block.dedent))
                claims = []
            shown += stays
            for number in dict.fromkeys(row.number for row in several if row.number in here):
                made += [] if claims else self._code(shown, block.dedent)
                shown = shown if claims else []
                claims += proofs.pop(number)
        made += [self._list(claims, block.dedent)] if claims else []
        return [*made, *self._code(shown, block.dedent)]

    def _code(self, rows: Iterable[CodeRow], dedent: int, *, folded: bool = False) -> list[Html]:
        """A block of these rows, without empty ones around them; entries take no rows that are not there."""
        kept = [row for row in rows if self.line(row.number).strip() or row.statement]
        if not kept:
            return []
        shown = [row for row in rows if kept[0].number <= row.number <= kept[-1].number]
        for i, row in enumerate(shown):
            free = itertools.takewhile(lambda below: not below.entries, shown[i + 1 :])
            shown[i] = replace(row, rows=min(row.rows, 1 + len([*free])))
        return [self.code(CodeBlock(tuple(shown), dedent), folded=folded)]

    def _list(self, rows: list[CodeRow], dedent: int) -> Html:
        """The sentences of claims that follow one another; they open the asserts and what only feeds them."""
        rows = sorted(rows, key=lambda row: row.number)
        said = [
            tag("span", _sentence(it, self.setting), class_=f"lb-proof lb-{it.verdict}", data_line=row.number)
            for row in rows for it in row.entries if isinstance(it, ClaimVerdict)
        ]  # fmt: skip
        alone = [replace(row, entries=tuple(map(_sides_alone, row.entries))) for row in rows]
        opened = self._code(alone, dedent, folded=True)
        return tag("details", tag("summary", *said), *opened, class_="lb-claims")


def _sides_alone(entry: MarginEntry) -> MarginEntry:
    """In what a sentence opens, a claim has no more to say than its sides."""
    held = isinstance(entry, ClaimVerdict) and entry.verdict == "holds"
    return replace(entry, said=True) if held else entry


def _sentence(entry: ClaimVerdict, setting: NoteContext) -> Html:
    """The sign, the caption (else the test), and beside it the test, or both sides where they differ.

    Nothing stands beside it where the test is about a name that no shown line gives a value.
    """
    claim, verdict = entry.claim, entry.verdict
    assert claim is not None
    sign = [tag("span", SIGNS[verdict], class_="lb-sign", aria_hidden="true"), SPACE]
    word = _(WORDS[verdict])
    told = [tag("span", f"{word}:", class_="lb-said"), SPACE] if verdict == "holds" else []
    test = " ".join(claim.text.split())
    sentence = to_html.inline(claim.caption, setting) if claim.caption else tag("code", test)
    remarks = [
        "" if verdict == "holds" else word,
        _("if {condition}", condition=entry.condition) if entry.condition else "",
        entry.times,
        entry.remark,
    ]
    words = [tag("small", " · ", remark) for remark in remarks if remark]
    beside = _beside(entry, test)
    if entry.unseen if claim.caption else beside == test:
        beside = ""
    shown = [SPACE, tag("code", beside, class_="lb-test")] if beside else []
    return elements.join([*sign, tag("span", *told, sentence, *words, class_="lb-sentence"), *shown])


def _beside(entry: ClaimVerdict, test: str) -> str:
    """The test; both sides where they differ, with what they may differ by."""
    if entry.verdict != "holds":
        return test
    if not entry.alike and any(sign in entry.sides for sign in DIFFERENT):
        return entry.sides
    one = entry.alike
    known = not one or one in PLAIN or len(one) > LONG or _bare(one) in _bare(test)
    return test if known else f"{test} · {one}"


def _bare(text: str) -> str:
    """A text without what groups and separates: `1,024` and `1_024` are one number."""
    return re.sub(r"[,_\s]", "", text)
