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
        computes the length of all gradients together, their *norm*. If it is above the limit, all
        of them are multiplied by the limit over the norm. Take a million random gradients and a
        limit of `1`:
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
        What does that cost? `Moved` adds up the bytes that operations read and write. Clip once
        more, with a limit that is not reached:
    """)
    with Moved() as moved:
        torch.nn.utils.clip_grad_norm_([w], 2.0)  # @unnoticed: 2.0: any limit that is not reached
    per_parameter = moved.bytes / w.numel()  # @inspect per_parameter as B
    assert round(per_parameter) == 3 * 4, \
        "Each gradient of 4 bytes is read twice and written once."
    seen = flops(lambda: torch.nn.utils.clip_grad_norm_([w], 2.0))  # @hide
    assert seen == 0, "PyTorch's counter sees no FLOP in it."  # @zero: the counter has no formula for it  # @hide
    note(r"""
        One reading is for the norm. The other, and the writing, are for the product with a factor,
        which is `1` here. PyTorch multiplies in any case, because on a GPU asking whether the norm
        is too large would make the program wait.
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
