"""A note's Markdown -> Markdown that is safe in any page.

What comes out is ordinary Markdown headings and one-line HTML blocks. The note goes through a
Python-Markdown of our own that has no raw HTML and no attribute lists; then its element tree is held
against a list of what may appear (everything else loses its tag or attribute), and at last the finished
HTML is parsed once more and must contain nothing else. What fails that test is shown as plain text.
Mathematics becomes MathML and citations become numbered links, so that no page needs a script.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

import markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from litbook.errors import Place, Problem
from litbook.render import code, formulas, idioms, markup
from litbook.render.bibliography import Bibliography, BibliographyError, find, names, reference
from litbook.render.catalogue import _
from litbook.render.idioms import LATEX, Footnotes, is_latex
from litbook.render.markup import Html, tag
from litbook.render.numbers import anchor as anchor_of
from litbook.render.numbers import named
from litbook.render.standin import LABEL, owning

# Python-Markdown needs quadratic time for degenerate notes: within these bounds it is never long about one.
LONGEST = 20_000  # characters of a note
LONGEST_LINK = 500  # characters in which the end of a link is looked for
DEEPEST = 8  # lists, quotations and boxes within one another: more would leave no room for words on a phone

ELEMENTS = frozenset(
    "p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd strong em sup code pre blockquote hr br a div span "
    "table caption thead tbody tr th td cite bdi button details summary input label".split()
)
_ATTRIBUTES = frozenset(
    "class href title start style aria-label role id open type name for checked data-tabs "
    "popovertarget".split()
)
_STYLE = re.compile(r"text-align: (left|right|center);")
_CLASS = re.compile(r"[\w -]*")
_AMOUNT = re.compile(r"[-−–]?|[-−+±~≈<>≤≥ ]*\d[\d,._ ]*(e[-+]?\d+)?( ?([%×]|[a-zA-Z/]{1,9}))?")
_HREF = re.compile(r"(https?://|mailto:|#|[./\w-]+/?#)[^\s<>\"'`]*|\.\./[./\w-]*", re.I)
_CITATION = r"\[@[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]"


@dataclass
class Citations:
    """The works that one page cites, numbered in the order of their first citation.

    `opens` says that a citation opens beside its line, for pages that end in the list of `references`.
    """

    bibliography: Bibliography
    cited: list[str] = field(default_factory=list)
    opens: bool = False

    def link(self, key: str) -> Html:
        """A work's number, which opens it or leads to it. `BibliographyError` for an unknown key."""
        entry = find(self.bibliography, key)
        if key not in self.cited:
            self.cited.append(key)
        number = self.cited.index(key) + 1
        label = _("reference {n}: {work}", n=number, work=f"{names(entry)} {entry.year}".strip())
        if self.opens:
            return tag("button", number, type="button", popovertarget=_card(key), aria_label=label)
        return tag("a", number, href=f"#{anchor(key)}", aria_label=label)

    def references(self) -> Html:
        """The list at the page's end, with what citations open, as one line of HTML; else empty."""
        works = [(key, reference(self.bibliography[key])) for key in self.cited]
        items = [tag("li", work, id=anchor(key)) for key, work in works]
        cards = [
            tag(
                "div",
                work,
                " ",
                tag("a", _("In the list"), href=f"#{anchor(key)}"),
                class_="lb-cited",
                id=_card(key),
                popover="auto",
            )
            for key, work in works
            if self.opens
        ]
        return tag("div", tag("ol", *items, class_="lb-references"), *cards) if items else markup.NOTHING


def anchor(key: str) -> str:
    """The id of a reference on its page."""
    return "ref-" + re.sub(r"[^\w-]", "-", key)


def _card(key: str) -> str:
    return f"cited-{anchor(key)}"


LINKED = (
    "link to a function or class that this lecture defines, without @hide, or name its module in __beside__"
)

