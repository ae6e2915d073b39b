"""The benchmarks: what they compute from measurements, that each of them runs, and what a record's size grows with."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from benchmarks import __main__ as command
from benchmarks import (
    builds,
    cases,
    goals,
    inside,
    notebooks,
    numbers,
    one,
    outside,
    page,
    saves,
    texts,
    watched,
)
from benchmarks.spreads import Spread, chance, difference, interleaved, ratio, slope, spread
from tests.running import REPO, record

from litbook.record import encoding

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
        "pages": {"lecture": str(cases.LECTURES["shared"])},
        "growth": {"kind": "lines", "size": 20, "edtrace": False},
    }
    return sizes[name]


TINY = cases.Size(1, {}, 100, (2**10,), (10, 20), (10, 20), edtrace=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, Any]:
    """What the page shows, measured at tiny sizes in this process; two whole processes. No preview is started."""
    with notebooks.kernel() as kernel, pytest.MonkeyPatch.context() as patch:
        patch.setattr(notebooks, "kernel", lambda: contextlib.nullcontext(kernel))  # one serves all
        ran = {case: inside.CASES[case](rounds=1, **tiny(case)) for case in inside.CASES}
    place = tmp_path_factory.mktemp("whole")
    lecture = place / "lecture_tiny.py"
    lecture.write_text(texts.long(10).text, encoding="utf-8")
    whole: dict[str, Any] = {"seconds": {"plain": [], "litbook": []}, "memory": {}, "said": {}, "failed": {}}
    for way in whole["seconds"]:
        cases.take_turn(way, cases._commands(lecture, place, False)[way], place, whole, 60)
    grown = ran["growth"]
    commands = {goal.what: [0.1] for goal in goals.GOALS if goal.what.startswith("`run_lecture")}
    commands |= {name: [0.2] for name in cases_of_commands()}
    return {
        "date": "2026-01-01T00:00:00Z",
        "stages": {
            "lines": {"date": "2026-01-01T00:00:00Z", "took": 1.0, "load": [0.1, 0.2], "commit": "abc"}
        },
        "machine": command._machine(),
        "whole": {"lecture 02": whole, "shared": whole},
        "cases": {name: ran[case] for name, (case, _) in cases.planned(TINY).items()},
        "snapshots": {f"float32 {2**30}": {"kind": "float32", "size": 2**30, **ran["snapshots"]}},
        "pages": {"shared": ran["pages"]},
        "commands": commands,
        "save": SAVED,
        "build": {
            "seconds": [9.0],
            "said": [{"seconds": 8.0, "parts": {"drawing pages": 5.0, "MkDocs": 3.0}}],
        },
        "growth": {
            "lines": [grown, grown | {"lines": 2 * grown["lines"]}],
            "steps": [grown, grown | {"executed": 2 * grown["executed"]}],
        },
    }


def cases_of_commands() -> list[str]:
    """The commands that the stage of that name runs, which is told to run none."""
    found: dict[str, Any] = cases._commands_that_answer(replace(TINY, commands=0), lambda _: None)["commands"]
    return list(found)


SPANS = {
    "noticed": [(10.25, 10.5)],
    "run": [(11.0, 13.0)],
    "read": [(11.0, 11.5)],
    "probes": [(11.5, 11.75)],
    "sections": [(12.0, 12.25), (12.25, 12.5)],
    "asked": [(10.5, 13.5)],
    "page": [(13.5, 14.0), (14.0, 14.5)],
}
SAVED = {
    "seconds": {"page": [5.0], "browser": [5.5]},
    "stages": [saves._by_stage(SPANS, 10.0, 15.0)],
    "largest page": 300_000,
    "scripts": 20_000,
    "pages": 3,
}


def test_every_case_that_is_planned_is_one_that_there_is():
    planned = {case for case, _ in cases.planned(cases.FULL).values()}
    assert planned | {"snapshots", "pages", "growth"} == set(inside.CASES)


def test_a_contestant_that_fails_is_named_with_its_reason(tmp_path):
    found: dict[str, Any] = {"seconds": {"plain": []}, "memory": {}, "said": {}, "failed": {}}
    cases.take_turn(
        "plain", [sys.executable, "-c", "raise ValueError('no such lecture')"], tmp_path, found, 60
    )
    assert found["failed"] == {"plain": "ValueError: no such lecture"}


def gone(process: int) -> bool:
    """Whether it ends soon. One that ended may wait for init to bury it."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split()[2] == "Z":
                return True
        time.sleep(0.05)
    return False


