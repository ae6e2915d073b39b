"""How a GPU's memory is handed out, and what moves there."""
from counters import flops
import math
import torch
import torch.nn.functional as F
from hardware import CARDS, find, peak
from timing import time_call
from units import GiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_blocks
from .measure import E4M3, E5M2, cool_down, default_allocator, float32_products, message_of, scaled


def tensors_on_a_gpu() -> None:
    """Tensors on a GPU."""
    note(r"""
        A GPU has memory of its own, and nothing moves there unless it is told to. Its allocator
        then hands out memory in blocks and keeps what you give back, so the figures that PyTorch
        reports match neither the sum of your tensors nor what `nvidia-smi` shows.
    """)
    tensors_start_on_the_cpu()
    ask_before_you_move()
    blocks_are_multiples_of_a_smallest_one()
    moving_allocates_on_the_gpu()
    deleting_returns_blocks_to_a_cache()
    the_driver_knows_how_much_memory_there_is()
    a_narrow_product_is_timed_here()
    both_one_byte_formats_multiply()


@aside
def tensors_start_on_the_cpu() -> None:
    """A new tensor is in CPU memory, unless you name another device."""
    note(r"""
        Where is a new tensor, in the memory of the CPU or in that of the GPU? In that of the CPU,
        even if there is a GPU in the machine:
    """)
    x = torch.zeros(32, 32)  # @inspect x.device  # @unnoticed: 32: any shape
    assert x.device == torch.device("cpu"), "A new tensor is on the CPU."
    note(r"""
        To make a tensor elsewhere, name the device. To copy one there, call `.to(device)`. If the
        tensor is there already and has the dtype that is asked for, `.to` copies nothing and
        returns the tensor itself. (A GPU is called `"cuda"`. The code below uses `"meta"` instead,
        a device of shapes without data, because every machine has it.)
    """)
    assert x.to("cpu") is x, "x is on the CPU already, so .to returns x itself."
    shape_only = torch.zeros(32, 32, device="meta")  # @hide
    assert shape_only.device.type == "meta", "The second tensor was made on the device meta."  # @hide
    note("`with torch.device(…):` changes the default for the lines inside it:")
    with torch.device("meta"):
        inside = torch.zeros(32, 32)  # @unnoticed: 32: any shape
    after = torch.zeros(32, 32)  # @hide
    assert inside.device.type == "meta", \
        "Inside the block, a new tensor is on meta."
    assert after.device.type == "cpu", "After the block, a new tensor is on the CPU again."  # @hide
    question(r"""
        `x` is on the CPU, in `float32`. How many of these are `x` itself, without a copy:
        `x.to("cpu")`, `x.to(torch.float32)`, `x.to(torch.float64)`, `x.to("meta")`,
        `x.to("cpu", torch.float32)`?
    """, answer=sum(
        t is x
        for t in (x.to("cpu"), x.to(torch.float32), x.to(torch.float64), x.to("meta"),
                  x.to("cpu", torch.float32))
    ),
        check=sum(
            (device or "cpu", dtype or x.dtype) == ("cpu", x.dtype)
            for device, dtype in (("cpu", None), (None, x.dtype), (None, torch.float64), ("meta", None),
                                  ("cpu", x.dtype))
        ),
        wrong={
            "Two of the five ask for another dtype or another device.": 5,
            "A dtype that x already has is no copy either.": 1,
        },
        hint="Which of them ask for something that `x` is not already?",
        why=r"""
            `x` is on the CPU and in `float32`, so the first, the second and the last ask for what
            it is already. `float64` and `meta` need a new tensor.
        """)


@aside
def ask_before_you_move() -> None:
    """Choose the device once, and the same code runs with and without a GPU."""
    note(r"""
        How does one write code that uses a GPU where there is one, and runs without one, too? Ask
        PyTorch once what it finds. Keep the name of the device in a variable, and use this variable
        wherever a tensor is made. A GPU is called `"cuda"`:
    """)
    count = torch.cuda.device_count()  # @measure count
    available = torch.cuda.is_available()  # @measure available
    held = torch.cuda.memory_allocated()  # @measure held as B  # @hide
    assert available == (count > 0), "A GPU is available exactly if PyTorch counts one."  # @hide
    device = "cuda" if available else "cpu"  # @measure device
    x = torch.ones(32, 32, device=device)
    assert x.sum() == 32 * 32, "The same line runs on a GPU and on a CPU."
    note(r"""
        Asking for the properties of a GPU that is not there is an error, and so is moving a tensor
        to it. GPUs are numbered from `0`, so with `count` of them, number `count` is missing.
        (`message_of` runs a call and returns its error.)
    """)
    refused = message_of(lambda: torch.cuda.get_device_properties(count))  # @measure refused
    silence = ""  # @hide
    assert refused != silence, "Asking for a missing GPU is an error."  # @hide
    if count == 0:  # @hide
        assert held == 0, "Without a GPU, no memory of one is taken."  # @zero: there is no GPU in this branch
        stranded = message_of(lambda: torch.zeros(32, 32).to("cuda:0"))  # @measure stranded
        assert stranded != silence, "Without a GPU, moving a tensor to one is an error."
    question(r"""
        GPUs are numbered from `0`. `torch.zeros(32, 32).to("cuda:3")` ran without an error. How
        many GPUs does PyTorch see there at least?
    """, answer=torch.device("cuda:3").index + 1,
        check=len(("cuda:0", "cuda:1", "cuda:2", "cuda:3")), unit="GPUs",
        wrong={
            "The numbers begin with 0.": 3,
        },
        hint="Which numbers come before `3`?",
        why="There is a GPU with the number `3`, so there are those with `0`, `1` and `2` as well: four.")


