"""Lectures in edtrace's words and lectrace's: what each word hands over, what they read, and which lines are code."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.running import failures, judged, line_of, messages, one, record, section, shown, write
from tests.unit.test_author import PIXEL
from tests.unit.test_terminal import printed

import litbook
import litbook.edtrace.words as edtrace
from litbook import cli
from litbook.edtrace.markup import as_markdown
from litbook.errors import AuthorError, LitbookError
from litbook.finding import Finding
from litbook.html import page
from litbook.markdown import grammar
from litbook.page.runs import LectureRuns
from litbook.project import Project
from litbook.record import model
from litbook.record.limits import OUTPUT
from litbook.site import plugin
from litbook.site.pages import Pages

HEAD = "import sys\nfrom edtrace import image, link, note, plot, system_text, text\n"


def lecture(body: str, head: str = HEAD) -> str:
    """A lecture of one section in edtrace's words."""
    return section(body).replace(litbook_head(), head)


def litbook_head() -> str:
    return section("pass").partition("\n\n")[0] + "\n"


def said(made: model.Record) -> list[tuple[str, ...]]:
    """The pieces of the section: kind, text, data."""
    return [(it.kind, it.text, it.data)[: 3 if it.kind == "link" else 2] for it in one(made).pieces]


def errors(made: model.Record) -> list[str]:
    """What went wrong in the section."""
    return [it.message for it in one(made).errors]


def kinds(made: model.Record) -> dict[str, str]:
    """What each statement of the section is, by the text of its first line."""
    lines, first = made.sources[0].text.split("\n"), one(made).first
    return {lines[first + it.first - 1].strip(): it.kind for it in one(made).statements}


# ------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('text("A *paragraph*.")', ("note", "A *paragraph*.")),
        ('text("grey", style={"color": "gray"})', ("note", "grey")),
        (r'text("a\n  b ``` c", verbatim=True)', ("note", "````\na\n  b ``` c\n````")),
        ('note("slowly")', ("speaker", "slowly")),
        ('link("https://example.org/a")', ("link", "https://example.org/a", "https://example.org/a")),
        ('link(title=" [page]", url="https://example.org/a")', ("link", "[page]", "https://example.org/a")),
        ("link(one)", ("link", "one", "function:one")),
        ("link(sorted)", ("note", "`sorted`")),
        ('link(title="Slides", url="slides.pdf")', ("note", "Slides (`slides.pdf`)")),
        ('link("https://arxiv.org/pdf/2001.00001v2.pdf")',
         ("link", "arXiv:2001.00001", "https://arxiv.org/pdf/2001.00001v2.pdf")),
        ('link(Reference("On sheep", ["Ann Lee", "Bo Chi"], date="2020-05", url="https://example.org"))',
         ("link", "On sheep (Lee+ 2020)", "https://example.org")),
        (r'text("a = 1\n", language="python")', ("note", "```python\na = 1\n```")),
        ('table([{"a": 1, "b": "x|y"}, {"a": 2}], caption="Pens")',
         ("note", "*Pens*\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 | None |")),
        ('table([[i] for i in range(20)], ["n"], head=1, tail=1)',
         ("note", "| n |\n| --- |\n| 0 |\n| … |\n| 19 |")),
        ('graph(make_graph([{"id": 1, "label": "Ann"}, {"id": 2}, {"id": 3}], [{"source": 1, "target": 2}]))',
         ("note", "- Ann → 2\n- 3")),
        ('system_text(["printf", "\\033[1mbold\\033[0m\\n"])', ("note", "```\nbold\n```")),
        ('video("https://example.org/v.mp4")', ("link", "video", "https://example.org/v.mp4")),
    ],
)  # fmt: skip
def test_each_word_hands_over_what_it_is_in_ours(
    tmp_path: Path, line: str, expected: tuple[str, ...]
) -> None:
    head = "from lectrace import Reference, link, note, system_text, table, text, video\n"
    head += "from litbook.edtrace.words import graph, make_graph\n"
    assert said(record(tmp_path, lecture(line, head), words="lectrace")) == [expected]


