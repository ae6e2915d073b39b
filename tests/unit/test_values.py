"""A snapshot as one line, a claim with its values: what every view shows."""

from __future__ import annotations

import math
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.running import examples, one, record, section

from litbook.markdown import grammar
from litbook.record import model
from litbook.record.model import Claim, Mapping, Opaque, Operand, Scalar, Sequence, Tensor
from litbook.rules import run as rules_run
from litbook.values import cards, formatting, units


def scalar(value: float | int | bool) -> Scalar:
    return Scalar(type(value).__name__, repr(value), model.number(value))


def test_a_tensor_reads_as_dtype_named_axes_and_bytes():
    x = Tensor("torch.Tensor", "float32", (2, 3), strides=(3, 1), bytes=24, axes=("row", "col"))
    assert formatting.line(x) == "float32 [row 2, col 3] · 24 B"


def test_a_tensor_elsewhere_says_where():
    x = Tensor("torch.Tensor", "float32", (49152, 12288), device="meta", bytes=49152 * 12288 * 4)
    assert formatting.line(x) == "float32 [49152, 12288] · 2.25 GiB · meta"


def test_a_short_vector_shows_its_values():
    x = Tensor("torch.Tensor", "float32", (3,), bytes=12, corner=(3,), values=(0.5, 1.0, "nan"))
    assert formatting.line(x) == "float32 [3] · 12 B · 0.5, 1.0, nan"


def test_a_tensor_without_axes_is_its_number():
    x = Tensor("torch.Tensor", "float32", (), bytes=4, corner=(), values=(0.1,))
    assert formatting.line(x, "s") == "100 ms · float32"


def test_wrong_axis_names_are_left_out():
    x = Tensor("torch.Tensor", "int64", (2, 3), bytes=48, axes=("row",))
    assert formatting.line(x) == "int64 [2, 3] · 48 B"


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (2415919104, "B", "2,415,919,104 B · 2.25 GiB · 2.416 GB"),
        (24, "B", "24 B"),
        (12288, "B", "12,288 B · 12 KiB"),
        (10**25, "B", "1e25 B"),
        (3.14e23, "FLOP", "3.14e23 FLOP"),
        (4194304, "FLOP", "4,194,304 FLOP · 4.194 MFLOP"),
        (999, "FLOP", "999 FLOP"),
        (788e12, "FLOP/s", "788 TFLOP/s"),
        (4.8e12, "B/s", "4.8 TB/s"),
        (1670.5, None, "1,670.5"),
        (1e-8, None, "1e-8"),
        (1.5, "s", "1.5 s"),
        (0.00123, "s", "1.23 ms"),
        (1.2e-5, "s", "12 µs"),
        (1.2e-7, "s", "120 ns"),
        (0.0, "s", "0 s"),
        (14.3, "days", "14.3 days"),
        (0.45, "%", "45 %"),
        (0.99996, "%", "99.996 %"),
        (1.00001, "%", "100.0 %"),
        (1 - 1e-9, "%", "99.9999999 %"),
        (0.99999999, None, "0.99999999"),
        (100000.04, None, "100,000.04"),
        (1e13 + 1, None, "1.00000e13"),
        (9999999999999.9, None, "9,999,999,999,999.9"),
        (1234567.25, None, "1.23457e6"),
        (10**41 + 1, None, "1.00000e41"),
        (1024**3 + 1, "B", "1,073,741,825 B · 1.000 GiB · 1.074 GB"),
        (0.0070001, "s", "7.000 ms"),
        (2**53 + 1, "B", "9,007,199,254,740,993 B · 8 PiB · 9.007 PB"),
        (10**12 - 1, "B", "999,999,999,999 B · 931.3 GiB · 1.000 TB"),
        (2**20 - 1, "B", "1,048,575 B · 1.000 MiB"),
        (999_999, "FLOP", "999,999 FLOP"),
        (999_999_999, "FLOP", "999,999,999 FLOP · 1.000 GFLOP"),
        (1e12 + 1, "FLOP/s", "1.000 TFLOP/s"),
        (1.797e306, "%", "1.797e306 × 100 %"),
        (math.inf, "s", "inf s"),
        (2415919104, None, "2,415,919,104"),
        (2**70, None, "1,180,591,620,717,411,303,424"),
        (10**50, None, "1e50"),
        (0.1, None, "0.1"),
        (1 / 3, None, "0.333333"),
        (2415919104.0, None, "2,415,919,104.0"),
        (1e30, None, "1e30"),
        (-0.0, None, "-0.0"),
        (math.nan, None, "nan"),
        (True, "B", "True"),
        (7, "dogs", "7 dogs"),
    ],
)
def test_a_number_reads_as_its_unit_wants(value, unit, text):
    assert formatting.line(scalar(value), unit) == text


