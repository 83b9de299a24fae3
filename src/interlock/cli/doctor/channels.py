"""What `interlock doctor` says of reaching people: the channels, what leads to them, and who would hear nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from interlock.config.models import DASHBOARD, DEFAULT_WORKSPACE, Settings
from interlock.config.yaml import did_you_mean
from interlock.core.approval.vote import DECIDING_ROLES
from interlock.core.call import PRIORITIES
from interlock.core.card import visible
from interlock.core.errors import Misconfigured
from interlock.core.notify.routing import (
    DESTINATION_PREFIX,
    ChannelCapabilities,
    Routes,
    accepting_channels,
    channel_origins,
    find_unreachable,
)
from interlock.core.policy.policy import Policy, Rule
from interlock.core.ports import User
from interlock.notify.channel import ChannelContext, open_channel
from interlock.notify.workspace_channels import make_routes, open_workspace_channels
from interlock.presenters.text import join_or_none
from interlock.storage.engine.metrics import CheckResult

MAX_NAMED = 10  # names that are told
DOES_NOT_START = "Correct it: the server does not start with it."
SECRETS = ("signing_secret", "app_token", "secret", "secrets")  # what proves that an answer is the other side's


async def check_channels(settings: Settings, users: Sequence[User], policy: Policy) -> AsyncIterator[CheckResult]:
    """Of one workspace. Nothing is sent, and no other side is reached: `interlock channels test` does that."""
    means: dict[str, ChannelCapabilities] = {}
    for name, channel in settings.channels.items():
        try:
            made, means[name] = open_channel(
                name, channel.kind, ChannelContext(name, channel.settings, settings.server.public_url)
            )
        except Misconfigured as error:
            yield CheckResult("fail", "channels", error.message, DOES_NOT_START)
        else:
            await made.close()
    if len(means) < len(settings.channels):
        return  # whatever leads to the others is not to be judged without them
    there = [user for user in users if user.removed_at is None]
    for line in _route_checks(settings, make_routes(settings, means), there, policy):
        yield line


async def check_other_workspaces(
    settings: Settings, shown: str, known: Sequence[str] | None = None
) -> AsyncIterator[CheckResult]:
    """Of all workspaces but the one that is shown: whether the server starts with them, and what each lacks.

    `known` are those of the database, if there is one.
    """
    for name in sorted({DEFAULT_WORKSPACE, *settings.workspaces} - {shown}):
        try:
            made = open_workspace_channels(settings.of(name), settings.server.public_url)
        except Misconfigured as error:
            yield CheckResult("fail", "workspaces", f"{name}: {error.message}", DOES_NOT_START)
            continue
        for channel in made.channels.values():
            await channel.close()
        if made.channels:
            yield CheckResult("ok", "workspaces", f"{name} is told by {join_or_none(list(made.channels))}")
    for name in settings.without_channels(known or ()):
        yield CheckResult(
            "warn", "workspaces", f"{name} has no channels: its people look at the page", _where_to_add(name)
        )
    for name in sorted(settings.workspaces.keys() - set(known if known is not None else settings.workspaces)):
        todo = f"Correct the name, or make it: interlock workspaces add {name}"
        yield CheckResult(
            "warn", "workspaces", f"{name} is configured and is not there{did_you_mean(name, known or ())}", todo
        )
    for line in (*_escalations(settings), *_shared_secrets(settings)):
        yield line


def _where_to_add(workspace: str) -> str:
    if workspace == DEFAULT_WORKSPACE:
        return "Name some at the top of interlock.yaml, under channels."
    return f"Name some in interlock.yaml, under workspaces: {workspace}: channels."


def _escalations(settings: Settings) -> Iterator[CheckResult]:
    target = settings.escalation.channel
    if target in ("", DASHBOARD):
        return
    for name in sorted(settings.with_channels()):
        own = settings.of(name)
        if own.escalation.channel not in own.channels and not own.escalation.channel.startswith(DESTINATION_PREFIX):
            found = f"escalation.channel is {target}, which {name} does not have"
            yield CheckResult("warn", "workspaces", found, "What is escalated there goes where its calls go.")


def _shared_secrets(settings: Settings) -> Iterator[CheckResult]:
    """A secret that two workspaces know proves nothing about which of them is meant."""
    holders: dict[str, set[str]] = {}
    for workspace in sorted(settings.with_channels()):
        for name, channel in settings.of(workspace).channels.items():
            for value in (channel.settings[key] for key in SECRETS if key in channel.settings):
                for secret in value if isinstance(value, list | tuple) else (value,):
                    if isinstance(secret, str) and secret:
                        holders.setdefault(secret, set()).add(f"{workspace}/{name}")
    for names in sorted({tuple(sorted(each)) for each in holders.values()}):
        if len({name.partition("/")[0] for name in names}) > 1:
            todo = "Give each workspace a secret, or an app, of its own."
            yield CheckResult("warn", "workspaces", f"{join_or_none(list(names))} have the same secret", todo)


def _route_checks(settings: Settings, routes: Routes, people: Sequence[User], policy: Policy) -> Iterator[CheckResult]:
    if not routes.means:
        yield CheckResult("ok", "channels", "none: people look at the page")
    leads = _routes_by_channel(routes, policy)
    for name, origin in leads.items():
        found = f"{name} ({settings.channels[name].kind}): {'; '.join(origin) or 'nothing leads to it'}"
        todo = "" if origin else "Name it in routing or escalation, or in the channels of a rule."
        yield CheckResult("ok" if origin else "warn", "channels", found, todo)
    missing = find_unreachable(routes)
    for gap in missing:
        yield CheckResult("fail", "routing", gap, "Correct routing: the server does not start with it.")
    if not missing:
        yield CheckResult(
            "ok", "routing", "; ".join(f"{name} to {_channels_text(routes, name)}" for name in PRIORITIES)
        )
        yield from _teams(routes, people)
    yield from _idle_rules(routes, policy)
    yield from _unreachable(routes, leads, people)


def _routes_by_channel(routes: Routes, policy: Policy) -> dict[str, list[str]]:
    """What leads to each channel, the rules of the policy included."""
    found = channel_origins(routes)
    for rule in _asking_rules(policy):
        for rung in rule.ask.ladder:
            _add(found, rung.channels, f"escalation by the rule {visible(rule.name)}")
        _add(found, rule.ask.channels, f"the rule {visible(rule.name)}")
    for rung in policy.defaults.ladder:
        _add(found, rung.channels, "escalation by the policy")
    return found


def _add(found: dict[str, list[str]], names: Sequence[str], origin: str) -> None:
    for name in names:
        if origin not in found.get(name, [origin]):
            found[name].append(origin)


def _asking_rules(policy: Policy) -> list[Rule]:
    return [rule for rule in policy.rules if rule.then == "ask"]


def _channels_text(routes: Routes, priority: str) -> str:
    return " and ".join(routes.priorities.get(priority) or (routes.default,))


def _teams(routes: Routes, people: Sequence[User]) -> Iterator[CheckResult]:
    teams = sorted({team for user in people for team in user.teams})
    own = [f"{visible(team)} at {' and '.join(routes.ways[team])}" for team in teams if team in routes.ways]
    others = [visible(team) for team in teams if team not in routes.ways]
    said = [*own, *([f"by priority: {join_or_none(others)}"] if others else [])]
    if said:
        yield CheckResult("ok", "routing", f"every team is reached: {'; '.join(said)}")


def _idle_rules(routes: Routes, policy: Policy) -> Iterator[CheckResult]:
    """A rule whose channels do not take its calls: those go where they went without it."""
    for rule in _asking_rules(policy):
        priorities = (rule.ask.priority,) if rule.ask.priority else PRIORITIES
        refused = [p for p in priorities if rule.ask.channels and not accepting_channels(routes, rule.ask.channels, p)]
        if refused:
            found = f"no channel of the rule {visible(rule.name)} takes the priority {', '.join(refused)}"
            yield CheckResult("warn", "routing", found, "Those calls go where other calls of theirs go.")


def _unreachable(routes: Routes, leads: dict[str, list[str]], people: Sequence[User]) -> Iterator[CheckResult]:
    used = [name for name, means in routes.means.items() if means.personal and leads[name]]
    silent = sorted(user.name for user in people if user.role in DECIDING_ROLES and not user.email)
    if used and silent:
        more = f" and {len(silent) - MAX_NAMED} more" if len(silent) > MAX_NAMED else ""
        found = (
            f"{', '.join(map(visible, silent[:MAX_NAMED]))}{more} may decide and cannot be told by {', '.join(used)}"
        )
        yield CheckResult("warn", "routing", found, "Give them an address: interlock users add NAME --email ADDRESS")
