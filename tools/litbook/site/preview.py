"""`make serve`: saving a lecture runs what changed, and the browser shows the page that it is at.

Three things wait for each other as little as they can:

    the watch    sees a saved file, lets saves that follow each other settle, and asks `warm` to run the
    lecture the shelf    the newest record of each lecture, and what is wrong with its text of now the server
    makes a page when a browser asks for it, out of the records of that moment

So a save costs the sections that changed and one page. What is wrong stands in a banner on every page, with
file, line and the author's own text, above the page of the last run that worked. A page of the preview is
made by MkDocs as in a build; but only a build checks links between pages and fails.
"""

from __future__ import annotations

import contextlib
import gc
import html
import http.server
import logging
import mimetypes
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.commands import build
from mkdocs.config import load_config
from mkdocs.structure.files import File, get_files, set_exclusions
from mkdocs.structure.nav import get_navigation
from mkdocs.structure.pages import Page

from litbook.errors import LitbookError, Problem
from litbook.project import Project, name_of, recordings_of
from litbook.record import model, recordings
from litbook.render import report
from litbook.render.bibliography import Bibliography
from litbook.render.bibliography import read as read_bibliography
from litbook.render.ledger import Shelf
from litbook.render.report import harmless
from litbook.run.messages import Inbox, packed
from litbook.site import plugin as site
from litbook.site.pages import PLACE, Volume, Volumes

TOOLS = Path(__file__).resolve().parents[2]
EVERY = 0.05  # seconds between two looks at the files
SETTLED = 0.1  # seconds without another save, then a lecture runs
TIDY = 5.0  # seconds without a save, then garbage is collected
TIMEOUT = 300.0  # seconds that a lecture may take; a save ends it sooner
POLL = 25.0  # seconds that a browser's question for news is held
MOST_TROUBLES = 5  # shown in the banner; the terminal has all

log = logging.getLogger("litbook.site.preview")

# Asks for news, reloads, and goes back to where the reader was: also on a page that has become longer or
# shorter.
SCRIPT = """
<script>
(() => {
  const key = "litbook-scroll:" + location.pathname;
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  if (kept !== null) {
    history.scrollRestoration = "manual";
    const back = () => scrollTo({ top: Number(kept), behavior: "instant" });
    back();
    addEventListener("load", back);
  }
  const ask = () => fetch("/livereload/EPOCH").then(answer => answer.text()).then(now => {
    if (Number(now) === EPOCH) return ask();
    sessionStorage.setItem(key, String(scrollY));
    location.reload();
  }).catch(() => setTimeout(ask, 1000));
  if (document.readyState === "complete") ask(); else addEventListener("load", ask);
})();
</script>
"""
BANNER = (
    '<div id="litbook-trouble" role="alert" style="position:sticky;top:0;z-index:9;max-height:40vh;'
    "overflow:auto;padding:.6rem 1rem;background:#7f1d1d;color:#fff;font:.7rem/1.4 ui-monospace,monospace;"
    'white-space:pre-wrap">{}</div>'
)


@dataclass
class Shown:
    """A lecture as the preview has it."""

    path: Path
    record: model.Record | None = None  # of the last run that ended
    when: str = ""  # that run's time of day
    trouble: str = ""  # why the text of now has no record
    running: str = ""  # the section that runs now
    generation: int = 0
    own: model.Record | None = None
    others: list[model.Record] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """What is wrong, the text's own troubles first."""
        if self.trouble:
            last = f"\nBelow: the run of {self.when}, the last that could be shown." if self.record else ""
            return [self.trouble + last]
        return [str(it) for it in report.problems(self.record)] if self.record else []


