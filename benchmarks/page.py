"""Results -> the part of `docs/benchmarks.md` between its marks, which nobody writes by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import goals, pictures
from benchmarks.goals import KB, MICRO, MILLI
from benchmarks.spreads import Spread, chance, ratio, spread

Found = dict[str, Any]
START, END = "<!-- written by make bench -->", "<!-- end of what make bench writes -->"
TIMES, NONE = "\u00a0×", "–"


def write(page: Path, results: Found) -> None:
    """Put the tables of `results` between the marks of `page`. Raises `ValueError` where there are none."""
    text = page.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{page} has no line {START!r} followed by {END!r}")
    page.write_text(f"{before}{START}\n\n{tables(results)}\n\n{END}{after}", encoding="utf-8")


def tables(results: Found) -> str:
    blocks = [_machine(results), "### Against the goals", _goals(results)]
    blocks += ["### A whole process", _whole(results), "### Lines", _lines(results)]
    blocks += [
        "### Times measured inside a lecture",
        _products(results),
        "### Snapshots",
        _snapshots(results),
    ]
    if "lecture 02" in results["whole"]:
        blocks += ["### Where the time of lecture 02 goes", _parts(results)]
        blocks += ["### What the record of lecture 02 is of", _fields(results)]
    blocks += ["### Growth", _growth(results), _picture(results)]
    return "\n\n".join(blocks)


def _machine(results: Found) -> str:
    it = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in it["versions"].items())
    return (
        f"Measured on {results['date'][:10]}: {it['cpu']}, {it['cores']} cores, "
        f"{it['memory'] / 2**30:.0f} GiB, {it['os']}, Python {it['python']}, {versions}; "
        f"commit `{it['commit']}`. Torch uses one thread. "
        f"The load of the machine was {it['load'][0]:.1f} at the start and {it['load'][1]:.1f} at the end; "
        f"the run took {results['took'] / 60:.0f} minutes. Each entry is the median of its rounds, with the "
        "quartiles in parentheses."
    )


def _table(head: str, rows: list[list[str]], left: int = 1) -> str:
    names = [name.strip() for name in head.split("|")]
    rule = [":--" if i < left else "--:" for i in range(len(names))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [names, rule, *rows])


def _number(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
        return f"{value:,.{digits}f}".replace("-", "−")
    return f"{value:.1e}".replace("-", "−")


def _shown(found: Spread, unit: str = "") -> str:
    ends = f" ({_number(found.low)}–{_number(found.high)})" if found.count > 1 else ""
    return f"{_number(found.middle)}{unit}{ends}".replace(" ", "\u00a0")


def _goals(results: Found) -> str:
    rows = []
    for it in goals.judged(results):
        unit = f"\u00a0{it.goal.unit}" if it.goal.unit else ""
        verdict = "beyond the limit" if it.failed else "met" if it.met else "missed"
        rows.append(
            [
                it.goal.what,
                _shown(it.found, unit),
                f"≤\u00a0{_number(it.goal.goal)}",
                f"{_number(it.goal.limit)}",
                verdict,
            ]
        )
    return _table("what | measured | goal | limit | verdict", rows)


def _whole(results: Found) -> str:
    rows = []
    for lecture, found in results["whole"].items():
        rows.append(
            [f"{lecture}: plain Python", _shown(spread(found["seconds"]["plain"]), "\u00a0s"), "1", "", ""]
        )
        for tool, name in NAMES.items():
            if tool in found["seconds"]:
                said = found["said"].get(tool)
                rows.append(
                    [
                        f"{lecture}: {name}",
                        _shown(spread(found["seconds"][tool]), "\u00a0s"),
                        _shown(goals.outside(found, tool)),
                        _shown(goals.inside(found, tool)) if said else NONE,
                        f"{said[-1]['bytes'] / KB:,.0f} / {said[-1]['gzip'] / KB:,.0f}" if said else NONE,
                    ]
                )
            elif tool in found["failed"]:
                why = found["failed"][tool].replace("|", "\\|")
                rows.append([f"{lecture}: {name}", f"`{why}`", "", "", ""])
    return _table("run | seconds | ÷ plain | ÷ plain, inside | record, kB / gzip", rows)


NAMES = {
    "run_lecture": "`run_lecture.py --quiet --fresh --out`",
    "run_lecture, again": "the same without `--fresh`, nothing changed",
    "litbook": "run, record and pages",
    "nbconvert": "nbconvert",
    "edtrace": "edtrace",
    "edtrace, nothing inspected": "edtrace, without `@inspect`",
}


def _lines(results: Found) -> str:
    rows = []
    for name, case in results["cases"].items():
        if "lines" not in case:
            continue
        other = "edtrace" in case["seconds"]
        rows.append(
            [
                name,
                f"{case['lines']:,}",
                _shown(spread(case["seconds"]["plain"]).scaled(1 / MILLI)),
                _shown(spread(case["seconds"]["litbook"]).scaled(1 / MILLI)),
                _shown(goals.extra(case).scaled(1 / MICRO)),
                f"{case['bytes'] / KB:,.1f}",
                _shown(goals.extra(case, "edtrace").scaled(1 / MICRO)) if other else NONE,
                f"{case['edtrace bytes'] / case['small lines']:,.0f}" if other else NONE,
            ]
        )
    head = "section | lines run | plain, ms | recorded, ms | µs more per line | record, kB"
    return _table(f"{head} | edtrace, µs more per line | its bytes per line", rows)


def _products(results: Found) -> str:
    rows = []
    for name, case in results["cases"].items():
        if "lines" in case:
            continue
        seconds = case["seconds"]
        rows.append(
            [
                name,
                _shown(spread(seconds["plain"]).scaled(1 / MICRO)),
                _shown(ratio(seconds["litbook"], seconds["plain"])),
                f"{chance(seconds['litbook'], seconds['plain']):.2f}",
                _shown(ratio(seconds["edtrace"], seconds["plain"])) if "edtrace" in seconds else NONE,
            ]
        )
    return _table("what the lecture times | plain, µs | recorded ÷ plain | by chance | edtrace ÷ plain", rows)


def _snapshots(results: Found) -> str:
    rows = []
    for it in results["snapshots"]:
        seconds = it["seconds"]
        other = "edtrace" in seconds
        rows.append(
            [
                f"{it['kind']}, {_size(it['size'])}",
                _shown(spread(seconds["pass"]).scaled(1 / MILLI)),
                _shown(spread(seconds["read"]).scaled(1 / MILLI)),
                _shown(spread(seconds["litbook"]).scaled(1 / MILLI)),
                f"{it['bytes']:,}",
                _shown(spread(seconds["edtrace"]).scaled(1 / MILLI)) if other else NONE,
                f"{it['edtrace bytes']:,}" if other else NONE,
            ]
        )
    head = "tensor | its sum, ms | torch's statistics, ms | snapshot, ms | bytes"
    return _table(f"{head} | edtrace, ms | its bytes", rows)


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("kiB", 2**10)):
        if count >= size:
            return f"{count // size} {unit}"
    return f"{count} B"


def _parts(results: Found) -> str:
    said = results["whole"]["lecture 02"]["said"]
    plain = spread([it["seconds"] for it in said["plain"]])
    rows = [["the lecture in plain Python", _shown(plain)]]
    rows += [
        [name, _shown(spread([it["parts"].get(name, 0.0) for it in said["litbook"]]))]
        for name in said["litbook"][-1]["parts"]
    ]
    return _table("stage | seconds", rows)


def _fields(results: Found) -> str:
    said = results["whole"]["lecture 02"]["said"]["litbook"][-1]
    fields = sorted(said["fields"].items(), key=lambda item: -item[1][0])
    rows = [
        [name, f"{size / KB:,.1f}", f"{packed / KB:,.1f}"] for name, (size, packed) in fields if size >= 1000
    ]
    rows.append(["**whole record**", f"{said['bytes'] / KB:,.1f}", f"{said['gzip'] / KB:,.1f}"])
    for name, size in (("record", said["bytes"]), ("record without the text", said["bytes"] - said["text"])):
        rows.append([f"bytes of the {name} per byte of the lecture's text", f"{size / said['text']:.2f}", ""])
    text, packed = (size / KB for size in said["fields"]["sources"])
    why = (
        f"The goal was set before lecture 02 was written. Its text alone takes {text:,.0f} kB, {packed:,.0f} "
        "compressed, and a record holds the text whole, because pages, notebook and player come from the "
        f"record alone. All that the run adds is {said['bytes'] / KB - text:,.0f} kB, for {said['claims']:,} "
        f"claims and {said['steps']:,} steps."
    )
    return _table("field | kB | kB compressed alone", rows) + "\n\n" + why


def _growth(results: Found) -> str:
    rows = []
    for row in results["growth"]["lines"]:
        seconds = {name: f"{value / MILLI:,.0f}" for name, value in row["seconds"].items()}
        more = (row["seconds"]["run"] - row["seconds"]["plain"]) / row["lines"] / MICRO
        cells = [seconds["read"], seconds["run"], seconds["write"], seconds["render"], f"{more:,.0f}"]
        weights = [f"{row[name] / KB:,.0f}" for name in ("record", "gzip", "pages")]
        rows.append([f"{row['lines']:,} lines", *cells, *weights])
    for row in results["growth"]["steps"]:
        seconds = {name: f"{value / MILLI:,.0f}" for name, value in row["seconds"].items()}
        cells = [seconds["read"], seconds["run"], seconds["write"], seconds["render"], NONE]
        weights = [f"{row[name] / KB:,.1f}" for name in ("record", "gzip", "pages")]
        rows.append([f"{row['executed'] // 2:,} iterations", *cells, *weights])
    head = "lecture | read, ms | run, ms | write, ms | draw, ms | µs per line of text"
    return _table(f"{head} | record, kB | gzip, kB | pages, kB", rows)


def _picture(results: Found) -> str:
    caption = "Growth with the lines of a lecture, and with the iterations of a loop. Dotted: linear."
    return f"<figure>{pictures.growth(results['growth'])}<figcaption>{caption}</figcaption></figure>"
