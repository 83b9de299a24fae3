"""Proposals: how an approval begins, what a denied call leaves, and arguments that violate the schema."""

import json
from dataclasses import replace

import pytest

from interlock.core.approval.approval import DecisionRecord, decide, expire
from interlock.core.approval.propose import (
    MAX_FAILING_ARGS,
    allow,
    allow_by_grant,
    check_approval_id,
    check_same_call,
    deny,
    deny_by_preview,
    id_taken_error,
    request_approval,
)
from interlock.core.approval.vote import schema_error, schema_findings
from interlock.core.call import (
    SECRET_MARKER,
    Caller,
    PreCheck,
    ToolSpec,
    agent_actor,
    fingerprint,
    parse_agent_actor,
    parse_caller,
)
from interlock.core.canonical import canonical, digest
from interlock.core.card import Finding
from interlock.core.errors import CallMismatch, ClockBehind, InvalidDecision, InvalidRequest, Problem
from interlock.core.grant import Grant
from interlock.core.ledger.erasure import erase_content
from interlock.core.ledger.event import Payload
from interlock.core.policy.policy import Allow, Ask, Deny, Stage
from tests.unit.builders import (
    ALICE,
    ARGS,
    FINANCE,
    KEY,
    NOW,
    OTHER_ARGS,
    PAY,
    approve,
    at,
    at_with_clock_behind,
    call,
    edit,
    pending,
    pending_with_payload,
    prepare_edit,
    proposal,
    reject,
    respond,
)

GRANT = Grant(
    id="g1",
    workspace="default",
    tool="pay",
    spec_sha256=PAY.sha256,
    created_by="alice",
    teams=frozenset(),
    role="reviewer",
    created_at=0,
    expires_at=NOW + 1,
)
TERMS = Ask("two", (Stage(FINANCE, 2), Stage()), priority="high", expires_in=50, start_within=70)


# R1, R23
def test_a_request_waits_for_people_until_its_deadline() -> None:
    change = request_approval(proposal(alarms=("f1",)), TERMS, at())
    approval = change.state
    assert (approval.id, approval.status, approval.version, approval.terms) == ("id", "pending", 1, TERMS)
    assert (approval.created_at, approval.deadlines.expires_at, approval.findings.alarms) == (NOW, NOW + 50, ("f1",))
    assert (approval.decision, approval.deadlines.start_by, approval.lease.fence, approval.votes) == (None, None, 0, ())
    assert approval.subject.priority == "high"
    assert approval.args_sha256 == digest(canonical(ARGS))
    assert approval.binding == approval.subject.binding(approval.args_sha256, TERMS.sha256)


def test_calls_that_one_rule_allows_have_the_same_terms() -> None:
    one, other = (allow(proposal(), Allow("r", 70), at()).state.terms for _ in range(2))
    assert one is other
    assert one == Ask("r", priority=one.priority, start_within=70)
    assert allow(proposal(), Allow("s", 70), at()).state.terms.rule == "s"
    assert allow(proposal(), Allow("r", 71), at()).state.terms.start_within == 71


# R41, R49
def test_a_request_leaves_one_event_that_says_what_holds() -> None:
    change = request_approval(proposal(PAY, policy_sha256="p", thread_id="t"), TERMS, at())
    (event,) = change.events
    assert (event.kind, event.actor, event.approval_id) == ("proposed", "agent:helper", "id")
    assert event.data == {
        "status": "pending",
        "binding": change.state.binding,
        "tool": "pay",
        "idempotent": False,
        "rule": "two",
        "quorum": [2, 1],
        "expires_at": NOW + 50,
    }
    assert event.content == {
        "args_sha256": change.state.args_sha256,
        "run_id": "run",
        "call_id": "call",
        "requester": "rita",
        "policy": "p",
    }


# R52
def test_what_shadow_rules_would_have_done_is_kept() -> None:
    (event,) = request_approval(proposal(shadows=(("strict", "deny"),)), TERMS, at()).events
    assert event.content is not None
    assert event.content["shadow"] == [{"rule": "strict", "then": "deny"}]


# R2, R45
def test_the_payload_holds_the_bytes_that_run_and_what_people_read() -> None:
    change = request_approval(proposal(preview="3 rows", agent_says="please"), TERMS, at())
    assert change.payload == Payload(canonical(ARGS), None, "Pay?", "please", "3 rows")
    bare = request_approval(proposal(), TERMS, at()).payload
    assert bare == Payload(canonical(ARGS), None, "Pay?", None, None)


