"""The SDK: decorated functions over a real database or server."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Acknowledgement,
    Answered,
    Approve,
    CallAnswered,
    CallFailed,
    CallRefused,
    CallUnknown,
    CallWouldFail,
    Edit,
    Interlock,
    Misconfigured,
    Proceed,
    Refused,
    Reject,
    Respond,
    ToolCall,
    ToolSpec,
    Waiting,
    propose,
)
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.decision import Decision
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from tests.contract.leases import FAR, lease_end, move_lease
from tests.databases import Database
from tests.support import BOB, ledger_violations

POLICY = """
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: no roots, tools: [wipe], when: 'args.path == "/"', then: deny, reason: Not the root.}
"""


@pytest.fixture
async def people_services(database: Database) -> AsyncIterator[AppServices]:
    """Services of the people, directly on the database of the tested programs."""
    services = build_services(database.url)
    await services.store.open()
    await services.put_policy("default", POLICY, "ada", {})
    yield services
    await services.store.close()


@pytest.fixture
def make_interlock(connection_options: dict[str, Any]) -> Iterator[Callable[..., Interlock]]:
    made: list[Interlock] = []

    def lock(**options: Any) -> Interlock:
        made.append(Interlock(**connection_options, **{"agent": "tester", **options}))
        return made[-1]

    yield lock
    for each in made:
        each.close()


async def answer_next(people_services: AppServices, decide: Callable[[Stored], Decision]) -> str:
    """Plays the reviewer for the next call that waits."""
    async with people_services.store.watch("default") as watch:
        while True:
            page = await people_services.store.list("default", ApprovalQuery(statuses=("pending",)))
            if page.items:
                stored = page.items[0]
                await people_services.inbox.decide("default", stored.approval.id, decide(stored), BOB)
                return stored.approval.id
            await watch.wait(1)


def approve_stored(stored: Stored) -> Decision:
    return Approve(Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms))


async def test_an_async_tool_waits_for_a_person_and_runs_once(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock, ran = make_interlock(), []

    @lock.tool(effect="write", describe="Create issue {title!r}")
    async def create_issue(title: str, assignee: str | None = None) -> dict[str, str]:
        ran.append(title)
        return {"id": "1"}

    result, approval_id = await asyncio.gather(create_issue("Fix login"), answer_next(people_services, approve_stored))
    assert (result, ran) == ({"id": "1"}, ["Fix login"])
    view = await people_services.inbox.show("default", approval_id)
    stored, card = view.stored, view.card
    assert "Create issue 'Fix login'" in (card.sentence, card.agent_description)
    assert stored.payload.args == b'{"assignee":null,"title":"Fix login"}'
    assert (stored.approval.status, stored.payload.result) == ("succeeded", b'{"id":"1"}')
    assert await ledger_violations(people_services) == []


async def test_a_sync_tool_does_the_same(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock, threads = make_interlock(), []

    @lock.tool(effect="destructive")
    def wipe(path: str) -> str:
        threads.append(threading.current_thread())
        return f"wiped {path}"

    caller = asyncio.create_task(asyncio.to_thread(wipe, "/tmp/x"))
    await answer_next(people_services, approve_stored)
    assert await caller == "wiped /tmp/x"
    assert "interlock" not in threads[0].name  # the body runs where it was called, not on our bridge


def test_a_read_needs_nobody(make_interlock: Callable[..., Interlock]) -> None:  # R1
    lock = make_interlock()

    @lock.tool(effect="read")
    def look(n: int) -> int:
        assert lock.execution() is None
        return n + 1

    assert look(1) == 2


async def test_a_tool_gets_the_edited_arguments_in_its_own_types(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R11
    lock = make_interlock()

    @dataclass
    class Point:
        x: int
        y: int

    @lock.tool(effect="write")
    async def move(to: Point, speed: float = 1.0) -> str:
        return f"{to!r} {speed!r}"

    def edit(stored: Stored) -> Decision:
        return Edit(b'{"speed":2,"to":{"x":5,"y":6}}', Acknowledgement(stored.approval.args_sha256))

    result, _ = await asyncio.gather(move(Point(1, 2)), answer_next(people_services, edit))
    assert result.endswith("Point(x=5, y=6) 2.0")


async def test_what_people_said_instead_reaches_the_program(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R11, R35
    lock = make_interlock()

    @lock.tool(effect="write")
    async def send(to: str) -> None:
        pytest.fail("it ran")

    with pytest.raises(CallAnswered) as answered:
        await asyncio.gather(send("a"), answer_next(people_services, lambda _: Respond("ask zoe first")))
    assert answered.value.result == "ask zoe first"
    with pytest.raises(CallRefused) as refused:
        await asyncio.gather(send("b"), answer_next(people_services, lambda _: Reject("too late")))
    assert refused.value.result == {
        "success": False,
        "cancelled": True,
        "declined": True,
        "status": "rejected",
        "reason": "too late",
        "error": "Access denied: too late",
    }


async def test_a_denied_call_raises_at_once(make_interlock: Callable[..., Interlock]) -> None:
    lock = make_interlock()

    @lock.tool(effect="destructive")
    async def wipe(path: str) -> None:
        pytest.fail("it ran")

    with pytest.raises(CallRefused, match="Not the root"):
        await wipe("/")


async def test_a_call_that_its_preview_knows_to_fail_is_refused(tmp_path: Path) -> None:  # R35
    def missing(args: Mapping[str, object]) -> str:
        raise CallWouldFail(f"There is no {args['path']}.")

    async with Interlock(f"sqlite:///{tmp_path / 'calls.db'}", agent="tester") as lock:

        @lock.tool(effect="destructive", preview=missing)
        async def wipe(path: str) -> None:
            pytest.fail("it ran")

        with pytest.raises(CallRefused, match=r"^wipe was not run \(denied\): There is no /x\.$") as refused:
            await wipe("/x")
        assert isinstance(refused.value.result, dict)
        assert refused.value.result["reason"] == "There is no /x."
        assert await lock.check(propose("wipe", {"path": "/y"}, "run", "call")) == Refused("There is no /y.")


async def test_a_tool_that_fails_is_recorded_without_its_secrets(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock = make_interlock()

    @lock.tool(effect="write", secret=["token"])
    async def push(token: str) -> None:
        raise ValueError(f"bad token {token}")

    with pytest.raises(ValueError, match="hunter2"):
        await asyncio.gather(push("hunter2"), answer_next(people_services, approve_stored))
    page = await people_services.store.list("default", ApprovalQuery(payload="whole"))
    assert page.items[0].payload.error == "ValueError: bad token [hidden]"
    assert page.items[0].approval.status == "failed"


async def test_a_cancelled_wait_withdraws_the_call(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock = make_interlock()

    @lock.tool(effect="write")
    async def send(to: str) -> None:
        pytest.fail("it ran")

    await asyncio.to_thread(lock.open)
    waiting = asyncio.create_task(send("a"))
    async with people_services.store.watch("default") as watch:
        while not (await people_services.store.list("default", ApprovalQuery())).items:
            await watch.wait(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    stored = (await people_services.store.list("default", ApprovalQuery())).items[0]
    assert stored.approval.status == "cancelled"


async def test_a_tool_that_is_interrupted_is_unknown(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R46
    lock, inside = make_interlock(), asyncio.Event()

    @lock.tool(effect="write")
    async def slow() -> None:
        inside.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(slow())
    approval_id = await answer_next(people_services, approve_stored)
    await inside.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await people_services.store.get("default", approval_id)).approval.status == "unknown"
    assert await ledger_violations(people_services) == []
    run_id = lock.open().run_id
    await asyncio.to_thread(lock.close)  # a clean end, but an unknown outcome keeps the run open
    assert make_interlock().open().run_id == run_id


async def test_a_long_tool_keeps_its_lease(
    make_interlock: Callable[..., Interlock], people_services: AppServices, database: Database
) -> None:
    lock = make_interlock(lease_seconds=3)

    @lock.tool(effect="write")
    def slow() -> str:
        started = lock.execution()
        assert started is not None
        ends = [started.lease_until]
        while len(ends) < 3:  # blocks its thread until the lease was renewed twice
            move_lease(database, started.approval_id, FAR)  # until a renewal sets it anew
            while lease_end(database, started.approval_id) == FAR:
                time.sleep(0.02)
            ends.append(lease_end(database, started.approval_id))
        assert ends == sorted(set(ends)), "each renewal is for longer"
        return "done"

    caller = asyncio.create_task(asyncio.to_thread(slow))
    await answer_next(people_services, approve_stored)
    async with asyncio.timeout(120):
        assert await caller == "done"


async def test_a_program_started_again_asks_nothing_new(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    """The first program ends without having finished; the second one goes on with its answers."""
    ran: list[str] = []

    def program(lock: Interlock) -> Callable[[str], Any]:
        @lock.tool(effect="write")
        async def send(to: str) -> str:
            ran.append(to)
            return f"sent to {to}"

        return send

    first = make_interlock()
    send = program(first)
    await asyncio.gather(send("a"), answer_next(people_services, approve_stored))
    waiting = asyncio.create_task(send("b"))
    async with people_services.store.watch("default") as watch:
        while (await people_services.store.stats("default")).by_status.get("pending") != 1:
            await watch.wait(1)
    await asyncio.to_thread(_crash, first)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    second = make_interlock()
    send = program(second)
    assert await send("a") == "sent to a"
    result, _ = await asyncio.gather(send("b"), answer_next(people_services, approve_stored))
    assert (result, ran) == ("sent to b", ["a", "b"])
    assert (await people_services.store.stats("default")).by_status == {"succeeded": 2}


def _crash(lock: Interlock) -> None:
    """What a killed process leaves: nothing is withdrawn, the run stays open and nobody holds it."""
    lock.close(finished=False)


async def test_the_same_call_twice_in_one_run_is_two_calls(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R20
    lock, ran = make_interlock(), []

    @lock.tool(effect="write")
    async def send(to: str) -> None:
        ran.append(to)

    await asyncio.gather(send("a"), answer_next(people_services, approve_stored))
    await asyncio.gather(send("a"), answer_next(people_services, approve_stored))
    assert ran == ["a", "a"]
    assert (await people_services.store.stats("default")).by_status == {"succeeded": 2}


async def test_a_failed_call_is_asked_about_again_after_a_restart(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    def program(lock: Interlock, outcome: Callable[[], str]) -> Any:
        @lock.tool(effect="write")
        async def flaky() -> str:
            return outcome()

        return flaky

    def boom() -> str:
        raise RuntimeError("the network")

    first = make_interlock()
    with pytest.raises(RuntimeError):
        await asyncio.gather(program(first, boom)(), answer_next(people_services, approve_stored))
    await asyncio.to_thread(_crash, first)
    second = make_interlock()
    result, _ = await asyncio.gather(program(second, lambda: "fine")(), answer_next(people_services, approve_stored))
    assert result == "fine"


async def test_a_question_is_answered_by_a_person(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R37
    lock = make_interlock()
    said, _ = await asyncio.gather(
        lock.ask("Which colour?", choices=["red", "blue"]), answer_next(people_services, lambda _: Respond("blue"))
    )
    assert said == "blue"
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    said, _ = await asyncio.gather(
        lock.ask("How many?", schema=schema), answer_next(people_services, lambda _: Respond(answer={"n": 3}))
    )
    assert said == {"n": 3}
    with pytest.raises(InvalidRequest):  # nobody could ever answer this one
        await lock.ask("What?", schema={"type": "no such type"})
    with pytest.raises(CallRefused, match="timed out"):
        await lock.ask("Anybody?", expires_in_seconds=0.05)


async def test_the_services_can_be_used_directly(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock = make_interlock()
    call = propose("unregistered", {"x": 1}, "my-run", "c1")
    outcome = await lock.check(call)
    assert isinstance(outcome, Waiting)  # an unknown tool asks
    assert isinstance(await lock.wait(outcome.approval_id, timeout=0), Waiting)
    await people_services.inbox.decide("default", outcome.approval_id, Approve(), BOB)
    assert await lock.wait(outcome.approval_id) == Proceed(b'{"x":1}', outcome.approval_id)
    execution = await lock.start(outcome.approval_id)
    await lock.renew(outcome.approval_id, execution.fence)
    done = await lock.finish(outcome.approval_id, execution.fence, error="no such host")
    assert done.status == "failed"
    by_hand: Any = {"tool": "unregistered", "args": {"x": 2}, "run_id": "my-run", "call_id": "c2"}
    other = await lock.check(ToolCall(**by_hand), ToolSpec("unregistered", "write"))
    assert isinstance(other, Waiting)
    await lock.cancel(other.approval_id)


async def test_two_programs_that_share_a_run_run_a_call_once(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R46
    ran: list[str] = []

    def program(lock: Interlock) -> Any:
        @lock.tool(effect="write")
        async def send(to: str) -> str:
            ran.append(to)
            return "sent"

        return send

    one, two = make_interlock(run_id="shared"), make_interlock(run_id="shared")
    results = await asyncio.gather(program(one)("a"), program(two)("a"), answer_next(people_services, approve_stored))
    assert results[:2] == ["sent", "sent"]
    assert ran == ["a"]


async def test_an_unknown_outcome_is_told_and_not_run_again(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:  # R46
    one, two, ran, inside = make_interlock(run_id="shared"), make_interlock(run_id="shared"), [], asyncio.Event()

    def program(lock: Interlock) -> Any:
        @lock.tool(effect="write")
        async def send(to: str) -> None:
            ran.append(to)
            inside.set()
            await asyncio.Event().wait()

        return send

    first = asyncio.create_task(program(one)("a"))
    await answer_next(people_services, approve_stored)
    await inside.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    with pytest.raises(CallUnknown, match="interlock approvals resolve"):
        await program(two)("a")
    assert ran == ["a"]


def test_arguments_of_the_wrong_type_never_reach_people(make_interlock: Callable[..., Interlock]) -> None:
    lock = make_interlock()

    @lock.tool(effect="write")
    def pay(amount: int) -> None:
        pytest.fail("it ran")

    for args, kwargs in ((("ten",), {}), ((), {}), ((1,), {"to": "x"})):
        with pytest.raises(InvalidRequest, match="pay"):
            pay(*args, **kwargs)


def test_a_tool_with_unnamed_arguments_is_refused(make_interlock: Callable[..., Interlock]) -> None:
    lock = make_interlock()
    with pytest.raises(Misconfigured, match="needs a name"):

        @lock.tool(effect="write")
        def anything(*args: str) -> None: ...


def test_wrong_addresses_and_policies_say_what_to_do(tmp_path: Path) -> None:
    for url, words in (
        ("mysql://x", "sqlite:///file.db"),
        ("https://x", "key="),
        ("postgresql://x?sslmode=perhaps&nonsense=1", "not one that PostgreSQL understands"),
        ("sqlite:///", "sqlite:///file.db"),
        (f"sqlite:///{tmp_path}/no/such/folder/x.db", "folder"),
    ):
        with pytest.raises(Misconfigured, match=words):
            Interlock(url).open()
    with pytest.raises(Misconfigured, match="cannot be read"):
        Interlock(f"sqlite:///{tmp_path}/x.db", policy="no-such-file.yaml").open()
    with pytest.raises(Misconfigured, match="quorum"):
        Interlock(
            f"sqlite:///{tmp_path}/x.db", policy="version: 1\nrules:\n  - {name: a, then: ask, qourum: 2}\n"
        ).open()


async def test_a_policy_put_in_force_elsewhere_holds_here_too(
    make_interlock: Callable[..., Interlock], people_services: AppServices
) -> None:
    lock = make_interlock()

    @lock.tool(effect="destructive")
    async def wipe(path: str) -> str:
        return "wiped"

    with pytest.raises(CallRefused):
        await wipe("/")
    await people_services.put_policy("default", "version: 1\nrules: [{name: all, then: allow}]\n", "ada", {})
    async with asyncio.timeout(30):
        while (said := await _message_after(wipe)) == "denied":  # noqa: ASYNC110  nothing tells what another program loaded
            await asyncio.sleep(0.05)
    assert said == "wiped"


async def _message_after(wipe: Callable[[str], Any]) -> object:
    try:
        return await wipe("/")
    except CallRefused as refused:
        return refused.ids["status_of_call"]


async def test_it_works_as_a_context_manager(connection_options: dict[str, Any]) -> None:
    async with Interlock(**connection_options, agent="a") as lock:
        outcome = await lock.check(propose("t", {}, "r", "c"))
        assert isinstance(outcome, Waiting)
    with Interlock(**connection_options, agent="a") as lock:
        assert lock.open().run_id


def test_a_failed_call_known_from_before_is_a_failure() -> None:
    from interlock.core.outcome import Finished
    from interlock.sdk.session import to_not_run_error

    assert isinstance(to_not_run_error(Finished("failed", None, "boom", "id"), "t"), CallFailed)
    assert isinstance(to_not_run_error(Answered("hm", "id"), "t"), CallAnswered)


async def test_a_run_of_the_chat_is_nobody_elses(make_interlock: Callable[..., Interlock]) -> None:  # R48
    lock = make_interlock(run_id="thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8")

    @lock.tool(effect="write")
    async def send() -> str:
        return "sent"

    with pytest.raises(Forbidden, match="belongs to the chat"):
        await send()
