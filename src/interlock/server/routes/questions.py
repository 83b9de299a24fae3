"""Questions in both directions: an agent asks people, and answers what people ask about a call."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from interlock.core.call import MAX_WORDS, QUESTION
from interlock.core.decision import MAX_MESSAGE
from interlock.core.errors import InvalidRequest
from interlock.runtime.json_schema import check_schema
from interlock.server.dependencies import AGENTS, Caller, Here, gives, may, response
from interlock.server.http import Body, Many, json_answer
from interlock.server.models import Outcome, Status, Told
from interlock.server.proposals import ASK, Proposed, call_of, told

MAX_CHOICES = 100

router = APIRouter(tags=["agents"])


class NewQuestion(Body):
    """For a person: answered by a text, by one of `choices`, or by data that fits `schema`."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_WORDS)]
    run_id: str
    call_id: str
    choices: Annotated[Many[str], Field(max_length=MAX_CHOICES)] = ()
    schema_: Annotated[dict[str, object] | None, Field(alias="schema")] = None
    thread_id: str = ""
    agent: str = ""
    agent_path: Many[str] = ()
    initiated_by: str = ""
    priority: Literal["", "low", "medium", "high"] = ""
    expires_in: str = ""
    setting: Literal["chat", "queue", "paused"] = "queue"
    agent_says: str = ""


class OpenQuestion(Told):
    number: int
    by: str
    text: str


class OpenQuestions(Told):
    items: list[OpenQuestion]
    next: None


class NewReply(Body):
    """The agent's words to one question; nothing is decided by them."""

    number: Annotated[int, Field(ge=1)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]


class Replied(Told):
    approval_id: str
    status: Status
    number: int


@router.post("/api/questions", responses=gives(Outcome, 409, 429), **may(AGENTS))
async def ask_people(body: NewQuestion, site: Here, caller: Caller) -> Response:
    """Asks people something. The outcome is as for a call; the answer comes as `answered` with its message."""
    doors = await site.workspaces.doors(caller.workspace)
    call, gate = call_of(_proposed(body), caller, site, doors), doors.gate_for(caller)
    return response(told(await site.quotas.spend(caller, gate, call, None, lambda: gate.ask(call, ASK))))


@router.get("/api/calls/{approval_id}/questions", responses=gives(OpenQuestions, 404), **may(AGENTS))
async def open_questions(approval_id: str, site: Here, caller: Caller) -> Response:
    """What people want to know of the agent, and it has not answered."""
    doors = await site.workspaces.doors(caller.workspace)
    found = await doors.gate_for(caller).questions(doors.workspace, approval_id)
    return response(json_answer({"items": [question._asdict() for question in found], "next": None}))


@router.post("/api/calls/{approval_id}/answer", responses=gives(Replied, 404, 409, 410), **may(AGENTS))
async def answer_question(approval_id: str, body: NewReply, site: Here, caller: Caller) -> Response:
    """Answers one of them; people see it beside the card, as the agent's own words."""
    doors = await site.workspaces.doors(caller.workspace)
    approval = await doors.gate_for(caller).answer(doors.workspace, approval_id, body.number, body.text, caller.name)
    return response(json_answer({"approval_id": approval_id, "status": approval.status, "number": body.number}))


def _proposed(body: NewQuestion) -> Proposed:
    if body.schema_ is not None and body.choices:
        raise InvalidRequest("A question has choices or a schema, not both.")
    if body.schema_ is not None:
        check_schema(body.schema_)  # otherwise nobody could ever answer
    args: dict[str, object] = {"question": body.question}
    args |= {"choices": list(body.choices)} if body.choices else {}
    args |= {"schema": body.schema_} if body.schema_ is not None else {}
    same = body.model_dump(exclude={"question", "choices", "schema_"})
    return Proposed(tool=QUESTION, args=args, **same)
