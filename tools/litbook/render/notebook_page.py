"""A notebook -> the Markdown of its page in this site: the same cells, in this site's own dress.

In goes the notebook's JSON, out comes a page as the lecture's are: prose goes through `prose`, so that none
of it is HTML, formulas are MathML, and pictures are drawn as on every other page. It knows no record.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from litbook.render import books, code, figures, markup, pictures, prose
from litbook.render.catalogue import _
from litbook.render.markup import Html

# Where GitHub has the files of the built site: a repository, and in it a branch, perhaps a folder.
GITHUB = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w./-]+"

_FOLD = re.compile(r"^<details><summary>([^<]*)</summary>$(.*?)^</details>$", re.DOTALL | re.MULTILINE)
UP = "../../"  # from the page of a notebook to the folder of its lecture
_PICTURE = re.compile(r"!\[(.*)\]\(attachment:picture\)\n*")
_LINK = re.compile(r"\]\(#([^)\s]+)\)")


def page(notebook: str, place: str, github: str = "") -> str:
    """The Markdown of the page of a notebook that lies at `place` below the site's address.

    `github` is where GitHub has the built site; without one Colab cannot fetch a notebook, and a sentence
    says what to do.
    """
    found = _Page(json.loads(notebook)["cells"])
    title = json.dumps(
        markup.text(_("{title} (notebook)", title=found.title))
    )  # Material prints titles as HTML
    meta = f"---\ntitle: {title}\nsearch:\n  exclude: true\n---\n\n"
    first, *rest = found.blocks or [markup.NOTHING]
    return meta + markup.page([first, _links(place, github), *rest])


def linked(page: str, name: str, notebook: str, takes: str) -> str:
    """The Markdown `page` called `name`, with a link to its notebook and what that `takes`."""
    stem = notebook.removesuffix(".ipynb")
    up = "" if name == books.INDEX else "../"
    address = f"{up}notebooks/" + ("" if stem == "index" else f"{stem}/")
    words = markup.text(_("Run it yourself: this page as a notebook"))
    small = markup.tag("small", markup.text(f" · {takes}"))
    link = markup.tag("p", markup.tag("a", words, href=address), small, class_="lb-nb-way")
    top = r'^# .*(?:\n\n<p class="lb-summary">.*)?$'  # the title, and how many claims hold
    return re.sub(top, lambda m: f"{m[0]}\n\n{link}", page, count=1, flags=re.MULTILINE)


def _links(place: str, github: str) -> Html:
    """What stands below a notebook's title: back to the page, download, Colab."""
    lecture, name = place.split("/")[-3::2]
    stem = name.removesuffix(".ipynb")
    up, back, saved = "../", f"../../{stem}/", f"{lecture}-{stem}"
    if stem == "index":
        up, back, saved = "", "../", lecture
    parts = [
        markup.tag("a", markup.text(_("Download the notebook")), href=up + name, download=f"{saved}.ipynb",
                   class_="md-button"),
        markup.tag("a", markup.text(_("Read it as a page")), href=back),
    ]  # fmt: skip
    if github:
        at = github.rstrip("/").replace("https://github.com/", "https://colab.research.google.com/github/")
        colab = markup.tag("a", markup.text(_("Open in Colab")), href=f"{at}/{place}", class_="md-button")
        return markup.tag("p", parts[0], colab, parts[1], class_="lb-nb-links")
    how = _("Without installing anything: download it, then choose File, Upload notebook in Google Colab.")
    ways = markup.tag("p", *parts, class_="lb-nb-links")
    return markup.join([ways, markup.tag("p", markup.text(how), class_="lb-nb-how")])


