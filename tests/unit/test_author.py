"""The author's words: what they hand over, what they refuse, and what they print in plain Python."""

from __future__ import annotations

import inspect
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, get_args

import matplotlib as mpl
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt
from tests.running import HEAD, REPO, record, section, write

import litbook
from litbook import aside, figure, link, misbelief, note, question, requires, speaker_note
from litbook.errors import AuthorError
from litbook.lecture import author_words
from litbook.notebook import runtime
from litbook.probe import author
from litbook.record import model

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)


class Taker:
    """A recorder that keeps what it is given."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Any, ...]] = []

    def piece(self, piece: model.Piece) -> None:
        self.pieces.append((piece.kind, piece.text, piece.data, piece.alt))

    def say(self, word: str, text: str) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def question(self, asked: model.Piece, answer: object) -> None:
        self.pieces.append((asked.kind, asked.text, answer, asked.unit, asked.data, asked.why, asked.within))


@pytest.fixture
def taker():
    taker = Taker()
    before = author.hand_to(taker)
    yield taker
    author.hand_to(before)


@pytest.fixture
def fig():
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot([1, 2, 3], [1, 4, 9], label="n²")
    axes.fill_between([1, 2, 3], [1, 4, 9], hatch="//")
    axes.legend()
    yield figure
    plt.close(figure)


def test_the_words_are_those_of_the_package() -> None:
    assert sorted(litbook.__all__) == [
        "aside",
        "explore",
        "figure",
        "image",
        "link",
        "misbelief",
        "note",
        "question",
        "recording",
        "requires",
        "speaker_note",
        "word",
    ]


# ------------------------------------------------------------------------ note, misbelief


def test_a_note_is_handed_over_without_its_indentation(taker: Taker) -> None:
    note("""
        - one
          - two

        last
        """)
    assert taker.pieces == [("note", "- one\n  - two\n\nlast", "", "")]


@pytest.mark.parametrize(
    ("value", "said"),
    [(3, "int: 3"), (None, "NoneType: None"), (["a"], "list: ['a']"), (b"x", "bytes: b'x'")],
)
def test_a_note_takes_text_only(value: Any, said: str) -> None:
    with pytest.raises(AuthorError, match="^" + __import__("re").escape(f"note() takes text, not {said}")):
        note(value)


def test_a_note_is_refused_also_when_its_value_cannot_be_printed() -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(AuthorError, match=r"note\(\) takes text, not Bad"):
        note(Bad())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "command"),
    [
        ("a $\theta$", r"\theta"),
        ("$a\times b$", r"\times"),
        ("$a \neq b$", r"\neq"),
        ("a $\beta$ here", r"\beta"),
        ("in $x$, $\rho$", r"\rho"),
        ("\n$$\n    \frac{a}{b}\n    $$\n", r"\frac"),
    ],
)
def test_a_formula_whose_backslash_python_has_read_is_refused(formula: str, command: str) -> None:
    with pytest.raises(AuthorError) as refused:
        note(formula)
    assert str(refused.value) == (
        f"note(): Python has read the '{command[:2]}' of '{command}' in a formula as one character\n"
        'put r before the quotation mark: r"…"; in an f-string rf"…", with its formulas\' braces doubled'
    )


@pytest.mark.parametrize(
    "text",
    [
        "$5 each\tfor 2, $6",
        "$x +\ny$",
        "$$\n\tx = 1\n$$",
        "a\tb",
        r"$\theta$",
        pytest.param("$" + "\ta" * 300_000, id="as long as two books"),
    ],
)
def test_tabs_and_ends_of_lines_elsewhere_are_let_be(text: str, taker: Taker) -> None:
    note(text)
    assert len(taker.pieces) == 1


def test_a_newline_in_a_formula_is_told_as_a_command_where_it_is_written_as_an_escape(taker: Taker) -> None:
    u = "u"
    note("""A sum, $a +
