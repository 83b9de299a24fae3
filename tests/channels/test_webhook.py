"""Webhooks out: signed by the standard, with every secret, thin unless the settings say otherwise."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Standard
from standardwebhooks import WebhookVerificationError

from interlock.core.errors import Misconfigured, Unauthenticated
from interlock.core.notify.delivery import DeliveryTarget, make_test_delivery, mark_failed
from interlock.notify import http
from interlock.notify.channel import (
    Channel,
    ChannelContext,
    ChannelGone,
    DeliveryDelayed,
    DeliveryRejected,
    open_channel,
)
from interlock.notify.channels import webhook
from interlock.notify.channels.webhook import WebhookSigner
from interlock.testing.channels import make_notification, make_view
from tests.fakes.http_receiver import FAILURES, Receiver, run_receiver
from tests.support import START

VECTOR = json.loads((Path(__file__).parents[1] / "vendor/webhooks/standard-webhooks-vector.json").read_text())
NEW, OLD = (f"whsec_{base64.b64encode(bytes([each]) * 32).decode()}" for each in (1, 2))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as made:
        yield made


def channel(url: str, **settings: Any) -> Channel:
    settings = {"url": url, "allow_private": True, **({} if "secrets" in settings else {"secret": NEW}), **settings}
    return open_channel("hook", "webhook", ChannelContext("hook", settings, "https://interlock.example"))[0]


def test_the_vector_of_the_standard_is_signed_and_taken_as_the_standard_does() -> None:  # R25
    at = int(VECTOR["webhook-timestamp"]) * 1000
    signer = WebhookSigner([VECTOR["secret"]])
    headers = signer.headers(VECTOR["webhook-id"], VECTOR["body"], at)
    assert headers == {name: VECTOR[name] for name in headers}
    assert signer.verify(headers, VECTOR["body"].encode(), at) == VECTOR["webhook-id"]


async def test_a_message_is_signed_with_every_secret_and_each_of_them_verifies_it(receiver: Receiver) -> None:  # R25
    hook = channel(receiver.url, secrets=[NEW, OLD])
    await hook.send(make_notification())
    await hook.close()
    [heard] = receiver.requests
    assert heard.headers["webhook-signature"].count("v1,") == 2
    at = datetime.fromtimestamp(int(heard.headers["webhook-timestamp"]), UTC)
    assert heard.headers["webhook-signature"].split(" ") == [
        Standard(secret).sign(heard.headers["webhook-id"], at, heard.body.decode()) for secret in (NEW, OLD)
    ]


async def test_the_library_of_the_standard_takes_it(receiver: Receiver) -> None:  # R25
    hook = channel(receiver.url)
    await hook.send(make_notification(at=int(time.time() * 1000)))
    await hook.close()
    [heard] = receiver.requests
    assert Standard(NEW).verify(heard.body, dict(heard.headers))["type"] == "approval.pending"
    with pytest.raises(WebhookVerificationError):
        Standard(OLD).verify(heard.body, dict(heard.headers))


async def test_a_thin_message_says_what_is_asked_and_no_arguments(receiver: Receiver) -> None:  # R25
    hook = channel(receiver.url)
    ref = await hook.send(make_notification("ask", make_view({"path": "/tmp/x", "token": "planted"})))
    await hook.close()
    body = receiver.requests[0].json
    assert body["type"] == "approval.pending"
    assert set(body["data"]) == {
        *("id", "workspace", "tool", "status", "args_sha256", "sentence", "priority", "agent", "requester"),
        *("expires_at", "link", "decision"),
    }
    assert "planted" not in receiver.requests[0].body.decode()
    assert "." not in ref


async def test_a_full_message_has_the_card_with_its_findings_and_never_a_secret(receiver: Receiver) -> None:  # R25
    hook = channel(receiver.url, full=True)
    about = make_view({"path": "/tmp/\u202ex", "token": "planted"}, secret=("/token",))
    await hook.send(make_notification("ask", about))
    await hook.close()
    data = receiver.requests[0].json["data"]
    assert [field["pointer"] for field in data["fields"]] == ["/path", "/token"]
    assert data["fields"][1]["text"].startswith("hidden, fingerprint ")
    assert [finding["kind"] for finding in data["findings"]] == ["bidi"]
    assert "planted" not in receiver.requests[0].body.decode()


async def test_a_full_message_has_an_end_and_says_what_it_left_out(receiver: Receiver) -> None:  # R25
    hook = channel(receiver.url, full=True)
    await hook.send(make_notification("ask", make_view({f"name{number}": "x" * 3_000 for number in range(300)})))
    await hook.close()
    assert len(receiver.requests[0].body) < 300_000
    assert receiver.requests[0].json["data"]["fields_left"] > 100


@pytest.mark.parametrize(
    ("trouble", "error", "after"),
    [
        ("redirecting", DeliveryRejected, 0),
        ("500", DeliveryDelayed, 0),
        ("503", DeliveryDelayed, 0),
        ("429 with seconds", DeliveryDelayed, 120),
        ("429 with a date", DeliveryDelayed, 120),
        ("400", DeliveryRejected, 0),
        ("410", ChannelGone, 0),
    ],
)
async def test_response_status_decides_whether_to_retry(
    receiver: Receiver, trouble: str, error: type[Exception], after: float
) -> None:  # R25
    receiver.override = FAILURES[trouble]
    hook = channel(receiver.url)
    with pytest.raises(error) as caught:
        await hook.send(make_notification())
    await hook.close()
    assert getattr(caught.value, "retry_after", 0) == after
    assert "secret" not in str(caught.value)
    assert receiver.url not in str(caught.value)
    assert [heard.path for heard in receiver.requests] == ["/hook"]


async def test_a_receiver_that_is_not_there_is_tried_later() -> None:  # R25
    async with run_receiver() as gone:
        url = gone.url
    hook = channel(url)
    with pytest.raises(DeliveryDelayed, match="cannot be reached"):
        await hook.send(make_notification())
    await hook.close()


async def test_a_name_that_nobody_knows_now_is_asked_for_later() -> None:  # R25
    hook = channel("https://nowhere.invalid/planted")
    with pytest.raises(DeliveryDelayed, match="has no address") as caught:
        await hook.send(make_notification())
    await hook.close()
    assert "planted" not in str(caught.value)


async def test_a_receiver_that_says_nothing_is_tried_later(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:  # R25
    monkeypatch.setattr(http, "REQUEST_TIMEOUT", 0.2)
    receiver.is_blocked = True
    hook = channel(receiver.url)
    with pytest.raises(DeliveryDelayed, match="did not respond"):
        await hook.send(make_notification())
    await hook.close()
    assert receiver.accepted == []


async def test_an_address_that_becomes_private_is_refused(receiver: Receiver) -> None:  # R25
    hook = open_channel("hook", "webhook", ChannelContext("hook", {"url": "https://localhost/x", "secret": NEW}))[0]
    with pytest.raises(DeliveryRejected, match="may not be sent to"):
        await hook.send(make_notification())
    await hook.close()
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "https://127.0.0.1/x"}, "public"),
        ({"url": "http://hooks.example.com/x"}, "https"),
        ({"url": "file:///etc/passwd"}, "https"),
        ({"url": "https://hooks.example.com:99999/x"}, "not a URL"),
        ({"secret": ""}, "secret"),
        ({"secret": "whsec_tooshort"}, "24 to 64"),
        ({"secret": "whsec_!!!!" + "a" * 40}, "24 to 64"),
        ({"secret": 7}, "must be text"),
        ({"secrets": [NEW]}, "either"),
        ({"full": "yes"}, "true or false"),
        ({"acts_as": 7}, "acts_as"),
        ({"allow_private": "yes"}, "true or false"),
        ({"sekret": "x"}, 'did you mean "secret"'),
    ],
)
def test_settings_that_cannot_be_right_are_refused_with_a_sentence(settings: Mapping[str, object], words: str) -> None:
    kit = ChannelContext("hook", {"url": "https://hooks.example.com/x", "secret": NEW, **settings})
    with pytest.raises(Misconfigured, match=words) as caught:
        open_channel("hook", "webhook", kit)
    assert NEW not in str(caught.value)


@pytest.mark.parametrize("secrets", [[], "text", [NEW] * 6, [7], [""]])
def test_a_list_of_secrets_is_one_to_five_texts(secrets: object) -> None:
    kit = ChannelContext("hook", {"url": "https://hooks.example.com/x", "secrets": secrets})
    with pytest.raises(Misconfigured, match="secrets must be a list"):
        open_channel("hook", "webhook", kit)


def test_delivery_is_retried_as_the_standard_says_and_then_dead() -> None:  # R25
    delivery, waited, now = make_test_delivery("default", "d", DeliveryTarget("hook"), "ada", START), [], START
    while delivery.status == "due":
        delivery = mark_failed(delivery, "down", now, retry_delays=webhook.RETRY_DELAYS)
        waited += [(delivery.due_at - now) // 1000] if delivery.due_at is not None else []
        now = delivery.due_at or now
    assert (delivery.status, tuple(waited)) == ("parked", webhook.RETRY_DELAYS)
    assert set(webhook.RETRY_DELAYS) >= {5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400}


def test_what_the_other_side_asks_for_is_waited_for() -> None:  # R25
    delivery = make_test_delivery("default", "d", DeliveryTarget("hook"), "ada", START)
    assert mark_failed(delivery, "slow down", START, retry_after=120_000, retry_delays=(5,)).due_at == START + 120_000


BODY = b'{"approval_id":"1"}'
SIGNER = WebhookSigner([NEW])
SIGNED = SIGNER.headers("msg_1", BODY.decode(), START)
PROOF = SIGNED["webhook-signature"]


@pytest.mark.parametrize(
    "mutation",
    [
        {"webhook-signature": ""},
        {"webhook-signature": PROOF[:-1]},
        {"webhook-signature": PROOF + "="},
        {"webhook-signature": PROOF.replace("v1,", "v2,")},
        {"webhook-signature": PROOF.replace("v1,", "v1a,")},
        {"webhook-signature": PROOF.removeprefix("v1,")},
        {"webhook-signature": PROOF.swapcase()},
        {"webhook-signature": PROOF.replace("v1,", "v1, ")},
        {"webhook-signature": PROOF + "\u00e9"},
        {"webhook-signature": "v1," + base64.b64encode(bytes(32)).decode()},
        {"webhook-signature": " ".join(["v1,x"] * 10 + [PROOF])},
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-id": "msg_1 "},
        {"webhook-id": "msg.1"},
        {"webhook-id": "x" * 101},
        {"webhook-timestamp": str(START // 1000 + 1)},
        {"webhook-timestamp": f"{START // 1000}.0"},
        {"webhook-timestamp": f"+{START // 1000}"},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "9" * 13},
        {"webhook-timestamp": "\u0661\u0668\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660"},
    ],
)
def test_no_mutation_of_a_signature_is_taken(mutation: Mapping[str, str]) -> None:  # R24 R47
    with pytest.raises(Unauthenticated):
        SIGNER.verify({**SIGNED, **mutation}, BODY, START)


@pytest.mark.parametrize("body", [b"", BODY + b" ", b"\xff", BODY.replace(b"1", b"2")])
def test_no_other_body_is_taken(body: bytes) -> None:  # R24 R47
    with pytest.raises(Unauthenticated):
        SIGNER.verify(SIGNED, body, START)


@pytest.mark.parametrize(("seconds", "taken"), [(-301, False), (-299, True), (0, True), (299, True), (301, False)])
def test_a_signature_lives_for_five_minutes_both_ways(seconds: int, taken: bool) -> None:  # R24 R47
    now = START + seconds * 1000
    if taken:
        assert SIGNER.verify(SIGNED, BODY, now) == "msg_1"
    else:
        with pytest.raises(Unauthenticated):
            SIGNER.verify(SIGNED, BODY, now)


def test_the_borders_of_what_is_signed_cannot_be_moved() -> None:  # R47
    """The same bytes, cut elsewhere: the id ends later, and the rest of a sentence becomes the body."""
    planted = '{"type":"x","data":{"sentence":".1800000000.{}"}}'
    headers = SIGNER.headers("msg_1", planted, START)
    moved = {
        **headers,
        "webhook-id": f'msg_1.{START // 1000}.{{"type":"x","data":{{"sentence":"',
        "webhook-timestamp": "1800000000",
    }
    with pytest.raises(Unauthenticated):
        SIGNER.verify(moved, b'{}"}}', START)
