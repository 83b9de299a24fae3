"""The time budget for evaluating conditions on one call, with cached results, so that no time is spent twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.core.call import ToolCall


class ConditionBudget:
    """The budget of one call, over all its interpretations and all rules and grants.

    `spent` is in nanoseconds, as estimated beforehand; `cheap_evaluations` counts those too cheap to estimate. The
    result of a condition is cached by the condition and everything it could see beside the arguments.
    """

    __slots__ = ("_results", "args", "cheap_evaluations", "spent")

    def __init__(self, args: Mapping[str, object]) -> None:
        self.args = args
        self.spent = 0
        self.cheap_evaluations = 0
        self._results: dict[Hashable, tuple[object, Exception | None]] = {}

    def evaluate_once(self, place: Hashable, evaluate: Callable[[], object]) -> object:
        """The result or error of the first evaluation."""
        known = self._results.get(place)
        if known is None:
            known = self._results[place] = _outcome(evaluate)
        result, error = known
        if error is not None:
            raise error.with_traceback(None)  # else it would grow with every raise
        return result


def call_budget(call: ToolCall) -> ConditionBudget:
    """The budget for judging these arguments, shared by all interpretations of the call."""
    budget = call.condition_budgets.get(call.args)
    if budget is None:
        budget = call.condition_budgets[call.args] = ConditionBudget(call.parsed_args)
    return budget


def _outcome(evaluate: Callable[[], object]) -> tuple[object, Exception | None]:
    try:
        return evaluate(), None
    except Exception as error:  # noqa: BLE001  any error is raised again
        return None, error
