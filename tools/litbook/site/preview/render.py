"""The preview's pages: each is made when a browser asks for it, of the newest runs of the drafts.

In go drafts and the book's configuration, out come the files of a site, in a folder of their own. The pages
are those of the one list that a build writes; one that no run has reached says so, and comes. What is wrong
stands in a banner on every page, above that of the last run that could be shown: all that a strict build
refuses in a lecture, and on the other pages what MkDocs warns of.
"""

from __future__ import annotations

import contextlib
import functools
import html
import logging
import logging.handlers
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.commands import build
from mkdocs.config import load_config
from mkdocs.structure.files import File, get_files, set_exclusions
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page
from msgspec.structs import replace

from litbook.errors import LitbookError
from litbook.files import write
from litbook.finding import Finding
from litbook.html import elements, media
from litbook.i18n import _
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.bibliography import read as read_bibliography
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.page.search import passages as passages_of
from litbook.page.sitemap import INDEX
from litbook.page.sitemap import build_sitemap as book_of
from litbook.project import CONFIG, Project, display_path
from litbook.rules.outcome import harmless
from litbook.rules.registry import DRAWN, Severity
from litbook.site import search
from litbook.site.pages import PLACE, Choices, Pages
from litbook.site.plugin import LitbookPlugin
from litbook.site.preview.drafts import Drafts

MANY = 10_000  # warnings that nobody has taken, then they go
MOST_TROUBLES = 20  # shown in the banner; the terminal has all

log = logging.getLogger("litbook.site.preview")

# What stands above a page: its id and role, where it lies, its colour, and what it says.
BOX = (
    '<div id="litbook-{}" role="{}" style="position:{};z-index:9;background:{};overflow:auto;max-height:40vh;'
    'padding:.5rem 1rem;color:#fff;font:.7rem/1.4 ui-monospace,monospace;white-space:pre-wrap">{}</div>'
)
BANNER = ("trouble", "alert", "sticky;top:0", "#7f1d1d")
NOTICE = ("running", "status", "fixed;bottom:0;left:0;right:0", "#1e3a5f")  # the page does not jump


def box(kind: tuple[str, str, str, str], texts: Sequence[str], between: str, more: str) -> str:
    """Texts above a page as HTML; "" where there are none, and of many how many `more` there are."""
    left = len(texts) - MOST_TROUBLES
    shown = [*texts[:MOST_TROUBLES], f"… and {left} more{more}"] if left > 0 else texts
    return BOX.format(*kind, html.escape(harmless(between.join(shown)))) if texts else ""


