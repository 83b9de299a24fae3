"""Channels and their stand-ins: time stands still, and nothing leaves this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from interlock.app.bootstrap import AppServices
from tests.databases import Place
from tests.fakes.mail_server import MailServer, mail_server
from tests.server.conftest import app, client, keys, settings, site
from tests.support import Clock, opened

__all__ = ["app", "client", "keys", "settings", "site"]


@pytest.fixture
async def parts(place: Place, clock: Clock) -> AsyncIterator[AppServices]:
    async with opened(place, clock) as doors:
        yield doors


@pytest.fixture(autouse=True)
def patience_with_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack gives up after three seconds, which a busy machine may need. Tests of these limits set their own."""
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 60.0)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60.0)


@pytest.fixture(autouse=True)
async def connections_end() -> AsyncIterator[None]:
    """What a test leaves open is closed before its loop is: a connection under TLS takes a few steps to end."""
    watched = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    before = len(watched)
    yield
    async with asyncio.timeout(30):
        while len(watched) > before:  # noqa: ASYNC110  nothing tells when they have ended
            await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
def server_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServer]:
    with mail_server(tmp_path_factory.mktemp("mail")) as made:
        yield made


@pytest.fixture
def server(server_of_all: MailServer) -> MailServer:
    """For mails, with nothing in it yet."""
    server_of_all.taken.clear()
    server_of_all.refused.clear()
    server_of_all.says.clear()
    return server_of_all
