"""What a reader gets from `pip install`: the wheel of this tree, in an environment that has nothing else.

Nothing is downloaded: the wheel is built with the setuptools that is here, and goes in without its dependencies.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import click
import msgspec
import pytest

pytestmark = pytest.mark.slow

OF_THE_PACKAGE = ["pyproject.toml", "tools/README.md", "LICENSE"]
ASK = "import json, litbook, sys; print(json.dumps([litbook.__file__, sorted(sys.modules)]))"


def run(*words: object, cwd: Path) -> str:
    """What a command says that ends well; it sees no variable of ours, PYTHONPATH above all."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: setuptools leaves folders beside what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "tools").mkdir()
    for name in OF_THE_PACKAGE:
        shutil.copy(repo / name, folder / name)
    shutil.copytree(
        repo / "tools" / "litbook",
        folder / "tools" / "litbook",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "made", ".", cwd=folder)
    (made,) = (folder / "made").iterdir()
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The `bin` of an environment that holds the wheel, click and msgspec for command line and record, and no other package."""
    room = wheel.parent.parent
    run(sys.executable, "-m", "venv", "--without-pip", "room", cwd=room)
    python = room / "room" / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python,
        "install", "--no-deps", "--no-index", wheel, cwd=room,
    )  # fmt: skip
    (libraries,) = (room / "room" / "lib").glob("python3.*/site-packages")
    for library in (click, msgspec):
        shutil.copytree(Path(str(library.__file__)).parent, libraries / library.__name__)
    return python.parent


def test_the_wheel_holds_each_file_of_the_package_and_no_test(repo: Path, wheel: Path) -> None:
    package = repo / "tools" / "litbook"
    ours = {file.relative_to(package.parent).as_posix() for file in package.rglob("*") if file.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == ours
    assert "litbook/py.typed" in held
    assert {"litbook/html/assets/player.js", "litbook/html/assets/litbook.css"} <= held


def test_the_metadata_says_what_the_tree_says(repo: Path, wheel: Path) -> None:
    project = tomllib.loads((repo / "pyproject.toml").read_text())["project"]
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    said = archive.read(name).decode()
    assert f"\nVersion: {project['version']}\n" in said
    assert "\nLicense-Expression: MIT\n" in said
    assert "\nDescription-Content-Type: text/markdown\n" in said
    assert (repo / "tools" / "README.md").read_text() in said


def test_it_imports_where_nothing_but_click_and_msgspec_is_installed(installed: Path) -> None:
    file, modules = json.loads(run(installed / "python", "-c", ASK, cwd=installed))
    assert Path(file).is_relative_to(installed.parent)
    assert "torch" not in modules
    assert "site-packages" in file


def test_its_types_and_its_assets_are_found(installed: Path) -> None:
    ask = "from importlib.resources import files; print(files('litbook').joinpath({!r}).is_file())"
    for name in ("py.typed", "html/assets/player.js"):
        assert run(installed / "python", "-c", ask.format(name), cwd=installed) == "True\n"


def test_its_command_helps(installed: Path) -> None:
    said = run(installed / "litbook", "--help", cwd=installed)
    assert said.startswith("Usage: ")
    assert "\n  run " in said


def test_the_changelog_has_a_dated_section_for_this_version(repo: Path) -> None:
    version = tomllib.loads((repo / "pyproject.toml").read_text())["project"]["version"]
    heads = re.findall(r"^## (.*)$", (repo / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = next(head for head in heads if head != "Unreleased")
    assert re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest)
