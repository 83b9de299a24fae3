"""What is special to the OpenAI Agents SDK: scenes in one process, one run each. Prints what was seen, as JSON."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    Runner,
    RunState,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolOutputText,
    UserError,
    WebSearchTool,
    function_tool,
    tool_input_guardrail,
)

from interlock import Approve, Edit, Interlock, Misconfigured, Reject, ToolSpec
from interlock.core.run import Pause
from interlock.integrations.openai_agents import GatedAgent, gated
from tests.frameworks.programs.model_scripts import Call
from tests.frameworks.programs.openai_agents_context import (
    EFFECTS,
    LOOK,
    OTHER,
    POLICY,
    REFUND,
    FakeMcpServer,
    ScenarioContext,
    drain,
    scripted_model,
    wait_until,
)
from tests.frameworks.programs.openai_agents_model import ScriptedModel, results


async def handed_off(context: ScenarioContext) -> Any:
    """The agent to which it hands off has a switch of its own: there, a read asks."""

    def made() -> GatedAgent:
        billing = Agent(
            "billing", tools=context.tools(), model=ScriptedModel(lambda told: () if len(told) > 2 else (LOOK, REFUND))
        )
        over = ScriptedModel(lambda _: (Call("over", "transfer_to_billing", {}),))
        support = Agent("support", tools=context.tools(), handoffs=[billing], model=over)
        return gated(support, context.lock.agent("support"), EFFECTS)

    context.lock.agent("billing", tool_approvals={"look_up": True})
    first = await made().run("Go.", run_id="handed_off")
    waiting = [(row["tool"], row["path"]) for row in context.approvals("handed_off")]
    await context.decide("handed_off", Approve(), Approve())
    ran_before = list(context.calls)
    end = await made().resume(await context.ready("handed_off"))
    assert end is not None
    return {
        "waiting": waiting,
        "held": len(first.interruptions),
        "before": ran_before,
        "after": context.calls,
        "said": end.final_output,
        "agent": end.last_agent.name,
    }


async def as_tool(context: ScenarioContext) -> Any:
    """An agent inside an agent: its question comes out, and the answer finds its way back."""

    def made() -> GatedAgent:
        clerk = Agent("clerk", tools=context.tools(), model=scripted_model(REFUND))
        ask = clerk.as_tool("ask_clerk", "Asks the clerk.")
        return context.support(Call("outer", "ask_clerk", {"input": "Refund A1."}), tools=[ask])

    first = await made().run("Go.", run_id="as_tool")
    waiting = [(row["tool"], row["path"]) for row in context.approvals("as_tool")]
    await context.decide("as_tool", Approve())
    ran_before = list(context.calls)
    end = await made().resume(await context.ready("as_tool"))
    assert end is not None
    return {
        "waiting": waiting,
        "held": [item.name for item in first.interruptions],
        "before": ran_before,
        "after": context.calls,
        "said": end.final_output,
    }


async def shared(context: ScenarioContext) -> Any:
    """One agent as a tool of two others: what asks goes by who called it."""
    clerk = Agent("clerk", tools=context.tools(), model=scripted_model(LOOK))
    ask = clerk.as_tool("ask_clerk", "Asks the clerk.")
    desks = [
        Agent(name, tools=[ask], model=scripted_model(Call("c", "ask_clerk", {"input": "Look."})))
        for name in ("a", "b")
    ]
    context.lock.agent("b", tool_approvals={"look_up": True})
    tools = [desk.as_tool(f"ask_{desk.name}", "Asks a desk.") for desk in desks]
    calls = [Call(desk.name, f"ask_{desk.name}", {"input": "Go."}) for desk in desks]
    first = await context.support(*calls, tools=tools).run("Go.", run_id="shared")
    paths = [row["path"] for row in context.approvals("shared")]
    await context.decide("shared", Reject())
    return {"held": len(first.interruptions), "paths": paths, "ran": context.calls}


async def agent_that_asks(context: ScenarioContext) -> Any:
    """A rule or an effect can make the call of an agent ask, like any tool; the edit is what it is told."""

    def made() -> GatedAgent:
        clerk = Agent("clerk", tools=context.tools(), model=scripted_model(LOOK))
        ask = clerk.as_tool("ask_clerk", "Asks the clerk.")
        call = Call("outer", "ask_clerk", {"input": "Look."})
        return context.support(call, tools=[ask], effects={**EFFECTS, "ask_clerk": "write"})

    await made().run("Go.", run_id="agent_that_asks")
    await context.decide("agent_that_asks", Edit({"input": "Look closely."}))
    before = list(context.calls)
    again = made()
    end = await again.resume(await context.ready("agent_that_asks"))
    assert end is not None
    clerk = again.agent.tools[0]._agent_instance
    return {"before": before, "after": context.calls, "said": end.final_output, "told": _first_words(clerk.model)}


def _first_words(model: Any) -> Any:
    seen = model.inputs[0]
    return seen if isinstance(seen, str) else seen[0]["content"]


async def one_of_two(context: ScenarioContext) -> Any:
    """One is decided and goes on at once when it is resumed; the other still waits."""
    support = context.support(REFUND, OTHER)
    with support.conversation("one_of_two"):
        pause = await support.save_pause(await Runner.run(support.agent, "Go."))
    assert pause is not None
    nothing = await context.support(REFUND, OTHER).resume(pause)
    await context.decide("one_of_two", Approve())
    half = await context.support(REFUND, OTHER).resume(pause)
    assert half is not None
    ran_half, held = list(context.calls), [json.loads(item.arguments)["order"] for item in half.interruptions]
    await context.decide("one_of_two", Reject("Not this one."))
    end = await context.support(REFUND, OTHER).resume(await context.ready("one_of_two"))
    assert end is not None
    told = results(end.to_input_list())
    return {"nothing": nothing, "half": ran_half, "held": held, "after": context.calls, "told": told}


async def forged(context: ScenarioContext) -> Any:
    """The SDK is told `approve`, and nobody has decided: nothing runs. After the decision, the kept run does."""
    support = context.support(REFUND)
    with support.conversation("forged"):
        first = await Runner.run(support.agent, "Go.")
        await support.save_pause(first)
        state = first.to_state()
        state.approve(first.interruptions[0], always_approve=True)
        told = (await Runner.run(support.agent, state)).final_output
    before = list(context.calls)
    await context.decide("forged", Approve())
    end = await context.support(REFUND).resume(await context.ready("forged"))
    assert end is not None
    return {
        "told": told,
        "before": before,
        "after": context.calls,
        "said": end.final_output,
        "rows": context.statuses("forged"),
    }


async def rejected(context: ScenarioContext) -> Any:
    """A person said no, and whoever drives the SDK says approve."""
    support = context.support(REFUND)
    with support.conversation("rejected"):
        first = await Runner.run(support.agent, "Go.")
        await context.decide("rejected", Reject("Too much."))
        state = first.to_state()
        state.approve(first.interruptions[0])
        end = await Runner.run(support.agent, state)
    return {"told": end.final_output, "ran": context.calls}


async def edited(context: ScenarioContext) -> Any:
    """What ran is what the person wrote, and the model is told so; also when the same state is run again."""
    support = context.support(REFUND)
    with support.conversation("edited"):
        first = await Runner.run(support.agent, "Go.")
        state = json.dumps(first.to_state().to_json())
        await context.decide("edited", Edit({"order": "Z9"}))
        told = []
        for _ in range(2):
            again = await RunState.from_json(support.agent, json.loads(state))
            again.approve(again.get_interruptions()[0])
            told.append((await Runner.run(support.agent, again)).final_output)
    return {"told": told, "ran": context.calls}


async def streamed(context: ScenarioContext) -> Any:
    support, kinds = context.support(REFUND), set()
    async with support.run_streamed("Go.", run_id="streamed") as result:
        async for event in result.stream_events():
            kinds.add(event.type)
    held = len(result.interruptions)
    await context.decide("streamed", Approve())
    async with support.resume_streamed(await context.ready("streamed")) as result:
        async for event in result.stream_events():
            kinds.add(event.type)
    left = [pause.run_id for pause in await support.gate.list_pauses()]
    return {"held": held, "said": result.final_output, "ran": context.calls, "left": left, "kinds": sorted(kinds)}


async def stream_in_parts(context: ScenarioContext) -> Any:
    """Two that ask, one of them inside of another agent, decided one after the other; each time it is a stream."""

    def made() -> GatedAgent:
        clerk = Agent("clerk", tools=context.tools(), model=scripted_model(REFUND))
        tools = [*context.tools(), clerk.as_tool("ask_clerk", "Asks the clerk.")]
        return context.support(Call("outer", "ask_clerk", {"input": "Refund A1."}), OTHER, tools=tools)

    held: list[list[str]] = []

    async def read(streaming: Any) -> Any:
        """Opened here, read in another task, closed here."""
        async with streaming as result:
            await asyncio.ensure_future(drain(result))
        held.append(sorted(json.loads(item.arguments)["order"] for item in result.interruptions))
        return result

    await read(made().run_streamed("Go.", run_id="stream_in_parts"))
    await read(made().resume_streamed(_kept(context, "stream_in_parts")))
    ran: list[list[str]] = [list(context.calls)]
    waiting = {row["path"][-1]: row["id"] for row in context.approvals("stream_in_parts")}
    await context.lock.decide(waiting["clerk"], Approve(), "ada")
    await read(made().resume_streamed(_kept(context, "stream_in_parts")))
    ran.append(list(context.calls))
    await context.decide("stream_in_parts", Approve())
    result = await read(made().resume_streamed(await context.ready("stream_in_parts")))
    return {"held": held, "ran": [*ran, context.calls], "said": result.final_output}


def _kept(context: ScenarioContext, run: str) -> Pause:
    """With its state, decided or not, as nobody but a test wants it."""
    with sqlite3.connect(context.folder / "approvals.db") as database:
        state, fence = database.execute("select state, fence from pauses where run_id = ?", (run,)).fetchone()
    return Pause(run_id=run, agent="support", state=bytes(state), paused_at=0, fence=fence)


async def stream_left(context: ScenarioContext) -> Any:
    """Somebody stops listening inside the tool: its outcome is unknown, and it is never run again."""
    started = asyncio.Event()

    async def refund(order: str) -> str:
        context.calls.append(f"refund {order}")
        started.set()
        await asyncio.Event().wait()
        return "never"

    tool = function_tool(refund)
    support = context.support(REFUND, tools=[tool], effects={"refund": "write"})
    await support.run("Go.", run_id="stream_left")
    await context.decide("stream_left", Approve())
    pause = await context.ready("stream_left")
    async with support.resume_streamed(pause) as result:
        reading = asyncio.ensure_future(drain(result))
        await started.wait()
        result.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await wait_until(lambda: context.statuses("stream_left") == ["unknown"])
    end = await context.support(REFUND).resume(pause)
    assert end is not None
    return {"ran": context.calls, "said": end.final_output}


async def session(context: ScenarioContext) -> Any:
    """The name of the conversation is the session's; its history is whole after a pause, and goes on."""

    def opened() -> Any:
        return SQLiteSession("session", context.folder / "sessions.db")

    first = await context.support(REFUND).run("Go.", session=opened())
    between = [item.get("type", item.get("role")) for item in await opened().get_items()]
    await context.decide("session", Approve())
    await context.support(REFUND).resume(await context.ready("session"), session=opened())
    after = [item.get("type", item.get("role")) for item in await opened().get_items()]
    second = await context.support(OTHER).run("And B2.", session=opened())
    await context.decide("session", Approve())
    end = await context.support(OTHER).resume(await context.ready("session"), session=opened())
    assert end is not None
    return {
        "held": [len(first.interruptions), len(second.interruptions)],
        "between": between,
        "after": after,
        "ran": context.calls,
        "said": end.final_output,
    }


