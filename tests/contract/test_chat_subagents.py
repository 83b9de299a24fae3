"""Sub-agents: threads of their own under the gates of all parents; their cards appear in the parent thread."""

from __future__ import annotations

import pytest

from interlock.config.models import AgentSettings
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import Thread
from interlock.core.chat.transcript import ModelReply, PromptUserMessage, ToolRequest
from tests.chat_harness import ANN, ChatHarness, ScriptedModel, open_chat, tool_calls, tool_request
from tests.databases import Database
from tests.support import BOB, Clock

PARENT_AGENT = AgentSettings(tools=("t",), agents=("writer",))
WRITER_AGENT = AgentSettings(model="writer", tools=("t",))


def delegate_call(call: str = "c1", task: str = "Send it") -> ToolRequest:
    return tool_request(call, "agent_writer", task=task)


def send_call(call: str = "d1", to: str = "bob") -> ToolRequest:
    return tool_request(call, "t_send", to=to)


async def only_child(chat: ChatHarness, thread: Thread) -> Thread:
    (child,) = await chat.store.threads.children("default", thread.id)
    return child


# R13
async def test_a_subagent_has_its_own_thread_and_its_last_message_is_the_result(
    database: Database, clock: Clock
) -> None:
    writer = ScriptedModel(tool_calls(tool_request("d1", "t_look", what="x")), ModelReply("It is there."))
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Look it up")
        assert chat.model.tool_results["c1"] == {"agent": "writer", "status": "done", "said": "It is there."}
        assert writer.prompts[0].messages == (PromptUserMessage("Send it"),)
        child = await only_child(chat, thread)
        assert (child.path, child.person, child.parent_call) == (("main", "writer"), "ann", "c1")
        assert (await chat.last_end(thread))["status"] == "done"
        assert [each.id for each in (await chat.threads.list(ANN)).items] == [thread.id]


# R13
async def test_its_card_shows_in_the_main_thread_with_the_path(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = ScriptedModel(tool_calls(send_call()), ModelReply("Sent."))
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        child = await only_child(chat, thread)
        assert (card.subject.thread_id, card.subject.run_id) == (thread.id, child.id)
        assert card.subject.agent_path == ("main", "writer")
        (shown,) = await chat.entries(thread, "asked")
        assert (shown.body["approval"], shown.body["path"], shown.body["child"]) == (
            card.id,
            ["main", "writer"],
            child.id,
        )
        await chat.approve(card)
        assert chat.effects.calls_to("t_send") == [{"to": "bob"}]
        assert [line.body["status"] for line in await chat.entries(thread, "decided")] == ["approved"]
        assert chat.model.tool_results["c1"]["said"] == "Sent."


# R13
@pytest.mark.parametrize(
    ("boss", "writer", "asks"),
    [({}, {}, False), ({}, {"t_look": True}, True), ({"t_look": True}, {"t_look": False}, True)],
    ids=["neither", "it may tighten", "it cannot loosen"],
)
async def test_its_gates_add_to_those_above(
    database: Database, clock: Clock, boss: dict[str, bool], writer: dict[str, bool], asks: bool
) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals=boss),
        "writer": AgentSettings(model="writer", tools=("t",), tool_approvals=writer),
    }
    script = ScriptedModel(tool_calls(tool_request("d1", "t_look", what="x")))
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=script) as chat:
        thread = await chat.say("Look")
        assert (len(await chat.pending_approvals(thread)), len(chat.effects.calls)) == ((1, 0) if asks else (0, 1))


# R13
async def test_a_write_that_its_own_switch_calls_free_is_asked_about_where_the_one_above_asks(
    database: Database, clock: Clock
) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"t_send": True}),
        "writer": AgentSettings(model="writer", tools=("t",), tool_approvals={"t_send": False}),
    }
    async with open_chat(
        database, clock, tool_calls(delegate_call()), agents=agents, writer=ScriptedModel(tool_calls(send_call()))
    ) as chat:
        thread = await chat.say("Send")
        assert (len(await chat.pending_approvals(thread)), chat.effects.calls) == (1, [])


