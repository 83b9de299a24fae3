"""The current policy denies: such a call is not approved, edited or started, even if approved before."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices, build_gate_and_inbox
from interlock.app.gate import Gate
from interlock.app.policy_in_force import MAX_JUDGEMENTS, RecheckResult
from interlock.app.workspaces import Workspaces
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject
from interlock.core.errors import DeniedNow, Misconfigured, Stale
from interlock.core.freeze import Freeze
from interlock.core.outcome import Finished, Refused, Waiting
from interlock.core.ports import PolicyRevision, User
from interlock.runtime.offload import LoopThread
from interlock.sdk.backend import ProgramIdentity
from interlock.sdk.embedded import EmbeddedBackend
from tests.databases import Database
from tests.support import (
    BOB,
    OK,
    WRITE,
    Clock,
    approve,
    call,
    event_kinds,
    ledger_violations,
    open_services,
    propose_pending,
    status,
)

ASKS = "version: 1\nrules:\n  - {name: ask, tools: [delete_file], then: ask}\n"
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


async def put(services: AppServices, policy: str) -> None:
    await services.put_policy("default", policy, "ada", {})


async def row(services: AppServices, approval_id: str) -> Approval:
    return (await services.store.get("default", approval_id)).approval


async def edit(services: AppServices, approval_id: str, args: bytes) -> Approval:
    seen = Acknowledgement((await row(services, approval_id)).args_sha256)
    return await services.inbox.decide("default", approval_id, Edit(args, seen), BOB)


async def test_what_was_approved_and_is_denied_now_ends_when_it_is_started(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    before = await row(services, approval_id)
    await put(services, DENIES)
    assert await row(services, approval_id) == before  # a policy rewrites no row
    with pytest.raises(DeniedNow, match=r"Nobody deletes files\.") as refused:
        await services.gate.start("default", approval_id, "runner")
    assert (refused.value.code, refused.value.status) == ("denied_now", 409)
    outcome = await services.gate.get_outcome("default", approval_id)
    assert outcome == Refused("Nobody deletes files.", "cancelled", approval_id)
    assert (await event_kinds(services))[-2:] == ["policy_changed", "cancelled"]
    assert await ledger_violations(services) == []


async def test_what_is_denied_now_cannot_be_approved_and_can_be_rejected(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await put(services, DENIES)
    with pytest.raises(DeniedNow, match="no more") as refused:
        await approve(services, approval_id)
    assert refused.value.status == 422
    assert await status(services, approval_id) == "pending"
    assert (await event_kinds(services))[-1] == "decision_refused"
    await services.inbox.decide("default", approval_id, Reject("No."), BOB)
    assert await status(services, approval_id) == "rejected"


async def test_an_edit_into_what_is_denied_now_is_refused_and_one_out_of_it_is_not(services: AppServices) -> None:
    approval_id = await propose_pending(services, args={"path": "/etc"})
    await put(services, BY_PATH)
    with pytest.raises(DeniedNow):
        await approve(services, approval_id)
    with pytest.raises(DeniedNow) as refused:
        await edit(services, approval_id, b'{"path":"/etc"}')
    assert refused.value.status == 422
    assert (await edit(services, approval_id, b'{"path":"/tmp"}')).status == "approved"
    assert (await services.gate.start("default", approval_id, "runner")).args == b'{"path":"/tmp"}'


async def test_what_runs_goes_on(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    started = await services.gate.start("default", approval_id, "attempt:key:once")
    await put(services, DENIES)
    again = await services.gate.start("default", approval_id, "attempt:key:once")
    assert again.fence == started.fence
    await services.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)
    assert isinstance(await services.gate.get_outcome("default", approval_id), Finished)


async def test_another_process_judges_what_was_approved_by_its_own_policy(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        approval_id = await propose_pending(one)
        await approve(one, approval_id)
        await put(one, DENIES)
        await two.refresh_policy("default", {})
        with pytest.raises(DeniedNow):
            await two.gate.start("default", approval_id, "runner")


async def test_an_edit_elsewhere_is_judged_before_it_starts_here(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as here, open_services(database, clock) as elsewhere:
        approval_id = await propose_pending(here)
        assert (await edit(elsewhere, approval_id, b'{"path":"/etc"}')).status == "approved"
        started = await here.gate.start("default", approval_id, "runner")
        assert started.args == b'{"path":"/etc"}'
        other = await propose_pending(here, 2)
        assert (await edit(elsewhere, other, b'{"path":"/etc"}')).status == "approved"
        await put(here, BY_PATH)
        with pytest.raises(DeniedNow):
            await here.gate.start("default", other, "runner")


async def test_a_rule_about_teams_sees_those_of_the_requester(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
        theirs = await propose_pending(services, 1, requester="fay", teams=("finance",))
        others = await propose_pending(services, 2, requester="gus")
        await put(services, BY_TEAM)
        assert await approve(services, theirs) == "approved"
        with pytest.raises(DeniedNow):
            await approve(services, others)
        assert (await services.gate.start("default", theirs, "runner")).fence == 1


async def test_who_changes_teams_is_judged_by_the_new_ones_in_a_program_of_its_own(services: AppServices) -> None:
    await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(services, BY_TEAM)
    approval_id = await propose_pending(services, requester="fay", teams=("finance",))
    await approve(services, approval_id)
    await services.store.put_user("default", User("fay", teams=frozenset({"interns"})), "ada")
    await services.refresh_policy("default", {})
    with pytest.raises(DeniedNow):
        await services.gate.start("default", approval_id, "runner")


async def test_the_teams_of_a_removed_person_open_nothing(services: AppServices) -> None:
    await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(services, BY_TEAM)
    approval_id = await propose_pending(services, requester="fay", teams=("finance",))
    await approve(services, approval_id)
    await services.accounts.remove_user("default", "fay", "ada")
    await services.refresh_policy("default", {})
    with pytest.raises(DeniedNow):
        await services.gate.start("default", approval_id, "runner")


async def test_what_people_change_while_a_call_is_written_is_not_overlooked(services: AppServices) -> None:
    await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(services, BY_TEAM)
    basis = services.gate.in_force.epoch
    approval_id = await propose_pending(services, requester="fay", teams=("finance",))
    await services.store.put_user("default", User("fay", teams=frozenset({"interns"})), "ada")
    await services.refresh_policy("default", {})
    services.gate.in_force.cache_allowed(basis, await row(services, approval_id))  # as if it had been written only now
    with pytest.raises(DeniedNow):
        await approve(services, approval_id)


SWITCHED = """
version: 1
rules:
  - {name: nobody destroys, effect: destructive, then: deny}
  - {name: the rest, then: ask}
