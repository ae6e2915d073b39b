"""The plugin: which pages exist, when they are written, and what makes a strict build fail."""

from __future__ import annotations

import difflib
import fcntl
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.book.test_page import at, changed, lived, recorded
from tests.records import fill, line
from tests.running import COMMAND, searched, uncoded

from litbook.errors import UnusableLecture
from litbook.finding import Finding, Place
from litbook.project import Project
from litbook.record import encoding, model, recordings
from litbook.site.plugin import LitbookPlugin

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path):
    """A project with one lecture that the plugin believes to have run."""
    (tmp_path / "lectures").mkdir()
    (tmp_path / "lectures" / "lecture_02.py").write_text("text")
    (tmp_path / "lectures" / "references.bib").write_text("@misc{glu, title={GLU}, year=2020}")
    (tmp_path / "docs").mkdir()
    return tmp_path


def build(project, run=lambda path: lived(), plugin=None, **options):
    return (plugin or loaded(**options)).build(
        Project(project), lambda paths: (partial(run, it) for it in paths)
    )


def loaded(**options):
    """The plugin with these options."""
    plugin = LitbookPlugin()
    assert plugin.load_config(options) == ([], [])
    return plugin


def whole() -> model.Record:
    """The lecture with asserts in the place of its claims, of which one fails."""
    it = lived()
    ran = tuple(
        model.Assert(entry.key, claim.line, claim.text, 4) for entry, claim in it.claims() if claim.count
    )
    return replace(it, asserts=ran, sections=tuple(replace(entry, claims=()) for entry in it.sections))


def written(project) -> list[str]:
    place = project / "docs" / "lectures"
    return sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())


def test_every_part_of_every_lecture_becomes_a_page_and_a_list_names_the_lectures(project):
    build(project)
    assert written(project) == [
        "claims.json",
        "claims.svg",
        "devices.md",
        "index.md",
        "lecture_02/compute.md",
        "lecture_02/index.md",
        "lecture_02/memory.md",
        "lecture_02/memory.player.js",
        "lecture_02/notebooks/compute.ipynb",
        "lecture_02/notebooks/memory.ipynb",
        "ledger.md",
        "ledger/lecture_02/compute.md",
        "ledger/lecture_02/memory.md",
        "misbeliefs.md",
    ]
    assert "Memory &amp; views" in (project / "docs/lectures/index.md").read_text()


