"""Which text of a lecture goes into which cell of a notebook, and which sections cannot lie open."""

from __future__ import annotations

from textwrap import dedent

import pytest

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.notebook import cells, lines

HEAD = '"""A lecture."""\nimport math\nfrom statistics import mean\nfrom litbook import link, note, question, requires\n'


def laid_out(text: str, root: str = "main", **options) -> cells.Layout:
    text = HEAD + dedent(text)
    lecture = parse.parse(text, "lecture_sample.py")
    index = next(i for i, f in enumerate(lecture.functions) if f.name == root)
    return cells.layouts(lecture, [index], **options)[0]


def code(found: cells.Layout) -> list[str]:
    """The text of every piece of code, with `SHOW text` for what is shown."""
    return [
        *found.imports,
        *(
            "\n".join(f"{row.text}SHOW {row.watch.text}" if row.watch else row.text for row in it.rows)
            for it in (*found.setting, *found.items)
            if isinstance(it, lines.CellCode)
        ),
    ]


def reasons(found: cells.Layout) -> list[str]:
    return [it.why for it in found.items if isinstance(it, cells.SectionStart) and it.level > 1]


def section(body: str, before: str = "") -> str:
    indented = dedent(body).strip("\n").replace("\n", "\n    ")
    return f"{dedent(before)}\ndef main():\n    one()\n\ndef one():\n    {indented}\n"


def test_a_section_lies_open_and_shows_follow_their_statements():
    found = laid_out(section("x = 1  # @inspect x, x + 1 as B\nif x:\n    y = 2  # @inspect y\nz = 3"))
    assert reasons(found) == [""]
    assert code(found) == ["x = 1\nSHOW x\nSHOW x + 1", "if x:\n    y = 2\n    SHOW y", "z = 3"]


def test_what_a_block_shows_stands_at_its_start_and_what_leaves_it_comes_last():
    found = laid_out(
        section("for i in range(3):  # @inspect i\n    if i:\n        continue  # @inspect -i\n    i")
    )
    assert code(found) == [
        "for i in range(3):\n    SHOW i\n    if i:\n        SHOW -i\n        continue\n    i"
    ]


def test_one_line_blocks_keep_their_line():
    found = laid_out(section("x = 1\nif x: y = 2  # @inspect y"))
    item = [it for it in found.items if isinstance(it, lines.CellCode)][1]
    assert [(row.text, row.inline) for row in item.rows] == [("if x: y = 2", False), ("", True)]


def test_lines_inside_strings_keep_their_spaces():
    found = laid_out(section('text = """a\n      b\n    c"""\nx = (1 +\n     2)'))
    assert code(found) == ['text = """a\n          b\n        c"""', "x = (1 +\n     2)"]


@pytest.mark.parametrize(
    ("body", "before", "why"),
    [
        ("if math.pi > 3:\n    return\nx = 1", "", "it returns early"),
        ("x = 1\ndef f():\n    nonlocal x\n    x = 2\nf()", "", "a function in it assigns its names (nonlocal)"),
        ("x = 1\nprint(locals())", "", "it asks for its own scope (locals)"),
        ("x: Unknown = 1", "", "it annotates with a name that nothing defines"),
        ("mean = 2\nx = helper(mean)", "def helper(x):\n    return mean([x])", "its name is also one of other code here: mean"),
        ("len = 2\nx = helper([])", "def helper(x):\n    return len(x)", "its name is also one of other code here: len"),
    ],
)  # fmt: skip
def test_a_section_that_would_not_be_the_same_program_stays_a_function(body, before, why):
    assert reasons(laid_out(section(body, before)))[0].startswith(why)


def test_a_section_with_a_decorator_or_an_exception_stays_a_function():
    text = "def deco(f):\n    return f\n\ndef main():\n    one()\n    two()\n\n@deco\ndef one():\n    x = 1\n\ndef two():\n    1 / 0\n"
    assert reasons(laid_out(text, raised={"two"})) == [
        "it has a decorator: @deco",
        "it raised when it was recorded",
    ]


def test_a_name_that_nobody_else_reads_may_be_taken_and_names_may_be_used_again_by_sections():
    text = "def main():\n    one()\n    two()\n\ndef one():\n    mean = 2\n    x = mean\n\ndef two():\n    x = 3\n    len = x\n"
    assert reasons(laid_out(text)) == ["", ""]


def test_a_section_called_twice_or_in_a_loop_or_used_as_a_value_stays_a_function():
    text = """
        def main():
            one()
            one()
            for _ in range(2):
                two()
            three()
            f = three

        def one():
            a = 1

        def two():
            b = 1

        def three():
            c = 1
    """
    assert (
        reasons(laid_out(text))
        == [
            "it is called from more than one place, or used as a value",
        ]
        * 3
    )


def test_a_link_to_a_section_is_no_use_of_it():
    text = "def main():\n    one()\n    two()\n\ndef one():\n    a = 1\n\ndef two():\n    link(one)\n"
    assert reasons(laid_out(text)) == ["", ""]


