"""What would say nothing: sections that run nothing, claims that claim nothing, functions that are replaced.

Each is legal Python that a reader, or its author, would take for a claim. Each becomes a `Finding` before
anything runs.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from itertools import pairwise

from litbook.finding import Finding
from litbook.lecture.claims import names_axes, outside_try, spells_axes
from litbook.lecture.model import SECTIONS, Lecture
from litbook.lecture.sections import bare_calls, is_plain
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.imports import NameResolver
from litbook.python.nodes import (
    DefinitionNode,
    FunctionNode,
    blocks,
    dotted,
    mark_of,
    own_nodes,
    own_statements,
    segment,
    truth_of,
    unquote,
)
from litbook.record.device_kinds import needs

_SECTION = "a section is a plain function without parameters"
# Decorators under which two functions of a name belong together; `@f.register` and `@f.setter` with them.
_JOINS = {"overload", "register", "setter", "getter", "deleter"}


def find_lost_sections(lecture: Lecture, callers: Iterable[ast.AST], problems: list[Finding]) -> None:
    """Statements `name()` that look like a section's, and would lose its claims without a word.

    `callers` are main, the parts and the sections. A function that is decorated is its decorator's business.
    """
    # The functions of each module by name; those inside an `if` or `try` only where there is no other.
    every = [(*own_statements(file.tree), *file.tree.body) for file in lecture.files]
    functions = [{node.name: node for node in nodes if isinstance(node, FunctionNode)} for nodes in every]

    def resolve(caller: FunctionNode, name: str) -> FunctionNode | None:
        """What a name in a function means: a function of the lecture, also one that is defined in a block."""
        number = lecture.functions[lecture.function_of[caller]].file
        node = lecture.names.meaning(number, name, caller)
        return node if isinstance(node, FunctionNode) else functions[number].get(name)

    def asserts(node: FunctionNode, seen: set[ast.AST]) -> bool:
        """Whether a function, as if it were a section, makes a claim, or one that it calls does."""
        seen.add(node)
        for inner in outside_try(node):
            if isinstance(inner, ast.Assert) or (isinstance(inner, ast.AnnAssign) and names_axes(inner)):
                return True
        called = (resolve(node, name) for _, name in bare_calls(node))
        return any(asserts(callee, seen) for callee in called if callee is not None and callee not in seen)

    reported = set[ast.AST]()
    for caller in sorted(callers, key=lambda node: lecture.function_of[node]):
        assert isinstance(caller, ast.FunctionDef)
        spec = lecture.functions[lecture.function_of[caller]]
        here = lecture.files[spec.file]
        for statement, name in bare_calls(caller):
            node = resolve(caller, name)
            if node is None or node in reported or name in (caller.name, "main"):
                continue
            file = lecture.file_of_function(lecture.function_of[node])
            plain = is_plain(file, node)
            if (plain and node.col_offset == 0) or not all(map(mark_of, node.decorator_list)):
                continue
            # What takes parameters, or is defined in a block, is a helper: that it asserts something is lost
            # only among sections, in `main` or a part.
            if isinstance(node, ast.AsyncFunctionDef):
                why = "is async"
                way_out = f"write `def {node.name}():`, with asyncio.run(…) around what it awaits"
            elif any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node)):
                why, way_out = "holds a `yield`, so that calling it runs nothing", "take the `yield` out"
            elif spec.kind == "section" or not asserts(node, set()):
                continue
            elif plain:
                why = "is defined in a block, so that its claims do not count"
                way_out = "define it at the left margin"
            else:
                why = "takes parameters, so that its claims do not count"
                way_out = f"write `def {node.name}():`, or call it in a section"
            if name.split(".")[0] not in scopes.local_names(caller) - lecture.names.imported_names(caller):
                reported.add(node)
                line = statement.lineno
                where = f"on line {line}" if file is here else f"in {here.path}:{line}"
                what = f"{name}() {why}, and {caller.name}() calls it {where}: {_SECTION}"
                problems.append(Finding("no-section", what, file.place_of(node), way_out))


def find_what_says_nothing(lecture: Lecture, problems: list[Finding]) -> None:
    """Functions that are replaced, claims that claim nothing, asides that are none, needs unknown to all."""
    _find_wrong_marks(lecture, problems)
    for file in lecture.files:
        _find_replaced(file, lecture.names, problems)
    # Annotations of jaxtyping in a section's own body that look like claims and are none. In a helper none is
    # a claim, and none looks like one more than another.
    kinds = list[set[str]]()  # for each file what it calls jaxtyping, and what it takes out of it
    for file in lecture.files:
        kinds.append(set())
        for node in blocks(file.tree) if "jaxtyping" in file.text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "jaxtyping":
                kinds[-1] |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                kinds[-1] |= {alias.asname or alias.name for alias in node.names if alias.name == "jaxtyping"}
    for node, number in lecture.statement_of.items() if any(kinds) else ():
        if isinstance(node, ast.AnnAssign) and node not in lecture.claim_of:
            function = lecture.functions[lecture.statements[number].function]
            if kinds[function.file] and function.kind in SECTIONS:
                file = lecture.files[function.file]
                why, way_out = _why_idle(file, node, kinds[function.file])
                if why:
                    what = f"this annotation checks nothing: {why}"
                    problems.append(Finding("no-claim", what, file.place_of(node), way_out))
    for node, number in lecture.statement_of.items():
        if isinstance(node, ast.Assert):
            _find_always_true(lecture.file_of_statement(number), node, problems)
            _find_unlike_neighbours(lecture.file_of_statement(number), node, problems)


def _find_unlike_neighbours(file: File, node: ast.Assert, problems: list[Finding]) -> None:
    """`a != b != c` does not compare `a` with `c`, and reads as if all three differed."""
    for chain in (inner for inner in ast.walk(node.test) if isinstance(inner, ast.Compare)):
        sides = [chain.left, *chain.comparators]
        for at, two in enumerate(pairwise(chain.ops)):
            ends = sides[at], sides[at + 2]
            unlike = all(isinstance(op, ast.NotEq | ast.IsNot) for op in two)
            if unlike and not all(isinstance(end, ast.Constant) for end in ends):
                a, c = (segment(file.text, end) for end in ends)
                what = f"{segment(file.text, chain)} does not compare {a} with {c}"
                each = ", ".join(segment(file.text, side) for side in sides)
                way_out = f"that all differ: len({{{each}}}) == {len(sides)}; that neighbours do: … and …"
                problems.append(Finding("no-claim", what, file.place_of(chain), way_out))
                break


def _find_always_true(file: File, node: ast.Assert, problems: list[Finding]) -> None:
    """An assert of which the text alone says that it holds, or a part of it that does."""
    parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
    if truth_of(node.test) is False:
        return
    for part in (part for part in parts if truth_of(part) or (isinstance(part, ast.Tuple) and part.elts)):
        text, way_out = segment(file.text, part), "claim something that can be false"
        what = f"this assert is always true: it asserts {text}"
        match node.test, part:
            case ast.Tuple(elts=elts), _:
                inside = [segment(file.text, element) for element in elts]
                what, way_out = "this assert is always true: it asserts a tuple", "assert one thing at a time"
                if all(isinstance(element, ast.Starred) for element in elts):
                    way_out = "say what is claimed of it, `len(…) > 0` perhaps"
                elif len(elts) == 2:
                    way_out = f"take the parentheses away: assert {', '.join(inside)}"
                elif len(elts) == 1:
                    way_out = f"take the comma away: assert {inside[0]}"
            case ast.BoolOp(ast.And()), _:
                what = f"this part of the assert is always true: {text}"
            case ast.BoolOp(ast.Or(), [ast.Compare(left, [ast.Eq()], [_]), *_]), ast.Constant():
                asked = segment(file.text, left)
                what = f"this assert is always true: {text} alone is"
                way_out = f"compare with each: … or {asked} == {text}"
            case ast.BoolOp(ast.Or()), _:
                what = f"this assert is always true: {text} alone is"
        problems.append(Finding("no-claim", what, file.place_of(part), way_out))
        return
    if node.msg is not None and isinstance(node.test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        with contextlib.suppress(ValueError):  # else it is computed
            if not isinstance(ast.literal_eval(node.msg), str | None):
                asked, message = segment(file.text, node.test), segment(file.text, node.msg)
                what = f"what stands behind the comma is a message, and {message} is none"
                way_out = f"compare: assert {asked} == {message}"
                problems.append(Finding("no-claim", what, file.place_of(node.msg), way_out))


def _find_wrong_marks(lecture: Lecture, problems: list[Finding]) -> None:
    """`@requires` of what nothing has; `@aside` on what has a page of its own, or on what is no section.

    And either with brackets too many or too few.
    """
    sections = [lecture.functions[i] for i in lecture.order]
    tops = [section for section in sections if section.parent == lecture.main]
    paged = any(top.kind == "part" for top in tops)  # else the lecture is one page
    for node, index in lecture.function_of.items():
        spec, file = lecture.functions[index], lecture.file_of_function(index)
        misplaced = spec.kind not in ("part", "section") or (paged and spec in tops)  # as an aside
        marks = [mark for mark in getattr(node, "decorator_list", ()) if mark_of(mark) == "requires"]
        for mark in getattr(node, "decorator_list", ()):
            name = dotted(mark.func if isinstance(mark, ast.Call) else mark).rpartition(".")[2]
            match mark_of(mark), mark:
                case "", _ if name in ("requires", "aside"):
                    what, way_out = "@aside takes no brackets", "write @aside"
                    if name == "requires":
                        what, way_out = "@requires does not say what", 'say what is needed: @requires("cuda")'
                    problems.append(Finding("bad-mark", what, file.place_of(mark), way_out))
                case "requires", _ if mark is not marks[0]:
                    what, way_out = "a section has one @requires", 'say all in it: @requires("cuda, ranks=2")'
                    problems.append(Finding("unknown-need", what, file.place_of(mark), way_out))
                case "requires", ast.Call(args=[ast.Constant(required)], keywords=[]):
                    try:
                        needs(str(required))
                    except ValueError as error:
                        what, _, way_out = str(error).partition("; ")
                        problems.append(Finding("unknown-need", what, file.place_of(mark), way_out))
                case "requires", _:  # nothing has run, so what a name stands for is not known
                    what, way_out = "@requires takes one text, as it stands", 'write @requires("cuda"), say'
                    problems.append(Finding("unknown-need", what, file.place_of(mark), way_out))
                case "aside", _ if misplaced:
                    what = f"only a section can be an aside, and {spec.name} is none"
                    way_out = "take the @aside away"
                    if spec in tops:
                        what = f"{spec.name}() has a page of its own, which cannot be an aside"
                        way_out = "mark the sections that it calls"
                    problems.append(Finding("no-aside", what, file.place_of(mark), way_out))
                    misplaced = False  # it has been said


def _why_idle(file: File, node: ast.AnnAssign, kinds: set[str]) -> tuple[str, str]:
    """Why an annotation is no claim, and the way out; two blanks where it is none of jaxtyping's."""
    # What `A | B`, `Optional[A]` or `Union[A, B]` allows for; any other annotation itself.
    allowed, todo = list[ast.expr](), [node.annotation]
    while todo:
        match unquote(annotation := todo.pop()):
            case ast.BinOp(left, ast.BitOr(), right):
                todo += [right, left]
            case ast.Subscript(named, inner) if dotted(named).rpartition(".")[2] in ("Optional", "Union"):
                allowed += inner.elts if isinstance(inner, ast.Tuple) else [inner]
            case _:
                allowed.append(annotation)
    alone = None  # the first of them that is jaxtyping's
    for annotation in reversed(allowed):
        match unquote(annotation):
            case ast.Subscript(named) as spelled if spells_axes(spelled):
                if kinds & {dotted(named), dotted(named).rpartition(".")[0]}:
                    alone = annotation
    if alone is None:
        return _why_within(file, node, kinds)
    if alone is not node.annotation and isinstance(node.value, ast.Constant) and node.value.value is None:
        return "", ""  # `x: Float[...] | None = None` has nothing to check
    target, shown = segment(file.text, node.target), segment(file.text, alone)
    if node.value is None:
        return "it has no value", f"annotate where the value is assigned: {target}: {shown} = …"
    if not isinstance(node.target, ast.Name):
        return f"{target} is no plain name", f"annotate a name, and assign that: value: {shown} = …"
    if alone is not node.annotation:
        return "it allows for more than one type", f"leave the others out: {target}: {shown} = …"
    return "it stands in a `try`", "annotate behind the `try`"


