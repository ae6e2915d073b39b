"""Fragments of earlier runs, a file per lecture. Knows files and bytes; what a key means is up to `reuse`.

The file is written whole or not at all. It begins with what it is, its version, and a hash of the rest: a
file that is cut short, damaged, or written by another version is as good as none. Only the data of records
can be read from it, whatever it holds.

    key -> (when it was last used, the pickled fragment)
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from litbook import fragment, recorder, trace
from litbook.fragment import Fragment

FOLDER = ".litbook"  # at the root of the project; git ignores it
VERSION = 1  # of the file; what the fragments in it mean is part of their keys
MAGIC = f"litbook fragments {VERSION}\n".encode()
MOST = 32 * 2**20  # bytes of a file; the fragments used longest ago go first
ONE = 4 * 2**20  # bytes of a fragment; a larger one is not kept

# What a file may hold: nothing else is ever made from it.
_READABLE = {
    (module.__name__, name): getattr(module, name)
    for module, names in (
        (fragment, "Fragment"),
        (recorder, "_Thinned _Verdict"),
        (trace, "Scalar Sequence Mapping Stats Tensor Opaque Piece Value Claim Operand Error"),
    )
    for name in names.split()
}
_READABLE[__name__, "Kept"] = None  # below


@dataclass(frozen=True)
class Kept:
    """What one section came to, when, and which files it read then (path, hash)."""

    fragment: Fragment
    date: str
    read: tuple[tuple[str, str], ...] = ()


_READABLE[__name__, "Kept"] = Kept


class Store:
    """The fragments of one lecture. `get` and `put` work in memory; `save` writes."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._found: dict[str, tuple[float, bytes]] = _read(file) if file is not None else {}
        self._used: dict[str, tuple[float, bytes]] = {}

    def get(self, key: str) -> Kept | None:
        """What is kept under the key."""
        content = self.content(key)
        kept = unpickled(content) if content else None
        if not isinstance(kept, Kept) or not isinstance(kept.fragment, Fragment):
            return None
        self._used[key] = time.time(), content
        return kept

    def put(self, key: str, kept: Kept) -> None:
        """Keep it, unless it is too large."""
        self.put_content(key, pickle.dumps(kept, protocol=5))

    def put_content(self, key: str, content: bytes) -> None:
        """Keep what another store, of this version, has as the `content` of the key."""
        if len(content) <= ONE:
            self._used[key] = time.time(), content

    def content(self, key: str) -> bytes:
        """What is kept under the key, as bytes; none where nothing is."""
        return (self._used.get(key) or self._found.get(key) or (0.0, b""))[1]

    def drop(self, key: str) -> None:
        """What was kept under the key cannot be used."""
        self._used.pop(key, None)
        self._found.pop(key, None)

    def save(self) -> None:
        """Write the file. A disk that is full or read-only costs time at the next run, and nothing else."""
        if self.file is None or not self._used:
            return
        newest = sorted((self._found | self._used).items(), key=lambda item: -item[1][0])
        left, kept = MOST, {}
        for key, (when, content) in newest:
            left -= len(content) + len(key)
            if left < 0:
                break
            kept[key] = (when, content)
        payload = pickle.dumps(kept, protocol=5)
        with contextlib.suppress(OSError):
            _write(self.file, MAGIC + sha256(payload).hexdigest().encode() + b"\n" + payload)


def of(lecture: Path) -> Store | None:
    """The store of the file `lecture`; None where it belongs to no project, which has no place for one."""
    lecture = lecture.resolve()
    for folder in lecture.parents:
        if (folder / "mkdocs.yml").exists() or (folder / ".git").exists():
            place = sha256(str(lecture).encode()).hexdigest()[:12]
            return Store(folder / FOLDER / f"{lecture.stem}-{place}")
    return None


def _read(file: Path) -> dict[str, tuple[float, bytes]]:
    """What the file holds; nothing where it cannot be trusted."""
    try:
        content = file.read_bytes() if file.stat().st_size <= 2 * MOST else b""
    except OSError:
        return {}
    start = len(MAGIC) + 65
    payload = content[start:]
    if content[:start] != MAGIC + sha256(payload).hexdigest().encode() + b"\n":
        return {}
    found = unpickled(payload)
    return found if isinstance(found, dict) and all(map(_is_entry, found.items())) else {}


def _is_entry(item: tuple[Any, Any]) -> bool:
    match item:
        case (str(), (float(), bytes())):
            return True
    return False


class _Reader(pickle.Unpickler):
    """Makes the data of records and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        found = _READABLE.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a fragment")
        return found


def unpickled(content: bytes) -> Any:
    """The data in `content`, or None where that is not what it holds."""
    try:
        return _Reader(BytesIO(content)).load()
    except Exception:  # damaged bytes may raise anything
        return None


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(exist_ok=True)
    ignore = file.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
