"""Deny means now: what the policy of now denies is neither approved nor edited nor started."""

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.policy_in_force import EDITS, RecheckResult
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject
from interlock.core.errors import DeniedNow, Stale
from interlock.core.outcome import Finished, Refused
from interlock.core.ports import User
from tests.places import Place
from tests.support import BOB, OK, WRITE, Clock, approve, call, faults, kinds, opened, pending, status

DENIES = "version: 1\nrules:\n  - {name: no more, tools: [delete_file], then: deny, reason: Nobody deletes files.}\n"
BY_PATH = """
version: 1
rules:
  - {name: no more, tools: [delete_file], when: 'args.path == "/etc"', then: deny, reason: Nobody deletes /etc.}
"""
BY_TEAM = """
version: 1
rules:
  - {name: finance only, tools: [delete_file], when: '!("finance" in teams)', then: deny, reason: Finance only.}
"""


async def put(parts: AppServices, policy: str) -> None:
    await parts.put_policy("default", policy, "ada", {})


async def row(parts: AppServices, approval_id: str) -> Approval:
    return (await parts.store.get("default", approval_id)).approval


async def edit(parts: AppServices, approval_id: str, args: bytes) -> Approval:
    seen = Acknowledgement((await row(parts, approval_id)).args_sha256)
    return await parts.inbox.decide("default", approval_id, Edit(args, seen), BOB)


async def test_what_was_approved_and_is_denied_now_ends_when_it_is_started(parts: AppServices) -> None:
    approval_id = await pending(parts)
    await approve(parts, approval_id)
    before = await row(parts, approval_id)
    await put(parts, DENIES)
    assert await row(parts, approval_id) == before  # a policy rewrites no row
    with pytest.raises(DeniedNow, match=r"Nobody deletes files\.") as refused:
        await parts.gate.start("default", approval_id, "runner")
    assert (refused.value.code, refused.value.status) == ("denied_now", 409)
    outcome = await parts.gate.get_outcome("default", approval_id)
    assert outcome == Refused("Nobody deletes files.", "cancelled", approval_id)
    assert (await kinds(parts))[-2:] == ["policy_changed", "cancelled"]
    assert await faults(parts) == []


async def test_what_is_denied_now_cannot_be_approved_and_can_be_rejected(parts: AppServices) -> None:
    approval_id = await pending(parts)
    await put(parts, DENIES)
    with pytest.raises(DeniedNow, match="no more") as refused:
        await approve(parts, approval_id)
    assert refused.value.status == 422
    assert await status(parts, approval_id) == "pending"
    assert (await kinds(parts))[-1] == "decision_refused"
    await parts.inbox.decide("default", approval_id, Reject("No."), BOB)
    assert await status(parts, approval_id) == "rejected"


async def test_an_edit_into_what_is_denied_now_is_refused_and_one_out_of_it_is_not(parts: AppServices) -> None:
    approval_id = await pending(parts, args={"path": "/etc"})
    await put(parts, BY_PATH)
    with pytest.raises(DeniedNow):
        await approve(parts, approval_id)
    with pytest.raises(DeniedNow) as refused:
        await edit(parts, approval_id, b'{"path":"/etc"}')
    assert refused.value.status == 422
    assert (await edit(parts, approval_id, b'{"path":"/tmp"}')).status == "approved"
    assert (await parts.gate.start("default", approval_id, "runner")).args == b'{"path":"/tmp"}'


async def test_what_runs_goes_on(parts: AppServices) -> None:
    approval_id = await pending(parts)
    await approve(parts, approval_id)
    started = await parts.gate.start("default", approval_id, "attempt:key:once")
    await put(parts, DENIES)
    again = await parts.gate.start("default", approval_id, "attempt:key:once")
    assert again.fence == started.fence
    await parts.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)
    assert isinstance(await parts.gate.get_outcome("default", approval_id), Finished)


async def test_another_process_judges_what_was_approved_by_its_own_policy(place: Place, clock: Clock) -> None:
    async with opened(place, clock) as one, opened(place, clock) as two:
        approval_id = await pending(one)
        await approve(one, approval_id)
        await put(one, DENIES)
        await two.refresh_policy("default", {})
        with pytest.raises(DeniedNow):
            await two.gate.start("default", approval_id, "runner")


