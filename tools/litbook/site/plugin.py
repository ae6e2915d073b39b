"""Which pages exist, as a MkDocs hook: run the lectures, write their pages, say what fails.

The pages are ordinary Markdown files, written before MkDocs collects them. Each failed claim, error and
problem in prose is a warning for people, and is counted: a strict build fails because of the count, not of
a line of a log.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import logging
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mkdocs.exceptions import Abort

TOOLS = Path(__file__).resolve().parents[2]
if str(TOOLS) not in sys.path:  # MkDocs loads a hook by its path, also where litbook is not installed
    sys.path.insert(0, str(TOOLS))

from litbook.errors import LitbookError  # noqa: E402
from litbook.project import Project, shown  # noqa: E402
from litbook.record import model  # noqa: E402
from litbook.render import frame, notebook_page, page, verdicts  # noqa: E402
from litbook.render import report as failures  # noqa: E402
from litbook.render.bibliography import Bibliography  # noqa: E402
from litbook.render.bibliography import read as read_bibliography  # noqa: E402
from litbook.render.edition import Edition  # noqa: E402
from litbook.run import process  # noqa: E402
from litbook.site import editions, policy  # noqa: E402
from litbook.site.pages import NavEntry, Pages  # noqa: E402

Runner = Callable[[Path], model.Record]

log = logging.getLogger("mkdocs.plugins.litbook")
ASSETS = Path(__file__).resolve().parents[1] / "render" / "assets"
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

# The book's configuration, locked while this process builds.
_turn: list[IO[str]] = []

# `build` or `serve`: what MkDocs was started for.
_command: list[str] = []

# What the last build has shown: the front page is made later, and counts it.
_editions_built: list[Edition] = []


def on_startup(command: str, **_: Any) -> None:
    """MkDocs says once what it is started for."""
    _command[:] = [command]


def on_config(config: Any) -> Any:
    """MkDocs is about to collect files: make the lectures' pages and list them in the nav."""
    project = Project(Path(config["config_file_path"]).parent, docs_at=config["docs_dir"])
    _problems.clear()
    _check_colab(config)
    if PREVIEW not in config["extra"]:
        _take_turn(project)
    preview = config["extra"].get(PREVIEW)  # it makes pages when they are asked for, and writes none
    if preview:
        entries = preview.pages().entries()
    else:
        entries = build(project, _run, config["site_name"], config["extra"].get("colab") or "")
    _copy_assets(project.assets)
    if config["nav"] is not None:
        config["nav"] = [{NAV: entries} if _is_place(item) else item for item in config["nav"]]
        if not entries:
            config["nav"] = [item for item in config["nav"] if not _is_place(item)]
    return config


def on_post_build(config: Any) -> None:
    """The verdict of a strict build: it fails by how many problems there are, whoever reads the log."""
    _end()
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


def _take_turn(project: Project) -> None:
    """One build at a time, until this one or its process ends: all write the same pages."""
    _end()
    turn = project.config.open()
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        turn.close()
        said = f"another build of {shown(project.config)} is running, and writes the same pages"
        raise Abort(f"{said}\n    wait for its end, or build a copy of the book") from None
    _turn.append(turn)


def _end() -> None:
    """Let go of what one build holds."""
    for turn in _turn:
        turn.close()
    _turn.clear()


def on_build_error(error: Exception) -> None:
    """A build that fails ends, too."""
    del error
    _end()


def on_serve(server: Any, config: Any, builder: Any) -> Any:  # noqa: ARG001 (MkDocs' signature)
    """`mkdocs serve` also watches the lectures."""
    server.watch(str(Project(Path(config["config_file_path"]).parent).folder))
    return server


def on_page_markdown(markdown: str, **given: Any) -> str:
    """The front page's numbers come out of the records, too."""
    if "<!-- claims -->" not in markdown and "<!-- excerpt -->" not in markdown:
        return markdown
    preview = given["config"]["extra"].get(PREVIEW) if "config" in given else None
    found = preview.pages().editions if preview else _editions_built
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


def on_post_page(output: str, config: Any, **_: Any) -> str:
    """What Material leaves nameless gets a name, and the page its policy."""
    return _guarded(frame.named(output), config)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The page for addresses that lead nowhere has a policy, too."""
    return _guarded(output_content, config) if template_name.endswith(".html") else output_content


def _guarded(text: str, config: Any) -> str:
    """A page with its policy; without one under `mkdocs serve`, which writes a script into each."""
    serves = _command[-1:] == ["serve"] and PREVIEW not in config["extra"]
    return text if serves else policy.guarded(text, _scripts(tuple(config["theme"].dirs)))


_scripts = functools.cache(policy.scripts)


def build(project: Project, run: Runner, book: str = "", colab: str = "") -> list[NavEntry]:
    """Write the pages of every lecture of the project; the nav's entries come back.

    `book` is the title of the whole, which the notebooks name, `colab` where GitHub has the built site.
    """
    found = editions.Found()
    pages = Pages(project, _editions(project, run, found), _bibliography(project, found), book, colab)
    written = {
        _write(project.docs / place, text)
        for files in (*(pages.of(it, found) for it in pages.editions), pages.ends())
        for place, text in files
    }
    for text in found.wrong:
        wrong(text)
    for text in found.remarks:
        log.info("%s", failures.harmless(text))
    _remove_stale(project.pages, written)
    _editions_built[:] = pages.editions
    return pages.entries()


def _editions(project: Project, run: Runner, found: editions.Found) -> list[Edition]:
    """Run every lecture, one after the other; those that can be shown."""
    made = []
    for path in project.lectures():
        try:
            made.append(editions.edition(path, _recorded(path, run), found))
        except LitbookError as error:
            if error.exit_status == INTERRUPTED:
                raise KeyboardInterrupt from None
            found.wrong.append(f"{path.name} cannot be run: {error}")
    if not project.lectures():
        found.wrong.append(
            f"there are no lectures in {shown(project.folder)}: a build of nothing has no verdict"
        )
    return made


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


def _bibliography(project: Project, found: editions.Found) -> Bibliography:
    if not project.bibliography.exists():
        return {}  # a citation will say that its key is unknown
    try:
        return read_bibliography(project.bibliography)
    except LitbookError as error:
        found.wrong.append(str(error))
        return {}


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


# ---------------------------------------------------------------------------- files


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
