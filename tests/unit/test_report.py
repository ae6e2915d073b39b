"""What went wrong and how many claims hold, in words; and the golden records of the samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.running import SAMPLES, failures, golden, record, remarks, section

from litbook.finding import Place
from litbook.record import encoding, model
from litbook.record.compare import Difference
from litbook.record.compare_values import ValueChange
from litbook.rules import outcome, recorded
from litbook.run.run import run

PLACE = model.Environment(
    python="3", os="", machine="", cpu="", cores=1, threads=1, memory=1,
    device=model.Device("cpu", "cpu", "NAME"), versions={}, commit=None, date="", seed=0,
)  # fmt: skip


@pytest.mark.parametrize("name", ["tour", "failing"])
def test_a_sample_leaves_its_golden_record(name: str) -> None:
    made = run(SAMPLES / f"{name}.py", device="cpu")
    sections = tuple(replace(section, seconds=0.0) for section in made.sections)
    made = replace(made, environment=PLACE, seconds=0.0, peak=0, sections=sections)
    golden(SAMPLES / f"{name}.json", encoding.dumps(made))


@pytest.mark.parametrize("name", ["tour", "failing"])
def test_a_golden_record_is_what_its_text_says(name: str) -> None:
    made = encoding.read(SAMPLES / f"{name}.json")
    assert encoding.dumps(made) == (SAMPLES / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["tour", "failing"])
def test_the_terminal_ends_with_the_report_of_the_golden_record(name: str) -> None:
    made = encoding.read(SAMPLES / f"{name}.json")
    text = (SAMPLES / f"{name}.txt").read_text(encoding="utf-8")
    problems = "".join(f"\n{problem}\n" for problem in failures(made))
    before, found, after = text.partition(problems + "\n")
    assert before and found and f"\n{outcome.summary(made)}" in f"\n{after}"
    assert outcome.holds(made) is (name == "tour")


def test_sections_of_which_one_thing_is_said_are_one_line_after_what_contradicts() -> None:
    said = "was recorded from an older text"
    one, *six = (Difference("text", f"s{i}", Place("l.py", i), said) for i in range(7))
    gone = Difference("section", "gone", Place("l.py", 1), "was recorded and is no longer there")
    value = Difference("value", "t", Place("l.py", 9), "x", (ValueChange("", "1", "2"),))
    assert [*map(str, recorded.join_differences([one, gone, value]))] == [
        "l.py:9: t: x is not what was recorded\n    was 1, is 2",
        "l.py:0: s0 was recorded from an older text",
        "l.py:1: gone was recorded and is no longer there",
    ]
    (line,) = map(str, recorded.join_differences([one, *six]))
    assert line == "each of 7 sections was recorded from an older text: s0, s1, s2, s3, s4 and 2 more"


def counted(**counts: int) -> model.Record:
    """A record with so many claims of each verdict."""
    verdicts = {
        "holds": "holds",
        "fails": "fails",
        "not_reached": "not-reached",
        "needs_device": "needs-device",
    }
    made = encoding.read(SAMPLES / "tour.json")
    claims = [model.Claim(1, 1, "x", "", verdicts[k]) for k, n in counts.items() for _ in range(n)]  # type: ignore[arg-type]
    one = replace(made.main, claims=tuple(claims), errors=())
    return replace(made, sections=(one,))


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "0 claims hold, 0 fail, 0 not run"),
        ({"holds": 1}, "1 claim holds, 0 fail, 0 not run"),
        ({"holds": 212, "needs_device": 14}, "212 claims hold, 0 fail, 14 not run"),
        ({"holds": 2, "fails": 1, "needs_device": 1}, "2 claims hold, 1 fails, 1 not run"),
        ({"not_reached": 1}, "0 claims hold, 0 fail, 0 not run, 1 was not reached"),
        ({"not_reached": 2}, "0 claims hold, 0 fail, 0 not run, 2 were not reached"),
    ],
)
def test_the_last_line_counts_in_plain_words(counts: dict[str, int], line: str) -> None:
    assert outcome.summary(counted(**counts)) == line


def test_errors_are_counted_and_nothing_holds_with_them(tmp_path: Path) -> None:
    made = record(tmp_path, section("assert 1 < 2\n1 / 0"))
    assert outcome.summary(made) == "1 claim holds, 0 fail, 0 not run; 1 error"
    assert not outcome.holds(made)
    assert outcome.holds(counted(holds=1, needs_device=1))
    assert not outcome.holds(counted(holds=1, fails=1))


def test_problems_stand_in_the_order_of_the_lines(tmp_path: Path) -> None:
    made = record(tmp_path, section("assert 1 == 2\nx = 1  # @inspect x.a\nassert 2 == 3\n1 / 0"))
    lines = [int(problem.split(":")[1]) for problem in failures(made)]
    assert lines == sorted(lines) and len(lines) == 4


def test_a_failed_claim_names_its_place_its_test_and_both_values(tmp_path: Path) -> None:
    (problem,) = failures(record(tmp_path, section('x = [3]\nassert x[0] * 2 == len(x) + 4, "caption"')))
    assert problem == (
        "lecture_sample.py:12: claim fails: caption\n"
        "    assert x[0] * 2 == len(x) + 4\n"
        "    6 == 5\n"
        "      x[0] * 2 is 6\n"
        "      len(x) + 4 is 5"
    )


def test_a_failed_annotation_says_why(tmp_path: Path) -> None:
    body = 'x: Float[np.ndarray, "a 4"] = np.zeros((2, 3))'
    (problem,) = failures(
        record(tmp_path, section(body, "import numpy as np\nfrom jaxtyping import Float\n"))
    )
    assert problem.splitlines()[1:] == [
        '    x: Float[np.ndarray, "a 4"]',
        "    float64(2, 3) is no Float[ndarray, 'a 4']",
    ]


def timed(
    key: str, seconds: float, parent: str = "main", kind: model.SectionKind = "section"
) -> model.Section:
    """A section that took so long, with all inside it."""
    return model.Section(key, kind, 0, 1, 1, parent=parent, seconds=seconds)


def test_a_run_that_took_its_time_says_which_sections_did() -> None:
    part = timed("part", 3.0, kind="part")
    inside = [timed("slow", 2.25, "part"), timed("less", 0.5, "part"), timed("quick", 0.01, "part")]
    took = model.Record(9, "lecture_01", "", PLACE, (), sections=(part, *inside))
    assert outcome.longest([took]) == "longest: slow 2.2 s, less 0.5 s, part 0.2 s"
    again = replace(took, lecture="lecture_02", sections=(timed("<module>", 9.0, "", "module"), part))
    assert outcome.longest([took, again]).startswith(
        "longest: lecture_02 part 3.0 s, lecture_01 slow 2.2 s, "
    )


def test_a_quick_run_says_nothing_of_time() -> None:
    quick = model.Record(9, "lecture_01", "", PLACE, (), sections=(timed("one", 0.4), timed("two", 1.5)))
    assert outcome.longest([quick]) == outcome.longest([]) == ""


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("df", "inspect it: df  # @inspect df"),
        ("df.loc['a']  # a row", "inspect it: df.loc['a']  # @inspect df.loc['a']"),
        ("df.head()", "inspect it: df.head()  # @inspect df.head()"),
        ("plt.show()", 'hand the figure over: figure(plt.gcf(), caption="…", alt="…")'),
        ("df, w  # both", "inspect it: df, w  # @inspect df, w"),
        ("df.sum(), w.sum()", "inspect it: df.sum(), w.sum()  # @inspect df.sum(), w.sum()"),
        ("df.a + 1", "inspect it: df.a + 1  # @inspect df.a + 1"),
        ("df < w", "inspect it: df < w  # @inspect df < w"),
        ("[df, w]", "inspect it: [df, w]  # @inspect [df, w]"),
        ("df >> w", None),  # to some libraries that does something
        ("df  # @inspect df", None),
        ("df.sort()", None),
        ("x @ w", None),
        ("print(df)", None),
        ("...", None),
        ("'text'", None),
    ],
)
def test_what_a_notebook_would_show_and_a_page_does_not_is_said_with_the_way_out(
    tmp_path: Path, code: str, way_out: str | None
) -> None:
    body = f"from unittest.mock import MagicMock\ndf = x = w = plt = MagicMock()\n{code}"
    made = record(tmp_path, section(body))
    at = len(made.sources[0].text.splitlines())
    alone = f"{code.partition('  #')[0]} stands alone, and is shown nowhere"
    what = "plt.show() shows nothing here" if "show" in code else alone
    expected = [f"lecture_sample.py:{at}: {what}\n    {code}\n    {way_out}"] if way_out else []
    assert remarks(made) == expected


def test_what_a_line_that_was_not_reached_would_have_shown_is_not_known(tmp_path: Path) -> None:
    made = record(tmp_path, section('raise ValueError("no")\nnote("a"), note("b")'))
    assert not [told for told in remarks(made) if "stands alone" in told]
    assert [error.message for one in made.sections for error in one.errors] == ["ValueError: no"]
