"""A value shows itself by Jupyter's display protocol, and what it shows is harmless on a page."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sympy
from PIL import Image
from tests.running import record, remarks, section

import litbook.display.drawing  # noqa: F401  it draws what `cards` shows
from litbook.html import media, page, safe_svg
from litbook.record.encoding import dumps, loads
from litbook.record.limits import SHOWN
from litbook.record.model import Opaque, Piece
from litbook.record.recordings import trim
from litbook.rules import outcome
from litbook.snapshot import snapshot as snapshots
from litbook.snapshot.snapshot import snapshot
from litbook.values import cards

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8"/></svg>'


def shows(**methods: Any) -> Any:
    """The snapshot of an object whose class has these methods."""
    return snapshot(type("Thing", (), {"__repr__": lambda _: "a thing", **methods})(), shows=True)


def gives(said: object) -> Any:
    return lambda self, **_: said


# ------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize(
    ("methods", "media", "form"),
    [
        ({"_repr_svg_": gives(SVG)}, "image/svg+xml", SVG),
        ({"_repr_png_": gives(PIXEL)}, "image/png", base64.b64encode(PIXEL).decode()),
        ({"_repr_png_": gives((PIXEL, {"width": 1}))}, "image/png", base64.b64encode(PIXEL).decode()),
        ({"_repr_latex_": gives("$x$")}, "text/latex", "$x$"),
        ({"_repr_html_": gives("<b>1</b>")}, "text/html", "<b>1</b>"),
        ({"_repr_mimebundle_": gives({"image/svg+xml": SVG, "text/html": "no"})}, "image/svg+xml", SVG),
        ({"_repr_mimebundle_": gives(({"text/html": "<p>"}, {}))}, "text/html", "<p>"),
        ({"_repr_html_": gives("<p>"), "_repr_latex_": gives("$y$")}, "text/latex", "$y$"),
        ({"_repr_svg_": None, "_repr_html_": gives("<p>")}, "text/html", "<p>"),
        ({"_repr_svg_": gives(None), "_repr_html_": classmethod(lambda _: "<i>")}, "text/html", "<i>"),
        ({"_repr_html_": gives("\ud800")}, "text/html", "\\ud800"),
    ],
)
def test_a_value_shows_itself_in_the_first_form_that_a_page_may_show(methods, media: str, form: str) -> None:
    shot = shows(**methods)
    assert (shot.text, shot.media, shot.form, shot.why) == ("a thing", media, form, "")


@pytest.mark.parametrize(
    ("methods", "why"),
    [
        ({"_repr_html_": lambda self: 1 / 0}, "_repr_html_ raised ZeroDivisionError"),
        ({"_repr_html_": gives("x" * (SHOWN + 1))}, "_repr_html_ gave 262,145 bytes; up to 262,144 are kept"),
        (
            {"_repr_mimebundle_": gives({"text/html": "<SCRIPT>1</SCRIPT>"})},
            "_repr_mimebundle_ needs a script: a page shows a still picture, SVG or PNG",
        ),
    ],
)
def test_where_a_form_cannot_be_kept_the_text_says_why(methods, why: str) -> None:
    shot = shows(**methods)
    assert (shot.text, shot.form, shot.why) == ("a thing", "", why)


def test_a_form_that_does_not_come_is_not_waited_for(monkeypatch) -> None:
    monkeypatch.setattr(snapshots, "SHOWING", 0.05)
    began = time.monotonic()
    shot = shows(_repr_html_=lambda self: time.sleep(60))
    assert (shot.text, shot.why) == ("a thing", "_repr_html_ took longer than 0.05 s")
    assert time.monotonic() - began < 30  # half of what it would sleep


@pytest.mark.parametrize(
    "methods",
    [
        {},
        {"_repr_svg_": gives(7), "_repr_png_": gives(b"GIF"), "_repr_mimebundle_": gives([])},
        {"_repr_mimebundle_": gives({"text/plain": "x", "application/json": {}})},
        {"__getattr__": lambda self, name: gives("<b>")},
    ],
)
def test_what_is_no_form_is_no_error(methods) -> None:
    shot = shows(**methods)
    assert (shot.text, shot.form, shot.why) == ("a thing", "", "")


def test_numbers_containers_and_what_nobody_asked_to_see_are_not_asked() -> None:
    def never(self: object) -> str:
        raise AssertionError

    number = type("Number", (int,), {"_repr_html_": never})(7)
    assert snapshot(number, shows=True).text == "7"  # type: ignore[union-attr]
    thing = type("Thing", (), {"_repr_html_": never})()
    assert snapshot([thing], shows=True).items[0].why == ""  # type: ignore[union-attr]
    assert snapshot(thing).why == ""  # type: ignore[union-attr]


def test_libraries_show_themselves() -> None:
    root = sympy.sqrt(sympy.Symbol("x"))
    assert snapshot(root, shows=True) == Opaque(
        "sympy.core.power.Pow", "sqrt(x)", media="text/latex", form=r"$\displaystyle \sqrt{x}$"
    )
    image: Any = snapshot(Image.new("RGB", (2, 1)), shows=True)
    assert (image.media, image.text) == ("image/png", "<PIL.Image.Image image mode=RGB size=2x1>")


def test_a_plain_object_is_shown_by_its_fields() -> None:
    class Plain:
        def __init__(self) -> None:
            self.rate, self.inner = 0.5, object()

    shot: Any = snapshot(Plain(), shows=True)
    assert [(key.text, item.text) for key, item in zip(shot.keys, shot.items, strict=True)] == [
        ("rate", "0.5"),
        ("inner", "<object object>"),
    ]
    assert snapshot(Plain()).text.endswith("Plain object>")  # type: ignore[union-attr]


def test_a_dataclass_that_shows_itself_does_so() -> None:
    @dataclass
    class Row:
        n: int = 1

        def _repr_html_(self) -> str:
            return "<b>1</b>"

    assert snapshot(Row(), shows=True).form == "<b>1</b>"  # type: ignore[union-attr]


TABLE = """
    class Table:
        asked = 0

        def _repr_html_(self):
            Table.asked += 1
            return "<table><tr><td>1</td></tr></table>"

        def __repr__(self):
            return "a table of many words, so that it does not fit beside the line"


    def held(_):
        inside = Table()  # @inspect inside
        return inside
