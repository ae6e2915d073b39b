"""A syntax tree -> functions and statements with their numbers, and which of them are sections.

In goes a `Lecture` with its tree, out come its numbered lists. Only statements are walked, and no
expressions: a lecture may have ten thousand lines, and who mistyped a section's name waits for all of them.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections import Counter
from dataclasses import replace

from litbook.finding import Finding
from litbook.lecture.author_words import HOMES, SEEN, calls, first_heading
from litbook.lecture.extra_modules import is_beside
from litbook.lecture.model import (
    SECTIONS,
    FunctionKind,
    Lecture,
    LectureFunction,
    SourceStatement,
)
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.imports import NameResolver
from litbook.python.nodes import (
    Anchor,
    DefinitionNode,
    blocks,
    closure,
    directly_in,
    dotted,
    first_line,
    has_docstring,
    heading_of,
    lines_of,
    mark_of,
    own_nodes,
    own_statements,
    parameters,
)
from litbook.record.device_kinds import needs
from litbook.record.model import StatementKind

CallGraph = dict[ast.AST, list[tuple[ast.Expr, ast.FunctionDef]]]
_WITH_ELSE = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar)
_DEEPEST = 900  # levels of statements: what walks them may call itself 1,000 times


def number_definitions(lecture: Lecture) -> None:
    """Number every file's module, and every function and class in it."""
    tree = lecture.files[0].tree
    lecture.title = heading_of(tree) or first_heading(tree) or lecture.name.replace("_", " ").capitalize()
    keys: Counter[str] = Counter()
    for file in lecture.files:
        title = lecture.title if file.number == 0 else heading_of(tree := file.tree) or file.name
        for node, spec in definitions_in(file.text, file.tree):
            key = f"{file.name}.{spec.key}" if file.name else spec.key
            keys[key] += 1
            lecture.function_of[node] = len(lecture.functions)
            heading = title if node is file.tree else spec.heading
            key += f"#{keys[key]}" * (keys[key] > 1)
            lecture.functions.append(replace(spec, heading=heading, file=file.number, key=key))


@functools.lru_cache(maxsize=64)  # a save changes one file of a lecture
def definitions_in(text: str, tree: ast.Module) -> list[tuple[ast.AST, LectureFunction]]:
    """The module, and the functions and classes of one file in reading order, as if there were no other."""
    lines = lines_of(text)
    rows = list[tuple[ast.AST, LectureFunction]]()
    rows.append((tree, LectureFunction("<module>", "module", 1, max(1, len(lines)), key="<module>")))
    todo = [(node, "") for node in reversed(directly_in(tree))]  # with what stands before a name in there
    while todo:
        node, front = todo.pop()
        if isinstance(node, DefinitionNode):
            first, last = first_line(node), node.end_lineno or node.lineno
            told = has_docstring(node) and len(node.body) > 1
            marks = {mark_of(decorator): decorator for decorator in reversed(node.decorator_list)}
            match marks.get("requires"):
                case ast.Call(args=[ast.Constant(value=device), *_]):
                    requires: str | None = str(device)
                case _:
                    requires = None
            spec = LectureFunction(
                name=node.name,
                kind="class" if isinstance(node, ast.ClassDef) else "helper",
                first=first,
                last=last,
                heading=heading_of(node),
                body=node.body[told].lineno,
                requires=requires,
                aside="aside" in marks,
                key=f"{front}{node.name}",
            )
            rows.append((node, spec))
            front = f"{spec.key}."
        todo += [(child, front) for child in reversed(directly_in(node))]
    return rows


def is_plain(file: File, node: ast.AST) -> bool:
    """Whether `node` is a function that takes nothing, and no generator: one that can be a section."""
    if not isinstance(node, ast.FunctionDef) or parameters(node):
        return False
    generates = ast.Yield | ast.YieldFrom
    return not ("yield" in file.text_of(node) and any(isinstance(n, generates) for n in own_nodes(node)))


