"""The formulas of the lecture, each with an example."""
from counters import flops

import torch
from hardware import CARDS
from units import DAY

from litbook import note, question

from .measure import bill, decoder_flops, dense_peak, intensity, step_flops


def summary() -> None:
    """Summary."""
    note(r"""
        This lecture ends with its formulas. Each was compared with a measurement in the section
        that the table names, and is compared with one more here.
    """)
    the_formulas_and_where_they_were_shown()


def the_formulas_and_where_they_were_shown() -> None:
    """The formulas of this lecture, each with an example."""
    note(r"""
        Which formulas are worth remembering? The table at the end of this section lists them. Most
        examples in it are for one small model: two hidden layers of width `64` and a head of `64`
        weights, trained with AdamW in `float32` on a batch of `8` rows.

        Three of the formulas describe a training step of this model:

        - *activations*, which autograd saves for the backward pass: the inputs of three layers,
          predictions and targets, in `4` bytes each;
        - *state*: a weight, its gradient and AdamW's two moments, in `4` bytes each, which is
          `4 * 4 = 16` bytes per parameter;
        - *work*: `6` FLOPs per parameter and row, except that the first layer needs no gradient of
          its input, which saves `2` of the `6`.

        `bill` measures the bytes of a training step by kind, and `step_flops` counts its FLOPs.
        Compare:
    """)
    width, layers, batch = 64, 2, 8  # d, L, B
    parameters = layers * width**2 + width  # P  # @inspect parameters
    assert parameters == 8256, "The model has 8256 parameters."  # @hide
    measured = bill("AdamW", width, layers, batch)  # @inspect measured as B
    kept = 4 * (batch * width * (layers + 1) + 2 * batch)  # @inspect kept as B
    assert kept == measured["activations"], \
        "The formula for activations gives the bytes that bill measures."
    state = 16 * parameters  # @inspect state as B
    held = sum(measured.values()) - kept  # @hide
    assert state == held, \
        "16 bytes per parameter are what bill measures in addition to activations."  # @hide
    work = 6 * batch * parameters - 2 * batch * width**2  # @inspect work as FLOP
    assert work == step_flops(batch, width, layers), \
        "The formula for a step gives the FLOPs that are counted."
    note(r"""
        The next two formulas give the largest share of an H100's peak that a matmul of this model
        can reach. It multiplies `8` rows by `64 * 64` weights, and its *intensity*, its FLOPs per
        byte, is low, because each weight that is read is used only `8` times. The GPU's *ridge* is
        the number of FLOPs that it can do while one byte arrives: `67e12 / 3.35e12 = 20` in
        `float32` [@nvidia-h100]. A matmul with a lower intensity is *memory-bound*: it waits for
        memory, and can reach at most the share intensity / ridge of the peak:
    """)
    product = 2 * batch * width * width  # @inspect product as FLOP
    moved = 4 * (batch * width + width * width + batch * width)  # @inspect moved as B
    per_byte = product / moved  # @inspect per_byte
    x, w = torch.ones(batch, width), torch.ones(width, width)  # @hide
    assert product == flops(lambda: x @ w), \
        "The formula for a matmul gives the FLOPs that are counted."  # @hide
    assert moved == x.nbytes + w.nbytes + (x @ w).nbytes, "The tensors have the same number of bytes."  # @hide
    formula = intensity(batch, width, width, width=4)  # @hide
    assert per_byte == formula, \
        "The formula for FLOPs per byte agrees with the bytes of the tensors."  # @hide
    ridge = 67e12 / 3.35e12
    limit = min(1, per_byte / ridge)  # @inspect limit as %
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
        The table below uses these letters:

        | letters | used for | mean |
        |---|---|---|
        | $L$, $d$, $P$, $B$ | the small model | hidden layers, their width, all parameters, rows of a batch |
        | $m$, $k$, $n$ | a matmul | rows, inner axis, columns |
        | $N$, $D$, $G$ | a training run | parameters of the model, training tokens, GPUs |
        | $T$ | attention | context length in tokens, here `128`, in a Transformer of the same $L$ and $d$; pairs of tokens that the mask removes are counted too |

        MFU is the share of the peak that a run reaches.

        | what | formula | example | shown in |
        |---|---|---|---|
        | bytes of a tensor | elements × bytes of each | {w.nbytes:,} B for `64 * 64` weights | [a new tensor](#a_new_tensor_needs_count_times_bytes) |
        | FLOPs of a matmul | $2mkn$ | {product:,} | [@eq:product] |
        | FLOPs per byte of a matmul | $2mkn / (4(mk+kn+mn))$ | {per_byte:.1f} | [the roofline](#the_roofline_shows_what_waits_for_memory) |
        | its share of the peak, at most | $\min(1, \mathrm{{intensity}} / \mathrm{{ridge}})$ | {limit:.1%} on an H100 | [@eq:roof] |
        | parameters | $Ld^2+d$ | {parameters:,} | [@eq:weights] |
        | activations: layer inputs, predictions, targets | $4(Bd(L+1)+2B)$ | {kept:,} B | [@eq:kept] |
        | parameters, gradients and AdamW's moments | $16P$ | {state:,} B | [@eq:state] |
        | FLOPs of a step | $6BP-2Bd^2$ | {work:,} | [@eq:step-flops] |
        | FLOPs of attention, per token | $12LdT$ | `12 * 2 * 64 * 128 =` {attention:,} | [@eq:attention] |
        | file of {trillions} trillion tokens | tokens × `2` bytes | {tokens} TB | [token files](#the_size_of_the_data_is_tokens_times_bytes) |
        | time of a run, `70e9` parameters on `15e12` tokens | $6ND / (G \times \mathrm{{peak}} \times \mathrm{{MFU}})$ | {days:.0f} days on `1024` H100s, at the `bfloat16` peak of {promised / 1024 / 1e12:.1f} TFLOP/s and an assumed MFU of `0.5` | [@eq:time] |

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
