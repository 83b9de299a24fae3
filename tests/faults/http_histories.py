"""A storm over HTTP: random operations on few approvals by many clients, while the server is killed and started again.

    python -m tests.faults.http_histories [--database sqlite|postgresql] [--operations N] [--kills N] [--broken CONTROL]

The operations are those of `storm.py`, by keys of people and of an agent. A request whose answer did not come is lost:
it may have happened or not. Judged as a storm is: effects, rows, ledger, and the history of each approval has to be
linearizable. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2

from interlock.app.bootstrap import build_services
from interlock.core.canonical import canonical, digest
from interlock.core.errors import Error, StoreUnavailable
from interlock.runtime.durations import parse_time
from tests.faults import clients, http_server
from tests.faults.clients import PEOPLE, POLICY, RESULT, SPECS, ApprovalProgress, terms_for, tool_name
from tests.faults.final_state import check_final_state
from tests.faults.histories import LOST, Recorder, short_digest
from tests.faults.storm import open_database
from tests.interlock_server import RunningServer, run_server
from tests.models.model import ModelAnswer, Operation

LANES = 32  # approvals that are under way at once
SEATS = 3  # clients at each
STALLED = 120.0  # seconds without any progress
CONTROLS = ("early-answer", "start-unchecked", "first-arguments")


class RemoteAnswer(Error):
    """An error, in the server's words."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body["message"], **{name: body[name] for name in ("decision", "status") if name in body})
        self.code = body["error"]


