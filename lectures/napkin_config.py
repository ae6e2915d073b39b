"""A model's `config.json`, as Hugging Face keeps it, to a `Shape`.

In goes the parsed JSON, out comes a shape, or what is wrong, and in any case what was left out. A key that matters and
is not known is named; a family that is not in `FAMILIES` is refused. Nothing is guessed. The site's calculator runs a
translation of this file.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from napkin import Shape
from napkin_native import get, has, is_flag, is_list, is_mapping, is_number, is_text, keys
from napkin_text import read_number, short, whole_text

LARGEST = 1_000_000  # characters of a config.json; those of today's models have a few thousand

# Of each `model_type`: what is always so, and values that transformers takes where the file is silent.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"window": "all"},
    "mixtral": {"window": "all", "experts": "num_local_experts"},
    "qwen2": {"qkv": True, "window": "last"},
    "qwen3": {"query_norm": "head", "window": "last"},
    "qwen3_moe": {"query_norm": "head", "window": "last", "experts": "num_experts"},
    "gemma": {"tied": True, "head_dim": 256},
    "gemma2": {"tied": True, "head_dim": 256, "norms": 4, "window": "every", "pattern": 2},
    "gemma3_text": {
        "tied": True, "head_dim": 256, "norms": 4, "query_norm": "head", "window": "every", "pattern": 6,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208,
        "max_position_embeddings": 131072, "sliding_window": 4096,
    },
    "gpt_oss": {
        "qkv": True, "out": True, "window": "every", "pattern": 2, "experts": "num_local_experts", "sinks": True,
        "ffn": True, "router": True,
    },
    "deepseek_v2": {"experts": "n_routed_experts", "latent": True},
    "deepseek_v3": {"experts": "n_routed_experts", "latent": True, "router": True},  # a bias that no gradient trains
    "phi": {"qkv": True, "out": True, "ffn": True, "head": True, "norms": 1, "vectors": 2, "gated": False},
    "phi3": {"window": "all"},
    "olmo2": {"query_norm": "all"},
    "gpt2": {
        "qkv": True, "out": True, "ffn": True, "vectors": 2, "gated": False, "tied": True, "learned": True,
    },
}

# Keys that are read, in some family or other.
READ = (
    "model_type text_config hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
    "intermediate_size vocab_size max_position_embeddings tie_word_embeddings attention_bias mlp_bias sliding_window "
    "use_sliding_window max_window_layers layer_types sliding_window_pattern num_local_experts num_experts "
    "n_routed_experts num_experts_per_tok experts_per_token moe_intermediate_size n_shared_experts "
    "first_k_dense_replace decoder_sparse_step mlp_only_layers moe_layer_freq q_lora_rank kv_lora_rank qk_rope_head_dim "
    "qk_nope_head_dim qk_head_dim v_head_dim n_embd n_layer n_head n_positions n_ctx n_inner qk_layernorm "
    "num_nextn_predict_layers quantization_config vision_config audio_config"
).split(" ")

# Keys that change neither size nor FLOPs.
HARMLESS = (
    "architectures auto_map torch_dtype dtype transformers_version _name_or_path _attn_implementation_autoset name "
    "bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id rope_theta rope_scaling rope_parameters "
    "rope_local_base_freq rope_interleave partial_rotary_factor rotary_pct original_max_position_embeddings "
    "initial_context_length rms_norm_eps layer_norm_eps layer_norm_epsilon initializer_range use_cache "
    "attention_dropout embd_pdrop resid_pdrop attn_pdrop hidden_dropout embedding_dropout hidden_act hidden_activation "
    "activation_function pretraining_tp query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping "
    "cache_implementation use_bidirectional_attention router_aux_loss_coef output_router_logits router_jitter_noise "
    "norm_topk_prob topk_group n_group topk_method scoring_func routed_scaling_factor aux_loss_alpha seq_aux ep_size "
    "swiglu_limit summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj "
    "task_specific_params scale_attn_weights scale_attn_by_inverse_layer_idx reorder_and_upcast_attn "
    "add_cross_attention gradient_checkpointing is_decoder is_encoder_decoder return_dict output_attentions "
    "output_hidden_states use_mrope force_download boi_token_index eoi_token_index image_token_index "
    "mm_tokens_per_image id2label label2id problem_type chunk_size_feed_forward"
).split(" ")


@dataclass(frozen=True)
class Reading:
    """What a config.json says: a shape, or None and what is wrong; and in words what the shape leaves out."""

    shape: Shape | None
    wrong: str
    left_out: list[str]
    precision: str = "bfloat16"  # in which its weights are stored, as `weight_bytes` takes it


def said(value: Any) -> str:
    """A value of a file, short enough for a sentence."""
    if is_text(value):
        return f"“{value[0:20]}…”" if len(value) > 20 else f"“{value}”"
    if is_number(value):
        return short(value) if abs(value) < 1e15 else "a number beyond all models"
    return "true or false" if is_flag(value) else "a list" if is_list(value) else "no number"


def whole(config: dict[str, Any], key: str, otherwise: Any, least: int, wrong: list[str]) -> int:
    """The whole number under a key; where there is none, `otherwise`. What is wrong with it is added to `wrong`."""
    value = get(config, key, otherwise)
    if value is None:
        wrong.append(f"{key} is missing")
        return least
    if not is_number(value) or value != value // 1:
        wrong.append(f"{key} has to be a whole number, not {said(value)}")
        return least
    if value < least or value > 100_000_000:
        wrong.append(f"{key} has to be from {least} to 100000000, not {said(value)}")
        return least
    return int(value)


def flag(config: dict[str, Any], key: str, otherwise: bool, wrong: list[str]) -> bool:
    """The truth value under a key."""
    value = get(config, key, otherwise)
    if is_flag(value):
        return value
    wrong.append(f"{key} has to be true or false, not {said(value)}")
    return otherwise


def windowed_layers(config: dict[str, Any], family: dict[str, Any], layers: int, wrong: list[str]) -> int:
    """Of the layers, those that attend to a window alone."""
    kinds = get(config, "layer_types", None)
    if is_list(kinds):
        count = 0
        for kind in kinds:
            if kind == "sliding_attention":
                count += 1
            elif kind != "full_attention":
                wrong.append(f"layer_types has {said(kind)}, which this calculator cannot say")
        if len(kinds) != layers:
            wrong.append(f"layer_types has {len(kinds)} entries for {layers} layers")
        return count
    rule = get(family, "window", "")
    if rule == "every":  # every so many layers, one attends to all
        pattern = whole(config, "sliding_window_pattern", get(family, "pattern", 2), 1, wrong)
        return layers - layers // pattern
    if rule == "last":
        if not flag(config, "use_sliding_window", False, wrong):
            return 0
        return max(layers - whole(config, "max_window_layers", layers, 0, wrong), 0)
    return layers if rule == "all" else 0


def older_keys(config: dict[str, Any]) -> dict[str, Any]:
    """GPT-2's configuration under the keys of today."""
    width = get(config, "n_embd", None)
    return {
        "model_type": "gpt2", "hidden_size": width, "num_hidden_layers": get(config, "n_layer", None),
        "num_attention_heads": get(config, "n_head", None), "vocab_size": get(config, "vocab_size", None),
        "max_position_embeddings": get(config, "n_positions", get(config, "n_ctx", None)),
        "intermediate_size": get(config, "n_inner", 4 * width if is_number(width) else None),
        "tie_word_embeddings": get(config, "tie_word_embeddings", None),
    }


