"""One page in the making: the files it shows, by rows of numbered lines, and what its prose may refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from litbook.finding import Place
from litbook.html import code, elements
from litbook.html.elements import Html, tag
from litbook.i18n import _
from litbook.markdown.links import FAR, NoteContext
from litbook.page import sitemap
from litbook.page.highlight import CodeLine, CodeLink
from litbook.page.sitemap import Sitemap
from litbook.record.model import Record, Section

COPIED = 8  # lines: a shorter block is as quickly marked


@dataclass
class PageBuilder:
    """One page in the making: what it is drawn from, and what has been put on it."""

    book: Sitemap
    page: str
    setting: NoteContext
    follow: Callable[[PageBuilder, Section, int], list[Html]]  # what stands where a section is called
    links: sitemap.Links = field(default_factory=dict)
    pictures: int = 0
    explored: int = 0  # pictures with sliders
    live: int = 0  # of these, the ones that a script of the author's draws
    shown: set[str] = field(default_factory=set)  # helpers whose lines stand in a section, by key
    answers: list[Html] = field(default_factory=list)  # to the questions so far, for the end on paper
    anchored: bool = True  # False: what is made here is shown on another page, to which no address leads

    @property
    def record(self) -> Record:
        """The record that the page is drawn from."""
        return self.book.record

    @property
    def lecture_url(self) -> str:
        """From the page to the folder of its lecture."""
        return sitemap.relative_url(self.page, sitemap.INDEX).removeprefix("./")

    def source(self, file: int) -> PageFile:
        """One file of the lecture, as it is shown on this page."""
        path, prefix = self.record.sources[file].path, self.book.prefix(self.page, file)
        return PageFile(path, prefix, self.book.lines[file], self.links.get(file, {}), self.anchored)

    def set_line(self, file: int, line: int) -> None:
        """Problems found from now on belong to this line."""
        lines = self.book.lines[file]
        text = lines[line - 1].text if 0 < line <= len(lines) else ""
        self.setting.place = Place(self.record.sources[file].path, line, 1, text)
        self.setting.ahead = [below.text for below in lines[max(0, line - 1) : line + FAR]]


class PageFile(Struct, frozen=True):
    """One file on one page: how it is called, its lines, and what leads from and to them.

    `prefix` is what the ids of its lines begin with: nothing, where the page is that file's.
    """

    path: str
    prefix: str
    lines: Sequence[CodeLine]
    links: dict[int, list[CodeLink]]
    anchored: bool = True

    def row(self, number: int, dedent: int = 0, class_: str = "lb-c") -> Html:
        """A line's number, which is also its anchor, and its code."""
        name = f"{self.prefix}L{number}"
        place = {"id": name, "href": f"#{name}", "tabindex": "-1"} if self.anchored else {}
        label = elements.text(number)
        anchor = tag("a", label, class_="lb-n", **place)
        html = code.line(self[number], dedent, self.links.get(number, ()))
        return elements.join([anchor, tag("code", html or elements.SPACE, class_=class_)])

    def __getitem__(self, number: int) -> CodeLine:
        return self.lines[number - 1]

    def copier(self, numbers: Sequence[int]) -> list[Html]:
        """A button on a block of `COPIED` lines or more: Material's script copies, CSS hides all but code."""
        if len(numbers) < COPIED or not self.anchored:
            return []
        block = f".lb-code:has(#{self.prefix}L{numbers[0]})"
        copies = {"data_md_type": "copy", "data_clipboard_target": block, "title": _("Copy the code")}
        return [tag("button", class_="lb-copy md-code__button", **copies)]

    def span(self, numbers: Sequence[int]) -> str:
        """`lines 3 to 7`, and of which file where that is not the page's."""
        words = _("lines {first} to {last}", first=numbers[0], last=numbers[-1])
        words = words if len(numbers) > 1 else _("line {n}", n=numbers[0])
        file = self.path.rpartition("/")[2]
        return _("{lines} of {file}", lines=words, file=file) if self.prefix else words

    def anchors(self, numbers: Iterable[int]) -> Html:
        """Places for links to lines that are not shown as code."""
        spans = [tag("span", id=f"{self.prefix}L{n}") for n in numbers]
        return tag("div", *spans, class_="lb-at") if spans else elements.NOTHING
