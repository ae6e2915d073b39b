"""The calculator's page: its hook, its script's data, and the page in a real browser, which has to say what Python says."""

from __future__ import annotations

import html
import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import PluginCollection
from mkdocs.structure.files import Files
from tests.book.test_preview import CONFIG, lecture, serving
from tests.browser.test_browser import CONTRAST
from tests.running import sampled

import calculator
import hardware
import napkin
import napkin_answers as answers
import napkin_terminal as terminal
from litbook.errors import LitbookError
from litbook.markdown.bibliography import BibliographyEntry
from napkin_config import SHAPE_FIELDS, shape_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NEEDED = [f"{name}.py" for name in calculator.MODULES] + ["napkin_models.json", "references.bib"]

# ------------------------------------------------------------------------ the hook

CARD = {
    "name": "<b>",
    "memory": 10**9,
    "bandwidth": 1e12,
    "source": "x",
    "date": "2024",
    **dict.fromkeys(calculator.FORMATS, 1e12),
}


def collected(root: Path) -> list[str]:
    """The files that the hook adds for the book in `root`."""
    config = MkDocsConfig(str(root / "mkdocs.yml"))
    config.plugins = PluginCollection()
    hook: Any = calculator  # MkDocs takes a module for a plugin
    config.plugins["calculator"] = hook
    return [file.src_uri for file in config.plugins.on_files(Files([]), config=config)]


def test_what_the_books_files_hold_is_text_on_the_page(repo: Path) -> None:
    script = calculator.data_script(repo / "lectures", [CARD], {})
    assert "\\u003cb>" in script and "<b>" not in script
    page = calculator.cards_table(
        [CARD], {"x": BibliographyEntry("x", "<i>", url="https://example.org/?a&b")}
    )
    assert "&lt;b&gt;" in page and "<b>" not in page and "<i>" not in page
    assert '<a href="https://example.org/?a&amp;b">' in page


def test_a_card_without_a_peak_says_not_available() -> None:
    page = calculator.cards_table([{**CARD, "float8": None}], {})
    assert page.count("not available") == 1


def test_every_source_on_the_page_is_linked(site: Path) -> None:
    body = (site / "calculator" / "index.html").read_text(encoding="utf-8")
    table = body[body.index("Dense peak rates") :]
    rows = re.findall(r"<tr>\s*<th scope=.?row.*?</tr>", table, re.S)
    assert len(rows) == len(hardware.CARDS)
    assert all(re.search(r'<a href="?https://', row) for row in rows)


def test_this_book_has_calculator_data_and_puts_them_on_its_page(repo: Path) -> None:
    assert collected(repo) == ["assets/calculator-data.js"]
    page = calculator.on_page_markdown((repo / "docs" / "calculator.md").read_text(encoding="utf-8"))
    assert "<!--" not in page and "989.5" in page and 'id="lb-shape-kv_rank"' in page
    assert "32,763,876,352" in page and "| `parameter_count(s)` | All parameters of a model. |" in page


def test_a_case_is_worked_out_and_a_wrong_one_stops_the_build(repo: Path) -> None:
    collected(repo)
    page = calculator.on_page_markdown((repo / "docs" / "a-32b-on-four-h100s.md").read_text(encoding="utf-8"))
    assert "{case:" not in page and "<!--" not in page
    assert (
        "131.1 GB" in page
        and "The first number of GPUs that fits is 9, with a fused loss; in whole nodes of 8, 16." in page
    )
    assert page.rstrip().endswith("torchrun --standalone --nproc-per-node 4 train.py\n```")
    with pytest.raises(
        LitbookError, match="a case of the page cannot be asked: Lama: no file and no model 'Lama'"
    ):
        calculator.on_page_markdown("<!-- case: Lama -->")


TRAINED = """
import torch
import torch.distributed as dist
from torch import nn
from transformers import Qwen2Config, Qwen2ForCausalLM

class Adapter(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features, dtype=torch.bfloat16) / 8)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, dtype=torch.bfloat16))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T

dist.init_process_group("gloo")
torch.manual_seed(0)
sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128)
model = Qwen2ForCausalLM(Qwen2Config(vocab_size=100, **sizes)).to(torch.bfloat16).requires_grad_(False)
for layer in model.model.layers:
    layer.self_attn.q_proj = Adapter(layer.self_attn.q_proj)
WRAP
adapters = [p for p in model.parameters() if p.requires_grad]
OPTIMIZE
kept = model.model.layers[0].mlp.up_proj.weight
assert kept.to_local().numel() == kept.numel() / 2 and not kept.requires_grad
x = torch.randint(0, 100, (2, 16))
losses = []
for _ in range(5):
    loss = model(input_ids=x, labels=x).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
if dist.get_rank() == 0:
    print("losses", *losses)
dist.destroy_process_group()
"""


