"""The field's words: what the lectures' prose does not say, with the word that it says instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.running import LECTURE_02, LECTURE_03, LECTURE_04, LECTURE_05, REPO

from litbook.lecture import parse, prose

# A pattern over prose without its code, formulas and links, and what to say instead. Where one word has a good sense, too,
# the pattern leaves that out.
WORDS = {
    r"\btexts\b|\ba text\b": "sequence, request, prompt or document",
    r"\bwrit(?:es|ing|ten|e) (?:a |the |one |each |its )?(?:next |first )?(?:tokens?|words?|texts?)\b": "generate, decode",
    r"\bread(?:s|ing)? (?:a|the|its) prompts?\b": "prefill",
    r"\bcomputers?\b": "node; machine",
    r"\bcards?\b": "GPU; device",
    r"\bplaces? (?:of|in) (?:a|the|its) (?:tokens?|sequence|memory|text)\b|\bsame place\b|\bat (?:each|every) place\b": "position; address",
    r"⌷ numbers\b|\b(?:rows?|matrix|tensor|vector) of numbers\b|\bnumbers (?:of|in) (?:a|the|each) (?:tensor|matrix|head)\b": (
        "elements, values"
    ),
    r"\b(?:matrix products?|products? of (?:two )?matrices|(?:large|small|narrow) products?)\b": "matmul",
    r"\b(?:narrow|wide)(?:r|st|er|est)? (?:formats?|numbers?|weights?|floats?|passe?s?|cop(?:y|ies)|activations?)\b": (
        "low-precision, full-precision; 8-bit, 16-bit"
    ),
    r"\bright (?:entry|token|answer)\b": "target; correct",
    r"\battention(?: is)? written out\b": "unfused (naive) attention",
    r"\bheads of (?:queries|keys|values)\b": "query heads, KV heads",
    r"\bhidden width\b|\bnumbers in a head\b": "model dimension, head dimension",
    r"\btexts at once\b|\ball together\b": "concurrent sequences, batch size",
    r"\bthe wire\b": "traffic, bytes sent",
    r"\benter(?:s|ed)? (?:a|the) (?:collective|all-)": "join, call a collective",
    r"\bpromis\w*": "peak",
    r"\bthe cure\b|\bways? out\b": "the fix",
    r"\btakes? (?:only |about |up to |nearly )?(?:⌷|two|four|six|half a) (?:bytes?|FLOPs?)\b": "uses, costs, needs",
    r"\bstands? (?:in|beside|on|below|above|between|there|at)\b": "is listed, is in, appears",
    r"(?<!times )(?<!twice )(?<!half )(?<!how )(?<!of )\bas many\b(?! as\b| (?:\S+ ){1,4}as\b)": "the same number of",
    r"\bMust (?:they|one|it|there)\b": "Do they have to …?",
    r"\b(?:How many|Which) [^.?]{1,40} are that\?": "How many … is that?",
    r"\bin another order\b": "in a different order",
    r"\bfrom which \w+ on\b": "from what … on",
    r"\bbesides\b": "in addition to",
    r", too[.:;?]": "also, as well",
    r"\bone after the other\b": "in turn; flattened into one vector",
}
# lecture, section, the words that stay there
EXCEPTIONS = {
    ("lecture_04", "all_together", "All together"),  # the name of a part
}


@pytest.mark.parametrize("path", [LECTURE_02, LECTURE_03, LECTURE_04, LECTURE_05], ids=lambda path: path.name)
def test_prose_says_it_in_the_fields_words(path: Path) -> None:
    found = [
        f"{at}: {said!r}: {instead}"
        for at, section, text in texts(path)
        for pattern, instead in WORDS.items()
        for said in (match[0] for match in re.finditer(pattern, text, re.IGNORECASE))
        if (path.name, section, said) not in EXCEPTIONS
    ]
    assert found == []


def texts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Place, section and words of each text of prose: ⌷ for code, a formula or what is computed; no links, no citations."""
    lecture = parse.read(path, path.relative_to(REPO).as_posix())
    for text in prose.prose(lecture):
        line = text.passage.places[0][0] if text.passage.places else 0
        sections = [f for f in lecture.functions if f.file == text.file.number and f.first <= line <= f.last]
        words = re.sub(r"\]\(#[^)]*\)|\[@[^\]]*\]", "", text.passage.text)
        words = re.sub(r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\ue000", "⌷", words, flags=re.DOTALL)
        yield f"{text.file.path}:{line}", sections[-1].name if sections else "", " ".join(words.split())


def test_every_exception_is_still_used() -> None:
    used = {
        (path.name, section, match[0])
        for path in (LECTURE_02, LECTURE_03, LECTURE_04, LECTURE_05)
        for _, section, text in texts(path)
        for pattern in WORDS
        for match in re.finditer(pattern, text, re.IGNORECASE)
    }
    assert EXCEPTIONS - used == set()
