"""The book's calculator, as a MkDocs hook: what its page needs of `hardware.py` and `napkin*.py`.

In go these files of `lectures/`. Out come `assets/calculator-data.js`, which `assets/calculator.js`
imports, and what stands on the pages in the place of their comments: the form, tables, and cases that
are worked out while the site is built. No formula is written twice: the script is a translation of the
Python (`javascript.py`). A book without the files has neither.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from rjsmin import jsmin

import javascript
from litbook.errors import LitbookError
from litbook.html import elements
from litbook.html.elements import Html
from litbook.markdown.bibliography import Bibliography, read
from litbook.values import formatting

FORMATS = ("float32", "tf32", "bfloat16", "float16", "float8")
SHARED = ("napkin", "napkin_text", "napkin_config", "napkin_answers")  # what terminal and script both run
MODULES = ("units", "hardware", "napkin_native", *SHARED, "napkin_terminal")
EXPORTED = (
    "FIELDS", "SHAPE_FIELDS", "SECTIONS", "LARGEST", "shape_of", "shape_of_texts", "shape_texts",
    "read_question", "check", "answer", "as_markdown", "as_csv", "assumptions", "default_of", "asks",
    "size", "words", "parameter_count",
)  # fmt: skip
UNPACK = (
    "const unpack = ([kinds, rows]) => rows.map(([kind, ...row]) =>"
    " Object.fromEntries(row.map((it, i) => [kinds[kind][i], it])));\n"
)
FORM = "<!-- form -->"
CASE = re.compile(
    r"<!-- case: (?P<words>[^\n]*?) -->"
)  # the answer to a command line of napkin.py, as a table
NUMBER = re.compile(r"\{case: (?P<words>[^}|]*)\|(?P<row>[\w-]+)\}")
Row = Mapping[str, Any]

log = logging.getLogger("mkdocs.plugins.calculator")  # below `mkdocs`, so that a strict build counts warnings

# What stands for a comment of the page. It is read anew whenever MkDocs collects its files.
_shown: dict[str, str] = {}
_lectures: list[Path] = []


def on_files(files: Files, config: Any) -> Files:
    """Add the script with the formulas and tables that the calculator computes with."""
    _shown.clear()
    _lectures.clear()
    lectures = Path(config["config_file_path"]).parent / "lectures"
    if (lectures / "hardware.py").exists() and (lectures / "napkin.py").exists():
        try:
            script = _read(lectures)
        except (Exception, SystemExit) as error:  # whatever is wrong in files that an author edits
            log.warning("the calculator has no data: %s: %s", type(error).__name__, error)
        else:
            _lectures.append(lectures)
            files.append(File.generated(config, "assets/calculator-data.js", content=script))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with form, tables and worked cases in the place of its comments."""
    for comment, text in _shown.items():
        markdown = markdown.replace(comment, text)
    if _lectures and (CASE.search(markdown) or NUMBER.search(markdown)):
        with modules(_lectures[0]) as found:
            markdown = CASE.sub(lambda it: case_table(found, it["words"]), markdown)
            markdown = NUMBER.sub(lambda it: case_number(found, it["words"], it["row"]), markdown)
    return markdown


@contextmanager
def modules(lectures: Path) -> Iterator[dict[str, Any]]:
    """The modules of the calculator, read from this folder, and forgotten afterwards."""
    before = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    sys.path.insert(0, str(lectures))
    try:
        yield {name: import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(lectures))
        for name in MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(before)


def _read(lectures: Path) -> str:
    """The script; what the page shows goes to `_shown`, all of it or nothing."""
    bibliography = _bibliography(lectures / "references.bib")
    with modules(lectures) as found:
        cards = [asdict(card) for card in found["hardware"].CARDS.values()]
        models = found["napkin_terminal"].published()
        shown = {
            FORM: form(found, [*models], [card["name"] for card in cards]),
            "<!-- cards -->": cards_table(cards, bibliography),
            "<!-- recipes -->": recipes_table(found["napkin"].RECIPES, found["napkin"].SECTIONS),
            "<!-- models -->": models_table(found, models),
            "<!-- formulas -->": formulas_table(lectures, found["napkin"].SECTIONS),
        }
        script = data_script(lectures, cards, models)
    _shown.update(shown)
    return script


