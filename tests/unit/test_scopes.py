"""What names mean, by Python's own rules: the interpreter's symbol tables are the independent oracle."""

from __future__ import annotations

import ast
import builtins
import random
import symtable
import sys
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from litbook.python import scopes

STDLIB = Path(sysconfig.get_path("stdlib"))
SEEN = 25  # files of the standard library that this test looks at, besides the trickiest
TRICKY = ("test/test_scope.py", "test/test_named_expressions.py", "test/test_patma.py", "test/test_grammar.py",
          "test/test_super.py", "test/test_type_params.py", "test/test_listcomps.py", "enum.py", "dataclasses.py",
          "typing.py", "asyncio/tasks.py")  # fmt: skip


def files() -> list[Path]:
    """The tricky files, and a sample of the others: always the same."""
    tops = (
        it for it in STDLIB.iterdir() if it.name not in ("site-packages", "lib2to3")
    )  # not to be walked at all
    every = sorted(it for top in tops for it in ([top] if top.suffix == ".py" else top.rglob("*.py")))
    some = random.Random(13).sample(every, min(SEEN, len(every)))
    return [it for it in dict.fromkeys([*(STDLIB / name for name in TRICKY), *some]) if it.exists()]


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from tables(child)


def written(tree: ast.Module) -> set[str]:
    """The names in a text. In a class Python's tables have `_C__x` for what is written `__x`."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {name for name in found if "__" not in name or name.endswith("__")}


def read_by_tables(table: symtable.SymbolTable) -> set[str]:
    """What the module's own code uses, and what its functions take from the module or the builtins."""
    mine = {it.get_name() for it in table.get_symbols() if it.is_referenced()}
    inner = (it for t in tables(table) for it in t.get_symbols() if it.is_global() and not it.is_parameter())
    return mine | {it.get_name() for it in inner if it.is_referenced() or it.is_assigned()}


def own_by_tables(table: symtable.SymbolTable) -> Iterator[tuple[str, int, set[str]]]:
    """The names of every function and class, with its name and line."""
    for it in tables(table):
        yield it.get_name(), it.get_lineno(), {s.get_name() for s in it.get_symbols() if s.is_local()}


def own_by_scopes(tree: ast.Module) -> Iterator[tuple[str, set[int], set[str]]]:
    """The same. A table's line is that of a decorator or of the `def`."""
    for node in ast.walk(tree):
        if isinstance(node, scopes.ScopeNode):
            lines = {node.lineno, *(it.lineno for it in getattr(node, "decorator_list", []))}
            yield getattr(node, "name", "lambda"), lines, set(scopes.local_names(node))