def test_a_child_stays_a_function_if_its_parent_goes_on():
    text = "def main():\n    x = 1\n    one()\n    {}\n\ndef one():\n    x = 2\n"
    assert reasons(laid_out(text.format("print(x)"))) == ["the section around it goes on after it"]
    assert reasons(laid_out(text.format("note('the end')"))) == [""]


def test_only_needed_imports_constants_and_helpers_come_and_helpers_stand_before_their_first_use():
    text = """
        import json, math as m
        from collections import Counter, OrderedDict
        A, B = 1, 2
        C = 3
        TABLE = {}
        TABLE["h"] = lambda: h()

        def f():
            return g() + A

        def g():
            return m.pi

        def h():
            return OrderedDict

        def unused():
            return json

        def main():
            one()
            two()

        def one():
            x = 1

        def two():
            y = f()
            z = TABLE
    """
    assert code(laid_out(text)) == [
        "import math as m",
        "from collections import OrderedDict",
        "A, B = 1, 2",
        "TABLE = {}",
        'TABLE["h"] = lambda: h()',
        "def h():\n    return OrderedDict",
        "x = 1",
        "def f():\n    return g() + A",
        "def g():\n    return m.pi",
        "y = f()",
        "z = TABLE",
    ]


def test_a_table_filled_with_functions_brings_them():
    text = (
        "T = {}\ndef h():\n    return 1\nT['h'] = h\ndef main():\n    one()\ndef one():\n    x = T['h']()\n"
    )
    assert code(laid_out(text)) == ["T = {}", "def h():\n    return 1", "T['h'] = h", "x = T['h']()"]


def test_module_statements_with_an_effect_always_come():
    text = "import os\nos.environ['A'] = '1'\nprint('hello')\nX = math.sqrt(2)\nY = 3\ndef main():\n    one()\ndef one():\n    x = 1\n"
    assert code(laid_out(text)) == [
        "import math",
        "import os",
        "os.environ['A'] = '1'",
        "print('hello')",
        "X = math.sqrt(2)",
        "x = 1",
    ]


def test_a_gpu_section_keeps_its_indentation_for_the_guard_above_it():
    text = "def main():\n    one()\n\n@requires('cuda')\ndef one():\n    x = 1\n"
    item = next(it for it in laid_out(text).items if isinstance(it, lines.CellCode))
    assert item.device == "cuda" and item.rows[0].text == "    x = 1"


def test_an_aside_lies_open_like_any_section_and_as_a_function_it_keeps_its_mark():
    text = "from litbook import aside\ndef main():\n    one()\n    two()\n@aside\ndef one():\n    x = 1\n@aside\ndef two():\n    return\n"
    two = "@section\n@aside\ndef two():\n    return"
    assert code(laid_out(text)) == ["from litbook import aside", "x = 1", two, "two()"]


def test_the_value_of_a_last_expression_can_be_kept_from_being_shown():
    item = next(
        it for it in laid_out(section("x.add_(1)  # in place")).items if isinstance(it, lines.CellCode)
    )
    assert item.quiet == "x.add_(1);  # in place"


def test_a_question_brings_the_text_that_computes_its_answer():
    found = laid_out(section("question('How many?', answer=math.comb(4,\n  2), unit='B')"))
    told = next(it for it in found.items if isinstance(it, cells.PieceStatement))
    assert told.answer is not None
    watch = told.answer.rows[0].watch
    assert watch is not None
    assert (watch.kind, watch.text, watch.unit, watch.line) == ("answer", "math.comb(4, 2)", "B", 10)
    assert code(found) == ["import math"]


def test_a_section_that_stays_a_function_keeps_its_random_numbers_to_itself():
    text = "import random\ndef main():\n    one()\n    x = random.random()\n\ndef one():\n    y = 1\n"
    assert code(laid_out(text)) == [
        "import random", "@section\ndef one():\n    y = 1", "one()", "x = random.random()",
    ]  # fmt: skip


def test_a_layout_names_the_modules_that_its_code_imports():
    text = """
        import json, numpy as np, unused
        from hardware import peak

        def main():
            one()

        def one():
            import torch
            x = peak, np, json
    """
    assert laid_out(text).modules == ("json", "numpy", "hardware", "torch")


def test_what_main_does_before_a_part_comes_first():
    text = """
        STATE = {}

        def main():
            note("all")
            STATE["x"] = 1
            one()
            STATE["x"] = 2
            two()

        def one():
            inner()

        def inner():
            a = STATE

        def two():
            deep()

        def deep():
            b = STATE
    """
    assert code(laid_out(text, "two")) == ["STATE = {}", 'STATE["x"] = 1', 'STATE["x"] = 2', "b = STATE"]


# ---------------------------------------------------------------------------- a lecture in a folder


def of_folder(root: str = "main", **files: str) -> cells.Layout:
    """The layout of a lecture in the folder `book`; `init` is its `__init__.py`."""
    names = {name: "__init__" if name == "init" else name for name in files}
    texts = [(f"book/{it}.py", dedent(files[name])) for name, it in names.items()]
    lecture = parse.parse_files(tuple(texts))
    return cells.layouts(lecture, [next(i for i, f in enumerate(lecture.functions) if f.name == root)])[0]


