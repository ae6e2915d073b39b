"""What the player says at each step, and what plain Python says there under `sys.settrace`.

`player_states` reads a page's data as `assets/stepping.js` does. `compare` runs the same lecture without litbook's
probes, stops at each line, and says of every value that the player shows as current whether it is what the name or
expression was there. A step is known in both by its call, its line and the iterations of the loops around it.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litbook.html import player
from litbook.record import model
from litbook.snapshot.snapshot import glimpse, snapshot
from litbook.snapshot.storages import Storages
from litbook.values import formatting
from litbook.values.drawable import has_storage, indices

WIDTHS = {"steps": 2, "values": 4, "turns": 4, "memories": 4}
Key = tuple[Any, ...]


def sums(found: list[int], width: int) -> list[tuple[int, ...]]:
    """The rows that `player.differences` made one list of, as the player adds them up."""
    given_rows: list[tuple[int, ...]] = []
    for at in range(0, len(found), width):
        above = given_rows[-1] if given_rows else (0,) * width
        given_rows.append(tuple(a + b for a, b in zip(above, found[at : at + width], strict=True)))
    return given_rows


def track(made: model.Record, page: str = "index.player.js") -> dict[str, Any]:
    """The data of a page, with its rows added up."""
    text = player.data(made)[page]
    found: dict[str, Any] = json.loads(text[text.index("]=") + 2 :].rstrip(";\n"))
    return found | {name: sums(found[name], width) for name, width in WIDTHS.items()}


@dataclass
class State:
    """What the player shows after a step: by frame of the stack, innermost first, what it says of each name."""

    step: int
    frames: list[int]
    # (frame, name) -> text, line of another step that it was seen at or 0
    values: dict[tuple[int, str], tuple[str, int]] = field(default_factory=dict)
    # [cells, {(frame, name): elements}, line or 0] of each storage
    memories: list[tuple[list[str], dict[tuple[int, str], list[int]], int]] = field(default_factory=list)


def player_states(data: dict[str, Any]) -> list[State]:
    """What is shown after each step."""
    held: dict[tuple[int, int], tuple[int, int, int]] = {}  # (frame, name) -> step, text, row
    rows, told, passing = list(enumerate(data["values"])), 0, {*data["passing"]}
    quiet, touched = {*data["quiet"]}, 0
    memory = {row: (storage, data["reads"][reads][0], data["cells"][cells]) for row, storage, reads, cells in data["memories"]}  # fmt: skip
    states = []
    for k, (frame, _) in enumerate(data["steps"]):
        while told < len(rows) and rows[told][1][0] <= k:
            row, (step, of, name, text) = rows[told]
            held[of, name] = step, text, row
            told += 1
        frames, f = [], frame
        while f >= 0:
            frames.append(f)
            f = data["frames"][f][1]
        state = State(k, frames)
        touched = touched if k in quiet else k
        found: dict[int, Any] = {}
        for (of, name), (step, text, row) in held.items():
            if of not in frames or text < 0:
                continue
            old = step < touched and text in passing
            seen = data["lines"][data["steps"][step][1]][0] if old else 0
            state.values[of, data["names"][name]] = data["texts"][text], seen
            if row in memory:
                storage, reads, cells = memory[row]
                one = found.setdefault(storage, [-1, [], {}])
                if step >= one[0]:
                    one[:2] = step, cells
                one[2][of, data["names"][name]] = reads
        for step, cells, names in found.values():
            state.memories.append(
                (cells, names, 0 if step >= touched else data["lines"][data["steps"][step][1]][0])
            )
        states.append(state)
    return states


# ---------------------------------------------------------------------------- which step is which


class Loops:
    """The loops of a lecture's functions: their lines, and which iteration of them a frame is in."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        self.ends = {
            n.lineno: n.end_lineno or 0 for n in ast.walk(tree) if isinstance(n, ast.For | ast.While)
        }
        self.firsts = {n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt)}
        self.functions = {
            n.name: any(isinstance(i, ast.Yield | ast.YieldFrom) for i in ast.walk(n))
            for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)
        }  # fmt: skip

    def move(self, active: list[list[int]], line: int, turn: int | None = None) -> None:
        """The frame whose loops are `active`, (header, iteration), comes to a line; in an iteration, if told."""
        while active and not active[-1][0] <= line <= self.ends[active[-1][0]]:
            active.pop()
        if line in self.ends:
            if not active or active[-1][0] != line:
                active.append([line, -1])
            if active[-1][0] == line:
                active[-1][1] = active[-1][1] + 1 if turn is None else turn


@dataclass
class Moment:
    """One line that plain Python ran: what names and expressions were right after it, in each of its frames."""

    before: dict[Key, dict[str, Any]] = field(default_factory=dict)  # as the next thing anywhere began
    after: dict[Key, dict[str, Any]] = field(default_factory=dict)  # as the next line of its own frame began


