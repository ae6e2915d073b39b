"""How a GPU's memory is handed out, and what moves there."""
import math

import torch
from hardware import CARDS, find
from units import GiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import curves, plot_blocks
from .measure import default_allocator, dense_peak, message_of, scaled


def tensors_on_a_gpu() -> None:
    """Tensors on a GPU."""
    note(r"""
        A GPU has its own memory, and nothing moves there unless the program moves it. PyTorch's
        allocator hands out that memory in blocks and keeps the blocks that you give back, so the
        figures that PyTorch reports match neither the sum of your tensors nor what `nvidia-smi`
        shows.
    """)
    a_matmul_must_be_large_to_pay_for_its_copy()
    blocks_are_multiples_of_a_smallest_one()
    deleting_returns_blocks_to_a_cache()
    the_driver_knows_how_much_memory_there_is()


def a_matmul_must_be_large_to_pay_for_its_copy() -> None:
    """At the peaks of an H100, copying matrices to it takes longer than multiplying them there, unless they are very large."""
    note(r"""
        A program makes two matrices and multiplies them on a GPU. A GPU computes with what is in
        its own memory, and a new tensor is in the memory of the CPU, unless it is created with
        `device="cuda"`. So both matrices are copied to the GPU, and the result is copied back.
        Which takes longer, the copies or the matmul?

        By hand, count elements. With `10 * 10` matrices, three matrices are `3 * 100 = 300`
        elements to copy, and each of $100$ entries of the result is a sum of $10$ products, which
        makes `100 * 10 = 1000` multiplications. With `100 * 100` matrices, there are $100$ times as
        many elements to copy, but $1000$ times as many multiplications: a matmul of $n \times n$
        matrices copies each element once and uses it $n$ times.

        How large must $n$ be? An H100 does at most `989.5e12` FLOPs in a second, and its link to
        the CPU, PCIe, carries `64e9` bytes in a second in each direction [@nvidia-h100]. In the
        time of copying one element, `2` bytes in `bfloat16`, it can do
        `2 / 64e9 * 989.5e12 = 30922` FLOPs. A matmul does $2n^3$ FLOPs for $3n^2$ copied elements,
        $2n/3$ for each. So the copies take longer unless $n$ is in the tens of thousands:
    """)
    x = torch.zeros(4, 8)  # @hide
    assert x.device == torch.device("cpu"), "A new tensor is on the CPU."  # @hide
    count = torch.cuda.device_count()  # @hide
    refused = message_of(lambda: torch.cuda.get_device_properties(count))  # @hide
    silence = ""  # @hide
    assert refused != silence, "Asking for a missing GPU is an error."  # @hide
    rate = dense_peak("H100 SXM", "bfloat16")  # FLOPs per second
    link = 64e9  # bytes per second

    def arithmetic(n: float) -> float:  # in seconds
        return 2 * n * n * n / rate  # a multiplication and an addition

    def copies(n: float) -> float:  # in seconds
        return 3 * n * n * 2 / link  # three matrices, 2 bytes

    small = arithmetic(1000), copies(1000)  # @inspect small as s
    assert [round(t * 1e6) for t in small] == [2, 94], \
        "With 1000 rows and columns, the arithmetic takes 2 µs and the copies take 94 µs."
    note(r"""
        Both take the same time if $2n^3/\text{rate} = 6n^2/\text{link}$. Divide by $2n^2$:

        $$
        n = 3 \cdot \frac{\text{rate}}{\text{link}}
        $$
    """)
    even = 3 * rate / link  # @inspect even
    assert math.isclose(arithmetic(even), copies(even)), \
        "At this size arithmetic and copies take the same time."
    assert round(even, -2) == 46400, \
        "The matrices need about 46,400 rows and columns."
    sizes = [2.0**k for k in range(8, 19)]  # @hide
    lines = {"copies": [copies(n) for n in sizes], "arithmetic": [arithmetic(n) for n in sizes]}  # @hide
    figure(curves(sizes, lines, "rows and columns", "seconds", log=True), caption=r"""
        Seconds for a matmul of square matrices in bfloat16 on an H100, and for the copies over its
        PCIe link, at the peaks of the datasheet.
    """, alt=rf"""
        Two straight lines on logarithmic axes. The line of the copies starts higher and rises less
        steeply; the line of the arithmetic crosses it near {even:,.0f} rows.
    """)
    note(r"""
        So a training program copies the weights *once*, and leaves on the GPU everything that is
        computed from them: activations, gradients, the optimizer's state. In each step only the
        tokens are copied, a few bytes per token.
    """)
    question(r"""
        Two `1000 × 1000` matrices are copied to this GPU once, and stay there. The program
        multiplies them again and again, and at the end copies the result back. After about how many
        matmuls has the arithmetic taken as long as the copies?
    """, answer=copies(1000) / arithmetic(1000),
        check=even / 1000, unit="matmuls", within=0.03,
        wrong={
            "The copies take 94 µs, and a matmul takes 2 µs.": 94,
        },
        hint="How long do the copies take, and how long does one matmul take?",
        why=r"""
            The copies take `93.75` µs and a matmul takes `2.02` µs, so after about
            `93.75 / 2.02 = 46.4` matmuls both have taken the same time.
        """)


