"""A syntax tree -> what its names mean, by Python's own rules. Knows no lecture, and runs nothing.

In goes a node: a statement of a module, a definition, an expression. Out come the names that it gives a value
(`binds`, `fills`), those that a function has to itself (`local_names`), and every place where it means
something of the module around it (`outer_names`, `reads`).

A *block* is what has names of its own: a function, a class, a comprehension. What is evaluated where a block
stands (decorators, defaults, bases, the first `in` of a comprehension) is not inside it. What a class binds
is seen by its own statements and not by its methods.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from litbook.python.nodes import LEAVES, children, head_of, parameters

FunctionScope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ScopeNode = FunctionScope | ast.ClassDef

_FUNCTIONS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda}
_COMPREHENSIONS = {ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp}


class _HiddenNames(NamedTuple):
    """The names that mean nothing of the module: in a block, and in the functions inside it."""

    here: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()  # declared `global`: storing them changes the module
    private: bool = False  # in a class `__x` is another name

    def hide(self, names: frozenset[str]) -> _HiddenNames:
        """The same with more names hidden."""
        return self._replace(here=self.here | names, below=self.below | names, shared=self.shared - names)


# ---------------------------------------------------------------------------- what is read


def reads(node: ast.AST, *, called: bool = True) -> frozenset[str]:
    """The names of the module, and builtins, that `node` means; of a definition also those that it sets.

    With `called=False` not those that are only called: `f` of `f(x)`, `torch` of `torch.rand(2)`.
    """
    if called:
        return frozenset(name.id for name in outer_names(node))
    heads = {id(head_of(call.func)) for call in ast.walk(node) if isinstance(call, ast.Call)}
    return frozenset(name.id for name in outer_names(node) if id(name) not in heads)


def outer_names(node: ast.AST) -> Iterator[ast.Name]:
    """Every place in `node` that means a name of the module around it; in no order.

    Read, or under `global` also set. What a statement of the module itself sets is told by `binds`.
    """
    todo: list[tuple[ast.AST, _HiddenNames]] = [(node, _HiddenNames())]
    while todo:
        at, names = todo.pop()
        kind = type(at)
        if kind is ast.Name:
            name: str = at.id  # type: ignore[attr-defined]  # a name, as its type says
            shown = name not in names.here and (type(at.ctx) is ast.Load or name in names.shared)  # type: ignore[attr-defined]
            if shown and not (names.private and name.startswith("__") and not name.endswith("__")):
                yield at  # type: ignore[misc]
        elif kind in _FUNCTIONS or kind in _COMPREHENSIONS or kind is ast.ClassDef:
            # What is evaluated around a block, and the nodes right inside it.
            todo += [(part, names) for part in _evaluated_before(at)]
            names = names.hide(_type_parameters(at))
            todo += [(part, names) for part in _annotations(at)]
            if kind in _COMPREHENSIONS:
                generators: list[ast.comprehension] = at.generators  # type: ignore[attr-defined]
                targets = frozenset(name for part in generators for name in _bound(ast.walk(part.target)))
                inside, first = names._replace(here=names.below).hide(targets), generators[0]
                below = [child for child in children(at) if child is not first] + [first.target, *first.ifs]
            else:
                mine, shared = _local_and_shared(at)
                here = (names.below - shared) | mine
                inside, below = _HiddenNames(here, here, shared, names.private), _body(at)  # type: ignore[arg-type]
                if kind is ast.ClassDef:
                    inside = _HiddenNames(here, names.below | {"__class__"}, shared, private=True)
            todo += [(child, inside) for child in below]
        elif kind is not ast.Constant:
            if kind is ast.AugAssign and isinstance(at.target, ast.Name):  # type: ignore[attr-defined]
                # `x += 1` reads `x`.
                read = ast.Name(at.target.id, ast.Load())  # type: ignore[attr-defined]
                todo.append((ast.copy_location(read, at.target), names))  # type: ignore[attr-defined]
            names = names.hide(_type_parameters(at)) if "type_params" in at.__dict__ else names
            todo += [(child, names) for child in children(at)]


# ---------------------------------------------------------------------------- what is given a value


@functools.lru_cache(maxsize=32768)  # a save changes one file of a lecture, which may have 6,000 statements
def binds(statement: ast.AST) -> tuple[str, ...]:
    """The names that a statement gives another value, or deletes, in order; not what statements inside it do.

    Of `try` and `match` the names of `except` and `case` too. `x += 1` may change `x` in place: see `fills`.
    """
    return tuple(dict.fromkeys(_bound(_nodes_inside(statement, nested=False))))


def fills(statement: ast.AST) -> frozenset[str]:
    """The names whose objects a statement changes: `table["x"] = 1`, `x.grad = None`, `total += 1`."""
    filled: set[str] = set()
    for node in _nodes_inside(statement, nested=False):
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                filled.add(name)
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                base: ast.expr = node
                while isinstance(base, ast.Attribute | ast.Subscript):
                    base = base.value
                filled |= {base.id} if isinstance(base, ast.Name) else set()
    return frozenset(filled)


def touched_names(statement: ast.stmt, *, arguments: bool = True) -> tuple[str, ...]:
    """The names to which a statement gives a value, or whose objects it may change in place, in order.

    Each has a value once the statement has run, of a loop or `with` once its block begins. So `:=` is left
    out, which may stand where nothing evaluates it. Of a call alone these are what its method is of, and its
    arguments unless `arguments` is false.
    """
    parts = targets(statement)
    match statement:
        case ast.AnnAssign(value=None):
            parts = []
        case ast.Expr(ast.Call(func, args)):  # `x.add_(1)`, `clip(grads)`
            parts = [*[func] * isinstance(func, ast.Attribute), *args * arguments]
    names = list[str]()
    while parts:
        match parts.pop(0):
            case ast.Name(id=name):
                names.append(name)
            case ast.Tuple(elts=several) | ast.List(elts=several):
                parts[:0] = several
            case ast.Starred(inner) | ast.Attribute(inner) | ast.Subscript(inner):
                parts.insert(0, inner)
    return tuple(dict.fromkeys(names))


def targets(statement: ast.AST) -> list[ast.expr]:
    """What stands where a statement gives values: `x` and `(y, *z)` of `x = (y, *z) = …`."""
    match statement:
        case ast.Assign(targets=several):
            return [*several]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.optional_vars for item in items if item.optional_vars]
    return []


@functools.lru_cache(maxsize=4096)
def steady_names(function: FunctionScope) -> frozenset[str]:
    """The names that a function has to itself, and that none inside it gives another value or deletes."""
    inside = (node.names for node in ast.walk(function) if isinstance(node, ast.Nonlocal))
    return local_names(function).difference(*inside)


def bound_once(function: ast.AST) -> dict[str, ast.expr]:
    """The names that a function gives one value, once, and that value: of `m = k` what `m` stands for."""
    values, often = dict[str, ast.expr](), Counter[str]()
    for node in ast.walk(function):
        pairs = list[tuple[ast.expr, ast.expr]]()
        match node:
            case ast.Assign(targets, value):
                pairs += ((target, value) for target in targets)
            case ast.AnnAssign(target, value=ast.expr() as value) | ast.NamedExpr(target, value):
                pairs.append((target, value))
        for named, given in pairs:
            match named, given:
                case ast.Tuple(names), ast.Tuple(several) if len(names) == len(several):
                    pairs += zip(names, several, strict=True)
                case ast.Name(name), _:
                    values[name] = given
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            often[node.id] += 1
    return {name: value for name, value in values.items() if often[name] == 1}


def sets(statement: ast.AST) -> frozenset[str]:
    """The names that a statement of a module gives a value, with all statements inside it."""
    return frozenset(_bound(_nodes_inside(statement)))


def local_names(block: ScopeNode) -> frozenset[str]:
    """The names that a function or class has to itself: parameters, and what its body binds."""
    return _local_and_shared(block)[0]


@functools.lru_cache(maxsize=4096)  # plans of notebooks and the search for numbers ask for the same functions
def _local_and_shared(block: ScopeNode) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a block has to itself, and those that it declares `global`."""
    bound = {name for _, name in parameters(block)} if isinstance(block, FunctionScope) else set[str]()
    shared, elsewhere = set[str](), set[str]()
    for node in _nodes_inside(*_body(block)):
        match node:
            case ast.Global(names=names):
                shared.update(names)
            case ast.Nonlocal(names=names):
                elsewhere.update(names)
            case ast.AugAssign(target=ast.Name(id=name)):
                bound.add(name)
            case _:
                bound.update(_bound([node]))
    return frozenset(bound - shared - elsewhere), frozenset(shared)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these nodes themselves bind, without what is below them."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other) if name != "*":
                yield (other or name).partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def _nodes_inside(*nodes: ast.AST, nested: bool = True) -> Iterator[ast.AST]:
    """These nodes and all below them in the same block, in order; if not `nested` no statement in another."""
    todo, below = [*nodes], list[ast.AST]()
    while todo:
        node = todo.pop()
        yield node
        kind = type(node)
        if kind in LEAVES:
            continue
        if kind in _COMPREHENSIONS:
            # The targets of `:=` in a comprehension belong to the block around it.
            below = [*_evaluated_before(node)]
            within = children(node)
            while within:
                inner = within.pop()
                if type(inner) is ast.NamedExpr:
                    below.append(inner.target)
                if type(inner) is not ast.Lambda:
                    within += children(inner)
        elif kind in _FUNCTIONS or kind is ast.ClassDef:
            below = [*_evaluated_before(node), *_annotations(node)]
        elif kind is ast.AugAssign and type(node.target) is ast.Name:  # type: ignore[attr-defined]
            below = [node.value]  # type: ignore[attr-defined]
        elif kind is ast.AnnAssign and not (node.value or (nested and node.simple)):  # type: ignore[attr-defined]
            below = [node.annotation]  # type: ignore[attr-defined]  # `x: int` gives no value, `(x): int` no name
        else:
            below = children(node)
        todo += below[::-1] if nested else [child for child in below[::-1] if not isinstance(child, ast.stmt)]


