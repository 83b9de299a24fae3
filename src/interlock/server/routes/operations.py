"""Operations: liveness, readiness, metrics, and information about the server."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from interlock import __version__
from interlock.core.errors import Error, StoreUnavailable
from interlock.server.dependencies import VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.server.metrics import MetricsExporter

READY_TIMEOUT = 5.0  # seconds that a database may take to answer and still count as available

router = APIRouter(tags=["operations"])


async def metrics_exporter(request: Request) -> MetricsExporter:
    metrics: MetricsExporter = request.app.state.metrics
    return metrics


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Liveness: the process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=documented_errors(503))
async def readyz(state: StateDep) -> dict[str, str]:
    """Readiness: the database is available and up to date; a server that is about to stop is not ready."""
    if state.stopping.is_set():
        raise NotReady("The server is about to stop. Ask another, or wait until it is started again.")
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            state.store.check_same_database()
            await state.store.migrations()
    except TimeoutError:
        raise StoreUnavailable(f"The database did not answer within {READY_TIMEOUT:.0f} seconds.") from None
    return {"status": "ready"}


@router.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented_errors()},
    response_class=Response,
    **require_roles(VIEWERS),
)
async def metrics(principal: PrincipalDep, every: Annotated[MetricsExporter, Depends(metrics_exporter)]) -> Response:
    """Prometheus metrics of the key's workspace, and of the process."""
    return Response(await every.text(principal.workspace), media_type=CONTENT_TYPE_LATEST)


class NotReady(Error):
    code, status = "not_ready", 503


class About(BaseModel):
    """`retention` is the time for which the contents of ended calls are kept; `provider` is for OpenID Connect."""

    version: str
    database: str
    retention: str
    provider: bool
    workspace: str


@router.get("/api/about", responses=documented_errors(), **require_roles(VIEWERS))
async def about(state: StateDep, principal: PrincipalDep) -> About:
    """The version of the server, its database and its settings."""
    return About(
        version=__version__,
        database="PostgreSQL" if state.settings.storage.url.startswith("postgres") else "SQLite",
        retention=state.settings.storage.retention_text,
        provider=state.settings.server.oidc is not None,
        workspace=principal.workspace,
    )
