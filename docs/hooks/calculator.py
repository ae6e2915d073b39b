"""The book's calculator, as a MkDocs hook: what its page needs of `hardware.py`, `napkin.py` and lecture 03.

In go these files of `lectures/`. Out come `assets/calculator-data.js`, which `assets/calculator.js`
imports, and the formulas and tables that stand on the page in the place of its comments. No formula is
written twice: the functions are called with a `Term` for each argument, and what they give back is the
JavaScript. A book without the files has neither.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from mkdocs.structure.files import File, Files

from litbook.errors import LitbookError
from litbook.html import elements
from litbook.html.elements import Html
from litbook.markdown.bibliography import Bibliography, read
from litbook.values import formatting

BLOCK = Path("lecture_03")  # the folder of `counts.py` and `published.py`
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
    # Both import `units`, which stands beside them.
    with patch.dict(sys.modules), patch.object(sys, "path", [str(lectures), *sys.path]):
        hardware, napkin = (runpy.run_path(str(lectures / name)) for name in ("hardware.py", "napkin.py"))
    cards = [asdict(card) for card in hardware["CARDS"].values()]
    recipes = [asdict(recipe) for recipe in napkin["RECIPES"]]
    limits = {name: asdict(limit) for name, limit in napkin["LIMITS"].items()}
    formulas = (lectures / "napkin.py").read_text(encoding="utf-8").partition("# --- the formulas\n")[2]
    bibliography = _bibliography(lectures / "references.bib")
    counts, published = _of_the_block(lectures)
    models = {name: shape(config) for name, config in published["MODELS"].items()}
    script = data(cards, recipes, limits, bibliography) + block_script(models, formulas_of(napkin, counts))
    _shown.update(
        {
            "<!-- cards -->": cards_table(cards, bibliography),
            "<!-- recipes -->": recipes_table(recipes),
            "<!-- formulas -->": f"```python\n{formulas.strip()}\n```",
        }
    )
    return script


def _of_the_block(lectures: Path) -> list[dict[str, Any]]:
    """The names in `counts.py` and `published.py`, without the lecture around them, which needs PyTorch."""
    package = ModuleType("calculated")
    package.__path__ = [str(lectures / BLOCK)]
    with patch.dict(sys.modules, {package.__name__: package}):  # and forgets both afterwards
        names = [vars(import_module(f"{package.__name__}.{name}")) for name in ("counts", "published")]
    names[0]["min"] = either("Math.min", min)
    return names


def shape(config: Any) -> Row:
    """What the fields of the page say of a model: the size of its heads is there, also where it follows."""
    return {**asdict(config), "head_size": config.head}


@dataclass(frozen=True, eq=False)
class Term:
    """A number that is not known yet: arithmetic with it is written down, as JavaScript.

    It passes every check of limits, which the page makes itself. The text of a sum is in brackets.
    """

    text: str
    names: frozenset[str]  # of the fields in it

    @classmethod
    def named(cls, name: str) -> Term:
        """The number in the field of that name."""
        return cls(name, frozenset({name}))

    def _with(self, form: str, other: object) -> Term:
        text, names = (
            (other.text, other.names) if isinstance(other, Term) else (repr(other), frozenset[str]())
        )
        return Term(form.format(self.text, text), self.names | names)

    def __add__(self, other: object) -> Term:
        return self._with("({} + {})", other)

    def __radd__(self, other: object) -> Term:
        return self if other == 0 else self._with("({1} + {0})", other)  # a sum begins with zero

    def __sub__(self, other: object) -> Term:
        return self._with("({} - {})", other)

    def __rsub__(self, other: object) -> Term:
        return self._with("({1} - {0})", other)

    def __mul__(self, other: object) -> Term:
        return self._with("({} * {})", other)

    def __rmul__(self, other: object) -> Term:
        return self._with("({1} * {0})", other)

    def __truediv__(self, other: object) -> Term:
        return self._with("({} / {})", other)

    def __rtruediv__(self, other: object) -> Term:
        return self._with("({1} / {0})", other)

    def __floordiv__(self, other: object) -> Term:
        return self._with("Math.floor({} / {})", other)

    def __mod__(self, other: object) -> int:
        return 0

    def __floor__(self) -> Term:
        return Term(f"Math.floor({self.text})", self.names)

    def __ceil__(self) -> Term:
        return Term(f"Math.ceil({self.text})", self.names)

    def __gt__(self, other: object) -> Term:
        return self._with("Number({} > {})", other)

    def __ge__(self, other: object) -> bool:
        return True

    def __le__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def either(name: str, choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The smaller or the larger of two numbers, also of such that are not known yet."""

    def chosen(one: Any, other: Any) -> Any:
        if isinstance(one, Term):
            return one._with(f"{name}({{}}, {{}})", other)
        if isinstance(other, Term):
            return other._with(f"{name}({{1}}, {{0}})", one)
        return choose(one, other)

    return chosen


