"""How often each rule decided, as the ledger noted it when the calls were made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from interlock.core.ledger import Entry
from interlock.core.policy import Then
from interlock.core.shadowing import VERDICTS, verdict_of


@dataclass(frozen=True, slots=True)
class Matched:
    """One rule, or "" for calls that none decided: how many it allowed, asked about and denied."""

    rule: str
    verdicts: Mapping[Then, int]
    last: int

    @property
    def calls(self) -> int:
        return sum(self.verdicts.values())


class Matching:
    """Fed page by page: memory grows with the rules, not with the ledger."""

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self._verdicts: dict[str, Counter[Then]] = {}
        self._last: dict[str, int] = {}

    def feed(self, page: Iterable[Entry]) -> None:
        for entry in page:
            if entry.kind in VERDICTS and entry.at >= self._since:
                self._note(entry)

    def report(self) -> tuple[Matched, ...]:
        found = (Matched(rule, dict(verdicts), self._last[rule]) for rule, verdicts in self._verdicts.items())
        return tuple(sorted(found, key=lambda matched: (-matched.calls, matched.rule)))

    def _note(self, entry: Entry) -> None:
        rule = str(json.loads(entry.data).get("rule", ""))
        self._verdicts.setdefault(rule, Counter())[verdict_of(entry)] += 1
        self._last[rule] = entry.at
