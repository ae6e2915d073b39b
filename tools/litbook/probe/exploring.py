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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

import msgspec

from litbook.errors import AuthorError
from litbook.probe.captions import bounded
from litbook.record.limits import GRID, POINTS, REPEATED, SAMPLED
from litbook.record.model import ChartKind, Grid, Live, Number, Slider, number

Place = int | float | str
Given = TypeVar("Given", bound=Mapping[str, object] | Sequence[object] | int | float)
"""What a function gives at a point: a number, several by name; for a script to draw also lists and texts."""

MOST_SLIDERS, MOST_NAMES = 2, 6
MOST_MOVED = 8  # sliders of a picture that a script draws
WHY = 80  # characters of the reason why a point has no value
EXAMPLE = 'over={"batch": [1, 2, 4, 8]}'


def explored(
    function: Callable[..., Given],
    over: Mapping[str, Sequence[Place]],
    at: Mapping[str, Place],
    kind: ChartKind = "bars",
    unit: str | None = None,
    limit: tuple[str, int | float] | None = None,
) -> tuple[Grid, dict[Any, Given]]:
    """The grid of `function`, and what it gave, by place: by a tuple of places where there are two sliders.

    A point at which it raises has none; the author's own has to have one.
    Raises `AuthorError` for all that `litbook.explore` refuses.
    """
    if not callable(function):
        raise AuthorError(
            f"explore() takes a function of the sliders' places, not {type(function).__name__}: "
            "pass it without calling it"
        )
    if kind not in get_args(ChartKind):
        raise AuthorError(f"explore() draws {', '.join(get_args(ChartKind))}, not {kind!r:.40}")
    sliders = (*_sliders(over),)
    start = _start(sliders, over, at)
    count = math.prod(len(slider.places) for slider in sliders)
    if count > POINTS:
        raise AuthorError(
            f"explore() keeps up to {POINTS:,} points; these sliders have {count:,}\n"
            "give them fewer places: powers of two, say, [2**i for i in range(13)]"
        )
    names = [slider.name for slider in sliders]
    places = [
        dict(zip(names, place, strict=True)) for place in itertools.product(*(over[name] for name in names))
    ]
    results = [_point(function, place) for place in places]
    grid = Grid(kind, sliders, start, (), ())
    central, here = results[grid.index(start)], _said(at)
    if isinstance(central, str):
        raise AuthorError(f"explore() has no value at its own point, {here}: {central}")
    for place, result in zip(places, results, strict=True):
        if isinstance(result, str):
            continue
        if (*result,) != (*central,):
            raise AuthorError(
                f"explore() got {_list(result)} at {_said(place)}, and {_list(central)} at {here}\n"
                "give the same names everywhere, in one order"
            )
        if kind != "curve" and min(result.values()) < 0:
            raise AuthorError(
                f"explore() draws {kind} from zero on, and got less at {_said(place)}\n"
                'draw a curve: kind="curve"'
            )
    for i in _repeated(count):
        again = _point(function, places[i])
        if repr(again) != repr(results[i]):
            raise _unsteady(places[i], results[i], again)
    points = (
        *(result if isinstance(result, str) else (*map(number, result.values()),) for result in results),
    )
    grid = Grid(kind, sliders, start, (*central,), points, unit, _limit(limit))
    size = len(msgspec.json.encode(grid))
    if size > GRID:
        raise AuthorError(
            f"explore() keeps up to {GRID:,} bytes of a grid; this one has {size:,}\n"
            "give its sliders fewer places, or round what the function gives"
        )
    keys = map(_key, places)
    numbers = (result if isinstance(result, str) else result.get("", result) for result in results)
    return grid, {
        key: cast("Given", number)
        for key, number in zip(keys, numbers, strict=True)
        if not isinstance(number, str)
    }


