"""The linearizability checker: histories that have an order, and histories that have none."""

from itertools import permutations

import pytest

from tests.faults.linearizability import NEVER, ApprovalContext, RecordedOperation, find_order
from tests.models.model import ModelAnswer, Operation, Terms

pytestmark = pytest.mark.smoke  # no process is started

PEOPLE = frozenset({"ann", "bob"})
ONE = ApprovalContext(Terms(deciders=PEOPLE))
TWO = ApprovalContext(Terms(quorum=2, deciders=PEOPLE))
AGAIN = ApprovalContext(Terms(idempotent=True, deciders=PEOPLE))
SOON = 10_000
LATE_START = 35  # the start deadline of a call that is started at 30 and abandoned at 50, within its lease
PENDING = ModelAnswer("ok", "pending", 1, "a", "", 0, SOON)


def operation(op: Operation, answer: ModelAnswer | None, called: int, answered: int = 0) -> RecordedOperation:
    """In one unit: a nanosecond of the history is a millisecond of the wall."""
    end = answered or called + 1
    return RecordedOperation(op, called, called, end, end, answer) if answer else RecordedOperation(op, called, called)


def approve_operation(who: str, seen: str = "a") -> Operation:
    return Operation("approve", who, seen)


def approved_answer(by: str, version: int = 2, args: str = "a", until: int | None = SOON) -> ModelAnswer:
    return ModelAnswer("ok", "approved", version, args, by, 0, SOON, until)


PROPOSED = operation(Operation("propose", args="a"), ModelAnswer("ok"), 1)
LOOKED = operation(Operation("look"), PENDING, 3)
STARTED = ModelAnswer("ok", args="a", fence=1, until=200)
RUN = [
    PROPOSED,
    LOOKED,
    operation(approve_operation("ann"), approved_answer("ann"), 10, 20),
    operation(Operation("start", "r1"), STARTED, 30, 40),
    operation(Operation("finish", fence=1), ModelAnswer("ok", "succeeded", 4, "a", "ann", 1), 50, 60),
]

ABANDONED = [
    *RUN[:2],
    operation(approve_operation("ann"), approved_answer("ann", until=LATE_START), 10, 20),
    operation(Operation("start", "r1"), STARTED, 30, 34),
    operation(Operation("abandon", fence=1), ModelAnswer("ok", "unknown"), 50),
    operation(Operation("resolve", "bob", ok=False), ModelAnswer("ok"), 60),
    operation(Operation("look"), ModelAnswer("ok", "failed", 5, "a", "ann", 1), 70),
]

EXPLAINED = {
    "one after the other": (ONE, RUN),
    "two decide at once and the later answer won": (
        ONE,
        [
            PROPOSED,
            operation(approve_operation("ann"), ModelAnswer("already_decided", "rejected", by="bob"), 10, 20),
            operation(
                Operation("reject", "bob", "a"), ModelAnswer("ok", "rejected", 2, "a", "bob", 0, SOON, 100), 11, 30
            ),
        ],
    ),
    "a lost decision that was made": (ONE, [PROPOSED, operation(approve_operation("ann"), None, 10), *RUN[3:]]),
    "a lost decision that was never made": (
        ONE,
        [PROPOSED, operation(Operation("reject", "bob", "a"), None, 5), *RUN[1:]],
    ),
    "a lost decision that was made much later": (
        ONE,
        [
            PROPOSED,
            operation(Operation("reject", "bob", "a"), None, 5),
            operation(Operation("look"), PENDING, 50),
            operation(Operation("look"), ModelAnswer("ok", "rejected", 2, "a", "bob"), 60),
        ],
    ),
    "two of two vote at once": (
        TWO,
        [
            PROPOSED,
            operation(approve_operation("ann"), approved_answer("ann", 3), 10, 30),
            operation(approve_operation("bob"), ModelAnswer("ok", "pending", 2, "a", "", 0, SOON), 11, 29),
        ],
    ),
    "an edit voids the vote before it": (
        TWO,
        [
            PROPOSED,
            operation(approve_operation("ann"), ModelAnswer("ok", "pending", 2, "a", "", 0, SOON), 10),
            operation(Operation("edit", "bob", "a", "b"), ModelAnswer("ok", "pending", 3, "b", "", 0, SOON), 20),
            operation(approve_operation("ann", "b"), approved_answer("ann", 4, "b"), 30),
        ],
    ),
    "an idempotent call starts again once its lease has lapsed": (
        AGAIN,
        [*RUN[:4], operation(Operation("start", "r2"), ModelAnswer("ok", args="a", fence=2, until=900), 250)],
    ),
    "an idempotent call that is abandoned in time may start again": (
        AGAIN,
        [
            *RUN[:4],
            operation(Operation("abandon", fence=1), ModelAnswer("ok", "running"), 50),
            operation(Operation("start", "r2"), ModelAnswer("ok", args="a", fence=2, until=900), 60),
        ],
    ),
    "an idempotent call that is abandoned past its start deadline is unknown at once": (AGAIN, ABANDONED),
    "the same where nobody was told the start deadline": (
        AGAIN,
        [*ABANDONED[:2], operation(approve_operation("ann"), ModelAnswer("ok", version=2), 10, 20), *ABANDONED[3:]],
    ),
    "a decision that meets its deadline in between": (
        ONE,
        [
            PROPOSED,
            operation(Operation("look"), PENDING, 3),
            operation(approve_operation("ann"), ModelAnswer("expired"), SOON - 5, SOON + 5),
            operation(Operation("look"), ModelAnswer("ok", "expired", 2), SOON + 6),
        ],
    ),
    "time passes between a proposal and what the agent hears of it": (
        ONE,
        [
            operation(Operation("propose", args="a"), ModelAnswer("ok"), 1, SOON + 1),
            operation(Operation("hear"), ModelAnswer("ok", "expired"), 1, SOON + 1),
            operation(Operation("look"), ModelAnswer("ok", "expired", 2, expires_at=SOON), SOON + 2),
        ],
    ),
    "time took what a killed runner had": (
        ONE._replace(killed={"r1": 45}),
        [*RUN[:4], operation(Operation("look"), ModelAnswer("ok", "unknown", 4, "a", "ann", 1), 50)],
    ),
}

