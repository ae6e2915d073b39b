"""A probed program behaves exactly as it was written: same values, output, exceptions, lines, lives of objects."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import textwrap
import traceback
import types
import warnings
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.running import examples

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.probe import instrument
from litbook.probe.events import FirstIterations
from litbook.probe.instrument import NAMES
from litbook.probe.recorder import Recorder
from litbook.python.nodes import truth_of

FILE = "program.py"


# Which of its arguments a probe hands back.
HANDED_BACK = {
    "claim": 0,
    "operand": 1,
    "message": 1,
    "truth": 2,
    "watch_elements": 2,
    "tolerance": 1,
    "side": 2,
    "test": 0,
    "pair": 3,
}


class Notes:
    """Probes that write down every call, and do what instrumented code relies on."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.turns = defaultdict[int, FirstIterations](FirstIterations)

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        def probe(*arguments: object) -> object:
            if (
                name == "verdict"
            ):  # as the ones whose caption is computed: what came of it, and of which claim
                self.calls.append(("fails" if arguments[2] else "holds", arguments[1]))
            elif name in ("enter", "turn"):  # with the step of the first statement, where it follows at once
                number, first, *values = arguments
                self.calls += [(name, number, *values), *([("step", first)] if first != -1 else [])]
            else:
                self.calls.append((name, *arguments))
            if name == "section":
                arguments[1]()  # type: ignore[operator]
            return arguments[HANDED_BACK[name]] if name in HANDED_BACK else None

        return probe

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] in names]


class Silent:
    """Probes that count their calls and keep nothing, so that they keep nothing alive."""

    count = 0

    def __init__(self) -> None:
        self.turns = defaultdict[int, FirstIterations](FirstIterations)

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        def probe(*arguments: Any) -> Any:
            self.count += 1
            if name == "section":
                arguments[1]()
            return arguments[HANDED_BACK[name]] if name in HANDED_BACK else None

        return probe


def code_of(text: str, probes: str, lecture: bool = False) -> tuple[types.CodeType, Any]:
    if probes == "none":
        return compile(text, FILE, "exec", dont_inherit=True), None
    found = parse.parse(text, FILE, lecture=lecture)
    kept: Any = Recorder(found) if probes == "recorder" else Silent()
    return instrument.instrument_files(found, kept)[0], kept


def outcome(text: str, probes: str, lecture: bool = False) -> dict[str, Any]:
    """What can be seen of a run from outside: namespace, output and exception."""
    code, kept = code_of(text, probes, lecture)
    module = types.ModuleType("program")
    sys.modules["program"] = module
    output, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            exec(code, module.__dict__)
    except BaseException as raised:  # compared, whatever it is
        error = described(raised)
    finally:
        del sys.modules["program"]
    if probes == "silent":
        assert kept.count > 1, "no probe ran"
    elif probes == "recorder":
        assert kept.log.reached, "no probe ran"
    return {"namespace": visible(module.__dict__), "output": output.getvalue(), "error": error}


OWN = ("__builtins__", "__warningregistry__")  # the second counts the filters of the whole process


def visible(namespace: dict[str, Any]) -> list[tuple[str, str]]:
    """Names in their order, with values; addresses are not compared."""
    return [
        (name, re.sub(r"0x[0-9a-f]+", "0x", repr(value)))
        for name, value in namespace.items()
        if name not in OWN
    ]


def described(error: BaseException | None, depth: int = 0) -> Any:
    """An exception with its text, the program's own traceback positions, and what it came from."""
    if error is None or depth > 5:
        return None
    places = [
        (frame.name, frame.lineno, getattr(frame, "end_lineno", None), getattr(frame, "colno", None), getattr(frame, "end_colno", None))
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == FILE
    ]  # fmt: skip
    return {
        "type": type(error).__name__,
        "text": str(error),
        "places": places,
        "cause": described(error.__cause__, depth + 1),
        "context": described(error.__context__, depth + 1),
        "suppressed": error.__suppress_context__,
        "inner": [described(e, depth + 1) for e in getattr(error, "exceptions", ())],
    }


PROGRAMS: dict[str, str] = {}
NEEDS: dict[str, tuple[int, int]] = {}


def program(name: str, text: str, needs: tuple[int, int] = (3, 11)) -> None:
    PROGRAMS[name] = textwrap.dedent(text).lstrip("\n")
    NEEDS[name] = needs


