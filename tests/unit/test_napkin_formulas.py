"""The formulas of `napkin.py`, each against a count that does not know it: transformers, PyTorch, lectures, publications."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import REPO

import hardware
import napkin
from lecture_03 import counts
from lecture_03.published import MODELS as LECTURED
from napkin import Shape
from napkin_config import shape_of
from napkin_terminal import published

MODELS = published()


@cache
def shape(name: str) -> Shape:
    found = shape_of(MODELS[name]["config"], name).shape
    assert found is not None, name
    return found


# ------------------------------------------------------------------------ models


def test_the_list_has_the_models_of_today() -> None:
    assert len(MODELS) >= 30
    for family in (
        "Llama-2-", "Llama-3-", "Llama-3.1-", "Llama-3.2-", "Qwen2.5-", "Qwen3-8B", "Qwen3-30B-A3B", "Mistral-", "Mixtral-",
        "Gemma-2-", "Gemma-3-", "gpt-oss-", "DeepSeek-V2-Lite", "DeepSeek-V3", "Phi-", "OLMo-2-", "GPT-2", "GPT-3",
    ):  # fmt: skip
        assert any(name.startswith(family) for name in MODELS), family


@pytest.mark.parametrize("name", MODELS)
def test_a_models_parameters_are_the_published_total_to_the_digit(name: str) -> None:
    entry = MODELS[name]
    assert napkin.parameter_count(shape(name)) == entry["total"]
    assert re.match(r"https://(huggingface\.co/[\w-]+/[\w.-]+|arxiv\.org/abs/[\d.]+)$", entry["source"])
    if "rounded" in entry:  # GPT-3: nobody publishes more digits
        assert entry["rounded"] == f"{entry['total'] / 1e9:.0f}B"


def test_totals_that_others_counted() -> None:
    for name, total in {
        "Gemma-2-9B": 9_241_705_984, "Gemma-3-27B (text)": 27_009_346_304, "gpt-oss-20b": 20_914_757_184,
        "gpt-oss-120b": 116_829_156_672, "DeepSeek-V3": 671_026_419_200, "Qwen2.5-32B": 32_763_876_352,
    }.items():  # fmt: skip
        assert napkin.parameter_count(shape(name)) == total


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_cache_are_those_of_transformers_on_the_meta_device(name: str) -> None:
    transformers = pytest.importorskip("transformers", reason="no transformers: pip install -e .[dev]")
    import torch

    given_keys = {k: v for k, v in MODELS[name]["config"].items() if k != "quantization_config"}
    config = transformers.AutoConfig.for_model(**given_keys)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    buffers = (b.numel() for n, b in model.named_buffers() if n.endswith("e_score_correction_bias"))
    total = sum(p.numel() for p in model.parameters()) + sum(
        buffers
    )  # DeepSeek publishes these with the parameters
    s = shape(name)
    assert napkin.parameter_count(s) == total
    if s.kv_rank:
        latents = [m.out_features for n, m in model.named_modules() if n.endswith("kv_a_proj_with_mqa")]
        assert len(latents) == s.layers
        assert napkin.cache_bytes(s, 1000, 2) == 2 * 1000 * sum(latents)
        return
    for tokens in (7, max(s.window, 1) + 5):
        cached = transformers.DynamicCache(config=config)
        kept = 0
        for layer in range(s.layers):
            rows = torch.empty(1, s.kv_heads, tokens - 1, s.head_size, dtype=torch.bfloat16, device="meta")
            cached.update(rows, rows, layer)
            now = cached.update(rows[:, :, :1], rows[:, :, :1], layer)  # what the last token attends to
            kept += sum(it.nbytes for it in now)
        assert napkin.cache_bytes(s, tokens, 2) == kept
    keys = [m for n, m in model.named_modules() if n.endswith("k_proj")]
    assert {m.out_features for m in keys} <= {s.kv_heads * s.head_size}


@pytest.mark.parametrize(("name", "active"), [
    ("gpt-oss-20b", "3.61"), ("gpt-oss-120b", "5.13"), ("DeepSeek-V3", "36.62"), ("Mixtral-8x7B", "12.75"),
    ("Qwen3-30B-A3B", "3.04"), ("Llama-3-8B", "7.50"),
])  # fmt: skip
def test_active_parameters_are_the_weights_that_a_token_is_multiplied_by(name: str, active: str) -> None:
    """gpt-oss's card publishes 3.61 and 5.13 and counts the same way: with the head, without the embedding."""
    assert f"{napkin.active_parameters(shape(name)) / 1e9:.2f}" == active


