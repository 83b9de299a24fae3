"""Arguments that do not fit their tool and were taken in all the same: people see why, and nobody approves them."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.card import Finding, visible
from interlock.core.errors import Problem


def findings_of(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    """One alarm for each place; unlike other alarms these cannot be acknowledged, only edited away."""
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        by_place.setdefault(problem.pointer, []).append(visible(problem.message))
    return tuple(
        Finding(f"misfit:{pointer}", "misfit", "alarm", pointer, f"Does not fit the tool: {'; '.join(messages)}.")
        for pointer, messages in by_place.items()
    )