# ---------------------------------------------------------------------------- the parts of a block


def _evaluated_before(block: ast.AST) -> list[ast.expr]:
    """What is evaluated before a block is entered, with the names of where it stands."""
    match block:
        case ast.FunctionDef(args=a) | ast.AsyncFunctionDef(args=a):
            return [*block.decorator_list, *a.defaults, *filter(None, a.kw_defaults)]
        case ast.Lambda(args=a):
            return [*a.defaults, *filter(None, a.kw_defaults)]
        case ast.ClassDef():
            return block.decorator_list
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return [block.generators[0].iter]
    return []


def _annotations(block: ast.AST) -> list[ast.AST]:
    """What may name a block's type parameters: bases and annotations, and the parameters' bounds."""
    parts: list[ast.AST] = [*block.__dict__.get("type_params", ())]
    match block:
        case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
            a = block.args
            several = (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg)
            noted = (argument and argument.annotation for argument in several)
            return [*parts, *filter(None, (*noted, returns))]
        case ast.ClassDef(bases=bases, keywords=keywords):
            return [*parts, *bases, *keywords]
    return parts


def _type_parameters(node: ast.AST) -> frozenset[str]:
    return frozenset(parameter.name for parameter in node.__dict__.get("type_params", ()))


def _body(block: ScopeNode) -> list[ast.AST]:
    return [block.body] if isinstance(block, ast.Lambda) else [*block.body]
