"""Claims that can fail pass their trials; claims that cannot, or not for what they say, are found."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from tests.running import LITBOOK, record, section, write

from litbook.lecture import parse
from litbook.mutants import trials
from litbook.mutants.claims import trials as trials_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="claims are tried in forked processes")


def changes(test: str) -> list[tuple[str, ...]]:
    """What is changed in `assert test`, trial by trial."""
    lecture = parse.parse(section(f"assert {test}"))
    return [tuple(mutant.change for mutant in trial.mutants) for trial in trials_of(lecture, 0)]


def survivors(folder: Path, body: str, before: str = "") -> list[tuple[str, ...]]:
    """What survives in a lecture whose one section is `body`."""
    found, _ = trials.try_claims(write(folder, section(body, before)))
    assert [outcome.unsteady for outcome in found if outcome.unsteady] == []
    return [tuple(m.change for m in trial.mutants) for outcome in found for trial in outcome.survivors]


# ---------------------------------------------------------------------------- what is changed


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("a == b", ["== -> !="]),
        ("a < b <= c", ["< -> >=", "<= -> >"]),
        ("a in b", ["in -> not in"]),
        ("a is not b", ["is not -> is"]),
        ("a or b", ["or -> and"]),
        ("a and b", []),
        ("not (a and b)", ["not dropped", "and -> or"]),
        ("a is None", ["is -> is not", "None -> False"]),
        ("a == True", ["== -> !=", "True -> False"]),
        ("a != 3", ["!= -> =="]),
        ("a is not None", ["is not -> is"]),
        ("a == 3", ["== -> !=", "3 -> 2", "3 -> 4"]),
        ("a == -0.25", ["== -> !=", "-0.25 -> -0.26", "-0.25 -> -0.24"]),
        ("a == 989.5e12", ["== -> !=", "989.5e12 -> 989400000000000.0", "989.5e12 -> 989600000000000.0"]),
        ("a < 0", ["< -> >="]),
    ],
)
def test_each_change_that_must_fail_by_itself(test: str, expected: list[str]) -> None:
    assert changes(test) == [(change,) for change in expected]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("a < 100", ("100 -> 90", "100 -> 110")),
        ("a < 5", ("5 -> 4", "5 -> 6")),
        ("f(3)", ("3 -> 2", "3 -> 4")),
        ("a[-1]", ("-1 -> -2", "-1 -> 0")),
        ("close(a, b, atol=1e-6)", ("atol=1e-06 -> atol=0", "atol=1e-06 -> atol=inf")),
        ("'x' in a", ("'x' -> 'x~'", "'x' -> ''")),
    ],
)
def test_pairs_of_changes_of_which_one_must_fail(test: str, expected: tuple[str, str]) -> None:
    assert expected in changes(test)


def test_a_change_stands_where_the_author_wrote_it() -> None:
    lecture = parse.parse(section("assert (\n    x ==\n    1_000\n)"))
    assert [(t.line, t.column, t.mutants[0].change) for t in trials_of(lecture, 0)][-1] == (
        13,
        9,
        "1_000 -> 1001",
    )


# ---------------------------------------------------------------------------- what survives


@pytest.mark.parametrize(
    "body",
    [
        "x = 3\nassert x == 3",
        "x = 3.25\nassert 3.2 < x < 3.3",
        "x = 'abc'\nassert 'b' in x and 'd' not in x",
        "x = None\nassert x is None",
        "x = [1, 2]\nassert x[-1] == 2 and len(x) == 2",
        "x = 0.1 + 0.2\nimport math\nassert math.isclose(x, 0.3, rel_tol=1e-12)",
        "for i in range(3):\n    assert i < 2 or i == 2",
    ],
)
def test_a_claim_that_says_what_is_so_survives_nothing(tmp_path: Path, body: str) -> None:
    assert survivors(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "survivor"),
    [
        ("x = 3\nassert x < 100", ("100 -> 90", "100 -> 110")),
        ("x = 3\nassert x == 3 or x < 4", ("or -> and",)),
        ("x = 3\nassert x == 3 or x < 0", ("< -> >=",)),
        ("x = 3\nassert round(x, -1) == round(x - 2, -1)", ("2 -> 1", "2 -> 3")),
        (
            "import math\nx = 1.0\nassert math.isclose(x, 1.0, abs_tol=0.1)",
            ("abs_tol=0.1 -> abs_tol=0", "abs_tol=0.1 -> abs_tol=inf"),
        ),
        ("x = [1, 1]\nassert x[0] == 1", ("0 -> -1", "0 -> 1")),
        ("x = 'ab'\nassert x.strip('c') == 'ab'", ("'c' -> 'c~'", "'c' -> ''")),
        ("x = [2]\nassert sorted(x, reverse=True) == [2]", ("True -> False",)),
    ],
)
def test_what_does_not_matter_to_a_claim_survives(
    tmp_path: Path, body: str, survivor: tuple[str, ...]
) -> None:
    assert survivor in survivors(tmp_path, body)


def test_a_claim_that_cannot_fail_at_all_is_found(tmp_path: Path) -> None:
    before = "class Yes:\n    def __eq__(self, other):\n        return True\n    __ne__ = __lt__ = __ge__ = __eq__\n"
    assert survivors(tmp_path, "assert Yes() == 3", before) == [("== -> !=",), ("3 -> 2",), ("3 -> 4",)]


def test_a_claim_in_a_loop_passes_a_trial_in_any_of_its_turns(tmp_path: Path) -> None:
    assert survivors(tmp_path, "for i in range(3):\n    assert i < 3") == []
    assert survivors(tmp_path, "for i in range(2):\n    assert i < 3") == [("3 -> 2", "3 -> 4")]


# ---------------------------------------------------------------------------- what trying leaves alone


def test_trying_changes_nothing_for_the_section(tmp_path: Path) -> None:
    body = """
    import random
    draws = iter(range(100))
    state = {"n": 0}
    assert next(draws) == 0 and state.update(n=state["n"] + 1) is None and state["n"] == 1
    assert next(draws) == 1 and state["n"] == 1
    first = random.random()  # @inspect first
    assert random.random() != first
    second = random.random()  # @inspect second
    """
    file = write(tmp_path, section(body))
    _, tried = trials.try_claims(file)
    plain = record(tmp_path, section(body), device="cpu")
    assert [it.snapshots for it in tried.sections] == [it.snapshots for it in plain.sections]
    assert [it.claims for it in tried.sections] == [it.claims for it in plain.sections]
    assert [claim.verdict for _, claim in tried.claims()] == ["holds"] * 3


def test_names_of_closures_helpers_and_comprehensions_are_at_hand(tmp_path: Path) -> None:
    body = "n = 3\ndef more():\n    return n + 1\nassert more() == 4 and [n + i for i in range(2)] == [3, 4]"
    assert survivors(tmp_path, body) == []
    assert survivors(tmp_path, "n = 2\nassert [(lambda m: m * n)(i) for i in (1, 2)] == [n, twice(n)]",
                     "def twice(x):\n    return 2 * x\n") == []  # fmt: skip


def test_a_mutant_that_does_not_end_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "PATIENCE", 0.5)
    before = "def count(n):\n    while n != 3:\n        pass\n    return n\n"
    assert survivors(tmp_path, "assert count(3) == 3", before) == []


def test_a_claim_that_does_not_hold_when_it_is_tried_is_unsteady(tmp_path: Path) -> None:
    body = "import os\nhere = os.getpid()\nassert os.getpid() == here"
    (found,), _ = trials.try_claims(write(tmp_path, section(body)))
    assert found.unsteady == "fails"
    (found,), _ = trials.try_claims(write(tmp_path, section("x = 1\nassert x == 2")))
    assert found.unsteady == "fails"


def test_an_annotation_is_tried_too(tmp_path: Path) -> None:
    before = "import torch\nfrom jaxtyping import Float, Shaped\nfrom torch import Tensor\n"
    body = 'x: Float[Tensor, "a 3"] = torch.ones(2, 3)\ny: Float[Tensor, "a"] = torch.ones(2)'
    found, _ = trials.try_claims(write(tmp_path, section(body, before)))
    assert [[t.mutants[0].change for t in outcome.trials] for outcome in found] == [
        ["Float -> Bool", "'a 3' -> 'a 3 _'", "'a 3' -> 'a'", "'a 3' -> 'a 4'"],
        ["Float -> Bool", "'a' -> 'a _'", "'a' -> ''", "a = 2 -> 3"],
    ]
    assert [outcome.unfailed_trials for outcome in found] == [[], []]
    loose = 'x: Shaped[Tensor, "..."] = torch.ones(2, 3)'
    assert [o.trials for o in trials.try_claims(write(tmp_path, section(loose, before)))[0]] == [[]]


# ---------------------------------------------------------------------------- the command


def command(repo: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """`litbook check --select mutant WORDS`; that each summary names the lecture is another test's."""
    done = subprocess.run(
        [*LITBOOK, "check", "--select", "mutant", *map(str, words)],
        cwd=repo, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    name = Path(str(words[0])).stem
    done.stdout = re.sub(
        rf"^{name}: (nothing|\d+ findings?: \d+ mutant); ", "", done.stdout, flags=re.MULTILINE
    )
    return done


def test_the_command_lists_a_survivor_with_its_place_its_text_and_the_values(
    repo: Path, tmp_path: Path
) -> None:
    done = command(repo, write(tmp_path, section("x = 3\nassert x < 100")))
    assert done.returncode == 1, done.stderr
    assert done.stdout == (
        "lecture_sample.py:12:16: survives: number 100 -> 90 and 100 -> 110 [mutant]\n"
        "    assert x < 100\n"
        "    assert x < 90\n"
        "    assert x < 110\n"
        "      x is 3\n"
        "    claim more closely, or say on its line why it may: # @allow mutant: 100 -> 90 and 100 -> 110: WHY\n"
        "\n"
        "1 claim, 3 mutants in 2 trials: 1 passed, 0 excused, 1 survives\n"
    )


def test_a_bound_is_nudged_to_a_number_that_can_be_copied_into_an_excuse(repo: Path, tmp_path: Path) -> None:
    done = command(repo, write(tmp_path, section("x = 0.0\nassert x < 1e-9")))
    assert "    claim more closely, or say on its line why it may: # @allow mutant: 1e-9 -> 9e-10 and 1e-9 -> 1.1e-09: WHY\n" in done.stdout  # fmt: skip
    excused = "x = 0.0\nassert x < 1e-9  # survives: 1e-9 -> 9e-10 and 1e-9 -> 1.1e-09: as small as it gets"
    assert command(repo, write(tmp_path, section(excused))).returncode == 0


def test_the_source_excuses_a_survivor_and_an_excuse_for_nothing_is_listed(
    repo: Path, tmp_path: Path
) -> None:
    body = "x = 3\n# survives: 100 -> 90: the limit is the limit\nassert x < 100\nassert x == 3  # survives: 3 -> 4: no"
    done = command(repo, write(tmp_path, section(body)))
    assert done.returncode == 1
    assert "lecture_sample.py:13:16: excused: the limit is the limit: number 100 -> 90 and" in done.stdout
    assert "lecture_sample.py:14: the excuse for '3 -> 4' excuses nothing: remove it" in done.stdout
    assert "1 excused, 0 survive" in done.stdout
    alone = command(repo, write(tmp_path, section(body.rsplit("  #", 1)[0])))
    assert alone.returncode == 0


PRINTED = "number 100 -> 90 and 100 -> 110"


@pytest.mark.parametrize("change", [PRINTED, PRINTED.removeprefix("number "), "100 -> 90", "100 -> 110"])
def test_an_excuse_may_name_a_trial_as_it_is_listed(tmp_path: Path, change: str) -> None:
    (found,), _ = trials.try_claims(
        write(tmp_path, section(f"x = 3\nassert x < 100  # survives: {change}: it: is"))
    )
    assert [found.excuse(trial) for trial in found.unfailed_trials] == ["it: is"]
    assert (found.survivors, found.unused_excuses) == ([], [])


def test_the_change_in_an_excuse_may_hold_a_colon_and_the_kind_may_be_a_word_of_the_change(
    tmp_path: Path,
) -> None:
    body = (
        "x = 'ab'\nassert x.strip('c: d') == 'ab'  # survives: 'c: d' -> 'c: d~' and 'c: d' -> '': none there"
    )
    (found,), _ = trials.try_claims(write(tmp_path, section(body)))
    assert [found.excuse(trial) for trial in found.unfailed_trials] == ["none there"]
    before = (
        "class Both:\n    def __bool__(self):\n        return bool(next(turns))\nturns = iter([False] * 9)\n"
    )
    (found,), _ = trials.try_claims(
        write(tmp_path, section("assert not Both() or turns  # survives: not not dropped: so it is", before))
    )
    assert "so it is" in {found.excuse(trial) for trial in found.unfailed_trials}


def test_an_excuse_that_cannot_be_read_or_stands_at_no_claim_is_listed(repo: Path, tmp_path: Path) -> None:
    body = "x = 3  # survives the loop below\nassert x == 3  # survives 3 -> 4\n\n# survives: 3 -> 4: no\n\nx = 4"
    done = command(repo, write(tmp_path, section(body)))
    assert done.returncode == 1
    assert re.fullmatch(r"(\d+ s\n)?", done.stderr)  # a slow machine is told how long it took
    assert done.stdout == (
        "lecture_sample.py:12:20: this excuse cannot be read [mutant]\n"
        "    assert x == 3  # survives 3 -> 4\n"
        "                   ^\n"
        "    write # @allow mutant: CHANGE: WHY, the change as it is listed: 100 -> 90\n"
        "\n"
        "lecture_sample.py:14:5: this excuse stands at no claim [mutant]\n"
        "    # survives: 3 -> 4: no\n"
        "    ^\n"
        "    put it on the claim's line, or right above it\n"
        "\n"
        "1 claim, 3 mutants in 3 trials: 3 passed, 0 excused, 0 survive\n"
    )


def test_a_lecture_that_raised_has_not_passed_and_the_exception_is_shown(repo: Path, tmp_path: Path) -> None:
    done = command(repo, write(tmp_path, section("assert 1 == 1\n1 / 0\nassert 2 == 2")))
    assert done.returncode == 1
    assert done.stdout == (
        "lecture_sample.py:12: ZeroDivisionError: division by zero [mutant]\n"
        "    1 / 0\n"
        "\n"
        "1 claim, 5 mutants in 5 trials: 5 passed, 0 excused, 0 survive; 1 claim was not reached\n"
    )


def test_a_claim_that_fails_is_shown_with_its_values_and_said_once(repo: Path, tmp_path: Path) -> None:
    done = command(repo, write(tmp_path, section("x = 3\nassert x == 4, 'four'")))
    assert done.returncode == 1
    assert done.stdout.startswith(
        "lecture_sample.py:12: claim fails: four [mutant]\n    assert x == 4\n    3 == 4\n      x is 3\n\n1 claim, "
    )


def test_torch_has_one_thread_while_claims_are_tried_whoever_imports_it(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    file = write(tmp_path, section("assert torch.get_num_threads() == 1", "import torch\n"))
    assert command(repo, file).returncode == 0
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (tried,), _ = trials.try_claims(file)
        assert (tried.unsteady, torch.get_num_threads()) == ("", 2)
    finally:
        torch.set_num_threads(threads)


def test_an_unusable_lecture_ends_the_command_with_2(repo: Path, tmp_path: Path) -> None:
    assert command(repo, "no_such_lecture").returncode == 2
    assert command(repo, write(tmp_path, "x = (")).returncode == 2


def test_a_sample_of_lecture_02_has_no_survivor(repo: Path) -> None:
    done = command(repo, "lecture_02", "--sample", 15, "--seed", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("15 claims, ")
