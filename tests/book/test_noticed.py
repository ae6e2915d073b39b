"""Code on the page that no claim depends on is found: each change of it is tried, and nothing notices."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from tests.running import LITBOOK, line_of, section, write

from litbook.errors import LitbookError
from litbook.mutants import forks, noticed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="changes are tried in forked processes")


def unnoticed(folder: Path, body: str, before: str = "") -> list[str]:
    """The changes of a lecture whose one section is `body` that nothing notices."""
    found, record = noticed.try_changes(write(folder, section(body, before)))
    assert [error.message for _, error in record.errors()] == []
    return [it.change for tried in found for it in tried.unnoticed]


def command(repo: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LITBOOK, "check", "--select", "unnoticed", *map(str, words)],
        cwd=repo, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> str:
    """What the command printed, without how long it took."""
    return re.sub(r" in [\d,]+ s:", " in … s:", done.stdout)


def test_the_command_lists_the_one_statement_that_nothing_notices(repo: Path, tmp_path: Path) -> None:
    file = write(
        tmp_path, section("rows = 3\nspare = print\nsize = rows * 8  # @inspect size\nassert size == 24")
    )
    done = command(repo, file)
    assert done.returncode == 1, done.stderr
    assert said(done) == (
        "lecture_sample.py:12:5: nothing in one notices: left out [unnoticed]\n"
        "    spare = print\n"
        "\n"
        "lecture_sample: 1 finding: 1 unnoticed; 11 of 11 changes in 1 section tried in … s: "
        "10 noticed by a claim (90.9%), 0 by a value alone, 1 by nothing\n"
    )


def test_where_all_is_noticed_the_command_ends_with_0(repo: Path, tmp_path: Path) -> None:
    file = write(tmp_path, section("size = 3 * 8\nassert size == 24"))
    done = command(repo, file, "one", "--all")
    assert (done.returncode, said(done)) == (
        0,
        (
            "lecture_sample: nothing; 9 of 9 changes in 1 section tried in … s: "
            "9 noticed by a claim (100.0%), 0 by a value alone, 0 by nothing\n"
        ),
    )
    assert command(repo, file, "two").returncode == 2


@pytest.mark.parametrize(
    "body",
    [
        "x = [3, 4]\nx[0] = 5  # @inspect x\nassert len(x) == 2",  # a value notices, and no claim
        "x = 3\nwhile x < 4:\n    x += 1  # @inspect x",  # left out, it does not end
        "x = f(2)\nassert x == 2",
        "def g(a, b=2):\n    return a + b\nassert g(1) == 3",
    ],
)
def test_a_value_an_exception_or_no_end_notices_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(noticed, "MORE", 0.5)
    before = "def f(n):\n    if n != 2:\n        raise ValueError(n)\n    return n\n"
    assert [it for it in unnoticed(tmp_path, body, before) if it == "left out"] == []


def test_a_change_that_allocates_without_bounds_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticed, "MEMORY", 2**28)
    assert unnoticed(tmp_path, "n = 0\nbytes(n << 30)") == [
        "left out",
        "30 -> 31",
        "30 -> 60",
    ]  # and not 0 -> 1


def test_what_changes_from_run_to_run_notices_nothing(tmp_path: Path) -> None:
    body = "import os\nx = os.getpid() + 3  # @inspect x\nassert x"
    assert unnoticed(tmp_path, body) == ["+ -> -", "doubled", "3 -> 4", "3 -> 6"]


def test_a_section_that_raises_the_second_time_is_not_tried(repo: Path, tmp_path: Path) -> None:
    file = write(tmp_path, section("x = once.pop()\nassert x == 1", "once = [1]\n"))
    done = command(repo, file)
    assert said(done) == (
        "lecture_sample: nothing; 0 of 1 changes in 1 section tried in … s: 0 noticed by a claim, 0 by a value alone, "
        "0 by nothing; 1 section cannot be run again\n"
    )


def test_trying_changes_nothing_for_the_lecture(tmp_path: Path) -> None:
    text = section("seen.append(1)\nx = len(seen)  # @inspect x\nassert x == 1", "seen = []\n")
    found, record = noticed.try_changes(write(tmp_path, text))
    assert [claim.verdict for _, claim in record.claims()] == ["holds"]
    assert found[0].made == found[0].count == 3


def test_every_section_gets_its_part_of_the_time(tmp_path: Path) -> None:
    sections = "".join(
        f"def s{i}():\n    import time\n    time.sleep(0.1)\n    x = {'1 + ' * 40}1\n    y = 2\n    assert y\n"
        for i in range(2)
    )
    file = write(tmp_path, f'"""L."""\ndef main():\n    s0()\n    s1()\n{sections}')
    start = time.monotonic()
    found, _ = noticed.try_changes(file, seconds=4)
    again, _ = noticed.try_changes(file, seconds=4)
    assert time.monotonic() - start < 16
    assert [it.section for it in found] == ["s0", "s1"]
    assert all(0 < it.count < it.made for it in found)
    for one, other in zip(found, again, strict=True):  # the longer of two draws begins with the shorter
        texts = ({(it.line, it.column) for it in tried.unnoticed} for tried in (one, other))
        assert set.intersection(*texts)


def test_a_part_is_tried_without_its_sections(tmp_path: Path) -> None:
    text = '"""L."""\ndef main():\n    part()\ndef part():\n    n = 2\n    assert n == 2\n    inner()\ndef inner():\n    x = 3\n    assert x == 3\n'
    found, _ = noticed.try_changes(write(tmp_path, text))
    assert [(it.section, it.made, len(it.unnoticed)) for it in found] == [("inner", 3, 0), ("part", 3, 0)]


def test_a_lecture_that_ends_its_process_gives_no_verdict(repo: Path, tmp_path: Path) -> None:
    for check in ("unnoticed", "mutant"):
        file = write(
            tmp_path, section("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nassert 1 == 1")
        )
        done = subprocess.run(
            [*LITBOOK, "check", "--select", check, str(file)],
            cwd=repo,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "the process was killed by signal 9 (SIGKILL), in the section one; no verdict" in done.stderr


def test_what_only_a_shown_value_notices_is_told_apart(repo: Path, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        section("size = 3  # @inspect size\nassert size < 5\nquestion('?', answer=1, check=size - 2)"),
    )
    found, _ = noticed.try_changes(file)
    assert [(len(it.noticed), it.unclaimed, it.unnoticed) for it in found] == [(3, [], [])]  # the check, too
    file = write(tmp_path, section("size = 3  # @inspect size\nassert size < 5"))
    done = command(repo, file, "--least", "90")
    assert done.returncode == 1
    assert said(done) == (
        "claims notice 66.7% of the changes, 90 % are wanted [unnoticed]\n\n"
        "lecture_sample.py:11:12: no claim, only a value shown in one notices: 3 -> 4\n"
        "    size = 3  # @inspect size\n\n"
        "lecture_sample: 1 finding: 1 unnoticed; 3 of 3 changes in 1 section tried in … s: "
        "2 noticed by a claim (66.7%), 1 by a value alone, 0 by nothing\n"
    )
    assert command(repo, file, "--least", "60").returncode == 0


def test_what_comes_to_the_very_same_is_not_counted(tmp_path: Path) -> None:
    before = "import torch\ndef f(n, context, narrow=True):\n    return n if narrow else n * context\n"
    body = "x = f(3, 8, narrow=True)\ny = torch.rand(2, out=None)\nz = [x, 4][:2]\nassert x == 3 and len(y) == len(z) == 2"
    found, _ = noticed.try_changes(write(tmp_path, section(body, before)))
    of_x, of_y, of_z = ["8 -> 16", "8 -> 9", "narrow= dropped"], ["out= dropped"], ["2 -> 3", "2 -> 4"]
    assert [it.change for it in found[0].same] == [*of_x, *of_y, *of_z]
    assert found[0].count == found[0].made - 6
    assert [it.change for it in found[0].unnoticed] == ["4 -> 5", "4 -> 8"]  # which another z would have


def test_what_the_text_excuses_is_listed_with_its_reason(repo: Path, tmp_path: Path) -> None:
    text = section("x = 5  # @unnoticed: 5, left out: an example\ny = 4\nassert y == 4  ")
    file = write(tmp_path, text)
    done = command(repo, file, "--least", "100")
    assert said(done) == (
        "lecture_sample.py:11:5: excused: an example: left out\n"
        "    x = 5  # @unnoticed: 5, left out: an example\n\n"
        "lecture_sample.py:11:9: excused: an example: 5 -> 10\n"
        "    x = 5  # @unnoticed: 5, left out: an example\n\n"
        "lecture_sample.py:11:9: excused: an example: 5 -> 6\n"
        "    x = 5  # @unnoticed: 5, left out: an example\n\n"
        "lecture_sample: nothing; 6 of 6 changes in 1 section tried in … s: 3 noticed by a claim "
        "(50.0%; 100.0% without 3 that the text excuses), 0 by a value alone, 3 by nothing\n"
    )
    assert done.returncode == 0
    file = write(tmp_path, section("y = 4  # @unnoticed: 4: an example\nassert y == 4"))
    done = command(repo, file)
    assert (done.returncode, said(done).splitlines()[0]) == (
        1, "lecture_sample.py:11: the excuse for '4' excuses nothing: remove it [unnoticed]"
    )  # fmt: skip


def test_a_sample_is_drawn_from_all_sections_and_runs_only_its_own(tmp_path: Path) -> None:
    sections = "".join(f"def s{i}():\n    x = {i} + 1\n    assert x == {i + 1}\n" for i in range(9))
    calls = "".join(f"    s{i}()\n" for i in range(9))
    file = write(tmp_path, f'"""L."""\ndef main():\n{calls}{sections}')
    found, record = noticed.try_changes(file, sample=4, seed=1)
    assert sum(it.made for it in found) == sum(it.count for it in found) == 4
    assert {it.section for it in found} == {
        it.key for it in record.sections if it.has_run and it.key.startswith("s")
    }
    again, _ = noticed.try_changes(file, sample=4, seed=1)
    assert [(it.section, it.count) for it in found] == [(it.section, it.count) for it in again]


@pytest.mark.parametrize("step", ["environment", "process.worlds"])
def test_a_lecture_that_is_edited_meanwhile_gives_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before it runs, when its changes have been drawn, or after."""
    text = section("x = 2 + 1\nassert x == 3")
    file, asked = write(tmp_path, text), attrgetter(step)(noticed)

    def edited(*given: Any, **more: Any) -> Any:
        file.write_text(text.replace("2 + 1", "3"))
        return asked(*given, **more)

    monkeypatch.setattr(f"litbook.mutants.noticed.{step}", edited)
    with pytest.raises(LitbookError) as caught:
        noticed.try_changes(file, sample=5)
    assert str(caught.value) == (
        f"lecture_sample.py:{line_of(text, '2 + 1')}:1: edited while its changes were tried: from this line on "
        "it is another text\n    x = 3\n    ^\n    run again, and save nothing meanwhile"
    )


def test_forks_run_side_by_side_and_each_has_its_own_patience() -> None:
    def sleeps(seconds: float) -> Iterator[float]:
        time.sleep(seconds)
        yield seconds

    start = time.monotonic()
    works = (partial(sleeps, seconds) for seconds in (0.5, 0.5, 0.5, 30.0))
    assert sorted(forks.run_in_forks(works, patience=1.5, at_once=4)) == [
        (0, [0.5]),
        (1, [0.5]),
        (2, [0.5]),
        (3, []),
    ]
    assert 1.4 < time.monotonic() - start < 8
