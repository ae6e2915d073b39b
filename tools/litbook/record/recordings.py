"""Recordings: the files beside the lectures that say what every value was, one per kind of device.

A recording is a record without what pages never take from it: see `trimmed`. It is written whole or not at
all, and read with distrust: whatever is wrong with it is a `RecordError` that names the file and the way out.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from litbook.errors import RecordError
from litbook.record import encoding, model

FRESH = 60  # seconds for which an empty file may be one that another writer is about to lock
PLAIN = re.compile("[a-z0-9-]+")  # what a device is called in a file's name, and in addresses of pages


def read(file: Path, lecture: str) -> model.Record:
    """The recording in `file`, which is to be one of `lecture` on the device that its name says.

    Raises `RecordError` for a file that is cut short, was damaged by hand, comes from a newer litbook, or is
    a recording of something else.
    """
    shown = _shown(file)
    try:
        record = encoding.read(file, shown)
    except RecordError as error:
        raise _unusable(str(error)) from None
    device = record.environment.device
    if record.lecture != lecture:
        raise _unusable(f"{shown} is a recording of another lecture: {record.lecture[:80]!r}")
    if file.name != f"{lecture}.{device.slug or device.kind}.json":
        raise _unusable(f"{shown} is a recording of another device: {device.slug[:80]!r}")
    if not PLAIN.fullmatch(device.slug or device.kind):
        name = (device.slug or device.kind)[:80]
        raise _unusable(f"{shown} has a device whose name is not of small letters, digits and -: {name!r}")
    if record.asked:
        raise _unusable(f"{shown} is the record of some sections, not of the lecture")
    return record


def _unusable(what: str) -> RecordError:
    """What is wrong with the file, in one line of bounded length: it may repeat what the file holds."""
    what, _, way_out = what.partition("\n")
    update = "update litbook, " if "update litbook" in way_out else ""
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


def renewed(recording: model.Record | None, record: model.Record, name: str) -> model.Record:
    """The recording with the sections that `record` ran, each with commit and date of its run.

    Raises `RecordError` where there is no recording, and where both need a definition that has changed.
    """
    if recording is None:
        raise RecordError(
            f"{name} is not there yet\n    record the whole lecture first: leave the sections out"
        )
    sections = [_newer(recording.by_key.get(it.key), it, record) for it in record.sections]
    kept = [it for it in sections if it is not None]
    fresh = {key for it in kept if it.run == record.environment for key in it.calls}
    stale = {key for it in kept if it.run != record.environment for key in it.calls}
    for key in sorted(fresh & stale):
        was, now = recording.definition_of[key], record.definition_of[key]
        if was.digest != now.digest:
            raise RecordError(
                f"{now.name} has changed, and sections that are not recorded now use it\n"
                "    record the whole lecture: leave the sections out"
            )
    used = {**recording.definition_of, **{key: record.definition_of[key] for key in fresh}}
    mine = {it.key for it in kept if it.run == record.environment}
    return replace(
        record,
        environment=recording.environment,
        definitions=tuple(used.values()),
        sections=tuple(kept),
        seconds=recording.seconds,
        asked=(),
        asserts=tuple(
            dict.fromkeys([*(it for it in recording.asserts if it.key not in mine), *record.asserts])
        ),
    )


def _newer(was: model.Section | None, now: model.Section, record: model.Record) -> model.Section | None:
    """A section as it ran now, or as it was recorded, at its place in today's text; None if it never was."""
    if record.was_asked(now):
        return replace(now, run=record.environment)
    return was and replace(was, file=now.file, first=now.first)


def dumps(record: model.Record) -> str:
    """The recording of a run, as the text of its file."""
    return encoding.dumps(trimmed(record))


def replace_whole(file: Path, content: bytes) -> None:
    """`file` becomes `content`: a kill, a full disk or another writer leaves it whole, old or new.

    The bytes go into a file of their own in the same folder and reach the disk before its name changes.
    """
    file = file.resolve()
    _sweep(file)
    handle, beside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123  a descriptor, not a path
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            os.chmod(beside, _mode(file))  # noqa: PTH101  mkstemp made it private
            os.replace(beside, file)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise


def _sweep(file: Path) -> None:
    """Remove what writers of `file` left beside it that were killed: nobody holds its lock any more."""
    for left in file.parent.glob(f".{glob.escape(file.name)}.*"):
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDONLY | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                about = os.fstat(handle)
                if about.st_size or time.time() - about.st_mtime > FRESH:
                    left.unlink()
            finally:
                os.close(handle)


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

    What is left out: the lecture's text (git has it, and `sha256` says which it was), the run's memory, the
    seconds of each section, and the statements, steps and pieces of sections that need no device: pages have
    their own. What was called, and with what, stays where a value came from it.
    """
    return replace(
        record,
        sources=tuple(replace(source, text="", cuts=()) for source in record.sources),
        definitions=_definitions(record),
        sections=tuple(_kept(section) for section in record.sections),
        seconds=float(round(record.seconds)),  # finer, a file would change when no value does
        peak=0,
    )


def _definitions(record: model.Record) -> tuple[model.Definition, ...]:
    """What was called, and what whole sections define; with its statements where they step in it."""
    whole = [section for section in record.sections if section.requires]
    stepped = {key for section in whole for key in section.calls}
    named = {statement.target for section in whole for statement in section.statements}
    called = {key for section in record.sections for key in section.calls}
    return tuple(
        it if it.key in stepped else replace(it, statements=())
        for it in record.definitions
        if it.key in called | named | stepped
    )


def _kept(section: model.Section) -> model.Section:
    if section.requires:  # pages elsewhere show all of it
        return replace(section, seconds=0.0)
    return replace(
        section,
        seconds=0.0,
        statements=(),
        frames=tuple(replace(frame, arguments=()) for frame in section.frames),
        steps=(),
        dropped=0,
        unreached=(),
        pieces=tuple(replace(it, step=0) for it in section.pieces if it.kind == "question"),
        values=tuple(replace(value, step=0, reads=()) for value in section.values),
        snapshots=tuple(
            replace(it, media="", form="") if isinstance(it, model.Opaque) else it for it in section.snapshots
        ),
    )
