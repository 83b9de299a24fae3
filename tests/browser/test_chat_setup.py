"""A chat without a model says so, and what to do, before anything is typed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import open_chat_page
from tests.browser.site import Site, Visit
from tests.browser.test_axe import assert_no_barrier


# R3
def test_without_a_model_the_chat_says_which_line_sets_one(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notice = chat.page.get_by_role("alert")
    expect(notice).to_contain_text("No model is set, so assistant cannot answer")
    expect(notice).to_contain_text("export OPENAI_API_KEY=")
    notice.get_by_role("button", name="Copy this line").click()
    expect(notice).to_contain_text("Copied")
    assert chat.page.evaluate("navigator.clipboard.readText()") == "export OPENAI_API_KEY=your-key"
    assert_no_barrier(chat.page)


@pytest.fixture
def config(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", ""))


# R3
@pytest.mark.parametrize(
    "config", ["agents: {assistant: {model: 'openai:any'}}\nmodels: {openai: {key: ''}}\n"], indirect=True
)
def test_a_model_that_cannot_be_used_is_named_with_the_reason(site: Site, visit: Visit) -> None:
    chat = open_chat_page(site, visit)
    notice = chat.page.get_by_role("alert")
    expect(notice).to_contain_text("assistant cannot answer yet")
    expect(notice).to_contain_text("openai")
