"""Status of channels and deliveries, shared by the command line, the HTTP API and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from interlock.core.errors import Conflict
from interlock.core.notify.delivery import Delivery
from interlock.core.notify.routing import DASHBOARD
from interlock.notify.channel import InboundChannel, ListeningChannel
from interlock.notify.service import NotificationService
from interlock.runtime.durations import optional_rfc3339, rfc3339
from interlock.storage.tables.deliveries import ChannelIdentity, DisabledChannel


class ChannelState(NamedTuple):
    """State of a channel. `due` and `parked` are counted up to 1,000; `error` is of a pending or dead delivery."""

    name: str
    kind: str
    is_default: bool
    priorities: tuple[str, ...]
    teams: tuple[str, ...]
    personal: bool = False
    answers: bool = True
    off: DisabledChannel | None = None
    due: int = 0
    due_since: int | None = None
    parked: int = 0
    last_sent_at: int | None = None
    error: str = ""


async def read_channel_states(notifications: NotificationService) -> list[ChannelState]:
    """Return the channels of the service's workspace. The dashboard is always included."""
    workspace, measures, now = notifications.workspace, notifications.store.metrics, notifications.store.clock()
    switches = await notifications.store.deliveries.disabled_channels()
    off = {switch.channel: switch for switch in switches if switch.workspace == workspace}
    parked = await measures.dead_letter_errors(workspace)
    found = [_channel_state(notifications, DASHBOARD, DASHBOARD)]
    for name, channel in notifications.channels.items():
        waiting, given_up = await measures.channel_backlog(workspace, name, now), parked.get(name, ())
        state = _channel_state(notifications, name, notifications.settings.channels[name].kind)
        found.append(
            state._replace(
                personal=notifications.routes.capabilities[name].personal,
                answers=isinstance(channel, InboundChannel | ListeningChannel)
                and getattr(channel, "takes_answers", True),
                off=off.get(name),
                due=waiting.pending_count,
                due_since=waiting.since,
                parked=len(given_up),
                last_sent_at=await measures.last_sent_at(workspace, name),
                error=waiting.error or (given_up[0] if given_up else ""),
            )
        )
    return found


async def requeue_delivery(notifications: NotificationService, delivery_id: str, by: str) -> Delivery:
    """Requeue a delivery. Raises Conflict if there is nothing to send, or its channel is gone."""
    delivery = await notifications.store.deliveries.get(notifications.workspace, delivery_id)
    if delivery.target.channel not in notifications.channels:
        raise Conflict(f"The channel {delivery.target.channel} no longer exists, so this cannot be sent.")
    return await notifications.store.deliveries.retry(notifications.workspace, delivery_id, by)


def channel_state_json(state: ChannelState, *, errors: bool) -> dict[str, object]:
    """Return a state as JSON; `errors` are only for those who can fix them."""
    off = {"since": rfc3339(state.off.disabled_at), "why": state.off.reason} if state.off else None
    return {
        **state._asdict(),
        "priorities": list(state.priorities),
        "teams": list(state.teams),
        "off": off,
        "due_since": optional_rfc3339(state.due_since),
        "last_sent_at": optional_rfc3339(state.last_sent_at),
        "error": state.error or None if errors else None,
    }


def delivery_json(delivery: Delivery, *, errors: bool) -> dict[str, object]:
    return {
        "id": delivery.id,
        "approval_id": delivery.approval_id or None,
        "channel": delivery.target.channel,
        "person": delivery.target.person or None,
        "place": delivery.target.destination or None,
        "reason": delivery.reason,
        "priority": delivery.priority,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "created_at": rfc3339(delivery.created_at),
        "sent_at": optional_rfc3339(delivery.sent_at),
        "due_at": optional_rfc3339(delivery.due_at),
        "error": delivery.error or None if errors else None,
    }


def identity_json(identity: ChannelIdentity) -> dict[str, object]:
    return {
        "id": identity_id(identity),
        "channel": identity.channel,
        "outside": identity.external_id,
        "user": identity.person,
        "at": rfc3339(identity.at),
    }


def identity_id(identity: ChannelIdentity) -> str:
    """Return an id for URLs: an external id can be any text."""
    return sha256(f"{identity.channel}\n{identity.external_id}".encode()).hexdigest()[:32]


def _channel_state(notifications: NotificationService, name: str, kind: str) -> ChannelState:
    routing = notifications.settings.routing
    priorities, teams = _origins_leading_to(routing.priority_map, name), _origins_leading_to(routing.team_routing, name)
    return ChannelState(name, kind, routing.default_channel == name, priorities, teams)


def _origins_leading_to(channels_by_origin: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    return tuple(origin for origin, channels in channels_by_origin.items() if name in channels)