u$; and $b$.""")  # the line is wrapped
    note(f"A sum, $a +\n{u}$.")
    assert len(taker.pieces) == 2
    for call in (lambda: note("What is $\nu$?"), lambda: question("What is $a\ne b$?", answer=3, hint="no")):
        with pytest.raises(
            AuthorError, match=r"has read the '\\n' of '\\n[ue]' in a formula as one character"
        ):
            call()


def test_a_speaker_note_is_a_piece_of_its_own_kind_and_takes_text_only(taker: Taker) -> None:
    speaker_note("""
        Ask first:
          who has seen this?
        """)
    assert taker.pieces == [("speaker", "Ask first:\n  who has seen this?", "", "")]
    with pytest.raises(AuthorError, match=r"^speaker_note\(\) takes text, not int: 3"):
        speaker_note(3)  # type: ignore[arg-type]


def test_plain_python_prints_a_speaker_note_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    speaker_note("slow down here")
    assert capsys.readouterr().out == "[speaker note] slow down here\n\n"


def test_a_misbelief_carries_both_sides(taker: Taker) -> None:
    misbelief("a view copies", "it does not")
    assert taker.pieces == [("misbelief", "a view copies", "it does not", "")]
    with pytest.raises(AuthorError, match=r"misbelief\(\) takes text, not int"):
        misbelief("x", 3)  # type: ignore[arg-type]


# ------------------------------------------------------------------------ figure


def test_a_figure_is_svg_that_stands_in_a_page(taker: Taker, fig: Any) -> None:
    figure(fig, caption="Squares", alt="A curve.")
    ((kind, caption, svg, alt),) = taker.pieces
    assert (kind, caption, alt) == ("figure", "Squares", "A curve.")
    assert svg.startswith("<svg")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "n²" in svg  # text stays text
    assert "<script" not in svg and "<?xml" not in svg and "<!DOCTYPE" not in svg
    assert "matplotlib.org" not in svg and "<dc:date" not in svg


def references(svg: str) -> tuple[list[str], set[str]]:
    """The ids of a picture, and those that it refers to."""
    import re

    return re.findall(r' id="([^"]+)"', svg), set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))


def test_the_same_figure_gives_the_same_bytes(taker: Taker, fig: Any) -> None:
    figure(fig, caption="", alt="x")
    figure(fig, caption="", alt="x")
    assert taker.pieces[0][2] == taker.pieces[1][2]


def test_plain_python_prints_the_caption_and_draws_nothing(
    fig: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing takes longer than most sections, and nobody would see it; benchmarks count on it."""
    monkeypatch.setattr(fig, "savefig", lambda *_, **__: pytest.fail("it was drawn"))
    figure(fig, caption="Squares", alt="A curve.")
    assert capsys.readouterr().out == "[figure: Squares]\n\n"


@pytest.mark.slow
def test_the_same_figure_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import matplotlib; matplotlib.use('Agg')\nfrom matplotlib import pyplot as plt\nfrom litbook.probe import svg as vector\n"
        "f, a = plt.subplots(); a.plot([1, 2], [3, 4]); a.hist([1, 2, 2], hatch='x')\nprint(vector.svg(f))"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], cwd=REPO / "tools", env={"PYTHONHASHSEED": seed, "HOME": str(tmp_path)},
                       capture_output=True, text=True, check=True, timeout=120).stdout
        for seed in "12"
    }  # fmt: skip
    assert len(runs) == 1


def test_the_ids_of_two_figures_do_not_clash_and_every_reference_has_its_target(
    taker: Taker, fig: Any
) -> None:
    figure(fig, caption="", alt="x")
    fig.axes[0].plot([3, 2, 1], [1, 1, 2])
    figure(fig, caption="", alt="x")
    first, second = (references(piece[2]) for piece in taker.pieces)
    assert not set(first[0]) & set(second[0])
    for ids, used in (first, second):
        assert used and used <= set(ids)
        assert len(ids) == len(set(ids))


def test_text_in_a_figure_is_text(taker: Taker, fig: Any) -> None:
    fig.axes[0].set_title("<script>alert(1)</script>")
    figure(fig, caption="", alt="x")
    assert "<script>" not in taker.pieces[0][2]
    ET.fromstring(taker.pieces[0][2])


