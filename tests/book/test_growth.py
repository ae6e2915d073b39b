"""Large lectures: what they take grows with their length. CPU seconds are compared with one another, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.running import HEAD, write

from litbook.record import encoding
from litbook.render import books, ledger, page, player
from litbook.render.edition import Edition
from litbook.run.run import run


def sections(count: int) -> str:
    """A lecture of so many sections, each with a note, a value and a claim."""
    calls = "\n    ".join(f"s{i}()" for i in range(count))
    body = '    """Section {0}."""\n    note("Words.")\n    x = {0}  # @inspect x\n    assert x == {0}, "it is"\n'
    return f"{HEAD}def main():\n    {calls}\n" + "".join(
        f"def s{i}():\n{body.format(i)}" for i in range(count)
    )


def claims(count: int) -> str:
    """A lecture of one section with so many claims."""
    lines = "".join(f'    assert x + {i} == {i + 1}, "claim {i}"\n' for i in range(count))
    return f"{HEAD}def main():\n    one()\ndef one():\n    x = 1\n{lines}"


def seconds(folder: Path, text: str) -> dict[str, float]:
    """What it takes to run the lecture, to keep its record, and to make its pages: each by its name."""
    path = write(folder, text)
    found, clock = dict[str, float](), [time.process_time()]

    def took(name: str) -> None:
        clock.append(time.process_time())
        found[name] = clock[-1] - clock[-2]

    made = run(path)
    took("run")
    record = encoding.loads(encoding.dumps(made))
    took("record")
    assert page.pages(record, books.NOTHING_CITED, [], [])
    took("pages")
    assert player.data(record)
    took("player")
    edition = Edition("lecture_sample", record, [])
    assert ledger.page([edition])
    assert ledger.part(edition, books.INDEX)
    took("ledger")
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("make", "count"), [(sections, 500), (claims, 1500)])
def test_four_times_the_text_takes_little_more_than_four_times_as_long(
    tmp_path: Path, make: Callable[[int], str], count: int
) -> None:
    seconds(tmp_path, make(20))  # what is imported and compiled once
    short, long = seconds(tmp_path, make(count)), seconds(tmp_path, make(4 * count))
    for name, took in long.items():  # with the square it would be 16 times
        assert took < max(1, 12 * short[name]), f"{name}: {short[name]:.1f} s, {took:.1f} s"
