"""Sub-agents: threads of their own under the gates of all parents; their cards appear in the parent thread."""

from __future__ import annotations

import pytest

from interlock.config.models import AgentSettings
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, PromptUserMessage, ToolRequest
from tests.chat_harness import ANN, Chat, Script, calls, chatting, wish
from tests.databases import Place
from tests.support import BOB, Clock

PARENT_AGENT = AgentSettings(tools=("t",), agents=("writer",))
WRITER_AGENT = AgentSettings(model="writer", tools=("t",))


def delegate_call(call: str = "c1", task: str = "Send it") -> ToolRequest:
    return wish(call, "agent_writer", task=task)


def send_call(call: str = "d1", to: str = "bob") -> ToolRequest:
    return wish(call, "t_send", to=to)


async def only_child(chat: Chat, thread: Thread) -> Thread:
    (child,) = await chat.store.threads.children("default", thread.id)
    return child


# R13
async def test_a_subagent_has_its_own_thread_and_its_last_message_is_the_result(place: Place, clock: Clock) -> None:
    writer = Script(calls(wish("d1", "t_look", what="x")), ModelReply("It is there."))
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Look it up")
        assert chat.model.told["c1"] == {"agent": "writer", "status": "done", "said": "It is there."}
        assert writer.prompts[0].messages == (PromptUserMessage("Send it"),)
        child = await only_child(chat, thread)
        assert (child.path, child.person, child.parent_call) == (("main", "writer"), "ann", "c1")
        assert (await chat.ended(thread))["status"] == "done"
        assert [each.id for each in (await chat.threads.list(ANN)).items] == [thread.id]


# R13
async def test_its_card_shows_in_the_main_thread_with_the_path(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = Script(calls(send_call()), ModelReply("Sent."))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        child = await only_child(chat, thread)
        assert (card.subject.thread_id, card.subject.run_id) == (thread.id, child.id)
        assert card.subject.agent_path == ("main", "writer")
        (shown,) = await chat.lines(thread, "asked")
        assert (shown.body["approval"], shown.body["path"], shown.body["child"]) == (
            card.id,
            ["main", "writer"],
            child.id,
        )
        await chat.approve(card)
        assert chat.effects.of("t_send") == [{"to": "bob"}]
        assert [line.body["status"] for line in await chat.lines(thread, "decided")] == ["approved"]
        assert chat.model.told["c1"]["said"] == "Sent."


# R13
@pytest.mark.parametrize(
    ("boss", "writer", "asks"),
    [({}, {}, False), ({}, {"t_look": True}, True), ({"t_look": True}, {"t_look": False}, True)],
    ids=["neither", "it may tighten", "it cannot loosen"],
)
async def test_its_gates_add_to_those_above(
    place: Place, clock: Clock, boss: dict[str, bool], writer: dict[str, bool], asks: bool
) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals=boss),
        "writer": AgentSettings(model="writer", tools=("t",), tool_approvals=writer),
    }
    script = Script(calls(wish("d1", "t_look", what="x")))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=script) as chat:
        thread = await chat.say("Look")
        assert (len(await chat.cards(thread)), len(chat.effects.done)) == ((1, 0) if asks else (0, 1))


# R13
async def test_a_write_that_its_own_switch_calls_free_is_asked_about_where_the_one_above_asks(
    place: Place, clock: Clock
) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"t_send": True}),
        "writer": AgentSettings(model="writer", tools=("t",), tool_approvals={"t_send": False}),
    }
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=Script(calls(send_call()))) as chat:
        thread = await chat.say("Send")
        assert (len(await chat.cards(thread)), chat.effects.done) == (1, [])


# R13, R19
async def test_what_would_be_confirmed_in_conversation_is_a_card_for_a_sub_agent(place: Place, clock: Clock) -> None:
    """It has nobody to talk to; a yes in the main thread says nothing to it."""
    writer = Script(calls(wish("d1", "t_wipe", page="About", confirmed=True)))
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("yes")
        assert (len(await chat.cards(thread)), chat.effects.done) == (1, [])


