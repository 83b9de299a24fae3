"""How much one agent key may ask for: calls that are recorded in a minute, and calls that wait for people at once.

Reads are free. Each process counts what came through it, so that several servers together let through as many times
as much at most; what waits is also compared with the database's own count of the workspace, which all of them share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from interlock.configuration import Quotas
from interlock.core import claims
from interlock.core.attempts import MINUTE, MOST
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.errors import TooManyRequests
from interlock.core.identity import Principal
from interlock.core.outcome import Outcome, Proceed, Waiting
from interlock.core.policy import Allow
from interlock.core.ports import Clock
from interlock.gate import Gate
from interlock.stores.store import SqlStore

LOOK = 200  # of the calls that waited when they were last seen, how many are looked at again in a second
SECOND = 1_000  # milliseconds


class Counted:
    """What one key has asked for: since when and how often, and what waits, as far as is known."""

    __slots__ = ("count", "looked", "since", "waiting")

    def __init__(self, now: int) -> None:
        self.since = now
        self.count = 0
        self.waiting: OrderedDict[str, None] = OrderedDict()
        self.looked = 0

    def begin(self, now: int) -> None:
        if not 0 <= now - self.since < MINUTE:
            self.since, self.count = now, 0
        self.count += 1

    def wait(self, now: int, limit: int) -> int:
        """Seconds until the next may come; 0 if it may come now."""
        if not limit or self.count < limit or not 0 <= now - self.since < MINUTE:
            return 0
        return -(-(self.since + MINUTE - now) // 1000)


class QuotaKeeper:
    def __init__(self, quotas: Quotas, store: SqlStore, clock: Clock) -> None:
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._counted: OrderedDict[str, Counted] = OrderedDict()

    def limits_of(self, who: Principal) -> Quotas | None:
        """None for people, who are no flood. A key that has quotas of its own would have them here."""
        return self._quotas if who.is_agent else None

    async def spend(
        self, who: Principal, gate: Gate, call: ToolCall, spec: ToolSpec | None, ask: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        """The outcome of `ask`, if the key may still ask. Counted when it begins, and taken back for a read.

        Without a `spec` it is recorded whatever the policy says, as a question is.
        """
        limits = self.limits_of(who)
        if limits is None:
            return await ask()
        counted, now = self._of(who), self._clock()
        error = await self._excess(counted, limits, call.workspace, now)
        if error is not None and not await _is_free(gate, call, spec):
            raise error
        counted.begin(now)
        outcome = await ask()
        match outcome:
            case Waiting(approval_id) if limits.pending:
                counted.waiting[approval_id] = None
            case Proceed(approval_id=""):
                counted.count -= 1
            case _:
                pass
        return outcome

    def _of(self, who: Principal) -> Counted:
        counted = self._counted.get(who.credential)
        if counted is None:
            counted = self._counted[who.credential] = Counted(self._clock())
            if len(self._counted) > MOST:
                self._counted.popitem(last=False)
        return counted

    async def _excess(self, counted: Counted, limits: Quotas, workspace: str, now: int) -> TooManyRequests | None:
        if wait := counted.wait(now, limits.per_minute):
            message = (
                f"This key has asked for {limits.per_minute:,} calls within a minute. Try again in {wait} seconds."
            )
            return TooManyRequests(message, retry_after=wait)
        if not limits.pending or len(counted.waiting) < limits.pending:
            return None
        await self._look(counted, limits.pending, workspace, now)
        if len(counted.waiting) < limits.pending:
            return None
        message = f"{limits.pending:,} calls of this key wait for people already. Try again when some are decided."
        return TooManyRequests(message, retry_after=5)

    async def _look(self, counted: Counted, limit: int, workspace: str, now: int) -> None:
        """Forgets what waits no more: a bounded number of calls in a second, the longest known first."""
        if 0 <= now - counted.looked < SECOND:
            return
        counted.looked = now
        pending = (await self._store.stats(workspace)).by_status.get("pending", 0)
        if pending < limit:  # of everybody together: then of this key as well, and all the more
            while len(counted.waiting) > pending:
                counted.waiting.popitem(last=False)
            return
        for approval_id in list(counted.waiting)[:LOOK]:
            stored = await self._store.get(workspace, approval_id)
            if stored.approval.status == "pending" and stored.approval.expires_at > now:
                counted.waiting.move_to_end(approval_id)
            else:
                counted.waiting.pop(approval_id, None)


async def _is_free(gate: Gate, call: ToolCall, spec: ToolSpec | None) -> bool:
    """A read that the policy allows, or a call that is known already: neither adds anything."""
    judged = claims.judge(gate.policy, call, spec) if spec else None
    if judged is not None and judged.is_read and isinstance(judged.verdict, Allow):
        return True
    return await gate.known(call.workspace, call.run_id, call.call_id) is not None
