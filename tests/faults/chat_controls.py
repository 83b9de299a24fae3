"""Red controls of the chat suites: agents that are broken on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from interlock.app.gate import Execution
from interlock.chat import turn
from interlock.chat.calls import ToolCallRunner
from interlock.chat.thread_lease import LeasedThread
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry, ThreadEntry, ThreadTransition
from interlock.core.chat.transcript import CallModel, ThreadStep, TurnLimits, next_step
from interlock.core.outcome import Proceed
from interlock.storage.engine.transaction import Transaction
from tests.faults.kill_controls import EFFECT, TWICE, BrokenCopy

UNFENCED = ("one turn was recorded twice", "has 2 results", "has 0 results")
FORGOTTEN = ("has 0 results",)  # of the reply that was asked for again
LASTING = ("after commit", "after all is answered")


def no_fence() -> None:
    """A former lease holder of a thread may still append to it."""
    threads.append = lambda thread, _, lines, moment: ThreadTransition(
        replace(thread, updated_at=moment.now), tuple(lines)
    )


def act_before_record() -> None:
    """A call runs before its start is written, as in frameworks that record a step when it is done."""
    real = ToolCallRunner._execute

    async def execute(self: ToolCallRunner, call: Any, tool: Any, outcome: Proceed) -> None:
        if outcome.approval_id and not tool.name.startswith("agent_"):
            stored = await self.services.gate._store.get(self._workspace, outcome.approval_id)
            args = stored.payload.args or b"{}"
            unstarted = Execution(outcome.approval_id, 1, args, outcome.approval_id, 0)
            result = await tool.run(turn_use(unstarted))
            tool = replace(tool, run=make_awaitable(result))
        await real(self, call, tool, outcome)

    ToolCallRunner._execute = execute  # type: ignore[method-assign]


def turn_use(started: Execution) -> Any:
    from interlock.chat.tool import ToolInvocation
    from interlock.core.canonical import read_canonical

    return ToolInvocation(read_canonical(started.args), started.idempotency_key)  # type: ignore[arg-type]


def make_awaitable(result: object) -> Any:
    async def run(_: Any) -> object:
        return result

    return run


def ignore_messages() -> None:
    """A decision wakes nobody: a thread that waits finds out when it looks by itself."""
    Transaction.wake_thread = lambda *_: None  # type: ignore[method-assign]


def forget_turns() -> None:
    """Who takes over asks the model again for the reply that is the last thing in the log."""

    def step(log: Sequence[ThreadEntry], limits: TurnLimits) -> ThreadStep:
        kinds = [line.kind for line in log[-2:]]
        return CallModel() if kinds == ["replied", "resumed"] else next_step(log, limits)

    turn.next_step = step  # type: ignore[attr-defined]


def show_cards_later() -> None:
    """A sub-agent's card is written first, and shown to its person in a transaction of its own."""

    async def show(self: LeasedThread, line: NewThreadEntry) -> None:
        await self.append(line)
        if self.thread.parent:
            body = {**line.body, "child": self.thread.id, "path": list(self.thread.path)}
            above = line._replace(body=body)
            await self._store.step(
                self.thread.workspace, self.root_id, lambda thread, moment: threads.mirror(thread, (above,), moment)
            )

    LeasedThread.append_and_mirror = show  # type: ignore[method-assign]


BROKEN_COPIES = {
    "chat-no-fence": BrokenCopy(
        "who lost a thread still writes", no_fence, ("chat",), "stop", ("the model", *EFFECT), UNFENCED
    ),
    "chat-acts-first": BrokenCopy(
        "a call runs before its start is written", act_before_record, ("chat",), "kill", EFFECT, TWICE
    ),
    "chat-forgets-turns": BrokenCopy(
        "a recorded turn is made again", forget_turns, ("chat-flaky", "chat-question"), "kill", LASTING, FORGOTTEN, 60
    ),
    "chat-shown-later": BrokenCopy(
        "a card is shown in a second transaction",
        show_cards_later,
        ("chat-child",),
        "kill",
        LASTING,
        ("a card of a child is ",),
        60,
    ),
}
