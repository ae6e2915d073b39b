"""Other Pythons that a lecture starts: its asserts there are heard, or the run says that nobody hears them.

A child of `multiprocessing` that begins afresh ("spawn", "forkserver") imports the lecture; it is given the
lecture's code with probes, and tells what its asserts say as a fork does. A command that runs the lecture's
own file in a Python of its own (`subprocess`, `os.system`) is an error where the lecture asserts anything.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import spawn
from pathlib import Path
from types import CodeType
from typing import Any

from litbook import plugins
from litbook.errors import LitbookError
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.probe.asserts import Asserts
from litbook.probe.instrument import instrument_files
from litbook.probe.recorder import Recorder
from litbook.project import WORDS
from litbook.run.mailbox import Mailbox
from litbook.run.modules import watch_copies

FIRST = "first.py"  # what a child runs before it imports the lecture, in the run's own folder
RUNNERS = {
    "torchrun", "torch.distributed.run", "torch.distributed.launch", "coverage", "cProfile", "pdb", "trace",
}  # fmt: skip


def hear(
    path: Path, lecture: Lecture, codes: list[CodeType], words: str, asserts: Asserts, folder: str
) -> None:
    """From now on this process hears of the lecture's asserts in whatever Python it starts."""
    watch_copies(lecture, codes)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=asserts.enter_fork)
    first = Path(folder) / FIRST
    call = f"join({str(path)!r}, {words!r}, {folder!r}, {os.getpid()})"
    first.write_text(f"from litbook.run import subprocesses\nsubprocesses.{call}\n", encoding="utf-8")
    prepare: Callable[[str], dict[str, Any]] = spawn.get_preparation_data

    def with_first(name: str) -> dict[str, Any]:
        given = {key: value for key, value in prepare(name).items() if key != "init_main_from_name"}
        return {**given, "init_main_from_path": str(first)}

    spawn.get_preparation_data = with_first
    if not asserts.nodes:
        return
    # Say it where a command runs a file of the lecture.
    begin, files = subprocess.Popen.__init__, {str(path), *(file.filename for file in lecture.files)}

    def check_command(command: Any, where: Any = None) -> None:
        with contextlib.suppress(TypeError, ValueError):  # what is no command says so itself
            parts = shlex.split(os.fspath(command)) if isinstance(command, str | os.PathLike) else command
            parts = [os.fsdecode(word) for word in parts]
            if runs(parts, os.fsdecode(where or Path.cwd()), files, path.stem):
                asserts.report_unheard(shlex.join(parts))

    def popen(self: subprocess.Popen[Any], args: Any, *more: Any, **options: Any) -> None:
        check_command(args, options.get("cwd"))
        begin(self, args, *more, **options)

    def call_child(call: Callable[..., object], *given: Any, **options: Any) -> object:
        check_command(given[1] if len(given) > 1 else given[0] if given else "")
        return call(*given, **options)

    subprocess.Popen.__init__ = popen  # type: ignore[method-assign]
    for command in ("system", "execv", "execve", "execvp", "posix_spawn", "posix_spawnp"):
        if hasattr(os, command):
            setattr(os, command, partial(call_child, getattr(os, command)))


def join(path: str, words: str, folder: str, run: int) -> None:
    """In a child that begins afresh: give the lecture its probes before anything imports it."""
    plugins.bring_in("edtrace")
    with contextlib.suppress(LitbookError):  # its text has changed since; then it is plain Python
        lecture = parse.read_usable(Path(path))
        if words:
            WORDS[words](Path(path)).__enter__()
        recorder = Recorder(lecture)
        recorder.asserts.belong_to(run, Mailbox(folder, "").leave_late)
        sys.dont_write_bytecode = True
        watch_copies(lecture, instrument_files(lecture, recorder, {}))


def runs(words: Sequence[str], folder: str, files: set[str], module: str) -> bool:
    """Whether a command runs one of these files, or the module, in a Python of its own."""
    program, *rest = words
    if Path(program).name not in RUNNERS and not re.match(r"python[\d.]*$", Path(program).name):
        return str(Path(folder, program).resolve()) in files
    todo, several = iter(rest), Path(program).name in RUNNERS
    for word in todo:
        if word == "-c":
            text = next(todo, "")
            return bool(re.search(rf"\b{re.escape(module)}\b", text) and re.search("import|run_", text))
        if word == "-m":
            name = next(todo, "")
            if name not in RUNNERS:
                return name.partition(".")[0] == module
            several = True
        elif word in ("-W", "-X"):
            next(todo, "")
        elif str(Path(folder, word).resolve()) in files:
            return True
        elif not (several or word.startswith("-")):
            return False  # another script
    return False
