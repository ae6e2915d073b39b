"""Source -> code object with probes. Knows no rendering, no torch, and no values.

How it works, with every piece of state. Each file of a lecture is compiled with *probes* (and as the author
wrote it where the compiler has warnings to give): calls that stand as statements of their own before and
after the author's statements. The author's expressions are never moved or evaluated twice; only the operands
of a claim are wrapped, each in a call that hands its argument back.

A probe must not be visible to the program. It therefore has no name: in the tree it is a call on a
`bytes` constant that no program holds, and after compilation that constant is replaced, in every code
object, by the bound method itself (`_with_probes`). So `globals()`, `locals()`, `dir()`, class
namespaces and custom metaclasses see nothing, `del` and shadowing cannot hurt, and a probe costs a
constant load and a call. Every probe carries the line of the statement it belongs to, so tracebacks keep
their line numbers.

    before every statement     step(statement), but where one of the next two has it as its `first`
    first in every function    enter(function, first, its arguments ...)
    before / in a loop         loop(statement), turn(statement, first)
    after a line of a function local(statement, "x", x)    for each name that it has touched
    after an inspected line    try: watch(n, expression)  except Exception: miss(n);  clear(n)
                               with untouched(value, method) around what calls in it are handed, and all of it
                               within `with kept_draws():` where it may draw random numbers
    around an @stepover line   pause() ... finally: resume(); in its blocks: resume() ... finally: pause()
    a section's `name()`       section(function, name)
    a claim                    verdict(step(statement), claim(n), not test)   with operand(i, value) inside
                         and test(value) around what the test comes to, pair(part, side, how, value)
                         around two things that it sets against each other
    one of more parts          step(statement); claim(n); if test: holds(n, caption) else: fails(n, caption)
    any other assert           assert test or false(statement), message(statement, message)
                               with side(statement, n, value) inside
    in both                    tolerance(statement, value, kind, part, n) around what may be between two
                               things, and apart(statement, part, n, place, value) around each of these;
                               zip(*in_step(statement, part, (values ...)))
    around any, around claims  try: ...  except BaseException: leave_claims(first, last); raise
    an axes annotation         try: axes(n, annotation, name)  except Exception: skip_annotation(n)
    a word's f-string          f"…\ufdd0{x}\ufdd1…": what the run puts there is marked, see `holes`
    an assert without a step   reach(statement); assert ...
    any other annotation       try: check_annotation(statement, annotation)  except Exception: pass

Functions in `Lecture.untouched` (compiled ones, and those marked `@stepover`) keep their own code, but for
the asserts of those that no compiler reads.
"""

from __future__ import annotations

import ast
import builtins
import copy
import secrets
import types
import warnings
from collections.abc import Callable, Iterable, Set
from functools import partial
from itertools import count, groupby
from typing import Any, TypeVar

from litbook.errors import UnusableLecture
from litbook.finding import Finding
from litbook.lecture import comparisons
from litbook.lecture.author_words import HOMES
from litbook.lecture.claims import claim_of_assert
from litbook.lecture.comparisons import Place, last_name
from litbook.lecture.model import SECTIONS, Lecture
from litbook.lecture.sections import words_in
from litbook.probe.asserts import ABSOLUTE, BY_DEFAULT, EXCLUSIVE, RELATIVE
from litbook.probe.holes import mark_holes, rewrite
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.nodes import (
    DefinitionNode,
    LoopNode,
    closure,
    dotted,
    own_nodes,
    parameters,
    pause_collection,
    unquote,
)
from litbook.snapshot import inspected

LocatedNode = ast.stmt | ast.expr | ast.ExceptHandler  # what stands somewhere in a text
New = TypeVar("New", bound=LocatedNode)


NAMES = (  # of the probes: the table above says what each is called with
    "step", "enter", "loop", "turn", "local", "watch", "clear", "miss", "pause", "resume", "section",
    "claim", "operand", "verdict", "holds", "fails", "axes", "skip_annotation", "check_annotation",
    "reach", "false", "message", "truth", "watch_elements", "side", "tolerance", "leave_claims", "test",
    "pair", "apart", "in_step",
)  # fmt: skip
TOGETHER = 64  # claims that share a `try`: each block takes much to compile, and so do many claims at once
CAUGHT = ("Exception", "BaseException")
_CLOSE = {"allclose": 2, "isclose": 2, "approx": 1}  # which arguments are tolerances, beginning with this
# What holds, or is zero, where it looks at nothing.
_LOOKING = (
    "all", "any", "sum", "max", "min", "norm", "allclose", "isdisjoint", "issubset", "issuperset",
    "startswith", "endswith",
)  # fmt: skip
# Python's own functions whose result is true, whatever they are asked.
_SAYS = ("str", "repr", "ascii", "format", "bin", "oct", "hex", "id", "hash", "dir", "globals")
# What is within 1e-8 of zero is close to it for these, where nobody says how close.
_TOLERANT = (
    "torch.allclose",
    "np.allclose",
    "numpy.allclose",
    "np.isclose",
    "numpy.isclose",
    "torch.isclose",
)
_ABSOLUTE = ("atol", "abs_tol", "abs")
_TOLERANCES = (*_ABSOLUTE, "rtol", "rel_tol", "rel")


