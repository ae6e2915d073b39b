"""What a run leaves: steps, frames, values, loops, pieces, claims, axes, and their bounds."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.running import (
    HEAD,
    called,
    claims,
    line_of,
    messages,
    one,
    plain,
    record,
    section,
    shown,
    silent,
    steps,
    write,
)  # fmt: skip

from litbook.lecture.parse import parse
from litbook.probe.instrument import instrument_files
from litbook.probe.recorder import Recorder
from litbook.record import encoding, model
from litbook.record.limits import CALLS, FIRST, GLIMPSES, LAST, OUTPUT, SPARK, STEPS


def turns(made: model.Record, text: str) -> list[int]:
    return [value.turn for value in one(made).values if value.text == text]


# ------------------------------------------------------------------------ steps, frames, values


def test_steps_follow_the_execution(tmp_path: Path) -> None:
    text = section("a = 1\nif a:\n    b = 2\nelse:\n    b = 3\nc = 4")
    made = record(tmp_path, text)
    body = [line_of(text, part) for part in ("a = 1", "if a", "b = 2", "c = 4")]
    assert steps(made)[-4:] == body
    assert silent(made) == [line_of(text, "b = 3")]


def test_frames_know_their_caller_and_the_line_it_called_from(tmp_path: Path) -> None:
    text = section(
        "x = outer(2)",
        "def outer(x):\n    return inner(x) + 1\ndef inner(x):\n    return [g(i) for i in range(x)][-1]\ndef g(i):\n    return i\n",
    )
    made = record(tmp_path, text)
    assert called(made) == ["<module>", "main", "one", "outer", "inner", "g", "g"]
    assert one(made).calls == ("outer", "inner", "g")
    assert [frame.called for frame in one(made).frames] == [0, 1, 2, 3, 3]
    assert [frame.parent for frame in one(made).frames] == [None, 0, 1, 2, 2]
    above: list[model.Section | model.Definition] = [
        one(made),
        *(made.definition_of[key] for key in ("outer", "inner", "inner")),
    ]
    found = [it.first + frame.line for it, frame in zip(above, one(made).frames[1:], strict=True)]
    assert found == [line_of(text, part) for part in ("outer(2)", "inner(x) + 1", "g(i) for", "g(i) for")]


def test_a_method_called_through_a_library_has_the_lectures_frame_as_parent(tmp_path: Path) -> None:
    text = section("x = sorted([3, 1], key=key)", "def key(x):\n    return x\n")
    made = record(tmp_path, text)
    assert called(made)[-3:] == ["one", "key", "key"]
    assert {one(made).first + f.line for f in one(made).frames[-2:]} == {line_of(text, "sorted")}


def test_code_that_is_left_alone_is_not_taken_for_a_call_that_was_there_before(tmp_path: Path) -> None:
    """What a compiler will read is not touched, so its frames do not enter; their addresses are used ones."""
    text = section(
        "for _ in range(3):\n    small(zero)\n    Layer().forward(inner)",
        "def small(call):\n    return call()\n\n\ndef zero():\n    return 0\n\n\n"
        "def inner():\n    note('from inside')\n    return 2\n\n\n"
        "class Layer:\n    def forward(self, call):\n        return call()\n\n\n"
        "def never():\n    import torch\n    torch.compile(Layer())",
    )
    made = record(tmp_path, text)
    found = one(made)
    inner = [frame for i, frame in enumerate(found.frames) if made.callee(found, i).name == "inner"]
    assert [made.callee(found, frame.parent).name for frame in inner if frame.parent is not None] == [
        "one"
    ] * 3
    assert {made.callee(found, piece.frame).name for piece in found.pieces} == {"one"}


def test_values_belong_to_the_step_that_made_them(tmp_path: Path) -> None:
    made = record(tmp_path, section("a = 1  # @inspect a\nb = a + 1  # @inspect a, b as B"))
    assert [(v.text, v.unit) for v in one(made).values] == [("a", None), ("a", None), ("b", "B")]
    for value in one(made).values:
        frame, statement = one(made).steps[value.step]
        assert (frame, one(made).statements[statement].first) == (value.frame, value.line)


def test_a_value_is_what_it_was_then(tmp_path: Path) -> None:
    made = record(tmp_path, section("x = [1]  # @inspect x\nx.append(2)  # @inspect x"))
    assert [value.length for value in shown(made, "x")] == [1, 2]


def test_measured_values_are_marked_and_cleared_ones_too(tmp_path: Path) -> None:
    made = record(tmp_path, section("t = 0.5  # @measure t as s\nu = 1  # @inspect u\nu = 2  # @clear u"))
    assert [(v.text, v.kind, v.unit, v.value is None) for v in one(made).values] == [
        ("t", "measure", "s", False), ("u", "inspect", None, False), ("u", "clear", None, True),
    ]  # fmt: skip


def test_hidden_lines_run_and_are_marked(tmp_path: Path) -> None:
    made = record(tmp_path, section("a = 1  # @hide\nassert a == 1"))
    assert claims(made) == {"a == 1": "holds"}
    assert [s.kind for s in one(made).statements if s.kind == "hidden"] == ["hidden"]


def test_an_inspected_expression_that_raises_is_told_once(tmp_path: Path) -> None:
    made = record(tmp_path, section("for i in range(100):\n    i  # @inspect i, 1 / (i - i)"))
    (error,) = one(made).errors
    assert (error.kind, error.message) == (
        "inspect",
        "@inspect 1 / (i - i) raised ZeroDivisionError: division by zero",
    )
    assert shown(made, "i")[:3] == [0, 1, 2]


CHANGING = {  # an inspected expression that would change the lecture, and what it is told
    "it = iter([1, 2, 3])  # @inspect list(it)\nassert list(it) == [1, 2, 3]": "uses up an iterator",
    "it = iter([1, 2, 3])  # @inspect next(it)\nassert list(it) == [1, 2, 3]": "uses up an iterator",
    "it = (i for i in range(3))  # @inspect [i + 1 for i in it]\nassert sum(it) == 3": "uses up an iterator",
    "it = zip([1, 2], [3, 4])  # @inspect (1, 3) in it\nassert len([*it]) == 2": "uses up an iterator",
    "it = map(abs, [1, 2])  # @inspect [*it, 0]\nassert sum(it) == 3": "uses up an iterator",
    "it = iter('ab')  # @inspect it.__next__()\nassert next(it) == 'a'": "uses up an iterator",
    "file = open(__file__)  # @inspect file.read(1)\nassert file.tell() == 0\nfile.close()": "uses up an iterator",
    "box = [iter('ab')]  # @inspect list(box[0])\nassert next(box[0]) == 'a'": "uses up an iterator",
    "stack = [1, 2]  # @inspect stack.pop()\nassert stack == [1, 2]": "changes a list",
    "box = {'a': [2, 1]}  # @inspect box['a'].sort()\nassert box['a'] == [2, 1]": "changes a list",
    "seen = Counter('aab')  # @inspect seen.popitem()\nassert len(seen) == 2": "changes a Counter",
    "seen = {1}  # @inspect [seen.discard(i) for i in (1, 2)]\nassert seen == {1}": "changes a set",
    "rng = random.Random(1)  # @inspect rng.random()\nassert rng.random() < 0.2": "draws from a random generator",
    "rng = random.Random(1)  # @inspect (lambda: rng.choice([1, 2]))()\nassert rng.random() < 0.2": "draws from",
    "import torch\nx = torch.zeros(2)  # @inspect x.view(-1).add_(1)\nassert x.sum() == 0": "changes a tensor in place",
    "import torch\nx = torch.zeros(2)  # @inspect torch.nn.init.ones_(x)\nassert x.sum() == 0": "changes a tensor",
    "import torch\ng = torch.Generator()  # @inspect torch.rand(1, generator=g)\nassert g.initial_seed() > 1": "draws from",
    "rng = np.random.default_rng(0)  # @inspect rng.normal()\nassert rng.random() > 0.6": "draws from",
}


@pytest.mark.parametrize(("body", "why"), CHANGING.items())
def test_an_inspected_expression_does_not_change_the_lecture(tmp_path: Path, body: str, why: str) -> None:
    """It is refused where it stands, and the lecture behaves as in plain Python."""
    made = record(
        tmp_path, section(body, "import random\nimport numpy as np\nfrom collections import Counter")
    )
    (error,) = one(made).errors
    assert error.kind == "inspect"
    assert why in error.message
    assert "must not change the lecture" in error.message
    assert "on a line of its own: shown = " in error.message
    assert [*claims(made).values()] == ["holds"]


HARMLESS = [  # honest expressions that nearly look alike, with their values
    ("stack = [3, 1]  # @inspect sorted(stack).pop()", 3),
    ("stack = [3, 1]  # @inspect stack.index(1)", 1),
    ("sizes = {'a': 2}  # @inspect next(iter(sizes))", "'a'"),
    ("it = iter([1])  # @inspect isinstance(it, list)", False),
    ("it = iter([1])  # @inspect it.__length_hint__()", 1),
    ("it = (i for i in range(3))  # @inspect it.gi_frame is None", False),
    ("rng = random.Random(1)  # @inspect len(rng.getstate())", 3),
    ("x = np.array([2, 1])  # @inspect np.sort(x).item(0)", 1),
    ("x = np.array([2, 1])  # @inspect np.append(x, 3).sum().item()", 6),
]


@pytest.mark.parametrize(("body", "value"), HARMLESS)
def test_an_inspected_expression_that_changes_nothing_is_shown(
    tmp_path: Path, body: str, value: object
) -> None:
    made = record(tmp_path, section(body, "import random\nimport numpy as np"))
    assert one(made).errors == ()
    assert shown(made, body.partition("@inspect ")[2]) == [value]


@pytest.mark.parametrize(
    ("draw", "imported"),
    [
        ("random.random()", "import random"),
        ("np.random.rand()", "import random\nimport numpy as np"),
        ("torch.rand(1).item()", "import torch"),
        ("chance()", "import random\ndef chance(): return random.random()"),
        ("max(random.random() for i in range(3))", "import random"),
    ],
)
def test_an_inspected_expression_draws_no_random_number_of_the_lectures(
    tmp_path: Path, draw: str, imported: str
) -> None:
    """What is drawn while looking is drawn again by the lecture, as if nobody had looked."""
    drawn = f"one = {draw}  # @inspect one"
    plain, looked = (
        record(tmp_path, section(f"x = 1{look}\n{drawn}", imported)) for look in ("", f"  # @inspect {draw}")
    )
    assert shown(plain, "one") == shown(looked, "one") == shown(looked, draw)


# ------------------------------------------------------------------------ arguments


def arguments(made: model.Record, function: str) -> list[dict[str, Any]]:
    """The arguments of every kept call of `function`: numbers and texts as they are, else the snapshot."""

    return [
        {name: plain(one(made).snapshots[index]) for name, index in frame.arguments}
        for i, frame in enumerate(one(made).frames)
        if made.callee(one(made), i).name == function
    ]


def test_a_call_keeps_its_arguments_under_the_names_of_the_signature(tmp_path: Path) -> None:
    helper = """
        def f(a, /, b, c=3, *rest, d, e="é", **more):
            b = 99
            inner = lambda: (a, d)
            return inner()
    """
    made = record(tmp_path, section("f(1, 2, d=[4])\nf(1, b=2, d=None, z=5)\nf(*range(5), d=True)", helper))
    first, second, third = arguments(made, "f")
    assert list(first) == ["a", "b", "c", "*rest", "d", "e", "**more"]
    assert (first["a"], first["b"], first["c"], first["e"]) == (1, 2, 3, "'é'")
    assert (first["*rest"].type, first["*rest"].length) == ("tuple", 0)
    assert (first["d"].type, first["d"].length) == ("list", 1)
    assert (second["d"], second["**more"].length) == ("None", 1)
    assert (third["c"], third["*rest"].length, third["d"]) == (2, 2, True)


def test_methods_generators_and_coroutines_keep_theirs_and_classes_and_sections_have_none(
    tmp_path: Path,
) -> None:
    helper = """
        import asyncio
        class Point:
            size = 2
            def __init__(self, __x): self.x = __x
            def __repr__(self): raise AssertionError("nobody asked")
        def count(n):
            for i in range(n):
                yield i
        async def later(n):
            return n
    """
    made = record(tmp_path, section("Point(7)\nlist(count(3))\nasyncio.run(later(5))", helper))
    assert messages(made) == []
    (init,) = arguments(made, "__init__")
    assert init["__x"] == 7
    assert (init["self"].type, init["self"].text) == ("lecture_sample.Point", "")
    assert init["self"].why == "repr is not asked for"
    assert arguments(made, "count") == [{"n": 3}] and arguments(made, "later") == [{"n": 5}]
    for section_of in made.sections:
        for i, frame in enumerate(section_of.frames):
            assert not frame.arguments or made.callee(section_of, i).kind == "helper"


def test_arguments_are_as_they_were_at_the_call_and_are_kept_alive_no_longer(tmp_path: Path) -> None:
    helper = """
        import weakref
        class Thing: pass
        def use(thing, numbers):
            gone = weakref.ref(thing)
            del thing
            numbers.append(1)
            return gone
    """
    made = record(
        tmp_path, section("numbers = []\ngone = use(Thing(), numbers)\nassert gone() is None", helper)
    )
    assert claims(made) == {"gone() is None": "holds"}
    assert arguments(made, "use")[0]["numbers"].length == 0


def test_a_tensor_that_nobody_inspects_is_not_read(tmp_path: Path) -> None:
    text = section(
        "f(torch.zeros(3), torch.zeros(9, 9), torch.nn.Linear(2, 2))",
        "import torch\ndef f(small, large, net): return 1",
    )
    (found,) = arguments(record(tmp_path, text), "f")
    assert (found["small"].values, found["small"].stats, found["small"].memory) == (
        (0.0,) * 3,
        None,
        (0.0,) * 3,
    )
    assert (found["large"].shape, found["large"].bytes) == ((9, 9), 324)
    assert (found["large"].values, found["large"].stats, found["large"].memory) == ((), None, None)
    assert found["net"].type.endswith("Linear")


def test_of_many_calls_only_the_first_are_looked_at_and_numbers_are_kept_always(tmp_path: Path) -> None:
    text = section("for i in range(1000):\n    f(i, [i])", "def f(i, items): return i")
    found = arguments(record(tmp_path, text), "f")
    assert [call["i"] for call in found] == [0, 1, 2, 998, 999]
    assert found[0]["items"].length == 1
    assert (found[-1]["items"].type, found[-1]["items"].why) == (
        "list",
        f"only the first {GLIMPSES} calls were looked at",
    )


def test_what_is_stepped_over_or_only_counted_has_no_arguments(tmp_path: Path) -> None:
    text = section("f(1)  # @stepover\n[f(k) for k in range(100)]", "def f(i): return i")
    assert [call["i"] for call in arguments(record(tmp_path, text), "f")] == list(range(CALLS))


# ------------------------------------------------------------------------ loops


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 6, 7, 100, 10**5])
@pytest.mark.parametrize("kind", ["for", "while"])
def test_of_a_loop_the_first_and_last_iterations_are_kept(tmp_path: Path, count: int, kind: str) -> None:
    loop = {
        "for": f"for i in range({count}):\n    j = 2 * i  # @inspect j",
        "while": f"i = -1\nwhile i < {count - 1}:\n    i += 1\n    j = 2 * i  # @inspect j",
    }[kind]
    made = record(tmp_path, section(loop))
    kept = sorted({*range(min(FIRST, count)), *range(max(0, count - LAST), count)})
    (found,) = one(made).loops
    assert (found.count, list(found.kept)) == (count, kept)
    assert turns(made, "j") == kept
    assert shown(made, "j") == [2 * i for i in kept]
    body = one(made).first + one(made).values[0].line if count else 0
    assert steps(made).count(body) == (len(kept) if count else 0)
    assert one(made).dropped == (
        0 if count <= FIRST + LAST else pytest.approx((count - FIRST - LAST) * 3, rel=0.4)
    )


def test_a_watched_number_leaves_a_thinned_series_that_spans_the_loop(tmp_path: Path) -> None:
    made = record(tmp_path, section("for i in range(1000):\n    j = i * i  # @inspect j"))
    (series,) = one(made).series
    assert series.text == "j"
    assert SPARK // 2 <= len(series.at) <= SPARK
    gaps = {b - a for a, b in zip(series.at, series.at[1:], strict=False)}
    assert len(gaps) == 1
    assert series.at[0] == 0 and series.at[-1] > 900
    assert list(series.values) == [i * i for i in series.at]


def test_a_series_of_losses_comes_from_tensors_of_one_element(tmp_path: Path) -> None:
    text = section("for i in range(10):\n    t = torch.tensor(float(i))  # @inspect t", "import torch")
    assert list(one(record(tmp_path, text)).series[0].values) == [float(i) for i in range(10)]


def test_nested_loops_are_folded_at_every_level(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        section("for i in range(50):\n    for j in range(40):\n        k = (i, j)  # @inspect i * 100 + j"),
    )
    kept_i, kept_j = [0, 1, 2, 48, 49], [0, 1, 2, 38, 39]
    assert shown(made, "i * 100 + j") == [i * 100 + j for i in kept_i for j in kept_j]
    assert sorted(loop.count for loop in one(made).loops) == [40] * 5 + [50]
    assert all(one(made).loops[v.loop].count == 40 for v in one(made).values if v.loop is not None)


def test_break_continue_and_else_of_a_loop_are_counted_as_they_ran(tmp_path: Path) -> None:
    text = section("""
        for i in range(100):
            if i % 2:
                continue
            if i == 20:
                break
            j = i  # @inspect j
        else:
            never = 1
        for k in range(4):
            pass
        else:
            after = 1  # @inspect after
        """)
    made = record(tmp_path, text)
    assert [loop.count for loop in one(made).loops] == [21, 4]
    # iterations 19 and 20 are kept, and neither reached the value
    assert shown(made, "j") == [0, 2]
    assert shown(made, "after") == [1]
    assert one(made).values[-1].loop is None
    assert line_of(text, "never") in silent(made)


def test_a_loop_in_a_helper_is_folded_in_each_call(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        section(
            "a = f(10)\nb = f(2)",
            "def f(n):\n    for i in range(n):\n        s = i  # @inspect s\n    return s\n",
        ),
    )
    assert shown(made, "s") == [0, 1, 2, 8, 9, 0, 1]
    assert [loop.count for loop in one(made).loops] == [10, 2]


def test_a_loop_around_helpers_keeps_the_frames_of_kept_iterations_only(tmp_path: Path) -> None:
    made = record(
        tmp_path, section("for i in range(1000):\n    x = f(i)  # @inspect x", "def f(i):\n    return i\n")
    )
    assert called(made).count("f") == FIRST + LAST
    assert shown(made, "x") == [0, 1, 2, 998, 999]


def test_interleaved_generators_keep_their_frames_apart(tmp_path: Path) -> None:
    text = section(
        "a, b = count(1), count(10)\nfor i in range(4):\n    x, y = next(a), next(b)  # @inspect x, y",
        "def count(start):\n    while True:\n        yield start  # @inspect start\n        start += 1\n",
    )
    made = record(tmp_path, text)
    assert (shown(made, "x"), shown(made, "y")) == ([1, 2, 3, 4], [10, 11, 12, 13])
    assert called(made).count("count") == 2
    by_frame: dict[int, list[Any]] = {}
    for value in one(made).values:
        if value.text == "start":
            by_frame.setdefault(value.frame, []).append(one(made).snapshots[value.value or 0].number)  # type: ignore[union-attr]
    assert sorted(by_frame.values()) == [[1, 2, 3], [10, 11, 12]]  # shown when the `yield` returns


def test_coroutines_are_recorded_where_they_were_awaited(tmp_path: Path) -> None:
    text = section(
        "x = asyncio.run(both())  # @inspect x",
        """
        import asyncio
        async def tick(n):
            for i in range(3):
                await asyncio.sleep(0)
                t = n + i  # @inspect t
            return t
        async def both():
            return sum(await asyncio.gather(tick(10), tick(20)))
        """,
    )
    made = record(tmp_path, text)
    assert messages(made) == []
    assert shown(made, "x") == [34]
    assert sorted(shown(made, "t")) == [10, 11, 12, 20, 21, 22]


# ------------------------------------------------------------------------ bounds


def events_of(tmp_path: Path, text: str) -> tuple[Recorder, int]:
    """The recorder after the lecture ran, and the most events that it ever held."""
    lecture = parse(text, "lecture_sample.py")
    recorder = Recorder(lecture)
    most = 0

    def watched(function: int, call: Any) -> None:
        with recorder.section_log(function):
            call()

    recorder.run_section = watched
    space: dict[str, Any] = {"__name__": "sample"}

    def look() -> None:
        nonlocal most
        most = max(most, len(recorder.log.events))

    space["look"] = look
    exec(instrument_files(lecture, recorder)[0], space)
    space["main"]()
    return recorder, most


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(10**5):\n    j = i  # @inspect j\n    look()",
        "i = 0\nwhile i < 10**5:\n    i += 1  # @inspect i, [i]\n    look()",
        "for i in range(300):\n    for j in range(300):\n        k = j  # @inspect k\n        look()",
        "for i in range(10**5):\n    f(i)\n    look()",
    ],
    ids=["for", "while", "nested", "helper"],
)
def test_memory_does_not_grow_with_iterations(tmp_path: Path, body: str) -> None:
    _, most = events_of(tmp_path, section(body, "def f(i):\n    x = i  # @inspect x\n    return x\n"))
    assert most < 400


def test_the_record_of_a_long_loop_is_small(tmp_path: Path) -> None:
    made = record(tmp_path, section("for i in range(10**5):\n    j = i / 3  # @inspect j"))
    assert len(encoding.dumps(made)) < 8_000


def test_steps_over_the_budget_are_counted_and_values_still_kept(tmp_path: Path) -> None:
    text = section(
        "n = walk(3000)\nx = 5  # @inspect x",
        "def walk(n):\n    stack = [n]\n    return sum(1 for _ in gen(n))\ndef gen(n):\n    while n:\n        n -= 1\n        m = n  # @inspect m\n        yield n\n",
    )
    made = record(tmp_path, text)
    assert len(one(made).steps) <= STEPS + 100
    assert one(made).dropped > 0
    assert shown(made, "x") == [5]
    assert len(shown(made, "m")) <= 2 * STEPS


def test_the_budget_is_one_for_each_section(tmp_path: Path) -> None:
    text = f"{HEAD}\ndef main():\n    one()\n    two()\ndef gen(n):\n    while n:\n        n -= 1\n        yield n\ndef one():\n    x = sum(gen(9000))\ndef two():\n    a = 1\n    b = 2\n"
    made = record(tmp_path, text)
    assert steps(made)[-2:] == [line_of(text, "a = 1"), line_of(text, "b = 2")]


def test_deep_recursion_is_recorded_and_too_deep_is_the_lectures_error(tmp_path: Path) -> None:
    made = record(
        tmp_path, section("x = down(200)  # @inspect x", "def down(n):\n    return n and down(n - 1)\n")
    )
    assert called(made).count("down") == 201
    assert one(made).frames[-1].parent == len(one(made).frames) - 2
    text = section("x = down(10**6)", "def down(n):\n    return n and down(n - 1)\n")
    made = record(tmp_path, text)
    assert "RecursionError" in messages(made)[0]
    assert len(one(made).errors[0].trace) == 20


def test_a_run_frees_what_it_watched(tmp_path: Path) -> None:
    body = "import gc, weakref\nx = Big()  # @inspect x\nr = weakref.ref(x)\ndel x\ngone = r() is None  # @inspect gone"
    made = record(tmp_path, section(body, "class Big:\n    pass\n"))
    assert shown(made, "gone") == [True]


@pytest.mark.slow
def test_memory_of_the_process_does_not_grow_with_iterations(tmp_path: Path) -> None:
    text = section("for i in range({}):\n    j = [i]  # @inspect j")
    peaks = []
    for count in (2_000, 20_000):
        tracemalloc.start()
        record(tmp_path, text.format(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 200_000


# ------------------------------------------------------------------------ threads, @stepover


def test_steps_of_other_threads_are_left_out(tmp_path: Path) -> None:
    text = section(
        """
        for _ in range(20):
            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        x = sum(done)  # @inspect x
        """,
        """
        import threading
        done = []
        def work(n):
            for i in range(30):
                inner(i)
                print("from a thread")
            done.append(n)
        def inner(i):
            for k in range(10):
                y = k  # @inspect y
        """,
    )
    made = record(tmp_path, text)
    assert messages(made) == []
    assert shown(made, "x") == [120]
    assert shown(made, "y") == []
    assert called(made) == ["<module>", "main", "one"]
    assert one(made).loops[0].count == 20
    assert {loop.count for loop in one(made).loops[1:]} == {4}


def test_a_loop_in_a_thread_is_not_taken_for_an_earlier_one_at_the_same_address(tmp_path: Path) -> None:
    text = section(
        "for _ in range(50):\n    spin(7)\n    thread = threading.Thread(target=spin, args=(5,))\n    thread.start()\n    thread.join()",
        "import threading\ndef spin(n):\n    for i in range(n):\n        x = i  # @inspect x\n",
    )
    made = record(tmp_path, text)
    assert [loop.count for loop in one(made).loops] == [50, 7, 7, 7, 7, 7]
    assert shown(made, "x") == [0, 1, 2, 5, 6] * 5


def test_nothing_is_recorded_inside_a_stepped_over_line(tmp_path: Path) -> None:
    text = section(
        "a = f(10)  # @stepover\nb = f(2)  # @inspect b",
        "def f(n):\n    for i in range(n):\n        s = i  # @inspect s\n    return s\n",
    )
    made = record(tmp_path, text)
    assert shown(made, "s") == [0, 1]
    assert called(made).count("f") == 1
    assert line_of(text, "a = f(10)") in steps(made)


def test_recording_goes_on_after_an_exception_in_a_stepped_over_line(tmp_path: Path) -> None:
    text = section(
        "try:\n    f()  # @stepover\nexcept ValueError:\n    a = 1  # @inspect a\nfor i in range(9):\n    b = g(i)  # @inspect b",
        "def f(*_):\n    raise ValueError\ndef g(x):\n    return x\n",
    )
    made = record(tmp_path, text)
    assert shown(made, "a") == [1]
    assert shown(made, "b") == [0, 1, 2, 7, 8]
    assert called(made).count("g") == 5


def test_a_section_called_on_a_stepped_over_line_leaves_recording_on(tmp_path: Path) -> None:
    text = f"{HEAD}\ndef main():\n    one()  # @stepover\n    two()\ndef one():\n    1 / 0\ndef two():\n    x = 1  # @inspect x\n"
    made = record(tmp_path, text)
    assert len(one(made).errors) == 1
    assert shown(made, "x") == [1]


def test_an_exception_that_ends_a_section_inside_a_stepped_over_line_is_recovered_from(
    tmp_path: Path,
) -> None:
    text = f"{HEAD}\ndef main():\n    one()\n    two()\ndef boom(x):\n    1 / x\ndef one():\n    boom(0)  # @stepover\ndef two():\n    x = 1  # @inspect x\n    boom(1)\n"
    made = record(tmp_path, text)
    assert shown(made, "x") == [1]
    assert called(made).count("boom") == 1


# ------------------------------------------------------------------------ pieces


def test_pieces_belong_to_the_sections_line_also_from_helpers(tmp_path: Path) -> None:
    text = section(
        'note("own")\nsay("from a helper")\nfor i in range(2):\n    say("in a loop")',
        "def say(text):\n    deeper(text)\ndef deeper(text):\n    note(text)\n    print(text)\n",
    )
    made = record(tmp_path, text)
    lines = [(piece.kind, one(made).first + piece.line) for piece in one(made).pieces]
    helper, loop = line_of(text, 'say("from'), line_of(text, 'say("in')
    assert lines == [
        ("note", line_of(text, 'note("own")')),
        ("note", helper),
        ("output", helper),
        *[("note", loop), ("output", loop)] * 2,
    ]
    assert all(made.callee(one(made), p.frame).name == "one" for p in one(made).pieces)


def test_a_piece_of_a_statement_over_several_lines_has_its_first_line(tmp_path: Path) -> None:
    text = section('note(\n    """\n    Prose.\n    """\n)')
    (piece,) = one(made := record(tmp_path, text)).pieces
    assert (one(made).first + piece.line, piece.text) == (line_of(text, "note("), "Prose.")


def test_pieces_of_main_and_of_the_module_are_kept(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        f'{HEAD}note("module")\ndef main():\n    note("main")\n    one()\ndef one():\n    note("one")\n',
    )
    assert [p.text for section_of in made.sections for p in section_of.pieces] == ["module", "main", "one"]


def test_printed_output_is_captured_in_one_piece_a_line(tmp_path: Path) -> None:
    text = section(
        'print("a", "b")\nprint("c", end="")\nsys.stdout.write("d\\n")\nfor i in range(3):\n    print(i)',
        "import sys",
    )
    made = record(tmp_path, text)
    assert [(p.kind, p.text) for p in one(made).pieces] == [
        ("output", "a b\n"), ("output", "c"), ("output", "d\n"), ("output", "0\n"), ("output", "1\n"), ("output", "2\n"),
    ]  # fmt: skip


def test_printed_output_is_bounded(tmp_path: Path) -> None:
    made = record(tmp_path, section("print('x' * 10**6)\nprint('more')"))
    (piece,) = one(made).pieces
    assert len(piece.text) < OUTPUT + 100
    assert piece.text.endswith("… more was printed; it is cut here\n")


# ------------------------------------------------------------------------ claims


def the_claim(made: model.Record) -> model.Claim:
    (claim,) = one(made).claims
    return claim


def operands(made: model.Record, claim: model.Claim) -> list[Any]:
    found = []
    for operand in claim.operands:
        snapshot = one(made).snapshots[operand.value] if operand.value is not None else None
        found.append(getattr(snapshot, "number", None) if snapshot else None)
    return found


def test_a_claim_keeps_both_sides_and_its_caption(tmp_path: Path) -> None:
    made = record(tmp_path, section('x = 3\nassert x * 2 == 6, f"twice {x}"'))
    claim = the_claim(made)
    assert (claim.verdict, claim.caption, claim.form, claim.count) == (
        "holds",
        "twice 3",
        ("", " == ", ""),
        1,
    )
    assert [o.text for o in claim.operands] == ["x * 2", "6"]
    assert operands(made, claim) == [6, 6]


def test_a_claim_in_a_loop_counts_and_keeps_its_first_failure(tmp_path: Path) -> None:
    claim = the_claim(made := record(tmp_path, section('for i in range(10):\n    assert i < 4, f"at {i}"')))
    assert (claim.verdict, claim.count, claim.caption) == ("fails", 10, "at 4")
    assert operands(made, claim) == [4, 4]


def test_a_claim_that_always_holds_keeps_its_first_run(tmp_path: Path) -> None:
    claim = the_claim(made := record(tmp_path, section('for i in range(10):\n    assert i < 40, f"at {i}"')))
    assert (claim.verdict, claim.count, claim.caption, operands(made, claim)) == (
        "holds",
        10,
        "at 0",
        [0, 40],
    )


def test_the_operands_of_a_claim_are_evaluated_once(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        section(
            "seen = []\nassert f(seen) == 1 and f(seen) == 2, f(seen)\nn = len(seen)  # @inspect n",
            "def f(seen):\n    seen.append(1)\n    return len(seen)\n",
        ),
    )
    assert claims(made) == {"f(seen) == 1 and f(seen) == 2": "holds"}
    assert shown(made, "n") == [3]  # two operands and the caption


def test_an_operand_behind_a_false_one_is_not_evaluated(tmp_path: Path) -> None:
    claim = the_claim(made := record(tmp_path, section("assert 1 == 2 and 1 / 0 == 3")))
    assert claim.verdict == "fails"
    assert operands(made, claim) == [1, 2, None, None]


def test_a_caption_that_raises_leaves_the_verdict_alone_and_a_failure_says_so(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        section(
            """
            assert 1 == 1, f"{1 / 0}"
            assert 1 == 2, f"caption {nope}"
            assert 2 == 2, Bad()
            assert 2 == 3, Bad()
            try:
                1 / 0
            except ZeroDivisionError:
                one_more()
            """,
            """
            class Bad:
                def __str__(self):
                    raise ValueError
                __repr__ = __str__
            def one_more():
                assert 3 == 4
                assert 3 == 5, print()
                assert 3 == 6, "plain"
            """,
        ),
    )
    assert [(c.verdict, c.caption) for _, c in made.claims()] == [
        ("holds", ""),
        ("fails", "1 == 2 (its caption raised NameError: name 'nope' is not defined)"),
        ("holds", "lecture_sample.Bad (str raised ValueError)"),
        ("fails", "lecture_sample.Bad (str raised ValueError)"),
        ("fails", ""),  # of `one_more`: the exception that is being handled is another one
        ("fails", ""),
        ("fails", "plain"),
    ]
    assert messages(made) == []


def test_a_caption_that_is_no_string_is_shown_as_print_would(tmp_path: Path) -> None:
    body = """
        x = 3
        assert x == 4, ("x is", x)
        assert x == 4, {"x": x}
        assert x == 4, 42
        assert x == 4, b"raw"
        assert x == 4, ValueError("said")
        assert x == 3, [x]
        assert x == 4, list(range(10**4))
        """
    captions = [c.caption for c in one(record(tmp_path, section(body))).claims]
    assert captions[:6] == ["('x is', 3)", "{'x': 3}", "42", "b'raw'", "said", "[3]"]
    assert captions[6].startswith("[0, 1, 2, ")
    assert len(captions[6]) < 1100


def whys(made: model.Record) -> list[list[str]]:
    return [claim.why.splitlines() for claim in one(made).claims]


def test_a_failing_claim_whose_operands_say_only_false_keeps_what_its_test_names(tmp_path: Path) -> None:
    body = """
        x, y, s = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4]), "text"
        big, ok = torch.zeros(100, 100), False
        assert (x == y).all()
        assert all(a == b for a, b in zip(LIMIT, x.tolist()))
        assert big.isnan().any()
        assert torch.cuda is None or len(sorted(x.tolist(), key=lambda s: -s)) < 0 or not s
        assert s.isdigit() and nowhere
        assert ok
        for i in range(3):
            assert (x == i).all() or (x != i).all()
        assert str(s).isdigit(), s
        """
    made = record(tmp_path, section(body, "import torch\nLIMIT = [1, 3]\n"))
    row = "[0., 0., 0., ..., 0., 0., 0.]"
    zeros = f"tensor([{row}, {row}, {row}, ..., {row}, "[:120]
    assert whys(made) == [
        ["x is tensor([1, 2, 3])", "y is tensor([1, 2, 4])"],
        ["LIMIT is [1, 3]", "x is tensor([1, 2, 3])"],
        [f"big is float32 [100, 100]: {zeros} …"],
        [],  # a list and a number say it
        ["s is 'text'"],
        [],  # it is its own operand
        ["x is tensor([1, 2, 3])", "i is 1"],
        ["s is 'text'"],
    ]
    assert messages(made) == []


def test_of_claims_that_hold_or_say_what_failed_no_names_are_kept(tmp_path: Path) -> None:
    body = "x = torch.ones(3)\nassert (x == 1).all()\nassert x.numel() == 4\nassert torch.equal(x, -x)\nassert x.tolist() == []\nassert False"
    made = record(tmp_path, section(body, "import torch"))
    assert [c.verdict for c in one(made).claims] == ["holds", "fails", "fails", "fails", "fails"]
    assert whys(made) == [[]] * 5


def test_looking_at_what_a_failing_claim_names_keeps_nothing_alive(tmp_path: Path) -> None:
    body = """
        kept = Thing()
        seen = weakref.ref(kept)
        assert not isinstance(kept, Thing) and not kept
        assert not bool(kept)
        del kept
        assert seen() is None
        held = locals()
        kept = 5
        assert not bool(kept)
        n = len(held)  # @inspect n
        """
    made = record(tmp_path, section(body, "import weakref\nclass Thing: pass\n"))
    assert [c.verdict for c in one(made).claims] == ["fails", "fails", "holds", "fails"]
    assert shown(made, "n")[0] > 0


def test_hostile_names_of_a_failing_claim_are_bounded(tmp_path: Path) -> None:
    helper = (
        "class Loops:\n    def __repr__(self):\n        while True: pass\n    def no(self): return False\n"
    )
    names = [f"v{i}" for i in range(9)]
    body = f"loops, long = Loops(), 'x' * 10**7\n{' = '.join(names)} = 0\nassert loops.no() or long.isdigit()\nassert [{', '.join(names)}].count(1).__bool__()"
    made = record(tmp_path, section(body, helper))
    assert whys(made)[0] == [
        "loops is lecture_sample.Loops (str took too long)",
        f"long is str: '{'x' * 119} …",
    ]
    assert whys(made)[1] == [f"v{i} is 0" for i in range(6)]


def test_a_claim_whose_test_raises_is_not_reached_and_the_next_are_judged_right(tmp_path: Path) -> None:
    text = section(
        "with contextlib.suppress(ZeroDivisionError):\n    assert 1 / 0 == 1\nassert 5 == 5",
        "import contextlib\n",
    )
    made = record(tmp_path, text)
    assert claims(made) == {"1 / 0 == 1": "not-reached", "5 == 5": "holds"}
    assert operands(made, one(made).claims[1]) == [5, 5]


def test_asserts_of_helpers_and_inside_try_raise_as_in_plain_python(tmp_path: Path) -> None:
    text = section(
        "try:\n    assert 1 == 2\nexcept AssertionError:\n    x = 1  # @inspect x\nhelper(3)",
        "def helper(x):\n    assert x == 4, 'not four'\n",
    )
    made = record(tmp_path, text)
    assert one(made).claims == ()
    assert shown(made, "x") == [1]
    caught = "assert fails: 1 == 2\nits exception ended nothing: it was caught, or Python swallowed it\n"
    assert messages(made) == [
        f"{line_of(text, 'x == 4')}: AssertionError: not four",
        f"{line_of(text, '1 == 2')}: {caught}if it is meant to fail, say so on its line: # @allow claim-fails: WHY",
    ]


def test_what_a_claim_compares_is_whatever_python_says_it_is(tmp_path: Path) -> None:
    made = record(
        tmp_path,
        section(
            "a = np.array([1, 2])\nassert (a == a).all()\nassert np.float64(1) == 1\nassert a.tolist() == [1, 2]\nassert not a.sum() == 4",
            "import numpy as np",
        ),
    )
    assert set(claims(made).values()) == {"holds"}
    made = record(tmp_path, section("a = np.array([1, 2])\nassert a == a", "import numpy as np"))
    assert "truth value of an array" in messages(made)[0]


# ------------------------------------------------------------------------ axes

AXES = (
    "import torch\nimport numpy as np\nfrom torch import Tensor\nfrom jaxtyping import Float, Int, Shaped\n"
)


def judged(tmp_path: Path, body: str) -> list[tuple[str, str]]:
    """Verdicts of the axes claims, with what is wrong."""
    made = record(tmp_path, section(body, AXES))
    assert messages(made) == []
    return [(claim.verdict, claim.why) for claim in one(made).claims if claim.kind == "axes"]


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        ('Float[Tensor, "batch seq"]', "torch.zeros(2, 3)", ""),
        ('Float[Tensor, "batch seq"]', "torch.zeros(2, 3, dtype=torch.int64)", "int64(2, 3) is no Float[Tensor, 'batch seq']"),
        ('Float[Tensor, "batch seq"]', "torch.zeros(2, 3, 4)", "float32(2, 3, 4) is no Float[Tensor, 'batch seq']"),
        ('Float[Tensor, "batch 4"]', "torch.zeros(2, 3)", "float32(2, 3) is no Float[Tensor, 'batch 4']"),
        ('Float[Tensor, "n n"]', "torch.zeros(2, 3)", "float32(2, 3) is no Float[Tensor, 'n n']"),
        ('Float[Tensor, "*heads dim"]', "torch.zeros(2, 3, 4)", ""),
        ('Float[Tensor, "... dim"]', "torch.zeros(4)", ""),
        ('Float[Tensor, "... dim"]', "torch.tensor(1.0)", "float32() is no Float[Tensor, '... dim']"),
        ('Float[Tensor, "n n+1"]', "torch.zeros(2, 3)", ""),
        ('Float[Tensor, "n n+1"]', "torch.zeros(2, 2)", "axis 'n+1' has 2 elements here, and n+1 is 3"),
        ('Float[Tensor, "n m+1"]', "torch.zeros(2, 2)", "the annotation cannot be checked: axis 'm+1': name 'm' is not defined"),
        ('Shaped[np.ndarray, "a b"]', "np.zeros((2, 3))", ""),
        ('Shaped[np.ndarray, "a b"]', "torch.zeros(2, 3)", "float32(2, 3) is no Shaped[ndarray, 'a b']"),
        ('Float[Tensor, "a"]', "7", "a int is no array"),
        ('Float[Tensor, ""]', "torch.tensor(1.0)", ""),
    ],
)  # fmt: skip
def test_an_axes_annotation_is_a_claim(tmp_path: Path, annotation: str, value: str, says: str) -> None:
    assert judged(tmp_path, f"x: {annotation} = {value}") == [("fails" if says else "holds", says)]


def test_a_named_size_holds_within_the_section_and_both_lines_are_named(tmp_path: Path) -> None:
    body = (
        'x: Float[Tensor, "batch seq"] = torch.zeros(2, 3)\ny: Float[Tensor, "seq batch"] = torch.zeros(2, 3)'
    )
    line = line_of(section(body, AXES), "x: Float")
    assert judged(tmp_path, body) == [
        ("holds", ""),
        ("fails", f"axis 'seq' has 2 elements here and had 3 on line {line}"),
    ]


def test_a_broadcast_axis_may_be_one_and_then_says_nothing(tmp_path: Path) -> None:
    body = """
        a: Float[Tensor, "#batch seq"] = torch.zeros(1, 3)
        b: Float[Tensor, "batch seq"] = torch.zeros(5, 3)
        c: Float[Tensor, "#batch seq"] = torch.zeros(1, 3)
        d: Float[Tensor, "#batch seq"] = torch.zeros(4, 3)
        """
    assert [verdict for verdict, _ in judged(tmp_path, body)] == ["holds", "holds", "holds", "fails"]


def test_names_of_another_section_are_other_names(tmp_path: Path) -> None:
    text = f'{HEAD}{AXES}\ndef main():\n    one()\n    two()\ndef one():\n    x: Float[Tensor, "n"] = torch.zeros(2)\ndef two():\n    x: Float[Tensor, "n"] = torch.zeros(3)\n'
    assert [c.verdict for c in (it for _, it in record(tmp_path, text).claims())] == ["holds", "holds"]


def test_an_annotation_in_a_loop_is_judged_each_time(tmp_path: Path) -> None:
    made = record(tmp_path, section('for n in (2, 2, 3):\n    x: Float[Tensor, "n"] = torch.zeros(n)', AXES))
    assert (the_claim(made).verdict, the_claim(made).count) == ("fails", 3)
    assert "axis 'n' has 3 elements here and had 2 on line" in the_claim(made).why


@pytest.mark.parametrize(
    "turns", ["x.t_()", "y = x\ny.transpose_(0, 1)", "x.data = x.data.T", "x.squeeze_(0)", "x.unsqueeze_(0)"]
)
def test_what_is_turned_in_place_has_no_axes_any_more(tmp_path: Path, turns: str) -> None:
    first = 'x: Float[Tensor, "batch seq"] = torch.ones(1, 3)  # @inspect x\n'
    made = record(tmp_path, section(f"{first}{turns}\nz = 1  # @inspect x", AXES))
    before, after = [one(made).snapshots[value.value or 0] for value in one(made).values]
    assert isinstance(before, model.Tensor) and before.axes == ("batch", "seq")
    assert isinstance(after, model.Tensor) and not after.axes


def test_axes_are_named_wherever_the_annotated_tensor_is_shown(tmp_path: Path) -> None:
    body = """
        x: Float[Tensor, "batch *heads _"] = torch.zeros(2, 3, 4, 5)  # @inspect x
        x += 1  # @inspect x
        x = x.transpose(0, 3)  # @inspect x
        """
    made = record(tmp_path, section(body, AXES))
    assert [tensor.axes for tensor in shown(made, "x")] == [("batch", "heads0", "heads1", "_")] * 2 + [None]


def test_annotations_of_other_libraries_and_plain_types_are_none_of_our_business(tmp_path: Path) -> None:
    body = "a: int = 'text'\nb: dict[str, 'list'] = 3\nc: Annotated[int, 'a b'] = 4\nd: 'nonsense here' = 5"
    made = record(tmp_path, section(body, "from typing import Annotated\n"))
    assert messages(made) == []
    assert all(claim.verdict != "fails" for claim in one(made).claims)


@pytest.mark.parametrize(
    "annotation",
    ['Float[Tensor, f"batch {n}"]', "\"Float[Tensor, 'batch 4']\"", "\"Float[Tensor, f'batch {n}']\""],
)
@pytest.mark.parametrize("later", ["", "from __future__ import annotations\n"])
def test_an_annotation_in_quotes_or_with_a_size_put_in_is_checked(
    tmp_path: Path, annotation: str, later: str
) -> None:
    text = section(f"n = 4\nx: {annotation} = torch.zeros(2, 3)", AXES)
    made = record(tmp_path, text.replace('"""\n', f'"""\n{later}', 1))
    assert messages(made) == []
    assert the_claim(made).why == "float32(2, 3) is no Float[Tensor, 'batch 4']"


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("x: Row = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ('x: "Row" = torch.zeros(2, 3)', "Float[Tensor, 'a']"),
        ("for i in range(2): x: Row | None = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ("x: Optional[Row] = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ("x: Annotated[Row, 1] = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ("x: names[0] = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ("x: Float[Tensor, NAMES] = torch.zeros(2, 3)", "Float[Tensor, 'a b c']"),
        ("x: Row", "Float[Tensor, 'a']"),
        ("names[0]: Row = torch.zeros(2, 3)", "Float[Tensor, 'a']"),
        ("x: Told = torch.zeros(2, 3)", "Float[Tensor, 'b']"),
    ],
)
def test_an_annotation_that_means_axes_by_another_name_is_refused(
    tmp_path: Path, statement: str, meant: str
) -> None:
    before = f'{AXES}from typing import Annotated, Optional\nNAMES = "a b c"\nRow = Float[Tensor, "a"]\nnames = [Row]\nTold = "Float[Tensor, \'b\']"\n'
    made = record(tmp_path, section(statement, before))
    says = f"this annotation checks nothing: it is another name for {meant}"
    way_out = "write that itself where a value is assigned to a plain name, outside of `try`"
    assert [message.partition(": ")[2] for message in messages(made)] == [f"{says}\n{way_out}"]


def test_an_annotation_that_means_no_axes_is_let_be(tmp_path: Path) -> None:
    before = f"{AXES}Row = Float[Tensor, 'a']\nDated = 'Annotated[int, \"of a day\"]'\ndef f(): return Row\n"
    body = "i: Dated = 5\na: np.ndarray = 1\nb: missing = 2\nc: f() = 3\nd: Row | None = None\ne: list[Row] = []\ng: 'no text' = 4\nclass A:\n    h: Row"
    assert messages(record(tmp_path, section(body, before))) == []


def test_an_annotation_that_cannot_be_read_fails_and_says_why(tmp_path: Path) -> None:
    body = 'x: Flaot[Tensor, "a"] = torch.zeros(2)\ny = 1  # @inspect y'
    made = record(tmp_path, section(body, AXES))
    assert the_claim(made).why == "the annotation cannot be read: NameError: name 'Flaot' is not defined"
    assert shown(made, "y") == [1]


# ------------------------------------------------------------------------ it is the same program


def test_frames_that_reuse_an_address_are_not_mistaken(tmp_path: Path) -> None:
    text = section(
        "for i in range(200):\n    a = f(i)  # @stepover\n    b = g(i)\nx = b  # @inspect x",
        "def f(i):\n    for k in range(8):\n        p = k  # @inspect p\n    return i\ndef g(i):\n    for k in range(3):\n        q = k  # @inspect q\n    return i\n",
    )
    made = record(tmp_path, text)
    assert shown(made, "p") == []
    assert shown(made, "q") == [0, 1, 2] * 5
    assert [loop.count for loop in one(made).loops] == [200, *[3] * 5]
    assert shown(made, "x") == [199]


def test_a_lecture_sees_no_probe(tmp_path: Path) -> None:
    text = section(
        "names = sorted(locals())  # @inspect names\nnames = sorted(n for n in globals() if 'probe' in n)  # @inspect len(names)"
    )
    made = record(tmp_path, text)
    assert shown(made, "names")[0].length == 0
    assert shown(made, "len(names)") == [0]


def test_the_recorder_leaves_the_trace_function_alone(tmp_path: Path) -> None:
    before = sys.gettrace()
    record(tmp_path, section("for i in range(10):\n    x = i  # @inspect x"))
    assert sys.gettrace() is before


def test_the_file_is_read_as_the_record_has_it(tmp_path: Path) -> None:
    text = section("x = 1  # @inspect x")
    made = record(tmp_path, text)
    assert made.sources[0].text == write(tmp_path, text).read_text()
    assert made.lecture == "lecture_sample"


def test_what_a_folded_call_calls_is_folded_with_it(tmp_path: Path) -> None:
    text = section(
        """
        found = [outer(i) for i in range(20)]  # @inspect found
        """,
        before="""
        def inner(i):
            return i + 1

        def outer(i):
            return inner(i) * 2
        """,
    )
    made = record(tmp_path, text)
    names = called(made)
    assert names.count("outer") == names.count("inner") == CALLS
    found = one(made)
    parents = {
        made.callee(found, frame.parent).name
        for i, frame in enumerate(found.frames)
        if made.callee(found, i).name == "inner" and frame.parent is not None
    }
    assert parents == {"outer"}  # never the section, as if it had called it itself
    assert not one(made).unreached


def test_calls_beyond_the_budget_leave_nothing_behind(tmp_path: Path) -> None:
    text = section(
        "found = fib(17)  # @inspect found",
        before="def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
    )
    recorders: list[Recorder] = []

    class Kept(Recorder):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            recorders.append(self)

    made = record(tmp_path, text, recorded_by=Kept)
    assert shown(made, "found") == [1597]
    assert len(recorders[0].functions) < STEPS + 10  # of 5167 calls
    assert len(one(made).steps) <= STEPS + 100
    assert not one(made).errors


def test_a_recursion_deeper_than_the_budget_is_no_deeper_for_the_recorder(tmp_path: Path) -> None:
    text = section(
        """
        sys.setrecursionlimit(200_000)
        found = sum(down(30_000) for _ in range(8))  # @inspect found
        """,
        before="import sys\n\ndef down(n):\n    return 0 if n == 0 else 1 + down(n - 1)\n",
    )
    assert shown(record(tmp_path, text), "found") == [240_000]
