"""The JSON texts in the rows of approvals, spelled out: older programs read the same rows while they are replaced.

They read a decision by the names of its fields and a vote by the places of its values, so that a field more, or another
order, would be an error there. A new field has to be left out while it has its default.
"""

from __future__ import annotations

from dataclasses import replace

from interlock.core.approval.approval import Approval, DecisionRecord
from interlock.core.approval.vote import Delegation, Vote
from interlock.core.policy.policy import People
from interlock.storage.engine.rows import update_values
from tests.unit.builders import pending, replace_fields

PROGRESS, DECISION = 5, 6  # places in what an update writes


def json_texts(approval: Approval) -> tuple[object, object]:
    values = update_values(approval, 1)
    return values[PROGRESS], values[DECISION]


def test_a_decision_is_written_by_the_names_that_older_programs_know() -> None:
    plain, full = DecisionRecord("reject", "bob", 5), DecisionRecord("approve", "bob", 5, "web", "Due.", "Fine.")
    assert json_texts(replace(pending(), decision=plain))[1] == (
        '{"at":5,"by":"bob","comment":"","kind":"reject","reason":"","via":""}'
    )
    assert json_texts(replace(pending(), decision=full))[1] == (
        '{"at":5,"by":"bob","comment":"Fine.","kind":"approve","reason":"Due.","via":"web"}'
    )
    assert json_texts(pending()) == (None, None)


def test_a_vote_is_written_with_its_values_where_older_programs_look_for_them() -> None:
    votes = (Vote("bob", "ann", 0, "aa", 5, "web"), Vote("eve", "eve", 1, "aa", 6, ""))
    assert json_texts(replace(pending(), votes=votes))[0] == (
        '{"alarms":[],"delegations":[],"editors":[],"escalated":0,"reminded":0,'
        '"votes":[["bob","ann",0,"aa",5,"web"],["eve","eve",1,"aa",6,""]]}'
    )


def test_what_else_has_happened_to_an_approval_is_written_as_older_programs_read_it() -> None:
    to = People(frozenset({"eve", "dan"}), frozenset({"legal"}))
    delegation = Delegation("ann", frozenset({"ops", "finance"}), "reviewer", to)
    changes = {"alarms": ("/to: odd",), "editors": ("bob",), "delegations": (delegation,), "reminded": 2}
    assert json_texts(replace_fields(pending(), **changes))[0] == (
        '{"alarms":["/to: odd"],"delegations":[["ann",["finance","ops"],"reviewer",["dan","eve"],["legal"]]],'
        '"editors":["bob"],"escalated":0,"reminded":2,"votes":[]}'
    )