def test_the_code_of_the_worked_page_trains_a_small_model_on_two_ranks(repo: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="no transformers: pip install -e .[dev]")
    page = (repo / "docs" / "a-32b-on-four-h100s.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    wrap, _, optimize = code.partition("optimizer = ")
    text = TRAINED.replace("WRAP", wrap).replace("OPTIMIZE", f"optimizer = {optimize}")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    line = re.search(r"torchrun (--standalone) --nproc-per-node 4 train.py", page)
    assert line is not None
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", line[1], "--nproc-per-node", "2", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (said,) = re.findall(r"^losses (.*)$", done.stdout, re.M)
    losses = [float(it) for it in said.split()]
    assert losses[-1] < losses[0]


def test_the_files_of_another_folder_are_forgotten_afterwards(repo: Path, tmp_path: Path) -> None:
    for name in NEEDED:
        shutil.copyfile(repo / "lectures" / name, tmp_path / name)
    changed = (tmp_path / "napkin.py").read_text(encoding="utf-8").replace("DAY = 86400", "DAY = 7")
    (tmp_path / "napkin.py").write_text(changed, encoding="utf-8")
    with calculator.modules(tmp_path) as found:
        assert found["napkin"].DAY == 7
    import napkin as again

    assert again is napkin and again.DAY == 86400


def test_the_preview_has_the_calculator_and_shows_a_saved_card(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "lectures").mkdir()
    (tmp_path / "docs").mkdir()
    for name in NEEDED:
        shutil.copyfile(repo / "lectures" / name, tmp_path / "lectures" / name)
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture())
    (tmp_path / "docs" / "index.md").write_text("<!-- cards -->\n\n<!-- models -->\n")
    (tmp_path / "mkdocs.yml").write_text(f"{CONFIG}hooks: [{repo}/docs/hooks/calculator.py]\n")
    with serving(tmp_path) as served:
        assert "989.5" in served.page("") and "Mixtral-8x22B" in served.page("")
        assert '"H100 SXM"' in served.page("assets/calculator-data.js")
        cards = tmp_path / "lectures" / "hardware.py"
        cards.write_text(cards.read_text(encoding="utf-8").replace('"H100 SXM"', '"H100 XXL"'))
        served.until(lambda text: '"H100 XXL"' in text, "assets/calculator-data.js")
        assert "H100 XXL" in served.page("")


def test_another_book_has_no_calculator_data(repo: Path, tmp_path: Path) -> None:
    collected(repo)
    assert collected(tmp_path) == []
    assert calculator.on_page_markdown("<!-- cards -->") == "<!-- cards -->"  # nothing of the first is left


def test_the_hook_of_the_calculator_is_no_page_of_the_site(site: Path) -> None:
    assert not (site / "hooks").exists()


