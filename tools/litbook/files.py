"""Writing files: one that others read or keep is afterwards the new one, or whole and as it was.

What keeps a file from being written (a book that is read-only, a full disk) ends with a sentence: the file,
why, and the way out.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from litbook.errors import LitbookError

ROOM = "make room there, and try again"
WAYS_OUT = {  # of what keeps a file from being written
    errno.EROFS: "make it writable, or work in a copy of the book",
    errno.EACCES: "make it writable, or work in a copy of the book",
    errno.EPERM: "make it writable, or work in a copy of the book",
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: "let files be larger (ulimit -f), and try again",
    errno.EISDIR: "a folder stands in its place: move it away",
    errno.ENOTDIR: "a file stands where a folder belongs: move it away",
    errno.EEXIST: "a file stands where a folder belongs: move it away",
}


class NotWritten(LitbookError):
    """A file that a command was to write cannot be written."""

    slug = "not-written"

    def __init__(self, file: Path | str, error: OSError) -> None:
        super().__init__(f"{file} cannot be written: {error.strerror}{way_out(error)}")


def way_out(error: OSError) -> str:
    """What helps against it, on a line of its own; "" where nobody knows."""
    way = WAYS_OUT.get(error.errno or 0, "")
    return f"\n    {way}" if way else ""


def write(file: Path, content: bytes) -> None:
    """Write a file that can be made again at any time, and the folders it is in. Raises `NotWritten`."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise NotWritten(file, error) from None


def replace_whole(file: Path, content: bytes) -> None:
    """`file` becomes `content`: a kill, a full disk or another writer leaves it whole, old or new.

    The bytes go into a file beside it, `.NAME.new`, and reach the disk before that takes the name. Raises
    `OSError` where that is not possible.
    """
    file = file.resolve()
    beside = file.with_name(f".{file.name}.new")
    held = False
    while not held:  # of two writers the second waits, and then finds that this file has its name
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        stream = open(handle, "wb")  # noqa: PTH123, SIM115  a descriptor, which the `with` below closes
        fcntl.flock(stream, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            held = os.path.samestat(os.fstat(handle), beside.stat())
        if not held:
            stream.close()
    with stream:
        try:
            os.ftruncate(handle, 0)  # a writer that was killed left something
            stream.write(content)
            stream.flush()
            os.fsync(handle)
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(handle, file.stat().st_mode & 0o777)
            beside.replace(file)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
