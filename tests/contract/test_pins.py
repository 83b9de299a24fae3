"""Pins in the database: one for each tool, with a ledger entry; and declarations of reads."""

from __future__ import annotations

import json

import pytest

from interlock.app import audit
from interlock.app.bootstrap import AppServices
from interlock.core.call import Caller, ToolSpec
from interlock.core.errors import Conflict, NotFound
from interlock.core.pins import MAX_DECLARED, MAX_PINS, Pin
from interlock.core.ports import AgentToolUsage, FirstSeenTool
from interlock.storage.engine.read_counts import MAX_NAMES, MAX_UNWRITTEN
from interlock.storage.tables.approvals import MINUTE
from tests.databases import Database
from tests.support import READ, START, Clock, call, event_kinds, ledger_violations, open_services, propose_pending

SEND = ToolSpec("send", "write", schema={"type": "object"}, secret=("token",), idempotent=True)
LOOK = ToolSpec("look", "read", schema={"type": "object"}, declared=True)


async def pin_events(services: AppServices) -> list[tuple[str, str, dict[str, object]]]:
    entries = [entry async for page in services.store.entries("default") for entry in page]
    return [(each.kind, each.actor, json.loads(each.data)) for each in entries if each.kind.startswith("tool_")]


# R57
async def test_a_pin_is_a_row_and_an_entry(services: AppServices, clock: Clock) -> None:
    made = await services.store.pin("default", [SEND], "bot", "ada")
    assert (
        list(await services.store.pins("default")) == list(made) == [Pin("send", SEND.definition, "bot", "ada", START)]
    )
    assert made[0].spec == SEND
    assert await services.store.spec(SEND.sha256) == SEND
    result = {"tool": "send", "effect": "write", "spec": SEND.sha256, "agent": "bot"}
    assert await pin_events(services) == [("tool_pinned", "ada", result)]
    assert await services.store.pins("other") == []
    assert await ledger_violations(services) == []


async def test_a_tool_has_one_pin_and_the_last_one_counts(services: AppServices, clock: Clock) -> None:
    await services.store.pin("default", [SEND], "bot", "ada")
    clock.advance(1_000)
    again = await services.store.pin("default", [SEND], "", "eve")
    assert again[0].author == "ada"  # nothing changed
    harmless = ToolSpec("send", "read")
    await services.store.pin("default", [harmless], "", "eve")
    assert await services.store.pins("default") == [Pin("send", harmless.definition, "", "eve", START + 1_000)]
    assert [kind for kind in await event_kinds(services) if kind.startswith("tool_")] == ["tool_pinned", "tool_pinned"]


async def test_of_several_pins_all_are_made_or_none(services: AppServices) -> None:
    await services.store.pin("default", [ToolSpec("Bash", "write")], "", "ada")
    with pytest.raises(Conflict, match="Bash is pinned"):
        await services.store.pin("default", [SEND, ToolSpec("bash", "read")], "", "ada")
    assert [pin.tool for pin in await services.store.pins("default")] == ["Bash"]
    with pytest.raises(Conflict, match="Send is pinned"):
        await services.store.pin("default", [ToolSpec("Send", "read"), SEND], "", "ada")
    both = await services.store.pin("default", [SEND, ToolSpec("look", "read")], "bot", "ada")
    assert [pin.tool for pin in both] == ["send", "look"]
    assert [pin.tool for pin in await services.store.pins("default")] == ["Bash", "look", "send"]


async def test_a_pin_too_many_is_refused(services: AppServices, database: Database) -> None:
    database.sql_without_triggers(
        "insert into pins (workspace, tool, definition, agent, pinned_by, at) "
        f"with recursive n (i) as (select 1 union all select i + 1 from n where i < {MAX_PINS - 1}) "
        "select 'default', 'tool ' || i, ?, '', 'ada', 0 from n",
        SEND.definition,
    )
    with pytest.raises(Conflict, match="Nothing was pinned"):
        await services.store.pin("default", [SEND, LOOK], "", "ada")
    await services.store.pin("default", [SEND], "", "ada")
    await services.store.pin("default", [ToolSpec("send", "read")], "", "ada")  # in the place of the other
    with pytest.raises(Conflict, match="at most 10,000 pins"):
        await services.store.pin("default", [LOOK], "", "ada")
    await services.store.unpin("default", "tool 7", "ada")
    assert len(await services.store.pin("default", [LOOK], "", "ada")) == 1
    assert len(await services.store.pins("default")) == MAX_PINS