# R45
def test_the_version_of_what_people_read_is_kept_only_if_they_are_asked() -> None:
    made = proposal(preview="3 rows", preview_version="v1")
    changes = [request_approval(made, TERMS, at()), allow(made, Allow("fine"), at())]
    changes += [allow_by_grant(made, TERMS, GRANT, at())]
    assert [change.payload and change.payload.preview_version for change in changes] == ["v1", None, None]


# R47, R53
def test_secrets_are_bound_but_not_shown() -> None:
    spec = ToolSpec("pay", "write", secret=("to",))
    change = request_approval(proposal(spec), TERMS, at())
    shown = canonical({"amount": 5, "to": {SECRET_MARKER: fingerprint("ann", KEY)}})
    assert change.payload is not None
    assert (change.payload.args, change.payload.shown) == (canonical(ARGS), shown)
    assert change.state.args_sha256 == digest(shown)
    assert change.state.binding != change.state.subject.binding(digest(shown), TERMS.sha256)
    assert change.state.binding == change.state.subject.binding(digest(shown), TERMS.sha256, canonical(ARGS))
    assert "ann" not in str(change.events)


# R46
def test_an_allowed_write_is_born_approved() -> None:
    change = allow(proposal(), Allow("writes are fine", 70), at())
    approval = change.state
    assert (approval.status, approval.version, approval.deadlines.start_by, approval.grant_id) == (
        "approved",
        1,
        NOW + 70,
        "",
    )
    assert approval.decision == DecisionRecord(
        "approve", "policy", NOW, reason="Allowed by the rule 'writes are fine'."
    )
    (event,) = change.events
    assert (event.kind, event.data["status"], event.data["by"]) == ("allowed", "approved", "rule")
    assert event.data["rule"] == "writes are fine"
    assert allow(proposal(), Allow(), at()).state.decision == DecisionRecord("approve", "policy", NOW)
    assert change.payload is not None


# R20, R51
def test_a_grant_stands_for_the_yes_of_its_maker() -> None:
    change = allow_by_grant(proposal(), TERMS, GRANT, at())
    approval = change.state
    assert (approval.status, approval.deadlines.start_by, approval.grant_id) == ("approved", NOW + 70, "g1")
    assert approval.decision == DecisionRecord("approve", "alice", NOW, via="grant", reason="Covered by the grant g1.")
    (event,) = change.events
    assert (event.kind, event.data["by"], event.data["grant"], event.data["rule"]) == ("allowed", "grant", "g1", "two")
    assert (event.data["granted_by"], event.data["use"], event.data["uses_left"]) == ("alice", 1, None)
    assert event.content is not None
    assert event.content["reason"] == "Covered by the grant g1, which alice made."
    assert "amount" not in event.content
    assert change.grant == replace(GRANT, uses=1), "the use is written with the approval"


# R51
def test_what_a_use_took_of_a_budget_is_told_and_can_be_erased() -> None:
    grant = replace(GRANT, max_uses=3, uses=1, budget="20", budget_of="amount", spent="7.5")
    change = allow_by_grant(proposal(), TERMS, grant, at())
    (event,) = change.events
    assert (event.data["use"], event.data["uses_left"]) == (2, 1)
    assert event.content is not None
    assert (event.content["amount"], event.content["budget_left"]) == ("5", "7.5")
    assert {"amount", "budget_left"}.isdisjoint(event.data)
    assert change.grant == replace(grant, uses=2, spent="12.5")


# design rule 7
def test_nothing_is_allowed_while_the_clock_is_behind_but_anything_can_be_asked() -> None:
    with pytest.raises(ClockBehind):
        allow(proposal(), Allow(), at_with_clock_behind())
    with pytest.raises(ClockBehind):
        allow_by_grant(proposal(), TERMS, GRANT, at_with_clock_behind())
    assert request_approval(proposal(), TERMS, at_with_clock_behind()).state.status == "pending"


# R35, R41
def test_a_denied_call_leaves_an_event_and_no_approval() -> None:
    change = deny(proposal(policy_sha256="p"), Deny("Not today.", "no"))
    assert (change.state, change.payload) == (None, None)
    (event,) = change.events
    assert (event.kind, event.actor, event.approval_id) == ("denied", "agent:helper", "")
    assert event.data == {"tool": "pay", "rule": "no", "spec": PAY.sha256}
    assert event.content is not None
    assert (event.content["reason"], event.content["args_sha256"]) == ("Not today.", digest(canonical(ARGS)))


