"""What goes wrong for authors, through the command line: what it says, and how it ends.

Every row of the design's table "When things go wrong" has a test here, or is named with the file that
has it: broken links, citations and anchors are the site's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from tests.running import COMMAND, HEAD, REPO, command, line_of, process, sampled, section, write

from litbook.errors import NotFound
from litbook.record import model


@pytest.fixture
def lecture(tmp_path: Path):
    """Writes a lecture with one section and returns its path."""
    return lambda body, before="": write(tmp_path, section(body, before))


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


# ------------------------------------------------------------------------ there is no such thing


def test_a_name_with_a_typo_gets_the_nearest_path_and_all_there_are(tmp_path: Path) -> None:
    write(tmp_path, section("pass"), "lecture_resources.py")
    write(tmp_path, section("pass"), "lecture_tensors.py")
    done = command(tmp_path / "lecture_resourcse.py")
    assert done.returncode == 2
    assert f"no lecture named '{tmp_path}/lecture_resourcse.py'" in done.stderr
    assert f"did you mean '{tmp_path}/lecture_resources.py'?" in done.stderr
    assert f"there are: {tmp_path}/lecture_resources.py, {tmp_path}/lecture_tensors.py" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["lecture_zzz", "lecture_zzz.py", "./nowhere/lecture.py", "x" * 300])
def test_a_lecture_that_is_not_there_is_no_lecture(name: str) -> None:
    done = command(name)
    assert done.returncode == 2
    assert done.stderr.startswith("run_lecture.py: no lecture named ")
    assert "Traceback" not in done.stderr


def test_a_folder_is_no_lecture_and_its_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, section("pass"))
    done = command(tmp_path)
    assert done.returncode == 2
    assert f"no lecture named '{tmp_path}'" in done.stderr
    assert f"    there are: {tmp_path}/lecture_sample.py\n" in done.stderr


def test_no_such_section_names_those_there_are_and_the_nearest(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        def main():
            bytes_of_a_tensor()
            views()
        def bytes_of_a_tensor():
            open("/proc/ran", "w")
        def views():
            pass
        """,
    )
    done = command(path, "byte_of_a_tensor")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "run_lecture.py: no section named 'byte_of_a_tensor'; did you mean 'bytes_of_a_tensor'?\n"
        "    there are: bytes_of_a_tensor, views\n"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("step_1", "; did you mean 'step_19'?\n    near it: step_19, step_18, step_17, step_16, step_15\n"),
        ("conclusions", "; did you mean 'conclusion'?\n"),
        ("zebra", "\n"),
    ],
)
def test_of_many_sections_an_unknown_one_names_the_nearest_and_the_command_that_lists_all(
    asked: str, said: str
) -> None:
    there = [*(f"step_{i}" for i in range(10, 20)), "start", "views", "conclusion"]
    assert str(NotFound("section", asked, there)) == (
        f"no section named {asked!r}{said}    `litbook list LECTURE` shows all 13"
    )
    assert "`litbook list" not in str(NotFound("option", asked, there))  # which does not show them


