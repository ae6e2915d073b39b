"""What stands in for litbook inside a notebook: the text of this file is the notebook's own `litbook.py`.

A notebook must run where litbook is not; where it is installed, this module itself is used. The book says its
recorded values with the same functions, so that a run of the notebook prints the same text.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
import functools
import io
import itertools
import math
import random
import re
import sys
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from concurrent.futures import ThreadPoolExecutor
from inspect import cleandoc
from typing import Any

if __name__ == "litbook":  # in a notebook, which brings that file along, too
    from litbook_amounts import amount, brief, grid, short  # type: ignore[import-not-found, unused-ignore]
else:
    from litbook.values.units import amount, brief, grid, short

__all__ = ["aside", "explore", "figure", "image", "link", "misbelief", "note", "question", "recording",
           "requires", "speaker_note", "word"]  # fmt: skip


def show(name: str, value: Any, unit: str = "", *, measured: bool = False) -> None:
    """Print `name = value`. In a loop only the first three times, then an ellipsis once."""
    from IPython import get_ipython

    cell = get_ipython().execution_count
    if SHOWN.get("cell") != cell:
        SHOWN.clear()
        SHOWN["cell"] = cell
    caller = sys._getframe(1)
    place = caller.f_code.co_name, caller.f_lineno, name
    SHOWN[place] = SHOWN.get(place, 0) + 1
    if SHOWN[place] <= 3:
        text = cut_text(format_value(value, unit))
        print(f"{name} = {one_line(text)}   (measured here)" if measured else f"{name} = {text}")
    elif SHOWN[place] == 4:
        print(f"{name} …")


SHOWN: dict[Any, int] = {}


def format_value(value: Any, unit: str = "", depth: int = 0) -> str:
    """A value in one line: numbers with their unit, tensors with dtype, shape and, if few, their values."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if (torch and isinstance(value, torch.Tensor)) or (numpy and isinstance(value, numpy.ndarray)):
        return spelled_tensor(value, unit, depth)
    if numpy and isinstance(value, numpy.generic) and isinstance(value.item(), int | float):
        value = value.item()
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, int | float):
        return number(value, unit, bool(depth))
    if isinstance(value, str | bytes | bytearray):
        return quote_text(repr(value[:1000]), len(value) > 1000)
    pairs = fields(value)
    views = (list, tuple, set, frozenset, range, deque, KeysView, ValuesView, ItemsView)
    if depth >= 3 and (pairs is not None or isinstance(value, views)):
        return "…"
    if pairs is not None:
        plain = isinstance(value, dict)
        texts = [
            (format_value(k, "", depth + 1) if plain else str(k), format_value(v, unit, depth + 1))
            for k, v in pairs[:12]
        ]
        return mapping("" if plain else type(value).__name__, texts, len(pairs))
    if isinstance(value, views):
        alike = {type(member) for member in value} in ({str}, {int})
        members = sorted(value) if isinstance(value, set | frozenset) and alike else list(value)
        return sequence(
            type(value).__name__, [format_value(v, unit, depth + 1) for v in members[:12]], len(members)
        )
    return describe_object(value)


def number(value: Any, unit: str = "", inside: bool = False) -> str:
    """A number with its unit; thousands have commas, except inside brackets."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > 2000:
            return f"an integer of {value.bit_length()} bits {unit}".strip()
        if inside and not unit:
            return str(value)
    return str(brief(value, unit) if inside else amount(value, unit))


def quote_text(text: str, cut: bool) -> str:
    """A text's repr, or its beginning."""
    return text[:200] + "…" if cut or len(text) > 200 else text


def one_line(text: str) -> str:
    """A tensor's rows behind each other."""
    return text.replace("\n", "")


def cut_text(text: str) -> str:
    """At most 1,000 characters."""
    return text if len(text) <= 1000 else text[:1000] + "…"


def sequence(kind: str, texts: list[str], length: int) -> str:
    """The first items of a list, a tuple, a set, and how many there are."""
    if not length and kind in ("set", "frozenset", "deque"):
        return f"{kind}()"
    texts = [*texts, f"… {length:,} in all"] if length > len(texts) else texts
    braces = dict.fromkeys(("dict", "set", "frozenset"), ("{", "}"))
    opening, closing = {"list": ("[", "]"), **braces}.get(kind, ("(", ")"))
    comma = "," if opening == "(" and length == 1 else ""
    return f"{opening}{', '.join(texts)}{comma}{closing}"


def mapping(kind: str, pairs: list[tuple[str, str]], length: int) -> str:
    """The first pairs of a dictionary, or the first fields of an object of class `kind`."""
    inside = sequence("dict", [f"{name}{'=' if kind else ': '}{value}" for name, value in pairs], length)
    return f"{kind}({inside[1:-1]})" if kind else inside