"""


async def test_a_switch_that_is_set_later_counts_when_a_call_is_started(services: AppServices) -> None:
    """A switch that names a tool ends the trust in what its program says that it does."""
    await put(services, SWITCHED)
    shred = ToolSpec("shred", "write", declared=True)
    approval_id = await propose_pending(services, 1, shred, agent="bot")
    await approve(services, approval_id)
    await services.put_policy("default", None, "ada", {"bot": {"shred": True}})
    with pytest.raises(DeniedNow, match="nobody destroys"):
        await services.gate.start("default", approval_id, "runner")


async def test_a_known_call_that_was_cancelled_so_is_told_as_refused(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    await put(services, DENIES)
    with pytest.raises(DeniedNow):
        await services.gate.start("default", approval_id, "runner")
    outcome = await services.gate.check(call(), WRITE)
    assert isinstance(outcome, Refused)
    assert outcome.approval_id == approval_id


async def test_a_call_that_is_never_found_as_it_was_judged_is_given_up_on(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets a conflict; it was once retried without end, each time deeper in the stack."""
    tried: list[str] = []

    async def judged(_: str, approval_id: str) -> RecheckResult:
        tried.append(approval_id)
        return RecheckResult(services.gate.in_force, services.gate.in_force.epoch, "0" * 64)

    first, second = await propose_pending(services), await propose_pending(services, 2)
    await approve(services, first)
    monkeypatch.setattr(services.gate.in_force, "recheck", judged)
    with pytest.raises(Stale, match="Reload the card"):
        await services.gate.start("default", first, "runner")
    assert (tried, await status(services, first)) == ([first] * MAX_JUDGEMENTS, "approved")
    with pytest.raises(Stale, match="Reload the card"):
        await approve(services, second)
    assert (tried[MAX_JUDGEMENTS:], await status(services, second)) == ([second] * MAX_JUDGEMENTS, "pending")


