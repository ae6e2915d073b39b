"""Recordings: the files beside the lectures that say what every value was, one per kind of device.

A recording is a record without what pages never take from it: see `trim`. It is written whole or not at
all, and read with distrust: whatever is wrong with it is a `RecordError` that names the file and the way out.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from litbook.errors import LitbookError, RecordError
from litbook.files import replace_whole, way_out
from litbook.project import RECORDINGS, recording_of
from litbook.record import compare, consistency, encoding, model, ranks
from litbook.record.device_kinds import needs

PLAIN = re.compile("[a-z0-9-]+")  # what a device is called in a file's name, and in addresses of pages


def read(file: Path, lecture: str) -> model.Record:
    """The recording in `file`, which is to be one of `lecture` on the device that its name says.

    Raises `RecordError` for a file that is cut short, was damaged by hand, comes from a newer litbook, or is
    a recording of something else.
    """
    shown = _short(file)
    try:
        with contextlib.suppress(OSError, UnicodeDecodeError):  # reading it says so
            if consistency.merge_marks(text := encoding.content(file).decode()):
                raise RecordError(f"{shown} {consistency.MERGE}")
        record = encoding.read(file, shown)
        consistency.check(text, record, shown)
    except RecordError as error:
        raise _refusal(str(error)) from None
    slug = record.environment.device.slug or record.environment.device.kind
    if record.lecture != lecture:
        raise _refusal(f"{shown} is a recording of another lecture: {record.lecture[:80]!r}")
    if file.name != f"{lecture}.{slug}.json":
        raise _refusal(f"{shown} is a recording of another device: {slug[:80]!r}")
    if not PLAIN.fullmatch(slug):
        what = "has a device whose name is not of small letters, digits and -"
        raise _refusal(f"{shown} {what}: {slug[:80]!r}")
    try:
        consistency.check_seals(record, shown)
    except RecordError as error:
        raise _refusal(str(error)) from None
    return record


def _refusal(what: str) -> RecordError:
    """What is wrong with the file, in one line of bounded length: it may repeat what the file holds."""
    what, _, way_out = what.partition("\n")
    update = "update litbook, " if "update litbook" in way_out else ""
    if consistency.MERGE in what:
        update = "take one side, with `git checkout --ours` or `--theirs`, and record the lecture again: "
        return RecordError(f"{what[:300]}\n    {update}what differs from that side is told")
    update += "take the file back from git, or run the lecture with --approve, which replaces it"
    return RecordError(f"{what[:300]}{'…' if len(what) > 300 else ''}\n    {update}")


def _short(file: Path) -> str:
    """`lectures/recordings/lecture_01.cpu.json`: from the folder above the lecture's."""
    return "/".join(file.parts[-3:])


def as_of(recording: model.Record, depends: Mapping[str, str]) -> model.Record:
    """What a recording says today: of a section that something has changed since, no claim has run.

    `depends` has for each section, by its key, the digest of all that its claims depend on today.
    """
    sections = []
    for section in recording.sections:
        claims = list[model.Claim]()
        for claim in section.claims if section.depends != depends.get(section.key) else ():
            sides = tuple(model.Operand(side.text, None, side.address) for side in claim.operands)
            claims.append(replace(claim, verdict="needs-device", count=0, operands=sides, why=""))
        sections.append(replace(section, claims=tuple(claims)) if claims else section)
    return replace(recording, sections=tuple(sections))


class _Duration(msgspec.Struct):
    seconds: float = 0.0


def recorded_seconds(lecture: Path) -> float:
    """Seconds that the lecture took when it was recorded, on its slowest device; 0 where it was not."""
    files = (lecture.parent / RECORDINGS).glob(f"{lecture.stem}.*.json")
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):  # `read` says what is wrong
        return max(msgspec.json.decode(file.read_bytes(), type=_Duration).seconds for file in files)
    return 0.0


# ---------------------------------------------------------------------------- a run and its recording


class NotRecorded(LitbookError):
    """The run is not recorded, because of what it found."""

    slug = "not-recorded"
    exit_status = 1


