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
from .measure import message_of, same_storage
from .models import Stack, linear_batch


def checkpoints() -> None:
    """Checkpoints."""
    note(r"""
        Stop a run in the middle, load its model and its optimizer, go on, and it ends somewhere
        else. Whatever the next step depends on has to be in the file, and it is more than those
        two.
    """)
    a_long_run_saves_by_the_clock()
    an_unused_optimizer_has_nothing_to_save()
    a_resumed_run_needs_all_of_its_state()
    loading_a_file_restores_nothing()
    loading_an_optimizer_keeps_references()
    torch_load_refuses_what_it_does_not_know()


def a_long_run_saves_by_the_clock() -> None:
    """How often to save follows from how often the run dies and how long a save takes."""
    note(r"""
        How often should a long training run save its state? It depends on how often the run dies.
        Over `54` days of training its largest model, the Llama 3 team counted `419` unexpected
        interruptions [@llama3]. So a run of that size dies every few hours:
    """)
    hours = 54 * 24 / 419  # @inspect hours
    assert 3.09 < hours < 3.10, "So many hours lie between two interruptions."
    note(r"""
        It also depends on how long a save takes. Let a save take $s$ minutes, and save every $t$
        minutes. Then saves take the share $s/t$ of all time. Let the run die every $m$ minutes.
        Each time, the work since the last save is lost, half of $t$ on average. That is the share
        $t/2m$ of all time. Saving more often makes the first share larger, and saving less often
        makes the second larger. The sum is smallest near $t = \sqrt{2\,s\,m}$ [@young1974]. Assume
        that a save takes `1` minute:
    """)
    save, between = 1, hours * 60
    every = math.sqrt(2 * save * between)  # @inspect every
    assert 19.2 < every < 19.3, "So many minutes should lie between two saves."

    def lost(interval: float) -> float:
        return save / interval + interval / 2 / between

    share = lost(every)  # @inspect share
    assert round(share, 3) == 0.104, "At best, a tenth of all time is lost."
    assert lost(every / 2) > share, "Saving twice as often loses more."
    assert lost(every * 2) > share, "Saving half as often loses more, too."
    minutes = [every * 2 ** (k / 8) for k in range(-24, 25)]  # @hide
    saves = [save / t for t in minutes]  # @hide
    work = [t / 2 / between for t in minutes]  # @hide
    both = [lost(t) for t in minutes]  # @hide
    assert minutes[0] == every / 8, \
        "The picture begins at an eighth of that time."  # @hide
    assert both.index(min(both)) == 24, "No other time loses less."  # @hide
    assert math.isclose(saves[24], work[24]), \
        "There, saves and lost work cost the same."  # @hide
    note(rf"""
        With a run that dies every {hours:.1f} hours, save every {every:.0f} minutes. Then
        {share:.0%} of all time is lost, half of it in saves and half in lost work.
    """)
    figure(plot_saves(minutes, {"saves": saves, "lost work": work, "both": both}, (every, share)),
        caption="What a run loses, against the time between two saves.", alt=r"""
            Three curves against minutes between saves on a logarithmic axis. Saves cost less the
            rarer they are, lost work costs more. Their sum is a wide bowl, whose lowest point is
            marked where the two cross.
        """)
    question(r"""
        A save takes `2` minutes, and a run dies every `100` minutes. How many minutes should lie
        between two saves?
    """, answer=math.sqrt(2 * 2 * 100),
        wrong={
            "The 2 under the root is missing.": math.sqrt(200),
        },
        check=min(range(1, 100), key=lambda t: 2 / t + t / 2 / 100),
        hint="The best time is the root of twice the product of both.",
        why=r"""
            The root of $2 \cdot 2 \cdot 100$ is `20` minutes. There a save costs a tenth of the
            time, and lost work as much again: where the two costs are equal, their sum is smallest.
        """, unit="minutes")


def saved_size(*parts: object) -> int:
    """Bytes of the file that `torch.save` makes of the parts."""
    file = io.BytesIO()
    torch.save(parts, file)
    return file.tell()


