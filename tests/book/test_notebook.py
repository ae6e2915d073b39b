"""The notebook edition: each notebook runs on its own, and what it prints is what was recorded."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import deque
from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat
import pytest
from msgspec.structs import replace
from tests import notebooks
from tests.records import fill
from tests.running import SAMPLES, record, section

from litbook.markdown.bibliography import BibliographyEntry
from litbook.notebook import ipynb, runtime
from litbook.notebook.build import Notebook
from litbook.notebook.build import notebooks as document
from litbook.notebook.value_text import in_words
from litbook.page.runs import LectureRuns
from litbook.project import Project
from litbook.record import model
from litbook.site.pages import Pages
from litbook.site.plugin import LitbookPlugin

HEAD = '"""Sample."""\n'
WORK = {
    "glu2020": BibliographyEntry(
        "glu2020", "Gated [units] *here*", ("N. Shazeer",), "2020", url="https://example.org/a"
    )
}

LECTURES = {
    "tour": (SAMPLES / "tour.py").read_text(encoding="utf-8"),
    "future": '''
        """From the future."""
        from __future__ import annotations

        import asyncio
        import functools
        from collections import Counter, namedtuple
        from dataclasses import dataclass, field
        from enum import Enum

        import torch

        from litbook import note, question

        @functools.total_ordering
        @dataclass(frozen=True)
        class 点:
            x: int
            y: float = field(default=0.5)

            def __lt__(self, other: 点) -> bool:
                return self.x < other.x

        class Colour(Enum):
            RED = 1

        Pair = namedtuple("Pair", "left right")

        async def half(n: int) -> float:
            await asyncio.sleep(0)
            return n / 2

        async def numbers(n):
            for i in range(n):
                yield i

        def main() -> None:
            names_in_chinese()
            coroutines()
            closures_and_del()
            stays_a_function()
            counts_with_nonlocal()
            一节()
            blocks()

        def names_in_chinese() -> None:
            """Names in Chinese: 名字"""
            note("汉字 and `代码`, and $a_1 < b$.")
            值 = 3  # @inspect 值
            p = 点(值)  # @inspect p, p < 点(4)
            assert p.y == 0.5, "默认"
            q: list[点] = [p]  # @inspect len(q), Colour.RED, Pair(1, p.x)

        def coroutines() -> None:
            """A notebook has a loop already."""
            x = asyncio.run(half(3))  # @inspect x
            async def all_():
                return [i async for i in numbers(3)]
            found = asyncio.run(all_())  # @inspect found
            assert found == [0, 1, 2]

        def closures_and_del() -> None:
            """Late binding and del."""
            calls = [lambda: i for i in range(3)]
            values = [call() for call in calls]  # @inspect values
            if (n := len(calls)) == 3: m = n * 2  # @inspect m, n
            del calls
            def again(k):
                return k if k == 0 else again(k - 1)
            assert again(n) == 0, "it finds itself"
            question("How many?", answer=n + 1, unit="calls", hint="one more")

        def stays_a_function() -> None:
            """Leaves early."""
            note("Said either way.")
            x = torch.rand(2)  # @inspect x
            if x.numel() == 2:
                print("leaving")
                return  # @inspect x.shape
            note("Never said.")

        def counts_with_nonlocal() -> None:
            """Nonlocal."""
            n = 0
            def up() -> int:
                nonlocal n
                n += 1
                return n
            up()  # @inspect n
            assert up() == 2

        def 一节() -> None:
            """一节"""
            字典 = Counter("aab")  # @inspect 字典
            集 = {"b", "a"}  # @inspect 集

        def blocks() -> None:
            """Blocks."""
            total = 0
            for i in range(6):  # @inspect i
                total += i  # @inspect total
                match i:
                    case 0:
                        print("zero")
                    case _:
                        pass
            with torch.no_grad():
                try:
                    y = torch.ones(2, requires_grad=True) * 2  # @inspect y.requires_grad
                    raise ValueError("no")
                except ValueError as error:
                    note(f"Caught {error}.")  # inside a block
                finally:
                    done = True  # @inspect done
            random = torch.rand(3)  # @inspect random
            tenth = torch.tensor([0.1, -2.0], dtype=torch.bfloat16)  # @inspect tenth as bits
            random.add_(1)
        ''',
    "hostile": '''
        """<script>alert(1)</script>"""
        from litbook import misbelief, note, question

        SCRIPT = "</script><script>alert('1')</script>"

        def main():
            hostile()

        def hostile():
            """Quotes " ' ` and <b>bold</b> </script>"""
            note("A <script>alert(2)</script>, [a link](javascript:alert(3)), \\u202egnirts and `<i>` in code.")
            note(f"{SCRIPT} <img src=x onerror=alert(4)> [@nobody]")
            misbelief("<svg onload=alert(5)>", "</details><script>alert(6)</script>")
            a = SCRIPT  # @inspect a
            b = "\\u202e" + 'quotes \\' "'  # @inspect b
            c = "x" * 100_000  # @inspect c
            d = list(range(100_000))  # @inspect d
            e = 10 ** 3000  # @inspect e
            print(SCRIPT)
            question("<script>alert(7)</script>?", answer=SCRIPT, hint="</summary><script>alert(8)</script>")
        ''',
    "beside": '''
        """Modules beside the lecture."""
        from peaks import PEAKS, fastest

        from litbook import note

        def main():
            one()

        def one():
            """One."""
            x = fastest()  # @inspect x, PEAKS
            assert x == 3
        ''',
    "figures": '''
        """Figures."""
        from matplotlib.figure import Figure

        from litbook import figure as draw, note
        import litbook

        def plot(n):
            fig = Figure(figsize=(2, 1))
            fig.subplots().plot([0, n])
            draw(fig, caption="by a helper", alt="a line")

        def main():
            one()

        def one():
            """One."""
            fig = Figure(figsize=(2, 1))
            draw(fig, caption="A **figure**", alt="empty \\"axes\\"")
            plot(3)
            for i in range(2):
                litbook.note(f"turn {i}")
        ''',
    "parent": '''
        """A parent that goes on."""
        import random

        from litbook import note

        def main():
            part()

        def part():
            """Part."""
            x = random.random()  # @inspect x
            child()
            y = random.random()  # @inspect y
            assert x != y
            child_in_a_loop = 0
            for _ in range(2):
                grandchild()

        def child():
            """Child."""
            z = random.random()  # @inspect z

        def grandchild():
            """Grandchild."""
            w = 1  # @inspect w
        ''',
}  # fmt: skip
PEAKS = "from dataclasses import dataclass\nfrom more import base\n\nPEAKS = {'a': 1, 'b': base() + 1}\nTEXT = '''it's'''\n\n\ndef fastest():\n    return max(PEAKS.values())\n"
MORE = "def base():\n    return 2\n"
MODULES = {"peaks.py": PEAKS, "more.py": MORE}


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> dict[str, model.Record]:
    folder = tmp_path_factory.mktemp("lectures")
    for name, text in MODULES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: record(folder, text, f"lecture_{name}.py") for name, text in LECTURES.items()}


