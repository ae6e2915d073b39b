"""The pages of a lecture, from hand-made records: complete, honest, and harmless whatever a value holds."""

from __future__ import annotations

import html.parser
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import markdown
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.records import H200, PLACE, fill, line, ran, record, step
from tests.running import record as run
from tests.running import section

from litbook.html import elements, ledger, media, page, safe_svg
from litbook.markdown import bibliography, unexecuted
from litbook.page import margin
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.record import model
from litbook.record.model import (
    Claim,
    Error,
    Loop,
    Mapping,
    Operand,
    Piece,
    Record,
    Scalar,
    Sequence,
    Series,
    Tensor,
    Value,
)
from litbook.values import cards, drawings

SITE = [
    "admonition",
    "attr_list",
    "md_in_html",
    "tables",
    "toc",
    "pymdownx.highlight",
    "pymdownx.superfences",
]
LECTURE = '''"""Storage & <views"""

import torch
from litbook import misbelief, note, requires

MiB = 2**20


def main() -> None:
    note("Two *resources* [@glu].")
    memory()
    compute()


def memory() -> None:
    """Memory & views"""
    note("A walk.")
    transpose()


def transpose() -> None:
    """A transpose rewrites `strides`"""
    note("# Why\\n\\nSix numbers, see [speed](#speed).")
    x = six()  # @inspect x
    text = """
    kept as it is
    """
    y = x.t()  # @inspect y, y.stride()
    assert y.stride() == (1, 3), "strides *swap*"
    assert (
        x.shape == y.shape
    ), "the same shape"
    misbelief("`t()` copies.", "It does not.")
    secret = 1  # @hide


def six() -> object:
    """Six numbers"""
    return torch.arange(6.0).view(2, 3)


def compute() -> None:
    """Compute"""
    speed()


@requires("cuda")
def speed() -> None:
    """How fast"""
    note("Fast.")
    rate = [1][0] + 0  # @measure rate as FLOP/s
    assert rate > 0, "it moves"
    for step in range(9):
        loss = step  # @inspect loss
'''

X = Tensor(
    "torch.Tensor", "float32", (2, 3), strides=(3, 1), bytes=24, storage=1, storage_bytes=24, axes=("row", "col"),
    corner=(2, 3), values=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0), memory=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0),
)  # fmt: skip
Y = replace(
    X,
    shape=(3, 2),
    strides=(1, 3),
    axes=None,
    contiguous=False,
    corner=(3, 2),
    values=(0.0, 3.0, 1.0, 4.0, 2.0, 5.0),
)
REFERENCES = bibliography.parse("@misc{glu, title={GLU}, author={Shazeer, Noam}, year=2020}")


def pair(*numbers: int) -> Sequence:
    return Sequence("tuple", len(numbers), tuple(Scalar("int", str(n), n) for n in numbers))


def at(text: str, lecture: str = LECTURE) -> int:
    """The line that holds `text`."""
    return next(i for i, line in enumerate(lecture.split("\n"), 1) if text in line)


def never() -> Record:
    """The lecture before anything ran."""
    return record(LECTURE, title=LECTURE.split('"""')[1])


def piece(it: Record, kind: model.PieceKind, text: str, says: str, **more: Any) -> Piece:
    """A piece of the section `transpose`, from the line that holds `text`."""
    return Piece(kind, step(it, "transpose", text), 0, line(it, "transpose", text), says, **more)


def shows(it: Record, key: str, text: str, name: str, value: int | None, **more: Any) -> Value:
    """What `name` was after the line of a section that holds `text`."""
    return Value(step(it, key, text), 0, line(it, key, text), name, value, **more)


def claim(it: Record, key: str, text: str, lines: int, *more: Any, **named: Any) -> Claim:
    first = line(it, key, text)
    return Claim(first, first + lines - 1, *more, **named)


RATE = "assert rate", 1, "rate > 0", "it moves"


def lived() -> Record:
    """The lecture on a machine without a GPU: one claim holds, one fails, one waits for a device."""
    it = ran(never(), "main", pieces=(Piece("note", 0, 0, 1, "Two *resources* [@glu]."),))
    it = ran(it, "memory", pieces=(Piece("note", 0, 0, 2, "A walk."),), seconds=1.25)
    it = fill(it, "compute", seconds=0.5)
    it = ran(it, "transpose", {"six": line(it, "transpose", "x = six()")})
    it = fill(it, "speed", claims=(claim(it, "speed", *RATE, "needs-device"),))
    return fill(
        it, "transpose",
        pieces=(
            piece(it, "note", "# Why", "# Why\n\nSix numbers, see [speed](#speed)."),
            piece(it, "output", "y = x.t()", "printed <b>\n"),
            piece(it, "misbelief", "misbelief(", "`t()` copies.", data="It does not."),
        ),
        values=(
            shows(it, "transpose", "x = six()", "x", 0),
            shows(it, "transpose", "y = x.t()", "y", 1),
            shows(it, "transpose", "y = x.t()", "y.stride()", 2),
            shows(it, "transpose", "secret = 1", "secret", 4),
        ),
        claims=(
            claim(it, "transpose", "assert y.str", 1, "y.stride() == (1, 3)", "strides *swap*", "holds", count=1,
                  form=("", " == ", ""), operands=(Operand("y.stride()", 2), Operand("(1, 3)", 2))),
            claim(it, "transpose", "assert (", 3, "x.shape == y.shape", "the same shape", "fails", count=1,
                  form=("", " == ", ""), operands=(Operand("x.shape", 3), Operand("y.shape", 5))),
        ),
        snapshots=(X, Y, pair(1, 3), pair(2, 3), Scalar("int", "1", 1), pair(3, 2)),
    )  # fmt: skip


def changed(it: Record, key: str = "transpose", **fields: Any) -> Record:
    """`it` with one section changed: each field by a function of what it was."""
    entry = it.by_key[key]
    return fill(it, key, **{name: change(getattr(entry, name)) for name, change in fields.items()})


