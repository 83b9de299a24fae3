"""Agent runs and their pauses: a run is open while its program lives, and is resumed by the next one if that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

from interlock.core.chat.thread import is_thread_id
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.ledger.event import Change, Event, Moment

API_VERSION = 1  # the version of the API that a program has to speak; increased when old programs would go wrong
MAX_LEASE = 3_600_000  # milliseconds that a program may claim a call or a run for at once
TRANSITIONS: Mapping[str, frozenset[str]] = {
    "": frozenset({"open"}),
    "open": frozenset({"open", "closed"}),
    "closed": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    _: KW_ONLY
    workspace: str
    agent: str
    status: str
    runner: str
    lease_until: int
    created_at: int


def open_run(run_id: str, workspace: str, agent: str, runner: str, lease: int, moment: Moment) -> Change[Run]:
    run = Run(
        run_id,
        workspace=workspace,
        agent=agent,
        status="open",
        runner=runner,
        lease_until=moment.now + lease,
        created_at=moment.now,
    )
    return Change(run, (Event("run_opened", runner, {"run": run_id}, "", {"agent": agent}),))


def resume_run(run: Run, runner: str, lease: int, moment: Moment, *, runner_is_dead: bool) -> Change[Run]:
    """Resume a run whose program is gone: two programs never share one."""
    if run.status != "open" or not (runner_is_dead or moment.now >= run.lease_until or run.runner == runner):
        raise Conflict("This run is closed or its program is alive.", run_id=run.id)
    resumed = replace(run, runner=runner, lease_until=moment.now + lease)
    return Change(resumed, (Event("run_resumed", runner, {"run": run.id}),))


def renew_run(run: Run, runner: str, lease: int, moment: Moment) -> Change[Run]:
    if run.status != "open" or run.runner != runner:
        raise Conflict("This run belongs to another program now.", run_id=run.id)
    return Change(replace(run, lease_until=moment.now + lease))


def close_run(run: Run, runner: str) -> Change[Run]:
    if run.status == "closed" or run.runner != runner:
        return Change(run)
    return Change(replace(run, status="closed", lease_until=0), (Event("run_closed", runner, {"run": run.id}),))


def release_run(run: Run, runner: str) -> Change[Run]:
    """Release a run whose program stops unfinished: the next program can resume it at once."""
    if run.status == "closed" or run.runner != runner:
        return Change(run)
    return Change(replace(run, lease_until=0))


MAX_STATE = 4 * 1024 * 1024
MAX_BODY = MAX_STATE // 3 * 4 + 64 * 1024  # of a request that holds a state in base64
MAX_RUN_ID = 2_000  # characters of a framework's run id
FIRST_DELAY, MAX_DELAY = 1_000, 300_000  # milliseconds before a retry: doubled each time up to the maximum


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A paused run; `state` is the framework's own and opaque, and left out of lists. `fence` numbers the pauses.

    `attempts` counts the attempts to resume it. In lists, `waiting` is the number of its pending approvals, and
    `runner` the program that is resuming it. `short_id` is the run id in its approvals.
    """

    run_id: str
    agent: str
    state: bytes
    paused_at: int
    fence: int
    attempts: int = 0
    waiting: int = 0
    runner: str = ""
    short_id: str = ""


def check_pause(run_id: object, state: object) -> None:
    """Raise InvalidRequest for a run id or state that cannot be stored."""
    if not isinstance(run_id, str) or not 0 < len(run_id) <= MAX_RUN_ID or not _is_storable(run_id):
        raise InvalidRequest(f"run_id is a text of 1 to {MAX_RUN_ID:,} characters: the id of the framework's run.")
    if is_thread_id(run_id):
        raise Forbidden("This run belongs to the chat. Choose another name for yours.")
    if not isinstance(state, bytes | bytearray):
        raise InvalidRequest(f"state is bytes, not {type(state).__name__}. Encode it, for instance as JSON.")
    if len(state) > MAX_STATE:
        raise InvalidRequest(
            f"The state has {len(state):,} bytes; {MAX_STATE:,} can be kept. Keep large things elsewhere, and their "
            "place in the state."
        )


def next_fence(old: int, now: int) -> int:
    """A fence that was never used before, even if the run ended meanwhile and its row is gone."""
    return max(old + 1, now)


def retry_delay(attempts: int) -> int:
    """Milliseconds before a failed resume is retried."""
    return int(min(FIRST_DELAY * 2 ** min(max(attempts - 1, 0), 20), MAX_DELAY))


def _is_storable(text: str) -> bool:
    """Whether the text has no NUL and no lone surrogates, which cannot be stored."""
    return not any(ch == "\x00" or "\ud800" <= ch <= "\udfff" for ch in text)