UNEXPLAINED = {
    "an idempotent call that is unknown although it may start again": (AGAIN, [*RUN[:4], *ABANDONED[4:]]),
    "an idempotent call that is started past its start deadline": (
        AGAIN,
        [*ABANDONED[:4], operation(Operation("start", "r2"), ModelAnswer("ok", args="a", fence=2, until=900), 250)],
    ),
    "two winners": (
        ONE,
        [*RUN[:3], operation(Operation("reject", "bob", "a"), ModelAnswer("ok", "rejected", 2, "a", "bob"), 11, 21)],
    ),
    "started twice": (
        ONE,
        [*RUN[:4], operation(Operation("start", "r2"), ModelAnswer("ok", args="a", fence=2, until=900), 31, 41)],
    ),
    "started without a decision": (ONE, [PROPOSED, *RUN[3:4]]),
    "started with other arguments": (
        ONE,
        [*RUN[:3], operation(Operation("start", "r1"), STARTED._replace(args="b"), 30, 40)],
    ),
    "an old answer after a new one": (ONE, [*RUN[:3], operation(Operation("look"), PENDING, 25)]),
    "a decision that was told and is gone": (
        ONE,
        [
            *RUN[:3],
            operation(Operation("reject", "bob", "a"), ModelAnswer("ok", "rejected", 2, "a", "bob", 0, SOON, 100), 30),
        ],
    ),
    "an edit that keeps the vote before it": (
        TWO,
        [
            PROPOSED,
            operation(approve_operation("ann"), ModelAnswer("ok", "pending", 2, "a", "", 0, SOON), 10),
            operation(Operation("edit", "bob", "a", "b"), approved_answer("bob", 3, "b"), 20),
        ],
    ),
    "a decision after the deadline that counts": (
        ONE,
        [
            PROPOSED,
            LOOKED,
            operation(approve_operation("ann"), approved_answer("ann", until=SOON + 99), SOON, SOON + 9),
        ],
    ),
    "expired before the deadline": (
        ONE,
        [PROPOSED, LOOKED, operation(Operation("look"), ModelAnswer("ok", "expired", 2), 50)],
    ),
    "the loser is told another winner": (
        ONE,
        [
            *RUN[:3],
            operation(Operation("reject", "bob", "a"), ModelAnswer("already_decided", "approved", by="bob"), 30),
        ],
    ),
    "a version that nobody made": (ONE, [*RUN[:2], operation(Operation("look"), PENDING._replace(version=2), 9)]),
    "a lost operation does not happen before its call": (
        ONE,
        [
            PROPOSED,
            operation(Operation("look"), ModelAnswer("ok", "approved", 2), 5),
            operation(approve_operation("ann"), None, 10),
        ],
    ),
    "a lease lost while the runner lives": (
        ONE,
        [*RUN[:4], operation(Operation("look"), ModelAnswer("ok", "unknown", 4, "a", "ann", 1), 50)],
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_linearizable_history_is_accepted(name: str) -> None:
    scenario, history = EXPLAINED[name]
    assert find_order(history, scenario) == ""


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_a_history_that_is_not_linearizable_is_rejected_and_shown(name: str) -> None:
    scenario, history = UNEXPLAINED[name]
    assert "no order explains" in find_order(history, scenario)


def test_operations_that_overlap_are_tried_in_every_order() -> None:
    """Whichever of four racing reads saw the change, and in any listed order, there is an order."""
    looks = [
        operation(Operation("look"), approved_answer("ann") if n % 2 else PENDING._replace(expires_at=None), 10 + n, 40)
        for n in range(4)
    ]
    for order in permutations(looks):
        assert find_order([RUN[2]._replace(answered=40), *order, PROPOSED], ONE) == ""


@pytest.mark.parametrize("one", range(2, len(RUN)))
def test_an_answer_that_is_swapped_with_another_is_noticed(one: int) -> None:
    history = list(RUN)
    history[one], history[one - 1] = (
        history[one]._replace(answer=history[one - 1].answer),
        history[one - 1]._replace(answer=history[one].answer),
    )
    assert "no order explains" in find_order(history, ONE)


def test_a_history_over_the_search_limit_is_not_accepted() -> None:
    lost = [RecordedOperation(Operation("renew", fence=1), 45, 45) for _ in range(24)]
    wide = [*RUN[:4], *lost, operation(Operation("look"), ModelAnswer("ok", "running", 99), 50)]
    assert "too many orders" in find_order(wide, ONE, most=500)


def test_what_has_no_answer_is_open_for_ever() -> None:
    assert RecordedOperation(Operation("look"), 1, 1).answered == NEVER