@pytest.fixture(scope="module")
def hostile(records) -> Notebook:
    return document(records["hostile"], modules=MODULES)["index.ipynb"]


@pytest.fixture(scope="module")
def made(records) -> dict[str, str]:
    found = {}
    for name, it in records.items():
        for file, text in ipynb.files(it, modules=MODULES).items():
            found[f"{name}/{file}"] = text
    return found


@pytest.fixture(scope="module")
def executed(made, tmp_path_factory) -> dict[str, Any]:
    return notebooks.run(made, tmp_path_factory.mktemp("reader"))


def sources(text: str, kind: str = "code") -> list[str]:
    return [c.source for c in nbformat.reads(text, as_version=4).cells if c.cell_type == kind]


# ---------------------------------------------------------------------------- it runs on its own


@pytest.mark.parametrize("name", LECTURES)
def test_every_sample_runs_where_litbook_is_not_and_prints_what_was_recorded(name, made, executed):
    mine = [key for key in made if key.startswith(f"{name}/")]
    assert mine
    for key in mine:
        errors = [o for c in executed[key].cells for o in c.get("outputs", []) if o.output_type == "error"]
        assert errors == []
        assert notebooks.differences(made[key], executed[key]) == []


def test_the_kernel_of_these_tests_really_has_no_litbook(tmp_path):
    text = nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import litbook")]))
    outputs = notebooks.run({"a": text}, tmp_path)["a"].cells[0].outputs
    assert [(o.ename, o.evalue) for o in outputs] == [("ModuleNotFoundError", "No module named 'litbook'")]


