"""A version is one: metadata, changelog and citation agree, and what is published reads well where it is published."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.running import REPO

from litbook import cli, version
from litbook.cli import group
from litbook.record import model
from litbook.site import scaffold

FIRST_SCHEMA = 5  # of 1.0


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return dict(tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    names: dict[str, Any] = {"__file__": str(REPO / "tools" / "release.py"), "__name__": "release"}
    exec((REPO / "tools" / "release.py").read_text(encoding="utf-8"), names)
    return names


def test_the_version_is_the_same_everywhere(project: dict[str, Any]) -> None:
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text(encoding="utf-8"))
    heads = re.findall(
        r"^## (\S+) \((.*)\)$", (REPO / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert version.version() == project["version"] == citation["version"] == heads[0][0]
    assert str(citation["date-released"]) == heads[0][1]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_the_changelog_is_short_and_its_section_becomes_the_notes(
    project: dict[str, Any], release: dict[str, Any]
) -> None:
    text = (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    said = release["notes"](text, project["version"])
    assert said.startswith("The first version with a promise") and "### For authors" in said
    assert release["notes"](text, "9.9.9") == ""


def test_a_release_names_what_it_lacks(project: dict[str, Any], release: dict[str, Any]) -> None:
    lacks = release["missing"]({"version": "1.0.0"}, "", clean=False)
    assert [it.split(":")[0] for it in lacks][:3] == [
        "an address", "a section 1.0.0 in CHANGELOG.md", "a clean tree",
    ]  # fmt: skip
    whole = release["missing"]({"version": "1.0.0", "urls": {"Repository": "https://x"}}, "notes", clean=True)
    assert [it for it in whole if not it.startswith("twine")] == []


def test_the_published_readme_leads_nowhere_relative(project: dict[str, Any]) -> None:
    text = (REPO / project["readme"]).read_text(encoding="utf-8")
    assert "![" not in text and "<img" not in text
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith("https://")] == []


def test_each_schema_since_the_first_version_is_read_for_comparison() -> None:
    assert set(range(FIRST_SCHEMA, model.SCHEMA + 1)) <= set(model.COMPARABLE)
    record = (REPO / "docs" / "record.md").read_text(encoding="utf-8")
    assert f"now `{model.SCHEMA}`" in record and "**The promise:**" in record


def test_the_hook_for_books_calls_a_command_that_there_is() -> None:
    (hook,) = yaml.safe_load((REPO / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, command, *rest = shlex.split(hook["entry"])
    assert program == "litbook" and command in group.commands and rest == ["--text"]
    assert "--text" in {name for it in group.commands[command].params for name in it.opts}
    assert {"id", "name", "entry", "language", "files"} <= set(hook)
    guide = (REPO / "docs" / "guide.md").read_text(encoding="utf-8")
    assert f"hooks: [{{id: {hook['id']}}}]" in guide
    assert re.search(hook["files"], "lectures/lecture_01.py") and not re.search(
        hook["files"], "docs/index.md"
    )


def test_files_of_a_release_are_there() -> None:
    for name in ("SECURITY.md", "CITATION.cff", "LICENSE", "MANIFEST.in"):
        assert (REPO / name).stat().st_size > 100 or name == "MANIFEST.in", name
    assert Path(REPO / "tools" / "release.py").is_file()


def test_each_command_that_reads_a_book_takes_its_configuration() -> None:
    without = {
        name for name, it in group.commands.items() if "config_file" not in {p.name for p in it.params}
    }
    assert without == {"new", "compare", "rule"}


def test_a_command_asked_from_elsewhere_reads_the_book_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scaffold.begin(tmp_path / "mybook")
    config = str(tmp_path / "mybook" / "mkdocs.yml")
    monkeypatch.chdir(tmp_path)
    assert cli.litbook(["list", "--config-file", config]) == 0
    assert capfd.readouterr().out.startswith("lecture_01  ")
    assert cli.litbook(["run", "lecture_01", "--config-file", config, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["exit_status"] == 0
    assert cli.litbook(["record", "--config-file", config, "--json"]) == 0
    (told,) = json.loads(capfd.readouterr().out)
    assert told["exit_status"] == 0
    assert cli.litbook(["check", "--config-file", "nowhere.yml", "--json"]) == 2
    assert "there is no such file" in json.loads(capfd.readouterr().out)["error"]
