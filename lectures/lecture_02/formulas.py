"""The formulas of the lecture, each with an example."""
from counters import Alive, flops
import math

import torch
from hardware import CARDS
from torch import Tensor
from units import DAY

from litbook import aside, note, question

from .measure import bill, decoder_flops, dense_peak, intensity, step_flops


def summary() -> None:
    """Summary."""
    note(r"""
        This lecture ends with its formulas. Each was compared with a measurement in the section
        that the table names, and is compared with one more here.
    """)
    the_formulas_and_where_they_were_shown()
    the_four_kinds_of_memory_are_a_list_not_a_total()


def the_formulas_and_where_they_were_shown() -> None:
    """The formulas of this lecture, each with an example."""
    note(r"""
        Which formulas are worth remembering? The table below lists them. Most examples are for one
        small model: two hidden layers of width `64` and a head of `64` weights, trained with AdamW
        in `float32` on a batch of `8` rows.

        Three are checked here once more:

        - Autograd keeps the inputs of all three layers, `8 * 64` elements each, and `8` predictions
          and `8` targets, at `4` bytes per element.
        - Weights, gradients and AdamW's two moments need `16` bytes per parameter.
        - A step costs `6` FLOPs per parameter and row. The first layer computes no gradient of its
          input, which saves `2` FLOPs for each of its `64 * 64` weights and each row:
          `6 * 8 * 8256 - 2 * 8 * 64**2`.

        `bill` takes a training step and measures its bytes by kind, and `step_flops` counts its
        FLOPs:
    """)
    width, layers, batch = 64, 2, 8
    parameters = layers * width**2 + width  # @inspect parameters
    assert parameters == 8256, "The model has 8256 parameters."  # @hide
    measured = bill("AdamW", width, layers, batch)  # @inspect measured as B
    kept = 4 * (batch * width * (layers + 1) + 2 * batch)  # @inspect kept as B
    assert kept == measured["activations"], \
        "The formula for kept activations gives the bytes that bill measures."
    state = 16 * parameters  # @inspect state as B
    held = sum(measured.values()) - kept  # @hide
    assert state == held, \
        "16 bytes per parameter are what bill measures in addition to activations."  # @hide
    work = 6 * batch * parameters - 2 * batch * width**2  # @inspect work as FLOP
    assert work == step_flops(batch, width, layers), \
        "The formula for a step gives the FLOPs that are counted."
    note(r"""
        What share of an H100's peak can a matmul of this model reach at most? It multiplies `8`
        rows by a matrix of `64 * 64` weights. That is `2 * 8 * 64 * 64 = 65536` FLOPs for
        `4 * (8 * 64 + 64 * 64 + 8 * 64) = 20480` bytes. So its *intensity*, its FLOPs per byte, is
        only `65536 / 20480 = 3.2`, because each weight that is read is used only `8` times. The
        *ridge*, the FLOPs that the GPU can do while one byte arrives, is `67e12 / 3.35e12 = 20` in
        `float32` [@nvidia-h100]. So the share is `3.2 / 20 = 16%`:
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
    ridge = dense_peak("H100 SXM", "float32") / CARDS["H100 SXM"].bandwidth
    reached = min(1, per_byte / ridge)  # @inspect reached as %
    assert reached == per_byte * 3.35e12 / 67e12, "The matmul reaches FLOPs per byte, divided by the ridge, of the peak."  # @hide
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
        The letters of the table:

        | letters | belong to | mean |
        |---|---|---|
        | $L$, $d$, $P$, $B$ | the small model | hidden layers, their width, all parameters, rows of a batch |
        | $m$, $k$, $n$ | a matmul | rows, inner axis, columns |
        | $N$, $D$, $G$ | a training run | parameters of the model, tokens that it is trained on, GPUs |
        | $T$ | attention | tokens of a context, here `128`; all pairs of them are counted |

        MFU is the share of the peak that a run reaches.

        | what | formula | example | shown in |
        |---|---|---|---|
        | bytes of a tensor | elements × bytes of each | {w.nbytes:,} B for `64 * 64` weights | [a new tensor](#a_fresh_tensor_costs_count_times_width) |
        | FLOPs of a matmul | $2mkn$ | {product:,} | [@eq:product] |
        | FLOPs per byte of a matmul | $2mkn / (4(mk+kn+mn))$ | {per_byte:.1f} | [the roofline](#the_roofline_tells_waiting_from_working) |
        | its share of the peak | $\min(1, \mathrm{{intensity}} / \mathrm{{ridge}})$ | {reached:.1%} on an H100 | [@eq:roof] |
        | parameters | $Ld^2+d$ | {parameters:,} | [@eq:weights] |
        | activations that are kept: inputs of layers, predictions, targets | $4(Bd(L+1)+2B)$ | {kept:,} B | [@eq:kept] |
        | parameters, gradients and AdamW's moments | $16P$ | {state:,} B | [@eq:state] |
        | FLOPs of a step | $6BP-2Bd^2$ | {work:,} | [@eq:step-flops] |
        | FLOPs of attention, per token | $12LdT$ | {attention:,} | [@eq:attention] |
        | file of {trillions} trillion tokens | tokens × `2` bytes | {tokens} TB | [token files](#the_size_of_the_data_is_tokens_times_width) |
        | time of a run, `70e9` parameters on `15e12` tokens | $6ND / (G \times \mathrm{{peak}} \times \mathrm{{MFU}})$ | {days:.0f} days on `1024` H100s at an MFU of `0.5` | [@eq:time] |

        And if you forget the formulas? Write down bytes and FLOPs before you run, then measure. If
        they do not agree, find out why.
    """)
    question(r"""
        The model has $P=8256$ parameters, $L=2$ hidden layers and width $d=64$. From what batch
        size $B$ on do the kept activations need more bytes than the `16P` of AdamW in `float32`?
    """, answer=next(b for b in range(1, 999) if kept / batch * b > state),
        check=math.floor(16 * parameters / (4 * (width * (layers + 1) + 2))) + 1,
        hint="How many bytes of activations does one row of the batch keep, by the table?",
        why=r"""
            One row keeps `4 * (64 * 3 + 2) = 776` bytes, and AdamW holds `16 * 8256 = 132096`.
            Divided, that is a little over `170` rows, so `171` is the first batch that needs more.
        """)


