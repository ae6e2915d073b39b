"""The terminal view: the golden text of two samples, quiet runs, colours, and hostile texts."""

from __future__ import annotations

import functools
import io
import re
import subprocess
from pathlib import Path

import pytest
from tests.running import SAMPLES, command, golden, section, write

from litbook.rules.outcome import harmless
from litbook.run.run import run
from litbook.terminal.transcript import Screen, Terminal

ESCAPE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\"
)  # colours, cursor, links: what rich itself writes


def printed(path: Path, *, colour: bool = False, quiet: bool = False, width: int = 100) -> str:
    """What the terminal shows of a run."""
    file = io.StringIO()
    screen = Screen(
        file=file, force_terminal=colour, width=width, color_system="truecolor" if colour else None
    )
    terminal = Terminal(screen, quiet=quiet)
    run(path, device="cpu", listener=terminal)
    terminal.end()
    return file.getvalue()


@functools.cache
def sample(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What the command line says of a sample on the CPU."""
    return command(SAMPLES / f"{name}.py", "--device", "cpu", *words)


def without_environment(text: str) -> str:
    text = re.sub(r"^Python .* · cpu: .*$", "Python · torch · cpu: NAME", text, flags=re.MULTILINE)
    return re.sub(r"\(measured on .*\)", "(measured on NAME)", text)


# ------------------------------------------------------------------------ golden


@pytest.mark.parametrize(("name", "status"), [("tour", 0), ("failing", 1)])
def test_a_sample_prints_its_golden_text(name: str, status: int) -> None:
    done = sample(name)
    assert (done.returncode, done.stderr) == (status, "")
    golden(SAMPLES / f"{name}.txt", done.stdout, without_environment)


@pytest.mark.parametrize("name", ["tour", "failing"])
def test_no_two_empty_lines_follow_each_other_and_no_line_ends_in_space(name: str) -> None:
    text = sample(name).stdout
    assert "\n\n\n" not in text
    assert not re.search(r"[ \t]\n", text)


def test_words_on_one_line_print_their_prose_and_no_code(tmp_path: Path) -> None:
    body = 'note("Read this:"), link("https://example.org", "there")\nnote("a"), print("b")'
    text = printed(write(tmp_path, "from litbook import link, note\n" + section(body)))
    assert "Read this:\n\n[there] https://example.org\n" in text
    assert 'note("Read' not in text
    assert 'note("a"), print("b")' in text, "what is no prose is code"


def test_quiet_prints_the_count_alone_where_all_is_well(tmp_path: Path) -> None:
    text = section('note("Words.")\nx = 1  # @inspect x\nassert x == 1\nassert x < 2, "small"')
    done = command(write(tmp_path, text), "--quiet")
    assert done.stdout == "2 claims hold, 0 fail, 0 not run\n"


def test_quiet_prints_what_went_wrong_as_the_whole_run_does() -> None:
    whole, quiet = sample("failing").stdout, sample("failing", "--quiet").stdout
    assert quiet.startswith("tests/samples/failing.py:15: ValueError: too deep\n        second line\n")
    assert whole.endswith(quiet)


def test_a_section_alone_prints_that_section(tmp_path: Path) -> None:
    parts = ["main():\n    a()\n    part()", 'a():\n    """A."""\n    assert len("a") == 1',
             'part():\n    """Part."""\n    nested()',
             'nested():\n    """A part has sections of its own."""\n    assert len("ab") == 2']  # fmt: skip
    text = command(write(tmp_path, "".join(f"def {part}\n\n\n" for part in parts)), "nested").stdout
    assert re.findall(r"^#+ .*", text, re.MULTILINE) == ["### A part has sections of its own"]
    assert text.endswith("1 claim holds, 0 fail, 0 not run\n")


# ------------------------------------------------------------------------ a terminal


def test_a_terminal_shows_the_same_facts_in_colour() -> None:
    plain, colour = printed(SAMPLES / "tour.py"), printed(SAMPLES / "tour.py", colour=True)
    bare = ESCAPE.sub("", colour)
    assert "\x1b[" in colour and "\x1b[" not in plain
    for fact in ("→ size = 24 B", "✓ 24 bytes", "24 == 24 == 24", "│ three", "→ total = 0", "Run: It shares"):
        assert fact in plain and fact in bare
    assert "**memory**" in plain and "**memory**" not in bare  # Markdown is drawn where it can be


@pytest.mark.parametrize("width", [1, 8, 20, 40, 300])
@pytest.mark.parametrize("colour", [False, True])
def test_any_width_will_do(width: int, colour: bool) -> None:
    text = ESCAPE.sub("", printed(SAMPLES / "tour.py", colour=colour, width=width))
    if not colour:
        assert "✓ 24 bytes   24 == 24 == 24" in text  # a pipe has no width
    elif width >= 20:
        assert max(len(line) for line in text.replace("\r", "\n").splitlines()) <= width


HOSTILE = r"""
x = "\x1b[31m[red]x[/red]"  # @inspect x, "[bold]"
d = {"[link=http://evil]": "\x9b2J"}  # @inspect d
note("prose \x1b[2J [red]kept[/red] :smile: \x1b]0;title\x07")
misbelief("said \x1b[1m[b]", "run \x1b[1m[/b]")
link("https://example.org/[red]", "text \x1b[1m")
print("printed \x1b[5m [blink]\r\b")
assert x == 1, "caption \x1b[7m [reverse]"
raise ValueError("message \x1b[8m [/nope]")
"""


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("quiet", [False, True])
def test_nothing_of_a_lecture_steers_the_terminal(tmp_path: Path, colour: bool, quiet: bool) -> None:
    text = (
        section(HOSTILE)
        .replace('"""A lecture."""', '"""Title [red] \x1b[31m."""')
        .replace('"""One."""', '"""Heading [/red] \x1b[31m."""')
    )
    shown = printed(write(tmp_path, text), colour=colour, quiet=quiet)
    left = ESCAPE.sub("", shown) if colour else shown
    assert not re.findall(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]", left)
    for code in ("[31m", "[2J", "]0;", "[5m", "[7m", "[8m"):
        assert f"\x1b{code}" not in shown or (colour and code in ("[5m", "[7m"))
    if not quiet:
        for kept in (
            "[red]x[/red]",
            "[red]kept[/red]",
            "[blink]",
            "[reverse]",
            "[/nope]",
            "Heading [/red]",
            "Title [red]",
        ):
            assert kept in left


def test_what_steers_a_terminal_is_spelled_out() -> None:
    assert (
        harmless("a\x1b[31mb\x9b\u202ec\u200d\n\td\x7f")
        == "a⟨U+001B⟩[31mb⟨U+009B⟩⟨U+202E⟩c\u200d\n\td⟨U+007F⟩"
    )
    assert harmless("Größe → μ 🙂 العربية") == "Größe → μ 🙂 العربية"


# ------------------------------------------------------------------------ details


def test_output_is_printed_by_the_line_it_was_printed_in(tmp_path: Path) -> None:
    text = printed(write(tmp_path, section('print("a", "b")\nprint("c", end="")\nx = 1\nprint("d\\ne")')))
    assert [line.strip() for line in text.splitlines() if "│" in line] == ["│ a b", "│ c", "│ d", "│ e"]


def test_the_heading_of_an_aside_says_so(tmp_path: Path) -> None:
    text = (
        section("x = 1")
        .replace("def one", "@aside\ndef one")
        .replace("import figure", "import aside, figure")
    )
    path = write(tmp_path, text)
    assert "\n## aside: One\n" in printed(path)
    assert "aside: One ─" in ESCAPE.sub("", printed(path, colour=True))
    assert "one  aside: One\n" in command(path, "--list").stdout


def test_code_stands_without_the_indentation_of_its_function(tmp_path: Path) -> None:
    lines = printed(
        write(tmp_path, section("if True:\n    x = (\n        1,\n    )  # @inspect x\nelse:\n    y = 2"))
    ).splitlines()
    assert lines[-5:] == [
        "    11  if True:", "    12      x = (", "    13          1,", "    14      )", "        → x = (1,)",
    ]  # fmt: skip


def test_the_line_that_opens_a_block_is_printed_with_it_and_no_other_line_is(tmp_path: Path) -> None:
    body = "if False:\n    x = 1\nelif 2 > 1:  # two\n    # why\n    x = 2\nelse:\n    x = 3\n"
    body += "try:\n    x[0]\nexcept (\n    TypeError,\n):\n    x = 4\nelse: x = 5\nfinally:\n\n    x = 6\n"
    body += "match x:\n    case 6 if x:\n        y = 1"
    lines = printed(write(tmp_path, section(body)), quiet=False).splitlines()
    code = [line[8:] for line in lines if line[:8].strip().isdecimal() and not line.startswith("#")]
    assert code == [
        "if False:", "elif 2 > 1:  # two", "    x = 2", "try:", "    x[0]", "except (", "    TypeError,", "):",
        "    x = 4", "finally:", "    x = 6", "match x:", "    case 6 if x:", "        y = 1",
    ]  # fmt: skip


def test_a_long_loop_prints_a_few_values_and_says_that_there_are_more(tmp_path: Path) -> None:
    body = "for i in range(100):\n    for j in range(100):\n        k = j  # @inspect k"
    text = printed(write(tmp_path, section(body)))
    assert [line.strip() for line in text.splitlines() if "→ k" in line] == [
        "→ k = 0", "→ k = 1   (iteration 2)", "→ k = 2   (iteration 3)", "→ k …",
    ]  # fmt: skip


def test_a_screen_that_cannot_print_does_not_disturb_the_lecture(tmp_path: Path) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    terminal = Terminal(Screen(file=Full()))
    made = run(write(tmp_path, section("print('x')\nassert 1 == 1")), listener=terminal)
    assert made.count() == {"holds": 1}
    assert not list(made.errors())
