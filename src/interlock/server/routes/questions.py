"""Questions in both directions: an agent asks people, and answers their questions about a call."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from interlock.core.call import MAX_CHOICES, MAX_TEXT_LENGTH, QUESTION_SPEC, QUESTION_TOOL
from interlock.core.decision import MAX_MESSAGE
from interlock.core.errors import InvalidRequest
from interlock.runtime.json_schema import check_schema
from interlock.server.dependencies import (
    AGENTS,
    PrincipalDep,
    StateDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import JsonList, RequestBody, example, json_response
from interlock.server.models import OutcomeJson, ResponseModel, Status
from interlock.server.proposals import ProposalBody, make_tool_call, outcome_response

router = APIRouter(tags=["agents"])


class AskPeopleBody(RequestBody):
    """A question to people: answered by a text, by one of `choices`, or by data that fits `schema`."""

    model_config = example(
        {
            "question": "Which account should it come from?",
            "choices": ["checking", "savings"],
            "run_id": "run-2027-03-01",
            "call_id": "question-1",
        }
    )

    question: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH)]
    run_id: str
    call_id: str
    choices: Annotated[JsonList[str], Field(max_length=MAX_CHOICES)] = ()
    schema_: Annotated[dict[str, object] | None, Field(alias="schema")] = None
    thread_id: str = ""
    agent: str = ""
    agent_path: JsonList[str] = ()
    initiated_by: str = ""
    priority: Literal["", "low", "medium", "high"] = ""
    expires_in: str = ""
    setting: Literal["chat", "queue", "paused"] = "queue"
    agent_says: str = ""


class OpenQuestion(ResponseModel):
    number: int
    by: str
    text: str


class OpenQuestions(ResponseModel):
    items: list[OpenQuestion]
    next: None


class ReplyBody(RequestBody):
    """The agent's answer to one question; it decides nothing."""

    model_config = example({"number": 1, "text": "For invoice 2027-113."})

    number: Annotated[int, Field(ge=1)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]


class ReplyReceipt(ResponseModel):
    approval_id: str
    status: Status
    number: int


@router.post("/api/questions", responses=documented_responses(OutcomeJson, 409, 429), **require_roles(AGENTS))
async def ask_people(body: AskPeopleBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Ask people a question. The outcome is as for a call; the answer comes as `answered` with its message."""
    services = await state.workspaces.services(principal.workspace)
    call, gate = make_tool_call(_question_proposal(body), principal, state, services), services.gate_for(principal)
    return to_starlette(
        outcome_response(
            await state.quotas.run_within_quota(principal, gate, call, None, lambda: gate.ask(call, QUESTION_SPEC))
        )
    )


@router.get(
    "/api/calls/{approval_id}/questions", responses=documented_responses(OpenQuestions, 404), **require_roles(AGENTS)
)
async def open_questions(approval_id: str, state: StateDep, principal: PrincipalDep) -> Response:
    """Questions of people about a call that the agent has not answered yet."""
    services = await state.workspaces.services(principal.workspace)
    found = await services.gate_for(principal).questions(services.workspace, approval_id)
    return to_starlette(json_response({"items": [question._asdict() for question in found], "next": None}))


@router.post(
    "/api/calls/{approval_id}/answer",
    responses=documented_responses(ReplyReceipt, 404, 409, 410),
    **require_roles(AGENTS),
)
async def answer_question(approval_id: str, body: ReplyBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Answer a question about a call; people see the answer beside the card, as the agent's own words."""
    services = await state.workspaces.services(principal.workspace)
    approval = await services.gate_for(principal).answer(
        services.workspace, approval_id, body.number, body.text, principal.name
    )
    return to_starlette(json_response({"approval_id": approval_id, "status": approval.status, "number": body.number}))


def _question_proposal(body: AskPeopleBody) -> ProposalBody:
    if body.schema_ is not None and body.choices:
        raise InvalidRequest("A question has choices or a schema, not both.")
    if body.schema_ is not None:
        check_schema(body.schema_)  # otherwise nobody could ever answer
    args: dict[str, object] = {"question": body.question}
    args |= {"choices": list(body.choices)} if body.choices else {}
    args |= {"schema": body.schema_} if body.schema_ is not None else {}
    same = body.model_dump(exclude={"question", "choices", "schema_"})
    return ProposalBody(tool=QUESTION_TOOL, args=args, **same)
