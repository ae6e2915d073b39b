"""Formulas as MathML: where the limits of a sum stand, and which brackets grow."""

from __future__ import annotations

import re

import pytest

from litbook.markdown import mathml


def made(source: str, display: str = "block") -> str:
    """The formula's MathML."""
    return str(mathml.mathml(source, display)[0])


BELOW = '<munder><mo movablelimits="true">∑</mo><mi>k</mi></munder>'


@pytest.mark.parametrize("source", [r"\sum_k a", r"\sqrt{\sum_k a}", r"\left(\sum_k a\right)"])
def test_the_limits_of_a_sum_stand_below_it_wherever_the_sum_is_large(source):
    assert re.search(r'<munder><mo( movablelimits="true")?>∑</mo><mi>k</mi></munder>', made(source))


def test_the_limits_of_a_sum_in_a_line_stand_beside_it_unless_the_author_says_otherwise():
    assert "<msub><mo>∑</mo><mi>k</mi></msub>" in made(r"\sum_k a", "inline")
    assert BELOW in made(r"\displaystyle\sum_k a", "inline")
    assert BELOW.replace("true", "false") in made(r"\sum\limits_k a", "inline")


def test_the_bars_of_a_norm_are_as_tall_as_a_letter_unless_left_and_right_say_otherwise():
    short = '<mo fence="false" stretchy="false">‖</mo>'
    assert made(r"\lVert x \rVert = \frac{1}{2}").count(short) == 2
    assert made(r"\lvert x \rvert = \frac{1}{2}").count('<mo stretchy="false">|</mo>') == 2
    assert made(r"\left\lVert x \right\rVert").count('stretchy="true"') == 2
    assert short not in made(r"\begin{Vmatrix} a \\ b \end{Vmatrix}")