class Lazy(ast.NodeTransformer):
    """Comprehensions as what yields one by one: from 3.12 on the tables of a function hold names of the others."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.GeneratorExp(node.elt, node.generators), node)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        pair = ast.Tuple([node.key, node.value], ast.Load())
        return ast.copy_location(ast.GeneratorExp(pair, node.generators), node)


@pytest.mark.parametrize("file", files(), ids=lambda it: it.relative_to(STDLIB).as_posix())
def test_names_of_the_standard_library_mean_what_the_interpreter_says(file: Path) -> None:
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
        if sys.version_info >= (3, 12):
            text = ast.unparse(ast.fix_missing_locations(Lazy().visit(ast.parse(text))))
        tree, table = ast.parse(text), symtable.symtable(text, str(file), "exec")
    except SyntaxError:
        pytest.skip("needs Python of another version: a file that it cannot parse on purpose")
    known = written(tree)
    read = {name for statement in tree.body for name in scopes.reads(statement)}
    assert read & known == read_by_tables(table) & known
    ours, theirs = list(own_by_scopes(tree)), list(own_by_tables(table))
    for name, lines, names in ours:
        same = [them for other, at, them in theirs if other == name and at in lines]
        assert any(names & known == them & known for them in same), f"{name} on line {min(lines)}"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("x = y", "y"),
        ("x += y", "x y"),
        ("x.a[b] = c", "x b c"),
        ("[a for b in c if b]", "a c"),
        ("[b for b in b]", "b"),
        ("{k: v for k, v in z for k in k if w}", "z w"),
        ("lambda a, b=b: a + c", "b c"),
        ("def f(a=b, *, c: d = e) -> g: return a + c + h", "b d e g h"),
        ("def f():\n  global x\n  x = 1", "x"),
        ("def f():\n  x = 1\n  def g():\n    global x\n    return x", "x"),
        ("def f():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2", ""),
        ("class C(B, metaclass=M):\n  a = b\n  def f(self): return a", "B M b a"),
        ("class C:\n  a = [c for b in d]\n  c = d = 1", "c"),
        ("class C:\n  def f(self): return __class__, __x, __y__", "__y__"),
        ("def f():\n  if any((m := x) for x in z): return m", "any z"),
        ("try: a\nexcept B as e: e", "a B e"),
        ("def f(z):\n  match z:\n    case C(a=[b, *c], d={'x': 1, **e}): return b, c, e", "C"),
        ("async def f():\n  async with a as b, c: await b(d)", "a c d"),
        ("f'{a:{b}}'", "a b"),
        ("del x", ""),
        ("import a.b as c", ""),
    ],
)
def test_what_a_statement_reads_of_the_module(text: str, read: str) -> None:
    assert scopes.reads(ast.parse(text).body[0]) == set(read.split())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12: type parameters")
def test_type_parameters_are_known_to_annotations_and_bodies_and_not_to_decorators() -> None:
    text = "@T\ndef f[T: B](a: T = T) -> T:\n  return T, a"
    names = [it.lineno for it in scopes.outer_names(ast.parse(text).body[0]) if it.id == "T"]
    assert sorted(names) == [1, 2]  # the decorator, and the default
    assert scopes.reads(ast.parse("class C[T](B[T]):\n  x: T").body[0]) == {"B"}
    assert scopes.reads(ast.parse("type X[T] = list[T]").body[0]) == {"list"}
    assert scopes.binds(ast.parse("type X[T] = list[T]").body[0]) == ("X",)


@pytest.mark.parametrize(
    ("text", "values", "objects"),
    [
        ("x, (y, *z) = w = 1", "x y z w", ""),
        ("x: int = 1", "x", ""),
        ("x: int", "", ""),
        ("x += 1", "", "x"),
        ("t[k].a = x.b = y = 1", "y", "t x"),
        ("t[(k := 1)] += 1", "k", "t"),
        ("for i, t.n in z: x = 1", "i", "t"),
        ("with a as b, c as (d, e): x = 1", "b d e", ""),
        ("if (n := len(x)): y = 1", "n", ""),
        ("while all((n := i) for i in z): pass", "n", ""),
        ("try: x = 1\nexcept E as e: y = 2", "e", ""),
        ("match x:\n  case [a, *b] if (c := a): d = 1", "a b c", ""),
        ("def f(a=(b := 1)): c = 1", "f b", ""),
        ("class C((B := object)): c = 1", "C B", ""),
        ("import a.b, c as d", "a d", ""),
        ("from a import b, c as d, e", "b d e", ""),
        ("from a import *", "", ""),
        ("del x, t[0]", "x", "t"),
        ("[i for i in x]; lambda: (y := 1)", "", ""),
        ("x == 1", "", ""),
    ],
)
def test_what_the_header_of_a_statement_gives_a_value_and_what_it_changes(
    text: str, values: str, objects: str
) -> None:
    statement = ast.parse(text).body[0]
    assert scopes.binds(statement) == tuple(values.split())
    assert scopes.fills(statement) == set(objects.split())


def test_a_statement_of_the_module_sets_what_the_statements_inside_it_set() -> None:
    text = "if x:\n  a = 1\n  def f(): b = 1\nelse:\n  for c in x: import d"
    assert scopes.sets(ast.parse(text).body[0]) == {"a", "f", "c", "d"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("round(x, 2)", "x"),
        ("torch.cuda.now() - start", "start"),
        ("x.item()", ""),
        ("[f(y) for y in times]", "times"),
    ],
)
def test_what_is_only_called_can_be_left_out(text: str, read: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert scopes.reads(node, called=False) == set(read.split())
    assert scopes.reads(node) - set(dir(builtins)) >= set(read.split())
