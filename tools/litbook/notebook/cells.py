"""A lecture's text -> the order of a notebook: which text goes into which cell. Knows no values.

A section is a function; in a notebook its body lies open, statement by statement, so that a reader can stop
anywhere, look at every name and change a line. Opening a function moves its names to the top level. That is
the same program only where nothing can tell the difference; else a section stays a function like any other,
and stands where it is first needed. `plan` decides that, `SectionStart.why` says why, and
`docs/how-it-works.md` tells readers.

The files of a lecture become one namespace: what they import from each other is already there.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import SECTIONS, Lecture, Watch
from litbook.lecture.program import NameInFile, TopLevelStatement, is_definition
from litbook.notebook.lines import CellCode, CellLine, CellLineWriter
from litbook.notebook.plan import ImportStatement, NotebookPlan, groups_of, plan_of, span
from litbook.python.nodes import DefinitionNode, FunctionNode, all_nodes, modules_in, parse_text, segment
from litbook.record.device_kinds import needs


@dataclass(frozen=True)
class PieceStatement:
    """A statement whose prose, picture or link the record has."""

    function: int
    first: int
    last: int
    answer: CellCode | None = None  # of a question: what computes it


@dataclass(frozen=True)
class SectionStart:
    """A section begins. `why` is empty where its body lies open, else the reason why it stays a function."""

    function: int
    level: int
    device: str | None = None
    why: str = ""


LayoutItem = CellCode | PieceStatement | SectionStart


@dataclass(frozen=True)
class Layout:
    """One notebook: the text of its cells in order, and what that text leans on."""

    root: int
    imports: tuple[str, ...]
    setting: tuple[CellCode, ...]  # constants, and what they need
    items: tuple[LayoutItem, ...]
    modules: tuple[str, ...]  # that the code imports, by their first names; the lecture's own are none
    names: frozenset[str]  # every name in the lecture's text: a notebook's own words avoid them


def layouts(lecture: Lecture, roots: Sequence[int], raised: Collection[str] = ()) -> list[Layout]:
    """A notebook for each function in `roots`: `main`, or parts. `raised` are sections that did not end.

    Raises `UnusableLecture` where two files of the lecture give one name to two things that a notebook needs.
    """
    text = LectureCalls(lecture)
    rows = [CellLineWriter(lecture, file) for file in lecture.files]
    names = set[str]()
    for node in (node for file in lecture.files for node in all_nodes(file.tree)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add((other or name).partition(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    plans = (plan_of(text, root, frozenset(raised)) for root in roots)
    return [_LayoutWriter(plan, rows).layout(frozenset(names)) for plan in plans]


class _LayoutWriter:
    """Puts the items of one notebook in order. Definitions come right before what first needs them."""

    def __init__(self, plan: NotebookPlan, rows: Sequence[CellLineWriter]) -> None:
        self.plan, self.rows = plan, rows
        self.text, self.lecture, self.program = plan.text, plan.text.lecture, plan.text.program
        self.emitted: set[ast.AST] = set()
        self.items: list[LayoutItem] = []

    def layout(self, names: frozenset[str]) -> Layout:
        # The imports of all files, one name a line, without what this notebook never names.
        imports = dict[str, None]()
        for unit in self.plan.needed:
            node = unit.node
            for alias in node.names if isinstance(node, ImportStatement) and not unit.text else ():
                name = (alias.asname or alias.name).partition(".")[0]
                if alias.name in ("*", "annotations") or (unit.file, name) in self.plan.read:
                    alone = copy.copy(node)
                    alone.names = [alias]  # type: ignore[attr-defined]
                    imports[ast.unparse(alone)] = None
        # The needed statements of the files that are no definitions, and the definitions that they need.
        plain = [unit for unit in self.plan.needed if not is_definition(unit)]
        early = self.program.needed_statements(
            (key for unit in plain for key in unit.keys), may=is_definition
        )
        setting: list[CellCode] = []
        for unit in self.plan.needed:
            if (
                unit in early
                if is_definition(unit)
                else unit.text or not isinstance(unit.node, ImportStatement)
            ):
                self.emitted.add(unit.node)
                setting.append(self._module_statement(unit))
        setting += [self._code(group, self.text.main or 0, None) for group in groups_of(self.plan.before)]
        self._section(self.plan.root, 1, None)
        # `from __future__` comes first, then the standard library.
        keys = dict[str, tuple[bool, bool, bool, str]]()
        for line in imports:
            kind, name, *_ = line.split()
            foreign = name.partition(".")[0] not in sys.stdlib_module_names
            keys[line] = name != "__future__", foreign, kind == "from", line
        inside = (unit.node for unit in self.plan.needed if not isinstance(unit.node, ImportStatement))
        open_ = (self.text.function(i) for i in self.plan.sections)
        modules = (name for node in (*inside, *open_) for name in modules_in(node))
        return Layout(
            root=self.plan.root,
            imports=tuple(sorted(imports, key=keys.__getitem__)),
            setting=tuple(setting),
            items=tuple(self.items),
            modules=tuple(dict.fromkeys([*imported_modules("\n".join(imports)), *modules])),
            names=names,
        )

    # -- sections

    def _section(self, index: int, level: int, device: str | None) -> None:
        """A section with its heading: open, or as a function where the root itself must stay one."""
        spec = self.lecture.functions[index]
        if index in self.plan.why:
            self._define([(spec.file, spec.name)], level - 1)
            row, device = CellLine(f"{spec.name}()"), _device(spec.requires) or device
            if device:
                row = replace(row, text=f"    {row.text}")
            self.items.append(CellCode(index, spec.first, spec.last, (row,), device=device, call=True))
            return
        device = _device(spec.requires) or device
        self.items.append(SectionStart(index, level, device))
        for group in groups_of(self.text.body(index)):  # of statements that share lines; most often one
            node, alone = group[0], len(group) == 1
            if alone and (target := self.plan.opened_section(node)) is not None:
                self._section(target, level + 1, device)
            elif alone and (word := self.text.word(node)):
                # The record tells it; of a question the notebook also has what computes the answer.
                (first, last), code, asked = span([node]), None, self.text.answer(node)
                if asked is not None:
                    expression, unit = asked
                    self._define(self.text.keys(index, ast.Expr(expression)), level)
                    text = segment(self.lecture.file_of_function(index).text, expression)
                    unit = unit if isinstance(unit, str) else None
                    row = CellLine("    " if device else "", Watch("answer", text, unit, first, expression))
                    code = CellCode(index, first, last, (row,), device=device)
                if word != "speaker_note":
                    self.items.append(PieceStatement(index, first, last, code))
            else:
                self._define(self.text.keys(index, *group), level)
                code = self._code(group, index, device)
                called = self.text.target(node) is not None  # whose value is None
                self.items.append(replace(code, quiet="") if called else code)

    def _define(self, keys: Iterable[NameInFile], level: int) -> None:
        """Define what is called by these names, in turn too, unless it has been."""
        for unit in self.program.needed_statements(keys, may=is_definition):
            if unit.node not in self.emitted:
                self.emitted.add(unit.node)
                function = self.lecture.function_of.get(unit.node)
                if function in self.plan.why and function is not None:
                    device = _device(self.lecture.functions[function].requires)
                    self.items.append(SectionStart(function, level + 1, device, self.plan.why[function]))
                self.items.append(self._module_statement(unit))

    # -- text

    def _module_statement(self, unit: TopLevelStatement) -> CellCode:
        """A statement of a module with the comment right above it; a section's own with what it shows."""
        function = self.lecture.function_of[self.lecture.files[unit.file].tree]
        if unit.text:
            return CellCode(function, unit.node.lineno, unit.node.lineno, (CellLine(unit.text),))
        function = self.lecture.function_of.get(unit.node, function)
        code = self.rows[unit.file].code([unit.node], function)
        if isinstance(unit.node, FunctionNode) and self.lecture.functions[function].kind in SECTIONS:
            code = replace(code, rows=(CellLine("@section"), *code.rows))
        return replace(code, definition=isinstance(unit.node, DefinitionNode))

    def _code(self, group: Sequence[ast.stmt], function: int, device: str | None) -> CellCode:
        dedent = 0 if device else group[0].col_offset  # what needs a device stands below an `if`
        return replace(self.rows[self.text.file(function)].code(group, function, dedent), device=device)


def _device(required: str | None) -> str | None:
    """The device that a section needs; who opens a notebook has time."""
    kind = needs(required).kind
    return kind.name if kind.is_device else None


def imported_modules(text: str) -> list[str]:
    """The first names of the modules that Python `text` imports, anywhere; none where it is no Python."""
    try:
        return [*modules_in(parse_text(text, "<module>"))]
    except SyntaxError:
        return []
