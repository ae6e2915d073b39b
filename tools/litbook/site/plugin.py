"""Which pages exist, as a MkDocs hook: run the lectures, write their pages, say what fails.

The pages are ordinary Markdown files, written before MkDocs collects them. Each failed claim, error and
problem in prose is a warning for people, and is counted: a strict build fails because of the count, not of
a line of a log.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.exceptions import Abort

TOOLS = Path(__file__).resolve().parents[2]
if str(TOOLS) not in sys.path:  # MkDocs loads a hook by its path, also where litbook is not installed
    sys.path.insert(0, str(TOOLS))

from litbook.errors import LitbookError, Problem  # noqa: E402
from litbook.project import Project, name_of, recordings_of, shown  # noqa: E402
from litbook.record import compare, model, recordings  # noqa: E402
from litbook.render import (  # noqa: E402
    books,
    frame,
    ledger,
    misbeliefs,
    notebook,
    notebook_page,
    page,
    player,
    verdicts,
)
from litbook.render import devices as machines  # noqa: E402
from litbook.render import report as failures  # noqa: E402
from litbook.render.bibliography import Bibliography  # noqa: E402
from litbook.render.bibliography import read as read_bibliography  # noqa: E402
from litbook.run import process  # noqa: E402
from litbook.text import unbacked, unrun  # noqa: E402

NavEntry = str | dict[str, Any]  # MkDocs: a page, or a title with pages below it
Runner = Callable[[Path], model.Record]

log = logging.getLogger("mkdocs.plugins.litbook")
ASSETS = Path(__file__).resolve().parents[1] / "render" / "assets"
PLACE = "lectures"  # below docs/, where generated pages go; git ignores it
PREVIEW = "litbook-preview"  # under this key of `extra`, `litbook.site.preview` hands itself over
MOST = 20  # problems that the end of a strict build names; all stand above
INTERRUPTED = 130  # the exit status of Ctrl-C
NAV = "Lectures"  # the entry of the nav that the pages replace
_PICTURE = '<img src="lectures/claims.svg" alt="How many claims hold: the ledger">'
BADGE = f'<p><a href="lectures/ledger/">{_PICTURE}</a></p>'  # on the front page

# Records of this process by lecture and hash of everything a lecture may read: `mkdocs serve` calls the
# hook for every saved file, also when only a docs page changed.
_records: dict[Path, tuple[str, model.Record]] = {}

# What is wrong with the lectures of this build: see `wrong`.
_problems: list[str] = []

# What the last build put on the shelf: the front page is made later, and counts it.
_shelf: list[ledger.Shelf] = []

# Where `mkdocs serve` keeps the notebooks' pages between two builds; gone with the process. A build that ends
# keeps none: measured values make most of them new each time.
_kept: list[tempfile.TemporaryDirectory[str]] = []


def on_startup(command: str, **_: Any) -> None:
    """`mkdocs serve` converts a notebook again only when it has changed."""
    if command == "serve":
        _kept[:] = [tempfile.TemporaryDirectory(prefix="litbook-notebooks-")]


def on_config(config: Any) -> Any:
    """MkDocs is about to collect files: make the lectures' pages and list them in the nav."""
    project = Project(Path(config["config_file_path"]).parent, docs_at=config["docs_dir"])
    _problems.clear()
    _check_colab(config)
    for name in ("mkdocs.mkdocs-jupyter", "mkdocs.plugins.mkdocs_jupyter"):  # two lines for every notebook
        logging.getLogger(name).setLevel(logging.WARNING)
    if _kept and "mkdocs-jupyter" in config["plugins"]:
        config["plugins"]["mkdocs-jupyter"].config.update(cache=True, cache_dir=_kept[0].name)
    preview = config["extra"].get(PREVIEW)  # it makes pages when they are asked for, and writes none
    entries = preview.entries() if preview else build(project, _run, config["site_name"])
    _copy_assets(project.assets)
    if config["nav"] is not None:
        config["nav"] = [{NAV: entries} if _is_place(item) else item for item in config["nav"]]
        if not entries:
            config["nav"] = [item for item in config["nav"] if not _is_place(item)]
    return config


def on_post_build(config: Any) -> None:
    """The verdict of a strict build: it fails by how many problems there are, whoever reads the log."""
    if config["strict"] and _problems:
        raise Abort(verdict(_problems))


def verdict(problems: list[str]) -> str:
    """Why a strict build fails: how many problems, and the first line of each."""
    lines = [text.partition("\n")[0] for text in problems[:MOST]]
    left = len(problems) - MOST
    head = f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} in the lectures:"
    return "\n    ".join([head, *lines, *([f"and {left} more"] if left > 0 else [])])


def wrong(text: str) -> None:
    """Something is wrong with the book: a warning for people, and one more that the strict build counts."""
    text = failures.harmless(text)
    _problems.append(text)
    log.warning("%s", text)


def on_serve(server: Any, config: Any, builder: Any) -> Any:  # noqa: ARG001 (MkDocs' signature)
    """`mkdocs serve` also watches the lectures."""
    server.watch(str(Project(Path(config["config_file_path"]).parent).folder))
    return server


