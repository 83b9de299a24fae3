"""Routing of notifications: who is notified of an approval, through which channels and from when on, as pure functions.

Channels: those of the rule; else those of the tool and of the teams that decide next, together with those of the
priority; else the default. A team's Slack destination takes precedence over the channel's own one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from interlock.core.approval import vote as voting
from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import Delegation
from interlock.core.call import PRIORITIES
from interlock.core.chat.thread import is_thread_id
from interlock.core.decision import Reviewer
from interlock.core.notify import delivery
from interlock.core.notify.delivery import Delivery, DeliveryTarget
from interlock.core.policy.policy import EscalationStep

DESTINATION_PREFIX = "#"  # prefix of a destination's name; other names are channels
DASHBOARD = "dashboard"  # the inbox itself: it shows everything, and nothing is sent
MAX_DELIVERIES = 500  # deliveries of one approval; if more people may decide, the others find it in the inbox


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCapabilities:
    """Capabilities of a channel: `personal` messages, or `has_destinations` such as #finance-ops.

    `rate_per_minute` are messages a minute for one recipient. `retry_delays` are seconds before each retry, if the
    channel has its own. `engine` is the engine whose workflows it wakes: those whose run ids begin with that word and a
    colon.
    """

    personal: bool = False
    has_destinations: bool = False
    priorities: frozenset[str] = frozenset(PRIORITIES)
    rate_per_minute: int = 10
    retry_delays: tuple[int, ...] = ()
    engine: str = ""


@dataclass(frozen=True, slots=True)
class QuietPeriod:
    """Times of day between which only urgent messages notify; `end` may be on the next day."""

    start: time
    end: time
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class Routes:
    """Channels and destinations by priority and by team or tool; `capabilities` has all channels."""

    capabilities: Mapping[str, ChannelCapabilities] = field(default_factory=dict)
    default: str = DASHBOARD
    _: KW_ONLY
    priorities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    channels_by_origin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quiet: QuietPeriod | None = None
    escalation: str = ""
    notify_on_expiry: bool = True


@dataclass(frozen=True, slots=True)
class Contact:
    """A member of the workspace; `away` now, and voting now for those in `delegations_to_me`."""

    name: str
    role: str
    teams: frozenset[str]
    _: KW_ONLY
    has_email: bool = True
    away: bool = False
    delegations_to_me: tuple[Delegation, ...] = ()

    def reviewer(self) -> Reviewer:
        return Reviewer(self.name, self.role, teams=self.teams, via="", delegations_to_me=self.delegations_to_me)


def plan_deliveries(
    approval: Approval,
    known: Sequence[Delivery],
    routes: Routes,
    people: Sequence[Contact],
    now: int,
    targets: Mapping[DeliveryTarget, int] | None = None,
) -> Iterator[Delivery]:
    """New and changed deliveries of an approval; a new one has no id yet.

    `targets` are those of `delivery_targets` for the same approval and people, if already computed.
    """
    notify_at, targets = (
        _notify_at(approval, routes.quiet, now),
        delivery_targets(approval, routes, people) if targets is None else targets,
    )
    member_names = {"", *(each.name for each in people)}
    for each in known:
        changed = (
            delivery.update_delivery(each, approval, now, notify_at, targets.get(each.target))
            if each.target.person in member_names
            else delivery.drop(each)
        )
        if changed != each:
            yield changed
    existing_targets = {each.target for each in known}
    fresh = [
        delivery.new_delivery(target, "", approval, "escalated" if escalation_level else "asked", now, notify_at)
        for target, escalation_level in targets.items()
        if target not in existing_targets
    ]
    at = _quiet_until(approval, routes.quiet, now)
    fresh += [
        delivery.new_delivery(target, "", approval, "expired", now, at)
        for target in _expiry_targets(approval, known, routes, people)
    ]
    yield from fresh[: max(0, MAX_DELIVERIES - len(known))]
    yield from _wakeup_deliveries(approval, known, routes, now)


def wakeup_targets(run_id: str, routes: Routes) -> list[DeliveryTarget]:
    """Targets that wake the workflow of a run when its call is decided."""
    engine = run_id.partition(":")[0] if ":" in run_id else ""
    return [
        DeliveryTarget(name)
        for name, capabilities in routes.capabilities.items()
        if engine and capabilities.engine == engine
    ]


def missing_voters(approval: Approval, people: Sequence[Contact]) -> tuple[Contact, ...]:
    """People whose vote is missing: they may decide now and have not.

    Those who are away or have delegated are included only if the others are too few.
    """
    stage = voting.open_stage(approval)
    if stage >= len(approval.terms.stages):
        return ()
    voted = {name for vote in approval.votes for name in (vote.by, vote.on_behalf_of)}
    eligible = [
        each
        for each in people
        if each.name not in voted and _effective_voter(approval, each, stage) not in (None, *voted)
    ]
    delegators = {each.by for each in approval.delegations}
    available = [each for each in eligible if not each.away and each.name not in delegators]
    have = len({vote.on_behalf_of for vote in approval.votes if vote.stage == stage})
    return tuple(available if len(available) >= approval.terms.stages[stage].quorum - have else eligible)


def approval_channels(approval: Approval, routes: Routes) -> tuple[str, ...]:
    """Channels and destinations for a call; one that does not accept its priority is replaced by the next choice."""
    terms = approval.terms
    people = terms.stages[voting.open_stage(approval)].approvers
    found = _routed_channels(routes, approval.subject.tool, *(sorted(people.teams) if people is not None else ()))
    found += routes.priorities.get(terms.priority, ())
    for names in (terms.channels, tuple(dict.fromkeys(found))):
        if accepting_channels(routes, names, terms.priority):
            return names
    return (routes.default,)


def quiet_end(quiet: QuietPeriod, now: int) -> int | None:
    """The end of the current quiet hours; None outside of them."""
    here = datetime.fromtimestamp(now / 1000, UTC).astimezone(quiet.zone)
    clock = here.time()
    over_midnight = quiet.start > quiet.end
    inside = clock >= quiet.start or clock < quiet.end if over_midnight else quiet.start <= clock < quiet.end
    if not inside:
        return None
    day = here.date() + timedelta(days=1) if over_midnight and clock >= quiet.start else here.date()
    end = datetime.combine(day, quiet.end, quiet.zone)
    at = round(end.timestamp() * 1000)
    return at if at > now else round(end.replace(fold=1).timestamp() * 1000)  # clocks set back: the hour is repeated


def find_unreachable(routes: Routes) -> list[str]:
    """Priorities, teams and tools without a channel that accepts them, which would reach nobody."""
    found = []
    for priority in PRIORITIES:
        names = routes.priorities.get(priority) or (routes.default,)
        if not accepting_channels(routes, names, priority):
            found.append(f"no channel of {', '.join(names)} takes the priority {priority}")
    for origin, names in sorted(routes.channels_by_origin.items()):
        refused = [p for p in PRIORITIES if not accepting_channels(routes, (*names, *routes.priorities.get(p, ())), p)]
        if refused:
            found.append(f"no channel of {origin} takes the priority {', '.join(refused)}")
    if routes.escalation and not any(
        accepting_channels(routes, (routes.escalation,), priority) for priority in PRIORITIES
    ):
        found.append(f"the escalation leads to {routes.escalation}, and no channel has such places")
    return found


def channel_origins(routes: Routes) -> dict[str, list[str]]:
    """The routes that lead to each channel, as text."""
    leads = [
        ("everything else", (routes.default,)),
        *((f"the priority {name}", routes.priorities.get(name, ())) for name in PRIORITIES),
        *sorted(routes.channels_by_origin.items()),
        ("escalation", (routes.escalation,)),
    ]
    found: dict[str, list[str]] = {
        name: [f"decisions that {capabilities.engine} waits for"] if capabilities.engine else []
        for name, capabilities in routes.capabilities.items()
    }
    for origin, names in leads:
        for name in names:
            channel = next(iter(_channels_of_any_priority(routes, (name,))), "")
            found.get(channel, []).append(f"{origin} ({name})" if name.startswith(DESTINATION_PREFIX) else origin)
    return found


def accepting_channels(routes: Routes, names: Sequence[str], priority: str) -> list[str]:
    """Channels among the names that accept this priority; a destination counts as its channel."""
    found = [
        _destination_channel(routes, names, priority) if name.startswith(DESTINATION_PREFIX) else name for name in names
    ]
    return [
        name
        for name in dict.fromkeys(found)
        if name == DASHBOARD or (name in routes.capabilities and priority in routes.capabilities[name].priorities)
    ]


def delivery_targets(approval: Approval, routes: Routes, people: Sequence[Contact]) -> dict[DeliveryTarget, int]:
    """All targets that should be notified by now, with the last escalation level that names each, or 0.

    A call of a chat is already shown to the requester; if they may decide it alone, nobody else is notified.
    """
    if approval.status != "pending":
        return {}
    voters = missing_voters(approval, people)
    others = [each for each in voters if not _is_chat_requester(approval, each)]
    default_channels, priority = approval_channels(approval, routes), approval.terms.priority
    found: dict[DeliveryTarget, int] = {}
    for number in range(approval.timers.escalated, 0, -1):
        step = approval.terms.escalation_steps[number - 1]
        step_voters = [each for each in others if step.to.include(each.name, each.teams)]
        targets = [
            *_targets_at(_escalation_channels(step, default_channels, routes), priority, routes, step_voters or others)
        ]
        targets += [target for target in _targets_at(default_channels, priority, routes, step_voters) if target.person]
        found = dict.fromkeys(targets, number) | found
    if not _is_handled_in_chat(approval, voters):
        found = dict.fromkeys(_targets_at(default_channels, priority, routes, others), 0) | found
    return found


def _escalation_channels(step: EscalationStep, default_channels: tuple[str, ...], routes: Routes) -> tuple[str, ...]:
    """Channels of an escalation step: its own; else those of its teams and of escalation; else the default ones."""
    found = _routed_channels(routes, *sorted(step.to.teams)) + ((routes.escalation,) if routes.escalation else ())
    return step.channels or found or default_channels


def _routed_channels(routes: Routes, *names: str) -> tuple[str, ...]:
    return tuple(channel for name in names for channel in routes.channels_by_origin.get(name, ()))


def _targets_at(
    names: Sequence[str], priority: str, routes: Routes, voters: Sequence[Contact]
) -> Iterator[DeliveryTarget]:
    destinations = [name for name in names if name.startswith(DESTINATION_PREFIX)]
    destination_channel = _destination_channel(routes, names, priority) if destinations else ""
    for name in accepting_channels(routes, names, priority):
        if name != DASHBOARD and routes.capabilities[name].personal:
            yield from (DeliveryTarget(name, person=each.name) for each in voters if each.has_email)
        elif name not in (DASHBOARD, destination_channel):
            yield DeliveryTarget(name)
    yield from (DeliveryTarget(destination_channel, destination) for destination in destinations if destination_channel)


def _destination_channel(routes: Routes, names: Iterable[str], priority: str) -> str:
    """The channel of a destination: one of the names if possible, else the first that has destinations."""
    able = [
        name
        for name, capabilities in routes.capabilities.items()
        if capabilities.has_destinations and priority in capabilities.priorities
    ]
    return next((name for name in names if name in able), able[0] if able else "")


def _channels_of_any_priority(routes: Routes, names: Sequence[str]) -> list[str]:
    return [name for priority in PRIORITIES for name in accepting_channels(routes, names, priority)]


def _effective_voter(approval: Approval, contact: Contact, stage: int) -> str | None:
    """Check the person's own vote first, which is fast: there may be thousands of people."""
    if voting.may_vote(approval, contact.name, contact.role, contact.teams, stage):
        return contact.name
    return (
        voting.effective_voter(approval, contact.reviewer(), stage)
        if approval.delegations or contact.delegations_to_me
        else None
    )


