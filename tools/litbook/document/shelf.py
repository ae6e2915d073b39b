"""What is taller than a line, below its block of code: failures, cards, tables, storages, printed output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from litbook.document import values
from litbook.document.blocks import (
    Bits,
    Block,
    Card,
    Display,
    Failure,
    Output,
    Shelf,
    Shelved,
    Side,
    Storage,
    Table,
    Trouble,
    Whole,
)
from litbook.document.catalogue import _
from litbook.document.drawable import has_bits, has_card, has_storage
from litbook.document.evidence import Evidence
from litbook.document.margin import SHORT
from litbook.record.model import Mapping, Opaque, Snapshot, Tensor, Value

View = tuple[str, Tensor]
Values = Sequence[tuple[Value, Snapshot]]


@dataclass
class Shelves:
    """The shelves of a section; what one of them holds stands on no further one."""

    evidence: Evidence
    path: str  # the file that failures name
    held: set[tuple[str, int | None]] = field(default_factory=set)  # expressions with their snapshots
    views: dict[int, list[View]] = field(default_factory=dict)  # by storage

    def below(self, mine: Callable[[int], bool]) -> list[Block]:
        """What belongs to the block of code above, whose lines are `mine`: failures first."""
        evidence = self.evidence
        blocks = list[Block]()
        for claim in evidence.claims:
            if claim.verdict == "fails" and mine(claim.line):
                sides = [
                    Side(
                        side.text,
                        _("never evaluated")
                        if side.value is None
                        else values.line(evidence.snapshot(side.value)),
                    )
                    for side in claim.operands
                ]
                # What each was, where that says more than its source.
                said = tuple(side for side in sides if side.value != side.text)
                blocks.append(Failure(claim, self.path, said))
        blocks += [Trouble(error, self.path) for error in evidence.errors if mine(error.line)]
        pairs = [(value, evidence.snapshot_of(value)) for value in evidence.values]
        here = [(v, it) for v, it in pairs if it is not None and mine(v.line) and v.loop is None]
        # Floats under each other, so that formats can be compared.
        floats = [(v.text, it) for v, it in here if isinstance(it, Tensor) and has_bits(it)]
        things: list[Shelved] = [Bits(tuple(floats))] if floats else []
        things += [
            Card(v.text, it)
            for v, it in here
            if isinstance(it, Tensor) and has_card(it) and not has_bits(it) and self._new(v)
        ]
        things += [
            Display(v.text, it) for v, it in here if isinstance(it, Opaque) and it.form and self._new(v)
        ]
        things += [*self._tables(here), *self._storages(here), *self._wholes(here)]
        if things:
            blocks.append(Shelf(tuple(things)))
        printed = [it for it in evidence.pieces if it.kind == "output" and mine(it.line) and it.text.strip()]
        if printed:
            text = "".join(it.text if it.text.endswith("\n") else it.text + "\n" for it in printed)
            blocks.append(Output(tuple(sorted({it.line for it in printed})), text))
        return blocks

    def _new(self, value: Value) -> bool:
        """Whether this is the first time that this expression shows this snapshot."""
        key = (value.text, value.value)
        fresh = key not in self.held
        self.held.add(key)
        return fresh

    def _tables(self, found: Values) -> list[Table]:
        """Mappings: those with the same keys and the same unit become one table."""
        tables: list[tuple[str | None, list[tuple[str, Mapping]]]] = []
        for value, mapping in found:
            if not isinstance(mapping, Mapping) or not mapping.items:
                continue
            if len(values.line(mapping, value.unit)) <= SHORT or values.measurement(mapping):
                continue
            if not self._new(value):
                continue
            for unit, rows in tables:
                if unit == value.unit and same_keys(rows[0][1], mapping):
                    rows.append((value.text, mapping))
                    break
            else:
                tables.append((value.unit, [(value.text, mapping)]))
        return [Table(tuple(rows), unit) for unit, rows in tables]

    def _storages(self, found: Values) -> list[Storage]:
        """A small storage stands where a further view of it appears: with the first view and the new ones."""
        fresh: dict[int, list[View]] = {}
        for value, tensor in found:
            if not isinstance(tensor, Tensor) or tensor.storage is None or not has_storage(tensor):
                continue
            views = self.views.setdefault(tensor.storage, [])
            walk = tensor.shape, tensor.strides, tensor.offset
            if all((it.shape, it.strides, it.offset) != walk for _, it in views):
                views.append((value.text, tensor))
                fresh.setdefault(tensor.storage, []).append((value.text, tensor))
        storages = []
        for storage, new in fresh.items():
            base = self.views[storage][0]
            views = new if base in new else [base, *new]
            if len(views) > 1:
                storages.append(Storage(tuple(views)))
        return storages

    def _wholes(self, found: Values) -> list[Whole]:
        """What is too long for any line: all that the record has of it."""
        wholes = []
        for value, it in found:
            if isinstance(it, Tensor | Mapping) or (isinstance(it, Opaque) and it.form):
                continue
            if (text := values.whole(it, value.unit)) and self._new(value):
                wholes.append(Whole(value.text, text, values.is_cut(it)))
        return wholes


def same_keys(a: Mapping, b: Mapping) -> bool:
    """Whether two mappings are rows of one table."""
    return a.type == b.type and a.keys == b.keys and a.length == len(a.items)
