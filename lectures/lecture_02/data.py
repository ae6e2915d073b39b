"""Random generators, token files, and batches on their way to the device."""
import os
import random
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from timing import time_call
from torch import Tensor, nn
from units import GB, TERA, MiB

from litbook import aside, misbelief, note, question, requires

from .measure import message_of, scaled


def data_and_randomness() -> None:
    """Randomness and data."""
    note(r"""
        What a model learns from is a row of integers in a file, and the file does not say how wide
        the integers are. Which of them it sees first is decided by a random generator, and a
        program has more of those than its seeds reach. Neither slip raises an error. Both change
        every number that follows.
    """)
    chance_enters_in_three_places()
    each_library_keeps_a_generator_of_its_own()
    a_shared_generator_couples_what_shares_it()
    text_becomes_a_row_of_integers()
    a_token_file_does_not_know_its_dtype()
    a_memory_map_loads_what_is_touched()
    a_memory_map_may_write_to_your_data()
    the_size_of_the_data_is_tokens_times_width()
    a_batch_is_inputs_and_their_next_tokens()
    the_last_start_leaves_room_for_a_target()
    narrow_tokens_need_a_cast()
    stacking_arrays_comes_before_converting_them()
    pinning_needs_an_accelerator()
    a_pinned_copy_does_not_wait()
    a_second_stream_hides_the_copy()


