"""The OKR tool pack on both databases: objectives, key results and previews."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.chat.item_tools import read_history
from interlock.chat.tool import Tool, ToolContext, ToolInvocation
from interlock.chat.tools import okr
from interlock.core.errors import CallWouldFail, ToolFailed
from interlock.core.outcome import Proceed, Waiting
from interlock.demo.content import fill_content
from interlock.runtime.json_schema import validate
from interlock.storage.tables.tool_items import SqlToolItemStore
from tests.support import call

NOW = "2027-Q1"  # where the tests' clock stands


@pytest.fixture
async def items(services: AppServices) -> SqlToolItemStore:
    items = services.store.tool_items("default")
    await fill_content(items)
    return items


@pytest.fixture
def tools(items: SqlToolItemStore) -> Mapping[str, Tool]:
    kit = ToolContext("default", items)
    return {tool.name: tool for tool in (*okr.read_tools(kit), *okr.write_tools(kit))}


async def run_tool(tool: Tool, key: str = "", **args: object) -> Any:
    return await tool.run(ToolInvocation(args, key))


async def preview_lines(tool: Tool, **args: object) -> list[str]:
    assert tool.spec.preview is not None
    made = tool.spec.preview(args)
    assert inspect.isawaitable(made)
    return str(await made).splitlines()


async def list_objectives(tools: Mapping[str, Tool], **args: object) -> dict[str, Any]:
    return {each["id"]: each for each in (await run_tool(tools["okr_list_objectives"], **args))["objectives"]}


def test_the_tools_are_those_of_the_contract(tools: Mapping[str, Tool]) -> None:  # R7
    assert set(tools) == {
        *("okr_list_objectives", "okr_create_objective", "okr_update_objective", "okr_delete_objective"),
        *("okr_create_key_result", "okr_update_key_result", "okr_delete_key_result"),
    }


async def test_objectives_are_listed_with_how_far_they_are(tools: Mapping[str, Tool]) -> None:  # R7
    every = await list_objectives(tools)
    assert list(every) == ["O-1", "O-2", "O-3", "O-4"]
    assert every["O-2"]["key_results"][0] == {
        "id": "KR-3",
        "title": "First booking on day one",
        "unit": "%",
        "current": 52,
        "target": 70,
        "percent": 74,
    }
    assert every["O-4"]["key_results"][0]["percent"] == 100, "a target that was passed is reached"
    assert every["O-1"]["key_results"][0]["percent"] == 99, "99.7 of 99.95 is not reached"
    assert list(await list_objectives(tools, quarter=NOW)) == ["O-1", "O-2", "O-3"]
    assert await list_objectives(tools, quarter="1999-Q1") == {}
    assert list(await list_objectives(tools, quarter=NOW, status="at_risk")) == ["O-1"]
    assert every["O-2"]["percent"] == 77, "the mean of 74 and 80"


async def test_a_new_objective_is_for_the_current_quarter_unless_another_is_named(tools: Mapping[str, Tool]) -> None:
    created = await run_tool(tools["okr_create_objective"], "one", title="Grow")  # R7
    assert created == {"id": "O-5", "title": "Grow", "description": "", "quarter": NOW, "status": "on_track"}
    later = await run_tool(
        tools["okr_create_objective"], "two", title="Later", quarter="2027-Q3", description="Not now."
    )
    assert (later["id"], later["quarter"], later["description"]) == ("O-6", "2027-Q3", "Not now.")
    assert (await list_objectives(tools))["O-5"]["key_results"] == []


async def test_one_call_creates_one_objective_however_often_it_runs(tools: Mapping[str, Tool]) -> None:  # R7
    create = tools["okr_create_objective"]
    results = await asyncio.gather(*(run_tool(create, f"key{number % 10}", title="Grow") for number in range(30)))
    assert len({result["id"] for result in results}) == 10
    assert list(await list_objectives(tools)) == [f"O-{number}" for number in range(1, 15)]


async def test_an_objective_is_changed_where_something_is_given(tools: Mapping[str, Tool]) -> None:  # R7
    changed = await run_tool(
        tools["okr_update_objective"], "key", id="O-1", status="on_track", title="Workshops can rely on us"
    )
    assert changed["updated"] == ["status"]
    assert (await list_objectives(tools))["O-1"]["status"] == "on_track"
    assert (await list_objectives(tools))["O-1"]["description"].startswith("After March")


async def test_key_results_are_added_and_changed(tools: Mapping[str, Tool]) -> None:  # R7
    added = await run_tool(
        tools["okr_create_key_result"], "one", objective_id="O-3", title="Currencies", target=4, unit="currencies"
    )
    assert added == {
        "id": "KR-7",
        "objective_id": "O-3",
        "title": "Currencies",
        "current": 0,
        "target": 4,
        "unit": "currencies",
    }
    await run_tool(tools["okr_update_key_result"], "two", id="KR-7", current=1.5)
    assert (await list_objectives(tools))["O-3"]["key_results"][-1] == {
        "id": "KR-7",
        "title": "Currencies",
        "unit": "currencies",
        "current": 1.5,
        "target": 4,
        "percent": 38,
    }
    await run_tool(tools["okr_update_key_result"], "three", id="KR-7", target=0, current=-1e15)
    assert (await list_objectives(tools))["O-3"]["key_results"][-1]["percent"] is None
    await run_tool(tools["okr_update_key_result"], "four", id="KR-7", target=5e-324, current=1e15)
    assert (await list_objectives(tools))["O-3"]["key_results"][-1]["percent"] == 100


async def test_a_key_result_stays_with_its_objective(tools: Mapping[str, Tool]) -> None:  # R7
    await run_tool(
        tools["okr_update_key_result"], "key", id="KR-1", current=5, objective_id="O-2", status="x", unit="y"
    )
    assert [result["id"] for result in (await list_objectives(tools))["O-1"]["key_results"]] == ["KR-1", "KR-2"]
    changed = (await list_objectives(tools))["O-1"]["key_results"][0]
    assert (changed["unit"], changed["current"], "status" in changed) == ("y", 5, False)


async def test_an_objective_is_deleted_with_its_key_results(
    tools: Mapping[str, Tool], items: SqlToolItemStore
) -> None:  # R7, R45
    preview = await preview_lines(tools["okr_delete_objective"], id="O-1")
    assert preview == [
        f"Objective 'O-1', titled 'Workshops can rely on us', for {NOW}, with 2 key results:",
        "- 'KR-1': 'Availability', 99.7 of 99.95 %",
        "- 'KR-2': 'Changes rolled out in steps', 14 of 20",
    ]
    done = await run_tool(tools["okr_delete_objective"], "key", id="O-1")
    assert done == {
        "id": "O-1",
        "title": "Workshops can rely on us",
        "key_results": ["KR-1", "KR-2"],
        "status": "deleted",
    }
    assert await run_tool(tools["okr_delete_objective"], "key", id="O-1") == done
    assert [item.id for item in await items.list(okr.KEY_RESULT)] == ["KR-3", "KR-4", "KR-5", "KR-6"]
    await run_tool(tools["okr_delete_key_result"], "two", id="KR-3")
    assert [each["id"] for each in (await list_objectives(tools))["O-2"]["key_results"]] == ["KR-4"]


async def test_an_objective_has_at_most_fifty_key_results(tools: Mapping[str, Tool]) -> None:  # R7
    create = tools["okr_create_key_result"]
    for number in range(okr.MAX_KEY_RESULTS - 1):
        await run_tool(create, f"key{number}", objective_id="O-4", title="T", target=1)
    with pytest.raises(CallWouldFail, match="which is the limit"):
        await run_tool(create, "one more", objective_id="O-4", title="T", target=1)
    with pytest.raises(CallWouldFail, match="which is the limit"):  # nobody is asked about it
        await preview_lines(create, objective_id="O-4", title="T", target=1)


async def test_progress_is_in_the_history_with_its_approval(
    tools: Mapping[str, Tool], items: SqlToolItemStore
) -> None:  # R65
    await run_tool(tools["okr_update_key_result"], "approval-1", id="KR-4", current=110)
    [change] = await read_history(items, okr.KEY_RESULT, "KR-4")
    assert change["approval_id"] == "approval-1"
    assert "-current: 96" in change["diff"].splitlines()


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        (
            "okr_update_objective",
            {"id": "o-1", "status": "achieved"},
            "There is no objective 'o-1'. Similar names: 'O-1'",
        ),
        ("okr_update_key_result", {"id": "KR-77", "current": 1}, "There is no key result 'KR-77'. Similar names: 'KR-"),
        ("okr_create_key_result", {"objective_id": "?", "title": "T", "target": 1}, "Use okr_list_objectives to see"),
    ],
)
async def test_an_unknown_id_fails_with_the_near_ones(
    tools: Mapping[str, Tool], tool: str, args: dict[str, Any], words: str
) -> None:  # R7
    before = await list_objectives(tools)
    with pytest.raises(ToolFailed) as failed:
        await run_tool(tools[tool], "key", **args)
    assert words in failed.value.message
    with pytest.raises(CallWouldFail) as refused:  # for certain: nobody is asked about it
        await preview_lines(tools[tool], **args)
    assert words in refused.value.message
    assert await list_objectives(tools) == before


def test_nobody_is_asked_about_a_change_of_nothing(tools: Mapping[str, Tool]) -> None:  # R1
    for name in ("okr_update_objective", "okr_update_key_result"):
        assert validate(tools[name].spec.schema or {}, {"id": "O-1"})
    assert validate(tools["okr_create_objective"].spec.schema or {}, {"title": "Grow", "quarter": "autumn"})


def test_sentences_say_all_that_would_be_set(tools: Mapping[str, Tool]) -> None:  # R2
    said = {name: tool.spec.sentence for name, tool in tools.items()}
    assert said["okr_create_objective"]({"title": "Grow"}) == "Create objective 'Grow' for the current quarter"
    assert said["okr_create_objective"]({"title": "Grow", "quarter": "2027-Q3", "description": "Abroad."}) == (
        "Create objective 'Grow' for 2027-Q3, described as 'Abroad.'"
    )
    assert said["okr_create_key_result"]({"objective_id": "O-1", "title": "Sales", "target": 5, "unit": "EUR"}) == (
        "Add key result 'Sales' to objective 'O-1', with 5 EUR as target"
    )
    assert said["okr_update_objective"]({"id": "O-1", "title": "T", "status": "dropped"}) == (
        "Update objective 'O-1': title to 'T', status to 'dropped'"
    )
    assert said["okr_update_key_result"]({"id": "KR-1", "current": 7}) == "Update key result 'KR-1': current to 7"


async def test_an_update_shows_a_difference_of_the_fields(tools: Mapping[str, Tool]) -> None:  # R45
    text = "Two lines.\nstatus: achieved"
    lines = await preview_lines(tools["okr_update_objective"], id="O-1", status="on_track", description=text)
    assert "-status: at_risk" in lines
    assert "+status: on_track" in lines
    assert "+    status: achieved" in lines, "a line of a text does not look like a field"
    assert await preview_lines(tools["okr_update_objective"], id="O-1", status="at_risk") == ["Nothing would change."]
    lines = await preview_lines(tools["okr_update_key_result"], id="KR-3", current=60)
    assert lines[0] == "Of objective 'O-2', 'New customers find their way alone':"
    assert {"-current: 52", "+current: 60"} <= set(lines)
    lines = await preview_lines(tools["okr_create_key_result"], objective_id="O-3", title="Sales", target=5)
    assert {"+title: Sales", "+target: 5", "+current: 0"} <= set(lines)
    assert "+quarter: the current one" in await preview_lines(tools["okr_create_objective"], title="Grow")
    assert len(await list_objectives(tools)) == 4


async def test_the_list_is_free_and_a_change_asks(services: AppServices, tools: Mapping[str, Tool]) -> None:  # R1
    read, write = tools["okr_list_objectives"], tools["okr_create_objective"]
    assert isinstance(await services.gate.check(call(1, {}, tool=read.name), read.spec), Proceed)
    assert isinstance(await services.gate.check(call(2, {"title": "Grow"}, tool=write.name), write.spec), Waiting)
