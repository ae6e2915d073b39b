"""Devices that are missing, several, unknown, too small or without events. Where a GPU is needed: a STAND-IN."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import HEAD, REPO, record
from tests.standin import Card, MiB, standin

from litbook.errors import LitbookError
from litbook.project import recording_of
from litbook.record.device_kinds import KINDS
from litbook.run import environment

SHORT = f"""{HEAD}
import torch


def main():
    greedy()
    modest()


@requires("cuda")
def greedy():
    kept = [torch.empty(30 * 2**20, dtype=torch.uint8, device="cuda")]
    assert len(kept) == 1, "the first fits"
    kept += [torch.empty(60 * 2**20, dtype=torch.uint8, device="cuda")]


@requires("cuda")
def modest():
    x = torch.empty(40 * 2**20, dtype=torch.uint8, device="cuda")
    assert x.nbytes == 40 * 2**20, "there is room again"
"""


def test_a_section_that_runs_out_of_memory_says_so_and_gives_it_back(tmp_path: Path) -> None:
    with standin(Card(memory=64 * MiB, context=8 * MiB)):
        made = record(tmp_path, SHORT, device="cuda")
    ((at, error),) = made.errors()
    line = 1 + SHORT[: SHORT.index("kept += ")].count("\n")
    assert (at.name, at.first + error.line) == ("greedy", line)
    assert error.text == 'kept += [torch.empty(60 * 2**20, dtype=torch.uint8, device="cuda")]'
    assert error.message == (
        "OutOfMemoryError: out of memory: CUDA out of memory. Tried to allocate 60.00 MiB. GPU 0 has a total "
        "capacity of 64.00 MiB (stand-in)\n"
        "    this section ends here, its memory is given back, and the others run; close what else uses the "
        "device, or let the section's sizes follow torch.cuda.mem_get_info()"
    )
    assert [claim.verdict for _, claim in made.claims()] == ["holds", "holds"]


def test_the_machines_own_memory_runs_out_alike(tmp_path: Path) -> None:
    text = f"{HEAD}import torch\ndef main():\n    one()\n    two()\n"
    text += "def one():\n    torch.empty(2**55)\ndef two():\n    assert 1 == 1\n"
    made = record(tmp_path, text, device="cpu")
    ((_, error),) = made.errors()
    assert error.message.startswith("OutOfMemoryError: out of memory: ")
    assert [claim.verdict for _, claim in made.claims()] == ["holds"]


def test_of_several_gpus_the_first_is_used_and_the_record_says_how_many_there_are(tmp_path: Path) -> None:
    from rich.console import Console

    from litbook.terminal.transcript import Terminal

    terminal = Terminal(Console(width=200, record=True, quiet=False))
    with standin(Card(name="NVIDIA H200", count=4)):
        made = record(tmp_path, SHORT, device="cuda", listener=terminal)
    device = made.environment.device
    assert (device.name, device.slug, device.count) == ("NVIDIA H200", "nvidia-h200", 4)
    assert "cuda: NVIDIA H200, the first of 4 visible" in terminal.console.export_text()


def test_a_device_that_nobody_knows_has_a_recording_of_its_own(tmp_path: Path) -> None:
    with standin(Card(name="Böser <GPU> 9000 / Ti")):
        device = record(tmp_path, SHORT, device="cuda").environment.device
    assert device.slug == "b-ser-gpu-9000-ti"
    assert recording_of(tmp_path / "lecture_x.py", device.slug).name == "lecture_x.b-ser-gpu-9000-ti.json"


@pytest.mark.parametrize(
    ("version", "built", "visible", "expected"),
    [
        (
            "2.13.0+cpu",
            None,
            None,
            "torch 2.13.0+cpu is built without CUDA\n    install a build of it that has",
        ),
        (
            "2.11.0+cu130",
            "13.0",
            None,
            "torch 2.11.0+cu130 sees none\n    look at nvidia-smi, and at CUDA_VIS",
        ),
        ("2.11.0+cu130", "13.0", "", "torch 2.11.0+cu130 sees none; CUDA_VISIBLE_DEVICES is ''\n    look at"),
    ],
)
def test_why_there_is_no_cuda_is_said(
    monkeypatch: pytest.MonkeyPatch, version: str, built: str | None, visible: str | None, expected: str
) -> None:
    import torch

    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert environment.why_none(KINDS["cuda"]).startswith(expected)


def test_without_cuda_nothing_of_the_lecture_runs(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("needs CUDA to be missing")
    with pytest.raises(
        LitbookError, match=r"(?s)no CUDA device here: torch .*\n.*leave --device out to run what"
    ):
        record(
            tmp_path,
            f"{HEAD}open({str(tmp_path / 'ran')!r}, 'w')\ndef main(): one()\ndef one(): pass",
            device="cuda",
        )
    assert not (tmp_path / "ran").exists()


# ---------------------------------------------------------------------------- the timer


@pytest.fixture
def timing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(REPO / "lectures"))
    # It takes `perf_counter` when it is imported: nobody after this may have the stand-in's.
    before = sys.modules.pop("timing", None)
    yield lambda: __import__("timing")
    sys.modules.pop("timing", None)
    if before is not None:
        sys.modules["timing"] = before


def test_on_a_gpu_the_timer_takes_events_and_at_least_twenty_repeats(timing: Any) -> None:
    import torch

    with standin(Card(tick=0.1)):
        x = torch.ones(64, 64, device="cuda")
        found = timing().time_call(lambda: x @ x, "cuda", total=0)
        assert found.method == "CUDA events, stable after 4 warm-up calls"
        assert (found.repeats, found.device) == (20, "NVIDIA H200")
        assert timing().time_call(lambda: x @ x, "cuda", total=1e-3).repeats > 100
        with pytest.raises(ValueError, match="19 repeats on cuda: expected at least 20"):
            timing().time_call(lambda: x @ x, "cuda", repeats=19)


def test_a_gpu_is_warmed_for_a_while_before_it_is_timed(timing: Any) -> None:
    import torch

    with standin(Card(launch=1e-3)) as state:
        x = torch.ones(64, 64, device="cuda")
        start, calls = state.host, list[float]()

        def product() -> None:
            calls.append(state.host - start)
            x @ x

        found = timing().time_call(product, "cuda", total=0)
    warm = sum(at < 0.2 for at in calls)
    assert warm > 100, "calls of a millisecond"
    (after,) = re.findall(r"stable after (\d+) warm-up calls", found.method)
    assert warm < int(after) <= warm + 4, "and as many more until three agree"
    assert len(calls) == int(after) + found.repeats


def test_a_driver_without_events_is_timed_by_waiting(timing: Any) -> None:
    import torch

    with standin(Card(launch=1e-6, tick=0.1)):
        x = torch.ones(512, 512, device="cuda")
        by_events = timing().time_call(lambda: x @ x, "cuda", total=0)
    sys.modules.pop("timing")
    with standin(Card(launch=1e-6, events=False)):
        x = torch.ones(512, 512, device="cuda")
        timing().WARM["cuda"] = 1e-3
        found = timing().time_call(lambda: x @ x, "cuda", total=0)
    assert found.method.startswith("perf_counter around a wait (no CUDA events), stable after ")
    assert 0.5 < by_events.seconds / found.seconds <= 1.1
