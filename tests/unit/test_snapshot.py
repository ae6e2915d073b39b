"""Any object at all becomes a bounded snapshot, and nothing notices that it was looked at."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import json
import math
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
import typing
import warnings
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import TOOLS
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from litbook.errors import TimedOut
from litbook.record import model
from litbook.record.limits import NESTED_READ
from litbook.snapshot import libraries
from litbook.snapshot.snapshot import glimpse, is_immediate
from litbook.snapshot.snapshot import snapshot as typed_snapshot
from litbook.snapshot.statistics import shortest
from litbook.snapshot.storages import Storages
from litbook.snapshot.tensors import _TorchReader

READ: Any = msgspec.json.Decoder(model.Snapshot).decode
snapshot: Any = typed_snapshot  # a test knows which kind of snapshot it gets
NAN, INF = float("nan"), float("inf")


def as_json(shot: model.Snapshot) -> str:
    return json.dumps(msgspec.to_builtins(shot), allow_nan=False, ensure_ascii=False)


def check(value: object, most: int = 32_000) -> Any:
    """The snapshot of `value`, after checking what holds for every snapshot."""
    shot = snapshot(value)
    text = as_json(shot)
    assert len(text.encode("utf-8")) <= most
    assert READ(text) == shot
    return shot


def seconds(
    call: Callable[[], object], repeats: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The shortest of several times: the others measure the machine's other guests."""
    best = INF
    for _ in range(repeats):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best


# ---------------------------------------------------------------------------- scalars


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2


@pytest.mark.parametrize(
    "value, kind, text, number",
    [
        (7, "int", "7", 7),
        (-(2**53), "int", str(-(2**53)), -(2**53)),
        (2**53 + 1, "int", str(2**53 + 1), str(2**53 + 1)),
        (0.1, "float", "0.1", 0.1),
        (NAN, "float", "nan", "nan"),
        (INF, "float", "inf", "inf"),
        (-INF, "float", "-inf", "-inf"),
        (True, "bool", "True", True),
        (None, "NoneType", "None", None),
        (..., "ellipsis", "Ellipsis", None),
        (1 + 2j, "complex", "(1+2j)", None),
        ("a'b", "str", '"a\'b"', None),
        ("\ud800", "str", "'\\ud800'", None),
        (b"ab", "bytes", "b'ab'", None),
        (bytearray(b"ab"), "bytearray", "bytearray(b'ab')", None),
        (torch.float32, "torch.dtype", "torch.float32", None),
        (torch.device("cuda", 1), "torch.device", "device(type='cuda', index=1)", None),
        (np.float32(0.1), "numpy.float32", "np.float32(0.1)", 0.1),
        (np.float64(0.1), "numpy.float64", "np.float64(0.1)", 0.1),
        (np.int8(-3), "numpy.int8", "np.int8(-3)", -3),
        (np.uint64(2**64 - 1), "numpy.uint64", f"np.uint64({2**64 - 1})", str(2**64 - 1)),
        (np.bool_(True), "numpy.bool", "np.True_", True),
        (np.float16(NAN), "numpy.float16", "np.float16(nan)", "nan"),
        (np.str_("x"), "numpy.str_", "'x'", None),
        (fractions.Fraction(1, 3), "fractions.Fraction", "Fraction(1, 3)", None),
        (decimal.Decimal("1.50"), "decimal.Decimal", "Decimal('1.50')", None),
        (datetime.date(2026, 1, 2), "datetime.date", "datetime.date(2026, 1, 2)", None),
        (datetime.timedelta(1), "datetime.timedelta", "datetime.timedelta(days=1)", None),
        (Colour.RED, "test_snapshot.Colour", "Colour.RED", None),
        (Level.LOW, "test_snapshot.Level", "Level.LOW", None),
        (Right.READ | Right.WRITE, "test_snapshot.Right", "Right.READ|WRITE", None),
    ],
)
def test_a_scalar_keeps_its_type_its_text_and_its_number(value, kind, text, number):
    shot = check(value)
    assert (shot.type.removeprefix("tests."), shot.text, shot.number, shot.cut) == (kind, text, number, False)
    assert type(shot.number) is type(number)


def test_minus_zero_keeps_its_sign():
    shot = snapshot(-0.0)
    assert math.copysign(1, shot.number) == -1
    assert "-0.0" in as_json(shot)


def test_datetimes_and_paths_are_scalars():
    now = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
    assert check(now).text == repr(now)
    assert check(pathlib.PurePosixPath("/a b")).text == "PurePosixPath('/a b')"


@pytest.mark.parametrize("sign", [1, -1])
def test_an_int_too_long_for_decimal_text_shows_sign_leading_hex_and_bits(sign):
    shot = check(sign * 0xABC << 20_000)
    assert shot.text.startswith("0xabc0" if sign > 0 else "-0xabc0")
    assert "(20012 bits)" in shot.text
    assert shot.cut and shot.number is None


def test_a_low_limit_on_int_digits_changes_nothing():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert check(2**1999).text == str(2**1999)
        assert check(2**2001).cut
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    "text", ["x" * 10**7, "\x00" * 10**6, "é" * 10**6, "\U0001f600" * 10**6, "'\"" * 10**6]
)
def test_a_long_text_is_cut_and_says_so(text):
    shot = check(text, most=5000)
    assert shot.cut and len(shot.text) <= 1001


def test_only_small_immutable_builtins_are_immediate():
    for value in (0, 2**70, 0.5, NAN, True, None, "", "x" * 64):
        assert is_immediate(value)
    for other in ("x" * 65, b"", (), [], 1j, Level.LOW, np.float64(1), torch.tensor(1), object()):
        assert not is_immediate(other)


# ---------------------------------------------------------------------------- containers


@dataclasses.dataclass
class Point:
    x: int
    y: Any = 2
    shared: typing.ClassVar[int] = 9


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    b: int = 5


class Pair(typing.NamedTuple):
    left: int
    right: str


