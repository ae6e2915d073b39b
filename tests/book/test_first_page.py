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
    for said in ("It does not fit: 222.9 of 72 GB", "206 days", "217.6 GB"):
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


@pytest.mark.parametrize(
    "name",
    ["lectures", "lectures/lecture_02", "lectures/lecture_03", "lectures/lecture_04", "lectures/lecture_05"],
)
def test_every_tally_of_a_list_counts_claims_that_hold_and_says_of_how_many(site: Path, name: str) -> None:
    """`✓ 44` beside `○ 3` reads as three claims; so it is `○ 44 of 47`, and the numbers add up."""
    data = json.loads((site / "lectures" / "claims.json").read_text(encoding="utf-8"))
    page = article(site / name / "index.html")
    holding = total = 0
    for verdict, shown in TALLY.findall(page):
        form = re.fullmatch(r"✓ ([\d,]+)()" if verdict == "holds" else r"○ ([\d,]+) of ([\d,]+)", shown)
        assert form, f"{verdict}: {shown}"
        hold, of = (int(it.replace(",", "") or "-1") for it in form.groups())
        assert of < 0 or hold < of, shown
        holding, total = holding + hold, total + max(hold, of)
    claims = [it for it in data["claims"] if name in ("lectures", f"lectures/{it['lecture']}")]
    held, every = counts(claims)
    all_hold = f"✓ {every:,} claims, all hold"
    assert (all_hold if held == every else f"{every:,} claims: ✓ {held:,} hold") in words(page)
    listed = [it for it in claims if name == "lectures" or f"#{it['section']}" in page]
    assert (holding, total) == counts(listed)
    assert len(listed) > 0.98 * len(claims), "a part may have a claim beside its sections"
