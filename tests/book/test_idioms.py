"""What authors write as Markdown elsewhere: on the page, in the notebook, in a terminal; else an error with a way out."""

from __future__ import annotations

import re
from pathlib import Path

import markdown
import pytest
from tests.notebooks import helpers
from tests.running import command, record, section, write

from litbook.finding import Finding, Place
from litbook.html import page
from litbook.lecture import parse
from litbook.markdown import grammar, to_html
from litbook.markdown.bibliography import BibliographyError
from litbook.markdown.links import Citations, NoteContext
from litbook.markdown.to_markdown import MarkdownWriter
from litbook.notebook import ipynb
from litbook.rules import unbacked_number

IDIOMS = r'''
note("""!!! tip "Mind the width"
    A box whose text the first line's quotation marks have moved.
""")
note("""
??? note "Why it stalls"
    Hidden at first.

[@tab:widths]: Bytes of a number.

| format | bytes |
|--------|------:|
| `float32` | 4 [@glu] |

[@eq:loss]: $$
\\begin{aligned} L &= \\operatorname*{arg\\,max}_x f(x) \\\\ &= \\begin{cases} 1 & x > 0 \\\\ 0 & \\text{else} \\end{cases} \\end{aligned}
$$

$$ E = mc^2 \\tag{A} $$

[@tab:widths] and [@eq:loss], and [@eq:later], which comes later.
""")
note("[@eq:later]: $$ y = x $$")
'''


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory):
    return record(tmp_path_factory.mktemp("idioms"), section(IDIOMS))


@pytest.fixture(scope="module")
def made(told) -> str:
    found: list[Finding] = []
    (text,) = page.pages(told, {}, [], found).values()
    assert [it.code for it in found] == ["unknown-citation"]
    return re.sub(r"&#10;", "\n", text)


def problem(text: str, lines: tuple[str, ...] = ()) -> str:
    """The one thing that is wrong with a note."""
    found = NoteContext(Citations({}), place=Place("a.py", 7), ahead=lines)
    to_html.blocks(text, found)
    (it,) = found.problems
    return str(it)


# ------------------------------------------------------------------------ on the page


def test_a_box_keeps_its_text_whatever_dedenting_has_done_to_it(made):
    assert '<p class="admonition-title">Mind the width</p>\n<p>A box whose text' in made
    one = NoteContext(Citations({}))
    assert to_html.blocks('!!! tip "T"\ntext\n\nmore', one) == to_html.blocks(
        '!!! tip "T"\n    text\n\n    more', one
    )


def test_folds_need_no_script(made):
    assert '<details class="note">\n<summary>Why it stalls</summary>\n<p>Hidden at first.</p>' in made


def test_a_table_has_its_caption_and_a_formula_its_number(made):
    assert (
        '<table>\n<caption><span id="tab-widths" class="lb-name">Table 1.</span> Bytes of a number.</caption>'
        in made
    )
    assert '<span class="lb-math lb-numbered" id="eq-loss"><math display="block">' in made
    assert re.findall(r'class="lb-eqno">(.*?)<', made) == ["(1)", "(A)", "(2)"]
    assert '<a href="#tab-widths">Table 1</a> and <a href="#eq-loss">Equation 1</a>' in made
    assert 'and <a href="#eq-later">Equation 2</a>, which' in made


def test_mathematics_of_several_lines_has_its_rows_and_cases(made):
    assert made.count("<mtr>") == 2 + 2
    assert '<munder><mo movablelimits="true">arg\N{THIN SPACE}max</mo><mi>x</mi></munder>' in made


def test_a_heading_in_a_box_does_not_tear_it_apart():
    (block,) = to_html.blocks('!!! tip "T"\n    # Bold\n\n    text', NoteContext(Citations({})))
    assert "<p><strong>Bold</strong></p>" in block


