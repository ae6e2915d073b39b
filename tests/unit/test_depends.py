"""What a section's claims depend on: its digest changes with all of that, and with nothing that is prose."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import HEAD, write

from litbook.lecture import dependencies, parse

LECTURE = f"""{HEAD}
import math
from helpers import tripled

import tools

RATE = 3
TABLE = {{"a": 1}}
SHARED = []


class Card:
    bytes = 80

    def twice(self):
        return self.bytes * 2


def square(x):
    return x * x


def area(x):
    return square(x) + math.pi


def setting(n):
    return n


def fill():
    \"\"\"Fill.\"\"\"
    SHARED.append(5)


def main():
    \"\"\"Contents.\"\"\"
    note("Prose of main.")
    setting(4)
    part()


def part():
    \"\"\"A part.\"\"\"
    one()
    two()


def one():
    \"\"\"One, and its thesis.\"\"\"
    # a comment
    x = area(3)  # @inspect x as B
    note("A note of one.")
    note(f"It is {{x:.2f}} in all.")
    question("How much?", answer=x, why="Because.")
    assert x > RATE, "a caption"
    rows = open("rows.csv").read()
    assert rows


def two():
    \"\"\"Two.\"\"\"
    fill()
    assert Card().twice() == 160
    assert tripled(3) == 9
    assert tools.halved(4) == 2
    assert SHARED