@aside
def an_unused_optimizer_has_nothing_to_save() -> None:
    """Before its first step Adam has no state to save."""
    note(r"""
        A test of checkpoints can pass and have saved nothing of the optimizer. Here model and
        optimizer are saved before the first step, and again after it:
    """)
    model = Stack(64, 3)
    optimizer = torch.optim.Adam(model.parameters())
    weights = sum(p.nbytes for p in model.parameters())  # @inspect weights as B
    fresh = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect fresh as B
    assert len(optimizer.state_dict()["state"]) == 0, "nothing to save yet"  # @zero: it has no averages yet
    x, y = linear_batch(64, 4)
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    used = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect used as B
    assert len(optimizer.state_dict()["state"]) == 4, "one per tensor"
    assert (used - fresh) // weights == 2, "two copies of the weights more"
    note(r"""
        Adam makes its averages in the first step. A test that saves and loads an optimizer which
        has never stepped tests settings and an empty state. Take a few steps first.
    """)
    question(r"""
        A model of `2` billion `float32` weights trains with Adam. How many GB does a checkpoint
        take before the first step, and how many after it?
    """, answer=[2 * 4, 2 * 4 * (1 + (used - fresh) // weights)],
        check=[8, 24], unit="GB")


def global_generators() -> list[Tensor]:
    """The states of the generators behind dropout and its like: the CPU's, then one for each card."""
    return [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]


def restore_generators(states: list[Tensor]) -> None:
    """Set the generators to these states, which have to lie in CPU memory."""
    torch.set_rng_state(states[0])
    torch.cuda.set_rng_state_all(states[1:])


class Session:
    """A run with all that can get lost: dropout, a schedule, an optimizer's memory, data order."""

    def __init__(self) -> None:
        start = torch.Generator().manual_seed(0)
        self.model = Stack(8, 1, start, between=nn.Dropout(0.1))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.data = torch.Generator().manual_seed(1)
        self.steps = 0

    def advance(self, count: int) -> None:
        """Train on; the learning rate falls with the number of steps."""
        for _ in range(count):
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 / math.sqrt(1 + self.steps)
            x, y = linear_batch(8, 4, self.data)
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1

    def save(self, parts: Iterable[str]) -> io.BytesIO:
        """A file with the named parts of the state."""
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
        """Take over whatever parts the file has."""
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
    """How far the weights of a run resumed with these parts end from those of an unbroken one."""
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


def a_resumed_run_needs_all_of_its_state() -> None:
    """A run resumes bit for bit if everything that the next step reads was saved."""
    note(r"""
        What has to be saved so that a training run can be stopped and resumed? Everything that the
        next step depends on. The run below has five kinds of state: the weights; Adam's averages;
        the number of steps, which sets the learning rate; the random generator that picks the data;
        and the one that draws *dropout*, which sets random numbers to zero. `drift` trains this run
        without a break, and again with a stop in the middle, where only the named parts are saved
        and loaded. It returns how far apart the weights end:
    """)
    parts = ["model", "optimizer", "steps", "data", "dropout"]
    complete = drift(parts)  # @inspect complete
    assert complete == 0.0, \
        "With all five parts, the weights are the same to the last bit."  # @zero: the distance between two equal runs

    misbelief("A checkpoint is the model and the optimizer.", r"""
        Those are two of the five parts. With only these, the run goes on without an error, and ends
        with other weights.
    """)
    usual = drift(["model", "optimizer"])  # @inspect usual
    assert usual > complete, "With these two alone, the weights end elsewhere."
    note("Which of the five parts are needed? Leave out one at a time:")
    costs = {part: drift([p for p in parts if p != part]) for part in parts}  # @inspect costs
    needed = [part for part, cost in costs.items() if cost > 0]  # @inspect needed
    assert needed == parts, "All five are needed."
    note(r"""
        Without any of them the weights end elsewhere, so all five belong into the file. On GPUs
        there is one more random generator for each card; `torch.cuda.get_rng_state_all` reads them.
    """)
    states = len(global_generators())  # @hide
    assert states == 1 + torch.cuda.device_count(), \
        "There is the CPU's generator, and one for each card."  # @hide
    elsewhere = [torch.get_rng_state().to("meta")]  # @hide
    refused = message_of(lambda: restore_generators(elsewhere))  # @hide
    assert "ByteTensor" in refused, \
        "A generator takes its state from CPU memory only."  # @hide
    question(r"""
        How many of the `5` parts must a checkpoint of a run hold that has no dropout and never
        changes its learning rate?
    """, answer=len(set(parts) - {"dropout", "steps"}),
        wrong={
            "The generator that picks the data is needed, too.": 2,
        },
        check=sum(cost > 0 for part, cost in costs.items() if part not in ("dropout", "steps")),
        hint="Which of the five does no step of such a run read?",
        why=r"""
            Nothing draws dropout, and a constant rate does not ask for the number of steps.
            Weights, the optimizer's averages and the generator that picks the data are left, and
            each of these changes the next step.
        """, unit="parts")


def loading_a_file_restores_nothing() -> None:
    """`torch.load` returns a dictionary; the model learns nothing of it."""
    misbelief("To resume, call `torch.load` on the checkpoint.", r"""
        That reads the file. Model and optimizer stay as they were until each is handed its part
        with `load_state_dict`.
    """)
    trained, fresh = Stack(4, 1), Stack(4, 1)
    file = io.BytesIO()
    torch.save({"model": trained.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)  # @inspect state

    def equal() -> list[bool]:
        pairs = zip(trained.parameters(), fresh.parameters())
        return [torch.equal(a, b) for a, b in pairs]

    assert equal() == [False, False], "loaded, not restored"
    fresh.load_state_dict(state["model"])
    assert equal() == [True, True], "now restored"
    trained, fresh = Stack(4, 5), Stack(4, 5)
    state = reloaded(trained.state_dict())
    read = sum(equal())
    fresh.load_state_dict(state)
    question(r"""
        Two fresh stacks have `5` hidden layers each, and the first one is saved. How many tensors
        of the second agree with it after `torch.load`, and how many after `load_state_dict`?
    """, answer=[read, sum(equal())],
        check=[0, 5 + 1], unit="tensors")


@aside
def loading_an_optimizer_keeps_references() -> None:
    """A model copies what it loads; an optimizer goes on writing into the loaded tensors."""
    note(r"""
        Two methods of the same name, and two habits. It matters to whoever loads one checkpoint
        twice, say to try two learning rates from the same point.
    """)
    model = Stack(4, 0)
    x, y = linear_batch(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    file = io.BytesIO()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, file)
    optimizer.step()
    file.seek(0)
    loaded = torch.load(file)
    kept = loaded["model"]["weights.0"]
    assert not torch.equal(model.weights[0], kept), "one step further"
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    w, saved = model.weights[0], loaded["optimizer"]["state"][0]
    average = optimizer.state[w]["exp_avg"]
    assert torch.equal(w, loaded["model"]["weights.0"]), "one step back"
    assert not same_storage(w, loaded["model"]["weights.0"]), "weights: copied"
    assert same_storage(average, saved["exp_avg"]), "averages: referred to"

    note("The next step changes the optimizer in place, and with it the checkpoint in memory.")
    before = saved["exp_avg"].clone()
    optimizer.step()
    assert not torch.equal(saved["exp_avg"], before), "altered"
    assert saved["step"] == 2, "even its step counter"
    note("So load from the file each time, or pass in a `copy.deepcopy`.")
    second = torch.optim.Adam(model.parameters())
    second.load_state_dict(loaded["optimizer"])
    second.step()
    question(r"""
        A second optimizer now loads the same `loaded["optimizer"]` and takes one step. What does
        the step counter in the checkpoint say?
    """, answer=int(saved["step"]),
        check=1 + 1 + 1)


def reloaded(value: object) -> Any:
    """The value after `torch.save` and `torch.load`."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


@aside
def torch_load_refuses_what_it_does_not_know() -> None:
    """`torch.load` reads tensors and plain values, and refuses the rest."""
    misbelief("`torch.load(path)` gives back whatever `torch.save` wrote.", r"""
        It once did. Now it loads tensors and plain Python values only, unless told otherwise. A
        pickled object may run any code on loading, so trust is something to be declared.
    """)
    note("Save some values, load each again, and collect what error comes, if any:")
    loads = [torch.get_rng_state(), random.getstate(), {"step": 3}]
    errors = [message_of(partial(reloaded, value)) for value in loads]
    assert errors == ["", "", ""], "loaded without complaint"
    fails = [np.random.get_state(), np.float64(0.5), nn.Linear(2, 2)]
    errors = [message_of(partial(reloaded, value)) for value in fails]
    refusals = ["Weights only load failed" in e for e in errors]  # @inspect refusals
    assert refusals == [True, True, True], "NumPy values, a module"

    note(r"""
        The state of NumPy's generator is what hurts, because resuming may need it. A newer NumPy
        generator does not pass either. But it hands out its state as plain values, and these pass.
    """)
    rng = np.random.default_rng(0)
    refusal = message_of(lambda: reloaded(rng))
    assert "Weights only load failed" in refusal, "the generator itself"
    rng.random(5)  # @unnoticed: left out, 5: any state has to come back
    saved = rng.bit_generator.state  # @inspect saved
    restored = np.random.default_rng()
    restored.bit_generator.state = reloaded(saved)
    assert restored.random() == rng.random(), "the next draw agrees"
    given = [3, torch.ones(2), np.float64(3), {"lr": 0.1}]
    given += [np.random.default_rng(0), nn.Linear(2, 2).state_dict()]
    errors = [message_of(partial(reloaded, value)) for value in given]
    question(r"""
        How many of these can be saved and loaded: `3`, `torch.ones(2)`, `np.float64(3)`,
        `dict(lr=0.1)`, `np.random.default_rng(0)` and the `state_dict()` of a layer?
    """, answer=errors.count(""), check=6 - 2, unit="values",
        why="`np.float64(3)` is a NumPy value and no plain number, and a generator is an object.")
