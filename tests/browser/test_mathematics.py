"""Formulas on a machine without a font for mathematics: the one that the pages bring, from a file as from a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.running import REPO

from litbook.markdown import mathml

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

ASSETS = REPO / "tools/litbook/html/assets"
LETTERS = r"\mathbb{E}\,\mathcal{L}\,\mathbf{W}\,\alpha\Omega\,\nabla\partial\,\leftarrow\Rightarrow\,\le\approx\in\odot"


@pytest.fixture(scope="module")
def drawn(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Where some parts of formulas stand, and the fonts that drew the letters and signs of another."""
    folder: Path = tmp_path_factory.mktemp("math")
    shown = [
        mathml.mathml(r"\sum_{i=1}^{n} i", "block")[0],
        mathml.mathml(r"\sum_{i=1}^{n} i", "inline")[0],
        mathml.mathml(r"\left(\frac{1}{2}\right)^n", "block")[0],
        mathml.mathml(LETTERS, "block")[0],
    ]
    style = (ASSETS / "litbook.css").as_uri()
    lines = "".join(f"<p>{it}</p>" for it in shown)
    file = folder / "page.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{style}">{lines}', "utf-8"
    )
    page = browser.new_page()
    try:
        page.goto(file.as_uri())
        page.evaluate("document.fonts.ready")
        made: dict[str, dict[str, float]] = page.evaluate(
            """() => Object.fromEntries(["sum", "over", "under", "beside", "bracket", "half"].map((name, i) => {
                const at = ["p:nth-of-type(1) munderover > mo", "p:nth-of-type(1) munderover > :nth-child(3)",
                    "p:nth-of-type(1) munderover > :nth-child(2)", "p:nth-of-type(2) mo",
                    "p:nth-of-type(3) mo", "p:nth-of-type(3) mfrac"][i];
                const {top, bottom, height} = document.querySelector(at).getBoundingClientRect();
                return [name, {top, bottom, height}];
            }))"""
        )
        session = page.context.new_cdp_session(page)
        session.send("DOM.enable")
        session.send("CSS.enable")
        root = session.send("DOM.getDocument")["root"]["nodeId"]
        letters = {"nodeId": root, "selector": "p:nth-of-type(4) :is(mi, mo)"}
        families: set[str] = set()
        for node in session.send("DOM.querySelectorAll", letters)["nodeIds"]:
            fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
            families |= {it["familyName"] for it in fonts}
    finally:
        page.close()
    return made, families


def test_the_limits_of_a_sum_do_not_touch_it(drawn):
    assert drawn[0]["over"]["bottom"] <= drawn[0]["sum"]["top"]
    assert drawn[0]["under"]["top"] >= drawn[0]["sum"]["bottom"]


def test_a_sum_of_its_own_is_larger_than_one_in_a_line_and_brackets_grow(drawn):
    assert drawn[0]["sum"]["height"] > 1.25 * drawn[0]["beside"]["height"]
    assert drawn[0]["bracket"]["height"] >= drawn[0]["half"]["height"]


def test_all_letters_and_signs_are_from_one_font(drawn):
    assert drawn[1] == {"STIX Two Math"}
