"""A syntax tree -> functions and statements with their numbers, and which of them are sections.

In goes a `Lecture` with its tree, out come its numbered lists. Only statements are walked, and no
expressions: a lecture may have ten thousand lines, and who mistyped a section's name waits for all of them.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from litbook.errors import Problem
from litbook.text import scopes
from litbook.text.beside import is_beside
from litbook.text.imports import Names
from litbook.text.lecture import File, Function, Lecture, Statement, StatementKind
from litbook.text.tree import (
    Definition,
    blocks,
    directly_in,
    dotted,
    first_line,
    heading_of,
    mark_of,
    own_nodes,
    own_statements,
)
from litbook.text.words import HOMES, SEEN, calls, first_heading

Calls = dict[ast.AST, list[tuple[ast.Expr, ast.FunctionDef]]]


def number_definitions(found: Lecture) -> None:
    """Number every file's module, and every function and class in it."""
    tree = found.files[0].tree
    found.title = heading_of(tree) or first_heading(tree) or found.name
    keys: Counter[str] = Counter()
    for file in found.files:
        last, front = max(1, len(file.lines)), f"{file.name}." if file.name else ""
        title = found.title if file.number == 0 else heading_of(file.tree) or file.name
        spec = Function("<module>", "module", 1, last, title, file=file.number, key=f"{front}<module>")
        found.function_of[file.tree] = len(found.functions)
        found.functions.append(spec)
        _number_functions(found, file, file.tree, front, keys)


def _number_functions(found: Lecture, file: File, node: ast.AST, front: str, keys: Counter[str]) -> None:
    for child in directly_in(node):
        inside = front
        if isinstance(child, Definition):
            inside = f"{front}{child.name}."
            found.function_of[child] = len(found.functions)
            found.functions.append(_function(file, child, f"{front}{child.name}", keys))
        _number_functions(found, file, child, inside, keys)


def _function(file: File, node: Definition, key: str, keys: Counter[str]) -> Function:
    keys[key] += 1
    return Function(
        name=node.name,
        kind="class" if isinstance(node, ast.ClassDef) else "helper",
        first=first_line(node),
        last=node.end_lineno or node.lineno,
        heading=heading_of(node),
        body=_first_line_of_body(node),
        requires=_requires(node),
        aside=any(mark_of(decorator) == "aside" for decorator in node.decorator_list),
        digest=sha256(file.text_of(node).encode()).hexdigest()[:16],
        file=file.number,
        key=key if keys[key] == 1 else f"{key}#{keys[key]}",
    )


def _first_line_of_body(node: Definition) -> int:
    body = node.body
    if ast.get_docstring(node) is not None and len(body) > 1:
        return body[1].lineno
    return body[0].lineno


def _requires(node: Definition) -> str | None:
    """The device in `@requires("cuda")`, else None."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and mark_of(decorator) == "requires":
            if decorator.args and isinstance(decorator.args[0], ast.Constant):
                return str(decorator.args[0].value)
    return None


def is_plain(file: File, node: ast.AST) -> bool:
    """Whether `node` is a function that takes nothing, and no generator: one that can be a section."""
    if not isinstance(node, ast.FunctionDef):
        return False
    a = node.args
    if a.posonlyargs or a.args or a.kwonlyargs or a.vararg or a.kwarg:
        return False
    generates = ast.Yield | ast.YieldFrom
    return not ("yield" in file.text_of(node) and any(isinstance(n, generates) for n in own_nodes(node)))


def section_calls(files: list[File], names: Names) -> Calls:
    """For every function, its statements `name()` that call a parameterless function of the lecture."""
    margins = [{n.name: n for n in file.tree.body if isinstance(n, ast.FunctionDef)} for file in files]
    main = margins[0].get("main")
    plain = functools.cache(lambda node: is_plain(files[names.home[node]], node))
    calls: Calls = {}
    for file, caller in ((i, node) for i, margin in enumerate(margins) for node in margin.values()):
        made = [(node, called, _callee(names, file, called, caller)) for node, called in bare_calls(caller)]
        made = [it for it in made if it[2] not in (None, caller, main) and plain(it[2])]
        if made and plain(caller):
            own = scopes.own(caller) - names.imported(caller)
            if several := [(node, to) for node, called, to in made if to and called.split(".")[0] not in own]:
                calls[caller] = several
    return calls


def _callee(names: Names, file: int, called: str, caller: ast.FunctionDef) -> ast.FunctionDef | None:
    meant = names.meaning(file, called, caller)
    return meant if isinstance(meant, ast.FunctionDef) else None


def files_in_order(files: list[File], names: Names, calls: Calls) -> list[int]:
    """The first file, the others as `main` reaches them, then the rest as they come."""
    order = [names.home[node] for node in _reached(calls, _last_main(files[0].tree))]
    return list(dict.fromkeys([0, *order, *range(len(files))]))


def bare_calls(node: ast.AST) -> Iterator[tuple[ast.Expr, str]]:
    """The statements `name()` and `file.name()` in a function's own body, in order, each with the name."""
    for statement in own_statements(node):
        match statement:
            case ast.Expr(ast.Call(ast.Name() | ast.Attribute() as called, [], [])):
                yield statement, dotted(called)


