"""A notebook of the same code, executed by nbclient as nbconvert does, in a kernel started once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import nbformat
from nbclient import NotebookClient

from benchmarks import texts


class Kernel:
    """Executes notebooks one after the other. Starting it is no part of what is timed."""

    def __init__(self, client: NotebookClient) -> None:
        self.client = client

    def run(self, text: str) -> tuple[float, Any]:
        """The lecture as a notebook: seconds of its cells without the definitions, and what came out."""
        notebook = nbformat.reads(texts.notebook(text, "lecture"), as_version=4)
        self.client.nb = notebook
        self.client.reset_execution_trackers()
        definitions, *rest = notebook.cells
        self.client.execute_cell(definitions, 0)
        start = perf_counter()
        for i, cell in enumerate(rest, 1):
            self.client.execute_cell(cell, i)
        return perf_counter() - start, notebook

    def value(self, expression: str) -> float:
        """A number that the kernel has."""
        cell = nbformat.v4.new_code_cell(expression)
        self.client.nb.cells.append(cell)
        self.client.execute_cell(cell, len(self.client.nb.cells) - 1)
        return float(cell.outputs[0]["data"]["text/plain"])


@contextlib.contextmanager
def kernel() -> Iterator[Kernel]:
    """A kernel that has imported torch."""
    client = NotebookClient(nbformat.v4.new_notebook(), kernel_name="python3", timeout=None)
    with client.setup_kernel():
        found = Kernel(client)
        found.run("import torch\n\ndef main():\n    pass\n")
        yield found


def weight(notebook: Any) -> int:
    """Bytes of the notebook with its outputs, as a file."""
    return len(nbformat.writes(notebook).encode())


def html(notebook: Any) -> str:
    """The page that nbconvert makes of an executed notebook."""
    from nbconvert import HTMLExporter

    page, _ = HTMLExporter().from_notebook_node(notebook)  # type: ignore[no-untyped-call]
    return str(page)
