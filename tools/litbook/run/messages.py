"""Processes of ours that talk over a pipe, in pickles that each follow their length; and their end."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
from collections.abc import Iterator
from typing import Any

HEAD = struct.Struct("<Q")  # the length of a pickle


def packed(message: object) -> bytes:
    """The message as it travels."""
    content = pickle.dumps(message, protocol=5)
    return HEAD.pack(len(content)) + content


def send(to: int, content: bytes) -> None:
    """Write all of it to the pipe `to`; nothing where nobody listens any more."""
    view = memoryview(content)
    with contextlib.suppress(BrokenPipeError):
        while view:
            view = view[os.write(to, view) :]


class Inbox:
    """Bytes as they arrive -> messages."""

    def __init__(self) -> None:
        self.held = bytearray()

    def take(self, arrived: bytes) -> Iterator[Any]:
        """The messages that are complete now."""
        self.held += arrived
        while len(self.held) >= HEAD.size:
            (length,) = HEAD.unpack_from(self.held)
            end = HEAD.size + length
            if len(self.held) < end:
                return
            content = bytes(self.held[HEAD.size : end])
            del self.held[:end]
            yield pickle.loads(content)


def end(pid: int) -> int:
    """Kill a child that leads its own group, and whatever it has started there; its exit status."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):  # it may not lead its group yet
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]
