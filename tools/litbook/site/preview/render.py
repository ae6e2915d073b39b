"""The preview: what is saved runs, and the browser shows the page that it is at.

A watcher sees saved files and lets saves that follow each other settle. A worker runs the lectures that
they concern, each from top to bottom in a process of its own. Beside it another runs the part alone whose
page a reader has asked for, so that this page is there before the whole is. The server makes a page when a
browser asks for it, of the newest records, out of the one list of pages that a build writes; a page that no
run has reached says so, and comes. From a save to the new page every page of that lecture says that it is
running, and of which run is what stands there. What is wrong stands in a banner on every page, above that of
the last run that could be shown: all that a strict build refuses in a lecture, and on the other pages what
MkDocs warns of.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import html
import logging
import logging.handlers
import queue
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.commands import build
from mkdocs.config import load_config
from mkdocs.structure.files import File, get_files, set_exclusions
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page
from msgspec import Struct
from msgspec.structs import replace
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from litbook.errors import LitbookError, Problem
from litbook.files import write
from litbook.html import elements, media
from litbook.i18n import _
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.bibliography import read as read_bibliography
from litbook.page.runs import Edition
from litbook.page.search import Passage
from litbook.page.search import passages as passages_of
from litbook.page.sitemap import INDEX
from litbook.page.sitemap import of as book_of
from litbook.project import CONFIG, Project, name_of, shown
from litbook.record import model
from litbook.rules import judge, outcome
from litbook.rules.outcome import harmless
from litbook.run.process import Warm, private_folder
from litbook.site import search
from litbook.site.pages import PLACE, Choices, Pages
from litbook.site.plugin import LitbookPlugin
from litbook.site.preview.server import Server, Tidings

SETTLED = 0.05  # seconds without another save, then a lecture runs
LOOK = 1.0  # seconds until somebody looks whether the watched folders are still there
TIDY = 5.0  # seconds without a save, then garbage is collected
POLL = 25.0  # seconds that a browser's question for news is held
MANY = 10_000  # warnings that nobody has taken, then they go
MOST_TROUBLES = 20  # shown in the banner; the terminal has all

log = logging.getLogger("litbook.site.preview.preview")

# What stands above a page: its id and role, where it lies, its colour, and what it says.
BOX = (
    '<div id="litbook-{}" role="{}" style="position:{};z-index:9;background:{};overflow:auto;max-height:40vh;'
    'padding:.5rem 1rem;color:#fff;font:.7rem/1.4 ui-monospace,monospace;white-space:pre-wrap">{}</div>'
)
BANNER = ("trouble", "alert", "sticky;top:0", "#7f1d1d")
NOTICE = ("running", "status", "fixed;bottom:0;left:0;right:0", "#1e3a5f")  # the page does not jump


class Shown(Struct, frozen=True):
    """What can be shown of a lecture, or of a part of it that ran alone."""

    edition: Edition
    when: str  # the run's time of day
    saves: int  # how many saves there had been when it began


@dataclass
class Draft:
    """A lecture that somebody writes, and the last of its runs that could be shown."""

    path: Path
    last: Shown | None = None
    ahead: dict[str, Shown] = field(default_factory=dict)  # of a part alone, until the whole has run
    findings: judge.Findings = field(default_factory=judge.Findings)  # in the last
    trouble: str = ""  # why the text of now has no record
    generation: int = 0
    saves: int = 0  # of its text, and of what it may read
    judged: int = 0  # how many of them the last run that ended had seen, also one without a record

    def wrong(self) -> list[str]:
        """What is wrong, the text's own troubles first."""
        if self.trouble:
            last = self.last and f"\nBelow: the run of {self.last.when}, the last that could be shown."
            return [self.trouble + (last or "")]
        return self.findings.wrong

    def behind(self, page: str) -> Shown | None:
        """What this page of the lecture is made of."""
        return self.ahead.get(page) or self.last

    def newest(self) -> Edition | None:
        """The edition of the whole, else of a part alone."""
        made = self.last or next(iter(self.ahead.values()), None)
        return made.edition if made else None

    def running(self, page: str) -> str:
        """That its text of now has no verdict yet, and of which run is what this page says; else ""."""
        if self.saves == self.judged:
            return ""
        made = self.behind(page)
        if made is None:
            return f"{self.path.name} is running for the first time"
        if made.saves == self.saves:
            return f"{self.path.name} is running: of its text of now only this page has run"
        older = f"what stands here is of the run of {made.when}, before the last save"
        return f"{self.path.name} is running: {older}"


