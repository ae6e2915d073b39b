"""The hook: which pages exist, when they are written, and what makes a strict build fail."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.test_page import lived, recorded

from litbook import site, trace
from litbook.errors import Place, Problem, UnusableLecture

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one lecture that the hook believes to have run."""
    monkeypatch.setattr(site, "_records", {})
    (tmp_path / "lectures").mkdir()
    (tmp_path / "lectures" / "lecture_02.py").write_text("text")
    (tmp_path / "lectures" / "references.bib").write_text("@misc{glu, title={GLU}, year=2020}")
    (tmp_path / "docs").mkdir()
    return tmp_path


def build(project, run=lambda path: lived()):
    return site.build(project / "lectures", project / "docs", run)


def written(project) -> list[str]:
    place = project / "docs" / "lectures"
    return sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())


def test_every_part_of_every_lecture_becomes_a_page_and_a_list_names_the_lectures(project):
    build(project)
    assert written(project) == [
        "index.md",
        "lecture_02/compute.md",
        "lecture_02/index.md",
        "lecture_02/memory.md",
        "ledger.json",
        "ledger.md",
        "misbeliefs.md",
    ]
    assert "Memory &amp; views" in (project / "docs/lectures/index.md").read_text()


def test_the_nav_follows_the_lecture(project):
    assert build(project) == [
        "lectures/index.md",
        {
            "Storage <b>first</b>": [
                "lectures/lecture_02/index.md",
                {"Memory & views": "lectures/lecture_02/memory.md"},
                {"Compute": "lectures/lecture_02/compute.md"},
            ]
        },
        {"Commonly said, measured otherwise": "lectures/misbeliefs.md"},
        {"Ledger": "lectures/ledger.md"},
    ]


def test_without_lectures_there_is_nothing(project):
    (project / "lectures" / "lecture_02.py").unlink()
    assert build(project) == []
    assert written(project) == []


def test_a_page_that_did_not_change_is_not_written_again(project):
    build(project)
    page = project / "docs/lectures/lecture_02/memory.md"
    os.utime(page, (1, 1))
    build(project)
    assert page.stat().st_mtime == 1


def test_pages_that_no_lecture_has_any_more_go(project):
    stale = project / "docs/lectures/lecture_01/old.md"
    stale.parent.mkdir(parents=True)
    stale.write_text("old")
    build(project)
    assert not stale.exists()
    assert not stale.parent.exists()


def test_a_lecture_runs_again_only_when_a_file_beside_it_changed(project):
    runs = []

    def run(path):
        runs.append(path.name)
        return lived()

    build(project, run)
    build(project, run)
    assert runs == ["lecture_02.py"]
    (project / "lectures" / "hardware.py").write_text("peak = 1")
    build(project, run)
    assert runs == ["lecture_02.py"] * 2


def test_a_failed_claim_is_one_warning_with_place_source_values_and_caption(project, caplog):
    build(project)
    said = (
        "lectures/lecture_02.py:30: claim fails: the same shape\n    assert x.shape == y.shape\n"
        "    (2, 3) == (3, 2)\n      x.shape is (2, 3)\n      y.shape is (3, 2)"
    )
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [said]
    assert {r.name for r in caplog.records} == {"mkdocs.plugins.litbook"}


def test_an_error_and_a_problem_in_prose_are_warnings(project, caplog):
    it = lived()
    error = trace.Error("exception", 2, 25, "    x = six()", "ValueError: no")
    pieces = (replace(it.pieces[0], text="[@nobody]"), *it.pieces[1:])
    build(project, lambda path: replace(it, claims=(), errors=(error,), pieces=pieces))
    first, second = [r.getMessage() for r in caplog.records]
    assert first == "lectures/lecture_02.py:25: ValueError: no\n    x = six()"
    assert second.startswith("lectures/lecture_02.py:10:1: [@nobody] is in no bibliography")


def test_a_lecture_that_cannot_run_is_a_warning_and_the_others_are_built(project, caplog):
    (project / "lectures" / "lecture_01.py").write_text("broken")

    def run(path):
        if path.stem == "lecture_01":
            raise UnusableLecture([Problem("syntax", "invalid syntax", Place("lectures/lecture_01.py", 1))])
        return lived()

    build(project, run)
    assert "lecture_01.py cannot be run: lectures/lecture_01.py:1:1: invalid syntax" in caplog.text
    assert "lecture_02/memory.md" in written(project)


def test_recordings_of_other_devices_are_read_and_a_broken_one_is_a_warning(project, caplog):
    place = project / "lectures" / "recordings"
    place.mkdir()
    (place / "lecture_02.nvidia-h200.json").write_text(trace.dumps(recorded()))
    (place / "lecture_02.cpu.json").write_text(trace.dumps(lived()))
    (place / "lecture_02.other.json").write_text("{")
    build(project)
    assert "NVIDIA H200, 19 Nov 2026" in (project / "docs/lectures/lecture_02/compute.md").read_text()
    assert "lecture_02.other.json is not a whole record" in caplog.text


def test_a_broken_bibliography_is_a_warning(project, caplog):
    (project / "lectures" / "references.bib").write_text("@misc{a, title={A}}\n@misc{a, title={B}}")
    build(project)
    assert "the key 'a' is used twice" in caplog.text


# ---------------------------------------------------------------------------- with MkDocs itself

HOLDS = '''"""One lecture"""

from litbook import note


def main() -> None:
    one()


def one() -> None:
    """One and one"""
    note("It adds up.")
    two = 1 + 1  # @inspect two
    assert two == 2, "it holds"
'''


@pytest.fixture
def site_project(tmp_path):
    """A copy of this site's configuration with a lecture of its own; the engine is not installed for it."""
    shutil.copytree(
        REPO / "tools" / "litbook",
        tmp_path / "tools" / "litbook",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "mkdocs.yml").write_text((REPO / "mkdocs.yml").read_text())
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text((REPO / "docs" / "index.md").read_text())
    for name in ("how-to-read", "calculator", "write-a-lecture", "how-it-works", "record"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "lectures").mkdir()
    return tmp_path


def mkdocs(project: Path, lecture: str) -> subprocess.CompletedProcess[str]:
    (project / "lectures" / "lecture_01.py").write_text(lecture)
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": ""}
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


def test_a_strict_build_passes_when_every_claim_holds(site_project):
    done = mkdocs(site_project, HOLDS)
    assert done.returncode == 0, done.stderr
    page = (site_project / "site" / "lectures" / "lecture_01" / "index.html").read_text()
    assert "it holds" in page
    assert (site_project / "site" / "assets" / "litbook" / "litbook.css").exists()
    front = (site_project / "site" / "index.html").read_text()
    assert "1 claim, it holds" in front


def test_a_strict_build_fails_with_the_line_of_the_failed_claim(site_project):
    done = mkdocs(site_project, HOLDS.replace("two == 2", "two == 3"))
    assert done.returncode != 0
    said = "lectures/lecture_01.py:14: claim fails: it holds\n    assert two == 3\n    2 == 3\n"
    assert said in done.stderr


def test_no_page_asks_another_site_for_anything(site_project):
    import re

    mkdocs(site_project, HOLDS)
    for page in (site_project / "site").rglob("*.html"):
        text = page.read_text()
        assert (
            re.findall(
                r"<(?:link|script|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//(?!example)[^\"'> ]+", text
            )
            == []
        ), page