def recorded() -> Record:
    """The same lecture, recorded on a GPU."""
    it = never()
    it = ran(ran(ran(it, "main"), "compute"), "speed")
    loss = line(it, "speed", "loss = step")
    it = fill(
        it, "speed",
        pieces=(Piece("note", 0, 0, line(it, "speed", "Fast."), "Fast, *very*."),),
        values=(
            shows(it, "speed", "rate = [1][0] + 0", "rate", 0, kind="measure", unit="FLOP/s"),
            shows(it, "speed", "loss = step", "loss", 1, loop=0, turn=0),
            shows(it, "speed", "loss = step", "loss", 2, loop=0, turn=8),
        ),
        loops=(Loop(0, line(it, "speed", "for step"), 9, (0, 8)),),
        series=(Series(0, loss, "loss", (0, 4, 8), (0, 4, 8)),),
        claims=(claim(it, "speed", *RATE, "holds", count=1,
                      form=("", " > ", ""), operands=(Operand("rate", 0), Operand("0", 1))),),
        snapshots=(Scalar("float", "7.88e14", 7.88e14), Scalar("int", "0", 0), Scalar("int", "8", 8)),
    )  # fmt: skip
    return replace(it, environment=replace(PLACE, device=H200, date="2026-11-19T10:00:00Z"))


def older(it: Record) -> Record:
    """The same recording, made when every section had another text."""
    return replace(it, sections=tuple(replace(entry, depends="0" * 16) for entry in it.sections))


def shown(text: str) -> str:
    return markdown.markdown(text, extensions=SITE)


def made(it: Record | None = None, **more) -> dict[str, str]:
    found = page.pages(lived() if it is None else it, REFERENCES, **more)
    return {name: shown(text) for name, text in found.items()}


def test_a_search_finds_prose_by_paragraphs_and_names_in_code_and_neither_values_nor_output():
    note = """The `.grad` [@glu], and [why](#speed) .grad ends: $2n$.

!!! tip
    Left **out**.

| title |
|---|
| cell |

```
code
```
"""
    it = changed(lived(), "memory", pieces=lambda _: (Piece("note", 0, 0, 2, note),))
    top, section, definitions = page.pages(it, REFERENCES)["memory.md"].passages
    assert top == SearchPassage(
        "", "Memory & views", ("The .grad, and why .grad ends: 2n.", "Tip", "Left out.", "title", "cell"),
    )  # fmt: skip
    assert section == SearchPassage(
        "transpose", "A transpose rewrites `strides`",
        ("Why", "Six numbers, see speed.", "✗ “t() copies.”", "It does not."),
        ("six", "stride", "shape"),
        core=True,
    )  # fmt: skip
    assert definitions == SearchPassage("definitions", "Definitions", names=("six", "arange", "view"))


def words(body: str) -> str:
    """What a reader reads, without tags."""
    import html

    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def code_of(body: str) -> str:
    """The lines shown as code."""
    import html

    rows = re.findall(r'<code class="lb-c[^"]*">(.*?)</code>', body)
    return "\n".join(html.unescape(re.sub(r"<[^>]*>", "", row)) for row in rows)


# ---------------------------------------------------------------------------- which pages


def test_a_lecture_with_parts_has_a_contents_page_and_a_page_for_each_part():
    assert list(made()) == ["index.md", "memory.md", "compute.md"]
    assert page.titles(lived()) == [
        ("index.md", "Storage & <views"),
        ("memory.md", "Memory & views"),
        ("compute.md", "Compute"),
    ]


def test_a_lecture_without_parts_is_one_page():
    text = '"""T"""\n\n\ndef main() -> None:\n    one()\n\n\ndef one() -> None:\n    """One"""\n    x = 1\n'
    assert list(made(record(text))) == ["index.md"]
    assert '<h2 id="one">One</h2>' in made(record(text))["index.md"]


def test_the_contents_page_lists_parts_theses_and_claims():
    index = made()["index.md"]
    assert "<h1" in index
    assert "Two <em>resources</em>" in index
    assert 'href="memory/"' in index
    assert 'href="memory/#transpose"' in index
    assert "3 claims: ✓ 1 hold · ✗ 1 fail · ○ 1 not run (needs a GPU)" in words(index)


def test_a_claim_that_this_build_cannot_run_has_the_recordings_verdict_and_its_device():
    pages_ = made(recordings=[recorded()])
    assert "3 claims: ✓ 1 hold · ✗ 1 fail · ✓ 1 hold, as recorded on NVIDIA H200" in words(pages_["index.md"])
    assert "1 claim: ✓ 1 hold, as recorded on NVIDIA H200" in words(pages_["compute.md"])
    listed = shown(page.lecture_list([LectureRuns("lecture_02", lived(), (recorded(),))]))
    assert 'title="1 hold, as recorded on NVIDIA H200">✓ 1<' in listed
    parts = pages_["index.md"].partition('class="lb-parttitle"')[2].partition('class="lb-foot"')[0]
    assert "memory/" in parts and "lb-tally" not in parts
    missed = changed(recorded(), "speed", claims=lambda was: (replace(was[0], verdict="fails"),))
    assert "✗ 1 fail, as recorded on NVIDIA H200" in words(made(recordings=[missed])["compute.md"])


def test_a_recording_of_an_older_text_decides_nothing():
    old = older(recorded())
    assert "○ 1 not run (needs a new recording)" in words(made(recordings=[old])["compute.md"])
    newest = replace(recorded(), environment=replace(recorded().environment, date="2026-11-18T10:00:00Z"))
    assert "✓ 1 hold, as recorded" in words(made(recordings=[old, newest])["compute.md"])


def test_sections_are_headings_with_the_functions_name_as_anchor():
    memory = made()["memory.md"]
    assert '<h1 id="memory">Memory &amp; views</h1>' in memory
    assert '<h2 id="transpose">A transpose rewrites <code>strides</code></h2>' in memory
    assert '<h3 id="transpose-1">Why</h3>' in memory


