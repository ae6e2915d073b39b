"""Lecture 04: what it measured on the wire and in memory, against plain Python that knows neither."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.running import process, write

from litbook.page.view import SectionView
from litbook.record import model
from litbook.record.model import Record


def value(record: Record, key: str, text: str) -> Any:
    """What the last watched expression, or the last side of a claim, with that text came to in a section."""
    entry = record.by_key[key]
    watched = [it.value for it in entry.values if it.text == text]
    compared = [side.value for claim in entry.claims for side in claim.operands if side.text == text]
    places = [it for it in watched + compared if it is not None]
    return plain(entry.snapshots[places[-1]])


def plain(snapshot: model.Snapshot) -> Any:
    match snapshot:
        case model.Sequence(items=items, length=length):
            assert len(items) == length, "all of it is in the record"
            return [plain(item) for item in items]
        case model.Scalar(number=None, text=text):
            return text
        case model.Scalar(number=found):
            return found
        case _:
            raise AssertionError(f"no plain value: {snapshot}")


# ---------------------------------------------------------------------------- rings, by hand


class Ring:
    """Ranks as lists in one process, that count what they pass on."""

    def __init__(self, ranks: int) -> None:
        self.parts = [
            [{rank} for _ in range(ranks)] for rank in range(ranks)
        ]  # whose numbers are in each sum
        self.sent = [0] * ranks
        self.ranks = ranks

    def step(self, number: int, *, add: bool) -> None:
        moving = [self.parts[rank][(rank - number) % self.ranks] for rank in range(self.ranks)]
        for rank, part in enumerate(moving):
            self.sent[rank] += 1
            there, place = self.parts[(rank + 1) % self.ranks], (rank - number) % self.ranks
            there[place] = there[place] | part if add else set(part)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 16])
def test_a_ring_gives_every_rank_all_sums_after_as_many_parts_as_the_formula_says(ranks: int) -> None:
    ring = Ring(ranks)
    for number in range(1, ranks):
        ring.step(number, add=True)
    everybody = set(range(ranks))
    assert [ring.parts[rank][rank] for rank in range(ranks)] == [everybody] * ranks
    for number in range(ranks - 1):
        ring.step(number, add=False)
    assert ring.parts == [[everybody] * ranks] * ranks
    assert ring.sent == [2 * (ranks - 1)] * ranks


def test_the_formula_of_the_page_is_what_such_a_ring_passes_on(record_04: Record) -> None:
    ring = Ring(4)
    for number in (1, 2, 3):
        ring.step(number, add=True)
    for number in (0, 1, 2):
        ring.step(number, add=False)
    part = 240_000 // 4 * 4  # bytes
    assert value(record_04, "a_ring_sends_less_than_twice_the_tensor", "formula") == ring.sent[0] * part


def test_the_pictures_of_a_ring_are_those_of_such_a_ring(record_04: Record) -> None:
    """The second digits say whose numbers are in each sum after the reduce-scatter."""
    assert value(record_04, "a_ring_passes_sums_to_the_next_rank", "finished") == [
        (part + 1) * sum(10**rank for rank in range(4)) for part in range(4)
    ]


def test_our_rings_work_on_any_number_of_ranks(repo: Path, tmp_path: Path) -> None:
    lectures = tmp_path / "lectures"
    shutil.copytree(
        repo / "lectures", lectures, ignore=shutil.ignore_patterns("recordings", "lecture_02", "__pycache__")
    )
    body = """
        rank, ranks = dist.get_rank(), dist.get_world_size()
        parts = list((10**rank * torch.arange(1, ranks + 1)).split(1))
        own = ring_reduce_scatter(parts)
        assert own.item() == (rank + 1) * sum(10**r for r in range(ranks)), "its part of the sum"
        ring_all_gather(parts)
        assert torch.cat(parts).tolist() == [i * sum(10**r for r in range(ranks)) for i in range(1, ranks + 1)], "all"
        with Wire() as wire:
            doubled = doubling_all_reduce(torch.ones(1000)) if ranks == 2 else 0
        assert doubled in (0, 1), "exchanges"
        assert wire.sent == doubled * (4000 + 3 * 48), "bytes"  # @zero: without doubling nothing is sent
    """
    text = (
        '"""Rings."""\nimport torch\nimport torch.distributed as dist\nfrom litbook import note, requires\n'
        "import torch.distributed.pipelining\n"  # as lecture 04, which else does so in every rank
    )
    text += "from lecture_04.collectives import doubling_all_reduce, ring_all_gather, ring_reduce_scatter\n"
    text += "from wire import Wire\n\n\ndef main() -> None:\n"
    worlds = (2, 5)
    text += "".join(f"    on_{ranks}()\n" for ranks in worlds)
    for ranks in worlds:
        text += f'\n\n@requires("ranks={ranks}")\ndef on_{ranks}() -> None:\n    """On {ranks} ranks."""\n'
        text += "".join(line[4:] + "\n" for line in body.strip("\n").splitlines())
    done = process(write(lectures, text, "lecture_90.py"), "--quiet", env={"PYTHONPATH": str(lectures)})
    assert "8 claims hold, 0 fail, 0 not run" in done.stdout, done.stdout + done.stderr


# ---------------------------------------------------------------------------- the wire


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, whose kernel counts bytes of a connection")
def test_what_is_written_to_a_connection_is_counted_to_the_byte() -> None:
    import wire

    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    with one, other:
        ports = one.getsockname()[1], one.getpeername()[1]
        before = wire.written()
        one.sendall(b"x" * 12_345)  # nobody has read: some of it waits
        other.sendall(b"y" * 7)
        assert wire.written()[ports] - before[ports] == 12_345
        assert wire.written()[ports[::-1]] - before[ports[::-1]] == 7
        assert len(other.recv(12_345, socket.MSG_WAITALL)) == 12_345
        assert wire.written()[ports] - before[ports] == 12_345


# ---------------------------------------------------------------------------- what is kept, what is sent


def test_each_stage_keeps_what_its_shards_add_up_to(record_04: Record) -> None:
    """A rank owns every fourth part of each layer; its numbers are counted one by one."""
    layers, numbers, ranks, rank = 4, 8 * 64**2, 4, 1
    owned = sum(1 for _ in range(layers) for i in range(numbers) if i // (numbers // ranks) == rank)
    every = layers * numbers
    expected = {
        "every_rank_keeps_sixteen_bytes": [4 * every, 4 * every, 8 * every],
        "each_rank_updates_a_shard": [4 * every, 4 * every, 8 * owned],
        "weights_come_when_they_are_needed": [4 * owned, 4 * owned, 8 * owned],
    }
    assert {key: value(record_04, key, "held") for key in expected} == expected
    assert value(record_04, "fsdp_does_the_same", "sum(held)") == 16 * owned


def test_buckets_are_filled_from_the_last_layer_on(record_04: Record) -> None:
    buckets: list[list[int]] = [[]]
    for layer in reversed(range(8)):
        if len(buckets[-1]) * 64 * 64 * 8 >= 2**20 // 16:
            buckets.append([])
        buckets[-1].append(layer)
    assert value(record_04, "buckets_leave_during_the_backward_pass", "buckets") == buckets


def test_the_slider_and_the_formulas_agree_on_any_number_of_ranks(record_04: Record) -> None:
    """Which stage fits from where on, counted in bytes for each parameter."""
    fits = {}
    memory = 72  # GB: nine tenths of what an H100 is sold with
    for stage, (always, shared) in enumerate(((16, 0), (4, 12), (2, 14), (0, 16))):
        enough = [g for g in (1, 2, 4, 6, 8, 16, 32, 64, 128, 1024) if (always + shared / g) * 13 <= memory]
        fits[stage] = enough[0] if enough else 0
    assert value(record_04, "more_ranks_keep_less_each", "[*fits.values()]") == [*fits.values()]


def test_a_line_that_only_one_rank_reaches_is_not_shown_as_one_that_nobody_reached(record_04: Record) -> None:
    entry = record_04.by_key["a_rank_sees_its_own_memory_alone"]
    seen = SectionView(record_04, entry, entry.first)
    assert [len(of_rank.unreached_lines) for of_rank in seen.rank_views] == [1, 2, 3, 3], (
        "writes and sends; receives; neither"
    )
    assert seen.unreached_lines == frozenset()
