"""Napkin math: what a model holds, computes, keeps, sends and costs, as functions of its shape.

Import it, or ask in a terminal: `python lectures/napkin.py config.json --devices 4 --job finetune --recipe lora
--tokens 200M`. The site's calculator computes with these very functions: its script is translated from this file when the
site is built, so the code here keeps to the few words of Python that the translation knows.

Sizes are bytes, rates are per second, counts are whole numbers. Each function names the section of the book that proves
it, by a key of `SECTIONS`.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

DAY = 86400  # seconds
# Of a GPU's memory, the share that is kept free: for buffers, fragments and what an operation needs for a moment. vLLM
# keeps this share free by default, as `gpu_memory_utilization` 0.9 [@vllm-args].
RESERVE = 0.1
MFU = 0.4  # assumed where nobody has measured one: Llama 3's report has 0.38 to 0.43 [@llama3]
NF4 = 0.5 + 1 / 64 + 4 / 16384  # bytes of a weight in QLoRA: 4 bits, a scale for 64 of them, a scale of 256 scales [@qlora]
MXFP4 = 4.25 / 8  # bytes of a weight: 4 bits, and 8 for each block of 32 [@ocp-mx]

ALL_REDUCE = 33e-6  # seconds that one adds to a step, however little it sends: measured on eight A100s [@gpt-fast], see "floor"

# Where each formula is shown; a test holds that these sections exist.
SECTIONS = {
    "parameters": "lecture_03/a-block-of-today#published_counts_follow_from_eight_numbers",
    "matrices": "lecture_03/a-block-of-today#a_block_is_seven_matrices",
    "experts": "lecture_03/later-models#a_token_meets_a_few_of_many_experts",
    "latent": "lecture_03/later-models#a_latent_replaces_keys_and_values",
    "window": "lecture_03/later-models#a_window_bounds_the_cache",
    "flops": "lecture_03/a-block-of-today#each_matrix_costs_two_flops_per_weight",
    "training": "lecture_03/which-flops-enter-mfu#training_costs_six_per_weight_and_twelve_per_pair",
    "frozen": "lecture_02/gradients#autograd_leaves_out_what_no_weight_needs",
    "mfu": "lecture_03/which-flops-enter-mfu#recomputation_is_work_but_not_the_models",
    "activations": "lecture_03/the-activations-of-a-block#most_activations_are_feed_forward",
    "recompute": "lecture_03/the-activations-of-a-block#checkpointing_keeps_the_input_alone",
    "fit": "lecture_03/the-activations-of-a-block#checkpointing_lets_a_large_model_fit",
    "logits": "lecture_03/the-activations-of-a-block#logits_weigh_as_much_as_layers",
    "cache": "lecture_03/generating#a_token_leaves_its_keys_and_values",
    "batch": "lecture_03/generating#memory_limits_the_batch",
    "decoding": "lecture_03/generating#bandwidth_sets_the_pace",
    "shared": "lecture_05/two-waits#a_step_is_a_sum",
    "prefill": "lecture_05/two-waits#prefill_is_compute_bound",
    "limit": "lecture_05/two-waits#a_latency_target_sets_the_batch",
    "chunks": "lecture_05/prompts-between-tokens#chunks_of_a_prompt_share_steps",
    "floor": "lecture_05/prompts-between-tokens#tensor_parallelism_has_a_floor",
    "bill": "lecture_05/the-bill#a_generated_token_costs_more",
    "touched": "lecture_05/the-bill#a_batch_reads_most_experts",
    "state": "lecture_02/napkin-math#training_holds_four_values_per_parameter",
    "master": "lecture_02/napkin-math#a_master_copy_saves_no_memory",
    "optimizers": "lecture_02/optimizers#optimizers_differ_in_what_they_remember",
    "muon": "lecture_02/optimizers#muon_makes_singular_values_equal",
    "quantized": "lecture_02/mixed-precision#quantized_weights_trade_error_for_bytes",
    "lost": "lecture_02/what-rounding-loses#small_updates_are_lost",
    "days": "lecture_02/napkin-math#a_training_run_in_three_lines",
    "hours": "lecture_02/napkin-math#a_run_is_paid_for_in_gpu_hours",
    "watts": "lecture_02/napkin-math#boards_draw_half_of_the_power",
    "sharded": "lecture_04/sharded-state#more_ranks_keep_less_each",
    "tensor": "lecture_04/tensor-parallelism#heads_are_columns",
    "pipeline": "lecture_04/pipelines#microbatches_fill_the_pipeline",
    "step": "lecture_04/all-together#the_axes_multiply",
}


@dataclass(frozen=True)
class Recipe:
    """The bytes that training keeps for every parameter that it trains, by what they are for."""

    key: str
    name: str
    parameter: int
    gradient: int
    master: int  # a copy of the parameter in float32, beside the 16-bit one
    state: int   # the optimizer's own
    section: str = "state"  # where the book shows it
    frozen: float = 0  # bytes of a weight that is not trained; 0 where all are
    warning: str = ""

    @property
    def total(self) -> int:
        """Bytes per parameter."""
        return self.parameter + self.gradient + self.master + self.state


RECIPES: tuple[Recipe, ...] = (
    Recipe("adamw-mixed", "AdamW, bfloat16, float32 master copy", 2, 2, 4, 8, "master"),
    Recipe("adamw-mixed-grad32", "AdamW, bfloat16, float32 master copy and gradients", 2, 4, 4, 8, "master"),
    Recipe("adamw-float32", "AdamW, float32 throughout", 4, 4, 0, 8, "state"),
    Recipe("adamw-bfloat16", "AdamW, bfloat16 throughout", 2, 2, 0, 4, "lost",
           warning="bfloat16 throughout loses updates that are small beside their weight"),
    Recipe("adamw-mixed-state16", "AdamW, bfloat16 also for moments, float32 master copy", 2, 2, 4, 4, "master"),
    Recipe("adamw-bfloat16-state32", "AdamW, bfloat16, float32 moments, no master copy", 2, 2, 0, 8, "lost",
           warning="without a master copy, updates that are small beside their weight are lost"),
    Recipe("adam-8bit", "8-bit AdamW, float32 master copy", 2, 2, 4, 2, "master"),
    Recipe("adafactor", "Adafactor without momentum, float32 master copy", 2, 2, 4, 0, "optimizers"),
    Recipe("muon", "Muon, float32 momentum and master copy", 2, 2, 4, 4, "muon"),
    Recipe("momentum", "SGD with momentum, float32", 4, 4, 0, 4, "optimizers"),
    Recipe("sgd", "plain SGD, float32", 4, 4, 0, 0, "optimizers"),
    Recipe("lora", "LoRA: bfloat16 weights frozen, adapters by AdamW", 2, 2, 4, 8, "frozen", 2),
    Recipe("qlora", "QLoRA: 4-bit weights frozen, adapters by AdamW", 2, 2, 4, 8, "quantized", NF4),
)


@dataclass(frozen=True)
class Shape:
    """What a decoder of today is made of; the comment gives the key of Hugging Face's `config.json`."""

    name: str = "your own"
    layers: int = 1             # num_hidden_layers
    width: int = 1              # hidden_size, d_model
    heads: int = 1              # num_attention_heads: query heads
    kv_heads: int = 1           # num_key_value_heads
    head_size: int = 1          # head_dim; with latents qk_nope_head_dim + qk_rope_head_dim
    hidden: int = 1             # intermediate_size, of the FFN of a dense layer
    vocabulary: int = 1         # vocab_size
    context: int = 1            # max_position_embeddings
    tied: bool = False          # tie_word_embeddings: the head's matrix is the embedding
    gated: bool = True          # three matrices in an FFN (SwiGLU, GeGLU), or two
    bias_qkv: bool = False      # attention_bias
    bias_out: bool = False
    bias_ffn: bool = False      # mlp_bias; with experts, each has its own
    bias_head: bool = False
    norms: int = 2              # of a layer: before each half, or also behind (4)
    norm_vectors: int = 1       # RMSNorm has a gain, LayerNorm also a bias
    query_norm: str = ""        # "head": a gain for the elements of a head; "all": one for all heads
    positions: int = 0          # rows of a learned position table (n_positions)
    window: int = 0             # sliding_window: positions that a token attends to; 0: all
    windowed_layers: int = 0    # of the layers, those with this window
    sinks: bool = False         # a learned logit for each head
    experts: int = 1            # num_local_experts, n_routed_experts
    active: int = 1             # num_experts_per_tok
    expert_hidden: int = 0      # moe_intermediate_size
    shared_hidden: int = 0      # n_shared_experts * moe_intermediate_size
    dense_layers: int = 0       # first_k_dense_replace: layers with an FFN in place of experts
    bias_router: bool = False   # a number for each expert, beside the router's matrix
    query_rank: int = 0         # q_lora_rank
    kv_rank: int = 0            # kv_lora_rank; 0: keys and values themselves are cached
    rope_size: int = 0          # qk_rope_head_dim
    value_size: int = 0         # v_head_dim; 0: as large as a key