@aside
def blocks_are_multiples_of_a_smallest_one() -> None:
    """On a GPU a tensor takes whole blocks of 512 bytes."""
    note(r"""
        Why does a GPU report more memory than your tensors have bytes? Because PyTorch hands out
        the memory of a GPU in blocks of `512` bytes, and a tensor takes whole blocks
        [@pytorch-allocator]. So the bytes of a tensor are rounded up to the next multiple of `512`.
        A matrix of `10 * 10` numbers in `float32` has `400` bytes and takes `512`; one of `33 * 33`
        has `4356` and takes `9 * 512 = 4608`. The code computes that for square matrices of four
        sizes:
    """)
    block, sides = 512, (1, 10, 32, 33)
    asked = [side * side * 4 for side in sides]
    taken = [math.ceil(size / block) * block for size in asked]
    assert asked == [4, 400, 4096, 4356], \
        "The four matrices have 4, 400, 4096 and 4356 bytes."
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
           caption="The blocks that four matrices take: their bytes, and what stays empty of the last block.",
           alt=f"A row of blocks for each matrix, filled from the left. {rows}")
    misbelief("Allocated memory grows by exactly the bytes of the tensor.", rf"""
        It grows by whole blocks: a `10` × `10` matrix of {asked[1]} bytes takes {taken[1]}. Only
        where the bytes are a multiple of {block}, as for `32` × `32`, is nothing added.
    """)
    question("A vector has `300` elements in `bfloat16`, `2` bytes each. How many bytes does it take on the GPU?",
             answer=-(-300 * torch.bfloat16.itemsize // block) * block,
        wrong={
            "Those are its bytes, not yet rounded up to blocks.": 600,
            "That is for float32: a bfloat16 has two bytes.": 1536,
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
    """`memory_allocated` counts the blocks of tensors, not their bytes."""
    note(r"""
        How much memory of a GPU do your tensors take? `torch.cuda.memory_allocated` tells. It
        counts the [blocks of `512` bytes](#blocks_are_multiples_of_a_smallest_one) in which PyTorch
        hands out memory. Move `x`, a matrix of `32 * 32` numbers of `4` bytes, to the GPU, and make
        a second one there. Each has `32 * 32 * 4` bytes, which fill whole blocks. (If the
        environment variable `PYTORCH_CUDA_ALLOC_CONF` is set, PyTorch may round otherwise, and
        exact numbers are not claimed.)
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
    exact = default_allocator()  # @measure exact
    if exact:
        assert grown == 2 * (32 * 32 * 4), \
            "The two matrices take exactly their bytes."
    note(r"""
        Where the bytes are no multiple of `512`, the tensor takes more. A matrix of `10 * 10`
        numbers has `10 * 10 * 4` bytes and takes a whole block, and the `33 * 33 * 4` bytes of a
        larger one begin a ninth block. Make two of each:
    """)
    before = torch.cuda.memory_allocated()
    small = [torch.zeros(10, 10, device="cuda:0") for _ in range(2)]
    grown = torch.cuda.memory_allocated() - before  # @inspect grown as B
    if exact:
        assert grown == 2 * 512, "The two small matrices take 512 bytes each."
    before = torch.cuda.memory_allocated()
    odd = [torch.zeros(33, 33, device="cuda:0") for _ in range(2)]
    grown = torch.cuda.memory_allocated() - before  # @inspect grown as B
    if exact:
        assert grown == 2 * 4608, "The two large ones take 4608 bytes each."
    assert len(small) == len(odd) == 2, "All four are kept until here."  # @hide
    before = torch.cuda.memory_allocated()
    both = z.to("cuda:0"), z.bfloat16()
    question(r"""
        `z` is a `float32` matrix of `32 * 32` numbers on the GPU. By how many bytes does
        `memory_allocated` grow when `z.to("cuda:0")` and `z.bfloat16()` are both kept?
    """, answer=torch.cuda.memory_allocated() - before,
        check=32 * 32 * 2, unit="B",
        why=r"""
            `z` is on the GPU already, so `.to` returns `z` itself. The copy in `bfloat16` has
            `32 * 32` numbers of `2` bytes, which is four blocks.
        """)


@aside
@requires("cuda")
def deleting_returns_blocks_to_a_cache() -> None:
    """`del` gives the memory of a tensor back to PyTorch, which keeps it for the next tensor."""
    note(r"""
        You delete a large tensor, and `nvidia-smi` shows that the memory is still in use. Why?
        Asking the driver for memory takes long, so PyTorch does not return it: it keeps the memory
        in a *cache*, for the next tensor. So there are two numbers. *Allocated* memory is what
        tensors use. *Reserved* memory is what PyTorch has, the cache included, and no other program
        can use it. (If PyTorch's allocator has other settings than usual, exact numbers are not
        claimed.)
    """)
    count = scaled(64 * MiB, lambda n: 8 * n)  # @measure count
    start = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    x = torch.empty(count, device="cuda")
    held = torch.cuda.memory_allocated() - start[0]  # @measure held as B
    exact = default_allocator()  # @measure exact
    if exact:
        assert held == 4 * count, "The tensor uses 4 bytes for each number."
    del x
    after = torch.cuda.memory_allocated()
    assert after == start[0], "After del, no tensor uses these bytes."
    kept = torch.cuda.memory_reserved() - start[1]  # @measure kept as B
    if exact:
        assert kept == 4 * count, "PyTorch still has all of these bytes."
    assert kept >= held >= 4 * count, "With any allocator, PyTorch has at least these bytes."  # @hide
    note(r"""
        `empty_cache` returns them to the driver. That makes room for other programs, but not for
        yours, which could use the cache anyway. So it is seldom useful in a training loop, and
        costs time:
    """)
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    if exact:
        assert reserved == start[1], "PyTorch has as much as at first."
    x = torch.empty(count, device="cuda")
    del x
    half = torch.empty(count // 2, device="cuda")
    cached = torch.cuda.memory_reserved() - start[1]
    taken = torch.cuda.memory_allocated() - start[0]
    question(r"""
        After `del x`, and without `empty_cache`, a tensor of half as many floats is made. It is put
        into the memory that `x` had. How many bytes of that memory does PyTorch then have for no
        tensor?
    """, answer=cached - taken,
        check=4 * count // 2, unit="B",
        why="`x` had `4 * count` bytes, and the new tensor uses half of them. The other half stays in the cache.")


@aside
@requires("cuda")
def the_driver_knows_how_much_memory_there_is() -> None:
    """A program gets less memory of a GPU than the driver reports, and that is not the number on the box."""
    note(r"""
        How much memory does a GPU have? There are three answers. The datasheet names one number,
        `card.memory`. The driver reports another one, `total`. What a program can get, `free`, is
        less than that, because CUDA itself and other programs take some. Ask for all three. The GPU
        in use is number `0`; `find` looks its name up in this book's table of datasheets, which
        also has what others saw the driver report:
    """)
    used = torch.cuda.current_device()  # @measure used
    assert used == 0, "The first visible GPU is used."
    properties = torch.cuda.get_device_properties(used)
    name = properties.name  # @measure name
    total = properties.total_memory  # @measure total as B
    free, seen = torch.cuda.mem_get_info()  # @measure free as B
    assert free < seen, "Less is free than the driver reports."
    card = find(name)  # @measure card
    if card is not None:
        ratio = total / card.memory  # @measure ratio
        assert 0.98 < ratio < 1.08, \
            "What the driver reports is near the datasheet's number."
    if card is not None and card.reported is not None:
        part = total / card.reported  # @measure part
        assert 0.95 < part <= 1, \
            "The driver reports nearly all of what others saw reported."
    note(r"""
        Datasheet and driver differ because memory is built in GiB and sold in GB, so most cards
        have more bytes than the datasheet says. Error correction, where it is on, may take some of
        them. A program that depends on the number should ask the driver, by `total_memory`.
    """)
    question(rf"""
        An L4 is sold with `24` GB [@nvidia-l4] and reports {(CARDS['L4'].reported or 0) // MiB:,}
        MiB [@seen-modal]. A GB is `1000**3` bytes, and a GiB `1024**3`. How many GiB are the first,
        and how many the second?
    """, answer=[CARDS["L4"].memory / GiB, (CARDS["L4"].reported or 0) / GiB],
        check=[24 * 1000**3 / 1024**3, 23034 / 1024], unit="GiB",
        why="The first is `24 * 1000**3` bytes, divided by `1024**3`. The second is the MiB divided by `1024`.")


@aside
@requires("cuda")
def a_narrow_product_is_timed_here() -> None:
    """How much faster a narrow format is has to be measured on the card."""
    note(r"""
        The datasheet of an A100 promises `16` times as many FLOP/s in `bfloat16` as in `float32`
        [@nvidia-a100]. Does a program get that? It has to be measured. The product must be large,
        because a GPU has many arithmetic units, and small products leave most of them idle. So time
        the product of a large square matrix with itself in both formats. `time_call` gives the
        seconds of a call, `cool_down` waits a second in between, and `peak` looks up what the card
        promises:
    """)
    n = scaled(8192, lambda n: 20 * n * n)  # @measure n
    a = torch.randn(n, n, device="cuda")
    b = a.bfloat16()
    with float32_products():  # no TF32, whatever the environment says
        wide = time_call(lambda: a @ a, "cuda")  # @measure wide
    cool_down()
    narrow = time_call(lambda: b @ b, "cuda")  # @measure narrow
    speedup = wide.seconds / narrow.seconds  # @measure speedup as times
    card = find(torch.cuda.get_device_name())
    promised = peak(card, "float32"), peak(card, "bfloat16")  # @measure promised
    achieved = [2 * n**3 / t.seconds for t in (wide, narrow)]  # @measure achieved as FLOP/s
    if card is not None and promised[1] is not None:
        assert 0.3 * promised[1] < achieved[1] <= card.boost * promised[1], \
            "In bfloat16, the card does at least 0.3 times what it promises."
        assert 1 < speedup, "In bfloat16, the product is faster."
    work = flops(lambda: b @ b)  # @measure work as FLOP
    assert work == flops(lambda: a @ a) == 2 * n**3, \
        "In both formats, the product takes 2 * n**3 FLOPs."
    question(r"""
        An A100 promises `19.5` TFLOP/s in `float32` and `312` in `bfloat16` [@nvidia-a100]. A
        product in `float32` takes `80` ms there. How long does it take in `bfloat16`, if both reach
        the same share of their promise?
    """, answer=80e-3 * 19.5 / 312,
        check=0.08 / 16, unit="s",
        why="`bfloat16` has `312 / 19.5 = 16` times the FLOP/s, so the product takes a sixteenth of the time.")


@aside
@requires("cuda")
def both_one_byte_formats_multiply() -> None:
    """A card's units for one-byte floats multiply `E4M3` and `E5M2` and return `bfloat16`."""
    note(r"""
        `E4M3` and `E5M2` are floats of [one byte](#one_byte_comes_in_two_formats). Recent cards
        have units that multiply matrices of them, and the two formats may be mixed. The result is
        in a wider format, because a sum of many products would not fit into one byte. Multiply
        matrices of `32 * 32` ones with `scaled_mm`, which also takes a scale for each matrix, here
        `1`:
    """)
    if torch.cuda.get_device_capability() >= (8, 9):
        one = torch.tensor(1.0, device="cuda")
        ones = torch.ones(32, 32, device="cuda")
        left, right = ones.to(E5M2), ones.to(E4M3).t()
        whole = F.ScalingType.TensorWise  # a scale for each tensor
        mixed = F.scaled_mm(left, right, one, whole, one, whole)  # @inspect mixed
        plain = F.scaled_mm(right.t(), right, one, whole, one, whole)  # @inspect plain
        assert mixed.dtype == torch.bfloat16, "The result is in bfloat16."
        assert mixed.sum().item() == 32**3, \
            "E5M2 times E4M3 gives 32 in each of the 32 * 32 entries."
        assert plain.sum().item() == 32**3, \
            "E4M3 times E4M3 gives 32 in each entry, too."
    question(r"""
        A `(16, 64)` matrix in `E5M2` is multiplied by a `(64, 32)` matrix in `E4M3`. The result is
        in `bfloat16`, `2` bytes a number. How many bytes do the three matrices take together?
    """,
        answer=16 * 64 * E5M2.itemsize + 64 * 32 * E4M3.itemsize
            + 16 * 32 * torch.bfloat16.itemsize,
        check=1024 + 2048 + 2 * 512,
        unit="B",
        wrong={
            "The result has two bytes a number.": 16 * 64 + 64 * 32 + 16 * 32,
        },
        why="The first takes `16 * 64` bytes, the second `64 * 32`, and the result `16 * 32 * 2`.")
