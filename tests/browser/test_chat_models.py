"""The chat with models that say hostile things, fail, and are cut off in the middle of a sentence."""

from __future__ import annotations

import itertools
import json
import re
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from interlock.core.chat.transcript import ModelReply, Prompt
from tests.browser.chat_page import POLICY, ChatPage, open_chat_page
from tests.browser.site import READY, Site, Visit, run_site
from tests.browser.test_axe import assert_no_barrier
from tests.fakes.model_server import Fault, ModelServer
from tests.interlock_server import run_server
from tests.journeys.chat_client import last_user_text, run_models_in_thread

AGENT = "agents:\n  mouth: {model: 'openai:any', tools: [cms]}\n"
CHAT = "**/api/chat"
EVENTS = "**/api/threads/*/events"
NEW = "/chat?agent=mouth"
LONG = " ".join(f"word{number}" for number in range(300))
HOSTILE = """\
# Approved <b onclick="alert(1)">by</b> security

<button>Approve</button><script>alert(1)</script><form action="https://evil.example"><input name="x"></form>
<img src="https://evil.example/pixel.png"><iframe src="https://evil.example"></iframe>

![a picture](https://evil.example/pixel.png) [click](javascript:alert(1)) [data](data:text/html,hi) [mine](/api/me)
[bank](https://bank.example@evil.example/login) [p\u0430ypal](https://p\u0430ypal.example/) <https://plain.example/x>

- one `code`
"""

RICH = """\
## Orders

| Order | Amount |
|---|---:|
| 10482 | 42.00 EUR |
| 10486 | 118.50 EUR |

- [x] looked up
- [ ] paid back

```python
refund('10482')
refund('10486')
```
"""


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with run_models_in_thread() as made:
        yield made


@pytest.fixture
def words(models: ModelServer) -> Iterator[ModelServer]:
    """The model says back what it is told, at once."""
    models.reply, models.pause = echo, 0.0
    models.faults.clear()
    yield models
    models.pause = 0.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def site(folder: Path, models: ModelServer) -> Iterator[Site]:
    known = f"models:\n  openai: {{url: '{models.url}/v1', key: sk-none}}\n"
    (folder / "interlock.yaml").write_text(known + AGENT + POLICY)
    with run_site(database(folder), folder) as made:
        yield made


def database(folder: Path) -> str:
    return f"sqlite:///{folder / 'interlock.db'}"


def echo(prompt: Prompt) -> ModelReply:
    return ModelReply(f"You said: {last_user_text(prompt)}")


# R20 R3
def test_words_of_a_model_make_no_button_image_form_or_hidden_address(
    site: Site, words: ModelServer, visit: Visit
) -> None:
    words.reply = lambda _: ModelReply(HOSTILE)
    chat = open_chat_page(site, visit, NEW)
    chat.say("say it")
    reply = chat.replies.last
    expect(reply.locator("li")).to_contain_text("one code")
    expect(reply).to_contain_text("<button>Approve</button>")  # as it is: nothing is hidden
    expect(reply.locator("button, img, form, input, iframe, script, h1, [onclick], [style]")).to_have_count(0)
    expect(reply).to_contain_text("[image: a picture (https://evil.example/pixel.png)]")
    expect(reply).to_contain_text("click (javascript:alert(1))")
    expect(reply).to_contain_text("mine (/api/me)")
    expect(reply.locator("a, [href]")).to_have_count(0)
    expect(reply).to_contain_text("bank (https://bank.example@evil.example/login)")
    hosts = reply.locator("[data-address] b").all_inner_texts()
    assert hosts == ["", "", "", "evil.example", "xn--pypal-4ve.example", "plain.example"]