@pytest.mark.parametrize("alt", ["", "   ", "\n\t"])
def test_a_figure_needs_an_alt_text(fig: Any, alt: str) -> None:
    with pytest.raises(AuthorError, match=r"figure\(\) needs an alt text: say what the figure shows"):
        figure(fig, caption="x", alt=alt)
    with pytest.raises(TypeError, match="alt"):
        figure(fig, caption="x")  # type: ignore[call-arg]


def test_a_figure_is_no_module_and_no_axes(fig: Any) -> None:
    with pytest.raises(
        AuthorError, match=r"figure\(\) takes a Matplotlib figure, not list: pass `fig`, not `plt`"
    ):
        figure([], caption="", alt="x")
    with pytest.raises(AuthorError, match=r"not Axes"):
        figure(fig.axes[0], caption="", alt="x")
    with pytest.raises(AuthorError, match=r"not module: pass `fig`, not `plt`"):
        figure(plt, caption="", alt="x")


# ------------------------------------------------------------------------ image


@pytest.fixture
def shows(tmp_path: Path):
    """Runs a lecture whose section is `image(...)`, with a picture beside it; returns the record."""
    (tmp_path / "dot.png").write_bytes(PIXEL)
    (tmp_path / "dot.jpg").write_bytes(PIXEL)
    (tmp_path / "text.png").write_text("no picture")
    return lambda call: record(tmp_path, section(call))


def test_an_image_is_read_from_beside_the_lecture(shows) -> None:
    (piece,) = shows('image("dot.png", alt="A dot.", caption="One pixel")').by_key["one"].pieces
    assert (piece.kind, piece.text, piece.alt) == ("image", "One pixel", "A dot.")
    assert piece.data.startswith("data:image/png;base64,iVBORw0KGgo")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ('image("dot.png", alt="")', "image() needs an alt text: say what the picture shows, in a sentence"),
        ('image("https://example.org/x.png", alt="x")', "image() shows local files; 'https://example.org/x.png' is elsewhere"),
        ('image("data:image/png;base64,AA", alt="x")', "image() knows .png, .jpg"),
        ('image("none.png", alt="x")', "image() cannot read 'none.png': No such file or directory\nits path goes from the folder that this lecture's file is in"),
        ('image("dot.jpg", alt="x")', "image() finds no jpeg in 'dot.jpg': it holds png\nsave it anew, or rename it"),
        ('image("text.png", alt="x")', "image() finds no png in 'text.png': it holds no picture that image() knows"),
        ('image("dot.png", alt="x", width=0)', "image() takes a width in pixels, width=400, not 0"),
        ('image("dot.png", alt="x", width="4em")', "image() takes a width in pixels, width=400, not '4em'"),
        ('image("dot.bmp", alt="x")', "image() knows .png, .jpg, .jpeg, .svg, .webp, .gif; 'dot.bmp' is none of these"),
        ('image(".", alt="x")', "image() knows .png"),
        ('image("dot.png", alt="x", caption=3)', "image() takes text, not int: 3"),
    ],
)  # fmt: skip
def test_an_image_that_cannot_be_shown_says_why(shows, call: str, says: str) -> None:
    ((_, error),) = shows(call).errors()
    assert (error.kind, error.text) == ("author", call)
    assert says in error.message


def test_an_image_has_a_largest_size(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(PIXEL + bytes(5_000_000))
    made = record(tmp_path, section('image("big.png", alt="x")'))
    assert (
        f"image() takes up to 5,000,000 bytes; 'big.png' has {5_000_000 + len(PIXEL):,}\nsave it with fewer pixels"
        in next(made.errors())[1].message
    )


# ------------------------------------------------------------------------ link


def a_section() -> None:
    pass


def test_a_link_goes_to_a_url_a_citation_or_a_function(taker: Taker) -> None:
    link("https://example.org/a?b=c", "there")
    link("http://example.org")
    link("@vaswani2017", "the paper")
    link(a_section)
    link(a_section, "see above")
    assert [piece[1:3] for piece in taker.pieces] == [
        ("there", "https://example.org/a?b=c"),
        ("http://example.org", "http://example.org"),
        ("the paper", "cite:vaswani2017"),
        ("a_section", "function:a_section"),
        ("see above", "function:a_section"),
    ]


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "ftp://x", "", "@", "@a b", "https://a b", "notes.md", 3, None, lambda: None],
)
def test_a_link_to_anything_else_is_refused(target: Any) -> None:
    with pytest.raises(
        AuthorError, match=r"link\(\) takes an http\(s\) URL, '@key', a function or '#name', not "
    ):
        link(target)


