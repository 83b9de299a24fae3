"""Ports: small protocols that the rules and services need, each for one user; the storage implements them.

It is long because the ports and the values that they exchange are one interface.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from interlock.core.approval.approval import Approval
from interlock.core.approval.propose import Proposal
from interlock.core.call import ToolSpec
from interlock.core.decision import Reviewer
from interlock.core.errors import Problem, Stale
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.identity import ApiKey, OneTimeLink, UserSession
from interlock.core.ledger.chain import Entry, Head
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.core.ledger.event import Change, Event, Moment, Stored
from interlock.core.ledger.invariants import Violation
from interlock.core.pins import Pin
from interlock.core.policy.analysis import RecordedCall
from interlock.core.policy.policy import Condition, People
from interlock.core.run import Run

Clock = Callable[[], int]  # milliseconds since 1970, UTC
IsRunnerDead = Callable[[str], bool]  # whether a runner is certainly dead; False if uncertain
ApprovalStep = Callable[[Approval, Moment], Change[Approval]]
StoredStep = Callable[[Stored, Moment, "StartConditions"], Change[Approval]]
ReviewerStep = Callable[[Approval, Moment, Reviewer], Change[Approval]]
GrantFactory = Callable[[Moment, Reviewer], Change[Grant]]
RunStep = Callable[[Run, Moment], Change[Run]]
GrantStep = Callable[[Grant, Moment], Change[Grant]]
PolicySource = Literal["file", "person"]


ReadGrants = Callable[[], Sequence[Grant]]
ProposalStep = Callable[[Moment, ReadGrants], Change[Approval]]
T = TypeVar("T")
Trace = Mapping[str, object]


class Validator(Protocol):
    def __call__(self, schema: Mapping[str, object], value: object) -> tuple[Problem, ...]:
        """The problems of a value under a JSON Schema, with pointers; none if it fits."""


class ConditionCompiler(Protocol):
    def __call__(self, source: str) -> Condition:
        """Compile the source of a condition; raises Misconfigured with what is wrong."""


class HeadSigner(Protocol):
    """Signer of ledger heads; the private key is never in the database."""

    @property
    def key(self) -> str:
        """The public key, in hex."""

    def sign(self, data: bytes) -> str:
        """The signature, in hex."""


@dataclass(frozen=True, slots=True)
class ApprovalQuery:
    """Filters of a list; empty means any. `cursor` is `next` of the previous page.

    `text` holds words that all have to occur, `arguments` pairs of a dotted path and a value, `person` asked, decided,
    voted or edited, `team` is named by the terms; `since` (inclusive) and `until` (exclusive) bound the time of
    creation. With `owners`, only calls that belong to one of them, always the newest first.
    """

    statuses: tuple[str, ...] = ()
    _: KW_ONLY
    tool: str = ""
    agent: str = ""
    thread_id: str = ""
    run_id: str = ""
    requester: str = ""
    priority: str = ""
    cursor: str = ""
    limit: int = 50
    payload: Literal["sentence", "whole"] = "sentence"  # arguments and results can be large
    text: str = ""
    person: str = ""
    team: str = ""
    arguments: tuple[tuple[str, object], ...] = ()
    owners: frozenset[str] = frozenset()
    since: int = 0
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """A page, possibly short even with a `next`; `is_index_behind`: newer changes are not searchable yet."""

    items: tuple[Stored, ...]
    next: str | None
    is_index_behind: bool = False


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of ledger entries; empty means any."""

    kind: str = ""
    actor: str = ""
    limit: int = 100
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A policy as it was put in force, with author and time.

    `source` says whether it is the text of a file that a process was started with, or a person put it in force.
    """

    version: int
    _: KW_ONLY
    sha256: str
    body: str
    author: str
    at: int
    reason: str = ""
    source: PolicySource = "person"


AGENT_DELETED_REASON = "The agent was deleted before this call started."
# In place of an agent's settings; a program that does not know them sees settings in which nothing is overridden.
DELETED_AGENT_BODY = '{"deleted":true}'  # the agent is gone
RESTORED_AGENT_BODY = '{"restored":true}'  # it is as in the configuration file, built in, or known from its calls only


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """An agent's settings by an admin: `body` is JSON; each change is a new version.

    A deletion is a version too: the sum of all versions is the revision of the agents, so none may disappear.
    """

    name: str
    version: int
    body: str
    author: str
    at: int

    @property
    def has_settings(self) -> bool:
        return self.body not in (DELETED_AGENT_BODY, RESTORED_AGENT_BODY)

    @property
    def is_gone(self) -> bool:
        """Whether the agent was deleted, and not only its settings made here."""
        return self.body == DELETED_AGENT_BODY


class AgentDeletion(NamedTuple):
    """The effect of deleting an agent's settings: whether an agent `remains` without them.

    `withdraws_calls`: it leaves the chat, so calls of its threads that have not started are cancelled.
    """

    remains: bool = False
    withdraws_calls: bool = True


class AgentsChanged(Stale):
    """An agent was changed after all agents were checked for a change that depends on them: check again."""


class AgentToolUsage(NamedTuple):
    """How often an agent called a tool, and when last; without an agent: reads, whose agent is not recorded."""

    tool: str
    agent: str
    calls: int
    last_at: int


class FirstSeenTool(NamedTuple):
    """A tool at its first use by an agent; without a definition if only its reads are counted."""

    name: str
    spec_sha256: str
    agent: str
    at: int


@dataclass(frozen=True, slots=True)
class User:
    """A person; until `away_until`, `away_to` decide in their place. A removed one stays known, but decides nothing."""

    name: str
    role: str = "reviewer"
    _: KW_ONLY
    teams: frozenset[str] = frozenset()
    email: str = ""
    away_until: int | None = None
    away_to: People | None = None
    removed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts for monitoring; `waiting_runs` covers the 10,000 most urgent pending approvals."""

    by_status: Mapping[str, int]
    allowed_reads: int
    waiting_runs: int


