"""A record survives its JSON, and what is no record is refused with the file's name and the way out."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import math
import operator
import os
import re
import signal
import socket
import subprocess
import sys
import time
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.running import REPO, examples

from litbook.errors import RecordError
from litbook.record import encoding, limits, model, recordings
from litbook.record.model import (
    Claim,
    Definition,
    Device,
    Environment,
    Error,
    Frame,
    Local,
    Loop,
    Mapping,
    Opaque,
    Operand,
    Piece,
    Record,
    Scalar,
    Section,
    Sequence,
    Series,
    Source,
    Statement,
    Stats,
    Tensor,
    Value,
)

ENVIRONMENT = Environment(
    python="3.11.7", os="Linux", machine="x86_64", cpu="a cpu", cores=2, threads=0, memory=2**33,
    device=Device("cpu", "cpu", "a cpu"), versions={"torch": "2.13.0"}, commit=None, date="2026-01-01T00:00:00Z", seed=0,
)  # fmt: skip

TEXT = '''def f(x):
    return x

def main():
    s()

def s():
    """A thesis."""
    note(f"Found {x}.")
    x = f(1)
    assert x == 1, "one"
'''

SMALL = Record(
    schema=model.SCHEMA,
    lecture="lecture_00",
    title="A title",
    environment=ENVIRONMENT,
    sources=(Source("lecture_00.py", "0" * 64, TEXT, ((2, 8),)),),
    definitions=(
        Definition("f", "helper", 0, 1, 2, body=1, digest="of f", statements=(Statement(1, 1, end=1),)),
    ),
    sections=(
        Section("main", "main", 0, 4, 2, "main", "Main", digest="of main", statements=(Statement(1, 1, "section", 1, "s"),),
                frames=(Frame(),), steps=((0, 0),)),
        Section(
            "s", "section", 0, 7, 5, "s", "A thesis", "main", 2, seconds=0.5,
            statements=(
                Statement(1, 1, "doc", 1), Statement(2, 2, "piece", 2),
                Statement(3, 3, end=3, binds=("x",)), Statement(4, 4, "claim", 4),
            ),
            calls=("f",),
            frames=(Frame(), Frame(1, 0, 3, (("x", 0), ("**more", 0))), Frame(1, 0, 3, (("x", 0), ("**more", 0)))),
            steps=((0, 1), (0, 2), (1, 0), (0, 3), (0, 3)),
            dropped=3,
            unreached=((0, 0), (1, 0)),
            pieces=(Piece("note", 0, 0, 2, "Found 1."),),
            values=(Value(3, 0, 4, "x", 0, loop=0, turn=3),),
            locals=(Local(1, 0, "x", 0), Local(2, 1, "y")),
            loops=(Loop(0, 4, 9, (0, 1, 8)), Loop(0, 4, 9, (0, 1, 2, 7, 8))),
            series=(Series(0, 4, "x", (0, 4), (1, 2.5)),),
            claims=(Claim(4, 4, "x == 1", "one", "holds", count=1, form=("", " == ", ""), operands=(Operand("x", 0), Operand("1"))),),
            errors=(Error("inspect", 4, "x", "it raised", (("lecture_00.py", 4, "s", "x"),)),),
            snapshots=(Scalar("int", "1", 1),),
        ),
    ),
    seconds=1.5,
    peak=2**30,
)  # fmt: skip

SECTION = SMALL.sections[1]


def small(**changes: Any) -> Record:
    """The small record with other fields in its section."""
    section = replace(SECTION, **changes)
    return replace(SMALL, sections=(SMALL.sections[0], section))


def entry(record: Record) -> dict[str, Any]:
    """The JSON of that section."""
    found: dict[str, Any] = json.loads(encoding.dumps(record))["sections"][1]
    return found


def there_and_back(record: Record) -> Record:
    return encoding.loads(encoding.dumps(record))


def with_snapshot(shown: Any) -> Record:
    return small(snapshots=(shown,))


# ------------------------------------------------------------------------------- there and back


def test_a_record_survives():
    assert there_and_back(SMALL) == SMALL


def test_an_empty_record_survives():
    empty = Record(model.SCHEMA, "", "", ENVIRONMENT, ())
    assert there_and_back(empty) == empty


@pytest.mark.parametrize(
    "value, stored",
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (-(2**53) - 1, "-9007199254740993"),
        pytest.param(-(10**400), "-1" + "0" * 400, id="-1e400"),
        (True, True),
        (1, 1),
        (1.0, 1.0),
        (-0.0, -0.0),
        (5e-324, 5e-324),
        (1.7976931348623157e308, 1.7976931348623157e308),
        (0.1 + 0.2, 0.30000000000000004),
    ],
)
def test_numbers_are_kept_without_loss(value, stored):
    assert repr(model.number(value)) == repr(stored)
    shown = Tensor("Tensor", "float32", (1,), stats=Stats(min=stored), values=(stored,), memory=(stored,))
    record = there_and_back(with_snapshot(shown))
    assert repr(record.sections[1].snapshots[0]) == repr(shown)
    assert repr(type(value)(model.number(value))) == repr(value)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_that_python_may_refuse_to_write_is_infinite(sign):
    assert model.number(sign * 10**600) == f"{sign}" + "0" * 600
    assert float(model.number(sign * 10**5000)) == sign * float("inf")


@pytest.mark.parametrize(
    "shown",
    [
        Scalar("int", "5", 5),
        Scalar("int", "1", True),
        Scalar("float", "1", 1),
        Scalar("float", "1.0", 1.0),
        Scalar("float", "0.0", -0.0),
        Scalar("NoneType", "None"),
        Scalar("int", "9007199254740993", "9007199254740993"),
        Scalar("float", "nan", "nan"),
        Scalar("str", "'a", cut=True),
        Scalar("", "text"),
    ],
)
def test_a_scalar_keeps_its_number_and_the_kind_of_it(shown):
    assert repr(there_and_back(with_snapshot(shown)).sections[1].snapshots) == repr((shown,))


@pytest.mark.parametrize(
    "shown, stored",
    [
        (Tensor("Tensor", "int8", (2,), values=(1, 2)),
         {"kind": "tensor", "type": "Tensor", "dtype": "int8", "shape": [2], "values": [1, 2]}),
        (Tensor("Tensor", "int8", (), offset=1, contiguous=False, stats=Stats(0, 1)),
         {"kind": "tensor", "type": "Tensor", "dtype": "int8", "shape": [], "offset": 1, "contiguous": False,
          "stats": {"min": 0, "max": 1}}),
        (Sequence("list", 2, (Scalar("int", "1", 1), Sequence("tuple", 0))),
         {"kind": "sequence", "type": "list", "length": 2, "items": [
             {"kind": "scalar", "type": "int", "text": "1", "number": 1}, {"kind": "sequence", "type": "tuple", "length": 0}]}),
        (Mapping("dict", 1, (Scalar("str", "'a'"),), (Scalar("bool", "True", True),)),
         {"kind": "mapping", "type": "dict", "length": 1, "keys": [{"kind": "scalar", "type": "str", "text": "'a'"}],
          "items": [{"kind": "scalar", "type": "bool", "text": "True", "number": True}]}),
        (Opaque("f", "<f>", why="x"), {"kind": "opaque", "type": "f", "text": "<f>", "why": "x"}),
    ],
)  # fmt: skip
def test_a_snapshot_says_what_it_is_and_leaves_out_what_is_usual(shown, stored):
    record = with_snapshot(shown)
    assert repr(entry(record)["snapshots"]) == repr([stored])
    assert repr(there_and_back(record).sections[1].snapshots) == repr((shown,))


@pytest.mark.parametrize(
    "text", ["", "größe 名前 🙂", "\u2028\u2029\x85\x0c\x00\r\n\t", "</script>", '"\\', "\ud800", "a\udfffb"]
)
def test_any_text_survives_also_through_a_file(tmp_path, text):
    piece = Piece("note", 0, 0, 1, text, alt=text)
    record = replace(small(pieces=(piece,)), title=text)
    file = tmp_path / "record.json"
    file.write_text(encoding.dumps(record), encoding="utf-8")
    assert encoding.read(file) == record


def test_fields_that_hold_their_default_are_left_out_and_what_is_many_is_a_row():
    data = json.loads(encoding.dumps(SMALL))
    assert "asked" not in data
    assert data["definitions"] == [
        {"key": "f", "kind": "helper", "file": 0, "first": 1, "lines": 2, "body": 1, "digest": "of f",
         "statements": [[1, 1, "code", 1, "", "", []]]}
    ]  # fmt: skip
    found = data["sections"][1]
    assert not {"hidden", "requires"} & found.keys()
    assert found["statements"][2:] == [[3, 3, "code", 3, "", "", ["x"]], [4, 4, "claim", 4, "", "", []]]
    assert found["frames"] == [[0, None, 0, []], *[[1, 0, 3, [["x", 0], ["**more", 0]]]] * 2]
    assert found["steps"] == [[0, 1], [0, 2], [1, 0], [0, 3], [0, 3]]
    assert found["pieces"] == [{"kind": "note", "step": 0, "frame": 0, "line": 2, "text": "Found 1."}]
    assert found["values"] == [[3, 0, 4, "x", 0, "inspect", None, "", 0, 3, False, []]]
    assert found["loops"] == [[0, 4, 9, [0, 1, 8], "for"], [0, 4, 9, [0, 1, 2, 7, 8], "for"]]
    assert found["claims"] == [
        {"line": 4, "last": 4, "text": "x == 1", "caption": "one", "verdict": "holds", "count": 1,
         "form": ["", " == ", ""], "operands": [["x", 0, False], ["1", None, False]]}
    ]  # fmt: skip


def test_moving_a_section_changes_two_numbers_of_its_entry():
    sources = (SMALL.sources[0], Source("models.py", "1" * 64, TEXT))
    was = replace(SMALL, sources=sources)
    moved = replace(was, sections=(SMALL.sections[0], replace(SECTION, file=1, first=9)))
    lines = [encoding.dumps(it).split("\n") for it in (was, moved)]
    assert [pair for pair in zip(*lines, strict=True) if pair[0] != pair[1]] == [
        ('"file":0,', '"file":1,'),
        ('"first":7,', '"first":9,'),
    ]
    assert there_and_back(moved) == moved


@pytest.mark.parametrize(
    "kept, number",
    [("inf", float("inf")), ("-9007199254740993", -(2**53) - 1), ("(1+2j)", 1 + 2j), ("x", None), (0.5, 0.5), (True, True)],
)  # fmt: skip
def test_a_number_kept_as_text_is_a_number_again(kept, number):
    assert repr(model.python_number(kept)) == repr(number)


def test_false_is_not_taken_for_a_default_zero():
    shown = Tensor(
        "Tensor", "bool", (1,), stats=Stats(min=False, max=0), contiguous=False, values=(False, 0, 0.0)
    )
    assert repr(there_and_back(with_snapshot(shown)).sections[1].snapshots) == repr((shown,))


CALL = '[1,0,3,[["x",0],["**more",0]]]'
ONE, TWO = (f'{{"kind":"scalar","type":"int","text":"{n}","number":{n}}}' for n in (1, 2))


def test_every_element_of_a_list_has_its_own_line():
    text = encoding.dumps(SMALL)
    lines = text.split("\n")
    start = lines.index('"frames":[', lines.index('"key":"s",'))
    assert lines[start + 1 : start + 5] == ["[0,null,0,[]],", f"{CALL},", CALL, "],"]
    changed = encoding.dumps(with_snapshot(Scalar("int", "2", 2)))
    assert [(a, b) for a, b in zip(lines, changed.split("\n"), strict=True) if a != b] == [(ONE, TWO)]


def test_the_same_record_makes_the_same_text():
    assert encoding.dumps(SMALL) == encoding.dumps(there_and_back(SMALL))


# ------------------------------------------------------------------------------- what a record answers


def test_counts_are_of_the_sections_that_were_asked_for():
    def section(key, parent, *verdicts):
        claims = tuple(Claim(1, 1, "x", "", verdict) for verdict in verdicts)
        return Section(key, "section", 0, 1, 1, parent=parent, claims=claims)

    record = replace(
        SMALL,
        sections=(
            section("main", ""),
            section("part", "main", "needs-device"),
            section("in_part", "part", "holds", "fails"),
            section("other", "main", "holds", "not-reached"),
        ),
    )
    assert record.count() == {"holds": 2, "fails": 1, "not-reached": 1, "needs-device": 1}
    assert replace(record, asked=("part",)).count() == {"holds": 1, "fails": 1, "needs-device": 1}
    assert replace(record, asked=("in_part",)).count() == {"holds": 1, "fails": 1}
    assert replace(record, asked=("other",)).count() == {"holds": 1, "not-reached": 1}


def test_a_record_says_what_stands_inside_what():
    assert SMALL.main.key == "main" and SMALL.children() == [SECTION] and SMALL.children(SECTION) == []
    assert [SMALL.callee(SECTION, frame).key for frame in range(3)] == ["s", "f", "f"]
    assert [section.key for section, _ in SMALL.claims()] == ["s"]


# ------------------------------------------------------------------------------- what is no record


def refusal(text: str) -> str:
    with pytest.raises(RecordError) as caught:
        encoding.loads(text, "recordings/lecture_00.cpu.json")
    assert caught.value.exit_status == 2
    return str(caught.value)


def changed(*path: str | int, to: Any) -> str:
    """The small record's JSON with one place changed."""
    data = json.loads(encoding.dumps(SMALL))
    *way, last = path
    place = data
    for key in way:
        place = place[key]
    place[last] = to
    return json.dumps(data)


