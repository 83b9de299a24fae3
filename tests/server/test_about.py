"""What is installed and configured, as people see it: nothing that is secret."""

from __future__ import annotations

from dataclasses import replace

from interlock import __version__
from interlock.config.models import StorageSettings
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.asgi_request import send_request
from tests.server.conftest import ClientFactory


# R44
async def test_about_says_which_version_runs_on_which_database(
    client: ClientFactory, keys: dict[str, str], state: ServerState
) -> None:
    state.settings = replace(
        state.settings, storage=StorageSettings("postgresql://interlock:hunter2@db.internal/interlock")
    )
    told = (await client(keys["viewer"]).get("/api/about")).json()
    assert told == {
        "version": __version__,
        "database": "PostgreSQL",
        "retention": "forever",
        "provider": False,
        "workspace": "default",
    }


async def test_a_wrong_method_is_told_which_ones_there_are(app: RequestMiddleware) -> None:
    got = await send_request(app, "PATCH", "/api/users")
    assert (got.status, got.error_code, got.headers["allow"]) == (405, "wrong_method", "GET, POST")


async def test_a_parameter_in_the_place_of_a_written_address_offers_no_methods_there(app: RequestMiddleware) -> None:
    got = await send_request(app, "OPTIONS", "/api/approvals/bulk")
    assert (got.status, got.headers["allow"]) == (405, "POST")
    other = await send_request(app, "OPTIONS", "/api/approvals/some-id")
    assert (other.status, other.headers["allow"]) == (405, "GET")