def find_sections(found: Lecture, calls: Calls, problems: list[Problem]) -> set[ast.AST]:
    """Mark `main`, and what it reaches through calls, as main, parts and sections. Returns them."""
    main = _main(found, problems)
    if main is None:
        return set()
    reached = set(_reached(calls, main))
    for node in list(calls):  # calls of functions that no lecture reaches are plain calls
        if node not in reached:
            del calls[node]
    todo: list[tuple[ast.FunctionDef, int | None]] = [(main, None)]  # the next one last
    seen: set[ast.AST] = set()
    while todo:
        node, parent = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        index = found.function_of[node]
        if parent is not None:
            found.order.append(index)
        below = [callee for _, callee in calls.get(node, []) if callee not in seen]
        kind = "main" if parent is None else "part" if calls.get(node) else "section"
        above = None if parent is None else found.functions[parent]  # what it is, all its sections are
        heading = found.functions[index].heading or node.name.replace("_", " ").capitalize()
        found.functions[index] = replace(
            found.functions[index],
            kind=kind,  # type: ignore[arg-type]  # a conditional of literals is a str to mypy
            parent=parent,
            heading=heading,
            requires=found.functions[index].requires or (above.requires if above else None),
            aside=found.functions[index].aside or bool(above and above.aside),
        )
        todo += [(callee, index) for callee in reversed(below)]
    return seen


def _main(found: Lecture, problems: list[Problem]) -> ast.FunctionDef | None:
    """The last `main` of the first file; None and a problem where it cannot be called without more."""
    way_out = "a lecture starts at `def main() -> None:`, which calls its sections"
    main = _last_main(found.files[0].tree)
    if main is None:
        problems.append(Problem("no-main", f"{found.files[0].path} has no function main()", None, way_out))
    elif isinstance(main, ast.FunctionDef) and is_plain(found.files[0], main):
        return main
    else:
        place = found.files[0].at(main)
        problems.append(Problem("no-main", "main is no plain function without parameters", place, way_out))
    return None


def _last_main(tree: ast.Module) -> Definition | None:
    mains = [n for n in tree.body if isinstance(n, Definition) and n.name == "main"]
    return mains[-1] if mains else None


def _reached(calls: Calls, start: ast.AST | None) -> list[ast.AST]:
    """`start`, and what it calls in turn, each before what it calls."""
    todo, seen = [start] if start is not None else [], dict[ast.AST, None]()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen[node] = None
            todo += [callee for _, callee in reversed(calls.get(node, []))]
    return list(seen)


