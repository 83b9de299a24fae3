"""An index of rules by matcher, to find the rules that can match a call without scanning all."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from interlock.core.confusables import fold_confusables, fold_pattern

if TYPE_CHECKING:
    from interlock.core.policy.policy import Rule


class MatchKey(NamedTuple):
    """What rules match on without arguments: candidates are cached per key."""

    tool: str
    effect: str
    path: tuple[str, ...]
    user: str
    teams: tuple[str, ...]
    priority: str
    aliases: tuple[str, ...] = ()


class RuleMatch(NamedTuple):
    """What all calls with the same key share.

    `imitated_name` is a name in a rule that a name of the call only looks like. `unconditional_rule` is the first of
    the rules, if it has no condition: then no argument has to be evaluated.
    """

    key: MatchKey
    imitated_name: str
    rules: tuple[Rule, ...]
    unconditional_rule: Rule | None


class RuleIndex:
    """Rules by their most selective matcher, under names as written and folded."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._exact: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._prefix: dict[str, list[int]] = defaultdict(list)
        self._other: list[int] = []
        for number, rule in enumerate(rules):
            self._file(number, rule)

    def _file(self, number: int, rule: Rule) -> None:
        """File a rule by its most selective matcher: tools, else exact agents or users, else as always considered."""
        if rule.tools:
            for pattern in {*rule.tools, *map(fold_pattern, rule.tools)}:
                prefix = _literal_prefix(pattern)
                drawer = self._exact["tool", pattern] if prefix == pattern else self._prefix[prefix]
                drawer.append(number)
            return
        for sort, patterns in (("agent", rule.agents), ("user", rule.users)):
            if patterns and all(_literal_prefix(pattern) == pattern for pattern in patterns):
                for pattern in {*patterns, *map(fold_confusables, patterns)}:
                    self._exact[sort, pattern].append(number)
                return
        self._other.append(number)

    def matching(self, key: MatchKey) -> list[Rule]:
        numbers = {*self._other}
        for user in {each for name in (key.user, *key.aliases) for each in (name, fold_confusables(name))}:
            numbers.update(self._exact.get(("user", user), ()))
        for agent in key.path:
            numbers.update(
                self._exact.get(("agent", agent), ()), self._exact.get(("agent", fold_confusables(agent)), ())
            )
        for tool in (key.tool, fold_confusables(key.tool)):
            numbers.update(self._exact.get(("tool", tool), ()))
            for length in range(len(tool) + 1):
                numbers.update(self._prefix.get(tool[:length], ()))
        return [rule for number in sorted(numbers) if (rule := self._rules[number]).matches(key)]


def drop_unreachable(rules: list[Rule]) -> tuple[Rule, ...]:
    """Drop the rules after one without a condition, which can never be reached."""
    for number, rule in enumerate(rules):
        if rule.when is None:
            return tuple(rules[: number + 1])
    return tuple(rules)


def _literal_prefix(pattern: str) -> str:
    return re.split(r"[*?]", pattern, maxsplit=1)[0]
