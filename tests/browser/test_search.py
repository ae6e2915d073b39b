"""What readers ask the search for, in their own words, and where its first three answers lead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.running import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CALCULATOR, IN_GLOSSARY = "calculator/", "glossary/#"
TWO, THREE, FOUR = "lectures/lecture_02/", "lectures/lecture_03/", "lectures/lecture_04/"
FIVE = "lectures/lecture_05/"

# A query, and pages or sections that have to be among the first three results below a line of the glossary; the
# first one, if it is marked.
ASKED = [
    ("what is a flop", [f"!{TWO}napkin-math/#flops_are_work_and_flops_per_second_a_rate", f"{TWO}counting-flops/"]),
    ("how much does it cost to train a 70B model", [f"!{CALCULATOR}"]),
    ("how many gpus", [f"!{CALCULATOR}", f"{TWO}napkin-math/"]),
    ("how long does training take", [f"!{CALCULATOR}"]),
    ("does it fit", [f"!{CALCULATOR}"]),
    ("out of memory", [f"!{CALCULATOR}"]),
    ("price", [f"!{CALCULATOR}", f"{TWO}napkin-math/#a_run_is_paid_for_in_gpu_hours"]),
    ("batch size", [f"!{THREE}generating/#a_batch_shares_the_weights"]),
    ("why is my model slow", [f"!{THREE}three-regimes/"]),
    ("what is mfu", [f"{TWO}peaks-and-mfu/", f"{THREE}which-flops-enter-mfu/"]),
    ("kv cache", [f"!{THREE}generating/#a_token_leaves_its_keys_and_values"]),
    ("enable_gqa", [f"{THREE}a-block-of-today/"]),
    ("grouped query attention", [f"!{THREE}a-block-of-today/#query_heads_share_keys"]),
    ("bf16 vs fp16", [f"{TWO}number-formats/", f"{TWO}what-rounding-loses/"]),
    ("lora", [CALCULATOR]),
    ("qlora", [CALCULATOR]),
    ("fine tune", [CALCULATOR]),
    ("config.json", [CALCULATOR]),
    ("time to first token", [CALCULATOR]),
    ("offload", [CALCULATOR]),
    ("how many bytes per parameter", [f"{TWO}napkin-math/"]),
    ("what does a transpose cost", [f"!{TWO}storage-and-views/#a_transpose_swaps_strides"]),
    ("tranpose", [f"!{TWO}storage-and-views/#a_transpose_swaps_strides"]),
    ("view or reshape", [f"!{TWO}storage-and-views/"]),
    ("stride", [f"!{TWO}storage-and-views/"]),
    ("roofline", [f"!{TWO}napkin-math/#the_roofline_shows_what_waits_for_memory"]),
    ("arithmetic intensity", [f"!{THREE}three-regimes/#every_operation_has_an_intensity"]),
    ("gradient accumulation", [f"!{TWO}the-bill-of-a-step/#parts_of_a_batch_add_up_to_the_whole"]),
    ("activation checkpointing", [f"{THREE}the-activations-of-a-block/#checkpointing_keeps_the_input_alone", f"{TWO}gradients/"]),
    ("loss scaling", [f"{TWO}what-rounding-loses/#scaling_the_loss_saves_small_gradients"]),
    ("optimizer state", [f"{TWO}the-bill-of-a-step/#the_bill_in_bytes"]),
    ("adam memory", [f"{TWO}optimizers/"]),
    ("causal mask", [f"!{TWO}elementwise/#the_causal_mask_keeps_the_lower_triangle"]),
    ("tokens per second", [f"{THREE}generating/#bandwidth_sets_the_pace"]),
    ("speculative decoding", [f"!{THREE}generating/#a_guess_is_cheap_to_check"]),
    ("mixture of experts", [f"!{THREE}later-models/#a_token_meets_a_few_of_many_experts"]),
    ("tokenizer", [f"{TWO}data-and-randomness/#a_batch_is_inputs_and_their_next_tokens"]),
    ("seed", [f"!{TWO}data-and-randomness/"]),
    ("what is a tensor", [f"!{TWO}tensors/"]),
    ("gqa", [f"!{THREE}a-block-of-today/#query_heads_share_keys"]),
    ("tensor paralel", [f"!{FOUR}tensor-parallelism/"]),
    ("zero stage 3", [f"!{FOUR}sharded-state/#fsdp_does_the_same"]),
    ("mfu", [f"!{TWO}peaks-and-mfu/#mfu_counts_what_the_model_needs"]),
    ("why is my matmul slow", [f"!{THREE}three-regimes/#every_operation_has_an_intensity"]),
    ("nvlink bandwidth", [f"!{FOUR}all-together/"]),
    ("flash attention", [f"!{THREE}the-activations-of-a-block/#unfused_attention_keeps_a_weight_per_pair"]),
    ("activation memory", [f"!{TWO}napkin-math/#activations_grow_with_the_batch"]),
    ("how long to train 70b", [f"!{CALCULATOR}", f"{TWO}napkin-math/"]),
    ("H100 flops", [f"!{TWO}peaks-and-mfu/#every_peak_belongs_to_a_format"]),
    ("recomputation", [f"!{THREE}the-activations-of-a-block/#checkpointing_keeps_the_input_alone"]),
    ("bf16 range", [f"!{TWO}number-formats/"]),
    ("largest number bfloat16", [f"!{TWO}number-formats/"]),
    ("kv cache size", [f"!{THREE}generating/#a_token_leaves_its_keys_and_values"]),
    ("pipeline bubble", [f"!{FOUR}pipelines/"]),
    ("fsdp", [f"!{FOUR}sharded-state/#fsdp_does_the_same"]),
    ("ring all reduce", [f"!{FOUR}collectives/#a_ring_sends_less_than_twice_the_tensor"]),
    ("gradient checkpointing", [f"!{TWO}gradients/#checkpointing_trades_flops_for_memory"]),
    ("contigous", [f"!{TWO}storage-and-views/#a_transpose_swaps_strides"]),
    ("moe", [f"!{FOUR}expert-parallelism/", f"{THREE}later-models/"]),
    ("master weights", [f"{TWO}napkin-math/#a_master_copy_saves_no_memory"]),
    ("fp8", [f"!{TWO}number-formats/"]),
    ("how much memory does adam use", [f"!{TWO}optimizers/"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def searching(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.keyboard.press("/")
    page.keyboard.type("memory")
    page.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    yield page
    page.close()


def results(page: Page, query: str) -> list[Any]:
    """What the window says, and of each of the first three results the addresses of what it shows."""
    page.evaluate(
        """(query) => {
          const field = document.querySelector('.md-search__input'), meta = document.querySelector('.md-search-result__meta');
          meta.textContent = 'waiting';
          field.value = query;
          field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
        }""",
        query,
    )
    until(page, "document.querySelector('.md-search-result__meta').textContent !== 'waiting'")
    page.wait_for_timeout(50)  # the list is drawn after the line above it
    said: list[Any] = page.evaluate(
        """() => [document.querySelector('.md-search-result__meta').innerText,
          [...document.querySelectorAll('.md-search-result__item')].slice(0, 3).map((item) =>
            [...item.querySelectorAll('.md-search-result__link')].map((it) => {
              const url = new URL(it.href);
              return url.pathname.slice(1) + url.hash;
            }))]"""
    )
    return said


@pytest.mark.parametrize(("query", "pages"), ASKED, ids=[query for query, _ in ASKED])
def test_a_question_leads_to_its_section_or_the_calculator(
    searching: Page, query: str, pages: list[str]
) -> None:
    _, items = results(searching, query)
    items = items[IN_GLOSSARY in str(items[:1]) :]
    for wanted in pages:
        place = wanted.removeprefix("!")
        among = items[:1] if wanted.startswith("!") else items
        assert any(
            it == place or ("#" not in place and it.startswith(place)) for item in among for it in item
        ), (
            wanted,
            items,
        )


@pytest.mark.parametrize(
    ("query", "term"),
    [
        ("mfu", "model-flops-utilization"),
        ("what is the KV cache", "kv-cache"),
        ("strides", "stride"),
        ("gradient accumulation", "gradient-accumulation"),
        ("TPOT", "time-per-output-token"),
    ],
)
def test_a_query_that_names_a_word_of_the_glossary_is_answered_with_its_line(
    searching: Page, query: str, term: str
) -> None:
    _, items = results(searching, query)
    assert items[0] == [f"glossary/#{term}"]


@pytest.mark.parametrize("query", ["显存", "память", "qqqq zzzz", "🦜"])
def test_what_nothing_says_is_answered_so_in_any_script(searching: Page, query: str) -> None:
    assert results(searching, query) == ["No matching documents", []]


def test_small_words_alone_are_looked_for(searching: Page) -> None:
    assert results(searching, "the")[1] != []
