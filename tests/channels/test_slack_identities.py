"""Who a user of Slack is here: by a confirmed e-mail address or by an explicit link, never by a name."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock.core.ports import User
from tests.channels.slack_scenario import Scene, staged
from tests.databases import File
from tests.fakes.slack import Refused
from tests.support import Clock, approve

MINUTE = 60_000


@pytest.fixture
async def scene(tmp_path: Path, clock: Clock) -> AsyncIterator[Scene]:
    async with staged(File(tmp_path / "interlock.db"), clock) as made:
        yield made


async def refused(scene: Scene, user: str, approval_id: str) -> str:
    """What somebody is told, alone, whose click decides nothing."""
    before = list(scene.slack.shown)
    for action in ("approve", "reject"):
        scene.slack.whispers.clear()
        answer = await scene.click(user, action)
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await scene.status(approval_id), scene.slack.views) == ("pending", {})
        assert scene.slack.shown == before
        [whisper] = scene.slack.whispers
        assert whisper["user"] == scene.users.get(user, user)
    return str(json.dumps(whisper["blocks"]))


async def test_a_stranger_is_told_why_and_says_who_they_are_by_a_link_of_their_own(scene: Scene) -> None:  # R25
    approval_id = await scene.ask()
    stranger = scene.slack.add_user("bob", "mallory@example.com")  # by name they would be bob
    told = await refused(scene, stranger, approval_id)
    assert "No account here has the e-mail address that you have in Slack. Nothing was decided." in told
    [token] = re.findall(r"<https://interlock\.example/settings/\w+\?link=([^|<>]+)\|Say who you are", told)
    session = (await scene.parts.accounts.use_link(await scene.parts.accounts.create_link("default", "test", "bob")))[1]
    headers = {"cookie": f"__Host-interlock={session}", "origin": "https://interlock.example"}
    bound = await scene.http.post("/api/me/identities", json={"link": token}, headers=headers)
    assert (bound.status_code, bound.json()["outside"]) == (201, f"T1/{stranger}")
    await scene.click(stranger, "approve")
    assert await scene.decision(approval_id) == ("approve", "bob", "slack")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"is_email_confirmed": False}, "Slack has not confirmed your e-mail address"),
        ({"is_email_confirmed": "true"}, "Slack has not confirmed your e-mail address"),
        ({"is_email_confirmed": None}, "Slack has not confirmed your e-mail address"),
        ({"profile": {"display_name": "ada"}}, "does not show it to the app"),
        ({"is_bot": True}, "a guest, a bot or as somebody who left"),
        ({"deleted": True}, "a guest, a bot or as somebody who left"),
        ({"is_restricted": True}, "a guest"),
        ({"is_ultra_restricted": True}, "a guest"),
        ({"is_stranger": True}, "a guest"),
        ({"team_id": "T2"}, "another Slack workspace"),
    ],
)
async def test_an_address_counts_only_if_slack_stands_for_it(scene: Scene, more: dict[str, object], why: str) -> None:
    approval_id = await scene.ask()
    user = scene.slack.add_user("ada", "ada@example.com", **more)
    assert why in await refused(scene, user, approval_id)


async def test_an_address_of_two_accounts_is_nobody_s(scene: Scene) -> None:
    twin = User("twin", "admin", teams=frozenset(), email="ADA@example.com")
    await scene.parts.store.put_user("default", twin, "ada")
    approval_id = await scene.ask()
    assert "No account here" in await refused(scene, "ada", approval_id)


async def test_an_address_of_somebody_who_left_is_free(scene: Scene) -> None:
    gone = User("old", "admin", teams=frozenset(), email="ada@example.com", removed_at=1)
    await scene.parts.store.put_user("default", gone, "ada")
    approval_id = await scene.ask()
    await scene.click("ada", "approve")
    assert await scene.decision(approval_id) == ("approve", "ada", "slack")


async def test_a_link_binds_whatever_the_address(scene: Scene) -> None:  # R25
    approval_id = await scene.ask()
    user = scene.slack.add_user("somebody", "elsewhere@example.org", is_email_confirmed=False)
    await scene.parts.store.deliveries.bind("default", "slack", f"T1/{user}", "bob", "bob")
    await scene.click(user, "approve")
    assert await scene.decision(approval_id) == ("approve", "bob", "slack")
    assert scene.slack.asked("users.info") == []


async def test_a_link_of_another_team_s_user_is_not_this_one_s(scene: Scene) -> None:
    await scene.parts.store.deliveries.bind("default", "slack", "T2/U9", "bob", "bob")
    approval_id = await scene.ask()
    assert "No account here" in await refused(scene, scene.slack.add_user("x", "x@example.com", id="U9"), approval_id)


async def test_a_viewer_is_told_that_they_may_not(scene: Scene) -> None:  # R41 R48
    approval_id = await scene.ask()
    assert "vic may not decide this. It needs the requester, a reviewer or an admin." in await refused(
        scene, "vic", approval_id
    )
    [(_, actor, content)] = await scene.events("decision_refused")
    assert (actor, content["via"]) == ("vic", "slack")


async def test_who_was_removed_is_a_stranger(scene: Scene) -> None:
    approval_id = await scene.ask()
    gone = User("bob", "reviewer", teams=frozenset({"finance"}), email="bob@example.com", removed_at=1)
    await scene.parts.store.put_user("default", gone, "ada")
    await scene.site.workspaces.refresh("default")
    assert "No account here" in await refused(scene, "bob", approval_id)


async def test_a_late_click_is_told_what_was_decided(scene: Scene) -> None:  # R25
    approval_id = await scene.ask()
    await approve(scene.parts, approval_id)
    for action in ("approve", "edit", "respond", "reject"):
        await scene.click("eve", action)
    assert set(scene.whispered) == {"Already decided: bob (approve). Nothing was changed."}
    assert len(scene.whispered) == 4
    assert (scene.slack.views, (await scene.decision(approval_id))[1]) == ({}, "bob")


async def test_a_click_after_the_deadline_is_told_that_it_is_over(scene: Scene) -> None:  # R28
    approval_id = await scene.ask()
    scene.clock.forward(24 * 60 * MINUTE)
    for action in ("reject", "approve"):
        await scene.click("bob", action)
    assert set(scene.whispered) == {"This approval has expired. Let the agent propose the call again."}
    assert await scene.status(approval_id) == "expired"


async def test_the_requester_is_kept_out_in_slack_too(scene: Scene) -> None:  # R48
    policy = "version: 1\nrules: [{name: four eyes, tools: [pay_out], then: ask, exclude: [requester]}]"
    await scene.parts.put_policy("default", policy, "ada", {})
    approval_id = await scene.ask(requester="bob")
    assert "bob may not decide this" in await refused(scene, "bob", approval_id)
    await scene.click("eve", "approve")
    assert await scene.decision(approval_id) == ("approve", "eve", "slack")


async def test_when_slack_cannot_say_who_it_was_nothing_is_decided(scene: Scene) -> None:
    approval_id = await scene.ask()
    scene.slack.trouble = [Refused("down", 500)]
    await scene.click("bob", "approve")
    assert await scene.status(approval_id) == "pending"
    assert scene.whispered == ["Slack did not say who you are. Nothing was decided."]
    await scene.click("bob", "approve")
    assert await scene.status(approval_id) == "approved"


async def test_a_slow_slack_is_answered_in_time_and_the_click_is_not_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who it is takes longer than an answer may: the click is acknowledged, and goes on."""
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 0.01)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60)
    approval_id = await scene.ask()
    scene.slack.slow = asyncio.Event()
    answer = await scene.click("bob", "approve")
    assert (answer.status_code, await scene.status(approval_id)) == (200, "pending")
    scene.slack.slow.set()
    await scene.site.notifications.channels["slack"].close()  # waits for what is still being done
    assert await scene.decision(approval_id) == ("approve", "bob", "slack")


async def test_a_form_by_somebody_who_is_nobody_now_says_so(scene: Scene) -> None:
    approval_id = await scene.ask()
    form = await scene.form("bob", "reject")
    scene.slack.users[scene.users["bob"]]["is_email_confirmed"] = False
    said = await scene.submit(form, {"Reason": "no"})
    assert "Slack has not confirmed your e-mail address" in said["Reason"]
    assert await scene.status(approval_id) == "pending"


async def test_a_trigger_that_is_too_old_is_told_to_click_again(scene: Scene) -> None:
    await scene.ask()
    payload = scene.slack.click(scene.users["bob"], "reject")
    scene.clock.forward(3_001)
    await scene.post(scene.slack.signed(payload))
    assert scene.whispered == ["Too much time passed since the click. Click again."]
