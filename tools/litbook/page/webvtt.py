"""Captions of a film, in WebVTT: what is said in it, as text."""

from __future__ import annotations

import re

from litbook.record.model import CUE

ESCAPES = {"&lt;": "<", "&gt;": ">", "&nbsp;": " ", "&amp;": "&"}


def said(track: str) -> list[str]:
    """The words of each caption, in order: those of a voice behind its name, without styles."""
    lines = []
    for block in re.split(r"\n{2,}", track.replace("\r\n", "\n")):
        times = CUE.search(block)
        _rest, _break, words = block[times.end() :].partition("\n") if times else ("", "", "")
        words = re.sub(r"<[^<>]*>", "", re.sub(r"<v[^\s<>]* ([^<>]*)>", r"\1: ", words))
        lines.append(" ".join(re.sub("|".join(ESCAPES), lambda escape: ESCAPES[escape[0]], words).split()))
    return [*filter(None, lines)]
