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
        number at the same place of its input. It takes as much memory as its result, because the
        result is a new tensor, even when no value changes. (`same_storage` says whether two tensors
        use the same memory.)
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
        A tensor of integers is doubled. Is the result a tensor of integers? That depends on how it
        is doubled. Sums, products and powers of integers are integers again, so the format (dtype)
        stays `int64`. Quotients and roots are usually no integers, so for them PyTorch takes its
        default float, `float32`. That is so even where the result happens to be whole:
    """)
    x: Int[Tensor, "n"] = torch.tensor([1, 4, 9])  # @inspect x
    added, times, over = x + x, x * 2, x / 0.5  # @inspect added, times, over
    assert added.tolist() == times.tolist() == [2, 8, 18], \
        "The sum and the product have the values 2, 8, 18."  # @hide
    assert over.tolist() == [2, 8, 18], "The quotient has the values 2, 8, 18, too."  # @hide
    assert added.dtype == times.dtype == torch.int64, \
        "The sum and the product are int64."
    assert over.dtype == torch.float32, "The quotient is float32."
    assert torch.equal(added, over), \
        "torch.equal compares values alone, and finds them equal."

    note("The power and the roots of the same tensor. `rsqrt` is one over the root:")
    power, root, inverse = x.pow(2), x.sqrt(), x.rsqrt()  # @inspect power, root, inverse
    assert power.tolist() == [1, 16, 81], "The squares are 1, 16, 81."  # @hide
    assert root.tolist() == [1, 2, 3], "The roots are 1, 2, 3."  # @hide
    thirds = torch.tensor([1, 1 / 2, 1 / 3])  # @hide
    assert torch.allclose(inverse, thirds), "One over the root is 1, 1/2, 1/3."  # @hide
    assert power.dtype == torch.int64, "The power is int64."
    assert root.dtype == inverse.dtype == torch.float32, \
        "The root and one over the root are float32."

    note(r"""
        An operation [in place](#elementwise_operations_make_a_new_tensor) writes its result into
        the memory of the tensor. That is memory for integers, so a root cannot be written there,
        and PyTorch refuses:
    """)
    error = message_of(lambda: x.sqrt_())  # @inspect error
    assert "Float can't be cast" in error, \
        "sqrt_ refuses to write floats into a tensor of integers."
    question(r"""
        `torch.arange(1000)` has `1000` integers of `8` bytes each. How many bytes does
        `torch.arange(1000) / 1` take?
    """, answer=(torch.arange(1000) / 1).nbytes,
        check=8000 // 2, unit="B",
        wrong={
            "A quotient is float32, 4 bytes a number.": 8000,
        },
        hint="Which dtype has a quotient, and how many bytes does it take?",
        why="A quotient is `float32`, even if it is divided by one. A `float32` takes `4` bytes.")


@aside
def the_flop_counter_sees_only_products() -> None:
    """PyTorch's FLOP counter counts products and reports zero for elementwise work."""
    note(r"""
        Adding one to a matrix of `10 * 10` numbers takes a hundred additions, and PyTorch's counter
        of FLOPs reports zero. Why? It has formulas only for products of matrices and a few more
        operations, and whatever has no formula counts as zero [@pytorch_flop_counter]. A softmax,
        which turns each row of a matrix into weights that sum to one, has none either. `flops`
        returns what the counter reports:
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
        So zero does not mean free. An elementwise operation costs time for its bytes: it reads its
        input from memory and writes its result. A
        [later section](#cheap_in_flops_is_not_cheap_in_time) measures that. The bytes of `x + 1`,
        for each addition:
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
    """triu() keeps the diagonal and what is above it; tril() keeps the diagonal and what is below."""
    note(r"""
        How does one get a triangle of a matrix? `triu` keeps the *upper* triangle and sets the rest
        to zero, and `tril` keeps the *lower* one. Both keep the diagonal, from the upper left to
        the lower right corner. `diagonal=1` moves the border up by one place: then `triu` drops the
        diagonal, too. Here they are for a matrix of `3 × 3` ones:
    """)
    ones: Float[Tensor, "row col"] = torch.ones(3, 3)
    upper, lower = ones.triu(), ones.tril()  # @inspect upper, lower
    strict = ones.triu(diagonal=1)  # @inspect strict
    above, below = upper.tolist(), lower.tolist()
    shifted = strict.tolist()
    assert above == [[1, 1, 1], [0, 1, 1], [0, 0, 1]], \
        "triu keeps the diagonal and what is above it."
    assert below == [[1, 0, 0], [1, 1, 0], [1, 1, 1]], \
        "tril keeps the diagonal and what is below it."
    assert shifted == [[0, 1, 1], [0, 0, 1], [0, 0, 0]], \
        "triu with diagonal=1 keeps only what is above the diagonal."
    question(r"""
        `diagonal=1` moves the border of `tril` up by one place, too. How many ones are left in
        `torch.ones(5, 5).tril(diagonal=1)`?
    """, answer=int(torch.ones(5, 5).tril(diagonal=1).sum().item()),
        check=sum(col <= row + 1 for row in range(5) for col in range(5)), unit="ones",
        wrong={
            "That is without diagonal=1.": 15,
            "The border moves up, so more ones stay.": 10,
        },
        hint="How many ones does `tril` keep in each row, and how many more with `diagonal=1`?",
        why=r"""
            `tril` keeps `1, 2, 3, 4, 5` ones in the five rows, `15`. With `diagonal=1` each row but
            the last keeps one more.
        """)


def attention_weights(x: Tensor, keep: Tensor) -> Tensor:
    """How much each query looks at each key, (query, key): a softmax where `keep` is true."""
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
        stays is the lower triangle of the matrix, with its diagonal, in PyTorch `tril`; the upper
        one is `triu`. `attention_weights` computes the weights with a mask, here for `4` tokens,
        whose rows in `x` serve as queries and as keys:
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
        It is `tril`. With queries as rows, `triu` puts {int(leaking[future].count_nonzero())}
        weights on later tokens, and the last token looks at itself alone.
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
        Does PyTorch's attention with `is_causal=True` use
        [the lower triangle](#the_causal_mask_keeps_the_lower_triangle), so that no token looks
        ahead? Its result does not show the weights. Attention multiplies each weight by a row of
        numbers of the token that is looked at, the *value*, and adds up. But if the values are the
        rows of an identity matrix, the results are the weights themselves. Compare them with
        `attention_weights`, which computes the weights with a given mask:
    """)
    n = 4
    x = torch.randn(n, 8)  # @unnoticed: 8: any width
    keep = torch.ones(n, n, dtype=torch.bool)
    q, values = x[None], torch.eye(n)[None]
    attend = F.scaled_dot_product_attention
    builtin = attend(q, q, values, is_causal=True)[0]  # @inspect builtin
    causal = attention_weights(x, keep.tril())
    leaking = attention_weights(x, keep.triu())
    assert torch.allclose(builtin, causal), \
        "PyTorch's weights are those of the lower triangle."
    assert not torch.allclose(builtin, leaking), \
        "PyTorch's weights are not those of the upper triangle."
    same = torch.zeros(1, 4, 8)  # @unnoticed: 1, 4, 8: zeros have equal scores
    tens = torch.tensor([[[0.0], [10], [20], [30]]])  # @unnoticed: 30: the last value is hidden
    question(r"""
        All scores are equal, so all weights that the mask leaves are equal, too. The values of `4`
        tokens are `0`, `10`, `20`, `30`. What does causal attention return for the third token?
    """, answer=attend(same, same, tens, is_causal=True)[0, 2].item(),
        check=(0 + 10 + 20) / 3,
        wrong={
            "The third token does not see the fourth.": 15,
            "The third token also sees those before it.": 20,
            "That is the upper triangle.": 25,
        },
        hint="Which of the tokens does the third one see?",
        why="The third token sees itself and the two before it, each with the weight one third: the mean of `0`, `10` and `20`.")


@aside
def the_other_triangle_is_right_in_the_other_layout() -> None:
    """If rows are keys instead of queries, the causal triangle is the upper one."""
    note(r"""
        The [causal mask](#the_causal_mask_keeps_the_lower_triangle) keeps the lower triangle. Why
        do some people write the upper one, `triu`? Their matrix may be transposed. With queries as
        rows, entry $(i, j)$ says how much token $i$ looks at token $j$. With keys as rows, it says
        how much token $i$ is looked at by token $j$. That is the same number at the mirrored place,
        so the lower triangle becomes the upper one:
    """)
    n = 4  # @unnoticed: 4: any number of tokens
    keep = torch.ones(n, n, dtype=torch.bool)
    weights = attention_weights(torch.randn(n, 8), keep.tril())  # @unnoticed: 8: any width
    by_query: Float[Tensor, "query key"] = weights
    by_key: Float[Tensor, "key query"] = weights.t()  # @inspect by_key
    assert torch.equal(by_query, by_query.tril()), \
        "With queries as rows, all weights are in the lower triangle."
    assert torch.equal(by_key, by_key.triu()), \
        "With keys as rows, all weights are in the upper triangle."

    note(r"""
        There is a second reason to write `triu`. A mask may also mark what is *removed*, the later
        tokens. With queries as rows these are above the diagonal. A token may look at itself, so
        the diagonal must not be removed, and `triu` needs `diagonal=1`:
    """)
    remove = keep.triu(diagonal=1)  # @inspect remove
    with_diagonal = keep.triu()
    assert torch.equal(~remove, keep.tril()), \
        "Removing triu(diagonal=1) is the same as keeping tril()."
    more = with_diagonal.sum() - remove.sum()  # @inspect more.item()
    assert more == n, \
        "triu() would also remove the diagonal, a place for each token."
    question(r"""
        Queries are rows, and a mask `triu(diagonal=d)` marks what is removed. Each token may look
        at earlier tokens, at itself and also at the *next* token. What is `d`?
    """, answer=next(d for d in range(n) if keep.triu(d).equal(~keep.tril(diagonal=1))),
        check=1 + 1,
        wrong={
            "That also removes the next token.": 1,
            "That also removes the token itself.": 0,
        },
        hint="With `diagonal=1`, the first place that is removed in a row is the next token.",
        why=r"""
            In row $i$, `triu(diagonal=d)` removes the columns from $i + d$ on. The next token, at
            $i + 1$, stays only if $d$ is at least `2`.
        """)


@aside
def a_leak_shows_when_the_future_changes() -> None:
    """To find a wrong mask, change the last token and see which outputs change."""
    note(r"""
        A wrong [causal mask](#the_causal_mask_keeps_the_lower_triangle) lets tokens look ahead. How
        does one notice it? Shapes are right all the same, and the loss even looks better, because
        the model sees the answers. But there is a test. Change the last token. No token before it
        may look at it, so no output but the last may change. `moved` returns for each of `4` tokens
        whether its output of attention changes, under a given mask:
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
    note("This test belongs among the tests of every language model.")
    tokens = torch.rand(10, 8)
    mask = torch.ones(10, 10, dtype=torch.bool).tril()
    before = attention_weights(tokens, mask) @ tokens
    tokens[2] = torch.rand(8)
    after = attention_weights(tokens, mask) @ tokens
    question(r"""
        In a sequence of `10` tokens under the causal mask, the third token is changed. How many
        outputs change?
    """, answer=(after - before).abs().amax(1).gt(1e-4).sum().item(),
        check=len(range(2, 10)), unit="outputs",
        wrong={
            "The tokens after it look at it, not those before.": 3,
            "Its own output changes, too.": 7,
            "The tokens before it do not see it.": 10,
        },
        hint="Which tokens may look at the third one?",
        why="The third token and all after it look at the third token. These are `8` of the `10`.")
