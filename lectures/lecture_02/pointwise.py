"""Operations on single elements, and the causal mask."""
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from litbook import aside, figure, misbelief, note, question

from .figures import plot_masks
from .measure import same_storage


def elementwise() -> None:
    """Elementwise operations and the causal mask."""
    note(r"""
        Operations on single elements look too simple to go wrong. Yet they can turn integers into
        floats, they cost time although the FLOP counter reports nothing, and the triangle of zeros
        that keeps a language model from reading ahead is easily put on the wrong side of the
        diagonal.
    """)
    elementwise_operations_make_a_new_tensor()
    the_causal_mask_keeps_the_lower_triangle()
    a_leak_shows_when_the_future_changes()


def elementwise_operations_make_a_new_tensor() -> None:
    """An elementwise operation allocates new memory, unless its name ends in an underscore."""
    note(r"""
        An *elementwise* operation, such as `x + 1`, computes each element of its result from the
        element at the same position in its input. The result is a new tensor in new memory, even
        when no value changes. Here the result needs another `2 * 3 * 4 = 24` bytes. (`same_storage`
        says whether two tensors use the same memory.)
    """)
    x = torch.ones(2, 3)  # @unnoticed: 2: any number of rows
    same_values = x * 1  # @inspect same_values
    assert same_values.shape == x.shape, "The result has the shape of x."  # @hide
    assert torch.equal(same_values, x), "The result has the values of x."  # @hide
    assert not same_storage(x, same_values), "The result is in new memory."

    note(r"""
        To allocate no new memory, write into the existing memory. Operations whose name ends in an
        underscore, such as `add_`, work *in place*: they overwrite their tensor and return it. A
        view, a tensor over the same memory such as the row `x[0]`, then changes as well:
    """)
    row = x[0]  # @unnoticed: 0: all rows are alike
    returned = x.add_(1)  # @inspect returned, row
    assert returned is x, "add_ returns x itself."
    assert row.tolist() == [2, 2, 2], "The row has the new values."
    doubled = x * 2  # @hide
    raised = doubled + 1  # @hide
    made = doubled, raised, raised.abs_()  # @hide
    question("`(x * 2 + 1).abs_()` is three operations. How many of them allocate new memory for their result?",
             answer=len({t.data_ptr() for t in made} - {x.data_ptr()}),
        check=sum(not name.endswith("_") for name in ("mul", "add", "abs_")),
        wrong={
            "abs_ works in place.": 3,
            "The product and the sum are two new tensors.": 1,
        },
        hint="Which of the three has a name that ends in an underscore?",
        why=r"""
            `x * 2` makes a new tensor, and `+ 1` another. `abs_` overwrites the second and
            allocates nothing.
        """)


def attention_weights(x: Tensor, keep: Tensor) -> Tensor:
    """The weights of each query for all keys, (query, key): the softmax of the scores where `keep` is true, and zero elsewhere."""
    scores = x @ x.t() / math.sqrt(x.shape[-1])
    return scores.masked_fill(~keep, -math.inf).softmax(dim=-1)