class Warm:
    """The other process, see `warm`. `said` is called, in a thread of its own, with each of its messages."""

    def __init__(self, said: Callable[[tuple[Any, ...]], None]) -> None:
        self.said = said
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.number = 0

    def run(self, path: Path, timeout: float) -> int:
        """Run the lecture, instead of whatever runs now. Its number comes back."""
        with self.lock:
            self.number += 1
            message = packed(("run", self.number, path, timeout))
            for _ in range(2):  # a warm process that was killed from outside is started anew
                if self.process is None or self.process.poll() is not None:
                    self._start()
                with contextlib.suppress(OSError):
                    assert self.process is not None
                    assert self.process.stdin is not None
                    self.process.stdin.write(message)
                    self.process.stdin.flush()
                    break
            return self.number

    def read(self, path: Path) -> None:
        """Read the lecture's text ahead, if the process is there."""
        with self.lock, contextlib.suppress(OSError):
            if self.process is not None and self.process.stdin is not None and self.process.poll() is None:
                self.process.stdin.write(packed(("read", path)))
                self.process.stdin.flush()

    def _start(self) -> None:
        path = os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "litbook.run.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        inbox = Inbox()
        assert process.stdout is not None
        while arrived := os.read(process.stdout.fileno(), 2**20):
            for message in inbox.take(arrived):
                self.said(message)
        self.said(
            ("trouble", self.number, "the process that runs lectures has ended; the next save starts another")
        )

    def close(self) -> None:
        """End it, and what runs in it."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5)
            self.process.kill()


class Preview:
    """The shelf, and the pages made from it."""

    def __init__(self, config_file: Path, folder: Path, address: str, timeout: float = TIMEOUT) -> None:
        self.config_file, self.folder, self.address = config_file, folder, address
        self.notebooks = folder.with_name(f"{folder.name}-notebooks")  # as docs/ would have them
        self.project = Project(config_file.resolve().parent)
        self.lectures = self.project.folder
        self.timeout = timeout
        self.shown: dict[Path, Shown] = {}
        self.lock = threading.RLock()  # held while pages are made, and while what they are made of changes
        self.epoch = 1
        self.news = threading.Condition()
        self.pages: dict[str, Page] = {}  # by address
        self.made: dict[str, tuple[int, ...]] = {}  # by address: of which generations
        self.written: dict[str, model.Record] = {}  # by lecture: of which record its notebooks are
        self.generation = 0  # of everything but the lectures
        self.trouble = ""  # why there is no site at all
        self.titles: Any = None
        self.todo: queue.Queue[Path] = queue.Queue()
        self.warm = Warm(self._hear)
        self.current: tuple[int, Path] | None = None
        self.since = 0.0
        self._read: dict[Path, tuple[int, model.Record]] = {}  # recordings, with when they were written

    # -- running

    def lecture_saved(self, paths: Sequence[Path]) -> None:
        """Run these lectures, one after the other; what runs now is ended if it is one of them."""
        with self.lock:
            waiting = list(self.todo.queue)
            running = [self.current[1]] if self.current else []
            order = [*paths, *(p for p in running + waiting if p not in paths and p.exists())]
            self.todo = queue.Queue()
            for path in order:
                self.todo.put(path)
            self._next()

    def _next(self) -> None:
        self.current = None
        if not self.todo.empty():
            path = self.todo.get()
            self.since = time.monotonic()
            self.current = self.warm.run(path, self.timeout), path

    def _hear(self, message: tuple[Any, ...]) -> None:
        kind, number, what = message
        with self.lock:
            if self.current is None or self.current[0] != number:
                if kind == "remarks" and number == self.warm.number:
                    for text in what:
                        log.warning("%s", harmless(text))
                return  # of a run that a newer save has ended
            path = self.current[1]
            shown = self.shown.setdefault(path, Shown(path))
            if kind == "at":
                shown.running = what
                return
            if kind == "record":
                self._show(shown, pickle.loads(what))
            elif kind == "trouble":
                shown.trouble, shown.running = what, ""
                log.error("%s", harmless(what))
            if kind in ("record", "trouble"):
                self._next()
                self._bump()

    def _show(self, shown: Shown, record: model.Record) -> None:
        shown.record, shown.trouble, shown.running = record, "", ""
        shown.when = time.strftime("%H:%M:%S")
        shown.generation += 1
        shown.own, shown.others = self._recordings(shown.path, record)
        for problem in report.problems(record):
            log.warning("%s", problem)
        log.info(
            "%s: %s; %.1f s",
            shown.path.name,
            report.summary(record),
            time.monotonic() - self.since,
        )
        if self.volumes().titles() != self.titles:
            self.refresh()

    def _recordings(self, path: Path, record: model.Record) -> tuple[model.Record | None, list[model.Record]]:
        """This lecture's recording of this kind of device, and those of others; read when they change."""
        own, others = None, []
        for file in recordings_of(path):
            with contextlib.suppress(LitbookError, OSError):
                stamp = file.stat().st_mtime_ns
                if self._read.get(file, (0, None))[0] != stamp:
                    self._read[file] = stamp, recordings.read(file, name_of(path))
                found = self._read[file][1]
                if found.environment.device.slug == record.environment.device.slug:
                    own = found
                else:
                    others.append(found)
        return own, others

    def bibliography(self) -> Bibliography:
        """The book's sources as they are now; none where they cannot be read."""
        with contextlib.suppress(LitbookError, OSError):
            return read_bibliography(self.project.bibliography)
        return {}

    def entries(self) -> list[Any]:
        """The pages as entries of MkDocs' nav, for the hook."""
        return self.volumes().entries()

    def shelf(self) -> list[Shelf]:
        """Each lecture's newest record and its recordings, for the hook."""
        return self.volumes().shelf

    # -- the site

    def good(self) -> list[Shown]:
        """The lectures that have a record, in order."""
        return [self.shown[path] for path in sorted(self.shown) if self.shown[path].record is not None]

    def volumes(self) -> Volumes:
        """What pages are made of now."""
        found = [
            Volume(name_of(it.path), it.record, it.others, it.own)
            for it in self.good()
            if it.record is not None
        ]
        return Volumes(found, self.bibliography(), site.differing)

    def refresh(self) -> None:
        """Collect the pages anew: a page of the docs, the configuration or a part's name has changed."""
        with self.lock:
            try:
                self._collect()
                self.trouble = ""
            except (Exception, SystemExit) as error:  # an error in a file that somebody is editing
                self.trouble = f"{type(error).__name__}: {error}"
                log.error("%s", harmless(self.trouble))
            self.generation += 1
        self._bump()

    def _collect(self) -> None:
        config = load_config(str(self.config_file), site_dir=str(self.folder), site_url=self.address)
        config.extra[site.PREVIEW] = self
        config.plugins.on_startup(command="serve", dirty=False)
        config.plugins.events["page_context"].clear()  # of the search alone, which needs all pages at once
        config = config.plugins.on_config(config)
        config.plugins.on_pre_build(config=config)
        files = get_files(config)
        for file in [f for f in files if f.src_uri.startswith(f"{PLACE}/")]:
            files.remove(file)  # what an earlier build has left: here pages are made when they are asked for
        for uri in self.volumes().places():
            files.append(File.generated(config, uri, content=""))
        for uri in self.volumes().notebooks() if "mkdocs-jupyter" in config.plugins else ():
            files.append(File(uri, str(self.notebooks), config.site_dir, config.use_directory_urls))
        env = config.theme.get_env()
        files.add_files_from_theme(env, config)
        files = config.plugins.on_files(files, config=config)
        set_exclusions(files, config)
        nav = config.plugins.on_nav(get_navigation(files, config), config=config, files=files)
        pages: dict[str, Page] = {}
        for file in files.documentation_pages():
            made = file.page or Page(None, file, config)
            pages["/" + unquote(file.url).removeprefix("./")] = made
            if file.src_uri.endswith(".ipynb"):
                continue  # no menu has it
            if made.title is None:  # the menu on every other page needs it
                self._fill(file)
                made.read_source(config)
        env = config.plugins.on_env(env, config=config, files=files)
        files.copy_static_files()
        for template in config.theme.static_templates:
            build._build_theme_template(template, env, files, config, nav)
        self.config, self.files, self.nav, self.env, self.pages = config, files, nav, env, pages
        self.titles = self.volumes().titles()
        for address in self.made.keys() - pages.keys():
            (self.folder / address.lstrip("/") / "index.html").unlink(missing_ok=True)
        self.made.clear()

    def _fill(self, file: File) -> list[Problem]:
        """Write the Markdown of a lecture's page out of its record."""
        problems: list[Problem] = []
        if file.generated_by is not None:
            file.content_string = self.volumes().text(file.src_uri, problems)
        return problems

    def make(self, address: str) -> None:
        """Make the page at the address, if there is one and it is older than what it is made of."""
        found = self.pages.get(address)
        if found is not None and found.file.src_uri.endswith(".ipynb"):
            self._write_notebooks(found.file.src_uri)  # seconds, in which a save need not wait
        with self.lock:
            page = self.pages.get(address)
            if page is None:
                self._data(address)
                return
            now = (self.generation, *(it.generation for it in self.shown.values()))
            if self.made.get(address) == now:
                return
            for problem in self._fill(page.file):
                log.warning("%s", harmless(str(problem)))
            build._populate_page(page, self.config, self.files)
            build._build_page(page, self.config, list(self.files.documentation_pages()), self.nav, self.env)
            self.made[address] = now

    def _write_notebooks(self, uri: str) -> None:
        """Write the notebooks of this notebook's lecture, if its record is newer than they are."""
        with self.lock:
            volumes, folder = self.volumes(), uri.split("/")[1]
            it = next((it for it in volumes.all if it.folder == folder), None)
            book = str(self.config["site_name"])
        if it is None or self.written.get(folder) is it.record:
            return
        path, others = self.project.lecture(folder), list(it.others)
        for file, text in site.notebooks(path, it.record, volumes.bibliography, others, book).items():
            target = self.notebooks / PLACE / folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self.written[folder] = it.record

    def _data(self, address: str) -> None:
        """The steps of a player, the claims as JSON, the badge."""
        uri = address.lstrip("/")
        if uri.startswith(f"{PLACE}/") and not uri.endswith("/"):
            content = self.volumes().data(uri)
            if content is not None:
                target = self.folder / uri
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, encoding="utf-8")

    def banner(self) -> str:
        """What is wrong, as HTML; "" where nothing is."""
        with self.lock:
            wrong = [self.trouble] if self.trouble else []
            wrong += [text for path in sorted(self.shown) for text in self.shown[path].wrong()]
            first = [path.name for path, it in self.shown.items() if it.record is None and not it.trouble]
        if len(wrong) > MOST_TROUBLES:
            wrong = [
                *wrong[:MOST_TROUBLES],
                f"… and {len(wrong) - MOST_TROUBLES} more: the terminal lists them",
            ]
        wrong += [f"{name} is running for the first time" for name in first]
        return BANNER.format(html.escape(harmless("\n\n".join(wrong)))) if wrong else ""

    def _bump(self) -> None:
        with self.news:
            self.epoch += 1
            self.news.notify_all()

    def wait(self, epoch: int) -> int:
        """The epoch, as soon as it is another."""
        with self.news:
            self.news.wait_for(lambda: self.epoch != epoch, timeout=POLL)
            return self.epoch

    # -- the watch

    def watch(self, stop: threading.Event) -> None:
        """Look at the files until `stop`; act when they have settled."""
        seen = self._stamps()
        changed: set[Path] = set()
        quiet, untidy = 0.0, True
        while not stop.wait(EVERY):
            now = self._stamps()
            news = {path for path in {**seen, **now} if seen.get(path) != now.get(path)}
            seen = now
            quiet = 0.0 if news else quiet + EVERY
            changed |= news
            for path in news & self.shown.keys():
                self.warm.read(path)  # while the save settles
            if changed and quiet >= SETTLED:
                self.changed(changed)
                changed, untidy = set(), True
            elif untidy and quiet >= TIDY and self.current is None:
                gc.collect()  # now, when nobody waits; see `_serve`
                untidy = False

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        for folder in (self.lectures, self.project.docs):
            for place, folders, names in os.walk(folder):
                folders[:] = [
                    n
                    for n in folders
                    if n not in ("__pycache__", ".git") and not self._is_generated(place, n)
                ]
                for name in names:
                    if not name.startswith(".") and not name.endswith(("~", ".swp", ".pyc")):
                        self._stamp(Path(place, name), found)
        self._stamp(self.config_file, found)
        return found

    def _is_generated(self, place: str, name: str) -> bool:
        return Path(place, name) in (self.project.pages, self.project.assets)

    def _stamp(self, path: Path, into: dict[Path, tuple[int, int]]) -> None:
        with contextlib.suppress(OSError):
            seen = path.stat()
            into[path] = seen.st_mtime_ns, seen.st_size

    def changed(self, paths: set[Path]) -> None:
        """These files were saved, made or removed."""
        inside = {path for path in paths if self.lectures in path.parents}
        there = self.project.lectures()
        gone = [path for path in self.shown if path not in there]
        with self.lock:
            for path in gone:
                log.info("%s is gone", path.name)
                del self.shown[path]
        saved = [path for path in there if path in inside or path not in self.shown]
        others = {path for path in inside if path not in there and path not in gone}
        if any(path.suffix != ".bib" and "recordings" not in path.parts for path in others):
            saved = there  # a file that lectures may import or read: a run tells which sections it concerns
        for path in saved:
            self.shown.setdefault(path, Shown(path))
        if gone or others or paths - inside:
            self.refresh()
        if saved:
            self.lecture_saved(saved)


