"""Policy: ordered rules, first match wins; a verdict is immediate and a pure function.

It is long because a verdict is found by rules, switches and defaults in one order, and that order is the subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, cast

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import MAX_BYTES, canonical, digest, read_canonical
from interlock.core.confusables import fold_confusables, fold_pattern, is_confusable_with, matches_pattern
from interlock.core.decision import KINDS
from interlock.core.declared import declared_effect_hint, unknown_tool_reason
from interlock.core.policy.condition_budget import call_budget
from interlock.core.policy.rule_index import MatchKey, RuleIndex, RuleMatch, drop_unreachable

Facts = Mapping[str, object]
Condition = Callable[[Facts], object]
OnExpiry = Literal["reject", "escalate", "approve"]
VerdictKind = Literal["allow", "deny", "ask"]
FACTS = ("args", "tool", "effect", "agent", "user", "teams", "priority")
BUDGET_FACT = "effort"  # hidden from conditions: the budget of the call, shared by all facts made from it
MAX_CACHED = 10_000
SHORT_ARGS = 2_000  # bytes of arguments over which no condition takes long
HALF_TIME = 0  # as a reminder time: after half of the time to decide


@dataclass(frozen=True, slots=True)
class People:
    users: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()

    def include(self, name: str, teams: frozenset[str]) -> bool:
        return name in self.users or not self.teams.isdisjoint(teams)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: `quorum` different people out of `approvers`; None means the requester and every reviewer."""

    approvers: People | None = None
    quorum: int = 1


