"""What a lecture's parts ask of a syntax tree: the nodes in it, the blocks, and the text of a node.

In go nodes and the text they were read from, out come nodes, names and lines. It knows nothing of lectures.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import re
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

DefinitionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
LoopNode = ast.For | ast.AsyncFor | ast.While
Anchor = ast.stmt | ast.ExceptHandler | ast.match_case
Kinds = types.UnionType | type[ast.AST]
GraphNode = TypeVar("GraphNode", bound=Hashable)


_BORN_FROZEN = gc.get_freeze_count()  # Python 3.12 begins with a few hundred
# How often `freeze_garbage` is entered: Python's own answer counts 200,000 objects of a library each time.
_frozen = 0
_stays = False  # whether somebody else had frozen something before


@contextlib.contextmanager
def freeze_garbage() -> Iterator[None]:
    """Python's search for garbage leaves alone what there is now: torch alone has 200,000 objects.

    Otherwise it walks them all while a lecture is timed, and a fork copies what is walked. Threads that are
    in here at once may leave in any order: the last one releases what is frozen.
    """
    global _frozen, _stays
    if not _frozen:
        _stays = gc.get_freeze_count() > _BORN_FROZEN
    gc.freeze()
    _frozen += 1
    try:
        yield
    finally:
        _frozen -= 1
        if not _frozen and not _stays:
            gc.unfreeze()


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Python looks for no garbage in here, or in the function so decorated.

    A syntax tree is many objects and no garbage; looking for some takes as long as building it. So that it is
    not looked through right afterwards, all that is there then counts as old; in a process that has frozen
    what is old it is frozen with it.
    """
    was, stays = gc.isenabled(), _frozen > 0 or gc.get_freeze_count() > _BORN_FROZEN
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()
            if not stays:
                gc.unfreeze()
            gc.enable()


@functools.lru_cache(maxsize=64)  # asked for every statement and operand of a lecture, whatever its files
def lines_of(text: str) -> list[str]:
    """Python ends a line at a newline only; `str.splitlines` also at form feeds and the like."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def normalize_newlines(text: str) -> str:
    """The text with line ends as Python counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@functools.lru_cache(maxsize=128)  # the files of a book: a save changes one of them
def parse_text(text: str, path: str) -> ast.Module:
    """The syntax tree of a file, for all who ask; nobody changes it. Raises what `ast.parse` raises.

    Two files of one text have two trees: a node says which of them it is of.
    """
    return ast.parse(normalize_newlines(text), path)


def has_docstring(node: ast.Module | DefinitionNode) -> bool:
    """Whether a module, class or function begins with a docstring."""
    return ast.get_docstring(node, clean=False) is not None


def body_of(node: ast.Module | DefinitionNode) -> list[ast.stmt]:
    """The statements of a module, class or function without its docstring."""
    return node.body[1:] if has_docstring(node) else node.body


