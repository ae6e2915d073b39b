"""A lecture's text is read as the author meant it, and everything that is wrong with it is said at once."""

from __future__ import annotations

import ast
import gc
import itertools
import textwrap
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.running import REPO, SAMPLES, examples, section

from litbook.errors import UnusableLecture
from litbook.finding import Finding
from litbook.lecture import parse
from litbook.lecture.claims import claim_of_assert, dissect
from litbook.lecture.directives import Directive, anchors_in, directives_in
from litbook.lecture.model import Lecture
from litbook.python.file import File
from litbook.python.nodes import freeze_garbage, pause_collection

BORN_FROZEN = gc.get_freeze_count()  # Python 3.12 begins with a few hundred

MAIN = "def main():\n    pass\n"
LECTURES = REPO / "lectures"


def lecture(text: str) -> Lecture:
    """The text, dedented, with an empty `main` behind it unless it has one."""
    text = textwrap.dedent(text)
    return parse.parse(text if "def main(" in text else text + "\n" + MAIN, "lecture.py")


def refused(text: str) -> str:
    """All that is said about a text that cannot be used."""
    with pytest.raises(UnusableLecture) as caught:
        lecture(text)
    return str(caught.value)


def shown(found: Lecture) -> list[tuple[str, str, str | None]]:
    return [(w.kind, w.text, w.unit) for w in found.watches]


def anchors(found: Lecture) -> list[tuple[str, str]]:
    """For every watch, its text and the first line of the source it is attached to."""
    lines = {}
    for node, numbers in found.watches_of.items():
        segment = ast.unparse(node.pattern if isinstance(node, ast.match_case) else node).splitlines()[0]
        lines.update(dict.fromkeys(numbers, segment))
    return [(found.watches[number].text, lines[number]) for number in sorted(lines)]


def kinds(found: Lecture) -> dict[str, str]:
    return {f.name: f.kind for f in found.functions}


def parents(found: Lecture) -> dict[str, str]:
    return {f.name: found.functions[f.parent].name for f in found.functions if f.parent is not None}


# ------------------------------------------------------------------------------- what a directive says


@pytest.mark.parametrize(
    "comment, expected",
    [
        ("@inspect x", [("inspect", "x", None)]),
        ("@inspect x, y", [("inspect", "x", None), ("inspect", "y", None)]),
        ("@inspect x y z", [("inspect", n, None) for n in "xyz"]),
        ("@inspect x, @inspect y", [("inspect", "x", None), ("inspect", "y", None)]),
        ("@inspect f(a, b), @measure t as s, @hide", [("inspect", "f(a, b)", None), ("measure", "t", "s")]),
        ("@inspect x x.a x.b.c, y y.a as B", [("inspect", t, None) for t in ("x", "x.a", "x.b.c")] + [("inspect", t, "B") for t in ("y", "y.a")]),
        ("@inspect x y as B", [("inspect", "x", "B"), ("inspect", "y", "B")]),
        ("@inspect x as B", [("inspect", "x", "B")]),
        ("@inspect x, y as B, z", [("inspect", "x", None), ("inspect", "y", "B"), ("inspect", "z", None)]),
        ("@inspect f(a, b) as FLOP/s", [("inspect", "f(a, b)", "FLOP/s")]),
        ("@inspect x[1:2, 3], [a, b], {c: d, e: f}", [("inspect", t, None) for t in ("x[1:2, 3]", "[a, b]", "{c: d, e: f}")]),
        ("@inspect lambda a, b: a, c", [("inspect", "lambda a, b: a", None), ("inspect", "c", None)]),
        ("@inspect f'{a}, {b:#x}', c", [("inspect", "f'{a}, {b:#x}'", None), ("inspect", "c", None)]),
        ("@inspect 'a as b' as B", [("inspect", "'a as b'", "B")]),
        ("@inspect not a", [("inspect", "not a", None)]),
        ("@inspect a or b", [("inspect", "a or b", None)]),
        ("@inspect a @ b", [("inspect", "a @ b", None)]),
        ("@inspect a if b else c", [("inspect", "a if b else c", None)]),
        ("@inspect x.stride()", [("inspect", "x.stride()", None)]),
        ("@inspect x @inspect y", [("inspect", "x", None), ("inspect", "y", None)]),
        ("@inspect x # @measure y as s", [("inspect", "x", None), ("measure", "y", "s")]),
        ("@measure t as s @clear x y", [("measure", "t", "s"), ("clear", "x", None), ("clear", "y", None)]),
        ("@hide @inspect x", [("inspect", "x", None)]),
        ("@inspect d['#@foo'], s.split(' @hide ')", [("inspect", "d['#@foo']", None), ("inspect", "s.split(' @hide ')", None)]),
        ("@inspect x as B  # a remark, with `@hide` in it", [("inspect", "x", "B")]),
        ("rank 1 tensor @inspect x", [("inspect", "x", None)]),
        ("it's what we don't have: @inspect d['x'] @hide", [("inspect", "d['x']", None)]),
        ("a @ b, or a @b, by mail@inspect.org @inspect x", [("inspect", "x", None)]),
        ("@inspect x  # in bytes @measure y as s", [("inspect", "x", None), ("measure", "y", "s")]),
        ("@inspect größe, 名前", [("inspect", "größe", None), ("inspect", "名前", None)]),
        ("bytes # @inspect x", [("inspect", "x", None)]),
        ("don't # @inspect d['x']", [("inspect", "d['x']", None)]),
        ("@inspect\tx", [("inspect", "x", None)]),
        ("see me@inspect and `@inspect`", []),
    ],
)  # fmt: skip
def test_a_directive_names_its_expressions_with_their_units(comment, expected):
    assert shown(lecture(f"v = 1  # {comment}")) == expected
    assert shown(lecture(f"v = 1  #{comment}")) == expected


def test_a_number_sign_in_a_string_is_no_directive():
    found = lecture(
        """
        a = "# @inspect a"
        b = f"{a} # @nonsense"
        c = '''
        # @inspect b
        ''' + "x"  # @inspect c
        """
    )
    assert [w.text for w in found.watches] == ["c"]


def test_comments_of_other_python_files_may_say_anything():
    found = parse.parse("# @author me\nx = 1  # @inspect (((\n", "x.py", lecture=False)
    assert found.watches == [] and found.functions[0].kind == "module"


@pytest.mark.parametrize("rest", ["x", "x y"])
def test_a_cut_says_where_the_shown_line_ends(rest):
    text = f'ä = "名"  # bytes # @inspect {rest}\n' + MAIN
    found = parse.parse(text, "lecture.py")
    [(line, column)] = found.files[0].cuts
    assert (line, text[:column]) == (1, 'ä = "名"  # bytes ')


# ------------------------------------------------------------------------------- where a directive belongs


