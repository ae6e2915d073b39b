"""Operations on single elements, and the causal mask."""
import math

import torch
from jaxtyping import Float
from torch import Tensor

from litbook import figure, misbelief, note, question

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


def elementwise_operations_make_a_new_tensor() -> None:
    """An elementwise operation allocates new memory, unless it works in place."""
    note(r"""
        An *elementwise* operation, such as `x + 1`, computes each element of its result from the
        element at the same position in its input. Where is the result? In new memory, because the
        program may still need `x` with its old values. That is so even if no value changes. For a
        `2 * 3` matrix of `float32`, the result needs another `2 * 3 * 4 = 24` bytes:
    """)
    x = torch.ones(2, 3)  # @unnoticed: 2: any number of rows
    same_values = x * 1  # @inspect same_values
    assert same_values.shape == x.shape, "The result has the shape of x."  # @hide
    assert torch.equal(same_values, x), "The result has the values of x."  # @hide
    assert same_values.nbytes == 24, "The result needs 24 bytes."  # @hide
    assert not same_storage(x, same_values), "The result is in new memory."

    note(r"""
        If the old values are no longer needed, write the result over them. Operations whose name
        ends in an underscore, such as `add_`, work *in place*: they overwrite their tensor and
        return it. Whatever uses the same memory changes as well, such as the row `x[0]`:
    """)
    row = x[0]  # @unnoticed: 0: all rows are alike
    returned = x.add_(1)  # @inspect returned, row
    assert returned is x, "add_ returns x itself."
    assert row.tolist() == [2, 2, 2], "The row has the new values."
    note(r"""
        So a training step updates its weights in place: a second copy of them would need the memory
        of a second model.
    """)
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
        A language model learns to predict each token from the tokens before it. In training it has
        the whole sequence at once. What keeps it from looking ahead?

        Tokens look at each other in *attention*. It computes a matrix of *scores*. Each token has a
        row, where it is the one that looks, the *query*. Each token also has a column, where it is
        the one that is looked at, the *key*. The softmax turns each row of scores into weights that
        add up to `1` [@vaswani2017].

        A *causal mask* sets the scores of later tokens to minus infinity before the softmax,
        because then the softmax gives them a weight of exactly `0`. By hand, for a sequence of
        three, where `1` is a score that is kept:

        - the row of token `0` is `1 0 0`: it sees only itself;
        - the row of token `1` is `1 1 0`: it sees token `0` and itself;
        - the row of token `2` is `1 1 1`: it sees all three.

        A token may see itself, because its row predicts the token after it. The scores that are
        kept form the lower triangle of the matrix, with the diagonal. PyTorch calls this triangle
        `tril`, and the upper one `triu`. Here are random scores of `4` tokens, masked with each of
        the two:
    """)
    scores: Float[Tensor, "query key"] = torch.randn(4, 4)
    lower = torch.ones(4, 4).tril() == 1  # true where a score is kept
    upper = torch.ones(4, 4).triu() == 1
    causal = scores.masked_fill(~lower, -torch.inf).softmax(dim=-1)  # @inspect causal
    leaking = scores.masked_fill(~upper, -torch.inf).softmax(dim=-1)  # @inspect leaking

    above = torch.ones(3, 3).triu().tolist()  # @hide
    assert above == [[1, 1, 1], [0, 1, 1], [0, 0, 1]], "triu keeps the diagonal and what is above it."  # @hide
    future = torch.ones(4, 4).triu(diagonal=1) == 1  # @hide
    assert future.sum() == 3 + 2 + 1, "There are six weights above the diagonal."  # @hide
    assert causal[future].tolist() == [0, 0, 0, 0, 0, 0], \
        "With tril, no weight is on a later token."
    assert torch.allclose(causal.sum(dim=-1), torch.ones(4)), "The weights of a query add up to 1."  # @hide
    assert leaking[future].count_nonzero() == 6, \
        "With triu, each later token has weight."
    assert leaking[-1].tolist() == [0, 0, 0, 1], \
        "With triu, the last token looks only at itself."
    misbelief("The causal attention mask is `triu`.", rf"""
        For the scores that are kept it is `tril`; those that are hidden are `triu(diagonal=1)`.
        With queries as rows, keeping `triu` puts
        `3 + 2 + 1 = {int(leaking[future].count_nonzero())}` weights on later tokens.
    """)
    figure(plot_masks(causal, leaking), caption=r"""
        Attention weights with each mask; the area of a square shows its weight. Red squares are
        weights on later tokens.
    """, alt=r"""
        Grids of squares with queries down and keys across. Under tril all squares lie on or below
        the diagonal. Under triu they lie on or above it, and all those above are red: each query
        except the last puts weight on later keys.
    """)
    note(r"""
        The wrong triangle raises no error, because the shapes are the same. But the model then sees
        the tokens that it should learn to predict. A test shows it. The output of a token adds up
        what the tokens contribute, each times its weight. So change the last token: the outputs of
        the tokens before it must stay as they were.
    """)
    x = torch.rand(4, 8)  # @hide
    changed = torch.cat([x[:3], torch.rand(1, 8)])  # the same tokens, with a different last one  # @hide
    stay = []  # @hide
    for mask in (lower, upper):  # @hide
        before, after = (attention_weights(tokens, mask) @ tokens for tokens in (x, changed))
        stay.append(torch.allclose(before[:3], after[:3]))
    assert stay == [True, False], \
        "When the last token changes, earlier outputs stay under tril, and change under triu."  # @hide
    long = torch.ones(100, 100).tril() == 1  # @hide
    question(r"""
        A sequence has `100` tokens, numbered from `0`. How many weights in the row of token `40`
        does the causal mask set to zero?
    """, answer=(~long[40]).sum().item(),
        check=99 - 40,
        wrong={
            "A token sees itself as well.": 60,
            "Those are the earlier tokens, which it sees.": 40,
            "Those are the tokens that it sees.": 41,
        },
        hint="Which tokens come after token `40`?",
        why=r"""
            Token `40` sees the tokens from `0` to `40`, which are `41`. The other `59` come later,
            so their weights are zero.
        """)
