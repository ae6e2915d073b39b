"""Which pages exist, as a MkDocs plugin: run the lectures, write their pages, say what fails.

`plugins: [search, litbook]` is all that a book needs: the plugin brings its styles, scripts and Markdown
extensions. The pages are ordinary Markdown files, written before MkDocs collects them. Each failed claim,
error and problem in prose is a warning for people, and is counted: a strict build fails because of the count,
not of a line of a log.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import rjsmin
from mkdocs.config import base
from mkdocs.config import config_options as kinds
from mkdocs.exceptions import Abort
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import InclusionLevel
from mkdocs.utils import nest_paths
from pymdownx import superfences

from litbook import i18n, plugins
from litbook.errors import LitbookError, NotFound, UnusableLecture
from litbook.files import WAYS_OUT, NotWritten, write
from litbook.finding import Finding
from litbook.html import page as front
from litbook.html import verdicts
from litbook.html.elements import Page, PageHeading, tag
from litbook.i18n import _
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.bibliography import read as read_bibliography
from litbook.markdown.to_markdown import escape_markdown
from litbook.notebook.workbook import HIDDEN
from litbook.page import sitemap
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.project import CONFIG, MENU, WORDS, Project, display_path
from litbook.python.nodes import freeze_garbage, pause_collection
from litbook.record import model
from litbook.rules import outcome, recorded
from litbook.rules.recorded import MAY_BE_OLDER
from litbook.rules.registry import SEVERITIES, severities
from litbook.run import process
from litbook.site import search, theme_patches
from litbook.site.pages import ENDS, FOLDER, PLACE, Choices, NavEntry, Pages, fill_nav, workbook_page

Records = Generator[Callable[[], model.Record], None, None]
Runner = Callable[[Sequence[Path]], Records]  # as `process.records_of`

plugins.bring_in("edtrace", "display.drawing", "translations")

log = logging.getLogger("mkdocs.plugins.litbook")
ASSETS = Path(__file__).resolve().parents[1] / "html" / "assets"
THEME = Path(__file__).resolve().parent / "theme"  # templates in the place of Material's
STYLES = ("litbook.css", "player.css")
SCRIPTS = ("player.js", "answers.js", "copy.js", "beside.js")
EXTENSIONS: dict[str, dict[str, Any]] = {  # of Markdown, with their settings where the book has none
    "admonition": {},
    "attr_list": {},
    "md_in_html": {},
    "tables": {},
    "toc": {"permalink": False, "toc_depth": 3},
    "pymdownx.details": {},
    "pymdownx.highlight": {"anchor_linenums": False},
    "pymdownx.superfences": {  # Material draws what is fenced as mermaid
        "custom_fences": [{"name": "mermaid", "class": "mermaid", "format": superfences.fence_code_format}]
    },
}
GISCUS = "giscus.app"  # comments, kept as discussions of a repository on GitHub
# What of ours mkdocs-jupyter neither reads nor draws.
NOT_ITS_PAGES = [f"{PLACE}/*/{FOLDER}/*.ipynb", f"{PLACE}/*.md", f"{PLACE}/*/*.md", f"{PLACE}/*/*/*.md"]
NO_JUPYTER = """workbook: true needs a plugin that draws it
    pip install mkdocs-jupyter
    plugins: [search, litbook: {workbook: true}, mkdocs-jupyter: {ignore: ["*.md", "*.py"]}]"""
_IS_TABLE = re.compile(rf"{PLACE}/(ledger|devices)")  # pages that nobody discusses
# Where GitHub has the files of the built site: a repository, and in it a branch, perhaps a folder.
GITHUB = r"https://github\.com/[\w.-]+/[\w.-]+/blob/[\w./-]+"
MOST = 20  # problems that the end of a strict build names; all stand above
TELLS = 10.0  # seconds between two lines of a build that takes its time
INTERRUPTED = 130  # the exit status of Ctrl-C
PLACES = re.compile(r"<!-- (claims|parts|excerpt|drawing|minutes)(?: (\w+))? -->")  # on the front page


class OneOf(kinds.Choice[str]):
    """One of some words, however YAML reads a bare `on` or `off`."""

    def run_validation(self, value: object) -> str:
        """The word; raises MkDocs' error for any other."""
        return super().run_validation(("off", "on")[value] if isinstance(value, bool) else value)


