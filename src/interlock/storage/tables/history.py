"""Recorded calls for a policy rehearsal, read from the ledger with the arguments still stored; and statistics."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from interlock.core.call import Caller, PreCheck, ToolCall, ToolSpec, parse_agent_actor, parse_caller
from interlock.core.canonical import canonical
from interlock.core.policy.analysis import ASKED_BY, VERDICTS, RecordedCall
from interlock.runtime.durations import MINUTE
from interlock.storage.engine.queries import load_queries
from interlock.storage.engine.rows import Row

UNKNOWN_CALLER = Caller(owner="", owners=frozenset(), agents=("",))  # the caller is not known


def recorded_spec_sha256(row: Row) -> str | None:
    """Return the digest of the tool's definition; None if its arguments are not stored: it cannot be rejudged."""
    _, _, kind, data, _, content, *others = row
    if kind == "denied":
        return None if content is None else json.loads(data).get("spec")  # none if its arguments were too long
    return None if others[8] is None else others[7]


def read_recorded_call(workspace: str, row: Row, spec: ToolSpec, emails: Mapping[str, str]) -> RecordedCall:
    """Read a recorded call. `emails` are people's current addresses, by name: an entry holds none."""
    (
        _,
        at,
        kind,
        data,
        approval_id,
        content,
        run_id,
        call_id,
        tool,
        agent,
        path,
        thread_id,
        requester,
        _,
        args,
        sentence,
        owner,
        known,
    ) = row
    facts: dict[str, Any] = json.loads(bytes(content)) if content is not None else {}
    structure: dict[str, Any] = json.loads(data)
    if kind == "denied":
        run_id, call_id, tool = facts["run_id"], facts["call_id"], structure["tool"]
        agent, thread_id, requester = facts["agent"], facts["thread_id"], facts["requester"]
        args, sentence, agents = canonical(facts["args"]), facts["sentence"], tuple(facts["agent_path"])
        caller = _denied_caller(facts)
    else:
        caller = parse_caller(owner, json.loads(known)) if known else None
        agents = tuple(json.loads(path)) if path else ()
    call = ToolCall(
        tool=tool,
        args=bytes(args),
        run_id=run_id,
        call_id=call_id,
        workspace=workspace,
        agent=agent,
        agent_path=agents,
        thread_id=thread_id,
        requester=requester,
        teams=tuple(facts.get("teams", ())),
        priority=facts.get("priority", ""),
        setting=facts.get("setting", "queue"),
        switch=facts.get("switch", ""),
        aliases=(emails[requester],) if requester in emails else (),
        caller=caller,
        pre_check=PreCheck(facts.get("refusal", "")),
    )
    verdict = "ask" if structure.get("by") in ASKED_BY else VERDICTS[kind]
    return RecordedCall(
        call=call,
        spec=spec,
        verdict=verdict,
        rule=str(structure.get("rule", "")),
        at=at,
        approval_id=approval_id,
        sentence=sentence or "",
    )


def _denied_caller(facts: dict[str, Any]) -> Caller | None:
    """Read a denied call's caller. Old entries have none: all details are claims, and the stricter verdict holds."""
    if "known" not in facts:
        return UNKNOWN_CALLER
    return None if facts["known"] is None else parse_caller(facts["owner"], facts["known"])


WHOLE_RANGE = 2**60  # milliseconds: one bucket for all times


class StatisticsDatabase(Protocol):
    async def fetch_in_thread(self, statement: str, values: Any) -> list[Row]: ...


class LedgerRange(NamedTuple):
    """The entries after one number and up to another; their number bounds the cost of a count."""

    workspace: str
    after: int
    until: int


class TimeBucketCount(NamedTuple):
    """Entries of one kind in a time bucket; `previously_approved` of them are about calls that were approved before."""

    bucket: int
    kind: str
    n: int
    previously_approved: int


class NamedEventCount(NamedTuple):
    """Entries of one kind about a tool or an agent; an approval with edited arguments counts as `edited`."""

    name: str
    kind: str
    n: int


class DecisionTimes(NamedTuple):
    """Times that people took to decide in a time bucket, in milliseconds: the median and the 95th percentile."""

    bucket: int
    decisions: int
    median: int
    p95: int


# What is counted at most; the queries read one more each, which says that there was more.
MAX_AGENTS = 1_000  # agents in a list that are known from calls alone
MAX_NAMED_AGENTS = 10_000  # names of agents that are sorted by their newest call
MAX_AGENT_CALLS = 1_000  # calls of each agent in a list of agents
MAX_DETAILED_CALLS = 10_000  # newest calls of one agent, by outcome
MAX_DENIED = 10_000  # newest denied calls of a workspace


