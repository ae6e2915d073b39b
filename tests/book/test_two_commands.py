"""`make site` and `make test` on a fresh machine: what the Makefile does, told by interpreters that only take notes.

Nothing is installed here; CI runs the two commands themselves.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.running import WORKERS

# Stands for python3 and, copied, for .venv/bin/python. Writes down every call of pip, mkdocs, pytest, ruff,
# mypy.
INTERPRETER = """#!/bin/sh
case "$*" in
  *version_info*) [ -z "$OLD" ] ;;
  *find_spec*) echo "${WORKS:-yes}" ;;
  *ensurepip*) [ -z "$NO_VENV" ] ;;
  --version) echo "Python 3.10.13" ;;
  "-m venv"*) echo "venv" >> notes; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  "-m pip --version") [ -z "$NO_PIP" ] ;;
  "-m "*)
    shift; echo "$*" | sed 's/--disable-pip-version-check --no-input //' >> notes
    if [ -n "$FAIL" ]; then case "$*" in *"$FAIL"*) exit 1 ;; esac; fi ;;
esac
"""

SET_UP = [
    "venv",
    "pip install -q --require-hashes --no-deps -r requirements.txt",
    "pip install -q -c constraints.txt --no-deps torch",
    "pip install -q -c constraints.txt torch",
    "pip install -q --no-deps --no-build-isolation -e .",
    "pip check",
]


class Machine:
    """A folder with the Makefile and an interpreter that takes notes."""

    def __init__(self, folder: Path, repo: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "requirements.txt"):
            shutil.copy(repo / name, folder / name)
        self.python = folder / "python-for-tests"
        self.python.write_text(INTERPRETER)
        self.python.chmod(0o755)

    def make(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs make; `env` steers the interpreter."""
        # An outer `make test ARGS=...` must not reach in here.
        of_make = "CI MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL ARGS JOBS PORT TORCH_INDEX".split()
        clean = {k: v for k, v in os.environ.items() if k not in of_make}
        return subprocess.run(
            ["make", *words],
            cwd=self.folder,
            env={**clean, "PYTHON": str(self.python), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def notes(self) -> list[str]:
        """What was called since the last time anybody asked."""
        file = self.folder / "notes"
        found = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return found


@pytest.fixture
def machine(tmp_path: Path, repo: Path) -> Machine:
    return Machine(tmp_path, repo)


def test_make_alone_lists_the_targets(machine: Machine) -> None:
    done = machine.make()
    assert done.returncode == 0
    for target in ("site", "test", "quick", "check", "coverage", "size", "serve", "clean"):
        assert f"\n  {target} " in done.stdout
    assert machine.notes() == []


def test_make_site_sets_up_builds_strictly_and_says_how_to_open_it(machine: Machine) -> None:
    done = machine.make("site")
    assert done.returncode == 0, done.stderr
    assert machine.notes() == [*SET_UP, "mkdocs build --strict"]
    assert ".venv/bin/python -m http.server -d site" in done.stdout
    assert f"{machine.folder}/site/index.html" in done.stdout


def test_make_test_checks_builds_and_runs_the_suite(machine: Machine) -> None:
    done = machine.make("test")
    assert done.returncode == 0
    built = f"LITBOOK_SITE='{machine.folder}/site' LITBOOK_RECORDS='{machine.folder}/build/records'"
    assert f"{built} .venv/bin/python -m pytest" in done.stdout  # built once, and no lecture run again
    *first, one, other, last = machine.notes()
    assert first == [*SET_UP, "ruff check", "ruff format --check"]
    assert {one, other} == {"mypy", "tests.building site build/records"}  # beside each other
    assert last == " ".join(["pytest", *WORKERS, "-m not slow"])
    machine.make("test", CI="true")
    assert machine.notes()[-1] == " ".join(["pytest", *WORKERS])


def test_make_quick_lints_what_changed_since_main_and_runs_the_unit_tests(machine: Machine) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=t", "-c", "user.email=t", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *name, *words], cwd=machine.folder, check=True, capture_output=True)

    assert machine.make("quick").returncode == 0  # no git here
    beside = sorted(["mypy", " ".join(["pytest tests/unit", *WORKERS, "-m not slow"])])
    notes = machine.notes()
    assert (notes[:-2], sorted(notes[-2:])) == (SET_UP, beside)
    for name in ("same.py", "gone.py", "edited.py"):
        (machine.folder / name).touch()
    (machine.folder / ".gitignore").write_text(".venv\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "main")
    git("checkout", "-b", "branch")
    (machine.folder / "edited.py").write_text("x = 1\n")
    (machine.folder / "gone.py").unlink()
    git("commit", "-a", "-m", "branch")
    for name in ("new.py", "new.txt"):
        (machine.folder / name).touch()
    assert machine.make("quick").returncode == 0
    files = "--force-exclude edited.py new.py"
    notes = machine.notes()
    assert notes[:-2] == [f"ruff check {files}", f"ruff format --check {files}"]
    assert sorted(notes[-2:]) == beside


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ("1", "pytest -m not slow"),
        ("4", "pytest -n 4 --dist loadfile --no-loadscope-reorder -m not slow"),
    ],
)
def test_the_suite_runs_in_as_many_processes_as_asked(machine: Machine, jobs: str, said: str) -> None:
    assert machine.make("test", f"JOBS={jobs}", "ARGS=-k layers").returncode == 0
    assert machine.notes()[-1] == f"{said} -k layers"


def test_coverage_is_shown_also_where_a_test_fails_and_then_fails(machine: Machine) -> None:
    done = machine.make("coverage", FAIL="pytest")
    assert done.returncode == 2
    assert [note.split()[:2] for note in machine.notes()[len(SET_UP) :]] == [
        ["coverage", "run"], ["coverage", "combine"], ["coverage", "report"], ["coverage", "html"],
    ]  # fmt: skip
    assert machine.make("coverage", "JOBS=1", "ARGS=-k layers").returncode == 0
    assert machine.notes()[0] == "coverage run -m pytest -m not slow -k layers"


def test_the_size_needs_no_environment(machine: Machine, repo: Path) -> None:
    shutil.copytree(repo / "tools", machine.folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    done = machine.make("size", PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *\d+,\d{3}  code lines of the engine$", done.stdout, re.MULTILINE)
    assert not (machine.folder / ".venv").exists()


def test_make_record_records_every_lecture_and_then_the_badge(machine: Machine) -> None:
    done = machine.make("record", "ARGS=--approve")
    assert done.returncode == 0, done.stderr
    calls = [line.strip() for line in done.stdout.splitlines()]
    assert calls[-2:] == [
        ".venv/bin/python -m litbook record --approve",
        ".venv/bin/python -m litbook badge docs/images/claims.svg",
    ]


def test_the_second_call_installs_nothing(machine: Machine) -> None:
    machine.make("site")
    machine.notes()
    machine.make("site")
    assert machine.notes() == ["mkdocs build --strict"]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "requirements.txt"])
def test_a_changed_requirement_updates_the_environment_in_place(machine: Machine, name: str) -> None:
    machine.make("site")
    machine.notes()
    later = (machine.folder / ".venv" / ".stamp").stat().st_mtime + 10
    os.utime(machine.folder / name, (later, later))
    machine.make("site")
    assert machine.notes() == [*SET_UP[1:], "mkdocs build --strict"]


@pytest.mark.parametrize(
    "step", ["requirements.txt", "constraints.txt --no-deps torch", "constraints.txt torch", "-e .", "check"]
)
def test_an_interrupted_installation_is_made_anew_by_the_next_call(machine: Machine, step: str) -> None:
    assert machine.make("site", FAIL=step).returncode == 2
    machine.notes()
    assert machine.make("site").returncode == 0
    assert machine.notes() == [*SET_UP, "mkdocs build --strict"]


def test_an_interrupted_update_is_made_anew_by_the_next_call(machine: Machine) -> None:
    machine.make("site")
    assert machine.make("site", WORKS="no", FAIL="torch").returncode == 2
    machine.notes()
    machine.make("site")
    assert machine.notes() == [*SET_UP, "mkdocs build --strict"]


def test_an_environment_without_its_interpreter_is_made_anew(machine: Machine) -> None:
    machine.make("site")
    (machine.folder / ".venv" / "bin" / "python").unlink()
    machine.notes()
    machine.make("site")
    assert machine.notes() == [*SET_UP, "mkdocs build --strict"]


def test_an_environment_that_was_moved_is_brought_up_to_date(machine: Machine) -> None:
    machine.make("site")
    machine.notes()
    machine.make("site", WORKS="no")
    assert machine.notes() == [*SET_UP[1:], "mkdocs build --strict"]


def test_only_torch_comes_from_torch_index(machine: Machine) -> None:
    machine.make("site", TORCH_INDEX="file:///index")
    from_index = [note for note in machine.notes() if "index" in note]
    assert from_index == [
        "pip install -q -c constraints.txt --no-deps --index-url file:///index torch",
    ]


def test_a_python_that_is_too_old_is_named(machine: Machine) -> None:
    done = machine.make("site", OLD="1")
    assert done.returncode == 2
    assert f"{machine.python} is Python 3.10.13; Python 3.11 or later is needed." in done.stderr
    assert "make PYTHON=python3.12" in done.stderr
    assert machine.notes() == []


def test_a_python_that_is_not_there_is_named(machine: Machine) -> None:
    done = machine.make("site", PYTHON="no-such-python")
    assert done.returncode == 2
    assert "There is no no-such-python. Install Python 3.11 or later" in done.stderr


def test_a_python_without_venv_says_what_to_install(machine: Machine) -> None:
    done = machine.make("site", NO_VENV="1")
    assert done.returncode == 2
    assert "has no venv module. On Debian and Ubuntu: apt install python3-venv" in done.stderr


@pytest.mark.parametrize("step", ["mypy", "pytest"])
def test_a_failing_step_fails_make_quick(machine: Machine, step: str) -> None:
    assert machine.make("quick", FAIL=step).returncode == 2


@pytest.mark.parametrize("step", ["ruff", "mypy", "tests.building"])
def test_a_failing_step_fails_make_test(machine: Machine, step: str) -> None:
    assert machine.make("test", FAIL=step).returncode == 2
    assert "pytest" not in machine.notes()


# ---------------------------------------------------------------------------------------------- CI


def test_ci_runs_the_command_that_the_readme_names(repo: Path) -> None:
    script = (repo / ".ci" / "run").read_text()
    assert script.splitlines()[-2:] == ["export CI=true", "make test"]
    assert os.access(repo / ".ci" / "run", os.X_OK)
    readme = (repo / "README.md").read_text()
    assert "make test" in readme
    assert "make site" in readme


def test_ci_without_a_browser_and_without_the_right_to_install_one_says_so(
    repo: Path, tmp_path: Path
) -> None:
    for name in ("bash", "dirname", "env"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    done = subprocess.run(
        [repo / ".ci" / "run"],
        env={"PATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "no Chromium here and no apt-get to install it with" in done.stderr


def test_ci_takes_each_action_by_its_commit_and_says_which_release_that_is(repo: Path) -> None:
    text = "".join(file.read_text() for file in (repo / ".github" / "workflows").iterdir())
    used = re.findall(r"uses: *(.*)", text)
    assert len(used) > 4
    assert [it for it in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", it)] == []


def test_a_commit_is_checked_as_make_check_does(repo: Path, machine: Machine) -> None:
    hooks = (repo / ".pre-commit-config.yaml").read_text()
    asked = re.findall(r"entry: \.venv/bin/python -m (.*)", hooks)
    machine.make("check")
    assert [it.removesuffix(" --force-exclude") for it in asked] == machine.notes()[len(SET_UP) :]
    assert "https:" not in hooks  # nothing to download


# ---------------------------------------------------------------------------------- what is installed

APART = {"torch", "uv", "properdocs"}  # from an index of the user's choice; for `make pins`; for .ci/trial
HASHED = ["requirements.txt", ".ci/site.txt", ".ci/properdocs.txt"]
PIN = re.compile(
    r"^([\w.-]+)==([\w.!+]+)(?: ; [^\n\\]*)?( \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


def plain(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints(repo: Path) -> dict[str, str]:
    """The versions of constraints.txt."""
    lines = (repo / "constraints.txt").read_text().splitlines()
    pins = [line.partition("#")[0].strip().split("==") for line in lines if not line.startswith("#")]
    return {plain(name): version for name, version in pins}


def hashed(file: Path) -> dict[str, str]:
    """The versions of a file of hashes; each line of it belongs to one of them."""
    text = file.read_text()
    assert [line for line in PIN.sub("", text).splitlines() if not line.startswith("#")] == []
    return {name: version for name, version, _ in PIN.findall(text)}


def test_what_is_installed_has_the_version_of_the_constraints_and_its_hashes(repo: Path) -> None:
    pins = constraints(repo)
    for name in HASHED:
        found = hashed(repo / name)
        assert found.items() <= pins.items(), f"{name}: make pins"
    assert pins.keys() - hashed(repo / "requirements.txt").keys() == APART, "make pins"


def test_each_dependency_of_the_project_is_installed_with_its_hash(repo: Path) -> None:
    project = tomllib.loads((repo / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needs = {"site": [*project["project"]["dependencies"], *extras["site"]]}
    needs["all"] = [
        *needs["site"],
        *extras["torch"],
        *extras["dev"],
        *project["build-system"]["requires"],
        "pip",
    ]
    for file, wanted in ((".ci/site.txt", needs["site"]), ("requirements.txt", needs["all"])):
        found = {**hashed(repo / file), "torch": constraints(repo)["torch"]}
        for requirement in map(Requirement, wanted):
            assert found[plain(requirement.name)] in requirement.specifier, f"{file}: make pins"


def test_ci_and_the_two_commands_install_by_hashes_but_for_torch_and_this_tree(repo: Path) -> None:
    said = "".join(
        (repo / name).read_text()
        for name in ("Makefile", ".ci/run", ".ci/trial", ".github/workflows/site.yml")
    )
    said = re.sub(r"^ *#.*$", "", said, flags=re.MULTILINE)
    calls = re.findall(r"^\s*(?:\S*/pip|pip|\$\(PIP\)) (install .*)", said, re.MULTILINE)
    assert len(calls) == 9
    by_hash = [it for it in calls if it.startswith("install -q --require-hashes --no-deps -r ")]
    assert [it for it in calls if it not in by_hash] == [
        "install -q -c constraints.txt --no-deps $(if $(TORCH_INDEX),--index-url '$(TORCH_INDEX)') torch",
        "install -q -c constraints.txt torch",
        "install -q --no-deps --no-build-isolation -e .",
        "install -q --no-deps dist/litbook-*.whl",
    ]


CALL = re.compile(r"\b(?:pip3?|uv|pipx)\b(?: --?[\w-]+)* (?:install|download|wheel|tool|add)\b([^`\n;|&]*)")
WORD = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]+")
TAKES_A_WORD = set("-c -r -d -w --index-url --platform --python-version --only-binary".split())


def instructed(text: str) -> Iterator[str]:
    """The names of packages that the instructions in a text give to pip or to one of its kind."""
    for call in CALL.findall(text):
        option = ""
        for quoted in WORD.findall(re.sub(r"\{[^{}\n]*\}", "{}", call.partition(" #")[0])):
            word = quoted.strip("'\"(),")
            elsewhere = option in TAKES_A_WORD or re.search(r" @ |[/$*{}:]|^\.|\.whl$", word)
            if re.match(r"[a-zA-Z]", word) and not elsewhere:
                yield plain(re.split(r"[\[=<>!~]", word)[0])
            option = word


@pytest.mark.parametrize(
    "text, names",
    [
        ("`pip install` of this tree", []),
        ("run `pip install 'litbook[site]'`, then", ["litbook"]),
        ("$ /tmp/gpu/bin/pip install torch==2.11.0 numpy Jinja2", ["torch", "numpy", "jinja2"]),
        ('- run: pip install "litbook[site] @ ${LITBOOK:?}"  # or litbook', []),
        ("pip install '.[site]' && other", []),
        ("pip install -q -c constraints.txt --no-deps --index-url 'x' torch", ["torch"]),
        ("pip download a==1 --platform any   # here", ["a"]),
        ("uv tool install evil", ["install", "evil"]),
    ],
)
def test_the_names_in_an_instruction_are_seen(text: str, names: list[str]) -> None:
    assert [*instructed(text)] == names


def test_no_instruction_names_a_package_that_the_constraints_do_not_hold(repo: Path) -> None:
    """A name that nobody has registered is anybody's: whoever takes it runs code where the instruction is followed."""
    read = {".md", ".py", ".txt", ".yml", ".yaml", ".toml", ".js", ".html", ""}
    files = [
        file for file in tracked(repo) if file.suffix in read and "tests" not in file.relative_to(repo).parts
    ]
    files = [file for file in files if file.name not in ("constraints.txt", "CHANGELOG.md")]
    named = {
        (file.relative_to(repo).as_posix(), name)
        for file in files
        for name in instructed(file.read_text(errors="replace"))
    }
    assert {("docs/maintain.md", "properdocs"), ("docs/maintain.md", "einops"), (".ci/pins", "uv")} <= named
    assert {it for it in named if it[1] not in constraints(repo)} == set()


# ------------------------------------------------------------------------------- what files may say


def tracked(repo: Path) -> list[Path]:
    """The files that git tracks; in a copy without git, all but what .gitignore's folders hold."""
    listed = subprocess.run(
        ["git", "-C", repo, "-c", f"safe.directory={repo}", "ls-files", "-z"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if listed.returncode == 0:
        files = [repo / name for name in listed.stdout.split("\0") if name]
    else:
        made = {".git", ".venv", "__pycache__", "site", "build", "docs/lectures", "docs/assets/litbook"}
        made |= {".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", "litbook.egg-info"}
        files = [
            file
            for file in repo.rglob("*")
            if not made & {*file.relative_to(repo).parts, *map(str, file.relative_to(repo).parents)}
        ]
    return [file for file in files if file.is_file()]


def test_no_tracked_file_names_a_registry_or_a_folder_of_this_machine(repo: Path) -> None:
    forbidden = [b"pypi" + b".org", b"pythonhosted" + b".org", b"download.pytorch" + b".org"]
    forbidden += [f"{folder}/".encode() for folder in (repo, Path.home()) if len(folder.parts) > 1]
    files = tracked(repo)
    assert repo / "Makefile" in files
    found = [
        f"{file.relative_to(repo)}: {word.decode()}"
        for file in files
        for word in forbidden
        if word in file.read_bytes()
    ]
    assert found == []