def modules_in(node: ast.Module | ast.stmt) -> Iterator[str]:
    """The first names of the modules that are imported anywhere in it."""
    for inner in (node, *blocks(node)):
        if isinstance(inner, ast.Import):
            yield from (alias.name.split(".")[0] for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
            yield inner.module.split(".")[0]


def heading_of(node: ast.Module | DefinitionNode) -> str:
    """The docstring's first line, without the full stop that ends a thesis."""
    lines = (ast.get_docstring(node) or "").strip().splitlines()
    first = lines[0].strip() if lines else ""
    return first[:-1] if first.endswith(".") and not first.endswith("..") else first


def dotted(node: ast.expr) -> str:
    """`torch.cuda.is_available` for the expression of that name, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def head_of(node: ast.expr) -> ast.expr:
    """`torch` of `torch.cuda.now`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def unquote(annotation: ast.expr) -> ast.expr:
    """What an annotation says: of one in quotes what stands in them, placed where they are."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        with contextlib.suppress(SyntaxError, ValueError):
            expression = ast.parse(annotation.value.strip(), mode="eval").body
            for node in ast.walk(expression):
                ast.copy_location(node, annotation)
            return expression
    return annotation


_CONVERSIONS = ("str", "int", "float", "repr", "format", "round", "bool", "ascii", "complex", "dict")


def is_literal(node: ast.expr) -> bool:
    """Whether the value of an expression stands in the source as it is: `-1`, `"4,096"`, `str(4096)`."""
    match node:
        case ast.Constant():
            return True
        case ast.BinOp(
            left, ast.Mult(), ast.BinOp(ast.Constant(10), ast.Pow(), ast.Constant())
        ):  # 70 * 10**9
            return isinstance(left, ast.Constant)
        case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner) | ast.Starred(value=inner):
            return is_literal(inner)
        case (
            ast.Tuple(several)
            | ast.List(several)
            | ast.Set(several)
            | ast.JoinedStr(several)
            | ast.Dict(values=several)
        ):
            return all(map(is_literal, several))
        case ast.FormattedValue(value=inner, format_spec=spec):
            return is_literal(inner) and (spec is None or is_literal(spec))
        # "40" + "96", "%d" % 4096; or one of two, both of which stand there
        case (
            ast.BinOp(ast.Constant(value=str()) | ast.JoinedStr() as left, _, right)
            | ast.IfExp(body=left, orelse=right)
        ):
            return is_literal(left) and is_literal(right)
        case ast.Subscript(value=inner):  # whichever it is of them
            return is_literal(inner)
        case ast.Call(func=ast.Name(name), args=args, keywords=keywords) if name in _CONVERSIONS:
            return all(map(is_literal, (*args, *(keyword.value for keyword in keywords))))
        case ast.Call(func=ast.Attribute(value=inner), args=args, keywords=keywords):  # "4096".strip()
            return all(map(is_literal, (inner, *args, *(keyword.value for keyword in keywords))))
    return False


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's own body, in order: not those of functions or classes inside it.

    Where a name is read or written is no node here (`ctx`, one in three nodes of a tree).
    """
    todo = children(node)[::-1]
    while todo:
        child = todo.pop()
        yield child
        if type(child) not in _ENDS:
            todo += children(child)[::-1]


LEAVES = {ast.Name, ast.Constant}  # one node in two; nothing is below them
_ENDS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *LEAVES}


def children(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, in a third of the time: every node of a lecture comes by here."""
    nodes: list[ast.AST] = []
    fields = node.__dict__
    for name in node._fields:
        value = fields.get(name)
        if isinstance(value, list):
            nodes += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            nodes.append(value)
    return nodes


def all_nodes(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, the outer ones first, as `ast.walk`; but no `ctx`."""
    nodes = [node]
    for inner in nodes:  # which grows
        if type(inner) not in LEAVES:
            nodes += children(inner)
    return nodes


def truth_of(node: ast.expr) -> bool | None:
    """Whether an expression is true, or false, whatever it is evaluated with; None where that depends."""
    match _of_same_truth(node):
        case ast.Constant(value):
            return bool(value)
        case ast.List(elts) | ast.Set(elts) | ast.Tuple(elts):
            return _holds_any([e.value if isinstance(e, ast.Starred) else None for e in elts])
        case ast.Dict(keys, values):
            both = zip(keys, values, strict=True)
            return _holds_any([value if key is None else None for key, value in both])
        case ast.JoinedStr(values):
            return True if any(isinstance(part, ast.Constant) and part.value for part in values) else None
        case ast.Lambda() | ast.GeneratorExp():
            return True
        case ast.Compare(ast.Call(ast.Name("len")), [ast.GtE()], [ast.Constant(0)]):
            return True
        case ast.BinOp(left, ast.Add(), right) if _holds_text(left) or _holds_text(right):
            return True
        case ast.UnaryOp(ast.Not(), operand):
            inner = truth_of(operand)
            return None if inner is None else not inner
        case ast.BoolOp(operator, values):
            settles = isinstance(operator, ast.Or)
            truths = {truth_of(value) for value in values}
            return settles if settles in truths else None if None in truths else not settles
    return None


def _of_same_truth(node: ast.expr) -> ast.expr:
    """What has the same truth and is simpler: `x` of `bool(x)`, `len(x)`, `(y := x)`, `x if True else z`."""
    match node:
        case ast.NamedExpr(value=value) | ast.Call(ast.Name("bool" | "len"), [value], []):
            return _of_same_truth(value)
        case ast.Call(ast.Name("list" | "set" | "sorted" | "tuple"), [ast.List() | ast.Set() as value], _):
            return value
        case ast.Call(ast.Name("dict"), _, keywords) if any(keyword.arg for keyword in keywords):
            return ast.Constant(True)
        case ast.Call(ast.Name("range"), [ast.Constant(int(end))], []):
            return ast.Constant(end > 0)
        case ast.IfExp(test, body, orelse) if (taken := truth_of(test)) is not None:
            return _of_same_truth(body if taken else orelse)
    return node


def _holds_any(parts: list[ast.expr | None]) -> bool | None:
    """Whether a container holds something: None is an element, any other part a container put into it."""
    shown = ast.List | ast.Set | ast.Tuple | ast.Dict | ast.Constant
    truths = {part is None or (truth_of(part) if isinstance(part, shown) else None) for part in parts}
    return True if True in truths else None if None in truths else False


def _holds_text(node: ast.expr) -> bool:
    """Whether it is a text or a list that holds something, also after more has been added to it."""
    number = isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes)
    return truth_of(node) is True and not number


