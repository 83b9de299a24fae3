"""Random operations against one small model: core, store and services have to answer as it does.

The same programs every time; `python -m tests.faults.models` plays others, and more of them.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from interlock.core.approval import approval as approvals
from interlock.core.approval import execute
from tests.databases import Database
from tests.models.state_machine import ApprovalMachine
from tests.models.systems_under_test import CoreSystem, ServicesSystem, StoreSystem, SystemUnderTest
from tests.support import Clock

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
BOUNDED = settings(
    max_examples=30,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=CHECKS,
)
LONG = settings(BOUNDED, max_examples=320)  # enough that every answer is met
SHORT = settings(BOUNDED, max_examples=10)  # each move of the clock is a statement of its own there
UNSHRUNK = settings(BOUNDED, max_examples=200, phases=[Phase.generate])
ALWAYS = {
    "propose ok", "propose call_mismatch", "approve ok", "approve already_decided", "approve forbidden",
    "approve digest_mismatch", "approve expired", "approve not_found", "edit ok", "respond ok", "reject ok", "undo ok",
    "undo conflict", "undo forbidden", "undo expired", "cancel ok", "cancel already_started", "delegate ok",
    "delegate forbidden", "start ok", "start again", "start expired", "start already_started", "start not_approved",
    "renew ok", "renew lease_lost", "finish ok", "finish lease_lost", "finish conflict", "abandon ok", "resolve ok",
    "resolve conflict", "resolve forbidden", "succeeded", "failed", "unknown", "expired", "rejected", "responded",
    "cancelled", "approved", "running", "pending",
}  # fmt: skip
MakeSystem = Callable[[], SystemUnderTest]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def make_services_system(
    database: Database, clock: Clock, runner: asyncio.Runner, kind: type[ServicesSystem] = ServicesSystem
) -> MakeSystem:
    """A workspace of its own for every program; the clock only goes forward, so that none stands behind its ledger."""
    clock.drive(database)
    numbers = itertools.count()
    return lambda: kind(database.url, clock, f"w{next(numbers)}", runner)


def examples(database: Database) -> settings:
    return BOUNDED if database.kind == "sqlite" else SHORT


def run_machine(make: MakeSystem, clock: Clock, how: settings) -> Counter[str]:
    seen: Counter[str] = Counter()
    run_state_machine_as_test(lambda: ApprovalMachine(make, clock, seen), settings=how)
    return seen


@pytest.mark.timeout(600)
def test_the_core_answers_as_the_model(clock: Clock) -> None:  # R46, R47
    seen = run_machine(lambda: CoreSystem(clock), clock, LONG)
    assert ALWAYS - set(seen) == set()


@pytest.mark.timeout(600)
def test_the_store_answers_as_the_model(database: Database, clock: Clock, runner: asyncio.Runner) -> None:
    seen = run_machine(make_services_system(database, clock, runner, StoreSystem), clock, examples(database))
    assert {"start ok", "finish ok", "edit ok", "undo ok"} <= set(seen)


@pytest.mark.timeout(600)
def test_the_services_answer_as_the_model(database: Database, clock: Clock, runner: asyncio.Runner) -> None:
    seen = run_machine(make_services_system(database, clock, runner), clock, examples(database))
    assert {"start ok", "finish ok", "edit ok", "undo ok"} <= set(seen)


def start_twice(patch: pytest.MonkeyPatch) -> None:
    startable = lambda approval, now, **_: approval.status in ("approved", "running")  # noqa: E731
    patch.setattr(execute, "is_startable", startable)


def keep_votes(patch: pytest.MonkeyPatch) -> None:
    real = approvals.fast_replace
    kept = lambda old, **new: real(old, **{k: v for k, v in new.items() if (k, v) != ("votes", ())})  # noqa: E731
    patch.setattr(approvals, "fast_replace", kept)


def undo_late(patch: pytest.MonkeyPatch) -> None:
    real = approvals.undo
    early = lambda a, who, moment: real(a, who, type(moment)(a.created_at))  # noqa: E731
    patch.setattr(approvals, "undo", early)


def take_late_results(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(execute, "_holds_lease", lambda approval, fence, moment: approval.status == "running")


@pytest.mark.parametrize("break_it", [start_twice, keep_votes, undo_late, take_late_results])
def test_a_broken_core_says_something_else(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The red control."""
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        run_machine(lambda: CoreSystem(clock), clock, UNSHRUNK)


@pytest.mark.parametrize("break_it", [keep_votes, take_late_results])
def test_broken_services_answer_differently(
    database: Database,
    clock: Clock,
    runner: asyncio.Runner,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[pytest.MonkeyPatch], None],
) -> None:
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        run_machine(make_services_system(database, clock, runner), clock, UNSHRUNK)
