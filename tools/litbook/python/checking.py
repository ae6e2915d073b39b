"""A function's text -> which of its lines only check the others: asserts, and what nothing else reads.

Runs nothing. Lines are those of the file.
"""

from __future__ import annotations

import ast
import bisect
import functools
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from litbook.python import scopes
from litbook.python.functions import find_function
from litbook.python.nodes import first_line, own_nodes

Body = list[ast.stmt]


@dataclass
class Checking:
    """`proof` has the lines that only check, each with the line of the assert that it belongs to.

    `statement` has for every line of the function where the outermost statement around it begins, `condition`
    for an assert inside an `if` the conditions under which it runs. `unseen` has the asserts that read a name
    to which no shown line gives a value.
    """

    proof: dict[int, int] = field(default_factory=dict)
    statement: dict[int, int] = field(default_factory=dict)
    condition: dict[int, str] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)


@functools.lru_cache(maxsize=1024)  # of a lecture that is edited, most sections are known
def find_checking(
    text: str,
    path: str,
    first: int,
    last: int,
    asserts: frozenset[int],
    kept: frozenset[int],
    names: frozenset[str],
    shown: frozenset[int],
) -> Checking:
    """What only checks, in the function on these lines, whose `asserts` may leave the shown code.

    Of its `shown` lines those `kept` stay, and so does what gives the `names` a value, since something shows
    them. An assert stays where a block would be empty without it.
    """
    function = find_function(text, path, first, last)
    found = Checking()
    if function is None:
        return found
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for statement in function.body:
        found.statement |= dict.fromkeys(_span(statement), first_line(statement))
    asserted = [
        node for node in own_nodes(function) if isinstance(node, ast.Assert) and node.lineno in asserts
    ]
    folded: set[ast.stmt] = {node for node in asserted if kept.isdisjoint(_span(node))}
    _settle(function, folded, kept, names)
    readers = dict[str, list[int]]()  # the lines of the folded asserts that read a name, in order
    tests = sorted((node for node in folded if isinstance(node, ast.Assert)), key=lambda node: node.lineno)
    leaves = [node.lineno for node in tests]
    for test in tests:
        for name in _names(test):
            readers.setdefault(name, []).append(test.lineno)
    for statement in sorted(folded, key=first_line):
        own = statement.lineno if isinstance(statement, ast.Assert) else 0
        given = {*scopes.binds(statement)} if _gives_names(statement) else set()
        for number in (*_comments_above(lines, first_line(statement)), *_span(statement)):
            if own or number not in found.proof:
                reading = [line for name in given if (line := _first_from(readers.get(name, ()), number))]
                after = min(reading, default=_first_from(leaves, number)) or leaves[-1]
                found.proof[number] = own or after
    given_at = [
        (name, node in folded or node.lineno not in shown)
        for node in own_nodes(function) if isinstance(node, ast.Assign | ast.AnnAssign)
        for name in scopes.binds(node)
    ]  # fmt: skip
    out_of_sight = {name for name, unseen in given_at if unseen} - {
        name for name, unseen in given_at if not unseen
    }
    found.unseen = {node.lineno for node in asserted if out_of_sight & _names(node.test)}
    for block, words in _blocks(function.body, ()):
        for node in block:
            if isinstance(node, ast.Assert) and words:
                found.condition[node.lineno] = " and ".join(words)
    return found


def _settle(function: ast.FunctionDef, folded: set[ast.stmt], kept: Set[int], names: Set[str]) -> None:
    """Add what only feeds the `folded` ones; and take out what would leave a block without a statement."""
    reads = dict[str, list[ast.Name]]()
    for name in ast.walk(function):
        if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Store):
            reads.setdefault(name.id, []).append(name)

    def shown_readers(node: ast.stmt) -> tuple[int, int]:
        """How many places read what a statement gives a value, and how many of them stay."""
        inside = {id(part) for statement in folded for part in ast.walk(statement)}
        readers = [read for name in scopes.binds(node) for read in reads.get(name, ())]
        return len(readers), sum(id(read) not in inside for read in readers)

    every = [node for node in own_nodes(function) if isinstance(node, ast.stmt)]
    free = [node for node in every if kept.isdisjoint(_span(node))]
    feeding = [node for node in free if _gives_names(node) and names.isdisjoint(scopes.binds(node))]
    around = [node for node in free if isinstance(node, ast.If | ast.For | ast.With)]
    before = -1
    while before != len(folded):
        before = len(folded)
        for node in feeding:
            there, stay = shown_readers(node)
            if there and not stay:
                folded.add(node)
        folded.update(
            node for node in around if folded.issuperset([*node.body, *getattr(node, "orelse", ())])
        )
    whole = {id(part) for node in folded for part in ast.walk(node) if part is not node}
    while before:
        before = len(folded)
        for block, _words in _blocks(function.body, ()):
            if block is not function.body and id(block[0]) not in whole and folded.issuperset(block):
                folded.difference_update(block)
        # What a statement that stays reads must stay with it.
        folded -= {node for node in feeding if node in folded and shown_readers(node)[1]}
        before -= len(folded)


def _first_from(lines: Sequence[int], line: int) -> int:
    """The first of the ascending `lines` that is not before a line; 0 for none."""
    at = bisect.bisect_left(lines, line)
    return lines[at] if at < len(lines) else 0


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _gives_names(node: ast.AST) -> bool:
    """Whether it gives names a value, and nothing else: no element and no attribute of anything."""
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    parts = [
        part for target in targets for part in ([*target.elts] if isinstance(target, ast.Tuple) else [target])
    ]
    return bool(parts) and all(isinstance(part, ast.Name) for part in parts)


def _blocks(block: Body, words: tuple[str, ...]) -> Iterator[tuple[Body, tuple[str, ...]]]:
    """This block and those inside its statements, each with the conditions under which it runs."""
    yield block, words
    for node in block:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                yield from _blocks(body, (*words, ast.unparse(test)))
                yield from _blocks(orelse, (*words, f"not ({ast.unparse(test)})")) if orelse else ()
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case _:
                for name in ("body", "orelse", "finalbody"):
                    if inner := getattr(node, name, []):
                        yield from _blocks(inner, words)
                for handler in getattr(node, "handlers", []):
                    yield from _blocks(handler.body, words)


def _span(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _comments_above(lines: list[str], line: int) -> range:
    """The lines above that hold nothing but a remark: it speaks of what follows."""
    first = line
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return range(first, line)
