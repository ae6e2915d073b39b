"""What the ranks of a section left becomes one entry: by hand, from runs of which each plays one rank."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from msgspec.structs import replace
from tests.running import claims, one, plain, record, section, write

from litbook.errors import RecordError, UnusableLecture
from litbook.html import player
from litbook.lecture import parse
from litbook.notebook import ipynb
from litbook.page import blocks, margin, sitemap
from litbook.page import section as document
from litbook.record import compare, device_kinds, encoding, model, ranks, recordings
from litbook.rules.vacuous import find_vacuous
from litbook.run import process
from litbook.run.mailbox import Mailbox
from litbook.run.ranks import launch as launches

BODY = """
note("Every rank has a number.")
rank = RANK  # @inspect rank
whole = [1, 2]  # @inspect whole
print("I am", rank)
assert sum(whole) == 3, "the sum"
assert rank < 2, "half of them"
if rank == 1:
    assert rank + 1 == 2, "the second"
if rank == 3:
    raise ValueError("no more")
"""


def of(folder: Path, body: str, world: int = 4) -> list[model.Record]:
    """The record of each rank."""
    return [record(folder, section(body, f"RANK = {rank}")) for rank in range(world)]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> list[model.Record]:
    return of(tmp_path_factory.mktemp("ranks"), BODY)


@pytest.fixture(scope="module")
def merged(left: list[model.Record]) -> model.Section:
    return ranks.merge_entries([one(made) for made in left])


def values(entry: model.Section) -> list[object]:
    return [plain(entry.snapshots[value.value]) for value in entry.values if value.value is not None]


def test_a_claim_that_is_zero_on_one_rank_says_something_where_it_does_on_another(tmp_path: Path) -> None:
    left = of(tmp_path, "rank = RANK\nassert rank == RANK + 0, 'own'\nassert rank * 0 == 0, 'none'")
    entries = {one(left[0]).key: ranks.merge_entries([one(made) for made in left])}
    sections = tuple(entries.get(entry.key, entry) for entry in left[0].sections)
    whole = replace(left[0], sections=sections)
    assert [problem.place.text.strip() for problem in find_vacuous(whole) if problem.place] == [
        "assert rank * 0 == 0, 'none'"
    ]


def test_each_rank_is_an_ordinary_section_again(left: list[model.Record], merged: model.Section) -> None:
    for rank, made in enumerate(left):
        again, was = ranks.of_rank(merged, rank), one(made)
        assert values(again) == values(was)
        assert [piece.text for piece in again.pieces] == [piece.text for piece in was.pieces]
        assert [claim.verdict for claim in again.claims] == [claim.verdict for claim in was.claims]
        assert again.steps == was.steps and again.errors == was.errors and again.shares == ()


def test_what_all_ranks_share_is_kept_once(merged: model.Section) -> None:
    assert [plain(shot) for shot in merged.snapshots].count(0) == 1
    first, second = merged.shares[:2]
    assert (first.values, first.pieces) == (None, None)
    assert second.values is not None and [type(value) is int for value in second.values] == [False, True]
    assert second.pieces is not None and second.pieces[0] == 0


def test_a_claim_fails_if_any_rank_finds_it_false_and_the_first_of_them_is_heard(
    merged: model.Section,
) -> None:
    half = merged.claims[1]
    assert (half.verdict, half.why) == ("fails", "on ranks 2 and 3 of 4")
    side = half.operands[0].value
    assert side is not None and plain(merged.snapshots[side]) == 2


def test_a_claim_that_only_some_reach_holds_and_says_where(merged: model.Section) -> None:
    assert [(c.verdict, c.why) for c in merged.claims][::2] == [("holds", ""), ("holds", "on rank 1 alone")]


def test_an_error_names_its_ranks(merged: model.Section) -> None:
    assert [error.message for error in merged.errors] == ["on rank 3: ValueError: no more"]


def test_what_a_rank_met_for_want_of_another_comes_last(tmp_path: Path) -> None:
    body = """
    if RANK == 2:
        raise ValueError("mine")
    raise RuntimeError(f"[{RANK}] Connection closed by peer")
    """
    left = of(tmp_path, body)
    told = [error.message for error in ranks.merge_entries([one(made) for made in left]).errors]
    assert told == [
        "on rank 2: ValueError: mine",
        (
            "on ranks 0, 1 and 3: rank 2 did not come here, came with another size, or had gone: "
            "RuntimeError: [0] Connection closed by peer"
        ),
    ]


def test_a_lost_rank_leaves_no_claim_judged(left: list[model.Record]) -> None:
    gone = ranks.LostRank(
        "the process of the rank was killed by signal 9 (SIGKILL), in the section one", "", 15
    )
    joined = ranks.join_ranks(left[0], [left[0], left[1], gone, left[2]], ["one"])
    assert set(claims(joined).values()) == {"not-reached"}
    (error,) = joined.by_key["one"].errors
    assert error.message == f"on rank 2: {gone.message}"
    assert error.line + joined.by_key["one"].first == 15
    assert error.text == 'assert sum(whole) == 3, "the sum"'


def test_the_record_of_ranks_survives_its_json(left: list[model.Record]) -> None:
    joined = ranks.join_ranks(left[0], left, ["one"])
    assert encoding.loads(encoding.dumps(joined)) == joined


def test_a_share_that_points_nowhere_is_refused(left: list[model.Record]) -> None:
    joined = ranks.join_ranks(left[0], left, ["one"])
    text = encoding.dumps(joined).replace('"pieces":[0,', '"pieces":[77,')
    assert text != encoding.dumps(joined)
    with pytest.raises(RecordError, match="pieces of a rank: 77 of 'one' does not exist"):
        encoding.loads(text)


def test_ranks_have_names() -> None:
    assert ranks.names([0, 1], 2) == "all 2 ranks"
    assert ranks.names([2], 4) == "rank 2"
    assert ranks.names([0, 1, 3], 4) == "ranks 0, 1 and 3"


# ------------------------------------------------------------------------ compared with a recording


def test_a_rank_that_agrees_with_itself_differs_from_no_recording(left: list[model.Record]) -> None:
    joined = ranks.join_ranks(left[0], left, ["one"])
    result = compare.compare(joined, joined)
    assert (result.differences, result.values, result.claims) == ((), 8, 12)


def test_a_recording_of_ranks_has_what_is_compared_and_no_more(left: list[model.Record]) -> None:
    joined = ranks.join_ranks(left[0], left, ["one"])
    kept = recordings.trim(joined)
    assert compare.compare(joined, kept).differences == ()
    assert [ranks.of_rank(one(kept), rank).steps for rank in range(4)] == [()] * 4
    assert [claim.why for claim in one(kept).claims] == [claim.why for claim in one(joined).claims]
    assert encoding.loads(encoding.dumps(kept)) == kept


def test_what_differs_names_its_ranks(tmp_path: Path) -> None:
    """A value whose text is the same, and that another rank has changed."""
    made = of(tmp_path, "import os\nx = int(os.environ.get('X', 0))  # @inspect x\nassert x < 9", 3)
    joined = ranks.join_ranks(made[0], made, ["one"])
    nine = model.Scalar("int", "7", 7)
    entry = one(made[1])
    other = replace(entry, snapshots=(nine, *entry.snapshots[1:]))
    changed = ranks.join_ranks(
        made[0], [made[0], replace(made[0], sections=(*made[0].sections[:-1], other)), made[2]], ["one"]
    )
    told = [str(difference) for difference in compare.compare(changed, joined).differences]
    assert told == [
        "lecture_sample.py:12: one: x, on rank 1, is not what was recorded\n    was 0, is 7, by 7 (1 of it)",
    ]


def test_a_recording_of_another_world_size_is_one_difference(left: list[model.Record]) -> None:
    four, two = (ranks.join_ranks(left[0], some, ["one"]) for some in (left, left[:2]))
    (told,) = compare.compare(two, four).differences
    assert str(told).endswith("what ran is not what was recorded\n    ranks: was 4, is 2, by 2")


# ------------------------------------------------------------------------ what is required


@pytest.mark.parametrize(
    ("text", "device", "count", "simulated"),
    [
        ("cuda", "cuda", 0, 0),
        ("ranks=2", "", 2, 0),
        ("cuda, ranks=64", "cuda", 64, 0),
        ("slow, ranks=4", "slow", 4, 0),
        ("simulated ranks=1024", "", 0, 1024),
    ],
)
def test_a_need_is_read_and_written(text: str, device: str, count: int, simulated: int) -> None:
    assert device_kinds.needs(text) == device_kinds.Needs(device, count, simulated)
    assert str(device_kinds.needs(text)) == text


@pytest.mark.parametrize(
    "text", ["ranks=0", "ranks=1", "ranks=65", "ranks=-4", "ranks=four", "ranks=", "ranks=٣"]
)
def test_a_number_of_ranks_that_nobody_gives_is_refused_at_its_place(text: str) -> None:
    lecture = section("x = 1").replace("def one", f'@requires("{text}")\ndef one')
    with pytest.raises(UnusableLecture) as refused:
        parse.parse(lecture, "lecture.py")
    assert str(refused.value) == (
        f"lecture.py:9:2: requires() takes from 2 to 64 ranks, not {text!r}\n"
        f'    @requires("{text}")\n     ^\n'
        "    more are simulated: 'simulated ranks=1024'"
    )


def test_a_section_needs_what_its_part_needs_too() -> None:
    text = section("two()", '@requires("ranks=2")\ndef two():\n    """Two."""\n    x = 1\n')
    lecture = parse.parse(text.replace("def one", '@requires("cuda")\ndef one'), "lecture.py")
    assert [f.requires for f in lecture.functions if f.name in ("one", "two")] == ["cuda, ranks=2", "cuda"]


def test_what_only_linux_tells_waits_on_another_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = section("assert 1 + 1 == 2").replace("def one", '@requires("linux, ranks=2")\ndef one')
    made = record(tmp_path, text)
    assert margin.not_run("linux, ranks=2") == "Not run (needs 2 ranks on Linux)"
    monkeypatch.setattr("litbook.record.device_kinds.PLATFORM", "linux")
    assert process.worlds(made, slow=False) == {2: ["one"]}
    monkeypatch.setattr("litbook.record.device_kinds.PLATFORM", "darwin")
    assert process.worlds(made, slow=False) == {}
    assert [claim.verdict for _, claim in record(tmp_path, text).claims()] == ["needs-device"]


# ------------------------------------------------------------------------ shown


def test_the_player_steps_through_each_rank(left: list[model.Record]) -> None:
    made = player.data(ranks.join_ranks(left[0], left, ["one"]))
    assert sorted(made) == ["index.player.js", *(f"index.rank{rank}.player.js" for rank in (1, 2, 3))]
    assert "One (rank 2)" in made["index.rank2.player.js"]
    assert "ValueError: no more" in made["index.rank3.player.js"]
    assert "ValueError: no more" not in made["index.rank1.player.js"]


def test_a_margin_has_the_values_of_all_ranks_in_a_row(left: list[model.Record]) -> None:
    joined = ranks.join_ranks(left[0], left, ["one"])
    book = sitemap.build_sitemap(joined, sitemap.NOTHING_CITED, (), [])
    shown = [
        entry
        for block in document.blocks(book, one(joined))
        if isinstance(block, blocks.CodeBlock)
        for row in block.rows
        for entry in row.entries
    ]
    assert [(e.text, e.ranks) for e in shown if isinstance(e, blocks.ShownValue)] == [
        ("0 · 1 · 2 · 3", ("0", "1", "2", "3")),
        ("[1, 2]", ()),
    ]
    judged = [(e.verdict, e.remark) for e in shown if isinstance(e, blocks.ClaimVerdict)]
    assert judged == [("holds", ""), ("fails", "on ranks 2 and 3 of 4"), ("holds", "on rank 1 alone")]
    (printed,) = (b.text for b in document.blocks(book, one(joined)) if isinstance(b, blocks.PrintedOutput))
    assert printed == "".join(f"rank {rank}: I am {rank}\n" for rank in range(4))


def test_a_tensor_that_differs_by_rank_is_a_strip_of_cards(tmp_path: Path) -> None:
    made = of(
        tmp_path,
        "import torch\nx = torch.arange(12.0).reshape(3, 4) + RANK  # @inspect x\nassert x.ndim == 2",
        2,
    )
    joined = ranks.join_ranks(made[0], made, ["one"])
    book = sitemap.build_sitemap(joined, sitemap.NOTHING_CITED, (), [])
    (shelf,) = (
        block for block in document.blocks(book, one(joined)) if isinstance(block, blocks.OutputShelf)
    )
    (strip,) = shelf.things
    assert isinstance(strip, blocks.Strip) and strip.name == "x"
    assert [tensor and tensor.values[0] for tensor in strip.tensors] == [0.0, 1.0]


def test_a_notebook_prints_in_the_order_of_each_rank(tmp_path: Path) -> None:
    body = """
    first = RANK  # @inspect first
    second = RANK  # @inspect second
    if RANK == 9:  # a section that may return stays a function, as one on ranks does
        return
    if RANK == 1:  # so its later steps have other numbers
        more = 0
        more = 1
    question("How many?", answer=RANK, check=0 + RANK)
    last = RANK  # @inspect last
    assert last + 1 > last, "one more"
    """
    made = of(tmp_path, body, 2)
    files = ipynb.files(ranks.join_ranks(made[0], made, ["one"]))
    call = nbformat.reads(files["index.ipynb"], as_version=4).cells[-1]
    names = ("first", "second", "last")
    assert call.outputs[0].text.splitlines() == [
        f"rank {rank}: {name} = {rank}" for rank in range(2) for name in names
    ]
    assert "answer = 0\n" in call.outputs[-1].data["text/markdown"], "folded, and said by one"


# ------------------------------------------------------------------------ not launched


def launched(tmp_path: Path, text: str) -> list[tuple[list[str], list[dict[str, object]]]]:
    asked = {"path": str(write(tmp_path, text)), "sections": ["one"], "timeout": 9.0}
    return launches.launch(Mailbox(str(tmp_path), "key"), ranks=64, asked=asked)


def test_more_ranks_than_memory_bears_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "prepare", lambda *_: True)
    monkeypatch.setattr(launches, "_text", lambda _: f"MemTotal: 9 kB\nMemAvailable: {3 * 2**20} kB\n")
    [(keys, left)] = launched(tmp_path, section("x = 1"))
    assert keys == ["one"] and len(left) == 64
    assert left[0]["message"] == (
        "64 ranks take at least 6.2 GiB of memory, and 3.0 GiB are free: ask for fewer ranks, or end something else"
    )


def test_a_torch_that_cannot_start_ranks_starts_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "prepare", lambda *_: False)
    assert launched(tmp_path, section("x = 1")) == []
