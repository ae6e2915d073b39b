"""Running notebooks in a test as a reader would: in an empty folder, where litbook is not.

A kernel takes seconds to start and torch as long to import, so many notebooks may share one, emptied in between:
each is executed with nothing of the one before in its namespace, its folder or its modules.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient
from nbformat import v4

# What a note may come to on a page, besides mathematics.
NOTE_ELEMENTS = frozenset(
    "p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd strong em sup code pre blockquote hr br a div span table caption thead "
    "tbody tr th td cite bdi button details summary input label".split()
)
# The interpreter of a reader's kernel: this one, but of litbook it finds only what a notebook brings along.
KERNEL = """
import os, sys
class NotHere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "litbook" and not os.path.exists("litbook.py"):
            raise ModuleNotFoundError("No module named 'litbook'", name="litbook")
sys.meta_path.insert(0, NotHere())
sys.path[:] = [p for p in sys.path if "site-packages" in p or "python" in p]
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""

# Between two notebooks: an empty namespace, an empty folder, the state that an `import torch` leaves. What is left then
# is no garbage of the next one: to look through it takes IPython half a second each time.
EMPTY = """
import os, sys, tempfile
for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(tempfile.gettempdir())]:
    del sys.modules[name]
os.chdir(tempfile.mkdtemp())
get_ipython().reset()
__import__("gc").freeze()
"""


def run(texts: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """The notebooks executed one after the other in one kernel that starts in `folder`, by their names."""
    spec = folder / "jupyter" / "kernels" / "reader"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-c", KERNEL, "-f", "{connection_file}"]
    text = json.dumps({"argv": argv, "display_name": "a reader's", "language": "python"})
    (spec / "kernel.json").write_text(text, encoding="utf-8")
    place = folder / "empty"
    place.mkdir()
    whole = v4.new_notebook()
    notebooks = {name: nbformat.reads(text, as_version=4) for name, text in texts.items()}
    for notebook in notebooks.values():
        for cell in notebook.cells:
            cell.id = f"c{len(whole.cells)}"
            if cell.cell_type == "code":
                cell.outputs = []
            whole.cells.append(cell)
        whole.cells.append(v4.new_code_cell(EMPTY, id=f"c{len(whole.cells)}"))
    secret = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSTARTUP")}
    secret |= {"JUPYTER_PATH": str(folder / "jupyter"), "IPYTHONDIR": str(folder / "ipython"),
               "JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "TMPDIR": str(place)}  # fmt: skip
    with mock.patch.dict(os.environ, secret, clear=True):
        client = NotebookClient(
            whole,
            kernel_name="reader",
            timeout=120,
            resources={"metadata": {"path": str(place)}},
            allow_errors=True,
        )
        client.execute()
    return notebooks


def helpers(text: str) -> str:
    """The Python that a notebook's folded cell unpacks."""
    (packed,) = re.findall(r'b85decode\(\\"([^"\\]+)\\"\)', text)
    return zlib.decompress(base64.b85decode(packed)).decode()


_MEASURED = re.compile(r"^.* = .*\(measured .*\)$", re.MULTILINE)


def said(outputs: list[Any]) -> str:
    """What a cell's outputs say, as one text: printed lines, Markdown, errors; of pictures that they are there.

    Lines that were measured say only which they are: they differ from run to run.
    """
    found = []
    for output in outputs:
        if output.output_type == "stream":
            found.append(_MEASURED.sub(lambda m: m[0].partition(" = ")[0] + " measured", output.text))
        elif output.output_type == "error":
            found.append(f"<{output.ename}: {output.evalue}>\n")
        elif "image/svg+xml" in output.data:
            found.append("<picture>\n")
        else:
            found.append(f"<{output.data.get('text/markdown', output.data.get('text/plain'))}>\n")
    return "".join(found)


# Floats may differ as two runs of a parallel sum do; whatever else is said is compared as text.
_FLOAT = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)")
# Where a name was defined: in a notebook, a lecture, or a file of a lecture in a folder.
_MODULE = re.compile(r"\b(?:__main__\.|lecture_\w+\.(?:[a-z]\w*\.(?!<))?)(?:\w+\.<locals>\.)?")


def same(was: str, is_: str) -> bool:
    """Whether two outputs say the same: floats to a hundred-thousandth of the largest on their line."""
    one, other = _MODULE.sub("", was).split("\n"), _MODULE.sub("", is_).split("\n")
    return len(one) == len(other) and all(map(_same_line, one, other))


def _same_line(was: str, is_: str) -> bool:
    if was == is_:
        return True
    if was.endswith("…") and is_.endswith("…"):  # cut, perhaps behind names of unequal length
        shorter = min(len(was), len(is_)) - 1
        return was[:shorter] == is_[:shorter] and shorter > 100
    if _FLOAT.sub("#", was) != _FLOAT.sub("#", is_):
        was, is_ = (
            re.sub(r"(?<![\w.])(-?\d+)(?![\w.])", r"\1.0", text) for text in (was, is_)
        )  # `1` and `0.9999`
    if _FLOAT.sub("#", was) != _FLOAT.sub("#", is_) or "." not in was + is_:
        return False
    ours, theirs = ([float(x) for x in _FLOAT.findall(text)] for text in (was, is_))
    scale = max(map(abs, ours), default=0.0)
    return all(abs(a - b) <= 1e-5 * scale for a, b in zip(ours, theirs, strict=True))


def _folded(was: str, is_: str) -> bool:
    """Whether all that was recorded came, in order, and more: a record leaves out the middle of long loops."""
    came = iter(is_.split("\n"))
    return all(line in came for line in was.split("\n") if not line.endswith(" …"))


def differences(text: str, executed: Any) -> list[str]:
    """Every cell whose outputs are not the recorded ones, as a text to read. Without a GPU its cells say nothing."""
    found = []
    recorded = nbformat.reads(text, as_version=4)
    for before, after in zip(recorded.cells, executed.cells, strict=True):
        if before.cell_type != "code" or "needs-cuda" in before.metadata.get("tags", []):
            continue
        was, is_ = said(before.outputs), said(after.outputs)
        looped = re.search(r"^\s*(for|while)\b", before.source, re.MULTILINE)
        if not same(was, is_) and not (looped and _folded(was, is_)):
            found.append(f"{before.source}\n-- recorded\n{was}\n-- now\n{is_}")
    return found
