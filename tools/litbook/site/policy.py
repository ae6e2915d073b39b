"""The Content-Security-Policy of every page: it runs and loads what the site ships and an author lets in.

It stands in the page, so that it also holds on a host that sets no headers. A script in a page is allowed by
its hash, and only one that the theme's templates write, unless the author lets in all that pages hold. What a
page would load and its policy blocks is told, with the way to let it in.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from litbook.html import elements

_SCRIPT = re.compile(r"<script(?: id=\"\w+\")?>(.*?)</script>", re.DOTALL)
_HOLE = re.compile(r"\{\{.*?\}\}")
# A browser looks for the charset in the first kilobyte.
_HEAD = re.compile(r"<head>(?:\s*<meta charset=[^<>]*>)?")
HOST = re.compile(r"(https?://)?(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d+)?")
INLINE = "inline"  # among `scripts`: those that stand in a page, whoever wrote them
MERMAID = "unpkg.com"  # where Material loads Mermaid from, for a page with a diagram and without Mermaid
# What stands in a page -> what it is called, the attributes with an address, and the option that lets it in.
_LOADS = {
    "iframe": ("frame", ("src",), "embed"),
    "video": ("video", ("src", "poster"), "embed"),
    "audio": ("sound", ("src",), "embed"),
    "source": ("video, sound or picture", ("src",), "embed"),
    "track": ("text track", ("src",), "embed"),
    "img": ("picture", ("src",), "embed"),
    "script": ("script", ("src",), "scripts"),
}


class Policy(Struct, frozen=True):
    """What an author lets in: hosts of frames, pictures and films; hosts of scripts with what they load."""

    embed: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    off: bool = False

    def rules(self, page: str, ours: re.Pattern[str]) -> str:
        """The policy of one page; `ours` are the scripts that the theme writes."""
        inline = INLINE in self.scripts
        theme = {text for text in _SCRIPT.findall(page) if ours.fullmatch(text)}
        hashes, handlers = _hashes(theme), ""
        if inline:
            held = _Held(page)
            hashes += _hashes(held.scripts - theme)
            handlers = " 'unsafe-hashes'" + _hashes(held.handlers) if held.handlers else ""
        style = " 'unsafe-inline'" * bool(self.scripts)  # what a script or a plugin draws brings its own
        loaded = _sources(host for host in self.scripts if host != INLINE)
        shown = _sources(self.embed) + loaded
        return "; ".join(
            [
                "default-src 'none'",
                f"script-src 'self'{hashes}{handlers}{loaded}",
                f"style-src 'self'{style}{loaded}",
                "style-src-attr 'unsafe-inline'",  # shades of cells, alignment of columns, Matplotlib's SVG
                f"img-src 'self' data:{shown}",  # the theme's icons are data
                f"media-src 'self'{shown}",
                f"frame-src 'self'{shown}",
                f"font-src 'self'{loaded}",
                f"connect-src 'self'{loaded}",  # the search's index, the player's steps
                "worker-src 'self'",  # the search
                "base-uri 'none'",
                "form-action 'none'",
            ]
        )

    def guarded(self, page: str, ours: re.Pattern[str]) -> str:
        """The page with its policy, before anything that it could hold."""
        if self.off:
            return page
        policy = elements.opening(
            "meta", http_equiv="Content-Security-Policy", content=self.rules(page, ours)
        )
        return _HEAD.sub(lambda head: f"{head[0]}\n      {policy}", page, count=1)

    def blocks(self, page: str, ours: re.Pattern[str]) -> list[str]:
        """What of a page its policy blocks, each with the line of `mkdocs.yml` that lets it in."""
        if self.off:
            return []
        held = _Held(page)
        loads = [*held.loads]
        if held.mermaid and not any("mermaid" in address for *_, address in held.loads if address):
            loads.append(("a Mermaid diagram, whose script Material loads", "scripts", f"https://{MERMAID}/"))
        blocked = []
        for what, option, address in loads:
            scheme, host, *_ = urlsplit(address, "https")
            if host and not self._lets(option, address):
                plain = host.removeprefix("www.") if scheme == "https" else f"{scheme}://{host}"
                blocked.append(f"{what} from {host}\n    let it in: {_line(option, plain)}")
        inline = INLINE in self.scripts
        theirs = any(not ours.fullmatch(text) for text in held.scripts)
        for is_blocked, what, let in (
            (theirs and not inline, "a script that stands in the page", "run"),
            (held.handlers and not inline, "an attribute that runs a script", "run"),
            (held.styles and not self.scripts, "a style that stands in the page", "in"),
            (held.mermaid and not self.scripts, "what Mermaid draws, which brings its style along", "in"),
        ):
            if is_blocked:
                blocked.append(f"{what}\n    let it {let}: {_line('scripts', INLINE)}")
        if held.objects:
            blocked.append("an <object> or <embed>\n    use an <iframe>, or below litbook: `policy: off`")
        return list(dict.fromkeys(blocked))

    def _lets(self, option: str, address: str) -> bool:
        """Whether something from that address may come by that option; what scripts may load may be shown."""
        hosts = (*self.scripts, *(self.embed if option == "embed" else ()))
        parts = urlsplit(address, "https")
        for given in hosts:
            scheme, _, host = given.rpartition("://")
            host = host.removeprefix("*.")
            same = parts.netloc == host or parts.netloc.endswith(f".{host}")
            if same and (not scheme or scheme == parts.scheme):
                return True
        return False


def _line(option: str, value: str) -> str:
    return f"`{option}: [{value}]` below litbook, in mkdocs.yml; or `policy: off`"


def _sources(hosts: Iterable[str]) -> str:
    """Hosts as a policy names them, each with those below it."""
    parts = []
    for given in hosts:
        scheme, there, host = given.rpartition("://")
        at = f"{scheme}{there}" if scheme else "https://"
        host = host.removeprefix("*.")
        below = "" if re.fullmatch(r"localhost(:\d+)?|[\d.]+(:\d+)?", host) else f" {at}*.{host}"
        parts.append(f" {at}{host}{below}")
    return "".join(parts)


def _hashes(texts: Iterable[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in sorted(texts))
    return "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


class _Held(HTMLParser):
    """What a whole page holds that a policy decides about."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.loads: list[tuple[str, str, str]] = []  # what, the option that lets it in, its address
        self.scripts, self.handlers = set[str](), set[str]()
        self.styles = self.objects = self.mermaid = False
        self.script: list[str] | None = None  # of one that stands in the page, what it says
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        given = {name: value or "" for name, value in attrs}
        self.handlers |= {value for name, value in given.items() if name.startswith("on")}
        self.mermaid |= "mermaid" in given.get("class", "").split()
        self.objects |= tag in ("object", "embed")
        self.styles |= tag == "style"
        kind = given.get("type", "")
        code = kind in ("", "module", "text/javascript", "application/javascript", "importmap")
        self.script = [] if tag == "script" and code and "src" not in given else None
        if tag == "link" and "stylesheet" in given.get("rel", "").split():
            self.loads.append(("a style sheet", "scripts", given.get("href", "")))
        what, names, option = _LOADS.get(tag, ("", (), ""))
        self.loads += [(f"a {what}", option, given[name]) for name in names if given.get(name)]

    def handle_data(self, data: str) -> None:
        """What a script says, or some of it."""
        if self.script is not None:
            self.script.append(data)

    def handle_endtag(self, tag: str) -> None:
        """The end of a script."""
        if tag == "script" and self.script is not None:
            self.scripts |= {text for text in ["".join(self.script)] if text.strip()}
            self.script = None


def scripts(folders: Iterable[str]) -> re.Pattern[str]:
    """What the templates in the theme's folders write as scripts; holes take an address of this site."""
    files = sorted(file for folder in folders for file in Path(folder).rglob("*.html"))
    texts = {text for file in files for text in _SCRIPT.findall(file.read_text(encoding="utf-8"))}
    return re.compile("|".join(r"[\w./-]*".join(map(re.escape, _HOLE.split(text))) for text in sorted(texts)))
