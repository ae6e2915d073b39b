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

LIBRARIES = "import copy, json, math, pathlib\nimport numpy as np\nimport torch\n"


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
        ("text = ''.join([])\nassert '2024' not in text", "nothing is in what is empty"),
        (
            "devices = [d for d in ['cpu'] if d > 'd']\nassert not 'cuda' in devices",
            "nothing is in what is empty",
        ),
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


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "x = torch.zeros(2, 3)\nassert x.shape != [2, 3]",
            "types that are never equal: torch.Size and list",
        ),
        ("assert torch.ones(1).device != 'cuda'", "types that are never equal: torch.device and str"),
        ("assert torch.ones(1).dtype != 'float64'", "types that are never equal: torch.dtype and str"),
        ("assert pathlib.Path('a') != 'b'", "types that are never equal: pathlib.PosixPath and str"),
        ("x = '42'\nassert x != 42", "types that are never equal: str and int"),
        ("x = '42'\nassert not x == 42", "types that are never equal: str and int"),
        (
            "x = torch.ones(1)\nassert x.dim != 2",
            "types that are never equal: builtin_function_or_method and int",
        ),
        ("x = json.loads('{\"1\": 2}')\nassert 1 not in x", "types that are never equal: int and str"),
        ("xs = [(2, 3)]\nassert not [2, 3] in xs", "types that are never equal: list and tuple"),
        ("a, b = [(1, 2)], [[1, 2]]\nassert a != b", "types that are never equal: tuple and list"),
        ("a, b = {'lr': 0.1}, {'lr': '0.1'}\nassert a != b", "types that are never equal: float and str"),
        ("a, b = {3, 4}, {'3'}\nassert a.isdisjoint(b)", "types that are never equal: int and str"),
        ("a, b = {3, 4}, {'3'}\nassert not a & b", "types that are never equal: int and str"),
    ],
)
def test_what_is_of_types_that_are_never_equal_is_no_difference(tmp_path: Path, body: str, why: str) -> None:
    made = record(tmp_path, section(body, LIBRARIES))
    (problem,) = find_vacuous(made)
    assert problem.what == f"this claim says nothing: {why}"
    assert problem.way_out.startswith("compare with what it could be equal to")


NAN_WHY = "it compares with nan, which equals nothing and has no order"
SHAPES_WHY = "their shapes differ, so that nobody looks at what they hold"
ASKED_WHY = "both sides ask one object"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "a = torch.ones(2)\nb = a + torch.tensor([0.0, math.nan])\nassert not torch.allclose(a, b)",
            NAN_WHY,
        ),
        ("a = torch.ones(2)\nb = a + torch.tensor([0.0, math.nan])\nassert (a != b).any()", NAN_WHY),
        ("a = np.ones(2)\nb = a * np.array([1, math.nan])\nassert not np.array_equal(a, b)", NAN_WHY),
        ("assert [1.0, 2.0] != [1.0, math.nan]", NAN_WHY),
        ("a, b = {'loss': math.nan}, {'loss': float('nan')}\nassert a != b", NAN_WHY),
        ("a = torch.tensor([math.nan, 0.5])\nassert not (a > 1).any()", NAN_WHY),
        ("a = torch.ones(2)\nb = a * math.nan\nassert a.ne(b).any()", NAN_WHY),
        (
            "a = torch.nn.Linear(2, 2)\nb = copy.deepcopy(a)\nassert a != b",
            "each torch.nn.modules.linear.Linear equals itself alone",
        ),
        (
            "a, b = {'a': 1}, {'a': 1}\nassert a.values() != b.values()",
            "each dict_values equals itself alone",
        ),
        (
            "w = torch.nn.Linear(2, 2)\nb = w.weight.detach()\nw.weight.data.mul_(3)\nassert b.norm() == w.weight.norm()",
            ASKED_WHY,
        ),
        ("x = np.zeros((2, 2))\nfirst = x[0]\nx += 1\nassert first.sum() == x[0].sum()", ASKED_WHY),
        (
            "s = {'a': {'lr': 1}}\nb = dict(s)\ns['a']['lr'] = 2\nassert b['a']['lr'] == s['a']['lr']",
            ASKED_WHY,
        ),
        (
            "s = {'a': {'lr': 1}}\nb = dict(s)\ns['a']['lr'] = 2\nassert json.dumps(b) == json.dumps(s)",
            ASKED_WHY,
        ),
        ("x = math.nan\nassert not math.isclose(x, 1.0)", NAN_WHY),
        ("a = torch.ones(2)\nb = a[None]\nassert not torch.equal(a, b)", SHAPES_WHY),
        ("a = np.ones(2)\nb = a[None]\nassert not np.array_equal(a, b)", SHAPES_WHY),
        ("w = torch.ones(3)\nbefore = w\nw.add_(1)\nassert before.sum() == w.sum()", ASKED_WHY),
        ("w = torch.ones(3)\nbefore = w\nw.add_(1)\nassert before.tolist() == w.tolist()", ASKED_WHY),
        ("rows = [1]\nbefore = rows\nrows.append(2)\nassert len(before) == len(rows)", ASKED_WHY),
        (
            "rows = [[1], [2]]\nbefore = rows.copy()\nrows[0].append(3)\nassert before == rows",
            "both sides hold the same objects",
        ),
        (
            "state = {'w': [1]}\nbefore = {**state}\nstate['w'].append(3)\nassert before == state",
            "both sides hold the same objects",
        ),
        (
            "a, b = torch.tensor([1e-9]), torch.tensor([-7e-9])\nassert torch.allclose(a, b)",
            "its tolerance is as large as what it compares, so that zero would do",
        ),
        (
            "a, b = torch.tensor([1e-9]), torch.tensor([-7e-9])\nassert a.allclose(b)",
            "its tolerance is as large as what it compares, so that zero would do",
        ),
        (
            "a, b = torch.tensor([1e-9]), torch.tensor([-7e-9])\nassert torch.allclose(a, b, rtol=1e-3)",
            "its tolerance is as large as what it compares, so that zero would do",
        ),
        (
            "a, b = np.array([1e-9]), np.array([-7e-9])\nassert np.isclose(a, b).all()",
            "its tolerance is as large as what it compares, so that zero would do",
        ),
    ],
)
def test_what_was_settled_before_it_ran_says_nothing(tmp_path: Path, body: str, why: str) -> None:
    made = record(tmp_path, section(body, LIBRARIES))
    assert [problem.what.partition(" says nothing: ")[2] for problem in find_vacuous(made)] == [why]


