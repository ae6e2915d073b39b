"""What a jaxtyping annotation promises, and whether a tensor keeps the promise.

jaxtyping itself judges dtype, rank and fixed sizes (`isinstance`); the names are followed here, because
a claim must say *which* size was another one before, and where. So are sizes that are computed from
names (`seq-1`), which jaxtyping knows inside a decorated function only.

`sizes` maps a name to its size and the line that gave it, within one call of a section.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from litbook.lecture.claims import spells_axes
from litbook.python.nodes import dotted, unquote

Sizes = dict[str, tuple[int, int]]

_PLAIN = re.compile(r"[#?]?\*?(\w+(=\d+)?|\.\.\.)$")  # anything else is computed: `seq-1`, `{n}`, `min(a,b)`


def axis_names(dims: str, ndim: int | None) -> tuple[str, ...] | None:
    """One name per axis for a jaxtyping dimension string such as `"batch *heads 3 _"`.

    None where the string does not fit `ndim` axes. Axes under a `*name` or `...` are numbered.
    """
    words = _words(dims, ndim)
    return None if words is None else tuple(_name(word) for word in words)


def layout_of(value: Any) -> object:
    """The sizes and steps of an array's axes: what turns it in place, `x.t_()`, changes one of them."""
    with contextlib.suppress(Exception):
        steps = getattr(value, "stride", None)
        return tuple(value.shape), tuple(steps() if callable(steps) else value.strides)
    return None


def remember(dims: str, shape: tuple[int, ...], sizes: Sizes, line: int) -> None:
    """Keep the sizes of the axes that are named; a broadcast axis (`#batch`) of size 1 says nothing."""
    for word, size in zip(_words(dims, len(shape)) or (), shape, strict=False):
        name = _name(word)
        if name.isidentifier() and name != "_" and not (word.startswith("#") and size == 1):
            sizes.setdefault(name, (int(size), line))


def mismatch(annotation: Any, value: Any, dims: str, sizes: Sizes) -> str:
    """Why `value` is not what `annotation` promises, or ""."""
    shape = getattr(value, "shape", None)
    dtype = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
    if shape is None:
        return f"a {type(value).__name__} is no array"
    wanted = getattr(annotation, "__name__", str(annotation))
    try:
        given = dims.split()
        plain = [word if _PLAIN.match(word) else "_" for word in given]
        if plain != given:  # a size that is computed is judged below
            annotation = annotation.dtype[annotation.array_type, " ".join(plain)]
        if not isinstance(value, annotation):
            return f"{dtype}{tuple(shape)} is no {wanted}"
    except Exception as error:
        return f"the annotation cannot be checked: {error}"
    here = dict(sizes)
    remember(dims, shape, here, 0)
    words = _words(dims, len(shape)) or ()
    return next(filter(None, map(_wrong_size, words, shape, [here] * len(words))), "")


def axes_annotation(annotation: Any) -> str:
    """The jaxtyping annotation that another one means, or has among its alternatives; "" where none is."""
    meant = getattr(annotation, "__value__", annotation)  # of `type Row = ...`
    if isinstance(meant, str):  # a name for a text: `Row = 'Float[Tensor, "a"]'`
        match unquote(quoted := ast.Constant(meant)):
            case ast.Subscript(named) if spells_axes(quoted):
                theirs = vars(sys.modules.get("jaxtyping", object))
                return meant if dotted(named).rpartition(".")[2] in theirs else ""
        return ""
    if get_origin(meant) in (Union, UnionType, Annotated):
        return next(filter(None, map(axes_annotation, get_args(meant))), "")
    return str(meant.__name__) if isinstance(getattr(meant, "dim_str", None), str) else ""


def _wrong_size(word: str, size: int, sizes: Sizes) -> str:
    if not _PLAIN.match(word):  # it is computed
        try:
            wanted = eval(word.lstrip("#"), {}, {name: before for name, (before, _) in sizes.items()})
        except Exception as error:
            return f"the annotation cannot be checked: axis {word!r}: {error}"
        return "" if wanted == size else f"axis {word!r} has {size} elements here, and {word} is {wanted}"
    before = sizes.get(_name(word))
    if before is None or before[0] == size or (word.startswith("#") and size == 1):
        return ""
    return f"axis {_name(word)!r} has {size} elements here and had {before[0]} on line {before[1]}"


def _words(dims: str, ndim: int | None) -> tuple[str, ...] | None:
    """One word of `dims` per axis (`#*h` over two is `#h0`, `#h1`); None where they do not fit."""
    words = dims.split()
    many = [i for i, word in enumerate(words) if "..." in word or "*" in word.lstrip("#?")[:1]]
    if ndim is None or len(many) > 1:
        return None
    if not many:
        return tuple(words) if len(words) == ndim else None
    at, spread = many[0], ndim - (len(words) - 1)
    if spread < 0:
        return None
    stem = words[at].replace("*", "").replace("...", "_")
    middle = (stem if _name(stem) == "_" else f"{stem}{i}" for i in range(spread))
    return (*words[:at], *middle, *words[at + 1 :])


def _name(word: str) -> str:
    """`#batch` broadcasts and `batch=3` fixes, but the axis is called `batch`."""
    return word.lstrip("#?").split("=")[0]
