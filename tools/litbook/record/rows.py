"""Parts of a section as the record's JSON has them, and back: short rows instead of objects.

There are thousands of them, so a row says first what most have to say, and last, in an object, what only
some have. What the rows before it, the other fields or the lecture's own text say is left out. A row counts
lines and steps within its section alone; so it stays as it is when the section moves.

    statement   0   [1, "x"]   [[0, 2, 5], "@section", "tensors"]      lines, its kind, its names
    frame       [1, 0, 12, "x", 5, "y", 7]   [1, 0, 13, 6, 8]          called, parent, line, arguments
    steps       [0, 0, -4, 7]                                          in frame 0 the statements 0 to 4, and 7
    loop        [0, 12, 100]                                           frame, line, count
    value       [3, 12, "x.shape", 5, {...}]                           step, line, text, snapshot
    piece       ["note", 3, [0, "2.25"], {...}]                        kind, step, what fills its text
    claim       [12, [0, 5, 4, 1], [5, 6], {...}]                      line, how its text is cut, operands

The lines of a statement are counted from the last of the statement before: how many are between them, and
where they differ how far its last is from its first, and its end from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate
from typing import Any

from litbook.record import checked, told
from litbook.record.checked import READERS, Misfit, within
from litbook.record.limits import FIRST, LAST
from litbook.record.model import Claim, Frame, Loop, Operand, Piece, Statement, Value

Lines = Sequence[str]  # of the section
Span = tuple[int, int]  # first and last line
Steps = Sequence[tuple[int, int]]

_INTS, _TEXT, _MAYBE = (checked.reader(kind) for kind in (tuple[int, ...], str, int | None))
_DEFAULTS = {
    kind: [(field.name, field.default) for field in fields(kind)] for kind in (Claim, Piece, Statement, Value)
}


def _rest(it: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The fields that hold neither what is `known` nor their default."""
    found = {}
    for name, default in _DEFAULTS[type(it)]:
        value = getattr(it, name)
        usual = known.get(name, default)
        if value != usual or type(value) is not type(usual):
            found[name] = value
    return found


def _with_rest(kind: type, known: dict[str, Any], rest: list[Any]) -> Any:
    """The dataclass of what is `known`, but for what the object at the end of a row says."""
    if len(rest) > 1 or (rest and type(rest[0]) is not dict):
        raise Misfit("one object was expected at the end of the row")
    return checked.fields(kind, {**known, **rest[0]} if rest else known)


def _row(data: Any, least: int) -> list[Any]:
    if type(data) is not list or len(data) < least:
        raise Misfit(f"a list of at least {least} was expected")
    return data


# ---------------------------------------------------------------------------- statements


def statements(several: Iterable[Statement], source: Lines, claims: Iterable[Span] = ()) -> list[Any]:
    """Rows of statements. `claims` are the lines of those that need not be said to be claims."""
    known, before, rows = set(claims), -1, []
    for it in several:
        rows.append(_statement(it, before, source, known))
        before = it.last
    return rows


def _statement(it: Statement, before: int, source: Lines, claims: set[Span]) -> Any:
    lines = [it.first - before - 1, it.last - it.first, it.end - it.last]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    kind, names = _usual(it.first, it.end, source, claims)
    said = [] if it.kind == kind and it.kind not in _TARGETED else [f"@{it.kind}"]
    if it.kind in _TARGETED:
        said.append(it.target)
        names = (_name(it.target),) if it.kind == "def" else ()
    bound = [] if it.binds == names else list(it.binds) or [""]
    plain = it.kind in _TARGETED or not it.target
    if it.prose or not plain or any(name[:1] in ("@", "") for name in it.binds):
        rest = _rest(it, {"first": it.first, "last": it.last, "end": it.end, "binds": None})
        return [lines, rest]
    head = lines if len(lines) > 1 else lines[0]
    return [head, *said, *bound] if said or bound or len(lines) > 1 else head


_TARGETED = ("section", "def")


def _usual(first: int, end: int, source: Lines, claims: set[Span]) -> tuple[str, tuple[str, ...]]:
    """The kind of a statement and the names that it binds, as far as its first line and the claims say."""
    line = source[first] if 0 <= first < len(source) else ""
    return "claim" if (first, end) in claims else told.kind(line), told.names(line)


def _name(key: str) -> str:
    """The name at the end of a definition's key."""
    return key.rpartition(".")[2].partition("#")[0]