def test_parts_lead_back_and_on():
    pages_ = made()
    assert 'href="../compute/" rel="next"' in pages_["memory.md"]
    assert 'href="../memory/" rel="prev"' in pages_["compute.md"]
    assert 'rel="prev"' not in pages_["memory.md"]


def test_a_link_to_a_section_finds_its_page():
    assert 'href="../compute/#speed"' in made()["memory.md"]


# ---------------------------------------------------------------------------- lines


def ids(body: str) -> list[str]:
    return re.findall(r'(?<=\s)id="([^"]*)"', body)


@pytest.mark.parametrize("name", ["index.md", "memory.md", "compute.md"])
def test_every_id_is_unique(name):
    found = ids(made(recordings=[recorded()])[name])
    assert sorted(found) == sorted(set(found))


def test_every_line_of_a_section_has_its_anchor():
    it = lived()
    body = made(it)["memory.md"]
    for name in ("memory", "transpose"):
        f = it.by_key[name]
        missing = [n for n in range(f.first, f.last + 1) if f'id="L{n}"' not in body]
        assert missing == []


def test_a_shown_line_keeps_its_number_and_its_text():
    line = at("y = x.t()")
    number = rf'id="L{line}" href="#L{line}"[^<>]*>{line}</a>'
    assert re.search(number + re.escape('<code class="lb-c">y = x.t()</code>'), made()["memory.md"])


def test_directives_notes_and_hidden_lines_are_not_shown_as_code():
    codes = code_of(made()["memory.md"])
    assert "@inspect" not in codes
    assert "@hide" not in codes
    assert "secret" not in codes
    assert "note(" not in codes


def test_a_line_inside_a_string_keeps_its_spaces_and_its_colour():
    assert '<span class="s">    kept as it is</span>' in made()["memory.md"]


def test_code_prose_and_results_stand_in_the_order_of_the_source():
    text = words(made()["memory.md"])
    order = [
        "A walk.",
        "A transpose rewrites",
        "Six numbers",
        "y = x.t()",
        "Commonly said:",
        "Run: It does not.",
        "Definitions six : Six numbers",
    ]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)


def test_a_note_that_never_ran_stays_visible_as_code():
    assert 'note("Fast.")' in code_of(made()["compute.md"])


def test_a_helper_is_folded_on_the_page_that_uses_it_first():
    pages_ = made()
    assert '<details class="lb-def" id="six">' in pages_["memory.md"]
    assert 'id="six"' not in pages_["compute.md"]


@pytest.mark.parametrize(
    "mention", ['"a walk"', "x.walk", "dict(walk=1)", "1  # a walk", "2; walk = 3; print(walk)"]
)
def test_a_word_of_the_prose_is_no_use_of_the_helper_of_that_name(mention):
    text = LECTURE.replace("secret = 1  # @hide", f"secret = {mention}").replace(
        "rate = [1][0] + 0 ", "rate = walk() "
    )
    pages_ = made(record(text + "\n\ndef walk() -> int:\n    return 1\n"))
    assert '<details class="lb-def" id="walk">' in pages_["compute.md"]
    assert 'id="walk"' not in pages_["memory.md"]
    assert ">walk</a>" not in pages_["memory.md"]


def test_a_helper_in_code_is_a_link_to_its_definition_on_this_page_or_another():
    text = LECTURE.replace("secret = 1  # @hide", "é = 'walk'; secret = walk(lambda walk: walk)").replace(
        "rate = [1][0] + 0 ", "rate = [walk(1)] "
    )
    text += "\n\ndef walk(n):\n    return walk(n - 1) if n else step(n)\n\n\ndef step(n): ...\n"
    walk, step = (text.split("\n").index(line) + 1 for line in ("def walk(n):", "def step(n): ..."))
    pages_ = made(record(text))
    here, there = pages_["memory.md"], pages_["compute.md"]
    assert f'= <a href="#L{walk}">walk</a>(<span class="k">lambda </span>walk: walk)' in here
    assert f'= [<a href="../memory/#L{walk}">walk</a>(' in there
    assert 'return </span>walk(n - <span class="m">1</span>)' in here, "not in its own definition"
    assert f'<span class="k">else </span><a href="#L{step}">step</a>(n)' in here, "in another's"
    assert here.count(f'id="L{walk}"') == here.count(f'id="L{step}"') == 1


def test_the_front_page_shows_code_without_links():
    text = LECTURE.replace("rate = [1][0] + 0 ", "rate = walk() ") + "\n\ndef walk():\n    return 1\n"
    assert "<a href" not in re.sub(r'<a class="lb-n".*?</a>', "", page.excerpt(record(text)))


# ---------------------------------------------------------------------------- values


def beside(body: str, line: int) -> str:
    """What stands in the margin of this line."""
    match = re.search(
        rf'id="L{line}" .*?</code>(?: <div class="lb-v" style="--s:\d+">(.*?)</div></div>)?', body, re.S
    )
    assert match is not None
    return words(match[1] or "")


def test_values_stand_beside_their_line():
    body = made()["memory.md"]
    assert beside(body, at("x = six()")).startswith("x float32 [row 2, col 3] · 24 B")
    assert "y float32 [3, 2] · 24 B same storage as x" in beside(body, at("y = x.t()"))
    assert "y.stride() (1, 3)" in words(body)


def test_a_value_of_a_line_that_is_not_shown_stands_beside_the_line_above():
    assert "secret 1" in words(made()["memory.md"])


def test_a_section_that_shows_no_code_still_shows_its_failures():
    text = '"""T"""\n\n\ndef main() -> None:\n    one()\n\n\ndef one() -> None:\n    """One"""\n    assert 1 == 2, "no"  # @hide\n'
    it = record(text)
    no = Claim(2, 2, "1 == 2", "no", "fails", count=1)
    body = made(ran(it, "one", claims=(no,)))["index.md"]
    assert "This claim fails. no lectures/lecture_02.py:10" in words(body)
    assert "✗ fails no" in words(body)


