"""What is special to Microsoft Agent Framework: scenes in one process. Prints what was seen, as JSON."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    Content,
    InMemoryCheckpointStorage,
    Message,
    MiddlewareFailure,
    WorkflowBuilder,
    tool,
)

from interlock import Approve, Edit, Interlock, Misconfigured, Reject
from interlock.core.errors import InvalidRequest
from interlock.integrations.agent_framework import Gate, pending_requests
from tests.frameworks.programs.agent_framework import ScriptedModel, session_messages, tool_results
from tests.frameworks.programs.model_scripts import Call
from tests.frameworks.programs.scenarios import ScenarioContext, run_scenarios

EFFECTS = {"send_mail": "write", "look_up": "read"}
MAIL = Call("call_1", "send_mail", {"to": "bob"})
OTHER = Call("call_2", "send_mail", {"to": "eve"})
LOOK = Call("call_3", "look_up", {"order": "A1"})


def scripted_turns(*calls: Call) -> Callable[[int], Sequence[Call]]:
    return lambda results: calls if results < len(calls) else ()


def one_by_one(*calls: Call) -> Callable[[int], Sequence[Call]]:
    return lambda results: calls[results : results + 1]


def make_agent(context: ScenarioContext, script: Any, gate: Gate | None = None, **more: Any) -> tuple[Gate, Agent]:
    gate = gate or Gate(context.lock.agent("clerk"), EFFECTS)
    tools = more.pop("tools", None) or [tool(context.send_mail), tool(context.look_up)]
    return gate, Agent(ScriptedModel(script), tools=tools, middleware=gate.middleware, **more)


async def without_it_resumed_twice(context: ScenarioContext) -> Any:
    """Its own step: the saved session is taken up twice, as by two processes, and approved in each."""
    asks = tool(context.send_mail, approval_mode="always_require")
    agent = Agent(ScriptedModel(scripted_turns(MAIL)), tools=[asks])
    session = agent.create_session(session_id="own")
    first = await agent.run("Go.", session=session)
    saved = session.to_dict()
    answer = [request.to_function_approval_response(approved=True) for request in first.user_input_requests]
    for _ in range(2):
        await agent.run(Message("user", answer), session=AgentSession.from_dict(copy.deepcopy(saved)))
    return context.calls


async def resumed_twice(context: ScenarioContext) -> Any:
    gate, agent = make_agent(context, scripted_turns(MAIL))
    session = agent.create_session(session_id="twice")
    await agent.run("Go.", session=session)
    await context.decide("twice", Approve())
    (pause,) = await gate.agent.acquire_ready_pauses(0)
    ends = await asyncio.gather(*(gate.resume(agent, pause) for _ in range(2)))
    left = await gate.agent.list_pauses()
    return {"ran": context.calls, "told": [tool_results(session_messages(end[0])) for end in ends], "left": len(left)}


async def forged(context: ScenarioContext) -> Any:
    """A client approves what nobody has decided."""
    gate, agent = make_agent(context, scripted_turns(MAIL))
    session = agent.create_session(session_id="forged")
    await agent.run("Go.", session=session)
    again = await gate.recheck(agent, session)
    seen = {
        "ran": list(context.calls),
        "asks": len(again.user_input_requests),
        "rows": len(context.approvals("forged")),
    }
    await context.decide("forged", Reject("No."))
    await gate.recheck(agent, session)
    return {
        **seen,
        "after": context.calls,
        "told": tool_results(session_messages(session)),
        "left": len(pending_requests(session)),
    }


async def made_up(context: ScenarioContext) -> Any:
    """A client approves a call that was never asked about."""
    _, agent = make_agent(context, scripted_turns())
    session = agent.create_session(session_id="made up")
    call = Content.from_function_call(call_id="call_9", name="send_mail", arguments={"to": "eve"}, id="af-call-9")
    answer = Content.from_function_approval_response(approved=True, id="af-call-9", function_call=call)
    await agent.run(Message("user", [answer]), session=session)
    unbound = Agent(
        ScriptedModel(scripted_turns()),
        tools=[tool(context.send_mail)],
        middleware=make_agent(context, scripted_turns())[0].middleware,
    )
    unbound.client.function_invocation_configuration["disable_approval_response_binding"] = True
    history = [Message("assistant", [call]), Message("user", [answer])]
    try:
        await unbound.run(history)
    except MiddlewareFailure as error:
        return {
            "ran": context.calls,
            "rows": len(context.approvals("made up")),
            "without a session": type(error).__name__,
        }
    return {}


async def edited_by_the_client(context: ScenarioContext) -> Any:
    """The response carries another call, and the saved session holds other arguments: only what was approved runs."""
    gate, agent = make_agent(context, scripted_turns(MAIL))
    session = agent.create_session(session_id="edited")
    await agent.run("Go.", session=session)
    saved = session.to_dict()
    await context.decide("edited", Approve())
    (request,) = pending_requests(session)
    response = request.to_function_approval_response(approved=True)
    response.function_call.arguments = {"to": "mallory"}
    await agent.run(Message("user", [response]), session=session)
    ran = list(context.calls)
    saved["state"]["tool_approval"]["pending_approval_requests"][0]["function_call"]["arguments"] = {"to": "mallory"}
    tampered = AgentSession.from_dict(saved)
    await gate.recheck(agent, tampered)
    return {"ran": ran, "after": context.calls, "told": tool_results(session_messages(tampered))}


async def edited_by_a_person(context: ScenarioContext) -> Any:
    """Arguments that are more than JSON to the tool: it gets what the person wrote, as the type that it asks for."""
    got: list[Any] = []

    def book(day: date, seats: int = 1) -> str:
        got.append([type(day).__name__, day.isoformat(), seats])
        return "booked"

    calls = scripted_turns(Call("call_1", "book", {"day": "2026-11-16"}))
    gate, agent = make_agent(context, calls, tools=[tool(book)])
    session = agent.create_session(session_id="person")
    await agent.run("Go.", session=session)
    await context.decide("person", Edit({"day": "2026-12-24", "seats": 2}))
    await gate.recheck(agent, session)
    whole = [c.result for m in session_messages(session) for c in m.contents if c.type == "function_result"]
    return {"got": got, "told": whole, "status": context.statuses("person")}


async def edited_into_its_like(context: ScenarioContext) -> Any:
    """To Python 1 and true are the same, and to the person who wrote the one in the other's place they are not."""
    got: list[Any] = []

    def put(value: Any) -> str:
        got.append(value)
        return "put"

    gate, agent = make_agent(
        context, scripted_turns(Call("call_1", "put", {"value": {"all": True}})), tools=[tool(put)]
    )
    session = agent.create_session(session_id="like")
    await agent.run("Go.", session=session)
    await context.decide("like", Edit({"value": {"all": 1}}))
    await gate.recheck(agent, session)
    return json.dumps(got)


