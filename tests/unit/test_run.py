"""Running: seeds, sections alone, devices, modules beside a lecture, two runs in one process, time-outs."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.running import HEAD, called, claims, failures, line_of, messages, record, section, shown, write

from litbook.errors import Interrupted, NotFound, TimedOut, UnusableLecture
from litbook.probe import author
from litbook.record import encoding, model
from litbook.rules import outcome
from litbook.run import environment
from litbook.run.run import NoDevice, run

RANDOM = f"""{HEAD}
import random
import numpy
import torch
def main():
    random.random()
    first()
    after = random.random()  # @inspect after
    second()
def first():
    a = random.random()  # @inspect a
    b = float(numpy.random.rand())  # @inspect b
    c = torch.rand(1).item()  # @inspect c
def second():
    d = random.random()  # @inspect d
    e = torch.rand(1).item()  # @inspect e
    third()
    f = random.random()  # @inspect f
def third():
    g = random.random()  # @inspect g
"""


def same(record: model.Record) -> model.Record:
    """The record without what differs from run to run on purpose."""
    environment = replace(record.environment, date="", commit=None)
    return replace(
        record,
        environment=environment,
        seconds=0.0,
        peak=0,
        sections=tuple(replace(it, seconds=0.0) for it in record.sections),
    )


# ------------------------------------------------------------------------ seeds


def test_a_section_alone_gives_the_values_of_the_whole_run(tmp_path: Path) -> None:
    whole = record(tmp_path, RANDOM)
    for names, texts in (
        (["first"], "abc"),
        (["second"], "defg"),
        (["third"], "g"),
        (["third", "first"], "gabc"),
    ):
        alone = record(tmp_path, RANDOM, sections=names)
        assert alone.asked == tuple(names)
        assert {t: shown(alone, t) for t in texts} == {t: shown(whole, t) for t in texts}
        assert {v.text for it in alone.sections for v in it.values} == set(texts)


def test_a_section_leaves_the_random_state_of_its_caller_alone(tmp_path: Path) -> None:
    whole = record(tmp_path, RANDOM)
    random.seed(0)
    random.random()
    assert shown(whole, "after") == [random.random()]
    random.seed(0)  # d and g come first after a seed, f follows d
    first, second = random.random(), random.random()
    assert (shown(whole, "d"), shown(whole, "g"), shown(whole, "f")) == ([first], [first], [second])


def test_another_seed_gives_other_values_and_is_in_the_record(tmp_path: Path) -> None:
    whole, other = record(tmp_path, RANDOM), record(tmp_path, RANDOM, seed=7)
    assert (whole.environment.seed, other.environment.seed) == (0, 7)
    assert shown(whole, "a") != shown(other, "a")


def test_two_runs_in_one_process_give_equal_records(tmp_path: Path) -> None:
    assert same(record(tmp_path, RANDOM)) == same(record(tmp_path, RANDOM))


def test_a_run_leaves_the_random_state_of_the_process_alone(tmp_path: Path) -> None:
    random.seed(42)
    expected = random.Random(42).random()
    record(tmp_path, RANDOM)
    assert random.random() == expected


def test_a_section_asked_for_twice_runs_once(tmp_path: Path) -> None:
    assert shown(record(tmp_path, RANDOM, sections=["third", "third"]), "g") == [
        pytest.approx(0.8444218515250481)
    ]


# ------------------------------------------------------------------------ devices

NEEDS = f"""{HEAD}
def main():
    here()
    there()
def here():
    assert 1 == 1, "here"
@requires("cuda")
def there():
    assert 1 == 1, "there"
    inside()
def inside():
    assert 1 == 1, "inside"
