"""What `interlock doctor` says of reaching people: the channels, what leads to them, and who would hear nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from interlock.channels.channel import Kit, opened
from interlock.configuration import Settings
from interlock.core.call import PRIORITIES
from interlock.core.card import visible
from interlock.core.errors import Misconfigured
from interlock.core.policy import Policy, Rule
from interlock.core.ports import User
from interlock.core.routes import Means, Routes, gaps, origins, taking
from interlock.core.voting import DECIDERS
from interlock.reach import routes_of
from interlock.stores.health import Check
from interlock.words import listed

MANY = 10  # names that are told


async def reaching(settings: Settings, users: Sequence[User], policy: Policy) -> AsyncIterator[Check]:
    """Nothing is sent, and no other side is reached: `interlock channels test` does that."""
    means: dict[str, Means] = {}
    for name, channel in settings.channels.items():
        try:
            made, means[name] = opened(name, channel.kind, Kit(name, channel.settings, settings.server.public_url))
        except Misconfigured as error:
            yield Check("fail", "channels", error.message, "Correct it: the server does not start with it.")
        else:
            await made.close()
    if len(means) < len(settings.channels):
        return  # whatever leads to the others is not to be judged without them
    there = [user for user in users if user.removed_at is None]
    for line in _lines(settings, routes_of(settings, means), there, policy):
        yield line


def _lines(settings: Settings, routes: Routes, people: Sequence[User], policy: Policy) -> Iterator[Check]:
    if not routes.means:
        yield Check("ok", "channels", "none: people look at the page")
    leads = _leads(routes, policy)
    for name, origin in leads.items():
        found = f"{name} ({settings.channels[name].kind}): {'; '.join(origin) or 'nothing leads to it'}"
        todo = "" if origin else "Name it in routing or escalation, or in the channels of a rule."
        yield Check("ok" if origin else "warn", "channels", found, todo)
    missing = gaps(routes)
    for gap in missing:
        yield Check("fail", "routing", gap, "Correct routing: the server does not start with it.")
    if not missing:
        yield Check("ok", "routing", "; ".join(f"{name} to {_where(routes, name)}" for name in PRIORITIES))
        yield from _teams(routes, people)
    yield from _idle_rules(routes, policy)
    yield from _unreachable(routes, leads, people)


def _leads(routes: Routes, policy: Policy) -> dict[str, list[str]]:
    """What leads to each channel, the rules of the policy included."""
    found = origins(routes)
    for rule in _asking(policy):
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


def _asking(policy: Policy) -> list[Rule]:
    return [rule for rule in policy.rules if rule.then == "ask"]


def _where(routes: Routes, priority: str) -> str:
    return " and ".join(routes.priorities.get(priority) or (routes.default,))


def _teams(routes: Routes, people: Sequence[User]) -> Iterator[Check]:
    teams = sorted({team for user in people for team in user.teams})
    own = [f"{visible(team)} at {' and '.join(routes.ways[team])}" for team in teams if team in routes.ways]
    others = [visible(team) for team in teams if team not in routes.ways]
    said = [*own, *([f"by priority: {listed(others)}"] if others else [])]
    if said:
        yield Check("ok", "routing", f"every team is reached: {'; '.join(said)}")


def _idle_rules(routes: Routes, policy: Policy) -> Iterator[Check]:
    """A rule whose channels do not take its calls: those go where they went without it."""
    for rule in _asking(policy):
        priorities = (rule.ask.priority,) if rule.ask.priority else PRIORITIES
        refused = [p for p in priorities if rule.ask.channels and not taking(routes, rule.ask.channels, p)]
        if refused:
            found = f"no channel of the rule {visible(rule.name)} takes the priority {', '.join(refused)}"
            yield Check("warn", "routing", found, "Those calls go where other calls of theirs go.")


def _unreachable(routes: Routes, leads: dict[str, list[str]], people: Sequence[User]) -> Iterator[Check]:
    used = [name for name, means in routes.means.items() if means.personal and leads[name]]
    silent = sorted(user.name for user in people if user.role in DECIDERS and not user.email)
    if used and silent:
        more = f" and {len(silent) - MANY} more" if len(silent) > MANY else ""
        found = f"{', '.join(map(visible, silent[:MANY]))}{more} may decide and cannot be told by {', '.join(used)}"
        yield Check("warn", "routing", found, "Give them an address: interlock users add NAME --email ADDRESS")