def test_deepseeks_cache_of_a_token_is_one_latent() -> None:
    assert napkin.cache_bytes(shape("DeepSeek-V3"), 1, 2) == 70_272


@pytest.mark.parametrize(("name", "gibibytes"), [("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)])
def test_weights_in_mxfp4_are_as_large_as_the_published_checkpoint(name: str, gibibytes: float) -> None:
    assert round(napkin.weight_bytes(shape(name), "mxfp4-experts") / 2**30, 1) == gibibytes


# ------------------------------------------------------------------------ against lecture 03


def lectured(config: Any) -> Shape:
    return Shape(
        layers=config.layers, width=config.width, heads=config.heads, kv_heads=config.kv_heads, head_size=config.head,
        hidden=config.hidden, vocabulary=config.vocabulary, context=config.context, tied=config.tied,
        bias_qkv=config.bias, query_norm="head" if config.normed else "", experts=config.experts, active=config.active,
        expert_hidden=config.hidden if config.experts > 1 else 0, window=config.window, windowed_layers=config.layers,
    )  # fmt: skip


@st.composite
def configs(draw: st.DrawFn) -> Any:
    kv_heads = draw(st.integers(1, 64))
    heads = kv_heads * draw(st.integers(1, 32))
    experts = draw(st.integers(1, 512))
    return counts.Config(
        layers=draw(st.integers(1, 200)), width=heads * draw(st.integers(1, 256)), heads=heads, kv_heads=kv_heads,
        hidden=draw(st.integers(1, 10**5)), vocabulary=draw(st.integers(1, 10**6)), context=draw(st.integers(1, 10**7)),
        tied=draw(st.booleans()), bias=draw(st.booleans()), head_size=draw(st.integers(1, 512)), normed=draw(st.booleans()),
        experts=experts, active=draw(st.integers(1, experts)), window=draw(st.integers(1, 10**7)),
    )  # fmt: skip


@given(config=configs(), tokens=st.integers(1, 10**6))
def test_what_lecture_03_counts_is_counted_alike(config: Any, tokens: int) -> None:
    s = lectured(config)
    assert napkin.parameter_count(s) == counts.parameter_count(config)
    assert napkin.forward_flops(s, tokens) == counts.forward_flops(config, 1, tokens)
    assert napkin.training_flops(s, tokens, 0) == 3 * counts.forward_flops(config, 1, tokens)
    assert napkin.cache_bytes(s, tokens, 2) == counts.cache_bytes(config, tokens)
    assert napkin.layer_activations(s, config.experts > 1, False) == counts.activation_bytes(config, tokens)
    for recompute, again in (("none", 0), ("full", 1)):
        assert napkin.activation_bytes(s, tokens, recompute, 1, 1) == napkin.kept_activations(
            counts.activation_bytes(config, tokens), config.layers, config.width, tokens, again
        )


def test_the_lectures_models_are_those_of_the_list() -> None:
    for name, config in LECTURED.items():
        listed = {"Llama-3-405B": "Llama-3.1-405B", "Mistral-7B": "Mistral-7B-v0.1"}.get(name, name)
        assert napkin.parameter_count(lectured(config)) == MODELS[listed]["total"]


def test_llama_3_70b_is_what_lecture_03_says_of_it() -> None:
    s = shape("Llama-3-70B")
    assert round(napkin.activation_bytes(s, 8192, "none", 1, 1) / 1e9, 1) == 217.6
    assert round(napkin.activation_bytes(s, 8192, "full", 1, 1) / 1e9, 1) == 13.5
    assert napkin.logits_bytes(s.vocabulary, 8192) == 8192 * 128256 * 4


def test_a_checkpointed_layer_repeats_what_pytorch_repeats() -> None:
    """Lecture 03 counts it with PyTorch: the forward pass, without the last matmul."""
    s = replace(shape("Llama-3-8B"), layers=1)
    head = 2 * s.vocabulary * s.width
    forward = napkin.forward_flops(s, 4096) - head
    down = 2 * s.hidden * s.width
    assert napkin.recomputed_flops(s, 4096, "full") == forward - down
    assert round(napkin.recomputed_flops(s, 4096, "full") / (3 * forward), 2) == 0.26
    assert napkin.recomputed_flops(s, 4096, "selective") == napkin.recomputed_flops(s, 4096, "none") == 0


def test_selective_recomputation_keeps_what_pytorchs_keeps() -> None:
    import torch
    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    from lecture_03.block import Block, turns

    config = counts.Config(layers=1, width=256, heads=8, kv_heads=2, hidden=640, vocabulary=10, context=64)
    made: list[Any] = []

    def policy(_: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        kept = "mm" in str(op) or "attention" in str(op)
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    def contexts() -> Any:
        made.extend(create_selective_checkpoint_contexts(policy))
        return made[:2]

    x = torch.randn(1, 64, 256, dtype=torch.bfloat16, requires_grad=True)
    block = Block(config, "fused").to(torch.bfloat16)
    checkpoint(block, x, turns(32, 64, like=x), use_reentrant=False, context_fn=contexts)
    tensors = [
        kept.val
        for rows in made[0].storage.values()
        for value in rows.values()
        for kept in (value if isinstance(value, tuple) else (value,))
        if torch.is_tensor(getattr(kept, "val", None))
    ]
    assert len(tensors) == 9  # seven matmuls; attention and its sums
    kept = sum(t.nbytes for t in tensors) + x.nbytes
    assert napkin.layer_activations(lectured(config), False, True) == kept / 64


def test_a_pass_over_a_prompt_is_counted_by_its_pairs() -> None:
    s = replace(shape("Gemma-2-2B"), vocabulary=0)
    for prompt in (1, 5, 4096, 5000):
        pairs = sum(napkin.pairs_seen(s, n) for n in range(1, prompt + 1))
        linear = 2 * napkin.active_block_weights(s) * prompt
        assert napkin.prefill_flops(s, prompt) == linear + pairs * 2 * s.heads * 2 * s.head_size


@given(experts=st.integers(1, 64), batch=st.integers(1, 300), data=st.data())
def test_experts_that_a_batch_meets(experts: int, batch: int, data: st.DataObject) -> None:
    active = data.draw(st.integers(1, experts))
    s = Shape(experts=experts, active=active)
    assert napkin.experts_touched(s, batch) == pytest.approx(experts * (1 - (1 - active / experts) ** batch))


@pytest.mark.parametrize("context", [128, 8192])
def test_the_pace_of_decoding_is_the_one_of_lecture_03(context: int) -> None:
    from lecture_03.generate import pace_of
    from lecture_03.published import LLAMA_3_8B

    config = replace(LLAMA_3_8B, context=context)
    s, card = lectured(config), hardware.CARDS["H100 SXM"]
    assert card.bfloat16 is not None
    for batch in (1, 64):
        read = napkin.weights_read(s, "bfloat16", batch)
        cached = napkin.cache_bytes(s, context, 2)
        step = napkin.decoding_seconds(
            read, napkin.decoding_flops(s, 0), cached, batch, card.bandwidth, card.bfloat16
        )
        assert batch / step == pytest.approx(pace_of(config, batch, context), rel=1e-4)  # norms are read, too


# ------------------------------------------------------------------------ training


def test_adapters_are_as_many_as_peft_makes_of_llama_3_8b() -> None:
    assert napkin.adapter_parameters(shape("Llama-3-8B"), 16) == 41_943_040


def test_a_weight_of_qlora_has_the_published_bits() -> None:
    assert round(8 * napkin.NF4, 3) == 4.127


@pytest.mark.parametrize(("key", "kind", "options"), [
    ("adamw-float32", "AdamW", {}), ("momentum", "SGD", {"momentum": 0.9}), ("sgd", "SGD", {}),
])  # fmt: skip
def test_a_real_optimizer_keeps_as_many_bytes(key: str, kind: str, options: dict[str, float]) -> None:
    import torch

    p = torch.nn.Parameter(torch.randn(1000))
    p.grad = torch.randn(1000)
    optimizer = getattr(torch.optim, kind)([p], **options)
    optimizer.step()
    state = sum(v.nbytes for v in optimizer.state[p].values() if torch.is_tensor(v) and v.ndim)
    recipe = next(it for it in napkin.RECIPES if it.key == key)
    assert (p.nbytes + p.grad.nbytes + state) / p.numel() == recipe.total
    assert state / p.numel() == recipe.state


def test_adafactor_keeps_next_to_nothing_and_muon_one_average() -> None:
    import torch

    recipes = {it.key: it for it in napkin.RECIPES}
    p = torch.nn.Parameter(torch.randn(512, 512))
    p.grad = torch.randn(512, 512)
    optimizer = torch.optim.Adafactor([p])
    optimizer.step()
    state = sum(v.nbytes for v in optimizer.state[p].values() if torch.is_tensor(v))
    assert recipes["adafactor"].state == round(state / p.numel()) == 0
    muon = torch.optim.Muon([p])
    muon.step()
    state = sum(v.nbytes for v in muon.state[p].values() if torch.is_tensor(v))
    assert recipes["muon"].state == state / p.numel()


def test_recipes_and_their_bytes() -> None:
    assert {it.key: it.total for it in napkin.RECIPES} == {
        "adamw-float32": 16, "adamw-mixed": 16, "adamw-mixed-grad32": 18, "adamw-mixed-state16": 12, "adam-8bit": 10,
        "adamw-bfloat16-state32": 12, "adamw-bfloat16": 8, "momentum": 12, "sgd": 8, "adafactor": 8, "muon": 12,
        "lora": 16, "qlora": 16,
    }  # fmt: skip


@pytest.mark.parametrize(("zero", "sent"), [(0, 3.5), (1, 3.5), (2, 29.75), (3, 84.0)])
def test_gradients_that_nobody_keeps_whole_are_scattered_for_every_microbatch(zero: int, sent: float) -> None:
    assert napkin.sent_for_state(1e9, 2, 2, zero, 8, 16) == pytest.approx(sent * 1e9)


@pytest.mark.parametrize("microbatches", [1, 2, 4])
def test_stage_two_sends_one_unit_more_than_there_are_microbatches(microbatches: int) -> None:
    """Measured with lecture 04's own helpers: 2.01, 3.01 and 5.02 units of 3/4 of the weights on four ranks."""
    units = napkin.sent_for_state(1, 4, 4, 2, 4, microbatches) / (4 * 3 / 4)
    assert units == microbatches + 1


@pytest.mark.parametrize(("zero", "kept"), [(0, (16, 0)), (1, (8, 8)), (2, (4, 12)), (3, (0, 16))])
def test_a_stage_keeps_what_lecture_04_measures(zero: int, kept: tuple[int, int]) -> None:
    for ranks in (1, 4, 64):
        state = napkin.state_on_rank(70e9, 16, 4, 4, zero, ranks)
        assert state == pytest.approx(70e9 * (kept[0] + kept[1] / ranks))


def test_a_recomputed_layer_repeats_an_all_reduce() -> None:
    """Lecture 04's model on four ranks sends 1.26 times as much with checkpointed blocks: five all-reduces for four."""
    plain, again = (napkin.sent_for_matmuls(1000, 64, 2, 4, it) for it in ("none", "full"))
    assert again == 1.25 * plain
    from lecture_04 import tensor_parallel

    assert plain == pytest.approx(2 * 4 * tensor_parallel.all_reduce_bytes(1000 * 64 * 2, 4))


def test_a_bubble_is_the_one_of_lecture_04() -> None:
    from lecture_04 import pipeline

    assert napkin.bubble(16, 16) == float(pipeline.bubble(16, 16))


def test_what_is_kept_free_is_the_reserve_or_what_is_gathered() -> None:
    assert napkin.room(80e9, 0.1, 2e9) == 72e9
    assert napkin.room(80e9, 0.1, 20e9) == 60e9


# ------------------------------------------------------------------------ every formula says where it is shown


def formulas() -> list[ast.FunctionDef]:
    tree = ast.parse((REPO / "lectures" / "napkin.py").read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("node", formulas(), ids=lambda node: node.name)
def test_a_formula_has_units_types_and_a_section(node: ast.FunctionDef) -> None:
    import calculator

    said, keys = calculator.docstring(node)
    assert keys and set(keys) <= napkin.SECTIONS.keys()
    assert re.search(
        r"[Bb]ytes|FLOPs|[Ss]econds|[Dd]ays|hours|share|[Pp]arameters|[Ww]eights|Biases|[Ll]ayers|Elements|[Ee]xperts|Keys",
        said,
    )
    assert node.returns and all(a.annotation for a in (*node.args.args, *node.args.kwonlyargs))


@pytest.mark.parametrize("key", napkin.SECTIONS)
def test_a_section_that_a_formula_names_exists(key: str) -> None:
    page, _, section = napkin.SECTIONS[key].partition("#")
    lecture, part = page.split("/")
    texts = [it.read_text(encoding="utf-8") for it in (REPO / "lectures" / lecture).glob("*.py")]
    assert any(f"def {part.replace('-', '_')}() -> None" in text for text in texts), part
    assert any(f"def {section}() -> None" in text for text in texts), section


def test_the_list_of_models_is_json_that_says_where_each_is_from() -> None:
    text = (REPO / "lectures" / "napkin_models.json").read_text(encoding="utf-8")
    assert json.loads(text) == MODELS
    assert len({asdict(shape(name))["name"] for name in MODELS}) == len(MODELS)
