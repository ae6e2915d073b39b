"""What the figures of lecture 02 draw is what the lecture computed: the lengths in them are read back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch as Lines
from matplotlib.patches import Polygon
from tests.book.test_lecture_02_arguments import part


@pytest.fixture(scope="module")
def figures(repo: Path) -> Any:
    return part(repo, "figures")


def test_the_box_is_filled_as_far_as_multiplications_were_counted(figures: Any) -> None:
    sides, fills = (3, 5, 7), {1: 21, 3: 63, 5: 105}
    for panel, (depth, count) in zip(figures.plot_box(sides, fills).axes, fills.items(), strict=True):
        faces = {
            to_hex(p.get_facecolor()): p
            for p in panel.patches
            if isinstance(p, Polygon) and tuple(p.get_facecolor())[-1]
        }
        front, top, side = (
            np.asarray(faces[color].get_xy()) for color in (figures.GOLD, figures.GREEN, figures.BLUE)
        )
        wide, high = front[1, 0] - front[0, 0], front[3, 1] - front[0, 1]
        deep = {2 * (top[3, 0] - top[0, 0]), 2 * (side[3, 0] - side[0, 0])}
        assert (round(high, 9), {round(it, 9) for it in deep}, wide) == (3, {depth}, 7)
        assert round(high) * depth * wide == count
        assert panel.get_title() == f"{count} multiplications"
        drawn = sum(np.asarray(p.get_path().codes).size // 2 for p in panel.patches if isinstance(p, Lines))
        assert drawn == (6 + 2) + (6 + depth - 1) + (2 + depth - 1)  # between the units of each face


def test_each_row_of_blocks_is_filled_by_its_bytes(figures: Any) -> None:
    (panel,) = figures.plot_blocks({"one": 4, "exact": 1024, "odd": 4356}, 512).axes
    lengths = [(bar.get_x(), bar.get_width()) for box in panel.containers for bar in box]
    assert lengths == [(0, 4), (4, 508), (0, 1024), (1024, 0), (0, 4356), (4356, 252)]
    cells = [p for p in panel.patches if not p.get_fill()]
    assert [cell.get_width() for cell in cells] == [512] * (1 + 2 + 9)
    assert [text.get_text() for text in panel.texts] == ["508 lost", "0 lost", "252 lost"]


def test_lines_go_through_their_numbers(figures: Any) -> None:
    (axes,) = figures.curves([1, 2], {"up": [3.0, 4.0], "down": [4.0, 3.0]}, "step", "loss").axes
    assert {it.get_label(): it.get_xydata().tolist() for it in axes.lines} == {
        "up": [[1, 3], [2, 4]],
        "down": [[1, 4], [2, 3]],
    }


def test_the_path_of_momentum_is_that_of_the_optimizer_over_lines_of_one_loss(
    repo: Path, figures: Any
) -> None:
    places = part(repo, "optimizer").down_a_bowl(0.04, 0.9).tolist()
    (panel,) = figures.plot_path(places, [1.0, 10.0]).axes
    assert panel.lines[0].get_xydata().tolist() == places and len(places) == 31
    sizes = [(it.width, it.height) for it in panel.patches]
    levels = [(wide / 2) ** 2 / 2 for wide, _ in sizes]
    assert [round(a / b, 6) for a, b in pairwise(levels)] == [3.0] * 4
    assert all(
        round(10 * (high / 2) ** 2 / 2 / level, 6) == 1
        for (_, high), level in zip(sizes, levels, strict=True)
    )


def test_dots_are_filled_for_the_outputs_in_memory_and_bars_count_them(repo: Path, figures: Any) -> None:
    gradient = part(repo, "gradient")
    moments = [gradient.moment_of(16, 4, moment) for moment in range(48)]
    dots, bars = figures.plot_kept(moments, 23).axes
    filled = [i for i, color in enumerate(dots.collections[0].get_facecolors()) if color[-1]]
    assert filled == moments[23]["kept"] == [0, 4, 8, 12]
    assert [it.get_height() for it in bars.patches] == [len(moment["kept"]) for moment in moments]


def test_a_leaf_with_a_gradient_is_filled(figures: Any) -> None:
    tensors = {"x": ([1.0], None), "w": ([2.0], [1.0]), "prediction": (2.0, None), "loss": (0.5, None)}
    (axes,) = figures.plot_leaves(tensors).axes
    assert [bool(it.get_facecolor()[-1]) for it in axes.patches[:4]] == [False, True, False, False]
    assert [it.get_text() for it in axes.texts[:4]] == [
        "x = [1.0]",
        ".grad = None",
        "w = [2.0]",
        ".grad = [1.0]",
    ]
