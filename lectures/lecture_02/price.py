"""What a run costs: hours, dollars and kilowatt-hours."""
import math
from units import HOUR

from litbook import aside, note, question

from .measure import dense_peak


@aside
def a_run_is_paid_for_in_gpu_hours() -> None:
    """A run is paid for in GPU-hours: at a given MFU, the same number on any number of GPUs."""
    note(r"""
        What does a training run cost? GPUs are rented by the *GPU-hour*, one GPU for one hour. A
        run with $N$ parameters and $D$ tokens is
        [$6ND$ FLOPs of work](#a_training_run_in_three_lines): $2$ in the forward pass and $4$ in
        the backward pass, for each parameter and token. In one second, a GPU does peak times MFU of
        this work, where MFU is the share of its peak that the run reaches. Converted to hours:

        [@eq:hours]: $$
        \mathrm{GPU\ hours} = \frac{6ND}{\mathrm{peak} \times \mathrm{MFU} \times 3600}
        $$

        The number of GPUs does not appear in the formula, because twice as many GPUs need half the
        time, as long as the MFU stays the same.

        Take a run with `70` billion parameters and `15` trillion tokens, on H100s, at an assumed
        MFU of `0.5`. `dense_peak` looks up the peak:
    """)
    work = 6 * 70e9 * 15e12  # @inspect work as FLOP
    mfu = 0.5
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    hours = work / (rate * mfu * HOUR)  # @inspect hours
    assert 3.53e6 < hours < 3.54e6, "The run takes 3.5 million GPU-hours."
    note(r"""
        What does an hour cost? DeepSeek's report assumes `2` dollars for an H800, a GPU with the
        same peak [@deepseek-v3]. Take `4` dollars as the upper end, an assumption of this book:
    """)
    low, high = 2 * hours, 4 * hours
    dollars = low, high  # @inspect dollars
    assert 7.0e6 < low < 7.1e6, \
        "At 2 dollars an hour, the run costs 7 million dollars."
    assert 14.1e6 < high < 14.2e6, "At 4 dollars an hour, it costs 14 million."
    note(r"""
        How good is the estimate? For Llama 3.1 70B, trained on about `15` trillion tokens on H100s,
        Meta states `7.0` million GPU-hours [@llama31-card]. Compare:
    """)
    stated = 7.0e6
    over = stated / hours  # @inspect over as times
    assert round(over, 1) == 2.0, "Meta states twice the estimated hours."
    note(r"""
        Meta does not say why. Its hours may include work that was lost to failures, or its MFU may
        have been lower: at `0.5 / 2 = 0.25`, the formula gives about Meta's number. So plan for
        more hours than the formula gives at an MFU of `0.5`.
    """)
    question(r"""
        A run trains `8` billion parameters on `1` trillion tokens at an MFU of `0.4`, on H100s with
        a peak of `989.5e12` FLOP/s, at `2` dollars an hour. How many dollars does it cost?
    """, answer=round(2 * 6 * 8e9 * 1e12 / (rate * 0.4 * HOUR)),
        wrong={
            "Those are the GPU-hours.": round(6 * 8e9 * 1e12 / (rate * 0.4 * HOUR)),
            "The MFU is missing.": round(2 * 6 * 8e9 * 1e12 / (rate * HOUR)),
        },
        check=round(low * 8 / 70 / 15 * mfu / 0.4), unit="dollars", within=0.01, why=r"""
            The work is `6 * 8e9 * 1e12 = 4.8e22` FLOPs. In an hour a GPU does
            `989.5e12 * 0.4 * 3600 = 1.42e18` of them. Divide, and multiply by `2` dollars.
        """)


@aside
def boards_draw_half_of_the_power() -> None:
    """By the ratings, the GPU boards of a DGX H100 account for a little more than half of its power."""
    note(r"""
        How much energy does a training run use? A GPU sits on a *board*, and the board of an H100
        may draw `700` watts [@nvidia-h100]. Boards sit in a machine whose processors, network and
        fans draw power as well. A DGX H100 is a machine with eight boards, and is rated at up to
        `10.2` kilowatts [@nvidia-dgx-h100]. For each GPU:
    """)
    board, machine = 700, 10200 / 8  # watts for each GPU
    share = board / machine  # @inspect share as %
    assert round(share, 2) == 0.55, \
        "The eight boards account for 55 % of the machine's rated power."
    note(r"""
        The machine is in a building that has to be cooled. The *power usage effectiveness* of a
        building is the energy of the whole building, divided by the energy of its machines. Here
        `1.1` and `1.6` are assumed, for an efficient building and an inefficient one.

        Take a run with `70e9` parameters and `15e12` tokens, and assume that each H100 reaches half
        of its peak of `989.5e12` FLOP/s. The run's energy is its
        [GPU-hours](#a_run_is_paid_for_in_gpu_hours) times the watts per GPU: of the board alone, of
        the machine, and of the machine in either building:
    """)
    work = 6 * 70e9 * 15e12  # 6 FLOPs per parameter and token
    hours = work / (989.5e12 * 0.5) / 3600  # @inspect hours
    watts = board, machine, machine * 1.1, machine * 1.6
    energy = [w / 1000 * hours for w in watts]  # @inspect energy as kWh
    millions = [round(e / 1e6, 1) for e in energy]
    assert millions == [2.5, 4.5, 5.0, 7.2], \
        "Counted in these four ways, the run uses 2.5, 4.5, 5.0 and 7.2 million kilowatt-hours."
    per_flop = board / (dense_peak("H100 SXM", "bfloat16") * 0.5)  # @hide
    per_token = per_flop * 6 * 70e9  # @hide
    assert round(per_token, 1) == 0.6, "Training on one token uses 0.6 joules."  # @hide
    again = per_token * 15e12 / 3.6e6  # @hide
    assert math.isclose(again, energy[0]), "All tokens together use what the boards use."  # @hide
    note("At the assumed half of the peak, the machines use at most `4.5` million kilowatt-hours, because the calculation assumes their maximum power. The building multiplies that by `1.1` to `1.6`.")
    question(r"""
        A run takes `7.0` million GPU-hours, and each board draws `700` watts. How many
        kilowatt-hours do the boards alone use?
    """, answer=round(7.0e6 * board / 1000),
        wrong={
            "Those are watt-hours.": 7.0e6 * board,
            "That is what the machines use.": 7.0e6 * machine / 1000,
        },
        check=round(energy[0] * 7.0e6 / hours), unit="kWh", why=r"""
            A board draws `0.7` kilowatts, so it uses `0.7` kilowatt-hours per hour. Multiply by
            `7.0` million hours.
        """)
