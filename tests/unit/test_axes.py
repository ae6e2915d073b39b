"""Axis names and sizes, on strings and stand-ins; what jaxtyping itself judges is in `test_recorder.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litbook.probe.axes import Sizes, axis_names, mismatch, remember


@pytest.mark.parametrize(
    ("dims", "ndim", "names"),
    [
        ("batch seq", 2, ("batch", "seq")),
        ("batch seq", 3, None),
        ("batch seq", None, None),
        ("", 0, ()),
        ("batch=3 4 _", 3, ("batch", "4", "_")),
        ("#batch ?tree", 2, ("batch", "tree")),
        ("*heads dim", 3, ("heads0", "heads1", "dim")),
        ("*heads dim", 1, ("dim",)),
        ("#*heads dim", 2, ("heads0", "dim")),
        ("*heads dim", 0, None),
        ("a ... b", 4, ("a", "_", "_", "b")),
        ("a *b *c", 3, None),
        ("seq-1 2*seq min(a,b)", 3, ("seq-1", "2*seq", "min(a,b)")),
    ],
)
def test_every_axis_has_one_name(dims: str, ndim: int | None, names: tuple[str, ...] | None) -> None:
    assert axis_names(dims, ndim) == names


WORDS = st.sampled_from(["a", "b", "_", "3", "#c", "d=4", "*e", "...", "a+1"])


@given(st.lists(WORDS, max_size=6), st.integers(0, 8))
def test_there_are_as_many_names_as_axes_or_none(words: list[str], ndim: int) -> None:
    names = axis_names(" ".join(words), ndim)
    assert names is None or len(names) == ndim


def test_sizes_are_remembered_with_the_line_that_gave_them_first() -> None:
    sizes: Sizes = {}
    remember("batch 4 _ ... n+1", (2, 4, 5, 6, 3), sizes, 10)
    remember("batch seq", (2, 7), sizes, 20)
    assert sizes == {"batch": (2, 10), "seq": (7, 20)}


def test_a_broadcast_one_is_not_remembered() -> None:
    sizes: Sizes = {}
    remember("#a #b", (1, 3), sizes, 1)
    assert sizes == {"b": (3, 1)}


class Fits(type):
    """The type of an annotation that every value fits."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class Shaped:
    dtype = "torch.float32"

    def __init__(self, *shape: int) -> None:
        self.shape = shape


ANY = Fits("ANY", (), {})


@pytest.mark.parametrize(
    ("dims", "shape", "why"),
    [
        ("a b", (2, 3), ""),
        ("a a", (2, 2), ""),
        ("b a", (2, 3), "axis 'b' has 2 elements here and had 3 on line 7"),
        ("#b", (1,), ""),
        ("#b", (2,), "axis 'b' has 2 elements here and had 3 on line 7"),
        ("*h b", (9, 9, 3), ""),
    ],
)
def test_a_name_keeps_its_size(dims: str, shape: tuple[int, ...], why: str) -> None:
    sizes: Sizes = {"a": (2, 5), "b": (3, 7)}
    assert mismatch(ANY, Shaped(*shape), dims, sizes) == why
    assert sizes == {"a": (2, 5), "b": (3, 7)}  # judging remembers nothing


def test_what_has_no_shape_is_no_array() -> None:
    assert mismatch(ANY, [1, 2], "a", {}) == "a list is no array"


def test_an_annotation_that_raises_cannot_be_checked() -> None:
    class Raises(type):
        def __instancecheck__(cls, instance: object) -> bool:
            raise RuntimeError("odd")

    assert mismatch(Raises("R", (), {}), Shaped(1), "a", {}) == "the annotation cannot be checked: odd"
