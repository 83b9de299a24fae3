"""How two policies differ: rules added, removed, renamed and moved, and what changed in a rule, in the file's words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.core.policy.policy import Ask, Defaults, People, Policy, Rule, Rung, Stage
from interlock.runtime.durations import show_duration

Facets = dict[str, str]  # a key of the policy file, and its value as people read it


@dataclass(frozen=True, slots=True)
class Facet:
    """One key that differs; "" where it is not given."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """Places count from 1; None where the rule is not there. `old_name` is set if it got another name."""

    rule: str
    old_place: int | None
    new_place: int | None
    facets: tuple[Facet, ...] = ()
    moved: bool = False
    old_name: str = ""

    @property
    def kind(self) -> str:
        if self.old_place is None:
            return "added"
        if self.new_place is None:
            return "removed"
        return "renamed" if self.old_name else "changed" if self.facets else "moved"


@dataclass(frozen=True, slots=True)
class Difference:
    """Rules in the order of the new policy; removed ones stand where they stood."""

    rules: tuple[RuleDifference, ...] = ()
    defaults: tuple[Facet, ...] = ()
    agents: tuple[Facet, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.defaults or self.agents)


def compare(old: Policy, new: Policy) -> Difference:
    renamed = _renamed(old, new)
    names = [renamed.get(rule.name, rule.name) for rule in old.rules]
    return Difference(
        tuple(_rules(old, new, names)),
        _facets(defaults_of(old.defaults), defaults_of(new.defaults)),
        _facets(_of_agents(old), _of_agents(new)),
    )


def facets_of(rule: Rule, defaults: Defaults) -> Facets:
    """What a rule says by itself: what it has from the defaults is left out."""
    said = {
        "then": rule.then,
        "tools": ", ".join(rule.tools),
        "effect": ", ".join(sorted(rule.effects)),
        "agents": ", ".join(rule.agents),
        "users": ", ".join(rule.users),
        "teams": ", ".join(sorted(rule.teams)),
        "priorities": ", ".join(sorted(rule.priorities)),
        "when": rule.source,
        "reason": rule.reason,
        "mode": "shadow" if rule.shadow else "",
        **(_of_terms(rule, defaults) if rule.then == "ask" else {}),
    }
    return {key: value for key, value in said.items() if value}


def defaults_of(defaults: Defaults) -> Facets:
    """All of them, whoever said so."""
    return {
        "unknown_tools": defaults.unknown_tools,
        "expires_in": _windows(defaults.expires_in),
        "on_expiry": defaults.on_expiry,
        "undo_window": show_duration(defaults.undo_window),
        "start_within": show_duration(defaults.start_within),
        "remind": _times(defaults.remind),
        "escalate": _ladder(defaults.ladder),
        "trust_declared": str(defaults.trust_declared).lower(),
    }


def _rules(old: Policy, new: Policy, names: Sequence[str]) -> Iterator[RuleDifference]:
    """`names` are those of the old rules, as the new policy calls them."""
    places = {name: place for place, name in enumerate(names)}
    new_names = {rule.name for rule in new.rules}
    moved = _moved([places[rule.name] for rule in new.rules if rule.name in places])
    removed = [place for place, name in enumerate(names) if name not in new_names]
    for place, rule in enumerate(new.rules):
        while removed and removed[0] <= place:
            yield _removed(old, removed.pop(0))
        found = _difference(old, places.get(rule.name), new, place, moved)
        if found.kind != "moved" or found.moved:
            yield found
    for was in removed:
        yield _removed(old, was)


def _removed(old: Policy, place: int) -> RuleDifference:
    rule = old.rules[place]
    return RuleDifference(rule.name, place + 1, None, _facets(facets_of(rule, old.defaults), {}))


def _difference(old: Policy, was: int | None, new: Policy, place: int, moved: frozenset[int]) -> RuleDifference:
    rule = new.rules[place]
    said = facets_of(rule, new.defaults)
    if was is None:
        return RuleDifference(rule.name, None, place + 1, _facets({}, said))
    before = old.rules[was]
    facets = _facets(facets_of(before, old.defaults), said)
    old_name = before.name if before.name != rule.name else ""
    return RuleDifference(rule.name, was + 1, place + 1, facets, was in moved, old_name)


def _renamed(old: Policy, new: Policy) -> Mapping[str, str]:
    """Old name → new name, of rules that are the same but for their name."""
    old_names, new_names = ({rule.name for rule in policy.rules} for policy in (old, new))
    fresh = {_key(rule, new): rule.name for rule in reversed(new.rules) if rule.name not in old_names}
    gone = {_key(rule, old): rule.name for rule in reversed(old.rules) if rule.name not in new_names}
    return {name: fresh[key] for key, name in gone.items() if key in fresh}


def _key(rule: Rule, policy: Policy) -> tuple[tuple[str, str], ...]:
    return tuple(facets_of(rule, policy.defaults).items())


def _moved(places: Sequence[int]) -> frozenset[int]:
    """The fewest old places that explain the new order: all but a longest run that kept its order."""
    tails: list[int] = []
    ranks = []
    for place in places:
        rank = bisect_left(tails, place)
        tails[rank : rank + 1] = [place]
        ranks.append(rank)
    stayed, wanted = set(), len(tails) - 1
    for place, rank in zip(reversed(places), reversed(ranks), strict=True):
        if rank == wanted:
            stayed.add(place)
            wanted -= 1
    return frozenset(places) - stayed


def _facets(old: Facets, new: Facets) -> tuple[Facet, ...]:
    return tuple(
        Facet(key, old.get(key, ""), new.get(key, "")) for key in {**old, **new} if old.get(key, "") != new.get(key, "")
    )


def _of_terms(rule: Rule, defaults: Defaults) -> Facets:
    ask, usual = rule.ask, Ask(priority="")
    terms = {
        "approvers": _stages(ask.stages),
        "exclude": ", ".join(sorted(ask.exclude)),
        "decisions": ", ".join(ask.decisions) if ask.decisions != usual.decisions else "",
        "priority": ask.priority,
        "expires_in": _windows(rule.expires_in),
        "on_expiry": ask.on_expiry if ask.on_expiry != defaults.on_expiry else "",
        "escalate": _ladder(ask.ladder) if ask.ladder != defaults.ladder else "",
        "remind": (_times(ask.remind) or "never") if ask.remind != defaults.remind else "",
        "channels": ", ".join(ask.channels),
    }
    for key in ("undo_window", "start_within"):
        value = getattr(ask, key)
        terms[key] = show_duration(value) if value != getattr(defaults, key) else ""
    return terms


def _of_agents(policy: Policy) -> Facets:
    return {
        f"{agent}.{tool}": str(asks).lower()
        for agent, tools in sorted(policy.toggles.items())
        for tool, asks in sorted(tools.items())
    }


def _stages(stages: tuple[Stage, ...]) -> str:
    return "" if stages == (Stage(),) else ", then ".join(map(_stage, stages))


def _stage(stage: Stage) -> str:
    who = "anybody who may decide" if stage.approvers is None else _people(stage.approvers)
    return f"{stage.quorum} of {who}"


def _people(people: People) -> str:
    return " or ".join([*sorted(people.users), *(f"team {team}" for team in sorted(people.teams))])


def _ladder(ladder: tuple[Rung, ...]) -> str:
    return ", ".join(map(_rung, ladder))


def _rung(rung: Rung) -> str:
    channels = f" by {' and '.join(rung.channels)}" if rung.channels else ""
    return f"after {show_duration(rung.after)} to {_people(rung.to) or 'nobody new'}{channels}"


def _windows(windows: Mapping[str, int]) -> str:
    if len(windows) == 3 and len(set(windows.values())) == 1:
        return show_duration(next(iter(windows.values())))
    return ", ".join(f"{setting} {show_duration(window)}" for setting, window in sorted(windows.items()))


def _times(times: tuple[int, ...]) -> str:
    return ", ".join(show_duration(after) if after else "half of the time" for after in times)
