"""Any object -> a bounded, JSON-ready snapshot.

A snapshot is taken between two lines of somebody's lecture. So it must end soon whatever the object is,
and it must leave no trace: nothing is consumed, changed, counted, or seen by torch's modes. Three habits
follow, and hold in every module that this one asks:

- *Trust the type, not the object* (`kinds`). What `type()` says decides, and the base type's own methods are
  called (`list.__len__(x)`, never `len(x)`), so overridden methods, properties and `__getattr__` do not run.
- *Foreign code runs in one place* (`foreign`), under a time limit. It is only ever a `repr` or a `str`.
- *Torch is looked up, never imported* (`libraries`), and called below autograd and all modes.

This module knows which module to ask, and what may still be spent. It does not know how anything is read: see
`plain`, `containers`, `tensors` and `objects`.
"""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from litbook.errors import Stopped
from litbook.record import model
from litbook.record.limits import (
    DEPTH,
    GLIMPSED_NODES,
    GLIMPSED_TEXT,
    NODES,
    SECONDS,
    SHOWING,
    TENSOR_NODES,
    TEXT,
)
from litbook.snapshot import libraries, opaque_values, tensors
from litbook.snapshot.containers import BUILTIN, attributes, contents
from litbook.snapshot.safe_types import name_of, static_attribute
from litbook.snapshot.scalars import PLAIN, scalar
from litbook.snapshot.storages import Storages
from litbook.snapshot.timeout import Clock

Form = tuple[str, str]
"""A MIME type, and text; of a PNG in base64."""

# What asks a value, of this type and on a clock, for the form in which it shows itself: that form, and where
# one was to be had and is not kept, why.
INSTEAD: list[str] = []  # names of methods that give what is shown in the place of an object
FORMS: list[Callable[[Any, type, Clock], tuple[Form | None, str]]] = []


def snapshot(
    value: object,
    storages: Storages | None = None,
    *,
    axes: tuple[str, ...] | None = None,
    bits: bool = False,
    shows: bool = False,
) -> model.Snapshot:
    """What `value` is now, bounded: at most 32 kB of JSON, 4 kB for a single tensor.

    `storages` numbers the memory of tensors; pass the same one throughout a run, so that sharing shows.
    `axes` names the axes of `value` where it is a tensor of that rank, and is ignored elsewhere. `bits` asks
    for the bits of its floats. `shows` asks for the form in which it shows itself by Jupyter's display
    protocol, at most `SHOWN` bytes more, and looks into an object that has no text of its own.

    Never raises, except for what comes from outside while it works: `KeyboardInterrupt`, `Stopped`, and
    a `BaseException` that `value` did not raise itself.
    """
    try:
        if is_immediate(value):
            return PLAIN[id(type(value))](value)
        walk = _SnapshotBuilder(storages, axes)
        walk.allowance.bits = bits
        walk.shows = shows
        return walk.see(value)
    except Stopped:
        raise
    except Exception:  # out of memory or of stack, most likely: so nothing more is called
        return _UNREADABLE


def glimpse(value: object, storages: Storages | None = None, nodes: int = GLIMPSED_NODES) -> model.Snapshot:
    """As `snapshot`, of a value that nobody asked to see: smaller, and nothing foreign runs.

    A tensor keeps its values where it is small and in main memory, else its metadata alone: nothing large is
    read, and no device is waited for.
    """
    try:
        if is_immediate(value):
            return PLAIN[id(type(value))](value)
        walk = _SnapshotBuilder(storages, None)
        walk.allowance.brief = True
        walk.clock = Clock(0, "is not asked for")
        walk.nodes, walk.text = nodes, GLIMPSED_TEXT
        return walk.see(value)
    except Stopped:
        raise
    except Exception:  # as in `snapshot`
        return _UNREADABLE


def type_alone(value: object, why: str) -> model.Opaque:
    """The type of `value` alone, and why there is no more."""
    return model.Opaque(name_of(type(value)), "", why=why)


def text_of(value: object) -> str:
    """`str(value)`, bounded in time and length; where there is none, the type, and why."""
    return opaque_values.safe_str(value, Clock(SECONDS))


def is_immediate(value: object) -> bool:
    """Whether `value` is a small immutable builtin, so that keeping it now and snapshotting later is safe."""
    kind = type(value)
    if kind is str:
        return len(value) <= 64  # type: ignore[arg-type]
    return kind is float or kind is int or kind is bool or value is None


def as_snapshot(kept: object) -> model.Snapshot:
    """What was kept of a value: a snapshot, or an immediate value that is one only now."""
    if isinstance(kept, model.Scalar | model.Sequence | model.Mapping | model.Tensor | model.Opaque):
        return kept
    return snapshot(kept)


_UNREADABLE = model.Opaque("object", "", why="could not be read")


