"""What happens in a section stands in its entry, whole, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.running import HEAD, called, claims, line_of, messages, one, record, shown, steps_of, where

from litbook.record import encoding, model
from litbook.record.limits import CALLS


def lecture(*sections: str, before: str = "", main: str = "") -> str:
    """A lecture of the sections `one`, `two` ... with these bodies; `main` calls each once, or as it says."""
    names = ("one", "two", "three")[: len(sections)]
    calls = main or "\n".join(f"{name}()" for name in names)
    texts = [f"def main():\n{_indented(calls)}\n"]
    texts += [f"def {name}():\n{_indented(body)}\n" for name, body in zip(names, sections, strict=True)]
    return f"{HEAD}{before}\n\n" + "\n\n".join(texts)


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in body.strip("\n").splitlines())


def names(made: model.Record, key: str) -> list[str]:
    """What the frames of a section are of."""
    section = made.by_key[key]
    return [made.callee(section, frame).name for frame in range(len(section.frames))]


# ------------------------------------------------------------------------ one after the other, one inside the other


def test_sections_stand_in_the_order_of_the_book_each_with_its_parent(tmp_path: Path) -> None:
    text = lecture("three()\ntwo()", "x = 2", "x = 3", main="one()")
    made = record(tmp_path, text)
    found = [(it.key, it.kind, it.parent) for it in made.sections]
    assert found == [
        ("<module>", "module", ""),
        ("main", "main", ""),
        ("one", "part", "main"),
        ("three", "section", "one"),
        ("two", "section", "one"),
    ]
    assert [it.key for it in made.tree(made.main)] == ["main", "one", "three", "two"]


def test_a_part_has_its_own_steps_and_the_step_that_calls_a_section_names_it(tmp_path: Path) -> None:
    text = lecture("a = 1\ntwo()\nb = 2", "c = 3\nd = 4", main="one()")
    made = record(tmp_path, text)
    assert steps_of(made, one(made)) == [line_of(text, part) for part in ("a = 1", "    two()", "b = 2")]
    assert steps_of(made, one(made, "two")) == [line_of(text, part) for part in ("c = 3", "d = 4")]
    assert [it.target for it in one(made).statements] == ["", "two", ""]
    assert names(made, "main") == ["main"] and made.main.statements[0].target == "one"


def test_lines_and_numbers_count_from_the_first_of_the_section(tmp_path: Path) -> None:
    body = "x = torch.ones(2)  # @inspect x\nassert x.sum() == 2\nnote('said')\ny = x[0]  # @inspect y"
    made = record(tmp_path, lecture(body, body, before="import torch"))
    first, second = one(made), one(made, "two")
    assert [value.line for value in first.values] == [1, 4]
    assert (first.claims[0].line, first.pieces[0].line, first.frames[0].line) == (2, 3, 0)
    assert [it.snapshots for it in (first, second)] == [first.snapshots] * 2
    tensors = [it for it in first.snapshots if isinstance(it, model.Tensor)]
    assert {tensor.storage for tensor in tensors} == {1, 2}


def test_moving_a_section_changes_of_its_entry_only_where_it_stands(tmp_path: Path) -> None:
    body = """
note(f"Two of {1 + 1}.")
x = torch.ones(2, 3)  # @inspect x, x.shape
for i in range(9):
    y = helper(i)  # @inspect y
