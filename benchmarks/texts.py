"""Lectures as text: written by size, and renamed for the other contestants."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import Any

HEAD = '"""A lecture to be measured."""\nfrom statistics import median\nfrom time import perf_counter\n'
HEAD += "import torch\nfrom litbook import note\n"


@dataclass(frozen=True)
class Case:
    """A lecture with one section, and how many of its lines run."""

    text: str
    lines: int


def section(body: str, before: str = "") -> str:
    """A lecture whose one section, `one`, has this body; `before` stands above it."""
    functions = 'def main() -> None:\n    one()\n\n\ndef one() -> None:\n    """One."""\n'
    return f"{HEAD}\n\n{dedent(before)}\n\n{functions}{indent(dedent(body), '    ')}\n"


def loop(iterations: int, *, inspect: bool) -> Case:
    """A loop with one line in it, inspected or not."""
    shown = "  # @inspect x" if inspect else ""
    return Case(section(f"x = 0\nfor i in range({iterations}):\n    x += i{shown}"), 2 * iterations)


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


def timed_matmul(side: int, repeats: int, *, stepover: bool) -> str:
    """A section that times a matmul: in its own lines, or in a helper that is stepped over."""
    own = f"""
        times = []
        for _ in range({repeats}):
            start = perf_counter()
            a @ b
            times.append(perf_counter() - start)
        """
    helper = f"def timed(a, b):\n{indent(dedent(own), '    ')}\n    return median(times)\n"
    before = f"MEASURED: list[float] = []\n\n{helper}"
    body = f"torch.manual_seed(0)\na, b = torch.randn({side}, {side}), torch.randn({side}, {side})\n"
    body += "seconds = timed(a, b)  # @stepover" if stepover else dedent(own) + "\nseconds = median(times)"
    return section(f"{body}\nMEASURED.append(seconds)  # @measure seconds", before)


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
    return Case(f"{HEAD}\n\ndef main() -> None:\n{calls}\n\n{bodies}", 7 * len(names))


KINDS: dict[str, Callable[[int], Case]] = {
    "a loop, nothing inspected": lambda n: loop(n, inspect=False),
    "a loop, its line inspected": lambda n: loop(n, inspect=True),
    "lines that run once": straight,
    "a recursion 900 deep": lambda times: recursion(900, times),
    "a recursion that branches": tree,
    "a training loop": training,
}


# ---------------------------------------------------------------------------- for the other contestants


def renamed(text: str, peer: str) -> str:
    """The lecture in the words of edtrace or lectrace, which have no `@measure` and no commas."""
    text = text.replace("from litbook import note", f"from {peer} import text as note")
    text = text.replace("# @measure", "# @inspect")
    return re.sub(r"# @inspect .*", lambda found: found[0].replace(",", ""), text)


def notebook(text: str) -> Any:
    """The lecture as a notebook: its definitions in one cell, then a cell for each line of `main`."""
    import nbformat

    tree = ast.parse(text)
    main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main")
    guards = [n.lineno for n in tree.body if isinstance(n, ast.If) and "__main__" in ast.unparse(n.test)]
    definitions = "\n".join(text.split("\n")[: guards[-1] - 1]) if guards else text
    cells = [nbformat.v4.new_code_cell(it) for it in (definitions, *map(ast.unparse, main.body))]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