Resolve = Callable[[str], str | None]
"""A function's name -> the address of its section, from the page in hand; None where it has none."""

Number = Callable[[str], tuple[str, str] | None]
"""`fig:rate` -> `Figure 2` and its address from the page in hand, if it has one; None for an unknown name."""


@dataclass
class Setting:
    """What surrounds a note: where it stands, what it may cite and link to, where problems go."""

    citations: Citations
    problems: list[Problem] = field(default_factory=list)
    place: Place | None = None
    ahead: Sequence[str] = ()  # the lines of the file from `place` on
    resolve: Resolve = lambda _: None
    number: Number = lambda _: None
    ids: str = "note"  # headings of notes become f"{ids}-1", ...
    level: int = 2  # the heading above the note
    headings: int = 0
    footnotes: int = 0  # so far on this page
    tabs: int = 0
    converter: markdown.Markdown | None = None  # made for the first note, which takes longer than the note

    def report(self, slug: str, what: str, way_out: str = "", at: str = "") -> None:
        """Keep a problem of the note in hand: where its lines say `at`, else where it begins."""
        place, first = self.place, at.partition("\n")[0]
        line = next((n for n, text in enumerate(self.ahead) if first and first in text), None)
        if place is not None and line is not None:
            text = self.ahead[line]
            place = replace(place, line=place.line + line, column=text.index(first) + 1, text=text)
        elif place is not None and place.column == 1:  # only the line is known
            place = replace(place, column=len(place.text) - len(place.text.lstrip()) + 1)
        self.problems.append(Problem(slug, what, place, way_out))


_NUMBER = re.compile(r'(?<!lb-fence">)<code>([-−]?[\d_,.]*\d(?:e[-+]?\d+)?)</code>')  # text, no code
_FORMULA = re.compile(r"(<math\b(?:(?!</math>).)*</math>[.,;:?!)]+)")  # no line begins with its full stop
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[,;]? [A-Za-z0-9]+)*")


def inline(text: str, setting: Setting) -> Html:
    """A short text (a heading, a caption) as inline HTML: code, emphasis, mathematics, citations."""
    if _PLAIN.fullmatch(text):
        return Html(text)  # most captions: nothing that Markdown or HTML would read
    body = _html(" ".join(text.split()), setting)
    match = re.fullmatch(r"<p>(.*)</p>", body)
    return Html(match[1]) if match and "<p>" not in match[1] else markup.text(text)


def passage(text: str, setting: Setting) -> Html:
    """A text as one line of HTML to stand inside a box: its headings are only bold."""
    bold = r"<p><strong>\1</strong></p>"
    return Html(re.sub(r"<h[1-6]>(.*?)</h[1-6]>", bold, _html(text, setting)))


def blocks(text: str, setting: Setting) -> list[Html]:
    """Markdown headings, and between them HTML blocks of one line each."""
    found: list[Html] = []
    for part in re.split(r"(<h[1-6]>.*?</h[1-6]>)", _html(text, setting)):
        heading = re.fullmatch(r"<h([1-6])>(.*)</h[1-6]>", part)
        if heading and heading[2].strip():
            found.append(_heading(int(heading[1]), Html(heading[2]), setting))
        elif part.strip():
            found.append(tag("div", Html(part.strip()), class_="lb-prose"))
    return found


def _heading(level: int, content: Html, setting: Setting) -> Html:
    setting.headings += 1
    return markup.heading(setting.level + level, content, f"{setting.ids}-{setting.headings}")


# ---------------------------------------------------------------------------- our Markdown


