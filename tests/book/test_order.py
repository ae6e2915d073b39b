"""Sections that show something else when they run alone are found, whatever made them lean on another one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.running import LITBOOK, write

from litbook.mutants import order

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="sections run alone in forked processes")

LECTURE = '''"""Two sections."""
{imports}
from litbook import note

{before}

def main() -> None:
    """Main."""
    one()
    two()


def one() -> None:
    """One."""
    note("Text.")
{one}


def two() -> None:
    """Two."""
    note("Text.")
{two}
'''
# What the section `one` changes, in ways that no text shows, and `two` reads.
DEPENDENT = {
    "cached": (
        "@functools.cache\ndef settings(): return {'width': 1}",
        "settings()['width'] = 8",
        "assert settings()['width'] == 8, 'eight'",
    ),
    "counted": (
        """@dataclasses.dataclass
class Order:
    number: int = dataclasses.field(default_factory=itertools.count(1).__next__)""",
        "first = Order()",
        "assert Order().number == 2, 'the second'",
    ),
    "registered": (
        "class Plug:\n    known = []\n    def __init_subclass__(cls): Plug.known.append(cls.__name__)",
        "class Red(Plug): pass",
        "assert Plug.known == ['Red'], 'red'",
    ),
    "single": (
        """class Config:
    only, depth = None, 1
    def __new__(cls):
        cls.only = cls.only or object.__new__(cls)
        return cls.only""",
        "c = Config()\nc.depth = 5",
        "depth = Config().depth  # @inspect depth",
    ),
    "in a list": (
        "W = [[1.0]]\ndef step(rows):\n    for row in rows: row[0] -= 1",
        "step([W[0]])",
        "print(W[0][0])",
    ),
    "file": (
        "",
        "pathlib.Path(LEFT).write_text('x')",
        "there = pathlib.Path(LEFT).exists()  # @inspect there",
    ),
}
INDEPENDENT = {
    "drawn": ("", "x = random.random()", "x = random.random()  # @inspect x"),
    "put back": (
        "STACK = [1]",
        "STACK.append(2)\nSTACK.pop()",
        "assert STACK == [1], 'as it was'",
    ),
    "its own": (
        "@functools.cache\ndef settings(): return {}",
        "settings()",
        "assert len(settings()) == 0, 'none'",
    ),
    "clock": ("", "time.sleep(0.01)", "now = time.time()  # @inspect now"),
}
IMPORTS = "import " + "\nimport ".join("dataclasses functools itertools os pathlib random time".split())


def lecture(folder: Path, before: str, one: str, two: str) -> Path:
    left = f"\nLEFT = {str(folder / 'left')!r}"
    bodies = {
        key: "\n".join(f"    {line}" for line in body.split("\n"))
        for key, body in (("one", one), ("two", two))
    }
    return write(folder, LECTURE.format(imports=IMPORTS, before=before + left, **bodies))


@pytest.mark.parametrize("kind", DEPENDENT)
def test_a_section_that_needs_another_one_is_found(tmp_path: Path, kind: str) -> None:
    assert [*order.find_dependent(lecture(tmp_path, *DEPENDENT[kind]))] == ["two"]


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_a_section_that_shows_the_same_alone_is_not(tmp_path: Path, kind: str) -> None:
    assert order.find_dependent(lecture(tmp_path, *INDEPENDENT[kind])) == {}


def test_a_section_that_ends_its_process_alone_is_not_passed_over(tmp_path: Path) -> None:
    settings, change, _ = DEPENDENT["cached"]
    path = lecture(tmp_path, settings, change, "if settings()['width'] == 1: os.kill(os.getpid(), 9)")
    [said] = order.find_dependent(path)["two"]
    assert said.startswith("alone it has no end: its process died")


def test_what_the_text_tells_is_told_once(tmp_path: Path) -> None:
    path = lecture(tmp_path, "ROWS = []", "ROWS.append(1)", "assert ROWS == [1], 'one row'")
    assert order.find_dependent(path) == {}, "`leans` names both lines, and the other section runs first"


def test_the_command_names_the_section_what_differs_and_the_way_out(tmp_path: Path) -> None:
    path = lecture(tmp_path, *DEPENDENT["cached"])
    done = subprocess.run(
        [*LITBOOK, "check", path, "--select", "order-dependent"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "two shows something else when it runs alone" in done.stdout
    assert "settings()['width'] == 8" in done.stdout and "a helper that each calls" in done.stdout
