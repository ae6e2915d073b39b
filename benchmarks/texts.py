"""Lectures as text: written by size, and renamed for the other contestants."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from textwrap import dedent, indent

HEAD = '"""A lecture to be measured."""\nfrom statistics import median\nfrom time import perf_counter\n'
HEAD += "import torch\nfrom litbook import note\n"


@dataclass(frozen=True)
class Case:
    """A lecture with one section, and how many of its lines run."""

    text: str
    lines: int


def section(body: str, before: str = "") -> str:
    """A lecture whose one section, `one`, has this body; `before` stands above it."""
    parts = [HEAD, dedent(before), "def main() -> None:\n    one()\n", "def one() -> None:"]
    return "\n\n".join(parts[:-1]) + f'\n\n{parts[-1]}\n    """One."""\n{indent(dedent(body), "    ")}\n'


def loop(iterations: int, *, inspect: bool) -> Case:
    """A loop with one line in it, inspected or not."""
    shown = "  # @inspect x" if inspect else ""
    text = section(f"x = 0\nfor i in range({iterations}):\n    x += i{shown}")
    return Case(text, 2 * iterations)


def straight(lines: int) -> Case:
    """Lines that run once each."""
    return Case(section("x = 0\n" + "x += 1\n" * lines), lines)


def recursion(depth: int, times: int) -> Case:
    """A function that calls itself `depth` deep, `times` times over."""
    before = """
        def down(n: int) -> int:
            if n == 0:
                return 0
            return 1 + down(n - 1)
    """
    return Case(section(f"for _ in range({times}):\n    down({depth})", before), times * (2 * depth + 4))


def tree(n: int) -> Case:
    """A function that calls itself twice: Fibonacci's numbers as they should not be computed."""
    before = """
        def fib(n: int) -> int:
            if n < 2:
                return n
            return fib(n - 1) + fib(n - 2)
    """
    calls = [1, 1]
    while len(calls) <= n:
        calls.append(1 + calls[-1] + calls[-2])
    return Case(section(f"found = fib({n})  # @inspect found", before), 2 * calls[n])


def training(steps: int, *, width: int = 256) -> Case:
    """A training loop with an inspected loss."""
    body = f"""
        torch.manual_seed(0)
        x = torch.randn(512, 16)
        y = x.sum(1, keepdim=True).sin()
        layers = torch.nn.Linear(16, {width}), torch.nn.ReLU(), torch.nn.Linear({width}, 1)
        model = torch.nn.Sequential(*layers)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range({steps}):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = loss.item()  # @inspect now
        assert now < 1
    """
    return Case(section(body), 6 * steps)


def timed_product(side: int, repeats: int, *, stepover: bool) -> Case:
    """A section that times a product of matrices: in its own lines, or in a helper that is stepped over."""
    before = """
        def timed(a: torch.Tensor, b: torch.Tensor, repeats: int) -> float:
            times = []
            for _ in range(repeats):
                start = perf_counter()
                a @ b
                times.append(perf_counter() - start)
            return median(times)
    """
    own = f"""
        times = []
        for _ in range({repeats}):
            start = perf_counter()
            a @ b
            times.append(perf_counter() - start)
        seconds = median(times)
    """
    over = f"seconds = timed(a, b, {repeats})  # @stepover"
    setting = f"torch.manual_seed(0)\na, b = torch.randn({side}, {side}), torch.randn({side}, {side})\n"
    found = "MEASURED.append(seconds)  # @measure seconds"
    body = setting + (over if stepover else dedent(own)) + f"\n{found}"
    return Case(section(body, "MEASURED: list[float] = []\n" + dedent(before)), 3 * repeats)


def long(lines: int) -> Case:
    """A lecture of about so many lines: prose, code, values and claims in sections of ten lines."""
    names = [f"section_{i}" for i in range(max(1, lines // 10))]
    calls = "".join(f"    {name}()\n" for name in names)
    bodies = "".join(
        f'def {name}() -> None:\n    """Section {i} counts."""\n'
        f'    note("A product of two numbers, which is the number of section {i} times itself:")\n'
        f"    x = {i}\n    y = x * x  # @inspect y\n"
        f"    z = [y, x]  # @inspect z\n    total = y + x\n"
        f'    assert total == sum(z), "the parts"\n\n\n'
        for i, name in enumerate(names)
    )
    text = f"{HEAD}\n\ndef main() -> None:\n{calls}\n\n{bodies}"
    return Case(text, 7 * len(names))


# ---------------------------------------------------------------------------- for the other contestants

_IMPORT = re.compile(r"^from litbook import ", re.M)
_DIRECTIVE = re.compile(r"@(inspect|measure|clear|hide|stepover)\b([^@\n]*)")
_NAMES = re.compile(r"[A-Za-z_][\w.]*")


def for_edtrace(text: str, *, inspect: bool = True) -> str:
    """The lecture with its words renamed. Of what is inspected, edtrace reads names and attributes only.

    With `inspect=False` nothing is inspected.
    """
    lines = []
    for line in _IMPORT.sub("from benchmarks.edtrace_words import ", text).split("\n"):
        code, mark, comment = line.rpartition("# @")
        lines.append(code + _directives(mark[2:] + comment, inspect) if mark else line)
    return "\n".join(lines)


def _directives(comment: str, inspect: bool) -> str:
    kept = []
    for name, content in _DIRECTIVE.findall(comment):
        if name in ("hide", "stepover"):
            kept.append(f"@{name}")
        elif inspect:
            lists = [e.split() for e in re.sub(r"\bas \w\S*", "", content).split(",")]
            names = [e for words in lists if all(map(_NAMES.fullmatch, words)) for e in words]
            if names:
                kept.append(" ".join([f"@{name.replace('measure', 'inspect')}", *names]))
    return "# " + " ".join(kept) if kept else ""


def notebook(text: str, name: str) -> str:
    """The lecture as a notebook: its definitions in one cell, then a cell for each line of `main`."""
    tree = ast.parse(text)
    main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
    cells = [_without_guard(tree, text), *(ast.unparse(line) for line in main.body)]
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": {"name": "python3", "display_name": name, "language": "python"},
                "language_info": {"name": "python"},
            },
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{i}",
                    "metadata": {},
                    "execution_count": None,
                    "outputs": [],
                    "source": source,
                }
                for i, source in enumerate(cells)
            ],
        }
    )


def _without_guard(tree: ast.Module, text: str) -> str:
    """The text up to `if __name__ == "__main__":`, which calls `main`."""
    guards = [n.lineno for n in tree.body if isinstance(n, ast.If) and "__main__" in ast.unparse(n.test)]
    return "\n".join(text.split("\n")[: guards[-1] - 1]) if guards else text
