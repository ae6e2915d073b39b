"""The author's words. A lecture imports from here and from nowhere else in litbook."""

from litbook.probe.author import figure, image, link, misbelief, note, question, requires, speaker_note

__all__ = ["figure", "image", "link", "misbelief", "note", "question", "requires", "speaker_note"]
