"""A notebook as mkdocs-jupyter renders it -> the same as a light, harmless part of this site's page.

What comes in is JupyterLab's HTML: 600 kB of styles, scripts, a formula renderer from another host, and
whatever HTML a notebook's Markdown holds. What goes out has the headings, prose, code and outputs, in this
site's own classes; of markup only what a list allows; formulas as MathML, pictures as this site draws them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from litbook.render import books, code, figures, markup, prose
from litbook.render.markup import Html

_SKIPPED = {"style", "script", "template", "iframe", "object", "clipboard-copy", "svg", "head", "title"}
_DROPPED = ("jp-Collapser", "jp-InputPrompt", "jp-OutputPrompt", "celltoolbar", "zeroclipboard-container",
            "clipboard-copy-txt", "anchor-link")  # fmt: skip
_KEPT = prose.ELEMENTS - {"div", "span"} | {"details", "summary", "del", "sub", "sup"}
_VOID = {"br", "hr", "img", "input", "meta", "link"}
_MATH = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$(?![\s$])((?:[^$\\]|\\.)+?)(?<!\s)\$(?![\d$])", re.DOTALL)
_HEADING = re.compile(r"h([1-6])")
_SAFE = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


# Where GitHub has the files of the built site: a repository, and in it a branch, perhaps a folder.
GITHUB = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w./-]+"


def links(source: str, address: str, github: str = "") -> Html:
    """What stands below a notebook's title: back to the page, download, Colab.

    `source` is the notebook's path below `docs/`, `address` that of its page in the site. `github` is where
    GitHub has the built site; without one Colab cannot fetch a notebook, and a sentence says what to do.
    """
    name = source.rpartition("/")[2]
    stem, lecture = name.removesuffix(".ipynb"), source.split("/")[-3]
    back = "../" if stem == "index" else f"../../{stem}/"
    saved = f"{lecture}-{stem}.ipynb" if stem != "index" else f"{lecture}.ipynb"
    parts = [
        markup.tag("a", markup.text("Download the notebook"), href=name, download=saved, class_="md-button"),
        markup.tag("a", markup.text("Read it as a page"), href=back),
    ]
    if github:
        place = github.rstrip("/").replace("https://github.com/", "https://colab.research.google.com/github/")
        colab = markup.text("Open in Colab")
        parts.insert(1, markup.tag("a", colab, href=f"{place}/{address}{name}", class_="md-button"))
        return markup.tag("p", *parts, class_="lb-nb-links")
    how = "Without installing anything: download it, then choose File, Upload notebook in Google Colab."
    ways = markup.tag("p", *parts, class_="lb-nb-links")
    return markup.join([ways, markup.tag("p", markup.text(how), class_="lb-nb-how")])


def linked(page: str, name: str, notebook: str) -> str:
    """The Markdown `page` called `name`, with a link to its notebook below the title."""
    stem = notebook.removesuffix(".ipynb")
    up = "" if name == books.INDEX else "../"
    address = f"{up}notebooks/" + ("" if stem == "index" else f"{stem}/")
    words = markup.text("Run it yourself: this page as a notebook")
    link = markup.tag("p", markup.tag("a", words, href=address), class_="lb-nb-way")
    return re.sub(r"^(# .*)$", lambda m: f"{m[1]}\n\n{link}", page, count=1, flags=re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """A heading of the page: its level, its id, its text."""

    level: int
    id: str
    text: str


@dataclass
class _Cell:
    tags: set[str]
    parts: list[Html] = field(default_factory=list)
    code: str = ""
    outputs: list[Html] = field(default_factory=list)


def slim(html: str, notebook: str, top: Html = markup.NOTHING) -> tuple[Html, list[Heading]]:
    """The page's content and its headings. `html` was made from the file `notebook`; `top` comes first."""
    reader = _Reader(_pictures(json.loads(notebook)))
    reader.feed(html)
    reader.close()
    cells = [_cell(cell) for cell in reader.cells]
    if cells:
        cells[0] = Html(cells[0].replace("</h1>", f"</h1>{top}", 1))
    known = {_key(h.text): h.id for h in reader.headings}
    text = re.sub(r'href="#([^"]*)"', lambda m: _resolve(m, known), "\n".join(cells))
    inside = Html(text)  # the cells, whose addresses on the page are now those of its headings
    return markup.tag("div", inside, class_="lb-notebook"), reader.headings


