"""The author's words: each hands a piece to the running recorder, or prints it when none runs."""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import itertools
import linecache
import math
import os
import re
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from types import CodeType
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from litbook.errors import AuthorError
from litbook.explore import sampling
from litbook.probe import svg
from litbook.probe.holes import without_marks
from litbook.record.device_kinds import needs
from litbook.record.limits import IMAGE, SCRIPT
from litbook.record.model import PICTURES, WITHIN, ChartKind, Piece, PieceKind

__all__ = ["aside", "explore", "figure", "image", "link", "misbelief", "note", "question", "recording",
           "requires", "speaker_note", "word"]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")

WIDEST = 9  # `within` of a question: a factor of ten, beyond which nearly any answer is right
LONGEST_ANSWER = 400  # characters of an answer that plain Python prints
# What a string without `r` makes of `\frac`, `\neq`: a control in a formula. Wrapping ends lines, too.
_EATEN = re.compile(
    r"(?<![\n\t])([\a\b\f\v\t\r]|\n(?=(?:abla|e|eg|eq|exists|geq|i|leq|mid|ot|otin|parallel|u)\b))([a-z]+)"
)
_LIKE_NO_WORD = {"abla", "eq", "otin"}  # with which a wrapped line of a formula may begin
RAW = 'put r before the quotation mark: r"…"; in an f-string rf"…", with its formulas\' braces doubled'
DECLARED: set[CodeType] = set()  # of functions that an author has declared words
_IMAGES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg+xml", ".webp": "webp", ".gif": "gif"}


class PieceRecorder(Protocol):
    """What the words need of a running recorder; `run` provides it."""

    def piece(self, piece: Piece) -> None:
        """Take one piece, made by the statement that is running now."""

    def say(self, word: str, text: str) -> None:
        """Hear of a text for readers, with its marks (see `holes`), before the piece that it is part of."""

    def pause(self) -> None:
        """What runs from here on is not stepped through."""

    def resume(self) -> None:
        """What runs from here on is, again."""

    def question(self, asked: Piece, answer: object) -> None:
        """Take a question with its answer as it is now."""


_recorder: PieceRecorder | None = None


def _mistakes(answer: object, wrong: Mapping[str, float], within: float) -> list[tuple[str, float]]:
    """The wrong answers of a question; raises where one is no number, right, or not told from another."""
    mistakes = list[tuple[str, float]]()
    for mistake, value in wrong.items():
        sentence, which = _plain("question", mistake), f"{value!r:.60}: {mistake!r:.60}"
        _say("wrong", mistake)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise AuthorError(f"question() takes a number for each wrong answer, not {which}")
        if _agree(answer, value):
            raise AuthorError(f"question() has a wrong answer that is right: {which}")
        if isinstance(answer, int | float) and abs(answer - value) <= within * min(abs(answer), abs(value)):
            raise AuthorError(
                f"question() takes a wrong answer for right: {which}\n"
                f"it lies within={within:g} of the answer, {answer!r:.60}: give less, or leave it out"
            )
        for other, its in mistakes:
            if abs(its - value) <= within * min(abs(its), abs(value)):
                raise AuthorError(
                    f"question() has two wrong answers that it cannot tell apart: {which}\n"
                    f"and {its!r:.60}: {other!r:.60}: keep the likelier one, or choose other numbers"
                )
        mistakes.append((sentence, float(value)))
    return mistakes


def hand_to(recorder: PieceRecorder | None) -> PieceRecorder | None:
    """Give all further pieces to `recorder` (None: print them). Returns the one before."""
    global _recorder  # the one switch between recording and plain Python
    before, _recorder = _recorder, recorder
    return before


def note(text: str) -> None:
    """Prose, as Markdown: a paragraph, list, heading, admonition, `$math$`; `[@key]` cites the bibliography.

    Raises `AuthorError` for anything that is not text.
    """
    hand("note", _text("note", text))


def speaker_note(text: str) -> None:
    """What the lecturer means to say here: shown in the player when asked for, and to no reader of the page.

    Raises `AuthorError` for anything that is not text.
    """
    hand("speaker", _text("speaker_note", text))