@dataclass(frozen=True, slots=True)
class ProposalTransaction:
    """A proposal to store; `step` runs inside the transaction, where it can also read the grants.

    With a `fence` the call belongs to a thread, and is stored only while the thread's lease has that fence.
    """

    proposal: Proposal
    step: ProposalStep
    fence: int | None = None


AuditRow = Any  # a row, or a text why it cannot be read


class AuditPage(NamedTuple):
    """Rows by id, as of the ledger entry `newest`, which is 0 without rows.

    `last` is the end of the page in the database's sort order: an id may be spelled differently, so that it can be
    read.
    """

    newest: int
    items: Sequence[tuple[str, AuditRow]]
    last: str = ""


class AuditReader(Protocol):
    """What a verifier reads: rows as of one entry, and the entries about them."""

    async def approvals(self, workspace: str, after: str, until: str, limit: int) -> AuditPage: ...
    async def entries(
        self, workspace: str, after: tuple[str, int], until: str, newest: int, limit: int
    ) -> Sequence[Entry]: ...
    async def rows(self, table: str, workspace: str, after: str, limit: int) -> AuditPage: ...
    async def statements(self, workspace: str, after: int, until: int, limit: int) -> Sequence[Entry]: ...
    async def has_used(self, workspace: str, key: str, agent: str) -> bool: ...
    async def tallies(self, workspace: str) -> tuple[int, Mapping[str, int]]: ...
    async def schema_violations(self) -> Sequence[Violation]: ...


class ApprovalReader(Protocol):
    """Reads of approvals and freezes."""

    async def find(self, workspace: str, run_id: str, call_id: str) -> Stored | None: ...
    async def get(self, workspace: str, approval_id: str) -> Stored: ...
    async def get_approval(self, workspace: str, approval_id: str) -> Approval: ...
    async def list(self, workspace: str, query: ApprovalQuery) -> ApprovalPage: ...
    async def find_ids(self, workspace: str, part: str, limit: int) -> Sequence[str]: ...
    async def timeline(self, workspace: str, approval_id: str) -> Sequence[Entry]: ...
    async def open_freezes(self, workspace: str) -> tuple[Freeze, ...]: ...
    async def secret_key(self, workspace: str) -> bytes: ...
    def watch(self, workspace: str, approval_id: str = "") -> AbstractAsyncContextManager[Watch]: ...


