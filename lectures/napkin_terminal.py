"""The calculator in a terminal: a config.json and options in, a table or JSON out.

In go the words of a command line, out come text and an exit status: 0 it fits, 1 it does not, 2 it cannot be
asked. Nothing is sent anywhere. The answers are those of `napkin_answers.py`.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hardware import CARDS, Card
from napkin import SECTIONS
from napkin_answers import (
    CHOICES, FIELDS, Answer, Device, answer, as_csv, as_markdown, asks, assumptions, check, default_of, read_question,
)
from napkin_config import LARGEST, Reading, shape_of

FORMATS = ("float32", "tf32", "bfloat16", "float16", "float8")
PARTS = {"fit": "Memory", "run": "The run", "serve": "Serving", "traffic": "Traffic in a step", "model": "The model"}


class Misused(Exception):
    """What cannot be asked, on one line."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with this line."""
        raise Misused(message)


@cache
def published() -> dict[str, dict[str, Any]]:
    """The models that have a name here: configuration, published total and source of each."""
    text = Path(__file__).with_name("napkin_models.json").read_text(encoding="utf-8")
    models: dict[str, dict[str, Any]] = json.loads(text)
    return models


def device_of(card: Card) -> Device:
    """A card of `hardware.py` as the formulas take it; its memory is the one that it is sold by."""
    return Device(card.name, float(card.memory), card.bandwidth, {name: getattr(card, name) for name in FORMATS})


def nearest(name: str, known: Sequence[str]) -> str:
    """What is like a name that is not known."""
    lower = {it.lower(): it for it in known}
    begin = [it for it in lower if it.startswith(name.strip().lower())] if name.strip() else []
    if found := begin[:5] or get_close_matches(name.lower(), lower, 3, 0.3):
        return f"did you mean {' or '.join(lower[it] for it in found)}?"
    return f"there are {', '.join(known)}"


def named_device(name: str) -> Device:
    """The device of this name, in any case."""
    for card in CARDS.values():
        if card.name.lower() == name.strip().lower():
            return device_of(card)
    raise Misused(f"no device {name!r}: {nearest(name, [*CARDS])}")


def read_model(name: str) -> Reading:
    """The shape of a config.json, or of a model of the list."""
    for known, entry in published().items():
        if known.lower() == name.strip().lower():
            return shape_of(entry["config"], known)
    path = Path(name)
    if name != "-" and not path.is_file():
        raise Misused(f"no file and no model {name!r}: {nearest(name, [*published()])}")
    text = sys.stdin.read() if name == "-" else path.read_text(encoding="utf-8", errors="replace")
    if len(text) > LARGEST:
        raise Misused(f"{name} has {len(text):,} characters; a config.json has a few thousand")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{name} is no JSON: {str(error) or 'nested too deeply'}") from None
    reading = shape_of(config, path.parent.name if path.name == "config.json" and path.parent.name else path.stem)
    if reading.shape is None:
        raise Misused(f"{name}: {reading.wrong}")
    return reading


def parser() -> Parser:
    """The options: one for each field of the calculator."""
    result = Parser(
        "napkin.py",
        description="Does a model fit, how long does it train, how fast does it serve?",
        epilog="In [brackets] is what an option is where nobody gives it, in pretrain, finetune and serve where these differ. "
        "Exit status: 0 it fits, 1 it does not, 2 it cannot be asked.",
    )
    result.add_argument("model", nargs="?", help="a config.json, - for standard input, or the name of a model: --list")
    result.add_argument("--job", default="pretrain", help="pretrain, finetune or serve [pretrain]")
    result.add_argument("--device", default="H100 SXM", help="a GPU of lectures/hardware.py [H100 SXM]")
    for field in FIELDS:
        choices = f": {', '.join(c[0] for c in field.choices)}" if field.choices else f", {field.hint}"
        own = {default_of(field, job): None for job in ("pretrain", "finetune", "serve") if asks(field, job)}
        default = f" [{', '.join(text or 'empty' for text in own)}]"
        result.add_argument(f"--{field.name}", metavar="X", help=f"{field.label}{choices}{default}".replace("%", "%%"))
    form = result.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs; sizes in bytes, times in seconds")
    form.add_argument("--markdown", action="store_true", help="tables to take along")
    form.add_argument("--csv", action="store_true", help="the same for a spreadsheet")
    result.add_argument("--list", action="store_true", help="the models and devices that have a name")
    return result