def within(*path: str | int, to: Any) -> str:
    """The same, in its section."""
    return changed("sections", 1, *path, to=to)


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


DATA = json.loads(encoding.dumps(SMALL))
PLACES = _places(DATA)[1:]

HAND = "recordings/lecture_00.cpu.json was changed by hand or damaged: "


@pytest.mark.parametrize(
    "text, message",
    [
        (changed("nonsense", to=1), "Object contains unknown field `nonsense`"),
        (changed("places", to=[[0, 1]]), "Object contains unknown field `places`"),
        (changed("title", to=5), "Expected `str`, got `int` - at `$.title`"),
        (changed("seconds", to=10**400), "Number out of range - at `$.seconds`"),
        (changed("seconds", to="@").replace('"@"', "1e999"), "Number out of range - at `$.seconds`"),
        (changed("environment", to={}), "Object missing required field `python` - at `$.environment`"),
        (changed("environment", "versions", "torch", to=2), "Expected `str`, got `int` - at `$.environment.versions[...]`"),
        (changed("sources", to={}), "Expected `array`, got `object` - at `$.sources`"),
        (changed("sources", 0, "cuts", to=[[1]]), "Expected `array` of length 2 - at `$.sources[0].cuts[0]`"),
        (changed("definitions", 0, "kind", to="part"), "Invalid enum value 'part' - at `$.definitions[0].kind`"),
        (within("colour", to=1), "Object contains unknown field `colour` - at `$.sections[1]`"),
        (within("dropped", to=True), "Expected `int`, got `bool` - at `$.sections[1].dropped`"),
        (within("dropped", to=1.0), "Expected `int`, got `float` - at `$.sections[1].dropped`"),
        (within("statements", 0, to=[1]), "Expected `array` of at least length 2, got 1 - at `$.sections[1].statements[0]`"),
        (within("statements", 0, to=[1, 1, "code", 1, "", "", [], 1]), "Expected `array` of at most length 7"),
        (within("steps", to=[[0, "a"]]), "Expected `int`, got `str` - at `$.sections[1].steps[0][1]`"),
        (within("claims", 0, "verdict", to="maybe"), "Invalid enum value 'maybe' - at `$.sections[1].claims[0].verdict`"),
        (within("claims", 0, "operands", to=[5]), "Expected `array`, got `int` - at `$.sections[1].claims[0].operands[0]`"),
        (within("snapshots", 0, to={}), "Object missing required field `kind` - at `$.sections[1].snapshots[0]`"),
        (within("snapshots", 0, to={"kind": "ghost"}), "Invalid value 'ghost' - at `$.sections[1].snapshots[0].kind`"),
        (within("snapshots", 0, "number", to=[]), "Expected `bool | int | float | str | null`, got `array` - at `$.sections[1].snapshots[0].number`"),
        (within("snapshots", 0, "number", to="@").replace('"@"', "-1e999"), "Number out of range - at `$.sections[1].snapshots[0].number`"),
    ],
)  # fmt: skip
def test_what_no_run_writes_is_refused_with_its_place(text, message):
    found = refusal(text)
    assert found.startswith(HAND + message), found
    assert found.endswith("\n    record it again")
    # so it is also beside half a surrogate pair, which takes another way to be read
    half = refusal(text.replace("A title", "\\ud800"))
    assert half.startswith("recordings/lecture_00.cpu.json ") and half.endswith("\n    record it again")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999", "01", "1_0"])
