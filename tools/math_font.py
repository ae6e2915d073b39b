"""STIX Two Math -> `tools/litbook/html/assets/math.woff2`: what formulas here are made of, and no more.

    python tools/math_font.py STIXTwoMath-Regular.ttf

To be run again for another version of the font, or for more characters; needs fonttools and brotli.
The font is in the package ziamath, and at https://github.com/stipub/stixfonts. Its licence goes with it as
`math-licence.txt`, and allows to ship a part of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset, ttLib

OUT = Path(__file__).parent / "litbook" / "html" / "assets" / "math.woff2"
CHARACTERS = """
    20-7E A0 AC B0 B1 B7 D7 F7 131 237 2C6 2C7 2D8 2D9 2DA 2DC 300-308 30A 30C 332 338 391-3F6
    2000-200A 2013 2014 2016 2020-2022 2026 2032-2034 2044 2057 2061-2064 20D6 20D7 20DB
    2102 210D-2113 2115 2118-211A 211B-211D 2124 212B 212C 2130 2131 2133 2135 2136
    2190-21FF 2200-22FF 2308-230B 23B4 23B5 23DC-23E1
    25A0 25A1 25B3 25BD 25C7 25CB 25CF 2605 2660-2663 266D-266F 2713 27C2 27E6-27EB 27F5-27FF
    2A00-2A06 2A0C 2A2F 2A3F 2A7D 2A7E 2A85 2A86 2AAF 2AB0
    1D400-1D433 1D434-1D467 1D49C-1D4CF 1D538-1D56B 1D6A4 1D6A5 1D6A8-1D6E1 1D6E2-1D71B 1D7CE-1D7E1
"""  # bold, italic, script and double-struck letters; Greek; arrows; operators; brackets that grow
PRIMES = {0x2032, 0x2033, 0x2034}


def characters() -> set[int]:
    """The code points of CHARACTERS."""
    ends = (item.split("-") for item in CHARACTERS.split())
    return {point for low, *high in ends for point in range(int(low, 16), int((high or [low])[0], 16) + 1)}


def main(source: str) -> None:
    """Write the font, and say how large it is."""
    font = ttLib.TTFont(source)
    # Other shapes for small letters would double the size, and Chromium never asks for them. Primes need
    # theirs: they are always set small, and are a speck without.
    small = {point: f"{font.getBestCmap()[point]}.ssty" for point in PRIMES}
    for table in font["cmap"].tables:
        table.cmap.update({point: name for point, name in small.items() if point in table.cmap})
    options = subset.Options(flavor="woff2", layout_features=[], hinting=False, name_IDs=[0, 1, 5, 13, 14])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters())
    subsetter.subset(font)
    subset.save_font(font, OUT, options)
    print(f"{OUT}: {OUT.stat().st_size:,} bytes, {len(font.getBestCmap())} characters")


if __name__ == "__main__":
    main(sys.argv[1])