def _resolve(match: re.Match[str], known: dict[str, str]) -> str:
    found = known.get(_key(match[1]))
    return f'href="#{markup.text(found)}"' if found else "data-nowhere"


def _key(text: str) -> str:
    """A heading's text and a link to it, alike."""
    return re.sub(r"[\W_]+", "", text.replace("&#39;", "'")).casefold()


def _pictures(notebook: Any) -> list[tuple[str, str]]:
    """Every SVG among the outputs, with what it shows."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                found.append((_join(data["image/svg+xml"]), _join(data.get("text/plain", ""))))
    return found


def _join(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _cell(cell: _Cell) -> Html:
    """One cell: prose as it is, code as a block, outputs below; folded where its tags say so."""
    if not cell.code:
        return markup.join(cell.parts)
    first = cell.code.strip().split("\n")[0]
    block = code.fence(cell.code.strip("\n"), "python", tabindex=0)
    out = markup.join(cell.outputs)
    if "hide-cell" in cell.tags:
        head = markup.tag("summary", markup.text("How the answer is computed"))
        block, out = markup.tag("details", head, block, out), markup.NOTHING
    elif "hide-input" in cell.tags:
        title = first.removeprefix("# ") if first.startswith("#") else "Code that is folded on the page, too"
        title = "What stands in for the book’s engine here" if first.startswith("def stand_in") else title
        block = markup.tag("details", markup.tag("summary", markup.text(title)), block)
    return markup.tag("div", block, out, class_="lb-nb-cell")


class _Reader(HTMLParser):
    """Reads JupyterLab's HTML into cells."""

    def __init__(self, pictures: Sequence[tuple[str, str]]) -> None:
        super().__init__(convert_charrefs=True)
        self.pictures = list(pictures)
        self.drawn = 0
        self.cells: list[_Cell] = []
        self.headings: list[Heading] = []
        self.open: list[tuple[str, str]] = []  # element, what it is to us
        self.skipping = 0
        self.mode = ""  # "markdown", "code", "stream", "error"
        self.text: list[str] = []  # of the heading or block in hand
        self.into: list[Html] = []
        self.heading: tuple[int, int] | None = None
        self.ids: set[str] = set()

    # -- elements

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        classes = given.get("class", "").split()
        if self.skipping or tag in _SKIPPED or any(name in _DROPPED for name in classes):
            if tag == "svg" and not self.skipping and "jp-RenderedSVG" in self._roles():
                self._picture()
            if tag not in _VOID:
                self.skipping += 1
                self.open.append((tag, "skip"))
            return
        role = self._role(classes, given)
        if self.mode == "markdown" and role == "":
            self._element(tag, given)
        if tag not in _VOID:
            self.open.append((tag, role))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID or all(name != tag for name, _ in self.open):
            return
        while self.open:
            name, role = self.open.pop()
            if role == "skip":
                self.skipping -= 1
            elif role in ("markdown", "code", "stream", "error"):
                self._finish(role)
            elif role == "" and self.mode == "markdown" and name in _KEPT:
                self._close(name)
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if self.skipping or not self.mode:
            return
        if self.mode != "markdown":
            self.text.append(data)
            return
        if self.heading is not None:
            self.text.append(data)
        self.into.append(self._prose(data))

    # -- what an element is

    def _roles(self) -> set[str]:
        return {role for _, role in self.open}

    def _role(self, classes: list[str], given: dict[str, str]) -> str:
        if "jp-Notebook-cell" in classes and given.get("id"):
            self.cells.append(
                _Cell({c.removeprefix("celltag_") for c in classes if c.startswith("celltag_")})
            )
            return "cell"
        if not self.cells or self.mode:
            return ""
        if "jp-RenderedMarkdown" in classes:
            return self._begin("markdown")
        if "highlight-ipynb" in classes:
            return self._begin("code")
        if "jp-RenderedSVG" in classes:
            return "jp-RenderedSVG"
        if "jp-RenderedText" in classes:
            return self._begin("error" if given.get("data-mime-type", "").endswith("error") else "stream")
        return "other"

    def _begin(self, mode: str) -> str:
        self.mode, self.text, self.into = mode, [], []
        return mode

    def _finish(self, mode: str) -> None:
        self.mode = ""
        cell = self.cells[-1]
        if mode == "markdown":
            inside = Html(markup.join(self.into).strip())
            block = markup.tag("div", inside, class_="lb-prose")
            (cell.outputs if cell.code else cell.parts).append(block)
        elif mode == "code":
            cell.code += "".join(self.text)
        else:
            text = "".join(self.text).strip("\n")
            name = "lb-nb-out" if mode == "stream" else "lb-nb-out lb-nb-error"
            if text:
                samp = markup.tag("samp", markup.text(text))
                cell.outputs.append(markup.tag("pre", samp, class_=name, tabindex="0"))

    # -- Markdown

    def _element(self, tag: str, given: dict[str, str]) -> None:
        if tag == "img":
            self._image(given)
        elif match := _HEADING.fullmatch(tag):
            self.heading, self.text = (int(match[1]), len(self.into)), []
        elif tag in ("br", "hr"):
            self.into.append(markup.tag(tag))
        elif tag == "a":
            href = given.get("href", "").strip()
            fine = _SAFE.fullmatch(href) or re.fullmatch(r"#[^\s\"'<>]+", href)
            self.into.append(markup.opening("a", href=href if fine else None))
        elif tag in ("ol",) and given.get("start", "").isdecimal():
            self.into.append(markup.opening("ol", start=given["start"]))
        elif tag in _KEPT:
            self.into.append(markup.opening(tag))

    def _close(self, name: str) -> None:
        match = _HEADING.fullmatch(name)
        if match and self.heading is not None:
            level, at = self.heading
            text = " ".join("".join(self.text).split()).rstrip("¶ ")
            found = Heading(level, self._id(text), text)
            self.headings.append(found)
            self.into[at:] = [markup.tag(f"h{level}", *self.into[at:], id=found.id)]
            self.heading = None
        elif not match:
            self.into.append(markup.closing(name))

    def _id(self, text: str) -> str:
        base = re.sub(r"[^\w]+", "-", text.casefold()).strip("-") or "section"
        name, number = base, 2
        while name in self.ids:
            name, number = f"{base}-{number}", number + 1
        self.ids.add(name)
        return name

    def _prose(self, data: str) -> Html:
        """Text with its formulas; in code all is text."""
        if any(name in ("code", "pre") for name, _ in self.open):
            return markup.text(data)
        done, at = list[Html](), 0
        for match in _MATH.finditer(data):
            done += [markup.text(data[at : match.start()].replace("\n", " ")), _formula(match)]
            at = match.end()
        return markup.join([*done, markup.text(data[at:].replace("\n", " "))])

    def _image(self, given: dict[str, str]) -> None:
        try:
            self.into.append(figures.embedded(given.get("src", ""), given.get("alt", "")))
        except figures.NotAPicture:
            self.into.append(markup.text(given.get("alt", "")))

    def _picture(self) -> None:
        if self.drawn >= len(self.pictures):
            return
        svg, alt = self.pictures[self.drawn]
        self.drawn += 1
        try:
            drawing = figures.inline(svg, alt, f"n{self.drawn}-")
        except figures.NotAPicture:
            drawing = markup.tag("p", markup.text(alt))
        self.cells[-1].outputs.append(markup.tag("figure", drawing, class_="lb-figure"))


def _formula(match: re.Match[str]) -> Html:
    setting = prose.Setting(prose.Citations(books.NOTHING_CITED))
    mark = "$$" if match[1] is not None else "$"
    found = prose.passage(f"{mark}{match[1] or match[2]}{mark}", setting)
    return Html(re.sub(r"</?p>", "", found))  # a formula alone is one paragraph


def title(headings: Sequence[Heading]) -> Html:
    """The page's title, to tell it from the page that the notebook is of."""
    return markup.text(f"{headings[0].text} (notebook)" if headings else "")


def contents(headings: Sequence[Heading], make: Callable[[Any], Any]) -> Any:
    """The table of contents of the page, as MkDocs makes one of nested entries."""
    root: list[dict[str, Any]] = []
    stack = [(0, root)]
    for heading in headings:
        while stack[-1][0] >= heading.level:
            stack.pop()
        below: list[dict[str, Any]] = []
        name = markup.text(heading.text)
        entry = {"level": heading.level, "id": heading.id, "name": name, "children": below}
        stack[-1][1].append(entry)
        stack.append((heading.level, below))
    return make(root)
