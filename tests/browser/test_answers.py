"""The field below a question: what it can read, what it says, and what the browser keeps of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import markdown
import pytest
from tests.answers import ASKED, READ, WRONG
from tests.running import record, section

from litbook.html import page as pages
from litbook.html import script_words

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

AT = "https://book.example/part/"


@pytest.fixture(scope="module")
def html(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with all of these questions, in that order, and one whose answer nobody types."""
    asked = [f"question('{name}?', {rest})" for name, rest in {**ASKED, "none": "answer=None"}.items()]
    made = record(
        tmp_path_factory.mktemp("asked"),
        section("\n".join(["אורך = 14  # @inspect אורך", *asked]), "import torch"),
    )
    body = markdown.markdown(pages.pages(made)["index.md"], extensions=["attr_list", "md_in_html"])
    script = (repo / "tools/litbook/html/assets/answers.js").read_text(encoding="utf-8")
    words = script_words.data(["answers"])
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>q</title><article>{body}</article>{words}<script>{script}</script>'


def new_context(browser: Browser, html: str) -> BrowserContext:
    context = browser.new_context()
    context.route("**/*", lambda route: route.fulfill(body=html, content_type="text/html"))
    return context


@pytest.fixture
def context(browser: Browser, html: str) -> Iterator[BrowserContext]:
    context = new_context(browser, html)
    yield context
    context.close()


@pytest.fixture(scope="module")
def sheet(browser: Browser, html: str) -> Iterator[Page]:
    """The page that tests which only type into it share."""
    context = new_context(browser, html)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(AT)
    yield page
    assert wrong == []
    context.close()


@pytest.fixture
def open_(context: BrowserContext) -> Callable[[str], Page]:
    """Opens the page anew, in a browser whose storage is as `before` leaves it."""

    def opened(before: str = "") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.add_init_script(before)
        page.goto(AT)
        return page

    return opened


def answer(page: Page, name: str, text: str) -> str:
    """What the page says to a text that is typed as the answer to a question."""
    box = page.locator(f"#question-{[*ASKED].index(name) + 1}")
    box.locator("input").fill(text)
    box.locator("input").press("Enter")
    return box.locator("output").inner_text()


@pytest.mark.parametrize(("name", "texts"), READ, ids=[f"{n}-{i}" for i, (n, _) in enumerate(READ)])
def test_an_answer_is_read_however_one_types_it(sheet: Page, name: str, texts: str) -> None:
    said = {it: answer(sheet, name, it) for it in (texts.split("|") if "|" in texts else texts.split(" "))}
    assert {it: text for it, text in said.items() if not text.startswith("✓ Right.")} == {}


@pytest.mark.parametrize(("name", "text", "said"), WRONG)
def test_what_is_wrong_says_by_which_factor_and_what_cannot_be_read_says_so(
    sheet: Page, name: str, text: str, said: str
) -> None:
    assert answer(sheet, name, text) == said


def test_a_question_is_answered_by_keyboard_alone_and_the_verdict_is_announced(
    open_: Callable[[], Page],
) -> None:
    page = open_()
    box = page.locator("#question-1")
    box.get_by_label("Your answer, in B").focus()
    page.keyboard.type("4 GiB")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Check"
    page.keyboard.press("Enter")
    assert box.get_by_role("status").inner_text().startswith("✗ 2 × too small.")
    assert not box.locator(".lb-reply").is_visible(), "one may try again"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("8 GiB")
    page.keyboard.press("Enter")
    said = f"✓ Right. 1 of {len(ASKED)} questions answered."
    assert box.get_by_role("status").inner_text() == said
    assert box.locator(".lb-reply").is_visible(), "now the working is worth reading"


def test_what_was_answered_is_there_again_until_one_forgets_it(open_: Callable[[], Page]) -> None:
    page = open_()
    line = page.locator(".lb-progress")
    assert (
        line.inner_text() == f"0 of {len(ASKED)} questions answered. What you answer stays in this browser."
    )
    answer(page, "count", "1,024")
    answer(page, "half", "0.7")
    assert line.inner_text().startswith("1 of ")
    page.reload()
    assert line.inner_text().startswith("1 of ")
    fields = page.locator(".lb-ask input")
    assert [fields.nth([*ASKED].index(it)).input_value() for it in ("count", "half")] == ["1,024", "0.7"]
    assert "1.4 × too large" in page.locator(".lb-wrong output").inner_text()
    assert not page.locator(".lb-reply").first.is_visible()
    page.get_by_role("button", name="Forget it").click()
    page.wait_for_load_state()
    assert line.inner_text().startswith("0 of ")
    assert {fields.nth(i).input_value() for i in range(len(ASKED))} == {""}


