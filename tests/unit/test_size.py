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
    "lectures/lecture_02/__init__.py": "a = 1\n" * 5,
    "lectures/lecture_02/parts/tensors.py": "a = 1\n" * 9,
    "lectures/lecture_03.py": "a = 1\n" * 7,
    "lectures/hardware.py": "a = 1\n" * 50,
    "tests/unit/test_a.py": "\n\n",
}

COUNT = """\
     303  engine, Python lines
       3  the commands beside it, tools/*.py
       3  modules
       1  modules directly in tools/litbook
       1  classes over 300 lines
               302  tools/litbook/run/long.py:1 Long
       1  functions over 80 lines
               301  tools/litbook/run/long.py:2 longer
       9  longest lecture file, lectures/lecture_02/parts/tensors.py
       2  tests, Python lines
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


def test_a_folder_without_an_engine_is_named(tmp_path: Path) -> None:
    done = size(tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path} has no tools/litbook: name the root of a working tree\n"
