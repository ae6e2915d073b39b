"""A line of code -> what a notebook would show of it and a page does not: `plt.show()`, a value alone.

In goes the text of one statement, out come what is lost and the way out. It knows no lecture.
"""

from __future__ import annotations

import ast

from litbook.python.nodes import dotted

_PLOTS = ("plt", "pyplot", "pylab")
_VALUES = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.BinOp, ast.Compare, ast.JoinedStr)
_LOOKS = ("describe", "head", "sample", "tail")  # what is asked of a frame to look at it


def find_lost_output(code: str) -> tuple[str, str] | None:
    """What is lost, and the way out; None where nothing is."""
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
        case ast.Expr(ast.BinOp(op=ast.LShift() | ast.RShift())):  # to some libraries these do something
            return None
        case ast.Expr(value) if isinstance(value, _VALUES):
            pass
        case ast.Expr(ast.Call(ast.Attribute(_, name)) as value) if name in _LOOKS:
            pass
        case _:
            return None
    text = ast.unparse(value)
    text = text[1:-1] if isinstance(value, ast.Tuple) else text  # without its parentheses
    return f"{text} stands alone, and is shown nowhere", f"inspect it: {text}  # @inspect {text}"
