"""The channels of a workspace, for a command that needs no server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from interlock.app.bootstrap import doors_of, wall_clock
from interlock.app.workspaces import Workspaces
from interlock.cli.shared import Desk, Options, kept
from interlock.notify.service import Reach, reach_of
from interlock.server.logs import Log


@asynccontextmanager
async def reaching(options: Options) -> AsyncIterator[tuple[Desk, Reach]]:
    async with kept(options) as desk:
        store = desk.parts.store
        workspaces = Workspaces(store, lambda policy: doors_of(store, policy), desk.settings.toggles())
        reach = reach_of(desk.settings, store, workspaces, Log(wall_clock, "none", lambda _: None))
        async with reach.open():
            yield desk, reach.of(desk.workspace)
