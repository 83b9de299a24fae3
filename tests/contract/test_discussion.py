"""Claims, comments, questions and stand-ins, through the doors."""

import asyncio
import json

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.discussion import Question
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, Forbidden, NotFound
from interlock.core.outcome import Proceed, Waiting
from interlock.core.policy.policy import People
from interlock.core.ports import User
from tests.places import Place
from tests.support import ADA, BOB, EVE, START, Clock, approve, faults, kinds, opened, pending, status

VIC = Reviewer("vic", "viewer", teams=frozenset({"finance"}), via="test")
TWO = """
version: 1
rules:
  - name: two of finance
    tools: [delete_file]
    then: ask
    approvers: {teams: [finance]}
    quorum: 2
"""


async def test_what_people_say_meanwhile_comes_back_as_it_was(parts: AppServices) -> None:  # R36, R55
    approval_id = await pending(parts, agent="helper")
    await parts.inbox.claim("default", approval_id, BOB)
    await parts.inbox.ask("default", approval_id, "Why?", BOB)
    await parts.inbox.ask("default", approval_id, "Really?", EVE)
    await parts.gate.answer("default", approval_id, 1, "To tidy up.", "helper")
    told = await parts.inbox.comment("default", approval_id, "Well.", EVE)
    stored = (await parts.store.get("default", approval_id)).approval
    assert (stored.discussion.claimed_by, stored.discussion.asked, stored.discussion.replied, stored.status) == (
        "bob",
        2,
        (1,),
        "pending",
    )
    assert stored == told
    assert await parts.gate.questions("default", approval_id) == [Question(2, "eve", "Really?")]
    texts = [json.loads(e.content or b"{}").get("text") for e in await parts.store.timeline("default", approval_id)]
    assert texts[2:] == ["Why?", "Really?", "To tidy up.", "Well."]
    await parts.inbox.release("default", approval_id, BOB)
    assert await approve(parts, approval_id, ADA) == "approved"
    execution = await parts.gate.start("default", approval_id, "r")
    stored = (await parts.store.get("default", approval_id)).approval
    assert (execution.fence, stored.discussion.claimed_by, stored.discussion.asked, stored.discussion.replied) == (
        1,
        "",
        2,
        (1,),
    )
    assert await faults(parts) == []


async def test_every_refused_attempt_leaves_a_trace(parts: AppServices) -> None:  # R41
    approval_id = await pending(parts)
    inbox, place = parts.inbox, ("default", approval_id)
    attempts = {
        "claim": lambda: inbox.claim(*place, VIC),
        "release": lambda: inbox.release(*place, VIC),
        "comment": lambda: inbox.comment(*place, "Hm.", VIC),
        "ask": lambda: inbox.ask(*place, "Why?", VIC),
        "delegate": lambda: inbox.delegate(*place, People(frozenset({"eve"})), VIC),
    }
    for attempt, act in attempts.items():
        with pytest.raises(Forbidden):
            await act()
        last = (await parts.store.timeline("default", approval_id))[-1]
        assert (last.kind, last.actor) == ("decision_refused", "vic")
        assert json.loads(last.content or b"")["kind"] == attempt
    assert await kinds(parts) == ["proposed", *["decision_refused"] * len(attempts)]
    assert await faults(parts) == []


async def test_a_waiting_agent_is_woken_by_a_question(parts: AppServices) -> None:  # R55
    approval_id = await pending(parts)
    waiter = asyncio.create_task(parts.gate.wait("default", approval_id, last_seen_question=0))
    deaf = asyncio.create_task(parts.gate.wait("default", approval_id))
    await asyncio.sleep(0)
    await parts.inbox.ask("default", approval_id, "Why?", BOB)
    outcome = await waiter
    assert isinstance(outcome, Waiting)
    assert outcome.questions == (1,)
    knows = asyncio.create_task(parts.gate.wait("default", approval_id, last_seen_question=1))
    await parts.gate.answer("default", approval_id, 1, "Because.", "helper")
    await approve(parts, approval_id)
    assert isinstance(await deaf, Proceed)
    assert isinstance(await knows, Proceed)


async def test_of_two_replies_at_once_one_counts(parts: AppServices) -> None:  # R55
    approval_id = await pending(parts)
    await parts.inbox.ask("default", approval_id, "Why?", BOB)
    replies = (parts.gate.answer("default", approval_id, 1, text, "helper") for text in ("So.", "Or so."))
    results = await asyncio.gather(*replies, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Approval", "Conflict"]
    assert (await kinds(parts)) == ["proposed", "asked", "replied"]
    with pytest.raises(Conflict):
        await parts.gate.answer("default", approval_id, 1, "Once more.")


async def test_questions_of_another_workspace_are_not_found(parts: AppServices) -> None:  # R55
    approval_id = await pending(parts)
    with pytest.raises(NotFound):
        await parts.gate.questions("other", approval_id)
    with pytest.raises(NotFound):
        await parts.gate.answer("other", approval_id, 1, "So.")
    assert await parts.gate.questions("default", approval_id) == []


async def test_a_stand_in_decides_while_somebody_is_away(place: Place, clock: Clock) -> None:  # R40
    async with opened(place, clock, TWO) as parts:
        to = People(frozenset({"zoe"}), frozenset({"night"}))
        for user in (
            User("bob", "reviewer", teams=frozenset({"finance"}), away_until=START + 1_000, away_to=to),
            User("eve", "reviewer", teams=frozenset({"finance"})),
            User(
                "ulf", "reviewer", teams=frozenset({"finance"}), away_until=START + 1_000, away_to=to, removed_at=START
            ),
            User("kim", "reviewer", teams=frozenset({"finance"}), away_to=to),
            User("zoe"),
        ):
            await parts.store.put_user("default", user, "ada")
        approval_id = await pending(parts)
        zoe = await parts.inbox.reviewer("default", "zoe", "test")
        assert [each.by for each in zoe.delegations_to_me] == ["bob"]
        assert await parts.inbox.find_delegations("default", "max", frozenset({"night"})) == zoe.delegations_to_me
        assert await parts.inbox.find_delegations("default", "bob", frozenset({"night"})) == ()
        assert await approve(parts, approval_id, zoe) == "pending"
        assert await approve(parts, approval_id, BOB) == "pending"  # the seat is taken
        assert await approve(parts, approval_id, EVE) == "approved"
        votes = (await parts.store.get("default", approval_id)).approval.votes
        assert [(vote.by, vote.seat) for vote in votes] == [("zoe", "bob"), ("eve", "eve")]
        clock.forward(1_000)
        back = await parts.inbox.reviewer("default", "zoe", "test")
        assert back.delegations_to_me == ()
        other = await pending(parts, 2)
        with pytest.raises(Forbidden):
            await approve(parts, other, back)
        assert await status(parts, other) == "pending"
        assert await faults(parts) == []