def test_what_is_no_number_of_json_is_refused_beside_any_text(number):
    for title in ("A title", "\\ud800"):
        refusal(changed("seconds", to="@").replace('"@"', number).replace("A title", title))


def test_every_field_of_a_wrong_type_is_refused_with_its_place():
    for path in PLACES:
        *_, name = path
        at = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        value = functools.reduce(operator.getitem, path, DATA)
        found = refusal(changed(*path, to=[] if isinstance(value, dict) else {}))
        if name == "schema":
            assert "has no schema number" in found
        elif "versions" not in path:
            assert f"`${at}`" in found, (path, found)


def test_a_field_that_is_new_is_refused_and_one_that_is_gone_has_its_default_or_is_refused():
    for path in [(), *PLACES]:
        data = copy.deepcopy(DATA)
        place = functools.reduce(operator.getitem, path, data)
        if not isinstance(place, dict) or "versions" in path:
            continue
        for name, value in place.copy().items():
            del place[name]
            with contextlib.suppress(RecordError):
                record = encoding.loads(json.dumps(data))
                assert json.loads(encoding.dumps(record)) == data
                place[name] = value
                continue
            message = refusal(json.dumps(data))
            assert re.search(f"missing required field `{name}`|no schema|does not exist", message), message
            place[name] = value
        place["colour"] = 1
        assert "unknown field `colour`" in refusal(json.dumps(data))


