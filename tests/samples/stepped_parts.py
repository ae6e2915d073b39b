"""What the player is compared with plain Python on, in parts: objects, aliases, dtypes, hidden ways of change."""
import collections
import contextlib
import copy
import functools
import numpy as np
import torch
from litbook import note

COUNT = 0
TABLE = {}


def main() -> None:
    module_names()
    objects()
    loops()
    loops2()
    numpy_views()
    matching()
    managers()
    calling()
    claims_again()
    unpacking()
    aliases()
    stepping_over()
    raising()
    gens2()
    outer()
    dtypes()
    deep()


def bump() -> int:
    """One more."""
    global COUNT
    COUNT += 1
    TABLE[COUNT] = COUNT
    return COUNT


def module_names() -> None:
    """Module"""
    a = bump()  # @inspect COUNT, TABLE
    b = a + 1
    bump()
    c = COUNT  # @inspect COUNT + 1
    bump()
    d = len(TABLE)
    assert COUNT == 3, "three"
    bump()
    e = d


class Counter:
    """Counts."""

    total = 0

    def __init__(self, n: int) -> None:
        self.n = n
        self.log = []

    def up(self, by: int) -> int:
        """More."""
        before = self.n
        self.n += by
        self.log.append(before)
        Counter.total += 1
        return self.n

    @property
    def double(self) -> int:
        """Twice; and changes."""
        self.n += 1
        return 2 * self.n


def objects() -> None:
    """Objects"""
    c = Counter(1)
    d = c
    r = d.up(3)  # @inspect c.n, c.log, Counter.total
    k = c.n
    r = c.up(2)
    log = c.log
    d.log.append(9)
    w = c.double
    v = c.n  # @inspect v, len(log), log
    assert c.n == 7, "seven"
    c.up(1)
    assert len(c.log) == 4, "four"
    z = v


def loops() -> None:
    """Loops"""
    found = -1
    seen = []
    for i in range(50):
        if i % 7 == 3:
            continue
        seen.append(i)
        if i == 40:
            found = i
            break
    else:
        found = -2
    n = found
    xs = [3, 1, 2]
    while xs:
        head = xs.pop()
        size = len(xs)
    m = size
    for a, (b, *rest) in [(1, (2, 3)), (4, (5, 6, 7))]:
        s = a + b
    for key in {"p": 1, "q": 2}:
        last = key
        del s
        s = 2
    t = s
    for i in range(9):
        for j in range(9):
            if j == 5:
                break
            p = i * j
        q = p  # @inspect p
    u = q


def loops2() -> None:
    """Loops"""
    best = 0
    name = "none"
    for i in range(12):
        name = f"run {i}"
        if i == 6:
            best = i
        third = best + 1  # @inspect third
    z = best
    state = "a"
    for i in range(12):
        state = state + "b" if i < 4 else state  # @inspect state
        keep = 5
    y = state
    x = 1
    for _ in range(6):
        x = x * 2
        for _ in range(6):
            x = x + 1  # @inspect x
    w = x


def numpy_views() -> None:
    """Numpy"""
    a = np.arange(6.0)
    b = a.reshape(2, 3)  # @inspect b
    t = torch.from_numpy(a)
    t[0] = 5
    b[1, 2] = 9  # @inspect a, t
    c = a.view(np.int64)
    c[1] = 3
    a.shape = (3, 2)
    s = a.shape
    a.sort()
    d = b.sum()
    x = np.float32(3)
    y = x
    a += 1  # @inspect a
    e = d


def matching() -> None:
    """Match"""
    a = 1
    b = 2
    match [5, {"k": 6}]:
        case [a, {"k": b}]:
            c = a + b  # @inspect a, b
    d = c
    a = [n for n in range(3)]
    if any((last := n) > 1 for n in a):
        e = last  # @inspect last
    f = lambda q: q + 1
    g = f(2)
    x: int = 3
    y: int
    y = 4
    z = x + y


@contextlib.contextmanager
def managed(into: list):
    """Around."""
    n = 1
    into.append("in")
    yield n
    n = 2
    into.append("out")


def managers() -> None:
    """Managers"""
    log = []
    with managed(log) as m:
        inside = m  # @inspect log
        k = len(log)
    after = len(log)
    try:
        n = 1
    finally:
        n = 2
    o = n


def grow(x: list, n: int = 3) -> list:
    """Grows."""
    for i in range(n):
        x.append(i)
        size = len(x)
    return x


def calling() -> None:
    """Calling"""
    a = []
    b = grow(a)  # @inspect a
    c = grow(grow(b, 7), 8)
    n = len(a)
    d = [grow(a, 1) for _ in range(9)]
    m = len(a)
    x = torch.zeros(3)
    y = x[1:]
    scale(y)
    z = x.sum().item()  # @inspect x, y
    scale(x)
    w = z


