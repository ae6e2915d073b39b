"""What a lecture prints is on its page as it was printed, wherever it comes from; else a remark says where it went."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from textwrap import indent

import pytest
from tests.running import failures, one, record, remarks, section, write

from litbook.html import page as pages
from litbook.record import model
from litbook.record.limits import OUTPUT
from litbook.run.process import record_of

BEFORE = """
import codecs, io, os, subprocess, sys, threading
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
    # Bytes, in order with text; a character that comes in two pieces; bytes that are none.
    "print('a')\nsys.stdout.buffer.write(b'b\\n')\nsys.stdout.buffer.flush()\nprint('c')": "a\nb\nc\n",
    "sys.__stdout__.buffer.write(b'caf\\xc3')\nsys.stdout.buffer.write(b'\\xa9')": "caf\u00e9",
    "sys.stdout.buffer.write(b'\\xc3')\nprint('a')": "\ufffda\n",
    "sys.stdout.buffer.write(b'a\\xc3')": "a\ufffd",
    "sys.stdout.reconfigure(encoding='latin-1', line_buffering=True)\nprint('\u00e9')": "\u00e9\n",
    "print(sys.stdout.encoding, sys.stdout.isatty(), sys.stdout.fileno())": "utf-8 False 1\n",
    "sys.stdout.writelines(['x', 'y'])": "xy",
    # Another stream above the same bytes, which holds text back.
    "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nprint('a')": "a\n",
    "sys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach())\nprint('\u00e9')": "\u00e9\n",
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


LATE = {  # a thread that prints when the next section runs
    "threading.Timer(0.05, print, ['late']).start()": "one",
    "def wait():\n    go.wait()\n    print('late')\nthreading.Thread(target=wait).start()": "one",
    "def wait():\n    go.wait()\n    sys.stdout.buffer.write(b'late\\n')\n"
    "for i in range(9): threading.Thread(target=wait if i == 6 else int).start()": "one",
    "def inner():\n    go.wait()\n    print('late')\n"
    "threading.Thread(target=lambda: threading.Thread(target=inner).start()).start()": "one",
    # What works for whoever comes is of no section.
    "pool.submit(int).result()": "two",
    "pass": "two",
}


@pytest.mark.parametrize(("body", "whose"), LATE.items())
def test_a_thread_prints_for_the_section_that_started_it(tmp_path: Path, body: str, whose: str) -> None:
    before = f"{BEFORE}go = threading.Event()\npool = ThreadPoolExecutor(1)"
    text = section(body, before).replace("    one()\n", "    one()\n    two()\n", 1)
    two = 'def two():\n    """Two."""\n    print("now")\n    go.set()\n    threading.Event().wait(0.2)\n'
    if whose == "two":
        two += "    pool.submit(print, 'late').result()\n"
    made = record(tmp_path, f"{text}\n\n{two}")
    printed = {name: "".join(piece.text for piece in one(made, name).pieces) for name in ("one", "two")}
    assert printed == (
        {"one": "late\n", "two": "now\n"} if whose == "one" else {"one": "", "two": "now\nlate\n"}
    )


@pytest.mark.parametrize("past", [-1, 0, 1])
def test_what_is_beyond_the_limit_leaves_a_word(tmp_path: Path, past: int) -> None:
    """The last line may end at the limit, and what comes after it is cut; but never without a word."""
    made = record(tmp_path, section(f"print('y' * {OUTPUT - 1 + past})\nprint('the last line')"))
    text = "".join(piece.text for piece in one(made).pieces)
    assert text.count("more was printed") == 1
    assert text.replace("\n", "").startswith("y" * (OUTPUT - 1 + min(past, 0)))
    assert "the last line" not in text


@pytest.mark.parametrize("past", [-1, 0])
def test_what_ends_at_the_limit_is_whole(tmp_path: Path, past: int) -> None:
    made = record(tmp_path, section(f"print('y' * {OUTPUT - 1 + past})"))
    assert "".join(piece.text for piece in one(made).pieces) == "y" * (OUTPUT - 1 + past) + "\n"


def test_much_at_stderr_takes_no_room_from_what_is_printed(run_with_children: model.Record) -> None:
    pieces = one(run_with_children, f"s{len(PAST) + 2}").pieces
    assert [piece.text for piece in pieces if piece.kind == "output"] == ["the last line\n"]


