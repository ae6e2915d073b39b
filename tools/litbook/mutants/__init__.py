"""Changes of claims and of code: what a claim does not notice, it does not say.

Two checks of `litbook check`, each in a process of its own: `--mutants` changes every claim a little where
it stands (`claims` says how, `trials` runs it), `--code` the code above it (`changes`, `noticed`). `findings`
says what came of either.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from litbook.rules import checks
from litbook.rules.checks import Checked, Wanted
from litbook.run import process


def _asked(function: str, path: Path, wanted: Wanted) -> Checked:
    given = {"path": str(path), "wanted": asdict(wanted)}
    return Checked(**process.answer(path, f"litbook.mutants.findings:{function}", **given))


checks.CHECKS |= {"mutants": partial(_asked, "of_claims"), "code": partial(_asked, "of_code")}
