"""The benchmarks: that each case measures, what is made of measurements, and what a record's size grows with."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from benchmarks import __main__ as command
from benchmarks import contestants, goals, inside, one, page, saves, stages, texts
from benchmarks.results import Results, Spread, add, dump, growth, interleaved, load, ratio, spread
from tests.running import REPO, record

from litbook.record import encoding

# ------------------------------------------------------------------------------- measurements


def test_a_spread_is_the_median_between_the_quartiles():
    assert spread([5, 1, 3, 2, 4]) == Spread(2, 3, 4)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0)


def test_contestants_take_turns_and_each_round_begins_with_another():
    order: list[str] = []

    def turn(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = interleaved({name: lambda name=name: turn(name) for name in "abc"}, 3)  # type: ignore[misc]
    assert "".join(order) == "abcbcacab"
    assert found == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_ratios_are_formed_within_a_round_and_results_survive_their_file(tmp_path):
    results: Results = {}
    add(results, "time / loop", {"plain": [1, 10, 100], "litbook": [2, 20]})
    add(results, "time / loop", {"litbook": [200]})  # a later process
    dump(tmp_path / "results.json", results)
    assert ratio(load(tmp_path / "results.json"), "time / loop / litbook", "time / loop / plain") == [2, 2, 2]


def test_growth_is_the_exponent_between_the_two_largest_sizes():
    results: Results = {}
    for n in (10, 100, 1000):
        add(results, f"growth / {n:,} lines", {"run": n / 2 if n > 10 else 40, "record": 7})
    assert growth(results, "growth", "run") == pytest.approx(1)
    assert growth(results, "growth", "record") == pytest.approx(0)


# ------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    "case",
    [texts.loop(50, inspect=True), texts.straight(20), texts.recursion(7, 2), texts.tree(6), texts.training(3)],
    ids=["loop", "straight", "recursion", "tree", "training"],
)  # fmt: skip
def test_a_case_says_how_many_of_its_lines_run(case):
    ran = 0

    def count(frame, event, argument):
        nonlocal ran
        if frame.f_code.co_filename != "case":
            return None
        ran += event == "line" and frame.f_code.co_name not in ("<module>", "main")
        return count

    namespace: dict[str, Any] = {}
    exec(compile(case.text.replace("now < 1", "now < 99"), "case", "exec"), namespace)
    before = sys.gettrace()
    sys.settrace(count)
    try:
        namespace["main"]()
    finally:
        sys.settrace(before)
    assert case.lines == pytest.approx(ran, abs=10)  # what stands around the loop


def test_peers_get_their_words_and_names_that_they_can_read():
    text = (
        "from litbook import note\nx = 1  # @inspect x, x.real\ny = 2  # @measure y\nz = 3, 4  # plain, so\n"
    )
    assert texts.renamed(text, "lectrace") == (
        "from lectrace import text as note\nx = 1  # @inspect x x.real\ny = 2  # @inspect y\nz = 3, 4  # plain, so\n"
    )


def test_the_notebook_of_a_lecture_runs_its_sections_in_cells():
    notebook = texts.notebook(stages.SHARED.read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    assert "def main" in notebook.cells[0].source
    assert "__main__" not in notebook.cells[0].source
    assert notebook.cells[-1].source == "a_product_takes_time()"


def test_what_is_done_to_a_lecture_before_a_save_shows_a_value_in_that_section():
    text = (stages.LECTURE_02 / f"{saves.MODULE}.py").read_text(encoding="utf-8")
    changed = saves.with_a_value(text)
    line = f"    saved_now = {saves.FIRST}  # @inspect saved_now\n"
    assert changed.replace(line, "") == text
    assert re.search(rf'def {saves.SECTION}\(\) -> None:\n    """[^"]+"""\n{re.escape(line)}', changed)


# ------------------------------------------------------------------------------- every case, at a tiny size


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """What this process can measure in seconds, without peers."""
    found: Results = {}
    for kind, small in (
        ("a loop, its line inspected", 100),
        ("lines that run once", 10),
        ("a training loop", 60),
    ):
        found |= inside.lines(kind, small, 0, rounds=2)
    found |= inside.matmul("small, `@stepover`", 8, 3, stepover=True, edtrace=False, rounds=2)
    found |= inside.snapshots("float32", 4096, edtrace=False, rounds=2)
    for kind in ("strided", "int8"):
        found |= inside.snapshots(kind, 4096, edtrace=False, rounds=1)
    for size in (20, 60):
        found |= inside.growth("lines", size, edtrace=False, rounds=1)
        found |= inside.growth("iterations", size, edtrace=False, rounds=1)
    lecture = tmp_path_factory.mktemp("whole") / "lecture_tiny.py"
    lecture.write_text(texts.long(10).text, encoding="utf-8")
    for way in (one.plain, one.litbook):
        way(lecture, "lecture 02", found)
    about = {"date": "2026-01-01 00:00", "machine": "a machine", "commit": "abc", "load": "0.1 / 0.2"}
    absent = json.dumps({"edtrace": "not installable here: no network"})
    add(found, "this run / lines", {"seconds": 1.0}, absent=absent, **about)
    return found


def test_every_goal_names_what_is_measured():
    """Of the kept results: a name that differs by a letter would leave the goal out, silently."""
    results = load(command.RESULTS)
    missing = {goal.what for goal in goals.GOALS} - {goal.what for goal, *_ in goals.judged(results)}
    absent = [results[name].get_metadata()["absent"] for name in results if name.startswith("this run /")]
    assert missing <= set().union(*map(json.loads, absent))


def test_the_page_is_written_between_its_marks_only(results, tmp_path):
    file = tmp_path / "page.md"
    file.write_text(f"# Head\n\n{page.START}\nstale\n{page.END}\n\nTail\n", encoding="utf-8")
    page.write(file, file, results)
    page.write(file, file, results)
    text = file.read_text(encoding="utf-8")
    assert text.startswith(f"# Head\n\n{page.START}\n\n- **a machine.** lines: 2026-01-01 00:00 UTC")
    assert text.endswith(f"{page.END}\n\nTail\n")
    assert "stale" not in text
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text)
    assert "- **Not measured.** edtrace: not installable here: no network." in text
    for goal, *_ in goals.judged(results):
        assert f"| {goal.what} |" in text
    assert text.count("<svg") == 2
    assert "#000000" not in text  # ink follows the theme
    file.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="has no line '<!-- written by make bench -->'"):
        page.write(file, file, results)


