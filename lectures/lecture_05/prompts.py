"""Prompts between tokens: chunks, and a floor under tensor parallelism."""
import torch
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
    prefill_seconds,
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

        By hand: a decode step takes $10$ ms and a prefill $100$ ms. If the whole prompt is
        prefilled before the next step, each user waits $100 + 10 = 110$ ms for one token. Now cut
        the prompt into $10$ *chunks* of $10$ ms, and run one chunk with each step. Then a step
        takes at most $10 + 10 = 20$ ms, and nobody waits $110$ ms.

        The prompt can be cut, because the keys and values of earlier chunks stay in the cache,
        where later chunks can read them. This is *chunked prefill* [@sarathi].

        A step can even be shorter than the sum, because a chunk and the users' tokens go through
        the model in the same pass, which reads the weights once for both.

        First, are the results the same? A small model processes a prompt of `30` tokens at once,
        which gives the logits `whole`, and then in chunks of `8`:
    """)
    model = Transformer(SMALL).double().requires_grad_(False)
    prompt = torch.randint(100, (1, 30))
    whole = model(prompt)  # @inspect list(whole.shape)
    caches = model.caches(1)  # @unnoticed: 1 -> 2: both rows get the same
    chunks = [model(chunk, caches) for chunk in prompt.split(8, dim=1)]
    assert torch.allclose(torch.cat(chunks, dim=1), whole), \
        "In chunks, all logits are the same, up to rounding."
    assert [chunk.shape[1] for chunk in chunks] == [8, 8, 8, 6], \
        "There were four chunks."  # @hide
    note(r"""
        Now an H100 decodes with Llama-3-8B for `64` users with `2048` tokens each, and a prompt of
        `8192` tokens arrives. `mixed_step` is a lower bound of the time of a step that processes
        `chunk` tokens of the prompt and one token of each user, when `earlier` tokens of the prompt
        have been processed before. Reading the weights and the arithmetic happen at the same time,
        so the longer of the two determines the time. Then the caches of the users and of the
        prompt's earlier chunks are read:
    """)
    reading = 2 * WEIGHTS / BANDWIDTH

    def mixed_step(chunk: int, earlier: int) -> float:
        work = prefill_flops(chunk, earlier) + 64 * 2 * WEIGHTS
        cached = (64 * 2048 + earlier) * KV_BYTES  # bytes
        return max(reading, work / PEAK) + cached / BANDWIDTH

    def steps_of(chunk: int) -> list[float]:
        return [mixed_step(min(chunk, 8192 - earlier), earlier)
                for earlier in range(0, 8192, chunk)]

    normal = step_seconds(64, 2048)  # without a prompt  # @inspect normal as s
    at_once = max(steps_of(8192))  # one step  # @inspect at_once as s
    longest_512 = max(steps_of(512))  # @inspect longest_512 as s
    longest_192 = max(steps_of(192))  # @inspect longest_192 as s
    assert 14 < at_once / normal < 15, \
        "If the prompt runs at once, all users wait more than 14 times as long as for a normal step."
    assert 1.6 < longest_512 / normal < 1.7, \
        "In chunks of 512 tokens, no step takes more than 1.7 times as long as a normal one."
    assert 1.03 < longest_192 / normal < 1.04, \
        "In chunks of 192 tokens, every step takes less than 4 % longer than a normal one."
    parts = [prefill_seconds(8192), 64 * 2 * WEIGHTS / PEAK, 64 * 2048 * KV_BYTES / BANDWIDTH]  # @hide
    assert [round(1e3 * part, 1) for part in (*parts, sum(parts), at_once)] == [133.3, 1, 5.1, 139.4, 139.4], \
        "At once, the prompt takes 133.3 ms, the arithmetic for the users 1.0 ms, and reading their caches 5.1 ms."  # @hide
    assert 295 < PEAK / BANDWIDTH < 296, \
        "While the weights are read, there is time for the arithmetic of 295 tokens."  # @hide
    per_token = 2 * WEIGHTS / PEAK  # @hide
    note(rf"""
        If the prompt runs at once, the step takes {1e3 * at_once:.1f} ms: {1e3 * parts[0]:.1f} ms
        for the prompt, {1e3 * parts[1]:.1f} ms for the matmuls of the users' `64` tokens, and
        {1e3 * parts[2]:.1f} ms for reading their caches.

        Why do chunks of `192` tokens cost the users almost nothing? Reading the weights takes
        {1e3 * reading:.2f} ms. The matmuls of one token take {1e3 * per_token:.5f} ms, and
        ${1e3 * reading:.2f} / {1e3 * per_token:.5f}$ is {reading / per_token:.0f}. So while the
        weights are read, there is time for the matmuls of {reading / per_token:.0f} tokens, and
        `64` users and a chunk of `192` have only $64 + 192 = 256$ tokens.

        The user who sent the prompt pays for this: the first token of the answer comes after all
        chunks.
    """)
    sizes = [128, 192, 256, 512, 1024, 2048, 8192]  # @hide
    rows = [(c, len(steps_of(c)), 1e3 * max(steps_of(c)), 1e3 * sum(steps_of(c))) for c in sizes]  # @hide
    note("| chunk | steps | longest step, ms | first token of the prompt, ms |\n|--:|--:|--:|--:|\n"
         + "\n".join(f"| {c} | {n} | {worst:.1f} | {total:.0f} |" for c, n, worst, total in rows))
    assert [round(total) for *_, total in rows] == [625, 420, 334, 233, 183, 158, 139], \
        "From small to large chunks, the first token of the prompt comes after 625 to 139 ms."  # @hide
    assert [round(longest, 1) for _, _, longest, _ in rows] == [9.9, 9.9, 11.1, 15.8, 25, 43, 139.4], \
        "The longest step grows from 9.9 to 139 ms."  # @hide

    target = 20  # ms  # @hide

    def waits(chunk: int) -> dict[str, float]:  # @hide
        return {"longest wait of users": 1e3 * max(steps_of(chunk)), "first token of the prompt": 1e3 * sum(steps_of(chunk))}

    grid = explore(waits, over={"chunk": sizes}, at={"chunk": 512}, kind="bars", unit="ms", limit=("target", target),
        do="What is the largest chunk with which all users get their token within `20` ms? What does it cost the prompt?",
        see="Chunks of `512` tokens meet the target. The prompt's first token then comes after `233` ms.",
        caption="Both waits while a prompt of `8192` tokens is processed in chunks.",
        alt="Two bars. With larger chunks the users' wait grows and the prompt's wait shrinks.")  # @hide
    assert max(c for c in grid if grid[c]["longest wait of users"] < target) == 512, \
        "512 tokens are the largest chunk of the grid within 20 ms."  # @hide
    misbelief("The smaller the chunks, the better for everyone.", rf"""
        Below `192` tokens the users gain almost nothing, {rows[0][2]:.2f} ms instead of
        {rows[1][2]:.2f}. And the prompt waits longer: with chunks of `128`, its first token comes
        after {rows[0][3]:.0f} ms instead of {rows[1][3]:.0f} ms, because each step reads all
        weights again for fewer tokens.
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
        Without chunks, a prompt of `8192` tokens is prefilled in `133` ms between two decode steps
        of `10` ms. Five such prompts arrive at once and run one after another before the next step.
        How long do the users wait for their next token, in ms?
    """, answer=5 * 133 + 10, check=sum([133] * 5 + [10]), unit="ms",
        hint="The users' next step comes after all prompts.",
        why="Each prefill delays all users. Chunks limit the wait: however many prompts arrive, each step has a limited number of tokens.")


@aside
def tensor_parallelism_has_a_floor() -> None:
    """Tensor parallelism shortens a decode step only down to a floor."""
    note(r"""
        For one user, a token takes as long as reading the weights. With eight GPUs, each reads an
        eighth. Is decode that much faster?

        In *tensor parallelism* each GPU has a slice of every matrix, and in each layer all GPUs add
        up their partial results in two *all-reduces*. By hand: reading the weights takes $8$ ms on
        one GPU. Other work takes $2$ ms on any number of GPUs: launching the operations, the
        all-reduces, and small operations that every GPU does in full. (One GPU needs no
        all-reduces, but for simplicity we count $2$ ms there as well.) Then a step takes

        - $8 + 2 = 10$ ms on one GPU,
        - $4 + 2 = 6$ ms on $2$ GPUs,
        - $1 + 2 = 3$ ms on $8$ GPUs, and never less than $2$ ms.

        There is a floor, because with more GPUs each reads fewer bytes, but the number of
        operations and all-reduces stays the same, and each of them takes a minimum time, however
        small the tensors are. On $G$ GPUs

        [@eq:floor]: $$
        \text{step} = \frac{\text{reading}}{G} + \text{floor}.
        $$

        Test it with a published measurement. Llama-2-7B generated `104.9` tokens per second on one
        A100, and more on `2`, `4` and `8` [@gpt-fast]. Use the measurements on `1` and `8` GPUs to
        solve for `reading` and `floor`, then predict the speeds on `2` and `4`. The step on one GPU
        is `reading + floor`, and on eight `reading / 8 + floor`. So the difference of the two is
        `(1 - 1 / 8) * reading`:
    """)
    speed = {1: 104.9, 2: 168.84, 4: 254.02, 8: 328.43}  # tokens/s
    one, eight = 1 / speed[1], 1 / speed[8]  # seconds per token
    reading = (one - eight) / (1 - 1 / 8)  # @inspect reading as s
    floor = one - reading  # @inspect floor as s
    predicted = {g: 1 / (reading / g + floor) for g in (2, 4)}  # @inspect predicted as tokens/s
    errors = [predicted[g] / speed[g] - 1 for g in (2, 4)]  # @inspect errors as %
    assert [round(error, 3) for error in errors] == [0.017, -0.009], \
        "The predicted speed is 1.7 % too high for 2 GPUs, and 0.9 % too low for 4 GPUs."
    speedup = speed[8] / speed[1]  # @inspect round(speedup, 2) as times
    assert 3.1 < speedup < 3.2, \
        "Eight GPUs are 3.1 times as fast as one."
    slope = torch.linalg.lstsq(torch.tensor([[1 / g, 1.0] for g in speed]),
                               torch.tensor([[1 / p] for p in speed.values()])).solution.flatten()  # @hide
    assert torch.allclose(slope, torch.tensor([reading, floor]), rtol=0.03), \
        "A fit of both terms to all four measurements gives the same, to within 3 %."  # @hide
    each = floor / 64  # @hide
    assert 33e-6 < each < 34e-6, \
        "Divided by 64 all-reduces, two for each of 32 layers, the floor is 33 µs each."  # @hide
    figure(plot_floor(speed, {g: 1 / (reading / g + floor) for g in (1, 2, 4, 8, 16, 32, 64)}, 1 / floor),
        caption=r"""
            Tokens per second of one sequence against the number of GPUs: measured (dots), by the
            formula (line), and the speed limit that the floor sets (dashed).
        """,
        alt="A line that rises steeply and then bends below a dashed line. Four dots lie on it.")
    note(rf"""
        However many of these GPUs you use, one user gets no more than
        ${1e3:.0f} / {1e3 * floor:.3f}$, or {1 / floor:.0f} tokens per second, because a step takes
        at least the floor of {1e3 * floor:.3f} ms.

        Llama-2-7B has `32` layers with two all-reduces each, `2 * 32 = 64`. So the floor is
        {1e6 * each:.0f} µs per all-reduce, including the other work.
    """)
    misbelief("A user's tokens per second grow in proportion to the number of GPUs.", rf"""
        Only at first. In this measurement, eight GPUs were {speedup:.1f} times as fast as one.
    """)
    question(r"""
        Reading the weights takes `12` ms on one GPU. The floor is `1` ms, also on one GPU, whose
        step takes `13` ms. How many GPUs are needed so that a step takes `4` ms, and by what factor
        is that faster than one GPU? Give two numbers.
    """, answer=[12 / (4 - 1), (12 + 1) / 4], check=[next(g for g in range(1, 99) if 12 / g + 1 <= 4), 13 / (12 / 4 + 1)],
        hint="How many ms are left for reading?",
        why="Of `4` ms the floor leaves `3` ms for reading, a quarter of `12` ms: four GPUs. They are `13 / 4 = 3.25` times as fast as one.")
