"""The blocks of a note: markdown-it's rules and ours for them, and the nodes that come of them.

In go lines, out come blocks with their offsets, whose words `inline` reads. Ours are displayed formulas,
boxes and folds, and a table's caption; markdown-it has the others.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.ruler import RuleOptionsType, Ruler
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from msgspec.structs import replace

from litbook.markdown import nodes as tree
from litbook.markdown.inline import LABEL, InlineReader
from litbook.markdown.refusals import refuse

DEEPEST = 8  # lists, quotations and boxes within one another: more would leave no room for words on a phone

_BOX = re.compile(
    r"(?:!!! ?(?P<kinds>[\w-]+(?: +[\w-]+)*)(?: +\"(?P<title>.*)\")?"
    r"|\?{3}(?P<open>\+?) ?(?:(?P<folded>[\w-]+(?: +[\w-]+)*)?(?: *\"(?P<name>.*)\")?(?<=[\w\"-]))) *"
)
_DISPLAY = re.compile(rf"(?:{LABEL}:\s*)?(?P<rest>\$\$.*)")


def _line(state: StateBlock, line: int) -> str:
    """A line without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _lies_inside(state: StateBlock, line: int, end: int, indent: int) -> int:
    """The line behind those from `line` on that are blank or indented by as much; the last is not blank."""
    last = line
    while line < end and (state.isEmpty(line) or state.sCount[line] >= indent):
        line += 1
        last = last if state.isEmpty(line - 1) else line
    return last


def _read_nested(state: StateBlock, first: int, end: int, indent: int) -> None:
    """Read the lines up to `end` as blocks of their own, indented by so much."""
    before = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = indent, end, "root"
    state.md.block.tokenize(state, first, end)
    state.blkIndent, state.lineMax, state.parentType = before