@pytest.mark.slow
def test_cuda_without_a_device_is_refused(lecture) -> None:
    done = process(lecture("pass"), "--device", "cuda", env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert done.stderr.startswith("run_lecture.py: no CUDA device here: torch ")
    assert ", or leave --device out to run what this machine can\n" in done.stderr


# ------------------------------------------------------------------------ the text cannot be used


def test_everything_wrong_with_the_text_is_said_at_once_and_nothing_runs(tmp_path: Path) -> None:
    text = f"""\
"A lecture."
open({str(tmp_path / "ran")!r}, "w")
def main():
    one()
def one():
    a = 1  # @inspct a
    b = 2  # @inspect b +
    c = (3  # @inspect
"""
    done = command(write(tmp_path, text))
    assert done.returncode == 2
    assert done.stderr == (
        "run_lecture.py: lecture_sample.py:6:12: unknown directive @inspct\n"
        "    a = 1  # @inspct a\n"
        "           ^\n"
        "    did you mean @inspect?\n"
        "lecture_sample.py:7:12: @inspect cannot read 'b +': invalid syntax\n"
        "    b = 2  # @inspect b +\n"
        "           ^\n"
        "    write Python expressions, separated by commas, each with an optional `as UNIT`\n"
        "lecture_sample.py:8:9: syntax error: '(' was never closed\n"
        "    c = (3  # @inspect\n"
        "        ^\n"
    )
    assert not (tmp_path / "ran").exists()


def test_bad_directives_of_a_lecture_that_parses_are_said_at_once(tmp_path: Path) -> None:
    text = section("""
        print(1)  # @inspect
        b = 2  # @hide this
        # @inspect a
        c = 3  # @hidden
        """)
    done = command(write(tmp_path, text))
    assert done.returncode == 2
    first = line_of(text, "print(1)")
    assert f"lecture_sample.py:{first}:15: @inspect names no expression" in done.stderr
    assert f"lecture_sample.py:{first + 1}:12: @hide takes nothing, but 'this' follows it" in done.stderr
    assert f"lecture_sample.py:{first + 2}:5: @inspect stands on a line of its own" in done.stderr
    assert f"lecture_sample.py:{first + 3}:12: unknown directive @hidden" in done.stderr
    assert "    c = 3  # @hidden\n           ^\n    did you mean @hide?\n" in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "lecture_sample.py has no function main()\n    a lecture starts at `def main() -> None:`"),
        (b"x = 1\n", "lecture_sample.py has no function main()"),
        (
            b"def main(argument): pass\n",
            "lecture_sample.py:1:1: main is no plain function without parameters",
        ),
        (bytes(range(256)), "lecture_sample.py:2: this is no text in utf-8: b'\\x80'\n    save the file"),
        (b"x = '\xff'\n", "lecture_sample.py is not Python text: "),
        (b"# coding: klingon\n", "lecture_sample.py is not Python text: unknown encoding"),
        (b"x = 1\0\n", "source code string cannot contain null bytes"),
        (b"x = " + b"(" * 500 + b")" * 500, "too many nested parentheses"),
        (b"def main():\n  x\n\ty\n", "lecture_sample.py:3:"),
        (
            b"def main():\n    return\nreturn\n",
            "lecture_sample.py:3:1: syntax error: 'return' outside function",
        ),
    ],
    ids=[
        "empty",
        "no-main",
        "main-with-parameter",
        "binary",
        "latin-1",
        "encoding",
        "nul",
        "nested",
        "tabs",
        "return",
    ],
)
def test_a_file_that_is_no_lecture_says_why(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "lecture_sample.py").write_bytes(content)
    done = command(tmp_path / "lecture_sample.py")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    if os.geteuid() == 0:  # root may read everything: a loop of links cannot be read by anybody
        path = tmp_path / "lecture_sample.py"
        path.symlink_to(path)
    else:
        path = write(tmp_path, section("pass"))
        path.chmod(0)
    done = command(path)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr or "no lecture named" in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------ the lecture goes wrong


def test_an_inspect_that_raises_is_reported_at_its_line_and_the_run_goes_on(lecture) -> None:
    path = lecture("""
        x = [1]  # @inspect x[3]
        assert x == [1], "still here"
        """)
    done = command(path)
    line = line_of(path.read_text(), "x[3]")
    assert done.returncode == 1
    assert (
        f"lecture_sample.py:{line}: @inspect x[3] raised IndexError: list index out of range" in done.stdout
    )
    assert "    x = [1]  # @inspect x[3]" in done.stdout
    assert "✓ still here" in done.stdout
    assert last_line(done) == "1 claim holds, 0 fail, 0 not run; 1 error"


def test_failing_claims_are_all_listed_at_the_end_and_the_rest_runs(tmp_path: Path) -> None:
    text = f"""{HEAD}
def main():
    one()
    two()
def one():
    x = 3
    assert x * 2 == 7, "twice three"
    assert x == 3, "three"
def two():
    y = [1, 2]
    assert len(y) > 2, f"more than {{len(y)}}"
"""
    done = command(write(tmp_path, text))
    assert done.returncode == 1
    ending = done.stdout[done.stdout.rindex("assert len(y) > 2, f") :]
    first, second = line_of(text, "twice three"), line_of(text, "more than")
    assert (
        f"lecture_sample.py:{first}: claim fails: twice three\n    assert x * 2 == 7\n    6 == 7\n      x * 2 is 6\n"
        in ending
    )
    assert (
        f"lecture_sample.py:{second}: claim fails: more than 2\n    assert len(y) > 2\n    2 > 2\n" in ending
    )
    assert "✓ three" in done.stdout
    assert last_line(done) == "1 claim holds, 2 fail, 0 not run"