# --- what a model is made of


def value_size(s: Shape) -> int:
    """Elements of a value of one head. Section: latent."""
    return s.value_size if s.value_size > 0 else s.head_size


def attention_weights(s: Shape) -> int:
    """Weights in the matrices of attention, of one layer. Section: matrices; with latents: latent."""
    d, q = s.width, s.heads * s.head_size
    if s.kv_rank > 0:
        queries = d * s.query_rank + s.query_rank * q if s.query_rank > 0 else d * q
        keys = s.heads * (s.head_size - s.rope_size + s.value_size)
        return queries + d * (s.kv_rank + s.rope_size) + s.kv_rank * keys + s.heads * s.value_size * d
    return d * (q + 2 * s.kv_heads * s.head_size) + q * d


def attention_vectors(s: Shape) -> int:
    """Parameters of one layer's attention that are no matrix: biases, norms of queries and keys, sinks. Section: parameters."""
    q, kv = s.heads * s.head_size, s.kv_heads * s.head_size
    count = s.query_rank + s.kv_rank
    if s.bias_qkv:
        count += q + 2 * kv
    if s.bias_out:
        count += s.width
    if s.query_norm == "head":
        count += 2 * s.head_size
    if s.query_norm == "all":
        count += q + kv
    if s.sinks:
        count += s.heads
    return count


