"""Stands in for fasttext, whose models are elsewhere: all is English."""

from __future__ import annotations


class Model:
    """A model of any file."""

    def predict(self, texts: list[str]) -> tuple[list[list[str]], list[list[float]]]:
        """A label and a probability for each text."""
        return [["__label__en"] for _ in texts], [[0.5] for _ in texts]


def load_model(path: str) -> Model:
    """The same for every file."""
    del path
    return Model()
