"""Above code a page says what the helpers and constants are that neither the section nor its prose tells."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from tests.running import record

from litbook.html import page

LECTURE = '''
    """Lecture."""
    from litbook import note, requires

    WIDTH, LAYERS = 4, 2
    TOTAL = LAYERS * WIDTH  # parameters
    LONG = [
        1,
    ]
    TWICE = 1
    TWICE = 2
    DOWN = lambda n: n and DOWN(n - 1)


    def area(side):
        """The area of a square of `side` <metres>."""
        return side * side


    def silent(side):
        return side


    def secret(side):  # @hide
        """Its double."""
        return 2 * side


    def main():
        one()
        two()
        three()


    def one():
        """One."""
        note("Text.")
        total = area(TOTAL) + silent(len(LONG)) + TWICE + secret(1)
        assert total == 69
        note("More.")
        assert area(WIDTH) == 16 and DOWN(3) == 0


    def two():
        """Two."""
        note("The function `area` squares, and areas are `LAYERS`.")
        TOTAL = area(LAYERS)

        def silent(side):
            """A function of this section's own."""
            return side

        assert silent(TOTAL) == 4


    @requires("cuda")
    def three():
        """Three, whose note says what it says without a GPU, too."""
        note("A square has `area(side)`.")
        assert area(2) == silent(4)
'''


def legends(text: str) -> list[list[str]]:
    """The lines of each legend, in order."""
    lists = re.findall('<ul class="lb-legend">(.*?)</ul>', text, re.S)
    return [[html.unescape(re.sub("<[^>]+>", "", line)) for line in it.split("</li>")[:-1]] for it in lists]


@pytest.fixture
def body(tmp_path: Path) -> str:
    return page.pages(record(tmp_path, LECTURE))["index.md"]


def test_what_code_names_is_told_once_a_section_above_it_unless_its_prose_does(body: str) -> None:
    assert legends(body) == [
        ["area: The area of a square of side <metres>", "secret: Its double", "WIDTH, LAYERS = 4, 2",
         "TOTAL = LAYERS * WIDTH  # parameters"],
        ["DOWN = lambda n: n and DOWN(n - 1)"],
        ["WIDTH, LAYERS = 4, 2"],
    ]  # fmt: skip


def test_a_legend_stands_between_the_prose_and_the_code(body: str) -> None:
    one = body[body.index("Text.") :]
    assert one.index("lb-legend") < one.index('class="lb-code"') < one.index("More.")


def test_a_helper_leads_to_its_definition_and_a_hidden_one_nowhere(body: str) -> None:
    links = re.findall(r'<li>(?:<a href="#(\w+)">)?<code>(\w+)</code>(?:</a>)?: ', body)
    assert [name for _, name in links] == ["area", "secret"]
    assert links[1][0] == "" and f'id="{links[0][0]}"' in body


def test_in_a_folder_a_legend_says_what_other_files_and_modules_beside_it_give(tmp_path: Path) -> None:
    folder = tmp_path / "lecture_sample"
    folder.mkdir()
    (tmp_path / "tallies.py").write_text("HOUR = 3600  # s\n", encoding="utf-8")
    (folder / "sizes.py").write_text(
        'from tallies import HOUR\n\nDAY = 24 * HOUR\n\n\ndef half(x):\n    """Half of it."""\n    return x / 2\n',
        encoding="utf-8",
    )
    (folder / "part.py").write_text(
        "from .sizes import DAY as LENGTH\nfrom .sizes import half\n\n\n"
        'def one():\n    """One."""\n    assert half(LENGTH) == 43200\n',
        encoding="utf-8",
    )
    text = '"""Lecture."""\nfrom .part import one\n\n__beside__ = ("tallies",)\n\n\ndef main():\n    one()\n'
    made = record(tmp_path, text, "lecture_sample/__init__.py")
    (body,) = (text for text in page.pages(made).values() if "lb-legend" in text)
    assert legends(body) == [["half: Half of it", "HOUR = 3600  # s", "DAY = 24 * HOUR"]]
