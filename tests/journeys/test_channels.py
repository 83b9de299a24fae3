"""Channels and deliveries on the command line, without a server."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.app.bootstrap import wall_clock
from interlock.core.notify.delivery import DeliveryTarget, make_test_delivery, mark_dead
from tests.fakes.http_receiver import run_receiver
from tests.journeys.seeds import propose_mail
from tests.journeys.shell import CommandResult, Shell
from tests.journeys.test_accounts import assert_refused
from tests.support import Clock, approve, open_services

pytestmark = pytest.mark.smoke

SECRET = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg=="
CONFIG = """
channels:
  hook: {{kind: webhook, url: "{url}", secret: {secret}, allow_private: true}}
routing: {{default_channel: hook, team_routing: {{finance: [hook]}}}}
"""


def configure(shell: Shell, url: str) -> None:
    (shell.folder / "interlock.yaml").write_text(CONFIG.format(url=url, secret=SECRET))
    shell("migrate")


async def run(shell: Shell, *words: str) -> CommandResult:
    """Beside the receiver, which has to answer meanwhile."""
    return await asyncio.to_thread(shell, *words)


# R25
async def test_a_channel_is_listed_and_tested_without_a_server(shell: Shell) -> None:
    async with run_receiver() as receiver:
        configure(shell, receiver.url)
        listed = await run(shell, "channels", "list", "--json")
        dashboard, hook = listed.json["items"]
        assert (dashboard["name"], hook["name"], hook["kind"]) == ("dashboard", "hook", "webhook")
        assert (hook["is_default"], hook["teams"], hook["due"], hook["off"]) == (True, ["finance"], 0, None)
        done = await run(shell, "channels", "test", "hook")
        assert (done.code, done.out, done.err) == (0, "Sent a test through hook.\n", "")
        [heard] = receiver.accepted
        assert json.loads(heard.body)["type"].endswith("test")
        text = (await run(shell, "channels", "list")).out + listed.out
        assert [word for word in (SECRET[6:], receiver.url) if word in text] == []


# R25
async def test_a_test_that_fails_says_why_and_an_unknown_channel_is_not_there(shell: Shell) -> None:
    configure(shell, "http://127.66.66.66/")
    assert_refused(shell("channels", "test", "hook"), 1, "The webhook cannot be reached.")
    assert_refused(shell("channels", "test", "hok"), 1, "There is no channel 'hok'. Configured are: hook.")
    assert_refused(shell("channels", "enable", "hok"), 1, "There is no channel")
    assert shell("channels", "test", "hook", "--json").json["error"] == "delivery_failed"
    (shell.folder / "interlock.yaml").write_text("channels: {hook: {kind: webhook}}")
    assert_refused(shell("channels", "list"), 2, 'The channel "hook"', "url")


OWN = """
workspaces:
  lab:
    channels: {{hook: {{kind: webhook, url: "{url}", secret: {secret}, allow_private: true}}}}
    routing: {{default_channel: hook}}