@pytest.mark.parametrize(
    "text, statement",
    [
        ("v = 1  # @inspect v", "v = 1"),
        ("v = (1,\n     2,  # @inspect v\n     3)", "v = (1, 2, 3)"),
        ("v = (1,\n     # @inspect v\n     3)", "v = (1, 3)"),
        ("v = (  # @inspect v\n     1)", "v = 1"),
        ("v = 1 + \\\n    2  # @inspect v", "v = 1 + 2"),
        ("a = 1; v = 2  # @inspect v", "v = 2"),
        ("a = (1,\n 2); v = 3  # @inspect v", "v = 3"),
        ("a = (1,\n 2); b = (3,\n 4); v = 5  # @inspect v", "v = 5"),
        ("if a: v = 1  # @inspect v", "v = 1"),
        ("if (a and\n    b): v = 1  # @inspect v", "v = 1"),
        ("if a:  # @inspect v\n    pass", "if a:"),
        ("if a:\n    pass\nelif b:  # @inspect v\n    pass", "if b:"),
        ("if a: pass\nelse: v = 1  # @inspect v", "v = 1"),
        ("while (a and\n       b):  # @inspect v\n    pass", "while a and b:"),
        ("for v in a:  # @inspect v\n    pass", "for v in a:"),
        ("for v in a: b = v  # @inspect v", "b = v"),
        ("with a as v:  # @inspect v\n    pass", "with a as v:"),
        ("with (a as v,\n      b as w):  # @inspect v\n    pass", "with a as v, b as w:"),
        ("try:  # @inspect v\n    pass\nfinally:\n    pass", "try:"),
        ("try:\n    pass\nexcept E as v:  # @inspect v\n    pass", "except E as v:"),
        ("try: pass\nexcept E: v = 1  # @inspect v", "v = 1"),
        ("match a:  # @inspect v\n    case 1:\n        pass", "match a:"),
        ("match a:\n    case v:  # @inspect v\n        pass", "v"),
        ("match a:\n    case (\n        1 | 2\n    ):  # @inspect v\n        pass", "1 | 2"),
        ("match a:\n    case v: b = 1  # @inspect v", "b = 1"),
        ("def f(v):  # @inspect v\n    pass", "def f(v):"),
        ("def f(a,\n      v):  # @inspect v\n    pass", "def f(a, v):"),
        ("def f(v): return v  # @inspect v", "return v"),
        ("@a  # @inspect v\n@b\ndef f(v):\n    pass", "@a"),
        ("@a\n@b(1,\n   2)  # @inspect v\ndef f(v):\n    pass", "@a"),
        ("class V:  # @inspect v\n    pass", "class V:"),
        ("class V:\n    v = 1  # @inspect v", "v = 1"),
        ("async def f(v):\n    async for w in v:  # @inspect v\n        pass", "async for w in v:"),
        ("lambda: (  # @inspect v\n 1)", "lambda: 1"),
        ("if a:\n\tv = 1\t# @inspect v", "v = 1"),
        ("if a:\n\x0c    v = 1  # @inspect v", "v = 1"),
        ("größe = 'ßßß'; v = 2  # @inspect v", "v = 2"),
    ],
)  # fmt: skip
def test_a_directive_belongs_to_what_begins_last_on_its_logical_line(text, statement):
    assert anchors(parse.parse(text + "\n" + MAIN, "lecture.py")) == [("v", statement)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_other_systems_change_nothing(end):
    text = 'def main():\n    """A\n    B"""\n    x = (1,  # @inspect x\n         2)\n    nope(\n    )  # @inspect x\n'
    found = parse.parse(text.replace("\n", end), "lecture.py")
    assert found.files[0].text == text
    assert [(w.text, w.line) for w in found.watches] == [("x", 4), ("x", 7)]


def test_form_feeds_and_other_separators_are_no_line_ends():
    text = "a = 1\x0c\nb = '\u2028\x1c\x85'\n\x0cc = 3  # @inspect )\n" + MAIN
    with pytest.raises(UnusableLecture) as caught:
        parse.parse(text, "lecture.py")
    assert str(caught.value).startswith(
        "lecture.py:3:9: @inspect cannot read ')': unmatched ')'\n    c = 3  # @inspect )\n"
    )
    found = parse.parse(text.replace(")\n", "c\n", 1), "lecture.py")
    assert found.files[0].place(3).text == "\x0cc = 3  # @inspect c"
    assert len(found.files[0].lines) == 5 == found.functions[0].last


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfname = 'gr\xc3\xb6\xc3\x9fe'  # @inspect name\n",
        b"# -*- coding: latin-1 -*-\nname = 'gr\xf6\xdfe'  # @inspect name\n",
        b"#!/usr/bin/env python\n# vim: set fileencoding=utf-16be :\n".replace(b"utf-16be", b"cp1252") + b"name = 'gr\xf6\xdfe'  # @inspect name\r\n",
    ],
    ids=["byte order mark", "latin-1 cookie", "cookie on line two, CRLF"],
)  # fmt: skip
def test_files_in_other_encodings_are_read(tmp_path, data):
    file = tmp_path / "lecture.py"
    file.write_bytes(data + MAIN.encode())
    found = parse.read(file)
    text = found.files[0].text
    assert "größe" in text and "\r" not in text and "\ufeff" not in text
    assert shown(found) == [("inspect", "name", None)] and found.files[0].path == "lecture.py"


