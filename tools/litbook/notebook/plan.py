"""A lecture's text -> what one notebook of it holds, and which of its sections lie open in it.

In goes a `Lecture`; out come sections, the statements that they need of any of its files, and for a section
that stays a function the reason why. It knows nothing of cells and lines.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litbook.errors import UnusableLecture
from litbook.finding import Finding
from litbook.i18n import gettext_noop
from litbook.lecture.calls import LectureCalls
from litbook.lecture.program import NameInFile, Program, TopLevelStatement
from litbook.python import scopes
from litbook.python.nodes import (
    all_nodes,
    blocks,
    children,
    closure,
    dotted,
    first_line,
    mark_of,
    own_nodes,
)
from litbook.record.device_kinds import needs

ImportStatement = ast.Import | ast.ImportFrom
_SCOPE = {"locals", "vars", "dir", "exec", "eval", "currentframe", "_getframe", "stack"}


@dataclass(frozen=True)
class NotebookPlan:
    """What one notebook holds: the part or lecture `root`, and all that this leans on."""

    text: LectureCalls
    root: int
    sections: list[int]  # with all that they call, in reading order
    why: dict[int, str]  # for each section that stays a function, why it does
    before: list[ast.stmt]  # what `main` does before it calls this part, other than telling and calling
    keys_before: list[NameInFile]  # what that reads and sets
    reads: dict[int, list[NameInFile]]  # what each section that lies open reads
    needed: dict[TopLevelStatement, None]  # the statements of the files: what has an effect, and what is read
    read: set[NameInFile]  # the names that the notebook's code reads, by the file that it stands in

    def opened_section(self, statement: ast.stmt) -> int | None:
        """The section that lies open where a statement calls it."""
        target = self.text.target(statement)
        return None if target in self.why else target


def plan_of(text: LectureCalls, root: int, raised: frozenset[str] = frozenset()) -> NotebookPlan:
    """The plan of one notebook. `raised` are sections that ended with an exception.

    Raises `UnusableLecture` where one namespace cannot hold it all.
    """
    sections = closure([root], lambda section: text.called.get(section, ()))  # in reading order
    before = list[ast.stmt]()
    for statement in text.body(text.main) if text.main is not None and text.main != root else ():
        target = text.target(statement)
        if target == root:
            break
        if target is None and not text.word(statement):
            before.append(statement)
    why = {i: reason for i in sections if (reason := _reason_of_text(text, i, raised))}
    while True:  # what stays a function reads other names, and so others may have to
        program, file = text.program, text.file(text.main) if text.main is not None else 0
        keys_before = [(file, name) for node in before for name in text.reads(node) | scopes.sets(node)]
        # What a section that lies open does itself, other than calling others and telling something; and of
        # the questions in it the answers.
        reads: dict[int, list[NameInFile]] = {}
        for i in (i for i in sections if i not in why):
            body = text.body(i)
            own_part = [node for node in body if text.target(node) in (None, *why) and not text.word(node)]
            asked = [ast.Expr(answer[0]) for answer in map(text.answer, body) if answer]
            reads[i] = text.keys(i, *own_part, *asked)
        inside = program.imported_files(map(text.file, sections)) | {0}
        chosen = [unit for unit in program.units if unit.file in inside and _has_effect(program, unit)]
        closed = [(text.file(i), text.lecture.functions[i].name) for i in why]
        start = [*closed, *keys_before, *(key for keys in reads.values() for key in keys)]
        units = {*program.needed_statements(start + [key for unit in chosen for key in unit.keys]), *chosen}
        needed = {unit: None for unit in program.units if unit in units}
        read = {key for unit in needed for key in unit.keys} | {*start}
        plan = NotebookPlan(text, root, sections, why, before, keys_before, reads, needed, read)
        more = {i: reason for i in sections if i not in why and (reason := _reason(plan, i))}
        if not more:
            break
        why = why | more
    if problems := [*_clashes(plan)]:
        raise UnusableLecture(problems)
    return plan


def _has_effect(program: Program, unit: TopLevelStatement) -> bool:
    """Whether a statement of a module does more than bind a name: a call, a loop, a library's setting."""
    if any(program.source(unit.file, name) in program.foreign for name in unit.fills):
        return True
    match unit.node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import():
            return False
        case ast.ImportFrom(module=module, names=names):
            return not unit.text and (module == "__future__" or any(alias.name == "*" for alias in names))
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.AugAssign(value=value):
            return _calls(unit.node) if unit.fills else value is not None and _calls(value)
    return True


# ---------------------------------------------------------------------------- which sections lie open


