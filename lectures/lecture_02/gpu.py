"""How a GPU's memory is handed out, and what moves there."""
import math

import torch
import torch.nn.functional as F
from hardware import CARDS, find
from timing import time_call
from units import GiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import curves, plot_blocks
from .measure import E4M3, E5M2, default_allocator, dense_peak, float32_products, message_of, scaled


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
    moving_allocates_on_the_gpu()
    deleting_returns_blocks_to_a_cache()
    the_driver_knows_how_much_memory_there_is()
    a_low_precision_matmul_is_timed_here()
    both_one_byte_formats_multiply()


def a_matmul_must_be_large_to_pay_for_its_copy() -> None:
    """Copying matrices to a GPU takes longer than multiplying them there, unless they are very large."""
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
        `2 / 64e9 * 989.5e12 = 30922` FLOPs. So the copies take longer unless $n$ is in the tens of
        thousands:
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
    """On a GPU a tensor takes whole blocks of 512 bytes."""
    note(r"""
        Why is more GPU memory in use than your tensors have bytes? Because PyTorch hands out the
        memory of a GPU in blocks of `512` bytes, and a tensor gets whole blocks
        [@pytorch-allocator].

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
        It grows by whole blocks: a `10` × `10` matrix of {asked[1]} bytes takes {taken[1]}. If the
        bytes are already a multiple of {block}, as for `32` × `32`, nothing is added.
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
def moving_allocates_on_the_gpu() -> None:
    """`memory_allocated` rounds the bytes of each tensor up to a multiple of 512."""
    note(r"""
        How much GPU memory do your tensors use? `torch.cuda.memory_allocated` says so. But it
        rounds each tensor up to a multiple of `512` bytes, because PyTorch hands out the memory of
        a GPU in [blocks of this size](#blocks_are_multiples_of_a_smallest_one).

        First two matrices whose bytes fill their blocks: `x` has `32 * 32` elements of `4` bytes,
        and `32 * 32 * 4 = 8 * 512`. Copy it to the GPU, and make another one there:
    """)
    x = torch.zeros(32, 32)
    before = torch.cuda.memory_allocated()  # @measure before as B
    y = x.to("cuda:0")  # @inspect y.device
    z = torch.zeros(32, 32, device="cuda:0")  # @inspect z.device
    gpu = torch.device("cuda", 0)
    assert y.device == z.device == gpu, \
        "The copy of x and the new matrix are on the GPU."
    assert x.device == torch.device("cpu"), "The original is still on the CPU."
    grown = torch.cuda.memory_allocated() - before  # @inspect grown as B
    if default_allocator():
        assert grown == 2 * (32 * 32 * 4), \
            "The two matrices take exactly their bytes."
    note(r"""
        Now a matrix whose bytes are not a multiple of `512`. A `33 * 33` matrix needs
        `33 * 33 * 4 = 4356` bytes. They are rounded up to `9 * 512 = 4608`:
    """)
    before = torch.cuda.memory_allocated()
    odd = torch.zeros(33, 33, device="cuda:0")
    grown = torch.cuda.memory_allocated() - before  # @inspect grown as B
    if default_allocator():
        assert grown == 9 * 512, "The matrix of 4356 bytes takes 4608 bytes."
    assert odd.nbytes == 33 * 33 * 4, "The matrix needs 4356 bytes."  # @hide
    before = torch.cuda.memory_allocated()  # @hide
    both = z.to("cuda:0"), z.bfloat16()  # @hide
    question(r"""
        `.to` returns the tensor itself if it is on that device already. `z` is a `float32` matrix
        of `32 * 32` elements on the GPU. By how many bytes does `memory_allocated` grow when
        `z.to("cuda:0")` and `z.bfloat16()` are both kept?
    """, answer=torch.cuda.memory_allocated() - before,
        check=32 * 32 * 2, unit="B",
        why=r"""
            `z` is on the GPU already, so `.to` returns `z` itself. The copy in `bfloat16` has
            `32 * 32` elements of `2` bytes, which is four blocks.
        """)


@aside
@requires("cuda")
def deleting_returns_blocks_to_a_cache() -> None:
    """`del` gives the memory of a tensor back to PyTorch, which keeps it for the next tensor."""
    note(r"""
        You delete a large tensor, and `nvidia-smi` shows that the memory is still in use. Why?
        PyTorch keeps the memory in a *cache* for the next tensor, because asking the driver for
        memory takes a long time.

        So there are two numbers. *Allocated* memory, `torch.cuda.memory_allocated()`, is what
        tensors use. *Reserved* memory, `torch.cuda.memory_reserved()`, is what PyTorch holds, the
        cache included, and no other program can use it. Make a tensor of `2**26` elements,
        `4 * 2**26` bytes or `256` MiB. Deleting it lowers allocated memory by `256` MiB, but not
        reserved memory:
    """)
    # Halved until x, 4 bytes per element, and a tensor of half its size fit:
    count = scaled(2**26, lambda n: 6 * n)  # @measure count
    allocated = torch.cuda.memory_allocated()
    reserved = torch.cuda.memory_reserved()
    x = torch.empty(count, device="cuda")
    held = torch.cuda.memory_allocated() - allocated  # @measure held as B
    if default_allocator():
        assert held == 4 * count, "The tensor uses 4 bytes for each element."
    del x
    after = torch.cuda.memory_allocated()
    assert after == allocated, "After del, no tensor uses these bytes."
    kept = torch.cuda.memory_reserved() - reserved  # @measure kept as B
    if default_allocator():
        assert kept == 4 * count, "PyTorch still has all of these bytes."
    assert kept >= held >= 4 * count, "With any allocator, PyTorch has at least these bytes."  # @hide
    note(r"""
        `empty_cache` returns the cached bytes to the driver. That makes room for other programs.
        Yours can normally use the cache anyway, so in a training loop the call is seldom useful,
        and it costs time:
    """)
    torch.cuda.empty_cache()
    left = torch.cuda.memory_reserved()
    if default_allocator():
        assert left == reserved, \
            "PyTorch holds as much memory as at the start."
    x = torch.empty(count, device="cuda")  # @hide
    del x  # @hide
    half = torch.empty(count // 2, device="cuda")  # @hide
    cached = torch.cuda.memory_reserved() - reserved  # @hide
    taken = torch.cuda.memory_allocated() - allocated  # @hide
    if default_allocator():  # @hide
        assert cached - taken == 4 * count // 2, \
            "A tensor of half the size leaves the other half in the cache."  # @hide
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
    """A program gets less GPU memory than the driver reports, and the driver's number is not the datasheet's."""
    note(r"""
        How much memory does a GPU have? There are three answers:

        - The datasheet: an H100 is sold with `80` GB, `80e9` bytes [@nvidia-h100].
        - The driver: for an H100 it reports `81559` MiB [@seen-modal], which are
          `81559 * 1024**2 = 85.5e9` bytes. That is more, because memory is built in GiB and sold in
          GB.
        - What is free: fewer bytes than the driver reports, because CUDA itself and other programs
          use some. A program can get only these.

        `torch.cuda.mem_get_info()` returns what is free and what the driver reports. `find` looks
        up the GPU: `card.memory` is the datasheet's number, and `card.reported` is the total that
        users of such a GPU have published:
    """)
    free, total = torch.cuda.mem_get_info()  # @measure free, total as B
    assert free < total, "Less is free than the driver reports."
    card = find(torch.cuda.get_device_name())  # @measure card
    if card is not None:
        ratio = total / card.memory  # @measure ratio
        assert 0.98 < ratio < 1.08, \
            "The driver reports between 0.98 and 1.08 times the datasheet's number."
    if card is not None and card.reported is not None:
        part = total / card.reported  # @measure part
        assert 0.95 < part <= 1, \
            "The driver reports between 0.95 of the published total and all of it."
    note("So a program that depends on the number should ask the driver.")
    question(rf"""
        An L4 is sold with `24` GB [@nvidia-l4] and reports {(CARDS['L4'].reported or 0) // MiB:,}
        MiB [@seen-modal]. A GB is `1000**3` bytes, and a GiB `1024**3`. How many GiB is the first
        number, and how many is the second?
    """, answer=[CARDS["L4"].memory / GiB, (CARDS["L4"].reported or 0) / GiB],
        check=[24 * 1000**3 / 1024**3, 23034 / 1024], unit="GiB",
        why="The first is `24 * 1000**3` bytes, divided by `1024**3`. The second is the MiB divided by `1024`.")


@aside
@requires("cuda")
def a_low_precision_matmul_is_timed_here() -> None:
    """The speedup of a low-precision format has to be measured on the GPU."""
    note(r"""
        The peak of an A100 is `19.5` TFLOP/s in `float32` and `312` in `bfloat16`, which is
        `312 / 19.5 = 16` times as high [@nvidia-a100]. Is a matmul `16` times as fast? Only a
        measurement can tell, because a peak is an upper bound. A matmul that reaches `0.8` of the
        peak in `float32` and $0.6$ in `bfloat16` is `16 * 0.6 / 0.8 = 12` times as fast.

        Time a square matrix times itself in both formats, and compare the speedup with the ratio of
        this GPU's peaks. The matmul must be large, because a GPU has many arithmetic units, and
        small matmuls leave most of them idle. `time_call` returns the time of a call:
    """)
    a = torch.randn(8192, 8192, device="cuda")
    b = a.bfloat16()
    with float32_products():  # TF32, a faster mode with fewer bits, is off
        float32_time = time_call(lambda: a @ a, "cuda")  # @measure float32_time
    bfloat16_time = time_call(lambda: b @ b, "cuda")  # @measure bfloat16_time
    speedup = float32_time.seconds / bfloat16_time.seconds  # @measure speedup as times
    card = find(torch.cuda.get_device_name())
    if card is not None and card.bfloat16 is not None:
        peak_ratio = card.bfloat16 / card.float32  # @measure peak_ratio as times
        assert 1 < speedup < 2 * peak_ratio, \
            "In bfloat16, the matmul is faster, by less than twice the ratio of the peaks."
        rate = 2 * 8192**3 / bfloat16_time.seconds  # @hide
        assert 0.3 * card.bfloat16 < rate <= card.boost * card.bfloat16, \
            "In bfloat16, the GPU reaches at least 0.3 of its peak."  # @hide
    question(r"""
        On an A100, a matmul in `float32` takes `80` ms, and reaches `0.8` of the peak. In
        `bfloat16` it reaches only `0.4` of the peak, which is `16` times as high. How long does it
        take?
    """, answer=80e-3 * (0.8 * 19.5) / (0.4 * 312),
        check=0.08 / (16 / 2), unit="s",
        wrong={
            "That would be right if both reached the same share of their peak.": 0.08 / 16,
        },
        why="The peak is `16` times as high, but the share is half as large. So the matmul is `16 / 2 = 8` times as fast, and takes `80 / 8 = 10` ms.")


@aside
@requires("cuda")
def both_one_byte_formats_multiply() -> None:
    """`scaled_mm` multiplies matrices in `E4M3` and `E5M2`, and returns `bfloat16` by default."""
    note(r"""
        `E4M3` and `E5M2` are floats of [one byte](#one_byte_comes_in_two_formats). Recent GPUs have
        units that multiply matrices of them. PyTorch uses these units in `F.scaled_mm`. The result
        is in `bfloat16` by default, because a sum of many products needs more bits than its terms.

        Each matrix is multiplied by a scale, here `1`, because one-byte floats have a small range.
        The second matrix must be stored by columns, hence `.t()`. For two matrices of `32 * 32`
        ones, each entry is a sum of `32` ones, so the entries add up to `32 * 32 * 32`:
    """)
    if torch.cuda.get_device_capability() >= (8, 9):  # GPUs with these units
        one = torch.tensor(1.0, device="cuda")
        ones = torch.ones(32, 32, device="cuda")
        left, right = ones.to(E5M2), ones.to(E4M3).t()
        kind = F.ScalingType.TensorWise  # one scale for the whole matrix
        mixed = F.scaled_mm(left, right, one, kind, one, kind)  # @inspect mixed
        plain = F.scaled_mm(right.t(), right, one, kind, one, kind)  # @inspect plain
        assert mixed.dtype == torch.bfloat16, "The result is in bfloat16."
        assert mixed.sum().item() == 32**3, \
            "The entries of E5M2 times E4M3 add up to 32 * 32 * 32."
        assert plain.sum().item() == 32**3, \
            "The entries of E4M3 times E4M3 add up to 32 * 32 * 32 as well."
    question(r"""
        A `(16, 64)` matrix in `E5M2` is multiplied by a `(64, 32)` matrix in `E4M3`. The result is
        in `bfloat16`, `2` bytes per element. How many bytes do the three matrices need in total?
    """,
        answer=16 * 64 * E5M2.itemsize + 64 * 32 * E4M3.itemsize
            + 16 * 32 * torch.bfloat16.itemsize,
        check=1024 + 2048 + 2 * 512,
        unit="B",
        wrong={
            "The result has two bytes per element.": 16 * 64 + 64 * 32 + 16 * 32,
        },
        why="The first needs `16 * 64` bytes, the second `64 * 32`, and the result `16 * 32 * 2`.")