@pytest.mark.parametrize(
    "value, kind, length, texts",
    [
        ([1, "a"], "list", 2, ["1", "'a'"]),
        ((1,), "tuple", 1, ["1"]),
        ({"b", "a", "c"}, "set", 3, ["'a'", "'b'", "'c'"]),
        (frozenset({3, 1}), "frozenset", 2, ["1", "3"]),
        (torch.Size([2, 3]), "torch.Size", 2, ["2", "3"]),
        (range(0, 10**9, 3), "range", 333333334, [str(i) for i in range(0, 60, 3)]),
        (collections.deque([1, 2], 5), "collections.deque", 2, ["1", "2"]),
        ({1: 2}.keys(), "dict_keys", 1, ["1"]),
        (list(range(1000)), "list", 1000, [str(i) for i in range(20)]),
    ],
)
def test_a_sequence_keeps_its_first_items_and_its_true_length(value, kind, length, texts):
    shot = check(value)
    assert (shot.kind, shot.type, shot.length) == ("sequence", kind, length)
    assert [item.text for item in shot.items] == texts


@pytest.mark.parametrize(
    "value, length, pairs",
    [
        ({"a": 1, 2: None}, 2, [("'a'", "1"), ("2", "None")]),
        (collections.Counter("aab"), 2, [("'a'", "2"), ("'b'", "1")]),
        (Point(1), 2, [("x", "1"), ("y", "2")]),
        (Slotted(1), 2, [("a", "1"), ("b", "5")]),
        (Pair(1, "r"), 2, [("left", "1"), ("right", "'r'")]),
    ],
)
def test_a_mapping_keeps_keys_and_values_in_order(value, length, pairs):
    shot = check(value)
    assert (shot.kind, shot.length) == ("mapping", length)
    assert [(k.text, v.text) for k, v in zip(shot.keys, shot.items, strict=True)] == pairs


def test_an_ordered_dict_is_shown_in_its_own_order():
    value = collections.OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert [k.text for k in check(value).keys] == ["'b'", "'a'"]


def test_a_range_longer_than_any_list_is_shown_by_its_text():
    assert check(range(10**30)).text == "range(0, 1000000000000000000000000000000)"
    assert check(range(10**6000)).kind == "opaque"


def test_number_limits_of_dtypes_are_tables_in_a_fixed_order():
    names = ["bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution", "dtype"]
    half, byte = check(torch.finfo(torch.float16)), check(torch.iinfo(torch.int8))
    assert [k.text for k in half.keys] == names
    assert [k.text for k in byte.keys] == ["bits", "min", "max", "dtype"]
    assert half.items[2].number == 65504.0 and half.items[7].text == "'float16'"


def test_results_with_names_show_their_names():
    shot = check(torch.tensor([[1.0, 5.0]]).max(dim=1))
    assert [k.text for k in shot.keys] == ["values", "indices"]
    assert shot.items[0].values == (5.0,) and shot.items[1].values == (1,)


def test_an_empty_container_is_not_too_deep_and_an_unset_slot_is_left_out():
    half_made = Slotted.__new__(Slotted)
    half_made.b = 1
    assert [k.text for k in check(half_made).keys] == ["b"]
    assert check([[[[[]]]]]).items[0].items[0].items[0].items[0].kind == "sequence"


def test_what_contains_itself_says_so():
    a: list[Any] = [1]
    a.append(a)
    d: dict[str, Any] = {}
    d["self"] = d
    assert check(a).items[1].why == "contains itself"
    assert check(d).items[0].why == "contains itself"


def test_a_list_within_ten_thousand_lists_ends_at_depth_four():
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    assert '"nested too deep"' in as_json(check(value, most=1000))


def test_one_big_child_does_not_use_up_what_its_neighbours_need():
    shot = check([list(range(1000))] * 1 + [[i] for i in range(19)])
    assert len(shot.items) == 20
    assert [len(item.items) for item in shot.items[1:]] == [1] * 19


def test_wide_and_deep_containers_stay_small():
    value: Any = "x" * 500
    for _ in range(4):
        value = {f"key {i}": [value] * 30 for i in range(30)}
    check(value)
    check([[torch.randn(100, 100) for _ in range(30)] for _ in range(30)])


leaves: Any = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc"]), max_size=2000)
    | st.binary(max_size=2000)
    | st.decimals()
    | st.fractions()
)
nested = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Point, st.integers(), inner)
    ),
    max_leaves=60,
)


@given(nested)
def test_any_nesting_of_values_survives_json_and_stays_small(value):
    shot = check(value)
    assert as_json(READ(as_json(shot))) == as_json(shot)


# ---------------------------------------------------------------------------- hostile objects


def make(name: str, **members: Any) -> Any:
    return type(name, (), members)()


def forever(*_: object) -> str:
    while True:
        pass


def raising(*_: object) -> Any:
    raise ValueError("no")


def leaving(*_: object) -> Any:
    raise SystemExit(3)


def deeper(self: Any) -> str:
    return repr(self)


@pytest.mark.parametrize(
    "how, why",
    [
        (raising, "repr raised ValueError"),
        (leaving, "repr raised SystemExit"),
        (lambda self: 5, "repr raised TypeError"),
        (lambda self: None, "repr raised TypeError"),
        (deeper, "repr raised RecursionError"),
    ],
)
def test_a_repr_that_fails_is_named_with_its_reason(how, why):
    shot = check(make("Bad", __repr__=how))
    assert (shot.text, shot.why) == ("", why) and shot.type.endswith("Bad")


def test_a_repr_that_never_ends_is_interrupted_and_the_rest_is_still_shown():
    start = time.perf_counter()
    shot = check([make("Loop", __repr__=forever) for _ in range(10)] + [1])
    assert time.perf_counter() - start < 20  # 0.2 s on an idle machine
    assert shot.items[0].why == "repr took too long"
    assert shot.items[1].why == "repr was not called: no time was left"
    assert shot.items[10].text == "1"


def test_a_repr_that_swallows_its_interruption_is_interrupted_again():
    def stubborn(_: object) -> str:
        while True:
            try:
                time.sleep(0.001)
            except BaseException:
                continue

    start = time.perf_counter()
    assert check(make("Stubborn", __repr__=stubborn)).why == "repr took too long"
    assert time.perf_counter() - start < 20  # 1 s on an idle machine


def test_a_sleeping_repr_is_woken():
    assert check(make("Asleep", __repr__=lambda self: time.sleep(60))).why == "repr took too long"


def test_a_text_of_a_hundred_megabytes_is_cut():
    text = "x" * 10**8  # made before the clock runs: a busy machine needs longer for it than a repr may take
    shot = check(make("Long", __repr__=lambda self: text), most=2000)
    assert shot.cut and len(shot.text) == 1000


def test_a_repr_may_hold_control_characters_surrogates_and_addresses():
    shot = check(make("Odd", __repr__=lambda self: "\x00\x1b<b> \ud800 <f at 0x7f0012345678>"))
    assert shot.text == "\x00\x1b<b> \\ud800 <f>"