def _is_chat_requester(approval: Approval, contact: Contact) -> bool:
    """Whether this person chats with the agent: the card is on their screen."""
    return is_thread_id(approval.subject.run_id) and contact.name == approval.subject.requester


def _is_handled_in_chat(approval: Approval, voters: Sequence[Contact]) -> bool:
    """Whether the chat's requester is enough to decide; not if the rule names people or channels."""
    terms = approval.terms
    named = bool(terms.channels) or any(stage.approvers is not None for stage in terms.stages)
    alone = voting.total_quorum(approval) == 1 and any(_is_chat_requester(approval, each) for each in voters)
    return alone and not named


def _expiry_targets(
    approval: Approval, known: Sequence[Delivery], routes: Routes, people: Sequence[Contact]
) -> Iterator[DeliveryTarget]:
    """Targets of the expiry notice: the escalation channel and the requester.

    A target that already has a message about it gets an update of that message instead.
    """
    if not routes.notify_on_expiry or approval.status != "expired":
        return
    if approval.decision is None or approval.decision.kind != "expire":
        return
    names = (routes.escalation,) if routes.escalation else ()
    requester = [each for each in people if each.name == approval.subject.requester]
    requesters = [each for each in requester if not _is_chat_requester(approval, each)]
    usual, priority = (*approval_channels(approval, routes), *names), approval.terms.priority
    targets = [*_targets_at(names, priority, routes, missing_voters(approval, people))]
    targets += [target for target in _targets_at(usual, priority, routes, requesters) if target.person]
    notified_targets = {each.target for each in known if each.sent_state or each.reason == "expired"}
    yield from (target for target in dict.fromkeys(targets) if target not in notified_targets)


def _wakeup_deliveries(approval: Approval, known: Sequence[Delivery], routes: Routes, now: int) -> Iterator[Delivery]:
    """Wake a waiting engine once, when the decision is final; calls decided by the policy or a grant had no wait."""
    decision = approval.decision
    was_awaited = approval.status != "pending" and (
        decision is None or (decision.by != "policy" and decision.via != "grant")
    )
    targets = wakeup_targets(approval.subject.run_id, routes) if was_awaited else []
    woken = {each.target for each in known if each.reason == "woken"}
    at = delivery.decision_final_at(approval, now)
    yield from (
        delivery.new_delivery(target, "", approval, "woken", now, at) for target in targets if target not in woken
    )


def _notify_at(approval: Approval, quiet: QuietPeriod | None, now: int) -> int:
    """When to notify: urgent messages at once, and so calls that would expire during the quiet hours."""
    end = _quiet_until(approval, quiet, now)
    return now if end >= approval.deadlines.expires_at else end


def _quiet_until(approval: Approval, quiet: QuietPeriod | None, now: int) -> int:
    end = quiet_end(quiet, now) if quiet is not None else None
    return now if end is None or approval.terms.priority == "high" or approval.timers.escalated else end
