"""The block and the formulas of lecture 03: a cache changes nothing, and each argument changes something."""

from __future__ import annotations

import importlib
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch


@pytest.fixture(scope="module")
def parts(repo: Path) -> tuple[Any, Any]:
    """The modules `block` and `counts` of lecture 03."""
    sys.path.insert(0, str(repo / "lectures"))
    try:
        return importlib.import_module("lecture_03.block"), importlib.import_module("lecture_03.counts")
    finally:
        sys.path.remove(str(repo / "lectures"))


def small(counts: Any, **changes: Any) -> Any:
    usual = {
        "layers": 2,
        "width": 32,
        "heads": 4,
        "kv_heads": 2,
        "hidden": 48,
        "vocabulary": 50,
        "context": 24,
    }
    return counts.Config(**{**usual, **changes})


@pytest.mark.parametrize("window", [5, 10**9])
@pytest.mark.parametrize("how", ["written", "fused"])
@pytest.mark.parametrize("pieces", [[24], [1] * 24, [7, 1, 16]])
def test_a_text_read_in_pieces_with_a_cache_has_the_logits_of_the_whole(
    parts: tuple[Any, Any], how: str, pieces: list[int], window: int
) -> None:
    block, counts = parts
    torch.manual_seed(0)
    model = block.Transformer(small(counts, window=window), how).double()
    tokens = torch.randint(0, 50, (2, 24))
    with torch.no_grad():
        caches = model.caches(2)
        read = torch.cat([model(piece, caches) for piece in tokens.split(pieces, dim=1)], dim=1)
        assert torch.allclose(read, model(tokens))
    assert sum(cache.memory.nbytes for cache in caches) == counts.cache_bytes(small(counts), 2 * 24, 8)


def test_each_number_of_a_configuration_changes_a_count_and_the_model_agrees(parts: tuple[Any, Any]) -> None:
    block, counts = parts
    usual = small(counts)
    other = {"layers": 3, "width": 64, "heads": 8, "kv_heads": 4, "hidden": 64, "vocabulary": 60,
             "context": 25, "tied": True, "bias": True, "head_size": 16, "normed": True, "experts": 2,
             "window": 4}  # fmt: skip
    assert {*other, "active"} == {field.name for field in fields(usual)}
    for name, value in other.items():
        config = replace(usual, **{name: value})
        with torch.device("meta"):
            model = block.Transformer(config)
        assert sum(p.numel() for p in model.parameters()) == counts.parameter_count(config)
        seen = [outcome(counts, it) for it in (usual, config)]
        assert (seen[0] != seen[1]) == (name != "context"), name  # the context is the longest that is allowed
    experts = [small(counts, experts=4, active=active) for active in (1, 2)]
    assert counts.parameter_count(experts[0]) == counts.parameter_count(experts[1])
    assert counts.idle_weights(experts[0]) - counts.idle_weights(experts[1]) == 2 * 3 * 32 * 48
    assert counts.forward_flops(experts[0], 1, 5) < counts.forward_flops(experts[1], 1, 5)


def outcome(counts: Any, config: Any) -> tuple[int, ...]:
    return (
        counts.parameter_count(config),
        counts.forward_flops(config, 10, 5),
        counts.activation_bytes(config, 5),
        counts.cache_bytes(config, 5),
    )


def test_each_argument_of_a_formula_changes_what_comes_back(parts: tuple[Any, Any]) -> None:
    _, counts = parts
    config = small(counts)
    assert counts.attention_flops(config, 10, 5) * 2 == counts.attention_flops(config, 20, 5)
    assert counts.attention_flops(config, 10, 5) * 2 == counts.attention_flops(config, 10, 10)
    assert counts.forward_flops(config, 10, 5) * 2 == counts.forward_flops(config, 20, 5)
    assert counts.forward_flops(config, 10, 5) < counts.forward_flops(config, 10, 6)
    assert (
        counts.cache_bytes(config, 5) * 2
        == counts.cache_bytes(config, 10)
        == counts.cache_bytes(config, 5, 4)
    )
    written = counts.activation_bytes(config, 5, fused=False)
    assert counts.activation_bytes(config, 6, fused=False) - written == 2 * config.heads
    assert counts.activation_bytes(config, 5, norm=8) > counts.activation_bytes(config, 5)


def test_a_configuration_that_no_model_can_have_is_refused(parts: tuple[Any, Any]) -> None:
    _, counts = parts
    with pytest.raises(ValueError, match=r"^a width of 32 is no multiple of 3 heads$"):
        small(counts, heads=3)
    with pytest.raises(ValueError, match=r"^4 heads are no multiple of 3 heads of keys$"):
        small(counts, kv_heads=3)
    with pytest.raises(ValueError, match=r"^3 experts for a token are more than 2$"):
        small(counts, experts=2, active=3)
    assert small(counts, heads=3, kv_heads=3, head_size=8).head == 8


