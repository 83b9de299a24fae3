"""Cut connections; `python -m tests.faults.cuts --cuts 500` for longer runs."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from interlock.app.bootstrap import build_services
from interlock.core.errors import StoreUnavailable
from interlock.storage.postgres.connection import retry_on_lost_connection
from tests.faults.cuts import SOCKET, CuttingProxy
from tests.faults.database_controls import NOTICED
from tests.faults.reports import is_caught, run_suite
from tests.postgres import Server
from tests.support import approve, event_kinds, ledger_violations, propose_pending, status

CALLERS = 40


@pytest.mark.parametrize("options", [["--by", "server"], ["--by", "wire"], ["--by", "wire", "--away", "0.3"]])
def test_a_cut_connection_costs_time_and_nothing_else(options: list[str]) -> None:
    result = run_suite("cuts", "--cuts", "24", *options)
    assert result["wrong"] == []
    assert result["faults"] >= 24
    assert result["succeeded"] >= result["operations"] / 2


@pytest.mark.parametrize(
    "options", [["--by", "server", "--broken", "taken-for-done"], ["--by", "wire", "--broken", "done-again"]]
)
def test_a_store_that_guesses_what_became_of_a_lost_answer_would_be_noticed(options: list[str]) -> None:
    assert is_caught("cuts", "--cuts", "24", *options, noticed=NOTICED[options[-1]])


@pytest.fixture
def proxied_store(
    postgres_server: Server, postgres_database: str, tmp_path: Path
) -> Iterator[tuple[CuttingProxy, str]]:
    """Something that can be cut, and an address that leads through it."""
    with CuttingProxy(tmp_path, postgres_server.sockets / SOCKET, random.Random(0), away=3600) as made:
        yield made, f"postgresql://postgres@/{postgres_database}?host={quote(str(tmp_path), safe='')}"


async def test_all_callers_of_a_batch_in_doubt_are_told_so_and_it_is_not_done_again(
    proxied_store: tuple[CuttingProxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them used to be tried alone, one after the other, and to hear that somebody else had decided."""
    monkeypatch.setattr(retry_on_lost_connection, "__defaults__", (0.3,))
    cut, url = proxied_store
    services = build_services(url)
    await services.store.open()
    try:
        ids = [await propose_pending(services, n) for n in range(CALLERS)]
        cut.cut_next("unanswered")
        async with asyncio.timeout(0.3 * CALLERS / 2):
            answers = await asyncio.gather(*(approve(services, each) for each in ids), return_exceptions=True)
        assert {type(each) for each in answers} == {StoreUnavailable}
        cut.stop_cutting()
        now = [await status(services, each) for each in ids]
        assert "approved" in now
        assert set(now) <= {"approved", "pending"}
        assert (await event_kinds(services)).count("approved") == now.count("approved")
        assert await ledger_violations(services) == []
    finally:
        await services.store.close()


async def test_all_who_look_while_the_server_is_gone_are_told_at_once(
    proxied_store: tuple[CuttingProxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_on_lost_connection, "__defaults__", (0.3,))
    cut, url = proxied_store
    services = build_services(url)
    await services.store.open()
    try:
        approval_id = await propose_pending(services)
        cut.end()
        async with asyncio.timeout(0.3 * CALLERS / 2):
            looks = (status(services, approval_id) for _ in range(CALLERS))
            answers = await asyncio.gather(*looks, return_exceptions=True)
        assert {type(each) for each in answers} == {StoreUnavailable}
        cut.stop_cutting()
        assert await status(services, approval_id) == "pending"
    finally:
        await services.store.close()
