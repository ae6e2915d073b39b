"""Claims that cannot fail are refused where they stand: by their text, or by the value that they come to."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.running import failures, messages, record, section

from litbook.errors import UnusableLecture
from litbook.rules import outcome, vacuous

# What of its text alone is always true, or a part of it, and the way out.
OF_THE_TEXT = {
    "assert n, 4": "compare: assert n == 4",
    "assert x.shape, (3,)": "compare: assert x.shape == (3,)",
    "assert n == 1 or 2": "compare with each: … or n == 2",
    "assert n == 1 or n == 2 or 'three'": "compare with each: … or n == 'three'",
    "assert ...": "claim something that can be false",
    "assert 'text'": "claim something that can be false",
    "assert 4": "claim something that can be false",
    "assert True": "claim something that can be false",
    "assert not ()": "claim something that can be false",
    "assert (v == 4 for v in [n])": "claim something that can be false",
    "assert [n == 4]": "claim something that can be false",
    "assert {n == 4}": "claim something that can be false",
    "assert {n: 4}": "claim something that can be false",
    "assert f'n is {n}'": "claim something that can be false",
    "assert lambda: n == 4": "claim something that can be false",
    "assert n == 5 and 'text'": "claim something that can be false",
    "assert n == 1 or 'a' + 'b'": "claim something that can be false",
    "assert n == 1 or 'n is ' + str(n)": "claim something that can be false",
    "assert n == 4 if False else True": "claim something that can be false",
    "assert (m := 4)": "claim something that can be false",
    "assert bool('text')": "claim something that can be false",
    "assert bool([n == 4])": "claim something that can be false",
    "assert len([n])": "claim something that can be false",
    "assert sorted([n == 4], reverse=True)": "claim something that can be false",
    "assert set([n == 4])": "claim something that can be false",
    "assert len(t) >= 0": "claim something that can be false",
    "assert [*t, n == 4]": "claim something that can be false",
    "assert {**{}, 'n': n == 4}": "claim something that can be false",
    "assert {**{'n': n}, **{}}": "claim something that can be false",
    "assert [*xs, *[n == 4]]": "claim something that can be false",
    "assert dict(xs, n=n == 4)": "claim something that can be false",
    "assert range(5)": "claim something that can be false",
    "assert n != len(xs) != x.ndim": "that all differ: len({n, len(xs), x.ndim}) == 3; that neighbours do: … and …",
    "assert n == 5 and not (n != 4 != xs)": "that all differ: len({n, 4, xs}) == 3; that neighbours do: … and …",
    "assert 0 < n != x is not xs is not t": "that all differ: len({0, n, x, xs, t}) == 5; that neighbours do: … and …",
    "assert (*t,)": "say what is claimed of it, `len(…) > 0` perhaps",
}
# What only its value shows, and what that is.
FUNCTION, METHOD = "a function, which is not called", "a method, which is not called"
ITERATOR = "an iterator, from which nothing was taken"
OF_THE_VALUE = {
    "assert x.is_contiguous": METHOD,
    "assert P().go": METHOD,
    "assert [].append": METHOD,
    "assert torch.equal, (x, x)": FUNCTION,
    "assert np.array_equal": FUNCTION,
    "assert helper": FUNCTION,
    "assert functools.partial(helper, 4)": FUNCTION,
    "assert n == 5 and helper": FUNCTION,
    "assert n == 4 or helper": FUNCTION,
    "assert P": "a class",
    "assert torch": "a module",
    "assert later()": "what nobody awaits",
    "assert steps()": ITERATOR,
    "assert stream()": ITERATOR,
    "assert bool(helper)": FUNCTION,
    "assert not not helper": FUNCTION,
    "assert n == 4 or not not helper": FUNCTION,
    "assert map(helper, [n])": ITERATOR,
    "assert zip([n], [4])": ITERATOR,
    "assert Mock()": "a mock",
    "assert MagicMock().called_with(4)": "a mock",
    "assert NotImplemented": "a placeholder",
    "assert t": "a tuple that begins with a truth",
    "assert why(n)": "a tuple that begins with a truth",
    "assert subprocess.run(['false'])": "a process, however it ended",
    "assert re.compile('a')": "an object, which is always true",
    "assert torch.nn.Linear(2, 3)": "an object, which is always true",
    "assert Path('nowhere')": "an object, which is always true",
    "assert (made := P())": "an object, which is always true",
    "assert made_of(n)": "an object, which is always true",
    "assert (made := made_of(n))": "an object, which is always true",
    "assert sys.modules": "the table of all modules, which is never empty",
    "assert str(n == 4)": "what str(…) makes of anything",
    "assert repr(n == 4)": "what repr(…) makes of anything",
    "assert f'{n == 4}'": "what format(…) makes of anything",
    "assert '{}'.format(n == 4)": "what format(…) makes of anything",
    "assert '%s' % (n == 4)": "what format(…) makes of anything",
    "assert id(n == 4)": "what id(…) makes of anything",
    "assert n == 5 and hash('n')": "what hash(…) makes of anything",
}
# What may be None another time, as far as the text tells: `litbook check` and the strict build say it.
OF_ONE_TIME = {
    "assert {'f': helper}.get('f')": FUNCTION,
    "assert sys.modules.get('torch')": "a module",
    "assert n == 5 and kept": FUNCTION,
    "assert bool(n == 5 and kept)": FUNCTION,
    "assert isinstance(n, int) and kept": FUNCTION,
    "assert P().held": FUNCTION,
    "assert type(n).__hash__": METHOD,
    "assert next(iter([steps()]), None)": ITERATOR,
    "assert {'P': P}['P']": "a class",
}
INFINITE = [
    "assert torch.allclose(x, x + 1, 1e-5, math.inf)",
    "assert torch.allclose(x, x + 1, atol=float('inf'))",
    "assert torch.isclose(x, x + 1, atol=math.inf).all()",
    "assert bool(math.isclose(n, 7, abs_tol=np.float32('inf')))",
    "assert all(math.isclose(v, 7, rel_tol=math.inf) for v in [n])",
    "assert math.isclose(n, 7, abs_tol=math.inf)",
    "assert n == pytest.approx(7, abs=math.inf)",
    "assert n == pytest.approx(7, math.inf)",
]
EQUAL = {
    "assert Same() == n": "everything equals Same()",
    "assert n == Same()": "everything equals Same()",
    "assert ANY == n": "everything equals ANY",
}
# What its operands show: `litbook check` and the strict build say it.
OF_THE_RECORD = {
    "assert torch.allclose(nan, nan, equal_nan=True)": "both sides are nan",
    "assert torch.allclose(nan.repeat(3), nan.repeat(3), equal_nan=True)": "both sides are nan",
    "assert all([])": "all(…) looked at nothing",
    "assert all(v == 4 for v in xs)": "all(…) looked at nothing",
    "assert all(v == 4 for v in [n] if v > 9)": "all(…) looked at nothing",
    "assert not any(v == 4 for v in xs)": "any(…) looked at nothing",
    "assert n == 5 and all([v == 4 for v in xs])": "all(…) looked at nothing",
    "assert all(map(bool, []))": "all(…) looked at nothing",
    "assert all(filter(None, xs)) and n == 5": "all(…) looked at nothing",
    "assert all({}.values()) is True": "all(…) looked at nothing",
    "assert bool((x[3:] == 4).all())": ".all(…) looked at nothing",
    "assert not (x[3:] == 1).any()": ".any(…) looked at nothing",
    "assert torch.all(x[3:] == 4)": "torch.all(…) looked at nothing",
    "assert np.zeros((2, 0)).all(axis=0).shape == (0,)": ".all(…) looked at nothing",
}
VAST = "its tolerance is as large as what it compares, so that zero would do"
OF_THE_RECORD |= {
    "assert math.isclose(n, 4000, abs_tol=n + 4000)": VAST,
    "assert torch.allclose(x, x * 3, atol=float(x.max() * 3))": VAST,
    "assert np.isclose([3, 1], [4, 2], 0, n).all()": VAST,
    "assert n == 5 and n + 1 == pytest.approx(n, abs=n)": VAST,
    "assert abs(n - 4000) <= n + 4000": VAST,
    "assert n * 9 >= math.fabs(n - 7.0)": VAST,
    "assert (x - x * 3).abs().max() < n": VAST,
    "assert np.abs(np.ones(2) - np.arange(1, 3)).max() <= 2 * len(t)": VAST,
}
SAME = "it holds whatever its names stand for"
OF_THE_RECORD |= {
    "assert sum(v for v in xs) < 1": "sum(…) looked at nothing",
    "assert max([abs(v) for v in xs], default=0) < 1": "max(…) looked at nothing",
    "assert x[3:].sum() < 1": ".sum(…) looked at nothing",
    "assert (x[3:] - 1).norm() < 1": ".norm(…) looked at nothing",
    "assert set(xs).isdisjoint({n})": ".isdisjoint(…) looked at nothing",
    "assert {n}.issuperset(xs)": "{n}.issuperset(…) looked at nothing",
    "assert 'abc'.startswith(''.join(xs))": "'abc'.startswith(…) looked at nothing",
    "assert np.allclose(np.zeros(0), np.ones(1))": "np.allclose(…) looked at nothing",
    "assert set(xs) <= {4}": "nothing is within everything",
    "assert {4} >= set(xs)": "nothing is within everything",
    "assert '' in str(n)": "the empty text is in every text",
    "assert nan.item() not in [nan.item() * 2]": "it compares with nan, which equals nothing and has no order",
    "assert (x - x).abs().max() < 1e-6": "what is taken from itself is zero",
    "assert any([n == 4, helper])": f"it asserts {FUNCTION}",
    "assert all([x.is_contiguous, x.t])": f"it asserts {METHOD}",
    "assert n == 4 or n != 4": SAME,
    "assert n == 5 and (x.ndim == 4 or not x.ndim == 4)": SAME,
    "assert n in [n]": SAME,
    "assert n in (4, n)": SAME,
    "assert n not in ()": "nothing is in what is empty",
    "assert not n or not not n": SAME,
    "assert n is None or n is not None": SAME,
    "assert isinstance(n, object)": SAME,
    "assert hasattr(n, '__class__')": SAME,
    "assert print(n == 4) is None": SAME,
    "assert np.testing.assert_allclose(n, n) is None or helper(n)": SAME,
    "assert (n == 4) is not None": SAME,
    "assert isinstance(n == 4, bool)": SAME,
    "assert (total := 6) == 6": SAME,
    "assert (y := sum([n])) == y": SAME,
    "assert (y := n * 2) == y and n == 5": SAME,
    "assert n == 5 and not (y := helper(n)) != y": SAME,
    "assert (y := n) in [y, 4]": SAME,
}
# What can be false says nothing of the kind, whatever it looks like.
CAN_FAIL = """
assert math.isclose(n, 5.5, abs_tol=n / 5) and math.isclose(n - 4.5, 0, abs_tol=n) and math.isclose(1e-9, 2e-9, abs_tol=1e-8)
for v in (1, 100): assert math.isclose(v, v + 1, abs_tol=2) and abs(v - 9) <= 100 - n
assert abs(n - 5.5) < n / 5 and abs(n - 3) < 6 and (x - 2).abs().max() <= n - 4 and abs(n - 7) <= 0.5 * n and abs(n - 3) < n
assert torch.allclose(x, x * 3, atol=2.5) and n == pytest.approx(5.5, abs=1)
assert all(a == b for a, b in zip([n, 4], (5, 4))) and all(a <= b for a, b in zip([3, n], [3, n][1:])) and len([*zip('ab', iter([n]))]) == 1
assert dict(zip('ab', range(2), strict=True)) == {'a': 0, 'b': 1} and all(v == 1 for v, _ in zip(x, itertools.count()))
assert (n == 5) is not False and not (n == 4) is True and np.bool_(n) is not None and maybe(n) is not False
assert n
assert x.shape
assert [v == 4 for v in [1]]
assert re.match('a.', 'ab')
assert all(v == 5 for v in [n])
assert not any(v == 4 for v in [n])
assert all(map(bool, [n])) and all(filter(None, [n])) and all({n: n}.values())
assert x.all() and (x == 1).all(dim=0) and torch.all(x) and not (x == 4).any()
assert n == pytest.approx(5.0000001, abs=1e-3) and torch.isclose(x, x + 1e-4, atol=1e-3).all()
for v in ([], [n]): assert all(w == 5 for w in v)
assert sorted([*t], key=str) and list(v for v in [n]) and [*t] and {**vars(made_of(n))} and len(t) >= 1 and re.compile('5').match(str(n))
assert bool(n) and not not n and len(x) and range(n) and (n if x.all() else helper(n))
assert torch.allclose(x, x.clone(), atol=1e-6)
assert math.isclose(n, 5.0000001, rel_tol=1e-3)
assert isinstance(n, int), 'a number'
assert n in (5, 6) or n > 9, f'n is {n}'
assert helper is not None and callable(helper)
assert (m := re.match('a.', 'ab')) and m.group() == 'ab'
assert {'linear': torch.nn.Linear(2, 3)}.get('linear')
assert torch.ones(1, requires_grad=True).exp().grad_fn
assert linear
assert not {'f': helper}.get('g')
assert n % 5 == 0
for v in ('f', 'g'): assert {'f': helper, 'g': [n]}.get(v)
assert n == 5, 4
assert not helper(5)
assert why(5)[1]
assert Equal(5) == Equal(5)
assert sys.argv
assert sum(v for v in [n]) == 5 and max([n], default=0) == 5 and x.sum() == 3 and (x - 2).norm() > 1
assert {n}.isdisjoint([4]) and 'abc'.startswith('ab') and set() < {n} <= {4, 5} and '5' in str(n) and 4 not in [n]
assert n not in (4, 6) and n != 4 and n != -n and x.shape != (n,) and n is not None and not isinstance(n, list)
assert n == 4 or n != 6 and n > 3
assert (n or xs) is not None and helper(n) != helper(4) or helper(4) == helper(n)
assert (x - 2).abs().max() == 1 and x is not kept and hasattr(x, 'shape') and isinstance(n, (int, str))
assert torch.allclose(*(x, x.clone())) and math.isclose(n, 5.0001, *(), **{'rel_tol': 1e-3}) and max(*(n, 4)) == 5
assert torch.allclose(x, x + 1, *(1e-5, 2.0)) and torch.isclose(x, x + 1, *[1e-5], *[2.0]).all()
assert hex(n) and maybe(n) and not maybe(None)
assert (y := n + 1) == 6 and y != n and (n := y - 1) == 5
assert n == (n := n * 1) and 0 != n != 9 and n != 4 == len(xs) + 4 and (y := helper(4)) == helper(y + 3)
"""
IMPORTS = "import functools, itertools, math, re, subprocess, sys\nfrom pathlib import Path\nfrom unittest.mock import ANY, Mock, MagicMock\nimport numpy as np, pytest, torch\n"
BEFORE = f"""{IMPORTS}
async def later():
    return False
