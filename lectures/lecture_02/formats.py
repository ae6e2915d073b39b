"""What the number formats can hold, and what they lose."""
import math
from typing import Any

import torch
from jaxtyping import BFloat16, Float, UInt8
from torch import Tensor, nn

from litbook import aside, explore, figure, misbelief, note, question

from .figures import byte_figure, curves, plot_bits, staircase_figure
from .measure import E4M3, E5M2, message_of

FORMATS = (torch.float32, torch.float16, torch.bfloat16, E4M3, E5M2)
NAMES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16}
NAMES |= {"float8 E4M3": E4M3, "float8 E5M2": E5M2}
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32}  # as wide, by bytes


def number_formats() -> None:
    """Number formats."""
    total = torch.tensor(256.0, dtype=torch.bfloat16) + 1  # @inspect total
    assert total.item() == 256, "In bfloat16, 256 + 1 is 256."
    note(rf"""
        `bfloat16`, the working format of many language models, has been in use on Google's TPUs
        since `2017` [@norrie2021]. In it, `256 + 1` is {total.item():.0f}. That is not a machine
        error. A number format has a certain number of bits. It can spend them on range, so that
        values may be very large or very small, or on resolution, so that they lie close together.
        This part shows how the formats spend their bits, and what goes wrong when a format has too
        few.
    """)
    a_float_is_three_fields()
    float16_spends_little_on_range()
    small_values_vanish_in_float16()
    bfloat16_is_the_top_half_of_float32()
    bfloat16_is_much_coarser()
    five_formats_on_one_line()
    one_byte_comes_in_two_formats()


def what_rounding_loses() -> None:
    """What rounding loses."""
    note(r"""
        Training adds many small values to a large one: products to a sum, updates to a weight. What
        happens to the small ones if the format has few bits? They can get lost, and no error says
        so. This part shows where that happens, and the fixes: keep the sum in a full-precision
        format, round at random, or multiply the loss by a large number.
    """)
    a_running_sum_stalls()
    small_updates_are_lost()
    rounding_at_random_saves_them()
    scaling_the_loss_saves_small_gradients()
    autocast_chooses_for_each_operation()


def bits(value: float, dtype: torch.dtype) -> str:
    """The bits of a number in a format, as a string of zeros and ones, the sign first."""
    width = torch.finfo(dtype).bits
    raw = {8: torch.uint8, 16: torch.int16, 32: torch.int32}[width]
    stored = torch.tensor(value, dtype=dtype).view(raw).item()
    return format(int(stored) % 2**width, f"0{width}b")


def cast(value: float, dtype: torch.dtype) -> float:
    """A number after it was rounded to a format."""
    return float(torch.tensor(value, dtype=torch.float64).to(dtype).double())


def reading(dtype: str, bits: int) -> dict[str, float | None]:
    """Reads the first bits of 32 as a number of a format: the number, the next larger one, and the number plus 1 in that format."""
    form = NAMES[dtype]
    width = 8 * form.itemsize

    def number(pattern: int) -> Tensor:
        signed = pattern - (pattern >> (width - 1) << width)
        return torch.tensor(signed, dtype=INTEGERS[form.itemsize]).view(form)

    pattern = bits >> (32 - width)
    x = number(pattern)
    if not math.isfinite(x.item()):
        return {"value": x.item()}
    size = pattern & (1 << (width - 1)) - 1
    there = size + 1 < 1 << (width - 1)
    following = number(size + 1).item() if there else math.inf
    added = (x.float() + 1).to(form).item()
    after = following if math.isfinite(following) else None
    return {"value": x.item(), "next": after, "plus": added}


def layout(dtype: torch.dtype) -> tuple[int, int, int]:
    """The numbers of bits that a format has for sign, exponent and fraction."""
    fraction = -int(math.log2(torch.finfo(dtype).eps))
    return 1, torch.finfo(dtype).bits - 1 - fraction, fraction


def decode(pattern: str, dtype: torch.dtype) -> float:
    """The number that a string of bits stands for, by the formula of a float."""
    _, exponent, fraction = layout(dtype)
    bias = (1 << exponent - 1) - 1
    power = int(pattern[1 : 1 + exponent], 2) - bias
    sign = -1.0 if pattern[0] == "1" else 1.0
    along = int(pattern[1 + exponent :], 2) / (1 << fraction)
    return sign * 2.0**power * (1 + along)


def a_float_is_three_fields() -> None:
    """The bits of a float are a sign, an exponent and a fraction."""
    note(r"""
        What do the bits of a floating-point number mean? Take the number $5$ in `float32`. Its `32`
        bits form three *fields*, which say where the number lies between powers of two:

        - The *sign* is one bit: `0`, because $5$ is positive.
        - The *exponent* names the power of two at or below the number, its sign left aside: $5$
          lies between $4 = 2^2$ and $8$, so the exponent is $2$.
        - The *fraction* says how far from $4$ to $8$ the number lies. Its bits stand for a half, a
          quarter, an eighth of the way, and so on. $5$ lies a quarter of the way, so the bits are
          `01` and then zeros: no half, one quarter.

        Together: $4 \cdot (1 + 1/4) = 5$.

        The exponent of a small number is negative, but the field has no sign of its own. So the
        field holds the exponent plus a fixed number, the *bias*. In `float32` the bias is `127`,
        and the exponent $2$ is stored as $129$. With a sign $s$, a stored exponent $e$, and the
        fraction as a number $f$, here $1/4$, the value is

        $$
        (-1)^s \cdot 2^{e-\mathrm{bias}} \cdot (1+f)
        $$

        (The stored exponents $0$ and $255$ have other meanings, for example infinity.) Compare that
        with PyTorch. `bits` returns the bits of a number as text:
    """)
    x = torch.tensor(5.0)  # @inspect x as bits
    pattern = bits(x.item(), torch.float32)
    # The first bit, the next 8, and the remaining 23:
    sign, exponent, fraction = pattern[0], pattern[1:9], pattern[9:]  # @inspect exponent
    assert sign == "0", "The sign is 0."
    assert int(exponent, 2) == 2 + 127, \
        "The exponent, read as a binary number, is 129."
    assert fraction == "01" + 21 * "0", "The fraction is 01 and then zeros."
    assert layout(torch.float32) == (1, 8, 23), \
        "The fields have 1, 8 and 23 bits."  # @hide
    assert decode(pattern, torch.float32) == x.item() == 5, "The formula gives the number back."  # @hide
    question(r"""
        A `float32` has sign `1`, exponent `10000001` and a fraction of `11` followed by zeros.
        Which number is it?
    """, answer=decode("1" + "10000001" + "11".ljust(23, "0"), torch.float32),
        wrong={
            "The sign bit is set, so it is negative.": 7,
            "That leaves out the 1 that is added to the fraction.": -3,
            "The fraction counts binary places: a half and a quarter.": -4 * 1.11,
        },
        check=-(2 ** (0b10000001 - 127)) * (1 + 0.5 + 0.25),
        hint="The exponent is that of $5$. How far from $4$ to $8$ does the number lie?",
        why=r"""
            The exponent is the same as that of $5$, so without its sign the number lies between $4$
            and $8$. The fraction is a half and a quarter: three quarters of the way, which is $7$.
            The sign bit makes it negative.
        """)