@pytest.mark.parametrize(
    "text, message",
    [
        (changed("definitions", 0, "file", to=4), "file 4 of 'f' does not exist"),
        (within("file", to=-1), "file -1 of 's' does not exist"),
        (changed("sections", 1, "key", to="main"), "'main' is there twice"),
        (changed("definitions", 0, "key", to="g"), "'f', which 's' names, does not exist"),
        (within("statements", 0, to=[1, 0, "section", 0, "t"]), "'t', which 's' names, does not exist"),
        (within("parent", to="nobody"), "'nobody', which 's' names, does not exist"),
        (within("parent", to="f"), "'f', which 's' names, does not exist"),
        (within("calls", to=["main"]), "'main', which 's' names, does not exist"),
        (within("parent", to="s"), "section 's' is a part of itself"),
        (changed("sections", 0, "parent", to="s"), "section 'main' is a part of itself"),
        (within("frames", to=[[0], [2]]), "definition 2 of 's' does not exist"),
        (within("frames", 1, 1, to=1), "frame 1 of 's' does not exist"),
        (within("frames", 1, 3, 0, 1, to=1), "snapshot 1 of 's' does not exist"),
        (within("unreached", to=[[2, 0]]), "definition 2 of 's' does not exist"),
        (within("unreached", to=[[1, 1]]), "statement 1 of 's' does not exist"),
        (within("steps", to=[[0, 1], [3, 0]]), "frame 3 of 's' does not exist"),
        (within("steps", to=[[0, 4]]), "statement 4 of 's' does not exist"),
        (within("steps", to=[[0, 1], [1, 1]]), "statement 1 of 's' does not exist"),
        (within("pieces", 0, "frame", to=3), "frame 3 of 's' does not exist"),
        (within("pieces", 0, "step", to=5), "step 5 of 's' does not exist"),
        (within("pieces", 0, "answer", to=1), "snapshot 1 of 's' does not exist"),
        (within("values", 0, 1, to=3), "frame 3 of 's' does not exist"),
        (within("locals", 0, 1, to=3), "frame 3 of 's' does not exist"),
        (within("locals", 0, 0, to=5), "step 5 of 's' does not exist"),
        (within("locals", 0, 3, to=1), "snapshot 1 of 's' does not exist"),
        (within("values", 0, 0, to=-1), "step -1 of 's' does not exist"),
        (within("values", 0, 4, to=1), "snapshot 1 of 's' does not exist"),
        (within("values", 0, 8, to=2), "loop 2 of 's' does not exist"),
        (within("claims", 0, "operands", 0, 1, to=1), "snapshot 1 of 's' does not exist"),
        (within("series", 0, "loop", to=2), "loop 2 of 's' does not exist"),
        (within("loops", 0, 0, to=3), "frame 3 of 's' does not exist"),
    ],
)
def test_an_index_that_points_nowhere_is_refused(text, message):
    assert refusal(text) == HAND + message + "\n    record it again"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"schema": 1, "x": [1, 2',
        '{"schema": NaN}',
        '{"schema": 1, "x": Infinity}',
        "\ufeff{}",
        "nonsense",
        '{"x":' * 100_000,
    ],
)
def test_what_is_cut_short_or_no_json_is_refused(text):
    message = refusal(text)
    assert message.startswith("recordings/lecture_00.cpu.json is not a whole record: ")
    assert message.endswith("\n    record it again")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[1, 2",
        "[" * 100_000,
        "1" * 5000,
        "{}",
        "null",
        '{"schema": "1"}',
        '{"schema": true}',
        '{"schema": 1.0}',
        '{"schema": 0}',
        '{"schema": -1}',
    ],
)
def test_json_of_something_else_is_refused(text):
    assert (
        refusal(text)
        == "recordings/lecture_00.cpu.json is not a record: it has no schema number\n    record it again"
    )


