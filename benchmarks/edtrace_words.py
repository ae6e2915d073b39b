"""The author's words of litbook in those of edtrace, so that both run the same text.

Imported inside edtrace's environment only, by lectures that `texts.for_edtrace` has renamed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edtrace import text


def note(said: str) -> None:
    text(said)


def misbelief(said: str, run: str) -> None:
    text(said)
    text(run)


def question(asked: str, *, answer: object, unit: str | None = None, hint: str = "") -> None:  # noqa: ARG001
    text(asked)


def figure(fig: Any, *, caption: str, alt: str) -> None:  # noqa: ARG001  edtrace draws no Matplotlib
    text(caption)


def image(path: str, *, alt: str, caption: str = "") -> None:  # noqa: ARG001  nothing is read from a disk
    text(caption or alt)


def link(target: object, said: str = "") -> None:
    text(said or str(target))


def requires(device: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Sections for a device that is not here say so, as they do in plain Python."""
    import torch

    def wrap(section: Callable[[], None]) -> Callable[[], None]:
        if device == "cuda" and not torch.cuda.is_available():
            return lambda: text(f"[{section.__name__} needs {device}]")
        return section

    return wrap
