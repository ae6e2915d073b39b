"""Every word of the engine on a page comes from the catalogue: a book whose author writes Greek, in a made-up language.

In that language each of our words stands in brackets, so a Latin word outside of them is one that no translator would
ever see; but for what is nobody's word: names of types, units, packages, files.
"""

from __future__ import annotations

import ast
import json
import re
from html import unescape
from html.parser import HTMLParser
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages import pofile
from babel.messages.frontend import CommandLineInterface
from msgspec.structs import replace
from tests.records import H200, PLACE, fill
from tests.running import REPO

from litbook import i18n, translations
from litbook.html import script_words
from litbook.page import margin
from litbook.project import recording_of
from litbook.record import encoding, model, recordings
from litbook.run.run import run

ENGINE = REPO / "tools" / "litbook"
POT = ENGINE / "translations" / "locale" / "litbook.pot"
LECTURE = '''"""Μνήμη"""
import torch
from jaxtyping import Float
from litbook import aside, link, misbelief, note, question, requires, speaker_note
from torch import Tensor

ΟΡΙΟ = 3


def main():
    note("Πρόλογος [@α].")
    μέρος()
    άλλο()


def μέρος():
    """Μέρος"""
    note("Δύο όψεις, βλέπε [άλλο](#ταχύ).")
    όψη()
    βρόχος()
    ερώτηση()
    πέρα()
    αργό()


def όψη():
    """Όψη"""
    ξ = torch.arange(6.0).view(2, 3)  # @inspect ξ
    υ = ξ.t()  # @inspect υ, υ.stride()
    ζ: Float[Tensor, "σειρά στήλη"] = ξ  # @inspect ζ
    μ = torch.zeros(9, 20, 20)  # @inspect μ
    σ = torch.arange(300)  # @inspect σ
    τ = torch.tensor([0.1, 0.0, -0.0, 1e-40, 2.0, 3.0, 4.0, 5.0, 6.0, float("nan"), float("inf")])  # @inspect τ as bits
    assert υ.stride() == (1, 3), "βήματα"
    assert ξ.shape == (2, 3) == tuple(ζ.shape), "σχήμα"
    π = {"α": 1024, "β": 2048}  # @inspect π as B
    ρ = {f"κλειδί{ι}": ι for ι in range(300)}  # @inspect ρ
    χ = {f"κλειδί με πολύ μακρύ όνομα {ι}": 10**9 for ι in range(3)}  # @inspect χ
    λ = list(range(3000))  # @inspect λ
    κ = "α" * 3000  # @inspect κ
    φ = 2**70000  # @inspect φ
    print("ναι")
    note("Και:")
    print("ναι")
    print("όχι")


def βρόχος():
    """Βρόχος"""
    for ι in range(1500):
        ω = ι * 0.5  # @inspect ω
        assert ω >= 0, "θετικό"
    for ι in range(2):
        ο = 1  # @inspect ο
    χρόνος = 0.5  # @measure χρόνος as s
    βοηθός(3)
    if ω < 0:
        assert ω, "ποτέ"
    misbelief("Πάντα.", "Όχι πάντα.")


def βοηθός(ν):
    """Βοηθός"""
    for ι in range(40):
        άθροισμα(ι)
    return ν


def άθροισμα(ν):
    """Άθροισμα"""
    return ν + 1


def ερώτηση():
    """Ερώτηση"""
    η = 6  # @inspect η
    question("Πόσο;", answer=2 * η, unit="B", hint="Δύο φορές.", why="Έτσι.")
    question("Ποια;", answer=torch.arange(20.0))
    link("https://example.org/", "σύνδεσμος")
    speaker_note("Σιγά.")


@requires("cuda")
def πέρα():
    """Πέρα"""
    γ = 2.0  # @measure γ as s
    assert γ > 1, "γρήγορο"
    misbelief("Ίσως.", "Όχι.")
    question("Πώς;", answer=1)


@requires("slow")
def αργό():
    """Αργό"""
    note("Αργά.")
    question("Πότε;", answer=1, hint="Τώρα.")
    misbelief("Ποτέ.", "Τώρα.")
    note("| α | β |\\n|---|---|\\n" + "\\n".join(f"| {ι} | {ι} |" for ι in range(3)))
    assert True is True, "αργά"


def άλλο():
    """Άλλο"""
    note("Τέλος. " * 40)
    note("!!! warning\\n    Προσοχή: κάτω, [@tab:α].")
    note("[@tab:α]: Πίνακας\\n\\n| α |\\n|---|\\n| 1 |")
    note("[@eq:β]: $$α = β$$")
    ταχύ()
    λάθος()


@aside
def ταχύ():
    """Ταχύ"""
    link(βοηθός)
    assert ΟΡΙΟ + 0 == 3, "όριο"


def λάθος():
    """Λάθος"""
    δ = 1  # @inspect δ.όχι
    assert δ == 2, "δύο"
    ε: Float[Tensor, "τρία 3"] = torch.zeros(2, 2)  # @inspect ε
    raise ValueError("τέλος")
'''
HERE = replace(PLACE, commit="0123456789")
CONFIG = """\
site_name: Βιβλίο
site_url: https://example.org/
theme: {name: material, language: LANGUAGE, features: [navigation.indexes]}
plugins: [search, litbook: {title: Διαλέξεις, unbacked: "off"}]
"""


