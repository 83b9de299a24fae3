"""Arguments that do not fit their tool and were taken in all the same: people see why, and nobody approves them."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.card import Finding, visible
from interlock.core.errors import InvalidRequest, Problem


def findings_of(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    """One alarm for each place; unlike other alarms these cannot be acknowledged, only edited away."""
    by_place: dict[str, list[str]] = {}
    for problem in problems:
        by_place.setdefault(problem.pointer, []).append(visible(problem.message))
    return tuple(
        Finding(f"misfit:{pointer}", "misfit", "alarm", pointer, f"Does not fit the tool: {'; '.join(messages)}.")
        for pointer, messages in by_place.items()
    )


def error_of(problems: Sequence[Problem]) -> InvalidRequest:
    """What a program is told whose arguments do not fit."""
    listed = "; ".join(map(str, problems))
    places = [{"pointer": p.pointer, "message": p.message} for p in problems]
    return InvalidRequest(f"The arguments do not fit the tool's schema: {listed}.", problems=places)
