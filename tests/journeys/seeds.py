"""Approvals to decide about, made through the agent's door."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.app.bootstrap import wall_clock
from interlock.core.call import QUESTION_SPEC, QUESTION_TOOL, ToolSpec
from interlock.core.outcome import Waiting
from tests.journeys.shell import Shell
from tests.support import Clock, approve, call, opened, pending

MAIL = ToolSpec("send_mail", "write", describe="Mail {to}")
PAY = ToolSpec(
    "pay",
    "destructive",
    schema={
        "type": "object",
        "properties": {"amount": {"type": "number"}, "to": {"type": "string"}, "key": {"type": "string"}},
        "required": ["amount"],
        "additionalProperties": False,
    },
    describe="Pay {amount} to {to}",
    secret=("key",),
    preview=lambda args: f"Balance after: {100 - int(str(args['amount']))}",
)
TWO_PEOPLE = """
rules:
  - name: two of finance
    tools: [send_mail]
    then: ask
    approvers: {teams: [finance]}
    quorum: 2
"""
ASK_ADA = "rules: [{name: ask ada, tools: [send_mail], then: ask, approvers: {users: [ada]}}]"
NO_MAIL_TO_EVE = """
rules:
  - {name: not to eve, tools: [send_mail], when: args.to == "eve", then: deny, reason: Eve gets no mail.}
"""
NO_UNDO = "defaults: {undo_window: 0s}"
DECEIT = {"to": "ada@b\u0430nk.example\u202e"}


async def mail(shell: Shell, number: int = 1, *, ago: int = 0, policy: str = "", **more: object) -> str:
    """The id of a pending mail that was proposed `ago` milliseconds before now."""
    async with opened(shell.path, Clock(wall_clock() - ago), policy) as parts:
        return await pending(parts, number, MAIL, **{"args": {"to": "bob"}, "agent": "writer", **more})


async def pay(shell: Shell, args: Mapping[str, object], number: int = 1) -> str:
    async with opened(shell.path, Clock(wall_clock())) as parts:
        return await pending(parts, number, PAY, args=args, agent="planner", requester="ada", agent_says="Trust me.")


async def question(shell: Shell, **args: object) -> str:
    async with opened(shell.path, Clock(wall_clock())) as parts:
        outcome = await parts.gate.ask(call("q", {"question": "How many?", **args}, tool=QUESTION_TOOL), QUESTION_SPEC)
        assert isinstance(outcome, Waiting)
        return outcome.approval_id


async def lost(shell: Shell) -> str:
    """A call that was started, and of which nobody knows how it ended."""
    clock = Clock(wall_clock() - 600_000)
    async with opened(shell.path, clock) as parts:
        approval_id = await pending(parts, 1, MAIL, args={"to": "bob"})
        await approve(parts, approval_id)
        await parts.gate.start("default", approval_id, "a machine far away", 1_000)
        return approval_id
