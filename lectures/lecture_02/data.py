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
        A model learns from a file of tokens, which are integers. The file does not say in which
        format they are, and a program that takes the wrong one reads other tokens. Random numbers
        decide which tokens are read first, and a seed makes only some of them repeat. Neither
        mistake raises an error, and each changes what is trained.
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
    """Random numbers set the first weights, choose what dropout drops, and order the data."""
    note(r"""
        Why do two runs of the same training program give different results? Because training draws
        random numbers. Three places are common. The weights start as random numbers. *Dropout* sets
        random activations to zero during training, here half of them, and doubles the others, so
        that the mean stays. And the examples are *shuffled*, put into a random order. Do each of
        the three twice, with layers of `4` inputs and with `100` numbers:
    """)
    first, second = nn.Linear(4, 4).weight, nn.Linear(4, 4).weight  # @unnoticed: 4: any size
    assert not torch.equal(first, second), \
        "Two new layers have different weights."
    ones = torch.ones(100)  # @unnoticed: 100: enough for two draws to differ
    dropped, again = F.dropout(ones), F.dropout(ones)  # @inspect dropped
    assert not torch.equal(dropped, again), \
        "The second dropout sets other numbers to zero."
    order, reorder = torch.randperm(100), torch.randperm(100)  # @unnoticed: 100: enough for two draws to differ
    assert not torch.equal(order, reorder), \
        "The second shuffle gives another order."

    note(r"""
        But these numbers can be had again, because they are computed. A *generator* computes each
        from its state and then changes the state. A *seed* sets the state. So after the same seed
        the same numbers come in the same order. `after_seeding` sets the seed to `0` and applies
        dropout:
    """)

    def after_seeding() -> Tensor:
        torch.manual_seed(0)
        return F.dropout(ones)

    assert torch.equal(after_seeding(), after_seeding()), \
        "After the same seed, dropout sets the same numbers to zero."
    note(r"""
        Advice: fix the seeds while looking for a bug, because two runs that agree to the last bit
        can be compared line by line. Vary them before believing a result, because what one seed
        shows may be luck.
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
        check=10 // 2, unit="results",
        wrong={
            "After the second seed the first results come again.": 10,
            "Without a new seed, the next call gives another result.": 2,
            "A seed comes before the first and the sixth call only.": 1,
        },
        hint="Which call gives the same result as the sixth?",
        why=r"""
            Between seeds each call continues the sequence, so the first five results differ. The
            second seed starts the same sequence again, so the next five repeat them.
        """)


@aside
def each_library_keeps_a_generator_of_its_own() -> None:
    """PyTorch, NumPy and Python each have a generator of their own, and NumPy makes more."""
    note(r"""
        `torch.manual_seed(0)` makes PyTorch's random numbers repeat. What about those of NumPy and
        of Python? They need seeds of their own, because each library has its own *generator*, the
        function that computes its random numbers. So programs often begin with three lines, one for
        each library. Yet these miss a fourth source: `np.random.default_rng()` makes a new
        generator, which starts from a state of its own. `draws` seeds the three libraries, draws
        one number from each, and a fourth from such a new generator. Call it twice and compare:
    """)

    def draws() -> list[float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng().random()
        return [torch.rand(1).item(), old, random.random(), new]

    first, second = draws(), draws()  # @measure first, second
    repeats = [a == b for a, b in zip(first, second)]  # @inspect repeats
    assert repeats == [True, True, True, False], \
        "The first three draws repeat, that of the new generator does not."

    misbelief("Seeding PyTorch, NumPy and Python makes a run reproducible.", r"""
        It seeds three generators. A generator that is made later needs a seed of its own.
    """)
    newer, same = np.random.default_rng(0), np.random.default_rng(0)
    assert newer.random() == same.random(), \
        "Two new generators that are made with the seed 0 draw the same number."
    def partly() -> list[float]:
        torch.manual_seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng(7).random()
        return [torch.rand(1).item(), random.random(), old, new]

    question(r"""
        A program seeds PyTorch and Python with `0`, but not NumPy. It draws one number each from
        PyTorch, from Python, from `np.random.rand()`, and from `np.random.default_rng(7)`. How many
        of the four are the same in the next run?
    """, answer=sum(a == b for a, b in zip(partly(), partly())),
        check=4 - 1, unit="draws",
        wrong={
            "The last one has a seed: the 7.": 2,
            "Nothing seeds np.random.rand().": 4,
        },
        hint="Which of the four generators starts from a known state?",
        why=r"""
            PyTorch and Python are seeded, and `default_rng(7)` gets its seed where it is made. Only
            `np.random.rand()` draws from a generator without a seed.
        """)


@aside
def a_shared_generator_couples_what_shares_it() -> None:
    """Dropout and the shuffle change each other's random numbers if they share a generator."""
    note(r"""
        You switch dropout on to see whether it helps, with the same seed as before. Now the data
        come in another order, too. Why? Dropout and the shuffle draw from the same generator,
        PyTorch's own. Dropout takes the first numbers, so the shuffle gets later ones. `order` sets
        the seed to `0`, applies dropout if asked, and shuffles `8` numbers:
    """)

    def order(dropout: bool, own: torch.Generator | None) -> list[int]:
        torch.manual_seed(0)
        if dropout:
            F.dropout(torch.ones(8))
        shuffled: list[int] = torch.randperm(8, generator=own).tolist()
        return shuffled

    without = order(False, own=None)  # @inspect without
    reshuffled = order(True, own=None)  # @inspect reshuffled
    assert reshuffled != without, "With dropout, the order is another one."
    note(r"""
        Two runs with and without dropout would now differ in two things at once, and a comparison
        would be worth little. The remedy is a generator for the shuffle alone, with a seed of its
        own. Nothing else draws from it, so the order stays:
    """)
    without = order(False, torch.Generator().manual_seed(0))  # @unnoticed: left out: the order of seed 0 from either generator
    kept = order(True, torch.Generator().manual_seed(0))  # @inspect kept
    assert kept == without, \
        "With a generator for the shuffle, dropout leaves the order as it was."
    note(r"""
        Must every source of random numbers have a seed of its own, then? Not sources in different
        libraries. From the seed `0`, PyTorch, NumPy and Python compute three different numbers,
        because each computes in its own way. But two generators of *one* library with the same seed
        repeat each other:
    """)
    torch.manual_seed(0)
    np.random.seed(0)  # @unnoticed: left out: a section begins with this seed
    random.seed(0)  # @unnoticed: left out: a section begins with this seed
    draws = torch.rand(1).item(), np.random.rand(), random.random()
    rounded = [round(draw, 3) for draw in draws]  # @inspect rounded
    assert rounded == [0.496, 0.549, 0.844], \
        "With the seed 0, the three libraries draw three different numbers."
    twins = [torch.Generator().manual_seed(0) for _ in range(2)]
    first, second = (torch.rand(1, generator=g).item() for g in twins)
    assert first == second == draws[0], \
        "Generators of PyTorch with the seed 0 draw the same number."
    misbelief("Use a different seed for every source of randomness.", r"""
        Libraries may share a seed. Generators of the same library need different ones. And a
        generator that several purposes share does harm with any seed.
    """)
    orders = set()
    for dropout in (False, True):
        own = torch.Generator().manual_seed(0)
        orders |= {tuple(order(dropout, None)), tuple(order(dropout, own))}
    question(r"""
        `order` is called with dropout off and on, each time once without a generator for the
        shuffle and once with one of seed `0`. How many different orders come out of the four calls?
    """, answer=len(orders),
        check=len({"without dropout or alone", "after dropout"}), unit="orders",
        wrong={
            "Three of the four shuffles draw the first numbers of seed 0.": 4,
            "With dropout off, either generator is at the beginning of seed 0.": 3,
        },
        hint="Which of the four shuffles draw the first numbers after the seed?",
        why=r"""
            Three shuffles draw the first numbers of a generator of PyTorch with the seed `0`, and
            give the same order. The fourth comes after dropout, on the generator that both share.
        """)


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
    """A raw file of tokens does not say in which number format they are."""
    note(r"""
        A file has bytes. Which tokens are they? A raw file does not say. `tofile` writes the bytes
        of an array and nothing else. The number format of the array, its *dtype*, is not in the
        file. So whoever reads the file has to know it. `np.memmap` reads a file as an array of a
        format that one tells it. Here are `10` tokens in `int32`, `4` bytes each:
    """)
    tokens = np.arange(1, 11, dtype=np.int32)
    folder = TemporaryDirectory(ignore_cleanup_errors=True)  # @unnoticed: ignore_cleanup_errors= dropped: what an open map needs on Windows
    raw = Path(folder.name) / "tokens.bin"
    tokens.tofile(raw)
    size = raw.stat().st_size  # @inspect size as B
    assert size == 10 * 4, "The file has the 40 bytes of the tokens, no more."
    back = np.memmap(raw, dtype=np.int32, mode="r")  # @inspect back  # @unnoticed: 'r', mode= dropped: nothing is written here
    assert back.tolist() == tokens.tolist(), \
        "Read as int32, the tokens are those that were written."
    note(r"""
        Read in another format, the same bytes are other tokens. There is no error, as long as the
        bytes can be divided into numbers of that format. Without a format, `np.memmap` takes one
        byte for each token:
    """)
    unstated = np.memmap(raw, mode="r")  # @inspect unstated  # @unnoticed: 'r', mode= dropped: nothing is written here
    wrong = np.memmap(raw, dtype=np.int64, mode="r")  # @inspect wrong  # @unnoticed: 'r', mode= dropped: nothing is written here
    assert (len(unstated), len(wrong)) == (40, 5), \
        "With one byte each there are 40 tokens, with eight bytes 5."

    misbelief('`array.tofile("data.npy")` writes a NumPy file, and NumPy can load it back.', r"""
        It writes a raw file. The ending `.npy`, which CS336 gives to its file [@cs336], promises a
        *header*, bytes in front that say dtype and shape. `np.load` finds none and refuses.
    """)
    refused = message_of(lambda: np.load(raw))  # @inspect refused
    assert "pickle" in refused, \
        "np.load takes the bytes for a saved Python object, a pickle, and refuses."
    note(r"""
        So give raw files the ending `.bin`. Or write a header, with `np.save`. Then `np.load` knows
        the format:
    """)
    headed = Path(folder.name) / "tokens.npy"
    np.save(headed, tokens)
    mapped = np.load(headed, mmap_mode="r")  # @unnoticed: mmap_mode= dropped: the same numbers, loaded
    header = headed.stat().st_size - size  # @inspect header as B
    assert header == 128, \
        "The header takes 128 bytes, however many tokens follow."
    assert mapped.dtype == np.int32, \
        "np.load finds out that the tokens are int32."
    folder.cleanup()  # @hide
    question(r"""
        `12` tokens are written as `int64`, `8` bytes each, and the file is read as `uint16`, `2`
        bytes each. How many tokens appear?
    """, answer=len(np.arange(12, dtype=np.int64).view(np.uint16)),
        check=12 * 8 // 2, unit="tokens",
        wrong={
            "The bytes stay the same, not the number of tokens.": 12,
            "Narrower tokens are more, not fewer.": 3,
            "Those are the bytes.": 96,
        },
        hint="How many bytes has the file?",
        why="The file has `12 * 8 = 96` bytes. Read with `2` bytes each, these are `48` tokens.")


def resident_bytes() -> int | None:
    """The bytes of this process that are in memory now; None where the system does not say."""
    counts = Path("/proc/self/statm")
    if not counts.exists():
        return None
    return int(counts.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resident_after(touch: Callable[[], object]) -> int | None:
    """The bytes that come into memory while a call runs; None where the system does not say."""
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
        assert len(data) == 25 * 10**9, \
            "The array has 25 billion tokens of 2 bytes."
        few, stretch = data[:: len(data) // 32], data[: 32 * MiB]
        peek = resident_after(few.sum)  # @measure peek as B
        read = resident_after(stretch.sum)  # @measure read as B
    assert (few.nbytes, stretch.nbytes) == (64, 64 * MiB), \
        "The few tokens are 64 bytes, the stretch 64 MiB."  # @hide
    if peek is not None and read is not None:
        assert few.nbytes < peek < size, \
            "For 64 bytes, memory grows by more than 64 bytes, and by less than the file."
        assert peek < read, "For the long stretch, memory grows by more."
    note(r"""
        For the `64` bytes, the memory grew by far more than `64` bytes, and by far less than the
        file. The cause: the operating system loads a file in blocks, called *pages*, and always
        whole ones. Usually it also loads a few neighbours. A page that was read stays in memory;
        one says that it is *resident*. It may be dropped whenever memory runs short, because the
        file still has it.
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
    """A memory map opened without a mode writes to your file."""
    note(r"""
        A [memory map](#a_memory_map_loads_what_is_touched) shows a file as an array. What happens
        if a program assigns to an element of this array? If the map was opened without a *mode*,
        the file changes. So a slip in a program can spoil the training data. Here a file of tokens
        is opened this way. `flush` makes sure that changes reach the file:
    """)
    tokens = np.arange(1, 11, dtype=np.int32)  # @unnoticed: 11: any number of tokens
    folder = TemporaryDirectory(ignore_cleanup_errors=True)  # @unnoticed: ignore_cleanup_errors= dropped: what an open map needs on Windows
    file = Path(folder.name) / "tokens.bin"
    tokens.tofile(file)
    careless = np.memmap(file, dtype=np.int32)
    assert careless.mode == "r+", \
        "Without a mode, the map is opened to read and write."
    careless[0] = 99
    careless.flush()  # @unnoticed: left out: the system writes it, sooner or later
    on_disk = np.fromfile(file, dtype=np.int32)  # @inspect on_disk
    assert on_disk[0] == 99, "The first token in the file is now 99."

    note(r"""
        Two other modes protect the file. The mode `r` refuses to write. The mode `c`, *copy on
        write*, keeps changes in memory, for this map alone:
    """)
    locked = np.memmap(file, dtype=np.int32, mode="r")  # @unnoticed: dtype= dropped, int32: any format refuses
    refused = message_of(lambda: locked.__setitem__(1, 99))  # @inspect refused
    assert "read-only" in refused, "In mode r, an assignment raises an error."
    private = np.memmap(file, dtype=np.int32, mode="c")
    private[1] = 99
    still = np.fromfile(file, dtype=np.int32)
    assert (private[1], still[1]) == (99, 2), \
        "In mode c, the map has 99, and the file still has 2."
    assert private.nbytes == still.nbytes, "The map has all of the file."  # @hide
    misbelief("Through a memory map one can read, compute with and modify any part of the file.",
        r"""
            One can, and by default without meaning to. Open the map of a training set with
            `mode="r"`, and it can only be read.
        """)
    note(r"""
        Advice: for one long file of tokens that is read at random places, use a map in mode `r`. It
        does not suit data that must first be decompressed or parsed.
    """)
    careless[5] = 50
    careless.flush()  # @unnoticed: left out: the system writes it, sooner or later
    private = np.memmap(file, dtype=np.int32, mode="c")  # @unnoticed: left out, dtype= dropped, int32: any private map keeps 60 to itself
    private[5] = 60
    on_disk = np.fromfile(file, dtype=np.int32)
    folder.cleanup()  # @hide
    question(r"""
        Token `5` is set to `50` through a map in mode `r+`, then to `60` through a second map, in
        mode `c`. Which value has it in the file, and which in the second map?
    """, answer=[int(on_disk[5]), int(private[5])],
        check=[50, 60],
        hint="Which of the two maps writes to the file?",
        why=r"""
            Mode `r+` writes the `50` into the file. Mode `c` keeps the `60` in memory, so the file
            does not change.
        """)


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
        The text, before it was turned into tokens, has another size. The report of LLaMA gives it
        in GB for each of `7` sources of text [@touvron2023]. Their sum:
    """)
    text = (3300 + 783 + 328 + 83 + 85 + 92 + 78) * GB  # @inspect text as B
    assert text == 4749 * GB, "The sources of text have 4749 GB together."
    misbelief(f"LLaMA's training data is {narrow / TERA} TB.", rf"""
        That is one of three sizes: tokens of {narrow // tokens} bytes each. With {wide // tokens}
        bytes a token it is {wide / TERA} TB, and as text it was {text / TERA:.2f} TB. So say what
        was counted.
    """)
    note(r"""
        How many bytes a token needs depends on the vocabulary, the list of all tokens: each token
        of the list needs a number of its own. `2` bytes have `2**16 = 65536` values. That was
        enough for LLaMA. Llama 3 has a vocabulary of `128K` tokens [@llama3], so it needs a wider
        format:
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
    """A batch of inputs and targets, both (batch, length) in int64, from random places of the data."""
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
    """A sequence with targets has one place fewer where it can start."""
    note(r"""
        A batch is made of sequences from random places of the data. At how many places can a
        sequence start? Take data of `10` tokens and sequences of `4`. Without targets a sequence
        needs `4` tokens in a row, and can start at `10 - 4 + 1 = 7` places. With targets, the token
        that comes next at each place, it needs `5` tokens in a row. So one place is gone, and
        `10 - 4 = 6` are left.

        [`get_batch`](#a_batch_is_inputs_and_their_next_tokens) draws a start with
        `randint(10 - 4)`, a random number from `0` to `5`, and returns inputs and targets. Draw
        `4000` sequences. The tokens count from `1` to `10`, so the first token of a sequence, less
        one, is the place where it starts:
    """)
    data = np.arange(1, 11, dtype=np.int32)  # @unnoticed: dtype= dropped, int32: any whole numbers
    generator = torch.Generator().manual_seed(0)
    x, y = get_batch(data, 4000, 4, generator)  # @unnoticed: 4000: enough to draw each start
    starts = (x[:, 0] - 1).unique().tolist()  # @inspect starts
    assert starts == [0, 1, 2, 3, 4, 5], "Sequences start at 6 places."
    inputs, targets = x.unique().tolist(), y.unique().tolist()
    assert inputs == [1, 2, 3, 4, 5, 6, 7, 8, 9], \
        "The last token, 10, is never an input: no token comes after it."
    assert targets == [2, 3, 4, 5, 6, 7, 8, 9, 10], \
        "The last token is a target."
    misbelief("A sequence may start anywhere in `randint(len(data) - length)`.", r"""
        With targets that is right. Without targets it leaves out the last place, and the last token
        is never read: there one needs `randint(len(data) - length + 1)`.
    """)
    note("Data of `4` tokens have no room for a sequence of `4` and its last target, and `get_batch` fails. Data of `5` tokens have room for one:")
    refused = message_of(lambda: get_batch(data[:4], 1, 4, generator))  # @inspect refused  # @unnoticed: 4 -> 5, 4 -> 8: longer fits even less
    assert "to be less than" in refused, \
        "With 4 tokens, randint has no number to draw from."
    fits, _ = get_batch(data[:5], 1, 4, generator)
    assert fits.tolist() == [[1, 2, 3, 4]], \
        "With 5 tokens there is one sequence."
    question(r"""
        At how many places can a sequence of `30` tokens start in data of `100` tokens, with targets
        and without? Give two numbers.
    """, answer=[100 - 30, 100 - 30 + 1],
        check=[sum(start + 30 + more <= 100 for start in range(100)) for more in (1, 0)], unit="places",
        hint="How many tokens in a row does a sequence need with its targets?",
        why=r"""
            Without targets a sequence can start at the places `0` to `70`, which are `71`. With
            targets it needs one token more, so it can start at `70` places.
        """)


@aside
def narrow_tokens_need_a_cast() -> None:
    """PyTorch takes no narrow tokens, so a batch is made wider."""
    note(r"""
        In a file, tokens are often `uint16`, `2` bytes each, to save space. Can a model compute
        with them as they are? No: PyTorch refuses. A model first looks up a row of numbers for each
        token in a table, the *embedding*, and this takes no `uint16`. The loss, which compares
        predictions with the right tokens, takes no `int32`. Here are `3` tokens, a table with `10`
        rows of `4` numbers, and random predictions:
    """)
    tokens = torch.from_numpy(np.array([[1, 2, 3]], dtype=np.uint16))  # @unnoticed: 1, 2, 3: any tokens
    table = nn.Embedding(10, 4)  # @unnoticed: 10: as many as there are tokens, or more
    refused = message_of(lambda: table(tokens))  # @inspect refused
    assert "indices" in refused, "The embedding refuses uint16."
    scores, targets = torch.randn(3, 10), tokens.flatten()  # @unnoticed: 10: as many as there are tokens, or more
    refused = message_of(lambda: F.cross_entropy(scores, targets.int()))  # @inspect refused
    assert "Long" in refused, \
        "The loss refuses int32. It expects int64, called Long."
    note(r"""
        So the tokens of a batch are turned into `int64`, `8` bytes each, by `long()`. That takes
        more bytes, but only for the batch. The file stays narrow.
    """)
    wide = tokens.long()
    assert table(wide).shape == (1, 3, 4), \
        "In int64, each of the 3 tokens gets its row of 4 numbers."
    assert F.cross_entropy(scores, wide.flatten()).numel() == 1, \
        "In int64, the targets give a loss."
    assert wide.nbytes / tokens.nbytes == 4, \
        "In int64, the tokens take four times the bytes of uint16."
    stored = torch.zeros(16, 1000, dtype=torch.uint16)  # @unnoticed: arguments swapped: as many numbers
    question(r"""
        A batch has `16` sequences of `1000` tokens. How many bytes do these take in a `uint16`
        file, and how many as `int64`?
    """, answer=[stored.nbytes, stored.long().nbytes],
        check=[16 * 1000 * 2, 16 * 1000 * 8], unit="B",
        hint="How many tokens are there, and how many bytes does each take?",
        why=r"""
            There are `16 * 1000` tokens. Each takes `2` bytes in `uint16` and `8` bytes in `int64`.
        """)


@aside
def stacking_arrays_comes_before_converting_them() -> None:
    """Stack arrays in NumPy, because PyTorch would take them apart number by number."""
    note(r"""
        A batch consists of several NumPy arrays, one for each sequence. How does one make a single
        tensor of them? The short way is `torch.tensor(list_of_arrays)`. It is slow, because PyTorch
        turns every single number into a Python object first. The fast way is to join the arrays in
        NumPy, by `np.stack`, which copies them as whole pieces of memory. Here are two arrays of
        `4` tokens. The short way gives a warning, which the lines around it catch:
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
    assert torch.equal(walked, stacked), "Both ways give the same tensor."
    assert walked.tolist() == [[1, 2, 3, 4], [4, 5, 6, 7]], \
        "The tensor has a row for each array."
    warning = next(str(w.message) for w in caught if w.category is UserWarning)  # @inspect warning
    assert "extremely slow" in warning, \
        "PyTorch calls the short way extremely slow."
    question(r"""
        A list has `64` arrays of `1025` tokens. How many Python objects does
        `torch.tensor(list_of_arrays)` make on the way?
    """, answer=np.stack([np.zeros(1025)] * 64).size,
        check=64 * 1025, unit="objects",
        wrong={
            "Each number becomes an object, not each array.": 64,
        },
        hint="What becomes an object: an array, or a number?",
        why=r"""
            Each number becomes an object, and there are `64 * 1025` numbers. `np.stack` copies `64`
            pieces of memory instead.
        """)


@aside
def pinning_needs_an_accelerator() -> None:
    """A GPU copies straight from CPU memory only if this memory is pinned."""
    note(r"""
        A batch lies in the memory of the CPU, and a GPU has to copy it. Can the GPU read it by
        itself? Not from ordinary memory, which is *pageable*: the operating system may move it at
        any time. So the driver of the GPU first copies the batch into a buffer that is never moved,
        and the GPU reads from there. *Pinned* memory is never moved either, so the GPU can read it
        without that detour.

        `pin_memory()` makes a pinned copy of a tensor. The CPU makes this copy, and the program
        waits for it. It needs a GPU or another accelerator, and without one PyTorch refuses:
    """)
    x = torch.randn(4, 8)  # @unnoticed: 4, 8, arguments swapped: any tensor
    assert x.is_pinned() is False, "A new tensor is not pinned."
    available = torch.cuda.is_available()  # @measure available
    if not available:
        silence = ""
        refused = message_of(x.pin_memory)  # @measure refused
        assert refused != silence, \
            "Without an accelerator, pin_memory() raises an error."
    note(r"""
        So a program should pin memory only where there is an accelerator. What that gains is
        [measured on a GPU](#a_pinned_copy_does_not_wait).
    """)
    question(r"""
        A tensor of `100` MiB is sent to the GPU `3` times. How many bytes are copied from one place
        in CPU memory to another, if the tensor is pageable, and how many if it is pinned once,
        beforehand? Give two numbers.
    """, answer=[copies * 100 * MiB for copies in (3, 1)],
        check=[300 * 2**20, 100 * 2**20], unit="B",
        hint="What does the driver do each time with pageable memory, and what does pinning do once?",
        why=r"""
            From pageable memory the driver copies the tensor into its buffer each time, `3` times
            `100` MiB. Pinning copies it once, and the GPU then reads the pinned copy by itself.
        """)


@aside
@requires("cuda")
def a_pinned_copy_does_not_wait() -> None:
    """A copy from pinned memory to the GPU returns before it has finished."""
    note(r"""
        Must a program wait while a batch is copied to the GPU? Not if the batch lies in *pinned*
        memory, which the operating system never moves. From there the GPU copies by itself, and
        with `non_blocking=True` the program goes on. Ordinary memory is *pageable*: the system may
        move it at any time, so the driver first copies the batch into a
        [buffer that is pinned](#pinning_needs_an_accelerator).

        First the speed. `time_call` measures a copy from pageable and one from pinned memory. There
        are `64 * MiB` numbers, or fewer, if the card has less room than `16` bytes for each
        (`scaled` sees to that):
    """)
    count = scaled(64 * MiB, lambda n: 16 * n)  # @measure count
    pageable = torch.randn(count)
    pinned = pageable.pin_memory()
    assert pinned.is_pinned() is True, "pin_memory() returns a pinned tensor."
    slow = time_call(lambda: pageable.to("cuda"), "cuda")  # @measure slow
    quick = partial(pinned.to, "cuda", non_blocking=True)
    fast = time_call(quick, "cuda")  # @measure fast
    rates = [pinned.nbytes / t.seconds for t in (slow, fast)]  # @measure rates as B/s
    assert rates[0] < rates[1], \
        "The copy from pinned memory moves more bytes in a second."
    note(r"""
        Now the waiting. An *event* is a mark that is put behind the copy, and `query` says whether
        the GPU has reached it. Right after the call it has not:
    """)
    arrived = torch.cuda.Event()
    there = quick()
    arrived.record()
    done = arrived.query()  # @measure done
    assert done is False, "The call has returned, and the copy is not done."
    note(r"""
        So the program can work while the GPU copies. It must not overwrite the pinned memory until
        the copy is done, because the GPU still reads it. `synchronize` waits for the event:
    """)
    arrived.synchronize()
    assert torch.equal(there.cpu(), pageable), \
        "After waiting, the copy is complete."
    question(r"""
        A GPU copies `256` MiB from pinned memory at `25e9` B/s. For how many seconds after the call
        must this memory not be overwritten?
    """, answer=256 * MiB / 25e9,
        check=2**28 / 25e9, unit="s",
        hint="How long does the copy take?",
        why="The memory is read until the copy is done, which takes its bytes divided by the rate.")


@aside
@requires("cuda")
def a_second_stream_hides_the_copy() -> None:
    """Copies go on during products only if they are in a stream of their own."""
    note(r"""
        A GPU has to copy each batch before it can multiply it. Can it copy the next batch while it
        multiplies this one? Yes, with two *streams*. A stream is a queue of work on the GPU. Work
        in one stream is done in order. Work in two streams may overlap, unless one stream is told
        to wait for the other. `in_turn` copies and multiplies `8` batches in one stream.
        `two_streams` copies in a second one, and each product waits only for its own batch:
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
    assert torch.allclose(sums, expected), "Both ways give the same sums."
    serial = time_call(in_turn, "cuda")  # @measure serial
    overlapped = time_call(two_streams, "cuda")  # @measure overlapped
    assert overlapped.seconds < serial.seconds, \
        "With two streams, all batches are done sooner."
    misbelief("Pinned memory makes fetching and computing run in parallel.", r"""
        It only allows that. In one stream a copy and a product still take turns. A second stream
        makes them overlap.
    """)
    question(r"""
        Each of `8` pinned batches takes `3` ms to copy and `5` ms to multiply. After how many ms
        are all products done, with one stream and with two? Give two numbers.
    """, answer=[8 * (3 + 5), 3 + 8 * max(3, 5)],
        check=[64, 43], unit="ms",
        hint="With two streams only the first copy is not hidden behind a product.",
        why=r"""
            In one stream each batch takes `3 + 5` ms. In two, the first copy takes `3` ms; then the
            products follow each other without a pause, `5` ms each, since the next copy is done in
            time.
        """)
