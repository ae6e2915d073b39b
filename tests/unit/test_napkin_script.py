"""The calculator's script: the formulas of Python in JavaScript give the same answers, to the last digit and word."""

from __future__ import annotations

import json
import math
import random
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import playwright
import pytest
from tests.running import REPO, examples

import calculator
import hardware
import javascript
import napkin_answers as answers
import napkin_terminal as terminal
from napkin_config import shape_of, shape_of_texts, shape_texts
from napkin_text import read_number, seconds, short, size, words

NODE = (
    Path(playwright.__file__).parent / "driver" / "node"
)  # that of the browser tests: always the same, and there

QUESTIONS = examples(1000)
DEVICES = {name: asdict(terminal.device_of(card)) for name, card in hardware.CARDS.items()}
SOME = {
    "tensor": ["1", "2", "4", "8"], "stages": ["1", "2", "4"], "devices": ["1", "2", "3", "4", "8", "64", "1000", "1,024", "4096"],
    "sequences": ["1", "2", "32"], "microbatches": ["1", "3", "16"], "parameters": ["", "7B", "32.5B"], "node": ["4", "8"],
    "mfu": ["0.4", "38 %", "1"], "reserve": ["10 %", "0"],
}  # fmt: skip


def question(chance: random.Random) -> dict[str, str]:
    """Fields as someone may fill them, some with numbers from end to end of their limits, a few with nonsense."""
    job = chance.choice(["pretrain", "finetune", "serve"])
    texts = {"job": job}
    for field in answers.FIELDS:
        if not answers.asks(field, job) or chance.random() < 0.4:
            continue
        if field.choices:
            texts[field.name] = chance.choice(field.choices)[0]
        elif field.name in SOME:
            texts[field.name] = chance.choice(SOME[field.name])
        else:
            value = math.exp(
                chance.uniform(math.log(max(field.least, 1e-3)), math.log(min(field.most, 1e13)))
            )
            texts[field.name] = repr(round(value) if field.whole else value)
        if chance.random() < 0.003:
            texts[field.name] = chance.choice(["", "x", "1e99", "-3", "2.5", "<b>", "1,5"])
    return texts


def config(chance: random.Random) -> Any:
    """A config.json, often one that something is wrong with."""
    name = chance.choice([*terminal.published()])
    found = dict(terminal.published()[name]["config"])
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        key = chance.choice(
            [*found, "layer_types", "sliding_window", "text_config", "odd_key", "num_nextn_predict_layers"]
        )
        found[key] = chance.choice(
            [None, True, -1, 0, 1, 2, 40, 1.5, 1e20, "12", "x" * 30, [], ["full_attention"], {}, "llama"]
        )
    return chance.choice(
        [found] * 20
        + [[], 3, None, "text", {"text_config": found, "vision_config": {}, "model_type": "gemma3"}]
    )


def worked_out(texts: dict[str, str], given: Any, device: str) -> dict[str, Any]:
    """All that the page shows of a question, from Python."""
    reading = shape_of(given, "a model")
    if reading.shape is None:
        return {"reading": asdict(reading)}
    typed = shape_of_texts(shape_texts(reading.shape), "a model")
    asked, row = answers.read_question(texts), answers.Device(**DEVICES[device])
    wrong = asked.wrong or answers.check(asked.question, typed.shape, row)
    found: dict[str, Any] = {"reading": asdict(reading), "typed": asdict(typed), "wrong": wrong}
    if not wrong:
        answer = answers.answer(asked.question, typed.shape, row, reading.left_out)
        rest = answers.assumptions(texts, typed.shape, row)
        found |= {
            "answer": asdict(answer),
            "markdown": answers.as_markdown(answer, rest),
            "csv": answers.as_csv(answer, rest),
        }
    return found


