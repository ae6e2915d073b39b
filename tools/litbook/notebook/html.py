"""The cells of a notebook -> the Markdown of its page in this site, in this site's own dress.

Prose goes the way of all prose, formulas are MathML, and pictures are drawn as on every other page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never
from urllib.parse import quote

from litbook.html import code, elements, media, safe_svg
from litbook.html.elements import Html, Page, tag
from litbook.i18n import _
from litbook.lecture.author_words import ASKED
from litbook.markdown import to_html
from litbook.markdown.citations_html import references
from litbook.markdown.links import Citations, Setting
from litbook.markdown.nodes import label_text
from litbook.notebook import build as document
from litbook.notebook.value_text import explored
from litbook.page import blocks, pieces, sitemap
from litbook.record.model import Live
from litbook.values import formatting

# Where GitHub has the files of the built site: a repository, and in it a branch, perhaps a folder.
GITHUB = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w./-]+"
FOLDER = "notebooks"  # of a lecture's pages
UP = "../../"  # from the page of a notebook to the folder of its lecture


def page(notebook: document.Notebook, place: str, github: str = "") -> Page:
    """The Markdown of the page of a notebook that lies at `place` below the site's address.

    `github` is where GitHub has the built site; without one Colab cannot fetch a notebook, and a sentence
    says what to do.
    """
    lecture, name = place.split("/")[-3::2]
    stem = name.removesuffix(".ipynb")
    up, back, saved = "../", f"../../{stem}/", f"{lecture}-{stem}"
    if stem == "index":
        up, back, saved = "", "../", lecture
    label = _("Download the notebook")
    links = [tag("a", label, href=up + name, download=f"{saved}.ipynb", class_="md-button")]
    how = _("Without installing anything: download it, then choose File, Upload notebook in Google Colab.")
    below = tag("p", how, class_="lb-nb-how")
    if github:
        at = github.rstrip("/").replace("https://github.com/", "https://colab.research.google.com/github/")
        links.append(tag("a", _("Open in Colab"), href=f"{at}/{place}", class_="md-button"))
        repository, _blob, within = github.rstrip("/").removeprefix("https://github.com/").partition("/blob/")
        branch, _slash, folder = within.partition("/")
        file = quote("/".join(filter(None, [folder, place])), safe="")
        binder = f"https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab%2Ftree%2F{file}"
        links.append(tag("a", _("Open in Binder"), href=binder, class_="md-button"))
        below = elements.NOTHING
    links.append(tag("a", _("Read it as a page"), href=back))
    walk = _Walk(notebook)
    first, *rest = [block for cell in notebook.cells for block in walk.cell(cell)]
    ways = elements.join([tag("p", *links, class_="lb-nb-links"), below])
    # Material prints titles as HTML.
    title = elements.text(_("{title} (notebook)", title=notebook.title.replace("`", "")))
    parts = [first, ways, *rest, *references(walk.setting.citations)]
    return elements.page(parts, meta=f"title: {json.dumps(title)}\n")


def way(name: str, notebook: str, takes: str) -> Html:
    """The link from the page called `name` to its notebook, and what that `takes`."""
    stem = notebook.removesuffix(".ipynb")
    up = "" if name == sitemap.INDEX else "../"
    address = f"{up}{FOLDER}/" + ("" if stem == "index" else f"{stem}/")
    link = tag("a", _("Run it yourself: this page as a notebook"), href=address)
    return tag("p", link, tag("small", f" · {takes}"), class_="lb-nb-way")


class _Walk:
    """One notebook on its page: the headings of its sections are named after them."""

    def __init__(self, notebook: document.Notebook) -> None:
        self.notebook = notebook
        citations = Citations(notebook.bibliography)
        self.setting = Setting(citations, resolve=self.address, number=self.number, ids="nb")
        self.drawn = 0

    def address(self, name: str) -> str | None:
        """Where a section or definition stands: here, or on a page of the lecture."""
        if name in self.notebook.headings:
            return f"#{sitemap.anchor(name)}"
        address = self.notebook.addresses.get(name)
        return address and UP + address.removeprefix("./")

    def number(self, label: str) -> tuple[str, str] | None:
        """`Figure 2` for `fig:rate`, without an address: it may stand in another notebook."""
        numbers = self.notebook.numbers
        return (label_text(label, numbers[label]), "") if label in numbers else None

    def cell(self, cell: document.Cell) -> list[Html]:
        """Prose as it is; code as a block with what it put out below, folded where its tags say so."""
        match cell:
            case document.Words(_role, parts, function):
                self.setting.level = 1 if function is None else self.notebook.levels.get(function, 1)
                return [block for part in parts for block in self.part(part)]
            case document.Program(role, text, results, tags, title):
                # A file that comes along is folded, and long: its colours would be most of the page.
                language = "" if role == "module" else "python"
                block = code.fence(text.strip("\n"), language, tabindex=0)
                outputs = [output for result in results for output in self.outputs(result)]
                if "hide-cell" in tags:
                    block, outputs = _fold(title, block, *outputs), []
                elif "hide-input" in tags:
                    block = _fold(title, block)
                return [tag("div", block, *outputs, class_="lb-nb-cell")]
        assert_never(cell)

    def part(self, part: document.Part) -> list[Html]:
        """A part of a cell of prose."""
        match part:
            case document.Title(text, level, section):
                return [elements.heading(level, to_html.inline(text, self.setting), sitemap.anchor(section))]
            case document.Remark(text):
                return to_html.blocks(text, self.setting)
            case _:
                return self.told(part)

    def told(self, block: blocks.Told) -> list[Html]:
        """What a word of the author has come to."""
        setting = self.setting
        match block:
            case blocks.Prose(_line, text):
                return to_html.blocks(text, setting)
            case blocks.Misbelief(_line, common, run):
                lines = _("**Commonly said:**") + " " + common, _("**Run:**") + " " + run
                inside = (to_html.passage(line, setting) for line in lines)
                return [tag("div", tag("blockquote", *inside), class_="lb-prose")]
            case blocks.Question(_line, text, hint, answer, why, missing):
                # Its hint and its answer are folded.
                parts = to_html.blocks(_(ASKED) + " " + text, setting)
                parts += [tag("p", missing)] if missing else []
                if hint:
                    parts.append(_fold(_("Hint"), _prose(to_html.passage(hint, setting))))
                if answer:
                    where = f" ({answer.stamp})" if answer.stamp else ""
                    reply = tag("p", tag("code", formatting.line(answer.value, answer.unit)), where)
                    parts.append(_fold(_("Answer"), _prose(reply, to_html.passage(why, setting))))
                return parts
            case blocks.Link(_line, text, target):
                return to_html.blocks(pieces.link(text, target), setting)
            case blocks.Figure() | blocks.Image() | blocks.Video():
                self.drawn += 1
                try:
                    drawn = media.drawn(block, f"n{self.drawn}-", UP)
                except safe_svg.NotAPicture:
                    drawn = tag("p", block.alt)
                caption = to_html.blocks(f"*{block.caption}*", setting) if block.caption else []
                return [tag("figure", drawn, class_="lb-figure"), *caption]
            case blocks.Explore(line, Live() as live, alt):
                still = self.told(blocks.Figure(line, live.still, alt))
                return [*still, *to_html.blocks(explored(block), setting)]
            case blocks.Explore():
                return to_html.blocks(explored(block), setting)
            case blocks.Output() | blocks.Speech():
                return []
        assert_never(block)

    def outputs(self, result: document.Result) -> Iterator[Html]:
        """What a cell printed, showed or raised."""
        match result:
            case document.Printed(text):
                yield _printed(text, "lb-nb-out")
            case document.Ended(name, message, lines):
                yield _printed("\n".join([*lines, f"{name}: {message}"]), "lb-nb-out lb-nb-error")
            case document.Handed(blocks.Image() | blocks.Video() as block):  # in words, as in the notebook
                for words in document.shown(block):
                    yield from to_html.blocks(words, self.setting) if isinstance(words, str) else []
            case document.Handed(block):
                yield from self.told(block)
            case _:
                assert_never(result)


def _fold(title: str, *inside: Html) -> Html:
    return tag("details", tag("summary", title), *inside, class_="lb-nb-fold")


def _prose(*inside: Html) -> Html:
    return tag("div", *inside, class_="lb-prose")


def _printed(text: str, name: str) -> Html:
    return tag("pre", tag("samp", text.strip("\n")), class_=name, tabindex="0")
