"""Objectives and key results for people: list, read, create, change and delete them, each with its history.

Agents have no access here: they use the tools of the pack `okr`, which ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from interlock.chat.item_tools import read_history
from interlock.chat.tools import okr
from interlock.chat.tools.okr import KEY_RESULT, OBJECTIVE, ObjectiveStatus
from interlock.core.errors import Conflict
from interlock.core.identity import Principal
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import offload
from interlock.server.dependencies import (
    DECIDERS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    documented_errors,
    etag,
    require_roles,
)
from interlock.server.http import RequestBody, example
from interlock.server.state import ServerState
from interlock.server.tool_items import (
    DeletedItem,
    ItemChangeJson,
    ItemsQuery,
    Title,
    change_items,
    change_json,
    contains_words,
    cut_page,
    delete_item,
    find_item,
    replace_item,
    require_current,
    work_size,
)

router = APIRouter(tags=["content and OKRs"])

MAX_SHOWN_CHANGES = 100  # of an objective and its key results together
Quarter = Annotated[str, Field(pattern=okr.QUARTER_PATTERN)]
Amount = Annotated[float, Field(ge=-okr.MAX_NUMBER, le=okr.MAX_NUMBER, allow_inf_nan=False)]


class ObjectiveBody(RequestBody):
    """A whole objective. A quarter is written as `2027-Q1`."""

    model_config = example(
        {"title": "Courses stay full", "description": "", "quarter": "2027-Q1", "status": "on_track"}
    )

    title: Title
    description: Annotated[str, Field(max_length=okr.MAX_DESCRIPTION)]
    quarter: Quarter
    status: ObjectiveStatus


class NewObjectiveBody(ObjectiveBody):
    """Without a quarter, it is for the current one."""

    model_config = example({"title": "Courses stay full", "quarter": "2027-Q1"})

    description: Annotated[str, Field(max_length=okr.MAX_DESCRIPTION)] = ""
    quarter: Annotated[str, Field(pattern=f"^$|{okr.QUARTER_PATTERN}")] = ""
    status: ObjectiveStatus = "on_track"


class KeyResultBody(RequestBody):
    """A whole key result: how far it is, how far it should get, and what is counted."""

    model_config = example({"title": "Places filled again", "current": 12, "target": 30, "unit": "%"})

    title: Title
    current: Amount = 0
    target: Amount
    unit: Annotated[str, Field(max_length=okr.MAX_UNIT)] = ""


class KeyResultInfo(BaseModel):
    """`percent` is the progress, at most 100; null if the target is 0. `etag` is for If-Match."""

    id: str
    title: str
    current: float
    target: float
    unit: str
    percent: int | None
    updated_at: str
    etag: str


class KeyResultDetails(KeyResultInfo):
    objective_id: str


class ObjectiveInfo(BaseModel):
    """`percent` is the mean of its key results; null without any."""

    id: str
    title: str
    description: str
    quarter: str
    status: ObjectiveStatus
    percent: int | None
    key_results: list[KeyResultInfo]
    updated_at: str


class ObjectiveChangeJson(ItemChangeJson):
    """`item` is the id of the objective or of the key result that was changed."""

    item: str


class ObjectiveDetails(ObjectiveInfo):
    """With the newest 100 changes of the objective and its key results."""

    etag: str
    history: list[ObjectiveChangeJson]


class ObjectiveList(BaseModel):
    items: list[ObjectiveInfo]
    next: str | None = None
    quarters: Annotated[list[str], Field(description="The quarters that have objectives, the latest first.")]


class ObjectivesQuery(ItemsQuery):
    quarter: Annotated[str, Field(pattern=f"^$|{okr.QUARTER_PATTERN}")] = ""
    status: ObjectiveStatus | None = None


@router.get("/api/objectives", responses=documented_errors(), **require_roles(VIEWERS))
async def list_objectives(
    state: StateDep, principal: PrincipalDep, filters: Annotated[ObjectivesQuery, Query()]
) -> ObjectiveList:
    """Objectives with their key results and progress."""
    tool_items = state.store.tool_items(principal.workspace)
    objectives, key_results = await tool_items.list(OBJECTIVE), await tool_items.list(KEY_RESULT)

    def search() -> ObjectiveList:
        results = okr.group_key_results(key_results)
        wanted = [item for item in objectives if _is_wanted(item, filters)]
        found, following = cut_page([((len(item.id), item.id), item) for item in wanted], filters)
        return ObjectiveList(
            items=[_objective_info(item, results[item.id]) for item in found],
            next=following,
            quarters=sorted({str(item.body["quarter"]) for item in objectives}, reverse=True),
        )

    return await offload(work_size(chain(objectives, key_results)), search)


@router.post("/api/objectives", responses=documented_errors(), status_code=201, **require_roles(DECIDERS))
async def create_objective(
    body: NewObjectiveBody, state: StateDep, principal: PrincipalDep, response: Response
) -> ObjectiveDetails:
    """Create an objective."""

    def step(transaction: ToolItemTransaction) -> object:
        fields = {**body.model_dump(), "quarter": body.quarter or okr.quarter_name(transaction.now)}
        return okr.add_objective(transaction, cast(okr.Objective, fields))["id"]

    objective_id = str(await change_items(state, principal, step))
    return await _show_objective(state, principal, objective_id, response)


@router.get("/api/objectives/{objective_id}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_objective(
    objective_id: str, state: StateDep, principal: PrincipalDep, response: Response
) -> ObjectiveDetails:
    """One objective with its key results and its history. The ETag is that of its content."""
    return await _show_objective(state, principal, objective_id, response)


@router.put("/api/objectives/{objective_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def change_objective(
    objective_id: str,
    body: ObjectiveBody,
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    response: Response,
) -> ObjectiveDetails:
    """Change an objective. With If-Match, somebody else's change is not overwritten: 409 `stale`."""
    await replace_item(state, principal, request, (OBJECTIVE, objective_id), body.model_dump())
    return await _show_objective(state, principal, objective_id, response)