MODELS = """
    import math as m
    from collections import OrderedDict
    from statistics import mean
    from .units import WIDE

    TABLE = OrderedDict(wide=WIDE)

    class Base:
        size = WIDE

    class Model(Base):
        def area(self):
            return m.floor(self.size * self.size) + helper()

    def helper():
        return len(TABLE)
"""
MAIN = "from .part import part\n\ndef main():\n    part()\n"
PART = """
    from collections import Counter, OrderedDict

    from .models import Model, TABLE as table

    def part():
        one()

    def one():
        '''One.'''
        area = Model().area()
        found = Counter(table), OrderedDict
"""


def test_a_notebook_of_a_folder_holds_what_it_needs_of_every_file_in_an_order_that_runs():
    found = of_folder(init=MAIN, part=PART, models=MODELS, units="WIDE = 4\nUNUSED = 5\n")
    assert code(found) == [
        "import math as m",
        "from collections import Counter",
        "from collections import OrderedDict",
        "WIDE = 4",
        "TABLE = OrderedDict(wide=WIDE)",
        "table = TABLE",
        "class Base:\n    size = WIDE",
        "class Model(Base):\n    def area(self):\n        return m.floor(self.size * self.size) + helper()",
        "def helper():\n    return len(TABLE)",
        "area = Model().area()",
        "found = Counter(table), OrderedDict",
    ]
    names: dict[str, object] = {}
    exec("\n".join(code(found)), names)
    assert names["area"] == 17


def test_a_notebook_holds_a_value_that_a_star_brings_as_one_that_is_imported_by_name():
    files = {"init": MAIN, "models": MODELS, "units": "WIDE = 4\nUNUSED = 5\n"}
    by_name = of_folder(**files, part=PART)
    files["models"] = MODELS.replace("import WIDE", "import *")
    assert code(of_folder(**files, part=PART)) == code(by_name)


def test_a_name_of_a_section_that_a_helper_in_another_file_reads_keeps_the_section_a_function():
    text = "from .models import helper\n\ndef main():\n    one()\n\ndef one():\n    TABLE = helper()\n"
    assert reasons(of_folder(init=text, models=MODELS, units="WIDE = 4\n")) == [
        "its name is also one of other code here: TABLE"
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a": "X = 1\ndef f(): return X\n", "b": "\nX = 2\ndef g(): return X\n"},
            ("the notebook of main() needs two things that are called 'X': that of book/a.py:1 and "
            "that of book/b.py:2\n    give one of them another name"),
        ),
        (
            {"a": "def f(): return sum([1])\n", "b": "def sum(x): return x\ndef g(): return sum(1)\n"},
            ("the notebook of main() needs two things that are called 'sum': Python's own, in book/a.py and "
            "that of book/b.py:1\n    give one of them another name"),
        ),
        (
            {"a": "from math import log as l\ndef f(): return l\n", "b": "from cmath import log as l\ndef g(): return l\n"},
            "the notebook of main() needs two things that are called 'l': that of book/a.py:1 and that of book/b.py:1",
        ),
        (
            {"a": "from . import b\ndef f(): return b.g()\n", "b": "def g(): return 1\n"},
            ("book/a.py:1:1: the notebook of main() has no module b: its files become one\n    from . import b\n    ^\n"
            "    import what you need: from .b import …"),
        ),
        (
            {"a": "def f():\n    from .b import g\n    return g\n", "b": "def g(): return 1\n"},
            ("book/a.py:2:5: the notebook of main() has no module b: its files become one\n    from .b import g\n    ^\n"
            "    import it at the top of the file"),
        ),
    ],
)  # fmt: skip
def test_what_one_namespace_cannot_hold_is_refused_with_both_places(files, message):
    main = "from .a import f\nfrom .b import g\n\ndef main():\n    one()\n\ndef one():\n    x = f(), g()\n"
    with pytest.raises(UnusableLecture) as caught:
        of_folder(init=main, **files)
    assert message in str(caught.value)


def test_names_that_only_differ_in_their_file_do_not_clash_where_no_notebook_needs_both():
    main = "from .a import a\nfrom .b import b\n\ndef main():\n    a()\n    b()\n"
    part = "X = {0}\ndef {1}():\n    first()\n\ndef first():\n    y{0} = X\n"
    files = {"init": main, "a": part.format(1, "a"), "b": part.format(2, "b")}
    assert code(of_folder("a", **files)) == ["X = 1", "y1 = X"]
    assert code(of_folder("b", **files)) == ["X = 2", "y2 = X"]


def test_a_section_of_another_file_may_be_called_by_its_file_and_is_no_use_of_that():
    main = (
        "from . import a as work\nfrom litbook import link\n\ndef main():\n    work.a()\n    link(work.a)\n"
    )
    assert code(of_folder(init=main, a="def a():\n    x = 1\n")) == ["x = 1"]
