"""Numbers in a lecture's prose that nothing backs: in the texts that stand in it, and in what its run said.

`lecture.prose` says which texts are prose; each is read as the tree that its page is made of. What a run put
together elsewhere is in its record, with a hole where the word's own f-string has one. A number in it is

    computed     a hole of the word's own f-string puts it there, and the hole is no literal;
    cited        `[@key]` stands in the same sentence, or right behind it; in a table, in the same row;
    structural   the number of a heading or list item; part of a name (`R2`, `Python-3`, `float32`, "rank 0",
                 "IEEE 754", "Table 8", "Name 2 13B", "row 0", "Step 2", "3D", but not "each row 2" nor
                 "sub-10 ms");
                 in a formula, an address or code. A number alone in backticks is code where the section's
                 code, or what it calls, holds that number; elsewhere it is a number like any other. In a
                 question it is what the exercise gives, and that needs no backing.

What is left is *unbacked*. Digits always count; so do number words with a unit behind them ("two weeks"), a
dozen, and what compares ("twice as fast", "half of the time") where the section's code neither multiplies
with that number nor asserts something of it: that is how a number looks that somebody looked up. In titles
and labels inside a figure it is a remark, unless the same statement
holds it. A heading cannot have holes, so a number in it is backed where the
section's code holds it, and so is one in the sentence of a wrong answer, which is plain text.
`docs/guide.md` tells authors the same. The caption of a claim that ran may say, rounded and in any unit, what
its section's code holds and what the run computed there: a number that is neither is unbacked.

What compares is let be in a question, which may give it. Listed too is a number that was meant to be
computed: `{name}` in a string without its `f`, where the section or the module knows the name. Readers would
see the braces. In code and formulas they are let be.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import cast

from litbook.finding import Finding
from litbook.lecture.model import Lecture
from litbook.lecture.prose import ProseText, captions, prose, said, typed_measures
from litbook.markdown import grammar
from litbook.markdown import nodes as tree
from litbook.markdown.escape import visible_characters
from litbook.python.strings import HOLE
from litbook.record.model import Record

_WAY_OUT = "compute it in an f-string's {…}, cite its source with [@key], or say it without the number"
_WAY_OUT_MEASURED = "measure it, or show it as what it is: # @inspect"
# Ways out that are short, by what stands around the number.
_FORMULA = "put the formula in $…$, as in $B = 1$"
_NAME = "join what is a name with a hyphen, as in Name-2-13B"
_DETOUR = 'write what is computed as a hole of the word\'s own f-string, f"… {x} …"'
WAYS_OUT = {
    "wrong": "let the section's code hold it, or compute it in an f-string's {…}",
    "words": _WAY_OUT,
    "label": "make the label an f-string, and compute it there, or say it without the number",
    "exercise": f"put backticks around it where the exercise gives it, {_WAY_OUT}",
    "answer": "compute it, or let check=… compute it a second way",
    "caption": "let the test hold it, compute it in an f-string's {…}, or say it without the number",
    "heading": "let the section's code hold it, in a claim say, or give the heading without the number",
}

_PLACES = {"heading": "a heading", "label": "a figure", "caption": "a caption", "answer": "an answer"}

# ---------------------------------------------------------------------------- what a number looks like

_EXPONENT = r"(?:[eE][-+−]?\d+)?"
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:_\d+)*)(?:\.\d+)*{_EXPONENT}|\.\d+{_EXPONENT}"
_SCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_NUMBER = re.compile(
    rf"""(?<![\w.])                        # R2 and 1.2.3 from its middle are no numbers
    (?:\d{{4}}-\d\d-\d\d(?!\d)             # a date
    |\d+/\d+(?![\w/])                      # a fraction
    |(?:{_DIGITS})[{_SCRIPT}]*             # 12, 1,000, 3.14e23, 10²³
    |[¼½¾⅐-⅞])                             # a fraction in one character
    [^\W_]*                                # 70B, 4x, 3rd""",
    re.VERBOSE,
)
_SMALL = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"""
_SCALE = {"hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12}
_UNITS = """bit byte [kKMGTP]i?B FLOP FLOPs? FLOP/s second minute hour day week month year decade century
    centuries percent watt joule hertz [kMGT]?Hz dollar cent euro degree metre mile token parameter time
    (?:kilo|mega|giga|tera|peta|exa|kibi|mebi|gibi|tebi)(?:byte|bit|flop|watt|hertz)
    (?:milli|micro|nano)(?:second|metre|meter) meter fold [mµn]s [kMG]W [kMG]?Wh [kMGTPE]FLOP/s
    per\\s+cent percentage\\s+point orders?\\s+of\\s+magnitude"""
_VALUE = "|".join([*_SMALL.split(), *_SCALE])
_WORDS = re.compile(
    rf"\b(?P<words>(?:{_VALUE})(?:(?:-|\s+and\s+|\s+)(?:{_VALUE})){{0,11}})"  # no number has more words
    rf"(?:-|\s+)(?:{'|'.join(_UNITS.split())})s?\b|\b(?:a|half\s+a|one)\s+dozen\b",
    re.IGNORECASE,
)
_UNIT = re.compile(rf"\s?(?:%|(?:{'|'.join(_UNITS.split())})s?\b)")
# A prefix of a unit or a word behind a number, and what the number may be divided by because of it.
_SCALES: dict[str, tuple[float, ...]] = {
    "%": (0.01,),
    "percent": (0.01,),
    "b": (1e9,),
    **{w: (n,) for w, n in _SCALE.items()},
}
for _n, _names in enumerate(
    ("k kilo kibi", "m mega mebi", "g giga gibi", "t tera tebi", "p peta pebi", "e exa"), 1
):
    _SCALES |= dict.fromkeys(_names.split(), (1e3**_n, 2.0 ** (10 * _n)))
for _n, _names in enumerate(("milli", "µ micro u", "n nano"), 1):
    _SCALES |= dict.fromkeys(_names.split(), (1e-3**_n,))
_SCALES["m"] += (1e-3,)
_SCALED = re.compile(
    rf"[ -]?(?:(%|{'|'.join(name for name in _SCALES if len(name) > 3)})"
    r"|([kKMGTPEBmµun])(?:\b|i?(?:B|b|bit|FLOP|Hz|W|J|s|m)))"
)
# What compares, with the numbers of which code holds one where it is computed.
_PARTS = {"half": (2, 0.5), "twice": (2,), "thrice": (3,), "third": (3,), "quarter": (4, 0.25),
          "fifth": (5, 0.2), "tenth": (10, 0.1), "halv": (2, 0.5), "double": (2,), "doubl": (2,),
          "triple": (3,), "tripl": (3,), "quadruple": (4,), "quadrupl": (4,)}  # fmt: skip
_COMPARED = (
    """time bytes memory cost price energy power FLOPs? parameters tokens traffic speed bandwidth rate"""
)
_COMPARING = re.compile(
    rf"""\b(?:(?P<as>twice|thrice|half)\s+(?:as\s+[a-z]+|(?:fast|slow|larg|small|long|short|cheap)e?r)
    |(?P<times>twice|thrice|half|double|triple|quadruple)\s+the\s+(?:{"|".join(_COMPARED.split())})
    |(?P<makes>halv|doubl|tripl|quadrupl)(?:es|ing)\s+the\s+(?:{"|".join(_COMPARED.split())})
    |(?:factor\s+of\s+|(?=[a-z]+fold))(?P<factor>two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|hundred)(?:fold)?
    |(?P<of>half|third|quarter|fifth|tenth)s?\s+of\s+the\s+(?:{"|".join(_COMPARED.split())}))\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Before "million parameters" these leave nothing to say: the number stands before it, or nobody gives one.
