"""Transport errors of the client: no server, another server, or an untrusted one; no database here."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interlock import Interlock, Misconfigured, StoreUnavailable, propose
from interlock.cli import server_review
from interlock.cli.review import ReviewChanges
from interlock.cli.server_review import ServerChanges, ServerReview
from interlock.cli.user_folder import Login
from interlock.core import errors
from interlock.core.decision import Approve
from interlock.core.errors import Conflict, Error, InvalidDecision, InvalidRequest
from interlock.core.ports import ApprovalQuery
from interlock.core.run import API_VERSION
from interlock.sdk import codec
from interlock.sdk.client import Client, SyncClient
from interlock.sdk.transport import Transport, parse_server_address
from tests.fault_proxy import foreign_server

CALL = propose("send", {"to": "a"}, "run", "1")
KEY = "ik_test_key"


def serve_response(status: str, body: str, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "", body]
    return "\r\n".join(lines).encode()


def connection_error(url: str, **options: Any) -> Error:
    """What the first request of a program ends with."""
    with SyncClient(url, KEY, **options) as client, pytest.raises(Error) as refused:
        client.check(CALL)
    assert KEY not in str(refused.value)
    return refused.value


# R3
@pytest.mark.parametrize(
    "answer",
    [
        serve_response("200 OK", "<html>Welcome</html>", "content-type: text/html"),
        serve_response("404 Not Found", "not here", "content-type: text/plain"),
        serve_response("404 Not Found", '{"detail":"Not Found"}', "content-type: application/json"),
        serve_response("400 Bad Request", "The plain HTTP request was sent to HTTPS port"),
        serve_response("200 OK", "[]", "content-type: application/json"),
        serve_response("500 Internal Server Error", "oh"),
    ],
)
def test_a_server_that_is_not_interlock_is_named(answer: bytes) -> None:
    with foreign_server(answer) as url:
        error = connection_error(url)
    assert isinstance(error, Misconfigured)
    assert url in error.message
    assert "Check the address" in error.message


def test_redirects_are_not_followed_with_the_key() -> None:
    with foreign_server(serve_response("301 Moved", "", "location: https://elsewhere.example/api/calls")) as url:
        error = connection_error(url)
    assert isinstance(error, Misconfigured)
    assert "https://elsewhere.example/api/calls" in error.message


def test_a_server_that_is_not_there_is_named_with_how_long_it_was_tried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    error = connection_error(url, retry_timeout=0.3)
    assert isinstance(error, StoreUnavailable)
    assert url in error.message
    assert "interlock serve" in error.message
    assert "Nothing was run" in error.message


def test_a_proxy_without_its_server_counts_as_away() -> None:
    with foreign_server(serve_response("502 Bad Gateway", "<html>", "content-type: text/html")) as url:
        assert isinstance(connection_error(url, retry_timeout=0.2), StoreUnavailable)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ('{"error":"not_found","message":"There is nothing at this address."}', "older"),
        ('{"items":[],"next":null,"run_id":"r","key":"00","api":99}', "newer"),
    ],
)
def test_a_server_of_another_version_is_named(answer: str, words: str) -> None:
    status = "404 Not Found" if "error" in answer else "200 OK"
    with (
        foreign_server(serve_response(status, answer, "content-type: application/json", "connection: close")) as url,
        pytest.raises(Misconfigured, match=words),
        Interlock(url, key=KEY),
    ):
        pytest.fail("it opened")


def test_an_outcome_that_nobody_knows_runs_nothing() -> None:
    with foreign_server(serve_response("200 OK", '{"outcome":"perhaps"}', "content-type: application/json")) as url:
        error = connection_error(url)
    assert isinstance(error, Misconfigured)
    assert f"The answer of {url} was not understood (ValueError: an unknown outcome, 'perhaps'; its" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        {"outcome": "proceed", "args": "evil"},
        {"outcome": "proceed", "args": None},
        {"outcome": "refused", "reason": {}, "status": "rejected"},
        {"outcome": "waiting", "status": 7},
    ],
)
def test_a_field_of_another_type_is_not_understood(answer: dict[str, object]) -> None:
    with foreign_server(serve_response("200 OK", json.dumps(answer), "content-type: application/json")) as url:
        error = connection_error(url)
    assert isinstance(error, Misconfigured)
    assert "is of another type" in error.message


ASKS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "check": lambda client: client.check(CALL),
    "ask": lambda client: client.ask("Why?", run_id="run", call_id="1"),
    "wait": lambda client: client.wait("id", 0),
    "start": lambda client: client.start("id"),
    "renew": lambda client: client.renew("id", 1),
    "finish": lambda client: client.finish("id", 1, "done"),
    "abandon": lambda client: client.abandon("id", 1),
    "cancel": lambda client: client.cancel("id"),
    "questions": lambda client: client.questions("id"),
    "answer": lambda client: client.answer("id", 1, "So."),
    "list": lambda client: client.list_approvals(ApprovalQuery()),
    "show": lambda client: client.show_approval("id"),
    "stats": lambda client: client.stats(),
    "decide": lambda client: client.decide("id", Approve(), "bob"),
    "runs": lambda client: client.list_runs("bot"),
    "acquire": lambda client: client.acquire_run("bot", "runner"),
    "pause": lambda client: client.pause("bot", "run", "own", b""),
    "pauses": lambda client: client.list_pauses(),
    "acquire pauses": lambda client: client.acquire_ready_pauses("bot", "runner", 0),
    "release": lambda client: client.release_pause("run", 1, failed=False),
    "complete": lambda client: client.complete_pause("run", 1),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
async def test_an_answer_of_another_form_is_one_error_with_the_address(
    ask: Callable[[Client], Awaitable[object]],
) -> None:
    fields = {"\x1b[31m\x9b\u202e" + "x" * 100: 1, "api": API_VERSION, **{f"f{n}": "secret" for n in range(20)}}
    body = json.dumps({**fields, "outcome": {}, "items": 5, "held": 5, "status_": 5})
    with foreign_server(serve_response("200 OK", body, "content-type: application/json", "connection: close")) as url:
        async with Client(url, KEY) as client:
            with pytest.raises(Misconfigured) as refused:
                await ask(client)
    message = refused.value.message
    assert message.startswith(f"The answer of {url} was not understood (")
    assert "its fields: \\x1b[31m\\x9b\\u202exxx" in message
    assert message.isprintable()
    assert "secret" not in message
    assert len(message) < 600


def test_what_a_proxy_calls_its_page_controls_no_terminal() -> None:
    page = serve_response("404 Not Found", "no", f"content-type: text/\x9b31m{'x' * 200}").decode().encode("latin-1")
    with foreign_server(page) as url:
        message = connection_error(url).message
    assert message.isprintable()
    assert "HTTP 404, text/\\x9b31mxxx" in message
    assert len(message) < 400


@pytest.mark.parametrize("seconds", ["\u00b2", "9" * 400, "soon"])
def test_a_proxy_that_names_an_odd_time_to_wait_counts_as_away(seconds: str) -> None:
    away = serve_response("503 Unavailable", "", f"retry-after: {seconds}").decode().encode("latin-1")
    with foreign_server(away) as url:
        assert isinstance(connection_error(url, retry_timeout=0.2), StoreUnavailable)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://interlock.example", "not encrypted"),
        ("https://me:secret@interlock.example", "password out"),
        ("https://", "not the address"),
        ("https://interlock.example/?x=1", "not the address"),
        ("ftp://interlock.example", "not the address"),
    ],
)
def test_a_wrong_address_is_refused_before_anything_is_sent(url: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=words) as refused:
        Client(url, KEY)
    assert "secret" not in refused.value.message


def test_only_a_network_of_ones_own_may_be_unencrypted() -> None:
    assert parse_server_address("http://interlock:8321/", KEY, insecure=True).url == "http://interlock:8321"
    for url in ("http://127.0.0.1:8321", "http://localhost", "http://[::1]:8321", "https://interlock.example/below"):
        assert parse_server_address(url, KEY).key == KEY
        assert KEY not in repr(parse_server_address(url, KEY))


@pytest.mark.parametrize("key", [None, "", "two words", "line\nbreak", "schlüssel"])
def test_what_is_no_key_is_refused_with_the_way_to_one(key: str | None) -> None:
    with pytest.raises(Misconfigured, match="interlock keys create"):
        Client("https://interlock.example", key)


# R3
def test_a_certificate_that_is_not_trusted_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = make_certificate(tmp_path)
    with serve_tls(file) as url:
        error = connection_error(url)
        assert isinstance(error, Misconfigured)
        assert "SSL_CERT_FILE" in error.message
        other = connection_error(url.replace("https", "http"), retry_timeout=0.2)
        assert isinstance(other, StoreUnavailable | Misconfigured)


def test_https_to_a_server_without_it_is_named() -> None:
    with foreign_server(serve_response("400 Bad Request", "no")) as url:
        error = connection_error(url.replace("http", "https"))
    assert isinstance(error, Misconfigured)
    assert "https://" in error.message


def test_every_error_of_the_services_comes_back_as_itself() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Error)]
    assert len(kinds) > 20
    for kind in kinds:
        made = kind("Do this.", approval_id="x")
        again = codec.parse_error(made.status, made.to_json())
        assert (type(again), again.message, again.ids) == (kind, "Do this.", {"approval_id": "x"})


def test_an_error_that_only_a_server_has_is_the_nearest_that_programs_know() -> None:
    for status, code, kind in (
        (413, "too_large", InvalidRequest),
        (421, "wrong_host", Misconfigured),
        (409, "in_progress", Conflict),
    ):
        assert type(codec.parse_error(status, {"error": code, "message": "m"})) is kind
    assert type(codec.parse_error(500, {"error": "internal", "message": "m"})) is StoreUnavailable


def test_problems_of_a_decision_come_back_with_their_places() -> None:
    made = InvalidDecision("No.", [errors.Problem("/args/x", "missing")], approval_id="x")
    again = codec.parse_error(422, made.to_json())
    assert isinstance(again, InvalidDecision)
    assert again.problems == made.problems


def make_certificate(folder: Path) -> Path:
    """One that signed itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@contextmanager
