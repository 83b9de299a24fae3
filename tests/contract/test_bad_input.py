"""Invalid input and failures: one clear error each, nothing run, nothing lost."""

from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import parse_json
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, read_decision
from interlock.core.errors import InvalidDecision, InvalidRequest, Misconfigured, StoreUnavailable
from interlock.core.outcome import Refused, Waiting
from tests.databases import Database
from tests.support import (
    BOB,
    WRITE,
    Clock,
    call,
    event_kinds,
    ledger_violations,
    open_services,
    propose_pending,
    status,
)


def nested_args(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return {"a": value}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"x": float("nan")}, "NaN"),
        ({"x": float("inf")}, "infinite"),
        ({"x": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        ({"x": "a\x00b"}, "NUL"),
        ({"x": 10**41}, "digits"),
        (nested_args(65), "64 levels"),
        ({"x": "a" * 1024 * 1024}, "bytes"),
        ({1: "x"}, "names are texts"),
        ({"x": object()}, "no JSON form"),
        ([1], "object"),
        (None, "object"),
    ],
)
async def test_arguments_that_two_parsers_could_read_differently_are_refused(
    services: AppServices, args: Any, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        await services.gate.check(propose("delete_file", args, "run", "call"), WRITE)
    assert await event_kinds(services) == []


async def test_64_levels_are_accepted(services: AppServices) -> None:
    assert isinstance(await services.gate.check(propose("delete_file", nested_args(64), "run", "call"), WRITE), Waiting)


@pytest.mark.parametrize(
    "body",
    [
        '{"a": NaN}',
        '{"a": 1e400}',
        '{"to": "safe", "to": "evil"}',
        r'{"a": "\ud800"}',
        r'{"a": "\u0000"}',
        '{"a": ' + "[" * 64 + "]" * 64 + "}",
        '{"a": "' + "x" * 1024 * 1024 + '"}',
        "{'a': 1}",
        "",
        b"\xff\xfe",
        "{" + '"a":' + "9" * 41 + "}",
    ],
)
def test_json_that_is_not_strict_is_refused_before_anything_looks_at_it(body: Any) -> None:
    with pytest.raises(InvalidRequest):
        parse_json(body)


@pytest.mark.parametrize(
    "body",
    [
        "true",
        True,
        1,
        None,
        {},
        {"kind": True},
        {"kind": "yes"},
        {"kind": "approve", "approved": True},
        {"kind": "approve", "args": {"amount": 1}},
        {"kind": "edit"},
        {"kind": "edit", "args": "[]"},
        {"kind": "edit", "args": {"x": float("nan")}},
        {"kind": "respond"},
        {"kind": "approve", "comment": "x" * 501},
        {"kind": "approve", "args_sha256": 5},
        {"kind": "approve", "acknowledged": "all"},
        {"kind": "approve", "acknowledged": [1]},
        {"kind": "reject", "reason": "\x00"},
    ],
)
def test_what_is_not_a_decision_decides_nothing(body: Any) -> None:
    with pytest.raises(InvalidDecision):
        read_decision(body)


def test_decisions_are_read_as_they_are_written() -> None:
    assert read_decision({"kind": "approve", "args_sha256": "ab"}) == Approve(Acknowledgement("ab"))
    assert read_decision({"kind": "reject", "reason": "no"}) == Reject("no")
    assert read_decision({"kind": "edit", "args": {"b": 1, "a": 2}}) == Edit(b'{"a":2,"b":1}')


async def test_an_unknown_tool_asks(services: AppServices) -> None:
    assert isinstance(await services.gate.check(call(1, tool="never_heard_of"), ToolSpec("never_heard_of")), Waiting)


async def test_a_model_that_approves_itself_is_asked_about_all_the_same(services: AppServices) -> None:  # R34
    args = {"path": "/", "approved": True, "confirmed": True}
    assert isinstance(await services.gate.check(call(1, args), WRITE), Waiting)


@pytest.mark.parametrize(("then", "outcome"), [("allow", Waiting), ("ask", Waiting), ("deny", Refused)])
async def test_a_condition_that_raises_never_allows(database: Database, clock: Clock, then: str, outcome: type) -> None:
    rules = f"version: 1\nrules:\n  - {{name: odd, when: args.missing > 1, then: {then}}}\n"
    async with open_services(database, clock, rules) as services:
        assert isinstance(await services.gate.check(call(), WRITE), outcome)


async def test_a_policy_with_a_typo_does_not_load_and_the_old_one_stays(services: AppServices) -> None:
    before = services.gate.policy
    with pytest.raises(Misconfigured, match=r'line 3.*did you mean "tools"'):
        await services.put_policy("default", "version: 1\nrules:\n  - {name: a, tool: [x], then: ask}\n", "ada", {})
    assert services.gate.policy is before
    assert await services.store.policy("default") is None


async def test_a_closed_store_says_so(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
    with pytest.raises(StoreUnavailable, match="closed"):
        await services.gate.start("default", approval_id, "r")


async def test_words_that_no_database_can_keep_are_refused(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    with pytest.raises(InvalidRequest, match="surrogate"):
        await services.inbox.decide("default", approval_id, Reject("\ud800"), BOB)
    assert await status(services, approval_id) == "pending"
    assert await ledger_violations(services) == []