def test_sequences_keep_their_brackets_and_say_when_they_are_cut():
    three = tuple(scalar(i) for i in range(3))
    assert formatting.line(Sequence("tuple", 3, three)) == "(0, 1, 2)"
    assert formatting.line(Sequence("tuple", 1, three[:1])) == "(0,)"
    assert formatting.line(Sequence("torch.Size", 3, three)) == "(0, 1, 2)"
    assert formatting.line(Sequence("list", 1000, three)) == "[0, 1, 2, … 1,000 in all]"
    assert formatting.line(Sequence("set", 3, three)) == "{0, 1, 2}"


def test_a_mapping_names_its_type_and_drops_the_quotes_of_plain_keys():
    keys = (Scalar("str", "'bits'"), Scalar("str", "'max'"))
    it = Mapping("torch.finfo", 2, keys, (scalar(16), scalar(65504.0)))
    assert formatting.line(it) == "finfo: bits 16 · max 65,504.0"


def test_a_measurement_says_its_value_its_spread_and_how_it_was_measured():
    names = ("seconds", "spread", "repeats", "device", "method")
    texts = (Scalar("str", "'cpu'"), Scalar("str", "'perf_counter'"))
    found = (scalar(0.009314), scalar(0.0123), scalar(20), *texts)
    it = Mapping("timing.Timing", 5, tuple(Scalar("str", f"'{n}'") for n in names), found)
    assert formatting.line(it, "s") == formatting.line(it) == "9.314 ms · spread 1.23 % · 20 × perf_counter"
    assert formatting.measurement(it, "s") == formatting.line(it)
    without = Mapping("timing.Timing", 4, it.keys[1:], it.items[1:])
    assert formatting.measurement(without) == formatting.measurement(scalar(1)) == ""


def test_an_object_without_a_text_says_why():
    assert (
        formatting.line(Opaque("Evil", "", why="repr raised ValueError")) == "Evil (repr raised ValueError)"
    )


def test_what_could_disguise_a_value_is_spelled_out():
    assert formatting.line(Scalar("str", "'a\u202eb\x00c\nd'")) == "'a⟨U+202E⟩b⟨U+0000⟩c⏎d'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cafe\u0301", r"cafe\u0301"),
        ("\u212b", r"\u212b"),  # the unit, which looks like the letter
        ("\u1112\u1161\u11ab", r"\u1112\u1161\u11ab"),  # Hangul in its parts
        ("\u00e9 cafe\u0301", "\u00e9 cafe" + r"\u0301"),
        ("caf\u00e9 \u4f60\u597d \ud55c", "caf\u00e9 \u4f60\u597d \ud55c"),  # as people write
        ("q\u0301", "q\u0301"),  # there is no other way to write it
    ],
)
def test_a_text_that_another_one_looks_like_is_spelled_out(text: str, shown: str) -> None:
    assert formatting.line(Scalar("str", f"'{text}'")) == f"'{shown}'"
    assert formatting.line(model.Sequence("list", 1, (Scalar("str", f"'{text}'"),))) == f"['{shown}']"


def test_a_very_long_text_ends_visibly():
    text = formatting.line(Scalar("str", "'" + "x" * 100_000 + "'"))
    assert len(text) == formatting.WIDEST
    assert text.endswith("…")