def _html(text: str, setting: Setting) -> Html:
    """The note as HTML on one line, or as plain text where the result holds what it must not."""
    clean, body = owning(_without_controls(text)), ""
    if len(clean) > LONGEST:
        setting.report("prose", f"this note is longer than {LONGEST:,} characters", "make it several notes")
        return markup.tag("p", markup.text(clean))
    converter, setting.converter = setting.converter or _converter(setting), None
    try:
        body = converter.reset().convert(clean)
        setting.converter = converter  # not where it was left in the middle
    except RecursionError:
        setting.report("prose", "this note is nested too deeply to be laid out", "make it several notes")
    body = _FORMULA.sub(r'<span class="lb-nowrap">\1</span>', _NUMBER.sub(r"\1", body.strip()))
    body = body.replace("\n", "&#10;")
    if body and is_harmless(body):
        return Html(body)
    return tag("p", clean) if clean.strip() else markup.NOTHING


def _without_controls(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return re.sub(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]|[\u200b-\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\ud800-\udfff]",
        _code_point,
        text,
    )


def _code_point(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match[0]):04X}⟩"


_OTHERS = ("tables", "admonition", "sane_lists", "def_list", "pymdownx.details", "pymdownx.tabbed")


def _converter(setting: Setting) -> markdown.Markdown:
    footnotes = Footnotes(setting.report)
    converter = markdown.Markdown(
        extensions=[*_OTHERS, footnotes, _NoteSyntax(setting, footnotes)],
        extension_configs={"pymdownx.tabbed": {"alternate_style": True}},
        output_format="xhtml",
    )
    converter.preprocessors.deregister("html_block")
    for name in ("html", "automail", "image_link", "image_reference", "short_image_ref"):
        converter.inlinePatterns.deregister(name)
    return converter


class _NoteSyntax(Extension):
    """Fences, mathematics, citations and bare links; and the tree held against the list."""

    def __init__(self, setting: Setting, footnotes: Footnotes) -> None:
        super().__init__()
        self.setting, self.footnotes = setting, footnotes

    def extendMarkdown(self, md: markdown.Markdown) -> None:  # noqa: N802 (Python-Markdown's name)
        setting = self.setting
        md.preprocessors.register(_Blocks(md, setting), "litbook-blocks", 25)
        display = r"(?<![\\$])\$\$(.+?)\$\$"
        math = r"(?<![\\$\w])\$(?![\s$])((?:[^$\\\n]|\\.|\n(?!\n))+?)(?<!\s)\$(?![\d$])"
        picture = r"!(?=\[[^\]]*\]\()"
        bare = r"(?<![\w/\"'<(])https?://[^\s<>\"'`\x02\x03]*[^\s<>\"'`\x02\x03.,;:!?)\]*_]"
        inline: list[tuple[int, _Inline]] = [
            (186, _Inline(display, md, lambda m, plain: _formula(plain(m[1]), "block", setting))),
            (185, _Inline(math, md, lambda m, plain: _formula(plain(m[1]), "inline", setting))),
            (187, _Inline(LATEX, md, lambda m, _: _no_dollars(m[0], setting))),
            (177, _Inline(LABEL, md, lambda m, _: _referred(m[1], setting), links=True)),
            (176, _Inline(_CITATION, md, lambda m, _: _cited(m[0], setting), links=True)),
            (172, _Inline(picture, md, lambda _, __: _no_picture(setting))),
            (71, _Inline(bare, md, lambda m, plain: _bare(m[0], plain(m[0])), links=True)),
        ]
        for priority, processor in inline:
            md.inlinePatterns.register(processor, f"litbook-{priority}", priority)
        for name in ("link", "reference", "short_reference"):
            _bound(md.inlinePatterns[name])
        md.ESCAPED_CHARS = [*md.ESCAPED_CHARS, *"=~:<^?/"]
        md.treeprocessors.register(
            _Idioms(md, setting, self.footnotes), "litbook-idioms", 5
        )  # before escapes are read
        md.treeprocessors.register(_Allowed(md, setting), "litbook-allowed", -10)


def _bound(links: InlineProcessor) -> None:
    """Every `[` looks for its end: only so far, or a thousand of them read the note a thousand times."""
    whole = links.handleMatch
    links.handleMatch = lambda m, data: whole(m, data[: m.end() + LONGEST_LINK])