# R35, R41
def test_a_call_that_would_fail_is_denied_by_its_preview_under_the_rule_that_asked() -> None:
    change = deny_by_preview(proposal(), "payments ask", "There is no account 7.")
    (event,) = change.events
    assert (change.state, event.kind) == (None, "denied")
    assert event.data == {"tool": "pay", "rule": "payments ask", "spec": PAY.sha256, "by": "preview"}
    assert event.content is not None
    assert (event.content["reason"], event.content["args"]) == ("There is no account 7.", ARGS)


# R35, R41
def test_long_arguments_of_a_call_that_would_fail_are_not_kept() -> None:
    """One message of a model can contain many such calls, and nobody is asked about them."""
    args = {"to": "x" * MAX_FAILING_ARGS}
    made = proposal(args=args, sentence="x" * MAX_FAILING_ARGS)
    (event,) = deny_by_preview(made, "payments ask", "There is no account 7.").events
    assert event.data["args_left_out"] == len(canonical(args))
    assert "spec" not in event.data  # else older programs would rehearse the call, and miss its arguments
    assert event.content is not None
    assert event.content["args_sha256"] == digest(canonical(args))
    assert "args" not in event.content
    assert event.content["sentence"] == "x" * 1_000
    assert len(str(event)) < MAX_FAILING_ARGS


# R35, R41
def test_arguments_of_16_kib_of_a_call_that_would_fail_are_kept() -> None:
    args = {"to": "x" * (16_384 - len(canonical({"to": ""})))}
    (event,) = deny_by_preview(proposal(args=args), "payments ask", "There is no account 7.").events
    assert event.content is not None
    assert (event.content["args"], event.data["spec"]) == (args, PAY.sha256)
    (event,) = deny_by_preview(proposal(args={"to": args["to"] + "x"}), "payments ask", "No.").events
    assert event.data["args_left_out"] == 16_385


# R35, R52
def test_a_denied_call_can_be_judged_again_from_its_event() -> None:
    more = {"agent_path": ("boss", "helper"), "thread_id": "t", "priority": "high", "teams": ("ops",)}
    (event,) = deny(proposal(setting="chat", **more), Deny("Not today.", "no")).events
    assert event.content is not None
    kept = {name: event.content[name] for name in ("args", "sentence", "agent", *more, "setting")}
    assert kept == {
        "args": ARGS,
        "sentence": "Pay?",
        "agent": "helper",
        "agent_path": ["boss", "helper"],
        "thread_id": "t",
        "priority": "high",
        "teams": ["ops"],
        "setting": "chat",
    }
    assert event.content["known"] is None
    assert "refusal" not in event.content


# R35, R52
def test_a_denied_call_says_what_its_key_proved() -> None:
    caller = Caller(owner="key:k", owners=frozenset({"key:k"}), agents=("a",), credential="k", teams=("ops",))
    (event,) = deny(proposal(caller=caller, pre_check=PreCheck("It looks like ann.")), Deny("Not today.", "no")).events
    assert event.content is not None
    content = json.loads(canonical(event.content))
    assert (content["refusal"], parse_caller(content["owner"], content["known"])) == ("It looks like ann.", caller)


# R47, R53
def test_the_event_of_a_denied_call_holds_no_secret() -> None:
    (event,) = deny(proposal(ToolSpec("pay", "write", secret=("to",))), Deny("Not today.")).events
    assert event.content is not None
    assert event.content["args"] == {"amount": 5, "to": {SECRET_MARKER: fingerprint("ann", KEY)}}
    assert "ann" not in str(event)


# R52
def test_what_rules_match_on_is_kept_where_the_approval_does_not_keep_it() -> None:
    made = proposal(priority="low", teams=("ops",), setting="paused", switch="on")
    for change in (request_approval(made, TERMS, at()), allow(made, Allow(), at())):
        content = change.events[0].content
        assert content is not None
        kept = [content[name] for name in ("priority", "teams", "setting", "switch")]
        assert kept == ["low", ["ops"], "paused", "on"]


def test_an_agent_without_a_name_is_still_an_agent() -> None:
    assert agent_actor(call(agent="")) == "agent"
    assert agent_actor(call(agent="helper")) == "agent:helper"
    for name in ("", "helper", "agent", "agent:", "agent:agent"):
        assert parse_agent_actor(agent_actor(call(agent=name))) == name


# R24, R47
def test_a_known_call_id_comes_back_with_the_same_call_or_is_refused() -> None:
    approval = pending()
    check_same_call(approval, call())
    check_same_call(replace(approval, args_sha256="edited since"), call(agent_says="again"))
    for other in (call(OTHER_ARGS), call(tool="refund")):
        with pytest.raises(CallMismatch, match="Use a new call id") as caught:
            check_same_call(approval, other)
        assert caught.value.ids == {}, "its approval id could be another agent's"


