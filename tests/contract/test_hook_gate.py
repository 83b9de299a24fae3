"""The gate of a hook over a database: the current policy, one start, and an end reported by another process."""

from __future__ import annotations

import pytest

from interlock.app.bootstrap import build_services
from interlock.cli.commands.hook import LocalBackend
from interlock.core.call import ToolSpec
from interlock.core.errors import AlreadyStarted, Misconfigured
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
    await services.store.put_policy("default", "0" * 64, text, "ada", "")
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
