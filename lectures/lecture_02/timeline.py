"""Memory over one training step, operation by operation."""
from functools import partial
from typing import Any, NamedTuple

import torch.nn.functional as F
from counters import Watching, tensors_in
from timing import one_thread
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef

from litbook import explore, note, question

from .figures import plot_timeline
from .models import OPTIMIZERS, Stack, linear_batch

KINDS = "parameters", "moments", "gradients", "activations", "temporaries"


class Moment(NamedTuple):
    """The bytes in memory after one operation of a step, by kind."""

    phase: str
    held: dict[str, int]  # bytes of each kind

    @property
    def total(self) -> int:
        """Bytes of all kinds together."""
        return sum(self.held.values())


class Timeline(Watching):
    """While it is active, it notes which storages are in memory after each operation."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, tuple[StorageWeakRef, int]] = {}
        self.kinds: dict[int, str] = {}
        self.steps: list[tuple[str, list[int]]] = []  # phase, storages
        self.phase = "forward"

    def place(self, t: Tensor) -> int:
        """A number for a tensor's storage; while it is referred to, no other gets the same."""
        storage = t.untyped_storage()
        if storage._cdata not in self.seen:
            entry = StorageWeakRef(storage), storage.nbytes()
            self.seen[storage._cdata] = entry
        return int(storage._cdata)

    def owns(self, kind: str, t: Tensor) -> Tensor:
        """Count the tensor's storage as one of this kind, before and after, unless it has one."""
        self.kinds.setdefault(self.place(t), kind)
        return t

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        for t in tensors_in(made):
            self.place(t)
        alive = [n for n, (r, _) in self.seen.items() if not r.expired()]
        self.steps.append((self.phase, alive))

    def moments(self) -> list[Moment]:
        """The bytes of each kind after each operation."""
        found = []
        for phase, alive in self.steps:
            held = dict.fromkeys(KINDS, 0)
            for n in alive:
                held[self.kinds.get(n, "temporaries")] += self.seen[n][1]
            found.append(Moment(phase, held))
        return found


@one_thread()
def memory_over_a_step(  # @stepover
    width: int, layers: int, batch: int
) -> list[Moment]:
    """The bytes in memory after each operation of AdamW's second step, by kind."""
    model, (x, y) = Stack(width, layers), linear_batch(width, batch)
    optimizer = OPTIMIZERS["AdamW"](model.parameters())
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    states = [v for s in optimizer.state.values() for v in s.values()]
    with Timeline() as watch:
        for kind, tensors in (
            ("parameters", model.parameters()), ("activations", (x, y)),
            ("moments", (t for t in states if t.dim() > 0)),
        ):
            for t in tensors:
                watch.owns(kind, t)
        keep = partial(watch.owns, "activations")
        with saved_tensors_hooks(keep, lambda t: t):
            loss = F.mse_loss(model(x), y)
        watch.phase = "backward"
        loss.backward()
        for w in model.parameters():
            assert w.grad is not None, "just computed"
            watch.owns("gradients", w.grad)
        watch.phase = "update"
        optimizer.step()
    return watch.moments()