def on_page_markdown(markdown: str, **given: Any) -> str:
    """The front page's numbers come out of the records, too.

    A search finds a lecture's page, not its notebook, which says the same once more.
    """
    if _is_notebook(given.get("page")):
        given["page"].meta["search"] = {"exclude": True}
        return markdown
    if "<!-- claims -->" not in markdown and "<!-- excerpt -->" not in markdown:
        return markdown
    preview = given["config"]["extra"].get(PREVIEW) if "config" in given else None
    found = preview.shelf() if preview else _shelf
    if not found:
        return markdown
    counted = f"{verdicts.tally([(it.record, it.recordings) for it in found])}\n\n{BADGE}"
    return markdown.replace("<!-- claims -->", counted).replace(
        "<!-- excerpt -->", page.excerpt(found[0].record)
    )


def on_nav(nav: Any, **_: Any) -> Any:
    """Titles are text, whatever they hold."""
    frame.titled(nav.items)
    return nav


def on_page_context(context: Any, page: Any, **_: Any) -> Any:
    """So they are in the browser's tab and in the header."""
    frame.headed(page)
    return context


def on_post_page(output: str, **_: Any) -> str:
    """What Material leaves nameless gets a name."""
    return frame.named(output)


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """A notebook's page in this site's own dress, with the ways to it and out of it."""
    if not _is_notebook(page):
        return html
    from mkdocs.structure.toc import get_toc

    file = Path(page.file.abs_src_path)
    links = notebook_page.links(page.file.src_uri, page.url, config["extra"].get("colab") or "")
    content, headings = notebook_page.slim(html, file.read_text(encoding="utf-8"), links)
    page.toc = notebook_page.contents(headings, get_toc)
    page.title = notebook_page.title(headings) or page.title
    return content


def build(project: Project, run: Runner, book: str = "") -> list[NavEntry]:
    """Write the pages of every lecture of the project; the nav's entries come back.

    `book` is the title of the whole, which the notebooks name.
    """
    place = project.pages
    entries: list[NavEntry] = []
    written, shelf = set[Path](), _shelf
    shelf.clear()
    bibliography = _bibliography(project.folder)
    for path in project.lectures():
        name = name_of(path)
        try:
            record = _recorded(path, run)
        except LitbookError as error:
            if error.exit_status == INTERRUPTED:
                raise KeyboardInterrupt from None
            wrong(f"{path.name} cannot be run: {error}")
            continue
        problems: list[Problem] = []
        own, others = _recordings(path, record)
        found = page.pages(record, bibliography, others, problems)
        never = unrun.unrun(record, [*others, *([own] if own else [])])
        report(record, problems + [it.problem for it in never if it.dead])
        found |= player.data(record, others)
        if made := notebooks(path, record, bibliography, others, book):
            found = linked(record, found) | made
        written |= {_write(place / name / file, text) for file, text in found.items()}
        entries.append({record.title: [_nav(name, *title) for title in page.titles(record)]})
        shelf.append(ledger.Shelf(name, record, others, own))
    if not project.lectures():
        wrong(f"there are no lectures in {shown(project.folder)}: a build of nothing has no verdict")
    if shelf:
        written.add(
            _write(place / books.INDEX, page.shelf([(it.folder, it.record, it.recordings) for it in shelf]))
        )
        written.add(_write(place / "ledger.md", ledger.page(shelf)))
        written.add(_write(place / "devices.md", machines.page(shelf, differing(shelf))))
        written.add(_write(place / "claims.json", ledger.data(shelf)))
        written.add(_write(place / "claims.svg", ledger.tally(shelf)))
        written.add(_write(place / "misbeliefs.md", misbeliefs.page(shelf, bibliography)))
        entries = [f"{PLACE}/{books.INDEX}", *entries, {misbeliefs.TITLE: f"{PLACE}/misbeliefs.md"}]
        entries += [{"Ledger": f"{PLACE}/ledger.md"}, {machines.TITLE: f"{PLACE}/devices.md"}]
    _remove_stale(place, written)
    return entries


# ---------------------------------------------------------------------------- running


def _run(path: Path) -> model.Record:
    return process.record_of(path)


def _recorded(path: Path, run: Runner) -> model.Record:
    """The record of the lecture as it is now; run again only if a file in its folder has changed."""
    now = _fingerprint(path.parent)
    if path not in _records or _records[path][0] != now:
        _records[path] = (now, run(path))
    return _records[path][1]


