"""A recording stands for a claim only while all that the claim depends on is the same; and for no claim that ran here.

Each row of `CHANGES` was once a page that said "holds" of what no run had judged, with exit status 0 everywhere.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.records import unsealed
from tests.running import HEAD, LITBOOK, command, write

from litbook.html import ledger, page
from litbook.project import Project, recordings_of
from litbook.rules.judge import Findings, judge, rules_of
from litbook.rules.subject import Subject
from litbook.run import process
from litbook.run.run import run
from litbook.site.badge import badge
from litbook.site.plugin import LitbookPlugin

LECTURE = f"""{HEAD}
from helpers import half

LIMIT = 10


class Card:
    size = 80


def square(x):
    return x * x


def main():
    \"\"\"Contents.\"\"\"
    quick()
    patient()


def quick():
    \"\"\"Quick.\"\"\"
    assert 1 + 1 == 2, "two"


@requires("slow")
def patient():
    \"\"\"Patient, and its thesis.\"\"\"
    # a comment
    note("As it was said.")
    total = square(3)  # @inspect total
    note(f"In all it is {{total}}.")
    assert total == 9, "three squared is nine"
    assert total < LIMIT, "within the limit"
    assert Card().size == 80, "its size"
    assert half(4) == 2, "half of four"
    assert open("rows.csv").read() == "1,2\\n", "two numbers"
"""
FILES = {"helpers.py": "def half(x):\n    return x / 2\n", "rows.csv": "1,2\n"}
OLDER = "lecture_x.cpu.json: 1 section recorded from an older text: patient\n"
ANEW = f"{OLDER}    to record anew: litbook record lecture_x --device cpu --approve"
WAIT = "\n    or let them wait: `rules: {older: warn}` below litbook, in mkdocs.yml"


class Book:
    """A book of one lecture, and of what lies beside it."""

    def __init__(self, root: Path, text: str = LECTURE) -> None:
        self.root, self.folder = root, root / "lectures"
        self.folder.mkdir()
        for name, content in FILES.items():
            (self.folder / name).write_text(content)
        self.lecture = write(self.folder, text, "lecture_x.py")

    def record(self, *sections: str) -> None:
        done = command(self.lecture, *sections, "--quiet", "--device", "cpu", "--approve")
        assert done.returncode == 0, done.stdout + done.stderr

    def edit(self, was: str, now: str, name: str = "lecture_x.py") -> None:
        text = (self.folder / name).read_text()
        assert was in text
        (self.folder / name).write_text(text.replace(was, now))

    def build(self, **options: str) -> LitbookPlugin:
        """A build: what is wrong with it are its `problems`."""
        plugin = LitbookPlugin()
        errors, _ = plugin.load_config(options)
        assert not errors
        plugin.build(Project(self.root), lambda paths: (partial(run, it, device="cpu") for it in paths))
        return plugin


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The book, recorded; for all tests, which take a copy."""
    made = Book(tmp_path_factory.mktemp("once"))
    made.record()
    return made


@pytest.fixture
def book(tmp_path: Path, once: Book) -> Book:
    made = Book(tmp_path)
    shutil.copytree(once.folder / "recordings", made.folder / "recordings")
    return made


def unreached(book: Book) -> Findings:
    """What has not run, here or as it was recorded."""
    subject = Subject(book.lecture, run=lambda: process.record_of(book.lecture))
    return judge(subject, rules=rules_of(["older", "never-ran"]), selected=True)


def test_what_is_as_it_was_recorded_stands_for_its_claims(book: Book) -> None:
    built = book.build()
    assert built.findings == []
    (it,) = built.editions
    (html,) = page.pages(it.record, recordings=it.recordings).values()
    assert "What stands here was recorded" in html
    assert "5 hold, as recorded on" in html
    assert "<title>claims: 6 hold<" in badge(Project(book.root))
    assert not unreached(book).errors


