"""Which asserts and annotations are claims, and what the test of one is made of.

In goes a numbered `Lecture`, out come its claims, each with the operands that will be looked at.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
from dataclasses import replace

from litbook.lecture.author_words import WORDS
from litbook.lecture.model import SECTIONS, Assertion, Lecture
from litbook.python import scopes
from litbook.python.nodes import DefinitionNode, dotted, own_nodes, own_statements, segment, unquote


def find_claims(lecture: Lecture) -> None:
    """Asserts in a section's own body, outside `try`, and annotations that name axes, are claims.

    One that is marked `@fails` raises, as in plain Python, and so is none.
    """
    for function, index in lecture.function_of.items():
        if lecture.functions[index].kind not in SECTIONS:
            continue
        text = lecture.file_of_function(index).text
        begins = _first_written(function)
        for node in outside_try(function):
            if isinstance(node, ast.Assert) and node not in lecture.fails:
                number = lecture.statement_of[node]
                lecture.statements[number] = replace(lecture.statements[number], kind="claim")
                claim = replace(
                    claim_of_assert(text, node),
                    statement=number,
                    zero=node in lecture.zeros,
                    shown=node in lecture.shown,
                    written=begins < node.lineno,
                )
            elif isinstance(node, ast.AnnAssign) and names_axes(node):
                written = f"{ast.unparse(node.target)}: {segment(text, node.annotation)}"
                claim = Assertion(lecture.statement_of[node], "axes", written, "", ("",), (), node=node)
            else:
                continue
            lecture.claim_of[node] = len(lecture.claims)
            lecture.claims.append(claim)


@functools.lru_cache(maxsize=4096)  # a save changes one file of a lecture
def claim_of_assert(text: str, node: ast.Assert) -> Assertion:
    """The claim that an assert of this source text is, of a statement without a number."""
    form, operands = dissect(node.test, text)
    texts = tuple(segment(text, operand) for operand in operands)
    match node.msg:
        case ast.Constant(value=value) if value is not None:
            caption = str(value)
        case _:
            caption = ""
    return Assertion(0, "assert", segment(text, node.test), caption, form, tuple(operands), texts, node=node)


_READS = {*dir(builtins), *WORDS}  # what writes into nothing that it is given


def _first_written(function: ast.AST) -> float:
    """The first line of a function that may write into what is there: `a += 1`, `a[0] = 1`, `a.sort()`."""
    lines = [math.inf]
    for node in own_nodes(function):
        match node:
            case ast.AugAssign() | ast.Delete() | ast.keyword(arg="out"):
                lines.append(node.lineno)
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                lines.append(node.lineno)
            case ast.Expr(ast.Call(func=called)) if dotted(called) not in {*WORDS, "print"}:
                lines.append(node.lineno)  # a call whose result nobody takes
            case ast.Call(ast.Attribute(ast.Name() | ast.Attribute() | ast.Subscript(), name)) if (
                name.endswith("_") and not name.endswith("__")
            ):
                lines.append(node.lineno)  # torch's names of what writes: `y = x.add_(1)`
            case ast.Call(ast.Name(name), [ast.Name(), *_]) if name[:1].islower() and name not in _READS:
                lines.append(node.lineno)  # a helper that may write: `loss = step(model)`
    return min(lines)


# The statements of a body in order, without those of functions, classes and `try` inside it.
outside_try = functools.partial(own_statements, ends=DefinitionNode | ast.Try | ast.TryStar)


def mark_measured(lecture: Lecture) -> None:
    """Mark the claims that read a name that their section measures, or hold what it measures as a whole."""
    names, wholes = dict[int, set[str]](), dict[int, set[str]]()
    for anchor, numbers in lecture.watches_of.items():
        # The function that a statement, or an `except` or `case`, stands in; of a definition, that itself.
        function = lecture.function_of.get(anchor)
        if function is None:
            statement = anchor if isinstance(anchor, ast.stmt) else anchor.body[0]  # type: ignore[attr-defined]
            function = lecture.statements[lecture.statement_of[statement]].function
        for node in (lecture.watches[i].node for i in numbers if lecture.watches[i].kind == "measure"):
            names.setdefault(function, set()).update(scopes.reads(node, called=False))
            wholes.setdefault(function, set()).update([] if isinstance(node, ast.Name) else [ast.dump(node)])
    for number, claim in enumerate(lecture.claims):
        function = lecture.statements[claim.statement].function
        if function in names and claim.node is not None:
            test = claim.node.test if isinstance(claim.node, ast.Assert) else claim.node
            read = names[function] & {*scopes.reads(test), *scopes.binds(test)}
            if read or any(ast.dump(inner) in wholes[function] for inner in ast.walk(test)):
                lecture.claims[number] = replace(claim, measured=True)


def is_address(node: ast.expr) -> bool:
    """Whether an expression is nothing but an address: `x.data_ptr()`, `id(x)`, `hex(id(x))`."""
    match node:
        case ast.Call(ast.Name("hex"), [inner], []):
            return is_address(inner)
        case ast.Call(ast.Name("id"), [_], []) | ast.Call(ast.Attribute(attr="data_ptr"), [], []):
            return True
    return False


def names_axes(node: ast.AnnAssign) -> bool:
    """`x: Float[Tensor, "batch seq"] = ...`: a jaxtyping annotation with a value, on a plain name."""
    return isinstance(node.target, ast.Name) and node.value is not None and spells_axes(node.annotation)


def spells_axes(annotation: ast.expr) -> bool:
    """Whether an annotation has the form of jaxtyping's, quoted or not; its axes are a string or f-string."""
    match unquote(annotation):
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str()) | ast.JoinedStr()])):
            return True
    return False