# R13
def test_sub_agents_share_a_run_and_no_approvals() -> None:
    approval = pending()
    mine = replace(approval, subject=approval.subject._replace(agent_path=("support", "mailer")))
    check_same_call(mine, call(agent_path=("support", "mailer")))
    check_same_call(mine, call())
    check_same_call(approval, call(agent_path=("support", "clerk")))
    with pytest.raises(CallMismatch, match="another agent"):
        check_same_call(mine, call(agent_path=("support", "clerk")))


SCHEMA_ERRORS = (Problem("/amount", "not a number"), Problem("", "to is missing"))
ALARMS = ("misfit:/amount", "misfit:")


# R22, R27
def test_each_place_that_does_not_fit_is_one_alarm() -> None:
    twice = (*SCHEMA_ERRORS, Problem("/amount", "too\u202esmall"))
    assert schema_findings(twice) == (
        Finding(ALARMS[0], "misfit", "alarm", "/amount", "Does not fit the tool: not a number; too\\u{202e}small."),
        Finding(ALARMS[1], "misfit", "alarm", "", "Does not fit the tool: to is missing."),
    )
    assert schema_findings(()) == ()


# R22, R27, R41
def test_an_invalid_call_cannot_be_approved_even_if_acknowledged() -> None:
    approval = pending(alarms=ALARMS, schema_errors=SCHEMA_ERRORS)
    change = decide(approval, approve(approval, *ALARMS), ALICE, at())
    assert change.state is approval
    assert [event.kind for event in change.events] == ["decision_refused"]
    assert isinstance(change.error, InvalidDecision)
    assert change.error.to_json() == {
        "error": "invalid_decision",
        "message": "The arguments do not fit the tool's schema: /amount: not a number; /: to is missing. "
        "Edit the call, or reject it.",
        "approval_id": approval.id,
        "problems": [
            {"pointer": "/amount", "message": "not a number"},
            {"pointer": "", "message": "to is missing"},
        ],
    }


# R22, R27
def test_an_invalid_call_can_be_rejected_answered_and_edited_into_a_valid_one() -> None:
    approval = pending(alarms=ALARMS, schema_errors=SCHEMA_ERRORS)
    assert decide(approval, reject(approval), ALICE, at()).state.status == "rejected"
    assert decide(approval, respond(approval), ALICE, at()).state.status == "responded"
    edited = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval)).state
    assert (edited.status, edited.findings.alarms, edited.findings.schema_errors) == ("approved", (), ())


# R28
def test_silence_does_not_approve_an_invalid_call() -> None:
    approval = pending(Ask(on_expiry="approve"), alarms=ALARMS, schema_errors=SCHEMA_ERRORS)
    assert expire(approval, at(NOW + 10**9)).state.status == "expired"


# R41
def test_the_record_says_what_did_not_fit_and_erasing_takes_it() -> None:
    stored = pending_with_payload(alarms=ALARMS, schema_errors=SCHEMA_ERRORS)
    assert stored.approval.findings.schema_errors == SCHEMA_ERRORS
    assert erase_content(stored.approval, "ada", NOW).findings.schema_errors == ()


# R22, R24
def test_a_call_known_under_another_id_is_refused_with_that_id() -> None:
    approval = pending()
    check_same_call(approval, call())
    check_same_call(approval, call(), approval.id)
    with pytest.raises(CallMismatch) as caught:
        check_same_call(approval, call(), "another")
    assert caught.value.message == "This call is known under another approval id."
    assert caught.value.ids == {}


# R22, R24
def test_an_id_that_is_taken_is_refused() -> None:
    error = id_taken_error()
    assert error.message == "This approval id belongs to another call. Use a new one."
    assert (error.code, error.ids) == ("call_mismatch", {})


def test_the_error_names_each_invalid_argument() -> None:
    error = schema_error(SCHEMA_ERRORS)
    assert error.ids["problems"][0] == {"pointer": "/amount", "message": "not a number"}  # type: ignore[index]
    assert "/amount: not a number; /: to is missing" in error.message


@pytest.mark.parametrize("given", ["x", "0192F0C1-2b3d-7c4e-9f60-718293a4b5c6", "0192f0c12b3d7c4e9f60718293a4b5c6"])
def test_an_approval_id_has_one_spelling(given: str) -> None:
    with pytest.raises(InvalidRequest):
        check_approval_id(given)
    check_approval_id("")
    check_approval_id("0192f0c1-2b3d-7c4e-9f60-718293a4b5c6")
