"""A text -> the same with nothing hidden in it: no control, no mark of direction, one way to end a line."""

from __future__ import annotations

import unicodedata


def visible_characters(text: str) -> list[str]:
    """What is read for each character of a text: lines end alike, tabs are spaces, what hides is spelled."""
    if text.replace("\n", "").isprintable():  # as most are: nothing to spell, no tab
        return [*text]
    signs: list[str] = []
    column = 0
    for i, character in enumerate(text):
        if character == "\r":
            read = "" if text[i + 1 : i + 2] == "\n" else "\n"
        elif character == "\t":
            read = " " * (4 - column % 4)
        elif character.isascii():
            hidden = (character < " " and character != "\n") or character == "\x7f"
            read = f"⟨U+{ord(character):04X}⟩" if hidden else character
        else:
            read = spell(character)
        signs.append(read)
        column = 0 if read == "\n" else column + len(read)
    return signs


def spell(character: str, kept: str = "\u200d") -> str:
    """The character; its number where it is a control, a mark of direction or a separator, and would disguise
    what stands beside it. What is `kept` stays: what joins emoji.
    """
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in kept
    return f"⟨U+{ord(character):04X}⟩" if hidden else character


def one_line(text: str) -> str:
    """The text in one line, nothing hidden in it."""
    return " ".join("".join(visible_characters(text)).split())


def encodable_text(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
