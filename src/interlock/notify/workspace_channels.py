"""The channels of one workspace, as the configuration has them, and the routes that lead to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from typing import NamedTuple
from zoneinfo import ZoneInfo

from interlock.app.bootstrap import Reaching
from interlock.config.models import DASHBOARD, QuietHours, Settings
from interlock.core.errors import Misconfigured
from interlock.core.notify.routing import PLACE, Means, Quiet, Routes, gaps
from interlock.notify.channel import Channel, Kit, kind_of, opened


class WorkspaceChannels(NamedTuple):
    """What one workspace has: its channels by name, and what leads to them."""

    channels: Mapping[str, Channel]
    routes: Routes


def channels_of(settings: Settings, public_url: str) -> WorkspaceChannels:
    """`settings` are those of one workspace. Raises Misconfigured for channels that cannot be right."""
    channels: dict[str, Channel] = {}
    means: dict[str, Means] = {}
    for name, channel in settings.channels.items():
        channels[name], means[name] = opened(name, channel.kind, Kit(name, channel.settings, public_url))
    routes = routes_of(settings, means)
    if missing := gaps(routes):
        raise Misconfigured("Some calls would reach nobody: " + "; ".join(missing) + ". See: interlock doctor")
    return WorkspaceChannels(channels, routes)


def reaching_of(settings: Settings, workspace: str = "default") -> Reaching:
    """Channels are checked once any workspace has some, as teams are. Raises Misconfigured for an unknown kind."""
    own = settings.of(workspace)
    if not settings.with_channels():
        return Reaching(own.routing.reminders)
    places = True in {_has_places(name, channel.kind) for name, channel in own.channels.items()}
    return Reaching(own.routing.reminders, frozenset({DASHBOARD, *own.channels}), places)


def _has_places(name: str, kind: str) -> bool:
    try:
        return kind_of(kind).MEANS.has_places
    except Misconfigured as error:
        raise Misconfigured(f'The channel "{name}": {error.message}') from None


def routes_of(settings: Settings, means: Mapping[str, Means]) -> Routes:
    """Of one workspace. An escalation to a channel that only another one has leads nowhere here."""
    routing, escalation = settings.routing, settings.escalation
    actions = {name: settings.actions[name].team for name in settings.actions if settings.actions[name].team}
    ways = dict(routing.team_routing)
    for action, team in actions.items():
        if team in ways:
            ways.setdefault(action, ways[team])
    return Routes(
        means,
        routing.default_channel,
        routing.priority_map,
        ways,
        _quiet(routing.quiet_hours),
        escalation.channel if escalation.channel in means or escalation.channel.startswith(PLACE) else "",
        escalation.notify_on_expiry,
    )


def _quiet(hours: QuietHours | None) -> Quiet | None:
    if hours is None:
        return None
    return Quiet(time.fromisoformat(hours.start), time.fromisoformat(hours.end), ZoneInfo(hours.timezone))