@aside
def float16_spends_little_on_range() -> None:
    """The values of `float16` end at 65504: five bits for the exponent, ten for the fraction."""
    note(r"""
        `float16` needs `2` bytes instead of the `4` of `float32`. What does it give up? Above all
        range, because it has `5` bits for the [exponent](#a_float_is_three_fields), and `float32`
        has $8$. The `5` bits have $2^5 = 32$ patterns. The lowest is for values near zero, and the
        highest for infinity and *not a number*. The patterns $1$ to $30$, minus the bias, $15$, are
        the exponents of the powers of two from $2^{-14}$ to $2^{15} = 32768$.

        A number is such a power, multiplied by $1$ plus a fraction. The fraction has `10` bits, so
        $2^{10} = 1024$ equal steps lead from one power of two to the next. Above $32768$ a step is
        $32768 / 1024 = 32$. The next power of two, $65536$, does not exist in `float16`. So the
        values end one step before it, at $65536 - 32 = 65504$:
    """)
    assert layout(torch.float16) == (1, 5, 10), "float16 has 1 bit of sign, 5 of exponent and 10 of fraction."  # @hide
    x = torch.zeros(4, 8, dtype=torch.float16)  # @hide
    assert (x.element_size(), x.nbytes) == (2, 64), "A float16 takes 2 bytes."  # @hide
    largest = torch.finfo(torch.float16).max  # @inspect largest
    assert largest == 65536 - 32, "The largest float16 is 65504."
    note(r"""
        A number above `65504` is rounded down to `65504`, or to infinity if $65536$ would be at
        least as near. `cast` rounds a number to a format:
    """)
    gap = 2**15 * torch.finfo(torch.float16).eps  # @hide
    assert gap == 32, "The largest numbers are 32 apart."  # @hide
    rounded = [cast(n, torch.float16) for n in (65519, 65520)]  # @inspect rounded
    assert cast(65519, torch.float16) == 65504, \
        "65519, less than half way, is rounded down to 65504."
    assert cast(65520, torch.float16) == math.inf, \
        "65520, half way to 65536, becomes infinity."
    note("One infinite gradient spoils a training step: every sum that contains it is infinite or not a number.")
    question("Which number of `float16` comes right before the largest, `65504`?",
             answer=(torch.tensor(largest, dtype=torch.float16).view(torch.int16) - 1)
             .view(torch.float16).item(),
        check=largest - 2**15 * 2**-10, within=0,
        wrong={
            "Values of this size are 32 apart.": 65503,
        },
        why="Above $32768$ the values of `float16` are $32$ apart, and `65504 - 32 = 65472`.")


def small_values_vanish_in_float16() -> None:
    """A gradient of `1e-8` is zero in `float16`."""
    note(r"""
        How small can a number be before a format turns it into zero? In training, a *gradient* says
        how the loss changes with each weight, and gradients of `1e-8` occur [@micikevicius2018]. In
        `float16` they become zero, because the smallest positive value of `float16` is about
        $6 \cdot 10^{-8}$, and `1e-8` is nearer to zero than to that.

        Near zero the values of `float16` are equally spaced: zero, one step, two steps, and so on.
        These *subnormal* values end at $2^{-14}$, the lowest power of two that the exponent can
        represent. The `10` bits of fraction give $2^{10}$ equal steps from zero to there. So a step
        is $2^{-14} / 2^{10} = 2^{-24}$, about $6 \cdot 10^{-8}$.

        A number is rounded to the nearest of these values. Half a step is about $3 \cdot 10^{-8}$:

        - $5 \cdot 10^{-8}$ is more, and is rounded up to one step.
        - $1 \cdot 10^{-8}$ is less, and is rounded down to zero.

        `cast` rounds a number to a format:
    """)
    step = 2**-24  # @inspect step
    kept = cast(5e-8, torch.float16)  # @inspect kept
    gone = cast(1e-8, torch.float16)  # @inspect gone
    assert kept == step, "5e-8 becomes one step."
    assert gone == 0.0, "The gradient is zero, without an error or a warning."  # @zero: it underflows
    assert layout(torch.float16) == (1, 5, 10), \
        "float16 has 5 bits of exponent and 10 of fraction."  # @hide
    unit = 2.0**-24  # @hide
    xs = [unit * i / 100 for i in range(-50, 451)]  # @hide
    ys = [cast(x, torch.float16) for x in xs]  # @hide
    stairs = sorted({abs(y) / unit for y in ys})  # @hide
    assert stairs == [0, 1, 2, 3, 4], "The picture has five values of float16, zero to four steps."  # @hide
    figure(staircase_figure(xs, ys, unit, lost=1e-8), caption=rf"""
        What a number near zero becomes in `float16`, both in steps of $2^{{-24}}$. The dot is the
        gradient of `1e-8`. It would have to be {unit / 2 / 1e-8:.0f} times as large to survive.
    """, alt=r"""
        A staircase of steps one unit wide along the diagonal. The first step up is at one half of
        the smallest value; the dot lies left of it, on the floor at zero.
    """)
    note("A weight learns nothing from a gradient that has become zero.")
    question("Near zero the values of `float16` are multiples of $2^{-24}$, about `6e-8`. What does `1e-7` become in `float16`?", answer=cast(1e-7, torch.float16),
        wrong={
            "That would be no rounding at all.": 1e-7,
            "That is one step; two steps are nearer.": 2.0**-24,
        },
        check=round(1e-7 / unit) * unit, within=0.02,
        hint=r"""
            The values near zero are zero, one step, two steps, and so on. Which of them is nearest?
        """,
             why=r"""
                 `1e-7` lies between one step, about `6e-8`, and two steps, about `12e-8`. Two steps
                 are nearer, so the number is rounded up.
             """)