program(
    "assignments",
    """
    a = b = [1, 2]
    (c, *d), e = [1, 2, 3], 4
    a += [3]; b[0] += 10
    x: int = 5
    y: "undefined name"
    z: list[int]
    class o: pass
    o.p: int = 6
    f = (g := 7) + 1
    a[1:], o.q = [8], 9
    print(a, b, c, d, e, x, f, g, o.p, o.q, __annotations__ if "__annotations__" in globals() else "lazy")
    del a[0], o.q, b
    print(hasattr(o, "q"), "b" in globals())
""",
)
program(
    "if, elif, else, pass and ellipsis",
    """
    for n in range(4):
        if n == 0: print("zero")
        elif n == 1:
            print("one")
        elif n == 2: pass
        else:
            ...
            print("more")
    if (n and
        n > 2): print("big")
""",
)
program(
    "loops with else, break and continue",
    """
    for i in range(5):
        if i == 1: continue
        if i == 4: break
        print(i)
    else:
        print("never")
    while i:
        i -= 1
    else:
        print("done", i)
    for a, (b, *c) in [(1, (2, 3, 4))]: print(a, b, c)
    for [x] in [[1]]:
        for y in range(2):
            try:
                if y: break
                continue
            finally:
                print("finally", x, y)
    for o.attr in []: pass
    def late():
        for i in range(3):
            for j in range(3):
                if j == 1: return i, j
    print(late())
""",
)
program(
    "try in every form",
    """
    import sys
    def f(what):
        try:
            print("try", what)
            if what: raise what
        except ValueError as e:
            print("value", e, sys.exc_info()[1] is e)
            return "returned"
        except (KeyError, IndexError):
            print(sys.exc_info()[0].__name__)
            raise
        except: print("bare")
        else:
            print("else")
        finally:
            print("finally", sys.exc_info()[0])
        print("e" in locals())
        return "end"
    for what in (None, ValueError("v"), KeyError("k"), OSError("o")):
        try: print(f(what))
        except KeyError as error: print("caught", error)
        print(sys.exc_info())
    def overridden():
        try: return "lost"
        finally:
            return "kept"
    print(overridden())
    def swallowed():
        for i in range(3):
            try: raise ValueError
            finally:
                if i < 2: continue
                break
        return i
    print(swallowed())
""",
)
program(
    "an exception inside except, finally and else has its context",
    """
    def chain():
        try:
            try:
                1 / 0
            except ZeroDivisionError:
                [][1]
            finally:
                print("on the way")
        except IndexError as error:
            raise KeyError("k") from error
    def suppressed():
        try: chain()
        except KeyError: raise ValueError from None
    try:
        suppressed()
    except ValueError as error:
        print(repr(error.__context__), error.__cause__, error.__context__.__cause__)
    def other():
        try: pass
        finally: chain()
    other()
""",
)
program(
    "except*",
    """
    def f(*errors):
        try:
            raise ExceptionGroup("eg", errors)
        except* ValueError as group:
            print("values", group.exceptions)
        except* (KeyError, OSError) as group:
            print("others", group.exceptions)
            if len(group.exceptions) > 1: raise RuntimeError("new")
        else: print("else")
        finally: print("finally")
    f(ValueError(1), KeyError(2))
    try: f(ValueError(1), KeyError(2), OSError(3), TypeError(4))
    except* RuntimeError as group: print("r", group)
    except* TypeError as group: print("t", group)
    f(TypeError("left over"))
""",
)
program(
    "with",
    """
    class C:
        def __init__(self, name, swallow=False): self.name, self.swallow = name, swallow
        def __enter__(self): print("enter", self.name); return self
        def __exit__(self, kind, error, tb):
            print("exit", self.name, kind and kind.__name__, tb and tb.tb_lineno)
            return self.swallow
    with C("a") as a, C("b") as (b): print(a.name, b.name)
    with (
        C("c", True),
        C("d"),
    ):
        1 / 0
    def leave():
        with C("e"):
            for i in range(3):
                with C(i):
                    if i == 1: return "left"
    print(leave())
    from contextlib import contextmanager, suppress
    @contextmanager
    def m():
        try: yield "m"
        except ValueError: print("seen")
        finally: print("left")
    with m() as x: raise ValueError
    with suppress(ZeroDivisionError): 1 // 0
    with C("f"):
        None.attribute
""",
)
program(
    "an exit that raises",
    """
    class C:
        def __enter__(self): return self
        def __exit__(self, *a):
            raise KeyError("exit")
    with C() as c:
        raise ValueError("body")
""",
)
program(
    "match",
    """
    class P:
        __match_args__ = ("x", "y")
        def __init__(self, x, y): self.x, self.y = x, y
    def f(v):
        match v:
            case None: return "none"
            case True | False as b: return ("bool", b)
            case int() | float() if v > 5: return "big"
            case 0: return "zero"
            case "a" | "b": return "text"
            case [x, *rest, y] if x == y: return ("ends", rest)
            case [x]: return ("one", x)
            case (1, 2 | 3): return "pair"
            case {"k": [a, b], **others}: return (a, b, others)
            case P(x=0, y=y): return ("P0", y)
            case P(a, P(b, c)): return (a, b, c)
            case str() as s: return s
            case _: return "other"
    for v in (None, True, 7, 0, "b", [1, 2, 1], [3], (1, 3), {"k": [1, 2], "l": 3}, P(0, 1), P(1, P(2, 3)), "zz", {1}):
        print(f(v))
    match P(1, 2):
        case P(q):
            pass
    match 3:
        case 4: pass
    print(q)
    match = case = 5
    print(match, case)
    match (
        match,
        case):
        case (
            5, 5
        ): print("soft")
""",
)
program(
    "functions",
    """
    def deco(n):
        print("deco", n)
        def inner(f):
            print("apply", n, f.__name__)
            return f
        return inner
    @deco(1)
    @deco(
        2)
    def f(a, /, b: int = 1, *args, c, d=[], **kw) -> str:
        "doc of f"
        return a, b, args, c, d, kw
    print(f(1, c=2), f(1, 2, 3, c=4, e=5), f.__doc__, f.__annotations__, f.__defaults__, f.__kwdefaults__)
    print(f.__qualname__, f.__code__.co_firstlineno, f.__code__.co_varnames, f.__code__.co_argcount, f.__code__.co_name)
    def g():
        "only a docstring"
    def h(): pass
    def empty():
        # comment
        return
    lam = lambda x, y=f.__name__: (x, y)
    print(g(), g.__doc__, h(), h.__doc__, empty(), lam(1), lam.__code__.co_firstlineno)
    def outer():
        n = 0
        def count():
            nonlocal n
            n += 1
            return n
        def peek(): return n
        return count, peek
    count, peek = outer()
    print(count(), count(), peek(), count.__closure__[0].cell_contents, count.__code__.co_freevars)
    def glob():
        global made
        made = 1
        def not_global():
            made = 2
            return made
        return not_global()
    print(glob(), made)
    def unbound():
        print(late)
        late = 1
    import inspect
    print(inspect.signature(f), inspect.signature(lam))
    def fact(n): return 1 if n < 2 else n * fact(n - 1)
    print(fact(20))
    unbound()
""",
)
program(
    "namespaces show no probe",
    """
    import sys
    def f(a):
        b = 2
        first = dict(locals())
        c = lambda: a
        print(first, sorted(locals()), dir(), sorted(vars()))
        print(sys._getframe().f_lineno, sorted(sys._getframe().f_locals), f.__code__.co_names)
        del b
        print(sorted(locals()))
    f(1)
    class A:
        x = 1
        print(dict(locals()), dir(), vars())
        for y in range(2): z = y
        def m(self): return __class__, dir(self)[-4:]
    print([n for n in vars(A) if not n.startswith("__")], A().m())
    print([n for n in dir()], list(globals()), sorted(vars()) == sorted(locals()))
    exec("made_by_exec = 3")
    print(eval("made_by_exec"), [n for n in globals() if n.startswith("made")])
""",
)
program(
    "a metaclass sees every lookup and binding of the class body",
    """
    log = []
    class Space(dict):
        def __getitem__(self, key):
            log.append(("get", key))
            return super().__getitem__(key)
        def __setitem__(self, key, value):
            log.append(("set", key))
            super().__setitem__(key, value)
        def __delitem__(self, key):
            log.append(("del", key))
            super().__delitem__(key)
    class Meta(type):
        @classmethod
        def __prepare__(cls, name, bases, **kw):
            return Space()
        def __new__(cls, name, bases, space, **kw):
            log.append((name, list(space), kw))
            return super().__new__(cls, name, bases, space)
        def __init__(self, *a, **k): pass
    class A(metaclass=Meta, flag=True):
        "doc"
        x = 1
        y: int = x
        if x:
            for z in range(2): w = z
        try: missing
        except NameError: pass
        with open("/dev/null") as f: pass
        match x:
            case 1: v = len("ab")
        class Inner: pass
        def m(self): return super().__repr__
        del w
        import os
        [x for x in range(2)]
        print(sorted(locals()) == sorted(dict(locals())))
    for entry in log: print(entry)
    print(A.__doc__, A.__annotations__)
""",
)
program(
    "classes",
    """
    class D:
        def __set_name__(self, owner, name): print("set_name", owner.__name__, name)
    class Base:
        def __init_subclass__(cls, **kw): print("sub", cls.__name__, kw)
        def who(self): return "base"
    class A(Base, k=1):
        '''doc
        of A'''
        d = D()
        __slots__ = ("s",)
        __private = 5
        def who(self): return super().who() + "A" + str(self.__private)
        @property
        def p(self):
            return 1
        @staticmethod
        def st(): return __class__.__name__
        @classmethod
        def cm(cls): return cls.__qualname__
        class B:
            "inner"
            def f(self): return B if False else __class__
    a = A()
    print(a.who(), a.p, A.st(), A.cm(), A.B().f(), A.__doc__, A.B.__doc__, A.__module__, A.__dict__.keys())
    import enum, dataclasses, typing
    class E(enum.Enum):
        ONE = 1
        TWO = enum.auto()
        def m(self): return self.name
    @dataclasses.dataclass(order=True)
    class DC:
        x: int
        y: list = dataclasses.field(default_factory=list)
    class NT(typing.NamedTuple):
        "nt"
        a: int
        b: str = "b"
    class TD(typing.TypedDict, total=False):
        k: int
    print(list(E), E.TWO.m(), DC(1), DC(1) < DC(2), NT(1), NT._fields, TD.__annotations__)
    x = "global"
    def scope():
        x = "function"
        class C:
            y = x
            x = "class"
            z = [x for _ in range(1)]
        return C.y if hasattr(C, "y") else None, C.x, C.z
    print(scope())
""",
)
program(
    "generators",
    """
    def g(n):
        "doc"
        try:
            got = yield n
            while True:
                try:
                    got = yield ("got", got)
                except ValueError as e:
                    got = yield ("thrown", str(e))
        except GeneratorExit:
            print("closing")
            raise
        finally:
            print("finally")
    it = g(1)
    print(next(it), it.send("a"), it.throw(ValueError("v")), it.send(None), it.gi_frame.f_lineno)
    it.close()
    print(it.gi_frame)
    def returning():
        x = yield 1
        return x
    def delegating():
        result = yield from returning()
        print("result", result)
        yield from (i * i for i in range(3))
        for a in returning(): yield a
        yield (yield)
    d = delegating()
    print(next(d), d.send("sent"), list(d))
    def empty():
        return
        yield
    print(list(empty()), list(x for x in [1, 2, 3] if x % 2))
    def leaky():
        with open("/dev/null") as f:
            yield f
        print("closed", f.closed)
    for f in leaky(): print(f.closed)
    def stops():
        raise StopIteration
        yield
    next(stops())
""",
)
program(
    "coroutines",
    """
    import asyncio
    log = []
    class CM:
        async def __aenter__(self): log.append("aenter"); await asyncio.sleep(0); return self
        async def __aexit__(self, *a): log.append("aexit"); return True
    async def agen(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                got = yield i
                log.append(("sent", got))
        finally:
            log.append("agen closed")
    async def worker(name):
        for i in range(2):
            log.append((name, i))
            await asyncio.sleep(0)
        return name
    async def main():
        "doc"
        print(await asyncio.gather(worker("a"), worker("b")))
        async for x in agen(2): log.append(x)
        else: log.append("else")
        async with CM() as a, CM():
            raise ValueError
        print([x async for x in agen(2)], {x: await worker("c") for x in [1]}, [y async for y in agen(3) if y])
        it = agen(3)
        print(await it.__anext__(), await it.asend("s"))
        await it.aclose()
        async for x in agen(5):
            if x: break
        try:
            async with asyncio.timeout(0.001): await asyncio.sleep(5)
        except TimeoutError: log.append("timeout")
        async with asyncio.TaskGroup() as group:
            group.create_task(worker("t"))
        return sum([i async for i in agen(3)])
    print(asyncio.run(main()), log)
    async def fails():
        await asyncio.sleep(0)
        raise KeyError("k")
    asyncio.run(fails())
""",
)
program(
    "comprehension scopes and walrus",
    """
    x = "outer"
    print([x for x in range(3)], x, {x: y for x in "ab" for y in "cd"}, {x for x in [1]}, [y := 1, y ** 2], y)
    print([last := i for i in range(3)], last, any((hit := v) > 1 for v in [1, 2, 3]), hit)
    def f():
        fs = [lambda: i for i in range(3)]
        z = [w := j for j in range(2)]
        return [g() for g in fs], w, sorted(locals())
    print(f())
    class A:
        n = 3
        squares = [i * i for i in range(n)]
        try: bad = [n for i in range(2)]
        except NameError as error: print(error)
    print(A.squares)
    while (n := len(x)) > 3: x = x[1:]
    if (m := n) and not (k := 0): print(m, k)
    [1 / (i - 2) for i in range(4)]
""",
)
program(
    "imports",
    """
    import os, os.path as p, collections.abc
    from os import sep as s, path
    from math import *
    print(p is path, s, pi, collections.abc.Sized, factorial(5), [n for n in globals() if n in ("os", "p", "path", "sin")])
    def f():
        import json as j
        from sys import version_info
        return sorted(locals())
    print(f())
    try: import does_not_exist
    except ImportError as e: print(e)
    try: from os import nope
    except ImportError as e: print(type(e))
    from .relative import x
""",
)
program(
    "future annotations behind a docstring",
    '''
    """Doc of the module."""

    from __future__ import annotations
    from __future__ import division, generator_stop

    x: Undefined = 1
    def f(a: Missing = 2) -> Nowhere: return a
    class A:
        b: Unknown
    print(__doc__, __annotations__, f.__annotations__, A.__annotations__, f())
''',
)
program(
    "deletion, global and nonlocal",
    """
    a = 1; b = [1, 2, 3]; c = {"k": 1}
    del a; del b[0], c["k"]; del (b[0]), [b[0]]
    print(b, c, "a" in globals())
    def f():
        global g, h
        g = h = 1
        del g
        x = y = 2
        def inner():
            nonlocal x
            del x
        inner()
        try: x
        except NameError as e: print(type(e).__name__, e)
        print(y)
    f()
    print("g" in globals(), h)
    del undefined_name
""",
)
program(
    "threads",
    """
    import threading
    out = []
    def work(n):
        for i in range(3):
            try: out.append((n, i)); 1 / (i - 1)
            except ZeroDivisionError: pass
        local = threading.local()
        return n
    ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in ts: t.start()
    for t in ts: t.join()
    print(sorted(out))
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool: print(list(pool.map(work, range(5))))
    del out, ts, t, pool
""",
)
program(
    "objects die when they did",
    """
    import sys, weakref, gc
    gc.disable()
    class O:
        def __init__(self, name): self.name = name
        def __del__(self): print("del", self.name)
    def f():
        a = O("a")
        b = O("b"); w = weakref.ref(b, lambda _: print("weak callback"))
        print(sys.getrefcount(a), w() is b)
        del b
        print("after del", w())
        a = O("a2")
        print("rebound")
        for x in [O("x1"), O("x2")]: print("loop", x.name)
        [O("c").name for _ in range(2)]
        O("temp")
        print("after temp")
        with open("/dev/null") as h: y = O("y")
        return w
    w = f()
    print("returned")
    def g(o): return sys.getrefcount(o)
    o = O("o")
    print(g(o), sys.getrefcount(o), g(O("argument")))
    try:
        raise ValueError(O("in exception"))
    except ValueError as e:
        print("handling", sys.getrefcount(e))
    print("after except")
    def gen():
        a = O("in generator")
        yield 1
        print("never")
    it = gen(); next(it); del it
    print("after generator")
    class K: attr = O("class attribute")
    del K
    gc.collect()
    print("after class")
    def keep():
        a = O("local")
        return sys._getframe().f_back is None
    keep()
    match O("subject"):
        case O(name=n): print(n)
    print("end")
    def fails():
        a = O("in a frame of the traceback")
        raise KeyError
    try: fails()
    except KeyError: print("caught")
    print("really the end")
    gc.enable()
    del o, w
""",
)
program(
    "exception state",
    """
    import sys
    def state(): return sys.exc_info()[0] and sys.exc_info()[0].__name__
    print(state())
    try:
        raise ValueError("one")
    except ValueError as first:
        print(state())
        tb = first.__traceback__
        print(tb.tb_lineno, tb.tb_next, first.__context__)
        try: raise KeyError("two")
        except KeyError as second:
            print(state(), second.__context__ is first)
        print(state())
        def g():
            print("in g", state())
            yield state()
        for x in g(): print("from g", x)
        fresh = TypeError("never raised")
        print(fresh.__context__, fresh.__traceback__)
    print(state())
    try:
        try: raise ValueError
        finally: print(state())
    except ValueError: pass
    e = ValueError("kept")
    for _ in range(2):
        try: raise e
        except ValueError: pass
    lines = []
    t = e.__traceback__
    while t: lines.append(t.tb_lineno); t = t.tb_next
    print(lines)
    e.add_note("a note")
    raise e
""",
)
program(
    "asserts of helpers raise",
    """
    def check(x):
        assert x > 0, f"{x} is not positive"
        assert (y := x) and y
        return y
    print(check(1))
    try: check(-1)
    except AssertionError as e: print(e)
    try: assert []
    except AssertionError as e: print(repr(e))
    assert (1
            == 2), "over lines"
""",
)
program(
    "several statements on a line, and lines over several",
    """
    a = 1; b = 2; print(a, b); c = (
        a +
        b); print(c); d = \\
        4
    if a: b = 3; c = 4
    for i in range(2): print(i); continue
    class X: p = 1; q = p + 1
    def f(): x = 1; return x
    print(b, c, d, X.q, f()); raise ValueError(
        "far",
        1 /
        0)
""",
)
program(
    "warnings name the line they came from",
    """
    import warnings
    def old():
        warnings.warn("old", DeprecationWarning, stacklevel=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        old()
        warnings.warn("here")
        for _ in range(1):
            old()
    print([(w.lineno, w.filename, str(w.message)) for w in seen])
""",
)
program(
    "builtins may be shadowed",
    """
    Exception = BaseException = print_ = None
    def step(n): return "mine"
    enter = loop = turn = watch = step
    real, print = print, lambda *a: real("shadowed", *a)
    print(step(0), enter(1))
    del print
    print("back")
    len = int = range = None
    try: 1 / 0
    except ZeroDivisionError: print(Exception)
""",
)
program(
    "programs that look at themselves",
    """
    import sys, inspect, types, typing
    def f(a: int, b: "str" = "x") -> list[int]:
        '''doc'''
        if a:
            return sys._getframe().f_lineno, inspect.currentframe().f_code.co_name
    print(f(1), f.__code__.co_firstlineno, typing.get_type_hints(f), f.__code__.co_flags & 0x2AF, f.__code__.co_filename)
    print(f.__code__.co_cellvars, f.__code__.co_freevars, f.__code__.co_nlocals, f.__code__.co_names)
    copy = types.FunctionType(f.__code__, globals(), "copy", ("d",))
    print(copy(1), copy(0), inspect.isgeneratorfunction(f), inspect.iscoroutinefunction(f))
    class A:
        def m(self): return [fr.function for fr in inspect.stack(0)][:2]
    print(A().m())
    def outer():
        def inner(): return sys._getframe(1).f_lineno
        return inner()
    print(outer(), __name__, __doc__)
""",
)
program(
    "a failing call inside deep calls",
    """
    def a(x): return b(x)
    def b(x):
        y = [
            c(i)
            for i in range(x)
        ]
        return y
    def c(i):
        if i > 1:
            d = {"k":
                 1 // (i - 2)}
        return i
    a(5)
""",
)
for number, failing in enumerate([
    "x = undefined", "x += 1", "x: int = 1 / 0", "del x", "return_ = [1][2]", "for i in 5: pass", "for i, j in [1]: pass",
    "while 1 / 0: pass", "if 1 / 0: pass\nelif 2: pass", "if 0: pass\nelif 1 / 0: pass", "with 5: pass", "with open('/dev/null') as (a, b): pass",
    "raise 5", "raise ValueError from 5", "import nope", "from os import nope", "match 1 / 0:\n    case 1: pass", "match 1:\n    case x if 1 / 0: pass",
    "try: 1 / 0\nexcept undefined: pass", "try: pass\nfinally: 1 / 0", "try: pass\nexcept: pass\nelse: 1 / 0", "@undefined\ndef f(): pass",
    "@print\n@undefined(\n  1)\nclass A: pass", "def f(a=1 / 0): pass", "def f(a: undefined): pass\nf.__annotations__\n1 / 0", "class A(5): pass", "class A:\n    x = 1\n    1 / 0",
    "class A(metaclass=5): pass", "assert 1 / 0", "assert 0, 1 / 0", "lambda: 1\n(lambda: 1 / 0)()", "f'{1}' f'{1 / 0}'", "print(*5)", "[*5]", "{**5}", "a = b = 1 / 0",
    "for i in range(3):\n    if i == 2: raise KeyError(i)\n    continue", "1 / 0; x = 1", "x = 1; 1 / 0", "(\n1\n/\n0\n)", "exec('1 / 0')", "def g(): yield 1 / 0\nlist(g())",
    "try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept* KeyError: pass", "try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept* ValueError: 1 / 0", "import asyncio\nasync def f(): await 5\nasyncio.run(f())",
]):  # fmt: skip
    program(
        f"failing statement {number}: {failing.splitlines()[0]}",
        f"print('before')\n{failing}\nprint('after')\n",
    )
