"""What a checkpoint has to hold for a run to go on as before."""
import io
import math
import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from litbook import aside, figure, misbelief, note, question

from .figures import plot_saves
from .measure import message_of
from .models import Stack, linear_batch


def checkpoints() -> None:
    """Checkpoints."""
    note(r"""
        Stop a training run in the middle, load its model and its optimizer, and go on: the run ends
        with different weights. Everything that the next step reads has to be in the file, and that
        is more than model and optimizer.
    """)
    a_long_run_saves_by_the_clock()
    a_resumed_run_needs_all_of_its_state()
    loading_takes_two_steps_and_refuses_objects()


def a_long_run_saves_by_the_clock() -> None:
    """How often to save follows from how often a run fails and how long a save takes."""
    note(r"""
        A long training run fails from time to time, and resumes from the state that it saved last,
        a *checkpoint*. How often should it save?

        First by hand. A run fails every `100` minutes, and a save takes `2`. A failure loses the
        work since the last save, on average half of the time between two saves. What share of its
        time does the run spend on saves and on lost work?

        | a save every | saves | lost work | together |
        |---|---|---|---|
        | `10` minutes | `2 / 10 = 0.2` | `5 / 100 = 0.05` | `0.2 + 0.05 = 0.25` |
        | `20` minutes | `2 / 20 = 0.1` | `10 / 100 = 0.1` | `0.1 + 0.1 = 0.2` |
        | `40` minutes | `2 / 40 = 0.05` | `20 / 100 = 0.2` | `0.05 + 0.2 = 0.25` |

        The best of the three is the one where saves cost the same as lost work. That is so in
        general, if failures are much rarer than saves: with a save of $s$ minutes every $t$
        minutes, and a failure every $m$ minutes, the two shares are $s/t$ and $t/(2m)$. Their
        product does not depend on $t$, and two numbers with a fixed product have the smallest sum
        when they are equal [@young1974]:

        $$
        \frac{s}{t} = \frac{t}{2m} \quad\Rightarrow\quad t = \sqrt{2\,s\,m}
        $$

        Now a real run. In `54` days of training its largest model, the Llama 3 team counted `419`
        unexpected interruptions [@llama3]. Suppose that a save takes `1` minute:
    """)
    by_hand = [round(2 / t + t / 2 / 100, 2) for t in (10, 20, 40)]  # @hide
    assert by_hand == [0.25, 0.2, 0.25], "Of the three intervals, 20 minutes lose least."  # @hide
    # Minutes from one interruption to the next:
    between = 54 * 24 * 60 / 419  # @inspect between as minutes
    save = 1  # minute, assumed
    every = math.sqrt(2 * save * between)  # @inspect every as minutes
    assert 19.2 < every < 19.3, "The best time between two saves is 19 minutes."

    def lost(interval: float) -> float:
        return save / interval + interval / (2 * between)

    share = lost(every)  # @inspect share as %
    assert round(share, 3) == 0.104, \
        "Then saves and lost work cost a tenth of all time."
    note(r"""
        A failure costs more than lost work: somebody has to notice it and to start the run again.
        How long that takes does not depend on how often the run saves, so the best interval stays
        the same. Suppose `10` minutes for each failure:
    """)
    restart = 10  # minutes
    whole = share + restart / between  # @inspect whole as %
    assert round(whole, 3) == 0.158, \
        "With 10 minutes to notice a failure and to start again, a sixth of all time is lost."
    assert 3.09 < between / 60 < 3.10, "There are 3.1 hours between two interruptions."  # @hide
    assert lost(every / 2) > share, "Saving twice as often loses more time."  # @hide
    assert lost(every * 2) > share, "Saving half as often loses more time as well."  # @hide
    minutes = [every * 2 ** (k / 8) for k in range(-24, 25)]  # @hide
    saves = [save / t for t in minutes]  # @hide
    work = [t / 2 / between for t in minutes]  # @hide
    both = [lost(t) for t in minutes]  # @hide
    assert minutes[0] == every / 8, \
        "The picture begins at an eighth of that time."  # @hide
    assert both.index(min(both)) == 24, "No other time loses less."  # @hide
    in_all = [cost + restart / between for cost in both]  # @hide
    assert in_all.index(min(in_all)) == 24, \
        "With the time to start again, the same interval is the best."  # @hide
    assert math.isclose(saves[24], work[24]), \
        "There, saves and lost work cost the same."  # @hide
    figure(plot_saves(minutes, {"saves": saves, "lost work": work, "both": both}, (every, share)),
        caption="Share of its time that a run spends on saves and on lost work, against the minutes between two saves.", alt=r"""
            Three curves against minutes between saves on a logarithmic axis. Saves cost less the
            rarer they are, lost work costs more. Their sum is a wide bowl, whose lowest point is
            marked where the two cross.
        """)
    question(r"""
        Faster storage cuts the time of a save to a quarter. By what factor should the interval
        change, and by what factor does the total cost of saves and lost work change?
    """, answer=[math.sqrt(2 * save / 4 * between) / every,
                 (save / 4 / (every / 2) + every / 2 / 2 / between) / share],
        check=[0.25**0.5, 0.25**0.5],
        hint=r"How does $\sqrt{2\,s\,m}$ change when $s$ is divided by four, and how do the two shares at that $t$?",
        why=r"""
            $t$ grows with the root of $s$, so it is halved. Then lost work, $t/(2m)$, is halved as
            well, and saves cost the same as lost work. So saves that take a quarter of the time
            halve the loss.
        """)


