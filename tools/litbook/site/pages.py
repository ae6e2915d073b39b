"""The one list of the lectures' pages: a build writes all of it, the preview makes the one that is asked for.

In go editions, out come pages and other files as text, by their addresses below docs/. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from msgspec import Struct

from litbook.errors import LitbookError
from litbook.finding import Finding
from litbook.html import devices, elements, ledger, media, misbeliefs, page, player
from litbook.html.elements import Html, Page, tag
from litbook.i18n import _, gettext_noop
from litbook.markdown import mathml
from litbook.markdown.bibliography import Bibliography
from litbook.notebook import build, ipynb, workbook
from litbook.page import other_lectures, sitemap
from litbook.page.runs import LectureRuns
from litbook.project import Project
from litbook.rules.judge import Findings, judge
from litbook.rules.registry import Severity
from litbook.rules.subject import Subject
from litbook.site.badge import device_differences

PLACE = "lectures"
FOLDER = "notebooks"  # of a lecture's pages
# After the lectures.
ENDS = {"misbeliefs": misbeliefs.TITLE, "ledger": gettext_noop("Ledger"), "devices": devices.TITLE}
DATA = ("claims.json", "claims.svg")

NavEntry = str | dict[str, Any]  # MkDocs: a page, or a title with pages below it


def fill_nav(nav: Any, title: str, shown: Sequence[NavEntry]) -> list[Any]:
    """The menu with `shown` in the place of its entry `title`, however deep that stands."""
    filled: list[Any] = []
    for entry in nav or ():
        if isinstance(entry, dict) and title in entry:
            filled += shown
        elif isinstance(entry, dict):
            below = {k: fill_nav(v, title, shown) for k, v in entry.items() if isinstance(v, list)}
            filled.append(entry | below)
        else:
            filled.append(entry)
    return filled


class Choices(Struct, frozen=True):
    """What an author has chosen: which of `ENDS`, "notebooks", "workbook" not to have; rules' severities."""

    without: frozenset[str] = frozenset()
    severities: dict[str, Severity] = {}
    words: str = ""


