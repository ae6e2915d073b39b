"""The preview's server: answers this machine's browsers, and tells them when there is news.

It knows a site only as `Site`: pages that are made when they are asked for, and an epoch that grows with each
change. MkDocs' own server makes every page before it shows one, and takes five waiting browsers.
"""

from __future__ import annotations

import contextlib
import html
import http.server
import logging
import mimetypes
import re
import sys
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

log = logging.getLogger("litbook.site.preview")

# Asks for news, reloads, and goes back to where the reader was: also on a page that has become longer or
# shorter.
SCRIPT = """
(() => {
  const epoch = Number(document.currentScript.dataset.epoch);
  const key = "litbook-scroll:" + location.pathname;
  const kept = sessionStorage.getItem(key);
  sessionStorage.removeItem(key);
  if (kept !== null) {
    history.scrollRestoration = "manual";
    const back = () => scrollTo({ top: Number(kept), behavior: "instant" });
    back();
    addEventListener("load", back);
  }
  const ask = () => fetch(`/livereload/${epoch}`).then(answer => answer.text()).then(now => {
    if (Number(now) === epoch) return ask();
    sessionStorage.setItem(key, String(scrollY));
    location.reload();
  }).catch(() => setTimeout(ask, 1000));
  if (document.readyState === "complete") ask(); else addEventListener("load", ask);
})();
"""
SCRIPT_AT = "/livereload/script.js"  # a file: a page's policy lets no script stand in the page

NEWS = re.compile(r"/livereload/([0-9]{1,15})", re.ASCII)


class Site(Protocol):
    """What is served."""

    folder: Path
    epoch: int

    def make(self, address: str) -> str: ...
    def banner(self) -> str: ...
    def wait(self, epoch: int) -> int: ...


class Server(http.server.ThreadingHTTPServer):
    """Serves `site` at a port of localhost."""

    daemon_threads = True
    request_queue_size = 256  # browsers that wait; the base class lets 5

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__(("localhost", port), Handler)
        self.names = {f"{name}:{self.server_port}" for name in ("localhost", "127.0.0.1", "[::1]")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(http.server.SimpleHTTPRequestHandler):
    """One question of a browser."""

    def __init__(self, request: Any, client: Any, server: Server) -> None:
        self.site, self.names = server.site, server.names
        super().__init__(request, client, server, directory=str(server.site.folder))

    def do_GET(self) -> None:
        """A page, made now if need be; or news. Only for those who asked this machine by its own name."""
        if (
            self.headers.get("Host") not in self.names
        ):  # another site, whose name leads here, would read along
            self._send(b"this preview answers to localhost alone\n", "text/plain", 403)
            return
        path = unquote(urlsplit(self.path).path)
        if news := NEWS.fullmatch(path):
            self._send(str(self.site.wait(int(news[1]))).encode(), "text/plain")
            return
        if path == SCRIPT_AT:
            self._send(SCRIPT.encode(), "text/javascript")
            return
        epoch = self.site.epoch
        try:
            late = self.site.make(
                path if path.endswith("/") or "." in path.rpartition("/")[2] else f"{path}/"
            )
        except (Exception, SystemExit) as error:
            log.exception("%s cannot be made", path)
            self._page(f"<body><pre>{html.escape(str(error))}</pre></body>".encode(), epoch, 500)
            return
        if late:
            self._page(f"<body><p>{html.escape(late)}</p></body>".encode(), epoch, 503)
            return
        file = Path(self.translate_path(self.path))
        if file.is_dir() and not path.endswith("/"):
            super().do_GET()  # it redirects
            return
        file = file / "index.html" if file.is_dir() else file
        if file.suffix == ".html" or not file.is_file():
            missing = not file.is_file()
            file = self.site.folder / "404.html" if missing else file
            content = file.read_bytes() if file.is_file() else b"<body><p>There is no such page.</p></body>"
            self._page(content, epoch, 404 if missing else 200)
            return
        self._send(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream")

    def do_HEAD(self) -> None:
        """As GET, which few ask otherwise."""
        self.do_GET()

    def _page(self, content: bytes, epoch: int, status: int) -> None:
        text = content.decode("utf-8", "replace")
        head, body, rest = text.partition("<body")
        attributes, end, rest = rest.partition(">")
        text = "".join([head, body, attributes, end, self.site.banner() if end else "", rest])
        before, end, after = text.rpartition("</body>")
        script = f'<script src="{SCRIPT_AT}" data-epoch="{epoch}"></script>'
        text = f"{before or after}{script}{end}{after if end else ''}"
        self._send(text.encode(), "text/html; charset=utf-8", status)

    def _send(self, content: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the base class's name
        """Nothing: a request is no news."""