def test_a_changed_value_is_a_difference(made, executed):
    key = "parent/part.ipynb"
    assert notebooks.differences(made[key].replace("w = 1\\n", "w = 2\\n"), executed[key]) != []


def test_what_was_recorded_is_in_the_file(made):
    cells = (
        nbformat.reads(made["tour/loops-and-views.ipynb"], as_version=4).cells
        if ("tour/loops-and-views.ipynb" in made)
        else []
    )
    text = "".join(notebooks.said(c.get("outputs", [])) for c in cells)
    assert "total = 0\ntotal = 2\ntotal = 6\n" in text
    assert "total …" in text
    assert "quick = 42\n" in text
    assert "share = 50 %\n" in "".join(map(notebooks_text, made.values()))


def test_chinese_names_coroutines_and_functions_are_shown(executed):
    text = "".join(notebooks.said(c.get("outputs", [])) for c in executed["future/index.ipynb"].cells)
    for line in ("值 = 3", "p = 点(x=3, y=0.5)", "x = 1.5", "found = [0, 1, 2]", "values = [2, 2, 2]", "m = 6",
                 "leaving", "x.shape = (2,)", "n = 1", "集 = {'a', 'b'}", "<Caught no.>", "Colour.RED = Colour.RED",
                 "tenth = bfloat16 (2,): [0.100098, -2], bits 0 01111011 1001101, 1 10000000 0000000",
                 "Pair(1, p.x) = Pair(left=1, right=3)"):  # fmt: skip
        assert f"{line}\n" in text, line


# ---------------------------------------------------------------------------- what is in it


def test_prose_is_markdown_sections_are_headings_and_questions_hide_their_answer(made):
    prose = sources(made["future/index.ipynb"], "markdown")
    assert prose[0].startswith("# From the future\n\n")
    assert "## Names in Chinese: 名字" in prose
    assert "汉字 and `代码`, and $a_1 < b$." in prose
    question = next(text for text in prose if text.startswith("**Check yourself.** How many?"))
    assert "<details><summary>Hint</summary>\n\none more\n\n</details>" in question
    assert "<details><summary>Answer</summary>\n\n<code>4 calls</code>\n\n</details>" in question
    assert "*This section stays a function: it returns early.*" in "\n".join(prose)


def test_a_first_cell_says_what_it_needs_and_what_colab_lacks(made):
    first = sources(made["tour/index.ipynb"] if "tour/index.ipynb" in made else next(
        text for name, text in made.items() if name.startswith("tour/")), "markdown")[0]  # fmt: skip
    assert re.search(r"It needs Python 3\.11 or later with jaxtyping [\d.]+, torch [\d.]+", first)
    assert "On Colab, run `%pip install jaxtyping` first." in first


def test_the_same_record_gives_the_same_bytes_and_every_cell_has_its_own_id(records, made):
    for name, it in records.items():
        for file, text in ipynb.files(it, modules=MODULES).items():
            assert text == made[f"{name}/{file}"]
            ids = [cell.id for cell in nbformat.reads(text, as_version=4).cells]
            assert len(set(ids)) == len(ids)


def test_hidden_lines_are_folded_and_definitions_are_marked(made):
    cells = nbformat.reads(made["tour/loops-and-views.ipynb"], as_version=4).cells
    hidden = next(c for c in cells if "hidden = 10" in c.source)
    assert "hide-input" in hidden.metadata.tags
    assert hidden.metadata.jupyter == {"source_hidden": True}
    helper = next(c for c in cells if c.source.startswith("def double"))
    assert "definition" in helper.metadata.tags


FOLDED = {"source_hidden": True}, "form"  # in JupyterLab, and on Colab


def folded(cell):
    return cell.metadata.get("jupyter"), cell.metadata.get("cellView")


def test_a_notebook_begins_with_the_lesson(made):
    for text in made.values():
        cells = nbformat.reads(text, as_version=4).cells
        assert len(cells[1].source.splitlines()) <= 5 and folded(cells[1]) == FOLDED
        assert cells[1].source.startswith("# @title Helpers: run once\n")


