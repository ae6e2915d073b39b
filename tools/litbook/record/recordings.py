"""Recordings: the files beside the lectures that say what every value was, one per kind of device.

A recording is a record without what pages never take from it: see `trimmed`. It is written whole or not at
all, and read with distrust: whatever is wrong with it is a `RecordError` that names the file and the way out.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from litbook.errors import RecordError
from litbook.record import encoding, model


def read(file: Path, lecture: str) -> model.Record:
    """The recording in `file`, which is to be one of `lecture` on the device that its name says.

    Raises `RecordError` for a file that is cut short, was damaged by hand, comes from a newer litbook, or is
    a recording of something else.
    """
    shown = _shown(file)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise _unusable(f"{shown} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _unusable(f"{shown} is not a record: it is not UTF-8 text") from None
    try:
        record = encoding.loads(text, shown)
    except RecordError as error:
        raise _unusable(str(error)) from None
    device = record.environment.device
    if record.lecture != lecture:
        raise _unusable(f"{shown} is a recording of another lecture: {record.lecture[:80]!r}")
    if file.name != f"{lecture}.{device.slug or device.kind}.json":
        raise _unusable(f"{shown} is a recording of another device: {device.slug[:80]!r}")
    if record.ran:
        raise _unusable(f"{shown} is the record of some sections, not of the lecture")
    return record


def _unusable(what: str) -> RecordError:
    """What is wrong with the file, in one line of bounded length: it may repeat what the file holds."""
    what = what.splitlines()[0]
    update = "update litbook, " if " has schema " in what else ""
    return RecordError(
        f"{what[:300]}{'…' if len(what) > 300 else ''}\n"
        f"    {update}take the file back from git, or run the lecture with --approve, which replaces it"
    )


def _shown(file: Path) -> str:
    """`lectures/recordings/lecture_01.cpu.json`: from the folder above the lecture's."""
    return "/".join(file.parts[-3:])


# ---------------------------------------------------------------------------- writing


