"""Pipelines: each rank has some of the layers, and microbatches pass through the ranks in turn."""
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from wire import Wire, from_all_ranks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .collectives import difference
from .drawings import plot_schedules
from .tensor_parallel import ROUNDING


def pipelines() -> None:
    """Pipelines."""
    note(r"""
        A model can also be cut between its layers, one piece for each GPU. This causes little
        traffic, so the GPUs may be far from each other. But each of them waits for its input, and
        so the pipeline has a *bubble*. This part counts what GPUs send, and how long they wait.
    """)
    stages_hand_on_activations()
    ranks_wait_for_each_other()
    microbatches_fill_the_pipeline()
    early_backward_passes_keep_less()


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


class LongStage(Stage):  # @hide
    """A stage of several layers."""

    def __init__(self, number: int, layers: int) -> None:
        super().__init__(number)
        self.layers = nn.Sequential(*(Stage(number) for _ in range(layers)))

    def forward(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        y: Tensor = self.layers(x)
        return y


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
        A model has too many layers for one GPU. So each of four GPUs, or *ranks*, keeps a few
        consecutive layers, a *stage*, and sends its outputs to the rank with the next stage. This
        is a *pipeline*:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    x, target = torch.randn(2, 256, 32).double()  # 256 tokens each  # @hide
    whole = Stage(rank)  # @hide
    run_all_forward_then_all_backward(whole, x, target, batches=1)  # @hide
    way = timetable(from_all_ranks(whole.log))  # @hide
    assert [[step.number for step in row] for row in way] == [[r + 1, 2 * ranks - r] for r in range(ranks)], \
        "A batch goes forward through ranks 0 to 3, and backward through ranks 3 to 0, one rank in each step."  # @hide
    figure(plot_schedules({"batch 1 in a pipeline of four ranks": way}),
        caption=r"""
            A batch runs forward through all four stages, and then backward in the reverse order,
            one step for each pass. Only one rank works at a time.
        """,
        alt=r"""
            A row for each rank over eight steps. Forward boxes form a staircase from the first rank
            down to the last, and backward boxes one from the last back to the first.
        """)
    note(r"""
        How much does a rank send? By hand, take two stages, and a batch of $3$ tokens with $2$
        elements each:

        - In the forward pass, rank 0 sends its outputs for all tokens to rank 1: `3 * 2 = 6`
          values.
        - In the backward pass, rank 1 sends the gradient of each of these values to rank 0: again
          $6$ values.

        No weights are sent, because each layer runs on one rank only. The number of layers in a
        stage does not change the traffic, because what one layer passes to the next inside a stage
        stays on the rank.

        If the whole batch goes through at once, only one rank works at a time. So the batch is cut
        into *microbatches*: when a rank has sent its outputs for one microbatch, it starts the
        next. That does not change the number of bytes. In the simplest schedule, all microbatches
        run forward first, and then all run backward [@gpipe].

        `run_all_forward_then_all_backward` does this with four ranks, for this rank's `stage`, a
        single layer, and a batch `x` of `256` tokens. `Wire` counts the bytes that this rank sends,
        and `wire.to` lists them by receiver. `batches_sent` divides them by the bytes of `x`, and
        rounds headers away:
    """)
    stage = Stage(rank)  # @hide
    with Wire() as wire:
        run_all_forward_then_all_backward(stage, x, target, batches=4)
    batches_sent = [round(to_rank / x.nbytes, 1) for to_rank in wire.to]  # @inspect batches_sent
    assert batches_sent == [float(abs(r - rank) == 1) for r in range(ranks)], \
        "A rank sends the bytes of one batch to each neighbor, and nothing to other ranks."
    same = is_gradient(stage.gradient, gradients_alone(ranks, x, target)[rank])  # @hide
    assert same, \
        "Each stage has the gradient that one process with all stages computes, up to rounding."
    note(r"""
        So in a training step, a rank sends at most two tensors of this size, one forward and one
        backward. Tensor parallelism needs
        [four all-reduces in every block](#a_block_needs_four_all_reduces), and each of them sends
        at least one. That is why a pipeline can run over slower links.
    """)
    sizes = []  # @hide
    for layers in (5, 10):  # @hide
        long_stage = LongStage(rank, layers)
        with Wire() as long_wire:
            run_all_forward_then_all_backward(long_stage, x, target, batches=16)
        sizes.append(from_all_ranks(long_wire.sent)[1])  # of a rank in the middle
    question(r"""
        Somebody moves layers from rank to rank, so that a stage in the middle has `10` layers
        instead of `5`. It still gets `16` microbatches of `8192` tokens, with `16384` elements of
        `2` bytes per token. By what factor does the number of bytes that its rank sends in a
        training step change?
    """, answer=1.0, check=round(sizes[1] / sizes[0], 1), unit="times",
        wrong={"What passes between layers inside a stage is not sent.": 2},
        hint="What does a rank send to the next rank, and what to the previous one?",
        why=r"""
            The rank sends the outputs of its last layer forward, and the gradient of its first
            layer's input backward. These are the same number of values for `5` layers and for `10`.
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

        So the whole batch takes `3 + 4 + 4 + 3 = 14` steps. Each rank works in `4 + 4 = 8` of them,
        so it waits in `14 - 8 = 6`. A single rank never waits, but does the work of all four:
        `4 * 8 = 32` steps. So the pipeline is only `32 / 14`, about {32 / 14:.1f} times as fast.

        Four ranks run the batch. `stage.log` lists this rank's passes in the order in which they
        ran, and `from_all_ranks` collects the logs of all ranks. `timetable` measures no time: it
        gives each pass one step, as soon as its rank is free and its input has arrived. `length` is
        the last step, and `working` counts this rank's passes:
    """)
    x, target = torch.randn(2, 256, 32).double()  # @unnoticed: 256: any number of tokens  # @hide
    stage = Stage(dist.get_rank())  # @hide
    run_all_forward_then_all_backward(stage, x, target, batches=4)
    steps = timetable(from_all_ranks(stage.log))
    length = max(step.number for row in steps for step in row)  # @inspect length as steps
    assert length == 3 + 4 + 4 + 3, "The pipeline takes 14 steps."
    working = len(stage.log)  # @inspect working as steps
    waiting = Fraction(length - working, length)  # @inspect waiting
    assert waiting == Fraction(6, 14) == Fraction(3, 7), \
        "Ranks wait in 6 of 14 steps, a share of 3/7."
    assert waiting == idle_share(steps), "This is the share of all ranks together."  # @hide
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
    note(r"""
        So with four stages and four microbatches, each rank is idle in `3/7` of the steps.
        [More microbatches](#microbatches_fill_the_pipeline) lower this share. A backward pass takes
        about twice as long as a forward pass, but the share stays `3/7`: then a rank works for
        `4 + 2 * 4 = 12` steps and waits for `3 + 2 * 3 = 9`.
    """)
    assert Fraction(3 + 2 * 3, 12 + 9) == waiting, \
        "With backward passes of two steps, the share is the same."  # @hide
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
        In a [pipeline](#ranks_wait_for_each_other) the last rank waits for its first input, and
        rank 0 waits for its first gradient. The ranks between them wait for both. The share of all
        steps in which ranks wait is called the *bubble*. Can it be made small?

        Take four stages, and suppose that a stage needs one step for a microbatch. Count the steps
        of the forward passes:

        - With `1` microbatch, a rank works in `1` step and waits in `3`. The bubble is `3/4`.
        - With `4` microbatches, it works in `4` steps and waits in `3`. The bubble is `3/7`.
        - With `8` microbatches, it works in `8` steps and waits in `3`. The bubble is `3/11`.

        In the backward passes, the numbers are the same.

        So the bubble shrinks, because only the number of working steps grows with the number of
        microbatches. The wait stays three steps: rank 3 waits for the first microbatch, and rank 0
        waits while the last one passes the other ranks. With $G$ stages and $\mu$ microbatches, the
        bubble is

        [@eq:bubble]: $$
        \frac{\text{steps of waiting}}{\text{all steps}} = \frac{G - 1}{\mu + G - 1} .
        $$

        Four ranks check it with up to `16` microbatches. `timetable` gives each pass its step, and
        `idle_share` is the share of steps in which ranks wait:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    x, target = torch.randn(2, 64, 32).double()  # @unnoticed: 64: at least as many as microbatches  # @hide
    for microbatches in (1, 2, 4, 8, 16):
        stage = Stage(rank)
        run_all_forward_then_all_backward(stage, x, target, microbatches)
        steps = timetable(from_all_ranks(stage.log))
        waiting = idle_share(steps)  # of all steps  # @inspect waiting
        assert waiting == Fraction(3, microbatches + 3), \
            "With four stages, the bubble is 3 / (microbatches + 3)."
        assert waiting == bubble(ranks, microbatches), \
            "The bubble is that of the formula for any number of stages."  # @hide
    assert waiting < Fraction(1, 5), \
        "With 16 microbatches, ranks wait in less than a fifth of the time."  # @hide
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
        still=plot_schedules({ALTERNATING: timetable([schedule_passes(ALTERNATING, r, ranks, 8) for r in range(ranks)])}),
        do="With four stages, find a way to lose less than a fifth of the time. Then change the schedule: which number changes, and which does not?",
        see=rf"""
            With `16` microbatches, {float(100 * bubble(4, 16)):.1f} % of the time is lost, in both
            schedules. But if all forward passes come first, rank 0 keeps all `16` microbatches. If
            forward and backward passes alternate, it keeps `4`.
        """, caption=r"""
            What each rank does in each step, with the numbers of the microbatches. On the right is
            the number of microbatches whose activations the rank keeps at the red line: those that
            it has run forward, but not yet backward. In the schedule "one forward, one backward", a
            rank runs one pass of each kind in turn, from its first backward pass on.
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
        A pipeline of four stages runs a batch in `4` microbatches. Somebody cuts the same batch
        into `8` microbatches of half the size, so that each step takes half the time. How long does
        a rank now wait, compared with before?
    """, answer=0.5, check=float(bubble(4, 8) * (8 + 3) / 2 / (bubble(4, 4) * (4 + 3))), unit="times",
        wrong={"It waits for the same number of steps, but each step is shorter.": 1},
        hint="How many steps does a rank wait, and how long is a step?",
        why=r"""
            In each direction a rank waits three steps, before and after. But a step takes half the
            time. The time in which the rank works stays the same.
        """)


def run_schedule(
    kind: Any, x: Tensor, target: Tensor, batches: int
) -> Stage:  # @stepover
    """Runs one training step with a schedule of PyTorch's; returns this rank's stage, with its gradient and log."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    stage = Stage(rank)
    # What comes and goes, and that gradients go back.
    like = x[: len(x) // batches].clone().requires_grad_()
    cpu = torch.device("cpu")
    end = PipelineStage(stage, rank, ranks, cpu, (like,), (like,))
    stage.log.clear()  # of what PyTorch tried
    schedule = kind(end, batches, loss_fn=F.mse_loss)
    given = [x] if rank == 0 else []
    wanted = {"target": target} if rank == ranks - 1 else {}
    schedule.step(*given, **wanted)
    return stage


def most_kept(steps: Sequence[Step]) -> int:
    """The largest number of microbatches that had gone forward and not yet backward."""
    change = [1 if s.kind == "F" else -1 for s in steps]
    return max(accumulate(change))


@aside
@requires("ranks=4")
def early_backward_passes_keep_less() -> None:
    """In the schedule 1F1B, a rank of a pipeline keeps no more microbatches than there are ranks."""
    note(r"""
        In a [pipeline](#stages_hand_on_activations) each rank has a few consecutive layers, and the
        batch passes through the ranks in small parts, the *microbatches*. From a microbatch's
        forward pass to its backward pass, a rank keeps its activations. In the `GPipe` schedule all
        microbatches go forward first [@gpipe], so each rank keeps the activations of all of them.
        Is that necessary?

        No, because a microbatch can go backward as soon as it has reached the last rank, and its
        activations are then freed. The schedule *one forward, one backward*, `1F1B`, does this
        [@narayanan2021]. Of $R$ ranks, counted from $0$, rank $r$ first runs $R - r$ microbatches
        forward: one for itself, and one for each rank after it. Then it runs one backward, one
        forward, and so on. So it never keeps more than $R - r$.

        By hand, take two ranks and three microbatches. F1 is the forward pass of the first one, and
        B1 its backward pass. A forward pass adds a microbatch to those that the rank keeps, and a
        backward pass removes one:

        | | passes | kept after each | at most |
        |---|---|---|---|
        | `GPipe`, both ranks | F1 F2 F3 B1 B2 B3 | `1 2 3 2 1 0` | `3` |
        | `1F1B`, rank 0 | F1 F2 B1 F3 B2 B3 | `1 2 1 2 1 0` | `2 - 0 = 2` |
        | `1F1B`, rank 1, the last | F1 B1 F2 B2 F3 B3 | `1 0 1 0 1 0` | `2 - 1 = 1` |

        Now four ranks and eight microbatches. `run_schedule` runs a training step with one of
        PyTorch's schedules, and logs the passes of this rank in order. As in the table, each `"F"`
        adds one and each `"B"` removes one:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    x, target = torch.randn(2, 256, 32).double()  # @unnoticed: 256 -> 512: what eight microbatches divide  # @hide
    expected = gradients_alone(ranks, x, target)  # @hide
    steps, kept, waiting = {}, {}, {}  # @hide
    for name, kind in (("GPipe", ScheduleGPipe), ("1F1B", Schedule1F1B)):
        stage = run_schedule(kind, x, target, batches=8)
        changes = [1 if done.kind == "F" else -1 for done in stage.log]
        most = max(accumulate(changes))  # the largest running sum
        kept[name] = from_all_ranks(most)  # by rank  # @inspect kept[name]
        steps[name] = timetable(from_all_ranks(stage.log))  # @hide
        waiting[name] = idle_share(steps[name])  # @hide
        assert stage.log == schedule_passes({"GPipe": ALL_FORWARD, "1F1B": ALTERNATING}[name], rank, ranks, 8), \
            "Each rank ran the passes that the picture of schedules shows, in that order."  # @hide
        assert kept[name] == [most_kept(row) for row in steps[name]], \
            "The explorable picture counts the same number of microbatches."  # @hide
        assert is_gradient(stage.gradient, expected[rank]), \
            "With either schedule, each stage has the gradient of one process, up to rounding."  # @hide
    assert kept["GPipe"] == [8, 8, 8, 8], \
        "With GPipe, every rank keeps all 8 microbatches."
    assert kept["1F1B"] == [4, 3, 2, 1], \
        "With 1F1B, ranks 0 to 3 keep 4, 3, 2 and 1 microbatches."
    assert waiting["GPipe"] == waiting["1F1B"] == Fraction(6, 22), \
        "With both schedules, ranks wait in 6 of 22 steps."  # @hide
    assert [*waiting.values()] == [bubble(ranks, 8)] * 2, \
        "Both bubbles are that of the formula."  # @hide
    by_hand = [[most_kept([Step(0, *p) for p in schedule_passes(way, r, 2, 3)]) for r in (0, 1)]
               for way in (ALL_FORWARD, ALTERNATING)]  # @hide
    assert by_hand == [[3, 3], [2, 1]], \
        "With two ranks and three microbatches, the numbers are those of the table."  # @hide
    figure(plot_schedules(steps),
        caption="What each rank did in each step with eight microbatches, in both schedules.",
        alt=r"""
            Two charts with a row for each rank. Above, all forward passes come before all backward
            passes. Below, after a short start each rank alternates between the two. Both end at the
            same step.
        """)
    note(r"""
        So with GPipe a rank keeps as many microbatches as the batch has, and with `1F1B` no more
        than the pipeline has ranks.
    """)
    misbelief("`1F1B` is faster than GPipe.", rf"""
        Not with the same number of microbatches. If each pass takes one step, both schedules need
        {max(s.number for row in steps['1F1B'] for s in row)} steps for eight, as in the picture.
        What `1F1B` saves is memory.
    """)
    question(r"""
        A pipeline has `16` stages. It gets `64` microbatches instead of `32`. By what factor does
        the number of microbatches that the first rank has to keep change, with GPipe and with
        `1F1B`? Give two numbers.
    """, answer=[64 / 32, min(16, 64) / min(16, 32)],
        check=[len(schedule_passes(ALL_FORWARD, 0, 16, 64)) / len(schedule_passes(ALL_FORWARD, 0, 16, 32)), 1.0],
        hint="How many microbatches go forward before the first one comes back?",
        why=r"""
            With GPipe all microbatches go forward first. With `1F1B` the first rank sends one
            microbatch for each stage, `16`, before the first one comes back. From then on, one
            comes back for each one that is sent.
        """)