@pytest.mark.parametrize(
    "data, message",
    [
        (
            b"y = 1\nx = '\xff'\n",
            "lecture.py:2: this is no text in utf-8: b'\\xff'\n    save the file as UTF-8",
        ),
        (b"# coding: nonsense\n", "lecture.py is not Python text: unknown encoding"),
        (None, "lecture.py: No such file or directory"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, data, message):
    file = tmp_path / "lecture.py"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(UnusableLecture) as caught:
        parse.read(file)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_status == 2


# ------------------------------------------------------------------------------- what is wrong, and where


def problems(text: str, as_lecture: bool = True) -> list[Finding]:
    """What is said about a text; nothing where it can be used. Any other exception passes through."""
    try:
        parse.parse(text, "lecture.py", lecture=as_lecture)
    except UnusableLecture as error:
        return error.findings or [Finding("test", "no problem was named")]
    return []


def problem(text: str) -> Finding:
    with pytest.raises(UnusableLecture) as caught:
        lecture(text)
    [found] = caught.value.findings
    return found


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "x = 1  # @inspekt x",
            """\
            lecture.py:1:8: unknown directive @inspekt
                x = 1  # @inspekt x
                       ^
                did you mean @inspect?""",
        ),
        (
            "x = 1  # @ inspect x",
            """\
            lecture.py:1:8: unknown directive @ inspect
                x = 1  # @ inspect x
                       ^
                did you mean @inspect?""",
        ),
        (
            "if a:\n    x = 1  # @frobnicate",
            """\
            lecture.py:2:12: unknown directive @frobnicate
                x = 1  # @frobnicate
                       ^
                there are: @inspect, @measure, @clear, @hide, @show, @stepover, @allow, @fails, @zero, @unnoticed""",
        ),
        (
            "# @unheard of",
            """\
            lecture.py:1:1: unknown directive @unheard
                # @unheard of
                ^
                there are: @inspect, @measure, @clear, @hide, @show, @stepover, @allow, @fails, @zero, @unnoticed""",
        ),
        (
            "x = 1\n# @inspect x\ny = 2",
            """\
            lecture.py:2:1: @inspect stands on a line of its own and belongs to no statement
                # @inspect x
                ^
                put it at the end of the statement it is about""",
        ),
        (
            "if a:\n    b\nelse:  # @inspect x\n    c",
            """\
            lecture.py:3:8: @inspect stands on a line that is no statement (`else:`, `finally:`)
                else:  # @inspect x
                       ^
                put it on a statement of the block""",
        ),
        (
            "x = 1  # @inspect x +",
            """\
            lecture.py:1:8: @inspect cannot read 'x +': invalid syntax
                x = 1  # @inspect x +
                       ^
                write Python expressions, separated by commas, each with an optional `as UNIT`""",
        ),
        (
            "print(1)  # @inspect",
            """\
            lecture.py:1:11: @inspect names no expression
                print(1)  # @inspect
                          ^
                write what to show: # @inspect x.shape""",
        ),
        (
            "x = 1  # see @inspect",
            """\
            lecture.py:1:14: @inspect names no expression
                x = 1  # see @inspect
                             ^
                write what to show: # @inspect x.shape; as a word of the remark write `@inspect`""",
        ),
        (
            "x = 1  # rank 1 tensor @inspct x",
            """\
            lecture.py:1:24: unknown directive @inspct
                x = 1  # rank 1 tensor @inspct x
                                       ^
                did you mean @inspect?; as a word of the remark write `@inspct`""",
        ),
        (
            "x = 1  # @inspect x  # which we @hide below",
            """\
            lecture.py:1:33: @hide takes nothing, but 'below' follows it
                x = 1  # @inspect x  # which we @hide below
                                                ^
                remove what follows it; as a word of the remark write `@hide`""",
        ),
        (
            "x = 1\n# above, we @inspect x",
            """\
            lecture.py:2:13: @inspect stands on a line of its own and belongs to no statement
                # above, we @inspect x
                            ^
                put it at the end of the statement it is about; as a word of the remark write `@inspect`""",
        ),
        (
            "x = 1  # @inspect x,, @inspect y",
            """\
            lecture.py:1:8: @inspect cannot read '': invalid syntax
                x = 1  # @inspect x,, @inspect y
                       ^
                write Python expressions, separated by commas, each with an optional `as UNIT`""",
        ),
        (
            "x = 1  # @inspect x x.a(1)",
            """\
            lecture.py:1:8: @inspect cannot read 'x x.a(1)': invalid syntax
                x = 1  # @inspect x x.a(1)
                       ^
                write Python expressions, separated by commas, each with an optional `as UNIT`""",
        ),
        (
            "x = 1  # @hide x",
            """\
            lecture.py:1:8: @hide takes nothing, but 'x' follows it
                x = 1  # @hide x
                       ^
                remove what follows it""",
        ),
        (
            "größe = '名'  # @inspect ä +, b",
            """\
            lecture.py:1:14: @inspect cannot read 'ä +': invalid syntax
                größe = '名'  # @inspect ä +, b
                             ^
                write Python expressions, separated by commas, each with an optional `as UNIT`""",
        ),
        (
            "def main():\n    section()  # @inspect a as\n",
            """\
            lecture.py:2:16: @inspect cannot read 'a as': invalid syntax
                section()  # @inspect a as
                           ^
                write Python expressions, separated by commas, each with an optional `as UNIT`""",
        ),
        (
            "def main():\n    section()\n\n@a\ndef section():  # @stepover\n    pass",
            """\
            lecture.py:5:17: @stepover on the section 'section' would leave nothing to show
                def section():  # @stepover
                                ^
                put it on the line that calls what is not to be recorded""",
        ),
        (
            "x = 1\ny = = 2\n",
            """\
            lecture.py:2:5: syntax error: invalid syntax
                y = = 2
                    ^""",
        ),
        (
            "x = 1\nreturn x\n",
            """\
            lecture.py:2:1: syntax error: 'return' outside function
                return x
                ^""",
        ),
        (
            "x = [1,\n\n",
            """\
            lecture.py:1:5: syntax error: '[' was never closed
                x = [1,
                    ^""",
        ),
        (
            "def main(x):\n    pass",
            """\
            lecture.py:1:1: main is no plain function without parameters
                def main(x):
                ^
                a lecture starts at `def main() -> None:`, which calls its sections""",
        ),
    ],
)  # fmt: skip
def test_a_problem_names_the_place_repeats_the_line_and_knows_the_way_out(text, message):
    assert str(problem(text)) == textwrap.dedent(message)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "def main():\n    x = 1\n      y = 2\n",
            """\
            lecture.py:3:7: syntax error: unexpected indent
                    x = 1
                      y = 2
                      ^
                indent it as far as the statement above""",
        ),
        (
            "def main():\n    if x:\n        y = 1\n      # why\n\n      z = 2\n",
            """\
            lecture.py:6:7: syntax error: unindent does not match any outer indentation level
                        y = 1
                      z = 2
                      ^
                indent it as far as the statement above, or as a block around that""",
        ),
        (
            "def main():\n    if x:\n    y = 1\n",
            """\
            lecture.py:3:5: syntax error: expected an indented block after 'if' statement on line 2
                    if x:
                    y = 1
                    ^
                indent what belongs into that block, or write `pass` there""",
        ),
        (
            "def main():\n",
            """\
            lecture.py:1:1: syntax error: expected an indented block after function definition on line 1
                def main():
                ^
                indent what belongs into that block, or write `pass` there""",
        ),
        (
            "def main():\n        x = 1\n\ty = '\t'\n",
            """\
            lecture.py:3:2: syntax error: inconsistent use of tabs and spaces in indentation
                        x = 1
                →   y = '\t'
                    ^
                indent with spaces only""",
        ),
        (
            "# why\n  x = 1\n",
            """\
            lecture.py:2:3: syntax error: unexpected indent
                  x = 1
                  ^
                begin it at the left margin""",
        ),
    ],
)
def test_a_line_that_is_indented_wrongly_is_shown_as_it_stands_below_the_one_above(text, message):
    [found] = problems(text)
    assert str(found) == textwrap.dedent(message)


@pytest.mark.parametrize(
    "text", ["async def main(): pass", "def main(): yield", "def main(*a): pass", "class main: pass"]
)
def test_main_must_be_callable_without_more(text):
    with pytest.raises(
        UnusableLecture, match=r"^lecture.py:1:1: main is no plain function without parameters"
    ):
        parse.parse(text, "lecture.py")


@pytest.mark.parametrize("text", ["", "x = 1\n", "if True:\n    def main(): pass\n", "# only a comment"])
def test_a_file_without_main_is_no_lecture(text):
    with pytest.raises(UnusableLecture) as caught:
        parse.parse(text, "lecture.py")
    assert str(caught.value) == (
        "lecture.py has no function main()\n    a lecture starts at `def main() -> None:`, which calls its sections"
    )
    assert [p.code for p in caught.value.findings] == ["no-main"]