_SAID_BEFORE = re.compile(rf"(?:[\d%{HOLE}\ufffc]|\b(?:few|several|many|some))\s*$")

# ---------------------------------------------------------------------------- what stands in a line

_OTHER = "\ufffc"  # stands for what is structural: code, a formula, the number of a figure
_CITED = "\ue001"  # a private character, which stands for a citation
_BARE = re.compile(rf"[-−+±~]?(?:{_DIGITS})(?:[ ]?[A-Za-z%/]+)?(?:,[ ]*[-−+±~]?(?:{_DIGITS}))*")
# What a formula of a label says of a run: `$3.2\times$`, `$42\%$`, `$R^2 = 0.98$`.
_MEASURED_IN_FORMULA = re.compile(r"(?<![\^_{\d.])\d+\.\d|\d\s?\\%|\d\s?\\times\s*$")
# A rank has its number for a name: "rank 0", "ranks 0, 1 and 3".
_SHORT = r"(?:[kKMGTP]?i?B|[mµun]?s|min|h|d|[kM]?W|J|[kMGT]?Hz|[mcknµ]?m|kg|g|V|A|K|°C?)\b"
_UNIT_BEHIND = rf"[ ]*(?:%|{_SHORT}|(?:{'|'.join(_UNITS.split())})s?\b)"
# Python-3, x86-64, Name-3-8B; of "sub-10 ms" the unit says that it is a number.
_HYPHENED = re.compile(
    rf"""\b(?!(?:[Ss]ub|(?!utf|int|fp|bf|float|sha|md|base)(?:[a-z]+-)*[a-z]+|\w*\d)
    -(?:{_DIGITS})[ -]?(?:%|{_SHORT}|(?:{"|".join(_UNITS.split())})s?\b))
    [^\W\d_]\w*(?:-\w+(?:\.\d+)*)+""",
    re.VERBOSE,
)
# After one of these a noun is no part of a name: "on each device 8 copies".
_COUNTS = "".join(rf"(?<!\b{word}[ ])" for word in "each every per a an any no one another both all".split())
_RANKS = re.compile(rf"\b{_COUNTS}ranks?\s(\d+(?:(?:,\s|\s(?:and|or)\s)\d+)*)\b(?!\.\d)", re.IGNORECASE)
# So have standards, tables, and what has version and size in its name: "IEEE 754", "Table 8", "Name 2 13B".
_NAMED = re.compile(
    r"""\b802\.\d+[a-z]*\b
    |\b(?:(?:IEEE|ISO|IEC|ANSI|ECMA|RFC|DIN|NIST|POSIX)(?:[ ]Std)?
    |(?:Table|Figure|Fig\.|Section|Sec\.|Chapter|Equation|Eq\.|Appendix|Algorithm|Theorem|Lemma|Listing|Lecture|Part)s?
    |[A-Z]\w*(?=[ ]\d+(?:\.\d+)?[ ]\d+(?:\.\d+)?[BMT]\b))
    [ ]\d+(?:\.\d+)*[a-z]?(?:[ ]\d+(?:\.\d+)?[BMT])?\b(?!\.?\d)""",
    re.VERBOSE,
)
# What is known by a version, a norm or a size in its name: "CUDA 12", "HTTP 404", "C++17", "Name3-0.6B".
_VERSIONED = re.compile(
    rf"""\b(?:(?:CUDA|Python|PyTorch|NumPy|PEP|HTTP|TLS|Rust|Windows|macOS|Ubuntu|[RG]TX|PCIe|NVLink)
    [ ]\d+(?:\.\d\d?)?\b(?![.,]?\d|{_UNIT_BEHIND})
    |[A-Z]{{1,3}}\d{{2,4}}(?:[ ](?:SXM|PCIe))?[ -]\d+[ ]?GB\b|IEEE[ ]\d+-\d{{4}}\b|HTTP/[123]\b(?![.]?\d\d)
    |C\+\+\d\d\b|[A-Z][a-z]+\d(?:\.\d)?-\d+(?:\.\d+)?B\b|[A-Z][a-z]+[ -]\d+x\d+B\b)""",
    re.VERBOSE,
)
# What is one of several has a digit for a name: "row 0", "columns 0 and 1", "Step 2:", "assignment 3"; and
# so have the position in `x[0]`, an order ("2-D", "3D", a "5-gram") and a way to count ("0-based").
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)\b"
_INDEXED = re.compile(
    rf"""\b(?i:{_COUNTS}(?:row|column|axis|axes|dim(?:ension)?|device|GPU|layer|block|head|expert
    |index|node|stage|level|phase|assignment|example|problem|question|exercise|case|caveat|route|option|attempt
    |property|version|order|class|type|base|token|position|epoch|iteration|bit))s?
    [ ]\d(?:(?:,[ ]|[ ](?:and|or)[ ])\d)*
    (?![\w%]|,?\d|\.\d|{_UNIT_BEHIND})
    |\b(?i:rank|order|degree)[ ]\d(?=[ ](?:tensor|matri|array|update|approximation|polynomial))
    |\bStep[ ]\d\d?\b(?![.,]\d)|\b0s[ ]and[ ]1s\b|\b[Ii]ndex[ ]of[ ][-−]?\d\b(?![.,]\d)|\b[Tt]ype[ ]\d[ ]error
    |(?<=\w)\[-?\d(?:,[ ]?-?\d)*\]
    |\b\d+x\d+[ ](?:kernel|convolution|filter|patch|pixel|matri|tile)
    |\b2:4[ ]spars|\b\d{{1,3}}-(?:bit|way)\b|\b(?:base[ ]10|24/7)\b(?!\.\d|{_UNIT_BEHIND})
    |(?<![\d.,]\ )\b0[ ](?:and|or)[ ]1\b(?![\w%]|[.,]\d|{_UNIT_BEHIND})
    |\b{_ORDINAL}(?=(?:[ ](?:and|or|to)[ ](?:the[ ])?{_ORDINAL})?
    [ ](?:axis|row|column|percentile|element|dimension|bit|layer|token)\b)
    |\b\d(?:-?D|-grams?|-(?:based|indexed|norm|dimensional))\b""",
    re.VERBOSE,
)
_PLAIN = ("wrong", "answer")  # what is no Markdown
_LISTED = 12  # numbers of one text
_HOLDING = (
    "heading",
    "wrong",
    "label",
)  # what has no backticks: a number in it is as one in backticks elsewhere
_BEFORE_FORMULA = re.compile(r"(?:[=<>≤≥≈^(]|\bO\()\s*[-−+]?$")
_BEFORE_NAME = re.compile(r"\b[A-Z]\w*(?: \d[\w.]*)?\s$")
_NUMBERED = re.compile(r"\d+(?:(?:\.\d+)+[.)]?|[.)])\s")  # how a heading with a number begins
_BRACED = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")
# The end of a sentence and of the citations right behind it; in "et al. [@key] found" there is none.
_END = re.compile(rf"[.!?…][”’»\"')\]]*(?:\s*{_CITED})*(?=\s+[^\sa-z{_CITED}])")


