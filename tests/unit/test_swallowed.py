"""A false assert fails the run wherever it stands and wherever its exception goes: a generator of such lectures.

Every place of the grammar where a statement can stand is put into every way that Python has to swallow an exception. Each
combination is a section of one lecture with an assert of its own, and the report has to name exactly those lines.
What concerns the process (`atexit`, threads that end late, forks) runs in one of its own.
"""

from __future__ import annotations

import itertools
import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.running import (
    HEAD,
    IN_CI,
    claims,
    failures,
    judged,
    line_of,
    messages,
    record,
    section,
    unrun,
    write,
)
from tests.running import process as command

from litbook.html import page
from litbook.probe.asserts import WAY_OUT_MEANT
from litbook.record import model
from litbook.rules import outcome
from litbook.run import process

FALSE = "assert 1 == 2, 'HERE'"

# Where a statement can stand. FALSE is the statement; running the text runs it once.
BLOCKS = {
    "plain": "FALSE",
    "if": "if True:\n    FALSE",
    "elif": "if not True:\n    pass\nelif True:\n    FALSE",
    "else": "if not True:\n    pass\nelse:\n    FALSE",
    "one line": "if True: FALSE",
    "semicolon": "x = 1; FALSE",
    "for": "for i in range(1):\n    FALSE",
    "for else": "for i in range(1):\n    pass\nelse:\n    FALSE",
    "while": "while True:\n    FALSE\n    break",
    "while else": "while False:\n    pass\nelse:\n    FALSE",
    "with": "with contextlib.nullcontext():\n    FALSE",
    "try": "try:\n    FALSE\nfinally:\n    pass",
    "except": "try:\n    {}['a']\nexcept KeyError:\n    FALSE",
    "except star": "try:\n    raise ExceptionGroup('', [KeyError()])\nexcept* KeyError:\n    FALSE",
    "try else": "try:\n    pass\nexcept KeyError:\n    pass\nelse:\n    FALSE",
    "finally": "try:\n    pass\nfinally:\n    FALSE",
    "case": "match 1:\n    case 1:\n        FALSE",
    "class body": "class A:\n    FALSE",
    "deep": "for i in range(1):\n    with contextlib.nullcontext():\n        if True:\n            try:\n                FALSE\n            finally:\n                pass",
}  # fmt: skip

# Where it can stand in something that is called. `bad()` calls it.
CALLS = {
    **{f"a function's {name}": f"def bad():\n{textwrap.indent(text, '    ')}" for name, text in BLOCKS.items()},
    "a nested function": "def bad():\n    def inner():\n        FALSE\n    inner()",
    "a function behind a lambda": "def inner():\n    FALSE\nbad = lambda: inner()",
    "a function in a comprehension": "def inner():\n    FALSE\nbad = lambda: [inner() for _ in range(1)]",
    "a generator": "def steps():\n    FALSE\n    yield\nbad = lambda: next(steps())",
    "a generator's second step": "def steps():\n    yield\n    FALSE\nbad = lambda: list(steps())",
    "a coroutine": "async def step():\n    FALSE\nbad = lambda: step().send(None)",
    "an async for": "async def many():\n    yield 1\nasync def step():\n    async for _ in many():\n        FALSE\nbad = lambda: step().send(None)",
    "an async with": "@contextlib.asynccontextmanager\nasync def around():\n    yield\nasync def step():\n    async with around():\n        FALSE\nbad = lambda: step().send(None)",
    "a method": "class A:\n    def f(self):\n        FALSE\nbad = A().f",
    "a class method": "class A:\n    @classmethod\n    def f(cls):\n        FALSE\nbad = A.f",
    "a static method": "class A:\n    @staticmethod\n    def f():\n        FALSE\nbad = A.f",
    "a property": "class A:\n    @property\n    def f(self):\n        FALSE\nbad = lambda: A().f",
    "__init__": "class A:\n    def __init__(self):\n        FALSE\nbad = A",
    "__init_subclass__": "class A:\n    def __init_subclass__(cls):\n        FALSE\nbad = lambda: type('B', (A,), {})",
    "a metaclass": "class M(type):\n    def __new__(cls, *a):\n        FALSE\nbad = lambda: M('A', (), {})",
    "__eq__": "class A:\n    def __eq__(self, other):\n        FALSE\nbad = lambda: A() == 1",
    "__getattr__": "class A:\n    def __getattr__(self, name):\n        FALSE\nbad = lambda: A().x",
    "__enter__": "class A:\n    def __enter__(self):\n        FALSE\n    def __exit__(self, *a): ...\ndef bad():\n    with A():\n        pass",
    "a decorator": "def deco(f):\n    FALSE\ndef bad():\n    @deco\n    def f(): ...",
    "a stepped-over function": "def bad():  # @stepover\n    FALSE",
    "a stepped-over line": "def inner():\n    FALSE\ndef bad():\n    inner()  # @stepover",
    "a stepped-over block": "def bad():\n    if True:  # @stepover\n        FALSE",
    "a message that raises": "def bad():\n    assert 1 == 2, 'HERE'[9]",
    "a message that is computed": "def bad():\n    assert 1 == 2, f'{1}HERE'",
    "a test over lines": "def bad():\n    assert (  # HERE\n        1 ==\n        2\n    )",
    "a test that binds": "def bad():\n    assert (x := 0), 'HERE'",
    "a test that is an object": "class Falsy:\n    def __bool__(self):\n        return False\ndef bad():\n    assert Falsy(), 'HERE'",
    "a test in an `and`": "def bad():\n    assert True and 0, 'HERE'",
    "a yielded test": "def steps():\n    assert (yield 1), 'HERE'\nbad = lambda: list(steps())",
    "no message": "def bad():\n    assert not 1  # HERE",
}  # fmt: skip