async def test_no_call_starts_or_is_approved_after_the_policy_that_denies_it(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that policy is put in force after the call was judged, before the transaction."""
    first, second = await propose_pending(services), await propose_pending(services, 2)
    await approve(services, first)
    for verb, work in (
        ("transition_stored", lambda: services.gate.start("default", first, "runner")),
        ("transition_by", lambda: approve(services, second)),
    ):
        await put(services, ASKS)
        transition = getattr(services.store, verb)

        async def deny_first(*args: Any, transition: Any = transition, verb: str = verb) -> Any:
            monkeypatch.setattr(services.store, verb, transition)
            await put(services, DENIES)
            return await transition(*args)

        monkeypatch.setattr(services.store, verb, deny_first)
        with pytest.raises(DeniedNow):
            await work()
    assert (await status(services, first), await status(services, second)) == ("cancelled", "pending")


@pytest.mark.parametrize("copy", [lambda gate: gate.for_external(), lambda gate: gate.with_fence(None)])
async def test_a_call_made_with_old_teams_is_judged_again_before_it_starts(
    services: AppServices, copy: Callable[[Gate], Gate]
) -> None:
    await services.store.put_user("default", User("fay", teams=frozenset({"finance"})), "ada")
    await put(services, BY_TEAM)
    gate = copy(services.gate)
    made = call(requester="fay", teams=("finance",))
    await services.store.put_user("default", User("fay", teams=frozenset({"interns"})), "ada")
    await services.refresh_policy("default", {})
    outcome = await gate.check(made, WRITE)
    assert isinstance(outcome, Waiting)
    with pytest.raises(DeniedNow):
        await approve(services, outcome.approval_id)


async def test_a_late_read_of_the_freezes_does_not_lift_one(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await propose_pending(services)
    stale = await services.store.open_freezes("default")

    async def late(_: str) -> Any:
        return stale

    freeze = Freeze(id="f1", workspace="default", scope="workspace", name="", reason="Stop.", by="ada", at=1)
    services.gate.in_force.freezes = (freeze,)
    monkeypatch.setattr(services.store, "open_freezes", late)
    await services.gate.in_force.fetch_start_error((await services.store.get("default", approval_id)).approval)
    assert services.gate.in_force.freezes == (freeze,)


async def test_switches_of_a_program_do_not_bring_a_replaced_policy_back(services: AppServices) -> None:
    """They are set from the program's thread, while another thread puts a policy in force."""
    await put(services, ASKS)
    program = ProgramIdentity("default", "bot", "ann", "runner", 60_000)
    backend = EmbeddedBackend(services, program, None, {})
    in_force = services.gate.in_force
    with in_force.lock:
        setting = threading.Thread(target=backend.set_tool_approvals, args=("bot", {"delete_file": True}))
        setting.start()
        in_force.set_policy(replace(in_force.policy, rules=(), sha256="new"))
    await asyncio.to_thread(setting.join)
    assert (in_force.policy.sha256, in_force.policy.toggles) == ("new", {"bot": {"delete_file": True}})


async def test_no_server_starts_what_a_policy_stored_by_another_denies(database: Database, clock: Clock) -> None:
    """Also in the second before it polls: the start reads the policy's revision in its own transaction."""
    async with open_services(database, clock) as services, open_services(database, clock) as others:
        here, there = server(services), server(others)
        gate = (await here.services("default")).gate
        ids = [await propose_pending(services, number) for number in range(4)]
        for approval_id in ids:
            await approve(services, approval_id)
        assert (await gate.start("default", ids[0], "runner")).fence
        await there.put_policy("default", DENIES, "ada")
        with pytest.raises(DeniedNow, match=r"Nobody deletes files\."):
            await gate.start("default", ids[1], "runner")
        await there.put_policy("default", ASKS, "ada")
        assert (await gate.start("default", ids[2], "runner")).fence
        await there.put_agent("default", "bot", json.dumps({"tool_approvals": {"delete_file": True}}), "ada")
        assert (await gate.start("default", ids[3], "runner")).fence
        assert gate.policy.toggles == {"bot": {"delete_file": True}}


async def test_nothing_starts_while_a_newer_policy_does_not_load(services: AppServices) -> None:
    workspaces = server(services)
    gate = (await workspaces.services("default")).gate
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    await services.store.put_policy("default", "0" * 64, "version: 1\nrules: [{of: a newer version}]\n", "ada")
    with pytest.raises(Misconfigured):
        await gate.start("default", approval_id, "runner")
    assert await status(services, approval_id) == "approved"
    await services.store.put_policy("default", "1" * 64, ASKS, "ada")
    assert (await gate.start("default", approval_id, "runner")).fence


async def test_an_embedded_program_judges_by_what_others_stored_a_moment_ago(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services, open_services(database, clock) as others:
        backend = await open_backend(services)
        first, second = await propose_pending(services), await propose_pending(services, 2)
        await approve(services, first)
        await approve(services, second)
        await server(others).put_policy("default", DENIES, "ada")
        with pytest.raises(DeniedNow):
            await backend.start(first, None)
        await server(others).put_policy("default", ASKS, "ada")
        assert (await backend.start(second, None)).fence


async def test_stored_switches_reach_an_embedded_program_and_only_add_to_its_own(services: AppServices) -> None:
    backend = await open_backend(services, {"bot": {"a": True, "b": False}})
    toggles = {"a": False, "b": True, "c": True, "d": False}
    await services.store.put_agent("default", "bot", json.dumps({"tool_approvals": toggles}), "ada")
    await services.store.put_agent("default", "other", json.dumps({"tool_approvals": {"a": False}}), "ada")
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    await backend.start(approval_id, None)
    in_force = services.gate.in_force
    assert in_force.policy.toggles == {"bot": {"a": True, "b": True, "c": True, "d": False}, "other": {"a": False}}
    backend.set_tool_approvals("bot", {"d": True, "b": False})
    assert in_force.policy.toggles["bot"] == {"a": False, "b": True, "c": True, "d": True}
    assert in_force.epoch.revision == PolicyRevision(0, 2)


def server(services: AppServices) -> Workspaces:
    return Workspaces(services.store, partial(build_gate_and_inbox, services.store), {})


async def open_backend(services: AppServices, toggles: dict[str, dict[str, bool]] | None = None) -> EmbeddedBackend:
    program = ProgramIdentity("default", "bot", "ann", "runner", 60_000)
    backend = EmbeddedBackend(services, program, None, toggles or {})
    await backend.open(LoopThread())
    return backend
