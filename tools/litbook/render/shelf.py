"""What is taller than a line, below its block of code: failures, cards, tables, storages, printed output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from litbook.record.model import Mapping, Opaque, Piece, Snapshot, Tensor, Value
from litbook.render import bits, cards, drawings, margin, markup, values
from litbook.render.catalogue import _, number
from litbook.render.evidence import Evidence
from litbook.render.markup import Html, tag

Shown = Sequence[tuple[Value, Snapshot]]

TALL = 2400  # characters of output beyond which its box scrolls


@dataclass
class Drawn:
    """What the shelves of a section already hold."""

    values: set[tuple[str, int | None]] = field(default_factory=set)
    views: dict[int, list[drawings.View]] = field(default_factory=dict)
    form: Callable[[str, Opaque], Html] = lambda _, __: markup.NOTHING  # draws what showed itself


def shelf(evidence: Evidence, path: str, drawn: Drawn, mine: Callable[[int], bool]) -> list[Html]:
    """Failures first, then cards, tables, storages and printed output of the block of code above.

    `mine` says whether a line belongs to that block; `path` is the file that failures name.
    """
    failed = [c for c in evidence.claims if c.verdict == "fails" and mine(c.line)]
    raised = [e for e in evidence.errors if mine(e.line)]
    known = [(v, it) for v in evidence.values if (it := evidence.snapshot_of(v)) is not None]
    here = [(v, it) for v, it in known if mine(v.line) and v.loop is None]
    quiet = [
        *_bits(here),
        *_cards(here, drawn),
        *_forms(here, drawn),
        *_tables(here, drawn),
        *_storages(here, drawn),
        *_whole(here, drawn),
    ]
    printed = [p for p in evidence.pieces if p.kind == "output" and mine(p.line) and p.text.strip()]
    return [
        *(margin.failure_box(claim, evidence, path) for claim in failed),
        *(margin.error_box(error, path) for error in raised),
        *([tag("section", *quiet, class_="lb-shelf")] if quiet else []),
        *([_output(printed)] if printed else []),
    ]


def _bits(found: Shown) -> list[Html]:
    """The bits of a block's floats under each other, so that formats can be compared."""
    stack = [(v.text, it) for v, it in found if isinstance(it, Tensor) and bits.drawable(it)]
    return [bits.stack(stack)] if stack else []


def _whole(found: Shown, drawn: Drawn) -> list[Html]:
    """What is too long for any line, folded: all that the record has of it."""
    done = []
    for value, it in found:
        if isinstance(it, Tensor | Mapping) or (isinstance(it, Opaque) and it.form):
            continue
        if not (text := values.whole(it, value.unit)):
            continue
        if _new(value, drawn):
            name = tag("code", value.text)
            cut, n = values.is_cut(it), number(len(text))
            head = _(", the first {n} characters", n=n) if cut else _(", {n} characters", n=n)
            body = tag("pre", text, tabindex="0")
            done.append(tag("details", tag("summary", name, head), body, class_="lb-whole"))
    return done


def _new(value: Value, drawn: Drawn) -> bool:
    """Whether this is the first time that this expression shows this snapshot."""
    key = (value.text, value.value)
    fresh = key not in drawn.values
    drawn.values.add(key)
    return fresh


def _cards(found: Shown, drawn: Drawn) -> list[Html]:
    done = []
    for value, it in found:
        if isinstance(it, Tensor) and cards.has_card(it) and not bits.drawable(it) and _new(value, drawn):
            done.append(cards.tensor(value.text, it))
    return done


def _forms(found: Shown, drawn: Drawn) -> list[Html]:
    """Values that show themselves."""
    forms = [(v, it) for v, it in found if isinstance(it, Opaque) and it.form]
    return [drawn.form(value.text, it) for value, it in forms if _new(value, drawn)]


def _tables(found: Shown, drawn: Drawn) -> list[Html]:
    """Mappings: those with the same keys and the same unit become one table."""
    tables: list[tuple[str | None, list[cards.Row]]] = []
    for value, it in found:
        if not isinstance(it, Mapping) or not it.items or len(values.line(it, value.unit)) <= margin.SHORT:
            continue
        if values.measurement(it) or not _new(value, drawn):
            continue
        like = next(
            (rows for unit, rows in tables if unit == value.unit and cards.same_keys(rows[0][1], it)), None
        )
        if like is None:
            tables.append((value.unit, [(value.text, it)]))
        else:
            like.append((value.text, it))
    return [
        cards.table(rows, unit) if len(rows) > 1 else cards.pairs(*rows[0], unit) for unit, rows in tables
    ]


def _storages(found: Shown, drawn: Drawn) -> list[Html]:
    """A small storage is drawn where a further view of it appears: the first view and the new ones."""
    fresh: dict[int, list[drawings.View]] = {}
    for value, it in found:
        if not isinstance(it, Tensor) or it.storage is None or not drawings.drawable(it):
            continue
        known = drawn.views.setdefault(it.storage, [])
        if not any(_same_view(it, other) for _, other in known):
            known.append((value.text, it))
            fresh.setdefault(it.storage, []).append((value.text, it))
    pictures = []
    for storage, new in fresh.items():
        base = drawn.views[storage][0]
        views = new if base in new else [base, *new]
        if len(views) > 1:
            pictures.append(drawings.storage(views))
    return pictures


def _same_view(a: Tensor, b: Tensor) -> bool:
    return (a.shape, a.strides, a.offset) == (b.shape, b.strides, b.offset)


def _output(pieces: Sequence[Piece]) -> Html:
    """What the lines of one block printed, together."""
    lines = sorted({piece.line for piece in pieces})
    where = _("printed by lines {first} to {last}", first=lines[0], last=lines[-1])
    where = _("printed by line {n}", n=lines[0]) if len(lines) == 1 else where
    text = "".join(piece.text if piece.text.endswith("\n") else piece.text + "\n" for piece in pieces)
    caption = tag("figcaption", where)
    tall = "0" if len(text) > TALL or text.count("\n") > TALL / 80 else None  # it scrolls, also by keys
    body = tag("pre", text.rstrip("\n"), tabindex=tall)
    return tag("figure", caption, body, class_="lb-output")
