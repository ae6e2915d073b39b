"""Sections that lean on each other, and settings that one of them leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import HEAD, messages, record, write

from litbook.lecture import parse
from litbook.rules import leaning

BEFORE = """
class Model:
    def __init__(self):
        self.w, self.steps = [0.0], 0

    def parameters(self):
        return [self]

    def fit(self, n):
        self.w[0] = float(n)


class Optimizer:
    def __init__(self, parameters):
        self.parameters = parameters

    def step(self):
        for p in self.parameters:
            p.steps += 1


def train(model, n):
    for p in model.parameters():
        p.w[0] += n


def outer(model):
    train(model, 3)


def look():
    return MODEL.w[0]
"""
KINDS = {  # what is made, what changes it, what reads it
    "a list": ("X = []", "X.append(1)", "assert X == [1]"),
    "an item": ("X = {'a': 1}", "X['a'] = 2", "assert X['a'] == 2"),
    "an attribute": ("X = Model()", "X.steps = 2", "assert X.steps == 2"),
    "a global": ("X = 0", "global X\n    X += 1", "assert X == 1"),
    "a set": ("X = set()", "X.add(3)", "assert len(X) == 1"),
    "a model in a helper": ("X = Model()", "train(X, 2)", "assert X.w[0] == 2"),
    "through two helpers": ("X = Model()", "outer(X)", "assert X.w[0] == 3"),
    "its parameters": ("X = Model()", "for p in X.parameters():\n        p.w[0] = 3.0", "assert X.w[0] == 3"),
    "an optimizer": ("X = Model()", "o = Optimizer(X.parameters())\n    o.step()", "assert X.steps == 1"),
    "fitted": ("X = Model()", "X.fit(3)", "assert X.w[0] == 3"),
    "a part of it": ("X = [[1], [2]]", "row = X[0]\n    row.append(5)", "assert X[0] == [1, 5]"),
    "read in a helper": ("X = MODEL = Model()", "train(MODEL, 2)", "assert look() == 2"),
}

OWN = """
import collections, copy, dataclasses, fractions, functools, heapq, itertools, json, math, operator, random, unittest.mock
import numpy as np, torch
from pathlib import Path


class Counter:
    total = 0
    def __init__(self):
        self.n = 0
        self.inner = []
    def bump(self):
        self.n += 1
    def deeper(self):
        self.bump()
    def put_in(self, x):
        self.inner.append(x)
    def look(self):
        return self.n
    def __call__(self):
        self.n += 1
    def __iadd__(self, x):
        self.n += x
        return self
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, *a):
        pass


class Shelf:
    books, log, made = [], {}, 0
    numbers = itertools.count()
    dice = random.Random(0)
    sizes = [1]
    notes: list = []

    def __init__(self, name="", seen=[]):
        self.name = name
        self.seen = seen
        self.sizes = []

    def keep(self, x):
        self.books.append(x)

    def keep_by_name(self, x):
        books = self.books
        books.append(x)

    def enter(self):
        self.log[self.name] = 1

    def lengthen(self):
        self.books += [1]

    def throw(self):
        return self.dice.random()

    def number(self):
        return next(self.numbers)

    def see(self, x):
        self.seen.append(x)

    @classmethod
    def make(cls):
        cls.made += 1

    def make_too(self):
        type(self).made += 1

    def size(self, x):
        self.sizes.append(x)

    def count_own(self):
        self.made += 1
        self.notes = []
        self.notes.append(1)


def ticker():
    n = 0

    def more():
        nonlocal n
        n += 1
        return n

    return more


def two_of_one():
    box = [0]

    def more():
        box[0] += 1

    return more, lambda: box[0]


def numbered(first):
    ids = itertools.count(first)
    return lambda: next(ids)


def remembered(f):
    seen = {}

    def looked_up(n):
        if n not in seen:
            seen[n] = f(n)
        return seen[n]

    return looked_up


def scaled(by):
    def scale(x):
        out = []
        out.append(by * x)
        return out

    return scale


def numbers():
    yield from (1, 2, 3)


SOURCE, KEPT = numbers(), []
double, remember = scaled(2), remembered(abs)


def take(get=SOURCE.__next__):
    return get()


def keep(x, to=KEPT):
    to.append(x)


class Saver:
    def save(self, x, to=[]):
        to.append(x)
        return to

    def fill_up(self, rows):
        rows.append(1)


