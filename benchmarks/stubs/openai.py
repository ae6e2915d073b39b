"""Stands in for openai, whose models are elsewhere: each answers with a word."""

from __future__ import annotations

from types import SimpleNamespace


class OpenAI:
    """A client of any service."""

    def __init__(self, **_: object) -> None:
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=_answer))


def _answer(**_: object) -> SimpleNamespace:
    message = SimpleNamespace(content="A word.", role="assistant")
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])
