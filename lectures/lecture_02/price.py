"""What a run costs: hours, dollars, kilowatt-hours, and whether the tokens are well spent."""
import math
from typing import NamedTuple
from units import DAY, HOUR

from litbook import aside, note, question

from .measure import dense_peak


@aside
def a_run_is_paid_for_in_gpu_hours() -> None:
    """A run is paid for in GPU-hours: at a given MFU, as many on any number of GPUs."""
    note(r"""
        What does a training run cost, once its work is known? GPUs are rented by the hour, so turn
        work into hours, with $N$ parameters and $D$ tokens:

        [@eq:hours]: $$
        \mathrm{GPU\ hours} = \frac{6ND}{\mathrm{peak} \times \mathrm{MFU} \times 3600}
        $$

        The number of GPUs has cancelled. Twice as many are done in half the time, for the same
        money, as long as the MFU holds.
    """)
    work, mfu = 6 * 70e9 * 15e12, 0.5
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    hours = work / (rate * mfu * HOUR)  # @inspect hours
    assert 3.53e6 < hours < 3.54e6, "three and a half million"
    days = {n: work / (rate * mfu * n * DAY) for n in (1024, 16384)}  # @inspect days  # @unnoticed: 1024, 16384: any number of cards
    booked = [round(n * 24 * d) for n, d in days.items()]  # @inspect booked
    assert booked == [round(hours)] * 2, "as many for months and for days"
    note(r"""
        The price of an hour is no constant of nature. DeepSeek's report assumes `2` dollars for an
        H800, a GPU with the same peak [@deepseek-v3]; take up to twice that as the range. That
        upper end is an assumption of this book, to be replaced by your own offer:
    """)
    low, high = 2 * hours, 4 * hours
    dollars = low, high  # @inspect dollars
    assert 7.0e6 < low < 7.1e6, "dollars, at the lower price"
    assert 14.1e6 < high < 14.2e6, "dollars, at twice that price"
    note(r"""
        How good is the estimate? For Llama 3.1 70B, trained on about `15` trillion tokens on H100s,
        Meta states `7.0` million GPU-hours [@llama31-card]. The same formula, solved for the MFU:
    """)
    stated = 7.0e6
    reached = work / (rate * HOUR * stated)  # @inspect reached as %
    assert round(reached, 2) == 0.25, "if this work is all they hold"
    over = stated / hours  # @inspect over as times
    assert round(over, 1) == 2.0, "stated, of estimated"
    note(rf"""
        The estimate was short by a factor of {over:.1f}. Meta calls these hours the total for
        training, and does not say what else they hold: perhaps attention, longer contexts, work
        lost to failures, or a lower MFU. Budget for the gap all the same.
    """)
    question(r"""
        On H100s at `2` dollars an hour, what does a run cost that trains `8` billion parameters on
        `1` trillion tokens at an MFU of `0.4`?
    """, answer=round(2 * 6 * 8e9 * 1e12 / (rate * 0.4 * HOUR)),
        check=round(low * 8 / 70 / 15 * mfu / 0.4), unit="dollars", within=0.01)


@aside
def boards_draw_half_of_the_power() -> None:
    """The boards draw little more than half of the power that the run takes."""
    note(r"""
        How much energy is that? The H100's board may draw `700` watts [@nvidia-h100]. It sits in a
        machine: a DGX H100 holds eight of them and is rated at `10.2` kilowatts at most
        [@nvidia-dgx-h100]. Processors, network and fans take the difference:
    """)
    board, machine = 700, 10200 / 8  # watts for each GPU
    share = board / machine  # @inspect share as %
    assert round(share, 2) == 0.55, "of a machine's power, the boards"
    note(r"""
        And the machine stands in a building that cools it. Its *power usage effectiveness* is the
        energy of the whole building over that of the machines; `1.1` to `1.6` is the range assumed
        here. From the boards alone to the least efficient building, in kilowatt-hours:
    """)
    rate, mfu = dense_peak("H100 SXM", "bfloat16"), 0.5
    hours = 6 * 70e9 * 15e12 / (rate * mfu * HOUR)
    watts = board, machine, machine * 1.1, machine * 1.6
    energy = [w / 1000 * hours for w in watts]  # @inspect energy as kWh
    millions = [round(e / 1e6, 1) for e in energy]
    assert millions == [2.5, 4.5, 5.0, 7.2], "million kilowatt-hours"
    spread = energy[-1] / energy[0]  # @inspect spread as times
    assert round(spread, 1) == 2.9, "between the ends"
    note(r"""
        Everything was taken at its limit, so these are upper bounds for this many hours. Now the
        other way, from a single operation up: joules for a FLOP, for a token, for the run.
    """)
    per_flop = board / (rate * mfu)  # @inspect per_flop as J
    per_token = per_flop * 6 * 70e9  # @inspect per_token as J
    assert round(per_token, 1) == 0.6, "joules for a token of training"
    again = per_token * 15e12 / 3.6e6  # @inspect again as kWh
    assert math.isclose(again, energy[0]), "the boards, once more"
    note(r"""
        Is it the electricity that costs? At an assumed `0.10` dollars for a kilowatt-hour, as a
        share of the rent at `2` dollars an hour:
    """)
    part = 0.10 * energy[-1] / (2 * hours)  # @inspect part as %
    assert round(part, 2) == 0.1, "a tenth of the rent, at the upper end"
    question(r"""
        How many kilowatt-hours do the boards alone draw if the run takes `7.0` million GPU-hours?
    """, answer=round(7.0e6 * board / 1000),
        check=round(energy[0] * 7.0e6 / hours), unit="kWh")


