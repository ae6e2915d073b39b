"""How often a matmul loads its elements, when it works in tiles."""
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from plots import stacks
from torch import Tensor

from litbook import explore, note, question


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
    """A matmul in tiles loads each element fewer times."""
    note(r"""
        A matmul uses an element of `x` for every column of the result. Does the GPU have to load
        the element from memory each time? No: what it loads stays for a while in a fast memory on
        the chip, the *cache*. The cache is too small for the largest matrices. But what is in it
        can be used several times.

        By hand, for two matrices of `8 * 8` elements:

        - Compute one entry of the result. It needs a row of `x` and a column of `w`, so load
          `8 + 8 = 16` elements for one entry.
        - Compute a square of `2 * 2` entries together. It needs two rows and two columns, so load
          `16 + 16 = 32` elements for four entries. That is `8` per entry, half of what it was,
          because each loaded element is used for two entries.

        A square of `t * t` elements, of any of the matrices, is called a *tile*. With larger tiles
        a matmul loads less, because each loaded element is used $t$ times.

        The cache may be too small for `t` whole rows and columns, so they are loaded in pieces:
        `in_tiles` multiplies a tile of `x` by a tile of `w`, and adds the product to a tile of the
        result. For random `x` and `w` of `8 * 8` elements, `loads` counts the elements that it
        loads with tiles of each size:
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
    note(r"""
        How large must the tiles be on a GPU? A matmul of $n \times n$ matrices does $2n^3$ FLOPs.
        Each of its $(n/t)^3$ steps loads two tiles of $t^2$ elements, together $2n^3/t$ elements.
        An element of `bfloat16` has $2$ bytes, so that is $4n^3/t$ bytes. FLOPs divided by bytes
        are $2n^3 / (4n^3/t) = t/2$.

        In a second an H100 can do `989.5e12` FLOPs, and its memory moves `3.35e12` bytes
        [@nvidia-h100]. That is `989.5 / 3.35`, about `295` FLOPs for each byte. For $t/2$ to be
        `295`, tiles need `2 * 295 = 590` rows and columns. With smaller ones the matmul would be
        *memory-bound*: the arithmetic would wait for the loads. Do three tiles of that size fit
        into the cache, one of `x`, one of `w` and one of the result?
    """)
    cache = 3 * (2 * 295)**2 * 2  # @inspect cache as B
    assert cache == 2_088_600, "Three such tiles need 2.1 MB."
    assert cache < 50 * 10**6, "The H100's cache of 50 MB has room for them."  # @hide
    note(r"""
        Yes: the cache of an H100 holds `50` MB [@nvidia-hopper]. So with such tiles, by this count,
        the loads from memory need not hold up a large matmul.
    """)
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
