"""How the modules of a lecture are executed: instrumented, and otherwise as Python does it.

A file becomes the module of its name. A folder becomes the package of its name: Python finds and imports its
modules, and those beside the lecture that are its text, as ever, and is only given other code for them.
Nothing here knows what the code records.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from litbook.lecture.model import Lecture
from litbook.python.file import File

RunFile = Callable[[int], AbstractContextManager[None]]


class Modules:
    """The modules of a lecture in this process.

    `codes` has the code of each of its files; what `around` gives for a file's number is entered while the
    file's own lines run.
    """

    def __init__(self, path: Path, lecture: Lecture, codes: list[types.CodeType], around: RunFile) -> None:
        self.lecture = lecture
        self._code, self._loaded = codes[0], dict[str, types.ModuleType]()
        both = zip(lecture.files, codes, strict=True)
        named = [(file, code) for file, code in both if file.module]
        if named:
            # From now on `import` finds these modules: those of the folder, and those beside the lecture.
            loaders = {file.module: _LectureLoader(file, code, self._loaded, around) for file, code in named}
            packages = {name.partition(".")[0] for name in loaders}
            for name in list(sys.modules):  # another package may have the name
                if name.partition(".")[0] in packages:
                    del sys.modules[name]
            sys.meta_path.insert(0, _LectureFinder(loaders))
        if not path.is_dir():
            module = types.ModuleType(path.stem)
            module.__file__ = str(path)
            sys.modules[path.stem] = self._loaded[""] = module

    def load(self) -> None:
        """Run the lecture's file, or import its folder and so what that imports."""
        if self.lecture.files[0].module:
            importlib.import_module(self.lecture.files[0].module)
        else:
            exec(self._code, self._loaded[""].__dict__)

    def loaded(self) -> list[types.ModuleType]:
        """The modules, in the order in which they were imported."""
        return [*self._loaded.values()]

    def module_of(self, function: int) -> types.ModuleType:
        """The module of a function."""
        name = self.lecture.file_of_function(function).module
        if name not in self._loaded:  # a file that nothing has imported so far
            importlib.import_module(name)
        return self._loaded[name]

    def call(self, function: int) -> None:
        """Call a function. It is looked up late: the lecture may have deleted it, which is its own error."""
        getattr(self.module_of(function), self.lecture.functions[function].name)()


def watch_copies(lecture: Lecture, codes: list[types.CodeType]) -> None:
    """From now on also a second copy of a file of the lecture is given its code: by `runpy`, or a loader."""
    ours = {file.filename: code for file, code in zip(lecture.files, codes, strict=True)}
    load, run = importlib.machinery.SourceFileLoader.get_code, runpy._get_code_from_file  # type: ignore[attr-defined]

    def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        return ours.get(os.path.realpath(self.path)) or load(self, fullname)

    def get_code_from_file(*given: str) -> object:
        code = ours.get(os.path.realpath(given[-1]))
        if code is None:
            return run(*given)
        return code if len(given) == 1 else (code, given[-1])  # as Python 3.12 has it, and 3.11

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
    runpy._get_code_from_file = get_code_from_file  # type: ignore[attr-defined]


class _LectureLoader(importlib.machinery.SourceFileLoader):
    """Python's own loader of source files, which is given the code; so it reads and writes no bytecode."""

    def __init__(
        self, file: File, code: types.CodeType, loaded: dict[str, types.ModuleType], around: RunFile
    ) -> None:
        super().__init__(file.module, file.filename)
        self._code, self._loaded, self._around = code, loaded, partial(around, file.number)

    def get_code(self, fullname: str) -> types.CodeType:
        """The instrumented code of the module."""
        del fullname
        return self._code

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the module, which is the one of its name from now on."""
        self._loaded[module.__name__] = module
        with self._around():
            super().exec_module(module)


class _LectureFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of the lecture, and leaves all others to Python."""

    def __init__(self, loaders: dict[str, _LectureLoader]) -> None:
        self._loaders = loaders

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """The module's place and loader; None for a module that is none of the lecture's."""
        loader = self._loaders.get(fullname)
        if loader is None:
            return None
        inside = [str(Path(loader.path).parent)] if loader.is_package(fullname) else None
        return importlib.util.spec_from_file_location(
            fullname, loader.path, loader=loader, submodule_search_locations=inside
        )
