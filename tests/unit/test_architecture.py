"""The page that says where things are names every module, in its own package, and none that is gone."""

from __future__ import annotations

import re

import pytest
from tests.running import REPO

ENGINE = REPO / "tools" / "litbook"
PAGE = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = sorted(path.parent.name for path in ENGINE.glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_a_package_has_its_line(package: str) -> None:
    part = PAGE.partition(f"### `{package}/`")[2].partition("\n#")[0]
    there = {file.name for file in (ENGINE / package).glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"^\| `(\w+\.py)` \|", part, re.MULTILINE)) == there


def test_every_file_that_is_named_as_a_place_to_start_is_there() -> None:
    start = PAGE.partition("## To change something")[2].partition("## Every module")[0]
    named = re.findall(r"`((?:\w+/)?\w+\.py)`", start)
    assert named and [name for name in named if not (ENGINE / name).is_file()] == []
