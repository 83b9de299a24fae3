"""A person at their workspace: what the routes for people begin and end with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from interlock.app.inbox import Inbox
from interlock.app.workspaces import WorkspaceServices
from interlock.core.decision import Reviewer
from interlock.presenters.approval import approval_json
from interlock.runtime.offload import offload
from interlock.server.dependencies import PrincipalDep, StateDep, to_starlette
from interlock.server.http import HttpResponse, json_response
from interlock.server.state import ServerState


@dataclass(frozen=True)
class RequestContext:
    site: ServerState
    doors: WorkspaceServices
    reviewer: Reviewer

    @property
    def workspace(self) -> str:
        return self.doors.workspace

    @property
    def inbox(self) -> Inbox:
        return self.doors.inbox

    async def show(self, approval_id: str) -> Response:
        return to_starlette(await approval_response(self.site, self.doors, approval_id, self.reviewer))


async def request_context(site: StateDep, caller: PrincipalDep) -> RequestContext:
    doors = await site.workspaces.doors(caller.workspace)
    return RequestContext(site, doors, doors.reviewer(caller, site.clock()))


ContextDep = Annotated[RequestContext, Depends(request_context)]


async def approval_response(
    site: ServerState, doors: WorkspaceServices, approval_id: str, reviewer: Reviewer
) -> HttpResponse:
    """One approval, for this person; the ETag is its version."""
    view = await doors.inbox.show(doors.workspace, approval_id)
    size, etag = len(view.stored.payload.args or b""), b'"%d"' % view.stored.approval.version
    return await offload(
        size, lambda: json_response(approval_json(view, site.clock(), reviewer), headers=((b"etag", etag),))
    )