@pytest.mark.parametrize(
    "schema, way_out",
    [
        (1, "record it again"),
        (model.SCHEMA - 1, "record it again"),
        (model.SCHEMA + 1, "update litbook, or record it again with this one"),
    ],
)
def test_another_schema_is_refused_and_says_what_to_do(schema, way_out):
    assert refusal(changed("schema", to=schema)) == (
        f"recordings/lecture_00.cpu.json has schema {schema}; this litbook reads {model.SCHEMA}\n    {way_out}"
    )


def test_every_place_at_which_a_record_can_be_cut_is_noticed():
    text = encoding.dumps(SMALL).rstrip()
    for end in range(len(text)):
        with pytest.raises(RecordError, match=r"^record is not a whole record: "):
            encoding.loads(text[:end])


def test_a_snapshot_that_nests_too_deep_is_refused():
    nested = '{"kind":"sequence","type":"list","length":1,"items":[' * 3000 + "1" + "]}" * 3000
    message = refusal(within("snapshots", to="@").replace('"@"', f"[{nested}]"))
    assert "recursion" in message and message.endswith("\n    record it again")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("gone.json", None, "{path} cannot be read: No such file or directory\n    record it again"),
        ("latin.json", b'{"a": "\xff"}', "{path} is not a record: it is not UTF-8 text\n    record it again"),
        ("other.json", b"{}", "{path} is not a record: it has no schema number\n    record it again"),
    ],
)
def test_reading_a_file_names_it(tmp_path, name, content, message):
    file: Path = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RecordError) as caught:
        encoding.read(file)
    assert str(caught.value) == message.format(path=file)


