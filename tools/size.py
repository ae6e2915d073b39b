"""Count the engine and the book: `python tools/size.py [DIR]`, the same way for any tree.

A line is a line of a Python file, blank ones and comments with it. A class or function reaches from its
`class` or `def` to its last line; what is nested counts too. Nothing is imported, so any tree will do.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LONG_CLASS, LONG_FUNCTION = 300, 80  # lines; longer ones are listed by name

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main(words: list[str]) -> int:
    """Prints the count of the tree that `words` name; the exit status."""
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(words) == 1 else 2
    root = Path(*words) if words else Path(__file__).resolve().parent.parent
    engine = root / "tools" / "litbook"
    if not engine.is_dir():
        print(f"{root} has no tools/litbook: name the root of a working tree", file=sys.stderr)
        return 2
    print("\n".join(report(root, engine)))
    return 0


def report(root: Path, engine: Path) -> Iterator[str]:
    """The count, line by line."""
    modules = python_files(engine)
    found = [it for file in modules for it in definitions(file, file.relative_to(root).as_posix())]
    classes = [(size, name) for size, name, node in found if isinstance(node, ast.ClassDef)]
    functions = [(size, name) for size, name, node in found if not isinstance(node, ast.ClassDef)]
    lectures = sorted((lines(file), file.relative_to(root).as_posix()) for file in lecture_files(root))
    yield row(sum(map(lines, modules)), "engine, Python lines")
    yield row(sum(map(lines, (root / "tools").glob("*.py"))), "the commands beside it, tools/*.py")
    yield row(len(modules), "modules")
    yield row(sum(file.parent == engine for file in modules), "modules directly in tools/litbook")
    yield from too_long(classes, LONG_CLASS, "classes")
    yield from too_long(functions, LONG_FUNCTION, "functions")
    if lectures:
        yield row(lectures[-1][0], f"longest lecture file, {lectures[-1][1]}")
    yield row(sum(map(lines, python_files(root / "tests"))), "tests, Python lines")


def too_long(found: list[tuple[int, str]], limit: int, what: str) -> Iterator[str]:
    """How many are longer than `limit`, and which."""
    long = sorted((it for it in found if it[0] > limit), reverse=True)
    yield row(len(long), f"{what} over {limit} lines")
    yield from (f"{size:>18,}  {name}" for size, name in long)


def row(count: int, what: str) -> str:
    """One line of the report."""
    return f"{count:>8,}  {what}"


def python_files(folder: Path) -> list[Path]:
    """The Python files under `folder`, sorted."""
    return sorted(folder.rglob("*.py"))


def lecture_files(root: Path) -> Iterator[Path]:
    """The files of every lecture, be it a file or a folder."""
    for lecture in (root / "lectures").glob("lecture_*"):
        yield from python_files(lecture) if lecture.is_dir() else [lecture] if lecture.suffix == ".py" else []


def lines(file: Path) -> int:
    """How many lines `file` has."""
    return len(file.read_text(encoding="utf-8").splitlines())


def definitions(file: Path, name: str) -> Iterator[tuple[int, str, Definition]]:
    """The length, the place and the node of every class and function, nested ones too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, Definition):
            last = node.end_lineno or node.lineno
            yield last - node.lineno + 1, f"{name}:{node.lineno} {node.name}", node


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
