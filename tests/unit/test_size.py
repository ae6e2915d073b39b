"""`tools/size.py`: a tree small enough to be counted by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.running import REPO

TREE = {
    "tools/serve.py": "1\n2\n3\n",
    "tools/litbook/__init__.py": '"""One."""\n',
    "tools/litbook/run/__init__.py": "",
    "tools/litbook/run/long.py": "class Long:\n    def longer(self):\n        # a comment\n\n"
    + "        pass\n" * 298,
    # three code lines of seven: a string is its lines, the text of the module and the comment are none
    "tools/litbook/run/said.py": '"""What it is\nfor."""\n\n# a comment\nx = """one\n\nthree"""  # and another\n',
    "tools/litbook/run/once.py": """\
import litbook.run.said

def public():
    return _once() + _twice() + _twice() + __dunder()

def _once():

    def _nested():
        "A docstring."
        return 1

    return _nested()

def _twice(): return 2
def __dunder(): return 3

class Other:
    def _method(self):
        return self._method
""",
    # each of the three ways to import makes a circle; to import from a package is none with its own file
    "tools/litbook/text/__init__.py": "HERE = 1\n",
    "tools/litbook/text/a.py": "from litbook.text import b, HERE\nfrom litbook.text.c import D\n",
    "tools/litbook/text/b.py": "_Other = int\nMOST = 2\ndef later():\n    import litbook.text.a\n",
    "tools/litbook/text/c.py": "if TYPE_CHECKING:\n    from litbook.text.b import later\n",
    "tools/litbook/text/d.py": "from litbook.text.a import b\nimport json\n",
    "lectures/lecture_02/__init__.py": "a = 1\n" * 5,
    "lectures/lecture_02/parts/tensors.py": "a = 1\n" * 9,
    "lectures/lecture_03.py": "a = 1\n" * 7,
    "lectures/hardware.py": "a = 1\n" * 50,
    "tests/unit/test_a.py": "\n\n",
}

COUNT = """\
     326  code lines of the engine
       8  functions
       7  lines in 1 private functions used once, 2.1 %
       1  circles of modules
          litbook.text.a litbook.text.b litbook.text.c
       1  names of classes and types defined in several files
       2  functions named by a participle, a preposition or an adverb

    code  functions  used once  modules
       0          0          0        1  litbook
     315          7          1        4  litbook/run
      11          1          0        5  litbook/text

     340  lines of the engine with blank ones, comments and docstrings
       1  classes over 300 lines
               302  tools/litbook/run/long.py:1 Long
       1  functions over 80 lines
               301  tools/litbook/run/long.py:2 longer
       9  longest lecture file, lectures/lecture_02/parts/tensors.py
       2  lines of the tests
"""


def size(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(REPO / "tools" / "size.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_tree_is_counted_line_by_line(tmp_path: Path) -> None:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = size(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == COUNT


def test_what_is_used_once_is_listed_and_whether_it_is_called_there(tmp_path: Path) -> None:
    (tmp_path / "tools" / "litbook").mkdir(parents=True)
    text = (
        "def _step():\n    return 1\n\ndef _rule(): ...\n\nRULES = [_rule]\nx = _step()\ndef _dead(): ...\n"
    )
    (tmp_path / "tools" / "litbook" / "a.py").write_text(text)
    assert size("--once", tmp_path).stdout == (
        "       2  called       tools/litbook/a.py:1 _step\n       1  handed over  tools/litbook/a.py:4 _rule\n"
    )


def test_names_are_listed_that_several_files_define_or_that_do_not_say_what_a_function_does(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools" / "litbook").mkdir(parents=True)
    (tmp_path / "tools" / "litbook" / "a.py").write_text(
        "class _Row: ...\n\ndef _told(): ...\n\ndef tell(): ...\n"
    )
    (tmp_path / "tools" / "litbook" / "b.py").write_text("Row = tuple[int, ...]\nROW = 1\nCell = int\n")
    assert size("--names", tmp_path).stdout == (
        "Row                   tools/litbook/a.py tools/litbook/b.py\n"
        "_told                 tools/litbook/a.py:3\n"
    )


def test_a_folder_without_an_engine_is_named(tmp_path: Path) -> None:
    done = size(tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path} has no tools/litbook: name the root of a working tree\n"
