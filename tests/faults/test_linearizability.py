"""The checker itself: histories that have an explanation, and histories that have none."""

from itertools import permutations

import pytest

from tests.faults.linearizability import NEVER, Life, Recorded, explain
from tests.models.model import Answer, Op, Terms

pytestmark = pytest.mark.smoke  # no process is started

PEOPLE = frozenset({"ann", "bob"})
ONE = Life(Terms(deciders=PEOPLE))
TWO = Life(Terms(quorum=2, deciders=PEOPLE))
AGAIN = Life(Terms(idempotent=True, deciders=PEOPLE))
SOON = 10_000
LATE_START = 35  # the start deadline of a call that is started at 30 and abandoned at 50, within its lease
PENDING = Answer("ok", "pending", 1, "a", "", 0, SOON)


def did(op: Op, answer: Answer | None, called: int, answered: int = 0) -> Recorded:
    """In one unit: a nanosecond of the history is a millisecond of the wall."""
    end = answered or called + 1
    return Recorded(op, called, called, end, end, answer) if answer else Recorded(op, called, called)


def approve(who: str, seen: str = "a") -> Op:
    return Op("approve", who, seen)


def approved(by: str, version: int = 2, args: str = "a", until: int | None = SOON) -> Answer:
    return Answer("ok", "approved", version, args, by, 0, SOON, until)


PROPOSED = did(Op("propose", args="a"), Answer("ok"), 1)
LOOKED = did(Op("look"), PENDING, 3)
STARTED = Answer("ok", args="a", fence=1, until=200)
RUN = [
    PROPOSED,
    LOOKED,
    did(approve("ann"), approved("ann"), 10, 20),
    did(Op("start", "r1"), STARTED, 30, 40),
    did(Op("finish", fence=1), Answer("ok", "succeeded", 4, "a", "ann", 1), 50, 60),
]

ABANDONED = [
    *RUN[:2],
    did(approve("ann"), approved("ann", until=LATE_START), 10, 20),
    did(Op("start", "r1"), STARTED, 30, 34),
    did(Op("abandon", fence=1), Answer("ok", "unknown"), 50),
    did(Op("resolve", "bob", ok=False), Answer("ok"), 60),
    did(Op("look"), Answer("ok", "failed", 5, "a", "ann", 1), 70),
]

RIGHT = {
    "one after the other": (ONE, RUN),
    "two decide at once and the later answer won": (
        ONE,
        [
            PROPOSED,
            did(approve("ann"), Answer("already_decided", "rejected", by="bob"), 10, 20),
            did(Op("reject", "bob", "a"), Answer("ok", "rejected", 2, "a", "bob", 0, SOON, 100), 11, 30),
        ],
    ),
    "a lost decision that was made": (ONE, [PROPOSED, did(approve("ann"), None, 10), *RUN[3:]]),
    "a lost decision that was never made": (
        ONE,
        [PROPOSED, did(Op("reject", "bob", "a"), None, 5), *RUN[1:]],
    ),
    "a lost decision that was made much later": (
        ONE,
        [
            PROPOSED,
            did(Op("reject", "bob", "a"), None, 5),
            did(Op("look"), PENDING, 50),
            did(Op("look"), Answer("ok", "rejected", 2, "a", "bob"), 60),
        ],
    ),
    "two of two vote at once": (
        TWO,
        [
            PROPOSED,
            did(approve("ann"), approved("ann", 3), 10, 30),
            did(approve("bob"), Answer("ok", "pending", 2, "a", "", 0, SOON), 11, 29),
        ],
    ),
    "an edit voids the vote before it": (
        TWO,
        [
            PROPOSED,
            did(approve("ann"), Answer("ok", "pending", 2, "a", "", 0, SOON), 10),
            did(Op("edit", "bob", "a", "b"), Answer("ok", "pending", 3, "b", "", 0, SOON), 20),
            did(approve("ann", "b"), approved("ann", 4, "b"), 30),
        ],
    ),
    "an idempotent call starts again once its lease has lapsed": (
        AGAIN,
        [*RUN[:4], did(Op("start", "r2"), Answer("ok", args="a", fence=2, until=900), 250)],
    ),
    "an idempotent call that is abandoned in time may start again": (
        AGAIN,
        [
            *RUN[:4],
            did(Op("abandon", fence=1), Answer("ok", "running"), 50),
            did(Op("start", "r2"), Answer("ok", args="a", fence=2, until=900), 60),
        ],
    ),
    "an idempotent call that is abandoned past its start deadline is unknown at once": (AGAIN, ABANDONED),
    "the same where nobody was told the start deadline": (
        AGAIN,
        [*ABANDONED[:2], did(approve("ann"), Answer("ok", version=2), 10, 20), *ABANDONED[3:]],
    ),
    "a decision that meets its deadline in between": (
        ONE,
        [
            PROPOSED,
            did(Op("look"), PENDING, 3),
            did(approve("ann"), Answer("expired"), SOON - 5, SOON + 5),
            did(Op("look"), Answer("ok", "expired", 2), SOON + 6),
        ],
    ),
    "time passes between a proposal and what the agent hears of it": (
        ONE,
        [
            did(Op("propose", args="a"), Answer("ok"), 1, SOON + 1),
            did(Op("hear"), Answer("ok", "expired"), 1, SOON + 1),
            did(Op("look"), Answer("ok", "expired", 2, expires_at=SOON), SOON + 2),
        ],
    ),
    "time took what a killed runner had": (
        ONE._replace(killed={"r1": 45}),
        [*RUN[:4], did(Op("look"), Answer("ok", "unknown", 4, "a", "ann", 1), 50)],
    ),
}

