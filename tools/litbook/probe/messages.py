"""What is said of an assert and of an error: its caption as text, the data that it names, never too much.

In go what an author has given, and a function that is running; out comes text. It knows no recorder.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Container
from inspect import CO_OPTIMIZED
from types import FrameType, ModuleType

from litbook.record import model
from litbook.record.limits import BRIEF, MESSAGE, NAMES
from litbook.snapshot.snapshot import snapshot, text_of


def cut_message(message: str) -> str:
    """The message, cut where it is too long."""
    return message if len(message) <= MESSAGE else message[:MESSAGE] + " … cut"


def caption_of(given: object) -> str:
    """A claim's message as text: of what is no string its `str`, which may raise or never end."""
    if isinstance(given, str):
        return cut_message(str.__str__(given))
    return cut_message(text_of(given))


def names_in(asked: ast.AST | None, frame: FrameType, told: Container[str] = ()) -> str:
    """The data that a failing assert names, but for what is `told`, a line each: `x is tensor([1, 2])`."""
    nodes = list(ast.walk(asked)) if asked is not None else []
    names = sorted((n for n in nodes if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset))
    bound = {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    here, around, values = frame.f_locals, frame.f_globals, dict[str, object]()
    for name in (name.id for name in names if name.id not in bound and name.id not in told):
        if name in here or name in around:
            values[name] = here[name] if name in here else around[name]
    # Nothing is kept alive for being asked: up to Python 3.12 `here` is a copy that stays with the frame.
    # Three know it: the frame, this function, the count. The namespace of a class body is no copy.
    if type(here) is dict and sys.getrefcount(here) == 3 and frame.f_code.co_flags & CO_OPTIMIZED:
        here.clear()
    data = [(n, v) for n, v in values.items() if not callable(v) and not issubclass(type(v), ModuleType)]
    lines = list[str]()
    for name, value in data[:NAMES]:
        if type(value) is str:
            text = repr(value[: BRIEF + 1])
        else:
            text = repr(value) if type(value) in (int, float) else " ".join(text_of(value).split())
        if len(text) > BRIEF:  # for one line: the kind, and the beginning
            shown = snapshot(value)
            kind = f"{shown.dtype} {list(shown.shape)}" if isinstance(shown, model.Tensor) else shown.type
            text = f"{kind}: {text[:BRIEF]} …"
        lines.append(f"{name} is {text}")
    return "\n".join(lines)
