"""The remote client over a network that loses responses: no call is proposed or run twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import (
    Acknowledgement,
    Answered,
    Approve,
    Interlock,
    Proceed,
    Reject,
    Respond,
    StoreUnavailable,
    Waiting,
    propose,
)
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.call import ToolSpec
from interlock.core.errors import (
    AlreadyDecided,
    AlreadyStarted,
    BindingBroken,
    CallMismatch,
    Forbidden,
    InvalidDecision,
    LeaseLost,
    Misconfigured,
    NotFound,
    Unauthenticated,
)
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.sdk.client import Client, SyncClient
from tests.contract.leases import FAR, lease_end, move_lease
from tests.databases import Database
from tests.fault_proxy import Action, FaultProxy, fault_proxy
from tests.interlock_server import make_keys, run_server_in_thread
from tests.support import BOB, event_kinds, ledger_violations

Keys = dict[str, str]
WRITE = ToolSpec("send", "write", describe="Send to {to}")


@pytest.fixture
async def people_services(database: Database) -> AsyncIterator[AppServices]:
    services = build_services(database.url)
    await services.store.open()
    await services.put_policy("default", "version: 1\ndefaults: {undo_window: 0s}\n", "ada", {})
    yield services
    await services.store.close()


@pytest.fixture
async def keys(people_services: AppServices) -> Keys:
    return await make_keys(people_services)


@pytest.fixture
async def server(database: Database, keys: Keys) -> AsyncIterator[str]:
    with run_server_in_thread(database.url) as url:
        yield url


@pytest.fixture
async def lossy_network(server: str) -> AsyncIterator[FaultProxy]:
    with fault_proxy(server) as state:
        yield state


async def approve_next(people_services: AppServices) -> str:
    """Plays the reviewer for the next call that waits."""
    async with people_services.store.watch("default") as watch:
        while not (page := await people_services.store.list("default", ApprovalQuery(statuses=("pending",)))).items:
            await watch.wait(1)
    stored: Stored = page.items[0]
    seen = Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms)
    await people_services.inbox.decide("default", stored.approval.id, Approve(seen), BOB)
    return stored.approval.id


async def one_call(lock: Interlock, people_services: AppServices) -> list[str]:
    ran: list[str] = []

    @lock.tool(effect="write", secret=["token"])
    async def send(to: str, token: str = "hunter2") -> str:
        ran.append(to)
        return "sent"

    result, _ = await asyncio.gather(send("a"), approve_next(people_services))
    assert result == "sent"
    return ran


# R3, R23, R46
@pytest.mark.parametrize("act", ["lose", "refuse", "busy"])
async def test_whichever_answer_is_lost_the_tool_runs_once(
    lossy_network: FaultProxy, keys: Keys, people_services: AppServices, act: Action
) -> None:
    """One program after another; each loses another one of its answers."""
    for lost in range(1, 10):
        before = len(lossy_network.lines)
        lossy_network.action = lambda number, line, lost=lost + before: act if number == lost else "pass"  # type: ignore[misc]
        with Interlock(lossy_network.url, key=keys["agent"], agent=f"agent {lost}") as lock:
            assert await one_call(lock, people_services) == ["a"]
    assert len(lossy_network.lines) > 9 * 6
    seen = await event_kinds(people_services)
    assert {kind: seen.count(kind) for kind in ("run_opened", "proposed", "started", "succeeded", "run_closed")} == {
        "run_opened": 9,
        "proposed": 9,
        "started": 9,
        "succeeded": 9,
        "run_closed": 9,
    }
    assert await ledger_violations(people_services) == []


# R46
async def test_a_start_whose_answer_never_comes_does_not_run_the_tool(
    lossy_network: FaultProxy, keys: Keys, people_services: AppServices
) -> None:
    lossy_network.action = lambda number, line: "lose" if "/start" in line else "pass"
    async with Client(lossy_network.url, keys["agent"], retry_timeout=0.5) as client:
        result = await client.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        assert isinstance(result, Waiting)
        await approve_next(people_services)
        assert isinstance(await client.wait(result.approval_id), Proceed)
        with pytest.raises(StoreUnavailable, match="The tool was not run"):
            await client.start(result.approval_id, WRITE)
        lossy_network.action = lambda number, line: "pass"
        with pytest.raises(AlreadyStarted):  # a new attempt: the outcome of the first is unknown
            await client.start(result.approval_id, WRITE)


# R46
async def test_a_finish_with_a_lost_response_is_retried(
    lossy_network: FaultProxy, keys: Keys, people_services: AppServices
) -> None:
    async with Client(lossy_network.url, keys["agent"]) as client:
        result = await client.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        assert isinstance(result, Waiting)
        await approve_next(people_services)
        started = await client.start(result.approval_id, WRITE)
        told_before = len(lossy_network.lines)
        lossy_network.action = lambda number, line: "lose" if number == told_before + 1 else "pass"
        assert (await client.finish(result.approval_id, started.fence, {"id": 1})).status == "succeeded"
    assert (await event_kinds(people_services)).count("succeeded") == 1


# R23
async def test_a_wait_goes_on_when_the_server_was_away(
    database: Database, keys: Keys, people_services: AppServices
) -> None:
    with run_server_in_thread(database.url) as url, fault_proxy(url) as net:
        client = Client(net.url, keys["agent"], retry_timeout=0.1)
        result = await client.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        assert isinstance(result, Waiting)
        net.action = lambda number, line: "refuse"
        waiting = asyncio.create_task(client.wait(result.approval_id))
        while len(net.lines) < 5:  # noqa: ASYNC110  it came back several times
            await asyncio.sleep(0.01)
        await approve_next(people_services)
        net.action = lambda number, line: "pass"
        assert isinstance(await waiting, Proceed)
        net.action = lambda number, line: "refuse"
        with pytest.raises(StoreUnavailable):  # other verbs do not wait for ever
            await client.check(propose("send", {"to": "b"}, "run", "2"), WRITE)
        await client.close()


# R57
@pytest.mark.parametrize("declared", ["write", "read"])
async def test_a_pinned_tool_runs_with_the_definition_that_its_program_has(
    database: Database, keys: Keys, people_services: AppServices, declared: str
) -> None:
    """Pinned before the server starts, so that nobody has to wait until it follows."""
    await people_services.store.pin("default", [ToolSpec("send", "write", secret=("token",))], "", "ada")
    ran: list[str] = []
    with run_server_in_thread(database.url) as url, Interlock(url, key=keys["agent"], agent="mailer") as lock:

        @lock.tool(effect=declared, secret=["token"])
        async def send(to: str, token: str = "hunter2") -> str:
            ran.append(to)
            return "sent"

        result, approval_id = await asyncio.gather(send("a"), approve_next(people_services))
    assert (result, ran) == ("sent", ["a"])
    terms = (await people_services.store.get("default", approval_id)).approval.terms
    assert bool(terms.notes) is (declared == "read")
    assert await ledger_violations(people_services) == []


# R24, R57
async def test_a_registered_tool_runs_unless_the_program_changed_it_after_the_approval(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    own = ToolSpec("cms_delete_post", "destructive")
    async with Client(server, keys["agent"]) as client:
        result = await client.check(propose(own.name, {"slug": "welcome"}, "run", "1"), own)
        assert isinstance(result, Waiting)
        await approve_next(people_services)
        with pytest.raises(BindingBroken, match="definition changed"):
            await client.start(result.approval_id, ToolSpec(own.name, "read"))
        assert (await client.start(result.approval_id, own)).args == b'{"slug":"welcome"}'


# R24, R48
async def test_errors_are_those_of_the_services(server: str, keys: Keys, people_services: AppServices) -> None:
    async with Client(server, keys["agent"]) as client:
        result = await client.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        assert isinstance(result, Waiting)
        with pytest.raises(CallMismatch):
            await client.check(propose("send", {"to": "b"}, "run", "1"), WRITE)
        with pytest.raises(NotFound):
            await client.wait("01234567-0123-7123-8123-0123456789ab")
        with pytest.raises(NotFound):
            await client.wait("../runs")
        with pytest.raises(Forbidden, match="agent"):
            await client.decide(result.approval_id, Approve(Acknowledgement(result.args_sha256)))
        await approve_next(people_services)
        with pytest.raises(BindingBroken, match="definition changed"):
            await client.start(result.approval_id, ToolSpec("send", "write", idempotent=True))
        started = await client.start(result.approval_id, WRITE)
        assert (started.args, started.idempotency_key) == (b'{"to":"a"}', result.approval_id)
        with pytest.raises(AlreadyStarted):
            await client.start(result.approval_id, WRITE)
        await people_services.gate.renew("default", result.approval_id, started.fence, 1)
        async with asyncio.timeout(60):
            while (await people_services.store.get("default", result.approval_id)).approval.status == "running":
                await people_services.worker.sweep()
        with pytest.raises(LeaseLost, match="Too late"):
            await client.finish(result.approval_id, started.fence, "sent")


# R21, R48
async def test_a_person_decides_with_their_own_key_and_as_nobody_else(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    async with Client(server, keys["agent"]) as agent:
        result = await agent.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
    lock = Interlock(server, key=keys["reviewer"])
    with pytest.raises(Forbidden, match="key of bob"):
        await lock.decide(result.approval_id, Approve(), reviewer="ada")
    assert (
        await lock.decide(result.approval_id, Approve(Acknowledgement(result.args_sha256)), reviewer="bob")
    ).status == "approved"
    with pytest.raises(InvalidDecision, match="carries args_sha256"):
        await lock.decide(result.approval_id, Approve(), reviewer="bob")
    with pytest.raises(AlreadyDecided) as late:
        await lock.decide(result.approval_id, Reject("", Acknowledgement(result.args_sha256)), reviewer="bob")
    assert late.value.ids["decision"]["by"] == "bob"  # type: ignore[index]
    assert isinstance(late.value.ids["decision"]["at"], int)  # type: ignore[index]
    with pytest.raises(Forbidden, match="for agents"):  # a person's key proposes nothing
        await lock.check(propose("send", {}, "run", "2"))
    lock.close()


async def test_a_wrong_key_says_what_to_do_and_is_not_shown(server: str) -> None:
    key = "ik_not_a_key_at_all"
    async with Client(server, key) as client:
        with pytest.raises(Unauthenticated, match="interlock keys create") as refused:
            await client.check(propose("send", {}, "run", "1"))
    assert (
        key
        not in f"{refused.value!r} {refused.value.to_json()} {client!r} {vars(client)!r} {vars(client._transport)!r}"
    )
    with pytest.raises(Unauthenticated), Interlock(server, key=key):
        pytest.fail("it opened")


def test_the_sync_client_does_the_same(server: str, keys: Keys) -> None:
    with SyncClient(server, keys["agent"]) as agent, SyncClient(server, keys["reviewer"]) as bob:
        result = agent.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        assert isinstance(result, Waiting)
        assert isinstance(agent.wait(result.approval_id, timeout=0.01), Waiting)
        assert bob.decide(result.approval_id, Approve(Acknowledgement(result.args_sha256))).status == "approved"
        started = agent.start(result.approval_id, WRITE)
        assert agent.renew(result.approval_id, started.fence).status == "running"
        assert agent.finish(result.approval_id, started.fence, error="no such host").status == "failed"
        other = agent.check(propose("send", {"to": "b"}, "run", "2"), WRITE)
        assert agent.cancel(other.approval_id, "not needed").status == "cancelled"
        third = agent.check(propose("send", {"to": "c"}, "run", "3"), WRITE)
        assert isinstance(third, Waiting)
        bob.decide(third.approval_id, Approve(Acknowledgement(third.args_sha256)))
        fence = agent.start(third.approval_id).fence
        assert agent.abandon(third.approval_id, fence).status == "unknown"
        assert "SyncClient" in repr(agent)


# R2, R45
async def test_describe_and_preview_are_made_where_the_tool_is(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    def preview(args: Any) -> str:
        return f"{len(args)} arguments"

    with Interlock(server, key=keys["agent"], agent="a", user="alice") as lock:

        @lock.tool(effect="write", describe=lambda args: f"Send {args['what']}!", preview=preview, secret=["token"])
        async def send(what: str, token: str) -> str:
            return token

        result, approval_id = await asyncio.gather(send("{mail}", "hunter2"), approve_next(people_services))
    stored, card = (view := await people_services.inbox.show("default", approval_id)).stored, view.card
    assert result == "hunter2"
    assert card.sentence == 'Run send: token = (hidden), what = "{mail}"'
    assert (card.agent_description, card.agent_preview) == ("Send {mail}!", "2 arguments")
    assert stored.payload.result == b'"[hidden]"'
    assert (stored.approval.subject.requester, stored.approval.subject.agent) == ("alice", "a")
    assert "hunter2" not in str(stored.payload.shown)


# R46
async def test_a_lease_is_kept_while_the_tool_runs(
    server: str, keys: Keys, people_services: AppServices, database: Database
) -> None:
    with Interlock(server, key=keys["agent"], lease_seconds=3) as lock:

        @lock.tool(effect="write")
        async def slow() -> str:
            started = lock.execution()
            assert started is not None
            ends = [started.lease_until]
            while len(ends) < 3:
                move_lease(database, started.approval_id, FAR)  # until a renewal sets it anew
                while lease_end(database, started.approval_id) == FAR:  # noqa: ASYNC110  a row
                    await asyncio.sleep(0.02)
                ends.append(lease_end(database, started.approval_id))
            assert ends == sorted(set(ends)), "each renewal is for longer"
            return "done"

        async with asyncio.timeout(120):
            result, _ = await asyncio.gather(slow(), approve_next(people_services))
    assert result == "done"


# R46
async def test_a_result_too_large_to_be_sent_is_described(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    with Interlock(server, key=keys["agent"]) as lock:

        @lock.tool(effect="write")
        async def dump() -> str:
            return "x" * (1024 * 1024 - 10)

        result, approval_id = await asyncio.gather(dump(), approve_next(people_services))
    assert len(result) == 1024 * 1024 - 10
    stored = await people_services.store.get("default", approval_id)
    assert (stored.approval.status, b"too large" in (stored.payload.result or b"")) == ("succeeded", True)


async def test_what_a_server_decides_cannot_be_given_by_the_program(server: str, keys: Keys) -> None:
    for option, words in (
        ({"policy": "version: 1\n"}, "its own policy"),
        ({"tool_approvals": {"send": True}}, "interlock.yaml"),
        ({"retention": "30d"}, "retention"),
        ({"workspace": "other"}, "one workspace"),
    ):
        with pytest.raises(Misconfigured, match=words):
            Interlock(server, key=keys["agent"], **option)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match="keys create"):
        Interlock(server)
    with pytest.raises(Misconfigured, match="server's address"):
        Interlock("sqlite:///x.db", key=keys["agent"])


# R55
async def test_an_agent_answers_what_people_ask_about_its_call(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    async with Client(server, keys["agent"]) as client:
        result = await client.check(propose("send", {"to": "a"}, "run", "1"), WRITE)
        waiting = asyncio.create_task(client.wait(result.approval_id, after_question=0))
        await people_services.inbox.ask("default", result.approval_id, "Why now?", BOB)
        woken = await waiting
        assert isinstance(woken, Waiting)
        assert woken.questions == (1,)
        (question,) = await client.questions(result.approval_id)
        assert (question.number, question.by, question.text) == (1, "bob", "Why now?")
        assert (await client.answer(result.approval_id, 1, "It is due.")).status == "pending"
        assert await client.questions(result.approval_id) == []


# R37
async def test_a_question_by_hand_is_answered_by_a_person(
    server: str, keys: Keys, people_services: AppServices
) -> None:
    async with Client(server, keys["agent"]) as client:
        asked = await client.ask("Which colour?", run_id="run", call_id="q", choices=["red", "blue"], requester="ann")
        assert isinstance(asked, Waiting)
        await people_services.inbox.decide("default", asked.approval_id, Respond("blue"), BOB)
        assert await client.wait(asked.approval_id) == Answered("blue", asked.approval_id)
