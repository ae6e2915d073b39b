"""A new book: one lecture, its bibliography, a front page, the configuration, what it needs, a workflow.

In goes the path of a folder that is empty or not there; out come its files, of the texts in `new/`. It knows
nothing of what a lecture says.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from string import Template

from litbook import version
from litbook.errors import LitbookError
from litbook.files import way_out
from litbook.project import CONFIG, OTHER_CONFIG, RENAME, Project
from litbook.site.pages import fill_nav

WORKFLOW = ".github/workflows/pages.yml"
REQUIREMENTS = "requirements.txt"
# Nobody has registered the name litbook with an index: whoever did would run code in each book's workflow.
# pip takes ${LITBOOK} from the environment, where the workflow puts the repository's variable of that name.
ASKS = """\
# This one came from a place that no other machine has. Say where it is in the environment's variable LITBOOK,
# and on GitHub in the repository's: git+https://HOST/OWNER/REPOSITORY@COMMIT
litbook[site] @ ${LITBOOK}"""
TEXTS = Path(__file__).with_name("new")
FILES = {  # in the book -> its text
    "lectures/lecture_01.py": "lecture_01.py.txt",
    "lectures/references.bib": "references.bib.txt",
    "docs/index.md": "index.md.txt",
    "mkdocs.yml": "mkdocs.yml.txt",
    REQUIREMENTS: "requirements.txt.txt",
    WORKFLOW: "pages.yml.txt",
    ".gitignore": "gitignore.txt",
    "ruff.toml": "ruff.toml.txt",
}
NAMED = {"docs/index.md", "mkdocs.yml"}  # they say what the book is called


BESIDE = ("lecture_01.py", "references.bib")  # what a site that is there already lacks


def add(folder: Path) -> list[str]:
    """Write a first lecture beside the `mkdocs.yml` of the folder; what was written comes back.

    A site that has lectures gets none. No file that is there changes. Raises `LitbookError`.
    """
    project = Project.from_config(folder / CONFIG)
    try:
        added = []
        for name in BESIDE if not project.lectures() else ():
            file = project.folder / name
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text((TEXTS / f"{name}.txt").read_text(encoding="utf-8"), encoding="utf-8")
                added.append(file.relative_to(folder).as_posix())
        return added
    except OSError as error:
        raise LitbookError(f"no lecture can be added in {folder}: {error.strerror}{way_out(error)}") from None


def lacks(folder: Path) -> list[str]:
    """What the author of a site has to write into the files that are there, line by line."""
    config, ignored = folder / CONFIG, folder / ".gitignore"
    project = Project.from_config(config)
    told = [] if Project.is_drawn(config) else [f"{CONFIG}: `- litbook` below `plugins:`, behind `- search`"]
    title = str(project.options.get("title") or "Lectures")
    if project.nav and fill_nav(project.nav, title, []) == project.nav:
        told.append(f"{CONFIG}: `- {title}: []` in `nav:`, where the lectures' pages are to come")
    # Where others install from: a workflow that has no litbook builds no page of a lecture.
    lists = [folder / name for name in (REQUIREMENTS, "pyproject.toml") if (folder / name).is_file()]
    if not any(re.search(r"\blitbook\b", file.read_text(encoding="utf-8")) for file in lists):
        needed = f"litbook[site] @ {version.pip_source() or '${LITBOOK}'}"
        told.append(
            f"{lists[0].name if lists else REQUIREMENTS}: {needed}, and each package that a lecture imports"
        )
    lines = ignored.read_text(encoding="utf-8").split() if ignored.exists() else []
    there = {line.strip("/") for line in lines}
    docs, recordings = project.docs_at, f"/{project.lectures_at}/recordings/.*"
    written = [f"/{docs}/lectures/", f"/{docs}/assets/litbook/", ".litbook/", recordings]
    return told + [f".gitignore: {line}" for line in written if line.strip("/") not in there]


def begin(folder: Path) -> list[str]:
    """Write a book into the folder; what was written comes back. Raises `LitbookError` where anything is."""
    if (folder / OTHER_CONFIG).is_file():
        raise LitbookError(f"{folder} holds a site, and nothing was written{RENAME}")
    if folder.is_dir() and (there := sorted(entry.name for entry in folder.iterdir())):
        held = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        raise LitbookError(
            f"{folder} is not empty, and nothing was written: it holds {held}\n    name another folder"
        )
    title = folder.resolve().name or "A book"
    try:
        for name, text in FILES.items():
            file, content = folder / name, (TEXTS / text).read_text(encoding="utf-8")
            if name in NAMED:
                content = Template(content).substitute(name=json.dumps(title), title=title)
            if name == WORKFLOW:
                content = content.replace("PYTHON", f"{sys.version_info.major}.{sys.version_info.minor}")
            if name == REQUIREMENTS:
                place = version.pip_source()
                place = f"litbook[site] @ {place}" if place else ASKS
                content = content.replace("VERSION", version.version()).replace("PLACE", place)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise LitbookError(f"no book can be begun in {folder}: {error.strerror}{way_out(error)}") from None
    return list(FILES)
