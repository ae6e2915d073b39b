"""Blocks of numbers that share a scale: E2M1, MXFP8, NVFP4."""
import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from litbook import aside, figure, note, question

from .figures import plot_block_errors
from .measure import error_of

LUCK = 0.005  # how far a share of so many drawn numbers may stray
SIZES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # what E2M1 holds, beside the sign


def to_e2m1(x: Tensor) -> Tensor:
    """A tensor with each number rounded to the nearest of the 4-bit format E2M1, at most to 6."""
    between = (SIZES[1:] + SIZES[:-1]) / 2
    return SIZES[torch.bucketize(x.abs(), between)] * x.sign()


@aside
def four_bits_hold_eight_sizes() -> None:
    """Four bits hold eight sizes, and the largest number decides how many come out as zero."""
    note(r"""
        Some GPUs multiply values of four bits [@ocp-mx]. Which values can so few bits hold? In the
        format *E2M1* they are a sign, two bits of exponent and one bit of fraction [@ocp-mx].
        Beside the sign there are `2**3` patterns of bits, so there are `8` sizes. `value` decodes
        them:
    """)

    def value(code: int) -> float:
        exponent, fraction = divmod(code, 2)
        if exponent == 0:
            return fraction / 2
        return 2.0 ** (exponent - 1) * (1 + fraction / 2)

    sizes = [value(code) for code in range(8)]  # @inspect sizes
    assert sizes == SIZES.tolist(), \
        "The sizes are 0, 0.5, 1, 1.5, 2, 3, 4 and 6."
    note(r"""
        To use all of them, a tensor is *stretched*: multiplied by a factor that takes its largest
        number to `6`. Then each number is rounded to the nearest size; `to_e2m1` does that.
        Whatever is below `0.25`, half of the smallest size, becomes zero. How many values is that?
        Take `2**17` normally distributed values. Their distribution predicts the share (by the
        error function `erf`):
    """)
    x = torch.randn(2**17)
    factor = sizes[-1] / x.abs().max().item()
    off = (x * factor).abs().max() / sizes[-1] - 1  # @hide
    assert abs(off) <= torch.finfo(x.dtype).eps, "Stretched, the largest number is the largest size."  # @hide
    predicted = math.erf(sizes[1] / 2 / factor / math.sqrt(2))  # @inspect predicted as %
    lost = (to_e2m1(x * factor) == 0).float().mean().item()  # @inspect lost as %
    assert abs(lost - predicted) < LUCK, \
        "The predicted share of the numbers becomes zero."
    note("Now make a single number of them very large, `100`, and stretch again:")
    x[0] = 100  # @unnoticed: 0, 100 -> 200, 100 -> 101: any outlier
    factor = sizes[-1] / x.abs().max().item()
    lost = (to_e2m1(x * factor) == 0).float().mean().item()  # @inspect lost as %
    assert 0.9999 < lost < 1, \
        "With one outlier, nearly all values become zero."
    note(r"""
        The outlier decides the factor for all. All others are then small against the largest size,
        and are rounded to zero.
    """)
    question(r"""
        The largest number of a tensor is `4`, and the tensor is stretched to fill E2M1, up to `6`.
        Values below which size, before stretching, become zero?
    """, answer=sizes[1] / 2 * 4 / sizes[-1],
        wrong={
            "That is the size after stretching.": 0.25,
            "That is divided by the wrong factor: stretching makes the numbers larger.": 0.375,
        },
        check=max(k / 600 for k in range(600) if to_e2m1(torch.tensor(k / 600 * 6 / 4)) == 0), why=r"""
            After stretching, values below `0.25` become zero. Stretching multiplies by `6 / 4`, so
            before it they were below `0.25 * 4 / 6`.
        """)


def by_power_of_two(
    x: Float[Tensor, "n"], size: int, top: float, up: bool = False
) -> Float[Tensor, "block 1"]:
    """One power of two for each block of `size` elements: of largest / `top` rounded up, or as the first MX formats do.

    Those round the powers of two in `largest` and in `top` down, each by itself.
    """
    largest = x.view(-1, size).abs().amax(dim=1, keepdim=True)
    if up:
        return torch.exp2((largest / top).log2().ceil())
    return torch.exp2(largest.log2().floor() - math.floor(math.log2(top)))


