"""An answer that is computed in one way only is found in the text; a book may make it an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import judged, record, section, write

from litbook.cli import litbook
from litbook.lecture import parse
from litbook.rules.registry import Severity
from litbook.rules.unchecked_answer import find_unchecked

LIBRARIES = "import math\n"


def ways(body: str) -> list[str]:
    """What is said of each answer of the section `body`."""
    return [
        problem.what.rpartition(": ")[2] for problem in find_unchecked(parse.parse(section(body, LIBRARIES)))
    ]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("question('?', answer=6)", "nothing checks it"),
        ("n = 6\nquestion('?', answer=2 * n)", "nothing checks it"),
        ("question('?', answer=6, check=None)", "nothing checks it"),
        ("n = 6\nquestion('?', answer=n * 2, check=n*2)", "its check= is the answer once more"),
        ("n = 6\nassert n < 7\nquestion('?', answer=n)", "nothing checks it"),
        ("n = 6\nassert n == 5 or n == 6\nquestion('?', answer=n)", "nothing checks it"),
        ("n = 6\nassert not n == 5\nquestion('?', answer=n)", "nothing checks it"),
        ("n = 6\nm = n\nassert n == m\nquestion('?', answer=n)", "nothing checks it"),
        *(
            (f"n = 6\n{named}\nquestion('?', answer=n, check={check})", "its check= is the answer once more")
            for named, check in [
                ("m = n", "m"),
                ("m: int = n", "m"),
                ("m = n\nk = m", "k"),
                ("m, k = n, 1", "m"),
                ("m = int(n)", "m"),
                ("m = n + 0", "float(m)"),
                ("m = n", "m * 1"),
                ("m = n", "+m"),
                ("m = n", "[m][0]"),
                ("m = round(n)", "m / 1"),
            ]
        ),
    ],
)
def test_an_answer_with_one_way_is_found(body: str, why: str) -> None:
    assert ways(body) == [why]


@pytest.mark.parametrize(
    "body",
    [
        "question('?', answer=2 * 3, check=sum(1 for _ in range(6)))",
        "n = 6\nassert n == 2 + 4\nquestion('?', answer=n)",
        "n = 6\nassert 0 < n and 3 + 3 == n\nquestion('?', answer=n)",
        "n = 0.6\nassert math.isclose(2 * n, 1.2)\nquestion('?', answer=2 * n)",
        "note('no question')",
    ],
)
def test_an_answer_with_two_is_not(body: str) -> None:
    assert ways(body) == []


def test_it_is_listed_with_its_place_and_refused_where_the_book_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = section("n = 6\nquestion('?', answer=2 * n)")
    file = write(tmp_path, text)
    assert litbook(["check", "--select", "unchecked", str(file)]) == 0
    assert capsys.readouterr().out == (
        "lecture_sample.py:12:26: the answer 2 * n has one way only: nothing checks it [unchecked]\n"
        "    question('?', answer=2 * n)\n"
        "                         ^\n"
        "    compute it a second way, check=…: by a count, a counter, a published number\n\n"
        "lecture_sample: 1 finding: 1 unchecked; 1 of 1 answer computed in one way only\n"
    )
    (tmp_path / "mkdocs.yml").write_text("site_name: a\nplugins:\n  - litbook:\n      unchecked: error\n")
    assert litbook(["check", "--select", "unchecked", str(file)]) == 1


@pytest.mark.parametrize(("severity", "wrong", "remarks"), [("error", 1, 0), ("warn", 0, 1), ("off", 0, 0)])
def test_the_strict_build_takes_it_as_the_book_does(
    tmp_path: Path, severity: Severity, wrong: int, remarks: int
) -> None:
    made = record(tmp_path, section("n = 6\nquestion('?', answer=2 * n)"))
    found = judged(made, {"unchecked": severity})
    assert (len(found.errors), len(found.warnings)) == (wrong, remarks)
