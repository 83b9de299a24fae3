"""An approval's JSON is made in `presenters` and described by the models of the document: here the two are compared.

The models allow no other fields and none may be missing, so what fits them has exactly their fields, at every depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import httpx2
import pytest
from pydantic import BaseModel

from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.presenters.approval import entry_json, outcome_json
from interlock.server import models
from interlock.server.models import ApprovalJson, ApprovalPageJson, ApprovalSummaryJson, OutcomeJson
from interlock.server.routes.audit import LedgerEntryJson
from tests.server.conftest import ClientFactory
from tests.server.test_approvals import POLICY, post_action
from tests.server.test_calls import decide, propose
from tests.support import AppServices

ROOTS = (ApprovalJson, ApprovalPageJson, ApprovalSummaryJson)
Keys = dict[str, str]


def nested(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        yield from inner(field.annotation)


def inner(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from nested(annotation)
    for each in get_args(annotation):
        yield from inner(each)


def models_in(value: object) -> Iterator[type[BaseModel]]:
    match value:
        case BaseModel():
            yield type(value)
            for _, each in value:
                yield from models_in(each)
        case list() | tuple():
            for each in value:
                yield from models_in(each)
        case _:
            return


def test_the_models_of_an_approval_name_every_field_and_allow_no_other() -> None:
    found = {model for root in ROOTS for model in nested(root)}
    assert len(found) > 15
    assert [model.__name__ for model in found if model.model_config.get("extra") != "forbid"] == []
    assert [
        f"{model.__name__}.{name}"
        for model in found
        for name, field in model.model_fields.items()
        if not field.is_required()
    ] == []


async def test_json_of_an_approval_fits_its_models_at_every_depth(
    client: ClientFactory, keys: Keys, state: Any, services: AppServices
) -> None:
    agent, bob, ada = client(keys["agent"]), client(keys["reviewer"]), client(keys["admin"])
    seen: set[type[BaseModel]] = set()

    def fits(model: type[BaseModel], answer: httpx2.Response) -> None:
        assert answer.status_code == 200, answer.text
        seen.update(models_in(model.model_validate_json(answer.content, strict=True)))

    await state.workspaces.put_policy("default", POLICY, "ada")
    paid = await propose(agent, tool="pay", args={"to": "ann\u202e", "n": 1}, call_id="paid", agent_says="Please.")
    fits(ApprovalJson, await post_action(bob, paid, "claim"))
    fits(ApprovalJson, await post_action(bob, paid, "ask", question="Why?"))
    fits(ApprovalJson, await post_action(bob, paid, "ask", question="When?"))
    replied = {"number": 1, "text": "Because."}
    assert (await agent.post(f"/api/calls/{paid['approval_id']}/answer", json=replied)).status_code == 200
    fits(ApprovalJson, await post_action(bob, paid, "delegate", users=["ada"]))
    shown = (await bob.get(f"/api/approvals/{paid['approval_id']}")).json()
    fits(ApprovalJson, await decide(bob, paid, acknowledged=shown["alarms"], comment="Fine."))

    done = await propose(agent, call_id="done")
    fits(ApprovalJson, await decide(ada, done, "edit", args={"path": "/tmp/y"}, reason="Not that one."))
    path = f"/api/calls/{done['approval_id']}"
    fence = (await agent.post(f"{path}/start", json={})).json()["fence"]
    await agent.post(f"{path}/finish", json={"fence": fence, "ok": True, "result": {"gone": True}})
    fits(ApprovalJson, await ada.get(f"/api/approvals/{done['approval_id']}"))

    minimal = client(keys["admin"], prefer="return=minimal")
    fits(ApprovalSummaryJson, await decide(minimal, await propose(agent, call_id="rejected"), "reject", reason="No."))
    fits(ApprovalPageJson, await ada.get("/api/approvals"))
    assert {model.__name__ for root in ROOTS for model in nested(root)} == {model.__name__ for model in seen}

    async for page in services.store.entries("default"):
        for entry in page:
            assert (
                set(entry_json(entry))
                == set(models.TimelineEntryJson.model_fields)
                == set(LedgerEntryJson.model_fields)
            )


@pytest.mark.parametrize(
    "outcome",
    [
        Proceed(b"{}", "id", "0" * 64),
        Proceed(b"{}", "", "0" * 64, ("look out",)),
        Waiting("id", "pending", until=1_800_000_000_000, questions=(1,)),
        Waiting("id", "pending"),
        Answered("Yes.", "id"),
        Refused("No.", "denied"),
        Refused("Too late.", "expired", "id", "0" * 64, ("look out",)),
        Finished("succeeded", {"a": 1}, approval_id="id"),
        Finished("failed", error="It failed.", approval_id="id"),
    ],
)
def test_an_outcome_fits_its_model(outcome: Outcome) -> None:
    told = outcome_json(outcome)
    assert OutcomeJson.model_validate_json(json.dumps(told), strict=True).outcome == told["outcome"]