def bfloat16_is_the_top_half_of_float32() -> None:
    """A `bfloat16` is a `float32` rounded to its first 16 bits."""
    note(r"""
        `bfloat16` has `16` bits, like `float16`. Why does it keep a gradient of `1e-8`, which
        [`float16` turns into zero](#small_values_vanish_in_float16)? Because its *exponent*, the
        field that holds a power of two, has as many bits as in `float32`. The exponent decides how
        small and how large a number can be. With `5` bits, the smallest positive `float16` is about
        $6 \cdot 10^{-8}$; with `8` bits, the smallest positive `bfloat16` is about
        $9 \cdot 10^{-41}$. The price is a shorter *fraction*, so the numbers have fewer significant
        digits:

        | bits of | sign | exponent | fraction |
        |---|---|---|---|
        | `float32` | `1` | `8` | `23` |
        | `bfloat16` | `1` | `8` | `7` |
        | `float16` | `1` | `5` | `10` |

        So sign, exponent and the first `7` bits of the fraction are the first `16` bits of a
        `float32`. A number whose other bits are zero is represented exactly. Others are rounded to
        the nearest `bfloat16`, up or down.

        By hand: $5$ is $4 \cdot (1 + 1/4)$. Its fraction is `01` and then zeros, so $5$ is
        represented exactly. From $4$ to $8$, the `7` bits of fraction make $2^7 = 128$ equal steps,
        and each is $4/128 = 1/32$, about $0.03$. So $5.01$ is rounded down to $5$, and $5.02$ up to
        $5 + 1/32$.

        `bits` returns the bits of a number, and `cast` rounds a number to a format:
    """)
    full = bits(5.0, torch.float32)  # @inspect full
    top = bits(5.0, torch.bfloat16)  # @inspect top
    assert top == full[:16], \
        "The bits of 5 in bfloat16 are its first 16 in float32."
    assert layout(torch.float32) == (1, 8, 23), "float32 has 8 bits of exponent and 23 of fraction."  # @hide
    assert layout(torch.bfloat16) == (1, 8, 7), \
        "bfloat16 has 8 bits of exponent and 7 of fraction."  # @hide
    assert layout(torch.float16) == (1, 5, 10), \
        "float16 has 5 bits of exponent and 10 of fraction."  # @hide
    sizes = [torch.finfo(d).bits // 8 for d in FORMATS[:3]]  # @hide
    assert sizes == [4, 2, 2], "float32 takes 4 bytes, the two others 2."  # @hide
    rounded = [cast(x, torch.bfloat16) for x in (5.01, 5.02)]  # @inspect rounded
    assert rounded == [5, 5 + 1 / 32], \
        "5.01 is rounded down, and 5.02 up."
    kept = cast(1e-8, torch.bfloat16)  # @inspect kept
    assert kept == 1.0011717677116394e-08, \
        "In bfloat16 the gradient of 1e-8 is not zero."
    off = kept / 1e-8 - 1  # @hide
    assert 0.00117 < off < 0.00118, "It is about a thousandth too large."  # @hide
    note(f"So `bfloat16` keeps the gradient of `1e-8`, but with few digits: it is {off:.1%} too large.")
    wide, narrow, half = (torch.finfo(d) for d in (torch.float32, torch.bfloat16, torch.float16))  # @hide
    less, times = 1 - narrow.max / wide.max, 2**-133 / 2**-149  # @hide
    assert 0.0038 < less < 0.0040, "The largest bfloat16 is 0.4 % smaller than the largest float32."  # @hide
    assert narrow.smallest_normal == wide.smallest_normal == 2**-126, "The smallest normal number is the same in both."  # @hide
    least = cast(2**-149, torch.float32), cast(2**-133, torch.bfloat16), cast(2**-134, torch.bfloat16)  # @hide
    assert least == (2**-149, 2**-133, 0), "float32 ends at 2**-149, bfloat16 at 2**-133."  # @hide  # @zero: it underflows
    assert times == 2**16, "The smallest bfloat16 is 65536 times the smallest float32."  # @hide
    assert str(wide) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, "
        "eps=1.19209e-07, smallest_normal=1.17549e-38, tiny=1.17549e-38, "
        "dtype=float32)"
    ), "PyTorch prints these limits of float32."  # @hide
    assert str(half) == (
        "finfo(resolution=0.001, min=-65504, max=65504, "
        "eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, "
        "dtype=float16)"
    ), "PyTorch prints these limits of float16."  # @hide
    assert str(narrow) == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, "
        "eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, "
        "dtype=bfloat16)"
    ), "PyTorch prints these limits of bfloat16."  # @hide
    slip = round(math.log10(1.17549e38 / narrow.smallest_normal))  # @hide
    assert slip == 76, "Without its minus sign, the smallest normal bfloat16 is 76 powers of ten too large."  # @hide
    misbelief("bfloat16 has the same dynamic range as float32.", rf"""
        Nearly. The exponents are the same, and the *normal* numbers, those with all bits of the
        fraction, begin at $2^{{-126}}$ in both formats. But the largest `bfloat16` is {less:.1%}
        smaller, because the fraction is shorter. Below $2^{{-126}}$ both have
        [subnormal](#small_values_vanish_in_float16) numbers, with fewer digits. The smallest is
        $2^{{-149}}$ in `float32` and $2^{{-133}}$ in `bfloat16`, which is $2^{{16}}$, or
        {times:.0f}, times as large.
    """)
    question(r"""
        A `float32` has `32` bits, a `bfloat16` the first `16` of them. Suppose that the last `16`
        are simply cut off, without rounding. How many different patterns of `float32` then become
        the same `bfloat16`?
    """, answer=2 ** (len(full) - len(top)),
        wrong={
            "Those are the bits that were cut off, not their patterns.": 16,
        },
        check=len({f"{n:016b}" for n in range(65536)}),
        hint="How many bits are cut off?",
        why=r"""
            Two patterns become the same `bfloat16` if their first `16` bits agree. The last `16`
            bits can then have any value, and there are $2^{16}$ ways to set them.
        """)


