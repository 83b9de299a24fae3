"""Pins: tool definitions that an admin vouches for, and a list of all tools by the origin of their definition."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from interlock.app.tool_catalog import CatalogTool, ToolCatalog, ToolStatus, count_trusted_declarations
from interlock.core.call import MAX_NAME
from interlock.core.decision import DIGEST_LENGTH
from interlock.core.errors import Stale
from interlock.core.pins import Pin, trusts_declared
from interlock.presenters.policy import pin_json, tool_json
from interlock.server.dependencies import (
    ADMINS,
    PrincipalDep,
    StateDep,
    documented_errors,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import RequestBody, example
from interlock.server.state import ServerState
from interlock.storage.engine.queries import MAX_LIMIT

router = APIRouter(tags=["agents and tools"])

Name = Annotated[str, Field(max_length=MAX_NAME)]
Effect = Literal["", "read", "write", "destructive"]


class PinBody(RequestBody):
    """Pins the definition that an agent, or any, declared last. With `spec_sha256`, only if it is still that one.

    `effect` replaces the declared one; with it, a tool can be pinned that no agent has declared yet.
    """

    model_config = example({"tool": "get_weather", "agent": "billing", "effect": "read"})

    tool: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    agent: Name = ""
    effect: Effect = ""
    spec_sha256: Annotated[str, Field(max_length=DIGEST_LENGTH)] = ""


class PinAllBody(RequestBody):
    """Pins all tools that an agent declared, except those that an ask or deny rule or a switch names.

    `shown` are the definitions that the person saw, by tool (`declared_sha256` of the list): no other one is pinned.
    """

    model_config = example({"agent": "billing"})

    agent: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    shown: Annotated[dict[str, str] | None, Field(max_length=10_000)] = None


class PinInfo(BaseModel):
    tool: str
    effect: str
    # not `schema`, which pydantic's models have already
    parameters: dict[str, Any] | None = Field(serialization_alias="schema")
    secret: list[str]
    idempotent: bool
    agent: str
    pinned_by: str
    pinned_at: str


class SkippedTool(BaseModel):
    tool: str
    reason: str


class CreatedPins(BaseModel):
    """`left_out` have to be pinned one by one, each with its reason."""

    pinned: list[PinInfo]
    left_out: list[SkippedTool]


class ToolTrustInfo(BaseModel):
    """`effect`, `schema`, `secret` and `idempotent` are of the definition that counts; `calls` of the last 30 days.

    `changed` says how an agent's current definition of a pinned tool differs; `named_by` why the tool has to be pinned
    by itself; `on_word`: the effect that its agent declares is trusted. `looks_like` are tools with confusingly similar
    names.
    """

    name: str
    standing: ToolStatus
    effect: str
    parameters: dict[str, Any] | None = Field(serialization_alias="schema")
    secret: list[str]
    idempotent: bool
    agents: list[str]
    first_seen_at: str | None
    last_seen_at: str | None
    calls: int
    declared_sha256: str | None
    pinned_by: str | None
    pinned_at: str | None
    changed: list[str]
    named_by: str
    on_word: bool
    looks_like: list[str]


class ToolTrustList(BaseModel):
    """`on_word` counts the tools whose agents are trusted, `trust_declared` whether the policy trusts any.

    `bounds` says in words which limit was reached, so that the list may lack tools.
    """

    items: list[ToolTrustInfo]
    next: str | None
    on_word: int
    trust_declared: bool
    bounds: list[str]


class ToolTrustQuery(BaseModel):
    """With an `agent`: the tools that it declared itself. `cursor` is the `next` of the previous page."""

    model_config = ConfigDict(extra="forbid")

    agent: Name = ""
    standing: Literal["", "registered", "pinned", "declared"] = ""
    cursor: Name = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100


@router.get("/api/pins", responses=documented_errors(), **require_roles(ADMINS))
async def list_pins(
    state: StateDep, principal: PrincipalDep, query: Annotated[ToolTrustQuery, Query()]
) -> ToolTrustList:
    """All tools by the origin of their definition: registered, pinned, or only declared by agents."""
    catalog = await _catalog(state, principal.workspace, query.agent)
    tools = await catalog.tools(state.clock())
    matching = [tool for tool in tools if tool.name > query.cursor and query.standing in ("", tool.status)]
    page = matching[: query.limit]
    return ToolTrustList(
        items=[_tool_trust(tool) for tool in page],
        next=page[-1].name if len(matching) > len(page) else None,
        on_word=count_trusted_declarations(tools),
        trust_declared=trusts_declared(catalog.policy),
        bounds=await catalog.describe_limits(),
    )


@router.post("/api/pins", responses=documented_errors(404, 409), status_code=201, **require_recent_sign_in(ADMINS))
async def pin_tool(body: PinBody, state: StateDep, principal: PrincipalDep) -> PinInfo:
    """Pin a tool: from now on, claims in calls do not count, and a changed definition asks again."""
    catalog = await _catalog(state, principal.workspace, body.agent)
    spec = await catalog.make_pin_spec(body.tool, body.effect)
    last = await catalog.definition(body.tool) if body.spec_sha256 else None
    if body.spec_sha256 and (last is None or last.sha256 != body.spec_sha256):
        raise Stale("The agent has changed its declaration. Reload it, then pin the current one.", tool=body.tool)
    (pin,) = await state.workspaces.pin(principal.workspace, [spec], body.agent, principal.name)
    return _info(pin)


@router.post("/api/pins/all", responses=documented_errors(404, 409), **require_recent_sign_in(ADMINS))
async def pin_all(body: PinAllBody, state: StateDep, principal: PrincipalDep) -> CreatedPins:
    """Pin all tools that an agent declared, in one step. Those that a rule or switch names are left out, and listed."""
    catalog = await _catalog(state, principal.workspace, body.agent)
    specs, left_out = await catalog.select_pins(state.clock(), body.shown)
    made = await state.workspaces.pin(principal.workspace, specs, body.agent, principal.name)
    told = [SkippedTool(tool=tool, reason=reason) for tool, reason in left_out]
    return CreatedPins(pinned=[_info(pin) for pin in made], left_out=told)


@router.delete("/api/pins/{tool:path}", responses=documented_errors(404), **require_roles(ADMINS))
async def unpin_tool(tool: str, state: StateDep, principal: PrincipalDep) -> PinInfo:
    """Unpin a tool: what agents declare of it is a claim again. Calls that were judged stay as they are."""
    return _info(await state.workspaces.unpin(principal.workspace, tool, principal.name))


async def _catalog(state: ServerState, workspace: str, agent: str) -> ToolCatalog:
    services = await state.workspaces.services(workspace)
    return ToolCatalog(state.store, workspace, services.loaded_policy.policy, state.registered.specs(workspace), agent)


def _info(pin: Pin) -> PinInfo:
    return PinInfo(**_fields(pin_json(pin)))


def _tool_trust(tool: CatalogTool) -> ToolTrustInfo:
    return ToolTrustInfo(**_fields(tool_json(tool)))


def _fields(told: dict[str, Any]) -> dict[str, Any]:
    return {"parameters" if name == "schema" else name: value for name, value in told.items()}
