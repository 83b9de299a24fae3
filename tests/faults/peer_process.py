"""The peer process of a scenario: it prepares, approves, sweeps, and checks the invariants."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from interlock.app.bootstrap import build_services
from interlock.core.call import ToolSpec, propose
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.errors import Error, StoreUnavailable
from interlock.core.outcome import Refused, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.runtime.process_identity import make_runner_id
from tests.faults import chat_invariants, chat_reviewers, chat_scenarios
from tests.faults.invariants import check_files, find_violations
from tests.faults.processes import Scenario
from tests.faults.scenarios import OTHER_TOOL, POLICY, WORKER_POLICY

BOB = Reviewer("bob", "admin", via="test")


def serve_peer(url: str, asked: socket.socket) -> None:
    asyncio.run(PeerProcess(url).serve(asked))


class PeerProcess:
    def __init__(self, url: str) -> None:
        self._parts = build_services(url)
        self._tasks: list[asyncio.Task[None]] = []

    async def serve(self, asked: socket.socket) -> None:
        await self._parts.store.open()
        reader, writer = await asyncio.open_connection(sock=asked)
        while line := await reader.readline():
            verb, workspace, folder, *rest = json.loads(line)
            scenario = Scenario("", workspace, Path(folder))
            try:
                answer = {"result": await getattr(self, verb)(scenario, *rest)}
            except Exception as error:  # noqa: BLE001  the driver has to get any error
                answer = {"error": repr(error)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()

    # What it is asked to do

    async def prepare(self, scenario: Scenario, victim: str) -> None:
        match victim:
            case "reviewer" | "files":
                await self._parts.put_policy(scenario.workspace, POLICY, "ada", {})
                ids = [await self._pending(scenario, OTHER_TOOL, n) for n in range(3)]
                for approval_id in ids if victim == "files" else ():
                    await self._approve(scenario, approval_id)
            case "worker":
                await self._due(scenario)
            case _ if victim in chat_scenarios.SCENARIOS:
                await chat_reviewers.prepare(self._parts, scenario)
                if victim not in chat_scenarios.WITHOUT_REVIEWER:
                    self._tasks.append(asyncio.create_task(chat_reviewers.review(self._parts, scenario)))
            case _:
                self._tasks.append(asyncio.create_task(self._review(scenario)))

    async def start_sweeping(self, scenario: Scenario, victim: str) -> None:
        self._tasks.append(asyncio.create_task(self._sweep()))
        if victim in chat_scenarios.SCENARIOS:
            self._tasks.append(asyncio.create_task(chat_reviewers.run_second_loop(self._parts, scenario)))

    async def run_another_call(self, scenario: Scenario) -> None:
        """A call of another agent in the same workspace, while the victim is stopped."""
        for tries in range(3, 0, -1):  # on a busy machine a database may take longer to drop a stopped client
            with suppress(*([StoreUnavailable] if tries > 1 else [])):
                approval_id = await self._pending(scenario, OTHER_TOOL, "meanwhile")
                await self._parts.gate.cancel(scenario.workspace, approval_id, "bob")
                return

    async def sweep_until_done(self, scenario: Scenario) -> list[str]:
        """What still runs although its lease has lapsed: nothing, after a while."""
        await chat_reviewers.wait_until_quiet(self._parts, scenario)
        async with asyncio.timeout(30):
            while True:
                page = await self._parts.store.list(scenario.workspace, ApprovalQuery(statuses=("running",)))
                now = self._parts.clock()
                late = [s for s in page.items if (s.approval.lease.until or 0) <= now]
                if not any(not stored.approval.subject.idempotent for stored in late):
                    return [stored.approval.id for stored in late]
                await asyncio.sleep(0.02)

    async def check(self, scenario: Scenario, victim: str) -> list[str]:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if victim not in ("worker", "reviewer"):
            await self._parts.worker.sweep()
        if victim in chat_scenarios.SCENARIOS:
            return await chat_invariants.find_violations(self._parts.store, scenario.workspace, scenario.folder)
        return await find_violations(self._parts, scenario, victim)

    async def check_files(self, scenario: Scenario) -> list[str]:
        return await check_files(scenario)

    # How it does it

    async def _review(self, scenario: Scenario) -> None:
        while True:
            async with self._parts.store.watch(scenario.workspace) as watch:
                page = await self._parts.store.list(scenario.workspace, ApprovalQuery(statuses=("pending",)))
                mine = [s.approval for s in page.items if s.approval.subject.tool in ("send", "put")]
                for approval in mine:
                    with suppress(Error):
                        await self._approve(scenario, approval.id)
                if not mine:
                    await watch.wait(1)

    async def _sweep(self) -> None:
        await self._parts.worker.run(asyncio.Event())

    async def _pending(self, scenario: Scenario, spec: ToolSpec, number: Any = 1) -> str:
        call = propose(spec.name, {"n": str(number)}, "run", f"{spec.name}{number}", workspace=scenario.workspace)
        outcome = await self._parts.gate.check(call, spec)
        assert isinstance(outcome, Waiting | Refused), outcome  # on a slow machine its time is over already
        return outcome.approval_id

    async def _approve(self, scenario: Scenario, approval_id: str) -> None:
        seen = Acknowledgement((await self._parts.store.get(scenario.workspace, approval_id)).approval.args_sha256)
        await self._parts.inbox.decide(scenario.workspace, approval_id, Approve(seen), BOB)

    async def _due(self, scenario: Scenario) -> None:
        """One of everything that time has to do: all of it is due a moment later."""
        await self._parts.put_policy(scenario.workspace, WORKER_POLICY, "ada", {})
        for tool in ("climb", "expire"):
            await self._pending(scenario, ToolSpec(tool, "write"))
        for tool in ("lapse", "lose", "dead"):
            approval_id = await self._pending(scenario, ToolSpec(tool, "write"))
            await self._approve(scenario, approval_id)
            if tool != "lapse":
                runner = runner_is_gone() if tool == "dead" else "runner elsewhere"
                lease = 3_600_000 if tool == "dead" else 1
                await self._parts.gate.start(scenario.workspace, approval_id, runner, lease)
        await asyncio.sleep(0.01)


def runner_is_gone() -> str:
    """A runner of this machine that is certainly not there any more."""
    kind, machine, _, began, name = make_runner_id().split(":")
    return ":".join((kind, machine, str((1 << 22) - 1), began, name))
