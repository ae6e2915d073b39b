"""A film beside the lecture: a browser plays it with its captions; where it cannot play, its words are read."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.running import LITBOOK, REPO, section, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TRACK = (
    "WEBVTT\n\n00:00.000 --> 00:01.000\nA ball rolls.\n\n00:01.000 --> 00:02.000\n<v Ada>Still it rolls.\n"
)
BODY = 'video("ball.webm", captions="ball.vtt", alt="A ball goes right.", caption="A ball", width=400)'


def test_a_film_plays_with_its_captions_and_is_read_where_it_cannot(tmp_path: Path, browser: Browser) -> None:
    book = tmp_path / "book"
    for name in ("docs", "lectures"):
        (book / name).mkdir(parents=True)
    (book / "docs" / "index.md").write_text("# Start\n")
    (book / "mkdocs.yml").write_text(
        "site_name: A book\ntheme: {name: material}\nplugins: [search, litbook]\n"
    )
    write(book / "lectures", section(BODY), "lecture_01.py")
    shutil.copyfile(REPO / "tests" / "samples" / "ball.webm", book / "lectures" / "ball.webm")
    (book / "lectures" / "ball.vtt").write_text(TRACK)
    done = subprocess.run([*LITBOOK, "build"], cwd=book, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lecture = book / "site" / "lectures" / "lecture_01"

    class Quiet(http.server.SimpleHTTPRequestHandler):
        """The site, without a line for each request."""

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=book / "site")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shown, errors = browser.new_page(), list[str]()
        shown.on("console", lambda told: errors.append(told.text) if told.type == "error" else None)
        shown.goto(f"http://localhost:{server.server_port}/lectures/lecture_01/")
        shown.wait_for_function("document.querySelector('video').readyState > 0")
        shown.wait_for_function("document.querySelector('track').readyState == 2")
        cues = shown.evaluate("[...document.querySelector('video').textTracks[0].cues].map(cue => cue.text)")
        assert cues == ["A ball rolls.", "<v Ada>Still it rolls."]
        assert shown.locator("video").bounding_box()["width"] == 400  # type: ignore[index]
        shown.get_by_text("What is said").click()
        assert shown.get_by_text("Ada: Still it rolls.").is_visible()
        shown.set_viewport_size({"width": 390, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert errors == []
        shown.close()
        server.shutdown()
    cells = json.loads((lecture / "notebooks" / "index.ipynb").read_text())["cells"]
    (cell,) = ("".join(it["source"]) for it in cells if "".join(it["source"]).startswith("*Video:"))
    assert cell.startswith("*Video: A ball goes right.*\n\n*A ball*\n\n<details>")
    assert "A ball rolls.<br>Ada: Still it rolls." in cell
    pages = subprocess.run(
        [*LITBOOK, "pages", "../plain"], cwd=book, capture_output=True, text=True, check=False
    )
    assert pages.returncode == 0, pages.stdout
    kept = {file.suffix: file for file in (tmp_path / "plain").rglob("pictures/*")}
    assert kept[".vtt"].read_text() == TRACK and kept[".webm"].stat().st_size > 4000
    said = subprocess.run(
        [*LITBOOK, "run", "lecture_01"], cwd=book, capture_output=True, text=True, check=False
    )
    assert "[video: A ball]\n        A ball rolls.\n        Ada: Still it rolls.\n" in said.stdout
