"""Sections on many ranks: PyTorch's elastic launcher starts processes, and each of them is a run.

In goes how many, and what a run is asked for; out comes what each rank left, its record or how it ended. Who
merges these is `record.ranks`. The process that launches is a fresh one: it has imported what the ranks need,
has not met a GPU, runs nothing of the lecture, and is ended with all its ranks by whoever began it.
"""

from __future__ import annotations

import ast
import contextlib
import faulthandler
import importlib
import json
import logging
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from litbook.errors import LitbookError
from litbook.lecture import parse, siblings
from litbook.lecture.model import Lecture
from litbook.record import model
from litbook.record.device_kinds import needs
from litbook.record.ranks import WITH_OTHERS
from litbook.run import child, descriptors, mailbox, run

GRACE = 12.0  # seconds after that in which every rank has ended itself
MEMORY = 100 * 2**20  # bytes of main memory that a rank takes at least, beside what it shares
STACK = "stack"  # a rank's file: where it was when it was ended
ENDED = "ended"  # a launch's file: what ended its ranks
RankResult = dict[str, Any]
"""What one rank left, as JSON: `record` or `answer`, and `late`; else `message`, `path` and `line`."""


class LaunchInterrupted(LitbookError):
    """Ctrl-C, while ranks ran."""

    slug = "interrupted"
    exit_status = 130


def launch(
    owner: mailbox.Mailbox, *, ranks: int, asked: dict[str, Any]
) -> list[tuple[list[str], list[RankResult]]]:
    """Run the sections on so many ranks, all of them in one launch; what each rank left, for each launch.

    Ranks may be asked for something else than a record of these sections, by a `function` and what it is
    `given`. Where a rank is lost, what it was in is taken out, and the others are launched again.
    """
    lecture = parse.read_usable(Path(asked["path"]), asked["sections"])
    if not prepare(Path(asked["path"]), lecture, ranks):
        return []
    available = re.search(r"MemAvailable:\s*(\d+) kB", _text(Path("/proc/meminfo")))
    if available and int(available[1]) * 1024 < ranks * MEMORY:
        sizes = f"{ranks} ranks take at least {ranks * MEMORY / 2**30:.1f} GiB of memory"
        free = f"{int(available[1]) / 2**20:.1f} GiB are free"
        message = f"{sizes}, and {free}: ask for fewer ranks, or end something else"
        return [(asked["sections"], [{"message": message, "path": "", "line": 0}] * ranks)]
    keys, launches = list(asked["sections"]), list[tuple[list[str], list[RankResult]]]()
    while keys:
        folder = Path(owner.folder, str(len(launches)))
        try:
            again = {**asked, "sections": keys}
            if "function" in asked:
                again["given"] = {**asked["given"], "sections": keys}
            several = launch_once(folder, owner.key, ranks, again, lecture)
        except KeyboardInterrupt:
            places = {mailbox.read_progress(folder / str(rank)) for rank in range(ranks)}
            raise LaunchInterrupted(f"interrupted on {ranks} ranks, {' and '.join(sorted(places))}") from None
        # The first section in which a rank was lost: who waited for it may have come further.
        lost = (rank for rank, one in enumerate(several) if "message" in one)
        at = {_section(folder / str(rank), lecture) for rank in lost}
        done = [key for key in keys if key in at][:1] or keys
        launches.append((done, several))
        keys = [key for key in keys if key not in done]
    return launches