def _box(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """`!!! note "Title"`, `??? note`, and the lines below that are indented by four spaces."""
    match = None if state.is_code_block(first) else _BOX.fullmatch(_line(state, first))
    if match is None or silent:
        return match is not None
    indent = state.sCount[first] + 4
    last = _lies_inside(state, first + 1, end, indent)
    below = state.skipEmptyLines(first + 1)
    if first == 0 and last == 1 and below < end and not state.sCount[below]:
        # A box that opens a note owns what follows at the margin: dedenting the text has moved it there.
        if not _BOX.fullmatch(_line(state, below)):
            indent, last = 0, end
    token = state.push("box_open", "", 1)
    token.map, token.meta = [first, last], {"match": match}
    title = next((match[group] for group in ("title", "name") if match[group] is not None), None)
    words = state.push("inline", "", 0)
    words.map, words.children, words.content = [first, first + 1], [], title or ""
    token.meta["titled"] = title is not None
    _read_nested(state, first + 1, last, indent)
    state.push("box_close", "", -1)
    state.line = last
    return True


def _display(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A formula between `$$`, with a name before it perhaps, that ends before the next blank line."""
    match = None if state.is_code_block(first) else _DISPLAY.match(_line(state, first))
    if match is None:
        return False
    lines: list[str] = []
    for line in range(first, end):
        text = match["rest"].strip() if line == first else _line(state, line).strip()
        lines.append(text)
        inside = text[2 * (line == first) : -2]
        if not text or "$$" in inside:
            return False
        if text.endswith("$$") and (line > first or len(text) > 4):
            break
    else:
        return False
    if not silent:
        token = state.push("display", "", 0)
        token.map, token.info = [first, line + 1], match[1] or ""
        token.content = "\n".join(lines)[2:-2]
        state.line = line + 1
    return True


def _definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """`[text]: address`; what begins with `[@` is a caption, with `[^` a footnote."""
    return not _line(state, first).startswith(("[@", "[^")) and reference(state, first, end, silent)


def use_rules(blocks: Ruler[RuleFuncBlockType]) -> None:
    """Add our rules to markdown-it's, each before one of its."""
    ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    blocks.before("code", "box", _box, ends)
    blocks.before("fence", "display", _display, ends)
    blocks.at("reference", _definition)


# ---------------------------------------------------------------------------- tokens -> nodes


class TooDeep(Exception):
    """More lists, quotations and boxes within one another than a page can hold."""


class BlockReader(InlineReader):
    """Makes the tree of one note of its tokens, and refuses what it cannot hold."""

    def note(self, tokens: list[Token]) -> tree.Note:
        """The whole tree."""
        root = SyntaxTreeNode(tokens)
        if tokens and tokens[0].type == "inline":  # a phrase
            blocks: tuple[tree.BlockNode, ...] = (tree.Paragraph(0, self.words(root.children[0])),)
        else:
            blocks = self.blocks(root.children)
        return tree.Note(self.text, blocks, tuple(self.env["refusals"]))

    def blocks(self, nodes: Iterable[SyntaxTreeNode], depth: int = 0) -> tuple[tree.BlockNode, ...]:
        """These blocks, `depth` of which lie around them."""
        if depth > DEEPEST:
            raise TooDeep
        blocks: list[tree.BlockNode] = []
        for node in nodes:
            block = self.block(node, depth)
            above = blocks[-1] if blocks else None
            match above, block:
                case tree.Paragraph(children=(tree.Name(label=label), *_)), tree.Table() if label.startswith(
                    "tab:"
                ):
                    blocks[-1] = replace(block, caption=above.children)
                    continue
            blocks.append(block)
        for block in blocks:
            match block:
                case tree.Paragraph(children=(tree.Name(label=label), *_)) if label.startswith("tab:"):
                    refuse(self.env, "caption-without-table", "[@tab:", label.partition(":")[2])
        return tuple(blocks)

    def block(self, node: SyntaxTreeNode, depth: int) -> tree.BlockNode:
        """One block."""
        first = node.map[0] if node.map else 0
        line = self.text[self.lines[first] :].partition("\n")[0] if first < len(self.lines) else ""
        at = self.lines[min(first, len(self.lines) - 1)] + len(line) - len(line.lstrip())
        match node.type:
            case "paragraph":
                # Lines that would be a table, if its rule had as many columns as its head.
                for head, rule in itertools.pairwise(node.children[0].content.split("\n")):
                    if "|" in head and "|" in rule and re.fullmatch(r"[\s|:]*-[-\s|:]*", rule):
                        refuse(self.env, "uneven-table", rule.strip(), rule.strip(), head.strip())
                return tree.Paragraph(at, self.words(node.children[0]), tight=node.hidden)
            case "heading":
                return tree.Heading(at, int(node.tag[1]), self.words(node.children[0]))
            case "blockquote":
                return tree.Quote(at, self.blocks(node.children, depth + 1))
            case "bullet_list" | "ordered_list":
                start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
                items = tuple(self.item(child, depth + 1) for child in node.children)
                return tree.List(at, items, start, node.markup)
            case "fence" | "code_block":
                return self.fence(at, node)
            case "display":
                return tree.DisplayMath(at, node.content, node.info)
            case "table":
                return self.table(at, node)
            case "box":
                return self.box(at, node, depth + 1)
            case "hr":
                return tree.ThematicBreak(at)
        raise AssertionError(node.type)

    def item(self, node: SyntaxTreeNode, depth: int) -> tree.ListItem:
        """An item of a list."""
        return tree.ListItem(self.lines[node.map[0]] if node.map else 0, self.blocks(node.children, depth))

    def fence(self, at: int, node: SyntaxTreeNode) -> tree.Fence:
        """Code; what else stands behind the name of its language is refused."""
        match = re.match(r"[\w+#.-]*", node.info.strip())
        language = match[0] if match else ""
        more = node.info.strip()[len(language) :].strip()
        about = f"{node.markup}{node.info}".strip()
        if more or language == "mermaid":
            refuse(self.env, "fence-words", about, more or "mermaid")
        first, last = node.map or (0, 0)
        end = self.text[self.lines[last - 1] :].partition("\n")[0] if last - 1 > first else ""
        if node.type == "fence" and not end.rstrip().endswith(node.markup):
            refuse(self.env, "open-fence", about, about, node.markup)
        return tree.Fence(at, node.content.rstrip("\n"), language)

    def table(self, at: int, node: SyntaxTreeNode) -> tree.Table:
        """A table; each of its cells is placed behind the one before."""
        rows = [row for part in node.children for row in part.children]
        for row in rows[1:]:
            line = self.text[self.lines[row.map[0]] :].partition("\n")[0] if row.map else ""
            written = escapedSplit(line.lstrip(" \t>").rstrip())
            written = written[not written[0].strip() :]
            found, heads = len(written) - (not written[-1:] or not written[-1].strip()), len(rows[0].children)
            if row.map and found != heads:
                refuse(self.env, "uneven-row", line.strip(), line.strip(), str(found), str(heads))
        cells = [
            tuple(tree.TableCell(self.last, self.words(cell.children[0], cell=True)) for cell in row.children)
            for row in rows
        ]
        edges = tuple(str(c.attrs.get("style", "")).removeprefix("text-align:") for c in rows[0].children)
        return tree.Table(at, cells[0], edges, tuple(cells[1:]))

    def box(self, at: int, node: SyntaxTreeNode, depth: int) -> tree.BlockNode:
        """A box or a fold; one without a text is refused."""
        opening = node.meta["match"]
        words, inside = self.words(node.children[0]), self.blocks(node.children[1:], depth)
        kinds = tuple((opening["kinds"] or opening["folded"] or "").lower().split())
        title = words if node.meta["titled"] else None
        block: tree.Box | tree.FoldBox
        if opening["open"] is None:
            block = tree.Box(at, kinds, title, inside)
        else:
            block = tree.FoldBox(at, kinds, title, inside, bool(opening["open"]))
        if not inside:
            name = tree.box_kind(block) if title is None else tree.plain_text(title)
            refuse(self.env, "empty-box", name, name)
        return block