def data_script(lectures: Path, cards: Sequence[Row], models: Mapping[str, Row]) -> str:
    """`calculator-data.js`: the translated formulas, the device table and the models."""
    texts = {f"{name}.py": (lectures / f"{name}.py").read_text(encoding="utf-8") for name in SHARED}
    devices = [
        {
            "name": card["name"],
            "memory": card["memory"],
            "bandwidth": card["bandwidth"],
            "peaks": {name: card[name] for name in FORMATS},
        }
        for card in cards
    ]
    configs = {name: entry["config"] for name, entry in models.items()}
    tables = f"{UNPACK}export const CARDS = unpack({_script(packed(devices))});\n"
    models_packed = _script([[*configs], packed([*configs.values()])])
    tables += f"const [names, configs] = {models_packed}, found = unpack(configs);\n"
    tables += "export const MODELS = Object.fromEntries(names.map((name, i) => [name, found[i]]));\n"
    translated: str = jsmin(javascript.translate(texts, EXPORTED))
    return f"// Translated from lectures/{', '.join(texts)}.\n{translated}\n{tables}"


def packed(rows: Sequence[Row]) -> list[Any]:
    """Rows in few bytes: the names of each kind of row once, and of each row its kind and values."""
    kinds: list[list[str]] = []
    values = []
    for row in rows:
        if [*row] not in kinds:
            kinds.append([*row])
        values.append([kinds.index([*row]), *row.values()])
    return [kinds, values]


# --- the form


def form(found: Row, models: Sequence[str], cards: Sequence[str]) -> Html:
    """The fields of the page, from the same table as the terminal's options."""
    answers, config = found["napkin_answers"], found["napkin_config"]
    first = [it for it in answers.FIELDS if it.first]
    more = [it for it in answers.FIELDS if not it.first]
    jobs = [(key, said) for key, said in answers.CHOICES["job"]]
    return elements.tag(
        "div",
        _group(
            "The question",
            _select("job", "Job", jobs, "or fine-tune, or serve"),
            _select(
                "model",
                "Model",
                [*((it, it) for it in models), ("own", "your own")],
                "or a config.json, below",
            ),
            _select("device", "GPU", [(it, it) for it in cards], ""),
            *(_field(it) for it in first),
        ),
        _opened("A config.json of your own", "lb-config-part", _config()),
        _opened("More assumptions", "lb-more-part", *(_field(it) for it in more)),
        _opened("The shape of the model", "lb-shape-part", *(_shape_field(it) for it in config.SHAPE_FIELDS)),
        class_="lb-inputs",
    )


def _field(field: Any) -> Html:
    """A field of a question: a choice or a number."""
    if field.choices:
        return _select(
            field.name, field.label, [(key, said) for key, said in field.choices], field.hint, field.jobs
        )
    return _input(field.name, field.label, field.hint, field.jobs)


def _shape_field(field: Any) -> Html:
    """A field of the shape, with Hugging Face's key beside it."""
    name = f"shape-{field.name}"
    if field.kind == "count":
        return _input(name, field.label, field.key)
    choices = ("no", "yes") if field.kind == "flag" else field.kind.split()
    return _select(name, field.label, [(it, it) for it in choices], field.key)


def _config() -> Html:
    """Where a config.json is pasted, dropped or chosen."""
    return elements.tag(
        "div",
        elements.tag("label", elements.text("Paste it, or drop the file here"), for_="lb-config"),
        elements.tag(
            "textarea",
            id="lb-config",
            rows="4",
            spellcheck="false",
            aria_describedby="lb-config-hint lb-config-wrong",
        ),
        elements.tag("label", elements.text("or choose the file"), for_="lb-file"),
        elements.tag("input", id="lb-file", type="file", accept=".json,application/json"),
        elements.tag(
            "small", elements.text("It stays in this page; nothing is sent anywhere."), id="lb-config-hint"
        ),
        elements.tag("p", id="lb-config-wrong", class_="lb-wrong", role="status"),
        class_="lb-field lb-whole",
    )


def _input(name: str, label: str, hint: str, jobs: str = "pfs") -> Html:
    box = elements.tag("input", id=f"lb-{name}", name=name, aria_describedby=_described(name, hint))
    return _labelled(name, label, box, hint, jobs)


