"""The `Agent` of the SDK: one attempt at a call, and the message to the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from interlock import (
    Acknowledgement,
    Approve,
    Edit,
    Finished,
    Interlock,
    Misconfigured,
    Reject,
    Respond,
    ToolSpec,
    Waiting,
    to_model_message,
)
from interlock.app.bootstrap import AppServices
from interlock.core.decision import Decision
from interlock.core.errors import CallMismatch, EffectUnknown, InvalidRequest
from interlock.core.identity import KeyBindings
from interlock.core.outcome import Proceed
from interlock.sdk.agent import MAX_ID_LENGTH, Agent, Executed, bounded_id
from tests.databases import Database
from tests.support import BOB

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
SEND = ToolSpec("send", "write", schema=SCHEMA)
MAIL = ToolSpec("mail", "write", schema=SCHEMA)
LOOK = ToolSpec("look", "read")


@pytest.fixture
def make_interlock(connection_options: dict[str, Any]) -> Iterator[Callable[..., Interlock]]:
    made: list[Interlock] = []

    def lock(**options: Any) -> Interlock:
        made.append(Interlock(**connection_options, **{"agent": "mailer", **options}))
        return made[-1]

    yield lock
    for each in made:
        each.close()


@pytest.fixture
def agent(make_interlock: Callable[..., Interlock]) -> Agent:
    return make_interlock().agent()


@pytest.fixture
async def trusted_agent(
    connection_options: dict[str, Any], people_services: AppServices, make_interlock: Callable[..., Interlock]
) -> Agent:
    """One that is not asked about `send`: by its own word, or by the server's settings for the agent of a bound key."""
    if "key" not in connection_options:
        return make_interlock().agent()
    await people_services.store.put_agent("default", "mailer", json.dumps({"tool_approvals": {"send": False}}), "test")
    bindings = KeyBindings(agents=("mailer",))
    _, connection_options["key"] = await people_services.accounts.create_key(
        "default", "mailer", "agent", "test", "", bindings
    )
    agent = make_interlock().agent()
    for number in range(1_000):  # until the server has taken up its settings
        probe = agent.call("send", {"to": "bob"}, "probe", str(number))
        if isinstance(await agent.attempt(probe, SEND, CountingTool()), Executed):
            return agent
        await asyncio.sleep(0.05)
    raise AssertionError("The server did not take up the agent's settings.")


