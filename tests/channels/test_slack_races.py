"""Slack and the page decide the same call at the same moment: one of them has, and both show it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from interlock.core.decision import Acknowledgement, Reject, Reviewer
from interlock.core.errors import AlreadyDecided
from tests.channels.slack_scenario import SlackScenario, open_slack_scenario
from tests.databases import Database
from tests.fakes.slack import buttons
from tests.support import Clock

ROUNDS = 12
EVE = Reviewer("eve", "reviewer", teams=frozenset(), via="web")
LATE = "Already decided: eve (reject). Nothing was changed."


@pytest.fixture
async def scenario(database: Database, clock: Clock) -> AsyncIterator[SlackScenario]:
    async with open_slack_scenario(database, clock, per_minute=100) as made:
        yield made


@pytest.mark.postgres_smoke
async def test_of_slack_and_the_page_one_decides_and_both_show_it(scenario: SlackScenario) -> None:  # R24 R25 R41
    winners = set()
    for number in range(ROUNDS):
        approval_id = await scenario.ask(number)
        message = scenario.slack.all_messages[-1]
        scenario.slack.ephemerals.clear()

        async def on_the_page(call: str = approval_id, wait: int = number % 4) -> bool:
            for _ in range(wait * 10):  # so that each wins now and then
                await asyncio.sleep(0)
            digest = (await scenario.services.store.get("default", call)).approval.args_sha256
            try:
                await scenario.services.inbox.decide("default", call, Reject("no", Acknowledgement(digest)), EVE)
            except AlreadyDecided:
                return False
            return True

        won, clicked = await asyncio.gather(on_the_page(), scenario.click("bob", "approve", message))
        assert (clicked.status_code, clicked.content) == (200, b"")
        decision = await scenario.decision(approval_id)
        assert decision == (("reject", "eve", "web") if won else ("approve", "bob", "slack"))
        assert scenario.ephemeral_texts == ([LATE] if won else [])
        winners.add(decision[1])
        await scenario.sweep()
        shown = scenario.slack.messages[message["ts"]]
        assert list(buttons(shown)) == []
        assert ("eve rejected it through web" if won else "bob approved it through slack") in json.dumps(shown)
    assert len(await scenario.events("approved", "rejected")) == ROUNDS
    assert winners <= {"bob", "eve"}