def misbelief(said: str, run: str) -> None:
    """A wrong or imprecise statement that is commonly made (`said`), and what the machine says (`run`)."""
    hand("misbelief", _text("misbelief", said), data=_text("misbelief", run))


def question(
    text: str,
    *,
    answer: object,
    check: object = None,
    unit: str | None = None,
    hint: str = "",
    why: str = "",
    within: float = WITHIN,
    wrong: Mapping[str, float] | None = None,
) -> None:
    """A question that the reader answers before opening `answer`, which is kept as it is at this moment.

    `text`, `hint` and `why`, a sentence that stands below the answer, are Markdown. `unit` drives the display
    of `answer`, as in `# @inspect x as UNIT`. Right is what is at most `1 + within` times too large or small:
    0.01 is one percent off, 1 a factor of two. `wrong` names mistakes, each in a sentence of plain text, with
    the number that comes of it: `{"That is half of it.": 5}`. `check` is the answer computed a second way,
    which no page shows; the two have to agree, fractions but for what adding up in another order changes.
    Raises `AuthorError` for a blank text, for an answer that is no value yet (a function, a generator), for
    one that its `check` disagrees with, for a `within` that is no number from 0 to 9, and for a `wrong` that
    is no number, right, or not told from another one by `within`.
    """
    asked, helped, because = (_text("question", words) for words in (text, hint, why))
    if not asked.strip():
        raise AuthorError("question() needs a text: ask something that this section answers")
    if unit is not None and not _plain("question", unit).strip():
        raise AuthorError("question() has a blank unit: leave it out, or write one such as unit='B'")
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within <= WIDEST:
        forms = f"within=0.05 for five percent, 1 for a factor of two, at most {WIDEST}"
        raise AuthorError(f"question() takes {forms}, not {within!r:.60}")
    # What would have to run before it is an answer.
    kind = type(answer)
    given: Any = answer  # narrowed, an object would be of a class that mypy cannot load from its cache
    if callable(given):
        name = str(getattr(answer, "__name__", kind.__name__))[:60]
        raise AuthorError(f"question() takes the answer itself, not {name}: call it and pass what comes back")
    if issubclass(kind, Iterator | AsyncIterator | Awaitable):
        raise AuthorError(
            f"question() takes the answer itself, not a {kind.__name__}: a record cannot hold what has not "
            "been computed; pass a number, or a list of what it gives"
        )
    if check is not None and not _agree(answer, check):
        ways = f"answer: {_bounded_repr(answer)}\ncheck:  {_bounded_repr(check)}"
        both = isinstance(answer, float) and isinstance(check, int | float)
        if both and math.isclose(given, cast(float, check), rel_tol=max(within, WITHIN)):
            ways += "\nthey have to agree to nine digits, whatever `within` is; claim what is only near it"
        raise AuthorError(f"question() has an answer that its check disagrees with: correct one\n{ways}")
    mistakes = _mistakes(answer, wrong or {}, within)
    if _recorder is not None:
        piece = Piece("question", 0, 0, 0, asked, helped, unit=unit, why=because,
                      within=float(within), wrong=tuple(mistakes))  # fmt: skip
        _recorder.question(piece, answer)
    else:
        print(f"Question: {asked}\nAnswer: {_bounded_repr(answer)}{f' {unit}' if unit else ''}")
        print(f"{because}\n" if because else "")


def _agree(answer: object, check: object) -> bool:
    """Whether two ways led to one value; of lists and tuples, to as many that agree."""
    if isinstance(answer, list | tuple) and isinstance(check, list | tuple):
        return len(answer) == len(check) and all(map(_agree, answer, check))
    if isinstance(answer, int | float) and isinstance(check, int | float):
        if math.isnan(answer) and math.isnan(check):
            return True
        return answer == check or math.isclose(answer, check, rel_tol=1e-9)
    return bool(answer == check)


