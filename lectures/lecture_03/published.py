"""Configurations of published models, each as its own `config.json` states it, and a small one to count by hand."""
from .counts import Config

SMALL = Config(
    layers=2, width=64, heads=8, kv_heads=2, hidden=160, vocabulary=100, context=32,
)
LLAMA_2_7B = Config(
    layers=32, width=4096, heads=32, kv_heads=32, hidden=11008, vocabulary=32000, context=4096,
)
LLAMA_3_8B = Config(
    layers=32, width=4096, heads=32, kv_heads=8, hidden=14336, vocabulary=128256, context=8192,
)
MISTRAL_7B = Config(
    layers=32, width=4096, heads=32, kv_heads=8, hidden=14336, vocabulary=32000, context=32768,
)
QWEN_25_HALF_B = Config(
    layers=24, width=896, heads=14, kv_heads=2, hidden=4864, vocabulary=151936, context=32768,
    tied=True, bias=True,
)
