"""The author's words that hand a piece over: what each is to readers, said once for all who ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One word. Its prose is in the arguments at these positions, or given by these names."""

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    seen: bool = True  # by readers of a page, as a piece of the word's own name
    stated: bool = True  # a notebook tells it from the record; else the word's own code runs there


WORDS = {
    "note": Word((0,), ("text",)),
    "misbelief": Word((0, 1), ("said", "run")),
    "question": Word((0,), ("text", "hint", "why")),
    "figure": Word(names=("caption", "alt"), stated=False),
    "image": Word(names=("caption", "alt")),
    "link": Word((1,), ("text",)),
    "speaker_note": Word((0,), ("text",), seen=False),
}
UNKNOWN = Word((0, 1), ("text", "said", "run", "caption", "alt", "hint", "why"))  # called by another name

SEEN = frozenset(name for name, word in WORDS.items() if word.seen)
STATED = frozenset(name for name, word in WORDS.items() if word.stated)
