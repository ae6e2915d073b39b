"""Python text -> the folded cell that runs it: a few lines to look at, whatever comes with a notebook."""

from __future__ import annotations

import base64
import zlib

from litbook.i18n import _

# Closed until somebody opens it: a cell's code in JupyterLab, and the same on Colab, with its title.
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}


def title_line(title: str) -> str:
    """The first line of a folded cell: what Colab shows of it."""
    return f"# @title {title}"


def helpers_cell(text: str, what: str, name: str = "HELPERS", names: str = "") -> str:
    """A cell that unpacks `text` as `name` and executes it, in a namespace of its own if `names` is `{}`."""
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    shown = _("{what} It is packed Python: `print({name})` shows it.", what=what, name=name)
    return "\n".join([
        title_line(_("Helpers: run once")),
        f"# {shown}",
        "import base64, zlib",
        f'{name} = zlib.decompress(base64.b85decode("{packed}")).decode()',
        f"exec({name}{names and f', {names}'})",
    ])  # fmt: skip