def live(
    function: Callable[..., Any],
    over: Mapping[str, Sequence[Place]],
    at: Mapping[str, Place],
    still: str,
    script: str,
) -> tuple[Live, dict[Any, Any]]:
    """A picture that `script` draws, and what `function` gave by place.

    It is asked at all places, or at `SAMPLED` of them that are drawn by lot, the same ones in every run.
    Raises `AuthorError` for all that `litbook.explore` refuses.
    """
    if not callable(function):
        raise AuthorError(
            f"explore() takes a function of the sliders' places, not {type(function).__name__}: "
            "pass it without calling it"
        )
    sliders = (*_sliders(over, MOST_MOVED),)
    start = _start(sliders, over, at)
    sizes = [slider.size for slider in sliders]
    if math.prod(sizes) <= POINTS:
        ats = [*itertools.product(*map(range, sizes))]
    else:
        lot = random.Random(0)
        drawn = [(*map(lot.randrange, sizes),) for _ in range(SAMPLED)]
        ats = [*dict.fromkeys([start, (0,) * len(sizes), (*(n - 1 for n in sizes),), *drawn])]
    places = [{s.name: over[s.name][i] for s, i in zip(sliders, one, strict=True)} for one in ats]
    results = [_any(function, place) for place in places]
    for i in _repeated(len(ats)):
        again = _any(function, places[i])
        if again[1:] != results[i][1:]:
            raise _unsteady(places[i], results[i][0], again[0])
    points = (*((one, text, why) for one, (_value, text, why) in zip(ats, results, strict=True)),)
    if points[ats.index(start)][2]:
        raise AuthorError(
            f"explore() has no value at its own point, {_said(at)}: {points[ats.index(start)][2]}"
        )
    kept = Live(still, script, sliders, start, points)
    size = len(msgspec.json.encode(points))
    if size > GRID:
        raise AuthorError(
            f"explore() keeps up to {GRID:,} bytes of a grid; this one has {size:,}\n"
            "give its sliders fewer places, or let the function give less"
        )
    keys = map(_key, places)
    return kept, {key: value for key, (value, _text, why) in zip(keys, results, strict=True) if not why}