def _reason_of_text(text: LectureCalls, index: int, raised: frozenset[str]) -> str:
    """Why a section's own text must stay a function."""
    node, need = text.function(index), needs(text.lecture.functions[index].requires)
    if text.lecture.functions[index].kind == "section" and (need.ranks or need.simulated):
        return (
            gettext_noop("it runs on ranks")
            if need.ranks
            else gettext_noop("one process stands for its ranks")
        )
    if text.lecture.functions[index].name in raised:
        return gettext_noop("it raised when it was recorded")
    if others := [decorator for decorator in node.decorator_list if not mark_of(decorator)]:
        return gettext_noop("it has a decorator") + f": @{ast.unparse(others[0])}"
    if any(isinstance(inner, ast.Return) for inner in own_nodes(node)):
        return gettext_noop("it returns early")
    for inner in all_nodes(node):
        if isinstance(inner, ast.Nonlocal) and scopes.local_names(node) & set(inner.names):
            return gettext_noop("a function in it assigns its names (nonlocal)")
        if isinstance(inner, ast.Call) and dotted(inner.func).split(".")[-1] in _SCOPE:
            if not inner.args or dotted(inner.func).split(".")[-1] in ("exec", "eval"):
                return f"it asks for its own scope ({dotted(inner.func)})"
    noted = (inner.annotation for inner in own_nodes(node) if isinstance(inner, ast.AnnAssign))
    meant = {name for hint in noted for name in scopes.reads(hint)}
    undefined = meant - scopes.local_names(node) - {*dir(builtins)}
    origins = {text.program.origin(text.file(index), name) for name in {*undefined, "annotations"}}
    late = "__future__.annotations" in origins
    if not late and any(origin.startswith("builtins.") for origin in origins - {"builtins.annotations"}):
        # At the top level Python looks it up.
        return gettext_noop("it annotates with a name that nothing defines")
    return ""


def _reason(plan: NotebookPlan, index: int) -> str:
    """Why a section must stay a function where it stands in this notebook."""
    text = plan.text
    key = text.file(index), text.lecture.functions[index].name
    callers = [i for i in plan.reads for node in text.body(i) if plan.opened_section(node) == index]
    read = any(name == key[1] and text.program.source(file, name) == key for file, name in plan.read)
    if index != plan.root and (len(callers) != 1 or read):
        return gettext_noop("it is called from more than one place, or used as a value")
    others = [plan.keys_before, *(keys for i, keys in plan.reads.items() if i != index)]
    names = {name for keys in others for _, name in keys}.union(*(unit.reads for unit in plan.needed))
    if clash := text.local_names(index) & names:
        return gettext_noop("its name is also one of other code here") + f": {min(clash)}"
    if callers:
        body = text.body(callers[0])
        at = next(i for i, node in enumerate(body) if text.target(node) == index)
        if any(text.target(node) is None and not text.word(node) for node in body[at + 1 :]):
            return gettext_noop("the section around it goes on after it")
    return ""


# ---------------------------------------------------------------------------- one namespace


def _clashes(plan: NotebookPlan) -> Iterator[Finding]:
    """Two things of two files under one name, and modules of the lecture that are asked for whole."""
    program, files = plan.text.program, plan.text.lecture.files

    def describe_place(key: NameInFile) -> str:
        """`that of lecture/models.py:12`."""
        unit = program.binding(*key)
        if unit is None:
            return f"Python's own, in {files[key[0]].path}"
        return f"that of {files[unit.file].path}:{first_line(unit.node)}"

    notebook = f"the notebook of {plan.text.lecture.functions[plan.root].name}()"
    plain = (unit for unit in plan.needed if unit.text or not isinstance(unit.node, ImportStatement))
    first: dict[str, NameInFile] = {}
    for key in sorted({*plan.read, *((unit.file, name) for unit in plain for name in unit.binds)}):
        other = first.setdefault(key[1], key)
        if program.origin(*other) != program.origin(*key):
            both = f"{describe_place(other)} and {describe_place(key)}"
            what = f"{notebook} needs two things that are called {key[1]!r}: {both}"
            yield Finding("clash", what, None, "give one of them another name")
    # Modules of the lecture that are used as values, or imported where no statement of the module is.
    uses = list[tuple[int, ast.stmt, str, str]]()
    for (file, name), node in program.whole.items():
        if (file, name) in plan.read:
            at = name if isinstance(node, ast.Import) else f".{name}"
            uses.append((file, node, name, f"import what you need: from {at} import …"))
    for unit in plan.needed:
        for inner in blocks(unit.node):
            if isinstance(inner, ast.ImportFrom) and any(program.names.imports(unit.file, inner)):
                uses.append((unit.file, inner, str(inner.module), "import it at the top of the file"))
    for file, node, name, way_out in uses:
        what = f"{notebook} has no module {name}: its files become one"
        yield Finding("clash", what, files[file].place_of(node), way_out)


def _calls(node: ast.AST) -> bool:
    """Whether evaluating `node` calls anything; the body of a lambda waits."""
    if isinstance(node, ast.Lambda):
        return False
    return isinstance(node, ast.Call | ast.Await) or any(map(_calls, children(node)))


def span(group: Sequence[ast.stmt]) -> tuple[int, int]:
    """First line, decorators included, and last line."""
    return min(map(first_line, group)), max(node.end_lineno or node.lineno for node in group)


def groups_of(body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Neighbouring statements that share a line belong together."""
    groups: list[list[ast.stmt]] = []
    for node in body:
        if groups and span(groups[-1])[1] >= span([node])[0]:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups
