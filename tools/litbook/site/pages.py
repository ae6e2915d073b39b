"""Any one page of the lectures' part of the site, out of records. Writes nothing; `preview` asks.

`site` writes the same pages, all of them, before a build; a test compares what the two make. What needs more
than records (notebooks: the files beside a lecture) stays there. Addresses are those below docs/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from litbook.errors import Problem
from litbook.record import model
from litbook.render import books, devices, ledger, misbeliefs, notebook, notebook_page, page, player
from litbook.render.bibliography import Bibliography

PLACE = "lectures"
ENDS = {"misbeliefs": misbeliefs.TITLE, "ledger": "Ledger", "devices": devices.TITLE}  # after the lectures


@dataclass
class Volume:
    """A lecture: the name of its folder, its record, and those of recordings."""

    folder: str
    record: model.Record
    others: Sequence[model.Record] = ()
    own: model.Record | None = None


@dataclass
class Volumes:
    """All lectures that have a record, and the book's bibliography."""

    all: Sequence[Volume]
    bibliography: Bibliography = field(default_factory=dict)
    differing: Callable[[list[ledger.Shelf]], devices.Found] = lambda _: {}

    @property
    def shelf(self) -> list[ledger.Shelf]:
        """As the ledger wants them."""
        return [ledger.Shelf(it.folder, it.record, list(it.others), it.own) for it in self.all]

    def titles(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """For every lecture its folder, and its pages with their titles: what a menu is made of."""
        return [(it.folder, page.titles(it.record)) for it in self.all]

    def places(self) -> list[str]:
        """Every page that there is."""
        if not self.all:
            return []
        own = [f"{PLACE}/{folder}/{name}" for folder, titles in self.titles() for name, _ in titles]
        return [f"{PLACE}/{books.INDEX}", *own, *(f"{PLACE}/{name}.md" for name in ENDS)]

    def notebooks(self) -> list[str]:
        """Every notebook that there is; each has a page, which the nav does not show."""
        return [
            f"{PLACE}/{it.folder}/{notebook.FOLDER}/{name}"
            for it in self.all
            for _, name in notebook.pages(it.record)
        ]

    def entries(self) -> list[Any]:
        """The same pages as entries of MkDocs' nav."""
        if not self.all:
            return []
        lectures = [{it.record.title: [_entry(it.folder, *page) for page in titles]}
                    for it, (_, titles) in zip(self.all, self.titles(), strict=True)]  # fmt: skip
        ends = [{title: f"{PLACE}/{name}.md"} for name, title in ENDS.items()]
        return [f"{PLACE}/{books.INDEX}", *lectures, *ends]

    def text(self, place: str, problems: list[Problem]) -> str:
        """The Markdown of one of `places`. `problems` receives what is wrong with its prose."""
        match place.split("/")[1:]:
            case [books.INDEX]:
                return page.shelf([(it.folder, it.record, it.others) for it in self.all])
            case ["misbeliefs.md"]:
                return misbeliefs.page(self.shelf, self.bibliography)
            case ["ledger.md"]:
                return ledger.page(self.shelf)
            case ["devices.md"]:
                return devices.page(self.shelf, self.differing(self.shelf))
            case [folder, name]:
                it = next(it for it in self.all if it.folder == folder)
                made = page.one(it.record, name, self.bibliography, it.others, problems)
                files = dict(notebook.pages(it.record))
                return notebook_page.linked(made, name, files[name]) if name in files else made
        raise LookupError(place)

    def data(self, place: str) -> str | None:
        """The text of a file that is no page; None where there is none of that name."""
        match place.split("/")[1:]:
            case ["claims.json"]:
                return ledger.data(self.shelf)
            case ["claims.svg"]:
                return ledger.tally(self.shelf)
            case [folder, *rest]:
                for it in self.all:
                    if it.folder == folder:
                        return player.data(it.record, it.others).get("/".join(rest))
        return None


def _entry(folder: str, name: str, title: str) -> dict[str, str] | str:
    place = f"{PLACE}/{folder}/{name}"
    return place if name == books.INDEX else {title: place}