def test_the_caption_of_a_claim_that_fails_is_drawn_wherever_it_stands():
    text = '"""T"""\n\n\ndef main() -> None:\n    one()\n\n\ndef one() -> None:\n    """One"""\n    assert 1 == 2, "`one` is $n + 1$."\n'
    failing = Claim(2, 2, "1 == 2", "`one` is $n + 1$.", "fails", count=1)
    body = made(ran(record(text), "one", claims=(failing,)))["index.md"]
    list_of_failures, box = "</a> <code>one</code> is <", "fails.</strong> <code>one</code> is <"
    assert list_of_failures in body and box in body


def test_tensors_have_cards_with_their_values():
    body = made()["memory.md"]
    assert 'aria-label="values of x"' in body
    assert "float32 [row 2, col 3] · 24 B · strides (3, 1)" in words(body)


@pytest.mark.parametrize(
    ("between", "inspected", "badge"),
    [
        ("x = x + 1", "x", "shares storage with an earlier x"),
        ("x = x + 1", "", "shares storage with an earlier x"),
        ("z, (x) = 1, x + 1", "", "shares storage with an earlier x"),
        ("z = x = x + 1", "", "shares storage with an earlier x"),
        ("for x in x: z = 1", "", "shares storage with an earlier x"),
        ("x += 1", "", "same storage as x"),
        ("x[0] = 1", "", "same storage as x"),
        ("z = x == dict(x=1)", "", "same storage as x"),
        ("x.y = 1", "", "same storage as x"),
    ],
)
def test_a_view_of_what_a_name_was_before_is_not_said_to_share_with_what_it_is_now(between, inspected, badge):
    text = f'"""T"""\n\n\ndef main() -> None:\n    one()\n\n\ndef one() -> None:\n    """One"""\n    x = f()\n    {between}\n    row = g()\n'
    it = ran(ran(record(text), "main"), "one")
    values = [shows(it, "one", "x = f()", "x", 0)]
    values += [shows(it, "one", between, "x", 1)] if inspected else []
    values += [Value(len(it.by_key["one"].steps) - 1, 0, 4, "row", 0)]
    snapshots = (replace(X, storage=0), replace(X, storage=1))
    body = made(fill(it, "one", values=tuple(values), snapshots=snapshots))["index.md"]
    assert re.findall(r'<span class="lb-badge">(.*?)</span>', body)[-1] == badge


def test_two_values_of_one_line_are_of_one_moment():
    text = '"""T"""\n\n\ndef main() -> None:\n    x = f()\n    x = x + 1\n'
    values = (Value(0, 0, 1, "x", 0), Value(1, 0, 2, "row", 0), Value(1, 0, 2, "x", 1))
    snapshots = (replace(X, storage=0), replace(X, storage=1))
    body = made(ran(record(text), "main", values=values, snapshots=snapshots))["index.md"]
    assert "earlier x" in words(body) and "same storage as" not in words(body)


@pytest.mark.parametrize(("size", "kept", "rows"), [(10, 10, 1), (17, 17, 3), (40, 40, 5), (99, 40, 6)])
def test_many_values_of_one_dimension_stand_in_rows_of_eight(size, kept, rows):
    it = Tensor("torch.Tensor", "int64", (size,), corner=(kept,), values=tuple(range(kept)))
    card = cards.tensor("x", it)
    assert card.count("<tr>") == rows
    assert re.findall(r"<td class=.s\d.>(\d+)</td>", card) == [str(n) for n in range(kept)]
    assert card.count('class="cut"') == (size > kept)


def test_a_storage_that_two_tensors_share_is_drawn_with_words():
    body = made()["memory.md"]
    assert (
        'role="img" aria-label="Storage in order: 0 1 2 3 4 5. y, shape [3, 2], strides (1, 3), offset 0, '
        in body
    )
    assert "reads the elements at 0 3; then 1 4; then 2 5." in body


