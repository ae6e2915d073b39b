"""Which sections of a run are taken from an earlier one. The policy; `run` asks it at every section.

A section is reused when its *key* is that of a run in which nothing went wrong with it. The key is a hash of

    what its text depends on (`depends`), its module, and the texts of the engine Python, all installed
    distributions, the machine, the device, threads, and the variables that libraries read the seed what
    earlier sections handed on, if anything

and every file that it opened must be what it was. A section that hands something on (`world`) is never
reused, nor is one with an error or a failed claim, one that runs more than once, one whose dependencies its
text cannot tell, and one that touches what cannot be compared. Whatever comes after a section that hands
something on depends on that section, too.

`main`, parts and the module itself always run: they are prose and calls.

Sections that have to run may run side by side, in forks of the process (`parallel`), ahead of their turn: all
but those that read a clock, which have the machine for themselves. What a fork made of a section is taken
like that of an earlier run, under the key that the section has when its turn comes.
"""

from __future__ import annotations

import ast
import functools
import os
import secrets
import sys
import time
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from litbook import trace, world
from litbook.depends import Dependencies, Needs
from litbook.fragment import Mark, NotPortable, Places, Tape, cut, put
from litbook.parallel import Job, Workers
from litbook.recorder import Recorder
from litbook.source import Lecture
from litbook.store import Kept, Store

ENGINE = Path(__file__).parent
# What libraries read when they compute; not what a shell sets for itself.
VARIABLES = tuple(
    "OMP_ MKL_ KMP_ GOMP_ OPENBLAS BLIS_ TORCH PYTORCH ATEN_ CUBLAS CUDNN NVIDIA_ NCCL_ NPY_ NUMPY_ MPL "
    "TRITON LC_ LANG TZ PYTHONHASHSEED".split()
)


OFTEN = 10.0  # seconds between two writes of the store while a lecture runs, which somebody may kill


