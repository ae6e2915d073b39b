"""A section as a reader meets it: a list of blocks in reading order, and beside a row of code its entries.

These are the forms alone; `section` makes the blocks of a section, `pieces` those of what an author handed
over. Page, notebook and terminal each walk them with one `match` that `assert_never` closes, so that a kind
which one of them forgets is a type error. Prose is Markdown as its author wrote it, values are text or
snapshots of the record; lines are those of the file that the section stands in. Nothing here is HTML.
"""

from __future__ import annotations

from msgspec import Struct

from litbook.record import model

# ---------------------------------------------------------------------------- what the author handed over


class Prose(Struct, frozen=True):
    """A note; of one that never ran what it says anyway."""

    line: int
    text: str


class Misbelief(Struct, frozen=True):
    """What is commonly said, and what the machine says."""

    line: int
    common: str
    run: str


class Answer(Struct, frozen=True):
    """A question's captured answer.

    `working` is how it comes about: its expression, and the same with values put in. `stamp` names the
    recording that it is from, if any. Right is what is at most 1 + `within` times too large or too small.
    `wrong` are common mistakes, each with the number that comes of it.
    """

    value: model.Snapshot
    unit: str | None = None
    working: tuple[str, ...] = ()
    stamp: str = ""
    within: float = model.WITHIN
    wrong: tuple[tuple[str, float], ...] = ()


class Question(Struct, frozen=True):
    """A question. Without an answer it never ran, and `missing` is the sentence that says why."""

    line: int
    text: str
    hint: str = ""
    answer: Answer | None = None
    why: str = ""
    missing: str = ""


class Figure(Struct, frozen=True):
    """A figure: the SVG of Matplotlib, what it shows in words, and its caption."""

    line: int
    svg: str
    alt: str
    caption: str = ""


class Explore(Struct, frozen=True):
    """A picture with sliders; `do` says what to try, `see` what one should have seen then."""

    line: int
    grid: model.Grid | model.Live  # of a script's picture the latter
    alt: str
    caption: str = ""
    do: str = ""
    see: str = ""


class Image(Struct, frozen=True):
    """A picture of the author's, as a data URI, and how many pixels of the page it takes; 0: its own."""

    line: int
    data: str
    alt: str
    caption: str = ""
    width: int = 0


class LinkBlock(Struct, frozen=True):
    """A link that stands alone. `target` is an address, `function:NAME` or `cite:KEY`."""

    line: int
    text: str
    target: str


class PrintedOutput(Struct, frozen=True):
    """What these lines printed, together."""

    lines: tuple[int, ...]
    text: str


class SpeakerNote(Struct, frozen=True):
    """What a lecturer says; no page shows it."""

    line: int
    text: str


PieceBlock = Prose | Misbelief | Question | Figure | Explore | Image | LinkBlock | PrintedOutput | SpeakerNote
"""What an author's word has come to."""


# ---------------------------------------------------------------------------- beside a line of code


class ShownValue(Struct, frozen=True):
    """A value beside its line.

    `turns` counts a loop's iterations in words, `series` is its course; `badge` says with whom it shares its
    storage. `measured` is the device of a measurement, `elsewhere` the same on others: value and stamp.
    `promise` is the annotation whose promise of dtype and axes the value keeps. `ranks` is what each rank of
    the section had, where they do not all have the same.
    """

    name: str
    text: str
    turns: str = ""
    series: model.Series | None = None
    badge: str = ""
    measured: str = ""
    elsewhere: tuple[tuple[str, str], ...] = ()
    failed: bool = False
    promise: str = ""
    ranks: tuple[str, ...] = ()


class AxesPromise(Struct, frozen=True):
    """An annotation that keeps its promise of dtype and axes, where no value stands beside it."""

    text: str


class ClaimVerdict(Struct, frozen=True):
    """A claim beside its line: the verdict, both sides with their values, and what else is to be said of it.

    `caption` is empty where the line of code already has it. `times` says how often the claim was judged,
    `remark` on which device, or what that still needs. `claim` is the claim itself, `alike` the value
    that all its sides have, where they have one, and `condition` what must be true for it to be reached.
    Where it is `unseen`, its test names what no shown line gives a value. Where it is `said`, a sentence
    above it has the verdict and the rest; here both sides are left.
    """

    verdict: model.Verdict
    sides: str
    caption: str = ""
    times: str = ""
    remark: str = ""
    claim: model.Claim | None = None
    alike: str = ""
    condition: str = ""
    unseen: bool = False
    said: bool = False