def fields(value: Any) -> list[tuple[Any, Any]] | None:
    """What a dictionary, a named tuple, a dataclass, a number format or a plain object holds; else None."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple) and (hasattr(value, "_fields") or hasattr(value, "n_fields")):
        names: Any = getattr(value, "_fields", None) or getattr(type(value), "__match_args__", ())
        return list(zip(names, value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if hasattr(value, f.name)]
    if type(value).__name__ in ("finfo", "iinfo") and type(value).__module__ == "torch":
        listed = ("bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution", "dtype")
        return [(name, getattr(value, name)) for name in listed if hasattr(value, name)]
    kind: Any = type(value)
    if kind.__repr__ is object.__repr__ and getattr(value, "__dict__", None):
        return list(vars(value).items())
    return None


def spelled_tensor(value: Any, unit: str = "", depth: int = 0) -> str:
    """A tensor or array."""
    device, dtype = str(getattr(value, "device", "cpu")), str(value.dtype).removeprefix("torch.")
    values: list[Any] = []
    if device == "cpu" and math.prod(value.shape) <= 64:
        with contextlib.suppress(Exception):  # where its layout or dtype does not give them
            values = list(value.flatten().tolist())
    text = tensor(dtype, tuple(value.shape), device, value.nbytes, values, unit, depth)
    if unit == "bits" and 0 < len(values) <= 8 and dtype in FORMATS and hasattr(value, "detach"):
        torch = sys.modules["torch"]
        whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
        text += bits(value.detach().flatten().view(whole).tolist(), dtype)
    return text


FORMATS = {
    "float64": (64, 11),
    "float32": (32, 8),
    "float16": (16, 5),
    "bfloat16": (16, 8),
    "float8_e4m3fn": (8, 4),
    "float8_e5m2": (8, 5),
}


def bits(patterns: list[int], dtype: str) -> str:
    """Floats as they are stored: sign, exponent and fraction. A format has so many bits, and of exponent."""
    total, exponent = FORMATS[dtype]
    texts = [f"{pattern % 2**total:0{total}b}" for pattern in patterns]
    return ", bits " + ", ".join(f"{t[0]} {t[1 : 1 + exponent]} {t[1 + exponent :]}" for t in texts)


def tensor(
    dtype: str,
    shape: tuple[int, ...],
    device: str,
    size: int,
    values: list[Any],
    unit: str,
    depth: int,
) -> str:
    """What is said of a tensor: a number, or dtype and shape with all values or with the size."""
    where = "" if device == "cpu" else f" on {device}"
    if values and not shape:
        return f"{number(values[0], '' if unit == 'bits' else unit)} ({dtype}{where})"
    head = f"{dtype} {sequence('tuple', [str(n) for n in shape], len(shape))}{where}"
    if not values or depth:
        return f"{head}, {size:,} B"
    if len(shape) == 1 or len(values) <= 6:
        return f"{head}: {grid(values, shape)}"
    step = len(values) // shape[0]
    rows = [grid(values[i : i + step], shape[1:]) for i in range(0, len(values), step)]
    return f"{head}: [\n    " + ",\n    ".join(rows) + "]"


def describe_object(value: Any) -> str:
    """Any other object: a class or function by its name, a network by its size, the rest by its repr."""
    torch = sys.modules.get("torch")
    if isinstance(value, BaseException):
        return str(value)
    if torch and isinstance(value, torch.nn.Module):
        return f"{type(value).__name__} with {sum(p.numel() for p in value.parameters()):,} parameters"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__).rpartition(".")[2]
    try:
        return quote_text(re.sub(r" at 0x[0-9a-fA-F]{4,}", "", repr(value)), cut=False)
    except Exception as error:
        return f"(repr raised {type(error).__name__})"


SEED = 0


def reseed() -> None:
    """Every section starts from the same random state: its values do not depend on what ran before."""
    random.seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(SEED)


def section(function: Callable[[], Any]) -> Callable[[], Any]:
    """A section that stays a function; who calls it goes on with the random numbers from before."""

    @functools.wraps(function)
    def run() -> Any:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        mine = random.getstate(), numpy and numpy.random.get_state(), torch and torch.get_rng_state()
        reseed()
        try:
            return function()
        finally:
            random.setstate(mine[0])
            if numpy and mine[1]:
                numpy.random.set_state(mine[1])
            if torch and mine[2] is not None:
                torch.set_rng_state(mine[2])

    return run


def show_answer(value: Any, unit: str = "") -> None:
    """What a question's answer is computed as, to be opened."""
    note(folded_answer(cut_text(format_value(value, unit))))


def folded_answer(text: str) -> str:
    """An answer as Markdown that stays closed until somebody opens it."""
    inside = f"answer = {text}".replace("\n", "\n    ")
    return f"<details><summary>Answer, computed</summary>\n\n    {inside}\n\n</details>"


