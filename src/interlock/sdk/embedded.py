"""The embedded backend: the services run in this process, on a database."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock.app.bootstrap import AppServices, Toggles
from interlock.app.gate import Execution
from interlock.app.policy_in_force import combine_toggles
from interlock.app.runs import RunHolder, RunService
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolCall, ToolSpec
from interlock.core.decision import Decision, Reviewer
from interlock.core.errors import CallWouldFail, Error, Misconfigured
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome, Refused
from interlock.core.ports import ApprovalQuery, ToolItemStore
from interlock.core.run import Pause
from interlock.policy.file import ConfiguredPolicy, StalePolicy, read_policy_file
from interlock.presenters.approval import approval_item_json, approval_json, workspace_stats_json
from interlock.runtime.offload import LoopThread
from interlock.runtime.process_identity import is_dead
from interlock.sdk.backend import GAVE_UP, ApprovalRecord, ApprovalRecords, ApprovalStats, ProgramIdentity
from interlock.sdk.codec import parse_approval_record, parse_approval_records, parse_approval_stats
from interlock.storage.tables.pauses import LeaseHolder as Resumer
from interlock.storage.tables.pauses import PauseScope

POLICY_POLL = 1.0  # seconds
PolicyOption = str | Path | Mapping[str, Any] | None
ApprovalCoroutine = Coroutine[Any, Any, Approval]
APPLY = ("changed", "always")


class EmbeddedBackend:
    """The embedded backend. Methods return the service's own coroutine: wrapping it would cost measurable time."""

    def __init__(
        self, app_services: AppServices, program: ProgramIdentity, policy: PolicyOption, toggles: Toggles
    ) -> None:
        self._services = replace(app_services, gate=app_services.gate.for_external())
        self._program = program
        self._policy = policy
        self._configured_policy: ConfiguredPolicy | None = None
        self._stale: StalePolicy | None = None
        self._toggles = dict(toggles)
        self._runs = RunService(app_services.store, app_services.clock, is_dead)
        self._holder = RunHolder(program.workspace, program.agent, program.runner, program.lease)

    async def open(self, loop_thread: LoopThread) -> None:
        """Open the database and apply the policy, unless this text was already applied once and then replaced."""
        await self._services.store.open()
        await self._services.store.backfill_statements()
        program, self._configured_policy = self._program, _read_policy_option(self._policy)
        self._services.gate.in_force.reload = self._refresh_policy
        self._warn_stale(
            await self._services.apply_policy(program.workspace, self._configured_policy, program.user, self._toggles)
        )

    async def close(self) -> None:
        await self._services.store.close()

    def set_tool_approvals(self, agent: str, tool_approvals: Mapping[str, bool]) -> None:
        """Set the switches, effective from the next call; a stored switch that requires approval still does."""
        in_force = self._services.gate.in_force
        with in_force.lock:  # another thread may be putting a policy in force
            self._toggles[agent] = dict(tool_approvals)
            policy, toggles = in_force.policy, combine_toggles(self._toggles, self._services.agents)
            also = policy.second_policy and replace(policy.second_policy, toggles=toggles)
            in_force.set_policy(replace(policy, toggles=toggles, second_policy=also), in_force.epoch.revision)

    def background_tasks(self, stop: asyncio.Event) -> Sequence[Coroutine[Any, Any, None]]:
        return self._services.worker.run(stop), self._poll_policy()

    async def acquire_run(self, run_id: str | None) -> str:
        return run_id if run_id is not None else (await self._runs.acquire(self._holder)).run_id

    async def renew_run(self, run_id: str) -> None:
        await self._runs.renew(self._holder, run_id)

    async def end_run(self, run_id: str, *, finished: bool) -> None:
        end = self._runs.close if finished else self._runs.release
        await end(self._holder, run_id)

    async def call_id_key(self) -> bytes:
        return await self._services.store.secret_key(self._program.workspace)

    def tool_items(self) -> ToolItemStore:
        return self._services.store.tool_items(self._program.workspace)

    async def check(self, call: ToolCall, spec: ToolSpec) -> Outcome:
        try:
            return await self._services.gate.check(call, spec)
        except CallWouldFail as error:
            return Refused(error.message, "denied")
        except asyncio.CancelledError:
            await self._withdraw(call)
            raise

    def ask(self, call: ToolCall, spec: ToolSpec) -> Coroutine[Any, Any, Outcome]:
        return self._services.gate.ask(call, spec)

    def wait(self, approval_id: str, timeout: float | None = None) -> Coroutine[Any, Any, Outcome]:
        return self._services.gate.wait(self._program.workspace, approval_id, timeout)

    async def tool_name(self, approval_id: str) -> str:
        return (await self._services.store.get(self._program.workspace, approval_id)).approval.subject.tool

    def start(self, approval_id: str, spec: ToolSpec | None) -> Coroutine[Any, Any, Execution]:
        program, sha256 = self._program, spec.sha256 if spec else ""
        return self._services.gate.start(program.workspace, approval_id, program.runner, program.lease, sha256)

    def renew(self, approval_id: str, fence: int) -> ApprovalCoroutine:
        return self._services.gate.renew(self._program.workspace, approval_id, fence, self._program.lease)

    def finish(self, approval_id: str, fence: int, *, ok: bool, payload: Payload) -> ApprovalCoroutine:
        return self._services.gate.finish(self._program.workspace, approval_id, fence, ok=ok, payload=payload)

    def abandon(self, approval_id: str, fence: int) -> ApprovalCoroutine:
        return self._services.gate.abandon(self._program.workspace, approval_id, fence)

    def cancel(self, approval_id: str, reason: str) -> ApprovalCoroutine:
        program = self._program
        return self._services.gate.cancel(program.workspace, approval_id, f"agent:{program.agent}", reason)

    async def decide(self, approval_id: str, decision: Decision, reviewer: str | Reviewer) -> Approval:
        """Decide as `reviewer`, unauthenticated: a program that can open the database is trusted."""
        workspace, inbox = self._program.workspace, self._services.inbox
        person = reviewer if isinstance(reviewer, Reviewer) else await inbox.reviewer(workspace, reviewer, "library")
        return await inbox.decide(workspace, approval_id, decision, person)

    async def list_approvals(self, query: ApprovalQuery) -> ApprovalRecords:
        page, now = await self._services.inbox.list(self._program.workspace, query), self._services.clock()
        items = [approval_item_json(stored, now) for stored in page.items]
        return parse_approval_records({"items": items, "next": page.next})

    async def show_approval(self, approval_id: str) -> ApprovalRecord:
        view = await self._services.inbox.show(self._program.workspace, approval_id)
        return parse_approval_record(approval_json(view, self._services.clock()))

    async def stats(self) -> ApprovalStats:
        return parse_approval_stats(await workspace_stats_json(self._services.store, self._program.workspace))

    def pause(self, agent: str, run_id: str, framework_run_id: str, state: bytes) -> Coroutine[Any, Any, Pause]:
        return self._services.store.pauses.pause(self._pause_scope(agent), run_id, framework_run_id, state)

    async def list_paused(self, agent: str) -> Sequence[Pause]:
        return await self._services.store.pauses.list_all_paused(self._pause_scope(agent))

    def acquire_ready(self, agent: str, timeout: float | None, limit: int) -> Coroutine[Any, Any, Sequence[Pause]]:
        holder = Resumer(self._program.runner, self._program.lease)
        return self._services.store.pauses.wait_ready(self._pause_scope(agent), holder, timeout, limit, is_dead)

    def renew_pause(self, agent: str, run_id: str, fence: int) -> Coroutine[Any, Any, None]:
        return self._services.store.pauses.renew(self._pause_scope(agent), run_id, fence, self._program.lease)

    async def release_pause(self, agent: str, run_id: str, fence: int, *, failed: bool) -> float:
        return (
            await self._services.store.pauses.release_lease(self._pause_scope(agent), run_id, fence, failed=failed)
            / 1000
        )

    async def complete_pause(self, agent: str, run_id: str, fence: int) -> None:
        await self._services.store.pauses.complete(self._pause_scope(agent), run_id, fence)

    async def _withdraw(self, call: ToolCall) -> None:
        """Cancel the approval, if any, of an interrupted check: nobody should approve a call that will not run."""
        with suppress(Error):
            await self._services.store.flush(call.workspace)
            known = await self._services.gate.find_approval(call.workspace, call.run_id, call.call_id)
            if known is not None and known.status == "pending":
                await self.cancel(known.id, GAVE_UP)

    def _pause_scope(self, agent: str) -> PauseScope:
        return PauseScope(self._program.workspace, agent)

    async def _poll_policy(self) -> None:
        """Apply a policy that another process put in force, within a second."""
        while True:
            await asyncio.sleep(POLICY_POLL)
            with suppress(Error):  # a new policy that does not load here leaves the current one in force
                await self._refresh_policy()

    async def _refresh_policy(self) -> None:
        self._warn_stale(
            await self._services.refresh_policy(self._program.workspace, self._toggles, self._configured_policy)
        )

    def _warn_stale(self, stale: StalePolicy | None) -> None:
        """Warn once per change."""
        if stale is not None and stale != self._stale:
            logging.getLogger("interlock").warning("%s To put it back: %s", stale.message, stale.command)
        self._stale = stale


def _read_policy_option(policy: PolicyOption) -> ConfiguredPolicy | None:
    """Read the policy from a path, a text (it holds a line break), a mapping, or `{"file": …, "apply": …}`."""
    match policy:
        case None:
            return None
        case {"file": file, **more}:
            apply = more.pop("apply", "changed")
            if more or apply not in APPLY:
                raise Misconfigured('policy= is {"file": PATH, "apply": "changed" or "always"}, or the policy itself.')
            return ConfiguredPolicy(read_policy_file(Path(file)), str(file), is_always_applied=apply == "always")
        case Mapping():
            return ConfiguredPolicy(json.dumps(dict(policy)), "policy=", is_file=False)
        case str() if "\n" in policy:
            return ConfiguredPolicy(policy, "policy=", is_file=False)
        case file:
            return ConfiguredPolicy(read_policy_file(Path(file)), str(file))
