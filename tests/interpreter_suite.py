"""Run one module of the interpreter's own test suite, plain or instrumented, and print the outcomes.

    python tests/interpreter_suite.py test_grammar plain
    python tests/interpreter_suite.py test_grammar instrumented

Needs nothing but a CPython that carries its `test` package, so it runs on every one that is present.
The outcome of each test goes to standard output as JSON: {"test id": "ok" | "FAIL ..." | ...}.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def load(name: str, instrumented: bool) -> types.ModuleType:
    """The module `test.<name>`, its code compiled with counting probes if asked."""
    spec = importlib.util.find_spec(f"test.{name}")
    assert spec is not None and spec.origin is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"test.{name}"] = module
    text = importlib.util.decode_source(Path(spec.origin).read_bytes())
    if instrumented:
        code = instrumented_code(text, spec.origin)
    else:
        code = compile(text, spec.origin, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


def instrumented_code(text: str, filename: str) -> types.CodeType:
    """`text` with probes that only count. The package's `__init__` is bypassed: it holds no logic."""
    sys.path.insert(0, str(TOOLS))
    package = types.ModuleType("litbook")
    package.__path__ = [str(TOOLS / "litbook")]
    sys.modules["litbook"] = package
    from litbook import instrument, source

    sys.path.remove(str(TOOLS))
    return instrument.instrument(source.parse(text, filename, lecture=False), Counting(), filename)


class Counting:
    """Probes that count their calls and do nothing else."""

    steps = 0

    def step(self, statement: int) -> None:
        Counting.steps += 1

    def enter(self, function: int) -> None: ...
    def loop(self, statement: int) -> None: ...
    def turn(self, statement: int) -> None: ...
    def watch(self, watch: int, value: object) -> None: ...
    def missed(self, watch: int) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def section(self, function: int, call: object) -> None: ...
    def claim(self, claim: int) -> None: ...
    def operand(self, number: int, value: object) -> object:
        return value

    def holds(self, claim: int, caption: object = None) -> None: ...
    def fails(self, claim: int, caption: object = None) -> None: ...
    def axes(self, claim: int, annotation: object, value: object) -> None: ...
    def unread(self, claim: int) -> None: ...


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


def main() -> None:
    name, mode = sys.argv[1:3]
    module = load(name, mode == "instrumented")
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = Outcomes()
    suite.run(result)
    print(json.dumps({"steps": Counting.steps, "outcomes": result.found}), file=sys.__stdout__)


if __name__ == "__main__":
    main()