def compare(left: model.Snapshot, right: model.Snapshot, sign: str = " == ") -> str:
    it = Claim(1, 1, "a == b", "", "holds", form=("", sign, ""), operands=(Operand("a", 0), Operand("b", 1)))
    return formatting.claim(it, [left, right])


def test_a_claim_shows_both_sides():
    pair = Sequence("tuple", 2, (scalar(1), scalar(3)))
    assert compare(pair, pair) == "(1, 3) == (1, 3)"


def test_a_claim_never_shows_two_different_numbers_as_the_same():
    assert compare(scalar(0.1 + 0.2), scalar(0.3), " != ") == "0.30000000000000004 != 0.3"


def test_a_tensor_without_axes_is_compared_as_its_number():
    x = Tensor("torch.Tensor", "float32", (), bytes=4, corner=(), values=(6.0,))
    assert compare(x, scalar(6.0)) == "6.0 == 6.0"


def test_an_operand_that_was_never_evaluated_stays_source():
    it = Claim(
        1, 1, "a and b", "", "fails", form=("", " and ", ""), operands=(Operand("a", 0), Operand("b", None))
    )
    assert formatting.claim(it, [scalar(False)]) == "False and b"


def test_a_claim_without_a_form_shows_its_test():
    assert formatting.claim(Claim(1, 1, "same(x, y)", "", "holds"), []) == "same(x, y)"


@settings(max_examples=examples(150))
@given(
    st.one_of(st.integers(), st.integers(-(10**500), 10**500), st.floats(), st.booleans()),
    st.sampled_from([None, "B", "FLOP", "FLOP/s", "B/s", "s", "%", "x"]),
)
def test_every_number_has_one_line(value, unit):
    text = formatting.line(scalar(value), unit)
    assert text
    assert len(text) <= formatting.WIDEST
    assert text.isprintable()


@given(st.floats(0, 1e12), st.floats(1e-12, 1e-4))
def test_no_number_reads_as_a_whole_one_that_it_is_not(around: float, apart: float) -> None:
    near = round(around) * (1 + apart) if round(around) else apart
    text = units.plain_number(near)
    assert near.is_integer() or "." in text or "e" in text
    for unit in ("s", "FLOP/s", "B/s"):
        shown, scale = units.amount(near, unit).split(" ")
        # What stands there without a point is that number, to the last digit that a division leaves.
        one = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9}.get(scale) or 1e3 ** units.SI.index(
            scale.replace(unit, "")
        )
        if shown.isdigit():
            assert math.isclose(int(shown) * one, near, rel_tol=1e-14)


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("fractions.Fraction", "Fraction(1, 4)", "25 %"),
        ("decimal.Decimal", "Decimal('0.25')", "25 %"),
        ("decimal.Decimal", "Decimal('NaN')", "Decimal('NaN') %"),
    ],
)
def test_a_unit_scales_every_kind_of_number(kind: str, text: str, shown: str) -> None:
    assert formatting.line(Scalar(kind, text, None), "%") == shown
    assert units.amount(0.5 + 0.25j, "%") == "50.0+25.0j %"


@given(st.floats(0, 1, exclude_max=True))
def test_no_part_reads_as_the_whole(part: float) -> None:
    assert units.amount(part, "%") not in ("100 %", "100.0 %")


@given(st.text(max_size=300))
def test_every_text_is_one_line_without_hidden_characters(text):
    shown = formatting.line(Opaque("T", text))
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not [c for c in shown if unicodedata.category(c) in hidden and c != "\u200d"]


@given(st.integers(1, 2**62))
def test_a_size_never_strays_more_than_a_part_in_two_thousand(count):
    lead, name = units.size(count).split()
    factor = 1024 ** units.BINARY.index(name)
    assert float(lead.replace(",", "")) * factor == pytest.approx(count, rel=1 / 2000)


def ints(*numbers: int) -> tuple[Scalar, ...]:
    return tuple(scalar(n) for n in numbers)