def test_the_nav_follows_the_lecture(project):
    assert build(project) == [
        "lectures/index.md",
        {
            "Storage & <views": [
                "lectures/lecture_02/index.md",
                {"Memory & views": "lectures/lecture_02/memory.md"},
                {"Compute": "lectures/lecture_02/compute.md"},
            ]
        },
        {"Commonly said, measured otherwise": "lectures/misbeliefs.md"},
        {"Ledger": "lectures/ledger.md"},
        {"Devices": "lectures/devices.md"},
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


def test_whoever_wants_to_run_a_page_reads_what_that_takes(project):
    build(project, lambda _: replace(lived(), peak=3 * 2**29))
    page = (project / "docs/lectures/lecture_02/memory.md").read_text()
    place = lived().environment
    took = (
        f" s on {place.cpu}, the whole lecture at most 1.5 of its {place.memory >> 30} GiB of memory; needs "
    )
    assert took in page
    build(project)
    assert f" s on {place.cpu}; needs " in (project / "docs/lectures/lecture_02/memory.md").read_text()


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

    plugin = loaded()
    build(project, run, plugin)
    build(project, run, plugin)
    assert runs == ["lecture_02.py"]
    (project / "lectures" / "hardware.py").write_text("peak = 1")
    build(project, run, plugin)
    assert runs == ["lecture_02.py"] * 2


def test_a_failed_claim_is_one_warning_with_place_source_values_and_caption(project, caplog):
    build(project)
    said = (
        "lectures/lecture_02.py:30: claim fails: the same shape\n    assert x.shape == y.shape\n"
        "    (2, 3) == (3, 2)\n      x.shape is (2, 3)\n      y.shape is (3, 2)"
    )
    assert [uncoded(r.getMessage()) for r in caplog.records if r.levelno == logging.WARNING] == [said]
    assert {r.name for r in caplog.records} == {"mkdocs.plugins.litbook"}


def test_an_error_and_a_problem_in_prose_are_warnings(project, caplog):
    it = whole()
    error = model.Error("exception", line(it, "transpose", "x = six()"), "    x = six()", "ValueError: no")
    it = changed(it, "main", pieces=lambda was: (replace(was[0], text="[@nobody]"), *was[1:]))
    build(project, lambda path: fill(it, "transpose", claims=(), errors=(error,)))
    first, second = [uncoded(r.getMessage()) for r in caplog.records]
    assert first == f"lectures/lecture_02.py:{at('x = six()')}: ValueError: no\n    x = six()"
    assert second.startswith(f"lectures/lecture_02.py:{at('Two *res')}:5: [@nobody] is in no bibliography")


def test_a_lecture_that_cannot_run_is_a_warning_and_the_others_are_built(project, caplog):
    (project / "lectures" / "lecture_01.py").write_text("broken")

    def run(path):
        if path.stem == "lecture_01":
            raise UnusableLecture([Finding("syntax", "invalid syntax", Place("lectures/lecture_01.py", 1))])
        return lived()

    build(project, run)
    assert "lectures/lecture_01.py:1:1: invalid syntax [syntax]" in caplog.text
    assert "lecture_02/memory.md" in written(project)


def test_recordings_of_other_devices_are_read_and_a_broken_one_is_a_warning(project, caplog):
    place = project / "lectures" / "recordings"
    place.mkdir()
    (place / "lecture_02.nvidia-h200.json").write_text(encoding.dumps(recorded()))
    (place / "lecture_02.cpu.json").write_text(encoding.dumps(lived()))
    (place / "lecture_02.other.json").write_text("{")
    build(project)
    assert "NVIDIA H200, 19 Nov 2026" in (project / "docs/lectures/lecture_02/compute.md").read_text()
    assert "lecture_02.other.json is not a whole record" in caplog.text


def test_each_difference_from_this_devices_recording_is_a_warning_with_the_way_out(project, caplog):
    place = project / "lectures" / "recordings"
    place.mkdir()
    it = whole()
    (place / "lecture_02.cpu.json").write_text(recordings.dumps(it))
    build(project, lambda path: it)
    assert caplog.text == ""
    other = changed(  # every tensor that the lecture shows
        it, snapshots=lambda was: tuple(
            replace(s, dtype="float16") if isinstance(s, model.Tensor) else s for s in was
        ),
    )  # fmt: skip
    build(project, lambda path: other)
    found = [uncoded(r.getMessage()) for r in caplog.records if r.levelno == logging.WARNING]
    assert found
    for message in found:
        lines = message.splitlines()
        assert re.match(r"lectures/lecture_02\.py:\d+: \w+: .+ is not what was recorded$", lines[0])
        assert lines[1] == "    .dtype: was float32, is float16"
        assert lines[-1] == ("    if that is right: litbook record lecture_02 --device cpu --approve")


def test_a_recording_of_this_device_that_cannot_be_used_is_a_warning_and_is_not_overwritten(project, caplog):
    file = project / "lectures" / "recordings" / "lecture_02.cpu.json"
    file.parent.mkdir()
    file.write_text("{")
    build(project, lambda path: whole())
    assert "recordings/lecture_02.cpu.json is not a whole record" in caplog.text
    assert "take the file back from git, or run the lecture with --approve" in caplog.text
    assert file.read_text() == "{"


def test_hostile_text_in_a_recording_reaches_no_page_as_markup_and_no_terminal(project, caplog):
    place = project / "lectures" / "recordings"
    place.mkdir()
    hostile = "\u001b[31m<script>alert(1)</script>"
    other = recorded()
    other = changed(
        other, "speed", claims=lambda was: tuple(replace(c, caption=hostile, why=hostile) for c in was)
    )
    device = replace(other.environment.device, name=hostile)
    other = replace(other, environment=replace(other.environment, device=device, commit=hostile))
    (place / "lecture_02.nvidia-h200.json").write_text(encoding.dumps(other))
    same = changed(lived(), snapshots=lambda was: tuple(model.Opaque(hostile, hostile) for _ in was))
    (place / "lecture_02.cpu.json").write_text(encoding.dumps(same))
    build(project)
    assert "\x1b" not in caplog.text
    for file in (project / "docs/lectures").rglob("*"):
        if file.is_file():
            assert "\x1b" not in file.read_text()
            assert "<script>alert" not in file.read_text() or file.suffix in (".json", ".ipynb")


def test_a_broken_bibliography_is_a_warning(project, caplog):
    (project / "lectures" / "references.bib").write_text("@misc{a, title={A}}\n@misc{a, title={B}}")
    build(project)
    assert "the key 'a' is used twice" in caplog.text
    assert "is in no bibliography" not in caplog.text  # that of no key, since nobody knows


def test_a_key_is_missed_in_the_file_that_the_option_names(project, caplog):
    (project / "works.bib").write_text("@misc{a, title={A}}")
    it = lived()
    build(
        project,
        lambda _: changed(it, "main", pieces=lambda was: (replace(was[0], text="[@nobody]"), *was[1:])),
    )
    assert (
        "[@nobody] is in no bibliography [unknown-citation]\n" in caplog.text
        and "    add it to references.bib" in caplog.text
    )
    caplog.clear()
    given = Project(project, bibliography_at="works.bib")
    loaded(bibliography="works.bib").build(
        given, lambda paths: (partial(lambda _: it, path) for path in paths)
    )
    assert "    add it to works.bib" in caplog.text and "references.bib" not in caplog.text


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
    """A copy of this site's configuration with a lecture of its own."""
    (tmp_path / "mkdocs.yml").write_text((REPO / "mkdocs.yml").read_text())
    shutil.copytree(REPO / "docs" / "hooks", tmp_path / "docs" / "hooks")
    front = (REPO / "docs" / "index.md").read_text()
    front = re.sub(r"lectures/lecture_\d+/[\w-]+\.md(#\w+)?", "how-to-read.md", front)
    (tmp_path / "docs" / "index.md").write_text(front)
    (tmp_path / "docs" / "decisions").mkdir()
    for page in [*(REPO / "docs").glob("*.md"), *(REPO / "docs" / "decisions").glob("*.md")]:
        if page != REPO / "docs" / "index.md":
            (tmp_path / page.relative_to(REPO)).write_text(f"# {page.stem}\n")
    (tmp_path / "lectures").mkdir()
    return tmp_path


def mkdocs(project: Path, lecture: str | None, *words: str) -> subprocess.CompletedProcess[str]:
    if lecture is not None:
        (project / "lectures" / "lecture_01.py").write_text(lecture)
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", *words]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")}
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
    assert said in uncoded(done.stderr)


