"""Messages of refusals: the full text, and the ids that come with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.approval import execute
from interlock.core.approval.approval import (
    Approval,
    DecisionRecord,
    cancel,
    decide,
    delegate,
    expire,
    resolve_unknown,
    undo,
)
from interlock.core.approval.propose import allow, check_same_call
from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import canonical, parse_json
from interlock.core.card import find_findings
from interlock.core.decision import Acknowledgement, Approve, read_decision
from interlock.core.errors import Error
from interlock.core.grant import Amounts, Grant, check_budget_argument, make, parse_budget, revoke, use
from interlock.core.ledger.event import Change, Moment, Payload
from interlock.core.policy.policy import Allow, Ask, Stage
from interlock.core.ports import ApprovalQuery
from interlock.core.run import Run, renew_run, resume_run
from interlock.core.search import check_scalar, make_search_terms
from tests.unit.builders import (
    ADMIN,
    ALICE,
    BOB,
    CAROL,
    DAVE,
    FINANCE,
    LEGAL,
    NOW,
    PAY,
    VIEWER,
    approval_in_status,
    approve,
    at,
    at_with_clock_behind,
    call,
    edit,
    pending,
    prepare_edit,
    proposal,
    respond,
    start_call,
    store_row,
    users,
)

Act = Callable[[], object]
DEADLINE = NOW + Ask().expires_in
FINANCE_THEN_LEGAL = Ask("both", (Stage(FINANCE), Stage(LEGAL)))
THREE_STAGES = Ask("all", (Stage(FINANCE), Stage(LEGAL), Stage(FINANCE)))
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
COUNTED = replace(GRANT, budget="5", budget_of="amount")
NO_ARGUMENTS = replace(PAY, schema={"properties": {}, "additionalProperties": False})
LISTED = replace(PAY, schema={"properties": {"to": {}, "sum": {}}, "additionalProperties": False})
REJECTED = approval_in_status("rejected", decision=DecisionRecord("reject", "bob", NOW))
HIDDEN_TEXT = pending(alarms=("agent_secret:",))
HIDDEN_FIELD = pending(alarms=("/to", "agent_secret:"))
ALARMING = pending(alarms=("/to: hidden", "/amount: look-alike"))


def refusal(act: Act) -> dict[str, object]:
    """The refusal as programs get it, whether it was raised or is kept with the attempt."""
    try:
        result = act()
    except Error as error:
        return error.to_json()
    assert isinstance(result, Change)
    assert result.error is not None
    return result.error.to_json()


def refusal_body(code: str, message: str, **ids: object) -> dict[str, object]:
    return {"error": code, "message": message, "approval_id": "id", **ids}


def invalid_body(code: str, message: str, **ids: object) -> dict[str, object]:
    return {**refusal_body(code, message, **ids), "problems": []}


def cases(*found: tuple[str, Act, dict[str, object]]) -> Any:
    return pytest.mark.parametrize(("act", "words"), [pytest.param(*rest, id=name) for name, *rest in found])


@cases(
    (
        "an outsider",
        lambda: decide(pending(FINANCE_THEN_LEGAL), approve(pending()), DAVE, at()),
        refusal_body("forbidden", "You may not decide this approval. It needs team finance."),
    ),
    (
        "a viewer",
        lambda: decide(pending(), approve(pending()), VIEWER, at()),
        refusal_body("forbidden", "You may not decide this approval. It needs the requester, a reviewer or an admin."),
    ),
    (
        "the second stage first",
        lambda: decide(pending(FINANCE_THEN_LEGAL), approve(pending()), CAROL, at()),
        refusal_body("forbidden", "Another stage has to approve first: team finance."),
    ),
    (
        "the second stage, when it is open",
        lambda: decide(
            decide(pending(FINANCE_THEN_LEGAL), approve(pending()), ALICE, at()).state, approve(pending()), DAVE, at()
        ),
        refusal_body("forbidden", "You may not decide this approval. It needs team legal."),
    ),
    (
        "an answer of the wrong kind",
        lambda: decide(pending(Ask(decisions=("approve", "edit"))), respond(pending()), ALICE, at()),
        {
            **invalid_body("invalid_decision", "This call cannot be answered by respond; allowed: approve, edit."),
            "problems": [{"pointer": "/kind", "message": "one of approve, edit"}],
        },
    ),
    (
        "an edited call, unseen",
        lambda: decide(replace(pending(), editors=("bob",)), Approve(), ALICE, at()),
        refusal_body(
            "digest_mismatch",
            "The arguments were edited or may deceive: look at the card and send its args_sha256.",
            args_sha256=pending().args_sha256,
        ),
    ),
    (
        "other arguments than seen",
        lambda: decide(pending(), Approve(Acknowledgement("0" * 64)), ALICE, at()),
        refusal_body(
            "digest_mismatch",
            "The arguments changed since you saw them. Reload the card.",
            args_sha256=pending().args_sha256,
        ),
    ),
    (
        "alarms",
        lambda: decide(ALARMING, approve(ALARMING), ALICE, at()),
        invalid_body(
            "findings_not_acknowledged",
            "Some arguments may deceive. Look at the card and acknowledge: /to: hidden, /amount: look-alike",
            findings=["/to: hidden", "/amount: look-alike"],
        ),
    ),
    (
        "arguments that the agent hides",
        lambda: decide(HIDDEN_TEXT, approve(HIDDEN_TEXT), ALICE, at()),
        invalid_body(
            "findings_not_acknowledged",
            "The agent hides arguments from you. Look at the card and acknowledge: agent_secret:",
            findings=["agent_secret:"],
        ),
    ),
    (
        "alarms beside what the agent hides",
        lambda: decide(HIDDEN_FIELD, approve(HIDDEN_FIELD), ALICE, at()),
        invalid_body(
            "findings_not_acknowledged",
            "Some arguments may deceive, and the agent hides others from you. "
            "Look at the card and acknowledge: /to, agent_secret:",
            findings=["/to", "agent_secret:"],
        ),
    ),
    (
        "an edit of something else",
        lambda: decide(pending(), edit(pending()), ALICE, at(), replace(prepare_edit(pending()), replaces="0" * 64)),
        refusal_body("digest_mismatch", "The arguments changed since you saw them. Reload the card."),
    ),
    (
        "an edit that brings alarms",
        lambda: decide(pending(), edit(pending()), ALICE, at(), prepare_edit(pending(), {}, None, "/to: hidden")),
        invalid_body(
            "findings_not_acknowledged",
            "Some arguments may deceive. Look at the card and acknowledge: /to: hidden",
            findings=["/to: hidden"],
        ),
    ),
    (
        "an edit that leaves no answer",
        lambda: decide(
            pending(Ask(decisions=("edit",))),
            edit(pending()),
            ALICE,
            at(),
            prepare_edit(pending(), {}, Ask("by mail", decisions=("respond",))),
        ),
        invalid_body(
            "invalid_decision",
            "The rule 'by mail', which holds for the edited call, leaves no answer that can be given.",
        ),
    ),
    (
        "a decision after another",
        lambda: decide(
            approval_in_status("responded", decision=DecisionRecord("respond", "bob", 7)),
            approve(pending()),
            ALICE,
            at(),
        ),
        refusal_body(
            "already_decided",
            "Already decided: bob (respond). Nothing was changed.",
            status="responded",
            decision={"kind": "respond", "by": "bob", "at": 7, "reason": ""},
        ),
    ),
    (
        "a decision after nobody's",
        lambda: decide(approval_in_status("succeeded"), approve(pending()), ALICE, at()),
        refusal_body(
            "already_decided",
            "Already decided: succeeded. Nothing was changed.",
            status="succeeded",
            decision=None,
        ),
    ),
    (
        "a decision after the deadline",
        lambda: decide(pending(), approve(pending()), ALICE, at(pending().deadlines.expires_at)),
        refusal_body("expired", "This approval has expired. Let the agent propose the call again."),
    ),
)
def test_a_decision_that_does_not_count_says_why(act: Act, words: dict[str, object]) -> None:
    assert refusal(act) == words


@cases(
    (
        "undo of an approval",
        lambda: undo(approval_in_status("approved"), BOB, at()),
        refusal_body("conflict", "Only a rejection can be undone; this is approved."),
    ),
    (
        "undo of a rejection that nobody made",
        lambda: undo(approval_in_status("rejected"), BOB, at()),
        refusal_body("conflict", "Only a rejection can be undone; this is rejected."),
    ),
    (
        "undo of somebody else's",
        lambda: undo(REJECTED, ALICE, at()),
        refusal_body("forbidden", "bob rejected this; only they or an admin can undo it."),
    ),
    (
        "undo too late",
        lambda: undo(REJECTED, ADMIN, at(NOW + 8_000)),
        refusal_body("expired", "Too late to undo: the agent already has the rejection."),
    ),
    (
        "delegation by an outsider",
        lambda: delegate(pending(FINANCE_THEN_LEGAL), users("eve"), DAVE, at()),
        refusal_body("forbidden", "Only those who may decide can delegate."),
    ),
    (
        "cancelling what runs",
        lambda: cancel(approval_in_status("running"), "agent", "", at()),
        refusal_body("already_started", "This cannot be cancelled: it is running."),
    ),
    (
        "resolving what is known",
        lambda: resolve_unknown(approval_in_status("failed"), "", ALICE, None, at(), ok=True),
        refusal_body("conflict", "Only an unknown outcome can be resolved; this is failed."),
    ),
    (
        "resolving as a viewer",
        lambda: resolve_unknown(approval_in_status("unknown"), "", VIEWER, None, at(), ok=True),
        refusal_body(
            "forbidden",
            "Only people who may decide this call resolve its outcome: the requester, a reviewer or an admin.",
        ),
    ),
    (
        "resolving as an outsider to all stages",
        lambda: resolve_unknown(approval_in_status("unknown", terms=THREE_STAGES), "", DAVE, None, at(), ok=True),
        refusal_body(
            "forbidden",
            "Only people who may decide this call resolve its outcome: team finance or team legal.",
        ),
    ),
    (
        "a call id that comes back with other arguments",
        lambda: check_same_call(pending(), call({"amount": 6})),
        {
            "error": "call_mismatch",
            "message": "This call id is known with another tool, other arguments or another agent. Use a new call id.",
        },
    ),
)
def test_what_cannot_be_done_with_an_approval_says_why(act: Act, words: dict[str, object]) -> None:
    assert refusal(act) == words


def finish(approval: Approval, fence: int, now: int = NOW) -> Change[Approval]:
    return execute.finish(approval, fence, Payload(result=b"1"), at(now), ok=True)


@cases(
    (
        "lapsed",
        lambda: start_call(approval_in_status("approved"), NOW + 3_600_000),
        refusal_body("expired", "The approval lapsed: it was not started in time. Propose the call again."),
    ),
    (
        "running",
        lambda: start_call(approval_in_status("running")),
        refusal_body("already_started", "This call was started already; it is running.", status="running"),
    ),
    (
        "pending",
        lambda: start_call(pending()),
        refusal_body("not_approved", "This call still waits for a decision.", status="pending"),
    ),
    (
        "expired",
        lambda: start_call(approval_in_status("expired")),
        refusal_body("expired", "This approval has expired. Let the agent propose the call again."),
    ),
    (
        "rejected",
        lambda: start_call(approval_in_status("rejected")),
        refusal_body("not_approved", "This call may not run: it is rejected.", status="rejected"),
    ),
    (
        "other bytes",
        lambda: start_call(approval_in_status("approved"), args={"amount": 6}),
        refusal_body("binding_broken", "What is stored is not what was approved. Nothing was run."),
    ),
    (
        "another definition",
        lambda: execute.start(store_row(approval_in_status("approved")), "r1", 1, "0" * 64, at(), runner_is_dead=False),
        refusal_body("binding_broken", "The tool's definition changed after the approval. Propose the call again."),
    ),
    (
        "a lease that lapsed",
        lambda: execute.renew(approval_in_status("running"), 1, 1, at(NOW + 60_000)),
        refusal_body("lease_lost", "The lease has lapsed: this runner no longer owns the call."),
    ),
    (
        "a fence that never was",
        lambda: finish(approval_in_status("running"), 2),
        refusal_body("conflict", "This call was not started under this fence.", status="running"),
    ),
    (
        "a late finish",
        lambda: finish(approval_in_status("running"), 1, NOW + 60_000),
        refusal_body(
            "lease_lost",
            "Too late: the lease had lapsed. What you reported is kept as evidence; a person has to resolve it.",
            status="running",
        ),
    ),
)
def test_what_cannot_run_says_why(act: Act, words: dict[str, object]) -> None:
    assert refusal(act) == words


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda: decide(pending(), approve(pending()), ALICE, at_with_clock_behind()), "is approved"),
        (lambda: edited_without_a_vote(at_with_clock_behind()), "is approved"),
        (lambda: undo(REJECTED, BOB, at_with_clock_behind()), "is approved"),
        (lambda: allow(proposal(), Allow(), at_with_clock_behind()), "is allowed"),
        (
            lambda: execute.start(
                store_row(approval_in_status("approved")), "r1", 1, "", at_with_clock_behind(), runner_is_dead=False
            ),
            "starts",
        ),
    ],
)
def test_nothing_goes_on_while_the_clock_is_behind(act: Act, what: str) -> None:
    message = f"The clock is behind the ledger's last entry. Nothing {what} until it is corrected."
    assert refusal(act) == {"error": "clock_behind", "message": message}


def edited_without_a_vote(moment: Moment) -> Change[Approval]:
    """The editor may edit and, as the one who edited, not approve."""
    approval = pending(Ask(exclude=frozenset({"editor"})))
    return decide(approval, edit(approval), ALICE, moment, prepare_edit(approval))


def test_what_time_decided_says_so() -> None:
    timed_out, approved = (
        expire(pending(terms), at(DEADLINE)).state.decision for terms in (Ask(), Ask(on_expiry="approve"))
    )
    assert timed_out == DecisionRecord(
        "expire", "interlock", DEADLINE, via="", reason="The call timed out: nobody decided in time."
    )
    assert approved == DecisionRecord(
        "approve", "interlock", DEADLINE, via="", reason="The rule approves when nobody answers in time."
    )


def test_a_run_that_is_somebody_elses_says_so() -> None:
    run = Run(
        "r", workspace="default", agent="helper", status="open", runner="one", lease_until=NOW + 1, created_at=NOW
    )
    words = {"error": "conflict", "message": "This run is closed or its program is alive.", "run_id": "r"}
    assert refusal(lambda: resume_run(run, "two", 1, at(), runner_is_dead=False)) == words
    words = {"error": "conflict", "message": "This run belongs to another program now.", "run_id": "r"}
    assert refusal(lambda: renew_run(run, "two", 1, at())) == words


# --- what cannot be read, stored or made


def nested_list(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: canonical("\ud800"), "A text holds half a surrogate pair, which is not a character."),
        (lambda: canonical("x" * 1_048_577), "The value takes 1,048,579 bytes; at most 1,048,576 are accepted."),
        (lambda: canonical("\0"), "A text holds a NUL character, which databases cut or refuse. Remove it."),
        (lambda: canonical({1, 2}), "A value of type set has no JSON form."),
        (lambda: canonical({1: 2}), "A member's name is 1; names are texts."),
        (lambda: canonical(nested_list(65)), "The value is nested deeper than 64 levels."),
        (lambda: canonical(10**40), "A number has more than 40 digits."),
        (lambda: canonical(float("nan")), "NaN and infinite numbers have no JSON form."),
        (lambda: parse_json(" " * 1_048_577), "The body takes 1,048,577 bytes; at most 1,048,576 are accepted."),
        (lambda: parse_json(b"\xff"), "The body is not UTF-8."),
        (
            lambda: parse_json("{"),
            "The body is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1).",
        ),
        (lambda: parse_json("\ud800"), "The body holds half a surrogate pair, which is not a character."),
        (lambda: parse_json('{"a": 1, "a": 2}'), "The name 'a' appears twice in one object."),
        (lambda: parse_json("1" + "0" * 50 + "e999"), "The number 1" + "0" * 39 + " is too large."),
        (lambda: parse_json("1" + "0" * 40), "A number has more than 40 digits."),
        (lambda: parse_json("NaN"), "NaN is not JSON."),
        (lambda: propose("pay", [], "run", "call"), "The arguments of a call are an object, not list."),
        (lambda: propose("", {}, "run", "call"), "tool is 1 to 200 characters that can be seen."),
        (lambda: propose("pay", {}, "", "call"), "run_id is 1 to 200 characters that can be seen."),
        (lambda: propose("pay", {}, "run", ""), "call_id is 1 to 200 characters that can be seen."),
        (lambda: call(workspace=""), "workspace is 1 to 200 characters that can be seen."),
        (lambda: call(agent="\n"), "agent is 0 to 200 characters that can be seen."),
        (lambda: call(expires_in=-1), "expires_in is a whole number of milliseconds, not below 0."),
        (lambda: call(priority="urgent"), "priority is 'urgent'; it is one of low, medium, high."),
        (lambda: call(setting=""), "setting is ''; it is one of chat, queue, paused."),
        (lambda: call(teams=["a"]), "teams is a tuple of at most 64 names."),
        (lambda: call(teams=("",)), "teams is 1 to 200 characters that can be seen."),
        (lambda: call(agent_says="x" * 20_001), "agent_says is a text of at most 20,000 characters."),
        (lambda: ToolSpec(""), "tool is 1 to 200 characters that can be seen."),
        (lambda: ToolSpec("pay", "lethal"), "effect is 'lethal'; it is one of read, write, destructive."),
        (lambda: ToolSpec("pay", confirm="mail"), "confirm is 'mail'; it is one of chat."),
        (
            lambda: make_search_terms("default", ApprovalQuery(text="?!")),
            "There is no word to search for. Give letters or digits.",
        ),
        (
            lambda: make_search_terms("default", ApprovalQuery(text=" ".join(map(str, range(33))))),
            "A search takes at most 32 words. Leave some out.",
        ),
        (lambda: check_scalar("to", []), "The argument to is compared with a text, a number, true, false or null."),
        (
            lambda: parse_budget("-" * 60),
            "A budget is a number above 0, such as 500 or 99.50, of at most 40 digits; not '" + "-" * 50 + "'.",
        ),
        (
            lambda: find_findings({"n" * 999_999: list(range(99))}),
            "The names of the arguments are too long for so many values. Shorten them.",
        ),
    ],
)
def test_what_cannot_be_taken_says_why(act: Act, message: str) -> None:
    assert refusal(act) == {"error": "invalid_request", "message": message}


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ({"tool": ""}, "The tool of a grant is a name of 1 to 200 characters that can be seen."),
        ({"agent": "\t"}, "The agent of a grant is a name of 1 to 200 characters that can be seen."),
        ({"reason": "x" * 501}, "The reason has at most 500 characters."),
        ({"expires_at": NOW}, "A grant ends in the future, within a year."),
        ({"max_uses": 0}, "A grant is good for at least one use, and for at most 1,000,000,000."),
        ({"budget": "5"}, "A budget takes two: the most that may be spent, and the argument that is counted."),
        ({"budget": "5", "budget_of": "x" * 201}, "What a budget counts has at most 200 characters."),
        ({"budget": "5", "budget_of": "/*"}, "A budget counts one number of a call: its place has no '*'."),
    ],
)
def test_a_grant_that_cannot_be_made_says_why(draft: dict[str, Any], message: str) -> None:
    assert refusal(lambda: make(replace(GRANT, **draft), ALICE, at())) == {
        "error": "invalid_request",
        "message": message,
    }


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda: make(GRANT, VIEWER, at()),
            {"error": "forbidden", "message": "Only reviewers and admins can make a grant: people, never a program."},
        ),
        (
            lambda: revoke(GRANT, BOB, at()),
            {
                "error": "forbidden",
                "message": "alice made this grant; only they or an admin can revoke it.",
                "grant_id": "g1",
            },
        ),
        (
            lambda: revoke(GRANT, ALICE, at(), "x" * 501),
            {"error": "invalid_request", "message": "The reason has at most 500 characters."},
        ),
        (
            lambda: use(GRANT, Amounts(b"{}"), at(NOW + 1)),
            {"error": "conflict", "message": "The grant is used up, expired or revoked.", "grant_id": "g1"},
        ),
        (
            lambda: check_budget_argument(COUNTED, LISTED),
            {
                "error": "invalid_request",
                "message": "pay has no argument 'amount' to count for a budget. There are: sum, to.",
            },
        ),
        (
            lambda: check_budget_argument(COUNTED, NO_ARGUMENTS),
            {
                "error": "invalid_request",
                "message": "pay has no argument 'amount' to count for a budget. There are: none.",
            },
        ),
        (
            lambda: check_budget_argument(COUNTED, replace(PAY, secret=("amount",))),
            {"error": "invalid_request", "message": "'amount' of pay is secret: a sum would tell it. Limit the uses."},
        ),
    ],
)
def test_what_cannot_be_done_with_a_grant_says_why(act: Act, words: dict[str, object]) -> None:
    assert refusal(act) == words


@pytest.mark.parametrize(
    ("body", "message", "pointer", "problem"),
    [
        ("yes", "A decision is an object with a kind.", "", "not an object"),
        ({"yes": 1}, "Unknown field 'yes'.", "/yes", "unknown"),
        ({"kind": "maybe"}, "The kind is one of approve, edit, respond, reject.", "/kind", "unknown kind"),
        (
            {"kind": "approve", "args": {}},
            "Only an edit carries arguments. Nothing was decided.",
            "/args",
            "not an edit",
        ),
        ({"kind": "edit"}, "An edit carries the arguments as an object.", "/args", "not an object"),
        (
            {"kind": "edit", "args": {1: 1}},
            "A member's name is 1; names are texts.",
            "/args",
            "A member's name is 1; names are texts.",
        ),
        ({"kind": "respond"}, "A response carries a message or an answer.", "/message", "missing"),
        (
            {"kind": "respond", "answer": {1: 1}},
            "A member's name is 1; names are texts.",
            "/answer",
            "A member's name is 1; names are texts.",
        ),
        ({"kind": "reject", "reason": 1}, "reason is a text.", "/reason", "not a text"),
        ({"kind": "reject", "reason": "x" * 501}, "reason has more than 500 characters.", "/reason", "too long"),
        ({"kind": "reject", "comment": "x" * 501}, "comment has more than 500 characters.", "/comment", "too long"),
        (
            {"kind": "respond", "message": "x" * 20_001},
            "message has more than 20000 characters.",
            "/message",
            "too long",
        ),
        (
            {"kind": "approve", "args_sha256": "x" * 65},
            "args_sha256 has more than 64 characters.",
            "/args_sha256",
            "too long",
        ),
        (
            {"kind": "approve", "acknowledged": "all"},
            "acknowledged is a list of finding ids.",
            "/acknowledged",
            "not a list of ids",
        ),
    ],
)
def test_a_decision_that_cannot_be_read_says_where(body: object, message: str, pointer: str, problem: str) -> None:
    words = {"error": "invalid_decision", "message": message, "problems": [{"pointer": pointer, "message": problem}]}
    assert refusal(lambda: read_decision(body)) == words
