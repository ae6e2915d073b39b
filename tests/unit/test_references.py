"""Links lead to other lectures and to lines of files; what leads nowhere is told by the run, too."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
from tests.running import command, record, section, write

from litbook.finding import Finding
from litbook.html import page
from litbook.page import other_lectures

OTHER = '''
    """Another lecture."""
    from litbook import note

    LIMIT = 3


    def helper(x):
        return x


    def main():
        first_part()
        second_part()


    def first_part():
        """The first part."""
        a_step()


    def a_step():
        """A step."""
        helper(LIMIT)


    def second_part():
        """The second part."""
        note("Nothing.")
'''


def addresses(folder: Path, *names: str) -> list[str]:
    """Where links to these names lead, from the page of a lecture beside `OTHER`; "" where they lead nowhere."""
    write(folder, OTHER, "lecture_other.py")
    notes = "\n".join(f'note("[here](#{name})")' for name in names)
    made, found = record(folder, section(notes)), list[Finding]()
    body = page.pages(made, {}, (), found, other_lectures.sitemap_finder(folder))["index.md"]
    paragraphs = body.split('class="lb-prose"')[1:]
    assert len(paragraphs) == len(names)
    return [it.partition('href="')[2].partition('"')[0] for it in paragraphs]


def test_a_link_leads_to_another_lectures_sections_helpers_and_lines(tmp_path: Path) -> None:
    assert addresses(
        tmp_path,
        "lecture_other",
        "lecture_other.a_step",
        "lecture_other.helper",
        "lecture_other.lecture_other.py:23",
        "lecture_sample.py:9",
        "lecture_other.nothing",
        "lecture_none.a_step",
        "lecture_sample.py:900",
        "..lecture_other",
    ) == [
        "../lecture_other/",
        "../lecture_other/first-part/#a_step",
        "../lecture_other/first-part/#helper",
        "../lecture_other/first-part/#L23",
        "#L9",
        "",
        "",
        "",
        "",
    ]


def test_a_lecture_that_cannot_be_read_is_no_target(tmp_path: Path) -> None:
    write(tmp_path, "def main(:", "lecture_bad.py")
    assert other_lectures.sitemap_finder(tmp_path)("lecture_bad") is None
    assert other_lectures.sitemap_finder(tmp_path)("../lecture_bad") is None


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "references.bib").write_text("@misc{glu, title={GLU}, year=2020}")
    write(tmp_path, OTHER, "lecture_other.py")
    return tmp_path


def test_a_run_tells_links_and_citations_that_lead_nowhere(book: Path) -> None:
    body = 'note("As in [@glue], see [it](#lecture_other.a_stop).")\nlink("#lecture_other.a_step")\nlink("@glu", "It")'
    lecture = write(book, section(body))
    done = command("--quiet", lecture)
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout == (
        "lecture_sample.py:11:18: [@glue] is in no bibliography; did you mean [@glu]?\n"
        f"{MARKED}{'^':>18}\n"
        "    add it to references.bib\n\n"
        "lecture_sample.py:11:35: no page shows a section, helper, class or line 'lecture_other.a_stop' to link to\n"
        f"{MARKED}{'^':>35}\n"
        "    link to a function or class that this lecture defines, without @hide, or name its module in __beside__\n\n"
        "0 claims hold, 0 fail, 0 not run; 2 problems beside claims\n"
    )


MARKED = '    note("As in [@glue], see [it](#lecture_other.a_stop).")\n'


def test_what_leads_nowhere_is_told_at_its_line_and_column_in_a_block(book: Path) -> None:
    body = """\
        note(r\"\"\"
            The first line cites [@glu].

            Then comes $\\alpha$ and [@glue], and on the next line
            [a link](#one) is fine, [another](#lecture_other.a_stop) is not.
        \"\"\")
        link("#lecture_other.a_stop")
        misbelief("Said [@none].", r\"\"\"
            Run, as [others](#nobody)
            [@glu] say.
        \"\"\")
    """
    lecture = write(book, section(dedent(body)))
    told = re.findall(
        r"^lecture_sample.py:(\d+:\d+): (.*?)(?:;| to link to|$)", command("--quiet", lecture).stdout, re.M
    )
    missing = "no page shows a section, helper, class or line"
    assert told == [
        (place(lecture, "@glue"), "[@glue] is in no bibliography"),
        (place(lecture, "#lecture_other.a_stop) is"), f"{missing} 'lecture_other.a_stop'"),
        (place(lecture, '#lecture_other.a_stop")'), f"{missing} 'lecture_other.a_stop'"),
        (place(lecture, "@none"), "[@none] is in no bibliography"),
        (place(lecture, "#nobody"), f"{missing} 'nobody'"),
    ]


def place(file: Path, words: str) -> str:
    """Line and column of the only place in a file where these words stand."""
    before, _ = file.read_text(encoding="utf-8").split(words)
    return f"{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"


def test_a_run_whose_references_are_there_says_nothing_of_them(book: Path) -> None:
    lecture = write(book, section('note("As in [@glu], `[@none]`, see [it](#one).")'))
    done = command("--quiet", lecture)
    assert (done.returncode, done.stdout) == (0, "0 claims hold, 0 fail, 0 not run\n")


def test_outside_a_book_citations_need_a_bibliography_and_in_one_it_may_be_missing(tmp_path: Path) -> None:
    lecture = write(tmp_path, section('note("As in [@glue].")'))
    done = command("--quiet", lecture)
    assert (done.returncode, done.stdout) == (0, "0 claims hold, 0 fail, 0 not run\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: A book\nplugins: [litbook: {lectures: .}]\n")
    done = command("--quiet", lecture)
    assert done.returncode == 1 and "[@glue] is in no bibliography" in done.stdout
    (tmp_path / "mkdocs.yml").write_text("plugins: [litbook: {lectures: ., bibliography: refs.bib}]\n")
    done = command("--quiet", lecture)
    assert done.returncode == 1 and "/refs.bib does not exist\n    [@key] cites an entry of" in done.stdout
