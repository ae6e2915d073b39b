"""Comments below the pages of lectures: what giscus gives is kept, and what it does not know is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.running import LITBOOK

from litbook.site.plugin import Comments

GISCUS = "{repo: a/b, repo_id: R_1, category: Talk, category_id: C_1}"


@pytest.mark.parametrize(
    "given", ["{repo: a/b}", GISCUS.replace("a/b", "b"), GISCUS.replace("repo_id", "repoid")]
)
def test_comments_that_giscus_does_not_know_are_refused_with_what_it_gives(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(
        Exception, match=r"is not what https://giscus[.]app gives: repo, repo_id, category, category_id"
    ):
        Comments().run_validation(yaml.safe_load(given))


@pytest.mark.slow
def test_comments_stand_below_the_pages_of_lectures(tmp_path: Path) -> None:
    subprocess.run([*LITBOOK, "new", str(tmp_path / "book")], check=True, capture_output=True)
    config = tmp_path / "book" / "mkdocs.yml"
    config.write_text(
        f"site_name: A book\ntheme: {{name: material}}\nplugins:\n  - litbook: {{comments: {GISCUS}}}\n"
    )
    done = subprocess.run([*LITBOOK, "build"], cwd=config.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lectures = config.parent / "site" / "lectures"
    page = (lectures / "lecture_01" / "index.html").read_text()
    [script] = re.findall(r"<script[^>]*giscus[^>]*></script>", page)
    assert (
        'data-repo="a/b"' in script
        and 'data-category-id="C_1"' in script
        and 'data-mapping="pathname"' in script
    )
    assert "giscus.app/client.js" not in (lectures / "ledger" / "index.html").read_text()
    assert "giscus.app/client.js" not in (config.parent / "site" / "index.html").read_text()
