"""Is it ready, and what does it do: for those who run the server."""

from __future__ import annotations

import re

import pytest

from interlock.app.bootstrap import AppServices, database_file
from interlock.server.state import ServerState
from tests.databases import Database
from tests.server.conftest import ClientFactory
from tests.server.test_calls import decide, propose
from tests.support import WRITE, Clock, approve, propose_pending
from tests.support import call as proposed

SECRET = "hunter2-AKIAIOSFODNN7EXAMPLE"


async def metrics(client: ClientFactory, key: str) -> dict[str, float]:
    answer = await client(key).get("/metrics")
    assert (answer.status_code, answer.headers["content-type"][:10]) == (200, "text/plain")
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def test_health_and_readiness_need_no_key(client: ClientFactory) -> None:
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = await client().get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": status})


async def test_a_server_that_is_about_to_stop_is_not_ready_and_alive(client: ClientFactory, state: ServerState) -> None:
    state.stopping.set()
    answer = await client().get("/readyz")
    assert (answer.status_code, answer.json()["error"]) == (503, "not_ready")
    assert (await client().get("/healthz")).status_code == 200


@pytest.mark.postgres_smoke
async def test_a_server_without_its_database_is_not_ready_and_says_why(
    client: ClientFactory, services: AppServices, state: ServerState, database: Database
) -> None:
    assert state.store is services.store
    file = database_file(database.url)
    if file is None:
        await services.store.close()
    else:
        file.rename(file.with_suffix(".gone"))
    answer = await client().get("/readyz")
    assert (answer.status_code, answer.json()["error"]) == (503, "store_unavailable")
    assert answer.json()["message"]


async def test_metrics_are_for_people_with_a_key(client: ClientFactory, keys: dict[str, str]) -> None:  # R48
    statuses = {role: (await client(key).get("/metrics")).status_code for role, key in keys.items()}
    assert statuses == {"agent": 403, "viewer": 200, "reviewer": 200, "admin": 200}
    assert (await client().get("/metrics")).status_code == 401


@pytest.mark.postgres_smoke
async def test_decisions_are_counted_and_timed(
    client: ClientFactory, keys: dict[str, str], clock: Clock, services: AppServices
) -> None:
    await metrics(client, keys["viewer"])  # counts from here on
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    first, second, third = [await propose(agent, call_id=f"c{number}") for number in range(3)]
    await propose(agent, call_id="waits")
    clock.advance(20_000)
    await decide(bob, first)
    await decide(bob, second, "reject")
    await approve(services, third["approval_id"])  # by another door: the ledger is what counts
    found = await metrics(client, keys["viewer"])
    one = 'workspace="default"'
    assert found[f"interlock_pending{{{one}}}"] == 1
    assert found[f"interlock_oldest_pending_seconds{{{one}}}"] == 20
    assert found[f'interlock_decisions_total{{kind="approved",{one}}}'] == 2
    assert found[f'interlock_decisions_total{{kind="rejected",{one}}}'] == 1
    assert found[f'interlock_time_to_decide_seconds_bucket{{le="15.0",{one}}}'] == 0
    assert found[f'interlock_time_to_decide_seconds_bucket{{le="30.0",{one}}}'] == 3
    assert found[f"interlock_time_to_decide_seconds_sum{{{one}}}"] == 60
    assert found[f'interlock_approvals{{status="pending",{one}}}'] == 1


async def test_expiries_are_counted(
    client: ClientFactory, keys: dict[str, str], clock: Clock, services: AppServices
) -> None:
    await metrics(client, keys["viewer"])
    await propose_pending(services, expires_in=3_600_000)
    clock.advance(3_600_000)
    await services.worker.sweep()
    assert (await metrics(client, keys["viewer"]))['interlock_expired_total{workspace="default"}'] == 1


async def test_requests_and_batches_are_counted(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await propose(client(keys["agent"]))
    await client(keys["agent"]).get(f"/api/calls/{told['approval_id']}")
    await client().get("/no/such/thing")
    await client().get("/another")
    found = await metrics(client, keys["viewer"])
    counts = {name: n for name, n in found.items() if name.startswith("interlock_request_seconds_count")}
    assert counts['interlock_request_seconds_count{method="POST",route="/api/calls",status="200"}'] == 1
    assert counts['interlock_request_seconds_count{method="GET",route="/api/calls/{approval_id}",status="200"}'] == 1
    assert counts['interlock_request_seconds_count{method="GET",route="other",status="404"}'] == 2
    assert found['interlock_batch_size_bucket{le="1.0"}'] > 0
    assert found["interlock_batch_size_sum"] >= found["interlock_batch_size_count"] > 0
    assert found["interlock_waiting_agents"] == found["interlock_open_streams"] == 0
    assert found["process_cpu_seconds_total"] > 0


async def test_another_workspace_is_not_seen(
    client: ClientFactory, keys: dict[str, str], services: AppServices
) -> None:  # R48
    await services.store.secret_key("secretproject")
    await services.gate.check(proposed(workspace="secretproject"), WRITE)
    text = (await client(keys["admin"]).get("/metrics")).text
    assert "secretproject" not in text
    assert 'interlock_pending{workspace="default"} 0.0' in text


async def test_no_metric_holds_a_name_an_id_or_an_argument(client: ClientFactory, keys: dict[str, str]) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    told = await propose(agent, args={"password": SECRET}, tool="very_special_tool", thread_id="thread-77")
    await decide(bob, told, comment=SECRET)
    await agent.get(f"/api/calls/{SECRET}")
    await agent.request("HUNTER", f"/{SECRET}")
    text = (await bob.get("/metrics")).text
    for planted in (SECRET, "HUNTER", "very_special_tool", "thread-77", told["approval_id"], "bob", "bot"):
        assert planted not in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels == {"workspace", "status", "kind", "le", "method", "route", "during", "version"}


async def test_database_errors_are_counted(
    client: ClientFactory, keys: dict[str, str], state: ServerState, services: AppServices
) -> None:
    agent = client(keys["agent"])
    await propose(agent)
    await services.store.close()
    answer = await agent.post("/api/calls", json={"tool": "t", "args": {}, "run_id": "r", "call_id": "c"})
    assert answer.status_code == 503
    assert sum(t.count for (_, _, status), t in state.counters.requests.items() if status == 503) == 1