def test_directives_of_theirs_are_read_as_the_nearest_of_ours(tmp_path: Path) -> None:
    body = 'text("a"), text("b")  # @animate\nx = 1  # @inspect x @animate\ny = 2  # @invisible'
    made = record(tmp_path, lecture(body), words="edtrace")
    assert messages(made) == [] and shown(made, "x") == [1]
    assert [it.kind for it in one(made).statements] == ["doc", "piece", "code", "hidden"]


def test_what_no_word_can_show_is_an_error_of_its_line(tmp_path: Path) -> None:
    made = record(tmp_path, lecture("link(3)"), words="edtrace")
    assert errors(made) == ["AuthorError: link() takes an address, a reference or a function, not int"]


def test_without_the_words_a_lecture_imports_the_library_itself(tmp_path: Path) -> None:
    [message] = messages(record(tmp_path, lecture("pass")))
    assert message.endswith(
        "ModuleNotFoundError: No module named 'edtrace'\n"
        "its words are here: litbook run --words edtrace, or words: edtrace in mkdocs.yml"
    )
    assert "edtrace" not in sys.modules


def test_the_names_are_there_for_the_run_alone_and_each_module_by_its_own(tmp_path: Path) -> None:
    head = "import edtrace.execute_util as words\nfrom execute_util import text\nfrom arxiv_util import Reference\n"
    before, trace = dict(sys.modules), sys.gettrace
    assert said(record(tmp_path, lecture('words.text("one")', head), words="edtrace")) == [("note", "one")]
    assert not {"edtrace", "execute_util", "arxiv_util"} & sys.modules.keys() - before.keys()
    assert sys.gettrace is trace


def test_who_ports_imports_the_words_from_litbook(tmp_path: Path) -> None:
    made = record(tmp_path, lecture('text("one")', "from litbook.edtrace.words import text\n"))
    assert said(made) == [("note", "one")] and kinds(made)['text("one")'] == "piece"


def test_the_title_is_the_first_heading(tmp_path: Path) -> None:
    made = record(tmp_path, f'{HEAD}\ndef main():\n    text("# Sheep")\n', words="edtrace")
    assert made.title == "Sheep"


def test_a_lecture_that_asks_for_its_tracing_gets_the_old_answer_and_others_the_true_one(
    tmp_path: Path,
) -> None:
    head = HEAD + "ask = eval('lambda: bool(sys.gettrace())', {'sys': sys})\n"
    body = "here = bool(sys.gettrace())  # @inspect here\nthere = ask()  # @inspect there"
    made = record(tmp_path, lecture(body, head), words="edtrace")
    assert shown(made, "here") + shown(made, "there") == [
        True,
        bool(sys.gettrace()),
    ]


# ------------------------------------------------------------------------ what counts as a word

UTIL = """
    from edtrace import link, text

    def article(url):
        return link(title=" [article]", url=url)

    def shout(*words):
        text("**" + " ".join(words).upper() + "**")

    def table(n):
        rows = [str(i) for i in range(n)]
        text(", ".join(rows))
"""


def test_a_word_is_one_by_what_is_called_and_not_by_how_it_is_imported(tmp_path: Path) -> None:
    write(tmp_path, UTIL, "shepherd.py")
    body = """
        shepherd.article("https://example.org")
        text("Of"), shepherd.shout("sheep"), say("and goats.")
        table(3)
        say("counted"), len("sheep")
        x = say("kept")
    """
    head = f"{HEAD}import shepherd\nfrom shepherd import table\nsay = text\n"
    made = record(tmp_path, lecture(body, head), words="edtrace")
    assert kinds(made) == {
        '"""One."""': "doc",
        'shepherd.article("https://example.org")': "piece",
        'text("Of"), shepherd.shout("sheep"), say("and goats.")': "piece",
        "table(3)": "code",
        'say("counted"), len("sheep")': "code",
        'x = say("kept")': "code",
    }


