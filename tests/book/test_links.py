"""Every address in the built site that does not leave it leads somewhere, wherever the site is put."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.running import searched

# Attributes that hold an address, or, in `srcset`, several.
ADDRESSES = (
    "href",
    "src",
    "srcset",
    "poster",
    "data",
    "action",
    "formaction",
    "xlink:href",
    "cite",
    "background",
)
ELSEWHERE = ("http", "https", "mailto", "data")


@dataclass
class Page(HTMLParser):
    """What a page links to, with the line, and what can be linked to on it."""

    text: str
    ids: list[str] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.append(value or "")
            elif name == "srcset":
                self.links += [(self.getpos()[0], part.split()[0]) for part in (value or "").split(",")]
            elif name in ADDRESSES and not (tag == "object" and name != "data"):
                self.links.append((self.getpos()[0], value or ""))
            elif name == "style":
                self.links += [(self.getpos()[0], address) for address in in_style(value or "")]


def in_style(text: str) -> Iterator[str]:
    """The addresses of a style sheet."""
    for match in re.finditer(
        r"url\(\s*(?:\"([^\"]*)\"|'([^']*)'|([^)\"']*))\s*\)|@import\s+[\"']([^\"']+)", text
    ):
        yield next(group for group in match.groups() if group is not None).strip()


def broken(site: Path) -> list[str]:
    """`page:line -> address: why`, for every address that leads nowhere or only from the top of a host."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for line, address in page.links:
            if why := _wrong(site, file, address, pages):
                found.append(f"{file.relative_to(site)}:{line} -> {address}: {why}")
    for file in sorted(site.rglob("*.css")):
        found += [
            f"{file.relative_to(site)} -> {address}: {why}"
            for address in in_style(file.read_text(encoding="utf-8"))
            if (why := _wrong(site, file, address, pages))
        ]
    return found


def _wrong(site: Path, file: Path, address: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme in ELSEWHERE:
        return ""
    if parts.scheme or parts.netloc:
        return "neither a page of the site nor an address on the web"
    start = file.parent
    if parts.path.startswith("/"):
        if file != site / "404.html":  # it is served for any address, so its own must start at the top
            return "it breaks where the site is not at the top of a host"
        start = site
    target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else file
    if not target.is_relative_to(site.resolve()):
        return "it leaves the site"
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "there is no such file"
    if parts.path and parts.path.endswith("/") and target.name != "index.html":
        return "a file is no folder"
    if (
        parts.fragment
        and target in pages
        and unquote(parts.fragment) not in (*pages[target].ids, "__top", "top")
    ):
        return "there is no such place on that page"
    return ""


def test_no_address_of_the_built_site_leads_nowhere(site: Path) -> None:
    assert len(list((site / "lectures").glob("*/notebooks/*.ipynb"))) >= 18
    assert broken(site.resolve()) == []


def test_what_the_search_finds_is_there(site: Path) -> None:
    pages = {f: Page(f.read_text(encoding="utf-8")) for f in site.resolve().rglob("*.html")}
    found = list(searched(site))
    assert found
    assert [at for at in found if _wrong(site.resolve(), site.resolve() / "index.html", at, pages)] == []


# ------------------------------------------------------------------------------- the test can fail


@pytest.mark.parametrize(
    ("html", "why"),
    [
        ('<a href="b/#here">x</a>', ""),
        ('<a href="b/index.html">x</a>', ""),
        ('<a href="#me">x</a><p id="me">', ""),
        ('<a href="https://example.org/none">x</a><a href="mailto:a@example.org">x</a>', ""),
        ('<img src="data:image/png;base64,AA==">', ""),
        ('<a href="b/#there">x</a>', "there is no such place on that page"),
        ('<a href="c/">x</a>', "there is no such file"),
        ('<img srcset="b/p.svg 1x, b/q.svg 2x">', "there is no such file"),
        ('<script src="/b/p.js"></script>', "it breaks where the site is not at the top of a host"),
        ('<a href="../outside">x</a>', "it leaves the site"),
        ('<a href="javascript:alert(1)">x</a>', "neither a page of the site nor an address on the web"),
        ('<img src="//example.org/p.png">', "neither a page of the site nor an address on the web"),
        ("<p style=\"background: url('none.png')\">", "there is no such file"),
        ('<a href="b/p%20q.txt">x</a>', ""),
    ],
)
def test_a_broken_address_is_found(tmp_path: Path, html: str, why: str) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<p id="here">')
    (tmp_path / "b" / "p.svg").write_text("<svg/>")
    (tmp_path / "b" / "p q.txt").write_text("")
    (tmp_path / "index.html").write_text(html)
    found = broken(tmp_path)
    assert [line.rpartition(": ")[2] for line in found] == ([why] if why else [])
    assert all(line.startswith("index.html:1 -> ") for line in found)


def test_style_sheets_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'none.css'; p { background: url(x.png) }")
    assert broken(tmp_path) == [
        "a.css -> none.css: there is no such file",
        "a.css -> x.png: there is no such file",
    ]


def test_no_page_has_a_link_whose_address_is_an_example(site: Path) -> None:
    """A rule's text that shows a tag shows it as text; a printed book stopped at such a link."""
    links = {
        (str(page.relative_to(site)), link)
        for page in site.rglob("index.html")
        for link in re.findall(r'href="(https?://[^"]*…[^"]*)"', page.read_text(encoding="utf-8"))
    }
    assert links == set()
