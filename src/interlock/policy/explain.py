"""Explanation of a verdict: every rule in turn, up to the deciding one, and why it did or did not match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from interlock.core.call import ToolCall, ToolSpec
from interlock.core.policy import claims
from interlock.core.policy.policy import Allow, Ask, Deny, Facts, Policy, Rule, Verdict, call_facts, imitation_reason
from interlock.core.policy.rule_index import MatchKey

VerdictSource = Literal["rule", "switch", "default"]
NO_LINES: Mapping[str, int] = {}
EFFECT_WORDS = {"": "as an unknown tool", "read": "as a read", "write": "as a write", "destructive": "as destructive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEvaluation:
    """One evaluated rule; `matched` is about its matchers, `holds` about its condition as well."""

    rule: str
    line: int | None
    then: str
    shadow: bool
    matched: bool
    holds: bool
    why: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        mark = "yes" if self.holds else "no"
        return f'{where}"{self.rule}" ({self.then}{", shadow" if self.shadow else ""}): {mark}, {self.why}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An explanation; `rule` is the deciding rule, or "" if a toggle or a default decided.

    `judged_as` is the interpretation of the call that decided, `notes` are other reasons for the verdict.
    """

    verdict: Verdict
    steps: tuple[RuleEvaluation, ...]
    rule: str
    conclusion: str
    notes: tuple[str, ...] = ()
    judged_as: str = ""

    def lines(self) -> list[str]:
        return [*map(str, self.steps), self.conclusion, *self.notes]


class JudgedInterpretation(NamedTuple):
    """One interpretation of a call with its verdict by one policy."""

    interpretation: ToolCall
    effect: str
    verdict: Verdict

    @property
    def key(self) -> MatchKey:
        call = self.interpretation
        return MatchKey(
            call.tool,
            self.effect,
            path=call.path,
            user=call.requester,
            teams=call.teams,
            priority=call.priority,
            aliases=call.aliases,
        )


@dataclass(frozen=True, slots=True)
class PossibleVerdict:
    """One verdict that a call can get, and its source; `conditional` if it depends on the arguments."""

    verdict: Verdict
    source: VerdictSource
    rule: str = ""
    conditional: bool = False


def explain(
    policy: Policy,
    call: ToolCall,
    spec: ToolSpec,
    lines: Mapping[str, int] = NO_LINES,
    fill: claims.FillTerms | None = None,
) -> Explanation:
    """Explain the deciding interpretation: the call as claimed, or as authenticated by its key."""
    judgement = claims.judge(policy, call, spec, fill)
    if call.pre_check.deny_reason:
        return Explanation(
            verdict=judgement.verdict, steps=(), rule="", conclusion=f"denied: {call.pre_check.deny_reason}"
        )
    told = [_explain_policy(each, judgement, spec, lines if each is policy else NO_LINES) for each in policy.layers]
    (judged, steps, by, why), others = told[0], told[1:]
    for other in others:
        why = f"{why}. The process also applies an older policy file; {other.why}. The stricter verdict counts"
    if call.pre_check.ask_reason and not isinstance(judgement.verdict, Deny):
        why = f"{why}. Asked regardless of the rules, because the tool's declaration differs from its pin"
    notes = (
        *_untrusted_effect_notes(policy, judgement, spec, judged),
        *_joined_rules_notes(policy, judgement, spec, by),
        *_verdict_notes(judgement),
    )
    decides = judged.verdict.kind == judgement.verdict.kind
    return Explanation(verdict=judgement.verdict, steps=steps, rule=by if decides else "", conclusion=why, notes=notes)


class _PolicyExplanation(NamedTuple):
    judged: JudgedInterpretation
    steps: tuple[RuleEvaluation, ...]
    by: str
    why: str


