"""Run one module of the interpreter's own test suite, or a part of it, plain or probed, and print the outcomes.

    python tests/book/interpreter_suite.py plain test_grammar
    python tests/book/interpreter_suite.py plain test_compile.TestSpecifics
    python tests/book/interpreter_suite.py counting test_grammar       probes that only count
    python tests/book/interpreter_suite.py recorder test_grammar       the probes of `litbook.probe.recorder`

Needs a CPython that carries its `test` package, and for probes msgspec, so it runs on every one that is present.
The last line on standard output is JSON: how many steps the probes heard, and the outcome of every
test, {"test id": "ok" | "FAIL ..." | ...}.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import subprocess
import sys
import types
import unittest
from collections import defaultdict
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name: str, mode: str) -> tuple[types.ModuleType, Any]:
    """The module `test.<name>`, compiled with the probes that `mode` names; and those probes."""
    # It brings typing_extensions, which changes `typing`: plain and probed tests see the same.
    with contextlib.suppress(ImportError):
        importlib.import_module("msgspec")
    spec = importlib.util.find_spec(f"test.{name}")
    assert spec is not None and spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"test.{name}"] = module
    text = importlib.util.decode_source(Path(spec.origin).read_bytes())
    if mode == "plain":
        code, probes = compile(text, spec.origin, "exec", dont_inherit=True), None
    else:
        code, probes = probed_code(text, spec.origin, mode)
    exec(code, module.__dict__)
    return module, probes


def probed_code(text: str, filename: str, mode: str) -> tuple[types.CodeType, Any]:
    """`text` with probes. The package's `__init__` is bypassed: it holds no logic."""
    sys.path.insert(0, str(TOOLS))
    package = types.ModuleType("litbook")
    package.__path__ = [str(TOOLS / "litbook")]
    sys.modules["litbook"] = package
    from litbook.lecture import parse
    from litbook.probe import instrument
    from litbook.probe.recorder import Recorder

    sys.path.remove(str(TOOLS))
    found = parse.parse(text, filename, lecture=False)
    probes: Any = Recorder(found) if mode == "recorder" else Counting()
    return instrument.instrument_files(found, probes)[0], probes


def steps(probes: Any) -> int:
    """How many steps were heard; of a recorder, how many statements ran at all."""
    return 0 if probes is None else Counting.steps or len(probes.log.reached)


class Counting:
    """Probes that count the steps that they are told alone, and do nothing else."""

    steps = 0

    def __init__(self) -> None:
        from litbook.probe.events import FirstIterations

        self.turns = defaultdict[int, FirstIterations](FirstIterations)

    def step(self, statement: int) -> None:
        Counting.steps += 1

    def enter(self, function: int, first: int, *arguments: object) -> None: ...
    def loop(self, statement: int) -> None: ...
    def turn(self, statement: int, first: int) -> None: ...
    def watch(self, watch: int, value: object) -> None: ...
    def clear(self, watch: int) -> None: ...
    def local(self, statement: int, name: str, value: object) -> None: ...
    def miss(self, watch: int) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def section(self, function: int, call: object) -> None: ...
    def claim(self, claim: int) -> int:
        return claim

    def operand(self, number: int, value: object) -> object:
        return value

    def verdict(self, stepped: None, claim: int, failed: bool) -> None: ...
    def holds(self, claim: int, caption: object = None) -> None: ...
    def fails(self, claim: int, caption: object = None) -> None: ...
    def axes(self, claim: int, annotation: object, value: object) -> None: ...
    def check_annotation(self, statement: int, annotation: object) -> None: ...
    def skip_annotation(self, claim: int) -> None: ...
    def false(self, statement: int) -> None: ...
    def message(self, statement: int, given: object) -> object:
        return given

    def reach(self, statement: int) -> None: ...
    def truth(self, statement: int, part: int, value: object, named: str) -> object:
        return value

    def watch_elements(self, statement: int, part: int, value: object, named: str) -> object:
        return value

    def side(self, statement: int, number: int, value: object) -> object:
        return value

    def tolerance(self, statement: int, value: object, kind: int, part: int, sides: int) -> object:
        return value

    def apart(self, statement: int, part: int, sides: int, place: int, value: object) -> object:
        return value

    def in_step(self, statement: int, part: int, given: tuple[object, ...]) -> tuple[object, ...]:
        return given

    def test(self, value: object) -> object:
        return value

    def pair(self, part: int, side: int, value: object) -> object:
        return value

    def leave_claims(self, first: int, last: int) -> None: ...


class Outcomes(unittest.TestResult):
    """Each test's outcome under its id; sub-tests are numbered under their test."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.found.setdefault(test.id(), "ok")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        self.found[test.id()] = f"FAIL {err[1]}"[:2000]  # type: ignore[index]

    def addError(self, test: unittest.TestCase, err: object) -> None:
        self.found[test.id()] = f"ERROR {err[0].__name__}: {err[1]}"[:2000]  # type: ignore[index]

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.found[test.id()] = "skipped"

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:
        self.found[test.id()] = "expected failure"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.found[test.id()] = "unexpected success"

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:
        if err is not None:
            self.found[subtest.id()] = f"FAIL {err[1]}"[:2000]  # type: ignore[index]


def without_processes(*_: object, **__: object) -> None:
    """A test that starts an interpreter of its own tells nothing here: what runs there has no probes."""
    raise unittest.SkipTest("runs in another process")


def main() -> None:
    mode, name = sys.argv[1:]
    name, _, part = name.partition(".")
    module, probes = load(name, mode)
    subprocess.Popen.__init__ = without_processes  # type: ignore[method-assign]
    result, loader = Outcomes(), unittest.defaultTestLoader
    (loader.loadTestsFromName(part, module) if part else loader.loadTestsFromModule(module)).run(result)
    print(json.dumps({"steps": steps(probes), "outcomes": result.found}), file=sys.__stdout__)


if __name__ == "__main__":
    main()