def test_imports_stand_folded_right_before_the_first_code(made):
    for name in (it for it in made if it.startswith("tour/")):
        cells = nbformat.reads(made[name], as_version=4).cells
        imports, *_ = (i for i, cell in enumerate(cells) if cell.cell_type == "code" and i > 1)
        assert cells[imports].source.startswith("# @title Imports\n") and folded(cells[imports]) == FOLDED


def test_an_answer_is_folded_with_its_code_wherever_one_opens_the_notebook(made):
    cells = nbformat.reads(made["future/index.ipynb"], as_version=4).cells
    (cell,) = (cell for cell in cells if "show_answer(" in cell.source)
    assert cell.source == 'show_answer(n + 1, "calls")' and folded(cell) == FOLDED
    (output,) = cell.outputs
    assert output.data["text/markdown"] == (
        "<details><summary>Answer, computed</summary>\n\n    answer = 4 calls\n\n</details>"
    )


def test_where_litbook_is_installed_a_notebook_uses_it(made, monkeypatch, tmp_path):
    helpers = nbformat.reads(made["future/index.ipynb"], as_version=4).cells[1].source
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("litbook", "asyncio"):
        monkeypatch.setitem(sys.modules, name, sys.modules[name])
    monkeypatch.setattr(asyncio, "run", asyncio.run)
    monkeypatch.setattr(runtime, "SEED", 7)
    exec(helpers, {})
    assert sys.modules["litbook"] is runtime and runtime.SEED == 0
    assert not Path("litbook.py").exists()
    monkeypatch.setitem(sys.modules, "litbook.notebook.runtime", None)
    monkeypatch.delitem(sys.modules, "litbook")
    exec(helpers, {})
    assert Path(str(sys.modules["litbook"].__file__)).parent == Path.cwd()


def test_constants_are_folded(tmp_path):
    it = record(tmp_path, section("a = WIDE  # @inspect a", "WIDE = 10\n"))
    cells = nbformat.reads(ipynb.files(it)["index.ipynb"], as_version=4).cells
    (constant,) = [c for c in cells if "WIDE = 10" in c.source]
    assert constant.source == "# @title Constants\nWIDE = 10"
    assert folded(constant) == FOLDED


def test_a_measured_value_says_where_and_when(made):
    text = "".join(notebooks_text(made[name]) for name in made if name.startswith("tour/"))
    assert re.search(r"seconds = 250 ms   \(measured on .+, \d+ \w+ \d{4}\)", text)


def notebooks_text(text: str) -> str:
    return "".join(
        o.get("text", "") for c in nbformat.reads(text, as_version=4).cells for o in c.get("outputs", [])
    )


def test_a_gpu_section_is_guarded_and_says_that_no_gpu_was_here(made):
    for name, text in made.items():
        if name.startswith("tour/") and "Only where there is a GPU" in text:
            cell = next(s for s in sources(text) if "on the device" in s)
            assert cell.startswith('if has_device("cuda"):\n')
            assert "It is not recorded on a GPU yet." in "\n".join(sources(text, "markdown"))
            return
    pytest.fail("no notebook has the GPU section")


def test_a_gpu_section_has_the_recorded_outputs_with_device_and_date(records, tmp_path):
    text = dedent('''
        """L."""
        import torch
        from litbook import requires
        def main():
            one()
        @requires("cuda")
        def one():
            """One."""
            x = 3  # @inspect x
    ''')
    here = record(tmp_path, text)
    there = record(tmp_path, text.replace('@requires("cuda")\n', ""))
    h200 = replace(there.environment.device, kind="cuda", slug="nvidia-h200", name="NVIDIA H200")
    there = replace(there, environment=replace(there.environment, device=h200, date="2026-11-19T00:00:00Z"))
    one = here.by_key["one"]
    values = tuple(replace(v, line=v.line + 1) for v in there.by_key["one"].values)  # below the decorator
    there = fill(there, "one", depends=one.depends, first=one.first, values=values)
    made = ipynb.files(here, recordings=[there])["index.ipynb"]
    assert "x = 3\n" in notebooks_text(made)
    assert "The outputs are from NVIDIA H200, 19 Nov 2026" in "\n".join(sources(made, "markdown"))