class _SnapshotBuilder:
    """One snapshot in the making: what may still be spent, and the containers it is inside of."""

    def __init__(self, storages: Storages | None, axes: tuple[str, ...] | None) -> None:
        self.allowance = tensors.TensorBudget(storages, axes)
        self.clock = Clock(SECONDS)
        self.nodes = NODES
        self.text = TEXT
        self.inside: list[int] = []
        self.shows = False

    def see(self, value: object) -> model.Snapshot:
        """The snapshot of `value`; what cannot be read is said to be so in its place."""
        self.nodes -= 1
        try:
            shot = self._snapshot(value, type(value))
            # With a text that fits what is left.
            self.text -= len(shot.type)
            if isinstance(shot, model.Scalar | model.Opaque):
                # Its bytes in JSON, where quotes and control characters are longer.
                weight = len(json.encoder.encode_basestring(shot.text).encode()) - 2
                if weight > max(self.text, 0):
                    fits = shot.text[: max(self.text, 0) * len(shot.text) // weight]
                    shot = replace(shot, text=fits, cut=True)
                self.text -= weight
            return shot
        except Stopped:
            raise
        except Exception as error:
            return model.Opaque(name_of(type(value)), "", why=f"could not be read: {name_of(type(error))}")

    def _snapshot(self, value: object, kind: type) -> model.Snapshot:
        plain = PLAIN.get(id(kind))
        if plain is not None:
            return plain(value)
        if id(kind) in BUILTIN:
            return self._container(value, kind) or model.Opaque(name_of(kind), "")
        torch = libraries.torch()
        if torch is not None and issubclass(kind, torch.Tensor):
            return self._tensor(torch, value, kind)
        if libraries.is_array(kind) and not libraries.is_masked(kind):
            self.nodes -= TENSOR_NODES
            return tensors.array(value, kind, self.allowance)
        return (
            scalar(value, kind)
            or self._substitute(value, kind)
            or self._display_form(value, kind)
            or self._container(value, kind)
            or opaque_values.describe(value, kind, self.clock)
        )

    def _substitute(self, value: object, kind: type) -> model.Snapshot | None:
        """What a method of `INSTEAD` gives to be shown in the place of `value`; None where it has none."""
        for name in INSTEAD:
            if method := static_attribute(kind, name):
                given, why = self.clock.call(method, value, name)
                if why or static_attribute(type(given), name):  # that would never end
                    return model.Opaque(name_of(kind), "", why=why or f"{name} gives another such object")
                return self.see(given)
        return None

    def _display_form(self, value: object, kind: type) -> model.Snapshot | None:
        """`value` with the form in which it shows itself, or why there is none; None where it never shows."""
        if not self.shows or self.inside:
            return None
        for ask in FORMS:
            form, why = ask(value, kind, Clock(SHOWING, late=f"took longer than {SHOWING:g} s"))
            if form is not None or why:
                opaque, (media, text) = opaque_values.describe(value, kind, self.clock), form or ("", "")
                return replace(opaque, media=media, form=text, why=why or opaque.why)
        return None

    def _tensor(self, torch: libraries.Torch, value: Any, kind: type) -> model.Snapshot:
        self.nodes -= TENSOR_NODES
        with torch.without_observers():
            if torch.is_plain(kind):
                return tensors.tensor(torch, value, kind, self.allowance)
            shot, why = self.clock.call(  # its own dispatch may answer even `.shape` with foreign code
                lambda tensor: tensors.tensor(torch, tensor, kind, self.allowance), value, "its dispatch"
            )
        return shot if shot is not None else model.Opaque(name_of(kind), "", why=why)

    def _container(self, value: Any, kind: type) -> model.Snapshot | None:
        within = contents(value, kind) or (attributes(value, kind) if self.shows else None)
        if within is None:
            return None
        name = name_of(kind)
        if id(value) in self.inside:
            return model.Opaque(name, "...", why="contains itself")
        if len(self.inside) >= DEPTH and within.length:
            return model.Opaque(name, f"{within.length} items", why="nested too deep")
        self.allowance.nest()
        self.inside.append(id(value))
        keys, items = [], []
        try:
            for i, item in enumerate(within.items):
                if self.nodes < 2 or self.text <= 0:
                    break
                # Each leaves their share of what may still be spent to those after it.
                share = max(2, self.nodes // (len(within.items) - i))
                reserve, self.nodes = self.nodes - share, share
                if within.keys is not None:
                    keys.append(self.see(within.keys[i]))
                items.append(self.see(item))
                self.nodes += reserve
        finally:
            self.inside.pop()
        if within.keys is None:
            return model.Sequence(name, within.length, tuple(items))
        return model.Mapping(name, within.length, tuple(keys), tuple(items))