def box(kind: tuple[str, str, str, str], texts: Sequence[str], between: str, more: str) -> str:
    """Texts above a page as HTML; "" where there are none, and of many how many `more` there are."""
    left = len(texts) - MOST_TROUBLES
    shown = [*texts[:MOST_TROUBLES], f"… and {left} more{more}"] if left > 0 else texts
    return BOX.format(*kind, html.escape(harmless(between.join(shown)))) if texts else ""


class Preview:
    """The drafts, and the pages made from them."""

    def __init__(self, config_file: Path, folder: Path, address: str, warm: Warm, timeout: float) -> None:
        self.config_file, self.folder, self.address = config_file.resolve(), folder, address
        self.project = Project.of(self.config_file)
        self.warm, self.timeout = warm, timeout
        self.drafts: dict[Path, Draft] = {}
        self.lock = threading.RLock()  # held while pages are made, and while what they are made of changes
        self.tidings = Tidings(POLL)
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
        self.todo: list[Path] = []  # lectures that wait, the one that runs first
        self.reader = Path(), ""  # the lecture and page that was asked for last
        self.hurried: set[tuple[Path, str]] = set()  # parts that ran alone, or failed to, since the save
        self.work = threading.Condition(self.lock)
        for worker in (self._work, self._hurry):
            threading.Thread(target=worker, daemon=True).start()

    # -- running

    def run(self, paths: Sequence[Path]) -> None:
        """Run these lectures, in turn; what runs now is ended, and waits if it is none of them."""
        with self.lock:
            self.todo = [*paths, *(path for path in self.todo if path not in paths and path.exists())]
            self.hurried = set()
            self.warm.stop()
            self.work.notify_all()

    def _hurry(self) -> None:
        """Run the part that a reader is at, as long as its lecture waits for its run or its end."""
        while True:
            with self.lock:
                self.work.wait_for(lambda: self.reader[0] in self.todo and self.reader not in self.hurried)
                hurried, (path, page) = self.hurried, self.reader
                hurried.add(self.reader)
                saves = self.drafts[path].saves if path in self.drafts else 0
            try:
                part = page.removesuffix(".md").replace("-", "_")
                record = self.warm.record_of(path, self.timeout, [part])
                edition = judge.edition(path, record, None)
            except (LitbookError, OSError):
                continue  # no such part, or what the run of the whole will say
            with self.lock:
                if hurried is not self.hurried or path not in self.todo or path not in self.drafts:
                    continue
                self.drafts[path].ahead[page] = Shown(edition, time.strftime("%H:%M:%S"), saves)
                self.drafts[path].generation += 1
                if self.pages().titles() != self.titles:
                    self.refresh()
            self.tidings.tell()

    def _work(self) -> None:
        """Run the lectures that wait, and show what came of each, if no newer save has ended it."""
        while True:
            with self.lock:
                self.work.wait_for(lambda: self.todo)
                todo, path, since = self.todo, self.todo[0], time.monotonic()
                saves = self.drafts[path].saves if path in self.drafts else 0
            try:
                record, trouble = self.warm.record_of(path, self.timeout), ""
            except (LitbookError, OSError) as error:
                record, trouble = None, str(error)
            with self.lock:
                if self.todo is not todo:
                    continue
                self.todo, draft = todo[1:], self.drafts.get(path)
                if draft is None:
                    continue  # it is gone
                draft.trouble, draft.ahead, draft.judged = trouble, {}, saves
                if record is None:
                    log.error("%s", harmless(trouble))
                else:
                    self._show(draft, record, saves)
                    took = time.monotonic() - since
                    log.info("%s: %s; %.1f s", path.name, outcome.summary(record), took)
                self.tidings.tell()

    def _show(self, draft: Draft, record: model.Record, saves: int) -> None:
        draft.findings = judge.Findings()
        edition = judge.edition(draft.path, record, draft.findings)
        self.pages().judge(edition, draft.findings)
        draft.last = Shown(edition, time.strftime("%H:%M:%S"), saves)
        draft.generation += 1
        for text in [*draft.findings.wrong, *draft.findings.remarks]:
            log.warning("%s", harmless(text))
        if self.pages().titles() != self.titles:
            self.refresh()

    # -- the site

    def bibliography(self) -> Bibliography:
        """The book's sources as they are now; none where there are none. Raises `LitbookError`."""
        file = self.project.bibliography
        with contextlib.suppress(OSError):
            return _bibliography(file, file.stat().st_mtime_ns)
        return {}

    def pages(self) -> Pages:
        """Every page that there is now; the hook asks, too."""
        newest = (draft.newest() for _, draft in sorted(self.drafts.items()))
        return self._pages([edition for edition in newest if edition])

    def whole(self) -> list[Edition]:
        """The lectures of which a whole run can be shown."""
        return [draft.last.edition for _, draft in sorted(self.drafts.items()) if draft.last]

    def _pages(self, newest: list[Edition]) -> Pages:
        works = None
        with contextlib.suppress(LitbookError):  # `overlooked` says so
            works = self.bibliography()
        return Pages(self.project, newest, works, self.book, self.colab, self.choices)

    def refresh(self) -> None:
        """Collect the pages anew: a page of the docs, the configuration or a part's name has changed."""
        with self.lock:
            try:
                self.warnings.flush()
                self._collect()
                self._heard("", [])
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
        strict = replace(self.choices.strict, recordings=judge.MAY_BE_OLDER)
        self.choices = replace(self.choices, strict=strict)
        self.plugin = ours
        if not self.project.folder.is_dir():
            way_out = f"bring it back, or {CONFIG} says where the lectures are"
            raise LitbookError(f"there is no folder {shown(self.project.folder)}/\n    {way_out}")
        self.overlooked = [*map(str, self.project.overlooked())]  # raises where two have one name
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
        for uri in (*pages.places(), *pages.notebooks()):
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

    def _fill(self, file: File) -> list[Problem]:
        """Write the Markdown of a lecture's page out of its record."""
        problems: list[Problem] = []
        if file.generated_by is not None:
            pages = self.pages()
            asked = self._asked(f"/{file.src_uri.removesuffix('.md')}/")
            if asked and (made := asked[0].behind(asked[1])):
                now = made.edition
                pages = self._pages([now if now.folder == e.folder else e for e in pages.editions])
            file.content_string = self.plugin.made[file.src_uri] = pages.text(file.src_uri, problems)
            for uri, content in pages.pictures(file.src_uri.split("/")[1]):
                write(self.folder / uri, content)
        return problems

    def _asked(self, address: str) -> tuple[Draft, str] | None:
        """The lecture and the name of its page at an address, which need not be there; None for others."""
        match address.strip("/").split("/"):
            case [place, folder, *rest] if place == PLACE and len(rest) < 2:
                drafts = (draft for draft in self.drafts.values() if name_of(draft.path) == folder)
                return next(((d, f"{(rest or ['index'])[0].partition('.')[0]}.md") for d in drafts), None)
        return None

    def make(self, address: str) -> str:
        """Make the page at the address, if there is one and it is older than what it is made of.

        What comes back is why there is none yet; "" where there is one, or never will be.
        """
        with self.lock:
            asked = self._asked(address)
            if asked and address.endswith("/") and asked[1] != INDEX:
                self.reader = asked[0].path, asked[1]
                self.work.notify_all()
            # Pictures come with a page.
            every = address.startswith(f"/{PLACE}/") and f"/{media.FOLDER}/" not in address
            shown = [asked[0]] if asked else [*self.drafts.values()] * every
            name = asked[1] if asked else ""
            if waiting := [d.path.name for d in shown if not d.trouble and not d.behind(name)]:
                names = ", ".join(waiting)
                return _("This page is not ready: {lectures} is running. It comes by itself.", lectures=names)
            page, uri = self.addresses.get(address), address.lstrip("/")
            if page is None:  # steps of a player, a notebook, the claims as JSON, the badge, what is searched
                if uri in (search.WHERE, search.INDEX):
                    self._index(uri)
                if uri.startswith(f"{PLACE}/") and not uri.endswith("/"):
                    made = asked and asked[0].behind(asked[1])
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
            self._heard(address, drawn)
            self.made[address] = now
            return ""

    def _populate(self, page: Page) -> None:
        """Read and render a page. A link to a page of a lecture that has not run yet is no wrong link."""
        waiting = any(draft.newest() is None for draft in self.drafts.values())
        self.config.validation.links.not_found = logging.INFO if waiting else logging.WARNING
        build._populate_page(page, self.config, self.files)

    def _heard(self, address: str, drawn: list[Problem]) -> None:
        """Keep what was wrong with the page at the address, and is not said of its lecture already."""
        texts = [*map(str, drawn), *(record.getMessage() for record in self.warnings.buffer)]
        self.warnings.flush()
        told = {text.partition(" ")[2] for draft in self.drafts.values() for text in draft.findings.wrong}
        self.warned[address] = [text for text in texts if text.partition(" ")[2] not in told]
        for text in self.warned[address]:
            log.warning("%s", harmless(text))

    def _index(self, uri: str) -> None:
        """The two files of the search: where its index is, which each page asks, and the index itself."""
        now = (self.generation, *(draft.generation for draft in self.drafts.values()))
        plugins = [p for name, p in self.config.plugins.items() if name.rpartition("/")[2] == "search"]
        if self.searched.get(uri) == now or not plugins or not hasattr(plugins[0], "search_index"):
            return
        index, passages = type(plugins[0].search_index)(**plugins[0].config), dict[str, Sequence[Passage]]()
        if uri == search.INDEX:
            for page in self.addresses.values():
                if page.file.generated_by is None:
                    self._populate(page)
                    page.content = search.quiet(page.content or "")
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
        search.split(self.folder, self.plugin.config.synonyms, passages)
        self.searched = dict.fromkeys({search.WHERE, uri}, now)

    def banner(self, address: str) -> str:
        """What is wrong, with the lectures and with the page at the address, as HTML; "" where nothing is."""
        with self.lock:
            wrong = [self.trouble, *self.overlooked] if self.trouble else [*self.overlooked]
            wrong += [text for _, draft in sorted(self.drafts.items()) for text in draft.wrong()]
            wrong += [*self.warned.get("", ()), *self.warned.get(address, ())]
        return box(BANNER, wrong, "\n\n", ": the terminal lists them")

    def notice(self, address: str) -> str:
        """Which of the lectures that this page speaks of run now, as HTML; "" where none does."""
        asked = self._asked(address)  # without the lock: an open page hears of it while others are made
        drafts = [asked[0]] if asked else [draft for _, draft in sorted(self.drafts.items())]
        running = (draft.running(asked[1] if asked else "") for draft in drafts)
        return box(NOTICE, [*filter(None, running)], "\n", " are running")

    # -- what was saved

    def changed(self, paths: set[Path]) -> None:
        """These files were saved, made or removed."""
        folder, there = self.project.folder, [*self.drafts]
        with contextlib.suppress(LitbookError):  # else those there were; `refresh` says why nobody can tell
            there = self.project.lectures() if folder.is_dir() else there
        inside = {path for path in paths if folder in path.parents}
        gone = [path for path in self.drafts if path not in there]
        with self.lock:
            for path in gone:
                log.info("%s is gone", path.name)
                del self.drafts[path]
        saved = [path for path in there if path not in self.drafts or any(_is_of(f, path) for f in inside)]
        others = {f for f in inside if not any(_is_of(f, path) for path in (*there, *gone))}
        if folder in paths or any(f.suffix != ".bib" and "recordings" not in f.parts for f in others):
            saved = there  # a file that lectures may import or read
        for path in saved:
            self.drafts.setdefault(path, Draft(path)).saves += 1
        if saved:
            self.tidings.tell(pages=0)  # first of all: from now on what stands there is of an older text
            self.run(saved)
        kept = any(path.suffix == ".bib" or "recordings" in path.parts for path in others)
        for draft in self.drafts.values() if kept else ():
            if draft.last is not None and draft.path not in saved:
                self._show(draft, draft.last.edition.record, draft.last.saves)
        if gone or others or paths - inside:
            self.refresh()