class Longer(Shelf):
    pass


@dataclasses.dataclass
class Row:
    cells: list = dataclasses.field(default_factory=list)

    def put_cell(self, x):
        self.cells.append(x)


def helper(x=[]):
    x.append(1)
    return len(x)


def counted():
    counted.calls = getattr(counted, "calls", 0) + 1
"""
MORE_KINDS = {  # with classes and functions of `OWN`
    "an own method": ("X = Counter()", "X.bump()", "assert X.n == 1"),
    "an own method that calls one": ("X = Counter()", "X.deeper()", "assert X.look() == 1"),
    "an own method that keeps what it gets": ("X = Counter()", "X.put_in(3)", "assert X.inner == [3]"),
    "a call of an object": ("X = Counter()", "X()", "assert X.n == 1"),
    "+= of an object": ("X = Counter()", "global X\n    X += 1", "assert X.n == 1"),
    "a with of an object": ("X = Counter()", "with X:\n        pass", "assert X.n == 1"),
    "an attribute of a class": ("", "Counter.total = 3", "assert Counter.total == 3"),
    "an attribute of a function": ("", "counted()", "assert counted.calls == 1"),
    "a default argument": ("", "helper()", "assert helper() == 2"),
    "a generator of random numbers": ("X = random.Random(0)", "x = X.random()", "assert X.random() < 1"),
    "numpy's generator": ("X = np.random.default_rng(0)", "x = X.normal(size=3)", "assert X.normal() < 9"),
    "torch's generator": ("X = torch.Generator()", "x = torch.randn(3, generator=X)", "assert torch.randn(1, generator=X) < 9"),
    "an iterator": ("X = iter([1, 2])", "x = next(X)", "assert next(X) == 2"),
    "a for over an iterator": ("X = iter([1, 2])", "for x in X:\n        pass", "assert list(X) == []"),
    "an iterator made a list": ("X = iter([1, 2])", "x = list(X)", "assert list(X) == []"),
    "itertools.count": ("X = itertools.count()", "x = next(X)", "assert next(X) == 1"),
    "heapq": ("X = [3]", "heapq.heappush(X, 1)", "assert X[0] == 1"),
    "random.shuffle": ("X = [1, 2, 3]", "random.shuffle(X)", "assert X[0] in (1, 2, 3)"),
    "setattr": ("X = Counter()", "setattr(X, 'n', 4)", "assert X.n == 4"),
    "operator.setitem": ("X = [1]", "operator.setitem(X, 0, 4)", "assert X[0] == 4"),
    "globals()": ("X = 1", "globals()['X'] = 4", "assert X == 4"),
    "del an item": ("X = [1, 2]", "del X[0]", "assert X == [2]"),
    "del an attribute": ("X = Counter()", "del X.n", "assert not hasattr(X, 'n')"),
    "+= a list by name": ("X = [1]\nY = [2]", "global X\n    X += Y", "assert X == [1, 2]"),
    "|= a dict": ("X = {}", "global X\n    X |= {'a': 1}", "assert X == {'a': 1}"),
    "out=": ("X = np.zeros(2)", "np.add(X, 1, out=X)", "assert X.sum() == 2"),
    "np.copyto": ("X = np.zeros(2)", "np.copyto(X, 1)", "assert X.sum() == 2"),
    "fill": ("X = np.zeros(2)", "X.fill(1)", "assert X.sum() == 2"),
    "X[...] op": ("X = np.zeros(2)", "X[:] += 1", "assert X.sum() == 2"),
    "nn.init": ("X = torch.nn.Linear(1, 1)", "torch.nn.init.zeros_(X.weight)", "assert X.weight.sum() == 0"),
    "backward": ("X = torch.ones(2, requires_grad=True)", "X.sum().backward()", "assert X.grad.sum() == 2"),
    "backward by name": ("X = torch.ones(2, requires_grad=True)", "loss = (X * 2).sum()\n    loss.backward()", "assert X.grad.sum() == 4"),
    "eval()": ("X = torch.nn.Dropout()", "X.eval()", "assert not X.training"),
    "to a dtype": ("X = torch.nn.Linear(1, 1)", "X.double()", "assert X.weight.dtype == torch.float64"),
    "half": ("X = torch.nn.Linear(1, 1)", "X.to(torch.float16)", "assert X.weight.dtype == torch.float16"),
    "requires_grad_": ("X = torch.nn.Linear(1, 1)", "X.requires_grad_(False)", "assert not X.weight.requires_grad"),
    "a hook": ("X = torch.nn.Linear(1, 1)", "X.register_forward_hook(print)", "assert len(X._forward_hooks) == 1"),
    "an optimizer of the module": ("X = torch.nn.Linear(1, 1)\nO = torch.optim.SGD(X.parameters(), lr=1)", "O.step()", "assert X.weight.grad is None"),
    "zero_grad": ("X = torch.nn.Linear(1, 1)", "X.zero_grad()", "assert X.weight.grad is None"),
    "rotate": ("X = collections.deque([1, 2])", "X.rotate(1)", "assert X[0] == 2"),
    "subtract": ("X = collections.Counter()", "X.subtract('a')", "assert X['a'] == -1"),
    "difference_update": ("X = {1, 2}", "X.difference_update({1})", "assert X == {2}"),
    "move_to_end": ("X = collections.OrderedDict(a=1, b=2)", "X.move_to_end('a')", "assert list(X) == ['b', 'a']"),
    "defaultdict": ("X = collections.defaultdict(int)", "y = X['a']", "assert len(X) == 1"),
    "an alias of the module": ("X = [1]\nY = X", "X.append(2)", "assert Y == [1, 2]"),
    "a container of it": ("X = [1]\nY = {'x': X}", "X.append(2)", "assert Y['x'] == [1, 2]"),
    "through a method's result": ("X = {'a': [1]}", "for v in X.values():\n        v.append(2)", "assert X['a'] == [1, 2]"),
    "a comprehension of calls": ("X = []", "y = [X.append(i) for i in range(2)]", "assert len(X) == 2"),
    "a bound method": ("X = []", "f = X.append\n    f(1)", "assert X == [1]"),
    "a map": ("X = []", "list(map(X.append, [1]))", "assert X == [1]"),
    "a closure": ("X = []", "def f():\n        X.append(1)\n    f()", "assert X == [1]"),
    "a lambda": ("X = []", "f = lambda: X.append(1)\n    f()", "assert X == [1]"),
    "a file": ("", "with open('left.txt', 'w') as f:\n        f.write('x')", "with open('left.txt') as f:\n        assert f.read() == 'x'"),
    "a file by Path": ("", "Path('left.txt').write_text('x')", "assert Path('left.txt').read_text() == 'x'"),
    "a file of a name": ("PATH = Path('left.txt')", "PATH.write_text('x')", "assert PATH.read_text() == 'x'"),
    "an array in a file": ("", "np.save('left.npy', np.ones(2))", "assert np.load('left.npy').sum() == 2"),
    "a checkpoint": ("", "torch.save({}, 'left.pt')", "assert torch.load('left.pt') == {}"),
    "a name of a module": ("", "math.tau = 3", "assert math.tau == 3"),
    "a walrus in global": ("X = 0", "global X\n    (X := 3)", "assert X == 3"),
    "for target global": ("X = 0", "global X\n    for X in [3]:\n        pass", "assert X == 3"),
    "dict() of a dict": ("X = {'a': {'n': 1}}", "y = dict(X)\n    y['a']['n'] = 7", "assert X['a']['n'] == 7"),
    "copy() of a list": ("X = [[1], [2]]", "y = X.copy()\n    y[0].append(3)", "assert X[0] == [1, 3]"),
    "copy.copy": ("X = Counter()", "y = copy.copy(X)\n    y.inner.append(3)", "assert X.inner == [3]"),
    "a slice": ("X = [[1], [2]]", "for row in X[:1]:\n        row.append(3)", "assert X[0] == [1, 3]"),
    "sorted": ("X = [[2], [1]]", "y = sorted(X)\n    first = y[0]\n    first.append(3)", "assert X[1] == [1, 3]"),
    "stars": ("X = {'a': [1]}", "y = {**X, 'b': []}\n    y['a'].append(3)", "assert X['a'] == [1, 3]"),
    "two dicts as one": ("X = {'a': [1]}", "y = X | {'b': []}\n    y['a'].append(3)", "assert X['a'] == [1, 3]"),
    "a comprehension": ("X = [[1], [2]]", "y = [row for row in X]\n    y[0].append(3)", "assert X[0] == [1, 3]"),
    "a list of it": ("X = [1]", "both = [X, []]\n    both[0].append(3)", "assert X == [1, 3]"),
    "vars": ("X = Counter()", "vars(X)['n'] = 7", "assert X.n == 7"),
    "vars by a name": ("X = Counter()", "inside = vars(X)\n    inside.update(n=7)", "assert X.n == 7"),
    "__dict__": ("X = Counter()", "X.__dict__['n'] = 7", "assert X.n == 7"),
    "object.__setattr__": ("X = Counter()", "object.__setattr__(X, 'n', 7)", "assert X.n == 7"),
    "list.append": ("X = [1]", "list.append(X, 3)", "assert X == [1, 3]"),
    "globals().update": ("X = 1", "globals().update(X=4)", "assert X == 4"),
    "a class's list": ("", "Shelf().keep(1)", "assert Shelf().books == [1]"),
    "a class's list by a name": ("", "s = Shelf()\n    s.keep_by_name(1)", "assert Shelf().books == [1]"),
    "a class's list from outside": ("", "s = Shelf()\n    s.books.append(1)", "assert Shelf().books == [1]"),
    "a class's list made longer": ("", "Shelf().lengthen()", "assert Shelf().books == [1]"),
    "a class's dict": ("", "Shelf('a').enter()", "assert Shelf().log == {'a': 1}"),
    "a class's list in a subclass": ("", "Shelf().keep(1)", "assert Longer().books == [1]"),
    "a class's iterator": ("", "x = Shelf().number()", "assert Shelf().number() == 1"),
    "a class's random numbers": ("", "x = Shelf().throw()", "assert Shelf().throw() < 1"),
    "a class by cls": ("", "Shelf.make()", "assert Shelf().made == 1"),
    "a class by type(self)": ("", "Shelf().make_too()", "assert Shelf.made == 1"),
    "a default kept by __init__": ("", "Shelf().see(1)", "assert Shelf().seen == [1]"),
    "a closure of the module's": ("X = ticker()", "x = X()", "assert X() == 2"),
    "two closures of one state": ("X, Y = two_of_one()", "X()", "assert Y() == 1"),
    "a closure over an iterator": ("X = numbered(3)", "x = X()", "assert X() == 4"),
    "a generator of the lecture's": ("X = numbers()", "x, *_ = X", "assert list(X) == []"),
    "an iterator's method": ("X = itertools.count().__next__", "x = X()", "assert X() == 1"),
    "a generator's method": ("X = random.Random(0)\nY = X.random", "x = Y()", "assert X.random() < 1"),
    "a partial": ("X = itertools.count()\nY = functools.partial(next, X)", "x = Y()", "assert next(X) == 1"),
    "a lambda of the module's": ("X = []\nY = lambda: X.append(1)", "Y()", "assert X == [1]"),
    "a default that is a method": ("", "x = take()", "assert take() == 2"),
    "a default that is a name": ("", "keep(1)", "assert KEPT == [1]"),
    "a default of a method": ("", "Saver().save(1)", "assert Saver().save(2) == [1, 2]"),
    "given to a method": ("X = []", "Saver().fill_up(X)", "assert X == [1]"),
    "torch's generator with a seed": ("X = torch.Generator().manual_seed(0)", "x = torch.randn(3, generator=X)", "assert torch.randn(1, generator=X) < 9"),
    "shown in a comment": ("SEEN = []\n\n\ndef X():\n    SEEN.append(1)\n    return len(SEEN)", "x = 1  # @inspect X()", "assert X() == 2"),
    "a function of a module": ("", "json.dumps = repr", "assert json.dumps([1]) == '[1]'"),
    "a name of a module by setattr": ("", "setattr(math, 'tau', 3)", "assert math.tau == 3"),
    "a name of a module by vars": ("", "vars(math)['tau'] = 3", "assert math.tau == 3"),
    "a name of a module imported inside": ("", "import math as m\n    m.tau = 3", "from math import tau\n    assert tau == 3"),
    "a method of another's class": ("", "fractions.Fraction.__str__ = lambda self: 'x'", "assert str(fractions.Fraction(1, 3)) == 'x'"),
    "of a class under its name": ("from fractions import Fraction", "Fraction.__str__ = lambda self: 'x'", "assert str(fractions.Fraction(1, 3)) == 'x'"),
    "of a class that the reader does not name": ("", "json.JSONEncoder.default = lambda self, x: 1", "assert json.dumps({1: set()}) == '{\"1\": 1}'"),
    "what a cache kept": ("@functools.lru_cache\ndef X(n):\n    return n", "assert X(3) == 3", "assert X(3) == 3 and X.cache_info().hits == 1"),
    "what a cache of a size kept": ("@functools.lru_cache(maxsize=4)\ndef X(n):\n    return n", "assert X(3) == 3", "n = X.cache_info().currsize\n    assert n == 1"),
    "what a cache made by a call kept": ("X = functools.cache(abs)", "assert X(-3) == 3", "assert X.cache_info().currsize == 1"),
    "a match": ("X = [[1]]", "match X:\n        case [y]:\n            y.append(2)", "assert X == [[1, 2]]"),
}  # fmt: skip


def lecture(made: str, changes: str, reads: str) -> str:
    main = "def main():\n    changer()\n    reader()\n"
    sections = f"def changer():\n    {changes}\n\n\ndef reader():\n    {reads}\n"
    return f"{HEAD}{BEFORE}\n\n{made}\n\n\n{main}\n\n{sections}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_that_reads_what_another_changes_is_told_and_runs_after_it(
    kind: str, tmp_path: Path
) -> None:
    text = lecture(*KINDS[kind])
    (told,) = leaning.find_leaning(parse.parse(text))
    assert told.what.startswith("reader reads ") and told.what.endswith("which changer changes")
    assert told.place and told.details[0].startswith("changed at ")
    made = record(tmp_path, text, sections=("reader",))
    assert made.count() == {"holds": 1}
    assert made.asked == ("reader",)


@pytest.mark.parametrize("kind", MORE_KINDS)
def test_whatever_changes_what_another_section_reads_is_told(kind: str, tmp_path: Path) -> None:
    text = lecture(*MORE_KINDS[kind]).replace(BEFORE, OWN + BEFORE, 1)
    told = leaning.find_leaning(parse.parse(text))
    assert told and all(one.what.startswith("reader reads ") for one in told)
    assert record(tmp_path, text, sections=("reader",)).count() == {"holds": 1}


@pytest.mark.parametrize(
    ("made", "changes", "reads"),
    [
        ("X = [1, 2]", "print(X)\n    note(f'{len(X)} of them')", "assert X == [1, 2]"),
        ("X = [1, 2]", "y = sorted(X)\n    y.sort()\n    y.append(3)", "assert X == [1, 2]"),
        ("X = Counter()", "assert X.look() == 0", "assert X.look() == 0"),
        ("X = Counter()", "y = Counter()\n    y.bump()\n    y.put_in(X.n)", "assert X.n == 0"),
        ("X = np.ones(2)", "y = np.add(X, 1)\n    np.add(X, 1, out=y)", "assert X.sum() == 2"),
        ("X = torch.ones(2)", "w = torch.ones(2, requires_grad=True)\n    (w * X).sum().backward()", "assert X.sum() == 2"),
        ("X = [3, 1]", "assert math.tau > X[1]", "assert math.tau > X[1]"),
        ("X = [3]", "Path('a.txt').write_text('x')", "Path('a.txt').write_text('y')\n    assert Path('a.txt').read_text() == 'y'"),
        ("X = 'a'", "note('see a.txt')", "note('see a.txt')\n    assert X == 'a'"),
        ("X = [1]", "assert helper([2]) == 2", "assert helper([3]) == 2"),
        ("X = [1]", "np.testing.assert_allclose(X, [1])", "assert X == [1]"),
        ("X = {'a': [1]}", "y = copy.deepcopy(X)\n    y['a'].append(3)", "assert X['a'] == [1]"),
        ("X = {'a': [1]}", "y = dict(X)\n    y['a'] = [3]\n    y.pop('b', 0)", "assert X['a'] == [1]"),
        ("X = np.zeros((2, 2))", "y = X.copy()\n    y[0][1] = 5", "assert X.sum() == 0"),
        ("X = np.zeros((2, 2))", "y = (X + 1) + X\n    y[0][1] = 5", "assert X.sum() == 0"),
        ("X = [[1], [2]]", "y = [list(row) for row in X]\n    y.append([3])\n    y[0].append(4)", "assert X == [[1], [2]]"),
        ("", "s = Shelf()\n    s.size(1)\n    s.sizes.append(2)", "assert Shelf().sizes == []"),
        ("", "s = Shelf()\n    s.count_own()", "assert Shelf().made == 0 and Shelf().notes == []"),
        ("", "r = Row()\n    r.put_cell(1)", "assert Row().cells == []"),
        ("", "assert remember(-3) == 3", "assert remember(-3) == 3"),
        ("", "assert double(2) == [4]", "assert double(2) == [4]"),
        ("", "assert take(iter([1]).__next__) == 1", "assert take(iter([2]).__next__) == 2"),
        ("", "keep(1, [])", "assert KEPT == []"),
        ("", "Saver().save(1, [])", "assert Saver().save(1, []) == [1]"),
        ("half = lambda x: x / 2", "assert half(2) == 1", "assert half(2) == 1"),
        ("X = functools.cache(abs)", "assert X(-3) == 3", "assert X(-3) == 3"),
        ("X = functools.cache(abs)", "X(-3)\n    X.cache_clear()", "X.cache_clear()\n    assert X(-3) == 3 and X.cache_info().misses == 1"),
        ("", "with unittest.mock.patch('math.pi', 3):\n        assert math.pi == 3", "assert math.pi > 3"),
        ("", "old = math.pi\n    math.pi = 3\n    try:\n        assert math.pi == 3\n    finally:\n        math.pi = old", "assert math.pi > 3"),
        ("from math import tau", "math.tau = 3", "assert tau > 6"),
        ("", "math.tau = 3", "assert math.pi > 3"),
        ("", "y = fractions.Fraction(1, 3)\n    z = y.numerator", "assert fractions.Fraction(1, 3) < 1"),
        ("X = {'a': 1}", "y = X['a'] + X.get('b', 0)", "assert X['a'] == 1"),
    ],
)  # fmt: skip
def test_what_only_looks_at_a_thing_changes_nothing(made: str, changes: str, reads: str) -> None:
    text = lecture(made, changes, reads).replace(BEFORE, OWN + BEFORE, 1)
    assert [one.what for one in leaning.find_leaning(parse.parse(text))] == []


@pytest.mark.parametrize(
    ("made", "changes", "reads"),
    [
        ("X = [1, 2]", "x = list(X)\n    x.append(3)", "assert X == [1, 2]"),
        ("X = [1, 2]", "x = sum(X)\n    x += 1", "assert X == [1, 2]"),
        ("X = [1, 2]", "x = X[:]\n    x.append(3)", "assert X == [1, 2]"),
        ("X = 16, 4", "n = X[0]\n    n //= 2", "assert X[0] == 16"),
        ("X = [1]", "assert X == [1]", "assert X == [1]"),
        ("X = [1]", "X = []\n    X.append(2)", "assert X == [1]"),
        ("X = Model()", "y = X.w[0] + 1", "assert X.w[0] == 0"),
    ],
)
def test_what_changes_nothing_of_the_module_is_no_leaning(made: str, changes: str, reads: str) -> None:
    assert leaning.find_leaning(parse.parse(lecture(made, changes, reads))) == []


def test_what_is_changed_of_others_may_be_put_back() -> None:
    (told,) = leaning.find_leaning(parse.parse(lecture("import math", "math.pi = 3", "assert math.pi == 3")))
    assert "unittest.mock.patch" in told.way_out


SETTINGS = [
    ("torch.set_default_dtype(torch.float64)", "torch.empty(1).dtype == torch.float32"),
    ("torch.set_default_device('meta')", "torch.empty(1).device.type == 'cpu'"),
    ("torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
    ("torch.set_printoptions(precision=2)", "'0.1235' in str(torch.tensor(0.12345))"),
    ("np.seterr(all='raise')", "np.geterr()['divide'] == 'warn'"),
    ("np.set_printoptions(precision=1)", "np.get_printoptions()['precision'] == 8"),
    ("matplotlib.rcParams['font.size'] = 33", "matplotlib.rcParams['font.size'] != 33"),
    ("os.environ['LITBOOK_TEST'] = '1'", "'LITBOOK_TEST' not in os.environ"),
    ("os.chdir('/')", "os.getcwd() != '/'"),
    ("decimal.getcontext().prec = 5", "decimal.getcontext().prec == 28"),
    ("sys.setrecursionlimit(5000)", "sys.getrecursionlimit() != 5000"),
    ("warnings.simplefilter('module')", "warnings.filters[0][0] != 'module'"),
    ("warnings.showwarning = print", "warnings.showwarning is not print"),
    ("logging.captureWarnings(True)", "logging._warnings_showwarning is None"),
    ("logging.getLogger('litbook_test').setLevel(10)", "logging.getLogger('litbook_test').level == 0"),
    ("logging.root.addHandler(logging.NullHandler())", "not any(type(h) is logging.NullHandler for h in logging.root.handlers)"),
    ("logging.disable(50)", "logging.root.manager.disable == 0"),
    ("os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()", "time.tzname[0] != 'JST'"),
    ("os.umask(0o070)", "os.umask(0o022) != 0o070"),
    ("signal.setitimer(signal.ITIMER_VIRTUAL, 50)", "signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0"),
    ("signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL"),
    ("gc.set_threshold(7, 8, 9)", "gc.get_threshold() != (7, 8, 9)"),
    ("gc.disable()", "gc.isenabled()"),
    ("KEPT.set(3)", "KEPT.get() == 0"),
    ("sys.path.insert(0, '/nowhere')", "'/nowhere' not in sys.path"),
    ("sys.argv.append('--left')", "'--left' not in sys.argv"),
    ("sys.stdin = None", "sys.stdin is not None"),
    ("sys.displayhook = sys.excepthook = threading.excepthook = print", "print not in (sys.displayhook, sys.excepthook, threading.excepthook)"),
    ("sys.setswitchinterval(0.5)", "sys.getswitchinterval() < 0.5"),
    ("sys.set_int_max_str_digits(0)", "sys.get_int_max_str_digits() == 4300"),
    ("np.seterrcall(print)", "np.geterrcall() is None"),
    ("np.setbufsize(16384)", "np.getbufsize() == 8192"),
    ("torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True", "not (torch.backends.cudnn.benchmark or torch.backends.cudnn.deterministic)"),
    ("torch.backends.mkldnn.enabled = False", "torch.backends.mkldnn.enabled"),
    ("torch.set_flush_denormal(True)", "torch.tensor(5e-324, dtype=torch.float64).item() > 0"),
    ("torch.set_autocast_enabled('cpu', True)", "not torch.is_autocast_enabled('cpu')"),
    ("torch.set_autocast_dtype('cpu', torch.float16)", "torch.get_autocast_dtype('cpu') == torch.bfloat16"),
    ("torch.set_warn_always(True)", "not torch.is_warn_always_enabled()"),
    ("torch.backends.cuda.enable_flash_sdp(False)", "torch.backends.cuda.flash_sdp_enabled()"),
    ("calendar.setfirstweekday(6)", "calendar.firstweekday() == 0"),
    ("csv.field_size_limit(3)", "csv.field_size_limit() == 131072"),
    ("socket.setdefaulttimeout(5)", "socket.getdefaulttimeout() is None"),
    ("matplotlib.pyplot.figure('left')", "matplotlib.pyplot.get_fignums() == []"),
    ("matplotlib.colormaps.register(matplotlib.colormaps['viridis'], name='left')", "'left' not in matplotlib.colormaps"),
]  # fmt: skip


def test_what_a_section_sets_is_put_back_behind_it(tmp_path: Path) -> None:
    imports = "import calendar, contextvars, csv, decimal, gc, logging, os, signal, socket, sys, threading, time, warnings\n"
    imports += "import matplotlib.pyplot, torch\nimport numpy as np\nKEPT = contextvars.ContextVar('kept', default=0)\n"
    sets, holds = ("\n    ".join(lines) for lines in zip(*SETTINGS, strict=True))
    asserts = holds.replace("\n    ", "\n    assert ")
    text = f"{HEAD}{imports}\n\ndef main():\n    one()\n    two()\n\n\ndef one():\n    {sets}\n\n\n"
    made = record(tmp_path, f"{text}def two():\n    assert {asserts}\n")
    assert messages(made) == []
    assert [claim.text for _, claim in made.claims() if claim.verdict != "holds"] == []


def test_a_lecture_that_leans_is_told_by_a_remark(tmp_path: Path) -> None:
    from litbook.rules.judge import judge
    from litbook.rules.registry import find_rule
    from litbook.rules.subject import Subject

    path = write(tmp_path, lecture(*KINDS["a list"]))
    findings = judge(Subject(path), rules=[find_rule("leans")])
    assert (findings.errors, [one.code for one in findings.warnings]) == ([], ["leans"])
