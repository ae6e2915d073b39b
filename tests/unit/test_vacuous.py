"""Claims that hold and say nothing are found from the record alone; where zero is the point, the author says so."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.running import judged, record, section, write

from litbook.cli import litbook
from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.record.ranks import merge_entries
from litbook.rules import outcome
from litbook.rules.vacuous import find_vacuous

LIBRARIES = "import math, torch\n"


def reasons(folder: Path, body: str, of_section: bool) -> list[str]:
    """Why each claim of the section `body` that says nothing does so, or each assert of a helper with it."""
    text = section(body, LIBRARIES)
    if not of_section:
        text = section("helper(0)", f"{LIBRARIES}def helper(_):\n{textwrap.indent(body, '    ')}\n")
    made = record(folder, text)
    assert outcome.holds(made) and bool([*made.claims()]) == of_section
    begins = f"this {'claim' if of_section else 'assert'} says nothing: "
    return [problem.what.removeprefix(begins) for problem in find_vacuous(made)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("seen = 0\nassert seen == 0", "both sides are zero"),
        ("bad = sum(1 for x in [] if x)\nassert 0 <= bad and bad <= 0", "both sides are zero"),
        ("assert len([]) == len(())", "both sides are zero"),
        ("assert torch.zeros(1).sum() == 0.0", "both sides are zero"),
        ("assert torch.equal(torch.zeros(1), torch.zeros(1))", "both sides are zero"),
        ("x = 3\nassert x == 3 and x - 3 == 0", "both sides are zero"),
        ("x = []\nassert x == []", "both sides are empty"),
        ("assert {} == dict()", "both sides are empty"),
        ("assert ''.join([]) == ''", "both sides are empty"),
        ("assert torch.equal(torch.ones(0), torch.ones(0))", "both sides are empty"),
        ("assert math.nan != 3", "it compares with nan, which equals nothing and has no order"),
        ("assert not 3 > math.nan", "it compares with nan, which equals nothing and has no order"),
        ("x = [1]\nassert x is x", "both sides are x"),
        ("assert None is None", "both sides are None"),
        ("x = [1]\nassert x[0] == x[0]", "both sides are x[0]"),
        ("x = torch.ones(2)\nassert torch.equal(x, x)", "both sides are x"),
        ("for i in range(1, 3):\n    assert i <= i", "both sides are i"),
    ],
)
@pytest.mark.parametrize("of_section", [True, False])
def test_a_claim_that_says_nothing_is_found(tmp_path: Path, body: str, why: str, of_section: bool) -> None:
    assert reasons(tmp_path, body, of_section)[:1] == [why]


@pytest.mark.parametrize("of_section", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        "x = 3\nassert x == 3",
        "assert 0 < 1 and 0 != 1",
        "assert torch.ones(()).shape == ()",
        "x = math.nan\nassert x != x and math.isnan(x)",
        "assert torch.ones(2).sum() == torch.ones(2).sum()",
        "for i in range(3):\n    assert [0, 1, 2][i] == i",
        "assert (3 > 4) == False",
        "assert not (3 > 4)",
        "assert isinstance(0, int)",
        "n = 4096\nassert n % 8 == 0 and 0 == n % 4",
        "seen = 0\nassert seen == 0  # @zero: nobody came",
        "seen = 0\nassert (seen ==\n    0), 'none'  # @zero: nobody came",
    ],
)
def test_a_claim_that_says_something_is_not(tmp_path: Path, body: str, of_section: bool) -> None:
    assert reasons(tmp_path, body, of_section) == []


def test_the_problem_names_the_line_and_the_way_out(tmp_path: Path) -> None:
    made = record(tmp_path, section("seen = 0\nassert seen == 0, 'none seen'"))
    (problem,) = find_vacuous(made)
    assert str(problem) == (
        "lecture_sample.py:12:5: this claim says nothing: both sides are zero\n"
        "    assert seen == 0, 'none seen'\n"
        "    ^\n"
        "    claim also that there was something to see; where zero is the point, say so: # @allow vacuous: WHY"
    )


def test_it_is_an_error_in_the_strict_build_and_listed_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = section("seen = 0\nassert seen == 0")
    made = record(tmp_path, text)
    (wrong,) = judged(made).errors
    file = write(tmp_path, text)
    assert litbook(["check", "--select", "vacuous", str(file)]) == 1
    said = f"{wrong.text(coded=True)}\n\n{file.stem}: 1 finding: 1 vacuous; this run: 1 claim holds, 0 fail, 0 not run\n"
    assert capsys.readouterr().out == said
    for mark in ("@zero: nobody came", "@allow vacuous: nobody came"):
        marked = write(tmp_path, text.replace("== 0", f"== 0  # {mark}"))
        assert litbook(["check", "--select", "vacuous", str(marked)]) == 0


def test_the_mark_stands_at_a_claim() -> None:
    with pytest.raises(UnusableLecture) as raised:
        parse.parse(section("seen = 0  # @zero: nobody came\nassert seen == 1"))
    assert str(raised.value) == (
        "<lecture>:11:15: @zero stands at no assert\n"
        "    seen = 0  # @zero: nobody came\n"
        "              ^\n"
        "    put it on the line of the assert"
    )


@pytest.mark.parametrize("mark", ["@zero", "@zero:", "@zero: :", "@zero nobody came"])
def test_the_mark_says_why(mark: str) -> None:
    with pytest.raises(UnusableLecture) as raised:
        parse.parse(section(f"seen = 0\nassert seen == 0  # {mark}"))
    assert str(raised.value) == (
        "<lecture>:12:23: @zero says no reason\n"
        f"    assert seen == 0  # {mark}\n"
        "                      ^\n"
        "    write why zero, or nothing, is the point: # @zero: a view moves nothing"
    )


def test_of_nan_the_way_out_speaks_of_nan(tmp_path: Path) -> None:
    (problem,) = find_vacuous(record(tmp_path, section("import math\nassert math.nan != 3")))
    assert problem.way_out.startswith("claim that it is nan: math.isnan(x), or that it is not; ")


def test_nan_on_one_rank_is_nan(tmp_path: Path) -> None:
    made = [
        record(tmp_path, section(f"x = {x}\nassert not x > 10", LIBRARIES))
        for x in ("1.0", "math.nan", "2.0")
    ]
    ranks = merge_entries([one.by_key["one"] for one in made])
    whole = replace(made[0], sections=tuple(ranks if it.key == "one" else it for it in made[0].sections))
    (problem,) = find_vacuous(whole)
    assert "it compares with nan" in problem.what


@pytest.mark.parametrize(
    "test",
    [
        "math.isclose(3, 4000, rel_tol=1)",
        "math.isclose(3, 4000, rel_tol=1.5)",
        "torch.allclose(torch.ones(2), torch.zeros(2), rtol=2, atol=1)",
        "torch.isclose(torch.ones(1), torch.ones(1), 1.0, 0).all()",
    ],
)
def test_a_relative_tolerance_of_one_takes_everything(tmp_path: Path, test: str) -> None:
    made = record(tmp_path, section(f"assert {test}", LIBRARIES))
    said = [error.message for _, error in made.errors()]
    assert len(said) == 1 and "nothing at all is within a relative tolerance" in said[0], said


def test_a_tolerance_below_one_or_an_absolute_one_is_let_be(tmp_path: Path) -> None:
    tests = "assert math.isclose(3, 4, rel_tol=0.5)\nassert math.isclose(3, 4, abs_tol=2)"
    assert [*record(tmp_path, section(tests, LIBRARIES)).errors()] == []


@pytest.mark.parametrize(
    "body",
    [
        "assert torch.tensor([1e-8], dtype=torch.float16) == 0",
        "x = torch.ones(2)\nassert type(x) == torch.Tensor",
        "from fractions import Fraction\nx = Fraction(1, 3)\ny = x\nassert x == y",
        "import datetime\nx = datetime.date(2026, 1, 1)\ny = x\nassert x == y",
    ],
)
def test_what_rounds_to_zero_and_what_never_changes_say_something(body: str, tmp_path: Path) -> None:
    assert reasons(tmp_path, body, True) == []