@pytest.mark.parametrize(
    ("unit", "numbers", "text"),
    [
        ("B", (4, 4096, 2**31), "[4 B, 4,096 B, 2 GiB]"),
        ("B", (16000, 999_999_999, 10**25), "[16,000 B, 953.7 MiB, 1e25 B]"),
        ("FLOP", (6, 10**6, 2 * 10**9), "[6 FLOP, 1 MFLOP, 2 GFLOP]"),
        ("%", (1, 0), "[100 %, 0 %]"),
        ("params", (5000, 7), "[5,000 params, 7 params]"),
        (None, (5000, 7), "[5000, 7]"),
    ],
)
def test_every_number_of_a_list_has_one_unit(unit, numbers, text):
    assert formatting.line(Sequence("list", len(numbers), ints(*numbers)), unit) == text


def test_every_number_of_a_dict_has_the_unit_and_text_has_none():
    keys = tuple(Scalar("str", repr(k)) for k in ("kind", "model", "step"))
    items = (Scalar("str", "'adam'"), *ints(2**31, 8))
    it = Mapping("dict", 3, keys, items)
    assert formatting.line(it, "B") == "{kind 'adam' · model 2 GiB · step 8 B}"
    body = cards.pairs("bill", it, "B") + cards.table([("bill", it), ("other", it)], "B")
    assert body.count("<td>2 GiB</td>") == 3 and body.count("<td>8 B</td>") == 3
    assert body.count("<td>adam</td>") == 3


def test_two_floats_that_differ_in_a_late_digit_are_told_apart_wherever_they_are_compared():
    left, right = scalar(0.8), scalar(0.800000011920929)
    it = Claim(
        1, 1, "a != b", "", "holds", form=("", " != ", ""), operands=(Operand("a", 0), Operand("b", 1))
    )
    assert formatting.claim(it, (left, right)) == "0.8 != 0.800000011920929"
    near = (scalar(0.8000000001), scalar(0.8000000002))
    assert formatting.claim(it, near) == "0.8000000001 != 0.8000000002"
    many = [Sequence("list", 2, (scalar(1.0), near_)) for near_ in near]
    keyed = [Mapping("dict", 1, (Scalar("str", "'lr'"),), (near_,)) for near_ in near]
    assert formatting.claim(it, keyed) == "{lr 0.8000000001} != {lr 0.8000000002}"
    assert formatting.claim(it, many) == "[1.0, 0.8000000001] != [1.0, 0.8000000002]"
    alike = (scalar(0.8000000001), scalar(0.8000000001))
    assert formatting.claim(replace(it, form=("", " == ", "")), alike) == "0.8 == 0.8"


@pytest.mark.parametrize(
    ("empty", "text"),
    [
        (Sequence("set", 0, ()), "set()"),
        (Sequence("frozenset", 0, ()), "frozenset()"),
        (Sequence("collections.deque", 0, ()), "deque()"),
        (Sequence("list", 0, ()), "[]"),
        (Sequence("tuple", 0, ()), "()"),
        (Mapping("dict", 0, (), ()), "{}"),
        (Mapping("collections.OrderedDict", 0, (), ()), "OrderedDict()"),
    ],
)
def test_what_is_empty_says_what_it_is(empty, text):
    assert formatting.line(empty) == text


KINDS = """
import collections, decimal, torch
class Bad(Exception): pass
class L(list): pass
"""
TOLD = {
    "range(3) != (0, 1, 2)": "range(3) != (0, 1, 2)",
    "range(0, 10, 3) != [0, 3, 6, 9]": "range(0, 10, 3) != [0, 3, 6, 9]",
    "collections.deque([1]) != (1,)": "deque([1]) != (1,)",
    "[ValueError(1)] != [1]": "[ValueError: 1] != [1]",
    "Bad('1') != 1": "1 (lecture_sample.Bad) != 1 (int)",
    "{1: 2} != {'1': 2}": "{1 2} != {'1' 2}",
    "{None: 1} != {'None': 1}": "{None 1} != {'None' 1}",
    "{int: 1} != {'int': 1}": "{int 1} != {'int' 1}",
    "{'a': 1}.keys() != ('a',)": "dict_keys(['a']) != ('a',)",
    "{'a': 1}.values() != [1]": "dict_values([1]) != [1]",
    "frozenset({1}) != (1,)": "frozenset({1}) != (1,)",
    "L([1]) != (1,)": "L([1]) != (1,)",
    "list(range(100)) != list(range(99)) + [0]": "[… 96 alike, 96, 97, 98, 99] != [… 96 alike, 96, 97, 98, 0]",
    "list(range(300)) != list(range(299))": "[… 296 alike, 296, 297, 298, 299] != [… 296 alike, 296, 297, 298]",
}


