"""The process group in which a section begins: of ranks that were started, or of simulated ones.

In goes the section, and of the environment what launchers set: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. It
is imported where a section needs a group, since it imports torch.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from litbook.errors import LitbookError
from litbook.record.device_kinds import devices
from litbook.record.ranks import NOT_HERE
from litbook.run.ranks.launcher_env import NEEDED, LauncherEnvError

# Seconds that a collective may take, and that a rank waits for the others at the end of a section.
PATIENCE = float(os.environ.get("LITBOOK_PATIENCE", "30"))
GATHERING = 600.0  # seconds that the ranks may be apart at their end
PROMPT = PATIENCE / 10  # seconds that it keeps its connections there: who still needs them waits in vain


class RankAbsent(LitbookError):
    """Not every rank came to a section."""

    slug = "absent"
    exit_status = 1


@contextlib.contextmanager
def group(section: str) -> Iterator[Callable[[], object]]:
    """The default process group while one section runs, and what leaves it early, so that nobody waits.

    At its end each rank waits for the others, through the store so that no collective is disturbed: no
    connection closes while somebody needs it.
    """

    def leave() -> None:
        if dist.is_initialized():
            dist.destroy_process_group()

    rank, world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    limit = timedelta(seconds=PATIENCE)
    met = dist.PrefixStore(section, store())  # type: ignore[attr-defined]
    # What a kind of device has, NCCL say, where every rank has one of its own; gloo for the rest.
    local, backend = int(os.environ.get("LOCAL_WORLD_SIZE", world)), "gloo"
    for kind in devices():
        if os.environ.get(kind.hidden_by) != "" and kind.count() >= local:
            kind.module.set_device(int(os.environ["LOCAL_RANK"]))
            backend = f"cpu:gloo,{kind.name}:{kind.backend}"
    try:
        dist.init_process_group(backend, store=met, rank=rank, world_size=world, timeout=limit)
        _wait_for_all(met, "begin", world, PATIENCE)  # none is done before all are connected
    except RuntimeError:  # torch's, that a store or a connection waits in vain
        raise RankAbsent(f"the others {NOT_HERE} within {PATIENCE:g} s") from None
    try:
        yield leave
    finally:
        _wait_for_all(met, "end", world, PROMPT)
        leave()
        _wait_for_all(met, "left", world, PATIENCE)


def _wait_for_all(store: Any, point: str, world: int, seconds: float) -> None:
    """Wait until all ranks have come to this point of a section, or so many seconds."""
    store.add(point, 1)
    until = time.monotonic() + seconds
    while int(store.add(point, 0)) < world and time.monotonic() < until:
        time.sleep(0.005)


def gather_to_first(one: Any) -> list[Any]:
    """What each rank has of something, in their order; on rank 0, and nothing on the others."""
    rank, world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    met = dist.PrefixStore("gathered", store())  # type: ignore[attr-defined]
    limit = timedelta(seconds=GATHERING)
    dist.init_process_group("gloo", store=met, rank=rank, world_size=world, timeout=limit)
    every = [None] * world if rank == 0 else None
    dist.gather_object(one, every)
    dist.destroy_process_group()
    return every or []


@functools.cache
def store() -> Any:
    """Where the ranks find each other: the launcher's, or where there is none, rank 0's.

    Raises `LauncherEnvError` where that is not there in time. Whoever else listens there may never answer,
    and torch waits for it without a limit: so a thread does.
    """
    rank, world, address, port = (os.environ[name] for name in NEEDED)
    own = rank == "0" and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    place, made = (address, int(port), int(world)), list[Any]()

    def meet() -> None:
        try:
            limit = timedelta(seconds=PATIENCE)
            made.append(dist.TCPStore(*place, is_master=own, timeout=limit))  # type: ignore[attr-defined]
        except RuntimeError as error:
            made.append(error)

    thread = threading.Thread(target=meet, daemon=True)
    thread.start()
    thread.join(PATIENCE + 2)
    if made and not isinstance(made[0], RuntimeError):
        return made[0]
    why = str(made[0]).partition("\n")[0] if made else f"nothing came from there within {PATIENCE:g} s"
    raise LauncherEnvError(
        f"rank {rank} of {world} did not meet the others at {address}:{port}: {why}\n"
        "    MASTER_ADDR and MASTER_PORT name the first rank's machine, and a port that is free there"
    )


@contextlib.contextmanager
def simulate_group(world: int) -> Iterator[Callable[[], object]]:
    """A process group of so many ranks that is this process alone, as rank 0; it sends nothing.

    Shapes, counts and bytes are as they would be; what the others would have sent is made up.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        yield bool  # nobody waits for it
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
