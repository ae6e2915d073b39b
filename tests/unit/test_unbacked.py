"""Numbers in prose: what is computed, cited or structural is let be, everything else is found where it stands."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import LITBOOK, SAMPLES, record, section, write

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.rules import unbacked_number


def found(text: str) -> list[str]:
    """The numbers that are listed for the lecture `text`, as written."""
    return [problem.what.split("'")[1] for problem in unbacked_number.find_unbacked(parse.parse(text))]


def in_note(prose: str, code: str = "x = 1") -> list[str]:
    """The same for a section with `code` and a note of the literal `prose`."""
    return found(section(f"{code}\nnote({prose})"))


# ---------------------------------------------------------------------------- the sample


def test_twenty_planted_numbers_are_found_and_nothing_else() -> None:
    planted, lines = [], []
    for line, marked in enumerate((SAMPLES / "unbacked.py").read_text(encoding="utf-8").splitlines(), 1):
        parts = re.split("[⟦⟧]", marked)
        lines.append("".join(parts))
        columns = [len("".join(parts[:i])) + 1 for i in range(len(parts))]
        planted += [(line, columns[i], parts[i]) for i in range(1, len(parts), 2)]
    assert len(planted) == 20
    listed = unbacked_number.find_unbacked(parse.parse("\n".join(lines)))
    places = [(p.place.line, p.place.column, p.what.split("'")[1]) for p in listed if p.place]
    assert places == planted


# ---------------------------------------------------------------------------- computed


def test_what_a_hole_puts_there_is_computed_and_what_stands_around_it_is_not() -> None:
    assert in_note('f"{x} bytes"') == []
    assert in_note('f"{x:>10,.2f} bytes"') == []
    assert in_note("f\"{'16' if x else '8'} and {dict(a=x)['a']} bytes\"") == ["16"]
    assert in_note('f"{x} of 16 bytes"') == ["16"]
    assert in_note('f"{{16}} of {x}"') == ["16"]
    assert in_note('f"{x}000 bytes"') == ["000"]


def test_texts_put_together_are_followed() -> None:
    assert in_note('"a " + str(x) + " of 16"') == ["16"]
    assert in_note('"a " + str(x) + " of " + f"{x}"') == []
    assert in_note('"| a |\\n" + "\\n".join(rows)', 'rows = [f"| {i} | 16 |" for i in "ab"]') == ["16"]
    assert in_note('"| a |\\n" + "\\n".join(rows)', 'rows = [f"| {i} | {i} |" for i in "ab"]') == []
    assert in_note("text", 'text = "a 16"\ntext += " b 17"') == ["16", "17"]
    assert in_note('"16" if x else "17"') == ["16", "17"]
    assert in_note('"%5.2f of 16" % x') == ["16"]
    assert in_note('"{0:5.2f} of 16".format(x)') == ["16"]


# ---------------------------------------------------------------------------- cited


def test_of_words_on_one_line_each_is_read() -> None:
    text = section('note("It has 17 layers. [@key]"), note("And 19 heads.")').replace(
        "def one", "from litbook import note\ndef one", 1
    )
    assert [it for it in found(text) if it.isdigit()] == ["19"]


def test_a_citation_backs_its_own_note_and_no_other() -> None:
    assert in_note('"16 GB [@gpt3]"') == []
    assert in_note('"16 GB " "[@gpt3; @llama3]"') == []
    assert in_note('"16 GB, see @gpt3"') == ["16"]
    assert found(section('note("16 GB [@gpt3]")\nnote("17 GB")')) == ["17"]
    assert found(section('misbelief("It takes 16 GB.", "No: 17 [@gpt3].")')) == ["16"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It has 17 layers [@key]. And 18 heads.", ["18"]),
        ("It has 17 layers. And 18 heads [@key].", ["17"]),
        ("It has 17 layers. [@key] And 18 heads.", ["18"]),
        ("It has 17 layers (or so!). [@key; @other] [@third]\\nAnd 18 heads?", ["18"]),
        ("As Kaplan et al. [@key] found for 17 layers, e.g. wide ones.", []),
        ("Of *17 layers. [@key]* And of **18**.", ["18"]),
        ("- Of 17 layers [@key]\\n- of 18 heads", ["18"]),
        ("Of 17 layers:\\n\\n> and 18 heads [@key].", ["17"]),
        ("| a | b |\\n|---|---|\\n| 17 | [@key] |\\n| 18 | 19 |", ["18", "19"]),
        ("It has 17 layers [@fig:rate].", ["17"]),
        ("20,000 orders `[@bayer1972]`", ["20,000"]),
    ],
)
def test_a_citation_backs_its_own_sentence_and_no_other(text: str, numbers: list[str]) -> None:
    assert in_note(f'"{text}"') == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("$f[x](y) <\\n17$ of 18", ["18"]),  # a formula over a line end
        ("at\\n17. A year", ["17"]),  # a list does not begin inside a paragraph
        ("As follows.\\n\\n    x = 17 $ y\\n\\nSo.", []),  # code by its indentation
        ("[17][1]\\n\\n[1]: https://a.b/18", ["17"]),
        ("see https://x.org/a_(17) or 18", ["18"]),
        ("**17**,000 and *two* weeks", ["17,000", "two weeks"]),
        ("17&nbsp;GB", ["17"]),
        ("rank 0 holds 17 and ranks 1 and 2 hold 18; 19 ranks", ["17", "18", "19"]),
    ],
)
def test_prose_is_read_as_its_page_is(text: str, numbers: list[str]) -> None:
    assert in_note(f'"{text}"') == numbers


def test_an_indented_block_is_read_without_its_indentation() -> None:
    block = 'r"""\n        It takes 16 bytes,\n\n            x = 17\n\n        and 18.\n    """'
    text = section("pass").replace("    pass", f"    x = 1\n    note({block})")
    assert found(text) == ["16", "18"]
    places = [problem.place for problem in unbacked_number.find_unbacked(parse.parse(text))]
    assert [place and place.text[place.column - 1 :] for place in places] == ["16 bytes,", "18."]


# ---------------------------------------------------------------------------- structural


@pytest.mark.parametrize(
    "text",
    [
        "an H100, GPT-3, Llama-3-8B, float32 and E4M3",  # names
        "rank 0 sends to ranks 1, 2 and 3, or to rank 4",
        "## 2.1 On tensors",  # the number of a heading
        "1. first\\n2) second",  # of an item
        "$2^{32}$ and $$x = 16$$",
        "`x[3]` and `2**10` and ``a`16`b``",
        "```\\nx = 16\\n```",
        "[here](https://a.b/16) and https://a.b/c-16?d=3",
        "the second half, twice, one of many, a few million tokens",
        "x86-64, 802.11ac, H.264, UTF-8 bytes, a utf-8 byte, GPT-3 tokens, a top-5 score and Name-1.5-8B",
        "on layer 9, the GPU 2, and any time before row 0",
        "CUDA 12, PEP 8, an HTTP 404, Windows 11 on an RTX 4090, PCIe 5, NVLink 4 and PyTorch 2",
        "C++17, Qwen3-0.6B, Gemma 2 9B and Mixtral 8x7B",
        "Python 3.12, IEEE 754-2019, HTTP/2, TLS 1.3, an A100-80GB, 0s and 1s, token 0, a 16-bit float, 2:4 sparsity",
        "class 0, an index of -1, base 2 and base 10, a Type 1 error, the 2-norm, a 2-dimensional array",
        "the 0th axis, the 5th and the 95th percentile, a 3x3 kernel, 24/7, a bit is 0 or 1, between 0 and 1",
        "an eight-bit float and a sixteen-bit sum",
    ],
)
def test_what_is_structural_is_let_be(text: str) -> None:
    assert in_note(f'"{text}"') == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("the 16 there", "16"),
        ("## On 16 tensors", "16"),
        ("1. takes 16 bytes", "16"),
        ("costs \\\\$16 and $x$", "16"),
        ("an unclosed ` and 16", "16"),
        ("[16](https://a.b/c)", "16"),
        ("of 1,234,567.5 bytes", "1,234,567.5"),
        ("3.14e-23", "3.14e-23"),
        ("10²³ of them", "10²³"),
        ("70B", "70B"),
        ("the 3rd", "3rd"),
        ("½ of it", "½"),
        ("1/3 of it", "1/3"),
        ("on 2023-10-30", "2023-10-30"),
        ("Python 3.11.7", "3.11.7"),
        ("CUDA 12 GB", "12"),
        ("### 16 GPUs do", "16"),
        ("base 10 GB", "10"),
        ("Step 1000 is best", "1000"),
        ("an H100 with 80 GB", "80"),
        ("the 95th", "95th"),
        ("eight bits", "eight bits"),
        ("from −5", "5"),
        ("On each device 8 copies lie", "8"),
        ("For every layer 9 matrices", "9"),
        ("per GPU 2 copies", "2"),
        ("on each rank 4 copies", "4"),
        ("a sub-10 ms latency", "10"),
        ("an up-to-71 GB cache", "71"),
        ("a mere-9 GB", "9"),
    ],
)
def test_what_only_looks_structural_is_found(text: str, number: str) -> None:
    assert in_note(f'"{text}"') == [number]


def test_a_number_alone_in_backticks_is_code_where_the_code_holds_it() -> None:
    assert in_note('"It takes `16` bytes."', "x = 16") == []
    assert in_note('"It takes `16` bytes."', "x = 17") == ["16"]
    assert in_note('"It takes `-1,600.0` bytes."', "x = 1600") == []
    assert in_note('"It takes `16 GB`."', "x = 17") == ["16"]
    assert in_note('"It takes `16`, `17`."', "x = 17") == ["16"]
    text = section('x = helper()\nnote("`16`")', "def helper():\n    return 16\n")
    assert found(text) == []


def test_a_number_in_a_heading_stands_in_the_sections_code() -> None:
    assert found(section("x = 256").replace('"""One."""', '"""A sum stops at 256."""')) == []
    assert found(section("x = 255").replace('"""One."""', '"""A sum stops at 256."""')) == ["256"]
    assert found(section("x = 255").replace('"""One."""', '"""One.\n\n    A remark on 256.\n    """')) == []


# ---------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("for two weeks", "two weeks"),
        ("a four-byte float", "four-byte"),
        ("Twenty-five per cent", "Twenty-five per cent"),
        ("twenty-five percent", "twenty-five percent"),
        ("two orders of magnitude", "two orders of magnitude"),
        ("five ms", "five ms"),
        ("three hundred TFLOP/s", "three hundred TFLOP/s"),
        ("fifteen trillion tokens", "fifteen trillion tokens"),
        ("seventy\\n  billion parameters", "seventy billion parameters"),
        ("three times as much", "three times"),
        ("a million FLOPs", "million FLOPs"),
    ],
)
def test_a_number_word_counts_where_a_unit_follows(text: str, number: str) -> None:
    assert in_note(f'"{text}"') == [number]


@pytest.mark.parametrize(
    "text", ["two matrices", "the two", "twice", "a second week", "two, bytes", "weekly", "one byte"]
)
def test_a_number_word_without_a_unit_is_only_a_word(text: str) -> None:
    assert in_note(f'"{text}"') == []


def test_a_scale_behind_a_computed_number_is_said_already() -> None:
    assert in_note('f"{x} billion parameters"') == []
    assert in_note('f"{x} and a billion parameters"') == ["billion parameters"]


# ---------------------------------------------------------------------------- a forgotten f


def braces(body: str, before: str = "") -> list[str]:
    """What is listed as shown as it stands, in a section of this body."""
    problems = unbacked_number.find_unbacked(parse.parse(section(body, before)))
    return [problem.what.split(" is shown")[0] for problem in problems if problem.code == "forgotten-f"]


@pytest.mark.parametrize(
    "call",
    [
        'note("value {x} and {x:.1f}")',
        'note("value {x}" f" and {x} and" " {x:.1f}")',
        'misbelief("It is {x}.", "It is not {x:.1f}.")',
        'question("Is it {x}?", answer=x, hint="Not {x:.1f}.")',
        'figure(None, caption="{x}", alt="{x:.1f}")',
        'said = "of {x} and {x:.1f}"\nnote(said)',
        'note("as [@gpt3] says: {x} and {x:.1f}")',
    ],
)
def test_braces_without_an_f_are_found_once_wherever_prose_stands(call: str) -> None:
    assert braces(f"x = 3\n{call}") == ["{x}", "{x:.1f}"]
    listed = unbacked_number.find_unbacked(parse.parse(section(f"x = 3\n{call}")))
    assert {problem.code for problem in listed} == {"forgotten-f"}  # and ".1f" is not called a number


@pytest.mark.parametrize(
    "hole",
    [
        "{x}",
        "{x!r}",
        "{x=}",
        "{x.real}",
        "{d['a']}",
        "{len(d)}",
        "{x / TOP:.1%}",
        "{helper(x)}",
        "{math.pi:g}",
    ],
)
def test_a_forgotten_hole_may_name_what_the_section_and_the_module_know(hole: str) -> None:
    before = "import math\nTOP = 5\n\n\ndef helper(a):\n    return a\n"
    assert braces(f'x, d = 3, {{"a": 1}}\nnote("It is {hole}.")', before) == [hole]


@pytest.mark.parametrize(
    "prose",
    [
        "`{x}` and ``{x}``",
        "```\\n{x}\\n```",
        "$\\\\frac{x}{2}$ and $$2^{x}$$",
        "the set {x, TOP} and {1, 2} and {} and {x y}",
        "{unknown} and {x.unknown + unknown} and {elsewhere}",
        "{{x}} and {{{x}}}",
        "{len}",
    ],
)
def test_braces_that_are_no_forgotten_hole_are_let_be(prose: str) -> None:
    before = "TOP = 5\n\n\ndef helper(a):\n    elsewhere = a\n"
    assert braces(f'x = 3\nnote("{prose}")', before) == []


def test_braces_that_something_else_fills_are_let_be() -> None:
    assert braces('x = 3\nnote(f"{x} and {{x}}")') == []
    assert braces('x = 3\nnote("{x}".format(x=x))') == []
    assert braces('x = 3\nsaid = "{x}"\nnote(said.format(x=x))') == []
    assert braces('x = 3\nnote("{x}".replace("{x}", str(x)))') == []
    assert braces('x = 3\nprint("{x}")\nassert x, "{x}"') == []
    assert braces("x = 3", 'def helper(x):\n    """Of {x}."""\n') == []


def test_a_forgotten_f_names_its_place_and_gives_the_way_out(repo: Path, tmp_path: Path) -> None:
    file = write(tmp_path, section('x = 3\nnote("It is {x}.")'))
    done = subprocess.run(
        [*LITBOOK, "check", "--select", "unbacked,forgotten-f", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == (
        "lecture_sample.py:12:17: {x} is shown as it stands: its string has no f [forgotten-f]\n"
        '    note("It is {x}.")\n'
        "                ^\n"
        "    put f before the quotation mark, or backticks around {x}\n"
        "\n"
        "lecture_sample: 1 finding: 1 forgotten-f; this run: 0 claims hold, 0 fail, 0 not run\n"
    )


def test_no_sample_has_a_forgotten_f() -> None:
    for file in (SAMPLES / "tour.py", SAMPLES / "failing.py"):
        listed = unbacked_number.find_unbacked(parse.read(file))
        assert [str(problem) for problem in listed if problem.code == "forgotten-f"] == []


# ---------------------------------------------------------------------------- which texts


def test_what_a_question_gives_in_backticks_needs_no_backing_and_other_numbers_do() -> None:
    assert found(section('question("How many bytes do `100` floats take?", answer=8 + 9)')) == []
    assert found(section('question("What do `2` trillion tokens take?", answer=8 + 9)')) == []
    assert found(section('question("How many bytes do 100 floats take?", answer=8 + 9)')) == ["100"]
    assert found(section('note("How many bytes do `100` floats take?")')) == ["100"]


def test_the_way_out_of_a_number_in_a_question_names_the_backticks() -> None:
    (problem,) = unbacked_number.find_unbacked(
        parse.parse(section('question("How much do 100 take?", answer=8 + 9)'))
    )
    assert problem.way_out == (
        "put backticks around it where the exercise gives it, compute it in an f-string's {…}, "
        "cite its source with [@key], or say it without the number"
    )


def test_questions_captions_alternative_texts_and_links_are_prose() -> None:
    assert found(section('question("16?", answer=8 + 9, hint="18", unit="19")')) == ["16", "18"]
    assert found(section('figure(None, caption="16", alt="17")')) == ["16", "17"]
    assert found(section('image("18.png", alt="16", caption="17")')) == ["16", "17"]
    assert found(section('link("https://a.b/18", "16")\nlink("@k16")')) == ["16"]


def test_captions_of_claims_strings_comments_and_docstrings_of_helpers_are_none() -> None:
    assert found(section('x = "16"  # 17\nassert x, "18 GB"\nprint("19")')) == []
    assert found(section("x = 1", 'def helper(a):\n    """Of 16 bytes."""\n')) == []


def test_a_note_in_a_helper_or_under_another_name_is_prose() -> None:
    assert found(section("helper(1)", 'def helper(a):\n    note("16")\n')) == ["16"]
    renamed = section('say("16")').replace(" note,", " note as say,")
    assert found(renamed) == ["16"]


# ---------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    "literal",
    [
        '"äöü 16"',
        '"\\u00e4 \\N{BULLET} \\x41\\101\\n 16"',
        'r"\\n 16"',
        '"a"  # one\n    " 16"',
        '"a" \\\n    " 16"',
        '"""a\n    b 16"""',
        "f\"{x:{x}} {x!r:>3} {'}' + f'{x}'} 16\"",
        "f'''{x:%H:%M} {{16}}'''",
        'f"{x}" "b" f"{x} 16"',
        'f"{[y for y in (x,)][0]} 16"',
        'f"{(lambda: x)()} 16"',
        'f"{x != 1} 16"',
    ],
)
def test_the_column_is_that_of_the_number_however_the_text_is_written(literal: str) -> None:
    text = section("pass").replace("    pass", f"    x = 1\n    note({literal})")
    (problem,) = unbacked_number.find_unbacked(parse.parse(text))
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith("16")


def test_a_problem_names_its_place_repeats_the_line_and_gives_the_way_out() -> None:
    text = section('note("It takes 16 GB.")')
    (problem,) = unbacked_number.find_unbacked(parse.parse(text, "lectures/lecture_90.py"))
    assert str(problem) == (
        "lectures/lecture_90.py:11:20: unbacked: the number '16' in prose\n"
        '    note("It takes 16 GB.")\n'
        "                   ^\n"
        "    compute it in an f-string's {…}, cite its source with [@key], or say it without the number"
    )


# ---------------------------------------------------------------------------- the command


def test_the_command_lists_them_and_says_so_in_its_exit_status(repo: Path, tmp_path: Path) -> None:
    for prose, status, last in [("16 GB", 1, "1 finding: 1 unbacked"), ("GB", 0, "nothing")]:
        file = write(tmp_path, section(f'note("{prose}")'))
        done = subprocess.run(
            [*LITBOOK, "check", "--select", "unbacked", str(file)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        said = done.stdout.splitlines()[-1].partition("; this run")[0]
        assert (done.returncode, said) == (status, f"lecture_sample: {last}")
    missing = [*LITBOOK, "check", "--select", "unbacked", "no_such_lecture"]
    assert subprocess.run(missing, capture_output=True, check=False, timeout=60).returncode == 2


@pytest.mark.parametrize("page", ["first-lecture", "guide", "writing-questions"])
def test_the_lectures_of_the_manual_have_none(repo: Path, page: str) -> None:
    text = (repo / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lectures = re.findall(
        r'^```python title="lectures/(lecture_\w+)\.py"\n(.*?)^```', text, re.MULTILINE | re.DOTALL
    )
    assert lectures and [name for name, lecture in lectures if found(lecture)] == []


# ---------------------------------------------------------------------------- texts that no author means


@pytest.mark.parametrize("made", ['"-" * 40', "40 * '='", '"-" * x * 2', '-x or "a" * 2', '"a" @ "b" - "c"'])
def test_a_text_that_is_repeated_is_prose_like_any_other(made: str) -> None:
    assert in_note(made) == []
    assert in_note(f'{made} + "16 bytes"') == ["16"]
    assert in_note('"in 16 bytes " * 2') == ["16"]


@pytest.mark.parametrize("length", [100, 900, 3000])
@pytest.mark.parametrize("made", ['"a" + {}"b"', '"a" * 1 + {}"b"', '{}"b"', "{}x"])
def test_a_long_sum_is_read_or_refused_in_words(made: str, length: int) -> None:
    try:
        assert in_note(made.format('"a" + ' * length)) == []
    except UnusableLecture as error:
        assert "recursion" in str(error)  # noqa: PT017  what Python's own parser says


NASTY = "-=_[]()*#>$`!<&\\|{}@;:.,~/ \n\t1²½e"


@given(st.lists(st.sampled_from([*NASTY, "two ", "and ", "http://", "[@a", "`16`", "week"]), max_size=40))
def test_no_text_is_too_odd_to_be_searched_for_numbers(parts: list[str]) -> None:
    text = "".join(parts)
    found(section(f"x = 1\nnote({text!r})"))
    found(section(f"x = 1\nnote({text!r} * 3 + {text!r})"))


@pytest.mark.parametrize(
    "unit", ["two ", "two and ", "twenty-", "1,", "1_", "1e", "123,", "`", "$a ", "[@a", "{"]
)
def test_a_long_text_is_searched_in_a_time_that_grows_with_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = section(f"note({(unit * length)[:length]!r})")
        before = time.process_time()
        found(text)
        return time.process_time() - before

    short, long = min(seconds(2_000) for _ in range(3)), min(seconds(16_000) for _ in range(2))
    assert long < max(0.25, 24 * short)  # eight times the length; where it grew with the square, 64 times


# ---------------------------------------------------------------------------- what a run said


def said(folder: Path, body: str, before: str = "", code: str = "unbacked") -> list[str]:
    """The numbers that are listed for a section once it has run."""
    text = section(body, before).replace(
        "from litbook import", "from litbook import explore, speaker_note,", 1
    )
    file = write(folder, text)
    listed = unbacked_number.find_unbacked(parse.read(file), record(folder, text))
    return [problem.what.split("'")[1] for problem in listed if problem.code == code]


PLACES = {  # each text says 71 where its word stands
    "hidden": 'note("It takes 71 bytes.")  # @hide',
    "assigned": 'x = note("It takes 71 bytes.")',
    "a choice": 'note("It takes 71 bytes.") if n else None',
    "nested": '[note("It takes 71 bytes.") for _ in range(1)]',
    "a lambda": '(lambda: note("It takes 71 bytes."))()',
    "a loop": 'for i in range(n):\n    note("It takes 71 bytes.")',
    "the head of a block": 'if note("It takes 71 bytes.") is None:\n    pass',
    "a constant of the module": "note(TEXT)",
    "an item": "note(TEXTS[0])",
    "an attribute": "note(Shapes.text)",
    "a helper": 'def helper():\n    note("It takes 71 bytes.")\nhelper()',
    "a helper that is given it": 'say("It takes 71 bytes.")',
    "a helper that returns it": "note(made())",
    "a hole that is a literal": 'note(f"It takes {71} bytes.")',
    "a literal with a form": 'note(f"It takes {71:,} bytes.")',
    "a text in a hole": "note(f\"It takes {'71'} bytes.\")",
    "a conversion of a literal": "note(f\"It takes {int('71')} bytes.\")",
    "a number that is spelled by str": 'note("It takes " + str(70 + 1) + " bytes.")',
    "joined": 'note("".join(["It takes ", "71", " bytes."]))',
    "filled": 'note("It takes %d bytes." % 71)',
    "a message": "try:\n    raise ValueError('It takes 71 bytes.')\nexcept ValueError as e:\n    note(str(e))",
    "a wrong answer": 'question("What?", answer=n, check=1 + 2, wrong={"You took 71 of them.": 5})',
    "a title": 'explore(f, over={"x": [1, 2]}, at={"x": 2}, caption="A bar of 71 GB.", alt="A bar.")',
    "a task": 'explore(f, over={"x": [1, 2]}, at={"x": 2}, caption="A bar.", alt="A bar.", do="Move it to 71.")',
    "what to see": 'g = explore(f, over={"x": [1, 2]}, at={"x": 2}, caption="A.", alt="A bar.", see="It is 71.")',
    "a name of a text": 'size = "71 GB"\nnote(f"It takes {size}.")',
    "a name of a module's text": 'note(f"It takes {SIZE}.")',
    "one of several": "note(f\"It takes {('no', '71')[n > 1]} GB.\")",
    "one by its name": "note(f\"It takes {dict(a='71 GB').get('a')}.\")",
    "a limit": 'explore(f, over={"x": [1, 2]}, at={"x": 2}, caption="A.", alt="A.", limit=("the 71 GB", 3))',
}
MORE_PLACES = {  # the same, where nobody thought of it at first
    "starred": 'note(*["It takes 71 bytes."])',
    "a partial": 'functools.partial(note, "It takes 71 bytes.")()',
    "a map": 'list(map(note, ["It takes 71 bytes."]))',
    "another name": 'say_it = note\nsay_it("It takes 71 bytes.")',
    "getattr": 'getattr(litbook, "note")("It takes 71 bytes.")',
    "a default": 'def speak(text="It takes 71 bytes."):\n    note(text)\nspeak()',
    "a walrus": 'note(t := "It takes 71 bytes.")',
    "a template": 'note(string.Template("It takes $n bytes.").substitute(n=71))',
    "replaced": 'note("It takes N bytes.".replace("N", "71"))',
    "format_map": 'note("It takes {n} bytes.".format_map({"n": 71}))',
    "a hole of a hole": "note(f\"It takes {f'{71}'} bytes.\")",
    "a choice of typed texts in a hole": "note(f\"It takes {'71' if n else 'no'} bytes.\")",
    "a choice of typed numbers in a hole": 'note(f"It takes {71 if n else 0} bytes.")',
    "a row of a table": 'note("| a | b |\\n|---|---|\\n| it takes | 71 bytes |")',
    "a heading": 'note("## It takes 71 bytes")',
    "the title of a box": "note('!!! tip \"It takes 71 bytes\"\\n    So it does.')",
    "an item of a list": 'note("- It takes\\n- 71 bytes")',
    "a link": 'link("https://a.b", "It takes 71 bytes")',
    "what is said": 'misbelief("It takes 71 bytes.", f"It takes {n}.")',
    "what the machine says": 'misbelief(f"It takes {n}.", "It takes 71 bytes.")',
    "a hint": 'question("What?", answer=n, check=1 + 2, hint="It is more than 71 bytes.")',
    "a why": 'question("What?", answer=n, check=1 + 2, why="Since 71 bytes are more.")',
    "a speaker's note": 'speaker_note("It takes 71 bytes.")',
    "an escape": 'note("It takes \\x37\\x31 bytes.")',
    "two literals": 'note("It takes 7" "1 bytes.")',
    "an entity": 'note("It takes &#55;1 bytes.")',
}
BEFORE = """
import functools, string
import litbook
TEXT = "It takes 71 bytes."
TEXTS = ["It takes 71 bytes."]
SIZE = "71 GB"


