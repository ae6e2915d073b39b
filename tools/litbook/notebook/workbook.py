"""A lecture's questions -> its workbook: each with a cell to answer in, and a cell that checks.

In go a lecture's pages; out comes a notebook whose helpers hold what the record has of the answers. Asides
do not ask here. The site draws it as a page, with formulas as MathML, which needs no script; JupyterLab takes
MathML out of a cell, so there they are LaTeX.
"""

from __future__ import annotations

import contextlib
import html
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct

from litbook.html import questions, script_words
from litbook.i18n import _, gettext_noop, ngettext, number
from litbook.markdown import mathml, nodes
from litbook.markdown.to_markdown import escape_markdown
from litbook.notebook import build, checking, ipynb, packing
from litbook.notebook.build import Cell, CodeCell, ProseCell, Remark
from litbook.notebook.markdown import NotebookMarkdown
from litbook.page import blocks, sitemap
from litbook.page import section as document
from litbook.page.sitemap import Sitemap
from litbook.record.model import Section
from litbook.values import formatting

HIDDEN = "not-on-the-site"  # the tag of a cell that a page of the site leaves out
WORDS = script_words.ANSWERS | {
    "answer": gettext_noop("Answer"),
    "left": gettext_noop("Not answered yet: {numbers}."),
    "none": gettext_noop("There is no question {n} here."),
    "unusable": gettext_noop(
        "This is no answer ({value}): give a number, several as (1, 2), or a text such as '2 GiB'."
    ),
}
HOW = gettext_noop(
    "Run its cells in Jupyter. Answer in place of the `...`: with a number, with Python that computes one, "
    "or with a text such as `'2 GiB'`. Then `check(1)` says whether it is right, how far off it is and which "
    "mistake leads to it. `reveal(1)` shows the answer and why it is so, `tally()` how many you have. It "
    "installs nothing and needs no network."
)
OPEN = """\
try:  # litbook's own, where it is installed
    from litbook.notebook.checking import open_workbook
except ImportError:
    names = {{"__name__": "checking"}}
    exec({source!r}, names)
    open_workbook = names["open_workbook"]
answers, check, reveal, tally = open_workbook({data!r})
"""


class _AskedQuestion(Struct, frozen=True):
    """A question, where it stands, and how an answer is judged; None where nobody can type it."""

    question: blocks.Question
    section: Section
    key: questions.TypedAnswer | None


class WorkbookFile(Struct, frozen=True):
    """A workbook as Jupyter keeps it; by their source, the formulas of its prose as MathML."""

    text: str
    formulas: dict[str, str]


def file_name(book: Sitemap) -> str:
    """What the lecture's workbook is called; its page lies beside those of the lecture."""
    return "workbook.ipynb" if "workbook.md" not in book.pages else "workbook-of-the-lecture.ipynb"


def has_questions(book: Sitemap) -> bool:
    """Whether a workbook has anything to ask."""
    return any(asked.key for asked in _find_questions(book))


def write_workbook(book: Sitemap, address: str = "") -> WorkbookFile:
    """The workbook of a lecture; the site has its page at `address`, if that is known."""
    builder = _WorkbookBuilder(book, address)
    return WorkbookFile(ipynb.text(builder.notebook()), builder.prose.formulas)


def draw_formulas(page: str, formulas: Mapping[str, str]) -> str:
    """The page of a workbook with formulas in the place of their source: no script draws them."""
    drawn = {html.escape(source, quote=False): formula for source, formula in formulas.items()}
    sources = "|".join(map(re.escape, sorted(drawn, key=len, reverse=True)))
    return re.sub(sources, lambda match: drawn[match[0]], page) if drawn else page


def _find_questions(book: Sitemap) -> Iterator[_AskedQuestion]:
    """The questions of the main path, in the order of the book."""
    record = book.record
    for section in {section.key: section for section in record.tree(record.main)}.values():
        if not section.aside and section.key in book.place:
            for block in document.blocks(book, section):
                if isinstance(block, blocks.Question):
                    key = questions.typed_answer(block.answer) if block.answer else None
                    yield _AskedQuestion(block, section, key)