def test_the_published_models_have_their_published_sizes(parts: tuple[Any, Any]) -> None:
    """Half of `total_size` in each model's index of weights, which are in bfloat16."""
    _, counts = parts
    models = importlib.import_module("lecture_03.published").MODELS
    assert {name: counts.parameter_count(config) for name, config in models.items()} == {
        "Qwen2.5-0.5B": 494_032_768, "Qwen3-0.6B": 596_049_920, "Mixtral-8x7B": 46_702_792_704, "Llama-3.2-1B": 1_235_814_400, "Llama-3.2-3B": 3_212_749_824,
        "Llama-2-7B": 6_738_415_616, "Mistral-7B": 7_241_732_096, "Llama-3-8B": 8_030_261_248,
        "Llama-3-70B": 70_553_706_496, "Llama-3-405B": 405_853_388_800,
    }  # fmt: skip


def test_each_argument_of_the_helpers_of_generating_matters(parts: tuple[Any, Any]) -> None:
    _, counts = parts
    generate = importlib.import_module("lecture_03.generate")
    llama = importlib.import_module("lecture_03.published").LLAMA_3_8B
    one, other = small(counts), small(counts, layers=3)
    for function in (generate.decoding_bytes, generate.step_seconds):
        usual = function(one, 2, 8)
        assert usual not in (function(other, 2, 8), function(one, 3, 8), function(one, 2, 9)), function
    paces = [
        generate.pace_of(*it)
        for it in ((llama, 8, 2048), (one, 8, 2048), (llama, 16, 2048), (llama, 8, 4096))
    ]
    assert len(set(paces)) == 4
    # Of each GPU a tenth is kept free: there are 72 GB, less 2 bytes for each of 8,030,261,248 parameters.
    assert generate.room_for(llama, 4096) == 104 and generate.room_for(llama, 8192) == 52
    assert generate.room_for(llama, 8192, memory=80 * 10**9) == 59
    assert generate.room_for(llama, 8192, 2) == 119
    assert generate.room_for(replace(llama, layers=16), 8192) == 117
    read, work = (2 * 7_504_658_432 * it for it in (1 / 3.35e12, 1000 / 989.5e12))
    caches = 128 * 131_072 / 3.35e12
    assert generate.step_seconds(llama, 1, 128) == pytest.approx(read + caches)
    assert generate.step_seconds(llama, 1000, 128) == pytest.approx(work + 1000 * caches)
    found = [generate.cache_intensity(*it) for it in ((32, 8, 1), (64, 8, 1), (32, 4, 1), (32, 8, 64))]
    assert found == [4, 8, 8, 4]  # that the batch does not matter is what the section shows
    assert [generate.weighed_cache(one, batch) for batch in (1, 2)] == [3072 * batch for batch in (1, 2)]