@pause_collection()
def instrument_files(lecture: Lecture, probes: Any, sections: Iterable[int] = ()) -> list[types.CodeType]:
    """The module code of every file with `probes` compiled in, for `exec` in a fresh namespace.

    `probes` has a method of each of `NAMES`, and `turns`: by loop statement, an object whose `first` says
    whether the loop's local names are looked at.

    Of a run of some `sections` alone, all that these do not call keep their own code, as untouched ones do.

    Tracebacks name the file's place. Warnings that the compiler has about the author's text are given once;
    the probes add none. Raises `UnusableLecture`, for all files at once, where an expression to be shown may
    not stand where it is (`global x` further down, say), and where the probes nest deeper than the compiler
    goes.
    """
    nonce = secrets.token_hex(8)
    called = {name: getattr(probes, name) for name in NAMES}
    called |= {name: getattr(builtins, name) for name in CAUGHT}
    called |= {"untouched": inspected.untouched, "kept_draws": inspected.KeptDraws}
    loops = (number for node, number in lecture.statement_of.items() if isinstance(node, LoopNode))
    called |= {f"turns {loop}": probes.turns[loop] for loop in loops}
    keys = {name: f"litbook probe {name} {nonce}".encode() for name in called}
    probe_of: dict[object, object] = {keys[name]: value for name, value in called.items()}
    untouched = lecture.untouched
    if wanted := {*sections}:
        calls = [(row.function, row.target) for row in lecture.statements if row.target is not None]
        wanted |= {*closure(wanted, lambda one: [target for caller, target in calls if caller == one])}
        others = ((node, number) for node, number in lecture.function_of.items() if number not in wanted)
        untouched = untouched | {n for n, i in others if lecture.functions[i].kind in ("part", "section")}
    codes, problems = list[types.CodeType](), list[Finding]()
    for file in lecture.files:
        if file.warns:
            compile(file.tree, file.filename, "exec", dont_inherit=True, optimize=0)
        try:
            with warnings.catch_warnings():
                # Given already; and "'bytes' object is not callable": it will be.
                warnings.simplefilter("ignore")
                tree = _ProbeWriter(lecture, file, keys, untouched).module()
                code = compile(tree, file.filename, "exec", dont_inherit=True, optimize=0)
            codes.append(_with_probes(code, probe_of))
        except UnusableLecture as error:
            problems += error.findings
        except SyntaxError as error:  # the text alone compiles, so it is what is shown
            what = f"what is to be shown here cannot stand here: {error.msg}"
            problems.append(Finding("bad-expression", what, file.place(error.lineno or 1)))
        except RecursionError:
            what = f"{file.path} nests its statements too deep to be followed"
            problems.append(Finding("too-deep", what))
    if problems:
        raise UnusableLecture(problems)
    return codes


def _with_probes(code: types.CodeType, probe_of: dict[object, object]) -> types.CodeType:
    """`code` with the stand-in constants replaced, in nested functions and classes too."""
    constants: list[object] = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            constants.append(_with_probes(constant, probe_of))
        elif type(constant) is bytes:
            constants.append(probe_of.get(constant, constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))


def _place(place: LocatedNode, node: New) -> New:
    """The new node, placed where the author's is. As `ast.copy_location`, which takes six times as long."""
    node.lineno, node.col_offset = place.lineno, place.col_offset
    node.end_lineno, node.end_col_offset = place.end_lineno, place.end_col_offset
    return node


class _LazyTry(ast.Try):
    """A `try` whose body is written when the compiler reads it: 10^5 claims are never there at once."""

    def __init__(self, write: Callable[[], list[ast.stmt]], handler: ast.ExceptHandler) -> None:
        self.write = write  # Python 3.13's own `__init__` would set a body
        self.handlers, self.orelse, self.finalbody = [handler], [], []

    @property
    def body(self) -> list[ast.stmt]:  # type: ignore[override]
        return self.write()


