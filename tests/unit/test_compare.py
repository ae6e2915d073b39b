"""What counts as a difference between two records, each rule from both sides."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.running import HEAD, REPO, SAMPLES, record, section

from litbook.errors import RecordError
from litbook.finding import Finding, Place
from litbook.record import compare, compare_values, encoding, model
from litbook.record.model import Mapping, Opaque, Scalar, Sequence, Stats, Tensor

# What docs/maintain.md promises, written out once more, so that no tolerance moves unnoticed.
PROMISED = {
    "float64": 1e-9,
    "float32": 1e-4,
    "float": 1e-4,
    "float16": 2 / 1024,
    "bfloat16": 2 / 128,
    "float8_e4m3fn": 2 / 8,
    "float8_e4m3fnuz": 2 / 8,
    "float8_e5m2": 2 / 4,
    "float8_e5m2fnuz": 2 / 4,
    "float8_e8m0fnu": 0.5,
}


def scalar(value: Any, kind: str | None = None) -> Scalar:
    name = kind or type(value).__name__
    is_number = isinstance(value, int | float)
    return Scalar(name, repr(value), model.number(value) if is_number else None)


def tensor(*values: float, dtype: str = "float32", **more: Any) -> Tensor:
    numbers = tuple(map(model.number, values))
    known = {"type": "torch.Tensor", "dtype": dtype, "shape": (len(values),), "strides": (1,), **more}
    return Tensor(values=numbers, **known)


def said(was: model.Snapshot, now: model.Snapshot) -> list[str]:
    return [str(change) for change in compare_values.changes(was, now)]


def differences(was: model.Record, now: model.Record) -> list[str]:
    return [str(found) for found in compare.compare(now, was).differences]


# ---------------------------------------------------------------------------- numbers


def test_the_tolerances_are_those_that_were_promised() -> None:
    assert {
        name: pytest.approx(tolerance) for name, tolerance in PROMISED.items()
    } == compare_values.TOLERANCES
    told = (REPO / "docs" / "maintain.md").read_text(encoding="utf-8")
    assert [name for name in PROMISED if f"`{name}`" not in told] == []


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1.0, 3e-5, 7e8])
@pytest.mark.parametrize("name", PROMISED)
def test_a_float_may_differ_by_its_tolerance_and_no_more(name: str, size: float, sign: int) -> None:
    larger = sign * size
    inside, outside = larger * (1 - 0.95 * PROMISED[name]), larger * (1 - 1.05 * PROMISED[name])
    assert compare_values.number_difference(larger, inside, name) is None
    assert compare_values.number_difference(inside, larger, name) is None
    assert compare_values.number_difference(larger, outside, name) is not None
    assert compare_values.number_difference(outside, larger, name) is not None


@pytest.mark.parametrize("name", PROMISED)
def test_a_small_element_may_carry_a_tenth_of_what_the_largest_may_differ_by(name: str) -> None:
    room = PROMISED[name] * 0.1 * 1000
    assert compare_values.number_difference(0.0, 0.95 * room, name, largest=1000.0) is None
    assert (
        compare_values.number_difference(0.0, 1.05 * room / (1 - PROMISED[name] / 10), name, largest=1000.0)
        is not None
    )
    assert compare_values.number_difference(0.0, 0.95 * room, name) is not None  # alone it has no such room


def test_what_differs_is_told_with_the_distance_and_what_was_allowed() -> None:
    assert said(scalar(0.5), scalar(0.25)) == [
        "was 0.5, is 0.25, by 0.25 (0.5 of it); float may differ by 0.0001 of it"
    ]
    assert said(scalar(24), scalar(25)) == ["was 24, is 25, by 1 (0.04 of it)"]


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        (2**40, 2**40, True),
        (2**40, 2**40 + 1, False),
        (2**80, 2**80, True),  # text in the record
        (2**80, 2**80 + 1, False),
        (True, True, True),
        (True, False, False),
        (1, True, False),
        (1, 1.0, False),
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, math.inf, False),
        (1.0, math.nan, False),
        (0.0, -0.0, True),
        (0.0, 1e-300, False),
        (1e308, -1e308, False),
        ("a", "a", True),
        ("a", "b", False),
        (None, None, True),
        (None, 0, False),
        (1 + 2j, 1 + 2.00001j, True),
        (1 + 2j, 1 + 2.01j, False),
    ],
)
def test_everything_but_a_float_is_compared_exactly(was: Any, now: Any, same: bool) -> None:
    assert (said(scalar(was), scalar(now)) == []) is same


@pytest.mark.parametrize("name", ["numpy.float64", "numpy.float32", "numpy.float16"])
def test_a_number_of_numpy_has_the_tolerance_of_its_format(name: str) -> None:
    tolerance = PROMISED[name.rpartition(".")[2]]
    assert said(scalar(1.0, name), scalar(1 - 0.9 * tolerance, name)) == []
    assert said(scalar(1.0, name), scalar(1 - 1.1 * tolerance, name)) != []


# ---------------------------------------------------------------------------- tensors


@pytest.mark.parametrize(
    "more",
    [
        {"dtype": "float64"},
        {"strides": (2,)},
        {"offset": 1},
        {"device": "meta"},
        {"bytes": 8},
        {"storage_bytes": 8},
        {"contiguous": False},
        {"requires_grad": True},
        {"axes": ("batch",)},
        {"shape": (1, 1), "strides": (1, 1)},
    ],
)
def test_what_a_tensor_is_made_of_is_compared_exactly(more: dict[str, Any]) -> None:
    (name, *_) = more
    changed = tensor(1.0, **more)
    assert any(f".{name}: was" in line for line in said(tensor(1.0), changed))
    assert said(changed, changed) == []


def test_the_number_of_a_storage_is_never_compared() -> None:
    assert said(tensor(1.0, storage=1, memory=(1.0,)), tensor(1.0, storage=7)) == []


@pytest.mark.parametrize("dtype", [name for name in PROMISED if name != "float"])
def test_elements_of_a_tensor_have_the_tolerance_of_its_dtype(dtype: str) -> None:
    inside, outside = 8 * (1 - 0.9 * PROMISED[dtype]), 8 * (1 - 1.1 * PROMISED[dtype])
    assert said(tensor(8.0, 8.0, dtype=dtype), tensor(8.0, inside, dtype=dtype)) == []
    (line,) = said(tensor(8.0, 8.0, dtype=dtype), tensor(8.0, outside, dtype=dtype))
    assert line.startswith("[1]: was 8.0, is ")


def test_integers_and_booleans_in_a_tensor_are_exact() -> None:
    assert said(tensor(1, 2, dtype="int64"), tensor(1, 3, dtype="int64")) == [
        "[1]: was 2, is 3, by 1 (0.333 of it)"
    ]
    assert said(tensor(True, dtype="bool"), tensor(False, dtype="bool")) == [
        "[0]: was True, is False, by another value"
    ]


def test_an_element_is_named_by_its_indices_also_in_a_corner() -> None:
    big: dict[str, Any] = {"shape": (100, 100), "strides": (100, 1), "corner": (2, 2)}
    assert said(tensor(1.0, 2.0, 3.0, 4.0, **big), tensor(1.0, 2.0, 9.0, 4.0, **big))[0].startswith(
        "[1, 0]: was 3.0"
    )


@pytest.mark.parametrize("name", ["min", "max", "mean", "std"])
def test_statistics_have_the_tolerance_of_the_dtype(name: str) -> None:
    plain = Stats(min=10.0, max=10.0, mean=10.0, std=10.0)
    ends: list[dict[str, Any]] = [{name: 10 * (1 - part * 1e-4)} for part in (0.9, 1.1)]
    inside, outside = (replace(plain, **end) for end in ends)
    assert said(tensor(stats=plain), tensor(stats=inside)) == []
    (line,) = said(tensor(stats=plain), tensor(stats=outside))
    assert line.startswith(f".{name}: was 10.0")


def test_a_mean_near_zero_may_carry_the_noise_of_the_extremes() -> None:
    plain = Stats(min=-4.0, max=4.0, mean=1e-7, std=1.0)
    assert said(tensor(stats=plain), tensor(stats=replace(plain, mean=-2e-6))) == []
    assert said(tensor(stats=plain), tensor(stats=replace(plain, mean=1e-3))) != []


def test_counts_of_nan_and_inf_are_exact_and_statistics_may_not_go() -> None:
    assert said(tensor(stats=Stats(nan=1)), tensor(stats=Stats(nan=2))) == [
        ".nan: was 1, is 2, by 1 (0.5 of it)"
    ]
    assert said(tensor(stats=Stats(nan=1)), tensor()) == [" statistics: was some, is none"]
    assert said(tensor(stats=Stats(mean=None)), tensor(stats=Stats(mean=1.0))) != []


def test_of_a_tensor_whose_values_are_all_kept_statistics_say_nothing_more() -> None:
    stats = [Stats(min=value, max=value, mean=value) for value in (10.0, 20.0)]
    was, now = tensor(10.0, stats=stats[0]), tensor(20.0, stats=stats[1])
    assert [change.at for change in compare_values.changes(was, now)] == ["[0]"]
    was, now = (replace(one, shape=(9,), corner=(1,)) for one in (was, now))
    assert [change.at for change in compare_values.changes(was, now)] == [".min", ".max", ".mean", "[0]"]


def test_means_of_integers_are_float64() -> None:
    plain = Stats(min=0, max=9, mean=4.5, std=1.0)
    ints: dict[str, Any] = {"dtype": "int64"}
    assert said(tensor(stats=plain, **ints), tensor(stats=replace(plain, mean=4.5 + 1e-10), **ints)) == []
    assert said(tensor(stats=plain, **ints), tensor(stats=replace(plain, mean=4.5 + 1e-6), **ints)) != []


# ---------------------------------------------------------------------------- containers and texts


def test_sequences_and_mappings_name_what_inside_differs() -> None:
    three = Sequence("tuple", 3, (scalar(1), scalar(2), scalar(3)))
    assert said(three, three) == []
    assert said(three, replace(three, items=(scalar(1), scalar(5), scalar(3)))) == [
        "[1]: was 2, is 5, by 3 (0.6 of it)"
    ]
    assert said(three, replace(three, length=4)) == [".length: was 3, is 4, by 1"]
    assert said(three, replace(three, type="list")) == ["was tuple of 3, is list of 3"]
    one = Mapping("dict", 1, (scalar("a"),), (scalar(1),))
    assert said(one, replace(one, items=(scalar(2),))) == ["['a']: was 1, is 2, by 1 (0.5 of it)"]
    assert said(one, replace(one, keys=(scalar("b"),))) == [" keys: was 'a', is 'b'"]


@pytest.mark.parametrize(
    ("was", "now", "same"),
    [
        ("<Thing at 0x7f0012345678>", "<Thing at 0x7f00aaaabbbb>", True),
        ("<Thing at 0x7f0012345678>", "<Other at 0x7f0012345678>", False),
        ("0x7f800000", "0x7f800001", False),  # a bit pattern
        ("saved to /tmp/litbook-1/w.pt", "saved to /tmp/litbook-2/w.pt", True),
        ("saved to /tmp/litbook-1/w.pt", "loaded from /tmp/litbook-1/w.pt", False),
        ("(at /pytorch/torch/csrc/new.cpp:252.)", "(at /src/torch/csrc/new.cpp:249.)", True),
        ("12 B/s", "13 B/s", False),
        ("1/2", "1/3", False),
        ("on 2026-11-20", "on 2027-01-01", True),
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:01Z", True),
        ("2026", "2027", False),
    ],
)
def test_addresses_paths_and_dates_inside_texts_do_not_count(was: str, now: str, same: bool) -> None:
    for make in (lambda text: Opaque("Thing", text), lambda text: Scalar("str", repr(text))):
        assert (said(make(was), make(now)) == []) is same


def test_long_texts_are_cut_around_the_place_where_they_part() -> None:
    (line,) = said(Scalar("str", "a" * 500 + "X"), Scalar("str", "a" * 500 + "Y"))
    assert "aX, is …" in line and line.endswith("aY") and len(line) < 250


# ---------------------------------------------------------------------------- whole records

TWO = f"""{HEAD}
WIDTH = 4
def main():
    one()
    two()
