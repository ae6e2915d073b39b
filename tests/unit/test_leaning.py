"""Sections that lean on each other, and settings that one of them leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import HEAD, messages, record, write

from litbook.lecture import parse
from litbook.rules import leaning

BEFORE = """
class Model:
    def __init__(self):
        self.w, self.steps = [0.0], 0

    def parameters(self):
        return [self]

    def fit(self, n):
        self.w[0] = float(n)


class Optimizer:
    def __init__(self, parameters):
        self.parameters = parameters

    def step(self):
        for p in self.parameters:
            p.steps += 1


def train(model, n):
    for p in model.parameters():
        p.w[0] += n


def outer(model):
    train(model, 3)


def look():
    return MODEL.w[0]
"""
KINDS = {  # what is made, what changes it, what reads it
    "a list": ("X = []", "X.append(1)", "assert X == [1]"),
    "an item": ("X = {'a': 1}", "X['a'] = 2", "assert X['a'] == 2"),
    "an attribute": ("X = Model()", "X.steps = 2", "assert X.steps == 2"),
    "a global": ("X = 0", "global X\n    X += 1", "assert X == 1"),
    "a set": ("X = set()", "X.add(3)", "assert len(X) == 1"),
    "a model in a helper": ("X = Model()", "train(X, 2)", "assert X.w[0] == 2"),
    "through two helpers": ("X = Model()", "outer(X)", "assert X.w[0] == 3"),
    "its parameters": ("X = Model()", "for p in X.parameters():\n        p.w[0] = 3.0", "assert X.w[0] == 3"),
    "an optimizer": ("X = Model()", "o = Optimizer(X.parameters())\n    o.step()", "assert X.steps == 1"),
    "fitted": ("X = Model()", "X.fit(3)", "assert X.w[0] == 3"),
    "a part of it": ("X = [[1], [2]]", "row = X[0]\n    row.append(5)", "assert X[0] == [1, 5]"),
    "read in a helper": ("X = MODEL = Model()", "train(MODEL, 2)", "assert look() == 2"),
}


def lecture(made: str, changes: str, reads: str) -> str:
    main = "def main():\n    changer()\n    reader()\n"
    sections = f"def changer():\n    {changes}\n\n\ndef reader():\n    {reads}\n"
    return f"{HEAD}{BEFORE}\n\n{made}\n\n\n{main}\n\n{sections}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_that_reads_what_another_changes_is_told_and_runs_after_it(
    kind: str, tmp_path: Path
) -> None:
    text = lecture(*KINDS[kind])
    (told,) = leaning.find_leaning(parse.parse(text))
    assert told.what.startswith("reader reads ") and told.what.endswith("which changer changes")
    assert told.place and told.details[0].startswith("changed at ")
    made = record(tmp_path, text, sections=("reader",))
    assert made.count() == {"holds": 1}
    assert made.asked == ("reader",)


@pytest.mark.parametrize(
    ("made", "changes", "reads"),
    [
        ("X = [1, 2]", "x = list(X)\n    x.append(3)", "assert X == [1, 2]"),
        ("X = [1, 2]", "x = sum(X)\n    x += 1", "assert X == [1, 2]"),
        ("X = [1, 2]", "x = X[:]\n    x.append(3)", "assert X == [1, 2]"),
        ("X = 16, 4", "n = X[0]\n    n //= 2", "assert X[0] == 16"),
        ("X = [1]", "assert X == [1]", "assert X == [1]"),
        ("X = [1]", "X = []\n    X.append(2)", "assert X == [1]"),
        ("X = Model()", "y = X.w[0] + 1", "assert X.w[0] == 0"),
    ],
)
def test_what_changes_nothing_of_the_module_is_no_leaning(made: str, changes: str, reads: str) -> None:
    assert leaning.find_leaning(parse.parse(lecture(made, changes, reads))) == []


SETTINGS = [
    ("torch.set_default_dtype(torch.float64)", "torch.empty(1).dtype == torch.float32"),
    ("torch.set_default_device('meta')", "torch.empty(1).device.type == 'cpu'"),
    ("torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
    ("torch.set_printoptions(precision=2)", "'0.1235' in str(torch.tensor(0.12345))"),
    ("np.seterr(all='raise')", "np.geterr()['divide'] == 'warn'"),
    ("np.set_printoptions(precision=1)", "np.get_printoptions()['precision'] == 8"),
    ("matplotlib.rcParams['font.size'] = 33", "matplotlib.rcParams['font.size'] != 33"),
    ("os.environ['LITBOOK_TEST'] = '1'", "'LITBOOK_TEST' not in os.environ"),
    ("os.chdir('/')", "os.getcwd() != '/'"),
    ("decimal.getcontext().prec = 5", "decimal.getcontext().prec == 28"),
    ("sys.setrecursionlimit(5000)", "sys.getrecursionlimit() != 5000"),
    ("warnings.simplefilter('module')", "warnings.filters[0][0] != 'module'"),
    ("warnings.showwarning = print", "warnings.showwarning is not print"),
    ("logging.captureWarnings(True)", "logging._warnings_showwarning is None"),
    ("logging.getLogger('litbook_test').setLevel(10)", "logging.getLogger('litbook_test').level == 0"),
    ("logging.root.addHandler(logging.NullHandler())", "not any(type(h) is logging.NullHandler for h in logging.root.handlers)"),
    ("logging.disable(50)", "logging.root.manager.disable == 0"),
    ("os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()", "time.tzname[0] != 'JST'"),
    ("os.umask(0o070)", "os.umask(0o022) != 0o070"),
    ("signal.setitimer(signal.ITIMER_VIRTUAL, 50)", "signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0"),
    ("signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL"),
    ("gc.set_threshold(7, 8, 9)", "gc.get_threshold() != (7, 8, 9)"),
    ("gc.disable()", "gc.isenabled()"),
    ("KEPT.set(3)", "KEPT.get() == 0"),
    ("sys.path.insert(0, '/nowhere')", "'/nowhere' not in sys.path"),
    ("sys.argv.append('--left')", "'--left' not in sys.argv"),
    ("sys.stdin = None", "sys.stdin is not None"),
    ("sys.displayhook = sys.excepthook = threading.excepthook = print", "print not in (sys.displayhook, sys.excepthook, threading.excepthook)"),
    ("sys.setswitchinterval(0.5)", "sys.getswitchinterval() < 0.5"),
    ("sys.set_int_max_str_digits(0)", "sys.get_int_max_str_digits() == 4300"),
    ("np.seterrcall(print)", "np.geterrcall() is None"),
    ("np.setbufsize(16384)", "np.getbufsize() == 8192"),
    ("torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True", "not (torch.backends.cudnn.benchmark or torch.backends.cudnn.deterministic)"),
    ("torch.backends.mkldnn.enabled = False", "torch.backends.mkldnn.enabled"),
    ("torch.set_flush_denormal(True)", "torch.tensor(5e-324, dtype=torch.float64).item() > 0"),
    ("torch.set_autocast_enabled('cpu', True)", "not torch.is_autocast_enabled('cpu')"),
    ("torch.set_autocast_dtype('cpu', torch.float16)", "torch.get_autocast_dtype('cpu') == torch.bfloat16"),
    ("torch.set_warn_always(True)", "not torch.is_warn_always_enabled()"),
    ("torch.backends.cuda.enable_flash_sdp(False)", "torch.backends.cuda.flash_sdp_enabled()"),
    ("matplotlib.pyplot.figure('left')", "matplotlib.pyplot.get_fignums() == []"),
    ("matplotlib.colormaps.register(matplotlib.colormaps['viridis'], name='left')", "'left' not in matplotlib.colormaps"),
]  # fmt: skip


def test_what_a_section_sets_is_put_back_behind_it(tmp_path: Path) -> None:
    imports = "import contextvars, decimal, gc, logging, os, signal, sys, threading, time, warnings\n"
    imports += "import matplotlib.pyplot, torch\nimport numpy as np\nKEPT = contextvars.ContextVar('kept', default=0)\n"
    sets, holds = ("\n    ".join(lines) for lines in zip(*SETTINGS, strict=True))
    asserts = holds.replace("\n    ", "\n    assert ")
    text = f"{HEAD}{imports}\n\ndef main():\n    one()\n    two()\n\n\ndef one():\n    {sets}\n\n\n"
    made = record(tmp_path, f"{text}def two():\n    assert {asserts}\n")
    assert messages(made) == []
    assert [claim.text for _, claim in made.claims() if claim.verdict != "holds"] == []


def test_a_lecture_that_leans_is_told_by_a_remark(tmp_path: Path) -> None:
    from litbook.rules.judge import judge
    from litbook.rules.registry import find_rule
    from litbook.rules.subject import Subject

    path = write(tmp_path, lecture(*KINDS["a list"]))
    findings = judge(Subject(path), rules=[find_rule("leans")])
    assert (findings.errors, [one.code for one in findings.warnings]) == ([], ["leans"])