@pytest.mark.parametrize(("test", "told"), TOLD.items())
def test_values_keep_their_type_and_long_ones_are_cut_around_their_difference(
    tmp_path: Path, test: str, told: str
) -> None:
    made = record(tmp_path, section(f"assert {test}", KINDS))
    [claim] = one(made).claims
    assert claim.verdict == "holds"
    assert formatting.claim(claim, one(made).snapshots) == told


@pytest.mark.parametrize("at", [250, 700, 4000])
def test_two_long_texts_are_cut_where_they_differ(tmp_path: Path, at: int) -> None:
    made = record(tmp_path, section(f"assert 'x' * {at} + 'a' + 'z' * 400 != 'x' * {at} + 'b' + 'z' * 400"))
    a, b = formatting.sides(one(made).claims[0], one(made).snapshots)
    assert "xaz" in a and "xbz" in b and len(a) <= 200 >= len(b)


UNITS = {
    "n = 2 * 10**9\nm = n  # @inspect m as GB": "m is shown as 2,000,000,000 GB: nothing converted it",
    "t = 0.002\nu = t  # @inspect u as ms": "u is shown as 0.002 ms: nothing converted it",
    "n = 312 * 10**12\nk = n  # @inspect k as TFLOP/s": "k is shown as 312e12 TFLOP/s: nothing converted it",
    "n = 2 * 10**9  # @inspect n * 2 as MB": "n * 2 is shown as 4,000,000,000 MB: nothing converted it",
    "t = 106460.0\nu = t / 1  # @inspect u as ms": "u is shown as 106,460.0 ms: nothing converted it",
    "n = 2 * 10**9\nquestion('How many?', answer=n, unit='GB')": "the answer is shown as 2,000,000,000 GB: nothing converted it",
    "n = 2 * 10**9\nquestion('How many?', answer=n / 1e9, unit='GB')": "",
    "n = 2 * 10**9\nquestion('How many?', answer=n, unit='B')": "",
    "n = 2 * 10**9\ngb = n / 1e9  # @inspect gb as GB": "",
    "n = 2 * 10**9  # @inspect n as B": "",
    "n = 312  # @inspect n as TFLOP/s": "",
    "n = 10**9  # @inspect n as tokens": "",
}


@pytest.mark.parametrize(("body", "told"), UNITS.items())
def test_a_unit_with_a_prefix_at_a_number_that_was_not_converted_is_found(
    tmp_path: Path, body: str, told: str
) -> None:
    found = [finding.what for finding in rules_run.unconverted_units(record(tmp_path, section(body)))]
    assert [re.sub(r"shown as 3\S+ T", "shown as 312e12 T", what) for what in found] == [told] * bool(told)


@pytest.mark.parametrize(
    ("row", "refused"),
    [("| Bayes | $P(A | B)$ |", 3), ("| one |", 1), ("a | `b|c`", 3), ("text behind it", 1), ("| a | b |", 0), (r"| a | $P(A \| B)$ |", 0), ("a | b", 0)],
)  # fmt: skip
def test_a_row_that_does_not_fit_its_head_is_refused(row: str, refused: int) -> None:
    note = grammar.read(f"| head | other |\n|---|---|\n| x | y |\n{row}")
    told = [refusal.what for refusal in note.refusals]
    assert told == [f"the row {row} has {refused} cells under a head of 2"] * bool(refused)
