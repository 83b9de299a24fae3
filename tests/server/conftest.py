"""The server's routes in this process, on a real database, with a clock that tests set."""

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
from tests.databases import Database
from tests.interlock_server import make_keys
from tests.server import access_matrix
from tests.server.asgi_request import send_request
from tests.support import Clock, open_services

ClientFactory = Callable[..., httpx2.AsyncClient]


@pytest.fixture
async def services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    async with open_services(database, clock) as services:
        yield services


@pytest.fixture
def settings() -> Settings:
    """The default configuration; a test module can override this fixture."""
    return Settings()


@pytest.fixture
async def state(settings: Settings, services: AppServices) -> ServerState:
    return await make_server_state(settings, services)


@pytest.fixture
def app(state: ServerState) -> RequestMiddleware:
    return build_app(state)


@pytest.fixture
async def keys(services: AppServices, state: ServerState) -> dict[str, str]:
    """By role: agent, viewer (vic), reviewer (bob of finance), admin (ada)."""
    made = await make_keys(services)
    await state.workspaces.refresh("default")
    return made


@pytest.fixture
async def client(app: RequestMiddleware) -> AsyncIterator[ClientFactory]:
    """Make clients: `client(key)` authenticates, `client()` does not."""
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
        got = await send_request(app, "GET", "/openapi.json")
        assert got.status == 200
        documents["server"] = got.json()
    return documents["server"]


@pytest.fixture
async def two_workspaces(
    services: AppServices, state: ServerState, app: RequestMiddleware, document: Document
) -> access_matrix.TwoWorkspaces:
    """Two workspaces with everything that routes are about."""
    made = access_matrix.TwoWorkspaces(services, app, app, document)
    await made.create()
    for workspace in (access_matrix.OURS, access_matrix.THEIRS):
        await state.workspaces.refresh(workspace)
    return made
