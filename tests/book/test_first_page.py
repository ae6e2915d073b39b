"""What the first pages promise, held against the built site: the way in, the parts, and tallies that add up."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

LINK = re.compile(r'<a [^<>]*href="([^"]*)"[^<>]*>(.*?)</a>')
TALLY = re.compile(r'<span class="lb-tally lb-([\w-]+)" title="[^"]*">(.*?)</span>')


def article(page: Path) -> str:
    """What stands between the header and the foot of a page."""
    return page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", "", text)).split())


@pytest.fixture(scope="module")
def front(site: Path) -> str:
    return article(site / "index.html")


def test_the_one_button_leads_to_the_first_part_and_says_how_long_it_takes(site: Path, front: str) -> None:
    ((address, said),) = re.findall(r'<a class="lb-first" href="([^"]*)">(.*?)</a>', front)
    asked = re.fullmatch(r"Start: 70 billion parameters on a napkin \((\d+) min\)", said)
    part = words(article(site / address / "index.html"))
    assert asked and f"About {asked[1]} minutes to read" in part, (
        "the minutes are those of the part's own page"
    )
    assert "70 billion parameters" in part and "days" in part and "memory" in part


def test_beside_it_one_tries_whether_a_model_fits(site: Path, front: str) -> None:
    front = front.partition("<h2")[0]
    assert front.count('type="range"') == 2 and front.count("<select") == 2 and "lb-storage" not in front
    (script,) = re.findall(r'<figure class="lb-explore lb-live" [^<>]*data-script="([^"]+)"', front)
    assert "does not fit" in (site / script).read_text(encoding="utf-8")
    assert 'src="assets/litbook/live.js"' in front and (site / "assets/litbook/live.js").is_file()
    still = front.partition(script)[2].partition("</figure>")[0]
    for said in ("It fits: 18.76 of 72 GB usable", "258 days", "13.46 GB"):
        assert said in still, "complete without a script"


def test_who_it_is_for_how_long_it_takes_and_what_one_needs_is_said(front: str) -> None:
    said = words(front)
    assert "For people who train or serve models" in said and "You need Python" in said
    assert len(re.findall(r"about [\d.]+ hours? to read", said)) == 4, "of each lecture"
    assert "number 02 because it follows" in said


def test_every_part_of_every_lecture_is_one_click_away_and_in_order(site: Path, front: str) -> None:
    strip = front.partition('class="lb-all"')[2].partition("</div>")[0]
    for folder in ("lecture_02", "lecture_03", "lecture_04", "lecture_05"):
        listed = [it for it, _ in LINK.findall(strip) if f"/{folder}/" in it]
        told = [it for it, _ in LINK.findall(article(site / "lectures" / folder / "index.html"))]
        parts = dict.fromkeys(f"lectures/{folder}/{it}" for it in told if re.fullmatch(r"[\w-]+/", it))
        assert [unquote(it).removesuffix("#") for it in listed[1:]] == [it for it in parts if it in listed]
        assert len(listed) > 3 and all((site / it / "index.html").is_file() for it in listed)


def test_the_first_page_shows_a_line_with_its_value_and_a_claim_with_its_sides(front: str) -> None:
    code = front.partition('<section class="lb-code"')[2].partition("</section>")[0]
    assert 'class="lb-val"' in code and re.search(r'class="lb-sides">[^<]+ = [^<]+<', code)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|iframe|source|link rel="(?:stylesheet|preload|icon)")[^<>]* (?:src|href)="(?!data:)([^"]*)"')  # fmt: skip
    found = {it for page in site.rglob("*.html") for it in loads.findall(page.read_text(encoding="utf-8"))}
    assert len(found) > 10
    assert {it for it in found if "//" in it} == set()


# ---------------------------------------------------------------------------- tallies


def counts(claims: list[dict[str, Any]]) -> tuple[int, int]:
    """How many of these claims hold, here or as recorded, and how many there are."""
    held = [any(v["verdict"] == "holds" and v["current"] for v in it["verdicts"]) for it in claims]
    return sum(held), len(held)


@pytest.fixture(scope="module")
def every(site: Path) -> list[dict[str, Any]]:
    """All claims, as the ledger has them as data."""
    return json.loads((site / "lectures" / "claims.json").read_text(encoding="utf-8"))["claims"]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def says(claims: list[dict[str, Any]]) -> str:
    """How a count of these claims begins."""
    held, of = counts(claims)
    return f"✓ {of:,} claims, all hold" if held == of else f"{of:,} claims: ✓ {held:,} hold"


def test_every_tally_of_the_lectures_counts_claims_that_hold_and_says_of_how_many(
    site: Path, every: list[dict[str, Any]]
) -> None:
    """`✓ 44` beside `○ 3` reads as three claims; so it is `○ 44 of 47`, and the numbers add up."""
    page = article(site / "lectures" / "index.html")
    holding = total = 0
    for verdict, shown in TALLY.findall(page):
        form = re.fullmatch(r"✓ ([\d,]+)()" if verdict == "holds" else r"○ ([\d,]+) of ([\d,]+)", shown)
        assert form, f"{verdict}: {shown}"
        hold, of = number(form[1]), number(form[2] or "-1")
        assert of < 0 or hold < of, shown
        holding, total = holding + hold, total + max(hold, of)
    assert says(every) in words(page)
    assert (holding, total) == counts(every)


LECTURES = ["lecture_02", "lecture_03", "lecture_04", "lecture_05"]


@pytest.mark.parametrize("name", LECTURES)
def test_the_contents_of_a_lecture_count_no_claims_but_at_their_foot(
    site: Path, every: list[dict[str, Any]], name: str
) -> None:
    contents, _, foot = article(site / "lectures" / name / "index.html").partition('<p class="lb-foot">')
    assert 'class="lb-part"' in contents and TALLY.findall(contents) == []
    assert re.findall(r"[\d,]+ claims?\b|[✓○✗]", words(contents)) == [], "those are in the ledger"
    assert words(foot).startswith(says([it for it in every if it["lecture"] == name]))


@pytest.mark.parametrize("name", LECTURES)
def test_the_ledger_counts_the_claims_of_each_page_and_the_numbers_add_up(
    site: Path, every: list[dict[str, Any]], name: str
) -> None:
    part = article(site / "lectures" / "ledger" / "index.html").partition(f'<h2 id="{name}"')[2]
    listed = re.findall(r'<li><a href="([^"]*)">.*?</a> <small>(.*?)</small></li>', part.partition("<h2")[0])
    holding = total = 0
    for address, shown in listed:
        there = words(article(site / "lectures" / "ledger" / address / "index.html"))
        assert words(shown) in there, "the page of the ledger says the same"
        form = re.match(r"✓ ([\d,]+) claims?, (?:all hold|it holds)()$|([\d,]+) claims?: (.*)$", words(shown))
        assert form, shown
        held = [number(it) for it in re.findall(r"✓ ([\d,]+) hold", form[4] or "")] or [
            number(form[1] or "0")
        ]
        holding, total = holding + sum(held), total + number(form[1] or form[3])
    assert (holding, total) == counts([it for it in every if it["lecture"] == name])