async def at_once(context: ScenarioContext) -> Any:
    """Twenty conversations with one agent at the same time: each has its own question, and goes on by itself."""
    support, runs = context.support(REFUND), [f"at once {number}" for number in range(20)]
    await asyncio.gather(*(support.run("Go.", run_id=run) for run in runs))
    asked = [len(context.approvals(run)) for run in runs]
    stop, over = asyncio.Event(), []

    async def resume(pause: Pause) -> None:
        result = await support.resume(pause)
        over.append((pause.run_id, result and result.final_output))
        if len(over) == len(runs):
            stop.set()

    await asyncio.gather(support.gate.resume_all(resume, stop), *(context.decide(run, Approve()) for run in runs))
    return {"asked": asked, "over": len(set(over)), "ran": len(context.calls)}


async def id_used_again(context: ScenarioContext) -> Any:
    """Another message of the same conversation, and a model that uses its ids again: that is another call."""
    for words in ("Refund A1.", "And once more."):
        await context.support(REFUND).run(words, run_id="id_used_again")
        await context.decide("id_used_again", Approve())
        await context.support(REFUND).resume(await context.ready("id_used_again"))
    return {"ran": context.calls, "rows": context.statuses("id_used_again")}


async def ids_that_meet(context: ScenarioContext) -> Any:
    """A read that was free, and that a guardrail stopped; then a denied tool with its id and its arguments."""

    async def wipe(order: str) -> str:
        context.calls.append(f"wipe {order}")
        return f"wiped {order}"

    @tool_input_guardrail
    def stops(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("stopped")

    tools = [context.tools()[1], function_tool(wipe)]
    tools[0].tool_input_guardrails = [stops]
    desks = [
        Agent(tool.name, tools=[tool], model=scripted_model(Call("same", tool.name, {"order": "A1"}))) for tool in tools
    ]
    calls = [Call(desk.name, f"ask_{desk.name}", {"input": "Go."}) for desk in desks]
    model = ScriptedModel(lambda told: (calls[len(told)],) if len(told) < len(calls) else " | ".join(told))
    support = Agent("support", tools=[desk.as_tool(f"ask_{desk.name}", "Asks a desk.") for desk in desks], model=model)
    end = await gated(support, context.lock.agent("support"), EFFECTS).run("Go.", run_id="ids_that_meet")
    return {"ran": context.calls, "said": end.final_output}


async def two_desks(context: ScenarioContext) -> Any:
    """Two agents that are tools want the same, under the same id: what is approved for one is not the other's."""

    def made() -> GatedAgent:
        desks = [Agent(name, tools=context.tools(), model=scripted_model(REFUND)) for name in ("a", "b")]
        calls = [Call(desk.name, f"ask_{desk.name}", {"input": "Go."}) for desk in desks]
        return context.support(*calls, tools=[desk.as_tool(f"ask_{desk.name}", "Asks a desk.") for desk in desks])

    first = await made().run("Go.", run_id="two_desks")
    rows = {row["path"][-1]: row["id"] for row in context.approvals("two_desks")}
    await context.lock.decide(rows["a"], Approve(), "ada")
    await context.lock.decide(rows["b"], Reject("Not by b."), "ada")
    end = await made().resume(await context.ready("two_desks"))
    assert end is not None
    return {"held": len(first.interruptions), "desks": sorted(rows), "ran": context.calls, "said": end.final_output}


async def failing(context: ScenarioContext) -> Any:
    """What the SDK does about an error stays; the record says that it failed."""

    async def refund(order: str) -> str:
        context.calls.append(f"refund {order}")
        raise ValueError(f"no {order}")

    policy = {"refund": ToolSpec("refund", "write")}
    told: dict[str, Any] = {}
    ways: dict[str, Any] = {"default": {}, "own": {"failure_error_function": lambda _, e: f"own: {e}"}}
    ways["raised"] = {"failure_error_function": None}
    for name, way in ways.items():
        run = f"failing {name}"
        tools = [function_tool(refund, **way)]
        await context.support(REFUND, tools=tools, effects=policy).run("Go.", run_id=run)
        await context.decide(run, Approve())
        pause = await context.ready(run)
        try:
            end = await context.support(REFUND, tools=tools, effects=policy).resume(pause)
            told[name] = end and end.final_output
        except UserError as error:
            told[name] = str(error)
            end = await context.support(REFUND, tools=tools, effects=policy).resume(pause)
            told["again"] = end and end.final_output
        told[f"{name} row"] = context.statuses(run)
    return {**told, "ran": context.calls}


async def too_slow(context: ScenarioContext) -> Any:
    """The SDK's own timeout: the model is told, its outcome is unknown, and it is never run again."""
    loop = asyncio.get_running_loop()
    now = loop.time

    async def refund(order: str) -> str:
        context.calls.append(f"refund {order}")
        loop.time = lambda: now() + 7_200  # type: ignore[method-assign]
        await asyncio.Event().wait()
        return "never"

    def made() -> GatedAgent:
        return context.support(REFUND, tools=[function_tool(refund, timeout=3_600)])

    await made().run("Go.", run_id="too_slow")
    await context.decide("too_slow", Approve())
    pause = await context.ready("too_slow")
    end = await made().resume(pause)
    await wait_until(lambda: context.statuses("too_slow") == ["unknown"])
    again = await made().resume(pause)
    assert end is not None
    assert again is not None
    return {"told": end.final_output, "again": again.final_output, "ran": context.calls}


async def cancelled(context: ScenarioContext) -> Any:
    started = asyncio.Event()

    async def refund(order: str) -> str:
        context.calls.append(f"refund {order}")
        started.set()
        await asyncio.Event().wait()
        return "never"

    def made() -> GatedAgent:
        return context.support(REFUND, tools=[function_tool(refund)])

    await made().run("Go.", run_id="cancelled")
    await context.decide("cancelled", Approve())
    pause = await context.ready("cancelled")
    running = asyncio.ensure_future(made().resume(pause))
    await started.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await wait_until(lambda: context.statuses("cancelled") == ["unknown"])
    again = await made().resume(pause)
    assert again is not None
    return {"again": again.final_output, "ran": context.calls}


async def mcp(context: ScenarioContext) -> Any:
    """Tools of an MCP server are gated like others; a clone of the agent has no way around it."""
    calls = (Call("m1", "read_file", {"path": "a"}), Call("m2", "delete_file", {"path": "b"}))

    def made() -> GatedAgent:
        return context.support(*calls, tools=[], effects={"read_file": "read"}, mcp_servers=[FakeMcpServer(context)])

    await made().run("Go.", run_id="mcp")
    before = list(context.calls)
    await context.decide("mcp", Edit({"path": "c"}))
    support = made()
    end = await support.resume(await context.ready("mcp"))
    assert end is not None
    clone = support.agent.clone()
    return {
        "before": before,
        "after": context.calls,
        "said": [str(item["output"]) for item in end.to_input_list() if item.get("type") == "function_call_output"],
        "clone": [tool.name for tool in await clone.get_all_tools(end.context_wrapper)],
    }


async def mcp_errors(context: ScenarioContext) -> Any:
    """A server that says no has failed; one that does not answer has done nobody knows what."""
    calls = [Call(f"m{name}", "delete_file", {"path": name}) for name in ("lost", "refused")]

    def made() -> GatedAgent:
        return context.support(*calls, tools=[], mcp_servers=[FakeMcpServer(context)])

    await made().run("Go.", run_id="mcp_errors")
    await context.decide("mcp_errors", Approve(), Approve())
    pause = await context.ready("mcp_errors")
    told = []
    for _ in range(2):
        end = await made().resume(pause)
        assert end is not None
        told.append(results(end.to_input_list()))
    return {"ran": sorted(context.calls), "rows": context.statuses("mcp_errors"), "told": told}


async def refusals(context: ScenarioContext) -> Any:
    """What cannot be gated or has no name is refused, and says what to do."""
    said: dict[str, str] = {}
    support = context.support(REFUND)
    for name, attempt in {
        "no name": lambda: support.run("Go."),
        "no conversation": lambda: Runner.run(support.agent, "Go."),
    }.items():
        try:
            await attempt()
        except (Misconfigured, UserError) as error:
            said[name] = str(error)
    hosted = Agent("support", tools=[WebSearchTool()])
    try:
        gated(hosted, context.lock.agent("support"))
    except Misconfigured as error:
        said["hosted"] = str(error)
    gated(hosted, context.lock.agent("support"), ungated=["web_search"])
    server = FakeMcpServer(context)
    server.max_retry_attempts = 2  # type: ignore[attr-defined]
    try:
        context.support(tools=[], mcp_servers=[server])
    except Misconfigured as error:
        said["sent twice"] = str(error)
    try:
        gated(support.agent, context.lock.agent("other"))
    except Misconfigured as error:
        said["two gates"] = str(error)
    return {**said, "ran": context.calls}


async def store_gone(context: ScenarioContext) -> Any:
    """Nobody can be asked: nothing runs."""
    gone = Interlock(f"sqlite:///{context.folder / 'nowhere' / 'approvals.db'}")
    support = Agent("support", tools=context.tools(), model=scripted_model(LOOK, REFUND))
    said = ""
    try:
        await gated(support, gone.agent("support"), EFFECTS).run("Go.", run_id="store_gone")
    except UserError as error:
        said = str(error)
    return {"said": said, "ran": context.calls}


async def bad_arguments(context: ScenarioContext) -> Any:
    """What does not fit the schema goes back to the model, and nobody is asked; what is no JSON as well."""
    wrong = Call("call_1", "refund", {"order": 7})
    misfit = await context.support(wrong).run("Go.", run_id="bad_arguments")

    class Broken(ScriptedModel):
        text = ""

        def _output(self, input: Any) -> list[Any]:
            said = super()._output(input)
            for item in said:
                if item.type == "function_call":
                    item.arguments = self.text
            return said

    told = [misfit.final_output]
    for text in ("{no json", '{"order": NaN}', '{"order": "\\u0000"}', "[1]"):
        support = context.support(REFUND)
        support.agent.model = broken = Broken(scripted_model(REFUND).next)
        broken.text = text
        told.append((await support.run("Go.", run_id="bad_arguments")).final_output)
    return {"told": told, "ran": context.calls, "rows": context.statuses("bad_arguments")}


async def small_things(context: ScenarioContext) -> Any:
    """A tool without arguments, one added later, one that the SDK was told to ask about, one of nobody's making."""

    def ping() -> str:
        context.calls.append("ping")
        return "pong"

    async def invoke(_: Any, text: str) -> Any:
        context.calls.append(f"custom {text}")
        return [ToolOutputText(text="custom ok")]

    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    schema["additionalProperties"] = False
    custom = FunctionTool("custom", "By hand.", schema, invoke)
    calls = (Call("s1", "ping", {}), Call("s2", "look_up", {"order": "A1"}), Call("s3", "custom", {"x": 1}))

    class Empty(ScriptedModel):
        def _output(self, input: Any) -> list[Any]:
            said = super()._output(input)
            for item in said:
                if item.type == "function_call" and item.name == "ping":
                    item.arguments = ""
            return said

    def made() -> GatedAgent:
        careful = [tool for tool in context.tools() if tool.name == "look_up"]
        careful[0].needs_approval = True
        support = context.support(*calls, tools=careful)
        support.agent.tools = [*support.agent.tools, function_tool(ping), custom]
        support.agent.model = Empty(scripted_model(*calls).next)
        return support

    first = await made().run("Go.", run_id="small_things")
    before = list(context.calls)
    await context.decide("small_things", Approve(), Approve(), Edit({"x": 2}))
    edited_first = [row["tool"] for row in context.approvals("small_things")]
    end = await made().resume(await context.ready("small_things"))
    assert end is not None
    outputs = [item["output"] for item in end.to_input_list() if item.get("type") == "function_call_output"]
    return {
        "held": len(first.interruptions),
        "asked": edited_first,
        "before": before,
        "after": context.calls,
        "told": outputs,
    }


async def handoff_by_hand(context: ScenarioContext) -> Any:
    """A handoff that names its agent only when it happens is gated when it happens."""
    billing = Agent(
        "billing", tools=context.tools(), model=ScriptedModel(lambda told: (REFUND,) if len(told) < 2 else "done")
    )

    async def over(_: Any, __: str) -> Any:
        return billing

    by_hand: Any = Handoff("transfer", "Hands off.", {}, over, "billing")
    support = Agent("support", handoffs=[by_hand], model=ScriptedModel(lambda _: (Call("over", "transfer", {}),)))
    first = await gated(support, context.lock.agent("support"), EFFECTS).run("Go.", run_id="handoff_by_hand")
    paths = [row["path"] for row in context.approvals("handoff_by_hand")]
    await context.decide("handoff_by_hand", Reject())
    return {"held": len(first.interruptions), "paths": paths, "ran": context.calls}


async def own_step(context: ScenarioContext) -> Any:
    """The red control: the SDK alone, resumed twice from the same state, and what it does with what is not approved."""
    agent = Agent("support", tools=context.tools(needs_approval=True), model=scripted_model(REFUND))
    first = await Runner.run(agent, "Go.")
    state = json.dumps(first.to_state().to_json())
    for _ in range(2):
        again = await RunState.from_json(agent, json.loads(state))
        again.approve(again.get_interruptions()[0])
        await Runner.run(agent, again)
    return {"ran": context.calls}


SCENARIOS = [
    handed_off,
    as_tool,
    shared,
    agent_that_asks,
    one_of_two,
    forged,
    rejected,
    edited,
    streamed,
    stream_in_parts,
    stream_left,
    session,
    at_once,
    id_used_again,
    ids_that_meet,
    two_desks,
    failing,
    too_slow,
    cancelled,
    mcp,
    mcp_errors,
    refusals,
    store_gone,
    bad_arguments,
    small_things,
    handoff_by_hand,
    own_step,
]


async def main(folder: Path) -> None:
    seen = {}
    with Interlock(f"sqlite:///{folder / 'approvals.db'}", policy=POLICY) as lock:
        for scene in SCENARIOS:
            seen[scene.__name__] = await scene(ScenarioContext(lock, folder))
            for pause in await lock.agent("support").acquire_ready_pauses(0):
                await lock.agent("support").complete_pause(pause)  # the next scene begins with none
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