program(
    "type parameters and aliases",
    """
    from typing import get_type_hints
    def first[T: int, *Ts, **P](x: T, *rest: *Ts) -> T:
        "doc"
        y: T = x
        return y
    class Box[T]:
        "box"
        item: T
        def get[U](self, u: U) -> tuple[T, U]: return (self.item, u)
        type Inner = T | None
    type Pair[A, B] = tuple[A, B]
    type Lazy = undefined_until_later
    Box.item = 1
    print(first(1), first.__type_params__, first.__doc__, Box.__type_params__, Box[int], Box().get("u"), Pair[int, str], Pair.__value__)
    print(first.__code__.co_firstlineno, Box.__annotations__, get_type_hints(first))
    Lazy.__value__
""",
    needs=(3, 12),
)
program(
    "nested f-strings",
    """
    d = {"k": 1.23456}
    print(f"{d["k"]:{'.2f'}} {f"{f"{1}"}"!r} { # comment
        d}")
    print(f"{undefined["x"]}")
""",
    needs=(3, 12),
)
program(
    "defaults of type parameters, and what 3.13 writes into classes",
    """
    class A[T = int]:
        def m(self): self.x = self.y = 1
        if True:
            z = 1
    def f[T = str](x: T): return locals()
    print(A.__type_params__[0].__default__, A.__firstlineno__, A.__static_attributes__, f(1))
    import sys
    def g():
        a = 1
        sys._getframe().f_locals["a"] = 2
        return a
    print(g())
""",
    needs=(3, 13),
)


