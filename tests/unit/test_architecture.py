"""The page that says where things are names every module, in its own package, and none that is gone."""

from __future__ import annotations

import re

import pytest
from tests.running import REPO

ENGINE = REPO / "tools" / "litbook"
PAGE = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = sorted(str(file.parent.relative_to(ENGINE)) for file in ENGINE.glob("**/__init__.py"))
# `- **`record/`**, the record of a run. `model.py` its structs · …`, to the next item or blank line.
ITEMS = dict(re.findall(r"^- \*\*`([\w/]+)/`\*\*(.*?)(?=^- |^$)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_package_has_its_item_and_the_page_is_short() -> None:
    assert sorted(ITEMS) == sorted("litbook" if package == "." else package for package in PACKAGES)
    assert len(PAGE.splitlines()) <= 220


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_a_package_is_named_once(package: str) -> None:
    there = {file.name for file in (ENGINE / package).glob("*.py")}
    if package != ".":
        there.remove("__init__.py")
    text = ITEMS["litbook" if package == "." else package]
    if package in ("edtrace", "translations"):  # their words name what is elsewhere, too
        text = text.replace("`project.py`", "").replace("`__init__.py`", "")
    assert sorted(re.findall(r"`(\w+\.py)`", text.replace("`litbook.py`", ""))) == sorted(there)


def test_every_file_that_is_named_as_a_place_to_start_is_there() -> None:
    start = PAGE.partition("## Where do I start")[2].partition("## Packages")[0]
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", start)
    assert len(named) >= 10
    assert [name for name in named if not (ENGINE / name).is_file()] == []