@pytest.mark.parametrize(
    "expression, reason",
    [
        ("await x", "'await' outside function"),
        ("[a async for a in b]", "asynchronous comprehension outside of an asynchronous function"),
        ("(yield)", "'yield' outside function"),
        ("(y := 3)", "what is shown may not assign; it would change the lecture"),
        ("[y := 3 for z in x]", "what is shown may not assign; it would change the lecture"),
        ("f(a=1, a=2)", "keyword argument repeated: a"),
        ("f(lambda a, a: 1)", "duplicate argument 'a' in function definition"),
        ("x = 1", None),
        ("print 1", None),
        ("*x", None),
        ("x,", None),
        (", x", None),
        ("x[", "'[' was never closed"),
        ("import os", None),
        ("x as two words", None),
        ("'open", None),
        ("(" * 300 + ")" * 300, None),
        ("x\0y", None),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_runs(expression, reason):
    text = f"async def f():\n    x = 1  # @inspect {expression}\n" + MAIN
    with pytest.raises(UnusableLecture) as caught:
        parse.parse(text, "lecture.py")
    found = caught.value.findings[-1]
    assert found.code in ("bad-expression", "syntax")
    assert reason is None or found.what == f"@inspect cannot read {expression!r}: {reason}"


def test_all_problems_of_a_file_are_reported_in_the_order_of_its_lines():
    message = refused(
        """\
        x = 1  # @inspect x y + @nope
        # @clear x
        y = 2  # @hide this @measure
        """
    )
    assert [line for line in message.splitlines() if line.startswith("lecture.py")] == [
        "lecture.py:1:8: @inspect cannot read 'x y + @nope': invalid syntax",
        "lecture.py:2:1: @clear stands on a line of its own and belongs to no statement",
        "lecture.py:3:8: @hide takes nothing, but 'this' follows it",
        "lecture.py:3:21: @measure names no expression",
    ]


def test_a_syntax_error_hides_no_other_problem():
    message = refused("x = 1  # @inspekt x\ny = 2  # @inspect y +\nz = = 3\n")
    assert [line.split(": ")[1] for line in message.splitlines() if line.startswith("lecture.py")] == [
        "unknown directive @inspekt",
        "@inspect cannot read 'y +'",
        "syntax error",
    ]


def test_a_missing_main_hides_no_other_problem():
    with pytest.raises(UnusableLecture) as caught:
        parse.parse("x = 1  # @inspekt x\n", "lecture.py")
    assert [p.code for p in caught.value.findings] == ["no-main", "unknown-directive"]


# ------------------------------------------------------------------------------- sections


TREE = '''
"""The title of it all.

More."""
from litbook import requires

def main():
    """Contents."""
    part()
    if True:
        with open("x") as f:
            for _ in range(2):
                single()
    single()
    helper(1)
    x = called_for_value()
    list(generator())
    coroutine().close()
    nested(plain())
    Klass()

def part():
    """A part has sections. And this is not the heading's end..
    """
    one()
    two()

@requires("cuda")
def one():
    pass

def two():
    """Two is computed."""
    one()
    two()
    inner()
    def inner(): pass

def inner(): pass
def single(): "A thesis."
def helper(x): pass
def called_for_value(): pass
def generator(): yield
async def coroutine(): pass
def nested(x): pass
def plain(): pass
def never(): one()
class Klass:
    def method(self): one()
'''


def test_sections_are_the_parameterless_functions_that_main_reaches_by_plain_calls():
    found = lecture(TREE)
    assert {name: kind for name, kind in kinds(found).items() if kind not in ("helper", "class")} == {
        "<module>": "module",
        "main": "main",
        "part": "part",
        "one": "section",
        "two": "part",  # it calls one()
        "single": "section",
    }
    assert found.section_names() == ["part", "one", "two", "single"]
    assert parents(found) == {"part": "main", "one": "part", "two": "part", "single": "main"}


def test_headings_are_the_docstring_without_its_full_stop_or_the_name():
    headings = {f.name: f.heading for f in lecture(TREE).functions}
    assert headings["part"] == "A part has sections. And this is not the heading's end.."
    assert headings["two"] == "Two is computed"
    assert headings["one"] == "One"
    assert headings["single"] == "A thesis"
    assert headings["helper"] == ""
    assert lecture(TREE).title == "The title of it all"
    assert lecture("x = 1").title == "Lecture"


@pytest.mark.parametrize(
    "line, kind",
    [
        ('note("a"), link("https://example.org"), l.note("b")', "piece"),
        ('note("a"),', "piece"),
        ('n("a"), speaker_note("b")', "piece"),
        ('speaker_note("a"), speaker_note("b")', "hidden"),
        ('note("a"), print("b")', "code"),
        ('note("a"), 1', "code"),
        ('[note("a"), note("b")]', "code"),
        ("()", "code"),
    ],
)
def test_words_on_one_line_are_prose(line, kind):
    found = lecture(
        "import litbook as l\nfrom litbook import link, note, speaker_note\nfrom litbook import note as n\n"
        + line
    )
    assert found.statements[3].kind == kind


def test_without_a_docstring_the_title_is_the_heading_that_main_begins_with():
    text = """
        from litbook import figure, note
        def main():
            first = 1
            note('''
                ## What a tensor costs ##
                # Not this one''')
            note("# Nor this one")
    """
    found = lecture(text)
    assert found.title == found.functions[0].heading == "What a tensor costs"
    assert lecture('"""Its own title."""\n' + textwrap.dedent(text)).title == "Its own title"


@pytest.mark.parametrize(
    "first", ['note("No heading, # but a remark.")', 'note("#no heading either")', "first()"]
)
def test_a_heading_in_the_middle_is_no_title_and_the_name_is_one(first):
    text = f"""
        from litbook import note
        def main():
            {first}
            note("# fp32")
        def first():
            note("# fp16")
    """
    assert lecture(text).title == "Lecture"


def test_what_a_part_is_for_its_sections_are_for():
    text = """
    def main():
        part()
        last()

    @requires("cuda")
    def part():
        inner()

    def inner():
        deepest()

    def deepest():
        pass

    def last():
        pass
    """
    found = {f.name: f.requires for f in lecture(text).functions if f.kind in ("part", "section")}
    assert found == {"part": "cuda", "inner": "cuda", "deepest": "cuda", "last": None}


def test_requires_names_the_device():
    assert [f.name for f in lecture(TREE).functions if f.requires == "cuda"] == ["one"]
    found = lecture("import litbook\n@litbook.requires('cuda')\ndef f(): pass")
    assert [f.requires for f in found.functions] == [None, "cuda", None]


ASIDES = """
from litbook import aside, requires

def main():
    part()

def part():
    core()
    beside()

def core(): pass

@aside
def beside():
    below()

@requires("cuda")
def below(): pass
"""


def test_a_section_of_an_aside_is_an_aside():
    found = {f.name: f.aside for f in lecture(ASIDES).functions}
    assert found == {
        "<module>": False,
        "main": False,
        "part": False,
        "core": False,
        "beside": True,
        "below": True,
    }


def test_an_aside_is_marked_by_the_word_however_it_is_imported_and_in_any_order_of_marks():
    found = lecture(
        "import litbook\ndef main():\n    one()\n    two()\n    three()\n@litbook.aside\ndef one(): pass\n"
        "@litbook.requires('cuda')\n@litbook.aside\ndef two(): pass\n@beside\ndef three(): pass\n"
    )
    assert {f.name: f.aside for f in found.functions if f.kind == "section"} == {
        "one": True,
        "two": True,
        "three": False,
    }


def test_a_page_is_no_aside():
    text = ASIDES.replace("def part", "@aside\ndef part")
    assert str(problem(text)) == (
        "lecture.py:7:2: part() has a page of its own, which cannot be an aside\n"
        "    @aside\n     ^\n    mark the sections that it calls"
    )
    assert [p.code for p in problems(text)] == ["no-aside"]


def test_a_lecture_of_one_page_may_have_asides():
    assert problems("def main():\n    one()\n@aside\ndef one(): pass") == []


@pytest.mark.parametrize(
    ("text", "at", "name"),
    [
        ("@aside\ndef main(): pass", 1, "main"),
        ("def main(): pass\n@aside\ndef never(): pass", 2, "never"),
        ("def main():\n    help(1)\n@aside\ndef help(n): pass", 3, "help"),
        ("def main(): pass\n@aside\nclass Klass: pass", 2, "Klass"),
    ],
)
def test_only_a_section_is_an_aside(text, at, name):
    assert str(problem(text)) == (
        f"lecture.py:{at}:2: only a section can be an aside, and {name} is none\n"
        "    @aside\n     ^\n    take the @aside away"
    )


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("@aside()", "@aside takes no brackets\n    @aside()\n     ^\n    write @aside"),
        (
            "@litbook.requires",
            '@requires does not say what\n    @litbook.requires\n     ^\n    say what is needed: @requires("cuda")',
        ),
    ],
)
def test_a_mark_with_a_bracket_too_many_or_too_few_says_how_it_is_written(mark, said):
    assert str(problem(f"def main():\n    one()\n{mark}\ndef one(): pass")) == f"lecture.py:3:2: {said}"


def test_calls_of_sections_are_section_statements_wherever_they_stand():
    found = lecture(TREE)
    calls = [
        (s.first, found.functions[s.target].name)
        for s in found.statements
        if s.kind == "section" and s.target
    ]
    lines = TREE.splitlines()
    assert [name for _, name in calls] == ["part", "single", "single", "one", "two", "one"]
    assert all(lines[line - 1].strip() == f"{name}()" for line, name in calls)


def test_a_name_of_the_functions_own_is_no_section():
    found = lecture(
        """
        def main():
            def a(): pass
            from x import b
            c = 3
            a(); b(); c(); d()
        def a(): pass
        def b(): pass
        def c(): pass
        def d(): pass
        """
    )
    assert found.section_names() == ["d"]


def test_recursion_among_sections_ends():
    found = lecture("def main():\n    a()\n    main()\ndef a(): b(); a()\ndef b(): a()")
    assert kinds(found) == {"<module>": "module", "main": "main", "a": "part", "b": "part"}
    assert found.section_names() == ["a", "b"]


# ------------------------------------------------------------------------------- statements


