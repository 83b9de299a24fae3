"""What `interlock login` does with answers of a server that is damaged, hostile or none; no database here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.cli.commands.login import MAX_ANSWER, KeyProof, LoginRequest, log_in
from interlock.cli.user_folder import Login
from interlock.core.errors import Error, Misconfigured, StoreUnavailable
from tests.fault_proxy import foreign_server

KEY = "ilk_12345678_" + "x" * 43
ANSWER = {
    "name": "bob", "role": "reviewer", "workspace": "default", "id": KEY[:12], "key": KEY,
    "expires_at": "2030-01-01T00:00:00.000Z",
}  # fmt: skip


def response(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + body


async def log_in_at(answer: bytes) -> Login:
    """Every request gets this answer: of who signs in, and of the key that is made."""
    with foreign_server(answer) as url:
        request = LoginRequest(url=url, workspace="default", key_name="laptop", role="", expires="30d", insecure=False)
        return await log_in(request, KeyProof(KEY))


# R68
async def test_a_good_answer_becomes_a_login() -> None:
    made = await log_in_at(response(json.dumps(ANSWER).encode()))
    assert (made.key, made.user, made.role) == (KEY, "bob", "reviewer")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 5},
        {"role": "emperor"},
        {"key": 5},
        {"key": "x"},
        {"key": KEY.replace("12345678", "87654321")},
        {"id": None},
        {"expires_at": "soon"},
        {"expires_at": 5},
        {"workspace": ["default"]},
    ],
    ids=str,
)
async def test_an_answer_of_another_form_is_not_stored(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured, match=r"The answer of http://127.0.0.1:\d+ was not understood"):
        await log_in_at(response(json.dumps({**ANSWER, **wrong}).encode()))


async def test_a_key_that_may_have_been_made_is_said() -> None:
    with pytest.raises(Misconfigured, match="look for it there in Settings"):
        await log_in_at(response(json.dumps({**ANSWER, "key": 5}).encode()))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (response(b"{}"), Misconfigured, "was not understood"),
        (response(b"[]"), Misconfigured, "is not an Interlock server"),
        (response(b"[" * 100_000), Misconfigured, "is not an Interlock server"),
        (response(b'"' + b"x" * MAX_ANSWER), Misconfigured, "more than"),
        (response(b"x" * 50, "content-encoding: gzip"), StoreUnavailable, "DecodingError"),
        (response(b'{"error": "x", "message": 5}', status="400 Bad"), Misconfigured, "is not an Interlock server"),
        (
            response(b'{"error": "invalid_decision", "message": "x", "problems": [1]}', status="422 Bad"),
            Misconfigured,
            "was not understood",
        ),
    ],
    ids=["empty", "list", "deep", "large", "broken compression", "no message", "no problem"],
)
async def test_an_answer_of_another_server_is_an_error(answer: bytes, kind: type[Error], words: str) -> None:
    with pytest.raises(kind, match=words):
        await log_in_at(answer)
