"""Memory over one training step, operation by operation."""
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, Watching, tensors_in
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


def temporaries(
    weights: list[Tensor], foreach: bool = False, fused: bool = False
) -> int:
    """The peak bytes that AdamW's step needs in addition to what it keeps."""
    optimizer = torch.optim.AdamW(weights, foreach=foreach, fused=fused)
    for w in weights:
        w.grad = torch.randn_like(w)
    optimizer.step()
    with Alive() as alive:
        optimizer.step()
    return alive.most


def the_batch_decides_where_memory_peaks() -> None:
    """With AdamW, a stack of four layers needs most memory in the backward pass for 512 rows, in the update for 16."""
    note(r"""
        When in a training step is memory at its *peak*, where most of it is in use? In this model
        either early in the backward pass or in the update of the weights. The batch decides which,
        because *activations*, here the inputs of the layers, grow with the batch, and so do their
        gradients. The weights, the weights' gradients and AdamW's two moments do not.

        By hand, take `4` hidden layers of `64 * 64` weights, and count in matrices of that size. (A
        last layer, the head, has only one column of weights, which is left out here.) The input of
        a layer has $64$ values for each row of the batch. With `512` rows it is
        `512 * 64 / (64 * 64) = 8` matrices. Compare two moments:

        - *early in the backward pass*, at the last hidden layer: the inputs of all hidden layers
          are still needed. The layer reads the gradient of its output, and makes that of its input
          and that of its weights.
        - *in the update*: the inputs have been used and freed, all but the first, which is the
          batch itself. All weights have a gradient, and AdamW makes temporary tensors.

        | in matrices | early in the backward pass | in the update |
        |---|---|---|
        | weights, and AdamW's two moments for each | `4 + 2 * 4 = 12` | `4 + 2 * 4 = 12` |
        | inputs of hidden layers | `4 * 8 = 32` | `1 * 8 = 8` |
        | gradients of one layer's output and input | `2 * 8 = 16` | $0$ |
        | gradients of weights | $1$ | $4$ |
        | temporary tensors of AdamW (measured: for one matrix of weights at a time) | $0$ | $3$ |
        | together | `12 + 32 + 16 + 1 = 61` | `12 + 8 + 4 + 3 = 27` |

        So the peak is in the backward pass. With `16` rows, an input is only
        `16 * 64 / (64 * 64) = 0.25` matrices. Then the sums are
        `12 + 4 * 0.25 + 2 * 0.25 + 1 = 14.5` and `12 + 0.25 + 4 + 3 = 19.25`, and the peak is in
        the update.

        `memory_over_a_step` runs a step of such a model with a head, and returns the bytes in use
        after every operation:
    """)
    width, layers, large, small = 64, 4, 512, 16
    matrix = 4 * width**2  # bytes of one matrix
    large_step = memory_over_a_step(width, layers, large)
    large_peak = max(large_step, key=lambda time: time.total)  # @inspect large_peak.total as B
    assert large_peak.phase == "backward", \
        "With the large batch, the peak is in the backward pass."
    assert round(large_peak.total / matrix) == 61, \
        "This peak is 61 matrices, to the nearest whole number."
    gradients = large_peak.held["gradients"]  # @hide
    assert gradients == matrix + 4 * width, \
        "At the peak, two of five weight gradients are there."  # @hide
    small_step = memory_over_a_step(width, layers, small)
    small_peak = max(small_step, key=lambda time: time.total)  # @inspect small_peak.total as B
    assert small_peak.phase == "update", \
        "With the small batch, the peak is in the update."
    assert round(small_peak.total / matrix) == 19, \
        "This peak is 19 matrices, to the nearest whole number."
    assert small_peak.held["temporaries"] // matrix == 3, \
        "At the peak, there are three temporary matrices."  # @hide
    weights = [torch.randn(10, 100, requires_grad=True) for _ in range(16)]  # @hide
    most = [temporaries(weights), temporaries(weights, foreach=True), temporaries(weights, fused=True)]  # @hide
    held = [size / weights[0].nbytes for size in most]  # @hide
    assert held == [3, 16, 0], \
        "The loop has 3 temporary matrices, foreach 16, fused none."  # @hide
    sizes = [2**i for i in range(3, 11)]  # @hide
    batches = {n: memory_over_a_step(width, layers, n) for n in sizes}  # @hide

    def alive(batch: int, time_in_the_step: int) -> list[Any]:  # @hide
        phase, held = batches[batch][time_in_the_step - 1]
        return [phase, *held.values()]

    explore(alive, over={"batch": [*batches], "time_in_the_step": range(1, len(large_step) + 1)},
        at={"batch": 512, "time_in_the_step": 11}, module="pictures/step.js",
        still=plot_timeline(f"batch {large}", large_step),
        do=r"""
            Drag the time slider from the first operation to the last. Which kinds grow, and which
            shrink? Then change the batch: what does it do to the peak?
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
    peaks = [at.phase for at in highest]  # @hide
    assert peaks == ["update"] * 4 + ["backward"] * 4, \
        "For batches of 8 to 64 the peak is in the update, for larger ones in the backward pass."  # @hide
    note(r"""
        So find out where the peak is before you try to save memory. With fewer rows the inputs get
        smaller: the peak of the backward pass falls from $61$ to $14.5$ matrices, that of the
        update only from $27$ to $19.25$. An optimizer with fewer moments lowers both. (AdamW is run
        here as on a CPU, matrix by matrix. With `foreach`, the default on a GPU, its update has one
        temporary matrix for each weight matrix, and with `fused` none.)
    """)
    question(r"""
        With the batch of `512` rows, the peak is `61` matrices. AdamW is replaced by an optimizer
        that has no moments and needs no temporary tensors in its update. How many matrices is the
        peak then?
    """, answer=round((large_peak.total - large_peak.held["moments"]) / matrix),
        wrong={
            "The temporary tensors of the update are not in memory at this peak.": 50,
            "Each parameter has two moments.": 57,
        },
        check=61 - 2 * 4, unit="matrices",
        hint="Which of the things in the table disappear, and are they in memory at the peak?",
        why=r"""
            The two moments of the `4` matrices are gone, `2 * 4 = 8`. The temporary tensors are
            needed only in the update, so they were not part of this peak. It is still in the
            backward pass.
        """)
