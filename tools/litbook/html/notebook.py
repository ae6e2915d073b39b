"""The cells of a notebook -> the Markdown of its page in this site, in this site's own dress.

Prose goes the way of all prose, formulas are MathML, and pictures are drawn as on every other page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

from litbook.document import pieces
from litbook.document.blocks import (
    Figure,
    Image,
    Link,
    Misbelief,
    Output,
    Prose,
    Question,
    Speech,
    Told,
)
from litbook.document.labels import named
from litbook.document.notebook import (
    Cell,
    Ended,
    Handed,
    Notebook,
    Part,
    Printed,
    Program,
    Remark,
    Result,
    Title,
    Words,
)
from litbook.html import finished
from litbook.html.bibliography import references
from litbook.html.finished import Page
from litbook.render import books, code, figures, markup, pictures, prose, values
from litbook.render.catalogue import _
from litbook.render.markup import Html, tag
from litbook.text.words import ASKED

# Where GitHub has the files of the built site: a repository, and in it a branch, perhaps a folder.
GITHUB = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w./-]+"
FOLDER = "notebooks"  # of a lecture's pages
UP = "../../"  # from the page of a notebook to the folder of its lecture


def page(notebook: Notebook, place: str, github: str = "") -> Page:
    """The Markdown of the page of a notebook that lies at `place` below the site's address.

    `github` is where GitHub has the built site; without one Colab cannot fetch a notebook, and a sentence
    says what to do.
    """
    # Material prints titles as HTML.
    title = markup.text(_("{title} (notebook)", title=notebook.title.replace("`", "")))
    walk = _Walk(notebook)
    first, *rest = [block for cell in notebook.cells for block in walk.cell(cell)]
    works = references(walk.setting.citations)
    head = [markup.heading(2, _("References"), "references"), works] if works else []
    blocks = [first, _links(place, github), *rest, *head]
    return finished.page(blocks, meta=f"title: {json.dumps(title)}\n")


def way(name: str, notebook: str, takes: str) -> Html:
    """The link from the page called `name` to its notebook, and what that `takes`."""
    stem = notebook.removesuffix(".ipynb")
    up = "" if name == books.INDEX else "../"
    address = f"{up}{FOLDER}/" + ("" if stem == "index" else f"{stem}/")
    link = tag("a", _("Run it yourself: this page as a notebook"), href=address)
    return tag("p", link, tag("small", f" · {takes}"), class_="lb-nb-way")


def _links(place: str, github: str) -> Html:
    """What stands below a notebook's title: back to the page, download, Colab."""
    lecture, name = place.split("/")[-3::2]
    stem = name.removesuffix(".ipynb")
    up, back, saved = "../", f"../../{stem}/", f"{lecture}-{stem}"
    if stem == "index":
        up, back, saved = "", "../", lecture
    label = _("Download the notebook")
    download = tag("a", label, href=up + name, download=f"{saved}.ipynb", class_="md-button")
    read = tag("a", _("Read it as a page"), href=back)
    if github:
        at = github.rstrip("/").replace("https://github.com/", "https://colab.research.google.com/github/")
        colab = tag("a", _("Open in Colab"), href=f"{at}/{place}", class_="md-button")
        return tag("p", download, colab, read, class_="lb-nb-links")
    how = _("Without installing anything: download it, then choose File, Upload notebook in Google Colab.")
    return markup.join([tag("p", download, read, class_="lb-nb-links"), tag("p", how, class_="lb-nb-how")])