def build(folder: Path, language: str) -> Path:
    """The site of the book, with one recording of this text and one of an older one; both are of this CPU."""
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config

    lecture = folder / "lectures" / "lecture_01.py"
    made = dict[str, model.Record]()
    for name, text in (
        ("gpu", LECTURE.replace('@requires("cuda")', "# a stand-in")),
        ("old", LECTURE.replace('@requires("cuda")', "# another").replace('"""Πέρα"""', '"""Πέρα;"""')),
        ("lectures", LECTURE),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / lecture.name).write_text(text, encoding="utf-8")
        made[name] = replace(run(folder / name / lecture.name, device="cpu"), environment=HERE)
    for name, slug in (("gpu", H200.slug), ("old", "nvidia-b200")):
        place = replace(HERE, device=replace(H200, slug=slug), date="2026-11-19T10:00:00Z")
        place = replace(place, versions={**place.versions, "torch": "2.11.0"})
        kept = replace(fill(made[name], "πέρα", requires="cuda"), environment=place, seconds=1234.0)
        file = recording_of(lecture, slug)
        file.parent.mkdir(exist_ok=True)
        file.write_text(encoding.dumps(recordings.trim(kept)), encoding="utf-8")
    (folder / "lectures" / "references.bib").write_text("@misc{α, title={Α}, author={Β}, year=2020}")
    (folder / "docs").mkdir()
    front = "# Αρχή\n\n<!-- claims -->\n\n<!-- parts -->\n\n<!-- excerpt -->\n\n<!-- drawing όψη -->\n"
    (folder / "docs" / "index.md").write_text(front)
    (folder / "mkdocs.yml").write_text(CONFIG.replace("LANGUAGE", language))
    config = load_config(str(folder / "mkdocs.yml"))
    config.plugins.on_startup(command="build", dirty=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "litbook.run.process.records_of", lambda paths: ((lambda: made["lectures"]) for _ in paths)
        )
        mkdocs_build(config)
    return folder / "site"


