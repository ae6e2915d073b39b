"""Floats as bits: what is recorded, read and drawn is what the machine stores."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litbook.html import page
from litbook.record import encoding, model
from litbook.run import run
from litbook.snapshot.snapshot import snapshot
from litbook.values import bits, floats, formatting

DTYPES = {name: getattr(torch, name) for name in floats.FORMATS}
INTEGERS = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


def of(pattern: int, dtype: str) -> torch.Tensor:
    """The tensor of that dtype with these bits."""
    width = DTYPES[dtype].itemsize * 8
    signed = pattern - 2**width if width > 8 and pattern >= 2 ** (width - 1) else pattern
    return torch.tensor([signed], dtype=INTEGERS[width]).view(DTYPES[dtype])


def seen(tensor: object) -> model.Tensor:
    it = snapshot(tensor, bits=True)
    assert isinstance(it, model.Tensor)
    return it


def read(tensor: torch.Tensor) -> floats.Float:
    it = seen(tensor)
    assert it.bits is not None
    found = floats.read(it.bits[0], it.dtype)
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", floats.FORMATS)
@given(data=st.data())
def test_every_pattern_is_kept_and_read_as_torch_reads_it(dtype, data):
    width = DTYPES[dtype].itemsize * 8
    pattern = data.draw(st.integers(0, 2**width - 1))
    tensor = of(pattern, dtype)
    assert seen(tensor).bits == (f"{pattern:0{width // 4}x}",)
    it, value = read(tensor), tensor.double().item()
    if math.isnan(value):
        assert it.kind == "not a number"
    elif math.isinf(value):
        assert (it.kind, it.negative) == ("infinite", value < 0)
    else:
        assert it.magnitude == abs(Fraction(value))
        assert it.negative == (math.copysign(1, value) < 0)
        assert (it.kind == "zero") == (value == 0)
        assert (it.kind == "subnormal") == (0 < abs(value) < torch.finfo(DTYPES[dtype]).smallest_normal)


@pytest.mark.parametrize(
    "tensor, kept",
    [
        (torch.tensor(0.1), ("3dcccccd",)),
        (torch.tensor([1.0, 2.0, 3.0])[::2], ("3f800000", "40400000")),
        (torch.arange(100.0).view(10, 10).t()[:, 1:2], ("41200000",)),
        (np.array([0.1], dtype=">f4"), ("3dcccccd",)),
        (np.array(0.1), ("3fb999999999999a",)),
        (torch.tensor(1j).conj().imag, ("bf800000",)),
        (torch.tensor(3), None),
        (torch.tensor(1j), None),
        (torch.zeros(0), None),
        (torch.zeros(3, device="meta"), None),
    ],
    ids=str,
)  # fmt: skip
def test_bits_are_those_of_the_elements_wherever_they_lie(tensor, kept):
    assert (seen(tensor).bits or ())[:2] == (kept or ())


def test_of_a_large_tensor_the_first_bits_are_kept_and_the_rest_is_counted():
    it = seen(torch.arange(40.0).view(4, 10))
    assert it.bits is not None
    assert len(it.bits) == 8
    drawn = bits.stack([("x", it)])
    assert "x[0, 7]" in drawn
    assert "… and 32 more" in drawn


def test_bits_are_kept_only_where_a_lecture_asks():
    it = snapshot(torch.tensor(0.1))
    assert isinstance(it, model.Tensor)
    assert it.bits is None
    assert isinstance(listed := snapshot([torch.tensor(0.1)], bits=True), model.Sequence)
    assert isinstance(listed.items[0], model.Tensor)
    assert listed.items[0].bits is None


@pytest.mark.parametrize(
    "pattern, dtype, words",
    [
        (0x3DCCCCCD, "float32", "+1 × 2^{123 − 127} × 1.600000023… = 0.1000000014…"),
        (0x3DCD, "bfloat16", "+1 × 2^{123 − 127} × 1.6015625 = 0.10009765625"),
        (0x8000, "float16", "−1 × 2^{1 − 15} × 0.0 = −0.0 · zero has a sign, too"),
        (0x0001, "float16", "+1 × 2^{1 − 15} × 0.0009765625 = 5.960464477…e-8 · subnormal: no leading 1"),
        (0x7E, "float8_e4m3fn", "+1 × 2^{15 − 7} × 1.75 = 448.0"),
        (0xFF, "float8_e4m3fn", "exponent and fraction all ones: not a number"),
        (0xFC, "float8_e5m2", "exponent all ones, fraction zero: −∞"),
        (0x7FC00000, "float32", "exponent all ones, fraction not zero: not a number"),
        (
            0x3FB999999999999A,
            "float64",
            "+1 × 2^{1019 − 1023} × 1.600000000000000088… = 0.1000000000000000055…",
        ),
    ],
)
def test_the_value_is_spelled_out(pattern, dtype, words):
    told = bits.sum_(read(of(pattern, dtype)))
    assert re.sub(r"<sup>(.*?)</sup>", r"^{\1}", told) == words


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_value_is_written_with_digits_that_are_its_own(value):
    written = floats.text(Fraction(value))
    lead, _, exponent = written.replace("−", "-").partition("e")
    low = Fraction(lead.rstrip("…")) * Fraction(10) ** int(exponent or 0)
    assert abs(low) <= abs(Fraction(value))
    assert abs(Fraction(value) - low) <= abs(low) / 10**9
    assert ("…" in lead) == (low != Fraction(value))


def test_formats_are_compared_under_each_other_and_said_in_words():
    tenth = torch.tensor(0.1)
    drawn = bits.stack([("full", seen(tenth)), ("brain", seen(tenth.bfloat16()))])
    assert drawn.count("<svg") == 2
    assert len(set(re.findall(r'<svg[^>]* width="([\d.]+)"', drawn))) == 1, "one scale"
    assert drawn.count(">exponent</text>") == 1, "the first drawing names the fields"
    fields = re.findall(r'class="lb-(sign|exponent|fraction) lb-(\d)"', drawn)
    assert "".join(bit for _, bit in fields) == f"{0x3DCCCCCD:032b}{0x3DCD:016b}"
    assert [name for name, _ in fields] == ["sign"] + ["exponent"] * 8 + ["fraction"] * 23 + ["sign"] + [
        "exponent"
    ] * 8 + ["fraction"] * 7
    assert (
        'aria-label="brain, bfloat16: sign 0, exponent 01111011, fraction 1001101. '
        'Normal: 2 to the power of -4, times 1.6015625, is 0.10009765625"' in drawn
    )


def test_one_line_shows_the_groups_of_bits():
    assert (
        formatting.line(seen(torch.tensor(0.1)), "bits")
        == "0.1 · float32 · 0 01111011 10011001100110011001101"
    )
    assert (
        formatting.line(seen(torch.tensor([1.0])), "bits")
        == "float32 [1] · 4 B · 1.0 · 0 01111111 " + "0" * 23
    )


LECTURE = '''"""Bits."""
import torch


def main() -> None:
    one()


def one() -> None:
    """One"""
    full = torch.tensor(0.1)  # @inspect full as bits
    half = full.half()  # @inspect half as bits
    width = 16  # @inspect width as bits
'''


def test_as_bits_draws_tensors_and_labels_plain_numbers(tmp_path: Path):
    path = tmp_path / "lecture_07.py"
    path.write_text(LECTURE, encoding="utf-8")
    record = run.run(path, device="cpu")
    body = page.pages(encoding.loads(encoding.dumps(record)))["index.md"]
    assert body.count('class="lb-bitrow"') == 2
    assert '<span class="lb-text">0.1 · float32</span>' in body
    assert '<span class="lb-text">16 bits</span>' in body