def prepare(path: Path, lecture: Lecture, ranks: int) -> bool:
    """Make this process one of which so many ranks can be forked; False where torch cannot start any."""
    os.environ["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // ranks))
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # or asking for a GPU would forbid it to every fork
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    logging.disable(logging.ERROR)  # the launcher's: what it has to say stands in what it raises
    return _preload(path, lecture)


def launch_once(
    folder: Path, key: str, ranks: int, asked: dict[str, Any], lecture: Lecture
) -> list[RankResult]:
    """One launch, and what each rank left of it in the folder."""
    ended = _run_launch(folder, key, ranks, asked)
    for rank in range(ranks):
        descriptors.pass_on_rest(folder / str(rank))
    return [_read_rank(folder / str(rank), key, ended.get(rank), lecture) for rank in range(ranks)]


def _run_launch(folder: Path, key: str, ranks: int, asked: dict[str, Any]) -> dict[int, int]:
    """One launch. Of ranks that were ended from outside, or ended themselves: rank -> exit status.

    The launcher has a process of its own, a fork: whatever it leaves behind when a rank is lost, threads and
    locks, is in no later launch, and ending it ends all its ranks.
    """
    folder.mkdir()
    pid = os.fork()
    if not pid:
        try:
            child.end_with_parent()
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked hears it, and ends us
            ended = _elastic(folder, key, ranks, asked)
            (folder / ENDED).write_text(json.dumps(ended), encoding="ascii")
        finally:
            os._exit(0)
    try:
        os.waitpid(pid, 0)
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return {int(rank): status for rank, status in json.loads(_text(folder / ENDED) or "{}").items()}


def _elastic(folder: Path, key: str, ranks: int, asked: dict[str, Any]) -> dict[int, int]:
    """The launcher at work: it forks the ranks, and ends all where one ends without a record."""
    from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # Who waits in native code is ended soon: not every torch can be told so.
    later: dict[str, Any] = {"shutdown_timeout": 3}
    later = {name: value for name, value in later.items() if name in LaunchConfig.__dataclass_fields__}
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=key[:16],
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # a port that is free
        local_addr="127.0.0.1",
        start_method="fork",
        max_restarts=0,
        monitor_interval=0.05,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
        **later,
    )
    until, missing = time.monotonic() + asked["timeout"] + mailbox.grace(GRACE), 0

    def look(*_: object) -> None:
        """A rank that ends with status 0 without a word keeps the launcher waiting, and so may a bug."""
        nonlocal missing
        alive, begun = multiprocessing.active_children(), len([*folder.glob(f"*/{STACK}")])
        missing = missing + 1 if len(alive) < ranks == begun else 0
        if missing > 4 or time.monotonic() > until:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for process in alive:
                process.terminate()  # each says where it was
            time.sleep(1)
            os._exit(0)  # and who is left ends with us

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    try:
        elastic_launch(config, _rank)(str(folder), key, asked)
    except ChildFailedError as error:
        return {rank: failure.exitcode for rank, failure in error.failures.items()}
    return {}


