"""For those who run the server: is it alive, is it ready."""

from __future__ import annotations

from fastapi import APIRouter

from interlock.server.routing import Here, fails

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses=fails(503))
async def readyz(site: Here) -> dict[str, str]:
    """The database is there and up to date; a server that is about to stop is not ready."""
    await site.store.head("default")
    return {"status": "ready"}