"""


def test_claims_that_need_another_device_are_counted_with_those_of_nested_sections(tmp_path: Path) -> None:
    made = record(tmp_path, NEEDS, device="cpu")
    assert [(c.caption, c.verdict, c.why) for c in (it for _, it in made.claims())] == [
        ("here", "holds", ""), ("there", "needs-device", "needs cuda"), ("inside", "needs-device", "needs cuda"),
    ]  # fmt: skip
    assert made.count() == {"holds": 1, "needs-device": 2}
    assert outcome.summary(made) == "1 claim holds, 0 fail, 2 not run"
    assert outcome.holds(made)


def test_a_nested_section_asked_for_alone_needs_the_device_of_the_part_above_it(tmp_path: Path) -> None:
    made = record(tmp_path, NEEDS, device="cpu", sections=["inside"])
    assert made.count() == {"needs-device": 1}


def test_a_device_that_is_not_here_is_refused_before_anything_runs(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("needs a machine without CUDA")
    with pytest.raises(NoDevice, match="no CUDA device here"):
        record(tmp_path, section(f"open({str(tmp_path / 'ran')!r}, 'w')"), device="cuda")
    assert not (tmp_path / "ran").exists()


# ------------------------------------------------------------------------ what is refused, what is reported


def test_no_such_section_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no section named 'hero'; did you mean 'here'"):
        record(tmp_path, NEEDS, sections=["hero"])


def test_a_lecture_that_cannot_be_read_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableLecture, match="No such file"):
        run(tmp_path / "nowhere.py")


def test_claims_behind_an_exception_are_not_reached(tmp_path: Path) -> None:
    made = record(tmp_path, section("assert 1 < 2, 'before'\n1 / 0\nassert 1 < 2, 'after'"))
    assert [c.verdict for c in (it for _, it in made.claims())] == ["holds", "not-reached"]
    assert outcome.summary(made).endswith("1 was not reached; 1 error")
    assert not outcome.holds(made)


def test_only_the_claims_of_the_sections_asked_for_are_counted(tmp_path: Path) -> None:
    made = record(tmp_path, NEEDS, sections=["here"])
    assert made.count() == {"holds": 1}


def test_an_error_in_a_nested_part_leaves_its_siblings_running(tmp_path: Path) -> None:
    text = f"""{HEAD}
def main():
    part()
    last()
def part():
    bad()
    good()
    assert 1 == 1, "the part goes on"
def bad():
    raise KeyError("x")
def good():
    assert 1 == 1, "good"
def last():
    assert 1 == 1, "last"
