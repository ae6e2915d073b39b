"""The cells of a notebook -> a file for Jupyter, as JSON text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, assert_never

import nbformat

from litbook.document import pieces
from litbook.document.blocks import (
    Figure,
    Image,
    Link,
    Misbelief,
    Output,
    Prose,
    Question,
    Speech,
    Told,
)
from litbook.document.markdown import escaped
from litbook.document.notebook import (
    Cell,
    Ended,
    Handed,
    Notebook,
    Part,
    Printed,
    Program,
    Remark,
    Result,
    Title,
    Words,
    notebooks,
)
from litbook.document.visible import one_line, whole
from litbook.notebook.note import Prose as Markdown
from litbook.record.model import Record
from litbook.render import figures, markup, standin, values
from litbook.render.catalogue import _
from litbook.text.words import ASKED


def files(record: Record, **options: Any) -> dict[str, str]:
    """File names to texts: all notebooks of a lecture, with the options of `document.notebook.notebooks`."""
    return {name: text(made) for name, made in notebooks(record, **options).items()}


def text(notebook: Notebook) -> str:
    """The notebook as Jupyter keeps it: the same text for the same notebook."""
    return _File(notebook).text()


class _File:
    """One notebook while it is written."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.prose = Markdown(
            notebook.bibliography, notebook.known, notebook.elsewhere, notebook.levels, notebook.numbers
        )
        self.counts: Counter[str] = Counter()

    def text(self) -> str:
        """All of it."""
        cells = list(map(self.cell, self.notebook.cells))
        if self.prose.cited:
            works = "\n".join(map(self.prose.reference, self.prose.cited))
            cells.append(self.markdown("references", "## " + _("References") + "\n\n" + works))
        made = _node(
            nbformat=4,
            nbformat_minor=5,
            cells=cells,
            metadata={
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
                "litbook": {"lecture": self.notebook.lecture, "section": self.notebook.section},
            },
        )
        nbformat.validate(made)
        return str(nbformat.writes(made)) + "\n"

    def id(self, role: str) -> str:
        """An id that depends on the text alone: the same cell has it in every build."""
        self.counts[role] += 1
        name = f"{self.notebook.lecture}/{role}/{self.counts[role]}"
        return hashlib.sha256(name.encode()).hexdigest()[:12]

    def cell(self, cell: Cell) -> Any:
        """One cell."""
        match cell:
            case Words(role, parts, function):
                made = self.markdown(role, "\n\n".join(self.part(part, function) for part in parts))
                for part in parts:
                    if isinstance(part, Image) and (embedded := _embedded(part)):
                        made.attachments = {"picture": {embedded[1]: embedded[2]}}
                return made
            case Program():
                return self.program(cell)
        assert_never(cell)

    def markdown(self, role: str, text: str) -> Any:
        """A cell of prose."""
        return _node(cell_type="markdown", id=self.id(role), metadata={}, source=whole(text))

    def program(self, cell: Program) -> Any:
        """A cell of code, folded where its tags say so."""
        metadata: dict[str, Any] = {"tags": list(cell.tags)} if cell.tags else {}
        if {"hide-input", "hide-cell"} & {*cell.tags}:
            hidden = {"outputs_hidden": True} if "hide-cell" in cell.tags else {}
            metadata["jupyter"] = {"source_hidden": True, **hidden}
        return _node(
            cell_type="code",
            id=self.id(cell.role),
            metadata=metadata,
            source=whole(cell.text),
            outputs=[output for result in cell.results for output in self.outputs(result)],
            execution_count=None,
        )

    # -- prose

    def part(self, part: Part, function: int | None) -> str:
        """A part of a cell of prose as Markdown."""

        def worded(text: str) -> str:
            return self.prose.note(text, function)

        match part:
            case Title(text, level):
                return f"{'#' * level} {self.prose.phrase(text)}"
            case Remark(text):
                return text
            case Prose(_, text):
                return worded(text)
            case Misbelief(_, said, run):
                heads = _("**Commonly said:**"), _("**Run:**")
                lines = f"{heads[0]} {worded(said)}\n\n{heads[1]} {worded(run)}"
                return "> " + lines.replace("\n", "\n> ")
            case Question():
                return self.question(part, worded)
            case Link(_, text, target):
                return self.prose.phrase(pieces.link(text, target))
            case Image(_, _, alt, caption):
                caption = f"\n\n*{self.prose.phrase(caption)}*" if caption else ""
                if _embedded(part) is None:
                    return _("*Picture: {alt}*", alt=escaped(alt)) + caption
                return f"![{escaped(alt)}](attachment:picture){caption}"
            case Figure() | Output() | Speech():
                return ""
        assert_never(part)

    def question(self, part: Question, worded: Callable[[str], str]) -> str:
        """A question, with its hint and its answer folded."""
        folded = "<details><summary>{}</summary>\n\n{}\n\n</details>"
        parts = [_(ASKED) + " " + worded(part.text)]
        if part.missing:
            parts.append(_("{why}: the answer comes from the run.", why=part.missing))
        if part.hint:
            parts.append(folded.format(_("Hint"), worded(part.hint)))
        if answer := part.answer:
            where = f" ({escaped(answer.stamp)})" if answer.stamp else ""
            value = markup.text(values.line(answer.value, answer.unit))
            why = f"\n\n{worded(part.why)}" if part.why else ""
            parts.append(folded.format(_("Answer"), f"<code>{value}</code>{where}{why}"))
        return "\n\n".join(parts)

    # -- what a cell put out

    def outputs(self, result: Result) -> Iterator[Any]:
        """The outputs of one result."""
        match result:
            case Printed(text):
                yield _node(output_type="stream", name="stdout", text=whole(text))
            case Handed(block):
                yield from self.handed(block)
            case Ended(name, message, lines):
                yield _node(
                    output_type="error",
                    ename=whole(name),
                    evalue=whole(message),
                    traceback=[whole(one_line(it)) for it in lines] + [whole(f"{name}: {one_line(message)}")],
                )
            case _:
                assert_never(result)

    def handed(self, block: Told) -> Iterator[Any]:
        """What code handed over while it ran, as the stand-in for the engine shows it."""
        match block:
            case Prose(_, text) | Link(_, text):
                yield self.display(text)
            case Question(_, text):
                yield self.display(_(ASKED) + " " + text)
            case Misbelief(_, said, run):
                lines = _("**Commonly said:**") + f" {said}\n\n" + _("**Run:**") + f" {run}"
                yield self.display("> " + lines.replace("\n", "\n> "))
            case Image(_, _, alt):
                yield self.display(_("*Picture: {alt}*", alt=alt))
            case Figure(_, svg, alt, caption):
                if drawn := _labelled(svg, alt):
                    data = {"image/svg+xml": drawn, "text/plain": whole(alt)}
                    yield _node(output_type="display_data", metadata={}, data=data)
                if caption:
                    yield self.display(f"*{caption}*")
            case Output() | Speech():
                return
            case _:
                assert_never(block)

    def display(self, text: str) -> Any:
        """Markdown that a cell shows."""
        data = {
            "text/markdown": whole(standin.told(text, dict(self.notebook.said))),
            "text/plain": "<IPython.core.display.Markdown object>",
        }
        return _node(output_type="display_data", metadata={}, data=data)


def _node(**fields: Any) -> Any:
    """A part of a notebook. `nbformat.v4` would validate each; the whole is validated once."""
    return nbformat.from_dict(fields)


def _embedded(image: Image) -> re.Match[str] | None:
    """Kind and content of a picture as an attachment: it travels in the file, and nothing is fetched."""
    return re.fullmatch(r"data:(image/[\w+.-]+);base64,([A-Za-z0-9+/=]+)", image.data)


def _labelled(svg: str, alt: str) -> str:
    """A figure, with what it shows to those who cannot see it; nothing for what is no harmless SVG."""
    try:
        figures.inline(svg, alt, "f-")
    except figures.NotAPicture:
        return ""
    head, start, rest = svg.partition("<svg")
    return f'{head}{start} role="img" aria-label="{markup.text(alt)}"{rest}'
