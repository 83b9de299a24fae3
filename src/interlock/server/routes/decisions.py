"""What people say about one call: decide. Without a framework, as the agent's routes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from interlock.app.workspaces import WorkspaceServices
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE, Decision, Reviewer, read_decision_with_digest
from interlock.core.errors import Conflict, Error, Expired, Forbidden, InvalidDecision, NotFound
from interlock.core.notify.delivery import Delivery
from interlock.presenters.approval import decision_result_json
from interlock.server.context import approval_response
from interlock.server.http import HttpRequest, HttpResponse, JsonList, RequestBody, json_response
from interlock.server.state import ServerState

LINK_HEADER = b"interlock-link"  # the token of a message's link, by which somebody came
PREFER_MINIMAL = b"return=minimal"  # for programs that do not look at the card again


class DecisionBody(RequestBody):
    """A decision. Who decides is whoever is signed in, never a field of the body."""

    kind: Literal["approve", "edit", "respond", "reject"]
    args_sha256: Annotated[str, Field(min_length=64, max_length=64)]
    args: dict[str, object] | None = None
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    answer: object = None
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    acknowledged: JsonList[str] = ()


class DecisionRoutes:
    def __init__(self, site: ServerState) -> None:
        self._site = site

    async def decide(self, asked: HttpRequest) -> HttpResponse:
        (approval_id,), principal = asked.values, asked.person
        said = await asked.value()
        doors = await self._site.workspaces.doors(principal.workspace)
        reviewer = doors.reviewer(principal, self._site.clock())
        decision = await self._read(said, approval_id, doors, reviewer)
        link = await self._link(asked, approval_id)
        if isinstance(link, Error):
            await doors.inbox.refuse(doors.workspace, approval_id, decision, reviewer, link)
        if isinstance(link, Delivery):
            reviewer = replace(reviewer, via=link.way.channel)
        approval = await doors.inbox.decide(doors.workspace, approval_id, decision, reviewer)
        if isinstance(link, Delivery):
            await self._site.store.deliveries.spend(link.workspace, link.id)
        if asked.headers.get(b"prefer") == PREFER_MINIMAL:
            return json_response(
                decision_result_json(approval, self._site.clock()), 200, ((b"preference-applied", PREFER_MINIMAL),)
            )
        await asyncio.sleep(0)  # the agent that waits for this looks first
        return await approval_response(self._site, doors, approval_id, reviewer)

    async def _read(self, said: object, approval_id: str, doors: WorkspaceServices, reviewer: Reviewer) -> Decision:
        """What cannot be taken for a decision is refused like any other, with an entry."""
        try:
            return read_decision_with_digest(said)
        except InvalidDecision as error:
            await doors.inbox.refuse(doors.workspace, approval_id, None, reviewer, error)
            raise

    async def _link(self, asked: HttpRequest, approval_id: str) -> Delivery | Error | None:
        """What the link was made for that the decision came by: this person, this call, and no decision yet."""
        given = asked.headers.get(LINK_HEADER)
        if given is None:
            return None
        try:
            delivery = (await self._site.reach.token(given.decode("latin-1"))).delivery
        except NotFound:
            return Forbidden("This link does not hold. Open the call from the inbox, and decide it there.")
        except Expired as error:
            return error
        meant = delivery.workspace, delivery.approval_id, delivery.way.person
        if meant != (asked.person.workspace, approval_id, asked.person.name):
            return Forbidden("This link was made for somebody else, or for another call. Decide without it.")
        if delivery.spent_at is not None:
            return Conflict("This link was used to decide already. Open the call from the inbox.")
        return delivery
