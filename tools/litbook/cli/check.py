"""`litbook check`: what no claim guards; of several lectures each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from litbook import plugins
from litbook.cli.output import complain, harmless, say, say_json
from litbook.cli.parameters import ANY_LECTURE, JSON, SECTIONS, find_lecture
from litbook.errors import LitbookError
from litbook.project import TOOLS, Project

CHECKS = {
    "verdict": "All that a strict build refuses of a lecture: claims, prose, links, citations",
    "unbacked": "Numbers that nothing backs",
    "unchecked": "Questions whose answer is computed in one way only",
    "unbounded": "Measured values that no claim reads",
    "unrun": "Claims that no run has reached",
    "vacuous": "Claims that say nothing: 0 == 0, empty against empty",
    "mutants": "Claims that cannot fail",
    "code": "Changes of the code that no claim of its section notices (minutes)",
}
FLAGS = [
    click.Option([f"--{name}", "names"], flag_value=name, multiple=True, help=f"{text}.")
    for name, text in CHECKS.items()
]


@click.command(params=[ANY_LECTURE, SECTIONS, *FLAGS, JSON])
@click.option("--sample", metavar="N", type=int, help="Change only N claims or places, drawn at random.")
@click.option("--seed", metavar="S", default=0, show_default=True, help="Of the draw.")
@click.option("--all", "everything", is_flag=True, help="Try every change of the code, not for five minutes.")
@click.option("--least", metavar="P", type=float, help="Fail where claims notice less than P % of changes.")
def check(
    lecture: str | None,
    sections: Sequence[str],
    names: Sequence[str],
    as_json: bool,
    **options: Any,
) -> int:
    """Look for numbers that nothing backs and claims that cannot fail.

    All checks but --code are made by default, of every lecture without LECTURE. SECTION is for --mutants and
    --code: only what is in these. exit status: 0 nothing is found; 1 something is, or the lecture fails; 2 it
    cannot be used
    """
    whole = [name for name in names if name not in ("mutants", "code")]
    if sections and whole:
        raise LitbookError(
            f"--{whole[0]} is asked of a whole lecture, not of {' '.join(sections)} alone\n"
            "    leave the sections out; --mutants and --code take some"
        )
    if lecture is None:
        return _check_all(as_json=as_json)
    path = find_lecture(lecture).resolve()
    from litbook.rules import checks

    plugins.bring_in("mutants")
    results = list[dict[str, object]]()
    wrong, wanted = False, checks.Wanted(sections, **options)
    told = set[str]()  # what is wrong with the run is told once
    for name in names or (["mutants"] if sections else [*CHECKS][:-1]):
        if name in checks.CHECKS:
            checked = checks.CHECKS[name](path, wanted)
            results.append({"lecture": lecture, "check": name, "wrong": checked.wrong,
                            "summary": checked.summary, "problems": checked.lines})  # fmt: skip
            lines = [text for text in checked.lines if text not in told]
            told.update(lines)
            if not as_json:
                say("\n\n".join([*map(harmless, lines), f"{lecture}: {checked.summary}"]))
            wrong |= checked.wrong
        elif names or sections:
            raise plugins.Missing("mutants")
        else:
            complain(str(plugins.Missing("mutants")))
    if as_json:
        say_json(results)
    return int(wrong)


def _check_all(*, as_json: bool) -> int:
    """The same of every lecture, with the words of this command line; one that cannot be used is a row."""
    project = Project.find(Path.cwd())
    names, overlooked = project.every(), project.overlooked()
    for problem in overlooked:
        complain(str(problem))
    again = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r}); from litbook import cli; sys.exit(cli.litbook())"
    )
    command = [sys.executable, "-c", again, "check"]
    words = click.get_current_context().obj[1:]
    out = subprocess.PIPE if as_json else None
    every = [subprocess.run([*command, name, *words], check=False, stdout=out) for name in names]
    if as_json:
        answers = [json.loads(done.stdout or "[]") for done in every]
        errors = ([answer] if isinstance(answer, dict) else answer for answer in answers)
        say_json([{"lecture": name, **row} for name, rows in zip(names, errors, strict=True) for row in rows])
    return max([bool(overlooked), *(done.returncode for done in every)])
