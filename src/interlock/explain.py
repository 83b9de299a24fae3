"""Why a call gets its verdict: every rule in turn, up to the one that decides, and why it did or did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from interlock.core import claims
from interlock.core.call import Caller, ToolCall, ToolSpec, propose
from interlock.core.errors import InvalidRequest
from interlock.core.identity import ANY_REQUESTER, NO_REQUESTER
from interlock.core.policy import Allow, Ask, Deny, Facts, Policy, Rule, Verdict, facts_of
from interlock.core.rule_index import Key
from interlock.durations import parse_duration
from interlock.reading.reader import nearest

By = Literal["rule", "switch", "default"]
NO_LINES: Mapping[str, int] = {}
CALL_KEYS = (
    *("tool", "args", "agent", "agent_path", "initiated_by", "teams", "priority", "setting", "expires_in", "thread_id"),
    *("run_id", "call_id", "agent_says", "key"),
)
KEY_KEYS = ("name", "agents", "requester", "teams")
SPEC_KEYS = ("effect", "schema", "description", "secret", "idempotent", "decisions", "confirm", "declared")
# as `ToolSpec` calls them
RENAMED = {"description": "describe"}


@dataclass(frozen=True, slots=True)
class Step:
    """One rule that was looked at; `matched` is about its matchers, `holds` about its condition as well."""

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


@dataclass(frozen=True, slots=True)
class Explanation:
    """`by` is the rule that decided, or "" when none did and toggle or default spoke."""

    verdict: Verdict
    steps: tuple[Step, ...]
    by: str
    why: str
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        return [*map(str, self.steps), self.why, *self.notes]


@dataclass(frozen=True, slots=True)
class Prospect:
    """One verdict that a call can get, and what gives it; `conditional` if the arguments decide whether it does."""

    verdict: Verdict
    by: By
    rule: str = ""
    conditional: bool = False


def explain(policy: Policy, call: ToolCall, spec: ToolSpec, lines: Mapping[str, int] = NO_LINES) -> Explanation:
    """By the reading of the call that decides: what its program says of it, or what is known of the key."""
    judged = _as_if_asked_by_somebody(claims.judge(policy, call, spec), call)
    reading, effect = _deciding(policy, judged, spec)
    key = Key(reading.tool, effect, reading.path, reading.requester, reading.teams, reading.priority, reading.aliases)
    facts = facts_of(reading, effect)
    steps: list[Step] = []
    for rule in policy.rules:
        steps.append(_step(rule, key, facts, lines.get(rule.name)))
        if steps[-1].holds and not rule.shadow:
            break
    by = steps[-1].rule if steps and steps[-1].holds and not steps[-1].shadow else ""
    imitated = claims.refusal_of(policy, call)
    alone = claims.strictest(replace(policy, also=None), judged.readings, judged.effects, spec)
    why = _conclusion(policy, alone, by, key) if imitated is None else f"denied: {imitated.reason}"
    if policy.also is not None and imitated is None:
        beside = explain(policy.also, call, spec).why
        why = f"{why}. The process has an older policy file, by which it judges too; {beside}. The stricter holds"
    return Explanation(judged.verdict, tuple(steps), "" if imitated else by, why, _notes(judged))


def outlook(policy: Policy, call: ToolCall, spec: ToolSpec) -> tuple[Prospect, ...]:
    """Every verdict that such a call can get, whatever its arguments, by the order of the rules."""
    effect = claims.effects_of(policy, (call,), spec)
    key = Key(call.tool, effect[0], call.path, call.requester, call.teams, call.priority, call.aliases)
    found: list[Prospect] = []
    for rule in policy.rules:
        if not rule.shadow and rule.matches(key):
            verdict = replace(policy, rules=(replace(rule, when=None),)).judge(call, spec)
            by: By = "switch" if rule.then == "allow" and isinstance(verdict, Ask) else "rule"
            found.append(Prospect(verdict, by, rule.name, rule.when is not None))
            if rule.when is None:
                return tuple(found)
    verdict = replace(policy, rules=()).judge(call, spec)
    switched = bool(key.effect) and any(key.tool in policy.toggles.get(agent, {}) for agent in key.path)
    return (*found, Prospect(verdict, "switch" if switched else "default"))


def _deciding(policy: Policy, judged: claims.Judgement, spec: ToolSpec) -> tuple[ToolCall, str]:
    """The first reading and effect whose own verdict is as strict as the one that holds."""
    ways = [(reading, effect) for reading in judged.readings for effect in judged.effects]
    ranks = [claims.RANK[policy.judge(reading, spec, effect).kind] for reading, effect in ways]
    return ways[ranks.index(max(ranks))]


def _as_if_asked_by_somebody(judged: claims.Judgement, call: ToolCall) -> claims.Judgement:
    """A call that is made up and names nobody: a real one has a requester, so that nobody is added for want of one."""
    verdict = judged.verdict
    if call.caller is not None or not isinstance(verdict, Ask) or claims.UNVOUCHED not in verdict.notes:
        return judged
    stages = tuple(replace(stage, quorum=stage.quorum - 1) for stage in verdict.stages)
    notes = tuple(note for note in verdict.notes if note != claims.UNVOUCHED)
    return judged._replace(verdict=replace(verdict, stages=stages, notes=notes))


def _notes(judged: claims.Judgement) -> tuple[str, ...]:
    noted = judged.verdict.notes if isinstance(judged.verdict, Ask) else ()
    return (*noted, *judged.warnings)


def _step(rule: Rule, key: Key, facts: Facts, line: int | None) -> Step:
    miss = _miss(rule, key)
    holds, why = (False, miss) if miss else _condition(rule, facts)
    return Step(rule.name, line, rule.then, rule.shadow, not miss, holds, why)


def _miss(rule: Rule, key: Key) -> str:
    """The first matcher that does not fit, asked of core one matcher at a time."""
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


def _condition(rule: Rule, facts: Facts) -> tuple[bool, str]:
    if rule.when is None:
        return True, "it matches and has no condition"
    holds = rule.holds(facts)
    counts = "which counts as true for ask and deny" if holds else "which counts as false for allow"
    try:
        result = rule.when(facts)
    except Exception as error:  # noqa: BLE001  whatever went wrong is what the reader wants to know
        return holds, f"its condition failed ({_short(error)}), {counts}"
    if isinstance(result, bool):
        return holds, f"its condition is {str(result).lower()}"
    return holds, f"its condition gave {type(result).__name__} instead of true or false, {counts}"


def _short(error: Exception) -> str:
    words = f"there is no {error}" if isinstance(error, KeyError) else str(error).split(". ")[0]
    return words[:200].rstrip(".")


def _conclusion(policy: Policy, verdict: Verdict, by: str, key: Key) -> str:
    match verdict:
        case Allow():
            result = "allowed"
        case Deny(reason):
            result = f"denied: {reason}"
        case Ask():
            result = "asked"
    if by:
        rule = next(rule for rule in policy.rules if rule.name == by)
        switched = isinstance(verdict, Ask) and rule.then == "allow"
        return f'by the rule "{by}": {result}' + (", because the agent's tool_approvals say so" if switched else "")
    toggled = any(key.tool in policy.toggles.get(agent, {}) for agent in key.path)
    source = (
        "the agent's tool_approvals" if toggled and key.effect else f"the default for {key.effect or 'unknown'} tools"
    )
    return f"no rule matched; by {source}: {result}"


# A call that is made up


def read_call(body: object, workspace: str) -> tuple[ToolCall, ToolSpec]:
    """A call that is made up to see what a policy makes of it."""
    if not isinstance(body, Mapping) or not isinstance(body.get("tool"), str):
        raise InvalidRequest('A call is an object such as {"tool": "pay", "args": {"amount": 5}}.')
    for key in body:
        if key not in (*CALL_KEYS, *SPEC_KEYS):
            raise InvalidRequest(f"A call has no {key!r}{nearest(key, (*CALL_KEYS, *SPEC_KEYS))}")
    more = {key: body[key] for key in ("agent", "thread_id", "priority", "setting", "agent_says") if key in body}
    more |= {key: tuple(_texts(body, key)) for key in ("agent_path", "teams") if key in body}
    more |= {"requester": body["initiated_by"]} if "initiated_by" in body else {}
    more |= {"expires_in": parse_duration(str(body["expires_in"]))} if "expires_in" in body else {}
    more |= {"caller": _caller(body["key"])} if "key" in body else {}
    run_id, call_id = str(body.get("run_id", "explain")), str(body.get("call_id", "explain"))
    return propose(body["tool"], body.get("args", {}), run_id, call_id, workspace=workspace, **more), _spec(body)


def _caller(key: object) -> Caller:
    """A key that the call is made with: its `name`, and the `agents` and the `requester` that it is bound to."""
    if not isinstance(key, Mapping) or not isinstance(key.get("name", ""), str) or set(key) - set(KEY_KEYS):
        raise InvalidRequest(f"key of a call is an object with {', '.join(KEY_KEYS)}.")
    agents = tuple(_texts(key, "agents")) if "agents" in key else ()
    teams = tuple(_texts(key, "teams")) if "teams" in key else ()
    bound, owner = str(key.get("requester", "")), "key:explain"
    person = "" if bound in (ANY_REQUESTER, NO_REQUESTER) else bound
    named = agents or (str(key.get("name", "key")),)
    return Caller(
        owner=owner,
        owners=frozenset({owner}),
        agents=named,
        requester=person,
        teams=teams,
        vouched=bool(bound),
    )


def _spec(body: Mapping[str, Any]) -> ToolSpec:
    told = {RENAMED.get(key, key): body[key] for key in SPEC_KEYS if key in body}
    told |= {key: tuple(_texts(body, key)) for key in ("secret", "decisions") if key in body}
    for key, kind in (("schema", dict), ("idempotent", bool), ("declared", bool), ("describe", str)):
        if key in told and not isinstance(told[key], kind):
            raise InvalidRequest(f"{key} of a call is not what it should be: {kind.__name__}.")
    return ToolSpec(body["tool"], **told)


def _texts(body: Mapping[str, Any], key: str) -> list[str]:
    value = body[key]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(f"{key} of a call is a list of texts.")
    return cast(list[str], value)