class Shapes:
    text = "It takes 71 bytes."


def say(text):
    note(text)


def made():
    return "It takes " + str(71) + " bytes."


def f(x):
    return x

"""


@pytest.mark.parametrize("where", [*PLACES, *MORE_PLACES])
def test_a_typed_number_is_named_wherever_its_word_stands(where: str, tmp_path: Path) -> None:
    assert said(tmp_path, f"n = 3\n{(PLACES | MORE_PLACES)[where]}", BEFORE) == ["71"]


@pytest.mark.parametrize(
    "body",
    [
        'note(f"It takes {n} bytes, {n + 1:,} or {n!r:>5}.")',
        'note(f"It takes {n}" + f" or {n} bytes.")',
        'note("\\n".join(f"- {i} of" for i in range(n)))',
        'rows = [f"| {i} | {n} |" for i in range(n)]\nnote("| a | b |\\n|---|---|\\n" + "\\n".join(rows))',
        'x = note(f"{n} of them") if n else note(f"{n}")',
        'for i in [note(f"{n}")]:\n    pass',
        'x: object = note(f"{n}")',
        'note(f"  {n}\\n  of".replace("\\n  ", "\\n"))',
        'helper(f"{n}") if n else None\nquestion(f"What is {n}?", answer=n, check=1 + 2, wrong={f"It is {n}.": 5})',
        'explore(f, over={"x": [1, 2]}, at={"x": 2}, caption=f"{n}", alt=f"{n}", limit=(f"{n}", 3), do=f"{n}", see=f"{n}")',
        'speaker_note(f"{n}")\nmisbelief(f"It is {n}.", f"It is {n + 1}.")\nlink("https://a.b", f"{n}")',
        'note("IEEE 754 floats, Table 8 of the paper, Name 2 13B and rank 0.")',
        'note("Row 0 and columns 1 and 2, dim 1, GPU 3, layer 5; Step 12: see assignment 1, example 2, stage 3.")',
        'note("A 3D mesh of 2-D tensors, x[0], y[0, -1], a 5-gram model, 0-based.")',
        'note("A matrix is a rank 2 tensor, an order 2 tensor, a rank 1 update.")',
    ],
)
def test_what_holes_of_the_words_own_f_string_put_there_is_computed(body: str, tmp_path: Path) -> None:
    before = "\n\ndef f(x):\n    return x\n\n\ndef helper(text):\n    return text\n"
    assert said(tmp_path, f"n = 3\n{body}", before) == []


@pytest.mark.parametrize(
    "body",
    [
        'name = "70 billion" if n > 9 else "71 billion"\nnote(f"It has {name} parameters.")',
        'name = {"a": "71 billion"}["a"]\nnote(f"It has {name} parameters.")',
        "note(f\"It runs on {os.environ.get('NO_SUCH_NAME', '71 GPUs')}.\")",
        'blurb = "it needs 71 gigabytes"\nnote(f"So {blurb.upper()}.")',
        'blurb = "it needs 71 gigabytes of memory"\nnote(f"So {blurb[:18]}.")',
        'parts = ["it has", "71 layers"]\nnote(f"So {\' \'.join(parts)}.")',
        'say("the model has 71 layers")',
        'class Model:\n    size = "71 layers"\nnote(f"It has {Model.size}.")',
        'size = {"a": "71B"}\nnote(f"It has {size[\'a\']} parameters.")',
        'size = {"a": "71 %"}\nnote(f"It has {size[\'a\']} of it.")',
        'size = {"a": "GPUs: 71"}\nnote(f"Of {size[\'a\']}.")',
        "size = {\"a\": \"71-layer-model\"}\nnote(f\"It is a {size['a'].replace('-', ' ')}.\")",
        'note(f"It has {71 * 10**9:,} parameters.")',
    ],
)
def test_a_number_that_is_typed_elsewhere_and_comes_through_a_hole_is_typed(
    body: str, tmp_path: Path
) -> None:
    before = "\nimport os\n\n\ndef say(text):\n    note(f'So {text}.')\n"
    assert [re.sub(",.*|B", "", number) for number in said(tmp_path, f"n = 3\n{body}", before)] == ["71"]


@pytest.mark.parametrize(
    "body",
    [
        'note(f"It takes {n * 24} GB.")\nx = "72 GB"',
        'rows = {"64 tokens": n}\nfor name, x in rows.items():\n    note(f"For {name} it is {x}.")',
        'for m in (1, 64):\n    note(f"For {m} tokens.")',
        'name = "H100 SXM"\nnote(f"On an {name}.")',
        'x = 0.01\nassert f"{x} of it" == "0.01 of it"\nnote(f"It is {x}.")',
        's = f"{n + 4} GB"\nassert s == "7 GB"\nnote(f"It is {s}.")',
        's = f"{n + 4} GB"\nexpected = "7 GB"\nassert s == expected\nnote(f"It is {s}.")',
        's = f"{n + 4} GB"\nx = {"a": "17 GB of memory"}\nnote(f"It is {s}.")',
    ],
)
def test_a_name_and_what_only_reads_like_a_typed_text_are_let_be(body: str, tmp_path: Path) -> None:
    assert said(tmp_path, f"n = 3\n{body}") == []


def test_a_measure_of_a_typed_number_is_none(tmp_path: Path) -> None:
    assert said(tmp_path, "seconds = 0.31  # @measure seconds as s\nassert seconds < 1") == ["0.31"]
    assert said(tmp_path, "seconds = 0.31  # @inspect seconds as s\nassert seconds < 1") == []
    assert said(tmp_path, "seconds = max(0.1, 0.31)  # @measure seconds as s\nassert seconds < 1") == []


def test_the_marks_of_holes_are_seen_by_nobody(tmp_path: Path) -> None:
    body = 'n = 3\nnote(f"It is {n}.")\nquestion(f"{n}?", answer=n, check=1 + 2, wrong={f"It is {n}.": 5})'
    made = record(tmp_path, section(body))
    assert "\ufdd0" not in str(made) and "\ufdd1" not in str(made)
    assert [piece.text for piece in made.by_key["one"].pieces] == ["It is 3.", "3?"]
    assert made.by_key["one"].wordings[0].text == "It is \ue000."


def test_a_helper_that_a_page_shows_and_the_title_are_prose(tmp_path: Path) -> None:
    before = '\n\ndef helper(x):\n    """Takes 71 bytes."""\n    return x\n'
    assert said(tmp_path, "x = helper(3)", before) == ["71"]
    assert said(tmp_path, "x = 3", before) == []
    titled = section("x = 3").replace('"""A lecture."""', '"""Lecture 02: 71 models."""')
    assert found(titled) == ["71"]


def test_a_label_inside_a_figure_is_a_remark(tmp_path: Path) -> None:
    body = "fig, ax = plt.subplots()\nax.set_title('A bar of 71 GB')\nax.set_xlabel(f'{n} GB')\nax.set_ylabel('rank 0')"
    body = f'import matplotlib.pyplot as plt\nn = 3\n{body}\nfigure(fig, caption="A bar.", alt="A bar.")'
    assert said(tmp_path, body, code="unbacked-label") == ["71"]
    looked_up = (
        'points = {f"{n} tokens": n for n in (64,)}\nx = points["64 tokens"]\nfig, ax = plt.subplots()\n'
    )
    drawn = "import matplotlib.pyplot as plt\n" + looked_up + "ax.set_title([*points][0])\n"
    drawn += 'figure(fig, caption="A bar.", alt="A bar.")'
    assert said(tmp_path, drawn, code="unbacked-label") == []


@pytest.mark.parametrize(
    ("text", "code", "numbers"),
    [
        ("It is twice as fast.", "x = range(2)", ["twice as fast"]),
        ("It is twice as fast.", "x = 2 * len('ab')", []),
        ("It is twice as fast.", "x = 3\ny = x + x", []),
        ("It is twice as fast.", "x = 8 >> 1", []),
        ("It takes half of the memory.", "x = torch.ones(8).chunk(2)", []),
        ("It is twice as fast.", "x = 3\ny = x + 1", ["twice as fast"]),
        ("That is half of the time.", "x = [1, 2]", ["half of the time"]),
        ("That is half of the time.", "x = 1\nassert x / 2 == 0.5", []),
        ("Is it twice as fast?", "x = 1", []),
        ("It takes twenty-four gigabytes, or a dozen.", "x = 1", ["twenty-four gigabytes", "a dozen"]),
        ("the second half, twice, half the width, double", "x = 1", []),
        ("It takes half the memory, and double the time.", "x = 1", ["half the memory", "double the time"]),
        ("It takes half the memory.", "x = 10\ny = x / 2", []),
        ("It is twice faster; the speed-up is tenfold.", "x = 1", ["twice faster", "tenfold"]),
        ("Halving the bytes triples the speed.", "x = 1", ["Halving the bytes", "triples the speed"]),
        ("a twofold model, manifold, the fold", "x = 2 * len('ab')", []),
    ],
)
def test_what_compares_counts_where_no_code_computes_it(text: str, code: str, numbers: list[str]) -> None:
    assert in_note(f'"{text}"', code) == numbers


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("at B = 17", "put the formula in $…$"),
        ("max(17", "put the formula in $…$"),
        ("the Name 17", "join what is a name with a hyphen"),
        ("it takes 17", "compute it in an f-string"),
    ],
)
def test_the_way_out_is_that_of_what_stands_before_the_number(text: str, begins: str) -> None:
    (problem,) = unbacked_number.find_unbacked(parse.parse(section(f'note("{text}")')))
    assert problem.way_out.startswith(begins)


@pytest.mark.parametrize(
    "text",
    [
        "GPU 3000", "dimension 64", "layer 5 %", "head 2 bytes", "row 1.5", "row 1,000", "step 3", "4D5",
        "twice the memory", "It doubles the bytes.", "It halves the time.", "a factor of eight",
        "> It has 71 GB.", "**71** of them", "It is `71`.", "**a thousand times** the tokens", "3½ days", "４０９６ bytes",
    ],
)  # fmt: skip
def test_a_number_is_no_name_because_a_noun_stands_before_it(text: str, tmp_path: Path) -> None:
    assert len(said(tmp_path, f"note({text!r})", "")) == 1


def test_one_program_with_all_of_these_numbers_has_each_named(tmp_path: Path) -> None:
    """Each place has a number of its own: what is named for one hides no other."""
    every = PLACES | MORE_PLACES
    alone = {
        "a name of a module's text",
        "a helper",
        "a default",
        "a constant of the module",
        "an item",
        "an attribute",
    }  # and what has a text of its own
    alone |= {
        "a number that is spelled by str",
        "a helper that returns it",
        "an escape",
        "two literals",
        "an entity",
    }
    bodies = {str(101 + i): every[where] for i, where in enumerate(every) if where not in alone}
    lines = (body.replace("71", number) for number, body in bodies.items())
    listed = said(tmp_path, "n = 3\n" + "\n".join(lines), BEFORE)
    assert set(bodies) - {*listed} == set()


# ---------------------------------------------------------------------------- captions of claims


@pytest.mark.parametrize(
    "claim",
    [
        'assert n > 2, "an empty list takes 4096 bytes"',
        'assert n > 2, f"a list takes {4096} bytes, {n} of them used"',
        'assert n > 2, f"a list takes {4_096:,} bytes"',
        'assert n > 2, "a list takes " + str(4096) + " bytes"',
        'assert n > 2, "a list takes %d bytes" % 4096',
        'text = "a list takes 4096 bytes"\nassert n > 2, text',
        "assert n > 2, TEXT",
        'for i in range(n):\n    assert n > i, "a list takes 4096 bytes"',
        'assert n > 2, "it takes 4096 bytes"\nassert n < 9, "it takes 4096 bytes"',
        'assert n > 2, "it takes 71 GB"',
        'assert n > 2, "it is ninety-six bytes long"',
    ],
)
def test_a_number_of_a_caption_that_nothing_in_its_section_holds_is_named(claim: str, tmp_path: Path) -> None:
    before = 'TEXT = "a list takes " + "40" + "96 bytes"\n'
    assert said(tmp_path, f'n = len("abc")\n{claim}', before)


@pytest.mark.parametrize(
    "claim",
    [
        'assert size > 12_000_000_000, "it takes 12.3 GB, or 12,345 MB, or 11.5 GiB, 12 billion bytes"',
        'assert share > 0.3, "that is more than 30%, or 33.3 percent"',
        'assert size == 12345678901, f"it takes {size} bytes, {size / 7:.1f} a day"',
        'assert size == 12345678901, f"it takes {size / 7:.1f} bytes" + " a day"',
        'assert len("abc") == 2 + 1, "GPT-3 has 3, as row 0 of Table 8 says, in x86-64"',
        'text = f"{size / 7:.1f} bytes"\nassert size, text',
        'assert size > 2 * 10 - 1, "more than 19"',
        'assert size > 4, "of four bytes each"',
        'assert sum([share] * 71) > 1, "of 71 shares"',
        'assert 0.0625 < share and 0b1110_0111 < size, "more than 1 / 16, and than the bits 1110 0111"',
    ],
)
def test_a_number_of_a_caption_that_its_section_holds_or_computes_is_let_be(
    claim: str, tmp_path: Path
) -> None:
    assert said(tmp_path, f"size = int('12345678901')\nshare = 1 / len('abc')\n{claim}") == []


def test_a_number_of_a_caption_names_its_place_and_the_way_out(tmp_path: Path) -> None:
    text = section('n = 3\nassert n > 2, "it takes 4096 bytes"')
    (problem,) = unbacked_number.find_unbacked(parse.read(write(tmp_path, text)), record(tmp_path, text))
    assert str(problem.place) == "lecture_sample.py:12:29" and problem.code == "unbacked"
    assert problem.what == "unbacked: the number '4096' in a caption"
    assert problem.way_out.startswith("let the test hold it")


# ---------------------------------------------------------------------------- answers, and headings of names


@pytest.mark.parametrize(
    "given",
    ["answer=4096", "answer='4096 bytes'", "answer=[4096]", "answer=4096, check=4096", "answer=int('4096')"],
)
def test_an_answer_that_is_typed_and_not_checked_is_named(given: str) -> None:
    assert found(section(f'x = 1\nquestion("How many?", {given})')) == ["4096"]


@pytest.mark.parametrize(
    "given", ["answer=4096, check=2**12", "answer=2**12", "answer=x", "answer='the first'", "answer=True"]
)
def test_an_answer_that_is_computed_checked_or_no_number_is_let_be(given: str) -> None:
    assert found(section(f'x = 1\nquestion("How many?", {given})')) == []


def test_a_heading_that_is_made_of_a_name_is_prose() -> None:
    for name, code, numbers in [
        ("a_list_takes_4096_bytes", "pass", ["4096"]),
        ("it_needs_71gb", "pass", ["71gb"]),
        ("a_list_takes_4096_bytes", "x = 4096", []),
        ("gpt2_in_x86", "pass", []),
        ("step_2", "pass", []),
    ]:
        text = f"def main():\n    {name}()\n\n\ndef {name}():\n    {code}\n"
        assert found(text) == numbers
        places = [problem.place for problem in unbacked_number.find_unbacked(parse.parse(text))]
        assert all(place and place.line == 5 for place in places)


@pytest.mark.parametrize(
    "body",
    [
        'name = "Llama-3-8B"\nnote(f"The model {name}.")',
        "note(f\"It is {dict(a=n)['a']}, {[n, n][n > 1]} or {rows['71 GB']}.\")",
        'size = "71 GB"\nsize = f"{n} GB"\nnote(f"It takes {size}.")',
    ],
)
def test_a_hole_that_gives_a_name_or_what_is_computed_is_let_be(body: str, tmp_path: Path) -> None:
    assert said(tmp_path, f"n = 3\nrows = {{'71 GB': n}}\n{body}", "") == []


@pytest.mark.parametrize(
    ("drawn", "numbers"),
    [
        ('ax.set_title(r"$71$ GB")', ["71"]),
        ('ax.set_xticks([0, 1])\nax.set_xticklabels(["16 GB", "32 GB"])', ["16", "32"]),
        ('ax.bar(["16 GB", "32 GB"], [1, 2])', ["16", "32"]),
        ('ax.table([["71 GB"]])', ["71"]),
        ('fig.legend(ax.plot([1, 2], label="71 GB"), ["71 GB"])', ["71"]),
        ('ax.plot([16, 32], [1, 2])\nx = ["16", "32"]\nax.set_title("$10^{9}$")', []),
        ('ax.set_yticks([16, 64], ["16", "64"])\nax.set_ylabel("1F1B, 12LdT, 4d")', []),
        (r'ax.set_title(r"$3.2\times$, $\alpha^2$, $2^{32}$ and $71\%$")', ["3.2", "71"]),
        ('ax.set_title("9x faster, 8× less memory, 7 x more")', ["9x", "8", "7"]),
        ('ax.set_xticks([0, 1], [f"{n} GB", f"{2 * n} GB"])', []),
    ],
)
def test_what_somebody_typed_anywhere_in_a_figure_is_a_remark(
    drawn: str, numbers: list[str], tmp_path: Path
) -> None:
    body = f"import matplotlib.pyplot as plt\nn = 3\nfig, ax = plt.subplots()\n{drawn}\n"
    body += 'figure(fig, caption="A bar.", alt="A bar.")'
    assert [*dict.fromkeys(said(tmp_path, body, code="unbacked-label"))] == numbers


def test_a_name_of_what_readers_explore_is_a_label(tmp_path: Path) -> None:
    before = 'def parts(x):\n    return {"71 GB of weights": x, f"{x and 9} GB": 2 * x}\n'
    body = 'explore(parts, over={"x": [1, 2]}, at={"x": 2}, caption="Bars.", alt="Two bars.")'
    assert said(tmp_path, body, before, "unbacked-label") == ["71"]
