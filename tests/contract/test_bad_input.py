"""Bad input and bad luck: one clear error each, nothing run, nothing lost."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import parse
from interlock.core.decision import Approve, Edit, Reject, Seen, read_decision
from interlock.core.errors import InvalidDecision, InvalidRequest, Misconfigured, StoreUnavailable
from interlock.core.outcome import Refused, Waiting
from interlock.wiring import Parts
from tests.support import BOB, OK, WRITE, Clock, approve, call, faults, kinds, opened, pending, status


def nested(depth: int) -> Any:
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
        (nested(65), "64 levels"),
        ({"x": "a" * 1024 * 1024}, "bytes"),
        ({1: "x"}, "names are texts"),
        ({"x": object()}, "no JSON form"),
        ([1], "object"),
        (None, "object"),
    ],
)
async def test_arguments_that_two_parsers_could_read_differently_are_refused(
    parts: Parts, args: Any, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        await parts.gate.check(propose("delete_file", args, "run", "call"), WRITE)
    assert await kinds(parts) == []


async def test_64_levels_are_accepted(parts: Parts) -> None:
    assert isinstance(await parts.gate.check(propose("delete_file", nested(64), "run", "call"), WRITE), Waiting)


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
        parse(body)


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
    assert read_decision({"kind": "approve", "args_sha256": "ab"}) == Approve(Seen("ab"))
    assert read_decision({"kind": "reject", "reason": "no"}) == Reject("no")
    assert read_decision({"kind": "edit", "args": {"b": 1, "a": 2}}) == Edit(b'{"a":2,"b":1}')


async def test_an_unknown_tool_asks(parts: Parts) -> None:
    assert isinstance(await parts.gate.check(call(1, tool="never_heard_of"), ToolSpec("never_heard_of")), Waiting)


async def test_a_model_that_approves_itself_is_asked_about_all_the_same(parts: Parts) -> None:  # R34
    args = {"path": "/", "approved": True, "confirmed": True}
    assert isinstance(await parts.gate.check(call(1, args), WRITE), Waiting)


@pytest.mark.parametrize(("then", "outcome"), [("allow", Waiting), ("ask", Waiting), ("deny", Refused)])
async def test_a_condition_that_raises_never_allows(tmp_path: Path, clock: Clock, then: str, outcome: type) -> None:
    rules = f"version: 1\nrules:\n  - {{name: odd, when: args.missing > 1, then: {then}}}\n"
    async with opened(tmp_path / "a.db", clock, rules) as parts:
        assert isinstance(await parts.gate.check(call(), WRITE), outcome)


async def test_a_policy_with_a_typo_does_not_load_and_the_old_one_stays(parts: Parts) -> None:
    before = parts.gate.policy
    with pytest.raises(Misconfigured, match=r'line 3.*did you mean "tools"'):
        await parts.put_policy("default", "version: 1\nrules:\n  - {name: a, tool: [x], then: ask}\n", "ada", {})
    assert parts.gate.policy is before
    assert await parts.store.policy("default") is None


def read_only(parts: Parts, path: Path) -> Callable[[], Any]:
    connection = parts.store._database._connection  # type: ignore[attr-defined]
    connection.execute("pragma query_only = on")
    return lambda: connection.execute("pragma query_only = off")


def full(parts: Parts, path: Path) -> Callable[[], Any]:
    connection = parts.store._database._connection  # type: ignore[attr-defined]
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    return lambda: connection.execute("pragma max_page_count = 1000000")


def gone(parts: Parts, path: Path) -> Callable[[], Any]:
    os.rename(path, path.with_name("away"))
    return lambda: os.rename(path.with_name("away"), path)


@pytest.mark.parametrize(("trouble", "words"), [(read_only, "read-only"), (full, "full"), (gone, "gone")])
async def test_a_database_in_trouble_runs_nothing_and_loses_nothing(
    parts: Parts, tmp_path: Path, trouble: Callable[[Parts, Path], Callable[[], Any]], words: str
) -> None:
    approval_id = await pending(parts)
    await approve(parts, approval_id)
    mend = trouble(parts, tmp_path / "interlock.db")
    large = {"path": "x" * 200_000}
    with pytest.raises(StoreUnavailable, match=words):
        await parts.gate.check(call(2, large), WRITE)
    if trouble is not full:  # a small change may still fit
        with pytest.raises(StoreUnavailable, match=words):
            await parts.gate.start("default", approval_id, "r")
    mend()
    execution = await parts.gate.start("default", approval_id, "r")
    await parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await status(parts, approval_id) == "succeeded"
    await pending(parts, 2, args=large)
    assert await faults(parts) == []


async def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "a.db").write_text("hello, I am a text file and certainly not a database\n" * 10)
    with pytest.raises(StoreUnavailable, match="not a database"):
        async with opened(tmp_path / "a.db", clock):
            pass
    assert "hello" in (tmp_path / "a.db").read_text()


async def test_a_closed_store_says_so(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "a.db", clock) as parts:
        approval_id = await pending(parts)
    with pytest.raises(StoreUnavailable, match="closed"):
        await parts.gate.start("default", approval_id, "r")


async def test_words_that_no_database_can_keep_are_refused(parts: Parts) -> None:
    approval_id = await pending(parts)
    with pytest.raises(InvalidRequest, match="surrogate"):
        await parts.inbox.decide("default", approval_id, Reject("\ud800"), BOB)
    assert await status(parts, approval_id) == "pending"
    assert await faults(parts) == []
