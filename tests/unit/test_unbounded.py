"""A value that a page shows as measured, and that no claim reads, is listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import section, write

from litbook.cli import litbook
from litbook.lecture import parse
from litbook.rules.unclaimed_measure import find_unclaimed

CLOCK = "import time\n"
ROOT = Path(__file__).parents[2]


def loose(body: str) -> list[str]:
    """What no claim of the section `body` reads."""
    return [problem.what for problem in find_unclaimed(parse.parse(section(body, CLOCK)))]


@pytest.mark.parametrize(
    "body",
    [
        "t = time.time()  # @measure t",
        "t = time.time()  # @measure t\nassert 1 < 2",
        "t = time.time()\nhalf = t / 2  # @measure half\nassert t > 0",
        "t = [time.time()]  # @measure t\nfor x in [1]:\n    print(t)\n    assert x == 1",
    ],
)
def test_a_measured_value_that_no_claim_reads_is_found(body: str) -> None:
    [what] = loose(body)
    assert what.startswith("no claim reads ")
    assert what.endswith(", which is measured")


@pytest.mark.parametrize(
    "body",
    [
        "t = time.time()  # @measure t\nassert t > 0",
        "t = time.time()  # @measure t\nhalf = t / 2\nassert half > 0",
        "t = time.time()  # @measure t, 2 * t\nassert 2 * t > 0",
        "assert time.time() > 0  # @measure time.time()",
        "several = []\nfor _ in range(2):\n    t = time.time()  # @measure t\n    several.append(t)\nassert min(several) > 0",
        "by = {}\nt = time.time()  # @measure t\nby['t'] = t\nassert by",
        "t = time.time()  # @measure t\ndef twice():\n    return 2 * t\nassert twice() > 0",
        "on = time.time() > 0  # @measure on\nif on:\n    assert 1 < 2",
        "t = time.time()  # @inspect t",
    ],
)
def test_one_that_a_claim_reads_is_not(body: str) -> None:
    assert loose(body) == []


def test_it_is_listed_with_its_place_and_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, section("t = time.time()  # @measure t", CLOCK))
    assert litbook(["check", "--select", "unbounded", str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"{file.name}:" in printed
    assert "no claim reads t, which is measured" in printed
    assert "claim what it may be, from both sides where that can be told" in printed
    assert "lecture_sample: 1 finding: 1 unbounded\n" in printed


@pytest.mark.parametrize("name", ["lecture_02", "lecture_03", "lecture_04"])
def test_this_book_shows_no_such_value(name: str) -> None:
    path = ROOT / "lectures" / name
    assert [str(problem) for problem in find_unclaimed(parse.read(path, name))] == []
