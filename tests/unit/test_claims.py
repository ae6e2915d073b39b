"""What the text knows of its claims: which of them mention what is measured, which expressions are addresses."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

import pytest

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
