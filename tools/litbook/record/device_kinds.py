"""What a section requires, as its author wrote it, `"cuda, ranks=2"` -> a device, and how many ranks.

It is asked of the text before anything runs, by the word `requires`, and by whoever runs a section or shows
one. It knows no torch.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass

PLATFORM = sys.platform  # the operating system here
KINDS = ("cuda", "slow")
MOST_RANKS = 64  # processes that a section may ask for
MOST_SIMULATED = 65_536


@dataclass(frozen=True, slots=True)
class Needs:
    """A device ("cuda"), time ("slow") or a system ("linux"); how many ranks, real or simulated."""

    device: str = ""
    ranks: int = 0
    simulated: int = 0

    def __str__(self) -> str:
        many = f"ranks={self.ranks}" if self.ranks else f"simulated ranks={self.simulated}"
        return ", ".join(filter(None, [self.device, many if self.ranks or self.simulated else ""]))

    @property
    def other_system(self) -> bool:
        """Whether it needs another operating system than this one."""
        return self.device == "linux" and PLATFORM != "linux"

    @property
    def is_plain(self) -> bool:
        """Whether it runs on this system's processor, and takes no minutes."""
        return self.device in ("", "linux") and not self.other_system

    def within(self, above: Needs) -> Needs:
        """What is needed inside of what needs `above`: of a kind that is named at both places, its own."""
        many = self if self.ranks or self.simulated else above
        return Needs(self.device or above.device, many.ranks, many.simulated)


@functools.cache
def needs(required: str | None) -> Needs:
    """What a text asks for. Raises `ValueError`, whose words name the text and the way out."""
    if required is None or required in KINDS:
        return Needs(required or "")
    match = re.fullmatch(r"(?:(cuda|slow|linux), )?(simulated )?ranks=(.*)", required)
    if match is None:
        kinds = "'cuda', 'slow', 'ranks=4', 'cuda, ranks=2', 'linux, ranks=4' and 'simulated ranks=1024'"
        raise ValueError(f"requires() knows {kinds}, not {required!r}")
    device, simulated, number = match.groups("")
    most = MOST_SIMULATED if simulated else MOST_RANKS
    count = int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0
    if not 2 <= count <= most:
        more = "" if simulated else "; more are simulated: 'simulated ranks=1024'"
        raise ValueError(f"requires() takes from 2 to {most:,} {simulated}ranks, not {required!r}{more}")
    return Needs(device, 0 if simulated else count, count if simulated else 0)
