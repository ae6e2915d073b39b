"""One way to write a file that others read or keep: afterwards it is the new one, or whole and as it was."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


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
