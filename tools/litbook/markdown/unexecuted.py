"""Prose that never ran -> what it says anyway: Markdown as the record has it, `HOLE` for each value of a run.

What waits for a value is cut out of the text where the note's tree says that it stands: a sentence, a row of
a table, a table that has no rows without it and the paragraph that introduces that. The rest stays as it is.
"""

from __future__ import annotations

import re
from itertools import pairwise

from litbook.markdown import grammar
from litbook.markdown import nodes as tree

DRAWING = "**A drawing:** "  # how prose of a picture that was never drawn begins
SAYING = "**Commonly said:** "  # and of a misbelief: what refutes it is a run
HOLE = "…"
_BETWEEN = re.compile(r"(?<=[.!?:])\s+(?=[^\sa-z])")  # two sentences


def static_prose(prose: str) -> str:
    """What prose that never ran says anyway: no sentence that waits for a value, no table without rows.

    Of a picture and of a misbelief nothing: "Run:" stands where something ran.
    """
    if prose.startswith((DRAWING, SAYING)):
        return ""
    note = grammar.read(prose, HOLE)
    blocks = [node for node in tree.walk(note) if not isinstance(node, tree.Inline | tree.TableCell)]
    starts = sorted({note.text.rfind("\n", 0, block.at) + 1 for block in blocks})
    cuts: dict[int, tuple[int, str]] = {}  # where a stretch begins, where it ends, and what is left of it
    above = 0, 0, ""  # the block above, its beginning and end
    for block in blocks:
        start = max(place for place in starts if place <= block.at)
        end = min((place for place in starts if place > block.at), default=len(note.text))
        match block:
            case tree.Paragraph() | tree.Heading():
                children = block.children
                text = note.text[:end].rstrip("> \n")
                marks = re.search(r"[`*_\[!\\<]*$", note.text[: children[0].at if children else len(text)])
                begin = marks.start() if marks else block.at
                kept = _whole_sentences(note, children, begin, len(text))
                cuts |= {begin: (len(text), kept)} if kept else {start: (end, "")}
                above = start, end, text
            case tree.Table():
                head, rule, *rows = note.text[start:end].strip("\n").split("\n")
                if kept_rows := [row for row in rows if HOLE not in row]:
                    cuts[start] = end, "\n".join([head, rule, *kept_rows]) + "\n\n"
                elif rows:
                    cuts[start] = end, ""
                    if above[1] == start and above[2].endswith((":", HOLE)):
                        cuts[above[0]] = start, ""
    text = note.text
    for start in sorted(cuts, reverse=True):
        end, left = cuts[start]
        text = text[:start] + left + text[end:]
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def columns(prose: str) -> list[list[str]]:
    """Of each table whose rows would have come from the run, what its columns are."""
    tables = (node for node in tree.walk(grammar.read(prose, HOLE)) if isinstance(node, tree.Table))

    def waits(row: tuple[tree.TableCell, ...]) -> bool:
        return any(isinstance(child, tree.Hole) for cell in row for child in cell.children)

    return [[tree.plain_text(cell.children) for cell in t.head] for t in tables if all(map(waits, t.rows))]


def _whole_sentences(note: tree.Note, children: tuple[tree.Inline, ...], start: int, end: int) -> str:
    """What stands between two offsets, without the sentences that wait for a value."""
    masked = note.text[start : children[0].at] if children else ""
    for node, after in pairwise((*children, tree.Break(end))):
        part = note.text[node.at : after.at]
        # A full stop in a formula, in code, in the text of a link ends no sentence.
        plain = isinstance(node, tree.TextNode | tree.Hole | tree.Break)
        masked += part if plain else re.sub(f"[^{HOLE}]", "X", part)
    between = [match.span() for match in _BETWEEN.finditer(masked)]
    kept = ""
    for (_, first), (last, behind) in pairwise([(0, 0), *between, (len(masked), len(masked))]):
        sentence = note.text[start + first : start + last]
        rest = sentence.removesuffix(HOLE)
        # At its end more might have followed.
        if HOLE not in rest and (rest == sentence or rest.rstrip().endswith((".", ":", "!", "?"))):
            kept += rest.rstrip() + note.text[start + last : start + behind]
    return kept.rstrip()
