"""Prompts between tokens: chunks, and a floor under tensor parallelism."""
from functools import partial

import torch
from counters import flops_by_operation
from hardware import CARDS
from lecture_03.block import Transformer
from lecture_03.published import SMALL

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_floor
from .llama import (
    BANDWIDTH,
    KV_BYTES,
    PEAK,
    WEIGHTS,
    prefill_flops,
    step_seconds,
)


def prompts_between_tokens() -> None:
    """Prompts between tokens."""
    note(r"""
        Prefill and decode share a GPU, and delay each other: new prompts keep arriving while other
        users wait for their next token. This part is about how to keep both waits short.
    """)
    chunks_of_a_prompt_share_steps()
    tensor_parallelism_has_a_floor()


def chunks_of_a_prompt_share_steps() -> None:
    """A long prompt delays all other users, and in chunks it delays them less."""
    note(r"""
        While a GPU decodes for many users, a long prompt arrives. Its prefill takes as long as
        several decode steps. Do all users have to wait for it?

        By hand: a decode step takes $10$ ms and a prefill $100$ ms.

        - Run the whole prompt before the next step: each user waits $100 + 10 = 110$ ms for one
          token.
        - Cut the prompt into $10$ *chunks* of $10$ ms, and run one chunk before each step: no user
          waits more than $10 + 10 = 20$ ms.

        The prompt can be cut, because the keys and values of earlier chunks stay in the KV cache,
        where later chunks read them. This is *chunked prefill* [@sarathi].

        In the example, each chunk runs in a pass of its own. A chunk can also run in the same pass
        as the users' tokens. If the arithmetic of all tokens still takes no longer than reading the
        weights, a chunk then adds almost nothing, because a [decode step](#a_step_is_a_sum) reads
        all weights anyway.

        Now Llama-3-8B on an H100 decodes for `64` users with `2048` tokens each, and a prompt of
        `4096` tokens arrives. Reading the caches is added, because no weights are read at that
        time. (The code leaves out the prompt's attention, and counts the output matrix for every
        token. A full count differs by less than $6$ percent.)
    """)
    reading = 2 * WEIGHTS / BANDWIDTH  # 2 bytes each  # @inspect reading as s
    per_token = 2 * WEIGHTS / PEAK  # 2 FLOPs each  # @inspect per_token as s
    caches = 64 * 2048 * KV_BYTES / BANDWIDTH  # @inspect caches as s

    def step(chunk: int) -> float:  # @stepover
        tokens = 64 + chunk  # one per user, plus the chunk
        return max(reading, tokens * per_token) + caches

    normal = step(0)  # without a prompt  # @inspect normal as s
    at_once = step(4096)  # the whole prompt  # @inspect at_once as s
    chunk_of_512 = step(512)  # @hide
    chunk_of_192 = step(192)  # @inspect chunk_of_192 as s
    assert at_once > 7 * normal, \
        "If the whole prompt runs in one step, every user waits more than 7 times as long as in a normal step."
    assert chunk_of_512 < 1.5 * normal, \
        "With a chunk of 512 tokens, a step takes less than 1.5 times as long as a normal one."  # @hide
    assert chunk_of_192 == normal, \
        "Apart from the prompt's attention, a step with a chunk of 192 tokens takes no longer than a normal one."
    assert normal == step_seconds(64, 2048), \
        "Without a prompt, it is the time of a decode step."  # @hide
    room = reading / per_token  # @hide
    assert 295 < room < 296, \
        "While the weights are read, there is time for the arithmetic of 295 tokens."  # @hide

    def full_steps(chunk: int) -> list[float]:  # @hide
        steps = []
        for earlier in range(0, 4096, chunk):
            work = prefill_flops(min(chunk, 4096 - earlier), earlier) + 64 * 2 * WEIGHTS
            steps.append(max(reading, work / PEAK) + caches + earlier * KV_BYTES / BANDWIDTH)
        return steps

    sizes = [128, 192, 256, 512, 1024, 4096]  # @hide
    longest = [max(full_steps(size)) / step(size) for size in sizes]  # @hide
    assert all(0.94 < ratio < 1.06 for ratio in longest), \
        "With attention of the prompt, and the head only for the last token, the longest step differs by less than 6 %."  # @hide
    pairs = prefill_flops(192, 4096 - 192) - prefill_flops(192, 0)  # FLOPs  # @hide
    own = (pairs / PEAK + 4096 * KV_BYTES / BANDWIDTH) / normal  # @hide
    assert 0.05 < own < 0.06, \
        "For the last 192 tokens, attention to earlier chunks adds less than 6 %, even if nothing runs meanwhile."  # @hide
    model = Transformer(SMALL).double().requires_grad_(False)  # @hide
    prompt = torch.randint(100, (1, 30))  # @hide
    small_caches = model.caches(1)  # @hide
    chunks = [model(chunk, small_caches) for chunk in prompt.split(8, dim=1)]  # @hide
    assert torch.allclose(torch.cat(chunks, dim=1), model(prompt)), \
        "In chunks, a small model gives the same logits, up to rounding."  # @hide
    again = model.caches(1)  # @hide
    cut = [flops_by_operation(partial(model, chunk, again))["aten.mm"] for chunk in prompt.split(8, dim=1)]  # @hide
    whole = flops_by_operation(partial(model, prompt))["aten.mm"]  # @hide
    assert [len(cut), sum(cut)] == [4, whole], \
        "In four chunks, PyTorch counts the same FLOPs of matmuls with weights as for the whole prompt."  # @hide
    note(rf"""
        Why does a chunk of `192` tokens make the step no longer? Reading the weights takes
        {1e3 * reading:.2f} ms and the arithmetic of one token {1e3 * per_token:.5f} ms. So while
        the weights are read, there is time for
        ${1e3 * reading:.2f} / {1e3 * per_token:.5f} = {room:.0f}$ tokens, and the step has only
        $64 + 192 = 256$. Attention to earlier chunks adds up to {own:.0%}.

        The user who sent the prompt pays for this: the first token of the answer comes after all
        chunks.
    """)

    def first_token(chunk: int) -> float:  # @hide
        return sum(step(min(chunk, 4096 - done)) for done in range(0, 4096, chunk))

    rows = [(c, -(-4096 // c), 1e3 * step(c), 1e3 * first_token(c)) for c in sizes]  # @hide
    note("| chunk | steps | longest step, ms | first token of the answer, ms |\n|--:|--:|--:|--:|\n"
         + "\n".join(f"| {c} | {n} | {worst:.1f} | {total:.0f} |" for c, n, worst, total in rows))
    assert [round(total) for *_, total in rows] == [307, 211, 160, 111, 87, 68], \
        "From small to large chunks, the first token of the answer comes after 307 to 68 ms."  # @hide
    assert [round(worst, 1) for _, _, worst, _ in rows] == [9.6, 9.6, 10, 13.9, 21.6, 68.2], \
        "The longest step grows from 9.6 to 68 ms."  # @hide
    full = [1e3 * sum(full_steps(size)) for size in sizes]  # @hide
    assert all(0.94 < whole / total < 1.06 for whole, (*_, total) in zip(full, rows)), \
        "The first token also comes within 6 % of a full count."  # @hide

    target = 20  # ms  # @hide

    def waits(chunk: int) -> dict[str, float]:  # @hide
        return {"longest wait of users": 1e3 * step(chunk), "first token of the answer": 1e3 * first_token(chunk)}

    grid = explore(waits, over={"chunk": sizes}, at={"chunk": 512}, kind="bars", unit="ms", limit=("target", target),
        do="What is the largest chunk with which all users get their token within `20` ms? When does the first token of the answer come then?",
        see="Chunks of `512` tokens meet the target. The first token of the answer then comes after `111` ms.",
        caption="Both waits while a prompt of `4096` tokens is processed in chunks.",
        alt="Two bars. With larger chunks the users' wait grows and the prompt's wait shrinks.")  # @hide
    assert max(c for c in grid if grid[c]["longest wait of users"] < target) == 512, \
        "512 tokens are the largest chunk of the grid within 20 ms."  # @hide
    misbelief("The smaller the chunks, the better for everyone.", rf"""
        With chunks of `128` tokens instead of `192`, the users wait equally long. But the first
        token of the prompt's answer comes after {rows[0][3]:.0f} ms instead of {rows[1][3]:.0f} ms,
        because there are {rows[0][1]} steps instead of {rows[1][1]}, and each of them reads all
        weights and all caches.
    """)
    note(r"""
        In vLLM, `max_num_batched_tokens` is the largest number of tokens in a step, chunk and users
        together [@vllm-args]. In SGLang, `chunked_prefill_size` is the largest chunk
        [@sglang-args].
    """)
    question(r"""
        While the weights are read, there is time for the arithmetic of `295` tokens. The GPU
        decodes for `200` users. How many tokens can a chunk have so that a step takes no longer
        than without it?
    """, answer=295 - 200, check=max(c for c in range(295) if c + 200 <= PEAK / BANDWIDTH), unit="tokens",
        hint="Whose tokens are in a step?",
        wrong={"The users' tokens go through the same pass.": 295},
        why="All tokens of the step share the time in which the weights are read. Of the `295`, the users' tokens need `200`.")
    question(r"""
        In the example by hand, a step takes `10` ms, and with a chunk `20` ms. Now five long
        prompts arrive at once. They are processed one after another, one chunk per step. How long
        does a user wait for a token at most, in ms?
    """, answer=10 + 10, check=max(10 + chunk for chunk in [10] * 50), unit="ms",
        hint="How many chunks are in one step?",
        wrong={"Only one of the prompts has a chunk in a step.": 10 + 5 * 10, "That is without chunks.": 5 * 100 + 10},
        why="Each step has one chunk, however many prompts wait. More prompts make the later prompts wait longer, not the other users.")


@aside
def tensor_parallelism_has_a_floor() -> None:
    """By a published measurement, part of a decode step does not become shorter with more GPUs."""
    note(r"""
        For one user, a decode step spends most of its time reading the weights. With eight GPUs,
        each reads an eighth. Does a step take an eighth of the time?

        In *tensor parallelism* each GPU holds a slice of every matrix, and in each layer all GPUs
        sum their partial results in two *all-reduces*. By hand: suppose that reading the weights
        takes $8$ ms on one GPU, and all other work takes $2$ ms on any number of GPUs. Then a step
        takes

        - $8 + 2 = 10$ ms on one GPU,
        - $4 + 2 = 6$ ms on $2$ GPUs,
        - $1 + 2 = 3$ ms on $8$ GPUs, and never less than $2$ ms.

        There is a floor, because more GPUs share the reading, but not the other work: each GPU
        still has to start every operation, and starting one, or an all-reduce, takes some
        microseconds even for tiny tensors. (On one GPU there are no all-reduces, so the same floor
        for all is an approximation.) On $G$ GPUs

        [@eq:floor]: $$
        \text{step} = \frac{\text{reading}}{G} + \text{floor}.
        $$

        Test it with a published measurement: the tokens per second of Llama-2-7B on `1`, `2`, `4`
        and `8` GPUs, all A100 [@gpt-fast]. Compute `reading` and `floor` from the measurements on
        `1` and `8` GPUs, and predict the other two. From one GPU to eight, the floor stays, and
        `7 / 8` of `reading` disappears:
    """)
    speed = {1: 104.9, 2: 168.84, 4: 254.02, 8: 328.43}  # tokens/s
    one, eight = 1 / speed[1], 1 / speed[8]  # seconds per token
    reading = (one - eight) / (7 / 8)  # @inspect reading as s
    floor = one - reading  # @inspect floor as s
    predicted = {g: 1 / (reading / g + floor) for g in (2, 4)}  # @inspect predicted as tokens/s
    errors = [predicted[g] / speed[g] - 1 for g in (2, 4)]
    assert [round(error, 3) for error in errors] == [0.017, -0.009], \
        "The predicted speed is 1.7 % too high for 2 GPUs, and 0.9 % too low for 4 GPUs."
    pair, speedup = speed[2] / speed[1], speed[8] / speed[1]  # @hide
    assert [round(pair, 1), round(speedup, 1)] == [1.6, 3.1], \
        "Two GPUs are 1.6 times as fast as one, and eight 3.1 times."  # @hide
    x, matrix = torch.randn(2, 64).double(), torch.randn(64, 16).double()  # @hide
    slices = list(zip(x.chunk(8, dim=1), matrix.chunk(8)))  # @hide
    assert torch.allclose(torch.stack([part @ rows for part, rows in slices]).sum(dim=0), x @ matrix), \
        "The partial results of eight slices of a matrix add up to the product with the whole matrix."  # @hide
    slope = torch.linalg.lstsq(torch.tensor([[1 / g, 1.0] for g in speed]),
                               torch.tensor([[1 / p] for p in speed.values()])).solution.flatten()  # @hide
    assert torch.allclose(slope, torch.tensor([reading, floor]), rtol=0.03), \
        "A fit of both terms to all four measurements gives the same, to within 3 %."  # @hide
    per_layer = floor / 32  # @hide
    assert 66e-6 < per_layer < 67e-6, \
        "Divided by 32 layers, the floor is 66 µs each."  # @hide
    fewer = torch.linalg.solve(torch.tensor([[1, 1], [1 / 4, 1]]), torch.tensor([1 / speed[1], 1 / speed[4]]))  # @hide
    from_four = 1 / float(fewer[0] / 8 + fewer[1])  # @hide
    assert 0.97 < from_four / speed[8] < 1.03, \
        "Computed from 1 and 4 GPUs, the formula predicts the speed of 8 GPUs to within 3 %."  # @hide
    bound = 2 * 6_607_077_376 / CARDS["A100 SXM 80GB"].bandwidth  # @hide
    assert 0.0064 < bound < 0.0065 < reading, \
        "The fitted reading takes longer than the 6.5 ms that the bandwidth allows."  # @hide
    figure(plot_floor(speed, {g: 1 / (reading / g + floor) for g in (1, 2, 4, 8, 16, 32, 64)}, 1 / floor),
        caption=r"""
            Tokens per second of one sequence against the number of GPUs: measured (dots), by the
            formula (line), and the speed limit that the floor sets (dashed).
        """,
        alt="A line that rises steeply and then bends below a dashed line. Four dots lie on it.")
    note(rf"""
        If the formula also holds beyond `8` GPUs, one user gets no more than
        ${1e3:.0f} / {1e3 * floor:.3f} = {1 / floor:.0f}$ tokens per second. Llama-2-7B has `32`
        layers, so the floor is at most {1e6 * per_layer:.0f} µs per layer. (At the datasheet's
        bandwidth, reading takes only {1e3 * bound:.1f} ms. Either the full bandwidth is not
        reached, or `reading` also has other work that the GPUs share.)
    """)
    misbelief("A user's tokens per second grow in proportion to the number of GPUs.", rf"""
        In this measurement, two GPUs were {pair:.1f} times as fast as one, and eight {speedup:.1f}
        times.
    """)
    question(r"""
        Reading the weights takes `12` ms on one GPU. The floor is `1` ms on any number of GPUs, so
        a step on one GPU takes `13` ms. How many GPUs are needed so that a step takes `4` ms, and
        by what factor is that faster than one GPU? Give two numbers.
    """, answer=[12 / (4 - 1), (12 + 1) / 4], check=[next(g for g in range(1, 99) if 12 / g + 1 <= 4), 13 / (12 / 4 + 1)],
        hint="How many ms are left for reading?",
        why="Of `4` ms the floor leaves `3` ms for reading, a quarter of `12` ms: four GPUs. They are `13 / 4 = 3.25` times as fast as one.")
