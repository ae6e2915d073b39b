"""A record survives its JSON, and what is no record is refused with the file's name and the way out."""

from __future__ import annotations

import copy
import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.running import examples

from litbook.errors import RecordError
from litbook.record import encoding, model
from litbook.record.model import (
    Claim,
    Device,
    Environment,
    Error,
    Frame,
    Function,
    Loop,
    Mapping,
    Opaque,
    Operand,
    Piece,
    Record,
    Scalar,
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

SMALL = Record(
    schema=model.SCHEMA,
    lecture="lecture_00",
    title="A title",
    environment=ENVIRONMENT,
    sources=(Source("lecture_00.py", "0" * 64, "def main():\n    s()\n", ((2, 8),)),),
    functions=(
        Function("<module>", "module", 1, 9),
        Function("main", "main", 1, 2, "Main"),
        Function("s", "section", 3, 9, "S", parent=1),
    ),
    statements=(Statement(0, 1, 1, "def", 2, 1), Statement(1, 2, 2, "section", 2, 2), Statement(2, 4, 4, end=4)),
    frames=(Frame(0), Frame(1), Frame(2, 1, 2, (("x", 0), ("**more", 0)))),
    steps=((0, 0), (1, 1), (2, 2), (2, 2), (1, 1)),
    unreached=(2,),
    pieces=(Piece("note", 1, 2, 4, "prose"),),
    values=(Value(2, 2, 4, "x", 0, loop=0, turn=3),),
    loops=(Loop(2, 4, 9, (0, 1, 8)),),
    series=(Series(0, 4, "x", (0, 4), (1, 2.5)),),
    claims=(Claim(2, 4, 4, "x == 1", form=("", " == ", ""), operands=(Operand("x", 0), Operand("1"))),),
    errors=(Error("inspect", 2, 4, "x", "it raised", (("lecture_00.py", 4, "s", "x"),)),),
    snapshots=(Scalar("int", "1", 1),),
    seconds={"s": 0.5},
)  # fmt: skip


def there_and_back(record: Record) -> Record:
    return encoding.loads(encoding.dumps(record))


def with_snapshot(shown: Any) -> Record:
    return dataclasses.replace(SMALL, snapshots=(shown,))


# ------------------------------------------------------------------------------- there and back


def test_a_record_survives():
    assert there_and_back(SMALL) == SMALL


def test_a_record_from_before_frames_had_arguments_is_read():
    assert encoding.loads(changed("frames", to=[[0], [1], [2, 1, 2]])).frames[2] == Frame(2, 1, 2)


def test_a_record_of_schema_1_is_read():
    """There a statement's lines were numbers of lines, and a claim said all."""
    data = json.loads(encoding.dumps(SMALL)) | {"schema": 1}
    data["statements"] = [[0, 1, 1, "def", 2, 1], [1, 2, 2, "section", 2, 2], [2, 4, 4, "code", 4]]
    data["claims"][0] |= {"last": 4, "text": "x == 1"}
    assert encoding.loads(json.dumps(data)) == SMALL
    del data["claims"][0]["text"]
    assert (
        refusal(json.dumps(data))
        == HAND + "record.claims[0]: the field 'text' is missing\n    record it again"
    )


def test_an_empty_record_survives():
    empty = Record(model.SCHEMA, "", "", ENVIRONMENT, (), (), ())
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
    assert repr(record.snapshots[0]) == repr(shown)
    assert repr(type(value)(model.number(value))) == repr(value)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_that_python_may_refuse_to_write_is_infinite(sign):
    assert model.number(sign * 10**600) == f"{sign}" + "0" * 600
    assert float(model.number(sign * 10**5000)) == sign * float("inf")


@pytest.mark.parametrize(
    "shown, stored",
    [
        (Scalar("int", "5", 5), 5),
        (Scalar("int", "1", True), None),
        (Scalar("bool", "True", True), True),
        (Scalar("float", "1.0", 1.0), 1.0),
        (Scalar("float", "-0.0", -0.0), -0.0),
        (Scalar("float", "0.0", -0.0), None),
        (Scalar("float", "1", 1.0), None),
        (Scalar("float32", "1.0", 1.0), None),
        (Scalar("NoneType", "None"), "null"),
        (Scalar("int", "9007199254740993", "9007199254740993"), None),
        (Scalar("float", "nan", "nan"), None),
        (Scalar("str", "'a'"), "'a'"),
        (Scalar("str", "'a", cut=True), None),
        (Scalar("str", "'a'", 5), None),
        (Scalar("torch.dtype", "torch.float32"), None),
    ],
)
def test_a_plain_scalar_is_stored_as_itself_and_any_other_with_its_fields(shown, stored):
    record = with_snapshot(shown)
    [data] = json.loads(encoding.dumps(record))["snapshots"]
    if stored is None:
        assert data["kind"] == "scalar"
    else:
        assert repr(data) == repr(None if stored == "null" else stored)
    assert repr(there_and_back(record).snapshots) == repr((shown,))


@pytest.mark.parametrize(
    "text", ["", "größe 名前 🙂", "\u2028\u2029\x85\x0c\x00\r\n\t", "</script>", '"\\', "\ud800", "a\udfffb"]
)
def test_any_text_survives_also_through_a_file(tmp_path, text):
    record = dataclasses.replace(
        SMALL, title=text, pieces=(Piece("note", 0, 0, 1, text, alt=text),), seconds={text: 1.0}
    )
    file = tmp_path / "record.json"
    file.write_text(encoding.dumps(record), encoding="utf-8")
    assert encoding.read(file) == record


def test_fields_that_hold_their_default_are_left_out():
    data = json.loads(encoding.dumps(dataclasses.replace(SMALL, ran=(), dropped=0)))
    assert "ran" not in data and "dropped" not in data
    assert data["statements"] == [[0, 1, 0, "def", 1, 1], [1, 1, 0, "section", 0, 2], [2, 2, 0]]
    assert data["frames"] == [[0], [1], [2, 1, 2, [["x", 0], ["**more", 0]]]]
    assert data["values"] == [
        {"step": 2, "frame": 2, "line": 4, "text": "x", "value": 0, "loop": 0, "turn": 3}
    ]
    assert data["claims"][0]["operands"] == [["x", 0], ["1"]]


def test_statements_survive_also_where_their_lines_go_back():
    lines = (
        Statement(0, 7, 9, end=12),
        Statement(2, 3, 3, end=0),
        Statement(1, 3, 5, "hidden", 8, None, "p"),
    )
    record = dataclasses.replace(SMALL, statements=(*lines, *lines))
    assert there_and_back(record) == record


@pytest.mark.parametrize(
    "claim, left_out",
    [
        (Claim(2, 4, 4, "x == 1", form=("", " == ", ""), operands=(Operand("x"), Operand("1"))), {"last", "text"}),
        (Claim(2, 4, 5, "x == 1", form=("", " == ", ""), operands=(Operand("x"), Operand("1"))), {"text"}),
        (Claim(2, 4, 4, "x  == 1", form=("", " == ", ""), operands=(Operand("x"), Operand("1"))), {"last"}),
        (Claim(2, 4, 4, "f(x)", form=("f(", ")"), operands=(Operand("x"),)), {"last", "text"}),
        (Claim(2, 4, 4, 'x: Float[Tensor, "a"]', kind="axes", form=("",)), {"last"}),
        (Claim(2, 4, 4, "x", form=("", ""), operands=(Operand("x"),)), {"last", "text"}),
    ],
)  # fmt: skip
def test_a_claim_leaves_out_what_its_other_fields_say(claim, left_out):
    record = dataclasses.replace(SMALL, claims=(claim,))
    [data] = json.loads(encoding.dumps(record))["claims"]
    assert {"last", "text"} - set(data) == left_out
    assert there_and_back(record) == record


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
    assert repr(there_and_back(with_snapshot(shown)).snapshots) == repr((shown,))


def test_steps_are_stored_as_runs_of_one_frame():
    assert json.loads(encoding.dumps(SMALL))["steps"] == [[0, 0], [1, 1], [2, 2, 2], [1, 1]]


def test_every_element_of_a_list_has_its_own_line():
    text = encoding.dumps(SMALL)
    lines = text.split("\n")
    start = lines.index('"statements": [')
    assert lines[start + 1 : start + 5] == [
        '[0,1,0,"def",1,1],',
        '[1,1,0,"section",0,2],',
        "[2,2,0]",
        "],",
    ]
    changed = encoding.dumps(dataclasses.replace(SMALL, snapshots=(Scalar("int", "2", 2),)))
    assert [(a, b) for a, b in zip(lines, changed.split("\n"), strict=True) if a != b] == [("1", "2")]


def test_the_same_record_makes_the_same_text():
    assert encoding.dumps(SMALL) == encoding.dumps(there_and_back(SMALL))


# ------------------------------------------------------------------------------- what a record answers


def test_counts_are_of_the_sections_that_were_asked_for():
    def claim(function, verdict):
        return Claim(function, 1, 1, "x", verdict=verdict)

    functions = (
        Function("main", "main", 1, 1),
        Function("part", "part", 1, 1, parent=0),
        Function("in_part", "section", 1, 1, parent=1),
        Function("other", "section", 1, 1, parent=0),
    )
    claims = (
        claim(2, "holds"),
        claim(2, "fails"),
        claim(3, "holds"),
        claim(3, "not-reached"),
        claim(1, "needs-device"),
    )
    record = dataclasses.replace(SMALL, functions=functions, claims=claims)
    assert dataclasses.astuple(record.count()) == (2, 1, 1, 1)
    assert dataclasses.astuple(dataclasses.replace(record, ran=("part",)).count()) == (1, 1, 0, 1)
    assert dataclasses.astuple(dataclasses.replace(record, ran=("in_part",)).count()) == (1, 1, 0, 0)
    assert dataclasses.astuple(dataclasses.replace(record, ran=("other",)).count()) == (1, 0, 1, 0)


def test_sections_come_in_the_order_of_their_calls_each_once():
    functions = (
        Function("b", "section", 1, 1, parent=2),
        Function("a", "section", 2, 2, parent=2),
        Function("main", "main", 3, 9),
    )
    calls = tuple(Statement(2, n, n, "section", n, target) for n, target in ((4, 1), (5, 0), (6, 1)))
    record = dataclasses.replace(SMALL, functions=functions, statements=calls)
    assert record.sections() == [1, 0]
    assert record.sections(0) == []


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


HAND = "recordings/lecture_00.cpu.json was changed by hand or damaged: "


@pytest.mark.parametrize(
    "text, message",
    [
        (changed("nonsense", to=1), "record: unknown field 'nonsense'"),
        (changed("claims", 0, "colour", to=1), "record.claims[0]: unknown field 'colour'"),
        (changed("title", to=5), "record.title: 5 is no str"),
        (changed("title", to=None), "record.title: None is no str"),
        (changed("dropped", to=True), "record.dropped: True is no int"),
        (changed("dropped", to=1.0), "record.dropped: 1.0 is no int"),
        (changed("claims", 0, "verdict", to="maybe"), "record.claims[0].verdict: 'maybe' is none of 'holds', 'fails', "),
        (changed("claims", 0, "verdict", to=["holds"]), "record.claims[0].verdict: ['holds'] is none of 'holds', "),
        (changed("claims", 0, to=[]), "record.claims[0]: an object was expected"),
        (changed("claims", 0, to={"text": "x"}), "record.claims[0]: the field 'function' is missing"),
        (changed("environment", to={}), "record.environment: the field 'python' is missing"),
        (changed("environment", "versions", to=[]), "record.environment.versions: an object was expected"),
        (changed("environment", "versions", "torch", to=2), "record.environment.versions.torch: 2 is no str"),
        (changed("claims", to={}), "record.claims: a list was expected"),
        (changed("errors", 0, "trace", to=[["a", 1, "b"]]), "record.errors[0].trace[0]: 4 items were expected, 3 are there"),
        (changed("statements", 0, to={}), "record.statements[0]: a list of at most 7 values was expected"),
        (changed("statements", 0, to=[0] * 8), "record.statements[0]: a list of at most 7 values was expected"),
        (changed("statements", 0, to=[0]), "record.statements[0]: the field 'first' is missing"),
        (changed("frames", 0, to=["x"]), "record.frames[0].function: 'x' is no int"),
        (changed("frames", 0, to=[0, None, 0, ["x"]]), "record.frames[0].arguments[0]: a list was expected"),
        (changed("steps", to={}), "record.steps: a list of lists was expected"),
        (changed("steps", to=["ab"]), "record.steps: a list of lists was expected"),
        (changed("steps", to=[[0, "a"]]), "record.steps[0][1]: 'a' is no int"),
        (changed("snapshots", 0, to={"kind": "ghost"}), "record.snapshots[0]: 'ghost' is no kind of snapshot"),
        (changed("snapshots", 0, to={"kind": []}), "record.snapshots[0]: [] is no kind of snapshot"),
        (changed("snapshots", 0, to=[]), "record.snapshots[0]: None is no kind of snapshot"),
        (changed("snapshots", 0, to={"kind": "scalar", "type": "a", "text": "b", "number": []}), "record.snapshots[0].number: [] is no number"),
        (changed("series", 0, "values", to=[None]), "record.series[0].values[0]: None is no number"),
        (changed("seconds", "s", to="fast"), "record.seconds.s: 'fast' is no float"),
        (changed("seconds", "s", to=10**400), "int too large to convert to float"),
        (changed("seconds", "s", to="@").replace('"@"', "1e999"), "record.seconds.s: inf is too large for a number"),
        (changed("series", 0, "values", to=["@"]).replace('"@"', "-1e999"), "record.series[0].values[0]: -inf is too large for a number"),
        (changed("snapshots", 0, to="@").replace('"@"', "1e999"), "record.snapshots[0]: inf is too large for a number"),
    ],
)  # fmt: skip
def test_what_no_run_writes_is_refused_with_its_place(text, message):
    found = refusal(text)
    assert found.startswith(HAND + message), found
    assert found.endswith("\n    record it again")


@pytest.mark.parametrize(
    "text, message",
    [
        (changed("statements", 0, 0, to=9), "function 9 does not exist"),
        (changed("statements", 0, 0, to=-1), "function -1 does not exist"),
        (changed("statements", 0, 5, to=9), "function 9 does not exist"),
        (changed("functions", 2, "parent", to=9), "function 9 does not exist"),
        (changed("functions", 2, "parent", to=2), "function 2 is a part of itself"),
        (changed("functions", 1, "parent", to=2), "function 1 is a part of itself"),
        (changed("frames", 2, 0, to=9), "function 9 does not exist"),
        (changed("frames", 2, 1, to=2), "frame 2 does not exist"),
        (changed("frames", 2, to=[2, 1, 2, [["x", 1]]]), "snapshot 1 does not exist"),
        (changed("unreached", to=[3]), "statement 3 does not exist"),
        (changed("steps", to=[[3, 0]]), "frame 3 does not exist"),
        (changed("steps", to=[[0, 3]]), "statement 3 does not exist"),
        (changed("pieces", 0, "frame", to=3), "frame 3 does not exist"),
        (changed("pieces", 0, "step", to=5), "step 5 does not exist"),
        (changed("values", 0, "frame", to=3), "frame 3 does not exist"),
        (changed("values", 0, "step", to=-1), "step -1 does not exist"),
        (changed("values", 0, "value", to=1), "snapshot 1 does not exist"),
        (changed("values", 0, "loop", to=1), "loop 1 does not exist"),
        (changed("claims", 0, "function", to=3), "function 3 does not exist"),
        (changed("claims", 0, "operands", 0, 1, to=1), "snapshot 1 does not exist"),
        (changed("series", 0, "loop", to=1), "loop 1 does not exist"),
        (changed("loops", 0, 0, to=3), "frame 3 does not exist"),
        (changed("errors", 0, "function", to=3), "function 3 does not exist"),
    ],
)
def test_an_index_that_points_nowhere_is_refused(text, message):
    assert refusal(text) == HAND + message + "\n    record it again"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1, 2",
        '{"schema": NaN}',
        '{"schema": 1, "x": Infinity}',
        "\ufeff{}",
        "nonsense",
        "[" * 100_000,
        "1" * 5000,
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


def test_a_newer_schema_is_refused_and_says_what_to_do():
    assert refusal(changed("schema", to=model.SCHEMA + 1)) == (
        f"recordings/lecture_00.cpu.json has schema {model.SCHEMA + 1}; this litbook reads up to {model.SCHEMA}\n"
        "    update litbook, or record it again with this one"
    )


def test_every_place_at_which_a_record_can_be_cut_is_noticed():
    text = encoding.dumps(SMALL).rstrip()
    for end in range(len(text)):
        with pytest.raises(RecordError, match=r"^record is not a whole record: "):
            encoding.loads(text[:end])


def test_a_snapshot_that_nests_too_deep_is_refused():
    nested = '{"kind":"sequence","type":"list","length":1,"items":[' * 3000 + "1" + "]}" * 3000
    message = refusal(changed("snapshots", to="@").replace('"@"', f"[{nested}]"))
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


def test_a_folder_is_no_record(tmp_path):
    with pytest.raises(RecordError, match="cannot be read: Is a directory\n    record it again"):
        encoding.read(tmp_path)


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
        float: st.floats(allow_nan=False, allow_infinity=False),
    }
    if hint == model.Number:
        return numbers
    if hint == model.Snapshot:
        return snapshots
    if hint in plain:
        return plain[hint]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
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
    """The record with every index pointing into its list. References are made valid here, not by the code."""

    def within(things: Any, size: int, *names: str) -> tuple[Any, ...]:
        def mend(thing: Any) -> Any:
            given = {name: getattr(thing, name) for name in names}
            return dataclasses.replace(
                thing, **{name: at % size for name, at in given.items() if at is not None}
            )

        return tuple(map(mend, things)) if size else ()

    r, replace = record, dataclasses.replace
    functions = tuple(
        replace(f, parent=(f.parent or 0) % i if i else None) for i, f in enumerate(r.functions)
    )
    statements = within(r.statements, len(functions), "function", "target")
    frames = within(r.frames, len(functions), "function")
    shots = len(r.snapshots)
    frames = tuple(
        replace(
            f,
            parent=(f.parent or 0) % i if i else None,
            arguments=tuple((name, at % shots) for name, at in f.arguments) if shots else (),
        )
        for i, f in enumerate(frames)
    )
    both = bool(frames and statements)
    steps = tuple((a % len(frames), b % len(statements)) for a, b in r.steps) if both else ()
    loops, some = within(r.loops, len(frames), "frame"), max(1, len(steps))
    values = within(within(r.values, len(frames), "frame"), some, "step")
    values = tuple(replace(v, value=None, loop=None) for v in values)
    claims = within(r.claims, len(functions), "function")
    claims = tuple(replace(c, operands=within(c.operands, len(r.snapshots), "value")) for c in claims)
    answered = within(r.pieces, len(r.snapshots), "answer") or tuple(
        replace(p, answer=None) for p in r.pieces
    )
    return replace(
        r, schema=model.SCHEMA, functions=functions, statements=statements, frames=frames, steps=steps, loops=loops,
        values=within(values, len(r.snapshots), "value"), claims=claims,
        pieces=within(within(answered, len(frames), "frame"), some, "step"),
        series=within(r.series, len(loops), "loop"), errors=within(r.errors, len(functions), "function"),
        unreached=tuple(at % len(statements) for at in r.unreached) if statements else (),
    )  # fmt: skip


@given(of(Record).map(mended))
@settings(max_examples=examples(150))
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


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, child in children for place in _places(child, (*path, key)))]


DATA = json.loads(encoding.dumps(SMALL))
PLACES = _places(DATA)[1:]


@given(st.sampled_from(PLACES), json_values)
@settings(max_examples=examples(500))
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
        assert record.count() and record.sections() is not None
    assert "the file" in message and "\n    " in message