class CountingTool:
    """Counts what it did."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ran: list[Any] = []
        self._error = error

    def now(self, args: Any) -> object:
        self.ran.append(args)
        if self._error is not None:
            raise self._error
        return {"sent": args.get("to")}

    async def __call__(self, args: Any) -> object:
        return self.now(args)


async def decide(
    people_services: AppServices, approval_id: str, decision: Callable[[Acknowledgement], Decision]
) -> None:
    stored = await people_services.store.get("default", approval_id)
    await people_services.inbox.decide(
        "default", approval_id, decision(Acknowledgement(stored.approval.args_sha256)), BOB
    )


async def propose_pending(agent: Agent, call_id: str = "1") -> str:
    outcome = await agent.attempt(agent.call("send", {"to": "bob"}, "run", call_id), SEND, CountingTool())
    assert isinstance(outcome, Waiting), outcome
    return outcome.approval_id


# One attempt


async def test_a_call_waits_runs_once_with_what_was_approved_and_is_known_from_then_on(
    agent: Agent, people_services: AppServices
) -> None:  # R9, R54
    tool, call = CountingTool(), agent.call("send", {"to": "bob"}, "run", "1")
    first = await agent.attempt(call, SEND, tool)
    assert isinstance(first, Waiting)
    assert tool.ran == []
    await decide(people_services, first.approval_id, lambda seen: Edit({"to": "eve"}, seen))
    assert await agent.attempt(call, SEND, tool) == Executed({"sent": "eve"})
    again = await agent.attempt(call, SEND, tool)
    assert again == Finished("succeeded", {"sent": "eve"}, "", first.approval_id)
    assert tool.ran == [{"to": "eve"}]
    assert to_model_message(again, "send") == {"sent": "eve"}


def test_synchronous_tools_do_the_same(trusted_agent: Agent) -> None:  # R54
    tool = CountingTool()
    assert trusted_agent.attempt_sync(trusted_agent.call("look", {}, "run", "1"), LOOK, tool.now) == Executed(
        {"sent": None}
    )
    call = trusted_agent.call("send", {"to": "bob"}, "run", "2", switch="off")
    assert trusted_agent.attempt_sync(call, SEND, tool.now) == Executed({"sent": "bob"})
    assert isinstance(trusted_agent.attempt_sync(call, SEND, tool.now), Finished)
    asks = trusted_agent.call("mail", {"to": "bob"}, "run", "3")
    assert isinstance(trusted_agent.attempt_sync(asks, MAIL, tool.now), Waiting)
    assert tool.ran == [{}, {"to": "bob"}]


async def test_a_tool_that_fails_raises_its_own_error_and_is_not_run_again(trusted_agent: Agent) -> None:  # R54
    tool, call = (
        CountingTool(ValueError("no such mailbox")),
        trusted_agent.call("send", {"to": "bob"}, "run", "1", switch="off"),
    )
    with pytest.raises(ValueError, match="no such mailbox"):
        await trusted_agent.attempt(call, SEND, tool)
    outcome = await trusted_agent.attempt(call, SEND, tool)
    assert isinstance(outcome, Finished)
    said = {"success": False, "status": "failed", "error": "ValueError: no such mailbox"}
    assert (to_model_message(outcome, "send"), len(tool.ran)) == (said, 1)
    plain = trusted_agent.call("send", {"to": "bob"}, "run", "2", switch="off")
    with pytest.raises(ValueError, match="no such mailbox"):
        trusted_agent.attempt_sync(plain, SEND, tool.now)
    assert isinstance(trusted_agent.attempt_sync(plain, SEND, tool.now), Finished)


async def test_a_tool_that_is_interrupted_is_unknown_and_never_run_again(trusted_agent: Agent) -> None:  # R54
    tool = CountingTool(KeyboardInterrupt())  # type: ignore[arg-type]
    call = trusted_agent.call("send", {"to": "bob"}, "run", "1", switch="off")
    with pytest.raises(KeyboardInterrupt):
        await trusted_agent.attempt(call, SEND, tool)
    plain = trusted_agent.call("send", {"to": "bob"}, "run", "2", switch="off")
    with pytest.raises(KeyboardInterrupt):
        trusted_agent.attempt_sync(plain, SEND, tool.now)
    for each in (call, plain):
        outcome = await trusted_agent.attempt(each, SEND, tool)
        assert isinstance(outcome, Finished)
        assert outcome.status == "unknown"
        assert "Do not call it again: a person has to check first." in str(to_model_message(outcome, "send"))
    assert len(tool.ran) == 2


async def test_of_tools_that_do_not_know_whether_they_took_effect_only_idempotent_ones_can_be_tried_again(
    trusted_agent: Agent, connection_options: dict[str, Any]
) -> None:  # R46
    tool = CountingTool(EffectUnknown("It hung up."))
    call = trusted_agent.call("send", {"to": "bob"}, "run", "1", switch="off")
    again = trusted_agent.call("send", {"to": "bob"}, "run", "2", switch="off")
    with pytest.raises(EffectUnknown, match=r"It hung up\."):
        await trusted_agent.attempt(call, SEND, tool)
    outcome = await trusted_agent.attempt(call, SEND, tool)
    assert isinstance(outcome, Finished)
    assert (outcome.status, len(tool.ran)) == ("unknown", 1)
    idempotent = replace(SEND, idempotent=True)
    with pytest.raises(EffectUnknown):
        trusted_agent.attempt_sync(again, idempotent, tool.now)
    found = trusted_agent.attempt_sync(again, idempotent, CountingTool().now)
    assert type(found) is (
        Finished if "key" in connection_options else Executed
    )  # a server does not take a program's word for it


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (lambda seen: Reject("Not today.", seen), {"status": "rejected", "reason": "Not today.", "declined": True}),
        (lambda seen: Respond("Ask eve.", seen=seen), "Ask eve."),
    ],
)
async def test_a_call_that_people_answered_or_rejected_does_not_run(
    agent: Agent, people_services: AppServices, decision: Callable[[Acknowledgement], Decision], said: object
) -> None:  # R54
    tool = CountingTool()
    await decide(people_services, await propose_pending(agent), decision)
    outcome = await agent.attempt(agent.call("send", {"to": "bob"}, "run", "1"), SEND, tool)
    heard = to_model_message(outcome, "send")  # type: ignore[arg-type]
    assert heard == said if isinstance(said, str) else dict(heard) | dict(said) == heard  # type: ignore[call-overload]
    assert tool.ran == []


async def test_arguments_that_do_not_fit_are_refused_before_anybody_is_asked(agent: Agent) -> None:
    with pytest.raises(InvalidRequest, match="/to"):
        await agent.attempt(agent.call("send", {"to": 7}, "run", "1"), SEND, CountingTool())


async def test_whoever_waits_hears_of_the_decision(agent: Agent, people_services: AppServices) -> None:  # R54
    approval_id = await propose_pending(agent)
    assert isinstance(await agent.wait(approval_id, timeout=0), Waiting)
    await decide(people_services, approval_id, Approve)
    assert isinstance(await agent.wait(approval_id, timeout=60), Proceed)


# Who it is


async def test_a_call_says_which_agent_of_whom_it_is(agent: Agent, people_services: AppServices) -> None:  # R13, R54
    writer = agent.agent("researcher").agent("writer")
    assert (writer.name, writer.path) == ("writer", ("mailer", "researcher", "writer"))
    subject = (await people_services.store.get("default", await propose_pending(writer))).approval.subject
    assert (subject.agent, subject.agent_path) == ("writer", ("mailer", "researcher", "writer"))
    assert (subject.run_id, subject.call_id, subject.thread_id) == ("run", "1", "run")


def test_more_can_be_said_of_a_call(agent: Agent) -> None:
    call = agent.call("send", {"to": "bob"}, "run", "1", requester="rita", thread_id="t", setting="chat")
    assert (call.requester, call.thread_id, call.setting) == ("rita", "t", "chat")
    assert agent.call("send", {}, "run", "1").setting == "paused"


# Switches


@pytest.fixture
def embedded_interlock(database: Database, people_services: AppServices) -> Iterator[Interlock]:
    with Interlock(database.url, agent="mailer") as lock:
        yield lock


def is_asked(agent: Agent, spec: ToolSpec, call_id: str) -> bool:
    outcome = agent.attempt_sync(agent.call(spec.name, {"to": "bob"}, "run", call_id), spec, lambda _: None)
    return isinstance(outcome, Waiting)


def test_each_agent_has_switches_of_its_own_from_its_next_call_on(embedded_interlock: Interlock) -> None:  # R9
    free, strict = embedded_interlock.agent("free", {"send": False}), embedded_interlock.agent("strict", {"look": True})
    assert [is_asked(free, SEND, "1"), is_asked(free, LOOK, "2")] == [False, False]
    assert [is_asked(strict, SEND, "3"), is_asked(strict, LOOK, "4")] == [True, True]
    embedded_interlock.agent("free", {"send": True})
    assert is_asked(free, SEND, "5")
    embedded_interlock.agent("free", {})  # an empty map: nothing is said of any tool
    assert [is_asked(free, SEND, "6"), is_asked(free, LOOK, "7")] == [True, False]
    assert embedded_interlock.agent("free").path == ("free",)  # and without one nothing changes
    assert embedded_interlock.agent().name == "mailer"


def test_a_sub_agent_tightens_and_never_loosens(embedded_interlock: Interlock) -> None:  # R13
    parent = embedded_interlock.agent("parent", {"look": True, "send": False})
    assert is_asked(parent.agent("loose", {"look": False}), LOOK, "1")
    assert is_asked(parent.agent("strict", {"send": True}), SEND, "2")
    assert not is_asked(parent.agent("same", {"send": False}), SEND, "3")


def test_a_sub_agent_cannot_take_the_switches_of_one_above_it_by_its_name(database: Database) -> None:  # R9, R13
    with Interlock(database.url, agent="mailer") as lock:
        parent = lock.agent("mailer", {"send": True})
        with pytest.raises(Misconfigured, match="tool_approvals apply by name"):
            parent.agent("clerk").agent("mailer", {"send": False})
        back = parent.agent("clerk").agent("mailer")
        assert isinstance(lock.loop_thread.run(lock.check(back.call("send", {"to": "bob"}, "run", "1"), SEND)), Waiting)


def test_two_agents_in_one_conversation_do_not_share_what_is_approved(  # R13, R47
    make_interlock: Callable[..., Interlock],
) -> None:
    lock = make_interlock()
    lock.open()
    mailer, clerk = lock.agent("mailer"), lock.agent("clerk")
    asked = lock.loop_thread.run(lock.check(mailer.call("send", {"to": "bob"}, "run", "call_1"), SEND))
    assert isinstance(asked, Waiting)
    with pytest.raises(CallMismatch, match="another agent"):
        lock.loop_thread.run(lock.check(clerk.call("send", {"to": "bob"}, "run", "call_1"), SEND))


def test_a_server_keeps_its_switches_to_itself(database: Database) -> None:  # R9
    with pytest.raises(Misconfigured, match=r"under agents: mailer: in interlock\.yaml"):
        Interlock("http://127.0.0.1:1", key="ilk_x", agent="mailer").agent(tool_approvals={"send": False})


async def test_what_an_agents_own_configuration_says_goes_with_the_call(trusted_agent: Agent) -> None:  # R9
    tool = CountingTool()
    off, on = ("send", SEND, "off"), ("look", LOOK, "on")
    found = [
        await trusted_agent.attempt(trusted_agent.call(name, {"to": "bob"}, "run", switch, switch=switch), spec, tool)
        for name, spec, switch in (off, on)
    ]
    assert [type(each) for each in found] == [Executed, Waiting]
    assert len(tool.ran) == 1


# Ids


@pytest.mark.parametrize("name", ["run", "thread-7", "a/b c", "Gespräch", "x" * MAX_ID_LENGTH])
def test_an_id_that_is_short_and_can_be_seen_stays_as_it_is(name: str) -> None:
    assert bounded_id(name) == name


@pytest.mark.parametrize("name", ["", "x" * (MAX_ID_LENGTH + 1), "a\nb", "\u200bhidden"])
def test_any_other_id_becomes_its_digest(name: str) -> None:
    assert bounded_id(name).startswith("sha256:")
    assert len(bounded_id(name)) == 71
    assert bounded_id(name) == bounded_id(name) != bounded_id(f"{name}!")


async def test_what_can_be_read_once_is_left_to_whoever_called_the_tool(embedded_interlock: Interlock) -> None:  # R54
    async def body(_: object) -> object:
        return (number for number in range(3))

    agent = embedded_interlock.agent()
    ran = await agent.attempt(agent.call("look", {}, "run", "once"), ToolSpec("look", "read"), body)
    assert isinstance(ran, Executed)
    assert list(ran.result) == [0, 1, 2]