class _Page:
    """The blocks of a page, and its title."""

    def __init__(self, cells: list[Any]) -> None:
        nothing_cited = prose.Citations(books.NOTHING_CITED)
        self.setting = prose.Setting(nothing_cited, resolve=lambda name: f"#to-{name}", ids="nb", level=0)
        self.drawn = 0
        blocks = [block for cell in cells for block in self._cell(cell)]
        headings = [it for it in (re.fullmatch(r"#+ (.*) \{#(.*)\}", block) for block in blocks) if it]
        ids = {_key(_words(it[1])): it[2] for it in reversed(headings)}
        self.title = _words(headings[0][1]) if headings else ""
        self.blocks = [
            Html(re.sub(r'href="#to-([^"]*)"', lambda m: f'href="#{ids.get(_key(m[1]), "nb-1")}"', block))
            for block in blocks
        ]

    def _cell(self, cell: Any) -> list[Html]:
        """Prose as it is; code as a block with its outputs below, folded where its tags say so."""
        text = _whole(cell["source"])
        if cell["cell_type"] != "code":
            return self._prose(text, cell.get("attachments", {}).get("picture", {}))
        tags = cell["metadata"].get("tags", [])
        block = code.fence(text.strip("\n"), "python", tabindex=0)
        outputs = [self._output(it) for it in cell["outputs"]]
        if "hide-cell" in tags:
            block, outputs = _folded(_("How the answer is computed"), [block, *outputs]), []
        elif "hide-input" in tags:
            first = text.strip().partition("\n")[0]
            title = first[2:] if first.startswith("# ") else _("Code that the page folds, too")
            title = first.removeprefix("%%writefile ") if first.startswith("%%") else title
            title = _("What stands in for the book’s engine here") if title == "litbook.py" else title
            block = _folded(title, [block])
        return [markup.tag("div", block, *outputs, class_="lb-nb-cell")]

    def _prose(self, text: str, picture: dict[str, str]) -> list[Html]:
        found: list[Html] = []
        if match := _PICTURE.match(text):
            alt = html.unescape(match[1])
            data = next((f"data:{kind};base64,{data}" for kind, data in picture.items()), "")
            try:
                found.append(pictures.picture(data, alt, UP))
            except figures.NotAPicture:
                found.append(markup.tag("p", markup.text(alt)))
            text = text[match.end() :]
        for i, part in enumerate(_FOLD.split(text)):
            if i % 3 == 1:
                summary = part
            elif i % 3 == 2:
                found.append(
                    _folded(summary, [markup.tag("div", self._aside(part.strip()), class_="lb-prose")])
                )
            else:
                found += prose.blocks(_LINK.sub(_as_word, part), self.setting)
        return found

    def _aside(self, text: str) -> Html:
        """A hint, or an answer as code."""
        if match := re.fullmatch(r"<code>(.*?)</code>(.*?)(?:\n\n(.*))?", text, re.DOTALL):
            value, where = (markup.text(html.unescape(it)) for it in match.groups()[:2])
            reply = markup.tag("p", markup.tag("code", value), where)
            return markup.join([reply, *([self._passage(match[3])] if match[3] else [])])
        return self._passage(text)

    def _passage(self, text: str) -> Html:
        return prose.passage(_LINK.sub(_as_word, text.strip()), self.setting)

    def _output(self, output: Any) -> Html:
        """What a cell printed, showed or raised."""
        if output["output_type"] == "error":
            return _printed("\n".join(output["traceback"]), "lb-nb-out lb-nb-error")
        if output["output_type"] == "stream":
            return _printed(_whole(output["text"]), "lb-nb-out")
        data = {kind: _whole(text) for kind, text in output["data"].items()}
        if "image/svg+xml" not in data:
            return markup.tag("div", self._passage(data["text/markdown"]), class_="lb-prose")
        self.drawn += 1
        try:
            drawing = figures.inline(data["image/svg+xml"], data["text/plain"], f"n{self.drawn}-")
        except figures.NotAPicture:
            drawing = markup.tag("p", markup.text(data["text/plain"]))
        return markup.tag("figure", drawing, class_="lb-figure")


def _whole(text: str | list[str]) -> str:
    """A notebook has long texts as lists of lines."""
    return text if isinstance(text, str) else "".join(text)


def _folded(title: str, inside: list[Html]) -> Html:
    return markup.tag("details", markup.tag("summary", markup.text(title)), *inside, class_="lb-nb-fold")


def _printed(text: str, name: str) -> Html:
    samp = markup.tag("samp", markup.text(text.strip("\n")))
    return markup.tag("pre", samp, class_=name, tabindex="0")


def _as_word(match: re.Match[str]) -> str:
    """A link to a heading as `prose` lets it through."""
    word = re.sub(r"\W", "_", match[1])
    return f"](#{word})"


def _words(heading: str) -> str:
    """What a heading says."""
    return html.unescape(re.sub(r"<[^>]*>", "", heading))


def _key(text: str) -> str:
    """A heading's text and a link to it, alike."""
    return re.sub(r"[\W_]+", "", text).casefold()