PARTS = '''"""Parts."""
from litbook import figure, note, requires
from matplotlib.figure import Figure

def main():
    note("The last is [@fig:late].")
    early()
    late()

def early():
    """Early."""
    drawn()

@requires("cuda")
def drawn():
    """Drawn."""
    figure(Figure(), caption="[@fig:gpu]: On a GPU.", alt="Nothing.")

def late():
    """Late."""
    shown()

def shown():
    """Shown."""
    figure(Figure(), caption="[@fig:late]: The rate.", alt="Nothing.")
    note("[@fig:gpu], [@fig:late]")
    note("[@fig:lost]")
    figure(Figure(), caption="[@fig:late]: Again.", alt="Nothing.")
'''


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory):
    return record(tmp_path_factory.mktemp("parts"), PARTS, device="cpu")


def test_figures_are_numbered_through_the_lecture_also_those_of_another_device(parts):
    found: list[Finding] = []
    pages = page.pages(parts, {}, [], found)
    assert 'The last is <a href="late/#fig-late">Figure 2</a>.' in pages["index.md"]
    assert (
        '<figcaption><span id="fig-late" class="lb-name">Figure 2.</span> The rate.</figcaption>'
        in pages["late.md"]
    )
    assert 'Figure 1, <a href="#fig-late">Figure 2</a>' in pages["late.md"]
    twice, lost = map(str, found)
    assert twice == (
        "lecture_sample.py:28:5: [@fig:late]: is the name of something else already\n"
        '    figure(Figure(), caption="[@fig:late]: Again.", alt="Nothing.")\n'
        "    ^\n"
        "    give each figure, table and equation its own"
    )
    assert lost == (
        "lecture_sample.py:27:11: no figure, table or equation of this lecture is named 'fig:lost'\n"
        '    note("[@fig:lost]")\n'
        "          ^\n"
        "    begin its caption with [@fig:lost]:"
    )


# ------------------------------------------------------------------------ elsewhere


def test_a_notebook_says_the_same_in_markdown_that_every_reader_knows(told):
    (text,) = ipynb.files(told).values()
    for part in (
        r"> **Mind the width**\n",
        r"> **Why it stalls**\n",
        "**Table 1.** Bytes",
        "**Equation 1.**\\n",
        "Table 1 and Equation 1, and Equation 2",
    ):
        assert part in text
    assert "'[@tab:widths]:': '**Table 1.**'" in helpers(text)
    assert "'[@eq:later]': 'Equation 2'" in helpers(text)


def test_a_terminal_prints_names_where_it_has_no_numbers_yet(tmp_path):
    done = command(write(tmp_path, section(IDIOMS)), "--device", "cpu")
    assert done.returncode == 0
    for line in (
        "> **Why it stalls**",
        "> Hidden at first.",
    ):
        assert line in done.stdout.splitlines()
    assert "Table widths and Equation loss, and Equation later, which comes later." in done.stdout
    assert not re.search(
        r"^(!!!|\?\?\?|===)|\[\^|\[@(tab|eq):", done.stdout.partition("lecture_sample.py:")[0], re.MULTILINE
    )


def test_code_and_mathematics_are_left_as_they_are():
    text = '`[^a]` and $x[^a]$\n\n```\n!!! tip "T"\n[^a]\n```\n\n$$\n[^a]\n$$'
    note = grammar.read(text)
    assert (MarkdownWriter().markdown(note), note.refusals) == (text, ())


def test_a_page_of_a_notebook_is_made_of_what_a_page_may_hold(told):
    text = MarkdownWriter().markdown(grammar.read(told.by_key["one"].pieces[1].text))
    found = NoteContext(Citations({}))
    assert "<blockquote>" in to_html.blocks(text, found)[0]
    assert [it.code for it in found.problems] == ["unknown-citation"]
    assert "Why it stalls" in markdown.markdown(text)


# ------------------------------------------------------------------------ what is refused

HOLDS = "a note cannot hold "
BOX = 'write !!! note "Title", and indent its text by four spaces'