PROGRAM = """
import * as napkin from "./data.mjs";
import { readFileSync } from "node:fs";
const { questions, numbers, texts } = JSON.parse(readFileSync("cases.json", "utf8"));
const { CARDS } = napkin;
const found = questions.map(([texts, given, name]) => {
  const reading = napkin.shape_of(given, "a model");
  if (reading.shape === null) return { reading };
  const typed = napkin.shape_of_texts(napkin.shape_texts(reading.shape), "a model");
  const asked = napkin.read_question(texts), device = CARDS.find((it) => it.name === name);
  const wrong = Object.keys(asked.wrong).length ? asked.wrong : napkin.check(asked.question, typed.shape, device);
  if (Object.keys(wrong).length) return { reading, typed, wrong };
  const answer = napkin.answer(asked.question, typed.shape, device, reading.left_out);
  const rest = napkin.assumptions(texts, typed.shape, device);
  return { reading, typed, wrong, answer, markdown: napkin.as_markdown(answer, rest), csv: napkin.as_csv(answer, rest) };
});
const written = numbers.map((x) => [napkin.short(x), napkin.size(x), napkin.words(x), napkin.seconds(x)]);
const read = texts.map((text) => { const it = napkin.read_number(text, "count", "1"); return [it.wrong ?? "", it.value]; });
console.log(JSON.stringify({ found, written, read }));
"""