def _texts(value: object, units: set[str | None]) -> set[str]:
    """All the ways in which a value may be told."""
    shots = [glimpse(value, Storages(), 8), snapshot(value, Storages())]
    texts = {formatting.line(shot, unit) for shot in shots for unit in units}
    return texts | {text + " · measured" for text in texts}


def _cells(value: object) -> list[str] | None:
    shot = snapshot(value, Storages())
    if not isinstance(shot, model.Tensor) or not has_storage(shot):
        return None
    texts = [formatting.number(number).removesuffix(".0") for number in shot.memory or ()]
    return [texts[i] for i in indices(shot)]


def plain_moments(  # noqa: C901  one trace function, whose state is its closure
    file: Path, wanted: dict[str, set[str]], units: set[str | None]
) -> dict[Key, Moment]:
    """Run the lecture as ordinary Python; `wanted` are the expressions to look at, by function."""
    text = file.read_text(encoding="utf-8")
    loops, moments = Loops(text), dict[Key, Moment]()
    keys: dict[int, Key] = {}
    alive: dict[int, types.FrameType] = {}
    active: dict[int, list[list[int]]] = defaultdict(list)
    at: dict[int, Key] = {}  # frame -> its step
    calls: dict[Key, int] = defaultdict(int)
    resumed: dict[Key, int] = defaultdict(int)  # of generators
    below: dict[Key, set[Key]] = defaultdict(set)
    recent: list[Key] = []  # the frame of the newest step
    last: list[tuple[int, Key]] = []  # the newest step anywhere

    def look(frame: types.FrameType) -> dict[str, Any]:
        names: dict[str, Any] = {}
        local = dict(frame.f_locals)
        for text in wanted.get(frame.f_code.co_name, ()):
            try:
                value = eval(text, frame.f_globals, local)
            except Exception:
                continue
            names[text] = _texts(value, units), _cells(value)
        return names

    def stack(frame: types.FrameType | None) -> dict[Key, dict[str, Any]]:
        found = {}
        while frame is not None:
            if id(frame) in keys and alive[id(frame)] is frame:
                found[keys[id(frame)]] = look(frame)
            frame = frame.f_back
        return found

    def end_of_newest(frame: types.FrameType) -> None:
        """Something happens: the newest step anywhere has gone so far."""
        if last:
            number, key = last.pop()
            if alive.get(number) is not None and not moments[key].before:
                moments[key].before = stack(alive[number])

    def end_of_own(frame: types.FrameType) -> None:
        key = at.get(id(frame))
        if key is not None:
            moments[key].after = stack(frame)

    def trace(frame: types.FrameType, event: str, _arg: object) -> Any:
        if frame.f_code.co_filename != str(file) or frame.f_code.co_name.startswith("<"):
            return trace if frame.f_code.co_filename == str(file) else None
        end_of_newest(frame)
        if event == "call":
            if id(frame) in keys and alive[id(frame)] is frame:  # a generator goes on
                if recent and recent[0] not in (keys[id(frame)], *below[keys[id(frame)]]):
                    resumed[keys[id(frame)]] += 1
                    active[id(frame)], _ = [], at.pop(id(frame), None)
                return trace
            name, back = frame.f_code.co_name, frame.f_back
            while back is not None and not (id(back) in at and alive.get(id(back)) is back):
                back = back.f_back
            above = at[id(back)] if back is not None else ()
            place: Key = (name,) if loops.functions.get(name) else (above, name)
            calls[place] += 1
            keys[id(frame)], alive[id(frame)] = (*place, calls[place]), frame
            active[id(frame)], _ = [], at.pop(id(frame), None)
            if above:
                for key in [above[0], *(k for k, under in below.items() if above[0] in under)]:
                    below[key].add(keys[id(frame)])
        elif event == "line" and id(frame) in keys:
            line = frame.f_lineno
            if line in loops.firsts:
                own = active[id(frame)]
                loops.move(own, line)
                of = keys[id(frame)]
                key = (of, line, tuple(map(tuple, own)))
                if loops.functions.get(frame.f_code.co_name):
                    key = (of, line, (resumed[of],))
                recent[:] = [of]
                if at.get(id(frame)) != key:
                    end_of_own(frame)
                    at[id(frame)] = key
                    moments.setdefault(key, Moment())
                    last[:] = [(id(frame), key)]
        elif event == "return" and id(frame) in keys:
            end_of_own(frame)
        return trace

    code = compile(text, str(file), "exec", dont_inherit=True)
    space = {"__name__": file.stem, "__file__": str(file)}
    sys.settrace(trace)
    try:
        exec(code, space)
        space["main"]()  # type: ignore[operator]
    finally:
        sys.settrace(None)
    return moments


