"""What would say nothing: sections that run nothing, claims that claim nothing, functions that are replaced.

Each is legal Python that a reader, or its author, would take for a claim. Each becomes a `Problem` before
anything runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from litbook.errors import Problem
from litbook.text import scopes
from litbook.text.claims import names_axes, outside_try, spells_axes
from litbook.text.imports import Names
from litbook.text.lecture import File, Lecture
from litbook.text.sections import bare_calls, is_plain
from litbook.text.tree import (
    Definition,
    FunctionNode,
    blocks,
    dotted,
    mark_of,
    own_nodes,
    own_statements,
    segment,
    unquoted,
)

_SECTION = "a section is a plain function without parameters"
# Decorators under which two functions of a name belong together; `@f.register` and `@f.setter` with them.
_JOINS = {"overload", "register", "setter", "getter", "deleter"}


def find_lost_sections(
    found: Lecture, callers: Iterable[ast.AST], names: Names, problems: list[Problem]
) -> None:
    """Statements `name()` that look like a section's, and would lose its claims without a word.

    `callers` are main, the parts and the sections. A function that is decorated is its decorator's business.
    """
    means = _Meanings(found, names)
    said = set[ast.AST]()
    for caller in sorted(callers, key=lambda node: found.function_of[node]):
        assert isinstance(caller, ast.FunctionDef)
        for statement, name in bare_calls(caller):
            node = means.function(caller, name)
            if node is None or node in said or name in (caller.name, "main"):
                continue
            kind = found.functions[found.function_of[caller]].kind
            why, way_out = _why_no_section(node, means, kind != "section")
            if why and name.split(".")[0] not in scopes.own(caller) - names.imported(caller):
                said.add(node)
                file, here = means.file(node), means.file(caller)
                where = (
                    f"on line {statement.lineno}" if file is here else f"in {here.path}:{statement.lineno}"
                )
                what = f"{name}() {why}, and {caller.name}() calls it {where}: {_SECTION}"
                problems.append(Problem("no-section", what, file.at(node), way_out))


class _Meanings:
    """What a name in a function means: a function of the lecture, also one that is defined in a block."""

    def __init__(self, found: Lecture, names: Names) -> None:
        self.found, self.names = found, names
        self.there = [_module_functions(file.tree) for file in found.files]

    def file(self, node: FunctionNode) -> File:
        return self.found.file_of_function(self.found.function_of[node])

    def function(self, caller: FunctionNode, name: str) -> FunctionNode | None:
        number = self.file(caller).number
        meant = self.names.meaning(number, name, caller)
        return meant if isinstance(meant, FunctionNode) else self.there[number].get(name)


def _module_functions(tree: ast.Module) -> dict[str, FunctionNode]:
    """The functions of the module by name; those inside an `if` or `try` only where there is no other."""
    every = [*own_statements(tree), *tree.body]
    return {node.name: node for node in every if isinstance(node, FunctionNode)}


def _why_no_section(node: FunctionNode, means: _Meanings, among_sections: bool) -> tuple[str, str]:
    """Why a call of `node` is no section's, and the way out; two blanks where nothing is lost.

    What takes parameters, or is defined in a block, is a helper: that it asserts something is lost only
    `among_sections`, in `main` or a part.
    """
    plain, at_margin = is_plain(means.file(node), node), node.col_offset == 0
    if (plain and at_margin) or any(not mark_of(decorator) for decorator in node.decorator_list):
        return "", ""
    if isinstance(node, ast.AsyncFunctionDef):
        return "is async", f"write `def {node.name}():`, with asyncio.run(…) around what it awaits"
    if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node)):
        return "holds a `yield`, so that calling it runs nothing", "take the `yield` out"
    if among_sections and _asserts(node, means, set()):
        if plain:
            return "is defined in a block, so that its claims do not count", "define it at the left margin"
        way_out = f"write `def {node.name}():`, or call it in a section"
        return "takes parameters, so that its claims do not count", way_out
    return "", ""


def _asserts(node: FunctionNode, means: _Meanings, seen: set[ast.AST]) -> bool:
    """Whether a function, as if it were a section, makes a claim, or one that it calls does."""
    if node in seen:
        return False
    seen.add(node)
    for inner in outside_try(node):
        if isinstance(inner, ast.Assert) or (isinstance(inner, ast.AnnAssign) and names_axes(inner)):
            return True
    called = (means.function(node, name) for _, name in bare_calls(node))
    return any(_asserts(it, means, seen) for it in called if it is not None)


def find_what_says_nothing(found: Lecture, names: Names, problems: list[Problem]) -> None:
    """Functions that another of their name replaces, claims that claim nothing, asides that are none."""
    _find_misplaced_asides(found, problems)
    for file in found.files:
        _find_replaced(file, problems)
        _find_replaced_by_imports(file, names, problems)
    _find_idle_annotations(found, problems)
    for node, number in found.statement_of.items():
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple):
            if any(not isinstance(part, ast.Starred) for part in node.test.elts):
                what = "this assert is always true: it asserts a tuple"
                file = found.file_of_statement(number)
                problems.append(Problem("no-claim", what, file.at(node.test), _untupled(file, node.test)))


def _find_misplaced_asides(found: Lecture, problems: list[Problem]) -> None:
    """Marks `@aside` on what has a page of its own, and on what is no section at all."""
    every = [found.functions[i] for i in found.order]
    tops = [it for it in every if it.parent is not None and found.functions[it.parent].kind == "main"]
    paged = any(it.kind == "part" for it in tops)  # else the lecture is one page
    for node, index in found.function_of.items():
        it = found.functions[index]
        marks = [mark for mark in getattr(node, "decorator_list", ()) if mark_of(mark) == "aside"]
        if not marks or (it.kind in ("part", "section") and not (paged and it in tops)):
            continue
        what, way_out = f"only a section can be an aside, and {it.name} is none", "take the @aside away"
        if it in tops:
            what = f"{it.name}() has a page of its own, which cannot be an aside"
            way_out = "mark the sections that it calls"
        problems.append(Problem("no-aside", what, found.files[it.file].at(marks[0]), way_out))


def _find_idle_annotations(found: Lecture, problems: list[Problem]) -> None:
    """Annotations of jaxtyping in a section's own body that look like claims and are none.

    In a helper none is a claim, and none looks like one more than another.
    """
    kinds = [_jaxtyping_names(file.tree) if "jaxtyping" in file.text else set() for file in found.files]
    if not any(kinds):
        return
    for node, number in found.statement_of.items():
        if isinstance(node, ast.AnnAssign) and node not in found.claim_of:
            function = found.functions[found.statements[number].function]
            if kinds[function.file] and function.kind in ("main", "part", "section"):
                file = found.files[function.file]
                why, way_out = _why_idle(file, node, kinds[function.file])
                if why:
                    what = f"this annotation checks nothing: {why}"
                    problems.append(Problem("no-claim", what, file.at(node), way_out))


def _why_idle(file: File, node: ast.AnnAssign, kinds: set[str]) -> tuple[str, str]:
    """Why an annotation is no claim, and the way out; two blanks where it is none of jaxtyping's."""
    alone = [kind for kind in _alternatives(node.annotation) if _is_jaxtyping(kind, kinds)]
    if not alone or (alone[0] is not node.annotation and _is_none(node.value)):
        return "", ""  # `x: Float[...] | None = None` has nothing to check
    target, shown = segment(file.text, node.target), segment(file.text, alone[0])
    if node.value is None:
        return "it has no value", f"annotate where the value is assigned: {target}: {shown} = …"
    if not isinstance(node.target, ast.Name):
        return f"{target} is no plain name", f"annotate a name, and assign that: value: {shown} = …"
    if alone[0] is not node.annotation:
        return "it allows for more than one type", f"leave the others out: {target}: {shown} = …"
    return "it stands in a `try`", "annotate behind the `try`"


