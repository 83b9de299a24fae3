"""Bodies made to be slow: each is answered, by a refusal that says why or by a card that people can look at.

How long each takes is measured against a real server: docs/operations.md#limits.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.conftest import ClientFactory
from tests.server.test_calls import CALL, CallJson, decide

MEBIBYTE = 1024 * 1024
SIZE_LIMIT = 300  # bytes for what else is in a body
DEEP = '{"a":' * 63 + "1" + "}" * 63


def with_args(args: str) -> str:
    return f'{{"tool":"t","run_id":"r","call_id":"c","args":{args}}}'


def body(args: Any, **more: Any) -> str:
    return json.dumps({**CALL, "args": args, **more}, ensure_ascii=False)


def nested_doubling(times: int) -> dict[str, Any]:
    twice = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(times)}
    return {"$defs": {**twice, f"a{times}": {"type": "integer"}}, "$ref": "#/$defs/a0"}


SHOWN = {
    "a long text": body({"a": "x" * (MEBIBYTE - SIZE_LIMIT)}),
    "reversed text": body({"a": "\u202eabc" * (MEBIBYTE // 6 - SIZE_LIMIT)}),
    "invisible text": body({"a": "\u200b" * (MEBIBYTE // 3 - SIZE_LIMIT)}),
    "letters of two scripts": body({"a": "p\u0430y " * (MEBIBYTE // 5 - SIZE_LIMIT)}),
    "many odd texts": body({"a": ["\u202e"] * 9_000}),
    "many odd names": body({f"\u202e{number}": 1 for number in range(9_000)}),
    "as deep as can be": with_args(DEEP),
}
REFUSED = {
    "wide": (body({"a": [1] * 300_000}), "more than 10,000 values"),
    "secrets": (body({"a": ["s"] * 100_000}, secret=["/a/*"]), "more than 10,000 values"),
    "open brackets": ("[" * MEBIBYTE, "nested deeper"),
    "a long number": (with_args('{"a":%s}' % ("9" * (MEBIBYTE - SIZE_LIMIT))), "more than 40 digits"),
    "the same name": (with_args('{"a":1' + ',"a":1' * 100_000 + "}"), "appears twice"),
    "halves of characters": (with_args('{"a":"%s"}' % ("\\ud800" * 100_000)), "surrogate"),
    "a schema that doubles": (body({"a": 1}, schema=nested_doubling(30)), "too much work"),
    "a pattern that looks ahead": (
        body({"a": "abcd" * 200_000}, schema={"properties": {"a": {"pattern": "(?=a)a.*b.*c.*d.*e$"}}}),
        "too much work",
    ),
    "a large schema": (
        body({}, schema={"properties": {f"k{n}": {"pattern": f"^a{n}$"} for n in range(20_000)}}),
        "at most 131,072 bytes",
    ),
    "a million mistakes": (body({}, agent_path=[1] * 300_000), "/agent_path/0: Input should be a valid string"),
    "many fields": (json.dumps({f"f{number}": 1 for number in range(70_000)}), "Field required"),
    "a long description": (body({}, description="{a!r}" * 100_000), "at most 20000 characters"),
}


@pytest.mark.parametrize("name", SHOWN)
async def test_a_large_call_is_taken_and_shown_whole(client: ClientFactory, keys: dict[str, str], name: str) -> None:
    told = await post(client, keys, SHOWN[name])
    assert told["status"] == "pending", told
    answer = await client(keys["reviewer"]).get(f"/api/approvals/{told['approval_id']}")
    assert answer.status_code == 200
    assert answer.json()["args"] == json.loads(SHOWN[name])["args"]
    assert (await decide(client(keys["reviewer"]), told, "reject")).status_code == 200


@pytest.mark.parametrize("name", REFUSED)
async def test_what_nobody_could_look_at_is_refused_with_the_reason(
    client: ClientFactory, keys: dict[str, str], name: str
) -> None:
    content, reason = REFUSED[name]
    told = await post(client, keys, content)
    assert told["error"] == "invalid_request"
    assert reason in told["message"]


async def test_an_edit_is_bounded_as_the_call_is(client: ClientFactory, keys: dict[str, str]) -> None:
    told = await post(client, keys, body({"a": 1}))
    answer = await decide(client(keys["reviewer"]), told, "edit", args={"a": [1] * 20_000})
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_decision")
    assert "more than 10,000 values" in answer.json()["message"]


async def post(client: ClientFactory, keys: dict[str, str], content: str) -> CallJson:
    headers = {"content-type": "application/json"}
    answer = await client(keys["agent"]).post("/api/calls", content=content.encode(), headers=headers)
    assert answer.status_code in (200, 400), answer.text[:500]
    told: CallJson = answer.json()
    return told