def test_an_author_declares_a_word(tmp_path: Path) -> None:
    before = """
        from litbook import word

        @word
        def table(n):
            rows = [str(i) for i in range(n)]
            note(", ".join(rows))
    """
    made = record(tmp_path, section("table(3)", before))
    assert kinds(made)["table(3)"] == "piece" and said(made) == [("note", "0, 1, 2")]
    with pytest.raises(AuthorError, match="takes a function: write `@word` on the line above its `def`"):
        litbook.word(3)  # type: ignore[arg-type]


def test_a_terminal_prints_the_prose_of_a_wrapper_once_and_not_its_line(tmp_path: Path) -> None:
    before = """
        def say(words):
            note(words)
    """
    text = printed(write(tmp_path, section('say("Sheep.")\nx = 3\nprint("goat")', before)))
    assert text.count("Sheep.") == 1 and 'print("goat")' in text and "x = 3" in text


def test_a_page_has_the_prose_of_a_wrapper_once_and_a_link_in_the_paragraph_of_its_note(
    tmp_path: Path,
) -> None:
    write(tmp_path, UTIL, "shepherd.py")
    body = """
        text("Of sheep"), article("https://example.org/a"), text(", which are many.")
        for name in ("Ann", "Bo"):
            text(f"Item {name}")
    """
    made = record(tmp_path, lecture(body, f"{HEAD}from shepherd import article\n"), words="edtrace")
    drawn = "".join(page.pages(made).values())
    link = '<a href="https://example.org/a">[article]</a>'
    assert f"<p>Of sheep {link}, which are many.</p>" in drawn and drawn.count("which are many") == 1
    assert "<p>Item Ann</p>" in drawn and "<p>Item Bo</p>" in drawn


def test_what_never_ran_stands_as_its_prose(tmp_path: Path) -> None:
    body = """
        link(3)
        text("Of sheep."), link(title=" [b]", url="https://example.org/b")
        link(paper), link(one)
        note("a joke")
    """
    made = record(tmp_path, lecture(body), words="edtrace")
    assert [it.prose for it in one(made).statements if it.prose] == [
        "Of sheep.\n\n[[b]](https://example.org/b)",
        "`paper`\n\n[one](#one)",
    ]


# ------------------------------------------------------------------------ what a lecture reads


def test_a_terminal_prints_no_line_of_which_all_is_words(tmp_path: Path) -> None:
    before = """
        def say(words):
            note(words)
    """
    text = printed(write(tmp_path, section('note("Sheep"), say("and goats")\nnote("a"), print("b")', before)))
    assert "Sheep\n\nand goats\n" in text and "say(" not in text.partition("Sheep")[2]
    assert text.index("\na\n") < text.index('note("a"), print("b")') < text.index("│ b")


def test_a_lecture_reads_what_stands_beside_it_and_writes_into_a_copy(tmp_path: Path) -> None:
    (tmp_path / "pens").mkdir()
    (tmp_path / "pens" / "old.txt").write_text("woolly")
    (tmp_path / "sheep.csv").write_text("1,2\n")
    body = """
        from pathlib import Path
        name = "sheep"
        assert Path(f"{name}.csv").read_text() == "1,2\\n"
        Path("sheep.csv").write_text("none")
        Path("pens/new.txt").write_text("shorn")
        assert sorted(it.name for it in Path("pens").iterdir()) == ["new.txt", "old.txt"]
    """
    made = record(tmp_path, section(body))
    assert messages(made) == [] and {it.verdict for it in one(made).claims} == {"holds"}
    assert (tmp_path / "sheep.csv").read_text() == "1,2\n"
    assert [it.name for it in (tmp_path / "pens").iterdir()] == ["old.txt"]


def test_what_is_not_named_is_not_copied_and_the_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "goats").write_text("3")
    (tmp_path / "cows").write_text("4")
    [message] = messages(
        record(tmp_path, section('import os\nos.listdir("cows"[:0] or ".")\nopen("go" + "ats")'))
    )
    assert message.partition("\n")[0].endswith("No such file or directory: 'goats'")
    assert message.endswith("beside the lecture, which reads a copy of what its text quotes, up to 1 GiB")