_ONE_NAME = "(cast(? as text))"  # in the query for the calls of agents


class AgentCalls(NamedTuple):
    """An agent's newest recorded call, and the number of its calls since a time, up to one above the limit.

    `last_bound_id` is the newest that a key bound to the agent made, among its newest 100: others only claim its name.
    """

    agent: str
    last_at: int
    last_id: str
    n: int
    last_bound_id: str | None = None


class DeniedCalls(NamedTuple):
    """Denied calls of an agent since a time, among the newest of the workspace."""

    agent: str
    n: int
    last_at: int


class AgentOutcomeCount(NamedTuple):
    """Calls of one tool on one day (days since 1970, UTC). `outcome` is allowed, edited, approved, or a status."""

    day: int
    tool: str
    outcome: str
    n: int
    last_at: int


class Statistics:
    """Statistics, computed outside of the event loop: each may read hundreds of thousands of entries."""

    def __init__(self, database: StatisticsDatabase) -> None:
        self._database = database
        self._queries = load_queries()

    async def over_time(self, ledger_range: LedgerRange, step: int) -> Sequence[TimeBucketCount]:
        return [TimeBucketCount(*row) for row in await self._fetch("event_counts_by_time", step, *ledger_range)]

    async def by_tool(self, ledger_range: LedgerRange) -> Sequence[NamedEventCount]:
        return [NamedEventCount(*row) for row in await self._fetch("event_counts_by_tool", *ledger_range)]

    async def by_agent(self, ledger_range: LedgerRange) -> Sequence[NamedEventCount]:
        return [NamedEventCount(*row) for row in await self._fetch("event_counts_by_agent", *ledger_range)]

    async def times(self, ledger_range: LedgerRange, step: int = WHOLE_RANGE) -> Sequence[DecisionTimes]:
        return [DecisionTimes(*row) for row in await self._fetch("times_to_decide", step, *ledger_range)]

    async def reads(self, workspace: str, since: int) -> Sequence[tuple[str, int]]:
        """Return the 100 tools with the most reads, of the first 1,000."""
        found = await self._fetch("reads_of_tools", workspace, workspace, workspace, since // MINUTE)
        return [(row[0], int(row[1])) for row in found]

    async def newest_agents(self, workspace: str) -> Mapping[str, int]:
        """Return when each agent made its newest recorded call, newest first, of at most 10,001 agents.

        Calls without an agent's name are left out. Of more agents, those of the newest calls are among them, and others
        by name.
        """
        return {str(row[0]): int(row[1]) for row in await self._fetch("newest_agents", *[workspace] * 4)}

    async def agent_calls(self, workspace: str, since: int, agents: Collection[str]) -> Sequence[AgentCalls]:
        """Return those of the agents that have recorded calls, by name."""
        if not agents:
            return []
        statement = self._queries["agent_calls"].replace(_ONE_NAME, ", ".join([_ONE_NAME] * len(agents)), 1)
        values = [*agents, workspace, workspace, workspace, since, workspace]
        found = await self._database.fetch_in_thread(statement, values)
        return [AgentCalls(*row) for row in found if row[1] is not None]

    async def pending_by_agent(self, workspace: str) -> Mapping[str, int]:
        """Count pending approvals by agent, of the 10,000 that expire first."""
        return {str(row[0]): int(row[1]) for row in await self._fetch("pending_by_agent", workspace)}

    async def denied_by_agent(self, workspace: str, since: int) -> Sequence[DeniedCalls]:
        found = await self._fetch("denied_by_agent", workspace, since)
        return [DeniedCalls(parse_agent_actor(actor), n, last_at) for actor, n, last_at in found]

    async def outcomes_of_agent(self, workspace: str, agent: str, since: int) -> Sequence[AgentOutcomeCount]:
        """Count an agent's newest calls since a time by day, tool and outcome."""
        found = await self._fetch("outcomes_of_agent", workspace, agent, since)
        return [AgentOutcomeCount(*row) for row in found]

    async def call_times_of_agent(self, workspace: str, agent: str) -> tuple[int | None, int | None]:
        """Return when the first and the newest of all its calls were made."""
        [(first, newest)] = await self._fetch("call_times_of_agent", workspace, agent, workspace, agent)
        return first, newest

    async def _fetch(self, name: str, *values: object) -> list[Row]:
        return await self._database.fetch_in_thread(self._queries[name], values)
