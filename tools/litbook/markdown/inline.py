"""What stands in a line of a note: markdown-it's rules and ours for it, and the nodes that come of them.

In goes a paragraph's text, out come inline nodes with their offsets. Ours are `$math$`, `[@citations]`,
names, references and bare addresses; HTML is text, and a picture is refused.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from markdown_it import MarkdownIt, helpers
from markdown_it.parser_inline import ParserInline, RuleFuncInlineType
from markdown_it.ruler import Ruler
from markdown_it.rules_inline import StateInline, link
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from msgspec.structs import replace

from litbook.markdown import nodes as tree
from litbook.markdown.refusals import refuse, refuse_words

LONGEST_LINK = 500  # characters in which the end of a link's text is looked for
LABEL = r"\[@((?:fig|tab|eq):[\w.-]+)\]"

_CITATION = re.compile(r"\[@[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]")
_LABEL = re.compile(LABEL)
_MATH = re.compile(r"\$(?![\s$])((?:[^$\\\n]|\\.|\n(?!\n))+)(?<!\s)\$(?![\d$])")
_MATHS = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_LATEX = re.compile(r"\\\([^\n]{1,200}?\\\)|\\\[[^\n]{1,200}?\\\]|\\begin\{\w+\*?\}")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]*")


class InlineState(StateInline):
    """Where a line of text is read; each token knows its offset in it."""

    def pushPending(self) -> Token:  # noqa: N802  (markdown-it's name)
        """Words up to here: what they are stands just before, but for blanks at the end of a line."""
        token = super().pushPending()
        token.meta["at"] = self.src.rfind(token.content, 0, self.pos)
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """A token of this kind."""
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token


class InlineParser(ParserInline):
    """Reads lines of text by our rules."""

    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        """The tokens of a paragraph, a heading, a cell."""
        state = InlineState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _put(state: StateInline, silent: bool, kind: str, match: re.Match[str], content: str) -> bool:
    """A token for what `match` found at this place."""
    if not silent:
        state.push(kind, "", 0).content = content
    state.pos = match.end()
    return True


def _math(state: StateInline, silent: bool) -> bool:
    """`$x$`, or `$$x$$` in a line of text; prices are no mathematics."""
    if state.src[state.pos] != "$" or re.match(r"[\\$\w]", state.src[state.pos - 1 : state.pos]):
        return False
    if match := _MATHS.match(state.src, state.pos, state.posMax):
        return _put(state, silent, "maths", match, match[1])
    match = _MATH.match(state.src, state.pos, state.posMax)
    return match is not None and _put(state, silent, "math", match, match[1])


def _latex(state: StateInline, silent: bool) -> bool:
    r"""`\(x^2\)`: mathematics of another Markdown, unless it is brackets with backslashes before them."""
    match = _LATEX.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "\\" else None
    if match is None or not re.search(r"\\[A-Za-z]|(?<!\\)[\^_]", match[0]):
        return False
    if not silent:
        refuse(state.env, "foreign-formula", match[0], match[0][:80])
    return _put(state, silent, "code_inline", match, match[0])


def _bracket(state: StateInline, silent: bool) -> bool:
    """`[@key]`, `[@fig:rate]`; inside the text of a link they are text."""
    if state.src[state.pos] != "[" or silent or state.linkLevel:
        return False
    src, at = state.src, state.pos
    if match := _LABEL.match(src, at):
        if src[match.end() : match.end() + 1] == ":" and src[:at].rpartition("\n")[2].strip() == "":
            state.push("name", "", 0).content = match[1]
            state.pos = match.end() + 1
            return True
        return _put(state, silent, "reference", match, match[1])
    match = _CITATION.match(src, at)
    return match is not None and _put(state, silent, "citation", match, match[0])


def _picture(state: StateInline, silent: bool) -> bool:
    """`![alt](address)`: nothing is fetched from elsewhere, so it stays a link."""
    if silent or not state.src.startswith("![", state.pos):
        return False
    state.pos += 1
    length, pending = len(state.tokens), state.pending
    if link(state, silent):
        refuse(state.env, "picture-in-note")
        return True
    state.pos -= 1
    del state.tokens[length:]
    state.pending = pending
    return False


def _bare(state: StateInline, silent: bool) -> bool:
    """An address written out is a link, without the full stop or bracket of the sentence around it."""
    if not state.src.startswith("://", state.pos) or state.linkLevel:
        return False
    scheme = next((name for name in ("https", "http") if state.src.endswith(name, 0, state.pos)), "")
    start = state.pos - len(scheme)
    if not scheme or re.match(r"[\w/\"'<]", state.src[start - 1 : start] if start else ""):
        return False
    match = _ADDRESS.match(state.src, start, state.posMax)
    address = match[0] if match else ""
    while address and (
        address[-1] in ".,;:!?*_"
        or (address[-1] == ")" and address.count(")") > address.count("("))
        or (address[-1] == "]" and address.count("]") > address.count("["))
    ):
        address = address[:-1]
    if len(address) <= len(scheme) + 3 or (not silent and not state.pending.endswith(scheme)):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme)]
        state.pos = start
        token = state.push("link_open", "a", 1)
        token.attrs, token.info = {"href": address}, "bare"
        state.push("text", "", 0).content = address
        state.push("link_close", "a", -1)
    state.pos = start + len(address)
    return True


class LinkHelpers:
    """What markdown-it's own rules for links call."""

    parseLinkDestination = staticmethod(helpers.parseLinkDestination)  # noqa: N815  (markdown-it's names)
    parseLinkTitle = staticmethod(helpers.parseLinkTitle)  # noqa: N815

    @staticmethod
    def parseLinkLabel(state: StateInline, start: int, disableNested: bool = False) -> int:  # noqa: N802, N803
        """Where the text of a link ends, -1 without an end.

        Looked for only so far: else a thousand `[` read the note a thousand times.
        """
        before = state.posMax
        state.posMax = min(before, start + LONGEST_LINK)
        ends = state.src.find("]", start, state.posMax) >= 0
        end = helpers.parseLinkLabel(state, start, disableNested) if ends else -1
        state.posMax = before
        return end