def test_what_is_hidden_installed_or_leads_away_is_not_copied(tmp_path: Path) -> None:
    for place in ("data/.git", "data/site-packages", "data/env"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "data" / "env" / "pyvenv.cfg").touch()
    (tmp_path / "data" / "here").touch()
    (tmp_path / "data" / "away").symlink_to("/")
    made = record(tmp_path, section('import os\nfound = sorted(os.walk("data"))  # @inspect found'))
    assert "'here'" in repr(one(made).snapshots) and "away" not in repr(one(made).snapshots)
    assert "site-packages" not in repr(one(made).snapshots) and "pyvenv" not in repr(one(made).snapshots)


def test_a_picture_that_is_elsewhere_is_shown_from_its_copy_and_without_one_says_how_to_get_it(
    tmp_path: Path,
) -> None:
    url = "https://example.org/a.png"
    text = lecture(f'image("{url}", width=100)')
    key = hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    file = tmp_path / "var" / "files" / f"image-{key}-https_example_org_a_png"
    missing = f"of {url!r} there is no copy\nin the lecture's folder: curl --create-dirs -Lo"
    [message] = errors(record(tmp_path, text, words="edtrace"))
    assert message == (
        f"AuthorError: nothing is fetched while a lecture runs, and {missing} 'var/files/{file.name}' {url!r}"
    )
    file.parent.mkdir(parents=True)
    file.write_bytes(PIXEL)
    [piece] = one(record(tmp_path, text, words="edtrace")).pieces
    assert (piece.kind, piece.alt) == ("image", "a")


def test_a_picture_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    made = record(tmp_path, lecture('image("pens/a.png")'), words="edtrace")
    assert errors(made) == [
        "AuthorError: image() cannot find 'pens/a.png': it is read from beside the lecture"
    ]


def test_a_paper_has_the_title_that_edtrace_left_beside_the_lecture(tmp_path: Path) -> None:
    query = "http://export.arxiv.org/api/query?id_list=2001.00001"
    key = hashlib.md5(query.encode(), usedforsecurity=False).hexdigest()
    (tmp_path / "var" / "files").mkdir(parents=True)
    write(
        tmp_path / "var" / "files",
        """
        <feed xmlns="http://www.w3.org/2005/Atom"><entry><title>On
          sheep</title><published>2020-01-02T00:00:00Z</published>
        <author><name>Ann Lee</name></author></entry></feed>
        """,
        f"arxiv-{key}-http_export_arxiv_org_api_query_id_list_2001_00001",
    )
    made = record(tmp_path, lecture('link("https://arxiv.org/abs/2001.00001")'), words="edtrace")
    assert said(made) == [("link", "On sheep (Lee 2020)", "https://arxiv.org/abs/2001.00001")]


def test_a_picture_beside_the_lecture_has_its_name_for_words(tmp_path: Path) -> None:
    (tmp_path / "pens").mkdir()
    (tmp_path / "pens" / "two-sheep_a.png").write_bytes(PIXEL)
    made = record(tmp_path, lecture('image("pens/two-sheep_a.png", width=300)'), words="edtrace")
    assert [(it.kind, it.alt, it.width) for it in one(made).pieces] == [("image", "two sheep a", 300)]


# ------------------------------------------------------------------------ plots

PLOT = 'plot({"mark": "bar", "title": "Sheep"})'


