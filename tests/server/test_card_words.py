"""Whose words a card repeats: what an agent says of its call over HTTP, and what it reports of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import As
from tests.server.test_calls import decide, propose
from tests.support import Clock

PASSWORD = "correct horse battery"
LOGIN = {"tool": "login", "args": {"user": "ann", "password": PASSWORD}, "effect": "write", "secret": ["password"]}
ALARM = "agent_secret:"


async def approval(client: As, keys: dict[str, str], told: dict[str, Any]) -> dict[str, Any]:
    answer = await client(keys["reviewer"]).get(f"/api/approvals/{told['approval_id']}")
    view: dict[str, Any] = answer.json()
    return view


@pytest.mark.parametrize(
    "report",
    [
        {"ok": False, "error": f"401 Unauthorized: password={PASSWORD!r}"},
        {"ok": True, "result": {"sent": [f"Basic {PASSWORD}", "correct%20horse%20battery"]}},
    ],
)
@pytest.mark.parametrize("late", [False, True])
async def test_a_secret_that_a_program_repeats_in_its_report_is_hidden_everywhere(
    client: As, keys: dict[str, str], clock: Clock, report: dict[str, Any], late: bool
) -> None:
    agent = client(keys["agent"])
    told = await propose(agent, **LOGIN)
    assert (await decide(client(keys["reviewer"]), told, acknowledged=[ALARM])).status_code == 200
    path = f"/api/calls/{told['approval_id']}"
    await agent.post(f"{path}/start", json={"lease_seconds": 60})
    if late:
        clock.forward(61_000)
    done = await agent.post(f"{path}/finish", json={"fence": 1, **report})
    assert done.status_code == (409 if late else 200)
    seen = [await client(keys["reviewer"]).get(f"/api/approvals/{told['approval_id']}"), await agent.get(path)]
    seen.append(await client(keys["admin"]).get("/api/audit/export"))
    assert all(each.status_code == 200 for each in seen), [each.text for each in seen]
    text = "".join(each.text for each in seen)
    assert "correct" not in text.replace('"args":{"password":"correct horse battery"', "")
    assert ("[hidden]" in text) == (not late or not report["ok"])