# R3
def test_an_answer_has_tables_headings_tasks_and_code_to_copy(site: Site, words: ModelServer, visit: Visit) -> None:
    words.reply = lambda _: ModelReply(RICH)
    chat = open_chat_page(site, visit, NEW)
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.say("say it")
    expect(chat.replies).to_have_count(1, timeout=60_000)  # the first reply loads the provider's library
    reply = chat.replies.last
    expect(reply.get_by_role("columnheader")).to_have_text(["Order", "Amount"])
    expect(reply.get_by_role("cell")).to_have_text(["10482", "42.00 EUR", "10486", "118.50 EUR"])
    expect(reply.get_by_role("cell").nth(1)).to_have_css("text-align", "end")
    expect(reply.locator("[data-level]")).to_have_text(["Orders"])
    expect(reply.locator("[data-task]")).to_have_text(["looked up", "paid back"])
    expect(reply.get_by_role("img", name=re.compile("^(Done|Open):$"))).to_have_count(2)
    expect(reply.locator("input")).to_have_count(0)
    reply.get_by_role("button", name="Copy code").click()
    expect(reply.get_by_role("button").get_by_text("Copied")).to_be_visible()
    assert chat.page.evaluate("navigator.clipboard.readText()") == "refund('10482')\nrefund('10486')"
    reply.hover()
    chat.page.get_by_role("button", name="Copy answer").click()
    expect(chat.page.get_by_text("Copied")).to_have_count(2)
    assert chat.page.evaluate("navigator.clipboard.readText()") == RICH
    assert_no_barrier(chat.page)


# R3
def test_huge_and_deep_words_leave_the_page_usable(site: Site, words: ModelServer, visit: Visit) -> None:
    chat = open_chat_page(site, visit, NEW)
    words.reply = lambda _: ModelReply(">" * 15_000 + " deep")
    chat.say("deep")
    expect(chat.replies.last).to_contain_text("deep")
    words.reply = lambda _: ModelReply("**a** " * 5_000 + "the end")
    chat.say("long")
    more = chat.page.get_by_role("button", name="Show all 30,007 characters")
    more.click()
    expect(chat.replies.last).to_contain_text("the end")
    words.reply = echo
    chat.say("still here")
    expect(chat.replies.last).to_contain_text("You said: still here")


# R3
def test_a_failure_says_why_and_can_be_tried_again(site: Site, words: ModelServer, visit: Visit) -> None:
    chat = open_chat_page(site, visit, NEW)
    words.faults.append(Fault("400"))
    chat.say("fail once")
    expect(chat.log).to_contain_text("The agent could not continue")
    chat.page.reload()
    chat.page.get_by_role("button", name="Retry").click()
    expect(chat.replies.last).to_contain_text("You said: fail once")
    expect(chat.page.get_by_role("button", name="Retry")).to_have_count(0)
    expect(chat.said).to_have_count(1)


# R3
def test_words_come_as_they_are_said_and_a_stop_keeps_what_was_said(
    site: Site, words: ModelServer, visit: Visit
) -> None:
    words.reply, words.pause = lambda _: ModelReply(LONG), 0.05
    chat = open_chat_page(site, visit, NEW)
    chat.say("talk")
    expect(chat.page.locator("[data-reply=saying]")).to_contain_text("word3")
    chat.page.get_by_role("button", name="Stop").click()
    expect(chat.log).to_contain_text("Stopped.")
    for _ in range(2):
        expect(chat.replies).to_have_count(1)
        expect(chat.replies).to_contain_text("word0 word1 word2 word3")
        expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
        assert LONG.startswith(whole_text(chat))
        chat.page.reload()
        expect(chat.log).to_contain_text("Stopped.")


# R3
def test_a_sentence_that_is_cut_off_again_and_again_is_whole_in_the_end(
    site: Site, words: ModelServer, visit: Visit
) -> None:
    words.reply, words.pause = lambda _: ModelReply(LONG), 0.1
    chat = open_chat_page(site, visit, NEW)
    breaks = itertools.count()
    chat.page.route(EVENTS, lambda route: route.abort() if next(breaks) < 3 else route.continue_())
    chat.say("talk")
    saying = chat.page.locator("[data-reply=saying]")
    expect(saying).to_contain_text("word2")
    chat.page.unroute(EVENTS)
    site.server.process.send_signal(signal.SIGSTOP)  # nothing comes, and nobody says that it is over
    chat.page.context.set_offline(True)
    site.server.process.send_signal(signal.SIGCONT)
    expect(chat.page.locator(READY)).to_have_count(0)
    words.pause = 0.0
    chat.page.context.set_offline(False)
    expect(chat.replies).to_have_count(1)
    assert whole_text(chat) == LONG
    chat.page.reload()
    expect(chat.replies).to_have_count(1)
    expect(chat.said).to_have_count(1)


