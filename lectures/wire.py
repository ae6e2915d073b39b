"""What the sockets of this rank have carried, as the kernel counts it: bytes written to each other rank.

gloo, the backend of `torch.distributed` for processors, has one TCP connection for each pair of ranks in a group.
`TCP_INFO` says how many bytes the other side has acknowledged, `TIOCOUTQ` how many still wait. Their sum is what was
written, however busy the machine is, and without what TCP had to send twice. No formula goes into it, and nothing that
PyTorch says. Only Linux counts like this.
"""

import fcntl
import gc
import os
import socket
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist

HEADER = 48  # bytes that gloo writes before each message, and in return for it

BYTES_ACKED = 120  # where `tcpi_bytes_acked` begins in `struct tcp_info` of linux/tcp.h
Ports = tuple[int, int]  # of a connection: this side's, the other's


def from_all_ranks(value: Any) -> list[Any]:  # @stepover
    """Gathers `value` from all ranks: one list, in the order of ranks. All ranks have to call it."""
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def connections() -> Iterator[socket.socket]:  # @stepover
    """The open connections of this process, in turn. TCP is the protocol that carries the bytes."""
    for name in next(os.walk("/proc/self/fd"))[2]:
        try:
            if Path("/proc/self/fd", name).readlink().name.startswith(
                "socket:"
            ):
                with socket.socket(fileno=os.dup(int(name))) as one:
                    internet = one.family in (socket.AF_INET, socket.AF_INET6)
                    if one.type == socket.SOCK_STREAM and internet:
                        one.getpeername()  # one that only listens has no peer
                        yield one
        except OSError:  # it listens, or was closed while we looked
            continue


def acknowledged_by(one: socket.socket) -> int:  # @stepover
    """How many bytes sent over a connection have arrived, as the other side has confirmed."""
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    count: int = struct.unpack_from("Q", info, BYTES_ACKED)[0]
    return count


def written() -> dict[Ports, int]:  # @stepover
    """How many bytes this process has written to each of its connections so far."""
    counts = {}
    for one in connections():
        acknowledged, waiting = -1, 0
        # What is acknowledged between two readings would be in neither.
        while acknowledged != (acknowledged := acknowledged_by(one)):
            queue = fcntl.ioctl(one, termios.TIOCOUTQ, bytes(4))
            waiting = struct.unpack("i", queue)[0]
        ports = one.getsockname()[1], one.getpeername()[1]
        counts[ports] = acknowledged + waiting
    return counts


class Wire:
    """Counts the bytes that this rank sends inside a `with` block: `to[r]` to rank r, `sent` in all.

    All ranks enter and leave it together. A group of only some ranks has to have talked once before.
    """

    def __init__(self) -> None:  # @stepover
        dist.all_reduce(torch.ones(1))  # from here on there are connections
        ends = from_all_ranks([*written()])
        every = [ports for rank in ends for ports in rank]
        # Each end of a connection belongs to one rank, unless all ranks have
        # inherited it from the process that launched them.
        self.rank_of = {
            (there, here): rank
            for rank, its in enumerate(ends)
            for here, there in its
            if every.count((here, there)) == 1 == every.count((there, here))
        }
        self.to = [0] * dist.get_world_size()

    def __enter__(self) -> Self:  # @stepover
        gc.collect()  # a group that nobody holds closes its connections now
        dist.barrier()
        now = written()
        self.before = {at: now[at] for at in now if at in self.rank_of}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # @stepover
        if kind is not None:
            return
        now = written()
        dist.barrier()  # nobody closes a connection before everybody has read
        for ports, count in self.before.items():
            self.to[self.rank_of[ports]] += now[ports] - count

    @property
    def sent(self) -> int:  # @stepover
        """Bytes that this rank wrote to all others."""
        return sum(self.to)
