"""Blocks of numbers that share a scale: E2M1, MXFP8, NVFP4."""
import math

import torch
from jaxtyping import Float
from torch import Tensor

from litbook import aside, figure, note, question

from .figures import plot_block_errors
from .measure import error_of

LUCK = 0.005  # how far a share of so many drawn numbers may stray
SIZES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # what E2M1 holds, beside the sign


def to_e2m1(x: Tensor) -> Tensor:
    """Every number replaced by the nearest of E2M1, the largest where it lies beyond."""
    between = (SIZES[1:] + SIZES[:-1]) / 2
    return SIZES[torch.bucketize(x.abs(), between)] * x.sign()


@aside
def four_bits_hold_eight_sizes() -> None:
    """Four bits hold eight sizes, and the largest number decides how many come out as zero."""
    note(r"""
        Some cards multiply in four bits [@ocp-mx]. What can such a number be? E2M1 has a sign, two
        bits of exponent and one of fraction [@ocp-mx], so all its sizes can be written down:
    """)

    def value(code: int) -> float:
        exponent, fraction = divmod(code, 2)
        if exponent == 0:
            return fraction / 2
        return 2.0 ** (exponent - 1) * (1 + fraction / 2)

    sizes = [value(code) for code in range(8)]  # @inspect sizes
    assert sizes == SIZES.tolist(), "exponent and fraction, decoded"
    note(r"""
        A tensor is stretched until its largest number meets the largest size. Whatever is then
        below half of the smallest is gone. For normally distributed numbers the share can be
        predicted from the largest of them alone, by the error function:
    """)
    x = torch.randn(2**17)
    factor = sizes[-1] / x.abs().max().item()
    off = (x * factor).abs().max() / sizes[-1] - 1
    assert abs(off) <= torch.finfo(x.dtype).eps, "up to the top"
    predicted = math.erf(sizes[1] / 2 / factor / math.sqrt(2))  # @inspect predicted as %
    lost = (to_e2m1(x * factor) == 0).float().mean().item()  # @inspect lost as %
    assert abs(lost - predicted) < LUCK, "counted, predicted"
    note("One outlier, and the stretch serves nobody else:")
    x[0] = 100  # @unnoticed: 0, 100 -> 200, 100 -> 101: any outlier
    factor = sizes[-1] / x.abs().max().item()
    lost = (to_e2m1(x * factor) == 0).float().mean().item()  # @inspect lost as %
    assert 0.9999 < lost < 1, "all but a few"
    question(r"""
        A tensor has `4` as its largest number and is stretched to fill E2M1. Below which size do
        its numbers become zero?
    """, answer=sizes[1] / 2 * 4 / sizes[-1],
        check=max(k / 600 for k in range(600) if to_e2m1(torch.tensor(k / 600 * 6 / 4)) == 0))


def by_power_of_two(
    x: Float[Tensor, "n"], size: int, top: float
) -> Float[Tensor, "block 1"]:
    """A power of two for each block of `size`, which takes its largest number to `top` or just beyond."""
    largest = x.view(-1, size).abs().amax(dim=1, keepdim=True)
    return torch.exp2(largest.log2().floor() - math.floor(math.log2(top)))


