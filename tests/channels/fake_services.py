"""A fake service for each kind of channel. A new kind needs one function here, under its name."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from interlock.testing.channels import ERROR_TEXT, FakeService
from tests.fakes import slack as slack_fake
from tests.fakes.apprise_services import ntfy
from tests.fakes.http_receiver import ReceivedRequest, Receiver, Response, run_receiver
from tests.fakes.mail_server import PASSWORD, Mail, assert_valid_mime, mail_server
from tests.fakes.pagerduty import pagerduty as pagerduty_standin
from tests.fakes.teams import teams as teams_standin
from tests.support import Clock

Start = Callable[[Path, Clock], AbstractAsyncContextManager[FakeService]]


@asynccontextmanager
async def webhook(_: Path, __: Clock) -> AsyncIterator[FakeService]:
    secrets = [f"whsec_{base64.b64encode(bytes([each]) * 32).decode()}" for each in (7, 8)]
    async with run_receiver(path="/planted-in-the-path") as fake:
        settings = {"url": fake.url, "secrets": secrets, "full": True, "allow_private": True, "acts_as": "bob"}
        yield _fake_service(
            fake, settings, lambda heard: heard.headers["webhook-id"], (*secrets, "planted-in-the-path")
        )


@asynccontextmanager
async def pagerduty(_: Path, __: Clock) -> AsyncIterator[FakeService]:
    key = "plantedplantedplantedplanted0123"
    async with pagerduty_standin() as fake:
        fake.routing_key = key
        settings = {"url": fake.url, "routing_key": key, "allow_private": True}
        service = _fake_service(fake.receiver, settings, lambda heard: str(heard.json["dedup_key"]), (key,))
        service.received_texts = lambda: [
            text for text in _received_texts(fake.receiver) if text != key
        ]  # it is how PagerDuty knows us
        yield service


@asynccontextmanager
async def teams(_: Path, __: Clock) -> AsyncIterator[FakeService]:
    async with teams_standin() as fake:
        settings = {"url": f"{fake.url}?sig=planted-signature", "allow_private": True}
        yield _fake_service(fake.receiver, settings, _card_id, ("planted-signature",))


@asynccontextmanager
async def apprise(_: Path, __: Clock) -> AsyncIterator[FakeService]:
    """These services are told a text and nothing else."""
    async with run_receiver(ntfy, "/") as fake:
        url = f"ntfy://bot:planted-password@{urlsplit(fake.url).netloc}/approvals?cto=30&rto=30"
        yield _fake_service(fake, {"urls": [url], "allow_private": True}, None, ("planted-password",))


@asynccontextmanager
async def slack(_: Path, clock: Clock) -> AsyncIterator[FakeService]:
    fake = slack_fake.FakeSlack(clock)
    fake.add_channel("approvals")
    secrets = (slack_fake.BOT, slack_fake.SECRET)
    settings = {"token": secrets[0], "signing_secret": secrets[1], "allow_private": True}

    def ids() -> list[str]:
        posted = fake.bodies_sent_to("chat.postMessage")
        return [body["metadata"]["event_payload"]["id"] for body in posted]

    def fail(broken: bool) -> None:
        fake.failures = [slack_fake.Refused(ERROR_TEXT, 500)] * 50 if broken else []

    async with slack_fake.run_slack(fake):
        said = lambda: [text for request in fake.requests for text in texts(request.body)]  # noqa: E731
        refused = lambda: [each for each in fake.refusals if each != ERROR_TEXT]  # noqa: E731
        yield FakeService(
            settings={**settings, "url": f"{fake.url}/api/"},
            received_texts=said,
            refusals=refused,
            fail=fail,
            ids=ids,
            secrets=secrets,
        )


@asynccontextmanager
async def email(folder: Path, _: Clock) -> AsyncIterator[FakeService]:
    with mail_server(folder) as fake:

        def said() -> list[str]:
            heads = [str(value) for mail in fake.accepted for value in mail.parsed.values()]
            return heads + [text for mail in fake.accepted for text in (mail.text, mail.html)]

        def fail(broken: bool) -> None:
            fake.overrides = {"DATA": f"451 {ERROR_TEXT}"} if broken else {}

        ids = lambda: [str(mail.parsed["Message-ID"]) for mail in fake.accepted]  # noqa: E731
        yield FakeService(
            settings=fake.settings(),
            received_texts=said,
            refusals=lambda: list(_mime_defects(fake.accepted)),
            fail=fail,
            ids=ids,
            secrets=(PASSWORD,),
        )


FAKE_SERVICES: dict[str, Start] = {
    "apprise": apprise,
    "email": email,
    "pagerduty": pagerduty,
    "slack": slack,
    "teams": teams,
    "webhook": webhook,
}


def texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for name, inner in value.items():
                yield name
                yield from texts(inner)
        case list():
            for inner in value:
                yield from texts(inner)
        case _:
            return


def _fake_service(
    fake: Receiver, settings: dict[str, object], name: Callable[[ReceivedRequest], str] | None, secrets: Sequence[str]
) -> FakeService:
    def fail(broken: bool) -> None:
        fake.override = Response(500, {}, ERROR_TEXT.encode()) if broken else None

    return FakeService(
        settings=settings,
        received_texts=lambda: _received_texts(fake),
        refusals=lambda: [each for each in fake.refused if each != ERROR_TEXT],
        fail=fail,
        ids=None if name is None else lambda: [name(heard) for heard in fake.requests],
        secrets=secrets,
    )


def _received_texts(fake: Receiver) -> list[str]:
    """All texts of all bodies, and all headers but the one that says who we are."""
    bodies = [text for heard in fake.requests for text in texts(json.loads(heard.body))]
    headers = [
        value for heard in fake.requests for key, value in heard.headers.items() if key not in ("authorization", "host")
    ]
    return bodies + headers


def _mime_defects(mails: Sequence[Mail]) -> Iterator[str]:
    """Mails that a server takes and that are none all the same."""
    for mail in mails:
        try:
            assert_valid_mime(mail)
        except AssertionError as error:
            yield str(error)


def _card_id(heard: ReceivedRequest) -> str:
    return str(heard.json["attachments"][0]["content"]["body"][0]["id"])
