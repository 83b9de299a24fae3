"""Ordered rules, first match wins: a verdict is a machine's, immediate and pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, cast

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import canonical, digest, read
from interlock.core.decision import KINDS

Facts = Mapping[str, object]
Condition = Callable[[Facts], object]
OnExpiry = Literal["reject", "escalate", "approve"]
Then = Literal["allow", "deny", "ask"]
FACTS = ("args", "tool", "effect", "agent", "user", "teams", "priority")
MEMO = 10_000


@dataclass(frozen=True, slots=True)
class People:
    users: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()

    def include(self, name: str, teams: frozenset[str]) -> bool:
        return name in self.users or not self.teams.isdisjoint(teams)


@dataclass(frozen=True, slots=True)
class Stage:
    """`quorum` different people out of `approvers`; None means the requester and every reviewer."""

    approvers: People | None = None
    quorum: int = 1


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of an escalation ladder: from `after` milliseconds on, these people may decide too."""

    after: int
    to: People = People()
    channels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """The terms on which people decide; snapshotted into the approval, so a later policy cannot loosen them."""

    kind: ClassVar[Then] = "ask"
    rule: str = ""
    stages: tuple[Stage, ...] = (Stage(),)
    exclude: frozenset[str] = frozenset()
    decisions: tuple[str, ...] = KINDS
    priority: str = "medium"
    expires_in: int = 300_000
    on_expiry: OnExpiry = "reject"
    ladder: tuple[Rung, ...] = ()
    remind: tuple[int, ...] = ()
    undo_window: int = 8_000
    start_within: int = 3_600_000
    channels: tuple[str, ...] = ()  # where people are told of it; empty: where the configuration says

    @cached_property
    def snapshot(self) -> bytes:
        return canonical(
            {
                **({"channels": self.channels} if self.channels else {}),
                "rule": self.rule,
                "stages": [{"approvers": _people_json(s.approvers), "quorum": s.quorum} for s in self.stages],
                "exclude": sorted(self.exclude),
                "decisions": self.decisions,
                "priority": self.priority,
                "expires_in": self.expires_in,
                "on_expiry": self.on_expiry,
                "ladder": [{"after": r.after, "to": _people_json(r.to), "channels": r.channels} for r in self.ladder],
                "remind": self.remind,
                "undo_window": self.undo_window,
                "start_within": self.start_within,
            }
        )

    @cached_property
    def sha256(self) -> str:
        return digest(self.snapshot)


@dataclass(frozen=True, slots=True)
class Allow:
    kind: ClassVar[Then] = "allow"
    rule: str = ""
    start_within: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Deny:
    kind: ClassVar[Then] = "deny"
    reason: str
    rule: str = ""


Verdict = Allow | Deny | Ask


@dataclass(frozen=True)
class Rule:
    """Empty matchers match everything; `when` is a condition over the facts of the call, compiled from `source`."""

    name: str
    then: Then
    tools: tuple[str, ...] = ()
    effects: frozenset[str] = frozenset()
    agents: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    teams: frozenset[str] = frozenset()
    priorities: frozenset[str] = frozenset()
    when: Condition | None = None
    reason: str = ""
    ask: Ask = Ask()
    expires_in: Mapping[str, int] = field(default_factory=dict)
    shadow: bool = False
    source: str = ""

    def matches(self, key: Key) -> bool:
        """All but the condition. A tightening rule holds for sub-agents; a loosening one needs all of the path."""
        return (
            (not self.effects or key.effect in self.effects)
            and (not self.priorities or key.priority in self.priorities)
            and (not self.teams or not self.teams.isdisjoint(key.teams))
            and _any_glob(self.tools, key.tool)
            and _any_glob(self.users, key.user)
            and self._matches_path(key.path)
        )

    def _matches_path(self, path: tuple[str, ...]) -> bool:
        if not self.agents:
            return True
        hits = [_any_glob(self.agents, agent) for agent in path]
        return bool(hits) and (all(hits) if self.then == "allow" else any(hits))

    def holds(self, facts: Facts) -> bool:
        """A condition that raises or gives no boolean holds for `deny` and `ask`, never for `allow`."""
        if self.when is None:
            return True
        try:
            result = self.when(facts)
        except Exception:  # noqa: BLE001  whatever went wrong in a condition must tighten, not crash
            return self.then != "allow"
        return result if isinstance(result, bool) else self.then != "allow"


class Key(NamedTuple):
    """What rules match on without looking at arguments: candidates are remembered per key."""

    tool: str
    effect: str
    path: tuple[str, ...]
    user: str
    teams: tuple[str, ...]
    priority: str


