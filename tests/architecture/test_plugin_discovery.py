"""Discovery of channels, tool packs and protocols by folder name, as a file or as a folder."""

from __future__ import annotations

from pkgutil import iter_modules

from interlock.chat import tools
from interlock.chat.tool_registry import _modules
from interlock.notify.channel import CHANNEL_KINDS, load_channel_type
from interlock.server import protocols

CHANNELS = ("apprise", "email", "inngest", "pagerduty", "restate", "slack", "teams", "temporal", "webhook")
PACKS = ("ask_human", "cms", "documents", "github", "http", "linear", "okr")
PROTOCOLS = ("ag_ui", "agent_inbox", "ai_sdk", "humanlayer")


def test_every_channel_is_found() -> None:
    assert CHANNEL_KINDS == CHANNELS
    assert all(hasattr(load_channel_type(kind), "connect") for kind in CHANNEL_KINDS)


def test_every_pack_is_found() -> None:
    found = dict(_modules())
    assert tuple(sorted(found)) == PACKS == tuple(sorted(each.name for each in iter_modules(tools.__path__)))
    assert all(hasattr(pack, "read_tools") or hasattr(pack, "write_tools") for pack in found.values())


def test_every_protocol_is_found() -> None:
    assert tuple(sorted(each.name for each in iter_modules(protocols.__path__))) == PROTOCOLS
