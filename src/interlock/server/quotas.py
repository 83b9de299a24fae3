"""Quotas of agent keys: a rate limit for recorded calls per minute, and a limit for pending calls.

Other writes of an agent (runs, pauses, remarks) count as calls; its open runs and its paused state are bounded by the
quota of pending calls.

Reads are free. Each process counts the calls of a minute that came through it, so several servers together allow at
most as many times the limit. Pending calls are counted in the database, for the owner that they are stored with, once a
second at most; what this process added since is added to that.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from interlock.app.gate import Gate
from interlock.config.models import QuotaSettings
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.errors import TooManyRequests
from interlock.core.identity import Principal, agents_owner
from interlock.core.outcome import Outcome, Proceed, Waiting
from interlock.core.policy.policy import Allow, Ask
from interlock.core.ports import Clock
from interlock.core.rate_limit import MAX_NAMES
from interlock.runtime.durations import MINUTE
from interlock.storage.store import SqlStore

MAX_KEPT_BYTES = 4_096  # bytes of a response to an agent that is stored for a retry
PAUSED_BYTES_PER_CALL = 1 << 16  # bytes of paused runs for each pending call that a key may have
MIN_PAUSED_BYTES = 1 << 24
COUNT_MAX_AGE = 1_000  # milliseconds for which a count of the database is used


class MinuteCount:
    """The calls of one key in a minute: the minute's start, and their number."""

    __slots__ = ("count", "since")

    def __init__(self, now: int) -> None:
        self.since = now
        self.count = 0

    def add(self, now: int) -> None:
        if not 0 <= now - self.since < MINUTE:
            self.since, self.count = now, 0
        self.count += 1

    def retry_after(self, now: int, limit: int) -> int:
        """Seconds until the next call is allowed; 0 if it is allowed now."""
        if not limit or self.count < limit or not 0 <= now - self.since < MINUTE:
            return 0
        return -(-(self.since + MINUTE - now) // 1000)


class OwnerCount:
    """The pending calls of one owner that this process added, with any key.

    `added` counts calls that became pending, `running` those that still may; `recent` are the ids since the last count
    of the database, so that no call counts twice.
    """

    __slots__ = ("__weakref__", "added", "recent", "running")

    def __init__(self) -> None:
        self.added = 0
        self.running = 0
        self.recent: set[str] = set()

    def add(self, approval_id: str) -> None:
        if approval_id not in self.recent:
            self.recent.add(approval_id)
            self.added += 1


class PendingCount:
    """The pending calls of one owner: the last count of the database, and those that are not in it yet.

    The count stops at the limit. A key of several agents has calls of each of them: `owners` are all whose calls count.
    """

    __slots__ = ("_counted", "_lock", "_refreshed_at", "count", "limit", "owners")

    def __init__(self, limit: int, owners: Mapping[str, OwnerCount]) -> None:
        self.limit = limit
        self.count = 0
        self.owners = owners
        self._counted = 0
        self._refreshed_at: int | None = None
        self._lock = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        new = sum(owner.added + owner.running for owner in self.owners.values()) - self._counted
        return self.count + new >= self.limit

    async def refresh(self, count: Callable[[], Awaitable[int]], clock: Clock) -> None:
        """Count in the database; concurrent callers wait for it, since nothing is known before the first count."""
        async with self._lock:
            if self.is_fresh(now := clock()):
                return
            counted = sum(owner.added for owner in self.owners.values())  # they are committed, so they are in the count
            for owner in self.owners.values():
                owner.recent.clear()
            self.count = await count()
            self._counted, self._refreshed_at = counted, now

    async def track(self, owner: str, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Count the call while it runs: concurrent calls get no more than sequential ones."""
        owner_count = self.owners[owner]
        owner_count.running += 1
        try:
            outcome = await ask()
        finally:
            owner_count.running -= 1
        if isinstance(outcome, Waiting) and outcome.status == "pending":
            owner_count.add(outcome.approval_id)
        return outcome

    def is_fresh(self, now: int) -> bool:
        return self._refreshed_at is not None and 0 <= now - self._refreshed_at < COUNT_MAX_AGE


class KeyQuota(NamedTuple):
    """The limits of a key, made once for each principal that is looked up."""

    principal: Principal
    limits: QuotaSettings
    pending_key: tuple[str, str, int]  # of its pending calls: workspace, owner and limit


class QuotaEnforcer:
    def __init__(self, quotas: QuotaSettings, store: SqlStore, clock: Clock) -> None:
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._counted: OrderedDict[str, MinuteCount] = OrderedDict()  # by key
        self._kept: OrderedDict[str, MinuteCount] = OrderedDict()  # stored responses for retries, by key
        self._owner_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._pending: OrderedDict[tuple[str, str, int], PendingCount] = OrderedDict()  # by workspace, owner and limit
        self._owners: WeakValueDictionary[tuple[str, str], OwnerCount] = WeakValueDictionary()
        self._key_quotas: OrderedDict[str, KeyQuota] = OrderedDict()  # by key

    def key_limits(self, principal: Principal) -> QuotaSettings | None:
        """The key's own limits, else the server's; None for people, who have no quota."""
        if not principal.is_agent:
            return None
        return QuotaSettings(
            self._quotas.per_minute if principal.per_minute is None else principal.per_minute,
            self._quotas.pending if principal.pending is None else principal.pending,
        )

    async def run_within_quota(
        self,
        principal: Principal,
        gate: Gate,
        call: ToolCall,
        spec: ToolSpec | None,
        ask: Callable[[], Awaitable[Outcome]],
    ) -> Outcome:
        """The outcome of `ask`, if the quota allows it. A call counts when it begins; a read is subtracted again.

        Without a `spec` it is recorded regardless of the policy, as a question is.
        """
        key_quota = self._key_quotas.get(principal.credential)
        if key_quota is None or key_quota.principal is not principal:
            limits = self.key_limits(principal)
            if limits is None:
                return await ask()
            key_quota = self._account(principal, limits)
        _, limits, pending_key = key_quota
        now = self._clock()
        pending = self._pending.get(pending_key)
        if limits.pending and (pending is None or not pending.is_fresh(now)):
            pending = await self._pending_count(principal, pending_key)
            now = self._clock()
        minute_count = self._counted.get(principal.credential) or self._new_minute_count(principal)
        wait = minute_count.retry_after(now, limits.per_minute) if minute_count.count >= limits.per_minute else 0
        full = pending is not None and pending.is_full
        if (wait or full) and not await _is_exempt(gate, call, spec, is_minute=wait > 0):
            raise _quota_exceeded(limits, wait, pending)
        minute_count.add(now)
        owner = principal.owner if call.caller is None else call.caller.owner
        outcome = await (ask() if pending is None else pending.track(owner, ask))
        if isinstance(outcome, Proceed) and not outcome.approval_id:
            minute_count.count -= 1
        return outcome

    def _account(self, principal: Principal, limits: QuotaSettings) -> KeyQuota:
        key_quota = self._key_quotas[principal.credential] = KeyQuota(
            principal, limits, (principal.workspace, principal.owner, limits.pending)
        )
        if len(self._key_quotas) > MAX_NAMES:
            self._key_quotas.popitem(last=False)
        return key_quota

    def count_write(self, principal: Principal) -> None:
        """Count what an agent writes besides its calls: runs, pauses, remarks."""
        limits = self.key_limits(principal)
        if limits is None:
            return
        minute_count, now = self._counted.get(principal.credential) or self._new_minute_count(principal), self._clock()
        if wait := minute_count.retry_after(now, limits.per_minute):
            raise _quota_exceeded(limits, wait, None)
        minute_count.add(now)

    def may_store_response(self, principal: Principal, size: int) -> bool:
        """Whether a response is stored for a retry.

        An agent's requests that add nothing are free, but their stored responses are not. Without a stored response, a
        retry is executed again: an agent's requests are identified by ids of their own.
        """
        limits = self.key_limits(principal)
        if limits is None:
            return True
        replay_count, now = self._replay_count(principal), self._clock()
        if size > MAX_KEPT_BYTES or replay_count.retry_after(now, limits.per_minute):
            return False
        replay_count.add(now)
        return True

    @asynccontextmanager
    async def reserve_open_run(
        self, principal: Principal, count: Callable[[int], Awaitable[int]]
    ) -> AsyncIterator[None]:
        """While a run is opened: an owner may have as many open runs as pending calls. One at a time per owner."""
        limits = self.key_limits(principal)
        if limits is None or not limits.pending:
            yield
            return
        async with self._owner_lock(principal):
            if await count(limits.pending) >= limits.pending:
                message = f"{limits.pending:,} runs of this key or its agent are open already. Close some of them."
                raise TooManyRequests(message, retry_after=5)
            yield

    @asynccontextmanager
    async def reserve_paused_bytes(
        self, principal: Principal, size: int, stored: Callable[[], Awaitable[int]]
    ) -> AsyncIterator[None]:
        """While a run is paused: the stored state of its owner is bounded. One at a time per owner."""
        limits = self.key_limits(principal)
        if limits is None or not limits.pending:
            yield
            return
        most = max(limits.pending * PAUSED_BYTES_PER_CALL, MIN_PAUSED_BYTES)
        async with self._owner_lock(principal):
            if await stored() + size > most:
                message = (
                    f"The paused runs of this key or its agent hold {most >> 20:,} MiB already. "
                    "Go on with some of them, or ask an admin for a key with a larger quota of pending calls."
                )
                raise TooManyRequests(message, retry_after=5)
            yield

    def _owner_lock(self, principal: Principal) -> asyncio.Lock:
        """The lock of an owner, which exists only while it is in use."""
        place = (principal.workspace, principal.owner)
        lock = self._owner_locks.get(place)
        if lock is None:
            lock = self._owner_locks[place] = asyncio.Lock()
        return lock

    def _replay_count(self, principal: Principal) -> MinuteCount:
        replay_count = self._kept.get(principal.credential)
        if replay_count is None:
            replay_count = self._kept[principal.credential] = MinuteCount(self._clock())
            if len(self._kept) > MAX_NAMES:
                self._kept.popitem(last=False)
        return replay_count

    def _new_minute_count(self, principal: Principal) -> MinuteCount:
        minute_count = self._counted[principal.credential] = MinuteCount(self._clock())
        if len(self._counted) > MAX_NAMES:
            self._counted.popitem(last=False)
        return minute_count

    async def _pending_count(self, principal: Principal, pending_key: tuple[str, str, int]) -> PendingCount:
        """The count, at most a second old."""
        limit, pending = pending_key[-1], self._pending.get(pending_key)
        if pending is None:
            owners = {owner: self._owner_count(principal.workspace, owner) for owner in _owners(principal)}
            pending = self._pending[pending_key] = PendingCount(limit, owners)
            if len(self._pending) > MAX_NAMES:
                self._pending.popitem(last=False)
        await pending.refresh(lambda: self._count(principal, limit), self._clock)
        return pending

    async def _count(self, principal: Principal, limit: int) -> int:
        return sum([await self._store.count_pending(principal.workspace, owner, limit) for owner in _owners(principal)])

    def _owner_count(self, workspace: str, owner: str) -> OwnerCount:
        """One count for all keys of the owner, while one of them is counted."""
        owner_count = self._owners.get((workspace, owner))
        if owner_count is None:
            owner_count = self._owners[workspace, owner] = OwnerCount()
        return owner_count


def _owners(principal: Principal) -> list[str]:
    """A key of several agents has calls of each of them, and calls that name none."""
    return sorted({principal.owner, *map(agents_owner, principal.agents)})


def _quota_exceeded(limits: QuotaSettings, wait: int, pending: PendingCount | None) -> TooManyRequests:
    if wait or pending is None:
        message = f"This key has asked for {limits.per_minute:,} calls within a minute. Try again in {wait} seconds."
        return TooManyRequests(message, retry_after=wait)
    message = f"{limits.pending:,} calls of this key or its agent are pending already. Try again when some are decided."
    return TooManyRequests(message, retry_after=5 if pending.count >= pending.limit else 1)


async def _is_exempt(gate: Gate, call: ToolCall, spec: ToolSpec | None, *, is_minute: bool) -> bool:
    """Whether the call is not counted: repeated, an allowed read, or (pending limit) one that needs no approval."""
    judgement = await gate.judge(call, spec) if spec else None
    if judgement is not None:
        is_read = judgement.is_read and isinstance(judgement.verdict, Allow)
        if is_read or not (is_minute or isinstance(judgement.verdict, Ask)):
            return True
    return await gate.find_approval(call.workspace, call.run_id, call.call_id) is not None