def programs() -> list[Any]:
    here = sys.version_info[:2]
    return [
        pytest.param(text, id=name, marks=pytest.mark.skipif(here < NEEDS[name], reason="needs Python {}.{}".format(*NEEDS[name])))
        for name, text in PROGRAMS.items()
    ]  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::SyntaxWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("probes", ["silent", "recorder"])
@pytest.mark.parametrize("text", programs())
def test_a_probed_program_behaves_as_written(text, probes):
    assert outcome(text, probes) == outcome(text, "none")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_of_this_file_has_something_to_compare(name):
    if sys.version_info[:2] < NEEDS[name]:
        pytest.skip("needs Python {}.{}".format(*NEEDS[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcome(PROGRAMS[name], "none")
    assert found["output"] or found["error"]
    assert found["error"] is None or found["error"]["type"] != "SyntaxError"


def test_the_programs_hold_every_kind_of_statement():
    import ast

    seen = set()
    for name, text in PROGRAMS.items():
        if sys.version_info[:2] >= NEEDS[name]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen |= {
                    type(node).__name__ for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)
                }
    assert {kind.__name__ for kind in ast.stmt.__subclasses__()} - seen == set()


@pytest.mark.parametrize("probes", ["silent", "recorder"])
def test_the_recursion_limit_still_ends_a_recursion(probes):
    text = "def f(n):\n    global deepest\n    deepest = n\n    f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print('ended', type(e).__name__)\n"
    plain, probed = outcome(text, "none"), outcome(text, probes)
    assert plain["output"] == probed["output"] == "ended RecursionError\n"
    depth = [int(dict(found["namespace"])["deepest"]) for found in (plain, probed)]
    assert 0 <= depth[0] - depth[1] <= 10  # the probe stands on the last frames itself


def test_a_probe_at_the_recursion_limit_leaves_the_program_its_error():
    text = "def f(n):\n    x = n\n    y = x\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    pass\nprint('alive')\n"
    assert outcome(text, "recorder")["output"] == "alive\n"


# ------------------------------------------------------------------------------- warnings of the compiler

WARNED = """
def main(): pass
def f(x):
    if x is 5: pass
    x or "never"(x)
    print("\\d")
    return x  # @inspect x is 6
1()  # a call on a number
"""


def compiled_warnings(make: Any) -> list[tuple[str, int]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        make()
    # some of CPython's name the line that called the compiler, not the author's
    return sorted((str(w.message), w.lineno if w.filename == FILE else 0) for w in seen)


def probed_code(text: str, lecture: bool = True) -> Any:
    return instrument.instrument_files(parse.parse(text, FILE, lecture=lecture), Silent())[0]


@pytest.mark.parametrize(
    "text",
    [WARNED, "x = ~True\nprint(x)\n", "x = 1\n", "def f():\n    try: return 1\n    finally: return 2\n"],
)
def test_the_compilers_warnings_are_given_exactly_once(text):
    expected = compiled_warnings(lambda: compile(text, FILE, "exec", dont_inherit=True))
    assert compiled_warnings(lambda: probed_code(text, lecture="main" in text)) == expected
    assert text != WARNED or len(expected) == 4


def test_the_lectures_own_tree_stays_as_it_is():
    import ast

    found = parse.parse(textwrap.dedent(LECTURE), FILE)
    before = ast.dump(found.files[0].tree, include_attributes=True)
    first = instrument.instrument_files(found, Silent())[0]
    second = instrument.instrument_files(found, Silent())[0]
    assert ast.dump(found.files[0].tree, include_attributes=True) == before
    assert [len(c.co_code) for c in (first, second)] == [len(first.co_code)] * 2


# ------------------------------------------------------------------------------- what the probes hear


def heard(text: str, lecture: bool = True) -> tuple[Notes, Lecture, dict[str, Any]]:
    """Run a lecture's module and main; the calls of all probes."""
    notes = Notes()
    found = parse.parse(textwrap.dedent(text), FILE, lecture=lecture)
    space: dict[str, Any] = {"__name__": "program"}
    exec(instrument.instrument_files(found, notes)[0], space)
    if lecture:
        space["main"]()
    return notes, found, space


def shown(text: str) -> list[Any]:
    """What every watch showed, in order: (expression, value), or (expression, "raised")."""
    notes, found, _ = heard(text)
    return [
        (found.watches[call[1]].text, {"watch": call[-1], "clear": None, "miss": "raised"}[call[0]])
        for call in notes.of("watch", "clear", "miss")
    ]


LECTURE = '''
"""Doc."""
from __future__ import annotations

def main():
    """Main."""
    section()

def section():
    """Section."""
    x = [3, 4]  # @inspect x[0], len(x)
    assert x[0] < x[1] < 5, f"{x} ascends"
    assert not x, "fails and goes on"
    for i in x:  # @inspect i
        y = i
    helper(1)  # @stepover

def helper(n):
    for k in range(n):
        n += k
    return n
'''


def test_probes_are_called_in_the_order_of_execution():
    notes, found, _ = heard(LECTURE)
    lines = [(c[0], found.statements[c[1]].first) for c in notes.of("step")]
    assert [line for _, line in lines] == [3, 5, 9, 18, 7, 11, 12, 13, 14, 15, 15, 16, 19, 20, 21]
    assert [found.functions[c[1]].name for c in notes.of("enter")] == [
        "<module>",
        "main",
        "section",
        "helper",
    ]
    assert [c[2:] for c in notes.of("enter")] == [(), (), (), (1,)]
    names = [c[0] for c in notes.calls if c[0] not in ("step", "enter")]
    assert names == [
        "section", "local", "watch", "watch", "claim", "operand", "operand", "operand", "holds", "claim", "operand", "fails",
        "loop", "turn", "watch", "local", "turn", "watch", "local", "local",
        "pause", "loop", "turn", "local", "local", "local", "local", "resume",
    ]  # fmt: skip
    assert notes.of("holds") == [("holds", 0, "[3, 4] ascends")]
    assert notes.of("fails") == [("fails", 1)]


def body(text: str) -> str:
    return "def main():\n" + textwrap.indent(textwrap.dedent(text).strip("\n"), "    ") + "\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x = 1  # @inspect x", [("x", 1)]),
        ("x = 1\nx += 1  # @inspect x, x * 2", [("x", 2), ("x * 2", 4)]),
        ("x = 1\nreturn x  # @inspect x", [("x", 1)]),
        ("x = 1\ntry:\n    raise ValueError(x)  # @inspect x\nexcept ValueError: pass", [("x", 1)]),
        ("for i in range(3):\n    if i == 1: break  # @inspect i", [("i", 1)]),
        ("for i in range(2):\n    continue  # @inspect i", [("i", 0), ("i", 1)]),
        ("for i in range(2):  # @inspect i\n    pass", [("i", 0), ("i", 1)]),
        ("n = 2\nwhile n:  # @inspect n\n    n -= 1", [("n", 2), ("n", 1)]),
        ("if (y := 1):  # @inspect y\n    pass", [("y", 1)]),
        ("y = 0\nif y:\n    pass\nelif y == 0:  # @inspect y\n    pass", [("y", 0)]),
        ("y = 0\nif y:  # @inspect y\n    pass", []),
        ("from contextlib import nullcontext\nwith nullcontext(5) as v:  # @inspect v\n    pass", [("v", 5)]),
        ("x = 3\ntry:  # @inspect x\n    pass\nfinally:\n    pass", [("x", 3)]),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:  # @inspect type(e).__name__\n    pass", [("type(e).__name__", "ZeroDivisionError")]),
        ("try:\n    raise ExceptionGroup('g', [ValueError()])\nexcept* ValueError as e:  # @inspect len(e.exceptions)\n    pass", [("len(e.exceptions)", 1)]),
        ("match [1, 2]:\n    case [a, b]:  # @inspect a, b\n        pass", [("a", 1), ("b", 2)]),
        ("match (s := 7):  # @inspect s\n    case 1: pass\n    case 7: x = 1", [("s", 7)]),
        ("class A:  # @inspect A.__name__\n    v = 1  # @inspect v", [("v", 1), ("A.__name__", "A")]),
        ("def f(a, b=2):  # @inspect a, b\n    return a\nf(1)", [("a", 1), ("b", 2)]),
        ("def f(a):  # @inspect a\n    'doc'\nf(1)", [("a", 1)]),
        ("def f(a):\n    'doc'  # @inspect a\nf(1)", [("a", 1)]),
        ("def gen():\n    x = yield 1  # @inspect x\n    yield 2\ng = gen(); next(g); g.send('s')", [("x", "s")]),
        ("import asyncio\nasync def f():\n    x = await asyncio.sleep(0, 5)  # @inspect x\nasyncio.run(f())", [("x", 5)]),
        ("x = [1,\n     2,  # @inspect x\n     3]", [("x", [1, 2, 3])]),
        ("import math  # @inspect math.e > 2", [("math.e > 2", True)]),
        ("global g  # @inspect 1\ng = 2  # @inspect g", [("1", 1), ("g", 2)]),
        ("x = 1\ndel x  # @inspect 'gone'", [("'gone'", "gone")]),
        ("pass  # @inspect 1 if True else 2", [("1 if True else 2", 1)]),
        ("x = 1  # @clear x", [("x", None)]),
        ("x = 1  # @inspect [x for _ in 'ab'], (lambda: x)(), {x: x}, {x}.pop(), f'{x}'", [
            ("[x for _ in 'ab']", [1, 1]), ("(lambda: x)()", 1), ("{x: x}", {1: 1}), ("{x}.pop()", 1), ("f'{x}'", "1")]),
        ("class A:\n    __p = 1  # @inspect __p\n    def m(self): return self.__p  # @inspect self.__p, __class__.__name__\nA().m()", [
            ("__p", 1), ("self.__p", 1), ("__class__.__name__", "A")]),
        ("for i in range(2):  # @stepover @inspect i\n    pass", [("i", 0), ("i", 1)]),
        ("x = max(1, 2)  # @stepover @inspect x", [("x", 2)]),
        ("x = 1  # @measure x as s @inspect x", [("x", 1), ("x", 1)]),
    ],
)  # fmt: skip
def test_an_inspected_expression_is_shown_in_its_own_scope_and_moment(text, expected):
    assert shown(body(text)) == expected


