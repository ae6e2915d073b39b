"""The benchmarks: what they compute from measurements, that each of them runs, and what a record's size grows with."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from benchmarks import __main__ as command
from benchmarks import cases, goals, inside, one, page, texts
from benchmarks.spreads import chance, difference, interleaved, ratio, slope, spread
from tests.running import REPO, record

from litbook import trace

# ------------------------------------------------------------------------------- measurements


def test_a_spread_is_the_median_between_the_quartiles():
    assert spread([5, 1, 3, 2, 4]).data() == {"low": 2, "middle": 3, "high": 4, "count": 5}
    assert spread([7.0]).middle == 7.0


def test_ways_take_turns_and_each_round_begins_with_another():
    order: list[str] = []

    def turn(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = interleaved({name: lambda name=name: turn(name) for name in "abc"}, 3)  # type: ignore[misc]
    assert "".join(order) == "abcbcacab"
    assert found == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_ratios_are_formed_within_a_round():
    assert ratio([2, 20, 200], [1, 10, 100]) == spread([2, 2, 2])
    assert difference([2, 20, 200], [1, 19, 199]).middle == 1


def test_chance_is_the_two_sided_sign_test():
    assert chance([2, 2, 2], [1, 1, 1]) == 2 / 8
    assert chance([2, 1], [1, 2]) == 1
    assert chance([1, 1], [1, 1]) == 1  # nothing but ties
    assert chance([2] * 7 + [0], [1] * 8) == pytest.approx(2 * (1 + 8) / 2**8)


def test_a_slope_is_the_exponent_of_growth():
    assert slope([10, 100, 1000], [5, 50, 500]) == pytest.approx(1)
    assert slope([10, 100], [7, 7]) == pytest.approx(0)


# ------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    "case",
    [
        texts.loop(50, inspect=True),
        texts.straight(20),
        texts.recursion(7, 2),
        texts.tree(6),
        texts.training(3),
    ],
    ids=["loop", "straight", "recursion", "tree", "training"],
)
def test_a_case_says_how_many_of_its_lines_run(case):
    ran = 0

    def count(frame, event, argument):
        nonlocal ran
        if frame.f_code.co_filename != "case":
            return None
        ran += event == "line" and frame.f_code.co_name not in ("<module>", "main")
        return count

    namespace: dict[str, object] = {}
    exec(compile(case.text.replace("now < 1", "now < 99"), "case", "exec"), namespace)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        namespace["main"]()  # type: ignore[operator]
    finally:
        sys.settrace(before)
    assert case.lines == pytest.approx(ran, abs=10)  # what stands around the loop


def test_edtrace_gets_the_words_and_the_names_that_it_can_read():
    text = "from litbook import note\nx = 1  # @inspect x, x.real, x + 1 as B @hide\ny = 2  # @measure y as s\nz = 3  # plain\n"
    assert texts.for_edtrace(text) == (
        "from benchmarks.edtrace_words import note\nx = 1  # @inspect x x.real @hide\ny = 2  # @inspect y\nz = 3  # plain\n"
    )
    assert "@inspect" not in texts.for_edtrace(text, inspect=False)


def test_the_notebook_of_a_lecture_runs_its_sections_in_cells():
    text = cases.LECTURES["shared"].read_text(encoding="utf-8")
    notebook = nbformat.reads(texts.notebook(text, "shared"), as_version=4)
    nbformat.validate(notebook)
    assert "def main" in notebook.cells[0].source
    assert "__main__" not in notebook.cells[0].source
    assert notebook.cells[-1].source == "a_product_takes_time()"


# ------------------------------------------------------------------------------- every case, at a tiny size


def tiny(name: str) -> dict[str, Any]:
    """The arguments of each case, as small as they go."""
    sizes: dict[str, dict[str, Any]] = {
        "loop": {"size": 100, "small": 0, "inspect": True},
        "straight": {"size": 10, "small": 0},
        "recursion": {"size": 5, "times": 2, "small": 0},
        "tree": {"size": 5, "small": 0},
        "training": {"size": 60, "small": 0},
        "product": {"side": 8, "repeats": 3, "stepover": True, "edtrace": False},
        "snapshots": {"kind": "strided", "size": 4096, "edtrace": False},
        "growth": {"lines": [10, 20], "steps": [10, 20]},
    }
    return sizes[name]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, Any]:
    """Everything that the page shows, measured at tiny sizes in this process; two whole processes."""
    size = cases.Size(1, {}, 100, (2**10,), (10, 20), (10, 20), edtrace=False)
    planned = cases._cases(size)
    ran = {case: inside.CASES[case](rounds=1, **tiny(case)) for case in inside.CASES}
    place = tmp_path_factory.mktemp("whole")
    lecture = place / "lecture_tiny.py"
    lecture.write_text(texts.long(10).text, encoding="utf-8")
    whole: dict[str, Any] = {
        "seconds": {"plain": [], "litbook": []},
        "said": {},
        "failed": {},
    }
    for way in whole["seconds"]:
        cases._take_turn(way, cases._commands(lecture, place, False)[way], place, whole)
    return {
        "date": "2026-01-01T00:00:00Z",
        "took": 1.0,
        "machine": command._machine() | {"load": [0.0, 0.0]},
        "whole": {"lecture 02": whole, "shared": whole},
        "cases": {name: ran[case] for name, (case, _) in planned.items()},
        "snapshots": [{"kind": "float32", "size": 2**30, **ran["snapshots"]}],
        "growth": ran["growth"],
    }


def test_every_case_that_is_planned_is_one_that_there_is():
    assert {case for case, _ in cases._cases(cases.FULL).values()} | {"snapshots", "growth"} == set(
        inside.CASES
    )


def test_a_contestant_that_fails_is_named_with_its_reason(tmp_path):
    found: dict[str, Any] = {"seconds": {"plain": []}, "said": {}, "failed": {}}
    cases._take_turn("plain", [sys.executable, "-c", "raise ValueError('no such lecture')"], tmp_path, found)
    assert found["failed"] == {"plain": "ValueError: no such lecture"}


def test_every_goal_is_measured_and_shown(results):
    judged = goals.judged(results)
    assert [it.goal.what for it in judged] == [goal.what for goal in goals.GOALS]
    shown = page.tables(results)
    for it in judged:
        assert f"| {it.goal.what} |" in shown
    for size in re.findall(r"^\|.*\|$", shown, re.MULTILINE):
        assert "nan" not in size
    assert '<svg class="lb-plot"' in shown
    assert "#000000" not in shown  # ink follows the theme


def test_a_slow_down_beyond_a_limit_is_named_and_fails(results, capsys):
    slow = json.loads(json.dumps(results))
    slow["cases"]["a loop, its line inspected"]["seconds"]["litbook"] = [1.0]  # for 100 iterations
    assert command.report(slow) == 1
    said = capsys.readouterr().err
    assert (
        "slower than the limit: a loop of 10⁶ iterations with `@inspect`: 1e+04 s, limit 4 (goal 2)" in said
    )


def test_the_page_is_written_between_its_marks_only(results, tmp_path):
    file = tmp_path / "page.md"
    file.write_text(f"# Head\n\n{page.START}\nstale\n{page.END}\n\nTail\n", encoding="utf-8")
    page.write(file, results)
    page.write(file, results)
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"# Head\n\n{page.START}\n\nMeasured on 2026-01-01")
    assert text.endswith(f"{page.END}\n\nTail\n")
    assert "stale" not in text
    file.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="has no line '<!-- written by make bench -->'"):
        page.write(file, results)


def test_the_page_of_the_book_is_what_the_command_wrote():
    """Before the first run there are neither results nor tables."""
    written = command.PAGE.read_text(encoding="utf-8").partition(page.START)[2].partition(page.END)[0].strip()
    figure = re.compile(r"<svg.*</svg>")  # its coordinates depend on the fonts of the machine
    if command.RESULTS.exists():
        expected = page.tables(json.loads(command.RESULTS.read_text(encoding="utf-8")))
        assert figure.search(written)
    else:
        expected = ""
    assert figure.sub("", written) == figure.sub("", expected), "make bench writes it; nobody else"


def test_a_lecture_that_plain_python_cannot_run_is_no_benchmark(tmp_path, monkeypatch):
    lecture = tmp_path / "lecture_broken.py"
    lecture.write_text("def main():\n    1 / 0\n", encoding="utf-8")
    monkeypatch.setattr(
        cases, "_commands", lambda *_: {"plain": [sys.executable, "-c", "raise SystemExit('no such thing')"]}
    )
    with pytest.raises(RuntimeError, match=r"lecture_broken.py fails in plain Python: no such thing"):
        cases.whole(lecture, 1, edtrace=False)


def test_where_a_record_s_bytes_go_is_the_whole_record(tmp_path):
    text = trace.dumps(record(tmp_path, texts.long(30).text)).encode()
    weights = one.fields(text)
    assert {"sources", "claims", "pieces: note"} <= set(weights)
    assert sum(size for size, _ in weights.values()) == pytest.approx(len(text), rel=0.1)


# ------------------------------------------------------------------------------- growth, without a clock


def size_of(folder: Path, case: texts.Case) -> int:
    return len(trace.dumps(record(folder, case.text)).encode())


def test_a_record_does_not_grow_with_iterations(tmp_path):
    few, many = (size_of(tmp_path, texts.loop(n, inspect=True)) for n in (500, 20_000))
    assert many < few * 1.25  # 24 to 48 points of the series, and longer numbers
    few, many = (size_of(tmp_path, texts.training(n, width=4)) for n in (60, 150))
    assert many < few * 1.25


def test_a_record_does_not_grow_with_calls_beyond_its_budget(tmp_path):
    few, many = (size_of(tmp_path, texts.tree(n)) for n in (16, 18))
    assert many < few * 1.05


def test_a_record_grows_linearly_with_lines(tmp_path):
    small, middle, large = (size_of(tmp_path, texts.long(n)) for n in (200, 400, 800))
    assert (large - middle) / (middle - small) == pytest.approx(2, rel=0.05)


def test_the_benchmarks_are_documented(repo):
    assert "make bench" in (repo / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert repo == REPO