def bfloat16_is_much_coarser() -> None:
    """`bfloat16` has between two and three significant digits."""
    note(r"""
        `bfloat16` has the exponents of `float32` in half the bits. What does it lose? Digits: only
        two to three are left, because its fraction of `7` bits allows just $2^7 = 128$ equal steps
        from one power of two to the next.

        - From $128$ to $256$, a step is $128 / 128 = 1$. So `bfloat16` has all of these integers,
          and all smaller ones.
        - From $256$ to $512$, a step is $256 / 128 = 2$. After $256$ comes $258$, and $257$ is
          missing.

        So every integer of two digits is there, but not every integer of three. `cast` rounds a
        number to the format, and changes it if it is missing:
    """)
    first = next(n for n in range(999) if cast(n, torch.bfloat16) != n)  # @inspect first  # @unnoticed: 999: only the first is asked for
    assert first == 256 + 1, "The first missing integer is 257."
    bits_of_fraction = layout(torch.bfloat16)[2]  # @hide
    assert bits_of_fraction == 7, "The fraction has 7 bits."  # @hide
    note(r"""
        What is `256 + 1` then? The exact sum, `257`, lies halfway between `256` and `258`. Of two
        equally near numbers, rounding takes the one whose last bit is zero, here `256`:
    """)
    total = torch.tensor(256.0, dtype=torch.bfloat16) + 1  # @inspect total
    assert total.item() == 256, "Adding one to 256 does nothing."
    after = torch.tensor(258.0, dtype=torch.bfloat16)  # @hide
    patterns = after.view(torch.int16) - total.view(torch.int16)  # @hide
    assert patterns == 1, "No pattern of bits lies between 256 and 258."  # @hide
    begin: dict[str, Any] = {"dtype": "bfloat16", "bits": 0x4380 << 16}  # @hide
    explore(reading, over={"dtype": [*NAMES], "bits": range(2**32)}, at=begin, module="pictures/bits.js",
        still=plot_bits(f"{0x4380:016b}", layout(torch.bfloat16), [254, 255, 256, 258, 260]),
        do="Press the button `+1`. What is `256 + 1`? Then choose `float32`, and press `+1` again.",
        see=r"""
            In `bfloat16` the sum is `256` again: `257` lies halfway to the next number, `258`, and
            is rounded to the one of the two whose last bit is zero. `float32` has the same first
            bits, followed by `16` more.
        """,
        caption=r"""
            The bits of a number, its value, and its neighbours in the same format. Each bit can be
            flipped. The red ring marks where the exact sum with `1` lies.
        """,
        alt=f"The bits of {total.item():.0f} in bfloat16, and its neighbours on a line of numbers. A ring marks the sum, which is none of them.")  # @hide
    read = reading(**begin)  # @hide
    assert read == {"value": 256.0, "next": 258.0, "plus": 256.0}, \
        "The picture reads 256, next 258, and 256 + 1 is 256 in bfloat16."  # @hide
    wider = reading("float32", begin["bits"])["plus"]  # @hide
    assert wider == 257.0, "In float32, 256 + 1 is 257."  # @hide
    note(r"""
        Formats are compared by their *machine epsilon*, the gap between `1` and the next larger
        number. In `bfloat16` it is one step from $1$ to $2$, which is $1 / 128$:
    """)
    eps = torch.finfo(torch.bfloat16).eps  # @inspect eps
    assert eps == 1 / 128, "In bfloat16 the gap is 1/128."
    against_half = eps / torch.finfo(torch.float16).eps  # @hide
    assert against_half == 8.0, "That is 8 times as coarse as float16."  # @hide
    against_full = eps / torch.finfo(torch.float32).eps  # @hide
    assert against_full == 65536.0, "That is 65536 times as coarse as float32."  # @hide
    misbelief("bfloat16's precision is slightly lower than float16's.", rf"""
        Not slightly: its gap after one is $2^{{10-7}} = {against_half:.0f}$ times as wide as that
        of `float16`, with $10$ bits of fraction, and $2^{{23-7}} = {against_full:.0f}$ times as
        wide as that of `float32`, with $23$.
    """)
    question("The fraction of a `bfloat16` has `7` bits: there are $2^7$ equal steps from one power of two to the next. Which `bfloat16` comes right after `1000`?",
                          answer=1000 + (1024 - 512) / 2**bits_of_fraction,
        wrong={
            "bfloat16 has every integer only up to 256; here each step is four.": 1001,
            "The step between numbers of this size is twice as large.": 1002,
        },
        check=(torch.tensor(1000.0, dtype=torch.bfloat16).view(torch.int16) + 1).view(torch.bfloat16).item(), within=0.0004,
        hint=r"""
            `1000` lies between the powers of two `512` and `1024`. How wide is each of the `128`
            steps from one to the other?
        """,
             why=r"""
                 Between `512` and `1024` there are `128` steps, of `512 / 128 = 4` each, and `1000`
                 is one of them. The steps double with every power of two.
             """)


def positive_numbers(dtype: torch.dtype) -> Tensor:  # @stepover
    """All positive finite numbers of a format of one or two bytes, in their order."""
    size = dtype.itemsize
    patterns = torch.arange(2 ** (8 * size - 1)).to(INTEGERS[size])
    values = patterns.view(dtype).double()
    return values[values.isfinite() & (values > 0)]


def numbers_between(  # @stepover
    low: float, high: float, dtype: torch.dtype
) -> tuple[int, list[float]]:
    """How many positive numbers of a format lie between two limits, and the numbers themselves if there are at most 40."""
    if dtype == torch.float32:  # too many to list; bits are in their order
        first, last = torch.tensor([low, high]).view(torch.int32).tolist()
        patterns = range(first, last + 1)
        bits = torch.tensor([*patterns[:42]], dtype=torch.int32)
        some = bits.view(dtype).double()
        if len(patterns) > 41:
            return len(patterns), []
        inside = [value for value in some.tolist() if low <= value <= high]
        return len(inside), inside
    values = positive_numbers(dtype)
    values = values[(values >= low) & (values <= high)]
    return len(values), values.tolist() if len(values) <= 40 else []


def five_formats_on_one_line() -> None:
    """Between the numbers of a format there are gaps, and they grow with the numbers."""
    note(r"""
        A format can represent only some numbers, and rounds each number between them to the
        nearest. How far apart are they? Except close to zero, the gaps grow with the numbers,
        because a format has the same number of equal steps from each power of two to the next, and
        that distance doubles each time.

        Take a format with `2` bits of fraction, which allow $2^2 = 4$ steps:

        - From $4$ to $8$ it has $4, 5, 6, 7$. The gaps are $1$.
        - From $8$ to $16$ it has $8, 10, 12, 14$. The gaps are $2$.
        - From $16$ to $32$ it has $16, 20, 24, 28$. The gaps are $4$.

        This is E5M2, a format of one byte. (E4M3, the other one, has `3` bits.) Formats with more
        bits of fraction have more steps. In `bfloat16`, with `7` bits, the gaps from $256$ to $512$
        are $256 / 2^7 = 2$. In `float16`, with `10` bits, they are $256 / 2^{10} = 1/4$, so
        `float16` has the number `258.5`. `bfloat16` has to round it. `cast` does that:
    """)
    rounded = cast(258.5, torch.bfloat16)  # @inspect rounded
    assert rounded == 258, "In bfloat16 it is rounded to 258."
    assert cast(258.5, torch.float16) == 258.5, "In float16 it is exact."  # @hide
    fractions = [layout(d)[2] for d in (E5M2, E4M3, torch.bfloat16, torch.float16)]  # @hide
    assert fractions == [2, 3, 7, 10], "E5M2 has 2 bits of fraction, E4M3 3, bfloat16 7 and float16 10."  # @hide
    listed = [numbers_between(n, 2 * n - 0.1, E5M2)[1] for n in (4, 8, 16)]  # @hide
    assert listed == [[4, 5, 6, 7], [8, 10, 12, 14], [16, 20, 24, 28]], "E5M2 has these numbers from 4 to 32."  # @hide
    stored = {name: cast(257, dtype) for name, dtype in NAMES.items()}  # @hide
    assert [*stored.values()] == [256, 257, 257, 256, 256], \
        "float32 and float16 have 257. bfloat16 and both formats of one byte store 256."  # @hide
    gaps = [
        numbers_between(start, 2 * start * (1 - 2**-8), torch.bfloat16)[0]
        for start in (1, 2, 256)
    ]  # @hide
    assert gaps == [128, 128, 128], "From a power of two to the next, bfloat16 has 128 numbers."  # @hide


    def on_the_line(number: float, zoom: int) -> dict[str, list[Any]]:  # @hide
        half, rows = number / (2 * zoom), {}
        for name, dtype in NAMES.items():
            nearest = cast(number, dtype)
            error = 100 * abs(nearest - number) / number if math.isfinite(nearest) else None
            count, inside = numbers_between(number - half, number + half, dtype)
            ticks = [round(500 + 500 * (value - number) / half) for value in inside]
            rows[name] = [nearest, error and float(f"{error:.4g}"), count, ticks]
        return rows

    numbers = [1e-8, 1e-5, 0.001, 0.1, 1, 3.14159, 10.3, 100, 257, 450, 1000.5, 65504, 70000, 1e6]  # @hide
    zooms = [1, 4, 16, 64, 256, 1024]  # @hide
    lines = explore(on_the_line, over={"number": numbers, "zoom": zooms}, at={"number": 257, "zoom": 16},
        module="pictures/formats.js", still=byte_figure(*(positive_numbers(d).tolist() for d in (E4M3, E5M2))),
        do="Which formats have `257`? Then move the number to `70000` and to `1e-8`: which formats still have a number near it?",
        see=rf"""
            `float32` and `float16` have `257`. `70000` is beyond the largest number of `float16`,
            and `1e-8` is rounded to zero there. `bfloat16` has a number near both, within
            {100 / 256:.1f} %.
        """, caption=r"""
            Numbers of five formats around the red one. Each line is a number that the format has; a
            solid band has more of them than can be drawn. The thick line is the number that the
            format stores.
        """, alt=r"""
            Five rows over one axis. The rows of both float8 formats have few lines or none, those
            of float16 and bfloat16 several, and the row of float32 is full.
        """)  # @hide
    assert all(1 - 2**-8 <= row["bfloat16"][0] / number <= 1 + 2**-8 for (number, _), row in lines.items()), \
        "bfloat16 has a number within 0.4 % of each of these."  # @hide
    assert (lines[70000, 1]["float16"][0], lines[1e-8, 1]["float16"][0]) == (math.inf, 0.0), \
        "float16 stores 70000 as infinity and 1e-8 as zero."  # @hide
    around = numbers_between(249, 265, torch.bfloat16)[1]  # @hide
    assert around == [249, 250, 251, 252, 253, 254, 255, 256, 258, 260, 262, 264], \
        "Up to 256, bfloat16 has all integers, and beyond it every second one."  # @hide
    assert lines[257, 16]["bfloat16"][2] == len(around) == 12, \
        "The picture draws these twelve."  # @hide
    note("So keep counters and token ids as integers: in `bfloat16`, some beyond `256` would be rounded to a neighbour.")
    question(r"""
        Between `512` and `1024`, how far is one number of `bfloat16` from the next? Between `256`
        and `512` it is `2`.
    """, answer=(1024 - 512) / 2 ** layout(torch.bfloat16)[2],
        check=numbers_between(513, 520, torch.bfloat16)[1][1] - numbers_between(513, 520, torch.bfloat16)[1][0], wrong={
            "The distance doubles wherever the exponent goes up by one.": 2,
            "That is a distance of the next range, from 1024 on.": 8,
        }, hint="The same number of steps has to cover twice the distance.",
        why="From `512` to `1024` there are `128` equal steps, as from `256` to `512`. The distance is twice as long, so each step is `512 / 128 = 4`.")


