"""Figures as SVG: shorter than Matplotlib writes them, and the same picture."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from litbook.probe import svg

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="60pt" viewBox="0 0 90 60">{}</svg>'
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")


def compact(inside: str) -> str:
    whole = svg.compact(SVG.format(inside))
    return whole[whole.index(">") + 1 : -len("</svg>")]


def absolute(path: str) -> list[tuple[float, float]]:
    """The points of a path, by the rules of SVG: small letters are relative, and hold until the next one."""
    points: list[tuple[float, float]] = []
    x = y = start_x = start_y = 0.0
    for letter, rest in re.findall(r"([mlhvqczMLHVQC])([^mlhvqczMLHVQC]*)", path):
        numbers = [float(n) for n in NUMBER.findall(rest)]
        size = {"m": 2, "l": 2, "h": 1, "v": 1, "q": 4, "c": 6, "z": 0}[letter.lower()]
        if letter == "z":
            x, y = start_x, start_y
        for i in range(0, len(numbers), size or 1):
            some = numbers[i : i + size]
            at_x, at_y = (x, y) if letter.islower() else (0.0, 0.0)
            if letter in "hH":
                points.append((at_x + some[0], y))
            elif letter in "vV":
                points.append((x, at_y + some[0]))
            else:
                points += [(at_x + a, at_y + b) for a, b in zip(some[::2], some[1::2], strict=True)]
            x, y = points[-1]
        if letter in "mM":
            start_x, start_y = x, y
    return points


coordinate = st.integers(-99_999, 99_999).map(lambda n: n / 100)
point = st.tuples(coordinate, coordinate)
segment: st.SearchStrategy[tuple[str, list[tuple[float, float]]]] = st.one_of(
    st.tuples(st.just("M"), st.lists(point, min_size=1, max_size=1)),
    st.tuples(st.just("L"), st.lists(point, min_size=1, max_size=1)),
    st.tuples(st.just("Q"), st.lists(point, min_size=2, max_size=2)),
    st.tuples(st.just("C"), st.lists(point, min_size=3, max_size=3)),
    st.just(("z", [])),
)


@given(point, st.lists(segment, max_size=12))
def test_a_path_keeps_its_points(first, segments):
    whole = [("M", [first]), *segments]
    text = " ".join(f"{letter} " + " ".join(f"{x} {y}" for x, y in points) for letter, points in whole)
    expected = [p for _, points in whole for p in points]
    short = svg._path(text)
    assert len(short) <= len(text)
    found = absolute(short)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a == pytest.approx(b, abs=0.005)


def test_a_straight_line_is_short():
    assert svg._path("M 10 20 L 15.5 20 L 15.5 18 L 10 18 z ") == "m10 20h5.5v-2H10z"


@pytest.mark.parametrize("path", ["M 1 2 A 5 5 0 0 1 3 4", "m 1 2 l 3 4", "M 1 2 L 3", "M 1 2 X 3 4"])
def test_a_path_that_matplotlib_does_not_write_stays(path):
    assert svg._path(path) == path


def test_what_cannot_be_seen_goes_and_what_is_only_unfilled_stays():
    assert compact('<path d="M 1 1 z" style="fill: none; opacity: 0"/>') == ""
    assert 'fill-opacity:0"' in compact('<path d="M 1 1 z" style="stroke: red; fill-opacity: 0"/>')
    assert "stroke-opacity:0;" in compact('<path d="M 1 1 z" style="stroke-opacity: 0; fill: red"/>')
    assert compact("<metadata>2026</metadata><defs><style>* {fill: red}</style></defs>") == ""


def test_text_is_kept_to_the_letter_and_its_font_is_said_once():
    style = "font-size: 10px; font-family: 'A', 'B', sans-serif"
    inside = f'<g id="x"><text style="{style}">a  id="b"\n <tspan>c</tspan> d</text><text style="{style}; fill: red">e</text></g>'
    short = compact(inside)
    assert 'a  id="b"\n <tspan>c</tspan> d</text>' in short
    assert short.count("sans-serif") == 1
    assert "font-family=\"'A',sans-serif\"" in short
    assert '<text style="fill:red">e</text>' in short


def test_ids_and_what_refers_to_them_are_of_this_picture_alone():
    inside = '<defs><path id="a" d="M 0 0"/></defs><g clip-path="url(#a)"><path id="b" d="M 1 1"/></g>'
    ids = re.findall(r' id="([^"]+)"', compact(inside))
    assert [re.sub(r"^[0-9a-f]+-", "", it) for it in ids] == ["a"]  # nothing refers to b
    assert f"url(#{ids[0]})" in compact(inside)
    assert re.findall(r' id="([^"]+)"', compact(inside + '<rect width="1"/>')) != ids


def busy() -> Figure:
    """A figure with one of nearly everything."""
    figure = Figure(figsize=(6, 4))
    (a, b), (c, d) = figure.subplots(2, 2)
    a.plot([0, 1, 3, 2], [1, 4, 2, 8], "o--", label="$x^2$")
    a.fill_between([0, 1, 2], [0, 1, 0], alpha=0.3, hatch="//")
    a.legend(title="of lines")
    b.bar(["one", "two"], [3, 1], color=["#b3421f", "none"], edgecolor="#16794c")
    b.annotate("here", (0, 3), (1, 2), arrowprops={"arrowstyle": "->"}, rotation=30, fontsize=7)
    c.imshow([[0, 1], [2, 3]])
    c.set_title("a <title> & more", fontsize=14)
    d.scatter([1, 2, 3], [3, 1, 2], s=[20, 80, 200], c=[1, 2, 3], alpha=0.5)
    d.set(xscale="log", xlabel="über  µs")
    return figure


def written(figure: Figure) -> str:
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight")
    text = file.getvalue()
    return text[text.index("<svg") :]


def test_a_figure_takes_three_quarters_or_less_and_is_svg():
    short = svg.svg(busy())
    assert len(short) < 0.75 * len(written(busy()))
    assert ET.fromstring(short).tag.endswith("svg")
    assert "<style" not in short
