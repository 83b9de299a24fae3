"""What the document says of the routes that are served without the framework."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from interlock.server import models
from interlock.server.dependencies import Described, document
from interlock.server.proposals import Proposed
from interlock.server.router import Hot, Live
from interlock.server.routes.calls import MAX_WAIT, Abandon, Cancel, Finish, Renew, Start
from interlock.server.routes.chat import NewMessage
from interlock.server.routes.decisions import Said
from interlock.server.routes.pauses import ClaimPauses, EndPause, KeepPause, LeavePause, NewPause
from interlock.server.routes.runs import Held, RunEnded, TakeUp

STREAM = {
    "description": "An event stream without an end.",
    "content": {"text/event-stream": {"schema": {"type": "object"}}},  # of each event
}

UNTIL_DONE = {**STREAM, "description": "An event stream until the turn is over."}


class Wait(BaseModel):
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to hold the answer back while it waits.")] = 0
    heard: Annotated[
        int | None,
        Field(ge=0, lt=10**9, description="The last question that is known: a newer one ends the wait."),
    ] = None


class Runs(BaseModel):
    agent: Annotated[str, Field(description="The agent whose runs these are; the name of the key, if left out.")] = ""


class Paused(BaseModel):
    agent: Annotated[str, Field(max_length=200, description="Only runs of this agent.")] = ""
    cursor: Annotated[str, Field(max_length=300, description="What the last page gave as next.")] = ""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class After(BaseModel):
    after: Annotated[int | None, Field(ge=0, description="The last event that is known.")] = None
    kinds: Annotated[str, Field(description="Only these kinds of events, parted by commas.")] = ""
    approval_id: Annotated[str, Field(description="Only events of this approval.")] = ""


class AfterEvent(BaseModel):
    after: Annotated[str, Field(max_length=32, description="The id of the last event that is known.")] = ""


def _gives(model: Any) -> dict[str, Any]:
    return {"model": model}


HOT = {
    "POST /api/calls": Described(
        "Proposes a call. A known call gets its standing outcome, whatever the policy says now.",
        _gives(models.Outcome),
        Proposed,
        fails=(409, 429),
    ),
    "GET /api/calls/{approval_id}": Described(
        "What has become of a call. With `wait` the answer is held back while there is nothing new.",
        _gives(models.Outcome),
        query=Wait,
        fails=(404,),
    ),
    "POST /api/calls/{approval_id}/start": Described(
        "Takes the right to run an approved call: one caller gets it. The same start sent again under the same "
        "Idempotency-Key is the same start: make it at random for each, and never out of the call.",
        _gives(models.Started),
        Start,
        fails=(404, 409, 410),
    ),
    "POST /api/calls/{approval_id}/renew": Described(
        "Keeps the lease. One that runs out leaves a call of which nobody knows how it ended.",
        _gives(models.Renewed),
        Renew,
        fails=(404, 409),
    ),
    "POST /api/calls/{approval_id}/finish": Described(
        "Says how the call ended. Under an old fence it is refused, and kept as evidence.",
        _gives(models.Moved),
        Finish,
        fails=(404, 409),
    ),
    "POST /api/calls/{approval_id}/cancel": Described(
        "Withdraws a call that has not started.", _gives(models.Moved), Cancel, fails=(404, 409, 410)
    ),
    "POST /api/calls/{approval_id}/abandon": Described(
        "Says that the program was interrupted inside the tool: nobody knows how far it came.",
        _gives(models.Moved),
        Abandon,
        fails=(404, 409),
    ),
    "GET /api/runs": Described(
        "The open runs that programs with this key hold or held, the newest first.", _gives(models.OpenRuns), query=Runs
    ),
    "POST /api/runs": Described(
        "Takes up the newest unfinished run of an agent that nobody holds, or opens one.",
        _gives(models.RunTaken),
        TakeUp,
        fails=(404, 409, 429),
    ),
    "POST /api/runs/{run_id}/renew": Described(
        "A sign of life: the run stays with this program.", _gives(models.RunMoved), Held, fails=(404, 409)
    ),
    "POST /api/runs/{run_id}/close": Described(
        "Ends a run for good.", _gives(models.RunMoved), RunEnded, fails=(404, 409)
    ),
    "POST /api/runs/{run_id}/leave": Described(
        "Leaves a run: the next start of the program takes it up at once.",
        _gives(models.RunMoved),
        RunEnded,
        fails=(404, 409),
    ),
    "GET /api/pauses": Described(
        "The runs that stand still, those that wait longest first, without their state. An agent sees those that were "
        "paused with a key of this name.",
        _gives(models.PauseList),
        query=Paused,
    ),
    "POST /api/pauses": Described(
        "Keeps that a run stands still, with what its program needs to go on: up to 4 MiB, which nobody but programs "
        "with a key of this name gets. It takes the place of an older pause of the run.",
        _gives(models.PauseTold),
        NewPause,
        fails=(409, 429),
    ),
    "POST /api/pauses/claim": Described(
        "Takes runs of which nothing waits for people any more, to go on with them: each is given to one caller, who "
        "has it while the lease is renewed. With `wait` the answer is held back while there is none.",
        _gives(models.ClaimedPauses),
        ClaimPauses,
    ),
    "POST /api/pauses/renew": Described(
        "A sign of life: nobody else takes the run.", _gives(models.PauseKept), KeepPause, fails=(409,)
    ),
    "POST /api/pauses/release": Described(
        "Gives a run back. One that failed is left alone for a while, longer each time.",
        _gives(models.PauseLeft),
        LeavePause,
    ),
    "POST /api/pauses/resumed": Described(
        "The run went on, and its pause is over; one that paused again meanwhile stays.",
        _gives(models.PauseEnded),
        EndPause,
    ),
    "POST /api/approvals/{approval_id}/decision": Described(
        "Decides. It counts for the arguments of `args_sha256` only, and not without it; the same person's second vote "
        "changes nothing. With `Prefer: return=minimal` the answer has no card. With the token of a message's link in "
        "`Interlock-Link` it is recorded as made through that channel, and the link is spent.",
        _gives(models.Shown | models.Brief),
        Said,
        fails=(404, 409, 410, 422),
    ),
    "POST /api/chat": Described(
        "Says something to an agent, and tells what comes of it until its turn is over: `delta`, `tool_call_start`, "
        "`tool_call_result`, `approval_request`, `approval_resolved`, then `done` or `error`. It stays open while "
        "people are asked; dropped, it is taken up again at the thread's own stream. Sent again under the same "
        "Idempotency-Key it is the same message, told from its beginning.",
        UNTIL_DONE,
        NewMessage,
        fails=(404, 409, 429),
    ),
    "GET /api/threads/{thread_id}/events": Described(
        "A thread's events from any point on: all of them, or those behind `Last-Event-ID`.",
        STREAM,
        query=AfterEvent,
        fails=(404, 429),
    ),
    "GET /api/events": Described(
        "Everything that happens in the workspace, in order, each event once. A stream that broke goes on with "
        "Last-Event-ID.",
        STREAM,
        query=After,
        fails=(429,),
    ),
}


GROUPS = {"/approvals": "approvals", "/chat": "chat", "/threads": "chat", "/events": "events"}


def hot_router(routes: Iterable[Hot | Live]) -> APIRouter:
    router = APIRouter()
    for hot in routes:
        group = next((name for part, name in GROUPS.items() if part in hot.template), "agents")
        named = APIRouter(tags=[group])
        document(named, hot, HOT[f"{hot.method} {hot.template}"])
        router.include_router(named)
    return router
