"""Count the engine and the book: `python tools/size.py [--once | --names] [DIR]`, the same way for any tree.

- A code line holds some part of a statement: no blank line, no comment alone, no docstring. Imports count.
- A function is a `def`, nested ones and methods too, from there to its last line; a class likewise.
- A private function used once belongs to a module, not to a class or a function; its name begins with one
  underscore and stands twice in its file: where it is defined and where it is used. Its share is of all
  lines; blank ones and docstrings count on both sides. `--once` lists them instead, the longest first:
  `called` is a step of one caller, `handed over` is a rule or a callback, which no caller can take in.
- A name defined in several files is that of a class or of a type (`Row = tuple[int, ...]`), underscores in
  front left away. A function named by one of `VAGUE` alone does not say what it does. `--names` lists both.
- A circle is a set of modules each of which imports all the others, itself or through them, wherever the
  import stands: at the top, in a function, for types alone.

Nothing is imported, so any tree will do.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import types
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

LONG_CLASS, LONG_FUNCTION = 300, 80  # lines; longer ones are listed by name

# Participles, prepositions, adverbs and their like; `aside` is a word of the author's, and none of them.
VAGUE = set(
    """
    about above across ahead aligned alike all alone always and annotated answered any apart around as asked
    at away before began begun behind below beside besides between beyond borrowed bounded boxed broken by
    cached called carried changed chosen cleaned coloured copied counted described differing dimmed directed
    documented doing done drawn each elsewhere embedded ended escaped ever every everything exactly excused
    explored far finished fitted folded following forked formatted found from frozen gathered given gone
    grouped guarded handed hashed headed heard held here hidden imported in indented inside installed
    instead into joined judged just kept known laid late later launched least led left looked looped lost
    made marked matched meant measured merged missed missing moved moving named needed never not noted
    nothing noticed now nudged numbered of off often on once one only onto opened or other others ours out
    outer outermost over overlooked own parsed part placed plain prefixed printed promised quoted raised ran
    reached recorded registered renewed renumbered restored returned running said scrolling seen settled
    shared sharing shelved shortened showing shown simulated skipped spelled spoken stepped stored stumbled
    stumbling surfaced sworn telling tested then there thinned thus tidied titled to together told too took
    touched tried trimmed turned unbacked unbounded uncalled unchecked uncollected under unedited unfinished
    unheard unlisted unprofiled unquoted unreached unread unrun unseen unshown unspoken until up upon what
    where whether which while who whole whose why with within without worded written
    """.split()
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.ClassDef | Function
Kind = type[ast.AST] | types.UnionType
LAYOUT = {getattr(tokenize, name) for name in "COMMENT NL NEWLINE INDENT DEDENT ENDMARKER".split()}


def main(words: list[str]) -> int:
    """Prints the count of the tree that `words` name; the exit status."""
    counts = {"--once": once, "--names": vague_names}
    count = counts.get(words[0], report) if words else report
    words = words[count is not report :]
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(words) == 1 else 2
    root = Path(*words) if words else Path(__file__).resolve().parent.parent
    if not (root / "tools" / "litbook").is_dir():
        print(f"{root} has no tools/litbook: name the root of a working tree", file=sys.stderr)
        return 2
    print("\n".join(count(root)))
    return 0


def report(root: Path) -> Iterator[str]:
    """The count, line by line."""
    engine = [Module.read(file, root / "tools") for file in python_files(root / "tools" / "litbook")]
    lines = sum(len(module.lines) for module in engine)
    functions = [function for module in engine for function in module.functions]
    single = [function for module in engine for function in module.used_once()]
    names = {module.name for module in engine}
    knots = circles({module.name: module.imports(names) for module in engine})
    share = 100 * sum(map(length, single)) / max(lines, 1)

    # what a redesign has to lower
    yield row(sum(module.code for module in engine), "code lines of the engine")
    yield row(len(functions), "functions")
    yield row(
        sum(map(length, single)), f"lines in {len(single):,} private functions used once, {share:.1f} %"
    )
    yield row(len(knots), "circles of modules")
    yield from (f"{'':>10}{' '.join(knot)}" for knot in knots)
    yield row(len(shared_types(engine)), "names of classes and types defined in several files")
    vague = [function for function in functions if is_vague(function)]
    yield row(len(vague), "functions named by a participle, a preposition or an adverb")

    yield f"\n{'code':>8}{'functions':>11}{'used once':>11}{'modules':>9}"
    for package in sorted({module.package for module in engine}):
        inside = [module for module in engine if module.package == package]
        code = sum(module.code for module in inside)
        defined = sum(len(module.functions) for module in inside)
        used_once = sum(len(module.used_once()) for module in inside)
        yield f"{code:>8,}{defined:>11,}{used_once:>11,}{len(inside):>9,}  {package}"

    yield ""
    yield row(lines, "lines of the engine with blank ones, comments and docstrings")
    yield from too_long(engine, ast.ClassDef, LONG_CLASS, "classes")
    yield from too_long(engine, Function, LONG_FUNCTION, "functions")
    lectures = [(len(file.read_text("utf-8").splitlines()), file) for file in lecture_files(root)]
    if lectures:
        longest, file = max(lectures)
        yield row(longest, f"longest lecture file, {file.relative_to(root).as_posix()}")
    tests = [file.read_text("utf-8").splitlines() for file in python_files(root / "tests")]
    yield row(sum(map(len, tests)), "lines of the tests")


def once(root: Path) -> Iterator[str]:
    """The private functions that one place uses, the longest first."""
    rows = []
    for file in python_files(root / "tools" / "litbook"):
        module = Module.read(file, root / "tools")
        calls = (node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call))
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        for function in module.used_once():
            how = "called" if function.name in called else "handed over"
            rows.append((length(function), f"{how:<11}  {module.path}:{function.lineno} {function.name}"))
    yield from (row(size, what) for size, what in sorted(rows, reverse=True))


def vague_names(root: Path) -> Iterator[str]:
    """Types that several files define and functions with a vague name, with their places."""
    engine = [Module.read(file, root / "tools") for file in python_files(root / "tools" / "litbook")]
    for name, paths in sorted(shared_types(engine).items()):
        yield f"{name:<20}  {' '.join(paths)}"
    for module in engine:
        for function in module.functions:
            if is_vague(function):
                yield f"{function.name:<20}  {module.path}:{function.lineno}"


def is_vague(function: Function) -> bool:
    """Whether its name is one of `VAGUE` alone; Python's own, `__missing__`, are not."""
    return not function.name.startswith("__") and function.name.strip("_") in VAGUE


