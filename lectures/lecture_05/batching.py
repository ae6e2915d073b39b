"""A batch that never ends: slots that are refilled, requests in flight, and load."""
import heapq
import math
from collections import deque

import torch

from litbook import aside, explore, misbelief, note, question

from .figures import plot_slots
from .llama import BANDWIDTH, KV_BYTES, WEIGHTS, step_seconds


def a_batch_that_never_ends() -> None:
    """A batch that never ends."""
    note(r"""
        A batch pays off, but requests do not arrive together, and their answers do not end
        together. This part is about which requests share a step, and how long they wait.
    """)
    a_fixed_batch_waits_for_its_longest()
    a_slot_is_refilled_at_once()
    requests_in_flight_are_rate_times_time()
    waiting_grows_with_the_load()


def a_fixed_batch_waits_for_its_longest() -> None:
    """A fixed batch waits for its longest sequence."""
    note(r"""
        A GPU decodes a batch of sequences, one token for each in every step. Some answers are
        short, some are long. What happens when the short ones are finished?

        Think of the batch as *slots*, one per sequence. By hand: two slots, and answers of $1$ and
        $4$ tokens.

        - The batch runs for $4$ steps, so the two slots have room for $2 \cdot 4 = 8$ tokens.
        - They generate $1 + 4 = 5$ tokens. The first slot is empty in three of the four steps.

        The *utilization* of the slots is $5/8$. A fixed batch admits new sequences only when its
        longest one has ended. Until then, free slots stay empty.

        So the utilization is the mean length divided by the longest: here $2.5 / 4$, the same as
        $5/8$. The more slots a batch has, the more likely one of them gets a very long answer, for
        which all others wait.

        Draw random lengths for `2000` batches. Most answers are short, and a few are several times
        as long as the mean. (The lengths are exponentially distributed. Their mean is $1$, because
        only the ratio to the longest matters.)
    """)

    def utilization(slots: int) -> float:  # @stepover
        # A row per batch, a random length per slot.
        lengths = torch.empty(2000, slots).exponential_()
        longest = lengths.max(dim=1).values  # of each batch
        # Tokens generated, divided by the room for tokens.
        return (lengths.mean() / longest.mean()).item()

    two_slots = utilization(2)  # @inspect two_slots as %
    many_slots = utilization(32)  # @inspect many_slots as %
    # Drawn with ten seeds, they were off by at most 1 %.
    assert 0.64 < two_slots < 0.70, \
        "With 2 slots, the utilization is about two thirds."
    assert 0.24 < many_slots < 0.26, \
        "With 32 slots, the utilization is only about a quarter."
    harmonic = [sum(1 / k for k in range(1, slots + 1)) for slots in (2, 32)]  # @hide
    assert all(math.isclose(u * h, 1, rel_tol=0.05) for u, h in zip((two_slots, many_slots), harmonic)), \
        "The longest of n such lengths is 1 + 1/2 + ... + 1/n times the mean, on average."  # @hide
    even = torch.ones(2000, 32)  # @hide
    assert even.sum() == 32 * even.max(dim=1).values.sum(), \
        "If all lengths are equal, no slot is ever empty."  # @hide
    note(r"""
        With such lengths, a service that decodes in fixed batches of `32` reads the weights in
        every step, but on average only for about a quarter of the sequences that the batch could
        hold.
    """)
    question(r"""
        Four answers of `2`, `2`, `2` and `10` tokens are decoded in one fixed batch of four slots.
        What is the utilization of the slots, in percent?
    """, answer=(2 + 2 + 2 + 10) / (4 * 10),
        check=torch.tensor([2.0, 2, 2, 10]).mean().item() / 10, unit="%",
        hint="For how many steps does the batch run?",
        wrong={"The slots of the short answers stay empty until the end.": 1},
        why="The batch runs for `10` steps, so it has room for `40` tokens. It generates `16`.")
    running = torch.arange(20)[:, None] < torch.tensor([1, 9])  # by step and slot  # @hide
    question(r"""
        Two slots decode answers of `1` and `9` tokens, in `10` ms per step. Both answers are sent
        when the batch ends. By what factor is the wait of the user who gets the short answer longer
        than necessary?
    """, answer=9 * 10 / (1 * 10),
        check=(running.any(dim=1).sum() / running[:, 0].sum()).item(), unit="times",
        hint="When is the short answer sent, and when was it finished?",
        why="The short answer is finished after one step and is sent after `9`. The user who gets the long answer loses nothing.")


