"""A device whose memory ran out: what to say of it, and how to give the memory back. Knows no lectures."""

from __future__ import annotations

import gc

from litbook.errors import LitbookError
from litbook.record.device_kinds import devices

LONGEST = 300  # characters of the library's own words


class OutOfMemoryError(LitbookError):
    """A section asked for more memory than there was."""

    slug = "out-of-memory"
    exit_status = 1


def ran_out(error: BaseException) -> OutOfMemoryError | None:
    """`error` with its way out, if it says that memory ran out, on a GPU or in the machine; else None.

    PyTorch has a type for a GPU's memory, and reports the machine's as a `RuntimeError`.
    """
    message = " ".join(str(error).split())
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if not full and not (isinstance(error, RuntimeError) and "can't allocate memory" in message):
        return None
    words = f"{message[:LONGEST]}{'…' if len(message) > LONGEST else ''}" or type(error).__name__
    return OutOfMemoryError(
        f"out of memory: {words}\n"
        "    this section ends here, its memory is given back, and the others run; close what else uses the "
        "device, or let the section's sizes follow torch.cuda.mem_get_info()"
    ).with_traceback(error.__traceback__)


def give_back() -> None:
    """Free what nothing refers to any more, on the device too."""
    gc.collect()
    for kind in devices():
        if kind.module:
            kind.module.empty_cache()
