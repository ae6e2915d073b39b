"""Whether somebody else has started this process as one of several ranks: torchrun, Slurm, or their like.

In goes the environment. What Slurm calls by names of its own gets the names that PyTorch reads.
"""

from __future__ import annotations

import os

from litbook.errors import LitbookError

SLURM = {"RANK": "SLURM_PROCID", "WORLD_SIZE": "SLURM_NTASKS", "LOCAL_RANK": "SLURM_LOCALID"}
NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class LauncherEnvError(LitbookError):
    """Some of what tells a process of the others is missing or no number."""

    slug = "no-world"


def size() -> int:
    """How many ranks there are; 0 where nobody has started any.

    Raises `LauncherEnvError` where a rank cannot know of the others.
    """
    if "MASTER_ADDR" in os.environ and "RANK" not in os.environ and "SLURM_PROCID" in os.environ:
        os.environ.update({ours: os.environ[its] for ours, its in SLURM.items() if its in os.environ})
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return 0
    if missing := [name for name in NEEDED if name not in os.environ]:
        raise LauncherEnvError(
            f"RANK and WORLD_SIZE say that this is one of several ranks, and {missing[0]} is not set\n"
            "    torchrun sets it; elsewhere it is the first rank's machine, and a free port there"
        )
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"):
        if not os.environ[name].isdecimal():
            raise LauncherEnvError(f"{name} is {os.environ[name]!r}, which is no number")
    return int(os.environ["WORLD_SIZE"])


def rank() -> int:
    """Which of them this process is."""
    return int(os.environ["RANK"])