def read_statements(data: Any, source: Lines, claims: Iterable[Span] = ()) -> tuple[Statement, ...]:
    """The statements of which `statements` made rows."""
    known, before = set(claims), -1

    def read(row: Any) -> Statement:
        nonlocal before
        head, *said = row if type(row) is list and row else [row]
        first, last, end = _lines(before + 1, head)
        before = last
        return _read_statement(first, last, end, said, _usual(first, end, source, known))

    return checked.each(read, data)


def _lines(at: int, head: Any) -> tuple[int, int, int]:
    if type(head) is int:
        return at + head, at + head, at + head
    if type(head) is not list or not 0 < len(head) <= 3 or not set(map(type, head)) <= {int}:
        raise Misfit(f"{head!r} says no lines")
    first = at + head[0]
    last = first + head[1] if len(head) > 1 else first
    return first, last, last + head[2] if len(head) > 2 else last


def _read_statement(
    first: int, last: int, end: int, said: list[Any], usual: tuple[str, tuple[str, ...]]
) -> Statement:
    if said and type(said[-1]) is dict:
        statement: Statement = _with_rest(Statement, {"first": first, "last": last, "end": end}, said)
        return statement
    if not set(map(type, said)) <= {str}:
        raise Misfit("names were expected after the lines")
    (kind, names), target = usual, ""
    if said and said[0].startswith("@"):
        kind, said = said[0][1:], said[1:]
        if kind not in _KINDS:
            raise Misfit(f"{kind!r} is no kind of statement")
        if kind in _TARGETED:
            target, said = (said[0], said[1:]) if said else ("", said)
            names = (_name(target),) if kind == "def" else ()
    binds = names if not said else () if said == [""] else tuple(said)
    return Statement(first, last, kind, end, target, "", binds)  # type: ignore[arg-type]  # looked up


_KINDS = {"code", "claim", "piece", "section", "def", "doc", "hidden"}


# ---------------------------------------------------------------------------- frames and steps


def frames(several: Iterable[Frame]) -> list[Any]:
    """Rows of frames. The names of arguments stand in the first of each function; then their values alone."""
    known: dict[int, tuple[str, ...]] = {}
    rows = []
    for it in several:
        names = tuple(name for name, _ in it.arguments)
        row: list[Any] = [it.called, it.parent, it.line]
        if it.arguments and known.get(it.called) == names:
            row += [place for _, place in it.arguments]
        else:
            row += [part for argument in it.arguments for part in argument]
            known[it.called] = names or known.get(it.called, ())
        rows.append(row if it.arguments or it.line else row[:2] if it.parent is not None else row[:1])
    return rows


def read_frames(data: Any) -> tuple[Frame, ...]:
    """The frames of which `frames` made rows."""
    known: dict[int, list[str]] = {}

    def read(row: Any) -> Frame:
        called, *more = _row(row, 1)
        parent, line, rest = more[0] if more else None, more[1] if len(more) > 1 else 0, more[2:]
        if type(called) is not int or type(line) is not int or not (parent is None or type(parent) is int):
            raise Misfit("numbers of what is called, of its caller, and of a line were expected")
        if rest and type(rest[0]) is str:
            known[called] = names = rest[::2]
            rest = rest[1::2]
        else:
            names = known.get(called, []) if rest else []
        if len(names) != len(rest) or not set(map(type, names)) <= {str} or not set(map(type, rest)) <= {int}:
            raise Misfit("names and snapshots of arguments were expected")
        return Frame(called, parent, line, tuple(zip(names, rest, strict=True)))

    return checked.each(read, data)


def steps(several: Steps) -> list[list[int]]:
    """Steps as runs of one frame: its number, then statements; a negative one ends a range."""
    runs: list[list[int]] = []
    for frame, statement in several:
        if not runs or runs[-1][0] != frame:
            runs.append([frame, statement])
            continue
        run = runs[-1]
        if abs(run[-1]) + 1 != statement:
            run.append(statement)
        elif run[-1] < 0:
            run[-1] = -statement
        else:
            run.append(-statement)
    return runs


def read_steps(data: Any) -> tuple[tuple[int, int], ...]:
    """The steps of which `steps` made runs."""
    found: list[tuple[int, int]] = []
    if type(data) is not list:
        raise Misfit("a list was expected")
    for i, run in enumerate(data):
        if type(run) is not list or not run or not set(map(type, run)) <= {int}:
            raise Misfit("a list of numbers was expected").under(f"[{i}]")
        frame, at = run[0], 0
        for statement in run[1:]:
            if statement >= 0:
                found.append((frame, statement))
            elif -statement - at > _LONGEST:
                raise Misfit(f"{-statement} is no statement").under(f"[{i}]")
            else:
                found += [(frame, it) for it in range(at + 1, 1 - statement)]
            at = abs(statement)
    return tuple(found)


