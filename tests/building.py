"""`python -m tests.building SITE RECORDS` is `mkdocs build --strict --site-dir SITE`; it keeps what its lectures said.

A build runs every lecture. What the suite asks of these runs it reads in the folder RECORDS, and runs none again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.__main__ import cli

from litbook.record import encoding
from litbook.site.plugin import LitbookPlugin


def main(site: str, records: str) -> None:
    build = LitbookPlugin.build

    def keeping(plugin: LitbookPlugin, *words: Any) -> Any:
        entries = build(plugin, *words)
        for path, (_, record) in plugin.records.items():
            (Path(records) / f"{path.name}.json").write_text(encoding.dumps(record), encoding="utf-8")
        return entries

    Path(records).mkdir(parents=True, exist_ok=True)
    with mock.patch.object(LitbookPlugin, "build", keeping):
        cli(["build", "--strict", "--site-dir", site])


if __name__ == "__main__":
    main(*sys.argv[1:])