def spans(text: str) -> list[tuple[int, int, int, str]]:
    return [(s.first, s.last, s.end, s.kind) for s in parse.parse(text, "x.py", lecture=False).statements]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x = 1\n", [(1, 1, 1, "code")]),
        ("x = (1,\n  2)\n", [(1, 2, 2, "code")]),
        ('"""doc\nmore"""\nx = 1', [(1, 2, 2, "doc"), (3, 3, 3, "code")]),
        ("if a:\n    b\nelse:\n    c", [(1, 1, 4, "code"), (2, 2, 2, "code"), (4, 4, 4, "code")]),
        ("if (a and\n    b):\n    # why\n\n    c", [(1, 2, 5, "code"), (5, 5, 5, "code")]),
        ("if a: b", [(1, 1, 1, "code"), (1, 1, 1, "code")]),
        ("@d\n@e\ndef f(x,\n      y):\n    '''doc'''\n    pass", [(1, 4, 6, "def"), (5, 5, 5, "doc"), (6, 6, 6, "code")]),
        ("class A:\n    @d\n    def f(self): pass", [(1, 1, 3, "def"), (2, 3, 3, "def"), (3, 3, 3, "code")]),
        ("match x:\n    # one\n    case 1:\n        y", [(1, 1, 4, "code"), (4, 4, 4, "code")]),
        ("match (x,\n       z):\n\n    case (\n      1):\n        y", [(1, 2, 6, "code"), (6, 6, 6, "code")]),
        ("try:\n    a\nexcept E:\n    b\nfinally:\n    c", [(1, 1, 6, "code"), *[(n, n, n, "code") for n in (2, 4, 6)]]),
    ],
)  # fmt: skip
def test_statements_know_their_first_last_and_end_lines(text, expected):
    assert spans(text) == expected


def test_statements_are_numbered_in_reading_order_and_know_their_owner():
    found = lecture("def main():\n    def inner():\n        x\n    y\nclass A:\n    z\nw")
    owners = [(s.first, found.functions[s.function].name) for s in found.statements]
    assert owners == [
        (1, "<module>"),
        (2, "main"),
        (3, "inner"),
        (4, "main"),
        (5, "<module>"),
        (6, "A"),
        (7, "<module>"),
    ]


def test_a_definition_statement_points_to_its_function():
    found = lecture("def main(): pass\nclass A:\n    def f(self): pass")
    assert [found.functions[s.target].name for s in found.statements if s.kind == "def" and s.target] == [
        "main",
        "A",
        "f",
    ]


@pytest.mark.parametrize(
    "header, call",
    [
        ("from litbook import note", "note('x')"),
        ("from litbook import note as n", "n('x')"),
        ("import litbook", "litbook.figure(x)"),
        ("import litbook as lb", "lb.link('x')"),
    ],
)
def test_the_authors_words_are_pieces_under_any_name(header, call):
    assert [s.kind for s in lecture(f"{header}\n{call}\nx = {call}").statements][1:3] == ["piece", "code"]


def test_other_functions_named_note_are_no_pieces():
    assert [s.kind for s in lecture("from other import note\nnote('x')").statements][1] == "code"


def test_hide_hides_a_statement_a_block_and_a_definition_with_what_is_inside():
    found = lecture(
        """\
        x = 1  # @hide
        if x:  # @hide
            y = 2
            def f(): pass
        def plot(a):  # @hide
            return a
        z = 3
        """
    )
    assert [s.first for s in found.statements if s.kind == "hidden"] == [1, 2, 3, 4, 4, 5, 6]
    assert [f.name for f in found.functions if f.hidden] == ["f", "plot"]


# ------------------------------------------------------------------------------- claims


def test_asserts_in_a_sections_own_body_are_claims():
    found = lecture(
        """\
        def main():
            assert a0, "main too"
            section()
        def section():
            assert a1, "one"
            for x in y:
                with z:
                    if x: assert a2
            match x:
                case 1: assert a3, f"{x}"
            try:
                assert a10
            except E:
                assert a11
            else:
                assert a12
            finally:
                assert a13
            try:
                assert a14
            except* E:
                pass
            def inner():
                assert a15
            class A:
                assert a16
            helper(1)
            while x:
                assert a4
            else:
                assert a5
        def helper(x):
            assert a17
        assert a18
        """
    )
    assert [claim.text for claim in found.claims] == ["a0", "a1", "a2", "a3", "a4", "a5"]
    assert [claim.caption for claim in found.claims] == ["main too", "one", "", "", "", ""]
    assert [found.statements[c.statement].kind for c in found.claims] == ["claim"] * 6


def test_annotations_that_name_axes_are_claims():
    found = lecture(
        """\
        def main():
            x: Float[Tensor, "batch seq"] = f()
            y: Float[Tensor, "batch"]
            z: int = 3
            a.b: Float[Tensor, "batch"] = f()
            w: Dict[str, int] = {}
            try:
                v: Float[Tensor, "batch"] = f()
            finally:
                pass
        """
    )
    assert [(c.kind, c.text) for c in found.claims] == [("axes", 'x: Float[Tensor, "batch seq"]')]
    assert [s.kind for s in found.statements if s.first == 2] == ["code"]


def parts(test: str) -> tuple[tuple[str, ...], list[str]]:
    form, operands = dissect(ast.parse(test, mode="eval").body, test)
    return form, [ast.unparse(operand) for operand in operands]


@pytest.mark.parametrize(
    "test, form, operands",
    [
        ("a", ("", ""), ["a"]),
        ("a == b", ("", " == ", ""), ["a", "b"]),
        ("a < b <= c", ("", " < ", " <= ", ""), ["a", "b", "c"]),
        ("a is not b", ("", " is not ", ""), ["a", "b"]),
        ("a not in b", ("", " not in ", ""), ["a", "b"]),
        ("not a", ("not ", ""), ["a"]),
        ("not a == b", ("not ", " == ", ""), ["a", "b"]),
        ("a and b or c", ("(", " and ", ") or ", ""), ["a", "b", "c"]),
        ("a and (b or c)", ("", " and (", " or ", ")"), ["a", "b", "c"]),
        ("not (a or b)", ("not (", " or ", ")"), ["a", "b"]),
        ("f(a, b)", ("f(", ", ", ")"), ["a", "b"]),
        ("m.f(a, *b, k=c, **d)", ("m.f(", ", *", ", k=c, **d)"), ["a", "b"]),
        ("f()", ("", ""), ["f()"]),
        ("f(k=1)", ("", ""), ["f(k=1)"]),
        ("a < b and torch.equal(x, y)", ("", " < ", " and torch.equal(", ", ", ")"), ["a", "b", "x", "y"]),
        ("(a if b else c) == d", ("(", ") == ", ""), ["a if b else c", "d"]),
        ("(a or b) == c", ("(", ") == ", ""), ["a or b", "c"]),
        ("(a == b) == (not c)", ("(", ") == (", ")"), ["a == b", "not c"]),
        ("all(x for x in y)", ("all(", ")"), ["(x for x in y)"]),
        ("(lambda x: x)(1)", ("(lambda x: x)(", ")"), ["1"]),
        ("(y := f()) > 1", ("(", ") > ", ""), ["(y := f())", "1"]),
    ],
)
def test_a_test_is_taken_apart_into_operands_and_the_words_between(test, form, operands):
    assert parts(test) == (form, operands)


names = st.sampled_from(["a", "b", "c.d", "e[0]", "f()", "1", "'x  y'", "-a", "a + b", "[a, b]"])


def _tests(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = below.map("({})".format)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["==", "<", "is not", "not in", "and", "or"]), inner).map(" ".join),
        st.tuples(inner, inner, inner).map("{0[0]} <= {0[1]} != {0[2]}".format),
        st.tuples(inner, inner, inner).map("{0[0]} or {0[1]} or {0[2]}".format),
        st.tuples(inner, inner, inner).map("{0[0]} if {0[1]} else {0[2]}".format),
        inner.map("not {}".format),
        st.tuples(below, below, below).map("g(({0[0]}), *({0[1]}), k=({0[2]}), **h)".format),
        inner.map("lambda z: {}".format),
        inner.map("{}(a)".format),
    )