def a_slot_is_refilled_at_once() -> None:
    """In continuous batching, a slot that becomes free is refilled in the next step."""
    note(r"""
        A [fixed batch](#a_fixed_batch_waits_for_its_longest) leaves slots empty until its longest
        sequence ends. Why not put the next request into a slot as soon as it is free?

        By hand: two slots, and three answers of $1$, $3$ and $2$ tokens. The first answer is
        finished after one step. If the third answer takes its slot at once, all three are finished
        after $3$ steps. Fixed batches need $3$ steps for the first two answers, and $2$ more for
        the third.

        This is possible, because the sequences of a step do not need to have the same length: they
        share only the weights, and each attends to its own cache. So a scheduler can decide before
        *every step* which sequences are in the batch. This is *continuous batching* [@orca].

        The scheduler `serve` counts the decode steps, without prefill. `waiting` holds the lengths
        of the answers not yet started. `running` holds, for each answer in a slot, the number of
        tokens still to generate. Without `refill`, the batches are fixed:
    """)

    def serve(lengths: list[int], slots: int, refill: bool) -> int:  # @stepover
        waiting, running, steps = lengths, list[int](), 0
        while waiting or running:
            if refill or not running:
                free = slots - len(running)
                running, waiting = running + waiting[:free], waiting[free:]
            steps += 1  # a pass: each gets a token
            running = [left - 1 for left in running]
            running = [left for left in running if left > 0]
        return steps

    by_hand = [serve([1, 3, 2], 2, refill) for refill in (False, True)]
    assert by_hand == [5, 3], \
        "The three answers take 5 steps in fixed batches, and 3 steps with refilling."
    note(r"""
        Now `8000` answers of exponentially distributed length, about `20` tokens on average, in
        `32` slots. How many steps are needed, and how `busy` are the slots?
    """)
    lengths = (20 * torch.empty(8000).exponential_()).ceil().int().tolist()  # @unnoticed: 20: any length on average does
    fixed = serve(lengths, 32, refill=False)  # @inspect fixed as steps
    refilled = serve(lengths, 32, refill=True)  # @inspect refilled as steps
    busy = sum(lengths) / (32 * refilled)  # @inspect busy as %
    # Drawn with ten seeds, it was between 3.8 and 4.1.
    assert 3.7 < fixed / refilled < 4.2, \
        "With refilling, 32 slots need about a quarter of the steps of fixed batches."
    assert 0.97 < busy < 1, \
        "On average, a slot generates a token in over 97 % of the steps."
    ready = [0] * 32  # when each slot is free again  # @hide
    for length in lengths:  # @hide
        heapq.heapreplace(ready, ready[0] + length)
    assert max(ready) == refilled, \
        "A queue of events, in which the slot that is free first takes the next answer, ends at the same step."  # @hide
    groups = [lengths[i : i + 32] for i in range(0, len(lengths), 32)]  # @hide
    assert sum(map(max, groups)) == fixed, \
        "The steps of the fixed batches are the sum of their longest answers."  # @hide
    caches = sum(lengths) * (step_seconds(1, 2048) - step_seconds(1, 0))  # in both schedules  # @hide
    seconds = [steps * step_seconds(1, 0) + caches for steps in (fixed, refilled)]  # @hide
    faster = seconds[0] / seconds[1]  # @hide
    assert 2.7 < faster < 3.1, \
        "With 2048 tokens in each cache, refilling takes about a third of the time, because the same caches are read in both."  # @hide
    counted = sum(step_seconds(sum(n > i for n in group), 2048) for group in groups for i in range(max(group)))  # @hide
    assert math.isclose(counted, seconds[0], rel_tol=1e-9), \
        "Added up step by step, with the answers that still run in each, the fixed batches take the same time."  # @hide
    in_fixed, in_refilled = sum(lengths) / fixed, sum(lengths) / refilled  # @hide
    weights, cache = step_seconds(1, 0), step_seconds(1, 2048) - step_seconds(1, 0)  # @hide
    per_step = [1e3 * total / steps for total, steps in zip(seconds, (fixed, refilled))]  # ms  # @hide
    note(rf"""
        The gain in time is smaller, because a fuller step reads more caches. Take Llama-3-8B on an
        H100 with `2048` tokens in each cache. In fixed batches, a step has {in_fixed:.1f} sequences
        on average and takes
        ${1e3 * weights:.2f} + {in_fixed:.1f} \cdot {1e3 * cache:.4f} = {per_step[0]:.2f}$ ms.
        Refilled, {in_refilled:.1f} sequences take {per_step[1]:.2f} ms. So the gain is
        ${fixed / refilled:.2f} \cdot {per_step[0]:.2f} / {per_step[1]:.2f} = {faster:.1f}$ times.
    """)
    some = [3, 9, 2, 5, 4, 2, 8, 3, 6, 2, 3, 7]  # @hide
    ends = {name: serve(some, 4, refill) for name, refill in (("fixed batches", False), ("refilled", True))}  # @hide
    assert ends == {"fixed batches": 24, "refilled": 17}, \
        "The twelve answers of the picture take 24 steps in fixed batches, and 17 with refilling."  # @hide

    def timeline(a_request_every: int, slots: int) -> dict[str, list[list[int]]]:  # @hide
        spans: dict[str, list[list[int]]] = {"fixed batches": [], "refilled": []}
        for name, done in spans.items():
            waiting = deque((a_request_every * i, length) for i, length in enumerate(some))
            running, step = dict[int, int](), 0
            while waiting or running:
                if name == "refilled" or not running:
                    for slot in range(slots):
                        if waiting and waiting[0][0] <= step and slot not in running:
                            arrived, length = waiting.popleft()
                            running[slot] = step + length
                            done.append([slot, arrived, step, step + length])
                step += 1
                running = {slot: end for slot, end in running.items() if end > step}
        return spans

    pictures = {name: [(slot, start, end) for slot, _, start, end in spans] for name, spans in timeline(0, 4).items()}  # @hide
    assert [sorted(end - start for _, start, end in spans) for spans in pictures.values()] == [sorted(some)] * 2, \
        "Each answer is in one slot, for as many steps as it has tokens."  # @hide
    spread = explore(timeline, over={"a_request_every": range(5), "slots": [2, 3, 4, 6]},
        at={"a_request_every": 0, "slots": 4}, module="pictures/slots.js", still=plot_slots(pictures),
        do="All requests arrive at the beginning. Now let one arrive in every step, then less and less often.",
        see=r"""
            With one request every `2` steps, none waits for a refilled slot. With fixed batches, a
            request that arrives while a batch runs waits until the whole batch has ended.
        """, caption=rf"""
            The same {len(some)} answers, scheduled in both ways. Each bar is one answer, and each
            tick below the slots marks an arrival. If all arrive at once, fixed batches of four end
            after {ends["fixed batches"]} steps, refilled slots after {ends["refilled"]}.
        """, alt=r"""
            Two panels with four rows of bars over time. In the upper one there are gaps after most
            bars, in the lower one the bars follow each other without gaps until near the end.
        """)  # @hide
    last = {slots: [max(end for *_, end in spans) for spans in spread[0, slots].values()] for slots in (2, 3, 4, 6)}  # @hide
    assert last == {slots: [serve(some, slots, False), serve(some, slots, True)] for slots in last}, \
        "If all requests arrive at once, the picture ends where serve ends."  # @hide
    waits = {every: {name: sum(start - arrived for _, arrived, start, _ in spans) for name, spans in spread[every, 4].items()}
             for every in range(5)}  # @hide
    assert (waits[2]["refilled"], waits[2]["fixed batches"] / len(some)) == (0, 3.75), \
        "With one request every 2 steps, none waits for a refilled slot, and each 3.75 steps on average for a fixed batch."  # @hide

    def busy_share(slots: int) -> dict[str, float]:  # @hide
        each = {"fixed batches": False, "refilled": True}
        return {name: sum(lengths[:2048]) / (slots * serve(lengths[:2048], slots, refill))
                for name, refill in each.items()}

    grid = explore(busy_share, over={"slots": [1, 2, 4, 8, 16, 32, 64, 128]}, at={"slots": 8}, kind="bars", unit="%",
        do="Start with one slot and add more. With which of the two schedules do the slots become less busy?",
        see=r"""
            In fixed batches the utilization falls with each added slot. Refilled slots stay busy
            while answers wait. There are only `2048` answers here, so with many slots, slots are
            empty at the end for a larger share of the time.
        """,
        caption="The share of the steps in which a slot generates a token, on average, for the same answers in fixed batches and refilled.",
        alt="Two bars, of which the one for fixed batches shrinks when slots are added.")  # @hide
    assert grid[1]["fixed batches"] == grid[1]["refilled"] == 1, \
        "A single slot is always busy."  # @hide
    assert [round(share, 2) for share in grid[128].values()] == [0.19, 0.81], \
        "With 128 slots, fixed batches keep them busy 19 % of the time, and refilling 81 %."  # @hide
    few, many = (grid[slots]["fixed batches"] for slots in (8, 128))  # @hide
    more = 128 * many / (8 * few)  # @hide
    assert 8 < more < 9, \
        "From 8 to 128 slots, fixed batches give 8 times as many tokens per step, not 16 times."  # @hide
    misbelief("Twice as many slots give twice as many tokens per step.", rf"""
        Not in fixed batches: the more slots, the longer the longest answer, and all others wait for
        it. In fixed batches of the answers above, `8` slots give {8 * few:.1f} tokens per step,
        slots times utilization, and `128` give {128 * many:.1f}: only {more:.1f} times as many, not
        `16` times.
    """)
    question(r"""
        There are two slots, and a free slot is refilled in the next step. Answers of `4`, `1`, `1`
        and `2` tokens wait, in this order. After how many steps are all of them finished?
    """, answer=max(4, 1 + 1 + 2), check=serve([4, 1, 1, 2], 2, refill=True), unit="steps",
        hint="Which answers fit into the second slot while the first is busy?",
        wrong={"That is with fixed batches: the second pair waits for the first.": 4 + 2},
        why="While the first slot gives `4` tokens, the second gives `1`, `1` and `2`. No slot is ever empty.")
    question(r"""
        All answers have exactly `50` tokens, and all requests arrive at the same time. Divide the
        steps of fixed batches by the steps with refilling. What is the ratio?
    """, answer=1.0, check=serve([50] * 64, 8, refill=False) / serve([50] * 64, 8, refill=True), unit="times",
        hint="Which slots of a fixed batch are empty before it ends?",
        why="Equal answers end together, so no slot is ever empty. The gain comes from lengths that differ.")