def scale(t: torch.Tensor) -> None:
    """In place."""
    u = t
    u += 1
    t.mul_(2)
    k = t.numel()


def check(n: int) -> None:
    """Helper."""
    m = n + 1
    for i in range(m):
        k = i


def claims_again() -> None:
    """Claims"""
    for i in range(8):
        j = i * i
        assert j == i * i, "square"
        assert i >= 0
    k = 3
    assert k == 3, "three"
    k = 4
    check(k)
    assert j == 49 and k == 4, "both"
    j = 0
    m = k


def unpacking() -> None:
    """Unpacking"""
    a, *b = [1, 2, 3]
    (c, d), e = (4, 5), 6
    a, c = c, a
    x = y = [0]
    y.append(1)
    y[0] = x
    f = g = 7
    f += 1
    h = f"{f}"
    del f, g
    i = h
    t = (1, (2, "x"), frozenset({1}))
    u = t
    v = range(3)
    w = v


def aliases() -> None:
    """Aliases"""
    d = {"a": [1]}
    inner = d["a"]  # @inspect d
    inner.append(2)
    keys = d.keys()
    d["b"] = 3
    n = len(keys)
    s = {1, 2}  # @inspect s
    s2 = s
    s2 |= {3}
    k = len(s)
    q = collections.deque([1, 2])
    q.popleft()
    by = bytearray(b"ab")
    by2 = by
    by2[0] = 99
    z = by[0]
    o = copy.copy(q)
    o.append(5)
    it = iter([1, 2])
    one = next(it)
    two = next(it)
    f = functools.partial(max, 1)
    lst = [[0] * 2] * 2
    lst[0][0] = 7  # @inspect lst
    lst[1][1] = 8
    p = lst[0]


def stepping_over() -> None:
    """Over"""
    xs = []
    n = 1
    grow(xs, 2)  # @stepover
    m = len(xs)
    for i in range(7):  # @stepover
        n = n + i
        xs.append(n)
    k = n
    g = numbers()
    a = next(g)
    b = next(g)  # @stepover
    c = next(g)
    d = a + b + c


def numbers():
    """Numbers."""
    i = 0
    i = i + 1
    yield i
    i = i + 10
    yield i
    j = i
    i = i + 100
    yield i


def fails(n: int) -> int:
    """Raises."""
    m = n
    if n == 0:
        raise ValueError("no")
    return fails(n - 1)


def raising() -> None:
    """Raising"""
    x = 1
    y = [1]
    for i in range(8):
        try:
            x = i
            x = fails(i % 3)
        except ValueError as error:
            y.append(x)
            seen = str(error)
        finally:
            done = i
    e = x
    k = seen


def tree(n: int):
    """Recursive."""
    if n:
        yield from tree2(n)
    here = n
    yield here


def tree2(n: int):
    """Recursive."""
    low = n * 10
    yield low
    low = low + 1
    yield low


def gens2() -> None:
    """Generators"""
    all_ = []
    for v in tree(3):
        all_.append(v)
        w = v
    pairs = list(zip(all_, all_))
    total = sum(all_)
    z = total


def outer() -> None:
    """Outer"""
    a = 1
    inner_section()
    b = a + 1


def inner_section() -> None:
    """Inner"""
    a = 100
    c = a + 1  # @inspect c


def dtypes() -> None:
    """Dtypes"""
    x = torch.arange(1.0, 5.0)  # @inspect x
    i = x.view(torch.int32)  # @inspect i
    d = x.dtype
    i[0] = 0
    h = x.view(torch.uint8)[4:8]
    h.zero_()
    s = x.sum()
    t = x.clone()  # @inspect x, i
    b = x.view(2, 2)
    b[0] = 7.0
    c = b.T
    c[1, 1] = 3
    v = x[::2]
    v -= 1  # @inspect v
    x.zero_()
    w = v.stride()
    del x
    c.add_(2)
    x = torch.zeros(2)
    x.fill_(3)
    c.sub_(1)  # @inspect c


def hanoi(n: int, a: list, b: list, c: list) -> None:
    """Moves."""
    if n == 0:
        return
    hanoi(n - 1, a, c, b)
    disk = a.pop()
    b.append(disk)
    top = b[-1]
    hanoi(n - 1, c, b, a)


def deep() -> None:
    """Deep"""
    a, b, c = [3, 2, 1], [], []
    hanoi(3, a, b, c)
    n = len(b)
    assert b == [3, 2, 1], "moved"
    b.clear()
    m = n