async def test_an_edit_elsewhere_is_judged_before_it_starts_here(place: Place, clock: Clock) -> None:
    async with opened(place, clock) as here, opened(place, clock) as elsewhere:
        approval_id = await pending(here)
        assert (await edit(elsewhere, approval_id, b'{"path":"/etc"}')).status == "approved"
        started = await here.gate.start("default", approval_id, "runner")
        assert started.args == b'{"path":"/etc"}'
        other = await pending(here, 2)
        assert (await edit(elsewhere, other, b'{"path":"/etc"}')).status == "approved"
        await put(here, BY_PATH)
        with pytest.raises(DeniedNow):
            await here.gate.start("default", other, "runner")


async def test_a_rule_about_teams_sees_those_of_the_requester(place: Place, clock: Clock) -> None:
    async with opened(place, clock) as parts:
        await parts.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
        theirs = await pending(parts, 1, requester="fay", teams=("finance",))
        others = await pending(parts, 2, requester="gus")
        await put(parts, BY_TEAM)
        assert await approve(parts, theirs) == "approved"
        with pytest.raises(DeniedNow):
            await approve(parts, others)
        assert (await parts.gate.start("default", theirs, "runner")).fence == 1


async def test_who_changes_teams_is_judged_by_the_new_ones_in_a_program_of_its_own(parts: AppServices) -> None:
    await parts.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(parts, BY_TEAM)
    approval_id = await pending(parts, requester="fay", teams=("finance",))
    await approve(parts, approval_id)
    await parts.store.put_user("default", User("fay", teams=frozenset({"interns"})), "ada")
    await parts.refresh_policy("default", {})
    with pytest.raises(DeniedNow):
        await parts.gate.start("default", approval_id, "runner")


async def test_the_teams_of_a_removed_person_open_nothing(parts: AppServices) -> None:
    await parts.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(parts, BY_TEAM)
    approval_id = await pending(parts, requester="fay", teams=("finance",))
    await approve(parts, approval_id)
    await parts.accounts.remove_user("default", "fay", "ada")
    await parts.refresh_policy("default", {})
    with pytest.raises(DeniedNow):
        await parts.gate.start("default", approval_id, "runner")


async def test_what_people_change_while_a_call_is_written_is_not_overlooked(parts: AppServices) -> None:
    await parts.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(parts, BY_TEAM)
    basis = parts.gate.in_force.epoch
    approval_id = await pending(parts, requester="fay", teams=("finance",))
    await parts.store.put_user("default", User("fay", teams=frozenset({"interns"})), "ada")
    await parts.refresh_policy("default", {})
    parts.gate.in_force.cache_allowed(basis, await row(parts, approval_id))  # as if it had been written only now
    with pytest.raises(DeniedNow):
        await approve(parts, approval_id)


SWITCHED = """
version: 1
rules:
  - {name: nobody destroys, effect: destructive, then: deny}
  - {name: the rest, then: ask}
"""


async def test_a_switch_that_is_set_later_counts_when_a_call_is_started(parts: AppServices) -> None:
    """A switch that names a tool ends the trust in what its program says that it does."""
    await put(parts, SWITCHED)
    shred = ToolSpec("shred", "write", declared=True)
    approval_id = await pending(parts, 1, shred, agent="bot")
    await approve(parts, approval_id)
    await parts.put_policy("default", None, "ada", {"bot": {"shred": True}})
    with pytest.raises(DeniedNow, match="nobody destroys"):
        await parts.gate.start("default", approval_id, "runner")


async def test_a_known_call_that_was_cancelled_so_is_told_as_refused(parts: AppServices) -> None:
    approval_id = await pending(parts)
    await approve(parts, approval_id)
    await put(parts, DENIES)
    with pytest.raises(DeniedNow):
        await parts.gate.start("default", approval_id, "runner")
    outcome = await parts.gate.check(call(), WRITE)
    assert isinstance(outcome, Refused)
    assert outcome.approval_id == approval_id


async def test_a_call_that_is_never_found_as_it_was_judged_is_given_up_on(
    parts: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is told to look again. It was tried without an end once, each time deeper than the last."""
    tried: list[str] = []

    async def judged(_: str, approval_id: str) -> RecheckResult:
        tried.append(approval_id)
        return RecheckResult("0" * 64)

    first, second = await pending(parts), await pending(parts, 2)
    await approve(parts, first)
    monkeypatch.setattr(parts.gate.in_force, "recheck", judged)
    with pytest.raises(Stale, match="Reload the card"):
        await parts.gate.start("default", first, "runner")
    assert (tried, await status(parts, first)) == ([first] * EDITS, "approved")
    with pytest.raises(Stale, match="Reload the card"):
        await approve(parts, second)
    assert (tried[EDITS:], await status(parts, second)) == ([second] * EDITS, "pending")
