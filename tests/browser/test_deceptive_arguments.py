"""What people see of arguments that are made to deceive: no two that differ look alike, and each finding is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect

from interlock.core.canonical import canonical
from tests.browser.deceptive_arguments import NAMES, PAIRS, values
from tests.browser.site import READY, Site, Visit, run_site

AT_ONCE = 40  # arguments of one call
ARGUMENTS = "[role=group][aria-label=Arguments]"
# Of each argument its name, and what stands beside it and its members: kind, text, names of members.
READ = """(section) => {
  const found = [];
  for (const row of section.querySelectorAll("li:has(> div [data-name])")) {
    const pair = row.querySelector("div");
    const name = pair.querySelector("[data-name]");
    const depth = Number(row.style.getPropertyValue("--depth"));
    if (depth === 0) found.push({name: name.innerText, text: pair.innerText.slice(name.innerText.length)});
    else found.at(-1).text += "\\n" + "  ".repeat(depth) + pair.innerText;
  }
  return found;
}"""
TAGS = "(section) => [...new Set([...section.querySelectorAll('*')].map((each) => each.tagName))]"
OURS = {
    "BUTTON",
    "CODE",
    "DIV",
    "H3",
    "INPUT",
    "LABEL",
    "LI",
    "MARK",
    "P",
    "SPAN",
    "TABLE",
    "TBODY",
    "TD",
    "TH",
    "THEAD",
    "TR",
    "UL",
}
INTERACTIVE = "a, img, svg, iframe, form, b, strong, em, i, u, style, script, details, input:not([type=checkbox])"
ALONE = """(value) => {
  for (let each = value; each; each = each.parentElement) {
    each.style.contentVisibility = "visible";
    each.style.containerType = "normal";
  }
  const place = {position: "fixed", inset: "300px auto auto 300px", width: "600px", zIndex: 999};
  Object.assign(value.style, {...place, background: "white"});
}"""
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    with run_site(f"sqlite:///{folder / 'interlock.db'}", folder) as made:
        made.put_policy({"version": 1, "defaults": {"expires_in": "1d"}})
        yield made


@pytest.fixture(scope="module")
def agent(site: Site) -> httpx2.Client:
    return site.agent()


@pytest.fixture
def page(site: Site, visit: Visit) -> Page:
    """Tall, so that nothing is left out because nobody has scrolled there."""
    page = visit(site.admin, "/inbox", viewport={"width": 1280, "height": 12_000})
    expect(page.locator(READY)).to_be_visible()
    return page


# R53
def test_no_two_values_that_differ_look_alike(site: Site, agent: httpx2.Client, page: Page) -> None:
    corpus = {canonical(value): value for value in values()}
    assert len(corpus) >= 200
    looks: dict[str, bytes] = {}
    for batch in batches(list(corpus)):
        proposed = site.propose(agent, "save", {f"a{number:02}": corpus[each] for number, each in enumerate(batch)})
        seen = shown(page, proposed)
        assert [each["name"] for each in seen] == [f"a{number:02}" for number in range(len(batch))]
        for value, each in zip(batch, seen, strict=True):
            assert looks.setdefault(each["text"], value) == value, each["text"][:300]
        assert_is_text(page)
        assert_findings_are_shown(page, site.approval(proposed))
    assert len(looks) == len(corpus)


def test_no_two_names_that_differ_look_alike(site: Site, agent: httpx2.Client, page: Page) -> None:
    proposed = site.propose(agent, "save", dict.fromkeys(NAMES, 1))
    names = [each["name"] for each in shown(page, proposed)]
    assert len(names) == len(set(names)) == len(NAMES)
    assert_is_text(page)
    assert_findings_are_shown(page, site.approval(proposed))


def test_pairs_that_nobody_tells_apart_differ_on_the_screen(site: Site, agent: httpx2.Client, page: Page) -> None:
    args = {f"{number:02}{side}": pair[side] for number, pair in enumerate(PAIRS) for side in (0, 1)}
    control = {"990": "the same", "991": "the same"}
    shown(page, site.propose(agent, "save", {**args, **control}))
    differ = [picture(page, f"{number:02}0") != picture(page, f"{number:02}1") for number in range(len(PAIRS))]
    assert [pair for pair, seen in zip(PAIRS, differ, strict=True) if not seen] == []
    assert picture(page, "990") == picture(page, "991")  # so it is not the place on the screen that differs


def test_what_else_an_agent_says_is_text_too(site: Site, agent: httpx2.Client, page: Page) -> None:
    said = "**Approved** <b onclick=x>by</b> ![x](https://evil.example/x.png) [link](javascript:alert(1)) \u202etxt"
    more = {"agent_says": said, "preview": said, "description": said}
    proposed = site.propose(agent, "save", {"a": 1}, **more)
    open_card(page, proposed)
    for title in ("Agent's explanation", "Agent's preview", "Agent's description"):
        page.get_by_text(title).click()
    article = page.locator("article")
    expect(article.get_by_text("**Approved** <b onclick=x>by</b>").first).to_be_visible()
    expect(article.get_by_text("\\u{202e}").first).to_be_visible()
    expect(article.locator("img, [onclick], a[href*=evil], a[href^=javascript]")).to_have_count(0)
    expect(article.locator("b, strong, em").filter(has_text=re.compile("Approved|by|link"))).to_have_count(0)


def test_nothing_is_pushed_off_the_screen_of_a_phone(site: Site, agent: httpx2.Client, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    args = {
        "w": "w" * 5_000,
        "x" * 300: "y" * 300,
        "nested": {"a": {"b": {"c": {"d": ["z" * 200]}}}},
        "url": "x/" * 400,
    }
    shown(page, site.propose(agent, "save", args))
    assert page.evaluate(WIDE) == 0
    assert page.locator(ARGUMENTS).evaluate("(section) => section.scrollWidth - section.clientWidth") == 0


def shown(page: Page, proposed: str) -> list[dict[str, str]]:
    """All arguments, as they can be read on the screen."""
    open_card(page, proposed)
    found: list[dict[str, str]] = page.locator(ARGUMENTS).evaluate(READ)
    return found


def open_card(page: Page, proposed: str) -> None:
    page.goto(f"/a/{proposed}")
    expect(page.locator(f"article[data-approval='{proposed}']")).to_be_visible()


def assert_is_text(page: Page) -> None:
    """Nothing in an argument became an element of the page, and nothing of it ran."""
    section = page.locator(ARGUMENTS)
    assert set(section.evaluate(TAGS)) <= OURS
    assert section.locator(INTERACTIVE).count() == 0
    assert page.evaluate("() => window.deceived") is None


def assert_findings_are_shown(page: Page, approval: dict[str, Any]) -> None:
    told = page.locator("article [data-finding]").evaluate_all(
        "(all) => Object.fromEntries(all.map((each) => [each.dataset.finding, each.innerText]))"
    )
    assert set(told) == {finding["id"] for finding in approval["findings"]}
    for finding in approval["findings"]:
        assert flatten(finding["message"]) in flatten(told[finding["id"]])
    alarms = [finding for finding in approval["findings"] if finding["level"] == "alarm"]
    expect(page.get_by_role("button", name="Approve")).to_be_enabled(enabled=not alarms)


def picture(page: Page, name: str) -> bytes:
    """Of a value alone, always at the same place, so that only the value makes a difference."""
    value = page.locator(f"{ARGUMENTS} [data-pointer='/{name}']")
    value.evaluate(ALONE)
    taken = value.screenshot(animations="disabled")
    value.evaluate("(value) => value.removeAttribute('style')")
    return taken


def batches(values: list[bytes]) -> Iterator[list[bytes]]:
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))


def flatten(text: str) -> str:
    return " ".join(text.split())