def _explain_policy(
    policy: Policy, judgement: claims.Judgement, spec: ToolSpec, lines: Mapping[str, int]
) -> _PolicyExplanation:
    """Explain one policy's verdict, by the first of the strictest interpretations."""
    ways = _judge_interpretations(policy, judgement, spec)
    judged = max(ways, key=lambda each: claims.STRICTNESS[each.verdict.kind])
    imitated = policy.find_imitated_name(judged.interpretation)
    if imitated:
        return _PolicyExplanation(judged, (), "", f"denied: {imitation_reason(imitated)}")
    steps: list[RuleEvaluation] = []
    facts = call_facts(judged.interpretation, judged.effect)
    for rule in policy.rules:
        steps.append(_evaluate_rule(rule, judged.key, facts, lines.get(rule.name)))
        if steps[-1].holds and not rule.shadow:
            break
    by = steps[-1].rule if steps and steps[-1].holds and not steps[-1].shadow else ""
    return _PolicyExplanation(judged, tuple(steps), by, _conclusion(policy, judged, by))


def _judge_interpretations(policy: Policy, judgement: claims.Judgement, spec: ToolSpec) -> list[JudgedInterpretation]:
    alone = replace(policy, second_policy=None)
    pairs = [(interpretation, effect) for interpretation in judgement.interpretations for effect in judgement.effects]
    return [
        JudgedInterpretation(interpretation, effect, alone.judge(interpretation, spec, effect))
        for interpretation, effect in pairs
    ]


def possible_verdicts(policy: Policy, call: ToolCall, spec: ToolSpec) -> tuple[PossibleVerdict, ...]:
    """Every verdict that such a call can get with any arguments, in the order of the rules."""
    effect = claims.possible_effects(policy, (call,), spec)
    key = MatchKey(
        call.tool,
        effect[0],
        path=call.path,
        user=call.requester,
        teams=call.teams,
        priority=call.priority,
        aliases=call.aliases,
    )
    found: list[PossibleVerdict] = []
    for rule in policy.rules:
        if not rule.shadow and rule.matches(key):
            verdict = replace(policy, rules=(replace(rule, when=None),)).judge(call, spec)
            by: VerdictSource = "switch" if rule.then == "allow" and isinstance(verdict, Ask) else "rule"
            found.append(PossibleVerdict(verdict, by, rule.name, rule.when is not None))
            if rule.when is None:
                return tuple(found)
    verdict = replace(policy, rules=()).judge(call, spec)
    switched = bool(key.effect) and any(key.tool in policy.toggles.get(agent, {}) for agent in key.path)
    return (*found, PossibleVerdict(verdict, "switch" if switched else "default"))


def _untrusted_effect_notes(
    policy: Policy, judgement: claims.Judgement, spec: ToolSpec, judged: JudgedInterpretation
) -> Iterator[str]:
    """Why a declared effect does not count, and the effect that was assumed."""
    if not spec.declared or len(judgement.effects) == 1:
        return
    kinds = "It is judged as an unknown tool, as a read, as a write and as destructive, and the strictest holds"
    here = f"{kinds}: here {EFFECT_WORDS[judged.effect]}."
    if spec.effect:
        reason = _untrusted_reason(policy)
        yield f"What the call declares about its tool ({spec.effect}) is ignored, because {reason}. {here}"
    else:
        yield f"Nobody says what {spec.name} does. {here}"


def _untrusted_reason(policy: Policy) -> str:
    if not all(each.defaults.trust_declared for each in policy.layers):
        return "the policy has trust_declared off"
    if any(each.defaults.unknown_tools == "deny" for each in policy.layers):
        return "the policy refuses unknown tools"
    return "a rule or a switch that asks or denies names the tool"


def _joined_rules_notes(policy: Policy, judgement: claims.Judgement, spec: ToolSpec, by: str) -> Iterator[str]:
    """Other rules that ask as well, for another interpretation or effect: the terms are joined."""
    if not isinstance(judgement.verdict, Ask):
        return
    found = [judged.verdict for each in policy.layers for judged in _judge_interpretations(each, judgement, spec)]
    names = dict.fromkeys(verdict.rule for verdict in found if isinstance(verdict, Ask) and verdict.rule != by)
    if names:
        others = ", ".join(f'the rule "{name}"' if name else "the default" for name in names)
        yield f"By what is known of the call beside what it says, {others} would ask too: the terms are those of all."