def find_unbacked(lecture: Lecture, record: Record | None = None) -> list[Finding]:
    """Every unbacked number of `lecture` and every brace that lacks its `f`, in the order of its files.

    With the `record` of its run also those of texts that stand nowhere as they were said.
    """
    called = {key for section in record.sections for key in section.calls} if record else set[str]()
    texts = [*prose(lecture, called)]
    found: dict[tuple[int, int, int], Finding] = {}
    told = set[tuple[int, int, int, str]]()  # number of a file, place of a word in it, a number
    more = dict[tuple[int, int, int], list[str]]()  # where several stand in one text that a run put together
    of_run = (said(lecture, record, texts), captions(lecture, record)) if record else ()
    for text in itertools.chain(texts, *of_run):
        note = grammar.read(text.passage.text, HOLE) if text.kind not in _PLAIN else _plain(text)
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
                    found[text.file.number, *place] = problem
            for at, number in _numbers(line, text):
                place, key = places[spelled[at][1]], (text.file.number, *text.word, number)
                if text.made and key in told:
                    continue  # it stands in a text that this one was made of
                told.add(key)
                where = _PLACES.get(text.kind, "prose")
                what = f"unbacked: the number {number!r} in {where}"
                code = "unbacked-label" if text.kind == "label" else "unbacked"
                problem = Finding(
                    code, what, text.file.place(*place), _way_out(line[max(0, at - 60) : at], number, text)
                )
                before = found.setdefault((text.file.number, *place), problem)
                if text.made and before is not problem:
                    more.setdefault((text.file.number, *place), []).append(repr(number))
    for watch, number in typed_measures(lecture):
        place = lecture.files[watch.file].place(watch.line, 1)
        what = f"unbacked: the number {number!r} is said to be measured"
        found[watch.file, place.line, place.column] = Finding("unbacked", what, place, _WAY_OUT_MEASURED)
    for call, numbers in more.items():
        details = (f"and {', '.join(numbers[:_LISTED])}{', …' * (len(numbers) > _LISTED)}",)
        found[call] = replace(found[call], details=details)
    return [found[call] for call in sorted(found)]