@aside
def one_byte_comes_in_two_formats() -> None:
    """Of the floats of one byte, `E4M3` has finer steps, and `E5M2` a wider range."""
    note(r"""
        Which values can a floating-point number have if it has only one byte? Finer steps mean less
        range, because after the sign only $7$ bits are left. Each of them can belong to the
        *exponent*, which holds a power of two, or to the *fraction*, which divides the way to the
        next power into equal steps. So GPUs have two formats. The names count the bits: `E4M3` has
        `4` bits of exponent and `3` of *mantissa*, another word for the fraction; `E5M2` has `5`
        and `2`.

        By hand:

        - *Steps.* From $1$ to $2$, `E4M3` has $2^3 = 8$ steps: $1, 1.125, 1.25$ and so on. `E5M2`
          has $2^2 = 4$: $1, 1.25, 1.5, 1.75$. A number between two of these values is stored as the
          nearer one.
        - *Range.* The `5` bits of exponent in `E5M2` have $2^5 = 32$ codes. The lowest is for zero
          and values near it, the highest for infinity and *not a number*. The other $30$ are the
          powers from $2^{-14}$ to $2^{15}$. The `4` bits in `E4M3` have $2^4 = 16$ codes. Only the
          lowest is set aside. The other $15$ are the powers from $2^{-6}$ to $2^8$.
        - *Largest value.* In `E5M2` it is three steps above $2^{15}$: $1.75 \cdot 2^{15} = 57344$.
          In `E4M3` the seventh step above $2^8$ stands for *not a number*, so the sixth is the
          largest value: $1.75 \cdot 2^8 = 448$.

        PyTorch has both formats, and `torch.finfo` lists the lowest and the highest value:
    """)
    fields = layout(E4M3), layout(E5M2)  # @hide
    assert fields == ((1, 4, 3), (1, 5, 2)), "E4M3 has 4 bits of exponent and 3 of fraction, E5M2 5 and 2."  # @hide
    codes: UInt8[Tensor, "code"] = torch.arange(256).to(torch.uint8)  # @hide
    fine: Float[Tensor, "code"] = codes.view(E4M3).float()  # @hide
    wide: Float[Tensor, "code"] = codes.view(E5M2).float()  # @hide
    assert codes.view(E4M3).nbytes == 256, "Each value takes one byte."  # @hide
    distinct = fine[fine.isfinite()].unique().numel()  # @hide
    assert distinct == 253, "E4M3 has 253 finite values, zero counted once."  # @hide
    special = fine.isinf().sum().item(), fine.isnan().sum().item()  # @hide
    assert special == (0, 2), "In E4M3 no pattern is infinity, and 2 are NaN."  # @hide
    special = wide.isinf().sum().item(), wide.isnan().sum().item()  # @hide
    assert special == (2, 6), \
        "In E5M2 2 patterns are infinities, and 6 are NaN."  # @hide
    e4m3 = torch.finfo(torch.float8_e4m3fn)
    e5m2 = torch.finfo(torch.float8_e5m2)
    assert (e4m3.min, e4m3.max) == (-448, 448), \
        "The numbers of E4M3 lie between -448 and 448."
    assert (e5m2.min, e5m2.max) == (-57344, 57344), \
        "The numbers of E5M2 lie between -57344 and 57344."
    assert e5m2.max / e4m3.max == 128.0, \
        "The largest value of E5M2 is 128 times that of E4M3."
    least = fine[fine > 0].min().item(), wide[wide > 0].min().item()  # @hide
    assert least == (2**-9, 2**-16), \
        "The smallest positive values are 2**-9 in E4M3 and 2**-16 in E5M2."  # @hide
    assert e5m2.eps / e4m3.eps == 2.0, "The gaps of E5M2 are twice as wide."  # @hide
    figure(byte_figure(fine[fine > 0].tolist(), wide[wide > 0].tolist()), caption=r"""
        Every positive value of the two formats, a line for each. The lowest lines, down to zero,
        are the values with the lowest code of the exponent.
    """, alt=rf"""
        Two columns of horizontal ticks on a logarithmic axis. The column for E4M3 is dense and ends
        at {torch.finfo(E4M3).max:.0f}; the column for E5M2 has half as many ticks per doubling and
        stretches from far below the first of E4M3 up to {torch.finfo(E5M2).max:.0f}.
    """)
    refused = message_of(lambda: codes.view(E4M3) + codes.view(E4M3))  # @hide
    assert "not implemented" in refused, "Adding two such tensors is refused."  # @hide
    note(r"""
        Which one is used for what? The paper that proposed both formats in `2022`, by authors from
        NVIDIA, Arm and Intel, advises `E5M2` for gradients, which need more range, and `E4M3` for
        weights and activations [@micikevicius2022; @ofp8]. NVIDIA's Transformer Engine, a library
        of layers that multiply floats of one byte, began with this recipe [@transformer-engine]. In
        a newer one each block of a tensor has a scale, and so a range of its own, and `E4M3` is
        enough for the gradients as well [@te-blockwise]. (Values are divided by their scale before
        they are stored.)
    """)
    question(r"""
        From `16` to `32`, `E4M3` has eight equal steps, and `E5M2` has four. Which two values do
        `E4M3` and `E5M2` store for `18.5`?
    """, answer=(cast(18.5, E4M3), cast(18.5, E5M2)),
        check=(2.0 * round(18.5 / 2), 4.0 * round(18.5 / 4)),
        why=r"""
            `E4M3` has the values `16, 18, 20, …`, and `18` is the nearest. `E5M2` has `16, 20, …`,
            and `20` is nearer to `18.5` than `16`.
        """)