class _Walk:
    """One notebook on its page: the headings of its sections are named after them."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.setting = prose.Setting(
            prose.Citations(notebook.bibliography),
            resolve=self.address,
            number=self.number,
            ids="nb",
        )
        self.drawn = 0

    def address(self, name: str) -> str | None:
        """Where a section or definition stands: here, or on a page of the lecture."""
        if name in self.notebook.known:
            return f"#{books.anchor(name)}"
        address = self.notebook.addresses.get(name)
        return address and UP + address.removeprefix("./")

    def number(self, label: str) -> tuple[str, str] | None:
        """`Figure 2` for `fig:rate`, without an address: it may stand in another notebook."""
        numbers = self.notebook.numbers
        return (named(label, numbers[label]), "") if label in numbers else None

    def cell(self, cell: Cell) -> list[Html]:
        """Prose as it is; code as a block with what it put out below, folded where its tags say so."""
        match cell:
            case Words(_, parts, function):
                self.setting.level = 1 if function is None else self.notebook.levels.get(function, 1)
                return [block for part in parts for block in self.part(part)]
            case Program(_, text, results, tags, title):
                block = code.fence(text.strip("\n"), "python", tabindex=0)
                outputs = [it for result in results for it in self.output(result)]
                if "hide-cell" in tags:
                    block, outputs = _folded(title, block, *outputs), []
                elif "hide-input" in tags:
                    block = _folded(title, block)
                return [tag("div", block, *outputs, class_="lb-nb-cell")]
        assert_never(cell)

    def part(self, part: Part) -> list[Html]:
        """A part of a cell of prose."""
        match part:
            case Title(text, level, section):
                return [markup.heading(level, prose.inline(text, self.setting), books.anchor(section))]
            case Remark(text):
                return prose.blocks(text, self.setting)
            case _:
                return self.told(part)

    def told(self, block: Told) -> list[Html]:
        """What a word of the author has come to."""
        setting = self.setting
        match block:
            case Prose(_, text):
                return prose.blocks(text, setting)
            case Misbelief(_, said, run):
                lines = _labelled(_("**Commonly said:**"), said), _labelled(_("**Run:**"), run)
                inside = (prose.passage(line, setting) for line in lines)
                return [tag("div", tag("blockquote", *inside), class_="lb-prose")]
            case Question():
                return self.question(block)
            case Link(_, text, target):
                return prose.blocks(pieces.link(text, target), setting)
            case Image(_, data, alt, caption):
                return [self.picture(data, alt, caption)]
            case Figure(_, svg, alt, caption):
                return [self.figure(svg, alt), *prose.blocks(f"*{caption}*" if caption else "", setting)]
            case Output() | Speech():
                return []
        assert_never(block)

    def question(self, block: Question) -> list[Html]:
        """A question, with its hint and its answer folded."""
        setting = self.setting
        found = prose.blocks(_labelled(_(ASKED), block.text), setting)
        if block.missing:
            found.append(tag("p", _("{why}: the answer comes from the run.", why=block.missing)))
        if block.hint:
            found.append(_folded(_("Hint"), _aside(prose.passage(block.hint, setting))))
        if answer := block.answer:
            where = f" ({answer.stamp})" if answer.stamp else ""
            reply = tag("p", tag("code", values.line(answer.value, answer.unit)), where)
            why = prose.passage(block.why, setting) if block.why else markup.NOTHING
            found.append(_folded(_("Answer"), _aside(reply, why)))
        return found

    def picture(self, data: str, alt: str, caption: str) -> Html:
        """A picture with its caption; its words where it cannot be shown."""
        try:
            drawn = pictures.picture(data, alt, UP)
        except figures.NotAPicture:
            drawn = tag("p", alt)
        words = prose.passage(f"*{caption}*", self.setting) if caption else markup.NOTHING
        return markup.join([drawn, words and tag("div", words, class_="lb-prose")])

    def figure(self, svg: str, alt: str) -> Html:
        """A figure; its words where it cannot be shown."""
        self.drawn += 1
        try:
            drawn = figures.inline(svg, alt, f"n{self.drawn}-")
        except figures.NotAPicture:
            drawn = tag("p", alt)
        return tag("figure", drawn, class_="lb-figure")

    def output(self, result: Result) -> Iterator[Html]:
        """What a cell printed, showed or raised."""
        match result:
            case Printed(text):
                yield _printed(text, "lb-nb-out")
            case Ended(name, message, lines):
                yield _printed("\n".join([*lines, f"{name}: {message}"]), "lb-nb-out lb-nb-error")
            case Handed(Image(_, _, alt)):
                yield tag(
                    "div", prose.passage(_("*Picture: {alt}*", alt=alt), self.setting), class_="lb-prose"
                )
            case Handed(block):
                yield from self.told(block)
            case _:
                assert_never(result)


def _labelled(label: str, text: str) -> str:
    """Markdown behind words of our own, which are Markdown, too."""
    return f"{label} {text}"


def _folded(title: str, *inside: Html) -> Html:
    return tag("details", tag("summary", title), *inside, class_="lb-nb-fold")


def _aside(*inside: Html) -> Html:
    return tag("div", *inside, class_="lb-prose")


def _printed(text: str, name: str) -> Html:
    return tag("pre", tag("samp", text.strip("\n")), class_=name, tabindex="0")
