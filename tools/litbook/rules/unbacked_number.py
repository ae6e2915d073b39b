"""Numbers in a lecture's prose that nothing backs. Reads the text alone: nothing runs, nothing is imported.

`text.prose` says which texts are prose; each is read as the tree that its page is made of. A number in it is

    computed     an f-string's hole puts it there;
    cited        `[@key]` stands in the same sentence, or right behind it; in a table, in the same row;
    structural   the number of a heading or list item; part of a name (`R2`, `Python-3`, `float32`, "rank 0");
                 in a formula, an address or code. A number alone in backticks is code where the section's
                 code, or what it calls, holds that number; elsewhere it is a number like any other. In a
                 question it is what the exercise gives, and that needs no backing.

What is left is *unbacked*. Digits always count; so do number words with a unit behind them ("two weeks"),
because that is how a number looks that somebody looked up. A heading cannot have holes, so a number in it is
backed where the section's code holds it. `docs/write-a-lecture.md` tells authors the same.

Listed too is a number that was meant to be computed: `{name}` in a string without its `f`, where the section
or the module knows the name. Readers would see the braces. In code and formulas they are let be.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from litbook.finding import Finding
from litbook.lecture.model import Lecture
from litbook.lecture.prose import ProseText, prose
from litbook.markdown import grammar
from litbook.markdown import nodes as tree
from litbook.markdown.escape import visible_characters
from litbook.python.strings import HOLE

_WAY_OUT = "compute it in an f-string's {…}, cite its source with [@key], or say it without the number"
WAYS_OUT = {
    "words": _WAY_OUT,
    "exercise": f"put backticks around it where the exercise gives it, {_WAY_OUT}",
    "heading": "let the section's code hold it, in a claim say, or give the heading without the number",
}

# ---------------------------------------------------------------------------- what a number looks like

_EXPONENT = r"(?:[eE][-+−]?\d+)?"
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:_\d+)*)(?:\.\d+)*{_EXPONENT}|\.\d+{_EXPONENT}"
_SCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_NUMBER = re.compile(
    rf"""(?<![\w.])(?<![^\W\d_]-)          # R2, Python-3 and 1.2.3 from its middle are no numbers
    (?<![^\W\d_]-\d-)                     # nor is Name-3-8B from there
    (?:\d{{4}}-\d\d-\d\d(?!\d)             # a date
    |\d+/\d+(?![\w/])                      # a fraction
    |(?:{_DIGITS})[{_SCRIPT}]*             # 12, 1,000, 3.14e23, 10²³
    |[¼½¾⅐-⅞])                             # a fraction in one character
    [^\W_]*                                # 70B, 4x, 3rd""",
    re.VERBOSE,
)
_SMALL = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"""
_SCALE = ("hundred", "thousand", "million", "billion", "trillion", "dozen")
_UNITS = """bit byte [kKMGTP]i?B FLOP FLOPs? FLOP/s second minute hour day week month year decade century
    centuries percent watt joule hertz [kMGT]?Hz dollar euro degree metre mile token parameter time"""
_VALUE = "|".join([*_SMALL.split(), *_SCALE])
_WORDS = re.compile(
    rf"\b(?P<words>(?:{_VALUE})(?:(?:-|\s+and\s+|\s+)(?:{_VALUE})){{0,11}})"  # no number has more words
    rf"(?:-|\s+)(?:{'|'.join(_UNITS.split())})s?\b",
    re.IGNORECASE,
)
# Before "million parameters" these leave nothing to say: the number stands before it, or nobody gives one.
_SAID_BEFORE = re.compile(rf"(?:[\d%{HOLE}\ufffc]|\b(?:few|several|many|some))\s*$")

# ---------------------------------------------------------------------------- what stands in a line

_OTHER = "\ufffc"  # stands for what is structural: code, a formula, the number of a figure
_CITED = "\ue001"  # a private character, which stands for a citation
_BARE = re.compile(rf"[-−+±~]?(?:{_DIGITS})(?:[ ]?[A-Za-z%/]+)?(?:,[ ]*[-−+±~]?(?:{_DIGITS}))*")
# A rank has its number for a name: "rank 0", "ranks 0, 1 and 3".
_RANKS = re.compile(r"\branks?\s(\d+(?:(?:,\s|\s(?:and|or)\s)\d+)*)\b(?!\.\d)", re.IGNORECASE)
_NUMBERED = re.compile(r"\d+(?:\.\d+)*[.)]?\s")  # how a heading with a number begins
_BRACED = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")
# The end of a sentence and of the citations right behind it; in "et al. [@key] found" there is none.
_END = re.compile(rf"[.!?…][”’»\"')\]]*(?:\s*{_CITED})*(?=\s+[^\sa-z{_CITED}])")


def find_unbacked(lecture: Lecture) -> list[Finding]:
    """Every unbacked number of `lecture` and every brace that lacks its `f`, in the order of its files."""
    problems: dict[tuple[int, int, int], Finding] = {}
    for text in prose(lecture):
        note = grammar.read(text.passage.text, HOLE)
        # What is read for a character may be several, or none: a control is spelled.
        shown = zip(text.passage.places, visible_characters(text.passage.text), strict=True)
        places = [place for place, read in shown for _ in read]
        for nodes in _lines(note.blocks):
            spelled = list(_characters(nodes, text))
            line = "".join(character for character, _ in spelled)
            for match in _BRACED.finditer(line) if text.kind != "heading" else ():
                first, last = spelled[match.start()][1], spelled[match.end() - 1][1]
                braced, place = note.text[first : last + 1], places[first]
                # In an f-string a brace is written twice.
                written = text.file.lines[place[0] - 1].startswith("{{", place[1] - 1)
                if not written and text.fills(braced):
                    line = line[: match.start()] + HOLE * len(match[0]) + line[match.end() :]
                    what = f"{braced} is shown as it stands: its string has no f"
                    way_out = f"put f before the quotation mark, or backticks around {braced}"
                    problem = Finding("forgotten-f", what, text.file.place(*place), way_out)
                    problems[text.file.number, *place] = problem
            for at, number in _numbers(line, text):
                place = places[spelled[at][1]]
                where = "a heading" if text.kind == "heading" else "prose"
                what = f"unbacked: the number {number!r} in {where}"
                problem = Finding("unbacked", what, text.file.place(*place), WAYS_OUT[text.kind])
                problems[text.file.number, *place] = problem
    return [problems[place] for place in sorted(problems)]


def _lines(part: object) -> Iterator[Sequence[tree.Inline | tree.TableCell]]:
    """What stands in a line, whole: of paragraphs, headings, titles, captions, and of each row of a table."""
    match part:
        case tree.Heading(children=(tree.TextNode(at=at, text=words), *others)) if number := _NUMBERED.match(
            words
        ):
            yield (tree.TextNode(at + number.end(), words[number.end() :]), *others)
        case tree.NoteNode():
            yield from _lines(tuple(getattr(part, name) for name in part.__struct_fields__))
        case (first, *_) if isinstance(first, tree.Inline | tree.TableCell):
            yield cast(Sequence[tree.Inline | tree.TableCell], part)
        case tuple():
            for inner in part:
                yield from _lines(inner)


def _characters(nodes: Iterable[tree.Inline | tree.TableCell], text: ProseText) -> Iterator[tuple[str, int]]:
    """The characters of a line and where each stands in the note; what is structural is one, `_OTHER`."""
    for node in nodes:
        match node:
            case tree.TextNode(text=words):
                yield from zip(words, itertools.count(node.at))
            case tree.InlineCode(text=code) if _BARE.fullmatch(code.strip()) and text.kind == "exercise":
                yield HOLE, node.at  # "`2` trillion tokens": the reader is given a number here
            case tree.InlineCode(text=code) if (
                _BARE.fullmatch(code.strip()) and not _values(code) <= text.held
            ):
                yield from zip(f"{code} ", itertools.count(node.at))
            case (
                tree.Emphasis(children=children)
                | tree.Strong(children=children)
                | tree.Link(children=children, form="text")
            ):
                yield from _characters(children, text)
            case tree.TableCell(children=children):
                yield from _characters(children, text)
                yield _OTHER, node.at
            case tree.Hole():
                yield HOLE, node.at
            case tree.Citation():
                yield _CITED, node.at
            case tree.Break():
                yield "\n", node.at
            case _:
                yield _OTHER, node.at


def _numbers(line: str, text: ProseText) -> Iterator[tuple[int, str]]:
    """The numbers of a line that are neither computed nor cited nor structural, each with its offset."""
    ends = (match.end() for match in _END.finditer(line))
    for start, end in itertools.pairwise((0, *ends, len(line))):
        if _CITED in line[start:end]:
            continue
        names = [match.span(1) for match in _RANKS.finditer(line, start, end)]
        for match in _NUMBER.finditer(line, start, end):
            if any(first <= match.start() < last for first, last in names):
                continue
            if text.kind != "heading" or not _values(match[0]) <= text.held:
                yield match.start(), match[0]
        # "Six FLOPs per parameter" is the thesis of a section: it is what its claims are about.
        for match in _WORDS.finditer(line, start, end) if text.kind != "heading" else ():
            scale = match["words"].split()[0].lower() in _SCALE
            article = match["words"].lower() == "one"  # "while one byte arrives"
            if not article and not (scale and _SAID_BEFORE.search(line, 0, match.start())):
                yield match.start(), " ".join(match[0].split())


def _values(text: str) -> frozenset[float]:
    """The numbers written in `text`, without their signs."""
    return frozenset(
        float(re.sub("[,_]", "", match[0]).replace("−", "-"))
        for match in re.finditer(rf"(?<![\w.]){_DIGITS}", text)
        if match[0].count(".") < 2
    )