def test_a_failing_claim_says_that_its_caption_raised(tmp_path: Path) -> None:
    text = section('x = 3\nassert x == 4, f"caption {nope}"\nassert x == 5, ("no", "string")')
    done = command(write(tmp_path, text))
    line = line_of(text, "x == 4")
    said = "x == 4 (its caption raised NameError: name 'nope' is not defined)"
    assert f"        ✗ {said}   3 == 4\n" in done.stdout
    assert f"lecture_sample.py:{line}: claim fails: {said}\n    assert x == 4\n    3 == 4\n" in done.stdout
    assert f"lecture_sample.py:{line + 1}: claim fails: ('no', 'string')\n    assert x == 5\n" in done.stdout
    assert last_line(done) == "0 claims hold, 2 fail, 0 not run"


def test_a_failing_claim_about_tensors_shows_them(tmp_path: Path) -> None:
    text = section(
        'x = torch.tensor([1, 2])\nassert (x == 1).all(), "ones"\nassert all(a == 1 for a in x)',
        "import torch",
    )
    done = command(write(tmp_path, text))
    first, second = line_of(text, '"ones"'), line_of(text, "for a in x")
    assert "        ✗ ones   False\n" in done.stdout
    assert (
        f"lecture_sample.py:{first}: claim fails: ones\n    assert (x == 1).all()\n    False\n"
        "      x is tensor([1, 2])\n\n"
        f"lecture_sample.py:{second}: claim fails: all(a == 1 for a in x)\n    assert all(a == 1 for a in x)\n"
        "    all(…)\n      x is tensor([1, 2])\n\n"
    ) in done.stdout


TRUTHS = {
    'assert x == 1, "ones"': "write: assert (x == 1).all()",
    "assert x": "write: assert x.all()",
    "assert x.bool() and x": "say which are meant: (…).all() or (…).any()",
    "if x: pass": "say which are meant: (…).all() or (…).any()",
    "assert helper(x) == 1": "say which are meant: (…).all() or (…).any()",
}


def test_a_tensor_of_many_truths_gets_a_way_out_and_ends_the_section(tmp_path: Path) -> None:
    text = f"{HEAD}import torch\ndef helper(x):\n    return 1 if x else 0\ndef main():\n"
    text += "".join(f"    s{i}()\n" for i in range(len(TRUTHS)))
    for i, line in enumerate(TRUTHS):
        text += f"def s{i}():\n    x = torch.tensor([1, 2])\n    {line}\n    assert 1 < 2\n"
    done = command(write(tmp_path, text), "--quiet")
    for i, (line, way_out) in enumerate(TRUTHS.items()):
        at = line_of(text, "return 1") if "helper(" in line else line_of(text, f"def s{i}()") + 2
        assert (
            f"lecture_sample.py:{at}: RuntimeError: Boolean value of Tensor with more than one value is ambiguous\n"
            f"        {way_out}\n    {text.splitlines()[at - 1].strip()}\n"
        ) in done.stdout
    assert "0 claims hold, 0 fail" in last_line(done)
    assert last_line(done).endswith("5 errors")


def test_an_exception_in_a_section_leaves_the_others_running(tmp_path: Path) -> None:
    text = f"""{HEAD}
import json
def main():
    one()
    two()
def helper(text):
    return json.loads(text)
def one():
    helper("[")
    assert False, "never reached"
def two():
    assert 1 < 2, "reached"
"""
    done = command(write(tmp_path, text))
    assert done.returncode == 1
    line, caller = line_of(text, "return json"), line_of(text, 'helper("[")')
    assert (
        f"lecture_sample.py:{line}: JSONDecodeError: Expecting value: line 1 column 2 (char 1)\n"
        "    return json.loads(text)\n"
        f"    called from lecture_sample.py:{caller} in one\n"
    ) in done.stdout
    assert "json/decoder.py" not in done.stdout + done.stderr
    assert last_line(done) == "1 claim holds, 0 fail, 0 not run, 1 was not reached; 1 error"


