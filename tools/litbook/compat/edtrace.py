"""edtrace's words, and lectrace's, said in litbook's: a lecture that is written for either runs unchanged.

    litbook run --words edtrace FILE       (or lectrace) the lecture imports these words under their names
    plugins: [litbook: {words: edtrace}]   every lecture of the book does
    from litbook.compat.edtrace import …   for who ports

| theirs | here |
|---|---|
| `text("…")` | `note("…")` |
| `text("…", verbatim=True)`, `system_text(["date"])` | a note of one block of code |
| `note("…")` | `speaker_note("…")` |
| `image("images/a.png")` | `image()`, with the file's name as `alt` |
| `image("https://…")` | its copy in `var/files` beside the lecture; else an error that says how to get it |
| `video(…)` | a link; of a file beside the lecture its name |
| `link("https://…")`, `link(title=…, url=…)`, `link(Reference(…))` | `link()`, with title, authors and year |
| `link(function)` | `link()`; of what is not the lecture's own its name |
| `plot(spec)` | `figure()`, where Altair can draw the Vega-Lite; else its data |
| `style=`, `width=` | are let be: the page has one style |
| `# @inspect`, `@clear`, `@hide`, `@stepover` | the same |
| `sys.gettrace()` | true in the lecture and beside it; in new code ask `litbook.recording()` |
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from litbook.errors import AuthorError
from litbook.probe import author

__all__ = ["Reference", "arxiv_reference", "cached", "image", "is_arxiv_link", "join", "link", "note", "plot",
           "system_text", "text", "url_reference", "video"]  # fmt: skip

NAMES = {  # what lectures import: edtrace began as two files beside the lectures
    "edtrace": ("edtrace", "edtrace.execute_util", "edtrace.reference", "edtrace.arxiv_util", "execute_util",
                "arxiv_util"),
    "lectrace": ("lectrace", "lectrace.reference", "lectrace.renderings"),
}  # fmt: skip
_KINDS = {
    b"\x89PNG": ".png",
    b"\xff\xd8": ".jpg",
    b"GIF8": ".gif",
    b"RIFF": ".webp",
}  # a copy has no ending
LONGEST_PLOT = 4000  # characters of a plot that is shown as its data
_lecture: Path | None = None  # the one that runs here, under these words


@contextlib.contextmanager
def installed(words: str, lecture: Path) -> Iterator[None]:
    """While it runs, `lecture` imports this module under the names that `words` has; "" changes nothing."""
    global _lecture  # a process runs one lecture
    modules, path, gettrace = dict(sys.modules), _lecture, sys.gettrace
    if words:
        _lecture = lecture
        for name in NAMES[words]:
            sys.modules[name] = module = ModuleType(name)
            module.__dict__.update({word: globals()[word] for word in __all__})
            above, _, last = name.rpartition(".")
            if above:
                setattr(sys.modules[above], last, module)
        sys.gettrace = _traced(gettrace, str(lecture.parent))
    try:
        yield
    finally:
        _lecture, sys.gettrace = path, gettrace
        for name in NAMES.get(words, ()):
            del sys.modules[name]
            sys.modules.update({name: modules[name]} if name in modules else {})


def _traced(real: Any, folder: str) -> Any:
    """`sys.gettrace` that answers files in `folder` as edtrace's own tracing would, and all others truly."""

    def gettrace() -> Any:
        return _no_trace if sys._getframe(1).f_code.co_filename.startswith(folder) else real()

    return gettrace


def _no_trace(*_: object) -> None:
    """What a lecture may set as a trace function: it sees no line."""


# ---------------------------------------------------------------------------- prose