def pipe(file: Path) -> None:
    os.mkfifo(file)


def listener(file: Path) -> None:
    with contextlib.chdir(file.parent), socket.socket(socket.AF_UNIX) as it:  # a short name: theirs are
        it.bind(file.name)


def endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


def huge(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(limits.FILE + 1)  # which takes no room on the disk


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, "it is no regular file"),
        (pipe, "it is no regular file"),
        (listener, "No such device or address"),
        (endless, "it is no regular file"),
        (huge, "it has 268,435,457 bytes, and may have 268,435,456"),
    ],
)
def test_what_is_no_file_or_too_large_is_refused_at_once(tmp_path, make, why):
    file = tmp_path / "lecture_01.cpu.json"
    make(file)
    signal.alarm(20)  # a reader of the pipe would wait for ever
    try:
        before = time.process_time()
        with pytest.raises(RecordError) as caught:
            encoding.read(file)
        assert str(caught.value) == f"{file} cannot be read: {why}\n    record it again"
        with pytest.raises(
            RecordError, match=f"{file.name} cannot be read: {why}\n    take the file back from git"
        ):
            recordings.read(file, "lecture_01")
        assert time.process_time() - before < 2
    finally:
        signal.alarm(0)


# ------------------------------------------------------------------------------- any record at all

