"""Rules: each explains itself and finds its own example; the one loop over them, severities, excuses, output."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from tests.running import REPO, Done
from tests.running import command as run_lecture

from litbook import cli, plugins
from litbook.errors import LitbookError, NotFound
from litbook.finding import Finding, Place
from litbook.markdown import mathml
from litbook.record import encoding
from litbook.rules import registry
from litbook.rules.judge import Findings, judge, rules_of
from litbook.rules.registry import Rule, all_rules, explain, find_rule, severities
from litbook.rules.subject import Subject, TrialOptions
from litbook.run import process

plugins.bring_in("mutants")
RULES = all_rules()
# Their examples are files, not texts, or need a machine; each is made in a test of its own.
OF_FILES = {
    "unreadable", "not-text", "no-name", "no-init", "too-deep", "circular-import", "namesake", "overlooked",
    "unreadable-recording", "older", "recorded-failure", "large-picture", "bibliography", "waits", "no-alt",
    "bad-picture", "no-notebook",
}  # fmt: skip


def lecture_of(example: str) -> str:
    """An example as a lecture: what has no `def` stands in a section."""
    if re.search(r"^(async )?def |^class ", example, re.MULTILINE):
        return f'"""Lecture: an example."""\n{example}\n'
    words = "from litbook import figure, image, note, question, requires, aside\n"
    body = textwrap.indent(example, "    ")
    return (
        f'"""Lecture: an example."""\n{words}\n\ndef main() -> None:\n    one()\n\n\n'
        f'def one() -> None:\n    """One."""\n{body}\n'
    )


def command(*words: str) -> Done:
    """What `litbook` says to these words, codes of findings included."""
    return run_lecture(*words, program=cli.litbook, coded=True)


def found(path: Path, code: str = "", **options: Any) -> list[str]:
    """The codes of what all rules find in a lecture, or of what one does that is off by itself."""
    subject = Subject(path, run=lambda: process.record_of(path), formula=mathml.mathml, **options)
    if subject.refusals:
        return [finding.code for finding in subject.refusals]
    rules, asked = (rules_of([code]), True) if code else (rules_of(), False)
    findings = judge(subject, rules=rules, selected=asked)
    return [finding.code for finding in (*findings.errors, *findings.warnings)]


def write(folder: Path, text: str, name: str = "lecture_01.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("code", RULES)
def test_every_rule_says_what_why_and_the_way_out(code: str) -> None:
    told = RULES[code].explanation
    assert told.what.endswith(".") and told.why.endswith(".") and told.way_out.endswith("."), told
    assert re.fullmatch(r"[a-z][a-z-]*", code)
    assert bool(told.example) != (code in OF_FILES), "an example, or a test that makes its files"


@pytest.mark.parametrize("code", [code for code in RULES if code not in OF_FILES])
def test_every_example_is_found_by_its_rule(code: str, tmp_path: Path) -> None:
    rule, told = RULES[code], RULES[code].explanation
    (tmp_path / "references.bib").write_text("@misc{known, title={A work}, year={2020}}\n", encoding="utf-8")
    path = write(tmp_path, lecture_of(told.example))
    if told.then:
        record = process.record_of(path, device="cpu")
        file = tmp_path / "recordings" / f"lecture_01.{record.environment.device.slug}.json"
        file.parent.mkdir()
        file.write_text(encoding.dumps(record), encoding="utf-8")
        write(tmp_path, lecture_of(told.then))
    trials = TrialOptions(everything=True)
    alone = code if rule.severity == "off" or rule.reads == "trials" else ""
    assert code in found(path, alone, trials=trials)


def test_two_rules_of_one_code_are_refused() -> None:
    with pytest.raises(
        LitbookError, match="two rules have the code 'unbacked'\n    give one of them another"
    ):
        registry.register(Rule("unbacked", lambda _: ()))


def test_an_explanation_is_taken_apart() -> None:
    told = explain("One.\nMore.\nWhy: a\n  b.\nExample:\n    x = 1\n    if x:\n        y\nWay out: c.")
    assert (told.what, told.why, told.way_out) == ("One. More.", "a b.", "c.")
    assert told.example == "x = 1\nif x:\n    y"


# ---------------------------------------------------------------------------- severities


def test_a_book_chooses_severities_by_code() -> None:
    levels, words = severities({"rules": {"unbacked": "warn", "older": False, "unchecked": "error"}})
    assert (levels, words) == ({"unbacked": "warn", "older": "off", "unchecked": "error"}, [])


def test_the_options_of_before_are_said_anew() -> None:
    levels, words = severities({"unbacked": "warn", "unchecked": "error", "recordings": "may-be-older"})
    assert levels == {"unbacked": "warn", "forgotten-f": "warn", "unchecked": "error", "older": "warn"}
    assert words[0] == "unbacked: is a row of rules: now: rules: {unbacked: warn}"


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"unbaked": "warn"}, "no rule named 'unbaked'; did you mean 'unbacked'?"),
        ({"unbacked": "loud"}, "no severity named 'loud'"),
        ({"syntax": "off"}, "rules: syntax says that a lecture cannot run\n    no severity changes that"),
    ],
)
def test_a_severity_that_is_none_is_named(rules: dict[str, str], says: str) -> None:
    with pytest.raises(LitbookError) as caught:
        severities({"rules": rules})
    assert str(caught.value).startswith(says)


# ---------------------------------------------------------------------------- excuses

UNBACKED = 'note("The model has 70 billion parameters.")'


def test_an_excuse_with_its_reason_excuses_its_own_statement_alone(tmp_path: Path) -> None:
    excused = f"{UNBACKED}  # @allow unbacked: the name of a model"
    assert found(write(tmp_path, lecture_of(excused))) == []
    assert found(write(tmp_path, lecture_of(f"{excused}\n{UNBACKED}"))) == ["unbacked"]
    over_lines = 'note("""\n    The model has\n    70 billion parameters.\n""")  # @allow unbacked: a name'
    assert found(write(tmp_path, lecture_of(over_lines))) == []


def test_an_excuse_that_excuses_nothing_is_a_finding(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of('note("None.")  # @allow unbacked: nothing'))
    subject = Subject(path, run=lambda: process.record_of(path))
    (finding,) = judge(subject).warnings
    assert str(finding) == (
        "lecture_01.py:11:19: this @allow unbacked excuses nothing\n"
        '    note("None.")  # @allow unbacked: nothing\n                     ^\n    take it away'
    ).replace("11:19", f"11:{finding.place.column if finding.place else 0}").replace(
        "                     ^", " " * (3 + (finding.place.column if finding.place else 0) - 4) + "^"
    )


def test_an_excuse_of_a_rule_that_is_none_names_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of("total = 3  # @allow unbaked: a typing error"))
    (finding,) = judge(Subject(path, run=lambda: process.record_of(path))).errors
    assert finding.what == "@allow: no rule named 'unbaked'; did you mean 'unbacked'?"


def test_an_excuse_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of(f"{UNBACKED}  # @allow unbacked"))
    (finding,) = Subject(path).refusals
    assert (finding.code, finding.what) == ("bad-directive", "@allow names no rule, or no reason")


@pytest.mark.parametrize("excuse", ["@zero: nothing is lost", "@allow vacuous: nothing is lost"])
def test_the_excuses_of_before_and_the_one_of_now_say_the_same(tmp_path: Path, excuse: str) -> None:
    body = f'lost = [n for n in range(9) if n > 9]\nassert len(lost) == 0, "None."  # {excuse}'
    assert found(write(tmp_path, lecture_of(body))) == []


@pytest.mark.parametrize("excuse", ["@fails", "@allow claim-fails: it shows what failing looks like"])
def test_an_assert_may_be_meant_to_fail(tmp_path: Path, excuse: str) -> None:
    body = f"try:\n    assert 1 + 1 == 3  # {excuse}\nexcept AssertionError:\n    pass"
    assert found(write(tmp_path, lecture_of(body))) == []


@pytest.mark.parametrize("body", ["one = 1\nassert one == 3", "check(1)", "assert check(1)"])
def test_an_assert_that_is_meant_to_fail_and_ends_its_section_says_to_catch_it(
    tmp_path: Path, body: str
) -> None:
    allowed = "  # @allow claim-fails: it shows what failing looks like"
    body += allowed * ("assert" in body)
    helper = f"def check(x):\n    assert x > 4{allowed}\n    return x\n\n\n"
    path = write(tmp_path, lecture_of(body) + "\n\n" + helper)
    [said] = [
        f for f in judge(Subject(path, run=lambda: process.record_of(path)), {}).errors if f.code == "raised"
    ]
    assert said.what.endswith("raises all the same: catch it, try: … except AssertionError:")
    path = write(tmp_path, lecture_of("one = 1\nassert one == 3"))  # and no other one
    assert "catch it" not in str(judge(Subject(path, run=lambda: process.record_of(path)), {}).errors)


def test_a_mutant_and_a_change_may_be_excused(tmp_path: Path) -> None:
    body = 'count = 7\nassert count < 100, "few"'
    path = write(tmp_path, lecture_of(body))
    subject = Subject(path, run=lambda: process.record_of(path))
    findings = judge(subject, rules=rules_of(["mutant"]), selected=True)
    ways_out = [finding.way_out for finding in findings.errors]
    assert ways_out and all("# @allow mutant: " in way_out for way_out in ways_out)
    changes = [way_out.partition("# @allow mutant: ")[2].removesuffix(": WHY") for way_out in ways_out]
    lines = body.split("\n")
    lines[1:1] = [f"# @allow mutant: {change}: any bound does" for change in changes[1:]]
    lines[-1] += f"  # @allow mutant: {changes[0]}: any bound does"
    assert len(changes) == 1 or "homeless-directive" in found(write(tmp_path, lecture_of("\n".join(lines))))
    if len(changes) == 1:
        assert found(write(tmp_path, lecture_of("\n".join(lines))), "mutant") == []


# ---------------------------------------------------------------------------- a finding


FINDING = Finding(
    "unbacked", "a number, 5%", Place("a,b.py", 3, 5, "    x = 5"), "compute it", details=("5 is", "x")
)


def test_a_finding_is_text_data_and_an_annotation() -> None:
    assert FINDING.text(coded=True) == (
        "a,b.py:3:5: a number, 5% [unbacked]\n    x = 5\n    ^\n    5 is\n    x\n    compute it"
    )
    assert FINDING.as_data() == {
        "code": "unbacked", "path": "a,b.py", "line": 3, "column": 5, "text": "x = 5", "what": "a number, 5%",
        "details": ["5 is", "x"], "way_out": "compute it",
    }  # fmt: skip
    assert FINDING.as_annotation("warn") == (
        "::warning file=a%2Cb.py,line=3,col=5,title=unbacked::a number, 5%25%0A5 is%0Ax%0Acompute it"
    )


def test_a_place_without_a_column_prints_none() -> None:
    assert str(Finding("raised", "x", Place("a.py", 3, 0))) == "a.py:3: x"


# ---------------------------------------------------------------------------- the loop


def test_rules_are_chosen_by_code() -> None:
    assert [rule.code for rule in rules_of(["unchecked", "unbounded"])] == ["unchecked", "unbounded"]
    run = ["claim-fails", "raised"]  # what reads a run tells also that it failed
    assert [rule.code for rule in rules_of(["vacuous"])] == [*run, "vacuous"]
    assert "unbacked" not in {rule.code for rule in rules_of(ignore=["unbacked"])}
    assert not {"mutant", "unnoticed", "overlooked"} & {rule.code for rule in rules_of()}
    with pytest.raises(NotFound, match="no rule named 'vacous'; did you mean 'vacuous'"):
        rules_of(["vacous"])


def test_a_finding_stands_once() -> None:
    findings = Findings()
    findings.add("error", [FINDING, FINDING])
    findings.add("error", [FINDING])
    assert findings.errors == [FINDING]


def test_the_text_of_a_lecture_is_read_without_a_run(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of(UNBACKED))
    subject = Subject(path)
    assert [finding.code for finding in judge(subject, rules=[find_rule("unbacked")], selected=True).errors]


# ---------------------------------------------------------------------------- the commands


def test_check_prints_findings_with_codes_and_counts(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of(UNBACKED))
    said = command("check", str(path))
    assert said.returncode == 1
    assert "unbacked: the number '70' in prose [unbacked]" in said.stdout.replace("70 billion", "70")
    assert "1 finding: 1 unbacked" in said.stdout
    assert command("check", str(path), "--ignore", "unbacked").returncode == 0


def test_check_prints_one_json_value(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of(UNBACKED))
    said = command("check", str(path), "--format", "json")
    ((only,),) = (json.loads(said.stdout),)
    assert (only["lecture"], only["exit_status"], said.returncode) == ("lecture_01", 1, 1)
    (row,) = only["findings"]
    assert (row["code"], row["line"], row["severity"]) == ("unbacked", 11, "error")


def test_check_of_what_cannot_run_is_json_too_and_ends_with_two(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of("total = (1 + 2"))
    said = command("check", str(path), "--format", "json")
    (only,) = json.loads(said.stdout)
    assert said.returncode == 2 and [row["code"] for row in only["findings"]] == ["syntax"]


def test_check_annotates_a_pull_request(tmp_path: Path) -> None:
    path = write(tmp_path, lecture_of(UNBACKED))
    said = command("check", str(path), "--format", "github")
    assert (
        said.stdout.startswith("::error file=")
        and ",line=11," in said.stdout
        and "title=unbacked::" in said.stdout
    )


def test_rule_explains_one_and_lists_all() -> None:
    said = command("rule", "vacuous")
    assert said.stdout.startswith("vacuous (error)\n\nA claim that holds and says nothing")
    assert "\n    assert len(lost) == 0" in said.stdout and "Way out: claim also" in said.stdout
    every = command("rule").stdout.splitlines()
    assert [line.split()[0] for line in every] == list(RULES)
    missing = command("rule", "vacous")
    assert missing.returncode == 2 and "did you mean 'vacuous'?" in missing.stderr


def test_a_rule_of_another_package_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Point:
        name, value = "no-questions", "elsewhere:RULE"

        def load(self) -> Rule:
            return Rule(
                "no-question",
                lambda subject: [Finding("no-question", "no question", subject.lecture.files[0].place(1))],
                reads="text",
                doc="A lecture without a question.\nWhy: nobody can try.\nWay out: ask one.",
            )

    monkeypatch.setattr(registry, "RULES", dict(registry.RULES))
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    all_rules.cache_clear()
    try:
        assert find_rule("no-question").summary == "A lecture without a question."
        path = write(tmp_path, lecture_of("total = 3"))
        assert found(path, "no-question") == ["no-question"]
    finally:
        all_rules.cache_clear()


def test_the_rule_of_the_reference_passes_its_own_test_and_lets_a_question_be(tmp_path: Path) -> None:
    reference = (REPO / "docs" / "reference.md").read_text(encoding="utf-8")
    ruled = reference.split("A rule of your own is")[1].split("<!-- rules -->")[0]
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", ruled, re.MULTILINE | re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(code, "reference.md", "exec"), names)
    names["test_a_lecture_without_a_question_is_found"](tmp_path)
    told = names["RULE"].explanation
    assert told.what and told.why and told.way_out
    assert [one.code for one in names["find"](Subject(write(tmp_path, lecture_of(told.example))))] == [
        "no-question"
    ]
    asked = write(tmp_path, lecture_of('question("How many?", answer=1 + 1)'))
    assert [*names["find"](Subject(asked))] == []
    reads = set(re.findall(r'^\| `"(\w+)"', ruled, re.MULTILINE)) | {"book", "pages"}
    assert reads == set(get_args(get_type_hints(Rule)["reads"]))
    assert all(
        hasattr(Subject, name) or name in Subject.__dataclass_fields__
        for name in ("lecture", "path", "project", "record", "runs", "prose", "trials")
    )


class Mistaken:
    """An entry point that gives what it is told, or fails."""

    name, value = "mine", "elsewhere:RULE"

    def __init__(self, given: object) -> None:
        self.given = given

    def load(self) -> object:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def _divides(subject: object) -> list[Finding]:
    return [Finding("mine", str(1 // 0))]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ModuleNotFoundError("No module named 'lexicon'"),
            "cannot be loaded: ModuleNotFoundError: No module named",
        ),
        (
            SyntaxError("invalid"),
            "the entry point mine of litbook.rules cannot be loaded: SyntaxError: invalid",
        ),
        ("no rule", "the entry point mine of litbook.rules is no Rule: elsewhere:RULE"),
        (Rule("mine", lambda subject: [], severity="warning"), "no severity named 'warning'"),  # type: ignore[arg-type]
        (Rule("mine", _divides, reads="text"), "the rule mine failed: ZeroDivisionError: integer division"),
        (Rule("mine", lambda subject: [Finding("myne", "")], reads="text"), "the code of a finding of mine"),
    ],
)
def test_a_mistake_in_another_packages_rule_is_named_as_its_own(
    given: object, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "RULES", dict(registry.RULES))
    monkeypatch.setattr(registry, "entry_points", lambda group: [Mistaken(given)])
    monkeypatch.setattr(registry, "FROM_ENTRY_POINTS", set())
    all_rules.cache_clear()
    try:
        with pytest.raises(LitbookError) as caught:
            found(write(tmp_path, lecture_of("total = 3")), "mine")
        assert said in str(caught.value)
    finally:
        all_rules.cache_clear()


def test_an_exception_in_a_helper_is_told_of_a_run_of_one_section(tmp_path: Path) -> None:
    text = (
        '"""L."""\n\ndef main() -> None:\n    one()\n    two()\n\ndef one() -> None:\n    """One."""\n    helper(0)\n\n'
        'def two() -> None:\n    """Two."""\n\ndef helper(n):\n    return 1 / n\n'
    )
    path = write(tmp_path, text)
    said = run_lecture("run", str(path), "one", "--quiet", "--device", "cpu", program=cli.litbook)
    assert said.returncode == 1 and "lecture_01.py:15: ZeroDivisionError: division by zero" in said.stdout


def test_other_tools_words_in_a_book_leave_numbers_to_be_backed() -> None:
    assert severities({"words": "edtrace"}) == ({}, [])
    assert severities({"words": "edtrace", "unbacked": "warn"})[0]["unbacked"] == "warn"


def test_a_lecture_called_json_asks_for_no_json(tmp_path: Path) -> None:
    said = command("run", "json")
    assert said.returncode == 2 and said.stdout == ""
    assert json.loads(command("check", "nosuch", "--format=json").stdout)["exit_status"] == 2
