"""Check yourself: a question is asked, its answer is captured, and no page can show another one."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.records import fill
from tests.running import line_of, messages, record, section, write

from litbook import question
from litbook.errors import AuthorError
from litbook.html import page, questions
from litbook.markdown.links import Citations, NoteContext
from litbook.page import pieces
from litbook.page.blocks import Question
from litbook.page.view import SectionView
from litbook.record import encoding, model
from litbook.run.run import run
from litbook.terminal.transcript import Terminal
from litbook.values import formatting

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CPU_NOTE = 'question("How many bytes take `x`?", answer=x.nbytes, unit="B", hint="Count the *elements*.")'
BODY = f"x = torch.ones(2, 3)\n{CPU_NOTE}\ny = 2"


@pytest.fixture
def made(tmp_path: Path) -> model.Record:
    return record(tmp_path, section(BODY, "import torch"))


def asked(made: model.Record) -> list[model.Piece]:
    return [piece for section in made.sections for piece in section.pieces if piece.kind == "question"]


def answers(made: model.Record) -> list[Any]:
    return [
        it.snapshots[p.answer]
        for it in made.sections
        for p in it.pieces
        if p.kind == "question" and p.answer is not None
    ]


def words(body: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


# ------------------------------------------------------------------------ the word


def count(n: int) -> Iterator[int]:
    yield from range(n)


async def later() -> int:
    return 3


class Called:
    def __call__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (count, r"not count: call it and pass what comes back"),
        (lambda: 3, r"not <lambda>: call it"),
        (Called(), r"not Called: call it"),
        (int, r"not int: call it"),
        (print, r"not print: call it"),
        (later, r"not later: call it"),
        (count(3), r"not a generator: a record cannot hold what has not been computed"),
        ((i for i in range(3)), r"not a generator"),
        (iter([1]), r"not a list_iterator"),
        (map(str, [1]), r"not a map"),
        (zip([1], [2], strict=True), r"not a zip"),
    ],
)
def test_what_has_not_been_computed_is_no_answer(answer: object, said: str) -> None:
    with pytest.raises(AuthorError, match=rf"^question\(\) takes the answer itself, {said}"):
        question("How many?", answer=answer)


def test_a_coroutine_is_no_answer() -> None:
    coroutine = later()
    with pytest.raises(AuthorError, match="not a coroutine"):
        question("How many?", answer=coroutine)
    coroutine.close()


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n"])
def test_a_blank_question_is_refused(text: str) -> None:
    with pytest.raises(
        AuthorError, match=r"question\(\) needs a text: ask something that this section answers"
    ):
        question(text, answer=3)


@pytest.mark.parametrize(
    ("answer", "check"),
    [(6, 6), (6, 6.0), (0.1 + 0.2, 0.3), ([1, 0.5], (1, 0.5)), ("a", "a"), (True, 1), (math.inf, math.inf)],
)
def test_an_answer_that_its_check_agrees_with_is_asked(tmp_path: Path, answer: Any, check: Any) -> None:
    text = f"from math import inf\nquestion('x?', answer={answer!r}, check={check!r})"
    assert [it.message for _, it in record(tmp_path, section(text)).errors()] == []


@pytest.mark.parametrize(
    ("answer", "check"),
    [(6, 7), (10**9, 10**9 + 100), (0.3, 0.3001), ([1, 2], [1, 3]), ([1, 2], [1]), ("a", "b"), (math.nan, 1)],
)
def test_an_answer_that_its_check_disagrees_with_is_an_error(tmp_path: Path, answer: Any, check: Any) -> None:
    text = f"from math import nan\nquestion('x?', answer={answer!r}, check={check!r})"
    (said,) = [it.message for _, it in record(tmp_path, section(text)).errors()]
    assert said == (
        "AuthorError: question() has an answer that its check disagrees with: correct one\n"
        f"answer: {answer!r}\ncheck:  {check!r}{NEAR * (answer == 0.3)}"
    )


NEAR = "\nthey have to agree to nine digits, whatever `within` is; claim what is only near it"


@pytest.mark.parametrize("within", [-0.1, 9.5, 50, float("inf"), float("nan"), "1 %", None, True])
def test_what_says_not_how_far_off_an_answer_may_be_is_refused(within: Any) -> None:
    said = "question() takes within=0.05 for five percent, 1 for a factor of two, at most 9, not "
    with pytest.raises(AuthorError, match=f"^{re.escape(said + repr(within))}$"):
        question("x", answer=1, within=within)


def test_what_is_no_text_is_refused() -> None:
    cases: list[dict[str, Any]] = [{"text": 3}, {"text": "x", "hint": 3}, {"text": "x", "unit": 3}]
    cases.append({"text": "x", "why": 3})
    for wrong in cases:
        with pytest.raises(AuthorError, match=r"question\(\) takes text, not int: 3"):
            question(**{"answer": 1, **wrong})
    with pytest.raises(AuthorError, match="blank unit: leave it out"):
        question("x", answer=1, unit=" ")


def test_text_and_answer_have_to_be_there() -> None:
    call: Callable[..., None] = question
    with pytest.raises(TypeError, match="text"):
        call(answer=3)
    with pytest.raises(TypeError, match="answer"):
        call("How many?")


def test_plain_python_prints_question_and_answer(capsys: pytest.CaptureFixture[str]) -> None:
    question("How many?", answer=3, unit="days")
    question(
        """
        Which?
        """,
        answer=None,
        hint="the first",
    )
    assert (
        capsys.readouterr().out == "Question: How many?\nAnswer: 3 days\n\nQuestion: Which?\nAnswer: None\n\n"
    )


def test_plain_python_bounds_an_answer_and_survives_one_without_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Bad:
        def __repr__(self) -> str:
            raise ValueError

    question("?", answer=list(range(10**5)))
    question("?", answer=Bad())
    out = capsys.readouterr().out
    assert len(out) < 600
    assert "Answer: (its text raised ValueError)" in out


def test_none_zero_false_and_empty_are_answers(tmp_path: Path) -> None:
    given = "None", "0", "False", "''", "()", "float('nan')", "-0.0", "10**400"
    made = record(tmp_path, section("\n".join(f"question('?', answer={it})" for it in given)))
    assert [it.text for it in answers(made) if isinstance(it, model.Scalar)][:4] == [
        "None",
        "0",
        "False",
        "''",
    ]
    assert len(answers(made)) == len(given)
    assert messages(made) == []


# ------------------------------------------------------------------------ the record


def test_the_record_holds_question_answer_unit_and_hint(made: model.Record) -> None:
    (piece,) = asked(made)
    assert (piece.text, piece.data, piece.unit) == ("How many bytes take `x`?", "Count the *elements*.", "B")
    assert answers(made) == [model.Scalar("int", "24", 24)]
    assert made.by_key["one"].first + piece.line == line_of(made.sources[0].text, "question(")
    assert encoding.loads(encoding.dumps(made)) == made


def test_the_answer_is_what_it_was_when_the_question_was_asked(tmp_path: Path) -> None:
    body = "x = torch.zeros(2)\nquestion('?', answer=x)\nx += 1\nquestion('?', answer=x)\nlist_ = [1]\nquestion('?', answer=list_)\nlist_.append(2)"
    first, second, third = answers(record(tmp_path, section(body, "import torch")))
    assert (first.values, second.values, third.length) == ((0.0, 0.0), (1.0, 1.0), 1)


def test_equal_answers_are_stored_once(tmp_path: Path) -> None:
    made = record(tmp_path, section("question('a?', answer=7)\nquestion('b?', answer=7)"))
    first, second = asked(made)
    assert first.answer == second.answer


def test_a_question_from_a_helper_belongs_to_the_line_of_the_section(tmp_path: Path) -> None:
    helper = "def ask(n):\n    question(f'{n}?', answer=n)\n"
    made = record(tmp_path, section("x = 1\nask(5)", helper))
    line = made.by_key["one"].first + asked(made)[0].line
    assert line == line_of(made.sources[0].text, "    ask(5)")


def test_a_refused_question_is_an_error_at_its_line_and_the_run_goes_on(tmp_path: Path) -> None:
    text = section("question('Why?', answer=print)").replace("    one()\n", "    one()\n    two()\n", 1)
    text += '\n\ndef two():\n    """Two."""\n    question("?", answer=2)\n'
    made = record(tmp_path, text)
    line = line_of(text, "question('Why?'")
    assert messages(made) == [
        f"{line}: AuthorError: question() takes the answer itself, not print: call it and pass what comes back"
    ]
    assert [error.kind for _, error in made.errors()] == ["author"]
    assert answers(made) == [model.Scalar("int", "2", 2)]


def test_an_answer_that_points_nowhere_is_a_damaged_record(made: model.Record) -> None:
    from litbook.errors import RecordError

    damaged = fill(made, "one", pieces=tuple(replace(piece, answer=999) for piece in asked(made)))
    with pytest.raises(RecordError, match=r"snapshot 999 of 'one' does not exist"):
        encoding.loads(encoding.dumps(damaged))


def test_a_question_that_never_ran_keeps_its_text_and_has_no_answer(tmp_path: Path) -> None:
    text = section("x = 1\nquestion('How many?', answer=x)").replace(
        "def one():", "@requires('cuda')\ndef one():"
    )
    made = run(write(tmp_path, text), device="cpu")
    said = "**Check yourself.** How many?"
    assert said in [statement.prose for statement in made.by_key["one"].statements]
    body = page.pages(made)["index.md"]
    assert "Check yourself." in words(body)
    assert "question(" not in words(body)
    assert "Not run (needs a GPU): the answer comes from the run." in words(body) and 'class="lb-ask"' in body


HERE = "from random import random\nKiB = 2**10\nEACH = [KiB, 2 * KiB]\nDRAWN = random()\n"


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("0.08 * 19.5 / 312", "0.005"),
        ("4 * KiB", "4,096"),
        ("[max(EACH), EACH[1] // 3]", "[2048, 682]"),
        ("sum(n for n in EACH)", "3,072"),
        ("x", ""),
        ("x * KiB", ""),
        ("DRAWN", ""),
        ("random()", ""),
        ("1 / 0", ""),
        ("nowhere", ""),
    ],
)
def test_an_answer_that_needs_nothing_of_its_section_is_there_without_the_device(
    tmp_path: Path, answer: str, value: str
) -> None:
    how = "f'How many of {KiB}?'" if value else "'How many?'"
    text = section(f"x = 1\nquestion({how}, answer={answer}, unit='B')", HERE)
    text = text.replace("def one():", "@requires('cuda')\ndef one():")
    made = run(write(tmp_path, text), device="cpu")
    body = words(page.pages(made)["index.md"])
    assert not made.by_key["one"].has_run and messages(made) == []
    assert encoding.loads(encoding.dumps(made)) == made
    assert body.count("Check yourself") == 1
    if value:
        (piece,) = asked(made)
        assert (piece.text, piece.frame) == ("How many of 1024?", -1)
        assert formatting.line(made.by_key["one"].snapshots[piece.answer or 0]) == value
        assert body.count("Answer") == 2 and "comes from the run" not in body
    else:
        assert asked(made) == [] and "the answer comes from the run." in body


def test_two_ways_that_differ_are_told_of_also_where_their_section_does_not_run(tmp_path: Path) -> None:
    asks = "question('How many?', answer=2 * 3, check=2 + 3)\nquestion('And what?', answer=nothing.here)"
    asks += "\nquestion('Which?', answer=print)"
    text = section(f"x = 1\n{asks}").replace("def one():", "@requires('cuda')\ndef one():")
    made = run(write(tmp_path, text), device="cpu")
    differs, callable_ = messages(made)
    assert "answer that its check disagrees with" in differs and "check:  5" in differs
    assert "takes the answer itself" in callable_
    assert asked(made) == []


def test_what_a_section_would_have_said_stands_in_its_boxes_and_never_as_code(tmp_path: Path) -> None:
    pieces = [
        'misbelief("It copies.", f"It took {x} B.")',
        'misbelief("It is free.", "It is not.")',
        'figure(None, caption=f"Rates, {x} of them", alt="a curve")',
        'link(one, "the section")',
        'note("a table: " + str(x))',
    ]
    text = section("x = 1\n" + "\n".join(pieces)).replace("def one():", "@requires('cuda')\ndef one():")
    body = page.pages(run(write(tmp_path, text), device="cpu"))["index.md"]
    assert "Run:" not in body and "said" not in body, "what would refute it has not run"
    assert "…" not in words(body)
    assert "Not run (needs a GPU) Shows 0 claims, 1 drawing: " in words(body)
    assert '<a href="#one">the section</a>' in body and "a table:" in words(body)
    assert not re.search(r"(misbelief|figure|link|note)\(", words(body))


# ------------------------------------------------------------------------ the terminal


def printed(file: Path, **options: Any) -> str:
    out = io.StringIO()
    screen = Console(file=out, width=100, force_terminal=options.pop("colour", False))
    run(file, listener=Terminal(screen, **options), device="cpu")
    return out.getvalue()


def test_the_terminal_shows_the_answer_below_the_question_and_no_code(tmp_path: Path) -> None:
    shown = printed(write(tmp_path, section(BODY, "import torch")))
    assert "Check yourself: How many bytes take `x`?\nHint: Count the *elements*.\nAnswer: 24 B\n" in shown
    assert "question(" not in shown


def test_a_question_steers_no_terminal_and_quiet_hides_it(tmp_path: Path) -> None:
    body = r"""question("a \x1b[31m [red]b[/red]", answer="\x1b[2J [/nope]", unit="[bold]\x07", hint="\x1b]0;t\x07")"""
    file = write(tmp_path, section(body))
    shown = printed(file)
    assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert "[red]b[/red]" in shown
    assert "Check" not in printed(file, quiet=True)
    assert "[red]b[/red]" in printed(file, colour=True)


# ------------------------------------------------------------------------ the page


def test_the_page_asks_and_folds_the_answer(made: model.Record) -> None:
    body = page.pages(made)["index.md"]
    line = line_of(made.sources[0].text, "question(")
    box = re.search(r'<div class="lb-ask".*?</div>\n', body, re.S)
    assert box is not None
    assert words(box[0]) == (
        "Check yourself · answer 1 How many bytes take x ? Hint Count the elements . Answer x.nbytes = 24 B"
    )
    assert box[0].count("<details") == 2
    assert " open" not in re.sub(r'class="[^"]*"', "", box[0])
    assert "question(" not in words(body)
    assert f'id="L{line}"' in body


def test_a_question_without_a_hint_has_one_thing_to_open(tmp_path: Path) -> None:
    body = page.pages(record(tmp_path, section("question('How many?', answer=3)")))["index.md"]
    assert body.count('<details class="lb-open') == 1


@pytest.mark.parametrize(
    ("answer", "typed"),
    [
        ("24, unit='B'", 'data-answer="[24]" data-unit="B"'),
        ("0.5, unit='%'", 'data-answer="[0.5]"'),
        ("[40, 80.5], within=1", 'data-answer="[40, 80.5]" data-within="1"'),
        ("torch.Size([2, 3])", 'data-answer="[2, 3]"'),
        ("torch.tensor(3)", 'data-answer="[3]"'),
        ("10**20", 'data-answer="[1e+20]"'),
        ("torch.float32", 'data-answer="[&quot;torch.float32&quot;]"'),
        ("True", 'data-answer="[&quot;True&quot;]"'),
        ("'x' * 60", ""),
        ("None", ""),
        ("1j", 'data-answer="[&quot;1j&quot;]"'),
        ("float('nan')", ""),
        ("[[1], [2]]", ""),
        ("list(range(20))", ""),
        ("[]", ""),
        ("{'a': 1}", ""),
        ("torch.ones(2, 3)", ""),
    ],
)
def test_an_answer_that_can_be_typed_is_there_for_the_script(tmp_path: Path, answer: str, typed: str) -> None:
    body = page.pages(record(tmp_path, section(f"question('?', answer={answer})", "import torch")))[
        "index.md"
    ]
    head = body.partition('aria-label="Check yourself')[2].partition(">")[0]
    assert head.partition('" id="question-1"')[2].strip() == typed


def test_why_an_answer_is_so_stands_below_it_and_in_the_terminal(tmp_path: Path) -> None:
    text = section("question('How many?', answer=2, why='One for each *side*.')")
    body = page.pages(record(tmp_path, text))["index.md"]
    assert words(body).count("2 One for each side .") == 2, "in the box, and at the end on paper"
    assert "Answer: 2\nOne for each *side*.\n" in printed(write(tmp_path, text))


def test_a_tensor_as_an_answer_is_drawn(tmp_path: Path) -> None:
    body = page.pages(record(tmp_path, section("question('?', answer=torch.ones(2, 3))", "import torch")))[
        "index.md"
    ]
    assert 'class="lb-card"' in body


HOSTILE = "</details></div><script>alert(1)</script> [x](javascript:alert(1)) <img src=x onerror=alert(1)>\n\n# head"


def box(piece: model.Piece, evidence: SectionView) -> str:
    block = pieces.block(piece, pieces.answer(piece, evidence, "", {}))
    assert isinstance(block, Question)
    return questions.box(block, evidence.entry, NoteContext(Citations({})), [])


def test_question_hint_unit_and_answer_are_text_whatever_they_hold(made: model.Record) -> None:
    hostile = replace(asked(made)[0], text=HOSTILE, data=HOSTILE, unit=HOSTILE, answer=0)
    one = replace(made.by_key["one"], snapshots=(model.Scalar("str", HOSTILE),))
    body = box(hostile, SectionView(made, one, one.first))
    assert set(re.findall(r"</?(\w+)", body)) <= {
        "div",
        "p",
        "details",
        "summary",
        "b",
        "small",
        "strong",
        "code",
        "a",
    }
    assert body.count("<div") == body.count("</div>") == 1
    assert not re.search(r"<[^>]+\son\w+=", body)
    assert 'href="javascript' not in body
    assert "\n" not in body  # one line: Markdown around it changes nothing


def test_the_answer_of_a_section_that_ran_elsewhere_names_the_recording(made: model.Record) -> None:
    there = SectionView(made, made.by_key["one"], 1, "NVIDIA H200, 20 Nov 2026")
    body = box(asked(made)[0], there)
    assert "24 B NVIDIA H200, 20 Nov 2026" in words(body)


# ------------------------------------------------------------------------ in a browser


@pytest.fixture
def asking(browser: Browser, repo: Path, made: model.Record, tmp_path: Path) -> Iterator[Page]:
    """A page with one question under the site's style sheet, without scripts."""
    import markdown

    body = markdown.markdown(page.pages(made)["index.md"], extensions=["attr_list", "md_in_html"])
    style = (repo / "tools/litbook/html/assets/litbook.css").read_text(encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>q</title><style>{style}</style>'
        f'<body data-md-color-scheme="default"><article class="md-typeset">{body}</article></body></html>',
        encoding="utf-8",
    )
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(file.as_uri())
    yield opened
    context.close()


