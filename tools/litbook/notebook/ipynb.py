"""The cells of a notebook -> a file for Jupyter, as JSON text."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, assert_never

import nbformat

from litbook.html import elements, safe_svg
from litbook.i18n import _
from litbook.lecture.author_words import ASKED
from litbook.markdown.escape import encodable_text, one_line
from litbook.markdown.to_markdown import escape_markdown
from litbook.notebook import build as document
from litbook.notebook import packing, runtime
from litbook.notebook.markdown import NotebookMarkdown
from litbook.page import blocks, pieces
from litbook.record.model import Record
from litbook.values import formatting

SHOWN = "<IPython.core.display.Markdown object>"  # what Jupyter has of Markdown as plain text
FOLDED = "<details><summary>{}</summary>\n\n{}\n\n</details>"


def files(record: Record, **options: Any) -> dict[str, str]:
    """File names to texts: all notebooks of a lecture, with the options of `document.notebook.notebooks`."""
    return {name: text(made) for name, made in document.notebooks(record, **options).items()}


def text(notebook: document.Notebook) -> str:
    """The notebook as Jupyter keeps it: the same text for the same notebook."""
    file = _IpynbWriter(notebook)
    cells = list(map(file.cell, notebook.cells))
    if cited := file.prose.cited:
        works = "\n".join(map(file.prose.reference, cited))
        cells.append(file.markdown("references", "## " + _("References") + f"\n\n{works}"))
    made = _node(
        nbformat=4,
        nbformat_minor=5,
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"},
            "litbook": {"lecture": notebook.lecture, "section": notebook.section},
        },
    )
    nbformat.validate(made)
    return str(nbformat.writes(made)) + "\n"


class _IpynbWriter:
    """One notebook while it is written."""

    def __init__(self, notebook: document.Notebook) -> None:
        self.notebook = notebook
        self.prose = NotebookMarkdown(
            notebook.bibliography, notebook.headings, notebook.elsewhere, notebook.levels, notebook.numbers
        )
        self.counts: Counter[str] = Counter()

    def id(self, role: str) -> str:
        """An id that depends on the text alone: the same cell has it in every build."""
        self.counts[role] += 1
        name = f"{self.notebook.lecture}/{role}/{self.counts[role]}"
        return hashlib.sha256(name.encode()).hexdigest()[:12]

    def cell(self, cell: document.Cell) -> Any:
        """One cell; one of code is folded where its tags say so."""
        match cell:
            case document.ProseCell(role, parts, function):
                made = self.markdown(role, "\n\n".join(self.part_text(part, function) for part in parts))
                for part in parts:
                    if isinstance(part, blocks.Image) and (embedded := _match_data_uri(part)):
                        made.attachments = {"picture": {embedded[1]: embedded[2]}}
                return made
            case document.CodeCell(role, text, results, tags):
                metadata: dict[str, Any] = {"tags": list(tags)} if tags else {}
                if "hide-input" in tags:
                    metadata |= packing.FOLDED
                return _node(
                    cell_type="code",
                    id=self.id(role),
                    metadata=metadata,
                    source=encodable_text(text),
                    outputs=[output for result in results for output in self.outputs(result)],
                    execution_count=None,
                )
        assert_never(cell)

    def markdown(self, role: str, text: str) -> Any:
        """A cell of prose."""
        return _node(cell_type="markdown", id=self.id(role), metadata={}, source=encodable_text(text))

    def part_text(self, part: document.ProsePart, function: int | None) -> str:
        """A part of a cell of prose as Markdown."""
        match part:
            case document.Title(text, level):
                return f"{'#' * level} {self.prose.phrase(text)}"
            case document.Remark(text):
                return text
            case blocks.Prose(_line, text):
                return self.prose.note(text, function)
            case blocks.Misbelief(_line, common, run):
                common, run = self.prose.note(common, function), self.prose.note(run, function)
                return document.misbelief(common, run)
            case blocks.Question(_line, text, hint, answer, why, missing):
                # Its hint and its answer are folded.
                parts = [_(ASKED) + " " + self.prose.note(text, function), missing]
                parts.append(FOLDED.format(_("Hint"), self.prose.note(hint, function)) if hint else "")
                if answer:
                    where = f" ({escape_markdown(answer.stamp)})" if answer.stamp else ""
                    value = elements.text(formatting.line(answer.value, answer.unit))
                    below = f"\n\n{self.prose.note(why, function)}" if why else ""
                    parts.append(FOLDED.format(_("Answer"), f"<code>{value}</code>{where}{below}"))
                return "\n\n".join(filter(None, parts))
            case blocks.LinkBlock(_line, text, target):
                return self.prose.markdown(pieces.link(text, target))
            case blocks.Image(_line, _data, alt, caption):
                words = f"![{escape_markdown(alt)}](attachment:picture)"
                if _match_data_uri(part) is None:
                    words = _("*Picture: {alt}*", alt=escape_markdown(alt))
                return f"{words}\n\n*{self.prose.phrase(caption)}*" if caption else words
            case blocks.Figure() | blocks.Explore() | blocks.PrintedOutput() | blocks.SpeakerNote():
                return ""
        assert_never(part)

    # -- what a cell put out

    def outputs(self, result: document.CellOutput) -> Iterator[Any]:
        """The outputs of one result."""
        match result:
            case document.PrintedText(text):
                yield _node(output_type="stream", name="stdout", text=encodable_text(text))
            case document.PieceOutput(block):  # as the stand-in for the engine shows it
                for part in document.format_piece(block):
                    if isinstance(part, str):
                        text = runtime.render_note(part, dict(self.notebook.wordings))
                        data = {"text/markdown": encodable_text(text), "text/plain": SHOWN}
                        yield _node(output_type="display_data", metadata={}, data=data)
                        continue
                    with contextlib.suppress(safe_svg.NotAPicture):
                        safe_svg.inline(part.svg, part.alt, "f-")  # as pages ask whether it is a harmless SVG
                        head, start, rest = part.svg.partition("<svg")
                        drawn = f'{head}{start} role="img" aria-label="{elements.attribute(part.alt)}"{rest}'
                        data = {"image/svg+xml": drawn, "text/plain": encodable_text(part.alt)}
                        yield _node(output_type="display_data", metadata={}, data=data)
            case document.ErrorOutput(name, message, lines):
                trace = [*map(one_line, lines), f"{name}: {one_line(message)}"]
                yield _node(
                    output_type="error",
                    ename=encodable_text(name),
                    evalue=encodable_text(message),
                    traceback=[encodable_text(line) for line in trace],
                )
            case _:
                assert_never(result)


def _node(**fields: Any) -> Any:
    """A part of a notebook. `nbformat.v4` would validate each; the whole is validated once."""
    return nbformat.from_dict(fields)


def _match_data_uri(image: blocks.Image) -> re.Match[str] | None:
    """Kind and content of a picture as an attachment: it travels in the file, and nothing is fetched."""
    return re.fullmatch(r"data:(image/[\w+.-]+);base64,([A-Za-z0-9+/=]+)", image.data)