@functools.lru_cache(maxsize=1)
def _bibliography(file: Path, _changed: int) -> Bibliography:
    return read_bibliography(file)


def _watch(preview: Preview, saves: Saves) -> None:
    """Act on what is saved, when it has settled; forever."""
    paths, last, untidy = set[Path](), time.monotonic(), True
    while True:
        paths |= saves.settled(LOOK)
        try:
            paths |= saves.moved()
            if paths:
                preview.changed(paths)
        except OSError as error:  # too many open files, a folder that goes while it is read: once more
            log.error("%s", harmless(str(error)))
            time.sleep(LOOK)
            continue
        if paths:
            paths, last, untidy = set(), time.monotonic(), True
        elif untidy and not preview.todo and time.monotonic() - last > TIDY:
            gc.collect()  # now, when nobody waits; see `serve`
            untidy = False


def _is_of(file: Path, lecture: Path) -> bool:
    """Whether the file is the lecture, or one of its files."""
    return file == lecture or lecture in file.parents


class Saves(FileSystemEventHandler):
    """Notices which files of a book are saved, made, moved or removed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.seen: queue.Queue[Path] = queue.Queue()
        self.observer = Observer()
        # By folder: which one that is, and its watch.
        self.watched: dict[Path, tuple[int, ObservedWatch]] = {}
        self.moved()
        self.observer.schedule(self, str(project.root))
        self.observer.start()

    def moved(self) -> set[Path]:
        """The folders of lectures and docs that have come or gone since; those that are there are watched.

        A watch stays with its folder, wherever that is moved, and knows nothing of one that takes its place.
        """
        moved = set[Path]()
        for folder in (self.project.folder, self.project.docs):
            number = folder.stat().st_ino if folder.is_dir() else 0
            before, watch = self.watched.get(folder, (0, None))
            if number != before:
                moved.add(folder)
                if watch:
                    del self.watched[folder]
                    with contextlib.suppress(KeyError, OSError):  # it ended with its folder
                        self.observer.unschedule(watch)
                if number:
                    self.watched[folder] = number, self.observer.schedule(self, str(folder), recursive=True)
        return moved

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Note the files that the event is about, if pages may be made of them."""
        if not event.is_directory and event.event_type in ("created", "modified", "moved", "deleted"):
            for path in filter(None, (event.src_path, event.dest_path)):
                if self._counts(Path(str(path))):
                    self.seen.put(Path(str(path)))

    def _counts(self, path: Path) -> bool:
        if path.parent == self.project.root:
            return path == self.project.config
        ours = {self.project.pages, self.project.assets}
        hidden = path.name.startswith(".") or path.name.endswith(("~", ".swp", ".pyc"))
        return not (hidden or "__pycache__" in path.parts or ours & set(path.parents))

    def settled(self, patience: float) -> set[Path]:
        """What was saved since the last time, once no more follows; nothing where that takes too long."""
        paths = set[Path]()
        with contextlib.suppress(queue.Empty):
            paths.add(self.seen.get(timeout=patience))
            while True:
                paths.add(self.seen.get(timeout=SETTLED))
        return paths


def serve(config_file: Path, port: int, warm: Warm, timeout: float) -> int:
    """Serve the site of `config_file` at `port` until Ctrl-C; a lecture may take `timeout` seconds."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    for ending in (signal.SIGINT, signal.SIGTERM):  # what a script starts with `&` inherits SIGINT as ignored
        signal.signal(ending, signal.default_int_handler)
    address = f"http://localhost:{port}/"
    with private_folder() as folder:
        (folder / "site").mkdir()
        preview = Preview(config_file, folder / "site", address, warm, timeout)
        try:
            server = Server(preview, port)
        except OSError as error:
            other = port + 1 if port < 65535 else port - 1
            way_out = f"another port: litbook serve --port {other}"
            log.error("cannot listen on %s: %s\n    %s", address, error.strerror, way_out)
            return 2
        gc.disable()  # amid a page it takes as long as half the page; `_watch` does it between saves
        try:
            saves = Saves(preview.project)
            preview.changed(set(preview.project.lectures()))
            preview.refresh()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            log.info("serving on %s   (Ctrl-C ends it)", address)
            _watch(preview, saves)
        except KeyboardInterrupt:
            log.info("done")
        finally:
            preview.warm.end()
            server.server_close()
        return 0
