r"""The text of a note -> its tree. Whatever the engine takes for Markdown is decided here, and nowhere else.

markdown-it-py reads CommonMark and tables; the rules below add what notes have besides: `$math$`,
`[@citations]` and names, boxes, folds, tabs, terms, footnotes, bare addresses. They need markdown-it-py
alone, which rich brings with it, so that a terminal reads notes as a page does on a machine that only
records.

HTML is text. What looks like another Markdown, and would be printed as it stands, is a refusal of the tree,
with the way out; a note that is too long or nested too deeply is one paragraph of text. No page is known
here.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from markdown_it import MarkdownIt, helpers
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline, link
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from msgspec.structs import replace

from litbook.lecture.author_words import COLOURS
from litbook.markdown import nodes as tree
from litbook.markdown.escape import visible

# Degenerate notes take markdown-it-py quadratic time: within these bounds it is never long about one.
LONGEST = 20_000  # characters of a note
LONGEST_LINK = 500  # characters in which the end of a link's text is looked for
DEEPEST = 8  # lists, quotations and boxes within one another: more would leave no room for words on a phone

HOLE = "\ue000"  # a private character, which stands for what a run puts there
LABEL = r"\[@((?:fig|tab|eq):[\w.-]+)\]"


def read(text: str, hole: str = HOLE) -> tree.Note:
    """The tree of a note; each character `hole` in words is a `Hole`. Raises nothing, whatever the text."""
    return _read(text, hole, phrase=False)


def phrase(text: str) -> tree.Note:
    """The tree of a heading or caption: one paragraph, in which nothing begins a list, a heading, a table."""
    return _read(" ".join(text.split()), HOLE, phrase=True)


@functools.lru_cache(maxsize=8192)  # pages, notebooks and several checks read a lecture's texts
def _read(text: str, hole: str, phrase: bool) -> tree.Note:
    clean = "".join(visible(text))
    what = f"this note is longer than {LONGEST:,} characters"
    if len(clean) <= LONGEST:
        env: dict[str, Any] = {"notes": {}, "calls": {}, "refusals": []}
        tokens = _markdown().parseInline(clean, env) if phrase else _markdown().parse(clean, env)
        try:
            return _Tree(clean, env, hole).note(tokens)
        except _TooDeep:
            what = "this note is nested too deeply to be laid out"
    as_text = (tree.Paragraph(0, (tree.Text(0, clean),)),) if clean.strip() else ()
    return tree.Note(clean, as_text, refusals=(tree.Refusal("prose", what, "make it several notes"),))


# ---------------------------------------------------------------------------- rules for blocks

_BOX = re.compile(
    r"(?:!!! ?(?P<kinds>[\w-]+(?: +[\w-]+)*)(?: +\"(?P<title>.*)\")?"
    r"|\?{3}(?P<open>\+?) ?(?:(?P<folded>[\w-]+(?: +[\w-]+)*)?(?: *\"(?P<name>.*)\")?(?<=[\w\"-]))"
    r"|={3}(?P<set>[!+]{0,2}) +\"(?P<tab>.*)\") *"
)
_DISPLAY = re.compile(rf"(?:{LABEL}:\s*)?(?P<rest>\$\$.*)")
_MEANING = re.compile(r":(?= {1,3}\S)")
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]:")


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


def _inside(state: StateBlock, first: int, end: int, indent: int) -> None:
    """Read the lines up to `end` as blocks of their own, indented by so much."""
    before = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = indent, end, "root"
    state.md.block.tokenize(state, first, end)
    state.blkIndent, state.lineMax, state.parentType = before


def _behind(state: StateBlock, line: int, marker: int, end: int, indent: int) -> None:
    """The same, where the first line has a marker of so many characters before its text."""
    text = state.skipSpaces(state.bMarks[line] + state.tShift[line] + marker)
    before = state.bMarks[line], state.tShift[line], state.sCount[line]
    state.bMarks[line], state.tShift[line], state.sCount[line] = min(text, state.eMarks[line]), 0, indent
    _inside(state, line, end, indent)
    state.bMarks[line], state.tShift[line], state.sCount[line] = before


def _box(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """`!!! note "Title"`, `??? note`, `=== "Title"`, and the lines below that are indented by four spaces."""
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
    title = next((match[group] for group in ("title", "name", "tab") if match[group] is not None), None)
    words = state.push("inline", "", 0)
    words.map, words.children, words.content = [first, first + 1], [], title or ""
    token.meta["titled"] = title is not None
    _inside(state, first + 1, last, indent)
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


def _terms(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Lines of terms, and below them what they mean, each behind a colon."""
    line = _terms_end(state, first, end)
    marker = line + (line < end and state.isEmpty(line))
    if silent or line == first or not _means(state, marker, end) or state.is_code_block(first):
        return False
    state.push("terms_open", "", 1).map = [first, end]
    while line > first and _means(state, marker, end):
        for term in range(first, line):
            state.push("term_open", "", 1).map = [term, term + 1]
            words = state.push("inline", "", 0)
            words.map, words.children, words.content = [term, term + 1], [], _line(state, term).strip()
            state.push("term_close", "", -1)
        while _means(state, marker, end):
            first = _lies_inside(state, marker + 1, end, state.sCount[marker] + 2)
            state.push("meaning_open", "", 1).map = [marker, first]
            _behind(state, marker, 1, first, state.sCount[marker] + 2)
            state.push("meaning_close", "", -1)
            marker = state.skipEmptyLines(first)
        line = marker = _terms_end(state, first, end)  # another term follows at once, or not at all
    state.push("terms_close", "", -1)
    state.line = first
    return True