class Comments(kinds.DictOfItems[str]):
    """What giscus.app gives for a repository: all four of these, or nothing."""

    NAMES = "repo", "repo_id", "category", "category_id"

    def __init__(self) -> None:
        super().__init__(kinds.Type(str), default={})

    def run_validation(self, value: object) -> dict[str, str]:
        """The names with their values; raises MkDocs' error for others, and where one is missing."""
        given: dict[str, str] = super().run_validation(value)
        if given and ({*given} != {*self.NAMES} or not re.fullmatch(r"[\w.-]+/[\w.-]+", given["repo"])):
            names = ", ".join(self.NAMES)
            what = f"{given} is not what https://giscus.app gives: {names}"
            raise base.ValidationError(f"{what}; repo is OWNER/NAME")
        return given


class Options(base.Config):
    """What stands below `litbook:` in `mkdocs.yml`; paths are from the root of the book."""

    lectures = kinds.Type(str, default=Project.lectures_at)
    bibliography = kinds.Type(str, default="")  # else references.bib beside the lectures
    title = kinds.Type(str, default=i18n.gettext_noop("Lectures"))  # the nav's entry that the pages replace
    ledger = kinds.Type(bool, default=True)
    misbeliefs = kinds.Type(bool, default=True)
    devices = kinds.Type(bool, default=True)
    notebooks = kinds.Type(bool, default=True)
    workbook = kinds.Optional(kinds.Type(bool))  # by default where mkdocs-jupyter draws it
    synonyms = kinds.DictOfItems(kinds.Type(str), default={})  # words for which the search finds others, too
    glossary = kinds.Type(str, default="")  # the page whose table's rows answer a query for their word
    # In whose words the lectures are written; "": in ours. Where no others are here, a run says so.
    words = kinds.Choice(("", *WORDS), default="") if WORDS else kinds.Type(str, default="")
    rules = kinds.DictOfItems(kinds.Type((str, bool)), default={})  # the severity of each, by its code
    # From before `rules`: of numbers that nothing backs, answers that nothing checks, older recordings.
    unbacked = kinds.Optional(OneOf(SEVERITIES))
    unchecked = kinds.Optional(OneOf(SEVERITIES))
    comments = Comments()  # below each page of a lecture, by giscus
    recordings = kinds.Optional(kinds.Choice(("current", MAY_BE_OLDER)))


class PreviewPages(Protocol):
    """What makes pages when they are asked for: `litbook.site.preview.render` has it."""

    def pages(self) -> Pages: ...
    def complete_lectures(self) -> list[LectureRuns]: ...


