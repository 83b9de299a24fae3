"""The server's routes in this process, over a real database, under a clock that the tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx2
import pytest

from interlock.app.bootstrap import AppServices
from interlock.config.models import Settings
from interlock.server.app import build_app
from interlock.server.middleware import RequestMiddleware
from interlock.server.openapi.document import Document
from interlock.server.serve import make_server_state
from interlock.server.state import ServerState
from tests.databases import Place
from tests.interlock_server import make_keys
from tests.server import access_matrix
from tests.server.asgi_request import ask
from tests.support import Clock, opened

As = Callable[..., httpx2.AsyncClient]


@pytest.fixture
async def parts(place: Place, clock: Clock) -> AsyncIterator[AppServices]:
    async with opened(place, clock) as doors:
        yield doors


@pytest.fixture
def settings() -> Settings:
    """A test module with a configuration of its own says so in a fixture of this name."""
    return Settings()


@pytest.fixture
async def site(settings: Settings, parts: AppServices) -> ServerState:
    return await make_server_state(settings, parts)


@pytest.fixture
def app(site: ServerState) -> RequestMiddleware:
    return build_app(site)


@pytest.fixture
async def keys(parts: AppServices, site: ServerState) -> dict[str, str]:
    """By role: agent, viewer (vic), reviewer (bob of finance), admin (ada)."""
    made = await make_keys(parts)
    await site.workspaces.refresh("default")
    return made


@pytest.fixture
async def client(app: RequestMiddleware) -> AsyncIterator[As]:
    """`client(key)` talks with that key, `client()` with none."""
    clients: list[httpx2.AsyncClient] = []

    def make(key: str = "", **headers: str) -> httpx2.AsyncClient:
        if key:
            headers["authorization"] = f"Bearer {key}"
        transport = httpx2.ASGITransport(app=app)
        clients.append(httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", headers=headers))
        return clients[-1]

    yield make
    for each in clients:
        await each.aclose()


@pytest.fixture(scope="session")
def documents() -> dict[str, Document]:
    """By who made it: the document of the routes is the same for every test, and takes a while to make."""
    return {}


@pytest.fixture
async def document(app: RequestMiddleware, documents: dict[str, Document]) -> Document:
    """As the server gives it to somebody without a key; it is only read."""
    if "server" not in documents:
        got = await ask(app, "GET", "/openapi.json")
        assert got.status == 200
        documents["server"] = got.json()
    return documents["server"]


@pytest.fixture
async def world(
    parts: AppServices, site: ServerState, app: RequestMiddleware, document: Document
) -> access_matrix.World:
    """Two workspaces, and all routes."""
    made = access_matrix.World(parts, app, app, document)
    await made.make()
    for workspace in (access_matrix.OURS, access_matrix.THEIRS):
        await site.workspaces.refresh(workspace)
    return made
