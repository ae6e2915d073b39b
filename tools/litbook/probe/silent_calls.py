"""Which statements said nothing but words: decided by what was called, not by how it was imported.

A frame that hands a piece over runs a word of litbook, a function that its author has declared one (`@word`),
or one that does nothing but call words. A statement whose every call led to such a frame is a piece, as
`note(…)` is: readers see what it said, and not its code.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType, FunctionType

from litbook.lecture.author_words import calls
from litbook.lecture.model import Lecture
from litbook.probe import author
from litbook.probe.protocols import Listener
from litbook.probe.record_keys import RecordKeys

_ENGINE = str(Path(__file__).resolve().parents[1])


class SilentCalls:
    """What one run has heard. `numbering.spoken` gets the statements that are pieces."""

    def __init__(self, lecture: Lecture, numbering: RecordKeys, listener: Listener | None) -> None:
        self.lecture, self.numbering, self.listener = lecture, numbering, listener
        self._sites: dict[int, set[int]] = {}  # statement -> where in its code a word was called

    def hear(self, word: FrameType) -> None:
        """A word hands a piece over; `word` is a frame of its own."""
        lecture, at = self.lecture, word
        while speaks(at.f_code, at.f_globals) and at.f_back is not None:
            at = at.f_back
            file = lecture.file_of(at.f_code.co_filename)
            number = None if file is None else self.numbering.statement_at.get((file, at.f_lineno))
            if number is None or lecture.statements[number].kind != "code":
                continue
            sites = self._sites.setdefault(number, set())
            sites.add(at.f_lasti)
            whole = len(sites) == len(calls(self.numbering.node_of[number]))
            if whole:
                self.numbering.spoken.add(number)
            if self.listener is not None:
                self.listener.word(number, whole)


def speaks(code: CodeType, names: Mapping[str, object], seen: tuple[CodeType, ...] = ()) -> bool:
    """Whether a function with this code is one of the words, or does nothing but call them.

    The latter has no variables but its parameters, and what it reads of `names`, its globals, are words.
    """
    if code in author.DECLARED or code.co_filename.startswith(_ENGINE):
        return True
    flags = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    given = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in flags)
    called = [names[name] for name in code.co_names if name in names]
    if code.co_nlocals != given or not called or code in seen:
        return False
    seen = (*seen, code)
    return all(isinstance(f, FunctionType) and speaks(f.__code__, f.__globals__, seen) for f in called)