def use_rules(inline: Ruler[RuleFuncInlineType]) -> None:
    """Add our rules to markdown-it's, each before one of its; a picture's rule takes the place of its."""
    for before, name, rule in (
        ("newline", "bare", _bare),
        ("escape", "latex", _latex),
        ("emphasis", "math", _math),
        ("link", "bracket", _bracket),
    ):
        inline.before(before, name, rule)
    inline.at("image", _picture)


# ---------------------------------------------------------------------------- tokens -> nodes


class InlineReader:
    """Makes inline nodes of the tokens of one note, and refuses what it cannot hold."""

    def __init__(self, text: str, env: dict[str, Any], hole: str) -> None:
        self.text, self.env, self.hole = text, env, hole
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]  # where each begins
        # The offset behind the words that were placed last: cells of one line follow one another.
        self.last = 0

    def words(self, node: SyntaxTreeNode, cell: bool = False) -> tuple[tree.Inline, ...]:
        """The nodes of a paragraph, heading, title or cell; what they hold of another Markdown is refused."""
        first = node.map[0] if node.map else 0
        starts, offsets, at = list[int](), list[int](), 0
        for number, line in enumerate(node.content.split("\n"), first):
            begin = self.lines[min(number, len(self.lines) - 1)]
            source = self.text[begin:].partition("\n")[0]
            kept = source.rstrip()
            if not cell and kept.endswith(line.rstrip()):
                column = len(kept) - len(line.rstrip())
            else:
                column = max(source.find(line.strip(), max(0, self.last - begin) if cell else 0), 0)
            starts.append(at)
            offsets.append(begin + column)
            at += len(line) + 1
            self.last = begin + column + len(line)

        def place(offset: int) -> int:
            line = bisect.bisect_right(starts, offset) - 1
            return offsets[line] + offset - starts[line]

        nodes = tuple(self.inline(node.children, place))
        refuse_words(self.env, nodes)
        return nodes

    def inline(self, nodes: Iterable[SyntaxTreeNode], place: Callable[[int], int]) -> Iterator[tree.Inline]:
        """Inline nodes; text that markdown-it has cut is one again, and cut where the run puts something."""
        waiting: list[str] = []
        start = 0
        for node in nodes:
            at = int(node.meta.get("at", 0))
            if node.type == "text":
                start = start if waiting else at
                waiting.append(node.content)
                continue
            yield from self.text_of("".join(waiting), place(start))
            waiting.clear()
            yield self.leaf(node, place(at), place)
        yield from self.text_of("".join(waiting), place(start))

    def text_of(self, text: str, at: int) -> Iterator[tree.Inline]:
        """Words, and the holes in them."""
        for part in re.split(f"({re.escape(self.hole)})", text):
            if part:
                yield tree.Hole(at) if part == self.hole else tree.TextNode(at, part)
            at += len(part)

    def leaf(self, node: SyntaxTreeNode, at: int, place: Callable[[int], int]) -> tree.Inline:
        """One inline node that is no plain text."""
        match node.type:
            case "text_special":
                return tree.TextNode(at, node.content, node.markup)
            case "code_inline":
                ticks = len(node.markup)
                begin = self.text.find(node.content, at + ticks)
                return tree.InlineCode(begin if 0 <= begin <= at + ticks + 1 else at + ticks, node.content)
            case "math" | "maths":
                return tree.Math(at, node.content, node.type == "maths")
            case "link":
                forms: dict[str, Literal["angle", "bare", "text"]] = {"auto": "angle", "bare": "bare"}
                title = str(node.attrs.get("title", ""))
                form = forms.get(node.info, "text")
                inside = tuple(self.inline(node.children, place))
                if form == "angle":  # markdown-it's own rule leaves no place to its text
                    inside = tuple(replace(part, at=at + 1) for part in inside)
                return tree.Link(at, inside, str(node.attrs["href"]), title, form)
            case "citation":
                return tree.Citation(at, tuple(re.findall(r"@([\w:./+-]+)", node.content)))
            case "reference":
                return tree.LabelReference(at, node.content)
            case "name":
                return tree.Name(at, node.content)
            case "em":
                return tree.Emphasis(at, tuple(self.inline(node.children, place)), node.markup)
            case "strong":
                return tree.Strong(at, tuple(self.inline(node.children, place)), node.markup)
            case "softbreak" | "hardbreak":
                return tree.Break(at, node.type == "hardbreak")
        raise AssertionError(node.type)
