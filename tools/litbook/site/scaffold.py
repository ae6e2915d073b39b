"""A new book: one lecture, its bibliography, a front page, the configuration, what it needs, a workflow.

In goes the path of a folder that is empty or not there; out come its files, of the texts in `new/`. It knows
nothing of what a lecture says.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from string import Template

from litbook import version
from litbook.errors import LitbookError
from litbook.files import way_out

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


def begin(folder: Path) -> list[str]:
    """Write a book into the folder; what was written comes back. Raises `LitbookError` where anything is."""
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
