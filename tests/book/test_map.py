"""The contents of a lecture in parts: a map of its steps; and the page of all its questions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.running import HEAD, record

from litbook.html import page
from litbook.record.model import Record

PART = """

def {name}():
    \"\"\"{title}.\"\"\"
    {name}_inside()


def {name}_inside():
    \"\"\"Inside of {name}.\"\"\"
    question("What is {n} and {n}?", answer={n} + {n}, check={n} * 2, why="Twice {n}, see [here](#{name}_inside).")
"""
PARTS = "".join(
    PART.format(name=name, title=name.capitalize(), n=n)
    for n, name in enumerate(("first", "second", "third"), 1)
)


def lecture(folder: Path, *main: str) -> Record:
    return record(folder, f"{HEAD}\n\ndef main():\n" + "".join(f"    {line}\n" for line in main) + PARTS)


def test_the_notes_right_before_parts_are_the_steps_of_the_map(tmp_path: Path) -> None:
    steps = (
        "note('Welcome.')",
        "note('**Now.** Why?')",
        "first()",
        "second()",
        "note('**Then.** What?')",
        "third()",
    )
    contents = page.pages(lecture(tmp_path, *steps))["index.md"]
    before, opened, drawn = contents.partition('<ol class="lb-map" style="--lb-columns:2">')
    assert opened and "Welcome." in before and "Why?" not in before
    boxes = drawn.split('<li class="lb-step">')[1:]
    assert [re.findall(r'<a href="(?!questions)(\w+)/">', box) for box in boxes] == [
        ["first", "second"],
        ["third"],
    ]
    assert "Why?" in boxes[0] and "What?" in boxes[1] and "claim" not in drawn.partition("lb-foot")[0]


@pytest.mark.parametrize(
    "main", [("first()", "second()", "third()"), ("note('Welcome.')", "first()", "second()", "third()")]
)
def test_without_steps_the_contents_are_the_parts_alone(tmp_path: Path, main: tuple[str, ...]) -> None:
    contents = page.pages(lecture(tmp_path, *main))["index.md"]
    assert "lb-map" not in contents and contents.count('class="lb-part"') == 3
    assert ("Welcome." in contents) == ("note('Welcome.')" in main)


def test_all_questions_stand_on_one_page_and_lead_to_where_they_are_asked(tmp_path: Path) -> None:
    made = lecture(tmp_path, "first()", "second()", "third()")
    pages = page.pages(made)
    asked = pages["questions.md"]
    assert ("questions.md", "Questions") in page.titles(
        made
    ) and '<a href="questions/">All 3 questions' in pages["index.md"]
    assert re.findall(r'<p class="lb-asktitle"><a href="([^"]*)">', asked) == [
        f"../{name}/#{name}_inside" for name in ("first", "second", "third")
    ]
    assert asked.count('data-page="../second/"') == 1
    assert asked.count('<details class="lb-open lb-answer">') == 3  # folded, and there without a script
    assert 'see <a href="../first/#first_inside">here</a>' in asked
    assert page.pages(made, only="questions.md") == {"questions.md": asked}


def test_a_lecture_that_asks_nothing_has_no_page_of_questions(tmp_path: Path) -> None:
    silent = re.sub(r"    question\(.*", "    x = 1", PARTS)
    made = record(tmp_path, f"{HEAD}\n\ndef main():\n    first()\n    second()\n    third()\n{silent}")
    assert "questions.md" not in page.pages(made)