def serve_tls(file: Path) -> Iterator[str]:
    """A server that speaks TLS, and hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), context.wrap_socket(connection, server_side=True):
                        pass

        thread = threading.Thread(target=take)
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


async def test_a_client_that_was_never_used_closes() -> None:
    async with Client("https://interlock.example", KEY) as client:
        await asyncio.sleep(0)
    assert repr(client) == "Client('https://interlock.example')"


# Event streams


def stream_response(*frames: str) -> bytes:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return (head + "".join(frames)).encode()


@asynccontextmanager
async def watch_stream(answer: bytes) -> AsyncIterator[ReviewChanges]:
    login = Login(url="", key=KEY, key_id="", user="bob", role="reviewer", workspace="default", expires_at=0)
    with foreign_server(answer) as url:
        transport = Transport(parse_server_address(url, KEY))
        review = ServerReview(replace(login, url=url), transport, {"name": "bob", "workspace": "default"})
        try:
            async with asyncio.timeout(60), review.watch() as changes:
                yield changes
        finally:
            await transport.close()


@pytest.mark.parametrize("error", ["a\u2028b", "\u2028data: 1\u2028", "\x85id: 999999\x85", "\x0b\x1c\u2029"])
async def test_what_an_agent_reports_neither_breaks_nor_forges_an_event(error: str) -> None:
    event = {"seq": 7, "kind": "failed", "approval_id": "a", "error": error}
    frame = f"id: 7\r\nevent: failed\r\ndata: {json.dumps(event, ensure_ascii=False)}\r\n\r\n"
    async with watch_stream(stream_response("retry: 1000\nid: 6\n\n", frame)) as changes:
        await changes.wait(30)
        assert (await changes.new_events())[0] == event
        assert changes.last_id == "7"  # type: ignore[attr-defined]  # of a server alone


async def test_an_event_that_was_cut_off_is_sent_again() -> None:
    async with watch_stream(stream_response("id: 6\n\n", "id: 7\nevent: proposed\nda")) as changes:
        await changes.wait(30)
        assert changes.last_id == "6"  # type: ignore[attr-defined]  # of a server alone


async def test_an_event_that_is_not_understood_is_said() -> None:
    async with watch_stream(stream_response("id: 6\n\n", "id: 7\ndata: {\n\n")) as changes:
        while "was not understood" not in changes.trouble:
            await changes.wait(30)
        assert await changes.new_events() == []


async def test_events_that_were_skipped_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_review, "MAX_EVENTS", 2)
    events = [f'id: {n}\nevent: proposed\ndata: {{"approval_id": "a{n}"}}\n\n' for n in (91, 92, 93)]
    reset = 'id: 90\nevent: reset\ndata: {"seq": 90, "reason": "behind"}\n\n'
    async with watch_stream(stream_response("id: 6\n\n", reset, *events)) as changes:
        await changes.wait(30)
        assert changes.take_skipped() == 84 + 1
        assert [each["approval_id"] for each in await changes.new_events()] == ["a92", "a93"]
        assert changes.take_skipped() == 0


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (stream_response(), StoreUnavailable, "at once"),
        (serve_response("200 OK", "\n\nWelcome\n\n", "content-type: text/html"), Misconfigured, "text/html"),
        (
            serve_response("200 OK", "x" * 50, "content-type: text/event-stream", "content-encoding: gzip"),
            StoreUnavailable,
            "DecodingError",
        ),
    ],
    ids=["closed at once", "a page", "broken compression"],
)
async def test_a_stream_that_does_not_begin_ends_with_an_error(answer: bytes, kind: type[Error], words: str) -> None:
    with pytest.raises(kind, match=words):
        async with watch_stream(answer):
            pass


async def test_a_watch_goes_on_while_a_proxy_gives_its_own_answers() -> None:
    answers = [stream_response("id: 6\n\n"), serve_response("404 Not Found", "not here", "content-type: text/plain")]
    async with watch_stream(answers[0]) as changes:
        assert isinstance(changes, ServerChanges)
        with foreign_server(answers[1]) as elsewhere:
            changes.transport.address = replace(changes.transport.address, url=elsewhere)
            await changes.transport.close()
            while "HTTP 404" not in changes.trouble:
                await changes.wait(30)
            assert changes.following is not None
            assert not changes.following.done()