@pytest.mark.parametrize(
    ("text", "what", "way_out"),
    [
        ("a <b>bold</b> word", f"{HOLDS}HTML: '<b>'", "write it in Markdown, or in backticks"),
        ("one<br>", f"{HOLDS}HTML: '<br>'", "write it in Markdown, or in backticks"),
        ("<!-- x -->", f"{HOLDS}HTML: '<!--'", "write it in Markdown, or in backticks"),
        ('!!! tip "Title', f"{HOLDS}a box that cannot be read: '!!! tip \"Title'", BOX),
        ("x\n\n!!! tip\ntext", "the box 'Tip' is empty: nothing below it is indented", "indent its text by four spaces"),
        ("x[^a]", f"{HOLDS}a footnote: '[^a]'", "write it in brackets, or below in a fold, ??? note"),
        ("[^a]: y", f"{HOLDS}a footnote: '[^a]'", "write it in brackets, or below in a fold, ??? note"),
        ('=== "CPU"\n    Slow.', f"{HOLDS}tabs: '=== \"CPU\"'", 'write a fold for each, ??? note "Title"'),
        ("Term\n: meaning", f"{HOLDS}a definition list: ': meaning'", "write a list: - **term**: what it means"),
        ("- [x] done", f"{HOLDS}a task: '[x] '", "write the sign itself, ☐ or ☑"),
        ("a [word]{.red}", f"{HOLDS}an attribute: '{{.red}}'", "leave it out: notes have no styles and ids"),
        ("::: note\nx", f"{HOLDS}a block of another Markdown: '::: note'", "use a box, !!! note, a table or a list"),
        ("[TOC]", f"{HOLDS}a block of another Markdown: '[TOC]'", "use a box, !!! note, a table or a list"),
        ("x {: .big }", f"{HOLDS}an attribute: '{{: .big }}'", "leave it out: notes have no styles and ids"),
        ("# Head {#here}", f"{HOLDS}an attribute: '{{#here}}'", "leave it out: notes have no styles and ids"),
        ("a ==b== c", f"{HOLDS}marked text: '==b=='", "use *…* or **…**"),
        ("a ~~b c~~ d", f"{HOLDS}marked text: '~~b c~~'", "use *…* or **…**"),
        ("++ctrl+c++", f"{HOLDS}marked text: '++ctrl+c++'", "use *…* or **…**"),
        ("x^2^", f"{HOLDS}a raised or lowered text: '^2^'", "write it as mathematics, $x^2$"),
        ("well :smile:", f"{HOLDS}an icon: ':smile:'", "write the character itself, such as ✓"),
        ("see [this][that]", f"{HOLDS}a link without an address: '[this][that]'", "write [text](https://…)"),
        ("as [@glu, p. 3]", f"{HOLDS}a citation with a place: '[@glu, p. 3]'", "write [@key], and the place as words beside it"),
        ("x\n\n$$ y\n\nz", f"{HOLDS}a formula that does not end: '$$ y'", "close it with $$, with no blank line inside"),
        (r"a $\frac{a}{b} and", rf"{HOLDS}a formula that does not end: '$\\frac{{a}}{{b}} and'", "close it with $, before a blank line"),
        (r"\(x^2\)", r"\(x^2\) is no mathematics here", "write $…$, or $$…$$ on its own"),
        ("[@tab:a]: Alone.", "Table a has a caption and no table", "put the caption above the table"),
        ('```python title="x"\ny\n```', "a fence takes the name of a language, nothing like 'title=\"x\"'", "leave it out; a drawing is a figure(…)"),
        ("a\n\n~~~python\ny\n", "the fence ~~~python does not end", "close it with ~~~"),
        ("> ```\n> y\n\nz", "the fence ``` does not end", "close it with ```"),
        ("Text:\n| a | b |\n|---|\n| c |", "this is no table: |---| has not as many columns as | a | b |", "give each column of the head its |---| below it"),
        ("a | b\n:-: | --- | ---\n", "this is no table: :-: | --- | --- has not as many columns as a | b", "give each column of the head its |---| below it"),
        ("```mermaid\ny\n```", "a fence takes the name of a language, nothing like 'mermaid'", "leave it out; a drawing is a figure(…)"),
        ("see [@fig:a]", "no figure, table or equation of this lecture is named 'fig:a'", "begin its caption with [@fig:a]:"),
    ],
)  # fmt: skip
def test_what_a_note_cannot_hold_is_an_error_with_the_way_out(text, what, way_out):
    assert problem(text) == f"a.py:7:1: {what}\n    {way_out}"