@router.delete("/api/objectives/{objective_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def delete_objective(
    objective_id: str, state: StateDep, principal: PrincipalDep, request: RequestDep
) -> DeletedItem:
    """Delete an objective with its key results and their history; this cannot be undone."""
    item = (OBJECTIVE, objective_id)
    return await delete_item(
        state, principal, request, item, lambda transaction: okr.delete_objective(transaction, objective_id)
    )


@router.post(
    "/api/objectives/{objective_id}/key-results",
    responses=documented_errors(404, 409),
    status_code=201,
    **require_roles(DECIDERS),
)
async def create_key_result(
    objective_id: str, body: KeyResultBody, state: StateDep, principal: PrincipalDep, response: Response
) -> KeyResultDetails:
    """Add a key result to an objective, which can have 50."""

    def step(transaction: ToolItemTransaction) -> object:
        require_current(transaction, None, OBJECTIVE, objective_id)
        if not okr.has_room(transaction, objective_id):
            raise Conflict(f"The objective has {okr.MAX_KEY_RESULTS} key results already, which is the limit.")
        fields = {**body.model_dump(), "objective_id": objective_id}
        return okr.add_key_result(transaction, cast(okr.KeyResult, fields))["id"]

    result_id = str(await change_items(state, principal, step))
    return await _show_key_result(state, principal, result_id, response)


@router.get("/api/key-results/{key_result_id}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_key_result(
    key_result_id: str, state: StateDep, principal: PrincipalDep, response: Response
) -> KeyResultDetails:
    """One key result; its history is that of its objective."""
    return await _show_key_result(state, principal, key_result_id, response)


@router.put("/api/key-results/{key_result_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def change_key_result(
    key_result_id: str,
    body: KeyResultBody,
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    response: Response,
) -> KeyResultDetails:
    """Change a key result, such as how far it is. With If-Match: 409 `stale` if it was changed meanwhile."""
    known = await find_item(state, principal, KEY_RESULT, key_result_id)
    new = {**body.model_dump(), "objective_id": known.body["objective_id"]}  # it stays with its objective
    await replace_item(state, principal, request, (KEY_RESULT, key_result_id), new)
    return await _show_key_result(state, principal, key_result_id, response)


@router.delete("/api/key-results/{key_result_id}", responses=documented_errors(404, 409), **require_roles(DECIDERS))
async def delete_key_result(
    key_result_id: str, state: StateDep, principal: PrincipalDep, request: RequestDep
) -> DeletedItem:
    """Delete a key result with its history; this cannot be undone."""
    item = (KEY_RESULT, key_result_id)
    return await delete_item(state, principal, request, item, lambda transaction: transaction.delete(*item))


def _is_wanted(item: ToolItem, filters: ObjectivesQuery) -> bool:
    return (
        filters.quarter in ("", item.body["quarter"])
        and filters.status in (None, item.body["status"])
        and contains_words(filters.q, item)
    )


async def _show_objective(
    state: ServerState, principal: Principal, objective_id: str, response: Response
) -> ObjectiveDetails:
    item = await find_item(state, principal, OBJECTIVE, objective_id)
    tag = response.headers["etag"] = etag(item.body)
    tool_items = state.store.tool_items(principal.workspace)
    every = await tool_items.list(KEY_RESULT)
    results = await offload(work_size(every), lambda: okr.group_key_results(every)[objective_id])
    items = [(OBJECTIVE, objective_id), *((KEY_RESULT, result.id) for result in results)]
    changes = [(change, item_id) for kind, item_id in items for change in await read_history(tool_items, kind, item_id)]
    newest = sorted(changes, key=lambda each: each[0]["at"], reverse=True)[:MAX_SHOWN_CHANGES]
    history = [ObjectiveChangeJson(**change_json(change).model_dump(), item=item_id) for change, item_id in newest]
    return ObjectiveDetails(**_objective_info(item, results).model_dump(), etag=tag, history=history)


def _objective_info(item: ToolItem, results: Sequence[ToolItem]) -> ObjectiveInfo:
    fields = cast(dict[str, Any], okr.objective_json(item, results))
    fields["key_results"] = [_key_result_info(result) for result in results]
    return ObjectiveInfo(**fields, updated_at=rfc3339(item.at))


async def _show_key_result(
    state: ServerState, principal: Principal, result_id: str, response: Response
) -> KeyResultDetails:
    item = await find_item(state, principal, KEY_RESULT, result_id)
    response.headers["etag"] = etag(item.body)
    return KeyResultDetails(**_key_result_info(item).model_dump(), objective_id=str(item.body["objective_id"]))


def _key_result_info(item: ToolItem) -> KeyResultInfo:
    fields = cast(Mapping[str, Any], okr.key_result_json(item))
    return KeyResultInfo(**fields, updated_at=rfc3339(item.at), etag=etag(item.body))
