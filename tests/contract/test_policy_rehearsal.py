"""Policy rehearsal over recorded calls, on both databases."""

import json
from typing import Any

from interlock.app.bootstrap import AppServices
from interlock.core.call import SECRET_MARKER, Caller, PreCheck, ToolSpec
from interlock.core.decision import Acknowledgement, Edit
from interlock.core.ledger.event import Event
from interlock.core.policy.analysis import RecordedCall
from interlock.core.policy.policy import Policy
from interlock.policy.conditions import compile_condition
from interlock.policy.file import load_policy
from interlock.policy.rehearsal import RehearsalResult, rule_activity, run_rehearsal, shadow_report
from tests.support import BOB, READ, WRITE, Clock, call, propose_pending

PAY = ToolSpec("pay", "write", describe="Pay {amount}", secret=("key",))
POLICY = """
rules:
  - {name: would stop all, tools: [pay], then: deny, mode: shadow}
  - {name: small passes, tools: [pay], when: args.amount <= 10, then: allow}
  - {name: large stops, tools: [pay], when: args.amount > 100, then: deny}
"""
NOTHING = "rules: [{name: nothing, then: deny}]"


def policy(text: str) -> Policy:
    return load_policy(text, compile_condition).policy


async def pay(services: AppServices, amount: object, **more: object) -> None:
    args = {"amount": amount, "key": "hunter2"}
    await services.gate.check(call(f"pay{amount}", args, tool="pay", **more), PAY)


async def recorded_calls(services: AppServices, since: int = 0) -> list[RecordedCall]:
    return [each async for page in services.store.recorded_calls("default", since) for each in page]


async def rehearse(services: AppServices, draft: str, since: int = 0) -> RehearsalResult:
    steps: list[tuple[int, int]] = []
    policies = (services.gate.policy, policy(draft))
    found = await run_rehearsal(services.store, "default", policies, since, 10, lambda *at: steps.append(at))
    assert (steps[-1] if steps else (0, 0)) == (found.report.calls,) * 2, "the bar ends at its end"
    return found


# R9, R52
async def test_what_an_agents_own_switch_said_is_rehearsed_with_it(services: AppServices) -> None:
    """Else a call that was let through by it would look as if the draft asked more."""
    await pay(services, 50, switch="off")
    await services.gate.check(call("look", tool=READ.name, switch="on"), READ)
    found = await recorded_calls(services)
    assert [(each.verdict, each.call.switch) for each in found] == [("allow", "off"), ("ask", "on")]
    report = (await rehearse(services, "version: 1")).report
    assert (report.calls, report.changed_verdicts, report.outdated) == (2, 0, 0)


# R52
async def test_asked_allowed_and_denied_calls_come_back_as_they_were_made(services: AppServices) -> None:
    await services.put_policy("default", POLICY, "ada", {})
    who: dict[str, Any] = {
        "agent": "helper",
        "agent_path": ("boss", "helper"),
        "thread_id": "t1",
        "requester": "rita",
        "teams": ("ops", "dev"),
        "priority": "high",
        "setting": "chat",
    }
    for amount in (5, 50.25, 500):
        await pay(services, amount, **who)
    found = await recorded_calls(services)
    assert [(each.verdict, each.rule, bool(each.approval_id)) for each in found] == [
        ("allow", "small passes", True),
        ("ask", "", True),
        ("deny", "large stops", False),
    ]
    for each, amount in zip(found, (5, 50.25, 500), strict=True):
        made = call(f"pay{amount}", {"amount": amount, "key": "hunter2"}, tool="pay", **who)
        assert {name: getattr(each.call, name) for name in who} == who
        assert (each.call.tool, each.call.run_id, each.call.call_id) == ("pay", made.run_id, made.call_id)
        assert each.call.parsed_args["amount"] == amount
        assert (each.spec.sha256, each.sentence) == (PAY.sha256, f"Pay {amount}")
    assert found[1].call.parsed_args["key"] == "hunter2"
    assert list(found[2].call.parsed_args["key"]) == [SECRET_MARKER]  # type: ignore[call-overload]  # an object


BILLING = """
rules:
  - {name: never, tools: [pay], when: args.amount > 100, then: deny}
  - {name: billing pays, agents: [billing], then: allow}
  - {name: ann pays, users: [ann], then: allow}
  - {name: finance pays, teams: [finance], then: allow}
"""


def key(*agents: str, **known: Any) -> Caller:
    return Caller(owner="key:k", owners=frozenset({"key:k"}), agents=agents, credential="k", **known)


# R52, R57
async def test_a_call_is_rehearsed_with_what_its_key_proved_and_no_more(services: AppServices) -> None:
    """A claimed agent, person or team opened nothing then, and opens nothing in a rehearsal."""
    await services.put_policy("default", BILLING, "ada", {})
    said: list[dict[str, Any]] = [
        {"agent": "billing", "caller": key("loose")},
        {"requester": "ann", "teams": ("finance",), "caller": key("loose")},
        {"agent": "billing", "caller": key("billing")},
        {"agent": "loose", "requester": "ann", "caller": key("loose", requester="ann", requester_is_proven=True)},
        {"agent": "billing"},
    ]
    for number, more in enumerate(said):
        await pay(services, number, **more)
        await pay(services, 200 + number, **more)
    found = await recorded_calls(services)
    verdicts = ("ask", "ask", "allow", "allow", "allow")
    assert [each.verdict for each in found] == [each for first in verdicts for each in (first, "deny")]
    assert [each.call.caller for each in found] == [more.get("caller") for more in said for _ in range(2)]
    report = (await rehearse(services, BILLING.replace("> 100", "> 1000"))).report
    assert report.verdict_counts == {("ask", "ask"): 2, ("allow", "allow"): 3, ("deny", "ask"): 2, ("deny", "allow"): 3}
    assert report.outdated == 0


