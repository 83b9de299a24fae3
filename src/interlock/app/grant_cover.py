"""Which grant covers a call: its condition is looked at before the transaction, and within only whether it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from interlock.core import grant
from interlock.core.approval.propose import Proposal
from interlock.core.errors import Stale
from interlock.core.grant import Amounts, Grant
from interlock.core.ledger.event import Moment
from interlock.core.policy.claims import Judgement
from interlock.core.policy.policy import SHORT_ARGS, Ask
from interlock.core.ports import ConditionCompiler

ConditionResults = Mapping[str, bool]  # whether the conditions of grants hold for a call, by their text


class UnevaluatedConditions(Stale):
    """There are grants whose conditions were not evaluated: that is not done while others wait for the ledger."""

    def __init__(self, conditions: Sequence[str]) -> None:
        super().__init__("There are new grants. Look again.")
        self.conditions = conditions


async def evaluate_conditions(
    conditions: Sequence[str], judged: Judgement, compile_condition: ConditionCompiler
) -> ConditionResults:
    """Within what all conditions on a call may take together."""

    def held() -> ConditionResults:
        ways = (judged.readings, judged.effects, compile_condition)
        return {when: grant.condition_holds(when, *ways) for when in conditions}

    return held() if len(judged.readings[0].args) <= SHORT_ARGS else await asyncio.to_thread(held)


def find_covering_grant(
    proposal: Proposal, terms: Ask, judged: Judgement, grants: Sequence[Grant], held: ConditionResults, moment: Moment
) -> Grant | None:
    """Inside the transaction: whether a grant still stands, and not what its condition says of the call."""
    scope = (proposal.spec, terms, moment.now)
    meant = [each for each in grants if all(grant.covers_scope(each, reading, *scope) for reading in judged.readings)]
    conditions = {each.when for each in meant if each.when}
    if not conditions <= held.keys():
        raise UnevaluatedConditions(sorted(conditions))
    amounts = Amounts(proposal.shown.data)
    holding = (each for each in meant if not each.when or held[each.when])
    return next((each for each in holding if grant.has_budget_for(each, amounts)), None)
