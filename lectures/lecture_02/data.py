"""Random generators, token files, and batches on their way to the device."""
import os
import random
from collections.abc import Callable
from functools import partial
from mmap import PAGESIZE
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from numpy.typing import NDArray
from timing import time_call
from torch import Tensor
from units import GB, TERA, KiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import curves
from .measure import dense_peak, message_of, scaled


def data_and_randomness() -> None:
    """Randomness and data."""
    note(r"""
        A model learns from a file of tokens, which are integers. The file does not say in which
        number format they are, and a program that assumes the wrong one reads other tokens. Random
        numbers decide which tokens are read first, and a seed makes only some of them repeat.
        Neither mistake raises an error, and each changes what is trained.
    """)
    tokens_are_few_bytes_for_much_arithmetic()
    a_batch_is_inputs_and_their_next_tokens()
    each_library_keeps_a_generator_of_its_own()
    a_shared_generator_couples_what_shares_it()
    a_token_file_does_not_know_its_dtype()
    a_memory_map_loads_what_is_touched()
    the_size_of_the_data_is_tokens_times_bytes()
    a_pinned_copy_does_not_wait()
    a_second_stream_overlaps_copies()


@aside
def each_library_keeps_a_generator_of_its_own() -> None:
    """A seed makes the random numbers of one generator repeat, and a program has several."""
    note(r"""
        Why do two runs of the same training program give different results? One reason is that
        training draws random numbers: for the first weights, for the order of the data, and for
        *dropout*, which sets randomly chosen activations to zero. A *generator* computes each
        random number from its state, and then changes the state. A *seed* sets the state, so the
        same seed gives the same sequence of numbers:
    """)
    ones = torch.ones(100)  # @unnoticed: 100: enough for two draws to differ
    dropped, again = F.dropout(ones), F.dropout(ones)  # @hide
    assert not torch.equal(dropped, again), \
        "The second dropout sets other numbers to zero."  # @hide

    def after_seeding() -> Tensor:
        torch.manual_seed(0)
        return F.dropout(ones)

    assert torch.equal(after_seeding(), after_seeding()), \
        "After the same seed, dropout sets the same elements to zero."
    note(r"""
        PyTorch, NumPy and Python each have a generator of their own, so programs often start by
        setting three seeds. But there can be a fourth generator: `np.random.default_rng()` makes a
        new one with a state of its own, and `np.random.seed` does not set it.

        `draws` seeds the three libraries, draws one number from each, and a fourth from a new
        generator. Call it twice and compare:
    """)

    def draws() -> list[float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        seeded = torch.rand(1).item(), np.random.rand(), random.random()
        return [*seeded, np.random.default_rng().random()]

    repeats = [a == b for a, b in zip(draws(), draws())]  # @inspect repeats
    assert repeats == [True, True, True, False], \
        "The first three draws repeat; the draw of the new generator does not."
    misbelief("Seeding PyTorch, NumPy and Python makes a run reproducible.", r"""
        It seeds three generators. A generator that is made later needs a seed of its own.
    """)
    note(r"""
        Advice: fix the seeds while looking for a bug, because two runs that agree to the last bit
        can be compared line by line. Vary them before believing a result, because what one seed
        shows may be luck.
    """)

    def partly() -> list[float]:  # @hide
        torch.manual_seed(0)
        random.seed(0)
        seeded = torch.rand(1).item(), random.random()
        return [*seeded, np.random.rand(), np.random.default_rng(7).random()]

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
    """Dropout changes the order of the data if it draws from the generator of the shuffle, as on the CPU."""
    note(r"""
        You turn on dropout to see whether it helps, with the same seed as before. Now the data come
        in a different order as well. Why? Because on the CPU, dropout and the *shuffle*, which
        orders the data, draw from the same generator. Dropout draws the first numbers, so the
        shuffle gets later ones. (On a GPU, dropout draws from the GPU's own generator. There, any
        other draw on the CPU, such as the first weights of another layer, shifts the shuffle.)

        `order` sets the seed of PyTorch's global generator to `0`, applies dropout if asked, and
        shuffles `8` elements, with the global generator, or with a separate one, `generator`:
    """)

    def order(
        dropout: bool, generator: torch.Generator | None
    ) -> list[int]:
        torch.manual_seed(0)
        if dropout:
            F.dropout(torch.ones(8))
        shuffled = torch.randperm(8, generator=generator)
        return [int(i) for i in shuffled]

    without = order(False, generator=None)  # @inspect without
    reshuffled = order(True, generator=None)  # @inspect reshuffled
    assert reshuffled != without, "With dropout, the order is different."
    note(r"""
        Two runs with and without dropout now differ in two ways at once, so you cannot tell which
        of the two helped. The fix is a generator for the shuffle alone. Nothing else draws from it,
        so the order stays the same. Give it a different seed from the global generator's, here `1`,
        because with the same seed, dropout and shuffle can draw the same random numbers:
    """)
    without = order(False, torch.Generator().manual_seed(1))
    kept = order(True, torch.Generator().manual_seed(1))  # @inspect kept
    assert kept == without, \
        "With a generator for the shuffle, dropout leaves the order as it was."
    torch.manual_seed(0)  # @hide
    np.random.seed(0)  # @hide
    by_torch = torch.randint(256, (4,)).tolist()  # @hide
    by_numpy = np.random.randint(256, size=4).tolist()  # @hide
    assert by_numpy == by_torch, \
        "With the same seed, PyTorch on the CPU and NumPy's older generator draw the same four integers."  # @hide
    orders = set()  # @hide
    for dropout in (False, True):  # @hide
        own = torch.Generator().manual_seed(1)
        orders |= {tuple(order(dropout, None)), tuple(order(dropout, own))}
    question(r"""
        `order` is called with dropout off and on, each time once without a generator for the
        shuffle and once with one of seed `1`. How many different orders come out of the four calls?
    """, answer=len(orders),
        check=len({"global", "global, after dropout", "separate"}), unit="orders",
        wrong={
            "With a generator of its own, the shuffle is the same with dropout and without.": 4,
            "The two generators have different seeds, so they give different orders.": 2,
        },
        hint="Which of the four shuffles draw the same numbers of the same generator?",
        why=r"""
            With a separate generator, both shuffles draw the first numbers of seed `1`, and give
            the same order. With the global one, the shuffle draws the first numbers of seed `0`
            without dropout, and later ones with it. That makes `1 + 2 = 3` orders.
        """)


@aside
def a_token_file_does_not_know_its_dtype() -> None:
    """A raw file of tokens does not say which number format they have."""
    note(r"""
        A file is a sequence of bytes. Which tokens are they? A *raw* file does not say, because it
        has only the bytes of the tokens, and not their number format, the *dtype*. By hand, take
        the bytes `[1, 0, 2, 0]`:

        - read as `uint8`, one byte for each token, they are the tokens `[1, 0, 2, 0]`;
        - read as `uint16`, $2$ bytes for each token, the lower byte first, they are the tokens
          `[1, 2]`.

        Whoever reads the file has to know which. `tofile` writes an array to a raw file, here to
        `raw`, `10` tokens in `int32`, `4` bytes each. `np.memmap` reads a file as an array of a
        given format:
    """)
    folder = TemporaryDirectory(ignore_cleanup_errors=True)  # @hide
    raw = Path(folder.name) / "tokens.bin"  # @hide
    by_hand = np.array([1, 0, 2, 0], dtype=np.uint8).view("<u2").tolist()  # @hide
    assert by_hand == [1, 2], "Two bytes at a time, 1, 0, 2, 0 are 1 and 2."  # @hide
    tokens = np.arange(1, 11, dtype=np.int32)
    tokens.tofile(raw)
    size = raw.stat().st_size  # @inspect size as B
    assert size == 10 * 4, "The file is the 40 bytes of the tokens, no more."
    back = np.memmap(raw, dtype=np.int32, mode="r")  # @inspect back  # @unnoticed: 'r', mode= dropped: nothing is written here
    assert back.tolist() == tokens.tolist(), \
        "Read as int32, the tokens are those that were written."
    note(r"""
        In another format, the same `40` bytes are different tokens. There is no error if they make
        a whole number of tokens. If no format is given, `np.memmap` takes one byte for each token,
        which makes `40` tokens. With `int64`, of `8` bytes, there are `40 / 8 = 5`. The first is
        `1 + 2 * 2**32`: its lower `4` bytes are the token `1`, its upper `4` the token `2`, which
        counts `2**32` times as much:
    """)
    unstated = np.memmap(raw, mode="r")  # @inspect unstated  # @unnoticed: 'r', mode= dropped: nothing is written here
    wrong = np.memmap(raw, dtype=np.int64, mode="r")  # @inspect wrong  # @unnoticed: 'r', mode= dropped: nothing is written here
    assert (len(unstated), len(wrong)) == (40, 5), \
        "With one byte each there are 40 tokens, with eight bytes 5."
    assert wrong[0] == 1 + 2 * 2**32, "The first token of eight bytes is 1 and 2 side by side."  # @hide

    misbelief('`array.tofile("data.npy")` writes a NumPy file, and NumPy can load it back.', r"""
        It writes a raw file, whatever its name. But a `.npy` file begins with a *header*, bytes
        that state dtype and shape. `np.load` finds none and raises an error.
    """)
    refused = message_of(lambda: np.load(raw))  # @hide
    assert "pickle" in refused, \
        "np.load takes the bytes for a saved Python object, a pickle, and refuses."  # @hide
    note(r"""
        So call raw files `.bin`, and record the dtype. Or use `np.save`, which writes a header
        first, here in the file `headed`. Then `np.load` knows the format:
    """)
    headed = Path(folder.name) / "tokens.npy"  # @hide
    np.save(headed, tokens)
    mapped = np.load(headed, mmap_mode="r")  # @unnoticed: mmap_mode= dropped: the same numbers, loaded
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
            "With fewer bytes per token there are more tokens, not fewer.": 3,
            "Those are the bytes.": 96,
        },
        hint="How many bytes does the file have?",
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
    """A memory map loads the parts of a file that are read; without a mode, an assignment changes the file."""
    note(r"""
        How does a program read tokens from a file that is larger than memory? With a *memory map*,
        `np.memmap`: an array whose elements stay in the file until the program reads them. The
        operating system then loads the blocks of the file, *pages*, that have these elements, and
        often some of their neighbours.

        Here the file, `path`, is `50` GB large. (Its length is set, but nothing has been written,
        so it needs no disk space.) Read `32` tokens spread over the whole file, and then `64` MiB
        of tokens at its end. `resident_after` measures by how much the memory of this process
        grows:
    """)
    folder = TemporaryDirectory(ignore_cleanup_errors=True)  # @hide
    path = Path(folder.name) / "large.bin"  # @hide
    path.touch()  # @hide
    size = 50 * GB
    os.truncate(path, size)
    data = np.memmap(path, dtype=np.uint16, mode="r")  # @unnoticed: mode= dropped: nothing is written here
    assert len(data) == 25 * 10**9, \
        "The array has 25 billion tokens of 2 bytes."
    few = data[:: len(data) // 32]  # 32 tokens, far apart
    stretch = data[-32 * MiB :]  # tokens of 2 bytes
    peek = resident_after(few.sum)  # @measure peek as B
    read = resident_after(stretch.sum)  # @measure read as B
    assert (few.nbytes, stretch.nbytes) == (64, 64 * MiB), \
        "The few tokens are 64 bytes, the stretch 64 MiB."  # @hide
    if peek is not None and read is not None:  # where the system reports it
        assert few.nbytes < peek < size, \
            "For 64 bytes, memory grows by more than 64 bytes, and by less than the file."
        assert peek < read, "For the long stretch, memory grows by more."
    note(rf"""
        For `64` bytes the memory grew by far more. Each of the `32` tokens lies in a page of its
        own, here of {PAGESIZE // KiB} KiB, which makes {32 * PAGESIZE // KiB} KiB. What goes beyond
        that are neighbouring pages, which the system loads along with them.

        What if a program assigns to an element of the map? That depends on the *mode* in which the
        file was opened. Without a mode, the file itself changes, so a mistake can spoil the
        training data. In mode `r`, an assignment raises an error. (In mode `c`, *copy on write*, it
        changes only this map, in memory.) Take a small file, `tokens`, of `int32`:
    """)
    tokens = Path(folder.name) / "tokens.bin"  # @hide
    np.arange(1, 11, dtype=np.int32).tofile(tokens)  # @hide
    careless = np.memmap(tokens, dtype=np.int32)
    assert careless.mode == "r+", \
        "Without a mode, the map is opened to read and write."
    careless[0] = 99
    careless.flush()  # @hide
    assert np.fromfile(tokens, dtype=np.int32)[0] == 99, \
        "The first token in the file is now 99."
    locked = np.memmap(tokens, dtype=np.int32, mode="r")  # @unnoticed: dtype= dropped, int32: any format refuses
    refused = message_of(lambda: locked.__setitem__(1, 99))
    assert "read-only" in refused, "In mode r, an assignment raises an error."
    note(r"""
        Advice: for one long file of tokens that is read at random positions, use a map in mode `r`.
    """)
    careless[5] = 50  # @hide
    careless.flush()  # @hide
    private = np.memmap(tokens, dtype=np.int32, mode="c")  # @hide
    private[5] = 60  # @hide
    on_disk = np.fromfile(tokens, dtype=np.int32)  # @hide
    folder.cleanup()  # @hide
    question(r"""
        Token `5` is set to `50` through a map in mode `r+`, then to `60` through a second map, in
        mode `c`. What value does the token have in the file, and what value in the second map?
    """, answer=[int(on_disk[5]), int(private[5])],
        check=[50, 60],
        hint="Which of the two maps writes to the file?",
        why=r"""
            Mode `r+` writes the `50` into the file. Mode `c` keeps the `60` in memory, so the file
            does not change.
        """)


@aside
def the_size_of_the_data_is_tokens_times_bytes() -> None:
    """The size of a training file is the number of tokens times the bytes per token."""
    note(r"""
        How large is the file of a training set? It is a row of integers, one for each token, so its
        size is the number of tokens times the bytes of an integer. By hand, $3$ tokens of `2` bytes
        need `3 * 2 = 6` bytes.

        How many bytes does a token need? That depends on the vocabulary, the list of all tokens,
        because each entry of the list needs its own number. The `2` bytes of a `uint16` have
        `2**16 = 65536` values. Llama 3 has a vocabulary of `128K` tokens [@llama3], too many for
        `2` bytes; an `int32` has `4`.

        So a number of tokens alone gives no size. The largest models of the first LLaMA family were
        trained on `1.4` trillion tokens [@touvron2023]. In either format, with a GB of `10**9`
        bytes, their file would be:
    """)
    tokens = 1400 * 10**9
    narrow = tokens * np.dtype(np.uint16).itemsize  # @inspect narrow as B
    wide = tokens * np.dtype(np.int32).itemsize  # @inspect wide as B
    assert narrow == 2800 * GB, \
        "With 2 bytes per token, the file needs 2800 GB."
    assert wide == 5600 * GB, \
        "With 4 bytes per token, the file needs 5600 GB."
    misbelief(f"LLaMA's training data is {narrow / TERA} TB.", rf"""
        That is its size with {narrow // tokens} bytes per token. With {wide // tokens} it is
        {wide / TERA} TB, and its documents have about `4.7` TB [@touvron2023]. So say what was
        counted.
    """)
    values = np.iinfo(np.uint16).max + 1  # @hide
    assert values == 65536, "A uint16 has 65536 values."  # @hide
    question(r"""
        A training set has `2` trillion tokens, and the vocabulary has `100,000`. How large is the
        file, in the smallest of the formats `uint8`, `uint16` and `uint32` (`1`, `2` and `4` bytes)
        that has enough values?
    """, answer=2 * 10**12 * np.min_scalar_type(100_000 - 1).itemsize,
        wrong={
            "uint16 has too few values for this vocabulary.": 4 * 10**12,
        },
        check=2 * 10**12 * next(w for w in (1, 2, 4) if 256**w >= 100_000),
        hint="How many values does each of the three formats have?", unit="B",
        why=r"""
            `uint16` has `65536` values, too few for this vocabulary. So each token needs `4` bytes,
            in all `2e12 * 4`.
        """)


def get_batch(  # @show
    data: NDArray[Any], batch: int, length: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """A batch of inputs and targets, both (batch, length) in int64, from random positions of the data."""
    positions = len(data) - length  # where a sequence can start
    starts = torch.randint(positions, (batch,), generator=generator).tolist()
    rows = np.stack([data[i : i + length + 1] for i in starts])
    tokens = torch.from_numpy(rows.astype(np.int64))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def tokens_are_few_bytes_for_much_arithmetic() -> None:
    """A GPU that trains a large model needs only kilobytes of tokens per second."""
    half = 0.5 * dense_peak("H100 SXM", "bfloat16")  # @hide
    note(rf"""
        How fast must a program read its training data, so that the GPU never waits for it? First by
        hand, for a model of `1` billion parameters, all of which process every token:

        - a token costs `6` FLOPs per parameter, `2` in the forward pass and `4` in the backward
          pass: about `6e9` FLOPs;
        - an H100 at half of its peak of `989.5e12` FLOP/s [@nvidia-h100] does `494.75e12` FLOPs in
          a second, which is enough for `494.75e12 / 6e9` tokens, about {half / 6e9:,.0f};
        - a token is an integer of `4` bytes, which makes about {4 * half / 6e9 / 1000:.0f} kB per
          second.

        A solid-state disk reads gigabytes per second. Kilobytes are enough for the GPU, because
        each token passes through *all* weights, forward and backward: its few bytes need billions
        of FLOPs. The larger the model, the more FLOPs per token, and the fewer bytes per second for
        each of the GPUs that train it:
    """)
    rate = 0.5 * dense_peak("H100 SXM", "bfloat16")  # FLOP/s

    def tokens_per_second(parameters: float) -> float:
        return rate / (6 * parameters)

    billions = (1, 8, 70, 405)
    needed = {n: 4 * tokens_per_second(n * 1e9) for n in billions}  # @inspect needed as B/s
    assert [round(b / 1000) for b in needed.values()] == [330, 41, 5, 1], \
        "The models need 330, 41, 5 and 1 kB of tokens per second."
    sizes = [2.0**k * 1e8 for k in range(13)]  # @hide
    figure(curves(sizes, {"one H100 at half of its peak": [4 * tokens_per_second(n) for n in sizes]},
                  "parameters", "bytes of tokens per second", log=True), caption=r"""
                      Bytes of tokens that one H100 at half of its peak trains on in a second,
                      against the size of the model. A token is stored as an int32.
                  """, alt="On logarithmic axes a straight line falls from megabytes per second for small models to about a kilobyte for the largest.")
    note(r"""
        So the bytes of the data seldom limit the training of a large language model. They can limit
        training on images, which have many more bytes per FLOP.
    """)
    picture = 100e3 * rate / 48e9  # @hide
    question(r"""
        On the same GPU, a model for images is trained. An image of `100` kB costs the same number
        of FLOPs in a training step as one token in the model of `8` billion parameters. How many
        times as many bytes per second do the images need?
    """, answer=picture / needed[8],
        check=100e3 / 4, unit="times",
        wrong={"A token has 4 bytes.": 100_000},
        hint="The same number of images and tokens per second are trained on. How many bytes does each have?",
        why=r"""
            The GPU trains on the same number of images per second as of tokens, because each costs
            the same FLOPs. An image has `100e3 / 4` times the bytes of a token.
        """, within=0.01)


@aside
def a_batch_is_inputs_and_their_next_tokens() -> None:
    """A batch consists of inputs and targets; each target is the next token."""
    note(r"""
        How is a document turned into training examples for a language model? First a *tokenizer*
        cuts the document into pieces from a fixed list, the *vocabulary*, and replaces each piece
        by its number in the list, its *token*. A language model learns to predict the next token.
        So at each position the *target*, the correct answer, is the token that comes next.

        By hand, make a sequence of `4` inputs. The last input needs a target as well, so take
        `4 + 1 = 5` tokens in a row from the data, say `[3, 4, 5, 6, 7]`:

        - the inputs are all but the last, `[3, 4, 5, 6]`;
        - the targets are all but the first, `[4, 5, 6, 7]`.

        Where can a sequence start? If the data have `10` tokens, the first start is position `0`.
        The last is `10 - 5 = 5`, or the last target would be missing. So the starts are `0` to `5`,
        `10 - 4 = 6` positions.

        `get_batch` makes a batch of several sequences, and draws their starts at random:
        `randint(positions)` draws one of `0` to `positions - 1`. The seed of `generator` makes the
        random numbers the same in each run. The data here count up from `1` to `10`, so that one
        can see the shift. A batch of `2` sequences of `4` tokens:
    """)
    text = "count everything, même ça"  # @hide
    tokens = np.frombuffer(text.encode(), dtype=np.uint8)  # @hide
    assert tokens.tobytes().decode() == text, "The tokens can be turned back into the text."  # @hide
    data = np.arange(1, 11, dtype=np.int32)  # @unnoticed: 1, 11, dtype= dropped, int32: any tokens that count on
    generator = torch.Generator().manual_seed(0)
    x, y = get_batch(data, 2, 4, generator)  # @inspect x, y
    assert x.shape == (2, 4), "The batch has 2 sequences of 4 tokens."
    assert torch.equal(y, x + 1), "Every target is the token after its input."
    assert x.dtype == torch.int64, "In the batch a token is an int64, 8 bytes."  # @hide
    note(r"""
        Does every start occur? Draw `4000` sequences, so many that each start is almost sure to
        occur, and look at their first tokens. Position `0` has the token `1`:
    """)
    many, after = get_batch(data, 4000, 4, generator)  # @unnoticed: 4000: enough to draw each start
    first_tokens = many[:, 0].unique().tolist()  # @inspect first_tokens
    assert first_tokens == [1, 2, 3, 4, 5, 6], \
        "Sequences start at 6 positions."
    assert (int(many.max()), int(after.max())) == (9, 10), \
        "The last token, 10, is a target and never an input: no token comes after it."  # @hide
    question(r"""
        What would a model learn if, by mistake, the targets were equal to the inputs? With the data
        above, at how many of the `4` positions of a sequence would the target be the next token?
    """, answer=int((x[0] == y[0]).sum()),
        check=sum(a == b for a, b in zip([1, 2, 3, 4], [2, 3, 4, 5])),
        hint="What does the model have to predict at each position, and does it already have the answer?",
        why=r"""
            At none. The model would only learn to copy the token that it has just been given: its
            loss falls to nearly zero, and what it generates is that token, again and again.
        """, unit="positions")


def in_turn(batches: list[Tensor], w: Tensor) -> list[Tensor]:  # @stepover
    """Copies each batch to the GPU and multiplies it by `w`, all in one stream; returns the sums of the results."""
    fetched = (batch.to("cuda", non_blocking=True) for batch in batches)
    return [(x @ w).sum() for x in fetched]


def two_streams(  # @stepover  # @show
    batches: list[Tensor], w: Tensor, side: torch.cuda.Stream
) -> list[Tensor]:
    """Copies each batch to the GPU in the stream `side` and multiplies it by `w` in the main stream."""
    main_stream = torch.cuda.current_stream()
    side.wait_stream(main_stream)  # begin after all earlier work
    sums = []
    for batch in batches:
        with torch.cuda.stream(side):
            x = batch.to("cuda", non_blocking=True)
        main_stream.wait_stream(side)  # the matmul needs its copy
        # Do not reuse the memory of x before its matmul is done:
        x.record_stream(main_stream)
        sums.append((x @ w).sum())
    return sums


@aside
@requires("cuda")
def a_pinned_copy_does_not_wait() -> None:
    """A program need not wait for a copy from pinned memory to the GPU."""
    note(r"""
        Does a program have to wait while a batch is copied from the CPU's memory to the GPU? Not if
        the batch is in *pinned* memory and `non_blocking=True` is set. Pinned memory is never moved
        by the operating system. So the GPU can fetch the batch from its address by itself, and the
        program only puts the copy into the GPU's queue and continues. Ordinary memory is
        *pageable*: it may be moved at any time. So the driver, the GPU's part of the operating
        system, first copies the batch into a pinned buffer of its own, and the program waits for
        that.

        By hand: a copy takes $4$ ms, and then the program prepares the next batch, which takes $3$
        ms. If it waits, both take `4 + 3 = 7` ms. If it does not, it prepares the batch during the
        copy, and both are done after $4$ ms.

        The link between an H100 and the CPU carries `64e9` bytes per second in each direction
        [@nvidia-h100]. So a copy of `2**26` elements of $4$ bytes takes at least
        `2**28 / 64e9 = 0.0042` s, far longer than a call that only puts it into a queue. Right
        after the call, expect that the copy is not finished. To see that, put an *event* into the
        queue behind the copy. It is a marker: the GPU works through its queue in order, and
        `query()` says whether it has got past the marker. `pin_memory()` copies `pageable`, a batch
        in ordinary memory, into pinned memory:
    """)
    count = scaled(2**26, lambda n: 16 * n)  # @hide
    pageable = torch.randn(count)  # @hide
    pinned = pageable.pin_memory()
    assert pinned.is_pinned() is True, "pin_memory() returns a pinned tensor."  # @hide
    slow = time_call(lambda: pageable.to("cuda"), "cuda")  # @measure slow  # @hide
    quick = partial(pinned.to, "cuda", non_blocking=True)  # @hide
    fast = time_call(quick, "cuda")  # @measure fast  # @hide
    assert fast.seconds < slow.seconds, \
        "The copy from pinned memory takes less time."  # @hide
    arrived = torch.cuda.Event()
    there = pinned.to("cuda", non_blocking=True)
    arrived.record()  # into the queue, behind the copy
    done = arrived.query()  # @measure done
    assert done is False, "The call has returned, and the copy is not done."
    arrived.synchronize()  # wait for the copy
    assert torch.equal(there.cpu(), pageable), \
        "After waiting, the copy is complete."
    del there  # @hide
    note(r"""
        Until the copy is done, the program must not overwrite the pinned memory, because the GPU
        still reads it. `arrived.synchronize()` waits for that.
    """)
    question(r"""
        A copy of a batch takes `6` ms, and the program prepares the next batch in `8` ms. After how
        many ms are both done, if the program waits for the copy first, and if it does not wait?
        Give two numbers.
    """, answer=[6 + 8, max(6, 8)],
        check=[sum([6, 8]), 6 + (8 - 6)], unit="ms",
        hint="What does the program do during the copy, if it does not wait?",
        why=r"""
            If it waits, the times add up: `6 + 8 = 14` ms. If it does not, both begin at the same
            time, and the longer one, the preparation, ends after `8` ms.
        """)


@aside
@requires("cuda")
def a_second_stream_overlaps_copies() -> None:
    """Copies to the GPU can overlap with matmuls if they are in a second stream."""
    note(r"""
        Can a GPU multiply one batch while it copies the next from the CPU's memory? Yes, if copies
        and matmuls are in two different *streams*. A stream is a queue of work for the GPU. Work in
        one stream is done in order, so there a copy and a matmul take turns. Work in two streams
        may overlap, because a copy uses the link to the CPU, and a matmul the arithmetic units.

        By hand, take `3` batches, A, B and C. Each takes `1` ms to copy and `2` ms to multiply.

        | in millisecond | $1$ | $2$ | $3$ | $4$ | $5$ | $6$ | $7$ |
        |---|---|---|---|---|---|---|---|
        | stream of copies | A | B | C | | | | |
        | stream of matmuls | | A | A | B | B | C | C |

        Only the first matmul has to wait for its copy, so two streams take `1 + 3 * 2 = 7` ms. In
        one stream copies and matmuls take turns: `3 * (1 + 2) = 9` ms.

        `two_streams` does this. For each batch it first puts the copy into the stream `side`. Then
        `main_stream.wait_stream(side)` makes the matmul wait for all copies that are in `side` by
        now, the last of which is its own. The next copy is put into `side` later, and nothing makes
        it wait for this matmul: so these two overlap. `in_turn` does the same work in one stream.
        The batches are in [pinned memory](#a_pinned_copy_does_not_wait), or the program would wait
        for each copy.

        Take `8` batches of `1024` rows of `16384` elements of `4` bytes, and multiply each by a
        matrix of `16384 × 4096` (fewer elements on a small GPU). By the data sheet, the link of an
        H100 carries `64e9` bytes per second, and its peak in `float32` is `67e12` FLOP/s
        [@nvidia-h100]. So a copy takes at least `1024 * 16384 * 4 / 64e9 = 0.00105` s, and a matmul
        `2 * 1024 * 16384 * 4096 / 67e12 = 0.00205` s. Expect at least

        - `8 * (1.05 + 2.05) = 24.8` ms in one stream;
        - `1.05 + 8 * 2.05 = 17.45` ms with two, because each copy but the first is done during a
          matmul.
    """)
    inner = scaled(16384, lambda n: 40 * 4096 * n + 160 * 1024 * 4 * n)  # @hide
    batches = [torch.randn(1024, inner).pin_memory() for _ in range(8)]  # @hide
    w = torch.randn(inner, 4096, device="cuda")  # @hide
    side = torch.cuda.Stream()
    expected = torch.stack(in_turn(batches, w))  # @hide
    sums = torch.stack(two_streams(batches, w, side))  # @hide
    assert torch.allclose(sums, expected), "Both ways give the same sums."  # @hide
    serial = time_call(lambda: in_turn(batches, w), "cuda")  # @measure serial
    overlapped = time_call(lambda: two_streams(batches, w, side), "cuda")  # @measure overlapped
    assert overlapped.seconds < serial.seconds, \
        "With two streams, all batches finish sooner."
    misbelief("Pinned memory makes fetching and computing run in parallel.", r"""
        It only allows that. In one stream a copy and a matmul still take turns. A second stream
        lets them overlap.
    """)
    question(r"""
        Each of `8` pinned batches takes `3` ms to copy and `5` ms to multiply. After how many ms
        are all matmuls done, with one stream and with two? Give two numbers.
    """, answer=[8 * (3 + 5), 3 + 8 * max(3, 5)],
        # A chain of work that has to be done in turn: the copies up to one batch, and the matmuls from that batch on.
        check=[
            sum([3, 5] * 8),
            max(3 * done + 5 * (9 - done) for done in (1, 2, 3, 4, 5, 6, 7, 8)),
        ], unit="ms",
        hint="With two streams only the first copy is not hidden behind a matmul.",
        why=r"""
            In one stream each batch takes `3 + 5` ms. In two, the first copy takes `3` ms; then the
            matmuls follow each other without a pause, `5` ms each, since the next copy is done in
            time.
        """)