@pytest.mark.parametrize(
    ("shape", "strides", "arcs", "jump"),
    [
        ((2, 3), (3, 1), [(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3)]),
        ((3, 2), (1, 3), [(0, 3), (1, 4), (2, 5)], [(0, 1)]),
        ((2, 2, 1), (3, 1, 1), [], [(0, 1)]),  # the axis before the last
        ((1, 3), (3, 1), [(0, 1), (1, 2)], []),
        ((6,), (1,), [(n, n + 1) for n in range(5)], []),
    ],
)
def test_a_strip_draws_the_steps_of_a_row_above_it_and_the_step_to_the_next_row_below(
    shape, strides, arcs, jump
):
    view = Tensor("torch.Tensor", "int64", shape, strides=strides, memory=tuple(range(6)), storage_bytes=48)
    drawn = drawings.storage([("x", view)])
    strip = re.findall(r"<svg .*?</svg>", drawn)[0]
    above, _, below = strip.partition('<g class="lb-jump"')
    where = r"M([\d.]+) 22Q[\d.]+ [-\d.]+ ([\d.]+) 22"  # where an arrow begins and ends

    def ends(text):
        at = [(float(a), float(b)) for a, b in re.findall(where, text)]
        return [((a - 2) // drawings.CELL, (b - 2) // drawings.CELL) for a, b in at]

    assert (ends(above), ends(below)) == (arcs, jump)
    assert bool(below) == bool(jump) == ("matrix(1 0 0 -1" in strip), "upside down"


def test_a_large_tensor_is_visibly_cut():
    big = replace(
        X, shape=(1000, 1000), corner=(2, 3), memory=None, stats=model.Stats(-1.0, 5.0, 0.5, 1.0, nan=3)
    )
    body = made(changed(lived(), snapshots=lambda was: (big, *was[1:])))["memory.md"]
    assert "⋱" in body
    assert "min -1.0 · mean 0.5 · max 5.0 · std 1.0 · 3 nan" in words(body)


def test_mappings_with_the_same_keys_become_one_table():
    keys = tuple(Scalar("str", f"'{k}'") for k in ("bits", "max", "smallest_normal", "resolution"))

    def limits(n: int) -> Mapping:
        return Mapping(
            "torch.finfo", 4, keys, tuple(Scalar("float", f"{n}.123456789", n + 0.123456789) for _ in keys)
        )

    body = made(changed(lived(), snapshots=lambda was: (limits(1), limits(2), *was[2:])))["memory.md"]
    assert body.count('<table class="lb-table">') == 1
    assert '<th scope="row">x</th>' in body
    assert '<th scope="row">y</th>' in body


def test_a_loop_shows_first_and_last_and_its_turns():
    body = made(recordings=[recorded()])["compute.md"]
    assert "loss 0 … 8 9 turns" in words(body)
    assert 'aria-label="loss over the loop: from 0 to 8, lowest 0, highest 8"' in body


def test_printed_output_is_text():
    assert "printed &lt;b&gt;" in made()["memory.md"]


# ---------------------------------------------------------------------------- claims and failures


def test_a_claim_that_holds_shows_both_sides():
    said = beside(made()["memory.md"], at("assert y.str"))
    assert said == "(1, 3) = (1, 3)"


@pytest.mark.parametrize(
    ("test", "shown"),
    [
        ("a is None", "None"),
        ("a == b == None", "None"),
        ("yes is True", "True"),
        ("a is not True", "None is not True"),
        ("n == 2 * 3", "6 = 6"),
        ("5 < n == 6", "5 < 6 = 6"),
        ("many == list(range(12))", "both [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"),
        ("torch.equal(x, x + 0)", "[0, 1, 2, 3] = [0, 1, 2, 3]"),
        ("not torch.equal(x, x + 1)", "[0, 1, 2, 3] ≠ [1, 2, 3, 4]"),
        ("torch.allclose(x * 1.0, x + 0.0)", "both [0, 1, 2, 3]"),
        ("torch.equal(wide, wide + 0)", "both 3×40: 100000, 100001, …"),
    ],
)
def test_a_claim_says_its_values_and_what_is_the_same_once(tmp_path, test, shown):
    names = "import torch\na = b = None\nyes, n, many = True, 6, list(range(12))\nx = torch.arange(4)"
    wide = "wide = torch.arange(120).view(3, 40) + 100000"
    it = run(tmp_path, section(f"{names}\n{wide}\nassert {test}, 'so it is'"))
    ((one, judged),) = it.claims()
    assert margin.side_values(judged, one.snapshots) == shown


def test_tensors_that_begin_alike_and_differ_show_where(tmp_path):
    text = "import torch\nx = torch.zeros(6, 6)\ny = x.clone()\ny[0, 5] = 1\nassert not torch.equal(x, y)"
    ((one, judged),) = run(tmp_path, section(text)).claims()
    was, now = margin.side_values(judged, one.snapshots).split(" ≠ ")
    assert was.startswith("6×6: 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ")
    assert now.startswith("6×6: 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, ")


def test_claims_that_the_page_hides_are_folded_with_their_lines_to_one_line_that_counts_them(tmp_path):
    text = section(
        "x = 3\nassert x == 3, 'it counts'\nassert x < 4, 'three it is'  # @hide\nassert x > 2  # @hide"
    )
    body = "".join(page.pages(run(tmp_path, text)).values())
    shown, fold = body.split('<details class="lb-guards">')
    assert "it counts" in shown and "three it is" not in shown
    assert "✓ 2 more claims hold" in words(fold) and "✓ holds: 3 < 4" in words(fold)
    assert re.findall(r'id="L(\d+)"', body) == sorted({*re.findall(r'id="L(\d+)"', body)}, key=int)


def test_a_claim_that_fails_on_a_line_that_the_page_hides_stands_in_sight(tmp_path):
    text = section("x = 3\nassert x == 4, 'four it is'  # @hide")
    body = "".join(page.pages(run(tmp_path, text)).values())
    assert "lb-guards" not in body and "This claim fails. four it is" in words(body)


def test_a_promise_of_dtype_and_axes_that_is_kept_says_so():
    it = lived()
    axes = claim(it, "transpose", "x = six()", 1, 'x: Float[Tensor, "row col"]', "", "holds", "axes", 1)
    assert "✓ dtype and axes" in beside(
        made(fill(it, "transpose", claims=(axes,)))["memory.md"], at("x = six()")
    )


def test_a_claim_that_fails_cannot_be_overlooked():
    body = made()["memory.md"]
    line = at("assert (")
    assert f'<a href="#L{line}">lectures/lecture_02.py:{line}</a> the same shape' in body
    assert "This claim fails. the same shape lectures/lecture_02.py" in words(body)
    assert body.count("lb-failed") == 3
    assert "x.shape (2, 3) y.shape (3, 2)" in words(body)
    assert f'href="memory/#L{line}"' in made()["index.md"]


def test_a_claim_on_another_device_says_which_and_that_it_is_not_recorded():
    body = words(made()["compute.md"])
    line = "Not run (needs a GPU) Shows 1 claim: litbook run lecture_02 --device cuda"
    assert line in body and "○ not run" in body and "…" not in body


def test_a_recording_speaks_for_a_section_that_did_not_run_here():
    body = words(made(recordings=[recorded()])["compute.md"])
    assert "recorded: NVIDIA H200, 19 Nov 2026" in body
    assert "rate 788 TFLOP/s" in body
    assert "Fast, very ." in body
    assert "not recorded on a" not in body.lower()


def test_a_recording_of_an_older_text_does_not_speak_for_the_section():
    body = words(made(recordings=[fill(recorded(), "speed", depends="other")])["compute.md"])
    assert "Recorded: NVIDIA H200, 19 Nov 2026, torch 2.13.0, from an older text." in body
    assert "Shows " not in body
    assert "788 TFLOP/s" not in body.split("it moves")[0]


def test_an_error_is_shown_at_its_line_and_what_follows_is_dimmed():
    it, led, number = lived(), at("y = x.t()"), at("assert y.str")
    error = Error("exception", line(it, "transpose", "y = x.t()"), "    y = x.t()", "RuntimeError: <b>no</b>",
                  (("lectures/lecture_02.py", led, "transpose", "    y = x.t()"),))  # fmt: skip
    last = step(it, "transpose", "assert y.str")
    body = made(changed(
        it, errors=lambda _: (error,), steps=lambda was: was[:last],
        claims=lambda was: (replace(was[0], verdict="not-reached"),),
    ))["memory.md"]  # fmt: skip
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt;" in body
    assert "The lecture raised here." in body
    assert re.search(rf'id="L{number}" [^>]*>\d+</a><code class="lb-c lb-dim">', body)
    assert "– not reached" in words(body)


def test_an_error_in_a_module_stands_beside_the_line_that_led_there_whatever_its_own_number_is():
    it = lived()
    led, elsewhere = at("y = x.t()"), at("rate = [1][0] + 0")
    error = Error("exception", line(it, "transpose", "y = x.t()"), "    y = x.t()", "KeyError: 3",
                  (("lectures/lecture_02.py", led, "transpose", "    y = x.t()"),
                   ("lectures/decoder.py", elsewhere, "speed", "    table[3]")))  # fmt: skip
    found = made(fill(it, "transpose", errors=(error,)))
    assert "✗ error KeyError: 3" in words(found["memory.md"])
    assert f"lectures/decoder.py:{elsewhere} in speed" in words(found["memory.md"])
    assert "KeyError" not in found["compute.md"], "whose section has that name and that line"


def test_an_inspection_that_raised_says_so_beside_its_line():
    broken = {"value": None, "error": "IndexError: 5"}
    it = changed(lived(), values=lambda was: (replace(was[0], **broken), *was[1:]))
    assert "x ✗ IndexError: 5" in beside(made(it)["memory.md"], at("x = six()"))


def test_the_foot_says_where_the_numbers_come_from():
    foot = words(made()["memory.md"])
    for fact in (
        "AMD EPYC, 2 cores",
        "Python 3.11.7, torch 2.13.0",
        "20 Nov 2026, 1.2 s",
        "commit 0123456789ab",
        "seed 0",
    ):
        assert fact in foot


def test_references_stand_at_the_end_of_the_page_that_cites_them():
    assert 'id="ref-glu"' in made()["index.md"]
    assert "ref-glu" not in made()["memory.md"]


def test_a_citation_opens_title_authors_and_date_where_it_stands_and_needs_no_script():
    body = made()["index.md"]
    assert (
        '[<button type="button" popovertarget="cited-ref-glu" aria-label="reference 1: Noam Shazeer 2020">1</button>]'
        in body
    )
    card = '<div class="lb-cited" id="cited-ref-glu" popover="auto">Noam Shazeer. <cite>GLU</cite>. 2020. '
    assert card + '<a href="#ref-glu">In the list</a></div>' in body


def test_what_is_wrong_with_prose_names_file_and_line():
    bad = "$\\frac{1$ [@nobody] [x](#nowhere)"
    it = changed(
        fill(lived(), "transpose", pieces=()), "memory", pieces=lambda was: (replace(was[0], text=bad),)
    )
    found: list = []
    page.pages(it, REFERENCES, (), found)
    assert sorted(p.code for p in found) == ["bad-math", "broken-link", "unknown-citation"]
    assert all(str(p).startswith(f"lectures/lecture_02.py:{at('A walk')}:5: ") for p in found)


def test_a_title_that_holds_html_is_an_error_with_its_place():
    found: list = []
    page.pages(replace(lived(), title="Storage <b>first</b>"), REFERENCES, (), found)
    assert [str(it).split("\n")[0] for it in found] == [
        "lectures/lecture_02.py:1:1: a note cannot hold HTML: '<b>'"
    ]


# ---------------------------------------------------------------------------- hostile values

EVIL = [
    "</script><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "a\u202eb\u2066c",
    "x" * 100_000,
    "👩‍🔬 😀",
    "</div></div></details>",
    "```\n# heading\n{: onclick=x}",
    "<!-- -->",
    "\x00\x02wzxhzdk:0\x03",
    "]]> &lt; &amp; &#60;script>",
    "$\\text{<script>}$ [x](javascript:y) {#id onclick=x}",
]


class Witness(html.parser.HTMLParser):
    """Anything that could run or load; and whether every element is closed."""

    EMPTY = frozenset("br hr img input path rect circle polyline line".split())
    PLAIN = frozenset(
        "a aside b bdi blockquote button br caption cite code dd details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr img input label li math mfrac mi "
        "mn mo mrow ms mspace mstyle msub msup mtext nav ol p path polyline pre rect small span strong summary svg table tbody "
        "section td text th thead tr ul g use defs".split()
    )

    def __init__(self):
        super().__init__()
        self.found, self.open = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.PLAIN:
            self.found.append(tag)
        self.found += [
            f"{tag} {n}={v}"
            for n, v in attrs
            if n.startswith("on") or (n == "href" and "javascript:" in (v or ""))
        ]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.found.append(f"</{tag}>")


def witness(body: str) -> list[str]:
    it = Witness()
    it.feed(body)
    it.close()
    return it.found + it.open


def haunted(evil: str) -> Record:
    """The lecture with `evil` wherever a record holds text."""
    it = lived()
    text = Scalar("str", evil)
    operands = (Operand(evil, 2), Operand(evil))
    claimed = {"text": evil, "caption": evil, "why": evil, "form": (evil, evil, evil), "operands": operands}
    error = Error("exception", 6, evil, evil, ((evil, at("y = x.t()"), evil, evil),))
    it = changed(
        it,
        values=lambda was: tuple(replace(v, text=evil, unit=evil) for v in was),
        claims=lambda was: tuple(replace(c, **claimed) for c in was),
        errors=lambda _: (error,),
        snapshots=lambda _: (
            replace(X, dtype=evil, device=evil, axes=(evil, evil)),
            Mapping(evil, 9, (text,) * 3, (text,) * 3), text, text, model.Opaque(evil, evil, why=evil), pair(1),
        ),
    )  # fmt: skip
    return replace(
        it,
        title=evil,
        sections=tuple(
            replace(
                s, heading=evil, pieces=tuple(replace(p, text=evil, data=evil, alt=evil) for p in s.pieces)
            )
            for s in it.sections
        ),
        definitions=tuple(replace(d, heading=evil) for d in it.definitions),
        environment=replace(PLACE, cpu=evil, versions={evil: evil}, commit=evil, date=evil),
    )


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_whatever_a_record_holds_is_shown_as_text(evil):
    for body in made(haunted(evil)).values():
        assert witness(body) == []
        found = ids(body)
        assert sorted(found) == sorted(set(found))


@given(st.text(max_size=60))
def test_whatever_text_a_record_holds_its_pages_stay_whole(text):
    for body in made(haunted(text or "x")).values():
        assert witness(body) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("אורך - 2", "<bdi>אורך</bdi> - 2"),
        ("n_אורך שלום y", "<bdi>n_אורך שלום</bdi> y"),
        ("שָׁלוֹם = 3", "<bdi>שָׁלוֹם</bdi> = 3"),  # with points, which are no letters
        ("é - 2", "é - 2"),
    ],
)
def test_words_from_right_to_left_stand_alone(text, shown):
    assert elements.html(text) == shown