@dataclass(frozen=True)
class Defaults:
    unknown_tools: Literal["ask", "deny"] = "ask"
    expires_in: Mapping[str, int] = field(
        default_factory=lambda: {"chat": 120_000, "queue": 300_000, "paused": 1_800_000}
    )
    on_expiry: OnExpiry = "reject"
    undo_window: int = 8_000
    start_within: int = 3_600_000
    remind: tuple[int, ...] = ()
    ladder: tuple[Rung, ...] = ()
    trust_declared: bool = True


@dataclass(frozen=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    defaults: Defaults = Defaults()
    toggles: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    sha256: str = ""

    def judge(self, call: ToolCall, spec: ToolSpec) -> Verdict:
        key = self._key(call, spec)
        rule = self._first(call, key)
        return self._without_rule(call, spec, key) if rule is None else self._by(rule, call, spec, key)

    def _by(self, rule: Rule, call: ToolCall, spec: ToolSpec, key: Key) -> Verdict:
        if rule.then == "deny":
            return Deny(rule.reason or f"The rule {rule.name!r} forbids {call.tool}.", rule.name)
        if rule.then == "ask":
            return self._terms(rule.ask, rule, call, spec)
        if call.switch == "on" or any(self.toggles.get(agent, {}).get(call.tool) for agent in key.path):
            return self._terms(self.default_ask, rule, call, spec)
        return Allow(rule.name, self.defaults.start_within)

    def effect(self, spec: ToolSpec) -> str:
        """What the policy believes of a tool's effect: a claim by an unregistered program may not count."""
        return "" if spec.declared and not self.defaults.trust_declared else spec.effect

    def shadows(self, call: ToolCall, spec: ToolSpec) -> tuple[tuple[str, Then], ...]:
        """What each rule in shadow mode would have done, had it alone been enforced; those never reached do nothing."""
        if not self._shadow_rules:
            return ()
        key = self._key(call, spec)
        facts, decider = facts_of(call, key.effect), self._first(call, key)
        end = len(self.rules) if decider is None else self._places[id(decider)]
        reached = (rule for place, rule in self._shadow_rules if place < end)
        holding = (rule for rule in reached if rule.matches(key) and rule.holds(facts))
        return tuple((rule.name, self._by(rule, call, spec, key).kind) for rule in holding)

    @cached_property
    def default_ask(self) -> Ask:
        d = self.defaults
        return Ask(
            "",
            undo_window=d.undo_window,
            start_within=d.start_within,
            on_expiry=d.on_expiry,
            remind=d.remind,
            ladder=d.ladder,
        )

    def _key(self, call: ToolCall, spec: ToolSpec) -> Key:
        return Key(call.tool, self.effect(spec), call.path, call.requester, call.teams, call.priority)

    def _first(self, call: ToolCall, key: Key) -> Rule | None:
        candidates = self._candidates(key)
        if not candidates:
            return None
        if candidates[0].when is None:
            return candidates[0]
        facts = facts_of(call, key.effect)
        for rule in candidates:
            if rule.holds(facts):
                return rule
        return None

    def _without_rule(self, call: ToolCall, spec: ToolSpec, key: Key) -> Verdict:
        if not key.effect and self.defaults.unknown_tools == "deny":
            return Deny(f"{call.tool} is not a known tool.")
        if not key.effect or self._asks_by_default(call, key):
            return self._terms(self.default_ask, None, call, spec)
        return Allow("", self.defaults.start_within)

    def _asks_by_default(self, call: ToolCall, key: Key) -> bool:
        """Folded over the agent path by *or*: a sub-agent can tighten and never loosen."""
        default = key.effect != "read" and call.switch != "off"
        toggled = any(self.toggles.get(agent, {}).get(call.tool, default) for agent in key.path or ("",))
        return toggled or call.switch == "on"

    def _terms(self, ask: Ask, rule: Rule | None, call: ToolCall, spec: ToolSpec) -> Ask:
        """The same terms are one object, so that their snapshot is encoded and hashed once."""
        key = (id(rule), id(ask), call.setting, call.expires_in, call.priority, spec.decisions)
        terms = self._known_terms.get(key)
        if terms is None:
            if len(self._known_terms) >= MEMO:
                self._known_terms.clear()
            terms = self._known_terms[key] = self._new_terms(ask, rule, call, spec)
        return terms

    def _new_terms(self, ask: Ask, rule: Rule | None, call: ToolCall, spec: ToolSpec) -> Ask:
        window = {**self.defaults.expires_in, **(rule.expires_in if rule else {})}[call.setting]
        allowed = tuple(d for d in ask.decisions if not spec.decisions or d in spec.decisions)
        priority = ask.priority if rule and rule.then == "ask" and ask.priority else call.priority
        return replace(
            ask,
            rule=rule.name if rule else "",
            decisions=allowed,
            priority=priority or "medium",
            expires_in=window if call.expires_in is None else min(window, call.expires_in),
        )

    @cached_property
    def _known_terms(self) -> dict[tuple[object, ...], Ask]:
        return {}

    @cached_property
    def _remembered(self) -> dict[Key, tuple[Rule, ...]]:
        return {}

    @cached_property
    def _shadow_rules(self) -> tuple[tuple[int, Rule], ...]:
        return tuple((place, rule) for place, rule in enumerate(self.rules) if rule.shadow)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(rule): place for place, rule in enumerate(self.rules)}

    @cached_property
    def _index(self) -> Index:
        return Index([rule for rule in self.rules if not rule.shadow])

    def _candidates(self, key: Key) -> tuple[Rule, ...]:
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= MEMO:
                self._remembered.clear()
            found = self._remembered[key] = _until_certain(self._index.matching(key))
        return found


