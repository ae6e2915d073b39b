"""The command line in this process: arguments, finding lectures, lists. What it does when things go wrong
is in `test_failures.py`."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.running import HEAD, REPO, SAMPLES, section, write

from litbook import cli
from litbook.project import Project
from litbook.record import encoding


@pytest.fixture
def lectures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of lectures that stands for the book's own."""
    folder = tmp_path / "lectures"
    folder.mkdir()
    write(folder, section("pass").replace("A lecture.", "Tensors."), "lecture_01.py")
    write(folder, section("pass").replace("A lecture.", "Resources."), "lecture_02b.py")
    write(folder, "FLOPS = 1\n", "hardware.py")
    (tmp_path / "mkdocs.yml").touch()
    monkeypatch.setattr("litbook.cli.main.CHECKOUT", tmp_path)
    return folder


def test_without_a_lecture_the_lectures_are_listed(
    lectures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run_lecture([]) == 0
    assert capsys.readouterr().out == "lecture_01   Tensors\nlecture_02b  Resources\n"
    assert cli.run_lecture(["--list"]) == 0
    assert capsys.readouterr().out.startswith("lecture_01 ")


def test_an_empty_book_says_so(lectures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in lectures.glob("lecture_*.py"):
        file.unlink()
    assert cli.run_lecture([]) == 0
    assert capsys.readouterr().out == "there are no lectures yet\n"


def test_one_broken_lecture_does_not_hide_the_others(
    lectures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(lectures, "def main(:\n", "lecture_00.py")
    status = cli.run_lecture([])
    out, err = capsys.readouterr()
    assert status == 2
    assert "lecture_01   Tensors\n" in out
    assert "lecture_00.py:1:10: syntax error" in err


def test_the_sections_of_a_lecture_are_listed_in_reading_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_lecture([str(SAMPLES / "tour.py"), "--list"]) == 0
    assert capsys.readouterr().out == (
        "Sample: a tour of the lecture language\n"
        "  bytes_are_count_times_width  A tensor costs its element count times its element width\n"
        "  loops_and_views              Loops are folded\n"
        "    nested                     A part has sections of its own\n"
        "  on_a_gpu                     Only where there is a GPU  [cuda]\n"
    )


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon", "", "1e9"])
def test_a_time_out_is_a_number_of_seconds(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_lecture([str(SAMPLES / "tour.py"), f"--timeout={value}"]) == 2
    said = f"Invalid value for '--timeout': {value!r} is no number of seconds above 0"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("value", ["0", "-1", "65536", "70000", "http", "", "9" * 5000])
def test_a_port_is_a_number_that_there_is(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.litbook(["serve", f"--port={value}"]) == 2
    assert "Invalid value for '--port': " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devise", "cpu"], "No such option '--devise'. Did you mean '--device'?"),
        (["--device", "tpu"], "Invalid value for '--device': 'tpu' is not one of 'auto', 'cpu', 'cuda'."),
        (["--out"], "Option '--out' requires an argument."),
    ],
)
def test_a_command_line_that_cannot_be_used_ends_with_two(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run_lecture([str(SAMPLES / "tour.py"), *words]) == 2
    assert capsys.readouterr().err.endswith(f"Error: {said}\n")


def test_help_names_every_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_lecture(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "exit status: 0 every claim holds; 1 a claim failed, a value differs from its recording, the lecture "
        "raised, or a strict build would refuse something else; 2 the lecture, its recording or the command line cannot be used"
        in text
    )
    assert "130 interrupted" in text


def test_the_exit_status_is_that_of_the_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_lecture([str(write(tmp_path, section("x = 2\nassert x + 1 == 3"), "good.py"))]) == 0
    assert cli.run_lecture([str(write(tmp_path, section("assert 1 == 2"), "bad.py"))]) == 1
    assert cli.run_lecture([str(write(tmp_path, section("1 / 0"), "raises.py"))]) == 1
    assert cli.run_lecture([str(write(tmp_path, "x = 1\n", "unusable.py"))]) == 2
    capsys.readouterr()


def test_sections_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{HEAD}\ndef main():\n    one()\n    two()\ndef one():\n    assert 1 == 2\ndef two():\n    x = 1\n    assert x + 1 == 2\n"
    path = str(write(tmp_path, text))
    assert cli.run_lecture([path, "two"]) == 0
    assert cli.run_lecture([path, "--device", "cpu", "two"]) == 0
    assert cli.run_lecture([path, "--quiet", "two", "--device", "cpu", "one"]) == 1
    assert capsys.readouterr().out.endswith("1 claim holds, 1 fails, 0 not run\n")


def test_out_replaces_a_record_whole_also_through_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, name = tmp_path / "record.json", tmp_path / "link.json"
    out.write_text("old")
    name.symlink_to(out)
    assert (
        cli.run_lecture([str(write(tmp_path, section("assert 1 < 2"))), "--out", str(name), "--quiet"]) == 0
    )
    assert encoding.read(out).lecture == "lecture_sample"
    assert name.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lecture_sample.py", "link.json", "record.json"]


def test_a_record_that_cannot_be_written_leaves_the_old_one_and_no_half_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "record.json"
    out.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert cli.run_lecture([str(write(tmp_path, section("assert 1 < 2"))), "--out", str(out)]) == 2
    assert f"--out {out}: No space left on device; nothing was written" in capsys.readouterr().err
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lecture_sample.py", "record.json"]


# ------------------------------------------------------------------------ litbook COMMAND


@pytest.fixture
def book(lectures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The book that the commands are asked in."""
    monkeypatch.chdir(lectures)
    return lectures


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.litbook(["--help"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^  (\w+) ", said.partition("Commands:\n")[2], re.MULTILINE) == [
        "new",
        "run",
        "record",
        "compare",
        "list",
        "check",
        "rule",
        "build",
        "pages",
        "pdf",
        "serve",
        "badge",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["ruin"],
            "no command named 'ruin'; did you mean 'run'?\n    there are: new, run, record, compare, ",
        ),
    ],
)
def test_a_wrong_command_names_those_there_are(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.litbook(words) == 2
    assert f"Usage: litbook [OPTIONS] COMMAND [ARGS]...\nTry 'litbook --help' for help.\n\nError: {said}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("command", ["record", "check"])
def test_a_book_without_lectures_is_not_all_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "mkdocs.yml").touch()
    monkeypatch.chdir(tmp_path)
    assert cli.litbook([command]) == 2
    assert capsys.readouterr().err.startswith("litbook: there are no lectures in lectures\n")


def test_the_book_of_a_command_is_the_one_around_it(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.litbook(["list"]) == 0
    assert capsys.readouterr().out == "lecture_01   Tensors\nlecture_02b  Resources\n"
    assert cli.litbook(["list", "lecture_01"]) == 0
    assert capsys.readouterr().out == "Tensors\n  one  One\n"
    assert cli.litbook(["run", "lecture_01", "two"]) == 2
    assert capsys.readouterr().err == "litbook: no section named 'two'\n    there are: one\n"


def test_a_function_that_is_no_section_is_named_as_one_that_main_should_call(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(book, section("pass") + "\ndef two() -> None:\n    pass\n", "lecture_01.py")
    assert cli.litbook(["run", "lecture_01", "two"]) == 2
    assert capsys.readouterr().err == (
        "litbook: no section named 'two'\n"
        "    two() is no section: neither main() nor a part calls it as `two()`\n"
        "    there are: one\n"
    )


@pytest.mark.parametrize("command", [["build"], ["serve"], ["pages", "there"], ["pdf", "there.pdf"]])
def test_a_site_without_the_plugin_is_not_built_as_if_all_were_right(
    book: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    config = book.parent / "mkdocs.yml"
    config.write_text("site_name: x\nplugins: [search]\n")
    assert cli.litbook(command) == 2
    assert capsys.readouterr().err == (
        "litbook: mkdocs.yml names no plugin litbook: no lecture runs\n"
        "    add it: plugins: [search, litbook]\n"
    )


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        ("plugins: [search, litbook]", True),
        ("plugins: {search: {}, litbook: {unbacked: warn}}", True),
        ("plugins: [{litbook: {}}, search:]", True),
        ("INHERIT: base.yml", True),  # which may name it
        ("site_name: x", False),
        ("plugins:", False),
        ("plugins: [litbook-like]", False),
    ],
)
def test_the_plugin_is_named_as_mkdocs_lets_it_be_named(tmp_path: Path, text: str, draws: bool) -> None:
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"{text}\n")
    assert Project.is_drawn(config) is draws


def test_record_keeps_every_lecture_and_a_second_time_nothing_new(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.litbook(["record", "--device", "cpu"]) == 0
    assert sorted(it.name for it in (book / "recordings").iterdir()) == [
        "lecture_01.cpu.json",
        "lecture_02b.cpu.json",
    ]
    assert cli.litbook(["record", "lecture_01", "--device", "cpu"]) == 0
    assert "lecture_01.cpu.json stays as it is" in capsys.readouterr().out
    files = [str(book / "recordings" / f"{name}.cpu.json") for name in ("lecture_01", "lecture_02b")]
    assert cli.litbook(["compare", files[0], files[0]]) == 0
    assert capsys.readouterr().out.endswith("\nno difference; 0 values and 0 claims were compared\n")


def test_what_looks_like_a_lecture_is_named_by_list_and_fails_check(
    book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(book, section("assert 1 == 2"), "lecture-b.py")
    assert cli.litbook(["list"]) == 0
    out, err = capfd.readouterr()
    assert "lecture_01" in out
    said = "lectures/lecture-b.py looks like a lecture and is none: nothing in it runs"
    way_out = "    a lecture is called lecture_*.py, or so is its folder: rename it lecture_b.py\n"
    assert err.startswith(f"litbook: {said}\n{way_out}")
    assert cli.litbook(["check", "--select", "unbacked,overlooked"]) == 1
    out = capfd.readouterr().out
    assert out.startswith(f"{said} [overlooked]\n{way_out}") and "lecture_01: nothing; this run: " in out


def test_a_check_of_a_whole_lecture_takes_no_sections_in_silence(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.litbook(["check", "lecture_01", "nosuch", "--select", "unbacked"]) == 2
    assert capsys.readouterr().err == (
        "litbook: unbacked is asked of a whole lecture, not of nosuch alone\n"
        "    leave the sections out; --select mutant and --select unnoticed take some\n"
    )


def test_check_of_the_text_runs_nothing(book: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = book / "ran"
    write(book, section(f"open({str(ran)!r}, 'w').close()\nassert 1 == 2"), "lecture_01.py")
    assert cli.litbook(["check", "--text"]) == 0
    assert "lecture_01: nothing\n" in capfd.readouterr().out and not ran.exists()
    write(book, section("x = 1  # @inspct x"), "lecture_01.py")
    assert cli.litbook(["check", "lecture_01", "--text"]) == 2
    assert "did you mean @inspect?" in capfd.readouterr().out
    assert cli.litbook(["check", "--text", "--select", "unbacked"]) == 2
    assert capfd.readouterr().err == (
        "litbook: --text chooses the rules itself\n    leave out --select, or --text\n"
    )


def test_check_looks_for_all_that_no_claim_guards(book: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = section('note("Of 16 bytes.")\nx = 3\nassert x < 100\nreturn\nassert x').replace(
        "One.", "One thing."
    )
    write(book, text, "lecture_01.py")
    assert cli.litbook(["check", "lecture_01"]) == 1
    said = capfd.readouterr().out
    for line in (
        "unbacked: the number '16' in prose [unbacked]\n",
        "never ran: the claim x [never-ran]\n",
        "survives: number 100 -> 90 and 100 -> 110 [mutant]\n",
        "1 claim, 3 mutants in 2 trials: 1 passed, 0 excused, 1 survives; 1 claim was not reached\n",
        "lecture_01: 3 findings: 1 never-ran, 1 unbacked, 1 mutant; this run: 1 claim holds, 0 fail, 0 not run",
    ):
        assert line in said
    assert cli.litbook(["check", "--select", "unbacked"]) == 1  # of every lecture
    said = capfd.readouterr().out
    assert "lecture_01: 1 finding: 1 unbacked; this run: " in said
    assert "\nlecture_02b: nothing; this run: " in said


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.litbook([]) == 2
    out, err = capsys.readouterr()
    assert (out, err.partition("\n")[0]) == ("", "Usage: litbook [OPTIONS] COMMAND [ARGS]...")
    assert "\n  new      Begin a book" in err


def test_the_version_says_where_litbook_is_and_which_python_runs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    version = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["version"]
    assert cli.litbook(["--version"]) == 0
    python = sys.version.partition(" ")[0]
    assert capsys.readouterr().out == f"litbook {version} ({REPO / 'tools'}, Python {python})\n"


# ------------------------------------------------------------------------------- for programs


def test_what_is_listed_as_json_is_all_that_a_list_says(
    book: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.litbook(["list", "--json"]) == 0
    lectures = json.loads(capsys.readouterr().out)
    assert [(it["lecture"], it["title"]) for it in lectures] == [
        ("lecture_01", "Tensors"), ("lecture_02b", "Resources"),
    ]  # fmt: skip
    assert cli.litbook(["list", "lecture_01", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["sections"]
    assert (one["name"], one["heading"], one["file"], one["line"]) == (
        "one", "One", "lectures/lecture_01.py", 9,
    )  # fmt: skip
    assert (one["kind"], one["aside"], one["requires"], one["parent"]) == ("section", False, None, None)


def test_a_run_as_json_has_each_claim_and_what_is_wrong(
    book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(
        book, section('x = 3  # @inspect x\nassert x == 3, "three"\nassert x == 4, "four"'), "lecture_01.py"
    )
    assert cli.litbook(["run", "lecture_01", "--json", "--device", "cpu"]) == 1
    answer = json.loads(capfd.readouterr().out)
    assert answer["counts"] == {"holds": 1, "fails": 1, "needs-device": 0, "not-reached": 0}
    assert [(it["line"], it["caption"], it["verdict"]) for it in answer["claims"]] == [
        (12, "three", "holds"), (13, "four", "fails"),
    ]  # fmt: skip
    (finding,) = answer["findings"]
    assert (finding["code"], finding["path"], finding["line"], finding["severity"]) == (
        "claim-fails", "lectures/lecture_01.py", 13, "error",
    )  # fmt: skip
    assert finding["details"] == ["assert x == 4", "3 == 4", "  x is 3"] and answer["schema"] == 2
    assert (answer["exit_status"], answer["differences"], answer["recorded"]) == (1, [], False)


def test_a_check_as_json_is_one_list_for_all_lectures(book: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(book, section('note("Of 16 bytes.")'), "lecture_01.py")
    assert cli.litbook(["check", "--json", "--select", "unbacked"]) == 1
    first, second = json.loads(capfd.readouterr().out)
    assert (first["lecture"], first["exit_status"]) == ("lecture_01", 1)
    assert "the number '16' in prose" in first["findings"][0]["what"]
    assert (second["lecture"], second["exit_status"], second["findings"]) == ("lecture_02b", 0, [])


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--json", "nosuch"],
        ["list", "--json", "--nonsense"],
        ["run", "--json", "nosuch"],
        ["run", "--json"],
        ["run", "--json", "lecture_01", "nosuch"],
        ["run", "--json", "lecture_01", "--out", "nowhere/out.json"],
        ["check", "--json", "nosuch", "--select", "unbacked"],
        ["compare", "--json", "nosuch.json", "nosuch.json"],
    ],
)
def test_an_error_is_one_json_value_for_programs(
    book: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.litbook(words) == 2
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer.keys() == {"error", "findings", "exit_status"} and answer["exit_status"] == 2
    assert answer["error"].partition("\n")[0] in err


def test_a_run_whose_recording_cannot_be_read_is_one_json_value_with_the_error(
    book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(book, section("x = 1\nassert x == 1"), "lecture_01.py")
    (book / "recordings").mkdir()
    (book / "recordings" / "lecture_01.cpu.json").write_text("{")
    assert cli.litbook(["run", "lecture_01", "--json", "--device", "cpu"]) == 2
    answer = json.loads(capfd.readouterr().out)
    assert (answer["exit_status"], answer["counts"]["holds"]) == (2, 1)
    assert "is not a whole record" in answer["error"]


def test_of_all_lectures_one_that_cannot_be_checked_is_a_row(
    book: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(book, "def main(:\n", "lecture_01.py")
    assert cli.litbook(["check", "--json", "--select", "unbacked"]) == 2
    first, second = json.loads(capfd.readouterr().out)
    assert (first["lecture"], first["exit_status"]) == ("lecture_01", 2)
    assert [row["code"] for row in first["findings"]] == ["syntax"]
    assert (second["lecture"], second["exit_status"]) == ("lecture_02b", 0)


def test_a_comparison_as_json_lists_what_differs(book: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(book, section("pid = os.getpid()  # @inspect pid", "import os"), "lecture_01.py")
    for file in ("old.json", "new.json"):  # each run is a process
        assert cli.litbook(["run", "lecture_01", "--quiet", "--device", "cpu", "--out", file]) == 0
    capfd.readouterr()
    assert cli.litbook(["compare", "--json", "old.json", "new.json"]) == 1
    answer = json.loads(capfd.readouterr().out)
    assert (answer["exit_status"], answer["values"]) == (1, 1)
    (row,) = answer["differences"]
    assert row["what"] == "one: pid is not what was recorded" and row["details"][0].startswith("was ")


# ------------------------------------------------------------------------------- for shells


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("r", ["run", "record", "rule"]),
        ("rule unb", ["unbacked", "unbacked-label", "unbounded"]),
        ("--v", ["--version"]),
        ("run ", ["lecture_01", "lecture_02b"]),
        ("run lecture_02b ", ["one"]),
        ("run --out file lecture_01 --de", ["--device"]),
        ("run --device ", ["auto", "cpu", "cuda"]),
        ("record lecture_01 --ap", ["--approve"]),
        ("check lecture_01 --s", ["--select", "--sample", "--seed"]),
        ("serve --port ", []),
        ("run 'lec", ["lecture_01", "lecture_02b"]),
        ("run nowhere ", []),
        ("run ../lec", ["../lec"]),  # the shell completes files itself
    ],
)
def test_a_shell_is_told_what_the_last_word_may_become(
    book: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    offered: list[str],
) -> None:
    monkeypatch.setenv("_LITBOOK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"litbook {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    assert cli.litbook([]) == 0
    assert [text.partition(",")[2] for text in capsys.readouterr().out.split()] == offered