class Chart:
    """A chart of Altair."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> Chart:
        return cls(spec)

    def save(self, file: io.StringIO, *, format: str) -> None:  # noqa: A002  Altair's name
        file.write(
            f'<{format} xmlns="http://www.w3.org/2000/svg"><text>{self.spec["mark"]}</text></{format}>'
        )


def test_a_plot_is_drawn_where_altair_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", SimpleNamespace(Chart=Chart))
    [piece] = one(record(tmp_path, lecture(PLOT), words="edtrace")).pieces
    assert (piece.kind, piece.alt) == ("figure", "Sheep")
    assert piece.data == '<svg xmlns="http://www.w3.org/2000/svg"><text>bar</text></svg>'


def test_a_plot_is_its_data_where_nothing_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    [(kind, text)] = said(record(tmp_path, lecture(PLOT), words="edtrace"))
    assert kind == "note" and text.startswith('A plot, as its data: Sheep\n\n```json\n{\n "mark": "bar",')


# ------------------------------------------------------------------------ where it is said


def test_the_command_line_says_in_whose_words_a_lecture_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, lecture('text("Sheep.")\nassert 1 < 2'))
    assert cli.litbook(["run", "--words", "edtrace", str(path), "--device", "cpu"]) == 0
    assert "Sheep." in capfd.readouterr().out


@pytest.mark.parametrize(("option", "expected"), [("words: lectrace", "lectrace"), ("unbacked: warn", "")])
def test_a_book_says_in_whose_words_its_lectures_are(tmp_path: Path, option: str, expected: str) -> None:
    write(tmp_path, f"plugins:\n  - litbook:\n      {option}\n", "mkdocs.yml")
    assert Project.words_around(tmp_path / "lectures" / "lecture_01.py") == expected


def test_a_book_in_words_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "plugins: [{litbook: {words: edtrase}}]\n", "mkdocs.yml")
    with pytest.raises(
        LitbookError, match=r"mkdocs.yml: words is 'edtrase'\n    there are: edtrace, lectrace"
    ):
        record(tmp_path, section("pass"))


def test_a_site_in_other_words_has_no_notebooks_and_names_the_words_there_are() -> None:
    site = plugin.LitbookPlugin()
    assert site.load_config({"words": "edtrace"}) == ([], [])
    assert site.choices().without == {"notebooks", "workbook"}
    [(name, error)] = plugin.LitbookPlugin().load_config({"words": "edtrase"})[0]
    assert name == "words" and "('', 'edtrace', 'lectrace')" in str(error)


def test_a_lecture_that_imports_these_words_has_a_page_and_no_notebook(tmp_path: Path) -> None:
    text = section('text("Hello.")', "from litbook.edtrace.words import text\n")
    of = LectureRuns("lecture_sample", record(tmp_path, text), [], None)
    found = list[Finding]()
    made = dict(Pages(Project(tmp_path), [of]).lecture_files(of, found))
    assert not found and "lectures/lecture_sample/index.md" in made
    assert not [name for name in made if "notebook" in name]
    assert "notebooks/" not in str(made["lectures/lecture_sample/index.md"])


def test_the_table_of_words_names_each() -> None:
    for name in ("text", "note", "link", "image", "video", "plot", "system_text"):
        assert f"`{name}(" in str(edtrace.__doc__)


# ------------------------------------------------------------------------ habits of other people's lectures


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("a <b>bold </b>word, <EM>slanted</EM>", "a **bold** word, *slanted*"),
        ('BT<font color="red">D</font> x', "BTD x"),
        ('<span style="color: grey"><b>B</b></span>', "**B**"),
        ('<font color="teal">t</font> <u>u</u>', "t u"),
        ("- one<br>(two)", "- one\\\n(two)"),
        ("| a<br/>b |\n|---|", "| a b |\n|---|"),
        ('<a href="https://example.org/?a=1&amp;b=2">there</a>', "[there](https://example.org/?a=1&amp;b=2)"),
        ("the token <img>, </s> and <ref> x", r"the token \<img>, \</s> and \<ref> x"),
        ("`<b>` stays, $a<b$ and <https://example.org>", "`<b>` stays, $a<b$ and <https://example.org>"),
        ("```\n<b>code</b>\n```\n<i>x</i>", "```\n<b>code</b>\n```\n*x*"),
        ("a<script>alert('x')</script>b<!-- c -->", "ab"),
        ('<b onclick="run()">x</b><iframe src="https://example.org"></iframe>', "**x**"),
        ("1 < 2 and <3", "1 < 2 and <3"),
        (": n = 9", r"\: n = 9"),
    ],
)
def test_html_in_a_text_is_what_a_note_has_for_it(html: str, markdown: str) -> None:
    assert as_markdown(html) == markdown
    assert [it.what for it in grammar.read(markdown).refusals] == []


def test_a_picture_in_a_text_stands_between_its_words(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PIXEL)
    made = record(
        tmp_path, lecture('text(\'Before <img src="a.png" width="9"> and <b>after</b>\')'), words="edtrace"
    )
    assert [(it.kind, it.text, it.alt) for it in one(made).pieces] == [
        ("note", "Before ", ""), ("image", "", "a"), ("note", "and **after**", "")
    ]  # fmt: skip


def test_prose_with_html_that_never_ran_is_shown_the_same(tmp_path: Path) -> None:
    text = f'{HEAD}\ndef main():\n    one()\n\ndef one():\n    if len(sys.argv) > 99:\n        text("a <b>word</b>")\n'
    made = record(tmp_path, text, words="edtrace")
    text_of_page = "\n".join(page.pages(made).values())
    assert "<strong>word</strong>" in text_of_page
    assert "<p>a &lt;b" not in text_of_page


PAPER = """<html><head><meta name="citation_title" content="On sheep &amp;
  goats" /><meta name="citation_author" content="Lee, Ann" /><meta name="citation_author" content="Chi, Bo" />
