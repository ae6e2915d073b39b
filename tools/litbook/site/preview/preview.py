"""The preview: what is saved runs, and the browser shows the page that it is at.

`watch` sees saved files and lets saves that follow each other settle. `worker` runs the lectures that they
concern, each from top to bottom in a process of its own, and beside it the part alone whose page a reader has
asked for, so that this page is there before the whole is. `render` makes a page when a browser asks `server`
for it, of the newest runs that `drafts` holds. From a save to the new page every page of that lecture says
that it is running, and of which run is what stands there.
"""

from __future__ import annotations

import gc
import logging
import signal
import threading
import time
import webbrowser
from pathlib import Path

from litbook.rules.outcome import harmless
from litbook.run.process import ForkServerRunner, private_folder
from litbook.site.preview import watch
from litbook.site.preview.drafts import Drafts
from litbook.site.preview.render import Renderer
from litbook.site.preview.server import ANY_HOST, NewsChannel, Server
from litbook.site.preview.worker import Worker

TIDY = 5.0  # seconds without a save, then garbage is collected
POLL = 25.0  # seconds that a browser's question for news is held

log = logging.getLogger("litbook.site.preview")


def serve(
    config_file: Path, at: tuple[str, int], warm: ForkServerRunner, timeout: float, *, opens: bool = False
) -> int:
    """Serve the site of `config_file` at a host and port until Ctrl-C; a lecture may take `timeout` seconds.

    With `opens` a browser shows it once it is there.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # else it tells of each save
    for ending in (signal.SIGINT, signal.SIGTERM):  # what a script starts with `&` inherits SIGINT as ignored
        signal.signal(ending, signal.default_int_handler)
    host, port = at
    shown = "localhost" if host in ANY_HOST else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    with private_folder() as folder:
        (folder / "site").mkdir()
        renderer = Renderer(config_file, folder / "site", address, Drafts(NewsChannel(POLL)))
        try:
            server = Server(renderer, at)
        except OSError as error:
            other = port + 1 if port < 65535 else port - 1
            way_out = f"another port: litbook serve --port {other}"
            log.error("cannot listen on %s: %s\n    %s", address, error.strerror, way_out)
            return 2
        worker = Worker(renderer, warm, timeout)

        def begin() -> None:
            renderer.refresh()
            log.info("serving on %s   (Ctrl-C ends it)", address)
            if opens:
                webbrowser.open(address)
            server.serve_forever()

        gc.disable()  # amid a page it takes as long as half the page; `_act` does it between saves
        try:
            worker.take_changes(set(renderer.project.lectures()))
            threading.Thread(target=begin, daemon=True).start()  # what is saved meanwhile is seen below
            _act(worker)
        except KeyboardInterrupt:
            log.info("done")
        finally:
            warm.end()
            server.server_close()
        return 0


def _act(worker: Worker) -> None:
    """Act on what is saved, when it has settled; forever."""
    paths, last, untidy = set[Path](), time.monotonic(), True
    for saved in watch.saves(worker.renderer.project):
        paths |= saved
        if paths:
            try:
                worker.take_changes(paths)
            except OSError as error:  # too many open files, a folder that goes while it is read: once more
                log.error("%s", harmless(str(error)))
                continue
            paths, last, untidy = set(), time.monotonic(), True
        elif untidy and not worker.drafts.todo and time.monotonic() - last > TIDY:
            gc.collect()  # now, when nobody waits; see `serve`
            untidy = False