@aside
def requests_in_flight_are_rate_times_time() -> None:
    """On average, the requests in flight are the arrival rate times the time that each one stays."""
    note(r"""
        Requests arrive at a service at a certain rate. How many does it work on at once, on
        average, and so how large is its batch?

        It is the arrival rate times the time that each request stays in the service, because the
        seconds that requests spend there can be added up by second or by request. By hand: in $4$
        seconds three requests come and go. A square is a second that a request spends in the
        service:

        | second | $1$ | $2$ | $3$ | $4$ | sum |
        |---|---|---|---|---|---|
        | A | ■ | ■ | | | $2$ |
        | B | | ■ | ■ | ■ | $3$ |
        | C | | | | ■ | $1$ |
        | in flight | $1$ | $2$ | $1$ | $2$ | $6$ |

        - Column by column: on average $6 / 4 = 1.5$ requests are in flight, for $4$ seconds, so
          there are $1.5 \cdot 4 = 6$ squares.
        - Row by row: $3$ requests spend $6 / 3 = 2$ seconds each, on average, so there are
          $3 \cdot 2 = 6$ squares.

        So $1.5 \cdot 4 = 3 \cdot 2$. Dividing by the $4$ seconds gives $1.5 = 3/4 \cdot 2$. This is
        *Little's law*, for averages over so long a time that the requests at its two ends hardly
        count:

        [@eq:little]: $$
        \text{requests in flight} = \text{requests per second} \cdot \text{seconds that each one stays}.
        $$

        Now take Llama-3-8B on an H100. Let $10$ requests arrive per second, each for an answer of
        $600$ tokens. Assume that another GPU does the prefill, and that every request joins the
        batch at once. Then a request stays for $600$ decode steps, and the requests in flight are
        the sequences of the batch.

        But [a step takes longer for a larger batch](#a_step_is_a_sum): it reads the weights ($2$
        bytes each) once, and the KV cache of each sequence. For prompts of $1748$ tokens, a cache
        has $1748 + 600 / 2 = 2048$ tokens on average. The code tries three batches; `KV_BYTES` are
        the bytes of a token in the cache. For which batch does Little's law give the batch itself?
    """)
    squares = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]]).double()  # @hide
    assert squares.sum(dim=0).mean() == 3 / 4 * squares.sum(dim=1).mean() == 1.5, \
        "By hand, 1.5 in flight are 3/4 per second times 2 seconds."  # @hide
    reading = 2 * WEIGHTS / BANDWIDTH  # the weights  # @inspect reading as s
    one_cache = 2048 * KV_BYTES / BANDWIDTH  # @inspect one_cache as s

    def in_flight(batch: int) -> float:
        step = reading + batch * one_cache  # seconds
        return 10 * (600 * step)  # rate times stay

    tried = [round(in_flight(b), 1) for b in (40, 52, 60)]  # @inspect tried as sequences
    assert in_flight(40) > 40, \
        "With a batch of 40, more than 40 requests are in flight, so the batch grows."
    assert in_flight(60) < 60, \
        "With a batch of 60, fewer than 60 are in flight, so the batch shrinks."
    assert round(in_flight(52)) == 52, \
        "With a batch of 52, 52 are in flight: this is the mean batch."
    rate = 10 * 600  # tokens per second  # @hide
    batch = rate * reading / (1 - rate * one_cache)  # @hide
    assert 51 < batch < 53, \
        "Solved for the batch, the equation gives the same."  # @hide
    grown = 0.0  # @hide
    for _ in range(60):  # @hide
        grown = rate * (reading + grown * one_cache)
    assert math.isclose(batch, grown), \
        "From an empty batch, computing the step from the batch and the batch from the step in turn ends there."  # @hide
    generator = torch.Generator().manual_seed(1)  # @hide
    when = (torch.empty(6000).exponential_(generator=generator) / 10).cumsum(0).tolist()  # @hide
    clock, admitted, sizes, ends = 0.0, 0, 0.0, deque[int]()  # @hide
    begun, stays = deque[float](), 0.0  # @hide
    for number in range(100_000):  # @hide
        while admitted < 6000 and when[admitted] <= clock:
            ends.append(number + 600)
            begun.append(clock)
            admitted += 1
        while ends and ends[0] == number:
            ends.popleft()
            stays += clock - begun.popleft()
        seconds = step_seconds(max(1, len(ends)), 2048)
        clock, sizes = clock + seconds, sizes + seconds * len(ends)
        if clock > when[-1]:  # drawn with ten seeds, the mean batch was off by at most 9 %
            break
    assert math.isclose(sizes / clock, batch, rel_tol=0.1), \
        "Simulated step by step for 10 minutes, the mean batch is the same, to within 10 %."  # @hide
    stays += sum(clock - start for start in begun)  # of those still there at the end  # @hide
    assert math.isclose(sizes, stays), \
        "The seconds that each simulated request stays add up to the mean batch times the time."  # @hide
    def at_tick_500(stays: int) -> int:  # in flight, if one request arrives in each tick  # @hide
        return sum(arrives <= 500 < arrives + stays for arrives in range(1000))

    question(r"""
        A service moves to a GPU on which every request is finished in half the time. The requests
        arrive at the same rate as before. By what factor does the average number of requests in
        flight change?
    """, answer=0.5, check=at_tick_500(30) / at_tick_500(60), unit="times",
        hint="Which of the two factors of the law changes?",
        wrong={"Each request is in flight for half the time.": 1, "A faster service has fewer requests in flight, not more.": 2},
        why="The arrival rate is the same, and each request stays for half the time. So a faster GPU also decodes smaller batches.")