class Renderer:
    """The site in `folder`, each page made on demand: the server's `Site`, the plugin's `PreviewPages`."""

    def __init__(self, config_file: Path, folder: Path, address: str, drafts: Drafts) -> None:
        self.config_file, self.folder, self.address = config_file.resolve(), folder, address
        self.project = Project.from_config(self.config_file)
        self.drafts, self.tidings, self.lock = drafts, drafts.tidings, drafts.lock
        self.made: dict[str, tuple[int, ...]] = {}  # by address: of which generations
        self.searched: dict[str, tuple[int, ...]] = {}  # of the search's files: of which generations
        self.addresses: dict[str, Page] = {}
        self.generation = 0  # of everything but the lectures
        self.trouble = ""  # why there is no site at all
        self.overlooked: list[str] = []  # what looks like a lecture and is none, and what is no bibliography
        # What MkDocs and its plugins warn of, until somebody takes it; and by address, "" is the whole site.
        self.warnings, self.warned = logging.handlers.BufferingHandler(MANY), dict[str, list[str]]()
        self.warnings.setLevel(logging.WARNING)
        logger = logging.getLogger("mkdocs")
        logger.addHandler(self.warnings)
        logger.propagate = False  # what is warned of before the lectures have run is no news
        self.titles: Any = None
        self.book = self.colab = ""  # the title of the whole, and where GitHub has the built site
        self.choices = Choices()

    def bibliography(self) -> Bibliography:
        """The book's sources as they are now; none where there are none. Raises `LitbookError`."""
        file = self.project.bibliography
        with contextlib.suppress(OSError):
            return _bibliography(file, file.stat().st_mtime_ns)
        return {}

    def pages(self) -> Pages:
        """Every page that there is now; the hook asks, too."""
        return self._pages(self.drafts.newest())

    def complete_lectures(self) -> list[LectureRuns]:
        """The lectures of which a whole run can be shown."""
        return [draft.last.edition for draft in self.drafts.in_order() if draft.last]

    def _pages(self, newest: list[LectureRuns]) -> Pages:
        works = None
        with contextlib.suppress(LitbookError):  # `overlooked` says so
            works = self.bibliography()
        return Pages(self.project, newest, works, self.book, self.colab, self.choices)

    def refresh_titles(self) -> None:
        """The same as `refresh`, where a page has come, gone or got another title."""
        if self.pages().titles() != self.titles:
            self.refresh()

    def refresh(self) -> None:
        """Collect the pages anew: a page of the docs, the configuration or a part's name has changed."""
        with self.lock:
            try:
                self.warnings.flush()
                self._collect()
                self._keep_problems("", [])
                self.trouble = ""
            except (Exception, SystemExit) as error:  # an error in a file that somebody is editing
                ours = isinstance(error, LitbookError)
                self.trouble = str(error) if ours else f"{type(error).__name__}: {error}"
                log.error("%s", harmless(self.trouble))
            self.generation += 1
        self.tidings.tell()

    def _collect(self) -> None:
        config = load_config(str(self.config_file), site_dir=str(self.folder), site_url=self.address)
        ours = config.plugins.get("litbook")
        if not isinstance(ours, LitbookPlugin):
            raise LitbookError(f"{CONFIG} has no plugin litbook\n    plugins: [search, litbook]")
        ours.preview, self.choices, self.book = self, ours.choices(), str(config.site_name)
        # While a lecture is written, its recordings are older.
        levels: dict[str, Severity] = {**self.choices.severities, "older": "warn"}
        self.choices = replace(self.choices, severities=levels)
        self.plugin = ours
        if not self.project.folder.is_dir():
            way_out = f"bring it back, or {CONFIG} says where the lectures are"
            raise LitbookError(f"there is no folder {display_path(self.project.folder)}/\n    {way_out}")
        self.overlooked = [*map(str, self.project.overlooked_files())]  # raises where two have one name
        if self.project.bibliography.exists():
            try:
                self.bibliography()
            except LitbookError as error:
                self.overlooked.append(str(error))
        config.plugins.on_startup(command="serve", dirty=False)
        # Not that of the search, which needs all pages at once.
        config.plugins.events["page_context"][:] = [ours.on_page_context]
        config = config.plugins.on_config(config)
        self.colab = config.extra.get("colab") or ""
        config.plugins.on_pre_build(config=config)
        files = get_files(config)
        for file in [f for f in files if f.src_uri.startswith(f"{PLACE}/")]:
            files.remove(file)  # what an earlier build has left: here pages are made when they are asked for
        pages = self.pages()
        for uri in pages.places():
            files.append(File.generated(config, uri, content=""))
        env = config.theme.get_env()
        files.add_files_from_theme(env, config)
        files = config.plugins.on_files(files, config=config)
        set_exclusions(files, config)
        nav = config.plugins.on_nav(get_navigation(files, config), config=config, files=files)
        rows = ((f"{PLACE}/{lecture}/{name}", title) for lecture, of in pages.titles() for name, title in of)
        named = dict(rows)
        addresses: dict[str, Page] = {}
        for file in files.documentation_pages():
            made = file.page or Page(None, file, config)
            addresses["/" + unquote(file.url).removeprefix("./")] = made
            if file.inclusion.is_not_in_nav():
                continue
            if made.title is None:  # the menu on every other page needs it
                if file.src_uri in named:  # the heading is enough until somebody asks for the page
                    file.content_string = elements.heading(1, elements.text(named[file.src_uri]))
                else:
                    self._fill(file)
                made.read_source(config)
        env = config.plugins.on_env(env, config=config, files=files)
        files.copy_static_files()
        for template in config.theme.static_templates:
            build._build_theme_template(template, env, files, config, nav)
        self.config, self.files, self.nav, self.env, self.addresses = config, files, nav, env, addresses
        self.titles = pages.titles()
        for address in self.made.keys() - addresses.keys():
            (self.folder / address.lstrip("/") / "index.html").unlink(missing_ok=True)
        self.made.clear()

    def _fill(self, file: File) -> list[Finding]:
        """Write the Markdown of a lecture's page out of its record."""
        problems: list[Finding] = []
        if file.generated_by is not None:
            pages = self.pages()
            asked = self.drafts.find_page(f"/{file.src_uri.removesuffix('.md')}/")
            if asked and (made := asked[0].page_run(asked[1])):
                now = made.edition
                pages = self._pages([now if now.folder == e.folder else e for e in pages.editions])
            file.content_string = self.plugin.made[file.src_uri] = pages.text(file.src_uri, problems)
            for uri, content in pages.pictures(file.src_uri.split("/")[1]):
                write(self.folder / uri, content)
        return problems

    def make(self, address: str) -> str:
        """Make the page at the address, if there is one and it is older than what it is made of.

        What comes back is why there is none yet; "" where there is one, or never will be.
        """
        with self.lock:
            asked = self.drafts.find_page(address)
            if asked and address.endswith("/") and asked[1] != INDEX:
                self.drafts.reader = asked[0].path, asked[1]
                self.drafts.work.notify_all()
            # Pictures come with a page.
            every = address.startswith(f"/{PLACE}/") and f"/{media.FOLDER}/" not in address
            shown = [asked[0]] if asked else [*self.drafts.values()] * every
            name = asked[1] if asked else ""
            if waiting := [d.path.name for d in shown if not d.trouble and not d.page_run(name)]:
                names = ", ".join(waiting)
                return _("This page is not ready: {lectures} is running. It comes by itself.", lectures=names)
            page, uri = self.addresses.get(address), address.lstrip("/")
            if page is None:  # steps of a player, a notebook, the claims as JSON, the badge, what is searched
                if uri in (search.WHERE, search.INDEX):
                    self._index(uri)
                if uri.startswith(f"{PLACE}/") and not uri.endswith("/"):
                    made = asked and asked[0].page_run(asked[1])
                    content = (self._pages([made.edition]) if made else self.pages()).data(uri)
                    if content is not None:
                        write(self.folder / uri, content.encode())
                return ""
            now = (self.generation, *(draft.generation for draft in self.drafts.values()))
            if self.made.get(address) == now:
                return ""
            self.warnings.flush()
            drawn = self._fill(page.file)
            self._populate(page)
            build._build_page(page, self.config, list(self.files.documentation_pages()), self.nav, self.env)
            self._keep_problems(address, drawn)
            self.made[address] = now
            return ""

    def _populate(self, page: Page) -> None:
        """Read and render a page. A link to a page of a lecture that has not run yet is no wrong link."""
        waiting = any(draft.newest() is None for draft in self.drafts.values())
        self.config.validation.links.not_found = logging.INFO if waiting else logging.WARNING
        build._populate_page(page, self.config, self.files)

    def _keep_problems(self, address: str, drawn: list[Finding]) -> None:
        """Keep what was wrong with the page at the address, and is not said of its lecture already."""
        only_drawn = (finding.text(coded=True) for finding in drawn if finding.code in DRAWN)
        self.warned[address] = [*only_drawn, *(record.getMessage() for record in self.warnings.buffer)]
        self.warnings.flush()
        for text in self.warned[address]:
            log.warning("%s", harmless(text))

    def _index(self, uri: str) -> None:
        """The two files of the search: where its index is, which each page asks, and the index itself."""
        now = (self.generation, *(draft.generation for draft in self.drafts.values()))
        plugins = [p for name, p in self.config.plugins.items() if name.rpartition("/")[2] == "search"]
        if self.searched.get(uri) == now or not plugins or not hasattr(plugins[0], "search_index"):
            return
        index, passages = (
            type(plugins[0].search_index)(**plugins[0].config),
            dict[str, Sequence[SearchPassage]](),
        )
        if uri == search.INDEX:
            for page in self.addresses.values():
                if page.file.generated_by is None:
                    self._populate(page)
                    page.content = search.exclude_from_index(page.content or "")
                    index.add_entry_from_context(page)
            urls, pages = {page.file.src_uri: page.url for page in self.addresses.values()}, self.pages()
            sources = self.bibliography()
            books = {e.folder: book_of(e.record, sources, e.recordings, []) for e in pages.editions}
            for place in pages.places():
                match place.split("/"):
                    case [_, folder, name] if folder in books:  # no page of a lecture is drawn for it
                        on_page = [*passages_of(books[folder], name)]
                    case _:
                        on_page = [*pages.text(place, []).passages]
                passages[urls.get(place, "")] = on_page
        write(self.folder / search.WHERE, index.generate_search_index(None).encode())
        search.split(self.folder, self.plugin.config.synonyms, passages, self.plugin.terms)
        self.searched = dict.fromkeys({search.WHERE, uri}, now)

    def banner(self, address: str) -> str:
        """What is wrong, with the lectures and with the page at the address, as HTML; "" where nothing is."""
        with self.lock:
            wrong = [self.trouble, *self.overlooked] if self.trouble else [*self.overlooked]
            wrong += [text for draft in self.drafts.in_order() for text in draft.wrong()]
            wrong += [*self.warned.get("", ()), *self.warned.get(address, ())]
        return box(BANNER, wrong, "\n\n", ": the terminal lists them")

    def notice(self, address: str) -> str:
        """Which of the lectures that this page speaks of run now, as HTML; "" where none does."""
        asked = self.drafts.find_page(
            address
        )  # without the lock: an open page hears of it while others are made
        drafts = [asked[0]] if asked else self.drafts.in_order()
        running = (draft.describe_run(asked[1] if asked else "") for draft in drafts)
        return box(NOTICE, [*filter(None, running)], "\n", " are running")


@functools.lru_cache(maxsize=1)
def _bibliography(file: Path, _changed: int) -> Bibliography:
    return read_bibliography(file)
