"""Pins in the database: one for each tool, with its entry in the ledger; and what agents declare of their reads."""

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
from tests.places import Place
from tests.support import READ, START, Clock, call, faults, kinds, opened, pending

SEND = ToolSpec("send", "write", schema={"type": "object"}, secret=("token",), idempotent=True)
LOOK = ToolSpec("look", "read", schema={"type": "object"}, declared=True)


async def pinned_entries(parts: AppServices) -> list[tuple[str, str, dict[str, object]]]:
    entries = [entry async for page in parts.store.entries("default") for entry in page]
    return [(each.kind, each.actor, json.loads(each.data)) for each in entries if each.kind.startswith("tool_")]


# R57
async def test_a_pin_is_a_row_and_an_entry(parts: AppServices, clock: Clock) -> None:
    made = await parts.store.pin("default", [SEND], "bot", "ada")
    assert list(await parts.store.pins("default")) == list(made) == [Pin("send", SEND.definition, "bot", "ada", START)]
    assert made[0].spec == SEND
    assert await parts.store.spec(SEND.sha256) == SEND
    told = {"tool": "send", "effect": "write", "spec": SEND.sha256, "agent": "bot"}
    assert await pinned_entries(parts) == [("tool_pinned", "ada", told)]
    assert await parts.store.pins("other") == []
    assert await faults(parts) == []


async def test_a_tool_has_one_pin_and_the_last_one_counts(parts: AppServices, clock: Clock) -> None:
    await parts.store.pin("default", [SEND], "bot", "ada")
    clock.forward(1_000)
    again = await parts.store.pin("default", [SEND], "", "eve")
    assert again[0].author == "ada"  # nothing changed
    harmless = ToolSpec("send", "read")
    await parts.store.pin("default", [harmless], "", "eve")
    assert await parts.store.pins("default") == [Pin("send", harmless.definition, "", "eve", START + 1_000)]
    assert [kind for kind in await kinds(parts) if kind.startswith("tool_")] == ["tool_pinned", "tool_pinned"]


async def test_of_several_pins_all_are_made_or_none(parts: AppServices) -> None:
    await parts.store.pin("default", [ToolSpec("Bash", "write")], "", "ada")
    with pytest.raises(Conflict, match="Bash is pinned"):
        await parts.store.pin("default", [SEND, ToolSpec("bash", "read")], "", "ada")
    assert [pin.tool for pin in await parts.store.pins("default")] == ["Bash"]
    with pytest.raises(Conflict, match="Send is pinned"):
        await parts.store.pin("default", [ToolSpec("Send", "read"), SEND], "", "ada")
    both = await parts.store.pin("default", [SEND, ToolSpec("look", "read")], "bot", "ada")
    assert [pin.tool for pin in both] == ["send", "look"]
    assert [pin.tool for pin in await parts.store.pins("default")] == ["Bash", "look", "send"]


async def test_a_pin_too_many_is_refused(parts: AppServices, place: Place) -> None:
    place.forced(
        "insert into pins (workspace, tool, definition, agent, pinned_by, at) "
        f"with recursive n (i) as (select 1 union all select i + 1 from n where i < {MAX_PINS - 1}) "
        "select 'default', 'tool ' || i, ?, '', 'ada', 0 from n",
        SEND.definition,
    )
    with pytest.raises(Conflict, match="Nothing was pinned"):
        await parts.store.pin("default", [SEND, LOOK], "", "ada")
    await parts.store.pin("default", [SEND], "", "ada")
    await parts.store.pin("default", [ToolSpec("send", "read")], "", "ada")  # in the place of the other
    with pytest.raises(Conflict, match="at most 10,000 pins"):
        await parts.store.pin("default", [LOOK], "", "ada")
    await parts.store.unpin("default", "tool 7", "ada")
    assert len(await parts.store.pin("default", [LOOK], "", "ada")) == 1
    assert len(await parts.store.pins("default")) == MAX_PINS


