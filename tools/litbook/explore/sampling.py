"""A function over one slider or two -> its values at every place, before anybody moves anything.

A function that gives something else the second time would show what no run can show again: some points are
computed once more, in another order, and where one differs the whole grid is refused.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from litbook.errors import AuthorError
from litbook.probe.messages import cut_message
from litbook.record.limits import GRID, POINTS, REPEATED, SAMPLED
from litbook.record.model import ChartKind, Grid, Live, Number, Slider, number

SliderValue = int | float | str
Given = TypeVar("Given", bound=Mapping[str, object] | Sequence[object] | int | float)
"""What a function gives at a point: a number, several by name; for a script to draw also lists and texts."""

MOST_SLIDERS, MOST_NAMES = 2, 6
MOST_MOVED = 8  # sliders of a picture that a script draws
WHY = 80  # characters of the reason why a point has no value
_json = json.JSONEncoder(separators=(",", ":")).encode
# What no author means to raise: a picture would show it as a gap.
_SLIPS = (AttributeError, ImportError, NameError, TypeError)
_WAY_OUT_SLIP = "where there is no value, raise ValueError with the sentence that the picture shows there"
EXAMPLE = 'over={"batch": [1, 2, 4, 8]}'


def sample_grid(
    function: Callable[..., Given],
    over: Mapping[str, Sequence[SliderValue]],
    at: Mapping[str, SliderValue],
    kind: ChartKind = "bars",
    unit: str | None = None,
    limit: tuple[str, int | float] | None = None,
) -> tuple[Grid, dict[Any, Given]]:
    """The grid of `function`, and what it gave, by place: by a tuple of places where there are two sliders.

    A point at which it raises has none; the author's own has to have one.
    Raises `AuthorError` for all that `litbook.explore` refuses.
    """
    if kind not in get_args(ChartKind):
        raise AuthorError(f"explore() draws {', '.join(get_args(ChartKind))}, not {kind!r:.40}")
    asked = _sample(function, over, at, MOST_SLIDERS, _numbers)
    central, here = asked.results[asked.ats.index(asked.start)].kept, _place(at)
    for place, result in zip(asked.places, asked.results, strict=True):
        if result.why:
            continue
        if (*result.kept,) != (*central,):
            what = f"explore() got {_list(result.kept)} at {_place(place)}, and {_list(central)} at {here}"
            raise AuthorError(f"{what}\ngive the same names everywhere, in one order")
        if kind != "curve" and min(result.kept.values()) < 0:
            what = f"explore() draws {kind} from zero on, and got less at {_place(place)}"
            raise AuthorError(f'{what}\ndraw a curve: kind="curve"')
    points = (*(result.why or (*map(number, result.kept.values()),) for result in asked.results),)
    drawn: tuple[str, Number] | None = None
    match limit:
        case None:
            pass
        case (str(name), int() | float() as most) if type(most) is not bool and 0 < most < math.inf:
            drawn = name, number(most)
        case _:
            form = 'a limit as a name and a number, limit=("the card", 80e9)'
            raise AuthorError(f"explore() takes {form}, not {_repr(limit)}")
    grid = Grid(kind, asked.sliders, asked.start, (*central,), points, unit, drawn)
    _refuse_too_many(grid, "round what the function gives")
    return grid, asked.by_place()


def sample_live(
    function: Callable[..., Any],
    over: Mapping[str, Sequence[SliderValue]],
    at: Mapping[str, SliderValue],
    still: str,
    script: str,
) -> tuple[Live, dict[Any, Any]]:
    """A picture that `script` draws, and what `function` gave by place.

    It is asked at all places, or at `SAMPLED` of them that are drawn by lot, the same ones in every run.
    Raises `AuthorError` for all that `litbook.explore` refuses.
    """
    asked = _sample(function, over, at, MOST_MOVED, lambda value: _Sample(value, _json(_to_json(value))))
    both = zip(asked.ats, asked.results, strict=True)
    points = (*((one, result.kept, result.why) for one, result in both),)
    _refuse_too_many(points, "let the function give less")
    return Live(still, script, asked.sliders, asked.start, points), asked.by_place()


class _Sample(NamedTuple):
    """What the function gave at one point, what is kept of that, or why there is nothing."""

    value: Any = None
    kept: Any = ""
    why: str = ""


class _Samples(NamedTuple):
    """A function that has been asked: where, counted along the sliders and by name, and what came of it."""

    sliders: tuple[Slider, ...]
    start: tuple[int, ...]
    ats: list[tuple[int, ...]]
    places: list[dict[str, SliderValue]]
    results: list[_Sample]

    def by_place(self) -> dict[Any, Any]:
        """What it gave, by what authors ask for: the slider's place, of several sliders all of theirs."""
        keys = ((*p.values(),) if len(p) > 1 else next(iter(p.values())) for p in self.places)
        return {key: one.value for key, one in zip(keys, self.results, strict=True) if not one.why}