"""


async def test_a_workspace_has_channels_of_its_own(shell: Shell) -> None:  # R60
    async with run_receiver() as ours, run_receiver() as theirs:
        configure(shell, ours.url)
        with (shell.folder / "interlock.yaml").open("a") as file:
            file.write(OWN.format(url=theirs.url, secret=SECRET.replace("aHV", "bHV")))
        for name in ("lab", "zebra"):
            await run(shell, "workspaces", "add", name)
        done = await run(shell, "channels", "test", "hook", "--workspace", "lab")
        assert (done.code, done.out) == (0, "Sent a test through hook.\n")
        assert (len(ours.accepted), len(theirs.accepted)) == (0, 1)
        refused = await run(shell, "channels", "test", "hook", "--workspace", "zebra")
        assert_refused(refused, 1, "There is no channel 'hook'. Configured are: none.")
        doctor = await run(shell, "doctor", "--json", "--workspace", "lab")
    found = {check["found"]: check["todo"] for check in doctor.json["checks"] if check["what"] == "workspaces"}
    assert found == {
        "default is notified through hook": "",
        "zebra has no channels: approvals only appear in the web app": (
            "Add some in interlock.yaml, under workspaces: zebra: channels."
        ),
    }
    assert doctor.json["configuration"]["workspaces"]["lab"]["channels"]["hook"]["settings"]["secret"] == "***"
    assert (SECRET[10:] in doctor.out, doctor.code) == (False, 0)


# R25
async def test_a_channel_is_switched_on_again(shell: Shell) -> None:
    configure(shell, "http://127.66.66.66/")
    async with open_services(shell.path, Clock(wall_clock())) as services:
        await services.store.deliveries.disable_channel(
            "default", "hook", "The webhook reports that this address is gone (410)."
        )
    assert "off since" in shell("channels", "list").out
    assert shell("channels", "enable", "hook").out.startswith("Enabled hook.")
    assert shell("channels", "enable", "hook").out == "hook is already enabled.\n"
    assert shell("channels", "enable", "hook", "--json").json["off"] is None


# R25
async def test_a_channel_is_switched_off_by_a_person_who_is_on_record(shell: Shell) -> None:
    configure(shell, "http://127.66.66.66/")
    done = shell("channels", "disable", "hook", "--reason", "The webhook moves.")
    assert done.out == "Disabled hook. To enable it: interlock channels enable hook\n"
    assert shell("channels", "disable", "hook").out == "hook is already disabled.\n"
    assert shell("channels", "disable", "hook", "--json").json["off"]["why"] == "The webhook moves."
    async with open_services(shell.path, Clock(wall_clock())) as services:
        [entries] = [batch async for batch in services.store.entries("default")]
    [off] = [entry for entry in entries if entry.kind == "channel_off"]
    assert off.actor not in ("", "interlock")
    assert shell("channels", "enable", "hook").out.startswith("Enabled hook.")


# R25
async def test_dead_deliveries_are_listed_and_retried(shell: Shell) -> None:
    configure(shell, "http://127.66.66.66/")
    assert shell("deliveries", "list").out == "No deliveries are parked.\n"
    async with open_services(shell.path, Clock(wall_clock())) as services:
        lost = make_test_delivery(
            "default", "0192f0c1-2b3d-7c4e-9f60-718293a4b5c6", DeliveryTarget("hook", "", "ada"), "ada", wall_clock()
        )
        await services.store.deliveries.add(mark_dead(lost, "The webhook rejected the request (400)."))
    listed = shell("deliveries", "list")
    assert [
        word for word in ("a4b5c6", "hook", "ada", "The webhook rejected the request (400).") if word not in listed.out
    ] == []
    (item,) = shell("deliveries", "list", "--status", "parked", "--channel", "hook", "--json").json["items"]
    assert (item["id"], item["error"]) == (lost.id, "The webhook rejected the request (400).")
    assert shell("deliveries", "list", "--channel", "other", "--json").json == {"items": [], "next": None}
    assert_refused(shell("deliveries", "retry", "b5c"), 2, "too short")
    assert_refused(shell("deliveries", "retry", "none-there"), 1, "interlock deliveries list")
    assert shell("deliveries", "retry", "93a4b5c6").out.startswith("Queued for retry through hook")
    assert shell("deliveries", "list", "--status", "due", "--json").json["items"][0]["id"] == lost.id
    assert shell("audit", "verify").code == 0


# R28
async def test_the_live_list_is_the_inbox_and_what_waits_for_one_if_wanted(shell: Shell) -> None:
    shell("users", "add", "ada", "--role", "admin")
    shell("users", "add", "vic", "--role", "viewer")
    approval_id = await propose_mail(shell)
    with shell.terminal("approvals", "watch", "--mine", "--user", "vic") as terminal:
        terminal.assert_shows("0 calls wait")
    with shell.terminal("approvals", "watch", "--mine", "--user", "ada") as terminal:
        terminal.assert_shows("1 call waits", approval_id[-8:])
        async with open_services(shell.path, Clock(wall_clock())) as services:
            await approve(services, approval_id)
            terminal.assert_shows("0 calls wait", "approved by bob")
