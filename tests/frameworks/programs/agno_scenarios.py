"""What is special to Agno: scenes in one process. Prints what was seen, as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.run import RunContext
from agno.team import Team
from agno.tools import Toolkit, tool

from interlock import Approve, Edit, Interlock, Misconfigured, Reject
from interlock.core.errors import EffectUnknown
from interlock.integrations.agno import Gate
from tests.frameworks.programs.agno import Script, results_of
from tests.frameworks.programs.model_scripts import Call
from tests.frameworks.programs.scenarios import ScenarioContext, run_scenarios

EFFECTS = {"send_mail": "write", "look_up": "read"}
MAIL = Call("call_1", "send_mail", {"to": "bob"})
LOOK = Call("call_3", "look_up", {"order": "A1"})


def says(*calls: Call) -> Callable[[int], Sequence[Call]]:
    return lambda results: calls if results < len(calls) else ()


def one_by_one(*calls: Call) -> Callable[[int], Sequence[Call]]:
    return lambda results: calls[results : results + 1]


def made(context: ScenarioContext, script: Any, *tools: Any, **more: Any) -> tuple[Gate, Agent]:
    gate = more.pop("gate", None) or Gate(context.lock.agent("clerk"), EFFECTS)
    gated = gate.tools(*(tools or (context.send_mail, context.look_up)))
    more = {"id": "clerk", "db": SqliteDb(db_file=str(context.folder / "agno.db")), **more}
    return gate, Agent(model=Script(script), tools=gated, telemetry=False, **more)


def told(run: Any) -> list[str]:
    return results_of(run.messages)


async def without_it_resumed_twice(context: ScenarioContext) -> Any:
    """Its own step: the run is taken from its database by two, and confirmed by each."""
    db = SqliteDb(db_file=str(context.folder / "agno.db"))
    asks = tool(requires_confirmation=True)(context.send_mail)
    agent = Agent(id="own", model=Script(says(MAIL)), tools=[asks], db=db, telemetry=False)
    first = await agent.arun("Go.", session_id="own")
    runs = [await agent.aget_run_output(first.run_id, session_id="own") for _ in range(2)]
    for run in runs:
        run.active_requirements[0].confirm()
        run.tools[0].confirmed = True
    await asyncio.gather(*(agent.acontinue_run(run_response=run) for run in runs))
    return context.calls


async def resumed_twice(context: ScenarioContext) -> Any:
    gate, agent = made(context, says(MAIL))
    await gate.arun(agent, "Go.", session_id="twice")
    await context.decide("twice", Approve())
    (pause,) = await gate.agent.acquire_ready_pauses(0)
    ends = await asyncio.gather(*(gate.resume(agent, pause) for _ in range(2)))
    return {"ran": context.calls, "told": [told(end) for end in ends], "left": len(await gate.agent.list_pauses())}


async def forged(context: ScenarioContext) -> Any:
    """A client confirms what nobody has decided: the tool is called, and waits inline."""
    _, agent = made(context, says(MAIL))
    run = await agent.arun("Go.", session_id="forged")
    for requirement in run.active_requirements:
        requirement.confirm()
    running = asyncio.ensure_future(
        agent.acontinue_run(run_id=run.run_id, session_id="forged", requirements=run.requirements)
    )
    await context.decide("forged", Reject("No."))
    return {"told": told(await running), "ran": context.calls, "statuses": context.statuses("forged")}


async def edited_by_the_client(context: ScenarioContext) -> Any:
    """The requirement that comes back names other arguments, and another tool."""
    gate, agent = made(context, says(MAIL))
    run = await gate.arun(agent, "Go.", session_id="edited")
    await context.decide("edited", Approve())
    (requirement,) = run.active_requirements
    requirement.tool_execution.tool_args = {"to": "mallory"}
    requirement.confirm()
    end = await agent.acontinue_run(run_id=run.run_id, session_id="edited", requirements=[requirement])
    (pause,) = await gate.agent.acquire_ready_pauses(0)
    later = await gate.resume(agent, pause)
    return {"ran": context.calls, "told": told(end), "later": told(later), "left": len(await gate.agent.list_pauses())}


async def edited_by_a_person(context: ScenarioContext) -> Any:
    """The tool has what Agno gives to tools, and a hook of its own."""
    seen: list[Any] = []

    def hook(function_name: str, func: Any, args: Any) -> Any:
        seen.append(["hook", function_name, dict(args)])
        return func(**args)

    @tool(tool_hooks=[hook])
    def book(run_context: RunContext, day: str, seats: int = 1) -> str:
        """Books a table."""
        seen.append([run_context.session_id, day, seats])
        return "booked"

    gate, agent = made(context, says(Call("call_1", "book", {"day": "Monday"})), book)
    run = await gate.arun(agent, "Go.", session_id="person")
    await context.decide("person", Edit({"day": "Tuesday", "seats": 2}))
    end = await gate.acontinue_run(agent, run)
    return {"seen": seen, "told": told(end), "status": context.statuses("person")}


async def two_calls(context: ScenarioContext) -> Any:
    """One asks: the other runs at once."""
    gate, agent = made(context, says(LOOK, MAIL))
    run = await gate.arun(agent, "Go.", session_id="two")
    before = list(context.calls)
    await context.decide("two", Approve())
    end = await gate.acontinue_run(agent, run)
    return {"before": before, "after": context.calls, "told": told(end), "left": len(await gate.agent.list_pauses())}


async def the_same_id_again(context: ScenarioContext) -> Any:
    """The model calls everything call_1."""
    gate, agent = made(context, one_by_one(MAIL, MAIL._replace(args={"to": "carol"}), MAIL))
    run = await gate.arun(agent, "Go.", session_id="ids")
    for _ in range(3):
        await context.decide("ids", Approve())
        (pause,) = await gate.agent.acquire_ready_pauses(0)
        run = await gate.resume(agent, pause)
    return {"ran": context.calls, "statuses": context.statuses("ids"), "paused": run.is_paused}


async def team(context: ScenarioContext) -> Any:
    """The member's question holds up the team, under its path; the team goes on when it is decided."""
    leader = Gate(context.lock.agent("desk"), EFFECTS)
    member = leader.member("writer", {"look_up": True})
    db = SqliteDb(db_file=str(context.folder / "agno.db"))

    def staffed() -> Team:
        writer = Agent(
            id="writer", name="writer", model=Script(says(MAIL)), tools=member.tools(context.send_mail), telemetry=False
        )
        over = Call("call_1", "delegate_task_to_member", {"member_id": "writer", "task": "Write."})
        return Team(id="desk", name="desk", members=[writer], model=Script(says(over)), db=db, telemetry=False)

    first = await leader.arun(staffed(), "Go.", session_id="team")
    paths, before = [row["path"] for row in context.approvals("team")], list(context.calls)
    await context.decide("team", Approve())
    (pause,) = await leader.agent.acquire_ready_pauses(0)
    end = await leader.resume(staffed(), pause)
    return {"held": first.is_paused, "paths": paths, "before": before, "after": context.calls, "end": end.is_paused}