def text(message: str, style: object = None, verbatim: bool = False) -> None:  # noqa: ARG001  as theirs
    """Prose, as Markdown; `verbatim` keeps every character and line."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", message)), default=0)) if verbatim else ""
    author.note(f"{fence}\n{message.rstrip()}\n{fence}" if verbatim else message)


def note(message: str) -> None:
    """What the speaker means to say: no reader sees it."""
    author.speaker_note(message)


def system_text(command: list[str]) -> None:
    """What a command prints, without its colours. Raises what `subprocess` does."""
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode(errors="replace")
    text(re.sub(r"\x1b\[[0-9;]*m", "", said), verbatim=True)


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


def join(*lines: str) -> str:
    """Notes on a work, one a line."""
    return "\n".join(lines)


def link(arg: object = None, style: object = None, **kwargs: Any) -> None:  # noqa: ARG001  as theirs
    """A link to an address, a work, or a function of the lecture. Raises `AuthorError` for anything else."""
    if arg is None or isinstance(arg, str):
        arg = Reference(**kwargs) if arg is None else url_reference(arg, **kwargs)
    if callable(arg):
        _link_to_code(arg)
    elif hasattr(arg, "url"):  # a lecture may have a class of its own
        url, said = str(arg.url or ""), _label(arg)
        if re.match(r"https?://\S+$", url):
            author.link(url, said)
        else:
            author.note(f"{said} (`{url}`)" if url and url != said else said)
    else:
        raise AuthorError(f"link() takes an address, a reference or a function, not {type(arg).__name__}")


def _link_to_code(target: Any) -> None:
    name = getattr(target, "__name__", type(target).__name__)
    with contextlib.suppress(TypeError, OSError):
        if _lecture is None or Path(inspect.getfile(target)) == _lecture:
            return author.link(target)
    return author.note(f"`{name}`")


def _label(reference: Any) -> str:
    """`A title (Author+ 2020)`, of as much as is known."""
    authors, date = getattr(reference, "authors", None) or [], getattr(reference, "date", None) or ""
    names = " ".join([*(it.split()[-1] + "+" * (len(authors) > 1) for it in authors[:1]), date[:4]]).strip()
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
    known: dict[str, Any] = {"title": f"arXiv:{number}", "url": url}
    with contextlib.suppress(AuthorError, OSError, ET.ParseError):
        place = _place(cached(f"http://export.arxiv.org/api/query?id_list={number}", "arxiv"))
        entry, atom = ET.parse(place).getroot(), "{http://www.w3.org/2005/Atom}"
        said = {it: entry.findtext(f"{atom}entry/{atom}{it}") for it in ("title", "published")}
        names = [it.text or "" for it in entry.iterfind(f"{atom}entry/{atom}author/{atom}name")]
        if said["title"]:
            known |= {"title": " ".join(said["title"].split()), "authors": names, "date": said["published"]}
    return Reference(**known | kwargs)


# ---------------------------------------------------------------------------- pictures


def image(url: str, style: object = None, width: object = None) -> None:  # noqa: ARG001  as theirs
    """A picture beside the lecture, or the local copy of one that is elsewhere; see `cached`."""
    alt = re.sub(r"[\W_]+", " ", Path(url.partition("?")[0]).stem).strip() or "a picture"
    place = _file("image", cached(url, "image") if _is_url(url) else url)
    with tempfile.TemporaryDirectory() as folder, place.open("rb") as file:
        begins = file.read(4)
        kind = next((it for magic, it in _KINDS.items() if begins.startswith(magic)), ".svg")
        if place.suffix.lower().replace("jpeg", "jpg") != kind:
            place = Path(shutil.copyfile(place, Path(folder) / f"{place.name}{kind}"))
        author.image(place, alt=alt)


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
    if not _place(path).is_file():
        raise AuthorError(
            f"nothing is fetched while a lecture runs, and of {url!r} there is no copy\n"
            f"in the lecture's folder: curl --create-dirs -Lo {path!r} {url!r}"
        )
    return path


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
    if hasattr(spec, "savefig"):
        return author.figure(spec, caption="", alt="a plot")
    data = spec if isinstance(spec, dict) else spec.to_dict()
    title = data.get("title") or data.get("description") or "a plot"
    said = str(title.get("text", "a plot") if isinstance(title, dict) else title)
    svg = _drawn(data)
    if svg:
        return author._hand("figure", "", data=svg, alt=said)
    shown = json.dumps(data, indent=1, default=str)
    cut = "\n…" * (len(shown) > LONGEST_PLOT)
    return author.note(f"A plot, as its data: {said}\n\n```json\n{shown[:LONGEST_PLOT]}{cut}\n```")


def _drawn(data: dict[str, Any]) -> str:
    """The plot as SVG; "" where Altair is not here, or lacks what it draws with."""
    try:
        import altair

        written = io.StringIO()
        altair.Chart.from_dict(data).save(written, format="svg")
    except (ImportError, ValueError):
        return ""
    return written.getvalue()