def formulas_of(napkin: Row, counts: Row) -> dict[str, Term]:
    """What the page shows, each under the name of its output; later ones may use what came before."""
    formulas: dict[str, Term] = {}

    def result(name: str, term: Term) -> Term:
        """The number that `term` gives, known from here on by its name."""
        formulas[name] = term
        return Term.named(name.replace("-", "_"))

    n, tokens, devices, within, mfu, bytes_, peak, memory = map(
        Term.named, ("parameters", "tokens", "devices", "within", "mfu", "bytes", "peak", "memory")
    )
    spread, sequences, again, reserve, price, watts, serving, bandwidth = map(
        Term.named, ("spread", "sequences", "again", "reserve", "price", "watts", "serving", "bandwidth")
    )
    config = counts["Config"](*map(Term.named, counts["Config"].__match_args__))
    context, layers = config.context, config.layers
    larger = napkin["work"].__globals__["max"] = either("Math.max", max)

    parameters = result("block-parameters", counts["parameter_count"](config))
    idle = 2 * counts["idle_weights"](config)  # bytes
    result("block-active", parameters - counts["idle_weights"](config))
    forward = result("block-forward", counts["forward_flops"](config, 1, context))
    result("block-training", 3 * forward)
    kept = result("block-kept", counts["activation_bytes"](config, context))
    result("block-activations", context * layers * kept)
    result("block-written", context * layers * counts["activation_bytes"](config, context, fused=False))
    result("block-token", counts["cache_bytes"](config, 1))
    cache = result("block-cache", counts["cache_bytes"](config, context))
    # Two FLOPs for each weight that a token meets, and two bytes.
    read = result("block-read", counts["forward_flops"](config, 1, 0))

    held, largest = napkin["memory_per_device"], napkin["largest_model"]
    result("work", napkin["work"](n, tokens))
    days = result("days", napkin["days"](n, tokens, devices, peak, mfu))
    result("needed", napkin["devices_for"](n, tokens, within, peak, mfu))
    hours = result("hours", napkin["device_hours"](days, devices))
    result("cost", hours * price)
    result("energy", hours * watts / 1000)
    state = result("state", held(n, bytes_, 1 + spread * (devices - 1), sharded=True))
    activations = napkin["kept_activations"](kept, layers, config.width, context, again)
    softmax = napkin["softmax_bytes"](config.vocabulary, context)
    activations = result("activations", sequences * activations)
    softmax = result("softmax", sequences * softmax)
    result("fit", state + activations + softmax)
    result("batch", napkin["most_sequences"](memory, reserve, state, (activations + softmax) / sequences))

    result("weights", 2 * parameters)
    texts = result("texts", napkin["most_sequences"](serving * memory, reserve, 2 * parameters, cache))
    rates = serving * bandwidth, serving * peak
    result("alone", 1 / napkin["decoding_seconds"](read, read, cache, 1, *rates))
    batch = larger(texts, 1)
    result("all", batch / napkin["decoding_seconds"](read + idle, read, cache, batch, *rates))

    _layout(result, napkin, config)
    result("largest-replicated", largest(memory, bytes_, sharded=False))
    result("largest-sharded", largest(memory, bytes_, devices, sharded=True))
    return formulas


def _layout(result: Callable[[str, Term], Term], napkin: Row, config: Any) -> None:
    """What devices hold and send that share a model in several ways."""
    min_ = napkin["work"].__globals__["min"] = either("Math.min", min)
    n, devices, bytes_, peak, mfu, sequences, again = map(
        Term.named, ("parameters", "devices", "bytes", "peak", "mfu", "sequences", "again")
    )
    kept, training = Term.named("block_kept"), Term.named("block_training")
    weight, gradient, zero, tensor, stages, microbatches, inside, between = map(
        Term.named, ("weight", "gradient", "zero", "tensor", "stages", "microbatches", "inside", "between")
    )
    share = tensor * stages  # among how many devices one copy of the model is cut
    ranks = result("layout-data", devices / share)
    state = result("layout-state", napkin["state_on_rank"](n / share, bytes_, weight, gradient, zero, ranks))
    batch_tokens, ahead = sequences * config.context, min_(microbatches, stages)
    activations = napkin["kept_activations"](
        kept, config.layers / stages, config.width, batch_tokens, again, ahead
    )
    activations = result("layout-activations", activations / tensor)
    result("layout-fit", state + activations)
    step_tokens = microbatches * batch_tokens
    computing = result("layout-computing", training * step_tokens / share / (peak * mfu))
    sent = result(
        "layout-products",
        napkin["sent_for_products"](step_tokens, config.width, config.layers / stages, tensor),
    )
    products = result("layout-products-time", sent / (inside * 1e9))
    sent = result(
        "layout-weights", napkin["sent_for_state"](n / share, weight, gradient, zero, ranks, microbatches)
    )
    weights = result("layout-weights-time", sent / (between * 1e9))
    result("layout-stages", napkin["sent_to_stages"](step_tokens, config.width, stages))
    waits = result("layout-bubble", napkin["bubble"](stages, microbatches))
    result("layout-step", napkin["step_seconds"](computing, products, weights, waits))


def block_script(models: Mapping[str, Row], formulas: Mapping[str, Term]) -> str:
    """The second half of `calculator-data.js`: models, and for each output its fields and its function."""
    functions = []
    for name, term in formulas.items():
        needs = sorted(term.names)
        function = f"({{ {', '.join(needs)} }}) => {term.text}"
        functions.append(f"  {_script(name)}: [{_script(needs)}, {function}],\n")
    body = "".join(functions)
    return f"export const MODELS = {_script(models)};\nexport const FORMULAS = {{\n{body}}};\n"


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
            "bandwidth": card["bandwidth"],
            "source": _source(card, bibliography),
            "peaks": {name: card[name] for name in FORMATS},
        }
        for card in cards
    ]
    sums = [
        {
            "key": it["key"],
            "name": it["name"],
            "bytes": _total(it),
            "weight": it["parameter"],
            "gradient": it["gradient"],
        }
        for it in recipes
    ]
    named = {"CARDS": devices, "RECIPES": sums, "LIMITS": limits, "FORMATS": FORMATS}
    lines = [f"export const {name} = {_script(value)};\n" for name, value in named.items()]
    return "// Written from lectures/hardware.py, napkin.py and lecture_03/counts.py.\n" + "".join(lines)


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