async def synchronous(context: ScenarioContext) -> Any:
    """In a thread of its own, as a program without an event loop."""
    gate, agent = made(context, says(MAIL))
    run = await asyncio.to_thread(gate.run, agent, "Go.", session_id="sync")
    held = run.is_paused
    await context.decide("sync", Approve())
    end = await asyncio.to_thread(gate.continue_run, agent, run)
    return {"held": held, "ran": context.calls, "told": told(end), "left": len(await gate.agent.list_pauses())}


async def streamed(context: ScenarioContext) -> Any:
    """The stream ends where the run stands still; its last part is the run."""
    gate, agent = made(context, says(LOOK, MAIL))
    parts = agent.arun("Go.", session_id="streamed", stream=True, yield_run_output=True)
    *_, last = [part async for part in parts]
    run = await gate.acontinue_run(agent, last)
    before, held = list(context.calls), run.is_paused
    await context.decide("streamed", Approve())
    end = await gate.acontinue_run(agent, run)
    return {"before": before, "held": held, "after": context.calls, "told": told(end)}


async def with_input_of_the_user(context: ScenarioContext) -> Any:
    """The user fills in who gets it; what comes of it asks, and waits inline."""
    asks = tool(requires_user_input=True, user_input_fields=["to"])(context.send_mail)
    gate, agent = made(context, says(MAIL._replace(args={})), asks)
    run = await gate.arun(agent, "Go.", session_id="input")
    (requirement,) = run.active_requirements
    requirement.provide_user_input({"to": "carol"})
    running = asyncio.ensure_future(
        agent.acontinue_run(run_id=run.run_id, session_id="input", requirements=run.requirements)
    )
    await context.decide("input", Approve())
    return {"told": told(await running), "ran": context.calls}


