"""Recordings through the real command line: made, compared, refused, approved, and never left half-written."""

from __future__ import annotations

import difflib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.records import fill, unsealed
from tests.running import COMMAND, HEAD, REPO, command, process, sampled, write

from litbook.errors import RecordError
from litbook.files import replace_whole
from litbook.html import ledger
from litbook.page.runs import LectureRuns
from litbook.project import Project, name_of, recording_of, recordings_of
from litbook.record import compare, encoding, model, recordings
from litbook.site.badge import badge

LECTURE = f"""{HEAD}
import time

WIDTH = 4


def main() -> None:
    one()
    two()
    on_a_gpu()


def one() -> None:
    size = 6 * WIDTH  # @inspect size as B
    assert size >= 6 * WIDTH, "bytes"
    for i in range(30):
        total = i  # @inspect total


def two() -> None:
    note("Now.")
    seconds = time.perf_counter()  # @measure seconds as s
    assert seconds > 0
    other = 24  # @inspect other


@requires("cuda")
def on_a_gpu() -> None:
    note("On a GPU.")
    assert 1 == 1
"""
SHOWN = "recordings/lecture_sample.cpu.json"


class Place:
    """A lecture in a folder of its own, with its recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "book"
        self.folder.mkdir()
        self.lecture = write(self.folder, LECTURE)
        self.file = self.folder / SHOWN

    def run(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        return command(self.lecture, "--quiet", "--device", "cpu", *words, **options)

    def edit(self, was: str, now: str) -> None:
        text = self.lecture.read_text(encoding="utf-8")
        assert was in text
        self.lecture.write_text(text.replace(was, now), encoding="utf-8")

    def damage(self, was: str, now: str) -> bytes:
        """Put other values there, without the seals that would tell of it."""
        text = unsealed(self.file.read_text(encoding="utf-8"))
        assert was in text
        self.file.write_text(text.replace(was, now), encoding="utf-8")
        return self.file.read_bytes()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same, recorded; for all tests, which take a copy."""
    place = Place(tmp_path_factory.mktemp("once"))
    assert place.run("--record").returncode == 0
    return place


@pytest.fixture
def recorded(place: Place, once: Place) -> Place:
    shutil.copytree(once.file.parent, place.file.parent)
    return place


DIFFERS = (
    "lecture_sample.py:16: one: size is not what was recorded\n"
    "    was 24, is 48, by 24 (0.5 of it)\n"
    "\n"
    "lecture_sample.py:17: one: 6 * WIDTH is not what was recorded\n"
    "    was 24, is 48, by 24 (0.5 of it)\n"
)
COUNTS = "2 claims hold, 0 fail, 1 not run"


# ---------------------------------------------------------------------------- making and comparing


def test_a_recording_is_written_beside_the_lecture_and_the_next_run_agrees(place: Place) -> None:
    done = place.run("--record")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"recorded in book/{SHOWN}\n\n{COUNTS}\n"
    assert [p.name for p in place.file.parent.iterdir()] == [place.file.name]
    done = place.run()
    assert (done.returncode, done.stdout) == (0, f"{COUNTS}\n")


def test_without_a_recording_nothing_is_compared_and_none_is_made(place: Place) -> None:
    assert place.run().returncode == 0
    assert not place.file.parent.exists()


def test_a_changed_value_ends_with_one_and_says_what_was_what_is_and_the_way_out(recorded: Place) -> None:
    recorded.edit("WIDTH = 4", "WIDTH = 8")
    done = recorded.run()
    assert done.returncode == 1
    assert done.stdout == (
        f"{DIFFERS}\n"
        f"If the new values are the right ones: python tools/run_lecture.py {recorded.lecture}"
        " --device cpu --approve\n\n"
        f"{COUNTS}; 2 differences from book/{SHOWN}\n"
    )


