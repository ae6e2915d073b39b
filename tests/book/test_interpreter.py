"""The interpreter's own test suite has the same outcome plain and with probes in every statement.

The oracle is CPython's: its `test` package, written by others for another purpose, run by `unittest`.
`interpreter_suite.py` runs one module in a process of its own; this file compares.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SUITE = Path(__file__).with_name("interpreter_suite.py")
SECONDS = 120  # for one module
# Read once: pytest changes the environment while threads start processes.
SURROUNDINGS = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
    "PYTHONHASHSEED": "0"
}

# Run with the probes of a real recording, on this Python: CI runs the suite on every one.
ALWAYS = "test_grammar test_generators test_with test_scope test_patma test_exceptions".split()

# Run with probes that count. Modules that consist of doctests are left out: their code would not be probed.
ALSO = """
    test_coroutines test_asyncgen test_contextlib test_contextlib_async test_except_star test_exception_group
    test_named_expressions test_decorators test_class test_super test_raise test_global test_fstring test_enum
    test_dataclasses test_functools test_augassign test_builtin test_call test_compare test_copy test_dictcomps test_dynamic
    test_dynamicclassattribute test_funcattrs test_genericclass test_isinstance test_keywordonlyarg test_module
    test_positional_only_arg test_property test_string_literals test_subclassinit test_syntax test_threading_local
    test_traceback test_types test_typing test_weakset test_context test_code test_userdict
""".split()

# Run on every other CPython that is here too, with probes that count; all others where the slow ones are: in CI.
SAMPLE = {"test_grammar", "test_scope"}

# What a newer language has.
SINCE = {"test_type_params": (3, 12), "test_type_aliases": (3, 12), "test_listcomps": (3, 12)}

# These look at what probes change, and only at that. Of the slow modules one part that does: it is enough to differ.
DIFFERENT = {
    "test_sys_settrace.RaisingTraceFuncTestCase": "counts trace events: a probe that is a Python function is called, and traced",
    "test_compile.TestSpecifics.test_merge_constants": "looks at the constants of code objects: probes are constants",
    "test_frame": "looks at the newest frame that the interpreter made: it may be a probe's",
    "test_dis": "looks at the instructions of code objects",
    "test_bdb": "steps into the next call: that is a probe's",
}


@dataclass(frozen=True)
class Job:
    """One module, or the part of it that its dotted name says, run by one interpreter with one kind of probes."""

    python: str
    mode: str
    module: str

    def run(self) -> dict[str, Any]:
        """The outcomes, or `failed` with what the process said last."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**SURROUNDINGS, "TMPDIR": folder}
            if self.mode != "plain" and self.python != sys.executable:
                environment["PYTHONPATH"] = libraries(self.python)
            command = [self.python, str(SUITE), self.mode, self.module]
            try:
                done = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                    timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"failed": f"{self} took longer than {SECONDS} s"}
        last = done.stdout.rpartition('{"steps": ')
        if done.returncode or not last[1]:
            return {"failed": f"{self} exited with {done.returncode}: {done.stderr[-2000:]}"}
        found: dict[str, Any] = json.loads(last[1] + last[2].splitlines()[0])
        return found


# ------------------------------------------------------------------------------- interpreters


@cache
def interpreters() -> dict[tuple[int, int], tuple[str, bool]]:
    """For every version of CPython that is here: a path, and whether its `test` package is there."""
    paths = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(11, 15))]
    paths += sorted(str(path) for path in Path.home().glob(".pyenv/versions/3.1[1-9]*/bin/python3"))
    found: dict[tuple[int, int], tuple[str, bool]] = {}
    for path in filter(None, paths):
        version, implementation, whole = about(path)
        if version >= (3, 11) and implementation == "cpython" and (whole or version not in found):
            if version not in found or not found[version][1]:
                found[version] = (path, whole)
    return found