def display(*pieces: tuple[str, str]) -> None:
    """Show texts and pictures below the cell: of each its kind of `IPython.display`, and what it is."""
    if HANDED:  # on a rank, whose launcher shows it
        HANDED.append(pieces)
        return
    from IPython import display as shown

    for kind, data in pieces:
        shown.display(getattr(shown, kind)(data))


SAID: dict[str, str] = {}  # `[@fig:rate]`, `[@key]`: what the notebook says for each, in words


def render_note(text: str, wordings: dict[str, str] = SAID) -> str:
    """A note as Jupyter shows it: its own Markdown, but for names and citations."""
    for mark, words in wordings.items():
        text = text.replace(mark, words)
    return text


def note(text: str) -> None:
    """Prose, from inside a function or a loop."""
    display(("Markdown", render_note(cleandoc(text))))


def misbelief(said: str, run: str) -> None:
    """What is commonly said, and what the machine says."""
    text = f"**Commonly said:** {cleandoc(said)}\n\n**Run:** {cleandoc(run)}"
    note("> " + text.replace("\n", "\n> "))


def question(text: str, *, answer: object, unit: str | None = None, **_: object) -> None:
    """A question with its answer."""
    note(f"**Check yourself.** {cleandoc(text)}")
    note(folded_answer(cut_text(format_value(answer, unit or ""))))


def figure(fig: Any, *, caption: str, alt: str) -> None:
    """A Matplotlib figure as SVG, with its caption; of several ranks only the first one's is shown."""
    if HANDED and HANDED[0]:
        return
    file = io.StringIO()
    fig.savefig(file, format="svg", bbox_inches="tight")
    display(
        ("SVG", file.getvalue()), *([("Markdown", f"*{render_note(cleandoc(caption))}*")] if caption else [])
    )


def explore(
    function: Any, *, over: Any, at: Any, caption: str, alt: str, do: str = "", see: str = "", **options: Any
) -> dict[Any, Any]:
    """A picture with sliders: its numbers where the author starts and at both ends, as widgets too.

    Of one that a script draws, which does not travel with the notebook, what stands there without it.
    """
    if options.get("module"):
        figure(options["still"], caption="", alt=alt)
        note("\n\n".join(filter(None, [caption and f"*{cleandoc(caption)}*", cleandoc(do), cleandoc(see)])))
        return _Asked(function, over)
    unit = options.get("unit") or ""
    places = [dict(zip(over, several, strict=True)) for several in itertools.product(*over.values())]

    def told_at(place: Any) -> dict[str, str]:
        numbers = function(**place)
        numbers = numbers if isinstance(numbers, dict) else {"": numbers}
        return {
            str(name): short(getattr(n, "item", lambda value=n: value)(), unit) for name, n in numbers.items()
        }

    columns = []
    for place in (at, places[0], places[-1]):
        head = ", ".join(f"{name.replace('_', ' ')} {place_text(value)}" for name, value in place.items())
        with contextlib.suppress(Exception):  # a point at which the function raises is a gap
            columns.append((head, told_at(place)))
    note(explore_markdown(columns, *map(cleandoc, (do, caption, see))))
    with contextlib.suppress(ImportError):
        import ipywidgets  # type: ignore[import-not-found, unused-ignore]

        sliders = {
            name: ipywidgets.SelectionSlider(
                options=[(place_text(value), value) for value in values],
                value=at[name],
                description=name,
            )
            for name, values in over.items()
        }
        ipywidgets.interact(lambda **place: print(told_at(place)), **sliders)
    results = {}
    for place in places:
        with contextlib.suppress(Exception):
            results[(*place.values(),) if len(over) > 1 else place[next(iter(over))]] = function(**place)
    return results


class _Asked(dict[Any, Any]):
    """What a function gives, asked when somebody wants to know."""

    def __init__(self, function: Any, over: Any) -> None:
        self.function, self.over = function, over

    def __missing__(self, place: Any) -> Any:
        places = place if len(self.over) > 1 else (place,)
        return self.function(**dict(zip(self.over, places, strict=True)))


def place_text(place: Any) -> str:
    """A place of a slider."""
    return place if isinstance(place, str) else short(place)


