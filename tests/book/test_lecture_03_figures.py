"""What the figures of lecture 03 draw is what the lecture computed: the lengths in them are read back."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex


@pytest.fixture(scope="module")
def lecture(repo: Path) -> Any:
    """Makes a module of the lecture from its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(repo / "lectures"), *sys.path])
        yield lambda name: importlib.import_module(f"lecture_03.{name}")


@pytest.mark.parametrize("model", ["SMALL", "LLAMA_3_8B", "LLAMA_2_7B"])
def test_each_matrix_of_a_block_has_the_area_of_its_weights_and_lies_in_no_other(
    lecture: Any, model: str
) -> None:
    shapes = lecture("counts").matrices(getattr(lecture("published"), model))
    (axes,) = lecture("figures").plot_block(shapes).axes
    drawn = {label.get_text(): box for label, box in zip(axes.texts, axes.patches, strict=True)}
    assert {name: box.get_width() * box.get_height() for name, box in drawn.items()} == {
        name: rows * columns for name, (rows, columns) in shapes.items()
    }
    assert {box.get_height() for box in drawn.values()} == {shapes["query"][0]}
    boxes = [box.get_bbox() for box in axes.patches]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert axes.get_aspect() == 1


def test_a_bar_as_long_as_what_is_kept_begins_with_the_state_in_a_frame_as_long_as_a_cards_memory(
    lecture: Any,
) -> None:
    kept = {"state": 3e9, "activations": 90e9, "softmax": 4e9, "days": 7.0, "gpu_hours": 16_800.0}
    (axes,) = lecture("figures").plot_fit(kept, 80 * 10**9).axes
    state, _, activations, _, softmax, _, free, frame = axes.patches  # after each part the square of its name
    assert [it.get_width() / 124 * 80e9 for it in (state, frame, free)] == pytest.approx([3e9, 80e9, 8e9])
    assert [(it.get_x() - 4) / 124 * 80e9 for it in (state, activations, frame, free)] == pytest.approx(
        [0, 3e9, 0, 72e9]
    )
    assert activations.get_width() / 124 * 80e9 == pytest.approx(90e9)
    assert softmax.get_x() == activations.get_x() + activations.get_width()
    assert softmax.get_width() / 124 * 80e9 == pytest.approx(4e9)
    assert [it.get_text() for it in axes.texts] == [
        "state 3 GB",
        "activations 90 GB",
        "softmax 4 GB",
        "✗ It does not fit: 97 of 72 GB usable",
        "7 days, 16,800 GPU-hours",
        "one H100: 80 GB, a tenth kept free",
    ]
    assert not axes.lines  # the whole bar is there


def test_a_bar_of_what_fits_says_so_and_one_too_long_is_torn_at_the_end(lecture: Any) -> None:
    kept = {"state": 3e9, "activations": 60e9, "softmax": 9e9, "days": 7.0, "gpu_hours": 16_800.0}
    (axes,) = lecture("figures").plot_fit(kept, 80 * 10**9).axes
    assert axes.texts[3].get_text() == "✓ It fits: 72 of 72 GB usable"
    (axes,) = lecture("figures").plot_fit({**kept, "activations": 900e9}, 80 * 10**9).axes
    assert axes.texts[3].get_text() == "✗ It does not fit: 912 of 72 GB usable" and len(axes.lines) == 1
    assert max(it.get_x() + it.get_width() for it in axes.patches) == 380


def test_a_cell_has_the_colour_of_its_kind_and_rows_go_down(lecture: Any) -> None:
    figures = lecture("figures")
    kinds = [("no", "none"), ("yes", figures.BLUE)]
    (axes,) = figures.cells({"grid": [[0, 1], [1, 1]]}, kinds, ("down", "across")).axes
    filled = [(it.get_bbox().bounds, to_hex(it.get_facecolor())) for it in axes.patches[:-1]]
    assert filled == [((1, -1, 1, 1), figures.BLUE), ((0, -2, 2, 1), figures.BLUE)]
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_title()) == ("down", "across", "grid")


def test_lanes_have_launches_above_operations_each_as_long_as_it_takes(lecture: Any) -> None:
    launch, operation = 5, 2
    times = lecture("regimes").in_lanes(launch, operation, lecture("regimes").AT_THE_END)
    (axes,) = lecture("figures").plot_lanes(launch, operation, times).axes
    boxes = [(bool(it.get_y() > -0.5), it.get_x(), it.get_x() + it.get_width()) for it in axes.patches]
    handed, done = ([end for above, _, end in boxes if above is lane] for lane in (True, False))
    assert handed == [launch * i for i in range(1, 9)] == times["handed"]
    assert done == [start + operation for start in times["starts"]] and done[-1] == times["total"]