def running_sum(
    term: float, count: int, dtype: torch.dtype, start: float = 0.0
) -> float:
    """The total after a term was added `count` times, rounded to a format after each addition."""
    total = torch.tensor(start, dtype=dtype)
    step = torch.tensor(term, dtype=dtype)
    for _ in range(count):
        total = total + step
    return float(total)


def a_running_sum_stalls() -> None:
    """A long sum that is kept in a low-precision format stops growing."""
    note(r"""
        Training adds up long sums: losses, averages, the terms of matmuls. Can a low-precision
        format hold the total? Only up to a point. Then the total stops growing, because each new
        term is too small to reach the next number of the format.

        Add `1` again and again in `bfloat16`, which can represent every integer up to `256`. The
        next number after `256` is $258$. The sum `256 + 1` lies halfway between the two. Of two
        equally near numbers, rounding takes the one whose last bit is zero (round half to even),
        here `256`. So the total stays at `256`.

        `running_sum` adds `1` to a total `4000` times, and rounds it to a format after each
        addition:
    """)
    in_bfloat16 = running_sum(1.0, 4000, torch.bfloat16)  # @inspect in_bfloat16  # @unnoticed: 4000: long after it has stopped
    in_float16 = running_sum(1.0, 4000, torch.float16)  # @inspect in_float16  # @unnoticed: 4000: long after it has stopped
    in_float32 = running_sum(1.0, 4000, torch.float32)  # @inspect in_float32
    assert in_bfloat16 == 2**8, "In bfloat16 the total stops at 256."
    assert in_float16 == 2**11, "In float16 the total stops at 2048."
    assert in_float32 == 4000, "In float32 the total is exact."
    note(r"""
        `float16` stops later, because its fraction has $10$ bits, and that of `bfloat16` has $7$.
        It can represent every integer up to $2^3 \cdot 256 = 2048$.

        The fix: keep the *total* in `float32`, where adding `1` stops only at $2^{24}$, because the
        fraction has $23$ bits. The terms may stay in low precision. PyTorch's own `sum` does this,
        and rounds only once, at the end. (Here that changes nothing, because `bfloat16` has the
        number `4000`.)
    """)

    def totals(count: int, term: float) -> dict[str, float]:  # @hide
        three = [*NAMES.items()][:3]
        return {name: running_sum(term, count, d) for name, d in three}

    terms = torch.ones(4000, dtype=torch.bfloat16)
    at_once = terms.sum().item()  # @inspect at_once
    assert terms.dtype == torch.bfloat16, "The terms are in bfloat16."  # @hide
    assert at_once == 4000, "PyTorch's sum of the 4000 terms is 4000."
    rows = torch.arange(20_000).view(20, 1000) % 101  # @hide
    assert torch.equal(rows.bfloat16().sum(1), rows.sum(1).bfloat16()), \
        "PyTorch's sum of a row in bfloat16 is the exact sum, rounded once."  # @hide
    grid = explore(totals, over={"count": [2**i for i in range(13)], "term": [0.25, 1.0, 4.0]},
        at={"count": 256, "term": 1.0}, kind="curve",
        do="Raise the count. Where does each format stop? Then make the term smaller.",
        see=r"""
            With terms of `1`, `bfloat16` stops at `256` and `float16` at `2048`. With terms of a
            quarter they stop at `64` and `512`, a quarter of that: gaps grow with the total, so a
            smaller term is lost at a smaller total.
        """,
        caption="A running total, kept in three formats, against the number of terms added.",
        alt="Three lines that rise together; two of them turn level, first one, then the other.")  # @hide

    ends = {term: [*grid[4096, term].values()] for term in (0.25, 1.0, 4.0)}  # @hide
    assert ends[0.25] == [64, 1024, 512], "With terms of a quarter, the totals are these after 4096 terms."  # @hide
    assert ends[1.0] == [256, 4096, 2048], "With terms of one, the totals are these after 4096 terms."  # @hide

    question("In `float16`, adding `1` again and again stops at `2048`, where the numbers are `2` apart. This distance doubles with every power of two. Where does the total stop if `4` is added instead?",
             answer=running_sum(4.0, 4000, torch.float16),
        wrong={
            "That is where additions of 1 stop.": 2048,
            "That would be if nothing were lost.": 16000,
        },
        check=4.0 * in_float16,
        hint="Beyond what value are the numbers of `float16` so far apart that `4` is half of the distance?",
             why=r"""
                 At a power of two, a term that is half of the distance to the next number is lost.
                 The term `4` is half of `8`. The numbers are `8` apart two powers of two higher
                 than where they are `2` apart, at `4 * 2048 = 8192`.
             """)


