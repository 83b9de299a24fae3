"""What an agent may be, wherever it is written down."""

from __future__ import annotations

import pytest

from interlock.chat.system_prompt import ACTING, ALWAYS, CONFIRMING, instructions
from interlock.chat.tool import Tool, Use
from interlock.chat.tool_registry import agent_tool, always_asks
from interlock.chat.tools import ask_human
from interlock.config.agents import KnownTool, callers_of, fits, limits_of, overlaid, problems_of, warnings_of
from interlock.config.models import Agent
from interlock.core.call import ToolSpec
from interlock.core.chat.next_step import DEFAULT_LIMITS, Limits

PAY = {"pay": KnownTool(asks=True, source="bank")}
PARENT, CHILD = Agent(agents=("child",), tool_approvals={"pay": True}), Agent(tool_approvals={"pay": False})


def problems(agent: Agent, **others: Agent) -> list[tuple[str, str]]:
    return [(each.pointer, each.message) for each in problems_of("a", agent, {"a": agent, **others})]


@pytest.mark.parametrize("model", ["", "openai:gpt-5", "openai-chat:x", "ollama:qwen3:8b", "demo:scripted"])
def test_a_model_is_a_provider_and_a_name(model: str) -> None:  # R9
    assert problems(Agent(model=model)) == []


@pytest.mark.parametrize("model", ["gpt-5", ":x", "openai:", "openai: gpt", "Open AI:x", "-:x"])
def test_another_model_is_refused(model: str) -> None:  # R9
    [(pointer, message)] = problems(Agent(model=model))
    assert pointer == "/model"
    assert "provider:name" in message


@pytest.mark.parametrize(
    ("limits", "meant"),
    [
        ({}, DEFAULT_LIMITS),
        ({"turns": 1, "tokens": 5, "time": "10m"}, Limits(1, 5, 600_000)),
        ({"turns": 1_000, "tokens": 100_000_000, "time": "1d"}, Limits(1_000, 100_000_000, 86_400_000)),
    ],
)
def test_limits_are_turns_tokens_and_time(limits: dict[str, object], meant: Limits) -> None:  # R9
    assert problems(Agent(limits=limits)) == []
    assert limits_of(Agent(limits=limits)) == meant


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
    [(pointer, _)] = problems(Agent(limits={key: value}))
    assert pointer == f"/limits/{key}"
    assert limits_of(Agent(limits={key: value})) == DEFAULT_LIMITS


def test_an_agent_calls_neither_itself_nor_what_is_not_there() -> None:  # R13
    assert problems(Agent(agents=("a", "bb")), b=Agent()) == [
        ("/agents/0", "a lists itself in agents; remove it there"),
        ("/agents/1", 'unknown agent "bb"; did you mean "b"?'),
    ]


@pytest.mark.parametrize("name", ["my agent", "écrivain", "a" * 59, "a.b"])
def test_an_agent_that_is_called_has_a_name_that_models_can_write(name: str) -> None:  # R13
    [(pointer, message)] = problems(Agent(agents=(name,)), **{name: Agent()})
    assert (pointer, "cannot be called" in message) == ("/agents/0", True)


def test_agents_do_not_call_each_other_in_a_circle() -> None:  # R13
    assert problems(Agent(agents=("b",)), b=Agent(agents=("c",)), c=Agent()) == []
    [(pointer, message)] = problems(Agent(agents=("b",)), b=Agent(agents=("c",)), c=Agent(agents=("a",)))
    assert pointer == "/agents/0"
    assert "circle" in message


def test_callers_are_found_through_others_and_in_circles_too() -> None:  # R13
    agents = {"a": Agent(agents=("b",)), "b": Agent(agents=("c",)), "c": Agent(agents=("b",)), "d": Agent()}
    assert callers_of("c", agents) == ["a", "b"]
    assert callers_of("a", agents) == []


@pytest.mark.parametrize("wanted", ["cms_read_post", "cms", "cms_*", "*_post", "*", "own"])
def test_tools_are_named_by_name_pack_pattern_or_source(wanted: str) -> None:  # R9
    assert fits(wanted, "cms_read_post", "own")


@pytest.mark.parametrize("wanted", ["cms_read_pos[t]", "cm", "CMS", "cms_read", "post", "mcp:files", ""])
def test_other_words_name_no_tool(wanted: str) -> None:  # R9
    assert fits(wanted, "cms_read_post", "cms") == (wanted == "cms_read")  # the beginning of a name, as with packs


