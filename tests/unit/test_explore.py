"""Pictures with sliders: what is computed, what is refused, and what is drawn of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.running import command, record

from litbook.errors import AuthorError, RecordError
from litbook.explore.chart import WHOLE, Chart, chart
from litbook.explore.sampling import sample_grid, sample_live
from litbook.html import media
from litbook.html import page as pages
from litbook.page.blocks import Explore
from litbook.page.runs import LectureRuns
from litbook.record.compare import compare
from litbook.record.encoding import dumps, loads
from litbook.record.limits import POINTS
from litbook.record.model import Grid, Record
from litbook.rules import prose

HEAD = '"""Sliders."""\nfrom litbook import explore, note\n'


def grid(function: Any, at: dict[str, Any] | None = None, **over: Any) -> Grid:
    start = at or {name: places[0] for name, places in over.items()}
    return sample_grid(function, over, start)[0]


def refused(function: Any, over: Any, at: Any, **more: Any) -> str:
    with pytest.raises(AuthorError) as caught:
        sample_grid(function, over, at, **more)
    return str(caught.value)


def made(folder: Path, call: str, before: str = "") -> Record:
    text = f"{HEAD}{before}\n\ndef main():\n    one()\n\n\ndef one():\n    '''One.'''\n    {call}\n"
    return record(folder, text)


# ---------------------------------------------------------------------------- what is computed


def test_a_function_is_asked_at_every_place_and_claims_may_speak_of_any() -> None:
    kept, given = sample_grid(
        lambda a, b: {"sum": a + b, "product": a * b}, {"a": [1, 2, 3], "b": [10, 20]}, {"a": 2, "b": 10}
    )
    assert kept.points[kept.index((2, 1))] == (23, 60) and kept.names == ("sum", "product")
    assert kept.at == (1, 0) and given[3, 20] == {"sum": 23, "product": 60}
    assert sample_grid(lambda a: a**2, {"a": range(5)}, {"a": 3})[1] == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}


def test_a_point_without_a_value_is_a_gap_and_says_why() -> None:
    def inverse(x: int) -> float:
        return 1 / (x - 2) if x != 4 else float("nan")

    kept, given = sample_grid(inverse, {"x": [1, 2, 3, 4]}, {"x": 3}, kind="curve")
    assert kept.points == ((-1.0,), "division by zero", (1.0,), "nan")
    assert given == {1: -1.0, 3: 1.0}
    drawn = chart(kept)
    assert drawn.points[1].gap and not drawn.points[1].marks
    assert drawn.in_words(drawn.points[1]) == "no value: division by zero"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return nothing(x)", "NameError at x=4: name 'nothing' is not defined"),
        ("return x.width", "AttributeError at x=4: 'int' object has no attribute 'width'"),
        ("return x + '1'", "TypeError at x=4: unsupported operand type(s) for +: 'int' and 'str'"),
    ],
)
def test_a_slip_of_the_pen_is_no_gap(body: str, said: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def draws(x):\n    if x < 4:\n        return x\n    {body}", names)
    with pytest.raises(AuthorError) as raised:
        sample_grid(names["draws"], {"x": [1, 2, 3, 4]}, {"x": 3}, kind="curve")
    assert str(raised.value).startswith(f"explore() got {said}\nwhere there is no value, raise ValueError")


def test_tensors_and_scalars_of_numpy_count_as_their_number() -> None:
    torch, numpy = pytest.importorskip("torch"), pytest.importorskip("numpy")
    kept = grid(lambda x: {"t": torch.tensor(x), "n": numpy.float32(x)}, x=[1, 2])
    assert kept.points == ((1, 1.0), (2, 2.0))


def test_the_steps_of_the_function_are_not_kept_and_its_asserts_are_judged(tmp_path: Path) -> None:
    before = "def f(x):\n    note('never')\n    print('never')\n    assert x < 100\n    return x\n"
    call = "explore(f, over={'x': range(90)}, at={'x': 7}, caption='c', alt='a')"
    kept = made(tmp_path, call, before)
    section = kept.by_key["one"]
    assert [piece.kind for piece in section.pieces] == ["explore"]
    assert len(section.steps) == 1 and section.pieces[0].grid is not None
    assert section.pieces[0].grid.points[7] == (7,) and not section.errors
    wrong = made(tmp_path, call, before.replace("< 100", "< 50"))
    (error,) = wrong.by_key["one"].errors
    assert error.message.startswith("assert fails: x < 50")


# ---------------------------------------------------------------------------- what is refused


def test_what_differs_the_second_time_is_refused_with_both_values() -> None:
    calls: list[int] = []

    def counts(x: int) -> int:
        calls.append(x)
        return len(calls)

    said = refused(counts, {"x": [1, 2, 3]}, {"x": 1})
    assert "explore() got 3 at x=3, and then 4" in said and "from the sliders' places alone" in said
    assert "and then" in refused(lambda x: random.random(), {"x": [1, 2]}, {"x": 1})


@pytest.mark.parametrize(
    ("over", "at", "says"),
    [
        ({}, {}, "one slider or two"),
        ({"a": [1], "b": [1], "c": [1]}, {}, "one slider or two"),
        ({"x": []}, {"x": 1}, "a list of places for 'x'"),
        ({"x": "abc"}, {"x": "a"}, "a list of places for 'x'"),
        ({"x": 3}, {"x": 3}, "a list of places for 'x'"),
        ({"x": [1, float("nan")]}, {"x": 1}, "over numbers or over texts"),
        ({"x": [1, float("inf")]}, {"x": 1}, "over numbers or over texts"),
        ({"x": [1, "a"]}, {"x": 1}, "over numbers or over texts"),
        ({"x": [True, False]}, {"x": True}, "over numbers or over texts"),
        ({"x": [1, 1]}, {"x": 1}, "each once"),
        ({"x": [2, 1]}, {"x": 1}, "sort them"),
        ({"x": [1, 2]}, {"x": 3}, "none of its places\nthese are [1, 2]"),
        ({"x": [1, 2]}, {}, 'at={"x": 1}'),
        ({"x": [1, 2]}, {"y": 1}, 'at={"x": 1}'),
        ({"x": range(10**6)}, {"x": 1}, f"up to {POINTS:,} points; these sliders have 1,000,000\ngive them fewer"),
    ],
)  # fmt: skip
def test_sliders_that_cannot_be_moved_are_refused_with_the_way_out(over: Any, at: Any, says: str) -> None:
    assert says in refused(lambda **_: 1, over, at)


@pytest.mark.parametrize(
    ("function", "more", "says"),
    [
        (3, {}, "takes a function of the sliders' places, not int"),
        (lambda x: "one", {}, "gives a number, or numbers by name, not str"),
        (lambda x: True, {}, "gives a number, or numbers by name, not bool"),
        (lambda x: {}, {}, "one number or up to 6 by name, not 0"),
        (lambda x: dict.fromkeys("abcdefg", 1), {}, "not 7"),
        (lambda x: {"a": 1} if x == 1 else {"b": 1}, {}, "got b at x=2, and a at x=1"),
        (lambda x: 1 - x, {}, "draws bars from zero on, and got less at x=2"),
        (lambda x: 1 / (x - 1), {}, "no value at its own point, x=1: division by zero"),
        (lambda x: x, {"kind": "pie"}, "draws bars, stack, curve, not 'pie'"),
        (lambda x: x, {"limit": 3}, 'limit=("the card", 80e9)'),
        (lambda x: x, {"limit": ("", -1)}, 'limit=("the card", 80e9)'),
    ],
)
def test_a_function_that_cannot_be_drawn_is_refused_with_the_way_out(
    function: Any, more: Any, says: str
) -> None:
    assert says in refused(function, {"x": [1, 2]}, {"x": 1}, **more)


def test_a_grid_too_large_for_a_page_is_refused() -> None:
    over = {"x": [*range(POINTS)]}
    assert "up to 60,000 bytes" in refused(lambda x: dict.fromkeys("abcd", x / 3), over, {"x": 1})


def test_a_refusal_stands_at_its_line(tmp_path: Path) -> None:
    text = f"{HEAD}\ndef main():\n    explore(len, over={{}}, at={{}}, caption='', alt='a')\n"
    (tmp_path / "lecture_95.py").write_text(text, encoding="utf-8")
    done = command(tmp_path / "lecture_95.py", "--device", "cpu")
    assert (
        done.returncode == 1
        and "lecture_95.py:5: AuthorError: explore() has one slider or two" in done.stdout
    )
    assert 'over={"batch": [1, 2, 4, 8]}' in done.stdout


# ---------------------------------------------------------------------------- what is drawn


def drawn(function: Any, at: dict[str, Any], over: dict[str, Any], **more: Any) -> Chart:
    return chart(sample_grid(function, over, at, **more)[0])


def test_bars_are_to_one_scale_and_begin_at_zero() -> None:
    got = drawn(lambda x: {"a": x, "b": 2 * x}, {"x": 1}, {"x": [1, 2, 4]}, unit="B")
    assert [point.marks for point in got.points] == [(125, 250), (250, 500), (500, WHOLE)]
    assert got.start.texts == ("1 B", "2 B")


@pytest.mark.parametrize(
    ("kind", "far", "marks", "limit"),
    [
        ("stack", 100, [(80, 80), (1000, 0)], 800),  # torn off, also within a part
        ("stack", 8, [(62, 63), (500, 500)], 625),  # whole
        ("stack", 2, [(91, 91), (182, 182)], 909),  # the limit is the largest
        ("bars", 100, [(80, 80), (1000, 1000)], 800),
    ],
)
def test_a_limit_has_one_place_at_all_points(
    kind: str, far: int, marks: list[tuple[int, ...]], limit: int
) -> None:
    got = drawn(lambda x: {"a": x, "b": x}, {"x": 1}, {"x": [1, far]}, kind=kind, limit=("card", 10))
    assert [(point.marks, point.limit) for point in got.points] == [(one, limit) for one in marks]
    assert got.limit == "card: 10"


@pytest.mark.parametrize(("at", "torn"), [(100, True), (1, False)])
def test_a_stack_names_its_sum_and_its_end_is_torn_where_it_is_longer_than_its_frame(
    tmp_path: Path, at: int, torn: bool
) -> None:
    call = (
        f"explore(lambda x: {{'a': x, 'b': x}}, over={{'x': [1, 100]}}, at={{'x': {at}}}, kind='stack', "
        "limit=('card', 10), caption='c', alt='a')"
    )
    text = pages.pages(made(tmp_path, call))["index.md"]
    assert f'together <b class="lb-total">{2 * at}</b>' in text
    assert ('class="lb-track lb-torn"' in text) is torn
    assert text.index("lb-total") < text.index("lb-track") < text.index("lb-sliders"), (
        "the result comes first"
    )


def test_a_curve_is_logarithmic_only_where_numbers_are_far_apart() -> None:
    near = drawn(lambda x: x, {"x": 1}, {"x": [1, 2, 3]}, kind="curve")
    far = drawn(lambda x: x, {"x": 1}, {"x": [1, 10, 100]}, kind="curve")
    assert near.across == far.across == (0, 500, 1000) and (near.far, far.far) == (
        (False, False),
        (True, True),
    )
    assert drawn(lambda x: 5, {"x": 1}, {"x": [1]}, kind="curve").points[0].marks == (500,)


def test_round_numbers_stand_between_the_ends_of_a_curves_axis() -> None:
    near = drawn(lambda x: x, {"x": -3}, {"x": [-3, 12]}, kind="curve", unit="B")
    assert near.between == ((200, "0 B"), (533, "5 B"), (867, "10 B"))
    far = drawn(lambda x: x, {"x": 1}, {"x": [1, 10**6]}, kind="curve")
    assert far.between == ((167, "10"), (500, "1,000"), (833, "100,000"))
    assert drawn(lambda x: x, {"x": 1}, {"x": [1, 10**12]}, kind="curve").between == (
        (83, "10"), (333, "10,000"), (583, "10,000,000"), (833, "10,000,000,000"),
    )  # fmt: skip
    assert drawn(lambda x: 5, {"x": 1}, {"x": [1, 2]}, kind="curve").between == ()


def test_a_recorded_grid_is_compared_point_by_point(tmp_path: Path) -> None:
    call = "explore(f, over={'x': [1, 2]}, at={'x': 1}, caption='c', alt='a', unit='B')"
    was = made(tmp_path, call, "def f(x):\n    return 2 * x\n")
    assert not compare(was, was).differences
    (section,) = (section for section in was.sections if section.key == "one")
    (piece,) = section.pieces
    assert piece.grid is not None
    for points, expected in (
        (((2,), (6,)), ("4", "6")),
        (((2,), "ValueError: no"), ("(4,)", "ValueError: no")),
    ):
        changed = replace(section, pieces=(replace(piece, grid=replace(piece.grid, points=points)),))
        now = replace(was, sections=tuple(changed if it is section else it for it in was.sections))
        (difference,) = compare(now, was).differences
        assert difference.what == "what is explored"
        (change,) = difference.changes
        assert (change.at, change.was, change.now) == ("x=2", *expected)


def test_hostile_names_are_text_wherever_they_stand(tmp_path: Path) -> None:
    from litbook.html import page

    evil = "</script><img src=x onerror=alert(1)>'\"&"
    call = f"explore(lambda x: {{{evil!r}: 1}}, over={{'x': ['<b>', {evil!r}]}}, at={{'x': '<b>'}}, caption='c', alt='a')"
    html = page.pages(made(tmp_path, call))["index.md"]
    figure = html.split('class="lb-explore"')[1].split("</figure>")[0]
    assert "<img" not in figure and "<script" not in figure and "&lt;img" in figure and "onerror" in figure


def test_what_is_explored_tells_itself_in_the_terminal(tmp_path: Path) -> None:
    text = f"{HEAD}\ndef main():\n    explore(lambda x: x * 2, over={{'x': [1, 2, 3]}}, at={{'x': 2}}, caption='Twice.', alt='a', do='Move it.', unit='s')\n"
    (tmp_path / "lecture_95.py").write_text(text, encoding="utf-8")
    said = command(tmp_path / "lecture_95.py", "--device", "cpu").stdout
    assert "[explore: Twice.]" in said and "Try: Move it." in said
    assert "x 2: 4 s" in said and "x 1: 2 s" in said and "x 3: 6 s" in said


def test_a_record_holds_a_grid_through_json(tmp_path: Path) -> None:
    kept = made(
        tmp_path,
        "explore(lambda x: {'a': x / 3, 'b': 2**60}, over={'x': [1, 2]}, at={'x': 1}, caption='c', alt='a')",
    )
    again = loads(dumps(kept))
    assert again.by_key["one"].pieces == kept.by_key["one"].pieces
    paths: list[list[Any]] = [["points"], ["at"], ["points", 0]]
    damage: list[Any] = [[[1, 2]], [7], [1, 2, 3]]
    for path, damaged in zip(paths, damage, strict=True):
        text = json.loads(dumps(kept))
        (entry,) = (section for section in text["sections"] if section["key"] == "one")
        inside = entry["pieces"][0]["grid"]
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = damaged
        with pytest.raises(RecordError, match="of what 'one' explores"):
            loads(json.dumps(text))


def test_the_block_of_a_piece_is_its_picture(tmp_path: Path) -> None:
    from litbook.page.pieces import block

    kept = made(
        tmp_path,
        "explore(abs, over={}, at={}, caption='c', alt='a') if 0 else explore(lambda x: x, over={'x': [1]}, at={'x': 1}, caption='c', alt='a', do='d', see='s')",
    )
    shown = block(kept.by_key["one"].pieces[0])
    assert isinstance(shown, Explore) and (shown.do, shown.see, shown.alt) == ("d", "s", "a")


@pytest.mark.parametrize("word", ["caption", "do", "see"])
def test_a_link_that_leads_nowhere_is_found_in_each_of_its_texts(tmp_path: Path, word: str) -> None:
    texts = {"caption": "c", "do": "d", "see": "s"} | {word: "[there](#nowhere)"}
    call = f"explore(lambda x: x, over={{'x': [1]}}, at={{'x': 1}}, alt='a', **{texts!r})"
    kept = made(tmp_path, call)
    (problem,) = prose.problems(LectureRuns(kept.lecture, kept), tmp_path, None, None)
    assert "nowhere" in str(problem) and problem.code == "broken-link"


# ---------------------------------------------------------------------------- drawn by a script of the author's

SCRIPT = "window.litbookPicture = { values: ({ a, b }) => ({ sum: a + b }), draw: () => 'drawn' };\n"
STILL = "from matplotlib.figure import Figure\n\n\ndef f(a, b):\n    return {'sum': a + b}\n"
CALL = (
    "explore(f, over={'a': range(3), 'b': range(100)}, at={'a': 1, 'b': 7}, module='sum.js', still=Figure(), "
    "caption='c', alt='a', do='Add.', see='More.')"
)


def scripted(folder: Path, call: str = CALL, script: str | bytes = SCRIPT, before: str = STILL) -> Record:
    (folder / "sum.js").write_bytes(script if isinstance(script, bytes) else script.encode())
    return made(folder, call, before)


def test_a_script_is_kept_with_what_the_function_gave_everywhere(tmp_path: Path) -> None:
    kept = scripted(tmp_path)
    live = kept.by_key["one"].pieces[0].live
    assert live is not None and live.script == SCRIPT and live.at == (1, 7) and "<svg" in live.still
    assert len(live.points) == 300 and live.points[107] == ((1, 7), '{"sum":8}', "")
    assert loads(dumps(kept)) == kept
    name, content = media.script(live)
    text = content.decode()
    assert text.startswith(SCRIPT) and '"labels": ["0", "1", "2"]' in text and '[[1, 7],{"sum":8}]' in text
    assert media.files([kept]) == {name: content}


def test_many_places_are_asked_by_lot_the_same_ones_in_every_run() -> None:
    def top(bits: int, most: str) -> int:
        return bits >> 16 if most == "half" else bits

    over: dict[str, Any] = {"bits": range(2**32), "most": ["half", "all"]}
    kept, given = sample_live(top, over, {"bits": 5, "most": "all"}, "<svg/>", SCRIPT)
    assert kept.sliders[0].span == (0, 2**32, 1) and kept.sliders[0].size == 2**32
    assert 250 <= len(kept.points) == len(given) <= 259 and given[5, "all"] == 5
    assert given[2**32 - 1, "all"] == 2**32 - 1, "both ends are among them"
    assert sample_live(top, over, {"bits": 5, "most": "all"}, "<svg/>", SCRIPT)[0] == kept


def test_what_is_not_finite_and_what_raises_is_kept_for_the_script_to_match() -> None:
    def f(x: int) -> Any:
        return {"inverse": 1 / x, "far": float("inf")} if x != 2 else [float("nan"), "text", None, True]

    kept, given = sample_live(f, {"x": range(3)}, {"x": 1}, "<svg/>", SCRIPT)
    assert [point[1:] for point in kept.points] == [
        ("", "division by zero"),
        ('{"inverse":1.0,"far":"inf"}', ""),
        ('["nan","text",null,true]', ""),
    ]
    assert set(given) == {1, 2}


@pytest.mark.parametrize(
    ("call", "script", "message"),
    [
        (CALL.replace("sum.js", "none.js"), SCRIPT, "cannot read 'none.js': No such file or directory"),
        (CALL, b"\xff", "cannot read 'sum.js': it is no text in UTF-8"),
        (CALL, SCRIPT + "/" * 10_000, "takes up to 10,000 bytes; 'sum.js' has"),
        (CALL, "alert(1)", "finds no picture in 'sum.js'"),
        (CALL.replace("still=Figure(), ", ""), SCRIPT, "give it the Matplotlib figure of its first point"),
        (CALL.replace("f,", "lambda a, b: object(),", 1), SCRIPT, "not object"),
        (CALL.replace("f,", "lambda a, b: 'x' * 400,", 1), SCRIPT, "keeps up to 60,000 bytes"),
        (CALL.replace("f,", "iter(range(9999)).__next__ and (lambda a, b, c=iter(range(9999)): next(c)),", 1),
         SCRIPT, "compute it from the sliders' places alone"),
        (CALL.replace("'a': 1,", "'a': 9,"), SCRIPT, "starts 'a' at 9, which is none of its places"),
    ],
)  # fmt: skip
def test_a_script_that_cannot_be_kept_is_refused(
    tmp_path: Path, call: str, script: Any, message: str
) -> None:
    errors = scripted(tmp_path, call, script).by_key["one"].errors
    assert [error.kind for error in errors] == ["author"] and message in errors[0].message


def test_a_recording_from_elsewhere_brings_no_script_to_a_page(tmp_path: Path) -> None:
    own = made(tmp_path, "note('x')")
    (tmp_path / "other").mkdir()
    assert media.files([own, scripted(tmp_path / "other")]) == {}


def test_a_point_that_comes_out_otherwise_is_told(tmp_path: Path) -> None:
    one = scripted(tmp_path)
    other = scripted(tmp_path, before=STILL.replace("a + b", "a + b + (a == b == 2)"))
    told = compare(other, one)
    changes = [(change.at, change.was, change.now) for d in told.differences for change in d.changes]
    assert changes == [("a=2, b=2", '{"sum":4}', '{"sum":5}')]


def test_a_page_has_the_still_picture_its_words_and_where_its_script_is(tmp_path: Path) -> None:
    kept = scripted(tmp_path)
    live = kept.by_key["one"].pieces[0].live
    assert live is not None
    text = pages.pages(kept)["index.md"]
    assert f'data-script="./{media.script(live)[0]}"' in text and text.count("<svg") >= 1
    assert "Add." in text and "More." in text and "assets/litbook/live.js" in text
    figure = text[text.index('class="lb-explore lb-live"') :]
    order = [
        figure.index(part)
        for part in ("<figcaption>", "Add.", "lb-verdict", "lb-stage", "lb-sliders", "More.")
    ]
    assert order == sorted(order), "what is asked, the result, the picture, and what moves it"
    assert "assets/litbook/explore.js" not in text
    assert "[explore: c]" in command(tmp_path / "lecture_sample.py", "--device", "cpu").stdout
