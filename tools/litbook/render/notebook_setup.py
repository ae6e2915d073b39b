"""What a notebook needs before its first section -> the text of its first cells. Knows no record.

Stand-ins for litbook's words, and the files of modules that lie beside the lecture.
"""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence

from litbook.render import standin
from litbook.text import cells

STANDINS = inspect.getsource(standin)


def _used(layout: cells.Layout) -> list[str]:
    """What the notebook's cells call, in the order of `standin`."""
    answers = [i.answer for i in layout.items if isinstance(i, cells.Told) and i.answer]
    code = [it for it in (*layout.setting, *layout.items, *answers) if isinstance(it, cells.Code)]
    random = {i.kind for i in layout.items if isinstance(i, cells.Random)}
    used = {
        *layout.used,
        *(["reseed"] if random else []),
        *(["random_state", "set_random_state"] if random - {"seed"} else []),
        *(["show"] if any(row.show for it in code for row in it.rows) else []),
        *(["has_cuda"] if any(getattr(i, "device", None) for i in layout.items) else []),
        *(["run_coroutine"] if layout.asyncio else []),
    }
    return [name for name in cells.defined(STANDINS) if name in used]


def called(layout: cells.Layout) -> dict[str, str]:
    """The stand-ins that the notebook's cells call, and what each is called there.

    That is its name, unless the lecture has given that to something else.
    """
    found = {}
    for name in _used(layout):
        found[name] = name
        while name not in cells.WORDS and found[name] in layout.names:
            found[name] += "_"
    return found


def text(layout: cells.Layout, called: Mapping[str, str], seed: int) -> str:
    """What a notebook's first cell of code says: the stand-ins, under the names that they are `called`."""
    used = list(called)
    extra = ['os.chdir(tempfile.mkdtemp(prefix="notebook-"))  # what a lecture writes goes there']
    if "matplotlib" in layout.packages:
        extra.append('os.environ["MPLBACKEND"] = "Agg"  # figures are kept and shown once')
    if "has_cuda" in used:
        extra.append("import torch  # `has_cuda` asks it")
    if layout.asyncio:
        extra += ["import asyncio", "asyncio.run = run_coroutine"]
    lines = [_function(used, seed, extra), ""]
    comma = "," * (len(used) == 1)
    lines.append((f"{', '.join(called.values())}{comma} = " if used else "") + f"stand_in(){comma}")
    for name, word in layout.words.items():
        if word in used and name != word:
            lines.append(f"{name} = {word}")
        elif not word and any(w in used for w in cells.WORDS):
            given = ", ".join(f"{w}={w}" for w in used if w in cells.WORDS)
            lines += ["import types", f"{name} = types.SimpleNamespace({given})"]
    lines += [f"{called['reseed']}()"] if "reseed" in called else []
    return "\n".join(lines)


def _function(used: Sequence[str], seed: int, extra: Sequence[str]) -> str:
    """A function that defines what is used, and hands it out: so no helper's name meets the lecture's."""
    imports, definitions = cells.excerpt(STANDINS, used)
    text = "\n\n".join(definitions).replace("SEED = 0", f"SEED = {seed}")
    head = '"""What the cells below call: `show` and its like. The book has the same text."""'
    lines = [head, *imports, "import os", "import tempfile", "", text, "", *extra]
    lines.append(f"return {', '.join(used) or 'None'}")
    return "def stand_in():\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def modules(layout: cells.Layout, files: Mapping[str, str]) -> list[str]:
    """The files of the modules that the notebook imports, and of those that they import."""
    wanted, waiting = list[str](), list(layout.modules)
    while waiting:
        top = waiting.pop(0)
        for name, text in sorted(files.items()):
            if name.partition("/")[0].removesuffix(".py") == top and name not in wanted:
                wanted.append(name)
                waiting += [other for other in cells.imported(text) if other != top]
    return wanted


def module(name: str, text: str) -> str:
    """A cell that writes a module where the notebook's imports find it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    quoted = f"r'''{text}'''"
    if "'''" in text or text.endswith(("\\", "'")):
        quoted = "(\n" + "\n".join(f"    {line!r}" for line in text.splitlines(keepends=True)) + "\n)"
    folder = "path.parent.mkdir(parents=True, exist_ok=True)\n    " if "/" in name else ""
    top = name.partition("/")[0].removesuffix(".py")
    return f"""# {name}, a module of the book, as it was in the run (sha256 {digest})
def write_module(name, text):
    import importlib
    import pathlib
    import sys

    path = pathlib.Path(name)
    {folder}path.write_text(text, encoding="utf-8")
    if str(pathlib.Path.cwd()) not in sys.path:
        sys.path.insert(0, str(pathlib.Path.cwd()))
    sys.modules.pop({top!r}, None)
    importlib.invalidate_caches()


write_module({name!r}, {quoted})"""
