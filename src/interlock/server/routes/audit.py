"""The ledger: pages, its head, an export that can be verified elsewhere, and verification jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.app import ledger_file
from interlock.app.checkpoint_signing import load_signer
from interlock.core.call import MAX_NAME
from interlock.core.identity import ADMIN
from interlock.core.ledger.chain import Entry, Head, SignedHead, sign
from interlock.core.ports import EntryFilter
from interlock.presenters.approval import entry_json
from interlock.runtime.durations import parse_time
from interlock.server.audit_jobs import VerificationJobs
from interlock.server.dependencies import (
    ADMINS,
    VIEWERS,
    PrincipalDep,
    StateDep,
    documented_errors,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import json_response
from interlock.server.models import ResponseModel, Timestamp
from interlock.server.routes.approvals import EmptyBody
from interlock.server.routes.stats import entry_before
from interlock.server.state import ServerState
from interlock.server.streams.ledger_events import ACCOUNT_KINDS
from interlock.storage.engine.queries import MAX_LIMIT
from interlock.storage.store import SqlStore

router = APIRouter(tags=["audit"])

MAX_SCANNED = 10_000  # entries for one page, when most of them are filtered out
MAX_SEQ = 2**62
Name = Annotated[str, Field(max_length=MAX_NAME)]


async def verification_jobs(request: Request) -> VerificationJobs:
    jobs: VerificationJobs = request.app.state.verification_jobs
    return jobs


VerificationJobsDep = Annotated[VerificationJobs, Depends(verification_jobs)]


class AuditQuery(BaseModel):
    """Filters for entries; `after` is the `next` of the previous page."""

    model_config = ConfigDict(extra="forbid")

    kind: Name = ""
    actor: Name = ""
    approval_id: Name = ""
    since: Name = ""
    until: Name = ""
    after: Annotated[int | None, Field(ge=0, le=MAX_SEQ)] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100
    order: Literal["oldest", "newest"] = "oldest"


class LedgerEntryJson(BaseModel):
    """A ledger entry. `content` is null if there was none, or if it was erased: then there is a `digest`."""

    seq: int
    at: str
    kind: str
    actor: str
    approval_id: str
    data: dict[str, object]
    content: dict[str, object] | None
    digest: str


class LedgerEntryList(BaseModel):
    """`next` is the `after` of the next page; a page may be shorter than `limit` even if there is a next one."""

    items: list[LedgerEntryJson]
    next: str | None


class LedgerHead(BaseModel):
    """The head of the ledger; with a signing key also `signed_at`, `key`, `fingerprint` and `signature`."""

    workspace: str
    seq: int
    link: str
    at: int
    signed_at: int = 0
    key: str = ""
    fingerprint: str = ""
    signature: str = ""


class VerifiedHead(ResponseModel):
    seq: int
    link: str
    at: Timestamp


class ViolationJson(ResponseModel):
    """`seq` is the entry, or 0 if there is none. `table`, `row` and `field` are of the row that differs from it."""

    seq: int
    message: str
    table: str
    row: str
    field: str


class VerificationJson(ResponseModel):
    """`done` of `of` entries are read. At most 100 faults are listed; `problem` says why there is no result."""

    state: Literal["running", "valid", "invalid", "failed"]
    by: str
    began: Timestamp
    seconds: float
    done: int
    of: int
    entries: int
    approvals: int
    erased: int
    head: VerifiedHead | None
    fault_count: int
    faults: list[ViolationJson]
    problem: str


class VerificationStatusJson(ResponseModel):
    """The running verification and the result of the last one, as far as this process of the server remembers."""

    running: VerificationJson | None
    last: VerificationJson | None


@router.get("/api/audit", responses=documented_errors(), **require_roles(VIEWERS))
async def list_entries(
    state: StateDep, principal: PrincipalDep, query: Annotated[AuditQuery, Query()]
) -> LedgerEntryList:
    """Ledger entries, in order. Times are RFC 3339, `since` is inclusive; entries about accounts are for admins."""
    entry_filter = EntryFilter(query.kind, query.actor, query.limit, query.order == "newest")
    bounds = await _seq_bounds(state.store, principal.workspace, query.since, query.until)
    if query.approval_id:
        found, last = _filter_timeline(
            await state.store.timeline(principal.workspace, query.approval_id), bounds, entry_filter, query.after
        )
    else:
        found, last = await _page(state.store, principal.workspace, bounds, entry_filter, query.after)
    shown = [entry for entry in found if principal.role == ADMIN or not entry.kind.startswith(ACCOUNT_KINDS)]
    return LedgerEntryList(items=[_item(entry) for entry in shown], next=None if last is None else str(last))


@router.get(
    "/api/audit/head", response_model=None, responses=documented_responses(LedgerHead), **require_roles(VIEWERS)
)
async def head(state: StateDep, principal: PrincipalDep) -> dict[str, object]:
    """The newest entry's number and link. A copy reveals a truncated ledger: interlock audit verify --head FILE"""
    end = await _head_signer(state)
    return end(await state.store.head(principal.workspace)).to_json()


