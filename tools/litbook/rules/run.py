"""What a run itself says is wrong: claims that fail, exceptions, pictures that are large, values nobody sees.

In goes a record, out come findings with their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from litbook.finding import Finding, Place
from litbook.lecture.author_words import SEEN
from litbook.page.view import error_origin, view_of_run
from litbook.record.limits import LARGE_IMAGE
from litbook.record.model import Claim, Record, Scalar, Section, Tensor, Value
from litbook.record.ranks import ranks_of
from litbook.rules.shown_nowhere import find_lost_output
from litbook.values import formatting

_WAY_OUT_RANKS = "say what holds on all ranks, or collect the values of all ranks first and show them"
_TOO_MANY = 1e5  # of a unit with a prefix that makes it small
_PREFIXED = re.compile(r"(k|K|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|m|µ|u|n)(B|FLOPs?|FLOP/s|FLOPS|B/s|s|Hz|W|bit|bits)")


def failures(record: Record) -> list[Finding]:
    """Every failed claim and every error, in line order; each names its place and repeats the user's line."""
    found: list[tuple[int, int, Finding]] = []
    missing = dict[str, int]()  # what several imports miss, said once: where in `found`
    for section in record.sections:
        path, evidence = record.sources[section.file].path, view_of_run(record, section)
        for claim in evidence.claims:
            if claim.verdict == "fails":
                place = Place(path, claim.line, 0)
                what = f"claim fails: {claim.caption or claim.text}"
                sides = tuple(_sides(claim, section))
                found.append((section.file, claim.line, Finding("claim-fails", what, place, details=sides)))
        for kept, error in zip(section.errors, evidence.errors, strict=True):
            message = error.message.replace("\n", "\n        ")
            file, line, _name, inner = error.trace[-1] if error.trace else (path, error.line, "", error.text)
            absent = message.startswith("ModuleNotFoundError")
            if absent and message in missing:
                at = missing[message]
                before = found[at][2]
                also = replace(before, details=(*before.details, f"and at {file}:{line}"))
                found[at] = (*found[at][:2], also)
                continue
            details = [inner.strip()] if inner.strip() else []
            for caller, at_line, function, _text in reversed(error.trace[:-1]):
                details.append(f"called from {caller}:{at_line} in {function}")
            if absent:
                missing[message] = len(found)
            finding = Finding("raised", message, Place(file, line, 0), details=tuple(details))
            found.append((*error_origin(record, section, kept), finding))
    return [finding for *_, finding in sorted(found, key=lambda one: one[:2])]


def rank_dependent(record: Record) -> Iterator[Finding]:
    """Texts and answers that differ between the ranks of a section: a reader sees only those of rank 0."""
    for section in record.sections:
        first, *others = [_said_by_line(own) for own in ranks_of(section)]
        for rank, other in enumerate(others, 1):
            differing = [line for line, said in first.items() if other.get(line, said) != said]
            for line in differing:
                what = f"rank 0 says {first[line][0]!r:.60}, and rank {rank} {other[line][0]!r:.60}"
                source = record.sources[section.file]
                place = Place.of_line(source.path, source.text, section.first + line)
                yield Finding("rank-dependent", what, place, _WAY_OUT_RANKS)
            if differing:
                break


def _said_by_line(section: Section) -> dict[int, list[str]]:
    """Line -> the texts that readers see, in their order; of a question the answer behind its text."""
    said = dict[int, list[str]]()
    for piece in section.pieces:
        if piece.kind in SEEN:
            answer = None if piece.answer is None else formatting.line(section.snapshots[piece.answer])
            said.setdefault(piece.line, []).append(piece.text if answer is None else f"{piece.text} {answer}")
    return said


def _sides(claim: Claim, section: Section) -> Iterator[str]:
    """What a failed claim says, and what its sides were."""
    if claim.kind == "axes":
        yield from (claim.text, claim.why)
        return
    yield f"assert {claim.text}"
    if claim.operands:
        yield formatting.claim(claim, section.snapshots)
    for text, at in dict.fromkeys((operand.text, operand.value) for operand in claim.operands):
        # Literals say themselves what they are.
        if at is not None and not re.match(r"""[\d"'(\[{-]""", text):
            seen = section.snapshots[at]
            # With every digit, where that is short: `0.1 + 0.2 is 0.3` would be a lie.
            exact = formatting.line(seen)
            if isinstance(seen, Scalar) and isinstance(seen.number, float):
                exact = seen.text
            yield f"  {text} is {exact}"
    yield from (f"  {line}" for line in claim.why.splitlines())


