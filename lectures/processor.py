"""The clock and the peak of one core of this processor, measured by machine code of its own.

Data sheets of processors do not print a peak: it is the clock times the arithmetic of a tick, and the clock changes from
moment to moment. So both are measured: a loop of multiplications that wait for each other gives the clock, a loop of
fused multiply-adds that do not gives the peak. The loops are bytes of machine code in a page that may be executed, so no
compiler is needed. They are written for x86-64 under Linux; elsewhere `measure_core` returns None.

Times are of this thread alone, and the least of many: what other programs do can only make a loop slower.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import thread_time

INDEPENDENT = 12  # multiply-adds in a loop, more than two units can have under way at once
CHAINED = 12  # multiplications in the loop for the clock
TICKS = 3  # of the clock for a multiplication of whole numbers, on every x86-64 core since 2011
ROUNDS = 50_000  # of a loop in a call: some tenths of a millisecond
TRIES = 200
_PAGES: list[mmap.mmap] = []


@dataclass(frozen=True)
class Core:
    """One core of a processor as it was measured."""

    clock: float  # ticks per second
    peak: float  # FLOP/s in float32
    lanes: int  # float32 elements of the widest register with fused multiply-adds

    @property
    def per_tick(self) -> float:
        """FLOPs for each tick of the clock that was measured; where wide registers lower the clock, less than the units do."""
        return self.peak / self.clock

    @property
    def most_per_tick(self) -> int:
        """FLOPs that two units do in a tick: a multiplication and an addition for each element of a register."""
        return 2 * self.lanes * 2


def registers() -> dict[str, int]:
    """Kinds of registers with fused multiply-adds that this processor has, and their float32 elements."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return {}
    facts = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    flags = next((line.split() for line in facts if line.startswith("flags")), [])
    has = {"AVX2": {"avx2", "fma"} <= {*flags}, "AVX-512": "avx512f" in flags}
    return {name: lanes for name, lanes in (("AVX2", 8), ("AVX-512", 16)) if has[name]}


def multiply_add(kind: str, k: int) -> bytes:
    """`vfmadd231ps`: register k += register 12 * register 13, in registers of this kind."""
    high = 0x80 if k < 8 else 0
    front = [0xC4, high | 0x42, 0x1D] if kind == "AVX2" else [0x62, high | 0x52, 0x1D, 0x48]
    return bytes([*front, 0xB8, 0xC0 | (k & 7) << 3 | 5])


def loop(body: bytes) -> Callable[[int], None]:
    """A function of n that runs `body` n times; all registers for floats begin at zero."""
    turn = body + b"\xff\xc9"  # dec ecx
    code = b"\xc5\xfc\x77\x89\xf9"  # vzeroall; mov ecx, edi
    code += turn + b"\x0f\x85" + struct.pack("<i", -len(turn) - 6)  # jnz to the start of the turn
    code += b"\xc5\xf8\x77\xc3"  # vzeroupper; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(None, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    _PAGES.append(page)  # it lives as long as the function
    return function


def seconds_of_a_turn(body: bytes) -> float:
    """The least seconds that this thread computes for one turn of a loop."""
    function, least = loop(body), float("inf")
    for _ in range(TRIES):
        start = thread_time()
        function(ROUNDS)
        least = min(least, thread_time() - start)
    return least / ROUNDS


@cache
def measure_core() -> Core | None:
    """Clock and peak of a core, or None where this cannot be measured: another processor, or no page to execute."""
    kinds = registers()
    try:
        ticks = (
            CHAINED * TICKS / seconds_of_a_turn(b"\x48\x0f\xaf\xc0" * CHAINED) if kinds else 0
        )  # imul rax, rax
        rates = {
            lanes: INDEPENDENT * lanes * 2
            / seconds_of_a_turn(b"".join(multiply_add(kind, k) for k in range(INDEPENDENT)))
            for kind, lanes in kinds.items()
        }  # fmt: skip
    except OSError:  # a system that lets no program make code
        return None
    return Core(ticks, max(rates.values()), max(rates)) if rates else None