def test_a_contestant_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    child = f"open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    starts = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {'import os, time; ' + child!r}])"
    )
    found: dict[str, Any] = {"seconds": {"plain": []}, "memory": {}, "said": {}, "failed": {}}
    cases.take_turn("plain", [sys.executable, "-c", starts], tmp_path, found, 2)
    assert found["failed"] == {"plain": "not finished after 2 s"}
    started = tmp_path / "child"
    if started.exists() and started.read_text():  # a machine may be slower than that
        assert gone(int(started.read_text()))


def test_the_memory_of_a_process_is_its_own(tmp_path):
    ended = outside.call([sys.executable, "-c", "x = bytearray(b'1') * 300_000_000"], tmp_path, 60)
    assert ended.status == 0
    assert 300_000_000 < ended.memory < 3_000_000_000


@pytest.mark.slow
def test_every_goal_is_measured_and_shown(results):
    judged = goals.judged(results)
    assert [it.goal.what for it in judged] == [goal.what for goal in goals.GOALS]
    shown = page.tables(results)
    for it in judged:
        assert f"| {it.goal.what} |" in shown
        assert it.goal.why(results).endswith("."), it.goal.what
        assert it.met or it.goal.why(results) in shown
    for size in re.findall(r"^\|.*\|$", shown, re.MULTILINE):
        assert "nan" not in size
    assert '<svg class="lb-plot"' in shown
    assert "#000000" not in shown  # ink follows the theme


