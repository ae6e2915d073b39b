"""The author's words that hand a piece over: what each is to readers, and what it says where it never ran."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from litbook.i18n import gettext_noop
from litbook.python.nodes import dotted


@dataclass(frozen=True)
class Word:
    """One word: by position or name, which of its arguments are prose, and in which field of its piece."""

    fields: Mapping[int | str | None, str]
    seen: bool = True  # by readers of a page, as a piece of the word's own name
    stated: bool = True  # a notebook tells it from the record; else the word's own code runs there


WORDS = {
    "note": Word({0: "text", "text": "text"}),
    "misbelief": Word({0: "text", "said": "text", 1: "data", "run": "data"}),
    "question": Word({0: "text", "text": "text", "hint": "data", "why": "why", "wrong": "wrong"}),
    "figure": Word({"caption": "text", "alt": "alt"}, stated=False),
    "explore": Word(
        {"caption": "text", "alt": "alt", "do": "data", "see": "why", "limit": "grid"}, stated=False
    ),
    "image": Word({"caption": "text", "alt": "alt"}),
    "link": Word({1: "text", "text": "text"}),
    "speaker_note": Word({0: "text", "text": "text"}, seen=False),
}
# Around what a hole of a word's own f-string puts into its text while it is recorded: see `probe.holes`.
OPENS, CLOSES = "\ufdd0", "\ufdd1"  # noncharacters: no text of the world's holds them
# One that is called by another name.
UNKNOWN = Word(dict.fromkeys((0, 1, *(name for word in WORDS.values() for name in word.fields)), "text"))
ASKED = gettext_noop("**Check yourself.**")  # how the prose of a question begins

# Module -> its words, and which of ours each is. Other tools' are there once their package is brought in.
HOMES = {"litbook": {name: name for name in WORDS}}
# What a call of another tool's word, by the word's name, is in ours; the call itself where it is one of ours.
OURS: dict[str, Callable[[ast.Call], ast.Call]] = {}

SEEN = frozenset(name for name, word in WORDS.items() if word.seen)
STATED = frozenset(name for name, word in WORDS.items() if word.stated)


def arguments(call: ast.Call) -> list[tuple[int | str | None, ast.expr]]:
    """What a call is given, by position or name."""
    return [*enumerate(call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]


def piece_texts(statement: ast.stmt, words: Mapping[str, str]) -> list[tuple[str, dict[str, str]]]:
    """The kinds of the pieces that a statement's words hand over, and of each the texts that stand there.

    `words` are the author's, by what the file calls them; a text that is computed is none of these.
    """
    pieces = list[tuple[str, dict[str, str]]]()
    for call in calls(statement):
        name, fields = words.get(dotted(call.func), ""), dict[str, str]()
        for place, value in arguments(call) if name in WORDS else ():
            if (
                place in WORDS[name].fields
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                fields[WORDS[name].fields[place]] = inspect.cleandoc(value.value)
        pieces.append((name.removesuffix("_note"), {name: text for name, text in fields.items() if text}))
    return pieces


def static_text(statement: ast.stmt, defined: Container[str] | None = None) -> str:
    """What a piece says without being run, as Markdown; an ellipsis where running would put a value.

    A note its text, `question()` what it asks, `misbelief()` both sides, a figure or picture its caption,
    `link()` its text and target, where that is one of the definitions `defined`. "" for other statements.
    """
    told = list[str]()
    for written in calls(statement):
        ours = OURS.get(dotted(written.func).rpartition(".")[2])
        call = ours(written) if ours else written
        given, named = call.args, {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        texts = [inspect.cleandoc(_static_string(node)) for node in given]
        match dotted(call.func).split(".")[-1], texts:
            case "question", [text, *_]:
                told.append(f"{ASKED} {text}")
            case "misbelief", [claim, run, *_]:
                told.append(f"**Commonly said:** “{claim}”\n\n**Run:** {run}")
            case "figure" | "image" | "explore", _:
                caption = named.get("caption") or named.get("alt") or ast.Constant("…")
                told.append(f"**A drawing:** {inspect.cleandoc(_static_string(caption))}")
            case "link", [target, *rest]:
                name = dotted(given[0])
                text, to = (rest or [""])[0], f"#{name}" if name else target
                if name and defined is not None and name.rpartition(".")[2] not in defined:
                    told.append(text or f"`{name}`")  # what it holds, only a run can tell
                elif to.startswith("@"):
                    told.append(f"{text} [{to}]".strip())
                else:
                    told.append(f"[{text or name or to}]({to})")
            case word, [text, *_] if word in SEEN:
                told.append(text)
    return "\n\n".join(filter(None, told))


def calls(statement: ast.stmt) -> list[ast.Call]:
    """The calls that a statement is, and nothing else: one, or several on one line, `note("…"), link(…)`."""
    match statement:
        case ast.Expr(ast.Tuple(several)):
            listed = [call for call in several if isinstance(call, ast.Call)]
            return listed if len(listed) == len(several) else []
        case ast.Expr(ast.Call() as call):
            return [call]
    return []


def first_heading(tree: ast.Module) -> str:
    """The heading that the prose of `main()` begins with; "" where it begins otherwise.

    The first heading anywhere would be one of the lecture's middle.
    """
    mains = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    told_by = (node for main in mains for node in main.body if calls(node))
    heading = re.match(r"#{1,6}[ \t]+(.*?)[ \t#]*(\n|$)", next(map(static_text, told_by), ""))
    return heading[1] if heading else ""


def _static_string(node: ast.expr) -> str:
    """A string's text, as far as it stands in the source."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values):
            return "".join(map(_static_string, values))
        case ast.BinOp(left, ast.Add(), right):
            return _static_string(left) + _static_string(right)
    return "…"