def steps():
    yield
async def stream():
    yield
def helper(v):
    return v == 4
def why(v):
    return v == 4, "it says why"
def hex(v):
    return v * 2
def maybe(v):
    return P() if v is not None else None
class P:
    def __init__(self):
        self.held = helper
    def go(self):
        return False
def made_of(v):
    if v == 4:
        return P()
    return P()
class Same:
    def __eq__(self, other):
        return True
class Equal:
    def __init__(self, of):
        self.of = of
    def __eq__(self, other):
        return self.of == other.of
"""
VALUES = "n, x, xs, nan = 5, torch.ones(3), [], torch.tensor(float('nan'))\nt = (n == 4, 'msg')\nkept, linear = helper, torch.nn.Linear(2, 3)\n"


def lecture(line: str, of_section: bool) -> str:
    """A lecture in which the line stands in a section, or in a helper that the section calls."""
    if of_section:
        return section(VALUES + line, BEFORE)
    return section("inner(0)", f"{BEFORE}def inner(_):\n{textwrap.indent(VALUES + line, '    ')}\n")


@pytest.mark.parametrize("of_section", [True, False])
@pytest.mark.parametrize("line", OF_THE_TEXT)
def test_what_the_text_shows_to_be_always_true_is_refused(
    tmp_path: Path, line: str, of_section: bool
) -> None:
    with pytest.raises(UnusableLecture) as refused:
        record(tmp_path, lecture(line, of_section))
    [problem] = refused.value.findings
    assert problem.code == "no-claim" and problem.way_out == OF_THE_TEXT[line]
    assert problem.place is not None and problem.place.text.strip() == line


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning", "ignore:NotImplemented:DeprecationWarning")
@pytest.mark.parametrize("of_section", [True, False])
def test_what_its_value_shows_to_be_always_true_fails_the_run(tmp_path: Path, of_section: bool) -> None:
    why = {line: f"it asserts {what}" for line, what in OF_THE_VALUE.items()}
    why |= dict.fromkeys(INFINITE, "everything is within an infinite tolerance")
    text = lecture("\n".join(f"for _ in range(2): {line}" for line in why), of_section)
    made = record(tmp_path, text)
    lines = [it.strip().removeprefix("for _ in range(2): ") for it in text.splitlines()]
    assert messages(made) == [
        f"{at}: this assert cannot fail: {why[line]}\nclaim something that can be false"
        for at, line in enumerate(lines, 1)
        if line in why
    ]
    assert not outcome.holds(made)


@pytest.mark.parametrize("of_section", [True, False])
@pytest.mark.parametrize("line", EQUAL)
def test_an_equality_that_asks_nothing_fails_the_run(tmp_path: Path, line: str, of_section: bool) -> None:
    [said] = messages(record(tmp_path, lecture(line, of_section)))
    assert said.partition(": ")[2].splitlines()[0] == f"this assert cannot fail: {EQUAL[line]}"


@pytest.mark.parametrize("of_section", [True, False])
def test_a_claim_that_looked_at_nothing_says_nothing(tmp_path: Path, of_section: bool) -> None:
    problems = vacuous.find_vacuous(record(tmp_path, lecture("\n".join(OF_THE_RECORD), of_section)))
    said = [(it.place.text.strip(), it.what.partition(" says nothing: ")[2]) for it in problems if it.place]
    assert said == [*OF_THE_RECORD.items()]
    ways_out = {it.way_out for it in problems if it.what.endswith(SAME)}
    assert ways_out == {
        "claim something that can be false; where this is the point, say so: # @allow vacuous: WHY"
    }
    excused = "\n".join(f"{line}  # @zero: nothing is the point" for line in OF_THE_RECORD)
    assert vacuous.find_vacuous(record(tmp_path, lecture(excused, of_section))) == []


@pytest.mark.parametrize("of_section", [True, False])
@pytest.mark.parametrize(
    ("test", "lengths"),
    [
        ("all(a == b for a, b in zip([5, 1, 2], [n]))", "1 of 3"),
        ("n == 5 and not any(a != b for a, b in zip('ab', 'abc'))", "2 of 3"),
        ("sum(a * b for a, b in zip(np.ones(4), x)) == 3", "3 of 4"),
        ("all(map(lambda pair: pair[0] == pair[1], zip({n: 1}, (n, 7))))", "1 of 2"),
    ],
)
def test_a_zip_of_unequal_lengths_is_told_with_the_way_out(
    tmp_path: Path, test: str, lengths: str, of_section: bool
) -> None:
    made = record(tmp_path, lecture(f"assert {test}", of_section))
    assert outcome.holds(made)
    [problem] = vacuous.find_vacuous(made)
    assert problem.what.endswith(f" overlooks what is left: it stops at {lengths} elements")
    assert "zip(…, strict=True)" in problem.way_out


@pytest.mark.parametrize("of_section", [True, False])
@pytest.mark.parametrize(
    "test",
    [
        "np.all(x.numpy() == 4) is not False",
        "n == 5 and (x == 4).all() is not True",
        "not np.bool_(n) is True",
    ],
)
def test_what_never_is_pythons_true_or_false_cannot_be_denied(
    tmp_path: Path, test: str, of_section: bool
) -> None:
    [said] = messages(record(tmp_path, lecture(f"assert {test}", of_section)))
    assert "this assert cannot fail: what is of type " in said and " never is " in said


@pytest.mark.parametrize("line", OF_ONE_TIME)
def test_what_may_be_none_another_time_is_listed_and_does_not_fail_the_run(tmp_path: Path, line: str) -> None:
    """Of an assert of a helper. A claim's own test is a truth, and it would fail."""
    of_section = False
    made = record(tmp_path, lecture(line, of_section))
    assert outcome.holds(made)
    [problem] = vacuous.find_vacuous(made)
    assert problem.what == f"this assert says nothing: it asserts {OF_ONE_TIME[line]}"
    assert problem.way_out == "call it, or claim that it is there: … is not None"
    assert problem.place and problem.place.text.strip() == line
    assert vacuous.find_vacuous(record(tmp_path, lecture(f"{line} is not None", of_section))) == []


