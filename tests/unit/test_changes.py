"""What is changed of a section's code, and where: the text alone, nothing runs."""

from __future__ import annotations

import ast

import pytest
from tests.running import section

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.mutants.changes import changes, find_bad_excuses


def changed(body: str, before: str = "") -> list[str]:
    """Every change of a section that is `body`."""
    lecture = parse.parse(section(body, before))
    return [it.change for it in changes(lecture)[lecture.section("one")]]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x = f(a)", ["left out"]),
        ("x = y.dtype is torch.float32", ["left out", "float32 -> float64"]),
        ("x = y.half()", ["left out", ".half() -> .float()"]),
        ("x = y.bfloat16()", ["left out", ".bfloat16() -> .float()"]),
        ("x = y.float(1)", ["left out", "1 -> 2"]),
        ("x = f(3, -1)", ["left out", "arguments swapped", "3 -> 4", "3 -> 6", "1 -> 2"]),
        ("x = 1_000", ["left out", "1_000 -> 1100", "1_000 -> 2000"]),
        ("x = torch.manual_seed(3)", ["left out"]),
        ("x = 2.5e3", ["left out", "2.5e3 -> 5000.0", "2.5e3 -> 1250.0"]),
        ("x = 0.0", ["left out", "0.0 -> 1.0"]),
        ("x = True, 'text', None, b'1'", ["left out"]),
        ("x = a + b", ["left out", "doubled", "+ -> -"]),
        ("x = a ** b // c", ["left out", "doubled", "// -> *", "** -> *"]),
        (
            "x = a * 2",
            ["left out", "doubled", "* -> /", "factor a left out", "factor 2 left out", "2 -> 3", "2 -> 4"],
        ),
        ("x = a / f(b)", ["left out", "doubled", "/ -> *", "factor f(b) left out"]),
        ("x = [a] * b", ["left out", "* -> /", "factor [a] left out", "factor b left out"]),
        ("x = f(a, b)", ["left out", "arguments swapped"]),
        ("x = max(a, b)", ["left out"]),
        ("x = f(*a, b)", ["left out"]),
        ("x = f(a, a)", ["left out"]),
        ("x = a @ b", ["left out"]),
        ("x = 'a' + b", ["left out"]),
        ("x = f'{3}'", ["left out"]),
        ("x += 1", ["left out", "+ -> -", "1 -> 2"]),
        ("f(a, dim=b, **c)", ["left out", "dim= dropped"]),
        ("del x", ["left out"]),
        ("x: list[3] = f()", ["left out"]),
        ("x: int", []),
        ("for i in range(3): pass", ["3 -> 4", "3 -> 6"]),
        ("if a > 2:\n    x = 1", ["2 -> 3", "2 -> 4", "left out", "1 -> 2"]),
        ("with f(1) as g: pass", ["1 -> 2"]),
        ("def g(a, b=3): return 4", ["3 -> 4", "3 -> 6"]),
        ("return 5", ["5 -> 6", "5 -> 10"]),
        ("import math as a", []),
        ("assert x == 3, 4", []),
        ("try:\n    assert x == 3\nfinally:\n    pass", []),
        ("x: Float[Tensor, 'a'] = f(3)", []),
        ("note(f(3))", []),
        ("x = 3  # @hide", []),
        ("x = 3  # @measure x", []),
        ("x = 3  # @inspect x", ["left out", "3 -> 4", "3 -> 6"]),
    ],
)
def test_each_change_of_a_statement(statement: str, expected: list[str]) -> None:
    assert changed(statement, "from jaxtyping import Float\n") == expected


def test_another_constant_of_the_same_kind_is_one_that_the_lecture_has() -> None:
    before = "from units import GB, GiB, convert\nother = CARDS['B'], rate('A', 'half'), rate('C', 'full')\n"
    assert changed("x = CARDS['A']", before + "again = CARDS['A']\n") == ["left out", "'A' -> 'B'"]
    assert changed("x = CARDS['A']", "") == ["left out"]
    assert [it for it in changed("x = rate('A', 'full')", before) if "'" in it] == [
        "'A' -> 'C'",
        "'full' -> 'half'",
    ]
    assert changed("x = GB", before) == ["left out", "GB -> GiB"]
    assert changed("x = convert", before) == ["left out"]
    assert changed("x = f('a -> b')", "y = f('b -> a')\n") == ["left out"]


def test_a_change_is_made_in_the_tree_and_stands_where_it_is_written() -> None:
    lecture = parse.parse(section("x = f(\n    'é', 3, dim=4)"))
    found = changes(lecture)[lecture.section("one")]
    assert [(it.change, it.line, it.column) for it in found] == [
        ("left out", 11, 5),
        ("arguments swapped", 11, 9),
        ("3 -> 4", 12, 14),
        ("3 -> 6", 12, 14),
        ("dim= dropped", 12, 21),
        ("4 -> 5", 12, 21),
        ("4 -> 8", 12, 21),
    ]
    node = lecture.files[0].tree.body[-1]
    texts = []
    for it in (found[2], found[1], found[4], found[0]):
        it.make(lecture)
        texts.append(ast.unparse(node).splitlines()[-1].strip())
    assert texts == ["x = f('é', 4, dim=4)", "x = f(4, 'é', dim=4)", "x = f(4, 'é')", "pass"]


def test_an_excuse_names_changes_of_its_statement_and_says_why() -> None:
    text = (
        "x = f(3, n=4)  # @unnoticed: 3, n= dropped: any size: 3 or 5\ny = 3  # @unnoticed: 4 -> 5: no reason"
    )
    lecture = parse.parse(section(text))
    found = changes(lecture)[lecture.section("one")]
    excused = [(it.change, it.excuse.name, it.excuse.reason) for it in found if it.excuse]
    why = "any size: 3 or 5"
    assert excused == [("3 -> 4", "3", why), ("3 -> 6", "3", why), ("n= dropped", "n= dropped", why)]
    (problem,) = find_bad_excuses(lecture)
    assert str(problem) == (
        "<lecture>:12:12: @unnoticed names no change of its statement: '4 -> 5: no reason'\n"
        "    y = 3  # @unnoticed: 4 -> 5: no reason\n"
        "           ^\n"
        "    the changes of it: left out, 3 -> 4, 3 -> 6"
    )


@pytest.mark.parametrize(
    "mark", ["@unnoticed", "@unnoticed: 3 -> 4", "@unnoticed 3 -> 4: why", "@unnoticed: 3 -> 4:"]
)
def test_an_excuse_without_a_change_or_a_reason_is_refused(mark: str) -> None:
    with pytest.raises(UnusableLecture) as raised:
        parse.parse(section(f"x = 3  # {mark}"))
    assert "@unnoticed says no change, or no reason\n" in str(raised.value)
    assert "write the changes as they are listed, and why: # @unnoticed: 8 -> 9, 8 -> 16: any" in str(
        raised.value
    )