def test_texts_that_lie_about_themselves_are_read_as_texts():
    class Text(str):
        __len__ = __getitem__ = raising
        __repr__ = __str__ = forever

    assert check(Text("abc")).text == "'abc'"
    assert check(make("Lying", __repr__=lambda self: Text("y" * 9999))).text == "y" * 1000


def everything_raises(base: type) -> Any:
    names = (
        "__getattribute__ __getattr__ __len__ __iter__ __getitem__ __contains__ __eq__ __hash__ __bool__ __repr__ "
        "__str__ __format__ __int__ __float__ __index__ __complex__ __lt__ __le__ __call__ __dir__ __sizeof__ "
        "__reduce__ __missing__ __next__ __length_hint__ __torch_function__ __array__ __array_interface__ "
        "items keys values"
    )
    members: dict[str, Any] = dict.fromkeys(names.split(), raising)
    members["__class__"] = property(raising)
    members["__dict__"] = property(raising)
    return type("Hostile", (base,), members)


@pytest.mark.parametrize(
    "base, arguments, text",
    [
        (int, (5,), "5"),
        (float, (0.5,), "0.5"),
        (complex, (1j,), "1j"),
        (str, ("a",), "'a'"),
        (bytes, (b"a",), "b'a'"),
        (bytearray, (b"a",), "bytearray(b'a')"),
    ],
)
def test_a_lying_number_or_text_is_read_through_its_base(base, arguments, text):
    shot = check(
        base.__new__(everything_raises(base), *arguments) if base is not bytearray else text and b"a"
    )
    assert shot.text == (text if base is not bytearray else "b'a'")


@pytest.mark.parametrize(
    "base, fill", [(list, list.append), (set, set.add), (collections.deque, collections.deque.append)]
)
def test_a_lying_sequence_is_read_through_its_base(base, fill):
    value = everything_raises(base)()
    fill(value, 7)
    shot = check(value)
    assert (shot.length, shot.items[0].text) == (1, "7")


def test_a_lying_tuple_and_a_lying_dict_are_read_through_their_base():
    assert check(tuple.__new__(everything_raises(tuple), (7,))).items[0].text == "7"
    value = everything_raises(dict)()
    dict.__setitem__(value, "k", 7)
    shot = check(value)
    assert (shot.length, shot.keys[0].text, shot.items[0].text) == (1, "'k'", "7")


def test_an_object_whose_every_method_raises_still_has_a_type():
    assert check(everything_raises(object)()).why == "repr raised ValueError"
    assert check({"k": everything_raises(object)()}).items[0].type.endswith("Hostile")


def test_an_object_that_lies_about_its_class_is_not_believed():
    for lie in (int, list, torch.Tensor, np.ndarray, BaseException):
        shot = check(make("Liar", __class__=lie, shape=(1,), __len__=lambda self: 10**9))
        assert (shot.kind, shot.text) == ("opaque", f"<{shot.type} object>")


def test_dictionaries_with_hostile_keys_are_shown():
    key = make("Key", __hash__=lambda self: 1, __eq__=raising, __repr__=raising, __bool__=raising)
    shot = check({key: 1})
    assert shot.keys[0].why == "repr raised ValueError" and shot.items[0].text == "1"


def test_a_hostile_metaclass_is_not_asked():
    meta = type(
        "Meta",
        (type,),
        dict.fromkeys(
            ("__eq__", "__hash__", "__repr__", "__getattribute__", "__instancecheck__", "__subclasscheck__"),
            raising,
        ),
    )
    kind: Any = type.__new__(meta, "Odd", (), {})
    assert check(object.__new__(kind)).text.endswith("Odd object>")
    assert check(kind).text.endswith("Odd")


def test_properties_slots_and_fields_of_a_lying_dataclass_are_not_run():
    @dataclasses.dataclass
    class Sneaky:
        a: int

        def __getattr__(self, name: str) -> Any:
            raise ValueError

    value = Sneaky(1)
    Sneaky.a = property(raising)  # type: ignore[assignment]
    assert check(value).items[0].text == "1"
    del value.__dict__["a"]
    assert check(value).length == 0
    Sneaky.__dataclass_fields__ = {1: 2, "a": 3}  # type: ignore[dict-item]
    assert check(value).length == 0


def test_a_type_name_may_be_long_or_odd():
    assert len(check(type("N" * 10**6, (), {})()).type) <= 120
    odd = type("O", (), {"__module__": 5, "__qualname__": "\n<b>"})
    assert check(odd()).type == "\n<b>"


def test_iterators_and_generators_are_not_consumed():
    made = (i for i in range(3))
    others: list[Any] = [
        iter([0, 1, 2]),
        map(abs, [0, 1, 2]),
        zip([0, 1, 2], strict=False),
        itertools.count(),
    ]
    for it in (made, *others):
        assert check(it).kind == "opaque"
    assert list(made) == [0, 1, 2]
    assert [next(it) for it in others] == [0, 0, (0,), 0]


def test_looking_changes_nothing():
    value = {"a": [1, {2}], "t": collections.OrderedDict(x=collections.defaultdict(list))}
    before = repr(value)
    check(value)
    assert repr(value) == before


def test_code_is_shown_by_its_qualified_name():
    assert check(len).text == "len"
    assert check(json.dumps).text == "json.dumps"
    assert check("a".join).text == "str.join"
    assert check(json.JSONEncoder().encode).text == "json.encoder.JSONEncoder.encode"
    assert check(json.JSONEncoder).text == "json.encoder.JSONEncoder"
    assert check(json).text == "json"


def test_an_exception_is_shown_by_its_message():
    assert (check(KeyError("k")).type, check(KeyError("k")).text) == ("KeyError", "'k'")
    assert check(type("Bad", (Exception,), {"__str__": raising})()).why == "str raised ValueError"


def test_the_address_of_an_object_is_not_kept():
    assert "0x" not in check(lambda: 0).text + check(object()).text + check(x for x in "").text


def test_near_the_recursion_limit_there_is_still_a_snapshot():
    shots: list[Any] = []

    def down() -> None:
        try:
            down()
        except RecursionError:
            shots.append(None)  # where not even one call is left, this stays
            shots[-1] = snapshot([Point(1), "x" * 100, ValueError("e")])
            raise

    with pytest.raises(RecursionError):
        down()
    assert shots.count(None) <= 2
    assert "could not be read" in [getattr(shot, "why", "") for shot in shots]
    assert shots[-1].items[0].keys[0].text == "x"