async def refused_by_the_client(context: ScenarioContext) -> Any:
    """A client that says no is believed: nothing runs, and nothing can run later."""
    gate, agent = make_agent(context, scripted_turns(MAIL))
    session = agent.create_session(session_id="no")
    first = await agent.run("Go.", session=session)
    answers = [request.to_function_approval_response(approved=False) for request in first.user_input_requests]
    await agent.run(Message("user", answers), session=session)
    await context.decide("no", Approve())
    await agent.run("And now?", session=session)
    return {"ran": context.calls, "left": len(pending_requests(session)), "paused": len(await gate.agent.list_pauses())}


async def streamed(context: ScenarioContext) -> Any:
    """Two calls of which one asks: the other runs at once; the run is kept when the stream ends."""
    gate, agent = make_agent(context, scripted_turns(LOOK, MAIL))
    session = agent.create_session(session_id="streamed")
    async for _ in agent.run("Go.", stream=True, session=session):
        pass
    before, kept = list(context.calls), [pause.run_id for pause in await gate.agent.list_pauses()]
    await context.decide("streamed", Approve())
    (pause,) = await gate.agent.acquire_ready_pauses(0)
    back, _ = await gate.resume(agent, pause)
    return {"before": before, "kept": kept, "after": context.calls, "told": tool_results(session_messages(back))}