@pytest.mark.parametrize("text", ["CARDS = {", "raise SystemExit(0)", "x = 1", "CARDS = {'a': 3}"])
def test_a_broken_card_file_is_a_warning(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lectures").mkdir()
    (tmp_path / "lectures" / "hardware.py").write_text(text)
    (tmp_path / "lectures" / "napkin.py").write_text("RECIPES, SECTIONS = (), {}")
    assert collected(tmp_path) == []
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "the calculator has no data: " in caplog.text


def test_the_page_has_a_field_for_each_option_with_label_and_key(repo: Path) -> None:
    collected(repo)
    page = calculator.on_page_markdown(calculator.FORM)
    for field in answers.FIELDS:
        assert f'name="{field.name}"' in page and f">{html.escape(field.label)}</label>" in page
    for it in SHAPE_FIELDS:
        assert f'name="shape-{it.name}"' in page and html.escape(it.key) in page


def test_each_job_asks_at_most_seven_things_first() -> None:
    for job in ("pretrain", "finetune", "serve"):
        first = [field for field in answers.FIELDS if job[0] in field.first]
        assert len(first) + 2 <= 7, "with model and GPU"
        assert all(answers.asks(field, job) for field in first)


def test_html_and_scripts_weigh_at_most_200_kilobytes(site: Path) -> None:
    files = ["calculator/index.html", "assets/calculator.js", "assets/calculator-data.js"]
    assert sum((site / name).stat().st_size for name in files) <= 200_000


# ------------------------------------------------------------------------ in a browser


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    yield page
    page.close()


@pytest.fixture(scope="module")
def form(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    yield page
    page.close()


@pytest.fixture
def afresh(form: Page) -> Page:
    """The calculator as it opens, on a page that tests which only type into it share."""
    form.get_by_role("button", name="Start over").click()
    return form


SET = """(row) => {
  const form = document.getElementById('lb-calc');
  for (const [name, value] of Object.entries(row)) {
    if (form.elements[name].value === value) continue;
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event('input', {bubbles: true}));
  }
  const seen = getComputedStyle(document.getElementById('lb-rows')).visibility === 'visible';
  const outputs = Object.fromEntries(!seen ? [] : [...form.querySelectorAll('#lb-rows .lb-value')].map((o) =>
    [o.id.replace('lb-out-', ''), [Number(o.dataset.value), o.textContent]]));
  const wrong = Object.fromEntries([...form.querySelectorAll('[aria-invalid=true]')].map((it) =>
    [it.name || it.id, document.getElementById(`lb-${it.name || it.id.replace('lb-', '')}-wrong`).textContent]));
  return [outputs, wrong];
}"""


def told(page: Page, **row: object) -> tuple[dict[str, Any], dict[str, str]]:
    """The outputs after typing these, and what is wrong."""
    names = {name.replace("shape_", "shape-", 1): str(value) for name, value in row.items()}
    outputs, wrong = page.evaluate(SET, names)
    return outputs, wrong


def verdict(page: Page) -> str:
    return " ".join(page.locator("#lb-verdict").inner_text().split())


def python(model: str, device: str = "H100 SXM", **texts: str) -> answers.Answer:
    line = [f"--{name}={value}" for name, value in texts.items()]
    found, _ = terminal.ask(terminal.parser().parse_args([model, "--device", device, *line]))
    return found


def expect(page: Page, found: answers.Answer) -> None:
    """The page says exactly this answer."""
    mark = "✓" if found.fits else "✗"
    assert verdict(page) == f"{mark} {found.title} {found.text}"
    assert page.locator("#lb-changes").is_visible() == bool(found.changes)
    if found.changes:
        rows = page.locator("#lb-changes tbody tr").all()
        table = [[cell.text_content() for cell in row.locator("td").all()] for row in rows]
        assert table == [
            [
                it.cells[0] + (f"{found.heads[-1]} {it.cells[-1]}" if it.cells[-1] else ""),
                *it.cells[1:-1],
                "Apply",
            ]
            for it in found.changes
        ]
        assert page.locator("#lb-changes th").all_text_contents() == [*found.heads[:-1], ""]
    assert page.locator("#lb-warnings li").all_inner_texts() == found.warnings
    outputs, wrong = told(page)
    assert wrong == {}
    assert outputs == {row.key: [pytest.approx(row.value, rel=1e-15), row.text] for row in found.rows}


CASES: list[dict[str, Any]] = [
    {"model": "Qwen2.5-32B", "job": "finetune", "devices": "4", "tokens": "200M"},
    {"model": "Qwen2.5-32B", "job": "finetune", "devices": "4", "recipe": "lora"},
    {"model": "Llama-2-7B", "job": "finetune", "device": "RTX 4090", "devices": "1", "recipe": "qlora", "context": "2048"},
    {"model": "Mixtral-8x7B", "job": "serve", "devices": "2"},
    {"model": "DeepSeek-V3", "job": "pretrain", "device": "H800 SXM", "devices": "2048", "tokens": "14.8T", "tensor": "4"},
    {"model": "gpt-oss-120b", "job": "serve", "users": "64", "limit": "20"},
    {"model": "Gemma-3-27B (text)", "job": "serve", "device": "H200", "prompt": "100k", "cache": "1"},
    {"model": "Llama-3.1-405B", "job": "pretrain", "devices": "16384", "stages": "2", "tensor": "8", "microbatches": "16", "zero": "1"},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda it: f"{it['model']}, {it['job']}")
def test_page_and_terminal_say_the_same(afresh: Page, case: dict[str, str]) -> None:
    told(afresh, job=case["job"])
    told(afresh, **case)
    expect(afresh, python(**case))


def test_every_model_of_the_list_fills_the_shape_and_has_its_published_size(opened: Page) -> None:
    for name, entry in sampled([*terminal.published().items()], 4):
        outputs, wrong = told(opened, model=name, devices="65536", context="1024")
        assert wrong == {}
        assert outputs["parameters"] == [entry["total"], f"{entry['total']:,}"]
        shape = shape_of(entry["config"], name).shape
        assert shape is not None
        assert opened.locator("#lb-shape-layers").input_value() == str(shape.layers)


def test_parameters_follow_the_shape_and_a_number_typed_over_them_is_said_at_the_verdict(
    opened: Page,
) -> None:
    outputs, _ = told(opened, shape_layers="40")
    assert opened.locator("#lb-model").input_value() == "own"
    half = napkin.Shape(
        layers=40, width=8192, heads=64, kv_heads=8, head_size=128, hidden=28672, vocabulary=128256
    )
    assert outputs["parameters"][0] == napkin.parameter_count(half)
    assert outputs["state"][0] == 16 * napkin.parameter_count(half) / 1024
    told(opened, model="Llama-3-70B")
    assert told(opened)[0]["parameters"][0] == 70_553_706_496
    told(opened, parameters="32B")
    assert opened.locator("#lb-model").input_value() == "own"
    (said,) = opened.locator("#lb-warnings li").all_inner_texts()
    assert said.startswith("32 billion parameters are typed over the 70.55 billion of the shape")
    told(opened, model="Qwen2.5-32B")
    assert (
        opened.locator("#lb-parameters").input_value() == ""
        and opened.locator("#lb-warnings li").count() == 0
    )


def test_a_config_is_pasted_or_chosen_and_sets_everything(opened: Page, tmp_path: Path) -> None:
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    config = {**terminal.published()["Qwen2.5-32B"]["config"], "odd": 1}
    opened.get_by_text("A config.json of your own").click()
    opened.locator("#lb-config").fill(json.dumps(config))
    assert opened.locator("#lb-config-wrong").inner_text() == "Read: 32.76 billion parameters."
    assert opened.locator("#lb-model").input_value() == "own"
    assert told(opened)[0]["parameters"][0] == 32_763_876_352
    assert opened.locator("#lb-warnings li").all_inner_texts() == [
        "Left out: keys that this calculator does not know: odd."
    ]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(terminal.published()["gpt-oss-20b"]["config"]))
    opened.locator("#lb-file").set_input_files(str(file))
    opened.get_by_text("Read: 20.91 billion parameters.").wait_for()
    told(opened, job="serve")
    assert opened.locator("#lb-precision").input_value() == "mxfp4-experts"
    assert told(opened)[0]["weights"][1] == "13.76 GB"
    shared = opened.url
    assert "shape-experts=32" in shared
    before = verdict(opened)
    told(opened, job="pretrain")
    opened.goto(shared)
    told(opened, job="serve", precision="mxfp4-experts")
    assert verdict(opened) == before, "the address has the shape"
    assert [
        url for url in asked if "config" in url or not url.startswith(opened.url.split("/calculator")[0])
    ] == []


@pytest.mark.parametrize(("text", "said"), [
    ("{", "This is no JSON: "), ("[]", "This JSON is no object; a config.json begins with { and has a model_type."),
    ('{"a": 1}', "This JSON has no model_type, so it is not a config.json of a language model."),
    ('{"model_type": "<img src=x onerror=alert(1)>"}', "The family “<img src=x onerror=a…” is not one"),
    ('{"model_type": "llama", "hidden_size": "4096"}', "hidden_size has to be a whole number, not “4096”"),
])  # fmt: skip
def test_a_config_that_cannot_be_used_is_said_at_its_field_and_changes_nothing(
    afresh: Page, text: str, said: str
) -> None:
    before = told(afresh)[0]
    afresh.evaluate("document.getElementById('lb-config-part').open = true")
    afresh.locator("#lb-config").fill(text)
    assert said in afresh.locator("#lb-config-wrong").inner_text()
    assert afresh.locator("#lb-config").get_attribute("aria-invalid") == "true"
    assert told(afresh)[0] == before


def test_two_megabytes_are_refused_at_once(afresh: Page) -> None:
    afresh.evaluate(
        """() => { const it = document.getElementById('lb-config'); it.value = ' '.repeat(2e6);
        it.dispatchEvent(new Event('input', {bubbles: true})); it.value = '{' + ' '.repeat(2e6);
        it.dispatchEvent(new Event('input', {bubbles: true})); }"""
    )
    text = afresh.locator("#lb-config-wrong").text_content()
    assert text == "This has 2 million characters; a config.json has a few thousand."


@pytest.mark.parametrize(("row", "field", "said"), [
    ({"tokens": "many"}, "tokens", "“many” is not a number that this field knows; write it like 15T."),
    ({"mfu": "50"}, "mfu", "MFU cannot exceed 1: nothing does more than its peak. For 50 percent write 0.5."),
    ({"tensor": "128"}, "tensor", "64 query heads do not divide among 128."),
    ({"stages": "7"}, "stages", "80 layers do not divide among 7."),
    ({"shape_kv_heads": "5"}, "shape-kv_heads", "64 query heads do not divide by 5."),
    ({"device": "T4"}, "format", "The T4 has no unit for bfloat16, so there is no peak to count with."),
    ({"recipe": "lora"}, "recipe", "Adapters need a trained model: choose fine-tune."),
])  # fmt: skip
def test_what_cannot_be_is_said_at_its_field_and_no_number_is_shown(
    afresh: Page, row: dict[str, str], field: str, said: str
) -> None:
    outputs, wrong = told(afresh, **row)
    assert wrong == {field: said} and outputs == {}
    assert verdict(afresh) == f"– Waits for: {afresh.locator(f'label[for=lb-{field}]').text_content()}"
    assert afresh.locator(f"#lb-{field}-wrong").is_visible(), "the part that it is in opens"
    assert afresh.get_by_role("button", name="Copy as Markdown").is_disabled()


def test_a_change_is_applied_by_a_click_and_the_address_keeps_it(opened: Page) -> None:
    told(opened, job="finetune", model="Qwen2.5-32B", devices="4")
    opened.get_by_role("button", name="Apply: LoRA").click()
    assert verdict(opened).startswith("✓ It fits. 29.62 GB of 72 GB")
    assert opened.locator("#lb-recipe").input_value() == "lora" and "recipe=lora" in opened.url
    assert opened.evaluate("document.activeElement.name") == "recipe"
    opened.go_back()
    assert verdict(opened).startswith("✗ It does not fit.")
    opened.get_by_role("button", name="Apply: offload").click()
    assert opened.locator("#lb-offload").is_visible() and "offload=yes" in opened.url, (
        "the part that it is in opens"
    )


def test_the_address_follows_while_one_types_and_back_leaves_the_field(opened: Page) -> None:
    plain = opened.url
    opened.locator("#lb-devices").focus()
    opened.keyboard.press("Control+A")
    for digit in "64":
        opened.keyboard.type(digit)
        opened.wait_for_url(f"**devices=*{digit}")
    opened.keyboard.press("Tab")
    opened.go_back()
    assert opened.url == plain


def test_every_result_opens_its_formula_and_leads_to_its_section(opened: Page, address: str) -> None:
    told(opened, job="finetune", model="Qwen2.5-32B", devices="4")
    state = opened.locator(".lb-result", has=opened.locator("#lb-out-state"))
    assert not state.locator("code").is_visible()
    state.locator("summary").click()
    assert state.locator("code").inner_text() == "32.76 billion × 16 B ÷ 4"
    told(opened, devices="16")
    assert state.locator("code").is_visible(), "it stays open while one types"
    links = opened.locator(".lb-result a").evaluate_all("all => all.map((it) => it.href)")
    for link in sampled(sorted(set(links)), 5):
        assert link.startswith(f"{address}lectures/lecture_0"), link


def test_links_of_results_lead_to_sections_of_the_site(site: Path) -> None:
    for section in napkin.SECTIONS.values():
        page, _, anchor = section.partition("#")
        text = (site / "lectures" / page / "index.html").read_text(encoding="utf-8")
        assert re.search(rf'id="?{anchor}[" >]', text), section


def test_an_answer_is_there_as_soon_as_a_key_is_pressed(opened: Page) -> None:
    """50 milliseconds on an idle machine: beside each, a fixed piece of work says how busy this one is."""
    answer, work = opened.evaluate(
        """() => { const it = document.getElementById('lb-tokens'), numbers = [...Array(200000).keys()], times = [[], []];
        const took = (act) => { const start = performance.now(); act(); return performance.now() - start; };
        for (let i = 1; i < 60; i += 1) { it.value = `${i}T`;
          times[0].push(took(() => it.dispatchEvent(new Event('input', {bubbles: true}))));
          times[1].push(took(() => JSON.parse(JSON.stringify(numbers)))); }
        return times.map((all) => all.sort((a, b) => a - b)[30]); }"""
    )
    print(f"an answer {answer:.1f} ms, the work {work:.1f} ms")
    assert answer < 2 * work


def test_the_address_keeps_what_was_typed_and_back_goes_back(opened: Page) -> None:
    plain = opened.url
    opened.locator("#lb-job").select_option("finetune")
    opened.locator("#lb-model").select_option("Qwen2.5-32B")
    opened.locator("#lb-devices").fill("4")
    opened.locator("#lb-devices").press("Tab")
    query = dict(part.split("=") for part in opened.url.split("?")[1].split("&"))
    assert query == {"job": "finetune", "model": "Qwen2.5-32B", "devices": "4"}
    shared, results = opened.url, opened.locator("#lb-calc").inner_text()
    opened.go_back()
    assert opened.locator("#lb-devices").input_value() == "8", "the default of the job"
    opened.go_back()
    assert opened.locator("#lb-model").input_value() == "Llama-3-70B"
    opened.go_back()
    assert opened.url == plain and opened.locator("#lb-job").input_value() == "pretrain"
    opened.goto(shared)
    assert opened.locator("#lb-calc").inner_text() == results
    opened.get_by_role("button", name="Start over").click()
    assert opened.url == plain


@pytest.mark.parametrize(
    "query",
    [
        {"parameters": "<script>alert(1)</script>", "device": "<img src=x onerror=alert(1)>"},
        {
            "device": "__proto__",
            "format": "constructor",
            "recipe": "toString",
            "model": "valueOf",
            "job": "eat",
        },
        {"tokens": "9" * 10_000, "mfu": "-1", "unknown": "1"},
        {"tokens": "", "devices": "", "mfu": ""},
        {"model": "own", "shape-layers": "-1", "shape-tied": "maybe"},
    ],
)
def test_a_hostile_address_is_text(browser: Browser, address: str, query: dict[str, str]) -> None:
    page = browser.new_page()
    raised: list[str] = []
    page.on("pageerror", lambda error: raised.append(str(error)))
    page.on("dialog", lambda dialog: raised.append(dialog.message))
    page.goto(address + "calculator/?" + urlencode(query))
    page.locator("#lb-calc.lb-ready").wait_for()
    assert raised == []
    assert page.locator("#lb-device").input_value() == "H100 SXM"
    assert page.locator("[aria-invalid=true]").count() >= 1
    if "device" in query:
        assert "is not in this list; H100 SXM is shown." in page.locator("#lb-device-wrong").inner_text()
    page.close()


def test_tables_are_taken_along(browser: Browser, address: str) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], accept_downloads=True)
    page = context.new_page()
    page.goto(address + "calculator/?job=finetune&model=Qwen2.5-32B&devices=4")
    page.locator("#lb-calc.lb-ready").wait_for()
    page.get_by_role("button", name="Copy as Markdown").click()
    page.get_by_text("Copied.").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    found, given = terminal.ask(
        terminal.parser().parse_args(["Qwen2.5-32B", "--job=finetune", "--devices=4"])
    )
    assert text.replace("\r", "") == f"{answers.as_markdown(found, given)}\n<{page.url}>\n"
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    assert Path(download.value.path()).read_text(encoding="utf-8") == answers.as_csv(found, given)
    context.close()