def helper(x):
    y = x * WIDTH  # @inspect y
    return y
def one():
    size = helper(6)  # @inspect size
    assert size == helper(6), "size"
def two():
    size = helper(7)  # @inspect size
    for i in range(8):
        total = i * WIDTH  # @inspect total
"""


@pytest.fixture
def two(tmp_path: Path) -> model.Record:
    return record(tmp_path, TWO)


def test_a_record_does_not_differ_from_itself_and_says_how_much_was_compared(two: model.Record) -> None:
    found = compare.compare(two, two)
    assert found.differences == ()
    # y twice and size in one; y, size, five turns of total and eight points of its curve in two
    assert found.values == 3 + 2 + 5 + 8
    assert found.claims == 1


def test_a_changed_value_is_told_once_with_line_section_and_expression(
    tmp_path: Path, two: model.Record
) -> None:
    now = record(tmp_path, TWO.replace("WIDTH = 4", "WIDTH = 8"))
    found = differences(two, now)
    assert found[0] == (
        "lecture_sample.py:9: one: y is not what was recorded\n    was 24, is 48, by 24 (0.5 of it)"
    )
    assert (
        "lecture_sample.py:12: one: size is not what was recorded\n    was 24, is 48, by 24 (0.5 of it)"
        in found
    )
    assert sum("one: size" in line for line in found) == 1  # and not once more for the claim
    assert any("two: total" in line and "turn 1: was 4, is 8" in line for line in found)


def test_lines_that_moved_and_edits_elsewhere_disturb_nothing(tmp_path: Path, two: model.Record) -> None:
    text = TWO.replace("WIDTH = 4", "# one\n# two\nWIDTH = 4").replace(
        "    y = x * WIDTH", "    # more\n    y = x * WIDTH"
    )
    assert differences(two, record(tmp_path, text)) == []


def test_sections_are_matched_by_name_not_by_order(tmp_path: Path, two: model.Record) -> None:
    text = TWO.replace("    one()\n    two()\n", "    two()\n    one()\n")
    assert differences(two, record(tmp_path, text)) == [
        "lecture_sample.py:5: main was recorded from an older text"
    ]


def test_a_section_with_another_text_is_one_difference_and_its_values_are_none(
    tmp_path: Path, two: model.Record
) -> None:
    text = TWO.replace("size = helper(7)", "size = helper(9)")
    assert differences(two, record(tmp_path, text)) == [
        "lecture_sample.py:14: two was recorded from an older text"
    ]


def test_sections_that_come_and_go_are_named(tmp_path: Path, two: model.Record) -> None:
    text = TWO.replace("    two()\n", "    three()\n").replace("def two()", "def three()")
    assert differences(two, record(tmp_path, text)) == [
        "lecture_sample.py:1: two was recorded and is no longer there",
        "lecture_sample.py:5: main was recorded from an older text",
        "lecture_sample.py:14: three is not in the recording",
    ]


def test_a_section_alone_is_compared_alone(tmp_path: Path, two: model.Record) -> None:
    text = TWO.replace("WIDTH = 4", "WIDTH = 8")
    found = compare.compare(record(tmp_path, text, sections=["two"]), two).differences
    assert {d.section for d in found} == {"two"}
    assert compare.compare(record(tmp_path, TWO, sections=["two"]), two).differences == ()


def test_two_lectures_cannot_be_compared(two: model.Record) -> None:
    with pytest.raises(
        RecordError, match="a record of 'other' cannot be compared with one of 'lecture_sample'"
    ):
        compare.compare(two, replace(two, lecture="other"))


def changing(tmp_path: Path, body: str) -> list[str]:
    """What differs between two runs of one text, in which `VALUE` is 1, then 2."""
    text, made = section(body, 'import os\nVALUE = int(os.environ["VALUE"])\n'), list[model.Record]()
    for value in "12":
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VALUE", value)
            made.append(record(tmp_path, text))
    return differences(*made)


def test_what_is_measured_printed_written_or_drawn_is_never_compared(tmp_path: Path) -> None:
    assert changing(tmp_path, 'x = VALUE  # @measure x\nprint(VALUE)\nnote(f"It is {VALUE}.")') == []
    assert changing(tmp_path, "x = VALUE  # @inspect x") != []


@pytest.mark.parametrize(
    ("claim", "compared"),
    [
        ("x > 0", False),
        ("0 < x * 2", False),
        ("y.real > 0", True),
        ("y > 0", True),
        ("'x' in 'xy' and y", True),  # a letter in a string is no name
    ],
)
def test_a_claim_that_mentions_what_is_measured_is_compared_by_verdict_only(
    tmp_path: Path, claim: str, compared: bool
) -> None:
    assert bool(changing(tmp_path, f"x = y = VALUE  # @measure x\nassert {claim}")) is compared


def test_a_measured_call_measures_its_text_and_not_what_it_is_given(tmp_path: Path) -> None:
    body = "x = VALUE  # @measure round(VALUE / 1)\nassert {}"
    assert changing(tmp_path, body.format("round(VALUE / 1) > 0")) == []
    assert changing(tmp_path, "x = VALUE  # @measure os.getpid()\nassert os.sep and x > 0") != []


def test_another_verdict_is_a_difference_also_of_a_measured_claim(tmp_path: Path) -> None:
    found = changing(tmp_path, "x = VALUE  # @measure x\nassert x == 1")
    assert [line.splitlines()[1] for line in found] == ["    verdict: was holds, is fails"]


@pytest.mark.parametrize(
    ("claim", "compared"),
    [
        ("x < 1e-12", False), ("1e-12 >= x", False), ("0 < x <= 1e-12 and x != 0", True), ("0 < x <= 1e-12", False),
        ("x < 1.9e-15", False), ("x != 1e-12", True), ("x > -1e-12", False), ("VALUE < 100", True),
        ("x == VALUE * 1e-16", True),
    ],
)  # fmt: skip
def test_of_a_float_that_a_claim_only_bounds_no_digits_are_compared(
    tmp_path: Path, claim: str, compared: bool
) -> None:
    """The claim says no more than its verdict; `@inspect` shows the digits where they matter."""
    assert bool(changing(tmp_path, f"x = VALUE * 1e-16\nassert {claim}")) is compared


def test_addresses_are_never_compared(tmp_path: Path) -> None:
    assert changing(tmp_path, "x = [VALUE]  # @inspect id(x)\nassert id(x) > 0") == []


def test_a_for_loop_that_turns_more_often_is_told_and_a_while_may_watch_the_clock(tmp_path: Path) -> None:
    (found,) = changing(tmp_path, "for i in range(10 * VALUE):\n    x = i  # @inspect x")
    assert found.endswith("x is not what was recorded\n    turns of its loop: was 10, is 20, by 10")
    assert changing(tmp_path, "i = 0\nwhile i < 10 * VALUE:\n    i += 1  # @inspect i") == []


def test_a_number_in_the_middle_of_a_long_loop_is_compared_too(tmp_path: Path) -> None:
    found = changing(tmp_path, "for i in range(40):\n    x = VALUE if i == 20 else 0  # @inspect x")
    assert [line.splitlines()[1:] for line in found] == [["    turn 20: was 1, is 2, by 1 (0.5 of it)"]]


def test_where_a_loop_falls_to_nothing_the_rounding_of_its_beginning_is_no_difference(tmp_path: Path) -> None:
    loop = "x = 1.0\nfor i in range(40):\n    x *= {}  # @inspect x"
    assert changing(tmp_path, loop.format("0.5 + 1e-9 * VALUE")) == []
    assert changing(tmp_path, loop.format("0.5 + 1e-2 * VALUE")) != []
    alone = "x = 1e-11 * VALUE  # @inspect x"
    assert changing(tmp_path, alone) != []


def test_turns_that_showed_a_value_are_compared(tmp_path: Path) -> None:
    (found,) = changing(tmp_path, "for i in range(3):\n    if i != VALUE:\n        x = i  # @inspect x")
    assert "    turns that showed it: was 0, 2, is 0, 1" in found


def test_how_often_a_value_was_shown_is_compared(tmp_path: Path) -> None:
    body = "def show():\n    y = 1  # @inspect y\nshow()\nif VALUE == 2: show()"
    (found,) = changing(tmp_path, body)
    assert found.endswith("    times shown: was 1, is 2, by 1")


def test_the_answer_to_a_question_is_compared(tmp_path: Path) -> None:
    (found,) = changing(tmp_path, 'from litbook import question\nquestion("How much?", answer=VALUE)')
    assert found.endswith(
        "the answer to a question is not what was recorded\n    was 1, is 2, by 1 (0.5 of it)"
    )


def test_after_an_exception_what_is_missing_is_not_told_again(tmp_path: Path) -> None:
    assert changing(tmp_path, "x = 1  # @inspect x\nif VALUE == 2: 1 / 0\ny = 1  # @inspect y") == []


def test_a_long_list_of_changes_is_cut(tmp_path: Path) -> None:
    (found,) = changing(tmp_path, "x = [VALUE] * 10  # @inspect x")
    assert len(found.splitlines()) == 1 + compare.SHOWN + 1
    assert found.endswith("    and 6 more")


def test_a_sample_with_every_word_of_the_language_does_not_differ_from_its_golden_record() -> None:
    golden = encoding.read(SAMPLES / "tour.json")
    from litbook.run.run import run

    assert differences(golden, run(SAMPLES / "tour.py", device="cpu")) == []


def test_any_damage_that_a_reader_accepts_is_compared_without_an_exception(two: model.Record) -> None:
    text = encoding.dumps(two)
    for number in re.findall(r"\d+", text)[:400:7]:
        for instead in ("0", "1", "99999999999999999999"):
            changed = text.replace(f"{number},", f"{instead},", 3)
            try:
                damaged = encoding.loads(changed)
            except RecordError:
                continue
            compare.compare(two, replace(damaged, lecture=two.lecture))


def test_a_difference_is_a_finding_with_its_place_and_the_way_out() -> None:
    place = Place("a.py", 3)
    difference = compare.Difference(
        "value", "one", place, "x", (compare_values.count_change(".length", 1, 2),)
    )
    told, change = "one: x is not what was recorded", ".length: was 1, is 2, by 1"
    finding = Finding("differs", told, Place("a.py", 3, 0), "again", details=(change,))
    assert difference.finding("again") == finding
    assert str(difference) == f"a.py:3: {told}\n    {change}"