assert y == 9, f"not {y - 1}"
"""
    before = "import torch\ndef helper(n):\n    return n + 1\n"
    here = lecture(body, "z = 1", before=before)
    there = lecture(body, "z = 1\nw = 2\n" * 20, before="\n\n# more\nLIMIT = 3\n" + before)

    def entry(text: str) -> tuple[int, dict[str, Any]]:
        made = record(tmp_path, text)
        (data,) = (it for it in json.loads(encoding.dumps(made))["sections"] if it["key"] == "one")
        del data["seconds"], data["first"]
        return one(made).first, data

    (was, data), (now, moved) = entry(here), entry(there)
    assert was != now and json.dumps(data) == json.dumps(moved)


# ------------------------------------------------------------------------ again


def test_a_section_called_twice_has_two_calls_in_its_entry(tmp_path: Path) -> None:
    text = lecture(
        "SEEN.append(1)\nn = len(SEEN)  # @inspect n\nassert n < 2", before="SEEN = []", main="one()\none()"
    )
    made = record(tmp_path, text)
    found = one(made)
    assert (names(made, "one"), shown(made, "n")) == (["one", "one"], [1, 2])
    assert [value.frame for value in found.values] == [0, 1]
    assert (found.claims[0].verdict, found.claims[0].count) == ("fails", 2)
    assert [it.key for it in made.sections].count("one") == 1


def test_of_a_section_that_is_called_again_and_again_the_first_calls_are_kept(tmp_path: Path) -> None:
    text = lecture("x = 1\nassert x == 1", main="for i in range(20):\n    one()")
    made = record(tmp_path, text)
    assert len(one(made).frames) == CALLS
    assert len(one(made).steps) == 2 * CALLS and one(made).dropped == 2 * (20 - CALLS)
    assert one(made).claims[0].count == 20
    assert made.main.loops[0].count == 20


def test_a_section_that_calls_itself_has_a_frame_for_each_call(tmp_path: Path) -> None:
    text = lecture("LEFT.pop()\nif LEFT:\n    one()", before="LEFT = [1, 2, 3]")
    made = record(tmp_path, text)
    assert [(it.called, it.parent) for it in one(made).frames] == [(0, None), (0, 0), (0, 1)]


def test_a_section_called_by_an_expression_is_a_helper_there_and_its_claims_are_its_own(
    tmp_path: Path,
) -> None:
    text = lecture("x = two() or 5  # @inspect x\nnote('end')", "note('inside')\nassert 1 == 1")
    made = record(tmp_path, text)
    assert messages(made) == []
    assert names(made, "one") == ["one", "two"] and one(made).calls == ("two",)
    assert [(p.text, p.line) for p in one(made).pieces] == [("inside", 1), ("end", 2)]
    assert one(made, "two").claims[0].count == 2
    assert [it.key for it in made.definitions] == ["two"]
    assert encoding.loads(encoding.dumps(made)) == made


# ------------------------------------------------------------------------ made in one section, used in another


def test_a_generator_made_in_another_section_is_entered_anew(tmp_path: Path) -> None:
    text = lecture(
        "KEPT.append(count())\nx = next(KEPT[0])  # @inspect x",
        "a = 1\ny = next(KEPT[0])  # @inspect y",
        before="KEPT = []\ndef count():\n    n = 1\n    while True:\n        yield n  # @inspect n\n        n += 1\n",
    )
    made = record(tmp_path, text)
    assert (names(made, "one"), names(made, "two")) == (["one", "count"], ["two", "count"])
    second = one(made, "two")
    assert (second.frames[1].parent, second.first + second.frames[1].line) == (0, line_of(text, "y = next"))
    assert steps_of(made, second)[2:] == [line_of(text, "n += 1"), line_of(text, "yield n")]
    assert [second.snapshots[v.value or 0].number for v in second.values] == [1, 2]  # type: ignore[union-attr]
    assert encoding.loads(encoding.dumps(made)) == made


def test_a_generator_of_the_module_and_a_coroutine_from_elsewhere_are_entered_too(tmp_path: Path) -> None:
    before = (
        "def count():\n    yield 1\n    yield 2\nNEXT = count()\nnext(NEXT)\nLATER = []\n"
        "async def wait():\n    w = 7  # @inspect w\n    return w\n"
        "def drive(it):\n    try:\n        it.send(None)\n    except StopIteration as stop:\n        return stop.value\n"
    )
    text = lecture(
        "x = next(NEXT)  # @inspect x\nLATER.append(wait())",
        "y = drive(LATER[0])  # @inspect y",
        before=before,
    )
    made = record(tmp_path, text)
    assert messages(made) == []
    assert (shown(made, "x"), shown(made, "y"), shown(made, "w")) == ([2], [7], [7])
    assert (names(made, "one"), names(made, "two")) == (["one", "count"], ["two", "drive", "wait"])


def test_a_closure_from_another_section_has_a_key_within_it(tmp_path: Path) -> None:
    text = lecture(
        "def inner(n):\n    return n + 1\nKEPT.append(inner)",
        "y = KEPT[0](3)  # @inspect y",
        before="KEPT = []",
    )
    made = record(tmp_path, text)
    assert one(made, "two").calls == ("one.inner",)
    definition = made.definition_of["one.inner"]
    assert (definition.name, definition.first, definition.lines) == ("inner", line_of(text, "def inner"), 2)


def test_a_generator_that_prints_in_another_section_prints_on_that_ones_line(tmp_path: Path) -> None:
    text = lecture(
        "KEPT.append(say())\nnext(KEPT[0])",
        "a = 1\nnext(KEPT[0])",
        before="KEPT = []\ndef say():\n    while True:\n        print('said')\n        yield\n",
    )
    made = record(tmp_path, text)
    found = {it.key: [(p.text, it.first + p.line) for p in it.pieces] for it in made.sections if it.pieces}
    assert found == {
        "one": [("said\n", line_of(text, "next(KEPT[0])"))],
        "two": [("said\n", line_of(text, "a = 1") + 1)],
    }


def test_a_section_inside_a_loop_leaves_the_loop_around_it_whole(tmp_path: Path) -> None:
    text = lecture(
        "for i in range(50):\n    j = i  # @inspect j\n    two()\n    k = j  # @inspect k",
        "for a in range(30):\n    b = a  # @inspect b",
        main="one()",
    )
    made = record(tmp_path, text)
    assert (shown(made, "j"), shown(made, "k")) == ([0, 1, 2, 48, 49],) * 2
    assert shown(made, "b") == [0, 1, 2, 28, 29] * CALLS
    assert [it.count for it in one(made).loops] == [50]
    assert [it.count for it in one(made, "two").loops] == [30] * CALLS


# ------------------------------------------------------------------------ what was and was not reached, errors


def test_a_branch_of_a_helper_is_unreached_in_the_sections_that_did_not_take_it(tmp_path: Path) -> None:
    helper = "def pick(n):\n    if n:\n        return 1\n    return 0\n"
    made = record(tmp_path, lecture("x = pick(1)", "x = pick(0)", "x = 5", before=helper))
    assert [one(made, key).unreached for key in ("one", "two", "three")] == [((1, 2),), ((1, 1),), ()]


def test_a_note_of_a_section_that_never_ran_keeps_its_words(tmp_path: Path) -> None:
    text = lecture("note(f'It takes {1 + 1} bytes.')\nassert 1 == 1").replace(
        "def one", '@requires("cuda")\ndef one'
    )
    made = record(tmp_path, text, device="cpu")
    found = one(made)
    assert (found.has_run, found.frames, found.statements[0].prose) == (False, (), "It takes … bytes.")
    assert (found.claims[0].verdict, found.claims[0].why) == ("needs-device", "needs cuda")


def test_an_error_surfaces_on_the_sections_own_line_and_its_trace_ends_where_it_went_wrong(
    tmp_path: Path,
) -> None:
    text = lecture("a = 1\nb = deep(0)\nc = 2", before="def deep(n):\n    return 1 / n\n")
    made = record(tmp_path, text)
    (error,) = one(made).errors
    assert (error.line, error.text) == (2, "b = deep(0)")
    assert [line for _, line, *_ in error.trace] == [line_of(text, "b = deep"), line_of(text, "1 / n")]
    assert where(made, one(made), error) == line_of(text, "1 / n")


def test_an_inspect_that_raises_in_a_helper_names_the_helpers_line_once_in_each_section(
    tmp_path: Path,
) -> None:
    body = "a = 1\nfor i in range(9):\n    b = helper()"
    text = lecture(body, body, before="def helper():\n    x = 0  # @inspect 1 / x\n    return x\n")
    made = record(tmp_path, text)
    line = line_of(text, "@inspect")
    for key in ("one", "two"):
        (error,) = one(made, key).errors
        assert (error.kind, error.line, error.text) == ("inspect", 3, "b = helper()")
        assert error.trace == ((made.sources[0].path, line, "helper", "x = 0  # @inspect 1 / x"),)


def test_an_exception_in_an_inner_section_is_its_own_and_the_part_goes_on(tmp_path: Path) -> None:
    text = lecture("two()\nx = 5  # @inspect x", "1 / 0", main="one()")
    made = record(tmp_path, text)
    assert (one(made).errors, len(one(made, "two").errors), shown(made, "x")) == ((), 1, [5])


def test_what_a_lecture_does_to_its_process_keeps_no_section_from_being_made(tmp_path: Path) -> None:
    text = lecture(
        "two()\nx = 3  # @inspect x",
        "sys.setrecursionlimit(len(inspect.stack()) + 25)\na = [[1, [2, [3]]], {'k': (1, 2)}]  # @inspect a\nnote('said')",
        before="import inspect, sys",
        main="one()",
    )
    made = record(tmp_path, text)
    assert messages(made) == []
    assert (shown(made, "x"), shown(made, "a")[0].length, len(one(made, "two").pieces)) == ([3], 2, 1)


# ------------------------------------------------------------------------ texts


@pytest.mark.parametrize("form", ["key", "names"])
def test_definitions_have_keys_with_the_names_around_them(tmp_path: Path, form: str) -> None:
    before = (
        "class Net:\n    def forward(self):\n        def inner(): return 1\n        return inner()\n"
        "if True:\n    def twice(): return 1\nelse:\n    def twice(): return 2\n"
    )
    made = record(tmp_path, lecture("x = Net().forward() + twice()", before=before))
    expected = {
        "key": ["Net", "Net.forward", "Net.forward.inner", "twice", "twice#2"],
        "names": ["Net", "forward", "inner", "twice", "twice"],
    }
    found = {"key": [it.key for it in made.definitions], "names": [it.name for it in made.definitions]}
    assert found[form] == expected[form]
    assert called(made) == ["<module>", "Net", "main", "one", "forward", "inner", "twice"]


def test_a_statement_says_which_names_it_binds(tmp_path: Path) -> None:
    # `i += 1` is none of them: a tensor is changed in place, and still shares its storage.
    body = """
