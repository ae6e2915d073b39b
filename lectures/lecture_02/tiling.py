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
) -> tuple[Float[Tensor, "n n"], list[int]]:
    """`x @ w` in tiles of `tile * tile` elements. Returns the product, and how many elements each step loads."""
    y, loads = torch.zeros(x.shape), []
    for i, j, k in product(range(0, len(x), tile), repeat=3):
        left = x[i:i + tile, k:k + tile]  # loaded
        right = w[k:k + tile, j:j + tile]  # loaded
        y[i:i + tile, j:j + tile] += left @ right
        loads.append(left.numel() + right.numel())
    return y, loads


def moment(n: int, tile: int, eighths: int, loads: list[int]) -> dict[str, Any]:  # @hide
    """Where the product is when so many eighths of its steps are done: the last step, and what was loaded."""
    done = -(-len(loads) * eighths // 8)
    i, j, k = [*product(range(0, n, tile), repeat=3)][max(done - 1, 0)]
    return {"row": i, "column": j, "inner": k, "steps": done, "loaded": sum(loads[:done])}


def a_matmul_in_tiles_loads_less() -> None:
    """A matmul in tiles loads each element fewer times."""
    note(r"""
        The last section counted the bytes of a matmul as if each element was moved once. Is that
        possible? An element of `x` is needed for every column of the result. Arithmetic units
        compute with elements in a small, fast memory next to them, the *cache*. If the cache is too
        small for whole matrices, an element has to be loaded from main memory again.

        How often? First by hand, for two matrices of `8 * 8` elements. Compute the entries of the
        result one after another. Each needs a row of `8` elements and a column of `8`. For all
        `8 * 8` entries that is `(8 + 8) * (8 * 8) = 1024` loads, and every loaded element is used
        once.

        Now compute the result in squares of `4 * 4` entries, called *tiles*. Load a tile of `x` and
        a tile of `w`, and multiply them. Each loaded element is used for `4` entries, because each
        of the `4` rows of one tile is multiplied by each of the `4` columns of the other. So a
        quarter of the loads is enough. `in_tiles` is the whole algorithm:
    """)
    n = 8
    x: Float[Tensor, "8 8"] = torch.randint(-9, 10, (n, n)).float()
    w: Float[Tensor, "8 8"] = torch.randint(-9, 10, (n, n)).float()
    y, loads = in_tiles(x, w, tile=4)
    steps = len(loads)  # @inspect steps
    loaded = sum(loads)  # @inspect loaded
    assert torch.equal(y, x @ w), "In tiles, the product is the same."
    assert (steps, loaded) == (8, 8 * 32), \
        "Eight steps load 32 elements each, 256 in all."
    counts = {tile: sum(in_tiles(x, w, tile)[1]) for tile in (1, 2, 4, 8)}  # @inspect counts
    assert counts == {tile: 2 * n**3 // tile for tile in counts}, \
        "Tiles twice as wide halve the loads."
    assert counts[8] == x.numel() + w.numel(), \
        "With one tile for the whole matrix, each element is loaded once."
    runs = {tile: in_tiles(x, w, tile)[1] for tile in counts}  # @hide
    grid = explore(lambda tile, eighths_done: moment(n, tile, eighths_done, runs[tile]),
        over={"tile": [*counts], "eighths_done": range(9)}, at={"tile": 4, "eighths_done": 5}, module="pictures/tiles.js",
        still=stacks({f"tiles of {t} * {t}": {"loaded": count} for t, count in counts.items()}, "elements loaded"),
        do="Move through the product with tiles of `1`, then with tiles of `4`. How many elements does each load in the end?",
        see="At every moment, tiles of `4` have loaded a quarter of the elements that tiles of `1` have loaded. The larger the tile, the more of the cache it fills.",
        caption="`x` on the left, `w` above the result. The tiles in the cache, one of each matrix, are gold. Complete entries of the result are green.",
        alt=r"""
            Three grids of eight by eight cells: x at the left, w above, their product at the lower
            right. A tile of each is marked, and a bar below shows how many elements were loaded.
        """)  # @hide
    assert all(grid[tile, 8]["loaded"] == count for tile, count in counts.items()), \
        "At its end, the picture has loaded what was counted."  # @hide
    note(r"""
        The price of a larger tile is cache: three tiles have to fit into it at a time, one of each
        matrix and one of the result. How large must the tiles be on a GPU? With matrices of `n * n`
        elements in `bfloat16` and tiles of `t * t`, a matmul does `2 * n**3` FLOPs and loads
        `2 * n**3 / t` elements of `2` bytes. So it does `t / 2` FLOPs per byte. An H100 can do
        `295` FLOPs while one byte arrives. So the matmul is *memory-bound*, which means that it
        waits for memory, unless tiles are at least `2 * 295 = 590` wide:
    """)
    tile = 2 * 295
    cache = 3 * 2 * tile**2  # @inspect cache as B
    assert 2.08e6 < cache < 2.09e6, "Three such tiles take 2.1 MB."
    assert cache < 50 * 10**6, "The H100's cache of 50 MB has room for them."  # @hide
    note(r"""
        That is little compared with the `50 MB` of cache on the chip [@nvidia-hopper]. So a good
        implementation of a large matmul does not wait for memory.
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
        check=sum(in_tiles(small, small, 2)[1]) / (2 * small.numel()),
        hint="How many tiles lie side by side in a row of the result? Each of them needs the element once.",
        why=r"""
            A row of the result has `4096 / 128 = 32` tiles. For each of them, the elements of that
            row of `x` are loaded once.
        """)