@dataclass(frozen=True)
class Baseline:
    """What a run is compared with: the recording of the same kind of device, as far as there is one.

    `unusable` says what is wrong with a file that is there and cannot be read.
    """

    file: Path
    run: model.Record
    recording: model.Record | None = None
    all_differences: Sequence[compare.Difference] = ()
    unusable: LitbookError | None = None

    @classmethod
    def for_run(cls, lecture: Path, run: model.Record) -> Baseline:
        """The baseline of a run of the lecture at that path."""
        device = run.environment.device
        file = recording_of(lecture, device.slug or device.kind)
        if not os.path.lexists(file):
            return cls(file, run)
        try:
            recording = read(file, run.lecture)
            return cls(file, run, recording, compare.compare(run, recording).differences)
        except LitbookError as error:
            try:  # one of the release before still says what values were
                recording = encoding.read(file, _short(file), schemas=model.COMPARABLE)
                differences = compare.compare(run, recording).differences
                return cls(file, run, None, differences, unusable=error)
            except LitbookError:
                return cls(file, run, unusable=error)

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return _short(self.file)

    @property
    def differences(self) -> list[compare.Difference]:
        """What differs. That a section's text is new is no difference while sections are run alone."""
        return [d for d in self.all_differences if not (self.run.asked and d.kind in ("text", "section"))]

    def keep(self, *, approve: bool) -> str:
        """Write the run as the recording, and say so. Raises `LitbookError` where it may not, or cannot, be.

        Who does not `approve` keeps a recording that says something else.
        """
        if any(self.run.errors()) or self.run.count()["fails"]:
            way_out = "a recording is of a run in which every claim holds"
            raise NotRecorded(f"not recorded: a claim fails or the lecture raised\n    {way_out}")
        if not approve and self.unusable:
            raise self.unusable
        if not approve and self.differences:
            way_out = "--approve accepts what differs"
            raise NotRecorded(f"not recorded: {self.name} says something else\n    {way_out}")
        more = bool(self.recording and self.recording.asked and not self.run.asked)  # than some sections
        if self.recording and not self.all_differences and not more:
            same = "no value, claim or section differs (delete it to record afresh)"
            return f"{self.name} stays as it is: {same}"
        if self.run.asked:
            kept = renew(self.recording, self.run)
        else:
            kept = _keep_same(self.recording, self.run, self.all_differences)
        write(self.file, kept)
        return f"recorded in {self.name}"


# ---------------------------------------------------------------------------- writing