texts = st.text(max_size=6)
indices = st.integers(0, 5)
numbers = st.one_of(st.booleans(), st.integers(), st.floats()).map(model.number)


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of an annotated type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    plain = {
        str: texts,
        int: indices,
        bool: st.booleans(),
        float: st.floats(0, allow_nan=False, allow_infinity=False),  # seconds
    }
    if hint == model.Number:
        return numbers
    if hint == model.Snapshot:
        return snapshots
    if hint in (model.Grid, model.Live):
        return grids() if hint == model.Grid else lives()
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{name: of(kind) for name, kind in hints.items()})
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin in (typing.Union, types.UnionType):
        choices = tuple(arg for arg in args if arg is not type(None))
        return st.none() | (of(choices[0]) if len(choices) == 1 else numbers)
    if origin is dict:
        return st.dictionaries(of(args[0]), of(args[1]), max_size=2)
    if args[-1] is Ellipsis:
        return st.lists(of(args[0]), max_size=3).map(tuple)
    return st.tuples(*map(of, args))


@st.composite
def lives(draw: st.DrawFn) -> model.Live:
    """What a script draws: some places of its sliders, each with what was given there."""
    places = st.lists(numbers, min_size=1, max_size=3).map(tuple)
    spans = st.builds(model.Slider, texts, span=st.just((0, 2**32, 1)))
    sliders = draw(st.lists(st.builds(model.Slider, texts, places) | spans, min_size=1, max_size=3))
    at = st.tuples(*(st.integers(0, slider.size - 1) for slider in sliders))
    points = draw(st.lists(st.tuples(at, texts, texts), max_size=3))
    return model.Live(draw(texts), draw(texts), tuple(sliders), draw(at), tuple(points))


@st.composite
def grids(draw: st.DrawFn) -> model.Grid:
    """What is explored: at each place of its sliders a number for each name, or words."""
    places = st.lists(numbers, min_size=1, max_size=3).map(tuple)
    sliders = draw(st.lists(st.builds(model.Slider, texts, places), min_size=1, max_size=2))
    names, size = draw(st.lists(texts, max_size=2)), math.prod(len(slider.places) for slider in sliders)
    point = texts | st.tuples(*[numbers] * len(names))
    return model.Grid(
        kind=draw(of(model.ChartKind)),
        sliders=tuple(sliders),
        at=tuple(draw(st.integers(0, len(slider.places) - 1)) for slider in sliders),
        names=tuple(names),
        points=tuple(draw(st.lists(point, min_size=size, max_size=size))),
        unit=draw(st.none() | texts),
        limit=draw(st.none() | st.tuples(texts, numbers)),
    )


def _containers(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(below, max_size=3).map(tuple)
    return st.builds(Sequence, texts, indices, several) | st.builds(Mapping, texts, indices, several, several)


plain_values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False)
)
snapshots = st.recursive(
    st.one_of(
        st.deferred(lambda: of(Scalar)),
        plain_values.map(lambda value: Scalar(type(value).__name__, repr(value), value)),
        texts.map(lambda text: Scalar("str", text)),
        st.deferred(lambda: of(Tensor)),
        st.deferred(lambda: of(Opaque)),
    ),
    _containers,
    max_leaves=4,
)


def mended(record: Record) -> Record:
    """The record with every reference pointing somewhere. They are made valid here, not by the code."""
    files = len(record.sources)
    definitions = tuple(_unique(record.definitions)) if files else ()
    sections = tuple(_unique(record.sections)) if files else ()
    keys = [it.key for it in definitions]

    def texts_of(it: Any) -> Any:
        targets = [section.key for section in sections]
        found = tuple(
            replace(s, target=targets[len(s.target) % len(targets)] if s.target and targets else "")
            for s in it.statements
        )
        return replace(it, statements=found, file=it.file % files)

    definitions = tuple(map(texts_of, definitions))
    sizes = {it.key: len(it.statements) for it in definitions}
    made = []
    for i, it in enumerate(sections):
        parent = sections[i - 1].key if i else ""
        calls = tuple(dict.fromkeys(keys[len(key) % len(keys)] for key in it.calls)) if keys else ()
        made.append(_mended(replace(texts_of(it), parent=parent, calls=calls), sizes))
    return replace(record, schema=model.SCHEMA, definitions=definitions, sections=tuple(made))


