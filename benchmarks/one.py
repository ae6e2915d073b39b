"""One run in a process of its own: `python -m benchmarks.one WAY WHAT NAME RESULT`.

WAY is `plain`, `litbook`, `edtrace` or `lectrace`, and WHAT a lecture, which the results call NAME; or WAY is
`build`, and WHAT the configuration of a site. RESULT becomes a file of pyperf: seconds inside the process,
without the imports of libraries, and bytes left.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import importlib
import json
import os
import re
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.results import Results, add, dump

FIGURES = "drawing figures as SVG"


def plain(lecture: Path, name: str, found: Results) -> None:
    """The lecture as ordinary Python: the author's words print, into nowhere. It draws no figures.

    The collector leaves the libraries' objects alone, as while a lecture is recorded: else that would differ.
    """
    gc.freeze()
    start = perf_counter()
    with silence():
        module = program(lecture)
        loaded = perf_counter()
        module.main()
    end = perf_counter()
    for kind in ("", ", without figures"):
        add(found, f"inside the process{kind} / {name}", {"plain": end - start})
    add(found, f"stages of {name} / imports and definitions", {"plain": loaded - start})
    add(found, f"stages of {name} / sections", {"plain": end - loaded})


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


def litbook(lecture: Path, name: str, found: Results) -> None:
    """Run, record, write the record, draw the pages."""
    from litbook.html import page
    from litbook.lecture import parse
    from litbook.markdown import bibliography
    from litbook.page import sitemap
    from litbook.probe import svg
    from litbook.record import encoding
    from litbook.run import run

    compiling = (run, "instrument_files", "compiling probes in")
    parts = timed((parse, "read_usable", "reading the text"), compiling, (svg, "svg", FIGURES))
    start = perf_counter()
    record = run.run(lecture)
    seconds = perf_counter() - start
    if record.count()["fails"] or any(record.errors()):
        raise RuntimeError("the lecture fails")
    without = seconds - parts.get(FIGURES, 0.0)
    parts["sections"] = sum(section.seconds for section in record.children()) - seconds + without
    parts["the rest of the run"] = seconds - sum(parts.values())
    start = perf_counter()
    text = encoding.dumps(record).encode(errors="backslashreplace")
    written = perf_counter()
    sources = lecture.parent / "references.bib"
    pages = page.pages(record, bibliography.read(sources) if sources.exists() else sitemap.NOTHING_CITED)
    parts["record as JSON"], parts["pages"] = written - start, perf_counter() - written
    add(found, f"inside the process / {name}", {"litbook": seconds})
    add(found, f"inside the process, without figures / {name}", {"litbook": without})
    for stage, took in parts.items():
        add(found, f"stages of {name} / {stage}", {"litbook": took})
    left(found, name, {"text": "".join(source.text for source in record.sources).encode(), "litbook": text})
    left(found, name, {"pages": "".join(pages.values()).encode()})
    fields = Counter[str]()
    data = json.loads(text)
    for section in [*data.pop("sections"), data]:
        fields.update({key: len(json.dumps(value, separators=(",", ":"))) for key, value in section.items()})
    for field, weight in fields.most_common(12):
        add(found, f"the record of {name} / {field}", {"bytes": weight}, "byte")


def left(found: Results, name: str, files: dict[str, bytes]) -> None:
    add(found, f"left on the disk / {name}", {who: len(it) for who, it in files.items()}, "byte")
    add(
        found,
        f"left on the disk, compressed / {name}",
        {who: packed(it) for who, it in files.items()},
        "byte",
    )


def packed(text: bytes) -> int:
    return len(gzip.compress(text, mtime=0))


def timed(*calls: tuple[Any, str, str]) -> dict[str, float]:
    """From now on each `(where, name, stage)` adds the seconds that its calls take to those of its stage."""
    parts: dict[str, float] = {}

    def watch(call: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            start = perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                parts[stage] = parts.get(stage, 0.0) + perf_counter() - start

        return watched

    for where, name, stage in calls:
        setattr(where, name, watch(getattr(where, name), stage))
    return parts


def traced(way: str, lecture: Path) -> tuple[float, bytes]:
    """The seconds of running a lecture under edtrace or lectrace, and the trace that it leaves.

    As the peer's own command does it; the lecture has its words already.
    """
    sys.path.insert(0, str(lecture.parent))
    sys.modules.pop(lecture.stem, None)
    try:
        start = perf_counter()
        with silence():
            if way == "edtrace":
                execute = importlib.import_module("edtrace.execute").execute
                trace, encoder = execute(module_name=lecture.stem, inspect_all_variables=False), None
            else:
                trace = importlib.import_module("lectrace.tracer").execute(lecture)
                encoder = importlib.import_module("lectrace.builder")._TraceEncoder
        seconds = perf_counter() - start
    finally:
        sys.settrace(None)
        sys.path.remove(str(lecture.parent))
    return seconds, json.dumps(asdict(trace), indent=2, cls=encoder).encode()


def build(config_file: Path, name: str, found: Results) -> None:
    """A strict build of a site, as `make build` has it; what no stage accounts for is MkDocs'."""
    from mkdocs.commands import build as mkdocs
    from mkdocs.config import load_config

    from litbook.html import page, player
    from litbook.notebook import build
    from litbook.record import compare

    parts = timed(  # in the thread that builds
        (Future, "result", "waiting for the lectures, each in its process"),
        (compare, "compare", "comparing with recordings"),
        (page, "pages", "drawing pages"),
        (player, "data", "what the player steps through"),
        (build, "notebooks", "notebooks"),
    )
    start = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(str(config_file), strict=True, site_dir=folder)
        config.plugins.on_startup(command="build", dirty=False)
        mkdocs.build(config)
        parts["MkDocs"] = perf_counter() - start - sum(parts.values())
        files = Path(folder, "lectures", "lecture_02").glob(
            "*/index.html"
        )  # mkdocs-jupyter draws the workbook
        served = [it.read_text(encoding="utf-8") for it in files if it.parent.name != "workbook"]
        asked = [set(re.findall(r'src="[./]*(assets/litbook/[\w.-]+\.js)"', it)) for it in served]
        scripts = max(sum(Path(folder, script).stat().st_size for script in it) for it in asked)
    for stage, took in parts.items():
        add(found, f"{name} / {stage}", {"seconds": took})
    largest = {"HTML": max(len(it.encode()) for it in served), "scripts": scripts}
    add(found, "a page as served / the largest of lecture 02", largest, "byte")


def main(way: str, what: str, name: str, result: str) -> None:
    found, path = dict[str, Any](), Path(what).resolve()
    if way == "build":
        build(path, name, found)
    else:
        import matplotlib  # noqa: F401  as `run` does: what is timed is the lecture, not the import of libraries
        import numpy  # noqa: F401
        import torch  # noqa: F401

        if way in ("plain", "litbook"):
            {"plain": plain, "litbook": litbook}[way](path, name, found)
        else:
            seconds, text = traced(way, path)
            add(found, f"inside the process / {name}", {way: seconds})
            left(found, name, {way: text})
    dump(Path(result), found)


if __name__ == "__main__":
    main(*sys.argv[1:])