# ---------------------------------------------------------------------------- modules


def test_a_module_shows_its_class_and_counts_its_parameters():
    layer = torch.nn.Linear(4, 2)
    assert check(layer).text == "Linear(in_features=4, out_features=2, bias=True), 10 parameters"
    assert check(torch.nn.Sequential(layer, torch.nn.ReLU(), layer)).text == (
        "Sequential(0: Linear, 1: ReLU, 2: Linear), 10 parameters"
    )
    assert check(torch.nn.LazyLinear(3)).text.startswith("LazyLinear(")


def test_a_deep_or_cyclic_or_broken_module_is_bounded():
    inner: torch.nn.Module = torch.nn.Linear(1, 1)
    for _ in range(2000):
        inner = torch.nn.Sequential(inner)
    assert check(inner).text == "Sequential(0: Sequential), 2 parameters"
    inner._modules["0"] = inner
    assert "Sequential" in check(inner).text
    assert check(torch.nn.Module.__new__(torch.nn.Module)).kind == "opaque"
    assert check(type("M", (torch.nn.Module,), {"extra_repr": forever, "__repr__": forever})()).text.endswith(
        "M(), 0 parameters"
    )


# ---------------------------------------------------------------------------- time limits of others


@pytest.fixture
def alarm():
    """SIGALRM counts its rings, and is given back after the test."""
    rings: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(time.monotonic()))
    timer = signal.setitimer(signal.ITIMER_REAL, 0)
    yield rings
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    if timer[0]:
        signal.setitimer(signal.ITIMER_REAL, *timer)


def test_an_outer_alarm_keeps_its_handler_its_remaining_time_and_its_interval(alarm):
    handler = signal.getsignal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 100, 7)
    snapshot(make("Loop", __repr__=forever))
    remaining, interval = signal.getitimer(signal.ITIMER_REAL)
    assert 99 < remaining < 99.9 and interval == pytest.approx(7)
    assert signal.getsignal(signal.SIGALRM) is handler and alarm == []


def test_an_outer_alarm_that_falls_into_a_repr_rings_right_after(alarm):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    assert snapshot(make("Loop", __repr__=forever)).why == "repr took too long"
    time.sleep(0.01)
    assert len(alarm) == 1 and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_without_an_outer_alarm_none_is_left(alarm):
    snapshot(make("Quick", __repr__=lambda self: "q"))
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    time.sleep(0.25)
    assert alarm == []


def test_a_repr_that_sets_its_own_alarm_does_not_keep_it(alarm):
    def meddling(_: object) -> str:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        return "m"

    handler = signal.getsignal(signal.SIGALRM)
    assert snapshot(make("M", __repr__=meddling)).text == "m"
    assert signal.getsignal(signal.SIGALRM) is handler and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_ctrl_c_and_the_runners_time_out_pass_through():
    def stop(error: BaseException) -> Callable[[object], str]:
        def late(_: object) -> str:
            raise error

        return late

    for error in (KeyboardInterrupt(), TimedOut("late", None)):
        with pytest.raises(type(error)):
            snapshot([make("Stop", __repr__=stop(error))])


def test_outside_the_main_thread_foreign_code_is_not_called():
    seen: list[Any] = []
    value = [make("Loop", __repr__=forever), torch.ones(2), Point(1), decimal.Decimal(1), Level.LOW]
    thread = threading.Thread(target=lambda: seen.append(snapshot(value)))
    thread.start()
    thread.join(5)
    items = seen[0].items
    assert items[0].why == "repr is called in the main thread only"
    assert items[1].values == (1.0, 1.0) and items[2].length == 2 and items[3].text == "Decimal('1')"


# ---------------------------------------------------------------------------- tensors: fields


def test_a_tensor_keeps_everything_that_places_it_in_memory():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    view = base[1:, ::2].t()
    shot = snapshot(view, axes=("column", "row"))
    assert shot == model.Tensor(
        type="torch.Tensor",
        dtype="float32",
        shape=(3, 3),
        strides=(2, 6),
        offset=6,
        bytes=36,
        storage=1,
        storage_bytes=96,
        contiguous=False,
        axes=("column", "row"),
        stats=model.Stats(6.0, 22.0, 14.0, shortest([np.float32(view.std(correction=0)).item()])[0]),
        values=(6.0, 12.0, 18.0, 8.0, 14.0, 20.0, 10.0, 16.0, 22.0),
        memory=tuple(float(i) for i in range(24)),
    )


def test_axes_of_another_rank_are_left_out():
    assert check(torch.ones(2)).axes is None
    assert snapshot(torch.ones(2), axes=("a", "b")).axes is None
    assert snapshot([torch.ones(2)], axes=("a",)).items[0].axes is None


def test_a_parameter_requires_grad_and_says_what_it_is():
    shot = check(torch.nn.Linear(2, 1).weight)
    assert shot.requires_grad and shot.type == "torch.nn.parameter.Parameter" and len(shot.values) == 2


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 12])
def test_odd_shapes_are_kept(shape):
    shot = check(torch.ones(shape))
    assert shot.shape == shape and shot.values == (1.0,) * math.prod(shape)
    assert (shot.stats is None) == (0 in shape)


@pytest.mark.parametrize(
    "shape, corner",
    [
        ((64,), None),
        ((65,), (8,)),
        ((8, 8), None),
        ((9, 9), (6, 8)),
        ((3, 100), (3, 8)),
        ((100, 3), (6, 3)),
        ((5, 9, 9), (2, 6, 8)),
        ((5, 5, 9, 9), (1, 2, 6, 8)),
        ((5, 5, 5, 2, 3), (2, 2, 2, 2, 3)),
        ((3,) * 9, (1, 1, 1, 1, 2, 2, 2, 3, 3)),
    ],
)
def test_a_large_tensor_keeps_a_corner_of_at_most_96_values(shape, corner):
    tensor = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    shot = check(tensor, most=4096)
    reach = corner or shape
    assert shot.corner == corner
    assert shot.values == tuple(tensor[tuple(slice(n) for n in reach)].flatten().tolist())
    assert len(shot.values) <= 96 and shot.memory is None


def test_a_meta_tensor_has_metadata_and_no_values():
    shot = check(torch.empty(12288, 49152, device="meta"))
    assert (shot.device, shot.bytes, shot.storage_bytes) == ("meta", 2304 * 2**20, 2304 * 2**20)
    assert shot.values == () and shot.stats is None and shot.corner is None and shot.memory is None