def write(file: Path, record: model.Record) -> None:
    """Write the recording of `record`: afterwards `file` is the new one, or whole and as it was."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(file, dumps(record).encode())
    except OSError as error:
        raise RecordError(f"{_short(file)}: {error.strerror}; nothing was written{way_out(error)}") from None


def renew(recording: model.Record | None, record: model.Record) -> model.Record:
    """The recording with the sections that `record` ran, each with commit and date of its run.

    Without a recording it is one of these sections alone, whose `asked` names them. Raises `RecordError`
    where both need a definition that has changed.
    """
    if recording is None:
        keep = {section.key for section in record.sections if record.was_asked(section)}
        for section in reversed(record.sections):  # what names another one stands with it
            keep |= {section.parent} if section.key in keep else set()
        return replace(record, sections=tuple(section for section in record.sections if section.key in keep))
    # each section as it ran now, or as it was recorded, at its place in today's text
    new, kept = dict[str, model.Section](), dict[str, model.Section]()
    for section in record.sections:
        if record.was_asked(section):
            new[section.key] = replace(section, run=record.environment)
        elif was := recording.by_key.get(section.key):
            kept[section.key] = replace(was, file=section.file, first=section.first)
    fresh, stale = ({key for section in half.values() for key in section.calls} for half in (new, kept))
    for key in sorted(fresh & stale):
        now = record.definition_of[key]
        if recording.definition_of[key].digest != now.digest:
            what = f"{now.name} has changed, and sections that are not recorded now use it"
            raise RecordError(f"{what}\n    record the whole lecture: leave the sections out")
    definitions = recording.definition_of | {key: record.definition_of[key] for key in fresh}
    asserts = [*(check for check in recording.asserts if check.key not in new), *record.asserts]
    return replace(
        record,
        environment=recording.environment,
        definitions=tuple(definitions.values()),
        sections=tuple((new | kept)[section.key] for section in record.sections if section.key in new | kept),
        seconds=recording.seconds,
        asked=recording.asked and tuple(dict.fromkeys((*recording.asked, *record.asked))),
        asserts=tuple(dict.fromkeys(asserts)),
    )


def _keep_same(
    recording: model.Record | None, run: model.Record, differences: Sequence[compare.Difference]
) -> model.Record:
    """The record of a whole run; a section of which nothing differs stays as it was recorded, and where.

    So the file changes where a section does, and two branches that record different sections merge.
    """
    changed = {difference.section for difference in differences}
    if recording is None or recording.asked or recording.title != run.title:
        return run
    paths, was_paths = ([source.path for source in record.sources] for record in (run, recording))
    sections, same = list[model.Section](), False
    for now in run.sections:
        was = recording.by_key.get(now.key)
        if was is None or now.key in changed or paths != was_paths or not _says_the_same(was, now):
            sections.append(replace(now, run=run.environment))
        else:
            same = True
            sections.append(was)
    if not same:
        return run
    definitions = list[model.Definition]()
    for definition in run.definitions:
        before = recording.definition_of.get(definition.key)
        alike = before and (before.digest, before.lines) == (definition.digest, definition.lines)
        # It was recorded without statements where no section needed them; now one may.
        kept = replace(before, statements=definition.statements) if before and alike else definition
        definitions.append(kept)
    near = recording.seconds <= 2 * run.seconds + 2 and run.seconds <= 2 * recording.seconds + 2
    return replace(
        run,
        environment=recording.environment,
        definitions=tuple(definitions),
        sections=tuple(sections),
        seconds=recording.seconds if near else run.seconds,
    )


def _says_the_same(was: model.Section, now: model.Section) -> bool:
    """Whether two entries without differences are of one text, and tell readers the same."""
    if (was.digest, was.depends, was.lines, was.heading) != (now.digest, now.depends, now.lines, now.heading):
        return False
    return not _is_whole(now) or [p.text for p in was.pieces] == [p.text for p in now.pieces]


def dumps(record: model.Record) -> str:
    """The recording of a run, as the text of its file."""
    return encoding.dumps(consistency.sealed(trim(record)))


# ---------------------------------------------------------------------------- what a recording holds


def trim(record: model.Record) -> model.Record:
    """The record without what a recording is never asked for, so that its file changes when a value does.

    What is left out: the lecture's text and its hash (git has them), the run's memory, the
    seconds of each section, and the statements, steps and pieces of sections that need no device: pages have
    their own. What was called, and with what, stays where a value came from it.
    """
    # definitions: what was called, and what whole sections define; with statements where they step in it
    whole = [section for section in record.sections if _is_whole(section)]  # pages elsewhere show all of it
    stepped = {key for section in whole for key in section.calls}
    named = {statement.target for section in whole for statement in section.statements}
    called = {key for section in record.sections for key in section.calls}
    kept = (definition for definition in record.definitions if definition.key in called | named)
    definitions = (each if each.key in stepped else replace(each, statements=()) for each in kept)
    return replace(
        record,
        sources=tuple(replace(source, sha256="", text="", cuts=()) for source in record.sources),
        definitions=tuple(definitions),
        sections=tuple(map(_trim_section, record.sections)),
        seconds=float(round(record.seconds)),  # finer, a file would change when no value does
        peak=0,
    )


def _is_whole(section: model.Section) -> bool:
    """Whether pages elsewhere may show all of a section: it needs a device, or time."""
    return needs(section.requires).device != ""


def _trim_section(section: model.Section) -> model.Section:
    """A section as a recording holds it; on each rank, where it ran on several."""
    if section.shares:
        return ranks.merge_entries([_trim_section(rank) for rank in ranks.ranks_of(section)])
    kept = replace(section, locals=(), wordings=(), full=False)
    if not _is_whole(section):  # without what pages have of their own
        kept = replace(
            kept,
            statements=(),
            frames=tuple(replace(frame, arguments=()) for frame in section.frames),
            steps=(),
            dropped=0,
            unreached=(),
            # A question is known by its text; its answer is compared.
            pieces=tuple(
                replace(piece, step=0, data="", why="", wrong=())
                for piece in section.pieces
                if piece.kind == "question"
            ),
            values=tuple(replace(value, step=0, reads=()) for value in section.values),
            snapshots=tuple(
                replace(shot, media="", form="") if isinstance(shot, model.Opaque) else shot
                for shot in section.snapshots
            ),
        )
    # Its snapshots, without those that only local names had.
    used = [value.value for value in kept.values] + [piece.answer for piece in kept.pieces]
    used += [side.value for claim in kept.claims for side in claim.operands]
    used += [argument for frame in kept.frames for _, argument in frame.arguments]
    places = {old: new for new, old in enumerate(sorted({number for number in used if number is not None}))}
    bare = ranks.renumber(kept, places, range(len(kept.calls) + 1))
    return replace(bare, snapshots=tuple(kept.snapshots[number] for number in places), seconds=0.0)
