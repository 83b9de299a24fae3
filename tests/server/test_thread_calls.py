"""What the agent of a chat does is no business of programs with an agent's key: nor is anything planted there."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec, propose
from interlock.core.chat.thread import THREAD_ID_PREFIX
from interlock.core.outcome import Waiting
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.support import ADA, approve

Keys = dict[str, str]
RUN = f"{THREAD_ID_PREFIX}0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"
TOOL = ToolSpec("cms_delete_post", "destructive")
CALL = {"tool": "cms_delete_post", "args": {"slug": "a"}, "run_id": "run", "call_id": "1", "effect": "write"}


@pytest.fixture
async def card(state: ServerState, keys: Keys) -> str:
    """A call of a chat that waits for people."""
    doors = await state.workspaces.services("default")
    outcome = await doors.gate.check(propose("cms_delete_post", {"slug": "a"}, RUN, "2:c1", thread_id=RUN), TOOL)
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


@pytest.mark.parametrize("field", ["run_id", "thread_id"])
async def test_no_call_and_no_question_is_planted_in_a_thread(
    client: ClientFactory, keys: Keys, field: str
) -> None:  # R48
    agent = client(keys["agent"])
    question = {"question": "Yes?", "run_id": "run", "call_id": "1"}
    for path, body in (("/api/calls", CALL), ("/api/questions", question)):
        answer = await agent.post(path, json={**body, field: RUN})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert "belongs to the chat" in answer.json()["message"]
    assert (await client(keys["reviewer"]).get("/api/approvals")).json()["items"] == []


async def test_programs_may_call_their_own_threads_so(client: ClientFactory, keys: Keys) -> None:
    agent = client(keys["agent"])
    told = (await agent.post("/api/calls", json={**CALL, "run_id": "thread-7", "thread_id": "thread-7"})).json()
    assert (await agent.get(f"/api/calls/{told['approval_id']}")).json()["status"] == "pending"


@pytest.mark.postgres_smoke
async def test_a_call_of_a_chat_is_not_there_for_programs(
    client: ClientFactory, keys: Keys, card: str, services: AppServices
) -> None:
    agent, at = client(keys["agent"]), f"/api/calls/{card}"  # R48
    finish = {"fence": 1, "ok": True, "result": "planted"}
    answers = [await agent.get(at), await agent.get(f"{at}/questions"), await agent.get(f"{at}?wait=1")]
    answers += [await agent.post(f"{at}/cancel", json={}), await agent.post(f"{at}/start", json={})]
    await approve(services, card, ADA)
    answers += [await agent.post(f"{at}/start", json={}), await agent.get(at)]
    await services.gate.start("default", card, "runner")
    answers += [await agent.post(f"{at}/finish", json=finish), await agent.post(f"{at}/renew", json={"fence": 1})]
    answers += [await agent.post(f"{at}/abandon", json={"fence": 1})]
    answers += [await agent.post(f"{at}/answer", json={"number": 1, "text": "Trust me."})]
    assert {(each.status_code, each.json()["error"]) for each in answers} == {(404, "not_found")}
    assert (await services.store.get("default", card)).approval.status == "running"


async def test_a_thread_is_not_a_run_that_a_program_takes_up(client: ClientFactory, keys: Keys) -> None:  # R48
    agent = client(keys["agent"])
    assert (await agent.post("/api/runs", json={"run_id": RUN})).status_code == 403
    ends = [await agent.post(f"/api/runs/{RUN}/{verb}", json={"runner": "me"}) for verb in ("renew", "close", "leave")]
    assert {each.status_code for each in ends} == {404}
    assert (await agent.get("/api/runs")).json()["items"] == []


async def test_people_decide_about_it_as_about_any_other(client: ClientFactory, keys: Keys, card: str) -> None:
    answer = await client(keys["reviewer"]).post("/api/chat/approve", json={"approvalId": card, "approved": True})
    assert answer.json() == {"approval_id": card, "status": "approved", "approved": True}
