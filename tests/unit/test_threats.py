"""The threat model is held row by row: each names its tests, and they are there."""

from __future__ import annotations

import re

from tests.running import REPO

PAGE = (REPO / "docs" / "threat-model.md").read_text(encoding="utf-8")


def test_every_row_names_tests_that_are_there() -> None:
    promises, _, shown = PAGE.partition("## What shows it")
    who = [re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for table in (promises, shown)]
    assert who[0] == who[1] and len(who[0]) > 10
    text = "\n".join(file.read_text(encoding="utf-8") for file in (REPO / "tests").rglob("test_*.py"))
    there = set(re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))
    for row in re.findall(r"^\| (?!who|-).*$", shown, re.MULTILINE):
        named = re.findall(r"`(test_\w+)`", row)
        assert named and set(named) <= there, row