def test_code_of_any_kind_is_shown_as_text():
    text = LECTURE.replace("x = six()", 'x = "</code></script><script>`" + \'{: onclick=x}\' + "```"')
    it = record(text)
    assert witness(shown(page.pages(it)["memory.md"])) == []


def test_a_very_long_line_is_shown_whole():
    text = LECTURE.replace("x = six()", f'x = "{"y" * 100_000}"')
    assert "y" * 100_000 in page.pages(record(text))["memory.md"]


# ---------------------------------------------------------------------------- pictures

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="72pt" height="36pt" viewBox="0 0 72 36">'
    "<metadata>m</metadata><style>*{fill:red}</style><script>alert(1)</script>"
    '<defs><clipPath id="c"><rect width="9" height="9"/></clipPath><path id="p" d="M0 0"/></defs>'
    '<g clip-path="url(#c)" onclick="x" style="fill: #ffffff; stroke: #000000"><use xlink:href="#p"/><use href="https://a.b/c#d"/>'
    '<text style="background: url(https://a.b)">a &lt; b</text><foreignObject><p>x</p></foreignObject></g>'
    '<a href="javascript:x"><rect/></a><image href="https://a.b/c.png"/></svg>'
)  # fmt: skip


def test_a_figure_is_inline_named_and_harmless():
    drawn = safe_svg.inline(SVG, 'a "curve"', "f1-")
    assert 'width="96" height="48" role="img" aria-label="a &quot;curve&quot;"' in drawn
    assert 'clip-path="url(#f1-c)"' in drawn
    assert 'href="#f1-p"' in drawn
    assert 'id="f1-c"' in drawn
    for gone in (
        "script",
        "onclick",
        "https://",
        "javascript",
        "foreignObject",
        "metadata",
        "<style",
        "alert",
    ):
        assert gone not in drawn


