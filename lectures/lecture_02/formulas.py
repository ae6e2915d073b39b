"""The formulas of the lecture, each with an example."""
from counters import flops
import math

import torch
from hardware import CARDS
from units import DAY

from litbook import note, question

from .measure import bill, decoder_flops, dense_peak, intensity, step_flops


def summary() -> None:
    """Summary."""
    note(r"""
        This lecture ends with its formulas, each with an example and with the section where it was
        shown.
    """)
    the_formulas_and_where_they_were_shown()


def the_formulas_and_where_they_were_shown() -> None:
    """The formulas of this lecture, each with an example."""
    note(r"""
        Which formulas say before a run what it will need? Three tables list them: for a training
        step, for a matmul and for a training run. The first is checked here against PyTorch.

        Take a small model, trained with AdamW in `float32`, $4$ bytes per value. It has $L = 2$
        hidden layers of width $d = 64$ and a head of $d$ weights. A batch has $B = 8$ rows, and $P$
        is the number of parameters:

        | of a training step | formula | example | shown in |
        |---|---|---|---|
        | parameters: $L$ matrices and the head | $P = Ld^2 + d$ | `2 * 64**2 + 64 = 8256` | [@eq:weights] |
        | bytes of *state*: each weight, its gradient and AdamW's two moments, `4 * 4` bytes | $16P$ | `16 * 8256 = 132096` | [@eq:state] |
        | bytes of *activations*, which are kept for the backward pass: for each row, the inputs of $L + 1$ layers, a prediction and a target | $4B\,(d(L + 1) + 2)$ | `4 * 8 * (64 * 3 + 2) = 6208` | [@eq:kept] |
        | FLOPs: $6$ per parameter and row, but $4$ in the first layer, whose input needs no gradient | $6BP - 2Bd^2$ | `6 * 8 * 8256 - 2 * 8 * 64**2 = 330752` | [@eq:step-flops] |

        `bill` takes such a step and returns the bytes of each kind, `step_flops` counts its FLOPs:
    """)
    width, layers, batch = 64, 2, 8  # d, L, B
    parameters = layers * width**2 + width  # P
    state = 16 * parameters  # @inspect state as B
    kept = 4 * batch * (width * (layers + 1) + 2)  # @inspect kept as B
    work = 6 * batch * parameters - 2 * batch * width**2  # @inspect work as FLOP
    measured = bill("AdamW", width, layers, batch)  # @inspect measured as B
    assert parameters == 8256, "The model has 8256 parameters."  # @hide
    assert (state, kept, work) == (132096, 6208, 330752), \
        "The examples of the first table are what the formulas give."  # @hide
    held = sum(measured.values()) - measured["activations"]  # @hide
    assert state == held, \
        "16 bytes per parameter are what bill measures for weights, gradients and moments."
    assert kept == measured["activations"], \
        "The formula for activations gives the bytes that bill measures."
    assert work == step_flops(batch, width, layers), \
        "The formula for a step gives the FLOPs that are counted."
    product = 2 * batch * width * width  # @hide
    moved = 4 * (batch * width + width * width + batch * width)  # @hide
    per_byte = product / moved  # @hide
    x, w = torch.ones(batch, width), torch.ones(width, width)  # @hide
    assert product == flops(lambda: x @ w) == 65536, \
        "The formula for a matmul gives the FLOPs that are counted."  # @hide
    assert moved == x.nbytes + w.nbytes + (x @ w).nbytes == 20480, "The tensors have the same number of bytes."  # @hide
    formula = intensity(batch, width, width, width=4)  # @hide
    assert per_byte == formula == 3.2, \
        "The formula for FLOPs per byte agrees with the bytes of the tensors."  # @hide
    ridge = 67e12 / 3.35e12  # @hide
    assert math.isclose(ridge, 20), "In float32, an H100 can do 20 FLOPs while one byte arrives."  # @hide
    limit = min(1, per_byte / ridge)  # @hide
    rated = dense_peak("H100 SXM", "float32"), CARDS["H100 SXM"].bandwidth  # @hide
    assert rated == (67e12, 3.35e12), "The peak and the bandwidth are those of the H100's datasheet."  # @hide
    assert limit == per_byte * 3.35e12 / 67e12, "The matmul can reach FLOPs per byte, divided by the ridge, of the peak."  # @hide
    context, vocab = 128, 100  # @hide
    attention = 12 * layers * width * context  # @hide
    matrices = 12 * layers * width**2 + vocab * width  # @hide
    seen = sum(decoder_flops(vocab, width, 2, layers, context))  # @hide
    assert seen == (6 * matrices + attention) * context, \
        "With 12LdT per token for attention, the formula gives the FLOPs that are counted."  # @hide
    trillions = 1.4  # @hide
    tokens = trillions * 2  # @hide
    assert tokens == 2.8, "1.4 trillion tokens of 2 bytes take 2.8 TB."  # @hide
    promised = 1024 * dense_peak("H100 SXM", "bfloat16")  # @hide
    days = 6 * 70e9 * 15e12 / (promised * 0.5 * DAY)  # @hide
    assert 143.92 < days < 143.93, "The run of 70 billion parameters takes 144 days."  # @hide
    note(rf"""
        One matmul multiplies $m$ rows of $k$ elements by $k \times n$ weights; here a batch of $8$
        rows by one matrix of the model. An H100 can do `67e12 / 3.35e12 = 20` FLOPs in `float32`
        while one byte arrives, which is its *ridge* [@nvidia-h100]. A matmul with fewer FLOPs per
        byte waits for memory:

        | of a matmul | formula | example | shown in |
        |---|---|---|---|
        | bytes of a tensor | elements × bytes of each | `64 * 64 * 4 =` {w.nbytes:,} for the weights | [a new tensor](#a_new_tensor_needs_count_times_bytes) |
        | FLOPs | $2mkn$ | `2 * 8 * 64 * 64 =` {product:,} | [@eq:product] |
        | FLOPs per byte, each matrix moved once | $2mkn / (4(mk + kn + mn))$ | `65536 / 20480 =` {per_byte:.1f} | [the roofline](#the_roofline_shows_what_waits_for_memory) |
        | share of the peak, at most | FLOPs per byte / ridge, but no more than $1$ | `3.2 / 20 =` {limit:.2f} on an H100 | [@eq:roof] |

        For a training run of a Transformer:

        | of a training run | formula | example | shown in |
        |---|---|---|---|
        | bytes of the token file | tokens × bytes of each | {trillions} trillion × `2` bytes = {tokens} TB | [token files](#the_size_of_the_data_is_tokens_times_bytes) |
        | FLOPs of attention, per token, with a context of $T$ tokens | $12LdT$ | `12 * 2 * 64 * 128 =` {attention:,} for $T = 128$ | [@eq:attention] |
        | its time: $N$ parameters, $D$ tokens, $G$ GPUs; the MFU is the share of the peak that it reaches | $6ND / (G \times \mathrm{{peak}} \times \mathrm{{MFU}})$ | {days:.0f} days for `70e9` parameters and `15e12` tokens, on `1024` H100s of {promised / 1024 / 1e12:.1f} TFLOP/s in `bfloat16`, at an assumed MFU of `0.5` | [@eq:time] |

        And if you forget the formulas? Write down bytes and FLOPs before you run, then measure. If
        they do not agree, find out why.
    """)
    more = bill("AdamW", width, layers, 10 * batch)  # @hide
    factors = [
        (sum(more.values()) - more["activations"]) / state,
        more["activations"] / kept, step_flops(10 * batch, width, layers) / work,
    ]  # @hide
    question(r"""
        The small model is trained with `80` rows in a batch instead of `8`. By what factor does
        each of the three grow: the state (weights, gradients and moments), the activations, and the
        FLOPs of a step? Give three numbers.
    """, answer=[round(factor, 6) for factor in factors],
        check=[1, 10, 10],
        hint="In which of the three formulas does $B$ appear?",
        why=r"""
            The state belongs to the parameters, so it stays the same. Each row has activations of
            its own and passes through all layers, so activations and FLOPs grow with the batch.
        """)