def test_an_error_stands_where_the_file_says_it():
    lines = ('    note("""', "    Fine.", "    And ==marked==.")
    assert problem("Fine.\nAnd ==marked==.", lines) == (
        "a.py:9:9: a note cannot hold marked text: '==marked=='\n"
        "    And ==marked==.\n"
        "        ^\n"
        "    use *…* or **…**"
    )


@pytest.mark.parametrize(
    "text",
    ["`<b>` and `==x==`", r"a \==b\== c", "a == b == c", "a < b and List<int>", "C++ and x[0][1]", "2^3 and 10~20",
     "at 10:30:00", "a [link](https://x.y) (x)", "{a, b}", "*a*: b", "`a`: b", "$x$: b", "$5 and $6", r"\(no mathematics\)", "a: b",
     "````\n[^x]\n````"],
)  # fmt: skip
def test_what_only_looks_like_another_markdown_is_text(text):
    found = NoteContext(Citations({}))
    to_html.blocks(text, found)
    assert found.problems == []


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        (r"a &= b", r"& and \\ stand between \begin{aligned} and \end{aligned}, or the like"),
        (r"a \\ b", r"& and \\ stand between \begin{aligned} and \end{aligned}, or the like"),
        (
            r"\begin{gather} a \end{gather}",
            "the environment 'gather' is unknown; known are aligned, align, align*, ",
        ),
        (r"\DeclareMathOperator{\x}{x}", "it shows nothing"),
        (r"a \tag{1} \tag{2}", r"\tag numbers a formula between $$, and each has one"),
        (r"\label{a} x", r"\label is unknown"),
        (r"\frac{1}", "a brace or an argument is missing"),
        (r"\frac{1}{2", "it opens 2 braces and closes 1"),
        (r"\{ x_{i}} \}", "it opens 1 braces and closes 2"),
    ],
)
def test_a_formula_says_what_in_it_cannot_be_shown(formula, why):
    said = problem(f"$$ {formula} $$")
    assert said.startswith(f"a.py:7:1: this is not LaTeX that can be shown: ${formula}$ ({why}")
    assert said.endswith(")\n    write it in other words, or cut it into several formulas")


def test_a_name_and_a_tag_are_two_numbers():
    assert r"($it has a" not in (said := problem(r"[@eq:a]: $$ x \tag{1} $$"))
    assert r"(it has a \tag and is named [@eq:a]:, which numbers it, too)" in said


def test_a_reference_to_a_figure_backs_no_number_and_is_none_itself(tmp_path: Path):
    text = section('note("See [@fig:3d] and this: 12 bytes.")')
    (it,) = unbacked_number.find_unbacked(parse.parse(text, "a.py"))
    assert it.what == "unbacked: the number '12' in prose"


def test_a_label_in_brackets_with_others_is_a_citation():
    with pytest.raises(BibliographyError, match="is in no bibliography"):
        Citations({}).number("fig:a")
    assert "[@fig:a] is in no bibliography" in prose_problems("[@fig:a; @glu]")[0]


def prose_problems(text: str) -> list[str]:
    found = NoteContext(Citations({}))
    to_html.blocks(text, found)
    return [str(it) for it in found.problems]


def test_a_run_tells_a_name_that_nothing_has_and_a_part_of_it_does_not(tmp_path):
    file = write(
        tmp_path, PARTS.replace('    figure(Figure(), caption="[@fig:late]: Again.", alt="Nothing.")\n', "")
    )
    done = command(file, "--device", "cpu", "--quiet")
    assert done.returncode == 1
    assert "no figure, table or equation of this lecture is named 'fig:lost'" in done.stdout
    assert command(file, "shown", "--device", "cpu", "--quiet").returncode == 0