def ffn_weights(s: Shape, hidden: int) -> int:
    """Weights of an FFN whose inner size is `hidden`: gate, up and down, or two matrices. Section: matrices."""
    return (3 if s.gated else 2) * s.width * hidden


def ffn_vectors(s: Shape, hidden: int) -> int:
    """Biases of such an FFN. Section: parameters."""
    return ((2 if s.gated else 1) * hidden + s.width) if s.bias_ffn else 0


def expert_layers(s: Shape) -> int:
    """Layers that have experts. Section: experts."""
    return s.layers - s.dense_layers if s.experts > 1 else 0


def expert_parameters(s: Shape) -> int:
    """Parameters of all experts of one layer, the shared ones and the router apart. Section: experts."""
    return s.experts * (ffn_weights(s, s.expert_hidden) + ffn_vectors(s, s.expert_hidden))


def layer_parameters(s: Shape, with_experts: bool) -> int:
    """All parameters of one layer, dense or with experts. Section: parameters."""
    count = attention_weights(s) + attention_vectors(s) + s.norms * s.norm_vectors * s.width
    if not with_experts:
        return count + ffn_weights(s, s.hidden) + ffn_vectors(s, s.hidden)
    router = s.experts * (s.width + 1) if s.bias_router else s.experts * s.width
    return count + expert_parameters(s) + router + ffn_weights(s, s.shared_hidden)


def table_parameters(s: Shape) -> int:
    """Parameters of the embedding, of the head where it has a matrix of its own, and of learned positions. Section: parameters."""
    head = s.vocabulary if s.bias_head else 0
    return (1 if s.tied else 2) * s.vocabulary * s.width + s.positions * s.width + head


def parameter_count(s: Shape) -> int:
    """All parameters of a model. Section: parameters."""
    moe = expert_layers(s)
    layers = (s.layers - moe) * layer_parameters(s, False) + moe * layer_parameters(s, True)
    return layers + s.norm_vectors * s.width + table_parameters(s)