def saved_size(*parts: object) -> int:
    """The bytes of the file that `torch.save` makes of its arguments."""
    file = io.BytesIO()
    torch.save(parts, file)
    return file.tell()


def global_generators() -> list[Tensor]:
    """The states of PyTorch's own random generators: of the CPU, then of each GPU."""
    return [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]


def restore_generators(states: list[Tensor]) -> None:
    """Sets PyTorch's own random generators to these states."""
    torch.set_rng_state(states[0])
    torch.cuda.set_rng_state_all(states[1:])


class Session:
    """A small training run with all that can get lost: weights, optimizer, rate, random numbers."""

    def __init__(self) -> None:
        start = torch.Generator().manual_seed(0)
        self.model = Stack(8, 1, start, between=nn.Dropout(0.1))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.data = torch.Generator().manual_seed(1)
        self.steps = 0

    def advance(self, count: int) -> None:
        """Trains for so many steps; the learning rate falls with each."""
        for _ in range(count):
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 / math.sqrt(1 + self.steps)
            x, y = linear_batch(8, 4, self.data)
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1

    def save(self, parts: Iterable[str]) -> io.BytesIO:
        """Writes the named parts of the run to a file in memory, and returns it."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "steps": self.steps,
            "data": self.data.get_state(),
            "dropout": global_generators(),
        }
        file = io.BytesIO()
        torch.save({part: state[part] for part in parts}, file)
        file.seek(0)
        return file

    def load(self, file: io.BytesIO) -> None:
        """Restores whatever parts the file has."""
        state = torch.load(file, map_location="cpu")
        self.steps = state.get("steps", 0)
        if "model" in state:
            self.model.load_state_dict(state["model"])
        if "optimizer" in state:
            self.optimizer.load_state_dict(state["optimizer"])
        if "data" in state:
            self.data.set_state(state["data"])
        if "dropout" in state:
            restore_generators(state["dropout"])


def drift(parts: Iterable[str]) -> float:
    """Resumes a run from only these parts; returns the largest difference of its final weights from those of a run that was never interrupted."""
    cards = range(torch.cuda.device_count())
    with torch.random.fork_rng(cards):  # dropout draws from the global ones
        whole, first, second = Session(), Session(), Session()
        torch.manual_seed(0)
        whole.advance(20)
        torch.manual_seed(0)
        first.advance(10)
        file = first.save(parts)
        torch.manual_seed(0)
        second.load(file)
        second.advance(10)
    pairs = zip(whole.model.weights, second.model.weights)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@aside
def a_resumed_run_needs_all_of_its_state() -> None:
    """A checkpoint must hold everything that the next step reads."""
    note(r"""
        What has to be saved so that a training run can be stopped and resumed? Everything that the
        next step reads, because otherwise the next step is a different one. Here, on a CPU, that is
        five parts:

        - `model`: the weights;
        - `optimizer`: the averages that Adam keeps;
        - `steps`: the number of steps so far, because the learning rate falls with it, from $0.1$;
        - `data`: the state of the random generator that chooses the batches;
        - `dropout`: the state of the random generator for *dropout*, which sets randomly chosen
          values to zero.

        `drift` trains a small model for `20` steps twice, the second time with a stop after `10`.
        There it saves the named parts, begins a new run, loads them, and trains for `10` more; the
        other parts are reset. It returns the largest difference between the weights of the two
        runs. (For scale: a step of Adam moves a weight by about the learning rate at most.)
    """)
    parts = ["model", "optimizer", "steps", "data", "dropout"]
    complete = drift(parts)  # @inspect complete
    assert complete == 0.0, \
        "With all five parts, the weights of this run are the same to the last bit."  # @zero: the distance between two equal runs

    misbelief("A checkpoint is the model and the optimizer.", rf"""
        Those are two of {len(parts)} parts. With these alone the run goes on without an error, but
        it ends with different weights, because the learning rate starts over, and different data
        and dropout are drawn.
    """)
    usual = drift(["model", "optimizer"])  # @hide
    assert usual > complete, \
        "With model and optimizer alone, the resumed run ends with different weights."  # @hide
    note("Which of the five parts are needed? Leave out one at a time:")
    costs = {part: drift([p for p in parts if p != part]) for part in parts}  # @inspect costs
    assert min(costs.values()) > 0, \
        "Without any one of the five, the run ends with different weights."
    note("A larger run can have more such parts: the position in the data, and the generators of GPUs, NumPy and Python.")
    model = Stack(64, 3)  # @hide
    optimizer = torch.optim.Adam(model.parameters())  # @hide
    weights = sum(p.nbytes for p in model.parameters())  # @hide
    fresh = saved_size(model.state_dict(), optimizer.state_dict())  # @hide
    F.mse_loss(*(model(linear_batch(64, 4)[0]), torch.zeros(4))).backward()  # @hide
    optimizer.step()  # @hide
    used = saved_size(model.state_dict(), optimizer.state_dict())  # @hide
    assert (used - fresh) // weights == 2, "With Adam's first step, the file has grown by twice the bytes of the weights."  # @hide
    states = len(global_generators())  # @hide
    assert states == 1 + torch.cuda.device_count(), \
        "There is the CPU's generator, and one for each GPU."  # @hide
    elsewhere = [torch.get_rng_state().to("meta")]  # @hide
    refused = message_of(lambda: restore_generators(elsewhere))  # @hide
    assert "ByteTensor" in refused, \
        "A generator takes its state from CPU memory only."  # @hide
    question(r"""
        Another run has no dropout, and its learning rate never changes. How many of the `5` parts
        must its checkpoint hold?
    """, answer=len(set(parts) - {"dropout", "steps"}),
        wrong={
            "The generator that picks the data is needed as well.": 2,
        },
        check=sum(cost > 0 for part, cost in costs.items() if part not in ("dropout", "steps")),
        hint="Which of the five parts does no step of such a run read?",
        why=r"""
            There is no dropout to draw, and a constant learning rate does not depend on the number
            of steps. That leaves three parts: the weights, the averages of the optimizer, and the
            generator that chooses the batches.
        """, unit="parts")


def reloaded(value: object) -> Any:
    """A value after it was written by `torch.save` and read by `torch.load`."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


