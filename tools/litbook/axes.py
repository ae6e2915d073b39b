"""What a jaxtyping annotation promises, and whether a tensor keeps the promise.

jaxtyping itself judges dtype, rank and fixed sizes (`isinstance`); the names are followed here, because
a claim must say *which* size was another one before, and where.
"""

from __future__ import annotations

from typing import Any


def axis_names(dims: str, ndim: int | None) -> tuple[str, ...] | None:
    """One name per axis for a jaxtyping dimension string such as `"batch *heads 3 _"`.

    None where the string does not fit `ndim` axes. Axes under a `*name` or `...` are numbered.
    """
    words = dims.split()
    if ndim is None:
        return None
    many = [i for i, word in enumerate(words) if word == "..." or word.lstrip("#").startswith("*")]
    if not many:
        return tuple(_name(word) for word in words) if len(words) == ndim else None
    spread = ndim - (len(words) - 1)
    if len(many) > 1 or spread < 0:
        return None
    at = many[0]
    stem = words[at].strip("#*") if words[at] != "..." else "_"
    middle = [f"{stem}{i}" if stem != "_" else "_" for i in range(spread)]
    return (*map(_name, words[:at]), *middle, *map(_name, words[at + 1 :]))


def _name(word: str) -> str:
    """`#batch` broadcasts and `batch=3` fixes, but the axis is called `batch`."""
    return word.lstrip("#?").split("=")[0]


def mismatch(
    annotation: Any,
    value: Any,
    dims: str,
    names: tuple[str, ...] | None,
    sizes: dict[str, tuple[int, int]],
) -> str:
    """Why `value` is not what `annotation` promises, or "". `sizes` maps a name to (size, line)."""
    shape = getattr(value, "shape", None)
    dtype = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
    if shape is None:
        return f"a {type(value).__name__} is no array"
    try:
        fits = isinstance(value, annotation)
    except Exception as error:  # noqa: BLE001  symbolic sizes need a context that a statement does not have
        return f"the annotation cannot be checked: {error}"
    if not fits:
        wanted = getattr(annotation, "__name__", str(annotation))
        return f"{dtype}{tuple(shape)} is no {wanted}"
    for name, size in zip(names or (), shape, strict=False):
        before = sizes.get(name)
        if before is not None and before[0] != size:
            return f"axis {name!r} has {size} elements here and had {before[0]} on line {before[1]}"
    return ""
