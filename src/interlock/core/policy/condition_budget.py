"""What the conditions on one call have cost: nothing that a call is judged by gets that time a second time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.core.call import ToolCall


class ConditionBudget:
    """Of one call, in whatever ways it is read and by whatever rules and grants.

    `spent` is in nanoseconds, as counted beforehand; `cheap_evaluations` counts what was not worth that. What a
    condition made of the call is known by the condition and all that it could see beside the arguments, and is not
    found out again.
    """

    __slots__ = ("_results", "args", "cheap_evaluations", "spent")

    def __init__(self, args: Mapping[str, object]) -> None:
        self.args = args
        self.spent = 0
        self.cheap_evaluations = 0
        self._results: dict[Hashable, tuple[object, Exception | None]] = {}

    def evaluate_once(self, place: Hashable, evaluate: Callable[[], object]) -> object:
        """What it gave or raised the first time."""
        known = self._results.get(place)
        if known is None:
            known = self._results[place] = _outcome(evaluate)
        result, error = known
        if error is not None:
            raise error.with_traceback(None)  # else it would grow with every time
        return result


def call_budget(call: ToolCall) -> ConditionBudget:
    """Spent on judging these arguments, in all ways to read the call."""
    budget = call.condition_budgets.get(call.args)
    if budget is None:
        budget = call.condition_budgets[call.args] = ConditionBudget(call.parsed_args)
    return budget


def _outcome(evaluate: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return evaluate(), None
    except Exception as error:  # noqa: BLE001  whatever it is, it is raised again
        return None, error
