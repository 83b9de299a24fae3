"""Tool calls of the model: proposes each to the gate, runs what may run, and records the outcome."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from interlock.app.executor import Executor, RunningLeases, as_current, error_text
from interlock.app.gate import Execution, Gate
from interlock.chat.agents import ChatServices, Subagents
from interlock.chat.confirmation import ConfirmationFlow
from interlock.chat.thread_lease import LeasedThread
from interlock.chat.tool import Tool, ToolInvocation
from interlock.chat.tool_registry import ToolSelection
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.call import QUESTION_TOOL, Args, ToolCall, propose
from interlock.core.canonical import canonical, parse_json, read_canonical
from interlock.core.chat.thread import NewThreadEntry
from interlock.core.chat.transcript import PendingCall
from interlock.core.errors import (
    BindingBroken,
    CallMismatch,
    CallWouldFail,
    Conflict,
    Error,
    Expired,
    InvalidRequest,
    LeaseLost,
    NotFound,
    StoreUnavailable,
)
from interlock.core.ledger.event import SYSTEM_ACTOR, Payload
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.core.ports import AGENT_DELETED_REASON, Clock
from interlock.presenters import model_message
from interlock.presenters.model_message import error_message, problem_message, refusal_message
from interlock.runtime.durations import rfc3339
from interlock.runtime.json_schema import validate

TOOL_LEASE = 60_000  # milliseconds, of a running tool; renewed while it runs
MAX_AGENT_TEXT = 2_000  # characters of the model's text with a call, quoted on the card
FINISH_RETRY_SECONDS = 0.2  # seconds
WITHDRAWAL_REASONS = {
    "stopped": "The person stopped the agent before this was decided.",
    "said": "The person sent a new message instead of deciding this.",
    "deleted": AGENT_DELETED_REASON,
}


@dataclass(kw_only=True)
class ToolCallRunner:
    """The calls of one thread's turn. Any process may take over at any point, so the stored state is read first."""

    leased_thread: LeasedThread
    services: ChatServices
    selection: ToolSelection
    runner: str
    clock: Clock
    subagents: Subagents
    lease: int = TOOL_LEASE

    async def propose(self, call: PendingCall, withdrawal: str) -> None:
        """Propose a call that this thread has not recorded; the gate may know it from before a crash."""
        try:
            args = _arguments(call.tool_request.args)
            if withdrawal and not await self._is_known(call):
                withdrawn = Refused(WITHDRAWAL_REASONS[withdrawal], "cancelled")
                await self._record_result(call, refusal_message(withdrawn, call.tool_request.tool), "cancelled")
            else:
                await self._propose_or_resume(call, args)
        except InvalidRequest as error:
            await self._record_result(call, error_message(error, call.tool_request.tool), "invalid")
        except CallWouldFail as error:  # nobody is asked: the model is told, and can correct its call
            await self._record_result(call, error_message(error, call.tool_request.tool), "failed")

    async def start(self, call: PendingCall, withdrawal: str) -> None:
        """Start an approved call. One that has started cannot be stopped: its outcome is recorded."""
        if withdrawal == "stopped":
            await self._cancel(call, withdrawal)
        outcome = await self.services.gate.get_outcome(self._workspace, call.approval_id)
        if isinstance(outcome, Proceed):
            await self._proceed(call, outcome)
        else:
            await self._record_outcome(call, outcome)

    async def poll(self, call: PendingCall, withdrawal: str = "") -> Waiting | None:
        """Check a call that is waiting; return Waiting if it still is."""
        if call.child:
            return await self.subagents.poll(self.leased_thread, call, withdrawal, await self._find_edit(call))
        if withdrawal and not call.decision:
            await self._cancel(call, withdrawal)
        outcome = await self.services.gate.get_outcome(self._workspace, call.approval_id)
        match outcome:
            case Waiting():
                await self._record_rejection(call, outcome)
                return outcome
            case Proceed() if not call.decision:
                await self._record_decision(call, "approved")
            case Proceed():  # its process died, and it may be run again under the same idempotency key
                await self._record_proposal(call, "approved")
            case _:
                await self._record_outcome(call, outcome)
        return None

    @property
    def _workspace(self) -> str:
        return self.leased_thread.thread.workspace

    async def _is_known(self, call: PendingCall) -> bool:
        """Return whether it was recorded before a crash: then it is resumed, and neither dropped nor proposed again."""
        if await self.subagents.has_thread(self.leased_thread.thread, call):
            return True
        approval = await self.services.gate.find_approval(self._workspace, self.leased_thread.thread.id, call.id)
        call.approval_id = approval.id if approval else ""
        return approval is not None

    async def _propose_or_resume(self, call: PendingCall, args: Args) -> None:
        tool = self.selection.get(call.tool_request.tool)
        if tool is not None:
            await self._propose(call, tool, args)
        elif not await self._is_known(call):
            await self._record_result(
                call, model_message.unknown_tool_response(call.tool_request.tool, list(self.selection)), "failed"
            )
        elif call.approval_id:
            await self._continue(call, await self.services.gate.get_outcome(self._workspace, call.approval_id))
        else:
            await self.subagents.record_delegation(self.leased_thread, call)

    async def _propose(self, call: PendingCall, tool: Tool, args: Args) -> None:
        gate = self.services.gate.with_fence(self.leased_thread.fence)  # before the call is made with today's teams
        proposed = self._make_call(call, {**tool.defaults, **args})
        confirming = ConfirmationFlow(self.leased_thread, self.services, self.clock)
        confirmed_version = await confirming.consume_confirmation(call, proposed, tool.spec)
        if confirmed_version is not None:
            gate = gate.with_confirmed_version(confirmed_version)
        elif confirming.is_required(proposed, tool.spec) and not await self._is_known(call):
            await confirming.request(call, proposed, tool.spec)
            return
        check = gate.ask if tool.name == QUESTION_TOOL else gate.check
        try:
            outcome = await check(proposed, tool.spec)
        except CallMismatch:  # a default of the tool was changed after a crash: the recorded arguments count
            if not await self._is_known(call):
                raise
            outcome = await gate.get_outcome(self._workspace, call.approval_id)
        if confirmed_version is not None:
            outcome = await confirming.decide(proposed, outcome)
        call.approval_id = outcome.approval_id
        await self._continue(call, outcome)

    async def _continue(self, call: PendingCall, outcome: Outcome) -> None:
        match outcome:
            case Waiting():
                await self._record_proposal(call, outcome.status)
            case Proceed():
                await self._proceed(call, outcome)
            case _:
                await self._record_outcome(call, outcome)

    async def _proceed(self, call: PendingCall, outcome: Proceed) -> None:
        tool = self.selection.get(call.tool_request.tool)
        if tool is None:
            await self._invalidate(call, "The agent does not have this tool any more.")
        else:
            await self._execute(call, tool, outcome)

    async def _execute(self, call: PendingCall, tool: Tool, outcome: Proceed) -> None:
        began = self.clock()
        if tool.name.startswith(AGENT_TOOL_PREFIX):
            tool = replace(tool, run=lambda invocation: self.subagents.begin(self.leased_thread, call, invocation.args))
        if not outcome.approval_id:
            reading = _run_read(tool, outcome.args)
            result, status = await self.leased_thread.run_unless_lost(reading)
            await self._record_result(call, result, status, took=self.clock() - began)
            return
        try:
            started = await self.services.gate.start(
                self._workspace, outcome.approval_id, self.runner, self.lease, tool.spec.sha256
            )
        except BindingBroken as error:
            await self._invalidate(call, error.message)
            return
        except (Conflict, Expired):  # started, cancelled or expired meanwhile
            await self._record_outcome(call, await self.services.gate.get_outcome(self._workspace, outcome.approval_id))
            return
        await self._run(tool, started)
        ended = await self.services.gate.get_outcome(self._workspace, outcome.approval_id)
        await self._record_outcome(call, ended, took=self.clock() - began)

    async def _run(self, tool: Tool, started: Execution) -> None:
        """Run the tool. It finishes even if the thread is stopped: the gate has its own lease."""
        reports = GateReports(self.services.gate, self._workspace, self.clock, self.lease)
        leases = RunningLeases(reports.renew, self.lease)
        args = cast(Args, read_canonical(started.args))
        invocation = ToolInvocation(args, started.idempotency_key, started.preview_version)
        renewing = asyncio.create_task(leases.keep_renewed())
        try:
            with as_current(started):
                await Executor(reports, leases, _encode_result).run(started, tool.spec, lambda: tool.run(invocation))
        finally:
            renewing.cancel()

    async def _record_rejection(self, call: PendingCall, waiting: Waiting) -> None:
        """Record a rejection at once, though the model gets it only when it is released, and the undoing of one."""
        if waiting.status == "pending" and call.is_rejected:
            await self._record_proposal(call, "pending", is_reopened=True)
        if waiting.status != "rejected" or waiting.until is None or call.is_rejected:
            return
        approval = await self.services.gate.find_approval(self._workspace, self.leased_thread.thread.id, call.id)
        reason = approval.decision.reason if approval and approval.decision else ""
        body = {"call": call.tool_request.id, "approval": call.approval_id, "status": "rejected", "reason": reason}
        entry = NewThreadEntry("decided", self._actor, {**body, "release_at": rfc3339(waiting.until)})
        await self.leased_thread.append_and_mirror(entry)

    async def _record_proposal(self, call: PendingCall, status: str, *, is_reopened: bool = False) -> None:
        """Record that the gate knows the call. A pending one is shown as a card, also in the person's own thread."""
        body: dict[str, object] = {
            "call": call.tool_request.id,
            "tool": call.tool_request.tool,
            "approval": call.approval_id,
            "status": status,
        }
        if is_reopened:
            body["reopened"] = True
        entry = NewThreadEntry("asked", self._actor, body)
        await (self.leased_thread.append_and_mirror(entry) if status == "pending" else self.leased_thread.append(entry))

    async def _invalidate(self, call: PendingCall, why: str) -> None:
        """Withdraw an approval that does not match what would run: nothing runs."""
        with suppress(Conflict, Expired, NotFound):
            await self.services.gate.cancel(self._workspace, call.approval_id, self._actor, why)
        await self._record_outcome(call, Refused(why, "cancelled", call.approval_id))

    async def _cancel(self, call: PendingCall, withdrawal: str) -> None:
        with suppress(Conflict, Expired, NotFound):
            actor = SYSTEM_ACTOR if withdrawal == "deleted" else self.leased_thread.thread.person
            await self.services.gate.cancel(self._workspace, call.approval_id, actor, WITHDRAWAL_REASONS[withdrawal])

    async def _record_outcome(self, call: PendingCall, outcome: Outcome, took: int = 0) -> None:
        """Record the end of a call, and the decision of people if they were asked."""
        match outcome:
            case Waiting():  # another process runs it, or died while doing so: wait for the outcome
                await self._record_proposal(call, "running")
                return
            case Proceed():
                return
            case Finished():
                status, decided = outcome.status, "approved"
            case Answered():
                status = decided = "responded"
            case Refused():
                status = decided = outcome.status
        result = model_message.outcome_response(outcome, call.tool_request.tool, await self._find_edit(call))
        if decided != "denied":
            await self._record_decision(call, decided, outcome.reason if isinstance(outcome, Refused) else "", result)
        await self._record_result(call, result, status, took=took)

    async def _find_edit(self, call: PendingCall) -> model_message.ArgumentEdit | None:
        ran_with = (
            await self.services.gate.get_edited_args(self._workspace, call.approval_id) if call.approval_id else None
        )
        if ran_with is None:
            return None
        tool = self.selection.get(call.tool_request.tool)
        given = {**(tool.defaults if tool else {}), **_arguments(call.tool_request.args)}
        return model_message.compare_arguments(given, ran_with)

    async def _record_decision(self, call: PendingCall, status: str, reason: str = "", result: object = None) -> None:
        """Record the decision once, if a card was shown."""
        was_shown = any(
            entry.kind == "asked" and entry.body["approval"] == call.approval_id and entry.body["status"] == "pending"
            for entry in self.leased_thread.entries
        )
        if call.decision or not was_shown:
            return
        call.decision = status
        body: dict[str, object] = {
            "call": call.tool_request.id,
            "approval": call.approval_id,
            "status": status,
            "reason": reason,
        }
        if status == "responded":
            body["result"] = model_message.bound_result(result)
        await self.leased_thread.append_and_mirror(NewThreadEntry("decided", self._actor, body))

    async def _record_result(self, call: PendingCall, result: object, status: str, took: int = 0) -> None:
        """Record the result. A sub-agent that was started has none yet: its last reply will be the result."""
        if call.tool_request.tool.startswith(AGENT_TOOL_PREFIX) and status == "succeeded":
            await self.subagents.record_delegation(self.leased_thread, call)
            return
        kept = model_message.bound_result(result)
        body = {
            "call": call.tool_request.id,
            "tool": call.tool_request.tool,
            "status": status,
            "result": kept,
            "took": took,
        }
        if call.approval_id:
            body["approval"] = call.approval_id
        await self.leased_thread.append(NewThreadEntry("resulted", self._actor, body))

    @property
    def _actor(self) -> str:
        return f"agent:{self.leased_thread.thread.agent}"

    def _make_call(self, call: PendingCall, args: Args) -> ToolCall:
        thread = self.leased_thread.thread
        person = self.services.people.get(thread.person)
        agent_text = next(
            (str(entry.body["text"]) for entry in self.leased_thread.entries if entry.number == call.reply_number), ""
        )
        return propose(
            call.tool_request.tool,
            args,
            thread.id,
            call.id,
            workspace=thread.workspace,
            agent=thread.agent,
            agent_path=thread.path,
            thread_id=self.leased_thread.root_id,
            requester=thread.person,
            teams=tuple(sorted(person.teams)) if person and person.removed_at is None else (),
            setting="chat",
            agent_says=agent_text[:MAX_AGENT_TEXT],
        )


