"""What the contents call a section: its name in words, where that is shorter than its thesis."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import record

from litbook.html import page

LECTURE = '''"""Sizes."""
from litbook import note

def main():
    {name}()

def {name}():
    """{heading}"""
    note("FLOPs.")
'''


@pytest.mark.parametrize(
    ("name", "heading", "label"),
    [
        ("flops_are_work", "FLOPs count work that was done", "FLOPs are work"),
        ("randn_draws", "`randn` draws from the standard normal", "randn draws"),
        ("gpus_wait", "Most of the time, GPUs wait for memory", "GPUs wait"),
        ("Größe_zählt", "Die Größe eines Tensors zählt mehr", "Größe zählt"),
        ("_a_view__shares_", "A view shares its storage with others", "A view shares"),
    ],
)
def test_a_label_is_the_name_in_words_with_the_capitals_of_the_headings(
    tmp_path: Path, name: str, heading: str, label: str
) -> None:
    made = page.pages(record(tmp_path, LECTURE.format(name=name, heading=heading)))["index.md"]
    assert f' data-toc-label="{label}"}}' in made


@pytest.mark.parametrize("heading", ["Waits", ""])
def test_a_heading_that_is_as_short_stands_for_itself(tmp_path: Path, heading: str) -> None:
    made = page.pages(record(tmp_path, LECTURE.format(name="gpus_wait", heading=heading)))["index.md"]
    assert "data-toc-label" not in made