def test_record_refuses_to_overwrite_what_differs_and_approve_shows_it_and_accepts(recorded: Place) -> None:
    before = recorded.file.read_bytes()
    recorded.edit("WIDTH = 4", "WIDTH = 8")
    done = recorded.run("--record")
    assert done.returncode == 1
    assert DIFFERS in done.stdout
    assert done.stderr == (
        f"run_lecture.py: not recorded: book/{SHOWN} says something else\n    --approve accepts what differs\n"
    )
    assert recorded.file.read_bytes() == before
    done = recorded.run("--approve")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{DIFFERS}\nrecorded in book/{SHOWN}\n\n{COUNTS}\n"  # it is this run now
    assert recorded.run().returncode == 0


def test_an_edited_value_in_the_recording_is_found_and_approve_repairs_it(recorded: Place) -> None:
    before = recorded.file.read_text()
    recorded.damage('"text":"24","number":24}', '"text":"25","number":25}')
    done = recorded.run()
    assert done.returncode == 1
    assert "two: other is not what was recorded\n    was 25, is 24, by 1 (0.04 of it)\n" in done.stdout
    assert recorded.run("--approve").returncode == 0
    changed = [
        line
        for line in difflib.unified_diff(before.splitlines(), recorded.file.read_text().splitlines(), n=0)
        if re.match(r"[-+][^-+]", line)
    ]
    # the environment with its date, what was measured, and the seal of the section: nothing else
    assert len(changed) <= 2 + 4 + 2
    assert recorded.run().returncode == 0


def test_when_nothing_differs_the_file_stays_as_it_is_byte_for_byte(recorded: Place) -> None:
    before = recorded.file.read_bytes(), recorded.file.stat().st_ino
    for word in ("--record", "--approve"):
        done = recorded.run(word)
        assert done.returncode == 0
        assert done.stdout.startswith(f"book/{SHOWN} stays as it is: no value, claim or section differs")
    recorded.edit("import time\n", "import time\n\n# a line that moves all others\n")
    assert recorded.run("--record").returncode == 0
    assert (recorded.file.read_bytes(), recorded.file.stat().st_ino) == before


def test_a_section_with_another_text_is_one_line_and_approve_records_it_anew(recorded: Place) -> None:
    recorded.edit("other = 24  #", "other = 23 + 1  #")
    done = recorded.run()
    assert done.returncode == 0  # its author is at work: nothing is contradicted
    assert done.stdout.startswith("lecture_sample.py:22: two was recorded from an older text\n\nIf the new")
    assert done.stdout.endswith("; 1 section newer than book/recordings/lecture_sample.cpu.json\n")
    assert recorded.run("--record").returncode == 1
    done = recorded.run("--approve")
    assert done.returncode == 0
    assert done.stdout.endswith(f"\n\nrecorded in book/{SHOWN}\n\n{COUNTS}\n")
    assert recorded.run().returncode == 0


def test_a_section_alone_compares_itself_only(recorded: Place) -> None:
    recorded.edit("WIDTH = 4", "WIDTH = 8")
    done = recorded.run("one")
    assert done.returncode == 1
    assert done.stdout.startswith(DIFFERS)
    assert recorded.run("two").returncode == 0


def test_a_section_that_is_being_written_is_no_difference_while_it_runs_alone(recorded: Place) -> None:
    recorded.edit("other = 24  #", "other = 23  #")
    done = recorded.run("two")
    assert (done.returncode, done.stderr) == (0, "")
    assert "differ" not in done.stdout


@pytest.mark.parametrize("word", ["--record", "--approve"])
@pytest.mark.parametrize("instead", ["assert seconds < 0", "1 / 0", "raise SystemExit"])
def test_a_run_that_fails_is_not_recorded(recorded: Place, word: str, instead: str) -> None:
    before = recorded.file.read_bytes()
    recorded.edit("assert seconds > 0", instead)
    done = recorded.run(word)
    assert done.returncode == 1
    assert "run_lecture.py: not recorded: a claim fails or the lecture raised\n" in done.stderr
    assert recorded.file.read_bytes() == before


def test_approval_is_not_offered_where_it_would_be_refused(recorded: Place) -> None:
    recorded.edit("WIDTH = 4", "WIDTH = 8")
    assert "--approve" in recorded.run().stdout
    recorded.edit("assert seconds > 0", "assert seconds < 0")
    done = recorded.run()
    assert "one: size is not what was recorded" in done.stdout
    assert "--approve" not in done.stdout + done.stderr


