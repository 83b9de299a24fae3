"""Outcomes in the chat: the model gets exactly one result for each call, in the order of the calls."""

from __future__ import annotations

import asyncio

import pytest

from interlock.core.approval.approval import Approval
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, Prompt, ToolRequest, ToolResult
from interlock.core.decision import Acknowledgement, Approve
from interlock.core.errors import CallWouldFail, ToolFailed
from interlock.core.ports import User
from interlock.runtime.durations import rfc3339
from tests.chat_harness import ANN, FAY, TIMEOUT, ChatHarness, open_chat, tool_calls, tool_request, wait_until
from tests.databases import Database
from tests.support import BOB, OK, Clock

DENY = "version: 1\nrules:\n  - {name: never, tools: [t_send], then: deny, reason: Not here.}\n"


def assert_one_result_each(prompt: Prompt) -> None:
    due: list[str] = []
    for message in prompt.messages:
        if isinstance(message, ToolResult):
            assert message.call_id == due.pop(0)
        else:
            assert due == []
            due = [each.id for each in message.tool_requests] if isinstance(message, ModelReply) else []
    assert due == []


def send(call: str = "c1", to: str = "bob") -> ToolRequest:
    return tool_request(call, "t_send", to=to)


# R1, R3
async def test_what_reads_runs_at_once_and_asks_nobody(database: Database, clock: Clock) -> None:
    async with open_chat(
        database, clock, tool_calls(tool_request("c1", "t_look", what="x")), ModelReply("Found.")
    ) as chat:
        thread = await chat.say("Look")
        assert await chat.last_end(thread) == {"status": "done", "reason": ""}
        assert chat.effects.calls == [("t_look", {"what": "x"})]
        assert chat.model.tool_results == {"c1": {"ran": "t_look"}}
        assert await chat.entries(thread, "asked") == []