def _sample(
    function: Callable[..., Any],
    over: Mapping[str, Sequence[SliderValue]],
    at: Mapping[str, SliderValue],
    most: int,
    keep: Callable[[Any], _Sample],
) -> _Samples:
    """Ask the function at every place, where up to `most` sliders may stand; `keep` takes what it gives."""
    if not callable(function):
        what = f"explore() takes a function of the sliders' places, not {type(function).__name__}"
        raise AuthorError(f"{what}: pass it without calling it")
    sliders, start = _sliders(over, at, most)
    sizes = [slider.size for slider in sliders]
    if math.prod(sizes) <= POINTS:
        ats = [*itertools.product(*map(range, sizes))]
    elif most == MOST_SLIDERS:
        what = f"explore() keeps up to {POINTS:,} points; these sliders have {math.prod(sizes):,}"
        raise AuthorError(f"{what}\ngive them fewer places: powers of two, say, [2**i for i in range(13)]")
    else:
        lot = random.Random(0)
        drawn = [(*map(lot.randrange, sizes),) for _ in range(SAMPLED)]
        ats = [*dict.fromkeys([start, (0,) * len(sizes), (*(n - 1 for n in sizes),), *drawn])]
    places = [{s.name: over[s.name][i] for s, i in zip(sliders, one, strict=True)} for one in ats]

    def ask(place: Mapping[str, SliderValue]) -> _Sample:
        try:
            value = function(**place)
        except _SLIPS as error:
            what = f"explore() got {type(error).__name__} at {_place(place)}: {error}"
            raise AuthorError(f"{what}\n{_WAY_OUT_SLIP}") from error
        except Exception as error:
            return _Sample(why=cut_message(f"{error}" or type(error).__name__)[:WHY])
        return keep(value)

    results = [*map(ask, places)]
    if why := results[ats.index(start)].why:
        raise AuthorError(f"explore() has no value at its own point, {_place(at)}: {why}")
    for i in reversed(range(0, len(ats), -(-len(ats) // REPEATED))):  # a second time, the last first
        again, first = ask(places[i]), results[i]
        if repr(again[1:]) != repr(first[1:]):
            first, again = (one._replace(value=one.why or one.value) for one in (first, again))
            raise AuthorError(
                f"explore() got {_repr(first.value)} at {_place(places[i])}, and then {_repr(again.value)}\n"
                "compute it from the sliders' places alone: not from the clock, nor from chance, nor from "
                "what an earlier point has left behind"
            )
    return _Samples(sliders, start, ats, places, results)


def _refuse_too_many(points: object, less: str) -> None:
    """Raises `AuthorError` for more of a picture than a record keeps."""
    size = len(msgspec.json.encode(points))
    if size > GRID:
        what = f"explore() keeps up to {GRID:,} bytes of a grid; this one has {size:,}"
        raise AuthorError(f"{what}\ngive its sliders fewer places, or {less}")


def _to_json(value: Any) -> Any:
    """Numbers, texts, lists and what has names, as JSON holds them; what is not finite is a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return number(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_to_json, value)]
    if hasattr(value, "tolist"):  # a tensor, an array
        return _to_json(value.tolist())
    forms = "numbers, texts, lists and dictionaries of them"
    raise AuthorError(f"explore() takes a function that gives {forms}, not {type(value).__name__}")


def _sliders(
    over: Mapping[str, Sequence[SliderValue]], at: Mapping[str, SliderValue], most: int
) -> tuple[tuple[Slider, ...], tuple[int, ...]]:
    """The sliders, of which there may be so many, and the author's point: where each of them stands."""
    sliders = list[Slider]()
    if not isinstance(over, Mapping) or not 1 <= len(over) <= most:
        some = "one slider or two" if most == MOST_SLIDERS else f"one slider to {most}"
        raise AuthorError(f"explore() has {some}, {EXAMPLE}, not {_repr(over)}")
    for name, given in over.items():
        if most > MOST_SLIDERS and isinstance(given, range) and len(given) > POINTS:
            sliders.append(Slider(str(name), span=(given.start, given.stop, given.step)))
            continue
        places = [*given] if isinstance(given, Sequence) and not isinstance(given, str) else []
        if not places:
            what = f"explore() needs a list of places for {name!r}, {EXAMPLE}, not {_repr(given)}"
            raise AuthorError(what)
        texts = [isinstance(place, str) for place in places]
        numbers = [place for place in places if isinstance(place, int | float) and type(place) is not bool]
        # NaN and infinity compare as false.
        plain = sum(texts) + sum(abs(place) <= 2**53 for place in numbers) == len(places)
        if not plain or any(texts) != all(texts) or len(set(places)) < len(places):
            what = f"explore() moves {name!r} over numbers or over texts, each once"
            raise AuthorError(f"{what}, not over {_repr(places)}")
        if not any(texts) and places != sorted(places):
            raise AuthorError(f"explore() moves {name!r} from its smallest place to its largest: sort them")
        sliders.append(Slider(str(name), (*places,)))
    if not isinstance(at, Mapping) or {*at} != {*over}:
        names = ", ".join(f'"{slider.name}": {slider.places[0]!r}' for slider in sliders)
        raise AuthorError(f"explore() starts at a place of each slider, at={{{names}}}, not {_repr(at)}")
    for slider in sliders:
        if at[slider.name] not in over[slider.name]:
            raise AuthorError(
                f"explore() starts {slider.name!r} at {_repr(at[slider.name])}, which is none of its places"
                f"\nthese are {_repr(over[slider.name] if slider.span else [*slider.places])}"
            )
    return (*sliders,), (*(over[slider.name].index(at[slider.name]) for slider in sliders),)


def _numbers(result: Any) -> _Sample:
    """Numbers by name, or why these are none."""
    named = isinstance(result, Mapping)
    amounts = {str(name): amount for name, amount in result.items()} if named else {"": result}
    for name, amount in amounts.items():
        item = getattr(amount, "item", None)  # of a tensor with one element, a scalar of numpy
        with contextlib.suppress(Exception):
            amounts[name] = item() if item is not None else amount
        if isinstance(amounts[name], bool) or not isinstance(amounts[name], int | float):
            given = f"not {type(amount).__name__}"
            raise AuthorError(f"explore() takes a function that gives a number, or numbers by name, {given}")
    if not 1 <= len(amounts) <= MOST_NAMES:
        raise AuthorError(f"explore() draws one number or up to {MOST_NAMES} by name, not {len(amounts)}")
    if bad := [amount for amount in amounts.values() if not math.isfinite(amount)]:
        return _Sample(why=str(bad[0]))
    return _Sample(amounts if named else amounts[""], amounts)


def _place(place: Mapping[str, SliderValue]) -> str:
    return ", ".join(f"{name}={at!r}" for name, at in place.items())


def _list(amounts: Mapping[str, object]) -> str:
    return ", ".join(amounts) if (*amounts,) != ("",) else "a number without a name"


def _repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= WHY else text[:WHY] + " …"