def small_updates_are_lost() -> None:
    """A weight in `bfloat16` loses small updates; a `float32` master copy keeps them."""
    note(r"""
        Training changes each weight by many small updates. What happens to them if the weight is
        kept in `bfloat16`? All of them can be lost, because an update that is smaller than half the
        distance to the next number is rounded away.

        Take a weight of `1`. With its $7$ bits of fraction, `bfloat16` has $2^7 = 128$ steps from
        $1/2$ to $1$. Each is $1/2 / 128 = 1/256$, about $0.004$, so the next smaller number is
        about $0.996$. An update of `-0.001` should lead to $0.999$. But that is nearer to `1` than
        to $0.996$, so it is rounded back to `1`. `cast` rounds a number to a format:
    """)
    updated = cast(0.999, torch.bfloat16)  # @inspect updated
    assert updated == 1, "0.999 is rounded back to 1."
    note(r"""
        The next update starts from `1` again. So `1000` updates of `-0.001`, which should take the
        weight to zero, do nothing. `running_sum` adds them one by one and rounds after each:
    """)
    coarse = running_sum(-0.001, 1000, torch.bfloat16, start=1.0)  # @inspect coarse  # @unnoticed: 1000: none of them moves it
    assert coarse == 1.0, "In bfloat16 the weight has not moved."
    fine = running_sum(-1e-3, 1000, torch.float32, start=1.0)  # @hide
    assert round(1 - fine, 4) == 1.0, "In float32 the weight reaches zero, up to rounding."  # @hide
    gap = 1 - (torch.tensor(1.0, dtype=torch.bfloat16).view(torch.int16) - 1).view(torch.bfloat16).item()  # @hide
    assert gap == 2**-8, "The next bfloat16 below one is 1/256 away."  # @hide
    assert 0.25 < 1e-3 / gap < 0.26, "An update is a quarter of this gap."  # @hide
    note(r"""
        The fix is a *master copy*: the weight is kept in `float32`, where the updates are added.
        The model computes with a copy of it that is rounded to `bfloat16`:
    """)
    master = torch.tensor(1.0)  # in float32
    for _ in range(1000):
        master -= 0.001
    weight = master.bfloat16()  # @inspect weight
    assert weight.dtype == torch.bfloat16, "The model uses a bfloat16."  # @hide
    assert round(1 - weight.item(), 4) == 1.0, \
        "With a master copy, the weight reaches zero, up to the rounding of float32."
    counts = [*range(0, 1001, 50)]  # @hide
    ways = {"bfloat16": torch.bfloat16, "float32, as in the master copy": torch.float32}  # @hide
    weights = {
        name: [running_sum(-1e-3, n, dtype, start=1.0) if n else 1.0 for n in counts] for name, dtype in ways.items()
    }  # @hide
    assert [line[-1] for line in weights.values()] == [coarse, fine], "The lines end there."  # @hide
    figure(curves(counts, weights, "updates", "weight"), caption=r"""
        A weight that begins at `1` and gets updates of `-0.001`, kept in two formats.
    """, alt="Two lines against the number of updates. One stays at one, the other falls straight to zero.")
    question(r"""
        Updates of `-0.003` do move a weight of `1` in `bfloat16`, because the next smaller number
        is about `0.004` away. From a weight of `2`, the next smaller number is about `0.008` away.
        A weight of `2` gets `100` updates of `-0.003`. Where does it end?
    """, answer=running_sum(-0.003, 100, torch.bfloat16, start=2.0),
        wrong={
            "That would be right if no update were lost.": 1.7,
        },
        check=2.0,
        hint="Is an update more or less than half the distance to the next number?",
        why=r"""
            Half of the distance is about `0.004`. The update is less than that, so each time the
            weight is rounded back to `2`. The larger a weight, the larger the updates that it
            loses.
        """)


def round_randomly(x: Float[Tensor, "n"]) -> BFloat16[Tensor, "n"]:  # @show
    """Rounds each element up or down to a bfloat16 at random; the nearer one has the higher probability."""
    noise = torch.randint(0, 2**16, x.shape, dtype=torch.int32)
    carried = x.view(torch.int32) + noise  # the bits of x, read as integers
    kept = carried & ~0xFFFF  # the last 16 bits become zero
    return kept.view(torch.float32).bfloat16()


@aside
def rounding_at_random_saves_them() -> None:
    """Rounded at random, small updates take effect on average, even in `bfloat16`."""
    note(r"""
        A weight of `1` in `bfloat16` [loses every update](#small_updates_are_lost) of `-0.001`,
        because the next smaller number is `1/256` away, and $0.999$ is rounded back to $1$. Does
        the weight have to be kept in `float32` then? Not because of this: round up or down *at
        random* instead, with probabilities that make the average right [@gupta2015].

        By hand, round $4.3$ to an integer. Add a random digit, $0$ to $9$, to its last digit, and
        then drop the last digit. If the random digit is $7$, $8$ or $9$, the sum is at least $5.0$,
        and the result is $5$; otherwise it is $4$. So in $3$ of $10$ cases $4.3$ is rounded up, and
        the average is $0.3 \cdot 5 + 0.7 \cdot 4 = 4.3$.

        `round_randomly` does the same with bits. A `bfloat16` is the
        [first `16` bits](#bfloat16_is_the_top_half_of_float32) of a `float32`. So it adds a random
        number of `16` bits to the last `16`. If the sum needs more than `16` bits, the carry raises
        the first `16` by one, to the next `bfloat16`. Then the last `16` are set to zero.

        From $1$, $0.999$ is about a quarter of the way to the next smaller number, and is rounded
        to it with this probability. So at first one update in four moves a weight, by about $4$
        times the update. Give `4096` weights of `1`, enough for an average, `1000` updates each,
        which should take them to zero:
    """)
    w = torch.ones(4096, dtype=torch.bfloat16)  # @unnoticed: bfloat16 -> float32, dtype= dropped: each rounding makes it bfloat16
    for _ in range(1000):
        w = round_randomly(w.float() - 0.001)
    average = w.float().mean().item()  # @inspect average  # @unnoticed: .float(): exact enough
    assert round(1 - average, 2) == 1.0, \
        "On average, all updates had their effect: the weights went from 1 to 0."
    spread = w.float().std().item()  # @inspect spread
    assert 0.038 < spread < 0.044, \
        "The standard deviation of the weights is about 0.04."
    note("The price is noise: a single weight does not end at zero, but somewhere around it.")
    misbelief("Parameters and optimizer state must be float32, or training is unstable.", r"""
        Others have trained models with less, in other ways. A paper keeps each element of the
        optimizer state in one byte, and still trains well [@dettmers2022]. Transformer Engine's
        Adam can keep both averages in floats of one byte [@te-adam]. Peng and others store and send
        gradients in them [@peng2023]. (The run above trains no model.)
    """)
    question(r"""
        `1000` weights are exactly `4` in `bfloat16`, and the next number below is `1/64` away. An
        update of `-1/640` is rounded at random. How many of the weights move, on average?
    """, answer=round(1000 * (1 / 640) / (1 / 64)),
        check=round(1000 - 1000 * (torch.tensor([4 - 1 / 640]).view(torch.int32).item() & 0xFFFF) / 2**16), unit="weights",  # type: ignore[operator]
        wrong={
            "Rounded to the nearest, none would; at random some do.": 0,
            "Not all: the probability that a weight moves is the update divided by the gap.": 1000,
        },
        why=r"""
            The update is a tenth of the way to the next number, so a weight moves in a tenth of all
            cases: `1000 / 10 = 100` weights.
        """)