@aside
def an_outlier_ruins_its_own_block_only() -> None:
    """With a scale for each block, an outlier ruins its own block only."""
    note(r"""
        A format of few bits needs a *scale*: a factor that takes the largest number of a tensor to
        the largest of the format. One huge number, an *outlier*, then makes all others too small.
        What helps? More scales. The *MX* formats have one for each *block* of `32` elements
        [@ocp-mx]. It is a byte that holds an exponent and nothing else, so it is a power of two.
        The elements themselves are in `E4M3`, a format of one byte, in the variant that is used
        here, MXFP8.

        Take `4096` random numbers, one of which is made a million. `by_power_of_two` computes
        scales for blocks of a given size. `harmed` gives the share of elements that are off by more
        than an eighth after a round trip through the format. First with one scale for all, then
        with one for each block:
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
    assert (len(one), len(many)) == (1, 128), \
        "4096 numbers in blocks of 32 have 128 scales."
    whole = harmed(*through(one))  # @inspect whole as %
    blocks = harmed(*through(many))  # @inspect blocks as %
    assert whole > 0.99, "With one scale, nearly all values are lost."
    two_blocks = 2 * size / len(x)
    assert two_blocks == 1 / 64, "two of the 128 blocks"  # @hide
    assert blocks < two_blocks, \
        "With a scale for each block, about one block is lost."
    note(r"""
        Only the block of the outlier is lost, because only its scale has to reach up to a million.
        What do the scales cost? `8` bits for each `32` elements:
    """)
    codes, scales = through(many)
    paid = 8 * (codes.nbytes + scales.nbytes) / len(x)  # @inspect paid as bits
    assert paid == 8 + 8 / size, \
        "A number takes its 8 bits, and a quarter of a bit for the scale."
    question(r"""
        MXFP4 keeps elements in `4` bits each, with a scale of `8` bits for each block of `32`. How
        many bytes does a matrix of `4096 * 4096` elements need?
    """, answer=4096 * 4096 * (4 + 8 / size) / 8,
        wrong={
            "The scales are missing.": 4096 * 4096 / 2,
            "Those are bits; a byte has eight.": 4096 * 4096 * 4.25,
        },
        check=4096 * 4096 // 2 + 4096 * 4096 // 32, unit="B", within=0.005, why=r"""
            A number takes `4 + 8 / 32 = 4.25` bits. Multiply by `4096 * 4096` elements and divide
            by `8` bits a byte.
        """)


def by_e4m3(x: Float[Tensor, "n"], size: int) -> Float[Tensor, "block 1"]:
    """One scale for each block of `size` elements, in E4M3, that takes the largest to 6."""
    largest = x.view(-1, size).abs().amax(dim=1, keepdim=True)
    unit = largest.max() / SIZES[-1] / torch.finfo(torch.float8_e4m3fn).max
    return (largest / SIZES[-1] / unit).to(torch.float8_e4m3fn).float() * unit


def block_error(
    x: Float[Tensor, "n"], scale: Float[Tensor, "block 1"]
) -> float:
    """The relative error of a tensor stored in four bits with these scales."""
    blocks = x.view(len(scale), -1)
    return error_of((to_e2m1(blocks / scale) * scale).flatten(), x)


@aside
def smaller_blocks_help_unless_the_scale_is_rounded_down() -> None:
    """For normally distributed values, smaller blocks lower the error, unless scales are rounded down to powers of two."""
    note(r"""
        Two formats keep values in [E2M1](#four_bits_hold_eight_sizes), a format of `4` bits, and
        have a scale for each [block](#an_outlier_ruins_its_own_block_only). MXFP4 has blocks of
        `32` elements, and its scales are powers of two. NVFP4 has blocks of `16`, and its scales
        are in `E4M3`, a format of one byte, times one `float32` for the whole tensor [@nvfp4].
        NVFP4 is more precise. Because of the smaller blocks, or because of the finer scales?

        A scale should take the largest value of its block to `6`, the largest of E2M1. A block
        whose largest value is `7.5` needs the scale `7.5 / 6 = 1.25`. A power of two can only be
        `1` or `2`. Rounded *down*, to `1`, the `7.5` does not fit and is cut off to `6`. Rounded
        *up*, to `2`, it becomes `7.5 / 2` and nothing is cut off, but the `6` of the format is not
        used. The first specification of MX rounds down [@ocp-mx].

        Change one thing at a time: the relative error with powers of two rounded down, rounded up,
        and with scales in `E4M3`, for several block sizes and normally distributed values:
    """)
    x, sizes = torch.randn(2**16), [2**k for k in range(2, 9)]  # @unnoticed: 2, 9, 16: points of the curves
    down = {n: block_error(x, by_power_of_two(x, n, 6.0)) for n in sizes}  # @inspect down
    up = {n: block_error(x, by_power_of_two(x, n, 6.0, up=True)) for n in sizes}  # @inspect up
    finer = {n: block_error(x, by_e4m3(x, n)) for n in sizes}  # @inspect finer
    cut = to_e2m1(torch.tensor([7.5])).item(), 2 * to_e2m1(torch.tensor([7.5]) / 2).item()  # @hide
    assert cut == (6.0, 8.0), "With the scale 1 the value 7.5 is cut off to 6; with 2 it is rounded to 8."  # @hide
    assert down[16] > down[32], \
        "Rounded down, blocks of 16 have a larger error than blocks of 32."
    assert all(a < b for a, b in pairwise(up.values())), \
        "Rounded up, the error falls with every halving of the block."
    assert all(a < b for a, b in pairwise(finer.values())), \
        "With scales in E4M3 it does so as well."
    mended = finer[32] / down[32] - 1  # @inspect mended as %
    together = finer[16] / down[32] - 1  # @inspect together as %
    assert round(mended, 1) == -0.1, \
        "With finer scales alone, the error of MXFP4 rounded down falls by a tenth."
    assert round(together, 1) == -0.2, \
        "With smaller blocks as well, which is NVFP4, it falls by a fifth."
    split = (1 + mended) * finer[16] / finer[32]  # @hide
    assert math.isclose(1 + together, split), "The finer scales' part, times that of half the block, is the whole change."  # @hide
    figure(plot_block_errors({"powers of two, rounded down": down, "rounded up": up, "E4M3": finer}), caption=r"""
        Relative error of E2M1 on normally distributed values against block size, with three kinds
        of scale. Dots: MXFP4 as first specified, and NVFP4.
    """, alt=r"""
        Three curves against block size on a logarithmic axis. With scales in E4M3 the error rises
        with the block size and is lowest. With powers of two rounded up it rises as well. With
        powers of two rounded down it falls slightly instead.
    """)
    note(r"""
        So it is not the power of two that spoils small blocks, but rounding it down: the smaller
        the blocks, the more elements are the largest of their block, and those are the ones that
        are cut off. Rounded up, nothing is cut off, and smaller blocks help. That is how CUDA's own
        conversion rounds. With *heavier tails* than the normal distribution has, smaller blocks
        help even when scales are rounded down, because an outlier then harms fewer neighbours.
        Values from a Laplace distribution:
    """)
    heavy = torch.distributions.Laplace(0.0, 1.0).sample((2**16,))  # @unnoticed: 2, 16, 0.0 -> 1.0: more draws
    wide, small = (by_power_of_two(heavy, n, 6.0) for n in (256, 16))
    tails = block_error(heavy, wide), block_error(heavy, small)  # @inspect tails
    assert tails[1] < 0.95 * tails[0], \
        "With Laplace values rounded down, blocks of 16 have a smaller error than blocks of 256."
    scales = 8 * len(x) // 32, 8 * len(x) // 16 + 32  # @hide
    paid = [4 + round(s / len(x), 2) for s in scales]  # @hide
    assert paid == [4 + 8 / 32, 4 + 8 / 16], \
        "An element takes 4.25 bits in MXFP4, and 4.5 bits in NVFP4."  # @hide
    block = torch.tensor([7.5, 1.0, 1.0, 1.0])
    question(r"""
        A block of `4` elements has the values `7.5`, `1`, `1` and `1`. Its scale is a power of two,
        `1` if rounded down and `2` if rounded up. What is the sum of the squared errors in either
        case?
    """, answer=[
        float((scale * to_e2m1(block / scale) - block).square().sum()) for scale in (1, 2)
    ],
        check=[(7.5 - 6) ** 2, (7.5 - 8) ** 2],
        hint="Between which two sizes of E2M1 is each value, divided by the scale?",
        why=r"""
            Rounded down, `7.5` is cut off to `6`, off by `1.5`. Rounded up, `7.5 / 2` lies between
            `3` and `4` and becomes `4`, so `8`, off by `0.5`. The ones are exact either way: `1`
            and `0.5` are sizes of E2M1.
        """)