def test_citations_are_named_and_listed_and_links_lead_to_sections(tmp_path):
    it = record(tmp_path, section('note("As [@glu2020] says, see [here](#two) and [there](#nowhere).")').replace(
        "    one()\n", "    one()\n    two()\n") + "\ndef two():\n    '''Two `x` more.'''\n    y = 1\n")  # fmt: skip
    made = ipynb.files(it, bibliography=WORK)["index.ipynb"]
    prose = sources(made, "markdown")
    assert "As ([N. Shazeer 2020](https://example.org/a)) says, see [here](#Two-x-more) and there." in prose
    assert prose[-1] == (
        "## References\n\n- N. Shazeer. [*Gated &#91;units&#93; &#42;here&#42;*](https://example.org/a). 2020."
    )


# ---------------------------------------------------------------------------- what went wrong stays visible


def test_a_failed_claim_is_an_error_where_it_stands_and_the_notebook_goes_on(tmp_path):
    it = record(tmp_path, section('x = 2\nassert x == 3, "three"\ny = 5  # @inspect y'))
    made = ipynb.files(it)["index.ipynb"]
    cells = [c for c in nbformat.reads(made, as_version=4).cells if c.cell_type == "code"]
    failed = next(c for c in cells if "assert" in c.source)
    assert "raises-exception" in failed.metadata.tags
    assert failed.outputs[0].ename == "AssertionError" and failed.outputs[0].evalue == "three"
    assert "2 == 3" in failed.outputs[0].traceback
    done = notebooks.run({"a": made}, tmp_path)["a"]
    assert notebooks.differences(made, done) == []
    assert "y = 5\n" in "".join(notebooks.said(c.get("outputs", [])) for c in done.cells)


def test_a_section_that_raised_stays_a_function_whose_call_raises(tmp_path):
    it = record(tmp_path, section('print("before")\nx = {}["a"]\ny = x  # @inspect y'))
    made = ipynb.files(it)["index.ipynb"]
    call = nbformat.reads(made, as_version=4).cells[-1]
    assert call.source.endswith("one()")
    assert [o.output_type for o in call.outputs] == ["stream", "error"]
    assert call.outputs[1].ename == "KeyError"


def test_an_expression_that_could_not_be_shown_is_a_comment(tmp_path):
    it = record(tmp_path, section("size = 1  # @inspect siez\ny = size"))
    made = sources(ipynb.files(it)["index.ipynb"])[-1]
    assert "pass  # siez is not shown: @inspect siez raised NameError: name 'siez' is not defined" in made


def test_nothing_of_a_hostile_record_is_markup_in_a_notebooks_prose(made):
    prose = "\n".join(sources(made["hostile/index.ipynb"], "markdown"))
    assert "<script" not in prose and "<img" not in prose and "javascript:" not in prose
    assert "\u202e" not in prose and "⟨U+202E⟩" in prose
    assert "`<i>` in code" in prose


def test_a_notebook_is_small_whatever_a_lecture_shows(made):
    assert len(made["hostile/index.ipynb"]) < 42_000  # the words of its `show` included


# ---------------------------------------------------------------------------- the way to it


def footer(folder: Path, made: model.Record, github: str = "") -> str:
    """What the page of a lecture says of its notebook."""
    pages = Pages(Project(folder), [LectureRuns("lecture_02", made, [], None)], colab=github)
    blocks = map(str, pages.text("lectures/lecture_02/index.md", []).blocks)
    (way,) = (block for block in blocks if "lb-nb-way" in block)
    return way


def test_a_page_links_the_file_of_its_notebook_and_colab_where_that_can_fetch_it(tmp_path):
    made = record(tmp_path, section("x = 1\nassert x == 1"))
    way = footer(tmp_path, made)
    assert 'href="notebooks/index.ipynb" download="lecture_02.ipynb"' in way
    assert "colab" not in way and "mybinder" not in way
    way = footer(tmp_path, made, "https://github.com/owner/repo/blob/gh-pages/")
    at = "lectures/lecture_02/notebooks/index.ipynb"
    assert f'href="https://colab.research.google.com/github/owner/repo/blob/gh-pages/{at}"' in way
    file = at.replace("/", "%2F")
    assert f'href="https://mybinder.org/v2/gh/owner/repo/gh-pages?urlpath=lab%2Ftree%2F{file}"' in way
    way = footer(tmp_path, made, "https://github.com/owner/repo/blob/main/docs")
    assert f"/owner/repo/blob/main/docs/{at}" in way
    assert f"/owner/repo/main?urlpath=lab%2Ftree%2Fdocs%2F{file}" in way