class Fit(NamedTuple):
    """Loss by size and tokens: E + A / N^alpha + B / D^beta."""

    floor: float
    a: float
    alpha: float
    b: float
    beta: float

    def loss(self, parameters: float, tokens: float) -> float:
        """The loss that the fit predicts."""
        size: float = self.a / parameters**self.alpha
        data: float = self.b / tokens**self.beta
        return self.floor + size + data

    def best(self, work: float) -> float:
        """The size with the lowest loss for that many FLOPs: where the derivative is zero."""
        ratio = self.alpha * self.a / (self.beta * self.b)
        power: float = ratio * (work / 6) ** self.beta
        size: float = power ** (1 / (self.alpha + self.beta))
        return size


FITS = {
    "chinchilla": Fit(1.6934, 406.4, 0.3392, 410.7, 0.2849),  # as in the paper's source [@besiroglu2024]
    "besiroglu2024": Fit(1.8172, 482.01, 0.3478, 2085.43, 0.3658),  # fitted anew [@besiroglu2024]
}


@aside
def near_the_best_size_the_loss_is_flat() -> None:
    """Near the best size the loss is flat, and the cost of using the model is not."""
    note(r"""
        Would another model have made more of these FLOPs? Chinchilla had `70` billion parameters
        and `1.4` trillion tokens, because for its budget that mix promised the lowest loss
        [@chinchilla]. Ours has as many parameters and far more tokens for each:
    """)
    ratios = [tokens / 70e9 for tokens in (1.4e12, 15e12)]  # @inspect ratios
    assert [round(r) for r in ratios] == [20, 214], "Chinchilla, and this run"
    note(r"""
        The same paper fits the loss to $N$ parameters and $D$ tokens [@chinchilla]. Others read the
        data off its plots, fitted them anew, and found other constants; they also give the paper's
        own with more digits than it prints [@besiroglu2024]:

        $$L(N, D) = E + A N^{-\alpha} + B D^{-\beta}$$

        With $6ND = C$ fixed, the derivative is zero at
        $N^{\alpha+\beta} = \frac{\alpha A}{\beta B}\,(C/6)^{\beta}$. Beside it a search over sizes,
        which knows nothing of derivatives:
    """)
    work = 6 * 70e9 * 15e12
    sizes = [10 ** (k / 1000) for k in range(10000, 12000)]  # @unnoticed: 10 -> 11, 10000: the best lies well inside

    def searched(fit: Fit) -> float:
        return min(sizes, key=lambda n: fit.loss(n, work / 6 / n))

    best = {key: fit.best(work) for key, fit in FITS.items()}  # @inspect best
    billions = [round(n / 1e9) for n in best.values()]
    assert billions == [120, 246], "billion parameters, by either fit"
    steps = [1000 * math.log10(searched(FITS[k]) / n) for k, n in best.items()]  # @unnoticed: 1000, factor 1000 left out: the search finds the very size
    gaps = [round(step) for step in steps]
    assert gaps == [0, 0], "found by the search, to a step"  # @zero: another way to the same
    rule = [work / 6 / n**2 for n in best.values()]  # @inspect rule
    assert [round(r) for r in rule] == [73, 17], "tokens per parameter"
    printed = Fit(1.69, 406.4, 0.34, 410.7, 0.28).best(work)  # @inspect printed
    assert round(printed / 1e9) == 95, "by the first, as it is printed"
    note(rf"""
        By one fit our model should be {best['chinchilla'] / 70e9:.1f} times as large, by the other
        {best['besiroglu2024'] / 70e9:.1f} times. How much would be gained, and what would a token
        cost that the model writes, at $2N$ FLOPs?
    """)
    gains = [
        fit.loss(70e9, 15e12) - fit.loss(best[k], work / 6 / best[k])
        for k, fit in FITS.items()
    ]  # @inspect gains
    assert [round(g, 3) for g in gains] == [0.002, 0.01], "lower loss"
    dearer = [n / 70e9 for n in best.values()]  # @inspect dearer as times
    assert [round(d, 1) for d in dearer] == [1.7, 3.5], "every token costs more"
    note(r"""
        The loss is flat around its minimum, so two fits can disagree about its place. The cost of
        use is not flat. Who means to use a model much trains a smaller one for longer.
    """)
    question("At `20` tokens per parameter, how many FLOPs train a model of `1` billion parameters?",
             answer=6 * 20 * 10**9 * 10**9,
        check=round(work * (1e9 / 70e9) * (20e9 / 15e12)), unit="FLOP")