class RemoteClient(clients.Client):
    """The same client; all that it does, it asks the server to do."""

    def __init__(self, http: httpx2.AsyncClient, keys: dict[str, str], *rest: Any) -> None:
        super().__init__(None, *rest)  # type: ignore[arg-type]  # whatever used the parts is asked for below
        self._http, self._keys = http, keys

    async def ask(self, who: str, path: str, body: object = None) -> Any:
        """Raises StoreUnavailable if the outcome is unknown."""
        headers = {"authorization": f"Bearer {self._keys[who]}", "prefer": "return=minimal"}
        method = "GET" if body is None else "POST"
        try:
            answer = await self.connected(method, path, json=body, headers=headers)
            answers = answer.json()
        except (httpx2.HTTPError, ValueError):
            raise StoreUnavailable("no answer") from None
        if answer.status_code >= 500:
            raise StoreUnavailable(answer.text)
        if answer.status_code >= 400:
            raise RemoteAnswer(answers)
        return answers

    async def connected(self, *what: Any, **how: Any) -> httpx2.Response:
        """A server that is not there has done nothing: it is asked again."""
        while True:
            try:
                return await self._http.request(*what, **how)
            except httpx2.ConnectError:
                await asyncio.sleep(self.chance.uniform(0.02, 0.1))

    async def propose(self, progress: ApprovalProgress, args: object) -> None:
        tool, call = tool_name(progress.number), clients.call_for(progress.number, args)
        body = {"tool": tool, "args": args, "run_id": "storm", "call_id": f"c{progress.number}", "initiated_by": "rita"}
        body |= {"effect": "write", "idempotent": SPECS[tool].idempotent}

        async def work() -> ModelAnswer:
            answers = await self.ask("agent", "/api/calls", body)
            progress.id, progress.digest = answers["approval_id"], answers["args_sha256"]
            return ModelAnswer("ok", answers["status"])

        answer = await self.record(progress, Operation("propose", args=short_digest(digest(call.args))), work)
        progress.done = answer is LOST or not progress.id

    async def do_look(self, progress: ApprovalProgress) -> None:
        """As the agent hears it."""

        async def work() -> ModelAnswer:
            answers = await self.ask("agent", f"/api/calls/{progress.id}")
            progress.digest = answers["args_sha256"]
            return ModelAnswer("ok", answers["status"])

        await self.record(progress, Operation("hear"), work)

    async def do_cancel(self, progress: ApprovalProgress) -> None:
        await self.step_of(progress, Operation("cancel", "agent:bot"), "cancel", {})

    async def do_start(self, progress: ApprovalProgress) -> None:
        lease = self.chance.choice(self.leases)

        async def work() -> ModelAnswer:
            answers = await self.ask("agent", f"/api/calls/{progress.id}/start", {"lease_seconds": lease / 1000})
            args, until = digest(canonical(answers["args"])), parse_time(answers["lease_until"])
            progress.own_fence, progress.fence = answers, answers["fence"]
            line = f"{progress.number} {args} {answers['idempotency_key']} {answers['fence']}\n"
            self.append(line)
            return ModelAnswer("ok", None, None, short_digest(args), None, answers["fence"], None, until)

        progress.own_fence = None
        await self.record(progress, Operation("start", self.recorder.name), work)

    async def do_renew(self, progress: ApprovalProgress) -> None:
        await self.step_of(
            progress, Operation("renew", fence=progress.fence), "renew", {"fence": progress.fence, "lease_seconds": 2}
        )

    async def finish(self, progress: ApprovalProgress, fence: int, payload: Any) -> None:
        ok = progress.own_fence is not None and payload.error is None
        end = {"result": json.loads(RESULT)} if ok else {"error": "no"}
        body = {"fence": fence, "ok": ok, **end}
        answer = await self.step_of(progress, Operation("finish", fence=fence, ok=ok), "finish", body)
        progress.own_fence = None if answer.code == "ok" else progress.own_fence

    async def do_abandon(self, progress: ApprovalProgress) -> None:
        await self.step_of(progress, Operation("abandon", fence=progress.fence), "abandon", {"fence": progress.fence})
        progress.own_fence = None

    def do_decide(self, name: str) -> Any:
        async def decide(progress: ApprovalProgress) -> None:
            person = self.chance.choice(self.people).name
            seen = "0" * 64 if name == "stale" else progress.digest or "0" * 64  # over HTTP nobody decides blindly
            kind = name if name in ("edit", "respond", "reject") else "approve"
            args = {"n": progress.number, "by": person, "at": self.chance.getrandbits(40)}
            op = Operation(
                kind, person, short_digest(seen), short_digest(digest(canonical(args))) if kind == "edit" else ""
            )
            body: dict[str, object] = {"kind": kind, "args_sha256": seen}
            if kind == "edit":
                op, body = op._replace(quorum=terms_for(progress.number).quorum), {**body, "args": args}
            if kind == "respond":
                body["message"] = "Ask me tomorrow."

            async def work() -> ModelAnswer:
                answers = await self.ask(person, f"/api/approvals/{progress.id}/decision", body)
                progress.digest = answers["args_sha256"]
                by = answers["decision"]["by"] if answers["decision"] else ""
                return ModelAnswer("ok", None, answers["version"], short_digest(answers["args_sha256"]), by)

            await self.record(progress, op, work)

        return decide if name != "intrude" else self.do_look  # who may is asked before what is there

    async def do_undo(self, progress: ApprovalProgress) -> None:
        person = self.chance.choice(self.people).name
        await self.desk_of(progress, Operation("undo", person), person, "undo", {})

    async def do_resolve(self, progress: ApprovalProgress) -> None:
        person, ok = self.chance.choice(self.people).name, self.chance.random() < 0.5
        body = {"ok": ok, "note": "seen"}
        await self.desk_of(progress, Operation("resolve", person, ok=ok), person, "resolve-unknown", body)

    async def step_of(
        self, progress: ApprovalProgress, op: Operation, verb: str, body: dict[str, object]
    ) -> ModelAnswer:
        async def work() -> ModelAnswer:
            return ModelAnswer("ok", (await self.ask("agent", f"/api/calls/{progress.id}/{verb}", body))["status"])

        return await self.record(progress, op, work)

    async def desk_of(
        self, progress: ApprovalProgress, op: Operation, person: str, verb: str, body: dict[str, object]
    ) -> None:
        async def work() -> ModelAnswer:
            await self.ask(person, f"/api/approvals/{progress.id}/{verb}", body)
            return ModelAnswer("ok")  # what is shown with it was read a moment later

        await self.record(progress, op, work)
        progress.status = "in doubt"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--operations", type=int, default=3_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--broken", choices=CONTROLS, default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, open_database(options.database, Path(name)) as (database, server):
        folder = Path(name)
        if options.broken and server:
            with server.connect("storm") as connection:  # its own refusals would hide what the code does wrong
                connection.execute("alter table approvals disable trigger user")
        keys = asyncio.run(prepare_database(database))
        began = time.monotonic()
        asyncio.run(run_storm(database, folder, keys, options))
        verdict = check_final_state(database, folder, {})
        print(json.dumps(print_report(options, verdict, began)))