# How Python swallows what a statement raises. BODY is the statement, or `bad()`; each is the body of a section.
AROUND = {
    "try": "try:\n    BODY\nexcept BaseException:\n    pass",
    "bare except": "try:\n    BODY\nexcept:\n    pass",
    "except in a loop": "for _ in range(1):\n    try:\n        BODY\n    except Exception as e:\n        continue",
    "except star": "try:\n    BODY\nexcept* Exception:\n    pass",
    "suppress": "with contextlib.suppress(Exception):\n    BODY",
    "__exit__": "class Calm:\n    def __enter__(self): ...\n    def __exit__(self, *a): return True\nwith Calm():\n    BODY",
    "a context manager": "@contextlib.contextmanager\ndef calm():\n    with contextlib.suppress(BaseException):\n        yield\nwith calm():\n    BODY",
    "ExitStack": "with contextlib.ExitStack() as stack:\n    stack.push(lambda *a: True)\n    BODY",
    "return in finally": "try:\n    BODY\nfinally:\n    return",
    "break in finally": "while True:\n    try:\n        BODY\n    finally:\n        break",
    "continue in finally": "for _ in range(1):\n    try:\n        BODY\n    finally:\n        continue",
    "another exception": "try:\n    try:\n        BODY\n    except Exception:\n        {}['a']\nexcept KeyError:\n    pass",
}  # fmt: skip
WAYS = {
    **{name: text.replace("BODY", "bad()") for name, text in AROUND.items()},
    "assertRaises": "with unittest.TestCase().assertRaises(Exception):\n    bad()",
    "a thread": "t = threading.Thread(target=bad)\nt.start()\nt.join()",
    "a timer": "t = threading.Timer(0, bad)\nt.start()\nt.join()",
    "an executor": "with ThreadPoolExecutor(1) as pool:\n    pool.submit(bad)",
    "a callback of a future": "f = Future()\nf.add_done_callback(lambda _: bad())\nf.set_result(1)",
    "gather": "async def go():\n    async def task():\n        bad()\n    await asyncio.gather(task(), return_exceptions=True)\nasyncio.run(go())",
    "a task": "async def go():\n    async def task():\n        bad()\n    t = asyncio.create_task(task())\n    await asyncio.sleep(0)\nasyncio.run(go())",
    "call_soon": "async def go():\n    asyncio.get_running_loop().call_soon(bad)\n    await asyncio.sleep(0)\nasyncio.run(go())",
    "__del__": "class D:\n    def __del__(self):\n        bad()\nd = D()\ndel d",
    "a weakref": "class D: ...\nd = D()\nr = weakref.ref(d, lambda _: bad())\ndel d",
    "finalize": "class D: ...\nd = D()\nweakref.finalize(d, bad)\ndel d",
    "a generator's end": "def last():\n    try:\n        yield\n    finally:\n        bad()\ns = last()\nnext(s)\ndel s",
    "garbage": "class D:\n    def __del__(self):\n        bad()\nd = D()\nd.d = d\ndel d\ngc.collect()",
    "a gc callback": "calls = [bad]\ndef heard(*a):\n    while calls: calls.pop()()\ngc.callbacks.append(heard)\ngc.collect()\ngc.callbacks.remove(heard)",
    "logging": "class T:\n    def __str__(self):\n        bad()\nlog = logging.getLogger('quiet')\nlog.propagate = False\nlog.addHandler(logging.StreamHandler(io.StringIO()))\nlog.error('%s', T())",
    "ctypes": "ctypes.CFUNCTYPE(None)(lambda: bad() and None)()",
}  # fmt: skip
IMPORTS = (
    "import asyncio, contextlib, ctypes, gc, io, logging, threading, unittest, weakref\n"
    "from concurrent.futures import Future, ThreadPoolExecutor\n"
)


