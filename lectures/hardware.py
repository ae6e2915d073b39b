"""What accelerators promise: peak rates, memory and bandwidth, each with its source.

Every rate is *dense*: the rate of an ordinary matrix product. NVIDIA's datasheets since the A100 also print a
rate "with sparsity", which needs two of every four weights to be zero and is twice as high. Where a datasheet
prints only that number, the entry below says so by writing it out and halving it: `1979e12 / 2`.

Tensor-core rates are those that accumulate in float32, as PyTorch's matrix products do. `float32` is the rate of
the ordinary units; the same tensors run at the `tf32` rate once TF32 is switched on. `None` means that the card has
no unit for the format, so there is no promise to divide by.

Memory stands here twice. `memory` is the number that the card is sold by, read as decimal: "80 GB" is 80 * 10**9.
The chips on the board are built in powers of two, so a card has more: `reported` is the total that its driver shows
in `nvidia-smi`, as someone saw it on such a card (`seen`). Where no such report was found it is None. A program gets
a little less: it asks `torch.cuda.get_device_properties(0).total_memory`.

To add a card, add one `Card(...)` line to `_CARDS`, and its sources to `references.bib`. The pattern must match the
*whole* name that `torch.cuda.get_device_name()` reports, so a card that is not listed is never taken for its
neighbour: an H200 is no H100, an L40S no L4, a slice of an A100 (MIG) no A100.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from units import GB, MiB


@dataclass(frozen=True)
class Card:
    """One accelerator: its rates in FLOP/s, memory in bytes, bandwidth in bytes per second."""

    name: str
    pattern: str  # a regular expression for the whole name that CUDA reports
    float32: float
    tf32: float | None
    bfloat16: float | None
    float16: float | None
    float8: float | None
    sparse_factor: int  # what "with sparsity" multiplies the tensor-core rates by; 1 where there is no such unit
    memory: int
    bandwidth: float
    source: str  # a key of references.bib
    date: str  # year of that document
    reported: int | None = None  # bytes of memory that the driver shows; None where no report was found
    seen: str = ""  # who saw it: a key of references.bib

    @property
    def capacity(self) -> int:
        """Bytes of memory in all: what the driver shows, where someone has seen it, else the datasheet's.

        What may be planned for is `napkin.room` of `memory`.
        """
        return self.reported or self.memory

    @property
    def boost(self) -> float:
        """As many times a promised rate may be seen: a GeForce's clock may rise above the one it is rated at."""
        return 1.25 if self.name.startswith("RTX") else 1.0