WRONG = {
    "an idempotent call that is unknown although it may start again": (AGAIN, [*RUN[:4], *ABANDONED[4:]]),
    "an idempotent call that is started past its start deadline": (
        AGAIN,
        [*ABANDONED[:4], did(Op("start", "r2"), Answer("ok", args="a", fence=2, until=900), 250)],
    ),
    "two winners": (ONE, [*RUN[:3], did(Op("reject", "bob", "a"), Answer("ok", "rejected", 2, "a", "bob"), 11, 21)]),
    "started twice": (ONE, [*RUN[:4], did(Op("start", "r2"), Answer("ok", args="a", fence=2, until=900), 31, 41)]),
    "started without a decision": (ONE, [PROPOSED, *RUN[3:4]]),
    "started with other arguments": (ONE, [*RUN[:3], did(Op("start", "r1"), STARTED._replace(args="b"), 30, 40)]),
    "an old answer after a new one": (ONE, [*RUN[:3], did(Op("look"), PENDING, 25)]),
    "a decision that was told and is gone": (
        ONE,
        [*RUN[:3], did(Op("reject", "bob", "a"), Answer("ok", "rejected", 2, "a", "bob", 0, SOON, 100), 30)],
    ),
    "an edit that keeps the vote before it": (
        TWO,
        [
            PROPOSED,
            did(approve("ann"), Answer("ok", "pending", 2, "a", "", 0, SOON), 10),
            did(Op("edit", "bob", "a", "b"), approved("bob", 3, "b"), 20),
        ],
    ),
    "a decision after the deadline that counts": (
        ONE,
        [PROPOSED, LOOKED, did(approve("ann"), approved("ann", until=SOON + 99), SOON, SOON + 9)],
    ),
    "expired before the deadline": (ONE, [PROPOSED, LOOKED, did(Op("look"), Answer("ok", "expired", 2), 50)]),
    "the loser is told another winner": (
        ONE,
        [*RUN[:3], did(Op("reject", "bob", "a"), Answer("already_decided", "approved", by="bob"), 30)],
    ),
    "a version that nobody made": (ONE, [*RUN[:2], did(Op("look"), PENDING._replace(version=2), 9)]),
    "a lost operation does not happen before its call": (
        ONE,
        [PROPOSED, did(Op("look"), Answer("ok", "approved", 2), 5), did(approve("ann"), None, 10)],
    ),
    "a lease lost while the runner lives": (
        ONE,
        [*RUN[:4], did(Op("look"), Answer("ok", "unknown", 4, "a", "ann", 1), 50)],
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_with_an_explanation_is_right(name: str) -> None:
    life, history = RIGHT[name]
    assert explain(history, life) == ""


@pytest.mark.parametrize("name", WRONG)
def test_a_history_without_one_is_wrong_and_shown(name: str) -> None:
    life, history = WRONG[name]
    assert "no order explains" in explain(history, life)


def test_operations_that_overlap_are_tried_in_every_order() -> None:
    """Whichever of four racing looks saw the change, and in whatever order they are listed, there is an order."""
    looks = [
        did(Op("look"), approved("ann") if n % 2 else PENDING._replace(expires_at=None), 10 + n, 40) for n in range(4)
    ]
    for order in permutations(looks):
        assert explain([RUN[2]._replace(answered=40), *order, PROPOSED], ONE) == ""


@pytest.mark.parametrize("one", range(2, len(RUN)))
def test_an_answer_that_is_swapped_with_another_is_noticed(one: int) -> None:
    history = list(RUN)
    history[one], history[one - 1] = (
        history[one]._replace(answer=history[one - 1].answer),
        history[one - 1]._replace(answer=history[one].answer),
    )
    assert "no order explains" in explain(history, ONE)


def test_a_history_that_is_too_wide_is_not_called_right() -> None:
    lost = [Recorded(Op("renew", fence=1), 45, 45) for _ in range(24)]
    wide = [*RUN[:4], *lost, did(Op("look"), Answer("ok", "running", 99), 50)]
    assert "too many orders" in explain(wide, ONE, most=500)


def test_what_has_no_answer_is_open_for_ever() -> None:
    assert Recorded(Op("look"), 1, 1).answered == NEVER