def test_directives_of_the_module_itself_are_heard():
    text = '"""Doc."""  # @inspect __doc__\nfrom __future__ import annotations  # @inspect annotations.compiler_flag > 0\nx = 1  # @inspect x\ndef main(): pass\n'
    assert shown(text) == [("__doc__", "Doc."), ("annotations.compiler_flag > 0", True), ("x", 1)]
    notes, found, _ = heard(text)
    assert [found.statements[c[1]].first for c in notes.of("step")] == [2, 3, 4, 4]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # @inspect 1 / 0, x",
        "x = 1\nfor i in range(1):  # @inspect undefined, x\n    pass",
        "x = 1\nreturn x  # @inspect x.nope, x",
        "x = 1\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    pass  # @inspect {}['k'], x",
        "x = 1\ndef f():  # @inspect f.nope, x\n    pass\nf()",
        "x = 1  # @inspect [][0], x\nx = 2",
        "Exception = x = 1  # @inspect 1 / 0, x",
    ],
)
def test_an_inspected_expression_that_raises_is_reported_and_the_program_goes_on(text):
    seen = shown(body(text) + "    done = 1  # @inspect done\n" if "return" not in text else body(text))
    assert [value for _, value in seen[:2]] == ["raised", 1]
    assert "return" in text or seen[-1] == ("done", 1)