def _preload(path: Path, lecture: Lecture) -> bool:
    """Import once what the lecture imports of large libraries, and read it: every rank then has that.

    False where there is no torch, or one without `torch.distributed`.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # read when it is imported
    names = {"torch.distributed"}
    for file in [*lecture.files, *siblings.modules(lecture, path.parent)]:
        for node in ast.walk(file.tree):
            match node:
                case ast.Import(aliases):
                    names.update(alias.name for alias in aliases)
                case ast.ImportFrom(module=str(module), level=0):
                    names.add(module)
    if any(name.startswith("torch.distributed.") for name in names):
        names.add("torch._dynamo")  # what the first functional collective would import in every rank
    for name in sorted(names):
        if name.partition(".")[0] in model.LIBRARIES:
            with contextlib.suppress(ImportError), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)  # what is missing the lecture's own import will say
    torch = sys.modules.get("torch")
    with contextlib.suppress(LitbookError):  # what is wrong with the text each rank will say
        run.read_ahead(path)
    return bool(torch and torch.distributed.is_available())


# ---------------------------------------------------------------------------- one rank


def _rank(folder: str, key: str, asked: dict[str, Any]) -> None:
    """All of the life of one rank. Ended from outside, it says where it was; its failure ends the others."""
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM"):
        signal.signal(signal.Signals[name], signal.SIG_DFL)  # the launcher's handlers are not ours
    logging.disable(logging.NOTSET)
    place = Path(folder, os.environ["RANK"])
    (place / "tmp").mkdir(parents=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place / "tmp")
    stack = open(place / STACK, "w")  # noqa: PTH123, SIM115  until the end
    faulthandler.enable(stack, all_threads=True)  # one of gloo may abort: who waits has a line
    faulthandler.register(signal.SIGTERM, stack, all_threads=False, chain=True)  # also within native code
    owner = mailbox.Mailbox(str(place), key)
    child.carry_out(owner, asked)
    faulthandler.unregister(signal.SIGTERM)
    faulthandler.disable()
    if not (place / mailbox.LEFT).is_file() or mailbox.read_result(place, key)[0] not in ("record", "answer"):
        sys.exit(1)  # the others wait for nothing


def _read_rank(folder: Path, key: str, status: int | None, lecture: Lecture) -> RankResult:
    """What a rank left: its record, or how it ended and the innermost line of the lecture that it was at."""
    kind, content = mailbox.read_result(folder, key)
    if kind in ("record", "answer"):
        return {kind: content, "late": mailbox.read_late(folder)}
    where, stack = mailbox.read_progress(folder), _text(folder / STACK)
    paths = {file.filename: file.path for file in lecture.files}
    if kind == "trouble":
        message = json.loads(content)["message"]
        named = ((path, re.findall(re.escape(path) + r":(\d+)", message)) for path in paths.values())
        lines = [(path, int(number)) for path, numbers in named for number in numbers]
        return {"message": message} | _place(lines)
    frames = re.findall(r'File "(.*?)", line (\d+)', stack)
    lines = [(paths[name], int(line)) for name, line in frames if name in paths]
    if stack and status in (None, -signal.SIGTERM):
        at = "here" if lines else f"{where}, at its end"
        return {"message": f"the rank waited {at}, and {WITH_OTHERS}"} | _place(lines)
    how = "ended without a word" if status is None else mailbox.describe_exit(status)
    return {"message": f"the process of the rank {how}, {where}"} | _place(lines)


def _place(lines: list[tuple[str, int]]) -> RankResult:
    path, line = lines[0] if lines else ("", 0)
    return {"path": path, "line": line}


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _section(folder: Path, lecture: Lecture) -> str:
    """The key of the section that a rank was in; "" where that is not known."""
    name = _text(folder / mailbox.AT)
    numbers = [i for i in lecture.order if lecture.functions[i].name == name]
    return lecture.key(numbers[0]) if len(numbers) == 1 else ""


# ---------------------------------------------------------------------------- ranks that others started


def run_as_rank(owner: mailbox.Mailbox, *, asked: dict[str, Any]) -> list[tuple[list[str], list[RankResult]]]:
    """One rank of a world that torchrun, Slurm or the like has started: run its sections as this rank.

    On rank 0 what `launch` returns of one launch, gathered through a group of all ranks, which need no file
    system in common; on the others nothing.
    """
    from litbook.run.ranks import groups

    path, world = Path(asked["path"]), int(os.environ["WORLD_SIZE"])
    lecture = parse.read_usable(path, asked["sections"])
    _preload(path, lecture)
    wanted = {lecture.section(name) for name in asked["sections"]}
    sections = ((i, lecture.functions[i]) for i in lecture.order if lecture.functions[i].kind == "section")
    sized = ((i, spec.parent) for i, spec in sections if needs(spec.requires).ranks == world)
    keys = [lecture.key(i) for i, parent in sized if not wanted or wanted & {i, parent}]
    if not keys:
        return []
    groups.store()  # without the others none of these runs
    own = mailbox.Mailbox(str(Path(owner.folder, "rank")), owner.key)
    Path(own.folder).mkdir()
    child.carry_out(own, {**asked, "sections": keys, "ranks": world})
    every = groups.gather_to_first(_read_rank(Path(own.folder), owner.key, None, lecture))
    return [(keys, every)] if every else []
