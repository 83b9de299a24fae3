"""Agent settings: validation, whichever way they are configured."""

from __future__ import annotations

import pytest

from interlock.chat.tool import Tool, ToolInvocation
from interlock.chat.tool_registry import agent_tool, always_asks
from interlock.chat.tools import ask_human
from interlock.chat.turn import ACTING, ALWAYS, CONFIRMING, build_system_prompt
from interlock.config.agents import (
    AvailableTool,
    find_agent_problems,
    find_agent_warnings,
    find_callers,
    matches_tool,
    overlay_stored_agent,
    parse_limits,
)
from interlock.config.models import AgentSettings
from interlock.core.call import ToolSpec
from interlock.core.chat.transcript import DEFAULT_LIMITS, TurnLimits

PAY = {"pay": AvailableTool(needs_approval=True, source="bank")}
PARENT, CHILD = (
    AgentSettings(agents=("child",), tool_approvals={"pay": True}),
    AgentSettings(tool_approvals={"pay": False}),
)


def problems(agent: AgentSettings, **others: AgentSettings) -> list[tuple[str, str]]:
    return [(each.pointer, each.message) for each in find_agent_problems("a", agent, {"a": agent, **others})]


@pytest.mark.parametrize("model", ["", "openai:gpt-5", "openai-chat:x", "ollama:qwen3:8b", "demo:scripted"])
def test_a_model_is_a_provider_and_a_name(model: str) -> None:  # R9
    assert problems(AgentSettings(model=model)) == []


@pytest.mark.parametrize("model", ["gpt-5", ":x", "openai:", "openai: gpt", "Open AI:x", "-:x"])
def test_another_model_is_refused(model: str) -> None:  # R9
    [(pointer, message)] = problems(AgentSettings(model=model))
    assert pointer == "/model"
    assert "provider:name" in message


@pytest.mark.parametrize(
    ("limits", "meant"),
    [
        ({}, DEFAULT_LIMITS),
        ({"turns": 1, "tokens": 5, "time": "10m"}, TurnLimits(1, 5, 600_000)),
        ({"turns": 1_000, "tokens": 100_000_000, "time": "1d"}, TurnLimits(1_000, 100_000_000, 86_400_000)),
    ],
)
def test_limits_are_turns_tokens_and_time(limits: dict[str, object], meant: TurnLimits) -> None:  # R9
    assert problems(AgentSettings(limits=limits)) == []
    assert parse_limits(AgentSettings(limits=limits)) == meant


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("turns", value) for value in (0, -1, 1_001, 1.5, True, "5", None)),
        *(("tokens", value) for value in (0, 100_000_001, "many")),
        *(("time", value) for value in (600, "0s", "2d", "ten minutes", None)),
        ("turn", 5),
    ],
)
def test_other_limits_are_refused_and_never_count(key: str, value: object) -> None:  # R9
    [(pointer, _)] = problems(AgentSettings(limits={key: value}))
    assert pointer == f"/limits/{key}"
    assert parse_limits(AgentSettings(limits={key: value})) == DEFAULT_LIMITS


def test_an_agent_calls_neither_itself_nor_what_is_not_there() -> None:  # R13
    assert problems(AgentSettings(agents=("a", "bb")), b=AgentSettings()) == [
        ("/agents/0", "a lists itself in agents; remove it there"),
        ("/agents/1", 'unknown agent "bb"; did you mean "b"?'),
    ]


@pytest.mark.parametrize("name", ["my agent", "écrivain", "a" * 59, "a.b"])
def test_an_agent_that_is_called_has_a_name_that_models_can_write(name: str) -> None:  # R13
    [(pointer, message)] = problems(AgentSettings(agents=(name,)), **{name: AgentSettings()})
    assert (pointer, "cannot be called" in message) == ("/agents/0", True)


def test_agents_do_not_call_each_other_in_a_circle() -> None:  # R13
    assert problems(AgentSettings(agents=("b",)), b=AgentSettings(agents=("c",)), c=AgentSettings()) == []
    [(pointer, message)] = problems(
        AgentSettings(agents=("b",)), b=AgentSettings(agents=("c",)), c=AgentSettings(agents=("a",))
    )
    assert pointer == "/agents/0"
    assert "circle" in message


def test_callers_are_found_through_others_and_in_circles_too() -> None:  # R13
    agents = {
        "a": AgentSettings(agents=("b",)),
        "b": AgentSettings(agents=("c",)),
        "c": AgentSettings(agents=("b",)),
        "d": AgentSettings(),
    }
    assert find_callers("c", agents) == ["a", "b"]
    assert find_callers("a", agents) == []


@pytest.mark.parametrize("wanted", ["cms_read_post", "cms", "cms_*", "*_post", "*", "own"])
def test_tools_are_named_by_name_pack_pattern_or_source(wanted: str) -> None:  # R9
    assert matches_tool(wanted, "cms_read_post", "own")


@pytest.mark.parametrize("wanted", ["cms_read_pos[t]", "cm", "CMS", "cms_read", "post", "mcp:files", ""])
def test_other_patterns_name_no_tool(wanted: str) -> None:  # R9
    assert matches_tool(wanted, "cms_read_post", "cms") == (
        wanted == "cms_read"
    )  # the beginning of a name, as with packs