def test_a_run_out_of_time_is_not_recorded(recorded: Place) -> None:
    before = recorded.file.read_bytes()
    recorded.edit("    other = 24", "    time.sleep(60)\n    other = 24")
    done = recorded.run("--approve", "--timeout", "0.5")
    assert done.returncode == 1
    assert "timed out after 0.5 s" in done.stderr
    assert recorded.file.read_bytes() == before


# ---------------------------------------------------------------------------- bad recordings

WAY_OUT = "    take the file back from git, or run the lecture with --approve, which replaces it\n"
NEWER = WAY_OUT.replace("    take", "    update litbook, take")


def spoiled(text: str, how: str) -> bytes:
    data = json.loads(text)
    match how:
        case "truncated":
            return text[: len(text) // 2].encode()
        case "empty":
            return b""
        case "not text":
            return bytes(range(256))
        case "not JSON":
            return b"__import__('os').system('touch ran')"
        case "no record":
            return b"[]"
        case "newer":
            data["schema"] = 99
        case "index":
            next(it["values"] for it in data["sections"] if "values" in it)[0][4] = 10**6
        case "field":
            data["surprise"] = 1
        case "infinite":
            return text.replace('"number":24}', '"number":1e999}').encode()
        case "deep":
            return text.replace('"number":24}', '"number":' + "[" * 10**5).encode()
        case "lecture":
            data["lecture"] = "lecture_99\u001b[31m"
        case "device":
            data["environment"]["device"]["slug"] = "../../etc"
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("how", "says"),
    sampled([
        ("truncated", f"book/{SHOWN} is not a whole record: "),
        ("empty", f"book/{SHOWN} is not a whole record: "),
        ("not text", f"book/{SHOWN} is not a record: it is not UTF-8 text"),
        ("not JSON", f"book/{SHOWN} is not a whole record: "),
        ("no record", f"book/{SHOWN} is not a record: it has no schema number"),
        ("newer", f"book/{SHOWN} has schema 99; this litbook reads {model.SCHEMA}"),
        ("index", f"book/{SHOWN} was changed by hand or damaged: snapshot 1000000 of '"),
        ("field", f"book/{SHOWN} was changed by hand or damaged: Object contains unknown field `surprise`"),
        ("infinite", f"book/{SHOWN} was changed by hand or damaged: "),
        ("deep", f"book/{SHOWN} is not a whole record: "),
        ("lecture", f"book/{SHOWN} is a recording of another lecture: 'lecture_99"),
        ("device", f"book/{SHOWN} is a recording of another device: '../../etc'"),
    ], 3),
)  # fmt: skip
def test_a_recording_that_cannot_be_used_is_named_with_the_way_out_and_kept(
    recorded: Place, how: str, says: str
) -> None:
    bad = spoiled(recorded.file.read_text(), how)
    recorded.file.write_bytes(bad)
    done = recorded.run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith(f"run_lecture.py: {says}")
    assert done.stderr.endswith(NEWER if how == "newer" else WAY_OUT)
    assert len(done.stderr) < 600
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr
    assert recorded.file.read_bytes() == bad
    assert not list(recorded.folder.rglob("ran"))
    done = recorded.run("--approve")
    assert done.returncode == 0
    assert done.stdout == f"recorded in book/{SHOWN}\n\n{COUNTS}\n"


def test_whoever_reads_a_recording_that_cannot_be_used_keeps_it_until_it_is_approved(recorded: Place) -> None:
    recorded.file.write_text("{")
    for words in ((), ("--record",), ("one",)):
        done = recorded.run(*words)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.startswith(f"run_lecture.py: book/{SHOWN} is not a whole record: ")
        assert recorded.file.read_text() == "{"
    assert recorded.run("--approve").returncode == 0
    assert recorded.run().returncode == 0


def test_a_failing_claim_counts_for_more_than_a_recording_that_cannot_be_used(recorded: Place) -> None:
    recorded.file.write_text("{")
    recorded.edit("assert seconds > 0", "assert seconds < 0")
    done = recorded.run()
    assert done.returncode == 1
    assert "is not a whole record" in done.stderr