def _bounded_repr(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # the lecture goes on, as it does when it is recorded
        return f"(its text raised {type(error).__name__})"
    return text if len(text) <= LONGEST_ANSWER else text[:LONGEST_ANSWER] + " …"


def figure(fig: Any, *, caption: str, alt: str) -> None:
    """A Matplotlib figure, kept as SVG. `alt` says what it shows to someone who cannot see it.

    Raises `AuthorError` for an empty `alt`, and for something that is no figure.
    """
    if not (shown := _text("figure", alt)).strip():
        raise AuthorError("figure() needs an alt text: say what the figure shows, in a sentence")
    if not (hasattr(fig, "savefig") and hasattr(fig, "get_size_inches")):  # pyplot has the first, too
        name = type(fig).__name__
        raise AuthorError(f"figure() takes a Matplotlib figure, not {name}: pass `fig`, not `plt`")
    drawn = svg.svg(fig) if _recorder else ""  # else nobody would see it
    for label in svg.labels(fig) if _recorder else ():
        _say("label", label)
    hand("figure", _text("figure", caption), data=drawn, alt=shown)


def explore(  # noqa: PLR0913  (all but the first by name)
    function: Callable[..., sampling.Given],
    *,
    over: Mapping[str, Sequence[sampling.SliderValue]],
    at: Mapping[str, sampling.SliderValue],
    caption: str,
    alt: str,
    do: str = "",
    see: str = "",
    kind: ChartKind = "bars",
    unit: str | None = None,
    limit: tuple[str, int | float] | None = None,
    module: str = "",
    still: Any = None,
) -> dict[Any, sampling.Given]:
    """A figure with one slider or two: what `function` gives at every place of `over` is computed here.

    `function` is called with the place of each slider, by name, and gives a number in `unit`, or up to six by
    name. `over` has the places of each slider: numbers from the smallest to the largest, or texts to choose
    from. `at` is the point that readers meet first. "bars" stand side by side, a "stack" adds up, a "curve"
    runs over the first slider; `limit`, a name and a number, is drawn across. `do` says what to try, `see`
    what one should have seen then.

    What needs more is drawn by a `module` of your own, a file of JavaScript beside the lecture, up to 10 kB.
    Then there may be up to eight sliders, the function may give texts and lists, too, and `still` is the
    Matplotlib figure that stands there without a script.

    Returns what the function gave, by place, so that claims may speak of any point: `grid[8]["weights"]`,
    with two sliders `grid[8, 1024]`. A point at which it raises is a gap, and not among them; but a slip of
    the pen (`NameError`, `AttributeError`, `TypeError`, `ImportError`) is an error. Nobody reads what it
    prints. Raises `AuthorError` for an empty `alt`, over 2,000 points or 60 kB, places that are neither
    sorted numbers nor texts, a function that gives no numbers, other names elsewhere, or something else the
    second time; and for a `module` that cannot be read or is too long, or has no `still`.
    """
    global _recorder
    if not (shown := _text("explore", alt)).strip():
        raise AuthorError("explore() needs an alt text: say what the picture shows, in a sentence")
    title, task, insight = (_text("explore", text) for text in (caption, do, see))
    if limit is not None and isinstance(limit[0], str):  # what is none is told of below
        limit = (_text("explore", limit[0]), *limit[1:])
    script = _module(Path(sys._getframe(1).f_code.co_filename).parent, module)
    if script and not hasattr(still, "savefig"):
        what = f"explore() shows a figure where no script draws, and this is {type(still).__name__}"
        raise AuthorError(f"{what}\ngive it the Matplotlib figure of its first point: still=fig")
    grid, live = None, None
    recorder, _recorder = _recorder, None
    if recorder is not None:
        recorder.pause()
    try:
        # What each point prints, or hands over, nobody would read a thousand times.
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            if script:
                drawn = svg.svg(still) if recorder else ""
                live, given = sampling.sample_live(function, over, at, drawn, script)
            else:
                grid, given = sampling.sample_grid(function, over, at, kind, unit, limit)
    finally:
        _recorder = recorder
        if recorder is not None:
            recorder.resume()
    for label in grid.names if grid else svg.labels(still) if recorder else ():
        _say("label", label)
    piece = Piece("explore", 0, 0, 0, title, task, shown, why=insight, grid=grid, live=live)
    if recorder is not None:
        recorder.piece(piece)
    else:
        start = given[(*(at[name] for name in over),) if len(over) > 1 else at[next(iter(over))]]
        print(f"[explore: {title or shown}]\n{dict(at)}: {_bounded_repr(start)}\n")
    return given


def _module(folder: Path, module: str) -> str:
    """The text of a script beside the lecture; nothing where none is asked for."""
    if not module:
        return ""
    cure = "compute less in it, and take more from the function"
    try:
        script = _content("explore", module, folder, SCRIPT, cure).decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        what = f"explore() cannot read {module!r}: it is no text in UTF-8"
        raise AuthorError(f"{what}\nsave the file as UTF-8") from None
    if "litbookPicture" not in script:
        way_out = "let it say `window.litbookPicture = { draw() … }`"
        raise AuthorError(f"explore() finds no picture in {module!r}: {way_out}")
    return script


def image(path: str | Path, *, alt: str, caption: str = "", width: int | None = None) -> None:
    """A picture from a file beside the lecture, `width` pixels wide. Nothing is fetched from elsewhere.

    Raises `AuthorError` for a URL, a missing or too large file, what is no picture of the kind that its name
    says, an empty `alt`, and a `width` that is no whole number above 0.
    """
    if not (shown := _text("image", alt)).strip():
        raise AuthorError("image() needs an alt text: say what the picture shows, in a sentence")
    if width is not None and (type(width) is not int or width < 1):
        raise AuthorError(f"image() takes a width in pixels, width=400, not {width!r:.60}")
    if (ending := Path(path).suffix.lower()) not in _IMAGES and not re.match(r"[a-z]+://", str(path)):
        raise AuthorError(f"image() knows {', '.join(_IMAGES)}; {str(path)!r} is none of these")
    folder = Path(sys._getframe(1).f_code.co_filename).parent
    cure = "save it with fewer pixels, or as JPEG or WebP"
    content, kind = _content("image", path, folder, IMAGE, cure), _IMAGES[ending]
    if not re.match(PICTURES[kind], content, re.DOTALL):
        kinds = (name for name, begins in PICTURES.items() if re.match(begins, content, re.DOTALL))
        holds = next(kinds, "no picture that image() knows")
        what = f"image() finds no {kind} in {str(path)!r}: it holds {holds}"
        raise AuthorError(f"{what}\nsave it anew, or rename it")
    data = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    hand("image", _text("image", caption), data=data, alt=shown, width=width or 0)


def _content(word: str, path: str | Path, folder: Path, largest: int, cure: str) -> bytes:
    """What is in a file of `folder`."""
    if re.match(r"[a-z]+://", str(path)):
        raise AuthorError(f"{word}() shows local files; {path!r} is elsewhere: save it beside the lecture")
    try:
        content = (folder / path).read_bytes()
    except OSError as error:
        way_out = "its path goes from the folder that this lecture's file is in"
        raise AuthorError(f"{word}() cannot read {str(path)!r}: {error.strerror}\n{way_out}") from None
    if len(content) > largest:
        message = f"{word}() takes up to {largest:,} bytes; {str(path)!r} has {len(content):,}"
        raise AuthorError(f"{message}\n{cure}")
    return content


def link(target: str | Callable[..., object], text: str = "") -> None:
    """A link to a URL, to a citation (`"@key"`), to a function or class of the lecture, or to what has a name
    in a note's links, too: `"#lecture_03.block"`, `"#models.py:12"`.

    Raises `AuthorError` for any other target.
    """
    if not isinstance(text, str):
        raise AuthorError(f"link() takes text, not {type(text).__name__}")
    _say("link", text)
    text = without_marks(text)
    names = callable(target) and not isinstance(target, str)
    name = str(getattr(target, "__name__", "")) if names else ""
    if name.isidentifier():
        hand("link", text or name, data=f"function:{name}")
    elif isinstance(target, str) and re.fullmatch(r"@[\w:.-]+", target):
        hand("link", text, data=f"cite:{target[1:]}")
    elif isinstance(target, str) and re.fullmatch(r"#\w[\w.:]*", target):
        hand("link", text or target[1:], data=f"function:{target[1:]}")
    elif isinstance(target, str) and re.match(r"https?://[^\s]+$", target):
        hand("link", text or target, data=target)
    else:
        raise AuthorError(f"link() takes an http(s) URL, '@key', a function or '#name', not {target!r}")


def requires(need: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Mark a section that needs a device, `@requires("cuda")`, time, `@requires("slow")`, or ranks.

    It runs only where there is such a device. A slow one runs when it is asked for by name and when it is
    recorded; else its recording is shown. One on ranks, `@requires("ranks=4")`, runs as so many processes, in
    a process group; one on `"simulated ranks=1024"` in one, whose group pretends to have so many.
    Raises `AuthorError` for a need that nobody knows.
    """
    try:
        asked = needs(need)
    except ValueError as error:
        raise AuthorError(str(error)) from None

    def wrap(section: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(section)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            many = asked.ranks or asked.simulated
            if asked.kind.is_device:
                with contextlib.suppress(ModuleNotFoundError):
                    importlib.import_module("torch")
            if asked.kind.count() and (_recorder is not None or not many):
                section(*args, **kwargs)
            elif _recorder is not None:  # it never calls a section whose device is not here
                raise AuthorError(
                    f"{section.__name__}() needs {need}, there is none here, and it is called all the same\n"
                    f'    mark the section that calls it, as @requires("{need}")'
                )
            elif many:
                print(f"[{section.__name__} needs {need}: `litbook run` gives it these]")
            else:
                print(f"[{section.__name__} needs {need}; there is none here]")

        return run

    return wrap


def aside(section: Callable[P, None]) -> Callable[P, None]:
    """Mark a section that is off the main path: it runs as ever, and readers find it folded.

    The mark is read from the text. Raises `AuthorError` for what is no function.
    """
    if not callable(section):
        raise AuthorError("aside() takes a section: write `@aside` on the line above its `def`")
    return section


def word(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a function of your own a word: readers see what it hands over, and no line that calls it.

    One that does nothing but call words is one without this. Raises `AuthorError` for what is no function.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        raise AuthorError("word() takes a function: write `@word` on the line above its `def`")
    DECLARED.add(code)
    return function


def recording() -> bool:
    """Whether the lecture is being recorded: False in plain Python and in a notebook.

    For what must not happen there, processes of its own, say. What a page claims should not depend on it.
    """
    return _recorder is not None


def hand(kind: PieceKind, text: str, data: str = "", alt: str = "", width: int = 0) -> None:
    """Hand a piece over as it is, to the running recorder; without one it is printed."""
    if _recorder is not None:
        _recorder.piece(Piece(kind, 0, 0, 0, text, data, alt, width=width))
    else:
        forms = {"note": text, "misbelief": f"Commonly said: {text}\nRun: {data}"}
        forms |= {"link": f"[{text}] {data}", "speaker": f"[speaker note] {text}"}
        print(forms.get(kind, f"[{kind}: {text or alt}]") + "\n")


def _say(word: str, text: str) -> None:
    if _recorder is not None:
        _recorder.say(word, text)


def _text(word: str, text: object) -> str:
    """The text for readers that a word was given."""
    plain = _plain(word, text)
    _say(word, cast(str, text))
    return plain


def _plain(word: str, text: object) -> str:
    if not isinstance(text, str):
        shown = ""
        with contextlib.suppress(Exception):  # the message is about its type
            shown = f": {str(text)[:60]}"
        raise AuthorError(f"{word}() takes text, not {type(text).__name__}{shown}")
    text = without_marks(text)
    between = text.split("$")  # each but the first and the last may be a formula
    for formula, after in itertools.pairwise(between[1:]):
        closed = not after or not (formula[-1:].isspace() or after[0].isdigit())
        for eaten in _EATEN.finditer(formula.partition("\n\n")[0]) if closed else ():
            command = "\\" + "abfvtrn"["\a\b\f\v\t\r\n".index(eaten[1])] + eaten[2]
            if eaten[1] != "\n" or eaten[2] in _LIKE_NO_WORD or command in _calling_statement():
                what = f"Python has read the '{command[:2]}' of '{command}' in a formula as one character"
                raise AuthorError(f"{word}(): {what}\n{RAW}")
    return cleandoc(text)


def _calling_statement() -> str:
    """The lines of the statement that calls the author's word, as they are written; "" where nobody knows."""
    frame = next(frame for frame, _ in traceback.walk_stack(None) if frame.f_code.co_filename != __file__)
    first, last, *_ = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    return "".join(linecache.getlines(frame.f_code.co_filename)[(first or 1) - 1 : last])