@given(st.recursive(names, _tests, max_leaves=8))
def test_form_and_operands_together_are_the_test_again(test):
    text = f"assert {test}, 'caption'"
    [node] = ast.parse(text).body
    claim = claim_of_assert(text, node)
    together = "".join(itertools.chain(*itertools.zip_longest(claim.form, claim.operand_texts, fillvalue="")))
    assert ast.dump(ast.parse(together, mode="eval")) == ast.dump(ast.parse(test, mode="eval"))
    assert claim.text.strip("()") in test


@pytest.mark.parametrize(
    "test, text",
    [
        ("(a  # @inspect a\n        == b)", "a == b"),
        ("(a\n        == 'x  y')", "a == 'x  y'"),
        ("f(1_000,\n             0x10)", "f(1_000, 0x10)"),
        ("a == \\\n        b", "a == b"),
    ],
)
def test_a_claims_text_is_the_users_on_one_line(test, text):
    [claim] = lecture(f"def main():\n    assert {test}").claims
    assert claim.text == text


# ------------------------------------------------------------------------------- what would say nothing


LOST = "def main():\n    note('Prose.')\n    part()\ndef part():\n    sec()\n"


@pytest.mark.parametrize(
    "definition, at, why, way_out",
    [
        ("async def sec():\n    assert 1 < 2", 6, "is async", "write `def sec():`, with asyncio.run(…) around what it awaits"),
        ("def sec():\n    assert 1 < 2\n    yield", 6, "holds a `yield`, so that calling it runs nothing", "take the `yield` out"),
        ("def sec(n=1):\n    yield n", 6, "holds a `yield`, so that calling it runs nothing", "take the `yield` out"),
        ("@requires('cuda')\nasync def sec(): pass", 7, "is async", "write `def sec():`, with asyncio.run(…) around what it awaits"),
    ],
)  # fmt: skip
def test_a_section_that_runs_nothing_is_refused(tmp_path, definition, at, why, way_out):
    text = LOST + definition
    assert str(problem(text)) == (
        f"lecture.py:{at}:1: sec() {why}, and part() calls it on line 5: a section is a plain function without parameters\n"
        f"    {text.splitlines()[at - 1]}\n    ^\n    {way_out}"
    )
    assert [p.code for p in problems(text)] == ["no-section"]
    file = tmp_path / "lecture.py"
    file.write_text(text, "utf-8")
    with pytest.raises(UnusableLecture, match=r"lecture.py:\d:1: sec\(\) "):  # not "no section named 'sec'"
        parse.read_usable(file, ["sec"])


def test_a_helper_that_main_or_a_part_calls_like_a_section_may_claim_nothing():
    parted = "def main():\n    sec()\n    part()\ndef part():\n    sec()\n    one()\ndef one(): pass\n"
    assert str(problem(parted + "def sec(n=3):\n    check()\ndef check():\n    if x: assert n")) == (
        "lecture.py:8:1: sec() takes parameters, so that its claims do not count, and main() calls it on line 2: "
        "a section is a plain function without parameters\n"
        "    def sec(n=3):\n    ^\n    write `def sec():`, or call it in a section"
    )
    assert str(problem(parted + "if x:\n    def sec():\n        x: Float[Tensor, 'n'] = f()")) == (
        "lecture.py:9:5: sec() is defined in a block, so that its claims do not count, and main() calls it on line 2: "
        "a section is a plain function without parameters\n"
        "    def sec():\n    ^\n    define it at the left margin"
    )


@pytest.mark.parametrize(
    "text",
    [
        "def main():\n    show()\ndef show(n=3):\n    note(n)\n    try:\n        assert n\n    finally: pass",
        "def main():\n    sec()\ndef sec():\n    check()\ndef check(n=3):\n    assert n",
        "def main():\n    sec(1)\ndef sec(n=3):\n    assert n",
        "def main():\n    from x import sec\n    sec()\nasync def sec(): pass",
        "def main():\n    sec()\n@sync\nasync def sec(): assert 1 < 2",
        "def main():\n    x = sec()\n    list(sec())\ndef sec(): yield",
        "def main():\n    sec()\nif x:\n    def sec(): pass\nelse:\n    def sec(): pass",
        "def main():\n    sec()\nclass sec:\n    assert 1 < 2",
        "def main(): pass\ndef never():\n    sec()\nasync def sec(): pass",
        "def main():\n    sec()\ndef sec():\n    sec()\ndef walk(n=1):\n    walk()\n    assert n",
        "def main():\n    walk()\ndef walk(n=1):\n    walk()",
    ],
)
def test_a_call_that_loses_no_claim_is_nobodys_business(text):
    assert problems(text) == []


def test_a_function_that_another_one_replaces_is_refused():
    message = refused("def a(): pass\nasync def main(): pass\nx = 1\ndef a():\n    a\ndef main(): pass")
    assert message == (
        "lecture.py:4:1: a() is defined on line 1 already, and this one replaces it\n"
        "    def a():\n    ^\n    give one of them another name\n"
        "lecture.py:6:1: main() is defined on line 2 already, and this one replaces it\n"
        "    def main(): pass\n    ^\n    give one of them another name"
    )


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n    def a(): pass\nelse:\n    def a(): pass",
        "@overload\ndef a(x: int): ...\n@typing.overload\ndef a(x: str): ...\ndef a(x): pass",
        "@singledispatch\ndef a(x): pass\n@a.register\ndef a(x: int): pass\n@a.register(str)\ndef a(x): pass",
        "class A:\n    def f(self): pass\n    def f(self): pass",
        "@f.register\ndef _(x: int): pass\n@f.register\ndef _(x: str): pass\ndef _(): pass",
        "def a():\n    def b(): pass\n    def b(): pass\ndef b(): pass",
    ],
)
def test_functions_that_share_a_name_for_a_reason_are_not(text):
    assert problems(text + "\n" + MAIN) == []
    assert problems("def a(): pass\ndef a(): pass", as_lecture=False) == []


@pytest.mark.parametrize(
    "asserted, way_out",
    [
        ('(x == 2, "größer")', 'take the parentheses away: assert x == 2, "größer"'),
        ("(x,)", "take the comma away: assert x"),
        ("x, y", None),
        ("(x, y, *z)", "assert one thing at a time"),
        ("(*x,)", "say what is claimed of it, `len(…) > 0` perhaps"),
    ],
)
def test_an_assert_of_a_tuple_is_refused_wherever_it_stands(asserted, way_out):
    for head in ("def main():\n    ö = 1; assert", "def main(): pass\nclass A:\n    ö = 1; assert"):
        if way_out is None:
            assert problems(f"{head} {asserted}") == []  # a claim and its caption
            continue
        found = problem(f"{head} {asserted}")
        line = f"ö = 1; assert {asserted}"
        assert str(found) == (
            f"lecture.py:{head.count(chr(10)) + 1}:19: this assert is always true: it asserts a tuple\n"
            f"    {line}\n    {' ' * 14}^\n    {way_out}"
        )
        assert found.code == "no-claim"
    assert problems("def main():\n    assert ()\n    assert (x)") == []


AXES = (
    "from jaxtyping import Float, Int as Whole\nimport jaxtyping as jt\ndef main():\n    sec()\ndef sec():\n"
)


