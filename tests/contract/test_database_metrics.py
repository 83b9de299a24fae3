"""Database metrics, on both databases."""

from interlock.app.bootstrap import AppServices
from tests.support import WRITE, Clock, call

DAY = 86_400_000


async def test_the_calls_of_a_tool_are_counted_by_status_and_agent(services: AppServices, clock: Clock) -> None:  # R10
    await services.gate.check(call(1, agent="bot"), WRITE)
    clock.forward(2 * DAY)
    for number in (2, 3):
        await services.gate.check(call(number, agent="bot"), WRITE)
    await services.gate.check(call(4, agent="other"), WRITE)
    await services.gate.check(call(5, agent="bot", tool="else"), WRITE)
    await services.gate.check(call(6, workspace="elsewhere", agent="bot"), WRITE)
    measures, tool, since = services.store.metrics, call(1).tool, clock.now - DAY
    assert (await measures.tool_status_counts("default", tool, "bot", since)).by_status == {"pending": 2}
    assert (await measures.tool_status_counts("default", tool, "", since)).by_status == {"pending": 3}
    assert (await measures.tool_status_counts("default", tool, "", 0)).by_status == {"pending": 4}
    nothing = await measures.tool_status_counts("default", "unheard of", "", 0)
    assert (nothing.by_status, nothing.reads, nothing.complete) == ({}, 0, True)