NO_TRUTH = {  # the test of a claim, and what it comes to
    "[v == 4 for v in xs]": "list",
    "'abc'.find('z')": "int",
    "np.all(v == 5 for v in [n]) and {n: n}.keys()": "dict_keys",
    "(v == 4 for v in [n]) if n else False": "generator",
    "map(bool, [n])": "map",
    "x.sum()": "torch.Tensor",
    "x.numpy()[:1]": "numpy.ndarray",
    "str(n) or n": "str",
    "n & 4": "int",
    "n == 4 or re.match('a', 'ab')": "re.Match",
    "(m := len(xs) + n)": "int",
    "P()": "P",
    "np.float32(n)": "numpy.float32",
    "Odd() == 3": "list",
}
A_TRUTH = (
    "n and n == 5", "bool(n)", "not xs", "np.bool_(n)", "x.all() == (x > 0).all()", "torch.tensor([True])", "np.array([True])",
    "0 < n < 9", "n == 5 if n else n", "(big := n > 3)", "np.array(n) == 5", "x[:1] == 1", "sympy.Integer(n) < 9", "not sympy.Integer(n) > 9",
)  # fmt: skip


@pytest.mark.parametrize("test", NO_TRUTH)
def test_a_claim_whose_test_is_no_truth_fails_with_the_way_out(tmp_path: Path, test: str) -> None:
    odd = "class Odd:\n    def __eq__(self, other): return [other]\nclass P: pass\n"
    body = f"n, xs, x = 5, [3], torch.ones(3)\nassert {test}, 'it holds'"
    made = record(tmp_path, section(body, f"import re, torch\nimport numpy as np\n{odd}"))
    [(_, claim)] = made.claims()
    assert claim.verdict == "fails"
    what, way_out = claim.why.split("\n")
    assert what.startswith("the test is neither true nor false: it is of type ")
    assert what.rpartition(" ")[2].rpartition(".")[2] == NO_TRUTH[test].rpartition(".")[2]
    assert ":" in way_out
    assert what in failures(made)[0]


