"""The next step of a thread, computed from its log alone: a thread has no other state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interlock.core.chat.thread import ThreadEntry
from interlock.core.chat.transcript import PendingCall, TurnState, read_turn_state


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits per message: turns of the model, tokens, and milliseconds that model and tools took together."""

    turns: int = 30
    tokens: int = 500_000
    work_ms: int = 900_000


DEFAULT_LIMITS = TurnLimits()


class CallModel(NamedTuple):
    """Call the model; `attempt` counts from 1, and after a failure `not_before` is the earliest time to retry."""

    attempt: int = 1
    not_before: int = 0


class HandleCalls(NamedTuple):
    """Calls without a result: to propose to the gate, to start, and to wait for.

    `withdrawal`: the turn was stopped or a newer message came, so calls that have not started are withdrawn.
    """

    to_propose: tuple[PendingCall, ...] = ()
    start: tuple[PendingCall, ...] = ()
    to_await: tuple[PendingCall, ...] = ()
    withdrawal: str = ""


class EndTurn(NamedTuple):
    """The turn is over: done, stopped or limit; `reason` is for people."""

    status: str
    reason: str = ""


class Idle(NamedTuple):
    """Nothing to do until the next message."""


ThreadStep = CallModel | HandleCalls | EndTurn | Idle


def next_step(log: Sequence[ThreadEntry], limits: TurnLimits = DEFAULT_LIMITS) -> ThreadStep:
    """The next step of a thread."""
    state = read_turn_state(log)
    waiting = [call for call in state.calls.values() if not call.ended]
    if waiting:
        return _handle_calls(waiting, state)
    if state.is_over:
        return Idle()
    if state.stopped:
        return EndTurn("stopped", "Stopped.")
    if state.replied and not state.calls and not state.has_unseen:
        return EndTurn("done")
    reached = _limit_message(state, limits)
    return EndTurn("limit", reached) if reached else CallModel(state.attempts + 1, state.not_before)


def _handle_calls(waiting: Sequence[PendingCall], state: TurnState) -> HandleCalls:
    fresh = tuple(call for call in waiting if not call.approval_id and not call.child)
    start = tuple(call for call in waiting if call.decision == "approved" and not call.child)
    wait = tuple(call for call in waiting if call not in fresh and call not in start)
    withdrawal = "stopped" if state.stopped else ("said" if state.has_unseen else "")
    return HandleCalls(fresh, start, wait, withdrawal)


def _limit_message(state: TurnState, limits: TurnLimits) -> str:
    more = "Send a message to go on."
    if state.turns >= limits.turns:
        return f"The limit of {limits.turns} model turns for one message is reached. {more}"
    if state.tokens >= limits.tokens:
        return f"The limit of {limits.tokens:,} tokens for one message is reached. {more}"
    if state.work_ms >= limits.work_ms:
        return f"The limit of {limits.work_ms // 1000:,} seconds of work for one message is reached. {more}"
    return ""