@aside
def chance_enters_in_three_places() -> None:
    """Chance sets the first weights, drops activations and orders the data."""
    note(r"""
        Weights start as random numbers. *Dropout* sets random activations to zero while training.
        The examples come in shuffled order. Do any of them twice, and the second time is different.
    """)
    first, second = nn.Linear(4, 4).weight, nn.Linear(4, 4).weight  # @unnoticed: 4: any size
    assert not torch.equal(first, second), "two initializations"
    ones = torch.ones(100)  # @unnoticed: 100: enough for two draws to differ
    dropped, again = F.dropout(ones), F.dropout(ones)  # @inspect dropped
    assert not torch.equal(dropped, again), "two sets of zeros"
    order, reorder = torch.randperm(100), torch.randperm(100)  # @unnoticed: 100: enough for two draws to differ
    assert not torch.equal(order, reorder), "two shuffles"

    note(r"""
        None of it is chance in the strict sense. A *generator* computes the numbers from a state; a
        *seed* sets that state, and from there the sequence is fixed.
    """)

    def after_seeding() -> Tensor:
        torch.manual_seed(0)
        return F.dropout(ones)

    assert torch.equal(after_seeding(), after_seeding()), "the same zeros"
    note(r"""
        Advice: fix the seeds while looking for a bug, because two runs that agree to the last bit
        can be compared line by line. Vary them before believing a result, because one seed is a
        sample of one.
    """)
    results = set()
    for call in range(10):
        if call in (0, 5):  # @unnoticed: 0: the first results come again in either case
            torch.manual_seed(0)
        results.add(tuple(F.dropout(ones).tolist()))
    question(r"""
        `F.dropout(ones)` is called `10` times in a row, and before the first and the sixth call the
        seed is set to `0`. How many different results are there?
    """, answer=len(results),
        check=10 // 2, unit="results")


@aside
def each_library_keeps_a_generator_of_its_own() -> None:
    """PyTorch, NumPy and Python each keep a generator of their own, and NumPy keeps two kinds."""
    note(r"""
        Hence the usual three lines, `torch.manual_seed`, `np.random.seed` and `random.seed`. Draw
        from each library after seeding, and from NumPy also in its newer way.
    """)

    def draws() -> list[float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng().random()
        return [torch.rand(1).item(), old, random.random(), new]

    first, second = draws(), draws()  # @measure first, second
    repeats = [a == b for a, b in zip(first, second)]  # @inspect repeats
    assert repeats == [True, True, True, False], "the newer one escapes"

    misbelief("Seeding PyTorch, NumPy and Python makes a run reproducible.", r"""
        It seeds three generators. Whatever makes a generator of its own needs a seed of its own,
        and a seed does nothing about the order in which a device adds up.
    """)
    newer, same = np.random.default_rng(0), np.random.default_rng(0)
    assert newer.random() == same.random(), "seeded where it is made"
    note(r"""
        The rest of the list is longer: worker processes that load data, kernels that are chosen by
        timing them, operations that add in whatever order their threads arrive, memory that is read
        before it is written, and with every release, platform and device the kernels change
        [@pytorch-reproducibility]. The part on training returns to it.
    """)
    def partly() -> list[float]:
        torch.manual_seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng(7).random()
        return [torch.rand(1).item(), random.random(), old, new]

    question(r"""
        A program seeds PyTorch and Python, and draws from both, from `np.random.rand()` and from
        `np.random.default_rng(7)`. How many of the four draws repeat in the next run?
    """, answer=sum(a == b for a, b in zip(partly(), partly())),
        check=4 - 1, unit="draws")


@aside
def a_shared_generator_couples_what_shares_it() -> None:
    """Two purposes that share a generator change each other's draws."""
    misbelief("Use a different seed for every source of randomness.", r"""
        Between libraries equal seeds do no harm: each turns them into another sequence. Two
        generators of the same library do need different ones. But what does most harm is one
        generator for several purposes.
    """)
    torch.manual_seed(0)  # @unnoticed: left out: a section begins with this seed
    np.random.seed(0)  # @unnoticed: left out: a section begins with this seed
    random.seed(0)  # @unnoticed: left out: a section begins with this seed
    draws = torch.rand(1).item(), np.random.rand(), random.random()
    rounded = [round(draw, 3) for draw in draws]  # @inspect rounded
    assert rounded == [0.496, 0.549, 0.844], "three sequences from seed 0"
    twins = [torch.Generator().manual_seed(0) for _ in range(2)]
    first, second = (torch.rand(1, generator=g).item() for g in twins)
    assert first == second == draws[0], "but one kind, one sequence"

    note(r"""
        Here dropout and the shuffle both draw from PyTorch's global generator. Switch dropout on,
        and the data come in another order, so a comparison of the two runs compares two things at
        once. A generator for the shuffle alone keeps the order.
    """)

    def order(dropout: bool, own: torch.Generator | None) -> list[int]:
        torch.manual_seed(0)
        if dropout:
            F.dropout(torch.ones(8))
        shuffled: list[int] = torch.randperm(8, generator=own).tolist()
        return shuffled

    without = order(False, own=None)  # @inspect without
    reshuffled = order(True, own=None)  # @inspect reshuffled
    assert reshuffled != without, "dropout moved the data"
    without = order(False, torch.Generator().manual_seed(0))  # @unnoticed: left out: the order of seed 0 from either generator
    kept = order(True, torch.Generator().manual_seed(0))  # @inspect kept
    assert kept == without, "the order stays"
    orders = set()
    for dropout in (False, True):
        own = torch.Generator().manual_seed(0)
        orders |= {tuple(order(dropout, None)), tuple(order(dropout, own))}
    question(r"""
        `order` is called with dropout off and on, each time without a generator and with one of
        seed `0`. How many different orders come out of the four calls?
    """, answer=len(orders),
        check=len({"without dropout or alone", "after dropout"}), unit="orders")


@aside
def text_becomes_a_row_of_integers() -> None:
    """A tokenizer turns text into a row of integers."""
    note(r"""
        A language model computes with numbers. How does text become numbers? A *tokenizer* has a
        list of pieces of text, the *vocabulary*. It cuts the text into such pieces, the tokens, and
        writes down the number of each. The simplest tokenizer takes the bytes of the text as
        pieces, so every token is a number below `2**8`. Most letters are one byte; letters such as
        `ê` and `ç` are two:
    """)
    text = "count everything, même ça"
    tokens = np.frombuffer(text.encode(), dtype=np.uint8)  # @inspect tokens
    assert tokens[:5].tolist() == [99, 111, 117, 110, 116], \
        "The first five tokens are the letters c, o, u, n, t."
    assert tokens.tobytes().decode() == text, \
        "The tokens can be turned back into the text."
    extra = len(tokens) - len(text)  # @inspect extra
    assert extra == 2, \
        "There are two tokens more than letters: ê and ç take two bytes each."
    question("How many tokens does this tokenizer make of `naïve café`?",
             answer=len("naïve café".encode()),
        check=sum(1 + (ord(letter) > 127) for letter in "naïve café"), unit="tokens",
        wrong={
            "Two of the letters take two bytes.": 10,
            "Both ï and é take a second byte.": 11,
        },
        hint="How many letters are there, with the space, and how many take a byte more?",
        why=r"""
            There are ten characters, with the space. `ï` and `é` take a second byte each: `10 + 2`.
        """)


@aside
def a_token_file_does_not_know_its_dtype() -> None:
    """A file of raw tokens does not know its dtype."""
    note(r"""
        In a file, tokens are bytes, and which numbers these are the file does not say. `tofile`
        writes the bytes of an array and nothing else. A *memory map* treats such a file as an
        array: `np.memmap` takes the name and, from you, the dtype.
    """)
    tokens = np.arange(1, 11, dtype=np.int32)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # @unnoticed: ignore_cleanup_errors= dropped: what an open map needs on Windows
        raw = Path(folder) / "tokens.bin"
        tokens.tofile(raw)
        size = raw.stat().st_size  # @inspect size as B
        assert size == 10 * 4, "ten numbers, nothing else"
        back = np.memmap(raw, dtype=np.int32, mode="r")  # @inspect back  # @unnoticed: 'r', mode= dropped: nothing is written here
        assert back.tolist() == tokens.tolist(), "what was written"
        note(r"""
            Leave the dtype out, or get it wrong, and the same bytes are other tokens. There is no
            error, as long as their number is a multiple of the dtype's size.
        """)
        unstated = np.memmap(raw, mode="r")  # @inspect unstated  # @unnoticed: 'r', mode= dropped: nothing is written here
        wrong = np.memmap(raw, dtype=np.int64, mode="r")  # @inspect wrong  # @unnoticed: 'r', mode= dropped: nothing is written here
        assert (len(unstated), len(wrong)) == (40, 5), "other lengths"

        misbelief('`array.tofile("data.npy")` writes a NumPy file, and NumPy can load it back.', r"""
            CS336 gives its raw file such a name [@cs336]. It promises a header that is not there.
            Whatever a file is called, `np.load` looks for one, finds none, takes the bytes for a
            pickled Python object and, unless told to trust it, refuses.
        """)
        refused = message_of(lambda: np.load(raw))  # @inspect refused
        assert "pickle" in refused, "not a NumPy file"
        note(r"""
            Call raw files `.bin`. Or spend some bytes on a real header, once for a file of any
            size, and map that:
        """)
        headed = Path(folder) / "tokens.npy"
        np.save(headed, tokens)
        mapped = np.load(headed, mmap_mode="r")  # @unnoticed: mmap_mode= dropped: the same numbers, loaded
        header = headed.stat().st_size - size  # @inspect header as B
        assert header == 128, "states dtype and shape"
        assert mapped.dtype == np.int32, "known without being told"
    question(r"""
        `12` tokens are written as `int64`, and the file is mapped as `uint16`. How many tokens
        appear?
    """, answer=len(np.arange(12, dtype=np.int64).view(np.uint16)),
        check=12 * 8 // 2, unit="tokens")


def resident_bytes() -> int | None:
    """Bytes of this process that are in physical memory now; None where the system has no `/proc`."""
    counts = Path("/proc/self/statm")
    if not counts.exists():
        return None
    return int(counts.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resident_after(touch: Callable[[], object]) -> int | None:
    """Bytes that become resident while `touch` runs; None where nobody counts them."""
    before = resident_bytes()
    touch()
    after = resident_bytes()
    return None if before is None or after is None else after - before


@aside
def a_memory_map_loads_what_is_touched() -> None:
    """A memory map loads the pages that are touched, and some around them."""
    note(r"""
        How does a program read tokens from a file that is larger than memory? With a *memory map*,
        `np.memmap`: an array whose numbers stay in the file until somebody reads them. Here the
        file has `50` GB, more than the memory of most laptops. (Its length is set, but nothing has
        been written, so it takes no space on the disk.) Read `32` tokens here and there, `64` bytes
        in all, and then a long stretch of `64` MiB at its start. `resident_after` measures by how
        much the memory of this process grows:
    """)
    size = 50 * GB
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # @unnoticed: ignore_cleanup_errors= dropped: what an open map needs on Windows
        path = Path(folder) / "tokens.bin"
        with path.open("wb") as file:
            file.truncate(size)
        data = np.memmap(path, dtype=np.uint16, mode="r")  # @unnoticed: mode= dropped: nothing is written here
        assert len(data) == 25 * 10**9, "tokens within reach"
        few, stretch = data[:: len(data) // 32], data[: 32 * MiB]
        peek = resident_after(few.sum)  # @measure peek as B
        read = resident_after(stretch.sum)  # @measure read as B
    assert (few.nbytes, stretch.nbytes) == (64, 64 * MiB), "touched"
    if peek is not None and read is not None:
        assert few.nbytes < peek < size, "more than was touched, not the file"
        assert peek < read, "touch more, and more is resident"
    note(r"""
        The memory grew by more than what was read, and by much less than the file. The cause: the
        operating system loads a file in blocks, called *pages*, and always whole ones. Usually it
        also loads a few neighbours. A page that was read stays in memory; one says that it is
        *resident*. It may be dropped whenever memory runs short, because the file still has it.
    """)
    question(r"""
        `500` tokens are read from a memory map, each from another page, and a page has `16384`
        bytes. How many bytes become resident at least?
    """, answer=500 * 16384,
        wrong={
            "Those are the tokens; whole pages are read.": 1000,
        },
        check=sum(2**14 for _ in range(500)),
        hint="How much is read when one token of a page is wanted?", unit="B",
        why=r"""
            Whole pages are read, however little of each is wanted: `500` pages for `500` tokens.
            Had the tokens been neighbours, a single page would have held them all.
        """)


@aside
def a_memory_map_may_write_to_your_data() -> None:
    """A memory map opened carelessly writes to your data."""
    misbelief("Through a memory map one can read, compute with and modify any part of the file.",
        r"""
            One can, and that is the trouble. The default mode writes: an assignment meant for an
            array in memory changes the training set on disk.
        """)
    tokens = np.arange(1, 11, dtype=np.int32)  # @unnoticed: 11: any number of tokens
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # @unnoticed: ignore_cleanup_errors= dropped: what an open map needs on Windows
        file = Path(folder) / "tokens.bin"
        tokens.tofile(file)
        careless = np.memmap(file, dtype=np.int32)
        assert careless.mode == "r+", "the default is read and write"
        careless[0] = 99
        careless.flush()  # @unnoticed: left out: the system writes it, sooner or later
        on_disk = np.fromfile(file, dtype=np.int32)  # @inspect on_disk
        assert on_disk[0] == 99, "the file has changed"

        note("Mode `r` refuses to write. Mode `c`, *copy on write*, keeps the changes to itself.")
        locked = np.memmap(file, dtype=np.int32, mode="r")  # @unnoticed: dtype= dropped, int32: any format refuses
        refused = message_of(lambda: locked.__setitem__(1, 99))  # @inspect refused
        assert "read-only" in refused, "refused"
        private = np.memmap(file, dtype=np.int32, mode="c")
        private[1] = 99
        still = np.fromfile(file, dtype=np.int32)
        assert (private[1], still[1]) == (99, 2), "changed here, not there"
        assert private.nbytes == still.nbytes, "all of the file"  # @hide
        note(r"""
            Advice: for one long file of tokens, read at random places, a map in mode `r` is hard to
            beat. Data that must be parsed, decompressed or streamed want something else.
        """)
        careless[5] = 50
        careless.flush()  # @unnoticed: left out: the system writes it, sooner or later
        private = np.memmap(file, dtype=np.int32, mode="c")  # @unnoticed: left out, dtype= dropped, int32: any private map keeps 60 to itself
        private[5] = 60
        on_disk = np.fromfile(file, dtype=np.int32)
    question(r"""
        Token `5` is set to `50` through a map in mode `r+`, then to `60` through one in mode `c`.
        What is it on disk, and what in the second map?
    """, answer=[int(on_disk[5]), int(private[5])],
        check=[50, 60])


@aside
def the_size_of_the_data_is_tokens_times_width() -> None:
    """The file of a training set has tokens times bytes per token."""
    note(r"""
        How large is the file of a training set? It is a row of integers, one for each token. So its
        size is the number of tokens times the bytes of an integer. The largest models of the first
        LLaMA family were trained on `1.4` trillion tokens [@touvron2023]. An integer of the format
        `uint16` takes `2` bytes, one of `int32` takes `4`:
    """)
    tokens = 14 * 10**11
    narrow = tokens * np.dtype(np.uint16).itemsize  # @inspect narrow as B
    wide = tokens * np.dtype(np.int32).itemsize  # @inspect wide as B
    assert narrow == 2800 * GB, "With two bytes a token, the file has 2800 GB."
    assert wide == 5600 * GB, "With four bytes a token, the file has 5600 GB."
    note(r"""
        The text itself, before it was turned into tokens, has yet another size. The report of LLaMA
        gives it for each source of text [@touvron2023]; together they are:
    """)
    text = (3300 + 783 + 328 + 83 + 85 + 92 + 78) * GB  # @inspect text as B
    assert text == 4749 * GB, "The sources of text have 4749 GB together."
    misbelief(f"LLaMA's training data is {narrow / TERA} TB.", rf"""
        That is one of three sizes: tokens of {narrow // tokens} bytes each. With {wide // tokens}
        bytes a token it is {wide / TERA} TB, and as text it was {text / TERA:.2f} TB. So say what
        was counted.
    """)
    note(r"""
        How many bytes a token needs depends on the vocabulary, the list of all tokens. `2` bytes
        have `2**16 = 65536` values. That was enough for LLaMA. Llama 3 has a vocabulary of `128K`
        tokens [@llama3], so it needs a wider format:
    """)
    vocabulary = np.iinfo(np.uint16).max + 1  # @inspect vocabulary
    assert vocabulary == 65536, "A uint16 has 65536 values."  # @hide
    question(r"""
        A text has `2` trillion tokens, and the vocabulary has `100,000`. How large is the file, in
        the narrowest of the formats `uint8`, `uint16` and `uint32` (`1`, `2` and `4` bytes) that
        has enough values?
    """, answer=2 * 10**12 * np.min_scalar_type(100_000 - 1).itemsize,
        wrong={
            "uint16 has too few values for this vocabulary.": 4 * 10**12,
        },
        check=2 * 10**12 * next(w for w in (1, 2, 4) if 256**w >= 100_000),
        hint="How many values has each of the three formats?", unit="B",
        why=r"""
            `uint16` has `65536` values, too few for this vocabulary. So each token takes `4` bytes,
            in all `2e12 * 4`.
        """)


def get_batch(
    data: NDArray[Any], batch: int, length: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Random stretches of `data`, and the same stretches one token later, as int64."""
    last = len(data) - length
    starts = torch.randint(last, (batch,), generator=generator).tolist()
    rows = np.stack([data[i : i + length + 1] for i in starts])
    tokens = torch.from_numpy(rows.astype(np.int64))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


@aside
def a_batch_is_inputs_and_their_next_tokens() -> None:
    """A batch is inputs and targets; each target is the next token."""
    note(r"""
        A language model learns to predict the next token. So the right answer at each place of a
        text, the *target*, is the token that comes next. For inputs of `4` tokens, take a sequence
        `s` of `5` tokens from the data. The inputs are the first four, `s[:-1]`, and the targets
        are the last four, `s[1:]`. The helper `get_batch` does that for several sequences, from
        random places of the data. Here it takes `2` sequences from data that count up, so that one
        can see the shift:
    """)
    data = np.arange(1, 11, dtype=np.int32)  # @unnoticed: 1, 11, dtype= dropped, int32: any tokens that count on
    x, y = get_batch(data, 2, 4, torch.Generator().manual_seed(0))  # @inspect x, y
    assert x.shape == (2, 4), "The batch has 2 sequences of 4 tokens."
    assert torch.equal(y, x + 1), "Every target is the token after its input."
    gapless = x.is_contiguous(), y.is_contiguous()  # @hide
    assert gapless == (True, True), "Inputs and targets are copies without gaps."  # @hide
    assert x.dtype == torch.int64, "In the batch a token is an int64, 8 bytes."

    note("A random generator picks the places. Its *seed*, the number it begins with, decides which they are: the same seed gives the same batch.")
    other, _ = get_batch(data, 3, 5, torch.Generator().manual_seed(0))  # @hide
    again, _ = get_batch(data, 2, 4, torch.Generator().manual_seed(0))
    moved, _ = get_batch(data, 2, 4, torch.Generator().manual_seed(1))
    assert other.shape == (3, 5), "Another size gives another shape."  # @hide
    assert torch.equal(again, x), "The same seed gives the same sequences."
    assert moved.shape == x.shape, \
        "Another seed gives a batch of the same size."  # @hide
    assert not torch.equal(moved, x), "Another seed gives other sequences."
    question(r"""
        A batch has `8` sequences of `1024` tokens, and each token is an `int64` of `8` bytes. How
        many bytes do inputs and targets take together?
    """, answer=2 * get_batch(np.arange(9999), 8, 1024, torch.Generator())[0].nbytes,
        wrong={
            "Targets take as much as inputs.": 8 * 1024 * 8,
            "In the batch a token has eight bytes.": 2 * 8 * 1024 * 2,
            "In the batch a token has eight bytes, not four.": 2 * 8 * 1024 * 4,
        },
        check=2 * 8 * 1024 * 8,
        hint="How many tokens have inputs and targets together?",
        why=r"""
            Inputs and targets have `8 * 1024` tokens each, and a token takes `8` bytes:
            `2 * 8 * 1024 * 8`.
        """, unit="B")


@aside
def the_last_start_leaves_room_for_a_target() -> None:
    """How far the starts may go depends on whether targets are taken."""
    note(r"""
        `get_batch` cuts stretches out of the data at random places, here `4000` of length `4`. The
        targets are the same stretches, a token further on, so the last start has to leave room for
        it. These tokens count from `1`: the first of a stretch, less one, is where it starts.
    """)
    misbelief("A stretch may start anywhere in `randint(len(data) - length)`.", r"""
        With targets that is exactly right: `randint` leaves its end out. Without them it is one
        short, and the last token of the file is never seen at all.
    """)
    data = np.arange(1, 11, dtype=np.int32)  # @unnoticed: dtype= dropped, int32: any whole numbers
    generator = torch.Generator().manual_seed(0)
    x, y = get_batch(data, 4000, 4, generator)  # @unnoticed: 4000: enough to draw each start
    starts = (x[:, 0] - 1).unique().tolist()  # @inspect starts
    assert starts == [0, 1, 2, 3, 4, 5], "as many as ten less four"
    inputs, targets = x.unique().tolist(), y.unique().tolist()
    assert inputs == [1, 2, 3, 4, 5, 6, 7, 8, 9], "the last is no input"
    assert targets == [2, 3, 4, 5, 6, 7, 8, 9, 10], "but it is a target"
    note(r"""
        A file with no room for a target has no valid start. `get_batch` fails, in the words of the
        function that draws:
    """)
    refused = message_of(lambda: get_batch(data[:4], 1, 4, generator))  # @inspect refused  # @unnoticed: 4 -> 5, 4 -> 8: longer fits even less
    assert "to be less than" in refused, "four tokens are too few"
    fits, _ = get_batch(data[:5], 1, 4, generator)
    assert fits.tolist() == [[1, 2, 3, 4]], "five are just enough"
    question(r"""
        At how many places can a stretch of `30` tokens start in a file of `100`, with targets and
        without?
    """, answer=[100 - 30, 100 - 30 + 1],
        check=[sum(start + 30 + more <= 100 for start in range(100)) for more in (1, 0)], unit="places")


@aside
def narrow_tokens_need_a_cast() -> None:
    """Tokens are stored narrow and used wide."""
    note(r"""
        A narrow format is right for the file and wrong for the model. An embedding refuses `uint16`
        for an index, and the loss refuses `int32` for a target.
    """)
    tokens = torch.from_numpy(np.array([[1, 2, 3]], dtype=np.uint16))  # @unnoticed: 1, 2, 3: any tokens
    table = nn.Embedding(10, 4)  # @unnoticed: 10: as many as there are tokens, or more
    refused = message_of(lambda: table(tokens))  # @inspect refused
    assert "indices" in refused, "no uint16 for an index"
    scores, targets = torch.randn(3, 10), tokens.flatten()  # @unnoticed: 10: as many as there are tokens, or more
    refused = message_of(lambda: F.cross_entropy(scores, targets.int()))  # @inspect refused
    assert "Long" in refused, "no int32 for a target"
    note("So `get_batch` casts. What it widens is a batch, not the file.")
    wide = tokens.long()
    assert table(wide).shape == (1, 3, 4), "a vector per token"
    assert F.cross_entropy(scores, wide.flatten()).numel() == 1, "a loss"
    assert wide.nbytes / tokens.nbytes == 4, "the price, per batch"
    stored = torch.zeros(16, 1000, dtype=torch.uint16)  # @unnoticed: arguments swapped: as many numbers
    question(r"""
        How many bytes do `16` rows of `1000` tokens from a `uint16` file take on disk, and how many
        once an embedding can use them as `int64`?
    """, answer=[stored.nbytes, stored.long().nbytes],
        check=[16 * 1000 * 2, 16 * 1000 * 8], unit="B")


@aside
def stacking_arrays_comes_before_converting_them() -> None:
    """Stack arrays in NumPy; PyTorch would take them apart number by number."""
    note(r"""
        The short way from several arrays to one tensor is `torch.tensor(list_of_arrays)`. It gives
        the right answer, walks through every number as a Python object, and warns.
    """)
    data = np.arange(1, 11, dtype=np.int32)  # @unnoticed: 11, dtype= dropped, int32: tokens enough, of any format
    parts = [data[start : start + 4] for start in (0, 3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # @unnoticed: left out: needed where it has warned before
        torch.set_warn_always(True)  # else it warns once in a process  # @unnoticed: left out: needed where it has warned before
        try:
            walked = torch.tensor(parts)  # @inspect walked
        finally:
            torch.set_warn_always(False)  # @unnoticed: left out: what a later section needs
    stacked = torch.from_numpy(np.stack(parts))
    assert torch.equal(walked, stacked), "the same tensor"
    assert walked.tolist() == [[1, 2, 3, 4], [4, 5, 6, 7]], "two stretches"
    warning = next(str(w.message) for w in caught if w.category is UserWarning)  # @inspect warning
    assert "extremely slow" in warning, "PyTorch's own words"
    question(r"""
        How many Python objects does `torch.tensor` walk through for a list of `64` arrays of `1025`
        tokens?
    """, answer=np.stack([np.zeros(1025)] * 64).size,
        check=64 * 1025, unit="objects")


@aside
def pinning_needs_an_accelerator() -> None:
    """CPU memory is pageable unless it is pinned, and pinning needs an accelerator."""
    note(r"""
        The operating system may move or drop a page of ordinary memory at any time, so a GPU cannot
        be left alone to copy from it: the driver first copies into a buffer that stays put.
        *Pinned* memory stays put from the start. Pinning is itself a copy, made by the CPU while
        the program waits, and without an accelerator PyTorch refuses.
    """)
    x = torch.randn(4, 8)  # @unnoticed: 4, 8, arguments swapped: any tensor
    assert x.is_pinned() is False, "pageable by default"
    available = torch.cuda.is_available()  # @measure available
    if not available:
        silence = ""
        refused = message_of(x.pin_memory)  # @measure refused
        assert refused != silence, "so guard the call"
    note(r"""
        What pinning buys, and that a copy is hidden only on a stream of its own, needs a GPU to
        show. The next two sections measure it there.
    """)
    question(r"""
        A tensor of `100` MiB is sent to the GPU `3` times. How many bytes are copied inside CPU
        memory on the way if it is pageable, and how many if it is pinned once, beforehand?
    """, answer=[copies * 100 * MiB for copies in (3, 1)],
        check=[300 * 2**20, 100 * 2**20], unit="B")


@aside
@requires("cuda")
def a_pinned_copy_does_not_wait() -> None:
    """A copy from pinned memory returns before it has finished."""
    count = scaled(64 * MiB, lambda n: 16 * n)  # @measure count
    pageable = torch.randn(count)
    note(f"The same numbers to the GPU, from either kind of memory: {pageable.nbytes // MiB} MiB.")
    pinned = pageable.pin_memory()
    assert pinned.is_pinned() is True, "a pinned copy of it"
    slow = time_call(lambda: pageable.to("cuda"), "cuda")  # @measure slow
    quick = partial(pinned.to, "cuda", non_blocking=True)
    fast = time_call(quick, "cuda")  # @measure fast
    rates = [pinned.nbytes / t.seconds for t in (slow, fast)]  # @measure rates as B/s
    assert rates[0] < rates[1], "no detour through a buffer"
    arrived = torch.cuda.Event()
    there = quick()
    arrived.record()
    done = arrived.query()  # @measure done
    assert done is False, "the call returned first"
    note(r"""
        That is the point, and the danger. Until the copy has arrived the pinned memory must not be
        overwritten, so wait for the event before the next batch is put into it.
    """)
    arrived.synchronize()
    assert torch.equal(there.cpu(), pageable), "now it is there"
    question("At `25e9` B/s, for how long after the call must this pinned memory be left alone?",
             answer=pinned.nbytes / 25e9,
        check=4 * count / 25e9, unit="s")


@aside
@requires("cuda")
def a_second_stream_hides_the_copy() -> None:
    """Copying overlaps with computing only on a stream of its own."""
    note(r"""
        A *stream* is a queue of work on the card. What stands in one queue is done in order. What
        stands in two may overlap, unless one is told to wait for the other. `in_turn` copies and
        multiplies in one stream; `two_streams` copies in a second.
    """)
    inner = scaled(16384, lambda n: 40 * 4096 * n + 160 * 1024 * 4 * n)  # @measure inner
    batches = [torch.randn(1024, inner).pin_memory() for _ in range(8)]
    w = torch.randn(inner, 4096, device="cuda")
    side, main_stream = torch.cuda.Stream(), torch.cuda.current_stream()

    def in_turn() -> list[Tensor]:
        fetched = (batch.to("cuda", non_blocking=True) for batch in batches)
        return [(x @ w).sum() for x in fetched]

    def two_streams() -> list[Tensor]:
        side.wait_stream(main_stream)
        sums = []
        for batch in batches:
            with torch.cuda.stream(side):
                x = batch.to("cuda", non_blocking=True)
            main_stream.wait_stream(side)  # the product needs its copy
            x.record_stream(main_stream)  # and keeps its memory
            sums.append((x @ w).sum())
        return sums

    expected, sums = torch.stack(in_turn()), torch.stack(two_streams())
    assert torch.allclose(sums, expected), "the same sums"
    serial = time_call(in_turn, "cuda")  # @measure serial
    overlapped = time_call(two_streams, "cuda")  # @measure overlapped
    assert overlapped.seconds < serial.seconds, "copies go on during products"
    misbelief("Pinned memory makes fetching and computing run in parallel.", r"""
        It only allows that. In one stream a copy and a product still take turns. The program need
        not ask early for the next batch: it waits for nothing here, and is done asking long before
        the card is done. Early asking helps where it waits in every turn, as for `loss.item()`.
    """)
    question(r"""
        Each of `8` pinned batches takes `3` ms to copy and `5` ms to multiply. How long does it
        take until all products are there, in one stream and in two?
    """, answer=[8 * (3 + 5), 3 + 8 * max(3, 5)],
        check=[64, 43], unit="ms")