@router.get(
    "/api/audit/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented_errors(409)},
    **require_roles(ADMINS),
)
async def export(
    state: StateDep, principal: PrincipalDep, since: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0
) -> StreamingResponse:
    """Export the ledger as text, or the part after an entry, for: interlock audit verify --export FILE"""
    blocks = ledger_file.export(
        state.store, principal.workspace, since, await _head_signer(state), lambda done, end: None
    )
    first = await anext(blocks)  # an invalid `since` is refused before the response begins
    named = {"content-disposition": f'attachment; filename="interlock-{principal.workspace}.ledger"'}
    return StreamingResponse(_stream_export(first, blocks), headers=named, media_type="text/plain")


@router.get("/api/audit/verification", responses=documented_responses(VerificationStatusJson), **require_roles(VIEWERS))
async def show_verification(principal: PrincipalDep, jobs: VerificationJobsDep) -> Response:
    """The progress of a verification, and the result of the last one."""
    return to_starlette(json_response(jobs.to_json(principal.workspace)))


@router.post("/api/audit/verify", responses=documented_responses(VerificationStatusJson, 409), **require_roles(VIEWERS))
async def verify(principal: PrincipalDep, jobs: VerificationJobsDep, body: EmptyBody | None = None) -> Response:
    """Start what `interlock audit verify` does, in the background; one at a time. Poll GET /api/audit/verification"""
    jobs.start(principal.workspace, principal.name)
    return to_starlette(json_response(jobs.to_json(principal.workspace)))


async def _seq_bounds(store: SqlStore, workspace: str, since: str, until: str) -> tuple[int, int]:
    """The last entry before `since`, and the last one before `until`: entries are ordered by time."""
    return (
        await entry_before(store, workspace, parse_time(since)) if since else 0,
        await entry_before(store, workspace, parse_time(until)) if until else MAX_SEQ,
    )


async def _page(
    store: SqlStore, workspace: str, bounds: tuple[int, int], entry_filter: EntryFilter, after: int | None
) -> tuple[Sequence[Entry], int | None]:
    """Scan a limited number of entries: a filter that matches nothing must not read the whole ledger."""
    low, high = bounds[0], min(bounds[1], (await store.head(workspace)).seq)
    if entry_filter.newest_first:
        high = high if after is None else min(high, after - 1)
        span = (max(low, high - MAX_SCANNED), high)
    else:
        low = low if after is None else max(low, after)
        span = (low, min(high, low + MAX_SCANNED))
    found = await store.filter_entries(workspace, span, entry_filter)
    full = len(found) == entry_filter.limit
    if entry_filter.newest_first:
        edge = found[-1].seq if full else span[0] + 1
        return found, edge if edge - 1 > low else None
    edge = found[-1].seq if full else span[1]
    return found, edge if edge < high else None


def _filter_timeline(
    entries: Sequence[Entry], bounds: tuple[int, int], entry_filter: EntryFilter, after: int | None
) -> tuple[Sequence[Entry], int | None]:
    """Filter the entries of one approval; there are at most 1,000."""
    low, high = bounds
    found = [
        entry
        for entry in entries
        if low < entry.seq <= high
        and entry.kind == (entry_filter.kind or entry.kind)
        and entry.actor == (entry_filter.actor or entry.actor)
    ]
    if entry_filter.newest_first:
        found = [entry for entry in reversed(found) if after is None or entry.seq < after]
    else:
        found = [entry for entry in found if after is None or entry.seq > after]
    return found[: entry_filter.limit], found[entry_filter.limit - 1].seq if len(found) > entry_filter.limit else None


async def _head_signer(state: ServerState) -> Callable[[Head], SignedHead]:
    path = state.settings.audit.signing_key
    signer = None if path is None else await asyncio.to_thread(load_signer, path)
    return lambda head: sign(head, signer, state.clock())


async def _stream_export(first: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Stream an export. An interrupted one has no head at its end, so that nobody takes it for complete."""
    yield first
    async for block in blocks:
        yield block


def _item(entry: Entry) -> LedgerEntryJson:
    fields: dict[str, Any] = entry_json(entry)
    return LedgerEntryJson(**fields)
