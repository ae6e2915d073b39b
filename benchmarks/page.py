"""Results -> the part of `docs/benchmarks.md` between its marks, which nobody writes by hand."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import goals, measures, numbers, pictures
from benchmarks.measures import KB, MICRO, MILLI
from benchmarks.numbers import SPACE, number, shown
from benchmarks.spreads import chance, ratio, spread

Found = dict[str, Any]
START, END = "<!-- written by make bench -->", "<!-- end of what make bench writes -->"
NONE = "–"
NAMES = {
    "plain": "plain Python",
    "litbook": "run, record and pages",
    "run_lecture": "`run_lecture.py --quiet --out`",
    "nbconvert": "nbconvert",
    "edtrace": "edtrace",
    "edtrace, nothing inspected": "edtrace, without `@inspect`",
}


def write(page: Path, results: Found) -> None:
    """Put the tables of `results` between the marks of `page`. Raises `ValueError` where there are none."""
    text = page.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{page} has no line {START!r} followed by {END!r}")
    page.write_text(f"{before}{START}\n\n{tables(results)}\n\n{END}{after}", encoding="utf-8")


def tables(results: Found) -> str:
    """Everything between the marks. Parts of stages that were not measured are left out."""
    blocks = [_machine(results), "### Against the goals", _goals(results), _missed(results)]
    for key, heading, part in (
        ("whole", "### A whole process", _whole),
        ("whole", "### Where the time of lecture 02 goes", _parts),
        ("whole", "### What the record of lecture 02 is of", _fields),
        ("cases", "### Lines", _lines),
        ("cases", "### Times measured inside a lecture", _products),
        ("snapshots", "### Snapshots of tensors", _snapshots),
        ("pages", "### Drawing pages", _pages),
        ("build", "### A strict build", _build),
        ("save", "### A save in `make serve`", _save),
        ("commands", "### Commands that run nothing", _commands),
        ("growth", "### Growth", _growth),
        ("stages", "### The run itself", _stages),
    ):
        if key in results and (block := part(results)):
            blocks += [heading, block]
    return "\n\n".join(filter(None, blocks))


def _machine(results: Found) -> str:
    it = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in it["versions"].items())
    took = sum(stage["took"] for stage in results["stages"].values())
    return (
        f"Measured on {results['date'][:10]}: {it['cpu']}, {it['cores']} cores, "
        f"{it['memory'] / 2**30:.0f} GiB, {it['os']}, Python {it['python']}, {versions}; "
        f"commit `{it['commit']}`. Torch uses one thread. The run took {took / 60:.0f} minutes. "
        "Each entry is the median of its rounds, with the quartiles in parentheses."
    )


def _table(head: str, rows: list[list[str]], left: int = 1) -> str:
    names = [name.strip() for name in head.split("|")]
    rule = [":--" if i < left else "--:" for i in range(len(names))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [names, rule, *rows])


def _in(values: list[float], unit: float) -> str:
    return shown(spread(values).scaled(1 / unit))


# ---------------------------------------------------------------------------- the goals


def _goals(results: Found) -> str:
    rows = []
    for it in goals.judged(results):
        unit = it.goal.unit
        verdict = "**beyond the limit**" if it.failed else "met" if it.met else "*missed*"
        other = it.goal.other(results)
        after = f"{SPACE}{unit}" if unit else ""
        beside = f"{other[0]} {number(other[1].middle)}{after}".replace(" ", SPACE) if other else NONE
        bounds = [f"≤{SPACE}{numbers.plain(it.goal.goal)}", numbers.plain(it.goal.limit)]
        rows.append([it.goal.what, verdict, shown(it.found, unit, it.goal.goal), *bounds, beside])
    return _table("what | verdict | measured | goal | limit | beside it", rows, left=2)


def _missed(results: Found) -> str:
    """For each goal that is missed, why: once for those with one reason."""
    why: dict[str, list[str]] = {}
    for it in goals.judged(results):
        if not it.met:
            why.setdefault(it.goal.why(results), []).append(it.goal.what)
    if not why:
        return ""
    rows = [f"- **{'; '.join(names)}.** {text}" for text, names in why.items()]
    return "### Where a goal is missed\n\n" + "\n".join(rows)


# ---------------------------------------------------------------------------- whole processes


def _whole(results: Found) -> str:
    rows = []
    for lecture, found in results["whole"].items():
        for tool, words in NAMES.items():
            if tool in found["seconds"]:
                rows.append([f"{lecture}: {words}", *_process(found, tool)])
            elif tool in found["failed"]:
                why = found["failed"][tool].replace("|", "\\|")
                rows.append([f"{lecture}: {words}", f"did not end well: `{why}`", *[NONE] * 4])
    rows.sort(key=lambda row: row[0].partition(":")[0] != "lecture 02")
    return _table("run | seconds | ÷ plain | ÷ plain, inside | memory, MB | leaves, kB / gzip", rows)


def _process(found: Found, tool: str) -> list[str]:
    said = found["said"].get(tool, [{}])
    weights = f"{said[-1]['bytes'] / KB:,.0f} / {said[-1]['gzip'] / KB:,.0f}" if "bytes" in said[-1] else NONE
    return [
        _in(found["seconds"][tool], 1.0),
        "1" if tool == "plain" else shown(measures.outside(found, tool)),
        shown(measures.inside(found, tool)) if "seconds" in said[-1] and tool != "plain" else NONE,
        f"{median(found['memory'][tool]) / 1e6:,.0f}",
        weights,
    ]


def _parts(results: Found) -> str:
    whole = results["whole"].get("lecture 02")
    if whole is None:
        return ""
    plain = spread([it["seconds"] for it in whole["said"]["plain"]])
    rows = [["the lecture in plain Python", shown(plain), "1"]]
    for tool, of in (("plain", "plain"), ("litbook", "recorded")):
        for name, it in measures.stages(whole, tool).items():
            if not (tool == "plain" and name == "the rest"):
                after = ", after the run" if name in measures.AFTERWARDS else ""
                rows.append([f"{of}: {name}{after}", shown(it), number(it.middle / plain.middle)])
    return _table("stage | seconds | ÷ plain", rows)


def _fields(results: Found) -> str:
    whole = results["whole"].get("lecture 02")
    if whole is None:
        return ""
    said = whole["said"]["litbook"][-1]
    fields = sorted(said["fields"].items(), key=lambda item: -item[1][0])
    rows = [
        [name, f"{size / KB:,.1f}", f"{packed / KB:,.1f}"] for name, (size, packed) in fields if size >= 1000
    ]
    rows.append(["**whole record**", f"{said['bytes'] / KB:,.1f}", f"{said['gzip'] / KB:,.1f}"])
    text = said["text"]
    after = (
        f"For each byte of the lecture's text the record has {said['bytes'] / text:.2f}, of which the text "
        f"itself is one. It is of {said['claims']:,} claims and {said['steps']:,} steps."
    )
    return _table("field | kB | kB compressed alone", rows) + "\n\n" + after


# ---------------------------------------------------------------------------- inside one process


def _lines(results: Found) -> str:
    rows = []
    for name, case in results["cases"].items():
        if "lines" not in case:
            continue
        other, seconds = "edtrace" in case["seconds"], case["seconds"]
        rows.append(
            [
                name,
                f"{case['lines']:,}",
                *(_in(seconds[tool], MILLI) for tool in ("plain", "litbook", "nbconvert")),
                shown(measures.extra(case).scaled(1 / MICRO)),
                shown(measures.extra(case, "edtrace").scaled(1 / MICRO)) if other else NONE,
                f"{case['bytes'] / KB:,.1f}",
                f"{case['edtrace bytes'] / KB:,.0f} for {case['small lines']:,} lines" if other else NONE,
            ]
        )
    head = "section | lines run | plain, ms | recorded, ms | nbconvert, ms | µs more per line"
    return _table(f"{head} | edtrace, µs more per line | record, kB | edtrace's, kB", rows) if rows else ""


def _products(results: Found) -> str:
    rows = []
    for name, case in results["cases"].items():
        if "lines" in case:
            continue
        seconds = case["seconds"]
        rows.append(
            [
                name,
                _in(seconds["plain"], MICRO),
                shown(ratio(seconds["litbook"], seconds["plain"])),
                f"{chance(seconds['litbook'], seconds['plain']):.3f}",
                shown(ratio(seconds["nbconvert"], seconds["plain"])),
                shown(ratio(seconds["edtrace"], seconds["plain"])) if "edtrace" in seconds else NONE,
            ]
        )
    head = "what the lecture times | plain, µs | recorded ÷ plain | by chance | nbconvert ÷ plain"
    return _table(f"{head} | edtrace ÷ plain", rows) if rows else ""


def _snapshots(results: Found) -> str:
    rows = []
    for it in results["snapshots"].values():
        seconds = it["seconds"]
        other = "edtrace" in seconds
        rows.append(
            [
                f"{it['kind']}, {numbers.binary(it['size'])}",
                *(_in(seconds[way], MILLI) for way in ("pass", "read", "litbook")),
                f"{it['bytes']:,}",
                _in(seconds["notebook"], MILLI),
                f"{it['text bytes']:,}",
                _in(seconds["edtrace"], MILLI) if other else NONE,
                f"{it['edtrace bytes']:,}" if other else NONE,
            ]
        )
    head = "tensor | its sum, ms | torch's statistics, ms | snapshot, ms | bytes"
    return _table(f"{head} | a notebook's text, ms | its bytes | edtrace, ms | its bytes", rows)


def _pages(results: Found) -> str:
    rows = []
    for name, it in results["pages"].items():
        ours = [f"{it['bytes'] / KB:,.0f}", f"{it['largest'] / KB:,.0f}"]
        what = f"{name}: from the record, pages: {it['pages']}"
        rows.append([what, _in(it["seconds"]["litbook"], MILLI), *ours])
        if "nbconvert" in it["seconds"]:
            theirs = [f"{it['nbconvert bytes'] / KB:,.0f}"] * 2
            what = f"{name}: nbconvert, from the executed notebook, pages: 1"
            rows.append([what, _in(it["seconds"]["nbconvert"], MILLI), *theirs])
    after = (
        "Of ours without the theme's frame, which MkDocs puts around it. What edtrace writes is drawn in the "
        "browser."
    )
    return _table("page | ms | kB | kB of the largest", rows) + "\n\n" + after


# ---------------------------------------------------------------------------- what an author waits for


def _build(results: Found) -> str:
    found = results["build"]
    stages = found["said"][-1]["parts"]
    rows = [[name, _in([it["parts"][name] for it in found["said"]], 1.0)] for name in stages]
    rows.append(["**the whole process**", _in(found["seconds"], 1.0)])
    return _table("stage | seconds", rows)


def _save(results: Found) -> str:
    found = results["save"]
    rows = [[name, shown(spread([it[name] for it in found["stages"]]))] for name in found["stages"][0]]
    rows.append(["**save to new page**", shown(spread(found["seconds"]["page"]))])
    if "browser" in found["seconds"]:
        rows.append(["**save to what a browser shows**", shown(spread(found["seconds"]["browser"]))])
    after = (
        f"Each of {len(found['seconds']['page'])} saves added a line to another section of lecture 02. The "
        f"largest of its {found['pages']} pages, as served, takes {found['largest page'] / KB:,.0f} kB."
    )
    return _table("stage | seconds", rows) + "\n\n" + after


def _commands(results: Found) -> str:
    rows = [[name, _in(values, 1.0), f"{len(values)}"] for name, values in results["commands"].items()]
    return _table("command | seconds | turns", rows)


# ---------------------------------------------------------------------------- growth


def _growth(results: Found) -> str:
    found = results["growth"]
    rows = [_grown(row, row["lines"], "lines") for row in found["lines"]]
    rows += [_grown(row, row["executed"], "iterations") for row in found["steps"]]
    head = "lecture | read, ms | run, ms | write, ms | draw, ms | µs more for each"
    table = _table(f"{head} | record, kB | gzip, kB | pages, kB | edtrace, ms | its kB", rows)
    return f"{pictures.growth(found)}\n\n{table}"


def _grown(row: Found, count: int, unit: str) -> list[str]:
    count = count if unit == "lines" else count // 2  # an iteration is two lines: the `for` and its body
    more = (row["seconds"]["run"] - row["seconds"]["plain"]) / count / MICRO
    other = row.get("edtrace")
    return [
        f"{count:,} {unit}",
        *(number(row["seconds"][stage] / MILLI) for stage in ("read", "run", "write", "render")),
        number(more),
        *(f"{row[name] / KB:,.1f}" for name in ("record", "gzip", "pages")),
        number(other["seconds"] / MILLI) if other else NONE,
        f"{other['record'] / KB:,.0f}" if other else NONE,
    ]


def _stages(results: Found) -> str:
    rows = [
        [
            f"`{name}`",
            it["date"][:16].replace("T", SPACE),
            f"`{it['commit']}`",
            f"{it['took']:,.0f}",
            f"{it['load'][0]:.1f} / {it['load'][1]:.1f}",
        ]
        for name, it in results["stages"].items()
    ]
    return _table("stage | began (UTC) | commit | seconds | load, before / after", rows)
