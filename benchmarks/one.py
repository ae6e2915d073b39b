"""One lecture, run one way, in a process of its own: `python -m benchmarks.one WAY LECTURE RESULT`.

WAY is `plain`, `litbook` or `edtrace`. RESULT is a JSON file: the seconds inside the process without the
imports of libraries, the bytes of what was written, and where the seconds went.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import importlib
import io
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from litbook.record import encoding

Found = dict[str, Any]


def plain(lecture: Path) -> Found:
    """The lecture as ordinary Python: the author's words print, into nowhere.

    The collector leaves the libraries' objects alone, as while a lecture is recorded: else that would differ.
    """
    gc.freeze()
    start = perf_counter()
    with silence():
        module = program(lecture)
        loaded = perf_counter()
        module.main()
    end = perf_counter()
    parts = {"imports and definitions": loaded - start, "sections": end - loaded}
    return {"seconds": end - start, "parts": parts}


def program(lecture: Path) -> Any:
    """The lecture as a module, executed. Reading its files is part of running it, and is timed."""
    if lecture.is_dir():
        sys.path.insert(0, str(lecture.parent))
        return importlib.import_module(lecture.name)
    module = types.ModuleType(lecture.stem)
    module.__file__ = str(lecture)
    sys.modules[lecture.stem] = module
    exec(compile(lecture.read_bytes(), str(lecture), "exec", dont_inherit=True), module.__dict__)
    return module


@contextlib.contextmanager
def silence() -> Iterator[None]:
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        yield


def litbook(lecture: Path) -> Found:
    """Run, record, write the record, draw the pages."""
    from litbook.html import page
    from litbook.lecture import parse
    from litbook.probe import svg
    from litbook.run import run

    parts: dict[str, float] = {}
    for room, name, stage in (
        (parse, "read_usable", "reading the text"),
        (run, "instrument_files", "compiling probes in"),
        (svg, "svg", "drawing figures as SVG"),
    ):
        setattr(room, name, timed(getattr(room, name), parts, stage))
    start = perf_counter()
    record = run.run(lecture)
    seconds = perf_counter() - start
    sections = sum(section.seconds for section in record.children())
    parts["sections, without figures"] = sections - parts.get("drawing figures as SVG", 0.0)
    start = perf_counter()
    text = encoding.dumps(record).encode(errors="backslashreplace")
    written = perf_counter()
    known = bibliography_of(lecture)
    drawn_from = perf_counter()
    pages = page.pages(record, known)
    drawn = perf_counter()
    parts["record as JSON"], parts["pages"] = written - start, drawn - drawn_from
    counts = record.count()
    return {
        "seconds": seconds,
        "parts": parts,
        "bytes": len(text),
        "gzip": len(gzip.compress(text, mtime=0)),
        "claims": counts["holds"],
        "failing": counts["fails"] + len(list(record.errors())),
        "steps": sum(len(section.steps) for section in record.sections),
        "text": sum(len(source.text.encode()) for source in record.sources),
        "pages": len(pages),
        "largest page": max(len(it.encode()) for it in pages.values()),
        "all pages": sum(len(it.encode()) for it in pages.values()),
        "fields": fields(text),
    }


def bibliography_of(lecture: Path) -> Any:
    """What the lecture may cite: the sources beside it, if there are any."""
    from litbook.markdown import bibliography
    from litbook.page import sitemap

    sources = lecture.parent / "references.bib"
    return bibliography.read(sources) if sources.exists() else sitemap.NOTHING_CITED


def fields(text: bytes) -> Found:
    """What a record's bytes are of: its fields, those of sections, pieces by kind; plain and compressed."""
    data = json.loads(text)
    sections: dict[str, list[Any]] = {}
    for section in data.pop("sections"):
        for name, value in section.items():
            sections.setdefault(name, []).append(value)
    pieces = [piece for several in sections.pop("pieces", []) for piece in several]
    found = {**data, **{f"sections: {name}": value for name, value in sections.items()}}
    for kind in sorted({piece["kind"] for piece in pieces}):
        found[f"pieces: {kind}"] = [piece for piece in pieces if piece["kind"] == kind]
    return {name: _weights(value) for name, value in found.items()}


def _weights(value: Any) -> list[int]:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
    return [len(text), len(gzip.compress(text, mtime=0))]


def timed(call: Callable[..., Any], parts: dict[str, float], name: str) -> Callable[..., Any]:
    """The call, which from now on adds its seconds to those of `name` in `parts`."""

    def watched(*arguments: Any, **named: Any) -> Any:
        start = perf_counter()
        try:
            return call(*arguments, **named)
        finally:
            parts[name] = parts.get(name, 0.0) + perf_counter() - start

    return watched


def edtrace(lecture: Path) -> Found:
    """As edtrace's own command does it; `lecture` has been renamed by `texts.for_edtrace`."""
    from dataclasses import asdict

    execute = importlib.import_module("edtrace.execute").execute
    sys.path.insert(0, str(lecture.parent))
    start = perf_counter()
    with silence():
        traced = execute(module_name=lecture.stem, inspect_all_variables=False)
    seconds = perf_counter() - start
    file = io.StringIO()
    json.dump(asdict(traced), file, indent=2)
    text = file.getvalue().encode()
    return {
        "seconds": seconds,
        "parts": {"record as JSON": perf_counter() - start - seconds},
        "bytes": len(text),
        "gzip": len(gzip.compress(text, mtime=0)),
        "steps": len(traced.steps),
    }


WAYS: dict[str, Callable[[Path], Found]] = {"plain": plain, "litbook": litbook, "edtrace": edtrace}


def main(way: str, lecture: str, result: str) -> None:
    import matplotlib  # noqa: F401  as `run` does: what is timed is the lecture, not the import of libraries
    import numpy  # noqa: F401
    import torch  # noqa: F401

    found = WAYS[way](Path(lecture).resolve())
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
