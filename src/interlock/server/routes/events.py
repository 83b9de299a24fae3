"""The event stream of a workspace: GET /api/events, as server-sent events (SSE)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from pydantic import BaseModel, Field

from interlock.server.dependencies import VIEWERS
from interlock.server.fast_route import FastRouter
from interlock.server.http import HttpRequest, Receive, Send
from interlock.server.state import ServerState
from interlock.server.streams.ledger_stream import LedgerStreams

fast = FastRouter("events")


class EventsQuery(BaseModel):
    after: Annotated[int | None, Field(ge=0, description="The number of the last event that was received.")] = None
    kinds: Annotated[str, Field(description="Only events of these kinds, separated by commas.")] = ""
    approval_id: Annotated[str, Field(description="Only events of this approval.")] = ""


class EventRoutes:
    def __init__(self, state: ServerState) -> None:
        self._streams = LedgerStreams(state)

    @fast.stream("GET", "/api/events", VIEWERS, "An event stream without an end.", errors=(429,), query=EventsQuery)
    def follow(self, request: HttpRequest, receive: Receive, send: Send) -> Awaitable[None]:
        """Stream the events of the workspace, in order and each of them once. `Last-Event-ID` resumes the stream."""
        return self._streams.stream(request, receive, send)  # not awaited here: a frame less for each open stream
