"""The author's words as the text knows them: the same arguments as the functions take, and what each says unrun."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from tests.running import record, section

from litbook.errors import AuthorError
from litbook.html import page as pages
from litbook.lecture.author_words import WORDS, piece_texts, static_text
from litbook.probe import author


@pytest.mark.parametrize("name", WORDS)
def test_the_prose_of_a_word_is_in_arguments_that_its_function_has(name: str) -> None:
    parameters = list(inspect.signature(getattr(author, name)).parameters)
    fields = WORDS[name].fields
    assert {place for place in fields if isinstance(place, str)} <= set(parameters)
    for place in (place for place in fields if isinstance(place, int)):
        assert fields[parameters[place]] == fields[place], "by position as by name"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("note('a')", "a"),
        ("question('how many?', answer=1)", "**Check yourself.** how many?"),
        ("misbelief('a', 'b')", "**Commonly said:** “a”\n\n**Run:** b"),
        ("figure(f, caption='c', alt='d')", "**A drawing:** c"),
        ("link('https://a.example', 'there')", "[there](https://a.example)"),
        ("print('a')", ""),
    ],
)
def test_a_piece_that_never_ran_says_what_stands_in_its_text(call: str, text: str) -> None:
    (statement,) = ast.parse(call).body
    assert static_text(statement) == text


def test_a_question_tells_its_text_its_hint_and_its_reason() -> None:
    (statement,) = ast.parse("question('a', answer=1, hint='b', why='c')").body
    assert piece_texts(statement, {"question": "question"}) == [
        ("question", {"text": "a", "data": "b", "why": "c"})
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"half": 3, "the other way": 3.0}, "question() has a wrong answer that is right: 3: 'half'"),
        ({"text": "3"}, "question() takes a number for each wrong answer, not '3': 'text'"),
        ({"yes": True}, "question() takes a number for each wrong answer, not True: 'yes'"),
        ({"none": float("inf")}, "question() takes a number for each wrong answer, not inf: 'none'"),
    ],
)
def test_a_wrong_answer_is_a_number_and_wrong(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(AuthorError, match=re.escape(said)):
        author.question("how many?", answer=3, wrong=wrong)


def test_a_wrong_answer_that_the_field_would_take_for_right_is_refused() -> None:
    with pytest.raises(AuthorError) as caught:
        author.question("how many?", answer=50.5, wrong={"the miss alone": 50})
    assert str(caught.value) == (
        "question() takes a wrong answer for right: 50: 'the miss alone'\n"
        "it lies within=0.01 of the answer, 50.5: give less, or leave it out"
    )
    author.question("how many?", answer=50.5, wrong={"the miss alone": 50, "a sign": -50.5}, within=0.005)


def test_two_wrong_answers_that_the_field_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(AuthorError) as caught:
        author.question("how many?", answer=3, wrong={"the half": 1.5, "a third": 1, "less a half": 1.495})
    assert str(caught.value) == (
        "question() has two wrong answers that it cannot tell apart: 1.495: 'less a half'\n"
        "and 1.5: 'the half': keep the likelier one, or choose other numbers"
    )
    author.question("how many?", answer=3, wrong={"the half": 1.5, "less a half": 1.495}, within=0.001)
    author.question("how many?", answer=3, wrong={"nothing": 0, "a sign": -3, "half": 1.5})


def test_mistakes_stand_below_the_answer_and_in_its_data(tmp_path: Path) -> None:
    made = record(tmp_path, section("question('?', answer=8, unit='B', wrong={'A & B': 4, 'C': 2**20})"))
    page = pages.pages(made)["index.md"]
    assert '<ul class="lb-mistakes"><li><b>4 B</b>: A &amp; B</li><li><b>1.049 MB</b>: C</li></ul>' in page
    assert 'data-wrong="[4.0, 1048576.0]"' in page