@dataclass
class Pages:
    """Every page of the lectures that have a record.

    `book` is the whole's title, which notebooks name; `colab` is where GitHub has the built site, if it has;
    `address` is that of the site, if it is known.
    Without a bibliography, since it cannot be read, nothing is said of citations.
    """

    project: Project
    editions: Sequence[LectureRuns]
    works: Bibliography | None = field(default_factory=dict)
    book: str = ""
    colab: str = ""
    choices: Choices = field(default_factory=Choices)
    address: str = ""

    def __post_init__(self) -> None:
        self.formulas = dict[str, dict[str, str]]()  # of each workbook that was made, by its place
        self.others = other_lectures.sitemap_finder(self.project.folder)
        self.bibliography = self.works or sitemap.NOTHING_CITED

    def titles(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """For every lecture its folder, and its pages with their titles: what a menu is made of."""
        return [(edition.folder, page.titles(edition.record)) for edition in self.editions]

    def places(self) -> list[str]:
        """Every page that there is."""
        if not self.editions:
            return []
        of_lectures = [f"{PLACE}/{folder}/{name}" for folder, titles in self.titles() for name, _ in titles]
        return [f"{PLACE}/{sitemap.INDEX}", *of_lectures, *self._ends(), *self._ledger()]

    def entries(self) -> list[NavEntry]:
        """The same pages as entries of MkDocs' nav."""
        if not self.editions:
            return []
        lectures: list[NavEntry] = []
        for edition, (folder, titles) in zip(self.editions, self.titles(), strict=True):
            places = [(f"{PLACE}/{folder}/{name}", title) for name, title in titles]
            index = f"{PLACE}/{folder}/{sitemap.INDEX}"
            entries = [place if place == index else {title: place} for place, title in places]
            if place := self.workbook_place(edition):
                entries.append({_("Workbook"): place})
            lectures.append({edition.record.title: entries})
        ends = [{_(ENDS[Path(place).stem]): place} for place in self._ends()]
        return [f"{PLACE}/{sitemap.INDEX}", *lectures, *ends]

    def text(self, place: str, problems: list[Finding]) -> Page:
        """The Markdown of one of `places`. `problems` receives what is wrong with its prose."""
        match place.split("/")[1:]:
            case [sitemap.INDEX]:
                return page.lecture_list(self.editions)
            case ["misbeliefs.md"]:
                return misbeliefs.page(self.editions, self.bibliography)
            case ["ledger.md"]:
                return ledger.page(self.editions)
            case ["ledger", folder, name]:
                return ledger.claims_page(next(e for e in self.editions if e.folder == folder), name)
            case ["devices.md"]:
                return devices.page(self.editions, device_differences(self.editions))
            case [folder, name]:
                edition = next(e for e in self.editions if e.folder == folder)
                ways = {} if "notebooks" in self.choices.without else self._ways(edition)
                of = edition.record, self.bibliography, edition.recordings, problems, self.others
                return page.pages(*of, ways, only=name)[name]
        raise LookupError(place)

    def data(self, place: str) -> str | None:
        """The text of a file that is no page; None where there is none of that name."""
        match place.split("/")[1:]:
            case ["claims.json"]:
                return ledger.data(self.editions)
            case ["claims.svg"]:
                return ledger.claims_badge(self.editions)
            case [folder, "notebooks", _]:
                those = (edition for edition in self.editions if edition.folder == folder)
                return next((self.notebooks_of(edition, []).get(place) for edition in those), None)
            case [folder, *rest]:
                for edition in self.editions:
                    if edition.folder == folder:
                        return player.data(edition.record, edition.recordings).get("/".join(rest))
        return None

    def pictures(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Every picture of the lecture in `folder`, with its content."""
        those = [e for e in self.editions if e.folder == folder]
        records = [record for e in those for record in (e.record, *e.recordings)]
        return ((f"{PLACE}/{folder}/{name}", content) for name, content in media.files(records).items())

    # -- all of them

    def lecture_files(self, edition: LectureRuns, drawn: list[Finding]) -> Iterator[tuple[str, str | bytes]]:
        """Every file of one lecture, with its content; what drawing finds goes into `drawn`."""
        notebooks = self.notebooks_of(edition, drawn)
        ways = self._ways(edition) if notebooks else {}
        made = page.pages(edition.record, self.bibliography, edition.recordings, drawn, self.others, ways)
        for name, text in (made | player.data(edition.record, edition.recordings)).items():
            yield f"{PLACE}/{edition.folder}/{name}", text
        yield from notebooks.items()
        if place := self.workbook_place(edition):
            # Its page is a folder.
            there = f"{place.removesuffix('.ipynb')}/"
            book = replace(edition.sitemap, bibliography=self.bibliography)
            book.others = self.others
            asked = workbook.write_workbook(book, self.address and urljoin(self.address, there))
            self.formulas[place] = asked.formulas
            yield place, asked.text
        yield from self.pictures(edition.folder)

    def judge(
        self, edition: LectureRuns, unreadable: Sequence[Finding], drawn: Sequence[Finding]
    ) -> Findings:
        """What is wrong with the lecture, its `unreadable` recordings and what drawing found with it."""
        subject = Subject(
            self.project.folder / edition.folder,
            edition=edition,
            words=self.choices.words,
            formula=mathml.mathml,
            unreadable=[*unreadable],
            book=self.project,
            works=self.works,
        )
        return judge(subject, self.choices.severities, drawn=drawn)

    def ends(self) -> Iterator[tuple[str, str | bytes]]:
        """Every file that is of no one lecture, with its text."""
        for place in [f"{PLACE}/{sitemap.INDEX}", *self._ends(), *self._ledger()] if self.editions else ():
            yield place, self.text(place, [])
        for name in DATA if self.editions else ():
            yield f"{PLACE}/{name}", self.data(f"{PLACE}/{name}") or ""

    def notebooks_of(self, edition: LectureRuns, drawn: list[Finding]) -> dict[str, str]:
        """The lecture's notebooks, by place; where none can be made, a finding in `drawn`."""
        if "notebooks" in self.choices.without:
            return {}
        folder = self.project.folder
        modules = {
            file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8", errors="replace")
            for file in sorted(folder.rglob("*.py"))
            if not file.name.startswith("lecture_")
            and file.is_file()
            and not {"__pycache__", ".venv"} & set(file.parts)
        }
        try:
            works, kept = self.bibliography, edition.recordings
            made = build.notebooks(
                edition.record, modules=modules, bibliography=works, recordings=kept, book=self.book
            )
        except LitbookError as error:
            drawn.append(Finding("no-notebook", f"{edition.folder} has no notebooks: {error}"))
            return {}
        return {
            f"{PLACE}/{edition.folder}/{FOLDER}/{name}": ipynb.text(whole) for name, whole in made.items()
        }

    def workbook_place(self, edition: LectureRuns) -> str:
        """Where the lecture's workbook is; "" where it has none."""
        if "workbook" in self.choices.without or not workbook.has_questions(edition.sitemap):
            return ""
        return f"{PLACE}/{edition.folder}/{workbook.file_name(edition.sitemap)}"

    def _ways(self, edition: LectureRuns) -> dict[str, Html]:
        """For every page that has a notebook the links to it: its file, and who runs it from GitHub."""
        ways = dict[str, Html]()
        record, where = edition.record, edition.record.environment
        book, held, of = sitemap.outline(record), record.peak / 2**30, where.memory / 2**30
        for name, file in build.pages(record).items():
            place = f"{PLACE}/{edition.folder}/{FOLDER}/{file}"
            up = "" if name == sitemap.INDEX else "../"
            saved = f"{edition.folder}.ipynb" if file == "index.ipynb" else f"{edition.folder}-{file}"
            label = _("Run it yourself: this page as a notebook")
            links = notebook_links(label, f"{up}{FOLDER}/{file}", saved, place, self.colab)
            # What it took to run the page: time, on which machine, memory, and packages.
            part = next((part for part in book.parts if book.page(part) == name), None)
            seconds = f"{max(1, (part or record).seconds):.0f}"
            took = _("took {seconds} s on {machine}", seconds=seconds, machine=where.machine_name)
            if held >= 0.1 and of:  # less is nothing to plan for
                gib = {"held": f"{held:.1f}", "of": f"{of:.0f}"}
                took += ", " + _("the whole lecture at most {held} of its {of} GiB of memory", **gib)
            took += _("; needs {packages}", packages=", ".join(where.versions)) if where.versions else ""
            ways[name] = tag("p", *links, tag("small", f" · {took}"), class_="lb-nb-way")
        return ways

    def _ends(self) -> list[str]:
        return [f"{PLACE}/{name}.md" for name in ENDS if name not in self.choices.without]

    def _ledger(self) -> list[str]:
        """The ledger's pages below its first; no menu has them."""
        there = () if "ledger" in self.choices.without else self.editions
        return [f"{PLACE}/ledger/{e.folder}/{name}" for e in there for name, _ in ledger.titles(e)]


def workbook_page(drawn: str, place: str, formulas: Mapping[str, str], colab: str) -> str:
    """The page of a workbook as mkdocs-jupyter has drawn it, its file linked above it."""
    folder, name = place.split("/")[-2:]
    links = notebook_links(_("Download this workbook"), name, f"{folder}-{name}", place, colab)
    return tag("p", *links, class_="lb-nb-way lb-workbook") + workbook.draw_formulas(drawn, formulas)


def notebook_links(label: str, href: str, saved: str, place: str, colab: str) -> list[Html]:
    """Links to a notebook: to its file, which is `saved` under a name, and to who runs it from GitHub.

    `place` is where the site has it, `colab` where GitHub has the site, if it has.
    """
    links = [tag("a", label, href=href, download=saved)]
    if colab:
        repository, _blob, branch = colab.removeprefix("https://github.com/").partition("/blob/")
        branch, _slash, folder = branch.strip("/").partition("/")
        path = "/".join(filter(None, [folder, place]))
        there = f"https://colab.research.google.com/github/{repository}/blob/{branch}/{path}"
        binder = f"https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab%2Ftree%2F"
        links += [elements.text(" · "), tag("a", _("Open in Colab"), href=there)]
        links += [elements.text(" · "), tag("a", _("Open in Binder"), href=binder + quote(path, safe=""))]
    return links