def large_pictures(record: Record) -> Iterator[Finding]:
    """Pictures that take long to load."""
    for section in record.sections:
        path, its = record.sources[section.file].path, view_of_run(record, section)
        for piece in its.pieces if its.calls else ():
            size = len(piece.data.partition(",")[2].rstrip("=")) * 3 // 4
            drawn = len(piece.data.encode()) if piece.kind == "figure" else 0
            if drawn > LARGE_IMAGE:
                what = f"a figure of {drawn:,} bytes: {piece.alt[:60]}"
                way_out = "draw what has many points as pixels: scatter(…, rasterized=True), or draw fewer"
                yield Finding("large-picture", what, Place(path, piece.line, 0), way_out)
            if piece.kind == "image" and size > LARGE_IMAGE:
                what = f"a picture of {size:,} bytes: {piece.alt[:60]}"
                way_out = "every reader loads it: fewer pixels, JPEG or WebP take less"
                yield Finding("large-picture", what, Place(path, piece.line, 0), way_out)


def unconverted_units(record: Record) -> Iterator[Finding]:
    """Values with a prefix in their unit, and a number that no conversion has made for it."""
    for section in record.sections:
        source, its = record.sources[section.file], view_of_run(record, section)
        texts, told = source.text.split("\n"), set[tuple[int, str]]()
        answers = [
            Value(piece.step, piece.frame, piece.line, "the answer", piece.answer, unit=piece.unit)
            for piece in its.pieces
            if piece.kind == "question" and piece.answer is not None
        ]
        for value in [*its.values, *answers]:
            shown, match = its.snapshot_of(value), _PREFIXED.fullmatch(value.unit or "")
            number = shown.number if isinstance(shown, Scalar) else None
            if isinstance(shown, Tensor) and len(shown.values) == 1:
                number = shown.values[0]
            if match is None or isinstance(number, str | bool | None) or not number:
                continue
            code = texts[value.line - 1].partition("@")[0] + value.text
            made = bool(re.search(r"[*/]|<<|>>|convert|to_|_to", code))  # on this line, at least
            small = match[1] in "mµun"
            beyond = (1e-6, 1e-2) if small else (1e6, 1e4)
            wrong = abs(number) < beyond[not made] if small else abs(number) >= beyond[not made]
            wrong |= small and abs(number) >= _TOO_MANY  # nanoseconds, called milliseconds
            if wrong and (value.line, value.text) not in told:
                told.add((value.line, value.text))
                what = (
                    f"{value.text} is shown as {formatting.number(number, value.unit)}: nothing converted it"
                )
                way_out = f"name the plain unit, which chooses a prefix: as {match[2]}; or convert it before"
                yield Finding("unconverted-unit", what, Place(source.path, value.line, 0), way_out)


def shown_nowhere(record: Record) -> Iterator[Finding]:
    """Expressions whose values a notebook would show, and a page does not."""
    for section in record.sections:
        source = record.sources[section.file]
        texts = source.text.split("\n")
        view = view_of_run(record, section)
        said = [piece for piece in view.pieces if piece.kind == "stderr"]
        if told := next((piece for piece in said if piece.text.strip()), None):
            first = told.text.strip().partition("\n")[0][:120]
            what = "what this line prints to stderr is on no page"
            way_out = "print it to stdout; of a child: subprocess.run(…, stderr=subprocess.STDOUT)"
            yield Finding("shown-nowhere", what, Place(source.path, told.line, 0), way_out, details=(first,))
        rows = {section.first + it.first: it for it in section.statements if it.first == it.last}
        margin = min((len(texts[at - 1]) - len(texts[at - 1].lstrip()) for at in rows), default=0)
        for at, statement in rows.items():
            if at in view.unreached_lines:  # what it would have said is not known
                continue
            code = texts[at - 1][margin:]  # within a block, a `try` say, a value may be asked for to raise
            if statement.kind == "code" and not code.startswith(" ") and (why := find_lost_output(code)):
                what, way_out = why
                place = Place(source.path, at, 0)
                yield Finding("shown-nowhere", what, place, way_out, details=(code.rstrip(),))
