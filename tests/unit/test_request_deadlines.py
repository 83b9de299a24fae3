"""The shared timer of request deadlines."""

from __future__ import annotations

import asyncio

import pytest

from interlock.server.middleware import Deadlines


async def test_what_takes_too_long_is_given_up() -> None:
    deadlines = Deadlines()
    with pytest.raises(TimeoutError), deadlines.timeout(0.01):
        await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task itself goes on


async def test_what_is_lifted_may_take_as_long_as_it_takes() -> None:
    deadlines, done = Deadlines(), asyncio.Event()
    with deadlines.timeout(0.01) as limit, deadlines.timeout(60):
        limit.cancel()
        asyncio.get_running_loop().call_later(1.2, done.set)  # two looks later
        await done.wait()
    assert done.is_set()


async def test_the_inner_deadline_leaves_the_outer_one_alone() -> None:
    deadlines = Deadlines()
    with deadlines.timeout(60), pytest.raises(TimeoutError), deadlines.timeout(0.01):
        await asyncio.Event().wait()


async def test_somebody_elses_cancellation_is_not_taken_for_a_deadline() -> None:
    deadlines = Deadlines()

    async def wait() -> None:
        with deadlines.timeout(60):
            await asyncio.Event().wait()

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
