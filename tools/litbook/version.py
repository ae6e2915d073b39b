"""Where the litbook that runs came from: no instruction names it alone, since nobody has registered the name.

In goes nothing; out come the version, and what pip can be given: here, or in a book's workflow. It asks pip's
note of the installation (PEP 610), and git where litbook runs from a clone.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib import metadata
from urllib.parse import unquote, urlsplit

from litbook.project import CHECKOUT

PROJECT = CHECKOUT / "pyproject.toml"  # there where litbook runs from a tree


def version() -> str:
    """Of the litbook that runs."""
    if PROJECT.is_file():
        return str(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version("litbook")


def pip_source_here(extra: str) -> list[str]:
    """What to give pip on this machine for the same litbook with what the extra brings.

    Of one from an index that is what the extra brings alone: nobody knows which index had it, and on another
    the name may be somebody else's.
    """
    place = urlsplit(PROJECT.parent.as_uri() if PROJECT.is_file() else str(_pip_metadata().get("url", "")))
    if place.scheme == "file":
        return [f"{unquote(place.path)}[{extra}]"]
    if at := pip_source():
        return [f"litbook[{extra}] @ {at}"]
    needed = (need.partition(";") for need in metadata.requires("litbook") or ())
    return [name.strip() for name, _, when in needed if re.search(rf"\bextra == ['\"]{extra}['\"]", when)]


def pip_source() -> str:
    """Where pip on any machine finds the same litbook, by its commit; "" where that is not known."""
    if PROJECT.is_file():  # a commit that no branch elsewhere holds is here alone
        kind, commit = "git", _git("rev-parse", "HEAD")
        url = _git("remote", "get-url", "origin") if _git("branch", "-r", "--contains", "HEAD") else ""
    else:
        vcs = _pip_metadata().get("vcs_info", {})
        kind, commit, url = (
            vcs.get("vcs", ""),
            vcs.get("commit_id", ""),
            str(_pip_metadata()["url"]) if vcs else "",
        )
    # git@HOST:PATH and ssh://git@HOST/PATH are for who has a key; names and passwords are nobody's business.
    plain = re.sub(r"^(?:ssh://)?[\w.-]+@([\w.-]+)[:/]", r"https://\1/", url)
    plain = re.sub(r"^https://[^@/]*@", "https://", plain)
    return f"{kind}+{plain}@{commit}" if kind and commit and plain.startswith("https://") else ""


def _pip_metadata() -> dict[str, dict[str, str]]:
    """What pip has noted of the installation; nothing of one from an index."""
    noted: dict[str, dict[str, str]] = json.loads(
        metadata.distribution("litbook").read_text("direct_url.json") or "{}"
    )
    return noted


def _git(*words: str) -> str:
    """What git says of the clone; "" where it says nothing, or is not there."""
    command = ["git", "-C", str(CHECKOUT), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
