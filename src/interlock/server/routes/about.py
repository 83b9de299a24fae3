"""What is installed here, for people to see; nothing of it is secret."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from interlock import __version__
from interlock.server.dependencies import VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles

router = APIRouter(tags=["operations"])


class About(BaseModel):
    """`retention` is how long contents are kept after the end; `provider` whether people may come by OpenID Connect."""

    version: str
    database: str
    retention: str
    provider: bool
    workspace: str


@router.get("/api/about", responses=documented_errors(), **require_roles(VIEWERS))
async def about(site: StateDep, who: PrincipalDep) -> About:
    """Which version runs, and on what."""
    return About(
        version=__version__,
        database="PostgreSQL" if site.settings.storage.url.startswith("postgres") else "SQLite",
        retention=site.settings.storage.kept,
        provider=site.settings.server.oidc is not None,
        workspace=who.workspace,
    )