def print_report(options: argparse.Namespace, verdict: Any, began: float) -> dict[str, Any]:
    return {
        "suite": "http-histories",
        "database": options.database,
        "operations": verdict.operations,
        "succeeded": verdict.succeeded,
        "faults": options.kills,
        "wrong": verdict.samples(),
        "seconds": round(time.monotonic() - began, 1),
        "approvals": verdict.approvals,
        "effects": verdict.effects,
        "linearizable": verdict.linearizable,
        "lost": verdict.lost,
        "counts": dict(sorted(verdict.counts.items())),
        "statuses": dict(sorted(verdict.statuses.items())),
    }


async def prepare_database(database: str) -> dict[str, str]:
    services = build_services(database)
    await services.store.open()
    await services.put_policy("default", POLICY, "ada", {})
    await services.store.pin("default", [SPECS["put"]], "", "ada")  # what only an agent calls idempotent starts once
    keys = {"agent": (await services.accounts.create_key("default", "bot", "agent", "test"))[1]}
    for person in PEOPLE:
        keys[person.name] = (await services.accounts.create_key("default", person.name, person.role, "test"))[1]
    await services.store.close()
    return keys


async def run_storm(database: str, folder: Path, keys: dict[str, str], options: argparse.Namespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program, environ = http_server.program(options.broken)
    with ExitStack() as lives:

        def start() -> RunningServer:
            return lives.enter_context(run_server(database, folder, port=port, program=program, environ=environ))

        served = await asyncio.to_thread(start)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx2.AsyncClient(base_url=served.url, timeout=30, limits=limits) as http:
            recorder, stop = Recorder(folder, "afar"), asyncio.Event()
            seats = [RemoteClient(http, keys, recorder, folder, "afar", seed) for seed in range(LANES * SEATS)]
            lanes = [ApprovalLane(seats[n::LANES], n, stop) for n in range(LANES)]
            work = [asyncio.create_task(lane.follow(seat)) for lane in lanes for seat in lane.seats]
            for fault in range(options.kills):
                await drive_clients(seats, options.operations * (fault + 1) // (options.kills + 1), work)
                await asyncio.to_thread(served.kill)
                served = await asyncio.to_thread(start)
            await drive_clients(seats, options.operations, work)
            stop.set()
            await asyncio.gather(*work)


class ApprovalLane:
    """One approval after the other; all seats are at the same one, and some linger."""

    def __init__(self, seats: list[RemoteClient], number: int, stop: asyncio.Event) -> None:
        self.seats, self._number, self._stop = seats, number, stop

    async def follow(self, client: RemoteClient) -> None:
        while not self._stop.is_set():
            number = self._number
            await client.play(number, lambda: self._number)
            if self._number == number:
                self._number = number + LANES


async def drive_clients(seats: list[RemoteClient], operations: int, work: list[asyncio.Task[None]]) -> None:
    last, moved = -1, time.monotonic()
    while (done := sum(seat.operations for seat in seats)) < operations:
        if done != last:
            last, moved = done, time.monotonic()
        failed = [task for task in work if task.done()]
        if time.monotonic() - moved > STALLED or failed:
            raise RuntimeError(f"the storm came to a halt after {done} operations: {failed[:1]}")
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    main()
