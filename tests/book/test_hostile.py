"""A hostile book in a real browser: whatever a lecture holds is text, is shown, and runs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

LECTURE = r'''
"""Lecture 66: </title><script>window.__pwned = 1</script> & 中文 🦀"""

import warnings

import matplotlib.pyplot as plt
import torch
from jaxtyping import Float
from torch import Tensor

from litbook import figure, misbelief, note, question

EVIL = "</script><script>window.__pwned = 2</script><img src=x onerror='window.__pwned = 3'>"
TURNED = "abc\u202e\u2066gpj.exe\u2069\u200b"


def main() -> None:
    texts()
    shapes()
    extremes()


def texts() -> None:
    """A heading with </h2><svg onload="window.__pwned = 4"> and `{{ code }}` and 标题"""
    note("Prose </script><script>window.__pwned = 5</script> and [a link](javascript:window.__pwned=6) & \"quotes\" 'too'.")
    note("Turned \u202e around \u2066 here, and {{ braces }} {% raw %}.")
    evil = EVIL  # @inspect evil
    turned = TURNED  # @inspect turned
    quotes = "\"'`<&>"  # @inspect quotes
    long = "x" * 100_000  # @inspect long
    变量 = {"键 🦀": "值</td><script>window.__pwned = 7</script>"}  # @inspect 变量
    print("</pre><script>window.__pwned = 8</script>" + TURNED)
    print("y" * 100_000)
    assert evil == EVIL, "</span><script>window.__pwned = 9</script> \u202e 成立 🎉"
    assert len(long) == 100_000, "long " * 200
    misbelief("<img src=x onerror=window.__pwned=10>", "</p><script>window.__pwned = 11</script>")
    question("<b onclick=window.__pwned=12>?", answer=EVIL)
    figure(drawn("</text><script>window.__pwned = 13</script>"), caption="<script>window.__pwned = 14</script>", alt="\"><script>window.__pwned = 15</script>")
    very = "a very long line of code: " + "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"  # @inspect len(very)


def drawn(title: str) -> plt.Figure:
    fig, axes = plt.subplots(figsize=(2, 1))
    axes.set_title(title.replace("$", ""))
    return fig


def shapes() -> None:
    """Tensors of every kind"""
    none = torch.zeros(0, 3)  # @inspect none
    scalar = torch.tensor(2.5)  # @inspect scalar
    lone = torch.zeros(1, 1, 1)  # @inspect lone
    nans = torch.full((2, 3), float("nan"))  # @inspect nans
    mixed = torch.tensor([[float("nan"), float("inf")], [-float("inf"), -0.0]])  # @inspect mixed
    waves = torch.tensor([[1 + 2j, -0.5j], [complex("nan"), 1e20 + 1e-20j]])  # @inspect waves
    flags = torch.tensor([[True, False], [False, True]])  # @inspect flags
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed = torch.quantize_per_tensor(torch.tensor([[0.5, 1.0], [1.5, 2.0]]), 0.1, 0, torch.qint8)  # @inspect packed
    cube: Float[Tensor, "批 行 列"] = torch.arange(24.0).view(2, 3, 4)  # @inspect cube
    block = torch.randn(5, 20, 30)  # @inspect block
    deep = torch.randn(2, 2, 2, 2, 2)  # @inspect deep
    line = torch.arange(100)  # @inspect line
    huge = torch.tensor([[1e30, -1e-30], [3.0, 123456.789]])  # @inspect huge
    whole = torch.tensor([[2**62, -(2**62)], [1, 0]])  # @inspect whole
    bytes_ = torch.arange(6, dtype=torch.uint8).view(2, 3)  # @inspect bytes_
    small = torch.arange(6.0).view(2, 3)  # @inspect small
    tall = small.t()  # @inspect tall
    rows = small[:, ::2]  # @inspect rows
    same = small[0].expand(3, 3)  # @inspect same
    back = small.view(3, 2)  # @inspect back
    nothing = torch.empty(3, 4, device="meta")  # @inspect nothing
    sparse = torch.eye(3).to_sparse()  # @inspect sparse
    brain = torch.randn(3, 3, dtype=torch.bfloat16)  # @inspect brain


def extremes() -> None:
    """Nested 150 deep, 10,000 characters, 200 claims"""
    note(NESTED)
    note("> " * 150 + "quoted")
    nested = within = []  # @inspect nested
    for _ in range(150):
        within.append([])
        within = within[0]
    assert nested == nested[:1], "one list in one list"  # @inspect nested
    letters, other = "x" * 10_000, "y" * 10_000
    assert letters != other, "caption" * 1500
    assert len("WIDE") == 10_000 and letters.isalpha()
CLAIMS


NESTED = "\n".join("    " * level + "- item" for level in range(150))
'''.replace("WIDE", "w" * 10_000).replace(
    "CLAIMS", "\n".join(f"    assert len(letters) > {i}, 'claim {i}'" for i in range(200))
)


@pytest.fixture(scope="module")
def hostile(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    (root / "docs").mkdir()
    (root / "lectures").mkdir()
    (root / "docs" / "index.md").write_text("# Start\n", encoding="utf-8")
    (root / "lectures" / "lecture_66.py").write_text(LECTURE.lstrip(), encoding="utf-8")
    own = (repo / "mkdocs.yml").read_text(encoding="utf-8")
    own = own.replace(" docs/hooks/", f" {repo}/docs/hooks/")
    own = own.partition("\nnav:\n")[0].replace("strict: true", "")
    (root / "mkdocs.yml").write_text(
        f"{own}\nnav:\n  - Start: index.md\n  - Lectures: []\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


@pytest.fixture(params=[1280, 390])
def page(hostile: Path, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The lecture's page, opened from its file; whatever runs or complains is in `page.trouble`."""
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    trouble: list[str] = []

    def asked(dialog: Dialog) -> None:
        trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", asked)
    # Material looks for a search index that only its plugin for use without a server writes.
    page.on("pageerror", lambda e: None if "search_index.js" in str(e) else trouble.append(str(e)))
    page.goto((hostile / "lectures" / "lecture_66" / "index.html").as_uri())
    yield page
    assert page.evaluate("window.__pwned") is None
    assert trouble == []
    page.close()


