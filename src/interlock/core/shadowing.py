"""What rules in shadow mode would have done, as the ledger noted it when the calls were made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from interlock.core.ledger import Entry
from interlock.core.policy import Then
from interlock.core.rehearsal import Turn

VERDICTS: Mapping[str, Then] = {"proposed": "ask", "allowed": "allow", "denied": "deny"}
NOTED = b'"shadow"'  # most entries have no such note, and need not be read


@dataclass(frozen=True, slots=True)
class Shadow:
    """One rule: how many calls it would have decided, and from which verdict to which."""

    rule: str
    calls: int
    turns: Mapping[Turn, int]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Shadows:
    """`calls` were looked at; of `erased` ones nobody knows what the rules noted."""

    calls: int
    erased: int
    rules: tuple[Shadow, ...]


class Shadowing:
    """Fed page by page: memory grows with the rules, not with the ledger."""

    def __init__(self, since: int = 0) -> None:
        self._since = since
        self._calls = self._erased = 0
        self._turns: dict[str, Counter[Turn]] = {}
        self._times: dict[str, tuple[int, int]] = {}

    def feed(self, page: Iterable[Entry]) -> None:
        for entry in page:
            if entry.kind in VERDICTS and entry.at >= self._since:
                self._calls += 1
                self._note(entry)

    def report(self) -> Shadows:
        rules = [
            Shadow(rule, turns.total(), dict(turns.most_common()), *self._times[rule])
            for rule, turns in self._turns.items()
        ]
        return Shadows(self._calls, self._erased, tuple(sorted(rules, key=lambda shadow: (-shadow.calls, shadow.rule))))

    def _note(self, entry: Entry) -> None:
        if entry.content is None:
            self._erased += 1
        elif NOTED in entry.content:
            for rule, then in _noted(entry.content):
                self._turns.setdefault(rule, Counter())[verdict_of(entry), then] += 1
                first, _ = self._times.get(rule, (entry.at, entry.at))
                self._times[rule] = (first, entry.at)


def _noted(content: bytes) -> list[tuple[str, Then]]:
    notes = json.loads(content).get("shadow", [])  # the mark may also stand in a text of the call
    return [(note["rule"], note["then"]) for note in notes]


def verdict_of(entry: Entry) -> Then:
    """What a grant let pass was asked about, as far as the policy goes: the grant was the answer."""
    data = cast(Mapping[str, object], json.loads(entry.data))
    return "ask" if data.get("by") == "grant" else VERDICTS[entry.kind]
