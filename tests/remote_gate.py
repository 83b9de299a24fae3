"""The gate over HTTP with the interface of the embedded gate, so that one test can run on both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from interlock.app.bootstrap import AppServices
from interlock.app.gate import Execution
from interlock.config.models import Settings
from interlock.core.approval.execute import DEFAULT_LEASE
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import read_canonical
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome
from interlock.sdk.client import Client
from interlock.sdk.codec import RemoteApprovalStatus, declared_spec
from interlock.server.app import build_app
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState

URL = "http://127.0.0.1:8321"


@asynccontextmanager
async def use_remote_gate(services: AppServices) -> AsyncIterator[AppServices]:
    """Replace the gate by a client of a server's routes."""
    here = services.gate
    state = await make_server_state(Settings(), services)
    _, key = await services.accounts.create_key("default", "bot", "agent", "test")
    transport = httpx2.ASGITransport(app=build_app(state))
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    http = httpx2.AsyncClient(transport=transport, base_url=URL, headers=headers)
    services.gate = RemoteGate(state, http, key)  # type: ignore[assignment]
    try:
        yield services
    finally:
        services.gate = here
        await http.aclose()


def recorded_spec(services: AppServices, spec: ToolSpec) -> ToolSpec:
    """The tool as the ledger records it: a remote program declares its tool, without its functions."""
    return declared_spec(spec) if has_remote_gate(services) else spec


def has_remote_gate(services: AppServices) -> bool:
    return isinstance(services.gate, RemoteGate)


class RemoteGate:
    """`policy` is set by the test; the server loads it by itself."""

    def __init__(self, state: ServerState, http: httpx2.AsyncClient, key: str) -> None:
        self._site = state
        self._http = http
        self._key = key
        self._specs: dict[str, ToolSpec] = {}

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        self._specs[spec.sha256] = spec
        return await (await self._client()).check(call, spec)

    async def ask(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        return await (await self._client()).ask_call(call)

    async def get_outcome(self, workspace: str, approval_id: str) -> Outcome:
        return await (await self._client()).wait(approval_id, 0)

    async def wait(self, workspace: str, approval_id: str, timeout: float | None = None, **more: Any) -> Outcome:
        return await (await self._client()).wait(approval_id, timeout, **more)

    async def start(
        self, workspace: str, approval_id: str, runner: str, lease: int = DEFAULT_LEASE, spec_sha256: str = ""
    ) -> Execution:
        client, spec = await self._client(lease), self._specs.get(spec_sha256)
        if spec_sha256 and spec is None:
            spec = ToolSpec("another definition")
        return await client.start(approval_id, spec, attempt=runner if runner.startswith("attempt:") else "")

    async def renew(
        self, workspace: str, approval_id: str, fence: int, lease: int = DEFAULT_LEASE
    ) -> RemoteApprovalStatus:
        return await (await self._client(lease)).renew(approval_id, fence)

    async def finish(
        self, workspace: str, approval_id: str, fence: int, *, ok: bool, payload: Payload
    ) -> RemoteApprovalStatus:
        result = None if payload.result is None else read_canonical(payload.result)
        return await (await self._client()).finish(approval_id, fence, result, error="" if ok else payload.error or "?")

    async def abandon(self, workspace: str, approval_id: str, fence: int) -> RemoteApprovalStatus:
        return await (await self._client()).abandon(approval_id, fence)

    async def cancel(self, workspace: str, approval_id: str, actor: str, reason: str = "") -> RemoteApprovalStatus:
        return await (await self._client()).cancel(approval_id, reason)

    async def _client(self, lease: int = DEFAULT_LEASE) -> Client:
        await self._site.workspaces.refresh("default")
        client = Client(URL, self._key, lease_seconds=lease / 1000)
        client._transport._http = self._http  # the routes of this process, instead of a socket
        return client
