"""How much one agent key may ask for: calls that are recorded in a minute, and calls that are pending at once.

What else an agent writes (runs, pauses, remarks) counts as a call does; its open runs and its paused state are bounded
by the quota of pending calls.

Reads are free. Each process counts the calls of a minute that came through it, so that several servers together let
through as many times as much at most. Pending calls are counted in the database, for the owner that they are stored
with, once a second at most; what this process added since is added to that.
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
from interlock.core.rate_limit import MAX_NAMES, MINUTE
from interlock.storage.store import SqlStore

MAX_KEPT_BYTES = 4_096  # bytes of an agent's answer that is kept for a retry
PAUSED_BYTES_PER_CALL = 1 << 16  # bytes of paused runs for each pending call that a key may have
MIN_PAUSED_BYTES = 1 << 24
COUNT_MAX_AGE = 1_000  # milliseconds for which a count of the database is used


class MinuteCount:
    """The calls of one key in a minute: since when, and how many."""

    __slots__ = ("count", "since")

    def __init__(self, now: int) -> None:
        self.since = now
        self.count = 0

    def begin(self, now: int) -> None:
        if not 0 <= now - self.since < MINUTE:
            self.since, self.count = now, 0
        self.count += 1

    def wait(self, now: int, limit: int) -> int:
        """Seconds until the next may come; 0 if it may come now."""
        if not limit or self.count < limit or not 0 <= now - self.since < MINUTE:
            return 0
        return -(-(self.since + MINUTE - now) // 1000)


class OwnerCount:
    """What this process added to the pending calls of one owner, with whichever key.

    `added` counts calls that became pending, `running` those that may yet; `recent` are told apart since the last look.
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
    """The pending calls of one owner: what the database had when it was asked, and what is not in that count yet.

    The count stops at the limit. A key of several agents has calls of each of them: `owners` are all whose calls count.
    """

    __slots__ = ("_counted", "_lock", "_looked", "count", "limit", "owners")

    def __init__(self, limit: int, owners: Mapping[str, OwnerCount]) -> None:
        self.limit = limit
        self.count = 0
        self.owners = owners
        self._counted = 0
        self._looked: int | None = None
        self._lock = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        new = sum(owner.added + owner.running for owner in self.owners.values()) - self._counted
        return self.count + new >= self.limit

    async def refresh(self, count: Callable[[], Awaitable[int]], clock: Clock) -> None:
        """Those who come while the database is asked wait for its answer: before the first one, nothing is known."""
        async with self._lock:
            if self.is_fresh(now := clock()):
                return
            counted = sum(owner.added for owner in self.owners.values())  # they are committed, and so in the count
            for owner in self.owners.values():
                owner.recent.clear()
            self.count = await count()
            self._counted, self._looked = counted, now

    async def during(self, owner: str, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Many at once get no more than one after another."""
        theirs = self.owners[owner]
        theirs.running += 1
        try:
            outcome = await ask()
        finally:
            theirs.running -= 1
        if isinstance(outcome, Waiting) and outcome.status == "pending":
            theirs.add(outcome.approval_id)
        return outcome

    def is_fresh(self, now: int) -> bool:
        return self._looked is not None and 0 <= now - self._looked < COUNT_MAX_AGE


class KeyQuota(NamedTuple):
    """What holds for a key, as its principal says: made once for each that is looked up."""

    who: Principal
    limits: QuotaSettings
    place: tuple[str, str, int]  # of its pending calls: workspace, owner and limit


class QuotaEnforcer:
    def __init__(self, quotas: QuotaSettings, store: SqlStore, clock: Clock) -> None:
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._counted: OrderedDict[str, MinuteCount] = OrderedDict()  # by key
        self._kept: OrderedDict[str, MinuteCount] = OrderedDict()  # answers for retries, by key
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._pending: OrderedDict[tuple[str, str, int], PendingCount] = OrderedDict()  # by workspace, owner and limit
        self._owners: WeakValueDictionary[tuple[str, str], OwnerCount] = WeakValueDictionary()
        self._accounts: OrderedDict[str, KeyQuota] = OrderedDict()  # by key

    def limits_of(self, who: Principal) -> QuotaSettings | None:
        """Those of the key, else the server's; None for people, who are no flood."""
        if not who.is_agent:
            return None
        return QuotaSettings(
            self._quotas.per_minute if who.per_minute is None else who.per_minute,
            self._quotas.pending if who.pending is None else who.pending,
        )

    async def spend(
        self, who: Principal, gate: Gate, call: ToolCall, spec: ToolSpec | None, ask: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        """The outcome of `ask`, if the key may still ask. Counted when it begins, and taken back for a read.

        Without a `spec` it is recorded whatever the policy says, as a question is.
        """
        account = self._accounts.get(who.credential)
        if account is None or account.who is not who:
            limits = self.limits_of(who)
            if limits is None:
                return await ask()
            account = self._account(who, limits)
        _, limits, place = account
        now = self._clock()
        pending = self._pending.get(place)
        if limits.pending and (pending is None or not pending.is_fresh(now)):
            pending = await self._pending_of(who, place)
            now = self._clock()
        counted = self._counted.get(who.credential) or self._counted_of(who)
        wait = counted.wait(now, limits.per_minute) if counted.count >= limits.per_minute else 0
        full = pending is not None and pending.is_full
        if (wait or full) and not await _is_exempt(gate, call, spec, is_minute=wait > 0):
            raise _quota_exceeded(limits, wait, pending)
        counted.begin(now)
        owner = who.owner if call.caller is None else call.caller.owner
        outcome = await (ask() if pending is None else pending.during(owner, ask))
        if isinstance(outcome, Proceed) and not outcome.approval_id:
            counted.count -= 1
        return outcome

    def _account(self, who: Principal, limits: QuotaSettings) -> KeyQuota:
        account = self._accounts[who.credential] = KeyQuota(who, limits, (who.workspace, who.owner, limits.pending))
        if len(self._accounts) > MAX_NAMES:
            self._accounts.popitem(last=False)
        return account

    def take(self, who: Principal) -> None:
        """Counts what an agent writes beside its calls: runs, pauses, remarks."""
        limits = self.limits_of(who)
        if limits is None:
            return
        counted, now = self._counted.get(who.credential) or self._counted_of(who), self._clock()
        if wait := counted.wait(now, limits.per_minute):
            raise _quota_exceeded(limits, wait, None)
        counted.begin(now)

    def may_keep(self, who: Principal, size: int) -> bool:
        """Whether an answer is kept for a retry. Agents' requests that add nothing are free, and their answers are not.

        An answer that is not kept is worked out anew: what agents send is known by ids of its own.
        """
        limits = self.limits_of(who)
        if limits is None:
            return True
        kept, now = self._kept_of(who), self._clock()
        if size > MAX_KEPT_BYTES or kept.wait(now, limits.per_minute):
            return False
        kept.begin(now)
        return True

    @asynccontextmanager
    async def opening(self, who: Principal, count: Callable[[int], Awaitable[int]]) -> AsyncIterator[None]:
        """While a run is opened: its owner may have as many open ones as pending calls. One after the other."""
        limits = self.limits_of(who)
        if limits is None or not limits.pending:
            yield
            return
        async with self._turn(who):
            if await count(limits.pending) >= limits.pending:
                message = f"{limits.pending:,} runs of this key or its agent are open already. Close some of them."
                raise TooManyRequests(message, retry_after=5)
            yield

    @asynccontextmanager
    async def pausing(self, who: Principal, size: int, stored: Callable[[], Awaitable[int]]) -> AsyncIterator[None]:
        """While a run is paused: what is stored for its owner is bounded. One after the other."""
        limits = self.limits_of(who)
        if limits is None or not limits.pending:
            yield
            return
        most = max(limits.pending * PAUSED_BYTES_PER_CALL, MIN_PAUSED_BYTES)
        async with self._turn(who):
            if await stored() + size > most:
                message = (
                    f"The paused runs of this key or its agent hold {most >> 20:,} MiB already. "
                    "Go on with some of them, or ask an admin for a key with a larger quota of pending calls."
                )
                raise TooManyRequests(message, retry_after=5)
            yield

    def _turn(self, who: Principal) -> asyncio.Lock:
        """Held by whoever uses it: a lock that nobody holds is gone."""
        place = (who.workspace, who.owner)
        lock = self._turns.get(place)
        if lock is None:
            lock = self._turns[place] = asyncio.Lock()
        return lock

    def _kept_of(self, who: Principal) -> MinuteCount:
        kept = self._kept.get(who.credential)
        if kept is None:
            kept = self._kept[who.credential] = MinuteCount(self._clock())
            if len(self._kept) > MAX_NAMES:
                self._kept.popitem(last=False)
        return kept

    def _counted_of(self, who: Principal) -> MinuteCount:
        counted = self._counted[who.credential] = MinuteCount(self._clock())
        if len(self._counted) > MAX_NAMES:
            self._counted.popitem(last=False)
        return counted

    async def _pending_of(self, who: Principal, place: tuple[str, str, int]) -> PendingCount:
        """As counted within the last second."""
        limit, pending = place[-1], self._pending.get(place)
        if pending is None:
            owners = {owner: self._owner_of(who.workspace, owner) for owner in _owners(who)}
            pending = self._pending[place] = PendingCount(limit, owners)
            if len(self._pending) > MAX_NAMES:
                self._pending.popitem(last=False)
        await pending.refresh(lambda: self._count(who, limit), self._clock)
        return pending

    async def _count(self, who: Principal, limit: int) -> int:
        return sum([await self._store.pending_of_owner(who.workspace, owner, limit) for owner in _owners(who)])

    def _owner_of(self, workspace: str, owner: str) -> OwnerCount:
        """One for all keys of the owner, while one of them is counted."""
        counted = self._owners.get((workspace, owner))
        if counted is None:
            counted = self._owners[workspace, owner] = OwnerCount()
        return counted


def _owners(who: Principal) -> list[str]:
    """A key of several agents has calls of each of them, and calls that name none."""
    return sorted({who.owner, *map(agents_owner, who.agents)})


def _quota_exceeded(limits: QuotaSettings, wait: int, pending: PendingCount | None) -> TooManyRequests:
    if wait or pending is None:
        message = f"This key has asked for {limits.per_minute:,} calls within a minute. Try again in {wait} seconds."
        return TooManyRequests(message, retry_after=wait)
    message = f"{limits.pending:,} calls of this key or its agent are pending already. Try again when some are decided."
    return TooManyRequests(message, retry_after=5 if pending.count >= pending.limit else 1)


async def _is_exempt(gate: Gate, call: ToolCall, spec: ToolSpec | None, *, is_minute: bool) -> bool:
    """What adds nothing: a call that is known, a read that is allowed; to the pending ones, whatever does not ask."""
    judged = await gate.judged(call, spec) if spec else None
    if judged is not None:
        is_read = judged.is_read and isinstance(judged.verdict, Allow)
        if is_read or not (is_minute or isinstance(judged.verdict, Ask)):
            return True
    return await gate.known(call.workspace, call.run_id, call.call_id) is not None
