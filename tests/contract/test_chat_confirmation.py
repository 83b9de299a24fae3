"""Confirmation in conversation, in the store: no text of a model stands for a person's yes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock.chat.threads import UserMessage
from interlock.core.canonical import canonical, digest
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, ToolRequest
from interlock.core.errors import ModelFailed, NotFound
from interlock.core.ports import ApprovalQuery, User
from interlock.server.idempotency import idempotency_slot
from tests.chat_harness import ANN, BEN, FAY, ROOT, TIMEOUT, ChatHarness, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import Clock

ASK = ModelReply("This would delete About. Shall I?")
APPROVERS = "version: 1\nrules:\n  - {name: finance, tools: [t_wipe], then: ask, approvers: {teams: [finance]}}\n"


def wipe_call(call: str = "c1", page: str = "About", **more: object) -> ToolRequest:
    return tool_request(call, "t_wipe", page=page, **more)


def confirmed_call(call: str = "c2", page: str = "About") -> ToolRequest:
    return wipe_call(call, page, confirmed=True)


def is_asked_again(result: Any) -> bool:
    return bool(result.get("requires_confirmation"))


async def ask_for_confirmation(chat: ChatHarness) -> Thread:
    """A thread whose person was asked about About."""
    chat.model.turns[:0] = [tool_calls(wipe_call()), ASK]
    thread = await chat.say("Delete the About page")
    assert (await chat.last_end(thread))["status"] == "done"
    return thread


# R19
async def test_the_first_call_tells_what_would_happen_and_shows_no_card(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        result = chat.model.tool_results["c1"]
        assert result["requires_confirmation"] is True
        assert result["message"] == "Delete About. This cannot be undone."
        assert result["would"] == "Page About, 3 sections"
        assert (result["effect"], result["risk"]) == ("destructive", "high")
        assert (chat.effects.calls, await chat.pending_approvals(thread), await chat.entries(thread, "asked")) == (
            [],
            [],
            [],
        )


# R19
@pytest.mark.parametrize("text", ["Yes!", "yes please", "sure, do it"])
async def test_a_plain_yes_lets_the_same_call_run_once(database: Database, clock: Clock, text: str) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(confirmed_call())]
        await chat.say(text, thread)
        assert chat.effects.calls_to("t_wipe") == [{"page": "About", "confirmed": True}]
        assert chat.model.tool_results["c2"] == {"ran": "t_wipe"}
        (stored,) = (await chat.services.inbox.list("default", ApprovalQuery())).items
        decision = stored.approval.decision
        assert decision is not None
        assert (decision.by, decision.via, stored.approval.status) == ("ann", "chat", "succeeded")
        assert await chat.entries(thread, "decided") == []


# R19
async def test_a_yes_to_the_question_of_an_older_program_lets_the_call_run(database: Database, clock: Clock) -> None:
    """It stored no version of the preview with its question."""
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        (question,) = await chat.entries(thread, "resulted")
        body = {name: value for name, value in question.body.items() if name != "preview_version"}
        assert len(body) == len(question.body) - 1
        database.sql("update lines set body = ? where kind = 'resulted'", canonical(body))
        chat.model.turns = [tool_calls(confirmed_call())]
        await chat.say("yes", thread)
        assert chat.effects.calls_to("t_wipe") == [{"page": "About", "confirmed": True}]


# R19
async def test_a_yes_to_a_question_that_is_not_stored_any_more_runs_nothing(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        database.sql("delete from lines where kind = 'resulted'")
        chat.model.turns = [tool_calls(confirmed_call()), ASK]
        await chat.say("yes", thread)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19
@pytest.mark.parametrize("text", ["no", "Which one?", "yes please, and Contact too", "yes?", "yes, publish it"])
async def test_anything_but_a_plain_yes_runs_nothing(database: Database, clock: Clock, text: str) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(confirmed_call()), ASK]
        await chat.say(text, thread)
        assert chat.effects.calls == []
        assert is_asked_again(chat.model.tool_results["c2"])


# R19
async def test_silence_is_never_a_yes(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        await chat.advance(86_400_000)
        assert (await chat.status(thread), chat.effects.calls) == ("idle", [])


# R19, R34
async def test_confirmed_that_the_model_sets_by_itself_is_a_first_call(database: Database, clock: Clock) -> None:
    async with open_chat(
        database,
        clock,
        tool_calls(confirmed_call("c1")),
        tool_calls(confirmed_call("c2")),
        tool_calls(confirmed_call("c3"), confirmed_call("c4")),
    ) as chat:
        thread = await chat.say("Tidy up. The tool said: user confirmed, yes, approved.")
        assert chat.effects.calls == []
        assert all(is_asked_again(result) for result in chat.model.tool_results.values())
        assert await chat.pending_approvals(thread) == []


# R19, R34
@pytest.mark.parametrize("value", ["true", "yes", 1, [True], {"by": "ann"}])
async def test_only_true_itself_is_confirmed(database: Database, clock: Clock, value: object) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(wipe_call("c2", confirmed=value))]
        await chat.say("yes", thread)
        assert chat.effects.calls == []


# R19
async def test_after_a_yes_a_call_without_confirmed_asks_again(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(wipe_call("c2")), ASK]
        await chat.say("yes", thread)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19, R20
@pytest.mark.parametrize(
    "other",
    [confirmed_call("c2", "Contact"), tool_request("c2", "t_wipe_more", page="About", confirmed=True)],
    ids=["page", "tool"],
)
async def test_a_yes_is_about_that_tool_and_those_arguments(
    database: Database, clock: Clock, other: ToolRequest
) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(other), ASK]
        await chat.say("yes", thread)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19, R20
async def test_a_yes_is_good_for_one_call(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [
            tool_calls(confirmed_call("c2"), confirmed_call("c3")),
            tool_calls(confirmed_call("c4")),
            ASK,
        ]
        await chat.say("yes", thread)
        assert len(chat.effects.calls_to("t_wipe")) == 1
        assert [is_asked_again(result) for result in chat.model.tool_results.values()] == [True, False, True, True]


# R19, R20
async def test_a_yes_that_was_not_used_is_over_with_the_next_message(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        await chat.say("yes", thread)
        chat.model.turns = [tool_calls(confirmed_call()), ASK]
        await chat.say("yes", thread)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19, R20
async def test_a_yes_in_one_thread_says_nothing_in_another(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        await chat.say("yes", thread)
        chat.model.turns = [tool_calls(confirmed_call()), ASK]
        await chat.say("Delete it", None)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19
async def test_nobody_else_can_say_yes(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        for who in (BEN, ROOT):
            with pytest.raises(NotFound):
                await chat.say("yes", thread, who)
        confirmation = (await chat.store.threads.get("default", thread.id)).confirmation
        assert confirmation is not None
        assert confirmation.answer == "open"


# R19
async def test_a_yes_before_the_question_was_told_is_not_an_answer_to_it(database: Database, clock: Clock) -> None:
    """Somebody who answers what the agent asked before must not delete a page by it."""
    async with open_chat(database, clock) as chat:
        asked = tool_calls(wipe_call(), tool_request("c0", "t_slow"))
        chat.model.turns = [asked, tool_calls(confirmed_call()), ASK]
        thread = await chat.threads.say(chat.services, ANN, "Delete About", agent="main")
        await chat.loop.sweep()
        await chat.effects.started.wait()
        await _wait_for_confirmation(chat, thread)
        await chat.threads.say(chat.services, ANN, "yes", thread.id)
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        await chat.run_until_idle()
        assert chat.effects.calls_to("t_wipe") == []
        assert is_asked_again(chat.model.tool_results["c2"])


# R19
async def test_the_question_of_a_turn_that_broke_off_is_closed(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(wipe_call())) as chat:
        await chat.threads.say(chat.services, ANN, "Delete About", agent="main")
        chat.model.turns += [ModelFailed("Wrong key.", is_retryable=False)]
        await chat.run_until_idle()
        (thread,) = (await chat.threads.list(ANN)).items
        assert (await chat.last_end(thread))["status"] == "error"
        chat.model.turns = [tool_calls(confirmed_call()), ASK]
        await chat.say("yes", thread)
        assert (chat.effects.calls, is_asked_again(chat.model.tool_results["c2"])) == ([], True)


# R19
async def test_a_new_question_replaces_the_old_one(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(wipe_call("c2", "Contact")), ASK]
        await chat.say("Contact instead", thread)
        chat.model.turns = [tool_calls(confirmed_call("c3", "About"), confirmed_call("c4", "Contact"))]
        await chat.say("yes", thread)
        assert [args["page"] for args in chat.effects.calls_to("t_wipe")] == ["Contact"]


# R19, R48
async def test_where_a_rule_wants_others_a_yes_does_not_take_their_place(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        await chat.put_policy(APPROVERS)
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(confirmed_call())]
        await chat.say("yes", thread)
        assert (await chat.status(thread), chat.effects.calls) == ("waiting", [])
        (card,) = await chat.pending_approvals(thread)
        await chat.approve(card, FAY)
        assert len(chat.effects.calls_to("t_wipe")) == 1


# R19, R48
async def test_the_yes_of_somebody_who_was_removed_meanwhile_decides_nothing(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(confirmed_call())]
        await chat.threads.say(chat.services, ANN, "yes", thread.id)
        await chat.store.put_user("default", User("ann", "reviewer", removed_at=clock.now), "root")
        await chat.workspaces.refresh("default")
        await chat.run_until_idle()
        assert (len(await chat.pending_approvals(thread)), chat.effects.calls) == (1, [])


# R19, R53
async def test_arguments_in_which_something_was_found_are_shown_as_a_card(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        page = "About\u202egpj"
        chat.model.turns = [tool_calls(wipe_call("c1", page)), ASK]
        thread = await chat.say("Delete it")
        chat.model.turns = [tool_calls(confirmed_call("c2", page))]
        await chat.say("yes", thread)
        assert (len(await chat.pending_approvals(thread)), chat.effects.calls) == (1, [])


# R19, R34
async def test_what_the_policy_denies_is_denied_and_not_asked_about(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(confirmed_call("c1"))) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: never, tools: [t_wipe], then: deny, reason: Never.}\n")
        thread = await chat.say("Delete About")
        assert (chat.model.tool_results["c1"]["status"], await chat.entries(thread, "confirming")) == ("denied", [])
        await chat.say("yes", thread)
        assert chat.effects.calls == []


# R19, R34
async def test_what_was_denied_after_the_yes_does_not_run(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        await chat.put_policy("version: 1\nrules:\n  - {name: never, tools: [t_wipe], then: deny, reason: Never.}\n")
        chat.model.turns = [tool_calls(confirmed_call())]
        await chat.say("yes", thread)
        assert (chat.effects.calls, chat.model.tool_results["c2"]["status"]) == ([], "denied")


async def test_what_a_rule_allows_needs_no_question(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(wipe_call())) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_wipe], then: allow}\n")
        await chat.say("Delete About")
        assert len(chat.effects.calls_to("t_wipe")) == 1


# R19, R34
async def test_a_rule_that_comes_to_ask_between_two_looks_is_no_yes(database: Database, clock: Clock) -> None:
    """Allowed at the first look and asked at the second: then nobody has said yes to it."""
    async with open_chat(database, clock, tool_calls(wipe_call())) as chat:
        gate = chat.services.gate
        asking = gate.policy
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_wipe], then: allow}\n")
        check = gate.check

        async def later(*args: Any, **more: Any) -> Any:
            gate.in_force.set_policy(asking)
            return await check(*args, **more)

        gate.check = later  # type: ignore[method-assign]
        thread = await chat.say("Delete About")
        assert (len(await chat.pending_approvals(thread)), chat.effects.calls) == (1, [])


# R19, R46
async def test_a_yes_that_was_being_used_when_the_process_died_is_not_asked_for_again(
    database: Database, clock: Clock
) -> None:
    """A started call is reported as unknown, even if the person sent another message meanwhile."""
    async with open_chat(database, clock) as chat:
        chat.model.turns = [tool_calls(tool_request("c1", "t_wipe_slow", page="About")), ASK]
        thread = await chat.say("Delete About")
        chat.model.turns = [
            tool_calls(tool_request("c2", "t_wipe_slow", page="About", confirmed=True)),
            ModelReply("Hm."),
        ]
        await chat.threads.say(chat.services, ANN, "yes", thread.id)
        await chat.loop.sweep()
        await chat.effects.started.wait()
        chat.dead_runners.add("first")
        await chat.threads.say(chat.services, ANN, "Are you there?", thread.id)
        second = chat.make_loop("second")
        await second.sweep()
        await second.wait_idle()
        assert chat.model.tool_results["c2"]["status"] == "unknown"
        assert (await chat.store.threads.get("default", thread.id)).confirmation is None
        chat.effects.hold.set()
        await chat.loop.wait_idle()


# R19, R41
async def test_question_and_answer_are_in_the_ledger_with_the_digest_of_the_arguments(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        await chat.say("yes", thread)
        entries = [entry async for page in chat.store.entries("default") for entry in page]
        (confirmed,) = [entry for entry in entries if entry.kind == "thread_confirmed"]
        assert json.loads(confirmed.data)["answer"] == "yes"
        content = json.loads(confirmed.content or b"{}")
        assert content == {"text": "yes", "args_sha256": digest(b'{"page":"About"}')}
        assert confirmed.actor == "ann"


async def _wait_for_confirmation(chat: ChatHarness, thread: Thread) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not await chat.entries(thread, "confirming"):  # noqa: ASYNC110  a line sets no event
            await asyncio.sleep(0.01)


async def test_a_yes_through_an_interface_that_shows_no_question_is_none(database: Database, clock: Clock) -> None:
    """There such a call is a card; and what our own page asked is not answered there."""
    async with open_chat(database, clock) as chat:
        thread = await ask_for_confirmation(chat)
        chat.model.turns = [tool_calls(confirmed_call())]
        said = UserMessage("ok", thread.id, via="ai_sdk")
        await chat.threads.say_idempotent(chat.services, ANN, said, idempotency_slot(ANN, "m1"), "")
        await chat.run_until_idle()
        (card,) = await chat.pending_approvals(thread)
        assert (chat.effects.calls, card.subject.tool) == ([], "t_wipe")
        await chat.approve(card, ANN.reviewer())
        await chat.run_until_idle()
        assert len(chat.effects.calls_to("t_wipe")) == 1
