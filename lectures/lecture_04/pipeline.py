"""Pipelines: each rank has some of the layers, and microbatches pass through one rank after the other."""
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .collectives import difference
from .data_parallel import gradient_of
from .drawings import plot_schedules
from .tensor_parallel import ROUNDING


def pipelines() -> None:
    """Pipelines."""
    note(r"""
        A model can also be cut between its layers. Each rank has a *stage*, a few layers in a row,
        and hands what they make to the next rank. That is little traffic, so a pipeline may run
        between cards that are far from each other. But a stage has nothing to do until its input
        has come. This part counts how long it waits.
    """)
    stages_hand_on_activations()
    microbatches_fill_the_pipeline()
    early_backward_passes_keep_less()
    more_pieces_wait_less()


class Step(NamedTuple):
    """One step of a rank: its number, forward (F) or backward (B), the stage, the microbatch."""

    number: int
    kind: str
    stage: int
    batch: int


class Clock:
    """Counts a rank's steps: each comes after the step that made the numbers it works on."""

    def __init__(self) -> None:
        self.now, self.steps = 0, list[Step]()

    def stamp(
        self, kind: str, stage: int, x: Float[Tensor, "t d"]
    ) -> Float[Tensor, "t d"]:
        """Counts one step; returns `x` with the number of the step in its last column."""
        self.now = max(self.now, int(x[0, -1])) + 1
        batch = sum(s.kind == kind and s.stage == stage for s in self.steps)
        self.steps.append(Step(self.now, kind, stage, batch))
        stamped = x.clone()
        stamped[:, -1] = self.now
        return stamped


class Stamp(torch.autograd.Function):
    """Writes the step's number into results going forward, and into gradients going back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, clock: Clock, stage: int) -> Tensor:
        ctx.clock, ctx.stage = clock, stage
        return clock.stamp("F", stage, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.clock.stamp("B", ctx.stage, grad), None, None


class Stage(nn.Module):
    """A layer of 32 by 32 weights that counts each pass, forward or backward, as one step."""

    def __init__(self, number: int, clock: Clock) -> None:
        super().__init__()
        torch.manual_seed(number)  # so that every rank can make any stage
        self.linear = nn.Linear(32, 32, bias=False).double()
        self.number, self.clock = number, clock

    def forward(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        made = torch.tanh(self.linear(x[:, :-1]))
        stamped = torch.cat([made, x[:, -1:]], dim=1)
        y: Tensor = Stamp.apply(stamped, self.clock, self.number)
        return y


def loss_of(y: Float[Tensor, "t d"], target: Float[Tensor, "t d"]) -> Tensor:
    """The mean squared error, without the last column, which holds the number of the step."""
    return F.mse_loss(y[:, :-1], target[:, :-1])


def gradients_alone(
    stages: int, x: Float[Tensor, "t d"], target: Float[Tensor, "t d"]
) -> list[Tensor]:  # @stepover
    """The gradient of each stage's weights, from one process and the whole batch."""
    model = nn.Sequential(*(Stage(i, Clock()) for i in range(stages)))
    loss_of(model(x), target).backward()
    return [gradient_of(p) for p in model.parameters()]


def all_forward_then_all_backward(
    stage: Stage, x: Float[Tensor, "t d"],
    target: Float[Tensor, "t d"], batches: int,
) -> None:
    """Runs this rank's stage on all microbatches, forward and then backward, as GPipe does."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    kept = []
    for given in x.chunk(batches):
        came = given.clone()
        if rank > 0:
            dist.recv(came, rank - 1)
        y = stage(came.requires_grad_())
        if rank < last:
            dist.send(y.detach(), rank + 1)
        kept.append((came, y))
    for (came, y), wanted in zip(kept, target.chunk(batches)):
        grad = torch.empty_like(y)
        if rank < last:
            dist.recv(grad, rank + 1)
            y.backward(grad)
        else:
            (loss_of(y, wanted) / batches).backward()
        if rank > 0:
            dist.send(gradient_of(came), rank - 1)


def share_idle(steps: Sequence[Sequence[Step]]) -> Fraction:
    """The share of all ranks' steps in which a rank has nothing to do."""
    last = max(step.number for rank in steps for step in rank)
    return 1 - Fraction(sum(map(len, steps)), last * len(steps))


