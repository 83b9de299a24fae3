"""OpenAPI descriptions of the fast routes, which are served without FastAPI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from interlock.server import models
from interlock.server.dependencies import RouteDocs, document_route
from interlock.server.proposals import ProposalBody
from interlock.server.router import FastRoute, StreamRoute
from interlock.server.routes.approvals import DecisionBody
from interlock.server.routes.calls import (
    MAX_WAIT,
    AbandonCallBody,
    CancelCallBody,
    FinishCallBody,
    RenewCallBody,
    StartCallBody,
)
from interlock.server.routes.chat import ChatMessageBody
from interlock.server.routes.pauses import (
    ClaimPausesBody,
    CompletePauseBody,
    PauseBody,
    ReleasePauseBody,
    RenewPauseBody,
)
from interlock.server.routes.runs import AcquireRunBody, RenewRunBody, RunnerBody

EVENT_STREAM = {
    "description": "An event stream without an end.",
    "content": {"text/event-stream": {"schema": {"type": "object"}}},  # the schema of each event
}

TURN_STREAM = {**EVENT_STREAM, "description": "An event stream until the turn is over."}


class WaitQuery(BaseModel):
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to hold the answer back while it waits.")] = 0
    heard: Annotated[
        int | None,
        Field(ge=0, lt=10**9, description="The last question that is known: a newer one ends the wait."),
    ] = None


class RunsQuery(BaseModel):
    agent: Annotated[str, Field(description="The agent whose runs these are; the name of the key, if left out.")] = ""


class PausesQuery(BaseModel):
    agent: Annotated[str, Field(max_length=200, description="Only runs of this agent.")] = ""
    cursor: Annotated[str, Field(max_length=300, description="What the last page gave as next.")] = ""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class EventsQuery(BaseModel):
    after: Annotated[int | None, Field(ge=0, description="The last event that is known.")] = None
    kinds: Annotated[str, Field(description="Only these kinds of events, parted by commas.")] = ""
    approval_id: Annotated[str, Field(description="Only events of this approval.")] = ""


class ThreadEventsQuery(BaseModel):
    after: Annotated[str, Field(max_length=32, description="The id of the last event that is known.")] = ""


def _model_response(model: Any) -> dict[str, Any]:
    return {"model": model}


FAST_ROUTE_DOCS = {
    "POST /api/calls": RouteDocs(
        "Proposes a call. A known call gets its stored outcome, even if the policy has changed.",
        _model_response(models.OutcomeJson),
        ProposalBody,
        error_statuses=(409, 429),
    ),
    "GET /api/calls/{approval_id}": RouteDocs(
        "What has become of a call. With `wait` the answer is held back while there is nothing new.",
        _model_response(models.OutcomeJson),
        query=WaitQuery,
        error_statuses=(404,),
    ),
    "POST /api/calls/{approval_id}/start": RouteDocs(
        "Takes the right to run an approved call: one caller gets it. The same start sent again under the same "
        "Idempotency-Key is the same start: make it at random for each, and never out of the call.",
        _model_response(models.ExecutionJson),
        StartCallBody,
        error_statuses=(404, 409, 410),
    ),
    "POST /api/calls/{approval_id}/renew": RouteDocs(
        "Keeps the lease. One that runs out leaves a call of which nobody knows how it ended.",
        _model_response(models.CallLease),
        RenewCallBody,
        error_statuses=(404, 409),
    ),
    "POST /api/calls/{approval_id}/finish": RouteDocs(
        "Says how the call ended. Under an old fence it is refused, and kept as evidence.",
        _model_response(models.CallStatusJson),
        FinishCallBody,
        error_statuses=(404, 409),
    ),
    "POST /api/calls/{approval_id}/cancel": RouteDocs(
        "Withdraws a call that has not started.",
        _model_response(models.CallStatusJson),
        CancelCallBody,
        error_statuses=(404, 409, 410),
    ),
    "POST /api/calls/{approval_id}/abandon": RouteDocs(
        "Says that the program was interrupted inside the tool: nobody knows how far it came.",
        _model_response(models.CallStatusJson),
        AbandonCallBody,
        error_statuses=(404, 409),
    ),
    "GET /api/runs": RouteDocs(
        "The open runs that programs with this key hold or held, the newest first.",
        _model_response(models.OpenRuns),
        query=RunsQuery,
    ),
    "POST /api/runs": RouteDocs(
        "Takes up the newest unfinished run of an agent that nobody holds, or opens one.",
        _model_response(models.AcquiredRunJson),
        AcquireRunBody,
        error_statuses=(404, 409, 429),
    ),
    "POST /api/runs/{run_id}/renew": RouteDocs(
        "A sign of life: the run stays with this program.",
        _model_response(models.RunStatusJson),
        RenewRunBody,
        error_statuses=(404, 409),
    ),
    "POST /api/runs/{run_id}/close": RouteDocs(
        "Ends a run for good.", _model_response(models.RunStatusJson), RunnerBody, error_statuses=(404, 409)
    ),
    "POST /api/runs/{run_id}/release": RouteDocs(
        "Leaves a run: the next start of the program takes it up at once.",
        _model_response(models.RunStatusJson),
        RunnerBody,
        error_statuses=(404, 409),
    ),
    "GET /api/pauses": RouteDocs(
        "Paused runs, the longest pause first, without their state. An agent sees those that were "
        "paused with a key of this name.",
        _model_response(models.PauseList),
        query=PausesQuery,
    ),
    "POST /api/pauses": RouteDocs(
        "Stores a paused run with what its program needs to resume it: up to 4 MiB, which nobody but programs "
        "with a key of this name gets. It takes the place of an older pause of the run.",
        _model_response(models.PauseJson),
        PauseBody,
        error_statuses=(409, 429),
    ),
    "POST /api/pauses/claim": RouteDocs(
        "Takes runs of which nothing waits for people any more, to go on with them: each is given to one caller, who "
        "has it while the lease is renewed. With `wait` the answer is held back while there is none.",
        _model_response(models.ClaimedPauses),
        ClaimPausesBody,
    ),
    "POST /api/pauses/renew": RouteDocs(
        "A sign of life: nobody else takes the run.",
        _model_response(models.PauseLease),
        RenewPauseBody,
        error_statuses=(409,),
    ),
    "POST /api/pauses/release": RouteDocs(
        "Gives a run back. One that failed is left alone for a while, longer each time.",
        _model_response(models.PauseRelease),
        ReleasePauseBody,
    ),
    "POST /api/pauses/complete": RouteDocs(
        "The run went on, and its pause is over; one that paused again meanwhile stays.",
        _model_response(models.PauseCompletion),
        CompletePauseBody,
    ),
    "POST /api/approvals/{approval_id}/decision": RouteDocs(
        "Decides. It counts for the arguments of `args_sha256` only, and not without it; the same person's second vote "
        "changes nothing. With `Prefer: return=minimal` the answer has no card. With the token of a message's link in "
        "`Interlock-Link` it is recorded as made through that channel, and the link is spent.",
        _model_response(models.ApprovalJson | models.ApprovalSummaryJson),
        DecisionBody,
        error_statuses=(404, 409, 410, 422),
    ),
    "POST /api/chat": RouteDocs(
        "Says something to an agent, and tells what comes of it until its turn is over: `delta`, `tool_call_start`, "
        "`tool_call_result`, `approval_request`, `approval_resolved`, then `done` or `error`. It stays open while "
        "people are asked; dropped, it is taken up again at the thread's own stream. Sent again under the same "
        "Idempotency-Key it is the same message, told from its beginning.",
        TURN_STREAM,
        ChatMessageBody,
        error_statuses=(404, 409, 429),
    ),
    "GET /api/threads/{thread_id}/events": RouteDocs(
        "A thread's events from any point on: all of them, or those behind `Last-Event-ID`.",
        EVENT_STREAM,
        query=ThreadEventsQuery,
        error_statuses=(404, 429),
    ),
    "GET /api/events": RouteDocs(
        "Everything that happens in the workspace, in order, each event once. A stream that broke goes on with "
        "Last-Event-ID.",
        EVENT_STREAM,
        query=EventsQuery,
        error_statuses=(429,),
    ),
}


ROUTE_TAGS = {"/approvals": "approvals", "/chat": "chat", "/threads": "chat", "/events": "events"}


def make_docs_router(routes: Iterable[FastRoute | StreamRoute]) -> APIRouter:
    router = APIRouter()
    for route in routes:
        group = next((name for part, name in ROUTE_TAGS.items() if part in route.template), "agents")
        named = APIRouter(tags=[group])
        document_route(named, route, FAST_ROUTE_DOCS[f"{route.method} {route.template}"])
        router.include_router(named)
    return router
