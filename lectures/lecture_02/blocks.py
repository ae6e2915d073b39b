"""Blocks of numbers that share a scale."""
import torch
from torch import Tensor

from litbook import aside, note, question


@aside
def an_outlier_ruins_its_own_block_only() -> None:
    """With a scale for each block, an outlier ruins its own block only."""
    note(r"""
        A format of one byte, such as `E4M3`, covers only a small range of values. So a tensor is
        stored with a *scale*: each element is divided by it, so that the largest one fits. What
        does an *outlier*, one huge element, do to the others?

        By hand, in a simple format that stores only the whole numbers from $0$ to $10$. The
        elements $1$, $2$ and $1000$ need the scale $100$, because `1000 / 100 = 10` is the largest
        value. Then $1$ and $2$ become `1 / 100` and `2 / 100`. Both are rounded to zero, and lost.

        The fix is more scales. In the format MXFP8 each *block* of `32` elements has its own scale,
        a power of two [@ocp-mx]. Then the outlier ruins only its own block, because no other block
        needs a scale for it.

        The largest value of E4M3 is `448`. Take `4096` random elements, set one of them to a
        million, and store them in blocks of a given size. `harmed` reads them back, and returns the
        positions of those that are off by more than an eighth. (Rounding to E4M3 costs at most a
        sixteenth, except near zero.)
    """)
    x = torch.randn(2**12)
    x[0] = 1e6

    def scales(size: int) -> Tensor:  # powers of two
        largest = x.view(-1, size).abs().amax(dim=1, keepdim=True)
        return (largest / 448).log2().ceil().exp2()

    def harmed(size: int) -> list[int]:
        blocks = x.view(-1, size)
        stored = (blocks / scales(size)).to(torch.float8_e4m3fn)
        restored = stored.float() * scales(size)
        wrong = (restored - blocks).abs() > blocks.abs() / 8
        return wrong.flatten().nonzero().flatten().tolist()

    assert scales(len(x)).item() == 4096, "For the million, the scale is 4096."  # @hide
    one_scale, many_scales = harmed(len(x)), harmed(32)  # @inspect len(one_scale), len(many_scales)
    assert len(one_scale) > 0.99 * len(x), \
        "With one scale, nearly all values are lost."
    assert many_scales == list(range(1, 32)), \
        "With a scale for each block of 32, only the other 31 elements of its block are lost."
    note(r"""
        What do the scales cost? A power of two fits into a byte, as an exponent. That is `8` bits
        for `32` elements, a quarter of a bit for each:
    """)
    in_bytes = scales(32).to(torch.float8_e8m0fnu)  # exponents alone
    assert torch.equal(in_bytes.float(), scales(32)), "Each scale fits into a byte of exponent."  # @hide
    paid = 8 * (len(x) + in_bytes.nbytes) / len(x)  # @inspect paid as bits
    assert paid == 8 + 8 / 32, "An element of MXFP8 needs 8.25 bits."
    question(r"""
        MXFP4 stores elements in `4` bits each, with a scale of `8` bits for each block of `32`. How
        many bytes does a matrix of `4096 * 4096` elements need?
    """, answer=4096 * 4096 * (4 + 8 / 32) / 8,
        wrong={
            "The scales are missing.": 4096 * 4096 / 2,
            "Those are bits; a byte has eight.": 4096 * 4096 * 4.25,
        },
        check=4096 * (torch.empty(2048, dtype=torch.float4_e2m1fn_x2).nbytes + in_bytes.nbytes), unit="B", within=0.005, why=r"""
            An element needs `4 + 8 / 32 = 4.25` bits. Multiply by `4096 * 4096` elements and divide
            by the `8` bits of a byte.
        """)
