"""Packs from outside the package: where they are found, what they may be, and what is said about mistakes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from textwrap import dedent

import pytest

from interlock.app.bootstrap import build_services
from interlock.chat.assistant import build_chat_components
from interlock.chat.tool import ToolInvocation
from interlock.chat.tool_registry import ToolRegistry
from interlock.cli.doctor import check_chat
from interlock.config.load import load_settings
from interlock.config.models import AgentSettings, PreviewCall, Settings
from interlock.core.errors import Misconfigured

SHOP = """\
from interlock import Interlock, tool

lock = Interlock()

@tool(effect="read")
def list_orders() -> list[str]:
    "Lists orders."

@tool(effect="write", describe="Refund {order}")
def refund(order: str) -> str:
    return order

@lock.tool(effect="write")
def gated(order: str) -> str:
    return order

def plain(order: str) -> None:
    raise AssertionError("it was called")

def make(context):
    return [refund] if "key" in context.settings else []

def all_of_them(context):
    return {"refund": refund}

async def make_async(context):
    return [refund]

def broken(context):
    raise KeyError("no")

tools = [list_orders, refund]
mixed = [refund, plain]
empty = []
number = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a configuration and the module `corner_shop`; what was imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corner_shop.py").write_text(SHOP)
    path, known = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name.partition(".")[0].startswith("corner"):
            del sys.modules[name]


def load(folder: Path, tools: str, more: str = "") -> Settings:
    (folder / "interlock.yaml").write_text(f"tools: {tools}\n{more}")
    return load_settings(folder / "interlock.yaml", {})


def registry(folder: Path, tools: str, more: str = "") -> ToolRegistry:
    store = build_services(f"sqlite:///{folder / 'never-opened.db'}").store
    return build_chat_components(load(folder, tools, more), store).tool_registry


def own_names(found: ToolRegistry, pack: str = "shop", workspace: str = "default") -> list[str]:
    return [name for name, tool in found.all(workspace).items() if tool.source == pack]


def mistake(folder: Path, tools: str, more: str = "") -> str:
    with pytest.raises(Misconfigured) as caught:
        registry(folder, tools, more).all("default")
    return caught.value.message


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("corner_shop:tools", ["list_orders", "refund"]),
        ("corner_shop:refund", ["refund"]),
        ("corner_shop:gated", ["gated"]),
        ("corner_shop", ["list_orders", "refund", "gated"]),
        ("corner_shop:make", []),
    ],
)
def test_a_list_a_function_a_module_or_a_factory_gives_tools(folder: Path, path: str, names: list[str]) -> None:  # R64
    assert own_names(registry(folder, f"{{shop: '{path}'}}")) == names


def test_settings_are_the_packs_own_and_of_its_workspace(folder: Path) -> None:  # R64
    more = "workspaces: {lab: {tools: {shop: {use: 'corner_shop:make'}}}}"
    found = registry(folder, "{shop: {use: 'corner_shop:make', key: x}}", more)
    by_workspace = {name: own_names(found, workspace=name) for name in ("default", "lab", "other")}
    assert by_workspace == {"default": ["refund"], "lab": [], "other": []}
    assert found.packs("default")["shop"] == 1
    assert "shop" not in found.packs("other")


def test_an_agent_gets_a_pack_by_its_name(folder: Path) -> None:  # R9
    found = registry(folder, "{shop: 'corner_shop:tools'}")
    assert list(found.tools_for_agent(AgentSettings(tools=("shop",)), "default")) == ["list_orders", "refund"]


def test_a_folder_of_modules_beside_the_configuration_is_found_and_replaces_nothing(folder: Path) -> None:  # R64
    (folder / "corner").mkdir()
    (folder / "corner" / "shop.py").write_text(SHOP)
    (folder / "json.py").write_text("raise AssertionError('it is not the one of Python')")
    assert own_names(registry(folder, "{shop: 'corner.shop:tools'}")) == ["list_orders", "refund"]
    assert sys.path[-1] == str(folder)