def test_a_sparse_tensor_counts_the_bytes_of_its_parts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that its CSR format is in beta
        made = [torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()]
    assert [check(tensor).bytes for tensor in made] == [60, 68, 68]
    for tensor in made:
        shot = check(tensor)
        assert (shot.shape, shot.strides, shot.storage, shot.values) == ((3, 3), None, None, ())


@pytest.mark.filterwarnings("ignore")
def test_quantized_nested_and_packed_tensors_fall_back_field_by_field():
    quantized = check(torch.quantize_per_tensor(torch.rand(4), 0.1, 0, torch.quint8))
    assert (quantized.dtype, quantized.shape, quantized.bytes, quantized.values) == ("quint8", (4,), 4, ())
    ragged = [torch.rand(2, 2), torch.rand(3, 2)]
    for layout in (torch.strided, torch.jagged):
        assert check(torch.nested.nested_tensor(ragged, layout=layout)).why == "it has no fixed shape"
    assert check(torch.rand(3).to_mkldnn()).shape == (3,)
    for dtype in (torch.float4_e2m1fn_x2, torch.bits8):
        assert check(torch.empty(4, dtype=dtype)).shape == (4,)


# ---------------------------------------------------------------------------- tensors: values


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_floats_read_back_to_what_they_were(dtype):
    tensor = (torch.randn(40) * torch.logspace(-3, 2, 40)).to(dtype)
    shot = check(tensor)
    assert torch.equal(torch.tensor(shot.values, dtype=torch.float32), tensor.float())
    assert all(len(repr(v)) <= 15 for v in shot.values)


def test_a_tenth_is_a_tenth():
    assert check(torch.tensor([0.1, 0.2, -0.3])).values == (0.1, 0.2, -0.3)
    assert check(torch.tensor([0.1], dtype=torch.float64)).values == (0.1,)
    assert check(torch.tensor([1 / 3], dtype=torch.float64)).values == (1 / 3,)
    assert check(np.array([0.1], np.float32)).values == (0.1,)


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_shortest_agrees_with_numpy(values):
    expected = [float(str(np.float32(v))) for v in values]
    for mine, theirs, value in zip(shortest(values), expected, values, strict=True):
        assert np.float32(mine) == np.float32(value) or value != value
        assert len(repr(mine)) <= len(repr(theirs)) or value != value


def test_every_power_of_two_reads_back():
    values = [2.0**e for e in range(-149, 128)]
    assert all(np.float32(a) == b for a, b in zip(shortest(values), values, strict=True))
    assert shortest([2.0**-149]) == [1e-45]


@pytest.mark.parametrize("n", [4, 3000])
def test_nan_and_infinities_are_text_and_left_out_of_statistics(n):
    tensor = torch.ones(n)
    tensor[:3] = torch.tensor([NAN, INF, -INF])
    shot = check(tensor)
    assert shot.values[:4] == ("nan", "inf", "-inf", 1.0)
    assert shot.stats == model.Stats(1.0, 1.0, 1.0, 0.0, nan=1, inf=2)
    assert check(torch.full((n,), NAN)).stats == model.Stats(nan=n)


def test_integers_bools_and_complex_numbers_are_themselves():
    assert check(torch.tensor([2**63 - 1, -5])).values == (str(2**63 - 1), -5)
    assert check(torch.tensor([True, False])).values == (True, False)
    assert check(torch.tensor([0.1 + 2j], dtype=torch.complex64)).values == ("(0.1+2j)",)
    assert check(torch.tensor([1, 2], dtype=torch.uint64)).values == (1, 2)


def test_conjugated_and_negated_views_show_what_they_mean():
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert check(z.conj()).values == ("(1-2j)", "(3+4j)")
    assert check(z.conj().imag).values == (-2.0, 4.0)
    many = torch.full((1000,), 1 + 2j).conj().imag
    assert check(many).stats == model.Stats(-2.0, -2.0, -2.0, 0.0)
    assert check(torch._neg_view(torch.ones(70).half())).stats == model.Stats(-1.0, -1.0, -1.0, 0.0)


def test_all_complex_values_still_fit_into_four_kilobytes():
    check(torch.randn(100, 100, dtype=torch.complex128), most=4096)
    check(torch.randn(100, 100, dtype=torch.float64) * 1e-300, most=4096)


def test_a_small_storage_is_shown_whole_also_from_a_view_of_it():
    base = torch.arange(6)
    assert check(base[1::2]).memory == (0, 1, 2, 3, 4, 5)
    assert check(torch.arange(33)).memory is None


def test_values_of_many_tensors_share_one_budget():
    shot = check([torch.randn(8, 8) for _ in range(20)])
    assert sum(len(item.values) for item in shot.items) <= 192
    assert all(item.shape == (8, 8) for item in shot.items) and shot.items[0].values


# ---------------------------------------------------------------------------- statistics