"""


def test_a_value_is_asked_once_where_a_page_shows_it_and_never_in_a_loop_or_a_helper(tmp_path: Path) -> None:
    body = """
        t = Table()  # @inspect t
        for i in range(3):
            u = Table()  # @inspect u
        held(1)
        asked = Table.asked  # @inspect asked
    """
    made = record(tmp_path, section(body, TABLE))
    it = made.by_key["one"]
    forms_ = [shot.form for shot in it.snapshots if isinstance(shot, Opaque)]
    assert [form for form in forms_ if form] == ["<table><tr><td>1</td></tr></table>"]
    assert [it.snapshots[v.value].text for v in it.values if v.text == "asked"] == ["1"]  # type: ignore[index, union-attr]
    assert loads(dumps(made)) == made
    assert not any(getattr(shot, "form", "") for shot in trim(made).by_key["one"].snapshots)
    body = page.pages(made)["index.md"]
    assert '<b>t</b> <span class="lb-text">Table</span>' in body
    assert (
        '<div class="lb-scroll" tabindex="0"><table class="lb-table"><tbody><tr><td>1</td></tr></tbody></table></div>'
        in body
    )


# ------------------------------------------------------------------------ what a page shows of it


def drawn(media: str, form: str) -> str:
    return cards.display("x", Opaque("lib.Thing", "its text", media=media, form=form), "f1-", "../")


HOSTILE = """<style>body{display:none}</style><table onclick="x()" id="top" class="md-nav" style="color:red">
<tr><td colspan="2"><a href="javascript:x()">one</a><img src="https://a.b/c.png" onerror="x()"></td></tr></table>
<iframe src="https://a.b"></iframe><svg><script>x()</script></svg><form><input></form>\u202e"""


def test_html_keeps_its_table_and_nothing_that_runs_loads_or_styles() -> None:
    body = drawn("text/html", HOSTILE)
    assert '<td colspan="2">one</td>' in body and "⟨U+202E⟩" in body and "\n" not in body
    for gone in (
        "style",
        "onclick",
        "id=",
        "md-nav",
        "javascript",
        "https",
        "iframe",
        "script",
        "form",
        "<svg",
    ):
        assert gone not in body


def test_a_picture_a_formula_and_what_is_neither() -> None:
    assert '<math display="block">' in drawn("text/latex", r"$\displaystyle \frac{a}{b}$")
    assert "<rect" in drawn("image/svg+xml", SVG) and 'aria-label="x: its text"' in drawn(
        "image/svg+xml", SVG
    )
    assert '<img src="../pictures/' in drawn("image/png", base64.b64encode(PIXEL).decode())
    for media_type, form in [
        ("image/svg+xml", "<html/>"),
        ("image/png", "AAAA"),
        ("image/png", "!"),
        ("text/latex", r"\frac{"),
        ("text/html", "<script>1</script>"),
        ("text/javascript", "alert(1)"),
    ]:
        assert drawn(media_type, form).endswith("<pre>its text</pre></figure>")


# ------------------------------------------------------------------------ pictures as files


def uri(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def test_a_picture_is_a_file_named_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    made = record(
        tmp_path, section('image("dot.png", alt="A dot.", width=40)\nimage("dot.png", alt="Again.")')
    )
    ((name, content),) = media.files([made]).items()
    assert content == PIXEL and name.startswith("pictures/") and name.endswith(".png")
    body = page.pages(made)["index.md"]
    assert f'<img src="{name}" alt="A dot." width="40" loading="lazy" />' in body
    assert f'<img src="{name}" alt="Again." loading="lazy" />' in body and "base64" not in body


@pytest.mark.parametrize(
    "data",
    [
        "https://a.b/c.png",
        "javascript:x",
        uri(b"<html>", "png"),
        "data:image/png;base64,A",
        uri(b"<svg", "svg+xml"),
    ],
)
def test_what_is_no_picture_is_no_file(data: str) -> None:
    with pytest.raises(safe_svg.NotAPicture):
        media.picture(data, "a", "")


def test_a_drawing_from_elsewhere_runs_nothing_where_it_is_opened_by_itself(tmp_path: Path) -> None:
    hostile = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script><style>@import "a"</style>'
        '<a href="javascript:x()"><text>no</text></a><foreignObject/><style>.a{fill:red}</style>'
        '<use href="https://a.b/c#d"/><rect class="a" fill="url(https://a.b)" onclick="x()"/></svg>'
    )
    (tmp_path / "a.svg").write_text(hostile)
    (content,) = media.files([record(tmp_path, section('image("a.svg", alt="A."))'[:-1]))]).values()
    assert content == (
        b'<svg xmlns="http://www.w3.org/2000/svg"><style /><style>.a{fill:red}</style><use /><rect class="a" /></svg>'
    )


@pytest.mark.parametrize(
    "style",
    [
        "background-image: url(https://a.b/c.png)",
        "cursor: url('https://a.b/c.cur'), auto",
        'background-image: image-set("https://a.b/c.png" 1x)',
        'mask-image: -webkit-image-set("https://a.b/c.png" 1x)',
        'mask-image: image("https://a.b/c.png")',
        'background: src("https://a.b/c.png")',
        "mask-image: cross-fade(red, 'https://a.b/c.png')",
        "background-image: u\\72l(https://a.b/c.png)",
    ],
)
def test_a_drawing_asks_for_nothing_elsewhere(style: str) -> None:
    quoted = style.replace('"', "&quot;")
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg"><style>.a{{{style}}}</style><rect style="{quoted}"/>'
        "<rect fill=\"url('#b')\" style='fill: red'/></svg>"
    )
    data = f"data:image/svg+xml;base64,{base64.b64encode(drawing.encode()).decode()}"
    _, content = media._file(data)
    assert b"a.b" not in content and b"fill: red" in content and b"#b" in content
    inline = safe_svg.inline(drawing, "A.", "f-")
    assert "a.b" not in inline and "fill: red" in inline and "#f-b" in inline


def test_texts_in_a_row_say_their_style_once() -> None:
    """A group says it, but not what a group would not hand on; the picture is the same."""
    red, pale = 'style="fill:red"', 'style="fill:red;opacity:.5"'
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg"><g><text {red} x="1">a<tspan>b</tspan>c</text><text {red}>d</text>'
        f"<text>e</text><text {red}>f</text><path {red}/><path {red}/><text {pale}>g</text><text {pale}>h</text></g></svg>"
    )
    inline = safe_svg.inline(drawing, "A.", "f-")
    assert f'<g><g {red}><text x="1">a<tspan>b</tspan>c</text><text>d</text></g><text>e</text>' in inline
    assert f"<text {red}>f</text><path {red}></path><path {red}></path>" in inline
    assert f"<text {pale}>g</text><text {pale}>h</text></g></svg>" in inline


def test_a_large_picture_is_a_remark_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(PIXEL + bytes(1_200_000))
    made = record(tmp_path, section('image("big.png", alt="A wall.")'))
    (said,) = remarks(made)
    assert said == (
        "lecture_sample.py:11: a picture of 1,200,070 bytes: A wall.\n"
        "    every reader loads it: fewer pixels, JPEG or WebP take less"
    )
    assert outcome.holds(made) and isinstance(made.by_key["one"].pieces[0], Piece)
