"""The process beside the victim: it prepares a life, approves what waits, sweeps, goes on meanwhile, and judges."""

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
from tests.faults.invariants import broken_files, broken_laws
from tests.faults.processes import Life
from tests.faults.scenarios import ASIDE, POLICY, WORKER_POLICY

BOB = Reviewer("bob", "admin", via="test")


def accompany(url: str, asked: socket.socket) -> None:
    asyncio.run(Companion(url).serve(asked))


class Companion:
    def __init__(self, url: str) -> None:
        self._parts = build_services(url)
        self._tasks: list[asyncio.Task[None]] = []

    async def serve(self, asked: socket.socket) -> None:
        await self._parts.store.open()
        reader, writer = await asyncio.open_connection(sock=asked)
        while line := await reader.readline():
            verb, workspace, folder, *rest = json.loads(line)
            life = Life("", workspace, Path(folder))
            try:
                answer = {"result": await getattr(self, verb)(life, *rest)}
            except Exception as error:  # noqa: BLE001  whatever it was, the driver has to hear of it
                answer = {"error": repr(error)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()

    # What it is asked to do

    async def prepare(self, life: Life, victim: str) -> None:
        match victim:
            case "reviewer" | "files":
                await self._parts.put_policy(life.workspace, POLICY, "ada", {})
                ids = [await self._pending(life, ASIDE, n) for n in range(3)]
                for approval_id in ids if victim == "files" else ():
                    await self._approve(life, approval_id)
            case "worker":
                await self._due(life)
            case _ if victim in chat_scenarios.SCENES:
                await chat_reviewers.prepare(self._parts, life)
                if victim not in chat_scenarios.UNDECIDED:
                    self._tasks.append(asyncio.create_task(chat_reviewers.review(self._parts, life)))
            case _:
                self._tasks.append(asyncio.create_task(self._review(life)))

    async def sweep_on(self, life: Life, victim: str) -> None:
        self._tasks.append(asyncio.create_task(self._sweep()))
        if victim in chat_scenarios.SCENES:
            self._tasks.append(asyncio.create_task(chat_reviewers.work(self._parts, life)))

    async def go_on(self, life: Life) -> None:
        """A call of somebody else in the same workspace, while the victim stands still."""
        for tries in range(3, 0, -1):  # on a busy machine a database may take longer to give up on who stands still
            with suppress(*([StoreUnavailable] if tries > 1 else [])):
                approval_id = await self._pending(life, ASIDE, "meanwhile")
                await self._parts.gate.cancel(life.workspace, approval_id, "bob")
                return

    async def swept(self, life: Life) -> list[str]:
        """What still runs although its lease has lapsed: nothing, after a while."""
        await chat_reviewers.quiet(self._parts, life)
        async with asyncio.timeout(30):
            while True:
                page = await self._parts.store.list(life.workspace, ApprovalQuery(statuses=("running",)))
                now = self._parts.clock()
                late = [s for s in page.items if (s.approval.lease.until or 0) <= now]
                if not any(not stored.approval.subject.idempotent for stored in late):
                    return [stored.approval.id for stored in late]
                await asyncio.sleep(0.02)

    async def judge(self, life: Life, victim: str) -> list[str]:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if victim not in ("worker", "reviewer"):
            await self._parts.worker.sweep()
        if victim in chat_scenarios.SCENES:
            return await chat_invariants.broken_laws(self._parts.store, life.workspace, life.folder)
        return await broken_laws(self._parts, life, victim)

    async def judge_files(self, life: Life) -> list[str]:
        return await broken_files(life)

    # How it does it

    async def _review(self, life: Life) -> None:
        while True:
            async with self._parts.store.watch(life.workspace) as watch:
                page = await self._parts.store.list(life.workspace, ApprovalQuery(statuses=("pending",)))
                mine = [s.approval for s in page.items if s.approval.subject.tool in ("send", "put")]
                for approval in mine:
                    with suppress(Error):
                        await self._approve(life, approval.id)
                if not mine:
                    await watch.wait(1)

    async def _sweep(self) -> None:
        await self._parts.worker.run(asyncio.Event())

    async def _pending(self, life: Life, spec: ToolSpec, number: Any = 1) -> str:
        call = propose(spec.name, {"n": str(number)}, "run", f"{spec.name}{number}", workspace=life.workspace)
        outcome = await self._parts.gate.check(call, spec)
        assert isinstance(outcome, Waiting | Refused), outcome  # on a slow machine its time is over already
        return outcome.approval_id

    async def _approve(self, life: Life, approval_id: str) -> None:
        seen = Acknowledgement((await self._parts.store.get(life.workspace, approval_id)).approval.args_sha256)
        await self._parts.inbox.decide(life.workspace, approval_id, Approve(seen), BOB)

    async def _due(self, life: Life) -> None:
        """One of everything that time has to do: all of it is due a moment later."""
        await self._parts.put_policy(life.workspace, WORKER_POLICY, "ada", {})
        for tool in ("climb", "expire"):
            await self._pending(life, ToolSpec(tool, "write"))
        for tool in ("lapse", "lose", "dead"):
            approval_id = await self._pending(life, ToolSpec(tool, "write"))
            await self._approve(life, approval_id)
            if tool != "lapse":
                runner = gone() if tool == "dead" else "runner elsewhere"
                lease = 3_600_000 if tool == "dead" else 1
                await self._parts.gate.start(life.workspace, approval_id, runner, lease)
        await asyncio.sleep(0.01)


def gone() -> str:
    """A runner of this machine that is certainly not there any more."""
    kind, machine, _, began, name = make_runner_id().split(":")
    return ":".join((kind, machine, str((1 << 22) - 1), began, name))