# ---------------------------------------------------------------------------- the server


class _Handler(http.server.SimpleHTTPRequestHandler):
    preview: Preview

    def do_GET(self) -> None:
        """A page, made now if need be; or news."""
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/livereload/"):
            tail = path.rpartition("/")[2]
            self._send(str(self.preview.wait(int(tail) if tail.isdigit() else 0)).encode(), "text/plain")
            return
        epoch = self.preview.epoch
        try:
            self.preview.make(path if path.endswith("/") or "." in path.rpartition("/")[2] else f"{path}/")
        except (Exception, SystemExit) as error:
            log.exception("%s cannot be made", path)
            self._page(f"<body><pre>{html.escape(str(error))}</pre></body>".encode(), epoch, 500)
            return
        file = Path(self.translate_path(self.path))
        if file.is_dir() and not path.endswith("/"):
            super().do_GET()  # it redirects
            return
        file = file / "index.html" if file.is_dir() else file
        if file.suffix == ".html" or not file.is_file():
            missing = not file.is_file()
            file = self.preview.folder / "404.html" if missing else file
            content = file.read_bytes() if file.is_file() else b"<body><p>There is no such page.</p></body>"
            self._page(content, epoch, 404 if missing else 200)
            return
        self._send(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream")

    def _page(self, content: bytes, epoch: int, status: int) -> None:
        text = content.decode("utf-8", "replace")
        text = re.sub(r"<body[^>]*>", lambda m: m[0] + self.preview.banner(), text, count=1)
        before, end, after = text.rpartition("</body>")
        text = f"{before or after}{SCRIPT.replace('EPOCH', str(epoch))}{end}{after if end else ''}"
        self._send(text.encode(), "text/html; charset=utf-8", status)

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the base class's name
        """Nothing: a request is no news."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def serve(config_file: Path, port: int, timeout: float = TIMEOUT) -> int:
    """Serve the site of `config_file` at `port` until Ctrl-C; a lecture may take `timeout` seconds."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    for ending in (signal.SIGINT, signal.SIGTERM):  # what a script starts with `&` inherits SIGINT as ignored
        signal.signal(ending, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="litbook-site-", ignore_cleanup_errors=True) as folder:
        site_dir = Path(folder) / "site"
        site_dir.mkdir()
        return _serve(config_file, port, timeout, site_dir)


def _serve(config_file: Path, port: int, timeout: float, folder: Path) -> int:
    address = f"http://localhost:{port}/"
    preview = Preview(config_file, folder, address, timeout)
    handler = type("Handler", (_Handler,), {"preview": preview, "directory": str(folder)})
    try:
        server = _Server(("localhost", port), lambda *given: handler(*given, directory=str(folder)))
    except OSError as error:
        log.error(
            "cannot listen on %s: %s\n    another port: make serve PORT=%d",
            address,
            error.strerror,
            port + 1,
        )
        return 2
    stop = threading.Event()
    gc.disable()  # in the middle of a page it takes as long as half the page; `watch` does it between saves
    try:
        preview.changed(set(preview.project.lectures()))
        preview.refresh()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        log.info("serving on %s   (Ctrl-C ends it)", address)
        preview.watch(stop)
    except KeyboardInterrupt:
        log.info("done")
    finally:
        stop.set()
        preview.warm.close()
        server.server_close()
    return 0
