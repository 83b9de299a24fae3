"""Tests of an agent: its policy and its calls are real, people and time are scripted, and no test waits."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mycompany import bookkeeper

from interlock import CallRefused
from interlock.testing import TestInterlock, UnexpectedApproval


@pytest.fixture(autouse=True)
def lock(interlock_lock: TestInterlock) -> TestInterlock:
    """For each test, the agent's own lock uses a database in memory, a clock and reviewers of the test."""
    bookkeeper.ledger.clear()
    interlock_lock.stand_in_for(bookkeeper.lock)
    return interlock_lock


def test_an_approved_payment_is_made(lock: TestInterlock) -> None:
    lock.auto_approve("pay")
    assert bookkeeper.settle("ann", 50) == "paid 50 to ann"
    assert bookkeeper.balance() == -50
    assert [(call.tool, call.verdict) for call in lock.calls] == [("pay", "ask"), ("balance", "allow")]


def test_a_rejected_payment_is_not_made_and_its_reason_is_told(lock: TestInterlock) -> None:
    lock.auto_reject("pay", {"to": "eve"}, reason="Not a supplier.")
    assert bookkeeper.settle("eve", 50) == "not paid: Not a supplier."
    assert bookkeeper.ledger == []


def test_a_reviewer_can_change_the_amount(lock: TestInterlock) -> None:
    lock.auto_edit("pay", {"amount": 5})
    assert bookkeeper.settle("ann", 500) == "paid 5 to ann"


def test_a_large_payment_takes_two_people_from_finance(lock: TestInterlock) -> None:
    lock.add_person("carol", teams=["finance"])
    lock.add_person("dave", teams=["finance"])
    lock.auto_approve("pay", by="carol")
    lock.auto_approve("pay", by="dave")
    assert bookkeeper.settle("ann", 5000) == "paid 5000 to ann"
    assert [decision.by for decision in lock.decisions] == ["carol", "dave"]


def test_a_payment_that_nobody_decides_times_out(lock: TestInterlock) -> None:
    lock.let_expire("pay")
    assert "timed out" in bookkeeper.settle("ann", 50)
    assert [record.status for record in lock.approvals_sync()] == ["expired"]


def test_a_denied_call_stays_denied_whatever_people_would_say(lock: TestInterlock) -> None:
    lock.auto_approve()
    with pytest.raises(CallRefused, match="closed at the bank"):
        bookkeeper.close_account("savings")


def test_a_question_is_answered(lock: TestInterlock) -> None:
    lock.answer("2027", question="Which folder*")
    assert asyncio.run(bookkeeper.file_invoice()) == "filed under 2027"


def test_a_late_approval_does_not_count(lock: TestInterlock) -> None:
    lock.leave_pending("pay")
    with ThreadPoolExecutor() as threads:
        payment = threads.submit(bookkeeper.settle, "ann", 50)
        while not lock.calls:
            time.sleep(0.01)
        lock.advance("25h")
        assert "timed out" in payment.result()


def test_a_call_that_the_test_does_not_expect_fails_at_once() -> None:
    unprepared = TestInterlock()
    unprepared.stand_in_for(bookkeeper.lock)
    with pytest.raises(UnexpectedApproval, match="the test has no answer for it"), unprepared:
        bookkeeper.settle("ann", 50)
