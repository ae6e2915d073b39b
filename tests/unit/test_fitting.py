"""What fits beside a line: no entry makes a gap in the code, none is lost, and none is said twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litbook.html import margin
from litbook.html.elements import Html
from litbook.markdown.links import Citations, NoteContext
from litbook.page.blocks import AxesPromise, ClaimVerdict, MarginEntry, RaisedError, ShownValue
from litbook.record.model import Series

SETTING = NoteContext(Citations({}))


def entry(width: int) -> ShownValue:
    """An entry of so many characters, two of them its name and a space."""
    return ShownValue("x", "x" * (width - 2))


def drawn(*entries: MarginEntry) -> str:
    return " ".join(margin.html(it, SETTING) for it in entries)


def fit(entries: list[ShownValue], rows: int) -> Html:
    return margin.fit(entries, rows, SETTING)


def test_entries_that_have_rows_of_their_own_stay_as_they_are():
    assert fit([entry(3), entry(4)], 2) == drawn(entry(3), entry(4))


def test_a_long_entry_wraps_over_the_rows_of_its_own_statement():
    assert fit([entry(80)], 2) == drawn(entry(80))


def test_short_entries_of_one_row_stand_side_by_side():
    assert fit([entry(3), entry(4)], 1) == f'<div class="lb-run">{drawn(entry(3), entry(4))}</div>'


def test_a_long_entry_without_room_opens_where_it_stands():
    body = f'<summary><div class="lb-run">{drawn(entry(80))}</div></summary>'
    assert fit([entry(80)], 1) == f'<details class="lb-more lb-m lb-w">{body}</details>'


def test_what_fits_a_wide_margin_is_to_be_opened_only_in_a_narrower_one():
    assert fit([entry(48)], 1).startswith('<details class="lb-more lb-m"><summary>')


def opens(one: MarginEntry) -> str:
    """The widths of the page at which this entry has to be opened, where it has one row."""
    return margin.fit([one], 1, SETTING).partition('"><summary>')[0].removeprefix('<details class="lb-more ')


@pytest.mark.parametrize(
    "text, wide",
    [
        ("x" * 40, False),
        ("中" * 20, False),
        ("中" * 21, True),
        ("e\u0301" * 40, False),
        ("a < b" * 8, False),
        ("x" * 41, True),
    ],
)
def test_characters_are_counted_as_wide_as_they_are(text, wide):
    assert (opens(ShownValue("x", text)) == "lb-m") is wide


SERIES = Series(0, 1, "x", tuple(range(5)), (1.0, 2.0, 3.0, 4.0, 5.0))


@pytest.mark.parametrize(
    "one",
    [
        ShownValue("x", "1" * 30, turns="1,000 turns"),
        ShownValue("x", "1" * 20, turns="9 turns", series=SERIES),
        ShownValue("x", "1" * 30, badge="own storage"),
        ShownValue("x", "1" * 30, measured="Some GPU"),
        ShownValue("x", "1" * 10, elsewhere=(("1", "2"),)),
        ClaimVerdict("holds", "1 = 1" * 9),
        ClaimVerdict("fails", "1 = 1" * 8),
        ClaimVerdict("holds", "1 = 1" * 6, times="1,000 times"),
        ClaimVerdict("needs-device", "", remark="(needs another device, for minutes and minutes)"),
        ClaimVerdict("holds", "", caption="a caption that stands in no line of the code here"),
        RaisedError("ValueError: " + "x" * 40),
    ],
)
def test_everything_that_an_entry_says_takes_room(one):
    assert opens(one).startswith("lb-m")


def test_a_promise_takes_little():
    assert not margin.fit([AxesPromise("x: Float[Tensor, 'a b']")], 1, SETTING).startswith("<details")


@given(st.lists(st.integers(3, 200), min_size=1, max_size=6), st.integers(1, 8))
def test_every_entry_stands_there_once_and_what_needs_more_rows_can_be_opened(lengths, rows):
    made = fit([entry(n) for n in lengths], rows)
    assert made.count("lb-val") == len(lengths)
    for name, room in margin.MARGINS.items():
        running = sum(lengths) + margin.BETWEEN * (len(lengths) - 1)
        stacked = sum(-(-n // room) for n in lengths)
        opened = f"lb-{name}" in made.partition("<summary>")[0]
        assert opened == (min(stacked, -(-running // room)) > rows) or (opened and stacked <= rows)