def _plain(text: ProseText) -> tree.Note:
    """A text that is no Markdown."""
    line = tree.TextNode(0, text.passage.text)
    return tree.Note(text.passage.text, (tree.Paragraph(0, (line,)),))


def _way_out(before: str, number: str, text: ProseText) -> str:
    """What to do about a number, from what stands before it in its line."""
    ways = [WAYS_OUT[text.kind]]
    if number[:1].isdigit() and text.kind in ("words", "exercise"):
        ways[:0] = [_FORMULA] if _BEFORE_FORMULA.search(before) else []
        ways[:0] = [_NAME] if _BEFORE_NAME.search(before) else []
    return ", ".join([_DETOUR] * text.made + ways)


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
            case tree.Math(latex=tex) if text.kind == "label" and (
                _BARE.fullmatch(tex.strip()) or _MEASURED_IN_FORMULA.search(tex)
            ):
                yield from zip(tex, itertools.count(node.at))
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
        names += [
            m.span()
            for found in (_NAMED, _VERSIONED, _INDEXED, _HYPHENED)
            for m in found.finditer(line, start, end)
        ]
        for match in _NUMBER.finditer(line, start, end):
            if any(first <= match.start() < last for first, last in names):
                continue
            # Of a label a digit alone is as a name is, and `4d` is algebra.
            short = re.fullmatch(
                r"\d[a-wyzN]?|\d+[LNT]*[dN][LNT]*|(?:\d[A-Z]){2,}", match[0]
            ) and not _UNIT.match(line, match.end())
            short = short and not re.match(r"\s?[x×](?!\w)", line[match.end() :])  # "8× less"
            if text.kind == "label" and short:
                continue
            values = _values(match[0])
            if re.match(r"\s?%", line[match.end() : match.end() + 2]):  # of 40 % code holds 0.4
                values = frozenset(v if v in text.held else v / 100 for v in values)
            if text.kind == "caption" and _is_rounded(line, match, text.held):
                continue
            if text.kind not in _HOLDING or not values <= text.held:
                yield match.start(), match[0]
        # "Six FLOPs per parameter" is the thesis of a section: it is what its claims are about.
        for match in _WORDS.finditer(line, start, end) if text.kind != "heading" else ():
            words = (match["words"] or "").lower()
            scale = words.split(" ")[0] in _SCALE
            # "while one byte arrives", "an eight-bit float"
            article = words == "one" or match[0].lower().endswith("-bit")
            held = text.kind in ("wrong", "caption") and _spelled(words) in text.held
            if not article and not held and not (scale and _SAID_BEFORE.search(line, 0, match.start())):
                yield match.start(), " ".join(match[0].split())
        for match in _COMPARING.finditer(line, start, end) if text.kind in ("words", "label") else ():
            part = next(filter(None, match.groups())).lower()
            values = frozenset(_PARTS.get(part) or (_spelled(part),))
            if not line[:end].rstrip().endswith("?") and not text.factors & values:
                yield match.start(), " ".join(match[0].split())


