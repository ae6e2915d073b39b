"""The author's words as the text knows them: the same arguments as the functions take, and what each says unrun."""

from __future__ import annotations

import ast
import inspect

import pytest

from litbook.probe import author
from litbook.text.words import FIELDS, WORDS, told, unspoken


@pytest.mark.parametrize("name", WORDS)
def test_the_prose_of_a_word_is_in_arguments_that_its_function_has(name: str) -> None:
    parameters = list(inspect.signature(getattr(author, name)).parameters)
    word = WORDS[name]
    assert set(word.names) <= set(parameters)
    assert {parameters[at] for at in word.positions} <= {*word.names, *parameters[: len(word.positions) + 1]}
    assert {it for it in FIELDS[name.removesuffix("_note")] if isinstance(it, str)} <= set(parameters)


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
    assert unspoken(statement) == text


def test_a_question_tells_its_text_its_hint_and_its_reason() -> None:
    (statement,) = ast.parse("question('a', answer=1, hint='b', why='c')").body
    assert told(statement, {"question": "question"}) == [("question", {"text": "a", "data": "b", "why": "c"})]