def _fingerprint(folder: Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return hashlib.sha256(b"".join(str(p).encode() + p.read_bytes() for p in files)).hexdigest()


def _bibliography(lectures: Path) -> Bibliography:
    path = lectures / "references.bib"
    if not path.exists():
        return {}  # a citation will say that its key is unknown
    try:
        return read_bibliography(path)
    except LitbookError as error:
        wrong(str(error))
        return {}


def _recordings(path: Path, here: model.Record) -> tuple[model.Record | None, list[model.Record]]:
    """This lecture's recording from this build's kind of device, and those from others.

    What the build contradicts of the first is a warning; so is a recording that cannot be used. A section
    whose text is newer fails nothing: its author is at work, and the recording's currency is tested.
    """
    own, others = None, []
    for file in recordings_of(path):
        try:
            record = recordings.read(file, name_of(path))
            if record.environment.device.slug != here.environment.device.slug:
                others.append(record)
                continue
            own = record
            for difference in compare.compare(here, record).differences:
                said = f"{difference}\n    {_way_out(path, here)}"
                wrong(said) if difference.contradicts else log.info("%s", failures.harmless(said))
        except LitbookError as error:
            wrong(str(error))
    return own, others


def differing(shelf: list[ledger.Shelf]) -> machines.Found:
    """What each recording of another device says differently, in sections that both have run."""
    found: dict[tuple[str, str], list[machines.Difference]] = {}
    for it in shelf:
        special = {f.name for f in it.record.functions if f.requires}
        for recording in it.recordings:
            found[it.folder, recording.environment.device.slug] = [
                machines.Difference(
                    d.section, d.place.line, d.what, tuple((c.at, c.was, c.now, c.by) for c in d.changes)
                )
                for d in compare.compare(it.record, recording).differences
                if d.contradicts and d.section not in special
            ]
    return found


def badge(project: Project) -> str:
    """The README's badge: an SVG that counts the claims that hold in the recordings of all lectures.

    It is committed, because a README is read where nothing was built. It counts recordings and not a run, so
    that a test can tell whether it is current without running anything: every strict build already compares
    a run with the recording.
    """
    shelves = []
    for path in project.lectures():
        found = sorted(
            (recordings.read(file, name_of(path)) for file in recordings_of(path)),
            key=lambda record: (record.environment.device.slug != "cpu", record.environment.date),
        )
        if found:
            shelves.append(ledger.Shelf(name_of(path), found[0], found[1:]))
    return ledger.tally(shelves)


def notebooks(
    path: Path, record: model.Record, bibliography: Bibliography, others: list[model.Record], book: str
) -> dict[str, str]:
    """The lecture's notebooks by their files below its folder; none, and a warning, if none can be."""
    modules = {
        file.relative_to(path.parent).as_posix(): file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(path.parent.rglob("*.py"))
        if not file.name.startswith("lecture_") and not {"__pycache__", ".venv"} & set(file.parts)
    }
    try:
        made = notebook.notebooks(
            record, modules=modules, bibliography=bibliography, recordings=others, book=book
        )
    except LitbookError as error:
        wrong(f"{path.name} has no notebooks: {error}")
        return {}
    return {f"{notebook.FOLDER}/{name}": text for name, text in made.items()}


def linked(record: model.Record, found: dict[str, str]) -> dict[str, str]:
    """The pages `found`, each with a link to its notebook if it has one."""
    files = dict(notebook.pages(record))
    return {
        name: notebook_page.linked(text, name, files[name]) if name in files else text
        for name, text in found.items()
    }


def _is_notebook(page: Any) -> bool:
    return page is not None and page.file.src_uri.endswith(".ipynb")


def _check_colab(config: Any) -> None:
    """A wrong address would give every notebook a link that leads nowhere."""
    given = config["extra"].get("colab")
    if given and not re.fullmatch(notebook_page.GITHUB, str(given)):
        expected = (
            "https://github.com/OWNER/REPOSITORY/blob/BRANCH, where GitHub has the files of the built site"
        )
        wrong(
            f"mkdocs.yml: extra.colab is {given!r}; expected {expected}. Without it the notebooks say how to "
            "upload one."
        )
        config["extra"]["colab"] = ""


def _way_out(path: Path, here: model.Record) -> str:
    command = f"python tools/run_lecture.py {name_of(path)} --device {here.environment.device.kind} --approve"
    return f"if that is right: {command}"


# ---------------------------------------------------------------------------- files


def _nav(lecture: str, name: str, title: str) -> dict[str, str] | str:
    path = f"{PLACE}/{lecture}/{name}"
    return path if name == books.INDEX else {title: path}


def _is_place(item: Any) -> bool:
    return isinstance(item, dict) and NAV in item


def _write(path: Path, text: str) -> Path:
    """Write only what changed: `mkdocs serve` watches these files."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def _remove_stale(place: Path, written: set[Path]) -> None:
    for path in sorted(place.rglob("*"), reverse=True):
        if path.is_file() and path not in written:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _copy_assets(target: Path) -> None:
    for path in ASSETS.iterdir():
        copy = target / path.name
        if path.is_file() and (not copy.exists() or copy.read_bytes() != path.read_bytes()):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


# ---------------------------------------------------------------------------- what fails


def report(record: model.Record, problems: list[Problem]) -> None:
    """One warning for every failed claim, every error and every problem in the prose."""
    for found in [*failures.problems(record), *problems]:  # the command line prints the same
        wrong(str(found))
    for number in unbacked.in_text(record.sources[0].text, record.sources[0].path):
        wrong(str(number))