@pytest.mark.parametrize(
    "statement, why, way_out",
    [
        ('w: Float[Tensor, "batch seq"]', "it has no value", 'annotate where the value is assigned: w: Float[Tensor, "batch seq"] = …'),
        ('w: Whole[Tensor, "n"]', "it has no value", 'annotate where the value is assigned: w: Whole[Tensor, "n"] = …'),
        ('w: jt.Bool[Tensor, "n"]', "it has no value", 'annotate where the value is assigned: w: jt.Bool[Tensor, "n"] = …'),
        ('w: Float[Tensor, "n"] | None', "it has no value", 'annotate where the value is assigned: w: Float[Tensor, "n"] = …'),
        ('q: Float[Tensor, "n"] | None = f()', "it allows for more than one type", 'leave the others out: q: Float[Tensor, "n"] = …'),
        ('q: Optional[Float[Tensor, "n"]] = f()', "it allows for more than one type", 'leave the others out: q: Float[Tensor, "n"] = …'),
        ('q: t.Union[int, jt.Int[Tensor, "n"]] = f()', "it allows for more than one type", 'leave the others out: q: jt.Int[Tensor, "n"] = …'),
        ('c.w: Float[Tensor, "n"] = f()', "c.w is no plain name", 'annotate a name, and assign that: value: Float[Tensor, "n"] = …'),
        ('c[0]: Float[Tensor, "n"] = f()', "c[0] is no plain name", 'annotate a name, and assign that: value: Float[Tensor, "n"] = …'),
        ('q: list[Float[Tensor, "n"]] = [f()]', "it stands inside another type", 'annotate each on a name of its own: value: Float[Tensor, "n"] = …'),
        ('q: dict[str, tuple[jt.Int[Tensor, "n"], ...]] = f()', "it stands inside another type", 'annotate each on a name of its own: value: jt.Int[Tensor, "n"] = …'),
        ('try: v: Float[Tensor, "n"] = f()\n    finally: pass', "it stands in a `try`", "annotate behind the `try`"),
    ],
)  # fmt: skip
def test_an_annotation_of_axes_that_checks_nothing_is_refused(statement, why, way_out):
    line = statement.splitlines()[0]
    column = 5 + len("try: ") * line.startswith("try")
    assert str(problem(f"{AXES}    {statement}")) == (
        f"lecture.py:6:{column}: this annotation checks nothing: {why}\n"
        f"    {line}\n    {' ' * (column - 5)}^\n    {way_out}"
    )
    assert (
        problems(f"{AXES.replace('sec', 'sec_', 1)}    {statement}\n") == []
    )  # a helper's checks nothing ever
    assert problems(f"{AXES}    {statement}".replace("jaxtyping", "othertyping")) == []


@pytest.mark.parametrize(
    "statement",
    [
        'x: Float[Tensor, "n"] = f()',
        'x: Float[Tensor, "n"] | None = None',
        'x: Optional[Float[Tensor, "n"]] = None',
        'x: list[Float[Tensor, "n"]] = []',
        'x: Literal["a", "b"]',
        "x: Float[Tensor]",
        'class A(NamedTuple):\n        x: Float[Tensor, "n"]\n        y: Float[Tensor, "n"] | None = f()',
        'def f(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:\n        y: Float[Tensor, "n"]',
        "f = lambda x: x",
    ],
)
def test_an_annotation_that_does_its_work_is_not(statement):
    assert problems(f"{AXES}    {statement}") == []
    assert problems(f'{AXES}    pass\nx: Float[Tensor, "n"]\nclass A:\n    x: Float[Tensor, "n"]') == []


# ------------------------------------------------------------------------------- compiled code


def untouched(text: str) -> set[str]:
    found = lecture(text)
    return {found.functions[found.function_of[n]].name for n in found.untouched if n in found.function_of}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("@torch.compile\ndef f(): g()\ndef g(): h()\ndef h(): pass\ndef k(): pass", {"f", "g", "h"}),
        ("@torch.compile(mode='x')\ndef f(): pass", {"f"}),
        ("@functools.partial(torch.compile, dynamic=True)\ndef f(): pass", {"f"}),
        ("@triton.autotune(x)\n@triton.jit\ndef f(): pass", {"f"}),
        ("from numba import njit\n@njit\ndef f(): pass", {"f"}),
        ("def f(x): g()\ndef g(): pass\nfast = torch.compile(f)", {"f", "g"}),
        ("def f(x): g()\ndef g(): pass\nfast = torch.compile(model=f)", {"f", "g"}),
        ("def f(x): pass\nclass A(nn.Module): pass\nfast = torch.compile(lambda x: f(x))", {"f", "A"}),
        ("class A:\n    def f(self): g()\ndef g(): pass\nm = torch.compile(A())", {"A", "g"}),
        ("class A(nn.Module): pass\ndef g(): pass\nm = torch.compile(m.forward)", {"A"}),
        ("class A:\n    @torch.compile\n    def f(self): self.g()\n    def g(self): pass\n    def h(self): pass", {"f", "g"}),
        ("def f(): g()  # @stepover\ndef g(): pass", set()),  # the statement, not the definition
        ("def f():  # @stepover\n    g()\ndef g(): pass", {"f", "g"}),
        ("def f():  # @stepover\n    g = 1\n    h(g)\ndef g(): pass\ndef h(): pass", {"f", "h"}),
        ("def f(g):  # @stepover\n    return g\ndef g(): pass", {"f"}),
        ("def f():  # @stepover\n    global g\n    g = g()\ndef g(): pass", {"f", "g"}),
        ("import torch\nclass A(torch.nn.Module): pass\ndef g(): pass\nmodel.compile()", {"A"}),
        ("import torch\nclass A(torch.nn.Module): pass\nclass B(A): pass\nmodel.compile(mode='x')", {"A", "B"}),
        ("class A(Unknown): pass\nclass B: pass\nclass C(ValueError): pass\nclass D(Generic[T]): pass\nm = torch.compile(m)", {"A"}),
        # A compiler is known by the library that it comes from, however it is called here.
        ("import torch as t\n@t.compile\ndef f(): pass", {"f"}),
        ("from torch import compile as fast\n@fast\ndef f(): pass", {"f"}),
        ("import torch\nfast = torch.compile\n@fast\ndef f(): pass", {"f"}),
        ("from numba import cuda\n@cuda.jit\ndef f(): pass", {"f"}),
        ("from numba import *\n@njit(cache=True)\ndef f(): pass", {"f"}),
        ("import torch\nclass DB:\n    def compile(self, f): pass\ndb = DB()\ndef f(): pass\ndb.compile(f)", set()),
        ("import torch\nclass A(torch.nn.Module): pass\ndef f(): pass\nengine.jit(f); engine.script(A); engine.compile(A())", set()),
        ("import re as regexp, torch\nclass A(torch.nn.Module): pass\nregexp.compile(A)", set()),
        ("import torch\nfrom mine import jit\n@jit\ndef f(): pass", set()),
        ("class torch:\n    def compile(f): return f\n@torch.compile\ndef f(): pass", set()),
        ("class A: pass\nregex.compile('x')\nother.compile('x')", set()),
        ("class A: pass\nasync def g(): pass\n@partial(other)\ndef f(): pass", set()),
        ("import re\ndef f(): pass\nre.compile('x')\ncompile('f', '', 'eval')", set()),
        ("def f(): pass", set()),
    ],
)  # fmt: skip
def test_what_a_compiler_reads_is_left_alone_with_all_that_it_calls(text, expected):
    assert untouched(text) == expected


# ------------------------------------------------------------------------------- any text at all


PIECES = [
    "#", " ", "\n", "    ", "@", "inspect", "hide", "x", "1", "(", ")", "[", "'", '"', "\\", ":", ",", "as", "B", "if",
    "else", "def main():", "class", "match x:", "case", "\t", "\r", "\x0c", "\0", "ä", "\ufeff", "assert", "=", "try:", "pass",
    "# @inspect ", "lambda", "await", "yield", "return", "x = 1  # @inspect ", "'''", 'f"', "{", "}", "\ud800", "\u2028",
]  # fmt: skip


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)), st.booleans())
@settings(max_examples=examples(100))
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_no_text_makes_parse_raise_anything_but_unusable_lecture(text, as_lecture):
    for found in problems(text, as_lecture):
        assert found.code != "test" and found.what in str(found)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
@settings(max_examples=examples(100))
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_no_comment_makes_parse_raise_anything_but_unusable_lecture(comment):
    comment = comment.replace("\n", " ").replace("\r", " ")
    text = f"x = 1  # @inspect {comment}\n" + MAIN
    found = problems(text)
    assert all(p.place is None or p.place.line == 1 for p in found)
    assert found or parse.parse(text).watches