# R13, R19
async def test_what_would_be_confirmed_in_conversation_is_a_card_for_a_sub_agent(
    database: Database, clock: Clock
) -> None:
    """It has nobody to talk to; a yes in the main thread says nothing to it."""
    writer = ScriptedModel(tool_calls(tool_request("d1", "t_wipe", page="About", confirmed=True)))
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("yes")
        assert (len(await chat.pending_approvals(thread)), chat.effects.calls) == (1, [])


# R13, R55
async def test_a_question_about_its_card_is_answered_by_the_sub_agent(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = ScriptedModel(tool_calls(send_call()), ModelReply("Bob asked me to."))
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.services.inbox.ask("default", card.id, "Why?", BOB)
        await chat.run_until_idle()
        view = await chat.services.inbox.show("default", card.id)
        assert "Bob asked me to." in (view.timeline[-1].content or b"").decode()
        assert (len(chat.model.prompts), len(writer.prompts), chat.effects.calls) == (1, 2, [])
        assert len(await chat.pending_approvals(thread)) == 1


# R13
async def test_stopping_the_parent_withdraws_the_cards_of_its_children(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with open_chat(
        database, clock, tool_calls(delegate_call()), agents=agents, writer=ScriptedModel(tool_calls(send_call()))
    ) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.threads.stop(chat.services, ANN, thread.id)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        await chat.run_until_idle()
        assert (await chat.last_end(thread))["status"] == "stopped"
        assert (await chat.last_end(await only_child(chat, thread)))["status"] == "stopped"
        assert (chat.effects.calls, len(chat.models["writer"].prompts)) == ([], 1)
        assert (await chat.entries(thread, "resulted"))[0].body["status"] == "cancelled"


# R13, R55
async def test_a_message_in_the_main_thread_stops_the_children(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with open_chat(
        database, clock, tool_calls(delegate_call()), agents=agents, writer=ScriptedModel(tool_calls(send_call()))
    ) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        await chat.say("Never mind", thread)
        assert (await chat.store.get("default", card.id)).approval.status == "cancelled"
        assert chat.model.tool_results["c1"]["status"] == "stopped"
        assert (await chat.last_end(thread))["status"] == "done"


# R13
async def test_an_approval_of_one_sub_agent_says_nothing_about_another(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = ScriptedModel(tool_calls(send_call()), tool_calls(send_call()))
    two = tool_calls(delegate_call("c1", "One"), delegate_call("c2", "Two"))
    async with open_chat(database, clock, two, agents=agents, writer=writer) as chat:
        thread = await chat.say("Send both")
        first, second = await chat.pending_approvals(thread)
        assert first.subject.run_id != second.subject.run_id
        await chat.approve(first)
        assert len(chat.effects.calls_to("t_send")) == 1
        assert (await chat.store.get("default", second.id)).approval.status == "pending"


# R13
async def test_a_card_two_levels_down_shows_in_the_main_thread(database: Database, clock: Clock) -> None:
    agents = {
        "main": PARENT_AGENT,
        "writer": AgentSettings(model="writer", agents=("clerk",)),
        "clerk": AgentSettings(model="clerk", tools=("t",)),
    }
    writer, clerk = (
        ScriptedModel(tool_calls(tool_request("d1", "agent_clerk", task="Send"))),
        ScriptedModel(tool_calls(send_call("e1"))),
    )
    async with open_chat(
        database, clock, tool_calls(delegate_call()), agents=agents, writer=writer, clerk=clerk
    ) as chat:
        thread = await chat.say("Send it")
        (card,) = await chat.pending_approvals(thread)
        (shown,) = await chat.entries(thread, "asked")
        assert shown.body["path"] == ["main", "writer", "clerk"]
        await chat.approve(card)
        assert (await chat.last_end(thread))["status"] == "done"
        assert len(chat.effects.calls) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [({}, "task"), ({"task": ""}, "task"), ({"task": 5}, "task"), ({"task": "x", "approved": True}, "approved")],
)
async def test_an_empty_task_is_an_error_for_the_model(
    database: Database, clock: Clock, args: dict[str, object], words: str
) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    wishes = tool_calls(tool_request("c1", "agent_writer", **args))
    async with open_chat(database, clock, wishes, agents=agents, writer=ScriptedModel()) as chat:
        await chat.say("Go")
        result = chat.model.tool_results["c1"]
        assert (result["status"], words in result["error"]) == ("invalid", True)


async def test_agents_do_not_call_each_other_in_a_circle(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": AgentSettings(model="writer", agents=("main",))}
    writer = ScriptedModel(
        tool_calls(tool_request("d1", "agent_main", task="Back to you")), ModelReply("It would not.")
    )
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        await chat.say("Go")
        assert "circle" in writer.tool_results["d1"]["error"]
        assert chat.model.tool_results["c1"]["said"] == "It would not."


async def test_a_missing_subagent_is_an_error_for_the_model(database: Database, clock: Clock) -> None:
    async with open_chat(database, clock, tool_calls(delegate_call()), agents={"main": PARENT_AGENT}) as chat:
        await chat.say("Go")
        assert "'writer'" in chat.model.tool_results["c1"]["error"]


# The call of an agent is a call


# R9, R34
async def test_a_gate_before_an_agent_holds(database: Database, clock: Clock) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"agent_writer": True}),
        "writer": WRITER_AGENT,
    }
    writer = ScriptedModel(ModelReply("Done it."))
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Go")
        (card,) = await chat.pending_approvals(thread)
        assert (writer.prompts, await chat.store.threads.children("default", thread.id)) == ([], [])
        await chat.approve(card)
        assert (await chat.store.get("default", card.id)).approval.status == "succeeded"
        assert chat.model.tool_results["c1"] == {"agent": "writer", "status": "done", "said": "Done it."}
        assert len(writer.prompts) == 1
        assert (await chat.last_end(thread))["status"] == "done"


# R11, R34
async def test_an_agent_gets_the_task_as_a_person_changed_it(database: Database, clock: Clock) -> None:
    agents = {
        "main": AgentSettings(tools=("t",), agents=("writer",), tool_approvals={"agent_writer": True}),
        "writer": WRITER_AGENT,
    }
    writer = ScriptedModel(ModelReply("Done it."))
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        thread = await chat.say("Go")
        await chat.edit((await chat.pending_approvals(thread))[0], task="Only look")
        assert writer.prompts[0].messages == (PromptUserMessage("Only look"),)
        result = chat.model.tool_results["c1"]
        assert (result["said"], result["edited"], result["ran_with"]) == ("Done it.", True, {"task": "Only look"})


# R34, R35
async def test_an_agent_that_the_policy_denies_is_not_called(database: Database, clock: Clock) -> None:
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    writer = ScriptedModel()
    async with open_chat(database, clock, tool_calls(delegate_call()), agents=agents, writer=writer) as chat:
        await chat.put_policy("version: 1\nrules:\n  - {name: no, tools: [agent_*], then: deny, reason: Alone.}\n")
        thread = await chat.say("Go")
        assert (chat.model.tool_results["c1"]["status"], writer.prompts) == ("denied", [])
        assert await chat.store.threads.children("default", thread.id) == []


# R13
async def test_a_child_that_was_opened_before_a_crash_is_stopped_with_the_rest(
    database: Database, clock: Clock
) -> None:
    """Its thread is there and the line about it is not: it must not go on alone."""
    agents = {"main": PARENT_AGENT, "writer": WRITER_AGENT}
    async with open_chat(
        database, clock, tool_calls(delegate_call()), agents=agents, writer=ScriptedModel(tool_calls(send_call()))
    ) as chat:
        thread = await chat.say("Go")
        (child,) = await chat.store.threads.children("default", thread.id)
        database.sql("delete from lines where thread_id = ? and kind in ('delegated', 'asked')", thread.id)
        await chat.store.threads.step("default", thread.id, lambda row, now: threads.add_message(row, "ann", "No", now))
        await chat.run_until_idle()
        assert (await chat.last_end(child))["status"] == "stopped"
        assert (await chat.pending_approvals(thread), chat.model.tool_results["c1"]["status"]) == ([], "stopped")
