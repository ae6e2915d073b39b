"""Operations on single elements, and the causal mask."""
from counters import flops
import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from litbook import aside, figure, misbelief, note, question

from .figures import plot_masks
from .measure import message_of, same_storage


def elementwise() -> None:
    """Elementwise operations and the causal mask."""
    note(r"""
        Operations on single elements look too simple to go wrong. Yet they can turn integers into
        floats, they cost time that the FLOP counter reports as nothing, and the triangle of zeros
        that keeps a language model from reading ahead is easily put on the wrong side of the
        diagonal.
    """)
    elementwise_operations_make_a_new_tensor()
    an_integer_tensor_turns_into_floats()
    the_flop_counter_sees_only_products()
    triu_keeps_the_diagonal_and_above()
    the_causal_mask_keeps_the_lower_triangle()
    pytorchs_causal_attention_agrees()
    the_other_triangle_is_right_in_the_other_layout()
    a_leak_shows_when_the_future_changes()


def elementwise_operations_make_a_new_tensor() -> None:
    """An elementwise operation takes new memory, unless its name ends in an underscore."""
    note(r"""
        An *elementwise* operation, such as `x + 1`, computes each number of its result from the
        number at the same place of its input. How much memory does it take? As much as its result,
        because the result is a new tensor, with a storage of its own. That is so even when no value
        changes:
    """)
    x = torch.ones(2, 3)  # @unnoticed: 2: any number of rows
    same_values = x * 1  # @inspect same_values
    assert same_values.shape == x.shape, "The result has the shape of x."  # @hide
    assert torch.equal(same_values, x), "The result has the values of x."  # @hide
    assert not same_storage(x, same_values), "The result is in new memory."

    note(r"""
        To take no new memory, write into the old. Operations whose name ends in an underscore, such
        as `add_`, work *in place*: they overwrite their tensor and return it. A view, a tensor over
        the same memory such as the row `x[0]`, then changes, too:
    """)
    row = x[0]  # @unnoticed: 0: all rows are alike
    returned = x.add_(1)  # @inspect returned, row
    assert returned is x, "add_ returns x itself."
    assert row.tolist() == [2, 2, 2], "The row has the new values."
    doubled = x * 2  # @unnoticed: * -> /, 2, doubled, factor 2 left out: any values
    raised = doubled + 1  # @unnoticed: + -> -, 1, doubled: any values
    made = doubled, raised, raised.abs_()
    question("`(x * 2 + 1).abs_()` is three operations. How many of them take new memory for their result?",
             answer=len({t.data_ptr() for t in made} - {x.data_ptr()}),
        check=sum(not name.endswith("_") for name in ("mul", "add", "abs_")),
        wrong={
            "abs_ works in place.": 3,
            "The product and the sum are two new tensors.": 1,
        },
        hint="Which of the three has a name that ends in an underscore?",
        why=r"""
            `x * 2` makes a new tensor, and `+ 1` another. `abs_` overwrites the second and takes no
            memory.
        """)