def number_statements(found: Lecture, calls: Calls) -> None:
    targets: dict[ast.AST, int] = {
        call: found.function_of[callee]
        for caller, several in calls.items()
        if found.functions[found.function_of[caller]].kind in ("main", "part", "section")
        for call, callee in several
    }
    docstrings = {
        node.body[0]
        for node in found.function_of
        if isinstance(node, Definition | ast.Module) and ast.get_docstring(node, clean=False) is not None
    }
    for file in found.files:
        words = _words(file.tree)
        guarded = {it for node in file.tree.body if is_formal(node) for it in ast.walk(node)}
        openers = dict(_openers(file))
        for owner, statement in _statements(file.tree, file.tree):
            kind, target = _kind(statement, words), targets.get(statement)
            if statement in guarded:
                kind = "hidden"
            elif statement in docstrings:
                kind = "doc"
            elif target is not None:
                kind = "section"
            elif isinstance(statement, Definition):
                kind, target = "def", found.function_of[statement]
            found.statement_of[statement] = len(found.statements)
            found.statements.append(
                Statement(
                    function=found.function_of[owner],
                    first=first_line(statement),
                    last=_last_line_of_header(statement, file.lines),
                    kind=kind,
                    end=statement.end_lineno or statement.lineno,
                    target=target,
                    opener=openers.get(statement, 0),
                )
            )


def is_formal(node: ast.stmt) -> bool:
    """What says nothing to a reader: `__beside__ = …`, and `if __name__ == …:` for the file as a program."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return is_beside(node)


def _openers(file: File) -> Iterator[tuple[ast.stmt, int]]:
    """The first statements of `else`, `finally`, `except` and `case`, each with the line of that word."""
    for node in blocks(file.tree):
        if isinstance(node, ast.ExceptHandler):
            yield node.body[0], node.lineno
        elif isinstance(node, ast.match_case):
            yield node.body[0], node.pattern.lineno
        end = 0  # of the block before: the tree does not say where `else` and `finally` are
        for name in ("body", "handlers", "orelse", "finalbody"):
            if (block := getattr(node, name, ())) and name in ("orelse", "finalbody"):
                above = range(first_line(block[0]) - 1, end, -1)
                yield from ((block[0], line) for line in above if not _BETWEEN.match(file.lines[line - 1]))
            end = block[-1].end_lineno if block else end


def _statements(node: ast.AST, owner: ast.AST) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """Every statement with the function, class or module that owns it, in reading order."""
    for child in directly_in(node):
        if isinstance(child, ast.stmt):
            yield owner, child
        yield from _statements(child, child if isinstance(child, Definition) else owner)


def _last_line_of_header(statement: ast.stmt, lines: list[str]) -> int:
    """The last line before a compound statement's body; the last line of a simple statement."""
    last = statement.end_lineno or statement.lineno
    between = _BETWEEN
    match statement:
        case ast.Match(cases=[first, *_]):
            last, between = first.pattern.lineno - 1, _BEFORE_PATTERN
        case _ if body := getattr(statement, "body", None):
            last = min(last, first_line(body[0]) - 1)
        case _:
            return last
    while last > statement.lineno and between.match(lines[last - 1]):
        last -= 1
    return max(statement.lineno, last)


_BETWEEN = re.compile(r"\s*(#|$)")  # what may stand between a header and its body
_BEFORE_PATTERN = re.compile(r"\s*(#|$|case\b)")


def _words(tree: ast.Module) -> dict[str, str]:
    """The names under which this file calls the author's words, and which each is: `n` after `note as n`.

    What else turns out to be a word, the run says: see `probe.spoken`.
    """
    names: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (words := HOMES.get(node.module or "")):
            names |= {a.asname or a.name: words[a.name] for a in node.names if a.name in words}
        elif isinstance(node, ast.Import):
            for a in node.names:
                found = HOMES.get(a.name, {}).items()
                names |= {f"{a.asname or a.name}.{name}": word for name, word in found}
    return names


def _kind(statement: ast.stmt, words: dict[str, str]) -> StatementKind:
    names = {dotted(call.func) for call in calls(statement)}
    if names and names <= words.keys():
        return "piece" if SEEN & {words[name] for name in names} else "hidden"
    return "code"