def test_hostile_text_in_a_recording_is_shown_as_text_and_cut(recorded: Place) -> None:
    data = json.loads(unsealed(recorded.file.read_text()))
    hostile = "\u001b[31m<script>alert(1)</script>" + "x" * 10**5
    for section in data["sections"]:
        shots = section.get("snapshots", [])
        section["snapshots"] = [{"kind": "scalar", "type": hostile, "text": hostile} for _ in shots]
        if section["key"] == "on_a_gpu":
            section["key"] = section["name"] = hostile
    recorded.file.write_text(json.dumps(data))
    done = recorded.run()
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr
    assert "⟨U+001B⟩[31m<script>" in done.stdout
    assert len(done.stdout) < 10_000


def test_a_recording_that_is_a_folder_cannot_be_used(place: Place) -> None:
    place.file.mkdir(parents=True)
    done = place.run()
    assert done.returncode == 2
    assert f"book/{SHOWN} cannot be read: it is no regular file" in done.stderr
    done = place.run("--approve")
    assert done.returncode == 2
    assert f"book/{SHOWN}: Is a directory; nothing was written" in done.stderr
    assert [p.name for p in place.file.parent.iterdir()] == [place.file.name]


def test_a_link_that_leads_nowhere_is_a_recording_that_cannot_be_read(place: Place) -> None:
    place.file.parent.mkdir()
    place.file.symlink_to(place.folder / "gone.json")
    assert place.run().returncode == 2


# ---------------------------------------------------------------------------- whole or not at all