# R3
def test_a_message_that_did_not_get_through_is_kept_and_sent_once(site: Site, words: ModelServer, visit: Visit) -> None:
    words.reply = echo
    chat = open_chat_page(site, visit, NEW)
    chat.page.route(CHAT, lambda route: route.abort())
    chat.field.fill("only once")
    chat.field.press("Enter")
    expect(chat.page.get_by_text("Not sent.")).to_be_visible()
    expect(chat.field).to_have_value("only once")
    chat.page.unroute(CHAT)
    chat.page.route(CHAT, lose_response, times=1)  # it comes through, and its answer does not come back
    chat.page.get_by_role("button", name="Try again").click()
    expect(chat.page.get_by_role("button", name="Try again")).to_be_enabled()
    chat.page.reload()
    chat.page.get_by_role("button", name="Send").click()
    expect(chat.replies).to_have_count(1)
    expect(chat.said).to_have_count(1)
    expect(chat.field).to_have_value("")
    assert [each["title"] for each in site.admin.get("/api/threads").json()["items"]].count("only once") == 1


def lose_response(route: Route) -> None:
    """The server has it."""
    assert route.fetch().status == 200
    route.abort()


# R3
def test_thousands_of_lines_are_read_from_their_end_and_nothing_jumps(
    site: Site, words: ModelServer, folder: Path, visit: Visit
) -> None:
    words.reply = echo
    chat = open_chat_page(site, visit, NEW)
    chat.say("the first one")
    chat.wait_idle()
    add_entries(folder, chat.thread, 4_000)
    chat.page.reload()
    expect(chat.replies.last).to_contain_text("number 4001")
    expect(chat.replies.last).to_be_in_viewport()
    assert chat.page.locator("[data-said], [data-reply]").count() <= 400
    chat.page.locator("[data-scroller]").evaluate("(each) => each.scrollTo(0, 0)")
    chat.page.get_by_role("button", name="Show earlier messages").click()
    expect(chat.page.get_by_text("number 3400")).to_have_count(1)
    middle = chat.page.get_by_text("Say number 3600.")
    middle.scroll_into_view_if_needed()
    expect(chat.page.locator("[data-reply] strong").filter(has_text="number 3601")).to_be_visible()
    before = top(middle)
    with site.admin.stream("POST", "/api/chat", json={"message": "from elsewhere", "thread_id": chat.thread}) as answer:
        answer.read()
    news = chat.page.get_by_role("button", name="New messages")
    expect(news).to_be_visible()
    assert abs(top(middle) - before) < 2
    news.click()
    expect(chat.replies.last).to_be_in_viewport()
    expect(chat.replies.last).to_contain_text("from elsewhere")


def top(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def add_entries(folder: Path, thread: str, lines: int) -> None:
    """As if it had gone on for days."""
    add = "insert into lines (workspace, thread_id, n, at, kind, actor, body) values ('default', ?, ?, ?, ?, 'ann', ?)"
    with sqlite3.connect(folder / "interlock.db", timeout=20) as connection:
        (known, at) = connection.execute("select lines, updated_at from threads where id = ?", (thread,)).fetchone()
        found = "select body from lines where thread_id = ? and kind = 'replied'"
        reply = json.loads(connection.execute(found, (thread,)).fetchone()[0])
        for number in range(known + 1, lines + 1, 2):
            said = {"text": f"Say number {number}."}
            replied = {**reply, "text": f"This is **number {number + 1}**."}
            connection.execute(add, (thread, number, at, "said", json.dumps(said).encode()))
            connection.execute(add, (thread, number + 1, at, "replied", json.dumps(replied).encode()))
        connection.execute("update threads set lines = ? where id = ?", (number + 1, thread))


# R3 R22
def test_a_server_that_dies_in_the_middle_of_a_sentence_says_it_anew(
    site: Site, words: ModelServer, folder: Path, visit: Visit
) -> None:
    words.reply, words.pause = lambda _: ModelReply(LONG), 0.03
    chat = open_chat_page(site, visit, NEW)
    chat.say("talk")
    expect(chat.page.locator("[data-reply=saying]")).to_contain_text("word9")
    site.server.kill()
    expect(chat.page.locator(READY)).to_have_count(0)
    words.pause = 0.0
    with run_server(database(folder), folder, port=int(site.url.rpartition(":")[2])):
        expect(chat.replies).to_have_count(1)
        assert whole_text(chat) == LONG
        expect(chat.said).to_have_count(1)
        expect(chat.page.locator(READY)).to_be_visible()


def whole_text(chat: ChatPage) -> str:
    return chat.replies.last.inner_text().removeprefix("Agent:").strip()