@pytest.mark.parametrize("test", A_TRUTH)
def test_a_truth_is_pythons_numpys_or_a_tensor_of_one(tmp_path: Path, test: str) -> None:
    body = f"n, xs, x = 5, [], torch.ones(3)\nassert {test}, 'it holds'"
    assert failures(record(tmp_path, section(body, "import sympy, torch\nimport numpy as np\n"))) == []


def test_numpy_is_asked_of_a_generator_and_takes_nothing(tmp_path: Path) -> None:
    made = record(tmp_path, section("assert np.all(v == 4 for v in [3, 5])", "import numpy as np\n"))
    assert "np.all(…) took nothing from the generator" in messages(made)[0]


ONE = {  # two sides of a claim that are one
    "b = w; w.add_(1)": "torch.equal(b, w)",
    "b = w.detach(); w.add_(1)": "(b == w).all()",
    "b = w[:]; b.mul_(2)": "not (b != w).any()",
    "b = {'w': w.view(3)}; w.zero_()": "(b['w'] - w).abs().max() <= 1e-6",
    "b = w.view(3); w[0] = 4": "b.equal(w)",
    "b = xs; xs.append(1)": "b == xs",
    "b = xs; b.clear(); b.append(2)": "all(x == y for x, y in zip(b, xs))",
    "b = a; a += 1": "np.array_equal(a, b)",
    "b = o; b.n = 4": "o == b",
    "m = torch.nn.Linear(2, 2); b = m.state_dict(); m.weight.data.add_(1); m.weight.detach().add_(1)": "torch.equal(b['weight'], m.weight)",
    "b = a[:]; a += 1": "np.array_equal(b, a)",
    "b = a.reshape(3, 1); a[0] = 7": "(b.ravel() == a).all()",
    "b = a[None]; a.sort()": "not (a != b).any()",
    "b = a[::-1]; np.negative(a, out=a)": "np.allclose(b[::-1], a)",
    "b = torch.from_numpy(a); b += 1": "np.array_equal(b.numpy(), a)",
    "c = bytearray(b'ab'); b = memoryview(c); c[0] = 99": "b == c",
    "c = array.array('d', [1, 2]); b = memoryview(c)[:]; c.reverse()": "c == b",
    "d = {'a': 1}; b = d.keys(); d['b'] = 2": "b == d.keys()",
    "d = {'a': 1}; b = d.items(); d.clear(); d['b'] = 2": "d.items() <= b",
    "d = OrderedDict(a=1); b = d.keys(); del d['a']; d['b'] = 1": "b == d.keys()",
    "d = {'a': 1}; b = MappingProxyType(d); d['b'] = 2": "d == b",
    "d = UserDict(a=1); b = d.keys(); d['b'] = 2": "b == d.keys()",
}
TWO = {
    "b = w.clone()": "torch.equal(b, w)",
    "b = w; w.add_(1)": "b is w",
    "b = w; b.add_(1)": "b.data_ptr() == w.data_ptr()",
    "b = w.view(1, 3)": "torch.equal(b[0], w)",
    "b = w[1:]; w.add_(1)": "torch.equal(b, w[:2])",
    "b = w[1:]; w[2] = 7": "b[1] == w[2]",
    "b = 3; c = b": "b == c",
    "b = 'x'; c = b": "b == c",
    "b = w.dtype": "w.dtype == b",
    "b = [*xs]": "b == xs",
    "b = (1, 'x'); c = b": "b == c",
    "b = a.copy(); a += 0": "np.array_equal(b, a)",
    "b = a.reshape(3, 1)": "(b.ravel() == a).all()",
    "b = a[1:]; a += 1": "(b == a[:2]).all()",
    "b = a[:]; a += 1": "np.shares_memory(a, b)",
    "c = bytearray(b'ab'); c[0] = 97; b = bytes(c)": "memoryview(c) == b",
    "b = b'ab'; c = memoryview(b); xs[0] = 2": "c == b",
    "d = {'a': 1}; b = {**d}.keys(); d['a'] = 2": "b == d.keys()",
    "d = {'a': 1}; b = [*d]; d['a'] = 2": "b == [*d.keys()]",
    "d = {'a': 'a'}; d['b'] = 'b'": "all(k == v for k, v in zip(d.keys(), d.values()))",
}
WORLD = """import array, torch
import numpy as np
from collections import OrderedDict, UserDict
from types import MappingProxyType
class O: pass
"""
MAKES = "w, xs, a, o = torch.ones(3), [1], np.ones(3), O()\n"


