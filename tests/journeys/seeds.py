"""Pending approvals, created through the gate."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.app.bootstrap import wall_clock
from interlock.core.call import QUESTION_SPEC, QUESTION_TOOL, ToolSpec
from interlock.core.outcome import Waiting
from tests.journeys.shell import Shell
from tests.support import Clock, approve, call, open_services, propose_pending

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


async def propose_mail(shell: Shell, number: int = 1, *, ago: int = 0, policy: str = "", **more: object) -> str:
    """The id of a pending mail that was proposed `ago` milliseconds before now."""
    async with open_services(shell.path, Clock(wall_clock() - ago), policy) as services:
        return await propose_pending(services, number, MAIL, **{"args": {"to": "bob"}, "agent": "writer", **more})


async def propose_payment(shell: Shell, args: Mapping[str, object], number: int = 1) -> str:
    async with open_services(shell.path, Clock(wall_clock())) as services:
        return await propose_pending(
            services, number, PAY, args=args, agent="planner", requester="ada", agent_says="Trust me."
        )


async def propose_by_urgency(shell: Shell) -> list[str]:
    """Ids in the order of the inbox: a mail of the second before, then high risk before what came half a second ago."""
    clock = Clock(wall_clock() // 1_000 * 1_000 + 1_000)  # no earlier than what is recorded
    async with open_services(shell.path, clock) as services:
        first = await propose_pending(services, 1, MAIL, args={"to": "bob"})
        clock.advance(1_000)
        mail = await propose_pending(services, 2, MAIL, args={"to": "bob"})
        clock.advance(500)
        return [first, await propose_pending(services, 3, PAY, args={"amount": 5, "to": "bob"}), mail]


async def ask_question(shell: Shell, **args: object) -> str:
    async with open_services(shell.path, Clock(wall_clock())) as services:
        outcome = await services.gate.ask(
            call("q", {"question": "How many?", **args}, tool=QUESTION_TOOL), QUESTION_SPEC
        )
        assert isinstance(outcome, Waiting)
        return outcome.approval_id


async def start_lost_call(shell: Shell) -> str:
    """A started call whose outcome is unknown."""
    clock = Clock(wall_clock() - 600_000)
    async with open_services(shell.path, clock) as services:
        approval_id = await propose_pending(services, 1, MAIL, args={"to": "bob"})
        await approve(services, approval_id)
        await services.gate.start("default", approval_id, "a machine far away", 1_000)
        return approval_id
