"""What a lecture prints is on its page as it was printed, wherever it comes from; else a remark says where it went."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from tests.running import one, record, remarks, section

from litbook.html import page as pages

BEFORE = """
import os, subprocess, sys, threading
from concurrent.futures import ThreadPoolExecutor
def talk(i):
    print("in", i)
def talks(n):
    for i in range(n):
        print("g", i)
        yield i
"""
PRINTED = {
    "for i in range(7): print(i)": "0\n1\n2\n3\n4\n5\n6\n",
    "print('a', end='')\nprint('b')": "ab\n",
    "print()\nprint('  x')\nprint()\nprint('y  ')\nprint()": "\n  x\n\ny  \n\n",
    "for i in range(8):\n    for j in range(7):\n        print(i * j, end=' ')\n    print()": "".join(
        "".join(f"{i * j} " for j in range(7)) + "\n" for i in range(8)
    ),
    "for i in range(9): talk(i)": "".join(f"in {i}\n" for i in range(9)),
    "for i in range(9):\n    print('a', i)\n    print('b', i)": "".join(f"a {i}\nb {i}\n" for i in range(9)),
    "for i in talks(7):\n    print(i)": "".join(f"g {i}\n{i}\n" for i in range(7)),
    "i = 0\nwhile i < 9:\n    i += 1\n    if i % 2: print(i)": "1\n3\n5\n7\n9\n",
    "sys.stdout.write('x')\nsys.stdout.write('y')": "xy",
    "t = threading.Thread(target=print, args=('thread',))\nt.start()\nt.join()": "thread\n",
    "with ThreadPoolExecutor(1) as pool:\n    pool.submit(talk, 1).result()": "in 1\n",
    "[print(i) for i in range(9)]": "".join(f"{i}\n" for i in range(9)),
    "for i in range(6): print(i)  # @stepover": "0\n1\n2\n3\n4\n5\n",
    "print('<b>', '&', sep='\\t')": "<b>\t&\n",
}


@pytest.mark.parametrize(("body", "text"), PRINTED.items())
def test_printed_text_is_what_was_printed(tmp_path: Path, body: str, text: str) -> None:
    made = record(tmp_path, section(body, BEFORE))
    assert "".join(piece.text for piece in one(made).pieces if piece.kind == "output") == text
    html = "".join(pages.pages(made).values())
    [shown] = re.findall(r'<figure class="lb-output">.*?<pre[^>]*>(.*?)</pre>', html, re.DOTALL)
    read = unescape(shown)
    dropped = "\n" * text.startswith("\n")  # a browser drops the first line end of a `pre`
    assert read == dropped + text.removesuffix("\n")


@pytest.mark.parametrize(
    "line",
    ["os.write(1, b'x')", "subprocess.run(['true'])", "os.system('true')", "n = subprocess.call(['true'])"],
)
def test_what_goes_past_the_page_gets_a_remark(tmp_path: Path, line: str) -> None:
    [remark] = remarks(record(tmp_path, section(line, BEFORE)))
    assert "prints is on no page" in remark


def test_what_is_taken_gets_none(tmp_path: Path) -> None:
    body = "said = subprocess.run(['echo', 'x'], capture_output=True, text=True).stdout\nprint(said)"
    assert remarks(record(tmp_path, section(body, BEFORE))) == []
