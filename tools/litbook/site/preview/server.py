"""The preview's server: answers this machine's browsers, and tells them when there is news.

It answers other machines only where the author says so. It knows a site only as `ServedSite`: pages that
are made when they are asked for, and numbers that grow with each change. MkDocs' own server makes every page
before it shows one, and takes five waiting browsers.
"""

from __future__ import annotations

import contextlib
import html
import http.server
import json
import logging
import mimetypes
import os
import re
import socket
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from litbook.errors import LitbookError

log = logging.getLogger("litbook.site.preview")

SCRIPT = Path(__file__).with_name("served") / "news.js"  # asks for news, and shows it
SCRIPT_AT = "/livereload/script.js"  # a file, which a browser keeps

NEWS = re.compile(r"/livereload/([0-9]{1,15})-([0-9]{1,15})", re.ASCII)

SILENCE = 10.0  # seconds that a connection may say nothing while it is asked or answered
# Nobody reads an answer but a page of this preview: another site has it neither as a script nor in a frame.
FOR_US_ALONE = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}


class News(NamedTuple):
    """How often pages have changed, and how often what they say of runs that are under way."""

    pages: int
    notices: int


class NewsChannel:
    """Tells those who wait when there is news, and lets each wait at most so many seconds."""

    def __init__(self, patience: float) -> None:
        self.news, self.patience, self.others = News(1, 1), patience, threading.Condition()

    def tell(self, pages: int = 1) -> None:
        """There is another page, or, of 0 pages, what they say of a run is another."""
        with self.others:
            self.news = News(self.news.pages + pages, self.news.notices + 1)
            self.others.notify_all()

    def wait(self, news: News) -> News:
        """The news, as soon as they are others."""
        with self.others:
            self.others.wait_for(lambda: self.news != news, timeout=self.patience)
            return self.news


class ServedSite(Protocol):
    """What is served."""

    folder: Path
    tidings: NewsChannel
    lock: threading.RLock  # while it is held, nothing that is served changes

    def make(self, address: str) -> str: ...
    def banner(self, address: str) -> str: ...
    def notice(self, address: str) -> str: ...


ANY_HOST = ("0.0.0.0", "::")
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Server(http.server.ThreadingHTTPServer):
    """Serves `site` at a host and port; at `ANY_HOST` to whoever reaches this machine."""

    daemon_threads = True
    request_queue_size = 256  # browsers that wait; the base class lets 5

    def __init__(self, site: ServedSite, at: tuple[str, int]) -> None:
        self.site = site
        host, _ = at
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__(at, Handler)
        # None: a machine has more names than it knows.
        names = {*LOCAL_NAMES, f"[{host}]" if ":" in host else host}
        self.names = None if host in ANY_HOST else {f"{name}:{self.server_port}" for name in names}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(http.server.SimpleHTTPRequestHandler):
    """One question of a browser."""

    timeout = SILENCE

    def __init__(self, request: Any, client: Any, server: Server) -> None:
        self.site, self.names = server.site, server.names
        super().__init__(request, client, server, directory=str(server.site.folder))

    def do_GET(self) -> None:
        """A page, made now if need be; or news. Only for those who asked this machine by its own name."""
        if self.names is not None and self.headers.get("Host") not in self.names:
            # Another site, whose name leads here, would read along.
            self._send(b"this preview answers to localhost alone\n", "text/plain", 403)
            return
        # A browser says whose page asks. A link may lead here from anywhere: its reader alone reads it.
        asked_by, how = self.headers.get("Sec-Fetch-Site", "none"), self.headers.get("Sec-Fetch-Dest")
        if asked_by not in ("none", "same-origin") and how != "document":
            self._send(b"this preview answers to its own pages alone\n", "text/plain", 403)
            return
        place = urlsplit(self.path)
        path = unquote(place.path)
        if asked := NEWS.fullmatch(path):
            news = self.site.tidings.wait(News(int(asked[1]), int(asked[2])))
            now = {**news._asdict(), "notice": self.site.notice(unquote(place.query))}
            self._send(json.dumps(now).encode(), "application/json")
            return
        if path == SCRIPT_AT:
            self._send(SCRIPT.read_bytes(), "text/javascript")
            return
        with self.site.lock:  # a page and the banner above it are of one moment
            answer = self._answer(path)
        if answer:
            self._send(*answer)
        else:
            super().do_GET()  # it redirects

    def _answer(self, path: str) -> tuple[bytes, str, int] | None:
        """What is at the path, its type and its status; None for a folder without its slash."""
        try:
            late = self.site.make(
                path if path.endswith("/") or "." in path.rpartition("/")[2] else f"{path}/"
            )
        except (Exception, SystemExit) as error:
            if isinstance(error, LitbookError):
                log.error("%s", error)
            else:
                log.exception("%s cannot be made", path)
            return self._page(f"<body><pre>{html.escape(str(error))}</pre></body>".encode(), 500)
        if late:
            return self._page(f"<body><p>{html.escape(late)}</p></body>".encode(), 503)
        file = Path(self.translate_path(self.path))
        folder = os.path.isdir(file)  # noqa: PTH112  False for a name that is too long, where a path's own raises
        if folder and not path.endswith("/"):
            return None
        file = file / "index.html" if folder else file
        missing = not os.path.isfile(file)  # noqa: PTH113  as above
        if file.suffix == ".html" or missing:
            file = self.site.folder / "404.html" if missing else file
            content = file.read_bytes() if file.is_file() else b"<body><p>There is no such page.</p></body>"
            return self._page(content, 404 if missing else 200)
        return file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream", 200

    def do_HEAD(self) -> None:
        """As GET, which few ask otherwise."""
        self.do_GET()

    def _page(self, content: bytes, status: int) -> tuple[bytes, str, int]:
        """A page with what is said above it, and the script that asks for news of it."""
        news, text = self.site.tidings.news, content.decode("utf-8", "replace")
        address = unquote(urlsplit(self.path).path)
        above = self.site.notice(address) + self.site.banner(address)
        head, body, rest = text.partition("<body")
        attributes, end, rest = rest.partition(">")
        text = "".join([head, body, attributes, end, above if end else "", rest])
        before, end, after = text.rpartition("</body>")
        script = f'<script src="{SCRIPT_AT}" data-news="{news.pages}-{news.notices}"></script>'
        text = f"{before or after}{script}{end}{after if end else ''}"
        return text.encode(), "text/html; charset=utf-8", status

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(content)

    def end_headers(self) -> None:
        """With every answer, a redirection too, whose it is."""
        self.send_header("Cache-Control", "no-cache")
        for name, value in FOR_US_ALONE.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the base class's name
        """Nothing: a request is no news."""
