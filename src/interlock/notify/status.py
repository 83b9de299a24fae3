"""How the ways to people stand: the same on the command line, over HTTP and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from interlock.config.models import DASHBOARD
from interlock.core.errors import Conflict
from interlock.core.notify.delivery import Delivery
from interlock.notify.channel import InboundChannel, ListeningChannel
from interlock.notify.service import NotificationService
from interlock.runtime.durations import optional_rfc3339, rfc3339
from interlock.storage.tables.deliveries import ChannelIdentity, DisabledChannel


class ChannelState(NamedTuple):
    """`due` and `parked` are counted up to 1,000; `error` is what went wrong with one that waits, or was given up."""

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


async def read_channel_states(reach: NotificationService) -> list[ChannelState]:
    """Of the workspace that it is for. The dashboard is always there."""
    workspace, measures, now = reach.workspace, reach.store.measures, reach.store.clock()
    switches = await reach.store.deliveries.switches()
    off = {switch.channel: switch for switch in switches if switch.workspace == workspace}
    parked = await measures.parked(workspace)
    found = [_channel_state(reach, DASHBOARD, DASHBOARD)]
    for name, channel in reach.channels.items():
        waiting, given_up = await measures.waiting(workspace, name, now), parked.get(name, ())
        state = _channel_state(reach, name, reach.settings.channels[name].kind)
        found.append(
            state._replace(
                personal=reach.routes.means[name].personal,
                answers=isinstance(channel, InboundChannel | ListeningChannel)
                and getattr(channel, "takes_answers", True),
                off=off.get(name),
                due=waiting.many,
                due_since=waiting.since,
                parked=len(given_up),
                last_sent_at=await measures.last_told(workspace, name),
                error=waiting.error or (given_up[0] if given_up else ""),
            )
        )
    return found


async def requeue_delivery(reach: NotificationService, delivery_id: str, by: str) -> Delivery:
    """Raises Conflict where there is nothing to send, or nothing to send it through."""
    delivery = await reach.store.deliveries.get(reach.workspace, delivery_id)
    if delivery.way.channel not in reach.channels:
        raise Conflict(f"There is no channel {delivery.way.channel} any more, so it cannot be sent.")
    return await reach.store.deliveries.again(reach.workspace, delivery_id, by)


def channel_state_json(state: ChannelState, *, errors: bool) -> dict[str, object]:
    """`errors`: what went wrong is for those who can do something about it."""
    off = {"since": rfc3339(state.off.off_at), "why": state.off.why} if state.off else None
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
        "channel": delivery.way.channel,
        "person": delivery.way.person or None,
        "place": delivery.way.place or None,
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
        "outside": identity.outside,
        "user": identity.person,
        "at": rfc3339(identity.at),
    }


def identity_id(identity: ChannelIdentity) -> str:
    """A name for addresses: what a channel calls somebody can be any text."""
    return sha256(f"{identity.channel}\n{identity.outside}".encode()).hexdigest()[:32]


def _channel_state(reach: NotificationService, name: str, kind: str) -> ChannelState:
    routing = reach.settings.routing
    priorities, teams = _origins_leading_to(routing.priority_map, name), _origins_leading_to(routing.team_routing, name)
    return ChannelState(name, kind, routing.default_channel == name, priorities, teams)


def _origins_leading_to(ways: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    return tuple(origin for origin, channels in ways.items() if name in channels)
