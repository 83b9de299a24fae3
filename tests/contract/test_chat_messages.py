"""Messages, stops and questions of people while a turn is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from interlock.chat.threads import UserMessage
from interlock.config.models import AgentSettings
from interlock.core.chat.transcript import Delta, ModelReply, Prompt, ToolRequest
from interlock.core.chat.transcript import PromptUserMessage as Heard
from interlock.core.decision import Acknowledgement, Approve
from interlock.core.errors import InvalidDecision, ModelFailed, NotFound
from interlock.storage.tables.idempotency import IdempotencyKey as Answers
from interlock.storage.tables.threads import Draft
from tests.chat_harness import ANN, BEN, ROOT, TIMEOUT, ChatHarness, ScriptedModel, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import BOB, Clock

SEND = tool_calls(tool_request("c1", "t_send", to="bob"))


class HangingModel(ScriptedModel):
    """Says a few words and then nothing, until it is let go or cancelled."""

    def __init__(self, *turns: ModelReply) -> None:
        super().__init__(*turns)
        self.speaking, self.go, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | ModelReply]:
        self.prompts.append(prompt)
        yield Delta("Well, ")
        self.speaking.set()
        try:
            await self.go.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled = True
            raise
        yield self.turns.pop(0) if self.turns else ModelReply("Done.")


def last_message(chat: ChatHarness) -> str:
    said = [message.text for message in chat.model.prompts[-1].messages if isinstance(message, Heard)]
    return said[-1]


# While a card is open


# R24, R55
async def test_a_message_under_a_key_withdraws_the_card_at_once_and_sent_again_leaves_the_next_one(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, SEND, SEND) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        once = (UserMessage("Once more", thread.id), Answers("default", "ann", "key"), "digest")
        await chat.threads.say_idempotent(chat.services, ANN, *once)
        stored = await chat.store.get("default", card.id)
        assert (stored.approval.status, stored.approval.decision and stored.approval.decision.by) == (
            "cancelled",
            "ann",
        )
        await chat.run_until_idle()
        (following,) = await chat.pending_approvals(thread)
        await chat.threads.say_idempotent(chat.services, ANN, *once)
        assert [each.id for each in await chat.pending_approvals(thread)] == [following.id]


async def test_a_thread_that_a_client_names_is_one_thread_and_each_person_has_their_own(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, *[ModelReply("Yes?")] * 3) as chat:
        said = [
            UserMessage("Hello", name="chat-1"),
            UserMessage("And now?", name="chat-1"),
            UserMessage("Hello", name="chat-2"),
        ]
        for number, each in enumerate(said):
            await chat.threads.say_idempotent(
                chat.services, ANN, each, Answers("default", "ann", f"key {number}"), "digest"
            )
            await chat.run_until_idle()
        first, second = (chat.threads.named_thread_id(ANN, name) for name in ("chat-1", "chat-2"))
        lines = [line.body["text"] for line in (await chat.threads.show(ANN, first))[1] if line.kind == "said"]
        assert lines == ["Hello", "And now?"]
        assert (await chat.threads.get(ANN, second)).title == "Hello"
        assert chat.threads.named_thread_id(BEN, "chat-1") != first
        with pytest.raises(NotFound):
            await chat.threads.get(BEN, first)


# R3, R55
async def test_a_new_message_withdraws_the_card_and_the_model_goes_on_with_it(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND, ModelReply("Then not.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.say("Wait, not to Bob", thread)
        stored = await chat.store.get("default", card.id)
        assert (stored.approval.status, stored.approval.decision and stored.approval.decision.by) == (
            "cancelled",
            "ann",
        )
        assert chat.model.tool_results["c1"]["status"] == "cancelled"
        assert "new message" in chat.model.tool_results["c1"]["reason"]
        assert (last_message(chat), chat.effects.calls) == ("Wait, not to Bob", [])
        assert (await chat.last_end(thread))["status"] == "done"


# R3
async def test_stopping_withdraws_the_card_and_ends_the_turn(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.threads.stop(chat.services, ANN, thread.id)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        await chat.run_until_idle()
        assert await chat.last_end(thread) == {"status": "stopped", "reason": "Stopped."}
        assert (len(chat.model.prompts), chat.effects.calls) == (1, [])
        await chat.say("Go on", thread)
        assert "stopped" in chat.model.tool_results["c1"]["reason"]


async def test_other_people_cannot_write_in_a_thread_or_stop_it(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND) as chat:
        thread = await chat.say("Send it")
        with pytest.raises(NotFound):
            await chat.threads.say(chat.services, ROOT, "Hi", thread.id)
        for act in (chat.threads.stop(chat.services, BEN, thread.id), chat.threads.show(BEN, thread.id)):
            with pytest.raises(NotFound):
                await act
        with pytest.raises(NotFound):
            await chat.threads.retry(BEN, thread.id)
        assert len(await chat.pending_approvals(thread)) == 1
        await chat.threads.stop(chat.services, ROOT, thread.id)
        assert await chat.pending_approvals(thread) == []


# R46
async def test_how_a_call_ended_that_a_dead_process_had_begun_is_found_out_although_the_person_stopped(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_put", to="bob"))) as chat:
        thread = await chat.say("Put it")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.decide("default", card.id, Approve(Acknowledgement(card.args_sha256)), BOB)
        await chat.services.gate.start("default", card.id, "gone")
        chat.dead_runners.add("gone")
        await chat.threads.stop(chat.services, ANN, thread.id)
        async with asyncio.timeout(TIMEOUT):
            await chat.run_until_idle()
        (result,) = await chat.entries(thread, "resulted")
        assert (result.body["status"], chat.effects.calls_to("t_put")) == ("succeeded", [{"to": "bob"}])
        assert (await chat.last_end(thread))["status"] == "stopped"


async def test_what_has_started_is_waited_for_when_the_person_stops(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_slow_write"))) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_slow_write], then: allow}\n")
        thread = await chat.threads.say(chat.services, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.started.wait()
        await chat.threads.stop(chat.services, ANN, thread.id)
        chat.effects.hold.set()
        await chat.loop.wait_idle()
        await chat.run_until_idle()
        (result,) = await chat.entries(thread, "resulted")
        assert (result.body["status"], result.body["result"]) == ("succeeded", "at last")
        assert (await chat.last_end(thread))["status"] == "stopped"


async def test_stopping_breaks_off_what_only_reads(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(tool_request("c1", "t_slow"))) as chat:
        thread = await chat.threads.say(chat.services, ANN, "Read the whole archive", agent="main")
        await chat.loop.sweep()
        await chat.effects.started.wait()
        await chat.threads.stop(chat.services, ANN, thread.id)
        async with asyncio.timeout(TIMEOUT):
            await chat.loop.wait_idle()
        await chat.run_until_idle()
        assert ((await chat.last_end(thread))["status"], chat.effects.calls) == ("stopped", [])


# R3
async def test_stopping_ends_what_the_model_is_saying_and_keeps_what_it_said(database: Database, clock: Clock) -> None:
    hanging = HangingModel()
    async with open_chat(database, clock, agents={"main": AgentSettings(model="hanging")}, hanging=hanging) as chat:
        thread = await chat.threads.say(chat.services, ANN, "Tell me a story", agent="main")
        await chat.loop.sweep()
        await hanging.speaking.wait()
        await chat.threads.stop(chat.services, ANN, thread.id)
        async with asyncio.timeout(TIMEOUT):
            await chat.loop.wait_idle()
        await chat.run_until_idle()
        assert hanging.cancelled
        [kept] = await chat.entries(thread, "replied")
        assert (kept.body["text"], kept.body["stopped"]) == ("Well, ", True)
        [end] = await chat.entries(thread, "ended")
        assert (end.body["status"], end.body["message"]) == ("stopped", kept.number)
        await chat.threads.say(chat.services, ANN, "Go on", thread.id)
        hanging.go.set()
        await chat.run_until_idle()
        assert hanging.prompts[-1].messages == (Heard("Tell me a story"), ModelReply("Well, "), Heard("Go on"))


# R3
async def test_stopping_keeps_what_the_model_said_in_another_process(database: Database, clock: Clock) -> None:
    hanging = HangingModel()
    async with open_chat(database, clock, agents={"main": AgentSettings(model="hanging")}, hanging=hanging) as chat:
        thread = await chat.threads.say(chat.services, ANN, "Tell me a story", agent="main")
        elsewhere = chat.make_loop("elsewhere")
        await elsewhere.sweep()
        await hanging.speaking.wait()
        await chat.store.threads.write_draft("default", thread.id, Draft(1, "Well"))  # a little behind
        await chat.threads.stop(chat.services, ANN, thread.id)
        async with asyncio.timeout(TIMEOUT):
            await elsewhere.wait_idle()
        await chat.run_until_idle()
        assert [reply.body["text"] for reply in await chat.entries(thread, "replied")] == ["Well"]


# R3
async def test_stopping_keeps_no_text_that_was_written_after_its_turn(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND) as chat:
        thread = await chat.say("Send it")
        await chat.store.threads.write_draft("default", thread.id, Draft(1, "I se"))  # of a process that was late
        await chat.threads.stop(chat.services, ANN, thread.id)
        await chat.run_until_idle()
        assert len(await chat.entries(thread, "replied")) == 1
        assert await chat.pending_approvals(thread) == []


# R3, R55
async def test_calls_of_a_reply_that_did_not_know_the_newest_message_do_not_run(
    database: Database, clock: Clock
) -> None:
    hanging = HangingModel(tool_calls(tool_request("c1", "t_send", to="bob"), tool_request("c2", "t_look", what="x")))
    async with open_chat(
        database, clock, agents={"main": AgentSettings(model="hanging", tools=("t",))}, hanging=hanging
    ) as chat:
        thread = await chat.threads.say(chat.services, ANN, "Send it", agent="main")
        await chat.loop.sweep()
        await hanging.speaking.wait()
        await chat.threads.say(chat.services, ANN, "No, do not", thread.id)
        hanging.go.set()
        await chat.loop.wait_idle()
        await chat.run_until_idle()
        assert (chat.effects.calls, await chat.pending_approvals(thread)) == ([], [])
        assert [result["status"] for result in hanging.tool_results.values()] == ["cancelled", "cancelled"]
        assert hanging.prompts[-1].messages[-1] == Heard("No, do not")
        assert (await chat.last_end(thread))["status"] == "done"


# Questions of reviewers


# R55
async def test_the_agent_answers_a_reviewer_and_nothing_is_decided_by_it(database: Database, clock: Clock) -> None:
    answer = ModelReply("Because Ann asked.", (ToolRequest("x", "t_send", '{"to": "eve"}'),))
    async with open_chat(database, clock, SEND, answer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.ask("default", card.id, "Why Bob?", BOB)
        await chat.run_until_idle()
        view = await chat.services.inbox.show("default", card.id)
        assert [entry.kind for entry in view.timeline][-2:] == ["asked", "replied"]
        assert "Because Ann asked." in str(view.timeline[-1].content)
        assert (view.stored.approval.status, view.stored.approval.discussion.open_questions) == ("pending", ())
        assert chat.model.prompts[-1].tools == ()
        assert "Why Bob?" in last_message(chat)
        assert (await chat.status(thread), chat.effects.calls) == ("waiting", [])
        assert len(await chat.entries(thread, "replied")) == 1
        await chat.approve((await chat.pending_approvals(thread))[0])
        assert chat.effects.calls_to("t_send") == [{"to": "bob"}]


# R55
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ModelFailed("Overloaded.", is_retryable=True), "could not answer"),
        (ModelReply(""), "nothing to say"),
        (ModelReply(" \n "), "nothing to say"),
        (ModelReply("a\x00b"), "a\ufffdb"),
        (ModelReply("x" * 50_000), "xxx"),
    ],
    ids=["failure", "nothing", "blank", "NUL", "too long"],
)
async def test_a_reviewers_question_gets_exactly_one_answer(
    database: Database, clock: Clock, answer: ModelReply | Exception, words: str
) -> None:
    async with open_chat(database, clock, SEND, answer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.ask("default", card.id, "Why?", BOB)
        async with asyncio.timeout(TIMEOUT):
            await chat.run_until_idle()
        view = await chat.services.inbox.show("default", card.id)
        assert words in (view.timeline[-1].content or b"").decode()
        assert len(chat.model.prompts) == 2


# Questions of the agent


async def ask_question(chat: ChatHarness, **question: object) -> str:
    chat.model.turns = [tool_calls(tool_request("c1", "request_human_input", **question))]
    thread = await chat.say("Paint it")
    (card,) = await chat.pending_approvals(thread)
    assert await chat.status(thread) == "waiting"
    return card.id


# R37
@pytest.mark.parametrize(
    ("question", "message", "answer", "result"),
    [
        ({"question": "Which colour?"}, "Blue, like the sea", None, "Blue, like the sea"),
        ({"question": "Which?", "choices": ["red", "blue"]}, "", "blue", "blue"),
        (
            {"question": "How?", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "",
            {"n": 3},
            {"n": 3},
        ),
    ],
    ids=["text", "choice", "schema"],
)
async def test_what_a_person_answers_is_the_result_of_the_question(
    database: Database, clock: Clock, question: dict[str, object], message: str, answer: object, result: object
) -> None:
    async with open_chat(database, clock) as chat:
        card = (await chat.store.get("default", await ask_question(chat, **question))).approval
        await chat.respond(card, message, answer)
        assert chat.model.tool_results["c1"] == result


# R27, R37
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ({"question": "Which?", "choices": ["red", "blue"]}, "green"),
        ({"question": "How many?", "schema": {"type": "integer"}}, "three"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_question_open(
    database: Database, clock: Clock, question: dict[str, object], answer: object
) -> None:
    async with open_chat(database, clock) as chat:
        card = (await chat.store.get("default", await ask_question(chat, **question))).approval
        with pytest.raises(InvalidDecision):
            await chat.respond(card, "", answer)
        assert (await chat.store.get("default", card.id)).approval.status == "pending"


# R37
async def test_a_question_can_be_answered_and_never_approved(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        card = (await chat.store.get("default", await ask_question(chat, question="Sure?"))).approval
        with pytest.raises(InvalidDecision):
            await chat.approve(card)
        await chat.advance(601_000)
        assert "timed out" in chat.model.tool_results["c1"]["reason"]