DEAF = HOLDS.replace("two == 2", "two == 3").replace(
    "from litbook", "import logging, logging.config, sys\n\nfrom litbook"
)
DEAFENING = {
    "dictConfig": 'logging.config.dictConfig({"version": 1, "root": {"level": "INFO"}})',
    "setLevel": "logging.disable(99)",
    "Logger.handle": "logging.Logger.handle = lambda *_: None",
    "sys.exit": "sys.exit = lambda *_: None",
}


@pytest.mark.parametrize("name", DEAFENING)
def test_a_lecture_cannot_switch_off_the_verdict_of_a_strict_build(site_project, name):
    done = mkdocs(site_project, DEAF.replace("    two = 1", f"    {DEAFENING[name]}\n    two = 1"), "--quiet")
    assert done.returncode == 1
    assert "1 problem in the lectures:\n    lectures/lecture_01.py:17: claim fails: it holds\n" in done.stdout


def test_a_strict_build_of_no_lectures_has_no_verdict(site_project):
    done = mkdocs(site_project, HOLDS, "--site-dir", "elsewhere")
    assert done.returncode == 0, done.stderr
    (site_project / "lectures" / "lecture_01.py").unlink()
    done = mkdocs(site_project, None)
    assert done.returncode == 1
    assert "there are no lectures in lectures: a build of nothing has no verdict" in done.stdout