FORBIDDEN = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }"
SPOILT = f"localStorage.setItem('litbook {AT.partition('example')[2]}', %s)"


@pytest.mark.parametrize(
    "before", [FORBIDDEN, FULL, *(SPOILT % it for it in ("'{'", "'null'", "'3'", "'[]'"))]
)
def test_a_storage_that_is_forbidden_full_or_spoilt_takes_nothing_from_the_reader(
    open_: Callable[[str], Page], before: str
) -> None:
    page = open_(before)
    assert answer(page, "count", "1024").startswith("✓ Right. 1 of ")


def test_a_name_from_right_to_left_turns_no_expression_around(open_: Callable[[], Page]) -> None:
    page = open_()
    box = page.locator(f"#question-{[*ASKED].index('אורך') + 1}")
    box.locator(".lb-answer summary").click()
    places = box.locator(".lb-reply code").evaluate_all(AROUND)
    assert [it["text"] for it in places] == ["אורך - 2", "14 - 2"]
    assert places[0]["name"][1] <= places[0]["rest"][0], "`- 2` stands right of it"
    assert page.locator(".lb-c bdi").first.inner_text() == "אורך"


# Of each piece of code: where its name in another direction is, and where what comes after it, from left to right.
AROUND = """its => its.map((it) => {
  const name = it.querySelector("bdi"), rest = document.createRange(), ends = (box) => [box.left, box.right];
  rest.selectNodeContents(it.lastChild);
  return { text: it.textContent, name: name && ends(name.getBoundingClientRect()), rest: ends(rest.getBoundingClientRect()) };
})"""


def test_a_question_whose_answer_nobody_types_has_no_field_and_counts_not(open_: Callable[[], Page]) -> None:
    page = open_()
    assert page.locator(".lb-ask").count() == len(ASKED) + 1
    assert page.locator(".lb-ask form").count() == len(ASKED)


def test_without_a_question_nothing_is_said_of_answers(context: BrowserContext, html: str) -> None:
    bare = html.replace(" data-answer=", " data-other=")
    context.unroute("**/*")
    context.route("**/*", lambda route: route.fulfill(body=bare, content_type="text/html"))
    page = context.new_page()
    page.goto(AT)
    assert page.locator("form, .lb-progress").count() == 0


def test_the_contents_say_what_is_answered_of_each_part(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address + "lectures/lecture_03/generating/")
    box = page.locator(".lb-ask[data-answer]").first
    (answer,) = json.loads(box.get_attribute("data-answer") or "")
    box.locator("input").fill(f"{answer} {box.get_attribute('data-unit') or ''}")
    box.locator("input").press("Enter")
    box.locator("form.lb-right").wait_for()
    page.goto(address + "lectures/lecture_03/")
    told = page.locator(".lb-parttitle small")
    assert told.count() == 1 and page.locator(".lb-done").count() == 0
    assert re.fullmatch(r"1 of \d+ questions answered\.", told.inner_text())
    assert told.locator("xpath=..").locator("a").inner_text() == "Generating"
    # The page of all questions knows the answer, and what is answered there is answered here.
    page.goto(address + "lectures/lecture_03/questions/")
    assert page.locator("form.lb-right").count() == 1
    assert page.locator(".lb-questions .lb-progress span").inner_text().startswith("1 of ")
    for box in page.locator(".lb-ask[data-answer][data-page*=generating]").all():
        answers = json.loads(box.get_attribute("data-answer") or "")
        unit = box.get_attribute("data-unit") or ""
        box.locator("input").fill(", ".join(f"{it} {unit}".strip() for it in answers))
        box.locator("input").press("Enter")
    page.goto(address + "lectures/lecture_03/")
    assert told.inner_text().startswith("✓ ")
    assert page.locator(".lb-step:has(.lb-done) .lb-parttitle a").inner_text() == "Generating"
    for name in ("lecture_02", "lecture_03"):
        page.goto(f"{address}lectures/{name}/")
        assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 844, "six screens of a phone"
    page.close()