# R52, R57
async def test_what_was_denied_before_entries_said_whose_it_was_is_rehearsed_as_nobodys(services: AppServices) -> None:
    await services.put_policy("default", BILLING, "ada", {})
    await pay(services, 200, agent="billing", requester="ann", teams=("finance",))
    (entry,) = [each async for page in services.store.entries("default") for each in page if each.kind == "denied"]
    content = {name: value for name, value in json.loads(entry.content or b"").items() if name != "known"}
    await services.store.deny("default", [Event("denied", entry.actor, json.loads(entry.data), "", content)], PAY)
    report = (await rehearse(services, BILLING.replace("> 100", "> 1000"))).report
    assert report.verdict_counts == {("deny", "allow"): 1, ("deny", "ask"): 1}


# R52, R58
async def test_a_name_that_was_refused_is_refused_by_every_draft(services: AppServices) -> None:
    await pay(
        services, 5, caller=key("billing"), pre_check=PreCheck("A name in this call looks like 'pay' and is not.")
    )
    report = (await rehearse(services, "rules: [{name: all, then: allow}]")).report
    assert (report.verdict_counts, report.outdated) == ({("deny", "deny"): 1}, 0)


# R52
async def test_a_person_is_known_by_their_address_in_a_rehearsal_too(services: AppServices) -> None:
    await services.accounts.add_user("default", "ann", "viewer", "ada", email="ann@example.com")
    await pay(services, 5, requester="ann", aliases=("ann@example.com",))
    report = (await rehearse(services, "rules: [{name: not ann, users: [ann@example.com], then: deny}]")).report
    assert report.verdict_counts == {("ask", "deny"): 1}


# R52
async def test_a_rehearsal_counts_every_call_but_allowed_reads(services: AppServices) -> None:
    await services.put_policy("default", POLICY, "ada", {})
    for amount in (5, 50, 500):
        await pay(services, amount)
    await services.gate.check(call("read", tool=READ.name), READ)
    found = await rehearse(services, NOTHING)
    assert found.report.verdict_counts == {("allow", "deny"): 1, ("ask", "deny"): 1, ("deny", "deny"): 1}
    assert (found.erased, found.report.outdated) == (0, 0)


# R52
async def test_only_calls_since_a_time_are_rehearsed(services: AppServices, clock: Clock) -> None:
    await propose_pending(services, 1)
    clock.advance(1_000)
    await propose_pending(services, 2)
    assert (await rehearse(services, NOTHING, clock.now)).report.calls == 1
    assert (await rehearse(services, NOTHING)).report.calls == 2
    assert (await rehearse(services, NOTHING, clock.now + 1)).report.calls == 0


async def test_an_edited_call_is_judged_with_what_came_of_it(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    stored = await services.store.get("default", approval_id)
    edit = Edit(b'{"path":"/tmp/y"}', Acknowledgement(stored.approval.args_sha256))
    await services.inbox.decide("default", approval_id, edit, BOB)
    (found,) = await recorded_calls(services)
    assert (found.call.parsed_args, found.sentence) == ({"path": "/tmp/y"}, "Delete /tmp/y")


async def test_workspaces_are_rehearsed_apart(services: AppServices) -> None:
    await services.gate.check(call(1, workspace="other"), WRITE)
    assert (await rehearse(services, NOTHING)).report.calls == 0


# R52
async def test_shadow_rules_are_noted_with_every_kind_of_call(services: AppServices) -> None:
    await services.put_policy("default", POLICY, "ada", {})
    for amount in (5, 50, 500):
        await pay(services, amount)
    found = await shadow_report(services.store, "default", 0, lambda *_: None)
    (shadow,) = found.rules
    assert (found.calls, found.erased, shadow.rule) == (3, 0, "would stop all")
    assert shadow.verdict_counts == {("allow", "deny"): 1, ("ask", "deny"): 1, ("deny", "deny"): 1}


# R52
async def test_what_rules_did_is_told_of_the_newest_entries(services: AppServices) -> None:
    await services.put_policy("default", POLICY, "ada", {})
    for amount in (5, 50, 500):
        await pay(services, amount)
    found = await rule_activity(services.store, "default", 0, 1_000, lambda *_: None)
    assert {each.rule: each.verdicts for each in found.matched} == {
        "small passes": {"allow": 1},
        "": {"ask": 1},
        "large stops": {"deny": 1},
    }
    assert (found.complete, found.shadows.calls) == (True, 3)
    newest = await rule_activity(services.store, "default", 0, 1, lambda *_: None)
    assert (newest.complete, [each.rule for each in newest.matched]) == (False, ["large stops"])


async def test_a_look_at_what_rules_did_can_be_ended(services: AppServices) -> None:
    for number in range(501):
        await services.gate.check(call(number), WRITE)
    ended = await rule_activity(services.store, "default", 0, 1_000, lambda *_: False)
    assert (ended.complete, ended.shadows.calls) == (False, 500)
    nothing = await rule_activity(services.store, "nobody", 0, 1_000, lambda *_: False)
    assert (nothing.complete, nothing.matched) == (True, ())
