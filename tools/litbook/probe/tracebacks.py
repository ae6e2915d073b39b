"""An exception -> the lecture's own lines of its traceback, and what to say of it."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from types import FrameType

from litbook.lecture.model import INSTALLED, Lecture
from litbook.probe import author
from litbook.probe.messages import cut_message
from litbook.probe.record_keys import RecordKeys
from litbook.project import CONFIG, WORDS
from litbook.record.limits import LONGEST_LINE, TRACE


def text_of(error: BaseException | None) -> str:
    """Type and text of an exception, also of one whose text raises."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as raised:
        text = f"(its text raised {type(raised).__name__})"
    return cut_message(f"{name}: {text}") if text else name


REQUIREMENTS = "requirements.txt"  # of a book, beside its mkdocs.yml
# Packages that are called otherwise than what one imports of them.
PACKAGES = {
    "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil", "PIL": "pillow",
    "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_AMBIGUOUS = re.compile(r"RuntimeError: Boolean value of Tensor with more than one value is ambiguous")
_ENGINE = Path(__file__).resolve().parents[1]

TraceLine = tuple[str, int, str, str]
"""A line of a traceback: path, number, name of the function, and its text."""


def trace(lecture: Lecture, error: BaseException) -> tuple[TraceLine, ...]:
    """The own lines of a traceback, outermost first; at most the first and last of `TRACE`.

    They are the lecture's, and what that calls of the files in its folder. Of a syntax error in such a file
    the last one is the line that cannot be read: that ran nothing, and so has no place in a traceback.
    """
    lines: list[TraceLine] = []
    for frame, line in walk_tb(error.__traceback__):
        code = frame.f_code
        number = lecture.file_of(code.co_filename)
        if number is not None:
            place = lecture.files[number].place(line)
            lines.append((place.path, line, code.co_name, place.text.strip()))
        elif lines and (shown := _sibling_name(lecture, code.co_filename)):
            lines.append((shown, line, code.co_name, _text_of(code.co_filename, line)))
    if lines and isinstance(error, SyntaxError):
        file, at = error.filename, error.lineno
        if isinstance(file, str) and isinstance(at, int) and (shown := _sibling_name(lecture, file)):
            lines.append((shown, at, "<module>", _text_of(file, at)))
    return tuple(lines if len(lines) <= TRACE else [*lines[: TRACE // 2], *lines[-TRACE // 2 :]])


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, those of its group, and all that led to them: what Python prints of it."""
    todo, seen = [error], set[int]()
    for each in todo:  # which grows
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            inside = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
            todo += [other for other in (*inside, each.__cause__, each.__context__) if other is not None]


def surfacing_line(lecture: Lecture, function: int, error: BaseException) -> int | None:
    """The line of a function through which an exception came: the outermost."""
    spec, lines = lecture.functions[function], own_lines(lecture, walk_tb(error.__traceback__))
    return next((line for file, line in lines if file == spec.file and spec.first <= line <= spec.last), None)


def statements(numbering: RecordKeys, error: BaseException) -> Iterator[int]:
    """The lecture's statements in a traceback, outermost first."""
    for place in own_lines(numbering.lecture, walk_tb(error.__traceback__)):
        if (number := numbering.statement_at.get(place)) is not None:
            yield number


def own_lines(lecture: Lecture, frames: Iterable[tuple[FrameType, int]]) -> Iterator[tuple[int, int]]:
    """The lecture's own lines in a traceback, or on a stack: the file's number, and the line."""
    for frame, line in frames:
        if (file := lecture.file_of(frame.f_code.co_filename)) is not None:
            yield file, line


def way_out(lecture: Lecture, error: BaseException) -> str:
    """Of a tensor of many truths that was asked for one: how to ask for all. Of a library: what brings it."""
    if isinstance(error, ModuleNotFoundError) and error.name in {file.name for file in lecture.files} - {""}:
        return f"\nit is a file of this lecture: from .{error.name} import …"
    if isinstance(error, ModuleNotFoundError) and error.name and "." not in error.name:
        return _installing(_folder(lecture), error.name)
    if isinstance(error, FileNotFoundError) and (_folder(lecture) / str(error.filename)).exists():
        return "\nit lies beside the lecture, which reads a copy of what its text quotes, up to 1 GiB"
    places = [(lecture.file_of(f.f_code.co_filename), line) for f, line in walk_tb(error.__traceback__)]
    if places and places[-1][0] is not None and (usage := _usage(text_of(error))):  # the call itself raised
        return usage
    if not places or places[-1][0] is None or not _AMBIGUOUS.match(text_of(error)):
        return ""
    for asked in lecture.claims:
        test = asked.node.test if isinstance(asked.node, ast.Assert) else None
        at = lecture.statements[asked.statement]
        there = lecture.functions[at.function].file, at.first
        if there == places[-1] and test is not None:
            inner = f"({asked.text})" if isinstance(test, ast.Compare) else asked.text
            if not isinstance(test, ast.BoolOp | ast.UnaryOp):
                return f"\nwrite: assert {inner}.all()"
    return "\nsay which are meant: (…).all() or (…).any()"


def _usage(message: str) -> str:
    """How one of the author's words is called, where the message says that it was called in another way."""
    match = re.match(r"TypeError: (\w+)\(\) (?:missing|takes|got) ", message)
    if match is None or match[1] not in author.__all__:
        return ""
    needed, others = list[str](), list[str]()
    for name, parameter in inspect.signature(getattr(author, match[1])).parameters.items():
        shown = f"{name}=…" if parameter.kind is parameter.KEYWORD_ONLY else name
        (needed if parameter.default is parameter.empty else others).append(shown)
    may = f", and may have {', '.join(others)}" if others else ""
    return f"\nit is called as {match[1]}({', '.join(needed)}){may}"


def _installing(folder: Path, name: str) -> str:
    """How a module comes that is not here, and where its package is listed."""
    # Before anything is installed: a stranger may have registered a name that is misspelt.
    beside = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    if near := get_close_matches(name, beside, n=1, cutoff=0.7):
        return f"\ndid you mean {near[0]}, which lies beside the lecture?"
    if name in WORDS:
        return f"\nits words are here: litbook run --words {name}, or words: {name} in {CONFIG}"
    package = PACKAGES.get(name, name)
    root = next((above for above in (folder, *folder.parents) if (above / CONFIG).is_file()), folder)
    listing = root / REQUIREMENTS
    if not listing.is_file():
        return f"\npip install {package}"
    lines = listing.read_text(encoding="utf-8", errors="replace").splitlines()
    listed = {re.sub(r"[-_.]+", "-", match[0]).lower() for line in lines if (match := _NAME.match(line))}
    if package.lower().replace("_", "-") in listed:
        return f"\n{REQUIREMENTS} lists it: pip install -r {REQUIREMENTS}"
    return f"\npip install {package}\nand list it in {REQUIREMENTS}, from which others install"


def _sibling_name(lecture: Lecture, file: str) -> str:
    """What a file in the lecture's folder is called in messages; "" for any other, and for the lecture."""
    first = lecture.files[0]
    shown = Path(first.path).parent.parent if first.module else Path(first.path).parent
    try:
        inside = Path(file).relative_to(_folder(lecture))
    except ValueError:
        return ""
    ours = _ENGINE in Path(file).parents or file == first.filename
    return (shown / inside).as_posix() if not ours and INSTALLED.isdisjoint(inside.parts) else ""


def _folder(lecture: Lecture) -> Path:
    """Where the lecture lies; the files of one of several have a folder of their own in it."""
    first = lecture.files[0]
    folder = Path(first.filename).parent
    return folder.parent if first.module else folder


def _text_of(file: str, line: int) -> str:
    """A line of a file as it stands there now; "" where there is none."""
    try:
        with tokenize.open(file) as lines:
            return next(itertools.islice(lines, max(0, line - 1), None), "").strip()[:LONGEST_LINE]
    except (OSError, ValueError, SyntaxError):
        return ""