_CARDS = (
    # The A100 datasheet prints dense and sparse rates side by side.
    Card("A100 SXM 40GB", r"(NVIDIA )?A100-SXM4-40GB", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 40 * GB, 1555e9, "nvidia-a100", "2021",
         40960 * MiB, "seen-modal"),
    Card("A100 SXM 80GB", r"(NVIDIA )?A100-SXM4-80GB", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 80 * GB, 2039e9, "nvidia-a100", "2021",
         81920 * MiB, "seen-modal"),
    Card("A100 PCIe 40GB", r"(NVIDIA )?A100-PCIE-40GB", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 40 * GB, 1555e9, "nvidia-a100", "2021",
         40960 * MiB, "seen-modal"),
    Card("A100 PCIe 80GB", r"(NVIDIA )?A100 80GB PCIe", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 80 * GB, 1935e9, "nvidia-a100", "2021",
         81920 * MiB, "seen-modal"),
    # The A800 is an A100 with a slower NVLink; what one card does and holds is the same. No datasheet of NVIDIA's was
    # found, so the rates are the A100's, and the source is one that says so.
    Card("A800 SXM 80GB", r"(NVIDIA )?A800-SXM4-80GB", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 80 * GB, 2039e9, "a800", "2026",
         81920 * MiB, "seen-a800"),
    Card("A800 PCIe 80GB", r"(NVIDIA )?A800 80GB PCIe", 19.5e12, 156e12, 312e12, 312e12, None,
         2, 80 * GB, 1935e9, "a800", "2026",
         81920 * MiB, "seen-a800-pcie"),
    # Hopper datasheets print tensor-core rates with sparsity only: halved here.
    Card("H100 SXM", r"NVIDIA H100 80GB HBM3", 67e12, 989e12 / 2, 1979e12 / 2, 1979e12 / 2, 3958e12 / 2,
         2, 80 * GB, 3.35e12, "nvidia-h100", "2024",
         81559 * MiB, "seen-modal"),
    Card("H100 PCIe", r"NVIDIA H100 PCIe", 51e12, 756e12 / 2, 1513e12 / 2, 1513e12 / 2, 3026e12 / 2,
         2, 80 * GB, 2e12, "nvidia-h100-pcie", "2022"),
    Card("H100 NVL", r"NVIDIA H100 NVL", 60e12, 835e12 / 2, 1671e12 / 2, 1671e12 / 2, 3341e12 / 2,
         2, 94 * GB, 3.9e12, "nvidia-h100", "2024",
         99_961_274_368, "seen-h100-nvl"),
    # The H800 is an H100 SXM with a slower NVLink and almost no float64. Its peak in bfloat16 and its bandwidth are
    # confirmed by the source, TF32 and float8 follow from the H100's table; float32 is the H100's, unconfirmed. Nobody's
    # report of its memory was found.
    Card("H800 SXM", r"NVIDIA H800", 67e12, 989e12 / 2, 1979e12 / 2, 1979e12 / 2, 3958e12 / 2,
         2, 80 * GB, 3.35e12, "h800", "2025"),
    # NVIDIA publishes no datasheet of the H20. These are the rates of press reports, dense; measured products stay just
    # below them: 32, 72, 142 and 142 teraFLOP/s in float32, TF32, bfloat16 and float16 [measured-h20].
    Card("H20", r"NVIDIA H20", 44e12, 74e12, 148e12, 148e12, 296e12,
         2, 96 * GB, 4e12, "h20", "2024",
         97871 * MiB, "seen-h20"),
    Card("H200", r"NVIDIA H200", 67e12, 989e12 / 2, 1979e12 / 2, 1979e12 / 2, 3958e12 / 2,
         2, 141 * GB, 4.8e12, "nvidia-h200", "2024",
         143771 * MiB, "seen-h200"),
    # The brief prints sparse rates for the HGX B200: halved. Memory and bandwidth: an eighth of [nvidia-dgx-b200].
    # NVIDIA's later table for the HGX B200 promises less: 75e12 in float32, 7.7e12 bytes per second.
    Card("B200", r"NVIDIA B200", 80e12, 2200e12 / 2, 4500e12 / 2, 4500e12 / 2, 9000e12 / 2,
         2, 180 * GB, 8e12, "nvidia-blackwell", "2024",
         183359 * MiB, "seen-b200"),
    # The L4 datasheet prints sparse rates only, halved here; the L40S datasheet prints both.
    Card("L4", r"NVIDIA L4", 30.3e12, 120e12 / 2, 242e12 / 2, 242e12 / 2, 485e12 / 2,
         2, 24 * GB, 300e9, "nvidia-l4", "2023",
         23034 * MiB, "seen-modal"),
    Card("L40S", r"NVIDIA L40S", 91.6e12, 183e12, 362.05e12, 362.05e12, 733e12,
         2, 48 * GB, 864e9, "nvidia-l40s", "2023",
         46068 * MiB, "seen-modal"),
    # No sparsity, TF32, bfloat16 or float8 units before Ampere.
    Card("T4", r"(Tesla|NVIDIA) T4", 8.1e12, None, None, 65e12, None,
         1, 16 * GB, 320e9, "nvidia-t4", "2019",
         15360 * MiB, "seen-modal"),
    Card("V100 SXM 16GB", r"Tesla V100-SXM2-16GB", 15.7e12, None, None, 125e12, None,
         1, 16 * GB, 900e9, "nvidia-v100", "2020",
         16384 * MiB, "seen-v100"),
    Card("V100 SXM 32GB", r"Tesla V100-SXM2-32GB", 15.7e12, None, None, 125e12, None,
         1, 32 * GB, 900e9, "nvidia-v100", "2020"),
    Card("V100 PCIe 16GB", r"Tesla V100-PCIE-16GB", 14e12, None, None, 112e12, None,
         1, 16 * GB, 900e9, "nvidia-v100", "2020"),
    Card("V100 PCIe 32GB", r"Tesla V100-PCIE-32GB", 14e12, None, None, 112e12, None,
         1, 32 * GB, 900e9, "nvidia-v100", "2020"),
    # A GeForce runs its tensor cores at half rate when they accumulate in float32; these are those rates, dense.
    # They hold at the boost clock of the paper; a card that boosts higher can exceed them.
    Card("RTX 3090", r"(NVIDIA )?GeForce RTX 3090", 35.6e12, 35.6e12, 71e12, 71e12, None,
         2, 24 * GB, 936e9, "nvidia-ga102", "2021",
         24576 * MiB, "seen-3090"),
    Card("RTX 4090", r"NVIDIA GeForce RTX 4090", 82.6e12, 82.6e12, 165.2e12, 165.2e12, 330.3e12,
         2, 24 * GB, 1008e9, "nvidia-ada", "2023",
         24564 * MiB, "seen-4090"),
    Card("RTX 5090", r"NVIDIA GeForce RTX 5090", 104.8e12, 104.8e12, 209.5e12, 209.5e12, 419e12,
         2, 32 * GB, 1792e9, "nvidia-rtx-blackwell", "2025",
         32607 * MiB, "seen-5090"),
)

CARDS: dict[str, Card] = {card.name: card for card in _CARDS}


def find(name: str) -> Card | None:
    """The card that CUDA reports under this name, or None for one that is not listed here."""
    return next((card for card in _CARDS if re.fullmatch(card.pattern, name)), None)


def how_to_add(name: str) -> str:
    """One sentence on how the card of this name gets a peak; empty where it has one."""
    if find(name) is not None:
        return ""
    return (
        f"No peak is known for `{name}`: add one line, `Card(...)`, with its source to `lectures/hardware.py`."
    )


def peak(card: Card | None, dtype_name: str) -> float | None:
    """The dense peak of a card for a number format, in FLOP/s; None where none is known.

    `dtype_name` is one of float32, tf32, bfloat16, float16, float8; PyTorch's own spellings work too
    (`str(x.dtype)`, the float8 variants included). An unknown card or format has no peak: print
    "not available" for it, never a number.
    """
    dtype = dtype_name.removeprefix("torch.")
    rates = {
        "float32": card.float32, "tf32": card.tf32, "bfloat16": card.bfloat16, "float16": card.float16,
        "float8": card.float8, "float8_e4m3fn": card.float8, "float8_e5m2": card.float8,
    } if card else {}
    return rates.get(dtype)