def test_nothing_runs_and_nothing_becomes_an_element(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    page.evaluate("document.querySelectorAll('article a:not([href]), article b').forEach((it) => it.click())")
    found = page.evaluate(
        """() => [...document.querySelectorAll('*')].filter((it) =>
          (it.tagName === 'SCRIPT' && /^\\s*window.__pwned/.test(it.textContent)) ||
          /^\\s*javascript:\\s*window/i.test(it.getAttribute('href') || '') || [...it.attributes].some((a) =>
          a.name.startsWith('on') && a.value.includes('pwned'))).map((it) => it.outerHTML.slice(0,
          120))"""
    )
    assert found == []


def test_titles_are_shown_as_they_are_written(page: Page) -> None:
    title = "Lecture 66: </title><script>window.__pwned = 1</script> & 中文 🦀"
    assert page.locator("article h1").inner_text() == title
    assert page.title().startswith(title)
    assert (
        page.evaluate(
            "document.querySelector('.md-nav__item--active .md-ellipsis, .md-nav__item--active').textContent"
        ).find(title)
        >= 0
    )


OPEN = "document.querySelectorAll('article details').forEach((it) => { it.open = true; })"


def test_values_prose_captions_and_output_are_shown_as_they_are(page: Page) -> None:
    text = page.locator("article").inner_text()
    for wanted in (
        'A heading with </h2><svg onload="window.__pwned = 4">',
        "Prose </script><script>window.__pwned = 5</script> and",
        "Turned ⟨U+202E⟩ around ⟨U+2066⟩ here, and {{ braces }} {% raw %}.",
        "evil \"</script><script>window.__pwned = 2</script><img src=x onerror='window.__pwned = 3'>\"",
        r"turned 'abc\u202e\u2066gpj.exe\u2069\u200b'",
        "值</td><script>window.__pwned = 7</script>",
        "</pre><script>window.__pwned = 8</script>abc⟨U+202E⟩⟨U+2066⟩gpj.exe⟨U+2069⟩⟨U+200B⟩",
        "</span><script>window.__pwned = 9</script> ⟨U+202E⟩ 成立 🎉",  # the sentence of a claim
        "<img src=x onerror=window.__pwned=10>",
        "</p><script>window.__pwned = 11</script>",
        "<script>window.__pwned = 14</script>",
    ):
        assert wanted in text
    page.evaluate(OPEN)
    text = page.locator("article").inner_text()
    assert r"</span><script>window.__pwned = 9</script> \u202e 成立 🎉" in text, "its caption in the code"
    hidden = [c for c in text if c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b"]
    assert hidden == []


def test_every_kind_of_tensor_has_its_line_and_its_grid(page: Page) -> None:
    lines = {it.split(" ")[0]: it for it in page.locator(".lb-v .lb-val").all_text_contents()}
    assert lines["none"] == "none float32 [0, 3] · 0 B"
    assert lines["scalar"] == "scalar 2.5 · float32"
    assert lines["packed"] == "packed qint8 [2, 2] · 4 B"
    assert lines["nothing"].startswith("nothing float32 [3, 4] · 48 B · meta")
    assert lines["cube"].startswith("cube float32 [批 2, 行 3, 列 4] · 96 B")
    grids = {
        it.get_attribute("aria-label"): it.locator("td").all_text_contents()
        for it in page.locator(".lb-grid").all()
    }
    assert grids["values of nans"] == ["nan"] * 6
    assert grids["values of mixed"] == ["nan", "inf", "-inf", "−0"]
    assert grids["values of waves"] == ["1+2j", "−0−0.5j", "nan+0j", "1e+20+1e−20j"]
    assert grids["values of flags"] == ["True", "False", "False", "True"]
    assert grids["values of cube[1]"] == [str(n) for n in range(12, 24)]
    assert "values of packed" not in grids
    assert grids["values of block[0]"].count("⋮") == 8, "a cut corner"
    assert page.locator(".lb-grid td.odd").count() >= 9, "NaN and inf have no shade"


def test_the_page_is_no_wider_than_the_window(page: Page) -> None:
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(fits)
    page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    assert page.evaluate(fits), "all unfolded"


def test_two_hundred_claims_and_one_of_ten_thousand_characters_are_all_on_the_page(page: Page) -> None:
    sentences = [" ".join(it.split()) for it in page.locator(".lb-sentence").all_inner_texts()]
    assert [it for it in sentences if "claim" in it] == [f"holds: claim {i}" for i in range(200)]
    assert page.locator(".lb-sentence", has_text="w" * 10_000).is_visible(), "the test of one without caption"
    page.evaluate(OPEN)
    text = page.locator("article").inner_text()
    assert [i for i in range(200) if f"claim {i}'" not in text] == []
    assert text.count("w" * 10_000) >= 2, "the code is whole"
    assert page.locator("article li").count() < 150, "so deep a list is shown as it is written"


def test_long_values_and_outputs_can_be_read_on(page: Page) -> None:
    whole = page.locator("details.lb-whole").filter(has_text="long,")
    assert (whole.locator("pre").text_content() or "").startswith("'" + "x" * 1000)
    box = page.locator(".lb-output pre").bounding_box()
    assert box is not None
    assert box["height"] < 600