PAST = {  # what arrives at the process's stdout past Python's own, and what is on the page
    "os.write(1, b'x\\n')": "x\n",
    "os.system('echo x')\nprint('y')": "x\ny\n",
    "print('w')\nsubprocess.run(['echo', 'x'])\nprint('y')": "w\nx\ny\n",
    "for i in range(9): subprocess.call(['echo', str(i)])": "".join(f"{i}\n" for i in range(9)),
    "subprocess.Popen(['echo', 'x']).wait()": "x\n",
    "r, w = os.pipe()\nc = subprocess.Popen(['sh', '-c', f'echo x; echo >&{w}'], pass_fds=[w])\nos.read(r, 1)\n"
    "print('y')\nc.wait()": "x\ny\n",
    "subprocess.run([sys.executable, '-c', 'print(1)'])": "1\n",
    "libc.puts(b'from C')": "from C\n",
    "p = multiprocessing.get_context('fork').Process(target=talk, args=(1,))\np.start()\np.join()": "in 1\n",
    "print('x', file=sys.__stdout__)": "x\n",
    "subprocess.run(['echo', 'x'], capture_output=True)": "",
    "subprocess.run(['echo', 'x'], stdout=sys.stdout)": "x\n",
    "os.write(os.dup(1), b'x\\n')": "x\n",
}


@pytest.fixture(scope="module")
def run_with_children(tmp_path_factory: pytest.TempPathFactory) -> model.Record:
    calls = "\n".join(f"    s{i}()" for i in range(len(PAST) + 3))
    bodies = [*PAST, "subprocess.run(['sh', '-c', 'echo wrong >&2'])", "os.system('yes | head -c 3000000')"]
    bodies.append("os.system('yes | head -c 30000 >&2')\nprint('the last line')")
    text = "".join(
        f'\n\ndef s{i}():\n    """S."""\n{indent(body, "    ")}\n' for i, body in enumerate(bodies)
    )
    before = f"import ctypes, multiprocessing\n{BEFORE}libc = ctypes.CDLL(None)\n"
    return record_of(
        write(tmp_path_factory.mktemp("children"), f'"""S."""\n{before}\n\ndef main():\n{calls}\n{text}')
    )


def test_what_children_and_c_code_print_is_on_the_page(run_with_children: model.Record) -> None:
    pieces = [one(run_with_children, f"s{i}").pieces for i in range(len(PAST))]
    assert ["".join(piece.text for piece in of) for of in pieces] == [*PAST.values()]
    assert failures(run_with_children) == []


def test_what_a_child_prints_to_stderr_gets_a_remark(run_with_children: model.Record) -> None:
    remark, *_ = remarks(run_with_children)
    assert "prints to stderr is on no page" in remark
    assert "wrong" in remark
    assert "wrong" not in "".join(pages.pages(run_with_children).values()).replace("echo wrong", "")


def test_what_a_child_prints_without_end_is_cut(run_with_children: model.Record) -> None:
    [piece] = (p for p in one(run_with_children, f"s{len(PAST) + 1}").pieces if p.kind == "output")
    assert len(piece.text) < OUTPUT + 100
    assert "it is cut here" in piece.text


UNREAD = {  # what goes to stderr, and the first line of it in the remark
    "print('mind this', file=sys.stderr)\nprint('and this', file=sys.stderr)": "mind this",
    "sys.stderr.write('mind this\\n')": "mind this",
    "logging.warning('mind this')": "WARNING:root:mind this",
    "warnings.warn('mind this')": "UserWarning: mind this",
    "def aside():\n    logging.getLogger('x').error('mind this')\naside()": "mind this",
    "traceback.print_stack()": "File",
    "warnings.warn('old', DeprecationWarning)": "",
    "logging.info('fine')": "",
    "with warnings.catch_warnings(record=True):\n    warnings.warn('seen')": "",
    "library.say()": "",  # its own words to whoever uses it
    "print('fine', file=io.StringIO())": "",
}


@pytest.mark.parametrize(("body", "first"), UNREAD.items())
def test_what_a_lecture_says_to_stderr_gets_a_remark(tmp_path: Path, body: str, first: str) -> None:
    before = "import importlib.util, io, logging, sys, traceback, warnings\nlogging.basicConfig()\n"
    place = tmp_path / "elsewhere" / "library.py"
    place.parent.mkdir()
    place.write_text(
        "import sys, warnings\ndef say():\n    print('x', file=sys.stderr)\n    warnings.warn('x')\n"
    )
    before += f"spec = importlib.util.spec_from_file_location('library', {str(place)!r})\n"
    before += "library = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(library)\n"
    made = record_of(write(tmp_path, section(body, before)))
    found = remarks(made)
    assert len(found) == bool(first), found
    assert all(first in text and "prints to stderr is on no page" in text for text in found)
    assert "mind this" not in "".join(piece.text for piece in one(made).pieces if piece.kind == "output")
