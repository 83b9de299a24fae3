"""The shapes of what people are answered, as the document shows them. `shape` makes them; tests compare both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

DecisionKind = Literal["approve", "edit", "respond", "reject"]
OpenStatus = Literal["pending", "approved", "running"]
EndedStatus = Literal["rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown"]
Status = OpenStatus | EndedStatus
Timestamp = Annotated[str, Field(description="RFC 3339, in UTC.", json_schema_extra={"format": "date-time"})]
Digest = Annotated[str, Field(description="SHA-256 in hex; changed where the content was erased.")]


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PeopleJson(ResponseModel):
    users: list[str]
    teams: list[str]


class QuorumJson(ResponseModel):
    have: int
    need: int


class DecisionJson(ResponseModel):
    """What was decided, by whom and when. Time and policy decide too: then `by` is interlock or policy."""

    kind: str
    by: str
    at: Timestamp
    via: str
    reason: str
    comment: str


class ApprovalItemJson(ResponseModel):
    """An approval in a list. `may_decide` is about whoever asks; `seconds_left` is null where nothing waits."""

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
    may_decide: list[DecisionKind]


class ApprovalPageJson(ResponseModel):
    """`next` is the cursor of the next page. `behind`: what changed a moment ago may be missing from a search."""

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
    """What people see of the call, made by the server from the stored bytes. What begins with `agent_` is its word.

    `sentence` and `preview` are the server's or the registered tool's own.
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
    """A reason to look twice. An alarm has to be acknowledged by its id before the call can be approved."""

    id: str
    kind: str
    level: Literal["alarm", "note"]
    pointer: str
    message: str


class StageJson(ResponseModel):
    """Without `approvers` the requester and every reviewer and admin may decide."""

    approvers: PeopleJson | None
    need: int
    have: int
    done: bool


class VoteJson(ResponseModel):
    by: str
    seat: str
    stage: int
    args_sha256: Digest
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
    """What a person asked the agent; `text` is null once it was erased."""

    number: int
    reply: ReplyJson | None


class TimelineEntryJson(ResponseModel):
    """One line of the ledger; `content` is null where there is none, or where it was erased."""

    seq: int
    at: Timestamp
    kind: str
    actor: str
    approval_id: str
    data: dict[str, Any]
    content: dict[str, Any] | None
    digest: str | None


class ApprovalJson(ApprovalItemJson):
    """One approval, whole. `may_not` says why, to whoever asks; `schema` is what an edit has to fit.

    `declared`: only the agent's program says what the tool is, so its schema comes without words about how it looks.
    """

    args: Any
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")]
    declared: bool
    card: CardJson
    findings: list[FindingJson]
    decisions: list[DecisionKind]
    may_not: dict[DecisionKind, str]
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
    """What the agent does next. `args` are there with `proceed`, `message` with `answered`, `reason` with `refused`."""

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


class ApprovalSummaryJson(ResponseModel):
    """What came of a decision, without the card: for whoever sends `Prefer: return=minimal`."""

    id: str
    status: Status
    version: int
    args_sha256: str
    quorum: QuorumJson
    decision: DecisionJson | None
    release_at: Timestamp | None
    start_by: Timestamp | None


class ExecutionJson(ResponseModel):
    """The right to run the call once, with exactly these arguments; `fence` is what renew and finish have to show."""

    fence: int
    args: dict[str, Any]
    idempotency_key: str
    lease_until: Timestamp


class CallLease(ResponseModel):
    approval_id: str
    fence: int
    status: Literal["running"]


class CallStatusJson(ResponseModel):
    approval_id: str
    status: Status


class OpenRun(ResponseModel):
    run_id: str
    runner: str
    lease_until: Timestamp


class OpenRuns(ResponseModel):
    items: list[OpenRun]
    next: None


class AcquiredRunJson(ResponseModel):
    """`key` hides secrets in the ids of calls, and is of no use for any other run."""

    run_id: str
    runner: str
    resumed: bool
    key: str
    api: int


class RunStatusJson(ResponseModel):
    run_id: str
    status: Literal["open", "closed"]


class PauseJson(ResponseModel):
    """`run_id` is the run as its calls name it, `called` what its framework calls it."""

    run_id: str
    called: str
    agent: str
    paused_at: Timestamp
    fence: int
    attempts: int


class PauseInfo(PauseJson):
    """`waiting` is how many of its approvals wait for people; `resuming` says that a program goes on with it now."""

    waiting: int
    resuming: bool


class PauseList(ResponseModel):
    items: list[PauseInfo]
    next: str | None


class ClaimedPause(PauseJson):
    """`state` is as it was given, in base64."""

    state: str


class ClaimedPauses(ResponseModel):
    """`held` are the other programs with this key that go on with runs of this agent now."""

    items: list[ClaimedPause]
    held: list[str]


class PauseLease(ResponseModel):
    run_id: str
    fence: int


class PauseRelease(ResponseModel):
    """For so many `seconds` nobody takes it."""

    run_id: str
    seconds: float


class PauseCompletion(ResponseModel):
    """`over` is false if it was paused again, or claimed by somebody else, meanwhile."""

    run_id: str
    over: bool
