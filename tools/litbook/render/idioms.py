"""A note's element tree, once Markdown has read it: what a page needs changed, and what was left unread.

Tasks become signs, a table takes its caption, footnotes and tabs get ids that no other note of the page has.
What belongs to another Markdown than ours would be printed as it stands, so each such mark is named with the
way out. It knows neither lectures nor pages.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

from markdown.extensions.footnotes import FootnoteExtension
from markdown.util import HTML_PLACEHOLDER_RE, AtomicString

from litbook.render.catalogue import _, later

Report = Callable[[str, str, str, str], None]
"""A slug, what is wrong, the way out, and the text that it is about."""

# What looks like mathematics without dollars; `is_latex` decides.
LATEX = r"\\\([^\n]{1,200}?\\\)|\\\[[^\n]{1,200}?\\\]|\\begin\{\w+\*?\}"

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
_OTHERS = (r"^:{3,} ?\S.*", r"^/{3} ?\S.*", r"^--8<--.*", r"^\[TOC\]", r"^\*\[[^\]]+\]:.*")

# What the text of a note that Markdown has read still holds, and what an author does about it.
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
        ("|".join(_OTHERS), "a block of another Markdown", "use a box, !!! note, a table or a list"),
        (r"\{:? ?[.#][A-Za-z][^{}]*\}", "an attribute", "leave it out: notes have no styles and ids"),
        ("|".join(_MARKED), "marked text", "use *…* or **…**"),
        (
            r"(?<=\w)(?:\^[^\s^]+\^|~[^\s~]+~)(?![\^~\w])",
            "a raised or lowered text",
            "write it as mathematics, $x^2$",
        ),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]+:(?![\w:`])", "an icon", "write the character itself, such as ✓"),
        (r"(?:^|(?<=\s))\[[^\[\]]+\]\[[^\[\]]*\]", "a link without an address", "write [text](https://…)"),
        (r"\$\$.*", "a formula that does not end", "close it with $$, with no blank line inside"),
    )
]
_SIGN = re.compile(r"[<\[!?=:/{~^+$-]")  # no mark is without one of these
_SIGNS = {"x": ("☑", later("done")), " ": ("☐", later("to do"))}
_BOXES = (later("Note"), later("Info"), later("Tip"), later("Important"), later("Example"), later("Question"),
          later("Warning"), later("Danger"), later("Quote"), later("Abstract"), later("Success"))  # fmt: skip


def is_latex(text: str) -> bool:
    """Whether what `LATEX` finds is mathematics, not brackets with backslashes before them."""
    return bool(re.search(r"\\[A-Za-z]|(?<!\\)[\^_]", text))


class Footnotes(FootnoteExtension):
    """Footnotes in the order in which a note calls them."""

    def __init__(self, report: Report) -> None:
        super().__init__(USE_DEFINITION_ORDER=False)
        self.report = report

    def setFootnote(self, id: str, text: str) -> None:  # noqa: A002, N802  (Markdown's names)
        """Keep the text of a footnote."""
        if id in self.footnotes or not text.strip():
            wrong = f"the footnote [^{id}] has {'two texts' if text.strip() else 'no text'}"
            self.report("prose", wrong, "give each footnote a name and a text of its own", f"[^{id}]:")
        elif re.search(r"\[\^[^\]]*\]:", text):
            wrong = f"the footnote [^{id}] has another one inside"
            self.report("prose", wrong, "give each footnote a line of its own", f"[^{id}]:")
            text = re.sub(r"(\[\^[^\]]*\]):", r"\1 :", text)  # Markdown fails where it finds one meanwhile
        super().setFootnote(id, text if text.strip() else "…")

    def makeFootnotesDiv(self, root: ET.Element) -> ET.Element | None:  # noqa: N802
        """The texts, each with a way back: where one shows nothing, Markdown has left that out, and fails."""
        div: ET.Element | None = super().makeFootnotesDiv(root)
        for item, name in zip(div[1] if div is not None else (), self.footnotes, strict=False):
            if item.find('.//a[@class="footnote-backref"]') is None:
                back = {"class": "footnote-backref", "href": f"#{self.makeFootnoteRefId(name)}"}
                ET.SubElement(ET.SubElement(item, "p"), "a", back).text = "↩"
        return div

    def unique_ref(self, reference: str, found: bool = False) -> str:
        """The id of a call: `fnref:name`, `fnref2:name` … Markdown looks for a free one from the first on."""
        count = self.found_refs[reference] = self.found_refs.get(reference, 0) + found
        return reference if count < 2 or not found else reference.replace("fnref", f"fnref{count}", 1)

    def unused(self) -> list[str]:
        """The names of footnotes that their note does not call."""
        return [name for name in self.footnotes if name not in self.footnote_order]


def settle(root: ET.Element, stash: list[str], report: Report) -> None:
    """Change `root` into what a page shows, and report what of it would say nothing or stand there unread."""
    for parent in list(root.iter()):
        _task(parent)
        if parent.text in _BOXES and (parent.tag == "summary" or parent.get("class") == "admonition-title"):
            parent.text = _(parent.text)  # a kind without a title of the author's
        if stash:
            _caption(parent, stash, report)
        if (title := _empty_box(parent)) is not None:
            what = f"the box or tab {title!r} is empty: nothing below it is indented"
            report("prose", what, "indent its text by four spaces", title)
        if parent is not root:
            _no_headings(parent)
    for text in _texts(root):
        for mark, what, way_out in _MARKS if _SIGN.search(text) else ():
            if match := mark.search(text):
                said = re.sub("\x02.*?\x03", "…", match[0])  # Markdown's mark for what it has put aside
                report("prose", f"a note cannot hold {what}: {said[:60]!r}", way_out, match[0])


def number(root: ET.Element, notes: list[str], footnotes: int, tabs: int) -> tuple[int, int]:
    """Give footnotes and tabs their ids, behind as many on this page; how many there are then.

    `notes` are the names of the note's footnotes, in their order.
    """
    sets: dict[str, int] = {}  # of tabs: their number here -> on the page
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if called := re.fullmatch(r"(#?)(fn|fnref)(\d*):(.*)", value):
                at = footnotes + notes.index(called[4]) + 1
                element.set(name, f"{called[1]}{called[2]}-{at}{'-' * bool(called[3])}{called[3]}")
                if element.get("class") == "footnote-ref":
                    element.text = str(at)
                elif element.get("class") == "footnote-backref":
                    element.attrib.pop("title", None)
                    element.set("aria-label", _("back to footnote {n} in the text", n=at))
            elif tab := re.fullmatch(r"__tabbed_(\d+)(?:_(\d+))?", value):
                group = sets.setdefault(tab[1], tabs + len(sets) + 1)
                element.set(name, f"tabs-{group}{'-' * bool(tab[2])}{tab[2] or ''}")
        if element.get("class") == "footnote":
            element.remove(element[0])  # a rule
            element[0].set("start", str(footnotes + 1))
    return footnotes + len(notes), tabs + len(sets)


def _task(item: ET.Element) -> None:
    """`[x]` at the start of an item as a sign that can be read aloud."""
    holder = item[0] if len(item) and item[0].tag == "p" and not (item.text or "").strip() else item
    if item.tag == "li" and (found := re.match(r"\[([ xX])\](?:\s|$)", holder.text or "")):
        sign, said = _SIGNS[found[1].lower()]
        box = ET.Element("span", {"class": "lb-task", "role": "img", "aria-label": _(said)})
        box.text, box.tail = AtomicString(sign), " " + (holder.text or "")[found.end() :]
        holder.text = ""
        holder.insert(0, box)


def _caption(parent: ET.Element, stash: list[str], report: Report) -> None:
    """What names a table moves into the table below it."""
    for above in [it for it in parent if it.tag == "p"]:
        found = HTML_PLACEHOLDER_RE.match(above.text or "")
        named = re.match(r'<span id="tab-[^>]*>(.*?)\.<', stash[int(found[1])]) if found else None
        if named is None:
            continue
        at = list(parent).index(above)
        if len(parent) > at + 1 and parent[at + 1].tag == "table":
            parent.remove(above)
            above.tag = "caption"
            parent[at].insert(0, above)
        else:
            report(
                "prose", f"{named[1]} has a caption and no table", "put the caption above the table", "[@tab:"
            )


def _empty_box(element: ET.Element) -> str | None:
    """The title of a box without a text; "" for a tab."""
    heads = [it for it in element if it.tag == "summary" or it.get("class") == "admonition-title"]
    is_box = element.tag == "details" or re.match(r"admonition\b|tabbed-block", element.get("class", ""))
    if not is_box or len(element) > len(heads) or (element.text or "").strip():
        return None
    return "".join(heads[0].itertext()) if heads else ""


def _no_headings(parent: ET.Element) -> None:
    """Inside of a box or list a heading is only bold: no contents lead there."""
    for child in parent:
        if re.fullmatch("h[1-6]", child.tag):
            bold = ET.Element("strong")
            bold.text, bold[:] = child.text, child[:]
            child.tag, child.text, child[:] = "p", None, [bold]


def _texts(element: ET.Element) -> Iterator[str]:
    """What readers see of an element, but for code and addresses; what begins no line begins with a mark."""
    if element.tag in ("code", "pre"):
        return
    inside = "\x03" * (element.tag in ("em", "strong", "a", "span", "sup"))
    for lead, it in [(inside, element.text), *(("\x03", child.tail) for child in element)]:
        if it and not isinstance(it, AtomicString):
            yield lead + str(it)
    for child in element:
        yield from _texts(child)
