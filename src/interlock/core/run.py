"""One agent execution that can pause: open while its program lives, resumed by the next one if that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

from interlock.core.chat.thread import is_thread_id
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.ledger.event import Change, Event, Moment

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
    """Only a run whose program is gone: two programs never share one."""
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
    """The program stops without having finished: whoever starts it next goes on at once."""
    if run.status == "closed" or run.runner != runner:
        return Change(run)
    return Change(replace(run, lease_until=0))


MAX_STATE = 4 * 1024 * 1024
MAX_BODY = MAX_STATE // 3 * 4 + 64 * 1024  # of a message that has a state in it, in base64
MAX_RUN_ID = 2_000  # characters of what a framework may call a run by
FIRST_DELAY, MAX_DELAY = 1_000, 300_000  # milliseconds before it is tried again: doubled each time, and never longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """`state` is the framework's own and opaque; lists leave it out. `fence` says which pause of the run this is.

    `attempts` is how often somebody began to go on with it. In lists, `waiting` is how many approvals of the run wait
    for people, and `runner` who goes on with it now. `short_id` is the run as its approvals name it.
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
    """Raises InvalidRequest for what cannot be kept."""
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
    """Never one that was used before, also when the run was over meanwhile and nothing is known of it any more."""
    return max(old + 1, now)


def retry_delay(attempts: int) -> int:
    """For how many milliseconds a run is left alone that could not go on."""
    return int(min(FIRST_DELAY * 2 ** min(max(attempts - 1, 0), 20), MAX_DELAY))


def _is_storable(text: str) -> bool:
    """Half of a pair of surrogates cannot be stored, nor can NUL."""
    return not any(ch == "\x00" or "\ud800" <= ch <= "\udfff" for ch in text)