_LONGEST = 1_000_000  # statements: a damaged range must not fill the memory


# ---------------------------------------------------------------------------- loops, values, pieces


def loop(it: Loop) -> Any:
    """A loop's row; the iterations that are kept of every loop are not listed."""
    row = [it.frame, it.line, it.count]
    return row if it.kept == _kept(it.count) else [*row, list(it.kept)]


def _kept(count: int) -> tuple[int, ...]:
    return (*range(min(FIRST, count)), *range(max(FIRST, count - LAST), count))


def read_loop(data: Any) -> Loop:
    """The loop of which `loop` made a row."""
    frame, line, count, *kept = _row(data, 3)
    if len(kept) > 1 or {type(frame), type(line), type(count)} != {int}:
        raise Misfit("frame, line and count were expected")
    return Loop(frame, line, count, within("[3]", _INTS, kept[0]) if kept else _kept(count))


def value(it: Value, taken: Steps) -> Any:
    """A value's row. Its frame is that of its step, where the row does not say otherwise."""
    rest = _rest(it, _value(it.step, it.line, it.text, it.value, taken))
    return [it.step, it.line, it.text, it.value, rest] if rest else [it.step, it.line, it.text, it.value]


def _value(step: Any, line: Any, text: Any, shown: Any, taken: Steps) -> dict[str, Any]:
    return {"step": step, "frame": _frame(step, taken), "line": line, "text": text, "value": shown}


def _frame(step: Any, taken: Steps) -> int:
    return taken[step][0] if type(step) is int and 0 <= step < len(taken) else 0


def read_value(data: Any, taken: Steps) -> Value:
    """The value of which `value` made a row."""
    step, line, text, shown, *rest = _row(data, 4)
    found: Value = _with_rest(Value, _value(step, line, text, shown, taken), rest)
    return found


def piece(it: Piece, taken: Steps, several: Sequence[Statement], source: Lines) -> Any:
    """A piece's row. Its line is that of the statement of its step, its words are those of the text there.

    What a run put between them is listed, after the number of the string in the statement: `[0, "2.25"]`.
    """
    proses = _proses(it.line, several, source)
    text, rest = _told(it.text, proses), _rest(it, _piece(it.kind, it.step, it.text, taken, several))
    rest |= {name: _told(rest[name], proses) for name in _WORDED if name in rest}
    return [it.kind, it.step, text, rest] if rest else [it.kind, it.step, text]


_WORDED = ("data", "alt")  # besides the text


def _proses(line: int, several: Sequence[Statement], source: Lines) -> tuple[told.Prose, ...]:
    """The strings of the statement that begins on a line."""
    last = next((it.end for it in several if it.first == line), line)
    return told.proses("\n".join(source[line : last + 1])) if 0 <= line <= last else ()


def _told(text: str, proses: Iterable[told.Prose]) -> Any:
    """The number of the string and what fills its holes; the text itself where none of them says it."""
    for number, prose in enumerate(proses):
        fills = told.fills(prose, text) if len(prose[0]) + len(prose[-1]) else None
        if fills is not None:
            return [number, *fills]
    return text


def _read_told(data: Any, proses: Sequence[told.Prose]) -> Any:
    if type(data) is not list:
        return data
    number, *fills = _row(data, 1)
    if type(number) is not int or not 0 <= number < len(proses) or not set(map(type, fills)) <= {str}:
        raise Misfit("the number of a string in the text was expected, and what fills its holes")
    if len(fills) + 1 != len(proses[number]):
        raise Misfit(f"the text has {len(proses[number]) - 1} holes there, and {len(fills)} are filled")
    return told.filled(proses[number], fills)


def _piece(kind: Any, step: Any, text: Any, taken: Steps, several: Sequence[Statement]) -> dict[str, Any]:
    frame, statement = taken[step] if type(step) is int and 0 <= step < len(taken) else (0, 0)
    line = several[statement].first if statement < len(several) else 0
    return {"kind": kind, "step": step, "frame": frame, "line": line, "text": text}


def read_piece(data: Any, taken: Steps, several: Sequence[Statement], source: Lines) -> Piece:
    """The piece of which `piece` made a row."""
    kind, step, text, *rest = _row(data, 3)
    known = _piece(kind, step, text, taken, several)
    if rest and type(rest[0]) is dict:
        line = rest[0].get("line", known["line"])
    else:
        line = known["line"]
    proses = _proses(line, several, source) if type(line) is int else ()
    known["text"] = within("[2]", lambda it: _read_told(it, proses), text)
    if rest and type(rest[0]) is dict:
        rest = [
            {**rest[0], **{name: _read_told(rest[0][name], proses) for name in _WORDED if name in rest[0]}}
        ]
    found: Piece = _with_rest(Piece, known, rest)
    return found