BESIDE = """
class Decoder:
    def step(self, token):
        return self.embedding[token]
def walk(n):
    return walk(n - 1) if n else Decoder().step(0)
"""


def ran_with_a_module(folder: Path, module: str, body: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A lecture in a project's folder, and `decoder.py` beside it."""
    (folder / "mkdocs.yml").touch()
    (folder / "lectures").mkdir(exist_ok=True)
    write(folder / "lectures", module, "decoder.py")
    return command(write(folder / "lectures", section(body), "lecture_03.py"), *words)


def test_an_error_in_a_module_beside_the_lecture_names_that_file_and_the_line_that_led_to_it(
    tmp_path: Path,
) -> None:
    done = ran_with_a_module(tmp_path, BESIDE, "import decoder\ndecoder.walk(1)")
    said = (
        "lectures/decoder.py:3: AttributeError: 'Decoder' object has no attribute 'embedding'\n"
        "    return self.embedding[token]\n"
        "    called from lectures/decoder.py:5 in walk\n"
        "    called from lectures/decoder.py:5 in walk\n"
        "    called from lectures/lecture_03.py:12 in one\n"
        "\n0 claims hold, 0 fail, 0 not run; 1 error\n"
    )
    assert done.stdout.endswith(f"\n\n{said}")
    assert "! line 12, in lectures/decoder.py:3: AttributeError: " in done.stdout
    assert str(tmp_path) not in done.stdout + done.stderr
    write(tmp_path / "lectures", section("import decoder\ndecoder.walk(1)", "# 1\n# 2\n"), "lecture_03.py")
    moved = command(tmp_path / "lectures" / "lecture_03.py", "--quiet")  # perhaps out of what was kept
    assert moved.stdout.startswith(said.replace("lecture_03.py:12", "lecture_03.py:14").rstrip())


@pytest.mark.parametrize(
    ("module", "says"),
    [
        (
            "x = 1\nimport torchh",
            "decoder.py:2: ModuleNotFoundError: No module named 'torchh'\n        pip install torchh\n    import torchh\n",
        ),
        (
            "x = 1\n\ny = = 2",
            "lectures/decoder.py:3: SyntaxError: invalid syntax (decoder.py, line 3)\n    y = = 2\n",
        ),
        ("def f():\nx", "lectures/decoder.py:2: IndentationError: expected an indented block after"),
        ("1 / 0" + " + 0" * 1000, f"    1 / 0{' + 0' * 73} +\n    called from"),
    ],
    ids=["import", "syntax", "indentation", "long"],
)
def test_a_module_beside_the_lecture_that_cannot_be_imported_is_named(
    tmp_path: Path, module: str, says: str
) -> None:
    done = ran_with_a_module(tmp_path, module, "import decoder", "--quiet")
    assert says in done.stdout
    assert "\n    called from lectures/lecture_03.py:11 in one\n" in done.stdout
    assert str(tmp_path) not in done.stdout + done.stderr


def test_of_a_traceback_only_files_in_the_lectures_folder_are_shown(tmp_path: Path) -> None:
    body = "import decoder, sys\nsys.path.append(sys.path[0] + '/site-packages')\nimport other\nother.call(decoder.walk)"
    (tmp_path / "lectures" / "site-packages").mkdir(parents=True)
    write(tmp_path / "lectures" / "site-packages", "def call(f):\n    f(0)\n", "other.py")
    done = ran_with_a_module(tmp_path, BESIDE, body, "--quiet")
    assert "lectures/decoder.py:3: AttributeError" in done.stdout
    assert "site-packages" not in done.stdout
    made = ran_with_a_module(
        tmp_path, "import json\ndef f(): json.loads('[')", "import decoder\ndecoder.f()", "--quiet"
    )
    assert made.stdout.startswith("lectures/decoder.py:2: JSONDecodeError: ")
    assert "json/decoder.py" not in made.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import nowhere_at_all\ndef main():\n    one()\ndef one():\n    assert 1 < 2\n", ":1: ModuleNotFoundError: No module named"),
        ("def main():\n    one()\n    1 / 0\ndef one():\n    assert 1 < 2\n", ":3: ZeroDivisionError: division by zero"),
        ("def main():\n    one()\ndef one():\n    assert 1 < 2\ndel main\n", "has no attribute 'main'"),
        ("def main():\n    one()\ndef one():\n    class Odd(BaseException): pass\n    raise Odd('base')\n", ":5: Odd: base"),
        ("def main():\n    one()\ndef one():\n    raise GeneratorExit\n", ":4: GeneratorExit"),
        ("def main():\n    one()\ndef one():\n    import asyncio\n    raise asyncio.CancelledError\n", ":5: CancelledError"),
        ("def main():\n    one()\ndef one():\n    one_more()\ndef one_more():\n    return one_more()\n", ":6: RecursionError: maximum"),
        ("def main():\n    one()\ndef one():\n    input('your name? ')\n", ":4: EOFError"),
        ("def main():\n    one()\ndef one():\n    breakpoint()\n", ":4: NoTerminal: a debugger stops in a terminal alone\n        in one: litbook run LECTURE SECTION\n    breakpoint()"),
        ("import pdb\ndef main():\n    one()\ndef one():\n    pdb.set_trace()\n", ":5: NoTerminal: a debugger stops in a terminal alone\n        in one: litbook run LECTURE SECTION\n    pdb.set_trace()"),
        ("def main():\n    one()\ndef one():\n    raise ExceptionGroup('two', [ValueError(1), KeyError(2)])\n", ":4: ExceptionGroup: two (2 sub-exceptions)"),
    ],
    ids=["import", "main", "no-main-left", "base", "generator-exit", "cancelled", "recursion", "input", "breakpoint", "pdb", "group"],
)  # fmt: skip
def test_whatever_a_lecture_raises_is_its_error(tmp_path: Path, text: str, says: str) -> None:
    ask = process if re.search("input|breakpoint|pdb", text) else command  # pytest has its own of these
    done = ask(write(tmp_path, text), "--quiet")
    assert done.returncode == 1
    assert says in done.stdout
    assert "1 error" in last_line(done)
    assert "Traceback" not in done.stderr


