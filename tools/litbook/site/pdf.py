"""A book as one PDF: the pages of its site, gathered and printed by the browser that is there.

In goes a site that was built, out comes a file: a title, the contents with the numbers of pages, every page
of the build's own navigation, of which a theme may show a part. The browser puts the pages together
(`print/book.js`), and prints twice: where things begin is read from the first print, and stands in the second
one's contents.
"""

from __future__ import annotations

import http.server
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.utils.yaml import yaml_load
from pypdf import PdfReader

from litbook.errors import LitbookError
from litbook.files import NotWritten, replace_whole
from litbook.i18n import _
from litbook.site.pages import PLACE as PAGES

HERE = Path(__file__).resolve().parent / "print"
PLACE = "litbook-print"  # in the site, while it is printed
LEAVES = ("/lectures/ledger/",)  # long tables, which a site filters and paper does not
END = "lbp-end"  # what stands last, if the browser has come to the end
BROWSERS = "chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge".split()
ON_MACOS = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
OPTIONS = (
    "--headless --disable-gpu --no-first-run --no-pdf-header-footer --generate-pdf-document-outline "
    "--virtual-time-budget=600000"
)
LONGEST = 600.0  # seconds for one print


class NoBrowser(LitbookError):
    """There is no browser that could print."""

    slug = "no-browser"


def browser(named: str = "") -> str:
    """The browser that prints: the one that is named, or the first Chromium that is here."""
    programs = [*filter(None, map(shutil.which, [named] if named else [*BROWSERS, ON_MACOS]))]
    if not programs:
        what = f"--browser {named}: there is no such program" if named else "no Chromium or Chrome is here"
        raise NoBrowser(
            f"litbook pdf prints with Chromium or Chrome, and {what}\n"
            "    install one, or name one: --browser /path/to/chrome"
        )
    return programs[0]


def title_and_address(config: Path) -> tuple[str, str]:
    """The title of a site, and its address, "" where `mkdocs.yml` does not say it."""
    with config.open(encoding="utf-8") as file:
        settings = yaml_load(file)
    return str(settings.get("site_name") or ""), str(settings.get("site_url") or "")


def menu(built: Path, lectures: Sequence[str]) -> list[str]:
    """The paths of the pages to print, as a build has left its navigation in the file `built`.

    Raises `LitbookError` where no page of a lecture is among them.
    """
    pages = json.loads(built.read_text(encoding="utf-8"))
    paths = dict.fromkeys(["/", *(f"/{page}" for page in pages)])
    for name in lectures:
        if not any(re.match(rf"/{PAGES}/{re.escape(name)}(/|\.html$|$)", path) for path in paths):
            what = f"{name} is in no menu of the site, and would be missing on paper"
            raise LitbookError(f"{what}\n    let `nav` in mkdocs.yml have an entry for the lectures")
    return [path for path in paths if not path.startswith(LEAVES)]


def write(
    site: Path,
    file: Path,
    program: str,
    title: str,
    pages: Sequence[str],
    *,
    asides: str = "open",
    address: str = "",
) -> int:
    """Print the `pages` of the site as `file`; the number of its pages. `asides` are "open" or "out".

    `address` is where the site is, to which links lead that lead to no page of the book. Raises
    `LitbookError` where the browser prints no whole book, and `NotWritten`.
    """
    shutil.copytree(HERE, site / PLACE, dirs_exist_ok=True)
    choices: dict[str, Any] = {"title": title, "contents": _("Contents"), "asides": asides, "menu": [*pages]}
    choices |= {"site": address, "pages": {}}
    handler = partial(_QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for _again in range(2):
                (site / PLACE / "choices.json").write_text(json.dumps(choices), encoding="utf-8")
                content = _print_page(program, f"http://127.0.0.1:{server.server_port}/{PLACE}/book.html")
                reader = PdfReader(io.BytesIO(content))
                choices["pages"] = {
                    name.removeprefix("/"): (reader.get_destination_page_number(place) or 0) + 1
                    for name, place in reader.named_destinations.items()
                }
                if END not in choices["pages"]:
                    what = f"{program} printed {len(reader.pages)} pages, and not to the end of the book"
                    way_out = "see what it says of a page: litbook serve, and print that in the browser"
                    raise LitbookError(f"{what}\n    {way_out}")
        finally:
            server.shutdown()
    try:
        replace_whole(file, content)
    except OSError as error:
        raise NotWritten(file, error) from None
    return len(reader.pages)


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _print_page(program: str, address: str) -> bytes:
    """What the browser prints of a page, as PDF."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "book.pdf"
        command = [program, *OPTIONS.split(), f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # it refuses to run as root otherwise
        command.append(address)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=LONGEST, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            what = f"{program} does not print: {error}"
            raise LitbookError(f"{what}\n    name another: --browser PATH") from None
        if not made.is_file():
            last = "\n    ".join(done.stderr.strip().splitlines()[-3:])
            raise LitbookError(f"{program} printed nothing; it ended with {done.returncode}\n    {last}")
        return made.read_bytes()
