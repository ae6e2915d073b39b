"""A note's tree -> plain Markdown, for readers that know CommonMark, tables and `$math$` and no more.

Boxes and folds become quotations, names words. What the author wrote is
written again as it was: nothing is escaped anew. `MarkdownWriter` leaves citations and links as they are; who
knows where they lead, as a notebook does, overrides `cite`, `refer` and `link`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from litbook.markdown import nodes as tree
from litbook.markdown.escape import one_line

_RULES = {"": "---", "left": ":--", "center": ":-:", "right": "--:"}


class MarkdownWriter:
    """Writes notes; a heading of a note stands `below` levels deeper than the author has it."""

    below = 0

    def markdown(self, note: tree.Note) -> str:
        """The whole note."""
        return self.blocks(note.blocks)

    # -- what a note refers to

    def cite(self, citation: tree.Citation) -> str:
        """A citation."""
        return f"[{'; '.join(f'@{key}' for key in citation.keys)}]"

    def refer(self, label: str) -> str:
        """What a figure, table or equation is called."""
        return tree.label_text(label)

    def link(self, link: tree.Link) -> str:
        """A link."""
        return format_link(self.line(link.children), link)

    def text(self, text: str) -> str:
        """Words as the author wrote them."""
        return text

    # -- blocks

    def blocks(self, blocks: Sequence[tree.BlockNode], between: str = "\n\n") -> str:
        """Some blocks."""
        return between.join(map(self.block, blocks))

    def block(self, block: tree.BlockNode) -> str:
        """One block."""
        match block:
            case tree.Paragraph(children=children):
                return self.line(children)
            case tree.Heading(level=level, children=children):
                return f"{'#' * min(6, self.below + level)} {self.line(children)}"
            case tree.Quote(children=children):
                return quote_block(self.blocks(children))
            case tree.List(items=items, start=start, mark=mark):
                signs = [mark if start is None else f"{start + i}{mark}" for i in range(len(items))]
                tight = all(getattr(child, "tight", True) for item in items for child in item.children)
                rows = [self.item(item, sign, tight) for item, sign in zip(items, signs, strict=True)]
                return ("\n" if tight else "\n\n").join(rows)
            case tree.Fence(text=text, language=language):
                ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
                return f"{ticks}{language}\n{text}\n{ticks}"
            case tree.DisplayMath(latex=latex, label=label):
                name = f"**{self.refer(label)}.**\n\n" if label else ""
                return f"{name}$${latex}$$"
            case tree.Table(head=head, edges=edges, rows=rows, caption=caption):
                rule = "".join(f"{_RULES[edge]}|" for edge in edges)
                table = "\n".join([self.row(head), f"|{rule}", *map(self.row, rows)])
                return f"{self.line(caption)}\n\n{table}" if caption else table
            case tree.Box(title=title, children=children) | tree.FoldBox(title=title, children=children):
                return self.box(tree.box_title(block) if title is None else self.line(title), children)
            case tree.ThematicBreak():
                return "---"
            case _:
                assert_never(block)

    def row(self, cells: Sequence[tree.TableCell]) -> str:
        """A row of a table."""
        texts = (self.line(cell.children).replace("|", "\\|") for cell in cells)
        return "|" + "".join(f" {text} |" if text else " |" for text in texts)

    def box(self, title: str, children: Sequence[tree.BlockNode]) -> str:
        """A box as a quotation."""
        head = [f"**{title}**"] if title else []
        return quote_block("\n\n".join(filter(None, [*head, self.blocks(children)])))

    def item(self, item: tree.ListItem, sign: str, tight: bool) -> str:
        """An item of a list behind its sign."""
        return indent_block(self.blocks(item.children, "\n" if tight else "\n\n"), f"{sign} ")

    # -- what stands in a line

    def line(self, children: Iterable[tree.Inline]) -> str:
        """Inline nodes."""
        return "".join(map(self.inline, children))

    def inline(self, node: tree.Inline) -> str:
        """One inline node."""
        match node:
            case tree.TextNode(text=text, written=as_written):
                return self.text(as_written or text)
            case tree.Hole():
                return "…"
            case tree.InlineCode(text=text):
                ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
                space = " " * (text.startswith("`") or text.endswith("`"))
                return f"{ticks}{space}{text}{space}{ticks}"
            case tree.Math(latex=latex, display=display):
                return f"$${latex}$$" if display else f"${latex}$"
            case tree.Link():
                return self.link(node)
            case tree.Citation():
                return self.cite(node)
            case tree.LabelReference(label=label):
                return self.refer(label)
            case tree.Name(label=label):
                return f"**{self.refer(label)}.**"
            case tree.Emphasis(children=children, mark=mark) | tree.Strong(children=children, mark=mark):
                return f"{mark}{self.line(children)}{mark}"
            case tree.Break(hard=hard):
                return "  \n" if hard else "\n"
            case _:
                assert_never(node)


def format_link(words: str, link: tree.Link) -> str:
    """A link with these words, in the form that the author gave it."""
    if link.form != "text":
        return f"<{link.address}>" if link.form == "angle" else link.address
    balanced = re.fullmatch(r"[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*", link.address)
    address = link.address if balanced else f"<{link.address}>"
    title = link.title.replace('"', '\\"')
    return f'[{words}]({address} "{title}")' if title else f"[{words}]({address})"


def quote_block(text: str) -> str:
    """Markdown as a quotation."""
    return indent_block(text, "> ", "> ")


def indent_block(text: str, sign: str, below: str | None = None) -> str:
    """Markdown behind a sign, its further lines behind as much space, or what stands `below` the sign."""
    margin = " " * len(sign) if below is None else below
    first, *others = text.split("\n")
    return "\n".join([sign + first, *(margin + line if line else margin.rstrip() for line in others)])


def escape_markdown(text: object) -> str:
    """A short text that Markdown takes as it is."""
    return re.sub(r"[\\`*_\[\]<>#$|]", lambda m: f"&#{ord(m[0])};", one_line(str(text)))