def test_a_figure_follows_the_theme():
    assert "fill: var(--lb-paper); stroke: currentColor" in safe_svg.inline(SVG, "a", "f1-")


@pytest.mark.parametrize("text", ["", "<svg", "<html/>", '<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>'])
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(safe_svg.NotAPicture):
        safe_svg.inline(text, "a", "f1-")


def test_two_figures_on_a_page_share_no_id():
    it = lived()
    figure = piece(it, "figure", "misbelief(", "A `caption`", data=SVG, alt="A curve")
    body = made(changed(it, pieces=lambda was: (*was, figure, figure)))["memory.md"]
    assert body.count('aria-label="A curve"') == 2
    assert sorted(ids(body)) == sorted(set(ids(body)))


def test_a_figure_without_alt_is_a_problem():
    it = lived()
    found: list = []
    figure = piece(it, "figure", "misbelief(", "c", data=SVG)
    page.pages(changed(it, pieces=lambda was: (*was, figure)), REFERENCES, (), found)
    assert [p.code for p in found] == ["no-alt"]


# ---------------------------------------------------------------------------- the ledger


def test_the_ledger_lists_every_claim_with_its_verdict_on_every_device():
    it = LectureRuns("lecture_02", lived(), (recorded(),))
    body = shown(ledger.claims_page(it, "memory.md").partition("---\n\n")[2])
    assert body.count('<tr class="lb-entry') == 2
    assert f'href="../../../lecture_02/memory/#L{at("assert (")}"' in body
    assert "Claim This build NVIDIA H200, 19 Nov 2026, recorded" in words(body)
    assert "✗ fails · (2, 3) == (3, 2)" in words(body)
    assert "recorded NVIDIA H200 · 19 Nov 2026 · Python " in words(body)
    assert "✓ holds · 7.88e14 > 0" in words(shown(ledger.claims_page(it, "compute.md")))


def test_the_ledger_has_theses_for_headings_and_says_once_what_two_runs_say():
    build, other = lived(), replace(lived(), environment=recorded().environment)
    body = shown(ledger.claims_page(LectureRuns("lecture_02", build, (other,)), "memory.md"))
    heading = words(page.pages(build, REFERENCES)["memory.md"])
    thesis = re.search(r'<th colspan="3" scope="rowgroup">(.*?)</th>', body)
    assert thesis and words(thesis[1]) in heading and words(thesis[1]) == "A transpose rewrites strides"
    assert words(body).count("(2, 3) == (3, 2)") == 1 and words(body).count("✗ the same") == 1