def parameters(node: FunctionNode | ast.Lambda) -> list[tuple[str, str]]:
    """Every parameter in the order of the signature: as a reader sees it (`*rest`), and its bare name."""
    a = node.args
    rest = [(f"*{a.vararg.arg}", a.vararg.arg)] if a.vararg else []
    others = [(f"**{a.kwarg.arg}", a.kwarg.arg)] if a.kwarg else []
    plain = [(p.arg, p.arg) for p in (*a.posonlyargs, *a.args)]
    return [*plain, *rest, *((p.arg, p.arg) for p in a.kwonlyargs), *others]


def directly_in(node: ast.AST) -> list[Anchor]:
    """The statements right inside `node`, and its `except` and `case` parts. Expressions hold neither."""
    fields = node.__dict__
    anchors: list[Anchor] = []
    for name in _BLOCKS:
        if name in fields:
            anchors += fields[name]
    return anchors


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # of a statement; all of them lists, in order


def blocks(node: ast.Module | Anchor) -> list[Anchor]:
    """Every statement, `except` and `case` inside `node`, the outer ones first."""
    anchors = directly_in(node)
    for inner in anchors:  # which grows
        anchors += directly_in(inner)
    return anchors


def own_statements(node: ast.AST, ends: Kinds = DefinitionNode) -> Iterator[Anchor]:
    """As `blocks`, in order, but not what is inside the functions and classes there, or what else `ends`."""
    todo = directly_in(node)[::-1]
    while todo:
        child = todo.pop()
        yield child
        if not isinstance(child, ends):
            todo += directly_in(child)[::-1]


def closure(start: Iterable[GraphNode], leads: Callable[[GraphNode], Iterable[GraphNode]]) -> list[GraphNode]:
    """These, and all that they lead to in turn: each once, before what it leads to."""
    todo, reached = [*start][::-1], dict[GraphNode, None]()
    while todo:
        node = todo.pop()
        if node not in reached:
            reached[node] = None
            todo += [*leads(node)][::-1]
    return [*reached]


def first_line(statement: ast.stmt) -> int:
    """The line of a statement's first decorator, else its own."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(decorator.lineno for decorator in decorators) if decorators else statement.lineno


def mark_of(decorator: ast.expr) -> str:
    """Which of the author's marks of a section a decorator is: `requires`, `aside`, or none of them."""
    called = isinstance(decorator, ast.Call)
    name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2]
    return name if name == ("requires" if called else "aside") else ""


def segment(text: str, node: ast.expr) -> str:
    """The user's own text of an expression, on one line; rewritten where comments stand in between."""
    # As `ast.get_source_segment`, which reads the whole text at every call. Columns count bytes of UTF-8.
    lines = [line.encode() for line in lines_of(text)[node.lineno - 1 : node.end_lineno or 0]]
    if lines:
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
    segment = b"\n".join(lines).decode() or ast.unparse(node)
    if "\n" not in segment:
        return segment
    if "#" in segment or '"""' in segment or "'''" in segment:
        return ast.unparse(node)
    return re.sub(r"\s*\\?\n\s*", " ", segment)