def section_calls(files: list[File], names: NameResolver) -> CallGraph:
    """For every function, its statements `name()` that call a parameterless function of the lecture."""
    main = _last_main(files[0].tree)
    plain = functools.cache(lambda node: is_plain(files[names.home[node]], node))
    calls: CallGraph = {}
    for number, file in enumerate(files):
        for caller in {n.name: n for n in file.tree.body if isinstance(n, ast.FunctionDef)}.values():
            several = list[tuple[ast.Expr, ast.FunctionDef, str]]()
            for statement, called in bare_calls(caller):
                meant = names.meaning(number, called, caller)
                if isinstance(meant, ast.FunctionDef) and meant not in (caller, main) and plain(meant):
                    several.append((statement, meant, called.split(".")[0]))
            if several and plain(caller):
                local = scopes.local_names(caller) - names.imported_names(caller)
                if several := [call for call in several if call[2] not in local]:
                    calls[caller] = [(statement, meant) for statement, meant, _ in several]
    return calls


def files_in_order(files: list[File], names: NameResolver, calls: CallGraph) -> list[int]:
    """The first file, the others as `main` reaches them, then the rest as they come."""
    order = [names.home[node] for node in _call_order(calls, _last_main(files[0].tree))]
    return list(dict.fromkeys([0, *order, *range(len(files))]))


@functools.lru_cache(maxsize=4096)  # a save changes one file of a lecture
def bare_calls(node: ast.AST) -> list[tuple[ast.Expr, str]]:
    """The statements `name()` and `file.name()` in a function's own body, in order, each with the name."""
    calls = list[tuple[ast.Expr, str]]()
    for statement in own_statements(node):
        match statement:
            case ast.Expr(ast.Call(ast.Name() | ast.Attribute() as called, [], [])):
                calls.append((statement, dotted(called)))
    return calls


def find_sections(lecture: Lecture, calls: CallGraph, problems: list[Finding]) -> set[ast.AST]:
    """Mark `main`, and what it reaches through calls, as main, parts and sections. Returns them."""
    main, file = _last_main(lecture.files[0].tree), lecture.files[0]
    way_out = "a lecture starts at `def main() -> None:`, which calls its sections"
    if main is None:
        problems.append(Finding("no-main", f"{file.path} has no function main()", None, way_out))
        return set()
    if not isinstance(main, ast.FunctionDef) or not is_plain(file, main):
        what = "main is no plain function without parameters"
        problems.append(Finding("no-main", what, file.place_of(main), way_out))
        return set()
    reached = set(_call_order(calls, main))
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
        index = lecture.function_of[node]
        spec = lecture.functions[index]
        above = None if parent is None else lecture.functions[parent]  # what it is, all its sections are
        if above is not None:
            lecture.order.append(index)
            lecture.namesakes.setdefault(spec.name, []).append(index)
        # What it requires in a part that requires something, too; where both cannot be, `refused` says so.
        around = above.requires if above else None
        needed = spec.requires or around
        with contextlib.suppress(ValueError):
            needed = str(needs(spec.requires).nested_in(needs(around))) or None
        kind: FunctionKind = "main" if above is None else "part" if calls.get(node) else "section"
        heading = spec.heading or node.name.replace("_", " ").capitalize()
        spec = replace(spec, aside=spec.aside or bool(above and above.aside), requires=needed)
        lecture.functions[index] = replace(spec, kind=kind, parent=parent, heading=heading)
        below = [callee for _, callee in calls.get(node, []) if callee not in seen]
        todo += [(callee, index) for callee in reversed(below)]
    return seen


def _last_main(tree: ast.Module) -> DefinitionNode | None:
    return next((n for n in reversed(tree.body) if isinstance(n, DefinitionNode) and n.name == "main"), None)


def _call_order(calls: CallGraph, start: ast.AST | None) -> list[ast.AST]:
    """`start`, and what it calls in turn, each before what it calls."""
    return closure([start] if start else [], lambda node: [callee for _, callee in calls.get(node, [])])


def number_statements(lecture: Lecture, calls: CallGraph) -> None:
    """Number every statement; those that call a section, or define something, with the number of that."""
    targets = dict[ast.AST, int]()
    for caller, several in calls.items():
        if lecture.functions[lecture.function_of[caller]].kind in SECTIONS:
            targets |= {call: lecture.function_of[callee] for call, callee in several}
    for file in lecture.files:
        for node, owner, row in statements_in(file.text, file.tree):
            target, kind = targets.get(node), row.kind
            if target is not None:
                kind = "section"
            elif kind == "def":
                target = lecture.function_of[node]
            lecture.statement_of[node] = len(lecture.statements)
            function = lecture.function_of[owner]
            numbered = SourceStatement(function, row.first, row.last, kind, row.end, target, row.opener)
            lecture.statements.append(numbered)


