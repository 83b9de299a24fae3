"""Checks of the doctor: the server's settings."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from interlock.cli.doctor import check_server, is_local
from interlock.config.models import OidcSettings, ServerSettings, Settings, StorageSettings
from interlock.storage.engine.metrics import CheckResult


def check_server_setting(what: str, **server: object) -> CheckResult:
    settings = Settings(storage=StorageSettings(), server=ServerSettings(**{"port": 0, **server}))  # type: ignore[arg-type]
    return next(line for line in check_server(settings) if line.what == what)


@pytest.mark.parametrize(
    ("server", "state"),
    [
        ({}, "ok"),
        ({"host": "::1"}, "ok"),
        ({"public_url": "http://localhost:8321"}, "ok"),
        ({"public_url": "https://approvals.example", "proxies": ("127.0.0.1",)}, "ok"),
        ({"public_url": "https://approvals.example"}, "warn"),
        ({"host": "192.0.2.1"}, "warn"),
        ({"public_url": "http://approvals.example"}, "warn"),
        ({"public_url": "approvals.example"}, "fail"),
    ],
)
def test_an_address_without_tls_is_for_this_machine_only(server: dict[str, object], state: str) -> None:
    line = check_server_setting("address", **server)
    assert line.state == state
    assert bool(line.todo) is (state != "ok")


def test_a_port_is_free_or_taken_by_something_else() -> None:
    assert check_server_setting("port").state == "ok"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        other.close()
        assert "is free" in check_server_setting("port", port=port).found
    with serve_json({"hello": "world"}) as url:
        line = check_server_setting("port", port=int(url.rpartition(":")[2]))
    assert (line.state, "something else listens" in line.found) == ("fail", True)


def test_a_server_of_ours_at_the_port_is_fine() -> None:
    with serve_json({"status": "ok"}) as url:
        line = check_server_setting("port", port=int(url.rpartition(":")[2]))
    assert (line.state, "a server of Interlock runs" in line.found) == ("ok", True)


def test_the_provider_has_to_answer_by_its_own_name() -> None:
    with serve_json({"issuer": "https://other.example"}) as url:
        assert (
            check_server_setting(
                "provider", oidc=OidcSettings(issuer=url, client_id="interlock", client_secret="secret")
            ).found
            == f"{url} calls itself https://other.example"
        )
    gone = check_server_setting(
        "provider", oidc=OidcSettings(issuer=url, client_id="interlock", client_secret="secret")
    )
    assert (gone.state, "ConnectError" in gone.found) == ("fail", True)


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.9", True), ("[::1]", True), ("localhost", True), ("192.0.2.1", False), ("a.b", False)]
)
def test_local_is_what_nobody_else_can_reach(host: str, local: bool) -> None:
    assert is_local(host) is local


@contextmanager
def serve_json(body: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("x-request-id", "1")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Not into the output of the tests."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