a = b = 1
c, *d = [1, 2]
a.x, e[0] = 1, 2
f: int = 3
g: int
if (h := 1):
    i += 1
for j, (k, l) in []:
    pass
with open("x") as m, n:
    pass
import os.path as o, sys
lambda: (p := 1)
print([q for q in []], (r := 2), [s := 1 for _ in []])
def t(): u = 1
a(v)
"""
    made = record(tmp_path, lecture("return\n" + body.strip("\n")))
    assert [it.binds for it in one(made).statements][1:] == [
        ("a", "b"), ("c", "d"), (), ("f",), (), ("h",), (), ("j", "k", "l"), (), ("m",), (),
        ("o", "sys"), (), ("r", "s"), ("t",), (),
    ]  # fmt: skip


def test_claims_of_a_folder_stand_in_their_own_sections(tmp_path: Path) -> None:
    folder = tmp_path / "lecture_99"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        '"""A folder."""\nfrom lecture_99 import parts\n\n\ndef main():\n    parts.first()\n'
    )
    (folder / "models.py").write_text("print('models')\n\n\ndef double(n):\n    return 2 * n\n")
    (folder / "parts.py").write_text(
        "from lecture_99.models import double\n\n\ndef first():\n    a_view()\n\n\n"
        "def a_view():\n    x = double(2)  # @inspect x\n    assert x == 5\n"
    )
    from litbook.run.run import run

    made = run(folder)
    assert messages(made) == []
    kinds = [(it.key, it.kind, made.sources[it.file].path.rpartition("/")[2]) for it in made.sections]
    assert kinds == [
        ("<module>", "module", "__init__.py"),
        ("parts.<module>", "module", "parts.py"),
        ("models.<module>", "module", "models.py"),
        ("main", "main", "__init__.py"),
        ("first", "part", "parts.py"),
        ("a_view", "section", "parts.py"),
    ]
    assert claims(made) == {"x == 5": "fails"}
    assert one(made, "a_view").calls == ("models.double",)
    assert [p.text for p in one(made, "models.<module>").pieces] == ["models\n"]
    assert encoding.loads(encoding.dumps(made)) == made
