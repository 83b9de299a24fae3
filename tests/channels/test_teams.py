"""Microsoft Teams: cards by Microsoft's schema, in which nothing that others wrote is more than text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx2
import pytest
from microsoft_teams.cards import AdaptiveCard, TextBlock

from interlock.core.errors import Misconfigured
from interlock.core.notify.delivery import Purpose
from interlock.notify.channel import Channel, ChannelContext, DeliveryDelayed, InboundChannel, open_channel
from interlock.testing.channels import HOSTILE, LINK, make_notification, make_view
from tests.fakes.http_receiver import FAILURES
from tests.fakes.teams import CARD, MAX_BYTES, Teams, teams, texts


@pytest.fixture
async def fake() -> AsyncIterator[Teams]:
    async with teams() as made:
        yield made


@pytest.fixture
async def channel(fake: Teams) -> AsyncIterator[Channel]:
    made = connected(fake)
    yield made
    await made.close()


def connected(fake: Teams, **settings: object) -> Channel:
    return open_channel(
        "teams", "teams", ChannelContext("teams", {"url": fake.url, "allow_private": True, **settings})
    )[0]


async def test_a_card_has_sentence_facts_arguments_findings_and_a_button(channel: Channel, fake: Teams) -> None:
    await channel.send(make_notification("ask", make_view({"path": "/tmp/\u202ex"})))
    [card] = fake.cards
    shown = texts(card)  # R25
    assert shown[0] == "Delete /tmp/x"
    assert {"agent: ", "risk: ", "path: "} <= set(shown)
    assert '"/tmp/\\u{202e}x"' in shown
    assert any("direction of the text" in text for text in shown)
    assert [action["url"] for action in card["actions"]] == [LINK]
    assert card["body"][0]["id"] == "d1.ask"


async def test_microsofts_own_models_read_our_cards_and_theirs_are_taken(channel: Channel, fake: Teams) -> None:  # R25
    await channel.send(make_notification("ask", make_view({"path": "/tmp/x"})))
    read = AdaptiveCard.model_validate(fake.cards[0])
    assert read.version == "1.5"
    assert [action.url for action in read.actions or []] == [LINK]
    theirs = AdaptiveCard(version="1.5", body=[TextBlock(text="Hello", wrap=True)])
    card = {"contentType": CARD, "content": theirs.model_dump(by_alias=True, exclude_none=True)}
    async with httpx2.AsyncClient() as client:
        taken = await client.post(fake.url, json={"type": "message", "attachments": [card]})
        card["content"]["version"] = 1.5
        refused = await client.post(fake.url, json={"type": "message", "attachments": [card]})
    assert (taken.status_code, refused.status_code) == (202, 400)


async def test_nothing_that_others_wrote_can_be_more_than_text(channel: Channel, fake: Teams) -> None:  # R25
    await channel.send(make_notification("ask", make_view({HOSTILE: HOSTILE}, sentence=HOSTILE, agent="bot")))
    [card] = fake.cards
    assert {element["type"] for element in card["body"]} == {"RichTextBlock"}
    runs = [run for element in card["body"] for run in element["inlines"]]
    assert all("selectAction" not in run and "\n" not in run["text"] and "{{" not in run["text"] for run in runs)
    assert "entities" not in json.dumps(fake.receiver.accepted[0].json)
    assert "".join(texts(card)).count("{{DATE(2026-01-01)}}") >= 1


@pytest.mark.parametrize("value", ["x" * 100_000, "\U0001f600" * 100_000, "\u202e" * 50_000])
async def test_a_large_call_is_cut_to_what_teams_takes(channel: Channel, fake: Teams, value: str) -> None:  # R25
    args = {f"{number}{value[:500]}": value[:10_000] for number in range(20)}
    await channel.send(make_notification("ask", make_view(args, sentence=value)))
    assert len(fake.receiver.accepted[0].body) <= MAX_BYTES
    assert fake.receiver.refused == []


@pytest.mark.parametrize(
    ("purpose", "status", "ref", "told"),
    [
        ("remind", "pending", "pending/", True),
        ("ended", "approved", "pending/", True),
        ("ended", "succeeded", "approved/", False),
        ("ended", "unknown", "approved/", True),
        ("ended", "failed", "approved/", True),
        ("ended", "failed", "failed/", False),
        ("changed", "pending", "pending/", False),
        ("changed", "pending", "rejected/", True),
        ("changed", "pending", "pending/other", True),
    ],
)
async def test_a_follow_up_comes_when_there_is_something_to_know(
    channel: Channel, fake: Teams, purpose: Purpose, status: str, ref: str, told: bool
) -> None:  # R25
    about = make_view(status=status)
    before = ref if ref.endswith("other") else ref + about.approval.args_sha256[:12]
    after = await channel.update(make_notification(purpose, about), before)
    assert len(fake.cards) == int(told)
    assert after == (f"{status}/{about.approval.args_sha256[:12]}" if told else before)


async def test_without_follow_ups_only_reminders_come(fake: Teams) -> None:  # R25
    quiet = connected(fake, follow_up=False)
    ref = await quiet.send(make_notification())
    assert await quiet.update(make_notification("ended"), ref) == ref
    await quiet.update(make_notification("remind"), ref)
    await quiet.close()
    assert [texts(card)[0] for card in fake.cards] == ["Delete /tmp/x", "Reminder: Delete /tmp/x"]


async def test_teams_that_is_down_is_tried_later_without_a_word_about_its_address(fake: Teams) -> None:  # R25
    fake.receiver.override = FAILURES["500"]
    channel = connected(fake)
    with pytest.raises(DeliveryDelayed) as caught:
        await channel.send(make_notification())
    await channel.close()
    assert str(caught.value) == "Teams responded with 500."


@pytest.mark.parametrize(("setting", "words"), [({"follow_up": "no"}, "true or false"), ({"url": ""}, "url")])
def test_settings_that_cannot_be_right_are_refused(setting: dict[str, object], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        open_channel("teams", "teams", ChannelContext("teams", {"url": "https://flows.example.com/x", **setting}))


async def test_nothing_comes_back_from_teams(channel: Channel) -> None:
    assert not isinstance(channel, InboundChannel)
