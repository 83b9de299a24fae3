"""Fixtures of channels and their fakes: the clock is fixed and nothing leaves this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from interlock.app.bootstrap import AppServices
from tests.databases import Database
from tests.fakes.mail_server import MailServer, mail_server
from tests.server.conftest import app, client, keys, settings, state
from tests.support import Clock, open_services

__all__ = ["app", "client", "keys", "settings", "state"]


@pytest.fixture
async def services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    async with open_services(database, clock) as services:
        yield services


@pytest.fixture(autouse=True)
def slack_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise Slack's three-second limits for loaded machines; tests of these limits set their own."""
    monkeypatch.setattr("interlock.notify.channels.slack.channel.RESPONSE_TIMEOUT", 60.0)
    monkeypatch.setattr("interlock.notify.channels.slack.channel.USER_LOOKUP_TIMEOUT", 60.0)


@pytest.fixture(autouse=True)
async def close_connections() -> AsyncIterator[None]:
    """Wait until the connections of a test are closed, before its event loop is."""
    watched = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    before = len(watched)
    yield
    async with asyncio.timeout(30):
        while len(watched) > before:  # noqa: ASYNC110  nothing tells when they have ended
            await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
def shared_mail_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServer]:
    with mail_server(tmp_path_factory.mktemp("mail")) as made:
        yield made


@pytest.fixture
def server(shared_mail_server: MailServer) -> MailServer:
    """The mail server, emptied."""
    shared_mail_server.accepted.clear()
    shared_mail_server.refused.clear()
    shared_mail_server.overrides.clear()
    return shared_mail_server
