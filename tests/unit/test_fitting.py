"""What fits beside a line: no note makes a gap in the code, none is lost, and none is said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litbook.render import fitting, markup
from litbook.render.markup import Html


def note(text: str) -> Html:
    return markup.tag("div", markup.text(text), class_="lb-val")


def test_notes_that_have_rows_of_their_own_stay_as_they_are():
    assert fitting.fit([note("x 1"), note("y 2")], 2) == f"{note('x 1')} {note('y 2')}"


def test_a_long_note_wraps_over_the_rows_of_its_own_statement():
    assert fitting.fit([note("x" * 80)], 2) == note("x" * 80)


def test_short_notes_of_one_row_stand_side_by_side():
    assert (
        fitting.fit([note("x 1"), note("y 2")], 1) == f'<div class="lb-run">{note("x 1")} {note("y 2")}</div>'
    )


def test_a_long_note_without_room_opens_where_it_stands():
    body = f'<summary><div class="lb-run">{note("x" * 80)}</div></summary>'
    assert fitting.fit([note("x" * 80)], 1) == f'<details class="lb-more lb-m lb-w">{body}</details>'


def test_what_fits_a_wide_margin_is_to_be_opened_only_in_a_narrower_one():
    assert fitting.fit([note("x" * 48)], 1).startswith('<details class="lb-more lb-m"><summary>')


@pytest.mark.parametrize(
    "text, characters", [("abc", 3), ("中文", 4), ("é", 1), ("a &lt; b", 5), ("<b>x</b>", 1)]
)
def test_characters_are_counted_as_wide_as_they_are(text, characters):
    assert fitting.width(text) == characters


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6), st.integers(1, 8))
def test_every_note_stands_there_once_and_what_needs_more_rows_can_be_opened(lengths, rows):
    notes = [note("x" * n) for n in lengths]
    it = fitting.fit(notes, rows)
    assert it.count("x") == sum(lengths)
    for name, room in fitting.MARGINS.items():
        running = sum(lengths) + fitting.BETWEEN * (len(lengths) - 1)
        stacked = sum(-(-n // room) for n in lengths)
        opens = f"lb-{name}" in it.partition("<summary>")[0]
        assert opens == (min(stacked, -(-running // room)) > rows) or (opens and stacked <= rows)