class LitbookPlugin(BasePlugin[Options]):
    """One book for MkDocs. It lives as long as `mkdocs serve`, and sees a configuration for every build."""

    def __init__(self) -> None:
        # Records by lecture and hash of all that a lecture may read: `mkdocs serve` builds for every saved
        # file, also when only a docs page changed.
        self.records: dict[Path, tuple[str, model.Record]] = {}
        self.findings: list[Finding] = []  # what is wrong with the lectures of this build: see `report`
        self.renamed: list[str] = []  # a word on each option that has another name by now
        self.turn: IO[str] | None = None  # the book's configuration, locked while this process builds
        self.site = ""  # where the site is built
        self.doing = ""  # what a build is at, which it says while it takes its time
        self.telling = contextlib.ExitStack()  # until the build ends
        self.draws_workbooks = False
        self.command = ""  # `build` or `serve`: what MkDocs was started for
        self.editions: list[LectureRuns] = []  # what the last build has shown: the front page counts it
        self.entries: list[NavEntry] = []
        self.made: dict[str, Page] = {}  # the lectures' pages by their place, as they were drawn
        self.workbooks: dict[str, dict[str, str]] = {}  # by their place, the formulas of each
        self.passages: dict[
            str, Sequence[SearchPassage]
        ] = {}  # what a search finds of them, by their address
        self.terms: list[search.Term] = []  # the rows of the glossary
        self.preview: PreviewPages | None = None  # makes pages when they are asked for, and writes none

    def load_config(
        self, options: dict[str, Any], config_file_path: str | None = None
    ) -> tuple[base.ConfigErrors, base.ConfigWarnings]:
        """MkDocs hands over the options: an unknown one is an error that names the nearest."""
        errors, warnings = super().load_config(options, config_file_path)
        names = [name for name, _ in self.config_scheme]
        for name in options:
            if name not in names:
                errors.append((name, base.ValidationError(str(NotFound("option", str(name), names)))))
        return errors, [warning for warning in warnings if warning[0] not in options]

    # -- what MkDocs calls, in its order

    def on_startup(self, *, command: str, dirty: bool) -> None:  # noqa: ARG002 (MkDocs' signature)
        """MkDocs says once what it is started for; so does mike."""
        self.command = command
        atexit.register(gc.freeze)  # else Python looks for garbage in a whole book before it ends

    def on_config(self, config: Any) -> Any:
        """MkDocs is about to collect files: make the lectures' pages and list them in the nav."""
        if self.command == "mike":  # it reads the configuration, and builds in a process of its own
            return config
        project, self.site = self.project(config), config["site_dir"]
        self.findings.clear()
        i18n.use(str(config["theme"].get("language") or "en"))
        self._add_assets(config)
        self._check_colab(config)
        self.draws_workbooks = self._find_jupyter(config) and not self.preview
        if self.preview:
            self.entries = self.preview.pages().entries()
        else:
            self._end()
            # One build at a time, until this one or its process ends: all write the same pages.
            turn = project.config.open()
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                turn.close()
                what = (
                    f"another build of {display_path(project.config)} is running, and writes the same pages"
                )
                raise Abort(f"{what}\n    wait for its end, or build a copy of the book") from None
            self.turn = turn
            self.telling.enter_context(report_progress(lambda: self.doing))
            self.telling.enter_context(freeze_garbage())
            colab = config["extra"].get("colab") or ""
            try:
                address = config["site_url"] or ""
                self.entries = self.build(project, process.records_of, config["site_name"], colab, address)
            except LitbookError as error:  # of the book as a whole
                raise Abort(str(error)) from None
        for path in filter(Path.is_file, ASSETS.iterdir()):
            content = path.read_bytes()
            _write(project.assets / path.name, rjsmin.jsmin(content) if path.suffix == ".js" else content)
        if config["nav"] is not None:
            shown: list[NavEntry] = [{_(self.config.title): self.entries}] if self.entries else []
            config["nav"] = fill_nav(config["nav"], self.config.title, shown)
        return config

    def on_files(self, files: Any, *, config: Any) -> Any:
        """No menu has the ledger's parts: the ledger links to them. A book without a nav gets one."""
        pages = list(files.documentation_pages())
        for file in pages:
            if Path(file.src_uri).match(f"{PLACE}/ledger/*/*"):
                file.inclusion = InclusionLevel.NOT_IN_NAV
        if config["nav"] is None:
            config["nav"] = self.menu([file.src_uri for file in pages])
        return files

    def menu(self, pages: Iterable[str]) -> list[Any]:
        """The nav of a book that has none: the author's `pages`, then those of the lectures."""
        plain = [uri for uri in pages if not uri.startswith(f"{PLACE}/")]
        plain.sort(key=lambda uri: (uri != "index.md", uri))
        return [*nest_paths(plain), *([{_(self.config.title): self.entries}] if self.entries else [])]

    def on_nav(self, nav: Any, *, config: Any, **_: Any) -> Any:
        """Titles are text, whatever they hold; a lecture that no menu names is told."""
        theme_patches.escape_titles(nav.items)
        named = [page.file.src_uri for page in nav.pages]
        lost = [
            lecture
            for lecture in self.project(config).names()
            if not any(re.match(rf"{PLACE}/{re.escape(lecture)}(/|\.md$)", uri) for uri in named)
        ]
        if lost and not self.preview:
            entry = f"- {self.config.title}: []"
            log.warning("no menu names %s\n    write into nav, in %s: %s", ", ".join(lost), CONFIG, entry)
        if menu := os.environ.get(MENU):  # who asked for it prints these
            write(Path(menu), json.dumps([page.url for page in nav.pages]).encode())
        return nav

    def on_env(self, env: Any, **_options: Any) -> Any:
        """Our templates say their words in the site's language, too."""
        env.globals["gettext"] = _
        return env

    def on_page_markdown(self, markdown: str, *, page: Any, **_: Any) -> str:
        """The front page's numbers come out of the records, too.

        Of a page that was drawn here Markdown reads the headings; a comment stands for each block of HTML,
        which it reads slowly.
        """
        self.doing = f"writing {page.file.src_uri}"
        if made := self.made.get(page.file.src_uri):
            return "\n\n".join(
                block if isinstance(block, PageHeading) else f"<!--litbook {i}-->"
                for i, block in enumerate(made.blocks)
            )
        return self.fill_places(markdown)

    def fill_places(self, markdown: str) -> str:
        """A page of the author's with what comes out of the records in its places."""
        whole = self.preview.complete_lectures() if self.preview else self.editions
        if not whole or not PLACES.search(markdown):
            return markdown
        make: dict[str, Callable[[str], str]] = {
            "claims": lambda _: verdicts.claims_line(whole),
            "parts": lambda _: front.lecture_overview(whole),
            "excerpt": lambda _: front.excerpt(whole[0].record),
            "drawing": lambda name: front.drawing(whole, name),
            "minutes": lambda name: front.part_minutes(whole, name),
        }
        return PLACES.sub(lambda place: make[place[1]](place[2] or ""), markdown)

    def on_page_content(self, html: str, *, page: Any, config: Any, **_options: Any) -> str:
        """The blocks take the place of their comments, and links may lead to what they hold."""
        parts: list[str] = []
        made = self.made.get(page.file.src_uri)
        for i, block in enumerate(made.blocks if made else ()):
            if not isinstance(block, PageHeading):
                before, _mark, html = html.partition(f"<!--litbook {i}-->")
                parts += before, block
                page.present_anchor_ids.update(block.ids)
        if (formulas := self.workbooks.get(page.file.src_uri)) is not None:
            page.meta["title"], page.title = (
                page.title,
                _("Workbook"),
            )  # in the menu it stands below its lecture
            return workbook_page(html, page.file.src_uri, formulas, config["extra"].get("colab") or "")
        if self.config.glossary and page.file.src_uri == self.config.glossary:
            html, self.terms = search.mark_terms(html, page.url)
            page.present_anchor_ids.update(place.partition("#")[2] for place, *_rest in self.terms)
        if self.config.comments and parts and not self.preview and not _IS_TABLE.match(page.file.src_uri):
            of = {"mapping": "pathname", "theme": "preferred_color_scheme", "loading": "lazy"}
            names = {f"data_{name}": value for name, value in (self.config.comments | of).items()}
            src = f"https://{GISCUS}/client.js"
            html += tag("script", crossorigin="anonymous", async_=True, **names, src=src)
        return "".join([*parts, html])

    @event_priority(50)  # before the search reads the page
    def on_page_context(self, context: Any, *, page: Any, **_: Any) -> Any:
        """Titles are text in the browser's tab and in the header, too."""
        theme_patches.escape_heading(page)
        if made := self.made.get(page.file.src_uri):
            page.meta["search"] = {"exclude": True}  # what Material would read of it is known already
            self.passages[page.url] = made.passages
        elif page.file.src_uri in self.workbooks:  # its questions stand in the lecture, too
            page.meta["search"] = {"exclude": True}
            self.passages[page.url] = [SearchPassage("", escape_markdown(page.meta["title"]))]
        else:
            page.content = search.exclude_from_index(page.content)
        return context

    def on_post_page(self, output: str, **_: Any) -> str:
        """What Material leaves nameless gets a name, formulas get their font, and blank lines go."""
        output = theme_patches.put_article_first(theme_patches.name_landmarks(output))
        return theme_patches.drop_indents(search.use_own_worker(theme_patches.announce_formulas(output)))

    def on_post_template(self, output_content: str, *, template_name: str, **_: Any) -> str:
        """The page for addresses that lead nowhere has names, too."""
        return self.on_post_page(output_content) if template_name.endswith(".html") else output_content

    @event_priority(-50)  # the search has written its index
    def on_post_build(self, *, config: Any) -> None:
        """The verdict of a strict build: it fails by how many problems there are, whoever reads the log."""
        if config["extra"].get("colab"):  # Binder makes its environment of what stands beside the site
            recorded = [edition.record.environment.versions for edition in self.editions]
            versions = {name: v.partition("+")[0] for one in recorded for name, v in one.items() if v}
            listed = "".join(f"{name}=={versions[name]}\n" for name in sorted(versions))
            write(Path(config["site_dir"]) / "requirements.txt", listed.encode())
        search.split(Path(config["site_dir"]), self.config.synonyms, self.passages, self.terms)
        self._end()
        if config["strict"] and self.findings:
            raise Abort(refusal(self.findings))

    def on_build_error(self, *, error: Exception) -> None:
        """A build that fails ends, too: with a sentence where a file, MkDocs' own too, cannot be written."""
        self._end()
        if isinstance(error, OSError) and error.errno in WAYS_OUT:
            error = NotWritten(error.filename2 or error.filename or self.site, error)
        if isinstance(error, NotWritten) and not self.preview:
            raise Abort(str(error)) from None

    def on_serve(self, server: Any, *, config: Any, builder: Any) -> Any:  # noqa: ARG002 (MkDocs' signature)
        """`mkdocs serve` also watches the lectures."""
        server.watch(str(self.project(config).folder))
        return server

    # -- the same in steps

    def project(self, config: Any) -> Project:
        """Where this book is."""
        root, options = Path(config["config_file_path"]).parent, self.config
        return Project(root, options.lectures, config["docs_dir"], options.bibliography)

    def choices(self) -> Choices:
        """Which pages exist, and how severe a number is that nothing backs."""
        without = frozenset(name for name in (*ENDS, "notebooks") if not self.config[name])
        without |= {"notebooks"} if self.config.words else set()  # they know none of these words
        without |= set() if self.draws_workbooks else {"workbook"}
        chosen = {name: value for name, value in self.config.items() if value is not None}
        try:
            levels, self.renamed = severities(chosen)
        except LitbookError as error:
            raise Abort(f"{CONFIG}: {error}") from None
        return Choices(without, levels, self.config.words)

    def build(
        self, project: Project, run: Runner, book: str = "", colab: str = "", address: str = ""
    ) -> list[NavEntry]:
        """Write the pages of every lecture of the project; the nav's entries come back.

        `book` is the title of the whole, which the notebooks name, `colab` where GitHub has the built site,
        `address` the site's own.
        """
        self.editions = []
        works: Bibliography | None = sitemap.NOTHING_CITED
        try:
            if project.has_bibliography:  # else a citation says that its key is unknown
                works = read_bibliography(project.bibliography)
        except LitbookError:  # a rule says so
            works = None
        pages = Pages(project, self.editions, works, book, colab, self.choices(), address)
        for text in self.renamed:
            log.info("%s: %s", CONFIG, text)
        files: dict[str, str | bytes] = {}
        warnings = list[Finding]()
        for edition, unreadable in self._editions(project, run):  # drawn while the next one runs
            self.editions.append(edition)
            drawn = list[Finding]()
            with pause_collection():
                files |= pages.lecture_files(edition, drawn)
                findings = pages.judge(edition, unreadable, drawn)
            for finding in findings.errors:
                self.report(finding)
            warnings += findings.warnings
        self.workbooks = pages.formulas
        files |= pages.ends()
        written = {_write(project.docs / place, content) for place, content in files.items()}
        self.made = {place: content for place, content in files.items() if isinstance(content, Page)}
        remarks = [finding.text(coded=True) for finding in dict.fromkeys(warnings)]
        remarks += filter(None, [outcome.longest([edition.record for edition in self.editions])])
        for text in remarks:
            log.info("%s", outcome.harmless(text))
        # What an earlier build has left, and folders that are empty now.
        for path in sorted(project.pages.rglob("*"), reverse=True):
            if path.is_file() and path not in written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        return pages.entries()

    def report(self, finding: Finding) -> None:
        """Something is wrong with the book: a warning for people, and one more for a strict build."""
        if finding not in self.findings:
            self.findings.append(finding)
            log.warning("%s", outcome.harmless(finding.text(coded=True)))

    def _editions(self, project: Project, run: Runner) -> Iterator[tuple[LectureRuns, list[Finding]]]:
        """Run every lecture that is not as it was; those that can be shown, in turn, and bad recordings."""
        paths, now = project.lectures(), dict[Path, str]()
        for folder in {path.parent for path in paths}:
            files = sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
            read = hashlib.sha256(b"".join(str(p).encode() + p.read_bytes() for p in files)).hexdigest()
            now |= {path: read for path in paths if path.parent == folder}
        changed = [path for path in paths if path not in self.records or self.records[path][0] != now[path]]
        with contextlib.closing(run(changed)) as records:
            for path in paths:
                try:
                    if path in changed:
                        self.doing = f"{path.name} runs, lecture {paths.index(path) + 1} of {len(paths)}"
                        self.records[path] = (now[path], next(records)())
                    yield recorded.read_runs(path, self.records[path][1])
                except UnusableLecture as error:
                    for finding in error.findings:
                        self.report(finding)
                except LitbookError as error:
                    if error.exit_status == INTERRUPTED:
                        raise KeyboardInterrupt from None
                    self.report(Finding(error.slug, f"{path.name} cannot be run: {error}"))
        for finding in project.overlooked_files():
            self.report(finding)
        if not paths:
            nothing = f"there are no lectures in {display_path(project.folder)}"
            self.report(Finding("no-lectures", f"{nothing}: a build of nothing has no verdict"))

    def _add_assets(self, config: Any) -> None:
        """The styles, scripts and Markdown extensions of lectures' pages; the author's come after them."""
        if config["theme"].name != "material":
            other = f"the theme is {config['theme'].name}: the lectures' pages are made for Material"
            log.warning("%s\n    theme: {name: material}", other)
        at = "assets/litbook"
        config["extra_css"][:0] = [style for n in STYLES if (style := f"{at}/{n}") not in config["extra_css"]]
        scripts = [kinds.ExtraScriptValue(f"{at}/{name}") for name in SCRIPTS]
        for script in scripts:
            script.defer = True
        there = {str(script) for script in config["extra_javascript"]}
        config["extra_javascript"][:0] = [script for script in scripts if str(script) not in there]
        config["extra"]["polyfills"] = [*config["extra"].get("polyfills", []), search.IN_FOLDERS]
        for name, settings in EXTENSIONS.items():
            if name not in config["markdown_extensions"]:
                config["markdown_extensions"].append(name)
            config["mdx_configs"].setdefault(name, dict(settings))
        # Material's own fonts come from elsewhere, where no page may ask; its right side is our margin, and
        # its contents follow the reading.
        theme = config["theme"]
        theme["font"] = False
        theme.dirs.insert(0, str(THEME))
        features = theme.get("features") or []
        theme["features"] = [*dict.fromkeys([*features, "toc.integrate", "toc.follow"])]

    def _check_colab(self, config: Any) -> None:
        """A wrong address would give every notebook a link that leads nowhere."""
        given = config["extra"].get("colab")
        if given and not re.fullmatch(GITHUB, str(given)):
            expected = "https://github.com/OWNER/REPOSITORY/blob/BRANCH, where GitHub has the built site"
            without = "Without it pages link the notebook's file alone."
            what = f"{CONFIG}: extra.colab is {given!r}; expected {expected}. {without}"
            self.report(Finding("colab", what))
            config["extra"]["colab"] = ""

    def _find_jupyter(self, config: Any) -> bool:
        """Whether the book has workbooks, which mkdocs-jupyter draws; it gets what they need for that."""
        plugins_ = {name.rpartition("/")[2]: plugin for name, plugin in config["plugins"].items()}
        drawing = plugins_.get("mkdocs-jupyter")
        if drawing is None and self.config.workbook:
            raise Abort(f"{CONFIG}: {NO_JUPYTER}")
        if drawing is None:
            return False
        options, mine = drawing.config, self.config.workbook is not False
        options["ignore"] = [*options["ignore"], *NOT_ITS_PAGES]
        if mine:
            options["include_source"] = True
            options["execute_ignore"] = [*options["execute_ignore"], f"{PLACE}/*/*.ipynb"]
            options["remove_tag_config"] = {"remove_cell_tags": [HIDDEN]} | options["remove_tag_config"]
        return mine

    def _end(self) -> None:
        """Let go of what one build holds."""
        self.telling.close()
        if self.turn:
            self.turn.close()
        self.turn = None


@contextlib.contextmanager
def report_progress(what: Callable[[], str]) -> Iterator[None]:
    """Say what is being done every so many seconds: minutes of silence look like a build that hangs."""
    done, since = threading.Event(), time.monotonic()

    def tell() -> None:
        while not done.wait(TELLS):
            log.info("%.0f s: %s", time.monotonic() - since, outcome.harmless(what()))

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def refusal(findings: list[Finding]) -> str:
    """Why a strict build fails: how many findings, and the first line of each."""
    heads = (f"{one.place}: {one.what}" if one.place else one.what for one in findings[:MOST])
    lines = [outcome.harmless(head.partition("\n")[0]) for head in heads]
    left = len(findings) - MOST
    head = f"{len(findings)} {'problem' if len(findings) == 1 else 'problems'} in the lectures:"
    return "\n    ".join([head, *lines, *([f"and {left} more"] if left > 0 else [])])


def _write(path: Path, text: str | bytes) -> Path:
    """Write only what changed: `mkdocs serve` watches these files."""
    content = text.encode() if isinstance(text, str) else text
    if not path.exists() or path.read_bytes() != content:
        write(path, content)
    return path