def temporaries(
    weights: list[Tensor], foreach: bool = False, fused: bool = False
) -> int:
    """The peak bytes that AdamW's step needs in addition to what it keeps."""
    optimizer = torch.optim.AdamW(weights, foreach=foreach, fused=fused)
    for w in weights:
        w.grad = torch.randn_like(w)
    optimizer.step()
    with Alive() as alive:
        optimizer.step()
    return alive.most


@aside
def the_four_kinds_of_memory_are_a_list_not_a_total() -> None:
    """A step needs more memory than the four kinds that it keeps."""
    note(r"""
        A training step keeps four kinds of memory: parameters, gradients, optimizer state and
        activations. Is their sum all the memory that the step needs? No: there are also tensors
        that live only for a moment, such as the *temporary* tensors in which the optimizer
        computes.

        The number of temporary tensors depends on how the update is implemented. PyTorch has three
        ways. A loop updates the weight matrices one after another, so it needs temporaries for one
        matrix at a time. `foreach`, the default on a GPU, updates all matrices together, so it
        needs a temporary for each. `fused` does the whole update in one *kernel*, a program on the
        device, and needs none. Measure it for a model of `16` equal matrices. `temporaries` returns
        the peak bytes of temporary tensors during an update. Divide them by the bytes of one
        matrix:
    """)
    weights = [torch.randn(1000, requires_grad=True) for _ in range(16)]  # @unnoticed: 1000: tensors of any size
    most = [
        temporaries(weights), temporaries(weights, foreach=True),
        temporaries(weights, fused=True),
    ]  # @inspect most as B
    held = [size / weights[0].nbytes for size in most]  # @inspect held
    assert held == [3, 16, 0], \
        "The loop has 3 temporary matrices, foreach 16, fused none."
    question(r"""
        A model has `1` billion parameters in `float32`. How many bytes of temporary tensors does an
        update of AdamW with `foreach` need?
    """, answer=10**9 * most[1] // sum(w.numel() for w in weights),
        check=4 * 10**9, unit="B",
        wrong={
            "Those are elements; each has four bytes.": 10**9,
            "The loop has three temporaries, for one matrix at a time; foreach has one for each.": 12 * 10**9,
        },
        hint="`foreach` has one temporary for each matrix. How large are all matrices together?",
        why=r"""
            With one temporary for each matrix, the temporaries are as large as all parameters:
            `1e9 * 4` bytes. That is a quarter more than the `16` bytes per parameter.
        """)