class RaisedError(Struct, frozen=True):
    """An error beside its line, in short; its box says more."""

    message: str


MarginEntry = ShownValue | AxesPromise | ClaimVerdict | RaisedError


class CodeRow(Struct, frozen=True):
    """A line of code by its number, and what stands beside it, which may take so many `rows`.

    `proof` is the line of the claim that it belongs to, for who folds what only checks; 0 for none.
    `statement` is the line where the outermost statement around it begins.
    """

    number: int
    entries: tuple[MarginEntry, ...] = ()
    rows: int = 1
    reached: bool = True
    failed: bool = False
    proof: int = 0
    statement: int = 0


# ---------------------------------------------------------------------------- below a block of code


class OperandValue(Struct, frozen=True):
    """One operand of a failed claim: its source, and what it was."""

    text: str
    value: str


class Failure(Struct, frozen=True):
    """A claim that fails: where it stands, and what each side was."""

    claim: model.Claim
    path: str
    sides: tuple[OperandValue, ...]


class ErrorBox(Struct, frozen=True):
    """Something that went wrong, and the file of the section where it came up."""

    error: model.Error
    path: str


class Bits(Struct, frozen=True):
    """Floats by name, to be compared bit by bit."""

    values: tuple[tuple[str, model.Tensor], ...]


class Card(Struct, frozen=True):
    """A tensor that has more to show than its line."""

    name: str
    tensor: model.Tensor


class Strip(Struct, frozen=True):
    """A tensor that is another one on each rank; None on a rank that did not show it."""

    name: str
    tensors: tuple[model.Tensor | None, ...]


class RichDisplay(Struct, frozen=True):
    """A value that shows itself."""

    name: str
    value: model.Opaque


class MappingTable(Struct, frozen=True):
    """Mappings with the same keys and one unit, each with its name."""

    rows: tuple[tuple[str, model.Mapping], ...]
    unit: str | None = None


class Storage(Struct, frozen=True):
    """One small storage, with the views on it by name."""

    views: tuple[tuple[str, model.Tensor], ...]


class FullText(Struct, frozen=True):
    """All that the record has of a text that is too long for a line; `cut` if the text itself went on."""

    name: str
    text: str
    cut: bool


TallOutput = Bits | Card | Strip | RichDisplay | MappingTable | Storage | FullText
"""What is taller than a line."""


# ---------------------------------------------------------------------------- the blocks of a section


class CodeBlock(Struct, frozen=True):
    """Rows of code that stand together, so many spaces further left than in their file."""

    rows: tuple[CodeRow, ...]
    dedent: int = 0


class Legend(Struct, frozen=True):
    """What the code below it names: helpers that the section's prose does not name, and constants."""

    helpers: tuple[tuple[str, str], ...]  # the key of a definition, and what its docstring says in a line
    constants: tuple[str, ...]  # the lines that give them


class HiddenClaims(Struct, frozen=True):
    """Claims behind `@hide` that hold: their lines and verdicts, apart from those that make the point."""

    code: CodeBlock
    count: int


class UnplacedEntries(Struct, frozen=True):
    """What belongs to lines of a section that shows no code at all."""

    entries: tuple[MarginEntry, ...]


class OutputShelf(Struct, frozen=True):
    """What came out of the code above it and is taller than a line."""

    things: tuple[TallOutput, ...]


class ShownHelper(Struct, frozen=True):
    """A helper that is the idea, by its key, above the first code of a page that names it."""

    helper: str


class HiddenLines(Struct, frozen=True):
    """Lines on which something begins that is not shown as code: links to it lead here."""

    lines: tuple[int, ...]


class SectionCall(Struct, frozen=True):
    """A further section, by its key, where it is called."""

    section: str


class Ranks(Struct, frozen=True):
    """On how many ranks a section runs; where one process runs as one of so many, `simulated` says so."""

    count: int
    simulated: bool


class Absence(Struct, frozen=True):
    """Why a section has nothing of this build, and whose recording stands in its place, if there is one."""

    text: str


class WaitingSection(Struct, frozen=True):
    """A section of which nothing has been seen, for want of a device, and what it will show."""

    aside: bool
    state: str  # why
    promise: str  # what it shows where it runs
    command: str  # which runs it
    inside: tuple[Block, ...]


Block = (
    PieceBlock
    | Legend
    | CodeBlock
    | HiddenClaims
    | UnplacedEntries
    | OutputShelf
    | Failure
    | ErrorBox
    | ShownHelper
    | HiddenLines
    | SectionCall
    | Ranks
    | Absence
    | WaitingSection
)