def block_weights(s: Shape) -> int:
    """Weights in the matrices of all layers, those of all experts included, without routers. Section: matrices."""
    moe = expert_layers(s)
    dense = (s.layers - moe) * ffn_weights(s, s.hidden)
    experts = moe * (s.experts * ffn_weights(s, s.expert_hidden) + ffn_weights(s, s.shared_hidden))
    return s.layers * attention_weights(s) + dense + experts


def active_block_weights(s: Shape) -> int:
    """Weights in the layers' matrices that a token is multiplied by, with its active experts and the router. Section: experts."""
    moe = expert_layers(s)
    dense = (s.layers - moe) * ffn_weights(s, s.hidden)
    routed = s.active * ffn_weights(s, s.expert_hidden) + ffn_weights(s, s.shared_hidden) + s.width * s.experts
    return s.layers * attention_weights(s) + dense + moe * routed


def active_parameters(s: Shape) -> int:
    """The weights that a token is multiplied by: those of the layers, and the head.

    The embedding of the input is looked up and not multiplied, so it does not count, unless it is the head as well. This
    is the one definition of this book. Section: experts.
    """
    return active_block_weights(s) + s.vocabulary * s.width


def adapter_parameters(s: Shape, rank: int) -> int:
    """Parameters of LoRA's adapters: `rank` times inputs and outputs of each matrix, except routed experts. Section: frozen."""
    d, q, kv = s.width, s.heads * s.head_size, s.kv_heads * s.head_size
    if s.kv_rank > 0:
        keys = s.heads * (s.head_size - s.rope_size + s.value_size)
        queries = d + s.query_rank + s.query_rank + q if s.query_rank > 0 else d + q
        attention = queries + d + s.kv_rank + s.rope_size + s.kv_rank + keys + s.heads * s.value_size + d
    else:
        attention = d + q + 2 * (d + kv) + q + d
    matrices, moe = (3 if s.gated else 2), expert_layers(s)
    dense = (s.layers - moe) * matrices * (d + s.hidden)
    shared = moe * matrices * (d + s.shared_hidden) if s.shared_hidden > 0 else 0
    return rank * (s.layers * attention + dense + shared)


# --- FLOPs


def pairs_seen(s: Shape, context: float) -> float:
    """Keys that a token attends to, summed over the layers: all of `context`, or the window. Section: window."""
    return (s.layers - s.windowed_layers) * context + s.windowed_layers * min(context, s.window)


def attention_flops(s: Shape, context: float) -> float:
    """FLOPs of scores and weighted sums of one token over `context` keys, in all layers, forward.

    All pairs count, also those that the causal mask hides: so do published MFUs. Section: training.
    """
    return pairs_seen(s, context) * 2 * s.heads * (s.head_size + value_size(s))


def decoding_flops(s: Shape, context: float) -> float:
    """FLOPs to decode one token after `context` others. Queries meet latents directly. Section: prefill."""
    pair = 2 * s.heads * (2 * s.kv_rank + s.rope_size) if s.kv_rank > 0 else 2 * s.heads * (s.head_size + value_size(s))
    return 2 * active_parameters(s) + pairs_seen(s, context) * pair


def forward_flops(s: Shape, context: float) -> float:
    """FLOPs of a forward pass for each token: two for each active parameter, and attention. Section: flops."""
    return 2 * active_parameters(s) + attention_flops(s, context)


def training_flops(s: Shape, context: float, adapters: float) -> float:
    """FLOPs that training needs for each token. Section: training; with adapters: frozen.

    Three times the forward pass. With `adapters` above 0 all other weights are frozen: these need no gradient, which
    saves two of six FLOPs, and each adapter parameter costs six.
    """
    if adapters > 0:
        return 4 * active_parameters(s) + 6 * adapters + 3 * attention_flops(s, context)
    return 3 * forward_flops(s, context)


