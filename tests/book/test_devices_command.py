"""A recording from a GPU, from the command line to the site. The card is a STAND-IN: no number here is any card's.

The commands are the real ones, each in a process of its own, in a small book of its own, by a Python that has
what docs/maintain.md says and nothing else. Python imports a module called `sitecustomize` before it runs
anything; the one here puts the stand-in in the place of `torch.cuda`. Nothing of the project knows of it, and
the build of the site runs without it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from html import unescape
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from tests.running import HEAD, REPO, line_of, process

from litbook.record import encoding

LECTURE = f"""{HEAD}
import torch


def main():
    here()
    adds()
    has_fp8()
    is_large()


def here():
    "A sum on the CPU."
    note(r"A sum of numbers below $n$ is $n (n - 1) / 2$ [@gauss].")
    total = torch.arange(10).sum().item()  # @inspect total
    assert total == 45, "every machine says so"


@requires("cuda")
def adds():
    "A sum on the card."
    x = torch.ones(1000, device="cuda")  # @inspect x
    free = torch.cuda.mem_get_info()[0]  # @measure free as B
    assert x.sum().item() == 1000, "a thousand ones"


@requires("cuda")
def has_fp8():
    "What the card is able to do."
    major, minor = torch.cuda.get_device_capability()  # @inspect major, minor
    assert major >= 9, "it has FP8 units"


@requires("cuda")
def is_large():
    "A tensor that fills much of the card."
    size = 60 * 2**20 + 512  # @inspect size as B
    kept = torch.empty(size, dtype=torch.uint8, device="cuda")
    assert kept.nbytes == size, "it is there"
"""
SMALL = {"name": "STAND-IN 64", "memory": 64 * 2**20, "context": 8 * 2**20, "capability": [8, 0]}
LARGE = {"name": "STAND-IN 128", "memory": 128 * 2**20, "context": 8 * 2**20, "capability": [9, 0]}
SLUG = "lecture_07.stand-in-128.json"
FREE = "125,825,024 B"  # on LARGE, after `x`: 128 MiB less the driver's 8 and a block
NARROW = "62,915,072"  # bytes of `kept`
STARTS = """\
import json, os, sys
if "-c" in sys.orig_argv:  # the process that runs the lecture; the command itself needs no torch
    import torch
    from tests.standin import Card, standin
    torch.__version__ = os.environ["STANDIN_TORCH"]
    kept = standin(Card(**json.loads(os.environ["STANDIN"])))
    kept.__enter__()
"""
CONFIG = """
site_name: A book
theme: {name: material}
plugins: [litbook]
nav:
  - Start: index.md
  - Lectures: []