@aside
def loading_takes_two_steps_and_refuses_objects() -> None:
    """`torch.load` reads tensors and plain values from a file; `load_state_dict` changes the model."""
    note(r"""
        How does a model get its weights back from a checkpoint? In two steps, because `torch.load`
        knows nothing of the model: it reads the file and returns what was saved, here a dictionary
        of tensors. `load_state_dict` then copies these tensors into the model. If the second step
        is forgotten, training goes on with fresh random weights, without an error.

        `reloaded` saves a value and reads it again with `torch.load`. `trained` and `fresh` are
        small models of two matrices each, with different random weights. The weights of `trained`
        are to be loaded into `fresh`. `equal` compares the matrices:
    """)
    trained, fresh = Stack(4, 1), Stack(4, 1)
    state = reloaded(trained.state_dict())

    def equal() -> list[bool]:
        pairs = zip(trained.parameters(), fresh.parameters())
        return [torch.equal(a, b) for a, b in pairs]

    assert equal() == [False, False], \
        "After torch.load alone, neither matrix is the same in both models."
    fresh.load_state_dict(state)
    assert equal() == [True, True], \
        "After load_state_dict, both matrices are the same in both models."
    misbelief("To resume, call `torch.load` on the checkpoint.", r"""
        That only reads the file, and the model keeps its old weights. Model and optimizer change
        when each is given its part of the file with `load_state_dict`.
    """)
    note(r"""
        What can a checkpoint contain? `torch.load` reads tensors and plain Python values: numbers,
        strings, lists, dictionaries. It refuses other objects, such as NumPy's numbers and whole
        layers, because a file can hide code in an object that would run while the file is loaded.
        `loads` is true if `torch.load` raises no error for a value:
    """)

    def loads(value: object) -> bool:
        return message_of(partial(reloaded, value)) == ""

    rng = np.random.default_rng()  # @hide
    states = [torch.get_rng_state(), random.getstate(), rng.bit_generator.state]  # @hide
    assert all(loads(state) for state in states), \
        "A tensor, Python's state and the newer NumPy state are loaded."  # @hide
    plain = [loads(torch.ones(2)), loads({"lr": 0.1})]  # @inspect plain  # @unnoticed: 2, 0.1: any tensor, any number
    assert plain == [True, True], \
        "A tensor and a dictionary of numbers are loaded."
    others = [np.random.get_state(), np.float64(0.5), nn.Linear(2, 2)]  # @unnoticed: 0.5, 2: any value, any layer
    outcomes = [loads(value) for value in others]  # @inspect outcomes
    assert outcomes == [False, False, False], \
        "The state of NumPy's older generator, a NumPy number and a layer are refused."
    errors = [message_of(partial(reloaded, value)) for value in others]  # @hide
    assert all("Weights only load failed" in error for error in errors), \
        "All three are refused for what they are."  # @hide
    misbelief("`torch.load(path)` gives back whatever `torch.save` wrote.", r"""
        It does so only with `weights_only=False`, once the default. Use that only for files that
        you trust. Otherwise it reads tensors, plain values, and classes that
        `torch.serialization.add_safe_globals` has allowed.
    """)
    given = [3, torch.ones(2), np.float64(3), {"lr": 0.1}]  # @hide
    given += [np.random.default_rng(0), nn.Linear(2, 2).state_dict()]  # @hide
    question(r"""
        How many of these can be saved and loaded: `3`, `torch.ones(2)`, `np.float64(3)`,
        `dict(lr=0.1)`, `np.random.default_rng(0)`, and the `state_dict()` of a layer, which is a
        dictionary of tensors?
    """, answer=sum(loads(value) for value in given), check=6 - 2, unit="values",
        wrong={
            "A NumPy number is not a plain number, and a generator is an object.": 6,
        },
        why=r"""
            `np.float64(3)` is a NumPy value, not a plain number, and a generator is an object. The
            other four are plain values and tensors.
        """)
