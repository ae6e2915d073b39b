"""The formulas of the lecture, and where each was shown."""
from litbook import note, question

from .measure import bill, step_flops


def summary() -> None:
    """Summary."""
    note(r"""
        This lecture ends with its formulas. Those of a training step are checked once more
        together, and the others are listed with the section where each was shown.
    """)
    the_formulas_and_where_they_were_shown()


def the_formulas_and_where_they_were_shown() -> None:
    """The formulas of this lecture, and where they were shown."""
    note(r"""
        What will a training step need if you make the batch larger? A part of its memory stays the
        same, because it belongs to the weights. Activations and FLOPs grow with the batch, because
        each row passes through all layers. The formulas say how much.

        Take a small model, trained with AdamW in `float32`, $4$ bytes per value. It has $L = 2$
        layers of $d \times d$ weights with $d = 64$, and at the end a head of $d$ weights, which
        makes the prediction. A batch has $B = 8$ rows:

        | of a training step | formula | for the small model | shown in |
        |---|---|---|---|
        | parameters $P$ | $Ld^2 + d$ | `2 * 64**2 + 64 = 8256` | [@eq:weights] |
        | bytes of weights, gradients and AdamW's two moments (running averages of gradients): `4` values of `4` bytes per parameter | $16P$ | `16 * 8256 = 132096` | [@eq:state] |
        | bytes of activations, which are kept for the backward pass: in each row $d$ inputs for each of $L$ layers and the head, a prediction and a target | $4B\,(d(L + 1) + 2)$ | `4 * 8 * (64 * 3 + 2) = 6208` | [@eq:kept] |
        | FLOPs: $6$ per parameter and row, but only $4$ for the $d^2$ of the first layer, whose input needs no gradient | $6BP - 2Bd^2$ | `6 * 8 * 8256 - 2 * 8 * 64**2 = 330752` | [@eq:step-flops] |

        Only the last two contain $B$. `bill` runs such a step and returns the bytes of each kind,
        and `step_flops` counts its FLOPs:
    """)
    width, layers, batch = 64, 2, 8  # d, L, B
    parameters = layers * width**2 + width  # P
    held = bill("AdamW", width, layers, batch)  # @inspect held as B
    work = step_flops(batch, width, layers)  # @inspect work as FLOP
    assert parameters == 8256, "The model has 8256 parameters."  # @hide
    fixed = sum(held.values()) - held["activations"]  # all other kinds
    assert fixed == 132096 == 16 * parameters, \
        "Weights, gradients and moments have 16 bytes per parameter."
    kept = 4 * batch * (width * (layers + 1) + 2)
    assert held["activations"] == 6208 == kept, \
        "The formula for activations gives the bytes that bill measures."
    assert work == 330752 == 6 * batch * parameters - 2 * batch * width**2, \
        "The formula for a step gives the FLOPs that are counted."
    note(r"""
        The other formulas of the lecture, in words:

        | what | formula | shown in |
        |---|---|---|
        | bytes of a tensor | elements × bytes of each | [a new tensor](#a_new_tensor_needs_count_times_bytes) |
        | bytes of a file of tokens | tokens × bytes of each | [token files](#the_size_of_the_data_is_tokens_times_bytes) |
        | FLOPs of a matmul | $2$ × rows × inputs × outputs | [@eq:product] |
        | its FLOPs per byte, if each matrix is moved once | FLOPs / bytes of its three matrices | [the roofline](#the_roofline_shows_what_waits_for_memory) |
        | the share of a GPU's peak that it can reach | FLOPs per byte / FLOPs that the GPU can do while one byte arrives; at most $1$ | [@eq:roof] |
        | FLOPs of attention per token, forward and backward | $12$ × layers × model dimension × tokens of the context | [@eq:attention] |
        | seconds of a training run | $6$ × parameters × tokens / (GPUs × peak × share of the peak that is reached) | [@eq:time] |

        And if you forget the formulas? Write down bytes and FLOPs before you run, then measure. If
        they do not agree, find out why.
    """)
    more = bill("AdamW", width, layers, 10 * batch)  # @hide
    factors = [
        (sum(more.values()) - more["activations"]) / fixed,
        more["activations"] / held["activations"], step_flops(10 * batch, width, layers) / work,
    ]  # @hide
    question(r"""
        The small model is trained with `80` rows in a batch instead of `8`. By what factor does
        each of the three grow: the bytes of weights, gradients and moments, the bytes of
        activations, and the FLOPs of a step? Give three numbers.
    """, answer=[round(factor, 6) for factor in factors],
        check=[1, 10, 10],
        hint="In which of the three formulas does $B$ appear?",
        why=r"""
            Weights, gradients and moments belong to the parameters, so they stay the same. Each row
            has activations of its own and passes through all layers, so activations and FLOPs grow
            with the batch.
        """)