def test_a_file_that_was_only_found_is_not_trusted_with_code(folder: Path) -> None:  # R64
    load(folder, "{shop: 'corner_shop:tools'}")
    settings = load_settings(None, {})
    store = build_services(f"sqlite:///{folder / 'never-opened.db'}").store
    found = build_chat_components(settings, store).tool_registry
    assert own_names(found) == []
    assert found.packs_not_loaded("default") == {"shop": "corner_shop:tools"}
    assert "corner_shop" not in sys.modules
    told = [check.found for check in check_chat(settings, store, {}) if check.what == "tools"]
    assert told[-1] == "shop, from corner_shop:tools: not imported here"
    assert load_settings(None, {"INTERLOCK_CONFIG": "interlock.yaml"}).origin.is_named


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("corner_shop:tols", 'tools.shop: corner_shop has no tols; did you mean "tools"?'),
        ("corner_shop:tools.first", "tools.shop: corner_shop has no tools.first"),
        ("corner_shp:tools", "tools.shop: there is no module corner_shp in "),
        ("corner_shop.more:tools", "tools.shop: there is no module corner_shop.more in "),
        ("corner_shop:plain", "tools.shop: corner_shop:plain is plain, a function without @tool. It has to be a list"),
        ("corner_shop:mixed", "tools.shop: corner_shop:mixed contains plain, a function without @tool, which is no"),
        ("corner_shop:empty", "tools.shop: corner_shop:empty has no tools"),
        ("corner_shop:number", "tools.shop: corner_shop:number is a value of the type int. It has to be"),
        (
            "corner_shop:make_async",
            "tools.shop: corner_shop:make_async returned a value of the type coroutine; it has to",
        ),
        ("corner_shop:all_of_them", "tools.shop: corner_shop:all_of_them returned a value of the type dict; it has to"),
        ("corner_shop:broken", "tools.shop: corner_shop:broken failed: KeyError: 'no' ("),
    ],
)
def test_a_mistake_is_told_with_what_to_change(folder: Path, path: str, said: str) -> None:  # R64
    assert mistake(folder, f"{{shop: '{path}'}}").startswith(said)


def test_a_module_that_cannot_be_imported_says_where(folder: Path) -> None:  # R64
    (folder / "corner_broken.py").write_text("x = 1\nimport no_such_library\n")
    said = mistake(folder, "{shop: 'corner_broken:tools'}")
    assert said.startswith(
        "tools.shop: corner_broken cannot be imported: ModuleNotFoundError: No module named 'no_such"
    )
    assert said.endswith("corner_broken.py, line 2)")
    (folder / "corner_exit.py").write_text("raise SystemExit(3)\n")
    assert "corner_exit cannot be imported: SystemExit: 3 (" in mistake(folder, "{shop: 'corner_exit:tools'}")
    (folder / "corner_wrong.py").write_text(
        dedent("""\
        from interlock import tool

        @tool(describe="{x}")
        def refund(order: str) -> None: ...
        """)
    )
    said = mistake(folder, "{shop: 'corner_wrong:refund'}")
    assert "Misconfigured: refund: describe: there is no argument {x}" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cms_list_posts", "tools.shop: cms_list_posts: tools named cms_… are Interlock's own."),
        ("agent_x", "tools.shop: agent_x: tools named agent_… are Interlock's own."),
        ("http_delete", "tools.shop: http_delete: tools named http_… are Interlock's own."),
        ("Request_human_input", "tools.shop: Request_human_input: the pack ask_human has a tool request_human_input"),
        ("refünd", "tools.shop: refünd is no name that models can call"),
        ("REFUND", "tools.shop: REFUND: the pack shop has a tool refund already."),
    ],
)
def test_a_name_that_is_taken_or_means_something_else_is_refused(folder: Path, name: str, said: str) -> None:  # R64
    (folder / "corner_names.py").write_text(
        f"from corner_shop import refund\nfrom interlock import tool\n"
        f"tools = [refund, tool(lambda order: order, name={name!r})]\n"
    )
    assert mistake(folder, "{shop: 'corner_names:tools'}").startswith(said)


def test_a_tool_and_a_configured_action_do_not_share_a_name(folder: Path) -> None:  # R64
    said = mistake(folder, "{shop: 'corner_shop:tools'}", "actions: {Refund: {schema: {type: object}}}")
    assert said.startswith("tools.shop: refund is also one of the actions in the configuration.")


def test_a_name_that_only_begins_like_the_question_tool_is_fine(folder: Path) -> None:
    (folder / "corner_names.py").write_text(
        "from interlock import tool\ntools = [tool(lambda order: order, name='request_refund')]\n"
    )
    assert own_names(registry(folder, "{shop: 'corner_names:tools'}")) == ["request_refund"]


