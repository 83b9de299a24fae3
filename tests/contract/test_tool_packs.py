"""The rules of tool packs, checked for every pack in `tools/`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from interlock.app.bootstrap import build_services
from interlock.chat import tools
from interlock.chat.tool import Tool, ToolContext
from interlock.config.models import PACK_SETTINGS
from interlock.core.call import Args
from interlock.runtime.json_schema import validate

SECRET = "a-secret-of-the-settings"
SETTINGS: Mapping[str, object] = {"key": SECRET, "token": SECRET}
NEVER_EXPIRES = "This cannot be undone."
STAND_ALONE = {"http": {"http_get", "http_post"}, "ask_human": {"request_human_input"}}  # no prefix, by contract
MODULES = [import_module(f"{tools.__name__}.{found.name}") for found in pkgutil.iter_modules(tools.__path__)]
PACKS = {
    module.__name__.rpartition(".")[2]: module
    for module in MODULES
    if hasattr(module, "read_tools") or hasattr(module, "write_tools")
}
CANDIDATES: tuple[object, ...] = (
    *(
        "text",
        "2026-Q4",
        "owner/name",
        "2026-11-15",
        "2026-11-15T10:00:00Z",
        "https://example.com/",
        "DEMO-12",
        "team.jpg",
    ),
    *(1, 0.5, True, ["text"], ["owner/name"], [1], {}, {"text": "text"}, None),
)
ODD_VALUES: tuple[object, ...] = (
    None,
    7,
    -0.5,
    True,
    "",
    "{0.__class__}",
    "\u202e\n'\"\\",
    [],
    [None, {}],
    {"$secret": "00"},
    {},
)


def tool_context(tmp_path: Path, settings: Mapping[str, object] = SETTINGS) -> ToolContext:
    store = build_services(f"sqlite:///{tmp_path / 'never-opened.db'}").store
    return ToolContext("default", store.tool_items("default"), settings, documents=store.documents("default"))


def build_tools(module: ModuleType, part: str, tools: ToolContext) -> Sequence[Tool]:
    function = getattr(module, part, None)
    return () if function is None else cast(Sequence[Tool], function(tools))


def all_tools(module: ModuleType, tools: ToolContext) -> Sequence[Tool]:
    return (*build_tools(module, "read_tools", tools), *build_tools(module, "write_tools", tools))


def argument_schemas(tool: Tool) -> Mapping[str, Mapping[str, object]]:
    return cast(Mapping[str, Mapping[str, object]], (tool.spec.schema or {})["properties"])


def required_arguments(tool: Tool) -> Sequence[str]:
    return cast(Sequence[str], (tool.spec.schema or {})["required"])


def sample_args(tool: Tool, names: Sequence[str]) -> Args:
    return {name: valid_value(name, argument_schemas(tool)[name]) for name in names}


def valid_value(name: str, schema: Mapping[str, object]) -> object:
    """Something that a property's schema takes."""
    choices = (*cast(Sequence[object], schema.get("enum", ())), *CANDIDATES)
    found = [value for value in choices if not validate(schema, value)]
    assert found, f"no candidate fits {name}: add one"
    return found[0]


packs = pytest.mark.parametrize("pack", sorted(PACKS))


def test_the_packs_are_found() -> None:  # R7
    assert {"cms", "okr"} <= set(PACKS)


def test_every_pack_says_what_its_settings_are() -> None:  # R30
    assert set(PACK_SETTINGS) == set(PACKS)


def test_no_two_packs_have_a_tool_of_the_same_name(tmp_path: Path) -> None:  # R7
    names = [tool.name for module in PACKS.values() for tool in all_tools(module, tool_context(tmp_path))]
    assert sorted(names) == sorted(set(names))


@packs
def test_reads_only_read_and_writes_never_do(pack: str, tmp_path: Path) -> None:  # R1
    tools = tool_context(tmp_path)
    assert all_tools(PACKS[pack], tools), "with its settings a pack has tools"
    assert {tool.spec.effect for tool in build_tools(PACKS[pack], "read_tools", tools)} <= {"read"}
    assert {tool.spec.effect for tool in build_tools(PACKS[pack], "write_tools", tools)} <= {"write", "destructive"}