def same(one: Any, other: Any) -> bool:
    """Whether two values of JSON are the same; a number may be whole on one side."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same(one[k], other[k]) for k in one)
        )
    if isinstance(one, list | tuple):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, int | float) and not isinstance(one, bool):
        return isinstance(other, int | float) and not isinstance(other, bool) and float(one) == float(other)
    return type(one) is type(other) and bool(one == other)


def test_python_and_script_agree_on_many_questions(tmp_path: Path) -> None:
    chance = random.Random(43)
    questions = [(question(chance), config(chance), chance.choice([*DEVICES])) for _ in range(QUESTIONS)]
    numbers = [chance.choice([1, -1]) * 10 ** chance.uniform(-12, 20) for _ in range(1000)] + [
        0,
        1,
        999.95,
        12345,
        0.5,
    ]
    texts = [
        "70B",
        "1,024",
        "1,5",
        "-3",
        "5.",
        ".5k",
        "1e3",
        "",
        " 7 b ",
        "1 000",
        "7e",
        "٧",
        "1e400",
        "0x1",
        "3 %",
        "1,0000",
        "12_000",
    ]
    script = calculator.data_script(
        REPO / "lectures", [asdict(card) for card in hardware.CARDS.values()], terminal.published()
    )
    extra = "export { short, seconds, read_number };\n"
    (tmp_path / "data.mjs").write_text(script + extra, encoding="utf-8")
    (tmp_path / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    cases = {"questions": questions, "numbers": numbers, "texts": texts}
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    done = subprocess.run(
        [NODE, "program.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    answered = fitting = 0
    for asked, found in zip(questions, got["found"], strict=True):
        expected = worked_out(*asked)
        assert same(json.loads(json.dumps(expected)), found), asked
        answered += "answer" in expected
        fitting += "answer" in expected and expected["answer"]["fits"]
    assert answered > QUESTIONS / 4 and fitting > QUESTIONS / 20 and answered - fitting > QUESTIONS / 20
    assert got["written"] == [[short(x), size(x), words(x), seconds(x)] for x in numbers]
    for text, (wrong, value) in zip(texts, got["read"], strict=True):
        expected_number = read_number(text, "count", "1")
        assert wrong == expected_number.wrong, text
        assert value == (None if math.isinf(expected_number.value) else expected_number.value), text


PICTURE = """
import { readFileSync } from "node:fs";
globalThis.window = {};
(0, eval)(readFileSync(process.argv[2], "utf8"));
const make = () => ({}), stage = { replaceChildren() {} };
console.log(JSON.stringify(JSON.parse(process.argv[3]).map((at) => {
  const values = window.litbookPicture.values(at);
  return [values, window.litbookPicture.draw(stage, { place: at, values, make })];
})));
"""


def test_the_picture_of_the_first_page_and_the_calculator_have_one_rule(tmp_path: Path) -> None:
    models = {"Llama-3.2-1B": "Llama-3.2-1B", "Llama-3-70B": "Llama-3-70B", "Llama-3-405B": "Llama-3.1-405B"}
    kept = {"all": "none", "inputs of blocks": "full"}
    grid: list[dict[str, Any]] = [
        {"model": model, "devices": gpus, "context": context, "activations_kept": activations}
        for model in models for gpus in (1, 16, 32, 1024) for context in (2048, 8192, 131072) for activations in kept
    ]  # fmt: skip
    (tmp_path / "picture.mjs").write_text(PICTURE, encoding="utf-8")
    script = REPO / "lectures" / "lecture_03" / "pictures" / "fit.js"
    done = subprocess.run(
        [NODE, str(tmp_path / "picture.mjs"), str(script), json.dumps(grid)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    device, verdicts = terminal.named_device("H100 SXM"), set()
    for at, (values, said) in zip(grid, json.loads(done.stdout), strict=True):
        shape = terminal.read_model(models[at["model"]]).shape
        assert shape is not None
        asked = answers.Question(
            devices=at["devices"], tokens=15e12, context=at["context"], recompute=kept[at["activations_kept"]]
        )  # fmt: skip
        plan = answers.plan_of(asked, shape, device)
        for name, value in {
            "state": plan.state,
            "activations": plan.activations,
            "softmax": plan.logits,
            "days": plan.seconds / 86400,
            "gpu_hours": plan.seconds * at["devices"] / 3600,
        }.items():
            assert values[name] == pytest.approx(value, rel=1e-12), (at, name)
        fits = answers.fits(asked, shape, device)
        if (
            plan.room == 72e9
        ):  # the layers of the largest model, gathered, are more than the tenth that is kept free
            assert ("It fits" in said[0]) == fits, at
            verdicts.add(fits)
    assert verdicts == {True, False}


# ------------------------------------------------------------------------ the translation


def run(text: str, call: str, tmp_path: Path) -> Any:
    script = javascript.translate({"a.py": text}, []) + f"console.log(JSON.stringify({call}));\n"
    (tmp_path / "a.mjs").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [NODE, "a.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_names_of_a_function_hide_none_of_a_file(tmp_path: Path) -> None:
    text = "def room(x):\n    return x * 2\n\n\ndef ask(room_of, words):\n    days = [w for w in words if w != 'b']\n    return [room(room_of), days]\n\n\ndef days(room):\n    return room + 1\n"
    assert run(text, "[ask(3, ['a', 'b']), days(4)]", tmp_path) == [[6, ["a"]], 5]


def test_operators_bind_as_in_python(tmp_path: Path) -> None:
    text = (
        "def f(a, b, c):\n"
        "    return [(a + b) * c, a - (b - c), a / (b * c), -(a + b), not (a < b and b < c), (a if b else c) + 1,"
        " 7 // 2, a % b, f\"{a + b}`${c}\\\\\"]\n"
    )  # fmt: skip
    a, b, c = 2, 3, 4
    assert run(text, "f(2, 3, 4)", tmp_path) == [
        (a + b) * c, a - (b - c), a / (b * c), -(a + b), not (a < b < c), (a if b else c) + 1, 3, 2, "5`$4\\",
    ]  # fmt: skip


@pytest.mark.parametrize("text", [
    "def f(x):\n    return x ** 2\n", "def f(x):\n    return x[-1]\n", "def f(x):\n    return f'{x:.2f}'\n", "def f(x):\n    return 1 < x < 3\n",
    "def f(x):\n    with x:\n        return 1\n", "def f(x):\n    return 'a' in x\n", "def f(x):\n    return sum(x)[0:]\n", "a, b = 1, 2\n",
    "def new(x):\n    return x\n", "def f(x):\n    return x\n\n\ndef f(x):\n    return x\n", "def f(x):\n    yield x\n",
])  # fmt: skip
def test_what_has_no_translation_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(javascript.Untranslatable, match=r"a\.py|JavaScript has its own new"):
        javascript.translate({"a.py": text}, [])