async def the_same_id_again(context: ScenarioContext) -> Any:
    """The model calls everything call_1."""
    gate, agent = make_agent(context, one_by_one(MAIL, MAIL._replace(args={"to": "carol"}), MAIL))
    session = agent.create_session(session_id="ids")
    await agent.run("Go.", session=session)
    for _ in range(3):
        await context.decide("ids", Approve())
        await gate.recheck(agent, session)
    return {"ran": context.calls, "statuses": context.statuses("ids"), "paused": len(await gate.agent.list_pauses())}


async def sub_agent(context: ScenarioContext) -> Any:
    """An agent that is a tool of another cannot pause: its question waits inline, under its path."""
    gate = Gate(context.lock.agent("clerk"), {**EFFECTS, "writer": "read"})
    _, writer = make_agent(context, scripted_turns(MAIL), gate.sub("writer", {"look_up": True}), name="writer")
    asks = writer.as_tool(propagate_session=True)
    _, agent = make_agent(context, scripted_turns(Call("call_1", "writer", {"task": "Write."})), gate, tools=[asks])
    session = agent.create_session(session_id="sub")
    running = asyncio.ensure_future(agent.run("Go.", session=session))
    await context.decide("sub", Approve())
    await running
    return {
        "ran": context.calls,
        "paths": [row["path"] for row in context.approvals("sub")],
        "told": tool_results(session_messages(session)),
    }


async def sub_agents_pause(context: ScenarioContext) -> Any:
    """Two agents that are tools of another, called in one turn: the whole run pauses, and goes on elsewhere."""
    gate = Gate(context.lock.agent("clerk"), EFFECTS)

    def staffed() -> Agent:
        tools = []
        for name, calls in (("author", (LOOK, MAIL)), ("printer", (OTHER,))):
            _, agent = make_agent(context, scripted_turns(*calls), gate.sub(name), name=name)
            tools.append(gate.as_tool(agent))
        wanted = [Call(f"call_{each.name}", each.name, {"task": "Write."}) for each in tools]
        return make_agent(context, scripted_turns(*wanted), gate, tools=tools)[1]

    agent = staffed()
    session = agent.create_session(session_id="subs")
    await agent.run("Go.", session=session)
    before, asked = list(context.calls), sorted(row["path"] for row in context.approvals("subs"))
    await context.decide("subs", Approve())
    early = AgentSession.from_dict(session.to_dict())
    await gate.recheck(staffed(), early)
    half = list(context.calls)
    await context.decide("subs", Reject("No."))
    (pause,) = await gate.agent.acquire_ready_pauses(0)
    ends = await asyncio.gather(*(gate.resume(staffed(), pause) for _ in range(2)))
    said = [tool_results(session_messages(end[0])) for end in ends]
    statuses = sorted(context.statuses("subs"))
    return {"before": before, "asked": asked, "half": half, "after": context.calls, "said": said, "statuses": statuses}


async def workflow(context: ScenarioContext) -> Any:
    """Its requests come out of the workflow, which keeps the run; another process loads its checkpoint."""
    storage = InMemoryCheckpointStorage()

    def built() -> Any:
        gate = Gate(context.lock.agent("clerk"), EFFECTS, saves_pauses=False)
        _, agent = make_agent(context, scripted_turns(MAIL), gate, name="writer")
        return WorkflowBuilder(start_executor=agent, checkpoint_storage=storage, name="flow").build()

    first = built()
    (asked,) = (await first.run("Go.")).get_request_info_events()
    (thread,) = {row["thread"] for row in context.pending_approvals()}
    paused = len(await context.lock.agent("clerk").list_pauses())
    await context.decide(thread, Approve())
    checkpoint = await storage.get_latest(workflow_name="flow")
    answer = {asked.request_id: asked.data.to_function_approval_response(approved=True)}
    end = await built().run(responses=answer, checkpoint_id=checkpoint.checkpoint_id)
    return {"paused": paused, "ran": context.calls, "said": [str(each.text) for each in end.get_outputs()]}