@pytest.mark.parametrize(
    "text",
    [
        "x = " + " + ".join(["1"] * 900),
        "x = a" + ".b" * 900,
        "x = 1  # @inspect " + "+".join(["1"] * 900),
        "".join(" " * i + "if x:\n" for i in range(19)) + " " * 19 + "pass",
    ],
    ids=["terms", "attributes", "shown terms", "blocks"],
)
def test_deep_expressions_are_read(text):
    lecture(text)


@pytest.mark.parametrize(
    "text", ["x = " + "-" * 50_000 + "1", "x = 1\n" + "if x: pass\n" + "elif x: pass\n" * 5_000]
)
def test_what_nests_too_deep_is_refused(text):
    [found] = problems(text + "\n" + MAIN)
    assert "cannot be parsed" in found.what or "too deep" in found.what or "too many" in found.what


atoms = st.one_of(
    st.sampled_from(["a", "b.c", "名前", "None", "...", "[]", "{}", "()", "f()"]),
    st.integers(0, 10**20).map(str),
    st.floats(0, 1e300, allow_nan=False).map(repr),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(repr),
    st.binary(max_size=4).map(repr),
)


def _expressions(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(below, max_size=3)
    return st.one_of(
        st.tuples(below, st.sampled_from("+ - * @ // % ** << & | == < in is and or".split()), below).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(below, below, below).map("({0[0]} if {0[1]} else {0[2]})".format),
        several.map(lambda items: "[" + ", ".join(items) + "]"),
        several.map(lambda items: "(" + "".join(item + ", " for item in items) + ")"),
        several.map(lambda items: "f(" + ", ".join(items) + ")"),
        st.tuples(below, below).map("{{{0[0]}: {0[1]}}}".format),
        st.tuples(below, below).map("g(a)[{0[0]}:{0[1]}, None]".format),
        below.map("(lambda p, q=1, *r: {})".format),
        below.map("[i for i in {} if i]".format),
        below.map("(not {})".format),
    )  # fmt: skip


@given(st.lists(st.recursive(atoms, _expressions, max_leaves=8), min_size=1, max_size=3))
@settings(max_examples=examples(100))
def test_any_expression_survives_in_an_inspect(expressions):
    found = lecture("x = 1  # @inspect " + ", ".join(expressions))
    assert [ast.dump(w.node) for w in found.watches] == [
        ast.dump(ast.parse(expression, mode="eval").body) for expression in expressions
    ]


# ------------------------------------------------------------------------------- only what matters is tokenized


COMMENTS = st.sampled_from(
    ["", "", "  # why", "  # @inspect x", "# @hide", " # why # @measure x as s # @clear y"]
)

# Statements with places for comments: in brackets, between strings, behind `;`, before and after a backslash.
SIMPLE = [
    "x = 1{}", "x = (1,{}\n  {}\n  2){}", "x = 1; y = 2{}", "x = (1,{}\n2); y = 3{}", "x = 1 + \\\n  2{}", "pass;{}",
    "x = '''\n# @inspect a\n'''{}", "x = ('# @hide'{}\n  'b'{}\n  \"it's # @hide\"){}", "x = 1; \\\n  y = 2{}", "x = '#'{}",
    "x = f'{{x}}#'{}", '"""\n    """; x = 1{}', "x = 'a\\\n  # @inspect b'{}", "# @inspect homeless", "", "\x0c", "    {}", "x = '名'{}",
]  # fmt: skip
COMPOUND = [
    "if x:{}\nB\nelse:{}\nB", "if x: y = 1{}\nelse: y = 2{}", "if x:{}\nB\n{}\nelif (y{}\n  ):{}\nB", "for x in y: pass{}",
    "try:{}\nB\nexcept E:{}\nB\nfinally:{}\nB", "@f{}\n@(\n  g{}\n){}\ndef h(a,{}\n  b):{}\nB", "class A: pass{}",
    "match x:{}\n    case (\n  1 | 2{}\n    ):{}\n        pass{}\n    case _: pass{}", "with a as b, \\\n  c as d:{}\nB",
]  # fmt: skip


@st.composite
def programs(draw: st.DrawFn, depth: int = 3) -> str:
    """Statements of all kinds, with comments wherever one may stand."""
    statements = []
    for template in draw(st.lists(st.sampled_from(SIMPLE + COMPOUND * bool(depth)), min_size=1, max_size=4)):
        text = template.format(*(draw(COMMENTS) for _ in range(template.count("{}"))))
        while "\nB" in text:
            block = draw(programs(depth - 1)) + "\npass"
            inner = "".join(f"\n    {line}" for line in block.split("\n"))
            text = text.replace("\nB", inner, 1)
        statements.append(text)
    return "\n".join(statements)


def directives(text: str, *, whole: bool) -> list[Directive]:
    """The directives of a text; with `whole`, all of it goes through `tokenize`, as for a text without a tree."""
    tree = ast.parse(text)
    found = File("lecture.py", text, tree)
    return directives_in(found, None if whole else anchors_in(tree), [])


@given(programs())
@settings(max_examples=examples(100))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_a_part_of_the_text_holds_all_its_directives(text):
    assume(parses(text))
    assert directives(text, whole=False) == directives(text, whole=True)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:  # a backslash or a form feed before an indent
        return False
    return True


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_a_part_of_every_sample_holds_all_its_directives(path):
    text = path.read_text("utf-8")
    assert directives(text, whole=False) == directives(text, whole=True)


def test_a_section_that_is_called_on_a_hidden_line_is_one_as_any_other():
    found = lecture("def main():\n    a()  # @hide\n    b()\ndef a(): pass\ndef b(): pass")
    assert found.section_names() == ["a", "b"]


def test_garbage_is_collected_again_whatever_happens_meanwhile():
    assert gc.isenabled()
    with pytest.raises(UnusableLecture), pause_collection():
        parse.parse("def main(:\n")
    assert gc.isenabled() and gc.get_freeze_count() <= BORN_FROZEN
    gc.disable()
    try:
        lecture("x = 1")
        assert not gc.isenabled()  # as it was
    finally:
        gc.enable()
    with pause_collection():
        lecture("x = 2")
        assert not gc.isenabled()  # until the outermost ends


def test_what_others_froze_and_released_is_not_frozen_again():
    gc.freeze()
    with freeze_garbage():
        lecture("x = 3")
    gc.unfreeze()
    lecture("x = 4")
    assert gc.get_freeze_count() <= BORN_FROZEN


def test_who_enters_first_may_leave_first():
    first, second = freeze_garbage(), freeze_garbage()  # as two threads do
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    lecture("x = 5")
    assert gc.get_freeze_count() <= BORN_FROZEN


def test_what_was_frozen_stays_frozen():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        lecture("x = 3")
        assert gc.get_freeze_count() > count / 2 > 0  # some of what was frozen is released by its owners
    finally:
        gc.unfreeze()


def test_what_a_file_does_as_a_program_says_nothing_to_a_reader():
    found = lecture(f'{MAIN}if __name__ == "__main__":\n    main()\nif True:\n    y = 1\n')
    kinds = [(it.first, it.kind) for it in found.statements]
    assert kinds == [(1, "def"), (2, "code"), (3, "hidden"), (4, "hidden"), (5, "code"), (6, "code")]


@pytest.mark.parametrize(
    "name", ['lecture_"onclick=boom()', "lecture_<b>", "lecture 02", "lecture-02", "lecture_02.x"]
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lecture_without_a_plain_name_is_refused_with_the_way_out(
    tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / (f"{name}.py" if kind == "file" else name)
    if kind == "folder":
        path.mkdir()
    (path if kind == "file" else path / "__init__.py").write_text(section("x = 1"))
    for reader in (parse.read, parse.outline):
        with pytest.raises(UnusableLecture) as caught:
            reader(path)
        assert str(caught.value) == (
            f"{path.name} has no plain name\n    call the {kind} by letters, digits and _ alone"
        )