@aside
def an_integer_tensor_turns_into_floats() -> None:
    """Division and roots turn an integer tensor into floats."""
    note(r"""
        PyTorch calls it *promotion*. Powers and sums of integers are integers and stay so; roots
        and quotients become `float32`, the default float.
    """)
    x: Int[Tensor, "n"] = torch.tensor([1, 4, 9])  # @inspect x
    power, root, inverse = x.pow(2), x.sqrt(), x.rsqrt()  # @inspect power, root, inverse
    assert power.tolist() == [1, 16, 81], "squares of the integers"
    assert root.tolist() == [1, 2, 3], "their square roots"
    thirds = torch.tensor([1, 1 / 2, 1 / 3])
    assert torch.allclose(inverse, thirds), "one over the root"
    assert power.dtype == torch.int64, "a power stays integer"
    assert root.dtype == inverse.dtype == torch.float32, "a root does not"

    note(r"""
        There are several ways to double a tensor, and they do not agree on the dtype. `torch.equal`
        does not mind: it compares values.
    """)
    added, times, over = x + x, x * 2, x / 0.5  # @inspect added, times, over
    assert added.tolist() == times.tolist() == [2, 8, 18], "sum and product"
    assert over.tolist() == [2, 8, 18], "and the quotient"
    assert added.dtype == times.dtype == torch.int64, "two stay integer"
    assert over.dtype == torch.float32, "the quotient does not"
    assert torch.equal(added, over), "equal all the same"

    note(r"""
        In place there is no room for promotion. The result would have to be written into a storage
        of integers, so PyTorch refuses.
    """)
    error = message_of(lambda: x.sqrt_())  # @inspect error
    assert "Float can't be cast" in error, "refused in place"
    question(r"""
        `torch.arange(1000)` takes `8000` bytes. How many does `torch.arange(1000) / 1` take?
    """, answer=(torch.arange(1000) / 1).nbytes,
        check=8000 // 2, unit="B")


def the_flop_counter_sees_only_products() -> None:
    """PyTorch's FLOP counter counts products and reports zero for elementwise work."""
    note(r"""
        Adding one to a matrix of `10 * 10` numbers takes a hundred additions. PyTorch's counter of
        FLOPs reports zero for it. Why? Because the counter has formulas only for products of
        matrices and a few more operations. Whatever has no formula counts as zero
        [@pytorch_flop_counter]. The same goes for a softmax, which turns each row of a matrix into
        weights that sum to one. Compare an addition, a softmax and a product:
    """)
    n = 10
    x = torch.randn(n, n)
    y = x + 1  # @inspect y.nbytes as B  # @unnoticed: + -> -, 1, doubled: any values
    reported = flops(lambda: x + 1)  # @inspect reported as FLOP
    normalized = flops(lambda: x.softmax(-1))
    product = flops(lambda: x @ x)  # @inspect product as FLOP
    assert y.numel() == 100, "100 additions were done."  # @hide
    assert reported == 0, "The counter reports none of the 100 additions."  # @zero: the counter has no formula for it
    assert normalized == 0, "The counter reports nothing for a softmax."  # @zero: the counter has no formula for it
    assert product == 2 * n**3, \
        "The counter reports 2 * 10**3 FLOPs for a product."

    note(r"""
        So zero does not mean free. What an elementwise operation costs is mostly time for its
        bytes: it reads its input from memory and writes its result. A
        [later section](#cheap_in_flops_is_not_cheap_in_time) measures that time. The bytes of
        `x + 1`, for each addition:
    """)
    assert (x.nbytes, y.nbytes) == (400, 400), \
        "The addition reads 400 bytes and writes 400."  # @hide
    per_addition = (x.nbytes + y.nbytes) / y.numel()  # @inspect per_addition as B
    assert per_addition == 8, "Each addition moves 8 bytes."
    question(r"""
        `a` has `10` rows of `20` numbers, and `b` has `20` rows of `30`. How many FLOPs does the
        counter report for `(a @ b + 1).softmax(-1)`?
    """, answer=flops(lambda: (torch.ones(10, 20) @ torch.ones(20, 30) + 1).softmax(-1)),
        wrong={
            "The additions are missing.": 10 * 20 * 30,
            "The counter reports nothing for the addition and the softmax.": 2 * 10 * 20 * 30 + 2 * 10 * 30,
        },
        check=2 * 10 * 20 * 30,
        hint="Which of the three operations has a formula in the counter?", unit="FLOP",
        why=r"""
            The counter has a formula for the product only: `2 * 10 * 20 * 30`. For the addition of
            one and the softmax it has none.
        """)


@aside
def triu_keeps_the_diagonal_and_above() -> None:
    """triu() keeps the diagonal and what lies above; tril() the diagonal and below."""
    note(r"""
        Each keeps one triangle of a matrix and puts zeros in the other. The diagonal belongs to
        both. An argument shifts the border: with `1`, `triu` drops the diagonal too.
    """)
    ones: Float[Tensor, "row col"] = torch.ones(3, 3)
    upper, lower = ones.triu(), ones.tril()  # @inspect upper, lower
    strict = ones.triu(diagonal=1)  # @inspect strict
    above, below = upper.tolist(), lower.tolist()
    shifted = strict.tolist()
    assert above == [[1, 1, 1], [0, 1, 1], [0, 0, 1]], "diagonal and above"
    assert below == [[1, 0, 0], [1, 1, 0], [1, 1, 1]], "diagonal and below"
    assert shifted == [[0, 1, 1], [0, 0, 1], [0, 0, 0]], "what lies above"
    question("How many ones are left in `torch.ones(5, 5).tril(diagonal=1)`?",
             answer=int(torch.ones(5, 5).tril(diagonal=1).sum().item()),
        check=sum(col <= row + 1 for row in range(5) for col in range(5)))


def attention_weights(x: Tensor, keep: Tensor) -> Tensor:
    """The softmax over keys of each query's scores, (query, key), where `keep` allows them."""
    scores = x @ x.t() / math.sqrt(x.shape[-1])
    return scores.masked_fill(~keep, -math.inf).softmax(dim=-1)


def the_causal_mask_keeps_the_lower_triangle() -> None:
    """The causal mask keeps the lower triangle, the tokens that are there already."""
    note(r"""
        A language model must not look ahead: each token may use only itself and earlier tokens. How
        is that done? In *attention*, tokens look at each other. Each token has two rows of numbers,
        a *query* and a *key*. The product of the query of one token with the key of another is a
        *score*: how much the first looks at the second. The scores are a matrix with a row for each
        query and a column for each key. The softmax turns each row into weights that add up to one
        [@vaswani2017].

        A *causal mask* removes the scores of later tokens before the softmax, so that their weights
        are zero. In row `i`, the later tokens are the columns to the right of column `i`. So what
        stays is the lower triangle of the matrix, with its diagonal. PyTorch calls it `tril`, and
        the upper triangle `triu`. `attention_weights` computes the weights with a mask, here for
        `4` tokens, whose rows in `x` serve as queries and as keys:
    """)
    n = 4
    x: Float[Tensor, "query channel"] = torch.randn(n, 8)
    keep: Bool[Tensor, "query key"] = torch.ones(n, n, dtype=torch.bool)
    causal = attention_weights(x, keep.tril())  # @inspect causal
    leaking = attention_weights(x, keep.triu())  # @inspect leaking
    future = keep.triu(diagonal=1)  # above the diagonal: later tokens
    last = leaking[-1].tolist()
    assert causal[future].tolist() == [0, 0, 0, 0, 0, 0], \
        "With tril, no weight is on a later token."
    assert leaking[future].count_nonzero() == 6, \
        "With triu, all 6 places of later tokens have weight."
    assert last == [0, 0, 0, 1], \
        "With triu, the last token looks at itself alone."
    misbelief("The causal attention mask is `triu`.", rf"""
        It is `tril`. With queries as rows, `triu` keeps the upper triangle:
        {int(leaking[future].count_nonzero())} weights are on later tokens, and the last token looks
        at itself alone.
    """)
    figure(plot_masks(causal, leaking), caption=r"""
        Attention weights with either mask; the area of a square is its weight. Red squares are
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
        hint="How many places of the matrix are above the diagonal?",
        why=r"""
            Without the diagonal there are `100 * 100 - 100 = 9900` places. Half of these are above
            it, and belong to later tokens.
        """)


@aside
def pytorchs_causal_attention_agrees() -> None:
    """PyTorch's own causal attention keeps the lower triangle."""
    note(r"""
        Attention ends by averaging one *value* per key with those weights. Let the values be the
        rows of the identity, and the output is the weights themselves: PyTorch's function shows its
        mask.
    """)
    n = 4
    x = torch.randn(n, 8)  # @unnoticed: 8: any width
    keep = torch.ones(n, n, dtype=torch.bool)
    q, values = x[None], torch.eye(n)[None]
    attend = F.scaled_dot_product_attention
    builtin = attend(q, q, values, is_causal=True)[0]  # @inspect builtin
    causal = attention_weights(x, keep.tril())
    leaking = attention_weights(x, keep.triu())
    assert torch.allclose(builtin, causal), "is_causal means tril"
    assert not torch.allclose(builtin, leaking), "it is not triu"
    same = torch.zeros(1, 4, 8)  # @unnoticed: 1, 4, 8: zeros have equal scores
    tens = torch.tensor([[[0.0], [10], [20], [30]]])  # @unnoticed: 30: the last value is hidden
    question(r"""
        All scores are equal, and the values of the four keys are `0`, `10`, `20`, `30`. What does
        attention with `is_causal=True` return for the third query?
    """, answer=attend(same, same, tens, is_causal=True)[0, 2].item(),
        check=(0 + 10 + 20) / 3)


@aside
def the_other_triangle_is_right_in_the_other_layout() -> None:
    """A triangle is causal only together with what its rows mean."""
    note(r"""
        Those who write `triu` may mean another matrix, in which entry $(i, j)$ is what token $i$
        gives to token $j$. Its rows are the sources. That is the transpose, and there the upper
        triangle is causal. A triangle without a word on its rows is neither right nor wrong.
    """)
    n = 4  # @unnoticed: 4: any number of tokens
    keep = torch.ones(n, n, dtype=torch.bool)
    weights = attention_weights(torch.randn(n, 8), keep.tril())  # @unnoticed: 8: any width
    by_query: Float[Tensor, "query key"] = weights
    by_key: Float[Tensor, "key query"] = weights.t()  # @inspect by_key
    assert torch.equal(by_query, by_query.tril()), "queries as rows: lower"
    assert torch.equal(by_key, by_key.triu()), "sources as rows: upper"

    note(r"""
        A mask may also name what to *remove*. Then, with queries as rows, it is `triu` after all,
        but without the diagonal: keep `tril()`, or mask out `triu(diagonal=1)`.
    """)
    remove = keep.triu(diagonal=1)  # @inspect remove
    with_diagonal = keep.triu()
    assert torch.equal(~remove, keep.tril()), "one mask, said two ways"
    more = with_diagonal.sum() - remove.sum()  # @inspect more.item()
    assert more == n, "triu would remove the diagonal too"
    question(r"""
        Queries are rows, the mask names what to remove, and each token may see the past, itself and
        the *next* token. Which `diagonal` does `triu` get?
    """, answer=next(d for d in range(n) if keep.triu(d).equal(~keep.tril(diagonal=1))),
        check=1 + 1)


@aside
def a_leak_shows_when_the_future_changes() -> None:
    """A leak shows itself when the future changes and the past moves."""
    note(r"""
        Shapes do not betray a wrong mask, and a training loss that profits from it only looks good.
        One test does: change the last token and see which outputs move. It is worth keeping among a
        model's tests.
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
    note("Which outputs moved, from the first token to the last, under either mask:")
    assert causal == [False, False, False, True], "the past stands still"
    assert leaking == [True, True, True, True], "every token saw the last"
    tokens = torch.rand(10, 8)
    mask = torch.ones(10, 10, dtype=torch.bool).tril()
    before = attention_weights(tokens, mask) @ tokens
    tokens[2] = torch.rand(8)
    after = attention_weights(tokens, mask) @ tokens
    question(r"""
        In a sequence of `10` tokens under the causal mask, the third is changed. How many outputs
        move?
    """, answer=(after - before).abs().amax(1).gt(1e-4).sum().item(),
        check=len(range(2, 10)))