@pytest.mark.parametrize(
    "body",
    [
        "assert torch.Size([2]) != (3,)",
        "assert torch.ones(1).dtype != torch.float64",
        "x = 2\nassert x != 2.5 and x != True",
        "x = None\nassert x != 3",
        "assert 3 not in [1, 2.5]",
        "assert 'b' not in {'a': 1}",
        "assert 'b' not in 'acd'",
        "assert not torch.equal(torch.ones(2), torch.zeros(2))",
        "x = torch.empty(2, 3).normal_()\nassert torch.equal(x.T.T, x)",
        "x = torch.zeros(6)\nx[0] = 1\nassert torch.equal(x.reshape(2, 3).reshape(6), x)",
        "a, b = [1], [2]\na.append(3)\nassert len(a) != len(b)",
        "a = torch.ones(2)\nb = a.clone()\na.add_(1)\nassert len(a) == len(b)",
        "a = torch.ones(2)\nb = a\na.add_(1)\nassert a.data_ptr() == b.data_ptr() and id(a) == id(b)",
        "a = torch.ones(2)\nassert torch.allclose(a, a + 1e-9)",
        "a = torch.zeros(2)\nassert torch.allclose(a + 1e-9, a)",
        "rows = [[1]]\nbefore = copy.deepcopy(rows)\nrows[0][0] = 1\nassert before == rows",
        "assert torch.ones(3, 1).expand(3, 4).stride(1) == 0",
        "x = torch.tensor([5.0, 1.0])\nassert x.argmax() == 0 and x.storage_offset() == 0",
        "mask = torch.tril(torch.ones(3, 3))\nassert mask[0, 1] == 0",
        "assert int(0.9) == 0 and 1e-200 * 1e-200 == 0 and 14 % 7 == 0",
        "a = 0b1010\nassert a ^ a == 0",
        "x = torch.tensor(3.0)\nassert x.ndim == 0 and x.dim() == 0",
        "x = torch.tensor(math.nan)\nassert (x != x).all()",
        "q, k = torch.nn.Linear(2, 4).weight.chunk(2)\nm = torch.nn.Linear(2, 4).weight\nassert q.shape == k.shape",
        "w = torch.nn.Linear(2, 4).weight\nq, k = w.chunk(2)\nassert torch.equal(q, w[:2])",
        "x = torch.empty(4).normal_()\nassert torch.equal(x.flatten(), x.view(-1))",
        "assert torch.relu(torch.tensor(-1.0)) == 0 and math.sin(0.0) == 0",
        "w = torch.ones(2)\nw[1] = 0\nassert w[1] == 0",
        "class E:\n    pass\nassert torch.float32 != torch.float64 and E is not int",
        "assert list(range(0, 3)) == list(range(3)) and range(0, 3) == range(3)",
        "assert {1, 2}.isdisjoint({3}) and not {1} & {2}",
        "assert not (torch.ones(2) > 1).any()",
        "a = [1] * 200\nb = ['1'] * 199 + [2]\nassert a != b and 3 not in ['1'] * 199 + [2]",
    ],
)
def test_what_can_be_otherwise_is_let_be(tmp_path: Path, body: str) -> None:
    assert reasons(tmp_path, body, True) == []


@pytest.mark.parametrize(
    "test", ["all(map(same, [1, 2, 3], [1, 2]))", "all(a == b for a, b in zip([1, 2, 3], [1, 2]))"]
)
def test_what_stops_at_the_shortest_overlooks_the_rest(tmp_path: Path, test: str) -> None:
    made = record(tmp_path, section(f"assert {test}", "def same(a, b):\n    return a == b\n"))
    (problem,) = find_vacuous(made)
    assert problem.what.endswith("overlooks what is left: it stops at 2 of 3 elements")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("rest = 14 % 7\nassert rest == 0", 0),
        ("at = [5, 3].index(5)\nassert at == 0", 0),
        ("x = torch.ones(3, 1).expand(3, 4)\nstep = x.stride(1)\nassert step == 0", 0),
        ("seen = 0\nassert seen == 0", 1),
        ("seen = sum(1 for x in [] if x)\nassert seen == 0", 1),
        ("rest = 14 % 7\nrest += 0\nassert rest == 0", 1),
        ("x = torch.tensor([math.nan, 1.0])\ny = x[0]\nassert y != 3", 1),
    ],
)
def test_a_name_that_is_given_one_value_stands_for_what_gives_it(
    tmp_path: Path, body: str, found: int
) -> None:
    text = section(body, LIBRARIES)
    assert len(find_vacuous(record(tmp_path, text), parse.parse(text))) == found