def _terms_end(state: StateBlock, line: int, end: int) -> int:
    """The line behind those that may be terms."""
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        if _means(state, line, end):
            break
        line += 1
    return line


def _means(state: StateBlock, line: int, end: int) -> bool:
    return line < end and not state.is_code_block(line) and bool(_MEANING.match(_line(state, line)))


def _footnote(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """`[^name]: text`, and the lines below up to a blank one, or indented by four spaces."""
    match = None if state.is_code_block(first) else _FOOTNOTE.match(_line(state, first))
    if match is None or silent:
        return match is not None
    name, last = match[1], first + 1
    while last < end and not state.isEmpty(last) and not _FOOTNOTE.match(_line(state, last)):
        last += 1
    last = max(last, _lies_inside(state, last, end, state.sCount[first] + 4))
    text = state.getLines(first, last, 0, keepLastLF=False).strip()[match.end() :].strip()
    if name in state.env["notes"] or not text:
        wrong = f"the footnote [^{name}] has {'two texts' if text else 'no text'}"
        _refuse(state.env, wrong, "give each footnote a name and a text of its own", f"[^{name}]:")
    elif re.search(r"\[\^[^\]]*\]:", text):
        wrong = f"the footnote [^{name}] has another one inside"
        _refuse(state.env, wrong, "give each footnote a line of its own", f"[^{name}]:")
    state.env["notes"][name] = 0
    token = state.push("footnote_open", "", 1)
    token.map, token.info = [first, last], name
    _behind(state, first, match.end(), last, state.sCount[first] + 4)
    state.push("footnote_close", "", -1)
    state.line = last
    return True


def _definition(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """`[text]: address`; what begins with `[@` is a caption."""
    return not _line(state, first).startswith("[@") and reference(state, first, end, silent)


# ---------------------------------------------------------------------------- rules for what stands in a line

_CITATION = re.compile(r"\[@[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]")
_LABEL = re.compile(LABEL)
_CALL = re.compile(r"\[\^([^\]\s]+)\]")
_MATH = re.compile(r"\$(?![\s$])((?:[^$\\\n]|\\.|\n(?!\n))+)(?<!\s)\$(?![\d$])")
_MATHS = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_LATEX = re.compile(r"\\\([^\n]{1,200}?\\\)|\\\[[^\n]{1,200}?\\\]|\\begin\{\w+\*?\}")
_COLOURED = re.compile(rf"\[([^\[\]\n]+)\]\{{\.({'|'.join(COLOURS)})\}}")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]*")


class _State(StateInline):
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


class _Line(ParserInline):
    """Reads lines of text by our rules."""

    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        """The tokens of a paragraph, a heading, a cell."""
        state = _State(src, md, env, tokens)
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
        what = f"{match[0][:80]} is no mathematics here"
        _refuse(state.env, what, "write $…$, or $$…$$ on its own", match[0])
    return _put(state, silent, "code_inline", match, match[0])


def _coloured(state: StateInline, silent: bool) -> bool:
    """`[text]{.red}`."""
    match = _COLOURED.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "[" else None
    if match is None:
        return False
    if not silent:
        end = state.posMax
        state.push("em_open", "em", 1).markup = match[2]
        state.pos, state.posMax = match.span(1)
        state.md.inline.tokenize(state)
        state.push("em_close", "em", -1).markup = match[2]
        state.posMax = end
    state.pos = match.end()
    return True


def _bracket(state: StateInline, silent: bool) -> bool:
    """`[@key]`, `[@fig:rate]`, `[^note]`; inside the text of a link they are text."""
    if state.src[state.pos] != "[" or silent or state.linkLevel:
        return False
    src, at = state.src, state.pos
    if match := _LABEL.match(src, at):
        if src[match.end() : match.end() + 1] == ":" and src[:at].rpartition("\n")[2].strip() == "":
            state.push("name", "", 0).content = match[1]
            state.pos = match.end() + 1
            return True
        return _put(state, silent, "reference", match, match[1])
    if match := _CITATION.match(src, at):
        return _put(state, silent, "citation", match, match[0])
    match = _CALL.match(src, at)
    if match is None or match[1] not in state.env["notes"]:
        return False
    return _put(state, silent, "call", match, match[1])


def _picture(state: StateInline, silent: bool) -> bool:
    """`![alt](address)`: nothing is fetched from elsewhere, so it stays a link."""
    if silent or not state.src.startswith("![", state.pos):
        return False
    state.pos += 1
    length, pending = len(state.tokens), state.pending
    if link(state, silent):
        what = "a note cannot hold a picture"
        _refuse(state.env, what, "use image(path, alt=…) or figure(…)", code="picture-in-note")
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


def _refuse(env: Any, what: str, way_out: str, about: str = "", code: str = "prose") -> None:
    env["refusals"].append(tree.Refusal(code, what, way_out, about))


class _Helpers:
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


@functools.cache
def _markdown() -> MarkdownIt:
    """CommonMark without HTML, with tables and our rules. Addresses stay as written: back ends judge them."""
    md = MarkdownIt("commonmark", {"maxNesting": 5 * DEEPEST}).enable("table")
    inline, block = _Line(), md.block.ruler
    inline.ruler.enableOnly(md.inline.ruler.get_active_rules())
    md.inline, md.helpers = inline, cast(Any, _Helpers)
    md.validateLink = bool  # type: ignore[assignment, method-assign]
    md.normalizeLink = md.normalizeLinkText = str  # type: ignore[assignment, method-assign]
    md.disable(["html_block", "html_inline"]).disable(["text_join", "fragments_join"], ignoreInvalid=True)
    ends = ["paragraph", "reference", "blockquote", "list"]
    block.before("code", "box", _box, {"alt": ends})
    block.before("fence", "display", _display, {"alt": ends})
    block.before("reference", "footnote", _footnote, {"alt": ends})
    block.at("reference", _definition)
    block.before("paragraph", "terms", _terms)
    for before, name, rule in (
        ("newline", "bare", _bare),
        ("escape", "latex", _latex),
        ("emphasis", "math", _math),
        ("link", "coloured", _coloured),
        ("link", "bracket", _bracket),
    ):
        inline.ruler.before(before, name, rule)
    inline.ruler.at("image", _picture)
    return md


# ---------------------------------------------------------------------------- tokens -> tree


class _TooDeep(Exception):
    """More lists, quotations and boxes within one another than a page can hold."""


class _Tree:
    """Makes the tree of one note of its tokens, and collects what the note cannot hold."""

    def __init__(self, text: str, env: dict[str, Any], hole: str) -> None:
        self.text, self.env, self.hole = text, env, hole
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]  # where each begins
        # The offset behind the words that were placed last: cells of one line follow one another.
        self.last = 0
        self.footnotes: dict[str, tree.Footnote] = {}

    def note(self, tokens: list[Token]) -> tree.Note:
        """The whole tree."""
        root = SyntaxTreeNode(tokens)
        if tokens and tokens[0].type == "inline":  # a phrase
            blocks: tuple[tree.Block, ...] = (tree.Paragraph(0, self.words(root.children[0])),)
        else:
            blocks = self.blocks(root.children)
        calls: dict[str, int] = self.env["calls"]
        names = [*calls, *(name for name in self.footnotes if name not in calls)]
        for name in names[len(calls) :]:
            way_out = f"write [^{name}] where it belongs"
            _refuse(self.env, f"nothing calls the footnote [^{name}]", way_out, f"[^{name}]:")
        texts = (self.footnotes.get(name) for name in names)
        footnotes = [replace(text, calls=calls.get(text.name, 0)) for text in texts if text]
        return tree.Note(self.text, blocks, tuple(footnotes), tuple(self.env["refusals"]))

    # -- blocks

    def blocks(self, nodes: Iterable[SyntaxTreeNode], depth: int = 0) -> tuple[tree.Block, ...]:
        """These blocks, `depth` of which lie around them."""
        if depth > DEEPEST:
            raise _TooDeep
        blocks: list[tree.Block] = []
        for node in nodes:
            block = self.block(node, depth)
            if block is None:
                continue
            above = blocks[-1] if blocks else None
            match above, block:
                case tree.Tabs(tabs=tabs), tree.Tabs() if not node.meta["match"]["set"].startswith("!"):
                    blocks[-1] = replace(above, tabs=(*tabs, *block.tabs))
                    continue
                case tree.Terms(parts=parts), tree.Terms():
                    blocks[-1] = replace(above, parts=(*parts, *block.parts))
                    continue
                case tree.Paragraph(children=(tree.Name(label=label), *_)), tree.Table() if label.startswith(
                    "tab:"
                ):
                    blocks[-1] = replace(block, caption=above.children)
                    continue
            blocks.append(block)
        for block in blocks:
            match block:
                case tree.Paragraph(children=(tree.Name(label=label), *_)) if label.startswith("tab:"):
                    what = f"Table {label.partition(':')[2]} has a caption and no table"
                    _refuse(self.env, what, "put the caption above the table", "[@tab:")
        return tuple(blocks)

    def block(self, node: SyntaxTreeNode, depth: int) -> tree.Block | None:  # noqa: PLR0911 (a case for each)
        """One block; None for the text of a footnote, which has its place below the note."""
        first = node.map[0] if node.map else 0
        line = self.text[self.lines[first] :].partition("\n")[0] if first < len(self.lines) else ""
        at = self.lines[min(first, len(self.lines) - 1)] + len(line) - len(line.lstrip())
        match node.type:
            case "paragraph":
                self.nearly_table(node.children[0].content.split("\n"))
                return tree.Paragraph(at, self.words(node.children[0]), tight=node.hidden)
            case "heading":
                return tree.Heading(at, int(node.tag[1]), self.words(node.children[0]))
            case "blockquote":
                return tree.Quote(at, self.blocks(node.children, depth + 1))
            case "bullet_list" | "ordered_list":
                start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
                items = tuple(self.item(child, depth + 1) for child in node.children)
                return tree.List(at, items, start, node.markup)
            case "terms":
                return tree.Terms(at, tuple(self.term(child, depth + 1) for child in node.children))
            case "fence" | "code_block":
                return self.fence(at, node)
            case "display":
                return tree.Display(at, node.content, node.info)
            case "table":
                return self.table(at, node)
            case "box":
                return self.box(at, node, depth + 1)
            case "footnote":
                inside = self.blocks(node.children, depth + 1)
                self.footnotes[node.info] = tree.Footnote(at, node.info, inside, 0)
                return None
            case "hr":
                return tree.Rule(at)
        raise AssertionError(node.type)

    def item(self, node: SyntaxTreeNode, depth: int) -> tree.Item:
        """An item; `[x]` before its text says that a task is done."""
        blocks = self.blocks(node.children, depth)
        at = self.lines[node.map[0]] if node.map else 0
        match blocks:
            case (tree.Paragraph(children=(tree.Text(text=text) as words, *rest)) as first, *others):
                if match := re.match(r"\[([ xX])\](?:\s|$)", text):
                    left = tree.Text(words.at + match.end(), text[match.end() :])
                    first = replace(first, children=(left, *rest) if left.text else (*rest,))
                    return tree.Item(at, (first, *others), match[1] != " ")
        return tree.Item(at, blocks)

    def term(self, node: SyntaxTreeNode, depth: int) -> tree.Term | tree.Meaning:
        """A term, or what one means; a meaning of one paragraph is only its words."""
        at = self.lines[node.map[0]] if node.map else 0
        if node.type == "term":
            return tree.Term(at, self.words(node.children[0]))
        match self.blocks(node.children, depth):
            case (tree.Paragraph() as only,):
                return tree.Meaning(at, (replace(only, tight=True),))
            case several:
                return tree.Meaning(at, several)

    def fence(self, at: int, node: SyntaxTreeNode) -> tree.Fence:
        """Code; what else stands behind the name of its language is refused."""
        match = re.match(r"[\w+#.-]*", node.info.strip())
        language = match[0] if match else ""
        more = node.info.strip()[len(language) :].strip()
        if more or language == "mermaid":
            what = f"a fence takes the name of a language, nothing like {more or 'mermaid'!r}"
            about = f"{node.markup}{node.info}".strip()
            _refuse(self.env, what, "leave it out; a drawing is a figure(…)", about)
        first, last = node.map or (0, 0)
        end = self.text[self.lines[last - 1] :].partition("\n")[0] if last - 1 > first else ""
        if node.type == "fence" and not end.rstrip().endswith(node.markup):
            about = f"{node.markup}{node.info}".strip()
            _refuse(self.env, f"the fence {about} does not end", f"close it with {node.markup}", about)
        return tree.Fence(at, node.content.rstrip("\n"), language)

    def nearly_table(self, lines: list[str]) -> None:
        """The lines of a paragraph that would be a table, if its rule had as many columns as its head."""
        for head, rule in itertools.pairwise(lines):
            if "|" in head and "|" in rule and re.fullmatch(r"[\s|:]*-[-\s|:]*", rule):
                what = f"this is no table: {rule.strip()} has not as many columns as {head.strip()}"
                _refuse(self.env, what, "give each column of the head its |---| below it", rule.strip())

    def table(self, at: int, node: SyntaxTreeNode) -> tree.Table:
        """A table; each of its cells is placed behind the one before."""
        rows = [row for part in node.children for row in part.children]
        cells = [
            tuple(tree.Cell(self.last, self.words(cell.children[0], cell=True)) for cell in row.children)
            for row in rows
        ]
        edges = tuple(str(c.attrs.get("style", "")).removeprefix("text-align:") for c in rows[0].children)
        return tree.Table(at, cells[0], edges, tuple(cells[1:]))

    def box(self, at: int, node: SyntaxTreeNode, depth: int) -> tree.Block:
        """A box, a fold or a tab; one without a text is refused."""
        opening = node.meta["match"]
        words, inside = self.words(node.children[0]), self.blocks(node.children[1:], depth)
        kinds = tuple((opening["kinds"] or opening["folded"] or "").lower().split())
        title = words if node.meta["titled"] else None
        block: tree.Tabs | tree.Box | tree.Fold
        if opening["tab"] is not None:
            block = tree.Tabs(at, (tree.Tab(at, words, inside, "+" in opening["set"]),))
        elif opening["open"] is None:
            block = tree.Box(at, kinds, title, inside)
        else:
            block = tree.Fold(at, kinds, title, inside, bool(opening["open"]))
        if not inside:
            name = ""
            if not isinstance(block, tree.Tabs):
                name = tree.kind(block) if title is None else tree.plain(title)
            what = f"the box or tab {name!r} is empty: nothing below it is indented"
            _refuse(self.env, what, "indent its text by four spaces", name)
        return block

    # -- what stands in a line

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
        for run in _runs(nodes):
            for mark, what, way_out in _MARKS if _SIGN.search(run) else ():
                if match := mark.search(run):
                    written = match[0].replace(_OTHER, "…")
                    _refuse(self.env, f"a note cannot hold {what}: {written[:60]!r}", way_out, match[0])
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
                yield tree.Hole(at) if part == self.hole else tree.Text(at, part)
            at += len(part)

    def leaf(  # noqa: PLR0911 (a case for each kind)
        self, node: SyntaxTreeNode, at: int, place: Callable[[int], int]
    ) -> tree.Inline:
        """One inline node that is no plain text."""
        match node.type:
            case "text_special":
                return tree.Text(at, node.content, node.markup)
            case "code_inline":
                ticks = len(node.markup)
                begin = self.text.find(node.content, at + ticks)
                return tree.Code(begin if 0 <= begin <= at + ticks + 1 else at + ticks, node.content)
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
                return tree.Reference(at, node.content)
            case "name":
                return tree.Name(at, node.content)
            case "call":
                calls = self.env["calls"]
                calls[node.content] = calls.get(node.content, 0) + 1
                return tree.Call(at, node.content, calls[node.content])
            case "em":
                return tree.Emphasis(at, tuple(self.inline(node.children, place)), node.markup)
            case "strong":
                return tree.Strong(at, tuple(self.inline(node.children, place)), node.markup)
            case "softbreak" | "hardbreak":
                return tree.Break(at, node.type == "hardbreak")
        raise AssertionError(node.type)


