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


@aside
def a_long_run_saves_by_the_clock() -> None:
    """How often to save follows from how often a run dies and how long a save takes."""
    note(r"""
        A long training run dies from time to time, and goes on from the state that it saved last, a
        *checkpoint*. How often should it save? First, how often does it die? In `54` days of
        training its largest model, the Llama 3 team counted `419` unexpected interruptions
        [@llama3]:
    """)
    hours = 54 * 24 / 419  # @inspect hours
    assert 3.09 < hours < 3.10, "There are 3.1 hours between two interruptions."
    note(r"""
        Two things cost time. *Saves*: a save takes $s$ minutes, and there is one every $t$ minutes.
        That is the share $s/t$ of all time. *Lost work*: the run dies every $m$ minutes, and each
        time the work since the last save is lost, on average half of $t$. That is the share
        $t/(2m)$ of all time. Saving more often makes the first share larger, and saving less often
        the second. The sum is smallest where both are equal, $s/t = t/(2m)$ [@young1974]. That is
        at

        $$
        t = \sqrt{2\,s\,m}
        $$

        Suppose that a save takes `1` minute:
    """)
    save, between = 1, hours * 60
    every = math.sqrt(2 * save * between)  # @inspect every
    assert 19.2 < every < 19.3, "The best time between two saves is 19 minutes."

    def lost(interval: float) -> float:
        return save / interval + interval / 2 / between

    share = lost(every)  # @inspect share
    assert round(share, 3) == 0.104, \
        "At this best time, a tenth of all time is lost."
    assert lost(every / 2) > share, "Saving twice as often loses more time."  # @hide
    assert lost(every * 2) > share, "Saving half as often loses more time, too."  # @hide
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
        So a run that dies every {hours:.1f} hours should save every {every:.0f} minutes. Then
        {share:.0%} of all time is lost, half of it in saves and half in lost work.
    """)
    figure(plot_saves(minutes, {"saves": saves, "lost work": work, "both": both}, (every, share)),
        caption="Share of all time that a run loses, against the minutes between two saves.", alt=r"""
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
        hint="At the best time, saves and lost work take equal shares: $s/t = t/(2m)$.",
        why=r"""
            The root of $2 \cdot 2 \cdot 100$ is `20` minutes. Saves then take `2 / 20`, a tenth of
            all time, and lost work takes `20 / 200`, a tenth as well.
        """, unit="minutes")


def saved_size(*parts: object) -> int:
    """The bytes of the file that `torch.save` makes of its arguments."""
    file = io.BytesIO()
    torch.save(parts, file)
    return file.tell()


