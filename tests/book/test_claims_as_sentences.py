"""A claim on a page: its caption as a sentence below the code that it follows, the assert one click away."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from tests.running import record as run
from tests.running import section

from litbook.html import page
from litbook.python.checking import find_checking


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def body(folder: Path, text: str) -> str:
    return "".join(page.pages(run(folder, section(text))).values())


def code(text: str) -> str:
    """The lines that are shown before a click."""
    return words(
        " ".join(re.findall(r'<section class="lb-code"(.*?)</section>', text)).replace("</code>", " ")
    )


def proofs(text: str) -> list[tuple[str, str, str]]:
    """Each claim: class, sentence, what its list opens."""
    lists = re.findall(r'<details class="lb-claims"><summary>(.*?)</summary>(.*?)</details>', text)
    return [
        (kind, words(said), words(opened))
        for summary, opened in lists
        for kind, said in re.findall(
            r'<span class="lb-proof ([^"]*)"[^>]*>(.*?)(?=<span class="lb-proof|$)', summary
        )
    ]


def test_a_claim_is_its_caption_with_the_test_beside_it_and_opens_the_assert(tmp_path):
    text = body(
        tmp_path, "x = 3  # @inspect x\ny = x + 1  # @inspect y\nassert y == x + 1, 'One `more`, $n + 1$.'"
    )
    ((kind, said, opened),) = proofs(text)
    assert kind == "lb-holds" and said.startswith("✓ holds: One more, ") and said.endswith("y == x + 1 · 4")
    assert "<code>more</code>" in text and "<math" in text
    assert "assert y == x + 1" in opened and "4 = 4" in opened and "assert" not in code(text)
    assert code(text).count("x = 3") == 1 and text.index("x = 3".split(maxsplit=1)[0]) < text.index(
        "lb-claims"
    )


@pytest.mark.parametrize(
    ("test", "beside"),
    [
        ("n == 48", "n == 48"),  # nothing twice
        ("n == 6 * 8", "n == 6 * 8 · 48"),
        ("n < 50", "48 < 50"),
        ("n != 49", "48 ≠ 49"),
        ("math.isclose(n, 48.4, rel_tol=0.01)", "48 ≈ 48.4 (rel_tol=0.01)"),
        ("torch.allclose(torch.tensor(1.0), torch.tensor(1.000001))", "(rtol=1e-5)"),
        ("big == 2048", "big == 2048"),
        ("yes is True", "yes is True"),
    ],
)
def test_both_sides_stand_beside_it_only_where_they_differ(tmp_path, test, beside):
    names = "import math\nimport torch\nn, big, yes = 48, 2_048, True  # @inspect n"
    ((_kind, said, _opened),) = proofs(body(tmp_path, f"{names}\nassert {test}, 'So it is.'"))
    assert said.startswith("✓ holds: So it is. ") and said.endswith(beside)


@pytest.mark.parametrize(
    ("test", "never"),
    [
        ("('n <= 48' in str(n)) == (n != 48)", "n ≤ 48"),  # what an author wrote in quotes stays
        (
            "math.isclose(n, 48, rel_tol=0.5) and n < 50",
            "rel_tol=1e-9",
        ),  # a tolerance is that of its own call
        ("torch.allclose(torch.tensor(1.0), torch.tensor(1.0), 0.1) and n < 50", "rtol=1e-5"),
    ],
)
def test_what_stands_beside_it_says_nothing_that_the_test_does_not(tmp_path, test, never):
    text = body(tmp_path, f"import math\nimport torch\nn = 48  # @inspect n\nassert {test}, 'So it is.'")
    ((_kind, said, opened),) = proofs(text)
    assert said.startswith("✓ holds: So it is.") and never not in said + opened


def test_no_test_stands_beside_a_claim_about_a_hidden_name(tmp_path):
    hidden = "n = 48  # @inspect n\nm = n  # @hide\nassert m == 48, 'So it is.'\nassert n == 48, 'That, too.'"
    assert [said for _, said, _ in proofs(body(tmp_path, hidden))] == [
        "✓ holds: So it is.",
        "✓ holds: That, too. n == 48",
    ]


def test_a_claim_without_a_caption_is_its_test(tmp_path):
    ((_kind, said, _opened),) = proofs(body(tmp_path, "n = 48  # @inspect n\nassert n == 48"))
    assert said == "✓ holds: n == 48"


def test_claims_that_follow_one_another_are_one_list_and_the_next_code_stands_below_it(tmp_path):
    text = body(
        tmp_path,
        "x = 1  # @inspect x\nassert x == 1, 'a'\nassert x < 2, 'b'\nz = 2  # @inspect z\nassert z == 2, 'c'",
    )
    lists = text.split(start := '<details class="lb-claims">')
    assert [len(proofs(f"{start}{it}")) for it in lists] == [0, 2, 1]
    assert "x = 1" in code(lists[0]) and "z = 2" in code(lists[1])


def test_what_only_feeds_a_folded_test_is_folded_with_it_unless_it_is_inspected(tmp_path):
    lines = "x = 3  # @inspect x\n# a remark on wide\nwide = x * 2\nassert wide == 6, 'twice'"
    ((_kind, said, opened),) = proofs(text := body(tmp_path, lines))
    assert "wide" not in code(text) and "remark" not in code(text) and "x = 3" in code(text)
    assert "wide = x * 2" in opened and "a remark on wide" in opened
    assert said == "✓ holds: twice", "no test of a name that is not in sight"
    ((_kind, _said, opened),) = proofs(
        text := body(tmp_path, lines.replace("x * 2", "x * 2  # @inspect wide"))
    )
    assert "wide = x * 2" in code(text) and "wide = x * 2" not in opened


@pytest.mark.parametrize(
    ("named", "stays"), [("`sorted` puts", True), ("`sorted(it)` puts", True), ("One puts", False)]
)
def test_a_call_that_the_prose_names_is_the_idea_and_stays(tmp_path, named, stays):
    lines = f"note('{named} them in order:')\nseen = sorted([2, 1])\nassert seen == [1, 2], 'In order.'"
    assert ("seen = sorted" in code(body(tmp_path, lines))) is stays


def test_no_line_of_a_page_is_there_twice_and_each_is_there(tmp_path):
    text = body(
        tmp_path,
        "a = 2\nb = 1\nfor i in range(3):\n    assert i < a + 1, 'few'\nassert b == 1, 'one'\nprint(a)",
    )
    lines = [*map(int, re.findall(r'id="L(\d+)"', text))]
    assert len(lines) == len({*lines})
    assert {*range(max(lines) - 5, max(lines) + 1)} <= {*lines}  # the six lines of the section


def test_inside_an_if_it_says_so_and_in_a_loop_how_often(tmp_path):
    lines = "x = 3  # @inspect x\nif x > 2:\n    print(x)\n    assert x == 3, 'three'\n"
    lines += "for i in range(4):\n    print(i)\n    assert i < 4, 'few'"
    (_k, one, _), (_k2, two, _) = proofs(body(tmp_path, lines))
    assert "three · if x > 2" in one and "few · 4 times" in two


def test_one_that_fails_stays_in_the_code_and_one_that_is_not_reached_has_no_tick(tmp_path):
    lines = "x = 3  # @inspect x\nassert x == 4, 'four'\nif x > 5:\n    print(x)\n    assert x == 6, 'six'"
    text = body(tmp_path, lines)
    ((kind, said, _opened),) = proofs(text)
    assert kind == "lb-not-reached" and said.startswith("– six · not reached · if x > 5") and "✓" not in said
    assert "assert x == 4" in code(text) and "This claim fails. four" in words(text)


def test_a_claim_that_needs_another_device_has_an_open_mark_and_the_reason(tmp_path):
    text = body(tmp_path, "x = 3  # @inspect x\nassert x == 3, 'three'").replace("\n", " ")
    assert "○" not in text
    lines = section("x = 3  # @inspect x\nassert x == 3, 'three'").replace(
        "def ", "@requires('cuda')\ndef ", 2
    )
    lines = lines.replace("@requires('cuda')\ndef main", "def main")
    found = proofs("".join(page.pages(run(tmp_path, "from litbook import requires\n" + lines)).values()))
    assert [(kind, said[:16]) for kind, said, _ in found] == [("lb-needs-device", "○ three · not ru")]


def test_an_author_keeps_an_assert_as_code_by_a_word(tmp_path):
    text = body(tmp_path, "x = 3\nassert x == 3, 'three'  # @show")
    assert "assert x == 3" in code(text) and proofs(text) == [] and "@show" not in text


def test_a_block_is_never_left_without_a_statement():
    text = "def f():\n    x = 1\n    if x:\n        assert x == 1\n    else:\n        print(x)\n"
    found = find_checking(
        text, "f.py", 1, 6, frozenset([4]), frozenset(), frozenset(), frozenset(range(1, 7))
    )
    assert found.proof == {}


def test_a_helper_that_its_author_shows_stands_once_in_the_section_that_names_it_first(tmp_path):
    helper = 'def twice(n):  # @show\n    """Two times a number."""\n    return 2 * n\n\n\n'
    text = section("x = 3  # @inspect x\ny = twice(x)  # @inspect y\nz = twice(y)  # @inspect z")
    text = text.replace("def main", helper + "def main", 1)
    made = "".join(page.pages(run(tmp_path, text)).values())
    (shown,) = re.findall(r'<details class="lb-def" id="twice" open[^>]*>(.*?)</details>', made)
    assert words(shown).startswith("twice: Two times a number") and "return 2 * n" in words(shown)
    assert made.index('id="twice"') < made.index('<span class="m">3') and "@show" not in made
    assert "#definitions" not in made
    closed = "".join(page.pages(run(tmp_path, text.replace("  # @show", ""))).values())
    assert "#definitions" in closed and re.search('<details class="lb-def" id="twice">', closed)
