"""What authors let in: each page's policy allows it, and a build says what is still blocked, and where."""

from __future__ import annotations

import html
import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.running import LITBOOK, section, write

from litbook.site.plugin import Comments
from litbook.site.policy import Policy

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NOTHING = re.compile("(?!)")
HEADED = "<html><head><meta charset='utf-8'></head><body>{}</body></html>"


def blocked(html: str, policy: Policy = Policy()) -> list[str]:  # noqa: B008  (it is frozen)
    return [text.partition("\n")[0] for text in policy.blocks(HEADED.format(html), NOTHING)]


@pytest.mark.parametrize(
    ("html", "what", "opened"),
    [
        ('<iframe src="https://www.youtube.com/embed/x"></iframe>', "a frame from www.youtube.com", Policy(("youtube.com",))),
        ('<img src="//img.example.org/x.png">', "a picture from img.example.org", Policy(("example.org",))),
        ('<video src="https://example.org/x.mp4"></video>', "a video from example.org", Policy(("example.org",))),
        ('<script src="https://cdn.example.org/mathjax.js"></script>', "a script from cdn.example.org", Policy((), ("cdn.example.org",))),
        ('<script src="https://giscus.app/client.js"></script>', "a script from giscus.app", Policy((), ("giscus.app",))),
        ("<script>lightbox()</script>", "a script that stands in the page", Policy((), ("inline",))),
        ('<button onclick="go()">Go</button>', "an attribute that runs a script", Policy((), ("inline",))),
        ("<style>p { color: red }</style>", "a style that stands in the page", Policy((), ("inline",))),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "a style sheet from example.org", Policy((), ("example.org",))),
        ('<object data="x.pdf"></object>', "an <object> or <embed>", Policy(off=True)),
    ],
)  # fmt: skip
def test_what_is_blocked_is_named_until_it_is_let_in(html: str, what: str, opened: Policy) -> None:
    assert blocked(html) == [what]
    assert blocked(html, opened) == []


def test_what_the_site_has_itself_is_not_blocked() -> None:
    held = '<video controls src="film.mp4"></video><iframe src="demo.html"></iframe><img src="a.png"><script src="a.js"></script>'
    assert (
        blocked(held + '<script type="application/json">{}</script><a href="https://example.org">there</a>')
        == []
    )
    rules = Policy().rules(HEADED.format(held), NOTHING)
    assert "media-src 'self'; frame-src 'self';" in rules and "style-src 'self';" in rules


def test_a_host_let_in_stands_in_the_policy_with_those_below_it() -> None:
    rules = Policy(("youtube.com",), ("http://localhost:81",)).rules(HEADED.format(""), NOTHING)
    assert "frame-src 'self' https://youtube.com https://*.youtube.com http://localhost:81;" in rules
    assert "script-src 'self' http://localhost:81;" in rules
    assert Policy(off=True).guarded(HEADED.format(""), NOTHING) == HEADED.format("")


def test_mermaid_needs_its_script_and_its_style() -> None:
    diagram = '<pre class="mermaid"><code>graph LR</code></pre>'
    assert blocked(diagram) == [
        "a Mermaid diagram, whose script Material loads from unpkg.com",
        "what Mermaid draws, which brings its style along",
    ]
    assert blocked(diagram, Policy((), ("unpkg.com",))) == []
    assert blocked(diagram + '<script src="js/mermaid.min.js"></script>', Policy((), ("inline",))) == []


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Another site: a page, and a script that says that it ran."""

    def do_GET(self) -> None:
        kind = "text/javascript" if self.path.endswith(".js") else "text/html"
        text = "document.title = 'it ran'" if self.path.endswith(".js") else "<p id='film'>a film</p>"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("localhost", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def built(folder: Path, options: str, page: str) -> subprocess.CompletedProcess[str]:
    for name in ("docs", "lectures"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "mkdocs.yml").write_text(
        f"site_name: A book\ntheme: {{name: material}}\nplugins: [search, litbook: {{{options}}}]\n"
    )
    (folder / "docs" / "index.md").write_text(page)
    write(folder / "lectures", section("x = 2\nassert x + x == 4"), "lecture_01.py")
    return subprocess.run([*LITBOOK, "build"], cwd=folder, capture_output=True, text=True, check=False)


def test_a_strict_build_names_the_page_and_the_way_and_then_a_browser_loads_it(
    tmp_path: Path, browser: Browser, elsewhere: str
) -> None:
    page = f"""# Start