def the_batch_decides_where_memory_peaks() -> None:
    """A large batch makes memory peak in the backward pass, a small one in the update."""
    note(r"""
        A training step fits into memory if it fits at its *peak*, the point in time when memory is
        fullest. When is that? The forward pass makes activations. The backward pass frees the
        activations of a layer as soon as it has computed the gradient of the layer's weights. The
        update changes the weights. So when all activations are in memory, most gradients do not
        exist yet, and when all gradients are in memory, the activations are gone. Either point can
        be the peak.

        By hand, for a model of `4` hidden layers of width `64` and the optimizer AdamW. Count in
        matrices of `64 * 64` values. (The head, one vector, is left out.) Parameters and AdamW's
        two moments are always in memory, `3 * 4 = 12` matrices. First a batch of `512` rows: a
        tensor of `512 * 64` values is as large as `512 / 64 = 8` matrices.

        - *Early in the backward pass*, when it processes the last hidden layer, memory also holds
          the inputs of the `4` layers, two gradients of the same size (of this layer's output and
          of its input), and the gradient of its matrix: `12 + (4 + 2) * 8 + 1 = 61`.
        - *In the update*, memory also holds all `4` gradients, `3` temporary matrices in which
          AdamW computes the new weights of a layer, and the input of the first layer:
          `12 + 4 + 3 + 8 = 27`.

        The peak is in the backward pass. With `16` rows a tensor is a quarter of a matrix. Then the
        first count is `12 + 6 / 4 + 1 = 14.5`, the second `12 + 4 + 3 + 1 / 4 = 19.25`, and the
        peak is in the update, because six tensors of the first count shrink with the batch, but
        only one tensor of the second count.

        Measure it. `memory_over_a_step` records what is in memory after every operation of a step:
    """)
    width, layers, large, small = 64, 4, 512, 16
    matrix = 4 * width**2  # bytes
    wide = memory_over_a_step(width, layers, large)
    fullest = max(wide, key=lambda at: at.total)  # @inspect fullest.held as B
    assert fullest.phase == "backward", \
        "With the large batch, the peak is in the backward pass."
    assert round(fullest.total / matrix) == 61, \
        "This peak has the bytes of 61 matrices, to the nearest whole number."
    gradients = fullest.held["gradients"]  # @hide
    assert gradients == matrix + 4 * width, \
        "At the peak, two of five weight gradients are there."  # @hide
    narrow = memory_over_a_step(width, layers, small)
    fullest = max(narrow, key=lambda at: at.total)  # @inspect fullest.held as B
    assert fullest.phase == "update", \
        "With the small batch, the peak is in the update."
    assert round(fullest.total / matrix) == 19, \
        "This peak has the bytes of 19 matrices, to the nearest whole number."
    assert fullest.held["temporaries"] // matrix == 3, \
        "At the peak, there are three temporary matrices."  # @hide
    sizes = [2**i for i in range(3, 11)]  # @hide
    batches = {n: memory_over_a_step(width, layers, n) for n in sizes}  # @hide

    def alive(batch: int, time_in_the_step: int) -> list[Any]:  # @hide
        phase, held = batches[batch][time_in_the_step - 1]
        return [phase, *held.values()]

    explore(alive, over={"batch": [*batches], "time_in_the_step": range(1, len(wide) + 1)},
        at={"batch": 512, "time_in_the_step": 11}, module="pictures/step.js",
        still=plot_timeline(f"batch {large}", wide),
        do=r"""
            Move the time from the first operation to the last. Which kinds grow, and which shrink?
            Then change the batch: what does it do to the peak?
        """,
        see=r"""
            With a batch of `64` or less the peak is in the update. Activations shrink with the
            batch; gradients, moments and temporary matrices of the update do not.
        """, caption=r"""
            Memory in use after each operation of a step, by kind, in KiB, measured. An operation is
            one computation with tensors. *Temporaries* are tensors that only the operations at hand
            need. Dashed lines: where the forward pass, the backward pass and the update begin.
        """, alt=r"""
            A stacked area chart over the operations of a step, on parameters and moments of
            constant height. Activations climb to the end of the forward pass and then fall in
            stairs while gradients rise. Temporaries peak early in the backward pass.
        """)  # @hide
    highest = [max(m, key=lambda it: it.total) for m in batches.values()]  # @hide
    peaks = [moment.phase for moment in highest]  # @hide
    assert peaks == ["update"] * 4 + ["backward"] * 4, \
        "For batches of 8 to 64 the peak is in the update, for 128 to 1024 in the backward pass."  # @hide
    note(r"""
        So before you save memory, find out where the peak is. A smaller batch lowers the peak of
        the backward pass, but hardly the peak of the update. The same is true of
        [keeping fewer activations](#checkpointing_trades_flops_for_memory). An optimizer with less
        state lowers both.
    """)
    question(r"""
        With a batch of $B$ rows, a tensor of $B \times 64$ values is as large as $B/64$ matrices.
        What is the smallest $B$ for which the peak of this model is in the backward pass?
    """, answer=next(b for b in range(1, 999) if 12 + 6 * b / 64 + 1 > 12 + 4 + 3 + b / 64),
        wrong={
            "With this batch the update is still larger; take the next whole number.": 76,
        },
        check=6 * 64 // 5 + 1,
        hint="Write down both counts with $B/64$ for the size of a tensor. When is the first larger?",
        why=r"""
            The counts are $12 + 6B/64 + 1$ and $12 + 4 + 3 + B/64$. The first is larger if $5B/64$
            is larger than `6`, that is, if $B$ is larger than `6 * 64 / 5 = 76.8`.
        """)