CHANGES = [
    ("return x * x", "return x + x", "lecture_x.py"),
    ("LIMIT = 10", "LIMIT = 5", "lecture_x.py"),
    ("size = 80", "size = 96", "lecture_x.py"),
    ("x / 2", "x // 3", "helpers.py"),
    ("1,2", "1,3", "rows.csv"),
    ("assert total == 9", "assert total == 10", "lecture_x.py"),
]


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize(("was", "now", "name"), CHANGES)
def test_what_a_claim_depends_on_has_changed_and_the_claim_has_not_run(
    book: Book, was: str, now: str, name: str, another: bool
) -> None:
    book.edit(was, now, name)
    if another:  # that a section which does not use it is recorded anew does not matter
        book.edit("def quick():", "def quick():\n    n = 1  # @inspect n\n    assert n == 1")
        book.record("quick")
    # A run says so, as it does while an author is at work.
    done = command(book.lecture, "--quiet", "--device", "cpu")
    assert done.returncode == 0
    how = "from an older text" if was.startswith("assert") else "before a change of what it calls or reads"
    assert f"patient was recorded {how}" in done.stdout
    assert "5 not run" in done.stdout
    # A build and a check are wrong, and say how to record anew.
    built = book.build()
    assert [it for it in map(str, built.findings) if "patient" in it] == [ANEW + WAIT]
    assert ANEW + WAIT in map(str, unreached(book).errors)
    # Page, ledger, data and badge: nothing holds that was recorded.
    (it,) = built.editions
    (html,) = page.pages(it.record, recordings=it.recordings).values()
    assert "5 not run (need a new recording)" in html
    assert "as recorded on" not in html
    assert "from an older text" in html
    assert "9 = 9" not in html
    said = json.loads(ledger.data(built.editions))
    mine = [claim for claim in said["claims"] if claim["section"] == "patient"]
    assert {v["verdict"] for claim in mine for v in claim["verdicts"]} == {"needs-device"}
    assert {v["current"] for claim in mine for v in claim["verdicts"][1:]} == {False}
    assert all(run["counts"]["needs-device"] == 5 for run in said["runs"])
    assert " 5 not run<" in badge(Project(book.root))
    assert "not run · older text" in ledger.claims_page(it, "index.md")


def test_a_recording_that_holds_a_failed_claim_fails_the_build(book: Book) -> None:
    (file,) = recordings_of(book.lecture)
    recording = json.loads(unsealed(file.read_text()))
    (section,) = (it for it in recording["sections"] if it["key"] == "patient")
    claim = section["claims"][1]
    assert claim["verdict"] == "holds" and claim["text"] == "total < LIMIT"
    claim["verdict"] = "fails"
    file.write_text(json.dumps(recording))
    says = (
        "lectures/recordings/lecture_x.cpu.json was changed by hand or damaged: a claim of 'patient' fails, and is true: "
        "total < LIMIT\n    take the file back from git, or run the lecture with --approve, which replaces it"
    )
    assert [*map(str, book.build().findings)] == [says]


def test_a_recording_whose_values_make_a_claim_fail_is_told_at_the_claim(book: Book) -> None:
    """As a card has it whose values another machine never saw: text, number and verdict agree."""
    (file,) = recordings_of(book.lecture)
    recording = json.loads(unsealed(file.read_text()))
    (section,) = (it for it in recording["sections"] if it["key"] == "patient")
    claim = section["claims"][1]
    shot = section["snapshots"][claim["operands"][1][1]]
    shot |= {"text": "1", "number": 1}
    claim["verdict"] = "fails"
    file.write_text(json.dumps(recording))
    line = 1 + book.lecture.read_text().splitlines().index('    assert total < LIMIT, "within the limit"')
    said = [str(finding) for finding in book.build().findings]
    assert any(one.startswith(f"lecture_x.py:{line}: claim fails in lecture_x.cpu.json") for one in said), (
        said
    )


def test_a_book_may_say_that_older_recordings_wait(book: Book) -> None:
    book.edit("return x * x", "return x + x")
    assert book.build(recordings="may-be-older").findings == []
    assert [error for _, error in LitbookPlugin().load_config({"recordings": "old"})[0]] != []


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("# a comment", "# another comment\n    # of two lines"),
        ("Patient, and its thesis.", "Another thesis.\n\n    Of more words."),
        ("As it was said.", "As it is said now, in [a link](https://example.org)."),
        ("three squared is nine", "nine it is"),
        ("    total = square(3)", "\n    total = square(\n        3\n    )"),
        ("def quick", "def added():\n    pass\n\n\ndef quick"),
        ('"""A lecture."""', '"""Another title."""\n# and a comment'),
    ],
)
def test_prose_may_be_rewritten_and_the_page_shows_that_of_today_with_the_recorded_values(
    book: Book, was: str, now: str
) -> None:
    def lines(built: LitbookPlugin) -> tuple[str, list[str]]:
        """The page, and what stands beside each line of it."""
        (it,) = built.editions
        (html,) = page.pages(it.record, recordings=it.recordings).values()
        rows = re.findall(r'<span[^>]* id="L\d+".*?(?=<span[^>]* id="L\d+"|</pre>|$)', html, re.DOTALL)
        return html, [row for row in rows if "lb-holds" in row or "lb-value" in row]

    before, beside = lines(book.build())
    book.edit(was, now)
    built = book.build()
    assert built.findings == []
    after, still = lines(built)
    for text in ("In all it is 9.", "9 = 9", "5 hold, as recorded on"):
        assert text in before
        assert text in after
    assert len(still) == len(beside)
    if was in before and "def" not in was:
        assert was not in after
    done = command(book.lecture, "--quiet", "--device", "cpu")
    assert (done.returncode, done.stdout) == (0, "1 claim holds, 0 fail, 5 not run\n")