def waiting_grows_with_the_load() -> None:
    """If prompts arrive at random, they wait longer the closer the load is to 100 %."""
    note(r"""
        A GPU is idle for a tenth of the time. Is this time wasted, or does it serve a purpose?

        Look at prompts that queue for [prefill](#prefill_is_compute_bound), which runs them one at
        a time. By hand, let a prefill take $1$ s. The *load* is the fraction of the time in which
        the GPU is busy.

        - A prompt arrives every $2$ s: the load is $1/2$, and nobody waits.
        - Two prompts arrive together, every $4$ s: the load is still $1/2$, but the second prompt
          of each pair waits for $1$ s.

        Prompts wait although the GPU is idle half of the time, because idle time cannot be stored:
        the second before a pair arrives cannot be used later for this pair.

        Prompts that arrive at random sometimes also arrive close together, and a queue forms. How
        fast does it shrink?

        - At load $0.5$, two prompts leave the queue in the time of $2$ prefills, and one arrives:
          the queue gets shorter by one.
        - At load $0.9$, ten prompts leave it in the time of $10$ prefills, and nine arrive: to get
          shorter by one, it needs $5$ times as long.

        In general, a queue gets shorter by one in $1 / (1 - \text{load})$ prefill times: the closer
        the load is to $100$ percent, the more of the GPU's time goes to the prompts that arrive
        meanwhile. This only suggests how the wait grows. But if the gaps between arrivals and the
        prefill times are random and exponentially distributed (most are short, a few are several
        times as long as the mean), the mean time to first token (TTFT), including the time in the
        queue, is exactly this number of mean prefill times [@kleinrock1975]:

        [@eq:load]: $$
        \text{TTFT} = \frac{\text{mean prefill time}}{1 - \text{load}}.
        $$

        At load $0.9$, that is $1 / 0.1 = 10$ prefill times. To check the formula at loads `0.5` and
        `0.8`, simulate `200_000` prompts, with a mean prefill time of `1`. Then the load is the
        number of prompts that arrive per unit of time, and the mean gap between two is `1 / load`.
        A prefill begins when its prompt has arrived and the GPU is free:
    """)

    def mean_ttft(load: float) -> float:  # @stepover
        gaps, prefills = torch.empty(2, 200_000).exponential_().tolist()
        clock = free_at = total = 0.0
        for gap, prefill in zip(gaps, prefills):
            clock += gap / load  # a prompt arrives
            free_at = max(free_at, clock) + prefill  # its prefill ends
            total += free_at - clock
        return total / 200_000

    simulated = [mean_ttft(load) for load in (0.5, 0.8)]  # @inspect [round(s, 2) for s in simulated] as prefills
    formula = [1 / (1 - load) for load in (0.5, 0.8)]  # @inspect [round(f, 2) for f in formula] as prefills
    # Drawn with ten seeds, the simulation was off by at most 4 %.
    drawn, expected = torch.tensor([simulated, formula])  # @hide
    assert torch.allclose(drawn, expected, rtol=0.05), \
        "The simulation agrees with the formula to within 5 %."

    def emptied(load: float) -> float:  # @hide
        # Drawn with ten seeds, it was off by at most 3 %.
        prefills, gaps = torch.empty(2, 400_000).double().exponential_()
        ends, arrivals = prefills.cumsum(0), (gaps / load).cumsum(0)
        left = 40_000 + torch.searchsorted(arrivals, ends) - torch.arange(1, 400_001)
        return float(ends[(left == 0).nonzero()[0]]) / 40_000

    assert all(math.isclose(emptied(load), 1 / (1 - load), rel_tol=0.05) for load in (0.5, 0.8)), \
        "A long queue, simulated until it is empty, gets shorter by one in that many prefill times, to within 5 %."  # @hide
    queue, ends, waits = [0.0, 0.0, 4.0, 4.0, 8.0, 8.0], 0.0, []  # @hide
    for arrival in queue:  # @hide
        start = max(ends, arrival)
        waits.append(start - arrival)
        ends = start + 1
    assert waits == [0, 1, 0, 1, 0, 1], \
        "In the example by hand, the second prompt of each pair waits for 1 s."  # @hide
    def by_walk(load: float) -> float:  # @hide
        # Drawn with ten seeds, it was off by at most 3 %.
        prefills, gaps = torch.empty(2, 10**6).double().exponential_()
        level = (prefills - gaps / load).cumsum(0)
        return float(1 + (level - level.cummin(0).values.clamp(max=0)).mean())

    walks = [by_walk(load) for load in (0.5, 0.8, 0.9)]  # @hide
    assert all(math.isclose(w, f, rel_tol=0.05) for w, f in zip(walks, (2, 5, 10))), \
        "The backlog of a million prompts, as a random walk above its lowest point, gives 2, 5 and 10 prefill times, to within 5 %."  # @hide
    states = torch.arange(1000)  # prompts in the system  # @hide
    flow = torch.zeros(1000, 1000).double()  # from state to state, per prefill time  # @hide
    flow[states[:-1], states[1:]], flow[states[1:], states[:-1]] = 0.95, 1  # @hide
    balance = flow.T - flow.sum(dim=1).diag()  # @hide
    balance[0] = 1  # instead of one equation: the shares of all states add up to 1  # @hide
    share = torch.linalg.solve(balance, torch.eye(1000).double()[0])  # of the time, in each state  # @hide
    assert math.isclose(float(states.double() @ share) / 0.95, 20, rel_tol=1e-6), \
        "At load 0.95, the balance of arrivals and departures and Little's law give 20 prefill times, without the formula."  # @hide
    note(r"""
        So the idle tenth is not wasted. With half as much idle time, at load $0.95$, the formula
        gives $1 / 0.05 = 20$ prefill times instead of $10$.
    """)

    def ttft(load: int) -> dict[str, float]:  # @hide
        torch.manual_seed(load)
        return {"simulated": 30 * by_walk(load / 100), "formula": 30 / (1 - load / 100)}

    grid = explore(ttft, over={"load": [10, 20, 30, 40, 50, 60, 70, 80, 85, 90]}, at={"load": 50}, kind="curve",
        unit="ms", limit=("target", 200),
        do="The mean time to first token must be at most `200` ms. What is the largest load?",
        see="By the formula, a load of `85` percent gives exactly `200` ms.",
        caption="Mean time to first token against the load in percent, for prefills of `30` ms on average.",
        alt="Two curves that nearly coincide. They are flat at first and rise steeply towards the right.")  # @hide
    assert all(math.isclose(*both.values(), rel_tol=0.08) for both in grid.values()), \
        "Both curves agree to within 8 %."  # @hide
    assert round(grid[85]["formula"]) == 200, \
        "At 85 % the formula gives 200 ms."  # @hide
    misbelief("At half load nobody waits.", rf"""
        That is true only if no prompt arrives before the prefill of the previous one has ended.
        With random arrivals and prefill times as above, the first token comes after
        {simulated[0]:.1f} prefill times at half load: half of that time is waiting.
    """)
    question(r"""
        Two services have one GPU each, with a load of `80` percent. They merge: one queue for all
        prompts, and one GPU that is twice as fast. What is the mean time to first token then, in
        mean prefill times of an old GPU?
    """, answer=0.5 / (1 - 0.8), check=formula[1] / 2, unit="prefill times",
        hint="Which of the two changes: the load, or the prefill time?",
        wrong={"The load is the same, but a prefill takes half as long.": 5},
        why="Twice as many prompts at twice the speed give the same load. All times are halved, including the waiting time.")