async def test_a_pin_is_taken_back_on_record(services: AppServices) -> None:
    await services.store.pin("default", [SEND], "bot", "ada")
    with pytest.raises(NotFound):
        await services.store.unpin("default", "Send", "eve")
    assert (await services.store.unpin("default", "send", "eve")).tool == "send"
    with pytest.raises(NotFound):
        await services.store.unpin("default", "send", "eve")
    assert await services.store.pins("default") == []
    assert (await pin_events(services))[-1] == ("tool_unpinned", "eve", {"tool": "send", "spec": SEND.sha256})
    assert await ledger_violations(services) == []


async def test_how_an_agent_declares_a_read_is_noted_once(services: AppServices, clock: Clock) -> None:
    services.store.note_tool("default", LOOK, "bot", "k1")
    await propose_pending(services)  # goes with the next batch
    noted = FirstSeenTool("look", LOOK.sha256, "bot", START)
    assert noted in await services.store.tools("default")
    assert await services.store.spec(LOOK.sha256) == LOOK
    other = ToolSpec("look", "read", declared=True)
    services.store.note_tool("default", other, "bot", "k1")  # within the same minute: not looked at
    clock.advance(MINUTE)
    services.store.note_tool("default", LOOK, "bot", "k1")
    clock.advance(MINUTE)
    services.store.note_tool("default", other, "bot", "k1")
    await propose_pending(services, 2)
    found = [tool for tool in await services.store.tools("default") if tool.name == "look"]
    assert sorted(found) == sorted([noted, FirstSeenTool("look", other.sha256, "bot", START + 2 * MINUTE)])


async def declare_many_reads(services: AppServices, clock: Clock, key: str, many: int) -> None:
    """As many definitions of reads, by one key and many agents, over some minutes."""
    for number in range(many):
        agent = f"bot {number % 7}"
        services.store.note_tool("default", ToolSpec(f"made up {number:04}", "read", declared=True), agent, key)
        if number % MAX_UNWRITTEN == MAX_UNWRITTEN - 1:
            clock.advance(MINUTE)
            await services.store.flush("default")