@dataclass(frozen=True, slots=True)
class EscalationStep:
    """One escalation step: from `after` milliseconds on, these people may decide too."""

    after: int
    to: People = People()
    channels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ask:
    """The terms on which people decide; snapshotted into the approval, so a later policy cannot loosen them."""

    kind: ClassVar[VerdictKind] = "ask"
    rule: str = ""
    stages: tuple[Stage, ...] = (Stage(),)
    _: KW_ONLY
    exclude: frozenset[str] = frozenset()
    decisions: tuple[str, ...] = KINDS
    priority: str = "medium"
    expires_in: int = 86_400_000
    on_expiry: OnExpiry = "reject"
    escalation_steps: tuple[EscalationStep, ...] = ()
    remind: tuple[int, ...] = ()
    undo_window: int = 8_000
    start_within: int = 3_600_000
    channels: tuple[str, ...] = ()  # where people are notified; empty: as configured
    notes: tuple[str, ...] = ()  # why more is asked than the rule says, for people

    @cached_property
    def snapshot(self) -> bytes:
        return canonical(
            {
                **({"channels": self.channels} if self.channels else {}),
                **({"notes": self.notes} if self.notes else {}),
                "rule": self.rule,
                "stages": [{"approvers": _people_json(s.approvers), "quorum": s.quorum} for s in self.stages],
                "exclude": sorted(self.exclude),
                "decisions": self.decisions,
                "priority": self.priority,
                "expires_in": self.expires_in,
                "on_expiry": self.on_expiry,
                "ladder": [
                    {"after": r.after, "to": _people_json(r.to), "channels": r.channels} for r in self.escalation_steps
                ],
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
    kind: ClassVar[VerdictKind] = "allow"
    rule: str = ""
    start_within: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Deny:
    kind: ClassVar[VerdictKind] = "deny"
    reason: str
    rule: str = ""


Verdict = Allow | Deny | Ask


@dataclass(frozen=True)
class Rule:
    """A rule; empty matchers match everything; `when` is a condition over the call's facts, compiled from `source`."""

    name: str
    then: VerdictKind
    _: KW_ONLY
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

    def matches(self, key: MatchKey) -> bool:
        """Match all but the condition; a tightening rule matches sub-agents, a loosening one needs the whole path."""
        return (
            (not self.effects or key.effect in self.effects)
            and (not self.priorities or key.priority in self.priorities)
            and (not self.teams or not self.teams.isdisjoint(key.teams))
            and self._fits(self.tools, key.tool)
            and any(self._fits(self.users, name) for name in (key.user, *key.aliases))
            and self._matches_path(key.path)
        )

    def _matches_path(self, path: tuple[str, ...]) -> bool:
        if not self.agents:
            return True
        hits = [self._fits(self.agents, agent) for agent in path]
        return bool(hits) and (all(hits) if self.then == "allow" else any(hits))

    def _fits(self, patterns: tuple[str, ...], name: str) -> bool:
        """An allowing rule matches names exactly; the others also match names that look the same."""
        if not patterns or any(matches_pattern(name, pattern) for pattern in patterns):
            return True
        return self.then != "allow" and any(
            matches_pattern(fold_confusables(name), fold_pattern(pattern)) for pattern in patterns
        )

    def names_tool(self, tool: str) -> bool:
        """Whether it names this tool specifically, not all tools."""
        named = tuple(pattern for pattern in self.tools if pattern.strip("*"))
        return bool(named) and self._fits(named, tool)

    def holds(self, facts: Facts) -> bool:
        """Evaluate the condition: one that raises or gives no boolean holds for `deny` and `ask`, never for `allow`.

        It is evaluated with names as written and folded: `allow` needs both, the others one of them. Rules that tighten
        also hold for another name of the same person, such as their e-mail address.
        """
        if self.when is None:
            return True
        written = self._holds(self.when, facts)
        if written == (self.then != "allow"):
            return written
        folded = folded_facts(facts)
        if folded is not facts and self._holds(self.when, folded) != written:
            return not written
        if self.then == "allow" or not facts.get("aliases"):
            return written
        others = [{**facts, "user": name} for name in cast(tuple[str, ...], facts["aliases"])]
        return any(self._holds(self.when, way) for other in others for way in (other, folded_facts(other)))

    def _holds(self, when: Condition, facts: Facts) -> bool:
        try:
            result = when(facts)
        except Exception:  # noqa: BLE001  any error in a condition must tighten, not crash
            return self.then != "allow"
        return result if isinstance(result, bool) else self.then != "allow"


@dataclass(frozen=True, kw_only=True)
class Defaults:
    unknown_tools: Literal["ask", "deny"] = "ask"
    expires_in: Mapping[str, int] = field(
        default_factory=lambda: {"chat": 600_000, "queue": 86_400_000, "paused": 86_400_000}
    )
    on_expiry: OnExpiry = "reject"
    undo_window: int = 8_000
    start_within: int = 3_600_000
    remind: tuple[int, ...] = (HALF_TIME,)
    escalation_steps: tuple[EscalationStep, ...] = ()
    trust_declared: bool = True


@dataclass(frozen=True)
class Policy:
    rules: tuple[Rule, ...] = ()
    defaults: Defaults = Defaults()
    toggles: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    sha256: str = ""
    second_policy: Policy | None = None  # judged by as well: the stricter verdict holds

    def judge(self, call: ToolCall, spec: ToolSpec, effect: str | None = None) -> Verdict:
        """Evaluate the rules for one call, without checking its claims; `effect` None assumes `trusted_effect`."""
        believed = self.trusted_effect(spec) if effect is None else effect
        found = self._match_cache.get(
            (call.tool, believed, call.agent_path, call.agent, call.requester, call.teams, call.priority, call.aliases)
        ) or self._match(call, believed)
        if found.imitated_name:
            verdict: Verdict = Deny(imitation_reason(found.imitated_name))
        elif (rule := found.unconditional_rule or self._first(call, found)) is None:
            verdict = self._default_verdict(call, spec, found.key)
        else:
            verdict = self._apply_rule(rule, call, spec, found.key)
        return (
            verdict if self.second_policy is None else _stricter(verdict, self.second_policy.judge(call, spec, effect))
        )

    @cached_property
    def layers(self) -> tuple[Policy, ...]:
        return (self,) if self.second_policy is None else (self, *self.second_policy.layers)

    @cached_property
    def max_inline_bytes(self) -> int:
        """The maximum size of arguments that may be judged on the event loop."""
        return SHORT_ARGS if any(rule.when for each in self.layers for rule in each.rules) else MAX_BYTES

    @cached_property
    def _allow_verdicts(self) -> Mapping[str, Allow]:
        """The verdict of each allow rule, and of none, made once: most calls get one of them."""
        names = ("", *(rule.name for rule in self.rules if rule.then == "allow"))
        return {name: Allow(name, self.defaults.start_within) for name in names}

    def _apply_rule(self, rule: Rule, call: ToolCall, spec: ToolSpec, key: MatchKey) -> Verdict:
        if rule.then == "deny":
            reason = rule.reason or f"The rule {rule.name!r} forbids {call.tool}."
            if not rule.names_tool(call.tool):  # else it is meant for this tool, vouched for or not
                reason += declared_effect_hint(spec, key.effect, lambda effect: self._match(call, effect).rules)
            return Deny(reason, rule.name)
        if rule.then == "ask":
            return self._terms(rule.ask, rule, call, spec)
        if call.switch == "on" or self.is_switched_on(key.path, call.tool):
            return self._terms(self.default_ask, rule, call, spec)
        return self._allow_verdicts[rule.name]

    def trusted_effect(self, spec: ToolSpec) -> str:
        """The tool's effect that the policy trusts: a claim by an unregistered program may not count."""
        return "" if spec.declared and not self.defaults.trust_declared else spec.effect

    def is_switched_on(self, path: tuple[str, ...], tool: str) -> bool:
        """Whether an agent of the path has its switch for this tool on, under a name that reads the same."""
        return bool(self._switched_on) and any(
            (fold_confusables(agent), fold_confusables(tool)) in self._switched_on for agent in path
        )

    def tightens_by_name(self, call: ToolCall, effects: tuple[str, ...]) -> bool:
        """Whether a rule or a switch that names the tool asks or denies, for any effect that the tool could have."""
        if self.is_switched_on(call.path, call.tool):
            return True
        for effect, rules in self._naming(call, effects):
            facts = call_facts(call, effect)
            if any(rule.holds(facts) for rule in rules):
                return True
        return False

    def find_imitated_name(self, call: ToolCall) -> str:
        """The name in a rule that a name of the call only looks like; empty if there is none."""
        plain = call.tool.isascii() and call.tool == call.tool.strip() and self._plain_names
        if plain and all(name.isascii() and name == name.strip() for name in (call.requester, *call.path)):
            return ""
        given = ((self._names_in_rules["tools"], call.tool), (self._names_in_rules["users"], call.requester))
        for patterns, name in (*given, *((self._names_in_rules["agents"], agent) for agent in call.path)):
            found = next((pattern for pattern in patterns if is_confusable_with(name, pattern)), "")
            if found:
                return found
        return ""

    def shadow_verdicts(self, call: ToolCall, spec: ToolSpec) -> tuple[tuple[str, VerdictKind], ...]:
        """What each shadow rule would have done, had it alone been enforced; those never reached do nothing."""
        if not self._shadow_rules:
            return ()
        found = self._match(call, self.trusted_effect(spec))
        key = found.key
        facts, decider = call_facts(call, key.effect), found.unconditional_rule or self._first(call, found)
        end = len(self.rules) if decider is None else self._rule_positions[id(decider)]
        reached = (rule for place, rule in self._shadow_rules if place < end)
        holding = (rule for rule in reached if rule.matches(key) and rule.holds(facts))
        return tuple((rule.name, self._apply_rule(rule, call, spec, key).kind) for rule in holding)

    @cached_property
    def default_ask(self) -> Ask:
        d = self.defaults
        return Ask(
            "",
            undo_window=d.undo_window,
            start_within=d.start_within,
            on_expiry=d.on_expiry,
            remind=d.remind,
            escalation_steps=d.escalation_steps,
        )

    def default_terms(self, call: ToolCall, spec: ToolSpec) -> Ask:
        """The terms for a call that no rule matches."""
        return self._terms(self.default_ask, None, call, spec)

    def _match(self, call: ToolCall, effect: str) -> RuleMatch:
        """The cached match, or a new one; `judge` reads the cache by itself first, since this is most of its time."""
        rest = (call.requester, call.teams, call.priority, call.aliases)
        place = (call.tool, effect, call.agent_path, call.agent, *rest)
        found = self._match_cache.get(place)
        if found is None:
            if len(self._match_cache) >= MAX_CACHED:
                self._match_cache.clear()
            key = MatchKey(call.tool, effect, call.path, *rest)
            rules = drop_unreachable(self._index.matching(key))
            certain = rules[0] if rules and rules[0].when is None else None
            found = self._match_cache[place] = RuleMatch(key, self.find_imitated_name(call), rules, certain)
        return found

    def _first(self, call: ToolCall, found: RuleMatch) -> Rule | None:
        if not found.rules:
            return None
        facts = call_facts(call, found.key.effect)
        for rule in found.rules:
            if rule.holds(facts):
                return rule
        return None

    def _default_verdict(self, call: ToolCall, spec: ToolSpec, key: MatchKey) -> Verdict:
        if key.effect:
            if not self._asks_by_default(call, key):
                return self._allow_verdicts[""]
        elif self.defaults.unknown_tools == "deny":
            return Deny(unknown_tool_reason(call.tool, spec))
        return self._terms(self.default_ask, None, call, spec)

    def _asks_by_default(self, call: ToolCall, key: MatchKey) -> bool:
        """Combined over the agent path by *or*: a sub-agent can tighten and never loosen."""
        default = key.effect != "read" and call.switch != "off"
        if not self.toggles:
            return default or call.switch == "on"
        toggled = any(self.toggles.get(agent, {}).get(call.tool, default) for agent in key.path or ("",))
        return toggled or call.switch == "on" or self.is_switched_on(key.path, call.tool)

    def _terms(self, ask: Ask, rule: Rule | None, call: ToolCall, spec: ToolSpec) -> Ask:
        """The terms, cached so that the same terms are encoded and hashed once."""
        own = () if spec.declared else spec.decisions  # of a tool that is only declared they are a claim of the call
        key = (id(rule), id(ask), call.setting, call.expires_in, call.priority, own, call.decisions)
        terms = self._terms_cache.get(key)
        if terms is None:
            if len(self._terms_cache) >= MAX_CACHED:
                self._terms_cache.clear()
            terms = self._terms_cache[key] = self._new_terms(ask, rule, call, own)
        return terms

    def _new_terms(self, ask: Ask, rule: Rule | None, call: ToolCall, own: tuple[str, ...]) -> Ask:
        window = {**self.defaults.expires_in, **(rule.expires_in if rule else {})}[call.setting]
        limits = [limit for limit in (own, call.decisions) if limit]
        allowed = tuple(kind for kind in ask.decisions if all(kind in limit for limit in limits))
        priority = ask.priority if rule and rule.then == "ask" and ask.priority else call.priority
        return replace(
            ask,
            rule=rule.name if rule else "",
            decisions=allowed,
            priority=priority or "medium",
            expires_in=window if call.expires_in is None else min(window, call.expires_in),
        )

    @cached_property
    def _terms_cache(self) -> dict[tuple[object, ...], Ask]:
        return {}

    @cached_property
    def _match_cache(self) -> dict[tuple[object, ...], RuleMatch]:
        return {}

    @cached_property
    def _shadow_rules(self) -> tuple[tuple[int, Rule], ...]:
        return tuple((place, rule) for place, rule in enumerate(self.rules) if rule.shadow)

    @cached_property
    def rules_with_priority(self) -> frozenset[str]:
        """The rules that set a priority."""
        return frozenset(rule.name for rule in self.rules if rule.then == "ask" and rule.ask.priority)

    @cached_property
    def _switched_on(self) -> frozenset[tuple[str, str]]:
        on = [(agent, tool) for agent, tools in self.toggles.items() for tool, asks in tools.items() if asks]
        return frozenset((fold_confusables(agent), fold_confusables(tool)) for agent, tool in on)

    @cached_property
    def _names_in_rules(self) -> Mapping[str, tuple[str, ...]]:
        """The names and patterns in the enforced rules, by what they name."""
        rules = [rule for rule in self.rules if not rule.shadow]
        return {
            "tools": tuple({name for rule in rules for name in rule.tools}),
            "users": tuple({name for rule in rules for name in rule.users}),
            "agents": tuple({name for rule in rules for name in rule.agents}),
        }

    @cached_property
    def _plain_names(self) -> bool:
        return all(name.isascii() for names in self._names_in_rules.values() for name in names)

    def _naming(self, call: ToolCall, effects: tuple[str, ...]) -> tuple[tuple[str, tuple[Rule, ...]], ...]:
        """The rules that tighten and name the tool, by effect; effects without any are left out."""
        known = (call.tool, effects, call.path, call.requester, call.teams, call.priority, call.aliases)
        found = self._naming_cache.get(known)
        if found is None:
            if len(self._naming_cache) >= MAX_CACHED:
                self._naming_cache.clear()
            keys = [MatchKey(call.tool, effect, *known[2:]) for effect in effects]
            named = [(key.effect, self._tightening(key)) for key in keys]
            found = self._naming_cache[known] = tuple(each for each in named if each[1])
        return found

    def _tightening(self, key: MatchKey) -> tuple[Rule, ...]:
        found = self._index.matching(key)
        return tuple(rule for rule in found if rule.then != "allow" and rule.names_tool(key.tool))

    @cached_property
    def _naming_cache(self) -> dict[tuple[object, ...], tuple[tuple[str, tuple[Rule, ...]], ...]]:
        return {}

    @cached_property
    def _rule_positions(self) -> dict[int, int]:
        return {id(rule): place for place, rule in enumerate(self.rules)}

    @cached_property
    def _index(self) -> RuleIndex:
        return RuleIndex([rule for rule in self.rules if not rule.shadow])


def parse_terms(snapshot: bytes) -> Ask:
    """The inverse of `Ask.snapshot`."""
    body = cast(dict[str, object], read_canonical(snapshot))
    stages = cast(list[dict[str, object]], body["stages"])
    steps = cast(list[dict[str, object]], body.pop("ladder"))
    body["stages"] = tuple(Stage(_parse_people(s["approvers"]), cast(int, s["quorum"])) for s in stages)
    body["escalation_steps"] = tuple(
        EscalationStep(cast(int, r["after"]), _parse_people(r["to"]) or People(), tuple(cast(list[str], r["channels"])))
        for r in steps
    )
    body["exclude"] = frozenset(cast(list[str], body["exclude"]))
    body["decisions"] = tuple(cast(list[str], body["decisions"]))
    body["remind"] = tuple(cast(list[int], body["remind"]))
    for name in ("channels", "notes"):
        body[name] = tuple(cast(list[str], body.get(name, ())))
    return Ask(**body)  # type: ignore[arg-type]  # the snapshot has exactly these fields; `ladder` is its word for the steps


def call_facts(call: ToolCall, effect: str) -> Facts:
    """The facts that a condition can see; not the clock, so a verdict is reproducible."""
    budget = call_budget(call)
    return {
        "args": budget.args,
        "tool": call.tool,
        "effect": effect,
        "agent": call.path[-1] if call.path else "",
        "user": call.requester,
        "teams": list(call.teams),
        "priority": call.priority,
        "aliases": call.aliases,
        BUDGET_FACT: budget,
    }


def imitation_reason(name: str) -> str:
    return (
        f"A name in this call looks like {name!r} and is not: it has letters of another alphabet, characters that "
        "cannot be seen, or spaces at its ends. Use the exact name."
    )


def mixed_alphabets_reason(mixture: str) -> str:
    return (
        f"A name in this call mixes alphabets within one word, as names do that imitate others: {mixture}. Write each "
        "word in letters of one alphabet."
    )


def folded_facts(facts: Facts) -> Facts:
    """The facts with names folded; the same object if folding changes nothing."""
    tool, agent, user = cast(tuple[str, str, str], (facts["tool"], facts["agent"], facts["user"]))
    names = {"tool": fold_confusables(tool), "agent": fold_confusables(agent), "user": fold_confusables(user)}
    return facts if (tool, agent, user) == tuple(names.values()) else {**facts, **names}


def _stricter(one: Verdict, other: Verdict) -> Verdict:
    from interlock.core.approval.vote import stricter_verdict  # noqa: PLC0415  it imports this module

    return stricter_verdict(one, other)


def _people_json(people: People | None) -> object:
    return None if people is None else {"users": sorted(people.users), "teams": sorted(people.teams)}


def _parse_people(body: object) -> People | None:
    if body is None:
        return None
    parts = cast(dict[str, list[str]], body)
    return People(frozenset(parts["users"]), frozenset(parts["teams"]))
