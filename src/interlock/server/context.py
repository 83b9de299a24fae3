"""A person at their workspace: what the routes for people begin and end with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from interlock.app.inbox import Inbox
from interlock.app.workspaces import Doors
from interlock.core.decision import Reviewer
from interlock.presenters.approval import view_json
from interlock.runtime.offload import beside
from interlock.server.dependencies import Caller, Here, response
from interlock.server.http import Answer, json_answer
from interlock.server.state import Site


@dataclass(frozen=True)
class Desk:
    site: Site
    doors: Doors
    reviewer: Reviewer

    @property
    def workspace(self) -> str:
        return self.doors.workspace

    @property
    def inbox(self) -> Inbox:
        return self.doors.inbox

    async def show(self, approval_id: str) -> Response:
        return response(await shown(self.site, self.doors, approval_id, self.reviewer))


async def desk(site: Here, caller: Caller) -> Desk:
    doors = await site.workspaces.doors(caller.workspace)
    return Desk(site, doors, doors.reviewer(caller, site.clock()))


AtDesk = Annotated[Desk, Depends(desk)]


async def shown(site: Site, doors: Doors, approval_id: str, reviewer: Reviewer) -> Answer:
    """One approval, for this person; the ETag is its version."""
    view = await doors.inbox.show(doors.workspace, approval_id)
    size, etag = len(view.stored.payload.args or b""), b'"%d"' % view.stored.approval.version
    return await beside(size, lambda: json_answer(view_json(view, site.clock(), reviewer), headers=((b"etag", etag),)))