@dataclass(frozen=True, slots=True)
class GateReports:
    """Reports of the executor to the gate, for calls of one workspace."""

    gate: Gate
    workspace: str
    clock: Clock
    lease: int

    async def renew(self, approval_id: str, fence: int) -> None:
        await self.gate.renew(self.workspace, approval_id, fence, self.lease)

    async def finish(self, execution: Execution, payload: Payload, *, ok: bool) -> None:
        """Record the result, with retries while the database is down; recording it twice changes nothing.

        After a lost lease the call is recorded as unknown, and the late result is kept as evidence.
        """
        until = self.clock() + self.lease
        with suppress(LeaseLost):
            while True:
                try:
                    await self.gate.finish(
                        self.workspace, execution.approval_id, execution.fence, ok=ok, payload=payload
                    )
                    return
                except StoreUnavailable:
                    if self.clock() >= until:
                        raise
                await asyncio.sleep(FINISH_RETRY_SECONDS)

    async def mark_effect_unknown(self, execution: Execution) -> None:
        """Mark the outcome as unknown, also of an idempotent tool: the chat would repeat it at once."""
        await self.gate.mark_effect_unknown(self.workspace, execution.approval_id, execution.fence)

    async def abandon(self, execution: Execution) -> None:
        with suppress(Error):
            await self.gate.abandon(self.workspace, execution.approval_id, execution.fence)


def _encode_result(result: object) -> bytes:
    return canonical(model_message.bound_result(result))


async def _run_read(tool: Tool, data: bytes) -> tuple[object, str]:
    """Run a read. The gate allows reads without checking their arguments, so they are validated here."""
    invocation = ToolInvocation(cast(Args, read_canonical(data)), "")
    problems = validate(tool.spec.schema, invocation.args) if tool.spec.schema is not None else ()
    if problems:
        words = "; ".join(map(str, problems))
        return problem_message("invalid", f"The arguments do not fit the tool's schema: {words}."), "invalid"
    try:
        result = model_message.bound_result(await tool.run(invocation))
    except Exception as error:  # noqa: BLE001  any exception of a tool is its failure
        return problem_message("failed", error_text(error, data, tool.spec)), "failed"
    return result, "succeeded"


def _arguments(text: str) -> Args:
    value = parse_json(text or "{}")
    if not isinstance(value, dict):
        raise InvalidRequest("The arguments of a call are a JSON object.")
    return value
