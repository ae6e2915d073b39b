"""The pages of a lecture in a folder: every line is one of its own file, and is named and linked as such."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace
from tests.book.test_page import LECTURE, REFERENCES, at, code_of, ids, lived, recorded, shown, words
from tests.records import fill, record, split
from tests.running import SAMPLES, failures

from litbook.html import ledger, misbeliefs, page, player
from litbook.page import sitemap
from litbook.page.runs import LectureRuns
from litbook.record.model import Error, Record, Section
from litbook.run.run import run

FOLDER = "lectures/lecture_02"
FILES = {
    f"{FOLDER}/__init__.py": (
        '"""Storage & <views"""\n\nfrom litbook import note\n\nfrom .compute import compute\nfrom .memory import memory',
        ["main"],
    ),
    f"{FOLDER}/compute.py": ("import torch\nfrom litbook import note, requires", ["compute", "speed"]),
    f"{FOLDER}/memory.py": (
        "from litbook import misbelief, note\n\nfrom .models import six\n\nWIDTH = 4",
        ["memory", "transpose"],
    ),
    f"{FOLDER}/models.py": ('"""Models"""\n\nimport torch\n\nMiB = 2**20', ["six"]),
}


def folder(it: Record | None = None) -> Record:
    """`lived` in a folder: a file for each part, and one for the helper."""
    return split(lived() if it is None else it, FILES)


def made(it: Record | None = None, **more: Any) -> dict[str, str]:
    found = page.pages(folder() if it is None else it, REFERENCES, **more)
    return {name: shown(text) for name, text in found.items()}


def line(name: str, text: str, it: Record | None = None) -> int:
    """The line of a file that holds `text`."""
    (source,) = [s for s in (it or folder()).sources if s.path == f"{FOLDER}/{name}.py"]
    return next(n for n, row in enumerate(source.text.split("\n"), 1) if text in row)


@pytest.mark.parametrize("name", ["index.md", "memory.md", "compute.md"])
def test_the_pages_say_what_those_of_the_same_lecture_in_one_file_say(name: str) -> None:
    def plain(body: str) -> str:
        body = body[: body.index('<p class="lb-foot"')]  # which names the file
        body = re.sub(r"<details class=.lb-def.*?</details>", "", body, flags=re.S)  # imports, definitions
        return re.sub(r"lectures/[\w/]+\.py|\d+", "", words(body))

    assert plain(made()[name]) == plain(shown(page.pages(lived(), REFERENCES)[name]))


@pytest.mark.parametrize("name", ["index.md", "memory.md", "compute.md"])
def test_every_id_of_a_page_is_unique(name: str) -> None:
    found = ids(made(recordings=[split(recorded(), FILES)])[name])
    assert sorted(found) == sorted(set(found))


def test_a_part_has_the_lines_of_its_own_file_and_names_the_file_of_others() -> None:
    body = made()["memory.md"]
    here, there = line("memory", "y = x.t()"), line("models", "def six")
    assert re.search(rf'id="L{here}" href="#L{here}"[^<>]*>{here}</a>', body)
    assert re.search(rf'id="models-L{there}" href="#models-L{there}"[^<>]*>{there}</a>', body)
    for key in ("memory", "transpose"):
        it = folder().by_key[key]
        assert [n for n in range(it.first, it.last + 1) if f'id="L{n}"' not in body] == []


def test_a_section_of_another_file_than_its_page_names_that_file() -> None:
    files = dict(FILES)
    files[f"{FOLDER}/memory.py"] = (FILES[f"{FOLDER}/memory.py"][0], ["memory"])
    files[f"{FOLDER}/models.py"] = ("import torch", ["transpose", "six"])
    it = split(lived(), files)
    body = made(it)["memory.md"]
    number = line("models", "y = x.t()", it)
    assert f'id="models-L{number}"' in body
    assert f'href="#models-L{line("models", "assert (", it)}">{FOLDER}/models.py:' in body
    assert re.search(r'aria-label="lines \d+ to \d+ of models.py"', body)
    assert f"This claim fails. the same shape {FOLDER}/models.py:" in words(body)


def test_a_definition_is_linked_from_every_file_that_imports_it() -> None:
    there = line("models", "def six")
    assert f'x = <a href="#models-L{there}">six</a>()' in made()["memory.md"]
    text = LECTURE.replace("rate = [1][0] + 0 ", "rate = models.six() ")
    files = dict(FILES)
    head, keys = files[f"{FOLDER}/compute.py"]
    files[f"{FOLDER}/compute.py"] = (f"{head}\nfrom . import models", keys)
    it = split(record(text), files)
    assert f'models.<a href="../memory/#models-L{there}">six</a>()' in made(it)["compute.md"]


def test_each_part_ends_with_its_own_imports_and_other_files_follow_the_definitions() -> None:
    pages = made()
    assert "from .memory import memory" in code_of(pages["index.md"])
    assert "WIDTH = 4" in code_of(pages["memory.md"]) and "WIDTH" not in code_of(pages["compute.md"])
    memory = words(pages["memory.md"])
    memory = memory[memory.index("Imports and constants") :]
    order = [
        "Imports and constants",
        "Definitions",
        "six : Six numbers",
        "Imports and constants of models.py",
    ]
    assert [memory.index(part) for part in order] == sorted(memory.index(part) for part in order)
    assert "MiB" not in code_of(pages["compute.md"]) + code_of(pages["index.md"])


def test_what_went_wrong_names_the_file_and_the_line() -> None:
    number = line("memory", "assert (")
    pages = made()
    assert f'<a href="#L{number}">{FOLDER}/memory.py:{number}</a> the same shape' in pages["memory.md"]
    assert f'<a href="memory/#L{number}">{FOLDER}/memory.py:{number}</a>' in pages["index.md"]
    assert f"This claim fails. the same shape {FOLDER}/memory.py:{number}" in words(pages["memory.md"])
    (problem,) = failures(folder())
    assert problem.startswith(f"{FOLDER}/memory.py:{number}: claim fails: the same shape\n")


def test_an_error_that_came_up_in_another_file_is_told_there_and_shown_where_it_led_there() -> None:
    led, inner = line("memory", "x = six()"), line("models", "return torch")
    error = Error("exception", at("x = six()") - at("def transpose"), "x = six()", "RuntimeError: no", (
        (f"{FOLDER}/memory.py", led, "transpose", "x = six()"),
        (f"{FOLDER}/models.py", inner, "six", "return torch.arange(6.0)"),
    ))  # fmt: skip
    it = fill(folder(), "transpose", errors=(error,), claims=())
    body = words(made(it)["memory.md"])
    assert f"The lecture raised here. {FOLDER}/memory.py:{led}" in body
    assert f"{FOLDER}/models.py:{inner} in six" in body
    (problem,) = failures(it)
    assert problem.startswith(f"{FOLDER}/models.py:{inner}: RuntimeError: no\n")
    (data,) = [text for name, text in player.data(it).items() if name == "memory.player.js"]
    track = json.loads(data[data.index("]=") + 2 :].rstrip(";\n"))
    assert track["errors"][0][1] == "RuntimeError: no"


def test_the_foot_of_a_part_names_its_file() -> None:
    first, last = line("memory", "def memory"), line("memory", "secret = 1")
    assert f"seed 0 · {FOLDER}/memory.py, lines {first} to {last}" in words(made()["memory.md"])
    assert words(made()["index.md"]).endswith(f"{FOLDER}/__init__.py")


def test_problems_of_prose_name_the_file() -> None:
    it = folder()
    (was,) = it.by_key["memory"].pieces
    found: list[Any] = []
    page.pages(fill(it, "memory", pieces=(replace(was, text="[@nobody]"),)), REFERENCES, (), found)
    assert str(found[0]).startswith(f"{FOLDER}/memory.py:{line('memory', 'A walk')}:5: ")


def test_ledger_and_misbeliefs_name_the_file_and_lead_to_the_line() -> None:
    shelf = [LectureRuns("lecture_02", folder())]
    claim, belief = line("memory", "assert ("), line("memory", "misbelief(")
    assert f'href="../../../lecture_02/memory/#L{claim}"' in ledger.claims_page(shelf[0], "memory.md")
    assert {it["file"] for it in json.loads(ledger.data(shelf))["claims"]} == {
        f"{FOLDER}/memory.py", f"{FOLDER}/compute.py",
    }  # fmt: skip
    body = misbeliefs.page(shelf)
    assert f'href="../lecture_02/memory/#L{belief}">memory.py, line {belief}</a>' in body
    assert f'id="lecture_02-memory-L{belief}"' in body


def test_the_player_knows_of_every_call_in_which_file_its_lines_stand() -> None:
    data = player.data(folder())["memory.player.js"]
    track = json.loads(data[data.index("]=") + 2 :].rstrip(";\n"))
    assert track["files"] == [["", ""], ["models-", "models.py"]]
    assert {name: file for name, _, _, _, file in track["frames"]} == {"memory": 0, "transpose": 0, "six": 1}
    assert track["code"] == [], "the helper stands on this page"


# ---------------------------------------------------------------------------- as it really runs


@pytest.fixture(scope="module")
def parts() -> Record:
    return run(SAMPLES / "parts", device="cpu")


def test_parts_may_have_sections_of_one_name(parts: Record) -> None:
    pages = page.pages(parts)
    assert list(pages) == ["index.md", "storage.md", "compute.md"]
    for name in ("storage", "compute"):
        assert f"{{#{name}-first_steps " in pages[f"{name}.md"]
        assert f'href="{name}/#{name}-first_steps"' in pages["index.md"]


def test_names_of_other_files_are_linked_however_they_are_imported(parts: Record) -> None:
    body = page.pages(parts)["compute.md"]
    assert re.search(r'parts\.models\.<a href="#models-L\d+">twice</a>\(', body)
    assert re.search(
        r'<a href="../storage/#models-L\d+">Two</a>|<a href="../storage/#models-L\d+">Two\(?</a>', body
    )


def test_a_link_by_name_leads_to_the_section_of_the_same_page_first(parts: Record) -> None:
    book = sitemap.build_sitemap(parts, sitemap.NOTHING_CITED, (), [])
    assert sitemap.resolve_name(book, "storage.md", "first_steps") == "#storage-first_steps"
    assert sitemap.resolve_name(book, "compute.md", "first_steps") == "#compute-first_steps"
    assert sitemap.resolve_name(book, "index.md", "twice") == "compute/#twice"
    assert sitemap.resolve_name(book, "index.md", "nobody") is None


def test_sections_stand_where_they_stood_whatever_file_they_move_to(parts: Record) -> None:
    """Moving a section changes nothing of its entry but file and first line."""
    here, there = lived().by_key["transpose"], folder().by_key["transpose"]
    assert isinstance(here, Section)
    assert replace(there, file=here.file, first=here.first, calls=here.calls) == here