class _WorkbookBuilder:
    """One workbook in the making."""

    def __init__(self, book: Sitemap, address: str) -> None:
        self.book, self.address = book, address
        every = [*_find_questions(book)]
        self.questions = [it for it in every if it.key]
        self.omitted = [it for it in every if not it.key]
        self.prose, self.explanations = _WorkbookMarkdown(self), _WorkbookMarkdown(self)

    def link(self, page: str, anchor: str = "") -> str:
        """The address of a page of the lecture, or of a section there."""
        here = f"{file_name(self.book).removesuffix('.ipynb')}.md"
        return urljoin(self.address, sitemap.relative_url(here, page, anchor))

    def section_link(self, section: Section) -> str:
        """A link to a section, by its heading."""
        book = self.book
        words = escape_markdown(sitemap.plain_title(section))
        return f"[{words}]({self.link(book.place[section.key], book.anchor(section))})"

    def notebook(self) -> build.Notebook:
        """All of it: what can be done here, the helpers, the questions, a tally."""
        book, record = self.book, self.book.record
        count = ngettext("{n} question", "{n} questions", len(self.questions))
        lecture = f"[{escape_markdown(record.title)}]({self.link(sitemap.INDEX)})"
        opening = [
            "# " + _("Workbook · {lecture}", lecture=escape_markdown(record.title)),
            _("{count} from the main path of {lecture}, in its order.", count=count, lecture=lecture),
            _(HOW),
        ]
        cells: list[Cell] = [self.prose_cell("opening", *opening), self.helpers_cell()]
        part = ""
        for n, it in enumerate(self.questions, 1):
            page = book.place[it.section.key]
            if book.parts and page != part:
                titles = {book.page(p): sitemap.plain_title(p) for p in book.parts}
                cells.append(self.prose_cell("part", f"## {escape_markdown(titles.get(page, record.title))}"))
                part = page
            cells += self.question_cells(n, it)
        cells.append(self.prose_cell("end", "## " + _("Tally"), *self.omission_note()))
        cells.append(CodeCell("tally", "tally()"))
        name = file_name(book).removesuffix(".ipynb")
        return build.Notebook(record.lecture, name, tuple(cells), book.bibliography, {}, {}, {}, {}, {})

    def prose_cell(self, role: str, *texts: str) -> ProseCell:
        """A cell of prose."""
        return ProseCell(role, tuple(map(Remark, filter(None, texts))))

    def question_cells(self, n: int, it: _AskedQuestion) -> Iterator[Cell]:
        """Its text, with its section and a hint to open; the cell to answer in; the cell that checks."""
        head = f"### {n}. {escape_markdown(sitemap.plain_title(it.section))}"
        place = self.link(self.book.place[it.section.key], self.book.anchor(it.section))
        where = "[" + _("This section in the book") + f"]({place})"
        hint = it.question.hint and ipynb.FOLDED.format(_("Hint"), self.prose.note(it.question.hint))
        yield self.prose_cell("question", head, self.prose.note(it.question.text), hint, where)
        unit = it.question.answer and it.question.answer.unit
        asked = "  # " + _("in {unit}", unit=unit) if unit else ""
        yield CodeCell("answer", f"answers[{n}] = ...{asked}")
        yield CodeCell("check", f"check({n})")

    def omission_note(self) -> Iterator[str]:
        """What the lecture asks and the workbook cannot, counted and named."""
        if self.omitted:
            count = ngettext("{n} question is", "{n} questions are", len(self.omitted))
            yield _(
                "{count} not asked here: no answer to type, or none recorded yet.",
                count=count,
            )
            yield "\n".join(f"- {self.section_link(it.section)}" for it in self.omitted)

    def helpers_cell(self) -> CodeCell:
        """One folded cell: `check` and its like, and what the record has of the answers."""
        source = OPEN.format(source=inspect.getsource(checking), data=self.helpers_data())
        what = _("`check`, `reveal` and `tally`, and the answers of the book's own run.")
        return CodeCell("helpers", packing.helpers_cell(source, what), tags=("hide-input", HIDDEN))

    def helpers_data(self) -> dict[str, Any]:
        """What `checking` has to know."""
        ten = number(10_000.5, 1)  # how the site's language marks thousands and decimals
        return {
            "words": {name: _(text) for name, text in WORDS.items()},
            "marks": [ten[2], ten[-2]],
            "questions": [self.question_data(it) for it in self.questions],
        }

    def question_data(self, it: _AskedQuestion) -> dict[str, Any]:
        """A question as `checking` judges it."""
        key, answer = it.key, it.question.answer
        assert key, "it is asked"
        assert answer, "it has a key"
        return {
            "values": key.values,
            "unit": key.unit,
            "within": key.within,
            "wrong": key.wrong,
            "shown": key.shown,
            "reply": formatting.line(answer.value, answer.unit),
            "why": self.explanations.note(it.question.why),
        }


class _WorkbookMarkdown(NotebookMarkdown):
    """Prose of a workbook: links to sections lead to the book's pages. It keeps the formulas it meets."""

    def __init__(self, workbook: _WorkbookBuilder) -> None:
        book = workbook.book
        numbers = {label: item.number for label, item in book.numbers.items()}
        super().__init__(book.bibliography, {}, {}, {}, numbers)
        self.workbook, self.formulas = workbook, dict[str, str]()

    def link(self, link: nodes.Link) -> str:
        name = link.address.removeprefix("#")
        if name != link.address:
            address = sitemap.resolve_name(self.workbook.book, sitemap.INDEX, name)
            words = self.line(link.children)
            return f"[{words}]({self.workbook.link(sitemap.INDEX)}{address})" if address else words
        return super().link(link)

    def block(self, block: nodes.BlockNode) -> str:
        if isinstance(block, nodes.DisplayMath):
            self._keep(block.latex, "block")
        return super().block(block)

    def inline(self, node: nodes.Inline) -> str:
        if isinstance(node, nodes.Math):
            self._keep(node.latex, "block" if node.display else "inline")
        return super().inline(node)

    def _keep(self, latex: str, display: str) -> None:
        marks = "$$" if display == "block" else "$"
        with contextlib.suppress(ValueError):  # a rule says that it cannot be drawn
            self.formulas[f"{marks}{latex}{marks}"] = mathml.mathml(latex, display)[0]