def _unique(entries: Any) -> list[Any]:
    return list({it.key: it for it in entries if it.key}.values())


def _mended(r: Section, sizes: dict[str, int]) -> Section:
    def within(things: Any, size: int, *names: str) -> tuple[Any, ...]:
        def mend(thing: Any) -> Any:
            given = {name: getattr(thing, name) for name in names}
            return replace(thing, **{name: at % size for name, at in given.items() if at is not None})

        return tuple(map(mend, things)) if size else ()

    statements = [len(r.statements), *(sizes[key] for key in r.calls)]
    shots = len(r.snapshots)
    frames = tuple(
        replace(
            f,
            parent=(f.parent or 0) % i if i else None,
            arguments=tuple((name, at % shots) for name, at in f.arguments) if shots else (),
        )
        for i, f in enumerate(within(r.frames, len(statements), "called"))
    )
    steps = tuple(
        (a % len(frames), b % size)
        for a, b in r.steps if frames and (size := statements[frames[a % len(frames)].called])
    )  # fmt: skip
    unreached = ((a % len(statements), b) for a, b in r.unreached)
    loops, some = within(r.loops, len(frames), "frame"), max(1, len(steps))
    values = within(within(r.values, len(frames), "frame"), some, "step")
    values = tuple(replace(v, value=None, loop=None) for v in values)
    local = within(within(r.locals, len(frames), "frame"), some, "step")
    local = tuple(replace(v, value=None) for v in local)
    answered = within(r.pieces, shots, "answer") or tuple(replace(p, answer=None) for p in r.pieces)
    return replace(
        r, shares=(), frames=frames, steps=steps, loops=loops, values=within(values, shots, "value"),
        locals=within(local, shots, "value"),
        claims=tuple(replace(c, operands=within(c.operands, shots, "value")) for c in r.claims),
        pieces=within(within(answered, len(frames), "frame"), some, "step"),
        series=within(r.series, len(loops), "loop"),
        unreached=tuple((a, b % statements[a]) for a, b in unreached if statements[a]),
    )  # fmt: skip


@given(of(Record).map(mended))
@settings(max_examples=examples(50))
def test_any_record_survives(record):
    text = encoding.dumps(record)
    again = encoding.loads(text)
    assert repr(again) == repr(record)
    assert again == record
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["kind", "type", "text", "scalar"]), below, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(st.sampled_from(PLACES), json_values)
@settings(max_examples=examples(60))
def test_whatever_stands_at_any_place_a_record_is_read_or_refused_and_nothing_else(path, value):
    data = copy.deepcopy(DATA)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    try:
        record = encoding.loads(json.dumps(data), "the file")
    except RecordError as error:
        message = str(error)
    else:
        message = "the file\n    "
        assert there_and_back(record) == record
        assert sum(record.count().values()) == len(list(record.claims()))
    assert "the file" in message and "\n    " in message


THREADS = """
import sys, threading
from pathlib import Path
from litbook.record import encoding
sys.setswitchinterval(1e-6)
text, together = Path(sys.argv[1]).read_text(), threading.Barrier(4)
def read():
    together.wait()
    encoding.loads(text)
threads = [threading.Thread(target=read) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
"""


def test_several_threads_may_read_the_first_records_of_a_process(tmp_path: Path) -> None:
    """A build reads the records of its lectures in threads; msgspec ended the process where two were the first."""
    (tmp_path / "record.json").write_text(encoding.dumps(SMALL))
    env = {**os.environ, "PYTHONPATH": str(REPO / "tools")}
    command = [sys.executable, "-c", THREADS, str(tmp_path / "record.json")]
    for _ in range(3):  # without the decoders that `encoding` makes all three end with SIGSEGV
        assert subprocess.run(command, env=env, check=False, timeout=60).returncode == 0