# ---------------------------------------------------------------------------- what is refused

_OTHER = "\x02"  # in a run of text: what is no text, such as a formula
_WITHIN = "\x03"  # what begins a run behind code, a link, emphasis, and begins no line

_HTML = """a abbr audio b big blockquote br button canvas center code dd del details div dl dt em embed
    figcaption figure font form h[1-6] hr i iframe img input ins kbd label li link mark math object ol p pre s
    samp script section small source span strike strong style sub summary sup svg table tbody td textarea
    tfoot th thead tr u ul var video"""
_MARKED = (
    r"(?<![=\w])==(?=[^\s=]).{1,200}?(?<=[^\s=])==(?![=\w])",
    r"(?<![~\w])~~(?=[^\s~]).{1,200}?(?<=[^\s~])~~(?![~\w])",
    r"(?<!\^)\^\^(?=[^\s^]).{1,200}?(?<=[^\s^])\^\^",
    r"(?<![+\w])\+\+[a-z]+(?:\+[a-z]+)*\+\+(?!\+)",
)
_BLOCKS = (r"^:{3,} ?\S.*", r"^/{3} ?\S.*", r"^--8<--.*", r"^\[TOC\]", r"^\*\[[^\]]+\]:.*")

# What text may still hold when Markdown has been read, and what an author does about it.
_MARKS = [
    (re.compile(mark, re.MULTILINE), what, way_out)
    for mark, what, way_out in (
        (
            rf"</?(?:{'|'.join(_HTML.split())})(?:\s[^<>]*)?/?>|<!--",
            "HTML",
            "write it in Markdown, or in backticks",
        ),
        (
            r"\[\^[^\]\s]+\](?!:)",
            "a footnote without its text",
            "add a line [^name]: … to this note, or correct the name",
        ),
        (
            r"^(?:!!!|\?{3}\+?) ?[\w\"].*|^={3}[+!]* *\".*",
            "a box or tab that cannot be read",
            'write !!! note "Title", and indent its text by four spaces',
        ),
        (r"^:\s{1,3}\S.*", "a definition without a term", "put the term on the line above"),
        ("|".join(_BLOCKS), "a block of another Markdown", "use a box, !!! note, a table or a list"),
        (r"\{:? ?[.#][A-Za-z][^{}]*\}", "an attribute", "leave it out: notes have no styles and ids"),
        ("|".join(_MARKED), "marked text", "use *…* or **…**"),
        (
            r"(?<=\w)(?:\^[^\s^]+\^|~[^\s~]+~)(?![\^~\w])",
            "a raised or lowered text",
            "write it as mathematics, $x^2$",
        ),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]+:(?![\w:`])", "an icon", "write the character itself, such as ✓"),
        (r"(?:^|(?<=\s))\[[^\[\]]+\]\[[^\[\]]*\]", "a link without an address", "write [text](https://…)"),
        (
            r"\[@[\w:./+-]+,[^\]]*\]",
            "a citation with a place",
            "write [@key], and the place as words beside it",
        ),
        (r"\$\$.*", "a formula that does not end", "close it with $$, with no blank line inside"),
        (
            r"(?<![$\w])\$(?![\s\d$])[^$\n]*\\[A-Za-z]{2}.*",
            "a formula that does not end",
            "close it with $, before a blank line",
        ),
    )
]
_SIGN = re.compile(r"[<\[!?=:/{~^+$-]")  # no mark is without one of these


def _runs(children: Iterable[tree.Inline], lead: str = "") -> Iterator[str]:
    """The text of inline nodes, in one piece up to code, a link or emphasis, and again behind it."""
    run = [lead]
    for node in children:
        match node:
            case tree.Text(text=text, written=written):
                # `\alpha` escapes nothing: it stays in the run.
                run.append(_OTHER if written and not written[1:].isalpha() else text)
            case tree.Break():
                run.append("\n")
            case tree.Hole():
                run.append("…")
            case tree.Math() | tree.Citation() | tree.Reference() | tree.Name():
                run.append(_OTHER)
            case tree.Code() | tree.Call() | tree.Link() | tree.Emphasis() | tree.Strong():
                yield "".join(run)
                run = [_WITHIN]
                if isinstance(node, tree.Emphasis | tree.Strong) or (
                    isinstance(node, tree.Link) and node.form == "text"
                ):
                    yield from _runs(node.children, _WITHIN)
    yield "".join(run)