class PolicyRevision(NamedTuple):
    """Changes with every new policy and with every change of an agent's settings, which hold its switches."""

    policy: int = 0  # the newest version
    agents: int = 0  # the sum of all agents' versions


class StartConditions(NamedTuple):
    """What can stop a start, as read inside its transaction."""

    freezes: Sequence[Freeze]
    policy_revision: PolicyRevision


class ApprovalWriter(Protocol):
    """Every write is one transition: state, event and head in one transaction, or nothing."""

    async def propose(self, transaction: ProposalTransaction) -> Stored: ...
    async def deny(self, workspace: str, events: Sequence[Event], spec: ToolSpec) -> None: ...
    async def record_key_agents(self, workspace: str, key: str, agents: Sequence[str]) -> None: ...
    async def transition(self, workspace: str, approval_id: str, step: ApprovalStep) -> Approval: ...
    async def transition_by(self, workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep) -> Approval:
        """Like `transition`, for a person: the step gets the person as of the transaction."""

    async def transition_stored(self, workspace: str, approval_id: str, step: StoredStep) -> Stored: ...
    def count_read(self, workspace: str, tool: str) -> None: ...
    def note_tool(self, workspace: str, spec: ToolSpec, agent: str, key: str) -> None: ...


class TimerStore(Protocol):
    """Queries of the worker: deadlines, expired leases, released freezes, retention and the search index."""

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str]]: ...
    async def next_due(self) -> int | None: ...
    async def running(self) -> Sequence[tuple[str, str, str]]: ...
    async def unsettled_freezes(self) -> Sequence[tuple[str, str]]: ...
    async def settle_freeze(self, workspace: str, freeze_id: str) -> int: ...
    async def update_search_index(self, min_age: int = 0) -> bool: ...
    async def apply_retention(self, retention: int, grace_period: int = 0) -> ErasureResult | None: ...


class RunStore(Protocol):
    async def runs(self, workspace: str, agent: str) -> Sequence[Run]: ...
    async def add_run(self, workspace: str, new: Callable[[Moment], Change[Run]]) -> Run: ...
    async def update_run(self, workspace: str, run_id: str, step: RunStep) -> Run: ...


class GrantStore(Protocol):
    async def grants(self, workspace: str) -> Sequence[Grant]: ...
    async def usable_grants(self, workspace: str, now: int) -> Sequence[Grant]: ...
    async def grant(self, workspace: str, grant_id: str) -> Grant: ...
    async def find_grant_ids(self, workspace: str, part: str, limit: int) -> Sequence[str]: ...
    async def grant_uses(self, grant: Grant, limit: int) -> Sequence[Stored]: ...
    async def newest_specs(self, workspace: str, tool: str, limit: int) -> Sequence[tuple[str, str, int]]: ...
    async def add_grant(self, workspace: str, maker: Reviewer, new: GrantFactory) -> Grant: ...
    async def update_grant(self, workspace: str, grant_id: str, step: GrantStep) -> Grant: ...


