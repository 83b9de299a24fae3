"""What people say about one call: decide. Without a framework, as the agent's routes."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE, read_decision
from interlock.server.desk import shown
from interlock.shape import decided_json
from interlock.web.asgi import Answer, Asked, Body, Many, json_answer
from interlock.web.site import Site

MINIMAL = b"return=minimal"  # for programs that do not look at the card again


class Said(Body):
    """A decision. Who decides is whoever is signed in, never a field of the body."""

    kind: Literal["approve", "edit", "respond", "reject"]
    args_sha256: str | None = None
    args: dict[str, object] | None = None
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    answer: object = None
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    acknowledged: Many[str] = ()


class Deciding:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def decide(self, asked: Asked) -> Answer:
        (approval_id,), principal = asked.values, asked.person
        decision = read_decision(await asked.value())
        doors = await self._site.workspaces.doors(principal.workspace)
        reviewer = doors.reviewer(principal, self._site.clock())
        approval = await doors.inbox.decide(doors.workspace, approval_id, decision, reviewer)
        if asked.headers.get(b"prefer") == MINIMAL:
            return json_answer(decided_json(approval, self._site.clock()), 200, ((b"preference-applied", MINIMAL),))
        await asyncio.sleep(0)  # the agent that waits for this looks first
        return await shown(self._site, doors, approval_id, reviewer)
