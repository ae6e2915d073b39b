"""The schedule: warm-up, decay, clipping."""
import math
from typing import Any

import torch
from counters import Watching, flops, tensors_in
from torch import nn

from litbook import aside, note, question


class Moved(Watching):
    """Used in a `with`, it adds up the bytes that the operations inside read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        declared = [it.alias_info for it in operation._schema.arguments]
        changed = [a for a, it in zip(args, declared) if it and it.is_write]
        touched = tensors_in((args, changed or made))
        self.bytes += sum(t.nbytes for t in touched)


@aside
def clipping_is_paid_for_at_every_step() -> None:
    """Clipping reads every gradient twice, also when there is nothing to clip."""
    note(r"""
        *Clipping* limits the length of the gradient, so that a rare one that is far too large does
        no harm: it is made shorter and keeps its direction [@pascanu2013]. `clip_grad_norm_`
        computes the length of all gradients together, their *norm*, and multiplies them by a
        factor: the limit over the norm, but at most `1`. Take a million random gradients and a
        limit of `1`. Their squares are `1` on average and add up to about a million, so the norm is
        about `1000`, the root of that:
    """)
    w = nn.Parameter(torch.zeros(1000, 1000))
    start = torch.randn(1000, 1000)
    w.grad = start.clone()
    norm = torch.nn.utils.clip_grad_norm_([w], 1.0).item()  # @inspect norm
    root = math.sqrt(w.numel())
    assert math.isclose(norm, root, rel_tol=0.01), \
        "The norm was about 1000, the root of a million."
    assert torch.allclose(w.grad, start / norm), \
        "The gradients were all divided by this norm."
    note(r"""
        What does clipping cost? The norm is `1` now. Clip once more, with a limit of `2`, which it
        does not reach, so that the factor is `1`. `Moved` adds up the bytes that the operations
        read and write:
    """)
    kept = w.grad.clone()  # @hide
    with Moved() as moved:
        torch.nn.utils.clip_grad_norm_([w], 2.0)  # @unnoticed: 2.0: any limit that is not reached
    per_parameter = moved.bytes / w.numel()  # @inspect per_parameter as B
    assert round(per_parameter) == 3 * 4, \
        "Each gradient of 4 bytes is read twice and written once."
    assert torch.equal(w.grad, kept), "The gradients are the same after it: the factor is 1."  # @hide
    seen = flops(lambda: torch.nn.utils.clip_grad_norm_([w], 2.0))  # @hide
    assert seen == 0, "PyTorch's counter sees no FLOP in it."  # @zero: the counter has no formula for it  # @hide
    note(r"""
        One reading is for the norm. The other, and the writing, are for the multiplication by the
        factor. (The rest, a few bytes, is for the norm and the factor themselves.)

        Why does PyTorch multiply by `1`? A program only hands work to a GPU, and runs on ahead. To
        ask whether the norm is too large, it would have to wait until the GPU has computed the
        norm. So PyTorch does not ask, and always multiplies.
    """)
    question(r"""
        A model has `1` billion parameters with gradients in `float32`. How many bytes does clipping
        read and write in a step?
    """, answer=10**9 * round(per_parameter),
        wrong={
            "Each gradient is read twice, and written once.": 4 * 10**9,
            "The writing is missing.": 8 * 10**9,
        },
        check=10**9 * (4 + 4 + 4), unit="B", why=r"""
            A gradient has `4` bytes. It is read for the norm, read again for the product, and
            written: `12` bytes for each parameter, whether anything is clipped or not.
        """)