@packs
def test_a_pack_without_settings_does_not_fail(pack: str, tmp_path: Path) -> None:  # R7
    tools = tool_context(tmp_path, {})
    assert {tool.name for tool in all_tools(PACKS[pack], tools)} <= {
        tool.name for tool in all_tools(PACKS[pack], tool_context(tmp_path))
    }


@packs
def test_names_carry_their_pack(pack: str, tmp_path: Path) -> None:  # R7
    names = {tool.name for tool in all_tools(PACKS[pack], tool_context(tmp_path))}
    assert names == STAND_ALONE[pack] if pack in STAND_ALONE else all(name.startswith(f"{pack}_") for name in names)


@packs
def test_a_model_is_told_what_each_tool_does(pack: str, tmp_path: Path) -> None:  # R7
    for tool in all_tools(PACKS[pack], tool_context(tmp_path)):
        assert tool.description.strip().endswith((".", "?")), tool.name
        assert tool.prompt_tool.name == tool.name
        assert tool.prompt_tool.schema == tool.spec.schema


@packs
def test_schemas_are_closed_and_can_be_met(pack: str, tmp_path: Path) -> None:  # R1
    for tool in all_tools(PACKS[pack], tool_context(tmp_path)):
        schema = tool.spec.schema or {}
        assert schema.get("type") == "object", tool.name
        assert schema.get("additionalProperties") is False, tool.name
        assert set(required_arguments(tool)) <= set(argument_schemas(tool)), tool.name
        whole = sample_args(tool, list(argument_schemas(tool)))
        assert validate(schema, whole) == (), tool.name
        assert validate(schema, {**whole, "approved": True}), tool.name
        for name in required_arguments(tool):
            assert validate(schema, {key: value for key, value in whole.items() if key != name}), (tool.name, name)


@packs
def test_every_write_is_described_in_a_sentence(pack: str, tmp_path: Path) -> None:  # R2
    for tool in build_tools(PACKS[pack], "write_tools", tool_context(tmp_path)):
        for names in (required_arguments(tool), list(argument_schemas(tool))):
            sentence = tool.spec.sentence(sample_args(tool, names))
            assert sentence, tool.name
            assert tool.spec.described(sample_args(tool, names)), (tool.name, names)


@packs
def test_what_deletes_says_so_and_says_what(pack: str, tmp_path: Path) -> None:  # R2
    for tool in build_tools(PACKS[pack], "write_tools", tool_context(tmp_path)):
        if "_delete_" in tool.name:
            args = sample_args(tool, required_arguments(tool))
            assert tool.spec.effect == "destructive", tool.name
            told = tool.spec.sentence(args)
            assert told.endswith(NEVER_EXPIRES) or "can be restored" in told, tool.name
            assert tool.spec.preview is not None, tool.name
            for name in args:
                result = tool.spec.sentence({**args, name: "one-of-a-kind"})
                assert "one-of-a-kind" in result, (tool.name, name)


@packs
def test_a_sentence_never_fails(pack: str, tmp_path: Path) -> None:  # R2
    for tool in all_tools(PACKS[pack], tool_context(tmp_path)):
        for odd in ODD_VALUES:
            assert tool.spec.sentence(dict.fromkeys(argument_schemas(tool), odd)), tool.name
            assert tool.spec.sentence({"else": odd}), tool.name
        assert tool.spec.sentence({}), tool.name


@packs
def test_nothing_secret_of_the_settings_is_told(pack: str, tmp_path: Path) -> None:  # R2
    for tool in all_tools(PACKS[pack], tool_context(tmp_path)):
        result = [
            repr(tool),
            repr(tool.prompt_tool),
            tool.spec.definition.decode(),
            tool.spec.sentence({}),
            tool.spec.sentence(sample_args(tool, list(argument_schemas(tool)))),
        ]
        assert [text for text in result if SECRET in text] == [], tool.name


@packs
def test_only_what_is_confirmed_in_chat_takes_confirmed(pack: str, tmp_path: Path) -> None:  # R19
    for tool in all_tools(PACKS[pack], tool_context(tmp_path)):
        assert (tool.spec.confirm == "chat") == ("confirmed" in argument_schemas(tool)), tool.name
        if tool.spec.confirm:
            assert argument_schemas(tool)["confirmed"]["type"] == "boolean", tool.name
            assert "confirmed" not in required_arguments(tool), tool.name
            assert tool.spec.preview is not None, tool.name
