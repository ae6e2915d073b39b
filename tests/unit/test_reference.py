"""The reference is made of the code: it names every word, directive and command, each with what the code says of it."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

import litbook
import reference
import rules
from litbook.cli import group
from litbook.edtrace import words
from litbook.lecture.directives import DIRECTIVES
from litbook.rules.registry import all_rules


@pytest.fixture(scope="module")
def page() -> str:
    """The page's Markdown, as a build has it."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    return rules.on_page_markdown(
        reference.on_page_markdown((docs / "reference.md").read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("name", litbook.__all__)
def test_the_reference_has_each_word_with_its_signature_and_docstring(page: str, name: str) -> None:
    said = getattr(litbook, name).__doc__.partition("\n")[0]
    assert f"### `{name}`\n\n```python\n{name}(" in page
    assert said in page and len(said) > 20


def test_the_reference_has_each_directive_and_command(page: str) -> None:
    commands = {name: command.get_short_help_str(200) for name, command in group.commands.items()}
    assert all(f"| `# @{name}` | {said} |" in page for name, said in DIRECTIVES.items())
    assert all(f"| `litbook {name}` | {said} |" in page for name, said in commands.items())


def test_the_reference_has_each_word_of_other_tools(page: str) -> None:
    assert [name for name in words.__all__ if f"#### `{name}` {{ data-search-exclude }}\n" not in page] == []


def test_the_reference_has_each_rule_with_an_anchor_of_its_own(page: str) -> None:
    headings = re.findall(r"^#+ `?([\w-]+)`?(?: \{.*)?$", page, re.MULTILINE)
    assert set(all_rules()) <= set(headings)
    assert [code for code in all_rules() if headings.count(code) > 1] == []


def test_no_comment_is_left_on_the_page(page: str) -> None:
    assert "<!--" not in page


def test_a_signature_is_as_an_author_reads_it() -> None:
    assert reference.signature("note", litbook.note) == "note(text: str)"
    assert reference.signature("link", litbook.link).endswith(", text: str = '')")


def test_a_word_without_a_docstring_is_an_error() -> None:
    module = types.ModuleType("bare")
    vars(module).update(bare=lambda: None, __all__=["bare"])
    with pytest.raises(ValueError, match="the reference needs a docstring of bare"):
        reference.words(module)


def test_what_is_said_to_who_comes_from_elsewhere_exists() -> None:
    text = (Path(reference.__file__).parents[1] / "coming-from.md").read_text(encoding="utf-8")
    here = "\n".join(re.findall(r"^\| .* \| (.*) \|$", text, re.MULTILINE))
    assert set(re.findall(r"`(\w+)\(", here)) <= {*litbook.__all__, "main", "breakpoint"}
    assert set(re.findall(r"`@(\w+)", here)) <= {*litbook.__all__, "main"}
    assert set(re.findall(r"# @(\w+)", here)) <= set(DIRECTIVES)
    assert set(re.findall(r"`litbook (\w+)", here)) <= set(group.commands)