def test_the_answer_opens_with_the_keyboard_and_without_a_script(asking: Page) -> None:
    assert asking.locator(".lb-ask").get_by_text("How many bytes").is_visible()
    assert not asking.locator(".lb-reply").is_visible()
    asking.locator(".lb-answer summary").focus()
    asking.keyboard.press("Enter")
    assert asking.locator(".lb-reply").is_visible()
    assert "24 B" in asking.locator(".lb-reply").inner_text()
    assert not asking.locator(".lb-answers").is_visible()


def test_paper_has_the_answers_at_the_end_of_the_page(asking: Page) -> None:
    asking.emulate_media(media="print")
    assert not asking.locator(".lb-answer").is_visible()
    asked, answered = asking.locator(".lb-ask"), asking.locator(".lb-answers li")
    assert asked.inner_text().startswith("Check yourself · answer 1")
    assert answered.inner_text().strip() == "One: x.nbytes = 24 B"
    for inside, of in ((asked, answered), (answered, asked)):
        assert inside.locator("a").get_attribute("href") == f"#{of.get_attribute('id')}"


def test_the_answers_at_the_end_are_links_in_a_pdf_also_from_a_folded_aside(asking: Page) -> None:
    assert asking.pdf().count(b"/Subtype /Link") >= 2


@pytest.mark.parametrize(
    ("between", "filled"),
    [
        ("pass", True),
        ("print(whole)", True),  # handing it over changes nothing
        ("whole = 5", False),
        ("whole = 5  # @hide", False),
        ("whole += 1", False),
        ("for whole in range(3): pass", False),
        ("part, whole = 1, 2", False),
        ("other = whole", True),
    ],
)
def test_an_answers_working_has_no_value_that_a_later_line_made_another(
    tmp_path: Path, between: str, filled: bool
) -> None:
    lines = (
        f"part, whole = 3, 6  # @inspect part, whole\n{between}\nquestion('How many?', answer=part / whole)"
    )
    body = words("".join(page.pages(run(write(tmp_path, section(lines)))).values()))
    assert ("3 / 6" in body) is filled and "part / whole" in body
