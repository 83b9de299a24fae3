"""`interlock serve` and `interlock worker`: what keeps running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from interlock.app.bootstrap import Parts, doors_of, wall_clock, wire
from interlock.cli.context import Options
from interlock.cli.output import say
from interlock.notify.workspace_channels import reaching_of
from interlock.server.lifecycle import on_signal, take_logs, working
from interlock.server.logs import Log

if TYPE_CHECKING:
    from interlock.chat.assistant import Chore, Demo
    from interlock.config.models import Settings


async def run(options: Options, host: str, port: int | None, *, worker: bool, demo: bool) -> None:
    from interlock.server.serve import serve

    settings = options.settings(server_host=host or None, server_port=port)
    await serve(settings, say, worker=worker, demo=_demo() if demo else None)


async def work(options: Options, *, demo: bool) -> None:
    """Any number of these may run, beside servers or without one."""
    settings = options.settings()
    log = Log(wall_clock, settings.server.log)
    parts = wire(settings.storage.url, retention=settings.storage.retention)
    await parts.store.open()
    await parts.store.state()
    told = asyncio.Event()
    take_logs(log)
    try:
        with on_signal(told.set):
            async with (
                _chatting(settings, parts, log, _demo() if demo else None) as chores,
                working(log, parts.worker.run, *chores),
            ):
                say(f"Interlock's worker is running on {parts.store.name}.")
                log.tell("info", "start", database=parts.store.name)
                await told.wait()
                log.tell("info", "stopping")
    finally:
        await parts.store.close()
    log.tell("info", "stopped")


@asynccontextmanager
async def _chatting(settings: Settings, parts: Parts, log: Log, demo: Demo | None) -> AsyncIterator[list[Chore]]:
    """What advances threads and reaches people, under the policy that is in force at each moment."""
    from interlock.app.workspaces import Workspaces
    from interlock.chat.assistant import assistant_of
    from interlock.notify.service import reach_of
    from interlock.policy.own_file import configured_policy
    from interlock.server.serve import tell_stale

    own = configured_policy(settings)
    toggles, reaching = settings.toggles(), partial(reaching_of, settings)
    workspaces = Workspaces(
        parts.store, partial(doors_of, parts.store), toggles, reaching, own, partial(tell_stale, log)
    )
    assistant = assistant_of(settings, parts.store, workspaces, log, demo=demo)
    reach = reach_of(settings, parts.store, workspaces, log)
    following = asyncio.create_task(workspaces.follow())
    try:
        async with assistant.open(), reach.open():
            yield [*assistant.chores, *reach.chores]
    finally:
        following.cancel()


def _demo() -> Demo:
    from interlock.demo.equipment import DEMO

    return DEMO
