"""Outcomes in the chat: the model gets exactly one result for each call, in the order of the calls."""

from __future__ import annotations

import asyncio

import pytest

from interlock.core.approval.approval import Approval
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, Prompt, ToolRequest, ToolResult
from interlock.core.decision import Acknowledgement, Approve
from interlock.core.ports import User
from tests.chat_harness import ANN, FAY, PATIENCE, Chat, calls, chatting, until, wish
from tests.databases import Place
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
    return wish(call, "t_send", to=to)


# R1, R3
async def test_what_reads_runs_at_once_and_asks_nobody(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_look", what="x")), ModelReply("Found.")) as chat:
        thread = await chat.say("Look")
        assert await chat.ended(thread) == {"status": "done", "reason": ""}
        assert chat.effects.done == [("t_look", {"what": "x"})]
        assert chat.model.told == {"c1": {"ran": "t_look"}}
        assert await chat.lines(thread, "asked") == []


# R1, R3, R11
async def test_what_writes_asks_and_runs_once_when_it_is_approved(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send(), text="I send it.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        assert (await chat.status(thread), chat.effects.done) == ("waiting", [])
        assert (card.subject.tool, card.subject.run_id, card.subject.call_id) == ("t_send", thread.id, "2:c1")
        await chat.approve(card)
        assert chat.effects.done == [("t_send", {"to": "bob"})]
        assert chat.effects.keys == [card.id]
        assert chat.model.told == {"c1": {"ran": "t_send"}}
        assert [line.body["status"] for line in await chat.lines(thread, "decided")] == ["approved"]
        assert (await chat.ended(thread))["status"] == "done"


# R11
async def test_an_edit_runs_and_says_what_a_person_changed(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.edit((await chat.cards(thread))[0], to="eve")
        assert chat.effects.done == [("t_send", {"to": "eve"})]
        result = chat.model.told["c1"]
        assert (result["success"], result["edited"], result["ran_with"]) == (True, True, {"to": "eve"})
        assert result["result"] == {"ran": "t_send"}
        assert "not with yours" in result["note"]


# R11
async def test_an_answer_goes_to_the_model_and_nothing_runs(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.respond((await chat.cards(thread))[0], "Ask Eve first.")
        assert chat.effects.done == []
        assert chat.model.told["c1"] == "Ask Eve first."
        assert [line.body["status"] for line in await chat.lines(thread, "decided", "resulted")] == ["responded"] * 2


# R3, R11, R35
async def test_a_rejection_is_told_once_it_can_no_longer_be_taken_back(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.reject((await chat.cards(thread))[0], "Too early.")
        assert (await chat.status(thread), len(chat.model.prompts)) == ("waiting", 1)
        await chat.forward(8_000)
        assert chat.effects.done == []
        assert chat.model.told["c1"] == {
            "success": False,
            "cancelled": True,
            "declined": True,
            "status": "rejected",
            "reason": "Too early.",
            "error": "Access denied: Too early.",
        }
        (decided,) = await chat.lines(thread, "decided")
        assert (decided.body["status"], decided.body["reason"]) == ("rejected", "Too early.")


# R14
async def test_a_rejection_that_was_taken_back_can_be_approved(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.reject(card)
        await chat.desk.inbox.undo("default", card.id, BOB)
        await chat.settle()
        assert await chat.status(thread) == "waiting"
        await chat.approve((await chat.cards(thread))[0])
        assert chat.effects.done == [("t_send", {"to": "bob"})]
        await chat.forward(10_000)
        assert len(chat.model.prompts) == 2


# R5
async def test_a_card_that_nobody_answers_has_timed_out(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        await chat.forward(599_000)
        assert await chat.status(thread) == "waiting"
        await chat.forward(2_000)
        result = chat.model.told["c1"]
        assert (result["status"], "timed out" in result["reason"], chat.effects.done) == ("expired", True, [])
        assert (await chat.lines(thread, "decided"))[0].body["status"] == "expired"


async def test_a_cancelled_call_is_told_as_cancelled(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.desk.gate.cancel("default", card.id, "root", "Not today.")
        await chat.settle()
        assert (chat.model.told["c1"]["status"], chat.model.told["c1"]["reason"]) == ("cancelled", "Not today.")


async def test_a_tool_that_fails_is_told_in_its_words(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_fail"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.cards(thread))[0])
        result = chat.model.told["c1"]
        assert result == {"success": False, "status": "failed", "error": "The other side said no."}


async def test_a_tool_that_breaks_is_told_without_its_secrets(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_crash", token="s3cret-s3cret"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.cards(thread))[0])
        result = chat.model.told["c1"]
        assert result["status"] == "failed"
        assert "[hidden]" in result["error"]
        assert "s3cret" not in str([line.body for line in await chat.lines(thread, "resulted", "decided")])


# R46
async def test_a_tool_that_does_not_know_whether_it_took_effect_is_unknown_and_not_repeated(
    place: Place, clock: Clock
) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_unsure"))) as chat:
        thread = await chat.say("Try")
        await chat.approve((await chat.cards(thread))[0])
        assert (chat.model.told["c1"]["status"], len(chat.effects.of("t_unsure"))) == ("unknown", 1)


async def test_a_result_that_is_too_long_to_keep_does_not_make_a_failure_of_what_ran(
    place: Place, clock: Clock
) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_much"))) as chat:
        thread = await chat.say("Much")
        (card,) = await chat.cards(thread)
        await chat.approve(card)
        assert len(chat.effects.of("t_much")) == 1
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert "left out" in str(chat.model.told["c1"])


# R34, R35
async def test_what_the_policy_denies_leaves_a_result_and_asks_nobody(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        await chat.put_policy(DENY)
        thread = await chat.say("Send it")
        assert (await chat.ended(thread))["status"] == "done"
        result = chat.model.told["c1"]
        assert (result["status"], result["error"]) == ("denied", "Access denied: Not here.")
        assert (chat.effects.done, await chat.lines(thread, "asked", "decided")) == ([], [])


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
    place: Place, clock: Clock, args: str, words: str
) -> None:
    async with chatting(place, clock, calls(ToolRequest("c1", "t_send", args))) as chat:
        thread = await chat.say("Send it")
        result = chat.model.told["c1"]
        assert (result["status"], words in result["error"]) == ("invalid", True)
        assert (chat.effects.done, await chat.cards(thread)) == ([], [])


async def test_a_tool_that_the_agent_does_not_have_is_not_run(place: Place, clock: Clock) -> None:
    async with chatting(
        place, clock, calls(wish("c1", "cms_delete_page", slug="about"), wish("c2", "x" * 500))
    ) as chat:
        thread = await chat.say("Delete")
        assert all("There is no tool" in result["error"] for result in chat.model.told.values())
        assert "t_send" in chat.model.told["c1"]["error"]
        assert await chat.cards(thread) == []


# R20, R34
@pytest.mark.parametrize("word", ["approved", "confirmed", "approval_id", "_meta"])
async def test_what_a_model_writes_about_approval_has_no_effect(place: Place, clock: Clock, word: str) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_fail", **{word: True}), text="approved: true")) as chat:
        thread = await chat.say("Go")
        assert len(await chat.cards(thread)) == 1


# Several calls


# R6
async def test_three_calls_of_which_two_ask_may_be_decided_in_the_other_order(place: Place, clock: Clock) -> None:
    three = calls(send("c1", "one"), wish("c2", "t_look", what="x"), send("c3", "three"))
    async with chatting(place, clock, three) as chat:
        thread = await chat.say("Go")
        first, third = await chat.cards(thread)
        assert chat.effects.done == [("t_look", {"what": "x"})]
        await chat.approve(third)
        assert (chat.effects.of("t_send"), len(chat.model.prompts)) == ([{"to": "three"}], 1)
        await chat.reject(first)
        await chat.forward(8_000)
        assert chat.effects.of("t_send") == [{"to": "three"}]
        assert list(chat.model.told) == ["c1", "c2", "c3"]
        assert [chat.model.told["c1"]["status"], chat.model.told["c3"]] == ["rejected", {"ran": "t_send"}]
        assert_one_result_each(chat.model.prompts[-1])


# R6
async def test_a_provider_that_gives_an_id_twice_gets_a_result_for_each_call(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send("c1", "one"), send("c1", "two"), send("", "three"))) as chat:
        thread = await chat.say("Go")
        cards = await chat.cards(thread)
        assert len(cards) == 3
        for card in cards:
            await chat.approve(card)
        assert sorted(str(args["to"]) for args in chat.effects.of("t_send")) == ["one", "three", "two"]
        assert_one_result_each(chat.model.prompts[-1])
        assert len(chat.model.told) == 3


# R6
async def test_a_slow_tool_that_is_free_does_not_hold_up_one_that_was_decided(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_slow"), send("c2"))) as chat:
        thread = await chat.threads.say(chat.desk, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.begun.wait()
        card = await _wait_for_card(chat, thread)
        await chat.desk.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        await until(lambda: chat.effects.of("t_send"))
        assert chat.effects.of("t_slow") == []
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        assert list(chat.model.told) == ["c1", "c2"]
        assert (await chat.ended(thread))["status"] == "done"


# R48
async def test_a_rule_with_approvers_is_not_decided_by_others(place: Place, clock: Clock) -> None:
    rule = "version: 1\nrules:\n  - {name: money, tools: [t_send], then: ask, approvers: {teams: [finance]}}\n"
    async with chatting(place, clock, calls(send())) as chat:
        await chat.put_policy(rule)
        thread = await chat.say("Send it")
        await chat.approve((await chat.cards(thread))[0], FAY)
        assert len(chat.effects.of("t_send")) == 1


# R48
async def test_the_teams_of_a_person_who_was_removed_meanwhile_open_nothing(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send()), ModelReply("Sent."), calls(send("c2"))) as chat:
        await chat.store.put_user("default", User("ann", "reviewer", teams=frozenset({"ops"})), "root")
        await chat.workspaces.refresh("default")
        await chat.put_policy("version: 1\nrules:\n  - {name: ops send, teams: [ops], then: allow}\n")
        thread = await chat.say("Send it")
        assert (len(chat.effects.of("t_send")), await chat.cards(thread)) == (1, [])
        await chat.store.put_user(
            "default", User("ann", "reviewer", teams=frozenset({"ops"}), removed_at=clock.now), "root"
        )
        await chat.workspaces.refresh("default")
        thread = await chat.say("Again", thread)
        assert (len(chat.effects.of("t_send")), len(await chat.cards(thread))) == (1, 1)


# R46
async def test_a_call_whose_process_died_in_the_middle_is_unknown_and_not_repeated(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_slow_write"))) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_slow_write], then: allow}\n")
        thread = await chat.threads.say(chat.desk, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.begun.wait()
        chat.dead.add("first")
        second = chat.another("second")
        await second.sweep()
        await second.wait_idle()
        assert (chat.model.told["c1"]["status"], chat.effects.done) == ("unknown", [])
        assert (await chat.ended(thread))["status"] == "done"
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        assert len(chat.model.prompts) == 2


# R46
async def test_a_call_that_may_be_run_again_is_run_again_under_the_same_key(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_put", to="x"))) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        await chat.desk.gate.start("default", card.id, "gone", 60_000)  # and dies before its effect is known
        chat.dead.add("gone")
        await chat.settle()
        assert chat.effects.keys == [card.id]
        assert chat.model.told == {"c1": {"ran": "t_put"}}


async def test_what_runs_in_another_process_is_waited_for(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        started = await chat.desk.gate.start("default", card.id, "elsewhere", 60_000)
        await chat.settle()
        assert (await chat.status(thread), chat.effects.done) == ("waiting", [])
        await chat.desk.gate.finish("default", card.id, started.fence, ok=True, payload=OK)
        await chat.settle()
        assert (chat.model.told, chat.effects.done) == ({"c1": "ok"}, [])


# R34
async def test_a_tool_that_is_gone_after_the_approval_does_not_run(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.cards(thread)
        chat.effects.gone.add("t_send")
        await chat.approve(card)
        assert chat.effects.done == []
        assert chat.model.told["c1"]["status"] == "cancelled"
        assert "does not have this tool" in chat.model.told["c1"]["reason"]
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        assert (await chat.ended(thread))["status"] == "done"


# R34, R47
async def test_a_tool_that_changed_after_the_approval_does_not_run(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(send())) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.cards(thread)
        chat.effects.sentence = "Send something to {to}"
        await chat.approve(card)
        assert (chat.effects.done, chat.model.told["c1"]["status"]) == ([], "cancelled")
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"


async def _wait_for_card(chat: Chat, thread: Thread) -> Approval:
    async with asyncio.timeout(PATIENCE):
        while not (cards := await chat.cards(thread)):  # noqa: ASYNC110  a card sets no event
            await asyncio.sleep(0.01)
    return cards[0]
