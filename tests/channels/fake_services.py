"""How to try each kind of channel against its stand-in. A new kind needs one function here, under its name."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.fakes import slack as slack_fake
from tests.fakes.apprise_services import ntfy
from tests.fakes.http_receiver import Answer, Heard, Receiver, receiving
from tests.fakes.mail_server import PASSWORD, Mail, mail_server, valid
from tests.fakes.pagerduty import pagerduty as pagerduty_standin
from tests.fakes.teams import teams as teams_standin
from tests.support import Clock

WORDS = "what the other side said and nobody is to repeat"


@dataclass
class Stand:
    """A stand-in at work. `secrets` are in the settings: they may be where `settings` put them, and nowhere else.

    `said` gives all texts of what arrived, `refused` what the stand-in would not take, `fail` breaks it or repairs it.
    `ids` are what tells one message from another there; None where the service knows nothing of the kind.
    """

    settings: dict[str, object]
    said: Callable[[], Sequence[str]]
    refused: Callable[[], Sequence[str]]
    fail: Callable[[bool], None]
    ids: Callable[[], Sequence[str]] | None = None
    secrets: Sequence[str] = field(default=())


Start = Callable[[Path, Clock], AbstractAsyncContextManager[Stand]]


@asynccontextmanager
async def webhook(_: Path, __: Clock) -> AsyncIterator[Stand]:
    secrets = [f"whsec_{base64.b64encode(bytes([each]) * 32).decode()}" for each in (7, 8)]
    async with receiving(path="/planted-in-the-path") as there:
        settings = {"url": there.url, "secrets": secrets, "full": True, "allow_private": True, "acts_as": "bob"}
        yield _stand(there, settings, lambda heard: heard.headers["webhook-id"], (*secrets, "planted-in-the-path"))


@asynccontextmanager
async def pagerduty(_: Path, __: Clock) -> AsyncIterator[Stand]:
    key = "plantedplantedplantedplanted0123"
    async with pagerduty_standin() as there:
        there.routing_key = key
        settings = {"url": there.url, "routing_key": key, "allow_private": True}
        stand = _stand(there.receiver, settings, lambda heard: str(heard.json["dedup_key"]), (key,))
        stand.said = lambda: [text for text in _said(there.receiver) if text != key]  # it is how PagerDuty knows us
        yield stand


@asynccontextmanager
async def teams(_: Path, __: Clock) -> AsyncIterator[Stand]:
    async with teams_standin() as there:
        settings = {"url": f"{there.url}?sig=planted-signature", "allow_private": True}
        yield _stand(there.receiver, settings, _card_id, ("planted-signature",))


@asynccontextmanager
async def apprise(_: Path, __: Clock) -> AsyncIterator[Stand]:
    """These services are told a text and nothing else."""
    async with receiving(ntfy, "/") as there:
        url = f"ntfy://bot:planted-password@{urlsplit(there.url).netloc}/approvals?cto=30&rto=30"
        yield _stand(there, {"urls": [url], "allow_private": True}, None, ("planted-password",))


@asynccontextmanager
async def slack(_: Path, clock: Clock) -> AsyncIterator[Stand]:
    there = slack_fake.Slack(clock)
    there.add_room("approvals")
    secrets = (slack_fake.BOT, slack_fake.SECRET)
    settings = {"token": secrets[0], "signing_secret": secrets[1], "allow_private": True}

    def ids() -> list[str]:
        posted = there.asked("chat.postMessage")
        return [body["metadata"]["event_payload"]["id"] for body in posted]

    def fail(broken: bool) -> None:
        there.trouble = [slack_fake.Refused(WORDS, 500)] * 50 if broken else []

    async with slack_fake.served(there):
        said = lambda: [text for request in there.requests for text in texts(request.body)]  # noqa: E731
        refused = lambda: [each for each in there.refusals if each != WORDS]  # noqa: E731
        yield Stand({**settings, "url": f"{there.url}/api/"}, said, refused, fail, ids, secrets)


@asynccontextmanager
async def email(folder: Path, _: Clock) -> AsyncIterator[Stand]:
    with mail_server(folder) as there:

        def said() -> list[str]:
            heads = [str(value) for mail in there.taken for value in mail.parsed.values()]
            return heads + [text for mail in there.taken for text in (mail.text, mail.html)]

        def fail(broken: bool) -> None:
            there.says = {"DATA": f"451 {WORDS}"} if broken else {}

        ids = lambda: [str(mail.parsed["Message-ID"]) for mail in there.taken]  # noqa: E731
        yield Stand(there.settings(), said, lambda: list(_defects(there.taken)), fail, ids, (PASSWORD,))


STANDS: dict[str, Start] = {
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


def _stand(
    there: Receiver, settings: dict[str, object], name: Callable[[Heard], str] | None, secrets: Sequence[str]
) -> Stand:
    def fail(broken: bool) -> None:
        there.instead = Answer(500, {}, WORDS.encode()) if broken else None

    return Stand(
        settings,
        lambda: _said(there),
        lambda: [each for each in there.refused if each != WORDS],
        fail,
        None if name is None else lambda: [name(heard) for heard in there.heard],
        secrets,
    )


def _said(there: Receiver) -> list[str]:
    """All texts of all bodies, and all headers but the one that says who we are."""
    bodies = [text for heard in there.heard for text in texts(json.loads(heard.body))]
    headers = [
        value for heard in there.heard for key, value in heard.headers.items() if key not in ("authorization", "host")
    ]
    return bodies + headers


def _defects(mails: Sequence[Mail]) -> Iterator[str]:
    """Mails that a server takes and that are none all the same."""
    for mail in mails:
        try:
            valid(mail)
        except AssertionError as error:
            yield str(error)


def _card_id(heard: Heard) -> str:
    return str(heard.json["attachments"][0]["content"]["body"][0]["id"])