class PolicyStore(Protocol):
    """Versions of policies and agents, and the people they name."""

    async def policy(self, workspace: str) -> PolicyVersion | None: ...
    async def policies(self, workspace: str, limit: int = 100) -> Sequence[PolicyVersion]: ...
    async def put_policy(
        self,
        workspace: str,
        sha256: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        trace: Trace | None = None,
    ) -> PolicyVersion: ...
    async def has_policy(self, workspace: str, sha256: str) -> bool: ...
    async def put_policy_file(
        self, workspace: str, sha256: str, body: str, author: str, reason: str = "", *, reapply: bool = False
    ) -> PolicyVersion: ...
    async def agents(self, workspace: str) -> Sequence[AgentVersion]: ...
    async def put_agent(
        self,
        workspace: str,
        name: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> AgentVersion: ...
    async def delete_agent(
        self,
        workspace: str,
        name: str,
        effect: AgentDeletion,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> Sequence[str]: ...
    async def users(self, workspace: str) -> Sequence[User]: ...
    async def put_user(self, workspace: str, user: User, author: str) -> User: ...


class ToolStore(Protocol):
    """Tools that agents declared, and tools that an admin pinned."""

    async def spec(self, sha256: str) -> ToolSpec | None: ...
    async def tools(self, workspace: str) -> Sequence[FirstSeenTool]: ...
    async def keys_over_limit(self, workspace: str) -> Sequence[str]: ...
    async def tool_usage(self, workspace: str, since: int) -> Sequence[AgentToolUsage]: ...
    async def pins(self, workspace: str) -> Sequence[Pin]: ...
    async def pin(self, workspace: str, specs: Sequence[ToolSpec], agent: str, author: str) -> Sequence[Pin]: ...
    async def unpin(self, workspace: str, tool: str, author: str) -> Pin: ...


class LedgerReader(Protocol):
    async def head(self, workspace: str) -> Head: ...
    async def stats(self, workspace: str) -> Stats: ...
    def entries(self, workspace: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]: ...
    async def filter_entries(
        self, workspace: str, span: tuple[int, int], entry_filter: EntryFilter
    ) -> Sequence[Entry]: ...
    def recorded_calls(self, workspace: str, since: int = 0) -> AsyncIterator[Sequence[RecordedCall]]: ...
    async def count_recorded_calls(self, workspace: str, since: int = 0) -> tuple[int, int]: ...


class Store(
    ApprovalReader,
    ApprovalWriter,
    TimerStore,
    RunStore,
    GrantStore,
    PolicyStore,
    ToolStore,
    LedgerReader,
    Protocol,
):
    """All of them: the store of the three services."""

    @property
    def audit_reader(self) -> AuditReader: ...

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    def erase(self, workspace: str, erasure: Erasure, *, dry_run: bool = False) -> AsyncIterator[ErasureResult]: ...


class PeopleTransaction(Protocol):
    """The people of one workspace inside a transaction."""

    def user(self, name: str) -> User | None: ...
    def users(self) -> Sequence[User]: ...
    def password(self, name: str) -> str: ...
    def find_name_by_subject(self, subject: str) -> str: ...
    def has_subject(self, name: str) -> bool: ...
    def person_identities(self, person: str) -> Sequence[tuple[str, str]]:
        """Channels, and the person's id on each."""

    def save_user(self, user: User) -> None: ...
    def set_password(self, name: str, hashed: str) -> None: ...
    def set_subject(self, name: str, subject: str) -> None: ...
    def delete_identity(self, channel: str, external_id: str) -> None: ...


class CredentialReader(Protocol):
    """Keys, sessions and one-time links, by their stored digests."""

    def key(self, key_id: str) -> ApiKey | None: ...
    def person_keys(self, person: str) -> Sequence[ApiKey]: ...
    def keys_made_by(self, person: str) -> Sequence[ApiKey]:
        """Keys they made for others, not revoked."""

    def session(self, digest: str) -> UserSession | None: ...
    def person_sessions(self, person: str) -> Sequence[str]: ...
    def link(self, digest: str) -> OneTimeLink | None: ...
    def person_links(self, person: str) -> Sequence[str]: ...
    def links_made_by(self, person: str) -> Sequence[str]:
        """Links they made for others."""


class CredentialWriter(Protocol):
    def add_key(self, key: ApiKey, digest: str) -> None: ...
    def revoke_key(self, key_id: str) -> None: ...
    def expire_key(self, key_id: str, at: int) -> None: ...
    def add_session(self, digest: str, session: UserSession) -> None: ...
    def end_session(self, digest: str) -> None: ...
    def add_link(self, digest: str, link: OneTimeLink) -> None: ...
    def use_link(self, digest: str) -> None: ...


class AccountTransaction(PeopleTransaction, CredentialReader, CredentialWriter, Protocol):
    """The accounts of one workspace inside a transaction; writes take effect when the step succeeds."""

    now: int

    def person_grants(self, person: str) -> Sequence[Grant]:
        """Grants that they made, neither revoked nor expired nor used up."""

    def pending_with_activity(self) -> Sequence[Approval]:
        """Pending approvals with activity by people."""

    def save_grant(self, change: Change[Grant]) -> None: ...
    def save_approval(self, old: Approval, change: Change[Approval]) -> None: ...
    def append_event(self, event: Event) -> None: ...


class WorkspaceStore(Protocol):
    async def workspaces(self) -> Sequence[tuple[str, int]]: ...
    async def add_workspace(self, workspace: str) -> None: ...


class AccountStore(WorkspaceStore, Protocol):
    """Keys, people and sessions. Secrets are stored as digests, passwords as argon2 hashes."""

    async def key(self, key_id: str) -> tuple[ApiKey, str, User | None] | None: ...
    async def keys(self, workspace: str) -> Sequence[ApiKey]: ...
    async def session(self, digest: str) -> tuple[UserSession, User] | None: ...
    async def link(self, digest: str) -> OneTimeLink | None: ...
    async def users(self, workspace: str) -> Sequence[User]: ...
    async def password(self, workspace: str, name: str) -> str: ...
    async def change(self, workspace: str, step: Callable[[AccountTransaction], T], trace: Trace | None = None) -> T:
        """Run one transaction; `trace` says how its author was authenticated, in the content of every event."""

    async def touch_key(self, workspace: str, key_id: str, at: int) -> None: ...
    async def delete_expired(self, now: int, answered_before: int, limit: int) -> int: ...


class ToolItem(NamedTuple):
    """One item that a tool pack stores, such as a page; `body` is JSON."""

    id: str
    body: Mapping[str, object]
    at: int


class ToolItemTransaction(Protocol):
    """The items of one workspace inside a transaction; writes take effect when the step succeeds."""

    now: int

    def get(self, kind: str, item_id: str) -> ToolItem | None: ...
    def list(self, kind: str) -> Sequence[ToolItem]: ...
    def put(self, kind: str, item_id: str, body: Mapping[str, object]) -> None: ...
    def delete(self, kind: str, item_id: str) -> None: ...


class ToolItemStore(Protocol):
    """The storage of tool packs in Interlock's own database, for one workspace."""

    async def get(self, kind: str, item_id: str) -> ToolItem | None: ...

    async def list(self, kind: str) -> Sequence[ToolItem]:
        """Items by id, at most 10,000."""

    async def change(
        self, key: str, step: Callable[[ToolItemTransaction], object], preview_version: str = ""
    ) -> object:
        """Run one transaction and return the step's JSON result. A step that raises changes nothing.

        `key` is an idempotency key: a retry with the same one gets the first result, and nothing is changed.
        `preview_version` is what `items_version` gave for the preview. If one of those items is different by now, or
        the step changes another one of their kinds, ToolFailed is raised and nothing is changed.
        """


class Passage(NamedTuple):
    """A part of a document; `start` is the offset of its first character."""

    path: str
    start: int
    text: str


class Excerpt(NamedTuple):
    """The requested part of a document, and the length of the whole document in characters."""

    text: str
    length: int


class DocumentIndex(Protocol):
    """An index of one workspace's files, as of when they were last read."""

    async def search(self, words: Sequence[str], limit: int) -> Sequence[Passage]:
        """Passages with the most of the words first; a word consists of letters and digits."""

    async def read(self, path: str, start: int, length: int) -> Excerpt | None: ...

    async def stamps(self) -> Mapping[str, str]:
        """The stamp of every indexed path."""

    async def put(self, path: str, stamp: str, passages: Sequence[str]) -> None:
        """Replace a document atomically for searches; if killed half-way, nothing changes."""

    async def drop(self, path: str) -> None: ...
    async def delete_orphans(self) -> None: ...


class Watch(Protocol):
    """A watch, registered before the first read, so that no change is missed between reading and waiting."""

    async def wait(self, timeout: float | None) -> None:
        """Return when something may have changed, or after the timeout; the caller has to check."""
