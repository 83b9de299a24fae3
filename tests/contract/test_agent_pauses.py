"""Paused runs in the SDK: the same over a database and over a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interlock import Interlock, Waiting
from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.run import MAX_STATE, Pause
from interlock.sdk.agent import Agent, Executed
from tests.contract.leases import FAR, move_pause_lease, pause_lease_end
from tests.databases import Database
from tests.support import approve

SEND = ToolSpec("send", "write")


@pytest.fixture
def make_interlock(connection_options: dict[str, Any]) -> Iterator[Callable[..., Agent]]:
    made: list[Interlock] = []

    def agent(**options: Any) -> Agent:
        made.append(Interlock(**connection_options, **{"agent": "mailer", **options}))
        return made[-1].agent()

    yield agent
    for each in made:
        each.close()


@pytest.fixture
def agent(make_interlock: Callable[..., Agent]) -> Agent:
    return make_interlock()


async def propose_pending(agent: Agent, run_id: str, call_id: str = "1") -> str:
    outcome = await agent.attempt(agent.call("send", {"to": "ada"}, run_id, call_id), SEND, must_not_run)
    assert isinstance(outcome, Waiting), outcome
    return outcome.approval_id


async def must_not_run(_: object) -> None:
    raise AssertionError("this must not run")


async def test_a_run_pauses_and_goes_on_in_another_program_once_people_decided(
    make_interlock: Callable[..., Agent], people_services: AppServices
) -> None:  # R9
    run_id = "a conversation/with signs, and more than fits " * 5
    agent = make_interlock()
    approval_id = await propose_pending(agent, run_id)
    await agent.pause(run_id, state=b"\x00the framework's")
    (listed,) = await agent.list_pauses()
    assert (listed.run_id, listed.agent, listed.state, listed.waiting) == (run_id, "mailer", b"", 1)
    assert list(await agent.acquire_ready_pauses(timeout=0)) == []
    agent.interlock.close()
    await approve(people_services, approval_id)
    other, effects = make_interlock(), []

    async def body(args: Any) -> str:
        effects.append(args["to"])
        return "sent"

    async def resume(pause: Pause) -> None:
        assert (pause.run_id, pause.state) == (run_id, b"\x00the framework's")
        call = other.call("send", {"to": "ada"}, pause.run_id, "1")
        assert await other.attempt(call, SEND, body) == Executed("sent")
        stop.set()

    stop = asyncio.Event()
    async with asyncio.timeout(60):
        await other.resume_all(resume, stop)
    assert effects == ["ada"]
    assert list(await other.list_pauses()) == []


async def test_a_sub_agent_pauses_the_run_of_the_outermost(agent: Agent) -> None:  # R54
    await agent.agent("writer").pause("run")
    assert [pause.agent for pause in await agent.list_pauses()] == ["mailer"]


async def test_a_resume_that_raises_stops_no_other_and_is_tried_again(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:  # R9
    stop, tried = asyncio.Event(), list[str]()
    await agent.pause("bad")
    await agent.pause("good")

    async def resume(pause: Pause) -> None:
        tried.append(pause.run_id)
        if pause.run_id == "bad" and tried.count("bad") == 1:
            raise ValueError("the password is hunter2")
        if tried.count("bad") == 2:
            stop.set()

    with caplog.at_level(logging.WARNING, "interlock"):
        async with asyncio.timeout(60):
            await agent.resume_all(resume, stop)
    assert sorted(tried) == ["bad", "bad", "good"]
    assert caplog.messages == ["Resuming run bad failed: ValueError. Retrying in 1 s."]
    assert list(await agent.list_pauses()) == []


async def test_a_run_that_pauses_again_while_it_goes_on_stays_paused(agent: Agent) -> None:  # R9
    stop = asyncio.Event()
    await agent.pause("run", b"1")

    async def resume(pause: Pause) -> None:
        if pause.state == b"1":
            await propose_pending(agent, "run")
            await agent.pause("run", b"2")
            stop.set()

    async with asyncio.timeout(60):
        await agent.resume_all(resume, stop)
    assert [pause.run_id for pause in await agent.list_pauses()] == ["run"]


async def test_a_loop_that_is_cancelled_leaves_its_runs_to_others_at_once(
    make_interlock: Callable[..., Agent],
) -> None:  # R9
    first, second = make_interlock(), make_interlock()
    await first.pause("run")
    begun = asyncio.Event()

    async def forever(_: Pause) -> None:
        begun.set()
        await asyncio.Event().wait()

    loop = asyncio.ensure_future(first.resume_all(forever))
    await begun.wait()
    assert list(await second.acquire_ready_pauses(timeout=0)) == []
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    assert [pause.run_id for pause in await second.acquire_ready_pauses(timeout=30)] == ["run"]


async def test_a_long_resume_keeps_its_run(make_interlock: Callable[..., Agent], database: Database) -> None:  # R9
    """The lease is moved far away, so that it cannot lapse on a slow machine: a renewal sets it anew."""
    first, second = make_interlock(lease_seconds=3), make_interlock()
    await first.pause("run")
    stop = asyncio.Event()

    async def resume(pause: Pause) -> None:
        ends = [pause_lease_end(database, "run")]
        while len(ends) < 4:  # renewed three times
            move_pause_lease(database, "run", FAR)
            assert list(await second.acquire_ready_pauses(timeout=0)) == []
            while pause_lease_end(database, "run") == FAR:  # noqa: ASYNC110  a row
                await asyncio.sleep(0.02)
            ends.append(pause_lease_end(database, "run"))
        assert ends == sorted(set(ends)), "each renewal is for longer"
        assert pause.fence == (await second.list_pauses())[0].fence
        stop.set()

    async with asyncio.timeout(120):
        await first.resume_all(resume, stop)
    assert list(await first.list_pauses()) == []


def test_synchronous_code_pauses_and_ends_pauses_too(agent: Agent) -> None:  # R9
    pause = agent.pause_sync("run", b"state")
    assert agent.interlock.loop_thread.run(agent.list_pauses())[0].fence == pause.fence
    agent.complete_pause_sync(pause)
    assert list(agent.interlock.loop_thread.run(agent.list_pauses())) == []


@pytest.mark.parametrize("run_id", ["", "x" * 2_001, "a\x00b", "\ud800", None])
async def test_a_run_needs_an_id_that_can_be_kept(agent: Agent, run_id: Any) -> None:
    with pytest.raises(InvalidRequest, match="run_id is a text"):
        await agent.pause(run_id)


async def test_what_cannot_be_kept_is_refused_with_what_to_do(agent: Agent) -> None:
    with pytest.raises(InvalidRequest, match="state is bytes, not str"):
        await agent.pause("run", "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="4,194,305 bytes; 4,194,304 can be kept"):
        await agent.pause("run", bytes(MAX_STATE + 1))
    with pytest.raises(Forbidden, match="belongs to the chat"):
        await agent.pause("thread-00000000-0000-0000-0000-000000000000")
    assert list(await agent.list_pauses()) == []