def rough(a: Any, b: float, digits: float = 1e-6) -> bool:
    return bool(math.isclose(a, b, rel_tol=digits, abs_tol=digits))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e5m2]
)
@pytest.mark.parametrize("n", [5, 1000, 2**20 + 77])
def test_statistics_of_floats_agree_with_a_float64_reference(dtype, n):
    tensor = (torch.randn(n) * 3 + 10).to(dtype)
    wide, stats = tensor.double(), check(tensor).stats
    assert rough(stats.min, wide.min().item()) and rough(stats.max, wide.max().item())
    assert rough(stats.mean, wide.mean().item()) and rough(stats.std, wide.std(correction=0).item(), 1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_statistics_of_integers_are_exact(dtype):
    info = torch.iinfo(getattr(torch, dtype))
    values = np.tile(np.array([info.min, info.max, info.max - 1, 1], dtype=dtype), 500)
    expected = statistics.mean(int(v) for v in values)
    for it in (torch.from_numpy(values), values):
        stats = check(it).stats
        assert (int(stats.min), int(stats.max)) == (info.min, info.max)
        assert stats.mean == float(expected)
        assert rough(stats.std / np.std(values.astype(float)), 1)


def test_a_mask_has_a_mean_and_no_spread():
    assert check(torch.tensor([True, False, True, True])).stats == model.Stats(False, True, 0.75)
    assert check(torch.arange(1000) < 250).stats == model.Stats(False, True, 0.25)
    assert check(np.arange(1000) < 250).stats == model.Stats(False, True, 0.25)


def test_statistics_survive_large_offsets_and_overflowing_squares():
    shifted = torch.arange(100_000, dtype=torch.float64) + 1e12
    assert rough(check(shifted).stats.std, shifted.std(correction=0).item(), 1e-9)
    huge = torch.tensor([3e38, -3e38] * 500)
    assert check(huge).stats == model.Stats(-3e38, 3e38, 0.0, 3e38)
    assert check(torch.tensor([1e308, -1e308] * 500, dtype=torch.float64)).stats.std is None
    few = torch.tensor([1e308, -1e308], dtype=torch.float64)
    assert check(few).stats == model.Stats(-1e308, 1e308, 0.0, None)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[3:, 5],
        lambda x: x.flip(0)[::3],
        lambda x: x.reshape(30, 10, 20, 20).permute(3, 1, 0, 2),
        lambda x: x[:, None, :].expand(300, 50, 400),
        lambda x: x[::299, ::399],
    ],
)
def test_statistics_of_any_view_are_those_of_its_elements(view, monkeypatch):
    monkeypatch.setattr("litbook.snapshot.tensors.BLOCK", 1000)  # many blocks, also of small tensors
    x = torch.randn(300, 400, dtype=torch.float64)
    for it, wide in ((view(x), view(x)), (view(x).numpy(), view(x))):
        stats = check(it).stats
        assert (stats.min, stats.max) == (wide.min().item(), wide.max().item())
        assert rough(stats.mean, wide.mean().item(), 1e-12) and rough(
            stats.std, wide.std(correction=0).item(), 1e-9
        )


def test_a_repeated_element_counts_as_often_as_it_is_seen():
    giant = torch.tensor([NAN, 1.0, 3.0])[:, None].expand(3, 10**12)
    start = time.perf_counter()
    assert check(giant).stats == model.Stats(1.0, 3.0, 2.0, 1.0, nan=10**12)
    assert (
        check(np.broadcast_to(np.array([NAN, 1.0, 3.0], np.float32)[:, None], (3, 10**12))).stats.nan
        == 10**12
    )
    assert time.perf_counter() - start < 20  # hours where each is read


def test_windows_that_overlap_are_not_read():
    giant = torch.as_strided(torch.zeros(2000), (1000, 1000), (1, 1))
    assert check(giant).stats is None and len(check(giant).values) == 48


def test_tensors_inside_a_container_are_read_only_within_a_budget(monkeypatch):
    assert NESTED_READ == 2**26
    part = torch.ones(2**18, dtype=torch.int8)
    monkeypatch.setattr("litbook.snapshot.tensors.NESTED_READ", 8 * part.numel())
    known = [item.stats is not None for item in check([part] * 12).items]
    assert known == [True] * 8 + [False] * 4


@pytest.mark.slow
def test_a_quarter_of_a_gibibyte_is_read_about_once_in_little_memory():
    big, threads = torch.randn(2**26), torch.get_num_threads()
    check(big, most=4096)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    torch.set_num_threads(1)  # then one thread's own time counts, whatever else the machine does
    try:
        reading = seconds(lambda: big.sum(), clock=time.thread_time)
        taking = seconds(lambda: snapshot(big), clock=time.thread_time)
    finally:
        torch.set_num_threads(threads)
    # It is 3 times on one core, and up to 9 where others fill the memory's lanes; benchmarks/ hold the goal.
    assert taking < 15 * reading + 0.1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


# ---------------------------------------------------------------------------- other devices

VIEWS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x,
    lambda x: x.t(),
    lambda x: x[:, ::2],
    lambda x: x[5],
    lambda x: x[:, None].expand(300, 2, 400),
]


@pytest.mark.parametrize("view", VIEWS)
def test_a_device_is_read_in_contiguous_runs_only(view, monkeypatch):
    x = view(torch.randn(300, 400))
    expected = check(x)
    known: Any = libraries.torch()
    monkeypatch.setattr(
        known, "device", lambda _: torch.device("cuda", 0)
    )  # so that main memory counts as far away
    monkeypatch.setattr("litbook.snapshot.tensors.BLOCK", 5000)
    copied: list[bool] = []
    copy = _TorchReader._copy_to_host

    def counted(self: Any, run: torch.Tensor) -> Any:
        copied.append(run.is_contiguous())
        return copy(self, run)

    monkeypatch.setattr(_TorchReader, "_copy_to_host", counted)
    shot = check(x)
    assert (shot.device, shot.values) == ("cuda:0", expected.values)
    assert rough(shot.stats.std, expected.stats.std) and rough(shot.stats.mean, expected.stats.mean)
    assert len(copied) > 1 and all(copied)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("view", VIEWS)
def test_a_look_at_a_cuda_tensor_allocates_nothing_there(view):
    x = view(torch.randn(300, 400, device="cuda"))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    shot = check(x)
    assert torch.cuda.max_memory_allocated() == before == torch.cuda.memory_allocated()
    assert shot.values == check(x.cpu()).values and rough(shot.stats.mean, x.mean().item())


# ---------------------------------------------------------------------------- storages


def test_views_share_a_number_and_other_tensors_do_not():
    storages = Storages()
    a, b = torch.ones(4), torch.ones(4)
    numbers = [
        snapshot(t, storages).storage for t in (a, b, a.view(2, 2), a[1:], a.detach(), b.t(), a.clone())
    ]
    assert numbers == [1, 2, 1, 1, 1, 2, 3]


def test_an_address_that_is_used_again_has_a_new_number():
    storages, seen, addresses = Storages(), [], []
    for _ in range(300):
        tensor = torch.ones(1000)
        addresses.append(tensor.data_ptr())
        seen.append(storages.number(tensor.untyped_storage()))
    assert len(set(addresses)) < 300, "the allocator never used an address again: this test shows nothing"
    assert seen == list(range(1, 301))
    assert len(storages._numbers) <= 130  # the dead are forgotten


def test_a_storage_keeps_its_number_when_it_moves():
    storages, tensor = Storages(), torch.ones(4)
    number = storages.number(tensor.untyped_storage())
    tensor.resize_(10**6)
    assert storages.number(tensor.untyped_storage()) == number


def test_a_number_does_not_keep_a_storage_alive():
    import weakref

    storages, tensor = Storages(), torch.ones(4)
    gone = weakref.ref(tensor.untyped_storage())
    storages.number(tensor.untyped_storage())
    del tensor
    assert gone() is None