class _ProbeWriter:
    """Writes the probed tree. It copies every statement that it changes: the lecture's tree stays."""

    def __init__(self, lecture: Lecture, file: File, keys: dict[str, bytes], untouched: Set[ast.AST]) -> None:
        self.lecture, self.file, self.untouched = lecture, file, untouched
        self.keys = keys
        self.parts = count()  # of tests, numbered
        self.folding = True  # loops of generators and coroutines are not folded: they interleave
        self.function: DefinitionNode | None = None  # the one around, if any
        self.loop: int | None = None  # of those that are folded the innermost one around, in the function
        ours = words_in(file.tree).items()
        self.words = {name: word for name, word in ours if HOMES["litbook"].get(word) and name in file.text}
        calls = (node for node in ast.walk(file.tree) if self.words and isinstance(node, ast.Call))
        self.word_lines = {node.lineno for node in calls if dotted(node.func) in self.words}

    def module(self) -> ast.Module:
        tree = copy.copy(self.file.tree)
        tree.body = self._function_body(self.file.tree, tree.body)
        return tree

    # -- probes

    def _constant(self, name: str, at: LocatedNode) -> ast.expr:
        return _place(at, ast.Constant(self.keys[name]))

    def _call(self, name: str, at: LocatedNode, *arguments: int | ast.expr) -> ast.expr:
        nodes = [a if isinstance(a, ast.expr) else _place(at, ast.Constant(a)) for a in arguments]
        return _place(at, ast.Call(self._constant(name, at), nodes, []))

    def _probe(self, name: str, at: LocatedNode, *arguments: int | ast.expr) -> ast.stmt:
        return _place(at, ast.Expr(self._call(name, at, *arguments)))

    def _guard(self, at: LocatedNode, probe: ast.stmt, otherwise: ast.stmt) -> ast.stmt:
        """The probe, or `otherwise` when evaluating the probe's arguments raises."""
        handler = _place(at, ast.ExceptHandler(self._constant("Exception", at), None, [otherwise]))
        return _place(at, ast.Try([probe], [handler], [], []))

    # -- blocks

    def _function_body(self, node: ast.Module | DefinitionNode, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a module, class or function: docstring and future imports stay first."""
        if not body:
            return []
        first = 0 if ast.get_docstring(node, clean=False) is None else 1
        while first < len(body) and _is_future_import(body[first]):
            first += 1
        at = body[min(first, len(body) - 1)]
        shown = [] if isinstance(node, ast.ClassDef) else self._watches(node, at)
        behind = list[ast.stmt]()  # the probes of what must come first: none can stand before it
        for statement in body[:first]:
            if _is_future_import(statement):
                behind.append(self._probe("step", statement, self.lecture.statement_of[statement]))
            behind += self._watches(statement, statement)
        block, begins = self._block(body[first:]), -1
        if first < len(body) and not behind and not shown and not self._is_claim(at):
            block, begins = block[1:], self.lecture.statement_of[at]  # one probe for both
        # Always with the arguments, as a jump around them would be seen by a tracer.
        taken = [] if isinstance(node, ast.Module | ast.ClassDef) else parameters(node)
        names = [_place(at, ast.Name(name, ast.Load())) for _, name in taken]
        enter = self._probe("enter", at, self.lecture.function_of[node], begins, *names)
        return [*body[:first], enter, *behind, *shown, *block]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements with their probes. Claims that follow one another share a `try`, which is long."""
        written = list[ast.stmt]()
        for claims, several in groupby(body, self._is_claim):
            run = [*several]
            for some in [run[i : i + TOGETHER] for i in range(0, len(run), TOGETHER)] if claims else [run]:
                write = partial(self._in_order, some)
                written += [self._catch_test_errors(some, write)] if claims else write()
        return written

    def _in_order(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [new for statement in body for new in self._statement(statement)]

    def _is_claim(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Assert) and statement in self.lecture.claim_of

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:
        number = self.lecture.statement_of[statement]
        step = [] if self._is_claim(statement) else [self._probe("step", statement, number)]
        written = self._probed_statement(statement, number)
        if statement in self.lecture.stepover and not isinstance(statement, DefinitionNode):
            # Without the recorder, but for the blocks of a compound statement: its header alone is a line.
            begun = list[ast.stmt]()
            if _has_block(statement):
                *begun, new = written  # a loop begins where something still hears of it
                for part in [new, *getattr(new, "handlers", ()), *getattr(new, "cases", ())]:
                    for name in ("body", "orelse", "finalbody"):
                        if block := getattr(part, name, None):
                            setattr(part, name, self._surround("resume", "pause", statement, block))
                written = [new]
            written = [*begun, *self._surround("pause", "resume", statement, written)]
        return [*step, *self._with_watches(statement, written)]

    def _surround(self, before: str, after: str, at: LocatedNode, body: list[ast.stmt]) -> list[ast.stmt]:
        around = ast.Try(body, [], [], [self._probe(after, at)])
        return [self._probe(before, at), _place(at, around)]

    def _with_watches(self, statement: ast.stmt, written: list[ast.stmt]) -> list[ast.stmt]:
        """A simple statement with what is inspected after it; before it, where it leaves the block."""
        if self.folding and isinstance(statement, LoopNode):  # what it has touched, if it ran once
            inside = [statement, *(node for node in own_nodes(statement) if isinstance(node, ast.stmt))]
            touched = partial(self.lecture.touched_names, function=self.function)
            names = dict.fromkeys(name for node in inside for name in touched(node))
            number, pass_ = self.lecture.statement_of[statement], _place(statement, ast.Pass())
            looks = [self._guard(statement, self._local(number, name, statement), pass_) for name in names]
            return [*written, *self._first_turns(statement, looks)]
        if _has_block(statement) and not isinstance(statement, ast.ClassDef):
            return written  # shown where its block begins
        watches = [*self._locals(statement), *self._watches(statement, statement)]
        leaves = isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)
        return [*watches, *written] if leaves else [*written, *watches]

    def _locals(self, statement: ast.stmt) -> list[ast.stmt]:
        """Probes for the local names that a statement has touched; in a loop, for its first iterations."""
        number = self.lecture.statement_of[statement]
        names = self.lecture.touched_names(statement, self.function)
        return self._first_turns(statement, [self._local(number, name, statement) for name in names])

    def _local(self, number: int, name: str, at: ast.stmt) -> ast.stmt:
        text, value = ast.Constant(name), ast.Name(name, ast.Load())
        return self._probe("local", at, number, _place(at, text), _place(at, value))

    def _first_turns(self, at: ast.stmt, probes: list[ast.stmt]) -> list[ast.stmt]:
        """The probes, for the first iterations of the loop that they stand in."""
        if self.loop is None or not probes:
            return probes
        turns = _place(at, ast.Constant(self.keys[f"turns {self.loop}"]))
        return [_place(at, ast.If(_place(at, ast.Attribute(turns, "first", ast.Load())), probes, []))]

    def _watches(self, anchor: ast.AST, at: LocatedNode) -> list[ast.stmt]:
        probes = list[ast.stmt]()
        for number in self.lecture.watches_of.get(anchor, ()):
            watch = self.lecture.watches[number]
            if watch.kind == "clear":
                probes.append(self._probe("clear", at, number))
                continue
            shown = inspected.Guarded(lambda value, method: self._untouched(value, method, at)).of(watch.node)
            for node in ast.walk(shown):  # it stands in a comment, and is part of no tree
                ast.copy_location(node, at)
            probe = self._probe("watch", at, number, shown)
            if inspected.draws(watch.node):
                kept = [ast.withitem(self._call("kept_draws", at), None)]
                probe = _place(at, ast.With(kept, [probe]))
            probes.append(self._guard(at, probe, self._probe("miss", at, number)))
        return probes

    def _untouched(self, value: ast.expr, method: str, at: LocatedNode) -> ast.expr:
        return self._call("untouched", at, value, _place(at, ast.Constant(method)))

    # -- statements

    def _probed_statement(self, statement: ast.stmt, number: int) -> list[ast.stmt]:
        claim = self.lecture.claim_of.get(statement)
        target = self.lecture.statements[number].target
        if isinstance(statement, ast.Assert):
            return self._claim(statement, claim) if claim is not None else [self._assert(statement)]
        if isinstance(statement, ast.AnnAssign) and claim is not None:
            value = _place(statement, ast.Name(dotted(statement.target), ast.Load()))
            probe = self._probe("axes", statement, claim, unquote(statement.annotation), value)
            return [
                self._marked(statement),
                self._guard(statement, probe, self._probe("skip_annotation", statement, claim)),
            ]
        if isinstance(statement, ast.AnnAssign):
            # One of a section may mean one of axes by another name; a call is not tried for it.
            kind = self.lecture.functions[self.lecture.statements[number].function].kind
            empty = isinstance(statement.value, ast.Constant) and statement.value.value is None
            meant = unquote(statement.annotation)
            plain = dotted(meant) in vars(builtins) or any(isinstance(n, ast.Call) for n in ast.walk(meant))
            if kind not in SECTIONS or empty or plain:
                return [self._marked(statement)]
            promise = self._probe("check_annotation", statement, number, meant)
            return [self._marked(statement), self._guard(statement, promise, _place(statement, ast.Pass()))]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and target is not None:
            return [self._probe("section", statement, target, statement.value.func)]
        if isinstance(statement, DefinitionNode):
            return [self._definition(statement)]
        if isinstance(statement, LoopNode):
            return self._probed_loop(statement, number)
        return [self._compound(statement)]

    def _definition(self, node: DefinitionNode) -> ast.stmt:
        if node in self.untouched:
            asserting: ast.stmt = self._keep_asserts(node)
            return asserting
        new = copy.copy(node)
        before = self.folding, self.function, self.loop
        # Whether it may stop half-way and go on later, as a generator or a coroutine does.
        suspends = ast.Yield | ast.YieldFrom | ast.Await | ast.AsyncFor | ast.AsyncWith
        text = self.file.text_of(node)
        spelled = any(word in text for word in ("yield", "await", "async"))
        self.folding = not isinstance(node, ast.AsyncFunctionDef) and not (
            spelled and any(isinstance(inner, suspends) for inner in own_nodes(node))
        )
        self.function, self.loop = node, None
        new.body = self._function_body(node, node.body)
        self.folding, self.function, self.loop = before
        return new

    def _probed_loop(self, node: LoopNode, number: int) -> list[ast.stmt]:
        new: Any = copy.copy(self._marked(node, "test", "iter"))
        around = self.loop
        self.loop = number if self.folding else None
        watches, body = [*self._locals(node), *self._watches(node, node)], self._block(node.body)
        self.loop = around
        new.orelse = self._block(node.orelse)
        if not self.folding:
            new.body = [*watches, *body]
            return [new]
        first = node.body[0]
        if watches or self._is_claim(first):  # nothing of ours stands first, or what comes in between
            new.body = [self._probe("turn", node, number, -1), *watches, *body]
        else:  # one probe for both
            new.body = [self._probe("turn", first, number, self.lecture.statement_of[first]), *body[1:]]
        return [self._probe("loop", node, number), new]

    def _compound(self, node: ast.stmt) -> ast.stmt:
        """`if`, `with`, `try`, `match`: the same statement around probed blocks. Others: themselves."""
        if not _has_block(node):
            return self._marked(node)
        new: Any = copy.copy(self._marked(node, "test", "items", "subject"))
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(node, name, None):
                setattr(new, name, self._block(block))
        if getattr(new, "body", None):
            new.body = [*self._locals(node), *self._watches(node, node), *new.body]
        for name in ("handlers", "cases"):
            if parts := [*map(copy.copy, getattr(node, name, ()))]:
                setattr(new, name, parts)
                for part, old in zip(parts, getattr(node, name), strict=True):
                    above = self._watches(node, node) if name == "cases" else []  # it has no block of its own
                    part.body = [*above, *self._watches(old, old.body[0]), *self._block(old.body)]
        return new  # type: ignore[no-any-return]

    # -- prose

    def _marked(self, node: ast.stmt, *fields: str) -> ast.stmt:
        """The statement, or a copy in which holes of the words' f-strings mark what they compute.

        Of a statement that has blocks `fields` names what stands before these.
        """
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if not self.words or (not fields and self.word_lines.isdisjoint(lines)):
            return node
        local = scopes.local_names(self.function) if self.function else frozenset[str]()

        def change(part: ast.expr) -> ast.expr | None:
            is_word = isinstance(part, ast.Call) and self._is_word(part, local)
            return mark_holes(part, self.words) if is_word else None  # type: ignore[arg-type]

        if not fields:
            return rewrite(node, change)
        new: Any = node
        for name in fields:
            parts = as_list(getattr(node, name, None))
            marked = [change(part) or rewrite(part, change) for part in parts]
            if any(one is not before for one, before in zip(marked, parts, strict=True)):
                new = copy.copy(node) if new is node else new
                setattr(new, name, marked if isinstance(getattr(node, name), list) else marked[0])
        return new  # type: ignore[no-any-return]

    def _is_word(self, node: ast.AST, local: frozenset[str]) -> bool:
        """Whether a node calls one of litbook's words, and not what else has its name here."""
        name = dotted(node.func) if isinstance(node, ast.Call) else ""
        return name in self.words and name.partition(".")[0] not in local

    # -- claims

    def _claim(self, node: ast.Assert, number: int) -> list[ast.stmt]:
        """A claim in one call that has nowhere to jump, so it is short; else as an `if`."""
        statement = self.lecture.statement_of[node]
        step = self._call("step", node, statement)
        claim = self._call("claim", node, number)
        test = self._test(node, self.lecture.claims[number].operands, number)
        caption = None if isinstance(node.msg, ast.Constant) else node.msg
        asked = node.test  # is its truth asked once also where it is not what an `if` tests?
        while isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
            asked = asked.operand
        chained = isinstance(asked, ast.Compare) and len(asked.ops) > 1
        if caption is None and not isinstance(asked, ast.BoolOp) and not chained:
            failed = _place(
                node.test, ast.UnaryOp(ast.Not(), test)
            )  # where a truth that raises is looked for
            return [_place(node, ast.Expr(self._call("verdict", node, step, claim, failed)))]
        holds, fails = (self._probe(name, node, number) for name in ("holds", "fails"))
        if caption is not None:  # whose computing may raise
            holds = self._guard(node, self._probe("holds", node, number, caption), holds)
            fails = self._guard(node, self._probe("fails", node, number, caption), fails)
        judged = _place(node, ast.If(test, [holds], [fails]))
        return [_place(node, ast.Expr(step)), _place(node, ast.Expr(claim)), judged]

    def _assert(self, node: ast.Assert) -> ast.stmt:
        """It raises as in plain Python. Only one that is false runs anything of ours."""
        number, message = self.lecture.statement_of[node], node.msg
        quiet = node in self.lecture.zeros or node in self.lecture.fails
        asked = self._test(node, () if quiet else claim_of_assert(self.file.text, node).operands, None)
        test = _place(node.test, ast.BoolOp(ast.Or(), [asked, self._call("false", node.test, number)]))
        if message is not None and not isinstance(message, ast.Constant):
            message = self._call("message", message, number, message)
        return self._catch_test_errors([node], lambda: [_place(node, ast.Assert(test, message))])

    def _catch_test_errors(self, run: list[ast.stmt], write: Callable[[], list[ast.stmt]]) -> ast.stmt:
        """The asserts `run` as `write` writes them, and what a test raises is heard of on its way."""
        node, numbers = run[0], self.lecture.statement_of
        probe = self._probe("leave_claims", node, numbers[node], numbers[run[-1]])
        caught = self._constant("BaseException", node)  # also what closes a generator, or cancels a task
        handler = ast.ExceptHandler(caught, None, [probe, _place(node, ast.Raise())])
        return _place(node, _LazyTry(write, _place(node, handler)))

    def _keep_asserts(self, node: Any) -> Any:
        """A definition without probes, but for those of its asserts; none in what a compiler reads."""
        if node in self.lecture.compiled:
            return node
        new = copy.copy(node)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(block := getattr(node, name, None), list):
                sworn = list[ast.AST]()
                for inner in block:
                    if isinstance(inner, ast.Assert):  # no step of its own says that it is reached
                        began = self._probe("reach", inner, self.lecture.statement_of[inner])
                        sworn += [began, self._assert(inner)]
                    else:
                        sworn.append(self._keep_asserts(inner))
                setattr(new, name, sworn)
        return new

    def _test(self, node: ast.Assert, operands: Iterable[ast.expr], claim: int | None) -> ast.expr:
        """The test of an assert, in which its operands hand their values over, and so do all tolerances.

        An infinite one holds of everything; and so may what `all` and `any` look at, if that is nothing.
        """
        statement, test, copies = self.lecture.statement_of[node], node.test, dict[int, Any]()
        # Calls that may hold of everything: they have a tolerance, or look at many things.
        calls = list[ast.Call]()
        for call in (node for node in ast.walk(test) if isinstance(node, ast.Call)):
            tolerates = any(keyword.arg in _TOLERANCES for keyword in call.keywords)
            calls += [call] if tolerates or last_name(call.func) in (*_LOOKING, *_CLOSE) else []
        pairs = [*comparisons.pairs(test)] if claim is not None else []
        bounds, zips = [*comparisons.bounds(test)], [*comparisons.zips(test)]
        if calls or pairs or bounds or zips:
            test = copy.deepcopy(test, copies)
        for call in calls:
            self._watch_call(copies[id(call)], statement)
        for how, places in pairs:  # what is said to be equal or not, or is taken from one another
            self._watch_pair(how, [(copies[id(owner)], field, at) for owner, field, at in places])
        for comparison, at, difference in bounds:
            self._watch_bound(copies[id(comparison)], at, copies[id(difference)], statement)
        for call in zips:
            self._watch_lengths(copies[id(call)], statement)
        numbers = {copies.get(id(operand), operand): i for i, operand in enumerate(operands)}
        return self._watch_operands(test, statement, numbers, claim)

    def _watch_call(self, call: ast.Call, statement: int) -> None:
        """What a call looks at hands itself over, and its tolerances do, with what they are tolerances of."""
        named, called = last_name(call.func), dotted(call.func)
        if named in _LOOKING:
            by = ast.unparse(call.func)
            call.args[:1] = (self._watch_elements(value, statement, by) for value in call.args[:1])
            if isinstance(call.func, ast.Attribute):
                call.func.value = self._watch_elements(call.func.value, statement, f".{named}")
        first, part = _CLOSE.get(named, len(call.args)), next(self.parts)
        absolute = len(call.args) > first + 1 or any(keyword.arg in _ABSOLUTE for keyword in call.keywords)
        starred = any(isinstance(one, ast.Starred) for one in call.args)
        sides = len(call.args[:first]) if named in _CLOSE and absolute and not starred else 0
        if not absolute and not starred:
            self._watch_default(call, called, statement, part)
        call.args[:sides] = (
            self._call("apart", value, statement, part, sides, place, value)
            for place, value in enumerate(call.args[:sides])
        )
        call.args[first : first + 2] = (  # first the relative one
            self._watch_tolerance(value, statement, ABSOLUTE if place else RELATIVE, part, sides)
            for place, value in enumerate(call.args[first : first + 2])
        )
        for keyword in call.keywords:
            if keyword.arg in _TOLERANCES:
                kind = ABSOLUTE if keyword.arg in _ABSOLUTE else RELATIVE
                keyword.value = self._watch_tolerance(keyword.value, statement, kind, part, sides)

    def _watch_default(self, call: ast.Call, called: str, statement: int, part: int) -> None:
        """Of a call with no absolute tolerance of its own, both things that it calls close."""
        if called in _TOLERANT and len(call.args) > 1:
            call.args[:2] = (
                self._call("apart", value, statement, part, BY_DEFAULT, place, value)
                for place, value in enumerate(call.args[:2])
            )
        elif (
            last_name(call.func) == "allclose"
            and isinstance(call.func, ast.Attribute)
            and len(call.args) == 1
        ):
            call.func.value = self._call("apart", call, statement, part, BY_DEFAULT, 0, call.func.value)
            call.args[0] = self._call("apart", call, statement, part, BY_DEFAULT, 1, call.args[0])

    def _watch_pair(self, how: int, places: list[Place]) -> None:
        part = next(self.parts)
        for side, (owner, field, at) in enumerate(places):
            if at is None:
                value = getattr(owner, field)
                setattr(owner, field, self._call("pair", value, part, side, how, value))
            else:
                several = getattr(owner, field)
                several[at] = self._call("pair", several[at], part, side, how, several[at])

    def _watch_bound(self, comparison: ast.Compare, at: int, apart: ast.BinOp, statement: int) -> None:
        """Of `abs(a - b) <= c` all three hand themselves over."""
        part = next(self.parts)
        apart.left = self._call("apart", apart, statement, part, 2, 0, apart.left)
        apart.right = self._call("apart", apart, statement, part, 2, 1, apart.right)
        kind = EXCLUSIVE if isinstance(comparison.ops[0], ast.Lt | ast.Gt) else ABSOLUTE
        bound = [comparison.left, *comparison.comparators][at]
        watched = self._watch_tolerance(bound, statement, kind, part, 2)
        if at:
            comparison.comparators = [watched]
        else:
            comparison.left = watched

    def _watch_lengths(self, call: ast.Call, statement: int) -> None:
        first = int(last_name(call.func) == "map")  # behind its function
        together = _place(call, ast.Tuple(call.args[first:], ast.Load()))
        looked_at = self._call("in_step", call, statement, next(self.parts), together)
        call.args[first:] = [_place(call, ast.Starred(looked_at, ast.Load()))]

    def _watch_elements(self, node: ast.expr, statement: int, named: str) -> ast.expr:
        if isinstance(node, ast.Starred):  # of several arguments none is known
            return node
        name = _place(node, ast.Constant(named))
        return self._call("watch_elements", node, statement, next(self.parts), node, name)

    def _watch_tolerance(self, node: ast.expr, statement: int, kind: int, part: int, sides: int) -> ast.expr:
        if isinstance(node, ast.Starred):
            return node
        return self._call("tolerance", node, statement, node, kind, part, sides)

    def _watch_operands(
        self,
        node: ast.expr,
        statement: int,
        operands: dict[ast.expr, int],
        claim: int | None,
        decides: bool = True,
        comes: bool = True,
    ) -> ast.expr:
        """A copy of the test in which every operand hands its value over, then on; of a `claim`, or of none.

        So does what `decides`, as its truth is that of the test: of some values that is always the same. And
        of a claim so does what the test `comes` to: that has to be a truth.
        """
        tested = partial(self._watch_operands, statement=statement, operands=operands, claim=claim)
        new: Any = copy.copy(node)
        if node in operands and claim is None:
            seen = not isinstance(node, ast.Constant)
            new = self._call("side", node, statement, operands[node], node) if seen else node
        elif node in operands:
            new = self._call("operand", node, operands[node], node)
        else:
            match node:
                case ast.Compare():
                    new.left = tested(node.left, decides=False, comes=False)
                    new.comparators = [tested(side, decides=False, comes=False) for side in node.comparators]
                case ast.BoolOp():
                    ends = [*[isinstance(node.op, ast.Or)] * (len(node.values) - 1), True]
                    new.values = [
                        tested(value, decides=decides, comes=comes and end)
                        for value, end in zip(node.values, ends, strict=True)
                    ]
                case ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), inner)):
                    new.operand = copy.copy(node.operand)
                    new.operand.operand = tested(inner, decides=decides, comes=False)
                case ast.UnaryOp():
                    new.operand = tested(node.operand, decides=False, comes=False)
                case ast.Call():
                    asked = isinstance(node.func, ast.Name) and node.func.id == "bool"
                    new.args = [tested(one, decides=decides and asked, comes=False) for one in node.args]
                case ast.Starred():
                    new.value = tested(node.value, decides=False, comes=False)
        denied = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1  # its truth would be asked twice
        settled = denied or chained or isinstance(node, ast.Constant | ast.BoolOp)
        if claim is not None and comes and not settled:
            new = self._call("test", node, new)
        plain = isinstance(node, ast.Compare | ast.Constant)
        if not decides or plain or (isinstance(node, ast.BoolOp | ast.UnaryOp) and node not in operands):
            return new  # type: ignore[no-any-return]
        name = _place(node, ast.Constant(self._comes_from(node)))
        return self._call("truth", node, statement, next(self.parts), new, name)

    def _comes_from(self, node: ast.expr) -> str:
        """The name of what decides an assert; of a call of the lecture's that of what it surely returns."""
        match node:
            case ast.NamedExpr(value=value):
                return self._comes_from(value)
            case ast.JoinedStr() | ast.BinOp(ast.Constant(str()), ast.Mod()):
                return "format(…)"
            case ast.Call(ast.Attribute(ast.Constant(str()), "format")):
                return "format(…)"
            case ast.Call(ast.Name(name)):
                local = scopes.local_names(self.function) if self.function else frozenset[str]()
                if name in _SAYS and name not in local | scopes.sets(self.file.tree):
                    return f"{name}(…)"
                meant = self.lecture.names.meaning(self.file.number, name)
                if isinstance(meant, ast.FunctionDef) and name not in local:
                    return _returned_name(meant) or last_name(node)
        return last_name(node)


def _returned_name(function: ast.FunctionDef) -> str:
    """The name of what each call of a function returns, `D()` of `return D(x)`; "" where that may differ."""
    ends = [inner.value for inner in own_nodes(function) if isinstance(inner, ast.Return)]
    names = {"" if value is None else last_name(value) for value in ends}
    sure = len(names) == 1 and isinstance(function.body[-1], ast.Return) and not function.decorator_list
    return names.pop() if sure else ""


def as_list(value: object) -> list[Any]:
    """The nodes of a field, of which a tree has one, several, or none."""
    return [*value] if isinstance(value, list) else [] if value is None else [value]


def _has_block(node: ast.AST) -> bool:
    return any(getattr(node, name, None) for name in ("body", "cases")) and isinstance(node, ast.stmt)


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