# R57
async def test_a_key_that_makes_up_reads_hides_no_tool_of_another(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        await declare_many_reads(services, clock, "k1", MAX_DECLARED + 200)
        assert await services.store.keys_over_limit("default") == ["k1"]
        services.store.note_tool("default", LOOK, "honest", "k2")
        services.store.note_tool("acme", LOOK, "honest", "k1")
        await services.store.flush("default")
        seen = await services.store.tools("default")
        assert LOOK.sha256 in {tool.spec_sha256 for tool in seen}
        assert sum(tool.name.startswith("made up") for tool in seen) == MAX_DECLARED
        assert LOOK.sha256 in {tool.spec_sha256 for tool in await services.store.tools("acme")}
        assert await services.store.keys_over_limit("acme") == []
    async with open_services(database, clock) as services:  # a process that does not remember
        await declare_many_reads(services, clock, "k1", 150)
        more = ToolSpec("one more", "read", declared=True)
        services.store.note_tool("default", more, "bot", "k1")
        await services.store.flush("default")
        assert "one more" not in {tool.name for tool in await services.store.tools("default")}
        assert await services.store.spec(more.sha256) is None  # nor is its definition kept


# R57
async def test_a_flood_between_two_batches_is_caught_up_with(services: AppServices) -> None:
    for number in range(MAX_UNWRITTEN + 5):
        services.store.note_tool("default", ToolSpec(f"made up {number}", "read", declared=True), "bot", "k1")
    services.store.note_tool("default", LOOK, "bot", "k2")
    await services.store.flush("default")
    assert len([tool for tool in await services.store.tools("default") if tool.spec_sha256]) == MAX_UNWRITTEN + 1
    for number in range(MAX_UNWRITTEN + 5):  # in the same minute: those that found no room are looked at now
        services.store.note_tool("default", ToolSpec(f"made up {number}", "read", declared=True), "bot", "k1")
    await services.store.flush("default")
    assert len([tool for tool in await services.store.tools("default") if tool.spec_sha256]) == MAX_UNWRITTEN + 6


async def test_a_list_that_is_cut_has_the_newest_of_every_key(services: AppServices, database: Database) -> None:
    for key, many in (("k1", 4), ("k2", 1), ("", 1)):
        for number in range(many):
            values = (f"{key or 'z'} {number}", "sha", "bot", number, key)
            database.sql_without_triggers("insert into tools values ('default', ?, ?, ?, ?, ?)", *values)
    found = await services.store._database.fetch("tools", "default", 4)
    assert sorted(row[0] for row in found) == ["k1 2", "k1 3", "k2 0", "z 0"]


async def test_tools_of_calls_that_are_kept_count_for_their_key(services: AppServices, database: Database) -> None:
    caller = Caller(owner="key:k1", owners=frozenset({"key:k1"}), agents=("bot",), credential="k1")
    await propose_pending(services, 1, agent="bot", caller=caller)
    await propose_pending(services, 2, agent="ours")
    assert sorted(database.sql("select agent, key_id from tools")) == [("bot", "k1"), ("ours", "")]


async def test_reads_of_made_up_tools_are_counted_under_one_name(services: AppServices, clock: Clock) -> None:
    for number in range(MAX_NAMES + 50):
        services.store.count_read("default", f"made up {number:03}")
        services.store.count_read("default", f"made up {number % MAX_NAMES:03}")
    services.store.count_read("acme", "look")
    await services.store.flush("default")
    services.store.count_read("default", "still the same minute")
    clock.advance(MINUTE)
    services.store.count_read("default", "look")
    await services.store.flush("default")
    counted = {each.tool: each.calls for each in await services.store.tool_usage("default", 0)}
    assert len(counted) == MAX_NAMES + 2
    assert (counted["(other)"], counted["look"]) == (51, 1)
    assert sum(counted.values()) == 2 * (MAX_NAMES + 50) + 2
    assert [each.tool for each in await services.store.tool_usage("acme", 0)] == ["look"]
    assert "(other)" not in {tool.name for tool in await services.store.tools("default")}


async def test_a_definition_that_is_too_long_is_not_noted(services: AppServices) -> None:
    services.store.note_tool(
        "default", ToolSpec("long", "read", schema={"title": "x" * 70_000}, declared=True), "bot", "k1"
    )
    await propose_pending(services)
    assert "long" not in {tool.name for tool in await services.store.tools("default")}


async def test_calls_of_all_tools_are_counted_by_agent(services: AppServices, clock: Clock) -> None:
    await propose_pending(services, 1, agent="old")
    clock.advance(3 * MINUTE)
    since = clock()
    await propose_pending(services, 2, agent="bot")
    clock.advance(1_000)
    await propose_pending(services, 3, agent="bot")
    await services.gate.check(call(4, tool="read_file"), READ)
    await propose_pending(services, 5, agent="other")
    used = await services.store.tool_usage("default", since)
    minute = clock() // MINUTE * MINUTE
    assert sorted(used) == [
        AgentToolUsage("delete_file", "bot", 2, since + 1_000),
        AgentToolUsage("delete_file", "other", 1, since + 1_000),
        AgentToolUsage("read_file", "", 1, minute),
    ]
    assert await services.store.tool_usage("default", clock() + MINUTE) == []


# R49
async def test_pins_with_unusual_names_are_stated_and_verified_page_by_page(database: Database, clock: Clock) -> None:
    """Entries spell such names otherwise than rows, and in another order."""
    async with open_services(database, clock) as services:
        await services.store.pin("default", [SEND], "", "ada")
        await services.store.unpin("default", "send", "ada")  # a ledger of an earlier version, with pins of its own
        for number in range(1_100):
            values = (f"a\\{number:04}" if number % 3 else f"a\u200b{number:04}", SEND.definition)
            database.sql_without_triggers("insert into pins values ('default', ?, ?, '', 'ada', 0)", *values)
        database.sql("delete from marks where name = 'stated'")
        assert await services.store.backfill_statements() == ["default"]
        assert (await audit.verify(services.store, "default")).violations == ()
        database.sql_without_triggers("update pins set agent = 'mallory' where tool = ?", "a\\0901")
        database.sql_without_triggers("delete from pins where tool = ?", "a\u200b0900")
        result = (await audit.verify(services.store, "default")).violations
        assert sorted((fault.row, fault.field) for fault in result) == [("a\\\\0901", "agent"), ("a\\u{200b}0900", "")]
