"""What belongs to one workspace: its channels, what leads to them, and what its tools are to know."""

from __future__ import annotations

import re
from dataclasses import fields as dataclass_fields
from zoneinfo import ZoneInfo

from interlock.config.models import (
    DASHBOARD,
    DEFAULT_WORKSPACE,
    PACK_SETTINGS,
    ChannelSettings,
    JsonMapping,
    QuietHoursSettings,
    RoutingSettings,
    WorkspaceSettings,
)
from interlock.config.yaml import Fields, YamlReader, to_plain
from interlock.core.call import PRIORITIES
from interlock.core.errors import InvalidRequest
from interlock.core.identity import check_workspace
from interlock.core.notify.routing import DESTINATION_PREFIX

WORKSPACE_KEYS = tuple(each.name for each in dataclass_fields(WorkspaceSettings))


def read_workspaces(read: YamlReader, top: Fields) -> dict[str, WorkspaceSettings]:
    """Those beside the default one, whose sections stand at the top of the file."""
    found = {}
    for name, item in read.mapping(top, "workspaces").items():
        _check_name(read, name, item.line)
        found[name] = read_workspace_settings(read, read.fields(item, WORKSPACE_KEYS, "a workspace"))
    return found


def read_workspace_settings(read: YamlReader, fields: Fields) -> WorkspaceSettings:
    """`fields` are those of a workspace, or those at the top of the file."""
    channels = _channels(read, fields)
    return WorkspaceSettings(channels, _routing(read, fields, {DASHBOARD, *channels}), _tools(read, fields))


def _check_name(read: YamlReader, name: str, line: int) -> None:
    if name == DEFAULT_WORKSPACE:
        read.complain(line, f"{', '.join(WORKSPACE_KEYS)} of the workspace {name} stand at the top of the file")
    try:
        check_workspace(name)
    except InvalidRequest as error:
        read.complain(line, error.message)


def _routing(read: YamlReader, top: Fields, targets: set[str]) -> RoutingSettings:
    keys = ("default_channel", "priority_map", "team_routing", "quiet_hours", "reminders")
    fields, base = read.section(top, "routing", keys), RoutingSettings()
    priorities = read.section(fields, "priority_map", PRIORITIES)
    teams = read.mapping(fields, "team_routing")
    return RoutingSettings(
        read_target(read, fields, "default_channel", targets) or base.default_channel,
        {name: _targets(read, priorities, name, targets) for name in priorities},
        {name: _targets(read, teams, name, targets) for name in teams},
        _quiet_hours(read, fields),
        _reminders(read, fields),
    )


def read_target(read: YamlReader, fields: Fields, key: str, targets: set[str]) -> str:
    """One channel or place; empty if there is none."""
    found = _targets(read, fields, key, targets)
    if len(found) > 1:
        read.complain(fields[key].line, f"{key} is one channel")
    return found[0] if found else ""


def _reminders(read: YamlReader, fields: Fields) -> tuple[int, ...] | None:
    """An empty list says that there are none."""
    if "reminders" not in fields:
        return None
    return tuple(sorted(read.time(item, "reminders", 1) for item in read.entries(fields, "reminders")))


def _targets(read: YamlReader, fields: Fields, key: str, targets: set[str]) -> tuple[str, ...]:
    """Channels and places; whether there is a channel with places shows when the channels are opened."""
    value = fields[key].value if key in fields else None
    items = [item.value for item in value] if isinstance(value, list) else [value]
    places = [item for item in items if isinstance(item, str) and item.startswith(DESTINATION_PREFIX)]
    return read.texts(fields, key, {*targets, *places}, "channel")


def _quiet_hours(read: YamlReader, fields: Fields) -> QuietHoursSettings | None:
    if "quiet_hours" not in fields:
        return None
    hours = read.section(fields, "quiet_hours", ("from", "to", "timezone"))
    zone = read.text(hours, "timezone", "UTC")
    for key in ("from", "to"):
        if not re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", read.text(hours, key)):
            read.complain(fields["quiet_hours"].line, f"quiet_hours needs {key}: a time of day such as 22:00")
    if "from" in hours and read.text(hours, "from") == read.text(hours, "to"):
        read.complain(fields["quiet_hours"].line, "quiet_hours begin when they end; that is never or always")
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, KeyError):
        read.complain(fields["quiet_hours"].line, f'timezone "{zone}" is not known; it is a name such as Europe/Berlin')
    return QuietHoursSettings(read.text(hours, "from"), read.text(hours, "to"), zone)


def _channels(read: YamlReader, top: Fields) -> dict[str, ChannelSettings]:
    channels = {}
    for name, item in read.mapping(top, "channels").items():
        fields = read.mapping({name: item}, name)
        if "kind" not in fields:
            read.complain(item.line, f'the channel "{name}" needs a kind, such as slack, email or webhook')
        settings = plain_mapping({key: inner for key, inner in fields.items() if key != "kind"})
        channels[name] = ChannelSettings(read.text(fields, "kind"), settings)
    return channels


def _tools(read: YamlReader, top: Fields) -> dict[str, JsonMapping]:
    """What each pack is to know; whether it is of the right kind, the pack itself says."""
    entries = read.section(top, "tools", tuple(PACK_SETTINGS))
    return {name: plain_mapping(read.section(entries, name, PACK_SETTINGS[name])) for name in entries}


def plain_mapping(fields: Fields) -> JsonMapping:
    return {key: to_plain(item) for key, item in fields.items()}
