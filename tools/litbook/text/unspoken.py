"""Prose that did not run: what a piece says as far as its text stands in the source."""

from __future__ import annotations

import ast
import inspect

from litbook.text.tree import dotted


def unspoken(statement: ast.stmt) -> str:
    """What a piece says without being run, as Markdown; an ellipsis where running would put a value.

    A note its text, `question()` what it asks, `misbelief()` both sides, a figure or picture its caption,
    `link()` its text and target. "" for other statements.
    """
    match statement:
        case ast.Expr(ast.Call(func, given, keywords)):
            named = {k.arg: k.value for k in keywords if k.arg}
        case _:
            return ""
    texts = [inspect.cleandoc(_unspoken_text(node)) for node in given]
    match dotted(func).split(".")[-1], texts:
        case "note", [text, *_]:
            return text
        case "question", [text, *_]:
            return f"**Check yourself.** {text}"
        case "misbelief", [said, run, *_]:
            return f"**Commonly said:** “{said}”\n\n**Run:** {run}"
        case "figure" | "image", _:
            caption = named.get("caption") or named.get("alt") or ast.Constant("…")
            return f"**A drawing:** {inspect.cleandoc(_unspoken_text(caption))}"
        case "link", [target, *rest]:
            name = dotted(given[0])
            text, to = (rest or [""])[0], f"#{name}" if name else target
            return f"{text} [{to}]".strip() if to.startswith("@") else f"[{text or name or to}]({to})"
    return ""


def _unspoken_text(node: ast.expr) -> str:
    """A string's text, as far as it stands in the source."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values):
            return "".join(map(_unspoken_text, values))
        case ast.BinOp(left, ast.Add(), right):
            return _unspoken_text(left) + _unspoken_text(right)
    return "…"