"""
HELPERS = "FACTOR = 3\n\ndef tripled(x):\n    return x * FACTOR\n\ndef unused():\n    return 1\n"
TOOLS = "def halved(x):\n    return x / 2\n\ndef other():\n    return 2\n"


def digests(folder: Path, text: str = LECTURE, **files: str) -> dict[str, dependencies.Digests]:
    """The digests of a lecture, with modules and data beside it."""
    for name, content in {"helpers": HELPERS, "tools": TOOLS, **files}.items():
        (folder / (name if "." in name else f"{name}.py")).write_text(content)
    return dependencies.digests(parse.read(write(folder, text)), folder)


def older(folder: Path, was: str = "", now: str = "", **files: str) -> set[str]:
    """The sections whose recordings are older once `was` in the lecture is `now`, and files are others."""
    (folder / "rows.csv").write_text("1,2\n")
    before = digests(folder)
    assert was in LECTURE
    after = digests(folder, LECTURE.replace(was, now) if was else LECTURE, **files)
    return {key for key in ("main", "part", "one", "two") if before[key] != after.get(key)}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ("return x * x", "return x + x", {"one"}),
        ("square(x) + math.pi", "square(x) + math.e", {"one"}),
        ("RATE = 3", "RATE = 4", {"one"}),
        ("import math", "import cmath as math", {"one"}),
        ("bytes = 80", "bytes = 81", {"two"}),
        ("return self.bytes * 2", "return self.bytes * 3", {"two"}),
        ("SHARED.append(5)", "SHARED.append(6)", {"two"}),
        ("SHARED = []", "SHARED = [1]", {"two"}),
        ("    setting(4)", "    setting(5)", {"main", "part", "one", "two"}),
        ("return n", "return -n", {"main", "part", "one", "two"}),
        ("x = area(3)", "x = area(4)", {"one"}),
        ("assert x > RATE", "assert x >= RATE", {"one"}),
        ("{x:.2f}", "{x:.3f}", {"one"}),
        ('    note("A note of one.")\n', "", {"one"}),  # recorded values stand at statements
        ("It is {x:.2f}", "In all it is {x:.2f}", {"one"}),  # a text that is computed is code
        ("{x:.2f}", "{x + 1:.2f}", {"one"}),
        ("answer=x", "answer=-x", {"one"}),
        ("# @inspect x as B", "# @inspect x + 1 as B", {"one"}),
        ("# @inspect x as B", "# @stepover", {"one"}),
        ("SHARED = []", "SHARED = []\nmath.tau = 6", {"main", "part", "one", "two"}),
        ("SHARED = []", "SHARED = []\nprint(TABLE)", {"main", "part", "one", "two"}),
    ],
)
def test_a_digest_changes_with_what_a_section_depends_on(
    tmp_path: Path, was: str, now: str, expected: set[str]
) -> None:
    assert older(tmp_path, was, now) == expected


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("# a comment", "# another\n    # and one more\n"),
        ("One, and its thesis.", "Another thesis.\n\n    And a remark."),
        ("A note of one.", "Another note, [@key], of 5 words."),
        ("How much?", "How much is that?"),
        ("Because.", "Since that is so."),
        ("a caption", "another caption"),
        ("Prose of main.", "Of main other prose."),
        ("def one():", '@requires("slow")\ndef one():'),
        ("x = area(3)", "x = area(\n        3\n    )"),
        ('TABLE = {"a": 1}', 'TABLE = {"b": 2}'),
        ("from litbook import ", "from litbook import aside, "),
        ("def fill():", "def nobody():\n    return RATE\n\n\ndef fill():"),
    ],
)
def test_prose_and_what_a_section_does_not_use_leave_its_digest_alone(
    tmp_path: Path, was: str, now: str
) -> None:
    assert older(tmp_path, was, now) == set()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"helpers": HELPERS.replace("FACTOR = 3", "FACTOR = 4")}, {"two"}),
        ({"helpers": HELPERS.replace("x * FACTOR", "x + FACTOR")}, {"two"}),
        ({"helpers": HELPERS.replace("return 1", "return 2")}, set()),
        ({"helpers": f"# A remark.\n{HELPERS}"}, set()),
        ({"helpers": f"print(1)\n{HELPERS}"}, {"main", "part", "one", "two"}),
        ({"tools": TOOLS.replace("x / 2", "x // 2")}, {"two"}),
        ({"tools": TOOLS.replace("return 2", "return 3")}, set()),
        ({"rows.csv": "1,3\n"}, {"one"}),
        ({"other.txt": "nobody reads it"}, set()),
    ],
)
def test_modules_and_files_beside_a_lecture_count_as_far_as_they_are_used(
    tmp_path: Path, files: dict[str, str], expected: set[str]
) -> None:
    assert older(tmp_path, **files) == expected


@pytest.mark.parametrize(
    "reads",
    [
        "exec(open(name()).read())",
        "from pathlib import Path\n    Path(__file__).parent",
        "globals()[name()]",
        "__import__(name())",
        "import os\n    os.listdir('.')",
        "import inspect\n    inspect.getsource(name)",
    ],
)
def test_where_nothing_tells_what_is_read_every_file_counts(tmp_path: Path, reads: str) -> None:
    text = f"{HEAD}\ndef name():\n    return 'x'\n\ndef main():\n    one()\n    two()\n\ndef one():\n    {reads}\n\ndef two():\n    pass\n"
    (tmp_path / "any.bin").write_bytes(b"1")
    before = digests(tmp_path, text)
    (tmp_path / "any.bin").write_bytes(b"2")
    after = digests(tmp_path, text)
    assert {key for key in before if before[key] != after[key]} == {"one"}
    after = digests(tmp_path, f"{text}\n# a comment\n")
    assert {key for key in before if before[key] != after[key]} == {"one"}


@pytest.mark.parametrize(
    "reads",
    [
        "from pathlib import Path\n    (Path(__file__).parent.parent / 'data' / 'far.csv').read_text()",
        "open('../data/far.csv').read()",
        "import subprocess\n    subprocess.run(['sh', '-c', 'cat ../data/far.csv'])",
    ],
)
def test_a_file_of_the_repository_outside_the_folder_counts_where_a_text_names_it(
    tmp_path: Path, reads: str
) -> None:
    folder, data = tmp_path / "lectures", tmp_path / "data"
    folder.mkdir()
    data.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (data / "near.csv").write_text("1")
    text = f"{HEAD}\ndef main():\n    one()\n    two()\n\ndef one():\n    {reads}\n\ndef two():\n    pass\n"
    (data / "far.csv").write_text("1")
    before = digests(folder, text)
    (data / "near.csv").write_text("2")
    assert digests(folder, text) == before
    (data / "far.csv").write_text("2")
    after = digests(folder, text)
    assert {key for key in before if before[key] != after[key]} == {"one"}


def test_two_functions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "lecture_x"
    folder.mkdir()
    for name, value in {"a": 1, "b": 2}.items():
        (folder / f"{name}.py").write_text(
            f"def size():\n    return {value}\n\ndef in_{name}():\n    assert size() == {value}\n"
        )
    main = '"""X."""\nfrom .a import in_a\nfrom .b import in_b\n\ndef main():\n    in_a()\n    in_b()\n'
    (folder / "__init__.py").write_text(main)
    before = dependencies.digests(parse.read(folder), tmp_path)
    (folder / "b.py").write_text((folder / "b.py").read_text().replace("return 2", "return 3"))
    after = dependencies.digests(parse.read(folder), tmp_path)
    assert {key for key in before if before[key].all != after[key].all} == {"in_b"}


def test_the_digest_of_a_text_is_of_that_alone(tmp_path: Path) -> None:
    before = digests(tmp_path)
    after = digests(tmp_path, LECTURE.replace("return x * x", 'return x + x  # "A remark."'))
    assert {key for key in before if before[key].text != after[key].text} == {"square"}


def test_what_is_kept_of_an_unchanged_file_knows_what_its_calls_have_become(tmp_path: Path) -> None:
    """`step()` is a section's call or a helper's, as the other file has it."""
    section, helper = "def step():\n    assert 1 < 2\n", "def step(size=1):\n    assert size < 2\n"

    def written(name: str, other: str) -> dict[str, dependencies.Digests]:
        texts = {
            "__init__": '"""X."""\nfrom .a import first\n\ndef main():\n    first()\n',
            "a": "from .b import step\n\ndef first():\n    step()\n    assert len(__name__) > 2\n",
            "b": other,
        }
        (tmp_path / name).mkdir(exist_ok=True)
        for file, text in texts.items():
            (tmp_path / name / f"{file}.py").write_text(text)
        return dependencies.digests(parse.read(tmp_path / name), tmp_path)

    before, after = written("lecture_x", section), written("lecture_x", helper)
    assert before["first"].all != after["first"].all
    assert after == written("lecture_y", helper)  # read for the first time
    assert before == written("lecture_x", section)


def is_older(folder: Path, was: str, now: str, top: str, value: str, **modules: str) -> bool:
    """Whether a section `n = value`, below `top` at the left margin, is older once `was` is `now`."""
    lecture = f"{HEAD}\n{top}\n\ndef main():\n    one()\n\ndef one():\n    n = {value}\n    assert n == 3\n"
    texts = {"lecture_x": lecture, **modules}
    assert any(was in text for text in texts.values())
    found = list[str]()
    for old, new in ((was, was), (was, now)):
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text.replace(old, new))
        found.append(dependencies.digests(parse.read(folder / "lecture_x.py"), folder)["one"].all)
    return found[0] != found[1]


@pytest.mark.parametrize(
    ("units", "value"),
    [
        ("WIDTH = 2\n", "WIDTH"),
        ("from deep import *\n", "DEEP"),
        ("if True:\n    A, WIDTH = 1, 2\n", "WIDTH"),
        ("def setup():\n    global WIDTH\n    WIDTH = 2\n\nsetup()\n", "WIDTH"),
        ("__all__ = ['_width']\n_width = 2\n", "_width"),
        ("BASE = 2\nWIDTH = BASE + 1\n", "WIDTH"),
    ],
)
def test_a_value_counts_that_a_star_brings(tmp_path: Path, units: str, value: str) -> None:
    top = "from early import *\nfrom units import *"
    beside = {"units": units, "deep": "DEEP = 2\n", "early": "WIDTH = 1\n"}
    assert is_older(tmp_path, "2", "5", top, value, **beside)
    beside["units"] += "UNREAD = 7\n"
    assert not is_older(tmp_path, "UNREAD = 7", "UNREAD = 8", top, value, **beside)


REGISTER = "TABLE = {}\ndef register(f):\n    TABLE[f.__name__] = f\n    return f\n"
DISPATCH = "import functools\n@functools.singledispatch\ndef value(x):\n    return 0\n"
PUT = "TABLE = {}\ndef put(table, name):\n    def keep(f):\n        table[name] = f\n        return f\n    return keep\n"
HOOK = "TABLE = []\nclass Base:\n    def __init_subclass__(cls):\n        TABLE.append(cls)\n"
META = "class Meta(type):\n    made = []\n    def __init__(cls, *rest):\n        Meta.made.append(cls)\n"
OBJECT = "class Table:\n    def __init__(self):\n        self.of = {}\n    def add(self, f):\n        self.of[f.__name__] = f\n        return f\n"
FIRST = "def first():\n    return 2\n"


@pytest.mark.parametrize(
    ("top", "value"),
    [
        (f"{DISPATCH}@value.register(int)\ndef of_int(x):\n    return x + 2", "value(1)"),
        (f"{DISPATCH}@value.register\ndef _(x: int):\n    return x + 2", "value(1)"),
        (f"{REGISTER}@register\n{FIRST}", "TABLE['first']()"),
        (f"{REGISTER}class A:\n    @register\n    def first(self):\n        return 2", "TABLE['first'](0)"),
        (f"{REGISTER}FIRST = register(lambda: 2)", "TABLE['<lambda>']()"),
        (f"{REGISTER}import functools\nlater = functools.partial(register)\n@later\n{FIRST}", "TABLE['first']()"),
        (f"{REGISTER}def twice(f):\n    return register(f)\n@twice\n{FIRST}", "TABLE['first']()"),
        (f"{PUT}@put(TABLE, 'a')\n{FIRST}", "TABLE['a']()"),
        (f"{PUT}{FIRST}FIRST = put(TABLE, 'a')(first)", "TABLE['a']()"),
        (f"TABLE = []\n@TABLE.append\n{FIRST}", "TABLE[0]()"),
        ("TABLE = {}\nFIRST = TABLE.setdefault('a', 2)", "TABLE['a']"),
        (f"{OBJECT}TABLE = Table()\n@TABLE.add\n{FIRST}", "TABLE.of['first']()"),
        (f"{HOOK}class Two(Base):\n    of = 2", "TABLE[0].of"),
        (f"{HOOK}class One(Base):\n    of = 1\nclass Two(One):\n    of = 2", "Base and TABLE[1].of"),
        (f"{META}class Two(metaclass=Meta):\n    of = 2", "Meta.made[0].of"),
        ("class Base:\n    pass\nclass Two(Base):\n    of = 2", "Base.__subclasses__()[0].of"),
        ("ALL = []\nclass Row:\n    def __init__(self, x):\n        ALL.append(x)\nROW = Row(2)", "ALL[0]"),
        ("import units\nunits.WIDTH = 2", "units.WIDTH"),
        ("import units\ndef setup():\n    units.WIDTH = 2\nFIRST = setup()", "units.WIDTH"),
        ("globals()['WIDTH'] = 2", "WIDTH"),
    ],
)  # fmt: skip
def test_what_changes_an_object_when_a_file_is_imported_belongs_to_it(
    tmp_path: Path, top: str, value: str
) -> None:
    assert is_older(tmp_path, " 2", " 5", top.replace("(2", "( 2"), value, units="WIDTH = 1\n")


def test_what_another_file_registers_belongs_to_the_object(tmp_path: Path) -> None:
    modules = {"units": REGISTER, "extra": f"import units as u\n@u.register\n{FIRST}"}
    assert is_older(
        tmp_path, "return 2", "return 5", "import extra\nimport units", "units.TABLE['first']()", **modules
    )


TIMED = "def timed(f):\n    def inner():\n        return f()\n    return inner\n"
THREAD = "from contextlib import contextmanager\n@contextmanager\ndef thread(n=1):\n    yield\n"


@pytest.mark.parametrize(
    ("top", "value"),
    [
        (f"{TIMED}@timed\ndef three():\n    return 3\n@timed\n{FIRST}", "three()"),
        (f"{THREAD}@thread()\ndef three():\n    return 3\n@thread(1)\n{FIRST}", "three()"),
        (f"FACTOR = 3\n{THREAD}@thread(FACTOR)\n{FIRST}", "FACTOR"),
        (f"import functools\n@functools.cache\ndef three():\n    return 3\n@functools.cache\n{FIRST}", "three()"),
        (f"{REGISTER}def three():\n    return 3\n@register\n{FIRST}", "three()"),
        ("class Base:\n    of = 3\nclass Two(Base):\n    of = 2\nclass Three(Base):\n    pass", "Three.of"),
        ("TABLE = {}\nSIZE = len(TABLE) + 2", "TABLE.get('a', 3)"),
        ("import units\nunits.WIDTH = 2", "units.HEIGHT"),
    ],
)  # fmt: skip
def test_what_shares_a_decorator_or_a_base_and_changes_nothing_does_not_count(
    tmp_path: Path, top: str, value: str
) -> None:
    assert not is_older(tmp_path, " 2", " 5", top, value, units="WIDTH = 1\nHEIGHT = 3\n")


@pytest.mark.parametrize(
    ("top", "value"),
    [
        ("import units", "units.width"),
        ("from units import width", "width"),
        ("from units import width as w", "w"),
        ("from units import *", "width"),
    ],
)
@pytest.mark.parametrize(
    "units",
    [
        "def __getattr__(name):\n    return 2\n",
        "TABLE = {'width': 2}\ndef __getattr__(name):\n    return TABLE[name]\n",
        "from later import __getattr__\n",
        "__getattr__ = lambda name: 2\n",
    ],
)
def test_a_name_that_a_module_makes_counts_as_what_makes_it(
    tmp_path: Path, units: str, top: str, value: str
) -> None:
    units = f"__all__ = ['width', 'known']\nknown = 3\n{units}\ndef other():\n    return 7\n"
    modules = {"units": units, "later": "def __getattr__(name):\n    return 2\n"}
    assert is_older(tmp_path, " 2", " 5", top, value, **modules)
    assert not is_older(tmp_path, "return 7", "return 8", top, value, **modules)
    assert not is_older(tmp_path, " 2", " 5", "import units", "units.known", **modules)


@pytest.mark.parametrize("at", ["lib/own.py", "src/own.py", "code/lib/own.py", "lib/own/rest.py", "own.py"])
def test_a_module_of_the_repository_counts_wherever_its_path_leads(tmp_path: Path, at: str) -> None:
    """Any of these folders may be on `PYTHONPATH`, which a build need not know."""
    (tmp_path / ".git").mkdir()
    folder, module = tmp_path / "lectures", tmp_path / at
    folder.mkdir()
    module.parent.mkdir(parents=True, exist_ok=True)
    copies = [tmp_path / place / "own.py" for place in ("build/lib", ".venv/lib", "a/b/c/d")]
    others = [module.with_name("unread.py"), tmp_path / "lib" / "json.py", *copies]
    for path in (module, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("WIDTH = 2\n")
    top, value = "import json\nimport own", "own.WIDTH"
    assert not is_older(folder, "own", "own", top, value)
    before = digests_of_one(folder)
    for path in others if "/own/" not in at else others[1:]:
        path.write_text("WIDTH = 5\n")
    assert digests_of_one(folder) == before
    module.write_text("WIDTH = 5\n")
    assert digests_of_one(folder) != before


def digests_of_one(folder: Path) -> str:
    return dependencies.digests(parse.read(folder / "lecture_x.py"), folder)["one"].all


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        ("open('numbers.txt')", {"numbers.txt"}),
        ("open('../lectures/numbers.txt')", {"numbers.txt"}),
        ("open(f'{one.__name__}/numbers.txt')", {"numbers.txt"}),
        ("open('num' + 'bers.txt')", {"numbers.txt"}),
        ("open('more/own.txt')", {"more/own.txt"}),
        ("open('num' + 'ber' + 's.txt')", {"numbers.txt"}),
        ("open('numbers' + '.txt')", {"numbers.txt", "sheep.txt"}),
        ("open(f'{one}.txt')", {"numbers.txt", "sheep.txt"}),
        ("open('%03d.txt' % 1)", {"numbers.txt", "sheep.txt"}),
        ("open('NAME.txt'.replace('NAME', 'sheep'))", {"numbers.txt", "sheep.txt"}),
        ("print('It is 3.5, e.g. here. A rate of .5')", set()),
    ],
)
def test_a_file_counts_by_its_whole_name_or_by_as_much_of_it_as_is_quoted(
    tmp_path: Path, reads: str, expected: set[str]
) -> None:
    folder = tmp_path / "lectures"
    files = [folder / name for name in ("numbers.txt", "sheep.txt", "more/own.txt", "more/other.txt")]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    assert not is_older(folder, "one", "one", "", reads)
    counted = set[str]()
    for path in files:
        before = digests_of_one(folder)
        path.write_text("23")
        if digests_of_one(folder) != before:
            counted.add(path.relative_to(folder).as_posix())
    assert counted == expected