def show(found: Answer, given: list[list[str]], console: Console) -> None:
    """The answer as tables, below what was asked."""
    asked = dict(given)
    job = dict(CHOICES["job"])[asked["Job"]]
    console.print(f"[dim]{escape(job)} {escape(asked['Model'])} on {escape(asked['GPUs'])} × {escape(asked['Device'])}[/]")
    mark, style = ("✓", "bold green") if found.fits else ("✗", "bold red")
    console.print(f"[{style}]{mark} {found.title}[/] {escape(found.text)}")
    for warning in found.warnings:
        console.print(f"  [yellow]Mind:[/] {escape(warning)}")
    if found.changes:
        offers = Table(box=None, pad_edge=False, header_style="bold")
        for head in found.heads:
            offers.add_column(head, overflow="fold")
        for change in found.changes:
            options = " ".join(f"--{name} {text}" for name, text in change.fields.items())
            what, *cells = map(escape, change.cells)
            offers.add_row(f"{what} [dim]{escape(options)}[/]", *cells)
        console.print(offers)
    table = Table(box=None, pad_edge=False, show_header=False)
    wide = console.width >= 120  # room for formulas
    for column in ("", "", "", *(["formula"] if wide else [])):
        table.add_column(column, overflow="fold")
    part = ""
    for row in found.rows:
        if row.part != part:
            part = row.part
            table.add_row(f"[bold]{PARTS[part]}[/]")
        bound = f"{row.bound}; " if row.bound else ""
        formula = [f"[dim]{escape(row.formula)}[/]"] if wide else []
        table.add_row(escape(row.name), escape(row.text), escape(bound + row.remark), *formula)
    console.print(table)
    console.print("[dim]" + escape("Assumed: " + "; ".join(f"{name} {text}" for name, text in given)) + "[/]")


def ask(options: argparse.Namespace) -> tuple[Answer, list[list[str]]]:
    """The answer to a command line, and what it rests on."""
    if options.model is None:
        raise Misused("give a config.json, or the name of a model: --list names them")
    reading, device = read_model(options.model), named_device(options.device)
    assert reading.shape is not None
    texts = {f.name: text for f in FIELDS if (text := getattr(options, f.name)) is not None}
    texts |= {f.name: texts[f.name].lower() for f in FIELDS if f.choices and f.name in texts}
    for field in FIELDS:
        if field.name in texts and options.job in ("pretrain", "finetune", "serve") and not asks(field, options.job):
            raise Misused(f"--{field.name} is nothing that {options.job} asks for")
    texts["job"] = options.job
    if options.job == "serve":
        texts.setdefault("precision", reading.precision)
    asked = read_question(texts)
    wrong = asked.wrong or check(asked.question, reading.shape, device)
    if wrong:
        raise Misused("; ".join(f"--{name}: {text}" for name, text in wrong.items()))
    found = answer(asked.question, reading.shape, device, reading.left_out)
    return found, assumptions(texts, reading.shape, device)


class Terminal(Console):
    """A console that says so when its reader has gone away, where rich would end with a status of its own."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise it again."""
        raise BrokenPipeError


def say(found: Answer, given: list[list[str]], options: argparse.Namespace) -> None:
    """Print the answer in the form that was asked for."""
    if options.json:
        rows = [{**asdict(row), "section": SECTIONS[row.section]} for row in found.rows]
        print(json.dumps({**asdict(found), "rows": rows, "assumptions": dict(given)}, indent=2, ensure_ascii=False))
    elif options.markdown or options.csv:
        print((as_markdown if options.markdown else as_csv)(found, given), end="")
    else:
        show(found, given, Terminal(soft_wrap=False))


def main(words: Sequence[str] | None = None) -> int:
    """Answer a command line; the exit status, which stands also where nobody reads the answer (`| head`)."""
    try:
        options = parser().parse_args(words)
        found = given = None
        if not options.list:
            found, given = ask(options)
    except Misused as error:
        print(f"napkin.py: {error}", file=sys.stderr)
        return 2
    try:
        if found and given:
            say(found, given, options)
        else:
            print("\n".join(["models:", *(f"  {it}" for it in published()), "devices:", *(f"  {it}" for it in CARDS)]))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still held back
    return 0 if found is None or found.fits else 1
