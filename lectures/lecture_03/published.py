"""Configurations of published models, each as its own `config.json` states it, and a small one to count by hand.

Where those files can be read is in the bibliography: `llama-2-7b`, `llama-3-8b`, `llama3` (table 3, for the two larger),
`llama-32`, `mistral-7b`, `qwen25-05b`, `mixtral`; that of Qwen3 is at https://huggingface.co/Qwen/Qwen3-0.6B.
`context` is the longest that this file allows.
"""
from dataclasses import replace

from .counts import ALL, Config

SMALL = Config(layers=2, width=64, heads=8, kv_heads=2, hidden=160, vocabulary=100, context=32)
LLAMA_2_7B = Config(
    layers=32, width=4096, heads=32, kv_heads=32, hidden=11008, vocabulary=32000, context=4096,
)
LLAMA_3_8B = Config(
    layers=32, width=4096, heads=32, kv_heads=8, hidden=14336, vocabulary=128256, context=8192,
)
LLAMA_3_70B = replace(LLAMA_3_8B, layers=80, width=8192, heads=64, hidden=28672)
LLAMA_3_405B = replace(
    LLAMA_3_8B, layers=126, width=16384, heads=128, hidden=53248, context=131072
)
LLAMA_32_1B = replace(
    LLAMA_3_8B, layers=16, width=2048, hidden=8192, context=131072, tied=True
)
LLAMA_32_3B = replace(
    LLAMA_3_8B, layers=28, width=3072, heads=24, hidden=8192, context=131072, tied=True
)
MISTRAL_7B = Config(
    layers=32, width=4096, heads=32, kv_heads=8, hidden=14336, vocabulary=32000, context=32768,
    window=4096,
)
MIXTRAL = replace(MISTRAL_7B, window=ALL, experts=8, active=2)
QWEN_3 = Config(
    layers=28, width=1024, heads=16, kv_heads=8, hidden=3072, vocabulary=151936, context=40960,
    tied=True, head_size=128, normed=True,
)
QWEN_25_HALF_B = Config(
    layers=24, width=896, heads=14, kv_heads=2, hidden=4864, vocabulary=151936, context=32768,
    tied=True, bias=True,
)
MODELS = {
    "Qwen2.5-0.5B": QWEN_25_HALF_B, "Qwen3-0.6B": QWEN_3, "Llama-3.2-1B": LLAMA_32_1B, "Llama-3.2-3B": LLAMA_32_3B,
    "Llama-2-7B": LLAMA_2_7B, "Mistral-7B": MISTRAL_7B, "Llama-3-8B": LLAMA_3_8B,
    "Mixtral-8x7B": MIXTRAL, "Llama-3-70B": LLAMA_3_70B, "Llama-3-405B": LLAMA_3_405B,
}  # from the smallest to the largest
