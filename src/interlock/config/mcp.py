"""The MCP servers of the configuration file."""

from __future__ import annotations

import re
from dataclasses import fields as dataclass_fields
from pathlib import Path
from urllib.parse import urlsplit

from interlock.config.models import TOOL_PACKS, McpServerSettings
from interlock.config.yaml import Fields, YamlNode, YamlReader


def read_mcp_servers(read: YamlReader, top: Fields, folder: Path) -> dict[str, McpServerSettings]:
    keys = [field.name for field in dataclass_fields(McpServerSettings)]
    servers = {}
    for name, item in read.mapping(top, "mcp_servers").items():
        fields = read.fields(item, keys, "an MCP server")
        _check(read, name, item, fields)
        cwd = read.text(fields, "cwd")
        servers[name] = McpServerSettings(
            read.text(fields, "command"),
            tuple(read.one(argument, "args") for argument in read.entries(fields, "args")),
            _read_texts(read, fields, "env"),
            str((folder / cwd).absolute()) if cwd else "",
            read.text(fields, "url"),
            _read_texts(read, fields, "headers"),
            read.text(fields, "prefix"),
            read.texts(fields, "reads"),
            read.texts(fields, "idempotent"),
            read.texts(fields, "workspaces") or McpServerSettings().workspaces,
        )
    return servers


def _check(read: YamlReader, name: str, item: YamlNode, fields: Fields) -> None:
    """Tools are named after it, and a server must not pass for a pack of Interlock's own."""
    prefix = read.text(fields, "prefix", name)
    if ("command" in fields) == ("url" in fields):
        read.complain(item.line, f'the MCP server "{name}" needs a command or a url, and not both')
    if "url" in fields and not _is_http_url(read.text(fields, "url")):
        read.complain(fields["url"].line, "url must begin with https:// or http://")
    foreign = {"command": ("headers",), "url": ("args", "env", "cwd")}
    for key in (key for kind, others in foreign.items() if kind in fields for key in others if key in fields):
        read.complain(fields[key].line, f"{key} does not go with a {'command' if key == 'headers' else 'url'}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", prefix):
        read.complain(item.line, f'"{prefix}" cannot begin the name of a tool: give a prefix of letters and digits')
    if prefix in TOOL_PACKS:
        read.complain(item.line, f'tools named {prefix}_… are Interlock\'s own: give "{name}" a prefix of its own')


def _is_http_url(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _read_texts(read: YamlReader, fields: Fields, key: str) -> dict[str, str]:
    """Names and texts; a number stands for its digits."""
    given = read.mapping(fields, key)
    texts = {
        name: YamlNode(str(item.value), item.line) if type(item.value) is int else item for name, item in given.items()
    }
    return {name: "" if item.value == "" else read.one(item, name) for name, item in texts.items()}