def explore_markdown(columns: list[tuple[str, dict[str, str]]], do: str, caption: str, see: str) -> str:
    """What a picture with sliders shows at some of its points, as Markdown."""
    columns = [column for i, column in enumerate(columns) if column not in columns[:i]]
    rows = [["", *(head for head, _ in columns)]]
    rows += [[name, *(texts[name] for _, texts in columns)] for name in columns[0][1]]
    cells = [[re.sub(r"([\\`*_<>|$[])", r"\\\1", text) for text in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    table = "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    return "\n\n".join(filter(None, [caption and f"*{caption}*", do, table, see]))


def image(path: object, *, alt: str, caption: str = "", width: int | None = None) -> None:
    """A picture that does not travel with the notebook: what it shows, in words."""
    note(f"*Picture: {cleandoc(alt)}*")


def link(target: object, text: str = "") -> None:
    """A link, from inside a function or a loop."""
    note(text or str(getattr(target, "__name__", target)))


def speaker_note(text: str) -> None:
    """What a lecturer says; a reader needs none of it."""


def recording() -> bool:
    """Whether the lecture is being recorded: a notebook is not."""
    return False


DEVICES: set[str] = set()  # what a section may need that torch may not have here


def has_device(name: str) -> bool:
    """Whether torch has such a device here: some sections need one."""
    module: Any = getattr(sys.modules.get("torch"), name, None)
    return bool(module and module.is_available())


def aside(function: Any) -> Any:
    """A section off the main path is as good as any other."""
    return function


word = aside  # nor does what an author declares a word do anything else here


def requires(need: str) -> Callable[[Any], Any]:
    """A section that needs a device does nothing where there is none; one on ranks is launched."""
    ranks, device = re.search(r"(simulated )?ranks=(\d+)", need), need.partition(",")[0]

    def wrap(function: Callable[[], Any]) -> Callable[[], Any]:
        if device in DEVICES and not has_device(device):
            return lambda: None
        if ranks is None:
            return function
        start = run_simulated if ranks[1] else run_launched
        return functools.wraps(function)(functools.partial(start, function, int(ranks[2])))

    return wrap


def run_simulated(function: Callable[[], Any], world: int) -> None:
    """Run a section as rank 0 of so many, whose group sends nothing."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
    try:
        function()
    finally:
        dist.destroy_process_group()


def run_launched(function: Callable[[], Any], world: int) -> None:
    """Run a section as so many processes, forked from this one. What they print stands by rank."""
    import os
    import pathlib
    import tempfile

    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ["OMP_NUM_THREADS"] = "1"
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=world, run_id=function.__name__, rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", local_addr="127.0.0.1", start_method="fork", max_restarts=0,
        monitor_interval=0.05,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        left = elastic_launch(config, as_rank)(function, str(pathlib.Path(folder, "met")))
    print(by_rank([left[rank][0] for rank in range(world)]), end="")
    for pieces in left[0][1]:
        display(*pieces)
    errors = [(rank, left[rank][2]) for rank in range(world) if left[rank][2]]
    if errors:  # that of a rank which others waited for says why they did
        raise RuntimeError("rank {}: {}".format(*min(errors, key=lambda error: "peer" in error[1])))


def as_rank(function: Callable[[], Any], place: str) -> tuple[str, list[Any], str]:
    """The section on one rank: what it printed, what it handed over, and what it raised.

    The ranks meet in a file. A connection to the launcher, whose thread serves it in the kernel that this
    process is forked from, hung once in 285 launches.
    """
    import datetime
    import gc
    import os

    import torch
    import torch.distributed as dist

    gc.freeze()  # what the kernel holds is no garbage of a rank, and takes long to look through
    torch.set_num_threads(1)
    rank, world = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    HANDED[:] = [rank]  # from here on what is handed over is kept
    error, out = "", io.StringIO()
    met, limit = dist.FileStore(place, world), datetime.timedelta(seconds=30)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=met, rank=rank, world_size=world, timeout=limit)
    try:
        with contextlib.redirect_stdout(out):
            function()
        dist.barrier()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    dist.destroy_process_group()
    return out.getvalue(), HANDED[1:], error


HANDED: list[Any] = []


def by_rank(texts: list[str]) -> str:
    """What the ranks printed: once where all did alike, else each line behind its rank."""
    if len(set(texts)) == 1:
        return texts[0]
    lines = ((rank, line) for rank, text in enumerate(texts) for line in text.splitlines())
    return "".join(f"rank {rank}: {line}\n" for rank, line in lines)


def run_coroutine(coroutine: Any, **options: Any) -> Any:
    """`asyncio.run` for a notebook, whose own event loop is already running in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.runners.run(coroutine, **options)).result()


def say_word(word: str) -> Callable[..., None]:
    """A word for which nothing stands here hands over a text: the notebook says it."""
    if word.startswith("_"):
        raise AttributeError(word)
    return lambda text, *_, **__: note(text)


def start(seed: int, said: dict[str, str], devices: list[str]) -> None:
    """Be what a notebook's cells import as litbook, with what is so in that notebook alone."""
    global SEED
    SEED = seed
    SAID.update(said)
    DEVICES.update(devices)
    asyncio.run = run_coroutine  # type: ignore[assignment]  # any coroutine, as there
    globals()["__getattr__"] = say_word
    sys.modules["litbook"] = sys.modules[__name__]