def combinations() -> list[str]:
    """Bodies of sections, each with one false assert that something swallows."""
    called = [f"{place}\n{way}" for place, way in itertools.product(CALLS.values(), WAYS.values())]
    inside = [
        around.replace("BODY", textwrap.indent(block, "    " * indent).lstrip())
        for block, around in itertools.product(BLOCKS.values(), AROUND.values())
        for indent in [len(around.partition("BODY")[0].rpartition("\n")[2]) // 4]
        if not (around.startswith("try:\n    BODY\nexcept*") and "except*" in block)
    ]
    return [body.replace("FALSE", FALSE) for body in (*called, *inside)]


def lecture(bodies: Sequence[str]) -> str:
    """One lecture with each of these as a section."""
    calls = "".join(f"    s{i}()\n" for i in range(len(bodies)))
    texts = (f"\ndef s{i}():\n{textwrap.indent(body, '    ')}\n" for i, body in enumerate(bodies))
    return f"{HEAD}{IMPORTS}\ndef main():\n{calls}{''.join(texts)}"


def expected(text: str) -> set[int]:
    """The lines of its false asserts."""
    return {number for number, line in enumerate(text.splitlines(), 1) if "HERE" in line}


def found(made: model.Record) -> set[int]:
    """The lines that the report of a run names."""
    return {int(said.split(":")[1]) for said in failures(made)}


def check(folder: Path, bodies: Sequence[str]) -> None:
    """The report of a run names the lines of all false asserts, and no others."""
    text = lecture(bodies)
    assert len(expected(text)) == len(bodies)
    made = process.record_of(write(folder, text))
    lines = text.splitlines()
    missed = expected(text) - found(made)
    assert not missed, ["\n".join(lines[line - 8 : line + 8]) for line in sorted(missed)[:3]]
    assert found(made) == expected(text)
    assert not outcome.holds(made)


def test_a_false_assert_fails_the_run_in_every_place_whatever_swallows_it(tmp_path: Path) -> None:
    bodies = combinations()
    assert len(set(bodies)) == len(bodies) >= 1500
    check(
        tmp_path, bodies[:: 5 if IN_CI else 17]
    )  # every place, and every way: no number of them is a multiple


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_each_way_alone_fails_the_run(tmp_path: Path, way: str) -> None:
    text = lecture([f"def bad():\n    {FALSE}\n{WAYS[way]}"])
    made = record(tmp_path, text)
    assert found(made) == expected(text)
    assert outcome.summary(made).endswith("; 1 error")


# ------------------------------------------------------------------------ what concerns the process

ENDS = {
    "atexit": "@atexit.register\ndef bye():\n    FALSE",
    "atexit, of a method": "class A:\n    def bye(self):\n        FALSE\natexit.register(A().bye)",
    "what a module holds": "class D:\n    def __del__(self):\n        FALSE\nkept = D()",
    "what a module holds, and needs": "LIMIT = 2\nclass D:\n    def __del__(self):\n        assert LIMIT == 3, 'HERE'\nkept = D()",
    "a suspended generator": "def steps():\n    try:\n        yield\n    finally:\n        FALSE\nleft = steps()\nnext(left)",
    "finalize": "def bye():\n    FALSE\nclass D: ...\nkept = D()\nweakref.finalize(kept, bye)",
    "a thread that ends late": "def late():\n    time.sleep(0.3)\n    FALSE\nthreading.Thread(target=late).start()",
    "a thread's thread": "def late():\n    FALSE\nthreading.Thread(target=lambda: threading.Timer(0.2, late).start()).start()",
    "an executor that is left": "def late():\n    time.sleep(0.1)\n    FALSE\npool = ThreadPoolExecutor(1)\nfor _ in range(3): pool.submit(late)",
    "an exception hook": "def hook(*a):\n    FALSE\ndef die(): raise KeyError\nthreading.excepthook = hook\nt = threading.Thread(target=die)\nt.start()\nt.join()\nthreading.excepthook = threading.__excepthook__",
    "the module itself": "try:\n    FALSE\nexcept AssertionError:\n    pass",
    "a class of the module": "with contextlib.suppress(AssertionError):\n    class C:\n        FALSE",
}  # fmt: skip
FORKS = {
    "fork": "def one():\n    if os.fork() == 0:\n        try:\n            FALSE\n        finally:\n            os._exit(0)\n    os.wait()",
    "fork, a claim": "def one():\n    if os.fork() == 0:\n        FALSE\n        os._exit(0)\n    os.wait()",
    "fork, and on": "def one():\n    if os.fork():\n        os.wait()\n    else:\n        helper(1)\ndef helper(x):\n    FALSE",
    "a process": "def one():\n    p = FORK.Process(target=work)\n    p.start()\n    p.join()\ndef work():\n    FALSE",
    "a process that nobody joins": "def one():\n    FORK.Process(target=work).start()\ndef work():\n    time.sleep(0.2)\n    FALSE",
    "a pool": "def one():\n    with FORK.Pool(1) as pool:\n        pool.apply_async(work).wait()\ndef work():\n    FALSE",
    "a thread of a fork": "def one():\n    p = FORK.Process(target=work)\n    p.start()\n    p.join()\ndef bad():\n    FALSE\ndef work():\n    t = threading.Thread(target=bad)\n    t.start()\n    t.join()",
    "a fork of a fork": "def one():\n    p = FORK.Process(target=work)\n    p.start()\n    p.join()\ndef work():\n    if os.fork() == 0:\n        try:\n            FALSE\n        finally:\n            os._exit(0)\n    os.wait()",
    "a fork that closes its files": "def one():\n    p = FORK.Process(target=work)\n    p.start()\n    p.join()\ndef work():\n    os.closerange(0, 200)\n    FALSE",
}  # fmt: skip
MORE = "import atexit, multiprocessing, os, time\nFORK = multiprocessing.get_context('fork')\n"


def test_all_that_ends_with_the_process_ends_before_its_record(tmp_path: Path) -> None:
    own = re.compile(r"\b(late|bye|hook|die|D|A|C|steps|pool|LIMIT|kept|left)\b")  # names, here one for each
    ends = [own.sub(rf"\g<1>{i}", end) for i, end in enumerate(ENDS.values())]
    text = section("x = 1", "\n".join([IMPORTS, MORE, *ends]).replace("FALSE", FALSE))
    assert len(expected(text)) == len(ENDS)
    assert found(process.record_of(write(tmp_path, text))) == expected(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: this system has none")
@pytest.mark.parametrize("way", FORKS)
def test_a_forked_child_reports_too(tmp_path: Path, way: str) -> None:
    text = f"{HEAD}{IMPORTS}{MORE}\ndef main():\n    one()\n{FORKS[way].replace('FALSE', FALSE)}\n"
    made = process.record_of(write(tmp_path, text))
    assert found(made) == expected(text)
    [said] = [error.message for _, error in made.errors()]
    assert said.splitlines()[:2] == ["assert fails: HERE", "it was raised in a child process"]


MUTE = {
    "no more files": "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "no bytes in files": "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "nobody": "os.setuid(65534)",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: this system has none")
@pytest.mark.parametrize("way", MUTE)
def test_a_forked_child_that_cannot_write_is_heard_all_the_same(tmp_path: Path, way: str) -> None:
    before = f"{IMPORTS}{MORE}import resource, signal\ndef work():\n    {MUTE[way]}\n    with contextlib.suppress(AssertionError):\n        {FALSE}\n"
    text = section("p = FORK.Process(target=work)\np.start()\np.join()", before)
    if way == "nobody" and os.getuid():
        text = text.replace(MUTE[way], "os.chmod(os.path.dirname(os.environ['TMPDIR']), 0)")
    [said] = messages(process.record_of(write(tmp_path, text)))
    assert said == f"{line_of(text, FALSE)}: wrong in a child process, which could not say how: 1 == 2"


def test_a_lecture_that_empties_its_temporary_folder_takes_no_word_away(tmp_path: Path) -> None:
    before = f"{IMPORTS}{MORE}import pathlib, tempfile\ndef work():\n    with contextlib.suppress(AssertionError):\n        {FALSE}\n"
    body = "p = FORK.Process(target=work)\np.start()\np.join()\nfor it in pathlib.Path(tempfile.gettempdir()).iterdir():\n    if it.is_file(): it.unlink()"
    text = section(body, before)
    assert found(process.record_of(write(tmp_path, text))) == expected(text)


@pytest.mark.parametrize(
    "again",
    [
        "runpy.run_path(__file__, run_name='copy')['check'](3)",
        "spec = importlib.util.spec_from_file_location('copy', __file__)\ncopy = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(copy)\ncopy.check(3)",
        "importlib.machinery.SourceFileLoader('copy', __file__).load_module().check(3)",
    ],
)
def test_a_second_copy_of_the_lecture_is_the_lecture(tmp_path: Path, again: str) -> None:
    before = "import contextlib, importlib.util, runpy, warnings\ndef check(x):\n    with contextlib.suppress(AssertionError):\n        assert x == 4, 'HERE'\n"
    text = section(f"check(4)\n{again}", before)
    assert found(process.record_of(write(tmp_path, text))) == expected(text)


# --------------------------------------------------------------------------- children that begin afresh

IS_FOUR = "def check(x):\n    assert x == 4, 'HERE'\n    return x\n"
FRESH = {
    "a process": "p = CONTEXT.Process(target=check, args=(3,))\np.start()\np.join()",
    "a pool": "with CONTEXT.Pool(1) as pool:\n    pool.apply_async(check, (3,)).wait()",
    "an executor": "with ProcessPoolExecutor(1, CONTEXT) as pool:\n    pool.submit(check, 3)",
    "what a child swallows": "p = CONTEXT.Process(target=swallow, args=(3,))\np.start()\np.join()",
    "what a child leaves": "p = CONTEXT.Process(target=left, args=(3,))\np.start()\np.join()",
}
MORE_OF_THEM = f"{IS_FOUR}def swallow(x):\n    with contextlib.suppress(AssertionError):\n        check(x)\ndef left(x):\n    with contextlib.suppress(SystemExit):\n        assert sys.exit() == x, 'THERE'\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_that_begins_afresh_reports_too(tmp_path: Path, method: str) -> None:
    before = f"{IMPORTS}import multiprocessing, sys\nfrom concurrent.futures import ProcessPoolExecutor\nCONTEXT = multiprocessing.get_context('{method}')\n{MORE_OF_THEM}"
    text = section("check(4)\n" + FRESH["what a child swallows"], before)
    made = process.record_of(write(tmp_path, text))
    assert found(made) == {line_of(text, "'HERE'")}
    [said] = [error.message for _, error in made.errors()]
    assert said.splitlines()[:3] == ["assert fails: HERE", "x is 3", "it was raised in a child process"]
    left = section("check(4)\n" + FRESH["what a child leaves"], before)
    [said] = messages(process.record_of(write(tmp_path, left)))
    assert said.startswith(
        f"{line_of(left, 'THERE')}: never judged: the assert sys.exit() == x was left by SystemExit"
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("way", FRESH)
def test_a_child_of_every_kind_reports_however_it_is_started(tmp_path: Path, method: str, way: str) -> None:
    before = f"{IMPORTS}import multiprocessing, sys\nfrom concurrent.futures import ProcessPoolExecutor\nCONTEXT = multiprocessing.get_context('{method}')\n{MORE_OF_THEM}"
    text = section(f"check(4)\n{FRESH[way]}", before)
    where = "THERE" if "leaves" in way else "HERE"
    assert line_of(text, f"'{where}'") in found(process.record_of(write(tmp_path, text)))


def test_a_child_that_begins_afresh_and_is_right_says_nothing(tmp_path: Path) -> None:
    before = f"import multiprocessing\nCONTEXT = multiprocessing.get_context('spawn')\n{IS_FOUR}def only_there():\n    assert 1 < 2\n"
    body = "with CONTEXT.Pool(1) as pool:\n    four = pool.apply(check, (4,))\n    pool.apply(only_there)\nassert four == 4"
    made = process.record_of(write(tmp_path, section(body, before)))
    assert failures(made) == [] and unrun(made) == []


COMMANDS = {
    "the file": "subprocess.run([sys.executable, __file__])",
    "the file, in a shell": "subprocess.run(f'{sys.executable} {__file__}', shell=True)",
    "the module": "subprocess.call([sys.executable, '-W', 'ignore', '-m', 'lecture_sample'])",
    "a text": "subprocess.Popen([sys.executable, '-c', 'import lecture_sample; lecture_sample.check(3)']).wait()",
    "a runner": "subprocess.run([sys.executable, '-m', 'cProfile', __file__], stdout=subprocess.DEVNULL)",
    "os.system": "os.system(f'{sys.executable} {__file__}')",
    "asyncio": "async def go():\n    await (await asyncio.create_subprocess_exec(sys.executable, __file__)).wait()\nasyncio.run(go())",
}
OTHERS = """
subprocess.run(['cat', __file__], stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, '-c', 'print(1)'])
subprocess.run([sys.executable, '-m', 'tokenize', __file__], stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, 'other.py', __file__])
os.system('true')
"""


def test_a_command_that_runs_the_lecture_elsewhere_is_said(tmp_path: Path) -> None:
    text = section(
        "\n".join(["check(4)", *COMMANDS.values()]), f"import asyncio, os, subprocess, sys\n{IS_FOUR}"
    )
    said = messages(process.record_of(write(tmp_path, text)))
    assert len(said) == len(COMMANDS)
    for line in said:
        first, way_out = line.splitlines()
        assert ": never judged: what the lecture asserts in another Python, started by " in first
        assert way_out == (
            "call its function in a child of multiprocessing, whose asserts are heard; or run another file"
        )


def test_other_commands_and_a_lecture_that_asserts_nothing_are_left_alone(tmp_path: Path) -> None:
    before = "import os, subprocess, sys\nfrom pathlib import Path\n"
    text = section(f"check(4)\nPath('other.py').write_text('')\n{OTHERS}", f"{before}{IS_FOUR}")
    assert failures(process.record_of(write(tmp_path, text))) == []
    text = section("subprocess.run([sys.executable, __file__])", before)
    assert failures(process.record_of(write(tmp_path, text))) == []


def test_what_fails_after_the_record_was_made_fails_the_run(tmp_path: Path) -> None:
    late = f"def late(os=os, TMP=TMP):\n    if os.path.exists(f'{{TMP}}/../left'):\n        {FALSE}\n"
    text = section("sys.stderr.flush = late", f"import os, sys\nTMP = os.environ['TMPDIR']\n{late}")
    made = process.record_of(write(tmp_path, text))
    assert found(made) == expected(text)
    assert "it was raised after the lecture's end" in messages(made)[0]


def test_a_thread_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    text = section(
        "threading.Thread(target=late).start()",
        f"import threading, time\ndef late():\n    time.sleep(60)\n    {FALSE}\n",
    )
    [said] = messages(process.record_of(write(tmp_path, text)))
    assert said == (
        f"{line_of(text, 'sleep')}: the thread Thread-1 (late) still runs after the end: nobody sees what it has yet to assert\n"
        "join it in its section"
    )


SHOWN = """
import threading, time
def late():
    time.sleep(60)
    assert 1 == 2
class Chart:
    def __repr__(self):
        return "a chart"
    def _repr_mimebundle_(self, **_):
        threading.Thread(TARGET).start()
        time.sleep(9)
"""


@pytest.mark.parametrize(
    ("target", "blamed"),
    [
        ("target=time.sleep, args=(60,)", False),
        ("target=threading.Event().wait", False),
        ("target=late", True),
    ],
)
def test_a_thread_that_began_while_a_value_showed_itself_is_not_the_lectures(
    tmp_path: Path, target: str, blamed: bool
) -> None:
    """As the browser is, which a library starts to draw a picture, and which is cut off; what asserts is."""
    text = section("chart = Chart()  # @inspect chart", SHOWN.replace("TARGET", target))
    made = process.record_of(write(tmp_path, text))
    assert ["still runs after the end" in said for said in messages(made)] == [True] * blamed
    why = "_repr_mimebundle_ took longer than 2 s"
    assert why in [getattr(shot, "why", "") for shot in made.by_key["one"].snapshots]


def test_every_module_of_the_folder_is_the_lectures_text(tmp_path: Path) -> None:
    folder = tmp_path / "lecture_09"
    folder.mkdir()
    write(
        folder,
        '"""Nine."""\nfrom .more import quiet\ndef main():\n    one()\ndef one():\n    quiet(1)\n',
        "__init__.py",
    )
    more = f"import contextlib\ndef quiet(x):\n    with contextlib.suppress(AssertionError):\n        bad(x)\ndef bad(x):\n    {FALSE}\n"
    write(folder, more, "more.py")
    [said] = failures(process.record_of(folder))
    assert said.startswith(f"lecture_09/more.py:{line_of(more, 'HERE')}: assert fails: HERE\n")


# ------------------------------------------------------------------------ what is said

CAUGHT = "try:\n    bad(3)\nexcept AssertionError:\n    pass"
BAD = "def bad(x):\n    assert x > 4, f'{x} is small'\n"


def test_the_report_names_the_line_the_caption_the_values_and_what_became_of_it(tmp_path: Path) -> None:
    done = command(write(tmp_path, section(CAUGHT, BAD)), "--quiet")
    assert done.returncode == 1
    assert done.stdout == (
        "lecture_sample.py:4: assert fails: 3 is small\n"
        "        x is 3\n"
        "        its exception ended nothing: it was caught, or Python swallowed it\n"
        "        if it is meant to fail, say so on its line: # @allow claim-fails: WHY\n"
        "    assert x > 4, f'{x} is small'\n"
        "\n"
        "0 claims hold, 0 fail, 0 not run; 1 error\n"
    )


def test_a_page_shows_it_beside_its_line_and_a_strict_build_counts_it(tmp_path: Path) -> None:
    text = section(
        "with contextlib.suppress(Exception):\n    assert 1 / 0\ntry:\n    FALSE\nexcept AssertionError:\n    pass",
        "import contextlib",
    )
    made = record(tmp_path, text.replace("FALSE", FALSE))
    body = "".join(page.pages(made, {}).values())
    assert "✗ error</strong> assert fails: HERE" in body
    assert (
        f"An assert is wrong here.</strong> <small>lecture_sample.py:{line_of(text, 'FALSE')}</small>" in body
    )
    assert "✗ error</strong> never judged: the assert 1 / 0 was left by ZeroDivisionError" in body
    found = judged(made)
    assert [str(finding).split(": ")[1] for finding in found.errors] == ["never judged", "assert fails"]


def test_one_whose_exception_ended_the_section_is_said_once(tmp_path: Path) -> None:
    text = section("bad(3)", BAD)
    assert messages(record(tmp_path, text)) == [f"{line_of(text, 'small')}: AssertionError: 3 is small"]
    of_thread = "with ThreadPoolExecutor(1) as pool:\n    pool.submit(bad, 3).result()"
    assert messages(record(tmp_path, section(of_thread, f"{IMPORTS}{BAD}"))) == [
        "6: AssertionError: 3 is small"
    ]


def test_one_that_fails_in_each_iteration_is_said_once(tmp_path: Path) -> None:
    text = section(
        "for i in range(1000):\n    try:\n        bad(i % 4)\n    except AssertionError:\n        pass", BAD
    )
    [said] = messages(record(tmp_path, text))
    assert said.splitlines()[:2] == [f"{line_of(text, 'small')}: assert fails: 0 is small", "x is 0"]


def test_a_value_whose_text_fails_too_is_no_endless_recursion(tmp_path: Path) -> None:
    before = "import contextlib\nclass A:\n    def __repr__(self):\n        assert not self, 'HERE'\n"
    text = section("with contextlib.suppress(AssertionError):\n    repr(A())", before)
    assert found(record(tmp_path, text)) == expected(text)


def test_at_the_end_of_the_stack_it_is_seen_too(tmp_path: Path) -> None:
    before = "import contextlib\ndef deep(n):\n    if n:\n        deep(n - 1)\n    assert n > 10**6, 'HERE'\n"
    body = "for n in range(600, 1000):\n    with contextlib.suppress(AssertionError, RecursionError):\n        deep(n)"
    text = section(body, before)
    assert found(record(tmp_path, text)) == expected(text)


def test_python_that_leaves_asserts_out_leaves_none_of_these_out(tmp_path: Path) -> None:
    done = command(write(tmp_path, section(CAUGHT, BAD)), "--quiet", env={"PYTHONOPTIMIZE": "2"})
    assert done.returncode == 1
    assert "lecture_sample.py:4: assert fails: 3 is small" in done.stdout


def test_a_plain_module_beside_the_lecture_raises_as_in_plain_python(tmp_path: Path) -> None:
    write(tmp_path, BAD, "beside.py")
    made = record(tmp_path, section(CAUGHT.replace("bad", "beside.bad"), "import beside"))
    assert failures(made) == []


# ------------------------------------------------------------------------ meant to fail


def test_one_that_is_meant_to_fail_is_marked_and_raises_as_in_plain_python(tmp_path: Path) -> None:
    body = "for x in (3, 5):\n    try:\n        bad(x)\n    except AssertionError as e:\n        said = str(e)\nassert said == '3 is small'\n"
    body += "with contextlib.suppress(AssertionError):\n    assert said == ''  # @fails\n"
    body += "with contextlib.suppress(ZeroDivisionError):\n    assert 1 / 0  # @fails\n"
    made = record(tmp_path, section(body, f"import contextlib\n{BAD.rstrip()}  # @fails\n"))
    assert failures(made) == []
    assert unrun(made) == []
    assert claims(made) == {"said == '3 is small'": "holds"}


def test_one_that_is_marked_and_held_is_an_error(tmp_path: Path) -> None:
    made = record(tmp_path, section("bad(5)\nbad(6)", f"{BAD.rstrip()}  # @fails\n"))
    assert failures(made) == [
        "lecture_sample.py:4: marked @fails, but it held: x > 4\n    assert x > 4, f'{x} is small'  # @fails"
    ]


def test_one_that_is_marked_and_caught_by_nobody_ends_its_section(tmp_path: Path) -> None:
    text = section("assert 1 == 2  # @fails\nassert 1 == 1")
    made = record(tmp_path, text)
    assert messages(made) == [f"{line_of(text, '1 == 2')}: AssertionError\n{WAY_OUT_MEANT}"]


def test_a_mark_that_stands_at_no_assert_is_refused(tmp_path: Path) -> None:
    done = command(write(tmp_path, section("x = 1  # @fails")))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "run_lecture.py: lecture_sample.py:11:12: @fails stands at no assert",
        "    x = 1  # @fails",
        "           ^",
        "    put it on the line of the assert",
    ]


# ------------------------------------------------------------------------ no switch that silences

QUIET = "def check(x):\n    with contextlib.suppress(AssertionError):\n        assert x == 4, 'HERE'\n"
DB = "class DB:\n    def compile(self, f): return f\n    jit = script = njit = compile\ndb = DB()\n"
METHOD = f"class W:\n{textwrap.indent(QUIET.replace('(x)', '(self, x)'), '    ')}"
# What looks like a compiler and is none, or is one that reads something else.
SILENCERS = {
    "compile": (f"{DB}{QUIET}", "db.compile(check)\ncheck(3)"),
    "jit": (f"{DB}{QUIET}", "db.jit(check)\ncheck(3)"),
    "script, beside torch": (f"import torch\n{DB}{QUIET}", "db.script(check)\ncheck(3)"),
    "a decorator of one's own": (f"def jit(f): return f\n@jit\n{QUIET}", "check(3)"),
    "re by another name": (
        f"import re as regexp\n{METHOD}",
        "with contextlib.suppress(TypeError):\n    regexp.compile(W)\nW().check(3)",
    ),
    "a class that torch.compile does not read": (
        f"import torch\n{METHOD}class M(torch.nn.Module):\n    def forward(self, x): return x\n",
        "torch.compile(M())\nW().check(3)",
    ),
}


@pytest.mark.parametrize(
    "way", [pytest.param(it, marks=pytest.mark.slow) if "torch.compile" in it else it for it in SILENCERS]
)
def test_what_only_looks_like_a_compiler_silences_nothing(tmp_path: Path, way: str) -> None:
    before, body = SILENCERS[way]
    text = section(body, f"import contextlib\n{before}")
    run = (
        process.record_of if "torch.compile" in way else lambda file: record(tmp_path, text)
    )  # it warns as it is imported
    assert found(run(write(tmp_path, text))) == expected(text)


@pytest.mark.parametrize("more", ["", "\ninner(1)"])
def test_a_definition_that_is_stepped_over_still_knows_which_of_its_asserts_ran(
    tmp_path: Path, more: str
) -> None:
    before = "def inner(x):\n    if x > 5:\n        assert x == 7\n    assert x < 9\ndef outer(x):  # @stepover\n    inner(x)\n"
    [never] = unrun(record(tmp_path, section(f"outer(1){more}", before)))
    assert never.dead and str(never.finding).splitlines()[0].endswith("never ran: the assert x == 7")
    marked = before.replace("assert x < 9", "assert x < 9  # @fails").replace("if x > 5:", "if x == 1:")
    [said] = messages(
        record(
            tmp_path,
            section(
                "with contextlib.suppress(AssertionError):\n    outer(1)",
                f"import contextlib\n{marked.replace('x == 7', 'x == 1')}",
            ),
        )
    )
    assert said.endswith("marked @fails, but it held: x < 9")


@pytest.mark.parametrize("call", ["late", "functools.partial(late)", "D().late"])
def test_a_timer_that_still_waits_at_the_end_is_an_error(tmp_path: Path, call: str) -> None:
    before = f"import functools, threading\ndef late():\n    {FALSE}\nclass D:\n    def late(self):\n        late()\n"
    text = section(f"threading.Timer(60, {call}).start()", before)
    [said] = messages(process.record_of(write(tmp_path, text)))
    line = line_of(text, "def late(self)" if "D" in call else "def late")
    assert re.sub(r"Thread-\d+", "T", said) == (
        f"{line}: the thread T still runs after the end: nobody sees what it has yet to assert\njoin it in its section"
    )


# ------------------------------------------------------------------------ never ran, never judged


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("kept = [helper]", "def helper(x):\n    assert x\n"),
        ("check = lambda: helper(1)", "def helper(x):\n    assert x\n"),
        ("steps = helper(1)", "def helper(x):\n    assert x\n    yield\n"),
        ("d = D()", "class D:\n    def check(self, x):\n        assert x\nkept = D.check\n"),
        ("if len('a') > 1:\n    helper(1)", "def helper(x):\n    assert x\n"),
        ("helper(0)", "def helper(x):\n    if x:\n        assert x\n"),
        ("helper(0)", "def helper(x):\n    def inner():\n        assert x\n    return inner\n"),
    ],
)
def test_an_assert_of_a_helper_that_never_ran_is_dead(tmp_path: Path, body: str, before: str) -> None:
    [never] = unrun(record(tmp_path, section(body, before)))
    assert never.dead and str(never.finding).splitlines()[0].endswith(": never ran: the assert x")


@pytest.mark.parametrize(
    "body",
    [
        "helper(1)",
        "helper(1)  # @stepover",
        "t = threading.Thread(target=helper, args=(1,))\nt.start()\nt.join()",
    ],
)
@pytest.mark.parametrize(
    "before", ["def helper(x):\n    assert x\n", "def helper(x):  # @stepover\n    assert x\n"]
)
def test_an_assert_that_ran_anywhere_is_not_listed(tmp_path: Path, body: str, before: str) -> None:
    assert unrun(record(tmp_path, section(body, f"import threading\n{before}"))) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: this system has none")
def test_an_assert_that_ran_in_a_forked_child_is_not_listed(tmp_path: Path) -> None:
    before = f"{MORE}def work():\n    assert 1 < 2\n"
    text = section("p = FORK.Process(target=work)\np.start()\np.join()", before)
    assert unrun(process.record_of(write(tmp_path, text))) == []


def test_an_assert_of_a_helper_that_only_another_device_calls_waits_for_it(tmp_path: Path) -> None:
    cuda = "\n\n@requires('cuda')\ndef two():\n    first(1)\n"
    before = "def first(x):\n    second(x)\ndef second(x):\n    assert x\n"
    text = section("x = 1", before).replace("    one()\n", "    one()\n    two()\n", 1) + cuda
    here = record(tmp_path, text, device="cpu")
    [waits] = unrun(here)
    assert not waits.dead and "has not run yet: the assert x: it needs cuda" in str(waits.finding)
    there = record(tmp_path, text.replace("@requires('cuda')", "#"), device="cpu")
    assert unrun(here, [there]) == []


@pytest.mark.parametrize(
    ("body", "before", "text"),
    [
        ("with contextlib.suppress(ZeroDivisionError):\n    assert 1 / 0 == 1", "", "1 / 0 == 1"),
        (
            "for x in (1, 0):\n    with contextlib.suppress(ZeroDivisionError):\n        assert 1 / x == 1",
            "",
            "1 / x == 1",
        ),
        (
            "with contextlib.suppress(ZeroDivisionError):\n    helper(0)",
            "def helper(x):\n    assert 1 / x\n",
            "1 / x",
        ),
        ("try:\n    assert 1 / 0\nexcept ZeroDivisionError:\n    pass", "", "1 / 0"),
    ],
)
def test_an_assert_whose_test_raised_unheard_was_never_judged(
    tmp_path: Path, body: str, before: str, text: str
) -> None:
    made = process.record_of(write(tmp_path, section(body, f"import contextlib\n{before}")))
    [said] = [error.message for _, error in made.errors()]
    assert said == (
        f"never judged: the assert {text} was left by ZeroDivisionError: division by zero\n"
        "let it be judged; if it is meant to raise, say so on its line: # @allow claim-fails: WHY"
    )
    assert not outcome.holds(made)
    assert unrun(made) == []


# What leaves the test of an assert before it is judged. Each is the body of a section, or what stands above it.
REPLY = "async def reply():\n    await asyncio.sleep(1)\nasync def ask():\n    assert await reply() == 'pong', 'HERE'\n"
STEPS = "def steps():\n    assert (yield 1) == 2, 'HERE'\n"
TEST = "class Over(BaseException): pass\ndef over(*_): raise Over\ndef check(ask):\n    assert ask() == 1, 'HERE'\n"
LEFT = {
    "wait_for": f"{REPLY}async def go():\n    with contextlib.suppress(TimeoutError):\n        await asyncio.wait_for(ask(), 0.01)\nasyncio.run(go())",
    "timeout": f"{REPLY}async def go():\n    with contextlib.suppress(TimeoutError):\n        async with asyncio.timeout(0.01):\n            await ask()\nasyncio.run(go())",
    "TaskGroup": f"{REPLY}async def bad():\n    raise KeyError\nasync def go():\n    try:\n        async with asyncio.TaskGroup() as group:\n            group.create_task(ask())\n            group.create_task(bad())\n    except* KeyError:\n        pass\nasyncio.run(go())",
    "a task that is left": f"{REPLY}async def go():\n    asyncio.create_task(ask())\n    await asyncio.sleep(0)\nasyncio.run(go())",
    "a closed generator": f"{STEPS}g = steps()\nnext(g)\ng.close()",
    "a dropped generator": f"{STEPS}next(steps())",
    "an async generator": "async def many():\n    assert (yield 1) == 2, 'HERE'\nasync def go():\n    async for _ in many():\n        break\nasyncio.run(go())",
    "throw": f"{STEPS}g = steps()\nnext(g)\nwith contextlib.suppress(KeyError):\n    g.throw(KeyError)",
    "SystemExit": f"{TEST}with contextlib.suppress(SystemExit):\n    check(sys.exit)",
    "argparse": f"{TEST}with contextlib.suppress(SystemExit):\n    check(lambda: argparse.ArgumentParser().parse_args(['-h']))",
    "KeyboardInterrupt": f"{TEST}with contextlib.suppress(KeyboardInterrupt):\n    check(lambda: signal.raise_signal(signal.SIGINT))",
    "a BaseException": f"{TEST}with contextlib.suppress(Over):\n    check(over)",
    "an alarm": f"{TEST}signal.signal(signal.SIGALRM, over)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nwith contextlib.suppress(Over):\n    check(lambda: time.sleep(1))",
    "pytest.skip": f"{TEST}with contextlib.suppress(BaseException):\n    check(lambda: pytest.skip('no'))",
    "of a claim": "def over(): raise BaseException\nwith contextlib.suppress(BaseException):\n    assert 3 == len('abc'); assert over() == 2, 'HERE'",
    "of one judged before": f"{TEST}check(lambda: 1)\nwith contextlib.suppress(Over):\n    check(over)",
    "an exception of another's": f"{TEST}try:\n    check(over)\nexcept Over:\n    print()",
    "stepped over": "def check(ask):  # @stepover\n    assert ask() == 1, 'HERE'\nwith contextlib.suppress(SystemExit):\n    check(sys.exit)",
}  # fmt: skip
# The same, where only the end of the process shows it.
LEFT_AT_THE_END = {
    "a generator of the module": f"{STEPS}kept = steps()\nnext(kept)",
    "a generator that another module holds": f"{STEPS}os.kept = steps()\nnext(os.kept)",
    "a daemon": f"{TEST}threading.Thread(target=check, args=(lambda: time.sleep(60),), daemon=True).start()\ntime.sleep(0.05)",
    "a fork that raises": f"{TEST}p = FORK.Process(target=check, args=(sys.exit,))\np.start()\np.join()",
    "a fork that ends": f"{TEST}def bye(): os._exit(0)\np = FORK.Process(target=check, args=(bye,))\np.start()\np.join()",
}  # fmt: skip
LEAVING = f"{IMPORTS}{MORE}import argparse, pytest, signal, sys\n"


def test_a_test_that_was_left_is_not_one_that_held(tmp_path: Path) -> None:
    text = lecture(list(LEFT.values())).replace(IMPORTS, LEAVING)
    made = process.record_of(write(tmp_path, text))
    assert found(made) == expected(text)
    assert all(": never judged: the assert " in said and " was left by " in said for said in failures(made))


RAISED = ["SystemExit", "KeyboardInterrupt", "BaseException", "asyncio.CancelledError", "KeyError", "Over"]
CATCHES = ["try", "bare except", "return in finally", "break in finally", "continue in finally"]


def leavings() -> list[str]:
    """Bodies of sections: every place of an assert, left by every kind of exception, caught in every way."""
    leave = "class Over(BaseException): pass\ndef leave():\n    raise {}\n"
    places = [text for text in CALLS.values() if "FALSE" in text]
    return [
        leave.format(what) + f"{place.replace('FALSE', left)}\n{WAYS[way]}"
        for place, what, way in itertools.product(places, RAISED, CATCHES)
        for left in ["assert leave() == 1, 'HERE'"]
    ]


def test_a_test_that_is_left_anywhere_fails_the_run(tmp_path: Path) -> None:
    bodies = leavings()
    assert len(set(bodies)) == len(bodies) >= 1000
    check(tmp_path, bodies[:: 7 if IN_CI else 19])  # as above


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: this system has none")
def test_a_test_that_nobody_ends_is_not_one_that_held(tmp_path: Path) -> None:
    own = re.compile(r"\b(Over|over|check|steps|bye|kept|p)\b")  # names, here one for each
    ends = [own.sub(rf"\g<1>{i}", end) for i, end in enumerate(LEFT_AT_THE_END.values())]
    text = section("x = 1", "\n".join([LEAVING, *ends]))
    made = process.record_of(write(tmp_path, text))
    assert len(expected(text)) == len(LEFT_AT_THE_END)
    assert found(made) == expected(text)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: this system has none")
@pytest.mark.parametrize("end", ["os._exit(0)", "FORK.Process(target=print).start()\n        os._exit(0)"])
def test_what_a_fork_leaves_is_judged_in_its_parent(tmp_path: Path, end: str) -> None:
    before = f"{MORE}def child():\n    if os.fork() == 0:\n        {end}\n    os.wait()\n    return 1\n"
    body = "def helper():\n    assert child() == 1\nhelper()\nassert child() + 1 == 2"
    assert failures(process.record_of(write(tmp_path, section(body, before)))) == []


def test_a_test_that_was_left_and_ended_its_section_is_said_by_that_alone(tmp_path: Path) -> None:
    body = "try:\n    check(over)\nexcept Over as error:\n    raise KeyError('one') from error"
    [said] = failures(process.record_of(write(tmp_path, section(body, TEST))))
    assert "KeyError: 'one'" in said
    group = "async def go():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(ask())\nasyncio.run(go())"
    asks = "import asyncio\nasync def ask():\n    assert await reply() == 1\nasync def reply():\n    raise KeyError\n"
    [said] = failures(process.record_of(write(tmp_path, section(group, asks))))
    assert "ExceptionGroup" in said


@pytest.mark.parametrize(
    "line",
    [
        "assert path == 'a'; load(path); assert path == 'b', 'HERE'",
        "assert path == 'a'; load(path); assert path == 'a', 'HERE'",
    ],
)
@pytest.mark.parametrize("of_section", [True, False])
def test_each_assert_is_known_by_its_own_place(tmp_path: Path, line: str, of_section: bool) -> None:
    before = "import contextlib\ndef load(path):\n    raise OSError\n"
    body = f"with contextlib.suppress(OSError):\n    {line}"
    if of_section:
        text = section(f"path = 'a'\n{body}", before)
    else:
        text = section("helper('a')", f"{before}def helper(path):\n{textwrap.indent(body, '    ')}\n")
    [never] = unrun(record(tmp_path, text))
    place = never.finding.place
    assert never.dead and place is not None
    assert place.text[place.column - 1 :].startswith(line[line.rindex("assert") :])


def test_what_raised_and_ended_the_section_is_said_by_that_alone(tmp_path: Path) -> None:
    made = record(tmp_path, section("helper(0)", "def helper(x):\n    assert 1 / x\n"))
    assert len(failures(made)) == 1
    assert unrun(made) == []