@cache
def libraries(python: str) -> str:
    """A folder with what reading a lecture needs, msgspec alone, for another interpreter than this one."""
    folder = tempfile.mkdtemp(prefix="interpreter-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    wanted = f"msgspec=={importlib.metadata.version('msgspec')}"
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", folder, wanted], check=True, capture_output=True, timeout=SECONDS)
    return folder


def about(python: str) -> tuple[tuple[int, int], str, bool]:
    """Version and implementation of an interpreter, and whether it has its tests; (0, 0) where it does not run."""
    ask = (
        "import sys, json, importlib.util as u; has = u.find_spec('test') and u.find_spec('test.test_grammar');"
        "print(json.dumps([sys.version_info[:2], sys.implementation.name, bool(has)]))"
    )
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60, check=True)
        version, implementation, whole = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return (0, 0), "", False
    return (version[0], version[1]), implementation, whole


HERE = sys.version_info[:2]


def on(version: tuple[int, int], modules: list[str]) -> list[Any]:
    """Parameters (python, module), skipped with the reason where that cannot run."""
    name = f"Python {version[0]}.{version[1]}"
    path, whole = interpreters().get(version, ("", False))
    reason = (
        ""
        if whole
        else f"needs {name} with its `test` package"
        if path
        else f"needs {name}: there is none here"
    )
    skip = [pytest.mark.skip(reason=reason)] if reason else []
    marks = {module: skip if module in SAMPLE else [*skip, pytest.mark.slow] for module in modules}
    return [pytest.param(path, module, id=f"{name} {module}", marks=marks[module]) for module in modules]


def since(version: tuple[int, int]) -> list[str]:
    return [module for module, first in SINCE.items() if version >= first]


ELSEWHERE = [
    parameter
    for version in sorted({(3, 11), (3, 12), (3, 13), (3, 14), *interpreters()} - {HERE})
    for parameter in on(version, [*sorted(SAMPLE), *since(version)])
]


# ------------------------------------------------------------------------------- comparing


def jobs_of(item: pytest.Item) -> list[Job]:
    """What a test of this file will ask for."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.path.name != Path(__file__).name:
        return []
    python, module = callspec.params["python"], callspec.params["module"]
    mode = "recorder" if "recording" in item.name else "counting"
    return [Job(python, "plain", module), Job(python, mode, module)] if python else []


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> Iterator[dict[Job, Future[dict[str, Any]]]]:
    """All that the chosen tests need, running on all cores; each job once."""
    jobs = dict.fromkeys(job for item in request.session.items for job in jobs_of(item))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield {job: pool.submit(job.run) for job in jobs}
        pool.shutdown(cancel_futures=True)


def outcomes(results: dict[Job, Future[dict[str, Any]]], job: Job) -> tuple[dict[str, str], int]:
    found = results[job].result()
    if "failed" in found:
        pytest.fail(found["failed"])
    return found["outcomes"], found["steps"]


def assert_same(results: Any, python: str, module: str, mode: str) -> None:
    plain, _ = outcomes(results, Job(python, "plain", module))
    probed, steps = outcomes(results, Job(python, mode, module))
    assert "ok" in plain.values(), "nothing passes, so nothing is compared"
    assert steps > len(plain), "too few statements were probed to compare anything"
    assert probed == plain


@pytest.mark.parametrize("python, module", on(HERE, ALSO + since(HERE)))
def test_outcomes_are_those_of_the_plain_interpreter(results, python, module):
    assert_same(results, python, module, "counting")


@pytest.mark.parametrize("python, module", on(HERE, ALWAYS))
def test_outcomes_while_recording_are_those_of_the_plain_interpreter(results, python, module):
    assert_same(results, python, module, "recorder")


@pytest.mark.parametrize("python, module", ELSEWHERE)
def test_outcomes_on_another_interpreter_are_those_of_that_one(results, python, module):
    assert_same(results, python, module, "counting")


@pytest.mark.parametrize("python, module", on(HERE, list(DIFFERENT)))
def test_what_is_listed_as_different_differs(results, python, module):
    plain, _ = outcomes(results, Job(python, "plain", module))
    probed = results[Job(python, "counting", module)].result()
    assert probed.get("outcomes") != plain, f"{module} is no longer different: move it to ALSO"
