"""What a lecture may read beside it: the modules that it imports there, and the files that its text quotes.

In go a lecture's text and the folder that it lies in; out come files, and digests of what they hold. It
knows nothing of a run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path

from litbook.lecture.model import INSTALLED, Lecture
from litbook.project import RECORDINGS
from litbook.python.file import File
from litbook.python.nodes import modules_in, normalize_newlines, parse_text

LARGEST = 1 << 30  # bytes of one entry of the folder
_NEVER = {*INSTALLED, "__pycache__", "node_modules"}
QUOTED = re.compile(r"""["']([^"'\n]{1,200})["']""")


def modules(lecture: Lecture, folder: Path) -> list[File]:
    """The modules in `folder` that the lecture imports, and what these import; not its own files."""
    files, tried = list[File](), {file.module for file in lecture.files if file.module}
    todo = [file.tree for file in lecture.files]
    while todo:
        for name in sorted({*modules_in(todo.pop())} - tried):
            tried.add(name)
            path = folder / f"{name}.py"
            with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):  # importing it tells
                with tokenize.open(path) as file:
                    text = normalize_newlines(file.read())
                files.append(File(path.name, text, parse_text(text, str(path)), str(path), name, name))
                todo.append(files[-1].tree)
    return files


def modules_around(folder: Path) -> dict[str, list[Path]]:
    """The modules and packages of the repository around `folder`, by the names under which they are imported.

    Any folder there may be on `PYTHONPATH`: `src`, `lib`, `code/lib`.
    """
    found = dict[str, list[Path]]()
    for entry in _entries_around(folder):
        if entry.suffix == ".py" or entry.is_dir():
            found.setdefault(entry.stem, []).append(entry)
    return found


def files_around(folder: Path) -> dict[str, list[Path]]:
    """The files of the repository around `folder` that are no modules, by their names."""
    found = dict[str, list[Path]]()
    for entry in _entries_around(folder):
        if entry.suffix not in ("", ".py", ".md") and entry.is_file():
            found.setdefault(entry.name, []).append(entry)
    return found


def _entries_around(folder: Path) -> list[Path]:
    """What lies in the folders above, or up to two deep in these; nothing that is installed or built."""
    folder = at = folder.resolve()
    above = list[Path]()
    while at != at.parent and not any((at / mark).exists() for mark in _ROOT):
        at = at.parent
        above.append(at)
    if at == at.parent:
        return []  # no repository
    found, todo = list[Path](), [(place, 2) for place in above]
    while todo:
        place, deep = todo.pop()
        with contextlib.suppress(OSError):
            names = [entry.name for entry in place.iterdir()]
            for name in {*names}.difference(left_out(str(place), names), _BUILT):
                found.append(entry := place / name)
                if deep and entry not in (folder, *above) and entry.is_dir():
                    todo.append((entry, deep - 1))
    return found


def modules_above(name: str, around: Mapping[str, Sequence[Path]]) -> list[Path]:
    """What an import of `name` may find of what there is `around`, and what that imports in turn."""
    found, todo, tried = dict[Path, None](), [name], {*sys.stdlib_module_names, "litbook"}
    while todo:
        top = todo.pop()
        for place in around.get(top, ()) if top not in tried else ():
            if place.is_file():
                with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):
                    todo += modules_in(parse_text(place.read_text(encoding="utf-8"), str(place)))
            elif not any(place.glob("*.py")):
                continue
            found[place] = None
        tried.add(top)
    return sorted(found)


_BUILT = {"build", "dist", "site"}  # what holds copies of what lies elsewhere
_ROOT = (".git", "mkdocs.yml", "pyproject.toml")  # what stands where a repository begins


def quoted_files(quoted: Iterable[str], folder: Path, entries: Sequence[Path] = ()) -> set[Path]:
    """The files and folders in `folder` that quoted texts name, by their paths from there; nothing hidden.

    Of `"a/{b}.c"` the folder `a`, and of `"{b}.c"` or `".c"` every file that ends so. `"b.c"` is one file, or
    the end of a name; where there is none, what fills the text in may name any file that ends in `.c`.
    `entries` are those of the folder, for who asks again and again.
    """
    texts = {*quoted}
    there = entries or [*folder.iterdir()]
    names, places = {entry.name for entry in there}, set[Path]()
    data = [entry for entry in there if entry.suffix not in ("", ".py")]
    for text in texts:
        end = _FILLED_IN.split(text)[-1].rpartition("/")[2]
        endings = [end, Path(end).suffix]
        with contextlib.suppress(OSError, ValueError):  # a text that is no path
            place = Path(text)
            if not names.isdisjoint(place.parts[:1]):
                while place.name and not (folder / place).exists():
                    place = place.parent
                inside = place.name and ".." not in place.parts and not place.is_absolute()
                if inside and not any(part in _NEVER or part.startswith(".") for part in place.parts):
                    places.add(place)
                    endings = [end] if place == Path(text) else endings
        for ending in endings:
            named = [entry for entry in data if "." in ending and entry.name.endswith(ending)]
            places.update(Path(entry.name) for entry in named if entry.is_file())
            if named:
                break
    return {place for place in places if places.isdisjoint(place.parents)}


_FILLED_IN = re.compile(r"[{}*?\]]|%[^a-zA-Z]*[a-zA-Z]|\$\w*")  # what stands in a text for another


def left_out(folder: str, names: list[str]) -> list[str]:
    """What nobody reads of a folder: installed libraries, and links to folders, which may lead anywhere."""
    if "pyvenv.cfg" in names:
        return names
    paths = ((name, f"{folder}/{name}") for name in names)
    links = {name for name, at in paths if os.path.islink(at) and not os.path.isfile(at)}  # noqa: PTH114, PTH113  for each of many files
    return [name for name in names if name in _NEVER | links or name.startswith(".")]


def content(entry: Path) -> str:
    """The digest of a file, or of all in a folder but recordings: these tell what was, and are not read."""
    if not entry.is_dir():
        return _digest(entry)
    lines = list[str]()
    for at, folders, files in os.walk(entry):
        unread = {*left_out(at, [*folders, *files]), RECORDINGS}
        folders[:] = sorted({*folders} - unread)
        below = at[len(str(entry)) :]
        lines += (f"{below}/{file} {_digest(Path(at, file))}" for file in sorted({*files} - unread))
    return sha256("\n".join(lines).encode(errors="backslashreplace")).hexdigest()


def _digest(file: Path) -> str:
    try:
        stat = file.stat()
        return _cached_digest(file, stat.st_size, stat.st_mtime_ns) if stat.st_size <= LARGEST else "large"
    except OSError:
        return "unreadable"


@functools.lru_cache(maxsize=4096)  # several sections name one file
def _cached_digest(file: Path, _size: int, _changed: int) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()