# ---------------------------------------------------------------------------- claims


def claim(it: Claim, source: Lines) -> Any:
    """A claim's row. Of what the section's text `source` has behind `assert`, only the cuts are kept."""
    said = _said(source, it.line, it.last)
    parts = _parts(it)
    known = _claim(it.line, it.last, it.text, it.verdict, said)
    if parts is None:
        rest = _rest(it, {**known, "text": "", "operands": ()})
        if it.operands:
            rest["operands"] = [[operand.text, operand.value] for operand in it.operands]
    else:
        rest = _rest(it, {**known, "form": it.form, "operands": it.operands})
    cuts: Any = parts and [len(part) for part in parts] if said.startswith(it.text) else parts
    if cuts and not cuts[-1]:
        cuts = cuts[:-1]
    places = [] if parts is None else [operand.value for operand in it.operands]
    if all(place is None for place in places):
        places = []
    line = it.line if it.last == it.line else [it.line, it.last]
    row = [line, cuts, places, rest]
    return row if rest else row[:3] if places else row[:2]


def _parts(it: Claim) -> list[str] | None:
    """Form and operands in turn; None where they are not the claim's text."""
    if len(it.form) != len(it.operands) + 1:
        return None
    parts = [it.form[0]]
    for operand, form in zip(it.operands, it.form[1:], strict=True):
        parts += [operand.text, form]
    return parts if "".join(parts) == it.text else None


def _claim(line: int, last: int, text: str, verdict: str, said: str) -> dict[str, Any]:
    """What goes without saying: a claim holds, ran once, and has the caption that stands behind it."""
    ran = verdict in ("holds", "fails")
    caption = told.caption(said, text)
    return {
        "line": line,
        "last": last,
        "text": text,
        "caption": caption,
        "verdict": "holds",
        "count": int(ran),
    }


def _said(source: Lines, line: int, last: int) -> str:
    return told.claimed(source[line : last + 1]) if 0 <= line <= last else ""


def read_claim(data: Any, source: Lines) -> Claim:
    """The claim of which `claim` made a row."""
    place, cuts, *more = _row(data, 2)
    line, last = place if type(place) is list and len(place) == 2 else (place, place)
    if type(line) is not int or type(last) is not int or len(more) > 2:
        raise Misfit("a claim's line, its parts, its operands and more were expected")
    said, rest = _said(source, line, last), more[1] if len(more) > 1 else {}
    if type(rest) is not dict:
        raise Misfit("an object was expected").under("[3]")
    found: dict[str, Any] = {}
    text = rest.get("text", "")
    if cuts is not None:
        parts = _cut(cuts, said)
        text = "".join(parts)
        found = {"form": parts[::2], "operands": _operands(parts[1::2], more[0] if more else [])}
    if type(text) is not str:
        raise Misfit(f"{text!r} is no str").under(".text")
    made: Claim = checked.fields(
        Claim, {**_claim(line, last, text, rest.get("verdict", "holds"), said), **found, **rest}
    )
    return made


def _cut(cuts: Any, said: str) -> list[str]:
    """Form and operands in turn: the texts themselves, or how long each is in what the section says."""
    kinds = set(map(type, cuts)) if type(cuts) is list else {None}
    if kinds <= {str}:
        parts = list(cuts)
    elif kinds == {int} and min(cuts) >= 0 and sum(cuts) <= len(said):
        ends = list(accumulate(cuts))
        parts = [said[end - length : end] for length, end in zip(cuts, ends, strict=True)]
    else:
        raise Misfit("the parts of a claim were expected, or how long they are in the text").under("[1]")
    return parts if len(parts) % 2 else [*parts, ""]


def _operands(texts: list[str], places: Any) -> list[Any]:
    if type(places) is not list or (places and len(places) != len(texts)):
        raise Misfit(f"{len(texts)} operands were expected").under("[2]")
    return [list(pair) for pair in zip(texts, places or [None] * len(texts), strict=True)]


def _read_operand(data: Any) -> Operand:
    row = _row(data, 1)
    if len(row) > 2:
        raise Misfit("a text and a snapshot were expected")
    return Operand(within("[0]", _TEXT, row[0]), within("[1]", _MAYBE, row[1]) if len(row) > 1 else None)


READERS[Operand] = _read_operand
