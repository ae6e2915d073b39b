"""edtrace's words, and lectrace's, said in litbook's: a lecture that is written for either runs unchanged.

    litbook run --words edtrace FILE       (or lectrace) the lecture imports these words under their names
    plugins: [litbook: {words: edtrace}]   every lecture of the book does
    from litbook.edtrace.words import …   for who ports

| theirs | here |
|---|---|
| `text("…")` | `note("…")` |
| `<b>`, `<br>`, `<img src="…">` in it | the same in Markdown; other tags are left out, colours too |
| `text("…", verbatim=True)`, `language="c"`, `system_text(["date"])` | a note of one block of code |
| `table(rows, headers)` | a note of one table |
| `note("…")` | `speaker_note("…")` |
| `image("images/a.png")` | `image()`, with the file's name as `alt` |
| `image("https://…")` | its copy in `var/files` beside the lecture; else an error that says how to get it |
| `download_file(url, file)`, `cached(url, "x")` | the file beside the lecture, else such an error |
| `video(…)` | a link; of a file beside the lecture its name |
| `link("https://…")`, `link(title=…, url=…)`, `link(Reference(…))` | `link()`, with title, authors and year |
| `link(function)` | `link()`; of what is not the lecture's own its name |
| `graph(make_graph(nodes, edges))` | a note with its edges |
| `plot(spec)` | `figure()`, where Altair can draw the Vega-Lite; else its data |
| `width=600` | the same; `style=`, and a width in other units, are let be: the page has one style |
| `# @inspect` alone | the same: what the line assigns; of a function its parameters |
| `# @inspect x`, `@clear`, `@hide`, `@stepover` | the same |
| `# @invisible`, `# @animate` | `@hide`; nothing: a page shows all at once |
| `__lectrace__()` of a class | the same: what it returns is shown in the object's place |
| `sys.gettrace()` | true in the lecture and beside it; in new code ask `litbook.recording()` |
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import html.parser
import importlib
import inspect
import io
import json
import os
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from litbook.edtrace import markup
from litbook.errors import AuthorError
from litbook.probe import author, recorder
from litbook.record.limits import OUTPUT
from litbook.record.model import PICTURES

__all__ = ["Reference", "arxiv_reference", "cached", "download_file", "graph", "image", "is_arxiv_link",
           "join", "link", "make_graph", "note", "plot", "relativize", "system_text", "table", "text",
           "url_reference", "video"]  # fmt: skip

NAMES = {  # what lectures import: edtrace began as two files beside the lectures
    "edtrace": ("edtrace", "edtrace.execute_util", "edtrace.reference", "edtrace.arxiv_util",
                "edtrace.file_util", "execute_util", "arxiv_util"),
    "lectrace": ("lectrace", "lectrace.reference", "lectrace.renderings"),
}  # fmt: skip
ROWS = 5  # of a long table, how many of its beginning and of its end are shown
# A folder for pictures under names that say what they are; it ends with the process.
_links = functools.cache(tempfile.TemporaryDirectory[str])
MOST_BYTES = 4 * OUTPUT  # that a command may print: a character has at most four
LONGEST_PLOT = 4000  # characters of a plot that is shown as its data
_lecture: Path | None = None  # the one that runs here, under these words


@contextlib.contextmanager
def install_words(words: str, lecture: Path) -> Iterator[None]:
    """While it runs, `lecture` imports this module under the names that `words` has; "" changes nothing."""
    global _lecture  # a process runs one lecture
    modules, path, real = dict(sys.modules), _lecture, sys.gettrace

    def gettrace() -> Any:
        # What is beside the lecture is answered as edtrace's own tracing would, by a function that sees no
        # line, and all others truly.
        inside = sys._getframe(1).f_code.co_filename.startswith(str(lecture.parent))
        return (lambda *_: None) if inside else real()

    if words:
        _lecture = lecture
        for name in NAMES[words]:
            sys.modules[name] = module = ModuleType(name)
            module.__dict__.update({word: globals()[word] for word in __all__})
            module.__path__ = []  # a package: what it lacks is named in the error
            above, _, last = name.rpartition(".")
            if above:
                setattr(sys.modules[above], last, module)
        sys.gettrace = gettrace
        recorder.PASSED_OVER.append(NameError)  # `@inspect` of a name that is not there yet shows nothing
    try:
        yield
    finally:
        if words:
            recorder.PASSED_OVER.remove(NameError)
        _lecture, sys.gettrace = path, real
        for name in NAMES.get(words, ()):
            del sys.modules[name]
            sys.modules.update({name: modules[name]} if name in modules else {})


# ---------------------------------------------------------------------------- prose


def text(message: str, style: object = None, verbatim: bool = False, language: str = "") -> None:  # noqa: ARG001  as theirs
    """Prose, as Markdown with HTML in it; what is `verbatim`, or code of a `language`, stays as it is."""
    if verbatim or language:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", message)), default=0))
        author.note(f"{fence}{language}\n{message.rstrip()}\n{fence}")
        return
    *above, last = markup.IMAGE.split(message)  # between two texts the address of a picture
    for before, address in zip(above[::2], above[1::2], strict=True):
        if before.strip():
            author.note(markup.as_markdown(before))
        image(address)
    if last.strip() or not above:
        author.note(markup.as_markdown(last))


def note(message: str) -> None:
    """What the speaker means to say: no reader sees it."""
    author.speaker_note(message)


def system_text(command: list[str], timeout: float = 60, language: str = "") -> None:
    """What a command prints, as a note of one block of code."""
    text(_output_of(command, timeout), verbatim=True, language=language)


def _output_of(command: Sequence[str], timeout: float) -> str:
    """What a command prints: at most `OUTPUT` characters, without colours. No shell reads it.

    Raises `AuthorError` for what is no list of texts, cannot be run, takes more than `timeout` seconds, or
    ends with another status than 0. A command that prints more than is shown is ended there.
    """
    if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
        raise AuthorError(f"system_text() takes a list, ['git', '--version'], not {command!r:.60}")
    shown = shlex.join(command)[:80]
    try:
        until, output, piece = time.monotonic() + timeout, b"", b"."
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=-1, stderr=subprocess.STDOUT
        ) as process:
            out = process.stdout
            while out and piece and len(output) <= MOST_BYTES:
                if not select.select([out], [], [], max(0.0, until - time.monotonic()))[0]:
                    break
                piece = os.read(out.fileno(), MOST_BYTES)
                output += piece
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0 if piece else max(0.0, until - time.monotonic()))
            status = process.poll()  # None where it took too long
            process.kill()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise AuthorError(f"system_text() cannot run {shown!r}: {why}") from None
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode(errors="replace"))
    if len(output) > MOST_BYTES:
        status = 0
    if status is None:
        raise AuthorError(f"system_text() waited {timeout:g} s for {shown!r}\nallow it more: timeout=60")
    if status:
        last = (text.strip().splitlines() or ["it printed nothing"])[-1]
        raise AuthorError(f"system_text(): {shown!r} ended with status {status}: {last[:200]}")
    return text if len(text) <= OUTPUT else f"{text[:OUTPUT]} …"


def table(
    rows: Any,
    headers: list[str] | None = None,
    caption: str = "",
    style: object = None,  # noqa: ARG001  as theirs
    head: int | None = None,
    tail: int | None = None,
) -> None:
    """A table of lists, of dicts, of a data frame or of an array; of many rows the first and last.

    Raises `AuthorError` where rows have no names for their columns.
    """
    listed = isinstance(rows, list)  # by hand: it is shown whole
    if hasattr(rows, "itertuples"):
        headers, rows = headers or [*map(str, rows.columns)], rows.to_dict("records")
    rows = rows.tolist() if hasattr(rows, "tolist") else [*rows]
    if rows and isinstance(rows[0], dict):
        headers = headers or [*dict.fromkeys(name for row in rows for name in row)]
        rows = [[row.get(name) for name in headers] for row in rows]
    if not headers:
        raise AuthorError("table() needs headers=: what the columns are called")
    every, given = len(rows), (head, tail) != (None, None)
    first, last = (head or 0, tail or 0) if given else (every if listed else ROWS, ROWS)
    if every > first + last:
        gap = [["…"] * len(headers)] * (bool(first) == bool(last))
        rows = [*rows[:first], *gap, *rows[every - last :]]
    lines = [headers, ["---"] * len(headers), *rows]
    cell = partial(re.sub, r"([|\\])", r"\\\1")
    drawn = ("| " + " | ".join(cell(" ".join(str(value).split())) for value in row) + " |" for row in lines)
    author.note("\n".join([f"*{caption}*\n"] * bool(caption) + [*drawn]))


def make_graph(nodes: list[dict[str, Any]], edges: list[dict[str, Any]], *_: object, **__: object) -> Any:
    """What `graph` shows; of a layout nothing is kept."""
    return {"nodes": nodes, "edges": edges}


def graph(spec: Any, style: object = None) -> None:  # noqa: ARG001  as theirs
    """The edges of a graph, a line each, and nodes that have none. Nothing for None."""
    if spec is None:
        return
    nodes = [node.get("data", node) for node in spec["nodes"]]
    edges = [edge.get("data", edge) for edge in spec["edges"]]
    names = {str(node["id"]): str(node.get("label", node["id"])) for node in nodes}
    ends = [(str(edge["source"]), str(edge["target"]), edge.get("label")) for edge in edges]
    lines = [f"- {names.get(a, a)} → {names.get(b, b)}{f': {text}' if text else ''}" for a, b, text in ends]
    alone = names.keys() - {end for edge in ends for end in edge[:2]}
    author.note("\n".join([*lines, *(f"- {names[name]}" for name in names if name in alone)]))


# ---------------------------------------------------------------------------- links


@dataclass(frozen=True)
class Reference:
    """A work that a lecture names."""

    title: str | None = None
    authors: list[str] | None = None
    organization: str | None = None
    date: str | None = None
    url: str | None = None
    description: str | None = None
    notes: str | None = None

    @property
    def label(self) -> str:
        """Its name within a sentence."""
        return f"[{_label(self)}]"


def join(*lines: str) -> str:
    """Notes on a work, one a line."""
    return "\n".join(lines)


def link(arg: object = None, style: object = None, **kwargs: Any) -> None:  # noqa: ARG001  as theirs
    """A link to an address, a work, or a function of the lecture. Raises `AuthorError` for anything else."""
    if arg is None or isinstance(arg, str):
        arg = Reference(**kwargs) if arg is None else url_reference(arg, **kwargs)
    if callable(arg):
        ours = False
        with contextlib.suppress(TypeError, OSError):
            ours = _lecture is None or Path(inspect.getfile(arg)) == _lecture
        if ours:
            author.link(arg)
        else:
            author.note(f"`{getattr(arg, '__name__', type(arg).__name__)}`")
    elif hasattr(arg, "url"):  # a lecture may have a class of its own
        url, label = str(arg.url or ""), _label(arg)
        if re.match(r"https?://\S+$", url):
            author.link(url, label)
        else:
            author.note(f"{label} (`{url}`)" if url and url != label else label)
    else:
        raise AuthorError(f"link() takes an address, a reference or a function, not {type(arg).__name__}")


def _label(reference: Any) -> str:
    """`A title (Author+ 2020)`, of as much as is known."""
    authors, date = getattr(reference, "authors", None) or [], getattr(reference, "date", None) or ""
    team = [name for name in authors[:1] if re.search(r"\bTeam\b", name)]
    first = team or [name.split()[-1] + "+" * (len(authors) > 1) for name in authors[:1]]
    names = " ".join([*first, date[:4]]).strip()
    title = str(getattr(reference, "title", None) or "").strip()
    return f"{title} ({names})" if title and names else title or names or str(reference.url or "")


def url_reference(url: str, **kwargs: Any) -> Reference:
    """The reference to an address; of arXiv with what is known of the paper."""
    return arxiv_reference(url, **kwargs) if is_arxiv_link(url) else Reference(url=url, **kwargs)


def is_arxiv_link(url: str) -> bool:
    """Whether the address is one of arXiv."""
    return url.startswith("https://arxiv.org/")


def arxiv_reference(url: str, **kwargs: Any) -> Reference:
    """The reference to a paper, with title, authors and date where edtrace has left them in its cache."""
    paper = re.search(r"arxiv\.org/\w+/([\w.-]+?)(v\d+)?(\.pdf)?$", url)
    number = paper[1] if paper else url
    facts: dict[str, Any] = {"title": f"arXiv:{number}", "url": url}
    with contextlib.suppress(AuthorError, OSError):  # the page of the paper, which edtrace keeps by now
        page, copy = _ArxivPage(), _place(cached(f"https://arxiv.org/abs/{number}", "arxiv"))
        page.feed(copy.read_text("utf-8").partition("</head>")[0])
        if page.facts["title"]:
            authors = [" ".join(reversed(name.split(", ", 1))) for name in page.facts["author"]]
            date = "".join(page.facts["date"][:1]).replace("/", "-")
            facts |= {"title": page.facts["title"][0], "authors": authors, "date": date}
            return Reference(**facts | kwargs)
    with contextlib.suppress(AuthorError, OSError, ET.ParseError):
        place = _place(cached(f"http://export.arxiv.org/api/query?id_list={number}", "arxiv"))
        entry, atom = ET.parse(place).getroot(), "{http://www.w3.org/2005/Atom}"
        told = {tag: entry.findtext(f"{atom}entry/{atom}{tag}") for tag in ("title", "published")}
        names = [element.text or "" for element in entry.iterfind(f"{atom}entry/{atom}author/{atom}name")]
        if told["title"]:
            facts |= {"title": " ".join(told["title"].split()), "authors": names, "date": told["published"]}
    return Reference(**facts | kwargs)


class _ArxivPage(html.parser.HTMLParser):
    """What an arXiv page says of its paper: all values of `citation_title`, `_author` and `_date`."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = defaultdict[str, list[str]](list)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """One tag of the page."""
        given = dict(attributes)
        front, _, name = (given.get("name") or "").partition("_")
        if tag == "meta" and front == "citation":
            self.facts[name].append(" ".join((given.get("content") or "").split()))


# ---------------------------------------------------------------------------- pictures


def image(url: str, style: object = None, width: object = None) -> None:  # noqa: ARG001  as theirs
    """A picture beside the lecture, or the local copy of one that is elsewhere; see `cached`."""
    alt = re.sub(r"[\W_]+", " ", Path(url.partition("?")[0]).stem).strip() or "a picture"
    place = _file("image", cached(url, "image") if _is_url(url) else url)
    content = place.read_bytes()
    kind = next((kind for kind, begins in PICTURES.items() if re.match(begins, content, re.DOTALL)), "")
    ending = f".{kind.partition('+')[0]}"
    if kind and place.suffix.lower().replace("jpg", "jpeg") != ending:  # a copy has none
        named = Path(_links().name) / f"{place.stem}{ending}"
        with contextlib.suppress(FileExistsError):
            named.symlink_to(place)
        place = named
    author.image(place, alt=alt, width=width if type(width) is int and width > 0 else None)


def video(url: str, style: object = None, width: object = None) -> None:  # noqa: ARG001  as theirs
    """A link to the video; of one beside the lecture its name. Raises `AuthorError` where there is none."""
    if _is_url(url):
        author.link(url, "video")
    elif _file("video", url):
        author.note(f"*A video:* `{url}`")


def cached(url: str, prefix: str) -> str:
    """The copy of `url` where edtrace keeps it, beside the lecture; nothing is fetched.

    Raises `AuthorError` where there is none, and says how to get it.
    """
    name = f"{prefix}-{hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()}"
    path = "var/files/" + name + "-" + re.sub(r"[^\w_-]+", "_", url)
    ending = Path(re.sub(r"[?#].*", "", url).partition("://")[2].partition("/")[2]).suffix
    # Newer copies have an ending.
    path = next((name for name in (path, path + ending) if _place(name).is_file()), path)
    if not _place(path).is_file():
        raise _no_copy(url, path)
    return path


def _no_copy(url: str, path: str) -> AuthorError:
    what = f"nothing is fetched while a lecture runs, and of {url!r} there is no copy"
    return AuthorError(f"{what}\nin the lecture's folder: curl --create-dirs -Lo {path!r} {url!r}")


def download_file(url: str, filename: str) -> None:
    """The file that is there, or beside the lecture. Raises `AuthorError` without one: see `cached`."""
    place = Path(filename)
    if not place.exists():
        copy = _place(filename)
        if not copy.is_file():
            raise _no_copy(url, filename)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(copy)


def relativize(path: str) -> str:
    """The path from where the lecture runs."""
    return os.path.relpath(path)


def _file(word: str, path: str) -> Path:
    """A file where the lecture runs, or beside it; raises `AuthorError` where there is none."""
    place = _place(path)
    if not place.is_file():
        raise AuthorError(f"{word}() cannot find {path!r}: it is read from beside the lecture")
    return place


def _is_url(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _place(path: str) -> Path:
    """A file by its relative path: where the lecture runs, or beside it."""
    here = Path.cwd() / path
    return here if here.exists() or _lecture is None else _lecture.parent / path


def plot(spec: Any) -> None:
    """A plot of Altair or in Vega-Lite, drawn where Altair can, else its data; also one of Matplotlib."""
    spec = spec.get_figure() if hasattr(spec, "get_figure") and not hasattr(spec, "savefig") else spec
    if hasattr(spec, "savefig"):
        return author.figure(spec, caption="", alt="a plot")
    data = spec if isinstance(spec, dict) else spec.to_dict()
    title = data.get("title") or data.get("description") or "a plot"
    label = str(title.get("text", "a plot") if isinstance(title, dict) else title)
    with contextlib.suppress(ImportError, ValueError):  # it is not here, or lacks what it draws with
        altair, written = importlib.import_module("altair"), io.StringIO()
        altair.Chart.from_dict(data).save(written, format="svg")
        return author.hand("figure", "", data=written.getvalue(), alt=label)
    shown = json.dumps(data, indent=1, default=str)
    cut = "\n…" * (len(shown) > LONGEST_PLOT)
    return author.note(f"A plot, as its data: {label}\n\n```json\n{shown[:LONGEST_PLOT]}{cut}\n```")
