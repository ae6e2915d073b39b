"""The Python of the calculator to JavaScript, as one module.

In go texts of Python files, out comes the text of a script with the same names, whose functions give the
same results. It knows the words that these files use, and refuses all others with file and line: a formula
is never half translated. Numbers are floats on both sides, so whole numbers have to stay below 2**53.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping

NATIVE = r"""
const is_number = (x) => typeof x === "number" && Number.isFinite(x);
const is_flag = (x) => typeof x === "boolean";
const is_text = (x) => typeof x === "string";
const is_list = (x) => Array.isArray(x);
const is_mapping = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
const has = (things, name) => (is_mapping(things) ? Object.hasOwn(things, name) : things.includes(name));
const own = (things, name) => (Object.hasOwn(things, name) ? things[name] : null);
const get = (things, name, otherwise) => own(things, name) ?? otherwise;
const keys = (things) => Object.keys(things).sort();
const ten_to = (power) => Number(`1e${power}`);
const number_of = (text) => Number(text);
const sorted_by = (things, key) => [...things].sort((a, b) => key(a) - key(b));
const vars = (thing) => thing;
"""

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%",
    ast.Eq: "===", ast.NotEq: "!==", ast.Is: "===", ast.IsNot: "!==",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.And: "&&", ast.Or: "||",
}  # fmt: skip
METHODS = {
    "append": "push", "strip": "trim", "lower": "toLowerCase", "replace": "replaceAll",
    "endswith": "endsWith", "startswith": "startsWith", "split": "split",
}  # fmt: skip
CALLS = {
    "max": "Math.max", "min": "Math.min", "abs": "Math.abs", "int": "Math.trunc", "float": "Number",
    "floor": "Math.floor", "ceil": "Math.ceil",
}  # fmt: skip
RESERVED = frozenset(
    "await break case catch const debugger default delete do enum export extends function implements "
    "instanceof interface let new null package private protected public static super switch this throw "
    "typeof var void arguments eval Array Math Number Object String JSON Map Set Date Symbol".split()
)


class Untranslatable(Exception):
    """What the translation does not know, with file and line."""


def translate(texts: Mapping[str, str], exported: Iterable[str]) -> str:
    """One script from the texts of these files, by name; files come before those that use them."""
    trees = {name: ast.parse(text, name) for name, text in texts.items()}
    parameters: dict[str, list[str]] = {}
    records: dict[str, list[str]] = {}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                parameters[node.name] = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            elif isinstance(node, ast.ClassDef):
                records[node.name] = [
                    it.target.id
                    for it in node.body
                    if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
                ]
    names = [*parameters, *records]
    if taken := RESERVED.intersection(names):
        raise Untranslatable(f"JavaScript has its own {', '.join(taken)}")
    if len(names) != sum(
        isinstance(n, ast.FunctionDef | ast.ClassDef) for tree in trees.values() for n in tree.body
    ):
        raise Untranslatable(f"two of {', '.join(texts)} define the same name")
    parts = [NATIVE]
    for name, tree in trees.items():
        writer = _Writer(name, parameters, records)
        parts += [text for node in tree.body if (text := writer.top(node))]
    return "".join(parts) + f"export {{ {', '.join(exported)} }};\n"


class _Writer:
    """The text of each node. `parameters` and `records` are of all files: names to arguments and fields."""

    def __init__(
        self, file: str, parameters: Mapping[str, list[str]], records: Mapping[str, list[str]]
    ) -> None:
        self.file, self.parameters, self.records = file, parameters, records
        self.outer = {*parameters, *records, *CALLS, *re.findall(r"^const (\w+)", NATIVE, re.M)}
        self.inner: set[str] = set()  # names of the function that is being written

    def refusal(self, node: ast.AST) -> Untranslatable:
        line = getattr(node, "lineno", 0)
        return Untranslatable(
            f"{self.file}:{line}: no JavaScript is known for {type(node).__name__}: {ast.unparse(node)[:60]}"
        )

    def name(self, name: str, node: ast.AST) -> str:
        if name in self.inner:
            return self.local(name)
        if name in RESERVED:
            raise self.refusal(node)
        return name

    def local(self, name: str) -> str:
        """A name of a function, with a `$` where it would hide one of a file."""
        return f"{name}$" if name in self.outer or name in RESERVED else name

    def bare(self, node: ast.expr) -> str:
        """A value where nothing stands beside it, without its outermost brackets."""
        text = self.value(node)
        plain = isinstance(node, ast.BinOp) and not isinstance(node.op, ast.FloorDiv)
        return text[1:-1] if plain or isinstance(node, ast.Compare | ast.BoolOp | ast.IfExp) else text

    # --- what stands at the top of a file

    def top(self, node: ast.stmt) -> str:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.If():
                return ""  # `if __name__ == "__main__"` and docstrings are for Python
            case ast.FunctionDef():
                return self.function(node)
            case ast.ClassDef():
                return self.record(node)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.inner = {
                    n.target.id
                    for n in ast.walk(value)
                    if isinstance(n, ast.comprehension) and isinstance(n.target, ast.Name)
                }
                return f"const {self.name(name, node)} = {self.value(value)};\n"
        raise self.refusal(node)

    def record(self, node: ast.ClassDef) -> str:
        """A dataclass as a function from its fields to an object; its methods are for Python."""
        defaults = [
            f"{it.target.id}: {self.value(it.value)}"
            for it in node.body
            if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name) and it.value is not None
        ]
        filled = ", ".join([*defaults, "...fields"])
        return f"function {node.name}(fields) {{ return {{ {filled} }}; }}\n"

    def function(self, node: ast.FunctionDef) -> str:
        arguments = [*node.args.args, *node.args.kwonlyargs]
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.inner = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)} | set(stored)
        given = [self.name(a.arg, node) for a in arguments]
        for i, default in enumerate(node.args.defaults, len(node.args.args) - len(node.args.defaults)):
            given[i] += f" = {self.value(default)}"
        found = dict.fromkeys(
            self.name(n, node) for n in stored if n not in {a.arg for a in arguments} | {"_"}
        )
        declared = f"let {', '.join(found)};\n" if found else ""
        body = self.block(node.body[1:] if ast.get_docstring(node) else node.body)
        self.inner = set()
        return f"function {node.name}({', '.join(given)}) {{\n{declared}{body}}}\n"

    # --- statements

    def block(self, body: Iterable[ast.stmt]) -> str:
        return "".join(map(self.statement, body))

    def statement(self, node: ast.stmt) -> str:
        match node:
            case ast.Return(value=value):
                return f"return {self.bare(value) if value else 'undefined'};\n"
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                return f"{self.value(target)} = {self.bare(value)};\n"
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPERATORS:
                return f"{self.value(target)} {OPERATORS[type(op)]}= {self.bare(value)};\n"
            case ast.If(test=test, body=body, orelse=orelse):
                other = f" else {{\n{self.block(orelse)}}}" if orelse else ""
                return f"if ({self.bare(test)}) {{\n{self.block(body)}}}{other}\n"
            case ast.While(test=test, body=body, orelse=[]):
                return f"while ({self.bare(test)}) {{\n{self.block(body)}}}\n"
            case ast.For(target=ast.Name(id=name), iter=over, body=body, orelse=[]):
                return self.loop(name, over, body)
            case ast.Expr(value=ast.Call() as call):
                return f"{self.value(call)};\n"
            case ast.Continue():
                return "continue;\n"
        raise self.refusal(node)

    def loop(self, name: str, over: ast.expr, body: Iterable[ast.stmt]) -> str:
        name = "let i_" if name == "_" else self.local(name)
        match over:
            case ast.Call(func=ast.Name(id="range"), args=ends):
                first, last = ("0", ends[0]) if len(ends) == 1 else (self.value(ends[0]), ends[1])
                plain = name.removeprefix("let ")
                head = f"{name} = {first}; {plain} < {self.value(last)}; {plain} += 1"
            case _:
                head = f"{name} of {self.value(over)}"
        return f"for ({head}) {{\n{self.block(body)}}}\n"

    # --- values

    def value(self, node: ast.expr) -> str:  # noqa: C901, PLR0911, PLR0912  # one case for each kind of value: a table
        match node:
            case ast.Constant(value=None):
                return "null"
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return json.dumps(constant, ensure_ascii=True)
            case ast.Name(id=name):
                return self.name(name, node)
            case ast.JoinedStr(values=parts):
                return "`" + "".join(map(self.piece, parts)) + "`"
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return f"Math.floor({self.value(left)} / {self.value(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return f"({self.value(left)} {OPERATORS[type(op)]} {self.value(right)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.value(operand)}"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.value(operand)})"
            case ast.BoolOp(op=op, values=values):
                return f"({f' {OPERATORS[type(op)]} '.join(map(self.value, values))})"
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
                return f"({self.value(left)} {OPERATORS[type(op)]} {self.value(right)})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({self.value(test)} ? {self.value(body)} : {self.value(orelse)})"
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return f"[{', '.join(map(self.bare, elements))}]"
            case ast.Starred(value=value):
                return f"...{self.value(value)}"
            case ast.Dict(keys=keys, values=values):
                rows = [
                    f"[{self.value(k)}]: {self.value(v)}" if k else f"...{self.value(v)}"
                    for k, v in zip(keys, values, strict=True)
                ]
                return f"({{ {', '.join(rows)} }})"
            case ast.Subscript(
                value=value, slice=ast.Slice(lower=ast.expr() as low, upper=ast.expr() as high, step=None)
            ):
                return f"{self.value(value)}.slice({self.value(low)}, {self.value(high)})"
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice | ast.UnaryOp):
                return f"{self.value(value)}[{self.value(index)}]"
            case ast.Attribute(value=ast.Name(id="nk"), attr=name):
                return name  # `import napkin as nk`: in the script all files are one
            case ast.Attribute(value=value, attr=name):
                return f"{self.value(value)}.{name}"
            case ast.ListComp(
                elt=element, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=tests)]
            ):
                kept = "".join(f".filter(({self.local(name)}) => {self.bare(test)})" for test in tests)
                return f"{self.value(over)}{kept}.map(({self.local(name)}) => {self.bare(element)})"
            case ast.Lambda(args=arguments, body=body):
                return f"({', '.join(self.local(a.arg) for a in arguments.args)}) => {self.bare(body)}"
            case ast.Call():
                return self.call(node)
        raise self.refusal(node)

    def piece(self, node: ast.expr) -> str:
        """A part of an f-string in a template."""
        match node:
            case ast.Constant(value=str(text)):
                return (
                    json.dumps(text, ensure_ascii=True)[1:-1]
                    .replace('\\"', '"')
                    .replace("`", "\\`")
                    .replace("$", "\\$")
                )
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return f"${{{self.bare(value)}}}"
        raise self.refusal(node)

    def call(self, node: ast.Call) -> str:
        named = {keyword.arg: self.bare(keyword.value) for keyword in node.keywords}
        match node.func:
            case ast.Name(id="replace"):
                fields = ", ".join(f"{name}: {value}" for name, value in named.items())
                return f"({{ ...{self.value(node.args[0])}, {fields} }})"
            case ast.Name(id=name) if name in self.records:
                if None in named:
                    return f"{name}({named[None]})"
                rows = dict(zip(self.records[name], map(self.bare, node.args), strict=False)) | named
                return f"{name}({{ {', '.join(f'{key}: {value}' for key, value in rows.items())} }})"
            case ast.Name(id="len"):
                return f"{self.value(node.args[0])}.length"
            case ast.Attribute(value=ast.Name(id="math"), attr=name) | ast.Name(id=name) if name in CALLS:
                return f"{CALLS[name]}({', '.join(map(self.bare, node.args))})"
            case ast.Attribute(value=text, attr="join"):
                return f"{self.value(node.args[0])}.join({self.value(text)})"
            case ast.Attribute(value=value, attr=name) if name in METHODS:
                return f"{self.value(value)}.{METHODS[name]}({', '.join(map(self.bare, node.args))})"
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="nk"), attr=name):
                order = self.parameters.get(name, [])
                given = [*map(self.bare, node.args)]
                given += [named.get(key, "undefined") for key in order[len(given) :]] if named else []
                return f"{name}({', '.join(given)})"
        raise self.refusal(node)