@aside
def an_unused_optimizer_has_nothing_to_save() -> None:
    """Before its first step Adam has no state to save."""
    note(r"""
        Suppose that a test saves a model and its optimizer, loads both, and finds them equal. Has
        it tested that the optimizer's state is saved? Not if the optimizer had never taken a step.
        Adam makes its *state*, two averages for each weight, in its first step. Before that there
        is nothing to save. `saved_size` gives the bytes of the file that `torch.save` makes. Save a
        model of four weight matrices with its Adam before the first step, and again after it:
    """)
    model = Stack(64, 3)
    optimizer = torch.optim.Adam(model.parameters())
    weights = sum(p.nbytes for p in model.parameters())  # @inspect weights as B
    fresh = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect fresh as B
    assert len(optimizer.state_dict()["state"]) == 0, \
        "Before its first step, Adam has no state."  # @zero: it has no averages yet
    x, y = linear_batch(64, 4)
    F.mse_loss(model(x), y).backward()  # @unnoticed: arguments swapped: the same loss
    optimizer.step()
    used = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect used as B
    assert len(optimizer.state_dict()["state"]) == 4, \
        "After it, Adam has a state for each of the four matrices."
    assert (used - fresh) // weights == 2, \
        "The file has grown by twice the bytes of the weights."
    note("So a test of checkpoints must take a few steps before it saves.")
    question(r"""
        A model of `2` billion `float32` weights trains with Adam. How many GB does a checkpoint of
        model and optimizer take before the first step, and how many after it?
    """, answer=[2 * 4, 2 * 4 * (1 + (used - fresh) // weights)],
        check=[8, 24], unit="GB", why=r"""
            The weights take `2 * 4 = 8` GB. Adam's two averages for each weight take twice as much,
            and are there only after the first step.
        """)


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
        """Takes over whatever parts the file has."""
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
    """How far weights resumed with these parts end from those of an unbroken run."""
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
        next step reads. In the run below, that is five parts:

        - `model`: the weights;
        - `optimizer`: the averages that Adam keeps;
        - `steps`: the number of steps so far, because the learning rate falls with it;
        - `data`: the state of the random generator that picks the data;
        - `dropout`: that of the generator for *dropout*, which sets randomly chosen numbers to
          zero.

        The helper `drift` trains this run twice: once without a break, and once with a stop in the
        middle, where only the named parts are saved and loaded. It returns how far the weights of
        the two runs are apart at the end:
    """)
    parts = ["model", "optimizer", "steps", "data", "dropout"]
    complete = drift(parts)  # @inspect complete
    assert complete == 0.0, \
        "With all five parts, the weights are the same to the last bit."  # @zero: the distance between two equal runs

    misbelief("A checkpoint is the model and the optimizer.", rf"""
        Those are two of {len(parts)} parts. With these alone the run goes on without an error, but
        it ends with other weights: the learning rate begins anew, and other data are drawn.
    """)
    usual = drift(["model", "optimizer"])  # @inspect usual
    assert usual > complete, \
        "With model and optimizer alone, the resumed run ends with other weights."
    note("Which of the five parts are needed? Leave out one at a time:")
    costs = {part: drift([p for p in parts if p != part]) for part in parts}  # @inspect costs
    needed = [part for part, cost in costs.items() if cost > 0]  # @inspect needed
    assert needed == parts, \
        "Without any one of the five, the weights end elsewhere."
    note(r"""
        So all five parts belong in the file. (Every GPU has a random generator of its own, too;
        `torch.cuda.get_rng_state_all` reads their states.)
    """)
    states = len(global_generators())  # @hide
    assert states == 1 + torch.cuda.device_count(), \
        "There is the CPU's generator, and one for each card."  # @hide
    elsewhere = [torch.get_rng_state().to("meta")]  # @hide
    refused = message_of(lambda: restore_generators(elsewhere))  # @hide
    assert "ByteTensor" in refused, \
        "A generator takes its state from CPU memory only."  # @hide
    question(r"""
        Another run has no dropout, and its learning rate never changes. How many of the `5` parts
        must its checkpoint hold?
    """, answer=len(set(parts) - {"dropout", "steps"}),
        wrong={
            "The generator that picks the data is needed, too.": 2,
        },
        check=sum(cost > 0 for part, cost in costs.items() if part not in ("dropout", "steps")),
        hint="Which of the five parts does no step of such a run read?",
        why=r"""
            Nothing draws dropout, and a constant learning rate does not depend on the number of
            steps. That leaves three parts: the weights, the averages of the optimizer, and the
            generator that picks the data.
        """, unit="parts")


@aside
def loading_a_file_restores_nothing() -> None:
    """`torch.load` only reads a file; `load_state_dict` changes the model."""
    note(r"""
        How does a model get its weights back from a checkpoint? In two steps. `torch.load` reads
        the file and returns a dictionary of tensors. `load_state_dict` copies the tensors into the
        model. Forget the second step, and training goes on with fresh random weights, without an
        error.

        Try it with two models of two weight matrices each, with different random weights. `trained`
        is saved to a file, and its weights are to be loaded into `fresh`. `equal` says for each
        matrix whether the two models agree:
    """)
    trained, fresh = Stack(4, 1), Stack(4, 1)
    file = io.BytesIO()
    torch.save({"model": trained.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)  # @inspect state

    def equal() -> list[bool]:
        pairs = zip(trained.parameters(), fresh.parameters())
        return [torch.equal(a, b) for a, b in pairs]

    assert equal() == [False, False], \
        "After torch.load, no matrix of the two models agrees."
    fresh.load_state_dict(state["model"])
    assert equal() == [True, True], \
        "After load_state_dict, both matrices agree."
    misbelief("To resume, call `torch.load` on the checkpoint.", r"""
        That only reads the file, and the model keeps its old weights. Model and optimizer change
        when each is given its part of the file with `load_state_dict`.
    """)
    trained, fresh = Stack(4, 5), Stack(4, 5)
    state = reloaded(trained.state_dict())  # @hide
    read = sum(equal())  # @hide
    fresh.load_state_dict(state)  # @hide
    question(r"""
        Two models have `6` weight matrices each, with different random weights. The first is saved.
        How many matrices of the second agree with it after `torch.load`, and how many after
        `load_state_dict`?
    """, answer=[read, sum(equal())],
        check=[0, 5 + 1], unit="matrices",
        hint="Which of the two calls is told about the second model?",
        why=r"""
            `torch.load` returns a dictionary and does not know the second model, so none agrees.
            `load_state_dict` copies all `6` matrices into it.
        """)


@aside
def loading_an_optimizer_keeps_references() -> None:
    """A model copies what it loads; an optimizer goes on writing into the loaded tensors."""
    note(r"""
        Can one dictionary that `torch.load` returned be loaded twice, say to try two learning rates
        from the same point? With a model yes, with an optimizer no. A model's `load_state_dict`
        copies the tensors. An optimizer's takes the very tensors of the dictionary as its state,
        and its next step writes into them.

        The code saves a model with one matrix and its Adam after a step, takes a second step, and
        loads both. `same_storage` says whether two tensors share their memory:
    """)
    model = Stack(4, 0)  # @unnoticed: 0: any depth
    x, y = linear_batch(4, 2)  # @unnoticed: 2: any batch
    optimizer = torch.optim.Adam(model.parameters())
    F.mse_loss(model(x), y).backward()  # @unnoticed: arguments swapped: the same loss
    optimizer.step()
    file = io.BytesIO()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, file)
    optimizer.step()
    file.seek(0)
    loaded = torch.load(file)
    kept = loaded["model"]["weights.0"]
    assert not torch.equal(model.weights[0], kept), "Before loading, the model is one step ahead of the file."  # @hide
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    w, saved = model.weights[0], loaded["optimizer"]["state"][0]
    average = optimizer.state[w]["exp_avg"]
    assert torch.equal(w, loaded["model"]["weights.0"]), \
        "The model has the weights of the file."  # @hide
    assert not same_storage(w, loaded["model"]["weights.0"]), \
        "The model has a copy of the loaded weights."
    assert same_storage(average, saved["exp_avg"]), \
        "The optimizer's average is the loaded tensor itself."

    note("Now take another step. `saved` is the optimizer's part of the loaded dictionary:")
    before = saved["exp_avg"].clone()
    optimizer.step()
    assert not torch.equal(saved["exp_avg"], before), \
        "The step has changed the average in the dictionary."
    assert saved["step"] == 2, \
        "The step has raised the counter in the dictionary from 1 to 2."
    note(r"""
        So load from the file each time, or give the optimizer a copy that `copy.deepcopy` makes.
    """)
    second = torch.optim.Adam(model.parameters())
    second.load_state_dict(loaded["optimizer"])
    second.step()
    question(r"""
        The step counter in the dictionary says `2`. A second optimizer now loads the same
        `loaded["optimizer"]` and takes one step. What does the counter in the dictionary say then?
    """, answer=int(saved["step"]),
        wrong={
            "The second optimizer writes into the dictionary, too.": 2,
        },
        check=1 + 1 + 1, why=r"""
            The second optimizer also takes the tensors of the dictionary as its state. Its step
            raises the counter by one.
        """)


def reloaded(value: object) -> Any:
    """A value after it was written by `torch.save` and read by `torch.load`."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


@aside
def torch_load_refuses_what_it_does_not_know() -> None:
    """`torch.load` reads tensors and plain values, and refuses the rest."""
    note(r"""
        Does `torch.load` give back whatever `torch.save` wrote? No. It reads tensors and plain
        Python values: numbers, text, lists, dictionaries. It refuses all other objects, because a
        file can hide code in them that runs on loading. Whoever trusts a file can say
        `weights_only=False`. `reloaded` saves a value and loads it again; `message_of` returns the
        error, or nothing if there is none. First three values that pass: a tensor, the state of
        Python's random generator, a dictionary:
    """)
    loads = [torch.get_rng_state(), random.getstate(), {"step": 3}]  # @unnoticed: 3: any value
    errors = [message_of(partial(reloaded, value)) for value in loads]
    assert errors == ["", \
        "", ""], "The tensor, the state of the generator and the dictionary are loaded."
    note("Then the state of NumPy's old generator, a NumPy number and a layer:")
    fails = [np.random.get_state(), np.float64(0.5), nn.Linear(2, 2)]  # @unnoticed: 0.5, 2: any value, any layer
    errors = [message_of(partial(reloaded, value)) for value in fails]
    refusals = ["Weights only load failed" in e for e in errors]  # @inspect refusals
    assert refusals == [True, True, True], \
        "NumPy's state, NumPy's number and the layer are refused."

    note(r"""
        To resume a run one may need the state of NumPy's generator. The newer kind of generator is
        refused, too, but it hands out its state as a dictionary of plain values. Save that instead:
    """)
    rng = np.random.default_rng(0)
    refusal = message_of(lambda: reloaded(rng))
    assert "Weights only load failed" in refusal, \
        "The newer generator itself is refused."  # @hide
    rng.random(5)  # @unnoticed: left out, 5: any state has to come back
    saved = rng.bit_generator.state  # @inspect saved
    restored = np.random.default_rng()
    restored.bit_generator.state = reloaded(saved)
    assert restored.random() == rng.random(), \
        "The generator with the loaded state draws the same next number."
    misbelief("`torch.load(path)` gives back whatever `torch.save` wrote.", r"""
        It did so in early versions. Now it reads tensors and plain values only, unless it is called
        with `weights_only=False`.
    """)
    given = [3, torch.ones(2), np.float64(3), {"lr": 0.1}]  # @unnoticed: 3, 2, 0.1: any value
    given += [np.random.default_rng(0), nn.Linear(2, 2).state_dict()]  # @unnoticed: 2: any layer
    errors = [message_of(partial(reloaded, value)) for value in given]
    question(r"""
        How many of these can be saved and loaded: `3`, `torch.ones(2)`, `np.float64(3)`,
        `dict(lr=0.1)`, `np.random.default_rng(0)`, and the `state_dict()` of a layer, which is a
        dictionary of tensors?
    """, answer=errors.count(""), check=6 - 2, unit="values",
        wrong={
            "A NumPy number is no plain number, and a generator is an object.": 6,
        },
        why=r"""
            `np.float64(3)` is a NumPy value and no plain number, and a generator is an object. The
            other four are plain values and tensors.
        """)
