"""What the server tells of its requests: enough to find a fault, and never what was in them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from interlock.config.models import ServerSettings, Settings
from interlock.server.http import Receive, Scope, Send
from interlock.server.logs import MAX_LINES_PER_SECOND, JsonLogger, LibraryLogHandler
from interlock.server.middleware import RequestMiddleware
from interlock.server.state import ServerState
from tests.server.conftest import ClientFactory
from tests.server.test_calls import CALL, decide, propose
from tests.support import START, Clock

Lines = list[dict[str, Any]]
SECRET = "hunter2-AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def settings() -> Settings:
    return Settings(server=ServerSettings(log="requests", proxies=("10.0.0.0/8",)))


@pytest.fixture
def lines(state: ServerState, clock: Clock) -> Lines:
    """Before the app is built, which takes the log from the site."""
    told: Lines = []
    state.log = JsonLogger(clock, "requests", lambda line: told.append(json.loads(line)))
    return told


async def test_every_answer_has_an_id_that_the_log_knows(
    lines: Lines, client: ClientFactory, keys: dict[str, str]
) -> None:
    answer = await client(keys["agent"]).get("/api/calls/nothing")
    (line,) = lines
    assert line["request_id"] == answer.headers["x-request-id"]
    assert (line["event"], line["route"], line["status"]) == ("request", "/api/calls/{approval_id}", 404)
    assert (line["workspace"], line["role"], line["at"]) == ("default", "agent", "2027-01-15T08:00:00.000Z")
    assert line["ms"] >= 0


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-DEF_1", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ('"}{', False)]
)
async def test_a_given_id_is_kept_if_it_is_one(client: ClientFactory, given: str, kept: bool) -> None:
    answer = await client(**{"x-request-id": given}).get("/healthz")
    assert (answer.headers["x-request-id"] == given) is kept


async def test_ids_differ(client: ClientFactory) -> None:
    ids = {(await client().get("/healthz")).headers["x-request-id"] for _ in range(20)}
    assert len(ids) == 20


async def test_a_fault_in_a_hot_route_is_a_plain_answer(
    lines: Lines, state: ServerState, client: ClientFactory, keys: dict[str, str]
) -> None:
    told = await propose(client(keys["agent"]))
    state.clock = broken_app
    answer = await decide(client(keys["reviewer"]), told)
    assert assert_failure_logged(answer, lines) == "/api/approvals/{approval_id}/decision"


async def test_a_fault_in_another_route_is_a_plain_answer(
    lines: Lines, state: ServerState, client: ClientFactory
) -> None:
    state.store = None  # type: ignore[assignment]  # a fault of ours
    answer = await client().get("/readyz")
    assert assert_failure_logged(answer, lines) == "/readyz"


def assert_failure_logged(answer: httpx2.Response, lines: Lines) -> str:
    """The route that the log names, once all the rest is as it should be."""
    body = answer.json()
    assert (answer.status_code, set(body)) == (500, {"error", "message", "request_id"})
    assert (body["error"], body["request_id"]) == ("internal", answer.headers["x-request-id"])
    (line,) = [line for line in lines if line["event"] == "request_failed"]
    assert (line["level"], line["request_id"]) == ("error", body["request_id"])
    assert line["exception"] in ("ValueError", "AttributeError")
    assert line["at_line"].partition(":")[2].isdigit()
    assert SECRET not in answer.text + json.dumps(lines)
    route: str = line["route"]
    return route


def broken_app() -> int:
    raise ValueError(SECRET)


async def test_planted_secrets_are_in_no_line_and_no_error(
    lines: Lines, client: ClientFactory, keys: dict[str, str]
) -> None:
    agent, bob = client(keys["agent"]), client(keys["reviewer"])
    answers = [
        await client(f"ik_{SECRET}").get("/api/calls/x"),
        await client(cookie=f"interlock={SECRET}").get("/api/calls/x"),
        await agent.get(f"/api/calls/{SECRET}", params={"wait": SECRET}),
        await agent.get(f"/{SECRET}", params={"password": SECRET}),
        await agent.request(SECRET.upper(), "/healthz"),
        await agent.post("/api/calls", json={**CALL, "args": {"password": SECRET}, "secret": ["/password"]}),
        await agent.post("/api/calls", content=f'{{"args": "{SECRET}"', headers={"content-type": "application/json"}),
        await agent.post("/api/calls", json={**CALL, "args": SECRET}),
        await agent.post("/api/calls", json={**CALL, "call_id": "c2", "schema": {"type": SECRET}}),
        await bob.post(f"/api/approvals/{SECRET}/decision", json={"kind": "approve", "comment": SECRET}),
    ]
    log = json.dumps(lines)
    assert len([line for line in lines if line["event"] == "request"]) == len(answers)
    assert SECRET not in log
    assert SECRET.upper() not in log
    assert keys["agent"] not in log
    assert [key for key in keys.values() if key[:12] in log] == []
    assert not any(SECRET in answer.text for answer in answers if answer.status_code in (401, 500))


async def test_only_refusals_are_logged_unless_all_is_configured(
    state: ServerState, clock: Clock, keys: dict[str, str]
) -> None:
    told: Lines = []
    for wanted in ("problems", "none"):
        state.log = JsonLogger(clock, wanted, lambda line: told.append(json.loads(line)))  # type: ignore[arg-type]
        async with send_as_peer(RequestMiddleware(state, respond_with(200))) as client:
            await client.get("/")
        async with send_as_peer(RequestMiddleware(state, respond_with(401))) as client:
            await client.get("/")
    assert [(line["event"], line["level"], line["status"]) for line in told] == [("request_refused", "warning", 401)]


def test_a_flood_of_lines_is_cut_and_said_so(clock: Clock) -> None:
    told: Lines = []
    log = JsonLogger(clock, "problems", lambda line: told.append(json.loads(line)))
    for _ in range(MAX_LINES_PER_SECOND + 50):
        log.write_limited("warning", "request_refused")
    assert len(told) == MAX_LINES_PER_SECOND
    clock.advance(1_000)
    log.write_limited("warning", "request_refused")
    assert [line["event"] for line in told[MAX_LINES_PER_SECOND:]] == ["lines_left_out", "request_refused"]
    assert told[MAX_LINES_PER_SECOND]["lines"] == 50


def test_what_libraries_log_comes_without_its_values(clock: Clock) -> None:
    told: Lines = []
    logger = logging.Logger("uvicorn.error")
    logger.addHandler(LibraryLogHandler(JsonLogger(clock, "problems", lambda line: told.append(json.loads(line)))))
    try:
        broken_app()
    except ValueError:
        logger.exception("It failed for %s", SECRET)
    logger.info("Started")
    (line,) = told
    assert (line["event"], line["logger"], line["message"]) == ("library", "uvicorn.error", "It failed for %s")
    assert line["exception"] == "ValueError"
    assert SECRET not in json.dumps(told)


async def test_background_failure_is_logged_without_its_message(clock: Clock) -> None:
    told: Lines = []
    log = JsonLogger(clock, "problems", lambda line: told.append(json.loads(line)))
    loop = asyncio.get_running_loop()
    log.handle_loop_exception(loop, {"message": "Task exception was never retrieved", "exception": ValueError(SECRET)})
    log.handle_loop_exception(loop, {"message": "Unclosed transport"})
    assert [line["event"] for line in told] == ["background_failed"] * 2
    assert (told[0]["exception"], told[1]["message"]) == ("ValueError", "Unclosed transport")
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize(
    ("peer", "forwarded", "seen"),
    [
        ("10.1.2.3", "198.51.100.7", "198.51.100.7"),
        ("10.1.2.3", "192.0.2.1, 198.51.100.7, 10.9.9.9", "198.51.100.7"),
        ("10.1.2.3", "2001:db8::1", "2001:db8::1"),
        ("10.1.2.3", "192.0.2.1, nonsense", "10.1.2.3"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),  # no proxy of ours: whoever asks can write anything
    ],
)
async def test_only_named_proxies_are_believed(
    lines: Lines, state: ServerState, peer: str, forwarded: str, seen: str
) -> None:
    async with send_as_peer(RequestMiddleware(state, respond_with(200)), peer) as client:
        await client.get("/", headers={"x-forwarded-for": forwarded})
    assert lines[-1]["address"] == seen


def send_as_peer(app: RequestMiddleware, peer: str = "127.0.0.1") -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, client=(peer, 1234))
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321")


def respond_with(status: int) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return app


def test_the_clock_of_the_tests_is_the_log_s(clock: Clock) -> None:
    told: Lines = []
    JsonLogger(clock, "none", lambda line: told.append(json.loads(line))).write("info", "start", version="1")
    assert clock() == START
    assert told == [{"at": "2027-01-15T08:00:00.000Z", "level": "info", "event": "start", "version": "1"}]