def the_causal_mask_keeps_the_lower_triangle() -> None:
    """The causal mask keeps the lower triangle: each token and those before it."""
    note(r"""
        A language model must not look ahead: each token may use only itself and earlier tokens. How
        is that done? In *attention*, tokens look at each other. Each token has two rows of
        elements, a *query* and a *key*. The dot product of the query of one token with the key of
        another is a *score*: how much the first looks at the second. The scores are a matrix with a
        row for each query and a column for each key. The softmax turns each row into weights that
        add up to one [@vaswani2017].

        A *causal mask* sets the scores of later tokens to minus infinity before the softmax, so
        that their weights are zero. Row `1` keeps columns `0` and `1`, and loses all columns to
        their right. So the lower triangle of the matrix stays, with its diagonal. PyTorch calls it
        `tril`, and the upper triangle `triu`.

        `attention_weights` computes the weights with a mask, here for `4` tokens of `8` elements
        each (the axis `channel`). The same rows of `x` serve as queries and as keys. Above the
        diagonal there are `3 + 2 + 1 = 6` positions:
    """)
    n = 4
    x: Float[Tensor, "query channel"] = torch.randn(n, 8)
    keep: Bool[Tensor, "query key"] = torch.ones(n, n, dtype=torch.bool)
    causal = attention_weights(x, keep.tril())  # @inspect causal
    leaking = attention_weights(x, keep.triu())  # @inspect leaking
    future = keep.triu(diagonal=1)  # above the diagonal: later tokens

    above = torch.ones(3, 3).triu().tolist()  # @hide
    assert above == [[1, 1, 1], [0, 1, 1], [0, 0, 1]], "triu keeps the diagonal and what is above it."  # @hide
    assert causal[future].tolist() == [0, 0, 0, 0, 0, 0], \
        "With tril, no weight is on a later token."
    assert leaking[future].count_nonzero() == 6, \
        "With triu, all 6 positions of later tokens have weight."
    assert leaking[-1].tolist() == [0, 0, 0, 1], \
        "With triu, the last token looks only at itself."
    misbelief("The causal attention mask is `triu`.", rf"""
        It is `tril`. With queries as rows, `triu` puts {int(leaking[future].count_nonzero())}
        weights on later tokens, and the last token looks only at itself.
    """)
    figure(plot_masks(causal, leaking), caption=r"""
        Attention weights with each mask; the area of a square shows its weight. Red squares are
        weights on later tokens.
    """, alt=r"""
        Grids of squares with queries down and keys across. Under tril all squares lie on or below
        the diagonal. Under triu they lie on or above it, and all those above are red: each query
        except the last puts weight on later keys.
    """)
    question(r"""
        A sequence has `100` tokens, so there are `100 * 100` weights. How many of them does the
        causal mask set to zero?
    """, answer=(
        attention_weights(torch.ones(100, 8), torch.ones(100, 100, dtype=torch.bool).tril()) == 0
    ).sum().item(),
        check=100 * 99 // 2,
        wrong={
            "The diagonal stays: a token looks at itself.": 5050,
            "That is half of all weights; the diagonal stays.": 5000,
        },
        hint="How many positions of the matrix are above the diagonal?",
        why=r"""
            Without the diagonal there are `100 * 100 - 100 = 9900` positions. Half of these are
            above the diagonal, and belong to later tokens.
        """)


@aside
def a_leak_shows_when_the_future_changes() -> None:
    """To find a wrong mask, change the last token and see which outputs change."""
    note(r"""
        A wrong [causal mask](#the_causal_mask_keeps_the_lower_triangle) lets tokens look ahead. How
        do you notice that? The shapes are still right, and the loss even looks better, because the
        model sees the answers. But there is a test: change the last token. No earlier token may
        look at it, so only the last output may change. For each of `4` tokens, `moved` returns
        whether its attention output changes under a given mask:
    """)
    n = 4
    x = torch.rand(n, 8)
    changed = torch.cat([x[:-1], torch.rand(1, 8)])
    keep = torch.ones(n, n, dtype=torch.bool)

    def moved(mask: Tensor) -> list[bool]:
        before = attention_weights(x, mask) @ x
        after = attention_weights(changed, mask) @ changed
        return [not torch.allclose(before[i], after[i]) for i in range(n)]

    causal, leaking = moved(keep.tril()), moved(keep.triu())
    assert causal == [False, False, False, True], \
        "Under tril, only the output of the last token changes."
    assert leaking == [True, True, True, True], \
        "Under triu, all outputs change: each token sees the last."
    tokens = torch.rand(10, 8)  # @hide
    mask = torch.ones(10, 10, dtype=torch.bool).tril()  # @hide
    before = attention_weights(tokens, mask) @ tokens  # @hide
    tokens[2] = torch.rand(8)  # @hide
    after = attention_weights(tokens, mask) @ tokens  # @hide
    question(r"""
        In a sequence of `10` tokens under the causal mask, the third token is changed. How many
        outputs change?
    """, answer=(after - before).abs().amax(1).gt(1e-4).sum().item(),
        check=len(range(2, 10)), unit="outputs",
        wrong={
            "The tokens after it look at it, not those before.": 3,
            "Its own output changes as well.": 7,
            "The tokens before it do not see it.": 10,
        },
        hint="Which tokens may look at the third one?",
        why="Only the third token and those after it may look at the third token. Of `10` tokens, `2` come before it, so `8` outputs change.")