def player_keys(text: str, data: dict[str, Any]) -> list[tuple[Key, dict[int, Key]]]:
    """Of each step its key, and those of the frames on its stack."""
    loops = Loops(text)
    turned = {step: turn - 1 for step, turn, *_ in data["turns"]}
    active: dict[Key, list[list[int]]] = defaultdict(list)
    keys, at, calls, found = dict[int, Key](), dict[Key, Key](), defaultdict[Key, int](int), []
    resumed: dict[Key, int] = defaultdict(lambda: -1)  # of generators
    loop_of: dict[Key, tuple[Key, int]] = {}  # generator -> the loop that asks it
    for k, (frame, line_at) in enumerate(data["steps"]):
        line = data["lines"][line_at][0]
        name, parent = data["frames"][frame][:2]
        if frame not in keys:
            if loops.functions.get(name):
                keys[frame] = (name, 1)  # one of each in these lectures
                if keys[frame] not in loop_of and parent >= 0:
                    loop_of[keys[frame]] = keys[parent], data["frames"][frame][2]
                resumed[keys[frame]] += 1
            else:
                above = at.get(keys[parent], ()) if parent >= 0 else ()
                place = (above, name)
                calls[place] += 1
                keys[frame] = (*place, calls[place])
        key = keys[frame]
        before = at.get(key)
        if not (before and before[1] == line and k not in turned):  # the same line again is told after a call
            loops.move(active[key], line, turned.get(k, 0) if line in loops.ends else None)
        at[key] = (key, line, tuple(map(tuple, active[key])))
        if loops.functions.get(name):
            at[key] = (key, line, (resumed[key],))
        for generator, loop in loop_of.items():
            if loop == (key, line) and k in turned:
                resumed[generator] = turned[k]
        chain, f = {}, frame
        while f >= 0:
            chain[f] = keys[f]
            f = data["frames"][f][1]
        found.append((at[key], chain))
    return found


@dataclass
class Comparison:
    """How many steps and values were compared, and those that are false."""

    steps: int = 0
    lost: int = 0  # steps that plain Python has not run
    current: int = 0
    right: int = 0
    older: int = 0
    cells: int = 0
    false: list[str] = field(default_factory=list)
    told: set[tuple[Any, ...]] = field(
        default_factory=set
    )  # (step, frame, name, whether it is right or older)
    strange: list[str] = field(default_factory=list)  # steps that plain Python has not run


def compare(file: Path, made: model.Record) -> Comparison:
    """The player of the record against plain Python, page by page."""
    done = Comparison()
    for page in player.data(made):
        _compare_page(file, made, page, done)
    return done


def _compare_page(file: Path, made: model.Record, page: str, done: Comparison) -> None:
    data, sections = (
        track(made, page),
        {section.name for section in made.sections if section.kind != "module"},
    )
    states = player_states(data)
    wanted: dict[str, set[str]] = defaultdict(set)
    for state in states:
        for of, name in state.values:
            wanted[data["frames"][of][0]].add(name)
    units = {None, *(value.unit for section in made.sections for value in section.values)}
    text = file.read_text(encoding="utf-8")
    moments = plain_moments(file, wanted, units)
    # Sections are called by main, which has no page of its own: their frames begin where it stands.
    by_tail: dict[Key, Moment] = {_bare(key, sections): moment for key, moment in moments.items()}
    for state, (key, chain) in zip(states, player_keys(text, data), strict=True):
        done.steps += 1
        moment = by_tail.get(_bare(key, sections))
        if moment is None:
            done.lost += 1
            done.strange.append(str(key))
            continue
        truths = [
            {_bare(k, sections): v for k, v in side.items()} for side in (moment.before, moment.after) if side
        ]
        line = data["lines"][data["steps"][state.step][1]][0]

        def of_frame(
            of: int, chain: dict[int, Key] = chain, truths: list[Any] = truths
        ) -> list[dict[str, Any]]:
            return [side.get(_bare(chain[of], sections), {}) for side in truths]

        for (of, name), (shown, seen) in state.values.items():
            if seen:
                done.older += 1
                done.told.add((state.step, data["frames"][of][0], name, False))
                continue
            done.current += 1
            sides = of_frame(of)
            if any(name in side and shown in side[name][0] for side in sides):
                done.right += 1
                done.told.add((state.step, data["frames"][of][0], name, True))
            else:
                is_ = sorted({t for side in sides if name in side for t in side[name][0]})[:2]
                done.false.append(f"step {state.step} line {line}: {name} = {shown}, not {is_ or 'known'}")
        for cells, names, seen in state.memories:
            for (of, name), reads in names.items() if not seen else ():
                done.cells += 1
                sides = of_frame(of)
                if not any(name in side and side[name][1] == [cells[i] for i in reads] for side in sides):
                    done.false.append(f"step {state.step} line {line}: cells of {name} {[cells[i] for i in reads]} not {[s.get(name) for s in sides]}")  # fmt: skip


def _bare(key: Key, sections: set[str]) -> Key:
    """A key without what is above the section."""
    if len(key) == 3 and isinstance(key[1], int) and isinstance(key[2], tuple):  # of a step
        return (_bare(key[0], sections), *key[1:])
    if len(key) == 3:  # of a frame: above, name, number
        return (() if key[1] in sections else _bare(key[0], sections), *key[1:])
    return key