def recomputed_flops(s: Shape, context: float, recompute: str) -> float:
    """FLOPs for each token that are computed a second time. Section: recompute.

    With "full", the forward pass of every layer, without the last matmul of a dense FFN, whose result nobody needs. With
    "selective" no matmul is repeated.
    """
    if recompute != "full":
        return 0
    last = (s.layers - expert_layers(s)) * 2 * s.width * s.hidden
    return 2 * active_block_weights(s) + attention_flops(s, context) - last


# --- memory


def layer_activations(s: Shape, with_experts: bool, selective: bool) -> float:
    """Bytes that one layer keeps of each token for the backward pass, in bfloat16. Section: activations.

    Each norm keeps its input and one float32; fused attention keeps its input, queries, keys, values, its result and one
    float32 for each head; an FFN its input, and what goes into and comes out of each elementwise step. With `selective`
    the layer's input and the results of matmuls and of attention are kept, and the rest is computed again.
    """
    d, q, values = s.width, s.heads * s.head_size, s.heads * value_size(s)
    if s.kv_rank > 0:
        projected = s.query_rank + s.kv_rank + s.rope_size + q + s.heads * s.head_size + values
    else:
        projected = q + 2 * s.kv_heads * s.head_size
    inner = 4 if s.gated else 2
    if selective:
        inner = 2 if s.gated else 1
    kept = 2 * (projected + values) + 4 * s.heads
    kept += 2 * (3 * d) if selective else s.norms * (2 * d + 4) + 2 * d
    if s.query_norm != "" and not selective:
        kept += 2 * (q + s.kv_heads * s.head_size)
        kept += 4 * (s.heads + s.kv_heads) if s.query_norm == "head" else 8
    if not with_experts:
        return kept + 2 * (inner * s.hidden) + (0 if selective else 2 * d)
    shared = 2 * inner * s.shared_hidden + 2 * d if s.shared_hidden > 0 else 0
    return kept + s.active * (2 * (2 * d + inner * s.expert_hidden) + 28) + 2 * d + shared


def activation_bytes(s: Shape, tokens: float, recompute: str, stages: float, ahead: float) -> float:
    """Bytes of activations of `tokens` tokens on a device with one of `stages` stages. Section: recompute.

    With "full" each layer keeps its input alone, and one layer at a time is computed again. `ahead` microbatches are open
    at once.
    """
    selective, moe = recompute == "selective", expert_layers(s)
    dense, sparse = layer_activations(s, False, selective), layer_activations(s, True, selective)
    if recompute == "full":
        return tokens * (ahead * 2 * s.width * s.layers / stages + (sparse if moe > 0 else dense))
    return tokens * ahead * ((s.layers - moe) * dense + moe * sparse) / stages


def logits_bytes(vocabulary: float, tokens: float) -> float:
    """Bytes of the softmax over the vocabulary for so many tokens, in float32. Section: logits."""
    return 4 * vocabulary * tokens


def cache_bytes(s: Shape, tokens: float, width: float) -> float:
    """Bytes of the KV cache of one sequence of `tokens` tokens, `width` bytes an element. Section: cache; latent; window."""
    elements = s.kv_rank + s.rope_size if s.kv_rank > 0 else 2 * s.kv_heads * s.head_size
    return pairs_seen(s, tokens) * elements * width


def cache_copies(s: Shape, ranks: float) -> float:
    """Elements of the KV cache are kept so many times by ranks of tensor parallelism: once, up to a rank for each KV head.

    A latent serves all heads, so each rank keeps it whole. Section: tensor; latent.
    """
    return max(ranks / (1 if s.kv_rank > 0 else s.kv_heads), 1)


def weight_bytes(s: Shape, precision: str) -> float:
    """Bytes of the weights for serving. Section: quantized.

    "bfloat16" takes 2 bytes throughout; "float8" and "mxfp4" shrink the matrices of the layers, "mxfp4-experts" those of
    the experts alone; tables, norms and biases keep 2 bytes.
    """
    width = 1 if precision == "float8" else MXFP4
    small = 0
    if precision == "float8" or precision == "mxfp4":
        small = block_weights(s)
    if precision == "mxfp4-experts":
        small = expert_layers(s) * s.experts * ffn_weights(s, s.expert_hidden)
    return 2 * parameter_count(s) - (2 - width) * small


