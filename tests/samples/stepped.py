"""What the player is compared with plain Python on: folds, views, generators, recursion, deleted names."""
import torch
from litbook import note


def main() -> None:
    folds()
    nested()
    views()
    containers()
    helpers()
    recursion()
    generators()
    deleting()
    handlers()
    closures()


def folds() -> None:
    """Folds"""
    start = 5
    total = 0.0
    for i in range(20):
        half = i / 2
        total = total + half  # @inspect total
        square = half * half
    after = total  # @inspect after
    assert after == 95.0, "sum"
    k = 0
    while k < 30:
        k += 1
        last = k * 2  # @inspect last, start + 1
    done = k


def nested() -> None:
    """Nested"""
    pairs = 0
    for i in range(7):
        inner = 0
        for j in range(8):
            inner += i * j
            pairs += 1
        row = inner  # @inspect row
    note(f"There were {pairs} pairs.")
    end = pairs


def views() -> None:
    """Views"""
    x = torch.arange(6.0).view(2, 3)  # @inspect x
    y = x.T  # @inspect y
    n = x.numel()
    x[0][0] = 100
    z = x.clone()
    y[2, 1] = 50
    bits = x.view(torch.int32)
    bits[0, 0] = 7
    flat = x.flatten()
    flat.mul_(2)
    x.t_()
    y.add_(1)
    x.data = torch.zeros(2)
    w = x
    w += 1  # @inspect w, x.sum().item(), n * 2
    assert x.sum().item() == 2.0, "ones"
    s = x.shape


def containers() -> None:
    """Containers"""
    xs = [1, 2]
    ys = xs
    ys.append(3)
    t = (1, 2)
    pair = (xs, 1)
    xs.pop()
    d = {"a": xs}  # @inspect d, len(xs)
    d["b"] = 2
    xs.clear()
    q = t
    class Box:
        pass
    b = Box()
    b.n = 3
    b.n = 4  # @inspect b.n
    m = b.n


def double(v: int, out: list) -> int:
    """Twice."""
    w = 2 * v
    out.append(w)
    return w


def helpers() -> None:
    """Helpers"""
    out = []
    a = 1
    a = double(a, out)  # @inspect a
    b = double(a, out) + double(3, out)
    for i in range(8):
        a = double(i, out)
    c = [double(i, out) for i in range(9)]
    d = len(c)
    assert double(d, out) == 18, "18"
    assert len(out) == 21, "all"


def fact(n: int) -> int:
    """n!"""
    if n < 2:
        one = 1
        return one
    below = fact(n - 1)
    result = n * below
    return result


def recursion() -> None:
    """Recursion"""
    f = fact(4)
    f = fact(3)  # @inspect f
    g = f + 1


def count(n: int):
    """Counts."""
    i = 0
    while i < n:
        seen = i * i
        yield seen
        i += 1
    end = i


def generators() -> None:
    """Generators"""
    total = 0
    for v in count(9):
        total += v
    g = squares()
    a = next(g)
    b = next(g)
    rest = list(g)
    c = a + b


def squares():
    """Squares."""
    k = 1
    yield k
    k = k + 3
    yield k
    k = k + 5
    yield k


def deleting() -> None:
    """Deleting"""
    x = 3  # @inspect x, x + 1
    y = x
    del x
    z = y
    xs = [1]  # @inspect xs
    del xs
    x = 4
    with open("/dev/null") as f:
        name = f.name


def handlers() -> None:
    """Handlers"""
    e = 1
    try:
        n = 1
        n = 1 // 0
    except ZeroDivisionError as e:
        text = str(e)  # @inspect text, str(e)
        m = 2
    k = n
    if (w := k + 1) > 1:
        u = w
    w = 5
    v = w
    while (w := w - 1) > 2:
        r = w  # @inspect w
    p = r


def closures() -> None:
    """Closures"""
    n = 0
    def inc() -> None:
        nonlocal n
        n += 1
    inc()
    m = n  # @inspect n
    inc()
    k = m
    h = 1  # @hide
    h = 2
    h = 3  # @hide
    p = h
