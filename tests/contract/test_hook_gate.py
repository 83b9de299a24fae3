"""The gate of a hook over a database: the current policy, one start, and an end reported by another process."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import build_services
from interlock.cli.commands.hook import LocalBackend
from interlock.core.call import ToolSpec
from interlock.core.canonical import digest
from interlock.core.errors import AlreadyStarted, DeniedNow, Misconfigured
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Finished, Proceed, Refused, Waiting
from tests.databases import Database
from tests.support import call

RULES = """\
version: 1
rules:
  - {name: no, tools: [drop], then: deny, reason: Never}
  - {name: yes, tools: [save], then: allow}
"""
SAVE = ToolSpec("save", "write")


async def put_policy(database: Database, text: str) -> None:
    services = build_services(database.url)
    await services.store.open()
    await services.store.put_policy("default", digest(text.encode()), text, "ada", "")
    await services.store.close()


# R34, R46
async def test_hooks_after_each_other_share_one_call(database: Database) -> None:
    await put_policy(database, RULES)
    first, second = (LocalBackend(database.url, "default", "claude-code", 600_000) for _ in range(2))
    await first.open()
    assert await first.check(call(1, tool="drop"), ToolSpec("drop")) == Refused("Never")
    assert isinstance(await first.check(call(2, tool="look"), ToolSpec("look")), Waiting)
    assert await first.check(call(3, tool="read"), ToolSpec("read", "read")) == Proceed(call(3, tool="read").args)
    outcome = await first.check(call(4, tool="save"), SAVE)
    assert isinstance(outcome, Proceed)
    started = await first.start(outcome.approval_id, SAVE)
    await first.close()
    await second.open()
    assert await second.check(call(4, tool="save"), SAVE) == Waiting(
        outcome.approval_id, "running", until=started.lease_until
    ), "the hook that started it is gone, and the tool runs on"
    with pytest.raises(AlreadyStarted):
        await second.start(outcome.approval_id, SAVE)
    await second.finish(outcome.approval_id, started.fence, ok=True, payload=Payload(result=b'"ok"'))
    assert await second.check(call(4, tool="save"), SAVE) == Finished("succeeded", "ok", "", outcome.approval_id)
    await second.close()


# R34
async def test_a_policy_that_does_not_load_opens_nothing(database: Database) -> None:
    await put_policy(database, "version: 1\nrules: [{name: yes, then: perhaps}]\n")
    with pytest.raises(Misconfigured, match="perhaps"):
        await LocalBackend(database.url, "default", "claude-code", 600_000).open()


# R59
async def test_a_start_is_judged_by_the_policy_that_came_while_people_decided(database: Database) -> None:
    await put_policy(database, RULES)
    hook = LocalBackend(database.url, "default", "claude-code", 600_000)
    await hook.open()
    outcome = await hook.check(call(1, tool="save"), SAVE)
    assert isinstance(outcome, Proceed)
    await put_policy(database, RULES.replace("[drop]", "[save]"))
    with pytest.raises(DeniedNow, match="Never"):
        await hook.start(outcome.approval_id, SAVE)
    await hook.close()


# R59
async def test_a_stored_switch_of_the_agent_asks(database: Database) -> None:
    services = build_services(database.url)
    await services.store.open()
    await services.store.put_agent("default", "claude-code", '{"tool_approvals": {"read": true}}', "ada")
    await services.store.close()
    hook = LocalBackend(database.url, "default", "claude-code", 600_000)
    await hook.open()
    outcome = await hook.check(call(1, tool="read", agent="claude-code"), ToolSpec("read", "read"))
    assert isinstance(outcome, Waiting)
    await hook.close()