def test_an_inspected_expression_that_raises_leaves_no_trace_in_the_exception_state():
    text = """
    import sys
    def main():
        try:
            raise ValueError("v")  # @inspect 1 / 0
        except ValueError as error:  # @inspect 1 / 0
            log.append((error.__context__, sys.exc_info()[1] is error))
        log.append(sys.exc_info())
        try:
            try: [][0]
            finally:
                x = 1  # @inspect undefined
        except IndexError as error:
            log.append(error.__context__)
    log = []
    """
    _, _, space = heard(text)
    assert space["log"] == [(None, True), (None, None, None), None]


def test_what_leaves_by_base_exceptions_passes_through_an_inspect():
    with pytest.raises(KeyboardInterrupt):
        heard("def stop(): raise KeyboardInterrupt\ndef main():\n    x = 1  # @inspect stop()\n")


def test_what_may_not_stand_where_it_is_shown_is_refused():
    with pytest.raises(UnusableLecture) as caught:
        probed_code("def main(): pass\ndef f():\n    y = 1  # @inspect x\n    global x\n")
    assert str(caught.value).startswith(
        "program.py:4:1: what is to be shown here cannot stand here: name 'x' is used prior to global declaration"
    )


def test_probes_nested_deeper_than_the_compiler_goes_are_refused():
    text = "def main(): pass\nif x: pass\n" + "elif x: pass\n" * 900
    with pytest.raises(UnusableLecture, match=r"^program.py nests its statements too deep to be followed$"):
        probed_code(text)


# ------------------------------------------------------------------------------- stepping over


def test_stepped_over_code_runs_unrecorded_and_paused():
    text = """
    def main():
        helper(2)
        x = helper(3)  # @stepover
        for i in range(2):  # @stepover
            helper(i)  # @inspect i
        quiet(1)
    def helper(n):
        return n
    def quiet(n):  # @stepover
        return inner(n)
    def inner(n):
        return n
    """
    notes, found, _ = heard(text)
    depth, steps = 0, []
    for name, *rest in notes.calls:
        depth += (name == "pause") - (name == "resume")
        if name == "step" and depth == 0:
            steps.append(found.statements[rest[0]].first)
    assert depth == 0
    assert steps == [2, 8, 10, 12, 3, 9, 4, 5, 6, 9, 6, 9, 7]  # nothing of quiet, nor of what it calls
    assert [name for name, *_ in notes.of("turn", "watch")] == ["turn", "watch"] * 2  # of the loop's block


@pytest.mark.parametrize(
    "block",
    [
        "with f():  # @stepover\n    inside(1)",
        "for _ in f():  # @stepover\n    inside(1)\n    break",
        "for _ in f():  # @stepover\n    inside(1)\n    continue\nelse:\n    inside(2)",
        "while f():  # @stepover\n    inside(1)\n    return",
        "if f():  # @stepover\n    inside(1)\nelse:\n    inside(2)",
        "match f():  # @stepover\n    case _: inside(1)",
        "with f():  # @stepover\n    inside(1)\n    1 / 0",
    ],
)
def test_stepping_over_the_header_of_a_block_records_the_block(block):
    text = "def main():\n    try: g()\n    except ZeroDivisionError: pass\n    inside(3)\ndef g():\n" + (
        textwrap.indent(block, "    ")
        + "\ndef inside(n):\n    return n\nclass f:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *_):\n        pass\n    def __iter__(self):\n        yield 1\n"
    )
    notes, found, _ = heard(text)
    depth, steps = 0, []
    for name, *rest in notes.calls:
        depth += (name == "pause") - (name == "resume")
        if name == "step" and depth == 0:
            statement = found.statements[rest[0]]
            steps.append(
                (found.functions[statement.function].name, found.files[0].lines[statement.first - 1])
            )
    assert depth == 0
    entered = [name for name, line in steps if line == "    return n"]
    assert len(entered) == 2 + block.count("continue"), "the block, and what follows"
    assert not any(name in ("__enter__", "__exit__", "__iter__") for name, _ in steps), "the header is not"


