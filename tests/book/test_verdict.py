"""One verdict: what a strict build refuses, `run`, `check` and `serve` refuse, in the same words."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

import pytest
from tests.book.test_preview import banner, free_port
from tests.running import LITBOOK, uncoded

CONFIG = "site_name: A book\ntheme: {name: material}\nplugins: [search, litbook]\n"
# What is planted in a lecture, and the first line that each command says of it.
PLANTED = {
    'note("This is <b>bold</b>.")': "a note cannot hold HTML: '<b>'",
    'note("See [there](#no_such_section).")': "no page shows a section, helper, class or line 'no_such_section' to link to",
    'note("See [there](notes.md).")': "a note cannot link to 'notes.md'",
    'note("As in [@nobody2020].")': "[@nobody2020] is in no bibliography",
    'note("As [@fig:none] shows.")': "no figure, table or equation of this lecture is named 'fig:none'",
    'note(r"A sum, $\\frac{1}{$, is short.")': r"this is not LaTeX that can be shown: $\frac{1}{$",
    'note("[@eq:e]: $$x = y$$")\nnote("[@eq:e]: $$y = x$$")': "[@eq:e]: is the name of something else already",
    'misbelief("It is <i>so</i>.", "It is not.")': "a note cannot hold HTML: '<i>'",
    'question("How many?", answer=3, hint="See [there](#nothing).")': (
        "no page shows a section, helper, class or line 'nothing' to link to"
    ),
    'link("#a_missing_one")': "no page shows a section, helper, class or line 'a_missing_one' to link to",
    'x = 2\nassert x == 2, "as [@missing2021] says"': "[@missing2021] is in no bibliography",
    'note("It takes 17 minutes.")': "unbacked: the number '17' in prose",
    "hits: list[int] = []\nassert sum(hits) == 0": "says nothing",
    "assert 1 + 1 == 3": "claim fails: 1 + 1 == 3",
    "if recording() is None:\n    assert x == 9": "never ran: the claim x == 9",
}
COMMANDS = ("run", "check", "build", "serve")


def planted(folder: Path) -> list[tuple[int, str]]:
    """Writes a book in which all of it is wrong; what each command has to say, with the lines."""
    text = '"""A lecture."""\nfrom litbook import link, misbelief, note, question, recording\n\n\ndef main():\n    one()\n\n\ndef one():\n    """One."""\n'
    told = []
    for code, what in PLANTED.items():
        lines = [f"    {line}" for line in code.split("\n")]
        text += "\n".join(lines) + "\n"
        told.append((text.count("\n"), what))
    (folder / "lectures").mkdir()
    (folder / "docs").mkdir()
    (folder / "mkdocs.yml").write_text(CONFIG)
    (folder / "docs" / "index.md").write_text("# A book\n\n[A page](nowhere.md) that is not there.\n")
    (folder / "lectures" / "lecture_01.py").write_text(text)
    return told


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By command what it says of the book; of `serve` what the banner of the lecture's page says."""
    folder = tmp_path_factory.mktemp("book")
    planted(folder)
    said = {}
    for words in (["run", "lecture_01"], ["check", "lecture_01", "--ignore", "mutant"], ["build"]):
        done = subprocess.run([*LITBOOK, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        said[words[0]] = uncoded(done.stdout + done.stderr)
    port = free_port()
    preview = subprocess.Popen(
        [*LITBOOK, "serve", "--port", str(port)], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        said["serve"] = uncoded(banner(_page(port, "lectures/lecture_01/")))
        said["its front page"] = banner(_page(port, ""))
    finally:
        preview.send_signal(signal.SIGINT)
        said["its log"] = uncoded(preview.communicate(timeout=20)[1])
    return said


def _page(port: int, path: str) -> str:
    end = time.monotonic() + 40
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/{path}", timeout=30) as answer:
                text = unescape(answer.read().decode())
                if banner(text):
                    return text
        except (urllib.error.HTTPError, OSError):
            pass
        time.sleep(0.1)
    raise AssertionError("no banner came")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("code", PLANTED)
def test_what_a_build_refuses_every_command_says(told: dict[str, str], command: str, code: str) -> None:
    assert PLANTED[code] in told[command], told[command]


def test_each_command_says_each_problem_at_the_same_place_and_once(told: dict[str, str]) -> None:
    def problems(text: str) -> list[str]:
        lines = (line.partition("lectures/lecture_01.py:")[2] for line in text.splitlines())
        return sorted({line for line in lines if line})

    every = {command: problems(told[command]) for command in COMMANDS}
    assert every["run"] == every["check"] == every["build"] == every["serve"]
    assert len(every["run"]) >= len(PLANTED)
    for line in every["run"]:
        assert told["run"].count(line) == 1, line


def test_a_dead_link_of_a_page_of_ones_own_is_refused_by_the_build_and_stands_in_its_banner(
    told: dict[str, str],
) -> None:
    wrong = "Doc file 'index.md' contains a link 'nowhere.md', but the target is not found"
    assert wrong in told["build"] and wrong in told["its front page"] and wrong in told["its log"]
    assert wrong not in told["serve"]  # it is about another page


def test_a_run_of_one_section_says_nothing_of_the_others(tmp_path: Path) -> None:
    planted(tmp_path)
    file = tmp_path / "lectures" / "lecture_01.py"
    file.write_text(
        file.read_text().replace("    one()\n", "    one()\n    two()\n", 1)
        + '\n\ndef two():\n    """Two."""\n    y = 1  # @inspect y\n'
    )
    done = subprocess.run(
        [*LITBOOK, "run", "lecture_01", "two", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0 claims hold, 0 fail, 0 not run\n"), done
