"""Pipelines: each rank has some of the layers, and microbatches pass through the ranks in turn."""
from collections import deque
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
from wire import Wire, from_all_ranks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .collectives import difference
from .drawings import plot_schedules
from .tensor_parallel import ROUNDING


def pipelines() -> None:
    """Pipelines."""
    note(r"""
        A model can also be cut between its layers. Each rank has a *stage*, a few consecutive
        layers, and sends their outputs to the next rank. This causes little traffic, so the GPUs of
        a pipeline may be far from each other. But a stage has nothing to do until its input has
        arrived. This part counts how long the stages wait.
    """)
    stages_hand_on_activations()
    ranks_wait_for_each_other()
    microbatches_fill_the_pipeline()
    early_backward_passes_keep_less()
    more_pieces_wait_less()


class Pass(NamedTuple):
    """What a rank did once: forward (F) or backward (B), through which stage, with which microbatch."""

    kind: str
    stage: int
    batch: int


class Step(NamedTuple):
    """A pass of a rank, with the number of the time slot in which it ended."""

    number: int
    kind: str
    stage: int
    batch: int


class Stage(nn.Module):
    """A layer of 32 by 32 weights that notes each pass through it in a log."""

    def __init__(self, number: int, log: list[Pass] | None = None) -> None:
        super().__init__()
        torch.manual_seed(number)  # so that every rank can make any stage
        self.linear = nn.Linear(32, 32, bias=False).double()
        self.number, self.log = number, [] if log is None else log

    def note_pass(self, kind: str) -> None:
        """Adds a pass of this kind to the log, with the next microbatch that has not had one."""
        batch = sum(p.kind == kind and p.stage == self.number for p in self.log)
        self.log.append(Pass(kind, self.number, batch))

    def forward(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        y = torch.tanh(self.linear(x))
        self.note_pass("F")
        if y.requires_grad:
            y.register_hook(lambda grad: self.note_pass("B"))
        return y

    @property
    def gradient(self) -> Tensor | None:
        """The gradient of its weights."""
        return self.linear.weight.grad


def gradients_alone(
    stages: int, x: Float[Tensor, "t d"], target: Float[Tensor, "t d"]
) -> list[Tensor]:  # @stepover
    """The gradient of each stage's weights, from one process and the whole batch."""
    model = nn.Sequential(*(Stage(i) for i in range(stages)))
    loss = F.mse_loss(model(x), target)
    return [*torch.autograd.grad(loss, [*model.parameters()])]


def is_gradient(ours: Tensor | None, expected: Tensor) -> bool:
    """Whether a gradient is there and is the expected one, up to rounding."""
    return ours is not None and difference(ours, expected) < ROUNDING


def run_all_forward_then_all_backward(
    stage: Stage, x: Float[Tensor, "t d"],
    target: Float[Tensor, "t d"], batches: int,
) -> None:
    """Runs this rank's stage on all microbatches, forward and then backward, as GPipe does."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    inputs, outputs = [], []
    for microbatch in x.chunk(batches):
        received = microbatch.clone()
        if rank > 0:
            dist.recv(received, rank - 1)
        inputs.append(received.requires_grad_())
        outputs.append(stage(received))
        if rank < last:
            dist.send(outputs[-1].detach(), rank + 1)
    for given, y, wanted in zip(inputs, outputs, target.chunk(batches)):
        if rank < last:
            gradient = torch.empty_like(y)
            dist.recv(gradient, rank + 1)
            y.backward(gradient)
        else:
            (F.mse_loss(y, wanted) / batches).backward()
        if rank > 0 and given.grad is not None:
            dist.send(given.grad, rank - 1)


def timetable(logs: Sequence[Sequence[Pass]]) -> list[list[Step]]:
    """When each pass ends if it begins as soon as its rank is free and its input is there.

    `logs` are the passes of each rank in their order; a pass takes one step.
    """
    last = max(p.stage for log in logs for p in log)
    ends: dict[Pass, int] = {}
    free, steps = [0] * len(logs), [list[Step]() for _ in logs]
    queues = [deque(log) for log in logs]
    while any(queues):
        for rank, queue in enumerate(queues):
            while queue:
                kind, stage, batch = queue[0]
                if kind == "F":  # needs what the stage before has computed
                    need = Pass("F", stage - 1, batch) if stage > 0 else None
                else:  # needs the gradient from the next stage
                    need = Pass("F", stage, batch)
                    if stage < last:
                        need = Pass("B", stage + 1, batch)
                if need is not None and need not in ends:
                    break
                begin = max(free[rank], ends[need] if need else 0)
                free[rank] = ends[queue.popleft()] = begin + 1
                steps[rank].append(Step(free[rank], kind, stage, batch))
    return steps


def idle_share(steps: Sequence[Sequence[Step]]) -> Fraction:
    """The share of all ranks' steps in which a rank has nothing to do."""
    last = max(step.number for rank in steps for step in rank)
    busy = sum(len(rank) for rank in steps)
    return 1 - Fraction(busy, last * len(steps))


@requires("linux, ranks=4")
def stages_hand_on_activations() -> None:
    """A pipeline sends activations and their gradients between stages, and no weights."""
    note(r"""
        A model has too many layers for one GPU. So each of four ranks keeps some of them, a
        *stage*, and sends its outputs to the rank with the next stage. This is a *pipeline*. If the
        whole batch went through at once, only one rank would work at a time. So the batch is cut
        into *microbatches*: as soon as a rank has sent on one microbatch, it takes the next. In the
        simplest schedule, all microbatches go forward first, and then all go backward [@gpipe].

        What does a rank send? Take two stages, and $3$ tokens of $2$ elements each. In the forward
        pass, rank 0 sends its outputs for these tokens, `3 * 2` values. In the backward pass, rank
        1 sends the gradient of each of these values, again `3 * 2`. The weights stay where they
        are, because each layer runs on one rank only. The number of layers in a stage does not
        matter, because what passes between these layers stays on the rank.

        Four stages of one layer each get a batch of `256` tokens in `4` microbatches. The first and
        the last rank have one neighbor, the others two. A rank sends outputs to the next rank and
        gradients to the previous rank, in four messages each. Four messages together have the bytes
        of the whole batch. `batches_sent` is the number of bytes that a rank sends, divided by the
        bytes of the batch:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 256, 32).double()  # 256 tokens each
    stage = Stage(rank)
    with Wire() as wire:
        run_all_forward_then_all_backward(stage, x, target, batches=4)
    neighbors = (rank > 0) + (rank < ranks - 1)  # @inspect neighbors
    batches_sent = wire.sent / x.nbytes  # @inspect batches_sent
    assert round(batches_sent, 1) == neighbors, \
        "To each neighbor, a rank sends the bytes of one batch, plus a few headers."
    expected = gradients_alone(ranks, x, target)
    assert is_gradient(stage.gradient, expected[rank]), \
        "Each stage has the gradient that one process with all four layers computes, up to rounding."
    question(r"""
        Somebody moves layers from rank to rank, so that a stage in the middle has `10` layers
        instead of `5`. It still gets `16` microbatches of `8192` tokens, with `16384` elements of
        `2` bytes per token. How many bytes does its rank send in a training step, forward and
        backward together?
    """, answer=2 * 16 * 8192 * 16384 * 2, check=(1 + 1) * (16 * 8192) * (2 * 16384), unit="B", within=0.05,
        wrong={"Gradients go back as well.": 16 * 8192 * 16384 * 2, "What passes inside a stage is not sent.": 2 * 2 * 16 * 8192 * 16384 * 2},
        hint="What does a rank send to the next rank, and what to the previous one?",
        why=r"""
            It sends the outputs for all `16 * 8192` tokens forward, and the same number of
            gradients backward: `16384` values of `2` bytes for each token, twice. The number of
            layers in the stage does not matter.
        """)


@requires("ranks=4")
def ranks_wait_for_each_other() -> None:
    """A pipeline of four ranks is not four times as fast, because ranks wait."""
    note(rf"""
        Four ranks have one [stage](#stages_hand_on_activations) each, and a batch passes through
        them in four microbatches. How much faster are they than a single rank with all stages?

        Suppose that a stage needs one *step* for a microbatch, forward or backward. (Here a step is
        a time slot, not a training step.) Follow rank 3, the last one:

        - It waits `3` steps, because the first microbatch has to pass ranks 0, 1 and 2 first.
        - It runs the four microbatches forward and then backward, which takes `4 + 4` steps.
        - The last of them still has to go back through ranks 2, 1 and 0, which takes `3` steps.

        So the whole batch takes `3 + 4 + 4 + 3 = 14` steps. Each rank works in `8` of them and
        waits in `6`. One rank alone would run the passes of all four stages one after another, in
        `4 * 8 = 32` steps. So the pipeline is only `32 / 14`, about {32 / 14:.1f} times as fast.

        `log` lists this rank's passes in the order in which they ran. `timetable` lets each pass
        begin as soon as its rank is free and its input has arrived, and `idle_share` returns the
        share of steps in which ranks wait:
    """)
    rank = dist.get_rank()
    x, target = torch.randn(2, 256, 32).double()  # @unnoticed: 256: any number of tokens
    log: list[Pass] = []
    run_all_forward_then_all_backward(Stage(rank, log), x, target, batches=4)
    logs = from_all_ranks(log)
    steps = timetable(logs)
    length = max(step.number for row in steps for step in row)  # @inspect length as steps
    assert length == 3 + 4 + 4 + 3, "The pipeline takes 14 steps."
    assert idle_share(steps) == Fraction(6, 14), \
        "Ranks wait in 6 of 14 steps, 3/7 of the time."
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
    question(r"""
        Two ranks with one stage each get a single microbatch. A stage needs one step forward and
        one backward. In what share of the steps does a rank wait?
    """, answer=1 / 2, check=float(bubble(2, 1)), unit="%", within=0.02,
        hint="Write down the four steps: forward on rank 0, then …",
        why=r"""
            Forward on rank 0, forward on rank 1, backward on rank 1, backward on rank 0: four
            steps, and each rank works in two of them. With one microbatch, only one rank works at a
            time.
        """)


ALL_FORWARD, ALTERNATING = "all forward, then all backward", "one forward, one backward"


def schedule_passes(
    schedule: str, rank: int, stages: int, batches: int
) -> list[Pass]:
    """The passes of a rank in order, as a list; `ahead` is how many microbatches go forward before the first goes backward."""
    ahead = batches if schedule == ALL_FORWARD else min(batches, stages - rank)
    passes = [Pass("F", rank, batch) for batch in range(ahead)]
    for batch in range(batches):
        passes.append(Pass("B", rank, batch))
        if ahead + batch < batches:
            passes.append(Pass("F", rank, ahead + batch))
    return passes


def bubble(stages: int, batches: int) -> Fraction:
    """The share of steps in which a rank waits, by the formula."""
    return Fraction(stages - 1, batches + stages - 1)


@requires("ranks=4")
def microbatches_fill_the_pipeline() -> None:
    """The bubble shrinks as the number of microbatches grows."""
    note(r"""
        In a [pipeline](#ranks_wait_for_each_other) a rank waits for its first input, and again for
        the first gradient. The share of all steps in which ranks wait is called the *bubble*. Can
        the bubble be made small?

        Take four stages, and suppose that a stage needs one step for one microbatch. With `8`
        microbatches, each rank works in `8` forward steps. The last rank begins three steps after
        the first, so the forward passes take `8 + 3 = 11` steps, and each rank waits in `3` of
        them. The backward pass takes the same number of steps, so the bubble is
        `(3 + 3) / (11 + 11) = 3/11`. With $G$ stages and $\mu$ microbatches it is

        [@eq:bubble]: $$
        \frac{\text{steps of waiting}}{\text{all steps}} = \frac{G - 1}{\mu + G - 1} .
        $$

        With more microbatches the bubble shrinks, because in each direction a rank still waits in
        $G-1$ steps, but works in more. Here are pipelines on four ranks, with `1` to `16`
        microbatches:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 64, 32).double()  # @unnoticed: 64: at least as many as microbatches
    counted = {}
    for batches in (1, 2, 4, 8, 16):
        stage = Stage(rank)
        run_all_forward_then_all_backward(stage, x, target, batches)
        steps = timetable(from_all_ranks(stage.log))
        counted[batches] = idle_share(steps)  # @inspect counted[batches]
    assert counted == {b: bubble(ranks, b) for b in counted}, \
        "For each number of microbatches, the counted bubble equals that of the formula."
    assert [*counted.values()] == [Fraction(3, n) for n in (4, 5, 7, 11, 19)], \
        "With 1, 2, 4, 8 and 16 microbatches, ranks wait in 3 of 4, 5, 7, 11 and 19 steps."  # @hide
    assert stage.log == schedule_passes(ALL_FORWARD, rank, ranks, 16), \
        "The passes of the picture are those that this rank ran with 16 microbatches."  # @hide

    def schedule_at(stages: int, microbatches: int, schedule: str, time: int) -> list[Any]:  # @hide
        steps = timetable([schedule_passes(schedule, r, stages, microbatches) for r in range(stages)])
        now = [{s.number: f"{s.kind}{s.batch + 1}" for s in row}.get(time, "") for row in steps]
        return [round(float(100 * idle_share(steps)), 3), *now] if any(now) else []  # nothing after the end

    grid = explore(schedule_at, over={
        "stages": [2, 4, 8], "microbatches": [1, 2, 4, 8, 16], "schedule": [ALL_FORWARD, ALTERNATING],
        "time": range(1, 47),
    }, at={"stages": 4, "microbatches": 8, "schedule": ALTERNATING, "time": 12}, module="pictures/schedule.js",
        still=plot_schedules({ALL_FORWARD: steps}),
        do="With four stages, find a way to lose less than a fifth of the time. Then change the schedule: which number changes, and which does not?",
        see=rf"""
            With `16` microbatches, {float(100 * bubble(4, 16)):.1f} % of the time is lost, in both
            schedules. But if all forward passes come first, rank 0 keeps all `16` microbatches. If
            forward and backward passes alternate, it keeps `4`.
        """, caption=r"""
            What each rank does in each step, with the numbers of the microbatches. The numbers on
            the right count the microbatches that, at the red line, the rank has run forward but not
            yet backward. The rank keeps their activations. In the schedule "one forward, one
            backward" a rank alternates as soon as it has a gradient.
        """, alt=r"""
            A row for each rank over the steps, with a box for each forward and each backward pass,
            and gaps where the rank waits.
        """)  # @hide
    lost = {schedule: grid[4, 16, schedule, 1][0] for schedule in (ALL_FORWARD, ALTERNATING)}  # @hide
    assert lost == dict.fromkeys(lost, round(300 / 19, 3)), \
        "With 4 stages and 16 microbatches, 15.8 % of the time is lost in either schedule."  # @hide
    first = {schedule: schedule_passes(schedule, 0, 4, 16) for schedule in lost}  # @hide
    assert [most_kept([Step(0, *p) for p in passes]) for passes in first.values()] == [16, 4], \
        "Rank 0 then keeps 16 microbatches if all forward passes come first, and 4 if the passes alternate."  # @hide
    question(r"""
        A batch has `16` sequences, and each is one microbatch. A pipeline of `16` stages is made
        twice as long, with `32` GPUs and `32` stages of half as many layers each. How many times as
        fast is a training step then?
    """, answer=(16 + 15) / ((16 + 31) / 2), check=float((1 - bubble(32, 16)) * 32 / ((1 - bubble(16, 16)) * 16)),
        unit="times", within=0.02,
        wrong={"Ranks wait for a larger share of the time.": 2},
        hint="How many time slots does a direction take before and after the change, and how long is a slot?",
        why=r"""
            Before, a direction takes `16 + 15 = 31` slots. Afterwards it takes `16 + 31 = 47`
            slots, each half as long. These take as long as `23.5` slots before. Twice as many GPUs
            are only `31 / 23.5`, about `1.3` times as fast, because most of the time is waiting.
        """)


def run_schedule(
    kind: Any, numbers: Iterable[int], stages: int,
    x: Tensor, target: Tensor, batches: int,
) -> list[Stage]:  # @stepover
    """Runs one training step with a schedule of PyTorch's; returns this rank's stages, with their gradients and a shared log."""
    log: list[Pass] = []
    own = [Stage(number, log) for number in numbers]
    # What comes and goes, and that gradients go back.
    like = x[: len(x) // batches].clone().requires_grad_()
    cpu = torch.device("cpu")
    ends = [
        PipelineStage(s, s.number, stages, cpu, (like,), (like,)) for s in own
    ]
    log.clear()  # of what PyTorch tried
    given_to = ends if len(ends) > 1 else ends[0]
    schedule = kind(given_to, batches, loss_fn=F.mse_loss)
    given = [x] if own[0].number == 0 else []
    wanted = {"target": target} if own[-1].number == stages - 1 else {}
    schedule.step(*given, **wanted)
    return own


def most_kept(steps: Sequence[Step]) -> int:
    """The largest number of microbatches that had gone forward and not yet backward."""
    change = [1 if s.kind == "F" else -1 for s in steps]
    return max(accumulate(change))


@aside
@requires("ranks=4")
def early_backward_passes_keep_less() -> None:
    """One forward, one backward: the same bubble, and fewer microbatches are kept."""
    note(r"""
        A rank of a [pipeline](#stages_hand_on_activations) keeps the activations of a microbatch
        until that microbatch comes back in the backward pass. In the schedule `GPipe` all
        microbatches go forward first [@gpipe]. So with `8` microbatches, each rank keeps the
        activations of `8`. Is that necessary?

        No, because the last rank can run the first microbatch backward at once. The schedule `1F1B`
        does that: as soon as a microbatch comes back, a rank alternates between one forward and one
        backward pass [@narayanan2021]. Rank 3 then keeps a single microbatch. Rank 2 sends a second
        one forward while it waits for the first to come back, and keeps two. Rank 0 keeps `4`, one
        for each stage that a microbatch passes.

        PyTorch has both schedules. `run_schedule` runs one of them on eight microbatches, and
        `timetable` says in which [step](#ranks_wait_for_each_other) each pass ends:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 256, 32).double()  # @unnoticed: 256 -> 512: what eight microbatches divide
    expected = gradients_alone(ranks, x, target)  # @hide
    steps = {}
    for name, kind in {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}.items():
        [stage] = run_schedule(kind, [rank], ranks, x, target, batches=8)
        steps[name] = timetable(from_all_ranks(stage.log))
        assert stage.log == schedule_passes({"GPipe": ALL_FORWARD, "1F1B": ALTERNATING}[name], rank, ranks, 8), \
            "Each rank ran the passes that the picture of schedules shows, in that order."  # @hide
        assert is_gradient(stage.gradient, expected[rank]), \
            "With either schedule, each stage has the gradient of one process, up to rounding."
    kept = {name: [*map(most_kept, rows)] for name, rows in steps.items()}  # @inspect kept
    assert kept["GPipe"] == [8, 8, 8, 8], \
        "With GPipe, every rank keeps all 8 microbatches."
    assert kept["1F1B"] == [4, 3, 2, 1], \
        "With 1F1B, a rank keeps one microbatch for each stage from it to the end."
    bubbles = [idle_share(rows) for rows in steps.values()]  # @inspect bubbles
    assert bubbles == [bubble(ranks, 8)] * 2 == [Fraction(3, 11)] * 2, \
        "With both schedules, ranks wait in 3 of 11 steps."
    figure(plot_schedules(steps),
        caption="What each rank did in each step with eight microbatches, in both schedules.",
        alt=r"""
            Two charts with a row for each rank. Above, all forward passes come before all backward
            passes. Below, after a short start each rank alternates between the two. Both end at the
            same step.
        """)
    misbelief("`1F1B` is faster than GPipe.", rf"""
        With the same number of microbatches it is not: both need
        {max(s.number for row in steps['1F1B'] for s in row)} steps for eight of them. But each rank
        keeps fewer microbatches, and keeps no more of them if a batch has more. So a batch can be
        cut into more microbatches, and this makes the bubble, the share of idle time, smaller.
    """)
    question(r"""
        A pipeline of `16` stages with `1F1B` gets `64` microbatches instead of `32`. By what factor
        does the number of microbatches that the first rank has to keep change?
    """, answer=min(16, 64) / min(16, 32), check=1.0, unit="times",
        wrong={"That is GPipe.": 2},
        hint="What determines how many microbatches are in flight before the first one comes back?",
        why=r"""
            The first rank sends one microbatch forward for each stage, `16`, before the first one
            comes back. From then on, one microbatch comes back for each one that is sent. More
            microbatches need no more memory, and that is the point of `1F1B`.
        """)


@aside
@requires("linux, ranks=4")
def more_pieces_wait_less() -> None:
    """Two pieces of the model on each rank halve the wait, send more and keep more."""
    note(r"""
        In a [pipeline](#ranks_wait_for_each_other) of four ranks, the last one waits until the
        first microbatch has passed the three ranks before it. If their stages were half as long, it
        would wait half as long. Can a rank have short stages and still have all of its layers?

        Yes: cut the model into eight pieces, and give each rank two of them. Rank 0 gets the first
        and the fifth, rank 1 the second and the sixth, and so on. That is *interleaving*
        [@narayanan2021].

        In one step, a rank now runs one microbatch through one piece. Take `8` microbatches. In the
        forward pass, a rank works in `2 * 8 = 16` steps, because each microbatch passes it twice.
        It waits in `3` steps, as without interleaving, but these steps are half as long. So the
        bubble is `3 / (16 + 3)`. With one piece on each rank it is `3 / (8 + 3)`.

        PyTorch has this schedule as well. `run_schedule` runs it, with two pieces on each rank:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 256, 32).double()  # @unnoticed: 256 -> 512: what eight microbatches divide
    with Wire() as wire:
        pieces = run_schedule(
            ScheduleInterleaved1F1B, [rank, rank + ranks], 2 * ranks,
            x, target, batches=8,
        )
    expected = gradients_alone(2 * ranks, x, target)  # @hide
    for piece in pieces:  # @hide
        assert is_gradient(piece.gradient, expected[piece.number]), \
            "Each piece has the gradient of one process, up to rounding."  # @hide
    steps = timetable(from_all_ranks(pieces[0].log))
    waiting = idle_share(steps)  # @inspect waiting
    assert waiting == Fraction(3, 16 + 3), \
        "With two pieces on each rank, ranks wait in 3 of 19 steps."
    note(r"""
        The price is traffic and memory. Between four stages there are three cuts that activations
        and gradients have to cross, and between eight pieces there are seven. A rank also keeps the
        activations of more passes at a time:
    """)
    cuts = sum(from_all_ranks(wire.sent)) / (2 * x.nbytes)  # @inspect cuts
    assert 7 < cuts < 7.2, \
        "All tokens cross 7 cuts, forward and backward; headers and setup add a little."
    kept = [most_kept(row) for row in steps]  # @inspect kept
    assert kept == [11, 9, 7, 5], \
        "The first rank keeps the activations of 11 passes through a piece at a time, the last one 5."
    note(rf"""
        A piece is half a stage. So {kept[0]} passes of a piece keep as much as {kept[0] / 2}
        microbatches, while `1F1B` without interleaving
        [keeps four](#early_backward_passes_keep_less).
    """)
    question(r"""
        Interleaving with two pieces halves the wait. Somebody halves it in another way, with twice
        as many microbatches of half the size. By what factor does the traffic between ranks change
        then, for the same batch?
    """, answer=1.0, check=(2 * 8 * 128) / (8 * 256), unit="times",
        wrong={"Each message is half as large.": 2, "That is interleaving: more cuts.": 7 / 3},
        why=r"""
            The same tokens cross the same cuts, in smaller messages. So microbatches are the
            cheaper way, as long as there are enough sequences in a batch and enough tokens in a
            microbatch to keep a GPU busy.
        """)
