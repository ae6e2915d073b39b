"""A note's tree -> the Markdown of a notebook: no HTML, works are named, links lead to what is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from litbook.i18n import _
from litbook.markdown import grammar
from litbook.markdown.bibliography import Bibliography, BibliographyError, find, names
from litbook.markdown.nodes import Citation, Link, label_text, plain_text
from litbook.markdown.to_markdown import MarkdownWriter, escape_markdown, format_link

_SAFE = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


@dataclass
class NotebookMarkdown(MarkdownWriter):
    """Writes the prose of one notebook; `cited` are the keys of the works that it has named so far."""

    bibliography: Bibliography
    headings: Mapping[str, str]  # names of functions here -> the headings that a link can lead to
    elsewhere: Mapping[str, str]  # names of functions of other notebooks -> their part
    levels: Mapping[int, int]  # a section -> the level of its heading
    numbers: Mapping[str, int]  # of figures, tables and equations, by name
    cited: list[str] = field(default_factory=list)

    def note(self, text: str, function: int | None = None) -> str:
        """A note as a notebook has it; its headings stand below that of its section."""
        self.below = 1 if function is None else self.levels.get(function, 1)
        return self.markdown(grammar.read(text))

    def phrase(self, text: str) -> str:
        """A heading or caption."""
        return self.line(grammar.phrase(text).line)

    def text(self, text: str) -> str:
        """Words: no reader of a notebook takes them for HTML."""
        return text.replace("<", "&lt;")

    def link(self, link: Link) -> str:
        """A link, where it leads somewhere; its words, where it does not."""
        words = self.line(link.children)
        if not link.address.startswith("#"):
            return format_link(words, link) if _SAFE.fullmatch(link.address) else words
        name = link.address[1:]
        if name in self.headings:
            # As Jupyter names a heading: by its words.
            heading = plain_text(grammar.phrase(self.headings[name]).line)
            return f"[{words}](#{heading.replace(' ', '-')})"
        part = self.elsewhere.get(name)
        return _("{label} (in the part “{part}”)", label=words, part=escape_markdown(part)) if part else words

    def cite(self, citation: Citation) -> str:
        """`[@key]` as the works' authors and year, linked."""
        works = []
        for key in citation.keys:
            try:
                entry = find(self.bibliography, key)
            except BibliographyError:
                works.append(f"@{key}?")
                continue
            if key not in self.cited:
                self.cited.append(key)
            words = escape_markdown(" ".join(filter(None, (names(entry), entry.year))) or entry.title)
            works.append(f"[{words}]({entry.url})" if _SAFE.fullmatch(entry.url) else words)
        return f"({'; '.join(works)})"

    def refer(self, label: str) -> str:
        """`Figure 2`."""
        return label_text(label, self.numbers.get(label))

    def reference(self, key: str) -> str:
        """A work in the list at the notebook's end."""
        entry = self.bibliography[key]
        title = f"*{escape_markdown(entry.title)}*"
        title = f"[{title}]({entry.url})" if _SAFE.fullmatch(entry.url) else title
        tail = ", ".join(escape_markdown(part) for part in (entry.venue, entry.year) if part)
        return f"- {'. '.join(part for part in (escape_markdown(names(entry)), title, tail) if part)}."
