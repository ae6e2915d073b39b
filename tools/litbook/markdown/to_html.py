"""A note's tree -> HTML of one line, for any page: formulas are MathML, citations numbered links.

Only nodes become elements and everything else is text, so nothing that a note holds can run, load or lead
anywhere but where `NoteContext` lets it. `blocks` gives a whole note, its headings as headings of the page;
`passage` one inside a box, where headings are only bold; `inline` a heading or caption.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from litbook.html import code, elements
from litbook.html.elements import Html, PlainHtml, tag
from litbook.i18n import _
from litbook.markdown import citations_html, grammar, mathml
from litbook.markdown import nodes as tree
from litbook.markdown.links import NoteContext

NEW_LINE = Html("&#10;")  # a block of a page stays on one line
_NUMBER = re.compile(r"[-−]?[\d_,.]*\d(?:e[-+]?\d+)?")  # in backticks: text, no code
_PLAIN = tree.TextNode | tree.InlineCode | tree.Hole | tree.Emphasis | tree.Strong  # what may be a number
_AMOUNT = re.compile(r"[-−–]?|[-−+±~≈<>≤≥ ]*\d[\d,._ ]*(e[-+]?\d+)?( ?([%×]|[a-zA-Z/]{1,9}))?")


def blocks(text: str | tree.Note, setting: NoteContext) -> list[Html]:
    """Headings of the page, and between them HTML blocks of one line each."""
    note = _read(text, setting)
    writer, made, waiting = _NoteRenderer(setting), list[Html](), list[Html]()

    def flush() -> None:
        if waiting:
            made.append(tag("div", elements.join(waiting, NEW_LINE), class_="lb-prose"))
            waiting.clear()

    for block in note.blocks:
        if isinstance(block, tree.Heading):
            flush()
            if words := writer.line(block.children):
                setting.headings += 1
                level, name = setting.level + block.level, f"{setting.ids}-{setting.headings}"
                made.append(elements.heading(level, words, name))
        else:
            waiting.append(writer.block(block))
    flush()
    return made


def passage(text: str | tree.Note, setting: NoteContext) -> Html:
    """A note as one line of HTML to stand inside a box: its headings are only bold."""
    note = _read(text, setting)
    writer = _NoteRenderer(setting)
    return elements.join(map(writer.block, note.blocks), NEW_LINE)


def inline(text: str | tree.Note, setting: NoteContext) -> Html:
    """A short text (a heading, a caption) as inline HTML: code, emphasis, mathematics, citations."""
    note = grammar.phrase(text) if isinstance(text, str) else text
    setting.refuse(note)
    return _NoteRenderer(setting).line(note.line)


def formula(source: str) -> Html:
    """LaTeX that a library wrote, between its dollars; nothing where that cannot be shown."""
    try:
        made, _number = mathml.mathml(source.strip().strip("$").replace("\\displaystyle", ""), "block")
    except Exception:  # latex2mathml raises whatever it likes for what is none
        return elements.NOTHING
    return tag("span", made, class_="lb-math")


def _read(text: str | tree.Note, setting: NoteContext) -> tree.Note:
    note = grammar.read(text) if isinstance(text, str) else text
    setting.refuse(note)
    return note


def _text(text: str) -> Html:
    """Words as HTML on one line."""
    return PlainHtml(html.escape(text, quote=False).replace("\n", NEW_LINE))


def _lines(parts: Iterable[Html]) -> Html:
    """Each on a line of its own."""
    return elements.join([NEW_LINE, *(line for part in parts for line in (part, NEW_LINE))])


class _NoteRenderer:
    """Writes one note."""

    def __init__(self, setting: NoteContext) -> None:
        self.setting = setting

    def blocks(self, children: Iterable[tree.BlockNode]) -> Html:
        """Blocks inside another one."""
        return _lines(map(self.block, children))

    def block(self, block: tree.BlockNode) -> Html:
        """One block; a heading is bold: no contents lead into a box or list."""
        match block:
            case tree.Paragraph(children=children):
                return tag("p", self.line(children))
            case tree.Heading(children=children):
                return tag("p", tag("strong", self.line(children)))
            case tree.Quote(children=children):
                return tag("blockquote", self.blocks(children))
            case tree.List(items=items, start=start):
                name, first = ("ul", None) if start is None else ("ol", start if start != 1 else None)
                return tag(name, _lines(map(self.item, items)), start=first)
            case tree.Fence(text=text, language=language):
                return code.fence(text, language)
            case tree.DisplayMath(latex=latex, label=label):
                return tag("p", self.formula(latex, "block", label))
            case tree.Table():
                return self.table(block)
            case tree.Box(kinds=kinds, title=title, children=children):
                words = tag("p", self.title(block), class_="admonition-title")
                head = [] if title == () else [NEW_LINE, words]
                return tag("div", *head, self.blocks(children), class_=" ".join(["admonition", *kinds]))
            case tree.FoldBox(kinds=kinds, children=children, open=is_open):
                inside = NEW_LINE, tag("summary", self.title(block)), self.blocks(children)
                state = "open" if is_open else None
                return tag("details", *inside, class_=" ".join(kinds) or None, open=state)
            case tree.ThematicBreak():
                return tag("hr")
            case _:
                assert_never(block)

    def item(self, item: tree.ListItem) -> Html:
        """An item of a list."""
        match item.children:
            case (tree.Paragraph(tight=True, children=children), *others):
                rest = [self.blocks(others)] if others else []
                return tag("li", self.line(children), *rest)
            case (tree.Paragraph(children=children), *others):
                below = self.blocks(others) if others else NEW_LINE
                return tag("li", NEW_LINE, tag("p", self.line(children)), below)
            case several:
                return tag("li", self.blocks(several) if several else elements.NOTHING)

    def title(self, box: tree.Box | tree.FoldBox) -> Html:
        """The title of a box; of one without, its kind in the site's language."""
        return _text(tree.box_title(box)) if box.title is None else self.line(box.title)

    def table(self, table: tree.Table) -> Html:
        """A table. Columns of numbers end at one edge, unless the author says where they stand."""
        edges = list(table.edges)
        for i, edge in enumerate(edges):
            column = [row[i].children for row in table.rows]
            words = [tree.plain_text(cell).strip() for cell in column]
            amounts = all(_AMOUNT.fullmatch(text) for text in words)
            plain = all(isinstance(node, _PLAIN) for cell in column for node in cell)
            if not edge and any(words) and amounts and plain:
                edges[i] = "right"

        def row(name: str, cells: Sequence[tree.TableCell]) -> Html:
            styles = (f"text-align: {edge};" if edge else None for edge in edges)
            pairs = zip((self.line(cell.children) for cell in cells), styles, strict=True)
            return tag("tr", _lines(tag(name, text, style=style) for text, style in pairs))

        caption = [tag("caption", self.line(table.caption))] if table.caption else []
        head = tag("thead", _lines([row("th", table.head)]))
        body = tag("tbody", _lines(row("td", cells) for cells in table.rows))
        whole = tag("table", _lines([*caption, head, body]))
        return tag("div", whole, class_="lb-scroll", tabindex=0, role="group", aria_label=_("table"))

    # -- what stands in a line

    def line(self, children: Sequence[tree.Inline]) -> Html:
        """Inline nodes; what ends a sentence behind a formula stays on its line."""
        parts: list[Html] = []
        taken = 0  # characters of the next text that stand with the formula before it
        for i, node in enumerate(children):
            made = (
                _text(node.text[taken:]) if taken and isinstance(node, tree.TextNode) else self.inline(node)
            )
            taken = 0
            after = children[i + 1] if i + 1 < len(children) else None
            formula = isinstance(node, tree.Math) and not node.display and made.startswith("<math")
            if formula and isinstance(after, tree.TextNode):
                taken = len(after.text) - len(after.text.lstrip(".,;:?!)"))
                made = tag("span", made, after.text[:taken], class_="lb-nowrap") if taken else made
            parts.append(made)
        return elements.join(parts)

    def inline(self, node: tree.Inline) -> Html:  # noqa: PLR0911 (a case for each kind)
        """One inline node."""
        match node:
            case tree.TextNode(text=text):
                return _text(text)
            case tree.Hole():
                return Html("…")
            case tree.InlineCode(text=text):
                return _text(text) if _NUMBER.fullmatch(text) else tag("code", _text(text))
            case tree.Math(latex=latex, display=display):
                return self.formula(latex, "block" if display else "inline")
            case tree.Link(children=children, address=written, title=title):
                words, address = self.line(children), self.setting.address(written)
                return tag("a", words, href=address, title=title or None) if address else words
            case tree.Citation(keys=keys):
                works = [(key, self.setting.cite(key)) for key in keys]
                opens = self.setting.citations.opens
                links = (
                    citations_html.citation(*work, opens=opens) if work else _text(f"@{key}?")
                    for key, work in works
                )
                return tag("span", "[", elements.join(links, ", "), "]", class_="lb-cite")
            case tree.LabelReference(label=label):
                wording, address = self.setting.refer(label)
                return tag("a", wording, href=address) if address else elements.text(wording)
            case tree.Name(label=label):
                return tag(
                    "span", f"{self.setting.name(label)}.", id=tree.label_anchor(label), class_="lb-name"
                )
            case tree.Emphasis(children=children):
                return tag("em", self.line(children))
            case tree.Strong(children=children):
                return tag("strong", self.line(children))
            case tree.Break(hard=hard):
                return elements.join([tag("br"), elements.SPACE]) if hard else elements.SPACE
            case _:
                assert_never(node)

    def formula(self, latex: str, display: str, label: str = "") -> Html:
        """LaTeX as MathML on one line; where that fails, the source as code and a problem."""
        made = self.setting.formula(latex, display, mathml.mathml, label)
        if made is None:
            return tag("code", _text(f"${latex.strip()}$"), class_="lb-badmath")
        body, number = made
        if display != "block":
            return body
        if label:
            counted = re.search(r"\d+", self.setting.name(label))
            number = f"({counted[0] if counted else label.partition(':')[2]})"
        mark = tag("span", number, class_="lb-eqno") if number else elements.NOTHING
        name = {"id": tree.label_anchor(label)} if label else {}
        return tag("span", body, mark, class_="lb-math" + " lb-numbered" * bool(number), **name)