# R13, R55
async def test_a_question_about_its_card_is_answered_by_the_sub_agent(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = Script(calls(send_call()), ModelReply("Bob asked me to."))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.desk.inbox.ask("default", card.id, "Why?", BOB)
        await chat.settle()
        view = await chat.desk.inbox.show("default", card.id)
        assert "Bob asked me to." in (view.timeline[-1].content or b"").decode()
        assert (len(chat.model.prompts), len(writer.prompts), chat.effects.done) == (1, 2, [])
        assert len(await chat.cards(thread)) == 1


# R13
async def test_stopping_the_parent_withdraws_the_cards_of_its_children(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=Script(calls(send_call()))) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.threads.stop(chat.desk, ANN, thread.id)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        await chat.settle()
        assert (await chat.ended(thread))["status"] == "stopped"
        assert (await chat.ended(await only_child(chat, thread)))["status"] == "stopped"
        assert (chat.effects.done, len(chat.models["writer"].prompts)) == ([], 1)
        assert (await chat.lines(thread, "resulted"))[0].body["status"] == "cancelled"


# R13, R55
async def test_a_message_in_the_main_thread_stops_the_children(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=Script(calls(send_call()))) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        await chat.say("Never mind", thread)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        assert chat.model.told["c1"]["status"] == "stopped"
        assert (await chat.ended(thread))["status"] == "done"


# R13
async def test_an_approval_of_one_sub_agent_says_nothing_about_another(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = Script(calls(send_call()), calls(send_call()))
    two = calls(delegate_call("c1", "One"), delegate_call("c2", "Two"))
    async with chatting(place, clock, two, agents=agents, writer=writer) as chat:
        thread = await chat.say("Send both")
        first, second = await chat.cards(thread)
        assert first.subject.run_id != second.subject.run_id
        await chat.approve(first)
        assert len(chat.effects.of("t_send")) == 1
        assert (await chat.store.get("default", second.id)).approval.status == "pending"


# R13
async def test_a_card_two_levels_down_shows_in_the_main_thread(place: Place, clock: Clock) -> None:
    agents = {
        "main": PARENT_AGENT,
        "writer": AgentSettings(model="writer", agents=("clerk",)),
        "clerk": AgentSettings(model="clerk", tools=("t",)),
    }
    writer, clerk = Script(calls(wish("d1", "agent_clerk", task="Send"))), Script(calls(send_call("e1")))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer, clerk=clerk) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.cards(thread)
        (shown,) = await chat.lines(thread, "asked")
        assert shown.body["path"] == ["main", "writer", "clerk"]
        await chat.approve(card)
        assert (await chat.ended(thread))["status"] == "done"
        assert len(chat.effects.done) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [({}, "task"), ({"task": ""}, "task"), ({"task": 5}, "task"), ({"task": "x", "approved": True}, "approved")],
)
async def test_an_empty_task_is_an_error_for_the_model(
    place: Place, clock: Clock, args: dict[str, object], words: str
) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    wishes = calls(wish("c1", "agent_writer", **args))
    async with chatting(place, clock, wishes, agents=agents, writer=Script()) as chat:
        await chat.say("Go")
        result = chat.model.told["c1"]
        assert (result["status"], words in result["error"]) == ("invalid", True)


async def test_agents_do_not_call_each_other_in_a_circle(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": AgentSettings(model="writer", agents=("main",))}
    writer = Script(calls(wish("d1", "agent_main", task="Back to you")), ModelReply("It would not."))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        await chat.say("Go")
        assert "circle" in writer.told["d1"]["error"]
        assert chat.model.told["c1"]["said"] == "It would not."


async def test_a_missing_subagent_is_an_error_for_the_model(place: Place, clock: Clock) -> None:
    async with chatting(place, clock, calls(delegate_call()), agents={"main": PARENT_AGENT}) as chat:
        await chat.say("Go")
        assert "'writer'" in chat.model.told["c1"]["error"]


# The call of an agent is a call


# R9, R34
async def test_a_gate_before_an_agent_holds(place: Place, clock: Clock) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"agent_writer": True}),
        "writer": WRITER_AGENT,
    }
    writer = Script(ModelReply("Done it."))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.cards(thread)
        assert (writer.prompts, await chat.store.threads.children("default", thread.id)) == ([], [])
        await chat.approve(card)
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert chat.model.told["c1"] == {"agent": "writer", "status": "done", "said": "Done it."}
        assert len(writer.prompts) == 1
        assert (await chat.ended(thread))["status"] == "done"


# R11, R34
async def test_an_agent_gets_the_task_as_a_person_changed_it(place: Place, clock: Clock) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"agent_writer": True}),
        "writer": WRITER_AGENT,
    }
    writer = Script(ModelReply("Done it."))
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Go")
        await chat.edit((await chat.cards(thread))[0], task="Only look")
        assert writer.prompts[0].messages == (PromptUserMessage("Only look"),)
        result = chat.model.told["c1"]
        assert (result["said"], result["edited"], result["ran_with"]) == ("Done it.", True, {"task": "Only look"})


# R34, R35
async def test_an_agent_that_the_policy_denies_is_not_called(place: Place, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = Script()
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=writer) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: no, tools: [agent_*], then: deny, reason: Alone.}\n")
        thread = await chat.say("Go")
        assert (chat.model.told["c1"]["status"], writer.prompts) == ("denied", [])
        assert await chat.store.threads.children("default", thread.id) == []


# R13
async def test_a_child_that_was_opened_before_a_crash_is_stopped_with_the_rest(place: Place, clock: Clock) -> None:
    """Its thread is there and the line about it is not: it must not go on alone."""
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with chatting(place, clock, calls(delegate_call()), agents=agents, writer=Script(calls(send_call()))) as chat:
        thread = await chat.say("Go")
        (child,) = await chat.store.threads.children("default", thread.id)
        place.sql("delete from lines where thread_id = ? and kind in ('delegated', 'asked')", thread.id)
        await chat.store.threads.step("default", thread.id, lambda row, now: threads.add_message(row, "ann", "No", now))
        await chat.settle()
        assert (await chat.ended(child))["status"] == "stopped"
        assert (await chat.cards(thread), chat.model.told["c1"]["status"]) == ([], "stopped")
