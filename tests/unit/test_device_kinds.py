"""The table of device kinds: what its row says happens, and what no row knows is refused before anything runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from tests.running import HEAD, record
from tests.standin import Card, standin

from litbook.errors import UnusableLecture
from litbook.lecture import parse
from litbook.notebook import ipynb, runtime
from litbook.page import margin
from litbook.probe import author
from litbook.record import device_kinds, model
from litbook.record.device_kinds import KINDS, DeviceKind, needs
from litbook.run import process

TEXT = f"""{HEAD}

def main():
    one()


@requires("tpu")
def one():
    assert 1 + 1 == 2, "there"
"""


@pytest.fixture
def tpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], DeviceKind]:
    """Adds a kind of device by one row; so many of it are here."""

    def add(count: int) -> DeviceKind:
        kind = DeviceKind("tpu", "a TPU", "{ranks} on TPUs", lambda: count, label="TPU")
        monkeypatch.setitem(KINDS, "tpu", kind)
        properties = SimpleNamespace(name="Some TPU", total_memory=2**30)
        module = SimpleNamespace(
            get_device_properties=lambda _: properties,
            empty_cache=lambda: None,
            get_rng_state_all=list,
            set_rng_state_all=lambda _: None,
        )
        monkeypatch.setitem(sys.modules, "torch", __import__("torch"))
        monkeypatch.setattr("torch.tpu", module, raising=False)
        return kind

    return add


def verdicts(made: model.Record) -> list[str]:
    return [claim.verdict for _, claim in made.claims()]


def test_a_kind_without_a_row_is_refused_before_anything_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(UnusableLecture) as refused:
        record(tmp_path, TEXT + f"open({str(ran)!r}, 'w')\n")
    line = 1 + TEXT[: TEXT.index("@requires")].count("\n")
    assert str(refused.value) == (
        f"lecture_sample.py:{line}:2: requires() knows 'cuda', 'slow', 'linux', 'ranks=4', 'cuda, ranks=2' and "
        "'simulated ranks=1024', not 'tpu'\n"
        '    @requires("tpu")\n     ^\n'
        "    without the mark it runs on the processor"
    )
    assert not ran.exists()


def test_a_kind_of_one_row_waits_where_none_is_here(tmp_path: Path, tpu: Callable[[int], DeviceKind]) -> None:
    tpu(0)
    made = record(tmp_path, TEXT)
    assert verdicts(made) == ["needs-device"]
    assert margin.not_run("tpu") == "Not run (needs a TPU)"
    assert margin.not_run("tpu, ranks=2") == "Not run (needs 2 ranks on TPUs)"
    text = "".join(ipynb.files(made).values())
    assert r"if has_device(\"tpu\"):" in text and "This section needs tpu" in text


def test_a_kind_of_one_row_runs_where_one_is_here(tmp_path: Path, tpu: Callable[[int], DeviceKind]) -> None:
    tpu(1)
    made = record(tmp_path, TEXT)
    assert verdicts(made) == ["holds"]
    device = made.environment.device
    assert (device.kind, device.slug, device.count) == ("tpu", "some-tpu", 1)
    assert verdicts(record(tmp_path, TEXT, device="cpu")) == ["needs-device"]
    assert verdicts(record(tmp_path, TEXT, device="tpu")) == ["holds"]


def test_ranks_on_a_kind_wait_for_as_many_devices(tmp_path: Path, tpu: Callable[[int], DeviceKind]) -> None:
    tpu(1)
    made = record(tmp_path, TEXT.replace('"tpu"', '"tpu, ranks=2"'))
    assert verdicts(made) == ["needs-device"]
    assert process.worlds(made, slow=True) == {}
    device = replace(made.environment.device, count=2)
    made = replace(made, environment=replace(made.environment, device=device))
    assert process.worlds(made, slow=True) == {2: ["one"]}
    other = replace(device, kind="cuda")
    made = replace(made, environment=replace(made.environment, device=other))
    assert process.worlds(made, slow=True) == {}, "two GPUs are no TPU"


@pytest.mark.parametrize(
    ("mark", "what", "way_out"),
    [
        ('"CUDA"', "requires() knows .*, not 'CUDA'", "did you mean 'cuda'?"),
        ('"cuda,ranks=2"', "requires() knows .*, not 'cuda,ranks=2'", "did you mean 'cuda, ranks=2'?"),
        ('"rank=4"', "requires() knows .*, not 'rank=4'", "did you mean 'ranks=4'?"),
        ('"xpu, ranks=2"', "requires() knows .*, not 'xpu, ranks=2'", "did you mean 'cuda, ranks=2'?"),
        ('""', "requires() knows .*, not ''", "without the mark it runs on the processor"),
        ("4", "requires() knows .*, not '4'", "without the mark it runs on the processor"),
        ("KIND", "@requires takes one text, as it stands", 'write @requires("cuda"), say'),
        ('"cuda", "slow"', "@requires takes one text, as it stands", 'write @requires("cuda"), say'),
        ('need="cuda"', "@requires takes one text, as it stands", 'write @requires("cuda"), say'),
    ],
)
def test_a_need_that_nobody_knows_is_refused_at_its_place(mark: str, what: str, way_out: str) -> None:
    text = TEXT.replace('"tpu"', mark).replace("def main", 'KIND = "cuda"\n\n\ndef main')
    with pytest.raises(UnusableLecture) as refused:
        parse.parse(text, "lecture.py")
    first, *_, last = str(refused.value).splitlines()
    line = 1 + text[: text.index("@requires")].count("\n")
    assert re.fullmatch(rf"lecture.py:{line}:2: {what.replace('()', '[(][)]')}", first)
    assert last.strip() == way_out


def test_a_second_mark_is_refused() -> None:
    text = TEXT.replace('@requires("tpu")', '@requires("ranks=2")\n@requires("cuda")')
    with pytest.raises(
        UnusableLecture,
        match=r'has one @requires\n.*\n.*\n    say all in it: @requires."cuda, r',
    ):
        parse.parse(text, "lecture.py")


def test_what_is_marked_under_another_name_never_runs_without_its_device(tmp_path: Path) -> None:
    text = TEXT.replace("@requires", "@wants").replace('"tpu"', '"cuda"')
    text = text.replace(HEAD, f"{HEAD}\nwants = requires\n")
    made = record(tmp_path, text, device="cpu")
    assert verdicts(made) == ["not-reached"]
    ((_, error),) = made.errors()
    assert "one() needs cuda, there is none here, and it is called all the same" in error.message


def test_in_plain_python_a_section_says_what_it_lacks(
    tpu: Callable[[int], DeviceKind], capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[int] = []

    def one() -> None:
        called.append(1)

    tpu(0)
    author.requires("tpu")(one)()
    assert capsys.readouterr().out == "[one needs tpu; there is none here]\n"
    tpu(1)
    author.requires("tpu")(one)()
    assert called == [1]


def test_every_device_of_the_table_is_asked_for_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(runtime, "DEVICES", {kind.name for kind in device_kinds.devices()})
    for kind in device_kinds.devices():
        assert runtime.has_device(kind.name) == bool(kind.count())
        if not kind.count():
            assert runtime.requires(f"{kind.name}, ranks=2")(lambda: 1)() is None
    assert runtime.requires("slow")(lambda: 1)() == 1
    with standin(Card(count=1)):
        assert torch.cuda.is_available() and runtime.requires("cuda")(lambda: 1)() == 1


def test_a_row_finds_what_torch_has_for_it() -> None:
    import torch

    with standin(Card(count=3)):
        assert (KINDS["cuda"].count(), KINDS["cuda"].module) == (3, torch.cuda)
    assert KINDS["slow"].module is None
    assert needs("slow").is_plain is False and needs(None).is_plain


def test_no_other_module_compares_a_device_with_the_name_of_a_kind() -> None:
    engine = Path(device_kinds.__file__).parent.parent
    names = "|".join(filter(None, KINDS))
    compared = re.compile(rf"""(?:[!=]=|\bin|\bcase) *[\[({{]*["'](?:{names})\b""")
    own = {"record/device_kinds.py"}
    found = [
        f"{path.relative_to(engine)}: {line.strip()}"
        for path in sorted(engine.rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if compared.search(line) and path.relative_to(engine).as_posix() not in own
    ]
    assert found == ['run/child.py: if sys.platform == "linux":']