<iframe src="{elsewhere}/film"></iframe>
<script src="{elsewhere}/run.js"></script>
<script>document.body.dataset.inline = "ran"</script>

!!! note "Mind"
    An admonition.

??? tip "Folded"
    More.
"""
    done = built(tmp_path, "", page)
    host = elsewhere.removeprefix("http://")
    assert done.returncode == 1
    assert f"index.md: the policy of pages blocks a frame from {host}" in done.stderr
    assert f"`embed: [{elsewhere}]` below litbook, in mkdocs.yml; or `policy: off`" in done.stderr
    assert f"index.md: the policy of pages blocks a script from {host}" in done.stderr
    assert done.stdout.strip().startswith("3 problems")
    for options in (f"embed: [{elsewhere!r}], scripts: [{elsewhere!r}, inline]", "policy: off"):
        assert (done := built(tmp_path, options, page)).returncode == 0, done.stderr
        shown = browser.new_page()
        shown.goto((tmp_path / "site" / "index.html").as_uri())
        assert shown.frame_locator("article iframe").locator("#film").inner_text() == "a film"
        assert shown.title() == "it ran"
        assert shown.evaluate("document.body.dataset.inline") == "ran"
        assert shown.locator(".admonition").is_visible() and shown.locator("details.tip").is_visible()
        shown.close()


def test_what_is_no_host_is_refused(tmp_path: Path) -> None:
    done = built(tmp_path, "embed: ['https://youtube.com/embed/x']", "# Start\n")
    assert done.returncode == 1
    assert (
        "'https://youtube.com/embed/x' is no host; write its name alone, such as youtube.com" in done.stderr
    )


GISCUS = "{repo: a/b, repo_id: R_1, category: Talk, category_id: C_1}"


@pytest.mark.parametrize(
    "given", ["{repo: a/b}", GISCUS.replace("a/b", "b"), GISCUS.replace("repo_id", "repoid")]
)
def test_comments_that_giscus_does_not_know_are_refused_with_what_it_gives(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(
        Exception, match=r"is not what https://giscus[.]app gives: repo, repo_id, category, category_id"
    ):
        Comments().run_validation(yaml.safe_load(given))


@pytest.mark.slow
def test_comments_stand_below_the_pages_of_lectures_and_the_policy_lets_them_in(tmp_path: Path) -> None:
    subprocess.run([*LITBOOK, "new", str(tmp_path / "book")], check=True, capture_output=True)
    config = tmp_path / "book" / "mkdocs.yml"
    config.write_text(
        f"site_name: A book\ntheme: {{name: material}}\nplugins:\n  - litbook: {{comments: {GISCUS}}}\n"
    )
    done = subprocess.run([*LITBOOK, "build"], cwd=config.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lectures = config.parent / "site" / "lectures"
    page = (lectures / "lecture_01" / "index.html").read_text()
    [script] = re.findall(r"<script[^>]*giscus[^>]*></script>", page)
    assert (
        'data-repo="a/b"' in script
        and 'data-category-id="C_1"' in script
        and 'data-mapping="pathname"' in script
    )
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)', page)[0])
    assert "https://giscus.app" in policy.partition("script-src")[2].partition(";")[0]
    assert "giscus.app/client.js" not in (lectures / "ledger" / "index.html").read_text()
    assert "giscus.app/client.js" not in (config.parent / "site" / "index.html").read_text()