# ---------------------------------------------------------------------------- the lectures


@pytest.fixture(scope="module", params=["lecture_02", "lecture_03", "lecture_04", "lecture_05"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def lecture(site: Path, name: str) -> dict[str, str]:
    """The notebooks of the built site, as a reader downloads them."""
    files = sorted((site / "lectures" / name / "notebooks").rglob("*.ipynb"))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


@pytest.mark.slow
def test_all_notebooks_of_a_lecture_run_and_print_what_was_recorded(lecture, tmp_path):
    assert len(lecture) >= 3
    done = notebooks.run(lecture, tmp_path)
    wrong = {}
    for file, text in lecture.items():
        errors = [f"{o.ename}: {o.evalue}" for c in done[file].cells for o in c.get("outputs", [])
                  if o.output_type == "error"]  # fmt: skip
        found = errors + notebooks.differences(text, done[file])
        if found:
            wrong[file] = found
    assert wrong == {}


def test_every_page_of_a_lecture_links_to_the_file_of_its_notebook(site, name, lecture):
    folder = site / "lectures" / name
    for file in lecture:
        page = (folder / file.removesuffix(".ipynb") / "index.html").read_text(encoding="utf-8")
        assert f'href="../notebooks/{file}" download="{name}-{file}"' in page
        cells = nbformat.reads(lecture[file], as_version=4).cells[1:]
        first = next(i for i, cell in enumerate(cells) if cell.cell_type == "markdown")
        before = [cell.source for cell in cells[:first] if folded(cell) != FOLDED or cell is cells[0]]
        assert len("\n".join(before).splitlines()) <= 10, "the lesson begins below one folded cell"


def test_the_formatting_of_values_is_that_of_the_stand_in():
    for value, text in [(3, "3"), (2.5, "2.5"), (1 / 3, "0.333333"), (True, "True"), (10**6, "1,000,000")]:
        assert runtime.format_value(value) == runtime.number(value) == text


@pytest.mark.parametrize(
    "empty", [set(), frozenset(), deque(), [], (), {}], ids=lambda value: type(value).__name__
)
def test_what_is_empty_is_said_alike_of_a_live_and_of_a_recorded_value(empty):
    kind = type(empty).__name__
    recorded = model.Mapping(kind, 0) if kind == "dict" else model.Sequence(kind, 0)
    said = "deque()" if kind == "deque" else repr(empty)
    assert runtime.format_value(empty) == in_words(recorded) == said


# ---------------------------------------------------------------------------- the setting for Colab


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://github.com/owner/repo/blob/gh-pages", True),
        ("https://github.com/owner/repo/blob/gh-pages/site", True),
        ("https://github.com/owner/repo", False),
        ("owner/repo", False),
        ("https://example.org/owner/repo/blob/main", False),
        ("https://github.com/owner/repo/blob/main?x=<script>", False),
        (7, False),
    ],
)
def test_an_address_that_colab_cannot_use_is_a_warning_and_gives_no_link(given, kept, caplog):
    config = {"extra": {"colab": given}}
    LitbookPlugin()._check_colab(config)
    assert bool(config["extra"]["colab"]) is kept
    if kept:
        assert caplog.text == ""
    else:
        assert f"mkdocs.yml: extra.colab is {given!r}" in caplog.text
        assert "expected https://github.com/OWNER/REPOSITORY/blob/BRANCH" in caplog.text


def test_rows_of_a_matrix_stand_below_each_other():
    assert runtime.tensor("int64", (2, 4), "cpu", 64, list(range(8)), "", 0) == (
        "int64 (2, 4): [\n    [0, 1, 2, 3],\n    [4, 5, 6, 7]]"
    )
    assert runtime.tensor("int64", (2, 2), "cpu", 32, [1, 2, 3, 4], "", 0) == "int64 (2, 2): [[1, 2], [3, 4]]"
    assert runtime.tensor("float32", (2, 4), "cuda:0", 32, [], "", 0) == "float32 (2, 4) on cuda:0, 32 B"
