"""The author's words. A lecture imports from here and from nowhere else in litbook."""

from litbook.probe.author import aside, figure, image, link, misbelief, note, question, requires, speaker_note

__all__ = ["aside", "figure", "image", "link", "misbelief", "note", "question", "requires", "speaker_note"]