@pytest.mark.parametrize(
    "text, result",
    [
        ("try:\n    f()  # @stepover\nexcept ZeroDivisionError: return 'caught'", "caught"),
        ("for i in range(5):\n    if i == 2: break  # @stepover\nreturn i", 2),
        ("for i in range(5):\n    continue  # @stepover\nreturn i", 4),
        ("return 5  # @stepover", 5),
        ("with open('/dev/null'):  # @stepover\n    return 6", 6),
        ("global gl  # @stepover\ngl = 1\nreturn gl", 1),
        ("import os as o; from os import sep  # @stepover\nreturn sep", "/"),
        ("x: int = 3  # @stepover\nreturn x", 3),
        ("match 3:  # @stepover\n    case x: return x", 3),
    ],
)
def test_stepping_over_changes_no_control_flow(text, result):
    notes, _, space = heard(
        "def main():\n    out.append(g())\ndef f(): 1 / 0\nout = []\ndef g():\n"
        + textwrap.indent(text, "    ")
    )
    assert space["out"] == [result]
    assert len(notes.of("pause")) == len(notes.of("resume")) >= 1


def test_functions_for_a_compiler_keep_their_own_code(monkeypatch):
    for name in ("jax", "triton"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(jit=lambda f: f))
    text = """
    import jax, triton
    @jax.jit
    def f(x): return g(x) + 1
    def g(x):
        y = x
        return y
    @triton.jit
    def kernel(x):
        return x
    def free(x): return x
    def main():
        f(1); kernel(2); free(3)
    """
    notes, found, space = heard(text)
    plain: dict[str, Any] = {}
    exec(compile(textwrap.dedent(text), FILE, "exec", dont_inherit=True), plain)
    for name in ("f", "g", "kernel"):
        assert space[name].__code__ == plain[name].__code__
    assert space["free"].__code__ != plain["free"].__code__
    assert [found.functions[c[1]].name for c in notes.of("enter")].count("free") == 1
    assert not {"f", "g", "kernel"} & {found.functions[c[1]].name for c in notes.of("enter")}


# ------------------------------------------------------------------------------- claims


def judged(claim: str, before: str = "") -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Operands and verdict of `assert claim`, after `before`."""
    text = f"log = []\ndef say(x, v=None):\n    log.append(x)\n    return x if v is None else v\n{before}\ndef main():\n    assert {claim}\n    log.append('went on')\n"
    notes, _, space = heard(text)
    return [c[1:] for c in notes.of("operand")], [c[:1] + c[2:] for c in notes.of("holds", "fails")], space


@pytest.mark.parametrize(
    "claim, evaluated, operands, verdict",
    [
        ("say(1) == say(1)", [1, 1], [(0, 1), (1, 1)], "holds"),
        ("say(1) == say(2)", [1, 2], [(0, 1), (1, 2)], "fails"),
        ("say(1) < say(2) < say(3)", [1, 2, 3], [(0, 1), (1, 2), (2, 3)], "holds"),
        ("say(3) < say(2) < say(1)", [3, 2], [(0, 3), (1, 2)], "fails"),
        ("say(0) == 1 and say(2) == 2", [0], [(0, 0), (1, 1)], "fails"),
        ("say(0) == 0 or say(2) == 2", [0], [(0, 0), (1, 0)], "holds"),
        ("not say(0)", [0], [(0, 0)], "holds"),
        ("not (say(1) and say(0))", [1, 0], [], "holds"),
        ("say(5)", [5], [(0, 5)], "holds"),
        ("say('')", [""], [(0, "")], "fails"),
        ("say(1) in say([1], [1])", [1, [1]], [(0, 1), (1, [1])], "holds"),
        ("say(1) is not say(None, None)", [1, None], [(0, 1), (1, None)], "holds"),
        ("(say(1) if say(0) else say(2)) == 2", [0, 2], [(0, 2), (1, 2)], "holds"),
        ("isinstance(say(1), int)", [1], [(0, 1), (1, int)], "holds"),
        ("max(say(1), *say([2, 3], [2, 3])) == 3", [1, [2, 3]], [(0, 3), (1, 3)], "holds"),
        ("all(say(x) for x in [1, 0, 2])", [1, 0], None, "fails"),
        ("(y := say(4)) > 3 and y == 4", [4], [(0, 4), (1, 3), (2, 4), (3, 4)], "holds"),
        ("say(1) + say(2) == say(3)", [1, 2, 3], [(0, 3), (1, 3)], "holds"),
    ],
)  # fmt: skip
def test_every_operand_is_evaluated_once_in_order_and_short_circuits_stay(
    claim, evaluated, operands, verdict
):
    seen, verdicts, space = judged(claim)
    assert space["log"] == [*evaluated, "went on"]
    assert verdicts == [(verdict,)]
    if operands == []:  # operands of calls inside are those of the calls
        assert [value for _, value in seen] == [1, 0]
    elif operands is not None:
        assert seen == operands


def test_operands_in_one_call_test_are_its_arguments():
    seen, _, space = judged(
        "f(say(1), *say([2], [2]), k=say(3))", "def f(*a, k): return a == (1, 2) and k == 3"
    )
    assert seen == [(0, 1), (1, [2])] and space["log"] == [1, [2], 3, "went on"]


@pytest.mark.parametrize("truth, verdict", [("True", "holds"), ("False", "fails")])
def test_a_comparison_may_give_any_object_that_knows_its_truth(truth, verdict):
    before = f"""
class Odd:
    def __eq__(self, other): log.append("eq"); return self
    __lt__ = __eq__
    def __bool__(self): log.append("bool"); return {truth}
