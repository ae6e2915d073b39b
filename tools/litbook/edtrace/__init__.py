"""Other tools' words in ours, so that what was written for edtrace or lectrace runs here unchanged.

Here stands what the core is told of them: the tools, their modules, their directives. `words` says what each
word does.
"""

from __future__ import annotations

import ast
import copy
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from litbook import project
from litbook.lecture import directives
from litbook.lecture.author_words import HOMES, OURS
from litbook.snapshot import snapshot

WORDS = {"text": "note", "note": "speaker_note", "image": "image", "video": "link", "link": "link",
         "plot": "figure", "graph": "note", "table": "note", "system_text": "note"}  # fmt: skip
MODULES = ("litbook.edtrace.words", "edtrace", "edtrace.execute_util", "execute_util", "lectrace")


def _install_words(tool: str, lecture: Path) -> AbstractContextManager[None]:
    from litbook.edtrace.words import install_words  # where one runs

    return install_words(tool, lecture)


def _rewrite_link(call: ast.Call) -> ast.Call:
    """`link(title="…", url="…")` as `link("https://…", "…")`; an ellipsis for what only a run knows."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if call.args or "url" not in given:
        return call
    texts = (given["url"], given.get("title", given["url"]))
    stands, unknown = ast.Constant | ast.JoinedStr, ast.Constant("…")
    return ast.Call(call.func, [text if isinstance(text, stands) else unknown for text in texts], [])


def _rewrite_text(call: ast.Call) -> ast.Call:
    """`text("a <b>word</b>")` as `note("a **word**")`."""
    from litbook.edtrace.markup import as_markdown  # where such a lecture is drawn

    class MarkdownRewriter(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant(as_markdown(node.value)) if isinstance(node.value, str) else node

    return ast.Call(
        ast.Name("note"), [MarkdownRewriter().visit(copy.deepcopy(node)) for node in call.args[:1]], []
    )


snapshot.INSTEAD.append("__lectrace__")
project.WORDS |= {tool: partial(_install_words, tool) for tool in ("edtrace", "lectrace")}
directives.FOREIGN |= {"invisible": "hide", "animate": ""}
HOMES.update(dict.fromkeys(MODULES, WORDS))
OURS.update(text=_rewrite_text, link=_rewrite_link)
