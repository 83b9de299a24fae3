"""Functions with `@tool` in the chat: what a person sees of a call, and what the function gets of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from typing import Any, Literal

import pytest

from interlock import Interlock, ToolFailed, current_execution, tool
from interlock.chat.calls import ToolCallRunner
from interlock.chat.tool import ToolContext, make_tool
from interlock.config.models import AgentSettings
from interlock.core.chat.transcript import ModelReply, PendingCall
from interlock.core.decision import Acknowledgement, Approve
from interlock.core.errors import StoreUnavailable
from tests.chat_harness import ChatHarness, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import BOB, Clock

REFUNDS: list[tuple[object, ...]] = []


def show_refund(args: Mapping[str, Any]) -> str:
    return f"40 was paid for {args['order']}; the token is {args['token']}."


@tool(effect="write", describe="Refund {amount} for {order!r}: {reason}", preview=show_refund, secret=["token"])
def t_refund(order: str, amount: int, reason: Literal["late", "broken"] = "late", token: str = "") -> dict[str, object]:
    """Pays money back."""
    if amount > 40:
        raise ToolFailed("Only 40 was paid.")
    if amount < 0:
        raise ValueError(f"{amount} with {token}")
    execution = current_execution()
    REFUNDS.append((order, amount, reason, token, execution.idempotency_key if execution else ""))
    return {"refunded": amount}


@tool(
    effect="destructive",
    describe="Forget {name!r}, by {pin}",
    preview=lambda args: f"{args}",
    confirm="chat",
    secret=["pin"],
)
async def t_forget(name: str, pin: str = "") -> str:
    REFUNDS.append((name, pin))
    return f"forgot {name}"


@tool(effect="write")
def t_note(text: str, tone: str = "calm") -> str:
    return f"{text}, {tone}"


def add_tools(chat: ChatHarness) -> None:
    REFUNDS.clear()
    chat.effects.more += [make_tool(each) for each in (t_refund, t_forget, t_note)]


async def test_the_card_shows_sentence_preview_and_defaults_and_the_function_runs_once(
    database: Database, clock: Clock
) -> None:  # R2 R64
    async with open_chat(database, clock) as chat:
        add_tools(chat)
        chat.model.turns = [tool_calls(tool_request("c1", "t_refund", order="A7", amount=12, token="sk-hunter2"))]
        thread = await chat.say("Refund order A7")
        (card,) = await chat.pending_approvals(thread)
        view = await chat.services.inbox.show("default", card.id)
        assert view.card.sentence == "Refund 12 for 'A7': late"
        assert view.card.preview == "40 was paid for A7; the token is [hidden]."
        assert [field.name for field in view.card.fields] == ["amount", "order", "reason", "token"]
        await chat.approve(card)
        key = REFUNDS[0][-1]
        assert [("A7", 12, "late", "sk-hunter2", key)] == REFUNDS
        assert key
        assert chat.model.tool_results["c1"] == {"refunded": 12}


async def test_an_edit_names_what_changed_and_no_default(database: Database, clock: Clock) -> None:  # R64
    async with open_chat(database, clock) as chat:
        add_tools(chat)
        chat.model.turns = [tool_calls(tool_request("c1", "t_note", text="Hello"))]
        thread = await chat.say("Note it")
        (card,) = await chat.pending_approvals(thread)
        await chat.edit(card, text="Hi", tone="calm")
        told = chat.model.tool_results["c1"]
        assert (told["result"], told["changed"]) == ("Hi, calm", ["text"])


async def test_what_a_function_raises_is_told_without_a_trace_and_without_secrets(
    database: Database, clock: Clock
) -> None:  # R64
    async with open_chat(database, clock) as chat:
        add_tools(chat)
        much = tool_request("c1", "t_refund", order="A7", amount=41)
        less = tool_request("c2", "t_refund", order="A7", amount=-1, token="sk-hunter2")
        chat.model.turns = [tool_calls(much, less)]
        thread = await chat.say("Refund order A7")
        for card in await chat.pending_approvals(thread):
            await chat.decide(card, Approve(Acknowledgement(card.args_sha256)), BOB)
        results = chat.model.tool_results
        assert "Only 40 was paid." in results["c1"]["error"]
        assert "ValueError: -1 with [hidden]" in results["c2"]["error"]
        assert "Traceback" not in str(results)


# R19, R64
async def test_a_call_that_is_confirmed_in_the_conversation_shows_no_secret(database: Database, clock: Clock) -> None:
    """Nor does the function get the word for it."""
    async with open_chat(database, clock) as chat:
        add_tools(chat)
        wish = {"name": "ann", "pin": "hunter22"}
        chat.model.turns = [tool_calls(tool_request("c1", "t_forget", **wish)), ModelReply("Shall I?")]
        thread = await chat.say("Forget ann")
        asked = chat.model.tool_results["c1"]
        assert asked["message"] == "Forget 'ann', by (hidden)"
        assert asked["would"] == "{'name': 'ann', 'pin': '[hidden]'}"
        chat.model.turns = [tool_calls(tool_request("c2", "t_forget", **wish, confirmed=True))]
        await chat.say("Yes!", thread)
        assert REFUNDS == [("ann", "hunter22")]
        assert chat.model.tool_results["c2"] == "forgot ann"


async def test_a_default_that_changed_over_a_crash_changes_no_proposed_call(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:  # R64
    record, crashes = ToolCallRunner._record_proposal, list[str]()

    async def crash_once(runner: ToolCallRunner, call: PendingCall, status: str) -> None:
        if not crashes:
            crashes.append(call.approval_id)
            chat.effects.more[-1] = replace(chat.effects.more[-1], defaults={"tone": "loud"})
            raise StoreUnavailable("a crash")
        await record(runner, call, status)

    monkeypatch.setattr(ToolCallRunner, "_record_proposal", crash_once)
    async with open_chat(database, clock) as chat:
        add_tools(chat)
        chat.model.turns = [tool_calls(tool_request("c1", "t_note", text="Hello"))]
        thread = await chat.say("Note it")
        (card,) = await chat.pending_approvals(thread)
        assert crashes == [card.id]
        await chat.approve(card)
        assert chat.model.tool_results["c1"] == "Hello, calm"
        assert [str(error) for error in chat.failures] == ["a crash"]
        chat.failures.clear()


async def test_the_same_declaration_is_gated_by_the_library(database: Database, clock: Clock) -> None:  # R64
    clock.drive(database)
    REFUNDS.clear()
    rules = "version: 1\nrules:\n  - {name: all, then: allow}\n"
    with Interlock(database.url, policy=rules, agent="clerk") as lock:
        refund = lock.tool(t_refund)
        assert refund("A7", 12) == {"refunded": 12}
    ((order, amount, reason, _, key),) = REFUNDS
    assert (order, amount, reason, bool(key)) == ("A7", 12, "late", True)


CMS_GUIDE = Path(__file__).resolve().parents[2] / "docs" / "cms-and-okrs.md"


# R45 R64
async def test_a_pack_of_ones_own_changes_only_the_items_that_people_saw(
    database: Database, clock: Clock, tmp_path: Path
) -> None:
    """The pack of the guide."""
    (pack,) = re.findall(r"^```python\n(.*?)^```", CMS_GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "notes.py").write_text(pack)
    make_tools = run_path(str(tmp_path / "notes.py"))["tools"]
    async with open_chat(database, clock, agents={"main": AgentSettings(tools=("rewrite_note",))}) as chat:
        items = chat.store.tool_items("default")
        chat.effects.more += [make_tool(each) for each in make_tools(ToolContext("default", items))]
        await items.change("", lambda notes: notes.put("note", "todo", {"text": "old"}))
        chat.model.turns = [tool_calls(tool_request(name, "rewrite_note", name="todo", text="new")) for name in "ab"]
        thread = await chat.say("Rewrite it")
        (stale,) = await chat.pending_approvals(thread)
        assert (await chat.services.inbox.show("default", stale.id)).card.preview == "'old' becomes 'new'."
        await items.change("", lambda notes: notes.put("note", "todo", {"text": "other"}))
        await chat.approve(stale)
        assert "Note 'todo' was changed after this call was shown to people." in chat.model.tool_results["a"]["error"]
        (fresh,) = await chat.pending_approvals(thread)
        await chat.approve(fresh)
        assert chat.model.tool_results["b"] == {"name": "todo", "text": "new"}
