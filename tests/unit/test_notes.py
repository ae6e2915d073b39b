"""`tools/notes.py`: one layout of the texts in lectures, and where an error in such a text stands."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from tests.running import REPO

from litbook.lecture import parse
from litbook.rules import unbacked_number

WORDS = "one " * 40


def load() -> ModuleType:
    """`tools/notes.py`, which is a command and no part of the package."""
    spec = importlib.util.spec_from_file_location("notes", REPO / "tools" / "notes.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["notes"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


notes = load()


def written(text: str) -> str:
    """The text of a file once it has been mended."""
    for finding in sorted(notes.findings(text), key=lambda finding: -finding.start):
        text = text[: finding.start] + finding.text + text[finding.end :]
    assert list(notes.findings(text)) == []
    return text


BLOCK = f'''\
def section():
    note(r"""
        {WORDS * 2}
    """)
    question(rf"""
        What is ${{{{a}}}}$ of {{x}}? {WORDS}
    """, answer=1, why=r"""
        {WORDS}

        - {WORDS}
        - [two words](#of_a_link)

        | a | {WORDS} |
        |---|---|

            x = 1

        $$a
        b$$
    """)
'''


def test_the_lectures_have_it() -> None:
    done = subprocess.run(
        [sys.executable, "tools/notes.py"], cwd=REPO, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_paragraphs_and_items_are_wrapped_and_nothing_else_is() -> None:
    lines = written(BLOCK).split("\n")
    assert max(map(len, lines[:9])) == 99
    assert lines[2] == "        " + " ".join(["one"] * 23)
    assert "        - " + " ".join(["one"] * 22) in lines
    assert "          " + " ".join(["one"] * 18) in lines  # the second line of the item
    for kept in ("- [two words](#of_a_link)", f"| a | {WORDS} |", "    x = 1", "$$a", "b$$"):
        assert f"        {kept}" in lines


def test_the_command_mends_files_and_says_what_is_left(tmp_path: Path) -> None:
    file = tmp_path / "lecture.py"
    file.write_text(BLOCK + 'note("a "\n     "b")\n', encoding="utf-8")
    command = [sys.executable, str(REPO / "tools" / "notes.py"), "--write", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    mended = written(BLOCK)
    line = mended.count("\n") + 1
    assert (done.returncode, done.stdout) == (1, f"{file}:{line}: a text {SEVERAL}\n")
    assert file.read_text(encoding="utf-8").startswith(mended)


@pytest.mark.parametrize(
    "whole", ["`a b c d e f g`", "$a b c d e f g$", "[a b c d e](#f)", "[@a-b; @c-d-ef]", "{a + b + c + d}"]
)
def test_no_line_end_parts_what_belongs_together(whole: str) -> None:
    for length in range(76, 92):
        text = f'note(rf"""\n    {"x" * length} {whole} {"y" * 90}\n""")\n'
        assert whole in written(text)


@pytest.mark.parametrize("begins", ["-", "+", "*", "1.", "2)", "#", ">", "|", "---", "[@key]:"])
def test_no_line_begins_with_what_markdown_reads_as_something_else(begins: str) -> None:
    for length in range(80, 98):
        text = f'note(r"""\n    {"x" * length} {begins} {"y" * 90}\n""")\n'
        assert not any(line.strip().startswith(begins) for line in written(text).split("\n"))


SEVERAL = 'goes over several lines: write one block, r"""…""" (rf"""…""" with holes)'
DOUBLED = 'has doubled backslashes: write r"…", or rf"…" where it has holes'
LINE = "    " + " ".join(["one"] * 24)


@pytest.mark.parametrize(
    "text, line, message",
    [
        ('note("a "\n     "b")\n', 1, SEVERAL),
        ('note(r"""a\nb""")\n', 1, SEVERAL),
        ('note("""\n    a\n    b\n""")\n', 1, SEVERAL),
        ('question("a", answer=1,\n    why="b "\n        "c")\n', 2, SEVERAL),
        ('note("$\\\\alpha$")\n', 1, DOUBLED),
        ('print("a "\n    "b")\nnote("$\\\\")\n', 3, DOUBLED),
        ('note(r"""\n    short\n""")\n', 1, 'fits on its line: write "short"'),
        (f'note(r"""\n    {WORDS}\n""")\n', 2, f"is not wrapped at 100 columns: this line is to be\n{LINE}"),
        (
            f'note(r"""\n        {"one " * 22}\n        {"one " * 9}\n""")\n',
            2,
            f"is not wrapped at 100 columns: this line is to be\n{LINE}",
        ),
    ],
)
def test_what_differs_is_listed_with_its_line_and_what_to_write(text: str, line: int, message: str) -> None:
    assert [(finding.line, finding.message) for finding in notes.findings(text)] == [(line, message)]


# ---------------------------------------------------------------------------- places within a block


def test_an_unbacked_number_in_a_block_is_found_at_its_line_and_column() -> None:
    text = '''\
        """Lecture."""
        from litbook import note, question
        def main():
            section()
        def section():
            """A section."""
            n = len("ab")
            note(rf"""
                At first {n:>{n}} and ${{\\alpha}}$, in `{n}` words
                – of é – 17 bytes.

                And 18.
            """)
            question(r"""
                What is \\beta?
            """, answer=n, why=r"""
                It is 19
            """)
    '''
    found = unbacked_number.find_unbacked(parse.parse(dedent(text)))
    places = [(it.place.line, it.place.column, it.what.split("'")[1]) for it in found if it.place]
    assert places == [(10, 18, "17"), (12, 13, "18"), (17, 15, "19")]
