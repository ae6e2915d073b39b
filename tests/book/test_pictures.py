"""How many sections of the core have a picture, and that what all lectures draw with draws their numbers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex

from litbook.page import section, sitemap
from litbook.page.blocks import Bits, Block, Card, Explore, Figure, Image, OutputShelf, Storage, Strip
from litbook.record import model

DRAWN = Figure | Explore | Image | Bits | Card | Storage | Strip


def pictures(blocks: list[Block]) -> list[str]:
    """The kinds of picture among blocks and what stands on their shelves."""
    things = [
        thing for block in blocks for thing in (block.things if isinstance(block, OutputShelf) else (block,))
    ]
    return [type(thing).__name__ for thing in things if isinstance(thing, DRAWN)]


def core(record: model.Record) -> dict[str, list[str]]:
    """The kinds of picture in each section of a lecture's core that holds no further ones."""
    parents = {entry.parent for entry in record.sections}
    book = sitemap.build_sitemap(record, sitemap.NOTHING_CITED, (), [])
    return {
        entry.key: pictures(section.blocks(book, entry))
        for entry in record.sections
        if entry.kind == "section" and not entry.aside and entry.key not in parents
    }


def test_two_thirds_of_the_cores_sections_have_a_picture(
    record_02: model.Record, record_03: model.Record, record_04: model.Record
) -> None:
    drawn = core(record_02) | core(record_03) | core(record_04)
    without = [key for key, kinds in drawn.items() if not kinds]
    assert len(without) <= len(drawn) / 3, without


@pytest.fixture(scope="module")
def plots(repo: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(repo / "lectures"), *sys.path])
        return importlib.import_module("plots")


@pytest.fixture(scope="module")
def tiles(plots: Any) -> Any:
    return importlib.import_module("tiles")


def test_parts_of_a_bar_are_as_long_as_their_numbers_and_begin_where_the_last_one_ends(plots: Any) -> None:
    (axes,) = plots.stacks({"one": {"a": 3.0, "b": 4.0}, "two": {"b": 5.0, "c": 0.5}}, "bytes").axes
    assert [(it.get_x(), it.get_width()) for it in axes.patches] == [(0, 3), (3, 4), (0, 5), (5, 0.5)]
    hues = [to_hex(it.get_facecolor()) for it in axes.patches]
    assert hues[1] == hues[2] and len({*hues}) == 3, "a part of one name has one colour"
    keys = zip(axes.get_legend().get_texts(), axes.get_legend().get_patches(), strict=True)
    assert [(text.get_text(), to_hex(key.get_facecolor())) for text, key in keys] == [
        ("a", hues[0]),
        ("b", hues[1]),
        ("c", hues[3]),
    ]


def test_rectangles_are_to_one_scale_and_lie_in_no_other(plots: Any, tiles: Any) -> None:
    rows = [{"a": (2.0, 3.0), "b": (1.0, 9.0)}, {"c": (4.0, 4.0)}]
    (axes,) = tiles.rectangles(rows, dict.fromkeys("abc", plots.RED)).axes
    sizes = {
        text.get_text(): (it.get_height(), it.get_width())
        for text, it in zip(axes.texts, axes.patches, strict=True)
    }
    assert sizes == {"a": (2, 3), "b": (1, 9), "c": (4, 4)} and axes.get_aspect() == 1
    boxes = [it.get_bbox() for it in axes.patches]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
