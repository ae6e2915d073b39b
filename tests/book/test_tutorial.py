"""The tutorial is executed: its files are written, its commands run, and the output has to be the one printed there.

LITBOOK_BLESS=1 writes what the commands print now into the tutorial; read the diff.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests import running

from litbook.record import model

FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL
)


@pytest.fixture(scope="module")
def tutorial(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, str]]]:
    """The folder with the tutorial's files, and its console blocks as (command, output) pairs."""
    folder = tmp_path_factory.mktemp("tutorial")
    for module in ("hardware.py", "units.py"):  # a lecture of the book finds them beside itself
        shutil.copy(repo / "lectures" / module, folder)
    text = (repo / "docs" / "write-a-lecture.md").read_text(encoding="utf-8")
    commands: list[tuple[str, str]] = []
    for fence in FENCE.finditer(text):
        if fence["title"]:
            (folder / fence["title"]).write_text(fence["body"], encoding="utf-8")
        elif fence["language"] == "console":
            for command, output in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", fence["body"], re.MULTILINE):
                commands.append((command, output))
    return folder, commands


def test_every_command_of_the_tutorial_prints_what_the_tutorial_says(
    repo: Path, tutorial: tuple[Path, list[tuple[str, str]]]
) -> None:
    folder, commands = tutorial
    assert len([c for c, _ in commands if c.startswith("python")]) >= 5
    status = 0
    for command, expected in commands:
        if command == "echo $?":
            assert expected.strip() == str(status), f"exit status of the command before {command!r}"
            continue
        done = ran(repo, folder, command.split())
        status = done.returncode
        if os.environ.get("LITBOOK_BLESS") and shape(done.stdout) != shape(expected):
            page = repo / "docs" / "write-a-lecture.md"
            told, text = f"$ {command}\n", page.read_text(encoding="utf-8")
            page.write_text(text.replace(told + expected, told + shape(done.stdout) + "\n"), encoding="utf-8")
            continue
        assert shape(done.stdout) == shape(expected), command
        assert done.stderr == ""


def ran(repo: Path, folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """What a command of the tutorial says in `folder`; that of the lectures is asked in this process."""
    assert words[0] == "litbook" or words[:2] == ["python", "tools/run_lecture.py"]
    if words[0] == "python":
        return running.command(*words[2:], cwd=folder, coded=True)
    tool = [*running.LITBOOK, *words[1:]]
    return subprocess.run(tool, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_tutorials_lectures_pass_what_make_check_demands_of_a_lecture(
    repo: Path, tutorial: tuple[Path, list[tuple[str, str]]]
) -> None:
    """Types and lint, as `pyproject.toml` sets them."""
    folder, _ = tutorial
    files = sorted(file.name for file in folder.glob("lecture_*.py"))
    assert len(files) >= 8
    env = {**os.environ, "MYPYPATH": f"{repo / 'tools'}"}
    config = str(repo / "pyproject.toml")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", str(repo / ".mypy_cache"), *files],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (
        0,
        f"Success: no issues found in {len(files)} source files\n",
    )
    for file in files:  # as if it stood among the lectures, where other rules hold than for tests
        done = subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", f"lectures/{file}"],
            cwd=repo, input=(folder / file).read_text(encoding="utf-8"),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def shape(output: str) -> str:
    """The output with what depends on the machine taken out: versions, device, and what took long."""
    output = re.sub(r"^longest: .+\n+", "", output, flags=re.MULTILINE)
    return re.sub(r"^Python .+ · cpu: .+$", "Python … · torch … · cpu: …", output.strip(), flags=re.MULTILINE)


def test_the_tutorial_names_every_word_and_directive(repo: Path) -> None:
    import litbook
    from litbook.lecture.directives import DIRECTIVES

    text = (repo / "docs" / "write-a-lecture.md").read_text(encoding="utf-8")
    table = text[text.index("## All the words") :]
    for word in litbook.__all__:
        assert f"`{word}(" in table or f"`@{word}" in table, word
    for directive in DIRECTIVES:
        assert f"@{directive}" in table, directive


def test_the_record_page_names_every_field(repo: Path) -> None:
    text = (repo / "docs" / "record.md").read_text(encoding="utf-8")
    kinds = [t for t in vars(model).values() if isinstance(t, type) and issubclass(t, msgspec.Struct)]
    missing = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name in kind.__struct_fields__
        if f"`{name}`" not in text
    ]
    assert missing == []