def test_the_first_page_of_the_ledger_counts_by_page_and_shows_what_fails_alone():
    body = shown(ledger.page([LectureRuns("lecture_02", lived(), (recorded(),))]))
    assert body.count('<tr class="lb-entry lb-fails') == body.count('<tr class="lb-entry') == 1
    assert f'href="../lecture_02/memory/#L{at("assert (")}"' in body
    assert re.findall(r'<li><a href="(.*?)">', body) == ["lecture_02/memory/", "lecture_02/compute/"]
    assert "2 claims: ✓ 1 hold · ✗ 1 fail" in words(body)


def test_the_ledger_is_also_data():
    made_ = json.loads(ledger.data([LectureRuns("lecture_02", lived(), (recorded(),))]))
    assert made_["schema"] == 1
    assert made_["counts"] == {"claims": 3, "holds": 1, "fails": 1, "not-reached": 0, "needs-device": 1}
    assert [(run["kind"], run["name"]) for run in made_["runs"]] == [
        ("build", "CPU"),
        ("recording", "NVIDIA H200"),
    ]
    assert made_["claims"][0] == {
        "lecture": "lecture_02",
        "section": "transpose",
        "address": f"lecture_02/memory/#L{at('assert y.str')}",
        "file": "lectures/lecture_02.py",
        "line": at("assert y.str"),
        "claim": "y.stride() == (1, 3)",
        "caption": "strides *swap*",
        "kind": "assert",
        "requires": None,
        "verdicts": [
            {
                "run": 0,
                "verdict": "holds",
                "current": True,
                "operands": [
                    {"text": "y.stride()", "value": "(1, 3)"},
                    {"text": "(1, 3)", "value": "(1, 3)"},
                ],
            }
        ],
    }
    assert [v["verdict"] for v in made_["claims"][2]["verdicts"]] == ["needs-device", "holds"]
    assert [v["run"] for v in made_["claims"][2]["verdicts"]] == [0, 1]


def test_every_field_of_claims_json_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "maintain.md").read_text(encoding="utf-8")
    text = text[text.index("## `claims.json`") :]
    made_ = json.loads(ledger.data([LectureRuns("lecture_02", lived(), (recorded(),))]))
    told = set(re.findall(r"`([\w-]+)`", text))
    verdict = made_["claims"][0]["verdicts"][0]
    parts = (made_, made_["counts"], made_["runs"][0], made_["claims"][0], verdict, verdict["operands"][0])
    for part in parts:
        assert set(part) <= told


def test_the_badge_counts_what_holds_anywhere_and_turns_red_where_something_fails():
    shelf = LectureRuns("lecture_02", lived(), (recorded(),))
    assert "<title>claims: 1 of 3 fail</title>" in ledger.claims_badge([shelf])
    good = changed(lived(), claims=lambda was: tuple(replace(c, verdict="holds") for c in was))
    assert "claims: 3 hold<" in ledger.claims_badge([LectureRuns("lecture_02", good, (recorded(),))])
    assert "claims: 2 hold, 1 not run<" in ledger.claims_badge([LectureRuns("lecture_02", good)])
    assert ledger.BAD in ledger.claims_badge([shelf]) and ledger.GOOD not in ledger.claims_badge([shelf])
    old = older(recorded())
    assert "claims: 2 hold, 1 not run<" in ledger.claims_badge([LectureRuns("lecture_02", good, (old,))])


def test_a_badge_is_one_picture_whose_text_is_text():
    made_ = ledger.badge("<script>", '"&', ledger.GOOD)
    root = ElementTree.fromstring(made_)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("aria-label") == '<script>: "&'
    assert "http" not in made_.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("prose", "said"),
    [
        ("A copy.…", "A copy."),
        ("Not in the cache:…", "Not in the cache:"),
        ("… MiB of them. It is told. So are … others.", "It is told."),
        ("A rate of … here.", ""),
        ("A rate\nof … here. The rest\nstays.", "The rest\nstays."),
        ("It stays,\nall of it. And *so* `x.…` is.\n\n- … B\n- two", "It stays,\nall of it.\n\n- two"),
        ("Of `x. Y`, $a. B$ and [a. B](https://a.b) … is left. So.", "So."),
        ("```\nx. …\n```\n\n> A … B. [C](https://a.b).", "```\nx. …\n```\n\n> [C](https://a.b)."),
        ("| a |\n|---|\n| … |\n| 1 |", "| a |\n|---|\n| 1 |"),
        ("…; …. …\n\n| how | ms |\n|---|---|\n…", ""),
        (
            "Three ways:\n\n| how | ms |\n|---|---|\n…",
            "",
        ),
        ("| how | ms |\n|---|---|\n| cold | 1 |\n…", "| how | ms |\n|---|---|\n| cold | 1 |"),
        ("**Commonly said:** “It copies.”\n\n**Run:** It does not.", ""),
    ],
)
def test_prose_that_never_ran_has_no_end_and_no_table_that_only_a_run_can_fill(prose, said):
    assert unexecuted.static_prose(prose) == said


@pytest.mark.parametrize("name", ['x" onclick="boom()', "x} <b>", "x onclick=boom()", "x\ny"])
def test_whatever_an_anchor_is_made_of_it_is_no_further_attribute(name):
    made = markdown.markdown(
        elements.heading(2, elements.text("Head"), name), extensions=["attr_list", "toc"]
    )
    assert re.fullmatch(r'<h2 id="[\w.:-]+">Head</h2>', made)


def test_a_lecture_that_has_not_run_has_no_pictures() -> None:
    assert media.files([]) == {}