def test_unknown_settings_are_ignored_with_a_warning() -> None:  # R9
    agent = AgentSettings(
        tools=("pay", "bank", "pya", "*"), tool_approvals={"pya": True, "agent_b": True, "agent_c": True}, agents=("b",)
    )
    assert [*find_agent_warnings("a", agent, PAY, {"a": agent, "b": AgentSettings()})] == [
        'there is no tool "pya" here, so it is ignored; did you mean "pay"?',
        'tool_approvals names "agent_c", which is no tool here, so it is ignored; it is one of pay',
        'tool_approvals names "pya", which is no tool here, so it is ignored; did you mean "pay"?',
    ]


def test_a_gate_that_a_sub_agent_cannot_lift_is_said() -> None:  # R13
    agents = {"parent": PARENT, "child": CHILD}
    [warning] = find_agent_warnings("child", CHILD, PAY, agents)
    assert warning == 'tool_approvals: {"pay": false} has no effect when child is called by parent, for which it asks'
    assert [*find_agent_warnings("parent", PARENT, PAY, agents)] == []


def test_an_unsaid_switch_of_the_caller_is_the_tools_own_default() -> None:  # R13
    agents = {"parent": AgentSettings(agents=("child",)), "child": CHILD}
    assert len([*find_agent_warnings("child", CHILD, PAY, agents)]) == 1
    assert [*find_agent_warnings("child", CHILD, {"pay": AvailableTool(needs_approval=False)}, agents)] == []


def test_a_question_that_no_switch_lifts_is_said() -> None:  # R9, R37
    agent = AgentSettings(tool_approvals={"request_human_input": False, "files_write": False, "pay": False})
    question, unknown = ToolSpec("request_human_input", "read"), ToolSpec("files_write")
    known = {"pay": AvailableTool(needs_approval=True)} | {
        spec.name: AvailableTool(needs_approval=True, always_reason=always_asks(spec)) for spec in (question, unknown)
    }
    assert [*find_agent_warnings("a", agent, known, {"a": agent})] == [
        'tool_approvals: {"files_write": false} has no effect since its effect is not declared: '
        "it needs approval unless a rule of the policy allows it",
        'tool_approvals: {"request_human_input": false} has no effect since a question is always for a person',
    ]


def test_hints_stay_few_however_much_is_unknown() -> None:
    agent = AgentSettings(tools=tuple(f"payy{number}" for number in range(30)))
    warnings = [*find_agent_warnings("a", agent, PAY, {"a": agent})]
    assert (len(warnings), sum("did you mean" in line for line in warnings)) == (30, 10)
    many = {f"tool{number}": AvailableTool(needs_approval=True) for number in range(2_001)}
    assert not any(";" in line for line in find_agent_warnings("a", agent, many, {"a": agent}))


def test_stored_settings_override_the_file_field_by_field() -> None:  # R9
    base = AgentSettings(
        "openai:x",
        instructions="Be kind.",
        tools=("cms",),
        tool_approvals={"pay": True},
        agents=("b",),
        limits={"turns": 5},
    )
    assert overlay_stored_agent("{}", base) == base
    assert overlay_stored_agent('{"tools":[],"limits":{}}', base) == AgentSettings(
        "openai:x", instructions="Be kind.", tools=(), tool_approvals={"pay": True}, agents=("b",), limits={}
    )
    assert overlay_stored_agent('{"tool_approvals":{"pay":false},"of_later":1}', base).tool_approvals == {"pay": False}


# The system prompt of an agent


def tool(name: str, confirm: str = "") -> Tool:
    async def run(use: ToolInvocation) -> object:
        return use.args

    return Tool(ToolSpec(name, "write", confirm=confirm), "Does it.", run)


def test_an_agent_is_told_what_fits_its_tools() -> None:  # R19, R34, R37
    asking = ask_human.read_tools(None)[0]  # type: ignore[arg-type]  # it needs nothing
    assert build_system_prompt("Be kind.\n", [], is_conversation=True) == "Be kind."
    assert build_system_prompt("", [tool("pay")], is_conversation=True) == f"{ALWAYS}\n{ACTING}"
    assert build_system_prompt("Be kind.", [tool("pay")], is_conversation=True) == f"Be kind.\n\n{ALWAYS}\n{ACTING}"
    assert CONFIRMING in build_system_prompt("", [tool("delete", "chat")], is_conversation=True)
    assert CONFIRMING not in build_system_prompt("", [tool("delete", "chat")], is_conversation=False)
    assert CONFIRMING not in build_system_prompt("", [asking], is_conversation=True)
    assert build_system_prompt("", [asking], is_conversation=False).endswith(ask_human.GUIDANCE)
    assert "request_human_input" not in build_system_prompt(
        "", [tool("pay"), agent_tool("writer")], is_conversation=True
    )


def test_guidance_is_short() -> None:  # R37
    whole = build_system_prompt("", [tool("delete", "chat"), ask_human.read_tools(None)[0]], is_conversation=True)  # type: ignore[arg-type]
    assert len(whole) < 1_800


def test_a_sub_agent_that_does_not_exist_any_more_is_a_warning() -> None:  # R13
    agent = AgentSettings(agents=("gone", "b"))
    [warning] = find_agent_warnings("a", agent, PAY, {"a": agent, "b": AgentSettings()})
    assert warning == 'agents names "gone", which does not exist, so it cannot be called'