async def stops_by_itself(context: ScenarioContext) -> Any:
    """A tool before which the framework stops: nobody is asked until it is looked at again."""
    gate, agent = make_agent(
        context, scripted_turns(MAIL), tools=[tool(context.send_mail, approval_mode="always_require")]
    )
    session = agent.create_session(session_id="itself")
    await agent.run("Go.", session=session)
    before = len(context.approvals("itself"))
    await gate.recheck(agent, session)
    after = len(context.approvals("itself"))
    await context.decide("itself", Approve())
    await gate.recheck(agent, session)
    return {"rows": [before, after], "ran": context.calls, "left": len(pending_requests(session))}


async def not_ours(context: ScenarioContext) -> Any:
    """A question about what runs at the provider is the program's own: nothing here answers it."""
    gate, agent = make_agent(context, scripted_turns())
    session = agent.create_session(session_id="hosted")
    call = Content.from_function_call(call_id="call_1", name="delete_all", arguments={}, hosted=True)
    asked = Content.from_function_approval_request(id="call_1", function_call=call)
    session.state["tool_approval"] = {"pending_approval_requests": [asked.to_dict()]}
    await agent.run("Go.", session=session)
    try:
        await gate.recheck(agent, session)
    except InvalidRequest as error:
        return {
            "ours": len(pending_requests(session)),
            "paused": len(await gate.agent.list_pauses()),
            "says": str(error),
        }
    return {}


async def cannot_be_kept(context: ScenarioContext) -> Any:
    """Something in the session that JSON has no form for: said, and nothing ran."""
    _, agent = make_agent(context, scripted_turns(MAIL))
    session = agent.create_session(session_id="odd")
    session.state["odd"] = object()
    try:
        await agent.run("Go.", session=session)
    except Misconfigured as error:
        return {"ran": context.calls, "says": str(error)}
    return {}


async def no_session(context: ScenarioContext) -> Any:
    _, agent = make_agent(context, scripted_turns(LOOK))
    try:
        await agent.run("Go.")
    except MiddlewareFailure as error:
        return {"ran": context.calls, "error": type(error).__name__, "says": str(error)}
    return {}


async def no_database(context: ScenarioContext) -> Any:
    """It cannot be opened: nothing runs, not even a read, and the run ends."""
    gate = Gate(Interlock(f"sqlite:///{context.folder}/gone/approvals.db").agent("clerk"), EFFECTS)
    _, agent = make_agent(context, scripted_turns(LOOK), gate)
    try:
        await agent.run("Go.", session=agent.create_session(session_id="down"))
    except MiddlewareFailure as error:
        return {"ran": context.calls, "error": type(error).__name__}
    return {}


async def a_tool_that_fails(context: ScenarioContext) -> Any:
    """It ran: the record says failed, and the model hears it from the framework."""

    def send_mail(to: str) -> str:
        raise RuntimeError(f"no mailbox for {to}")

    gate, agent = make_agent(context, scripted_turns(MAIL), tools=[tool(send_mail)])
    session = agent.create_session(session_id="fails")
    await agent.run("Go.", session=session)
    await context.decide("fails", Approve())
    saved = session.to_dict()
    await gate.recheck(agent, session)
    again = AgentSession.from_dict(saved)
    await gate.recheck(agent, again)
    return {
        "status": context.statuses("fails"),
        "told": tool_results(session_messages(session)) + tool_results(session_messages(again)),
    }


if __name__ == "__main__":
    run_scenarios(
        without_it_resumed_twice,
        resumed_twice,
        forged,
        made_up,
        edited_by_the_client,
        edited_by_a_person,
        edited_into_its_like,
        refused_by_the_client,
        streamed,
        the_same_id_again,
        sub_agent,
        sub_agents_pause,
        workflow,
        stops_by_itself,
        not_ours,
        cannot_be_kept,
        no_session,
        no_database,
        a_tool_that_fails,
    )
