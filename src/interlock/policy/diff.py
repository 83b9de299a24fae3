"""Diff of two policies: rules added, removed, renamed, moved and changed, in the words of the policy file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.core.policy.policy import Ask, Defaults, EscalationStep, People, Policy, Rule, Stage
from interlock.runtime.durations import format_duration

PolicyFields = dict[str, str]  # a key of the policy file, and its value as people read it


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One key that differs; "" where it is not given."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDifference:
    """A rule that differs; places count from 1, None if the rule is missing. `old_name` is set if it was renamed."""

    rule: str
    old_place: int | None
    new_place: int | None
    changes: tuple[FieldDifference, ...] = ()
    moved: bool = False
    old_name: str = ""

    @property
    def kind(self) -> str:
        if self.old_place is None:
            return "added"
        if self.new_place is None:
            return "removed"
        return "renamed" if self.old_name else "changed" if self.changes else "moved"


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """Rules in the order of the new policy; removed ones are at their old places."""

    rules: tuple[RuleDifference, ...] = ()
    defaults: tuple[FieldDifference, ...] = ()
    agents: tuple[FieldDifference, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.defaults or self.agents)


def diff_policies(old: Policy, new: Policy) -> PolicyDifference:
    renamed = _find_renamed(old, new)
    names = [renamed.get(rule.name, rule.name) for rule in old.rules]
    return PolicyDifference(
        tuple(_rule_differences(old, new, names)),
        _field_differences(defaults_fields(old.defaults), defaults_fields(new.defaults)),
        _field_differences(_agent_fields(old), _agent_fields(new)),
    )


def rule_fields(rule: Rule, defaults: Defaults) -> PolicyFields:
    """The rule's own keys, without those inherited from the defaults."""
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
        **(_terms_fields(rule, defaults) if rule.then == "ask" else {}),
    }
    return {key: value for key, value in said.items() if value}


def defaults_fields(defaults: Defaults) -> PolicyFields:
    """All defaults, given or not."""
    return {
        "unknown_tools": defaults.unknown_tools,
        "expires_in": _windows(defaults.expires_in),
        "on_expiry": defaults.on_expiry,
        "undo_window": format_duration(defaults.undo_window),
        "start_within": format_duration(defaults.start_within),
        "remind": _times(defaults.remind),
        "escalate": _escalation_text(defaults.escalation_steps),
        "trust_declared": str(defaults.trust_declared).lower(),
    }


def _rule_differences(old: Policy, new: Policy, names: Sequence[str]) -> Iterator[RuleDifference]:
    """The differences of rules; `names` are those of the old rules, after renaming."""
    places = {name: place for place, name in enumerate(names)}
    new_names = {rule.name for rule in new.rules}
    moved = _find_moved([places[rule.name] for rule in new.rules if rule.name in places])
    removed = [place for place, name in enumerate(names) if name not in new_names]
    for place, rule in enumerate(new.rules):
        while removed and removed[0] <= place:
            yield _removed_rule(old, removed.pop(0))
        found = _rule_difference(old, places.get(rule.name), new, place, moved)
        if found.kind != "moved" or found.moved:
            yield found
    for was in removed:
        yield _removed_rule(old, was)


def _removed_rule(old: Policy, place: int) -> RuleDifference:
    rule = old.rules[place]
    return RuleDifference(
        rule=rule.name,
        old_place=place + 1,
        new_place=None,
        changes=_field_differences(rule_fields(rule, old.defaults), {}),
    )


def _rule_difference(old: Policy, was: int | None, new: Policy, place: int, moved: frozenset[int]) -> RuleDifference:
    rule = new.rules[place]
    said = rule_fields(rule, new.defaults)
    if was is None:
        return RuleDifference(rule=rule.name, old_place=None, new_place=place + 1, changes=_field_differences({}, said))
    before = old.rules[was]
    facets = _field_differences(rule_fields(before, old.defaults), said)
    old_name = before.name if before.name != rule.name else ""
    return RuleDifference(
        rule=rule.name, old_place=was + 1, new_place=place + 1, changes=facets, moved=was in moved, old_name=old_name
    )


def _find_renamed(old: Policy, new: Policy) -> Mapping[str, str]:
    """Old name → new name, of rules that are the same but for their name."""
    old_names, new_names = ({rule.name for rule in policy.rules} for policy in (old, new))
    fresh = {_key(rule, new): rule.name for rule in reversed(new.rules) if rule.name not in old_names}
    gone = {_key(rule, old): rule.name for rule in reversed(old.rules) if rule.name not in new_names}
    return {name: fresh[key] for key, name in gone.items() if key in fresh}


def _key(rule: Rule, policy: Policy) -> tuple[tuple[str, str], ...]:
    return tuple(rule_fields(rule, policy.defaults).items())


def _find_moved(places: Sequence[int]) -> frozenset[int]:
    """The fewest old places that explain the new order: all but a longest increasing subsequence."""
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


def _field_differences(old: PolicyFields, new: PolicyFields) -> tuple[FieldDifference, ...]:
    return tuple(
        FieldDifference(key, old.get(key, ""), new.get(key, ""))
        for key in {**old, **new}
        if old.get(key, "") != new.get(key, "")
    )


def _terms_fields(rule: Rule, defaults: Defaults) -> PolicyFields:
    ask, usual = rule.ask, Ask(priority="")
    terms = {
        "approvers": _stages(ask.stages),
        "exclude": ", ".join(sorted(ask.exclude)),
        "decisions": ", ".join(ask.decisions) if ask.decisions != usual.decisions else "",
        "priority": ask.priority,
        "expires_in": _windows(rule.expires_in),
        "on_expiry": ask.on_expiry if ask.on_expiry != defaults.on_expiry else "",
        "escalate": _escalation_text(ask.escalation_steps) if ask.escalation_steps != defaults.escalation_steps else "",
        "remind": (_times(ask.remind) or "never") if ask.remind != defaults.remind else "",
        "channels": ", ".join(ask.channels),
    }
    for key in ("undo_window", "start_within"):
        value = getattr(ask, key)
        terms[key] = format_duration(value) if value != getattr(defaults, key) else ""
    return terms


def _agent_fields(policy: Policy) -> PolicyFields:
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


def _escalation_text(escalation_steps: tuple[EscalationStep, ...]) -> str:
    return ", ".join(map(_escalation_step_text, escalation_steps))


def _escalation_step_text(step: EscalationStep) -> str:
    channels = f" by {' and '.join(step.channels)}" if step.channels else ""
    return f"after {format_duration(step.after)} to {_people(step.to) or 'nobody new'}{channels}"


def _windows(windows: Mapping[str, int]) -> str:
    if len(windows) == 3 and len(set(windows.values())) == 1:
        return format_duration(next(iter(windows.values())))
    return ", ".join(f"{setting} {format_duration(window)}" for setting, window in sorted(windows.items()))


def _times(times: tuple[int, ...]) -> str:
    return ", ".join(format_duration(after) if after else "half of the time" for after in times)