def _alternatives(annotation: ast.expr) -> list[ast.expr]:
    """What `A | B`, `Optional[A]` or `Union[A, B]` allows for; any other annotation itself."""
    match unquoted(annotation):
        case ast.BinOp(left, ast.BitOr(), right):
            return [*_alternatives(left), *_alternatives(right)]
        case ast.Subscript(named, inner) if dotted(named).rpartition(".")[2] in ("Optional", "Union"):
            return inner.elts if isinstance(inner, ast.Tuple) else [inner]
    return [annotation]


def _is_jaxtyping(annotation: ast.expr, kinds: set[str]) -> bool:
    named = unquoted(annotation)
    if not spells_axes(named) or not isinstance(named, ast.Subscript):
        return False
    return dotted(named.value) in kinds or dotted(named.value).rpartition(".")[0] in kinds


def _jaxtyping_names(tree: ast.Module) -> set[str]:
    """What the file calls jaxtyping, and what it takes out of it."""
    names = set[str]()
    for node in blocks(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "jaxtyping":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jaxtyping"}
    return names


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _untupled(file: File, test: ast.Tuple) -> str:
    """How to assert what stands in the brackets."""
    parts = [segment(file.text, part) for part in test.elts]
    if len(parts) == 2:
        return f"take the parentheses away: assert {', '.join(parts)}"
    return "assert one thing at a time" if len(parts) > 1 else f"take the comma away: assert {parts[0]}"


def _find_replaced(file: File, problems: list[Problem]) -> None:
    """Functions at the left margin of which a later one takes the name."""
    first: dict[str, FunctionNode] = {}
    for node in file.tree.body:
        if not isinstance(node, FunctionNode) or node.name == "_":
            continue
        before = first.setdefault(node.name, node)
        if before is not node and not _joined(before) and not _joined(node):
            what = f"{node.name}() is defined on line {before.lineno} already, and this one replaces it"
            problems.append(Problem("replaced", what, file.at(node), "give one of them another name"))


def _find_replaced_by_imports(file: File, names: Names, problems: list[Problem]) -> None:
    """Functions of two files under one name in a third, which then has only one of them."""
    for name, first, then in names.clashes(file.number):
        was, now = ("defined" if isinstance(it, Definition) else "imported" for it in (first, then))
        what = f"{name} is {was} on line {first.lineno} already, and what is {now} here replaces it"
        way_out = f"import one of them under another name: import {name} as …"
        problems.append(Problem("replaced", what, file.at(then), way_out))


def _joined(node: FunctionNode) -> bool:
    """Whether a decorator makes this one of several functions under one name."""
    named = (dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
    return any(name.rpartition(".")[2] in _JOINS for name in named)
