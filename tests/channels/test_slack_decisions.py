"""Every button and every form of Slack, end to end: from the message to the ledger, and back to the message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock.core.call import ToolSpec
from tests.channels.slack_scenario import PAY, PAY_ARGS, SlackScenario, open_slack_scenario
from tests.databases import SqliteFile
from tests.fakes.slack import buttons, texts
from tests.support import Clock, approve

DROP = ToolSpec("drop_index", "destructive", describe="Drop {name}")


@pytest.fixture
async def scenario(tmp_path: Path, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock) as made:
        yield made
        assert [each for each in made.slack.refusals if "invalid" in each] == []


def shown_texts(message: Any) -> str:
    return "\n".join(text for _, text in texts(message["blocks"]))


async def test_a_call_is_shown_with_all_that_is_needed_to_decide(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    [message] = scenario.slack.all_messages
    text = shown_texts(message)
    for part in (
        "Pay 123456789012345678901234567890 to ada",
        "pay_out",
        "medium",
        "EUR",
        "Decide by",
        "It waits for",
    ):
        assert part in text
    assert "hunter2" not in text
    assert [each["action_id"] for each in buttons(message)] == ["approve", "edit", "respond", "reject", "open"]
    assert list(buttons(message))[-1]["url"] == f"https://interlock.example/a/{approval_id}"
    assert message["unfurl_links"] is False
    assert message["text"].startswith("Pay 1234567890")


async def test_approve_decides_and_the_message_says_so(scenario: SlackScenario) -> None:  # R25 R41
    approval_id = await scenario.ask()
    answer = await scenario.click("bob", "approve")
    assert (answer.status_code, answer.content) == (200, b"")
    assert await scenario.decision(approval_id) == ("approve", "bob", "slack")
    [(_, actor, content)] = await scenario.events("approved")
    assert (actor, content["via"]) == ("bob", "slack")
    await scenario.sweep()
    [message] = scenario.slack.all_messages
    assert "Approved. bob approved it through slack." in shown_texts(message)
    assert list(buttons(message)) == []


async def test_what_is_risky_asks_again_before_it_is_approved(scenario: SlackScenario) -> None:
    await scenario.ask(spec=DROP, args={"name": "users"})
    first = next(buttons(scenario.slack.all_messages[0]))
    assert (first["style"], first["confirm"]["style"]) == ("danger", "danger")


async def test_reject_asks_for_a_reason_and_may_go_without(scenario: SlackScenario) -> None:
    approval_id, other = await scenario.ask(), await scenario.ask(2)
    form = await scenario.open_form("bob", "reject")
    assert await scenario.submit(form, {"Reason": "too much"}) == {}
    assert await scenario.decision(other) == ("reject", "bob", "slack")
    [(_, _, content)] = await scenario.events("rejected")
    assert (content["reason"], content["via"]) == ("too much", "slack")
    await scenario.click("bob", "reject", scenario.slack.all_messages[0])
    assert await scenario.submit(next(iter(scenario.slack.views.values()))) == {}
    assert await scenario.status(approval_id) == "rejected"


async def test_a_reason_that_is_too_long_is_not_lost(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    assert await scenario.submit(form, {"Reason": "x" * 501}) == {
        "Reason": "At most 500 characters are kept; these are 501."
    }
    assert form.id in scenario.slack.views
    assert await scenario.status(approval_id) == "pending"


async def test_edit_shows_a_field_for_each_argument_and_keeps_what_it_does_not_show(
    scenario: SlackScenario,
) -> None:  # R25 R27
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "edit")
    fields = {each["label"]["text"]: each for each in form.view["blocks"] if each["type"] == "input"}
    assert list(fields) == ["amount", "recipient", "currency", "note", "splits (JSON)", "urgent"]
    assert [name for name, each in fields.items() if not each["optional"]] == ["amount", "recipient"]
    assert fields["amount"]["element"]["initial_value"] == "123456789012345678901234567890"
    assert [each["text"]["text"] for each in fields["currency"]["element"]["options"]] == ["EUR", "USD"]
    assert any("stay unchanged" in text and "key" in text for _, text in texts(form.view["blocks"]))
    changes = {
        "amount": "123456789012345678901234567891",
        "currency": "USD",
        "urgent": "true",
        "note": "two\nlines",
        "splits (JSON)": "[3]",
    }
    assert await scenario.submit(form, changes) == {}
    payload = (await scenario.services.store.get("default", approval_id)).payload
    assert payload.args is not None
    assert b'"key":"hunter2-of-the-call"' in payload.args
    assert b'"amount":123456789012345678901234567891' in payload.args
    assert b'"currency":"USD"' in payload.args
    assert b'"note":"two\\nlines","recipient":"ada","splits":[3],"urgent":true' in payload.args
    assert await scenario.decision(approval_id) == ("edit", "bob", "slack")


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({"amount": "many"}, {"amount": "This is not a number."}),
        ({"amount": "true"}, {"amount": "This is not a number."}),
        ({"splits (JSON)": "[1"}, {"splits (JSON)": "This is not JSON. Put text in quotation marks."}),
        ({"amount": "x", "splits (JSON)": "NaN"}, {"amount", "splits (JSON)"}),
        ({"amount": "-1"}, {"amount"}),
        ({"splits (JSON)": '["a"]'}, {"splits (JSON)"}),
        ({}, {"amount": "There are no changes. Change something, or close this and approve the call."}),
    ],
)
async def test_what_does_not_fit_is_said_at_its_field_and_nothing_typed_is_lost(
    scenario: SlackScenario, values: dict[str, object], errors: Any
) -> None:  # R27
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "edit")
    said = await scenario.submit(form, values)
    assert said == errors or set(said) == errors
    assert form.id in scenario.slack.views
    assert await scenario.status(approval_id) == "pending"
    [(_, actor, content)] = await scenario.events("decision_refused")  # R41
    assert (actor, content["via"], bool(content["fields"])) == ("bob", "slack", True)
    assert await scenario.submit(form, {"amount": "5"}) == {}


async def test_an_argument_that_is_emptied_is_left_out_unless_it_is_needed(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask(args={**PAY_ARGS, "note": "x"})
    form = await scenario.open_form("bob", "edit")
    assert await scenario.submit(form, {"note": None}) == {}
    payload = (await scenario.services.store.get("default", approval_id)).payload
    assert b"note" not in (payload.args or b"")


async def test_respond_tells_the_agent_something_instead(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "respond")
    assert await scenario.submit(form, {"Message": "Ask me tomorrow"}) == {}
    stored = await scenario.services.store.get("default", approval_id)
    assert (stored.approval.status, stored.payload.result) == ("responded", b'"Ask me tomorrow"')


@pytest.mark.parametrize(
    ("asked", "values", "result"),
    [
        ({}, {"Answer": "Blue"}, b'"Blue"'),
        ({"choices": ["red", "blue"]}, {"Answer": "blue"}, b'"blue"'),
        ({"choices": [f"colour {n}" for n in range(30)]}, {"Answer": "colour 7"}, b'"colour 7"'),
        ({"choices": ["a" * 90, "b" * 3000]}, {"Answer": "1. aaa"}, b'"' + b"a" * 90 + b'"'),
        ({"schema": {"type": "integer"}}, {"Answer": "12345678901234567890"}, b"12345678901234567890"),
        ({"schema": {"type": "boolean"}}, {"Answer": "false"}, b"false"),
        ({"schema": {"type": "array"}}, {"Answer (JSON)": "[1, 2]"}, b"[1,2]"),
        (
            {"schema": {"type": "object", "properties": {"n": {"type": "integer"}, "why": {"type": "string"}}}},
            {"n": "3", "why": "so"},
            b'{"n":3,"why":"so"}',
        ),
    ],
)
async def test_a_question_of_the_agent_is_answered_by_what_it_asks_for(
    scenario: SlackScenario, asked: dict[str, object], values: dict[str, object], result: bytes
) -> None:  # R25 R27
    approval_id = await scenario.question(**asked)
    assert [each["action_id"] for each in buttons(scenario.slack.all_messages[0])] == ["respond", "open"]
    form = await scenario.open_form("bob", "respond")
    assert await scenario.submit(form, values) == {}
    stored = await scenario.services.store.get("default", approval_id)
    assert (stored.approval.status, stored.payload.result) == ("responded", result)


async def test_an_answer_that_does_not_fit_is_flagged_and_the_question_stays_open(
    scenario: SlackScenario,
) -> None:  # R27
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}}
    approval_id = await scenario.question(schema=schema)
    form = await scenario.open_form("bob", "respond")
    assert set(await scenario.submit(form, {"n": "6"})) == {"n"}
    assert await scenario.status(approval_id) == "pending"
    assert await scenario.submit(form, {"n": "5"}) == {}


async def test_what_may_deceive_is_approved_only_by_who_has_looked_at_each(scenario: SlackScenario) -> None:  # R47
    odd = {"path": "/tmp/\u202egpj.exe", "p\u0430th": "x"}
    approval_id = await scenario.ask(spec=ToolSpec("delete_file", "write", describe="Delete"), args=odd)
    assert shown_texts(scenario.slack.all_messages[0]).count("⚠") == 2
    form = await scenario.open_form("bob", "approve")
    said = await scenario.submit(form, {"Checked": [0]})
    assert "acknowledge" in said["Checked"]
    assert await scenario.status(approval_id) == "pending"
    assert await scenario.submit(form, {"Checked": "all"}) == {}
    [(_, _, content)] = await scenario.events("approved")
    assert len(content["acknowledged"]) == 2


async def test_an_edit_keeps_what_was_looked_at_and_refuses_what_was_not(scenario: SlackScenario) -> None:
    spec = ToolSpec("delete_file", "write", describe="Delete")
    approval_id = await scenario.ask(spec=spec, args={"path": "/tmp/x", "p\u0430th": "x"})
    form = await scenario.open_form("bob", "edit")
    assert set(await scenario.submit(form, {"path": "/tmp/y"})) == {"path"}
    assert await scenario.submit(form, {"path": "/tmp/y", "Checked": "all"}) == {}
    assert await scenario.decision(approval_id) == ("edit", "bob", "slack")


async def test_the_message_follows_what_is_decided_on_the_page(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    assert await approve(scenario.services, approval_id) == "approved"
    await scenario.sweep()
    [message] = scenario.slack.all_messages
    assert "bob approved it through test." in shown_texts(message)
    assert list(buttons(message)) == []
    assert message["text"].startswith("Approved: Pay")


async def test_a_form_that_was_open_when_others_decided_says_so(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    await approve(scenario.services, approval_id)
    [said] = (await scenario.submit(form, {"Reason": "no"})).values()
    assert said == "Already decided: bob (approve). Nothing was changed."
    assert (await scenario.decision(approval_id))[0] == "approve"


async def test_a_form_about_arguments_that_changed_decides_nothing(scenario: SlackScenario) -> None:  # R47
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    approval_id = await scenario.ask()
    first, second = await scenario.open_form("bob", "edit"), await scenario.open_form("eve", "edit")
    assert await scenario.submit(first, {"amount": "5"}) == {}
    assert await scenario.submit(second, {"amount": "6"}) == {
        "amount": "The arguments changed since you saw them. Reload the card."
    }
    await scenario.click("eve", "approve")  # of the message as it was
    assert scenario.ephemeral_texts == ["The arguments changed since you saw them. Reload the card."]
    assert await scenario.status(approval_id) == "pending"
    await scenario.sweep()
    message = scenario.slack.all_messages[0]
    assert "1 of 2 have approved." in shown_texts(message)
    await scenario.click("eve", "approve", message)
    assert await scenario.status(approval_id) == "approved"


async def test_one_person_counts_once_however_often_they_click(scenario: SlackScenario) -> None:  # R48
    policy = "version: 1\nrules: [{name: two, tools: [pay_out], then: ask, quorum: 2}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    approval_id = await scenario.ask()
    await approve(scenario.services, approval_id)  # bob, on the page
    await scenario.click("bob", "approve")
    assert await scenario.status(approval_id) == "pending"
    assert scenario.ephemeral_texts == ["You have already approved this. It needs another person's approval."]
    await scenario.click("ada", "approve")
    assert await scenario.status(approval_id) == "approved"


async def test_the_link_button_decides_nothing(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    answer = await scenario.click("bob", "open")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await scenario.status(approval_id), scenario.slack.ephemerals, scenario.slack.views) == ("pending", [], {})


async def test_the_fields_are_those_of_the_tool(scenario: SlackScenario) -> None:
    assert PAY.schema is not None
    assert set(PAY_ARGS) < set(PAY.schema["properties"])  # type: ignore[call-overload]
