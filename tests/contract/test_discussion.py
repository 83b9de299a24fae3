"""Claims, comments, questions and delegation, through the services."""

import asyncio
import json

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.discussion import Question
from interlock.core.call import ToolSpec
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, Forbidden, NotFound
from interlock.core.outcome import Proceed, Waiting
from interlock.core.policy.policy import People
from interlock.core.ports import User
from tests.databases import Database
from tests.support import (
    ADA,
    BOB,
    EVE,
    START,
    Clock,
    approve,
    call,
    event_kinds,
    ledger_violations,
    open_services,
    propose_pending,
    status,
)

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


async def test_what_people_say_meanwhile_comes_back_as_it_was(services: AppServices) -> None:  # R36, R55
    approval_id = await propose_pending(services, agent="helper")
    await services.inbox.claim("default", approval_id, BOB)
    await services.inbox.ask("default", approval_id, "Why?", BOB)
    await services.inbox.ask("default", approval_id, "Really?", EVE)
    await services.gate.answer("default", approval_id, 1, "To tidy up.", "helper")
    result = await services.inbox.comment("default", approval_id, "Well.", EVE)
    stored = (await services.store.get("default", approval_id)).approval
    assert (stored.discussion.claimed_by, stored.discussion.asked, stored.discussion.replied, stored.status) == (
        "bob",
        2,
        (1,),
        "pending",
    )
    assert stored == result
    assert await services.gate.questions("default", approval_id) == [Question(2, "eve", "Really?")]
    texts = [json.loads(e.content or b"{}").get("text") for e in await services.store.timeline("default", approval_id)]
    assert texts[2:] == ["Why?", "Really?", "To tidy up.", "Well."]
    await services.inbox.release("default", approval_id, BOB)
    assert await approve(services, approval_id, ADA) == "approved"
    execution = await services.gate.start("default", approval_id, "r")
    stored = (await services.store.get("default", approval_id)).approval
    assert (execution.fence, stored.discussion.claimed_by, stored.discussion.asked, stored.discussion.replied) == (
        1,
        "",
        2,
        (1,),
    )
    assert await ledger_violations(services) == []


async def test_every_refused_attempt_leaves_a_trace(services: AppServices) -> None:  # R41
    approval_id = await propose_pending(services)
    inbox, place = services.inbox, ("default", approval_id)
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
        last = (await services.store.timeline("default", approval_id))[-1]
        assert (last.kind, last.actor) == ("decision_refused", "vic")
        assert json.loads(last.content or b"")["kind"] == attempt
    assert await event_kinds(services) == ["proposed", *["decision_refused"] * len(attempts)]
    assert await ledger_violations(services) == []


async def test_a_waiting_agent_is_woken_by_a_question(services: AppServices) -> None:  # R55
    approval_id = await propose_pending(services)
    waiter = asyncio.create_task(services.gate.wait("default", approval_id, last_seen_question=0))
    deaf = asyncio.create_task(services.gate.wait("default", approval_id))
    await asyncio.sleep(0)
    await services.inbox.ask("default", approval_id, "Why?", BOB)
    outcome = await waiter
    assert isinstance(outcome, Waiting)
    assert outcome.questions == (1,)
    knows = asyncio.create_task(services.gate.wait("default", approval_id, last_seen_question=1))
    await services.gate.answer("default", approval_id, 1, "Because.", "helper")
    await approve(services, approval_id)
    assert isinstance(await deaf, Proceed)
    assert isinstance(await knows, Proceed)


async def test_of_two_replies_at_once_one_counts(services: AppServices) -> None:  # R55
    approval_id = await propose_pending(services)
    await services.inbox.ask("default", approval_id, "Why?", BOB)
    replies = (services.gate.answer("default", approval_id, 1, text, "helper") for text in ("So.", "Or so."))
    results = await asyncio.gather(*replies, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Approval", "Conflict"]
    assert (await event_kinds(services)) == ["proposed", "asked", "replied"]
    with pytest.raises(Conflict):
        await services.gate.answer("default", approval_id, 1, "Once more.")


async def test_questions_of_another_workspace_are_not_found(services: AppServices) -> None:  # R55
    approval_id = await propose_pending(services)
    with pytest.raises(NotFound):
        await services.gate.questions("other", approval_id)
    with pytest.raises(NotFound):
        await services.gate.answer("other", approval_id, 1, "So.")
    assert await services.gate.questions("default", approval_id) == []


async def test_a_delegate_decides_while_somebody_is_away(database: Database, clock: Clock) -> None:  # R40
    async with open_services(database, clock, TWO) as services:
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
            await services.store.put_user("default", user, "ada")
        approval_id = await propose_pending(services)
        zoe = await services.inbox.reviewer("default", "zoe", "test")
        assert [each.by for each in zoe.delegations_to_me] == ["bob"]
        assert await services.inbox.find_delegations("default", "max", frozenset({"night"})) == zoe.delegations_to_me
        assert await services.inbox.find_delegations("default", "bob", frozenset({"night"})) == ()
        assert await approve(services, approval_id, zoe) == "pending"
        assert await approve(services, approval_id, BOB) == "pending"  # the seat is taken
        assert await approve(services, approval_id, EVE) == "approved"
        votes = (await services.store.get("default", approval_id)).approval.votes
        assert [(vote.by, vote.on_behalf_of) for vote in votes] == [("zoe", "bob"), ("eve", "eve")]
        clock.advance(1_000)
        back = await services.inbox.reviewer("default", "zoe", "test")
        assert back.delegations_to_me == ()
        other = await propose_pending(services, 2)
        with pytest.raises(Forbidden):
            await approve(services, other, back)
        assert await status(services, other) == "pending"
        assert await ledger_violations(services) == []


async def test_what_an_agent_says_about_a_call_is_stored_without_its_secrets(services: AppServices) -> None:
    """Also of the chat's own agents: the prompt of an answer has the arguments as the model wrote them."""
    spec = ToolSpec("delete_file", "destructive", secret=("token",))
    outcome = await services.gate.check(call("delete_file", {"path": "/x", "token": "open sesame"}), spec)
    assert isinstance(outcome, Waiting)
    approval_id = outcome.approval_id
    await services.inbox.ask("default", approval_id, "Why?", BOB)
    await services.gate.answer("default", approval_id, 1, "The token is open sesame.", "helper")
    await services.gate.agent_comment("default", approval_id, "Hurry: open%20sesame", "agent:helper")
    cancelled = await services.gate.cancel("default", approval_id, "agent:helper", "open sesame is old.")
    assert cancelled.decision is not None
    assert cancelled.decision.reason == "[hidden] is old."
    contents = [(e.content or b"").decode() for e in await services.store.timeline("default", approval_id)]
    assert [json.loads(each).get("text") for each in contents[-3:-1]] == ["The token is [hidden].", "Hurry: [hidden]"]
    assert not [each for each in contents if "sesame" in each]
