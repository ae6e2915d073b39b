"""A run as it goes, in a terminal: the prose, the code that ran, and what came out.

Plain text when the output is no terminal: no colour, no boxes, one fact a line, fit for a log or a pipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markdown import Markdown
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from litbook.render import values

if TYPE_CHECKING:
    from litbook import trace

SIGNS = {"holds": ("✓", "green"), "fails": ("✗", "bold red")}
GUTTER = 6  # columns of line numbers


class Terminal:
    """Listens to a run and prints it. Works for every `litbook.recorder.Listener` event.

    `functions`, `statements` and `lines` come with `begin`, from the lecture's text.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet
        self.status: Any = None
        self.device = ""
        self.functions: list[trace.Function] = []
        self.statements: list[trace.Statement] = []
        self.lines: list[str] = []
        self.cuts: dict[int, int] = {}
        self.printed = 0  # last source line printed of the current section
        self.open_output = False

    # -- events of a run

    def begin(self, lecture: Any, environment: trace.Environment) -> None:
        """The lecture is read and about to run."""
        self.functions, self.statements = lecture.functions, lecture.statements
        self.lines, self.cuts = lecture.lines, {line: column for line, column in reversed(lecture.cuts)}
        self.device = environment.device.name
        if self.console.is_terminal:
            self.status = self.console.status("starting", spinner="dots")
            self.status.start()
        if not self.quiet:
            self._say(Text(lecture.title, style="bold"))
            self._say(Text(_where(environment), style="dim"))

    def end(self) -> None:
        """The run is over, however it ended."""
        if self.status is not None:
            self.status.stop()

    def section(self, function: int) -> None:
        """A section begins."""
        spec = self.functions[function]
        if self.status is not None:
            self.status.update(f"{spec.name}: {spec.heading}")
        if self.quiet:
            return
        self.printed = 0
        self._say("")
        if self.console.is_terminal:
            self._say(Rule(Text(spec.heading, style="bold"), align="left"))
        else:
            self._say(f"{'#' * self._depth(function)} {spec.heading}")

    def skipped(self, function: int, device: str) -> None:
        """A section whose device is not here."""
        if not self.quiet:
            self.section(function)
            self._say(Text(f"needs {device}; there is none here", style="yellow"))

    def line(self, statement: int) -> None:
        """A statement of a section is about to run for the first time."""
        spec = self.statements[statement]
        if self.quiet or spec.kind in ("piece", "section", "hidden", "doc"):
            return
        last = spec.end if spec.kind == "def" else spec.last
        if spec.first <= self.printed:
            return
        for number in self._missing(spec.first):
            self._code(number)
        for number in range(spec.first, last + 1):
            self._code(number)
        self.printed = last

    def piece(self, piece: trace.Piece) -> None:
        """Prose, a figure, a link, printed output."""
        if self.quiet:
            return
        if piece.kind == "output":
            self._say(Text(piece.text.rstrip("\n"), style="cyan"))
        elif piece.kind == "note":
            self._say("")
            self._say(Markdown(piece.text) if self.console.is_terminal else piece.text)
            self._say("")
        elif piece.kind == "misbelief":
            self._say("")
            self._say(Text.assemble(("Commonly said: ", "bold red"), piece.text))
            self._say(Text.assemble(("Run: ", "bold green"), piece.data))
            self._say("")
        elif piece.kind == "link":
            self._say(f"[{piece.text}] {piece.data}")
        else:
            self._say(Text(f"[{piece.kind}: {piece.text or piece.alt}]", style="magenta"))

    def value(self, value: trace.Value, shown: trace.Snapshot | None) -> None:
        """An inspected expression of a section."""
        if self.quiet or shown is None:
            return
        text = values.line(shown, value.unit)
        remark = f"   (measured on {self.device})" if value.kind == "measure" else ""
        remark += f"   (iteration {value.turn + 1})" if value.turn else ""
        self._say(Text.assemble(" " * GUTTER, "  ", (value.text, "blue"), " = ", text, (remark, "dim")))

    def claim(self, claim: trace.Claim, snapshots: list[trace.Snapshot]) -> None:
        """A claim was judged."""
        if self.quiet:
            return
        sign, style = SIGNS[claim.verdict]
        tested = claim.why or values.claim(claim, snapshots)
        caption = claim.caption or claim.text
        self._say(Text.assemble(" " * GUTTER, "  ", (f"{sign} {caption}", style), "   ", (tested, "dim")))

    def error(self, error: trace.Error) -> None:
        """Something went wrong; the end of the run lists it in full."""
        if not self.quiet:
            self._say(Text(f"{'':{GUTTER}}  ! line {error.line}: {error.message}", style="bold red"))

    # -- printing

    def _say(self, what: Any) -> None:
        if isinstance(what, str):
            what = Text(what)
        self.console.print(what, soft_wrap=not self.console.is_terminal, highlight=False)

    def _code(self, number: int) -> None:
        text = self.lines[number - 1][: self.cuts.get(number)].rstrip()
        if not text.strip():
            return
        head = Text(f"{number:>{GUTTER}}  ", style="dim")
        if self.console.is_terminal:
            code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text)
            code.rstrip()
            self._say(head + code)
        else:
            self._say(head + Text(text))

    def _missing(self, first: int) -> range | list[int]:
        """Lines between two statements that are no statement: `else:`, `finally:`."""
        if not self.printed or first - self.printed > 4:
            return []
        between = range(self.printed + 1, first)
        return [n for n in between if self.lines[n - 1].strip().rstrip(":") in ("else", "finally", "try")]

    def _depth(self, function: int) -> int:
        depth, parent = 1, self.functions[function].parent
        while parent is not None:
            depth, parent = depth + 1, self.functions[parent].parent
        return depth


def _where(environment: trace.Environment) -> str:
    versions = [f"{name} {version}" for name, version in environment.versions.items() if name == "torch"]
    device = environment.device
    return " · ".join([f"Python {environment.python}", *versions, f"{device.kind}: {device.name}"])