PLACES = ("module", "main", "section", "helper")
WAYS_TO_LEAVE = ("sys.exit(0)", "sys.exit()", "raise SystemExit", "exit(0)", "os._exit(0)")


@pytest.mark.parametrize("call, place", sampled([*product(WAYS_TO_LEAVE, PLACES)], 3))
def test_leaving_is_never_a_success(tmp_path: Path, place: str, call: str) -> None:
    at = {name: call if name == place else "pass" for name in ("module", "main", "section", "helper")}
    text = f"""
import os, sys
def main():
    one()
    {at["main"]}
def one():
    helper(1)
    {at["section"]}
def helper(x):
    {at["helper"]}
{at["module"]}
"""
    done = (process if "os." in call else command)(write(tmp_path, text), "--quiet")
    assert done.returncode == 1
    assert (
        f"lecture_sample.py:{line_of(text.lstrip(), call)}: {'os._' if 'os' in call else 'sys.'}exit("
        in done.stdout
    )
    assert "ends no lecture: it is an error like any exception" in done.stdout


# ------------------------------------------------------------------------ it is stopped


def start(path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, str(path), *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job inherits "ignore"
    )  # fmt: skip


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} never came"
        time.sleep(0.01)


def test_ctrl_c_names_the_line_reached_and_writes_no_record(tmp_path: Path) -> None:
    text = section(
        f"""
        open({str(tmp_path / "reached")!r}, "w").close()
        wait()
        """,
        """
        import time
        def wait():
            time.sleep(600)
        """,
    )
    # `wait()` alone is a section of its own; so is its line
    process = start(write(tmp_path, text), "--out", str(tmp_path / "record.json"))
    wait_for(tmp_path / "reached")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    line = line_of(text, "time.sleep")
    assert process.returncode == 130
    assert stderr == (
        f"run_lecture.py: interrupted; it had reached lecture_sample.py:{line}\n    time.sleep(600)\n"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lecture_sample.py", "reached"]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ("time.sleep(600)", "time.sleep"),
        ("while True:\n    pass", "pass"),
        ("helper(600)", "time.sleep(x)"),
        ("try:\n    time.sleep(600)\nexcept Exception:\n    pass", "time.sleep(600)"),
    ],
    ids=["sleep", "loop", "helper", "except"],
)
def test_a_time_out_names_the_line_reached(tmp_path: Path, body: str, at: str) -> None:
    text = section(body, "import time\ndef helper(x):\n    time.sleep(x)\n")
    done = process(write(tmp_path, text), "--timeout", "1", "--out", tmp_path / "record.json")
    assert done.returncode == 1
    lines = {
        n for n, line in enumerate(text.splitlines(), 1) if at in line or (at == "pass" and "while" in line)
    }
    assert any(f"timed out after 1 s; it had reached lecture_sample.py:{n}\n" in done.stderr for n in lines)
    assert "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["lecture_sample.py"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    try:\n        time.sleep(600)  # here\n    except BaseException:\n        pass",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})\ntime.sleep(600)  # here",
        "import torch\ntorch.linalg.svd(torch.rand(8_000, 8_000))  # here",
    ],
    ids=["swallows", "blocks", "torch"],
)
def test_a_lecture_that_will_not_stop_is_ended(tmp_path: Path, body: str) -> None:
    text = section(body, "import signal, time\n")
    folder = tmp_path / "tmp"
    folder.mkdir()
    # On a busy machine torch alone takes seconds to be imported.
    limit = "10" if "torch" in body else "1"
    done = process(write(tmp_path, text), "--timeout", limit, env={"TMPDIR": str(folder)})
    assert done.returncode == 1
    assert f"timed out after {limit} s and would not stop" in done.stderr
    assert f"lecture_sample.py:{line_of(text, '# here')}" in done.stderr
    assert "# One" in done.stdout  # what it had printed is not lost
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_native_code_that_holds_the_interpreter_is_ended_too(tmp_path: Path) -> None:
    text = section("sum(range(10**13))")
    path = write(tmp_path, text)
    done = process(path, "--timeout", "0.5")
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert f'File "{path}", line {line_of(text, "sum(")} in one' in done.stderr