def frozen_bytes(s: Shape, width: float) -> float:
    """Bytes of frozen weights: `width` for the layers' matrices, 2 for tables, norms and biases. Section: quantized."""
    return 2 * parameter_count(s) - (2 - width) * block_weights(s)


def state_on_rank(
    parameters: float, per_parameter: float, weight: float, gradient: float, zero: int, ranks: float
) -> float:
    """Bytes of weights, gradients and optimizer state on each rank, at a stage of ZeRO from 0 to 3. Section: sharded.

    Of `per_parameter` bytes, `weight` and `gradient` are those of both, and the optimizer has the rest. The stage `zero`
    of ZeRO shards the optimizer from 1 on, gradients from 2 on, weights at 3.
    """
    shared = per_parameter - weight - gradient if zero > 0 else 0
    shared += gradient if zero > 1 else 0
    shared += weight if zero > 2 else 0
    return parameters * (per_parameter - shared + shared / ranks)


def gathered_parameters(s: Shape) -> int:
    """Parameters that FSDP gathers at once: a layer in use and the next one, or the largest table. Section: sharded."""
    layer = layer_parameters(s, expert_layers(s) > 0)
    return max(2 * layer, s.vocabulary * s.width)


def room(memory: float, reserve: float, gathered: float) -> float:
    """Bytes of a device's memory that may be planned for: all but a reserve, or but gathered weights if these are larger.

    This is the one rule for "does it fit", in the lectures, on the first page and in the calculator: `memory` is the one
    that the card is sold by, `reserve` is `RESERVE`, unless someone types another. Section: fit.
    """
    return memory - max(memory * reserve, gathered)


# --- time and money


def training_seconds(flops: float, devices: float, peak: float, utilization: float) -> float:
    """Seconds for so many FLOPs on devices that reach a share `utilization` of their peak. Section: days."""
    return flops / (devices * peak * utilization)


def offload_seconds(
    parameters: float, recipe: Recipe, devices: float, link: float, hosts: float, bandwidth: float
) -> float:
    """Seconds of a step for state in host memory: gradients and weights cross the link to the host, which updates in between.

    To update, a host reads gradient, master copy and state, and writes the last two and the weight. Section: state.
    """
    crossing = parameters * (recipe.gradient + recipe.parameter) / (devices * link)
    moved = recipe.gradient + 2 * (recipe.master + recipe.state) + recipe.parameter
    return crossing + parameters * moved / (hosts * bandwidth)


def bubble(stages: float, microbatches: float) -> float:
    """The share of a step in which a pipeline's stage waits. Section: pipeline."""
    return (stages - 1) / (microbatches + stages - 1)


def sent_for_state(
    parameters: float, weight: float, gradient: float, zero: int, ranks: float, microbatches: float
) -> float:
    """Bytes that a rank sends in a step for gradients and weights. Section: sharded.

    Up to stage 1 gradients are reduce-scattered once a step, from stage 2 on after every microbatch, because no rank has
    room to add them up. Then gradients are gathered, or from stage 1 on weights in their place; stage 3 gathers weights
    twice for each microbatch instead.
    """
    scattered = gradient * microbatches if zero > 1 else gradient
    gathered = weight if zero > 0 else gradient
    if zero > 2:
        gathered = 2 * microbatches * weight
    return parameters * (scattered + gathered) * (ranks - 1) / ranks


def sent_for_matmuls(tokens: float, width: float, layers: float, ranks: float, recompute: str) -> float:
    """Bytes that a rank sends in a step for tensor parallelism: four all-reduces in each layer, in bfloat16.

    A layer that is recomputed repeats one of the forward pass's two. Section: tensor.
    """
    all_reduces = 5 if recompute == "full" else 4
    return layers * all_reduces * (2 * (ranks - 1) / ranks) * (2 * tokens * width)


def sent_to_stages(tokens: float, width: float, stages: float) -> float:
    """Bytes that a stage sends to its neighbours in a step, in bfloat16. Section: pipeline."""
    return min(stages - 1, 2) * (2 * tokens * width)


# --- serving