def refused(why: str) -> Reading:
    """No shape, and why."""
    return Reading(None, why, [])


def left_out_of(config: dict[str, Any]) -> list[str]:
    """In words, what a configuration has and a shape does not say."""
    words = []
    for part in ("vision", "audio"):
        if is_mapping(get(config, f"{part}_config", None)):
            words.append(f"the {part} part: the text model alone is counted")
    if get(config, "num_nextn_predict_layers", 0) != 0:
        words.append("the layer that predicts a second token (num_nextn_predict_layers)")
    method = get(get(config, "quantization_config", {}), "quant_method", "")
    if method != "" and method != "mxfp4" and method != "fp8":
        words.append(f"weights stored by {said(method)}: choose their format where you serve")
    text = get(config, "text_config", None)
    unknown = []
    for key in keys(text if is_mapping(text) else config):
        if not has(READ, key) and not has(HARMLESS, key):
            unknown.append(key[0:40])
    if len(unknown) > 0:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        words.append(f"keys that this calculator does not know: {', '.join(unknown[0:5])}{more}")
    return words


def shape_of(outer: Any, name: str) -> Reading:
    """The shape that a parsed config.json says. A nested `text_config` is the model, where there is one."""
    if not is_mapping(outer):
        return refused("This JSON is no object; a config.json begins with { and has a model_type.")
    text = get(outer, "text_config", None)
    config = text if is_mapping(text) else outer
    kind = get(config, "model_type", get(outer, "model_type", None))
    if kind is None:
        return refused("This JSON has no model_type, so it is not a config.json of a language model.")
    if not is_mapping(get(outer, "quantization_config", {})):
        return refused("This config.json cannot be used: quantization_config has to be an object.")
    if kind == "gemma3" and is_mapping(text):
        kind = "gemma3_text"
    if not is_text(kind) or not has(FAMILIES, kind):
        known = ", ".join(keys(FAMILIES))
        return refused(f"The family {said(kind)} is not one that this calculator can say: {known}. Give its shape by hand.")
    family = FAMILIES[kind]
    wrong: list[str] = []
    reading = shape_of_family(older_keys(config) if get(family, "learned", False) else config, family, name, wrong)
    if len(wrong) > 0:
        more = f" ({len(wrong) - 3} more)" if len(wrong) > 3 else ""
        return refused(f"This config.json cannot be used: {'; '.join(wrong[0:3])}{more}.")
    method = get(get(outer, "quantization_config", {}), "quant_method", "")
    precision = "mxfp4-experts" if method == "mxfp4" and reading.experts > 1 else "bfloat16"
    return Reading(reading, "", left_out_of(outer), "float8" if method == "fp8" else precision)


