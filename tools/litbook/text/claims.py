"""Which asserts and annotations are claims, and what the test of one is made of.

In goes a numbered `Lecture`, out come its claims, each with the operands that will be looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from litbook.text import scopes
from litbook.text.lecture import Assertion, Lecture
from litbook.text.tree import Definition, directly_in, segment, unquoted


def find_claims(found: Lecture) -> None:
    """Asserts in a section's own body, outside `try`, and annotations that name axes, are claims.

    One that is marked `@fails` raises, as in plain Python, and so is none.
    """
    for node, index in list(found.function_of.items()):
        if found.functions[index].kind not in ("main", "part", "section"):
            continue
        for child in outside_try(node):
            if isinstance(child, ast.Assert) and child not in found.fails:
                _add_claim(found, child, "assert", child.test, _caption(child))
            elif isinstance(child, ast.AnnAssign) and names_axes(child):
                _add_claim(found, child, "axes", child.annotation, "")


def outside_try(node: ast.AST) -> Iterator[ast.AST]:
    for child in directly_in(node):
        yield child
        if not isinstance(child, Definition | ast.Try | ast.TryStar):
            yield from outside_try(child)


def _add_claim(
    found: Lecture, node: ast.Assert | ast.AnnAssign, kind: str, shown: ast.expr, caption: str
) -> None:
    number = found.statement_of[node]
    source = found.file_of_statement(number).text
    text = segment(source, shown)
    if isinstance(node, ast.AnnAssign):
        text = f"{ast.unparse(node.target)}: {text}"
    else:
        found.statements[number] = replace(found.statements[number], kind="claim")
    form, operands = dissect(shown, source) if kind == "assert" else (("",), [])
    texts = tuple(segment(source, operand) for operand in operands)
    found.claim_of[node] = len(found.claims)
    found.claims.append(Assertion(number, kind, text, caption, form, tuple(operands), texts, node=node))


def mark_measured(found: Lecture) -> None:
    """Mark the claims that read a name that their section measures, or hold what it measures as a whole."""
    names, wholes = dict[int, set[str]](), dict[int, set[str]]()
    for anchor, numbers in found.watches_of.items():
        for node in (found.watches[i].node for i in numbers if found.watches[i].kind == "measure"):
            function = _owner(found, anchor)
            names.setdefault(function, set()).update(scopes.reads(node, called=False))
            wholes.setdefault(function, set()).update([] if isinstance(node, ast.Name) else [ast.dump(node)])
    for number, claim in enumerate(found.claims):
        function = found.statements[claim.statement].function
        if function in names and claim.node is not None:
            test = claim.node.test if isinstance(claim.node, ast.Assert) else claim.node
            read = names[function] & {*scopes.reads(test), *scopes.binds(test)}
            if read or any(ast.dump(it) in wholes[function] for it in ast.walk(test)):
                found.claims[number] = replace(claim, measured=True)


def _owner(found: Lecture, anchor: ast.AST) -> int:
    """The function that a statement, or an `except` or `case`, stands in; of a definition, that itself."""
    if anchor in found.function_of:
        return found.function_of[anchor]
    body: list[ast.stmt] = getattr(anchor, "body", [])
    statement = anchor if isinstance(anchor, ast.stmt) else body[0]
    return found.statements[found.statement_of[statement]].function


def is_address(node: ast.expr) -> bool:
    """Whether an expression is nothing but an address: `x.data_ptr()`, `id(x)`, `hex(id(x))`."""
    match node:
        case ast.Call(ast.Name("hex"), [inner], []):
            return is_address(inner)
        case ast.Call(ast.Name("id"), [_], []) | ast.Call(ast.Attribute(attr="data_ptr"), [], []):
            return True
    return False


def _caption(node: ast.Assert) -> str:
    match node.msg:
        case ast.Constant(value=value) if value is not None:
            return str(value)
    return ""


def names_axes(node: ast.AnnAssign) -> bool:
    """`x: Float[Tensor, "batch seq"] = ...`: a jaxtyping annotation with a value, on a plain name."""
    return isinstance(node.target, ast.Name) and node.value is not None and spells_axes(node.annotation)


def spells_axes(annotation: ast.expr) -> bool:
    """Whether an annotation has the form of jaxtyping's, quoted or not; its axes are a string or f-string."""
    match unquoted(annotation):
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str()) | ast.JoinedStr()])):
            return True
    return False


_OPERATORS: dict[type[ast.cmpop], str] = {
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
    found = _Dissection(text)
    found.walk(test, inside=False)
    return tuple(found.form), found.operands


class _Dissection:
    """The form and the operands of a test while it is taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.form = [""]
        self.operands: list[ast.expr] = []

    def walk(self, node: ast.expr, inside: bool) -> None:
        """Add `node`; `inside` says whether an operator stands next to it."""
        match node:
            case ast.Compare():
                self._comparison(node)
            case ast.BoolOp():
                self._both(node, inside)
            case ast.UnaryOp(ast.Not(), value):
                self.form[-1] += "not "
                self.walk(value, inside=True)
            case ast.Call(_, [_, *_]):
                self._call(node)
            case _:
                self._operand(node, inside)

    def _operand(self, node: ast.expr, inside: bool) -> None:
        bracketed = inside and _is_loose(node)
        self.form[-1] += "(" * bracketed
        self.operands.append(node)
        self.form.append(")" * bracketed)

    def _comparison(self, node: ast.Compare) -> None:
        self._operand(node.left, inside=True)
        for op, side in zip(node.ops, node.comparators, strict=True):
            self.form[-1] += f" {_OPERATORS[type(op)]} "
            self._operand(side, inside=True)

    def _both(self, node: ast.BoolOp, inside: bool) -> None:
        word = " and " if isinstance(node.op, ast.And) else " or "
        self.form[-1] += "(" * inside
        for i, value in enumerate(node.values):
            self.form[-1] += word * (i > 0)
            self.walk(value, inside=True)
        self.form[-1] += ")" * inside

    def _call(self, node: ast.Call) -> None:
        called = segment(self.text, node.func)
        atom = isinstance(node.func, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        self.form[-1] += (called if atom else f"({called})") + "("
        for i, argument in enumerate(node.args):
            self.form[-1] += ", " * (i > 0) + "*" * isinstance(argument, ast.Starred)
            self._operand(argument.value if isinstance(argument, ast.Starred) else argument, inside=False)
        for keyword in node.keywords:
            name = f"{keyword.arg}=" if keyword.arg else "**"
            self.form[-1] += f", {name}{segment(self.text, keyword.value)}"
        self.form[-1] += ")"


def _is_loose(node: ast.expr) -> bool:
    return isinstance(node, _LOOSE) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