def test_memory_that_numpy_and_torch_share_has_one_number():
    storages = Storages()
    array = np.zeros(10)
    tensor = torch.ones(5)
    pairs = [
        (array, torch.from_numpy(array)),
        (array[2:], torch.from_numpy(array[3:])),
        (tensor, tensor.numpy()),
    ]
    for one, other in pairs:
        assert snapshot(one, storages).storage == snapshot(other, storages).storage
    assert storages.number(array) != storages.number(tensor.untyped_storage())
    assert storages.number(torch.ones(10).untyped_storage()) not in (storages.number(array),)


def test_what_is_no_storage_is_refused():
    with pytest.raises(TypeError, match="int is no storage"):
        Storages().number(5)


# ---------------------------------------------------------------------------- nothing notices


class Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class WatchFunctions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Printing:
    """Its repr computes with tensors."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"Printing({(self.tensor @ self.tensor).sum()})"


def samples() -> list[Any]:
    x = torch.randn(50, 50)
    y = torch.randn(50, 50, requires_grad=True)
    return [
        x, y, y * 2, x.t(), x[::2, ::3], x.bfloat16(), x.long(), x > 0, x[0, 0], torch.full((90,), NAN), x.half()[:3],
        {"k": [x, y]}, torch.nn.Linear(3, 3), Printing(x), x.numpy(), torch.arange(70).to(torch.uint16),
    ]  # fmt: skip


def test_torch_modes_see_none_of_it():
    values = samples()
    expected = [as_json(snapshot(v)) for v in values]
    with Watch() as dispatch, WatchFunctions() as functions, FlopCounterMode(display=False) as flops:
        seen = [as_json(snapshot(v)) for v in values]
    assert dispatch.seen == [] and functions.seen == [] and flops.get_total_flops() == 0
    assert seen == expected


def test_the_modes_work_on_afterwards():
    with Watch() as dispatch, WatchFunctions() as functions:
        snapshot(samples())
        torch.ones(2) + 1
    assert len(dispatch.seen) >= 2 and len(functions.seen) >= 2


@pytest.mark.parametrize(
    "within",
    [
        torch.inference_mode,
        torch.no_grad,
        torch.enable_grad,
        lambda: torch.device("meta"),
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: torch.autograd.graph.saved_tensors_hooks(raising, raising),
        FakeTensorMode,
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=True),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_the_same_is_seen_within_any_context(within):
    values = samples()
    expected = [as_json(snapshot(v)) for v in values]
    with within():
        assert [as_json(snapshot(v)) for v in values] == expected


@pytest.mark.parametrize("fill", [True, False])
def test_the_same_is_seen_under_deterministic_algorithms_and_other_defaults(fill):
    values = samples()
    expected = [as_json(snapshot(v)) for v in values]
    torch.use_deterministic_algorithms(True)
    torch.set_default_dtype(torch.float64 if fill else torch.bfloat16)
    torch.set_default_device("meta")
    try:
        assert [as_json(snapshot(v)) for v in values] == expected
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def test_gradients_versions_and_random_numbers_are_as_without():
    def work(look: bool) -> Any:
        torch.manual_seed(0)
        x = torch.randn(40, 40, requires_grad=True)
        y = (x @ x).relu()
        if look:
            snapshot([x, y, x.grad, Printing(x)])
            snapshot(x)
            snapshot(y)
        loss = y.sum()
        loss.backward()
        return x._version, y._version, type(y.grad_fn), x.grad, torch.rand(3), torch.is_grad_enabled()

    for one, other in zip(work(True), work(False), strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_an_in_place_change_after_a_look_is_still_allowed():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    snapshot(y)
    y.add_(1)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]


def test_the_profiler_lists_none_of_it():
    x = torch.randn(100, 100)
    with torch.profiler.profile() as profile:
        snapshot(x)
        x.neg()
    names = {event.key for event in profile.key_averages()}
    assert "aten::neg" in names and not names & {
        "aten::as_strided",
        "aten::aminmax",
        "aten::sum",
        "aten::mean",
    }


@pytest.mark.filterwarnings("ignore")
def test_a_trace_of_a_function_holds_none_of_it():
    def function(x: torch.Tensor) -> torch.Tensor:
        snapshot(x)
        return x + 1

    graph = str(torch.jit.trace(function, torch.ones(100)).graph)
    assert "aten::add" in graph and "as_strided" not in graph and "aten::size" not in graph


def test_inside_function_transforms_values_show_where_there_are_any():
    shots: list[Any] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        shots.append(check(x))
        return (x * x).sum()

    x = torch.tensor([1.0, 2.0])
    assert torch.func.grad(function)(x).tolist() == [2.0, 4.0]
    assert torch.vmap(function)(x[:, None]).tolist() == [1.0, 4.0]
    torch.func.functionalize(function)(x)
    torch.func.grad(torch.func.grad(function))(torch.tensor(3.0))
    assert shots[0].values == (1.0, 2.0) and shots[0].storage == 1
    assert (shots[1].shape, shots[1].values) == ((1,), ())
    assert shots[3].values == (3.0,)


def test_a_fake_tensor_has_a_shape_and_no_values():
    with FakeTensorMode():
        fake = torch.randn(3, 4)
        assert check(fake).shape == (3, 4)
    shot = check(fake)
    assert (shot.shape, shot.bytes, shot.values, shot.stats) == ((3, 4), 48, (), None)


def test_a_symbolic_shape_is_not_guarded_on():
    from torch.fx.experimental.proxy_tensor import make_fx

    shots = []

    def function(x: torch.Tensor) -> torch.Tensor:
        shots.append(check(x))
        return x + 1

    graph: Any = make_fx(function, tracing_mode="symbolic")(torch.randn(5, 7))
    assert shots[0].why == "it has no fixed shape"
    assert graph.shape_env.guards == [] and "as_strided" not in graph.code


# ---------------------------------------------------------------------------- hostile tensors


TENSOR: Any = torch.Tensor  # these classes break its contract on purpose


class Refusing(TENSOR):  # type: ignore[misc]
    """Every hook of Python's raises."""

    @classmethod
    def __torch_function__(cls, func, kinds, args=(), kwargs=None):
        raise ValueError("torch function")

    shape = property(raising)
    dtype = property(raising)
    __repr__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __getattribute__ = raising
    tolist = stride = untyped_storage = numel = raising


class Dispatching(Refusing):
    @classmethod
    def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
        raise ValueError("torch dispatch")