def test_the_keyboard_is_enough(opened: Page) -> None:
    opened.locator("#lb-job").focus()
    names = []
    for _ in range(14):
        names.append(opened.evaluate("(it => it.name || it.textContent)(document.activeElement)"))
        opened.keyboard.press("Tab")
    assert names[:11] == [
        "job", "model", "device", "devices", "tokens", "context", "recipe", "recompute",
        "A config.json of your own", "More assumptions", "The shape of the model",
    ]  # fmt: skip
    assert names[11].startswith("Memory needed on each GPU")
    opened.locator("#lb-devices").focus()
    opened.keyboard.press("Control+A")
    opened.keyboard.type("64")
    opened.keyboard.press("Enter")  # submits nothing
    assert told(opened)[0]["state"][0] == 16 * 70_553_706_496 / 64
    opened.locator("#lb-more-part summary").press("Enter")
    assert opened.locator("#lb-mfu").is_visible()


def test_fields_and_results_have_names_for_a_screen_reader(opened: Page) -> None:
    opened.evaluate("document.querySelectorAll('.lb-inputs details').forEach((it) => { it.open = true; })")
    for field in answers.FIELDS:
        shown = opened.get_by_label(field.label, exact=True).count()
        assert shown == 1, field.label
        assert opened.locator(f"#lb-{field.name}").is_visible() == answers.asks(field, "pretrain"), field.name
    for group in ("Memory", "The run", "Traffic in a step", "The model"):
        assert opened.get_by_role("group", name=group, exact=True).locator("summary").count() >= 1
    assert opened.locator("#lb-verdict").get_by_role("status").count() == 1
    told(opened, mfu="2")
    described = opened.locator("#lb-mfu").get_attribute("aria-describedby")
    assert described is not None and "lb-mfu-wrong" in described


