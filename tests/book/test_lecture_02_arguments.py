"""An argument that changes nothing when it is varied is a defect: such a one hid a learning rate for years."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch


def part(repo: Path, name: str) -> Any:
    """A part of lecture 02 as a plain module."""
    sys.path.insert(0, str(repo / "lectures"))
    try:
        return importlib.import_module(f"lecture_02.{name}")
    finally:
        sys.path.remove(str(repo / "lectures"))


OPTIMIZERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sgd": ({"lr": 0.1}, {"lr": 0.2}),
    "momentum": ({"lr": 0.1, "beta": 0.9}, {"lr": 0.2, "beta": 0.5}),
    "adam": (
        {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "correct": True},
        {"lr": 0.2, "betas": (0.5, 0.9), "eps": 1e-1, "correct": False},
    ),
    "adamw": ({"lr": 0.1, "decay": 0.01}, {"lr": 0.2, "decay": 0.5}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_argument_of_an_optimizer_changes_its_walk(repo: Path, name: str) -> None:
    lecture = part(repo, "optimizer")
    usual, other = OPTIMIZERS[name]
    torch.manual_seed(0)
    gradients = torch.randn(10, 3, dtype=torch.float64)

    def walk(**settings: Any) -> torch.Tensor:
        places: torch.Tensor = lecture.walk(
            lecture.Descent, gradients, rule=getattr(lecture, name)(**settings)
        )
        return places

    base = walk(**usual)
    assert torch.equal(base, walk(**usual))
    assert [key for key in usual if torch.equal(base, walk(**{**usual, key: other[key]}))] == []


def test_every_argument_of_train_changes_the_losses(repo: Path) -> None:
    lecture = part(repo, "loop")
    usual = {"width": 16, "layers": 0, "batch": 4, "steps": 12, "lr": 0.05, "seed": 0}
    other = {"width": 8, "layers": 1, "batch": 8, "steps": 13, "lr": 0.01, "seed": 1}
    assert set(usual) == set(lecture.train.__kwdefaults__)
    base = lecture.train(**usual).losses
    assert base == lecture.train(**usual).losses
    assert [key for key in usual if base == lecture.train(**{**usual, key: other[key]}).losses] == []


def test_every_argument_of_get_batch_changes_the_batch(repo: Path) -> None:
    lecture = part(repo, "data")
    import numpy as np

    def batch(start: int = 0, rows: int = 2, length: int = 4, seed: int = 0) -> list[list[int]]:
        x, y = lecture.get_batch(
            np.arange(start, start + 50), rows, length, torch.Generator().manual_seed(seed)
        )
        assert torch.equal(y, x + 1)
        listed: list[list[int]] = x.tolist()
        return listed

    base = batch()
    assert base == batch()
    for other in (batch(start=7), batch(rows=3), batch(length=5), batch(seed=1)):
        assert other != base


def test_every_argument_of_the_timing_helper_matters() -> None:
    import timing

    calls: list[int] = []

    def call() -> None:
        calls.append(1)

    def calls_of(**settings: Any) -> int:
        calls.clear()
        timing.time_call(call, **settings)
        return len(calls)

    assert calls_of(repeats=5, tolerance=1e9, total=0) == 3 + 5
    assert calls_of(repeats=9, tolerance=1e9, total=0) == 3 + 9
    assert calls_of(repeats=5, tolerance=-1.0, patience=7, total=0) == 7 + 5  # never stable: patience decides
    assert calls_of(repeats=5, total=1e-2) > 100 > calls_of(repeats=5, total=0)  # below 100 µs each
    assert timing.time_call(call, repeats=5, tolerance=-1.0, patience=7).method.startswith(
        "perf_counter, still unstable"
    )
    with pytest.raises(ValueError, match="cannot time on meta: expected one of cpu, cuda"):
        timing.time_call(call, device="meta")
    with pytest.raises(ValueError, match="2 repeats on cpu: expected at least 3"):
        timing.time_call(call, repeats=2)
    with pytest.raises(ValueError, match="a patience of 2 calls: expected at least 3"):
        timing.time_call(call, patience=2)
    with pytest.raises(ValueError, match="no inputs: expected at least one set, which may be empty"):
        timing.time_call(call, inputs=[])


def test_a_call_that_would_find_its_buffers_in_the_cache_gets_others_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import timing

    monkeypatch.setattr(timing, "cache_bytes", lambda _: 4000)
    made = timing.beyond_cache(lambda: (torch.rand(250), torch.rand(250)))
    assert len(made) == 16  # of 2,000 bytes each, eight times the cache
    assert len({t.data_ptr() for pair in made for t in pair}) == 32
    assert len(timing.beyond_cache(lambda: (torch.rand(9000),))) == 1
    assert len(timing.beyond_cache(lambda: (torch.rand(9000),), least=3)) == 3
    assert len(timing.beyond_cache(lambda: (torch.rand(1),))) == timing.MOST

    seen: list[int] = []
    timed = timing.time_call(
        lambda a, _: seen.append(a.data_ptr()), repeats=5, tolerance=1e9, total=0, inputs=made
    )
    assert seen == [made[i % 16][0].data_ptr() for i in range(3 + 5)]
    assert timed.method == "perf_counter, stable after 3 warm-up calls, 16 sets of buffers in turn"


def test_the_cache_of_this_machine_has_a_size() -> None:
    import timing

    assert 2**20 <= timing.cache_bytes("cpu") <= 2**32


def test_every_argument_of_memory_over_a_step_changes_what_is_alive(repo: Path) -> None:
    watch = part(repo, "timeline").memory_over_a_step

    def held(**other: Any) -> list[Any]:
        return list(watch(**{"width": 8, "layers": 1, "batch": 4} | other))

    base = held()
    assert base == held()  # bytes depend on sizes, not on what is drawn
    for other in ({"width": 16}, {"layers": 2}, {"batch": 8}):
        assert held(**other) != base, other


def test_both_arguments_of_newton_schulz_matter(repo: Path) -> None:
    turn = part(repo, "muon").newton_schulz
    torch.manual_seed(0)
    g, other = torch.randn(2, 4, 4)
    assert torch.equal(turn(g), turn(g, 5))
    assert not torch.allclose(turn(g), turn(other))
    rounds = [turn(g, n) for n in range(6)]
    assert [n for n in range(5) if torch.allclose(rounds[n], rounds[n + 1])] == []
    assert torch.allclose(turn(g), turn(3 * g), rtol=1e-4)  # the size of a gradient is divided out
