"""Claims and @inspects that never ran are listed; where no known device can reach them, the build fails."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.running import HEAD, LITBOOK, command, line_of, record, section, unrun, write

from litbook.project import Project
from litbook.record import model
from litbook.record.recordings import trim
from litbook.run.run import run


def listed(made: model.Record, *others: model.Record) -> list[tuple[int, bool]]:
    """Line and deadness of what never ran."""
    found = unrun(made, others)
    return [(it.finding.place.line, it.dead) for it in found if it.finding.place]


def dead_in(folder: Path, body: str, before: str = "") -> list[str]:
    """The source lines of a section with `body` that no device can reach."""
    found = unrun(record(folder, section(body, before), device="cpu"))
    return [it.finding.place.text.strip() for it in found if it.finding.place and it.dead]


ON_CUDA = (
    f'{HEAD}\ndef main():\n    one()\n    two()\n\n\ndef one():\n    """One."""\n    x = 1  # @inspect x\n    assert x\n\n\n'
    '@requires("cuda")\ndef two():\n    """Two."""\n    y = 2  # @inspect y\n    assert y\n    return\n    assert not y\n'
)


def test_what_ran_is_not_listed(tmp_path: Path) -> None:
    body = "x = 1  # @inspect x\nassert x == 1\nfor i in range(3):  # @inspect i\n    assert i < 3\nwith open(__file__) as f:  # @inspect f.name\n    pass"
    assert dead_in(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return\nassert 1 < 2", "assert 1 < 2"),
        ("x = 0\nif x:\n    assert x", "assert x"),
        ("x = 0\nif x:\n    y = 1  # @inspect y", "y = 1  # @inspect y"),
        ("for i in ():\n    assert i", "assert i"),
        ("for i in range(2):\n    continue\n    assert i", "assert i"),
        ("try:\n    x = 1\nexcept ValueError:\n    assert False", "assert False"),
        ("match 1:\n    case 2:\n        assert 3 < 4", "assert 3 < 4"),
        ("def inner():\n    assert 1 < 2", "assert 1 < 2"),
    ],
)
def test_a_claim_that_no_run_can_reach_is_dead(tmp_path: Path, body: str, line: str) -> None:
    assert dead_in(tmp_path, body) == [line]


def test_a_case_that_is_there_for_never_running_is_not_dead(tmp_path: Path) -> None:
    assert (
        dead_in(tmp_path, "match 1:\n    case 1:\n        assert 3 < 4\n    case _:\n        assert False")
        == []
    )


def test_a_helper_that_nothing_calls_is_dead_and_one_that_runs_unrecorded_is_not(tmp_path: Path) -> None:
    before = "def helper(x):\n    assert x\n"
    assert dead_in(tmp_path, "x = 1", before) == ["assert x"]
    assert dead_in(tmp_path, "helper(1)", before) == []
    assert dead_in(tmp_path, "helper(1)  # @stepover", before) == []


def test_what_needs_another_device_waits_for_a_recording_but_a_line_behind_a_return_is_dead(
    tmp_path: Path,
) -> None:
    made = record(tmp_path, ON_CUDA, device="cpu")
    y, waiting, dead = (line_of(ON_CUDA, part) for part in ("# @inspect y", "assert y", "assert not y"))
    assert listed(made) == [(y, False), (waiting, False), (dead, True)]


def test_what_a_recording_ran_has_run(tmp_path: Path) -> None:
    here = record(tmp_path, ON_CUDA, device="cpu")
    there = record(tmp_path, ON_CUDA.replace('@requires("cuda")\n', "# on a GPU\n"), device="cpu")
    dead = line_of(ON_CUDA, "assert not y")
    assert listed(here, there) == [(dead, True)]
    moved = record(tmp_path, ON_CUDA.replace('@requires("cuda")\n', "\n\n\n"), device="cpu")
    assert listed(here, moved) == [(dead, True)]
    assert listed(here, trim(there)) == [(dead, True)]  # it has no text


def test_a_section_that_raised_says_so_itself_and_is_not_listed_too(tmp_path: Path) -> None:
    assert dead_in(tmp_path, "raise ValueError\nassert 1 < 2") == []
    assert dead_in(tmp_path, "x = {}\nx['a']\nassert x") == []


def test_of_a_run_of_some_sections_only_those_are_asked(tmp_path: Path) -> None:
    text = ON_CUDA.replace('@requires("cuda")\n', "")
    assert listed(record(tmp_path, text, sections=["one"], device="cpu")) == []
    dead = line_of(text, "assert not y")
    assert listed(record(tmp_path, text, sections=["two"], device="cpu")) == [(dead, True)]


def test_the_problem_names_the_place_and_the_way_out(tmp_path: Path) -> None:
    (found,) = unrun(record(tmp_path, section("return\nassert 1 < 2"), device="cpu"))
    assert str(found.finding) == (
        "lecture_sample.py:12:5: never ran: the claim 1 < 2\n"
        "    assert 1 < 2\n"
        "    ^\n"
        "    let a run reach it, mark its section @requires(…), or take it out"
    )


def test_of_a_section_that_nothing_calls_the_way_out_is_to_call_it(tmp_path: Path) -> None:
    text = section("assert 1 < 2") + "\ndef two() -> None:\n    assert 2 < 3\n"
    (idle,) = unrun(record(tmp_path, text, device="cpu"))
    assert idle.dead
    assert idle.finding.way_out == (
        "nothing calls two(): call it (a section: in main() or a part), or take it out"
    )


def test_a_section_without_a_claim_that_nothing_calls_is_one_remark_in_a_whole_run(tmp_path: Path) -> None:
    idle = '\ndef two() -> None:\n    note("Never.")\n    note("Seen.")\n'
    others = "\ndef helps(x):\n    note(x)\n\ndef three() -> None:\n    print()\n"
    path = write(tmp_path, section("assert 1 < 2") + idle + others)
    done = command("--quiet", path)
    assert done.returncode == 0
    assert re.findall(r"(lecture_sample.py:\d+:\d+: nothing .*)\n(.*)\n.*\n(.*)", done.stdout) == [
        (
            "lecture_sample.py:13:1: nothing calls two(), so that no page shows it",
            "    def two() -> None:",
            "    call it in main() or a part, or take it out",
        )
    ]
    assert "nothing calls" not in command("--quiet", path, "one").stdout


@pytest.mark.parametrize(
    ("text", "said", "reached"),
    [
        (
            section("1 / 0\nassert 2 == 2"),
            "lecture_sample.py:11: ZeroDivisionError: division by zero [raised]\n    1 / 0\n\n",
            "0 claims hold, 0 fail, 0 not run, 1 was not reached; 1 error",
        ),
        (
            section("assert 2 == 2").replace("    one()", "    {}['a']\n    one()", 1),
            "lecture_sample.py:6: KeyError: 'a' [raised]\n    {}['a']\n\n",
            "0 claims hold, 0 fail, 0 not run, 1 was not reached; 1 error",
        ),
        (
            section("assert 2 == 3"),
            "lecture_sample.py:11: claim fails: 2 == 3 [claim-fails]\n    assert 2 == 3\n    2 == 3\n\n",
            "0 claims hold, 1 fails, 0 not run",
        ),
    ],
)
def test_the_command_shows_what_kept_a_lecture_from_its_end_and_ends_with_1(
    repo: Path, tmp_path: Path, text: str, said: str, reached: str
) -> None:
    file = write(tmp_path, text)
    done = subprocess.run(
        [*LITBOOK, "check", "--select", "never-ran", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (
        done.stdout
        == f"{said}lecture_sample: 1 finding: 1 {said.partition('[')[2].partition(']')[0]}; this run: {reached}\n"
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_a_strict_build_warns_of_a_dead_claim_and_of_an_unbacked_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from litbook.run.run import run
    from litbook.site.plugin import LitbookPlugin

    (tmp_path / "lectures").mkdir()
    text = section('note("Of 16 bytes.")\nreturn\nassert 1 < 2').replace("One.", "One thing.")
    (tmp_path / "lectures" / "lecture_90.py").write_text(text, encoding="utf-8")
    plugin = LitbookPlugin()
    plugin.load_config({})
    with caplog.at_level("WARNING"):
        plugin.build(Project(tmp_path), lambda paths: (partial(run, it, device="cpu") for it in paths))
    said = [entry.message.splitlines()[0] for entry in caplog.records]
    assert any("never ran: the claim 1" in line for line in said)
    assert any("unbacked: the number '16'" in line for line in said)


def test_a_helper_waits_for_the_device_of_its_section_whatever_is_called_like_its_file(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "lecture_x"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        '"""X."""\nfrom .gradient import here, there\n\ndef main():\n    here()\n    there()\n'
    )
    (folder / "gradient.py").write_text(
        "from litbook import requires\n\ndef deep(x):  # @stepover\n    assert x == 1\n\n"
        'def here():\n    gradient = 1  # @inspect gradient\n\n@requires("cuda")\ndef there():\n    deep(1)\n'
    )
    (never,) = unrun(run(folder, device="cpu"))
    assert not never.dead
    assert "has not run yet: the assert x == 1: it needs cuda" in str(never.finding)
