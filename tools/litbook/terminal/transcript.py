"""A run as it goes, in a terminal: the prose, the code that ran, and what came out.

Plain text when the output is no terminal: no colour, no boxes, one fact a line, fit for a log or a pipe.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, assert_never

from rich.console import Console
from rich.markdown import Markdown
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from litbook.explore import chart
from litbook.finding import Place
from litbook.lecture.author_words import calls
from litbook.lecture.model import LectureFunction, SourceStatement
from litbook.markdown import grammar
from litbook.markdown.to_markdown import MarkdownWriter
from litbook.page import blocks, margin, pieces
from litbook.record import model
from litbook.record.device_kinds import needs
from litbook.rules.outcome import harmless
from litbook.values import formatting

SIGNS = {"holds": ("✓", "green"), "fails": ("✗", "bold red")}
GUTTER = 6  # columns of line numbers; then two of space, then code, values, verdicts and output
MARGIN = " " * (GUTTER + 2)


class Screen(Console):
    """A console whose reader may go away (`| head`): then it falls silent, and the run goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Terminal:
    """Listens to a run and prints it. Works for every `litbook.probe.recorder.Listener` event.

    `functions`, `statements` and `lines` come with `begin`, from the lecture's text. Whatever a lecture
    holds or prints is text here: no markup, no control characters.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self.status: Any = None
        self.device = ""
        self.functions: list[LectureFunction] = []
        self.statements: list[SourceStatement] = []
        self.bare: set[int] = set()  # statements that may turn out to be words
        self.waits = False  # for the rest of one, which may be words, too
        self.held = -1, list[Text]()  # one, and its code, which is printed unless it does
        self.files: list[tuple[list[str], dict[int, int]]] = []
        self.file = 0  # the current section's, of which `lines` and `cuts` are
        self.lines: list[str] = []
        self.cuts: dict[int, int] = {}
        self.printed = 0  # last source line printed of the current section
        self.output = ""  # the lecture's printed line that has no end yet
        self.gap = True  # whether an empty line stands above: two never follow each other

    # -- events of a run

    def begin(self, lecture: Any, environment: model.Environment) -> None:
        """The lecture is read and about to run."""
        self.functions, self.statements = lecture.functions, lecture.statements
        self.bare = {number for node, number in lecture.statement_of.items() if calls(node)}
        self.files = [(file.lines, dict(reversed(file.cuts))) for file in lecture.files]
        self.lines, self.cuts = self.files[0]
        self.device = environment.device.name
        if self.console.is_terminal:
            self.status = self.console.status(Text("starting"), refresh_per_second=4)  # leaves the CPU alone
            self.status.start()
        self.say(Text(harmless(lecture.title), style="bold"))
        device, torch = environment.device, environment.versions.get("torch")
        which = f", the first of {device.count} visible" if (device.count or 0) > 1 else ""
        where = [f"Python {environment.python}", *([f"torch {torch}"] if torch is not None else [])]
        self.say(Text(" · ".join([*where, f"{device.kind}: {device.name}{which}"]), style="dim"))

    def end(self) -> None:
        """The run is over, however it ended."""
        self._release()
        if self.status is not None:
            self.status.stop()

    @contextlib.contextmanager
    def make_way(self) -> Iterator[None]:
        """While somebody else writes where this prints, a debugger, nothing is drawn anew."""
        if self.status is not None:
            self.status.stop()
        try:
            yield
        finally:
            if self.status is not None:
                self.status.start()

    def section(self, function: int) -> None:
        """A section begins."""
        spec = self.functions[function]
        self._turn_to(spec.file)
        if self.status is not None:
            self.status.update(Text(f"{spec.name}: {harmless(spec.heading)}"))
        self.printed = 0
        depth, parent = 1, spec.parent
        while parent is not None:
            depth, parent = depth + 1, self.functions[parent].parent
        self.title(f"{'aside: ' * spec.aside}{spec.heading}", depth, spec.aside)
        if spec.kind == "section" and (count := needs(spec.requires).simulated):
            self.say(
                Text(f"{margin.ranks(count, True)}: {margin.SIMULATED.partition(': ')[2]}", style="yellow")
            )

    def title(self, text: str, depth: int = 2, aside: bool = False) -> None:
        """What stands above a section."""
        self._gap()
        title = harmless(text)
        if self.console.is_terminal:
            self.say(Rule(Text(title, style="dim" if aside else "bold"), align="left"))
        else:
            self.say(f"{'#' * depth} {title}")
        self._gap()

    def skip(self, function: int, device: str) -> None:
        """A section whose device is not here, or that is slow."""
        self.section(function)
        slow = ": it runs when it is asked for by name, and when it is recorded"
        self.say(Text(margin.not_run(device) + slow * needs(device).kind.on_request, style="yellow"))

    def line(self, statement: int) -> None:
        """A statement of a section is about to run for the first time."""
        spec = self.statements[statement]
        if spec.kind in ("piece", "section", "hidden", "doc"):
            return
        last = spec.end if spec.kind == "def" else spec.last
        self._turn_to(self.functions[spec.function].file)
        if spec.first <= self.printed:
            return
        # How far the body of the function is indented: it is printed without that.
        body = self.functions[spec.function].body
        first = self.lines[body - 1] if body else ""
        indent = len(first) - len(first.lstrip())
        opener = range(spec.opener, spec.first) if spec.opener > self.printed else ()
        code = [self._code(number, indent) for number in (*opener, *range(spec.first, last + 1))]
        self._release()
        self.held = statement, [line for line in code if line.plain]
        if statement not in self.bare:
            self._release()
        self.printed = last

    def word(self, statement: int, whole: bool) -> None:
        """A statement hands a piece over as a note does; where that is the `whole` of it, it is no code."""
        if self.held[0] == statement:
            self.waits, self.held = not whole, (-1, []) if whole else self.held

    def piece(self, piece: model.Piece) -> None:
        """Prose, a figure, a link, printed output."""
        self.show_piece(pieces.block(piece))
        self.waits = False

    def question(self, piece: model.Piece, answer: model.Snapshot) -> None:
        """A question with its answer."""
        self.show_piece(pieces.block(piece, blocks.Answer(answer, piece.unit)))

    def show_piece(self, block: blocks.PieceBlock) -> None:
        """What a word of the author has come to; a terminal folds nothing."""
        match block:
            case blocks.Prose(_, text):
                self._gap()
                text = plain_markdown(harmless(text))
                self.say(Markdown(text) if self.console.is_terminal else text)
                self._gap()
            case blocks.Misbelief(_, common, run):
                self._gap()
                self._speak("Commonly said: ", "bold red", common)
                self._speak("Run: ", "bold green", run)
                self._gap()
            case blocks.Question(_, text, hint, answer, why):
                self._gap()
                self._speak("Check yourself: ", "bold blue", text)
                if hint:
                    self._speak("Hint: ", "bold blue", hint)
                if answer:
                    line = formatting.line(answer.value, answer.unit)
                    self.say(Text.assemble(("Answer: ", "bold green"), line))
                if why:
                    self.say(Text(harmless(why)))
                self._gap()
            case blocks.Figure() | blocks.Image():
                kind = type(block).__name__.lower()
                words = plain_markdown(harmless(block.caption)) or harmless(block.alt)
                self.say(Text(f"[{kind}: {words}]", style="magenta"))
            case blocks.Explore(_, grid, alt, caption, do):
                self.say(Text(f"[explore: {plain_markdown(harmless(caption or alt))}]", style="magenta"))
                if do:
                    self._speak("Try: ", "bold blue", do)
                for line in chart.lines(grid):
                    self.say(Text(harmless(f"{MARGIN}{line}")))
            case blocks.LinkBlock(_, text, target):
                address = target.removeprefix("function:").replace("cite:", "@", 1)
                self.say(f"[{plain_markdown(harmless(text))}] {address}")
            case blocks.PrintedOutput(_, text):
                self._print(harmless(text))
            case blocks.SpeakerNote(_, text):
                self.say(Text(f"[speaker note] {plain_markdown(harmless(text))}", style="dim"))
            case _:
                assert_never(block)

    def _speak(self, head: str, style: str, text: str) -> None:
        """Prose behind words of our own."""
        self.say(Text.assemble((head, style), plain_markdown(harmless(text))))

    def value(self, value: model.Value, shown: model.Snapshot | None) -> None:
        """An inspected expression of a section; without a value where more of them are not printed."""
        name = (harmless(value.text), "blue")
        if shown is None:
            self.say(Text.assemble(MARGIN, "→ ", name, (" …", "dim")))
            return
        text = formatting.line(shown, value.unit)
        remark = f"   (measured on {self.device})" if value.kind == "measure" else ""
        remark += f"   (iteration {value.turn + 1})" if value.turn else ""
        self.say(Text.assemble(MARGIN, "→ ", name, " = ", text, (remark, "dim")))

    def claim(self, claim: model.Claim, snapshots: list[model.Snapshot]) -> None:
        """A claim was judged."""
        sign, style = SIGNS[claim.verdict]
        judged = claim.kind == "assert" and claim.verdict in SIGNS
        tested = formatting.claim(claim, snapshots) if judged else harmless(claim.why)
        caption = harmless(claim.caption or claim.text)
        remark = f"   {tested}" if tested else ""
        self.say(Text.assemble(MARGIN, (f"{sign} {caption}", style), (remark, "dim")))

    def error(self, error: model.Error, place: Place) -> None:
        """Something went wrong; the end of the run lists it in full."""
        first, _, more = harmless(error.message).partition("\n")
        here = [line for path, line, *_ in error.trace if path == place.path]
        line = here[-1] if here else place.line
        where = f"line {line}" if len(self.files) == 1 else f"{harmless(place.path)}:{line}"
        if error.trace and error.trace[-1][0] != place.path:
            where += f", in {harmless(error.trace[-1][0])}:{error.trace[-1][1]}"
        self.say(Text(f"{MARGIN}! {where}: {first}{' …' if more else ''}", style="bold red"))

    # -- printing

    def _release(self) -> None:
        """Print what was held back, unless a piece is told of a statement that may hold nothing else."""
        if self.output:
            self._print("\n")
        if self.waits:
            return
        code, self.held = self.held[1], (-1, [])
        for line in code:
            self._put(line)
            self.gap = False

    def say(self, what: Any) -> None:
        """Print something on a line of its own."""
        self._release()
        self._put(Text(harmless(what)) if isinstance(what, str) else what)
        self.gap = False

    def _put(self, what: Any) -> None:
        if self.quiet:
            return
        try:
            self.console.print(what, soft_wrap=not self.console.is_terminal, highlight=False)
        except (OSError, ValueError):  # a full disk, a closed file: no fault of the lecture's line
            self.console.quiet = True  # the command line meets it again, and says so

    def _gap(self) -> None:
        self._release()
        if not self.gap:
            self._put("")
        self.gap = True

    def _print(self, text: str) -> None:
        """The lecture's own output, line by line: `print("a", "b")` comes in four pieces."""
        *lines, rest = (self.output + text).split("\n")
        self.output = ""
        for line in lines:
            self.say(Text.assemble(MARGIN, ("│ ", "dim"), (line, "cyan")))
        self.output = rest

    def _turn_to(self, file: int) -> None:
        """The lines from here on are those of another file of the lecture."""
        if file != self.file:
            self.file, self.printed = file, 0
            self.lines, self.cuts = self.files[file]

    def _code(self, number: int, indent: int) -> Text:
        """A line of code behind its number; "" for a blank one."""
        text = harmless(self.lines[number - 1][: self.cuts.get(number)].rstrip())
        if not text.strip():
            return Text()
        text = text[min(indent, len(text) - len(text.lstrip())) :]
        code = Text(text)
        if self.console.is_terminal:
            code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text)
            code.rstrip()
        return Text.assemble((f"{number:>{GUTTER}}  ", "dim"), code)


def plain_markdown(text: str) -> str:
    """A note as Markdown that can be read as it stands."""
    return MarkdownWriter().markdown(grammar.read(text))


def loud() -> Terminal:
    """A terminal on stdout as it is now: a lecture prints elsewhere."""
    return Terminal(Screen(file=sys.stdout))


def quiet() -> Terminal:
    """The same, which prints no more than where the run is, and that only to a terminal."""
    return Terminal(Screen(file=sys.stdout), quiet=True)