DIES = """
import os, sys
sys.path.insert(0, {tools!r})
real = os.{call}
def last(*args):
    os.kill(os.getpid(), 9)
os.{call} = last
from litbook import cli
sys.exit(cli.run_lecture(sys.argv[1:]))
"""


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_in_the_middle_of_writing_leaves_the_old_file_whole(recorded: Place, call: str) -> None:
    before = recorded.file.read_bytes()
    recorded.edit("WIDTH = 4", "WIDTH = 8")
    code = DIES.format(tools=str(REPO / "tools"), call=call)
    words = [sys.executable, "-c", code, str(recorded.lecture), "--approve", "--device", "cpu"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert recorded.file.read_bytes() == before
    assert recorded.run().returncode == 1  # it is read, and what the dead one left beside it is not
    assert recorded.run("--approve").returncode == 0


def test_a_disk_that_is_full_leaves_the_old_file_whole_and_no_half_one(recorded: Place) -> None:
    before = recorded.file.read_bytes()
    recorded.edit("WIDTH = 4", "WIDTH = 8")

    def full() -> None:  # the kernel refuses every file larger than this, as it does on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = process(recorded.lecture, "--quiet", "--device", "cpu", "--approve", preexec_fn=full)
    assert done.returncode == 1
    assert done.stderr == (
        "run_lecture.py: the record of the run cannot be kept among temporary files: File too large; no verdict "
        "without it\n"
    )
    assert recorded.file.read_bytes() == before
    assert [p.name for p in recorded.file.parent.iterdir()] == [recorded.file.name]


def test_two_runs_that_record_at_once_leave_one_whole_file(place: Place) -> None:
    for _ in sampled(range(3), 3):
        both = [
            subprocess.Popen(
                [*COMMAND, str(place.lecture), "--quiet", "--approve", "--device", "cpu"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(4)
        ]
        for one in both:
            out, err = one.communicate(timeout=60)
            assert one.returncode == 0, out + err
        assert recordings.read(place.file, "lecture_sample").count()["holds"] == 2
        assert [p.name for p in place.file.parent.iterdir()] == [place.file.name]
        place.file.unlink()


def test_a_writer_never_shows_half_a_file(tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    contents = [bytes([letter]) * 300_000 for letter in b"ab"]
    code = (
        f"import sys; sys.path.insert(0, {str(REPO / 'tools')!r})\n"
        "from pathlib import Path\nfrom litbook.files import replace_whole\n"
        "for _ in range(100): replace_whole(Path(sys.argv[1]), sys.argv[2].encode() * 300_000)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(file), letter]) for letter in "ab"]
    seen = 0
    while any(one.poll() is None for one in both):
        if file.exists():
            assert file.read_bytes() in contents
            seen += 1
        time.sleep(0.001)
    assert [process.wait() for process in both] == [0, 0]
    assert seen > 5
    assert [p.name for p in tmp_path.iterdir()] == ["it.json"]


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual(tmp_path: Path) -> None:
    file, usual = tmp_path / "it.json", tmp_path / "usual"
    usual.touch()
    replace_whole(file, b"1")
    assert file.stat().st_mode == usual.stat().st_mode
    file.chmod(0o640)
    replace_whole(file, b"2")
    assert file.stat().st_mode & 0o777 == 0o640


# ---------------------------------------------------------------------------- what a recording holds


def test_a_recording_says_the_same_as_its_record_in_less(recorded: Place) -> None:
    out = recorded.folder / "out.json"
    recorded.run("--out", out)
    full, kept = encoding.read(out), encoding.read(recorded.file)
    assert compare.compare(full, kept).differences == ()
    assert compare.compare(kept, full).differences == ()
    assert compare.compare(full, kept).values > 30
    assert recordings.trim(kept) == kept
    assert (kept.sources[0].text, kept.sources[0].sha256) == ("", "")
    assert all((it.seconds, it.pieces, it.steps) == (0, (), ()) for it in kept.sections)
    two = full.by_key["two"]
    assert two.pieces and two.steps and two.seconds


def test_sections_on_a_device_keep_all_that_their_page_is_drawn_from(recorded: Place) -> None:
    """No GPU is needed: the record of a section that ran is relabelled as one that needs a device."""
    out = recorded.folder / "out.json"
    recorded.run("--out", out)
    full = fill(encoding.read(out), "two", requires="cuda")
    kept = recordings.trim(full)
    assert encoding.loads(encoding.dumps(kept)) == kept  # every index points into its list
    assert kept.by_key["two"] == replace(full.by_key["two"], seconds=0.0, wordings=())
    assert [piece.text for piece in kept.by_key["two"].pieces] == ["Now."]
    assert kept.by_key["one"].statements == ()


@pytest.mark.skipif(sys.platform != "linux", reason="a section that needs Linux runs there")
def test_a_section_that_begins_to_call_what_another_called_can_be_read_again(place: Place) -> None:
    """What a section on a device calls is kept with its statements, also where it was recorded without."""
    helper = "def double(x: int) -> int:\n    y = 2 * x\n    return y\n\n\n"
    place.edit("def one()", helper + "def one()")
    place.edit("6 * WIDTH  #", "double(3 * WIDTH)  #")
    place.edit('@requires("cuda")', '@requires("linux")')
    place.edit("assert 1 == 1", "assert WIDTH + 1 == 5")
    place.run("--record")
    assert recordings.read(place.file, "lecture_sample").definition_of["double"].statements == ()
    place.edit("assert WIDTH + 1 == 5", "assert double(WIDTH) == 8")
    assert place.run("--approve").returncode == 0
    done = place.run()
    assert done.returncode == 0, done.stdout


def test_one_changed_value_changes_one_line_of_the_snapshots(recorded: Place) -> None:
    """In a plain record it could renumber all that follow: there, equal values are stored once."""
    before = recorded.file.read_text().splitlines()
    recorded.edit("other = 24", "other = 29")
    recorded.run("--approve")
    after = recorded.file.read_text().splitlines()
    changed = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
    for sign, value in (("-", 24), ("+", 29)):
        assert f'{sign} {{"kind":"scalar","type":"int","text":"{value}","number":{value}}},' in changed
    assert len(changed) <= 12  # environment, source, the section's digest, two measured values


# ---------------------------------------------------------------------------- two environments


def out(place: Place, name: str) -> Path:
    place.run("--out", place.folder / name)
    return place.folder / name


def test_two_records_that_agree_compare_with_zero_and_say_how_much_was_compared(place: Place) -> None:
    first, second = out(place, "a.json"), out(place, "b.json")
    first.write_text(re.sub(r'"date":"\d{4}', '"date":"2020', first.read_text()))
    done = command("--compare", first, second)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "no difference; 37 values and 2 claims were compared"
    assert re.search(r"^date +2\S+Z +2\S+Z$|^torch", done.stdout, re.MULTILINE)


def test_two_records_that_differ_make_one_table_and_end_with_one(place: Place) -> None:
    a = out(place, "a.json")
    place.edit("WIDTH = 4", "WIDTH = 8")
    b = out(place, "b.json")
    text = b.read_text()
    b.write_text(re.sub(r'"python":"[^"]+"', '"python":"3.99.0"', text))
    done = command("--compare", a, b)
    assert (done.returncode, done.stderr) == (1, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"python {sys.version.split()[0]} 3.99.0" in lines
    start = lines.index("line what was is by")
    assert lines[start:] == [
        "line what was is by",
        "",
        "one lecture_sample.py",
        "16 size 24 48 24 (0.5 of it)",
        "17 6 * WIDTH 24 48 24 (0.5 of it)",
        "",
        "2 differences; 37 values and 2 claims were compared",
    ]


def test_the_table_is_short_and_says_how_many_claims_fail(place: Place) -> None:
    shown = 'size = [6 * WIDTH] * 6  # @inspect size\n    word = "w" * 40 + str(WIDTH)  # @inspect word'
    place.edit("size = 6 * WIDTH  # @inspect size as B", shown)
    place.edit("size >= 6 * WIDTH", "len(size) == 5 + 1")
    a = out(place, "a.json")
    text = a.read_text()
    assert '"verdict":"holds"' in text
    a.write_text(text.replace('"verdict":"holds"', '"verdict":"fails"', 1))
    place.edit("WIDTH = 4", "WIDTH = 8")
    done = command("--compare", a, out(place, "b.json"))
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "claims 1 claim holds, 1 fails, 1 not run 2 claims hold, 0 fail, 1 not run" in lines
    start = lines.index("one lecture_sample.py") + 1
    assert lines[start : start + 9] == [
        *(f"16 size[{i}] 24 48 24 (0.5 of it)" for i in range(4)), "16 size: and 2 more",
        "17 word", f"was '{'w' * 40}4'", f"is '{'w' * 40}8'",
        "18 len(size) == 5 + 1 verdict fails holds",
    ]  # fmt: skip


def test_what_cannot_be_compared_ends_with_two(place: Place) -> None:
    a, broken, other = out(place, "a.json"), place.folder / "broken.json", place.folder / "other.json"
    broken.write_text(a.read_text()[:500])
    other.write_text(a.read_text().replace('"lecture":"lecture_sample"', '"lecture":"lecture_other"'))
    for words, says in {
        (a, broken): f"{broken} is not a whole record: ",
        (a, place.folder / "no.json"): "no.json cannot be read: No such file or directory",
        (a, other): "a record of 'lecture_sample' cannot be compared with one of 'lecture_other'",
    }.items():
        done = command("--compare", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
    done = command("lecture_02", "--compare", a, a)
    assert done.returncode == 2
    assert "--compare runs no lecture\n    leave the name of the lecture out" in done.stderr


# ---------------------------------------------------------------------------- this book


def test_every_committed_recording_is_whole_and_small() -> None:
    for lecture in Project(REPO).lectures():
        for file in recordings_of(lecture):
            made = recordings.read(file, name_of(lecture))
            assert made.count()["fails"] == 0
            assert file.stat().st_size <= 1_100_000


def test_the_badge_of_the_readme_counts_what_the_recordings_hold() -> None:
    made = (REPO / "docs" / "images" / "claims.svg").read_text(encoding="utf-8")
    assert "docs/images/claims.svg" in (REPO / "README.md").read_text(encoding="utf-8")
    if any((REPO / "lectures" / "recordings").glob("lecture_*.json")):
        assert made == badge(Project(REPO)), "make record refreshes it"
    else:  # nothing to count yet: it is a badge, then
        assert "<title>claims: " in made


def test_the_badge_counts_a_claim_that_holds_on_any_recorded_device(recorded: Place) -> None:
    assert "claims: 2 hold, 1 not run<" in badge(Project(recorded.folder, "."))
    made = encoding.read(recorded.file)
    gpu = model.Device("cuda", "nvidia-h200", "NVIDIA H200")
    claims = tuple(replace(claim, verdict="holds") for claim in made.by_key["on_a_gpu"].claims)
    other = replace(fill(made, "on_a_gpu", claims=claims), environment=replace(made.environment, device=gpu))
    recordings.write(recording_of(Path(recorded.lecture), gpu.slug), other)
    assert "claims: 3 hold<" in badge(Project(recorded.folder, "."))
    assert "claims: 0 hold<" in badge(Project(recorded.folder.parent, "."))


def test_a_badge_is_not_made_of_a_recording_that_cannot_be_used(recorded: Place) -> None:
    recorded.file.write_text("{")
    with pytest.raises(RecordError, match="is not a whole record"):
        badge(Project(recorded.folder, "."))


def test_the_counts_of_run_recording_and_claims_json_are_the_same(recorded: Place) -> None:
    full, kept = encoding.read(out(recorded, "a.json")), encoding.read(recorded.file)
    said = json.loads(ledger.data([LectureRuns("lecture_sample", full, (), kept)]))
    counts = full.count()
    expected = {"claims": 3, "holds": counts["holds"], "fails": counts["fails"]}
    expected |= {"not-reached": counts["not-reached"], "needs-device": counts["needs-device"]}
    assert said["counts"] == said["runs"][0]["counts"] == said["runs"][1]["counts"] == expected
    assert kept.count() == counts
    assert all(len(claim["verdicts"]) == 2 for claim in said["claims"])


# ------------------------------------------------------------------------ names and left-overs


@pytest.mark.parametrize("name", ['x" onclick="boom()', "x y", "<b>", "X", "cpu.gpu", "é"])
def test_a_device_without_a_plain_name_is_refused(recorded: Place, name: str) -> None:
    data = json.loads(recorded.file.read_text())
    data["environment"]["device"]["slug"] = name
    file = recorded.file.with_name(f"{name_of(recorded.lecture)}.{name}.json")
    file.write_text(json.dumps(data))
    with pytest.raises(RecordError) as caught:
        recordings.read(file, name_of(recorded.lecture))
    assert str(caught.value) == (
        f"book/recordings/{file.name} has a device whose name is not of small letters, digits and -: {name!r}\n"
        "    take the file back from git, or run the lecture with --approve, which replaces it"
    )


def test_what_a_killed_writer_left_is_written_over_by_the_next_and_one_at_work_is_waited_for(
    tmp_path: Path,
) -> None:
    file = tmp_path / "lecture_01.cpu.json"
    text = "import os, sys, time\nfrom pathlib import Path\nfrom litbook.files import replace_whole\n"
    write = "replace_whole(Path(sys.argv[1]), b'new, and longer')"
    env = {**os.environ, "PYTHONPATH": str(REPO / "tools")}
    kill = "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
    writer = [sys.executable, "-c", text + kill + write, str(file)]
    assert subprocess.run(writer, env=env, check=False).returncode == -signal.SIGKILL
    assert [it.name for it in tmp_path.iterdir()] == [".lecture_01.cpu.json.new"]
    replace_whole(file, b"whole")
    assert [(it.name, it.read_bytes()) for it in tmp_path.iterdir()] == [(file.name, b"whole")]
    slow = "os.fsync = lambda _: (print(flush=True), time.sleep(0.5))\n"
    command = [sys.executable, "-c", text + slow + write, str(file)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as writing:
        assert writing.stdout is not None and writing.stdout.readline() == b"\n"
        replace_whole(file, b"the last")
        assert writing.wait(1) == 0  # it was there first
    assert [(it.name, it.read_bytes()) for it in tmp_path.iterdir()] == [(file.name, b"the last")]


def test_a_file_that_cannot_be_written_stays_as_it_is_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "it.json"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_whole(file, b"new")
    assert [(it.name, it.read_bytes()) for it in tmp_path.iterdir()] == [("it.json", b"old")]