@functools.lru_cache(maxsize=64)  # a save changes one file of a lecture
def statements_in(text: str, tree: ast.Module) -> list[tuple[ast.stmt, ast.AST, SourceStatement]]:
    """The statements of one file in reading order, each with the function, class or module that owns it.

    What it is to a reader is said as far as the file alone can tell, and no function has a number.
    Raises `RecursionError` where they nest deeper than what follows here, and in `probe`, can go.
    """
    lines, words, openers = lines_of(text), words_in(tree), openers_in(text, tree)
    formal = {inner for node in tree.body if is_formal(node) for inner in (node, *blocks(node))}
    rows = list[tuple[ast.stmt, ast.AST, SourceStatement]]()
    todo: list[tuple[Anchor | ast.Module, ast.Module | DefinitionNode, int]] = [(tree, tree, 0)]
    while todo:  # the next one last
        here, owner, depth = todo.pop()
        if depth > _DEEPEST:
            raise RecursionError
        inside = directly_in(here)
        if isinstance(here, ast.stmt):
            names = {dotted(call.func) for call in calls(here)}
            kind: StatementKind = "code"
            if here in formal:
                kind = "hidden"
            elif here is owner.body[0] and has_docstring(owner):
                kind = "doc"
            elif isinstance(here, DefinitionNode):
                kind = "def"
            elif names and names <= words.keys():
                kind = "piece" if SEEN & {words[name] for name in names} else "hidden"
            end = last = here.end_lineno or here.lineno
            # The last line before a compound statement's body.
            body, between = getattr(here, "body", None), _BETWEEN
            if isinstance(here, ast.Match):
                last, between = here.cases[0].pattern.lineno - 1, _BEFORE_PATTERN
            elif body:
                last = min(last, first_line(body[0]) - 1)
            while inside and last > here.lineno and between.match(lines[last - 1]):
                last -= 1
            last, opener = max(here.lineno, last), openers.get(here, 0)
            row = SourceStatement(0, first_line(here), last, kind, end, None, opener)
            rows.append((here, owner, row))
        inner = here if isinstance(here, DefinitionNode) else owner
        todo += [(child, inner, depth + 1) for child in reversed(inside)]
    return rows


@functools.lru_cache(maxsize=64)  # a save changes one file of a lecture
def words_in(tree: ast.Module) -> dict[str, str]:
    """The names under which this file calls the author's words, and which each is: `n` after `note as n`.

    What else turns out to be a word, the run says: see `probe.spoken`.
    """
    words: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (home := HOMES.get(node.module or "")):
            words |= {a.asname or a.name: home[a.name] for a in node.names if a.name in home}
        for alias in node.names if isinstance(node, ast.Import) else ():
            home = HOMES.get(alias.name, {})
            words |= {f"{alias.asname or alias.name}.{name}": word for name, word in home.items()}
    return words


def speaks_others_words(tree: ast.Module) -> bool:
    """Whether a file imports words of another tool."""
    modules = (node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom))
    return any(module in HOMES and module != "litbook" for module in modules)


def openers_in(text: str, tree: ast.Module) -> dict[ast.stmt, int]:
    """The first statements of `else`, `finally`, `except` and `case`, each with the line of that word."""
    lines, openers = lines_of(text), dict[ast.stmt, int]()
    for node in blocks(tree):
        if isinstance(node, ast.ExceptHandler):
            openers[node.body[0]] = node.lineno
        elif isinstance(node, ast.match_case):
            openers[node.body[0]] = node.pattern.lineno
        elif isinstance(node, _WITH_ELSE):
            end = (getattr(node, "handlers", None) or node.body)[-1].end_lineno or 0
            for block in filter(None, (node.orelse, getattr(node, "finalbody", ()))):
                # The tree does not say where the word is: between this block and the one before.
                for line in range(first_line(block[0]) - 1, end, -1):
                    if not _BETWEEN.match(lines[line - 1]):
                        openers[block[0]] = line
                end = block[-1].end_lineno or 0
    return openers


def is_formal(node: ast.stmt) -> bool:
    """What says nothing to a reader: `__beside__ = …`, and `if __name__ == …:` for the file as a program."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return is_beside(node)


_BETWEEN = re.compile(r"\s*(#|$)")  # what may stand between a header and its body
_BEFORE_PATTERN = re.compile(r"\s*(#|$|case\b)")
