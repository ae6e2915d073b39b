"""`breakpoint()` under `litbook run`: in a terminal the debugger asks, and the run goes on behind it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

from tests.running import REPO, section, write

BODY = """
    total = 40
    breakpoint()
    total += 1  # @inspect total
    assert total == 42, "as set by hand"
"""


def talk(folder: Path, *answers: str, body: str = BODY, think: float = 0) -> tuple[int, str]:
    """What a lecture with a breakpoint says at a terminal where this is answered, and its exit status.

    The one who answers takes `think` seconds for it.
    """
    file = write(folder, section(body))
    ours, theirs = pty.openpty()
    command = [sys.executable, str(REPO / "tools" / "run_lecture.py"), str(file), "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}
    process = subprocess.Popen(  # in a session of its own, which has this terminal as `login` gives it
        [sys.executable, "-c", LOGIN, *command],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment,
    )  # fmt: skip
    os.close(theirs)
    text, waiting, since = "", list(answers), time.monotonic()
    os.set_blocking(ours, False)
    while time.monotonic() - since < 200:
        try:
            text += os.read(ours, 4096).decode()
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:  # everybody has left
            break
        if waiting and text.endswith("(Pdb) "):
            time.sleep(think)
            os.write(ours, f"{waiting.pop(0)}\n".encode())
            text += "\n"
    os.close(ours)
    return process.wait(10), text.replace("\r", "")


LOGIN = """
import fcntl, os, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
status = subprocess.call(sys.argv[1:])
print("foreground", os.tcgetpgrp(0) == os.getpgrp())
sys.exit(status)
"""


def test_a_breakpoint_stops_at_its_line_and_what_is_set_there_counts(tmp_path: Path) -> None:
    status, text = talk(tmp_path, "p total", "total = 41", "n", "c")
    assert status == 0, text
    assert "lecture_sample.py(" in text and "-> total += 1" in text  # the next line to run
    assert "\n40\n" in text
    assert "1 claim holds, 0 fail, 0 not run" in text
    assert "foreground True" in text  # the terminal is the shell's again


def test_nothing_is_drawn_over_a_prompt_that_waits(tmp_path: Path) -> None:
    """The line that says where a run is moves four times a second: behind a prompt, it would hide it."""
    status, text = talk(tmp_path, "p total", "c", think=1.0)
    asked = text.split("(Pdb) ")[1:]
    assert status == 1, text  # 41 is not 42
    assert asked[0].strip() == "p total\n40" and asked[1].startswith("\nc\n"), text


def test_pdb_itself_asks_too_and_says_its_header(tmp_path: Path) -> None:
    body = BODY.replace("breakpoint()", "import pdb; pdb.set_trace(header='Look here.')")
    status, text = talk(tmp_path, "total = 41", "c", body=body)
    assert status == 0, text
    assert "Look here.\n" in text and "-> total += 1" in text
    assert "1 claim holds, 0 fail, 0 not run" in text


def test_who_leaves_the_debugger_ends_the_section(tmp_path: Path) -> None:
    status, text = talk(tmp_path, "q")
    assert status == 1
    assert "BdbQuit" in text and "1 error" in text