async def test_a_tool_of_ones_own_making_may_be_sync_and_needs_a_valid_schema(folder: Path) -> None:
    (folder / "corner_tools.py").write_text(
        dedent("""\
        from interlock import ToolSpec
        from interlock.chat.tool import Tool

        async def run(invocation):
            return dict(invocation.args)

        def run_sync(invocation):
            return dict(invocation.args)

        spec = ToolSpec("wipe", "destructive", schema={"type": "object"}, confirm="chat")
        good = [Tool(spec, "Wipes.", run), Tool(ToolSpec("wipe_sync", "destructive"), "Wipes.", run_sync)]
        bad = [Tool(ToolSpec("wipe", schema={"type": 5}), "Wipes.", run)]
        """)
    )
    found = registry(folder, "{shop: 'corner_tools:good'}").all("default")
    assert "confirmed" in str(found["wipe"].spec.schema)
    use = ToolInvocation({"disk": 1, "confirmed": True}, "")
    assert await found["wipe"].run(use) == {"disk": 1}
    assert await found["wipe_sync"].run(use) == {"disk": 1, "confirmed": True}
    assert mistake(folder, "{shop: 'corner_tools:bad'}").startswith("tools.shop: ")


# The configuration


def test_an_installed_package_brings_a_pack_by_an_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in use where the configuration names it, and nowhere else."""  # R64
    install_entry_points(monkeypatch, metadata.EntryPoint("shop", "corner_shop:tools", "interlock.tools"))
    assert load(folder, "{shop: {key: x}}").tools["shop"] == {"key": "x", "use": "corner_shop:tools"}
    assert load(folder, "{shop: {}}").own_packs() == {"shop": "corner_shop:tools"}
    assert load(folder, "{cms: {}}").own_packs() == {}
    with pytest.raises(
        Misconfigured, match='line 1: unknown pack "other" in tools: give it use: module:attribute, or install'
    ):
        load(folder, "{other: {}}")


def test_two_installed_packages_do_not_share_the_name_of_a_pack(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R64
    paths = ("corner_shop:tools", "big_shop:tools")
    install_entry_points(monkeypatch, *(metadata.EntryPoint("shop", path, "interlock.tools") for path in paths))
    said = 'line 1: shop: several installed packages have "shop" in interlock.tools: big_shop:tools, corner_shop:tools'
    with pytest.raises(Misconfigured, match=re.escape(said)):
        load(folder, "{shop: {}}")
    assert load(folder, "{shop: 'big_shop:tools'}").own_packs() == {"shop": "big_shop:tools"}


def install_entry_points(monkeypatch: pytest.MonkeyPatch, *points: metadata.EntryPoint) -> None:
    def entry_points(**wanted: str) -> metadata.EntryPoints:
        return metadata.EntryPoints(points).select(**wanted)

    monkeypatch.setattr("interlock.runtime.import_path.entry_points", entry_points)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("{shop: 'corner shop'}", 'line 1: shop: "corner shop" is not an import path; write module:attribute'),
        ("{shop: {use: '../shop.py'}}", 'line 1: shop: "../shop.py" is not an import path'),
        ("{agent: 'corner_shop:tools'}", 'line 1: "agent" cannot be the name of a pack'),
        ("{'a b': 'corner_shop:tools'}", 'line 1: "a b" cannot be the name of a pack'),
        ("{cms: {use: 'corner_shop:tools'}}", 'line 1: unknown key "use" in cms'),
        ("{cms: 'corner_shop:tools'}", "line 1: cms must be a mapping of keys to values"),
        ("{linaer: {key: x}}", 'line 1: unknown key "linaer" in tools; did you mean "linear"?'),
        ("{shop: 5}", 'line 1: unknown key "shop" in tools'),
        ("{shop: {use: 5}}", "line 1: use must be a text, not 5"),
    ],
)
def test_a_pack_that_cannot_be_is_refused_with_its_line(folder: Path, tools: str, said: str) -> None:  # R64
    with pytest.raises(Misconfigured) as caught:
        load(folder, tools)
    assert said in caught.value.message


def test_a_pack_and_an_mcp_server_do_not_share_a_name(folder: Path) -> None:  # R64
    with pytest.raises(
        Misconfigured, match='line 2: "shop" is also a pack in tools: give the MCP server another prefix'
    ):
        load(folder, "{shop: 'corner_shop:tools'}", "mcp_servers: {files: {command: run, prefix: shop}}")


CARD: Mapping[str, str] = {
    "describe: 'Hire {nme}'": 'describe: there is no argument {nme}; did you mean "name"?',
    "preview: '{salry}'": 'preview: there is no argument {salry}; did you mean "salary"?',
    "secret: [salry]": 'secret: there is no argument "salry"; did you mean "salary"?',
    "secret: [salary], preview: 'For {salary}'": "preview: it would show a secret argument: salary",
    "effect: wrte": 'effect is "wrte"; did you mean "write"?',
    "confirm: mail": 'confirm is "mail"; it is one of chat',
}


@pytest.mark.parametrize(("keys", "said"), CARD.items())
def test_what_an_action_says_of_itself_is_checked_by_its_schema(folder: Path, keys: str, said: str) -> None:  # R2
    schema = "{type: object, properties: {name: {type: string}, salary: {type: number}}}"
    with pytest.raises(Misconfigured) as caught:
        load(folder, "{}", f"actions: {{hire: {{schema: {schema}, {keys}}}}}")
    assert said in caught.value.message


LOOK = "preview: {tool: read_file, args: {path: '{path}'}}"
LOOK_UPS: Mapping[str, str] = {
    f"tools: {{delete_file: {{{LOOK}}}}}": 'preview: "read_file" has to be a read of this server: add it to reads',
    f"reads: [read_*], tools: {{read_file: {{effect: write}}, delete_file: {{{LOOK}}}}}": "has to be a read",
    f"reads: [read_*], tools: {{delete_file: {{confirm: chat, {LOOK}}}}}": "with confirm: chat it is a text",
    f"reads: [read_*], tools: {{delete_file: {{secret: [path], {LOOK}}}}}": "it would show a secret argument: path",
    "reads: [read_*], tools: {delete_file: {secret: ['*'], preview: '{path}'}}": "a secret argument: path",
    "tools: {delete_file: {preview: {args: {}}}}": "a preview that looks up needs tool",
    "tools: {delete_file: {preview: '{'}}": "preview: it is no template",
    "tools: {delete_file: {descibe: x}}": 'unknown key "descibe" in the tool delete_file; did you mean "describe"?',
}


@pytest.mark.parametrize(("keys", "said"), LOOK_UPS.items())
def test_a_preview_only_calls_a_read_and_shows_no_secret(folder: Path, keys: str, said: str) -> None:  # R2
    with pytest.raises(Misconfigured) as caught:
        load(folder, "{}", f"mcp_servers: {{files: {{command: run, {keys}}}}}")
    assert said in caught.value.message


def test_a_preview_may_call_what_is_declared_to_be_a_read(folder: Path) -> None:  # R2
    tools = f"tools: {{read_file: {{effect: read}}, delete_file: {{{LOOK}}}}}"
    own = load(folder, "{}", f"mcp_servers: {{files: {{command: run, {tools}}}}}").mcp_servers["files"].tools
    assert own["delete_file"].preview == PreviewCall("read_file", {"path": "{path}"})
    with pytest.raises(Misconfigured, match="preview of an action is a text"):
        load(folder, "{}", f"actions: {{hire: {{schema: {{type: object}}, {LOOK}}}}}")


def test_the_configuration_is_shown_as_it_is_written(folder: Path) -> None:
    own = "{describe: 'Delete {path}', effect: destructive}"
    hire = "actions: {hire: {schema: {type: object}, describe: Hire, effect: read}}"
    files = f"mcp_servers: {{files: {{command: run, tools: {{delete_file: {own}}}}}}}"
    shown = load(folder, "{}", f"{hire}\n{files}").public()
    actions, servers = shown["actions"], shown["mcp_servers"]
    assert isinstance(actions, dict)
    assert isinstance(servers, dict)
    assert actions["hire"] == {"schema": {"type": "object"}, "team": "", "describe": "Hire", "effect": "read"}
    assert actions["fund_transfer"]["describe"] == "Transfer {amount} to {recipient!r}"
    assert servers["files"]["tools"] == {"delete_file": {"describe": "Delete {path}", "effect": "destructive"}}
