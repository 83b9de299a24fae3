"""People around a turn: messages and stops while a card is open, questions both ways, and models that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock.chat.agents import Agents
from interlock.configuration import Agent
from interlock.core.approval import Approval
from interlock.core.decision import Approve, Seen
from interlock.core.errors import Conflict, InvalidDecision, ModelFailed, NotFound, StoreUnavailable
from interlock.core.ports import Query
from interlock.core.prompt import Delta, Prompt, Replied, Said, Wish
from tests.chatting import ANN, BEN, MAIN, PATIENCE, ROOT, Chat, Script, calls, chatting, until, wish
from tests.places import Place
from tests.support import BOB, Clock

SEND = calls(wish("c1", "t_send", to="bob"))
OVERLOADED = ModelFailed("The model is overloaded.", again=True)


class Hanging(Script):
    """Says a few words and then nothing, until it is let go or cancelled."""

    def __init__(self, *turns: Replied) -> None:
        super().__init__(*turns)
        self.speaking, self.go, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def turn(self, prompt: Prompt) -> AsyncIterator[Delta | Replied]:
        self.prompts.append(prompt)
        yield Delta("Well, ")
        self.speaking.set()
        try:
            await self.go.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled = True
            raise
        yield self.turns.pop(0) if self.turns else Replied("Done.")


def last_said(chat: Chat) -> str:
    said = [message.text for message in chat.model.prompts[-1].messages if isinstance(message, Said)]
    return said[-1]


# While a card is open


# R3, R55
async def test_a_new_message_withdraws_the_card_and_the_model_goes_on_with_it(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND, Replied("Then not.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.say("Wait, not to Bob", thread)
        stored = await chat.store.get("default", card.id)
        assert (stored.approval.status, stored.approval.decision and stored.approval.decision.by) == (
            "cancelled",
            "ann",
        )
        assert chat.model.told["c1"]["status"] == "cancelled"
        assert "new message" in chat.model.told["c1"]["reason"]
        assert (last_said(chat), chat.effects.done) == ("Wait, not to Bob", [])
        assert (await chat.ended(thread))["status"] == "done"


# R3
async def test_stopping_withdraws_the_card_and_ends_the_turn(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.threads.stop(chat.desk, ANN, thread.id)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        await chat.settle()
        assert await chat.ended(thread) == {"status": "stopped", "reason": "Stopped."}
        assert (len(chat.model.prompts), chat.effects.done) == (1, [])
        await chat.say("Go on", thread)
        assert "stopped" in chat.model.told["c1"]["reason"]


async def test_strangers_neither_speak_in_a_thread_nor_stop_it(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND) as chat:
        thread = await chat.say("Send it")
        with pytest.raises(NotFound):
            await chat.threads.say(chat.desk, ROOT, "Hi", thread.id)
        for act in (chat.threads.stop(chat.desk, BEN, thread.id), chat.threads.show(BEN, thread.id)):
            with pytest.raises(NotFound):
                await act
        with pytest.raises(NotFound):
            await chat.threads.retry(BEN, thread.id)
        assert len(await chat.cards(thread)) == 1
        await chat.threads.stop(chat.desk, ROOT, thread.id)
        assert await chat.cards(thread) == []


# R46
async def test_how_a_call_ended_that_a_dead_process_had_begun_is_found_out_although_the_person_stopped(
    place: Place, clock: Clock
) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_put", to="bob"))) as chat:
        thread = await chat.say("Put it")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.decide("default", card.id, Approve(Seen(card.args_sha256)), BOB)
        await chat.desk.gate.start("default", card.id, "gone")
        chat.dead.add("gone")
        await chat.threads.stop(chat.desk, ANN, thread.id)
        async with asyncio.timeout(PATIENCE):
            await chat.settle()
        (result,) = await chat.lines(thread, "resulted")
        assert (result.body["status"], chat.effects.of("t_put")) == ("succeeded", [{"to": "bob"}])
        assert (await chat.ended(thread))["status"] == "stopped"


async def test_what_has_started_is_waited_for_when_the_person_stops(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_slow_write"))) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: free, tools: [t_slow_write], then: allow}\n")
        thread = await chat.threads.say(chat.desk, ANN, "Go", agent="main")
        await chat.loop.sweep()
        await chat.effects.begun.wait()
        await chat.threads.stop(chat.desk, ANN, thread.id)
        chat.effects.hold.set()
        await chat.loop.settled()
        await chat.settle()
        (result,) = await chat.lines(thread, "resulted")
        assert (result.body["status"], result.body["result"]) == ("succeeded", "at last")
        assert (await chat.ended(thread))["status"] == "stopped"


async def test_stopping_breaks_off_what_only_reads(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(wish("c1", "t_slow"))) as chat:
        thread = await chat.threads.say(chat.desk, ANN, "Read the whole archive", agent="main")
        await chat.loop.sweep()
        await chat.effects.begun.wait()
        await chat.threads.stop(chat.desk, ANN, thread.id)
        async with asyncio.timeout(PATIENCE):
            await chat.loop.settled()
        await chat.settle()
        assert ((await chat.ended(thread))["status"], chat.effects.done) == ("stopped", [])


async def test_stopping_ends_what_the_model_is_saying(place: Place, clock: Clock) -> None:
    hanging = Hanging()
    async with chatting(place, clock, agents={"main": Agent(model="hanging")}, hanging=hanging) as chat:
        thread = await chat.threads.say(chat.desk, ANN, "Tell me a story", agent="main")
        await chat.loop.sweep()
        await hanging.speaking.wait()
        await chat.threads.stop(chat.desk, ANN, thread.id)
        async with asyncio.timeout(PATIENCE):
            await chat.loop.settled()
        await chat.settle()
        assert hanging.cancelled
        assert (await chat.ended(thread))["status"] == "stopped"
        assert await chat.lines(thread, "replied") == []


# R3, R55
async def test_calls_of_a_reply_that_did_not_know_the_newest_message_do_not_run(place: Place, clock: Clock) -> None:
    hanging = Hanging(calls(wish("c1", "t_send", to="bob"), wish("c2", "t_look", what="x")))
    async with chatting(place, clock, agents={"main": Agent(model="hanging", tools=("t",))}, hanging=hanging) as chat:
        thread = await chat.threads.say(chat.desk, ANN, "Send it", agent="main")
        await chat.loop.sweep()
        await hanging.speaking.wait()
        await chat.threads.say(chat.desk, ANN, "No, do not", thread.id)
        hanging.go.set()
        await chat.loop.settled()
        await chat.settle()
        assert (chat.effects.done, await chat.cards(thread)) == ([], [])
        assert [told["status"] for told in hanging.told.values()] == ["cancelled", "cancelled"]
        assert hanging.prompts[-1].messages[-1] == Said("No, do not")
        assert (await chat.ended(thread))["status"] == "done"


# Questions of reviewers


# R55
async def test_the_agent_answers_a_reviewer_and_nothing_is_decided_by_it(place: Place, clock: Clock) -> None:
    answer = Replied("Because Ann asked.", (Wish("x", "t_send", '{"to": "eve"}'),))
    async with chatting(place, clock, SEND, answer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.ask("default", card.id, "Why Bob?", BOB)
        await chat.settle()
        view = await chat.desk.inbox.show("default", card.id)
        assert [entry.kind for entry in view.timeline][-2:] == ["asked", "replied"]
        assert "Because Ann asked." in str(view.timeline[-1].content)
        assert (view.stored.approval.status, view.stored.approval.open_questions) == ("pending", ())
        assert chat.model.prompts[-1].tools == ()
        assert "Why Bob?" in last_said(chat)
        assert (await chat.status(thread), chat.effects.done) == ("waiting", [])
        assert len(await chat.lines(thread, "replied")) == 1
        await chat.approve((await chat.cards(thread))[0])
        assert chat.effects.of("t_send") == [{"to": "bob"}]


# R55
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ModelFailed("Overloaded.", again=True), "could not answer"),
        (Replied(""), "nothing to say"),
        (Replied(" \n "), "nothing to say"),
        (Replied("a\x00b"), "a\ufffdb"),
        (Replied("x" * 50_000), "xxx"),
    ],
    ids=["failure", "nothing", "blank", "NUL", "too long"],
)
async def test_a_reviewer_gets_one_answer_whatever_the_model_does(
    place: Place, clock: Clock, answer: Replied | Exception, words: str
) -> None:
    async with chatting(place, clock, SEND, answer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.ask("default", card.id, "Why?", BOB)
        async with asyncio.timeout(PATIENCE):
            await chat.settle()
        view = await chat.desk.inbox.show("default", card.id)
        assert words in (view.timeline[-1].content or b"").decode()
        assert len(chat.model.prompts) == 2


# Questions of the agent


async def asked(chat: Chat, **question: object) -> str:
    chat.model.turns = [calls(wish("c1", "request_human_input", **question))]
    thread = await chat.say("Paint it")
    (card,) = await chat.cards(thread)
    assert await chat.status(thread) == "waiting"
    return card.id


# R37
@pytest.mark.parametrize(
    ("question", "message", "answer", "told"),
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
    place: Place, clock: Clock, question: dict[str, object], message: str, answer: object, told: object
) -> None:
    async with chatting(place, clock) as chat:
        card = (await chat.store.get("default", await asked(chat, **question))).approval
        await chat.respond(card, message, answer)
        assert chat.model.told["c1"] == {"answer": told}


# R27, R37
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ({"question": "Which?", "choices": ["red", "blue"]}, "green"),
        ({"question": "How many?", "schema": {"type": "integer"}}, "three"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_question_open(
    place: Place, clock: Clock, question: dict[str, object], answer: object
) -> None:
    async with chatting(place, clock) as chat:
        card = (await chat.store.get("default", await asked(chat, **question))).approval
        with pytest.raises(InvalidDecision):
            await chat.respond(card, "", answer)
        assert (await chat.store.get("default", card.id)).approval.status == "pending"


# R37
async def test_a_question_can_be_answered_and_never_approved(place: Place, clock: Clock) -> None:
    async with chatting(place, clock) as chat:
        card = (await chat.store.get("default", await asked(chat, question="Sure?"))).approval
        with pytest.raises(InvalidDecision):
            await chat.approve(card)
        await chat.forward(121_000)
        assert "timed out" in chat.model.told["c1"]["reason"]


# Models that fail


# R3
async def test_a_failing_model_is_tried_again_and_then_it_is_an_error_that_the_person_can_retry(
    place: Place, clock: Clock
) -> None:
    async with chatting(place, clock, *[OVERLOADED] * 4, Replied("Hello.")) as chat:
        thread = await chat.say("Hi")
        tries = [len(chat.model.prompts)]
        for pause in (1_000, 4_000, 15_000):
            await chat.forward(pause - 1)
            assert len(chat.model.prompts) == tries[-1]
            await chat.forward(1)
            tries.append(len(chat.model.prompts))
        assert tries == [1, 2, 3, 4]
        assert await chat.ended(thread) == {"status": "error", "reason": "The model is overloaded. (tried 4 times)"}
        await chat.threads.retry(ANN, thread.id)
        await chat.settle()
        assert (await chat.ended(thread))["status"] == "done"
        assert len(await chat.lines(thread, "replied")) == 1


# R3
async def test_what_a_providers_library_raises_unforeseen_is_a_failure_like_others(place: Place, clock: Clock) -> None:
    def unforeseen(_: Prompt) -> Replied:
        raise KeyError("choices")

    async with chatting(place, clock, unforeseen, Replied("Hello.")) as chat:
        thread = await chat.say("Hi")
        (failed,) = await chat.lines(thread, "failed")
        assert failed.body["error"] == "The model failed unexpectedly (KeyError)."
        await chat.forward(1_000)
        assert (await chat.ended(thread))["status"] == "done"


async def test_a_model_that_comes_back_in_time_leaves_no_error(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, OVERLOADED, SEND, OVERLOADED, Replied("Sent.")) as chat:
        thread = await chat.say("Send")
        await chat.forward(1_000)
        await chat.approve((await chat.cards(thread))[0])
        await chat.forward(1_000)
        assert ((await chat.ended(thread))["status"], len(chat.effects.done)) == ("done", 1)
        assert [line.body["attempt"] for line in await chat.lines(thread, "failed")] == [1, 1]


async def test_what_another_try_cannot_mend_is_an_error_at_once(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, ModelFailed("The key is wrong.", again=False)) as chat:
        thread = await chat.say("Hi")
        assert (await chat.ended(thread))["reason"] == "The key is wrong."


async def test_a_thread_that_is_at_work_is_not_tried_again(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND) as chat:
        thread = await chat.say("Send it")
        with pytest.raises(Conflict):
            await chat.threads.retry(ANN, thread.id)


async def test_a_fault_inside_ends_the_turn_and_the_next_message_goes_on(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, Replied("Better.")) as chat:
        model = chat.models.pop("main")  # whoever opens it meets a KeyError that nobody foresaw
        thread = await chat.say("Hi")
        ended = await chat.ended(thread)
        assert (ended["status"], "server's log" in str(ended["reason"])) == ("error", True)
        assert [type(failure) for failure in chat.failures] == [KeyError]
        chat.failures.clear()
        chat.models["main"] = model
        await chat.say("Again", thread)
        assert (await chat.ended(thread))["status"] == "done"


async def test_an_answer_that_is_too_long_to_keep_is_an_error_in_plain_words(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, Replied("x" * 1_100_000)) as chat:
        thread = await chat.say("Hi")
        ended = await chat.ended(thread)
        assert (ended["status"], "too long" in str(ended["reason"])) == ("error", True)


async def test_an_agent_that_is_gone_is_said_to_be_gone(place: Place, clock: Clock) -> None:
    async with chatting(place, clock) as chat:
        with pytest.raises(NotFound):
            await chat.say("Hi", agent="nobody")
        thread = await chat.threads.say(chat.desk, ANN, "Hi", agent="main")
        chat.agents = Agents({})
        chat.loop = chat.another("second")
        await chat.settle()
        assert "no agent 'main'" in str((await chat.ended(thread))["reason"])


# Limits


async def test_a_limit_is_said_and_a_message_goes_on(place: Place, clock: Clock) -> None:
    look = calls(wish("c1", "t_look", what="x"))
    limited = Agent(tools=MAIN.tools, limits={"turns": 2})
    async with chatting(place, clock, look, look, look, agents={"main": limited}) as chat:
        thread = await chat.say("Look")
        ended = await chat.ended(thread)
        assert (ended["status"], "2 model turns" in str(ended["reason"])) == ("limit", True)
        assert len(chat.model.prompts) == 2
        await chat.say("Go on", thread)
        assert len(chat.model.prompts) == 4
        assert (await chat.ended(thread))["status"] == "done"


# The loop


# R3
async def test_the_loop_takes_up_what_comes_and_stops_when_it_is_told(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND) as chat:
        stop = asyncio.Event()
        running = asyncio.create_task(chat.loop.run(stop))
        thread = await chat.threads.say(chat.desk, ANN, "Send it", agent="main")
        async with asyncio.timeout(PATIENCE):
            while not await chat.cards(thread):  # noqa: ASYNC110  a card sets no event
                await asyncio.sleep(0.01)
        (card,) = await chat.cards(thread)
        await chat.desk.gate.cancel("default", card.id, "ann")
        await until(lambda: len(chat.model.prompts) == 2)
        stop.set()
        await running
        assert (await chat.desk.inbox.list("default", Query(statuses=("pending",)))).items == ()
        assert (await chat.ended(thread))["status"] == "done"


# Ending in order


# R32
async def test_a_loop_that_is_told_to_end_before_its_threads_began_ends(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, Replied("Hello.")) as chat:
        await chat.threads.say(await chat.workspaces.doors("default"), ANN, "Hello", agent="main")
        others = asyncio.all_tasks()
        assert await chat.loop.sweep() == 1
        for task in asyncio.all_tasks() - others:
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            await chat.loop.settled()


# R32, R46
async def test_what_a_tool_gave_is_told_to_a_database_that_was_away(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, SEND, Replied("Sent.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        gate = (await chat.workspaces.doors("default")).gate
        finish, failures = gate.finish, [StoreUnavailable("Away."), StoreUnavailable("Away.")]

        async def away(*values: Any, **named: Any) -> Approval:
            if failures:
                raise failures.pop()
            return await finish(*values, **named)

        gate.finish = away  # type: ignore[method-assign]  # the moment between the tool's end and its record
        await chat.approve(card)
        await chat.settle()
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert chat.effects.of("t_send") == [{"to": "bob"}]
        assert (await chat.ended(thread))["status"] == "done"