@requires("linux, ranks=4")
def stages_hand_on_activations() -> None:
    """A pipeline sends what passes between two layers, and no weights."""
    note(r"""
        A model has too many layers for one card. So each of four ranks keeps some of them, a
        *stage*, and hands what it computes to the rank with the next stage. This is a *pipeline*.
        If the whole batch went through at once, only one rank would work at a time. So the batch is
        cut into *microbatches*: as soon as a rank has handed one on, it takes the next. In the
        simplest schedule, all microbatches go forward first, and then all go backward [@gpipe].

        What does a rank send? Here are four stages of one layer each, and a batch of `256` tokens
        in `4` microbatches. `F.pad` adds a number to each token, for a count of steps below.
        `all_forward_then_all_backward` runs this rank's stage on all microbatches. `Wire` counts
        the bytes that a rank sends:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = torch.randn(2, 256, 32).double()
    x, target = F.pad(tokens, (0, 1))  # one more column, for the step
    stage = Stage(rank, Clock())
    with Wire() as wire:
        all_forward_then_all_backward(stage, x, target, batches=4)
    alone = gradients_alone(ranks, x, target)
    grad = gradient_of(stage.linear.weight)
    assert difference(grad, alone[rank]) < ROUNDING, \
        "Each stage has the gradient that one process with all four layers computes, up to rounding."
    neighbors = (rank > 0) + (rank < ranks - 1)  # @inspect neighbors
    batches_sent = wire.sent / x.nbytes  # @inspect batches_sent
    assert round(batches_sent, 1) == neighbors, \
        "To each neighbor, a rank sends as many bytes as the batch has, and a few headers."
    assert wire.sent == neighbors * (256 * 33 * 8 + 12 * HEADER), \
        "To each neighbor, a rank sends 256 rows of 33 numbers, and 12 headers: 2 for each of 4 messages, 1 in return for each of 4."  # @hide
    note(r"""
        The next rank gets what this rank computed for all tokens, and the rank before gets the
        gradients of what it sent, which are as large. Weights stay where they are. A stage of more
        layers would send no more, because what passes between its own layers stays on the rank.

        When does a rank wait? Say that a stage takes one step for a microbatch, forward as well as
        backward. The first microbatch reaches rank 3 in the fourth step. So rank 3 has done all
        four forward after `4 + 3 = 7` steps. Backward takes as long, `14` steps in all. A rank
        works in `4 + 4` of them and waits in the other `6`. `Clock` has counted the steps like that
        while the pipeline ran: the number added to each token is the step in which it was last
        worked on, and the next rank's step comes after it. `share_idle` is the share of all steps
        in which a rank had nothing to do:
    """)
    steps = from_all_ranks(stage.clock.steps)
    length = max(step.number for row in steps for step in row)  # @inspect length as steps
    waiting = share_idle(steps)  # @inspect waiting
    assert (length, waiting) == (14, Fraction(6, 14)), \
        "The pipeline takes 14 steps, and ranks wait in 6 of 14, which is 3 of 7."
    figure(plot_schedules({"all forward, then all backward": steps}),
        caption=r"""
            What each rank did in each step, with the numbers of the microbatches. In a gap, the
            rank waits.
        """,
        alt=r"""
            A row for each rank over the steps. Forward passes form a staircase from the first rank
            to the last, backward passes one from the last to the first, with gaps at both ends and
            in the middle.
        """)
    misbelief("A pipeline of `4` ranks is `4` times as fast as one rank.", rf"""
        It is not, because ranks wait. One rank alone would need `8` steps for each of the `4`
        layers, a forward and a backward one for each microbatch, which makes `8 * 4 = 32`. The
        pipeline takes {length} steps, so it is {8 * 4 / length:.1f} times as fast.
    """)
    question(r"""
        A stage in the middle of a pipeline gets `16` microbatches of `8192` tokens each. A token
        has `16384` numbers of `2` bytes each. How many bytes does the stage's rank send in a
        training step, forward and backward together?
    """, answer=2 * 16 * 8192 * 16384 * 2, check=(1 + 1) * (16 * 8192) * (2 * 16384), unit="B", within=0.05,
        wrong={"Gradients go back as well.": 16 * 8192 * 16384 * 2},
        hint="What goes to the next rank, and what to the rank before?",
        why=r"""
            It sends the results of all `16 * 8192` tokens on, and the gradients for as many back,
            `16384` numbers of `2` bytes for each. How many layers the stage has does not matter.
        """)


def bubble(stages: int, batches: int, pieces: int = 1) -> Fraction:
    """The share of steps in which a rank waits, by the formula; `pieces` are those on a rank."""
    return Fraction(stages - 1, pieces * batches + stages - 1)


@requires("ranks=4")
def microbatches_fill_the_pipeline() -> None:
    """The bubble shrinks as microbatches grow in number."""
    note(r"""
        In a [pipeline](#stages_hand_on_activations) each rank has a *stage*, some of the layers,
        and the parts of a batch, the *microbatches*, pass through all ranks. A rank waits for its
        first input, and again before the first gradient comes back. The share of all steps in which
        ranks wait is called the *bubble*. How large is it?

        Take four stages and `8` microbatches, and say that a stage takes one step for one
        microbatch. Forward, each rank works in `8` steps. But the first microbatch reaches the last
        rank three steps after the first, so the forward passes take `8 + 3 = 11` steps. Each rank
        waits in `3` of them. Backward it is the same, so the bubble is `3/11`. With $G$ stages and
        $\mu$ microbatches it is

        [@eq:bubble]: $$
        \frac{G - 1}{\mu + G - 1}
        $$

        With more microbatches it shrinks, because ranks still wait in $G-1$ steps only, and work in
        more. We run pipelines on four ranks with `1` to `16` microbatches.
        `all_forward_then_all_backward` sends all microbatches forward and then backward, and
        `share_idle` counts the share of steps in which ranks wait:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = torch.randn(2, 64, 32).double()  # @unnoticed: 64: at least as many as microbatches
    x, target = F.pad(tokens, (0, 1))  # one more column, for the step
    counted = {}
    for batches in (1, 2, 4, 8, 16):
        stage = Stage(rank, Clock())
        all_forward_then_all_backward(stage, x, target, batches)
        counted[batches] = share_idle(from_all_ranks(stage.clock.steps))  # @inspect counted[batches]
    assert counted == {b: bubble(ranks, b) for b in counted}, \
        "For each number of microbatches, the counted bubble is that of the formula."
    assert [*counted.values()] == [Fraction(3, n) for n in (4, 5, 7, 11, 19)], \
        "With 1, 2, 4, 8 and 16 microbatches, ranks wait in 3 of 4, 5, 7, 11 and 19 steps."

    def shares(stages: int, microbatches: int) -> dict[str, float]:
        waiting = float(bubble(stages, microbatches))
        return {"working": 1 - waiting, "waiting": waiting}

    grid = explore(shares, over={"stages": [2, 4, 8, 16, 32], "microbatches": [1, 2, 4, 8, 16, 32, 64, 128]},
        at={"stages": 4, "microbatches": 4}, kind="stack", unit="%",
        do="Set `16` stages. How many microbatches does it take until only about a tenth of the time is lost?",
        see="It takes `128`, eight for each stage. With `64` nearly a fifth is lost.",
        caption="What a rank of a pipeline does with its time.",
        alt="A bar of two parts: the share of steps in which a rank works, and that in which it waits.")  # @hide
    assert grid[16, 64]["waiting"] > 0.18, \
        "With 16 stages and 64 microbatches, nearly a fifth of the time is lost."
    assert 0.1 < grid[16, 128]["waiting"] < 0.11, \
        "With 16 stages and 128 microbatches, about a tenth is lost."
    question(r"""
        A pipeline of `16` stages gets `16` microbatches. Which share of the time does a rank wait?
    """, answer=15 / 31, check=float(bubble(16, 16)), unit="%", within=0.02,
        wrong={"That is the waiting over the work, not over all steps.": 15 / 16},
        hint="In how many steps does a rank work forward, and in how many does it wait?",
        why="Forward a rank works in `16` steps and waits in `15`, and backward it is the same: `15 / (16 + 15)`.")


def scheduled(
    kind: Any, numbers: Iterable[int], stages: int,
    x: Tensor, target: Tensor, batches: int,
) -> list[Stage]:  # @stepover
    """Trains one step by a schedule of PyTorch's; returns this rank's stages, with gradients."""
    clock = Clock()
    mine = [Stage(number, clock) for number in numbers]
    # What comes and goes, and that gradients go back.
    like = x[: len(x) // batches].clone().requires_grad_()
    cpu = torch.device("cpu")
    ends = [
        PipelineStage(s, s.number, stages, cpu, (like,), (like,)) for s in mine
    ]
    given_to = ends if len(ends) > 1 else ends[0]
    schedule = kind(given_to, batches, loss_fn=loss_of)
    given = [x] if mine[0].number == 0 else []
    wanted = {"target": target} if mine[-1].number == stages - 1 else {}
    schedule.step(*given, **wanted)
    return mine


def most_kept(steps: Sequence[Step]) -> int:
    """The largest number of microbatches that had gone forward and not yet backward."""
    change = [1 if s.kind == "F" else -1 for s in steps]
    return max(accumulate(change))


@aside
@requires("ranks=4")
def early_backward_passes_keep_less() -> None:
    """One forward, one backward: the same bubble, and fewer microbatches are kept."""
    note(r"""
        A rank of a [pipeline](#stages_hand_on_activations) has a *stage*, some of the layers. It
        keeps what its layers computed for a *microbatch*, a part of the batch, until that
        microbatch comes back in the backward pass. In the schedule `GPipe` all microbatches go
        forward first [@gpipe]. So with `8` microbatches, each rank keeps `8` of them. Is that
        needed?

        It is not, because the last rank can go backward with the first microbatch at once. The
        schedule `1F1B` does that: as soon as a microbatch comes back, a rank goes on with one
        forward, one backward, one forward, and so on [@narayanan2021]. Before the first one comes
        back, a rank has sent forward as many as there are stages from it to the end, itself
        included: on four ranks, rank 0 has sent `4`, and rank 3 has `1`.

        PyTorch has both schedules, and `scheduled` runs one of them. We compare how many
        microbatches a rank keeps at most, and the *bubble*, the share of steps in which ranks wait:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = torch.randn(2, 256, 32).double()  # @unnoticed: 256 -> 512: what eight microbatches divide
    x, target = F.pad(tokens, (0, 1))  # one more column, for the step
    alone = gradients_alone(ranks, x, target)
    ran = {}
    for name, kind in {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}.items():
        [stage] = scheduled(kind, [rank], ranks, x, target, batches=8)
        grad = gradient_of(stage.linear.weight)
        assert difference(grad, alone[rank]) < ROUNDING, \
            "With either schedule, each stage has the gradient of one process, up to rounding."
        ran[name] = from_all_ranks(stage.clock.steps)
    kept = {name: [*map(most_kept, rows)] for name, rows in ran.items()}  # @inspect kept
    assert kept["GPipe"] == [8, 8, 8, 8], \
        "With GPipe, every rank keeps all 8 microbatches."
    assert kept["1F1B"] == [4, 3, 2, 1], \
        "With 1F1B, a rank keeps as many as there are stages from it to the end."
    bubbles = [share_idle(steps) for steps in ran.values()]  # @inspect bubbles
    assert bubbles == [bubble(ranks, 8)] * 2 == [Fraction(3, 11)] * 2, \
        "With both schedules, ranks wait in 3 of 11 steps."
    figure(plot_schedules(ran),
        caption="What each rank did in each step with eight microbatches, in both schedules.",
        alt=r"""
            Two charts with a row for each rank. Above, all forward passes come before all backward
            passes. Below, after a short start each rank alternates between the two. Both end at the
            same step.
        """)
    misbelief("`1F1B` is faster than GPipe.", rf"""
        With equally many microbatches it is not: both take
        {max(s.number for row in ran['1F1B'] for s in row)} steps for eight of them. But it keeps
        less, and so it can afford more microbatches, which make the bubble smaller.
    """)
    question(r"""
        A pipeline has `16` stages and gets `64` microbatches. With `1F1B`, a rank sends forward as
        many microbatches as there are stages from it to the end, before the first one comes back.
        How many microbatches does the first rank keep at most?
    """, answer=min(16, 64), check=16 - 0, unit="microbatches",
        wrong={"That is GPipe.": 64, "That is the last rank.": 1},
        why="The first rank sends forward as many microbatches as there are stages, `16`. Then the first one comes back, and from then on one goes for each that comes.")


@aside
@requires("linux, ranks=4")
def more_pieces_wait_less() -> None:
    """Two pieces of the model on each rank halve the wait, and send more than twice as much."""
    note(r"""
        In a [pipeline](#stages_hand_on_activations) each of four ranks has some layers in a row,
        and *microbatches*, parts of the batch, pass from rank to rank. The last rank waits until
        the first microbatch has passed the three ranks before it. If their pieces of the model were
        half as long, it would wait half as long. So cut the model into eight pieces, and give each
        rank two: rank 0 the first and the fifth, rank 1 the second and the sixth, and so on. That
        is *interleaving* [@narayanan2021].

        Count in steps of one piece and one microbatch, with `8` microbatches. Forward, a rank works
        in `2 * 8 = 16` steps, because each microbatch passes it twice. It waits in `3` steps, as
        without interleaving, but these are half as long. Backward it is the same. So the share of
        steps in which ranks wait, the *bubble*, is `3/19`. With one piece on each rank it is
        `3/11`. In general, with $v$ pieces on each of $G$ ranks and $\mu$ microbatches, a multiple
        of $G$, it is

        $$
        \frac{G - 1}{v\mu + G - 1}
        $$

        `bubble` computes that. PyTorch has the schedule, `scheduled` runs it, and `share_idle`
        counts the steps in which ranks wait:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = torch.randn(2, 256, 32).double()  # @unnoticed: 256 -> 512: what eight microbatches divide
    x, target = F.pad(tokens, (0, 1))  # one more column, for the step
    alone = gradients_alone(2 * ranks, x, target)
    with Wire() as wire:
        mine = scheduled(
            ScheduleInterleaved1F1B, [rank, rank + ranks], 2 * ranks,
            x, target, batches=8,
        )
    for stage in mine:
        grad = gradient_of(stage.linear.weight)
        assert difference(grad, alone[stage.number]) < ROUNDING, \
            "Each piece has the gradient of one process, up to rounding."
    steps = from_all_ranks(mine[0].clock.steps)
    waiting = share_idle(steps)  # @inspect waiting
    assert waiting == bubble(ranks, 8, pieces=2) == Fraction(3, 19), \
        "With two pieces on each rank, ranks wait in 3 of 19 steps."
    before = bubble(ranks, 8)
    lost = (waiting / (1 - waiting)) / (before / (1 - before))  # @inspect lost as times
    assert lost == Fraction(1, 2), \
        "For the same work, a rank waits half as long as with one piece: 3/16 in place of 3/8."
    note(r"""
        The price is traffic. What passes from a piece to the next is sent, forward as results and
        backward as gradients. Between four pieces there are three such cuts, and between eight
        there are seven. More microbatches are under way at a time, too, so a rank keeps more:
    """)
    cuts = sum(from_all_ranks(wire.sent)) / (2 * x.nbytes)  # @inspect cuts
    assert 7 < cuts < 7.2, \
        "All tokens cross 7 cuts, forward and backward; headers and set-up add a little."
    kept = [most_kept(row) for row in steps]  # @inspect kept
    assert kept == [11, 9, 7, 5], \
        "The first rank keeps 11 results of its pieces at a time, the last one 5."
    question(r"""
        In a pipeline of `16` ranks, each has `8` pieces of the model. They get `16` microbatches.
        Which share of the time does a rank wait?
    """, answer=15 / (8 * 16 + 15), check=float(bubble(16, 16, pieces=8)), unit="%", within=0.02,
        wrong={"That is with one piece on each rank.": 15 / 31},
        why="In steps of a piece, a rank works in `8 * 16` and waits in `15`, forward as backward: `15 / (128 + 15)`.")
