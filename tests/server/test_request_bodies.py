"""Bodies that are more, or other, than they seem: too large, too deep, too slow, read in two ways, or with claims."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from interlock.server import router
from tests.databases import SqliteFile
from tests.server import access_matrix
from tests.server.access_matrix import OURS, THEIRS, TwoWorkspaces, assert_nothing_changes, fill_path
from tests.server.asgi_request import make_scope, send_request
from tests.server.test_attacks import INNER, JSON


@pytest.fixture
def database(tmp_path: Path) -> SqliteFile:
    """One kind of database is enough: what is refused here never comes to it."""
    return SqliteFile(tmp_path / "interlock.db")


def malformed_bodies(well: bytes) -> dict[str, tuple[bytes, dict[str, str]]]:
    """What is wrong with it, by what has to be answered."""
    inside = well[:-1] + (b"," if well != b"{}" else b"")
    return {
        "deep": (b'{"a":' * 70 + b"1" + b"}" * 70, {}),
        "very deep": (b"[" * 200_000, {}),
        "not a number": (inside + b'"x":NaN}', {}),
        "endless": (inside + b'"x":-Infinity}', {}),
        "huge number": (inside + b'"x":1e999}', {}),
        "digits": (inside + b'"x":' + b"9" * 5_000 + b"}", {}),
        "twice": (inside + b'"kind":"reject","kind":"approve"}', {}),
        "half a character": (inside + b'"x":"\\ud800"}', {}),
        "nul": (inside + b'"x":"\\u0000"}', {}),
        "control": (inside + b'"x":"\x01"}', {}),
        "not utf-8": (inside + b'"x":"\xff"}', {}),
        "bom": (b"\xef\xbb\xbf" + well, {}),
        "utf-16": (well.decode().encode("utf-16"), {}),
        "more behind": (well + b"{}", {}),
        "comment": (b"/**/" + well, {}),
        "text": (b'"approve"', {}),
        "list": (b"[" + well + b"]", {}),
        "gzip": (gzip.compress(well), {"content-encoding": "gzip"}),
        "said to be plain": (well, {"content-encoding": "identity"}),
        "large": (inside + b'"x":"' + b"x" * (1 << 20) + b'"}', {}),
        "said to be large": (well, {"content-length": str(1 << 40)}),
        "less than nothing": (well, {"content-length": "-1"}),
        "no number": (well, {"content-length": "1e3"}),
    }


async def test_no_odd_body_gets_through_on_any_route(two_workspaces: TwoWorkspaces) -> None:  # R36
    """On every route with a body, and by somebody who may: refused in our words, and nothing has changed."""
    wrong = []
    for operation, role, target in await access_matrix.allowed_exchanges(two_workspaces, ("POST", "PUT", "DELETE")):
        well = access_matrix.body_of(two_workspaces.document, operation, target)
        if well is None:
            continue
        for name, (body, more) in malformed_bodies(well).items():
            headers = {**await two_workspaces.headers(OURS, role), **JSON, **more}
            async with assert_nothing_changes(two_workspaces):
                got = await send_request(
                    two_workspaces.app, operation.method, fill_path(operation, target), headers, body
                )
            if operation.name == "POST /api/policy/check" and got.status == 200:
                assert not got.json()["valid"], "a policy that is none is what this route is asked about"
            elif got.status not in (400, 413, 415, 422) or not got.error_code or INNER.search(got.body):
                wrong.append(f"{operation.name}, {name}: {got.status} {got.text[:200]}")
    assert wrong == []


async def test_a_body_in_pieces_is_counted_as_it_comes(two_workspaces: TwoWorkspaces) -> None:
    """Without a length there is nothing to believe."""
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON, "transfer-encoding": "chunked"}
    scope, asked, sent = make_scope("POST", f"/api/approvals/{access_matrix.NOTHING}/decision", headers, b"x"), [], []

    async def receive() -> dict[str, Any]:
        asked.append(1)
        return {"type": "http.request", "body": b" " * 65_536, "more_body": True}

    async def send(message: Any) -> None:
        sent.append((len(asked), message))

    await two_workspaces.app(scope, receive, send)
    (needed, start), (_, body), (read, end) = sent
    assert (start["status"], body["more_body"], end["more_body"]) == (413, True, False)
    assert needed <= 17, "nothing is kept that is not needed"
    assert read <= needed + router.MAX_DRAINED // 65_536, "a rest without an end is not waited for"


async def test_a_body_that_comes_too_slowly_is_given_up(
    two_workspaces: TwoWorkspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "BODY_TIMEOUT", 0.02)
    headers = {**await two_workspaces.headers(OURS, "reviewer"), **JSON, "content-length": "1000"}
    scope, first, sent = make_scope("POST", f"/api/approvals/{access_matrix.NOTHING}/decision", headers, b"x"), [1], []

    async def receive() -> dict[str, Any]:
        if first:
            first.pop()
            return {"type": "http.request", "body": b"{", "more_body": True}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    await two_workspaces.app(scope, receive, send)
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "claim",
    [{"approved": True}, {"confirmed": True}, {"reviewer": "ada"}, {"by": "ada"}, {"actor": "ada"}, {"role": "admin"},
     {"workspace": THEIRS}, {"status": "approved"}, {"decided_by": "ada"}, {"__proto__": {"admin": True}}],
)  # fmt: skip
async def test_reviewer_and_status_are_never_body_fields(
    two_workspaces: TwoWorkspaces, claim: dict[str, object]
) -> None:  # R48
    target = await access_matrix.approval(two_workspaces, OURS, "")
    said = json.dumps({"kind": "approve", **target.more, **claim}).encode()
    call = json.dumps({"tool": "send", "args": {}, "run_id": "r", "call_id": "c", **claim}).encode()
    person, agent = [{**await two_workspaces.headers(OURS, role), **JSON} for role in ("reviewer", "agent")]
    async with assert_nothing_changes(two_workspaces):
        got = await send_request(two_workspaces.app, "POST", f"/api/approvals/{target.id}/decision", person, said)
        assert (got.status, got.error_code) == (422, "invalid_decision")
        got = await send_request(two_workspaces.app, "POST", "/api/calls", agent, call)
        assert (got.status, got.error_code) == (400, "invalid_request")


async def test_what_an_agent_claims_in_its_arguments_decides_nothing(two_workspaces: TwoWorkspaces) -> None:  # R48
    args = {"approved": True, "confirmed": True, "reviewer": "ada", "status": "approved"}
    call = {"tool": "send", "args": args, "run_id": "r", "call_id": "c", "effect": "write"}
    headers = {**await two_workspaces.headers(OURS, "agent"), **JSON}
    got = await send_request(two_workspaces.app, "POST", "/api/calls", headers, json.dumps(call).encode())
    assert got.json()["status"] == "pending"
