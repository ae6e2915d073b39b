"""Prose: Markdown stays Markdown, everything else is text, and nothing in it can run."""

from __future__ import annotations

import html.parser
import io
import logging
import re
import time

import markdown
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from rich.console import Console
from rich.markdown import Markdown
from tests.notebooks import NOTE_ELEMENTS
from tests.running import record, sampled, section

from litbook.finding import Finding, Place
from litbook.html import elements, page
from litbook.markdown import bibliography, grammar, mathml, to_html
from litbook.markdown import citations_html as references
from litbook.markdown.links import Citations, NoteContext
from litbook.notebook.markdown import NotebookMarkdown

REFERENCES = bibliography.parse(
    """
    @article{glu, author={Shazeer, Noam}, title={{GLU} Variants}, year=2020, eprint={2002.05202}, archivePrefix={arXiv}}
    @misc{other, author={A and B and C and D}, title={On <script>}, url={https://example.org/a}}
    """
)
# As in mkdocs.yml.
SITE = [
    "admonition",
    "attr_list",
    "md_in_html",
    "tables",
    "toc",
    "pymdownx.highlight",
    "pymdownx.superfences",
]
ELEMENTS = NOTE_ELEMENTS | mathml.ELEMENTS


def rendered(text: str, found: NoteContext) -> str:
    """The note's blocks, separated and ended by blank lines."""
    return "".join(f"{block}\n\n" for block in to_html.blocks(text, found))


def setting() -> NoteContext:
    place = Place("lectures/lecture_02.py", 7)
    sections = {"transpose": "../memory/#transpose"}
    return NoteContext(Citations(REFERENCES), place=place, resolve=sections.get)


def site(text: str) -> str:
    """`text` as a page of the site shows it."""
    return markdown.markdown(rendered(text, setting()), extensions=SITE)


def problems(text: str) -> list[str]:
    found = setting()
    rendered(text, found)
    return [str(problem) for problem in found.problems]


