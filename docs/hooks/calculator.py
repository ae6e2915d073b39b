"""The book's calculator, as a MkDocs hook: what its page needs of `hardware.py` and `napkin.py`.

In go these two files of `lectures/`. Out come `assets/calculator-data.js`, which `assets/calculator.js`
imports, and the formulas and tables that stand on the page in the place of its comments. A book without the
files has neither.
"""

from __future__ import annotations

import json
import logging
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from litbook.errors import LitbookError
from litbook.render import markup, values
from litbook.render.bibliography import Bibliography, read
from litbook.render.markup import Html

FORMATS = ("float32", "tf32", "bfloat16", "float16", "float8")
Row = Mapping[str, Any]

log = logging.getLogger("mkdocs.plugins.calculator")  # below `mkdocs`, so that a strict build counts warnings

# What stands for a comment of the page. It is read anew whenever MkDocs collects its files.
_shown: dict[str, str] = {}


def on_files(files: Files, config: Any) -> Files:
    """Add the script with the numbers that the calculator computes with."""
    _shown.clear()
    lectures = Path(config["config_file_path"]).parent / "lectures"
    if (lectures / "hardware.py").exists() and (lectures / "napkin.py").exists():
        try:
            script = _read(lectures)
        except (Exception, SystemExit) as error:  # whatever is wrong in files that an author edits
            log.warning("the calculator has no data: %s: %s", type(error).__name__, error)
        else:
            files.append(File.generated(config, "assets/calculator-data.js", content=script))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with formulas and tables in the place of its comments."""
    for comment, text in _shown.items():
        markdown = markdown.replace(comment, text)
    return markdown


def _read(lectures: Path) -> str:
    """The script; what the page shows goes to `_shown`, all of it or nothing."""
    cards = [asdict(card) for card in runpy.run_path(str(lectures / "hardware.py"))["CARDS"].values()]
    napkin = runpy.run_path(str(lectures / "napkin.py"))
    recipes = [asdict(recipe) for recipe in napkin["RECIPES"]]
    limits = {name: asdict(limit) for name, limit in napkin["LIMITS"].items()}
    formulas = (lectures / "napkin.py").read_text(encoding="utf-8").partition("# --- the formulas\n")[2]
    bibliography = _bibliography(lectures / "references.bib")
    script = data(cards, recipes, limits, bibliography)
    _shown.update(
        {
            "<!-- cards -->": cards_table(cards, bibliography),
            "<!-- recipes -->": recipes_table(recipes),
            "<!-- formulas -->": f"```python\n{formulas.strip()}\n```",
        }
    )
    return script


def _bibliography(path: Path) -> Bibliography:
    """The book's sources; none where they cannot be read, which the build of the lectures says."""
    try:
        return read(path)
    except (LitbookError, OSError):
        return {}


def data(
    cards: Sequence[Row], recipes: Sequence[Row], limits: Mapping[str, Row], bibliography: Bibliography
) -> str:
    """`calculator-data.js`: what `calculator.js` imports. A format without a peak is null."""
    devices = [
        {
            "name": card["name"],
            "memory": card["memory"],
            "source": _source(card, bibliography),
            "peaks": {name: card[name] for name in FORMATS},
        }
        for card in cards
    ]
    sums = [{"key": it["key"], "name": it["name"], "bytes": _total(it)} for it in recipes]
    named = {"CARDS": devices, "RECIPES": sums, "LIMITS": limits, "FORMATS": FORMATS}
    lines = [f"export const {name} = {_script(value)};\n" for name, value in named.items()]
    return "// Written from lectures/hardware.py and lectures/napkin.py.\n" + "".join(lines)


def cards_table(cards: Sequence[Row], bibliography: Bibliography) -> Html:
    """Every card: dense peaks, memory and source."""
    head = ("device", *FORMATS, "memory", "source")
    rows = [
        (
            *_texts(card["name"], *(_rate(card[name]) for name in FORMATS), _memory(card["memory"])),
            _link(card, bibliography),
        )
        for card in cards
    ]
    return _table("Dense peak rates in TFLOP/s, and memory", head, rows)


def recipes_table(recipes: Sequence[Row]) -> Html:
    """Every recipe: the bytes that training keeps for each parameter."""
    parts = ("parameter", "gradient", "master", "state")
    rows = [_texts(it["name"], *(it[part] for part in parts), _total(it)) for it in recipes]
    return _table("Bytes per parameter", ("recipe", *parts, "sum"), rows)


def _total(recipe: Row) -> int:
    return sum(int(recipe[part]) for part in ("parameter", "gradient", "master", "state"))


def _script(value: Any) -> str:
    """JSON that is also a script, wherever it stands."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _source(card: Row, bibliography: Bibliography) -> str:
    entry = bibliography.get(card["source"])
    return f"{entry.title}, {card['date']}" if entry else f"{card['source']}, {card['date']}"


def _rate(rate: float | None) -> str:
    return "not available" if rate is None else values.number(rate / 1e12).removesuffix(".0")


def _memory(size: int) -> str:
    return f"{size / 1e9:g} GB"


def _link(card: Row, bibliography: Bibliography) -> Html:
    entry = bibliography.get(card["source"])
    text = _source(card, bibliography)
    return markup.tag("a", markup.text(text), href=entry.url) if entry and entry.url else markup.text(text)


def _texts(*cells: object) -> tuple[Html, ...]:
    return tuple(map(markup.text, cells))


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Html]]) -> Html:
    """A table whose first column names the row."""
    top = markup.tag("tr", *(markup.tag("th", markup.text(name), scope="col") for name in head))
    body = [
        markup.tag(
            "tr",
            markup.tag("th", row[0], scope="row"),
            *(markup.tag("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    table = markup.tag(
        "table",
        markup.tag("caption", markup.text(caption)),
        markup.tag("thead", top),
        markup.tag("tbody", *body),
        class_="lb-table",
    )
    return markup.tag(
        "div",
        table,
        class_="lb-scroll lb-wide",
        tabindex="0",
        role="region",
        aria_label=f"{caption}: table",
    )
