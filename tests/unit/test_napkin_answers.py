"""The calculator's answers, messages and command line: what a question gets, and what a bad one gets."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import REPO

import hardware
import napkin
import napkin_answers as answers
import napkin_terminal as terminal
from napkin_config import shape_of, shape_of_texts, shape_texts
from napkin_text import read_number, seconds, short, size, words

QWEN = "Qwen2.5-32B"


def shape(name: str) -> napkin.Shape:
    found = terminal.read_model(name).shape
    assert found is not None
    return found


def ask(model: str, line: str = "", device: str = "H100 SXM") -> answers.Answer:
    found, _ = terminal.ask(terminal.parser().parse_args([model, "--device", device, *line.split()]))
    return found


def rows(found: answers.Answer) -> dict[str, answers.Row]:
    return {row.key: row for row in found.rows}


def refused(model: str, line: str = "", device: str = "H100 SXM") -> str:
    with pytest.raises(terminal.Misused) as error:
        ask(model, line, device)
    return str(error.value)


# ------------------------------------------------------------------------ the engineer's question


def test_a_32b_on_four_gpus_does_not_fit_and_nine_is_the_first_number_that_does() -> None:
    found = ask(QWEN, "--job finetune --devices 4 --tokens 200M")
    assert not found.fits
    assert found.text == (
        "143.8 GB of 72 GB on each H100 SXM, with 1 sequence of 8,192 tokens."
        " What breaks first is the state: weights, gradients and optimizer, 131.1 GB."
        " The first number of GPUs that fits is 9, with a fused loss; in whole nodes of 8, 16."
    )
    assert rows(found).keys() & {"time", "hours", "price", "within", "steps"} == set(), (
        "no hours of what cannot run"
    )
    assert found.heads == ["It would fit with", "takes about", "costs", "on each GPU", "but"]
    adapters = "trains adapters alone, beside frozen weights"
    assert [(it.cells, it.fields) for it in found.changes] == [
        (
            [
                "LoRA: bfloat16 weights frozen, adapters by AdamW",
                "7.6 hours",
                "$61",
                "29.62 GB of 72 GB",
                adapters,
            ],
            {"recipe": "lora"},
        ),
        (
            [
                "QLoRA: 4-bit weights frozen, adapters by AdamW",
                "7.6 hours",
                "$61",
                "18.04 GB of 72 GB",
                f"{adapters} of 4 bits (dequantizing these is not counted)",
            ],
            {"recipe": "qlora"},
        ),
        (
            ["16 GPUs", "2.4 hours", "$78", "45.47 GB of 72 GB", "rents 12 more, and a step has more tokens"],
            {"devices": "16"},
        ),
        (
            [
                "offload the optimizer's state to host memory",
                "16 hours",
                "$130",
                "45.47 GB of 72 GB",
                "keeps 393.2 GB in host memory; waits 6.3 hours for the host at 1 microbatch in a step, less with more of them",
            ],
            {"offload": "yes"},
        ),
    ]
    # By hand: 16 bytes of each parameter among nine, inputs of 64 layers and one layer, and the softmax.
    s, tokens = shape(QWEN), 8192
    layer = napkin.layer_activations(s, False, False)
    kept = tokens * (64 * 2 * 5120 + layer) + 4 * 152064 * tokens
    assert 16 * 32_763_876_352 / 9 + kept < 72e9 < 16 * 32_763_876_352 / 8 + kept
    assert ask(QWEN, "--job finetune --devices 9 --tokens 200M").fits
    assert not ask(QWEN, "--job finetune --devices 8 --tokens 200M").fits


def test_time_counts_attention_and_starts_at_an_mfu_of_two_fifths() -> None:
    found = rows(
        ask(QWEN, "--job finetune --devices 16 --tokens 200M --recompute none --sequences 1 --tensor 8")
    )
    flops = 6 * 31_984_189_440 + 12 * 64 * 5120 * 8192
    assert found["flops"].value == flops
    assert found["time"].value == pytest.approx(flops * 200e6 / (16 * 1979e12 / 2 * 0.4))
    assert found["hours"].value == pytest.approx(found["time"].value * 16 / 3600)
    again = rows(ask(QWEN, "--job finetune --devices 16 --tokens 200M"))
    assert again["time"].value / found["time"].value == pytest.approx(1 + again["again"].value / flops)
    assert again["mfu"].value == pytest.approx(0.4 / (1 + again["again"].value / flops))
    assert "at 0.5 to 0.3" in again["time"].remark


def test_the_span_follows_the_mfu_that_is_asked_for() -> None:
    low = rows(ask(QWEN, "--job finetune --devices 16 --tokens 200M --mfu 0.2"))["time"]
    assert "at 0.25 to 0.15" in low.remark
    assert (
        "at 1 to 0.75" in rows(ask(QWEN, "--job finetune --devices 16 --tokens 200M --mfu 1"))["time"].remark
    )


@pytest.mark.parametrize("node", [5, 6, 7, 8])
def test_whole_nodes_are_offered_only_where_the_layout_divides_them(node: int) -> None:
    """Else what is offered would be refused when it is asked."""
    line = f"--job finetune --tokens 200M --stages 4 --node {node}"
    found = ask(QWEN, f"{line} --devices 4")
    (more,) = (it.fields["devices"] for it in found.changes if "devices" in it.fields)
    assert ask(QWEN, f"{line} --devices {more}").fits
    assert more in found.text, "the number that the verdict names"


def test_a_bubble_and_a_limit_that_is_missed_are_told() -> None:
    line = "--job finetune --devices 32 --tokens 200M"
    told = ask(QWEN, f"{line} --stages 4 --microbatches 5").warnings
    assert any(it.startswith("The pipeline's bubble, 37.5 % of the time, is not in the hours") for it in told)
    assert not any("bubble" in it for it in ask(QWEN, line).warnings)
    serve = "--job serve --devices 4 --users 16 --limit"
    assert any("above the limit of 5 ms" in it for it in ask(QWEN, f"{serve} 5").warnings)
    assert not any("above the limit" in it for it in ask(QWEN, f"{serve} 6").warnings)


def test_the_estimate_of_the_first_token_counts_the_link() -> None:
    fast, slow = (
        rows(ask(QWEN, f"--job serve --devices 4 --users 1 --inside {rate}"))["ttft"] for rate in (1e6, 1)
    )
    (quick, late) = (re.search(r"of the peak ([\d.]+) (ms|seconds)", it.remark) for it in (fast, slow))
    assert quick and late and quick[2] == "ms" and late[2] == "seconds" and float(late[1]) > slow.value


def test_serving_a_32b_counts_the_32b() -> None:
    found = rows(ask(QWEN, "--job serve --devices 4 --users 1 --prompt 1 --output 1 --inside 1e6"))
    assert found["weights"].value == 2 * 32_763_876_352
    read = 2 * (32_763_876_352 - 152064 * 5120)  # the embedding is looked up
    assert found["alone"].value == pytest.approx(4 * 3.35e12 / read, rel=1e-3)
    assert found["alone"].bound == "upper bound" and found["tpot"].bound == "lower bound"


def test_offloaded_state_waits_for_the_link_and_for_the_hosts_memory() -> None:
    found = rows(ask(QWEN, "--job finetune --devices 4 --tokens 200M --offload yes"))
    n, steps = 32_763_876_352, 200e6 / (4 * 8192)
    crossing, update = 4 * n / 4 / 50e9, (2 + 2 * 12 + 2) * n / 300e9
    assert found["host"].value == 12 * n
    plain = rows(ask(QWEN, "--job finetune --devices 16 --tokens 200M"))["time"].value * 16 / 4
    assert found["time"].value == pytest.approx(plain + steps * (crossing + update))
    two = rows(ask(QWEN, "--job finetune --devices 16 --tokens 200M --offload yes"))["time"].value
    assert two == pytest.approx(plain / 4 + steps / 4 * (crossing / 4 + update / 2))  # two nodes


# ------------------------------------------------------------------------ four more cases, with what is published


def test_a_7b_by_qlora_fits_one_card_of_24_gb() -> None:
    found = ask(
        "Llama-2-7B", "--job finetune --devices 1 --tokens 10M --recipe qlora --context 2048", "RTX 4090"
    )
    assert found.fits
    blocks, tables = 6_476_005_376, 262_410_240  # matrices of the layers; tables and norms
    by_hand = blocks * 4.127 / 8 + 2 * tables + 16 * 39_976_960
    assert rows(found)["state"].value == pytest.approx(by_hand, rel=1e-4)
    assert not ask("Llama-2-7B", "--job finetune --devices 1 --tokens 10M", "RTX 4090").fits


def test_mixtral_is_served_on_two_gpus_and_reads_the_experts_that_a_batch_meets() -> None:
    found = ask("Mixtral-8x7B", "--job serve --devices 2")
    assert found.fits and rows(found)["weights"].value == 2 * 46_702_792_704
    assert not ask("Mixtral-8x7B", "--job serve --devices 1").fits
    s = shape("Mixtral-8x7B")
    expert = 2 * 3 * 4096 * 14336
    alone = (
        2 * napkin.parameter_count(s) - 2 * 32000 * 4096 - 32 * 6 * expert
    )  # six of eight are met by nobody
    assert napkin.weights_read(s, "bfloat16", 1) == pytest.approx(alone)
    assert "meet" not in rows(found)["alone"].remark


def test_deepseek_v3s_published_hours_lie_in_the_span() -> None:
    line = "--devices 2048 --tokens 14.8T --context 4096 --recompute selective --tensor 4"
    found = rows(ask("DeepSeek-V3", line, "H800 SXM"))
    low, high = (found["hours"].value * 0.4 / mfu for mfu in (0.5, 0.3))
    assert low < 2.664e6 < high
    assert 0.40 < found["hours"].value * 0.4 / 2.664e6 < 0.46  # the MFU of the published hours
    total = rows(ask("DeepSeek-V3", line + " --parameters 671026419200", "H800 SXM"))
    assert total["hours"].value == found["hours"].value, "active experts count, not all"


def test_deepseek_v3s_published_mfu_gives_its_published_hours() -> None:
    line = "--devices 2048 --tokens 14.8T --context 4096 --recompute selective --tensor 4 --mfu 0.437"
    found = ask("DeepSeek-V3", line, "H800 SXM")
    assert rows(found)["hours"].value == pytest.approx(2.664e6, rel=0.005)
    assert any("Expert parallelism is not among the layouts" in it for it in found.warnings)
    assert any("give that of your H800 SXM" in it for it in found.warnings)
    with_link = ask("DeepSeek-V3", line + " --inside 200", "H800 SXM")
    assert not any("your H800 SXM" in it for it in with_link.warnings)


def test_gpt_oss_120b_fits_one_gpu_as_its_card_says() -> None:
    found = ask("gpt-oss-120b", "--job serve")
    assert found.fits and round(rows(found)["weights"].value / 2**30, 1) == 60.8
    assert not ask("gpt-oss-120b", "--job serve --precision bfloat16").fits


# ------------------------------------------------------------------------ serving, as lecture 05 counts


def test_serving_a_model_on_one_gpu_is_as_lecture_05_counts_it() -> None:
    from lecture_05 import llama

    found = rows(ask("Llama-3-8B", "--job serve --users 64 --prompt 2047 --output 2"))
    assert found["tpot"].value == pytest.approx(
        llama.step_seconds(64, 2048), rel=1e-4
    )  # norms are no matrices
    assert found["ttft"].value == pytest.approx(llama.prefill_seconds(2047), rel=1e-9)
    dollars = 1e6 * llama.step_seconds(64, 2048) / 64 * 2 / 3600
    decoded = rows(
        ask("Llama-3-8B", "--job serve --users 64 --prompt 1 --output 4094")
    )  # next to no prompts in the steps
    assert decoded["price-out"].value == pytest.approx(dollars, rel=1e-4)
    limited = rows(ask("Llama-3-8B", "--job serve --prompt 2047 --output 2 --limit 20"))
    assert limited["limit"].value == 193  # the lecture's batch at 20 ms
    assert "latency" not in found


def test_throughput_is_bounded_with_prompts_in_the_steps_of_decoding() -> None:
    found = rows(ask("Llama-3-8B", "--job serve --users 16 --prompt 2048 --output 512"))
    read, caches = 2 * 7_504_658_432, 16 * (2048 + 256) * 131_072
    step = (read + caches) / 3.35e12  # the arithmetic of four prompt tokens for each is hidden
    assert found["total"].value == pytest.approx(16 / step, rel=1e-4)
    busy = rows(ask("Llama-3-8B", "--job serve --users 16 --prompt 8192 --output 8"))
    prefilled = 16 / 8 * busy["ttft"].value  # seconds of a step's share of the prompts: two whole ones
    assert prefilled < 16 / busy["total"].value < prefilled + busy["tpot"].value


@pytest.mark.parametrize(("model", "devices", "copies"), [
    ("Llama-3-8B", 8, 1), ("Llama-3-8B", 16, 2), ("DeepSeek-V3", 16, 16),
])  # fmt: skip
def test_ranks_beyond_the_kv_heads_keep_copies_of_the_cache(model: str, devices: int, copies: int) -> None:
    found = ask(model, f"--job serve --devices {devices} --prompt 1000 --output 24", "H200")
    once = napkin.cache_bytes(shape(model), 1024, 2)
    assert rows(found)["sequence"].value == once * copies
    assert (f"{copies} copies" in rows(found)["sequence"].remark) == (copies > 1)
    assert any("each latent on all 16 GPUs" in it for it in found.warnings) == (model == "DeepSeek-V3")


def test_the_latency_of_all_reduces_is_the_measured_one_of_lecture_05() -> None:
    found = rows(ask(QWEN, "--job serve --devices 4"))
    pace = {1: 104.9, 8: 328.43}  # tokens/s of Llama-2-7B, as lecture 05 cites them
    floor = (1 / pace[8] - 1 / pace[1] / 8) / (1 - 1 / 8)
    assert pytest.approx(floor / 64, rel=0.02) == napkin.ALL_REDUCE
    assert found["latency"].value - found["tpot"].value == pytest.approx(2 * 64 * 33e-6)
    assert found["latency"].bound == "estimate"


def test_pace_and_prices_are_of_one_step_and_each_has_its_estimate_with_latency() -> None:
    found = ask(QWEN, "--job serve --devices 4")
    row, latency = rows(found), 2 * 64 * 33e-6
    assert (
        row["each"].value == 1 / row["tpot"].value and row["each"].name == "Tokens/s for each of the 16 users"
    )
    assert row["price-out"].value == pytest.approx(4 * 2 / 3600 / row["total"].value * 1e6)
    slow = 16 / (16 / row["total"].value + latency)
    for key, value in {
        "each": 1 / (row["tpot"].value + latency), "alone": 1 / (1 / row["alone"].value + latency), "total": slow,
        "requests": slow * 60 / 512, "price-out": 4 * 2 / 3600 / slow * 1e6,
    }.items():  # fmt: skip
        (said,) = re.findall(r"about \$?([\d.,]+) with latency of all-reduces", row[key].remark)
        assert float(said.replace(",", "")) == pytest.approx(value, rel=5e-3), key
    assert found.text.endswith(
        " TPOT at least 5.565 ms, tokens/s at most 179.7 for each of 16 users and 2,738 in all;"
        " with the latency of all-reduces about 9.79 ms, 102 and 1,590."
    )
    alone = ask("Llama-3-8B", "--job serve --users 1")
    assert "each" not in rows(alone) and "latency" not in alone.text + rows(alone)["alone"].remark


# ------------------------------------------------------------------------ what a formula says is what it gives

UNITS = {
    "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "B": 1, "µs": 1e-6, "ms": 1e-3, "seconds": 1, "minutes": 60, "hours": 3600,
    "days": 86400, "years": 31557600, "million": 1e6, "billion": 1e9, "trillion": 1e12, "FLOP": 1, "MFLOP": 1e6, "GFLOP": 1e9,
    "TFLOP": 1e12, "PFLOP": 1e15, "EFLOP": 1e18,
}  # fmt: skip


def worth(formula: str) -> float:
    """The number that a formula of a row says."""
    text = re.sub(
        r" of (weights|cache|frozen weights|attention)| on the link|/s| tokens\b| layers\b", "", formula
    )
    text = text.replace(",", "").replace("×", "*").replace("÷", "/").replace(") B", ")")
    text = re.sub(r"([\d.e]+) ([A-Za-zµ]+)", lambda it: f"({it[1]} * {UNITS[it[2]]!r})", text)
    assert re.fullmatch(r"[-+*/(). \de]*", text), text
    return float(eval(text))


@pytest.mark.parametrize("line", [
    "--devices 4", "--devices 4 --recipe lora", "--devices 8 --recipe qlora --zero 2", "--devices 16 --tensor 2 --stages 2", "--devices 1",
    "--devices 16 --zero 0 --tensor 4", "--devices 16 --zero 1", "--devices 16 --zero 2 --stages 4", "--devices 4 --offload yes",
    "--devices 8 --offload yes --zero 1", "--devices 8 --offload yes --zero 2 --tensor 2", "--devices 16 --recipe lora --zero 1 --tensor 2",
])  # fmt: skip
def test_a_formula_with_its_numbers_gives_its_result_in_training(line: str) -> None:
    found = rows(ask(QWEN, f"--job finetune --tokens 200M {line}"))
    for key in {"need", "state", "logits", "host", "time", "flops", "mfu", "steps"} & found.keys():
        assert worth(found[key].formula) == pytest.approx(found[key].value, rel=2e-3), (
            key,
            found[key].formula,
        )


@pytest.mark.parametrize(("model", "line"), [
    (QWEN, "--devices 4"), (QWEN, "--devices 2 --users 100"), ("Llama-3-8B", "--users 1"), ("Llama-3-8B", "--users 500 --prompt 100 --output 10"),
    ("Mixtral-8x7B", "--devices 2 --users 8"), ("Llama-3-8B", "--prompt 16 --users 64"), ("DeepSeek-V3", "--devices 16 --users 64"),
])  # fmt: skip
def test_a_formula_with_its_numbers_gives_its_result_in_serving(model: str, line: str) -> None:
    found = rows(ask(model, f"--job serve {line}", "H200"))
    for key in (
        set("need most ttft tpot latency each alone requests price-in price-out".split()) & found.keys()
    ):
        formula = found[key].formula.replace(" an hour × 1", " ÷ 3,600 × 1").replace(" an hour", "")
        expected = found[key].value
        rel = 1 / expected if key == "most" and expected else 2e-3
        assert worth(formula) == pytest.approx(expected, rel=max(rel, 2e-3)), (key, formula)


# ------------------------------------------------------------------------ properties


@given(
    devices=st.sampled_from([1, 2, 4, 8, 24, 64, 512]), recipe=st.sampled_from([r.key for r in napkin.RECIPES]),
    context=st.sampled_from([512, 4096, 32768]), recompute=st.sampled_from(["none", "selective", "full"]),
    model=st.sampled_from(["Llama-3-8B", QWEN, "Qwen3-30B-A3B", "Gemma-2-9B", "DeepSeek-V2-Lite"]),
    zero=st.sampled_from(["0", "1", "2", "3"]), offload=st.sampled_from(["no", "yes"]),
)  # fmt: skip
def test_the_first_number_fits_and_one_fewer_does_not_and_each_change_fits(
    devices: int, recipe: str, context: int, recompute: str, model: str, zero: str, offload: str
) -> None:
    s, device = shape(model), terminal.named_device("H100 SXM")
    q = answers.Question(
        job="finetune", devices=devices, tokens=1e8, context=context, recipe=recipe, recompute=recompute, zero=zero, offload=offload
    )  # fmt: skip
    first = answers.first_that_fits(q, s, device)
    if first:
        assert answers.fits(replace(q, devices=first), s, device)
        assert first == 1 or not answers.fits(replace(q, devices=first - 1), s, device)
    if answers.fits(q, s, device):
        assert first > 0
    else:
        found = answers.cheapest_changes(q, s, device)
        assert len(found) <= answers.MOST_OFFERS and all(answers.fits(it.question, s, device) for it in found)
        assert any(it.question.devices > devices for it in found) == (first > devices)
        offers = [answers.offer_of(it, q, s, device).fields for it in found]
        assert (
            len({it.words for it in found}) == len({tuple(sorted(it.items())) for it in offers}) == len(found)
        )
        costs = [answers.cost_of(it, s, device) for it in found]
        assert costs == sorted(costs), "the cheaper one comes first"
        for it, fields in zip(found, offers, strict=True):
            typed = {"job": "finetune", **fields}
            read = answers.read_question(typed)
            assert read.wrong == {} and all(
                getattr(read.question, name) == getattr(it.question, name) for name in typed
            )


@given(
    users=st.integers(1, 4000), prompt=st.integers(1, 100_000), output=st.integers(1, 10_000), limit=st.floats(1, 1000),
    model=st.sampled_from(["Llama-3-8B", "Mixtral-8x7B", "Gemma-3-27B (text)", "DeepSeek-V2-Lite"]),
)  # fmt: skip
def test_the_batch_at_a_limit_keeps_it_and_the_next_one_does_not(
    users: int, prompt: int, output: int, limit: float, model: str
) -> None:
    s, device = shape(model), terminal.named_device("H200")
    q = answers.Question(job="serve", devices=2, users=users, prompt=prompt, output=output, limit=limit)
    most, fit = answers.batch_at_limit(q, s, device), answers.sequences_that_fit(q, s, device)
    if most > 0:
        assert most <= fit and answers.step_of(q, s, device, most) <= limit / 1000
    if most < fit:
        assert answers.step_of(q, s, device, most + 1) > limit / 1000
    if fit >= 0:
        caches = napkin.cache_bytes(s, prompt + output, 2) * (2 if s.kv_rank else 1)
        left = 2 * 141e9 * 0.9 - napkin.weight_bytes(s, "bfloat16")
        assert fit * caches <= left < (fit + 1) * caches


def test_every_number_that_is_typed_changes_something() -> None:
    for job, change in (("pretrain", "2"), ("serve", "2")):
        base = {
            "job": job,
            "devices": "64" if job == "pretrain" else "8",
            "context": "512",
            "tokens": "1T",
            "offload": "yes",
            "tensor": "2",
        }
        asked = {
            k: v
            for k, v in base.items()
            if k == "job" or any(f.name == k and answers.asks(f, job) for f in answers.FIELDS)
        }
        s, device = shape("Llama-3-8B"), terminal.named_device("H100 SXM")
        plain = answers.answer(answers.read_question(asked).question, s, device, [])
        for field in answers.FIELDS:
            if not answers.asks(field, job) or field.name in ("rank", "node"):
                continue
            choices = (
                [c[0] for c in field.choices] if field.choices else ["0.2", change, "3", "4", "4096", "7B"]
            )
            changed = False
            for text in choices:
                read = answers.read_question({**asked, field.name: text})
                if not read.wrong and not answers.check(read.question, s, device):
                    changed |= answers.answer(read.question, s, device, []) != plain
            assert changed, (job, field.name)


# ------------------------------------------------------------------------ layouts that cannot exist


@pytest.mark.parametrize(("model", "line", "said"), [
    ("Qwen2.5-0.5B", "--devices 128 --tensor 8 --stages 16",
     "--tensor: 14 query heads do not divide among 8.; --stages: 24 layers do not divide among 16."),
    ("Llama-3-8B", "--devices 4096 --tensor 64 --stages 64",
     "--tensor: 32 query heads do not divide among 64.; --stages: 32 layers do not divide among 64."),
    ("Llama-3-8B", "--devices 10 --tensor 4", "--devices: It has to be a multiple of 4: tensor ranks times stages."),
    ("Mixtral-8x7B", "--job serve --devices 3", "--devices: 32 query heads do not divide among 3."),
    ("Qwen3-30B-A3B", "--devices 32 --tensor 32", ""),
    ("gpt-oss-20b", "--devices 64 --tensor 64", ""),
    ("Gemma-3-1B", "--devices 4 --tensor 4", ""),
    ("Llama-3-8B", "--recipe lora", "--recipe: Adapters need a trained model: choose fine-tune."),
    ("Llama-3-8B", "--job serve --precision mxfp4-experts", "--precision: This model has no experts."),
])  # fmt: skip
def test_a_layout_that_cannot_exist_is_refused_at_its_field(model: str, line: str, said: str) -> None:
    if said:
        assert refused(model, line) == said
    else:
        ask(model, line)


def test_experts_that_do_not_divide_are_refused() -> None:
    s = replace(shape("Mixtral-8x7B"), expert_hidden=14335)
    assert answers.divides(s, 2) == "An expert's FFN of 14335 does not divide among 2."
    assert (
        answers.divides(replace(shape("Llama-3-8B"), kv_heads=3, heads=12), 2)
        == "3 KV heads do not divide among 2."
    )
    assert (
        answers.divides(replace(shape("Llama-3-8B"), hidden=14335), 2)
        == "An FFN of 14335 does not divide among 2."
    )


def test_a_format_without_a_unit_is_refused() -> None:
    assert refused("GPT-2", "--devices 1", "T4") == (
        "--format: The T4 has no unit for bfloat16, so there is no peak to count with."
    )
    ask("GPT-2", "--devices 1 --format float16", "T4")


# ------------------------------------------------------------------------ one model at a time


def test_a_number_of_parameters_over_a_shape_says_what_no_longer_fits_together() -> None:
    typed, own = ask("Llama-3-70B", "--parameters 32B --devices 512"), ask("Llama-3-70B", "--devices 512")
    (said,) = typed.warnings
    assert said.startswith("32 billion parameters are typed over the 70.55 billion of the shape:")
    assert own.warnings == []
    assert rows(typed)["state"].value == pytest.approx(16 * 32e9 / 512)
    assert rows(typed)["activations"].value == rows(own)["activations"].value
    attention = 12 * 80 * 8192 * 8192
    ratio = 32e9 / 70_553_706_496
    assert rows(typed)["flops"].value - attention == pytest.approx(
        ratio * (rows(own)["flops"].value - attention)
    )


def test_what_to_mind_is_said() -> None:
    assert "loses updates" in ask("Llama-3-8B", "--recipe adamw-bfloat16 --devices 8").warnings[0]
    assert (
        "131,072 tokens are more than the 8,192"
        in ask("Llama-3-8B", "--context 131072 --devices 64").warnings[0]
    )
    slow = ask("DeepSeek-V3", "--devices 2048 --context 4096 --tokens 1T", "H800 SXM")
    assert any("the hours are too few" in it for it in slow.warnings)
    assert (
        "But in this layout a step sends for longer than it computes: at the rates of the links, the run takes at least"
        in slow.text
    )
    assert "bfloat16 peak" in ask("Llama-3-8B", "--devices 8 --format float8").warnings[0]
    assert any("more than a node of 8" in it for it in ask("Llama-3-8B", "--job serve --devices 16").warnings)


def test_what_is_an_h100s_is_said_of_other_devices() -> None:
    line = "--job finetune --devices 1 --recipe qlora --context 2048 --tokens 10M"
    plain = ask("Llama-2-7B", line, "RTX 4090")
    assert plain.warnings == [
        "Assumed as for an H100: the price of $2 a GPU-hour, the MFU of 0.4 (Llama 3's). Give those of your RTX 4090.",
        "No energy is given, because the power of your RTX 4090 is not known here: type it.",
        "QLoRA dequantizes each weight at every use. That is not counted, so its hours are LoRA's, and too few.",
    ]
    assert "energy" not in rows(plain)
    own = ask("Llama-2-7B", f"{line} --price 0.4 --mfu 0.3 --watts 450", "RTX 4090")
    assert len(own.warnings) == 1 and rows(own)["energy"].value == pytest.approx(
        450 * rows(own)["hours"].value
    )
    assert "whole nodes" not in ask("Llama-2-7B", "--job finetune --devices 1", "RTX 4090").text
    assert rows(ask("Llama-3-8B", "--devices 8", "H200"))["energy"].remark == "at 700 W each"


def test_offloaded_state_waits_once_a_step_and_says_so() -> None:
    once, often = (
        ask(QWEN, f"--job finetune --devices 4 --tokens 200M --offload yes --microbatches {n}")
        for n in (1, 8)
    )
    assert once.warnings == [
        (
            "Offloaded state waits for the host once a step: 6.3 hours of 16 hours at 1 microbatch of 32,768 tokens in all."
            " With eight times as many microbatches it would be 11 hours."
        )
    ]
    assert seconds(rows(often)["time"].value, 2) == "11 hours"


def test_a_loss_that_is_not_fused_is_said_at_the_verdict_where_it_decides() -> None:
    line = "--job finetune --devices 4 --tokens 200M --recipe lora --sequences"
    assert "fused" not in ask(QWEN, f"{line} 1").text
    found = ask(QWEN, f"{line} 4")
    extra = 8 * 152064 * 4 * 8192
    assert found.fits and rows(found)["need"].value <= 72e9 < rows(found)["need"].value + extra
    assert found.text.endswith(f"16-bit logits and gradients, {size(extra)} more, and then it does not fit.")


def test_a_length_in_k_is_a_power_of_two_and_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        rows(ask(QWEN, "--job serve --devices 4 --prompt 8k --output 1k"))["sequence"].remark
        == "8,192 + 1,024 tokens"
    )
    assert "with 1 sequence of 8,192 tokens" in ask("Llama-3-8B", "--devices 8 --context 8k").text
    assert read_number("1M", "length", "1").value == 2**20 and read_number("8k", "count", "1").value == 8000
    assert terminal.main(["Llama-3-8B", "--devices", "8", "--context", "8k", "--markdown"]) == 0
    assert "| Tokens of a sequence | 8,192 |" in capsys.readouterr().out


# ------------------------------------------------------------------------ numbers as people write and read them


@pytest.mark.parametrize(("text", "value"), [
    ("70B", 70e9), ("70 b", 70e9), ("1.1B", 1.1e9), ("7e10", 7e10), ("7E+10", 7e10), ("70,000,000,000", 70e9),
    ("70_000_000_000", 70e9), ("70 000 000 000", 70e9), ("124M", 124e6), (".5k", 500), ("1.75 trillion", 1.75e12),
    ("  5  ", 5), ("+5", 5), ("5.", 5), ("5.0", 5), ("1e15", 1e15), ("-7B", -7e9), ("−7B", -7e9), ("1e-3", 0.001),
])  # fmt: skip
def test_numbers_are_read_as_people_write_them(text: str, value: float) -> None:
    found = read_number(text, "count", "70B")
    assert (found.wrong, found.value) == ("", value)


@pytest.mark.parametrize("text", [
    "seventy", "1,5B", "1,0000", "0x10", "NaN", "Infinity", "5constructor", "5__proto__", "5%", "1 2", ".", "e5", "٧", "-", "1e99999",
    "<img src=x onerror=alert(1)>", "1e", "12,34", "5BB",
])  # fmt: skip
def test_what_is_no_number_is_said_so(text: str) -> None:
    said = read_number(text, "count", "70B").wrong
    assert "is not a number that this field knows; write it like 70B." in said and len(said) < 120
    assert ("Decimals take a point." in said) == (text in {"1,5B", "12,34", "1,0000"})


def test_limits_are_said() -> None:
    def said(**texts: str) -> dict[str, str]:
        return answers.read_question({"job": "pretrain", **texts}).wrong

    assert said(mfu="50") == {
        "mfu": "MFU cannot exceed 1: nothing does more than its peak. For 50 percent write 0.5."
    }
    assert said(mfu="120%") == {
        "mfu": "MFU cannot exceed 1: nothing does more than its peak. For 1.2 percent write 0.012."
    }
    assert said(devices="2.5") == {"devices": "“2.5” is not a whole number."}
    assert said(tokens="0") == {"tokens": "“0” is too small: at least 1."}
    assert (
        said(tokens="1e99") == {"tokens": "“1e99” is too large: at most 1e18."}
        or "too large" in said(tokens="1e99")["tokens"]
    )
    assert said(tokens="1e9999")["tokens"].startswith("“1e9999” is too large")
    assert said(devices="") == {"devices": "Give a number, such as 1024."}
    assert said(parameters="") == {}
    assert said(recipe="<b>")["recipe"].startswith("“<b>” is not one of adamw-mixed, ")
    assert said(job="x") == {"job": "“x” is no job: pretrain, finetune or serve."}


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (1, "1"), (32760.4, "32,760"), (7.8599, "7.86"), (0.00012345, "0.0001235"), (999.96, "1,000"), (9.9999, "10"),
    (1e15, "1e15"), (-2.5, "-2.5"), (12345, "12,350"), (100000, "100,000"), (0.1, "0.1"), (1e-9, "1e-9"),
])  # fmt: skip
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert short(value) == text


@given(st.floats(1e-5, 1e14))
def test_four_digits_are_near_enough(value: float) -> None:
    assert float(short(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


def test_units_follow_the_size() -> None:
    assert [size(v) for v in (0, 999, 131055505408, 4.2e15)] == ["0 B", "999 B", "131.1 GB", "4.2 PB"]
    assert [seconds(v) for v in (5e-7, 0.0123, 90, 3600, 28296, 12441600, 1e9)] == [
        "0.5 µs", "12.3 ms", "90 seconds", "60 minutes", "7.86 hours", "144 days", "31.69 years",
    ]  # fmt: skip
    assert [words(v) for v in (7, 152064, 32763876352, 15e12)] == [
        "7",
        "152,064",
        "32.76 billion",
        "15 trillion",
    ]


# ------------------------------------------------------------------------ a config.json


def config(**changes: Any) -> dict[str, Any]:
    return {**terminal.published()["Llama-3-8B"]["config"], **changes}


@pytest.mark.parametrize(("changes", "said"), [
    ({"num_hidden_layers": "32"}, "num_hidden_layers has to be a whole number, not “32”"),
    ({"num_hidden_layers": None}, "num_hidden_layers is missing"),
    ({"hidden_size": -4096}, "hidden_size has to be from 1 to 100000000, not -4,096"),
    ({"hidden_size": 1e30}, "hidden_size has to be from 1 to 100000000, not a number beyond all models"),
    ({"hidden_size": 4096.5}, "hidden_size has to be a whole number, not 4,097"),
    ({"vocab_size": [1]}, "vocab_size has to be a whole number, not a list"),
    ({"vocab_size": True}, "vocab_size has to be a whole number, not true or false"),
    ({"num_key_value_heads": 5}, "num_attention_heads 32 does not divide by num_key_value_heads 5"),
    ({"num_attention_heads": 24}, "hidden_size 4096 does not divide by num_attention_heads 24"),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings has to be true or false, not “yes”"),
    ({"layer_types": ["linear_attention"] * 32}, "layer_types has “linear_attention”, which this calculator cannot say"),
    ({"layer_types": ["sliding_attention"] * 32}, "sliding_window is missing"),
    ({"layer_types": ["full_attention"]}, "layer_types has 1 entries for 32 layers"),
    ({"model_type": "mamba"}, "The family “mamba” is not one that this calculator can say: "),
    ({"model_type": 3}, "The family 3 is not one that this calculator can say: "),
    ({"model_type": None}, "This JSON has no model_type, so it is not a config.json of a language model."),
    ({"model_type": "__proto__"}, "The family “__proto__” is not one"),
    ({"quantization_config": 4}, "quantization_config has to be an object"),
    ({"model_type": "mixtral", "num_local_experts": 8}, "num_experts_per_tok is missing"),
    ({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok 9 is more than the 8 experts"),
    ({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2}, "decoder_sparse_step"),
    ({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": [0]}, "mlp_only_layers is not known"),
])  # fmt: skip
def test_a_config_that_cannot_be_used_is_refused_in_a_sentence(changes: dict[str, Any], said: str) -> None:
    found = shape_of(config(**changes), "x")
    assert found.shape is None and said in found.wrong and len(found.wrong) < 260


@pytest.mark.parametrize("outer", [[], "x", 3, None, True, {}, {"a": 1}, {"cells": [], "nbformat": 4}])
def test_json_of_something_else_is_refused(outer: Any) -> None:
    found = shape_of(outer, "x")
    assert found.shape is None and found.wrong.startswith("This JSON")


@given(st.dictionaries(
    st.sampled_from([*config(), "layer_types", "sliding_window", "text_config", "head_dim", "num_experts", "q_lora_rank", "x"]),
    st.one_of(st.none(), st.booleans(), st.integers(-10, 10**9), st.floats(), st.text(max_size=30), st.just([]), st.just({})),
), st.sampled_from([*terminal.published()]))  # fmt: skip
def test_any_json_gives_a_shape_or_a_sentence(changes: dict[str, Any], model: str) -> None:
    found = shape_of({**terminal.published()[model]["config"], **changes}, "x")
    assert (found.shape is None) == (found.wrong != "")
    if found.shape is not None:
        assert napkin.parameter_count(found.shape) > 0


def test_a_text_config_is_the_model_and_the_rest_is_named() -> None:
    inner = {
        k: v for k, v in terminal.published()["Gemma-3-27B (text)"]["config"].items() if k != "vocab_size"
    }
    outer = {"model_type": "gemma3", "text_config": inner, "vision_config": {"hidden_size": 1152}}
    found = shape_of(outer, "x")
    assert found.shape is not None and napkin.parameter_count(found.shape) == 27_009_346_304
    assert found.left_out == ["the vision part: the text model alone is counted"]


def test_keys_that_are_not_known_are_named() -> None:
    found = shape_of(config(num_nextn_predict_layers=1, zeta_layers=4, alpha=1, torch_dtype="bfloat16"), "x")
    assert found.left_out == [
        "the layer that predicts a second token (num_nextn_predict_layers)",
        "keys that this calculator does not know: alpha, zeta_layers",
    ]


def test_weights_are_served_in_the_format_that_they_are_stored_in() -> None:
    assert terminal.read_model("gpt-oss-20b").precision == "mxfp4-experts"
    assert terminal.read_model("DeepSeek-V3").precision == "float8"
    found = shape_of(config(quantization_config={"quant_method": "gptq"}), "x")
    assert found.precision == "bfloat16" and found.left_out == [
        "weights stored by “gptq”: choose their format where you serve"
    ]


@pytest.mark.parametrize("model", terminal.published())
def test_a_shape_typed_by_hand_says_the_same(model: str) -> None:
    s = shape(model)
    typed = shape_of_texts(shape_texts(s), model)
    assert typed.wrong == {} and napkin.parameter_count(typed.shape) == napkin.parameter_count(s)
    assert typed.shape == s


@pytest.mark.parametrize(("name", "text", "said"), [
    ("kv_heads", "5", "32 query heads do not divide by 5."), ("layers", "0", "It has to be a whole number from 1 to 100 million."),
    ("layers", "x", "“x” is not a number that this field knows; write it like 32."), ("active", "2", "2 is more than the 1 experts of a layer."),
    ("windowed_layers", "33", "33 is more than the 32 layers."), ("dense_layers", "33", "33 is more than the 32 layers."),
])  # fmt: skip
def test_a_shape_that_cannot_be_is_said_at_its_field(name: str, text: str, said: str) -> None:
    assert shape_of_texts({**shape_texts(shape("Llama-3-8B")), name: text}, "x").wrong[name] == said


# ------------------------------------------------------------------------ the terminal


def run(*line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPO / "lectures" / "napkin.py"), *line]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)


def test_the_command_of_the_readme_answers_with_a_table(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(terminal.published()[QWEN]["config"]))
    done = run(
        str(file), "--devices", "4", "--device", "H100 SXM", "--job", "finetune", "--recipe", "lora", "--tokens", "200M"
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    flat = " ".join(done.stdout.split())
    assert flat.startswith(
        f"fine-tune {tmp_path.name} on 4 × H100 SXM, 80 GB ✓ It fits. 29.62 GB of 72 GB on each H100 SXM, with 1 sequence of 8,192 tokens. About 7.6 hours"
    )
    assert "32,763,876,352" in flat and "Recipe LoRA" in flat


def test_json_is_for_programs(tmp_path: Path) -> None:
    done = run(QWEN, "--job", "finetune", "--devices", "4", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["fits"] is False and len(found["changes"]) == 4
    assert {row["key"]: row["value"] for row in found["rows"]}["state"] == 16 * 32_763_876_352 / 4
    assert all(row["section"].startswith("lecture_0") for row in found["rows"])
    assert found["assumptions"]["Model"] == QWEN
    assert found["changes"][2] == {
        "cells": [
            "16 GPUs",
            "2.4 hours",
            "$78",
            "45.47 GB of 72 GB",
            "rents 12 more, and a step has more tokens",
        ],
        "fields": {"devices": "16"},
    }


@pytest.mark.parametrize(("content", "said"), [
    ("", "is no JSON: "), ("{", "is no JSON: "), ("[" * 100_000, "is no JSON: "), ("[]", "This JSON is no object"),
    ("{}", "has no model_type"), (" " * 2_000_000, "has 2,000,000 characters; a config.json has a few thousand"),
    ('{"model_type": "clip_vision_model"}', "The family “clip_vision_model” is not one"),
])  # fmt: skip
def test_a_bad_file_is_one_line_and_exit_two(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(content)
    with pytest.raises(terminal.Misused, match=re.escape(said)):
        terminal.read_model(str(file))


@pytest.mark.parametrize(("line", "said"), [
    (["nowhere.json"], "no file and no model 'nowhere.json'"),
    ([QWEN, "--device", "H1000 SXM"], "no device 'H1000 SXM': did you mean H100 SXM"),
    ([QWEN, "--job", "eat"], "--job: “eat” is no job: pretrain, finetune or serve."),
    ([QWEN, "--tokens", "many"], "--tokens: “many” is not a number that this field knows; write it like 15T."),
    ([QWEN, "--users", "3"], "--users is nothing that pretrain asks for"),
    ([], "give a config.json, or the name of a model: --list names them"),
    ([QWEN, "--spam"], "unrecognized arguments: --spam"),
])  # fmt: skip
def test_a_bad_question_is_one_line_and_exit_two(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal.main(line) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"napkin.py: {said}") and err.count("\n") == 1


def test_a_process_ends_with_two() -> None:
    done = run("-", stdin="no json")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_the_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert terminal.main(["--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name}\n" in out for name in [*terminal.published(), *hardware.CARDS])


def test_each_field_is_an_option_and_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        terminal.main(["--help"])
    out = capsys.readouterr().out
    assert all(f"--{field.name}" in out for field in answers.FIELDS)


# ------------------------------------------------------------------------ to take along


@pytest.mark.parametrize(
    ("line", "status"), [(["--list"], 0), ([QWEN], 0), ([QWEN, "--json"], 0), ([QWEN, "--devices", "4"], 1)]
)
def test_a_reader_that_goes_away_is_no_error_and_the_verdict_stands(line: list[str], status: int) -> None:
    words = [sys.executable, str(REPO / "lectures" / "napkin.py"), *line]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()  # as `| head` does
        assert (process.stderr.read(), process.wait()) == (b"", status)


def test_a_table_in_markdown_has_the_assumptions_and_every_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert terminal.main([QWEN, "--job", "finetune", "--devices", "4", "--markdown"]) == 1
    text = capsys.readouterr().out
    found = ask(QWEN, "--job finetune --devices 4")
    assert text.startswith("**It does not fit.** 143.8 GB")
    for row in found.rows:
        assert f"| {row.name}" in text and row.text in text
    assert "| Memory kept free | 10 % |" in text and "| Model | Qwen2.5-32B |" in text
    assert all(line.count("|") in (3, 5, 6) for line in text.splitlines() if line.startswith("|"))


def test_csv_is_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert terminal.main([QWEN, "--job", "serve", "--devices", "4", "--csv"]) == 0
    table = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    results = {row["name"]: row["value"] for row in table if row["kind"] == "result"}
    assert results["Weights"] == str(2 * 32_763_876_352)
    assert all(float(value) >= 0 for value in results.values())
    assert {row["kind"] for row in table} == {"assumption", "verdict", "result"}


@pytest.mark.parametrize("within", ["0.25", "1", "2.5"])
def test_so_many_gpus_are_done_in_time_waits_included(within: str) -> None:
    line = f"--job finetune --offload yes --context 8k --tokens 200M --devices 64 --within {within}"
    by = {row.key: row.value for row in ask(QWEN, line).rows}["within"]
    asked = {"job": "finetune", "offload": "yes", "context": "8k", "tokens": "200M", "within": within}
    q, device = answers.read_question(asked).question, terminal.named_device("H100 SXM")
    took = [
        answers.plan_of(replace(q, devices=float(n)), shape(QWEN), device).seconds
        for n in (by, max(by - 1, 1))
    ]
    assert took[0] <= float(within) * 86_400 < took[1] or by == 1
