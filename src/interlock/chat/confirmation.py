"""Confirmation in the conversation, recorded by the store: the model's own text about it has no effect."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_bytes

from interlock.app.inbox import active_delegations
from interlock.chat.agents import ChatServices
from interlock.chat.thread_lease import LeasedThread
from interlock.chat.tool import CONFIRMED
from interlock.core.call import ToolCall, ToolSpec, redact
from interlock.core.canonical import canonical, digest
from interlock.core.card import risk_level
from interlock.core.chat.thread import Confirmation, NewThreadEntry
from interlock.core.chat.transcript import PendingCall
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.declared import call_sentence, stored_preview
from interlock.core.errors import Conflict, Error
from interlock.core.outcome import Outcome, Waiting
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Ask
from interlock.core.ports import Clock
from interlock.presenters import model_message

CONFIRMING = "confirming"  # status of a call whose result is the question
PREVIEW_VERSION = (
    "preview_version"  # in the body of that entry; not part of the confirmation, which older programs read
)
HOW_TO_CONFIRM = (
    "Tell the person what would happen and stop. Only if their next message is a plain yes, call this again with the "
    "same arguments and confirmed: true."
)


@dataclass
class ConfirmationFlow:
    leased_thread: LeasedThread
    services: ChatServices
    clock: Clock

    async def consume_confirmation(self, call: PendingCall, proposed: ToolCall, spec: ToolSpec) -> str | None:
        """Use up the person's yes to the same tool and arguments; return the version of the preview that they saw.

        It is empty if the preview had none, and None if nobody said yes.
        """
        if not self._applies(spec) or proposed.parsed_args.get(CONFIRMED) is not True:
            return None
        try:
            await self.leased_thread.use_confirmation(call.id, proposed.tool, _digest_unconfirmed(proposed))
        except Conflict:
            if self.leased_thread.lost.is_set():
                raise
            return None
        return self._confirmed_version()

    def _confirmed_version(self) -> str | None:
        confirmation = self.leased_thread.thread.confirmation
        bodies = (entry.body for entry in reversed(self.leased_thread.entries) if entry.kind == "resulted")
        questions = (body for body in bodies if body.get("status") == CONFIRMING)
        answered = (body for body in questions if confirmation is not None and body.get("call") == confirmation.call)
        return next((str(body.get(PREVIEW_VERSION, "")) for body in answered), None)

    def is_required(self, proposed: ToolCall, spec: ToolSpec) -> bool:
        """Return whether the policy asks; what a rule allows or denies needs no confirmation."""
        return self._applies(spec) and isinstance(judge(self.services.gate.policy, proposed, spec).verdict, Ask)

    async def request(self, call: PendingCall, proposed: ToolCall, spec: ToolSpec) -> None:
        """Return the question as the result of the call, instead of running it.

        Raises CallWouldFail, on record, if there is nothing to confirm.
        """
        would = await self.services.gate.preview(proposed, spec)
        confirmation = Confirmation(
            self.leased_thread.thread.person, call.tool_request.id, spec.name, _digest_unconfirmed(proposed)
        )
        shown = redact(proposed.args, spec, token_bytes())  # the model and the log are not told any secret
        result = {
            "requires_confirmation": True,
            "message": call_sentence(spec, shown),
            "would": stored_preview(spec, proposed.args, shown, would.text),
            "effect": spec.effect,
            "risk": self._risk(proposed, spec),
            "how": HOW_TO_CONFIRM,
        }
        body = {
            "call": call.tool_request.id,
            "tool": spec.name,
            "status": CONFIRMING,
            "result": model_message.bound_result(result),
            PREVIEW_VERSION: would.version,
        }
        await self.leased_thread.request_confirmation(
            confirmation, NewThreadEntry("resulted", f"agent:{self.leased_thread.thread.agent}", body)
        )

    def _risk(self, proposed: ToolCall, spec: ToolSpec) -> str:
        """Return the risk that the card of the call would show."""
        verdict = judge(self.services.gate.policy, proposed, spec).verdict
        return risk_level(spec.effect, verdict.priority if isinstance(verdict, Ask) else proposed.priority)

    async def decide(self, proposed: ToolCall, outcome: Outcome) -> Outcome:
        """Decide the call with the person's confirmation. If a rule requires others, they get a card."""
        person = self.services.people.get(self.leased_thread.thread.person)
        if not isinstance(outcome, Waiting) or outcome.status != "pending":
            return outcome
        if person is None or person.removed_at is not None:
            return outcome
        covers = active_delegations(self.services.people.values(), person.name, person.teams, self.clock())
        reviewer = Reviewer(person.name, person.role, teams=person.teams, via="chat", delegations_to_me=covers)
        seen = Acknowledgement(outcome.args_sha256, comment="Said yes in the conversation.")
        workspace = proposed.workspace
        try:
            await self.services.inbox.decide(workspace, outcome.approval_id, Approve(seen), reviewer)
        except Error:  # others have to decide, or the arguments have findings: the card stays
            return outcome
        return await self.services.gate.get_outcome(workspace, outcome.approval_id)

    def _applies(self, spec: ToolSpec) -> bool:
        """Return whether it applies: not to sub-agents and third-party clients, which show a card instead."""
        return spec.confirm == "chat" and has_conversation(self.leased_thread)


def has_conversation(leased_thread: LeasedThread) -> bool:
    """Return whether the thread's person sees questions in the conversation."""
    last = next((entry for entry in reversed(leased_thread.entries) if entry.kind == "said"), None)
    return not leased_thread.thread.parent and (last is None or not last.body.get("via"))


def _digest_unconfirmed(proposed: ToolCall) -> str:
    """Return the digest of the arguments that the person was asked about."""
    return digest(canonical({name: value for name, value in proposed.parsed_args.items() if name != CONFIRMED}))
