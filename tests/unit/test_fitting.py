"""What fits beside a line: no note makes a gap in the code, and none is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litbook.render import fitting, markup
from litbook.render.markup import Html


def note(text: str) -> Html:
    return markup.tag("div", markup.text(text), class_="lb-val")


def wide(it: fitting.Fitted) -> str:
    """The page where the margin has 56 characters: its notes, cut, shared or gone."""
    return " ".join(re.findall(r"lb-w-(?:cut|in|gone)", it.beside))


def test_short_notes_stay_as_they_are():
    it = fitting.fit([note("x 1"), note("y 2")], 2, 7)
    assert it == fitting.Fitted(markup.join([note("x 1"), note("y 2")], markup.SPACE), markup.NOTHING)


def test_a_long_note_wraps_where_the_lines_after_it_are_free():
    assert fitting.fit([note("x" * 80)], 2, 7).below == ""


def test_a_long_note_without_room_is_cut_and_stands_whole_below_with_its_line():
    it = fitting.fit([note("x" * 80)], 1, 7)
    assert it.beside == f'<div class="lb-fit lb-m-cut lb-w-cut">{note("x" * 80)}</div>'
    assert it.below == f'<div class="lb-m lb-w"><span class="lb-k">7</span><div>{note("x" * 80)}</div></div>'


def test_what_fits_a_wide_margin_is_cut_only_in_a_narrower_one():
    it = fitting.fit([note("x" * 48)], 1, 7)
    assert 'class="lb-fit lb-m-cut"' in it.beside
    assert it.below.startswith('<div class="lb-m"><')


def test_short_notes_of_one_line_share_a_row():
    it = fitting.fit([note("x 1"), note("y 2")], 1, 7)
    assert wide(it) == "lb-w-in lb-w-in"
    assert it.below == ""


def test_notes_without_a_row_stand_below_and_the_margin_says_how_many():
    it = fitting.fit([note("x" * 36), note("y" * 40), note("z" * 40)], 1, 7)
    assert wide(it) == "lb-w-gone lb-w-gone"
    assert re.search('<span class="lb-on lb-w" aria-hidden="true"[^<>]*>[+]2 ↓</span>', it.beside)
    assert "yyy" in it.below
    assert "zzz" in it.below
    assert it.below.count(">7<") == 1, "the line's number stands once"


def test_of_a_claim_whose_caption_fits_only_the_sides_are_repeat():
    sides = markup.tag("small", markup.text("1" * 64), class_="lb-sides")
    claim = markup.tag("div", markup.text("✓ caption "), sides, class_="lb-claim")
    assert f'<div><small class="lb-sides">{"1" * 64}</small></div>' in fitting.fit([claim], 1, 7).below


def test_what_is_repeated_holds_no_link_and_no_name():
    link = markup.tag("a", markup.text("link"), href="#b")
    it = fitting.fit([markup.tag("div", markup.text("x" * 60), link, id="a")], 1, 7)
    assert "link" in it.below
    assert "href" not in it.below
    assert "id=" not in it.below


@pytest.mark.parametrize(
    "text, characters", [("abc", 3), ("中文", 4), ("é", 1), ("a &lt; b", 5), ("<b>x</b>", 1)]
)
def test_characters_are_counted_as_wide_as_they_are(text, characters):
    assert fitting.width(text) == characters


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), st.integers(1, 8))
def test_the_margin_never_needs_more_rows_than_it_has(lengths, free):
    notes = [note("x" * n) for n in lengths]
    it = fitting.fit(notes, free, 1)
    for name, room in fitting.MARGINS.items():
        rows, left, shared = 0, 0, False
        for n, body in zip(
            lengths, re.split(r"(?<=</div>) (?=<div class=\"lb-(?:val|fit))", it.beside), strict=True
        ):
            state = re.search(rf"lb-{name}-(cut|in|gone)", body)
            if state is None:
                rows, shared = rows + -(-n // room), False
            elif state[1] == "cut":
                rows, shared = rows + 1, False
            elif state[1] == "in":
                fits = shared and n + fitting.BETWEEN <= left
                rows, left, shared = (
                    (rows, left - n - fitting.BETWEEN, True) if fits else (rows + 1, room - n, True)
                )
        assert rows <= free
        lost = len(re.findall(rf"lb-{name}-(?:cut|gone)", it.beside))
        assert len(re.findall(rf'<div class="(?:lb-m )?lb-{name}\b', it.below)) == lost