async def test_a_pin_is_taken_back_on_record(parts: AppServices) -> None:
    await parts.store.pin("default", [SEND], "bot", "ada")
    with pytest.raises(NotFound):
        await parts.store.unpin("default", "Send", "eve")
    assert (await parts.store.unpin("default", "send", "eve")).tool == "send"
    with pytest.raises(NotFound):
        await parts.store.unpin("default", "send", "eve")
    assert await parts.store.pins("default") == []
    assert (await pinned_entries(parts))[-1] == ("tool_unpinned", "eve", {"tool": "send", "spec": SEND.sha256})
    assert await faults(parts) == []


async def test_how_an_agent_declares_a_read_is_noted_once(parts: AppServices, clock: Clock) -> None:
    parts.store.note_tool("default", LOOK, "bot", "k1")
    await pending(parts)  # goes with the next batch
    noted = FirstSeenTool("look", LOOK.sha256, "bot", START)
    assert noted in await parts.store.tools("default")
    assert await parts.store.spec(LOOK.sha256) == LOOK
    other = ToolSpec("look", "read", declared=True)
    parts.store.note_tool("default", other, "bot", "k1")  # within the same minute: not looked at
    clock.forward(MINUTE)
    parts.store.note_tool("default", LOOK, "bot", "k1")
    clock.forward(MINUTE)
    parts.store.note_tool("default", other, "bot", "k1")
    await pending(parts, 2)
    found = [tool for tool in await parts.store.tools("default") if tool.name == "look"]
    assert sorted(found) == sorted([noted, FirstSeenTool("look", other.sha256, "bot", START + 2 * MINUTE)])


async def flood(parts: AppServices, clock: Clock, key: str, many: int) -> None:
    """As many definitions of reads, by one key and many agents, over some minutes."""
    for number in range(many):
        agent = f"bot {number % 7}"
        parts.store.note_tool("default", ToolSpec(f"made up {number:04}", "read", declared=True), agent, key)
        if number % MAX_UNWRITTEN == MAX_UNWRITTEN - 1:
            clock.forward(MINUTE)
            await parts.store.flush("default")


# R57
async def test_a_key_that_makes_up_reads_hides_no_tool_of_another(place: Place, clock: Clock) -> None:
    async with opened(place, clock) as parts:
        await flood(parts, clock, "k1", MAX_DECLARED + 200)
        assert await parts.store.keys_over_limit("default") == ["k1"]
        parts.store.note_tool("default", LOOK, "honest", "k2")
        parts.store.note_tool("acme", LOOK, "honest", "k1")
        await parts.store.flush("default")
        seen = await parts.store.tools("default")
        assert LOOK.sha256 in {tool.spec_sha256 for tool in seen}
        assert sum(tool.name.startswith("made up") for tool in seen) == MAX_DECLARED
        assert LOOK.sha256 in {tool.spec_sha256 for tool in await parts.store.tools("acme")}
        assert await parts.store.keys_over_limit("acme") == []
    async with opened(place, clock) as parts:  # a process that does not remember
        await flood(parts, clock, "k1", 150)
        more = ToolSpec("one more", "read", declared=True)
        parts.store.note_tool("default", more, "bot", "k1")
        await parts.store.flush("default")
        assert "one more" not in {tool.name for tool in await parts.store.tools("default")}
        assert await parts.store.spec(more.sha256) is None  # nor is its definition kept


# R57
async def test_a_flood_between_two_batches_is_caught_up_with(parts: AppServices) -> None:
    for number in range(MAX_UNWRITTEN + 5):
        parts.store.note_tool("default", ToolSpec(f"made up {number}", "read", declared=True), "bot", "k1")
    parts.store.note_tool("default", LOOK, "bot", "k2")
    await parts.store.flush("default")
    assert len([tool for tool in await parts.store.tools("default") if tool.spec_sha256]) == MAX_UNWRITTEN + 1
    for number in range(MAX_UNWRITTEN + 5):  # in the same minute: those that found no room are looked at now
        parts.store.note_tool("default", ToolSpec(f"made up {number}", "read", declared=True), "bot", "k1")
    await parts.store.flush("default")
    assert len([tool for tool in await parts.store.tools("default") if tool.spec_sha256]) == MAX_UNWRITTEN + 6


