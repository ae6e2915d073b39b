"""The author's words. A lecture imports from here and from nowhere else in litbook."""

from litbook.probe.author import (  # fmt: skip
    aside,
    figure,
    image,
    link,
    misbelief,
    note,
    question,
    recording,
    requires,
    speaker_note,
    system_text,
    word,
)

__all__ = ["aside", "figure", "image", "link", "misbelief", "note", "question", "recording", "requires",
           "speaker_note", "system_text", "word"]  # fmt: skip
