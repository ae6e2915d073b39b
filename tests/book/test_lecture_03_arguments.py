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


@pytest.mark.parametrize("how", ["written", "fused"])
@pytest.mark.parametrize("pieces", [[24], [1] * 24, [7, 1, 16]])
def test_a_text_read_in_pieces_with_a_cache_has_the_logits_of_the_whole(
    parts: tuple[Any, Any], how: str, pieces: list[int]
) -> None:
    block, counts = parts
    torch.manual_seed(0)
    model = block.Transformer(small(counts), how).double()
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
             "context": 25, "tied": True, "bias": True}  # fmt: skip
    assert set(other) == {field.name for field in fields(usual)}
    for name, value in other.items():
        config = replace(usual, **{name: value})
        with torch.device("meta"):
            model = block.Transformer(config)
        assert sum(p.numel() for p in model.parameters()) == counts.parameter_count(config)
        seen = [outcome(counts, it) for it in (usual, config)]
        assert (seen[0] != seen[1]) == (name != "context"), name  # the context is the longest that is allowed


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
