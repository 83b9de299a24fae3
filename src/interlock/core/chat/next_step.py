"""What comes next in a thread, read from its log alone: a thread keeps nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from interlock.core.chat.thread import ThreadEntry
from interlock.core.chat.transcript import PendingCall, TurnState, read_turn_state


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Of one message: turns of the model, tokens, and milliseconds that model and tools took together."""

    turns: int = 30
    tokens: int = 500_000
    took: int = 900_000


DEFAULT_LIMITS = TurnLimits()


class CallModel(NamedTuple):
    """`attempt` counts from 1; not before this time, after a failure."""

    attempt: int = 1
    not_before: int = 0


class HandleCalls(NamedTuple):
    """Calls that have no result yet: to ask the gate about, to start, and to wait for.

    `given_up`: it was stopped, or something newer was said, so what has not started is withdrawn.
    """

    ask: tuple[PendingCall, ...] = ()
    start: tuple[PendingCall, ...] = ()
    wait: tuple[PendingCall, ...] = ()
    given_up: str = ""


class EndTurn(NamedTuple):
    """The turn is over: done, stopped or limit; `reason` is for people."""

    status: str
    reason: str = ""


class Idle(NamedTuple):
    """Nothing to do until somebody says something."""


ThreadStep = CallModel | HandleCalls | EndTurn | Idle


def next_step(log: Sequence[ThreadEntry], limits: TurnLimits = DEFAULT_LIMITS) -> ThreadStep:
    """What a thread needs next."""
    story = read_turn_state(log)
    waiting = [call for call in story.calls.values() if not call.ended]
    if waiting:
        return _handle_calls(waiting, story)
    if story.over:
        return Idle()
    if story.stopped:
        return EndTurn("stopped", "Stopped.")
    if story.replied and not story.calls and not story.unseen:
        return EndTurn("done")
    reached = _limit_message(story, limits)
    return EndTurn("limit", reached) if reached else CallModel(story.attempts + 1, story.not_before)


def _handle_calls(waiting: Sequence[PendingCall], story: TurnState) -> HandleCalls:
    fresh = tuple(call for call in waiting if not call.approval and not call.child)
    start = tuple(call for call in waiting if call.decided == "approved" and not call.child)
    wait = tuple(call for call in waiting if call not in fresh and call not in start)
    given_up = "stopped" if story.stopped else ("said" if story.unseen else "")
    return HandleCalls(fresh, start, wait, given_up)


def _limit_message(story: TurnState, limits: TurnLimits) -> str:
    more = "Send a message to go on."
    if story.turns >= limits.turns:
        return f"The limit of {limits.turns} model turns for one message is reached. {more}"
    if story.tokens >= limits.tokens:
        return f"The limit of {limits.tokens:,} tokens for one message is reached. {more}"
    if story.took >= limits.took:
        return f"The limit of {limits.took // 1000:,} seconds of work for one message is reached. {more}"
    return ""
