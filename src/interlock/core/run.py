"""One agent execution that can pause: open while its program lives, resumed by the next one if that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from interlock.core.errors import Conflict
from interlock.core.ledger.event import Change, Event, Moment

TRANSITIONS: Mapping[str, frozenset[str]] = {
    "": frozenset({"open"}),
    "open": frozenset({"open", "closed"}),
    "closed": frozenset(),
}


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    workspace: str
    agent: str
    status: str
    runner: str
    lease_until: int
    created_at: int


def open_run(run_id: str, workspace: str, agent: str, runner: str, lease: int, moment: Moment) -> Change[Run]:
    run = Run(run_id, workspace, agent, "open", runner, moment.now + lease, moment.now)
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