class _Blocks(Preprocessor):
    """Fenced code and display mathematics, also indented in lists; an open fence ends with the note."""

    FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})[ ]*(?P<language>[\w+#.-]*)(?P<more>[^`\n]*)$")
    DISPLAY = re.compile(rf"^(?P<indent> *)(?:{LABEL}:\s*)?(?P<rest>\$\$.*)$")
    CAPTION = re.compile(rf"^( *){LABEL}:[ ]*(.*)$")

    def __init__(self, md: markdown.Markdown, setting: Setting) -> None:
        super().__init__(md)
        self.setting = setting

    def run(self, lines: list[str]) -> list[str]:
        done: list[str] = []
        at = 0
        while at < len(lines):
            if match := self.FENCE.match(lines[at]):
                at = self.fence(lines, at, match, done)
            elif (match := self.DISPLAY.match(lines[at])) and (
                end := self.display_end([match["rest"], *lines[at + 1 :]])
            ):
                body = "\n".join([match["rest"], *lines[at + 1 : at + end]]).strip()[2:-2]
                self.put(match["indent"], _formula(body, "block", self.setting, match[2] or ""), done)
                at += end
            elif match := self.CAPTION.match(lines[at]):
                number = self.md.htmlStash.store(_caption(match[2], self.setting))
                done += [
                    f"{match[1]}{number} {match[3]}",
                    *[""] * "".join(lines[at + 1 : at + 2]).startswith("|"),
                ]
                at += 1
            else:
                done.append(lines[at])
                at += 1
        return done

    def fence(self, lines: list[str], at: int, match: re.Match[str], done: list[str]) -> int:
        """Store the fence that opens on line `at`; the line after its end."""
        indent, mark, more = len(match["indent"]), match["mark"], match["more"].strip()
        if more or match["language"] == "mermaid":
            what = f"a fence takes the name of a language, nothing like {more or 'mermaid'!r}"
            self.setting.report("prose", what, "leave it out; a drawing is a figure(…)", match[0].strip())
        closing = re.compile(rf"^ *{re.escape(mark[0])}{{{len(mark)},}} *$")
        end = next((i for i in range(at + 1, len(lines)) if closing.match(lines[i])), len(lines))
        body = [line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines[at + 1 : end]]
        self.put(match["indent"], code.fence("\n".join(body).rstrip("\n"), match["language"]), done)
        return end + 1

    def display_end(self, lines: list[str]) -> int:
        """How many lines the formula takes that opens on the first; 0 if a blank one comes before its end."""
        for i, line in enumerate(lines):
            text = line.strip()
            if not text:
                return 0
            inside = text[0 if i else 2 : -2]
            if text.endswith("$$") and (i or len(text) > 4) and "$$" not in inside:
                return i + 1
        return 0

    def put(self, indent: str, html_text: str, done: list[str]) -> None:
        done += ["", indent + self.md.htmlStash.store(html_text), ""]


Make = Callable[[re.Match[str], Callable[[str], str]], "Html | ET.Element | str | None"]
"""What stands for a match, None if it is none; the function takes away Python-Markdown's own marks."""


class _Inline(InlineProcessor):
    """A pattern, and what stands in its place; where that has links, not inside a link."""

    def __init__(self, pattern: str, md: markdown.Markdown, make: Make, *, links: bool = False) -> None:
        super().__init__(pattern, md)
        self.make = make
        self.ANCESTOR_EXCLUDES = ("a",) if links else ()

    def handleMatch(self, m: re.Match[str], data: str) -> Any:  # noqa: ARG002, N802  (Python-Markdown's signature)
        made = self.make(m, self.unescape)
        if made is None:
            return None, None, None
        return self.md.htmlStash.store(made) if isinstance(made, Html) else made, m.start(0), m.end(0)


def _cited(citation: str, setting: Setting) -> Html:
    links: list[str] = []
    for key in re.findall(r"@([\w:./+-]+)", citation):
        try:
            links.append(setting.citations.link(key))
        except BibliographyError as error:
            setting.report("unknown-citation", str(error), "add it to references.bib")
            links.append(f"@{key}?")
    return tag("span", "[", markup.join(links, ", "), "]", class_="lb-cite")


def _referred(label: str, setting: Setting) -> Html:
    """`Figure 2`, a link to where it stands."""
    found = setting.number(label)
    if found is None:
        what = f"no figure, table or equation of this lecture is named {label!r}"
        setting.report("unknown-name", what, f"begin its caption with [@{label}]:", f"[@{label}]")
    words, address = found or (named(label), "")
    return tag("a", words, href=address) if address else markup.text(words)


def _caption(label: str, setting: Setting) -> Html:
    """`Figure 2.` before a caption."""
    words, _ = setting.number(label) or (named(label), "")
    return tag("span", f"{words}.", id=anchor_of(label), class_="lb-name")


def _formula(source: str, display: str, setting: Setting, label: str = "") -> Html:
    """LaTeX as MathML on one line; where that fails, the source as code and a problem."""
    source = source.strip()
    try:
        body, number = formulas.mathml(source, display)
        if label and number:
            raise ValueError(rf"it has a \tag and is named [@{label}]:, which numbers it, too")
    except Exception as error:
        why = str(error) or type(error).__name__
        what = f"this is not LaTeX that can be shown: ${source[:80]}$ ({why})"
        setting.report("bad-math", what, "write it in other words, or cut it into several formulas", source)
        return tag("code", f"${source}$", class_="lb-badmath")
    if display != "block":
        return body
    if label:
        words, _ = setting.number(label) or (named(label), "")
        counted = re.search(r"\d+", words)
        number = f"({counted[0] if counted else label.partition(':')[2]})"
    said = tag("span", number, class_="lb-eqno") if number else markup.NOTHING
    name = {"id": anchor_of(label)} if label else {}
    return tag("span", body, said, class_="lb-math" + " lb-numbered" * bool(number), **name)


def _no_dollars(latex: str, setting: Setting) -> Html | None:
    """Mathematics of another Markdown as code, and a problem."""
    if not is_latex(latex):
        return None
    setting.report("prose", f"{latex[:80]} is no mathematics here", "write $…$, or $$…$$ on its own", latex)
    return tag("code", latex)


def _no_picture(setting: Setting) -> str:
    """`![alt](address)`: nothing is fetched from elsewhere, so it stays a link."""
    setting.report("picture-in-note", "a note cannot hold a picture", "use image(path, alt=…) or figure(…)")
    return ""


def _bare(address: str, href: str) -> ET.Element:
    """An address written out is a link."""
    link = ET.Element("a", href=href)
    link.text = AtomicString(address)
    return link


# ---------------------------------------------------------------------------- what may appear


class _Idioms(Treeprocessor):
    """Footnotes, tabs, tasks and captions as a page has them; what was not read is a problem."""

    def __init__(self, md: markdown.Markdown, setting: Setting, footnotes: Footnotes) -> None:
        super().__init__(md)
        self.setting, self.footnotes = setting, footnotes

    def run(self, root: ET.Element) -> None:
        setting, notes = self.setting, self.footnotes
        for name in notes.unused():
            what, way_out = f"nothing calls the footnote [^{name}]", f"write [^{name}] where it belongs"
            setting.report("prose", what, way_out, f"[^{name}]:")
        idioms.settle(root, self.md.htmlStash.rawHtmlBlocks, setting.report)
        names = [*notes.footnote_order, *notes.unused()]
        setting.footnotes, setting.tabs = idioms.number(root, names, setting.footnotes, setting.tabs)


class _Allowed(Treeprocessor):
    """The last look at the tree: only known elements, only known attributes, only known addresses."""

    def __init__(self, md: markdown.Markdown, setting: Setting) -> None:
        super().__init__(md)
        self.setting = setting

    def run(self, root: ET.Element) -> None:
        if _levels(root) > DEEPEST + 1:  # the root is a box, too
            raise RecursionError
        for element in root.iter():
            if element.tag not in ELEMENTS:
                element.tag = "span"
            for name, value in list(element.attrib.items()):
                element.attrib.pop(name)
                if name == "href" and element.get("class") not in _NOTES:
                    self.link(element, value)
                elif _allowed(name, value):
                    element.set(name, value)
            if element.tag == "table":
                _align(element)

    def link(self, element: ET.Element, value: str) -> None:
        """Give `element` its address back if it leads where a note may lead."""
        address = html.unescape(value)
        if re.fullmatch(r"#\w[\w.:]*", address):
            found = self.setting.resolve(address[1:])
            if found is None:
                what = f"no page shows a section, helper, class or line {address[1:]!r} to link to"
                self.setting.report("broken-link", what, LINKED)
                return
            address = found
        elif not re.fullmatch(r"(https?://|mailto:)[^\s<>\"'`\x02\x03]+", address, re.I):
            self.setting.report(
                "bad-link", f"a note cannot link to {address[:80]!r}", "use https://… or #section"
            )
            return
        element.set("href", address)


_NOTES = ("footnote-ref", "footnote-backref")  # whose links are our own


def _align(table: ET.Element) -> None:
    """Columns of numbers end at one edge, unless the author says where they stand."""
    for head, *cells in zip(*table.iter("tr"), strict=False):
        texts = ["".join(cell.itertext()).strip() for cell in cells]
        if "style" not in head.attrib and any(texts) and all(map(_AMOUNT.fullmatch, texts)):
            for cell in (head, *cells):
                cell.set("style", "text-align: right;")


def _levels(element: ET.Element) -> int:
    """How many lists, quotations and boxes stand within one another."""
    part = element.get("class", "").startswith("tabbed-") and element.get("class") != "tabbed-block"
    box = element.tag in ("ul", "ol", "dl", "blockquote", "div", "details") and not part
    return box + max(map(_levels, element), default=0)


def _allowed(name: str, value: str) -> bool:
    """Whether an attribute may stay: no note's own text can give an element one but a title."""
    if name not in _ATTRIBUTES or "\x02" in value:
        return False
    if name == "style":
        return bool(_STYLE.fullmatch(value))
    return name != "class" or bool(_CLASS.fullmatch(value))


def is_harmless(body: str) -> bool:
    """Whether HTML `body` holds only the elements, attributes and addresses that a note may have."""
    reader = _Reader()
    reader.feed(body)
    reader.close()
    return reader.harmless and not reader.open


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.harmless = True
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("br", "hr", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.harmless = False

    def handle_comment(self, data: str) -> None:  # noqa: ARG002 (the parser's signature)
        self.harmless = False

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]  # its name for `data`

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = formulas.ATTRIBUTES if tag in formulas.ELEMENTS else _ATTRIBUTES
        names_ = [name for name, _ in attrs]
        fine = tag in ELEMENTS | formulas.ELEMENTS and (tag != "input" or ("type", "radio") in attrs)
        fine = fine and set(names_) <= known and len(set(names_)) == len(names_)
        for name, value in attrs:
            if name == "href":
                fine = fine and bool(_HREF.fullmatch(value or ""))
            if name == "style":
                fine = fine and bool(_STYLE.fullmatch(value or ""))
        self.harmless = self.harmless and fine


def formula(source: str) -> Html:
    """LaTeX that a library wrote, between its dollars; nothing where that cannot be shown."""
    try:
        made, _ = formulas.mathml(source.strip().strip("$").replace("\\displaystyle", ""), "block")
    except Exception:  # latex2mathml raises whatever it likes for what is none
        return markup.NOTHING
    return tag("span", made, class_="lb-math")
