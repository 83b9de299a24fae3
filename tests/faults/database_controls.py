"""Red controls of the database suites: stores and gates that are broken on purpose."""

from __future__ import annotations

from typing import Any

from interlock.app.gate import Execution, Gate
from interlock.core.approval.approval import Approval
from interlock.core.decision import Reviewer
from interlock.core.errors import StoreUnavailable
from interlock.core.ledger.event import Moment
from interlock.core.ports import ApprovalStep, ReviewerStep
from interlock.storage.engine.transaction import Transaction
from interlock.storage.store import SqlStore

ONE_STEP_LOST = (  # a batch that was reported as committed, and was not: each call in it is one step behind
    "was pending and is gone",
    "was approved and is pending",
    "was running and is approved",
    "was succeeded and is running",
)
NOTICED = {  # parts of what the checkers report of each, of which one has to be there
    "no-fsync": ("was succeeded and is gone", "was ran and is gone"),  # all that was committed of a call is lost
    "done-again": ("error already_decided", "error already_started"),
    "taken-for-done": ONE_STEP_LOST,
    "unheard": ONE_STEP_LOST,
    "fail-open": ("was ran and is ",),
    "callers-clock": ("gave approved and not expired", "Approved after the deadline."),
    "not-behind": ("and not clock_behind",),
}


def apply_control(name: str) -> None:
    controls = {"no-fsync": no_fsync, "done-again": repeat_lost_batch, "taken-for-done": assume_lost_batch_done}
    controls |= {
        "unheard": ignore_refusal,
        "fail-open": fail_open,
        "callers-clock": use_callers_clock,
        "not-behind": ignore_clock_behind,
    }
    controls[name]()


def set_retry_time(seconds: float) -> None:
    """For a server that is gone, so that a test need not wait as long as a program does."""
    from interlock.storage.postgres.connection import retry_on_lost_connection

    retry_on_lost_connection.__defaults__ = (seconds,)


def no_fsync() -> None:
    """Answers before what was written is on the disk."""
    from interlock.storage.postgres import database

    database.WRITER_SETTINGS["synchronous_commit"] = "off"


def repeat_lost_batch() -> None:
    """A batch whose answer got lost is done once more, without a look whether it stands."""
    from interlock.storage.postgres.batches import BatchRunner

    BatchRunner._is_committed = lambda *_: False  # type: ignore[method-assign]


def assume_lost_batch_done() -> None:
    """A batch whose answer got lost is reported as committed."""
    from interlock.storage.postgres.batches import BatchRunner
    from interlock.storage.postgres.connection import CONNECTION_ERRORS

    real = BatchRunner._transact

    def transact(self: BatchRunner, batch: Any) -> Any:
        try:
            return real(self, batch)
        except CONNECTION_ERRORS:
            if self._in_doubt is None:
                raise
            return self._in_doubt.results, {}

    BatchRunner._transact = transact  # type: ignore[method-assign]


def ignore_refusal() -> None:
    """The caller gets a success although the server refused."""
    import psycopg

    from interlock.storage.postgres.batches import BatchRunner

    real = BatchRunner._finish

    def finish(self: BatchRunner, session: Any, *more: Any) -> None:
        try:
            real(self, session, *more)
        except psycopg.Error:
            session.rollback()
            self._in_doubt = None

    BatchRunner._finish = finish  # type: ignore[method-assign]


def fail_open() -> None:
    """A start that cannot be recorded runs all the same."""
    real = Gate.start

    async def start(self: Gate, workspace: str, approval_id: str, runner: str, *more: Any) -> Execution:
        try:
            return await real(self, workspace, approval_id, runner, *more)
        except StoreUnavailable:
            stored = await self._store.get(workspace, approval_id)
            return Execution(approval_id, stored.approval.lease.fence + 1, stored.payload.args or b"{}", approval_id, 0)

    Gate.start = start  # type: ignore[method-assign,assignment]


def use_callers_clock() -> None:
    """The time that counts is when the caller asked, as its own clock says; the locks come later."""
    real = SqlStore.transition

    async def transition(self: SqlStore, workspace: str, approval_id: str, step: ApprovalStep) -> Approval:
        asked = self.clock()
        return await real(self, workspace, approval_id, lambda approval, _: step(approval, Moment(asked)))

    by_real = SqlStore.transition_by

    async def transition_by(
        self: SqlStore, workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep
    ) -> Approval:
        asked = self.clock()
        return await by_real(
            self, workspace, approval_id, by, lambda approval, _, who: step(approval, Moment(asked), who)
        )

    SqlStore.transition = transition  # type: ignore[method-assign]
    SqlStore.transition_by = transition_by  # type: ignore[method-assign]


def ignore_clock_behind() -> None:
    """A clock that went back is accepted."""
    Transaction.moment = lambda self, _: Moment(self._now)  # type: ignore[method-assign]