# R1, R3, R11
async def test_what_writes_asks_and_runs_once_when_it_is_approved(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send(), text="I send it.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        assert (await chat.status(thread), chat.effects.calls) == ("waiting", [])
        assert (card.subject.tool, card.subject.run_id, card.subject.call_id) == ("t_send", thread.id, "2:c1")
        await chat.approve(card)
        assert chat.effects.calls == [("t_send", {"to": "bob"})]
        assert chat.effects.keys == [card.id]
        assert chat.model.tool_results == {"c1": {"ran": "t_send"}}
        assert [line.body["status"] for line in await chat.entries(thread, "decided")] == ["approved"]
        assert (await chat.last_end(thread))["status"] == "done"


# R11
async def test_an_edit_runs_and_says_what_a_person_changed(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.edit((await chat.pending_approvals(thread))[0], to="eve")
        assert chat.effects.calls == [("t_send", {"to": "eve"})]
        result = chat.model.tool_results["c1"]
        assert (result["success"], result["edited"], result["ran_with"]) == (True, True, {"to": "eve"})
        assert result["result"] == {"ran": "t_send"}
        assert "not with yours" in result["note"]


# R11
async def test_an_answer_goes_to_the_model_and_nothing_runs(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.respond((await chat.pending_approvals(thread))[0], "Ask Eve first.")
        assert chat.effects.calls == []
        assert chat.model.tool_results["c1"] == "Ask Eve first."
        assert [line.body["status"] for line in await chat.entries(thread, "decided", "resulted")] == ["responded"] * 2


# R3, R11, R35
async def test_a_rejection_is_told_once_it_can_no_longer_be_taken_back(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.reject((await chat.pending_approvals(thread))[0], "Too early.")
        assert (await chat.status(thread), len(chat.model.prompts)) == ("waiting", 1)
        await chat.advance(8_000)
        assert chat.effects.calls == []
        assert chat.model.tool_results["c1"] == {
            "success": False,
            "cancelled": True,
            "declined": True,
            "status": "rejected",
            "reason": "Too early.",
            "error": "Access denied: Too early.",
        }
        at_once, final = await chat.entries(thread, "decided")
        for decided in (at_once, final):
            assert (decided.body["status"], decided.body["reason"]) == ("rejected", "Too early.")
        assert ("release_at" in at_once.body, "release_at" in final.body) == (True, False)


# R14
async def test_a_rejection_is_recorded_at_once_and_so_is_its_undoing(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.reject(card, "Too early.")
        (decided,) = await chat.entries(thread, "decided")
        assert decided.body["release_at"] == rfc3339(clock.now + 8_000)
        await chat.services.inbox.undo("default", card.id, BOB)
        await chat.run_until_idle()
        assert [entry.body.get("reopened", False) for entry in await chat.entries(thread, "asked")] == [False, True]
        await chat.approve(card)
        assert [entry.body["status"] for entry in await chat.entries(thread, "decided")] == ["rejected", "approved"]
        assert len(chat.effects.calls) == 1


# R14
async def test_a_rejection_that_was_taken_back_can_be_approved(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.reject(card)
        await chat.services.inbox.undo("default", card.id, BOB)
        await chat.run_until_idle()
        assert await chat.status(thread) == "waiting"
        await chat.approve((await chat.pending_approvals(thread))[0])
        assert chat.effects.calls == [("t_send", {"to": "bob"})]
        await chat.advance(10_000)
        assert len(chat.model.prompts) == 2


# R5
async def test_a_card_that_nobody_answers_has_timed_out(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.advance(599_000)
        assert await chat.status(thread) == "waiting"
        await chat.advance(2_000)
        result = chat.model.tool_results["c1"]
        assert (result["status"], "timed out" in result["reason"], chat.effects.calls) == ("expired", True, [])
        assert (await chat.entries(thread, "decided"))[0].body["status"] == "expired"


async def test_a_cancelled_call_is_told_as_cancelled(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.gate.cancel("default", card.id, "root", "Not today.")
        await chat.run_until_idle()
        assert (chat.model.tool_results["c1"]["status"], chat.model.tool_results["c1"]["reason"]) == (
            "cancelled",
            "Not today.",
        )


async def test_a_tool_that_fails_is_told_in_its_words(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_fail"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.pending_approvals(thread))[0])
        result = chat.model.tool_results["c1"]
        assert result == {"success": False, "status": "failed", "error": "The other side said no."}


async def test_a_tool_that_breaks_is_told_without_its_secrets(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_crash", token="s3cret-s3cret"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.pending_approvals(thread))[0])
        result = chat.model.tool_results["c1"]
        assert result["status"] == "failed"
        assert "[hidden]" in result["error"]
        assert "s3cret" not in str([line.body for line in await chat.entries(thread, "resulted", "decided")])


# R46
async def test_a_tool_that_does_not_know_whether_it_took_effect_is_unknown_and_not_repeated(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_unsure"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.pending_approvals(thread))[0])
        assert (chat.model.tool_results["c1"]["status"], len(chat.effects.calls_to("t_unsure"))) == ("unknown", 1)


async def test_a_result_that_is_too_long_to_keep_does_not_make_a_failure_of_what_ran(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_much"))) as chat:
        thread = await chat.say("Much")
        (card,) = await chat.pending_approvals(thread)
        await chat.approve(card)
        assert len(chat.effects.calls_to("t_much")) == 1
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert "left out" in str(chat.model.tool_results["c1"])


# R34, R35
async def test_what_the_policy_denies_leaves_a_result_and_asks_nobody(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        await chat.put_policy(DENY)
        thread = await chat.say("Send it")
        assert (await chat.last_end(thread))["status"] == "done"
        result = chat.model.tool_results["c1"]
        assert (result["status"], result["error"]) == ("denied", "Access denied: Not here.")
        assert (chat.effects.calls, await chat.entries(thread, "asked", "decided")) == ([], [])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "JSON object"),
        ('{"to": 5}', "schema"),
        ("{}", "schema"),
        ('{"to": "bob", "to": "eve"}', "to"),
        ('{"to": "bob", "approved": true}', "schema"),
        ('{"to": "\\ud800"}', "surrogate"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_and_nobody_is_asked(
    database: Database, clock: Clock, args: str, words: str
) -> None:
    async with open_chat(database, clock, tool_calls(ToolRequest("c1", "t_send", args))) as chat:
        thread = await chat.say("Send it")
        result = chat.model.tool_results["c1"]
        assert (result["status"], words in result["error"]) == ("invalid", True)
        assert (chat.effects.calls, await chat.pending_approvals(thread)) == ([], [])


async def test_a_tool_that_the_agent_does_not_have_is_not_run(database: Database, clock: Clock) -> None:
    async with open_chat(
        database, clock, tool_calls(tool_request("c1", "cms_delete_page", slug="about"), tool_request("c2", "x" * 500))
    ) as chat:
        thread = await chat.say("Delete")
        assert all("There is no tool" in result["error"] for result in chat.model.tool_results.values())
        assert "t_send" in chat.model.tool_results["c1"]["error"]
        assert await chat.pending_approvals(thread) == []


# R20, R34
@pytest.mark.parametrize("word", ["approved", "confirmed", "approval_id", "_meta"])
async def test_what_a_model_writes_about_approval_has_no_effect(database: Database, clock: Clock, word: str) -> None:
    async with open_chat(
        database, clock, tool_calls(tool_request("c1", "t_fail", **{word: True}), text="approved: true")
    ) as chat:
        thread = await chat.say("Go")
        assert len(await chat.pending_approvals(thread)) == 1


# Several calls


# R6
async def test_three_calls_of_which_two_ask_may_be_decided_in_the_other_order(database: Database, clock: Clock) -> None:
    three = tool_calls(send("c1", "one"), tool_request("c2", "t_look", what="x"), send("c3", "three"))
    async with open_chat(database, clock, three) as chat:
        thread = await chat.say("Go")
        first, third = await chat.pending_approvals(thread)
        assert chat.effects.calls == [("t_look", {"what": "x"})]
        await chat.approve(third)
        assert (chat.effects.calls_to("t_send"), len(chat.model.prompts)) == ([{"to": "three"}], 1)
        await chat.reject(first)
        await chat.advance(8_000)
        assert chat.effects.calls_to("t_send") == [{"to": "three"}]
        assert list(chat.model.tool_results) == ["c1", "c2", "c3"]
        assert [chat.model.tool_results["c1"]["status"], chat.model.tool_results["c3"]] == [
            "rejected",
            {"ran": "t_send"},
        ]
        assert_one_result_each(chat.model.prompts[-1])


# R6
async def test_a_provider_that_gives_an_id_twice_gets_a_result_for_each_call(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send("c1", "one"), send("c1", "two"), send("", "three"))) as chat:
        thread = await chat.say("Go")
        cards = await chat.pending_approvals(thread)
        assert len(cards) == 3
        for card in cards:
            await chat.approve(card)
        assert sorted(str(args["to"]) for args in chat.effects.calls_to("t_send")) == ["one", "three", "two"]
        assert_one_result_each(chat.model.prompts[-1])
        assert len(chat.model.tool_results) == 3


# R6
async def test_a_slow_tool_that_is_free_does_not_hold_up_one_that_was_decided(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_slow"), send("c2"))) as chat:
        thread = await chat.threads.say(chat.services, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.started.wait()
        card = await _wait_for_card(chat, thread)
        await chat.services.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        await wait_until(lambda: chat.effects.calls_to("t_send"))
        assert chat.effects.calls_to("t_slow") == []
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        assert list(chat.model.tool_results) == ["c1", "c2"]
        assert (await chat.last_end(thread))["status"] == "done"


# R48
async def test_a_rule_with_approvers_is_not_decided_by_others(database: Database, clock: Clock) -> None:
    rule = "version: 1\nrules:\n  - {name: money, tools: [t_send], then: ask, approvers: {teams: [finance]}}\n"
    async with open_chat(database, clock, tool_calls(send())) as chat:
        await chat.put_policy(rule)
        thread = await chat.say("Send it")
        await chat.approve((await chat.pending_approvals(thread))[0], FAY)
        assert len(chat.effects.calls_to("t_send")) == 1


# R48
async def test_the_teams_of_a_person_who_was_removed_meanwhile_open_nothing(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send()), ModelReply("Sent."), tool_calls(send("c2"))) as chat:
        await chat.store.put_user("default", User("ann", "reviewer", teams=frozenset({"ops"})), "root")
        await chat.workspaces.refresh("default")
        await chat.put_policy("version: 1\nrules:\n  - {name: ops send, teams: [ops], then: allow}\n")
        thread = await chat.say("Send it")
        assert (len(chat.effects.calls_to("t_send")), await chat.pending_approvals(thread)) == (1, [])
        await chat.store.put_user(
            "default", User("ann", "reviewer", teams=frozenset({"ops"}), removed_at=clock.now), "root"
        )
        await chat.workspaces.refresh("default")
        thread = await chat.say("Again", thread)
        assert (len(chat.effects.calls_to("t_send")), len(await chat.pending_approvals(thread))) == (1, 1)


# R46
async def test_a_call_whose_process_died_in_the_middle_is_unknown_and_not_repeated(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_slow_write"))) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_slow_write], then: allow}\n")
        thread = await chat.threads.say(chat.services, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.started.wait()
        chat.dead_runners.add("first")
        second = chat.make_loop("second")
        await second.sweep()
        await second.wait_idle()
        assert (chat.model.tool_results["c1"]["status"], chat.effects.calls) == ("unknown", [])
        assert (await chat.last_end(thread))["status"] == "done"
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        assert len(chat.model.prompts) == 2


# R46
async def test_a_call_that_may_be_run_again_is_run_again_under_the_same_key(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_put", to="x"))) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        await chat.services.gate.start("default", card.id, "gone", 60_000)  # and dies before its effect is known
        chat.dead_runners.add("gone")
        await chat.run_until_idle()
        assert chat.effects.keys == [card.id]
        assert chat.model.tool_results == {"c1": {"ran": "t_put"}}


async def test_what_runs_in_another_process_is_waited_for(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        started = await chat.services.gate.start("default", card.id, "elsewhere", 60_000)
        await chat.run_until_idle()
        assert (await chat.status(thread), chat.effects.calls) == ("waiting", [])
        await chat.services.gate.finish("default", card.id, started.fence, ok=True, payload=OK)
        await chat.run_until_idle()
        assert (chat.model.tool_results, chat.effects.calls) == ({"c1": "ok"}, [])


# R34
async def test_a_tool_that_is_gone_after_the_approval_does_not_run(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.pending_approvals(thread)
        chat.effects.removed.add("t_send")
        await chat.approve(card)
        assert chat.effects.calls == []
        assert chat.model.tool_results["c1"]["status"] == "cancelled"
        assert "does not have this tool" in chat.model.tool_results["c1"]["reason"]
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        assert (await chat.last_end(thread))["status"] == "done"


# R34, R47
async def test_a_tool_that_changed_after_the_approval_does_not_run(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.pending_approvals(thread)
        chat.effects.sentence = "Send something to {to}"
        await chat.approve(card)
        assert (chat.effects.calls, chat.model.tool_results["c1"]["status"]) == ([], "cancelled")
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"


async def _wait_for_card(chat: ChatHarness, thread: Thread) -> Approval:
    async with asyncio.timeout(TIMEOUT):
        while not (cards := await chat.pending_approvals(thread)):  # noqa: ASYNC110  a card sets no event
            await asyncio.sleep(0.01)
    return cards[0]


# Calls that are known to fail

MISSING = CallWouldFail("There is no page 'Abuot'. Similar names: 'About'.")
TOLD = {"success": False, "status": "failed", "error": MISSING.message}
DENY_FILES = "version: 1\nrules:\n  - {name: never, tools: [t_file], then: deny, reason: Not here.}\n"


def file_call(call: str = "c1") -> ToolRequest:
    return tool_request(call, "t_file", to="Abuot")


# R3, R35
async def test_nobody_is_asked_about_a_call_that_would_fail_and_the_model_is_told(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, tool_calls(file_call(), send("c2")), ModelReply("Sorry.")) as chat:
        chat.effects.look_up_error = MISSING
        thread = await chat.say("File it")
        (card,) = await chat.pending_approvals(thread)  # the other call is asked about as ever
        assert card.subject.tool == "t_send"
        await chat.approve(card)
        assert (chat.model.tool_results["c1"], chat.effects.calls_to("t_file")) == (TOLD, [])
        assert_one_result_each(chat.model.prompts[-1])
        entries = [entry async for page in chat.store.entries("default") for entry in page]
        (denied,) = [entry for entry in entries if entry.kind == "denied"]
        assert ('"by":"preview"' in denied.data, "Abuot" in str(denied.content)) == (True, True)


# R34, R35
async def test_what_a_rule_denies_is_denied_for_its_reason_and_not_looked_up(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(file_call()), ModelReply("Sorry.")) as chat:
        await chat.put_policy(DENY_FILES)
        chat.effects.look_up_error = MISSING
        await chat.say("File it")
        result = chat.model.tool_results["c1"]
        assert (result["status"], result["reason"]) == ("denied", "Not here.")


# R3, R35
async def test_a_look_up_that_gets_no_answer_leaves_the_question_to_people(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(file_call())) as chat:
        chat.effects.look_up_error = ToolFailed("Linear cannot be reached.")
        thread = await chat.say("File it")
        (card,) = await chat.pending_approvals(thread)
        assert (
            await chat.services.inbox.show("default", card.id)
        ).card.preview == "This may fail: Linear cannot be reached."


# R19, R35
async def test_nothing_is_to_be_confirmed_that_would_fail(database: Database, clock: Clock) -> None:
    wipe = tool_request("c1", "t_wipe", page="Abuot")
    async with open_chat(database, clock, tool_calls(wipe), ModelReply("There is none.")) as chat:
        chat.effects.look_up_error = MISSING
        thread = await chat.say("Delete Abuot")
        assert chat.model.tool_results["c1"] == TOLD
        assert (await chat.store.threads.get("default", thread.id)).confirmation is None
        assert await chat.entries(thread, "confirming") == []


# R19, R35
async def test_a_confirmed_call_that_would_fail_by_now_does_not_run(database: Database, clock: Clock) -> None:
    wipe = tool_request("c1", "t_wipe", page="Abuot")
    again = tool_request("c2", "t_wipe", page="Abuot", confirmed=True)
    async with open_chat(database, clock, tool_calls(wipe), ModelReply("Shall I?"), tool_calls(again)) as chat:
        thread = await chat.say("Delete Abuot")
        chat.effects.look_up_error = MISSING
        await chat.say("yes", thread)
        assert (chat.model.tool_results["c2"], chat.effects.calls) == (TOLD, [])
        assert await chat.pending_approvals(thread) == []