def shape_of_family(config: dict[str, Any], family: dict[str, Any], name: str, wrong: list[str]) -> Shape:
    """The shape of a configuration of a known family; what is wrong goes to `wrong`."""
    width = whole(config, "hidden_size", None, 1, wrong)
    layers = whole(config, "num_hidden_layers", None, 1, wrong)
    heads = whole(config, "num_attention_heads", get(family, "num_attention_heads", None), 1, wrong)
    kv_heads = whole(config, "num_key_value_heads", get(family, "num_key_value_heads", heads), 1, wrong)
    latent = get(family, "latent", False)
    rope = whole(config, "qk_rope_head_dim", None, 1, wrong) if latent else 0
    if latent:
        head_size = whole(config, "qk_nope_head_dim", None, 1, wrong) + rope
    else:
        head_size = whole(config, "head_dim", get(family, "head_dim", width // heads), 1, wrong)
        if get(config, "head_dim", get(family, "head_dim", None)) is None and width % heads != 0:
            wrong.append(f"hidden_size {width} does not divide by num_attention_heads {heads}")
    if heads % kv_heads != 0:
        wrong.append(f"num_attention_heads {heads} does not divide by num_key_value_heads {kv_heads}")
    many = whole(config, get(family, "experts", "num_local_experts"), 1, 1, wrong) if has(family, "experts") else 1
    hidden = whole(config, "intermediate_size", None, 1, wrong)
    expert_hidden = whole(config, "moe_intermediate_size", hidden, 1, wrong) if many > 1 else 0
    active = whole(config, "num_experts_per_tok", get(config, "experts_per_token", None), 1, wrong) if many > 1 else 1
    if active > many:
        wrong.append(f"num_experts_per_tok {active} is more than the {many} experts")
    dense = whole(config, "first_k_dense_replace", 0, 0, wrong) if latent else 0
    if dense > layers:
        wrong.append(f"first_k_dense_replace {dense} is more than num_hidden_layers {layers}")
    if get(config, "decoder_sparse_step", 1) != 1 or get(config, "moe_layer_freq", 1) != 1:
        wrong.append("experts in every second layer are not known here (decoder_sparse_step, moe_layer_freq)")
    only = get(config, "mlp_only_layers", [])
    if is_list(only) and len(only) > 0:
        wrong.append("mlp_only_layers is not known here")
    if get(config, "qk_layernorm", False) is True:
        wrong.append("qk_layernorm is not known here")
    has_window = get(config, "sliding_window", get(family, "sliding_window", None)) is not None
    window = whole(config, "sliding_window", get(family, "sliding_window", None), 1, wrong) if has_window else 0
    windowed = windowed_layers(config, family, layers, wrong) if has_window or has(config, "layer_types") else 0
    if windowed > 0 and not has_window:
        wrong.append("sliding_window is missing")
    context = whole(config, "max_position_embeddings", get(family, "max_position_embeddings", None), 1, wrong)
    biased = flag(config, "attention_bias", False, wrong)
    shared = whole(config, "n_shared_experts", 0, 0, wrong) if latent else 0
    return Shape(
        name=name, layers=layers, width=width, heads=heads, kv_heads=kv_heads, head_size=head_size, hidden=hidden,
        vocabulary=whole(config, "vocab_size", get(family, "vocab_size", None), 1, wrong), context=context,
        tied=flag(config, "tie_word_embeddings", get(family, "tied", False), wrong),
        gated=get(family, "gated", True), bias_qkv=biased or get(family, "qkv", False),
        bias_out=biased or get(family, "out", False),
        bias_ffn=flag(config, "mlp_bias", False, wrong) or get(family, "ffn", False),
        bias_head=get(family, "head", False), norms=get(family, "norms", 2), norm_vectors=get(family, "vectors", 1),
        query_norm=get(family, "query_norm", ""), positions=context if get(family, "learned", False) else 0,
        window=window if windowed > 0 else 0, windowed_layers=windowed, sinks=get(family, "sinks", False),
        experts=many, active=active, expert_hidden=expert_hidden, shared_hidden=shared * expert_hidden,
        dense_layers=dense, bias_router=get(family, "router", False),
        query_rank=whole(config, "q_lora_rank", 0, 0, wrong) if latent else 0,
        kv_rank=whole(config, "kv_lora_rank", None, 1, wrong) if latent else 0,
        rope_size=rope, value_size=whole(config, "v_head_dim", None, 1, wrong) if latent else 0,
    )


# --- a shape typed by hand


@dataclass(frozen=True)
class ShapeField:
    """A field of a shape typed by hand, with the key of config.json that says the same."""

    name: str
    label: str
    key: str
    kind: str = "count"  # or "flag", or the choices of a word
    least: float = 0


SHAPE_FIELDS = [
    ShapeField("layers", "Layers", "num_hidden_layers", least=1),
    ShapeField("width", "Model dimension", "hidden_size", least=1),
    ShapeField("heads", "Query heads", "num_attention_heads", least=1),
    ShapeField("kv_heads", "KV heads", "num_key_value_heads", least=1),
    ShapeField("head_size", "Head dimension", "head_dim", least=1),
    ShapeField("hidden", "FFN (intermediate) size", "intermediate_size", least=1),
    ShapeField("vocabulary", "Vocabulary", "vocab_size", least=1),
    ShapeField("context", "Longest context", "max_position_embeddings", least=1),
    ShapeField("tied", "Head and embedding are one", "tie_word_embeddings", "flag"),
    ShapeField("experts", "Experts in a layer", "num_local_experts, n_routed_experts", least=1),
    ShapeField("active", "Active experts per token", "num_experts_per_tok", least=1),
    ShapeField("expert_hidden", "FFN size of an expert", "moe_intermediate_size"),
    ShapeField("shared_hidden", "FFN size of shared experts", "n_shared_experts × moe_intermediate_size"),
    ShapeField("dense_layers", "Dense first layers", "first_k_dense_replace"),
    ShapeField("bias_router", "A number per expert beside the router", "router bias", "flag"),
    ShapeField("window", "Window, in tokens; 0: all", "sliding_window"),
    ShapeField("windowed_layers", "Layers with this window", "layer_types"),
    ShapeField("kv_rank", "Rank of the KV latent; 0: none", "kv_lora_rank"),
    ShapeField("query_rank", "Rank of the query latent", "q_lora_rank"),
    ShapeField("rope_size", "Rotary part of a head", "qk_rope_head_dim"),
    ShapeField("value_size", "Value dimension; 0: that of a head", "v_head_dim"),
    ShapeField("query_norm", "Norms of queries and keys", "family", "none head all"),
    ShapeField("norms", "Norms in a layer", "family: 2, Gemma 4", least=1),
    ShapeField("norm_vectors", "Vectors of a norm", "RMSNorm 1, LayerNorm 2", least=1),
    ShapeField("gated", "Gated FFN, three matrices", "family", "flag"),
    ShapeField("bias_qkv", "Biases of queries, keys, values", "attention_bias", "flag"),
    ShapeField("bias_out", "Bias of attention's output", "attention_bias", "flag"),
    ShapeField("bias_ffn", "Biases of the FFN", "mlp_bias", "flag"),
    ShapeField("bias_head", "Bias of the head", "family", "flag"),
    ShapeField("positions", "Rows of learned positions", "n_positions"),
    ShapeField("sinks", "Attention sinks", "family: gpt-oss", "flag"),
]


@dataclass(frozen=True)
class ShapeRead:
    """A shape that was typed, and what is wrong by field; the shape counts for nothing where something is."""

    shape: Shape
    wrong: dict[str, str]


def shape_texts(s: Shape) -> dict[str, str]:
    """What the fields of a shape say."""
    values: dict[str, Any] = {**vars(s)}
    texts: dict[str, str] = {}
    for field in SHAPE_FIELDS:
        value = values[field.name]
        if field.kind == "flag":
            texts[field.name] = "yes" if value else "no"
        elif field.kind == "count":
            texts[field.name] = whole_text(value).replace(",", "")
        else:
            texts[field.name] = "none" if value == "" else value
    return texts


def shape_of_texts(texts: dict[str, str], name: str) -> ShapeRead:
    """The shape that the fields say, or what is wrong with them."""
    wrong: dict[str, str] = {}
    values: dict[str, Any] = {"name": name}
    for field in SHAPE_FIELDS:
        text = get(texts, field.name, "")
        if field.kind == "count":
            read = read_number(text, "count", "32")
            if read.wrong != "":
                wrong[field.name] = read.wrong
            elif read.value < field.least or read.value > 100_000_000 or read.value != read.value // 1:
                wrong[field.name] = f"It has to be a whole number from {short(field.least)} to 100 million."
            else:
                values[field.name] = int(read.value)
        elif field.kind == "flag":
            values[field.name] = text == "yes"
        else:
            values[field.name] = text if text == "head" or text == "all" else ""
    if len(keys(wrong)) > 0:
        return ShapeRead(Shape(), wrong)
    s = Shape(**values)
    if s.heads % s.kv_heads != 0:
        wrong["kv_heads"] = f"{s.heads} query heads do not divide by {s.kv_heads}."
    if s.active > s.experts:
        wrong["active"] = f"{s.active} is more than the {s.experts} experts of a layer."
    if s.experts > 1 and s.expert_hidden == 0:
        wrong["expert_hidden"] = "With experts, this is at least 1."
    if s.dense_layers > s.layers:
        wrong["dense_layers"] = f"{s.dense_layers} is more than the {s.layers} layers."
    if s.windowed_layers > s.layers:
        wrong["windowed_layers"] = f"{s.windowed_layers} is more than the {s.layers} layers."
    if s.windowed_layers > 0 and s.window == 0:
        wrong["window"] = "Layers with a window need one of at least 1."
    if s.kv_rank > 0 and (s.rope_size == 0 or s.rope_size >= s.head_size):
        wrong["rope_size"] = f"With a latent, it is from 1 to {s.head_size - 1}, less than a head."
    if s.kv_rank > 0 and s.value_size == 0:
        wrong["value_size"] = "With a latent, this is at least 1."
    return ShapeRead(s, wrong)
