"""The running example: the dimensions of Llama-3-8B, an H100, and lower bounds of the time of a pass."""
from hardware import CARDS
from napkin import RESERVE, room
from lecture_03.counts import Config, block_weights
from lecture_03.published import LLAMA_3_8B

GPU = CARDS["H100 SXM"]
PEAK = 989.5e12  # FLOP/s in bfloat16, dense
BANDWIDTH = 3.35e12  # bytes per second
MEMORY = int(room(GPU.memory, RESERVE, 0))  # bytes for weights and caches: a tenth is kept free

WEIGHTS = 7_504_658_432  # of all matrices, read once in a pass
PARAMETERS = 8_030_261_248  # with the embedding
KV_BYTES = 2 * 32 * 8 * 128 * 2  # per token: key and value, layers, KV heads, head dimension, bytes


def prefill_flops(
    tokens: int, earlier: int = 0, model: Config = LLAMA_3_8B
) -> int:
    """FLOPs of one prefill pass over `tokens` new tokens, with `earlier` tokens already in the KV cache.

    Each weight of the blocks costs 2 FLOPs per token. The head runs over the last token only. In attention, each pair
    of a token and one that it attends to costs 4 FLOPs per element of a query and layer: score and weighted sum.
    """
    pairs = tokens * (tokens + 1) // 2 + tokens * earlier
    blocks = 2 * tokens * model.layers * block_weights(model)
    head = 2 * model.vocabulary * model.width
    return blocks + head + 4 * model.layers * model.query_width * pairs


def prefill_seconds(tokens: int, earlier: int = 0) -> float:
    """Lower bound of the time of a prefill, in seconds: its FLOPs at peak, or reading the weights if that takes longer."""
    arithmetic = prefill_flops(tokens, earlier) / PEAK
    return max(arithmetic, 2 * WEIGHTS / BANDWIDTH)


def step_seconds(
    batch: int, context: int, weight: float = 2, element: float = 2
) -> float:
    """Lower bound of the time of a decode step, in seconds, for `batch` sequences with `context` tokens each in the KV cache.

    `weight` and `element` are the bytes of a weight and of an element of the KV cache.
    """
    reading = weight * WEIGHTS / BANDWIDTH
    arithmetic = batch * 2 * WEIGHTS / PEAK
    caches = batch * context * KV_BYTES * element / 2 / BANDWIDTH
    return max(reading, arithmetic) + caches


def sequences_that_fit(context: int, element: float = 2) -> int:
    """Number of KV caches of `context` tokens that fit in memory (nine tenths of it) together with the model's parameters."""
    left = MEMORY - 2 * PARAMETERS
    return int(left // (context * KV_BYTES * element / 2))