@aside
def scaling_the_loss_saves_small_gradients() -> None:
    """Multiply the loss by a large number, and a gradient of `1e-8` survives in `float16`."""
    note(r"""
        A gradient of `1e-8` [becomes zero in `float16`](#small_values_vanish_in_float16), because
        it is less than half of the smallest value there, about $6 \cdot 10^{-8}$. How can a model
        be trained in this format? Multiply the loss by a large number before the backward pass.
        That multiplies every gradient by the same number, so `1e-8` is no longer too small.
        Afterwards divide the gradients by this number in `float32`, which can hold `1e-8`. This is
        *loss scaling* [@micikevicius2018].

        By hand, with the factor `65536`: the gradient becomes `1e-8 * 65536 = 6.6e-4`, far above
        the smallest value. Divided by `65536`, it is `1e-8` again, up to rounding. `cast` rounds a
        number to a format:
    """)
    lost = cast(1e-8, torch.float16)  # @inspect lost
    by_hand = cast(1e-8 * 65536, torch.float16) / 65536  # @inspect by_hand
    assert lost == 0.0, "Without the factor the gradient is lost."  # @zero: it underflows
    assert 0.999 < by_hand / 1e-8 < 1, \
        "With the factor it survives, to three digits."
    note(r"""
        In a training program, PyTorch's `GradScaler` multiplies and divides. Its factor is `65536`
        at first. In this small example, `w` is a weight in `float32`, and the model computes with
        `half`, a copy of it in `float16`. Then `float()` converts back to `float32` for the loss. A
        gradient has the format of its tensor. So the gradient of `half` is in `float16`, where
        `1e-8` would be rounded to zero:
    """)
    w = torch.tensor([1.0], requires_grad=True)  # @unnoticed: 1.0: the gradient is the same at any weight
    half = w.half()  # the copy in float16
    loss = (half.float() * 1e-8).sum()  # its gradient is 1e-8  # @unnoticed: .float(): any wider format
    loss.backward(retain_graph=True)  # @hide
    assert w.grad is not None, "There is a gradient."  # @hide
    assert w.grad.item() == 0.0, "Without scaling, the gradient of w is zero."  # @hide  # @zero: it underflows
    optimizer = torch.optim.SGD([w])
    optimizer.zero_grad()  # @hide
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(loss).backward()  # multiplies the loss by 65536
    scaler.unscale_(optimizer)  # divides the gradient of w by 65536
    assert scaler.get_scale() == 2**16, "The scaler begins with 2**16."  # @hide
    recovered = w.grad.item()  # @inspect recovered
    assert 9.996e-9 < recovered < 9.998e-9, \
        "The gradient of w is 1e-8, to three digits."
    assert recovered == by_hand, "Scaling, casting to float16 and dividing by hand gives the same gradient."  # @hide
    note(r"""
        In a training loop two calls follow. `scaler.step(optimizer)` skips the step if a gradient
        is infinite or not a number, and `scaler.update()` then lowers the factor [@pytorch-amp].
        `bfloat16` [can hold `1e-8`](#bfloat16_is_the_top_half_of_float32), so this gradient needs
        no scaling in that format.
    """)
    question(r"""
        The largest `float16` is `65504`. About how large can a gradient be without overflowing when
        it is multiplied by `65536`?
    """, answer=torch.finfo(torch.float16).max / scaler.get_scale(),
        check=65504 / 2**16, within=0.01,
        wrong={
            "That is without the factor.": 65504,
        },
        why="`65504` divided by `65536` is a little less than one. So a factor can also be too large: then large gradients become infinite.")


def autocast_chooses_for_each_operation() -> None:
    """Mixed precision chooses a format for each operation."""
    note(r"""
        Should a whole training step be computed in `bfloat16`, with `2` bytes per number instead of
        the `4` of `float32`? Its matmuls, yes; its running sums, no. A running sum in `bfloat16` is
        rounded after each addition, a matmul only when it reads its inputs and stores its output.

        By hand, add `256 + 1 + 1`. After `256`, the next number in `bfloat16` is `258`.

        - *Running sum in `bfloat16`.* `256 + 1 = 257` lies halfway between two numbers of this
          format, and [is rounded to `256`](#bfloat16_is_much_coarser). The second addition does the
          same: the result is `256`.
        - *Running sum in `float32`, only the result in `bfloat16`.* The sum is `258`, and `258` is
          stored exactly.

        A matmul on a GPU works in the second way: its inputs and its output are rounded to
        `bfloat16`, once each, and the products in between are added up in `float32`. The other sums
        of a training step would be kept in the first way: in `bfloat16`
        [long sums stall](#a_running_sum_stalls), and
        [small updates of a weight are lost](#small_updates_are_lost).

        So *mixed precision* chooses a format for each operation. In PyTorch `torch.autocast` does
        this. Run one layer, a matmul with `8 * 8` weights, and the mean squared error, which is a
        sum:
    """)
    in_bfloat16 = torch.tensor(256.0, dtype=torch.bfloat16) + 1 + 1  # @hide
    rounded_once = (torch.tensor(256.0) + 1 + 1).bfloat16()  # @hide
    assert (in_bfloat16.item(), rounded_once.item()) == (256, 258), \
        "256 + 1 + 1 is 256 if each sum is rounded to bfloat16, and 258 if only the last is."  # @hide
    x, target = torch.randn(4, 8), torch.randn(4, 8)
    layer = nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # @unnoticed: dtype= dropped: the default on a CPU
        output = layer(x)  # a matmul  # @inspect output.dtype
        loss = nn.functional.mse_loss(output, target)  # @inspect loss.dtype
        q = x.view(1, 1, 4, 8)  # @hide
        attended = nn.functional.scaled_dot_product_attention(q, q, q)  # @hide
    assert output.dtype == torch.bfloat16, \
        "The output of the layer is in bfloat16."
    assert attended.dtype == torch.bfloat16, "The products of attention are in bfloat16."  # @hide
    assert loss.dtype == torch.float32, "The loss is computed in float32."
    note(r"""
        And the weights? For the matmul, `autocast` makes a copy of them in `bfloat16`. The weights
        themselves stay in `float32`, as `nn.Linear` made them, and PyTorch gives their gradient the
        same format. Both are running sums: an optimizer adds small updates to the weights, and
        several backward passes may add to one gradient.
    """)
    loss.backward()
    assert layer.weight.grad is not None, "The backward pass leaves a gradient."  # @hide
    gradient = layer.weight.grad  # @hide
    assert layer.weight.dtype == torch.float32, \
        "The weights are in float32."
    assert layer.weight.grad.dtype == torch.float32, \
        "Their gradient is in float32."
    digits = gradient.bfloat16().float()  # @hide
    assert torch.equal(gradient, digits), \
        "The gradient has only the digits of a bfloat16: its matmul was in bfloat16."  # @hide
    note(r"""
        So the rule of thumb: run matmuls in `bfloat16`. Keep running sums in `float32`: losses,
        gradients, and the weights that the optimizer updates.
    """)
    question(r"""
        Under autocast, a layer turns `4` rows of `8` elements into `4` rows of `8`. Its weights are
        a matrix of `8 * 8`. How many bytes do the layer's output and the gradient of its weights
        need together?
    """, answer=output.nbytes + gradient.nbytes,
        wrong={
            "The gradient is stored in float32, 4 bytes per element.": 2 * (4 * 8) + 2 * (8 * 8),
            "The output of a matmul is in bfloat16, 2 bytes per element.": 4 * (4 * 8) + 4 * (8 * 8),
        },
        hint="Which of the two is the output of a matmul, and to which are values added?",
        check=2 * (4 * 8) + 4 * (8 * 8), unit="B", why=r"""
            The output of a matmul is in `bfloat16`: `4 * 8` elements of `2` bytes are `64`. The
            gradient is stored in `float32`: `8 * 8` elements of `4` bytes are `256`.
        """)
