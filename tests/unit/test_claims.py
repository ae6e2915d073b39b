"""What the text knows of its claims: which of them mention what is measured, which expressions are addresses."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent, indent

import pytest
from tests.running import failures, record, section

from litbook.lecture import claims, parse

HEAD = "from litbook import note\n\ndef main():\n    one()\n\ndef one():\n"


def measured(body: str) -> list[str]:
    """The claims of a section that mention what it measures."""
    found = parse.parse(HEAD + indent(dedent(body), "    "), "lecture_sample.py")
    return [claim.text for claim in found.claims if claim.measured]


@pytest.mark.parametrize(
    ("watch", "claim", "mentions"),
    [
        ("seconds", "seconds < 1", True),
        ("seconds", "max([seconds]) < 1", True),
        ("seconds", "it.seconds < 1", False),
        ("seconds", "[seconds for seconds in x] == []", False),
        ("seconds", "x == 'seconds'", False),
        ("it.seconds", "it.size == 1", True),
        ("timed()", "timed() < 1", True),
        ("timed()", "timed is not None", False),
        ("torch.cuda.memory_allocated()", "torch.float32 == x", False),
        ("torch.cuda.memory_allocated()", "torch.cuda.memory_allocated() // 2 > 1", True),
        ("round(a, 2)", "a > 1", True),
        ("round(a, 2)", "round(b) > 1", False),
    ],
)
def test_a_claim_mentions_what_its_section_measures(watch: str, claim: str, mentions: bool):
    body = f"x = 1  # @measure {watch}\nassert {claim}\n"
    assert measured(body) == ([claim] if mentions else [])


def test_what_is_measured_inside_a_branch_or_after_the_claim_counts_and_what_another_section_measures_does_not():
    body = "if True:\n    s = 1  # @measure s\nassert s > 0\ntry:\n    t = 1\nexcept ValueError:  # @measure t\n    t = 2\nassert t > 0\nother()\n"
    other = "\ndef other():\n    u = s = 1  # @inspect u\n    assert s == 1\n    assert u == 1\n"
    found = parse.parse(HEAD + indent(body, "    ") + other, "lecture_sample.py")
    assert [claim.text for claim in found.claims if claim.measured] == ["s > 0", "t > 0"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("x.data_ptr()", True),
        ("x.untyped_storage().data_ptr()", True),
        ("id(x)", True),
        ("hex(id(x))", True),
        ("hex(x.data_ptr())", True),
        ("x.data_ptr() % 64", False),
        ("hex(12)", False),
        ("x.data_ptr", False),
        ("fluid(x)", False),
    ],
)
def test_an_address_is_known_from_the_tree(text: str, address: bool):
    assert claims.is_address(ast.parse(text, mode="eval").body) is address


ALIKE = {  # two values that are not equal, and how a failed claim tells them apart
    ("1.0", "1.0 + 2**-52"): "1.0 == 1.0000000000000002",
    ("0.1 + 0.2", "0.3"): "0.30000000000000004 == 0.3",
    ("'a'", "'\\u0430'"): r"'a' == '\u0430'",
    ("'\\u00e9'", "'e\\u0301'"): "'\u00e9' == 'e\\u0301'",
    ("'fi'", "'\\ufb01'"): r"'fi' == '\ufb01'",
    ("'a-b'", "'a\\u2011b'"): r"'a-b' == 'a\u2011b'",
    ("'a b'", "'a\\u00a0b'"): r"'a b' == 'a\xa0b'",
    ("[[[[[[1]]]]]]", "[[[[[[2]]]]]]"): "[… at [0][0][0][0][0][0]:, 1] == [… at [0][0][0][0][0][0]:, 2]",
    ("Odd(1)", "Odd(2)"): "Odd() == Odd() (another)",
    ("Name('a')", "'b'"): "'a' == 'b'",
    ("bool(torch.equal(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0000002])))", "True"): "False == True",
}


@pytest.mark.parametrize(("sides", "told"), ALIKE.items())
def test_two_values_that_look_alike_are_told_apart(sides: tuple[str, str], told: str, tmp_path: Path) -> None:
    odd = "class Odd:\n    def __init__(self, n):\n        self.n = n\n    def __repr__(self):\n        return 'Odd()'\n"
    before = f"import torch\n\n\n{odd}\n\nclass Name(str):\n    pass\n"
    made = record(tmp_path, section("a, b = {}, {}\nassert a == b, 'they are equal'".format(*sides), before))
    assert failures(made)[0].splitlines()[2].strip() == told


@pytest.mark.parametrize("library", ["torch.equal", "np.array_equal"])
def test_elements_that_look_alike_are_told_apart(library: str, tmp_path: Path) -> None:
    made_by = "torch.tensor" if "torch" in library else "np.array"
    body = f"a, b = {made_by}([1.0, 2.0]), {made_by}([1.0, 2.0 + 2**-22])\nassert {library}(a, b), 'they are equal'"
    (told,) = failures(record(tmp_path, section(body, "import torch\nimport numpy as np\n")))
    assert f"{library}([1.0, 2.0], [1.0, 2.0000002" in told


def test_a_dict_that_differs_late_is_shown_from_there(tmp_path: Path) -> None:
    body = "a = {i: i for i in range(999)}\nb = a | {500: 7}\nassert a == b, 'they are equal'"
    (told,) = failures(record(tmp_path, section(body)))
    assert "{… 497 alike" in told and "500 500" in told