async def test_a_list_that_is_cut_has_the_newest_of_every_key(parts: AppServices, place: Place) -> None:
    for key, many in (("k1", 4), ("k2", 1), ("", 1)):
        for number in range(many):
            values = (f"{key or 'z'} {number}", "sha", "bot", number, key)
            place.forced("insert into tools values ('default', ?, ?, ?, ?, ?)", *values)
    found = await parts.store._database.fetch("tools", "default", 4)
    assert sorted(row[0] for row in found) == ["k1 2", "k1 3", "k2 0", "z 0"]


async def test_tools_of_calls_that_are_kept_count_for_their_key(parts: AppServices, place: Place) -> None:
    caller = Caller(owner="key:k1", owners=frozenset({"key:k1"}), agents=("bot",), credential="k1")
    await pending(parts, 1, agent="bot", caller=caller)
    await pending(parts, 2, agent="ours")
    assert sorted(place.sql("select agent, key_id from tools")) == [("bot", "k1"), ("ours", "")]


async def test_reads_of_made_up_tools_are_counted_under_one_name(parts: AppServices, clock: Clock) -> None:
    for number in range(MAX_NAMES + 50):
        parts.store.count_read("default", f"made up {number:03}")
        parts.store.count_read("default", f"made up {number % MAX_NAMES:03}")
    parts.store.count_read("acme", "look")
    await parts.store.flush("default")
    parts.store.count_read("default", "still the same minute")
    clock.forward(MINUTE)
    parts.store.count_read("default", "look")
    await parts.store.flush("default")
    counted = {each.tool: each.calls for each in await parts.store.tool_usage("default", 0)}
    assert len(counted) == MAX_NAMES + 2
    assert (counted["(other)"], counted["look"]) == (51, 1)
    assert sum(counted.values()) == 2 * (MAX_NAMES + 50) + 2
    assert [each.tool for each in await parts.store.tool_usage("acme", 0)] == ["look"]
    assert "(other)" not in {tool.name for tool in await parts.store.tools("default")}


async def test_a_definition_that_is_too_long_is_not_noted(parts: AppServices) -> None:
    parts.store.note_tool(
        "default", ToolSpec("long", "read", schema={"title": "x" * 70_000}, declared=True), "bot", "k1"
    )
    await pending(parts)
    assert "long" not in {tool.name for tool in await parts.store.tools("default")}


async def test_calls_of_all_tools_are_counted_by_agent(parts: AppServices, clock: Clock) -> None:
    await pending(parts, 1, agent="old")
    clock.forward(3 * MINUTE)
    since = clock()
    await pending(parts, 2, agent="bot")
    clock.forward(1_000)
    await pending(parts, 3, agent="bot")
    await parts.gate.check(call(4, tool="read_file"), READ)
    await pending(parts, 5, agent="other")
    used = await parts.store.tool_usage("default", since)
    minute = clock() // MINUTE * MINUTE
    assert sorted(used) == [
        AgentToolUsage("delete_file", "bot", 2, since + 1_000),
        AgentToolUsage("delete_file", "other", 1, since + 1_000),
        AgentToolUsage("read_file", "", 1, minute),
    ]
    assert await parts.store.tool_usage("default", clock() + MINUTE) == []


# R49
async def test_pins_with_unusual_names_are_stated_and_verified_page_by_page(place: Place, clock: Clock) -> None:
    """Entries spell such names otherwise than rows, and in another order."""
    async with opened(place, clock) as parts:
        await parts.store.pin("default", [SEND], "", "ada")
        await parts.store.unpin("default", "send", "ada")  # a ledger of an earlier version, with pins of its own
        for number in range(1_100):
            values = (f"a\\{number:04}" if number % 3 else f"a\u200b{number:04}", SEND.definition)
            place.forced("insert into pins values ('default', ?, ?, '', 'ada', 0)", *values)
        place.sql("delete from marks where name = 'stated'")
        assert await parts.store.backfill_statements() == ["default"]
        assert (await audit.verify(parts.store, "default")).violations == ()
        place.forced("update pins set agent = 'mallory' where tool = ?", "a\\0901")
        place.forced("delete from pins where tool = ?", "a\u200b0900")
        told = (await audit.verify(parts.store, "default")).violations
        assert sorted((fault.row, fault.field) for fault in told) == [("a\\\\0901", "agent"), ("a\\u{200b}0900", "")]