# ---------------------------------------------------------------------------- a language of brackets


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book in a language in which every text of ours stands in brackets: Esperanto, for Material and Babel."""
    folder = tmp_path_factory.mktemp("words")
    words = pofile.read_po(BytesIO(POT.read_bytes()), locale="eo")
    for it in words:
        if it.id:
            it.string = tuple(f"⟦{text}⟧" for text in it.id) if it.pluralizable else f"⟦{it.id}⟧"
    with (folder / "eo.po").open("wb") as file:
        pofile.write_po(file, words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translations, "LOCALE", folder)
        made = build(folder / "book", "eo")
    i18n.use("en")
    return made


class Seen(HTMLParser):
    """What a page shows or says: text, titles, labels and alternative texts; no code, no formula."""

    UNSEEN = frozenset({"script", "style", "code", "pre", "math"})
    SAID = frozenset({"title", "aria-label", "alt", "placeholder"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.hidden, self.texts, self.said = list[str](), list[str](), list[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.said += [value or "" for name, value in attrs if name in self.SAID]
        if tag in self.UNSEEN:
            self.hidden.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.hidden[-1:] == [tag]:
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.texts.append(data)


def outside(text: str) -> str:
    """The text without what stands in brackets."""
    depth, kept = 0, list[str]()
    for character in text:
        depth += character == "⟦"
        kept += [] if depth else [character]
        depth -= character == "⟧"
    assert depth == 0, text
    return "".join(kept)


# Names of types, packages, files, devices and units, which every language has as they are.
NOBODYS = set(
    "NVIDIA CPU GPU Python torch numpy einops jaxtyping matplotlib rich claims json lectures lecture py float "
    "int bool str dict list tuple cuda KiB MiB GiB kB MB GB ms nan inf min max mean std stride bits AMD EPYC Linux "
    "Float Tensor Nov CUDA".split()
)

# What a run says of its failures is in the record, and English as Python's own errors are.
FAILURES = (
    "@inspect δ.όχι raised AttributeError: 'int' object has no attribute 'όχι'",
    "float32(2, 2) is no Float[Tensor, 'τρία 3']",
    "ValueError: τέλος",
)


def theirs() -> set[str]:
    """What Material for MkDocs says, in Esperanto or, where it has none, in English."""
    spec = find_spec("material")
    assert spec and spec.submodule_search_locations
    place = Path(spec.submodule_search_locations[0]) / "templates" / "partials" / "languages"
    texts = [(place / f"{name}.html").read_text(encoding="utf-8") for name in ("eo", "en")]
    return {said for text in texts for said in re.findall(r'": "([^"]+)"', text)} | {
        "Made with",
        "Material for MkDocs",
    }


def test_every_word_of_the_engine_on_a_page_is_in_the_catalogue(site: Path) -> None:
    told, found = theirs(), dict[str, set[str]]()
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    for file in pages:
        seen = Seen(file.read_text(encoding="utf-8"))
        texts = ["\n".join(it for it in seen.texts if it.strip() not in told), *seen.said]
        text = "\n".join(it for it in map(outside, texts) if it not in told)
        for failure in FAILURES:
            text = text.replace(failure, "")
        if words := set(re.findall(r"[A-Za-z]{2,}", text)) - NOBODYS:
            found[str(file.relative_to(site))] = words
    assert found == {}


def test_the_scripts_of_a_page_get_their_words_from_it(site: Path) -> None:
    page = (site / "lectures" / "lecture_01" / "μέρος" / "index.html").read_text(encoding="utf-8")
    found = re.search(r"""<div id="lb-words" hidden data-words='([^']*)'""", page)
    assert found
    words = json.loads(unescape(found[1]))
    assert words.pop("lang") == "eo"
    assert set(words) == set(script_words.SCRIPTS) == {"player", "answers", "beside"}
    assert all(text[0] == "⟦" and text[-1] == "⟧" for own in words.values() for text in own.values())
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "lb-words" not in start, "a page without scripts of ours has no words for them"
    for name, own in words.items():  # each word is said, and no other is asked for
        files = (
            (name, "memory", "ranks", "stepping") if name == "player" else (name,)
        )  # what it loads when it opens
        assets = ENGINE / "html" / "assets"
        script = "".join((assets / f"{file}.js").read_text(encoding="utf-8") for file in files)
        asked = {
            *re.findall(r"""words\??\.(\w+)""", script),
            *re.findall(r"""(?:say|tool)\("([\w-]+)\"""", script),
        }
        assert asked <= set(own), name
        if '"w" + name[0].toUpperCase() + name.slice(1)' in script:  # the word below the sign of a button
            asked |= set(own) & {"w" + it[0].upper() + it[1:] for it in re.findall(r'tool\("(\w+)"', script)}
        unsaid = {key for key in set(own) - asked - set(margin.WORDS) if f'"{key}"' not in script}
        assert unsaid == set(), name


def test_the_list_for_translators_is_that_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = re.search(
        r"^words:.*\n\t\S+ -m babel.messages.frontend (.*)$", (REPO / "Makefile").read_text(), re.M
    )
    assert recipe
    monkeypatch.chdir(REPO)
    asked = recipe[1].replace(str(POT.relative_to(REPO)), str(tmp_path / "now.pot"))
    CommandLineInterface().run(["pybabel", *asked.split()])
    assert (tmp_path / "now.pot").read_text("utf-8") == POT.read_text("utf-8"), "run `make words`"


def test_no_text_is_looked_up_inside_an_f_string() -> None:
    """There Babel does not see it."""
    for file in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            inside = list(ast.walk(node)) if isinstance(node, ast.JoinedStr) else []
            names = {
                it.func.id for it in inside if isinstance(it, ast.Call) and isinstance(it.func, ast.Name)
            }
            assert not names & {"_", "ngettext", "later"}, f"{file.name}:{getattr(node, 'lineno', 0)}"


def test_a_language_has_its_own_plurals_numbers_and_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pl.po").write_text(
        'msgid ""\nmsgstr "Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && '
        '(n%100<12 || n%100>14) ? 1 : 2);\\n"\n\nmsgid "{n} claim"\nmsgid_plural "{n} claims"\n'
        'msgstr[0] "{n} teza"\nmsgstr[1] "{n} tezy"\nmsgstr[2] "{n} tez"\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(translations, "LOCALE", tmp_path)

    def claims(n: int) -> str:
        return i18n.ngettext("{n} claim", "{n} claims", n).replace("\xa0", " ")

    try:
        assert [claims(n) for n in (1, 1200)] == ["1 claim", "1,200 claims"]
        i18n.use("pl")
        assert [claims(n) for n in (1, 3, 5, 22)] == ["1 teza", "3 tezy", "5 tez", "22 tezy"]
        assert (claims(12000), i18n.number(2.5, 1)) == ("12 000 tez", "2,5")
        assert (i18n.day("2026-11-20T10:00:00Z"), i18n.day("then")) == ("20 lis 2026", "then")
        assert i18n._("no such text, {name}", name="x") == "no such text, x"
        i18n.use("nowhere")
        assert (claims(1200), i18n.language()) == ("1,200 claims", "en")
    finally:
        i18n.use("en")
    assert i18n.day("2026-11-20T10:00:00Z") == "20 Nov 2026"