class Stuck(TENSOR):  # type: ignore[misc]
    """Asks its own dispatch for its size, which never answers."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (3,), dispatch_sizes_strides_policy="sizes")

    @classmethod
    def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
        forever()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.ma.array([1, 2], mask=[False, True]), "[1, --]"),
        (np.ma.masked_invalid([[1.0, math.nan], [3.0, 4.0]]), "[[1.0, --], [3.0, 4.0]]"),
        (np.ma.array([1, 2]).view(type("Ours", (np.ma.MaskedArray,), {})), "[1, 2]"),
        (np.ma.masked, "masked"),
    ],
)
def test_elements_that_are_masked_are_no_values(array: Any, text: str) -> None:
    shot = check(array)
    assert text in shot.text
    assert "\n" not in shot.text
    assert isinstance(check([array]).items[0], model.Opaque)


def test_what_lies_below_a_mask_is_an_array() -> None:
    assert check(np.ma.array([1, 2], mask=[False, True]).data).values == (1, 2)
    assert check(np.ma.array([1, 2], mask=[False, True]).mean()).number == 1


@pytest.mark.parametrize("kind", [Refusing, Dispatching])
def test_a_hostile_subclass_is_read_through_its_base(kind):
    shot = check(torch.Tensor._make_subclass(kind, torch.tensor([1.0, 2.0])))
    assert (shot.shape, shot.dtype, shot.values) == ((2,), "float32", (1.0, 2.0))
    assert shot.type.endswith(kind.__name__)


def test_a_wrapper_without_memory_has_metadata_only():
    wrapper = torch.Tensor._make_wrapper_subclass(Dispatching, (3, 4), dtype=torch.float16)
    shot = check(wrapper)
    assert (shot.shape, shot.dtype, shot.bytes, shot.values, shot.storage) == (
        (3, 4),
        "float16",
        24,
        (),
        None,
    )


def test_a_tensor_whose_dispatch_never_answers_is_given_up():
    shot = check([Stuck(), 1])
    assert shot.items[0].why == "its dispatch took too long" and shot.items[1].text == "1"


def test_a_tensor_that_points_outside_its_storage_is_not_read():
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(8)
    shot = check(tensor)
    assert (shot.shape, shot.storage_bytes, shot.values, shot.stats) == ((1000,), 8, (), None)
    tensor.untyped_storage().resize_(0)
    assert check(tensor).values == ()


# ---------------------------------------------------------------------------- numpy


def test_an_array_is_described_like_a_tensor():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    shot = snapshot(base[1:, ::2].T, axes=("a", "b"))
    twin = snapshot(torch.arange(24, dtype=torch.float32).reshape(4, 6)[1:, ::2].t(), axes=("a", "b"))
    assert replace(shot, type="") == replace(twin, type="")


@pytest.mark.parametrize(
    "array",
    [
        np.array([object(), 1], dtype=object),
        np.array(["a", "b"]),
        np.zeros(3, dtype=[("a", "i4"), ("b", "f8")])["b"],
        np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
        np.array("2026-01-01", dtype="datetime64[D]"),
        np.array([1, 2], dtype=">i2"),
        np.zeros((0, 3)),
        np.array(1, np.float32)[None],
        np.arange(9)[::-1],
        np.zeros(3, dtype=np.longdouble),
        np.zeros((2, 0), dtype="V0"),
    ],
)
def test_any_array_has_a_shape_and_a_dtype(array):
    shot = check(array)
    assert (shot.shape, shot.bytes) == (array.shape, array.nbytes) and shot.dtype


def test_a_hostile_array_is_read_through_its_base():
    members: dict[str, Any] = dict.fromkeys(
        ("__array_ufunc__", "__array_function__", "__getitem__", "__len__", "__repr__", "__eq__"), raising
    )
    members |= {"shape": property(raising), "dtype": property(raising)}
    kind: Any = type("Hostile", (np.ndarray,), members)
    shot = check(np.arange(3).view(kind))
    assert (shot.values, shot.shape, shot.stats.mean) == ((0, 1, 2), (3,), 1.0)
    assert check(np.arange(300).view(kind)).stats.max == 299


@pytest.mark.filterwarnings("error")
def test_reading_an_array_warns_of_nothing():
    read_only = np.full(1000, INF, dtype=np.float32)
    read_only.flags.writeable = False
    assert check(read_only).stats == model.Stats(inf=1000)
    assert check(np.array([3e38, -3e38] * 500, np.float32)).stats.std == 3e38


# ---------------------------------------------------------------------------- without torch, and speed


@pytest.mark.parametrize(
    "stub", ["", "import types, sys; sys.modules['torch'] = sys.modules['numpy'] = types.ModuleType('torch')"]
)
def test_neither_torch_nor_numpy_is_needed_or_imported(stub):
    program = (
        f"import sys; sys.path.insert(0, {TOOLS!r}); {stub}\n"
        "from litbook.snapshot.snapshot import snapshot\n"
        "before = set(sys.modules)\n"
        "class C:\n    def __repr__(self): return 'C()'\n"
        "print([snapshot(v).kind for v in (1, [1], {1: 2}, C(), ValueError('x'), print, object(), range(3))])\n"
        "assert before == set(sys.modules), set(sys.modules) - before\n"
        f"assert {bool(stub)} or not {{'torch', 'numpy'}} & before"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert (
        done.stdout.split()
        == "['scalar', 'sequence', 'mapping', 'opaque', 'opaque', 'opaque', 'opaque', 'sequence']".split()
    )


def test_small_values_are_quick():
    storages, tensor = Storages(), torch.randn(2, 3)
    scalar = seconds(lambda: [snapshot(7) for _ in range(1000)], clock=time.thread_time) / 1000
    small = seconds(lambda: [snapshot(tensor, storages) for _ in range(200)], clock=time.thread_time) / 200
    assert scalar < 15e-6 and small < 400e-6  # five times what they take on a busy laptop


def test_a_partial_that_nobody_asked_to_see_is_named_by_what_it_calls() -> None:
    def area(x: Any, y: Any) -> Any:
        return x * y

    seen = glimpse(functools.partial(area, Hostile()))
    assert isinstance(seen, model.Opaque) and seen.why == "" and seen.text.endswith("area(…)")
    assert seen.type == "functools.partial"
    other = glimpse(functools.partial(functools.partial, area))
    assert isinstance(other, model.Opaque) and other.why == ""


class Hostile:
    """What no `repr` may be asked of."""

    def __repr__(self) -> str:
        raise AssertionError("asked")
