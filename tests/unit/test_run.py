"""Runs that can pause: the product of their states and verbs, one holder, limits on stored state, and retries."""

import json
from base64 import b64encode
from collections.abc import Callable

import pytest

from interlock.core.call import MAX_NAME
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.ledger.event import Change
from interlock.core.run import (
    MAX_BODY,
    MAX_LEASE,
    MAX_RUN_ID,
    MAX_STATE,
    TRANSITIONS,
    Pause,
    Run,
    check_pause,
    close_run,
    next_fence,
    open_run,
    release_run,
    renew_run,
    resume_run,
    retry_delay,
)
from interlock.runtime.durations import parse_duration
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


def test_a_lease_is_for_an_hour_at_most() -> None:
    assert parse_duration("1h") == MAX_LEASE  # as the command line and the API say


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


@pytest.mark.parametrize("run_id", [None, 7, "", "x" * (MAX_RUN_ID + 1), "a\x00b", "half \ud800"])
def test_a_run_has_an_id_that_can_be_stored(run_id: object) -> None:
    with pytest.raises(InvalidRequest, match="run_id is a text of 1 to 2,000 characters"):
        check_pause(run_id, b"")


def test_a_run_of_the_chat_is_not_for_programs() -> None:
    with pytest.raises(Forbidden, match="belongs to the chat"):
        check_pause("thread-00000000-0000-0000-0000-000000000000", b"")


@pytest.mark.parametrize(
    ("state", "said"), [("text", "state is bytes, not str"), (bytes(MAX_STATE + 1), "4,194,304 can be kept")]
)
def test_a_state_is_bytes_and_not_too_many(state: object, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        check_pause("run", state)


@pytest.mark.parametrize("run_id", ["r", "x" * MAX_RUN_ID, "Gespräch 7/a\n", "🧵"])
def test_whatever_a_framework_calls_its_run_will_do(run_id: str) -> None:
    check_pause(run_id, bytes(MAX_STATE))
    check_pause(run_id, bytearray(b""))
    assert len(run_id) <= MAX_RUN_ID


def test_the_largest_state_can_be_sent_with_the_longest_names() -> None:
    text = "🧵" * MAX_RUN_ID  # of which JSON makes twelve characters each
    body = {"agent": "🧵" * MAX_NAME, "run_id": text, "called": text, "state": b64encode(bytes(MAX_STATE)).decode()}
    assert len(json.dumps(body)) <= MAX_BODY
    assert len(b64encode(bytes(MAX_STATE + 48 * 1024))) > MAX_BODY  # and little more is read


def test_a_pause_begins_with_no_attempt_and_nothing_to_wait_for() -> None:
    pause = Pause(run_id="r", agent="helper", state=b"", paused_at=NOW, fence=1)
    assert (pause.attempts, pause.waiting, pause.runner, pause.short_id) == (0, 0, "", "")


def test_a_run_that_fails_is_left_alone_for_longer_each_time_and_not_for_ever() -> None:
    assert [retry_delay(attempts) for attempts in (0, 1, 2, 3, 9, 10, 10_000)] == [
        *(1_000, 1_000, 2_000, 4_000),
        *(256_000, 300_000, 300_000),
    ]


def test_a_fence_is_new_by_its_number_or_by_the_time() -> None:
    assert next_fence(7, 0) == 8
    assert next_fence(0, 1_800_000_000_000) == 1_800_000_000_000
