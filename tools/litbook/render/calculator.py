"""What the calculator page needs of the book: its data as a script module, and the same as tables.

Cards and recipes are plain mappings here; who calls knows which files of the book they are from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from litbook.render import markup, values
from litbook.render.bibliography import Bibliography

FORMATS = ("float32", "tf32", "bfloat16", "float16", "float8")
Row = Mapping[str, Any]


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
    return "// Written by the site's hook from lectures/hardware.py and lectures/napkin.py.\n" + "".join(
        lines
    )


def cards_table(cards: Sequence[Row], bibliography: Bibliography) -> str:
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


def recipes_table(recipes: Sequence[Row]) -> str:
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


def _link(card: Row, bibliography: Bibliography) -> str:
    entry = bibliography.get(card["source"])
    text = _source(card, bibliography)
    return markup.tag("a", markup.text(text), href=entry.url) if entry and entry.url else markup.text(text)


def _texts(*cells: object) -> tuple[str, ...]:
    return tuple(map(markup.text, cells))


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names the row. Cells are HTML already."""
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
        markup.tag("caption", caption),
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
