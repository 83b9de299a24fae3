"""Failing models, internal errors, limits and early ends: how the turn ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.chat.agents import AgentDirectory
from interlock.config.models import AgentSettings
from interlock.core.approval.approval import Approval
from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.core.errors import Conflict, ModelFailed, NotFound, StoreUnavailable
from interlock.core.ports import ApprovalQuery
from tests.chat_harness import ANN, MAIN, TIMEOUT, open_chat, tool_calls, tool_request, wait_until
from tests.databases import Database
from tests.support import Clock

SEND = tool_calls(tool_request("c1", "t_send", to="bob"))
OVERLOADED = ModelFailed("The model is overloaded.", is_retryable=True)


# Models that fail


# R3
async def test_a_failing_model_is_tried_again_and_then_it_is_an_error_that_the_person_can_retry(
    database: Database, clock: Clock
) -> None:
    async with open_chat(database, clock, *[OVERLOADED] * 4, ModelReply("Hello.")) as chat:
        thread = await chat.say("Hi")
        tries = [len(chat.model.prompts)]
        for pause in (1_000, 4_000, 15_000):
            await chat.advance(pause - 1)
            assert len(chat.model.prompts) == tries[-1]
            await chat.advance(1)
            tries.append(len(chat.model.prompts))
        assert tries == [1, 2, 3, 4]
        assert await chat.last_end(thread) == {"status": "error", "reason": "The model is overloaded. (tried 4 times)"}
        await chat.threads.retry(ANN, thread.id)
        await chat.run_until_idle()
        assert (await chat.last_end(thread))["status"] == "done"
        assert len(await chat.entries(thread, "replied")) == 1


# R3
async def test_what_a_providers_library_raises_unforeseen_is_a_failure_like_others(
    database: Database, clock: Clock
) -> None:
    def unforeseen(_: Prompt) -> ModelReply:
        raise KeyError("choices")

    async with open_chat(database, clock, unforeseen, ModelReply("Hello.")) as chat:
        thread = await chat.say("Hi")
        (failed,) = await chat.entries(thread, "failed")
        assert failed.body["error"] == "The model failed unexpectedly (KeyError)."
        await chat.advance(1_000)
        assert (await chat.last_end(thread))["status"] == "done"


async def test_a_model_that_comes_back_in_time_leaves_no_error(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, OVERLOADED, SEND, OVERLOADED, ModelReply("Sent.")) as chat:
        thread = await chat.say("Send")
        await chat.advance(1_000)
        await chat.approve((await chat.pending_approvals(thread))[0])
        await chat.advance(1_000)
        assert ((await chat.last_end(thread))["status"], len(chat.effects.calls)) == ("done", 1)
        assert [line.body["attempt"] for line in await chat.entries(thread, "failed")] == [1, 1]


async def test_what_another_try_cannot_mend_is_an_error_at_once(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, ModelFailed("The key is wrong.", is_retryable=False)) as chat:
        thread = await chat.say("Hi")
        assert (await chat.last_end(thread))["reason"] == "The key is wrong."


async def test_a_thread_that_is_at_work_is_not_tried_again(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND) as chat:
        thread = await chat.say("Send it")
        with pytest.raises(Conflict):
            await chat.threads.retry(ANN, thread.id)


async def test_a_fault_inside_ends_the_turn_and_the_next_message_goes_on(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, ModelReply("Better.")) as chat:
        model = chat.models.pop("main")  # opening it raises an unexpected KeyError
        thread = await chat.say("Hi")
        ended = await chat.last_end(thread)
        assert (ended["status"], "server's log" in str(ended["reason"])) == ("error", True)
        assert [type(failure) for failure in chat.failures] == [KeyError]
        chat.failures.clear()
        chat.models["main"] = model
        await chat.say("Again", thread)
        assert (await chat.last_end(thread))["status"] == "done"


async def test_an_answer_that_is_too_long_to_keep_is_an_error_in_plain_words(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, ModelReply("x" * 1_100_000)) as chat:
        thread = await chat.say("Hi")
        ended = await chat.last_end(thread)
        assert (ended["status"], "too long" in str(ended["reason"])) == ("error", True)


async def test_an_agent_that_is_gone_is_said_to_be_gone(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock) as chat:
        with pytest.raises(NotFound):
            await chat.say("Hi", agent="nobody")
        thread = await chat.threads.say(chat.services, ANN, "Hi", agent="main")
        chat.agents = AgentDirectory({})
        chat.loop = chat.make_loop("second")
        await chat.run_until_idle()
        assert "The agent main does not exist any more" in str((await chat.last_end(thread))["reason"])


# Limits


async def test_a_limit_is_said_and_a_message_goes_on(database: Database, clock: Clock) -> None:
    look = tool_calls(tool_request("c1", "t_look", what="x"))
    limited = AgentSettings(tools=MAIN.tools, limits={"turns": 2})
    async with open_chat(database, clock, look, look, look, agents={"main": limited}) as chat:
        thread = await chat.say("Look")
        ended = await chat.last_end(thread)
        assert (ended["status"], "2 model turns" in str(ended["reason"])) == ("limit", True)
        assert len(chat.model.prompts) == 2
        await chat.say("Go on", thread)
        assert len(chat.model.prompts) == 4
        assert (await chat.last_end(thread))["status"] == "done"


# The loop


# R3
async def test_the_loop_takes_up_what_comes_and_stops_when_it_is_told(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND) as chat:
        stop = asyncio.Event()
        running = asyncio.create_task(chat.loop.run(stop))
        thread = await chat.threads.say(chat.services, ANN, "Send it", agent="main")
        async with asyncio.timeout(TIMEOUT):
            while not await chat.pending_approvals(thread):  # noqa: ASYNC110  a card sets no event
                await asyncio.sleep(0.01)
        (card,) = await chat.pending_approvals(thread)
        await chat.services.gate.cancel("default", card.id, "ann")
        await wait_until(lambda: len(chat.model.prompts) == 2)
        stop.set()
        await running
        assert (await chat.services.inbox.list("default", ApprovalQuery(statuses=("pending",)))).items == ()
        assert (await chat.last_end(thread))["status"] == "done"


# Ending in order


# R32
async def test_a_loop_that_is_told_to_end_before_its_threads_began_ends(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, ModelReply("Hello.")) as chat:
        await chat.threads.say(await chat.workspaces.services("default"), ANN, "Hello", agent="main")
        others = asyncio.all_tasks()
        assert await chat.loop.sweep() == 1
        for task in asyncio.all_tasks() - others:
            task.cancel()
        async with asyncio.timeout(TIMEOUT):
            await chat.loop.wait_idle()


# R32, R46
async def test_what_a_tool_gave_is_told_to_a_database_that_was_away(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, SEND, ModelReply("Sent.")) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        gate = (await chat.workspaces.services("default")).gate
        finish, failures = gate.finish, [StoreUnavailable("Away."), StoreUnavailable("Away.")]

        async def away(*values: Any, **named: Any) -> Approval:
            if failures:
                raise failures.pop()
            return await finish(*values, **named)

        gate.finish = away  # type: ignore[method-assign]  # the moment between the tool's end and its record
        await chat.approve(card)
        await chat.run_until_idle()
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert chat.effects.calls_to("t_send") == [{"to": "bob"}]
        assert (await chat.last_end(thread))["status"] == "done"