"""
    made = record(tmp_path, text)
    assert [c.verdict for c in (it for _, it in made.claims())] == ["holds"] * 3
    assert messages(made) == [f"{line_of(text, 'raise')}: KeyError: 'x'"]
    assert [it.key for it, _ in made.errors()] == ["bad"]


def test_the_traceback_holds_the_lectures_own_lines(tmp_path: Path) -> None:
    text = section("helper('[')", "import json\ndef helper(x):\n    return json.loads(x)\n")
    made = record(tmp_path, text)
    call, raised = line_of(text, "helper('[')"), line_of(text, "return json")
    ((_, error),) = made.errors()
    assert error.trace == (
        ("lecture_sample.py", call, "one", "helper('[')"),
        ("lecture_sample.py", raised, "helper", "return json.loads(x)"),
    )
    assert made.by_key["one"].first + error.line == call
    assert f"called from lecture_sample.py:{call} in one" in failures(made)[0]


def test_an_error_of_an_authors_word_is_named_as_such(tmp_path: Path) -> None:
    made = record(tmp_path, section("note(3)"))
    ((_, error),) = made.errors()
    assert (error.kind, error.message) == (
        "author",
        "AuthorError: note() takes text, not int: 3",
    )


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("note()", "it is called as note(text)"),
        ("image('a.png')", "it is called as image(path, alt=…), and may have caption=…, width=…"),
        ("question('Why?', 3)", "it is called as question(text, answer=…), and may have check=…, unit=…"),
        ("question('Why?', answer=3, unti='B')", "it is called as question(text, answer=…)"),
        ("len()", ""),
        ("helper()", ""),
    ],
)
def test_a_word_that_is_called_in_another_way_says_how(tmp_path: Path, code: str, way_out: str) -> None:
    made = record(tmp_path, section(code, "def helper(x):\n    return x\n"))
    ((_, error),) = made.errors()
    assert error.message.startswith("TypeError: ")
    assert error.message.partition("\n")[2].startswith(way_out)
    assert bool(error.message.partition("\n")[2]) is bool(way_out)


# ------------------------------------------------------------------------ what a lecture may count on


def test_what_a_lecture_defines_can_be_pickled_inspected_and_resolved(tmp_path: Path) -> None:
    made = record(tmp_path, section(
        """
        p = pickle.loads(pickle.dumps(Point(1, 2)))  # @inspect p.x
        assert p == Point(1, 2), "pickled"
        assert inspect.getsource(Point.norm).strip().startswith("def norm"), "source"
        assert inspect.getsource(helper).startswith("def helper"), "source"
        assert typing.get_type_hints(Point)["x"] is int, "hints"
        assert helper.__module__ == __name__ == "lecture_sample", "module"
        assert sys.modules[__name__].helper is helper, "importable"
        assert copy.deepcopy(p) == p, "copied"
        assert str(Path(__file__).name) == "lecture_sample.py", "file"
        assert Colour.RED.name == "RED", "enum"
        """,
        """
        from __future__ import annotations
        import copy, enum, inspect, pickle, sys, typing
        from dataclasses import dataclass
        from pathlib import Path
        @dataclass
        class Point:
            x: int
            y: int
            def norm(self):
                return self.x + self.y
        class Colour(enum.Enum):
            RED = 1
        def helper(x):
            return x
        """,
    ).replace(HEAD, '"""A lecture."""\n'))  # fmt: skip
    assert messages(made) == []
    assert set(claims(made).values()) == {"holds"}


def test_a_module_beside_the_lecture_is_read_afresh_by_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # some environments set it
    text = section("x = beside.X  # @inspect x\ny = pack.deep.Y  # @inspect y", "import beside, pack.deep")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    for number in (1, 2, 3):  # the same size, within one second: a cached .pyc would look fresh
        write(tmp_path, f"X = {number}\n", "beside.py")
        write(tmp_path / "pack", f"Y = {number}\n", "deep.py")
        made = record(tmp_path, text)
        assert (shown(made, "x"), shown(made, "y")) == ([number], [number])
    assert not {"beside", "pack", "pack.deep", "lecture_sample"} & set(sys.modules)
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_lecture_named_like_a_library_does_not_replace_it(tmp_path: Path) -> None:
    import decimal

    assert messages(record(tmp_path, section("pass"), "decimal.py")) == []
    assert sys.modules["decimal"] is decimal


def test_modules_of_installed_libraries_stay_also_when_they_lie_below_the_lecture(tmp_path: Path) -> None:
    installed = tmp_path / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    write(installed, "X = 1\n", "installed_for_test.py")
    made = record(
        tmp_path, section(f"sys.path.insert(0, {str(installed)!r})\nimport installed_for_test", "import sys")
    )
    assert messages(made) == []
    assert sys.modules.pop("installed_for_test").X == 1


def test_a_lecture_runs_in_a_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    before = Path.cwd()
    made = record(
        tmp_path, section("folder = os.getcwd()  # @inspect folder\nopen('x', 'w').close()", "import os")
    )
    (folder,) = shown(made, "folder")
    assert not Path(folder.strip("'")).exists()
    assert Path.cwd() == before
    assert [p.name for p in tmp_path.iterdir()] == ["lecture_sample.py"]


def test_main_may_be_decorated(tmp_path: Path) -> None:
    before = "import functools\ndef quietly(f):\n    @functools.wraps(f)\n    def run():\n        return f()\n    return run\n"
    text = section("assert 1 == 1", before).replace("def main", "@quietly\ndef main")
    made = record(tmp_path, text)
    assert (claims(made), messages(made)) == ({"1 == 1": "holds"}, [])


def test_warnings_of_a_lecture_do_not_stop_it(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="mind this"):
        made = record(tmp_path, section("warnings.warn('mind this')\nassert 1 == 1", "import warnings"))
    assert claims(made) == {"1 == 1": "holds"}


@pytest.mark.parametrize(
    "line",
    [
        "sys.stdout = io.StringIO()",
        "sys.stdout.close()",
        "sys.stdout = None",
        "del sys.stdout",
        "contextlib.redirect_stdout(io.StringIO()).__enter__()",
    ],
)
def test_a_lecture_may_do_to_its_stdout_what_it_likes(tmp_path: Path, line: str) -> None:
    before = sys.stdout
    text = f"""{HEAD}
import contextlib, io, sys
def main():
    one()
    two()
def one():
    {line}
    print("lost or kept")
def two():
    assert 1 == 1
