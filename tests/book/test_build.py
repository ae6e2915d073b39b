"""What a newcomer gets from this tree: pages with the captured values, and a build that a wrong number stops."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PARTS = ("napkin-math", "tensors", "number-formats", "tensors-on-a-gpu", "storage-and-views", "elementwise")


def text_of(page: Path) -> str:
    """What a reader sees of a page, without markup."""
    content = page.read_text(encoding="utf-8")
    body = content[content.index("<article") : content.index("</article>")]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_the_pages_of_lecture_02_hold_the_captured_values_as_text(site: Path) -> None:
    lecture = site / "lectures" / "lecture_02"
    assert {page.parent.name for page in lecture.glob("*/index.html")} >= set(PARTS)
    memory = text_of(lecture / "tensors" / "index.html")
    assert "2,415,919,104 B · 2.25 GiB · 2.416 GB" in memory
    assert "✓ holds: Each element needs 4 bytes. x.element_size() == 4" in memory, "a claim is a sentence"
    assert '"Each element needs 4 bytes." 4 = 4' in memory, "and folded in it is the assert with its sides"
    storage = text_of(lecture / "storage-and-views" / "index.html")
    assert "float32 [row 2, col 3] · 24 B" in storage
    assert "same storage as x" in storage


def test_every_claim_of_the_lecture_stands_in_the_ledger(site: Path) -> None:
    ledger = text_of(site / "lectures" / "ledger" / "index.html")
    counts = re.search(r"([\d,]+) claims: ✓ ([\d,]+) hold · ○ ([\d,]+) not run \(need a GPU\)", ledger)
    assert counts is not None
    every, holding, waiting = (int(it.replace(",", "")) for it in counts.groups())
    assert every == holding + waiting


def test_no_page_asks_another_site_for_anything(site: Path) -> None:
    asked = []
    for page in site.rglob("*.html"):
        content = page.read_text(encoding="utf-8")
        asked += re.findall(r'<(?:script|img|iframe|source)\s[^>]*src="(?:https?:)?//[^"]+', content)
        asked += [
            tag
            for tag in re.findall(r'<link\s[^>]*href="(?:https?:)?//[^>]+', content)
            if "canonical" not in tag
        ]
    for style in site.rglob("*.css"):
        asked += re.findall(r"url\(['\"]?(?:https?:)?//[^)]+", style.read_text(encoding="utf-8"))
    assert asked == []


def test_pages_are_light(site: Path) -> None:
    """A workbook has the styles of Jupyter's cells in it, which its converter writes into each page."""
    heavy = {
        str(page.relative_to(site)): page.stat().st_size
        for page in (site / "lectures").rglob("index.html")
        if page.stat().st_size > (900_000 if page.parent.name == "workbook" else 250_000)
    }
    assert heavy == {}


# ---------------------------------------------------------------------------- a wrong number


@pytest.fixture
def copy(repo: Path, tmp_path: Path) -> Path:
    """A copy of the working tree as a git checkout of its own."""
    target = tmp_path / "tree"
    listed = git(repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (repo / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repo / name, target / name)
    git(target, "init", "-q")
    return target


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_wrong_number_in_the_lecture_stops_the_command_which_changes_no_file(copy: Path) -> None:
    """That a strict build stops with the same lines, test_site has for a lecture of one section.

    That a whole run leaves no file in the tree, test_failures has for a lecture that tries to.
    """
    lecture = copy / "lectures" / "lecture_02" / "tensor.py"
    right, section = lecture.read_text(encoding="utf-8"), "bytes_can_be_counted_without_allocating"
    line = right[: right.index("assert size == 2304 * 1024 * 1024")].count("\n") + 1
    lecture.write_text(
        right.replace("assert size == 2304 * 1024", "assert size == 2305 * 1024"), encoding="utf-8"
    )
    git(copy, "add", "-A")
    git(copy, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "all")
    said = (
        f"lectures/lecture_02/tensor.py:{line}: claim fails: The matrix needs 2304 MiB. [claim-fails]\n"
        "    assert size == 2305 * 1024 * 1024\n"
        "    2,415,919,104 == 2,416,967,680\n"
        "      size is 2,415,919,104\n"
    )
    done = subprocess.run(
        [sys.executable, "tools/run_lecture.py", "lecture_02", section, "--quiet"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "tools")},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 1
    assert said in done.stdout
    assert re.match(r"\d+ claims hold, 1 fails, \d+ not run\b", done.stdout.splitlines()[-1])
    assert git(copy, "status", "--porcelain") == ""