def _why_within(file: File, node: ast.AnnAssign, kinds: set[str]) -> tuple[str, str]:
    """The same of one inside another type, `list[Float[…]]`: nobody looks at what a container holds."""
    match node.value:
        case None | ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return "", ""  # nothing to check
    for inner in ast.walk(node.annotation):
        match inner:
            case ast.Subscript(named) if spells_axes(inner) and dotted(named).partition(".")[0] in kinds:
                way_out = f"annotate each on a name of its own: value: {segment(file.text, inner)} = …"
                return "it stands inside another type", way_out
    return "", ""


def _find_replaced(file: File, names: NameResolver, problems: list[Finding]) -> None:
    """Functions at the left margin of which a later one takes the name, or an import does."""
    first: dict[str, FunctionNode] = {}
    joined = set[ast.AST]()  # by a decorator, each with others of its name
    for node in file.tree.body:
        if not isinstance(node, FunctionNode) or node.name == "_":
            continue
        marks = (dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
        if any(mark.rpartition(".")[2] in _JOINS for mark in marks):
            joined.add(node)
        before = first.setdefault(node.name, node)
        if before is not node and not joined & {before, node}:
            what = f"{node.name}() is defined on line {before.lineno} already, and this one replaces it"
            problems.append(Finding("replaced", what, file.place_of(node), "give one of them another name"))
    # Functions of two files under one name in a third, which then has only one of them.
    for name, earlier, later in names.clashes(file.number):
        was, now = (
            "defined" if isinstance(node, DefinitionNode) else "imported" for node in (earlier, later)
        )
        what = f"{name} is {was} on line {earlier.lineno} already, and what is {now} here replaces it"
        way_out = f"import one of them under another name: import {name} as …"
        problems.append(Finding("replaced", what, file.place_of(later), way_out))