def experts_touched(s: Shape, batch: float) -> float:
    """Experts of a layer that a batch meets on average, if each token picks `active` at random. Section: touched."""
    missed, left, factor = 1.0, math.floor(batch), 1 - s.active / s.experts
    while left > 0:  # the power `factor ** batch`, by squaring, the same in every language
        if left % 2 == 1:
            missed = missed * factor
        factor = factor * factor
        left = left // 2
    return s.experts * (1 - missed)


def weights_read(s: Shape, precision: str, batch: float) -> float:
    """Bytes of weights that a step of decoding reads: the whole model, without the experts that nobody meets.

    The input embedding is looked up: where it has a table of its own, this is not read. Section: touched.
    """
    width = 2.0
    if precision == "float8":
        width = 1.0
    if precision == "mxfp4" or precision == "mxfp4-experts":
        width = MXFP4
    idle = expert_layers(s) * (s.experts - experts_touched(s, batch)) * ffn_weights(s, s.expert_hidden) * width
    table = 0 if s.tied else 2 * s.vocabulary * s.width
    return weight_bytes(s, precision) - idle - table


def decoding_seconds(
    weights: float, flops: float, cache: float, batch: float, bandwidth: float, peak: float
) -> float:
    """Least seconds in which each sequence of a batch gets one token. Section: shared.

    `weights` and `cache`, of one sequence, are bytes; `flops` are those of one token; rates are of all devices together.
    """
    return max(weights / bandwidth, batch * flops / peak) + batch * cache / bandwidth


def all_reduce_seconds(s: Shape, tokens: float, devices: float, link: float) -> float:
    """Seconds on the link for tensor parallelism's two all-reduces in each layer, forward, without latency. Section: tensor."""
    return s.layers * 2 * (2 * (devices - 1) / devices) * (2 * tokens * s.width) / link


def all_reduce_latency(s: Shape, devices: float) -> float:
    """Seconds that tensor parallelism adds to a step of decoding, however little is sent. Section: floor."""
    return s.layers * 2 * ALL_REDUCE if devices > 1 else 0


def prefill_flops(s: Shape, prompt: float) -> float:
    """FLOPs of a prompt: the layers for every token, the pairs that the causal mask leaves, the head for the last token.

    Section: prefill.
    """
    layers = 2 * active_block_weights(s) * prompt
    full = (s.layers - s.windowed_layers) * prompt * (prompt + 1) / 2
    seen = min(prompt, s.window)
    windowed = s.windowed_layers * (seen * (seen + 1) / 2 + (prompt - seen) * seen)
    return layers + (full + windowed) * 2 * s.heads * (s.head_size + value_size(s)) + 2 * s.vocabulary * s.width


# --- what lecture 03 draws with


def days(parameters: float, tokens: float, devices: float, peak: float | None, mfu: float) -> float | None:
    """Days of training by the rule of 6 FLOPs for each parameter and token; None where no peak is known. Section: days."""
    return None if peak is None else 6 * parameters * tokens / (peak * mfu * devices * DAY)


def device_hours(days: float | None, devices: float) -> float | None:
    """Days times devices, in hours: what a run is paid for. Section: hours."""
    return None if days is None else 24 * days * devices


def memory_per_device(parameters: float, per_parameter: float, devices: float = 1, *, sharded: bool) -> float:
    """Bytes of parameters, gradients and optimizer state on each device. Section: sharded."""
    return parameters * per_parameter / devices if sharded else parameters * per_parameter


def kept_activations(
    per_token: float, layers: float, width: float, tokens: float, again: float, batches: float = 1
) -> float:
    """Bytes of activations that a step keeps on a device, in all layers. Section: recompute.

    `per_token` is what one block keeps of a token. With `again` 1, every block is checkpointed: it keeps its input
    alone, in bfloat16, and is computed again, one block of one batch at a time. With `again` 0 all is kept.
    """
    inputs = batches * 2 * width * layers + per_token
    return tokens * (again * inputs + (1 - again) * batches * layers * per_token)


if __name__ == "__main__":
    import sys

    from napkin_terminal import main

    sys.exit(main())