@functools.cache
def engine() -> str:
    """A hash of the engine's texts, without those that only draw pages. Once per process: what was loaded."""
    digest = sha256()
    for file in sorted(ENGINE.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def installed() -> list[str]:
    """Every installed distribution with its version, as the names of the folders that installers leave."""
    found = set[str]()
    for folder in filter(None, sys.path):
        with suppress(OSError):
            found |= {it.name for it in Path(folder).iterdir() if it.suffix in (".dist-info", ".egg-info")}
    return sorted(found)


def surroundings(environment: trace.Environment, device: str) -> str:
    """A hash of everything that sections depend on besides texts."""
    it = environment
    read = (k for k in os.environ if k.startswith(VARIABLES) and k not in world.SET_BY_LIBRARIES)
    variables = sorted((k, os.environ[k]) for k in read)
    torch = sys.modules.get("torch")
    between = torch.get_num_interop_threads() if torch else 0
    seen = (engine(), it.python, it.os, it.machine, it.cpu, it.cores, it.threads, between, it.device, device,
            sorted(it.versions.items()), it.seed, installed(), variables, sys.flags.optimize)  # fmt: skip
    return sha256(repr(seen).encode()).hexdigest()


@dataclass
class Reuse:
    """One run's sections: which are taken, which run, and what they hand on."""

    recorder: Recorder
    tape: Tape
    store: Store
    fresh: bool  # nothing is taken; what runs is kept all the same
    path: Path
    environment: trace.Environment
    device: str
    taken: dict[str, str] = field(default_factory=dict)  # section -> when it ran
    ran: list[str] = field(default_factory=list)
    handed_on: dict[str, list[str]] = field(default_factory=dict)  # section -> what it changed

    def __post_init__(self) -> None:
        self.lecture = self.recorder.lecture
        self.places = Places(self.lecture)
        self.once = _called_once(self.lecture)
        self.speaking = _speaking(self.lecture)
        self._saved = time.monotonic()
        self.chains: dict[
            str, str
        ] = {}  # what was handed on, by name of the module; "" for all that has none
        self.workers: Workers | None = None

    # -- the module

    def before_module(self, folder: Path) -> None:
        """The module is about to run."""
        self.folder = folder
        self._empty = world.look((), folder)

    def after_module(self, module: types.ModuleType, project: Callable[[], list[types.ModuleType]]) -> None:
        """The module has run; `project` says which modules of the project are there."""
        self.module, self._project = module, project
        self._imported: tuple[int, list[types.ModuleType]] = 0, []
        self.depends = Dependencies(self.lecture, self.path)
        self.now = self._look()
        changed = self._empty.differs(world.World({}, self.now.entries, self.now.files, self.now.threads))
        self.everything = bool(changed) and self.depends.acts_outright
        self._surroundings = surroundings(self.environment, self.device)
        self._needs: dict[str, Needs] = {}

    def _look(self) -> world.World:
        if self._imported[0] != len(sys.modules):
            self._imported = len(sys.modules), self._project()
        return world.look([self.module, *self._imported[1]], self.folder)

    # -- sections

    def section(self, function: int, run: Callable[[], object]) -> None:
        """Take the section from an earlier run, or `run` it and keep what it came to."""
        spec = self.lecture.functions[function]
        if spec.kind != "section":
            run()
            return
        self._notice_what_parts_did(spec.parent)
        key = self.key(function)
        if key is not None and not self.fresh and (kept := self._kept(function, key)):
            self.taken[spec.name] = kept.date
            return
        self.ran.append(spec.name)
        if key is None or not self._from_a_worker(function, key):
            if self.workers is not None and self.needs(function).clock:
                self.workers.rest()
            self._run(function, key, run)

    def needs(self, function: int) -> Needs:
        """What the text says that the section depends on."""
        name = self.lecture.functions[function].name
        if name not in self._needs:
            self._needs[name] = self.depends.of(name, self.everything)
        return self._needs[name]

    def key(self, function: int) -> str | None:
        """What the section's outcome depends on; None where nobody can tell."""
        needs = self.needs(function)
        if needs.digest is None or function not in self.once or self._hidden(needs):
            return None
        name = self.lecture.functions[function].name
        handed = (self.chains[it] for it in sorted(self.chains) if not it or it in needs.names)
        parts = (needs.digest, name, self.path.stem, self._surroundings, *handed)
        return sha256("\0".join(parts).encode()).hexdigest()

    def _hidden(self, needs: Needs) -> list[str]:
        """The names that it uses behind which something is that cannot be compared."""
        stems = {file.stem for file in needs.files}
        return [
            name
            for name in self.now.opaque
            if name in needs.names
            or ("." in name and not stems.isdisjoint((name.split(".")[-2], "__init__")))
        ]

    def _notice_what_parts_did(self, parent: int | None) -> None:
        """The code of `main` and of parts, between their sections, may hand something on as well."""
        if parent is not None and parent not in self.speaking:
            now = self._look()
            change = self.now.differs(now)
            self.now = now
            if change:
                self._hand_on(self.lecture.functions[parent].name, change, self.needs(parent).digest)

    def _hand_on(self, name: str, changed: list[str], digest: str | None) -> None:
        """Whatever comes later and uses one of the names in `changed` depends on the section, too."""
        self.handed_on[name] = changed
        mine = digest or secrets.token_hex(
            16
        )  # what came of it cannot be foretold: nothing after it is reused
        for it in {change if change.isidentifier() else "" for change in changed}:
            self.chains[it] = sha256(f"{self.chains.get(it, '')} {name} {mine}".encode()).hexdigest()

    # -- taking

    def _kept(self, function: int, key: str) -> Kept | None:
        """What is kept of the section, put where it is called now; None where that cannot be used."""
        kept = self.store.get(key)
        if kept is None or any(_hash(Path(path)) != digest for path, digest in kept.read):
            return None
        if not self.place(function, kept):
            self.store.drop(key)
            return None
        return kept

    def place(self, function: int, kept: Kept) -> bool:
        """Put what was kept where the section is called now. False where it does not fit."""
        parent, line = self._caller()
        try:
            put(kept.fragment, self.recorder, self.places, parent, line, self.tape)
        except LookupError:  # a file that somebody wrote by hand
            return False
        self.recorder.seconds[self.lecture.functions[function].name] = kept.fragment.seconds
        return True

    def _caller(self) -> tuple[int | None, int]:
        """The frame of the part that is calling, and its line."""
        frame = sys._getframe(1)
        while frame is not None:
            number = self.recorder.active.get(id(frame))
            if number is not None and frame.f_code.co_filename == self.recorder.filename:
                return number, frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]  # the outermost has none
        return None, 0

    # -- side by side

    def side_by_side(
        self,
        count: int,
        runnable: Callable[[int], bool],
        call: Callable[[int], None],
        line: Callable[[BaseException], int | None],
    ) -> None:
        """Let up to `count` forks begin with what has to run, where the machine can run it.

        `call` runs a section, `line` says which line of the lecture an exception came from. Only for a
        process that may be forked, see `parallel`.
        """
        number_of = {f.name: number for number, f in enumerate(self.lecture.functions)}
        inside = [number_of[name] for name in self.lecture.section_names()]
        tasks = [function for function in inside if runnable(function) and self._for_a_worker(function)]
        if min(count, len(tasks)) > 1:
            job = Job(self._become_a_worker, functools.partial(self._in_a_worker, call), line)
            self.workers = Workers(tasks, min(count, len(tasks)), job)

    def _for_a_worker(self, function: int) -> bool:
        if self.lecture.functions[function].kind != "section" or self.needs(function).clock:
            return False
        key = self.key(function)
        return key is not None and (self.fresh or not self.store.content(key))

    def _become_a_worker(self, folder: Path) -> None:
        """This process is a fork now, in its own working directory. Nobody listens to it."""
        self.tape.listener = None
        self.workers, self.store, self.fresh = None, Store(None), True
        self.folder = folder
        self.now = self._look()

    def _in_a_worker(self, call: Callable[[int], None], function: int) -> tuple[tuple[str, bytes], bool]:
        """Run the section. Its key with what is to be kept of it, and whether the world is as it was."""
        key = self.key(function) or ""
        call(function)
        clean = self.lecture.functions[function].name not in self.handed_on
        return (key, self.store.content(key)), clean

    def _from_a_worker(self, function: int, key: str) -> bool:
        """Take what a worker made of the section, if one did, and if that is what it would come to here."""
        made = self.workers.outcome(function) if self.workers is not None else None
        if made is None or made[0] != key or not made[1]:
            return False
        self.store.put_content(key, made[1])
        return self._kept(function, key) is not None

    def close(self) -> None:
        """The run is over: no fork is left behind, and what was kept is written."""
        if self.workers is not None:
            self.workers.close()
        self.store.save()

    # -- running

    def _run(self, function: int, key: str | None, run: Callable[[], object]) -> None:
        name = self.lecture.functions[function].name
        mark = Mark(self.recorder, self.tape)
        try:
            with world.opened() as files:
                run()
        finally:
            mine = mark.close()
        before, self.now = self.now, self._look()
        change = before.differs(self.now)
        change += self._hidden(self.needs(function))
        if change:
            self._hand_on(name, change, key or self.needs(function).digest)
        elif key is not None:
            read = self._files(files)
            with suppress(NotPortable):
                fragment = cut(mark, mine, self.places)
                fragment.seconds = self.recorder.seconds.get(name, 0.0)
                if fragment.good and read is not None:
                    self.store.put(key, Kept(fragment, self.environment.date, read))
        mark.forget()
        if time.monotonic() - self._saved > OFTEN:
            self.store.save()
            self._saved = time.monotonic()

    def _files(self, opened: list[tuple[str, bool]]) -> tuple[tuple[str, str], ...] | None:
        """The files that the section read and that are still there; None where it wrote one that is."""
        found: dict[str, str] = {}
        for text, writes in opened:
            path = Path(text) if Path(text).is_absolute() else self.folder / text
            if _is_of_the_system(path) or path == self.path or not path.is_file():
                continue
            if writes:
                return None
            found[str(path)] = _hash(path)
        return tuple(sorted(found.items()))