def _verdict_notes(judgement: claims.Judgement) -> tuple[str, ...]:
    noted = judgement.verdict.notes if isinstance(judgement.verdict, Ask) else ()
    return (*noted, *judgement.warnings)


def _evaluate_rule(rule: Rule, key: MatchKey, facts: Facts, line: int | None) -> RuleEvaluation:
    miss = _matcher_mismatch(rule, key)
    holds, why = (False, miss) if miss else _evaluate_condition(rule, facts)
    return RuleEvaluation(
        rule=rule.name, line=line, then=rule.then, shadow=rule.shadow, matched=not miss, holds=holds, why=why
    )


def _matcher_mismatch(rule: Rule, key: MatchKey) -> str:
    """The first matcher that does not match, found by trying one matcher at a time."""
    alone = {
        f"its tools do not include {key.tool}": Rule("", rule.then, tools=rule.tools),
        f"its effect is not {key.effect or 'that of an unknown tool'}": Rule("", rule.then, effects=rule.effects),
        f"its agents do not include {' > '.join(key.path) or 'a call without an agent'}": Rule(
            "", rule.then, agents=rule.agents
        ),
        f"its users do not include {key.user or 'nobody'}": Rule("", rule.then, users=rule.users),
        f"its teams do not include {', '.join(key.teams) or 'a person without a team'}": Rule(
            "", rule.then, teams=rule.teams
        ),
        f"its priorities do not include {key.priority or 'a call without a priority'}": Rule(
            "", rule.then, priorities=rule.priorities
        ),
    }
    return next((words for words, part in alone.items() if not part.matches(key)), "")


def _evaluate_condition(rule: Rule, facts: Facts) -> tuple[bool, str]:
    if rule.when is None:
        return True, "it matches and has no condition"
    holds = rule.holds(facts)
    counts = "which counts as true for ask and deny" if holds else "which counts as false for allow"
    try:
        result = rule.when(facts)
    except Exception as error:  # noqa: BLE001  any error is shown to the reader
        return holds, f"its condition failed ({_error_text(error)}), {counts}"
    if isinstance(result, bool) and result != holds:  # another spelling of a name, or the person's e-mail address
        return holds, f"its condition is {str(holds).lower()} for a name as people read it"
    if isinstance(result, bool):
        return holds, f"its condition is {str(result).lower()}"
    return holds, f"its condition gave {type(result).__name__} instead of true or false, {counts}"


def _error_text(error: Exception) -> str:
    words = f"there is no {error}" if isinstance(error, KeyError) else str(error).split(". ")[0]
    return words[:200].rstrip(".")


def _conclusion(policy: Policy, judged: JudgedInterpretation, by: str) -> str:
    match judged.verdict:
        case Allow():
            result = "allowed"
        case Deny(reason):
            result = f"denied: {reason}"
        case Ask():
            result = "asked"
    if by:
        rule = next(rule for rule in policy.rules if rule.name == by)
        switched = isinstance(judged.verdict, Ask) and rule.then == "allow"
        return f'by the rule "{by}": {result}' + (
            f", because {_switch_source(policy, judged)} say so" if switched else ""
        )
    return f"no rule matched; by {_default_source(policy, judged)}: {result}"


def _default_source(policy: Policy, judged: JudgedInterpretation) -> str:
    toggled = any(judged.key.tool in policy.toggles.get(agent, {}) for agent in judged.key.path)
    switched = toggled or judged.interpretation.switch or policy.is_switched_on(judged.key.path, judged.key.tool)
    return (
        _switch_source(policy, judged)
        if switched and judged.effect
        else f"the default for {judged.effect or 'unknown'} tools"
    )


def _switch_source(policy: Policy, judged: JudgedInterpretation) -> str:
    on = policy.is_switched_on(judged.key.path, judged.key.tool)
    return "the call's own switches" if judged.interpretation.switch and not on else "the agent's tool_approvals"
