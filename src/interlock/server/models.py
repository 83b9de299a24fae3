"""Response models of approvals, as in the OpenAPI document; `presenters` build the JSON, and a test compares both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from interlock.core.decision import Kind

OpenStatus = Literal["pending", "approved", "running"]
EndedStatus = Literal["rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown"]
Status = OpenStatus | EndedStatus
EXAMPLE_ID = "0192f0c1-2b3d-7c4e-9f60-718293a4b5c6"
EXAMPLE_SHA256 = "d2bb3a09ba4d8ad2d4c3b8b9d3f8c9a0a2c0c4a0a7c0d8a9a3e5b1d7c6f4e2a1"
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PeopleJson(ResponseModel):
    users: list[str]
    teams: list[str]


class QuorumJson(ResponseModel):
    have: int
    need: int


class DecisionJson(ResponseModel):
    """A decision, who made it and when. If a timer or the policy decided, `by` is interlock or policy."""

    kind: str
    by: str
    at: Timestamp
    via: str
    reason: str
    comment: str


class ApprovalItemJson(ResponseModel):
    """An approval in a list."""

    id: str
    tool: str
    status: Status
    args_sha256: str
    sentence: str
    risk: str
    effect: str
    agent: str
    agent_path: list[str]
    thread_id: str
    run_id: str
    call_id: str
    requester: str
    rule: str
    priority: str
    quorum: QuorumJson
    alarms: list[str]
    claimed_by: str
    open_questions: int
    version: int
    created_at: Timestamp
    expires_at: Timestamp
    seconds_left: float | None
    release_at: Timestamp | None
    start_by: Timestamp | None
    decision: DecisionJson | None
    may_decide: list[Kind]


class ApprovalPageJson(ResponseModel):
    """A page of approvals. `behind`: the search index lacks the most recent changes."""

    items: list[ApprovalItemJson]
    next: str | None
    behind: bool


class CardFactJson(ResponseModel):
    label: str
    text: str


class CardFieldJson(ResponseModel):
    """One argument at any depth, safe to print; `pointer` is exact, `length` counts characters or members."""

    pointer: str
    name: str
    type: str
    text: str
    length: int
    sha256: str
    findings: list[str]


class CardJson(ResponseModel):
    """The call as people see it, rendered by the server from the stored bytes.

    Fields that begin with `agent_` are the agent's own words, unverified; `sentence` and `preview` are the server's or
    the registered tool's own.
    """

    risk: str
    tool: str
    sentence: str
    facts: list[CardFactJson]
    fields: list[CardFieldJson]
    preview: str
    agent_description: str
    agent_preview: str
    agent_says: str


class FindingJson(ResponseModel):
    """A warning about the call. An alarm has to be acknowledged by its id before the call can be approved."""

    id: str
    kind: str
    level: Literal["alarm", "note"]
    pointer: str
    message: str


class StageJson(ResponseModel):
    """A stage of approval. Without `approvers`, the requester and every reviewer and admin may decide."""

    approvers: PeopleJson | None
    need: int
    have: int
    done: bool


class VoteJson(ResponseModel):
    by: str
    seat: str
    stage: int
    args_sha256: Annotated[str, Field(description="The digest of the arguments; empty if they were erased.")]
    at: Timestamp
    via: str


class DelegationJson(ResponseModel):
    by: str
    to: PeopleJson


class ReplyJson(ResponseModel):
    by: str
    at: Timestamp
    text: str | None


class QuestionJson(ReplyJson):
    """A person's question to the agent; `text` is null once it was erased."""

    number: int
    reply: ReplyJson | None


class TimelineEntryJson(ResponseModel):
    """One ledger entry; `content` is null if there is none, or if it was erased."""

    seq: int
    at: Timestamp
    kind: str
    actor: str
    approval_id: str
    data: dict[str, Any]
    content: dict[str, Any] | None
    digest: str | None


class ApprovalJson(ApprovalItemJson):
    """One approval in full. Edited arguments have to fit the `schema`.

    `declared`: the tool's definition is only declared by the agent's program, so its schema has no annotations.
    """

    args: Any
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")]
    declared: bool
    card: CardJson
    findings: list[FindingJson]
    decisions: list[Kind]
    may_not: dict[Kind, str]
    needed: str
    stages: list[StageJson]
    excluded: list[str]
    votes: list[VoteJson]
    editors: list[str]
    delegations: list[DelegationJson]
    questions: list[QuestionJson]
    timeline: list[TimelineEntryJson]
    result: Any
    error_message: str | None


class OutcomeJson(ResponseModel):
    """What the agent has to do next. `args` come with `proceed`, `message` with `answered`, `reason` with `refused`."""

    outcome: Literal["proceed", "waiting", "refused", "answered", "finished"]
    status: Status | Literal["allowed", "denied"]
    args_sha256: str
    approval_id: str = ""
    args: dict[str, Any] = {}
    until: Timestamp | None = None
    questions: list[int] = []
    message: Any = None
    reason: str = ""
    result: Any = None
    error: str | None = None
    warnings: list[str] = []


class ApprovalSummaryJson(ResponseModel):
    """The result of a decision without the card, for requests with `Prefer: return=minimal`."""

    id: str
    status: Status
    version: int
    args_sha256: str
    quorum: QuorumJson
    decision: DecisionJson | None
    release_at: Timestamp | None
    start_by: Timestamp | None