OPERATORS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
# Next to an operator these need the brackets that they may have around them in the text.
_LOOSE = ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.NamedExpr


def dissect(test: ast.expr, text: str) -> tuple[tuple[str, ...], list[ast.expr]]:
    """The operands of an asserted test, and the words around them.

    `a < b and torch.equal(x, y)` -> `("", " < ", " and torch.equal(", ", ", ")")` and `[a, b, x, y]`.
    Operands are the sides of comparisons and the positional arguments of calls, through `and`, `or`
    and `not`; anything else is one operand, whole. Put together again, they are the test.
    """
    form, operands = [""], list[ast.expr]()

    def add(node: ast.expr, inside: bool) -> None:
        """Add `node` as an operand; `inside` says whether an operator stands next to it."""
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        bracketed = inside and (negated or isinstance(node, _LOOSE))
        form[-1] += "(" * bracketed
        operands.append(node)
        form.append(")" * bracketed)

    def walk(node: ast.expr, inside: bool) -> None:
        match node:
            case ast.Compare(left, operators, sides):
                add(left, inside=True)
                for operator, side in zip(operators, sides, strict=True):
                    form[-1] += f" {OPERATORS[type(operator)]} "
                    add(side, inside=True)
            case ast.BoolOp(operator, values):
                form[-1] += "(" * inside
                for i, value in enumerate(values):
                    form[-1] += (" and " if isinstance(operator, ast.And) else " or ") * (i > 0)
                    walk(value, inside=True)
                form[-1] += ")" * inside
            case ast.UnaryOp(ast.Not(), value):
                form[-1] += "not "
                walk(value, inside=True)
            case ast.Call(function, [_, *_], keywords):
                atom = isinstance(function, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
                called = segment(text, function)
                form[-1] += (called if atom else f"({called})") + "("
                for i, argument in enumerate(node.args):
                    form[-1] += ", " * (i > 0) + "*" * isinstance(argument, ast.Starred)
                    add(argument.value if isinstance(argument, ast.Starred) else argument, inside=False)
                for keyword in keywords:
                    name = f"{keyword.arg}=" if keyword.arg else "**"
                    form[-1] += f", {name}{segment(text, keyword.value)}"
                form[-1] += ")"
            case _:
                add(node, inside)

    walk(test, inside=False)
    return tuple(form), operands
