"""Slack users are matched by a confirmed e-mail address or an identity link, never by name."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock.core.ports import User
from tests.channels.slack_scenario import SlackScenario, open_slack_scenario
from tests.databases import SqliteFile
from tests.fakes.slack import Refused
from tests.support import Clock, approve

MINUTE = 60_000


@pytest.fixture
async def scenario(tmp_path: Path, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(SqliteFile(tmp_path / "interlock.db"), clock) as made:
        yield made


async def refusal_text(scenario: SlackScenario, user: str, approval_id: str) -> str:
    """What somebody is told, alone, whose click decides nothing."""
    before = list(scenario.slack.all_messages)
    for action in ("approve", "reject"):
        scenario.slack.ephemerals.clear()
        answer = await scenario.click(user, action)
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await scenario.status(approval_id), scenario.slack.views) == ("pending", {})
        assert scenario.slack.all_messages == before
        [whisper] = scenario.slack.ephemerals
        assert whisper["user"] == scenario.users.get(user, user)
    return str(json.dumps(whisper["blocks"]))


async def test_unknown_user_gets_a_reason_and_a_link_to_identify(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    stranger = scenario.slack.add_user("bob", "mallory@example.com")  # by name they would be bob
    told = await refusal_text(scenario, stranger, approval_id)
    assert "No Interlock user has your Slack e-mail address. Nothing was decided." in told
    [token] = re.findall(r"<https://interlock\.example/settings/\w+\?link=([^|<>]+)\|Link your Interlock account", told)
    session = (
        await scenario.services.accounts.use_link(
            await scenario.services.accounts.create_link("default", "test", "bob")
        )
    )[1]
    headers = {"cookie": f"__Host-interlock={session}", "origin": "https://interlock.example"}
    bound = await scenario.http.post("/api/me/identities", json={"link": token}, headers=headers)
    assert (bound.status_code, bound.json()["outside"]) == (201, f"T1/{stranger}")
    await scenario.click(stranger, "approve")
    assert await scenario.decision(approval_id) == ("approve", "bob", "slack")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"is_email_confirmed": False}, "Slack has not confirmed your e-mail address"),
        ({"is_email_confirmed": "true"}, "Slack has not confirmed your e-mail address"),
        ({"is_email_confirmed": None}, "Slack has not confirmed your e-mail address"),
        ({"profile": {"display_name": "ada"}}, "does not show it to the app"),
        ({"is_bot": True}, "a guest, a bot or a former member"),
        ({"deleted": True}, "a guest, a bot or a former member"),
        ({"is_restricted": True}, "a guest"),
        ({"is_ultra_restricted": True}, "a guest"),
        ({"is_stranger": True}, "a guest"),
        ({"team_id": "T2"}, "a different Slack workspace"),
    ],
)
async def test_email_address_counts_only_if_slack_confirmed_it(
    scenario: SlackScenario, more: dict[str, object], why: str
) -> None:
    approval_id = await scenario.ask()
    user = scenario.slack.add_user("ada", "ada@example.com", **more)
    assert why in await refusal_text(scenario, user, approval_id)


async def test_an_address_of_two_accounts_is_nobody_s(scenario: SlackScenario) -> None:
    twin = User("twin", "admin", teams=frozenset(), email="ADA@example.com")
    await scenario.services.store.put_user("default", twin, "ada")
    approval_id = await scenario.ask()
    assert "No Interlock user has" in await refusal_text(scenario, "ada", approval_id)


async def test_an_address_of_somebody_who_left_is_free(scenario: SlackScenario) -> None:
    gone = User("old", "admin", teams=frozenset(), email="ada@example.com", removed_at=1)
    await scenario.services.store.put_user("default", gone, "ada")
    approval_id = await scenario.ask()
    await scenario.click("ada", "approve")
    assert await scenario.decision(approval_id) == ("approve", "ada", "slack")


async def test_identity_link_binds_regardless_of_the_email_address(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    user = scenario.slack.add_user("somebody", "elsewhere@example.org", is_email_confirmed=False)
    await scenario.services.store.deliveries.bind("default", "slack", f"T1/{user}", "bob", "bob")
    await scenario.click(user, "approve")
    assert await scenario.decision(approval_id) == ("approve", "bob", "slack")
    assert scenario.slack.bodies_sent_to("users.info") == []


async def test_a_link_of_another_team_s_user_is_not_this_one_s(scenario: SlackScenario) -> None:
    await scenario.services.store.deliveries.bind("default", "slack", "T2/U9", "bob", "bob")
    approval_id = await scenario.ask()
    assert "No Interlock user has" in await refusal_text(
        scenario, scenario.slack.add_user("x", "x@example.com", id="U9"), approval_id
    )


async def test_a_viewer_is_told_that_they_may_not(scenario: SlackScenario) -> None:  # R41 R48
    approval_id = await scenario.ask()
    assert "You may not decide this approval. It needs the requester, a reviewer or an admin." in await refusal_text(
        scenario, "vic", approval_id
    )
    [(_, actor, content)] = await scenario.events("decision_refused")
    assert (actor, content["via"]) == ("vic", "slack")


async def test_who_was_removed_is_a_stranger(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    gone = User("bob", "reviewer", teams=frozenset({"finance"}), email="bob@example.com", removed_at=1)
    await scenario.services.store.put_user("default", gone, "ada")
    await scenario.state.workspaces.refresh("default")
    assert "No Interlock user has" in await refusal_text(scenario, "bob", approval_id)


async def test_a_late_click_is_told_what_was_decided(scenario: SlackScenario) -> None:  # R25
    approval_id = await scenario.ask()
    await approve(scenario.services, approval_id)
    for action in ("approve", "edit", "respond", "reject"):
        await scenario.click("eve", action)
    assert set(scenario.ephemeral_texts) == {"Already decided: bob (approve). Nothing was changed."}
    assert len(scenario.ephemeral_texts) == 4
    assert (scenario.slack.views, (await scenario.decision(approval_id))[1]) == ({}, "bob")


async def test_a_click_after_the_deadline_is_told_that_it_is_over(scenario: SlackScenario) -> None:  # R28
    approval_id = await scenario.ask()
    scenario.clock.advance(24 * 60 * MINUTE)
    for action in ("reject", "approve"):
        await scenario.click("bob", action)
    assert set(scenario.ephemeral_texts) == {"This approval has expired. Let the agent propose the call again."}
    assert await scenario.status(approval_id) == "expired"


async def test_the_requester_is_kept_out_in_slack_too(scenario: SlackScenario) -> None:  # R48
    policy = "version: 1\nrules: [{name: four eyes, tools: [pay_out], then: ask, exclude: [requester]}]"
    await scenario.services.put_policy("default", policy, "ada", {})
    approval_id = await scenario.ask(requester="bob")
    assert "You may not decide this approval." in await refusal_text(scenario, "bob", approval_id)
    await scenario.click("eve", "approve")
    assert await scenario.decision(approval_id) == ("approve", "eve", "slack")


async def test_when_slack_cannot_say_who_it_was_nothing_is_decided(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    scenario.slack.failures = [Refused("down", 500)]
    await scenario.click("bob", "approve")
    assert await scenario.status(approval_id) == "pending"
    assert scenario.ephemeral_texts == ["Slack did not say who you are. Nothing was decided."]
    await scenario.click("bob", "approve")
    assert await scenario.status(approval_id) == "approved"


async def test_a_slow_slack_is_answered_in_time_and_the_click_is_not_lost(
    scenario: SlackScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who it is takes longer than an answer may: the click is acknowledged, and goes on."""
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 0.01)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60)
    approval_id = await scenario.ask()
    scenario.slack.slow = asyncio.Event()
    answer = await scenario.click("bob", "approve")
    assert (answer.status_code, await scenario.status(approval_id)) == (200, "pending")
    scenario.slack.slow.set()
    await scenario.state.notifications.channels["slack"].close()  # waits for what is still being done
    assert await scenario.decision(approval_id) == ("approve", "bob", "slack")


async def test_a_form_by_somebody_who_is_nobody_now_says_so(scenario: SlackScenario) -> None:
    approval_id = await scenario.ask()
    form = await scenario.open_form("bob", "reject")
    scenario.slack.users[scenario.users["bob"]]["is_email_confirmed"] = False
    said = await scenario.submit(form, {"Reason": "no"})
    assert "Slack has not confirmed your e-mail address" in said["Reason"]
    assert await scenario.status(approval_id) == "pending"


async def test_a_trigger_that_is_too_old_is_told_to_click_again(scenario: SlackScenario) -> None:
    await scenario.ask()
    payload = scenario.slack.click(scenario.users["bob"], "reject")
    scenario.clock.advance(3_001)
    await scenario.post(scenario.slack.sign(payload))
    assert scenario.ephemeral_texts == ["The click has timed out. Click again."]
