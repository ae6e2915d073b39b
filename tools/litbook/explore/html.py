"""A picture with sliders: drawn at the author's point, with a table of both ends.

`assets/explore.js` draws the other points: it moves what stands here to the marks that `document.explored`
has made, and computes nothing. Where an author's script draws, `assets/live.js` loads it when the picture
comes into view. Without them the picture is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from litbook.explore.chart import WHOLE, Chart, chart, place_label, slider_label
from litbook.html import elements, media, safe_svg
from litbook.html.elements import Html, tag
from litbook.i18n import _
from litbook.markdown import to_html
from litbook.markdown.links import NoteContext
from litbook.page.blocks import Explore
from litbook.record.model import Grid, Live, Slider

# The place of what a script draws, as it says itself: width and height of a drawing, or a height in pixels.
_SIZE, _HIGH = re.compile(r"\bsize: \[(\d+), (\d+)\]"), re.compile(r"\bhigh: (\d+)")
COLOURS = 6  # of lines and bars, in the style sheet


def figure(block: Explore, name: str, setting: NoteContext, up: str = "") -> Html:
    """The picture with all that belongs to it; `name` is its id, `up` leads to the folder of its lecture.

    A script comes from the run of this build alone; without `up` the picture stays as it is.
    """
    if not block.alt.strip():
        setting.report("no-alt", "this picture has no alt text", "say what it shows in a sentence")
    sliders = enumerate(zip(block.grid.sliders, block.grid.at, strict=True))
    fields = [_field(slider, at, f"{name}-{i}") for i, (slider, at) in sliders if not slider.span]
    match block.grid:
        case Live() as live:
            return _live_picture(block, live, name, setting, up, fields)
        case Grid() as grid:
            drawn = chart(grid)
    inside = [*(_curve(drawn) if block.grid.kind == "curve" else _bars(drawn))]
    if drawn.limit:
        key = tag("span", class_="lb-limitkey"), drawn.limit
        inside.append(tag("p", tag("span", *key), class_="lb-keys"))
    # Why there is no value, where the script meets a gap.
    inside.append(tag("p", class_="lb-gap", hidden=True))
    picture = tag("div", *inside, class_=f"lb-chart lb-{block.grid.kind}", role="img", aria_label=block.alt)
    do, see = _words(block, setting)
    # The author's point and both ends in numbers: what paper has of the others.
    ends = drawn.ends()
    head = tag("tr", tag("td"), *(tag("th", place, scope="col") for place, _point in ends))
    rows = []
    for i, row in enumerate(grid.names):
        cells = (tag("td", point.gap or point.texts[i]) for _place, point in ends)
        rows.append(tag("tr", tag("th", row or _("value"), scope="row"), *cells))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    numbers = tag("details", tag("summary", _("In numbers")), table, class_="lb-open lb-innumbers")
    parts = [*do, picture, tag("div", *fields, class_="lb-sliders"), numbers, *see]
    # All points for the script: marks, texts, the limit and what a stack adds up to; of a gap its words.
    points: list[str | list[object]] = []
    for point in drawn.points:
        rest = [point.limit, point.total] if point.limit >= 0 or point.total else []
        points.append(drawn.in_words(point) if point.gap else [*point.marks, *point.texts, *rest])
    places = [[place_label(slider, i) for i in range(len(slider.places))] for slider in grid.sliders]
    data: dict[str, object] = {"kind": grid.kind, "names": grid.names, "places": places, "points": points}
    data |= {"across": drawn.across} if drawn.across else {}
    opening = elements.opening("figure", class_="lb-explore", id=name)
    return Html(f"{opening[:-1]} data-grid={elements.data(data)}>{elements.join(parts)}</figure>")


def _words(block: Explore, setting: NoteContext) -> tuple[list[Html], list[Html]]:
    """The caption and what to try, above the picture; below it what one should have seen."""
    do = tag("p", tag("b", _("Try:")), " ", to_html.inline(block.do, setting), class_="lb-try")
    title = tag("summary", _("What you should have seen"))
    see = tag("details", title, to_html.passage(block.see, setting), class_="lb-open lb-seen")
    caption = tag("figcaption", to_html.inline(block.caption, setting))
    return [caption] * bool(block.caption) + [do] * bool(block.do), [see] * bool(block.see)


def _live_picture(
    block: Explore, live: Live, name: str, setting: NoteContext, up: str, fields: list[Html]
) -> Html:
    """The result in words, the picture, what moves it; the still picture has the place of the drawn one."""
    still = elements.NOTHING
    try:
        still = safe_svg.inline(live.still, block.alt, f"{name}-f")
    except safe_svg.NotAPicture as error:
        setting.report("bad-picture", f"this picture cannot be shown: {error}")
    size, high = _SIZE.search(live.script), _HIGH.search(live.script)
    box = f"aspect-ratio:{size[1]}/{size[2]}" if size else f"min-height:{high[1]}px" if high else None
    stage = tag(
        "div", still, class_="lb-stage", role="group", aria_label=block.alt, style=box if up else None
    )
    do, see = _words(block, setting)
    parts = [*do, stage]
    if up:
        parts = [
            *do,
            tag("p", class_="lb-verdict", aria_live="polite"),
            stage,
            tag("div", *fields, class_="lb-sliders"),
        ]
        words = {"data_differs": _("The script of this picture differs from the run here: {place}."),
                 "data_lost": _("The script of this picture could not be loaded.")}  # fmt: skip
        parts.append(tag("p", class_="lb-says", aria_live="polite", **words))
    script = up + media.script(live)[0] if up else None
    return tag("figure", *parts, *see, class_="lb-explore lb-live", id=name, data_script=script)


def _field(slider: Slider, at: int, name: str) -> Html:
    """What moves one slider: a range over its places, of texts a choice."""
    if any(isinstance(place, str) for place in slider.places):
        labels = enumerate(place_label(slider, i) for i in range(len(slider.places)))
        options = (tag("option", text, value=i, selected=i == at) for i, text in labels)
        fields = [tag("select", *options, id=name)]
    else:
        last, text = len(slider.places) - 1, place_label(slider, at)
        value: dict[str, object] = {"min": 0, "max": last, "value": at, "aria_valuetext": text}
        field = tag("input", type="range", id=name, **value, disabled=not last)
        fields = [field, tag("output", text, for_=name)]
    return tag("label", tag("span", slider_label(slider)), *fields, class_="lb-slider", for_=name)


def _bars(drawn: Chart) -> Iterator[Html]:
    """A bar for each name; of a stack one bar with a part for each, and below it what they are."""
    point, stacked = drawn.start, drawn.grid.kind == "stack"
    bars = [_mark_at(f"lb-bar lb-hue{i % COLOURS}", w=mark) for i, mark in enumerate(point.marks)]
    mark = [_mark_at("lb-limit", x=point.limit)] if point.limit >= 0 else []
    if stacked:
        together = _("together"), " ", tag("b", point.total, class_="lb-total")
        total = [tag("span", *together)] if point.total else []
        yield tag("p", *total, *_keys(drawn), class_="lb-keys lb-result")
        yield tag("div", *bars, *mark, class_=_track(sum(point.marks), drawn))
    else:
        for bar, key, size in zip(bars, _keys(drawn), point.marks or (0,) * len(bars), strict=True):
            yield tag("p", key, class_="lb-keys")
            yield tag("div", bar, *mark, class_=_track(size, drawn))


def _track(size: int, drawn: Chart) -> str:
    """What a bar lies in; its end is torn where the bar is longer."""
    return "lb-track lb-torn" if drawn.limit and size >= WHOLE else "lb-track"


def _keys(drawn: Chart) -> Iterator[Html]:
    """Each name with its colour and its number."""
    for i, (name, text) in enumerate(zip(drawn.grid.names, drawn.start.texts, strict=True)):
        sign = tag("span", class_=f"lb-key lb-hue{i % COLOURS}")
        label_, number = tag("span", name, class_="lb-of"), tag("b", text, class_="lb-text")
        yield tag("span", sign, label_, " ", number, class_="lb-part-of")


def _mark_at(class_: str, *inside: Html, **places: int) -> Html:
    """A mark at its places, in thousandths; the style sheet knows these by name."""
    style = ";".join(f"--{name}:{place / 10:g}%" for name, place in places.items())
    return tag("span", *inside, class_=class_, style=style)


def _curve(drawn: Chart) -> Iterator[Html]:
    """Lines over the first slider, and a dot on each where it stands."""
    grid, point = drawn.grid, drawn.start
    lines = []
    for i in range(len(grid.names)):
        # At the author's place of the second slider; gaps are left open.
        path, apart = "", True
        for column, x in enumerate(drawn.across):
            there = drawn.points[grid.index((column, *grid.at[1:]))]
            if there.marks:
                path += f"{'M' if apart else 'L'}{x} {1000 - there.marks[i]}"
            apart = not there.marks
        lines.append(tag("path", d=path, class_=f"lb-line lb-hue{i % COLOURS}"))
    box = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none", "aria_hidden": "true"}
    start, marks = drawn.across[grid.at[0]], enumerate(point.marks)
    dots = [_mark_at(f"lb-dot lb-hue{i % COLOURS}", x=start, y=mark) for i, mark in marks]
    rules = (_mark_at("lb-rule", tag("small", text), y=mark) for mark, text in drawn.between)
    dots += [_mark_at("lb-roof", y=point.limit)] if point.limit >= 0 else []
    top = _("{top}, on a logarithmic scale", top=drawn.top) if drawn.far[1] else drawn.top
    yield tag("p", *_keys(drawn), class_="lb-keys lb-result")
    yield tag("p", top, class_="lb-keys lb-axis")
    yield tag("div", *rules, tag("svg", *lines, **box), *dots, class_="lb-plane")
    first, last = (
        place_label(grid.sliders[0], 0),
        place_label(grid.sliders[0], len(grid.sliders[0].places) - 1),
    )
    middle = slider_label(grid.sliders[0])
    middle = _("{name}, on a logarithmic scale", name=middle) if drawn.far[0] else middle
    ends = tag("span", first), tag("span", middle), tag("span", last)
    yield tag("p", drawn.bottom, class_="lb-keys lb-axis")
    yield tag("p", *ends, class_="lb-keys lb-axis lb-ends")