def test_what_was_recorded_stands_at_the_lines_and_with_the_prose_of_today(book: Book) -> None:
    book.edit("# a comment", "# a comment\n\n    # that takes more lines\n    # than before")
    book.edit(
        'note("As it was said.")',
        'note("""\n        As it is said today,\n        on lines of its own.\n    """)',
    )
    book.edit("three squared is nine", "so it is")
    (it,) = book.build().editions
    text = book.lecture.read_text().splitlines()
    (recording,) = it.recordings
    entry = recording.by_key["patient"]

    def at(line: int) -> str:
        return text[entry.first - 1 + line].strip()

    entry = replace(entry, first=it.record.by_key["patient"].first)
    assert [at(claim.line) for claim in entry.claims] == [
        line.strip() for line in text if line.startswith("    assert") and "1 + 1" not in line
    ]
    assert [claim.caption for claim in entry.claims][:2] == ["so it is", "within the limit"]
    assert [at(value.line) for value in entry.values] == ["total = square(3)  # @inspect total"]
    assert [(piece.text, at(piece.line)) for piece in entry.pieces] == [
        ("As it is said today,\non lines of its own.", 'note("""'),
        ("In all it is 9.", 'note(f"In all it is {total}.")'),
    ]
    assert [at(statement.first) for statement in entry.statements if statement.kind == "claim"] == [
        at(claim.line) for claim in entry.claims
    ]


# ---------------------------------------------------------------------------- what this build did not reach

LOOP = f"""{HEAD}

def helper(x):
    if x > 1:
        assert x < 10
    return x


def main():
    one()


def one():
    \"\"\"One.\"\"\"
    rows = [1, 2]
    for x in rows:
        assert x < 10, "every row is below ten"
    helper(2)
"""


@pytest.mark.parametrize(
    ("was", "now", "claim"),
    [
        ("in rows:", "in rows[5:]:", 'assert x < 10, "every row is below ten"'),
        (
            "in rows:",
            "in rows:\n        if x > 5:\n            continue\n        break",
            'assert x < 10, "every',
        ),
        ("helper(2)", "helper(1)", "    assert x < 10\n"),
    ],
)
def test_a_claim_that_this_build_did_not_reach_is_not_reached_whatever_was_recorded(
    tmp_path: Path, was: str, now: str, claim: str
) -> None:
    book = Book(tmp_path, LOOP)
    book.record()
    assert book.build().findings == []
    book.edit(was, now)
    wrong = [it for it in map(str, book.build(recordings="may-be-older").findings) if "never ran" in it]
    assert len(wrong) == 1
    assert claim in wrong[0]
    assert unreached(book).errors


def test_nor_where_a_recording_of_the_same_text_reached_it(tmp_path: Path) -> None:
    book = Book(
        tmp_path, LOOP.replace("rows = [1, 2]", "rows = list(map(int, os.environ.get('ROWS', '').split()))")
    )
    book.edit('"""One."""', '"""One."""\n    import os')
    done = command(book.lecture, "--quiet", "--device", "cpu", "--record", env={"ROWS": "1 2"})
    assert done.returncode == 0
    assert [file.name for file in recordings_of(book.lecture)] == ["lecture_x.cpu.json"]
    (wrong,) = (it for it in map(str, book.build().findings) if "never ran" in it)
    assert "never ran: the claim x < 10" in wrong


def test_the_strict_build_itself_fails_and_says_how_to_record_anew(book: Book) -> None:
    import subprocess

    pytest.importorskip("material")
    (book.root / "docs").mkdir()
    (book.root / "docs" / "index.md").write_text("# A book\n")
    config = "site_name: A book\ntheme:\n  name: material\nplugins:\n  - search\n  - litbook{}\n"
    (book.root / "mkdocs.yml").write_text(config.format(""))
    book.edit("return x * x", "return x + x")

    def build() -> tuple[int, str]:
        done = subprocess.run(
            [*LITBOOK, "build"], cwd=book.root, capture_output=True, text=True, check=False, timeout=120
        )
        return done.returncode, done.stderr

    status, said = build()
    assert status == 1
    assert OLDER.strip() in said
    (book.root / "mkdocs.yml").write_text(config.format(":\n      recordings: may-be-older"))
    assert build()[0] == 0