o = Odd()"""
    seen, verdicts, space = judged("o == 1", before)
    assert verdicts == [(verdict,)] and space["log"] == ["eq", "bool", "went on"]
    assert seen == [(0, space["o"]), (1, 1)]
    _, _, space = judged("o < 1 < 2", before)
    assert space["log"] == ["eq", "bool", "went on"]


@pytest.mark.parametrize(
    "claim, line",
    [
        ("1 / 0 == 1", 9),
        ("say(1) == undefined", 9),
        ("undefined(1)", 9),
        ("Odd() == 1", 5),
        ("Odd() < 1", 5),
        ("say(\n        1 / 0)", 10),
    ],
)
def test_an_operand_that_raises_raises_where_it_stands(claim, line):
    text = f"log = []\ndef say(x): return x\nclass Odd:\n    def __eq__(self, o):\n        return 1 / 0\n    def __lt__(self, o): return self\n    __bool__ = lambda self: self == 0\ndef main():\n    assert {claim}\n"
    plain: dict[str, Any] = {}
    exec(compile(text, FILE, "exec", dont_inherit=True), plain)
    errors = []
    for call in (plain["main"], lambda: heard(text)):
        with pytest.raises((ZeroDivisionError, NameError)) as caught:
            call()
        errors.append(described(caught.value))
    assert errors[0] == errors[1]
    assert errors[0]["places"][-1][1] == line


@pytest.mark.parametrize(
    "caption, told",
    [
        ("", ()),
        (", 'constant'", ()),  # the recorder knows it from the text
        (", f'{1 + 1} is two'", ("2 is two",)),
        (", 1 / 0", ()),
        (", None", ()),
    ],
)
@pytest.mark.parametrize("test, verdict", [("1 < 2", "holds"), ("1 > 2", "fails")])
def test_a_caption_is_told_and_one_that_raises_costs_no_verdict(test, verdict, caption, told):
    _, verdicts, space = judged(f"{test}{caption}")
    assert verdicts == [(verdict, *told)]
    assert space["log"] == ["went on"]


def test_a_claims_operands_die_with_it():
    text = """
    import sys, weakref
    class O: pass
    def make():
        global ref
        o = O()
        ref = weakref.ref(o)
        return o
    def main():
        assert make() != 1, "holds"
        seen.append(ref())
        assert make() == 1, "fails"
        seen.append(ref())
    seen = []
    """
    found = parse.parse(textwrap.dedent(text), FILE)
    recorder = Recorder(found)
    space: dict[str, Any] = {"__name__": "program"}
    exec(instrument.instrument_files(found, recorder)[0], space)
    space["main"]()
    assert space["seen"] == [None, None]
    assert [recorder.judgement(n).failed for n in (0, 1)] == [False, True]


def test_an_inspected_object_dies_when_it_did():
    text = """
    import weakref
    class O: pass
    def main():
        o = O()  # @inspect o, [o], {"k": o}
        ref = weakref.ref(o)
        del o  # @inspect ref(), undefined
        seen.append(ref())
    seen = []
    """
    found = parse.parse(textwrap.dedent(text), FILE)
    recorder = Recorder(found)
    space: dict[str, Any] = {"__name__": "program"}
    exec(instrument.instrument_files(found, recorder)[0], space)
    space["main"]()
    assert space["seen"] == [None]


def test_axes_are_claimed_after_the_assignment_and_an_unreadable_annotation_is_told():
    text = """
    class Float:
        def __class_getitem__(cls, item): return item
    def main():
        x: Float[int, "a b"] = 5
        y: Nowhere[int, "a b"] = 6
        log.append((x, y))
    log = []
    """
    notes, _, space = heard(text)
    assert notes.of("axes", "skip_annotation") == [("axes", 0, (int, "a b"), 5), ("skip_annotation", 1)]
    assert space["log"] == [(5, 6)]


# ------------------------------------------------------------------------------- any program at all


NAMES_IN_PROGRAMS = st.sampled_from("abcd")
ATOMS = st.one_of(NAMES_IN_PROGRAMS, st.integers(-3, 9).map(str))


def expressions(*more: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Arithmetic whose numbers stay small; `more` are further atoms."""
    return st.recursive(
        st.one_of(ATOMS, *more),
        lambda below: st.one_of(
            st.tuples(below, st.sampled_from(["+", "-", "//", "%", "==", "<", "and", "or"]), below).map("({0[0]} {0[1]} {0[2]})".format),
            st.tuples(below, below).map("({0[0]} * {0[1]} % 997)".format),
            st.tuples(below, below, below).map("({0[0]} if {0[1]} else {0[2]})".format),
            below.map("sum([q + {} for q in range(3)])".format),
            below.map("(lambda a: a)({})".format),
        ),
        max_leaves=4,
    )  # fmt: skip


EXPRESSIONS = expressions(st.tuples(st.sampled_from("fg"), ATOMS).map("{0[0]}({0[1]})".format))
SHOWN = expressions()  # calls no function of the program: `spend` counts their calls


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _statement(block: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    inner = block.map(indented)
    return st.one_of(
        st.tuples(EXPRESSIONS, inner, inner).map(lambda t: [f"if {t[0]}:", *t[1], "else:", *t[2]]),
        st.tuples(NAMES_IN_PROGRAMS, EXPRESSIONS, inner).map(lambda t: [f"for {t[0]} in range(({t[1]}) % 4):", *t[2]]),
        st.tuples(EXPRESSIONS, inner).map(
            lambda t: [f"while spend() and ({t[0]}) != 7:", *t[1], "else:", "    print('else')"]
        ),
        st.tuples(inner, inner, inner).map(
            lambda t: ["try:", *t[0], "except (ZeroDivisionError, NameError, TypeError) as e:", "    print(e)", *t[1], "finally:", *t[2]]
        ),
        st.tuples(st.sampled_from(["f", "g"]), inner, EXPRESSIONS).map(
            lambda t: [f"def {t[0]}(a):", "    if not spend(): return 0", *t[1], f"    return {t[2]}"]
        ),
        st.tuples(EXPRESSIONS, inner, inner).map(lambda t: [f"match {t[0]}:", "    case 0 | 1:", *indented(t[1]), "    case c:", *indented(t[2])]),
        inner.map(lambda b: ["class K:", *b]),
        inner.map(lambda b: ["def h():", *b, "    yield 1", "print(list(h()))"]),
        inner.map(lambda b: ["with open('/dev/null') as h:", *b]),
    )  # fmt: skip


def can_fail(test: str) -> bool:
    """Of a claim: an assert that nothing can make false is refused before it runs."""
    node = ast.parse(test, mode="eval").body
    return not any(truth_of(part) for part in (node.values if isinstance(node, ast.BoolOp) else [node]))


SIMPLE = st.one_of(
    st.tuples(NAMES_IN_PROGRAMS, EXPRESSIONS).map("{0[0]} = {0[1]}".format),
    st.tuples(NAMES_IN_PROGRAMS, EXPRESSIONS).map("{0[0]} += {0[1]}".format),
    EXPRESSIONS.map("print({})".format),
    NAMES_IN_PROGRAMS.map("del {}".format),
    EXPRESSIONS.filter(can_fail).map("assert {}, a".format),
    st.sampled_from(["pass", "print(sorted(locals()))", "raise ValueError(a)", "import math as d"]),
).map(lambda line: [line])


def _blocks(statement: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.lists(statement, min_size=1, max_size=3).map(
        lambda several: [line for lines in several for line in lines]
    )


BLOCKS = st.recursive(
    _blocks(SIMPLE), lambda block: _blocks(st.one_of(SIMPLE, _statement(block))), max_leaves=12
)
HEAD = """
a, b, c, left = 1, 2, 3, [20]
def spend():  # what lets every program end
    left[0] -= 1
    return left[0] > 0
def f(a): return a
g = f
"""


@given(BLOCKS)
@settings(max_examples=examples(60))
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::ResourceWarning")
def test_any_program_behaves_as_written(lines):
    text = HEAD + "\n".join(lines) + "\n"
    expected = outcome(text, "none")
    assert outcome(text, "silent") == expected
    assert outcome(text, "recorder") == expected


DIRECTIVES = st.one_of(
    st.just(""),
    SHOWN.map("  # @inspect {}".format),
    st.tuples(NAMES_IN_PROGRAMS, SHOWN).map("  # @inspect {0[0]} @measure {0[1]} as s".format),
    st.sampled_from(["  # @stepover", "  # @hide", "  # @clear a b"]),
)


@given(BLOCKS, st.data())
@settings(max_examples=examples(60))
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::ResourceWarning")
def test_any_program_with_directives_behaves_as_written(lines, data):
    allowed = [not line.strip().startswith(("else", "finally", "global")) for line in lines]
    lines = [line + data.draw(DIRECTIVES) if may else line for line, may in zip(lines, allowed, strict=True)]
    # in a block, where a lecture may define a name anew
    text = HEAD + "def main(): pass\nif True:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
    assert outcome(text, "silent", lecture=True) == outcome(text, "none")
    assert outcome(text, "recorder", lecture=True) == outcome(text, "none")
