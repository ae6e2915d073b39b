"""How a command ends, whatever stops it: an error, Ctrl-C, SIGTERM, a stdout that is closed or full.

In goes a command with its arguments, out comes the exit status. Errors are printed here; for who asked for
JSON they are the one value on stdout, too: `{"error": "...", "exit_status": 2}`.
"""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from litbook.cli.output import complain, leave_stdout, say_json
from litbook.errors import LitbookError

STATUSES = """exit status: 0 every claim holds; 1 a claim failed, a value differs from its recording, the
lecture raised, or a strict build would refuse something else; 2 the lecture, its recording or the command
line cannot be used; 130 interrupted (143 by SIGTERM)"""


def status_of(command: click.Command, program: str, arguments: Sequence[str] | None) -> int:
    """What the command ends with; `arguments` are by default the process's own."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    # Printing never fails for a character that the terminal lacks, nor when there is no terminal at all.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell: `>&-`; it is left open for the whole process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        if hasattr(stream := getattr(sys, name), "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    atexit.register(gc.freeze)  # else Python looks through a whole record for garbage before it ends
    terminated, findings = 0, list[dict[str, Any]]()

    def terminate(number: int, _: object) -> NoReturn:
        """SIGTERM ends what runs as Ctrl-C does, and leaves as little."""
        nonlocal terminated
        terminated = 128 + number
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        with command.make_context(program, [*words], obj=words) as context:
            return command.invoke(context) or 0
    except click.exceptions.Exit as end:  # `--help`, `--version`
        return end.exit_code
    except click.UsageError as error:
        text, status, program = error.format_message(), error.exit_code, ""
        error.show()
    except LitbookError as error:
        found, status = getattr(error, "findings", ()), terminated or error.exit_status
        text = error.printed()
        findings = [finding.as_data() for finding in found]
    except KeyboardInterrupt:  # before or after the lecture itself ran
        text, status = "interrupted", terminated or 130
    except ModuleNotFoundError as error:  # of what draws pages; a lecture's ends its run
        from litbook import version

        library, install = (error.name or "").partition(".")[0], shlex.join(version.pip_source_here("site"))
        text, status = f"the library {library} is not installed\n    pip install {install}", 2
    except BrokenPipeError:  # of `--help | head`: all else is printed by `say`
        leave_stdout()
        return 0
    except (OSError, ValueError) as error:  # a full disk behind `>`; a lecture that closed the real stdout
        file = getattr(error, "filename", None) or "cannot print"
        text, status = f"{file}: {getattr(error, 'strerror', None) or error}", 2
        leave_stdout()
    finally:
        signal.signal(signal.SIGTERM, before)
    if program:
        complain(text, program)
    if "--json" in words or "--format json" in " ".join(words).replace("=", " "):
        say_json({"error": text, "findings": findings, "exit_status": status})
    return status
