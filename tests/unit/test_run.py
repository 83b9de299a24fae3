"""Runs that can pause: the product of their states and verbs, and one holder at a time."""

from collections.abc import Callable

import pytest

from interlock.core.errors import Conflict
from interlock.core.ledger.event import Change
from interlock.core.run import TRANSITIONS, Run, close_run, open_run, release_run, renew_run, resume_run
from tests.unit.builders import NOW, at

OPEN_RUN = open_run("r", "default", "helper", "mine", 60, at()).state
CLOSED_RUN = close_run(OPEN_RUN, "mine").state
RUNS = {"open": OPEN_RUN, "closed": CLOSED_RUN}
Verb = Callable[[Run, str], Change[Run]]
VERBS: dict[str, Verb] = {
    "resume": lambda run, runner: resume_run(run, runner, 60, at(NOW + 5), runner_is_dead=False),
    "resume late": lambda run, runner: resume_run(run, runner, 60, at(NOW + 60), runner_is_dead=False),
    "resume dead": lambda run, runner: resume_run(run, runner, 60, at(NOW + 5), runner_is_dead=True),
    "renew": lambda run, runner: renew_run(run, runner, 60, at(NOW + 5)),
    "close": close_run,
    "leave": release_run,
}
# status, runner, verb → status, or the error; "same" when nothing changes
TABLE = {
    ("open", "mine"): ("open", "open", "open", "open", "closed", "open"),
    ("open", "other"): (Conflict, "open", "open", Conflict, "same", "same"),
    ("closed", "mine"): (Conflict, Conflict, Conflict, Conflict, "same", "same"),
    ("closed", "other"): (Conflict, Conflict, Conflict, Conflict, "same", "same"),
}


# R24, R33
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("status", "runner"), TABLE)
def test_every_status_and_verb_gives_what_the_table_says(status: str, runner: str, verb: str) -> None:
    expected = TABLE[status, runner][list(VERBS).index(verb)]
    run = RUNS[status]
    if expected is Conflict:
        with pytest.raises(Conflict):
            VERBS[verb](run, runner)
        return
    change = VERBS[verb](run, runner)
    if expected == "same":
        assert change.state is run
        assert change.events == ()
    else:
        assert change.state.status == expected
        assert change.state.status in TRANSITIONS[run.status]


def test_a_run_opens_with_a_lease_and_an_event() -> None:
    change = open_run("r", "w", "helper", "mine", 60, at())
    assert change.state == Run(
        "r", workspace="w", agent="helper", status="open", runner="mine", lease_until=NOW + 60, created_at=NOW
    )
    assert change.state.status in TRANSITIONS[""]
    (event,) = change.events
    assert (event.kind, event.actor, event.data, event.content) == (
        "run_opened",
        "mine",
        {"run": "r"},
        {"agent": "helper"},
    )


# R32
def test_a_run_whose_program_is_gone_belongs_to_the_next_one() -> None:
    change = resume_run(OPEN_RUN, "other", 60, at(NOW + 60), runner_is_dead=False)
    assert (change.state.runner, change.state.lease_until, change.state.created_at) == ("other", NOW + 120, NOW)
    assert (change.events[0].kind, change.events[0].actor, change.events[0].data) == (
        "run_resumed",
        "other",
        {"run": "r"},
    )
    with pytest.raises(Conflict):
        renew_run(change.state, "mine", 60, at(NOW + 61))
    with pytest.raises(Conflict):
        resume_run(OPEN_RUN, "other", 60, at(NOW + 59), runner_is_dead=False)


def test_renewing_moves_the_lease_and_leaves_no_event() -> None:
    change = renew_run(OPEN_RUN, "mine", 60, at(NOW + 5))
    assert (change.state.lease_until, change.events) == (NOW + 65, ())


def test_a_run_that_is_left_can_be_resumed_at_once() -> None:
    left = release_run(OPEN_RUN, "mine").state
    assert (left.status, left.lease_until) == ("open", 0)
    assert resume_run(left, "other", 60, at(NOW + 1), runner_is_dead=False).state.runner == "other"


def test_a_refusal_says_why_and_about_which_run() -> None:
    with pytest.raises(Conflict) as error:
        resume_run(CLOSED_RUN, "mine", 60, at(), runner_is_dead=True)
    assert (error.value.message, error.value.ids) == ("This run is closed or its program is alive.", {"run_id": "r"})
    with pytest.raises(Conflict) as error:
        renew_run(OPEN_RUN, "other", 60, at())
    assert (error.value.message, error.value.ids) == ("This run belongs to another program now.", {"run_id": "r"})


def test_a_closed_run_stays_closed() -> None:
    assert (CLOSED_RUN.status, CLOSED_RUN.lease_until) == ("closed", 0)
    (event,) = close_run(OPEN_RUN, "mine").events
    assert (event.kind, event.actor, event.data) == ("run_closed", "mine", {"run": "r"})
    assert TRANSITIONS["closed"] == frozenset()


def test_a_run_belongs_to_no_approval() -> None:
    (event,) = open_run("r", "default", "helper", "one", 1, at()).events
    assert (event.approval_id, event.content) == ("", {"agent": "helper"})