def _is_rounded(line: str, at: re.Match[str], held: frozenset[float]) -> bool:
    """Whether a number, in the unit behind it, is of those `held`: rounded, cut, `1 / 16`, or in bits."""
    number, behind = at[0], line[at.end() :]
    if re.fullmatch("[01]{4,}", number) and any(number in f"{int(v):b}" for v in held if v % 1 == 0):
        return True
    if re.search(r"\b1 ?/ ?$", line[: at.start()]):
        held = held.union(1 / value for value in held if value)
    written = [match[0].replace(",", "").replace("−", "-") for match in re.finditer(_DIGITS, number)]
    last = re.search(rf"(?:{_DIGITS})([^\W\d_]*)$", number)  # "71GB", and "71" before " GB"
    unit = _SCALED.match((last[1] if last else "") + behind)
    scales = (1, *_SCALES[next(filter(None, unit.groups())).lower()]) if unit else (1,)
    for text in written if written and all(text.count(".") < 2 for text in written) else ():
        said, digit = float(text), 10.0 ** cast(int, Decimal(text).normalize().as_tuple().exponent)
        away = (value / scale - said for value in held for scale in scales)
        if not any(-digit / 2 <= off < digit for off in away):
            return False
    return bool(written)


def _spelled(words: str) -> float:
    """The number that words say: 24 of "twenty-four", 1.5e13 of "fifteen trillion"."""
    total, part, small = 0.0, 0.0, _SMALL.split()
    for word in re.findall("[a-z]+", words):
        if word in small:
            place = small.index(word)
            part += place + 1 if place < len(small) - 8 else 10 * (place - len(small) + 10)
        elif word in ("hundred", "dozen"):
            part = (part or 1) * _SCALE[word]
        elif word in _SCALE:
            total, part = total + (part or 1) * _SCALE[word], 0.0
    return total + part


def _values(text: str) -> frozenset[float]:
    """The numbers written in `text`, without their signs."""
    return frozenset(
        float(re.sub("[,_]", "", match[0]).replace("−", "-"))
        for match in re.finditer(rf"(?<![\w.]){_DIGITS}", text)
        if match[0].count(".") < 2
    )
