"""The table of what a section may need, and what its author wrote, `"cuda, ranks=2"`, read by that table.

In goes the text of a `@requires`; out comes a row of `KINDS` and how many ranks. Whoever runs a section, or
shows one, or asks torch about a device, asks the row. It imports no torch: a row looks up what is imported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from litbook.i18n import gettext_noop

PLATFORM = sys.platform  # the operating system here
MOST_RANKS = 64  # processes that a section may ask for
MOST_SIMULATED = 65_536


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """One row: what it is called, whether it is here, and, of a device, what torch and its driver call it."""

    name: str  # as `@requires`, `--device`, torch and a record's device have it
    words: str  # what stands behind "needs"
    words_of_ranks: str  # the same of `{ranks}`
    count: Callable[[], int]  # how many are here, as far as torch is imported
    on_request: bool = False  # it runs only where it is asked for by its name, and for a recording
    label: str = ""  # of a device alone: its name in sentences
    backend: str = "gloo"  # what its tensors are sent by, of torch.distributed
    hidden_by: str = ""  # the variable that says which devices a process sees; none where it is ""
    driver: tuple[str, ...] = ()  # a command that prints the driver's version
    casts: bool = False  # whether torch has `autocast` for it, a setting that is restored behind a section

    @property
    def is_device(self) -> bool:
        """Whether torch computes on it; else it is time, or a system."""
        return bool(self.label)

    @property
    def module(self) -> Any:
        """What torch has for such devices, `torch.cuda`; None where there is none of them.

        It has `get_device_properties`, `get_rng_state_all` and `set_rng_state_all`, as `torch.cuda` does.
        """
        return getattr(sys.modules["torch"], self.name) if self.is_device and self.count() else None


def _count_cuda() -> int:
    torch = sys.modules.get("torch")
    return int(torch.cuda.device_count()) if torch and torch.cuda.is_available() else 0


KINDS = {
    kind.name: kind
    for kind in (
        DeviceKind("", gettext_noop("another device"), "{ranks}", lambda: 1),
        DeviceKind(
            "cuda",
            gettext_noop("a GPU"),
            gettext_noop("{ranks} on GPUs"),
            _count_cuda,
            label="CUDA",
            backend="nccl",
            hidden_by="CUDA_VISIBLE_DEVICES",
            driver=("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
            casts=True,
        ),
        DeviceKind(
            "slow", gettext_noop("minutes"), gettext_noop("{ranks} and minutes"), lambda: 1, on_request=True
        ),
        DeviceKind(
            "linux", gettext_noop("Linux"), gettext_noop("{ranks} on Linux"), lambda: PLATFORM == "linux"
        ),
    )
}


def devices() -> Iterator[DeviceKind]:
    """The rows that torch computes on."""
    return (kind for kind in KINDS.values() if kind.is_device)


@dataclass(frozen=True, slots=True)
class Needs:
    """The name of a row ("" for this processor); how many ranks, real or simulated."""

    device: str = ""
    ranks: int = 0
    simulated: int = 0

    def __str__(self) -> str:
        many = f"ranks={self.ranks}" if self.ranks else f"simulated ranks={self.simulated}"
        return ", ".join(filter(None, [self.device, many if self.ranks or self.simulated else ""]))

    @property
    def kind(self) -> DeviceKind:
        """Its row."""
        return KINDS[self.device]

    @property
    def is_plain(self) -> bool:
        """Whether it runs on this system's processor, and takes no minutes."""
        return not self.kind.is_device and not self.waits(slow=False)

    def waits(self, *, slow: bool, count: int = 0) -> bool:
        """Whether a run leaves it out that sees `count` devices of the kind, and takes minutes if `slow`."""
        if self.kind.is_device:
            return count < max(1, self.ranks)
        return (self.kind.on_request and not slow) or not self.kind.count()

    def nested_in(self, above: Needs) -> Needs:
        """What is needed inside of what needs `above`: of a kind that is named at both places, its own."""
        many = self if self.ranks or self.simulated else above
        return Needs(self.device or above.device, many.ranks, many.simulated)


def needs(required: str | None) -> Needs:
    """What a text asks for. Raises `ValueError`, whose words name the text and, behind "; ", the way out."""
    if required is None:
        return Needs()
    match = re.fullmatch(r"(?:([^,]+), )?(simulated )?ranks=(.*)", required)
    device, simulated, number = match.groups("") if match else (required, "", "")
    if device not in KINDS or not required:
        forms = [*filter(None, KINDS), "ranks=4", "cuda, ranks=2", "simulated ranks=1024"]
        near = get_close_matches(required.lower(), forms, 1, 0.5)
        way_out = f"did you mean {near[0]!r}?" if near else "without the mark it runs on the processor"
        known = ", ".join(map(repr, forms[:-1]))
        raise ValueError(f"requires() knows {known} and {forms[-1]!r}, not {required!r}; {way_out}")
    if match is None:
        return Needs(device)
    most = MOST_SIMULATED if simulated else MOST_RANKS
    count = int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0
    if not 2 <= count <= most:
        more = "" if simulated else "; more are simulated: 'simulated ranks=1024'"
        raise ValueError(f"requires() takes from 2 to {most:,} {simulated}ranks, not {required!r}{more}")
    return Needs(device, 0 if simulated else count, count if simulated else 0)