@aside
def blocks_are_multiples_of_a_smallest_one() -> None:
    """PyTorch gives a tensor on a GPU whole blocks of 512 bytes."""
    note(r"""
        Why is more GPU memory in use than your tensors have bytes? One small reason is that PyTorch
        hands out the memory of a GPU in blocks of `512` bytes, and a tensor gets whole blocks
        [@pytorch-allocator]. A much larger one is PyTorch's
        [cache](#deleting_returns_blocks_to_a_cache).

        By hand, with matrices of `float32`, `4` bytes per element: a `10 * 10` matrix needs
        `10 * 10 * 4 = 400` bytes, and gets one block of `512`. A `33 * 33` matrix needs
        `33 * 33 * 4 = 4356` bytes. Eight blocks, `8 * 512 = 4096` bytes, are too few, so it gets
        nine. Now for square matrices of four sizes:
    """)
    block, sides = 512, (1, 10, 32, 33)
    asked = [side * side * 4 for side in sides]
    taken = [math.ceil(size / block) * block for size in asked]
    assert asked == [4, 400, 4096, 4356], \
        "The four matrices need 4, 400, 4096 and 4356 bytes."
    assert taken == [512, 512, 4096, 4608], \
        "In blocks the four matrices take 512, 512, 4096 and 4608 bytes."
    lost = [t - a for t, a in zip(taken, asked)]
    assert lost == [508, 112, 0, 252], \
        "508, 112, 0 and 252 bytes of their blocks stay empty."
    rows = " ".join(  # @hide
        f"{n} × {n}: {a:,} of {t:,} bytes in {t // block} block{'s' * (t > block)}."
        for n, a, t in zip(sides, asked, taken)
    )
    figure(plot_blocks({f"{n} × {n}": size for n, size in zip(sides, asked)}, block),
           caption="The blocks of four matrices: their bytes, and the part of the last block that stays empty.",
           alt=f"A row of blocks for each matrix, filled from the left. {rows}")
    misbelief("Allocated memory grows by exactly the bytes of the tensor.", rf"""
        By PyTorch's source [@pytorch-allocator], it grows by whole blocks: a `10` × `10` matrix of
        {asked[1]} bytes takes {taken[1]}. If the bytes are already a multiple of {block}, as for
        `32` × `32`, nothing is added.
    """)
    question("A vector has `300` elements in `bfloat16`, `2` bytes each. How many bytes does it need on the GPU?",
             answer=-(-300 * torch.bfloat16.itemsize // block) * block,
        wrong={
            "That is its size before it is rounded up to blocks.": 600,
            "That is for float32; an element of bfloat16 has half as many bytes.": 1536,
            "600 bytes do not fit into one block.": 512,
        },
        check=next(k * 512 for k in range(9) if k * 512 >= 600),
        hint="How many bytes does it have, and how many blocks of `512` hold them?",
        why=r"""
            `300` elements of `2` bytes are `600` bytes. They need two blocks of `512`.
        """, unit="B")


@aside
@requires("cuda")
def deleting_returns_blocks_to_a_cache() -> None:
    """After `del`, PyTorch should keep the memory of a tensor for the next tensor."""
    note(r"""
        You delete a large tensor, and `nvidia-smi`, NVIDIA's command that lists the GPU's memory in
        use, shows the same number as before. Why? PyTorch keeps the memory in a *cache* for the
        next tensor, because asking the driver, the GPU's part of the operating system, for memory
        is slow.

        So there are two numbers. *Allocated* memory is what tensors use. *Reserved* memory is what
        PyTorch holds, the cache included, and no other program can use it. By hand, take a tensor
        of `2**26` elements in `float32`. It needs `4 * 2**26` bytes, or `256` MiB. Begin with an
        empty cache. With PyTorch's default settings, by how many MiB should the two numbers then be
        higher than at the start?

        | | allocated | reserved |
        |---|---|---|
        | after the tensor is created | `256` | `256` |
        | after `del` | `256 - 256 = 0` | `256` |
        | after `empty_cache`, which returns the cache to the driver | `0` | `256 - 256 = 0` |

        In the code `count` is the number of elements, `2**26` unless the GPU has too little memory.
    """)
    count = scaled(2**26, lambda n: 6 * n)  # until x and a tensor of half its size fit  # @measure count  # @hide
    torch.cuda.empty_cache()  # begin with an empty cache
    allocated = torch.cuda.memory_allocated()
    reserved = torch.cuda.memory_reserved()
    x = torch.empty(count, device="cuda")
    held = torch.cuda.memory_allocated() - allocated  # @hide
    if default_allocator():  # @hide
        assert held == 4 * count, "The tensor uses 4 bytes for each element."  # @hide
    del x
    after = torch.cuda.memory_allocated()
    assert after == allocated, "After del, no tensor uses these bytes."
    kept = torch.cuda.memory_reserved() - reserved  # @measure kept as B
    assert kept >= 4 * count, "PyTorch still has all of these bytes."
    assert kept >= held >= 4 * count, "With any allocator, PyTorch has at least these bytes."  # @hide
    if default_allocator():  # @hide
        assert kept == 4 * count, "With its default allocator, it has no more than these bytes."  # @hide
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved() - reserved  # @measure left as B
    if default_allocator():  # @hide
        assert left == 0, "PyTorch holds as much memory as at the start."  # @hide
    x = torch.empty(count, device="cuda")  # @hide
    del x  # @hide
    half = torch.empty(count // 2, device="cuda")  # @hide
    cached = torch.cuda.memory_reserved() - reserved  # @hide
    taken = torch.cuda.memory_allocated() - allocated  # @hide
    if default_allocator():  # @hide
        assert cached - taken == 4 * count // 2, \
            "A tensor of half the size leaves the other half in the cache."  # @hide
    x = torch.zeros(33, 33)  # @hide
    before = torch.cuda.memory_allocated()  # @hide
    y = x.to("cuda:0")  # @hide
    z = torch.zeros(33, 33, device="cuda:0")  # @hide
    gpu = torch.device("cuda", 0)  # @hide
    assert y.device == z.device == gpu, \
        "The copy of x and the new matrix are on the GPU."  # @hide
    assert x.device == torch.device("cpu"), "The original is still on the CPU."  # @hide
    grown = torch.cuda.memory_allocated() - before  # @measure grown as B  # @hide
    if default_allocator():  # @hide
        assert grown == 2 * (9 * 512), \
            "Each matrix of 4356 bytes takes 4608 bytes."  # @hide
    assert y.nbytes == z.nbytes == 33 * 33 * 4, "Each matrix needs 4356 bytes."  # @hide
    note(r"""
        Emptying the cache makes room for other programs. Your own program gets memory from the
        cache anyway, so in a training loop the call is seldom useful, and it costs time.
    """)
    question(r"""
        A tensor of `256` MiB is deleted. Without `empty_cache`, a tensor with half as many elements
        is made, and PyTorch puts it into the memory that the first one had. How many MiB of that
        memory are then in the cache, used by no tensor?
    """, answer=256 - 256 / 2,
        check=2**26 * 4 / 2 / 2**20, unit="MiB",
        wrong={"The new tensor uses half of it.": 256},
        why="The new tensor uses half of the `256` MiB. The other half stays in the cache.")


@aside
@requires("cuda")
def the_driver_knows_how_much_memory_there_is() -> None:
    """How much memory a GPU has: the datasheet's number, the driver's total, and what is free."""
    note(r"""
        How much of a GPU's memory can a program get? Ask the driver: `torch.cuda.mem_get_info()`
        returns the bytes that are free, and the total. Expect neither to be the number by which the
        GPU is sold. The total differs from it, because memory is built in other units than it is
        sold in. Less than the total is free, because CUDA itself and other programs use some of it.

        By hand, for an H100:

        | | bytes |
        |---|---|
        | datasheet: `80` GB [@nvidia-h100] | `80 * 1000**3 = 80e9` |
        | as memory is built: GiB, not GB | `80 * 1024**3 = 85.9e9` |
        | total of the driver: `81559` MiB [@seen-modal] | `81559 * 1024**2 = 85.5e9` |
        | free | less than the total |

        So expect a total of about `85.5 / 80 = 1.07` times the datasheet's number. (The driver does
        not report all that is built in.) `find` looks up this GPU in the book's list of datasheets:
        `card.memory` is the number by which it is sold.
    """)
    free, total = torch.cuda.mem_get_info()  # @measure free, total as B
    assert free < total, "Less is free than the total that the driver reports."
    card = find(torch.cuda.get_device_name())  # @measure card
    if card is not None:
        ratio = total / card.memory  # @measure ratio
        assert 0.98 < ratio < 1.08, \
            "The driver reports between 0.98 and 1.08 times the datasheet's number."
    if card is not None and card.reported is not None:  # @hide
        part = total / card.reported  # @measure part  # @hide
        assert 0.95 < part <= 1, \
            "The driver reports between 95 % and 100 % of the total that others saw."  # @hide
    note("A program that depends on the number should ask for the free bytes with `mem_get_info` when it starts, because it can then get no more than these.")
    question(rf"""
        An L4 is sold with `24` GB [@nvidia-l4] and reports {(CARDS['L4'].reported or 0) // MiB:,}
        MiB [@seen-modal]. A GB is `1000**3` bytes, and a GiB `1024**3`. How many GiB is the first
        number, and how many is the second?
    """, answer=[CARDS["L4"].memory / GiB, (CARDS["L4"].reported or 0) / GiB],
        check=[24 * 1000**3 / 1024**3, 23034 / 1024], unit="GiB",
        why="The first is `24 * 1000**3` bytes, divided by `1024**3`. The second is the MiB divided by `1024`.")
