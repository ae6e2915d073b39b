"""What is taller than a line, below its block of code: failures, cards, tables, storages, printed output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from litbook.i18n import _
from litbook.page import blocks as forms
from litbook.page.margin import SHORT, expression_key
from litbook.page.view import SectionView
from litbook.record.model import Mapping, Opaque, Snapshot, Tensor, Value
from litbook.values import formatting
from litbook.values.drawable import has_bits, has_card, has_storage

NamedTensor = tuple[str, Tensor]
ShownSnapshots = Sequence[tuple[Value, Snapshot]]


@dataclass
class SectionOutputs:
    """The shelves of a section; what one of them holds stands on no further one."""

    evidence: SectionView
    path: str  # the file that failures name
    held: set[tuple[str, int | None]] = field(default_factory=set)  # expressions with their snapshots
    views: dict[int, list[NamedTensor]] = field(default_factory=dict)  # by storage

    def outputs(self, mine: Callable[[int], bool]) -> list[forms.Block]:
        """What belongs to the block of code above, whose lines are `mine`: failures first."""
        evidence = self.evidence
        blocks = list[forms.Block]()
        for claim in evidence.claims:
            if claim.verdict == "fails" and mine(claim.line):
                sides = list[forms.OperandValue]()
                for text, at in ((side.text, side.value) for side in claim.operands):
                    value = _("never evaluated") if at is None else formatting.line(evidence.snapshot(at))
                    # What each was, where that says more than its source.
                    sides += [forms.OperandValue(text, value)] if value != text else []
                blocks.append(forms.Failure(claim, self.path, tuple(sides)))
        blocks += [forms.ErrorBox(error, self.path) for error in evidence.errors if mine(error.line)]
        pairs = [(value, evidence.snapshot_of(value)) for value in evidence.values]
        here = [(v, s) for v, s in pairs if s is not None and mine(v.line) and v.loop is None]
        # Floats under each other, so that formats can be compared.
        floats = [(v.text, s) for v, s in here if isinstance(s, Tensor) and has_bits(s)]
        things: list[forms.TallOutput] = [forms.Bits(tuple(floats))] if floats else []
        strips = self._strips(mine)
        for v, s in here:
            if expression_key(v) in strips:
                things.append(strips.pop(expression_key(v)))
            elif isinstance(s, Tensor) and has_card(s) and not has_bits(s) and self._new(v):
                things.append(forms.Card(v.text, s))
        things += strips.values()  # what rank 0 did not show
        things += [
            forms.RichDisplay(v.text, s) for v, s in here if isinstance(s, Opaque) and s.form and self._new(v)
        ]
        # A table has a row for each rank that has another one.
        rows = list[tuple[Value, Snapshot]]()
        for v, s in here:
            alike = [
                (n, other, self.evidence.snapshot(other.value))
                for n, rank in enumerate(self.evidence.rank_views)
                for other in rank.values
                if (expression_key(other), other.turn) == (expression_key(v), v.turn)
                and other.value is not None
            ]
            if isinstance(s, Mapping) and len({other.value for _n, other, _shot in alike}) > 1:
                for n, other, shot in alike:
                    rows.append((replace(other, text=_("{name}, rank {n}", name=v.text, n=n)), shot))
            else:
                rows.append((v, s))
        things += [*self._tables(rows), *self._storages(here)]
        # What is too long for any line: all that the record has of it.
        for v, s in here:
            drawn = isinstance(s, Tensor | Mapping) or (isinstance(s, Opaque) and s.form)
            if not drawn and (whole := formatting.full_text(s, v.unit)) and self._new(v):
                things.append(forms.FullText(v.text, whole, formatting.is_cut(s)))
        if things:
            blocks.append(forms.OutputShelf(tuple(things)))
        of_ranks = [piece for rank in evidence.rank_views for piece in rank.pieces]
        printed = [p for p in of_ranks if p.kind == "output" and mine(p.line)]
        if printed:
            blocks.append(
                forms.PrintedOutput(
                    tuple(sorted({piece.line for piece in printed})), self._printed_text(mine)
                )
            )
        return blocks

    def _printed_text(self, mine: Callable[[int], bool]) -> str:
        """What these lines printed; what not every rank printed alike stands behind the rank's name."""
        texts = [
            "".join(p.text for p in rank.pieces if p.kind == "output" and mine(p.line))
            for rank in self.evidence.rank_views
        ]
        if len(set(texts)) == 1:
            return texts[0]
        lines = ((rank, line) for rank, text in enumerate(texts) for line in text.splitlines())
        return "".join(_("rank {n}: {line}", n=rank, line=line) + "\n" for rank, line in lines)

    def _strips(self, mine: Callable[[int], bool]) -> dict[tuple[int, str, str, str | None], forms.Strip]:
        """The tensors of which not every rank has the same, by expression; of several the last."""
        by_rank = [
            {expression_key(v): v for v in rank.values if mine(v.line)} for rank in self.evidence.rank_views
        ]
        strips = dict[tuple[int, str, str, str | None], forms.Strip]()
        for key in dict.fromkeys(key for shown in by_rank for key in shown):
            seen = [shown.get(key) for shown in by_rank]
            shots = [value and self.evidence.snapshot_of(value) for value in seen]
            tensors = tuple(s if isinstance(s, Tensor) and has_card(s) else None for s in shots)
            if len({value and value.value for value in seen}) > 1 and any(tensors):
                strips[key] = forms.Strip(key[1], tensors)
        return strips

    def _new(self, value: Value) -> bool:
        """Whether this is the first time that this expression shows this snapshot."""
        key = (value.text, value.value)
        fresh = key not in self.held
        self.held.add(key)
        return fresh

    def _tables(self, shown: ShownSnapshots) -> list[forms.MappingTable]:
        """Mappings: those with the same keys and the same unit become one table."""
        tables: list[tuple[str | None, list[tuple[str, Mapping]]]] = []
        for value, mapping in shown:
            if not isinstance(mapping, Mapping) or not mapping.items:
                continue
            if len(formatting.line(mapping, value.unit)) <= SHORT or formatting.measurement(mapping):
                continue
            if not self._new(value):
                continue
            for unit, rows in tables:
                if unit == value.unit and same_keys(rows[0][1], mapping):
                    rows.append((value.text, mapping))
                    break
            else:
                tables.append((value.unit, [(value.text, mapping)]))
        return [forms.MappingTable(tuple(rows), unit) for unit, rows in tables]

    def _storages(self, shown: ShownSnapshots) -> list[forms.Storage]:
        """A small storage stands where a further view of it appears: with the first view and the new ones."""
        fresh: dict[int, list[NamedTensor]] = {}
        for value, tensor in shown:
            if not isinstance(tensor, Tensor) or tensor.storage is None or not has_storage(tensor):
                continue
            views = self.views.setdefault(tensor.storage, [])
            walk = tensor.shape, tensor.strides, tensor.offset
            if all((view.shape, view.strides, view.offset) != walk for _, view in views):
                views.append((value.text, tensor))
                fresh.setdefault(tensor.storage, []).append((value.text, tensor))
        storages = []
        for storage, new in fresh.items():
            base = self.views[storage][0]
            views = new if base in new else [base, *new]
            if len(views) > 1:
                storages.append(forms.Storage(tuple(views)))
        return storages


def same_keys(a: Mapping, b: Mapping) -> bool:
    """Whether two mappings are rows of one table."""
    return a.type == b.type and a.keys == b.keys and a.length == len(a.items)