def _repeated(count: int) -> Iterator[int]:
    """The points that are asked a second time, the last first."""
    return reversed(range(0, count, -(-count // REPEATED)))


def _unsteady(place: Mapping[str, Place], first: object, again: object) -> AuthorError:
    return AuthorError(
        f"explore() got {_brief(first)} at {_said(place)}, and then {_brief(again)}\n"
        "compute it from the sliders' places alone: not from the clock, nor from chance, nor from "
        "what an earlier point has left behind"
    )


def _key(place: Mapping[str, Place]) -> Any:
    """By what authors ask for a point: the slider's place, of several sliders all of theirs."""
    return (*place.values(),) if len(place) > 1 else next(iter(place.values()))


def _any(function: Callable[..., Any], place: Mapping[str, Place]) -> tuple[Any, str, str]:
    """What the function gives at one point, the same as JSON, and why there is nothing."""
    try:
        value = function(**place)
    except Exception as error:
        return None, "", bounded(f"{error}" or type(error).__name__)[:WHY]
    return value, json.dumps(_plain(value), separators=(",", ":")), ""


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and what has names, as JSON holds them; what is not finite is a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return number(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    if hasattr(value, "tolist"):  # a tensor, an array
        return _plain(value.tolist())
    raise AuthorError(
        "explore() takes a function that gives numbers, texts, lists and dictionaries of them, not "
        + type(value).__name__
    )


def _sliders(over: Mapping[str, Sequence[Place]], most: int = MOST_SLIDERS) -> Iterator[Slider]:
    if not isinstance(over, Mapping) or not 1 <= len(over) <= most:
        some = "one slider or two" if most == MOST_SLIDERS else f"one slider to {most}"
        raise AuthorError(f"explore() has {some}, {EXAMPLE}, not {_brief(over)}")
    for name, given in over.items():
        if most > MOST_SLIDERS and isinstance(given, range) and len(given) > POINTS:
            yield Slider(str(name), span=(given.start, given.stop, given.step))
            continue
        places = [*given] if isinstance(given, Sequence) and not isinstance(given, str) else []
        if not places:
            raise AuthorError(
                f"explore() needs a list of places for {name!r}, {EXAMPLE}, not {_brief(given)}"
            )
        texts = [isinstance(place, str) for place in places]
        plain = all(
            isinstance(place, str)
            or (isinstance(place, int | float) and not isinstance(place, bool) and abs(place) <= 2**53)
            for place in places
        )  # NaN and infinity compare as false
        if not plain or any(texts) != all(texts) or len(set(places)) < len(places):
            raise AuthorError(
                f"explore() moves {name!r} over numbers or over texts, each once, not over {_brief(places)}"
            )
        if not any(texts) and places != sorted(places):
            raise AuthorError(f"explore() moves {name!r} from its smallest place to its largest: sort them")
        yield Slider(str(name), (*places,))


def _start(
    sliders: Sequence[Slider], over: Mapping[str, Sequence[Place]], at: Mapping[str, Place]
) -> tuple[int, ...]:
    """The author's point: where each slider stands."""
    if not isinstance(at, Mapping) or {*at} != {*over}:
        names = ", ".join(f'"{slider.name}": {slider.places[0]!r}' for slider in sliders)
        raise AuthorError(f"explore() starts at a place of each slider, at={{{names}}}, not {_brief(at)}")
    for slider in sliders:
        if at[slider.name] not in over[slider.name]:
            raise AuthorError(
                f"explore() starts {slider.name!r} at {_brief(at[slider.name])}, which is none of its places"
                f"\nthese are {_brief(over[slider.name] if slider.span else [*slider.places])}"
            )
    return (*(over[slider.name].index(at[slider.name]) for slider in sliders),)


def _point(function: Callable[..., Any], place: Mapping[str, Place]) -> dict[str, int | float] | str:
    """The numbers at one point by name, or why there are none."""
    try:
        result = function(**place)
    except Exception as error:
        return bounded(f"{error}" or type(error).__name__)[:WHY]
    amounts = (
        {str(name): amount for name, amount in result.items()}
        if isinstance(result, Mapping)
        else {"": result}
    )
    for name, amount in amounts.items():
        item = getattr(amount, "item", None)  # of a tensor with one element, a scalar of numpy
        with contextlib.suppress(Exception):
            amounts[name] = item() if item is not None else amount
        if isinstance(amounts[name], bool) or not isinstance(amounts[name], int | float):
            given = type(amount).__name__
            raise AuthorError(
                f"explore() takes a function that gives a number, or numbers by name, not {given}"
            )
    if not 1 <= len(amounts) <= MOST_NAMES:
        raise AuthorError(f"explore() draws one number or up to {MOST_NAMES} by name, not {len(amounts)}")
    if bad := [amount for amount in amounts.values() if not math.isfinite(amount)]:
        return str(bad[0])
    return amounts


def _limit(limit: tuple[str, int | float] | None) -> tuple[str, Number] | None:
    if limit is None:
        return None
    match limit:
        case (str(name), int() | float() as most) if not isinstance(most, bool) and 0 < most < math.inf:
            return name, number(most)
    raise AuthorError(
        f'explore() takes a limit as a name and a number, limit=("the card", 80e9), not {_brief(limit)}'
    )


def _said(place: Mapping[str, Place]) -> str:
    return ", ".join(f"{name}={at!r}" for name, at in place.items())


def _list(amounts: Mapping[str, object]) -> str:
    return ", ".join(amounts) if (*amounts,) != ("",) else "a number without a name"


def _brief(value: object) -> str:
    if isinstance(value, dict) and (*value,) == ("",):
        value = value[""]
    text = repr(value)
    return text if len(text) <= WHY else text[:WHY] + " …"
