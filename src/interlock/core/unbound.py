"""Keys that are bound to nobody while a rule asks or denies by a name: the program can say another one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.core.identity import AGENT, Key
from interlock.core.policy import Policy, Rule

_AGENT = re.compile(r"\bagent\b")
_PERSON = re.compile(r"\b(user|teams)\b")
SHOWN = 3  # names of rules in a message


def unbound_keys(policy: Policy, keys: Iterable[Key], now: int) -> str:
    """What to say about them, or nothing."""
    tightening = [rule for rule in policy.rules if rule.then != "allow" and not rule.shadow]
    by_agent = [rule.name for rule in tightening if _names_an_agent(rule)]
    by_person = [rule.name for rule in tightening if _names_a_person(rule)]
    loose = [
        key
        for key in keys
        if key.role == AGENT
        and key.counts_at(now)
        and ((by_agent and not key.agents) or (by_person and not key.requester))
    ]
    if not loose:
        return ""
    rules = list(dict.fromkeys(by_agent + by_person))
    named = ", ".join(repr(name) for name in rules[:SHOWN]) + (", …" if len(rules) > SHOWN else "")
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
