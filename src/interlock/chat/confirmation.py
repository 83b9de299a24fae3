"""Confirmation in conversation, kept by the store: what the model writes about it has no effect."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.app.gate import preview_of
from interlock.app.inbox import covers_of
from interlock.chat import results
from interlock.chat.agents import Desk
from interlock.chat.thread_lease import Held
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.chat.thread import Confirmation, New
from interlock.core.chat.transcript import Call
from interlock.core.decision import Approve, Reviewer, Seen
from interlock.core.errors import Conflict, Error
from interlock.core.outcome import Outcome, Waiting
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Ask
from interlock.core.ports import Clock

CONFIRMED = "confirmed"
HOW = (
    "Tell the person what would happen and stop. Only if their next message is a plain yes, call this again with the "
    "same arguments and confirmed: true."
)


@dataclass
class Confirming:
    held: Held
    desk: Desk
    clock: Clock

    async def said_yes(self, call: Call, proposed: ToolCall, spec: ToolSpec) -> bool:
        """Spends the person's yes on this call, if there is one for the same tool and arguments."""
        if not self._applies(spec) or proposed.value.get(CONFIRMED) is not True:
            return False
        try:
            await self.held.use_confirmation(call.id, proposed.tool, _without(proposed))
        except Conflict:
            if self.held.lost.is_set():
                raise
            return False
        return True

    def is_due(self, proposed: ToolCall, spec: ToolSpec) -> bool:
        """What a rule allows needs no question, and what it denies gets none."""
        return self._applies(spec) and isinstance(judge(self.desk.gate.policy, proposed, spec).verdict, Ask)

    async def ask(self, call: Call, proposed: ToolCall, spec: ToolSpec) -> None:
        """Answers the call with the question, in place of a run."""
        confirmation = Confirmation(self.held.thread.person, call.wish.id, spec.name, _without(proposed))
        result = {
            "requires_confirmation": True,
            "message": spec.sentence(proposed.value),
            "would": await preview_of(spec, proposed),
            "how": HOW,
        }
        body = {"call": call.wish.id, "tool": spec.name, "status": "confirming", "result": results.fitting(result)}
        await self.held.confirm_first(confirmation, New("resulted", f"agent:{self.held.thread.agent}", body))

    async def decide(self, proposed: ToolCall, outcome: Outcome) -> Outcome:
        """The person's yes is their decision about this call. Where a rule wants others, a card goes to them."""
        person = self.desk.people.get(self.held.thread.person)
        if not isinstance(outcome, Waiting) or outcome.status != "pending":
            return outcome
        if person is None or person.removed_at is not None:
            return outcome
        covers = covers_of(self.desk.people.values(), person.name, person.teams, self.clock())
        reviewer = Reviewer(person.name, person.role, person.teams, "chat", covers)
        seen = Seen(outcome.args_sha256, comment="Said yes in the conversation.")
        workspace = proposed.workspace
        try:
            await self.desk.inbox.decide(workspace, outcome.approval_id, Approve(seen), reviewer)
        except Error:  # others have to decide, or something was found in the arguments: the card stays
            return outcome
        return await self.desk.gate.look(workspace, outcome.approval_id)

    def _applies(self, spec: ToolSpec) -> bool:
        """A sub-agent has nobody to talk to, and the clients of others show no question: there it is a card."""
        return spec.confirm == "chat" and talks(self.held)


def talks(held: Held) -> bool:
    """Whether the person whom this thread is about sees what is asked in the conversation."""
    last = next((line for line in reversed(held.lines) if line.kind == "said"), None)
    return not held.thread.parent and (last is None or not last.body.get("via"))


def _without(proposed: ToolCall) -> str:
    """The digest of the arguments as the person was told of them."""
    return digest(canonical({name: value for name, value in proposed.value.items() if name != CONFIRMED}))
