"""The shapes of what people are answered, as the document shows them. `shape` makes them; tests compare both."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["approve", "edit", "respond", "reject"]
Waiting = Literal["pending", "approved", "running"]
Ended = Literal["rejected", "responded", "expired", "cancelled", "succeeded", "failed", "unknown"]
Status = Waiting | Ended
Time = Annotated[str, Field(description="RFC 3339, in UTC.", json_schema_extra={"format": "date-time"})]
Digest = Annotated[str, Field(description="SHA-256 in hex; changed where the content was erased.")]


class Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


class People(Told):
    users: list[str]
    teams: list[str]


class Quorum(Told):
    have: int
    need: int


class Decided(Told):
    """What was decided, by whom and when. Time and policy decide too: then `by` is interlock or policy."""

    kind: str
    by: str
    at: Time
    via: str
    reason: str
    comment: str


class Item(Told):
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
    quorum: Quorum
    alarms: list[str]
    claimed_by: str
    open_questions: int
    version: int
    created_at: Time
    expires_at: Time
    seconds_left: float | None
    release_at: Time | None
    start_by: Time | None
    decision: Decided | None
    may_decide: list[Kind]


class Page(Told):
    """`next` is the cursor of the next page. `behind`: what changed a moment ago may be missing from a search."""

    items: list[Item]
    next: str | None
    behind: bool


class Fact(Told):
    label: str
    text: str


class Argument(Told):
    """One argument at any depth, safe to print; `pointer` is exact, `length` counts characters or members."""

    pointer: str
    name: str
    type: str
    text: str
    length: int
    sha256: str
    findings: list[str]


class Card(Told):
    """What people see of the call, made by the server from the stored bytes. What begins with `agent_` is its word.

    `sentence` and `preview` are the server's or the registered tool's own.
    """

    risk: str
    tool: str
    sentence: str
    facts: list[Fact]
    fields: list[Argument]
    preview: str
    agent_description: str
    agent_preview: str
    agent_says: str


class Finding(Told):
    """A reason to look twice. An alarm has to be acknowledged by its id before the call can be approved."""

    id: str
    kind: str
    level: Literal["alarm", "note"]
    pointer: str
    message: str


class Stage(Told):
    """Without `approvers` the requester and every reviewer and admin may decide."""

    approvers: People | None
    need: int
    have: int
    done: bool


class Vote(Told):
    by: str
    seat: str
    stage: int
    args_sha256: Digest
    at: Time
    via: str


class Delegated(Told):
    by: str
    to: People


class Reply(Told):
    by: str
    at: Time
    text: str | None


class Question(Reply):
    """What a person asked the agent; `text` is null once it was erased."""

    number: int
    reply: Reply | None


class Entry(Told):
    """One line of the ledger; `content` is null where there is none, or where it was erased."""

    seq: int
    at: Time
    kind: str
    actor: str
    approval_id: str
    data: dict[str, Any]
    content: dict[str, Any] | None
    digest: str | None


class Shown(Item):
    """One approval, whole. `may_not` says why, to whoever asks; `schema` is what an edit has to fit.

    `declared`: only the agent's program says what the tool is, so its schema comes without words about how it looks.
    """

    args: Any
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")]
    declared: bool
    card: Card
    findings: list[Finding]
    decisions: list[Kind]
    may_not: dict[Kind, str]
    needed: str
    stages: list[Stage]
    excluded: list[str]
    votes: list[Vote]
    editors: list[str]
    delegations: list[Delegated]
    questions: list[Question]
    timeline: list[Entry]
    result: Any
    error_message: str | None


class Outcome(Told):
    """What the agent does next. `args` are there with `proceed`, `message` with `answered`, `reason` with `refused`."""

    outcome: Literal["proceed", "waiting", "refused", "answered", "finished"]
    status: Status | Literal["allowed", "denied"]
    args_sha256: str
    approval_id: str = ""
    args: dict[str, Any] = {}
    until: Time | None = None
    questions: list[int] = []
    message: Any = None
    reason: str = ""
    result: Any = None
    error: str | None = None


class Brief(Told):
    """What came of a decision, without the card: for whoever sends `Prefer: return=minimal`."""

    id: str
    status: Status
    version: int
    args_sha256: str
    quorum: Quorum
    decision: Decided | None
    release_at: Time | None
    start_by: Time | None


class Started(Told):
    """The right to run the call once, with exactly these arguments; `fence` is what renew and finish have to show."""

    fence: int
    args: dict[str, Any]
    idempotency_key: str
    lease_until: Time


class Renewed(Told):
    approval_id: str
    fence: int
    status: Literal["running"]


class Moved(Told):
    approval_id: str
    status: Status


class OpenRun(Told):
    run_id: str
    runner: str
    lease_until: Time


class OpenRuns(Told):
    items: list[OpenRun]
    next: None


class RunTaken(Told):
    """`key` hides secrets in the ids of calls, and is of no use for any other run."""

    run_id: str
    runner: str
    resumed: bool
    key: str
    api: int


class RunMoved(Told):
    run_id: str
    status: Literal["open", "closed"]


class PauseTold(Told):
    """`run_id` is the run as its calls name it, `called` what its framework calls it."""

    run_id: str
    called: str
    agent: str
    paused_at: Time
    fence: int
    attempts: int


class PauseInfo(PauseTold):
    """`waiting` is how many of its approvals wait for people; `resuming` says that a program goes on with it now."""

    waiting: int
    resuming: bool


class PauseList(Told):
    items: list[PauseInfo]
    next: str | None


class ClaimedPause(PauseTold):
    """`state` is as it was given, in base64."""

    state: str


class ClaimedPauses(Told):
    """`held` are the other programs with this key that go on with runs of this agent now."""

    items: list[ClaimedPause]
    held: list[str]


class PauseKept(Told):
    run_id: str
    fence: int


class PauseLeft(Told):
    """For so many `seconds` nobody takes it."""

    run_id: str
    seconds: float


class PauseEnded(Told):
    """`over` is false if it was paused again, or claimed by somebody else, meanwhile."""

    run_id: str
    over: bool