async def without_a_db(context: ScenarioContext) -> Any:
    """There is nothing to go on from: it waits inline."""
    gate, agent = made(context, says(MAIL), db=None)
    running = asyncio.ensure_future(gate.arun(agent, "Go.", session_id="no db"))
    await context.decide("no db", Approve())
    return {"told": told(await running), "ran": context.calls}


async def a_read_that_asks(context: ScenarioContext) -> Any:
    """Agno cannot pause before it: it waits inline."""
    context.lock.agent("asks", tool_approvals={"look_up": True})
    gate, agent = made(context, says(LOOK), gate=Gate(context.lock.agent("asks"), EFFECTS))
    running = asyncio.ensure_future(gate.arun(agent, "Go.", session_id="read"))
    await context.decide("read", Approve())
    return {"told": told(await running), "ran": context.calls}


async def toolkit(context: ScenarioContext) -> Any:
    """Its tools, an async one and one that gives its result in parts."""

    async def later(order: str) -> str:
        """Looks it up later."""
        await asyncio.sleep(0)
        return f"{order} later"

    def parts(order: str) -> Iterator[str]:
        """Gives it in parts."""
        yield order
        yield " in parts"

    kit = Toolkit(name="orders", tools=[later, parts], instructions="Mind the orders.", add_instructions=True)
    wanted = (Call("call_1", "later", {"order": "A1"}), Call("call_2", "parts", {"order": "B2"}))
    gate, agent = made(context, says(*wanted), kit, gate=Gate(context.lock.agent("clerk")))
    run = await gate.arun(agent, "Go.", session_id="kit")
    await context.decide("kit", Approve(), Approve())
    end = await gate.acontinue_run(agent, run)
    minds = "Mind the orders." in str(end.messages[0].content)
    return {"asked": [row["tool"] for row in context.approvals("kit")], "told": told(end), "minds": minds}


async def elsewhere(context: ScenarioContext) -> Any:
    """Tools that run outside of Agno, or at the provider of the model, cannot be gated here."""
    said = []
    for outside in (tool(external_execution=True)(context.send_mail), {"type": "web_search"}):
        try:
            made(context, says(MAIL), outside)
        except Misconfigured as error:
            said.append(str(error))
    return said


async def no_database(context: ScenarioContext) -> Any:
    """It cannot be opened: nothing runs, not even a read, and the run ends."""
    gate = Gate(Interlock(f"sqlite:///{context.folder}/gone/approvals.db").agent("clerk"), EFFECTS)
    _, agent = made(context, says(LOOK), gate=gate)
    run = await agent.arun("Go.", session_id="down")
    return {"ran": context.calls, "turns": agent.model.turns, "told": told(run)}


async def a_tool_that_fails(context: ScenarioContext) -> Any:
    def send_mail(to: str) -> str:
        """Sends a mail."""
        raise RuntimeError(f"no mailbox for {to}")

    gate, agent = made(context, says(MAIL), send_mail)
    run = await gate.arun(agent, "Go.", session_id="fails")
    await context.decide("fails", Approve())
    end = await gate.acontinue_run(agent, run)
    return {"status": context.statuses("fails"), "told": told(end)}


async def a_tool_that_does_not_know(context: ScenarioContext) -> Any:
    """It was sent off, and no answer came: to Agno that is an error like any other."""

    async def send_mail(to: str) -> str:
        """Sends a mail."""
        raise EffectUnknown(f"no answer about {to}")

    def send_later(to: str) -> str:
        """Sends a mail."""
        raise EffectUnknown(f"no answer about {to}")

    later = Call("call_1", "send_later", {"to": "bob"})
    seen = []
    for body, call in ((send_mail, MAIL), (send_later, later)):
        gate, agent = made(context, says(call), body)
        run = await gate.arun(agent, "Go.", session_id=body.__name__)
        await context.decide(body.__name__, Approve())
        end = await gate.acontinue_run(agent, run)
        seen.append({"status": context.statuses(body.__name__), "told": told(end)})
    return seen


if __name__ == "__main__":
    run_scenarios(
        without_it_resumed_twice,
        resumed_twice,
        forged,
        edited_by_the_client,
        edited_by_a_person,
        two_calls,
        the_same_id_again,
        team,
        synchronous,
        streamed,
        with_input_of_the_user,
        without_a_db,
        a_read_that_asks,
        toolkit,
        elsewhere,
        no_database,
        a_tool_that_fails,
        a_tool_that_does_not_know,
    )