# ------------------------------------------------------------------------ hostile values and texts

HOSTILE = """
class Raises:
    def __repr__(self): raise ValueError("<b>no</b>")
class Loops:
    def __repr__(self):
        while True: pass
class Long:
    def __repr__(self): return "x" * 10**7
class Lies:
    __class__ = int
    def __repr__(self): return 7
class Swallows:
    def __repr__(self):
        while True:
            try:
                while True: pass
            except BaseException: pass
class Tricky:
    def __getattr__(self, name): raise RuntimeError(name)
    def __len__(self): return -1
    def __eq__(self, other): raise RuntimeError("eq")
    def __bool__(self): raise RuntimeError("bool")
    def __hash__(self): raise RuntimeError("hash")
class Said(Exception):
    def __str__(self): raise ValueError("no text")
"""


def test_hostile_values_are_bounded_in_time_and_size(tmp_path: Path) -> None:
    body = """
        r = Raises()  # @inspect r
        loops = Loops()  # @inspect loops
        long = Long()  # @inspect long
        lies = Lies()  # @inspect lies
        swallows = Swallows()  # @inspect swallows
        tricky = Tricky()  # @inspect tricky, [tricky, {1: tricky}]
        cyclic = []  # @inspect cyclic
        cyclic.append(cyclic)  # @inspect cyclic
        deep = []
        for _ in range(10**5):
            deep = [deep]
        deep  # @inspect deep
        huge = {i: list(range(1000)) for i in range(1000)}  # @inspect huge
        big = 10**100_000  # @inspect big
        text = "y" * 10**7  # @inspect text
        assert big > 0 and long is not None, "kept"
        """
    text = section(body, HOSTILE)
    out = tmp_path / "record.json"
    begin = time.monotonic()
    done = process(write(tmp_path, text), "--out", out)
    assert time.monotonic() - begin < 60
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) < 400
    assert out.stat().st_size < 200_000
    assert last_line(done) == "1 claim holds, 0 fail, 0 not run"


def test_hostile_captions_and_exceptions_are_kept_as_text(tmp_path: Path) -> None:
    text = section(
        """
        x = 1  # @inspect nope(x)
        assert x == 1, Raises()
        assert x == 1, Long()
        assert x == 1, f"{1 / 0}"
        raise Said()
        """,
        HOSTILE + "def nope(x):\n    raise Said()\n",
    )
    done = command(write(tmp_path, text))
    assert done.returncode == 1
    assert "@inspect nope(x) raised Said: (its text raised ValueError)" in done.stdout
    assert last_line(done) == "3 claims hold, 0 fail, 0 not run; 2 errors"
    assert max(map(len, done.stdout.splitlines())) < 1500