def shared_types(modules: list[Module]) -> dict[str, list[str]]:
    """The names of classes and types that more than one of the modules defines, with the modules' paths."""
    paths: dict[str, list[str]] = {}
    for module in modules:
        for name in module.types():
            paths.setdefault(name, []).append(module.path)
    return {name: several for name, several in paths.items() if len(several) > 1}


@dataclass(frozen=True)
class Module:
    """One file of the engine: its name as it is imported, its text and its tree."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @staticmethod
    def read(file: Path, root: Path) -> Module:
        """The module in `file`; its name begins below `root`."""
        path = file.relative_to(root)
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text(encoding="utf-8")
        return Module(name, f"{root.name}/{path.as_posix()}", text, ast.parse(text))

    @property
    def package(self) -> str:
        """The folder of the engine that it lies in: `litbook/run`, or `litbook` alone."""
        return "/".join(self.path.split("/")[1:-1][:2])

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def code(self) -> int:
        """How many of its lines are code."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        code = {n for t in tokens if t.type not in LAYOUT for n in range(t.start[0], t.end[0] + 1)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node) is not None:
                first = node.body[0]
                code -= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
        return len(code)

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def types(self) -> set[str]:
        """The names of its classes, and of the types that it gives a name, without underscores in front."""
        names = {node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        return {name.lstrip("_") for name in names if re.match(r"_*[A-Z][A-Za-z]*[a-z]", name)}

    def used_once(self) -> list[Function]:
        """Its private functions that one place uses."""
        words = Counter(re.findall(r"\w+", self.text))
        return [node for node in self.tree.body if isinstance(node, Function)
                if re.match(r"_(?!_)", node.name) and words[node.name] == 2]  # fmt: skip

    def imports(self, modules: Collection[str]) -> set[str]:
        """Those of `modules` that it imports."""
        names = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # `from litbook.lecture import parse` is of the file lecture/parse.py, if there is one
                for alias in node.names:
                    file = f"{node.module}.{alias.name}"
                    names.add(file if file in modules else node.module)
        return names & {*modules} - {self.name}


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import each other, by their names, sorted."""
    reached = {module: reach(imports, module) for module in imports}
    knots = {
        frozenset({module, *(other for other in reached[module] if module in reached[other])})
        for module in imports
        if module in reached[module]
    }
    return sorted(map(sorted, knots))


def reach(imports: Mapping[str, set[str]], module: str) -> set[str]:
    """What `module` imports, itself or through others; itself where a way leads back."""
    reached: set[str] = set()
    ahead = [module]
    while ahead:
        for name in imports[ahead.pop()] - reached:
            reached.add(name)
            ahead.append(name)
    return reached


def too_long(modules: list[Module], kind: Kind, limit: int, what: str) -> Iterator[str]:
    """How many definitions of that kind are longer than `limit`, and which, the longest first."""
    places = [
        (length(node), f"{module.path}:{node.lineno} {node.name}")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, Definition) and isinstance(node, kind)
    ]
    long = sorted((place for place in places if place[0] > limit), reverse=True)
    yield row(len(long), f"{what} over {limit} lines")
    yield from (f"{size:>18,}  {name}" for size, name in long)


def length(node: Definition) -> int:
    """How many lines a class or function has."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
