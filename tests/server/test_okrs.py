"""Objectives and key results over HTTP: what people create, change and delete, with one history."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.item_tools import history_kind
from interlock.chat.tools import okr
from interlock.core.ports import ToolItemTransaction
from interlock.runtime.offload import OFFLOAD_THRESHOLD
from interlock.server.routes import okrs
from interlock.storage.tables import tool_items
from tests.server.conftest import ClientFactory
from tests.support import Clock, ledger_violations

OBJECTIVES = "/api/objectives"
NOW = "2027-Q1"  # where the tests' clock stands


@pytest.fixture
def bob(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["reviewer"])


@pytest.fixture
def vic(client: ClientFactory, keys: dict[str, str]) -> httpx2.AsyncClient:
    return client(keys["viewer"])


async def create(person: httpx2.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await person.post(path, json=body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_an_objective_lives_with_its_key_results(
    bob: httpx2.AsyncClient, vic: httpx2.AsyncClient, services: AppServices, clock: Clock
) -> None:  # R65
    made = await create(bob, OBJECTIVES, title="Grow")
    assert (made["id"], made["quarter"], made["status"], made["percent"]) == ("O-1", NOW, "on_track", None)
    clock.advance(1_000)
    result = await create(bob, f"{OBJECTIVES}/O-1/key-results", title="Customers", target=200, unit="customers")
    assert (result["id"], result["percent"], result["objective_id"]) == ("KR-1", 0, "O-1")
    clock.advance(1_000)
    progress = {"title": "Customers", "current": 50, "target": 200, "unit": "customers"}
    changed = await bob.put("/api/key-results/KR-1", json=progress, headers={"if-match": result["etag"]})
    assert (changed.status_code, changed.json()["percent"]) == (200, 25)
    assert (
        await bob.put("/api/key-results/KR-1", json=progress, headers={"if-match": result["etag"]})
    ).status_code == 409
    whole = (await vic.get(f"{OBJECTIVES}/O-1")).json()
    assert (whole["percent"], [each["id"] for each in whole["key_results"]]) == (25, ["KR-1"])
    assert [(change["item"], change["action"], change["person"]) for change in whole["history"]] == [
        ("KR-1", "updated", "bob"),
        ("KR-1", "created", "bob"),
        ("O-1", "created", "bob"),
    ]
    changed_lines = [line for line in whole["history"][0]["diff"].splitlines()[3:] if line[0] in "+-"]
    assert changed_lines == ["-current: 0", "+current: 50"], "only what changed, written as it was"
    assert (await bob.delete(f"{OBJECTIVES}/O-1")).status_code == 200
    assert (await bob.get("/api/key-results/KR-1")).status_code == 404
    assert (await create(bob, OBJECTIVES, title="Again"))["id"] == "O-2", "a number is never used twice"
    assert await ledger_violations(services) == []


async def test_an_objective_is_changed_unless_somebody_else_did(bob: httpx2.AsyncClient) -> None:  # R65
    await create(bob, OBJECTIVES, title="Grow")
    tag = (await bob.get(f"{OBJECTIVES}/O-1")).headers["etag"]
    body = {"title": "Grow", "description": "Slowly.", "quarter": "2027-Q2", "status": "at_risk"}
    assert (await bob.put(f"{OBJECTIVES}/O-1", json=body, headers={"if-match": tag})).status_code == 200
    lost = await bob.put(f"{OBJECTIVES}/O-1", json={**body, "status": "dropped"}, headers={"if-match": tag})
    assert (lost.status_code, lost.json()["error"]) == (409, "stale")
    assert (await bob.delete(f"{OBJECTIVES}/O-1", headers={"if-match": tag})).status_code == 409
    assert (await bob.get(f"{OBJECTIVES}/O-1")).json()["status"] == "at_risk"


async def test_objectives_are_listed_by_quarter_status_and_words(bob: httpx2.AsyncClient) -> None:  # R65
    for number in range(11):
        await create(bob, OBJECTIVES, title=f"Objective {number}", quarter="2027-Q2" if number % 2 else NOW)
    listed = (await bob.get(OBJECTIVES, params={"quarter": NOW})).json()
    assert [each["id"] for each in listed["items"]] == ["O-1", "O-3", "O-5", "O-7", "O-9", "O-11"]
    assert listed["quarters"] == ["2027-Q2", NOW]
    first = (await bob.get(OBJECTIVES, params={"limit": 9})).json()
    rest = (await bob.get(OBJECTIVES, params={"limit": 9, "cursor": first["next"]})).json()
    assert ([each["id"] for each in rest["items"]], rest["next"]) == (["O-10", "O-11"], None)
    found = (await bob.get(OBJECTIVES, params={"q": "objective 10", "status": "on_track"})).json()["items"]
    assert [each["id"] for each in found] == ["O-11"]


async def test_bad_input_is_refused(bob: httpx2.AsyncClient) -> None:  # R65
    await create(bob, OBJECTIVES, title="Grow")
    for body in ({"title": ""}, {"title": "x", "quarter": "autumn"}, {"title": "x", "status": "fine"}, {}):
        assert (await bob.post(OBJECTIVES, json=body)).status_code == 400, body
    for body in ({"title": "x"}, {"title": "x", "target": 1e16}, {"title": "x", "target": "5"}):
        assert (await bob.post(f"{OBJECTIVES}/O-1/key-results", json=body)).status_code == 400, body
    assert (await bob.post(f"{OBJECTIVES}/O-9/key-results", json={"title": "x", "target": 1})).status_code == 404


async def test_an_objective_has_at_most_fifty_key_results(bob: httpx2.AsyncClient) -> None:  # R65
    await create(bob, OBJECTIVES, title="Grow")
    for _ in range(okr.MAX_KEY_RESULTS):
        await create(bob, f"{OBJECTIVES}/O-1/key-results", title="x", target=1)
    full = await bob.post(f"{OBJECTIVES}/O-1/key-results", json={"title": "x", "target": 1})
    assert (full.status_code, full.json()["error"]) == (409, "conflict")
    assert (await bob.delete("/api/key-results/KR-50")).status_code == 200
    await create(bob, f"{OBJECTIVES}/O-1/key-results", title="x", target=1)


async def test_many_or_long_items_are_not_read_on_the_event_loop(
    bob: httpx2.AsyncClient, services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:  # R65
    changes = [
        {"at": at, "action": "updated", "person": "bob", "approval_id": "", "diff": "x" * 900} for at in range(90)
    ]

    def fill(transaction: ToolItemTransaction) -> object:
        for number in range(1, 100):
            objective = {"title": "Grow", "description": "", "quarter": NOW, "status": "on_track"}
            transaction.put(okr.OBJECTIVE, f"O-{number}", objective)
            progress = {"title": "x", "current": 0, "target": 1, "unit": "", "objective_id": f"O-{number // 50 + 1}"}
            transaction.put(okr.KEY_RESULT, f"KR-{number}", progress)
            transaction.put(history_kind(okr.KEY_RESULT), f"KR-{number}", {"changes": changes})
        return None

    await services.store.tool_items("default").change("", fill)
    worked: list[tuple[str, int]] = []
    for module, name in ((okrs, "contains_words"), (okr, "group_key_results")):
        note_threads(monkeypatch, worked, module, name)
    assert len((await bob.get(OBJECTIVES, params={"limit": 99, "q": "grow"})).json()["items"]) == 99
    note_threads(monkeypatch, worked, tool_items, "_read_item", lambda row: len(row[1]) > OFFLOAD_THRESHOLD)
    assert len((await bob.get(f"{OBJECTIVES}/O-1")).json()["history"]) == okrs.MAX_SHOWN_CHANGES
    assert {name for name, _ in worked} == {"contains_words", "group_key_results", "_read_item"}
    assert [name for name, thread in worked if thread == threading.get_ident()] == []


def note_threads(
    monkeypatch: pytest.MonkeyPatch,
    worked: list[tuple[str, int]],
    module: object,
    name: str,
    is_noted: Callable[..., bool] = lambda *_: True,
) -> None:
    """Note in which threads a function of a module is called."""
    function = getattr(module, name)

    def noted(*args: object) -> object:
        if is_noted(*args):
            worked.append((name, threading.get_ident()))
        return function(*args)

    monkeypatch.setattr(module, name, noted)