def _select(name: str, label: str, choices: Sequence[tuple[str, str]], hint: str, jobs: str = "pfs") -> Html:
    options = [
        elements.tag("option", elements.text(said), value=None if key == said else key)
        for key, said in choices
    ]
    box = elements.tag(
        "select", *options, id=f"lb-{name}", name=name, aria_describedby=_described(name, hint)
    )
    long = max(len(said) for _, said in choices) > 30  # does not fit beside another field
    return _labelled(name, label, box, hint, jobs, long)


def _described(name: str, hint: str) -> str:
    return f"lb-{name}-hint lb-{name}-wrong" if hint else f"lb-{name}-wrong"


def _labelled(name: str, label: str, box: Html, hint: str, jobs: str, wide: bool = False) -> Html:
    small = [elements.tag("small", elements.text(hint), id=f"lb-{name}-hint")] if hint else []
    return elements.tag(
        "div",
        elements.tag("label", elements.text(label), for_=f"lb-{name}"),
        box,
        *small,
        elements.tag("p", id=f"lb-{name}-wrong", class_="lb-wrong"),
        class_="lb-field lb-whole" if wide else "lb-field",
        hidden=None if "p" in jobs else "",  # the page opens with pretraining
    )


def _group(legend: str, *fields: Html) -> Html:
    return elements.tag("fieldset", elements.tag("legend", elements.text(legend)), *fields)


def _opened(summary: str, id_: str, *fields: Html) -> Html:
    return elements.tag(
        "details",
        elements.tag("summary", elements.text(summary)),
        elements.tag("div", *fields, class_="lb-grid"),
        id=id_,
    )


# --- cases that are worked out while the site is built


def answer_of(found: Row, words: str) -> Any:
    """The answer to the words of a command line, as `napkin.py` has it; quotes hold words together."""
    terminal = found["napkin_terminal"]
    try:
        answered, _ = terminal.ask(terminal.parser().parse_args(_words(words)))
    except terminal.Misused as error:
        raise LitbookError(f"a case of the page cannot be asked: {words}: {error}") from None
    return answered


def _words(line: str) -> list[str]:
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def case_table(found: Row, words: str) -> str:
    """The command, and its answer as a table with formulas and links to sections."""
    answered, sections = answer_of(found, words), found["napkin"].SECTIONS
    mark = "✓" if answered.fits else "✗"
    lines = [
        f"```console\n$ python lectures/napkin.py {words}\n```\n",
        f"**{mark} {answered.title}** {answered.text}\n",
    ]
    lines += [f"- Mind: {it}" for it in answered.warnings]
    if answered.changes:
        lines += ["", str(offers_table(answered))]
    lines += ["", "| result | value | formula, with the numbers put in |", "|---|---|---|"]
    for row in answered.rows:
        if row.part != "model":
            bound = f" ({row.bound})" if row.bound in ("upper bound", "lower bound") else ""
            lines.append(
                f"| [{row.name}]({address(sections[row.section])}) | {row.text}{bound} | {row.formula} |"
            )
    return "\n".join(lines)


def offers_table(answered: Any) -> Html:
    """What would make it fit, as the calculator's script draws it, without the buttons."""
    *heads, but = answered.heads
    rows = []
    for it in answered.changes:
        first, *cells, loss = it.cells
        remark = [elements.tag("small", elements.text(f"{but} {loss}"))] if loss else []
        others = zip(heads[1:], cells, strict=True)
        rows.append(
            elements.tag(
                "tr",
                elements.tag("td", elements.text(first), *remark),
                *(elements.tag("td", elements.text(cell), data_head=head) for head, cell in others),
            )
        )
    top = elements.tag("tr", *(elements.tag("th", elements.text(head)) for head in heads))
    return elements.tag("table", elements.tag("thead", top), elements.tag("tbody", *rows), class_="lb-offers")


def case_number(found: Row, words: str, key: str) -> str:
    """One result of a case; `text` is the verdict's sentence."""
    answered = answer_of(found, words)
    if key == "text":
        return str(answered.text)
    (text,) = (row.text for row in answered.rows if row.key == key)
    return str(text)


def address(section: str) -> str:
    """A section of the book as a link between source files of the docs."""
    page, _, anchor = section.partition("#")
    return f"lectures/{page}.md#{anchor}"


