"""The long tail: services that are allowed, in a process that connects to nothing else and starts nothing."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interlock.core.errors import Misconfigured
from interlock.net.ssrf import EgressPolicy
from interlock.notify.apprise_process import AppriseJob, make_audit_hook
from interlock.notify.channel import Channel, ChannelContext, DeliveryDelayed, InboundChannel, open_channel
from interlock.notify.channels import apprise
from interlock.testing.channels import HOSTILE, LINK, make_notification, make_view
from tests.fakes.apprise_services import discord, ntfy
from tests.fakes.http_receiver import FAILURES, Receiver, run_receiver

PUBLIC, PRIVATE, CLOUD = "93.184.216.34", "10.0.0.1", "169.254.169.254"
DRIVER = """
import sys
from apprise.plugins.discord import NotifyDiscord
from interlock.notify.apprise_process import main
NotifyDiscord.notify_url = sys.argv[1]
main()
"""


@pytest.fixture
async def fake() -> AsyncIterator[Receiver]:
    async with run_receiver(ntfy, "/") as made:
        yield made


def connected(*receivers: Receiver, **settings: object) -> Channel:
    urls = [f"ntfy://planted:token@{urlsplit(each.url).netloc}/approvals?cto=30&rto=30" for each in receivers]
    return open_channel("tail", "apprise", ChannelContext("tail", {"urls": urls, "allow_private": True, **settings}))[0]


async def test_ntfy_gets_a_few_lines_with_the_link(fake: Receiver) -> None:  # R25
    channel = connected(fake)
    ref = await channel.send(make_notification())
    said = fake.accepted[0].json
    assert said["title"] == "Delete /tmp/x"
    assert said["message"].splitlines()[-1] == LINK
    await channel.update(make_notification("ended"), ref)
    assert fake.accepted[1].json["title"] == "Approved: Delete /tmp/x"
    assert fake.refused == []


async def test_discord_gets_what_its_description_allows() -> None:  # R25
    """In a process that takes another address for Discord's, which is apprise's own."""
    async with run_receiver(discord, "/api/webhooks") as fake:
        body = apprise._body(make_notification("ask", make_view({"path": HOSTILE * 20}, sentence=HOSTILE)))
        title = apprise._line(HOSTILE, apprise.MAX_TITLE)
        job = AppriseJob("tell", ["discord://123456789012345678/" + "t" * 68], title, body, private=True)
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            DRIVER,
            fake.url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await child.communicate(json.dumps(job).encode())
        assert (json.loads(told), fake.refused) == ([True], [])
        content = fake.accepted[0].json["content"]
    assert not any(sign in content for sign in ("@everyone", "<@", "<!", "](", "**", "||", "`", "://evil"))
    assert LINK in content


def test_no_text_of_others_is_a_mention_a_link_or_markup() -> None:  # R25
    assert apprise.escape_markup("mail bob@example.com about snake_case") == "mail bob@example.com about snake_case"
    assert apprise.escape_markup("@here") == r"\u{40}here"
    assert apprise.escape_markup("see https://evil.example") == r"see https\u{3a}//evil.example"
    assert apprise.escape_markup("[a](b) <b> *x* _y_ ~~z~~") == (
        r"[a]\u{28}b) \u{3c}b> \u{2a}x\u{2a} \u{5f}y\u{5f} \u{7e}~z\u{7e}~"
    )


async def test_a_private_address_is_not_connected_to(fake: Receiver) -> None:  # R25
    channel = connected(fake, allow_private=False)
    with pytest.raises(DeliveryDelayed) as caught:
        await channel.send(make_notification())
    assert str(caught.value) == "1 of 1 services did not accept the message."
    assert fake.requests == []


@pytest.mark.parametrize("trouble", ["redirecting", "500", "429 with seconds"])
async def test_what_is_not_taken_is_tried_later_without_a_word_about_the_address(fake: Receiver, trouble: str) -> None:
    fake.override = FAILURES[trouble]
    channel = connected(fake)
    with pytest.raises(DeliveryDelayed) as caught:
        await channel.send(make_notification())
    assert "planted" not in str(caught.value)  # R25
    assert {heard.path for heard in fake.requests} == {"/"}


async def test_service_that_accepted_is_not_sent_it_twice(fake: Receiver) -> None:  # R24
    async with run_receiver(ntfy, "/") as other:
        channel = connected(fake, other)
        other.override = FAILURES["500"]
        with pytest.raises(DeliveryDelayed, match="1 of 2"):
            await channel.send(make_notification())
        other.override = None
        await channel.send(make_notification())
        assert (len(fake.accepted), len(other.accepted)) == (1, 1)


async def test_what_takes_too_long_is_ended(fake: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:  # R25
    channel = connected(fake)
    monkeypatch.setattr(apprise, "SEND_TIMEOUT", 0.001)
    with pytest.raises(DeliveryDelayed, match="No response"):
        await channel.send(make_notification())
    assert fake.accepted == []


def test_library_that_ends_without_a_response_delivered_nothing() -> None:  # R23
    for said in (b"", b"{}", b"[true]"):
        with pytest.raises(DeliveryDelayed, match="failed"):
            apprise._answers(said, 2)


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("socket.connect", (None, (PRIVATE, 80))),
        ("socket.connect", (None, (CLOUD, 80))),
        ("socket.connect", (None, ("::1", 80, 0, 0))),
        ("socket.connect", (None, ("localhost", 80))),
        ("socket.connect", (None, "/run/some.sock")),
        ("socket.sendto", (None, (PRIVATE, 53))),
        ("socket.bind", (None, (PUBLIC, 80))),
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
        ("os.system", (b"true",)),
        ("os.exec", ("sh", [], None)),
        ("os.posix_spawn", ("sh", [], {})),
    ],
)
def test_the_process_is_held_to_the_rules_from_below(event: str, args: tuple[object, ...]) -> None:  # R25
    with pytest.raises(PermissionError):
        make_audit_hook(EgressPolicy())(event, args)


def test_public_addresses_are_open_and_private_ones_if_the_settings_say_so() -> None:  # R25
    make_audit_hook(EgressPolicy())("socket.connect", (None, (PUBLIC, 443)))
    make_audit_hook(EgressPolicy(private=True))("socket.connect", (None, (PRIVATE, 443)))
    with pytest.raises(PermissionError):
        make_audit_hook(EgressPolicy(private=True))("socket.connect", (None, (CLOUD, 80)))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "urls is missing"),
        ({"urls": []}, "one to 20"),
        ({"urls": "ntfy://x/y"}, "list of texts"),
        ({"urls": ["syslog://planted"]}, "syslog of number 1 is not in schemes"),
        ({"urls": ["json://planted/x"]}, "json of number 1 is not in schemes"),
        ({"urls": ["planted planted"]}, "what it begins with of number 1"),
        ({"urls": ["ntfy://ok/topic", "discord://planted"]}, "cannot read number 2"),
        ({"urls": ["ntfy://ok/topic"], "schemes": ["ntfy", "dbus"]}, "notifies nobody"),
        ({"urls": ["ntfy://ok/topic"], "schemes": ["tgram"]}, "ntfy of number 1 is not in schemes"),
        ({"urls": ["ntfy://ok/topic"], "allow_private": 1}, "true or false"),
        ({"urls": ["ntfy://ok/topic"], "follow_up": 1}, "true or false"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(Misconfigured, match=words) as caught:
        open_channel("tail", "apprise", ChannelContext("tail", settings))
    assert "planted" not in str(caught.value)


async def test_nothing_comes_back_from_the_long_tail(fake: Receiver) -> None:
    assert not isinstance(connected(fake), InboundChannel)


def test_the_page_lists_what_is_taken() -> None:
    page = Path(__file__).parents[2] / "docs" / "channels" / "apprise.md"
    [listed] = re.findall(r"^Taken by default: `([a-z0-9 ]+)`", page.read_text(), re.MULTILINE)
    assert listed.split() == sorted(apprise.SCHEMES)