def _is_of_the_system(path: Path) -> bool:
    roots = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev", "/etc", "/usr", str(ENGINE))
    return any(str(path).startswith(f"{root}{os.sep}") for root in roots) or "site-packages" in path.parts


def _hash(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _called_once(lecture: Lecture) -> set[int]:
    """The sections that one plain statement of `main` or of a part calls, and nothing else does."""
    times: dict[int, int] = {}
    plain = set[int]()
    for spec in lecture.statements:
        if spec.kind == "section" and spec.target is not None:
            times[spec.target] = times.get(spec.target, 0) + 1
    for node, index in lecture.function_of.items():
        if isinstance(node, ast.FunctionDef) and lecture.functions[index].kind in ("main", "part"):
            for statement in node.body:
                target = lecture.statements[lecture.statement_of[statement]].target
                if (
                    target is not None
                    and statement not in lecture.stepover
                    and statement not in lecture.hidden
                ):
                    plain.add(target)
    names = [f.name for f in lecture.functions]
    return {
        f
        for f in plain
        if lecture.functions[f].kind == "section"
        and times.get(f) == 1
        and names.count(lecture.functions[f].name) == 1
        and lecture.text.count(f"{lecture.functions[f].name}(") == 2  # its definition and the one call
    }


def _speaking(lecture: Lecture) -> frozenset[int]:
    """`main` and the parts whose bodies hold prose and calls of sections only: these change nothing."""
    return frozenset(
        index
        for node, index in lecture.function_of.items()
        if isinstance(node, ast.FunctionDef)
        and lecture.functions[index].kind in ("main", "part")
        and all(_speaks(lecture, statement) for statement in node.body)
    )


def _speaks(lecture: Lecture, statement: ast.stmt) -> bool:
    kind = lecture.statements[lecture.statement_of[statement]].kind
    if kind in ("doc", "section"):
        return True
    return kind == "piece" and sum(isinstance(node, ast.Call) for node in ast.walk(statement)) == 1