class Index:
    """Finds the rules that can match a key without looking at those that cannot."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._exact: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._prefix: dict[str, list[int]] = defaultdict(list)
        self._other: list[int] = []
        for number, rule in enumerate(rules):
            self._file(number, rule)

    def _file(self, number: int, rule: Rule) -> None:
        """Under its most telling matcher: tools, else exact agents or users, else with those that always count."""
        if rule.tools:
            for pattern in rule.tools:
                prefix = _literal_prefix(pattern)
                drawer = self._exact["tool", pattern] if prefix == pattern else self._prefix[prefix]
                drawer.append(number)
            return
        for sort, patterns in (("agent", rule.agents), ("user", rule.users)):
            if patterns and all(_literal_prefix(pattern) == pattern for pattern in patterns):
                for pattern in patterns:
                    self._exact[sort, pattern].append(number)
                return
        self._other.append(number)

    def matching(self, key: Key) -> list[Rule]:
        numbers = {*self._other, *self._exact.get(("tool", key.tool), ()), *self._exact.get(("user", key.user), ())}
        for agent in key.path:
            numbers.update(self._exact.get(("agent", agent), ()))
        for length in range(len(key.tool) + 1):
            numbers.update(self._prefix.get(key.tool[:length], ()))
        return [rule for number in sorted(numbers) if (rule := self._rules[number]).matches(key)]


def terms_of(snapshot: bytes) -> Ask:
    """The inverse of `Ask.snapshot`."""
    body = cast(dict[str, object], read(snapshot))
    stages = cast(list[dict[str, object]], body["stages"])
    rungs = cast(list[dict[str, object]], body["ladder"])
    body["stages"] = tuple(Stage(_people(s["approvers"]), cast(int, s["quorum"])) for s in stages)
    body["ladder"] = tuple(
        Rung(cast(int, r["after"]), _people(r["to"]) or People(), tuple(cast(list[str], r["channels"]))) for r in rungs
    )
    body["exclude"] = frozenset(cast(list[str], body["exclude"]))
    body["decisions"] = tuple(cast(list[str], body["decisions"]))
    body["remind"] = tuple(cast(list[int], body["remind"]))
    body["channels"] = tuple(cast(list[str], body.get("channels", ())))
    return Ask(**body)  # type: ignore[arg-type]  # the snapshot has exactly these fields


def facts_of(call: ToolCall, effect: str) -> Facts:
    """What a condition can look at; it cannot see the clock, so a verdict can be repeated."""
    return {
        "args": call.value,
        "tool": call.tool,
        "effect": effect,
        "agent": call.path[-1] if call.path else "",
        "user": call.requester,
        "teams": list(call.teams),
        "priority": call.priority,
    }


def _until_certain(rules: list[Rule]) -> tuple[Rule, ...]:
    """Nothing behind a rule without a condition can ever be reached."""
    for number, rule in enumerate(rules):
        if rule.when is None:
            return tuple(rules[: number + 1])
    return tuple(rules)


def _literal_prefix(pattern: str) -> str:
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]


def _any_glob(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(p == name or re.match(translate(p), name) is not None for p in patterns)


def _people_json(people: People | None) -> object:
    return None if people is None else {"users": sorted(people.users), "teams": sorted(people.teams)}


def _people(body: object) -> People | None:
    if body is None:
        return None
    parts = cast(dict[str, list[str]], body)
    return People(frozenset(parts["users"]), frozenset(parts["teams"]))