@pytest.mark.parametrize(("before", "test"), ONE.items())
def test_two_sides_that_are_one_say_nothing(tmp_path: Path, before: str, test: str) -> None:
    made = record(tmp_path, section(f"{MAKES}{before}\nassert {test}, 'nothing changed'", WORLD))
    assert failures(made) == []
    [problem] = vacuous.find_vacuous(made)
    assert problem.what.partition("both sides are ")[2] in (
        "one object",
        "the same memory",
        "views of one object",
    )
    assert "clone()" in problem.way_out


@pytest.mark.parametrize(("before", "test"), TWO.items())
def test_two_sides_that_are_two_or_are_claimed_to_be_one_say_something(
    tmp_path: Path, before: str, test: str
) -> None:
    made = record(tmp_path, section(f"{MAKES}{before}\nassert {test}, 'so it is'", WORLD))
    assert failures(made) == []
    assert vacuous.find_vacuous(made) == []


def test_an_assert_of_a_helper_that_ran_twice_says_something(tmp_path: Path) -> None:
    """Of a claim that ran more than once the sides of one time say nothing, and so it is in a helper."""
    helper = "def same(x, y):\n    assert x == y\n"
    assert vacuous.find_vacuous(record(tmp_path, section("same(0, 0)\nsame(5, 5)", helper))) == []
    [problem] = vacuous.find_vacuous(record(tmp_path, section("same(0, 0)", helper)))
    assert problem.what == "this assert says nothing: both sides are zero"
    assert vacuous.find_vacuous(record(tmp_path, section("same(4, 4)", helper))) == []


