"""Prose of a lecture -> the Markdown of a notebook: none of it is HTML, and links lead to what is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from litbook.document.bibliography import Bibliography, find, names
from litbook.document.bibliography import BibliographyError as NoSuchWork
from litbook.document.visible import spell
from litbook.render.catalogue import _
from litbook.render.standin import common

# What Markdown leaves alone: fenced code, code spans, mathematics.
_LITERAL = re.compile(
    r"(^[ ]*(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ ]*(?P=fence)[ ]*$"
    r"|(?<!`)(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<![\\$])\$\$.+?\$\$|(?<![\\$\w])\$(?![\s$])(?:[^$\\\n]|\\.)+?(?<!\s)\$(?![\d$]))",
    re.DOTALL | re.MULTILINE,
)
_LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?[^()]*\)"
)
_CITATION = re.compile(r"\[@[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]")
_SAFE = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)


@dataclass
class Prose:
    """Writes the prose of one notebook; `cited` are the keys of the works that it has named so far."""

    bibliography: Bibliography
    known: Mapping[str, str]  # names of functions here -> the headings that a link can lead to
    elsewhere: Mapping[str, str]  # names of functions of other notebooks -> their part
    levels: Mapping[int, int]  # a section -> the level of its heading
    numbers: dict[str, int]  # of figures, tables and equations, by name
    cited: list[str] = field(default_factory=list)

    def markdown(self, text: str, function: int | None = None) -> str:
        """A note's Markdown as a notebook has it: citations named, links to sections resolved, no HTML."""
        level = 1 if function is None else self.levels.get(function, 1)
        done: list[str] = []
        at = 0
        text = common(visible(text), self.numbers)
        for literal in _LITERAL.finditer(text):
            done += [self._worded(text[at : literal.start()], level), literal[0]]
            at = literal.end()
        return "".join([*done, self._worded(text[at:], level)])

    def _worded(self, text: str, level: int) -> str:
        """Markdown outside code and mathematics."""
        text = re.sub(r"<(?!https?://[^\s<>]+>)", "&lt;", text)
        text = _CITATION.sub(lambda m: self._cited(m[0]), text)
        text = _LINK.sub(lambda m: self._linked(m[2], m[3]), text)
        text = re.sub(
            r"^( {0,3})\[([^\]\n]+)\]:", r"\1\\[\2]:", text, flags=re.MULTILINE
        )  # no reference definitions
        return re.sub(r"^(#{1,6})(?= )", lambda m: "#" * min(6, level + len(m[1])), text, flags=re.MULTILINE)

    def _linked(self, label: str, target: str) -> str:
        if target.startswith("#"):
            name = target[1:]
            if name in self.known:
                return f"[{label}](#{anchor(self.known[name])})"
            part = self.elsewhere.get(name)
            return _("{label} (in the part “{part}”)", label=label, part=plain(part)) if part else label
        return f"[{label}]({target})" if _SAFE.fullmatch(target) else label

    def _cited(self, text: str) -> str:
        """`[@key]` as the works' authors and year, linked."""
        found = []
        for key in re.findall(r"@([\w:./+-]+)", text):
            try:
                entry = find(self.bibliography, key)
            except NoSuchWork:
                found.append(f"@{key}?")
                continue
            if key not in self.cited:
                self.cited.append(key)
            label = " ".join(filter(None, (plain(names(entry)), entry.year))) or plain(entry.title)
            found.append(f"[{label}]({entry.url})" if _SAFE.fullmatch(entry.url) else label)
        return f"({'; '.join(found)})"

    def reference(self, key: str) -> str:
        entry = self.bibliography[key]
        title = plain(entry.title)
        title = f"[*{title}*]({entry.url})" if _SAFE.fullmatch(entry.url) else f"*{title}*"
        tail = ", ".join(plain(part) for part in (entry.venue, entry.year) if part)
        return f"- {'. '.join(part for part in (plain(names(entry)), title, tail) if part)}."


def anchor(heading: str) -> str:
    """The address of a heading, as Jupyter gives it."""
    return re.sub(r"[`*]", "", heading).replace(" ", "-")


def visible(text: str) -> str:
    """Text in which nothing is hidden: controls and direction marks are spelled out."""
    return "".join(spell(c, kept="\n\t\u200d") for c in text)


def plain(text: object) -> str:
    """A short text that Markdown takes as it is."""
    return re.sub(r"[\\`*_\[\]<>#$|]", lambda m: f"&#{ord(m[0])};", one_line(str(text)))


def one_line(text: str) -> str:
    return " ".join(visible(text).split())


def whole(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
