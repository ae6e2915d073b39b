'''The one layout of prose in lectures: lists what differs; `--write` wraps it anew.

A text that fits stands on one line. A longer one is a block: its opening quotes, r""" or, with holes, rf""",
end their line, the text is wrapped as prose at 100 columns and indented by four more than that line, and the
closing quotes stand where that line begins. Lists are wrapped item by item; tables, formulas and code keep
their lines. Read are the texts of `note`, `question`, `figure` and the other words of
`litbook.lecture.author_words`.
'''

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from litbook.lecture.author_words import WORDS, arguments

WIDTH = 100
INDENT = 4
# What no line end may part: holes, code, formulas, links and citations.
_WHOLE = re.compile(
    r"(?<!\{)\{(?!\{)[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|(`+)(?!`).+?(?<!`)\1(?!`)|\$\$?[^$]+\$\$?"
    r"|\[[^\[\]]*(?:`[^`]*`[^\[\]]*)*\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*\))?",
    re.DOTALL,
)
# What would begin a list, a heading, a quotation, a table, a box or a definition, did a line begin with it.
_BEGINS = re.compile(r"(?:[-+*–]|\d+[.)]|#+|[-=]{2,}|[>|:~].*|```.*|!!!|\?\?\?\+?|\[[^\]]*\]:)")
_FIXED = re.compile(r"\s*(?:\$\$|!!!|\?\?\?|===|:|\||<|\[[^\]]*\]:)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)]) +")
_GLUE = "\ue001"
_BLOCK = re.compile(r'rf?"""\n(?P<body>.*)\n(?P<close> *)"""', re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """What is not laid out as it should be: its line, what to write, the text between two offsets mended."""

    line: int
    message: str
    start: int = 0
    end: int = 0
    text: str | None = None


def wrapped(text: str, width: int) -> str:
    """The Markdown `text`, its paragraphs and items of lists filled to `width`; all else keeps its lines."""
    lines: list[str | None] = [*text.split("\n")]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, inline in pairwise(tokens):
        if token.type != "paragraph_open" or not token.map or token.level not in (0, 2):
            continue
        first, last = token.map
        paragraph = [str(line) for line in lines[first:last]]
        breaks = any(child.type == "hardbreak" for child in inline.children or ())
        if breaks or any(map(_FIXED.match, paragraph)):
            continue
        item = _ITEM.match(paragraph[0])
        if token.level == 2 and item is None:
            continue
        begin = item[0] if item else ""
        words = _words(" ".join([paragraph[0][len(begin) :], *(line.strip() for line in paragraph[1:])]))
        lines[first:last] = ["\n".join(_filled(words, begin, width)), *[None] * (last - first - 1)]
    return "\n".join(line for line in lines if line is not None)


def _words(paragraph: str) -> list[str]:
    """What stands between the places where a line may end."""
    whole = _WHOLE.sub(lambda match: re.sub(r"\s+", _GLUE, match[0]), paragraph)
    words: list[str] = []
    for word in filter(None, re.split(r"[ \n]+", whole)):
        if words and _BEGINS.fullmatch(word):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return [word.replace(_GLUE, " ") for word in words]


def _filled(words: list[str], begin: str, width: int) -> Iterator[str]:
    line = begin + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) > width:
            yield line
            line = " " * len(begin) + word
        else:
            line += f" {word}"
    yield line


def findings(source: str) -> Iterator[Finding]:
    """What in the text of a lecture's file is not laid out as it should be, in its order."""
    lines = source.splitlines(keepends=True)
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in WORDS:
            prose = WORDS[call.func.id].fields
            for place, argument in arguments(call):
                if place in prose and isinstance(argument, ast.Constant | ast.JoinedStr):
                    yield from _judged(lines, argument)


def _judged(lines: list[str], node: ast.expr) -> Iterator[Finding]:
    """What is wrong with the layout of one text."""
    start, end = (
        sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
        for line, column in ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
    )
    source = "".join(lines)
    literal = source[start:end]
    if node.lineno == node.end_lineno:
        if "\\\\" in literal and not re.match("r|fr|R", literal):
            yield Finding(node.lineno, 'has doubled backslashes: write r"…", or rf"…" where it has holes')
        return
    block = _BLOCK.fullmatch(literal)
    if block is None or '"""' in block["body"]:
        yield Finding(
            node.lineno, 'goes over several lines: write one block, r"""…""" (rf"""…""" with holes)'
        )
        return
    opening = lines[node.lineno - 1]
    margin = len(opening) - len(opening.lstrip())
    text = cleandoc(block["body"])
    short, rest = f'r"{text}"', source[end:].partition("\n")[0]
    before = len(source[:start].rpartition("\n")[2])
    mended = literal[: literal.index("\n") + 1]
    for line in wrapped(text, WIDTH - margin - INDENT).split("\n"):
        mended += (" " * (margin + INDENT) + line).rstrip() + "\n"
    mended += " " * margin + '"""'
    if not set('\n"') & set(text) and before + len(short) + len(rest) <= WIDTH and "f" not in literal[:2]:
        yield Finding(node.lineno, f'fits on its line: write "{text}"')
    elif mended != literal:
        pairs = zip(literal.split("\n"), [*mended.split("\n"), ""], strict=False)
        number, line = next((i, new) for i, (old, new) in enumerate(pairs) if old != new)
        message = f"is not wrapped at {WIDTH} columns: this line is to be\n{line}"
        yield Finding(node.lineno + number, message, start, end, mended)


def main() -> int:
    """List, or mend, the files that are named, or those in `lectures/`. 1 where something is left to do."""
    parser = argparse.ArgumentParser(description="The one layout of prose in lectures.")
    parser.add_argument("files", nargs="*", type=Path, default=sorted(Path("lectures").rglob("*.py")))
    parser.add_argument("--write", action="store_true", help="wrap texts anew, in their files")
    asked = parser.parse_args()
    left = 0
    for path in asked.files:
        source = path.read_text(encoding="utf-8")
        found = sorted(findings(source), key=lambda finding: -finding.start)
        for finding in found if asked.write else ():
            if finding.text is not None:
                source = source[: finding.start] + finding.text + source[finding.end :]
        if asked.write:
            path.write_text(source, encoding="utf-8")
        for finding in sorted(findings(source), key=lambda finding: finding.line):
            print(f"{path}:{finding.line}: a text {finding.message}")
            left += 1
    return min(left, 1)


if __name__ == "__main__":
    sys.exit(main())