@pytest.mark.parametrize("of_section", [True, False])
def test_what_can_be_false_is_no_problem(tmp_path: Path, of_section: bool) -> None:
    """Though a claim asks for a truth: `assert n` of a number is no test there."""
    made = record(tmp_path, lecture(CAN_FAIL.strip(), of_section))
    failed = failures(made)
    assert all("the test is neither true nor false" in one for one in failed)
    assert len(failed) == (12 if of_section else 0)
    assert vacuous.find_vacuous(made) == []
    assert [claim.verdict for _, claim in made.claims()].count("fails") == len(failed)


def test_what_a_method_of_that_name_belongs_to_stays_what_it_is_and_is_asked_nothing(tmp_path: Path) -> None:
    before = """
        class Rows:  # like those of a database: an iterator with more to it
            def __iter__(self):
                return self
            def __next__(self):
                raise StopIteration
            def all(self, given=()):
                return [type(self).__name__, type(given).__name__]
            @property
            def shape(self):
                raise SystemExit("nobody asks")
            __len__ = shape
        """
    made = record(
        tmp_path,
        section(
            "assert Rows().all() == ['Rows', 'tuple']\nassert Rows().all(iter('a'))[1] == 'str_ascii_iterator'",
            before,
        ),
    )
    assert messages(made) == []
    assert {claim.verdict for claim in made.by_key["one"].claims} == {"holds"}
