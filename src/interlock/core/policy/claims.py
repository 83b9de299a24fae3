"""Claims of callers: what a program says about its own call can only tighten the policy's verdict.

Only tool and arguments are taken as given; every other field of a call with an agent's key is a claim. Such a call is
judged as its program describes it and as the server knows it, and the stricter verdict holds. There is one exception,
while the policy trusts declared effects: the declared effect of an unknown tool counts in both, unless the policy names
the tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import join_terms, stricter_verdict
from interlock.core.call import EFFECTS, SETTINGS, Caller, ToolCall, ToolSpec, stored_caller
from interlock.core.fast_dataclasses import fast_replace
from interlock.core.identity import AGENT, ApiKey
from interlock.core.policy.policy import Allow, Ask, Deny, Policy, Rule, Stage, Verdict, imitation_reason

FillTerms = Callable[[Ask, ToolCall], Ask]  # fills terms that a rule leaves open, for an interface
_new = tuple.__new__  # used for every judgement: a named tuple's constructor takes three times as long
ANY_EFFECT = ("", *EFFECTS)
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
UNKNOWN_REQUESTER_NOTE = (
    "This rule excludes the requester, and who asked is not known for certain: one more person has to approve than the "
    "rule says. A key that is bound to a requester lifts that."
)


_claimed_fields = attrgetter(
    "setting", "requester", "teams", "expires_in", "agent_path", "priority", "switch", "decisions", "thread_id"
)


class Judgement(NamedTuple):
    """A verdict, all possible `interpretations` of the call, `effects` of its tool, and `warnings` for its program."""

    verdict: Verdict
    interpretations: tuple[ToolCall, ...]
    effects: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        return self.effects == ("read",)


def judge(policy: Policy, call: ToolCall, spec: ToolSpec, fill: FillTerms | None = None) -> Judgement:
    if (
        call.caller is None and not spec.declared and not call.pre_check.deny_reason
    ):  # a program with the database: all is known
        verdict = policy.judge(call, spec, spec.effect)
        if isinstance(verdict, Ask) and (fill is not None or verdict.exclude):
            verdict = _require_extra_approver(_fill_terms(verdict, call, fill), call)
        judgement = _new(Judgement, (verdict, (call,), (spec.effect,), ()))
    else:
        judgement = _judge_claims(policy, call, spec, fill)
    if not call.pre_check.ask_reason or isinstance(judgement.verdict, Deny):
        return judgement
    terms = default_terms(policy, call, spec)
    terms = terms if fill is None else fill(terms, call)
    asked = join_terms(judgement.verdict, terms) if isinstance(judgement.verdict, Ask) else terms
    return judgement._replace(verdict=replace(asked, notes=(*asked.notes, call.pre_check.ask_reason)))


def _judge_claims(policy: Policy, call: ToolCall, spec: ToolSpec, fill: FillTerms | None) -> Judgement:
    interpretations = call_interpretations(call)
    effects = possible_effects(policy, interpretations, spec)
    if call.pre_check.deny_reason:
        return Judgement(Deny(call.pre_check.deny_reason), interpretations, effects)
    verdict = strictest_verdict(policy, interpretations, effects, spec, fill)
    if isinstance(verdict, Allow):
        return _new(Judgement, (verdict, interpretations, effects, ()))
    if isinstance(verdict, Ask) and verdict.on_expiry == "approve":  # the program chooses its interface
        ways = tuple(
            fast_replace(interpretation, setting=setting) for interpretation in interpretations for setting in SETTINGS
        )
        verdict = strictest_verdict(policy, ways, effects, spec, fill)
    if isinstance(verdict, Ask) and "reject" not in verdict.decisions:
        verdict = replace(verdict, decisions=(*verdict.decisions, "reject"))
    judgement = Judgement(_require_extra_approver(verdict, call), interpretations, effects)
    warnings = tuple(_warnings(policy, call, spec, judgement))
    return judgement._replace(warnings=warnings) if warnings else judgement


def judge_stored(
    policy: Policy,
    approval: Approval,
    args: bytes,
    spec: ToolSpec,
    teams: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    *,
    removed: bool = False,
) -> Verdict:
    """Judge a stored call by the current policy, with these arguments and as strictly as a new one.

    `teams` and `aliases` are the requester's current ones; a removed requester is not vouched for.
    """
    subject, caller = approval.subject, stored_caller(approval.subject)
    if caller is not None and caller.requester:
        left = replace(caller, requester="", teams=(), requester_is_proven=False)
        caller = left if removed else replace(caller, teams=teams)
    call = ToolCall(
        tool=subject.tool,
        args=args,
        run_id=subject.run_id,
        call_id=subject.call_id,
        workspace=subject.workspace,
        agent=subject.agent,
        agent_path=subject.agent_path,
        thread_id=subject.thread_id,
        requester=subject.requester,
        teams=teams,
        priority=subject.priority,
        aliases=aliases,
        caller=caller,
    )
    return judge(policy, call, spec).verdict


def call_interpretations(call: ToolCall) -> tuple[ToolCall, ...]:
    """The call as its program describes it, and as the server knows it: once for each agent its key may stand for."""
    caller = call.caller
    if caller is None or _claims_nothing(call, caller):
        return (call,)
    known = [
        fast_replace(
            call,
            agent=agent,
            agent_path=(),
            requester=caller.requester,
            teams=caller.teams,
            aliases=call.aliases if caller.requester else (),
            priority="",
            setting=caller.setting,
            switch="",
            expires_in=None,
            decisions=(),
            thread_id="",
        )
        for agent in caller.agents
    ]
    claimed = [call] if call.agent else [fast_replace(call, agent=agent) for agent in caller.agents]
    different = [each for each in claimed if not any(_same_claims(each, other) for other in known)]
    return (*different, *known)


def possible_effects(policy: Policy, interpretations: tuple[ToolCall, ...], spec: ToolSpec) -> tuple[str, ...]:
    """The possible effects: one if it is known or trusted, else all, and then the strictest verdict holds."""
    if not spec.declared:
        return (spec.effect,)
    if not spec.effect:
        return ANY_EFFECT
    for each in policy.layers:
        if not _trusts_declared(each, interpretations):
            return ANY_EFFECT
    return (spec.effect,)


def _trusts_declared(policy: Policy, interpretations: tuple[ToolCall, ...]) -> bool:
    """Whether a declared effect of an unknown tool counts: the policy trusts it, and does not name the tool."""
    defaults = policy.defaults
    if not defaults.trust_declared or defaults.unknown_tools == "deny":
        return False
    return not any(policy.tightens_by_name(interpretation, ANY_EFFECT) for interpretation in interpretations)


def find_denial(policy: Policy, call: ToolCall) -> Deny | None:
    """The denial that precedes all rules: a name that only looks like a known one is no accident."""
    if call.pre_check.deny_reason:
        return Deny(call.pre_check.deny_reason)
    imitated = next(filter(None, (each.find_imitated_name(call) for each in policy.layers)), "")
    return None if not imitated else Deny(imitation_reason(imitated))


def default_terms(policy: Policy, call: ToolCall, spec: ToolSpec) -> Ask:
    """Terms for a call that is asked about although a rule allows it, with the shortest time of all its readings."""
    asked = [
        each.default_terms(interpretation, spec)
        for each in policy.layers
        for interpretation in call_interpretations(call)
    ]
    return reduce(join_terms, asked)


def strictest_verdict(
    policy: Policy,
    interpretations: tuple[ToolCall, ...],
    effects: tuple[str, ...],
    spec: ToolSpec,
    fill: FillTerms | None = None,
) -> Verdict:
    """The strictest verdict over all interpretations and effects.

    Where no rule sets a priority it only decides who is notified, and the call may choose it.
    """
    wanted = interpretations[0].priority
    if len(interpretations) == len(effects) == 1 and fill is None and not wanted:  # most calls
        return policy.judge(interpretations[0], spec, effects[0])
    verdicts = [
        _fill_terms(policy.judge(each, spec, effect), each, fill) for each in interpretations for effect in effects
    ]
    if wanted:
        verdicts = [_with_priority(policy, verdict, wanted) for verdict in verdicts]
    return reduce(stricter_verdict, verdicts)


def _fill_terms(verdict: Verdict, call: ToolCall, fill: FillTerms | None) -> Verdict:
    return fill(verdict, call) if fill is not None and isinstance(verdict, Ask) else verdict


def _with_priority(policy: Policy, verdict: Verdict, priority: str) -> Verdict:
    if not isinstance(verdict, Ask) or any(verdict.rule in each.rules_with_priority for each in policy.layers):
        return verdict
    return replace(verdict, priority=priority)


def _claims_nothing(call: ToolCall, caller: Caller) -> bool:
    """Whether the call as its program describes it is exactly the one that the server knows."""
    known = (caller.agents, caller.setting, caller.requester, caller.teams, None, (), "", "", (), "")
    return ((call.agent,), *_claimed_fields(call)) == known and (not call.aliases or bool(caller.requester))


def _same_claims(call: ToolCall, other: ToolCall) -> bool:
    return (
        call.path == other.path
        and call.requester == other.requester
        and call.teams == other.teams
        and call.priority == other.priority
        and call.setting == other.setting
        and call.switch == other.switch
        and call.expires_in == other.expires_in
        and call.decisions == other.decisions
    )


def _require_extra_approver(verdict: Verdict, call: ToolCall) -> Verdict:
    """Require one more approver if the requester is excluded but unknown: one of the approvers may be the requester."""
    if not isinstance(verdict, Ask) or "requester" not in verdict.exclude or _knows_requester(call):
        return verdict
    stages = tuple(Stage(stage.approvers, stage.quorum + 1) for stage in verdict.stages)
    return replace(verdict, stages=stages, notes=(*verdict.notes, UNKNOWN_REQUESTER_NOTE))


def _knows_requester(call: ToolCall) -> bool:
    return bool(call.requester) if call.caller is None else call.caller.requester_is_proven


def _warnings(policy: Policy, call: ToolCall, spec: ToolSpec, judgement: Judgement) -> Iterator[str]:
    """Why a call is not allowed although a rule or a switch seems to allow it: only because its key is not bound."""
    claimed, known, effects = judgement.interpretations[0], judgement.interpretations[-1], judgement.effects
    if (
        claimed is known
        or STRICTNESS[judgement.verdict.kind] <= STRICTNESS[strictest_verdict(policy, (claimed,), effects, spec).kind]
    ):
        return
    if call.switch == "off":
        yield (
            "switch: off lifts nothing from here. Set tool_approvals for the agent on the server: under agents: in "
            "interlock.yaml, or on the page Agents."
        )
    without = strictest_verdict(policy, (known,), effects, spec)
    for label, changed in _suggested_bindings(call, known):
        if STRICTNESS[strictest_verdict(policy, (changed,), effects, spec).kind] < STRICTNESS[without.kind]:
            yield label


def _suggested_bindings(call: ToolCall, known: ToolCall) -> Iterator[tuple[str, ToolCall]]:
    agent = call.path[-1] if call.path else ""
    if call.path != known.path:
        yield (
            f"A rule for the agent {agent!r} would let this pass, and the key of this call is not bound to it. Bind "
            f"one: interlock keys create --role agent --name NAME --agent {agent}",
            replace(known, agent=call.agent, agent_path=call.agent_path),
        )
    if call.requester != known.requester:
        yield (
            f"A rule for {call.requester!r} or a team of theirs would let this pass, and the key of this call is not "
            f"bound to them. Bind one: interlock keys create --role agent --name NAME --requester {call.requester}",
            replace(known, requester=call.requester, teams=call.teams),
        )


_AGENT = re.compile(r"\bagent\b")
_PERSON = re.compile(r"\b(user|teams)\b")
MAX_NAMED_RULES = 3  # names of rules in a message


def unbound_keys_warning(policy: Policy, keys: Iterable[ApiKey], now: int) -> str:
    """The warning about unbound keys that rules depend on, or ""."""
    tightening = [rule for rule in policy.rules if rule.then != "allow" and not rule.shadow]
    by_agent = [rule.name for rule in tightening if _names_an_agent(rule)]
    by_person = [rule.name for rule in tightening if _names_a_person(rule)]
    loose = [
        key
        for key in keys
        if key.role == AGENT
        and key.is_valid_at(now)
        and ((by_agent and not key.agents) or (by_person and not key.requester))
    ]
    if not loose:
        return ""
    rules = list(dict.fromkeys(by_agent + by_person))
    named = ", ".join(repr(name) for name in rules[:MAX_NAMED_RULES]) + (", …" if len(rules) > MAX_NAMED_RULES else "")
    count = "1 key of an agent is" if len(loose) == 1 else f"{len(loose)} keys of agents are"
    return (
        f"{count} not bound to an agent or a requester, so that a program can say another name than a rule asks or "
        f"denies by ({named}). Make bound ones: interlock keys create --agent NAME --requester NAME|any|none"
    )


def _names_an_agent(rule: Rule) -> bool:
    return any(pattern != "*" for pattern in rule.agents) or bool(_AGENT.search(rule.source))


def _names_a_person(rule: Rule) -> bool:
    patterns = any(pattern != "*" for pattern in rule.users)
    return patterns or bool(rule.teams) or bool(_PERSON.search(rule.source))