def test_html_stays_text_in_the_record(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    text = section(f"""
        d = {{"{evil}": "{evil}"}}  # @inspect d
        note("{evil}")
        print("{evil}")
        assert d == {{}}, "{evil}"
        """).replace('"""One."""', f'"""{evil}"""')
    out = tmp_path / "record.json"
    done = command(write(tmp_path, text), "--out", out)
    assert done.returncode == 1
    made = json.loads(out.read_text())["sections"][-1]
    assert [p["text"].strip() for p in made["pieces"]] == [evil, evil]
    assert made["claims"][0]["caption"] == evil
    assert f"# {evil}" in done.stdout


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    text = section(r"""
        x = "\x1b[31mred"  # @inspect x
        note("prose \x1b]0;title\x07")
        print("printed \x1b[2J \x9b31m")
        assert x == "", "caption \x1b[31m"
        raise ValueError("message \x1b[31m")
        """)
    done = command(write(tmp_path, text))
    assert done.returncode == 1
    assert not set(done.stdout + done.stderr) & {"\x1b", "\x07", "\x9b"}
    assert "caption ⟨U+001B⟩[31m" in done.stdout
    assert "message ⟨U+001B⟩[31m" in done.stdout


# ------------------------------------------------------------------------ nothing is left behind


def test_a_lecture_leaves_no_file_in_the_working_tree(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t", *words],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    write(tmp_path, "WIDTH = 4\n", "beside.py")
    path = write(
        tmp_path,
        section(
            """
            open("left.txt", "w").write("x")
            os.makedirs("folder/in/folder")
            os.chdir("/")
            os.environ["LEFT"] = "1"
            assert beside.WIDTH == 4, "a module beside the lecture"
            """,
            "import os\nimport beside\n",
        ),
    )
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "before")
    done = process(path, cwd=tmp_path, env={"PYTHONDONTWRITEBYTECODE": None})
    assert done.returncode == 0, done.stdout + done.stderr
    assert git("status", "--porcelain", "--ignored") == ""


# ------------------------------------------------------------------------ --out


def test_out_writes_a_whole_record_with_ordinary_permissions(tmp_path: Path, lecture) -> None:
    out = tmp_path / "record.json"
    assert command(lecture("x = 1  # @inspect x"), "--out", out).returncode == 0
    assert json.loads(out.read_text())["schema"] == model.SCHEMA
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o666 & ~umask


def test_out_into_a_folder_that_is_not_there_runs_nothing(tmp_path: Path, lecture) -> None:
    path = lecture(f"open({str(tmp_path / 'ran')!r}, 'w')")
    done = command(path, "--out", tmp_path / "nowhere" / "record.json")
    assert done.returncode == 2
    assert f"there is no folder {tmp_path}/nowhere\n    create it first" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_out_onto_a_folder_runs_nothing(tmp_path: Path, lecture) -> None:
    path = lecture(f"open({str(tmp_path / 'ran')!r}, 'w')")
    done = command(path, "--out", tmp_path)
    assert done.returncode == 2
    assert f"--out {tmp_path}: this is a folder\n    name a file in it" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_out_onto_a_full_disk_is_said_after_the_verdict(lecture) -> None:
    done = command(lecture("assert 1 < 2"), "--out", "/dev/full")
    assert done.returncode == 2
    assert last_line(done) == "1 claim holds, 0 fail, 0 not run"
    assert "--out /dev/full: No space left on device; nothing was written" in done.stderr
    assert Path("/dev/full").is_char_device()  # a rename would have replaced it


def test_out_to_a_device_does_not_replace_it(lecture) -> None:
    assert command(lecture("assert 1 < 2"), "--out", "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


def test_out_with_a_lone_surrogate_is_whole(tmp_path: Path, lecture) -> None:
    out = tmp_path / "record.json"
    done = command(lecture(r"x = '\ud800'  # @inspect x" + "\n" + r"print('\udc80')"), "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["sections"][-1]["pieces"][0]["text"] == "\udc80\n"


# ------------------------------------------------------------------------ streams


def test_a_reader_that_goes_away_does_not_change_the_verdict(lecture) -> None:
    path = lecture("for i in range(300):\n    print('x' * 200)\nassert 1 == 2, 'fails'")
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {' '.join(COMMAND)} {path} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "A lecture\n1\n"
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("--help",), ("--list",)])
def test_a_reader_that_goes_away_from_a_list_gets_no_traceback(lecture, words: tuple[str, ...]) -> None:
    line = f"{' '.join(COMMAND)} {lecture('pass')} {' '.join(words)} | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr


def test_closed_streams_do_not_change_the_verdict(tmp_path: Path, lecture) -> None:
    path, out = lecture("print('x')\nassert 1 < 2"), tmp_path / "record.json"
    line = f"{' '.join(COMMAND)} {path} --out {out} <&- >&- 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert json.loads(out.read_text())["sections"][-1]["pieces"][0]["text"] == "x\n"


def test_a_full_disk_behind_stdout_is_no_success(lecture) -> None:
    with Path("/dev/full").open("w") as full:
        done = process(lecture("print('x')\nassert 1 < 2"), stdout=full)
    assert done.returncode == 2
    assert done.stderr == "run_lecture.py: cannot print: No space left on device\n"


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONIOENCODING": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "posix"],
)
def test_a_terminal_without_utf_8_shows_what_it_can(lecture, env: dict[str, str]) -> None:
    done = process(lecture("note('Größe → μ')\nassert 1 < 2, 'ε'"), env=env)
    assert done.returncode == 0, done.stderr
    assert "1 claim holds" in done.stdout


