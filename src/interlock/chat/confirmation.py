"""Confirmation in conversation, kept by the store: what the model writes about it has no effect."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.app.gate import render_preview
from interlock.app.inbox import active_delegations
from interlock.chat import results
from interlock.chat.agents import ChatServices
from interlock.chat.thread_lease import LeasedThread
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.canonical import canonical, digest
from interlock.core.chat.thread import Confirmation, NewThreadEntry
from interlock.core.chat.transcript import PendingCall
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.errors import Conflict, Error
from interlock.core.outcome import Outcome, Waiting
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Ask
from interlock.core.ports import Clock

CONFIRMED = "confirmed"
HOW_TO_CONFIRM = (
    "Tell the person what would happen and stop. Only if their next message is a plain yes, call this again with the "
    "same arguments and confirmed: true."
)


@dataclass
class ConfirmationFlow:
    held: LeasedThread
    desk: ChatServices
    clock: Clock

    async def said_yes(self, call: PendingCall, proposed: ToolCall, spec: ToolSpec) -> bool:
        """Spends the person's yes on this call, if there is one for the same tool and arguments."""
        if not self._applies(spec) or proposed.value.get(CONFIRMED) is not True:
            return False
        try:
            await self.held.use_confirmation(call.id, proposed.tool, _digest_unconfirmed(proposed))
        except Conflict:
            if self.held.lost.is_set():
                raise
            return False
        return True

    def is_due(self, proposed: ToolCall, spec: ToolSpec) -> bool:
        """What a rule allows needs no question, and what it denies gets none."""
        return self._applies(spec) and isinstance(judge(self.desk.gate.policy, proposed, spec).verdict, Ask)

    async def ask(self, call: PendingCall, proposed: ToolCall, spec: ToolSpec) -> None:
        """Answers the call with the question, in place of a run."""
        confirmation = Confirmation(self.held.thread.person, call.wish.id, spec.name, _digest_unconfirmed(proposed))
        result = {
            "requires_confirmation": True,
            "message": spec.sentence(proposed.value),
            "would": await render_preview(spec, proposed),
            "how": HOW_TO_CONFIRM,
        }
        body = {"call": call.wish.id, "tool": spec.name, "status": "confirming", "result": results.bound_result(result)}
        await self.held.confirm_first(confirmation, NewThreadEntry("resulted", f"agent:{self.held.thread.agent}", body))

    async def decide(self, proposed: ToolCall, outcome: Outcome) -> Outcome:
        """The person's yes is their decision about this call. Where a rule wants others, a card goes to them."""
        person = self.desk.people.get(self.held.thread.person)
        if not isinstance(outcome, Waiting) or outcome.status != "pending":
            return outcome
        if person is None or person.removed_at is not None:
            return outcome
        covers = active_delegations(self.desk.people.values(), person.name, person.teams, self.clock())
        reviewer = Reviewer(person.name, person.role, teams=person.teams, via="chat", covers=covers)
        seen = Acknowledgement(outcome.args_sha256, comment="Said yes in the conversation.")
        workspace = proposed.workspace
        try:
            await self.desk.inbox.decide(workspace, outcome.approval_id, Approve(seen), reviewer)
        except Error:  # others have to decide, or something was found in the arguments: the card stays
            return outcome
        return await self.desk.gate.look(workspace, outcome.approval_id)

    def _applies(self, spec: ToolSpec) -> bool:
        """A sub-agent has nobody to talk to, and the clients of others show no question: there it is a card."""
        return spec.confirm == "chat" and has_conversation(self.held)


def has_conversation(held: LeasedThread) -> bool:
    """Whether the person whom this thread is about sees what is asked in the conversation."""
    last = next((line for line in reversed(held.lines) if line.kind == "said"), None)
    return not held.thread.parent and (last is None or not last.body.get("via"))


def _digest_unconfirmed(proposed: ToolCall) -> str:
    """The digest of the arguments as the person was told of them."""
    return digest(canonical({name: value for name, value in proposed.value.items() if name != CONFIRMED}))