"""
GAUSS = "@book{gauss, title={Sums}, author={Gauss, C. F.}, year={1801}}\n"


def installed(names: list[str]) -> set[str]:
    """The names of these distributions and of all that they require."""
    todo, done = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name in done:
            continue
        done.add(name)
        needed = map(Requirement, distribution(name).requires or ())
        todo += [it.name for it in needed if it.marker is None or it.marker.evaluate({"extra": ""})]
    return done


def bare_python(folder: Path) -> Path:
    """A Python with the eight libraries of docs/maintain.md, what they require, and nothing else."""
    [line] = re.findall(
        r"pip install torch==[\d.]+ (.+)", (REPO / "docs" / "maintain.md").read_text(encoding="utf-8")
    )[:1]
    venv.EnvBuilder().create(folder)
    [there] = folder.glob("lib/python*/site-packages")
    for name in installed(["torch", *line.split()]):
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (there / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return folder / "bin" / "python"


class Book:
    """A book of one lecture, and the commands of its author."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bare = bare_python(folder / "bare")
        for name in ("lectures", "docs", "starts"):
            (folder / name).mkdir()
        self.lecture = folder / "lectures" / "lecture_07.py"
        self.lecture.write_text(LECTURE, encoding="utf-8")
        self.recordings = folder / "lectures" / "recordings"
        (folder / "starts" / "sitecustomize.py").write_text(STARTS, encoding="utf-8")
        (folder / "lectures" / "references.bib").write_text(GAUSS, encoding="utf-8")
        (folder / "docs" / "index.md").write_text("# Start\n\n<!-- claims -->\n", encoding="utf-8")
        (folder / "mkdocs.yml").write_text(CONFIG, encoding="utf-8")

    def run(self, card: dict[str, Any], *words: str, release: str = "2.11.0+stand-in") -> Any:
        """`run_lecture.py LECTURE --device cuda --quiet WORDS`, on the stand-in."""
        path = [self.folder / "starts", REPO, REPO / "tools"]
        return process(
            "lectures/lecture_07.py", "--device", "cuda", "--quiet", *words,
            cwd=self.folder,
            python=self.bare,
            env={
                "PYTHONPATH": os.pathsep.join(map(str, path)),
                "STANDIN": json.dumps(card),
                "STANDIN_TORCH": release,
            },
        )  # fmt: skip

    def site(self) -> Path:
        """The site of a strict build, on this machine's CPU."""
        words = ["build", "--strict", "--quiet", "--site-dir", str(self.folder / "site")]
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", *words],
            cwd=self.folder, env={**os.environ, "NO_MKDOCS_2_WARNING": "true", "CUDA_VISIBLE_DEVICES": ""},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
        return self.folder / "site"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Its tests follow one author, in order: each begins where the one before it ended."""
    return Book(tmp_path_factory.mktemp("book"))


def at(text: str) -> int:
    return line_of(LECTURE, text)


def test_a_claim_that_fails_on_the_card_and_a_full_card_keep_the_record_and_record_nothing(
    book: Book,
) -> None:
    done = book.run(SMALL, "--record", "--out", "run.json")
    assert done.returncode == 1
    assert not book.recordings.exists()
    assert (
        f"lecture_07.py:{at('major >= 9')}: claim fails: it has FP8 units\n    assert major >= 9\n"
        in done.stdout
    )
    assert "      major is 8\n" in done.stdout
    assert (
        f"lecture_07.py:{at('kept = ')}: OutOfMemoryError: out of memory: CUDA out of memory. Tried to allocate "
        "60.00 MiB. GPU 0 has a total capacity of 64.00 MiB (stand-in)\n"
    ) in done.stdout
    last = "2 claims hold, 1 fails, 0 not run, 1 was not reached; 1 error"
    assert done.stdout.splitlines()[-1] == last
    assert done.stderr == (
        "run_lecture.py: not recorded: a claim fails or the lecture raised\n"
        "    a recording is of a run in which every claim holds\n"
    )
    kept = encoding.read(book.folder / "run.json")
    assert (kept.environment.device.name, kept.environment.device.slug) == ("STAND-IN 64", "stand-in-64")
    verdicts = {claim.caption: claim.verdict for _, claim in kept.claims()}
    assert verdicts == {
        "every machine says so": "holds", "a thousand ones": "holds",
        "it has FP8 units": "fails", "it is there": "not-reached",
    }  # fmt: skip


def test_where_every_claim_holds_the_recording_has_the_name_of_its_device(book: Book) -> None:
    done = book.run(LARGE, "--record", "--out", "run.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"recorded in lectures/recordings/{SLUG}\n\n4 claims hold, 0 fail, 0 not run\n")
    assert [it.name for it in book.recordings.iterdir()] == [SLUG]
    for file in (book.recordings / SLUG, book.folder / "run.json"):
        device = encoding.read(file).environment.device
        assert (device.kind, device.name, device.capability) == ("cuda", "STAND-IN 128", "9.0")


def test_the_site_shows_the_recording_under_the_name_of_its_card_and_nowhere_as_its_own(book: Book) -> None:
    site = book.site() / "lectures"
    day = encoding.read(book.recordings / SLUG).environment.date[:10]
    page = unescape((site / "lecture_07" / "index.html").read_text(encoding="utf-8"))
    stamp = re.findall(r"STAND-IN 128, \d+ \w+ \d{4}, torch 2\.11\.0", page)[0]
    sections = page.split("<h2 ")[:-1]  # behind them: the references
    assert [part.partition('"')[2].partition('"')[0] for part in sections[1:]] == [
        "here", "adds", "has_fp8", "is_large",
    ]  # fmt: skip
    why = f"Not run (needs a GPU). What stands here was recorded: {stamp}."
    assert [why in part for part in sections[1:]] == [False, True, True, True]
    assert FREE in sections[2] and "cuda:0" in sections[2]
    assert "STAND-IN" not in sections[1]

    text = {
        it.relative_to(site.parent).as_posix().removeprefix("lectures/"): unescape(
            it.read_text(encoding="utf-8")
        )
        for it in site.parent.rglob("*")
        if it.suffix in (".html", ".js", ".json", ".ipynb")
    }
    telling = {name: it for name, it in text.items() if NARROW in it}
    ipynb = next(name for name in text if name.endswith(".ipynb"))
    assert set(telling) == {
        "lecture_07/index.html",
        ipynb,
        "ledger/lecture_07/index.html",
        "claims.json",
    }
    before = telling[ipynb].partition("A tensor that fills much")[2].partition(NARROW)[0]
    assert f"The outputs are from {stamp}." in before
    assert f"STAND-IN 128, {stamp.split(', ')[1]}, recorded" in telling["ledger/lecture_07/index.html"]

    claims = json.loads((site / "claims.json").read_text(encoding="utf-8"))
    runs = [(it["kind"], it["device"], it["name"], it["date"][:10]) for it in claims["runs"]]
    assert runs[1] == ("recording", "stand-in-128", "STAND-IN 128", day) and runs[0][:2] == ("build", "cpu")
    verdicts = {it["caption"]: [v["verdict"] for v in it["verdicts"]] for it in claims["claims"]}
    away = ["needs-device", "holds"]
    assert verdicts == {
        "every machine says so": ["holds", "holds"], "a thousand ones": away,
        "it has FP8 units": away, "it is there": away,
    }  # fmt: skip

    devices = unescape((site / "devices" / "index.html").read_text(encoding="utf-8")).replace("\u2060", "")
    assert "Not run" not in devices
    assert "What differed on STAND-IN 128" in devices
    assert "This recording was made by torch 2.11.0+stand-in, this build by torch " in devices

    steps = (site / "lecture_07" / "index.player.js").read_text(encoding="utf-8")
    data = json.loads(steps[steps.index("]=") + 2 :].rstrip(";\n"))
    assert [text for _, text in data["remarks"]] == [why] * 3
    assert {heading for _, heading, _ in data["sections"]} >= {
        "A sum on the card",
        "What the card is able to do",
    }


def test_a_second_record_compares_and_changes_nothing(book: Book) -> None:
    before = (book.recordings / SLUG).read_bytes()
    same = book.run(LARGE, "--record", release="2.12.0+stand-in")
    assert same.returncode == 0
    assert f"lectures/recordings/{SLUG} stays as it is: no value, claim or section differs" in same.stdout

    changed = {**LARGE, "capability": [9, 1]}
    done = book.run(changed, "--record", release="2.13.0+stand-in")
    assert done.returncode == 1
    assert (
        f"lecture_07.py:{at('major, minor')}: has_fp8: minor is not what was recorded\n    was 0, is 1"
        in done.stdout
    )
    assert (
        "This recording was made by torch 2.11.0+stand-in, this run by torch 2.13.0+stand-in.\n\n"
        "If the new values are the right ones: "
        "python tools/run_lecture.py lectures/lecture_07.py --device cuda --approve\n"
    ) in done.stdout
    assert done.stdout.endswith(f"; 1 difference from lectures/recordings/{SLUG}\n")
    assert f"not recorded: lectures/recordings/{SLUG} says something else" in done.stderr
    assert (book.recordings / SLUG).read_bytes() == before

    approved = book.run(changed, "--approve", release="2.13.0+stand-in")
    assert approved.returncode == 0
    assert f"recorded in lectures/recordings/{SLUG}" in approved.stdout
    now = encoding.read(book.recordings / SLUG)
    run = now.by_key["has_fp8"].run
    assert run and (run.versions["torch"], run.device.capability) == ("2.13.0+stand-in", "9.1")
    assert now.environment.versions["torch"] == "2.11.0+stand-in", (
        "what says the same stays as it was recorded"
    )