def test_what_is_done_to_a_lecture_before_a_save_shows_a_value_in_that_section():
    text = (cases.LECTURES["lecture 02"] / f"{saves.PART}.py").read_text(encoding="utf-8")
    names = saves.sections(text, 6)
    assert len(set(names)) == 6
    first, last = names[0], names[-1]
    text = saves.changed(saves.changed(text, first, 80_000_000), last, 80_000_001)
    functions = {n.name: n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    assert ast.unparse(functions[first].body[1]) == "saved_now = 80000000"
    assert ast.unparse(functions[last].body[1]) == "saved_now = 80000001"
    assert all(ast.get_docstring(functions[name]) for name in names)


def test_a_number_just_beside_its_goal_does_not_look_like_it():
    assert numbers.shown(Spread(1.0, 1.0524, 1.1, 5), "×", 1.05).startswith("1.052\u00a0×")
    assert numbers.shown(Spread(1.0, 1.05, 1.1, 5), "×", 1.05).startswith("1.05\u00a0×")
    assert numbers.shown(Spread(1.0, 1.0524, 1.1, 5), "×").startswith("1.05\u00a0×")


def test_the_stages_of_a_save_add_up_to_it():
    parts = saves._by_stage(SPANS, 10.0, 15.0)
    assert sum(parts.values()) == pytest.approx(5.0)
    assert parts["reading the text"] == 0.5
    assert parts["sections"] == 0.5
    assert parts["making the page"] == 1.0


def test_a_watched_call_that_calls_itself_is_one_stage(tmp_path):
    class Room:
        def down(self, n: int) -> int:
            return self.down(n - 1) + 1 if n else 0

    watched.timed(Room, "down", "going down", tmp_path / "log")
    assert Room().down(3) == 3
    (line,) = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    stage, start, end, pid = json.loads(line)
    assert stage == "going down"
    assert start <= end
    assert pid == os.getpid()


def test_what_is_watched_is_there():
    """`watched` replaces these by name."""
    from litbook.lecture import parse
    from litbook.run import process, run
    from litbook.site.preview import render, worker

    for room, names in (
        (worker.Worker, ("take_changes",)),
        (render.Renderer, ("make",)),
        (process.ForkServerRunner, ("record_of",)),
        (run, ("run", "instrument_files")),
        (run.Execution, ("section",)),
        (parse, ("read_usable",)),
    ):
        assert all(callable(getattr(room, name)) for name in names)
    assert "torch" in process.PRELOADED


# ------------------------------------------------------------------------------- runs in stages


@pytest.fixture
def stages(monkeypatch, tmp_path) -> list[str]:
    """Two stages that measure nothing, one of which fails at first; what was measured."""
    measured: list[str] = []

    def first(say: Any) -> dict[str, Any]:
        measured.append("first")
        return {"commands": {"`one`": [1.0]}}

    def second(say: Any) -> dict[str, Any]:
        measured.append("second")
        if measured.count("second") == 1:
            raise RuntimeError("the machine is full")
        return {"commands": {"`two`": [2.0]}}

    planned = [cases.Stage("first", "one thing", first), cases.Stage("second", "another", second)]
    monkeypatch.setattr(cases, "stages", lambda size: planned)
    monkeypatch.setattr(command, "KEPT", tmp_path / "kept" / "unfinished.json")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(outside, "python", lambda: Path(sys.executable))
    (tmp_path / "page.md").write_text(f"{page.START}\n{page.END}\n", encoding="utf-8")
    return measured


def test_a_stage_that_fails_keeps_the_others_and_says_how_to_go_on(stages, tmp_path, capsys):
    assert command.main([]) == 2
    assert stages == ["first", "second"]
    said = capsys.readouterr().err
    assert "second was not measured: the machine is full" in said
    assert "make bench ARGS=--only=second" in said
    assert not (tmp_path / "results.json").exists()
    assert command.main(["--resume"]) == 0
    assert stages == ["first", "second", "second"]
    commands = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["commands"]
    assert commands == {"`one`": [1.0], "`two`": [2.0]}
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| `one` | 1.00 | 1 |" in text
    assert "| `two` | 2.00 | 1 |" in text
    assert not (tmp_path / "kept" / "unfinished.json").exists()


def test_one_stage_is_measured_again_and_the_rest_is_kept(stages, tmp_path):
    command.main([])
    command.main(["--resume"])
    assert command.main(["--only=first"]) == 0
    assert stages == ["first", "second", "second", "first"]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert list(results["stages"]) == ["first", "second"]
    assert list(results["commands"]) == ["`one`", "`two`"]


def test_results_of_another_machine_are_not_added_to(stages, tmp_path, capsys):
    command.main([])
    command.main(["--resume"])
    file = tmp_path / "results.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    results["machine"]["cpu"] = "another"
    file.write_text(json.dumps(results), encoding="utf-8")
    assert command.main(["--only=first"]) == 2
    assert "is of another machine or of other versions" in capsys.readouterr().err


def test_a_stage_that_does_not_exist_is_named_with_those_that_do(capsys):
    assert command.main(["--only=speed"]) == 2
    assert (
        "no stage named speed; there are: processes-shared, processes-lecture-02" in capsys.readouterr().err
    )


def test_a_quick_look_writes_nothing(stages, tmp_path):
    assert command.main(["--quick"]) == 0 or stages  # its second stage fails the first time
    assert command.main(["--quick"]) == 0
    assert not (tmp_path / "results.json").exists()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == f"{page.START}\n{page.END}\n"


@pytest.mark.slow
def test_a_slow_down_beyond_a_limit_is_named_and_fails(results, capsys):
    slow = json.loads(json.dumps(results))
    slow["cases"]["a loop, its line inspected"]["seconds"]["litbook"] = [1.0]  # for 100 iterations
    assert command.report(slow) == 1
    said = capsys.readouterr().err
    assert (
        "slower than the limit: a loop of 10⁶ iterations with `@inspect`: 1e+04 s, limit 4 (goal 1)" in said
    )


@pytest.mark.slow
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
        cases.whole(lecture, {"plain": 1}, TINY, lambda _: None)


def test_where_a_record_s_bytes_go_is_the_whole_record(tmp_path):
    text = encoding.dumps(record(tmp_path, texts.long(30).text)).encode()
    weights = one.fields(text)
    assert {"sources", "sections: claims", "pieces: note"} <= set(weights)
    assert sum(size for size, _ in weights.values()) == pytest.approx(len(text), rel=0.2)


# ------------------------------------------------------------------------------- growth, without a clock


def size_of(folder: Path, case: texts.Case) -> int:
    return len(encoding.dumps(record(folder, case.text)).encode())


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


def test_the_stages_of_a_build_are_functions_that_there_are():
    assert [name for room, name, _ in builds.stages() if not callable(getattr(room, name, None))] == []


def test_the_benchmarks_are_documented(repo):
    assert "make bench" in (repo / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert repo == REPO
