"""Notes as HTML, by the names that pages know: `html.note` writes them, `document.setting` surrounds them."""

from __future__ import annotations

from litbook.document.setting import LINKED, Citations, Number, Resolve, Setting
from litbook.html.note import blocks, formula, inline, passage

__all__ = ["LINKED", "Citations", "Number", "Resolve", "Setting", "blocks", "formula", "inline", "passage"]