@pytest.mark.parametrize("columns", ["1", "20", "junk"])
def test_a_narrow_terminal_gets_everything(lecture, columns: str) -> None:
    path = lecture("note('Some prose.')\nx = 'a' * 100  # @inspect x\nassert len(x) == 100, 'a hundred'")
    done = command(path, env={"COLUMNS": columns})
    assert done.returncode == 0, done.stderr
    assert "✓ a hundred   100 == 100" in done.stdout
    assert command(path, env={"COLUMNS": columns, "FORCE_COLOR": "1"}).returncode == 0


# ------------------------------------------------------------------------ where it lies, how fast it answers


def test_a_lecture_outside_the_repository_runs_by_path_with_py(tmp_path: Path) -> None:
    for name in ("lecture_sample.py", "sample.py"):
        path = write(tmp_path, section("import math\nassert 1 < 2"), name)
        done = command(path.name, cwd=tmp_path)
        assert (done.returncode, last_line(done)[:13]) == (0, "1 claim holds"), done.stdout + done.stderr


def test_a_lecture_that_imports_a_module_of_its_own_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, section("import math\nassert 1 < 2"), "math.py")
    done = command(path.name, cwd=tmp_path)
    assert done.returncode == 2
    assert "math.py beside the lecture is named like a module that is there already" in done.stderr
    assert "give yours another name" in done.stderr


def heavy_modules(*lines: Sequence[object]) -> set[str]:
    """Which of the large libraries these command lines import, one after the other."""
    code = (
        "import sys; from litbook.cli import run_lecture\n"
        f"for words in {[[str(word) for word in line] for line in lines]!r}:\n"
        "    run_lecture(words)\n"
        "print('LOADED', [m for m in ('torch', 'numpy', 'rich', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPO / "tools",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return set(eval(done.stdout.rpartition("LOADED")[2]))


def test_answers_that_need_no_run_import_nothing_heavy(tmp_path: Path) -> None:
    good = write(tmp_path, section("pass", "import torch"))
    bad = write(tmp_path, "import torch\ndef main(: pass\n", "bad.py")
    ran = write(tmp_path, section("x = torch.ones(2)  # @inspect x", "import torch"), "ran.py")
    answers: list[list[object]] = [
        [good, "--list"],
        ["--help"],
        ["--list"],
        ["no_such_lecture"],
        [good, "no_such_section"],
        [bad],
    ]
    # of what ran, another process needed it: the one that judges does not
    assert heavy_modules(*answers, [good, "--out", tmp_path], [ran]) == set()