def test_words_in_the_plots_are_twelve_pixels_on_a_phone(results):
    """The column of a phone 390 pixels wide has 358; a plot fills it."""
    for plot in re.findall(r"<svg.*?</svg>", page.body(results), re.DOTALL):
        wide = float(re.search(r'viewBox="0 0 ([\d.]+)', plot)[1])  # type: ignore[index]
        sizes = [float(it) for it in re.findall(r"""font-size[:=]"?([\d.]+)px""", plot)]
        assert min(sizes) * 358 / wide >= 12


def test_the_page_of_the_book_is_what_the_command_wrote():
    written = command.PAGE.read_text(encoding="utf-8").partition(page.START)[2].partition(page.END)[0].strip()
    figure = re.compile(r"<svg.*?</svg>", re.DOTALL)  # its coordinates depend on the fonts of the machine
    expected = page.body(load(command.RESULTS))
    assert figure.search(written)
    assert figure.sub("", written) == figure.sub("", expected), "make bench writes it; nobody else"


def test_a_time_beyond_a_limit_is_named_and_fails(results, capsys):
    name = "each line that runs / a loop, its line inspected"
    slow = {key: it for key, it in results.items() if not key.startswith(name)}
    add(slow, name, {"litbook": 0.01})
    assert command.report(slow) == 1
    assert "beyond the limit: a loop of 10⁶ iterations with `@inspect`: 2e+04 s" in capsys.readouterr().err


# ------------------------------------------------------------------------------- processes and stages


def test_the_memory_of_a_process_is_its_own_and_a_failure_is_said(tmp_path):
    program = "x = bytearray(b'1') * 300_000_000"
    seconds, memory = contestants.call([sys.executable, "-c", program], tmp_path, 60)
    assert seconds > 0
    assert 300_000_000 < memory < 3_000_000_000
    with pytest.raises(contestants.Failed, match="ZeroDivisionError: division by zero"):
        contestants.call([sys.executable, "-c", "1 / 0"], tmp_path, 60)


def test_a_contestant_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    child = f"import os, time; open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(contestants.Failed, match="not finished after 4 s"):
        contestants.call([sys.executable, "-c", starts], tmp_path, 4)
    started = tmp_path / "child"
    if started.exists() and started.read_text():  # a machine may be slower than that
        end = time.monotonic() + 10
        while time.monotonic() < end and alive(int(started.read_text())):
            time.sleep(0.05)
        assert not alive(int(started.read_text()))


def alive(process: int) -> bool:
    """Whether it runs; one that ended may wait for init to bury it."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except OSError:
        return False


@pytest.fixture
def measured(monkeypatch, tmp_path) -> list[str]:
    """Two stages that measure a number each, the second of which fails at first; what was measured."""
    measured: list[str] = []

    def stage(name: str) -> Any:
        def measure(it: stages.Measuring) -> None:
            measured.append(name)
            if measured == ["first", "second"]:
                raise contestants.Failed("the machine is full")
            add(it.results, f"a stage / {name}", {"seconds": 1.0})

        return measure

    monkeypatch.setattr(stages, "STAGES", {name: stage(name) for name in ("first", "second")})
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(contestants, "PLACE", tmp_path / "kept")
    monkeypatch.setattr(contestants, "python", lambda: (Path(sys.executable), {}))
    (tmp_path / "page.md").write_text(f"{page.START}\n{page.END}\n", encoding="utf-8")
    return measured


def test_a_stage_that_fails_keeps_the_others_and_one_is_measured_again(measured, tmp_path, capsys):
    assert command.main([]) == 2
    assert "second was not measured: make bench ARGS=--only=second" in capsys.readouterr().err
    assert not (tmp_path / "results.json").exists()
    assert command.main(["--only=second"]) == 0
    assert measured == ["first", "second", "second"]
    assert {"a stage / first / seconds", "a stage / second / seconds"} <= set(load(tmp_path / "results.json"))
    assert command.main(["--only=first"]) == 0
    assert load(tmp_path / "results.json")["a stage / first / seconds"].get_nvalue() == 1
    assert "| first | 1.00" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_quick_look_writes_beside_the_results(measured, tmp_path):
    measured.append("so that none fails")
    assert command.main(["--quick"]) == 0
    assert not (tmp_path / "results.json").exists()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == f"{page.START}\n{page.END}\n"
    assert "| first | 1.00" in (tmp_path / "kept" / "quick.md").read_text(encoding="utf-8")


def test_a_stage_that_does_not_exist_is_named_with_those_that_do(capsys):
    with pytest.raises(SystemExit):
        command.main(["--only=speed"])
    assert "no stage named speed; there are: shared, lecture-02" in capsys.readouterr().err


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


def test_the_benchmarks_are_documented_and_short(repo):
    assert "make bench" in (repo / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert repo == REPO