<meta name="citation_date" content="2020/05/06" /></head><body><meta name="citation_title" content="no"></body>"""


@pytest.mark.parametrize(
    ("content", "label"),
    [
        (PAPER, "On sheep & goats (Lee+ 2020)"),
        (PAPER.replace("Lee, Ann", "Sheep Team"), "On sheep & goats (Sheep Team 2020)"),
        ("<html><head></head>", "arXiv:2005.00001"),
    ],
)
def test_a_paper_has_the_title_of_its_page_that_edtrace_keeps_by_now(
    tmp_path: Path, content: str, label: str
) -> None:
    address = "https://arxiv.org/abs/2005.00001"
    name = hashlib.md5(address.encode(), usedforsecurity=False).hexdigest()
    copy = tmp_path / f"var/files/arxiv-{name}-https_arxiv_org_abs_2005_00001.00001"
    copy.parent.mkdir(parents=True)
    copy.write_text(content, encoding="utf-8")
    made = record(tmp_path, lecture('link("https://arxiv.org/pdf/2005.00001v3.pdf")'), words="edtrace")
    assert said(made) == [("link", label, "https://arxiv.org/pdf/2005.00001v3.pdf")]


def test_a_file_that_is_to_be_downloaded_is_the_one_beside_the_lecture_or_an_error(tmp_path: Path) -> None:
    head = HEAD + "from edtrace.file_util import cached, download_file, relativize\nimport os\n"
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "a.txt").write_text("here", encoding="utf-8")
    body = 'download_file("https://example.org/a.txt", os.path.join("var", "a.txt"))\n'
    body += (
        'size, here = os.path.getsize(os.path.join("var", "a.txt")), relativize(os.getcwd())  # @inspect\n'
    )
    body += 'download_file("https://example.org/b.txt", "b.txt")'
    made = record(tmp_path, lecture(body, head), words="edtrace")
    [message] = errors(made)
    assert message.startswith(
        "AuthorError: nothing is fetched while a lecture runs, and of 'https://example.org/b.txt'"
    )
    assert message.endswith("curl --create-dirs -Lo 'b.txt' 'https://example.org/b.txt'")


def test_inspect_alone_shows_what_its_line_assigns_and_of_a_function_its_parameters(tmp_path: Path) -> None:
    body = """
        a, (b, *c) = 1, (2, 3)  # @inspect
        d = [0]
        d[0] += f(a, y=4)  # @inspect
        for e in (5,):  # @inspect
            pass
    """
    text = lecture(textwrap.dedent(body)) + "\n\ndef f(x, *, y):  # @inspect\n    return x + y\n"
    made = record(tmp_path, text, words="edtrace")
    assert sorted({it.text for entry in made.sections for it in entry.values}) == [
        "a",
        "b",
        "c",
        "d[0]",
        "e",
        "x",
        "y",
    ]
    assert shown(made, "d[0]") == [5] and shown(made, "e") == [5] and shown(made, "y") == [4]


def test_a_class_says_what_is_shown_in_the_place_of_its_objects(tmp_path: Path) -> None:
    body = """
        class Node:
            def __lectrace__(self):
                return {"val": 3}
        class Loop:
            def __lectrace__(self):
                return self
        class Bad:
            def __lectrace__(self):
                raise ValueError("no")
        node, loop, bad = Node(), Loop(), Bad()  # @inspect
    """
    made = record(tmp_path, lecture(textwrap.dedent(body)), words="edtrace")
    node, loop, bad = (one(made).snapshots[it.value] for it in one(made).values if it.value is not None)
    assert isinstance(node, model.Mapping)
    assert isinstance(loop, model.Opaque) and loop.why == "__lectrace__ gives another such object"
    assert isinstance(bad, model.Opaque) and bad.why == "__lectrace__ raised ValueError"


def test_a_lecture_may_begin_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("plugins: [litbook: {words: lectrace}]\n", encoding="utf-8")
    folder = tmp_path / "lectures"
    folder.mkdir()
    (folder / "01_sheep.py").write_text(lecture('text("one")'), encoding="utf-8")
    (folder / "02_helpers.py").write_text("x = 1\n", encoding="utf-8")
    assert Project.find(tmp_path).names() == ["01_sheep"]
    assert Project.find(tmp_path).overlooked_files() == []
    assert record(tmp_path, lecture('text("one")'), words="edtrace").title == "Lecture sample"


@pytest.mark.parametrize("foreign", [False, True])
def test_what_never_ran_and_zero_against_zero_are_remarks_in_foreign_words(
    tmp_path: Path, foreign: bool
) -> None:
    body = "peak = 0\nassert peak == 0\nif peak:\n    x = 1  # @inspect x"
    made = record(tmp_path, lecture(body), words="edtrace")
    found = judged(made, {"unbacked": "off"}, words="edtrace" if foreign else "")
    about = [str(finding) for finding in (found.warnings if foreign else found.errors)]
    assert sum("never ran: @inspect x" in it for it in about) == 1
    assert sum("both sides are zero" in it for it in about) == 1
    assert (found.errors == []) == foreign


# ------------------------------------------------------------------------ system_text


def test_a_commands_output_is_cut_where_it_is_long(capsys: pytest.CaptureFixture[str]) -> None:
    edtrace.system_text(["yes"])  # for ever
    assert len(capsys.readouterr().out) < OUTPUT + 20


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ls", r"takes a list, \['git', '--version'\], not 'ls'"),
        ([], r"takes a list"),
        (["no-such-command"], "cannot run 'no-such-command': No such file or directory"),
        (["sh", "-c", "echo first; echo last; exit 3"], "ended with status 3: last"),
        (["false"], "'false' ended with status 1: it printed nothing"),
        (["sleep", "9"], r"waited 0.1 s for 'sleep 9'\nallow it more: timeout=60"),
        (["sh", "-c", "exec >&- 2>&-; sleep 9"], r"waited 0.1 s for "),
    ],
)  # fmt: skip
def test_a_command_that_gives_no_text_is_an_error(command: Any, says: str) -> None:
    with pytest.raises(AuthorError, match=rf"system_text\(\):? .*{says}"):
        edtrace.system_text(command, timeout=0.1)


# ------------------------------------------------------------- lectures that are not written for litbook

ODD = '''
from edtrace import link, text


def main():
    text("### Counting")
    text("What a step costs.")
    steps()


def steps():
    """Steps."""
    text("A step costs 240 FLOPs [paper]."), link(title="The paper", url="https://arxiv.org/abs/1706.03762")
    text("It is called 7 times.")
    for dim in range(2):
        # @ inspect dim
        y = dim * 2  # @inspect y
        # @inspect y
    done = True  # @todo the rest
    z = 1  # @inspect y[
    assert done
'''


def test_what_edtrace_takes_for_a_comment_is_a_remark(tmp_path: Path) -> None:
    made = record(tmp_path, ODD, words="edtrace")
    found = judged(made, {"unbacked": "off"}, words="edtrace")
    assert found.errors == []
    unread = [it for it in found.warnings if it.code == "unread-directive"]
    assert [it.what for it in unread] == [
        "unknown directive @ inspect",
        "unknown directive @todo",
        "@inspect cannot read 'y[': '[' was never closed",
        "@inspect stands on a line of its own and belongs to no statement",
    ]
    assert [it.text for it in one(made, "steps").values][:1] == ["y"]


COMMENTS = {  # as they stand in courses, or might; each with the expressions that it shows
    "# @ inspect y": [],
    "# @clear": [],
    "# @stepover": [],
    "# @inspect x, @inspect y": ["x", "y"],
    "#@inspect y @stepover @clear x": ["y"],
    "# @inspect y @clear x y": ["y"],
    "# Spanish + English @inspect y": ["y"],
    "# [batch trial] @inspect y": ["y"],
    "# Latex @stepover": [],
    "# @inspect x.real y.real": ["x.real", "y.real"],
    "# @inspect y unknown  # Doesn't propagate to x!": ["y"],
    "# @inspect unknown # Warning: this doesn't work": [],
    "# @inspect self.Q": [],
    "# @hide this": [],
    "# @stepover x": [],
    "# @inspect y.": [],
    "# @inspect: y": [],
    "# @inspect (y": [],
    "# @inspect y - what it is": [],
    "# @inspect y, which is it": ["y"],
    "# @INSPECT y": [],
    "# @inspects y": [],
    "# @inspect y = 3": [],
    "# @animate y": [],
    "# mail me@clear.com, @percyliang": [],
}


def test_the_odd_lines_of_courses_run_and_are_at_most_remarks(tmp_path: Path) -> None:
    """One lecture has them all, behind a statement, on a line of its own, and behind `else:`."""
    lines, at = ["x = 1"], dict[str, int]()
    for comment in COMMENTS:
        at[comment] = len(lines)
        lines += [f"y = x + 1  {comment}", comment]
    lines += [
        "if x == 2:",
        "    pass",
        *(line for c in COMMENTS for line in (f"else:  {c}", f"    x = 1  {c}")),
    ][:4]
    body = "\n".join(f"    {line}" for line in lines)
    text = f"from edtrace import text\n\n\ndef main():\n    one()\n\n\ndef one():\n    text('One.')\n{body}\n    assert x == 1\n"
    made = record(tmp_path, text, words="edtrace")
    found = judged(made, words="edtrace")
    assert failures(made) == [] and found.errors == []
    first = line_of(text, "x = 1") - one(made).first
    values = [v for v in one(made).values if v.kind != "clear"]
    shown = {c: [v.text for v in values if v.line == first + line] for c, line in at.items()}
    assert shown == COMMENTS


def test_the_same_lines_are_errors_in_litbooks_own_words(tmp_path: Path) -> None:
    body = "for dim in range(2):\n    # @ inspect dim\n    print(dim)"
    with pytest.raises(LitbookError, match="unknown directive @ inspect"):
        record(tmp_path, section(body))


def test_a_link_to_a_paper_on_the_line_is_its_citation(tmp_path: Path) -> None:
    made = record(tmp_path, ODD, words="edtrace")
    found = judged(made, {}, words="edtrace")
    assert [it.what for it in found.errors] == ["unbacked: the number '7' in prose"]


def test_a_link_to_a_function_is_no_citation(tmp_path: Path) -> None:
    text = ODD.replace('link(title="The paper", url="https://arxiv.org/abs/1706.03762")', "link(steps)")
    found = judged(record(tmp_path, text, words="edtrace"), {}, words="edtrace")
    assert len(found.errors) == 2


def test_a_heading_in_main_heads_its_sections(tmp_path: Path) -> None:
    made = record(tmp_path, ODD, words="edtrace")
    drawn = "".join(page.pages(made).values())
    assert re.findall(r"^#+ \w+", drawn, re.MULTILINE)[1:] == ["## Counting", "### Steps"]


def test_check_takes_the_words_that_run_takes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, ODD.replace("[paper]", ""))
    chosen = "unread-directive,claim-fails,raised"
    assert cli.litbook(["check", "--words", "edtrace", "--select", chosen, str(path)]) == 0
    told = capfd.readouterr().out
    assert "4 findings: 4 unread-directive; this run: 1 claim holds" in told