@aside
def an_outlier_ruins_its_own_block_only() -> None:
    """With a scale for each block, an outlier ruins its own block only."""
    note(r"""
        What helps against outliers? More scales. The *MX* formats give one to every `32` numbers: a
        byte that holds an exponent and nothing else, E8M0, and so a power of two [@ocp-mx]. MXFP8
        keeps the numbers themselves in E4M3, as here, or in E5M2.
    """)
    x, size, top = torch.randn(2**12), 32, 448.0
    x[0] = 1e6  # @unnoticed: 0: any place

    def through(scale: Tensor) -> tuple[Tensor, Tensor]:
        blocks = x.view(len(scale), -1) / scale
        codes = blocks.clamp(-top, top).to(torch.float8_e4m3fn)
        return codes, scale.to(torch.float8_e8m0fnu)

    def harmed(codes: Tensor, scale: Tensor) -> float:
        restored = (codes.float() * scale.float()).flatten()
        wrong = (restored - x).abs() > x.abs() / 8
        return wrong.sum().item() / len(x)

    one, many = by_power_of_two(x, len(x), top), by_power_of_two(x, size, top)
    assert (len(one), len(many)) == (1, 128), "scales"
    whole = harmed(*through(one))  # @inspect whole as %
    blocks = harmed(*through(many))  # @inspect blocks as %
    assert whole > 0.99, "lost with one scale"
    two_blocks = 2 * size / len(x)
    assert blocks < two_blocks, "lost with many: about a block"
    note("And the price, in bits a number: those of the format, and a share of the scale.")
    codes, scales = through(many)
    paid = 8 * (codes.nbytes + scales.nbytes) / len(x)  # @inspect paid as bits
    assert paid == 8 + 8 / size, "stored, by formula"
    question(r"""
        MXFP4 keeps the numbers in E2M1, under the same scales. How many bytes does a matrix of
        `4096 × 4096` take?
    """, answer=4096 * 4096 * (4 + 8 / size) / 8,
        check=4096 * 4096 // 2 + 4096 * 4096 // 32, unit="B")


def by_e4m3(x: Float[Tensor, "n"], size: int) -> Float[Tensor, "block 1"]:
    """Scales in E4M3 that take the largest of each block to six, times one number for the tensor."""
    largest = x.view(-1, size).abs().amax(dim=1, keepdim=True)
    unit = largest.max() / SIZES[-1] / torch.finfo(torch.float8_e4m3fn).max
    return (largest / SIZES[-1] / unit).to(torch.float8_e4m3fn).float() * unit


def block_error(
    x: Float[Tensor, "n"], scale: Float[Tensor, "block 1"]
) -> float:
    """The relative error of E2M1 under these scales."""
    blocks = x.view(len(scale), -1)
    return error_of((to_e2m1(blocks / scale) * scale).flatten(), x)


def by_search(  # @hide
    x: Float[Tensor, "n"], scale: Float[Tensor, "block 1"]
) -> float:
    """The same error, each number by a search through all sizes."""
    wanted = x.view(len(scale), -1)
    distances = (wanted.abs()[..., None] / scale[..., None] - SIZES).abs()
    nearest = SIZES[distances.argmin(-1)] * scale * wanted.sign()
    return float((nearest - wanted).square().sum() / x.square().sum()) ** 0.5  # type: ignore[no-any-return]


@aside
def smaller_blocks_need_finer_scales() -> None:
    """Smaller blocks lower the error only where the scale is finer than a power of two."""
    note(r"""
        Are smaller blocks better blocks? NVFP4 halves them, to `16` numbers of E2M1, and its scale
        is no power of two but a number in E4M3, on top of one `float32` for the whole tensor
        [@nvfp4]. Two changes at once. Take them apart:
    """)
    x, sizes = torch.randn(2**15), [2**k for k in range(2, 9)]  # @unnoticed: 2, 9, 15: points of the curves
    power = {n: block_error(x, by_power_of_two(x, n, 6.0)) for n in sizes}  # @inspect power
    finer = {n: block_error(x, by_e4m3(x, n)) for n in sizes}  # @inspect finer
    assert power[16] > power[32], "powers of two: smaller blocks, larger error"
    assert finer[16] < finer[32], "E4M3: smaller blocks, smaller error"
    mended = finer[32] / power[32] - 1  # @inspect mended as %
    together = finer[16] / power[32] - 1  # @inspect together as %
    assert round(mended, 1) == -0.1, "the finer scale alone"
    assert round(together, 1) == -0.2, "NVFP4 against MXFP4"
    split = (1 + mended) * finer[16] / finer[32]  # @hide
    assert math.isclose(1 + together, split), "the finer scale's part, times that of half the block"  # @hide
    figure(plot_block_errors(power, finer), caption=r"""
        Relative error of E2M1 on normally distributed numbers against the size of a block, under
        two kinds of scale. Dots: MXFP4 and NVFP4.
    """, alt=r"""
        Two curves against block size on a logarithmic axis. Under scales in E4M3 the error rises
        with the size of the block. Under powers of two it lies above, and falls slightly instead,
        until the two all but meet at the largest blocks.
    """)
    note(r"""
        A power of two may miss by almost a factor of two. The fewer numbers share it, the more of
        them are the largest of their block and pay for the miss: they are stretched too little, or
        cut off at the top. Bits a number, by formula and as bytes would have it:
    """)
    scales = 8 * len(x) // 32, 8 * len(x) // 16 + 32  # @unnoticed: + -> -, 32 -> 33, 32 -> 64: one scale more or less is not seen
    paid = [4 + round(s / len(x), 2) for s in scales]  # @inspect paid as bits
    assert paid == [4 + 8 / 32, 4 + 8 / 16], "MXFP4, NVFP4"
    note(r"""
        Real weights and activations are not normally distributed, so the numbers here are those of
        this example. The order of the curves is what to look for in your own.
    """)
    question("For blocks of `8`, what share of the error is left when powers of two give way to E4M3?",
             answer=round(block_error(x, by_e4m3(x, 8)) / block_error(x, by_power_of_two(x, 8, 6.0)), 2),
        check=round(by_search(x, by_e4m3(x, 8)) / by_search(x, by_power_of_two(x, 8, 6.0)), 2))
