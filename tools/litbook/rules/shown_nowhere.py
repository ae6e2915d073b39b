"""A line of code -> what a notebook would show of it and a page does not: `plt.show()`, a value alone.

In goes the text of one statement, out come what is lost and the way out. It knows no lecture.
"""

from __future__ import annotations

import ast

from litbook.python.nodes import dotted

_PLOTS = ("plt", "pyplot", "pylab")
_STARTS = ("run", "call", "check_call", "Popen")  # of subprocess
_LOOKS = ("describe", "head", "sample", "tail")  # what is asked of a frame to look at it


def find_lost_output(code: str) -> tuple[str, str] | None:
    """What is lost, and the way out; None where nothing is."""
    if past := _prints_past(code):
        return (
            past,
            "take what it says and print that: subprocess.run(…, capture_output=True, text=True).stdout",
        )
    if "=" in code or "@" in code:  # it assigns, compares, or says itself what to show
        return None
    try:
        [statement] = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement, none, or several
        return None
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(where, "show"), args=[])) if (
            dotted(where).split(".")[-1] in _PLOTS
        ):
            plots = dotted(where)
            what = f"{plots}.show() shows nothing here"
            return what, f'hand the figure over: figure({plots}.gcf(), caption="…", alt="…")'
        case ast.Expr(ast.Name() | ast.Attribute() | ast.Subscript() as value):
            pass
        case ast.Expr(ast.Call(ast.Attribute(_, name)) as value) if name in _LOOKS:
            pass
        case _:
            return None
    text = ast.unparse(value)
    return f"{text} stands alone, and is shown nowhere", f"inspect it: {text}  # @inspect {text}"


def _prints_past(code: str) -> str:
    """Why what a statement prints is on no page: it goes to the terminal, past Python's own `print`."""
    if "os." not in code and "subprocess" not in code:
        return ""
    try:
        tree = ast.parse(code.strip())
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(ast.Name("os"), "write"), [ast.Constant(1 | 2), _]):
                pass
            case ast.Call(ast.Attribute(ast.Name("os"), "system")):
                pass
            case ast.Call(ast.Attribute(ast.Name("subprocess"), name)) if name in _STARTS and not any(
                keyword.arg in (None, "stdout", "capture_output") for keyword in node.keywords
            ):
                pass
            case _:
                continue
        return f"what {ast.unparse(node.func)}(…) prints is on no page"
    return ""