"""
    made = record(tmp_path, text)
    assert claims(made) == {"1 == 1": "holds"}
    assert sys.stdout is before


def test_stdin_is_empty(tmp_path: Path) -> None:
    made = record(tmp_path, section("input()"))
    assert "EOFError" in messages(made)[0]


@pytest.mark.slow
def test_compiled_functions_run_as_they_stand(tmp_path: Path) -> None:
    text = section(
        """
        y = double(torch.ones(3))  # @inspect y
        z = quick(3)  # @inspect z
        assert torch.equal(y, 2 * torch.ones(3)), "compiled"
        """,
        """
        import torch
        @torch.compile(backend="eager", fullgraph=True)
        def double(x):
            y = x + x
            return y
        def quick(n):  # @stepover
            total = 0
            for i in range(n):
                total += i  # @inspect total
            return total
        """,
    )
    made = record(tmp_path, text)
    assert messages(made) == []
    assert shown(made, "z") == [3]
    assert shown(made, "total") == []
    assert called(made) == ["<module>", "main", "one"]


# ------------------------------------------------------------------------ ending early


def test_a_time_out_is_raised_with_the_line_reached_and_all_is_restored(tmp_path: Path) -> None:
    before = sys.stdout, Path.cwd(), dict(os.environ), signal.getsignal(signal.SIGALRM)
    text = section("time.sleep(60)", "import time")
    with pytest.raises(TimedOut) as caught:
        record(tmp_path, text, timeout=1)
    assert str(caught.value) == (
        f"timed out after 1 s; it had reached lecture_sample.py:{line_of(text, 'sleep')}\n    time.sleep(60)\n"
        "    if it needs longer: --timeout 4"
    )
    assert (sys.stdout, Path.cwd(), dict(os.environ), signal.getsignal(signal.SIGALRM)) == before
    assert author.hand_to(None) is None


def test_ctrl_c_is_raised_with_the_line_reached(tmp_path: Path) -> None:
    text = section("os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)  # here", "import os, signal, time")
    with pytest.raises(Interrupted, match=r"interrupted; it had reached lecture_sample.py:1[0-9]"):
        record(tmp_path, text)


def test_a_lecture_that_interrupts_itself_is_interrupted(tmp_path: Path) -> None:
    text = section("raise KeyboardInterrupt")
    with pytest.raises(Interrupted) as caught:
        record(tmp_path, text)
    assert str(caught.value) == (
        f"interrupted; it had reached lecture_sample.py:{line_of(text, 'raise')}\n    raise KeyboardInterrupt"
    )


def test_a_lecture_that_ends_in_time_leaves_no_watch_behind(tmp_path: Path) -> None:
    alarms: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: alarms.append(1))
    outer = signal.setitimer(signal.ITIMER_REAL, 0.6)
    try:
        record(tmp_path, section("pass"), timeout=60)
        time.sleep(0.7)
        assert alarms == [1]  # the alarm that was set before the run, and no other
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, before)
    assert not [t for t in threading.enumerate() if "_watchdog" in t.name and t.is_alive()]


def test_a_lecture_runs_in_a_thread_that_is_not_the_first(tmp_path: Path) -> None:
    made: list[model.Record] = []
    thread = threading.Thread(target=lambda: made.append(record(tmp_path, RANDOM)))
    thread.start()
    thread.join()
    assert shown(made[0], "a") == shown(record(tmp_path, RANDOM), "a")


# ------------------------------------------------------------------------ what the record says of the run


def test_the_record_names_the_environment(tmp_path: Path) -> None:
    import torch

    made = record(tmp_path, section("import torch"), device="cpu").environment
    assert made.versions["torch"] == torch.__version__
    assert (made.device.kind, made.device.slug, made.threads) == ("cpu", "cpu", torch.get_num_threads())
    assert made.cores == os.cpu_count()
    assert made.memory > 2**28
    assert made.date.endswith("Z") and len(made.date) == 20
    assert made.commit is None  # a temporary folder is no repository


def test_a_record_is_the_same_after_a_round_trip(tmp_path: Path) -> None:
    made = record(tmp_path, RANDOM)
    assert encoding.loads(encoding.dumps(made)) == made


def test_nothing_is_printed_by_a_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, section("note('x')\nprint('y')\nassert 1 == 2"))
    assert capfd.readouterr() == ("", "")


def test_a_section_that_was_not_asked_for_keeps_its_code_and_its_asserts_are_heard(tmp_path: Path) -> None:
    text = f'''{HEAD}

def main():
    one()
    two()


def behind():
    try:
        globals()["two"]()
    except AssertionError:
        pass


def one():
    """One."""
    behind()
    x = 1  # @inspect x


def two():
    """Two."""
    y = 2  # @inspect y
    assert y == 3
'''
    whole, alone = record(tmp_path, text), record(tmp_path, text, sections=["one"])
    assert shown(alone, "x") == shown(whole, "x") == [1]
    assert not shown(alone, "y"), "it ran without probes"
    [(section, error)] = alone.errors()
    assert (section.key, error.kind) == ("two", "assert"), "it failed, and its exception was caught"
    assert error.message.startswith("assert fails: y == 3")


def test_outside_of_a_repository_no_process_is_started_to_ask_for_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_DIR", raising=False)
    asked: list[Path] = []

    def answer(_command: list[str], folder: Path) -> str:
        asked.append(folder)
        return "abc"

    monkeypatch.setattr(environment, "_first_line", answer)
    lecture = tmp_path / "book" / "lectures" / "lecture_x.py"
    lecture.parent.mkdir(parents=True)
    assert environment.environment(lecture, "cpu", 0).commit is None and not asked
    (tmp_path / "book" / ".git").touch()  # a file, as in a work tree of another repository
    assert environment.environment(lecture, "cpu", 0).commit == "abc+"
    assert set(asked) == {lecture.parent}
