"""Where a book is: its root, lectures, bibliography, recordings, docs and cache. The one answer to "where".

In goes any path inside a book, or that of a lecture anywhere; out come paths and the names that people read.
It opens `mkdocs.yml`, and files named like a lecture, which may be modules; what a record is it knows not.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from litbook.errors import LitbookError, NotFound
from litbook.finding import Finding

CONFIG = "mkdocs.yml"
OTHER_CONFIG = "mkdocs.yaml"  # MkDocs reads it, too
RENAME = f"\n    its file is called {OTHER_CONFIG}, and litbook reads {CONFIG}: rename it"
PATTERN = "lecture_*"
NUMBERED = re.compile(r"\d+_\w+\.py")  # 02_vectors.py, as other tools' courses call theirs
INSIDE = "__init__.py"  # where a lecture that is a folder begins
MENU = "LITBOOK_MENU"  # of the environment: the file that a build writes its navigation to
RECORDINGS = "recordings"
# What is meant as a lecture's name, or as its text: that imports our words, and begins at `main()`.
LIKE_ONE = re.compile(r"lecture(?![a-z])", re.IGNORECASE)
WORDS_AND_MAIN = re.compile(r"(?ms)(?=.*^(from|import) litbook\b)(?=.*^(async )?def main\b)")
ASSERTS = re.compile(r"^[ \t]*assert\b", re.MULTILINE)
# In whose words, but ours, lectures may be written, and what is there while such a lecture runs: packages of
# other tools' words fill it.
WORDS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {}
TOOLS = Path(__file__).resolve().parents[1]  # where this litbook is, installed or not
CHECKOUT = TOOLS.parent  # the tree that it is in, where it is not installed
_MAIN = re.compile(r"^\s*(async\s+)?def\s+main\b", re.MULTILINE)


class NoBook(LitbookError):
    """A command that is about a book was given outside one."""

    slug = "no-book"

    def __init__(self, other: Path | None = None) -> None:
        super().__init__(
            f"{display_path(other.parent)} is no book{RENAME}"
            if other
            else f"this is no book: there is no {CONFIG} here or in a folder above\n"
            "    go into a book, or begin one: litbook new DIR\n"
            "    a lecture can also be named by its path: litbook run path/to/lecture.py"
        )


@dataclass(frozen=True)
class Project:
    """A book. `lectures_at`, `docs_at` and `bibliography_at` are from the root, or absolute."""

    root: Path
    lectures_at: str | Path = "lectures"
    docs_at: str | Path = "docs"
    bibliography_at: str | Path = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # what stands below `litbook:` in `mkdocs.yml`
    nav: Any = None  # the menu there, if it has one

    @classmethod
    def find(cls, start: Path) -> Project:
        """The book around `start`: a folder with `mkdocs.yml`. Raises `NoBook`."""
        start = start.resolve()
        for folder in (start, *start.parents):
            if (folder / CONFIG).is_file():
                return cls.from_config(folder / CONFIG)
        others = (folder / OTHER_CONFIG for folder in (start, *start.parents))
        raise NoBook(next(filter(Path.is_file, others), None))

    @classmethod
    def from_config(cls, config: Path) -> Project:
        """The book of a `mkdocs.yml`, in the folders that this names. Raises `LitbookError`."""
        settings, options = _settings(config)
        return cls(
            config.parent,
            str(options.get("lectures") or cls.lectures_at),
            str(settings.get("docs_dir") or cls.docs_at),
            str(options.get("bibliography") or cls.bibliography_at),
            options,
            settings.get("nav"),
        )

    @staticmethod
    def words_around(lecture: Path) -> str:
        """In whose words the lecture's book says that its lectures are written; "" for ours.

        Raises `LitbookError` for words that nobody knows, where there are any.
        """
        config = next((folder / CONFIG for folder in lecture.parents if (folder / CONFIG).is_file()), None)
        if config is None or "words:" not in _text(config):
            return ""
        words = str(_settings(config)[1].get("words") or "")
        if words and WORDS and words not in WORDS:
            raise LitbookError(f"{CONFIG}: words is {words!r}\n    there are: {', '.join(WORDS)}")
        return words

    @staticmethod
    def is_drawn(config: Path) -> bool:
        """Whether the site of this configuration has the plugin, as far as this file says so itself."""
        settings, _ = _settings(config)
        plugins = settings.get("plugins") or []
        names = (
            name for plugin in plugins for name in ([plugin] if isinstance(plugin, str) else plugin or ())
        )
        return not settings or "INHERIT" in settings or "litbook" in names

    @property
    def config(self) -> Path:
        """The file that MkDocs reads."""
        return self.root / CONFIG

    @property
    def folder(self) -> Path:
        """Where the lectures are."""
        return self.root / self.lectures_at

    @property
    def bibliography(self) -> Path:
        """What citations name."""
        at = self.bibliography_at
        return self.root / at if at else self.folder / "references.bib"

    @property
    def has_bibliography(self) -> bool:
        """Whether there is one, or has to be one because the configuration names it."""
        return bool(self.bibliography_at) or self.bibliography.exists()

    @property
    def cache(self) -> Path:
        """What git ignores and anybody may delete."""
        return self.root / ".litbook"

    @property
    def docs(self) -> Path:
        """What MkDocs makes pages of."""
        return self.root / self.docs_at

    @property
    def pages(self) -> Path:
        """Where the lectures' pages are written; git ignores it."""
        return self.docs / "lectures"

    @property
    def assets(self) -> Path:
        """Where styles and scripts are copied to; git ignores it."""
        return self.docs / "assets" / "litbook"

    def lectures(self) -> list[Path]:
        """Every lecture, by its file or its folder. Also one that cannot run: whoever runs it says so.

        A file without `main()` that another lecture imports is a module, and so is one without that is called
        `02_vectors.py`. Raises `LitbookError` where a file and a folder have one name.
        """
        numbered = (path for path in self.folder.glob("*.py") if NUMBERED.fullmatch(path.name))
        paths = [*self.folder.glob(PATTERN), *(path for path in numbered if _MAIN.search(_text(path)))]
        paths = sorted((path for path in paths if is_lecture(path)), key=name_of)
        for one, other in pairwise(paths):
            if name_of(one) == name_of(other):
                both = " and ".join(sorted(display_path(path) + "/" * path.is_dir() for path in (one, other)))
                raise LitbookError(f"two lectures have one name: {both}\n    rename one of them")
        lectures = []
        for path in paths:
            # A module says no `def main`, and one of the others imports it, as far as lines tell it.
            imports = re.compile(rf"^\s*(from|import)\s[^#\n]*\b{re.escape(name_of(path))}\b", re.MULTILINE)
            others = (other for other in paths if other != path)
            files = (file for other in others for file in (other.glob("*.py") if other.is_dir() else [other]))
            has_main = path.is_dir() or _MAIN.search(_text(path))
            if has_main or not any(imports.search(_text(file)) for file in files):
                lectures.append(path)
        return lectures

    def overlooked_files(self) -> list[Finding]:
        """What looks like a lecture and is none, so that nobody runs it and its claims say nothing.

        So do asserts in a folder within a lecture's folder, which is plain Python. What a file here imports
        is a module, and what begins with `_` or `.` is left alone.
        """
        if not self.folder.is_dir():
            return []
        lectures, problems = self.lectures(), []
        texts = [_text(file) for file in self.folder.rglob("*.py")]
        for path in _walk(self.folder):
            if path.is_dir():
                like_one = bool(LIKE_ONE.match(path.name) and any(path.glob("*.py")))
            else:
                text = _text(path) if path.suffix in (".py", ".pyw") else ""
                like_one = bool(text and (LIKE_ONE.match(path.name) or WORDS_AND_MAIN.match(text)))
            imports = re.compile(rf"^\s*(from|import)\s[^#\n]*\b{re.escape(path.stem)}\b", re.MULTILINE)
            if path in lectures or not like_one or any(map(imports.search, texts)):
                continue
            plain = re.sub(r"\W+", "_", LIKE_ONE.sub("", path.stem.lower(), count=1)).strip("_") or "NAME"
            name = f"lecture_{plain}{'' if path.is_dir() else '.py'}"
            if path.parent != self.folder:
                way_out = f"lectures stand in {display_path(self.folder)}/ itself: move it there"
            elif path.name != name:
                way_out = f"a lecture is called {PATTERN}.py, or so is its folder: rename it {name}"
            else:
                way_out = f"a lecture that is a folder begins with {INSIDE}"
            what = f"{display_path(path)}{'/' * path.is_dir()} looks like a lecture and is none: nothing"
            what += " in it runs"
            way_out += "\n    what begins with _ is left alone, and so is a module that a lecture imports"
            problems.append(Finding("overlooked", what, way_out=way_out))
        for folder in filter(Path.is_dir, lectures):  # of which only the files in it are the lecture's text
            for path in _walk(folder):
                if path.suffix == ".py" and path.parent != folder and ASSERTS.search(_text(path)):
                    what = f"{display_path(path)} asserts something, and is no text of {name_of(folder)}: it"
                    what += " runs as plain Python, and nobody hears of an assert there that is caught"
                    way_out = (
                        f"move it into {display_path(folder)}/ itself\n    what begins with _ is left alone"
                    )
                    problems.append(Finding("overlooked", what, way_out=way_out))
        return problems

    def names(self) -> list[str]:
        """What the lectures are called."""
        return [name_of(path) for path in self.lectures()]

    def require_names(self) -> list[str]:
        """What the lectures are called, where nothing can be said without any. Raises `LitbookError`."""
        if names := self.names():
            return names
        way_out = f"a lecture is a file called {PATTERN}.py, or a folder"
        raise LitbookError(f"there are no lectures in {display_path(self.folder)}\n    {way_out}")

    def lecture(self, name: str) -> Path:
        """The lecture called `name`, or the one at the path `name`. Raises `NotFound`."""
        path = Path(name)
        with contextlib.suppress(OSError):  # a name that is too long is no lecture
            if path.name == INSIDE and path.is_file():
                return path.parent
            if path.is_dir():
                if is_lecture(path):
                    return path
                raise NotFound("lecture", name, sorted(str(p) for p in path.glob("*.py")))
            if path.is_file() and (path.suffix == ".py" or os.sep in name):
                first = path.parent / INSIDE
                if _MAIN.search(_text(first)) and not _MAIN.search(_text(path)):
                    raise LitbookError(
                        f"{name} is a file of a lecture in several\n    name its folder: {path.parent}"
                    )
                return path
        if os.sep not in name:
            for lecture in self.lectures():
                if name_of(lecture) == name.removesuffix(".py"):
                    return lecture
            if path.suffix != ".py":
                folders = [path for path in self.folder.glob("*/") if path.name == name]
                hint = f"a lecture that is a folder begins with {INSIDE}" if folders else ""
                raise NotFound("lecture", name, self.names(), hint)
        beside = sorted(str(p) for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise NotFound("lecture", name, beside or self.names())


def _settings(config: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `mkdocs.yml` says, and what in it stands below `litbook:` among the plugins.

    Nothing without a reader of YAML: a machine that only records may lack what an installed litbook has.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        return {}, {}

    # Nothing is made of MkDocs' tags (`!ENV`, `!!python/name:`): no folder needs them.
    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("", lambda *_: None)
    try:
        settings = yaml.load(config.read_text(encoding="utf-8"), loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LitbookError(f"{config.name} cannot be read: {error}") from None
    settings = settings if isinstance(settings, dict) else {}
    plugins = settings.get("plugins") or []
    named = [p for p in ([plugins] if isinstance(plugins, dict) else plugins) if isinstance(p, dict)]
    return settings, next((p["litbook"] for p in named if isinstance(p.get("litbook"), dict)), {})


def is_lecture(path: Path) -> bool:
    """Whether a lecture may be there: a file of Python, or a folder that begins with one."""
    return (path / INSIDE).is_file() or (path.suffix == ".py" and path.is_file())


def _walk(folder: Path) -> Iterator[Path]:
    """All that is in a folder of lectures, but for what is in one that is named like a lecture."""
    for path in sorted(folder.iterdir()):
        named = not path.name.startswith(("_", ".")) or path.name in (INSIDE, "__main__.py")
        if named and path.name != RECORDINGS:
            yield path
            if path.is_dir() and not path.is_symlink() and not LIKE_ONE.match(path.name):
                yield from _walk(path)


def _text(file: Path) -> str:
    """What the file says; "" where it cannot be read, which whoever runs it says."""
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


def name_of(lecture: Path) -> str:
    """What the lecture is called: its file without `.py`, or its folder."""
    return lecture.name.removesuffix(".py")


def recording_of(lecture: Path, device: str) -> Path:
    """Where the recording of the lecture on this kind of device (`cpu`, or the slug of a card) stands."""
    return lecture.resolve().parent / RECORDINGS / f"{name_of(lecture)}.{device}.json"


def recordings_of(lecture: Path) -> list[Path]:
    """The files that claim to be recordings of the lecture."""
    return sorted((lecture.resolve().parent / RECORDINGS).glob(f"{glob.escape(name_of(lecture))}.*.json"))


def display_path(path: Path) -> str:
    """The path as messages and records name it: from the project's root, else the bare file name."""
    for folder in path.parents:
        if (folder / CONFIG).exists() or (folder / ".git").exists():
            return path.relative_to(folder).as_posix()
    return path.name