def test_what_is_not_known_is_ignored_and_said() -> None:  # R9
    agent = Agent(
        tools=("pay", "bank", "pya", "*"), tool_approvals={"pya": True, "agent_b": True, "agent_c": True}, agents=("b",)
    )
    assert [*warnings_of("a", agent, PAY, {"a": agent, "b": Agent()})] == [
        'there is no tool "pya" here, so it is ignored; did you mean "pay"?',
        'tool_approvals names "agent_c", which is no tool here, so it is ignored; it is one of pay',
        'tool_approvals names "pya", which is no tool here, so it is ignored; did you mean "pay"?',
    ]


def test_a_gate_that_a_sub_agent_cannot_lift_is_said() -> None:  # R13
    agents = {"parent": PARENT, "child": CHILD}
    [warning] = warnings_of("child", CHILD, PAY, agents)
    assert warning == 'tool_approvals: {"pay": false} has no effect when child is called by parent, for which it asks'
    assert [*warnings_of("parent", PARENT, PAY, agents)] == []


def test_an_unsaid_switch_of_the_caller_is_the_tools_own_default() -> None:  # R13
    agents = {"parent": Agent(agents=("child",)), "child": CHILD}
    assert len([*warnings_of("child", CHILD, PAY, agents)]) == 1
    assert [*warnings_of("child", CHILD, {"pay": KnownTool(asks=False)}, agents)] == []


def test_a_question_that_no_switch_lifts_is_said() -> None:  # R9, R37
    agent = Agent(tool_approvals={"request_human_input": False, "files_write": False, "pay": False})
    question, unknown = ToolSpec("request_human_input", "read"), ToolSpec("files_write")
    known = {"pay": KnownTool(asks=True)} | {
        spec.name: KnownTool(asks=True, always=always_asks(spec)) for spec in (question, unknown)
    }
    assert [*warnings_of("a", agent, known, {"a": agent})] == [
        'tool_approvals: {"files_write": false} has no effect since nobody declared what it does: '
        "it asks unless a rule of the policy allows it",
        'tool_approvals: {"request_human_input": false} has no effect since a question is always for a person',
    ]


def test_hints_stay_few_however_much_is_unknown() -> None:
    agent = Agent(tools=tuple(f"payy{number}" for number in range(30)))
    warnings = [*warnings_of("a", agent, PAY, {"a": agent})]
    assert (len(warnings), sum("did you mean" in line for line in warnings)) == (30, 10)
    many = {f"tool{number}": KnownTool(asks=True) for number in range(2_001)}
    assert not any(";" in line for line in warnings_of("a", agent, many, {"a": agent}))


def test_what_is_stored_stands_over_the_file_field_by_field() -> None:  # R9
    base = Agent("openai:x", "Be kind.", ("cms",), {"pay": True}, ("b",), {"turns": 5})
    assert overlaid("{}", base) == base
    assert overlaid('{"tools":[],"limits":{}}', base) == Agent("openai:x", "Be kind.", (), {"pay": True}, ("b",), {})
    assert overlaid('{"tool_approvals":{"pay":false},"of_later":1}', base).tool_approvals == {"pay": False}


# What an agent is told


def tool(name: str, confirm: str = "") -> Tool:
    async def run(use: Use) -> object:
        return use.args

    return Tool(ToolSpec(name, "write", confirm=confirm), "Does it.", run)


def test_an_agent_is_told_what_fits_its_tools() -> None:  # R19, R34, R37
    asking = ask_human.reads(None)[0]  # type: ignore[arg-type]  # it needs nothing
    assert instructions("Be kind.\n", [], talks=True) == "Be kind."
    assert instructions("", [tool("pay")], talks=True) == f"{ALWAYS}\n{ACTING}"
    assert instructions("Be kind.", [tool("pay")], talks=True) == f"Be kind.\n\n{ALWAYS}\n{ACTING}"
    assert CONFIRMING in instructions("", [tool("delete", "chat")], talks=True)
    assert CONFIRMING not in instructions("", [tool("delete", "chat")], talks=False)
    assert CONFIRMING not in instructions("", [asking], talks=True)
    assert instructions("", [asking], talks=False).endswith(ask_human.GUIDANCE)
    assert "request_human_input" not in instructions("", [tool("pay"), agent_tool("writer")], talks=True)


def test_guidance_is_short() -> None:  # R37
    whole = instructions("", [tool("delete", "chat"), ask_human.reads(None)[0]], talks=True)  # type: ignore[arg-type]
    assert len(whole) < 1_800
