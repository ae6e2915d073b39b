"""The author's words that hand a piece over: what each is to readers, and what it says where it never ran."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Container
from dataclasses import dataclass

from litbook.text.tree import dotted


def later(text: str) -> str:
    """The text as it stands; it is in the catalogue, and looked up where a reader sees it."""
    return text


@dataclass(frozen=True)
class Word:
    """One word. Its prose is in the arguments at these positions, or given by these names."""

    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    seen: bool = True  # by readers of a page, as a piece of the word's own name
    stated: bool = True  # a notebook tells it from the record; else the word's own code runs there


WORDS = {
    "note": Word((0,), ("text",)),
    "misbelief": Word((0, 1), ("said", "run")),
    "question": Word((0,), ("text", "hint", "why")),
    "figure": Word(names=("caption", "alt"), stated=False),
    "image": Word(names=("caption", "alt")),
    "link": Word((1,), ("text",)),
    "speaker_note": Word((0,), ("text",), seen=False),
}
UNKNOWN = Word((0, 1), ("text", "said", "run", "caption", "alt", "hint", "why"))  # called by another name
ASKED = later("**Check yourself.**")  # how the prose of a question begins

# Module -> its words, and which of ours each is. Other tools' are there once their package is brought in.
HOMES = {"litbook": {name: name for name in WORDS}}
# What a call of another tool's word, by the word's name, is in ours; the call itself where it is one of ours.
OURS: dict[str, Callable[[ast.Call], ast.Call]] = {}

SEEN = frozenset(name for name, word in WORDS.items() if word.seen)
STATED = frozenset(name for name, word in WORDS.items() if word.stated)


def unspoken(statement: ast.stmt, known: Container[str] | None = None) -> str:
    """What a piece says without being run, as Markdown; an ellipsis where running would put a value.

    A note its text, `question()` what it asks, `misbelief()` both sides, a figure or picture its caption,
    `link()` its text and target, where that is one of the definitions `known`. "" for other statements.
    """
    return "\n\n".join(filter(None, (_unspoken(it, known) for it in calls(statement))))


def calls(statement: ast.stmt) -> list[ast.Call]:
    """The calls that a statement is, and nothing else: one, or several on one line, `note("…"), link(…)`."""
    match statement:
        case ast.Expr(ast.Tuple(several)):
            found = [it for it in several if isinstance(it, ast.Call)]
            return found if len(found) == len(several) else []
        case ast.Expr(ast.Call() as call):
            return [call]
    return []


def _unspoken(call: ast.Call, known: Container[str] | None) -> str:
    if ours := OURS.get(dotted(call.func).rpartition(".")[2]):
        call = ours(call)
    given, named = call.args, {k.arg: k.value for k in call.keywords if k.arg}
    texts = [inspect.cleandoc(_unspoken_text(node)) for node in given]
    match dotted(call.func).split(".")[-1], texts:
        case "note", [text, *_]:
            return text
        case "question", [text, *_]:
            return f"{ASKED} {text}"
        case "misbelief", [said, run, *_]:
            return f"**Commonly said:** “{said}”\n\n**Run:** {run}"
        case "figure" | "image", _:
            caption = named.get("caption") or named.get("alt") or ast.Constant("…")
            return f"**A drawing:** {inspect.cleandoc(_unspoken_text(caption))}"
        case "link", [target, *rest]:
            name = dotted(given[0])
            text, to = (rest or [""])[0], f"#{name}" if name else target
            if name and known is not None and name.rpartition(".")[2] not in known:
                return text or f"`{name}`"  # what it holds, only a run can tell
            return f"{text} [{to}]".strip() if to.startswith("@") else f"[{text or name or to}]({to})"
    return ""


def first_heading(tree: ast.Module) -> str:
    """The first heading in the prose of a file, by its lines; "" where no note begins with one."""
    notes = sorted((it for it in ast.walk(tree) if isinstance(it, ast.Expr)), key=lambda it: it.lineno)
    found = (re.match(r"#{1,6}[ \t]+(.*?)[ \t#]*(\n|$)", unspoken(it)) for it in notes)
    return next((heading[1] for heading in found if heading and heading[1]), "")


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