def test_the_text_of_a_link_is_text() -> None:
    with pytest.raises(AuthorError, match=r"link\(\) takes text, not int"):
        link("https://example.org", 3)  # type: ignore[arg-type]


# ------------------------------------------------------------------------ requires


def test_requires_knows_its_devices() -> None:
    knows = r"requires\(\) knows 'cuda', 'slow', 'linux', 'ranks=4', 'cuda, ranks=2' and 'simulated ranks=1024', not 'tpu'; without"
    with pytest.raises(AuthorError, match=knows):
        requires("tpu")


def test_a_required_section_keeps_its_name_and_docstring() -> None:
    @requires("cuda")
    def fast() -> None:
        """Fast."""

    assert (fast.__name__, fast.__doc__) == ("fast", "Fast.")


# ------------------------------------------------------------------------ aside


def test_an_aside_is_the_function_that_it_was() -> None:
    def beside() -> None:
        """Beside."""

    assert aside(beside) is beside


def test_an_aside_is_a_function() -> None:
    with pytest.raises(
        AuthorError, match=r"aside\(\) takes a section: write `@aside` on the line above its `def`"
    ):
        aside("beside")  # type: ignore[arg-type]  # what it says of that is the point


# ------------------------------------------------------------------------ plain Python


def test_a_lecture_runs_as_plain_python_and_prints_its_prose(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PIXEL)
    path = write(
        tmp_path,
        f"""{HEAD}
import matplotlib; matplotlib.use("Agg")
from matplotlib import pyplot as plt
def main():
    note("A **note**.")
    one()
    two()
def one():
    x = 2 + 2  # @inspect x
    assert x == 4, "four"
    misbelief("it is five", f"it is {{x}}")
    figure(plt.figure(), caption="Nothing", alt="Empty.")
    image("dot.png", alt="A dot.")
    link("https://example.org", "there")
@requires("cuda")
def two():
    note("on a GPU")
if __name__ == "__main__":
    main()
""",
    )
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={"PYTHONPATH": str(REPO / "tools"), "CUDA_VISIBLE_DEVICES": "", "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == (
        "A **note**.\n\nCommonly said: it is five\nRun: it is 4\n\n[figure: Nothing]\n\n[image: A dot.]\n\n"
        "[there] https://example.org\n\n[two needs cuda; there is none here]\n"
    )


def test_a_lecture_can_ask_whether_it_is_being_recorded(tmp_path: Path) -> None:
    text = f"{HEAD}from litbook import recording\n" + section(
        "told = recording()  # @inspect told\nassert told, 'recorded'\nif not told: note('Plain Python.')"
    )
    made = record(tmp_path, text)
    assert [claim.verdict for _, claim in made.claims()] == ["holds"] and not list(made.errors())
    assert [piece for it in made.sections for piece in it.pieces] == []
    space: dict[str, Any] = {"__name__": "plain"}
    exec(compile(text, "plain", "exec"), space)
    assert space["recording"]() is False and runtime.recording() is False


def test_the_recorder_before_comes_back() -> None:
    first, second = Taker(), Taker()
    assert author.hand_to(first) is None
    assert author.hand_to(second) is first
    assert author.hand_to(None) is second


def test_one_table_says_of_every_word_what_it_is_and_the_notebook_knows_them_all() -> None:
    others = {"aside", "requires", "recording", "word"}
    assert set(litbook.__all__) == others | set(author_words.WORDS)
    assert set(runtime.__all__) <= set(litbook.__all__)  # in a notebook a further word says its text
    kinds = set(get_args(model.PieceKind))
    assert kinds >= author_words.SEEN
    for name, word in author_words.WORDS.items():
        given = inspect.signature(getattr(litbook, name)).parameters
        assert {place for place in word.fields if isinstance(place, str)} <= set(given)
        positions = [place for place in word.fields if isinstance(place, int)]
        assert {list(given)[place] for place in positions} <= set(word.fields)