# --- tables


def formulas_table(lectures: Path, sections: Mapping[str, str]) -> str:
    """Every function of `napkin.py`: name and arguments, what it gives, and the section that proves it."""
    tree = ast.parse((lectures / "napkin.py").read_text(encoding="utf-8"))
    lines = ["| function | what it gives | shown in |", "|---|---|---|"]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            said, keys = docstring(node)
            arguments = ", ".join(a.arg for a in (*node.args.args, *node.args.kwonlyargs))
            links = ", ".join(f"[{key}]({address(sections[key])})" for key in keys)
            lines.append(f"| `{node.name}({arguments})` | {said} | {links} |")
    return "\n".join(lines)


def docstring(node: ast.FunctionDef) -> tuple[str, list[str]]:
    """The first sentence of a formula's docstring, and the keys of the sections that it names."""
    text = " ".join((ast.get_docstring(node) or "").split())
    said, _, rest = text.partition(" Section: ")
    keys = re.findall(r"(?:^|; |: )(\w+)(?=[.;]|$)", rest)
    return re.split(r"(?<=\.) ", said)[0], keys


def models_table(found: Row, models: Mapping[str, Row]) -> str:
    """Every model that has a name: parameters, active ones, cache and source."""
    napkin, shape_of = found["napkin"], found["napkin_config"].shape_of
    lines = ["| model | parameters | active per token | KV cache of a token |", "|---|--:|--:|--:|"]
    size = found["napkin_text"].size
    for name, entry in models.items():
        shape = shape_of(entry["config"], name).shape
        count, active = napkin.parameter_count(shape), napkin.active_parameters(shape)
        cache = size(napkin.cache_bytes(shape, 1, 2))
        lines.append(f"| [{name}]({entry['source']}) | {count:,} | {active:,} | {cache} |")
    return "\n".join(lines)


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


def recipes_table(recipes: Sequence[Any], sections: Mapping[str, str]) -> str:
    """Every recipe: bytes of a parameter that it trains and of a frozen one, and where the book shows it."""
    lines = [
        "| recipe | weight | gradient | master copy | optimizer | sum | frozen weight | shown in |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for it in recipes:
        frozen = f"{it.frozen:.4g}" if it.frozen else "–"
        cells = (it.name, it.parameter, it.gradient, it.master, it.state, it.total, frozen)
        lines.append(f"| {' | '.join(map(str, cells))} | [{it.section}]({address(sections[it.section])}) |")
    return "\n".join(lines)


def _bibliography(path: Path) -> Bibliography:
    """The book's sources; none where they cannot be read, which the build of the lectures says."""
    try:
        return read(path)
    except (LitbookError, OSError):
        return {}


def _script(value: Any) -> str:
    """JSON that is also a script, wherever it stands."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _source(card: Row, bibliography: Bibliography) -> str:
    entry = bibliography.get(card["source"])
    return f"{entry.title}, {card['date']}" if entry else f"{card['source']}, {card['date']}"


def _rate(rate: float | None) -> str:
    return "not available" if rate is None else formatting.number(rate / 1e12).removesuffix(".0")


def _memory(size: int) -> str:
    return f"{size / 1e9:g} GB"


def _link(card: Row, bibliography: Bibliography) -> Html:
    entry = bibliography.get(card["source"])
    text = _source(card, bibliography)
    return (
        elements.tag("a", elements.text(text), href=entry.url) if entry and entry.url else elements.text(text)
    )


def _texts(*cells: object) -> tuple[Html, ...]:
    return tuple(map(elements.text, cells))


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Html]]) -> Html:
    """A table whose first column names the row."""
    top = elements.tag("tr", *(elements.tag("th", elements.text(name), scope="col") for name in head))
    body = [
        elements.tag(
            "tr",
            elements.tag("th", row[0], scope="row"),
            *(elements.tag("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    table = elements.tag(
        "table",
        elements.tag("caption", elements.text(caption)),
        elements.tag("thead", top),
        elements.tag("tbody", *body),
        class_="lb-table",
    )
    return elements.tag(
        "div",
        table,
        class_="lb-scroll lb-wide",
        tabindex="0",
        role="region",
        aria_label=f"{caption}: table",
    )
