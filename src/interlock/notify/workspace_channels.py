"""Configured channels of one workspace, and the routes to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from typing import NamedTuple
from zoneinfo import ZoneInfo

from interlock.app.bootstrap import PolicyChannelSettings
from interlock.config.models import QuietHoursSettings, Settings
from interlock.core.call import DEFAULT_WORKSPACE
from interlock.core.errors import Misconfigured
from interlock.core.notify.routing import (
    DASHBOARD,
    DESTINATION_PREFIX,
    ChannelCapabilities,
    QuietPeriod,
    Routes,
    find_unreachable,
)
from interlock.notify.channel import Channel, ChannelContext, load_channel_type, open_channel
from interlock.runtime.import_path import CodeSource


class WorkspaceChannels(NamedTuple):
    """Channels of one workspace by name, and its routes."""

    channels: Mapping[str, Channel]
    routes: Routes


def open_workspace_channels(settings: Settings, public_url: str) -> WorkspaceChannels:
    """Open the channels of one workspace's `settings`. Raises Misconfigured for invalid ones."""
    channels: dict[str, Channel] = {}
    capabilities: dict[str, ChannelCapabilities] = {}
    for name, channel in settings.channels.items():
        channels[name], capabilities[name] = open_channel(
            name, channel.kind, ChannelContext(name, channel.settings, public_url), settings.origin.code_source
        )
    routes = make_routes(settings, capabilities)
    if missing := find_unreachable(routes):
        raise Misconfigured("Some approvals would notify nobody: " + "; ".join(missing) + ". See: interlock doctor")
    return WorkspaceChannels(channels, routes)


def policy_load_options(settings: Settings, workspace: str = DEFAULT_WORKSPACE) -> PolicyChannelSettings:
    """Return the channels that a policy may name, checked once any workspace has some. Raises Misconfigured."""
    own = settings.for_workspace(workspace)
    if not settings.workspaces_with_channels():
        return PolicyChannelSettings(own.routing.reminders, expires_in=own.expires_in)
    source = own.origin.code_source
    has_destinations = True in {_has_destinations(name, each.kind, source) for name, each in own.channels.items()}
    known = frozenset({DASHBOARD, *own.channels})
    return PolicyChannelSettings(own.routing.reminders, known, has_destinations, own.expires_in)


def _has_destinations(name: str, kind: str, source: CodeSource) -> bool:
    """Whether a policy may name a place in the channel, such as `#leads`; a kind that is not imported may have them."""
    if ":" in kind and not source.is_trusted:
        return True
    try:
        return load_channel_type(kind, source).capabilities.has_destinations
    except Misconfigured as error:
        raise Misconfigured(f'The channel "{name}": {error.message}') from None


def make_routes(settings: Settings, capabilities: Mapping[str, ChannelCapabilities]) -> Routes:
    """Make the routes of one workspace. An escalation to a channel that only another one has leads nowhere."""
    routing, escalation = settings.routing, settings.escalation
    actions = {name: settings.actions[name].team for name in settings.actions if settings.actions[name].team}
    channels_by_origin = dict(routing.team_routing)
    for action, team in actions.items():
        if team in channels_by_origin:
            channels_by_origin.setdefault(action, channels_by_origin[team])
    return Routes(
        capabilities,
        routing.default_channel,
        priorities=routing.priority_map,
        channels_by_origin=channels_by_origin,
        quiet=_quiet_hours(routing.quiet_hours),
        escalation=escalation.channel
        if escalation.channel in capabilities or escalation.channel.startswith(DESTINATION_PREFIX)
        else "",
        notify_on_expiry=escalation.notify_on_expiry,
    )


def _quiet_hours(hours: QuietHoursSettings | None) -> QuietPeriod | None:
    if hours is None:
        return None
    return QuietPeriod(time.fromisoformat(hours.start), time.fromisoformat(hours.end), ZoneInfo(hours.timezone))
