"""What people saw of an item is what an approved call changes, on both databases: otherwise it does nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from itertools import count

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.gate import Execution
from interlock.chat.item_tools import ChangeAuthor, HistoryTransaction
from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools import cms, okr
from interlock.config.models import AgentSettings
from interlock.core.canonical import canonical
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply
from interlock.core.decision import Acknowledgement, Edit
from interlock.core.errors import Error as InterlockError
from interlock.core.errors import ToolFailed
from interlock.core.outcome import Proceed
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.demo.content import fill_content
from interlock.storage.engine.writer import BatchItem
from tests.chat_harness import FAY, ChatHarness, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import BOB, Clock, approve, call, open_services, propose_pending

KINDS = cms.KINDS | okr.KINDS
Item = tuple[str, str]
POST, PAGE, IMAGE = (cms.POST, "hello-world"), (cms.PAGE, "about"), (cms.IMAGE, "img-5")
OBJECTIVE, KEY_RESULT = (okr.OBJECTIVE, "O-1"), (okr.KEY_RESULT, "KR-3")
PAGES = {"slugs": ["about", "pricing"]}
SECTION = {"page": "about", "section": "team"}
NEW_SECTION = {"page": "about", "section": "jobs", "heading": "Jobs", "body": "None."}
# A call, and the items that its preview shows.
CALLS: list[tuple[str, Mapping[str, object], Sequence[Item]]] = [
    ("cms_update_post", {"slug": "hello-world", "title": "Hi"}, [POST]),
    ("cms_publish_post", {"slug": "hello-world"}, [POST]),
    ("cms_archive_post", {"slug": "hello-world"}, [POST]),
    ("cms_delete_post", {"slug": "hello-world"}, [POST]),
    ("cms_update_page", {"slug": "about", "title": "We"}, [PAGE]),
    ("cms_publish_page", {"slug": "about"}, [PAGE]),
    ("cms_archive_page", {"slug": "about"}, [PAGE]),
    ("cms_create_section", NEW_SECTION, [PAGE]),
    ("cms_update_section", {**SECTION, "body": "We are nine."}, [PAGE]),
    ("cms_move_section", {**SECTION, "position": 1}, [PAGE]),
    ("cms_delete_section", SECTION, [PAGE]),
    ("cms_delete_sections", {"page": "about", "sections": ["team", "story"]}, [PAGE]),
    ("cms_delete_page", {"slug": "about"}, [PAGE]),
    ("cms_delete_pages", PAGES, [PAGE, (cms.PAGE, "pricing")]),
    ("cms_update_image", {"id": "img-5", "alt": "The team"}, [IMAGE]),
    ("cms_delete_image", {"id": "img-5"}, [IMAGE]),
    ("okr_update_objective", {"id": "O-1", "status": "on_track"}, [OBJECTIVE]),
    ("okr_delete_objective", {"id": "O-1"}, [OBJECTIVE, (okr.KEY_RESULT, "KR-1"), (okr.KEY_RESULT, "KR-2")]),
    ("okr_update_key_result", {"id": "KR-3", "current": 60}, [KEY_RESULT]),
    ("okr_delete_key_result", {"id": "KR-3"}, [KEY_RESULT]),
]
AGAIN = "Nothing was done. Read it again and propose the change again."
LEASE = 60_000
CREATIONS = {"cms_create_post", "cms_create_page", "cms_create_image", "okr_create_objective", "okr_create_key_result"}


class ItemTools:
    """Calls of the packs `cms` and `okr`, asked about and approved, and what a person changes beside them."""

    def __init__(self, services: AppServices) -> None:
        self.services = services
        self.store = services.store.tool_items("default")
        context = ToolContext("default", self.store)
        self.tools = {tool.name: tool for tool in (*cms.write_tools(context), *okr.write_tools(context))}
        self._numbers = count()

    async def propose(self, tool: str, **args: object) -> str:
        return await propose_pending(self.services, next(self._numbers), self.tools[tool].spec, args=args)

    async def ask(self, tool: str, **args: object) -> str:
        """Propose a call and approve it."""
        approval_id = await self.propose(tool, **args)
        assert await approve(self.services, approval_id) == "approved"
        return approval_id

    async def edit_call(self, approval_id: str, **args: object) -> None:
        seen = Acknowledgement((await self.services.store.get("default", approval_id)).approval.args_sha256)
        edited = await self.services.inbox.decide("default", approval_id, Edit(args, seen), BOB)
        assert edited.status == "approved"

    async def run(self, approval_id: str) -> object:
        return await self.run_started(await self.start(approval_id))

    async def start(self, approval_id: str) -> Execution:
        return await self.services.gate.start("default", approval_id, "runner", LEASE)

    async def run_started(self, started: Execution) -> object:
        stored = await self.services.store.get("default", started.approval_id)
        use = ToolInvocation(json.loads(started.args), started.idempotency_key, started.preview_version)
        return await self.tools[stored.approval.subject.tool].run(use)

    async def edit_item(self, kind: str, item_id: str, **fields: object) -> None:
        """Change an item as a person does in the web app."""

        def step(transaction: ToolItemTransaction) -> None:
            old = transaction.get(kind, item_id)
            assert old is not None
            HistoryTransaction(transaction, KINDS, ChangeAuthor("bob")).put(kind, item_id, {**old.body, **fields})

        await self.store.change_by("bob", {}, KINDS, step)

    async def delete_item(self, kind: str, item_id: str) -> None:
        await self.store.change_by("bob", {}, KINDS, lambda transaction: transaction.delete(kind, item_id))

    async def body(self, kind: str, item_id: str) -> Mapping[str, object]:
        found = await self.store.get(kind, item_id)
        return found.body if found else {}

    async def everything(self) -> list[Sequence[ToolItem]]:
        return [await self.store.list(kind) for kind in sorted(KINDS)]

    async def reset(self) -> None:
        """Bring the content of the demo back."""

        def step(transaction: ToolItemTransaction) -> None:
            for kind in KINDS:
                for item in transaction.list(kind):
                    transaction.delete(kind, item.id)

        await self.store.change("", step)
        assert await fill_content(self.store)


@pytest.fixture
async def items(services: AppServices) -> ItemTools:
    items = ItemTools(services)
    await fill_content(items.store)
    return items


def test_every_tool_that_changes_an_item_is_tried_here(items: ItemTools) -> None:  # R45
    assert {name for name, _, _ in CALLS} | CREATIONS == set(items.tools)


async def test_a_call_about_an_item_that_somebody_changed_since_does_nothing(items: ItemTools) -> None:  # R45
    for tool, args, shown in CALLS:
        for kind, item_id in shown:
            approval_id = await items.ask(tool, **args)
            await items.edit_item(kind, item_id, **{"alt" if kind == cms.IMAGE else "title": approval_id})
            before = await items.everything()
            label = f"{kind.replace('_', ' ').capitalize()} '{item_id}'"
            with pytest.raises(ToolFailed) as raised:
                await items.run(approval_id)
            said = raised.value.message
            assert said == f"{label} was changed after this call was shown to people. {AGAIN}", tool
            assert await items.everything() == before, tool


async def test_a_call_about_items_that_nobody_changed_since_runs(items: ItemTools) -> None:  # R45
    for tool, args, _ in CALLS:
        before = await items.everything()
        assert await items.run(await items.ask(tool, **args))
        assert await items.everything() != before or tool == "cms_publish_page", tool
        await items.reset()


async def test_what_is_created_has_no_version_and_runs(items: ItemTools) -> None:  # R45
    for tool, args in (
        ("cms_create_post", {"slug": "news", "title": "News", "body": ""}),
        ("cms_create_page", {"slug": "jobs", "title": "Jobs"}),
        ("cms_create_image", {"name": "new.jpg", "alt": ""}),
        ("okr_create_objective", {"title": "More"}),
        ("okr_create_key_result", {"objective_id": "O-1", "title": "More", "target": 5}),
    ):
        started = await items.start(await items.ask(tool, **args))
        assert started.preview_version == ""
        await items.edit_item(*OBJECTIVE, title=f"Changed before {tool}")
        assert await items.run_started(started)


async def test_a_call_about_an_item_that_is_gone_says_so(items: ItemTools) -> None:  # R45
    approval_id = await items.ask("cms_delete_pages", slugs=["about", "pricing"])
    await items.delete_item(cms.PAGE, "pricing")
    with pytest.raises(ToolFailed, match="Page 'pricing' was deleted after this call was shown to people"):
        await items.run(approval_id)
    assert await items.store.get(*PAGE) is not None, "all of them, or none"


async def test_key_results_that_come_or_go_count_for_the_deletion_of_their_objective(items: ItemTools) -> None:  # R45
    added, removed = [await items.ask("okr_delete_objective", id=name) for name in ("O-1", "O-2")]
    bare = await items.ask("okr_delete_objective", id="O-3")
    await items.tools["okr_create_key_result"].run(
        ToolInvocation({"objective_id": "O-1", "title": "New", "target": 1}, "other")
    )
    await items.delete_item(okr.KEY_RESULT, "KR-3")
    for approval_id, words in ((added, "Key result 'KR-7' was not shown"), (removed, "Key result 'KR-3' was deleted")):
        with pytest.raises(ToolFailed, match=words):
            await items.run(approval_id)
    assert [item.id for item in await items.store.list(okr.OBJECTIVE)] == ["O-1", "O-2", "O-3", "O-4"]
    assert await items.run(bare)


async def test_another_call_that_was_allowed_meanwhile_counts_as_well(items: ItemTools) -> None:  # R45
    approval_id = await items.ask("cms_publish_post", slug="hello-world")
    spec = items.tools["cms_update_post"].spec
    await items.services.put_policy(
        "default", "version: 1\nrules:\n  - {name: free, tools: [cms_update_post], then: allow}\n", "ada", {}
    )
    wish = {"slug": "hello-world", "body": "Buy now."}
    outcome = await items.services.gate.check(call("allowed", wish, tool=spec.name), spec)
    assert isinstance(outcome, Proceed)
    assert await items.run(outcome.approval_id), "what is asked about nobody has no version"
    with pytest.raises(ToolFailed, match="was changed after"):
        await items.run(approval_id)
    assert (await items.body(*POST))["status"] == "draft"


async def test_views_and_links_from_elsewhere_do_not_matter(items: ItemTools) -> None:  # R45
    about = {"slug": "about"}
    calls = [await items.ask(tool, **about) for tool in ("cms_archive_page", "cms_delete_page")]
    seen = [cms.SiteView("/about", 5, 0)]
    await items.store.change("", lambda transaction: cms.count_views(transaction, seen))
    await items.edit_item(*POST, body="See [us](/about).")
    assert await items.run(calls[0])
    with pytest.raises(ToolFailed, match="was changed after"):
        await items.run(calls[1])


# An edit of the call


async def test_an_edit_of_the_call_keeps_what_was_shown_of_the_same_item(items: ItemTools) -> None:  # R45
    fresh = await items.propose("cms_update_post", slug="hello-world", title="Hi")
    await items.edit_call(fresh, slug="hello-world", title="Good day")
    assert await items.run(fresh)
    stale = await items.propose("cms_update_post", slug="hello-world", title="Hi")
    await items.edit_item(*POST, body="Changed by somebody.")
    await items.edit_call(stale, slug="hello-world", title="Hello again")
    with pytest.raises(ToolFailed, match="Post 'hello-world' was changed after this call was shown"):
        await items.run(stale)
    assert (await items.body(*POST))["title"] == "Good day"


async def test_an_edit_that_names_another_item_fails_since_nobody_saw_that(items: ItemTools) -> None:  # R45
    for tool, old, new, label in (
        (
            "cms_update_post",
            {"slug": "hello-world", "title": "Hi"},
            {"slug": "spring-release", "title": "Hi"},
            "Post 'spring-release'",
        ),
        ("cms_delete_pages", PAGES, {"slugs": ["about", "contact"]}, "Page 'contact'"),
        ("okr_update_key_result", {"id": "KR-3", "current": 1}, {"id": "KR-4", "current": 1}, "Key result 'KR-4'"),
    ):
        before = await items.everything()
        approval_id = await items.propose(tool, **old)
        await items.edit_call(approval_id, **new)
        with pytest.raises(ToolFailed, match=f"{label} was not shown to people with this call"):
            await items.run(approval_id)
        assert await items.everything() == before


async def test_a_call_whose_only_argument_names_the_item_cannot_be_edited(items: ItemTools) -> None:  # R45
    for tool, args in (("cms_delete_post", {"slug": "hello-world"}), ("okr_delete_objective", {"id": "O-1"})):
        approval_id = await items.propose(tool, **args)
        with pytest.raises(InterlockError, match="allowed: approve, respond, reject"):
            await items.edit_call(approval_id, **args)


async def test_an_edit_may_leave_out_some_of_the_items(items: ItemTools) -> None:  # R45
    approval_id = await items.propose("cms_delete_pages", **PAGES)
    await items.edit_call(approval_id, slugs=["pricing"])
    assert await items.run(approval_id)
    assert await items.store.get(*PAGE) is not None


async def test_an_item_that_an_edit_left_out_is_compared_all_the_same(items: ItemTools) -> None:  # R45
    """The preview that people saw is about all of them."""
    approval_id = await items.propose("cms_delete_pages", **PAGES)
    await items.edit_call(approval_id, slugs=["pricing"])
    await items.edit_item(*PAGE, title="Changed by somebody")
    before = await items.everything()
    with pytest.raises(ToolFailed, match="Page 'about' was changed after this call was shown to people"):
        await items.run(approval_id)
    assert await items.everything() == before


# Retries, races and older rows


async def test_a_retry_of_what_was_done_gets_the_first_result(items: ItemTools, clock: Clock) -> None:  # R45
    """The process died after the change and before it could say so; the item is not as it was shown any more."""
    approval_id = await items.ask("cms_update_post", slug="hello-world", title="Hi")
    first = await items.run(approval_id)
    await items.edit_item(*POST, title="Changed by somebody")
    clock.advance(LEASE + 1)
    again = await items.start(approval_id)
    assert again.fence == 2
    assert await items.run_started(again) == first
    assert (await items.body(*POST))["title"] == "Changed by somebody"


async def test_a_process_that_died_before_the_change_leaves_it_to_be_compared(items: ItemTools, clock: Clock) -> None:
    approval_id = await items.ask("cms_update_post", slug="hello-world", title="Hi")  # R45
    await items.start(approval_id)
    await items.edit_item(*POST, title="Changed by somebody")
    clock.advance(LEASE + 1)
    with pytest.raises(ToolFailed, match="was changed after"):
        await items.run(approval_id)


async def test_a_change_after_the_last_look_of_a_call_and_before_its_transaction_counts(
    items: ItemTools, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:  # R45
    """A person of another process gets the lock first: what the call read before that says nothing any more."""
    started = await items.start(await items.ask("cms_update_post", slug="hello-world", title="Hi"))
    storage, edits = items.services.store._database, count(1)
    write = storage.write
    async with open_services(database, clock) as other:

        async def edit_and_write(change: BatchItem) -> object:
            await ItemTools(other).edit_item(*POST, title=f"Changed {next(edits)} times")
            return await write(change)

        monkeypatch.setattr(storage, "write", edit_and_write)
        with pytest.raises(ToolFailed, match="Post 'hello-world' was changed after this call was shown"):
            await items.run_started(started)
    assert (await items.body(*POST))["title"] == "Changed 1 times"


async def test_a_change_that_was_queued_before_a_call_counts(items: ItemTools, database: Database) -> None:  # R45
    started = await items.start(await items.ask("cms_update_post", slug="hello-world", title="Hi"))
    with database.hold_lock():
        edited = asyncio.create_task(items.edit_item(*POST, title="Changed by somebody"))
        await asyncio.sleep(0)  # it is in the queue, and the call comes after it
        ran = asyncio.create_task(items.run_started(started))
        await asyncio.sleep(0.05)  # as long as a look outside of the transaction would take
        assert not edited.done()
    with pytest.raises(ToolFailed, match="Post 'hello-world' was changed after this call was shown"):
        await ran
    await edited
    assert (await items.body(*POST))["title"] == "Changed by somebody"


async def test_of_a_call_and_a_person_that_race_the_call_never_changes_what_it_did_not_show(
    items: ItemTools,
) -> None:  # R45
    def add_word(transaction: ToolItemTransaction) -> object:
        post = transaction.get(*POST)
        assert post is not None
        transaction.put(*POST, {**post.body, "status": "draft", "body": f"{post.body['body']} more"})
        return post.body["status"]

    async def after(steps: int, work: Awaitable[object]) -> object:
        for _ in range(steps):
            await asyncio.sleep(0)
        return await work

    for steps in range(-300, 300, 30):  # so that either may be first, on both databases
        started = await items.start(await items.ask("cms_publish_post", slug="hello-world"))
        run, edit = items.run_started(started), items.store.change_by("bob", {}, KINDS, add_word)
        ran, status = await asyncio.gather(after(-steps, run), after(steps, edit), return_exceptions=True)
        assert isinstance(ran, ToolFailed) == (status == "draft"), "it was published before, or not at all"
        assert (await items.body(*POST))["status"] == "draft"


async def test_an_approval_from_before_versions_runs_as_it_did(items: ItemTools, database: Database) -> None:  # R45
    approval_id = await items.propose("cms_update_post", slug="hello-world", title="Hi")
    database.sql("update payloads set preview_version = null where id = ?", approval_id)
    await items.edit_item(*POST, body="Changed by somebody.")
    async with open_services(database, Clock()) as later:  # which has cached nothing
        services, items.services = items.services, later
        assert await approve(later, approval_id) == "approved"
        assert await items.run(approval_id)
        items.services = services
    assert (await items.body(*POST))["body"] == "Changed by somebody."


# In the chat


async def open_cms(chat: ChatHarness) -> None:
    items = chat.store.tool_items("default")
    await fill_content(items)
    chat.effects.more += cms.write_tools(ToolContext("default", items))


EDITOR = {"main": AgentSettings(tools=("cms",))}


async def test_the_model_is_told_and_proposes_the_change_again(database: Database, clock: Clock) -> None:  # R45
    wish = {"slug": "hello-world", "title": "Hi"}
    async with open_chat(database, clock, agents=EDITOR) as chat:
        await open_cms(chat)
        chat.model.turns = [tool_calls(tool_request(call_id, "cms_update_post", **wish)) for call_id in ("c1", "c2")]
        thread = await chat.say("Rename it")
        (card,) = await chat.pending_approvals(thread)
        await edit_item(chat, POST, body="Changed by somebody.")
        await chat.approve(card)
        assert chat.model.tool_results["c1"]["status"] == "failed"
        assert f"Post 'hello-world' was changed after this call was shown to people. {AGAIN}" in str(
            chat.model.tool_results["c1"]
        )
        (second,) = await chat.pending_approvals(thread)
        await chat.approve(second)
        assert chat.model.tool_results["c2"]["title"] == "Hi"


async def edit_item(chat: ChatHarness, item: Item, **fields: object) -> None:
    def step(transaction: ToolItemTransaction) -> None:
        old = transaction.get(*item)
        assert old is not None
        transaction.put(*item, {**old.body, **fields})

    await chat.store.tool_items("default").change_by("bob", {}, KINDS, step)


ASK = ModelReply("This would delete About. Shall I?")
FINANCE = (
    "version: 1\nrules:\n  - {name: finance, tools: [cms_delete_page], then: ask, approvers: {teams: [finance]}}\n"
)


async def ask_about_deletion(chat: ChatHarness) -> Thread:
    """A thread whose person was asked about the page, in the conversation."""
    await open_cms(chat)
    chat.model.turns = [tool_calls(tool_request("c1", "cms_delete_page", slug="about")), ASK]
    thread = await chat.say("Delete the page")
    assert chat.model.tool_results["c1"]["would"].startswith("Page 'about', titled 'About', 4 sections")
    chat.model.turns = [tool_calls(tool_request("c2", "cms_delete_page", slug="about", confirmed=True))]
    return thread


async def test_a_yes_in_the_conversation_is_to_what_the_question_showed(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, agents=EDITOR) as chat:  # R19 R45
        thread = await ask_about_deletion(chat)
        await edit_item(chat, PAGE, title="About us")
        await chat.say("yes", thread)
        told = chat.model.tool_results["c2"]
        assert told["status"] == "failed"
        assert "is not as it was when the person was asked" in told["error"]
        items = chat.store.tool_items("default")
        assert await items.get(*PAGE) is not None
        chat.model.turns = [tool_calls(tool_request("c3", "cms_delete_page", slug="about")), ASK]
        await chat.say("And now?", thread)
        chat.model.turns = [tool_calls(tool_request("c4", "cms_delete_page", slug="about", confirmed=True))]
        await chat.say("yes", thread)
        assert chat.model.tool_results["c4"]["status"] == "deleted"
        assert await items.get(*PAGE) is None


async def test_others_who_have_to_decide_as_well_decide_about_what_the_question_showed(
    database: Database, clock: Clock
) -> None:  # R19 R45
    async with open_chat(database, clock, agents=EDITOR) as chat:
        await chat.put_policy(FINANCE)
        thread = await ask_about_deletion(chat)
        await chat.say("yes", thread)
        (card,) = await chat.pending_approvals(thread)
        await edit_item(chat, PAGE, title="About us")
        await chat.approve(card, FAY)
        assert "Page 'about' was changed after this call was shown to people." in chat.model.tool_results["c2"]["error"]
        assert await chat.store.tool_items("default").get(*PAGE) is not None


async def test_a_yes_to_a_question_that_stored_no_version_is_not_to_what_the_preview_shows_now(
    database: Database, clock: Clock
) -> None:  # R19 R45
    """As older programs stored it. Nobody knows whether the person saw the page as it is: they are asked again."""
    async with open_chat(database, clock, agents=EDITOR) as chat:
        thread = await ask_about_deletion(chat)
        (question,) = await chat.entries(thread, "resulted")
        body = {name: value for name, value in question.body.items() if name != "preview_version"}
        assert len(body) == len(question.body) - 1
        database.sql("update lines set body = ? where kind = 'resulted'", canonical(body))
        await chat.say("yes", thread)
        assert "is not as it was when the person was asked" in chat.model.tool_results["c2"]["error"]
        assert await chat.store.tool_items("default").get(*PAGE) is not None
        chat.model.turns = [tool_calls(tool_request("c3", "cms_delete_page", slug="about")), ASK]
        await chat.say("Then ask me again", thread)
        chat.model.turns = [tool_calls(tool_request("c4", "cms_delete_page", slug="about", confirmed=True))]
        await chat.say("yes", thread)
        assert chat.model.tool_results["c4"]["status"] == "deleted"


@pytest.mark.parametrize("second_id", ["c1", "other"])  # some models count anew in every reply
@pytest.mark.parametrize("last_title", ["About us", "About"])
async def test_of_two_questions_the_answered_one_says_what_people_saw(
    database: Database, clock: Clock, last_title: str, second_id: str
) -> None:  # R19 R45
    """The second showed a page titled About us: what the first one showed counts no more."""
    async with open_chat(database, clock, agents=EDITOR) as chat:
        thread = await ask_about_deletion(chat)
        confirmed = chat.model.turns
        chat.model.turns = [tool_calls(tool_request(second_id, "cms_delete_page", slug="about")), ASK]
        await edit_item(chat, PAGE, title="About us")
        await chat.say("What would happen now?", thread)
        await edit_item(chat, PAGE, title=last_title)
        chat.model.turns = confirmed
        await chat.say("yes", thread)
        is_deleted = last_title == "About us"
        assert chat.model.tool_results["c2"]["status"] == ("deleted" if is_deleted else "failed")
        assert (await chat.store.tool_items("default").get(*PAGE) is None) == is_deleted
