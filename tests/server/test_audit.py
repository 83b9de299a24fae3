"""The ledger over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.checkpoint_signing import make_key
from interlock.config.models import AuditSettings, Settings, StorageSettings
from interlock.runtime.durations import rfc3339
from interlock.server import audit_jobs
from interlock.server.routes import audit
from interlock.server.routes.audit import VerificationStatusJson
from interlock.server.state import ServerState
from tests.databases import Database
from tests.interlock_server import make_keys
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import Clock

TIMEOUT = 100.0  # seconds for what certainly comes, on a loaded machine


@pytest.fixture
def settings(tmp_path: Path, database: Database) -> Settings:
    key = tmp_path / "signing.key"
    make_key(key)
    return Settings(audit=AuditSettings(key), storage=StorageSettings(database.url))


@pytest.fixture
def ada(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["admin"])


@pytest.fixture
async def told(client: ClientFactory, keys: dict[str, str], clock: Clock) -> list[dict[str, Any]]:
    """Five calls, a minute apart, each of them approved by bob."""
    calls = []
    for n in range(5):
        clock.advance(60_000)
        calls.append(await propose(client(keys["agent"]), call_id=f"call{n}"))
        await decide(client(keys["reviewer"]), calls[-1])
    return calls


async def pages(ada: httpx2.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    for _ in range(200):
        asked = {**query, **({} if after is None else {"after": after})}
        body = (await ada.get("/api/audit", params=asked)).json()
        found += body["items"]
        after = body["next"]
        if after is None:
            return found
    raise AssertionError("there is no end to the pages")


# R41
async def test_who_decided_what_can_be_looked_up(ada: httpx2.AsyncClient, told: list[dict[str, Any]]) -> None:
    [entry] = await pages(ada, kind="approved", actor="bob", approval_id=told[2]["approval_id"])
    assert (entry["kind"], entry["actor"], entry["approval_id"]) == ("approved", "bob", told[2]["approval_id"])
    assert len(await pages(ada, kind="approved", actor="bob")) == 5
    assert await pages(ada, actor="nobody") == []


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [1, 3, 500])
async def test_pages_hold_every_entry_once_and_in_order(
    ada: httpx2.AsyncClient, state: ServerState, told: list[dict[str, Any]], order: str, limit: int
) -> None:
    assert told
    every = list(range(1, (await state.store.head("default")).seq + 1))
    found = [entry["seq"] for entry in await pages(ada, order=order, limit=limit)]
    assert found == (every if order == "oldest" else every[::-1])


@pytest.mark.postgres_smoke
@pytest.mark.parametrize("order", ["oldest", "newest"])
async def test_a_filter_that_fits_little_reads_the_ledger_in_parts(
    ada: httpx2.AsyncClient, told: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(audit, "MAX_SCANNED", 2)
    found = [entry["approval_id"] for entry in await pages(ada, kind="approved", order=order)]
    ids = [each["approval_id"] for each in told]
    assert found == (ids if order == "oldest" else ids[::-1])


async def test_a_time_bounds_what_is_found(ada: httpx2.AsyncClient, told: list[dict[str, Any]], clock: Clock) -> None:
    since, until = rfc3339(clock() - 180_000), rfc3339(clock())
    found = await pages(ada, kind="approved", since=since, until=until)
    assert [entry["approval_id"] for entry in found] == [each["approval_id"] for each in told[1:4]]
    one = await pages(ada, approval_id=told[1]["approval_id"], since=since, until=until, kind="approved", limit=1)
    assert len(one) == 1
    assert (await ada.get("/api/audit", params={"since": "yesterday"})).status_code == 400


async def test_what_is_about_accounts_is_for_admins(
    client: ClientFactory, keys: dict[str, str], told: list[dict[str, Any]], ada: httpx2.AsyncClient
) -> None:
    assert told
    kinds = {entry["kind"] for entry in await pages(client(keys["viewer"]))}
    assert "approved" in kinds
    assert not {"user_changed", "key_created"} & kinds
    assert {"user_changed", "key_created"} <= {entry["kind"] for entry in await pages(ada)}


# R49
async def test_an_export_is_verified_without_us_against_the_head(
    ada: httpx2.AsyncClient, told: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert told
    head, answer = await ada.get("/api/audit/head"), await ada.get("/api/audit/export")
    assert (answer.status_code, head.json()["workspace"]) == (200, "default")
    (tmp_path / "head.json").write_text(head.text)
    (tmp_path / "out.ledger").write_bytes(answer.content)
    command = [sys.executable, "-m", "interlock", "audit", "verify", "--json", "--export", "out.ledger"]
    key = head.json()["key"]
    options = ["--head", "head.json", "--key", key]
    done = await asyncio.to_thread(
        subprocess.run, [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["entries"] == head.json()["seq"]


async def test_an_export_goes_on_where_another_ended(ada: httpx2.AsyncClient, told: list[dict[str, Any]]) -> None:
    assert told
    whole = (await ada.get("/api/audit/export")).text.splitlines()
    rest = (await ada.get("/api/audit/export", params={"since": "3"})).text.splitlines()
    assert rest[1:-1] == whole[4:-1]
    wrong = await ada.get("/api/audit/export", params={"since": "9999"})
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("role", ["agent", "viewer", "reviewer"])
async def test_only_admins_take_the_ledger_along(client: ClientFactory, keys: dict[str, str], role: str) -> None:
    answer = await client(keys[role]).get("/api/audit/export")
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_the_ledger_of_another_workspace_stays_there(
    client: ClientFactory, told: list[dict[str, Any]], services: AppServices, state: ServerState
) -> None:
    await state.accounts.add_workspace("other")
    strange = client((await make_keys(services, "other"))["admin"])
    assert await pages(strange, approval_id=told[0]["approval_id"]) == []
    assert "approved" not in {entry["kind"] for entry in await pages(strange)}
    assert told[0]["approval_id"] not in (await strange.get("/api/audit/export")).text


async def run_verification(asker: httpx2.AsyncClient) -> Any:
    """Starts it, and waits for what came of it."""
    begun = await asker.post("/api/audit/verify")
    assert begun.status_code == 200, begun.text
    return await wait_verified(asker)


async def wait_verified(asker: httpx2.AsyncClient) -> Any:
    told = {"running": {}}  # type: Any
    while told["running"] is not None:
        await asyncio.sleep(0.05)
        told = (await asker.get("/api/audit/verification")).json()
    VerificationStatusJson.model_validate(told)
    return told["last"]


# R49
@pytest.mark.postgres_smoke
async def test_anybody_who_may_look_has_the_ledger_verified_beside_the_server(
    client: ClientFactory, keys: dict[str, str], told: list[dict[str, Any]], state: ServerState
) -> None:
    vic = client(keys["viewer"])
    assert (await vic.get("/api/audit/verification")).json() == {"running": None, "last": None}
    last = await run_verification(vic)
    head = await state.store.head("default")
    assert (last["state"], last["by"], last["entries"], last["approvals"]) == ("valid", "vic", head.seq, len(told))
    assert (last["head"]["seq"], last["head"]["link"]) == (head.seq, head.link)
    assert (await client(keys["agent"]).post("/api/audit/verify")).status_code == 403


# R49
async def test_altered_entry_is_reported_in_words(
    ada: httpx2.AsyncClient, told: list[dict[str, Any]], database: Database
) -> None:
    assert told
    assert (await run_verification(ada))["state"] == "valid"
    database.sql(
        "update events set actor = 'mallory' where kind = 'approved' and approval_id = ?", told[1]["approval_id"]
    )
    last = await run_verification(ada)
    assert last["state"] == "invalid"
    assert "altered" in last["faults"][0]["message"]
    assert last["fault_count"] >= 1


# R49
async def test_a_tail_that_was_cut_since_the_last_look_is_noticed(
    ada: httpx2.AsyncClient, told: list[dict[str, Any]], database: Database, state: ServerState
) -> None:
    assert told
    kept = (await state.store.head("default")).seq - 1
    assert (await run_verification(ada))["state"] == "valid"
    database.sql("delete from events where seq > ?", kept)
    database.sql("update heads set seq = ?, link = (select link from events where seq = ?)", kept, kept)
    last = await run_verification(ada)
    assert any("tail was cut" in fault["message"] for fault in last["faults"])


async def test_one_verification_runs_at_a_time(ada: httpx2.AsyncClient, told: list[dict[str, Any]]) -> None:
    assert told
    first, second = await asyncio.gather(ada.post("/api/audit/verify"), ada.post("/api/audit/verify"))
    assert {first.status_code, second.status_code} == {200, 409}
    running = (first if first.status_code == 200 else second).json()["running"]
    assert (running["state"], running["by"]) == ("running", "ada")
    assert (await wait_verified(ada))["state"] == "valid"


async def test_what_another_workspace_verified_is_its_own(
    ada: httpx2.AsyncClient, client: ClientFactory, services: AppServices
) -> None:
    assert (await run_verification(ada))["state"] == "valid"
    strange = client((await make_keys(services, "other"))["viewer"])
    assert (await strange.get("/api/audit/verification")).json() == {"running": None, "last": None}


async def test_a_database_that_is_not_there_is_not_made(state: ServerState, tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    checks = audit_jobs.VerificationJobs(
        replace(state, settings=Settings(storage=StorageSettings(f"sqlite:///{missing}")))
    )
    checks.start("default", "ada")
    last: Any = None
    async with asyncio.timeout(TIMEOUT):
        while last is None:
            await asyncio.sleep(0.001)
            last = checks.to_json("default")["last"]
    assert (last["state"], last["problem"], missing.exists()) == ("failed", audit_jobs.DATABASE_MISSING, False)


async def test_a_check_that_cannot_be_made_says_so(ada: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_jobs, "WORKER_COMMAND", (sys.executable, "-c", "import sys; sys.stdin.read()"))
    last = await run_verification(ada)
    assert (last["state"], last["problem"]) == ("failed", audit_jobs.JOB_CRASHED)
    monkeypatch.setattr(audit_jobs, "WORKER_COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(audit_jobs, "JOB_TIMEOUT", 0.2)
    assert "longer than" in (await run_verification(ada))["problem"]


# R62
async def test_row_that_differs_is_reported_by_field_without_its_value(
    ada: httpx2.AsyncClient, told: list[dict[str, Any]], database: Database
) -> None:
    approval_id = told[1]["approval_id"]
    database.sql_without_triggers("update payloads set sentence = ? where id = ?", "hunter2", approval_id)
    database.sql_without_triggers("update users set role = 'admin' where name = 'vic'")
    last = await run_verification(ada)
    assert last["state"] == "invalid"
    assert [(fault["table"], fault["row"], fault["field"]) for fault in last["faults"]] == [
        ("approvals", approval_id, "sentence"),
        ("users", "vic", "role"),
    ]
    assert all(fault["seq"] > 0 for fault in last["faults"])
    assert "user vic: role is admin in its row; the ledger says viewer." in last["faults"][1]["message"]
    assert "hunter2" not in str(last)