def test_the_picture_says_what_is_in_the_frame(opened: Page) -> None:
    told(opened, job="finetune", model="Qwen2.5-32B", devices="4")
    assert opened.locator("#lb-stack-says").inner_text() == (
        "The frame is the 80 GB of one H100 SXM. In it: state 131.1 GB, activations 7.719 GB, softmax 4.983 GB; 8 GB kept free."
    )
    told(opened, job="serve", devices="4")
    assert opened.locator("#lb-stack-says").inner_text() == (
        "The frame is the 320 GB of 4 H100 SXM together. In it: weights 65.53 GB, KV cache 10.74 GB; 32 GB kept free."
    )
    assert opened.get_by_role("img", name=re.compile("^The frame is the 320 GB")).count() == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_when_the_script_has_run_and_the_verdict_stays_in_sight(
    browser: Browser, address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver((all) => all.getEntries().forEach((it) => { if (!it.hadRecentInput)"
        " window.moved += it.value; })).observe({type: 'layout-shift', buffered: true})"
    )
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.moved") <= 0.02
    for name in ("model", "devices", "context"):
        page.locator(f"#lb-{name}").scroll_into_view_if_needed()
        page.locator(f"#lb-{name}").focus()
        top, bottom, height = page.evaluate(
            "(({top, bottom}) => [top, bottom, innerHeight])(document.getElementById('lb-verdict').getBoundingClientRect())"
        )
        assert 0 <= top < bottom <= height + 1, name
    page.close()


def test_without_scripts_the_page_says_so_and_shows_formulas_and_a_worked_case(
    browser: Browser, address: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "calculator/")
    assert page.get_by_text("The calculator itself needs JavaScript").is_visible()
    assert not page.locator("#lb-calc").is_visible()
    text = html.unescape(page.locator("article").inner_text())
    assert "The first number of GPUs that fits is 9, with a fused loss; in whole nodes of 8, 16." in text
    assert (
        "32.76 billion × 16 B ÷ 4" in text
        and "sent_for_state(parameters, weight, gradient, zero, ranks, microbatches)" in text
    )
    assert "989.5" in text and "AdamW, float32 throughout" in text
    assert "<!--" not in text
    context.close()


@pytest.mark.parametrize(("width", "scheme"), list(product((1280, 390), ("light", "dark"))))
def test_it_fits_and_is_readable_everywhere_also_with_mistakes(
    browser: Browser, address: str, width: int, scheme: Any
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    queries = (
        "?mfu=3&tokens=" + "x" * 40,
        "?job=finetune&model=Qwen2.5-32B&devices=4",
        "?job=serve&model=Mixtral-8x7B&devices=2",
    )
    for path in (*(f"calculator/{it}" for it in queries), "a-32b-on-four-h100s/", "lectures/misbeliefs/"):
        page.goto(address + path)
        page.wait_for_load_state("networkidle")
        page.evaluate("document.querySelectorAll('.lb-result').forEach((it) => { it.open = true; })")
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )
        assert page.evaluate(CONTRAST) == []
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()


def test_the_same_devices_are_in_both(opened: Page) -> None:
    named = opened.locator("#lb-device option").all_inner_texts()
    assert named == [*hardware.CARDS]
    assert asdict(terminal.named_device("h100 sxm"))["peaks"]["bfloat16"] == hardware.peak(
        hardware.CARDS["H100 SXM"], "bfloat16"
    )