def test_each_argument_of_the_helpers_of_utilization_and_of_the_run_matters(parts: tuple[Any, Any]) -> None:
    _, counts = parts
    utilization, whole = (importlib.import_module(f"lecture_03.{name}") for name in ("utilization", "whole"))
    untied, tied = small(counts), small(counts, tied=True)

    def cost(embedding: bool, attention: int, config: Any = untied, context: int = 8) -> int:
        found: int = utilization.Convention(embedding, attention).flops_per_token(config, context)
        return found

    assert cost(True, 12) - cost(False, 12) == 6 * 50 * 32
    assert cost(True, 12, tied) == cost(False, 12, tied)  # one table, and it is multiplied by
    assert cost(True, 12) - cost(True, 6) == 6 * 2 * 8 * 32
    assert cost(True, 12, context=9) - cost(True, 12) == 12 * 2 * 32
    assert len(whole.lexicon(5)) == 5 and len(whole.lexicon(6)) == 6
    words, again = whole.lexicon(), torch.Generator
    texts = [whole.draw_sequences(words, 2, again().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(texts[0], texts[1]) and not torch.equal(texts[0], texts[2])
    assert texts[0].shape == (2, whole.RUN.context + 1)
    assert whole.draw_sequences(words, 3, again()).shape[0] == 3
    assert not torch.equal(texts[0], whole.draw_sequences(words.flip(0), 2, again().manual_seed(0)))
    rates = [whole.rate_at(step) for step in (0, 9, 60, whole.STEPS - 1)]
    assert rates[0] < rates[1] == rates[2] == whole.RATE > rates[3] > 0
    assert whole.spelled(torch.tensor([1, 2, 0, 26])) == "ab z"


def test_each_argument_of_the_helpers_of_the_regimes_matters(parts: tuple[Any, Any]) -> None:
    block, counts = parts
    regimes = importlib.import_module("lecture_03.regimes")
    kinds = [regimes.Operation(*it) for it in (("mm", 10, 2, 1), ("bmm", 4, 3, 2), ("add", 1, 5, 5))]
    assert list(regimes.by_kind(kinds, lambda op: op.flops).values()) == [10, 4, 1]
    assert list(regimes.by_kind(kinds[:2], lambda op: op.moved).values()) == [3, 5, 0]
    assert regimes.shares({"a": 1, "b": 3}) == {"a": 0.25, "b": 0.75}
    bound = regimes.Operation("mm", regimes.PEAK, 0, 0), regimes.Operation("add", 0, 0, regimes.BANDWIDTH)
    assert [regimes.seconds_at_best(it) for it in bound] == [1, 1]
    x, y = torch.randn(2, 4, 8)
    assert regimes.passes(torch.add, x, y) == (3, 3)
    assert regimes.passes(lambda a, b: a + b + b, x, y) == (6, 3)
    assert regimes.passes(lambda a: a.t(), x) == (0, 2)  # a view moves nothing
    assert (
        regimes.bytes_moved(lambda: x.new_full((4, 2), 3.0)) == x.new_ones(8).nbytes
    )  # written, and nothing read
    assert regimes.bytes_moved(lambda: torch.zeros_like(x)) == x.nbytes
    assert regimes.bytes_moved(lambda: x.clone().copy_(y)) == 2 * x.nbytes + 2 * x.nbytes
    assert regimes.bytes_moved(lambda: torch.empty_like(x).fill_(1)) == x.nbytes
    assert regimes.bytes_moved(lambda: torch.empty_like(x).add_(y)) == 3 * x.nbytes
    one, two, narrow = regimes.waits(1), regimes.waits(2), regimes.waits(1, small(counts))
    assert one.memory < two.memory and one.arithmetic == 0 < regimes.waits(2048).arithmetic
    assert narrow.gpu < one.gpu and narrow.launches == one.launches
    norms = [op for op in regimes.block_operations(3, small(counts)) if "norm" in op.name]
    assert [(op.read, op.written) for op in norms] == [(2 * (3 + 1) * 32, 2 * 3 * 32)] * 2
    assert torch.allclose(regimes.KernelNorm(8)(x), block.RMSNorm(8)(x))
    gain = torch.full((8,), 2.0)
    normed = regimes.normalized(x, gain)
    assert torch.allclose(normed, 2 * block.RMSNorm(8)(x)) and not torch.allclose(
        normed, 2 * regimes.normalized(y, gain)
    )
    assert torch.allclose(regimes.gated(x, y), x * x.sigmoid() * y)
    assert torch.allclose(regimes.lifted(x), x + 10)


def test_each_argument_of_the_helpers_of_the_activations_matters(parts: tuple[Any, Any]) -> None:
    block, counts = parts
    activations = importlib.import_module("lecture_03.activations")
    seen: list[list[tuple[int, ...]]] = []

    class Look(torch.nn.Module):
        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            seen.append([tuple(t.shape) for t in given])
            return given[0].square()

    q, k, v = torch.randn(3, 8, 4)
    tiles = [
        activations.in_tiles(rows, *it)
        for rows, it in ((2, (q, k, v)), (4, (q, k, v)), (4, (k, q, v)), (4, (q, k, q)))
    ]
    assert [torch.allclose(it, tiles[0], atol=1e-5) for it in tiles] == [True, True, False, False]
    kept = activations.kept_per_token
    assert kept(Look(), 6, 2, 3) == 2 * 6  # bytes of the input, in bfloat16
    assert kept(Look(), 8, 4, 5, head=4) == 2 * 8
    assert seen == [[(2, 3, 6)], [(4, 5, 8), (2, 5, 2)]]
    x, grad = torch.randn(2, 3, 8, dtype=torch.float64)
    for eps in (1e-5, 1.0):
        both = [kind(8, eps).double() for kind in (block.RMSNorm, activations.Lean)]
        given = [x.clone().requires_grad_() for _ in both]
        made = [norm(it) for norm, it in zip(both, given, strict=True)]
        assert torch.allclose(*made)
        for it in made:
            it.backward(grad)
        assert torch.allclose(given[0].grad, given[1].grad)
        assert torch.allclose(both[0].gain.grad, both[1].gain.grad)
    lean = activations.with_lean_norms(block.Block(small(counts, width=64, heads=8)))
    assert [len(n.gain) for n in lean.modules() if isinstance(n, activations.Lean)] == [64, 64]


def test_each_argument_of_the_helpers_of_the_whole_model_matters(parts: tuple[Any, Any]) -> None:
    block, counts = parts
    whole = importlib.import_module("lecture_03.whole")
    generate = importlib.import_module("lecture_03.generate")
    first, again = whole.fresh_model(), whole.fresh_model()
    assert all(map(torch.equal, first.parameters(), again.parameters()))
    texts = [whole.draw_sequences(whole.lexicon(), n, torch.Generator().manual_seed(n)) for n in (1, 2)]
    other = block.Transformer(whole.RUN, "written")
    losses = [whole.loss_of(model, text).item() for model in (first, other) for text in texts]
    assert len(set(losses)) == 4
    small_model = block.Transformer(replace(whole.RUN, layers=1), "written")
    alive = [whole.measured_step(model, text) for model in (first, small_model) for text in texts]
    assert whole.most_alive(first, texts[0]) == alive[0][0]
    assert alive[0][0] < alive[1][0] and alive[2][0] < alive[0][0]
    assert alive[0][1] == alive[1][1] == 8 * counts.parameter_count(whole.RUN) > alive[2][1]
    caches = generate.full_caches(small_model, 3, 7)
    assert {(cache.length, cache.memory.shape[1]) for cache in caches} == {(7, 3)}