def write(file: Path, record: model.Record) -> None:
    """Write the recording of `record`: afterwards `file` is the new one, or whole and as it was."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(file, dumps(record).encode(errors="backslashreplace"))
    except OSError as error:
        raise RecordError(f"{_shown(file)}: {error.strerror}; nothing was written") from None


def dumps(record: model.Record) -> str:
    """The recording of a run, as the text of its file."""
    return encoding.dumps(trimmed(record))


def replace_whole(file: Path, content: bytes) -> None:
    """`file` becomes `content`: a kill, a full disk or another writer leaves it whole, old or new.

    The bytes go into a file of their own in the same folder and reach the disk before its name changes.
    """
    file = file.resolve()
    handle, beside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123  a descriptor, not a path
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(beside, _mode(file))  # noqa: PTH101  mkstemp made it private
        os.replace(beside, file)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise


def _mode(file: Path) -> int:
    """The permissions that the file has, else those of any new one."""
    with contextlib.suppress(OSError):
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# ---------------------------------------------------------------------------- what a recording holds


def trimmed(record: model.Record) -> model.Record:
    """The record without what a recording is never asked for, so that its file changes when a value does.

    What is left out: the lecture's text (git has it, and `sha256` says which it was), the seconds of each
    section (their sum is kept), and statements, steps and pieces of sections that need no device: pages have
    their own. Every value gets a snapshot of its own: a record stores equal ones once, and there one changed
    value may renumber the rest.
    """
    return _Trim(record).record()


class _Trim:
    def __init__(self, record: model.Record) -> None:
        self.old = record
        self.snapshots: list[model.Snapshot] = []
        self.special = [_requires(record, i) for i in range(len(record.functions))]

    def record(self) -> model.Record:
        old = self.old
        owned = [self._owned(i) for i in range(len(old.frames))]
        statements = _numbered(range(len(old.statements)), lambda i: self.special[old.statements[i].function])
        kept_steps = [
            i for i, (frame, statement) in enumerate(old.steps) if owned[frame] and statement in statements
        ]
        steps = {i: n for n, i in enumerate(kept_steps)}
        pieces = [p for p in old.pieces if owned[p.frame]]
        frames = self._frames(pieces)
        loops = self._loops()
        return replace(
            old,
            sources=tuple(replace(s, text="", cuts=()) for s in old.sources),
            statements=tuple(old.statements[i] for i in statements),
            frames=tuple(self._frame(i, frames) for i in frames),
            steps=tuple((frames[old.steps[i][0]], statements[old.steps[i][1]]) for i in kept_steps),
            dropped=0,
            unreached=tuple(statements[i] for i in old.unreached if i in statements),
            pieces=tuple(self._piece(p, frames, steps) for p in pieces),
            values=tuple(self._value(v, frames, loops, steps) for v in old.values),
            loops=tuple(replace(old.loops[i], frame=frames[old.loops[i].frame]) for i in loops),
            series=tuple(replace(s, loop=loops[s.loop]) for s in old.series),
            claims=tuple(self._claim(c) for c in old.claims),
            snapshots=tuple(self.snapshots),
            seconds=_in_all(old),
        )

    def _owned(self, frame: int | None) -> bool:
        """Whether a section that needs a device is at work in this frame, itself or through a helper."""
        while frame is not None:
            if self.special[self.old.frames[frame].function]:
                return True
            frame = self.old.frames[frame].parent
        return False

    def _frames(self, pieces: list[model.Piece]) -> dict[int, int]:
        """Frames of sections, and those that something kept belongs to, with the frames around them."""
        old = self.old
        wanted = {
            i for i, f in enumerate(old.frames) if old.functions[f.function].kind not in ("helper", "class")
        }
        wanted |= {i for i in range(len(old.frames)) if self._owned(i)}
        wanted |= {v.frame for v in old.values} | {p.frame for p in pieces}
        wanted |= {old.loops[i].frame for i in self._loops()}
        for frame in sorted(wanted, reverse=True):
            parent = old.frames[frame].parent
            while parent is not None and parent not in wanted:
                wanted.add(parent)
                parent = old.frames[parent].parent
        return _numbered(sorted(wanted), lambda _: True)

    def _frame(self, frame: int, frames: dict[int, int]) -> model.Frame:
        old = self.old.frames[frame]
        return replace(old, parent=None if old.parent is None else frames[old.parent])

    def _loops(self) -> dict[int, int]:
        used = {v.loop for v in self.old.values} | {s.loop for s in self.old.series}
        return _numbered(range(len(self.old.loops)), lambda i: i in used)

    def _piece(self, piece: model.Piece, frames: dict[int, int], steps: dict[int, int]) -> model.Piece:
        answer = self._snapshot(piece.answer)
        return replace(piece, frame=frames[piece.frame], step=steps.get(piece.step, 0), answer=answer)

    def _value(
        self, value: model.Value, frames: dict[int, int], loops: dict[int, int], steps: dict[int, int]
    ) -> model.Value:
        return replace(
            value,
            step=steps.get(value.step, 0),
            frame=frames[value.frame],
            loop=None if value.loop is None else loops[value.loop],
            value=self._snapshot(value.value),
        )

    def _claim(self, claim: model.Claim) -> model.Claim:
        operands = tuple(replace(o, value=self._snapshot(o.value)) for o in claim.operands)
        return replace(claim, operands=operands)

    def _snapshot(self, index: int | None) -> int | None:
        if index is None:
            return None
        self.snapshots.append(self.old.snapshots[index])
        return len(self.snapshots) - 1


def _numbered(indices: range | list[int], wanted: Callable[[int], bool]) -> dict[int, int]:
    """The wanted of some indices, in their order, each with its new number."""
    return {old: new for new, old in enumerate(i for i in indices if wanted(i))}


def _in_all(record: model.Record) -> dict[str, float]:
    """How long the whole lecture took, in whole seconds: finer, a file would change when no value does."""
    seconds = round(record.taken() or 0)
    return {"main": float(seconds)} if seconds else {}


def _requires(record: model.Record, function: int | None) -> bool:
    """Whether this section, or a part above it, needs a device."""
    while function is not None:
        if record.functions[function].requires:
            return True
        function = record.functions[function].parent
    return False