def test_what_looks_like_a_lecture_and_is_none_fails_a_strict_build(site_project):
    (site_project / "lectures" / "lecture-b.py").write_text(HOLDS.replace("two == 2", "two == 3"))
    done = mkdocs(site_project, HOLDS)
    assert done.returncode == 1
    said = "1 problem in the lectures:\n    lectures/lecture-b.py looks like a lecture and is none: nothing in it runs\n"
    assert said in done.stdout
    assert "a lecture is called lecture_*.py, or so is its folder: rename it lecture_b.py" in done.stderr


def test_of_two_builds_at_once_the_second_says_so(site_project):
    with (site_project / "mkdocs.yml").open() as config:
        fcntl.flock(config, fcntl.LOCK_EX)
        done = mkdocs(site_project, HOLDS)
    assert done.returncode == 1
    assert (
        "another build of mkdocs.yml is running, and writes the same pages\n    wait for its end"
        in done.stdout
    )
    assert mkdocs(site_project, HOLDS).returncode == 0


def test_a_strict_build_fails_where_a_lecture_ends_its_process(site_project):
    ends = HOLDS.replace("    two = 1", "    import ctypes\n    ctypes.CDLL(None)._exit(0)\n    two = 1")
    done = mkdocs(site_project, ends)
    assert done.returncode == 1
    assert (
        "lecture_01.py cannot be run: lectures/lecture_01.py: the process ended with exit status 0"
        in done.stderr
    )


SOUGHT = HOLDS.replace(
    '    assert two == 2, "it holds"\n',
    """    assert two == 2, "it holds"
    assert two == 2, "so it does"
    many = {"first": 10, "second": 20, "third": 30, "fourth": 40, "fifth": 50}  # @inspect many
    assert two == 2, "much too long for one row of the margin, so that it stands whole below the code"
    three = int.from_bytes(b"\\3", byteorder="big")  # @inspect three, three.bit_count()
    four = len("no_name()") + three.__abs__()  # no.name()
    prose = "adds" + str(four.adds) if four < 0 else ""
""",
)


def test_the_search_finds_theses_prose_and_names_and_neither_code_nor_values(site_project):
    assert mkdocs(site_project, SOUGHT).returncode == 0
    assert json.loads((site_project / "site/search/search_index.json").read_text())["docs"] == []
    entries = searched(site_project / "site")
    text = entries["lectures/lecture_01/#one"]
    assert text == "It adds up. | from_bytes byteorder __abs__", "and names that stand in code alone"
    page = (site_project / "site/lectures/lecture_01/index.html").read_text()
    assert 'class="lb-n" id="L13" href="#L13" tabindex="-1">13<' in page, (
        "and nothing of it weighs on the page"
    )


def test_an_edited_recording_fails_the_strict_build_and_approve_repairs_it(site_project):
    lecture = site_project / "lectures" / "lecture_01.py"
    lecture.write_text(HOLDS)
    command = [*COMMAND, str(lecture), "--device", "cpu"]
    subprocess.run([*command, "--record"], check=True, capture_output=True, timeout=60)
    assert mkdocs(site_project, HOLDS).returncode == 0
    file = site_project / "lectures" / "recordings" / "lecture_01.cpu.json"
    before = file.read_text()
    file.write_text(re.sub(r'"text":"2","number":2', '"text":"3","number":3', before, count=1))
    done = mkdocs(site_project, HOLDS)
    assert done.returncode != 0
    assert "lecture_01.cpu.json was changed by hand or damaged: a claim of 'one' has 2" in done.stderr
    assert "run the lecture with --approve, which replaces it" in done.stderr
    subprocess.run([*command, "--approve"], check=True, capture_output=True, timeout=60)
    assert mkdocs(site_project, HOLDS).returncode == 0
    changed = [
        line for line in difflib.ndiff(before.splitlines(), file.read_text().splitlines()) if line[0] in "-+"
    ]
    # The edit is undone; when it was recorded is new, and with it the seals.
    assert all('"date":' in line or '"seal":' in line for line in changed)
