"""How often a matmul loads its elements, when it works in tiles."""
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from plots import stacks
from torch import Tensor

from litbook import aside, explore, note, question


def in_tiles(  # @show
    x: Float[Tensor, "n n"], w: Float[Tensor, "n n"], tile: int
) -> tuple[Float[Tensor, "n n"], int]:
    """`x @ w` in tiles of `tile * tile` elements. Returns the product, and how many elements it loads."""
    y, loaded = torch.zeros(x.shape), 0
    starts = range(0, len(x), tile)  # where tiles begin
    for i, j, k in product(starts, repeat=3):
        left = x[i:i + tile, k:k + tile]  # load a tile of x
        right = w[k:k + tile, j:j + tile]  # load a tile of w
        loaded += left.numel() + right.numel()
        y[i:i + tile, j:j + tile] += left @ right
    return y, loaded


def moment(n: int, tile: int, eighths: int) -> dict[str, Any]:  # @hide
    """Where the product is when so many eighths of its steps are done: the last step, and what was loaded."""
    steps = [*product(range(0, n, tile), repeat=3)]
    done = -(-len(steps) * eighths // 8)
    i, j, k = steps[max(done - 1, 0)]
    return {"row": i, "column": j, "inner": k, "steps": done, "loaded": done * 2 * tile**2}


def a_matmul_in_tiles_loads_less() -> None:
    """A matmul in tiles loads each element from memory fewer times."""
    note(r"""
        A matmul uses each element of `x` once for every column of the result. Does the GPU have to
        load it from memory each time? No: elements stay for a while in a *cache*, a fast memory on
        the chip, and can be used there several times. The cache is too small for the largest
        matrices, so it matters what is computed together.

        By hand, for two matrices of `8 * 8` elements, whose product has `64` entries:

        - Compute one entry of the result at a time. It needs a row of `x` and a column of `w`, so
          load `8 + 8 = 16` elements. For `64` entries that is `64 * 16 = 1024` loads.
        - Compute a square of `2 * 2` entries together. It needs two rows and two columns, so load
          `16 + 16 = 32` elements. There are `64 / 4 = 16` such squares, so that is `16 * 32 = 512`
          loads, half of what it was, because each loaded element is used for two entries.

        A square of `t * t` elements, of any of the matrices, is called a *tile*. In tiles of this
        size, an element is used for `t` entries each time it is loaded.

        The cache may be too small for `t` whole rows and columns, so they are loaded in pieces:
        `in_tiles` loads a tile of `x` and a tile of `w`, multiplies them, and adds the product to a
        tile of the result, which stays in the cache meanwhile. It returns the result, and the
        number of elements of `x` and `w` that it has loaded. For random `x` and `w` of `8 * 8`
        elements:
    """)
    n = 8  # @hide
    x: Float[Tensor, "8 8"] = torch.randint(-9, 10, (n, n)).float()  # @hide
    w: Float[Tensor, "8 8"] = torch.randint(-9, 10, (n, n)).float()  # @hide
    loads = {tile: in_tiles(x, w, tile)[1] for tile in (1, 2, 4, 8)}  # @inspect loads
    assert torch.equal(in_tiles(x, w, tile=4)[0], x @ w), \
        "In tiles, the product is the same as x @ w."
    assert loads == {1: 1024, 2: 512, 4: 256, 8: 128}, \
        "Tiles twice as wide halve the loads."
    assert loads[8] == x.numel() + w.numel(), \
        "With one tile for the whole matrix, each element is loaded once."
    assert loads == {tile: 2 * n**3 // tile for tile in loads}, "A matmul loads 2 * n**3 / tile elements."  # @hide
    grid = explore(lambda tile, eighths_done: moment(n, tile, eighths_done),
        over={"tile": [*loads], "eighths_done": range(9)}, at={"tile": 4, "eighths_done": 5}, module="pictures/tiles.js",
        still=stacks({f"tiles of {t} * {t}": {"loaded": count} for t, count in loads.items()}, "elements loaded"),
        do="Move through the product with tiles of `1`, then with tiles of `4`. How many elements does each load in the end?",
        see="At every moment, tiles of `4` have loaded a quarter of the elements that tiles of `1` have loaded. The larger the tile, the more of the cache it fills.",
        caption="`x` on the left, `w` above the result. The tiles in the cache, one of each matrix, are gold. Complete entries of the result are green.",
        alt=r"""
            Three grids of eight by eight cells: x at the left, w above, their product at the lower
            right. A tile of each is marked, and a bar below shows how many elements were loaded.
        """)  # @hide
    assert all(grid[tile, 8]["loaded"] == count for tile, count in loads.items()), \
        "At its end, the picture has loaded what was counted."  # @hide
    note("So the larger the tiles, the fewer the loads, as long as the cache has room for the tiles.")
    small = torch.ones(64, 64)  # @hide
    question(r"""
        Two matrices of `4096 * 4096` elements are multiplied in tiles of `128 * 128`. How many
        times is each element of the left matrix loaded?
    """, answer=4096 / 128,
        wrong={
            "That is how often an element is used after it has been loaded.": 128,
            "That would be one load for each column of the result.": 4096,
        },
        check=in_tiles(small, small, 2)[1] / (2 * small.numel()),
        hint="How many tiles lie side by side in a row of the result? Each of them needs the element once.",
        why=r"""
            A row of the result has `4096 / 128 = 32` tiles. For each of them, the elements of that
            row of `x` are loaded once.
        """)


@aside
def tiles_must_be_large_enough() -> None:
    """By a count of the loads into the cache, a `bfloat16` matmul on an H100 needs square tiles at least about 590 elements wide."""
    note(r"""
        How large must the tiles of a matmul be, so that a GPU does not wait for its memory? A
        [tile](#a_matmul_in_tiles_loads_less) is a square of `t * t` elements, loaded from memory
        into the cache. While the GPU multiplies two tiles, it can load the next two. It waits if
        loading takes longer than multiplying. Larger tiles help, because the arithmetic grows
        faster than the loads.

        By hand, for elements in `bfloat16`, `2` bytes each:

        - Two tiles of `2 * 2` have `2 * 4 = 8` elements, `8 * 2 = 16` bytes. Their product has `4`
          entries. Each is a sum of `2` terms, and a term costs `2` FLOPs, a multiplication and an
          addition: `4 * 2 * 2 = 16` FLOPs. That is `1` FLOP per byte.
        - Two tiles of `4 * 4` have `2 * 16 = 32` elements, `32 * 2 = 64` bytes. Their product costs
          `16 * 4 * 2 = 128` FLOPs. That is `2` FLOPs per byte.

        So twice the width allows twice as many FLOPs per byte. In general, two tiles have
        $2 \cdot t^2$ elements, or $4t^2$ bytes, and their product costs $2t^3$ FLOPs. Divided, that
        is $t/2$ FLOPs per byte.

        In a second, an H100 does at most `989.5e12` FLOPs in `bfloat16`, and its memory delivers at
        most `3.35e12` bytes [@nvidia-h100]. So while one byte arrives, it can do
        $989.5 / 3.35 \approx 295$ FLOPs. The loads take no longer than the arithmetic if $t/2$ is
        at least that:
    """)
    flops_per_byte = 989.5e12 / 3.35e12  # @inspect flops_per_byte
    t = 2 * flops_per_byte  # so that t / 2 = flops_per_byte  # @inspect t
    assert 590 < t < 591, "The tiles have to be about 590 elements wide."
    three_tiles = 3 * t**2 * 2  # 2 bytes for each element  # @inspect three_tiles as B
    assert round(three_tiles / 1e6, 1) == 2.1, \
        "A tile of x, one of w and one of the result need 2.1 MB."
    assert 23 < 50 * 10**6 / three_tiles < 24, \
        "An H100's cache of 50 MB has room for more than 23 times that."
    note(r"""
        The cache of an H100 has `50` MB, for the whole chip [@nvidia-hopper]. So such tiles fit
        into it, and by this count, arithmetic and not memory can limit a matmul of matrices that
        are larger than the tiles. (The count leaves out that the result is written to memory once.)
    """)
    question(r"""
        Suppose an element had `4` bytes instead of `2`, and this GPU did the same number of FLOPs
        in a second. How wide would tiles have to be, so that it does not wait for its memory?
    """, answer=4 * flops_per_byte,
        wrong={
            "Each tile has twice as many bytes, and costs the same FLOPs.": t,
            "With more bytes per element there are fewer FLOPs per byte, so the tiles have to be larger.": flops_per_byte,
        },
        # Tiles of 8 * 8 allow 2 FLOPs per byte, and FLOPs per byte grow as the width:
        check=8 * (989.5 / 3.35) / (2 * 8**3 / (2 * 8**2 * 4)),
        hint="How many bytes do two tiles of `t * t` elements have now, and how many FLOPs does their product cost?",
        unit="elements", within=0.02, why=r"""
            Two tiles now have $8t^2$ bytes, and their product costs $2t^3$ FLOPs, as before. That
            is $t/4$ FLOPs per byte, so $t$ has to be `4 * 295 = 1180`, twice as wide.
        """)
