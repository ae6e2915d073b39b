"""A batch that never ends: slots that are refilled, requests in flight, and load."""
import heapq
import math
from collections import deque
from collections.abc import Sequence

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
        $3$ tokens. The batch runs for $3$ steps. The first slot works in one of them and is empty
        in two. One slot for one step is a *slot-step*. So of $2 \cdot 3 = 6$ slot-steps,
        $1 + 3 = 4$ give a token: the *utilization* of the slots, the share of slot-steps that give
        a token, is $4/6$.

        A fixed batch lasts as long as its longest sequence, because it admits new sequences only
        when all of its own are finished.

        How much time is lost? Suppose that lengths are exponentially distributed: in each step, a
        running sequence ends with the same small probability, however long it has run. So most
        sequences are short, and a few are several times as long as the mean.

        Take two slots, and let the mean length be $1$. While both sequences run, the probability
        that one of them ends in a step is twice that of a single sequence. So the first one ends
        after $1/2$ on average. Then one sequence is left. It runs for another $1$ on average,
        because its probability of ending does not depend on how long it has run. Together that is
        $1 + 1/2$.

        In the same way, while $k$ sequences run, the next one ends after $1/k$ on average. So with
        $B$ slots the longest sequence has on average

        [@eq:harmonic]: $$
        H_B = 1 + \frac{1}{2} + \frac{1}{3} + \dots + \frac{1}{B}
        $$

        times the mean length. Each slot is reserved for that time, but its own sequence runs for
        only one mean length on average. So the utilization should be $1/H_B$. Draw `2000` batches
        of `32` slots, a row per batch; `harmonic` is $H_{32}$:
    """)
    lengths = torch.empty(2000, 32).exponential_()  # in units of the mean
    longest = lengths.max(dim=1).values
    busy = (lengths.sum() / (32 * longest.sum())).item()  # @inspect busy as %
    harmonic = sum(1 / k for k in range(1, 33))  # @inspect round(harmonic, 2)
    assert round(harmonic, 2) == 4.06, \
        "The longest of 32 is 4.06 times as long as the mean, by the formula."  # @hide
    # Drawn with ten seeds, the product was between 0.993 and 1.005.
    assert math.isclose(busy, 1 / harmonic, rel_tol=0.02), \
        "With 32 slots, the utilization is 1/H to within 2 %: about a quarter."
    even = torch.ones(2000, 32)  # @hide
    assert even.sum() == 32 * even.max(dim=1).values.sum(), \
        "If all lengths are equal, no slot is ever empty."  # @hide
    question(r"""
        Four answers of `2`, `2`, `2` and `10` tokens are decoded in one fixed batch of four slots.
        What is the utilization of the slots, in percent?
    """, answer=(2 + 2 + 2 + 10) / (4 * 10),
        check=torch.tensor([2.0, 2, 2, 10]).mean().item() / 10, unit="%",
        hint="For how many steps does the batch run?",
        wrong={"The slots of the short answers stay empty until the end.": 1},
        why="The batch runs for `10` steps, so it has `40` slot-steps. `16` of them give a token.")
    question(r"""
        Two slots decode answers of `1` and `9` tokens, in `10` ms per step. Both answers are sent
        when the batch ends. How many times as long as necessary does the user who gets the short
        answer wait?
    """, answer=9 * 10 / (1 * 10), check=max(1, 9) / 1, unit="times",
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
        tokens still to generate:
    """)

    def serve(  # @stepover
        lengths: Sequence[int], slots: int, refill: bool
    ) -> int:
        waiting, steps = deque(lengths), 0
        running: list[int] = []
        while waiting or running:
            if refill or not running:  # can requests join?
                while waiting and len(running) < slots:
                    running.append(waiting.popleft())
            steps += 1  # a pass: each gets a token
            # Answers with 1 token left are finished now, and leave.
            running = [left - 1 for left in running if left > 1]
        return steps

    by_hand = [serve([1, 3, 2], 2, refill) for refill in (False, True)]
    assert by_hand == [5, 3], \
        "The three answers take 5 steps in fixed batches, and 3 steps with refilling."
    note(r"""
        Now `8000` answers of exponentially distributed length, `20` tokens on average, in `32`
        slots:
    """)
    drawn = (20 * torch.empty(8000).exponential_()).ceil()  # @unnoticed: 20: any length on average does
    lengths = [int(length) for length in drawn]
    fixed = serve(lengths, 32, refill=False)  # @inspect fixed as steps
    refilled = serve(lengths, 32, refill=True)  # @inspect refilled as steps
    gain = fixed / refilled  # @inspect round(gain, 1) as times
    # Drawn with ten seeds, it was between 3.8 and 4.1.
    assert 3.7 < gain < 4.2, \
        "With refilling, 32 slots need about a quarter of the steps."
    busy = sum(lengths) / (32 * refilled)  # @inspect busy as %
    assert 0.97 < busy < 1, \
        "On average, a slot generates a token in over 97 % of the steps."
    free = [0] * 32  # when each slot is free again  # @hide
    for length in lengths:  # @hide
        heapq.heapreplace(free, free[0] + length)
    assert max(free) == refilled, \
        "A queue of events, in which the slot that is free first takes the next answer, ends at the same step."  # @hide
    groups = [lengths[i : i + 32] for i in range(0, len(lengths), 32)]  # @hide
    assert sum(map(max, groups)) == fixed, \
        "The steps of the fixed batches are the sum of their longest answers."  # @hide
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
        do="Start with one slot and add more. In which of the two do the slots become less busy?",
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
    more = 128 * grid[128]["fixed batches"] / (8 * grid[8]["fixed batches"])  # @hide
    assert 8 < more < 9, \
        "From 8 to 128 slots, fixed batches give 8 times as many tokens per step, not 16 times."  # @hide
    misbelief("Twice as many slots give twice as many tokens per step.", rf"""
        Not in fixed batches: the more slots, the longer the longest answer, and all others wait for
        it. With the `2048` answers of the bars above, `128` slots gave only {more:.1f} times as
        many tokens per step as `8`, not `16` times.
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
    """The number of requests in flight is the arrival rate times the time that each one spends in the service."""
    note(r"""
        Requests arrive at a service at a certain rate. How large does the batch get?

        First count by hand. In $4$ seconds three requests come and go. A square is a second that a
        request spends in the service:

        | second | $1$ | $2$ | $3$ | $4$ | sum |
        |---|---|---|---|---|---|
        | A | ■ | ■ | | | $2$ |
        | B | | ■ | ■ | ■ | $3$ |
        | C | | | | ■ | $1$ |
        | in flight | $1$ | $2$ | $1$ | $2$ | $6$ |

        Adding up all squares by seconds gives the mean number in flight times the total time,
        $1.5 \cdot 4 = 6$. Adding them up by requests gives the number of requests times the mean
        time of each, $3 \cdot 2 = 6$. The two sums are equal, because they count the same squares,
        wherever the squares are. Dividing both sums by the total time gives *Little's law*

        [@eq:little]: $$
        \text{requests in flight} = \text{requests per second} \cdot \text{seconds of each}.
        $$

        By hand, that is $1.5 = 3/4 \cdot 2$.

        In decode, the requests in flight are the batch. The time of each depends on the batch
        itself: the more sequences share a step, the longer the step takes. Let $10$ requests arrive
        per second, each for an answer of $600$ tokens, with about `2048` tokens in its cache. For
        Llama-3-8B on an H100, reading the weights takes $a = 4.48$ ms and reading a cache
        $c = 0.08$ ms. So with $B$ sequences in the batch, a [step](#a_step_is_a_sum) takes
        $a + B c$, and a request stays for $600$ steps. By Little's law
        $B = 10 \cdot 600 \cdot (a + B c)$, which gives $B = 6000 a / (1 - 6000 c)$. Here $6000 c$
        is the share of the time for reading caches, because the service generates $6000$ tokens per
        second and reads one cache for each:
    """)
    squares = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]]).double()  # @hide
    assert squares.sum(dim=0).mean() == 3 / 4 * squares.sum(dim=1).mean() == 1.5, \
        "By hand, 1.5 in flight are 3/4 per second times 2 seconds."  # @hide
    a, c = 2 * WEIGHTS / BANDWIDTH, 2048 * KV_BYTES / BANDWIDTH
    share = 6000 * c  # of the time, to read caches  # @inspect share as %
    batch = 6000 * a / (1 - share)  # @inspect round(batch, 1) as sequences
    assert 51 < batch < 53, \
        "On average 52 sequences are in the batch."
    generator = torch.Generator().manual_seed(1)  # @hide
    when = (torch.empty(6000).exponential_(generator=generator) / 10).cumsum(0).tolist()  # @hide
    clock, admitted, done, sizes, ends = 0.0, 0, 0, 0.0, deque[int]()  # @hide
    for step in range(100_000):  # @hide
        while admitted < 6000 and when[admitted] <= clock:
            ends.append(step + 600)
            admitted += 1
        while ends and ends[0] == step:
            ends.popleft()
        seconds = step_seconds(max(1, len(ends)), 2048)
        clock, sizes = clock + seconds, sizes + seconds * len(ends)
        if clock > when[-1]:  # drawn with ten seeds, the mean batch was off by at most 9 %
            break
    assert math.isclose(sizes / clock, batch, rel_tol=0.1), \
        "Simulated step by step for 10 minutes, the mean batch is the same, to within 10 %."  # @hide
    question(r"""
        At $10$ requests per second, reading caches takes `0.48` of the time: $6000 c = 0.48$. Now
        requests arrive at twice the rate, and nothing else changes. By what factor does the batch
        grow?
    """, answer=2 * (1 - 0.48) / (1 - 2 * 0.48), check=(12000 * 1 / (1 - 0.96)) / (6000 * 1 / (1 - 0.48)),
        unit="times", within=0.02, hint="What becomes of the denominator $1 - 6000 c$?",
        wrong={"The steps also get longer, so each request stays longer.": 2},
        why="Twice as many requests is a factor of `2`. And reading caches now takes `0.96` of the time: the denominator shrinks from `0.52` to `0.04`, so each request stays `13` times as long.")


def waiting_grows_with_the_load() -> None:
    """The closer the load is to 100 %, the longer requests wait."""
    note(r"""
        A GPU is idle for a tenth of the time. Is this time wasted, or does it serve a purpose?

        Look at prompts that queue for [prefill](#the_first_token_waits_for_arithmetic), which runs
        them one at a time. By hand: a prefill takes $1$ s, and a prompt arrives every $2$ s. Nobody
        waits, and the *load*, the fraction of the time in which the GPU is busy, is $1/2$. Now the
        prompts come in pairs, two at the same moment, every $4$ s. The load is still $1/2$, but the
        second prompt of each pair waits for $1$ s.

        Prompts wait although the GPU is idle half of the time, because idle time cannot be stored:
        the second before a pair arrives cannot be used later for this pair.

        How long does a prompt take at load $\rho$, from its arrival to the first token (TTFT)? Call
        the mean of this time $T$; it includes waiting and prefill. Let prompts arrive at random,
        independently of each other, with prefill times that are exponentially distributed, $1$ on
        average. Then the load equals the arrival rate: $\rho$ prompts arrive per unit of time.

        - By [Little's law](#requests_in_flight_are_rate_times_time), the mean number of prompts in
          the queue and in prefill is the arrival rate times the mean time that each spends there:
          $\rho T$.
        - An arriving prompt finds this number of prompts on average, because prompts arrive
          independently of the length of the queue.
        - Each prompt that it finds still needs $1$ on average. This also holds for the prompt in
          prefill, because an exponentially distributed time has no memory: however long a prefill
          has been running, it still needs another $1$ on average.
        - Then the prefill of the arriving prompt itself takes $1$ on average.

        So $T = \rho T + 1$. Solving for $T$ gives [@kleinrock1975]:

        [@eq:load]: $$
        \text{TTFT} = \frac{\text{mean prefill time}}{1 - \rho}.
        $$

        To check it, simulate `200_000` prompts. `free_at` is the moment when the GPU is free again.
        The prefill of a prompt begins at this moment or when the prompt arrives, whichever is
        later:
    """)

    def mean_ttft(load: float) -> float:  # @stepover
        gaps = torch.empty(200_000).double().exponential_() / load
        prefills = torch.empty(200_000).double().exponential_()
        clock = free_at = total = 0.0
        for gap, prefill in zip(gaps.tolist(), prefills.tolist()):
            clock += gap  # a prompt arrives
            free_at = max(free_at, clock) + prefill
            total += free_at - clock
        return total / 200_000

    loads = [0.5, 0.8]
    simulated = [mean_ttft(load) for load in loads]  # @inspect [round(s, 2) for s in simulated] as prefills
    formula = [1 / (1 - load) for load in loads]  # @inspect [round(f, 2) for f in formula] as prefills
    # Drawn with ten seeds, the simulation was off by at most 4 %.
    drawn, expected = torch.tensor([simulated, formula])  # @hide
    assert torch.allclose(drawn, expected, rtol=0.08), \
        "At loads of 50 and 80 %, the first token comes after 2 and 5 prefill times, to within 8 %."
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
    note(r"""
        With a prefill of `30` ms on average, the first token comes after $30 / (1 - 0.5) = 60$ ms
        at half load, after $30 / (1 - 0.9) = 300$ ms at $90$ percent, and after
        $30 / (1 - 0.95) = 600$ ms at $95$ percent. So the idle tenth is not wasted: with half as
        much idle time, the first token takes twice as long.
    """)
    assert [round(30 / idle) for idle in (0.5, 0.1, 0.05)] == [60, 300, 600], \
        "These are 2, 10 and 20 times 30 ms."  # @hide

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
        That is so if requests arrive at perfectly regular intervals and all prefills take equally
        long. With random arrivals and the prefill times above, the first token comes after
        {simulated[0]:.1f} prefill times at half load: half of that time is waiting.
    """)
    question(r"""
        Two services have one GPU each, with a load of `80` percent. They merge: one queue for all
        prompts, and one GPU that is twice as fast. What is the mean time to first token then, in
        mean prefill times of an old GPU?
    """, answer=0.5 / (1 - 0.8), check=formula[1] / 2, unit="prefill times",
        hint="Which of the two changes: the load, or the prefill time?",
        why="Twice as many prompts at twice the speed give the same load. All times are halved, including the waiting time.")
