"""Peak rates: a device's name as CUDA reports it finds its own card, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hardware

NAMES = {
    "NVIDIA A100-SXM4-40GB": "A100 SXM 40GB",
    "NVIDIA A100-SXM4-80GB": "A100 SXM 80GB",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "H100 NVL",
    "NVIDIA H200": "H200",
    "NVIDIA B200": "B200",
    "NVIDIA L4": "L4",
    "NVIDIA L40S": "L40S",
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100 SXM 16GB",
    "Tesla V100-SXM2-32GB": "V100 SXM 32GB",
    "Tesla V100-PCIE-16GB": "V100 PCIe 16GB",
    "NVIDIA T4": "T4",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA A800-SXM4-80GB": "A800 SXM 80GB",
    "NVIDIA A800 80GB PCIe": "A800 PCIe 80GB",
    "NVIDIA H800": "H800 SXM",
    "NVIDIA H20": "H20",
    "NVIDIA GeForce RTX 3090": "RTX 3090",
    "GeForce RTX 3090": "RTX 3090",
    "NVIDIA GeForce RTX 5090": "RTX 5090",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_reported_name_finds_its_card(name: str) -> None:
    assert hardware.find(name) is hardware.CARDS[NAMES[name]]


@pytest.mark.parametrize(
    "name",
    ["", "NVIDIA L40", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D", "NVIDIA H100", "nvidia h200x",
     "NVIDIA H20-3e", "NVIDIA H800 PCIe", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 5090 Laptop GPU",
     "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "AMD Instinct MI300X", "Quadro T4000"],
)  # fmt: skip
def test_an_unknown_device_has_no_card_and_so_no_peak(name: str) -> None:
    assert hardware.find(name) is None
    assert hardware.peak(hardware.find(name), "bfloat16") is None


def test_an_unknown_device_is_told_how_to_be_added_in_one_line() -> None:
    assert hardware.how_to_add("NVIDIA H200") == ""
    assert hardware.how_to_add("Radeon 9") == (
        "No peak is known for `Radeon 9`: add one line, `Card(...)`, with its source to `lectures/hardware.py`."
    )


def test_no_two_cards_claim_one_name() -> None:
    for name in NAMES:
        assert len([c for c in hardware.CARDS.values() if hardware.find(name) is c]) == 1


def test_an_h200_is_no_a100_and_an_h100_pcie_no_sxm() -> None:
    assert hardware.peak(hardware.find("NVIDIA H200"), "bfloat16") == 989.5e12
    assert hardware.peak(hardware.find("NVIDIA H100 PCIe"), "bfloat16") == 756.5e12
    assert hardware.peak(hardware.find("NVIDIA A100-SXM4-80GB"), "bfloat16") == 312e12


def test_every_card_cites_a_source_that_is_in_the_bibliography(repo: Path) -> None:
    library = (repo / "lectures" / "references.bib").read_text(encoding="utf-8")
    entries = set(re.findall(r"^@\w+\{([^,]+),", library, re.MULTILINE))
    for name, card in hardware.CARDS.items():
        assert card.source in entries, name
        assert card.memory > 10**10, name
        assert card.bandwidth > 10**11, name


def test_what_a_card_reports_is_sourced_and_near_what_it_is_sold_by_in_powers_of_two(repo: Path) -> None:
    library = (repo / "lectures" / "references.bib").read_text(encoding="utf-8")
    for name, card in hardware.CARDS.items():
        assert (card.reported is None) == (card.seen == ""), name
        if card.reported is not None:
            assert f"{{{card.seen},\n" in library, name
            sold = card.memory // 10**9 * 2**30
            assert 0.93 < card.reported / sold <= 1, name
    assert sum(card.reported is None for card in hardware.CARDS.values()) <= 5