class Witness(html.parser.HTMLParser):
    """Everything in a page that could run, load or lead elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ELEMENTS:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            clean = re.sub(r"[\s\x00-\x1f]", "", value or "").lower()
            if name.startswith("on") or name in ("src", "srcset", "action", "formaction"):
                self.found.append(f"{tag} {name}")
            if name == "href" and not clean.startswith(("http://", "https://", "mailto:", "#", "../")):
                self.found.append(f"{tag} {name}={value}")
            if name == "style" and not clean.startswith("text-align:"):
                self.found.append(f"{tag} {name}={value}")

    def handle_comment(self, data):
        self.found.append("comment")

    def handle_decl(self, decl):
        self.found.append("declaration")

    def handle_pi(self, data):
        self.found.append("instruction")


def dangers(page: str) -> list[str]:
    witness = Witness()
    witness.feed(page)
    witness.close()
    return witness.found


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "`unbalanced <script>alert(1)</script>",
        "```\n<script>alert(1)</script>",
        "``` {onclick=alert(1)}\nx\n```",
        "para\n{: onclick=alert(1) }",
        "# head {: onclick=alert(1) }",
        "# head {onclick=alert(1)}\n\n# two { #id onclick=alert(1) }",
        "*a*{: onclick=alert(1)}",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt&colon;alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](java\tscript:alert(1))",
        "[x][y]\n\n[y]: javascript:alert(1)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "<javascript:alert(1)>",
        "![x](https://elsewhere.org/x.png)",
        "![x][y]\n\n[y]: https://elsewhere.org/x.png",
        "<img src=x onerror=alert(1)>",
        "<div markdown onclick=alert(1)>\n\n# x\n\n</div>",
        '[x](https://a.b "t\\" onclick=alert(1)")',
        "[a](http://x/$y$) onclick=",
        "$\\href{javascript:alert(1)}{x}$",
        "$\\text{<script>alert(1)</script>}$",
        "\x02wzxhzdk:0\x03 \x02klzzwxh:0001\x03",
        '!!! note onclick=x "<script>"\n    <script>',
        "| a |\n|---|\n| <script> |",
        "<!-- --><!DOCTYPE x><?php ?>",
        "</div></div><script>",
        "[@glu](javascript:x) [@<script>]",
    ],
)
def test_nothing_in_a_note_can_run(text):
    assert dangers(site(text)) == []


def test_raw_html_is_shown_as_it_was_written():
    assert "&lt;b&gt;bold&lt;/b&gt;" in site("<b>bold</b>")


def test_the_witness_sees_what_it_should():
    assert dangers("<script>x</script>") == ["<script>"]
    assert dangers("<a href='javascript:x' onclick=y>") == ["a href=javascript:x", "a onclick"]


def test_paragraphs_lists_tables_and_admonitions_stay_what_they_are():
    page = site(
        'A *b* **c**\n\n- one\n- two\n\n1. x\n\n| a | b |\n|---|--:|\n| x | 2 |\n\n!!! tip "T"\n    body'
    )
    for part in (
        "<em>b</em>",
        "<strong>c</strong>",
        "<li>one</li>",
        "<ol>",
        ">a</th>",
        'class="admonition tip"',
    ):
        assert part in page


@pytest.mark.parametrize(
    ("rule", "cells", "edge"),
    [
        ("---", ["1", "2,048.5", "`7`"], "right"),
        ("---", ["−3 GB", "≈ 4.5 MiB", "–", ""], "right"),
        ("---", ["1e6 FLOP/s", "12 %", "3×"], "right"),
        ("---", ["1", "one"], ""),
        ("---", ["8 x 128", "2 of 3"], ""),
        ("---", ["", ""], ""),
        (":--", ["1", "2"], "left"),
        (":-:", ["1", "2"], "center"),
        ("--:", ["one", "$x$"], "right"),
    ],
)
def test_a_column_of_numbers_ends_at_one_edge_unless_the_author_says_where(rule, cells, edge):
    made = rendered(f"| | name |\n|{rule}|---|\n" + "\n".join(f"| {it} | x |" for it in cells), setting())
    found = re.findall(r"<tr>&#10;<t[hd](?: style=.text-align: (\w+);.)?>", made)
    assert found == [edge] * (len(cells) + 1)
    assert "<td>x</td>" in made, "and words begin at one"


def test_a_heading_stays_a_heading_below_the_section_and_has_an_id():
    found = setting()
    found.ids, found.level = "transpose", 2
    assert rendered("# The `x_y` of *it* {#evil}", found).startswith("### The <code>x&#95;y</code>")
    page = html.unescape(site("# The `x_y` of *it* {onclick=x}"))
    assert '<h3 id="note-1">The <code>x_y</code> of <em>it</em> {onclick=x}</h3>' in page


def test_code_is_escaped_and_a_fence_is_coloured():
    assert "<code>a&lt;b</code>" in site("`a<b`")
    page = site("```python\nif x: '<b>'\n```")
    assert '<span class="k">if </span>' in page
    assert "&lt;b&gt;" in page


def test_a_fence_in_a_list_stays_in_the_list():
    assert "<li>" in site("- a\n\n    ```python\n    x = 1\n    ```").split("<pre")[0]


def test_a_fence_that_is_never_closed_ends_with_the_note():
    assert "after" in site("```python\nx = 1\n\nafter").split("<pre")[1]


def test_mathematics_becomes_mathml():
    page = site("costs $2 \\times 3$ and\n\n$$\nn \\cdot w\n$$")
    assert "<mn>2</mn><mo>×</mo><mn>3</mn>" in page
    assert '<math display="block">' in page


def test_dollars_with_prices_are_no_mathematics():
    assert "$5 and $6" in site("It costs $5 and $6.")


def test_backslashes_and_stars_in_mathematics_are_not_emphasis():
    page = site("$a * b$ and $c * d$ and $x_1$ and $x_2$")
    assert "<em>" not in page


@pytest.mark.parametrize(
    "formula", ["$\\frac{1$", "$\\foo{x}$", "$x^{$", "$" + "{" * 900 + "$", "$" + "x" * 3000 + "$"]
)
def test_a_formula_that_cannot_be_shown_is_a_problem_with_its_place(formula):
    found = problems(formula)
    assert len(found) == 1
    assert found[0].startswith("lectures/lecture_02.py:7:1: this is not LaTeX that can be shown: $")


def test_citations_become_numbers_in_the_order_of_their_first_use():
    found = setting()
    page = rendered("A [@other; @glu] and again [@glu].", found)
    assert page.count('href="#ref-other"') == 1
    assert page.count('href="#ref-glu"') == 2
    assert '>1</a>, <a href="#ref-glu"' in page
    _heading, listed = references.references(found.citations)
    assert listed.index('id="ref-other"') < listed.index('id="ref-glu"')
    assert "On &lt;script&gt;" in listed


def test_an_unknown_citation_is_a_problem_and_names_the_nearest_key():
    assert problems("[@glue]") == [
        "lectures/lecture_02.py:7:1: [@glue] is in no bibliography; did you mean [@glu]?\n    add it to references.bib"
    ]


def test_links_lead_out_or_to_sections_and_nowhere_else():
    assert 'href="https://example.org/a_b"' in site("https://example.org/a_b.")
    assert 'href="https://example.org"' in site("<https://example.org>")
    assert 'href="../memory/#transpose"' in site("[there](#transpose)")
    (said,) = problems("[there](#nowhere)")
    assert said == (
        "lectures/lecture_02.py:7:1: no page shows a section, helper, class or line 'nowhere' to link to\n"
        "    link to a function or class that this lecture defines, without @hide, or name its module in __beside__"
    )
    assert "a note cannot link to 'other.md'" in problems("[there](other.md)")[0]


def test_a_problem_stands_at_the_start_of_its_statement_and_a_hidden_helper_is_no_target(tmp_path):
    text = section(
        'link(Work, "a class")\nlink(helper, "a helper")\nlink(secret, "hidden")',
        "class Work:\n    pass\n\n\ndef helper(a):\n    pass\n\n\ndef secret(a):  # @hide\n    pass\n",
    )
    found: list[Finding] = []
    page.pages(record(tmp_path, text), {}, [], found)
    (problem,) = found
    assert str(problem) == (
        "lecture_sample.py:23:5: no page shows a section, helper, class or line 'secret' to link to\n"
        '    link(secret, "hidden")\n'
        "    ^\n"
        "    link to a function or class that this lecture defines, without @hide, or name its module in __beside__"
    )


def test_a_picture_in_a_note_is_a_problem():
    assert "a note cannot hold a picture" in problems("![x](https://a.b/c.png)")[0]


def test_controls_and_direction_marks_are_visible():
    page = site("a\u202eb\x00c\x1bd")
    for name in ("⟨U+202E⟩", "⟨U+0000⟩", "⟨U+001B⟩"):
        assert name in page


def test_a_short_text_stays_inline():
    assert to_html.inline("the `loss` of *it*", setting()) == "the <code>loss</code> of <em>it</em>"
    assert to_html.inline("# not a heading", setting()) == "# not a heading"


def test_a_block_stays_on_one_line():
    for block in rendered("a\n\nb\n\n- c\n\n```\nd\ne\n```", setting()).split("\n\n"):
        assert "\n" not in block.strip()


HOSTILE = st.sampled_from(
    ["<script>", "</script>", "<img onerror=x src=y>", "{: onclick=x}", "[a](javascript:b)", "`", "```", "~~~", "$", "$$", "\\",
     "[@glu]", "![", "](", ")", "<!--", "-->", "\n", "\n\n", "    ", "\t", "&#106;", "&lt;", "\x02", "\x03", "wzxhzdk:0", "klzzwxh:0000",
     "\\text{", "}", "_", "*", "#", "|", "|---|", "!!! note", "- ", "1. ", "> ", "<a href=", "'", '"', "\\href{javascript:x}{y}",
     "https://x.y/", "<https://x.y>", "[x]: javascript:y", "onclick=alert(1)", "??? note", '=== "', "[^", "]: ", "[@tab:", "<div markdown>", "</div>", "\u202e", "😀", "word "]
)  # fmt: skip


@given(st.lists(st.one_of(HOSTILE, st.text(max_size=5)), max_size=25).map("".join))
@example("[a](http://x/$y$)")
@example("<div markdown>\n\n{: onclick=x}")
def test_whatever_a_note_holds_its_page_holds_nothing_that_runs(text):
    assert dangers(site(text)) == []


@given(st.text(max_size=200))
def test_a_heading_made_of_any_text_says_that_text(text):
    page = markdown.markdown(f"# {elements.for_heading(elements.text(text))} {{#here}}", extensions=SITE)
    body = re.fullmatch(r'<h1 id="here">(.*)</h1>', page, re.S)
    plain = " ".join(re.sub(r"⟨U\+[0-9A-F]{4,}⟩|[^\x20-\x7e]", "", text).split())
    if not plain:
        return
    assert body is not None
    shown = " ".join(re.sub(r"⟨U\+[0-9A-F]{4,}⟩|[^\x20-\x7e]", "", html.unescape(body[1])).split())
    assert shown == plain


# ---------------------------------------------------------------------------- the bibliography


def test_a_reference_reads_authors_title_year():
    _heading, works = references.references(Citations(REFERENCES, ["glu", "other"]))
    assert (
        '<li id="ref-glu">Noam Shazeer. <a href="https://arxiv.org/abs/2002.05202"><cite>GLU Variants</cite></a>. 2020.</li>'
        in works
    )
    assert '<li id="ref-other">A et al. ' in works


# ---------------------------------------------------------------------------- prose that no author means

ODD = ["-", "=", "[", "![", "*", "#", "> ", "$", "`", "_", "(", "<", "&", "\\", "|", "|-", "{", "~~~\n", "http://a[", "[a](",
       "[a][", "[@a;", "$$", "$$ x\n", "!!! note\n", "- ", "- \n", "- a\n", "    - a\n", "1. ", "# a\n", "> a\n", "*_",
       "??? a\n", '=== "a"\n', "[^a]", "[^a]: ", ": a\n", "[@tab:a]: ", "[@eq:a]: $$", "- [x] ", "==a", "\\(", ":::"]  # fmt: skip
NOTES = NotebookMarkdown({}, {}, {}, {}, {})


def everywhere(text: str) -> str:
    """A note as a page, a notebook and a terminal have it; the page comes back."""
    notebook = NOTES.note(text)
    markdown2html_mistune(notebook)
    Console(file=io.StringIO(), width=100).print(Markdown(text))
    return site(text)


@given(
    st.lists(st.sampled_from([*ODD, " ", "\n", "\n\n", "    ", "a", "]", ")", "**"]), max_size=60).map(
        "".join
    )
)
def test_no_note_is_too_odd_for_a_page_a_notebook_and_a_terminal(text):
    assert dangers(everywhere(text)) == []


@pytest.mark.parametrize("unit", sampled(ODD, 3))
def test_the_longest_degenerate_note_takes_a_moment(unit):
    text = (unit * grammar.LONGEST)[: grammar.LONGEST]
    before = time.process_time()
    everywhere(text)
    assert time.process_time() - before < 8  # 1 to 3 s; minutes where each bracket reads the whole note


def test_a_note_that_is_too_long_is_text_and_a_problem():
    text = "*a* " * (grammar.LONGEST // 4 + 1)
    assert "<em>" not in site(text)
    assert problems(text) == [
        "lectures/lecture_02.py:7:1: this note is longer than 20,000 characters\n    make it several notes"
    ]


def nested(depth: int) -> str:
    return "".join(f"{'    ' * level}- x\n" for level in range(depth))


@pytest.mark.parametrize("text", [nested(9), nested(70), "> " * 9 + "x", "> " * 500 + "x"], ids=len)
def test_a_note_nested_so_deeply_that_no_room_is_left_is_text_and_a_problem(text):
    assert not re.search("<(ul|blockquote)", site(text))
    assert problems(text) == [
        "lectures/lecture_02.py:7:1: this note is nested too deeply to be laid out\n    make it several notes"
    ]


def test_eight_lists_within_one_another_are_lists():
    assert site(nested(8)).count("<ul>") == 8
    assert problems(nested(8)) == []


def test_accents_and_dashes_are_ordinary_text():
    entry = bibliography.parse('@misc{g, author="G{\\"o}del, Kurt", title={A -- B}}')["g"]
    assert entry.authors == ("Kurt Gödel",)
    assert entry.title == "A – B"


def test_an_address_that_could_run_is_left_out():
    assert bibliography.parse("@misc{g, title={A}, url={javascript:alert(1)}}")["g"].url == ""


@pytest.mark.parametrize(
    "text, message",
    [
        ("@misc{a, title={A}}\n@misc{a, title={B}}", "refs.bib:1 and refs.bib:2: the key 'a' is used twice"),
        ("@misc{a, title={A", "refs.bib:1: not BibTeX: "),
        ("@misc{a, year=2020}", "refs.bib: the entry 'a' has no title"),
    ],
)
def test_a_bibliography_that_cannot_be_used_says_where_and_why(text, message):
    with pytest.raises(bibliography.BibliographyError) as error:
        bibliography.parse(text, "refs.bib")
    assert str(error.value).startswith(message)


def test_a_broken_bibliography_is_said_once_with_its_shown_path_and_the_users_line(tmp_path, caplog, capfd):
    (tmp_path / "lectures").mkdir()
    file = tmp_path / "lectures" / "refs.bib"
    file.write_text("@misc{a, title={A}}\n\n@article{b,\n  title={B\n}\n\n@misc{c, title={C}}\n")
    with caplog.at_level(logging.DEBUG), pytest.raises(bibliography.BibliographyError) as error:
        bibliography.read(file)
    assert str(error.value) == (
        "lectures/refs.bib:3: not BibTeX: Unexpected block start: `@misc`. "
        "Was still looking for field-value closing `,` or `}`\n"
        "    @article{b,\n"
        "    look at this entry for a brace, a quotation mark or a comma that is missing"
    )
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("bibtexparser").level == logging.NOTSET  # as it was


def test_a_missing_bibliography_names_the_file(tmp_path):
    with pytest.raises(bibliography.BibliographyError, match=r"none\.bib does not exist"):
        bibliography.read(tmp_path / "none.bib")
