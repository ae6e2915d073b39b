"""Where a lecture's text names its own definitions, by Python's rules of scope."""

from __future__ import annotations

import pytest

from litbook.python.references import Mention, mentions

HEAD = "def f(x): ...\n"


def places(text: str) -> list[str]:
    """What of `text` names `f`, with the text after it: `f(1)`."""
    found = mentions(HEAD + text)
    return [(HEAD + text).split("\n")[it.line - 1][it.column :][:4] for it in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def g():\n    return f(1)", ["f(1)"]),
        ("def g():\n    é = 'ééé'; return f(2)", ["f(2)"]),
        ("def g(x=f):\n    return lambda y=f: f(y)", ["f):", "f: f", "f(y)"]),
        ("def g():\n    [f for f in z]; f(3)", ["f(3)"]),
        ("def g():\n    global f\n    f = 1; f(4)", ["f(4)"]),
        ("class C(f):\n    f = 1\n    def m(self): return f(5)", ["f):", "f(5)"]),
        ("@f\ndef g(f: f) -> None:\n    f(6)", ["f", "f) -"]),
        ("def g():\n    def inner(): return f(7)\n    return inner", ["f(7)"]),
    ],
)
def test_a_name_of_the_module_is_found_where_it_stands(text: str, found: list[str]) -> None:
    assert places(text) == found


@pytest.mark.parametrize(
    "inside",
    [
        "f = 1; print(f)",
        "for f in z: f(1)",
        "with z as f: f(1)",
        "import os as f; f(1)",
        "from z import f; f(1)",
        "def f(): ...\n    f(1)",
        "x.f(1); dict(f=1); 'f'  # f",
        "(f := 1); f(1)",
        "{f: 1 for f in z}; (lambda f: f(1))",
        "try: ...\n    except ValueError as f: f(1)",
        "match z:\n        case [f, *_]: f(1)",
        "f = 1\n    def deeper(): return f(1)",
    ],
)
def test_a_name_of_a_smaller_scope_an_attribute_a_keyword_and_prose_are_something_else(inside: str) -> None:
    assert places(f"def g(z, x):\n    {inside}") == []


def test_a_name_in_an_f_string_is_found_and_only_linked_where_its_column_is_known() -> None:
    found = mentions(HEAD + 'def g():\n    return f"""\n{f(1)} f"""\n')
    assert [it.name for it in found] == ["f"]
    assert found[0].column is None or found == (Mention("f", 4, 1),)


def test_what_cannot_be_parsed_names_nothing() -> None:
    assert mentions("def f(:") == mentions("f = '\0'") == ()
