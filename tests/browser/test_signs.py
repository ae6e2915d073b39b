"""Every sign and word that stands beside code without an author having written it is explained."""

from __future__ import annotations

import html
import re
from pathlib import Path

SIGNS = re.compile(r'<span class="lb-sign"[^>]*>(.*?)</span>|<span class="lb-badge">(.*?)</span>|<span class="lb-words"> (.*?)</span>|lb-tally[^>]*>(\S) ')  # fmt: skip
WORDS = re.compile(r'<span class="lb-sides">(both|all) ')


def test_how_to_read_explains_every_sign_beside_code(site: Path) -> None:
    told = html.unescape((site / "how-to-read" / "index.html").read_text(encoding="utf-8"))
    found: set[str] = set()
    for page in (site / "lectures").glob("lecture_*/*/index.html"):
        text = re.sub(r">run on [\d,]+( simulated)? ranks<", r">4\1 ranks<", page.read_text(encoding="utf-8"))
        found |= {re.sub(r"( as| earlier) .*", r"\1 x", it) if " storage " in it else it
                  for groups in SIGNS.findall(text) for it in groups if it}  # fmt: skip
        found |= set(WORDS.findall(text))
    assert {"✓", "○", "both", "dtype and axes", "same storage as x"} <= found
    assert {it for it in found if it not in told} == set()
    assert "dotted underline" in told
