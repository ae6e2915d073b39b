"""Twenty numbers that nothing backs, each between brackets, among many that something does."""

from litbook import figure, image, link, misbelief, note, question


def main() -> None:
    note("This lecture has ⟦7⟧ parts.")
    numbers_in_prose()


def numbers_in_prose() -> None:
    """One sum stops at 256."""
    width, rate = 256, 989.5e12
    total = float(width)
    assert total == 256, "256 of 1024"
    note(
        "An H100 promises ⟦989.5⟧ TFLOP/s in `bfloat16`, "  # 16 bits
        "and a run takes ⟦two weeks⟧ or " f"{total:.0f} days, ⟦50⟧ %, "
        r"of \d ⟦16⟧ " '''and
        ⟦1,024⟧ more.'''
    )
    note(f"{total} of {width:>10,} is {total / width:.1%}, not 12 of {dict(a=3)['a']}; GPT-3, E4M3 or 128K [@key].")
    note("# 3. A heading\n\n1. one\n2. of ⟦1/3⟧\n\n| a | ⟦0.25⟧ |\n|---|---|\n| `x[4]` | $2^{10}$ |")
    note("In code, `256`, `rate = 5` and `x[5:6]`; but `⟦257⟧` is no code of this section.")
    note("```\n17 + 18\n```\n[Here](https://example.org/19), https://example.org/20 and ⟦70B⟧.")
    misbelief("It takes ⟦2.3⟧ GB.", f"It takes {total} GB, or ⟦2.4e9⟧ bytes.")
    misbelief("It takes 2.3 GB [@key].", "It does.")
    question("How many of ⟦3rd⟧ kind?", answer=7 * 3, unit="B22", hint="Fewer than ⟦fifteen billion parameters⟧.")
    figure(None, caption="The best of ⟦31⟧ runs.", alt=f"A line to {total}, at step ⟦32⟧.")
    image("33.png", alt="A card.", caption="It has ⟦80⟧ GB".replace("GB", "34"))
    link("https://example.org/35", "all ⟦36⟧ of them")
    rows = [f"| {i} | ⟦37⟧ |" for i in range(3)]
    note("| n | m |\n|---|---|\n" + "\n".join(rows) + f"\n\nand ⟦1e-8⟧ beside {rate}")
